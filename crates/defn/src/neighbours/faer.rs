//! Matrices of the crate `faer`. They are stored by columns, with space between them, so the elements are copied.

use defn_core::{Error, Location, Result, Shape, memory};
use faer::{Col, ColRef, Mat, MatRef};

use super::{sizes, transposed};
use crate::nested::from_owned;
use crate::{Element, Tensor, host};

const OP: &str = "faer";

/// The shape is `[rows][columns]`. The elements are copied.
///
/// ```
/// use defn::Tensor;
/// use faer::mat;
///
/// let x = Tensor::try_from(mat![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]].as_ref())?;
/// assert_eq!(x.ty().to_string(), "f32[2][3]");
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element> TryFrom<MatRef<'_, T>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(matrix: MatRef<'_, T>) -> Result<Tensor> {
        let location = Location::caller();
        of_matrix(matrix).map_err(|error| error.at(Some(location)))
    }
}

/// As of a `MatRef`.
impl<T: Element> TryFrom<&Mat<T>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(matrix: &Mat<T>) -> Result<Tensor> {
        let location = Location::caller();
        of_matrix(matrix.as_ref()).map_err(|error| error.at(Some(location)))
    }
}

/// The shape is `[rows]`. The elements are copied.
///
/// ```
/// use defn::Tensor;
/// use faer::col;
///
/// assert_eq!(Tensor::try_from(col![1f64, 2.0].as_ref())?.ty().to_string(), "f64[2]");
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element> TryFrom<ColRef<'_, T>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(column: ColRef<'_, T>) -> Result<Tensor> {
        let location = Location::caller();
        of_column(column).map_err(|error| error.at(Some(location)))
    }
}

/// As of a `ColRef`.
impl<T: Element> TryFrom<&Col<T>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(column: &Col<T>) -> Result<Tensor> {
        let location = Location::caller();
        of_column(column.as_ref()).map_err(|error| error.at(Some(location)))
    }
}

/// A tensor of two axes. The elements are copied, by columns.
///
/// ```
/// use defn::Tensor;
/// use faer::{Mat, mat};
///
/// let x = Tensor::from_vec(vec![1f64, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(Mat::<f64>::try_from(&x)?, mat![[1f64, 2.0], [3.0, 4.0]]);
/// let error = Mat::<f64>::try_from(&x.sum(0, false)?).unwrap_err();
/// assert!(error.to_string().starts_with("faer: the operand is f64[2], "));
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element> TryFrom<&Tensor> for Mat<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<Mat<T>> {
        let location = Location::caller();
        to_matrix(tensor).map_err(|error| error.at(Some(location)))
    }
}

/// A tensor of one axis. The elements are copied.
///
/// ```
/// use defn::Tensor;
/// use faer::{Col, col};
///
/// let x = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
/// assert_eq!(Col::<f32>::try_from(&x)?, col![1f32, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element> TryFrom<&Tensor> for Col<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<Col<T>> {
        let location = Location::caller();
        to_column(tensor).map_err(|error| error.at(Some(location)))
    }
}

from_owned! { [T: Element] Mat<T>; [T: Element] Col<T>; }

fn of_matrix<T: Element>(matrix: MatRef<'_, T>) -> Result<Tensor> {
    let (rows, columns) = matrix.shape();
    let mut elements = memory::with_capacity(OP, rows.saturating_mul(columns))?;
    for column in matrix.col_iter() {
        elements.extend(column.iter().copied());
    }
    host::from_vec(OP, transposed(OP, &elements, columns, rows)?, Shape::new(&[rows, columns]))
}

fn of_column<T: Element>(column: ColRef<'_, T>) -> Result<Tensor> {
    let mut elements = memory::with_capacity(OP, column.nrows())?;
    elements.extend(column.iter().copied());
    host::from_vec(OP, elements, Shape::new(&[column.nrows()]))
}

#[expect(clippy::indexing_slicing, reason = "the positions of a matrix of these sizes")]
fn to_matrix<T: Element>(tensor: &Tensor) -> Result<Mat<T>> {
    let [rows, columns] = sizes(OP, tensor, "a matrix must have two axes; reshape it")?;
    let elements = tensor.read_slice::<T>(OP)?;
    let elements = elements.as_slice();
    Ok(Mat::from_fn(rows, columns, |row, column| elements[row * columns + column]))
}

#[expect(clippy::indexing_slicing, reason = "the positions of a column of this size")]
fn to_column<T: Element>(tensor: &Tensor) -> Result<Col<T>> {
    let [rows] = sizes(OP, tensor, "a column must have one axis; reshape it, or take a Mat")?;
    let elements = tensor.read_slice::<T>(OP)?;
    let elements = elements.as_slice();
    Ok(Col::from_fn(rows, |row| elements[row]))
}
