//! Detects whether this process was forked. Every run checks this, so the check makes no system call.

#[cfg(unix)]
mod count {
    use std::ffi::c_int;
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    unsafe extern "C" {
        /// POSIX: registers functions to call before and after every `fork`, in the parent and in the child.
        safe fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    /// The number of forks between the first process that called `forks` and this one.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    pub fn forks() -> u32 {
        static COUNTED: Once = Once::new();
        if !COUNTED.is_completed() {
            COUNTED.call_once(|| {
                // It fails only if there is no memory for one entry; then forks are not detected.
                let _ = pthread_atfork(None, None, Some(in_child));
            });
        }
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(unix))]
mod count {
    /// There are no forks.
    pub fn forks() -> u32 {
        0
    }
}

/// A number that changes in the child of a fork: equal numbers mean the same process.
pub(crate) fn forks() -> u32 {
    count::forks()
}
