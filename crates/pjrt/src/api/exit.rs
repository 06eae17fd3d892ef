//! The end of the process.

/// A function that is called when the process ends. It returns whether the remaining exit handlers may run.
pub(crate) type AtExit = fn() -> bool;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod handler {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;

    use super::AtExit;

    // SAFETY: the declarations match the C library. The functions declared safe have no preconditions.
    unsafe extern "C" {
        safe fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        safe fn _exit(status: c_int) -> !;
        fn fflush(stream: *mut c_void) -> c_int;
    }

    static FUNCTION: OnceLock<AtExit> = OnceLock::new();

    extern "C" fn call(status: c_int, _: *mut c_void) {
        if FUNCTION.get().is_some_and(|function| !function()) {
            // SAFETY: null means all open streams.
            unsafe { fflush(std::ptr::null_mut()) };
            _exit(status);
        }
    }

    pub fn register(function: AtExit) {
        FUNCTION.get_or_init(|| function);
        // It fails only if there is no memory for one entry; then the function is not called.
        let _ = on_exit(call, std::ptr::null_mut());
    }
}

#[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
mod handler {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    use super::AtExit;

    // SAFETY: the declaration matches the C library, and the function has no preconditions.
    unsafe extern "C" {
        safe fn atexit(handler: extern "C" fn()) -> c_int;
    }

    static FUNCTION: OnceLock<AtExit> = OnceLock::new();

    extern "C" fn call() {
        // The exit status is unknown here, so the remaining handlers run in any case.
        let _ = FUNCTION.get().map(|function| function());
    }

    pub fn register(function: AtExit) {
        FUNCTION.get_or_init(|| function);
        // It fails only if there is no memory for one entry; then the function is not called.
        let _ = atexit(call);
    }
}

#[cfg(not(unix))]
mod handler {
    use super::AtExit;

    /// Other systems do not unload libraries while threads run, so there is nothing to wait for.
    pub fn register(_: AtExit) {}
}

/// Registers a function that is called when the process ends, before the handlers that were registered earlier. If it
/// returns false, the process ends without those handlers, as far as the system can. There is one such function; it
/// must not panic.
pub(crate) fn at_exit(function: AtExit) {
    handler::register(function);
}
