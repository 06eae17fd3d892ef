//! Arrays of the crate `ndarray`. A tensor has their shape, without names.

use defn_core::{Error, ErrorKind, Location, Result, Shape, TensorType, memory};
use ndarray::{Array, ArrayBase, ArrayViewD, Data, Dimension, IxDyn};

use crate::nested::from_owned;
use crate::{Element, HostSlice, Tensor, host};

const OP: &str = "ndarray";

impl<T: Element> HostSlice<T> {
    /// The elements as an array of the crate `ndarray`, without a copy. It needs the feature `ndarray`.
    ///
    /// - Shape: that of [`HostSlice::shape`].
    ///
    /// ```
    /// use defn::Tensor;
    ///
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let elements = x.host_slice::<f32>()?;
    /// assert_eq!(elements.view()?[[1, 0]], 3.0);
    /// assert_eq!(elements.view()?.t()[[0, 1]], 3.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that ndarray does not take: no elements, and a product of the other sizes beyond `isize` (`Option`).
    #[track_caller]
    pub fn view(&self) -> Result<ArrayViewD<'_, T>> {
        let location = Location::caller();
        let view = ArrayViewD::from_shape(IxDyn(self.shape().sizes()), self.as_slice());
        view.map_err(|_| no_shape(self.shape()).at(Some(location)))
    }
}

/// An owned array in row-major order becomes the memory of a tensor on the CPU, without a copy; a part of such an array
/// keeps all of it alive. Views, and arrays in another order, are copied.
///
/// ```
/// use defn::Tensor;
/// use ndarray::{Array2, arr2, s};
///
/// let array = Array2::from_shape_vec((2, 3), vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
/// let address = array.as_ptr();
/// let x = Tensor::try_from(array)?;
/// assert_eq!(x.ty().to_string(), "f32[2][3]");
/// assert_eq!(x.host_slice::<f32>()?.as_ptr(), address);
///
/// let columns = Tensor::try_from(arr2(&[[1u8, 2], [3, 4]]).slice(s![.., 1..]))?;
/// assert_eq!(columns.to_vec::<u8>()?, [2, 4]);
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<ArrayBase<S, D>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(array: ArrayBase<S, D>) -> Result<Tensor> {
        let location = Location::caller();
        moved(array).map_err(|error| error.at(Some(location)))
    }
}

/// The array is copied.
///
/// ```
/// use defn::Tensor;
///
/// let array = ndarray::arr1(&[1i64, 2, 3]);
/// assert_eq!(Tensor::try_from(&array)?.to_vec::<i64>()?, array.to_vec());
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(array: &ArrayBase<S, D>) -> Result<Tensor> {
        let location = Location::caller();
        moved(array.view()).map_err(|error| error.at(Some(location)))
    }
}

/// The elements are copied into an array in row-major order, of as many dimensions as the tensor has axes, or of any
/// number for `ArrayD`. [`HostSlice::view`] borrows them.
///
/// ```
/// use defn::Tensor;
/// use ndarray::{Array1, Array2, ArrayD, arr2};
///
/// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(Array2::<f32>::try_from(&x)?, arr2(&[[1f32, 2.0], [3.0, 4.0]]));
/// assert_eq!(ArrayD::<f32>::try_from(&x)?.shape(), [2, 2]);
/// let error = Array1::<f32>::try_from(&x).unwrap_err();
/// assert!(error.to_string().starts_with("ndarray: the operand is f32[2][2], "));
/// # Ok::<(), defn::Error>(())
/// ```
impl<T: Element, D: Dimension> TryFrom<&Tensor> for Array<T, D> {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<Array<T, D>> {
        let location = Location::caller();
        copied(tensor).map_err(|error| error.at(Some(location)))
    }
}

from_owned! { [T: Element, D: Dimension] Array<T, D>; }

fn moved<T: Element, S: Data<Elem = T>, D: Dimension>(array: ArrayBase<S, D>) -> Result<Tensor> {
    let shape = Shape::new(array.shape());
    if !array.is_standard_layout() {
        let mut elements = memory::with_capacity(OP, array.len())?;
        elements.extend(array.iter().copied());
        return host::from_vec(OP, elements, shape);
    }
    match array.into_owned().into_raw_vec_and_offset() {
        (elements, Some(start)) => host::from_part(elements, start, shape),
        (_, None) => host::from_vec::<T>(OP, Vec::new(), shape),
    }
}

fn copied<T: Element, D: Dimension>(tensor: &Tensor) -> Result<Array<T, D>> {
    let whole = tensor.core().whole();
    let elements = tensor.read_vec(OP)?;
    let array =
        Array::from_shape_vec(IxDyn(whole.shape.sizes()), elements).map_err(|_| no_shape(&whole.shape))?;
    array.into_dimensionality().map_err(|_| {
        let required = "the array must have as many dimensions as it has axes; use ArrayD, or reshape it";
        ErrorKind::Rank { op: OP, got: TensorType::clone(whole), required }.into()
    })
}

#[cold]
fn no_shape(shape: &Shape) -> Error {
    let required = "one whose sizes other than 0 have a product within isize".to_owned();
    ErrorKind::OptionValue { op: OP, option: "the shape", given: shape.to_string(), required }.into()
}
