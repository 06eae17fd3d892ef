//! Composites of factorizations, and norms.

pub(crate) mod batch;
pub mod eigen;
pub mod factor;
pub mod functions;
mod semidefinite;
pub mod spectral;
pub mod systems;
pub mod values;

use super::working_dtype;
use crate::builder::{
    BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildMatrix, BuildReduce, BuildShape, Builder,
    NormOrder,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Axes, Axis, Shape, TensorType};
use batch::{constant_like, machine_epsilon, product, square};

/// The maximum number of sweeps for singular values inside composites.
const SWEEPS: usize = 100;

/// See [`BuildMatrix::adjoint`].
///
/// # Errors
/// As the method.
pub fn adjoint<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let x = batch::conjugated(b, x)?;
    if b.ty(&x).shape.rank() <= 2 { b.transpose(x, Axes::All) } else { batch::transposed(b, &x) }
}

/// The size of the square matrices in the last two axes.
fn square_size(op: &'static str, got: TensorType) -> Result<usize> {
    match got.shape.sizes() {
        [.., rows, columns] if rows == columns => Ok(*rows),
        [.., _, _] => Err(ErrorKind::NotSquare { op, got }.into()),
        [] | [_] => {
            let required = "at least two axes are required";
            Err(ErrorKind::Rank { op, got, required }.into())
        }
    }
}

/// See [`BuildMatrix::invert`].
///
/// # Errors
/// As the method.
pub fn invert<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    square_size("invert", ty.clone())?;
    let dtype = ty.dtype.to_float();
    let working = working_dtype(dtype);
    let plain = ty.shape.without_names();
    let x = b.as_type(x.clone(), working)?;
    let x = b.reshape_to(x, plain.clone())?;
    let eye = b.eye(plain.clone(), working)?;
    let inverse = b.solve(x.clone(), eye)?;
    let determinant = b.determinant(x)?;
    let size = b.abs(determinant)?;
    let least =
        if working.to_real() == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    // This also excludes NaN.
    let regular = b.greater_equal(size, 1000.0 * least)?;
    let regular = b.new_axis(regular, -1, None)?;
    let regular = b.new_axis(regular, -1, None)?;
    let nan = constant_like(b, &inverse, f64::NAN)?;
    let inverse = batch::broadcast_select(b, &regular, &inverse, &nan, &plain)?;
    b.as_type(inverse, dtype)
}

/// See [`BuildMatrix::pinv`].
///
/// # Errors
/// As the method.
pub fn pinv<B: Builder>(b: &mut B, x: &B::V, eps: f64) -> Result<B::V> {
    if eps.is_nan() || eps < 0.0 {
        let (option, given, required) = ("eps", eps.to_string(), "at least 0".to_owned());
        return Err(ErrorKind::OptionValue { op: "pinv", option, given, required }.into());
    }
    let ty = b.ty(x);
    let dtype = ty.dtype.to_float();
    let working = working_dtype(dtype);
    let x = b.as_type(x.clone(), working)?;
    let x = b.reshape_to(x, ty.shape.without_names())?;
    let result = match ty.shape.rank() {
        0 | 1 if ty.size() == 0 => x,
        0 | 1 => {
            // Scaled, so that squares neither overflow nor underflow.
            let size = b.abs(x.clone())?;
            let (scale, nothing) = scale_of(b, size, Axes::All)?;
            let x = b.divide(x, scale.clone())?;
            let squares = square(b, &x)?;
            let sum = b.sum(squares, Axes::All, false)?;
            let one = constant_like(b, &sum, 1.0)?;
            let sum = b.select(nothing, one, sum)?;
            let x = batch::conjugated(b, &x)?;
            let quotient = b.divide(x, sum)?;
            b.divide(quotient, scale)?
        }
        rank => {
            let (u, s, vh) = b.svd(x, SWEEPS, false)?;
            let last = Axis(rank - 2);
            let inverse = if b.ty(&s).shape[last] == 0 {
                s
            } else {
                let (greatest, _) = scale_of(b, s.clone(), Axes::from(last))?;
                let sizes = &ty.shape.sizes()[rank - 2..];
                let bound = eps.max(machine_epsilon(working) * sizes[0].max(sizes[1]) as f64);
                let bound = b.multiply(greatest, bound)?;
                // For a zero matrix all singular values are at most the bound.
                let small = b.less_equal(s.clone(), bound)?;
                let (zero, one) = (constant_like(b, &s, 0.0)?, constant_like(b, &s, 1.0)?);
                let s = b.select(small.clone(), one, s)?;
                let inverse = b.divide(1, s)?;
                b.select(small, zero, inverse)?
            };
            let inverse = b.new_axis(inverse, -1, None)?;
            let uh = batch::adjoint(b, &u)?;
            let scaled = b.multiply(inverse, uh)?;
            let v = batch::adjoint(b, &vh)?;
            product(b, &v, &scaled)?
        }
    };
    b.as_type(result, dtype)
}

