//! Matrices of the crate `nalgebra`. They are stored by columns and tensors by rows, so a matrix is copied.

use defn_core::{Error, ErrorKind, Location, Result, Shape};
use nalgebra::{DMatrix, DVector, SMatrix, Scalar};

use super::{sizes, transposed};
use crate::nested::from_owned;
use crate::{Element, Tensor, host};

const OP: &str = "nalgebra";

/// Conversions from a type, by value and by reference.
macro_rules! from_matrix {
    ($([$($const:tt)*] $ty:ty, $(#[$doc:meta])* |$value:ident| $owned:expr, |$borrowed:ident| $copied:expr;)*) => {$(
        $(#[$doc])*
        impl<T: Element + Scalar, $($const)*> TryFrom<$ty> for Tensor {
            type Error = Error;

            #[track_caller]
            fn try_from($value: $ty) -> Result<Tensor> {
                let location = Location::caller();
                $owned.map_err(|error| error.at(Some(location)))
            }
        }

        /// The elements are copied.
        impl<T: Element + Scalar, $($const)*> TryFrom<&$ty> for Tensor {
            type Error = Error;

            #[track_caller]
            fn try_from($borrowed: &$ty) -> Result<Tensor> {
                let location = Location::caller();
                $copied.map_err(|error| error.at(Some(location)))
            }
        }
    )*};
}
from_matrix! {
    [] DMatrix<T>,
    /// The shape is `[rows][columns]`. The elements are copied, as a matrix is stored by columns.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::DMatrix;
    ///
    /// let matrix = DMatrix::from_row_slice(2, 3, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// let x = Tensor::try_from(matrix)?;
    /// assert_eq!(x.ty().to_string(), "f32[2][3]");
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(DMatrix::<f32>::try_from(&x)?[(1, 2)], 6.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    |matrix| of_columns(matrix.as_slice(), matrix.nrows(), matrix.ncols()),
    |matrix| of_columns(matrix.as_slice(), matrix.nrows(), matrix.ncols());

    [] DVector<T>,
    /// The shape is `[length]`. The vector becomes the memory of a tensor on the CPU, without a copy.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::DVector;
    ///
    /// let vector = DVector::from_vec(vec![1f64, 2.0, 3.0]);
    /// let address = vector.as_ptr();
    /// let x = Tensor::try_from(vector)?;
    /// assert_eq!(x.ty().to_string(), "f64[3]");
    /// assert_eq!(x.host_slice::<f64>()?.as_ptr(), address);
    /// # Ok::<(), defn::Error>(())
    /// ```
    |vector| of_vector(Vec::from(vector.data)),
    |vector| host::copied(OP, vector.as_slice()).and_then(of_vector);

    [const R: usize, const C: usize] SMatrix<T, R, C>,
    /// The shape is `[rows][columns]`, or `[rows]` of one column, such as a vector. The elements are copied, as a
    /// matrix is stored by columns.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::{Matrix2, Vector2};
    ///
    /// assert_eq!(Tensor::try_from(Matrix2::new(1u8, 2, 3, 4))?.to_vec::<u8>()?, [1, 2, 3, 4]);
    /// assert_eq!(Tensor::try_from(Vector2::new(1f32, 2.0))?.ty().to_string(), "f32[2]");
    /// # Ok::<(), defn::Error>(())
    /// ```
    |matrix| of_static(&matrix),
    |matrix| of_static(matrix);
}

/// Conversions to a type, by a function of a tensor.
macro_rules! to_matrix {
    ($([$($const:tt)*] $ty:ty, $(#[$doc:meta])* $fun:ident;)*) => {$(
        $(#[$doc])*
        impl<T: Element + Scalar, $($const)*> TryFrom<&Tensor> for $ty {
            type Error = Error;

            #[track_caller]
            fn try_from(tensor: &Tensor) -> Result<$ty> {
                let location = Location::caller();
                $fun(tensor).map_err(|error| error.at(Some(location)))
            }
        }

        from_owned! { [T: Element + Scalar, $($const)*] $ty; }
    )*};
}
to_matrix! {
    [] DMatrix<T>,
    /// A tensor of two axes. The elements are copied, by columns.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::DMatrix;
    ///
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(DMatrix::<f32>::try_from(&x)?, DMatrix::from_row_slice(2, 2, &[1f32, 2.0, 3.0, 4.0]));
    /// let error = DMatrix::<f32>::try_from(&x.sum(0, false)?).unwrap_err();
    /// assert!(error.to_string().starts_with("nalgebra: the operand is f32[2], "));
    /// # Ok::<(), defn::Error>(())
    /// ```
    to_dynamic;

    [] DVector<T>,
    /// A tensor of one axis. The elements are copied.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::DVector;
    ///
    /// let x = Tensor::from_vec(vec![1i64, 2], &[2])?;
    /// assert_eq!(DVector::<i64>::try_from(&x)?, DVector::from_vec(vec![1i64, 2]));
    /// # Ok::<(), defn::Error>(())
    /// ```
    to_vector;

    [const R: usize, const C: usize] SMatrix<T, R, C>,
    /// A tensor of shape `[R][C]`, or `[R]` for a vector. The elements are copied, by columns.
    ///
    /// ```
    /// use defn::Tensor;
    /// use nalgebra::{Matrix2, Vector2};
    ///
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(Matrix2::<f32>::try_from(&x)?, Matrix2::new(1f32, 2.0, 3.0, 4.0));
    /// assert_eq!(Vector2::<f32>::try_from(&x.sum(0, false)?)?, Vector2::new(4f32, 6.0));
    /// # Ok::<(), defn::Error>(())
    /// ```
    to_static;
}

fn of_columns<T: Element>(elements: &[T], rows: usize, columns: usize) -> Result<Tensor> {
    host::from_vec(OP, transposed(OP, elements, columns, rows)?, Shape::new(&[rows, columns]))
}

fn of_vector<T: Element>(elements: Vec<T>) -> Result<Tensor> {
    let shape = Shape::new(&[elements.len()]);
    host::from_vec(OP, elements, shape)
}

/// The shape of a matrix whose sizes are part of its type: a single column is a vector.
fn static_shape<const R: usize, const C: usize>() -> Shape {
    if C == 1 { Shape::new(&[R]) } else { Shape::new(&[R, C]) }
}

fn of_static<T: Element + Scalar, const R: usize, const C: usize>(
    matrix: &SMatrix<T, R, C>,
) -> Result<Tensor> {
    host::from_vec(OP, transposed(OP, matrix.as_slice(), C, R)?, static_shape::<R, C>())
}

fn to_dynamic<T: Element + Scalar>(tensor: &Tensor) -> Result<DMatrix<T>> {
    let required = "a matrix must have two axes; reshape it";
    let [rows, columns] = sizes(OP, tensor, required)?;
    let elements = tensor.read_slice(OP)?;
    Ok(DMatrix::from_vec(rows, columns, transposed(OP, &elements, rows, columns)?))
}

fn to_vector<T: Element + Scalar>(tensor: &Tensor) -> Result<DVector<T>> {
    let [_] = sizes(OP, tensor, "a vector must have one axis; reshape it, or take a DMatrix")?;
    tensor.read_vec(OP).map(DVector::from_vec)
}

fn to_static<T: Element + Scalar, const R: usize, const C: usize>(
    tensor: &Tensor,
) -> Result<SMatrix<T, R, C>> {
    let whole = tensor.core().whole();
    let is_vector = C == 1 && whole.shape.sizes() == [R];
    if !is_vector && whole.shape.sizes() != [R, C] {
        let required = format!("{} as the matrix; reshape it, or take a DMatrix", static_shape::<R, C>());
        return Err(ErrorKind::OptionValue {
            op: OP,
            option: "the shape",
            given: whole.to_string(),
            required,
        }
        .into());
    }
    Ok(SMatrix::from_vec(transposed(OP, &tensor.read_slice(OP)?, R, C)?))
}
