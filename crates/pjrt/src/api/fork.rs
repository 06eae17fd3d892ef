//! Whether this process was forked from another. It is asked at every run, so that the system must not be.

#[cfg(unix)]
mod count {
    use std::ffi::c_int;
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    unsafe extern "C" {
        /// POSIX: calls functions before and after every `fork`, in the parent and in the child.
        safe fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    /// How many forks lie between the first process that asked and this one.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    pub fn forks() -> u32 {
        static COUNTED: Once = Once::new();
        if !COUNTED.is_completed() {
            COUNTED.call_once(|| {
                // It fails only without memory for one entry; then a fork goes unseen.
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

/// A number that changes in the child of a fork: equal numbers are of one process.
pub(crate) fn forks() -> u32 {
    count::forks()
}
