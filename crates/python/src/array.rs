//! NumPy arrays: read in place or copied, and created as read-only views of a tensor's memory.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::{DType, ErrorKind, Kind, Number, Scalar, Shape, Tensor, TensorType};
use numpy::npyffi::{self, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyType};

use crate::convert;
use crate::dtype;
use crate::error::Fallible;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// An array whose element type has a matching dtype.
pub(crate) struct View<'py> {
    array: Bound<'py, PyUntypedArray>,
    dtype: DType,
    swapped: bool,
}

/// Whether an object is a NumPy array.
pub(crate) fn is_array(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyUntypedArray>()
}

/// Whether an object is a NumPy scalar, such as `np.float64(1)`.
pub(crate) fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the API table is loaded on demand, and the type object lives as long as NumPy.
    unsafe {
        let generic = npyffi::get_type_object(value.py(), npyffi::NpyTypes::PyGenericArrType_Type);
        ffi::PyObject_TypeCheck(value.as_ptr(), generic) != 0
    }
}

/// The value of a NumPy scalar, if its elements have this dtype.
pub(crate) fn number_of(value: &Bound<'_, PyAny>, dtype: DType) -> Option<Number> {
    if !is_scalar(value) {
        return None;
    }
    let py = value.py();
    // SAFETY: the object is a scalar, and the call gives a new reference, or null and an exception.
    let descriptor = unsafe { PY_ARRAY_API.PyArray_DescrFromScalar(py, value.as_ptr()) };
    // SAFETY: as above.
    let descriptor = unsafe { Bound::from_owned_ptr_or_err(py, descriptor.cast()) }.ok()?;
    let descriptor = descriptor.cast_into::<PyArrayDescr>().ok()?;
    // Bools take one byte each and are not numbers here. Registered user dtypes (number 256 and above) may
    // have another layout.
    let is_number = matches!(descriptor.kind(), b'i' | b'u' | b'f' | b'c') && descriptor.num() < 256;
    if !is_number || dtype::from_descriptor(&descriptor) != Some(dtype) {
        return None;
    }
    let mut bytes = [0_u64; 2];
    // SAFETY: the largest of these elements has 16 bytes, and the buffer is aligned for its parts.
    unsafe { PY_ARRAY_API.PyArray_ScalarAsCtype(py, value.as_ptr(), bytes.as_mut_ptr().cast()) };
    // SAFETY: any initialized memory may be read as bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), dtype.storage_bytes()) };
    Some(Scalar::from_bytes(dtype, bytes).value())
}

/// Whether a class is a class of NumPy scalars.
pub(crate) fn is_scalar_class(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: as in `is_scalar`.
    unsafe {
        let generic = npyffi::get_type_object(class.py(), npyffi::NpyTypes::PyGenericArrType_Type);
        ffi::PyType_IsSubtype(class.as_type_ptr(), generic) != 0
    }
}

/// The object itself if it is an array, or the array that it exports through `__array__`, the buffer protocol
/// or DLPack.
pub(crate) fn find<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyUntypedArray>>> {
    if let Ok(array) = value.cast::<PyUntypedArray>() {
        // `numpy.ma` is looked up only for subclasses of arrays.
        if !value.is_exact_instance_of::<PyUntypedArray>() && is_masked(value)? {
            return Err(Misuse::MaskedArray.into());
        }
        return Ok(Some(array.clone()));
    }
    let py = value.py();
    let numpy = py.import("numpy")?;
    // SAFETY: the object is alive.
    let is_buffer = unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } != 0;
    let array = if is_scalar(value)
        || value.hasattr(intern!(py, "__array__"))?
        || value.hasattr(intern!(py, "__array_interface__"))?
    {
        numpy.call_method1(intern!(py, "asarray"), (value,))?
    } else if is_buffer {
        numpy.call_method1(intern!(py, "asarray"), (PyMemoryView::from(value)?,))?
    } else if value.hasattr(intern!(py, "__dlpack__"))? {
        numpy.call_method1(intern!(py, "from_dlpack"), (value,))?
    } else {
        return Ok(None);
    };
    Ok(Some(array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?))
}

/// A leaf whose elements no other code can write: a writeable array is copied.
pub(crate) fn owned<'py>(leaf: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    let is_own = leaf.is_instance_of::<PyTensor>() || convert::number(leaf)?.is_some() || is_scalar(leaf);
    let Some(array) = (if is_own { None } else { find(leaf)? }) else { return Ok(leaf.clone()) };
    let view = View::new(array)?;
    if view.is_immutable() {
        return Ok(view.array.into_any());
    }
    Ok(view.array().call_method0(intern!(leaf.py(), "copy"))?)
}

