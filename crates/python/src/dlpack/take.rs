//! Import of tensors from DLPack capsules of other libraries.

use std::ffi::CStr;
use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::memory::with_capacity;
use defn_core::scalar::wrap;
use defn_core::{DType, Shape, TensorType};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{
    Array, CPU, CUDA_HOST, IS_COPIED, IS_PADDED, Managed, ManagedVersioned, NAME, NAME_VERSIONED, USED,
    USED_VERSIONED, VERSION, dtype_of,
};
use crate::error::Fallible;
use crate::misuse::Misuse;

/// The deleter of our own exported tensors. It identifies them.
const OUR_DELETER: unsafe extern "C" fn(*mut ManagedVersioned) = super::export::delete_versioned;

/// The highest supported number of axes.
const MAX_AXES: i32 = 64;

/// Whether an object exports its elements through DLPack.
pub(crate) fn is_offered(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.hasattr(intern!(value.py(), "__dlpack__"))
}

/// The elements that an object exports. They are borrowed if nothing else writes them or `copy` is false. The
/// read-only flag of a capsule binds only the consumer: the producer may still write, unless the elements
/// belong to one of our tensors. `None` if the object refuses and has another way to export its elements.
///
/// # Errors
/// Elements on a device, and capsules that violate the protocol.
pub(crate) fn take(
    value: &Bound<'_, PyAny>,
    copy: Option<bool>,
) -> Fallible<Option<(TensorType, HostMemory)>> {
    let py = value.py();
    let (kind, id): (i32, i32) = value.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    if kind != CPU && kind != CUDA_HOST {
        return Err(Misuse::ForeignDevice { kind, id }.into());
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "max_version"), (VERSION.major, VERSION.minor))?;
    let name = intern!(py, "__dlpack__");
    let capsule = match value.call_method(name, (), Some(&options)) {
        // Producers from before versions do not accept these options.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => value.call_method0(name),
        result => result,
    };
    let capsule = match capsule {
        Err(error) if error.is_instance_of::<PyBufferError>(py) && copy != Some(false) => {
            return if value.hasattr(intern!(py, "__array__"))? { Ok(None) } else { Err(error.into()) };
        }
        result => result?,
    };
    let owner = TakenStruct::of(&capsule)?;
    let (array, flags) = owner.read()?;
    let view = View::new(&array, flags)?;
    let is_shared = copy.map_or_else(|| flags & IS_COPIED != 0 || owner.is_ours(), |copy| !copy);
    let obstacle = view.obstacle();
    if let (Some(false), Some(why)) = (copy, obstacle) {
        return Err(Misuse::MustCopy { why: why.to_owned() }.into());
    }
    if !is_shared || obstacle.is_some() {
        return Ok(Some((view.ty.clone(), view.copy()?.into())));
    }
    let (start, bytes, ty) = (view.start, view.ty.byte_size(), view.ty);
    let shared = BorrowedElements { start, bytes, _owner: owner };
    Ok(Some((ty, HostMemory::new(Arc::new(shared)))))
}

fn refuse(problem: impl Into<String>) -> crate::error::Fault {
    Misuse::BadCapsule { problem: problem.into() }.into()
}

