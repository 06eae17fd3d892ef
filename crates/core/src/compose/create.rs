//! Triangles, ranges and diagonals.

use super::working_dtype;
use crate::builder::{Arg, BuildCreate, BuildElementwise, BuildIndex, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef, Name, Shape, TensorType};

/// See [`BuildCreate::fill`].
///
/// # Errors
/// As the method.
pub fn fill<B: Builder>(b: &mut B, x: Arg<B::V>, value: Arg<B::V>, dtype: Option<DType>) -> Result<B::V> {
    if let Arg::Value(value) = &value {
        let got = b.ty(value);
        if got.shape.rank() != 0 {
            return Err(ErrorKind::NotScalar { op: "fill", what: "the value", got }.into());
        }
    }
    let (x, value) = match (dtype, value) {
        (Some(dtype), Arg::Number(number)) => (b.operand(x)?, b.constant(dtype, number)?),
        (Some(dtype), Arg::Value(value)) => (b.operand(x)?, b.as_type(value, dtype)?),
        (None, value) => {
            let (x, value) = b.weak_pair("fill", x, value)?;
            let merged = b.ty(&x).dtype.merge(b.ty(&value).dtype);
            let value = b.as_type(value, merged)?;
            (x, value)
        }
    };
    let shape = b.ty(&x).shape;
    let filled = b.broadcast(value, shape, Axes::All)?;
    b.vectorized_like(filled, &x)
}

/// The element type of a shape's indices.
fn index_dtype(shape: &Shape) -> DType {
    let small = shape.sizes().iter().all(|&size| i32::try_from(size).is_ok_and(|size| size < i32::MAX / 2));
    if small { DType::S32 } else { DType::S64 }
}

/// The row and column indices of the last two axes, shifted so that they are equal on diagonal `k`. One is a column
/// and the other is a row; both broadcast to the shape.
fn row_and_column<B: Builder>(b: &mut B, shape: &Shape, k: i64) -> Result<(B::V, B::V)> {
    let dtype = index_dtype(shape);
    let [rows, columns] = [shape.rank() - 2, shape.rank() - 1];
    // Diagonals outside the matrix are equivalent to the nearest one outside.
    let k = k.clamp(-(shape.sizes()[rows] as i64), shape.sizes()[columns] as i64);
    let (mut down, mut across) = (shape.clone(), shape.clone());
    (down[crate::Axis(columns)], across[crate::Axis(rows)]) = (1, 1);
    let row = b.iota(down, dtype, Some(AxisRef::Index(rows as i64)))?;
    let column = b.iota(across, dtype, Some(AxisRef::Index(columns as i64)))?;
    let column = if k == 0 { column } else { b.subtract(column, k)? };
    Ok((row, column))
}

/// See [`BuildCreate::tri`].
///
/// # Errors
/// As the method.
pub fn tri<B: Builder>(b: &mut B, rows: usize, columns: usize, k: i64) -> Result<B::V> {
    let (row, column) = row_and_column(b, &Shape::new(&[rows, columns]), k)?;
    b.greater_equal(row, column)
}

/// See [`BuildCreate::tril`].
///
/// # Errors
/// As the method.
pub fn tril<B: Builder>(b: &mut B, x: &B::V, k: i64) -> Result<B::V> {
    let shape = matrix("tril", b.ty(x))?.shape;
    let (row, column) = row_and_column(b, &shape, k)?;
    let keep = b.greater_equal(row, column)?;
    b.select(keep, x, false)
}

/// See [`BuildCreate::triu`].
///
/// # Errors
/// As the method.
pub fn triu<B: Builder>(b: &mut B, x: &B::V, k: i64) -> Result<B::V> {
    let shape = matrix("triu", b.ty(x))?.shape;
    let (row, column) = row_and_column(b, &shape, k)?;
    let keep = b.less_equal(row, column)?;
    b.select(keep, x, false)
}

/// The type, if it has at least two axes.
fn matrix(op: &'static str, ty: TensorType) -> Result<TensorType> {
    if ty.shape.rank() >= 2 {
        return Ok(ty);
    }
    Err(ErrorKind::Rank { op, got: ty, required: "at least two axes are required" }.into())
}