/// Whether an instance of a subclass of arrays is a masked array.
fn is_masked(value: &Bound<'_, PyAny>) -> Fallible<bool> {
    let py = value.py();
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    let Ok(module) = modules.get_item("numpy.ma") else {
        return Ok(false);
    };
    Ok(value.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)?)
}

impl<'py> View<'py> {
    /// Creates the view of an array.
    ///
    /// # Errors
    /// An element type without a matching dtype.
    pub(crate) fn new(array: Bound<'py, PyUntypedArray>) -> Fallible<View<'py>> {
        let descriptor = array.dtype();
        let Some(dtype) = dtype::from_descriptor(&descriptor) else {
            return Err(Misuse::ArrayDType { got: descriptor.str()?.to_string() }.into());
        };
        let swapped = descriptor.is_native_byteorder() == Some(false);
        Ok(View { array, dtype, swapped })
    }

    /// The array itself.
    pub(crate) fn array(&self) -> &Bound<'py, PyAny> {
        self.array.as_any()
    }

    /// The type of a tensor with these elements.
    pub(crate) fn ty(&self) -> Fallible<TensorType> {
        Ok(TensorType::new(self.dtype, Shape::new(self.array.shape()))?)
    }

    /// Why the memory cannot be used in place as a tensor's memory; `None` if it can.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        if self.swapped {
            Some("its bytes are in the other order")
        } else if !self.array.is_c_contiguous() {
            Some("its elements do not lie one after the other")
        } else if !self.array.is_aligned() {
            Some("its memory is not aligned")
        } else if self.dtype.is_bool() {
            (!self.has_truths()).then_some("some of its bytes are neither 0 nor 1")
        } else if self.dtype.bits() < 8 {
            Some("its elements have unused bits, which may hold anything")
        } else {
            None
        }
    }

    /// Whether each byte of a contiguous bool array is 0 or 1. A bool view of other bytes can hold other
    /// values.
    fn has_truths(&self) -> bool {
        // SAFETY: a C-contiguous array has as many bytes as elements from its data pointer on, and the thread
        // is attached, so that no Python code frees them meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(self.data(), self.array.len()) };
        defn_core::scalar::are_truths(bytes)
    }

    /// Whether the memory can no longer be written: all bases are read-only views, down to immutable bytes or
    /// a tensor.
    pub(crate) fn is_immutable(&self) -> bool {
        let mut array = self.array.clone();
        loop {
            // SAFETY: the array is alive.
            let flags = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags };
            if flags & npyffi::NPY_ARRAY_WRITEABLE != 0 {
                return false;
            }
            // SAFETY: the array is alive. The struct field is read instead of the attribute, which a subclass
            // may override.
            let base = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).base };
            // SAFETY: the base of an array that is alive is null or a live object.
            let Some(base) = (unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), base) }) else {
                return false;
            };
            if base.is_instance_of::<PyBytes>() || base.is_instance_of::<Memory>() {
                return true;
            }
            // Tensors also export their memory through the buffer protocol.
            if base.is_instance_of::<PyMemoryView>() {
                let lender = base.getattr(intern!(array.py(), "obj"));
                return lender.is_ok_and(|lender| lender.is_instance_of::<PyTensor>());
            }
            // An array that owns its memory can be made writeable again.
            match base.cast_into::<PyUntypedArray>() {
                Ok(base) => array = base,
                Err(_) => return false,
            }
        }
    }

    /// Borrows the array's memory; the result keeps it alive. The caller has checked [`View::obstacle`].
    pub(crate) fn borrow(&self) -> Fallible<HostMemory> {
        let bytes = self.ty()?.byte_size();
        let array = self.array.clone().into_any().unbind();
        Ok(HostMemory::new(Arc::new(BorrowedArray { start: self.data(), bytes, _array: array })))
    }

    /// The elements in memory order and native byte order.
    pub(crate) fn copy(&self) -> Fallible<Vec<u8>> {
        let ty = self.ty()?;
        let width = ty.dtype.storage_bytes();
        let mut out: Vec<u8> = Vec::new();
        out.try_reserve_exact(ty.byte_size()).map_err(|_| defn_core::ErrorKind::OutOfMemory {
            op: "tensor",
            requested: ty.byte_size(),
            available: 0,
        })?;
        if self.array.is_c_contiguous() {
            // SAFETY: a C-contiguous array has this many bytes from its data pointer on, and the thread is
            // attached, so that no Python code frees them meanwhile.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.data(), ty.byte_size()) });
        } else {
            self.gather(width, &mut out);
        }
        if self.swapped {
            let component = if ty.dtype.is_complex() { width / 2 } else { width };
            out.chunks_exact_mut(component).for_each(<[u8]>::reverse);
        }
        if ty.dtype.bits() < 8 {
            extend_narrow(ty.dtype, &mut out);
        }
        Ok(out)
    }

    /// Appends the elements one by one, in row-major order.
    fn gather(&self, width: usize, out: &mut Vec<u8>) {
        let (sizes, strides) = (self.array.shape(), self.array.strides());
        if sizes.contains(&0) {
            return;
        }
        let mut index = vec![0usize; sizes.len()];
        let mut offset = 0isize;
        loop {
            // SAFETY: every index is below its axis' size, so the element is inside the array's memory; bytes
            // may be read at any alignment.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.data().offset(offset), width) });
            let mut axis = sizes.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                offset += strides[axis];
                if index[axis] < sizes[axis] {
                    break;
                }
                offset -= strides[axis] * sizes[axis] as isize;
                index[axis] = 0;
            }
        }
    }

    fn data(&self) -> *const u8 {
        // SAFETY: the array is alive.
        let data = unsafe { (*npyffi::_PyArray_GET_ITEM_DATA(self.array.as_array_ptr())).data };
        if data.is_null() { std::ptr::NonNull::<u8>::dangling().as_ptr() } else { data.cast() }
    }
}