/// A struct that was taken out of its capsule. It is deleted on drop.
enum TakenStruct {
    Unversioned(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the protocol allows deleting a struct on any thread; the struct is not written.
unsafe impl Send for TakenStruct {}
// SAFETY: as above.
unsafe impl Sync for TakenStruct {}

impl TakenStruct {
    /// Takes the struct, and renames the capsule to mark it as used.
    fn of(capsule: &Bound<'_, PyAny>) -> Fallible<TakenStruct> {
        let taken = |name: &CStr, used: &'static CStr| -> Option<*mut std::ffi::c_void> {
            // SAFETY: the object is alive; the validity check guarantees a capsule of this name with a
            // pointer that is not null. The new name has a static lifetime.
            unsafe {
                if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                    return None;
                }
                let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
                ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr());
                Some(pointer)
            }
        };
        if let Some(pointer) = taken(NAME_VERSIONED, USED_VERSIONED) {
            return Ok(TakenStruct::Versioned(pointer.cast()));
        }
        if let Some(pointer) = taken(NAME, USED) {
            return Ok(TakenStruct::Unversioned(pointer.cast()));
        }
        let got = crate::convert::describe(capsule)?;
        Err(refuse(format!("__dlpack__ gave {got}, which is no capsule of a tensor or was used before")))
    }

    /// Whether the struct belongs to one of our tensors, whose memory is never written.
    fn is_ours(&self) -> bool {
        match self {
            TakenStruct::Unversioned(_) => false,
            TakenStruct::Versioned(managed) => {
                // SAFETY: `read` has checked the version.
                let deleter = unsafe { (**managed).deleter };
                deleter.is_some_and(|deleter| std::ptr::fn_addr_eq(deleter, OUR_DELETER))
            }
        }
    }

    /// The array and its flags.
    fn read(&self) -> Fallible<(Array, u64)> {
        match self {
            // SAFETY: by the capsule's name, the producer guarantees that the pointer refers to such a
            // struct.
            TakenStruct::Unversioned(managed) => Ok((unsafe { (**managed).array }, 0)),
            TakenStruct::Versioned(managed) => {
                // SAFETY: the version is the first field in every version of the struct.
                let version = unsafe { (**managed).version };
                if version.major != VERSION.major {
                    let (major, minor) = (version.major, version.minor);
                    return Err(refuse(format!("the capsule has version {major}.{minor} of the protocol")));
                }
                // SAFETY: the layout of this version is known.
                Ok(unsafe { ((**managed).array, (**managed).flags) })
            }
        }
    }
}

impl Drop for TakenStruct {
    fn drop(&mut self) {
        match self {
            TakenStruct::Unversioned(managed) => {
                // SAFETY: the struct was taken, so that we must delete it, once.
                if let Some(deleter) = unsafe { (**managed).deleter } {
                    // SAFETY: as above.
                    unsafe { deleter(*managed) }
                }
            }
            TakenStruct::Versioned(managed) => {
                // SAFETY: as above; the deleter has the same offset in every version.
                if let Some(deleter) = unsafe { (**managed).deleter } {
                    // SAFETY: as above.
                    unsafe { deleter(*managed) }
                }
            }
        }
    }
}

/// Elements borrowed from a producer.
struct BorrowedElements {
    start: *const u8,
    bytes: usize,
    _owner: TakenStruct,
}

// SAFETY: the elements are only read, and the owner keeps them alive.
unsafe impl Send for BorrowedElements {}
// SAFETY: as above.
unsafe impl Sync for BorrowedElements {}