/// See [`BuildCreate::linspace`].
///
/// # Errors
/// As the method.
pub fn linspace<B: Builder>(
    b: &mut B,
    start: Arg<B::V>,
    stop: Arg<B::V>,
    count: i64,
    name: Option<Name>,
    dtype: DType,
    endpoint: bool,
) -> Result<B::V> {
    let size = match usize::try_from(count) {
        Ok(size) if size >= 1 => size,
        _ => {
            let (option, given) = ("n", count.to_string());
            let required = "an integer of at least 1".to_owned();
            return Err(ErrorKind::OptionValue { op: "linspace", option, given, required }.into());
        }
    };
    let operands = [start.clone(), stop.clone()];
    let mut working = working_dtype(dtype);
    for end in &operands {
        match end {
            Arg::Value(value) => working = working.merge(b.ty(value).dtype),
            Arg::Number(Number::Complex(_)) => working = working.to_complex(),
            Arg::Number(Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_)) => {}
        }
    }
    let (start, stop) = (bound(b, start, working)?, bound(b, stop, working)?);
    let (left, right) = (b.ty(&start), b.ty(&stop));
    if left.shape.sizes() != right.shape.sizes() {
        return Err(ErrorKind::ShapesDiffer { op: "linspace", left, right }.into());
    }
    let ends = left.shape.broadcast_with("linspace", &right.shape)?;
    let rank = ends.rank();
    let shape = Shape::from_axes(ends.entries().chain([(size, name)]));
    let [start, stop] = [start, stop].map(|end| b.new_axis(end, -1, None));
    let (start, stop) = (start?, stop?);
    if size == 1 {
        let start = b.as_type(start, dtype)?;
        let only = b.vectorized_like(start, &stop)?;
        let only = b.reshape_to(only, shape)?;
        return b.order_vectorized_axes(only, &[&operands[0], &operands[1]]);
    }
    let divisor = if endpoint { size - 1 } else { size };
    let span = b.subtract(&stop, &start)?;
    let step = b.divide(span, Number::from(divisor))?;
    let steps = b.iota(shape.clone(), working, Some(AxisRef::Index(rank as i64)))?;
    let offsets = b.multiply(&steps, step)?;
    let mut values = b.add(offsets, start)?;
    if endpoint {
        let index = b.iota(shape.clone(), index_dtype(&shape), Some(AxisRef::Index(rank as i64)))?;
        let before_last = b.less(index, Number::from(size - 1))?;
        values = b.select(before_last, values, stop)?;
    }
    let values = b.as_type(values, dtype)?;
    b.order_vectorized_axes(values, &[&operands[0], &operands[1]])
}

/// An end of a range, in the dtype of the computation.
fn bound<B: Builder>(b: &mut B, end: Arg<B::V>, dtype: DType) -> Result<B::V> {
    match end {
        Arg::Value(value) => b.as_type(value, dtype),
        Arg::Number(number) => b.constant(dtype, number),
    }
}

/// See [`BuildCreate::eye_with_offset`].
///
/// # Errors
/// As the method.
pub fn eye_with_offset<B: Builder>(b: &mut B, shape: Shape, dtype: DType, offset: i64) -> Result<B::V> {
    let main = b.eye(shape.clone(), dtype)?;
    if offset == 0 {
        return Ok(main);
    }
    let (rows, columns) = (AxisRef::Index(-2), AxisRef::Index(-1));
    let rows = b.iota(shape.clone(), DType::S64, Some(rows))?;
    let columns = b.iota(shape, DType::S64, Some(columns))?;
    let distance = b.subtract(columns, rows)?;
    let on = b.equal(distance, offset)?;
    b.as_type(on, dtype)
}

/// The position of a diagonal in a matrix.
struct Diagonal {
    row: usize,
    column: usize,
    length: usize,
}

