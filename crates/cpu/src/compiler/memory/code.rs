//! Executable memory: an arena for generated code.
//!
//! The arena consists of regions (`region`). A region is a file in memory (memfd) that is mapped twice: code is written
//! through one view and executed through the other. So no mapping is ever writable and executable, code is added
//! without a system call, and processes that must not make writable memory executable (`PR_SET_MDWE`, systemd's
//! `MemoryDenyWriteExecute`) can have code, too. Where the system refuses such mappings, [`available`] says so, and
//! nothing else happens.
//!
//! **Addresses are used again.** A processor may have fetched what was at an address before. So code at an address that
//! has had other code is handed out only after a `membarrier` that makes every thread of the process synchronize its
//! instructions. Where the system has none, addresses are not used again. What a region occupies goes back to the
//! system when it is used up and its last block is gone: nothing can have been fetched through a mapping that is new.
//! AArch64 asks for the barrier for any new code; there is no code without it.
//!
//! **Forks.** A file in memory is shared with a child. So after a fork neither side writes to regions that have blocks:
//! the child may still execute what the parent gives back, and the other way round. Both begin new regions, and unmap
//! an old one when its last block is gone. The writable view is not even inherited. Handlers of `pthread_atfork` do
//! this. Processes that are made without them, by the system call itself, find out that they are another one; but their
//! parent does not know of them and must not give back code that they execute.
//!
//! With `DEFN_PERF=1` the names of blocks are written to the file where `perf` looks for them. They are not registered
//! with GDB.

#[cfg(target_os = "linux")]
mod arena;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod region;
#[cfg(target_os = "linux")]
mod system;
#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;

use std::ptr::NonNull;

#[cfg(target_os = "linux")]
use lock::ARENA;

/// The arena of the process.
#[derive(Debug)]
pub(crate) struct CodeMemory;

/// Code that can be executed until this is dropped.
#[derive(Debug)]
pub(crate) struct CodeBlock {
    entry: NonNull<u8>,
    length: usize,
}

// SAFETY: the code is not written while the block exists, and any thread may give it back.
unsafe impl Send for CodeBlock {}
// SAFETY: as above.
unsafe impl Sync for CodeBlock {}

impl CodeMemory {
    /// Makes a copy of code that can be executed. It must run at any address that is a multiple of 64. `name` is for
    /// profilers. None if there is no executable memory, or no more of it.
    #[cfg(target_os = "linux")]
    pub(crate) fn add(code: &[u8], name: &str) -> Option<CodeBlock> {
        let mut state = ARENA.lock();
        let entry = state.arena().ok()?.add(code, name)?;
        Some(CodeBlock { entry, length: code.len() })
    }

    /// No code is generated for other systems.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn add(_: &[u8], _: &str) -> Option<CodeBlock> {
        None
    }
}

/// Whether there is executable memory, which is tried out once.
///
/// # Errors
/// Why there is none.
#[cfg(target_os = "linux")]
pub(crate) fn available() -> Result<(), &'static str> {
    ARENA.lock().arena().map(drop)
}

/// Whether there is executable memory.
///
/// # Errors
/// There is none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn available() -> Result<(), &'static str> {
    Err("code is generated on Linux only")
}

impl CodeBlock {
    /// The address of the first instruction.
    pub(crate) fn entry(&self) -> *const u8 {
        self.entry.as_ptr()
    }

    /// The bytes of the code.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

#[cfg(target_os = "linux")]
impl Drop for CodeBlock {
    fn drop(&mut self) {
        if let Ok(arena) = ARENA.lock().arena() {
            arena.release(self.entry, self.length);
        }
    }
}
