//! The buffer protocol (PEP 3118): tensors on the host export their memory read-only.

use std::ffi::{CStr, c_int, c_void};

use defn_core::backend::HostMemory;
use defn_core::{DType, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Fallible;

/// The limit of `memoryview`, reported here by our own error.
const MAX_AXES: usize = 64;

/// The element format in the notation of the `struct` module, with NumPy's `Z` for complex numbers.
fn format(dtype: DType) -> Option<&'static CStr> {
    match dtype {
        DType::Bool => Some(c"?"),
        DType::U8 => Some(c"B"),
        DType::U16 => Some(c"H"),
        DType::U32 => Some(c"I"),
        DType::U64 => Some(c"Q"),
        DType::S8 => Some(c"b"),
        DType::S16 => Some(c"h"),
        DType::S32 => Some(c"i"),
        DType::S64 => Some(c"q"),
        DType::F16 => Some(c"e"),
        DType::F32 => Some(c"f"),
        DType::F64 => Some(c"d"),
        DType::C64 => Some(c"Zf"),
        DType::C128 => Some(c"Zd"),
        // `struct` has no format codes for these.
        DType::U2 | DType::U4 | DType::S2 | DType::S4 | DType::F8E5M2 | DType::F8E4M3FN | DType::BF16 => None,
    }
}

/// The memory, sizes and strides that a view points to, kept until the view is released.
struct ExportedView {
    memory: HostMemory,
    sizes: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Fills a view.
///
/// # Errors
/// A `BufferError`, as the protocol requires, for a consumer that wants to write, too many axes, and elements
/// without a format. Also any error of reading the elements.
///
/// # Safety
/// `view` points to a view that may be written, as the interpreter passes it.
pub(crate) unsafe fn fill(
    tensor: &Tensor,
    object: &Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> Fallible<()> {
    // SAFETY: guaranteed by the caller. A view whose `obj` is null counts as refused.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let refuse = |text: String| Err(PyBufferError::new_err(text).into());
    if flags & ffi::PyBUF_WRITABLE != 0 {
        return refuse("tensors are read-only".to_owned());
    }
    let ty = tensor.whole();
    let wants_columns = flags & ffi::PyBUF_F_CONTIGUOUS & !ffi::PyBUF_STRIDES != 0;
    if wants_columns && ty.shape.rank() > 1 {
        return refuse("the elements lie row by row, not column by column".to_owned());
    }
    if flags & ffi::PyBUF_ND != 0 && ty.shape.rank() > MAX_AXES {
        let axes = ty.shape.rank();
        return refuse(format!(
            "memoryview: the tensor has {axes} axes, the buffer protocol takes at most {MAX_AXES}; reshape it first"
        ));
    }
    let Some(format) = format(ty.dtype) else {
        return refuse(format!(
            "the buffer protocol has no format for {}; use to_numpy or to_binary",
            ty.dtype
        ));
    };
    let memory = tensor.host_bytes("memoryview")?;
    let width = ty.dtype.storage_bytes() as ffi::Py_ssize_t;
    let exported = Box::new(ExportedView {
        sizes: ty.shape.sizes().iter().map(|&size| size as ffi::Py_ssize_t).collect(),
        strides: ty.shape.strides().iter().map(|&stride| stride * width).collect(),
        memory,
    });
    let has = |flag: c_int| flags & flag == flag;
    // SAFETY: the view may be written; everything that it points to is in the box, which the view owns until
    // it is released, or has a static lifetime.
    unsafe {
        (*view).buf = exported.memory.bytes().as_ptr().cast_mut().cast::<c_void>();
        (*view).len = ty.byte_size() as ffi::Py_ssize_t;
        (*view).itemsize = width;
        (*view).readonly = 1;
        // Without sizes, the view is one row of bytes.
        (*view).ndim = if has(ffi::PyBUF_ND) { ty.shape.rank() as c_int } else { 1 };
        (*view).format =
            if has(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).shape =
            if has(ffi::PyBUF_ND) { exported.sizes.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).strides =
            if has(ffi::PyBUF_STRIDES) { exported.strides.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(exported).cast();
        (*view).obj = object.clone().into_ptr();
    }
    Ok(())
}

/// Frees the resources of a view.
pub(crate) unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `fill` stored the box there, and the caller guarantees that this is the only release.
    unsafe {
        if !(*view).internal.is_null() {
            drop(Box::from_raw((*view).internal.cast::<ExportedView>()));
            (*view).internal = std::ptr::null_mut();
        }
    }
}
