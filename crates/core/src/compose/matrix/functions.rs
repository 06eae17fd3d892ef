//! Functions of square matrices: the exponential, the square root and the logarithm.

use super::batch::{
    Batch, adjoint, axis_indices, broadcast_select, constant_like, is_all_finite, loop_while, magnitude,
    nan_unless, product, repeat, slice_range,
};
use crate::builder::{BuildCreate, BuildElementwise, BuildMatrix, BuildReduce, BuildShape, Builder, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::Transform;
use crate::shape::{Axes, Shape};

/// The coefficients of the Padé approximant of degree 13 to the exponential (N. J. Higham, "The scaling and squaring
/// method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26, 2005).
const PADE: [f64; 14] = [
    64_764_752_532_480_000.0,
    32_382_376_266_240_000.0,
    7_771_770_303_897_600.0,
    1_187_353_796_428_800.0,
    129_060_195_264_000.0,
    10_559_470_521_600.0,
    670_442_572_800.0,
    33_522_128_640.0,
    1_323_241_920.0,
    40_840_800.0,
    960_960.0,
    16_380.0,
    182.0,
    1.0,
];

/// The norm up to which the approximant is exact to the rounding of f64, from the same paper.
const PADE_NORM: f64 = 5.371920351148152;

/// Most square roots that the logarithm takes. Each halves the exponents of the eigenvalues.
const MAX_ROOTS: i64 = 100;

/// The norm of `x` up to which the approximant to `log(1 + x)` of degree 7 is exact to the rounding of f64 (N. J. Higham,
/// "Functions of Matrices", 2008, table 11.1).
const LOG_NORM: f64 = 0.264;

/// The nodes and weights of Gauss and Legendre on [-1, 1], of which [`logm`] makes partial fractions.
const NODES: [(f64, f64); 7] = [
    (0.0, 0.417_959_183_673_469_4),
    (0.405_845_151_377_397_2, 0.381_830_050_505_118_9),
    (-0.405_845_151_377_397_2, 0.381_830_050_505_118_9),
    (0.741_531_185_599_394_4, 0.279_705_391_489_276_7),
    (-0.741_531_185_599_394_4, 0.279_705_391_489_276_7),
    (0.949_107_912_342_758_5, 0.129_484_966_168_869_7),
    (-0.949_107_912_342_758_5, 0.129_484_966_168_869_7),
];

/// The matrices with zeros in place of those that have a NaN or an infinity, and which have none.
fn finite<B: Builder>(b: &mut B, x: &B::V) -> Result<(B::V, B::V)> {
    let shape = b.ty(x).shape;
    let good = is_all_finite(b, x)?;
    let zero = constant_like(b, x, 0.0)?;
    Ok((broadcast_select(b, &good, x, &zero, &shape)?, good))
}

/// The greatest sum of magnitudes of a column, of sizes (count, 1, 1).
fn column_norm<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let sizes = b.abs(x.clone())?;
    let sums = b.sum(sizes, [1], true)?;
    b.reduce_max(sums, [2], true)
}

/// See [`BuildMatrix::expm`]: the exponential by scaling and squaring (Higham 2005).
///
/// # Errors
/// As the method.
pub fn expm<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let batch = Batch::new(b, x)?;
    if batch.rows == 0 || batch.count == 0 {
        return batch.restore_leading_axes(b, &batch.value, batch.dtype);
    }
    let (matrix, good) = finite(b, &batch.value)?;
    let shape = b.ty(&matrix).shape;
    let norm = column_norm(b, &matrix)?;
    let quotient = b.divide(norm, PADE_NORM)?;
    let quotient = b.max(quotient, 1.0)?;
    // Of a norm that overflows, the greatest number that the dtype has is close enough.
    let greatest = if batch.working.to_real() == DType::F64 { 1023.0 } else { 127.0 };
    let squarings = b.log2(quotient)?;
    let squarings = b.ceil(squarings)?;
    let squarings = b.min(squarings, greatest)?;
    let opposite = b.negate(squarings.clone())?;
    let scale = b.pow(2.0, opposite)?;
    let scale = b.as_type(scale, batch.working.to_real())?;
    let x = b.multiply(matrix, scale)?;
    let approximant = exponential_of_small(b, &x)?;
    let squarings = b.as_type(squarings, DType::S32)?;
    let start = b.constant(DType::S32, 0)?;
    let state = loop_while(
        b,
        None,
        &[start, approximant],
        &[squarings],
        |graph, state, captures| {
            let most = graph.reduce_max(captures[0], Axes::All, false)?;
            graph.less(state[0], most)
        },
        |graph, state, captures| {
            let open = graph.less(state[0], captures[0])?;
            let squared = product(graph, &state[1], &state[1])?;
            let result = broadcast_select(graph, &open, &squared, &state[1], &shape)?;
            Ok(vec![graph.add(state[0], 1)?, result])
        },
    )?;
    let result = nan_unless(b, &good, &state[1])?;
    batch.restore_leading_axes(b, &result, batch.dtype)
}

