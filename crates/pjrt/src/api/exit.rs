//! The end of the process.

/// What is called when the process ends; whether the rest may be taken down.
pub(crate) type AtExit = fn() -> bool;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod handler {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;

    use super::AtExit;

    // SAFETY: these are the declarations of the C library. The calls that are safe have no requirements.
    unsafe extern "C" {
        safe fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        safe fn _exit(status: c_int) -> !;
        fn fflush(stream: *mut c_void) -> c_int;
    }

    static FUNCTION: OnceLock<AtExit> = OnceLock::new();

    extern "C" fn call(status: c_int, _: *mut c_void) {
        if FUNCTION.get().is_some_and(|function| !function()) {
            // SAFETY: null stands for every open file.
            unsafe { fflush(std::ptr::null_mut()) };
            _exit(status);
        }
    }

    pub fn register(function: AtExit) {
        FUNCTION.get_or_init(|| function);
        // It fails only without memory for one entry; then nothing is called.
        let _ = on_exit(call, std::ptr::null_mut());
    }
}

#[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
mod handler {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    use super::AtExit;

    // SAFETY: this is the declaration of the C library, and the call has no requirements.
    unsafe extern "C" {
        safe fn atexit(handler: extern "C" fn()) -> c_int;
    }

    static FUNCTION: OnceLock<AtExit> = OnceLock::new();

    extern "C" fn call() {
        // The status is not told here, so that the rest is taken down in any case.
        let _ = FUNCTION.get().map(|function| function());
    }

    pub fn register(function: AtExit) {
        FUNCTION.get_or_init(|| function);
        // It fails only without memory for one entry; then nothing is called.
        let _ = atexit(call);
    }
}

#[cfg(not(unix))]
mod handler {
    use super::AtExit;

    /// Where libraries are not taken down while threads run, there is nothing to wait for.
    pub fn register(_: AtExit) {}
}

/// Has a function called when the process ends, before what was there earlier is taken down. Where it says no, the
/// process ends without that, as far as the system can. There is one such function; it must not panic.
pub(crate) fn at_exit(function: AtExit) {
    handler::register(function);
}
