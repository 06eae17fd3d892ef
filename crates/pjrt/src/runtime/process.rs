//! The process that a client belongs to. Threads and devices do not survive a fork, so a forked process rejects what
//! was started before the fork, and does not free it.

use defn_core::Result;
use defn_core::device::DeviceError;

use crate::api::forks;

/// The process in which something was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    forks: u32,
}

impl Process {
    /// The current process.
    pub fn this() -> Process {
        Process { id: std::process::id(), forks: forks() }
    }

    /// Whether the current process is this one.
    pub fn is_this(self) -> bool {
        self.forks == forks()
    }

    /// Rejects a process that was forked from this one.
    ///
    /// # Errors
    /// The current process is another one.
    pub fn require(self, op: &'static str, client: &str) -> Result<()> {
        if self.is_this() {
            return Ok(());
        }
        let (client, parent, child) = (client.to_owned(), self.id, std::process::id());
        Err(DeviceError::Forked { op, client, parent, child }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_is_refused() {
        let this = Process::this();
        assert!(this.require("add", "host").is_ok());
        let parent = Process { id: this.id + 1, forks: this.forks + 1 };
        assert_eq!(
            parent.require("add", "host").unwrap_err().to_string(),
            format!(
                "add: the client \"host\" was started by process {} and this is its fork {}, a client of this process is required; start processes by \"spawn\", or start the client after the fork",
                parent.id, this.id
            )
        );
    }
}
