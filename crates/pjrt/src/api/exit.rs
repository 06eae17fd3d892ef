//! The end of the process.

#[cfg(unix)]
mod handler {
    use std::ffi::c_int;

    // SAFETY: this is the declaration of the C library, and the call has no requirements.
    unsafe extern "C" {
        safe fn atexit(handler: extern "C" fn()) -> c_int;
    }

    pub fn register(handler: extern "C" fn()) {
        // It fails only without memory for one entry; then nothing is called.
        let _ = atexit(handler);
    }
}

#[cfg(not(unix))]
mod handler {
    /// Where libraries are not taken down while threads run, there is nothing to wait for.
    pub fn register(_: extern "C" fn()) {}
}

/// Has a function called when the process ends, before what was there earlier is taken down. It must not panic.
pub(crate) fn at_exit(function: extern "C" fn()) {
    handler::register(function);
}