impl Diagonal {
    /// Finds a diagonal of the last two axes.
    fn find(op: &'static str, ty: &TensorType, offset: i64) -> Result<Diagonal> {
        let [.., rows, columns] = ty.shape.sizes() else {
            unreachable!("the caller has checked the rank");
        };
        let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let (row, column) = if offset < 0 { (distance, 0) } else { (0, distance) };
        // Every matrix has a main diagonal, even if it is empty.
        if offset != 0 && (if offset < 0 { row >= *rows } else { column >= *columns }) {
            let (option, given) = ("offset", offset.to_string());
            let required = format!("the number of a diagonal of {ty}");
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        Ok(Diagonal { row, column, length: (rows - row).min(columns - column) })
    }

    /// A matrix of zeros with the vector `x` on this diagonal.
    fn to_matrix<B: Builder>(&self, b: &mut B, x: &B::V, rows: usize, columns: usize) -> Result<B::V> {
        let dtype = b.ty(x).dtype;
        // The type checks that the element count fits before it is computed here.
        let ty = TensorType::new(dtype, Shape::new(&[rows, columns]))?;
        if self.length == 0 {
            return b.full(ty.shape, dtype, 0);
        }
        // In row-major order neighbours on a diagonal are one row and one column apart.
        let first = self.row * columns + self.column;
        let last = first + (self.length - 1) * (columns + 1);
        let after = rows * columns - 1 - last;
        let zero = b.constant(dtype, 0)?;
        let flat = b.pad(x, zero, &[(first as i64, after as i64, columns as i64)])?;
        b.reshape_to(flat, ty.shape)
    }
}

/// See [`BuildCreate::make_diagonal`].
///
/// # Errors
/// As the method.
pub fn make_diagonal<B: Builder>(b: &mut B, x: &B::V, offset: i64) -> Result<B::V> {
    let ty = b.ty(x);
    let &[length] = ty.shape.sizes() else {
        let required = "a vector is required";
        return Err(ErrorKind::Rank { op: "make_diagonal", got: ty, required }.into());
    };
    let x = b.as_type(x, ty.dtype.merge(DType::S32))?;
    let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let side = length.saturating_add(distance);
    let (row, column) = if offset < 0 { (distance, 0) } else { (0, distance) };
    Diagonal { row, column, length }.to_matrix(b, &x, side, side)
}

/// See [`BuildCreate::take_diagonal`].
///
/// # Errors
/// As the method.
pub fn take_diagonal<B: Builder>(b: &mut B, x: &B::V, offset: i64) -> Result<B::V> {
    diagonal(b, "take_diagonal", x, offset)
}

/// A diagonal of the last two axes; `op` is for messages.
pub(super) fn diagonal<B: Builder>(b: &mut B, op: &'static str, x: &B::V, offset: i64) -> Result<B::V> {
    let ty = matrix(op, b.ty(x))?;
    let &[ref outer @ .., rows, columns] = ty.shape.sizes() else {
        unreachable!("{ty} is a matrix or several")
    };
    // A diagonal outside the matrix is empty.
    let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let (row, column) = if offset < 0 { (distance, 0) } else { (0, distance) };
    let length = rows.saturating_sub(row).min(columns.saturating_sub(column));
    let flat: Vec<usize> = outer.iter().copied().chain([rows * columns]).collect();
    let flat = b.reshape_to(x, Shape::new(&flat))?;
    // In row-major order, every (columns + 1)-th element is on the diagonal.
    let step = columns + 1;
    let (first, reach) = if length == 0 { (0, 0) } else { (row * columns + column, (length - 1) * step + 1) };
    b.slice_along_axis(flat, first as i64, reach as i64, -1, step as i64)
}

/// See [`BuildCreate::put_diagonal`].
///
/// # Errors
/// As the method.
pub fn put_diagonal<B: Builder>(b: &mut B, x: &B::V, diagonal: &B::V, offset: i64) -> Result<B::V> {
    let (ty, got) = (b.ty(x), b.ty(diagonal));
    let &[_, columns] = ty.shape.sizes() else {
        let required = "a matrix is required";
        return Err(ErrorKind::Rank { op: "put_diagonal", got: ty, required }.into());
    };
    let target = Diagonal::find("put_diagonal", &ty, offset)?;
    if got.shape.sizes() != [target.length] {
        let expected = target.length;
        return Err(ErrorKind::DiagonalLength { got, matrix: ty, offset, expected }.into());
    }
    // In row-major order, every (columns + 1)-th element is on the diagonal.
    let flat = Shape::new(&[ty.size()]);
    // The step between elements of the diagonal may exceed the matrix size.
    let dtype = if i32::try_from(ty.size() + 1).is_ok() { DType::S32 } else { DType::S64 };
    let mut indices = b.iota(Shape::new(&[target.length, 1]), dtype, Some(AxisRef::Index(0)))?;
    indices = b.multiply(indices, Number::from(columns + 1))?;
    if (target.row, target.column) != (0, 0) {
        indices = b.add(indices, Number::from(target.row * columns + target.column))?;
    }
    let flat = b.reshape_to(x, flat)?;
    let diagonal = b.reshape_to(diagonal, got.shape.without_names())?;
    let put = b.indexed_put(flat, indices, diagonal, Axes::All)?;
    b.reshape_to(put, ty.shape)
}