/// The greatest of some magnitudes, with 1 in place of 0, and whether it is 0. The axes are kept. Gradients treat it
/// as a constant.
fn scale_of<B: Builder>(b: &mut B, sizes: B::V, axes: Axes) -> Result<(B::V, B::V)> {
    let greatest = b.reduce_max(sizes, axes, true)?;
    let greatest = b.stop_grad(greatest)?;
    let nothing = b.equal(greatest.clone(), 0)?;
    let one = constant_like(b, &greatest, 1.0)?;
    Ok((b.select(nothing.clone(), one, greatest)?, nothing))
}

/// See [`BuildMatrix::matrix_power`].
///
/// # Errors
/// As the method.
pub fn matrix_power<B: Builder>(b: &mut B, x: &B::V, power: i64) -> Result<B::V> {
    let ty = b.ty(x);
    square_size("matrix_power", ty.clone())?;
    let plain = ty.shape.without_names();
    if power == 0 {
        return b.eye(plain, DType::S32);
    }
    let mut square = b.reshape_to(x.clone(), plain.clone())?;
    if power < 0 {
        square = invert(b, &square)?;
    }
    // Repeated squaring; the bits of the power select the factors.
    let mut rest = power.unsigned_abs();
    let mut result: Option<B::V> = None;
    loop {
        if rest & 1 == 1 {
            result = Some(match result {
                Some(result) => product(b, &result, &square)?,
                None => square.clone(),
            });
        }
        rest >>= 1;
        if rest == 0 {
            break;
        }
        square = product(b, &square, &square)?;
    }
    Ok(result.expect("a power that is not zero has a bit"))
}

/// See [`BuildMatrix::matrix_rank`].
///
/// # Errors
/// As the method.
pub fn matrix_rank<B: Builder>(b: &mut B, x: &B::V, eps: f64) -> Result<B::V> {
    let got = b.ty(x);
    let [lead @ .., rows, columns] = got.shape.sizes() else {
        let required = "at least two axes are required";
        return Err(ErrorKind::Rank { op: "matrix_rank", got, required }.into());
    };
    let (rows, columns) = (*rows, *columns);
    if rows == 0 || columns == 0 {
        return b.full(Shape::new(lead), DType::S32, 0);
    }
    let working = working_dtype(got.dtype);
    let x = b.as_type(x.clone(), working)?;
    let s = b.svdvals(x)?;
    let last = Axis(lead.len());
    let greatest = b.reduce_max(s.clone(), last, true)?;
    let bound = b.multiply(greatest, eps * rows.max(columns) as f64)?;
    let above = b.greater(s, bound)?;
    b.sum(above, last, false)
}

/// See [`BuildMatrix::least_squares`].
///
/// # Errors
/// As the method.
pub fn least_squares<B: Builder>(b: &mut B, x: &B::V, y: &B::V, eps: f64) -> Result<B::V> {
    let (left, right) = (b.ty(x), b.ty(y));
    match (left.shape.sizes(), right.shape.sizes()) {
        (&[rows, _], &[size]) if rows == size => {}
        _ => {
            let required = "a matrix and a vector as long as it has rows are required";
            return Err(ErrorKind::System { op: "least_squares", left, right, required }.into());
        }
    }
    let dtype = left.dtype.merge(right.dtype).to_float();
    let working = working_dtype(dtype);
    let (x, y) = (b.as_type(x.clone(), working)?, b.as_type(y.clone(), working)?);
    let x = b.reshape_to(x, left.shape.without_names())?;
    let y = b.reshape_to(y, right.shape.without_names())?;
    let inverse = pinv(b, &x, eps)?;
    let solution = b.dot(inverse, y)?;
    b.as_type(solution, dtype)
}

