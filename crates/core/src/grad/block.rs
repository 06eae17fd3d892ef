//! Gradients of blocks: a closed-form rule, else through the block's default graph, independent of the form
//! that the backend ran forward.

use super::region::{self, Draft, Pullback};
use super::{Site, Vjp, matrix};
use crate::compose;
use crate::error::Result;
use crate::graph::{Value, Values};
use crate::op::{Block, CompositeBlock, UserBlockOp};
use crate::region::Region;

/// Why a Schur factorization has no derivative.
pub(crate) const NO_SCHUR: &str =
    "its factors are not unique; use eig, eigh, qr or a function of the eigenvalues";

/// The closed-form rule of a factorization, else the gradient of the default graph.
pub(super) fn rule(site: &mut Site<'_>, block: &Block, g: &[Option<Value>]) -> Result<Vjp> {
    match block {
        Block::Cholesky => matrix::cholesky(site, g),
        Block::Solve => matrix::solve(site, g),
        Block::Qr { mode: _, eps: _ } => matrix::qr(site, g),
        Block::Lu => matrix::lu(site, g),
        Block::Svd { max_iter: _, full_matrices: _ } => matrix::svd(site, g),
        Block::Eigh { max_iter: _, eps: _ } => matrix::eigh(site, g),
        Block::Eig { vectors } => matrix::eig(site, *vectors, g),
        Block::Schur => Ok(Vjp::Refused { hint: NO_SCHUR }),
        Block::Composite(
            function @ (CompositeBlock::Expm | CompositeBlock::Sqrtm | CompositeBlock::Logm),
        ) => matrix::function(site, function.clone(), g),
        Block::Hessenberg
        | Block::Composite(
            CompositeBlock::LogicalNot
            | CompositeBlock::Phase
            | CompositeBlock::Logsumexp { .. }
            | CompositeBlock::AllClose { .. },
        )
        | Block::Log2
        | Block::Log10
        | Block::Cumulative { .. }
        | Block::Take { .. }
        | Block::TakeAlongAxis { .. }
        | Block::TopK { .. }
        | Block::Partition { .. }
        | Block::Argpartition { .. }
        | Block::Isin
        | Block::Bincount { .. }
        | Block::Fft2 { .. }
        | Block::Rfft { .. }
        | Block::Irfft { .. }
        | Block::Threefry
        | Block::RandomBits { .. }
        | Block::RandomUniform { .. }
        | Block::RandomBelow { .. }
        | Block::Determinant
        // The gradients of values need the vectors.
        | Block::Svdvals
        | Block::Eigvalsh => default(site, block, g),
    }
}

/// The gradient of the default graph; recomputes only the values that the gradient needs.
fn default(site: &mut Site<'_>, block: &Block, g: &[Option<Value>]) -> Result<Vjp> {
    let count = site.inputs.len();
    let inputs: Values = (0..count).map(|input| site.input(input)).collect::<Result<_>>()?;
    let mut draft = Draft::new();
    let parameters: Vec<Value> =
        inputs.iter().map(|&input| draft.input(site.graph.ty(input).clone())).collect();
    let results = compose::block::default(&mut draft.graph, block, &parameters)?;
    let default = draft.close(count, &results)?;
    let wrt: Vec<usize> = (0..count).filter(|&input| site.needs_gradient(input)).collect();
    pull_back(site, &default, &inputs, &wrt, g)
}

/// The gradient of a user's default.
pub(super) fn user(site: &mut Site<'_>, op: &UserBlockOp, g: &[Option<Value>]) -> Result<Vjp> {
    let inputs = site.inputs.clone();
    let wrt: Vec<usize> = (0..inputs.len()).filter(|&input| site.needs_gradient(input)).collect();
    pull_back(site, &op.default, &inputs, &wrt, g)
}

/// The gradient of a region at `inputs`, one of which corresponds to each input of the node.
fn pull_back(
    site: &mut Site<'_>,
    region: &Region,
    inputs: &[Value],
    wrt: &[usize],
    g: &[Option<Value>],
) -> Result<Vjp> {
    let types: Vec<_> = g.iter().map(|g| g.map(|value| site.graph.ty(value).clone())).collect();
    let pullback = Pullback::new(region, wrt, &types, &vec![None; wrt.len()])?;
    let mut arguments: Vec<Value> = inputs.into();
    arguments.extend(g.iter().copied().flatten());
    let mut gradients = region::inline(site.graph, &pullback.region, &arguments)?.into_iter();
    let mut contributions = vec![None; inputs.len()];
    for (&input, &flows) in wrt.iter().zip(&pullback.flows) {
        if flows {
            contributions[input] = gradients.next();
        }
    }
    Ok(Vjp::flows(contributions))
}
