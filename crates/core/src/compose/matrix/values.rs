//! Functions of the factors of matrices: logarithms of determinants, singular values and eigenvalues, condition
//! numbers; and chains of products.

use super::batch::{Batch, constant_like, real_part};
use super::factor::odd_permutation;
use super::{SWEEPS, norm, square_size};
use crate::builder::{
    Arg, BuildCreate, BuildElementwise, BuildLinalg, BuildMatrix, BuildReduce, BuildShape, Builder, NormOrder,
};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Tolerance};
use crate::shape::{Axes, Shape, TensorType};

/// The number of sweeps for eigenvalues.
const EIGEN_SWEEPS: usize = 1000;

/// See [`BuildMatrix::slogdet`].
///
/// # Errors
/// As the method.
pub fn slogdet<B: Builder>(b: &mut B, x: &B::V) -> Result<(B::V, B::V)> {
    square_size("slogdet", b.ty(x))?;
    let batch = Batch::new(b, x)?;
    let real = batch.working.to_real();
    let (sign, log) = if batch.rows == 0 {
        let shape = Shape::new(&[batch.count]);
        (b.full(shape.clone(), batch.working, 1)?, b.full(shape, real, 0)?)
    } else {
        let (permutation, _, upper) = b.lu(batch.value.clone())?;
        let diagonal = b.take_diagonal(upper, 0)?;
        let signs = b.sign(diagonal.clone())?;
        let sign = b.product(signs, [1], false)?;
        let odd = odd_permutation(b, permutation, batch.rows)?;
        let negative = b.negate(sign.clone())?;
        let sign = b.select(odd, negative, sign)?;
        let sizes = b.abs(diagonal)?;
        let logs = b.log(sizes)?;
        (sign, b.sum(logs, [1], false)?)
    };
    let sign = batch.restore_leading_axes(b, &sign, batch.dtype)?;
    let log = batch.restore_leading_axes(b, &log, batch.dtype.to_real())?;
    Ok((sign, log))
}

/// Requires matrices.
fn require_matrices(op: &'static str, got: &TensorType) -> Result<()> {
    if got.shape.rank() >= 2 {
        return Ok(());
    }
    let (got, required) = (got.clone(), "at least two axes are required");
    Err(ErrorKind::Rank { op, got, required }.into())
}

/// The whole decomposition in the definition of a block of values alone.
pub(crate) fn whole(block: &Block) -> Option<Block> {
    if let Block::Svdvals = block {
        Some(Block::Svd { max_iter: SWEEPS, full_matrices: false })
    } else if let Block::Eigvalsh = block {
        Some(Block::Eigh { max_iter: EIGEN_SWEEPS, eps: Tolerance(0.0) })
    } else {
        None
    }
}

/// The singular values of the whole decomposition, for gradients and where nothing computes values alone.
///
/// # Errors
/// As [`BuildMatrix::svdvals`].
pub(crate) fn svdvals<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    Ok(b.svd(x.clone(), SWEEPS, false)?.1)
}

/// The eigenvalues of the whole decomposition, for gradients and where nothing computes values alone.
///
/// # Errors
/// As [`BuildMatrix::eigvalsh`].
pub(crate) fn eigvalsh<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let (values, _) = b.eigh(x.clone(), EIGEN_SWEEPS, 0.0)?;
    real_part(b, &values)
}

