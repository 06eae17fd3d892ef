//! Kernels of this process that programs of a plugin call while they run, as custom calls.
//!
//! A plugin without custom calls, or with another version of them, is told apart before any program is compiled: its
//! list lacks the extension, or it refuses the function. A call says its size, which is checked too.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::Api;
use crate::ffi;

/// XLA's name of the platform whose memory is the host's.
const PLATFORM: &str = "Host";

/// How programs call kernels.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// The name of the function.
    pub target: &'static str,
    /// The name of the attribute that says which kernel to run.
    pub attribute: &'static str,
    /// Runs the kernel of this attribute on the bytes of its arguments and results. The error is a text.
    pub run: fn(&str, &[&[u8]], &mut [&mut [u8]]) -> Result<(), String>,
}

/// The kernels of this process.
static KERNELS: OnceLock<Kernels> = OnceLock::new();

impl Api {
    /// Registers the function that runs kernels, once for each plugin and process; returns whether the plugin's programs
    /// can call it.
    pub fn register_kernels(self, kernels: Kernels) -> bool {
        KERNELS.get_or_init(|| kernels);
        self.register_custom_call(PLATFORM, kernels.target, run_call)
    }
}

/// The function that programs call.
///
/// # Safety
/// The frame is that of a custom call of XLA, and lives across this call.
unsafe extern "C" fn run_call(frame: *mut ffi::CallFrame) -> *mut ffi::CallError {
    // SAFETY: guaranteed by the caller.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { tell_version(frame) } {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { run(frame) }));
    match ended {
        Ok(Ok(())) => std::ptr::null_mut(),
        // SAFETY: as above.
        Ok(Err(message)) => unsafe { error(frame, message) },
        // SAFETY: as above.
        Err(_) => unsafe { error(frame, "a kernel ended unexpectedly".to_owned()) },
    }
}

/// Answers a call that only asks for the version of the structs that this function knows; returns whether it was one.
///
/// # Safety
/// As for [`run_call`].
pub(super) unsafe fn tell_version(frame: &ffi::CallFrame) -> bool {
    // SAFETY: an extension begins with an `ExtensionBase`, and lives across the call.
    let Some(extension) = (unsafe { frame.extension_start.as_ref() }) else { return false };
    if extension.kind != ffi::METADATA {
        return false;
    }
    // SAFETY: an extension of this kind has these fields, and the caller lets the metadata be written.
    unsafe {
        let metadata = (*frame.extension_start.cast::<ffi::MetadataExtension>()).metadata;
        let theirs = frame.api.as_ref().map_or((0, 0), |api| (api.version.major, api.version.minor));
        // All versions so far append to these structs.
        ((*metadata).version.major, (*metadata).version.minor) =
            (0, if theirs.0 == 0 { theirs.1 } else { 0 });
        (*metadata).traits = 0;
    }
    true
}

/// Runs the kernel of a call.
///
/// # Safety
/// As for [`run_call`].
unsafe fn run(frame: &ffi::CallFrame) -> Result<(), String> {
    if frame.struct_size < size_of::<ffi::CallFrame>() {
        return Err(format!("a call of {} bytes, which another version of XLA makes", frame.struct_size));
    }
    if frame.stage != ffi::EXECUTE {
        return Ok(());
    }
    let kernels = KERNELS.get().expect("it is set before the function is registered");
    // SAFETY: guaranteed by the caller.
    let kernel = unsafe { text_attribute(&frame.attributes, kernels.attribute) };
    let kernel = kernel.ok_or("the attribute that names the kernel is missing")?;
    // SAFETY: as above; the program that is called says so about the sizes of elements.
    let (arguments, results) = unsafe { (buffers(&frame.arguments)?, buffers(&frame.results)?) };
    let arguments: SmallVec<[&[u8]; 4]> = arguments
        .into_iter()
        // SAFETY: an operand's memory is only read while the call runs.
        .map(|(start, bytes)| unsafe { std::slice::from_raw_parts(start.cast_const(), bytes) })
        .collect();
    let mut results: SmallVec<[&mut [u8]; 4]> = results
        .into_iter()
        // SAFETY: a result's memory belongs to the call while it runs, and overlaps no other buffer.
        .map(|(start, bytes)| unsafe { std::slice::from_raw_parts_mut(start, bytes) })
        .collect();
    (kernels.run)(kernel, &arguments, &mut results)
}

/// The attribute of a name, if it is a text.
///
/// # Safety
/// The list is that of a call, with texts that live across it.
unsafe fn text_attribute<'a>(list: &ffi::AttributeList, name: &str) -> Option<&'a str> {
    let text = |text: *const ffi::Text| {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { super::list((*text).start.cast::<u8>(), (*text).size) };
        std::str::from_utf8(bytes).ok()
    };
    (0..usize::try_from(list.size).ok()?).find_map(|at| {
        // SAFETY: the three arrays have as many entries as the list.
        let (kind, known, value) =
            unsafe { (*list.kinds.add(at), *list.names.add(at), *list.values.add(at)) };
        (kind == ffi::TEXT && text(known)? == name).then(|| text(value.cast()))?
    })
}

/// The start and the number of bytes of each operand, or of each result.
///
/// # Safety
/// The list is that of a call.
unsafe fn buffers(list: &ffi::CallList) -> Result<SmallVec<[(*mut u8, usize); 4]>, String> {
    let count = usize::try_from(list.size).unwrap_or(0);
    (0..count)
        .map(|at| {
            // SAFETY: both arrays have as many entries as the list; an entry of this kind points to a buffer.
            let buffer = unsafe {
                if *list.kinds.add(at) != ffi::BUFFER {
                    return Err("an operand is no buffer".to_owned());
                }
                &**list.values.add(at)
            };
            // SAFETY: there is a size for each axis.
            let dims = unsafe { super::list(buffer.dims, usize::try_from(buffer.rank).unwrap_or(0)) };
            let bytes = element_bytes(buffer.element).and_then(|bytes| {
                dims.iter().try_fold(bytes, |bytes, &dim| bytes.checked_mul(usize::try_from(dim).ok()?))
            });
            let bytes = bytes.ok_or_else(|| format!("elements of type number {}", buffer.element))?;
            Ok(if bytes == 0 { (std::ptr::dangling_mut::<u128>().cast(), 0) } else { (buffer.data, bytes) })
        })
        .collect()
}

/// The bytes of an element, by the number of its type in XLA.
fn element_bytes(element: c_int) -> Option<usize> {
    match element {
        1 | 2 | 6 | 19 | 20 => Some(1),
        3 | 7 | 10 | 16 => Some(2),
        4 | 8 | 11 => Some(4),
        5 | 9 | 12 | 15 => Some(8),
        18 => Some(16),
        _ => None,
    }
}

/// An error object of the runtime.
///
/// # Safety
/// As for [`run_call`].
pub(super) unsafe fn error(frame: &ffi::CallFrame, message: String) -> *mut ffi::CallError {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut args = ffi::CreateErrorArgs {
        struct_size: size_of::<ffi::CreateErrorArgs>(),
        extension_start: std::ptr::null_mut(),
        message: message.as_ptr().cast::<c_char>(),
        code: ffi::INTERNAL,
    };
    // SAFETY: the runtime gives its functions with each call, and copies the message.
    unsafe {
        let create = (*frame.api).create_error.expect("every version of XLA creates errors");
        create(&mut args)
    }
}
