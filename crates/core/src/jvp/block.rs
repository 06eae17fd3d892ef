//! Tangents of blocks: a closed-form rule, else through the block's default graph. `t` are the tangents of the operands.

use smallvec::smallvec;

use super::{Control, Tangents, matrix, push};
use crate::builder::{BuildIndex, Builder};
use crate::compose;
use crate::error::{ErrorKind, Result};
use crate::grad::region::{self, Draft};
use crate::grad::{Site, block as reverse};
use crate::graph::{Value, Values};
use crate::op::{Block, CompositeBlock, CumulativeOp, Op, UserBlockOp};
use crate::region::Region;

/// The closed-form rule of a factorization, the block itself where it is linear, else the rule of the default graph.
pub(super) fn rule(
    site: &mut Site<'_>,
    block: &Block,
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<Tangents> {
    match block {
        Block::Cholesky => matrix::cholesky(site, t),
        Block::Solve => matrix::solve(site, t),
        Block::Qr { mode: _, eps: _ } => matrix::qr(site, t),
        Block::Lu => matrix::lu(site, t),
        Block::Svd { max_iter: _, full_matrices: _ } => matrix::svd(site, t, varied),
        Block::Eigh { max_iter: _, eps: _ } => matrix::eigh(site, t, varied),
        Block::Eig { vectors } => matrix::eig(site, *vectors, t, varied),
        Block::Schur => Err(ErrorKind::NoGradient { op: block.name(), hint: reverse::NO_SCHUR }.into()),
        Block::Composite(
            function @ (CompositeBlock::Expm | CompositeBlock::Sqrtm | CompositeBlock::Logm),
        ) => matrix::function(site, function.clone(), t),
        Block::Cumulative { op: CumulativeOp::CumulativeSum, .. }
        | Block::Take { .. }
        | Block::TakeAlongAxis { .. }
        | Block::Fft2 { .. }
        | Block::Rfft { .. }
        | Block::Irfft { .. } => linear(site, block, t),
        Block::TopK { .. } => top(site, t),
        Block::Hessenberg
        | Block::Composite(
            CompositeBlock::LogicalNot
            | CompositeBlock::Phase
            | CompositeBlock::Logsumexp { .. }
            | CompositeBlock::AllClose { .. },
        )
        | Block::Log2
        | Block::Log10
        | Block::Cumulative {
            op: CumulativeOp::CumulativeProduct | CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin,
            ..
        }
        | Block::Partition { .. }
        | Block::Argpartition { .. }
        | Block::Isin
        | Block::Bincount { .. }
        | Block::Threefry
        | Block::RandomBits { .. }
        | Block::RandomUniform { .. }
        | Block::RandomBelow { .. }
        | Block::Determinant
        // The tangents of values need the vectors.
        | Block::Svdvals
        | Block::Eigvalsh => default(site, block, t, varied),
    }
}

/// The same block on the tangent of the first operand. The others are positions.
fn linear(site: &mut Site<'_>, block: &Block, t: &[Option<Value>]) -> Result<Tangents> {
    let Some(t) = t[0] else { return Ok(smallvec![None]) };
    let mut operands: Values = smallvec![t];
    for input in 1..site.inputs.len() {
        operands.push(site.input(input)?);
    }
    Ok(smallvec![Some(site.graph.emit_one(Op::Block(block.clone()), &operands)?)])
}

/// The tangents at the positions of the greatest elements.
fn top(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Tangents> {
    let Some(t) = t[0] else { return Ok(smallvec![None; 2]) };
    let positions = site.output(1)?;
    Ok(smallvec![Some(site.graph.take_along_axis(t, positions, -1)?), None])
}

/// The tangents of the default graph, which computes again only the values that they need.
fn default(site: &mut Site<'_>, block: &Block, t: &[Option<Value>], varied: &[bool]) -> Result<Tangents> {
    let count = site.inputs.len();
    let inputs: Values = (0..count).map(|input| site.input(input)).collect::<Result<_>>()?;
    let mut draft = Draft::new();
    let parameters: Vec<Value> =
        inputs.iter().map(|&input| draft.input(site.graph.ty(input).clone())).collect();
    let results = compose::block::default(&mut draft.graph, block, &parameters)?;
    let default = draft.close(count, &results)?;
    Ok(push(site.graph, &default, &inputs, t, varied, Control::Joint)?.tangents)
}

/// The tangents of a user's default. The hooks in it have run with the values.
pub(super) fn user(
    site: &mut Site<'_>,
    op: &UserBlockOp,
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<Tangents> {
    let inputs = site.inputs.clone();
    let default: Region = region::without_hook_calls(&op.default)?;
    Ok(push(site.graph, &default, &inputs, t, varied, Control::Joint)?.tangents)
}
