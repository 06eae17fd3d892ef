//! Whose process this is.

/// The number of the user whose rights this process has.
#[cfg(unix)]
pub(crate) fn user() -> u32 {
    // SAFETY: this is the declaration of the C library, and the call has no requirements.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    geteuid()
}