/// See [`BuildMatrix::cond`].
///
/// # Errors
/// As the method.
pub fn cond<B: Builder>(b: &mut B, x: &B::V, order: Option<NormOrder>) -> Result<B::V> {
    let op = "cond";
    let got = b.ty(x);
    require_matrices(op, &got)?;
    let rank = got.shape.rank();
    if let Some(axis) = (rank - 2..rank).find(|&axis| got.shape.sizes()[axis] == 0) {
        return Err(ErrorKind::EmptyReduction { op, got, axis }.into());
    }
    let (dtype, working) = (got.dtype.to_float().to_real(), working_dtype(got.dtype));
    let plain = b.reshape_to(x.clone(), got.shape.without_names())?;
    let plain = b.as_type(plain, working)?;
    let order = order.unwrap_or(NormOrder::Power(2));
    let number = match order {
        NormOrder::Power(power @ (2 | -2)) => {
            let values = b.svdvals(plain.clone())?;
            let count = b.ty(&values).shape.sizes()[rank - 2] as i64;
            let greatest = b.slice_along_axis(&values, 0, 1, -1, 1)?;
            let least = b.slice_along_axis(&values, count - 1, 1, -1, 1)?;
            let number = if power > 0 { b.divide(greatest, least)? } else { b.divide(least, greatest)? };
            b.squeeze(number, -1)?
        }
        NormOrder::Power(_) | NormOrder::Real(_)
            if order != NormOrder::Power(1) && order != NormOrder::Power(-1) =>
        {
            let given = match order {
                NormOrder::Real(power) => power.to_string(),
                NormOrder::Power(power) => power.to_string(),
                NormOrder::Infinity | NormOrder::NegInfinity | NormOrder::Frobenius | NormOrder::Nuclear => {
                    unreachable!("the pattern excludes it")
                }
            };
            let option = "ord";
            let required = "1, -1, 2, -2, \"inf\", \"neg_inf\", \"frobenius\" or \"nuclear\"".to_owned();
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        NormOrder::Power(_)
        | NormOrder::Real(_)
        | NormOrder::Infinity
        | NormOrder::NegInfinity
        | NormOrder::Frobenius
        | NormOrder::Nuclear => {
            square_size(op, got.clone())?;
            let inverse = b.invert(plain.clone())?;
            let axes = Axes::from([-2, -1]);
            let own = norm(b, &plain, Some(order), &axes, false)?;
            let of_inverse = norm(b, &inverse, Some(order), &axes, false)?;
            b.multiply(own, of_inverse)?
        }
    };
    // The number of a singular matrix is infinite. That of a matrix with a NaN is NaN.
    let nan = b.is_nan(plain)?;
    let has_nan = b.any(nan, [-2, -1], false)?;
    let is_nan = b.is_nan(number.clone())?;
    let has_number = b.logical_not(has_nan)?;
    let singular = b.logical_and(is_nan, has_number)?;
    let infinity = constant_like(b, &number, f64::INFINITY)?;
    let number = b.select(singular, infinity, number)?;
    b.as_type(number, dtype)
}

/// See [`BuildMatrix::multi_dot`].
///
/// # Errors
/// As the method.
pub fn multi_dot<B: Builder>(b: &mut B, tensors: &[B::V]) -> Result<B::V> {
    let op = "multi_dot";
    let types: Vec<TensorType> = tensors.iter().map(|tensor| b.ty(tensor)).collect();
    let (Some(first), Some(last)) = (types.first(), types.last()) else {
        return Err(ErrorKind::NoTensors { op }.into());
    };
    for (at, got) in types.iter().enumerate() {
        let is_end = at == 0 || at + 1 == types.len();
        if got.shape.rank() != 2 && !(is_end && got.shape.rank() == 1) {
            let (got, required) =
                (got.clone(), "a matrix is required; the first and the last may be vectors");
            return Err(ErrorKind::Rank { op, got, required }.into());
        }
    }
    for pair in types.windows(2) {
        let (left, right) = (pair[0].clone(), pair[1].clone());
        let left_axis = left.shape.rank() - 1;
        if left.shape.sizes()[left_axis] != right.shape.sizes()[0] {
            let (right_axis, what) = (0, "contracted");
            return Err(ErrorKind::DotSizes { op, left, left_axis, right, right_axis, what }.into());
        }
    }
    let dtype = types.iter().map(|ty| ty.dtype).reduce(DType::merge).unwrap_or(first.dtype).to_number();
    if types.len() == 1 {
        return b.as_type(&tensors[0], dtype);
    }
    // The names of inner axes may repeat those of outer ones.
    let mut names = Vec::with_capacity(2);
    if first.shape.rank() == 2 {
        names.push(first.shape.names().next().flatten().cloned());
    }
    if last.shape.rank() == 2 {
        names.push(last.shape.names().last().flatten().cloned());
    }
    if let [Some(left), Some(right)] = &names[..]
        && left == right
    {
        return Err(ErrorKind::NamesRepeated { op, name: left.clone() }.into());
    }
    // Products round once where there is one; otherwise narrow floats are rounded at the end.
    let working = if dtype.is_float() && types.len() > 2 { working_dtype(dtype) } else { dtype };
    let mut factors = Vec::with_capacity(tensors.len());
    for (tensor, ty) in tensors.iter().zip(&types) {
        let plain = b.reshape_to(tensor, ty.shape.without_names())?;
        factors.push(b.as_type(plain, working)?);
    }
    // The sizes along the chain; vectors at the ends count as a row and as a column.
    let rows = |ty: &TensorType| if ty.shape.rank() == 2 { ty.shape.sizes()[0] } else { 1 };
    let mut sizes = vec![rows(first)];
    sizes.extend(types[1..].iter().map(|ty| ty.shape.sizes()[0]));
    sizes.push(if last.shape.rank() == 2 { last.shape.sizes()[1] } else { 1 });
    let cuts = cheapest_cuts(&sizes);
    let product = chain(b, &factors, &cuts, 0, factors.len() - 1)?;
    let product = b.as_type(product, dtype)?;
    let shape = b.ty(&product).shape.with_names(names)?;
    let product = b.reshape_to(product, shape)?;
    let tensors: Vec<Arg<B::V>> = tensors.iter().map(Arg::from).collect();
    b.order_vectorized_axes(product, &tensors.iter().collect::<Vec<_>>())
}

/// For each part of a chain, from one factor to another, the last factor on the left of its last product. By dynamic
/// programming over the parts (S. S. Godbole, "On efficient computation of matrix chain products", IEEE Transactions on
/// Computers C-22, 1973). Factor `i` has `sizes[i]` rows and `sizes[i + 1]` columns.
fn cheapest_cuts(sizes: &[usize]) -> Vec<Vec<usize>> {
    let count = sizes.len() - 1;
    let mut costs = vec![vec![0.0; count]; count];
    let mut cuts = vec![vec![0; count]; count];
    for length in 1..count {
        for from in 0..count - length {
            let to = from + length;
            let mut least = f64::INFINITY;
            for cut in from..to {
                let last = sizes[from] as f64 * sizes[cut + 1] as f64 * sizes[to + 1] as f64;
                let cost: f64 = costs[from][cut] + costs[cut + 1][to] + last;
                if cost < least {
                    least = cost;
                    cuts[from][to] = cut;
                }
            }
            costs[from][to] = least;
        }
    }
    cuts
}

/// The product of the factors from one to another.
fn chain<B: Builder>(
    b: &mut B,
    factors: &[B::V],
    cuts: &[Vec<usize>],
    from: usize,
    to: usize,
) -> Result<B::V> {
    if from == to {
        return Ok(factors[from].clone());
    }
    let cut = cuts[from][to];
    let left = chain(b, factors, cuts, from, cut)?;
    let right = chain(b, factors, cuts, cut + 1, to)?;
    b.dot_axes(left, -1, right, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuts_of_a_chain_are_the_cheapest() {
        // Of 10 x 100, 100 x 5 and 5 x 50 the first two are multiplied first: 7500 products instead of 75000.
        assert_eq!(cheapest_cuts(&[10, 100, 5, 50])[0][2], 1);
        assert_eq!(cheapest_cuts(&[50, 5, 100, 10])[0][2], 0);
        // Of a chain that ends in a vector, every product has the vector.
        let cuts = cheapest_cuts(&[30, 30, 30, 30, 1]);
        assert_eq!([cuts[0][3], cuts[1][3], cuts[2][3]], [0, 1, 2]);
    }
}
