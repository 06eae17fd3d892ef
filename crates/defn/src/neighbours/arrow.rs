//! Arrays of Apache Arrow, by the crates `arrow-array`, `arrow-buffer` and `arrow-schema`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeListArray, PrimitiveArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use defn_core::backend::HostMemory;
use defn_core::{DType, Error, ErrorKind, Location, Result, Shape, TensorType, memory};

use super::sizes;
use crate::nested::from_owned;
use crate::tensor::of_bytes;
use crate::{Element, HostSlice, Tensor, host};

const OP: &str = "arrow";

/// Conversions by functions of a reference: from an array, by value and by reference, and to it.
macro_rules! conversions {
    ($([$($param:tt)*] $ty:ty: $(#[$from_doc:meta])* $from:ident, $(#[$to_doc:meta])* $to:ident;)*) => {$(
        $(#[$from_doc])*
        impl<$($param)*> TryFrom<&$ty> for Tensor {
            type Error = Error;

            #[track_caller]
            fn try_from(array: &$ty) -> Result<Tensor> {
                let location = Location::caller();
                $from(array).map_err(|error| error.at(Some(location)))
            }
        }

        /// As of a reference.
        impl<$($param)*> TryFrom<$ty> for Tensor {
            type Error = Error;

            #[track_caller]
            fn try_from(array: $ty) -> Result<Tensor> {
                let location = Location::caller();
                $from(&array).map_err(|error| error.at(Some(location)))
            }
        }

        $(#[$to_doc])*
        impl<$($param)*> TryFrom<&Tensor> for $ty {
            type Error = Error;

            #[track_caller]
            fn try_from(tensor: &Tensor) -> Result<$ty> {
                let location = Location::caller();
                $to(tensor).map_err(|error| error.at(Some(location)))
            }
        }

        from_owned! { [$($param)*] $ty; }
    )*};
}
conversions! {
    [P: ArrowPrimitiveType<Native: Element>] PrimitiveArray<P>:
    /// An array of integers or floats, without nulls, as a tensor of one axis. Its buffer becomes the memory of a
    /// tensor on the CPU, without a copy, and is kept alive.
    ///
    /// ```
    /// use arrow_array::{Float32Array, Int32Array};
    /// use defn::Tensor;
    ///
    /// let array = Float32Array::from(vec![1.0, 2.0, 3.0]);
    /// let x = Tensor::try_from(&array)?;
    /// assert_eq!(x.ty().to_string(), "f32[3]");
    /// assert_eq!(x.host_slice::<f32>()?.as_ptr(), array.values().as_ptr());
    ///
    /// let error = Tensor::try_from(&Int32Array::from(vec![Some(1), None])).unwrap_err();
    /// assert!(error.to_string().starts_with("arrow: the number of nulls is 1 in 2 elements, it must be 0; "));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nulls (`Option`); dates, times and decimals (`DType`).
    of_primitive,
    /// A tensor of one axis, without nulls. The memory of a tensor on the CPU is shared, without a copy.
    ///
    /// ```
    /// use arrow_array::Float64Array;
    /// use defn::Tensor;
    ///
    /// let x = Tensor::from_vec(vec![1f64, 2.0], &[2])?;
    /// let array = Float64Array::try_from(&x)?;
    /// assert_eq!(array, Float64Array::from(vec![1.0, 2.0]));
    /// assert_eq!(array.values().as_ptr(), x.host_slice::<f64>()?.as_ptr());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of axes (`Shape`), and another dtype (`DType`).
    to_primitive;

    [] BooleanArray:
    /// An array of truth values, without nulls, as a tensor of one axis. The bits are unpacked to bytes.
    ///
    /// ```
    /// use arrow_array::BooleanArray;
    /// use defn::Tensor;
    ///
    /// let x = Tensor::try_from(BooleanArray::from(vec![true, false]))?;
    /// assert_eq!(x.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nulls (`Option`).
    of_boolean,
    /// A tensor of bool of one axis. The elements are packed to bits.
    ///
    /// ```
    /// use arrow_array::BooleanArray;
    /// use defn::Tensor;
    ///
    /// let x = Tensor::from_vec(vec![true, false], &[2])?;
    /// assert_eq!(BooleanArray::try_from(&x)?, BooleanArray::from(vec![true, false]));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of axes (`Shape`), and another dtype (`DType`).
    to_boolean;

    [] FixedSizeListArray:
    /// A list of lists of one length as a tensor of two axes, of more if the elements are such lists too. The elements
    /// are those of the other conversions, and are moved or copied as there.
    ///
    /// ```
    /// use arrow_array::FixedSizeListArray;
    /// use arrow_array::types::Int32Type;
    /// use defn::Tensor;
    ///
    /// let rows = [Some([Some(1), Some(2)]), Some([Some(3), Some(4)])];
    /// let array = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(rows, 2);
    /// let x = Tensor::try_from(&array)?;
    /// assert_eq!(x.ty().to_string(), "s32[2][2]");
    /// assert_eq!(FixedSizeListArray::try_from(&x)?, array);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nulls, as lists or in them (`Option`); elements that are neither numbers nor truth values (`DType`).
    of_array,
    /// A tensor of two axes. The memory of a tensor on the CPU is shared, without a copy; elements of bool are packed.
    ///
    /// ```
    /// use arrow_array::{Array, FixedSizeListArray};
    /// use defn::Tensor;
    ///
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    /// let array = FixedSizeListArray::try_from(&x)?;
    /// assert_eq!((array.len(), array.value_length()), (2, 3));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of axes (`Shape`); rows longer than `i32::MAX` (`Option`); a dtype that Arrow does not have
    /// (`DType`).
    to_list;
}

/// An array of a type that is known when the program runs, such as a column of a record batch: a primitive array, an
/// array of truth values, or a list of lists of one length.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{Array, ArrayRef, StringArray, UInt8Array};
/// use defn::Tensor;
///
/// let columns: [ArrayRef; 2] = [Arc::new(UInt8Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["a"]))];
/// assert_eq!(Tensor::try_from(&*columns[0])?.ty().to_string(), "u8[2]");
/// let error = Tensor::try_from(&*columns[1]).unwrap_err();
/// assert!(error.to_string().starts_with("arrow: the elements Utf8 have no counterpart here, "));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Nulls (`Option`); elements that are neither numbers nor truth values (`DType`).
impl TryFrom<&dyn Array> for Tensor {
    type Error = Error;

    #[track_caller]
    fn try_from(array: &dyn Array) -> Result<Tensor> {
        let location = Location::caller();
        of_array(array).map_err(|error| error.at(Some(location)))
    }
}

/// Applies a macro to the primitive types of Arrow that are elements, with their dtypes.
macro_rules! for_primitives {
    ($apply:ident) => {
        $apply! {
            UInt8Type U8, UInt16Type U16, UInt32Type U32, UInt64Type U64, Int8Type S8, Int16Type S16, Int32Type S32,
            Int64Type S64, Float16Type F16, Float32Type F32, Float64Type F64
        }
    };
}

/// A buffer of Arrow that owns host memory.
struct Values(Buffer);

impl AsRef<[u8]> for Values {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Elements of a tensor that own a buffer of Arrow.
struct Elements<T>(HostSlice<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        T::bytes(self.0.as_slice())
    }
}

fn of_primitive<P: ArrowPrimitiveType<Native: Element>>(array: &PrimitiveArray<P>) -> Result<Tensor> {
    of_values(array, Shape::new(&[array.len()]))
}

fn of_boolean(array: &BooleanArray) -> Result<Tensor> {
    of_truths(array, Shape::new(&[array.len()]))
}

/// A tensor of the elements of an array, whatever its type; lists are further axes.
fn of_array(array: &dyn Array) -> Result<Tensor> {
    let mut sizes = vec![array.len()];
    let mut array = array;
    while let Some(list) = array.as_fixed_size_list_opt() {
        refuse_nulls(list)?;
        sizes.push(list.value_length().try_into().unwrap_or(0));
        array = &**list.values();
    }
    let shape = Shape::new(&sizes);
    macro_rules! primitives {
        ($($ty:ident $dtype:ident),*) => {
            $(if let Some(array) = array.as_primitive_opt::<$ty>() {
                return of_values(array, shape);
            })*
        };
    }
    for_primitives! { primitives }
    match array.as_boolean_opt() {
        Some(array) => of_truths(array, shape),
        None => Err(foreign(array.data_type())),
    }
}

fn of_values<P: ArrowPrimitiveType<Native: Element>>(
    array: &PrimitiveArray<P>,
    shape: Shape,
) -> Result<Tensor> {
    require_number::<P>()?;
    refuse_nulls(array)?;
    let values = Values(array.values().inner().clone());
    of_bytes(TensorType::new(P::Native::DTYPE, shape)?, HostMemory::new(Arc::new(values)))
}

fn of_truths(array: &BooleanArray, shape: Shape) -> Result<Tensor> {
    refuse_nulls(array)?;
    let mut elements = memory::with_capacity(OP, array.len())?;
    elements.extend(array.values());
    host::from_vec(OP, elements, shape)
}

fn to_primitive<P: ArrowPrimitiveType<Native: Element>>(tensor: &Tensor) -> Result<PrimitiveArray<P>> {
    require_number::<P>()?;
    let [_] = sizes(OP, tensor, "an array must have one axis; reshape it, or take a FixedSizeListArray")?;
    to_values(tensor)
}

fn to_boolean(tensor: &Tensor) -> Result<BooleanArray> {
    let [_] = sizes(OP, tensor, "an array must have one axis; reshape it, or take a FixedSizeListArray")?;
    to_truths(tensor)
}

fn to_list(tensor: &Tensor) -> Result<FixedSizeListArray> {
    let [rows, columns] = sizes(OP, tensor, "a list of lists must have two axes; reshape it")?;
    let whole = tensor.core().whole();
    let wrong_shape = || {
        let required = "of rows of at most 2,147,483,647 elements".to_owned();
        ErrorKind::OptionValue { op: OP, option: "the shape", given: whole.to_string(), required }
    };
    let size = i32::try_from(columns).map_err(|_| wrong_shape())?;
    macro_rules! values {
        ($($ty:ident $native:ident),*) => {
            match tensor.dtype() {
                $(DType::$native => Arc::new(to_values::<$ty>(tensor)?) as ArrayRef,)*
                DType::Bool => Arc::new(to_truths(tensor)?),
                dtype @ (DType::U2
                | DType::U4
                | DType::S2
                | DType::S4
                | DType::F8E5M2
                | DType::F8E4M3FN
                | DType::BF16
                | DType::C64
                | DType::C128) => {
                    return Err(ErrorKind::StoredDType { op: OP, dtype, format: "an array of Arrow" }.into());
                }
            }
        };
    }
    let values = for_primitives! { values };
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let list = FixedSizeListArray::try_new_with_length(field, size, values, None, rows);
    list.map_err(|_| wrong_shape().into())
}

/// All elements of a tensor, in an array that shares its memory.
fn to_values<P: ArrowPrimitiveType<Native: Element>>(tensor: &Tensor) -> Result<PrimitiveArray<P>> {
    let elements = tensor.read_slice::<P::Native>(OP)?;
    let len = elements.len();
    let buffer = Buffer::from(bytes::Bytes::from_owner(Elements(elements)));
    Ok(PrimitiveArray::new(ScalarBuffer::new(buffer, 0, len), None))
}

fn to_truths(tensor: &Tensor) -> Result<BooleanArray> {
    tensor.read_vec::<bool>(OP).map(BooleanArray::from)
}

/// # Errors
/// Elements whose numbers have a unit or a scale, which a tensor would lose.
fn require_number<P: ArrowPrimitiveType>() -> Result<()> {
    if P::DATA_TYPE.is_integer() || P::DATA_TYPE.is_floating() { Ok(()) } else { Err(foreign(&P::DATA_TYPE)) }
}

#[cold]
fn foreign(elements: &DataType) -> Error {
    let required = "they must be integers, floats or truth values; reinterpret_cast gives the integers of dates, times \
                    and decimals";
    ErrorKind::ForeignElements { op: OP, got: elements.to_string(), required }.into()
}

fn refuse_nulls(array: &dyn Array) -> Result<()> {
    match array.null_count() {
        0 => Ok(()),
        nulls => {
            let given = format!("{nulls} in {} elements", array.len());
            let required = "0; leave them out, or put a number in their place".to_owned();
            Err(ErrorKind::OptionValue { op: OP, option: "the number of nulls", given, required }.into())
        }
    }
}
