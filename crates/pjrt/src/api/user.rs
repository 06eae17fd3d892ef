//! The user of this process.

/// The effective user id of this process.
#[cfg(unix)]
pub(crate) fn user() -> u32 {
    // SAFETY: the declaration matches the C library, and the function has no preconditions.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    geteuid()
}
