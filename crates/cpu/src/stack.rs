//! The end of a thread's stack, according to the operating system.

/// Registers the probe of the stack in the core, and returns `first`. The backend's constructor passes through here, so
/// that the probe is set before any op runs.
pub(crate) fn with_stack_probe<T>(first: T) -> T {
    defn_core::stack::set_probe(lowest);
    first
}

/// The lowest address of this thread's stack, if the system reports it.
#[cfg(target_os = "linux")]
fn lowest() -> Option<usize> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the thread is this one, and the call fills the attributes or fails.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes were filled, and both variables may be written.
    let status = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size) };
    // SAFETY: the attributes were filled, and are not used any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (status == 0).then(|| start.addr())
}

/// The same for macOS, which reports the highest address.
#[cfg(target_os = "macos")]
fn lowest() -> Option<usize> {
    use std::ffi::c_void;

    // SAFETY: these are the declarations of the C library, and the calls have no requirements for this thread.
    unsafe extern "C" {
        safe fn pthread_self() -> *mut c_void;
        fn pthread_get_stackaddr_np(thread: *mut c_void) -> *mut c_void;
        fn pthread_get_stacksize_np(thread: *mut c_void) -> usize;
    }
    let this = pthread_self();
    // SAFETY: the thread is this one.
    let (highest, size) = unsafe { (pthread_get_stackaddr_np(this), pthread_get_stacksize_np(this)) };
    highest.addr().checked_sub(size)
}

/// On other systems it is unknown.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn lowest() -> Option<usize> {
    None
}
