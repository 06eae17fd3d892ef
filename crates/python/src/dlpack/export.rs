//! Export of tensors to other libraries, as DLPack capsules.

use std::any::Any;
use std::ffi::{CStr, c_void};

use defn_core::Tensor;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::{
    Array, CPU, Device, IS_COPIED, IS_PADDED, Managed, ManagedVersioned, NAME, NAME_VERSIONED, READ_ONLY,
    VERSION, Version, element_type,
};
use crate::error::Fallible;
use crate::memory;
use crate::pjrt;

/// The host as a DLPack device.
pub(crate) const HOST: (i32, i32) = (CPU, 0);

/// The arguments of `__dlpack__`.
pub(crate) struct Request {
    /// The newest version that the consumer supports; `None` for a consumer from before versions.
    pub(crate) max_version: Option<(u32, u32)>,
    /// The device on which the consumer wants the elements.
    pub(crate) device: Option<(i32, i32)>,
    /// Whether the elements must or must not be copied.
    pub(crate) copy: Option<bool>,
}

/// A struct of the protocol, and the memory to which its pointers refer.
struct ExportedStruct<M> {
    managed: M,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _keeper: Box<dyn Any + Send + Sync>,
}

/// The exported elements: their address and device, and the owner that keeps them alive.
struct ExportedElements {
    data: *mut c_void,
    device: (i32, i32),
    is_copied: bool,
    keeper: Box<dyn Any + Send + Sync>,
}

/// The elements in place, or a copy on the host.
///
/// # Errors
/// A `BufferError` if the request of the consumer cannot be met.
fn exported_elements(
    py: Python<'_>,
    tensor: &Tensor,
    request: &Request,
    is_versioned: bool,
) -> Fallible<ExportedElements> {
    let refuse = |text: &str| Err(PyBufferError::new_err(format!("__dlpack__: {text}")).into());
    if !is_versioned && request.copy == Some(false) {
        return refuse("the elements are read-only, which a consumer of DLPack 1.0 can be told; copy them");
    }
    let to_host = request.device == Some(HOST);
    if let Some(device) = pjrt::dlpack_device(tensor)?
        && !to_host
    {
        let Some(device) = device else {
            return refuse(
                "the elements are on a device that DLPack has no number for; copy them to the host",
            );
        };
        if request.device.is_some_and(|wanted| wanted != device) {
            return refuse("the elements cannot be lent on another device; move them with backend_copy");
        }
        if !is_versioned || request.copy == Some(true) {
            return refuse(
                "the elements are on a device, where a consumer of DLPack 1.0 reads them as they lie",
            );
        }
        if let Some(there) = pjrt::on_device(py, tensor)? {
            let data = std::ptr::with_exposed_provenance_mut(there.address);
            return Ok(ExportedElements {
                data,
                device: there.device,
                is_copied: false,
                keeper: there.keeper,
            });
        }
    }
    let memory = tensor.host_bytes("__dlpack__")?;
    if request.device.is_some() && !to_host {
        return refuse("the elements are on the host, they cannot be lent on another device");
    }
    // A consumer without versions may write to the memory it receives.
    let is_copied = request.copy == Some(true) || !is_versioned;
    let len = tensor.whole().byte_size();
    let memory = if is_copied { memory::copy("__dlpack__", &memory.bytes()[..len])? } else { memory };
    let data = memory.bytes().as_ptr().cast_mut().cast();
    Ok(ExportedElements { data, device: HOST, is_copied, keeper: Box::new(memory) })
}

/// A capsule with a tensor's elements.
///
/// # Errors
/// A `BufferError`, as the protocol requires, if the request of the consumer cannot be met.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    request: &Request,
) -> Fallible<Bound<'py, PyAny>> {
    tensor.require_buffer("__dlpack__", "return it from the definition, and read it there")?;
    let ty = tensor.whole();
    let version = match request.max_version {
        Some((major, minor)) if major >= VERSION.major => {
            Some(if major > VERSION.major { VERSION } else { VERSION.min(Version { major, minor }) })
        }
        Some(_) | None => None,
    };
    let is_padded = ty.dtype.is_packed();
    let element = element_type(ty.dtype);
    if (is_padded || element.code > super::code::BOOL) && version.is_none_or(|version| version < VERSION) {
        let text = format!("the elements are {}, for which a consumer of DLPack 1.1 is required", ty.dtype);
        return Err(PyBufferError::new_err(format!("__dlpack__: {text}")).into());
    }
    let ExportedElements { data, device: (kind, id), is_copied, keeper } =
        exported_elements(py, tensor, request, version.is_some())?;
    let array = Array {
        data,
        device: Device { kind, id },
        rank: ty.shape.rank() as i32,
        dtype: element,
        sizes: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let sizes: Vec<i64> = ty.shape.sizes().iter().map(|&size| size as i64).collect();
    let strides: Vec<i64> = ty.shape.strides().iter().map(|&stride| stride as i64).collect();
    match version {
        Some(version) => {
            let flags = if is_copied { IS_COPIED } else { READ_ONLY } | if is_padded { IS_PADDED } else { 0 };
            let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut ManagedVersioned));
            let managed = ManagedVersioned { version, context: std::ptr::null_mut(), deleter, flags, array };
            let mut exported = Box::new(ExportedStruct { managed, sizes, strides, _keeper: keeper });
            exported.managed.array.sizes = exported.sizes.as_mut_ptr();
            exported.managed.array.strides = exported.strides.as_mut_ptr();
            let exported = Box::into_raw(exported);
            // SAFETY: the box was just created, and there is no other reference to it.
            unsafe {
                (*exported).managed.context = exported.cast();
                capsule(py, (&raw mut (*exported).managed).cast(), NAME_VERSIONED, destroy_versioned)
                    .inspect_err(|_| drop(Box::from_raw(exported)))
            }
        }
        None => {
            let deleter = Some(delete as unsafe extern "C" fn(*mut Managed));
            let managed = Managed { array, context: std::ptr::null_mut(), deleter };
            let mut exported = Box::new(ExportedStruct { managed, sizes, strides, _keeper: keeper });
            exported.managed.array.sizes = exported.sizes.as_mut_ptr();
            exported.managed.array.strides = exported.strides.as_mut_ptr();
            let exported = Box::into_raw(exported);
            // SAFETY: the box was just created, and there is no other reference to it.
            unsafe {
                (*exported).managed.context = exported.cast();
                capsule(py, (&raw mut (*exported).managed).cast(), NAME, destroy)
                    .inspect_err(|_| drop(Box::from_raw(exported)))
            }
        }
    }
}

/// A capsule of a struct. `destructor` deletes the struct if no consumer has taken it.
fn capsule<'py>(
    py: Python<'py>,
    managed: *mut std::ffi::c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> Fallible<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null, the name has a static lifetime, and the result is a new reference.
    Ok(unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(managed, name.as_ptr(), Some(destructor)))?
    })
}

/// Frees an exported struct. It is called by a consumer, on any thread, or by the capsule.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the context is the box of `export`, and the protocol calls this once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<ExportedStruct<Managed>>()) });
}

/// As [`delete`].
pub(super) unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    drop(unsafe { Box::from_raw((*managed).context.cast::<ExportedStruct<ManagedVersioned>>()) });
}

unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: a consumer that takes the struct renames the capsule; if the name is unchanged, the struct is
    // still owned by it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `destroy`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}