impl AsRef<[u8]> for BorrowedElements {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the producer guarantees that this many elements are stored contiguously, and the owner
        // keeps them alive. Nothing writes them: the producer or the user guarantees it.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// An array whose description is consistent. Whether the memory exists cannot be checked; the producer
/// guarantees it.
struct View {
    ty: TensorType,
    start: *const u8,
    /// In bytes.
    strides: Vec<isize>,
}

impl View {
    fn new(array: &Array, flags: u64) -> Fallible<View> {
        if array.device.kind != CPU && array.device.kind != CUDA_HOST {
            return Err(Misuse::ForeignDevice { kind: array.device.kind, id: array.device.id }.into());
        }
        let Some(dtype) = dtype_of(array.dtype) else {
            let super::ElementType { code, bits, lanes } = array.dtype;
            return Err(Misuse::ArrayDType { got: format!("code {code}, {bits} bits, {lanes} lanes") }.into());
        };
        if dtype.is_packed() && flags & IS_PADDED == 0 {
            return Err(refuse(format!("the elements are packed {dtype}, which are taken a byte each")));
        }
        if !(0..=MAX_AXES).contains(&array.rank) {
            return Err(refuse(format!("the capsule has {} axes", array.rank)));
        }
        let rank = array.rank as usize;
        let entries = |at: *mut i64| -> Option<Vec<i64>> {
            if rank == 0 {
                return Some(Vec::new());
            }
            if at.is_null() {
                return None;
            }
            // SAFETY: the producer guarantees one entry for each axis; entries may be unaligned.
            Some((0..rank).map(|axis| unsafe { at.add(axis).read_unaligned() }).collect())
        };
        let Some(sizes) = entries(array.sizes) else {
            return Err(refuse("the capsule has no sizes"));
        };
        let Ok(sizes) = sizes.into_iter().map(usize::try_from).collect::<Result<Vec<usize>, _>>() else {
            return Err(refuse("the capsule has a negative size"));
        };
        let ty = TensorType::new(dtype, Shape::new(&sizes))?;
        let width = dtype.storage_bytes() as i64;
        let strides = match entries(array.strides) {
            Some(strides) => strides,
            None => ty.shape.strides().iter().map(|&stride| stride as i64).collect(),
        };
        if ty.size() == 0 {
            let start = std::ptr::NonNull::<u128>::dangling().as_ptr().cast();
            return Ok(View { ty, start, strides: vec![0; rank] });
        }
        // The stride of an axis of size 1 is arbitrary.
        let step =
            |(&size, &stride): (&usize, &i64)| if size == 1 { Some(0) } else { stride.checked_mul(width) };
        let outside = || refuse("the capsule's strides lead out of memory");
        let strides: Vec<i64> =
            sizes.iter().zip(&strides).map(step).collect::<Option<_>>().ok_or_else(outside)?;
        let start = (array.data as usize as i128) + i128::from(array.byte_offset);
        let (mut least, mut most) = (start, start + i128::from(width));
        for (&size, &stride) in sizes.iter().zip(&strides) {
            let reach = i128::from(stride) * (size as i128 - 1);
            if reach < 0 { least += reach } else { most += reach }
        }
        if array.data.is_null() || least <= 0 || most > isize::MAX as i128 {
            return Err(outside());
        }
        let start = array.data.cast::<u8>().wrapping_add(array.byte_offset as usize).cast_const();
        Ok(View { ty, start, strides: strides.into_iter().map(|stride| stride as isize).collect() })
    }

    /// Why the memory cannot be used in place as a tensor's memory; `None` if it can.
    fn obstacle(&self) -> Option<&'static str> {
        let width = self.ty.dtype.storage_bytes();
        let mut expected = width as isize;
        for (&size, &stride) in self.ty.shape.sizes().iter().zip(&self.strides).rev() {
            if size != 1 && stride != expected && self.ty.size() > 0 {
                return Some("its elements do not lie one after the other");
            }
            expected *= size as isize;
        }
        let component = if self.ty.dtype.is_complex() { width / 2 } else { width };
        if !self.start.addr().is_multiple_of(component) {
            return Some("its memory is not aligned");
        }
        self.ty.dtype.is_packed().then_some("its elements have unused bits, which may hold anything")
    }

    /// The elements in row-major order.
    fn copy(&self) -> Fallible<Vec<u8>> {
        let width = self.ty.dtype.storage_bytes();
        let mut out = with_capacity("tensor", self.ty.byte_size())?;
        if self.ty.size() == 0 {
            return Ok(out);
        }
        let sizes = self.ty.shape.sizes();
        let mut index = vec![0usize; sizes.len()];
        let mut at = self.start;
        'elements: loop {
            // SAFETY: each index is below its axis' size, so the producer guarantees an element there; bytes
            // may be read at any alignment.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(at, width) });
            for axis in (0..sizes.len()).rev() {
                index[axis] += 1;
                at = at.wrapping_offset(self.strides[axis]);
                if index[axis] < sizes[axis] {
                    continue 'elements;
                }
                at = at.wrapping_offset(-(self.strides[axis] * sizes[axis] as isize));
                index[axis] = 0;
            }
            break;
        }
        extend(self.ty.dtype, &mut out);
        Ok(out)
    }
}

/// Normalizes each byte to the value of its low bits, for elements of fewer than eight bits.
fn extend(dtype: DType, bytes: &mut [u8]) {
    if dtype.bits() < 8 {
        bytes.iter_mut().for_each(|byte| *byte = wrap(dtype, i128::from(*byte)) as u8);
    }
}