/// The approximant to the exponential of matrices of small norm.
fn exponential_of_small<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    let eye = b.eye(ty.shape.clone(), ty.dtype)?;
    let second = product(b, x, x)?;
    let fourth = product(b, &second, &second)?;
    let sixth = product(b, &second, &fourth)?;
    let powers = [eye, second, fourth, sixth.clone()];
    let polynomial = |b: &mut B, coefficients: &[f64], from: usize| -> Result<B::V> {
        let mut total: Option<B::V> = None;
        for (power, &coefficient) in powers[from..].iter().zip(coefficients) {
            let term = b.multiply(power, coefficient)?;
            total = Some(match total {
                Some(total) => b.add(total, term)?,
                None => term,
            });
        }
        Ok(total.expect("a polynomial has terms"))
    };
    let high = polynomial(b, &[PADE[9], PADE[11], PADE[13]], 1)?;
    let high = product(b, &sixth, &high)?;
    let low = polynomial(b, &[PADE[1], PADE[3], PADE[5], PADE[7]], 0)?;
    let odd = b.add(high, low)?;
    let odd = product(b, x, &odd)?;
    let high = polynomial(b, &[PADE[8], PADE[10], PADE[12]], 1)?;
    let high = product(b, &sixth, &high)?;
    let low = polynomial(b, &[PADE[0], PADE[2], PADE[4], PADE[6]], 0)?;
    let even = b.add(high, low)?;
    let (above, below) = (b.add(even.clone(), odd.clone())?, b.subtract(even, odd)?);
    b.solve(below, above)
}

/// The square root of upper triangular matrices, column by column (Å. Björck & S. Hammarling, "A Schur method for the
/// square root of a matrix", Linear Algebra Appl. 52/53, 1983).
fn triangular_root<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    let n = ty.shape.sizes()[1];
    let zeros = b.zeros_like(x.clone())?;
    let state = repeat(b, n, &[zeros], std::slice::from_ref(x), |graph, j, state, captures| {
        root_column(graph, j, state[0], captures[0])
    })?;
    Ok(state[0].clone())
}

/// Column `j` of the root: above the diagonal it solves `(r + r_jj) y = x_j`.
fn root_column(graph: &mut Graph, j: Value, root: Value, x: Value) -> Result<Vec<Value>> {
    let ty = graph.ty(x).clone();
    let n = ty.shape.sizes()[1];
    let rows = axis_indices(graph, 1, n)?;
    let above = graph.less(rows, j)?;
    let column = slice_range(graph, &x, Start::Value(j), 1, 2)?;
    let tall = graph.ty(column).shape.clone();
    let pivot = slice_range(graph, &column, Start::Value(j), 1, 1)?;
    let pivot = graph.sqrt(pivot)?;
    let zero = constant_like(graph, &column, 0.0)?;
    let right = broadcast_select(graph, &above, &column, &zero, &tall)?;
    let one = constant_like(graph, &column, 1.0)?;
    let pivots = graph.broadcast(pivot, tall.clone(), Axes::All)?;
    let shift = broadcast_select(graph, &above, &pivots, &one, &tall)?;
    let shift = graph.broadcast(shift, ty.shape.clone(), Axes::All)?;
    let eye = graph.eye(ty.shape.clone(), DType::Bool)?;
    let shift = graph.select(eye, shift, zero)?;
    let system = graph.add(root, shift)?;
    // Two eigenvalues of 0 have a root only if nothing is between them. Then 0 over the smallest number is 0; any other
    // quotient is greater than those of eigenvalues that are not 0.
    let least =
        if ty.dtype.to_real() == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let bound = (1.0 / least).sqrt();
    let least = constant_like(graph, &system, least)?;
    let empty = graph.equal(system, 0)?;
    let empty = graph.logical_and(empty, eye)?;
    let system = graph.select(empty, least, system)?;
    let solution = graph.triangular_solve(system, right, false, true, Transform::None)?;
    let size = graph.abs(solution)?;
    let none = graph.greater(size, bound)?;
    let nan = constant_like(graph, &solution, f64::NAN)?;
    let solution = graph.select(none, nan, solution)?;
    let at = graph.equal(rows, j)?;
    let solution = broadcast_select(graph, &above, &solution, &zero, &tall)?;
    let column = broadcast_select(graph, &at, &pivots, &solution, &tall)?;
    Ok(vec![graph.put_slice(root, &[0.into(), 0.into(), Start::Value(j)], column)?])
}