/// Normalizes each byte to the value of its low bits: NumPy leaves the high bits of narrow integers
/// undefined. A bool is true unless its byte is 0.
fn extend_narrow(dtype: DType, bytes: &mut [u8]) {
    let unused = 8 - dtype.bits();
    for byte in bytes {
        let high = *byte << unused;
        *byte = if dtype.is_bool() {
            u8::from(*byte != 0)
        } else if dtype.kind() == Kind::Signed {
            (high as i8 >> unused) as u8
        } else {
            high >> unused
        };
    }
}

/// Borrowed memory of an array, which this object keeps alive.
struct BorrowedArray {
    start: *const u8,
    bytes: usize,
    _array: Py<PyAny>,
}

// SAFETY: the memory belongs to the array, which is kept alive, and it is only read. A caller who shares a
// writeable array promises not to write it meanwhile.
unsafe impl Send for BorrowedArray {}
// SAFETY: as above.
unsafe impl Sync for BorrowedArray {}

impl AsRef<[u8]> for BorrowedArray {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: a C-contiguous array has this many bytes from its data pointer on, and it is kept alive.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// The base object of a NumPy array over a tensor's memory; it keeps that memory alive. It exports no buffer,
/// so NumPy refuses to make the array writeable.
#[pyclass(frozen, module = "defn._core")]
pub(crate) struct Memory {
    memory: HostMemory,
}

impl Memory {
    pub(crate) fn new(memory: HostMemory) -> Memory {
        Memory { memory }
    }
}

/// A read-only array over a tensor's memory, without a copy; vectorized axes come first.
pub(crate) fn view<'py>(py: Python<'py>, tensor: &Tensor, op: &'static str) -> Fallible<Bound<'py, PyAny>> {
    let ty = tensor.whole();
    // SAFETY: the API table is loaded on demand, and the call has no requirements.
    let is_new = unsafe { PY_ARRAY_API.PyArray_GetNDArrayCVersion(py) } >= 0x0200_0000;
    let most = if is_new { 64 } else { 32 };
    if ty.shape.rank() > most {
        let required = match most {
            64 => "arrays of NumPy have at most 64 axes; reshape it first",
            _ => "arrays of NumPy before 2.0 have at most 32 axes; reshape it first",
        };
        return Err(ErrorKind::Rank { op, got: ty.clone(), required }.into());
    }
    let memory = tensor.host_bytes(op)?;
    let owner = Bound::new(py, Memory { memory })?;
    let start = owner.get().memory.bytes().as_ptr();
    let mut sizes: Vec<npyffi::npy_intp> =
        ty.shape.sizes().iter().map(|&size| size as npyffi::npy_intp).collect();
    let descriptor = dtype::descriptor(py, ty.dtype)?;
    // SAFETY: the sizes fit the memory, which `owner` keeps alive as the array's base; the flags make the
    // array read-only. NewFromDescr takes the descriptor's reference and SetBaseObject the owner's.
    unsafe {
        let class = npyffi::get_type_object(py, npyffi::NpyTypes::PyArray_Type);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            descriptor.into_dtype_ptr(),
            sizes.len() as c_int,
            sizes.as_mut_ptr(),
            std::ptr::null_mut(),
            start.cast_mut().cast::<c_void>(),
            npyffi::NPY_ARRAY_C_CONTIGUOUS | npyffi::NPY_ARRAY_ALIGNED,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) < 0 {
            let refused = || PyRuntimeError::new_err("NumPy refused an array's owner");
            return Err(PyErr::take(py).unwrap_or_else(refused).into());
        }
        Ok(array)
    }
}
