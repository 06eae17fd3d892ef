//! Sets of blocks: a rule of their own, else that of the block's definition.

use smallvec::smallvec;

use super::known::deciding_inputs;
use super::{Dependence, Dependences, Input, Site, axes, matrix, reduce, shape};
use crate::compose;
use crate::error::Result;
use crate::op::{Block, CompositeBlock};
use crate::region::Region;
use crate::shape::{Axis, TensorType};

pub(super) fn rule(site: &mut Site<'_, '_, '_>, block: &Block) -> Result<Dependences> {
    let found = match block {
        Block::Log2 | Block::Log10 | Block::Composite(CompositeBlock::Phase) => site.inputs[0].clone(),
        Block::Cumulative { op, axis, reverse } => reduce::cumulative(site, *op, *axis, *reverse),
        Block::Composite(CompositeBlock::Logsumexp { axes, .. }) => reduce::over(site, axes),
        Block::Partition { axis, .. } => shape::lines(site, axis.index(), usize::MAX),
        Block::TopK { .. } => {
            let last = site.input_sizes(0).len() - 1;
            return Ok(smallvec![shape::lines(site, last, usize::MAX), None]);
        }

        Block::Fft2 { axes, lengths, .. } => planes(site, *axes, *lengths),
        Block::Rfft { axis, length, .. } => shape::lines(site, axis.index(), *length),
        Block::Irfft { axis, length, .. } => shape::lines(site, axis.index(), length / 2 + 1),

        Block::Solve => matrix::solve(site, true),
        // The permutation is constant.
        Block::Lu => return Ok(matrix::factors(site, &[0])),
        Block::Cholesky
        | Block::Determinant
        | Block::Schur
        | Block::Hessenberg
        | Block::Svdvals
        | Block::Eigvalsh
        | Block::Qr { .. }
        | Block::Svd { .. }
        | Block::Eigh { .. }
        | Block::Eig { .. }
        | Block::Composite(CompositeBlock::Expm | CompositeBlock::Sqrtm | CompositeBlock::Logm) => {
            return Ok(matrix::factors(site, &[]));
        }

        // Positions, predicates, counts and random bits.
        Block::Argpartition { .. }
        | Block::Isin
        | Block::Bincount { .. }
        | Block::Threefry
        | Block::RandomBits { .. }
        | Block::RandomUniform { .. }
        | Block::RandomBelow { .. }
        | Block::Composite(CompositeBlock::LogicalNot | CompositeBlock::AllClose { .. }) => None,

        Block::Take { .. } | Block::TakeAlongAxis { .. } => {
            let types: Vec<&TensorType> =
                (0..site.inputs.len()).map(|input| site.input_type(input)).collect();
            let definition = compose::block::region(block, &types)?;
            return defined(site, &definition, &[true]);
        }
    };
    Ok(smallvec![found])
}

/// The sets of a definition's results, of which the node's inputs are the inputs.
pub(super) fn defined(
    site: &mut Site<'_, '_, '_>,
    definition: &Region,
    useful: &[bool],
) -> Result<Dependences> {
    let decides = deciding_inputs(definition, &[]);
    let inputs: Vec<Input> =
        (0..site.inputs.len()).map(|input| site.entering(input, decides[input])).collect();
    Ok(site.analysis.region(definition, inputs, useful)?.0.into_iter().collect())
}

/// The elements of a plane along two axes.
fn planes(site: &mut Site<'_, '_, '_>, axes: [Axis; 2], lengths: [usize; 2]) -> Dependence {
    let (mut found, mut sizes) = (site.inputs[0].clone()?.to_vec(), site.input_sizes(0).to_vec());
    for (axis, length) in axes.iter().map(|axis| axis.index()).zip(lengths) {
        let used = length.min(sizes[axis]);
        found = axes::lines(&mut site.analysis.sets, &found, &sizes, axis, (used, length));
        sizes[axis] = length;
    }
    Some(found.into())
}