/// See [`BuildMatrix::norm`].
///
/// # Errors
/// As the method.
pub fn norm<B: Builder>(
    b: &mut B,
    x: &B::V,
    order: Option<NormOrder>,
    axes: &Axes,
    keep_axes: bool,
) -> Result<B::V> {
    let got = b.ty(x);
    if got.shape.rank() == 0 {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op: "norm", got, required }.into());
    }
    // The order of two axes matters: rows, then columns.
    let along = got.shape.resolve_all("norm", axes)?;
    let all = Axes::List(along.iter().map(|&axis| axis.into()).collect());
    let dtype = got.dtype.to_real();
    let x = b.as_type(x.clone(), working_dtype(got.dtype))?;
    let wrong = |order: NormOrder, required: &str| {
        let given = match order {
            NormOrder::Power(power) => power.to_string(),
            NormOrder::Real(power) => power.to_string(),
            NormOrder::Infinity => "\"inf\"".to_owned(),
            NormOrder::NegInfinity => "\"neg_inf\"".to_owned(),
            NormOrder::Frobenius => "\"frobenius\"".to_owned(),
            NormOrder::Nuclear => "\"nuclear\"".to_owned(),
        };
        ErrorKind::OptionValue { op: "norm", option: "ord", given, required: required.to_owned() }
    };
    let count = |required: &'static str| {
        let (op, given, shape) = ("norm", along.len(), got.shape.clone());
        Err(ErrorKind::AxesCount { op, given, shape, required }.into())
    };
    let result = match (&along[..], order) {
        ([], _) => return count("at least one is required"),
        (&[axis], order) => {
            let order = order.unwrap_or(NormOrder::Power(2));
            match order {
                NormOrder::Power(power) => vector_norm(b, &x, power as f64, axis, keep_axes)?,
                NormOrder::Real(power) => vector_norm(b, &x, power, axis, keep_axes)?,
                NormOrder::Infinity => {
                    let size = b.abs(x)?;
                    extreme(b, &size, axis, keep_axes, true)?
                }
                NormOrder::NegInfinity => {
                    let size = b.abs(x)?;
                    extreme(b, &size, axis, keep_axes, false)?
                }
                NormOrder::Frobenius | NormOrder::Nuclear => {
                    return Err(wrong(order, "a number, \"inf\" or \"neg_inf\" for vectors").into());
                }
            }
        }
        (_, None | Some(NormOrder::Frobenius)) => root_of_squares(b, &x, &all, keep_axes)?,
        (&[rows, columns], Some(order)) => match order {
            NormOrder::Power(1) => sums(b, &x, [rows, columns], true, keep_axes)?,
            NormOrder::Power(-1) => sums(b, &x, [rows, columns], false, keep_axes)?,
            NormOrder::Infinity => sums(b, &x, [columns, rows], true, keep_axes)?,
            NormOrder::NegInfinity => sums(b, &x, [columns, rows], false, keep_axes)?,
            NormOrder::Power(2) => singular(b, &x, [rows, columns], keep_axes, Singular::Greatest)?,
            NormOrder::Power(-2) => singular(b, &x, [rows, columns], keep_axes, Singular::Least)?,
            NormOrder::Nuclear => singular(b, &x, [rows, columns], keep_axes, Singular::Sum)?,
            NormOrder::Power(_) | NormOrder::Real(_) | NormOrder::Frobenius => {
                let required =
                    "1, -1, 2, -2, \"inf\", \"neg_inf\", \"frobenius\" or \"nuclear\" for matrices";
                return Err(wrong(order, required).into());
            }
        },
        (_, Some(_)) => return count("one or two are required with an order"),
    };
    b.as_type(result, dtype)
}

