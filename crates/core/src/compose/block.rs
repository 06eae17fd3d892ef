//! The definitions of blocks in primitive ops.

use smallvec::SmallVec;

use super::matrix::{eigen, factor, functions, spectral, values};
use super::{elementwise, fourier, index, order, random, reduce, search, sets};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::{Block, CompositeBlock};
use crate::region::Region;
use crate::shape::TensorType;

/// The results of a block by its definition; `infer`, gradients and backends without a native kernel use it.
///
/// # Errors
/// The errors of the definition's ops.
///
/// # Panics
/// If there are fewer operands than the block has: a bug of the caller.
pub fn default<B: Builder>(b: &mut B, block: &Block, args: &[B::V]) -> Result<SmallVec<[B::V; 1]>> {
    let result = match block {
        Block::Qr { mode, eps: _ } => return factor::qr(b, &args[0], *mode),
        Block::Lu => return factor::lu(b, &args[0]),
        Block::Svd { max_iter, full_matrices } => {
            return spectral::svd(b, &args[0], *max_iter, *full_matrices);
        }
        Block::Eigh { max_iter, eps } => return spectral::eigh(b, &args[0], *max_iter, eps.0),
        Block::Eig { vectors } => return eigen::eig(b, &args[0], *vectors),
        Block::Schur => return eigen::schur(b, &args[0]),
        Block::Hessenberg => return eigen::hessenberg(b, &args[0]),
        Block::TopK { k } => return order::top_k(b, &args[0], *k),

        Block::Composite(block) => composite(b, block, args)?,
        Block::Log2 => elementwise::log_base(b, (&args[0]).into(), 2.into())?,
        Block::Log10 => elementwise::log_base(b, (&args[0]).into(), 10.into())?,
        Block::Cumulative { op, axis, reverse } => reduce::cumulative(b, &args[0], *op, *axis, *reverse)?,
        Block::Take { axis } => index::take(b, &args[0], &args[1], *axis)?,
        Block::TakeAlongAxis { axis } => index::take_along_axis(b, &args[0], &args[1], *axis)?,
        Block::Isin => sets::found_in(b, &args[0], &args[1])?,
        Block::Bincount { length } => search::ones_counted(b, &args[0], *length)?,
        Block::Partition { axis, kth } => order::partitioned(b, &args[0], *axis, *kth)?,
        Block::Argpartition { axis, kth } => order::partition_order(b, &args[0], *axis, *kth)?,
        Block::Fft2 { op, axes, lengths, eps } => {
            fourier::fft2(b, &args[0], op.each(), *axes, *lengths, eps.0)?
        }
        Block::Rfft { axis, length, eps } => fourier::rfft(b, &args[0], *axis, *length, eps.0)?,
        Block::Irfft { axis, length, eps } => fourier::irfft(b, &args[0], *axis, *length, eps.0)?,
        Block::Cholesky => factor::cholesky(b, &args[0])?,
        Block::Svdvals => values::svdvals(b, &args[0])?,
        Block::Eigvalsh => values::eigvalsh(b, &args[0])?,
        Block::Solve => factor::solve(b, &args[0], &args[1])?,
        Block::Determinant => factor::determinant(b, &args[0])?,
        Block::Threefry => random::threefry(b, &args[0], &args[1])?,
        Block::RandomBits { dtype, count } => random::plain_bits(b, &args[0], *dtype, *count)?,
        Block::RandomUniform { dtype, count } => random::plain_uniform(b, &args[0], *dtype, *count)?,
        Block::RandomBelow { dtype, count } => random::plain_below(b, &args[0], &args[1], *dtype, *count)?,
    };
    Ok(SmallVec::from_elem(result, 1))
}

/// The result of a block that has no native kernel.
fn composite<B: Builder>(b: &mut B, block: &CompositeBlock, args: &[B::V]) -> Result<B::V> {
    match block {
        CompositeBlock::LogicalNot => b.equal(&args[0], 0),
        CompositeBlock::Phase => {
            let (imag, real) = (b.imag(&args[0])?, b.real(&args[0])?);
            b.atan2(imag, real)
        }
        CompositeBlock::Logsumexp { axes, keep_axes } => {
            reduce::logsumexp(b, &args[0], axes, *keep_axes, None)
        }
        CompositeBlock::AllClose { equal_nan, rtol, atol } => {
            reduce::all_close(b, &args[0], &args[1], *equal_nan, rtol.0, atol.0)
        }
        CompositeBlock::Expm => functions::expm(b, &args[0]),
        CompositeBlock::Sqrtm => functions::sqrtm(b, &args[0]),
        CompositeBlock::Logm => functions::logm(b, &args[0]),
    }
}

/// The definition of a block as a region with operands of the given types.
///
/// # Errors
/// As [`default`].
pub fn region(block: &Block, types: &[&TensorType]) -> Result<Region> {
    let mut graph = Graph::new();
    let arguments: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, (*ty).clone())).collect();
    let results = default(&mut graph, block, &arguments)?;
    let inputs = types.iter().map(|ty| (*ty).clone()).collect();
    Ok(Region::new(graph, inputs, types.len(), results.into_iter().collect()))
}
