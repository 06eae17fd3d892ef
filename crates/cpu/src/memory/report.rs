//! Live tensors and the lines that made them, as values and as a table.

use std::fmt;

use defn_core::live::{Alive, Group, alive};

use super::{held_bytes, live_bytes, peak_bytes};

/// The memory of this process's tensors on the CPU at one moment.
///
/// ```
/// let report = defn_cpu::memory_report();
/// assert!(report.peak >= report.live);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Bytes that tensors and running programs have allocated and not freed: exact, without rounding.
    pub live: usize,
    /// The maximum of `live`.
    pub peak: usize,
    /// Further bytes obtained from the system: cached freed memory, and rounding.
    pub cached: usize,
    /// Bytes in large tensors that came from values of the host language: borrowed memory, or a copy.
    pub borrowed: usize,
    /// Live bytes that belong to no listed tensor: small tensors, and memory of programs.
    pub unlisted: usize,
    /// The tensors of 64 KiB or more, grouped by type and line, largest groups first.
    pub tensors: Vec<Group>,
}

/// The memory in use now. Other threads may make and free tensors meanwhile.
///
/// ```
/// let report = defn_cpu::memory_report();
/// assert!(report.tensors.is_empty());
/// assert!(report.to_string().ends_with("no live tensor holds 64 KiB or more"));
/// ```
pub fn memory_report() -> MemoryReport {
    let Alive { groups, own, borrowed } = alive();
    let (live, held) = (live_bytes(), held_bytes());
    MemoryReport {
        live,
        peak: peak_bytes(),
        cached: held.saturating_sub(live),
        borrowed,
        unlisted: live.saturating_sub(own),
        tensors: groups,
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryReport { live, peak, cached, borrowed, unlisted, tensors } = self;
        let rows = [("live", live), ("peak", peak), ("cached", cached), ("borrowed", borrowed)];
        for (name, bytes) in rows {
            writeln!(f, "{name:<8} {bytes:>15} bytes")?;
        }
        if tensors.is_empty() {
            return write!(f, "no live tensor holds 64 KiB or more");
        }
        write!(f, "{:>15}  {:>6}  tensors", "bytes", "count")?;
        for Group { ty, line, count, bytes, is_borrowed, is_shared } in tensors {
            write!(f, "\n{bytes:>15}  {count:>6}  {ty}")?;
            if let Some(line) = line {
                write!(f, "  made at {line}")?;
            }
            if *is_borrowed {
                write!(f, ", borrowed")?;
            }
            if *is_shared {
                write!(f, ", shared with others")?;
            }
        }
        write!(f, "\n{unlisted:>15}  {:>6}  in smaller tensors and in programs", "")
    }
}