/// The square root of the sum of squares along axes.
fn root_of_squares<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let ty = b.ty(x);
    let along = ty.shape.resolve_all("norm", axes)?;
    if !ty.dtype.is_complex() && along.len() == ty.shape.rank() {
        // The whole tensor is one vector. Its dot product with itself needs no temporary for the squares.
        let vector = b.reshape_to(x.clone(), Shape::new(&[ty.shape.size()]))?;
        let sum = b.dot(vector.clone(), vector)?;
        let sum = b.reshape_to(sum, ty.shape.reduced(&along, keep_axes))?;
        return b.sqrt(sum);
    }
    let squares = square(b, x)?;
    let sum = b.sum(squares, axes.clone(), keep_axes)?;
    b.sqrt(sum)
}

/// The p-norm of the vectors along an axis.
fn vector_norm<B: Builder>(b: &mut B, x: &B::V, power: f64, axis: Axis, keep_axes: bool) -> Result<B::V> {
    if power == 0.0 {
        let dtype = b.ty(x).dtype.to_real();
        let nonzero = b.not_equal(x.clone(), 0)?;
        let nonzero = b.as_type(nonzero, dtype)?;
        return b.sum(nonzero, axis, keep_axes);
    }
    if power == 2.0 {
        return root_of_squares(b, x, &Axes::from(axis), keep_axes);
    }
    let size = b.abs(x.clone())?;
    if power == 1.0 {
        return b.sum(size, axis, keep_axes);
    }
    let powers = b.pow(size, power)?;
    let sum = b.sum(powers, axis, keep_axes)?;
    b.pow(sum, 1.0 / power)
}

/// The maximum or minimum along an axis; the maximum of an empty axis is 0.
fn extreme<B: Builder>(b: &mut B, size: &B::V, axis: Axis, keep: bool, greatest: bool) -> Result<B::V> {
    let shape = b.ty(size).shape;
    if greatest && shape[axis] == 0 {
        let dtype = b.ty(size).dtype;
        return b.full(shape.reduced(&[axis], keep), dtype, 0);
    }
    if shape[axis] == 0 && shape.reduced(&[axis], keep).size() > 0 {
        let (op, got, axis) = ("norm", b.ty(size), axis.index());
        return Err(ErrorKind::EmptyReduction { op, got, axis }.into());
    }
    if greatest { b.reduce_max(size.clone(), axis, keep) } else { b.reduce_min(size.clone(), axis, keep) }
}

/// The maximum or minimum along the second axis of the sums of magnitudes along the first.
fn sums<B: Builder>(b: &mut B, x: &B::V, axes: [Axis; 2], greatest: bool, keep: bool) -> Result<B::V> {
    let size = b.abs(x.clone())?;
    let sums = b.sum(size, axes[0], true)?;
    let norm = extreme(b, &sums, axes[1], true, greatest)?;
    if keep { Ok(norm) } else { b.squeeze(norm, Axes::List(axes.map(Into::into).into())) }
}

enum Singular {
    Greatest,
    Least,
    Sum,
}

/// The maximum, minimum or sum of the singular values of matrices in two axes.
fn singular<B: Builder>(
    b: &mut B,
    x: &B::V,
    [rows, columns]: [Axis; 2],
    keep: bool,
    what: Singular,
) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let rank = shape.rank();
    let mut order: Vec<Axis> = (0..rank).map(Axis).filter(|&axis| axis != rows && axis != columns).collect();
    order.extend([rows, columns]);
    let moved = b.transpose(x.clone(), Axes::List(order.into_iter().map(Into::into).collect()))?;
    let s = b.svdvals(moved)?;
    let last = Axis(rank - 2);
    let norm = match what {
        Singular::Greatest => extreme(b, &s, last, false, true)?,
        Singular::Least => extreme(b, &s, last, false, false)?,
        Singular::Sum => b.sum(s, last, false)?,
    };
    let mut along = [rows, columns];
    along.sort_unstable();
    b.reshape_to(norm, shape.reduced(&along, keep))
}