/// See [`BuildMatrix::sqrtm`]: the square root of the triangular Schur factor (Björck & Hammarling 1983).
///
/// # Errors
/// As the method.
pub fn sqrtm<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_complex();
    let x = b.as_type(x.clone(), dtype)?;
    let batch = Batch::new(b, &x)?;
    if batch.rows == 0 || batch.count == 0 {
        return batch.restore_leading_axes(b, &batch.value, dtype);
    }
    let (matrix, good) = finite(b, &batch.value)?;
    let scale = magnitude(b, &matrix)?;
    let matrix = b.divide(matrix, scale.clone())?;
    let (triangle, unitary) = b.schur(matrix)?;
    let root = triangular_root(b, &triangle)?;
    let scale = b.sqrt(scale)?;
    let root = b.multiply(root, scale)?;
    let result = turned_back(b, &root, &unitary)?;
    let result = nan_unless(b, &good, &result)?;
    batch.restore_leading_axes(b, &result, dtype)
}

/// `z x adjoint(z)`.
fn turned_back<B: Builder>(b: &mut B, x: &B::V, unitary: &B::V) -> Result<B::V> {
    let left = product(b, unitary, x)?;
    let right = adjoint(b, unitary)?;
    product(b, &left, &right)
}

/// See [`BuildMatrix::logm`]: square roots of the triangular Schur factor until it is close to the identity, and an
/// approximant in partial fractions, by inverse scaling and squaring (C. S. Kenney & A. J. Laub, "Condition estimates for
/// matrix functions", SIAM J. Matrix Anal. Appl. 10, 1989; Higham 2008, 11.5). The diagonal is the logarithm of the
/// eigenvalues.
///
/// # Errors
/// As the method.
pub fn logm<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_complex();
    let x = b.as_type(x.clone(), dtype)?;
    let batch = Batch::new(b, &x)?;
    if batch.rows == 0 || batch.count == 0 {
        return batch.restore_leading_axes(b, &batch.value, dtype);
    }
    let (matrix, good) = finite(b, &batch.value)?;
    let (triangle, unitary) = b.schur(matrix)?;
    let shape = b.ty(&triangle).shape;
    let start = b.constant(DType::S32, 0)?;
    let roots = b.full(Shape::new(&[batch.count, 1, 1]), DType::S32, 0)?;
    let far = far_from_one(b, &triangle)?;
    let state = loop_while(
        b,
        None,
        &[start, triangle.clone(), roots, far],
        &[],
        |graph, state, _| {
            let open = graph.any(state[3], Axes::All, false)?;
            let more = graph.less(state[0], MAX_ROOTS)?;
            graph.logical_and(open, more)
        },
        |graph, state, _| {
            let root = triangular_root(graph, &state[1])?;
            let next = broadcast_select(graph, &state[3], &root, &state[1], &shape)?;
            let counted = graph.as_type(state[3], DType::S32)?;
            let roots = graph.add(state[2], counted)?;
            let far = far_from_one(graph, &next)?;
            Ok(vec![graph.add(state[0], 1)?, next, roots, far])
        },
    )?;
    let eye = b.eye(shape.clone(), batch.working)?;
    let x = b.subtract(state[1].clone(), eye.clone())?;
    let mut total: Option<B::V> = None;
    for (node, weight) in NODES {
        // On [0, 1].
        let (node, weight) = ((1.0 + node) / 2.0, weight / 2.0);
        let system = b.multiply(x.clone(), node)?;
        let system = b.add(system, eye.clone())?;
        let right = b.multiply(x.clone(), weight)?;
        let term = b.triangular_solve(system, right, false, true, Transform::None)?;
        total = Some(match total {
            Some(total) => b.add(total, term)?,
            None => term,
        });
    }
    let total = total.expect("there are nodes");
    let real = batch.working.to_real();
    let exponent = b.as_type(state[2].clone(), real)?;
    let scale = b.pow(2.0, exponent)?;
    let scale = b.as_type(scale, real)?;
    let logarithm = b.multiply(total, scale)?;
    let values = b.take_diagonal(triangle, 0)?;
    let values = b.log(values)?;
    let values = b.new_axis(values, 1, None)?;
    let diagonal = b.eye(shape.clone(), DType::Bool)?;
    let logarithm = broadcast_select(b, &diagonal, &values, &logarithm, &shape)?;
    let result = turned_back(b, &logarithm, &unitary)?;
    let result = nan_unless(b, &good, &result)?;
    batch.restore_leading_axes(b, &result, dtype)
}

/// Whether the approximant to the logarithm is not yet exact: bool of sizes (count, 1, 1).
fn far_from_one<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    let eye = b.eye(ty.shape.clone(), ty.dtype)?;
    let rest = b.subtract(x.clone(), eye)?;
    let norm = column_norm(b, &rest)?;
    b.greater(norm, LOG_NORM)
}
