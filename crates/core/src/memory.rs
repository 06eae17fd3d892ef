//! The host memory that is still available, so that running out of memory is an error and not an abort.
//!
//! Memory that depends on shapes and elements is requested by functions that may fail ([`reserve`],
//! `try_reserve`). Memory that grows with the length of a graph consists of thousands of small allocations,
//! which Rust's collections make infallibly. An allocator keeps a reserve for them and reports its use
//! ([`note_shortage`]); functions that visit nodes check for it at each node ([`check`]). Requests larger
//! than the reserve are made in advance ([`ahead`]).

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// The size in bytes of an allocation of this thread that used the reserve; 0 for none.
    static SHORTAGE: Cell<usize> = const { Cell::new(0) };
    /// The number of times that this thread was refused memory.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// Whether any thread ever used the reserve. Until then no thread reads its thread-local value, which takes a
/// call.
static WAS_SHORT: AtomicBool = AtomicBool::new(false);

/// The approximate memory in bytes for work on a node: its copies, its values and its plan entries.
const BYTES_PER_NODE: usize = 1 << 10;

/// The largest size in bytes that is not requested in advance.
const UNRESERVED_BYTES: usize = 1 << 20;

/// For an allocator: reports that an allocation of this size by this thread used the reserve.
pub fn note_shortage(bytes: usize) {
    WAS_SHORT.store(true, Ordering::Relaxed);
    SHORTAGE.set(bytes.max(1));
}

/// Clears an unreported shortage of this thread, after its work has ended.
#[inline]
pub fn forget_shortage() {
    if WAS_SHORT.load(Ordering::Relaxed) {
        SHORTAGE.set(0);
    }
}

/// Whether this thread has an unreported shortage.
pub fn is_short() -> bool {
    WAS_SHORT.load(Ordering::Relaxed) && SHORTAGE.get() != 0
}

/// Reports a shortage of this thread. Called once for each node and step.
///
/// # Errors
/// The shortage; the next call reports only later ones.
#[inline]
pub fn check(op: &'static str) -> Result<()> {
    if !WAS_SHORT.load(Ordering::Relaxed) {
        return Ok(());
    }
    match SHORTAGE.replace(0) {
        0 => Ok(()),
        requested => Err(refuse(op, requested)),
    }
}

#[cold]
fn refuse(op: &'static str, requested: usize) -> Error {
    REFUSED.set(REFUSED.get() + 1);
    ErrorKind::OutOfMemory { op, requested, available: 0 }.into()
}

/// The number of times that this thread was refused memory. A check that itself needs memory compares it to
/// find whether its failure is due to memory.
pub(crate) fn refusal_count() -> usize {
    REFUSED.get()
}

/// Requests the memory for work on this number of nodes, before it begins.
///
/// # Errors
/// When less is available.
pub fn ahead(op: &'static str, nodes: usize) -> Result<()> {
    check(op)?;
    let bytes = nodes.saturating_mul(BYTES_PER_NODE);
    if bytes <= UNRESERVED_BYTES {
        return Ok(());
    }
    // The memory is released at once and is then available to the caller.
    std::hint::black_box(with_capacity::<u8>(op, bytes)?);
    Ok(())
}

/// An empty list with capacity for `count` items.
///
/// # Errors
/// When there is no memory for them.
pub fn with_capacity<T>(op: &'static str, count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    grow(op, &mut list, count)?;
    Ok(list)
}

/// Reserves capacity for `count` more items.
///
/// # Errors
/// When there is no memory for them.
pub fn grow<T>(op: &'static str, list: &mut Vec<T>, count: usize) -> Result<()> {
    list.try_reserve(count)
        .map_err(|_| refuse(op, list.len().saturating_add(count).saturating_mul(size_of::<T>())))
}

/// The number of bytes that may be allocated between two reads of the system's counters.
const CREDIT_BYTES: usize = 64 << 20;

/// Bytes that may be taken before the counters are read again.
static REMAINING_CREDIT: AtomicIsize = AtomicIsize::new(0);

/// Checks whether `bytes` may be allocated. Small requests are granted from the credit, without a system
/// call.
///
/// # Errors
/// The number of available bytes, if it is smaller.
pub fn reserve(bytes: usize) -> std::result::Result<(), usize> {
    let requested = isize::try_from(bytes).map_err(|_| available())?;
    if REMAINING_CREDIT.load(Ordering::Relaxed) >= requested {
        // Two threads may both pass and overdraw by their requests: the credit is far below the limit.
        REMAINING_CREDIT.fetch_sub(requested, Ordering::Relaxed);
        return Ok(());
    }
    let available = available();
    if bytes > available {
        return Err(available);
    }
    REMAINING_CREDIT.store(((available - bytes) / 8).min(CREDIT_BYTES) as isize, Ordering::Relaxed);
    Ok(())
}

/// The available bytes: the least remaining memory of the system and each enclosing control group.
pub fn available() -> usize {
    let system = meminfo("MemAvailable:").unwrap_or(usize::MAX);
    groups().iter().filter_map(Group::left).fold(system, usize::min)
}

/// The limit of this process in bytes: the least of the system's memory and the limits of the enclosing
/// control groups. Read once.
pub fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let system = meminfo("MemTotal:").unwrap_or(usize::MAX);
        groups().iter().map(|group| group.limit).fold(system, usize::min)
    })
}

/// A line of the system's memory statistics; None without `/proc`.
fn meminfo(name: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// A control group with a limit.
struct Group {
    limit: usize,
    usage: PathBuf,
    stat: PathBuf,
    /// The line of `stat` that counts the file pages which the kernel reclaims first.
    reclaimable: &'static str,
}

impl Group {
    /// The bytes that the group may still allocate.
    fn left(&self) -> Option<usize> {
        let usage: usize = number(&self.usage)?;
        let stat = fs::read_to_string(&self.stat).unwrap_or_default();
        let cache = stat
            .lines()
            .find_map(|line| line.strip_prefix(self.reclaimable)?.trim().parse::<usize>().ok())
            .unwrap_or(0);
        Some(self.limit.saturating_sub(usage.saturating_sub(cache)))
    }
}

fn number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The control groups that limit this process, found once: limits are set before a process starts.
fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        find_groups(&text, Path::new("/sys/fs/cgroup"))
    })
}

/// Parses the lines `id:controllers:path`; both versions of control groups may be present.
fn find_groups(text: &str, root: &Path) -> Vec<Group> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (base, limit, usage, reclaimable) = if controllers.is_empty() {
            (root.to_owned(), "memory.max", "memory.current", "inactive_file ")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        } else {
            continue;
        };
        // The limit of any ancestor applies; inside a container the path may name groups that are not
        // visible.
        for ancestor in Path::new(path.trim_start_matches('/')).ancestors() {
            let directory = base.join(ancestor);
            // Without a limit the file contains `max`, which is not a number.
            if let Some(limit) = number(&directory.join(limit)) {
                found.push(Group {
                    limit,
                    usage: directory.join(usage),
                    stat: directory.join("memory.stat"),
                    reclaimable,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        let available = reserve(isize::MAX as usize).unwrap_err();
        assert!(available > 0 && available < isize::MAX as usize);
        assert!(reserve(usize::MAX).is_err());
        assert!(reserve(1024).is_ok());
        assert!(available <= limit() && limit() < isize::MAX as usize);
    }

    #[test]
    fn the_limits_of_both_versions_are_read() {
        let root = std::env::temp_dir().join(format!("defn-cgroup-{}", std::process::id()));
        let (new, old) = (root.join("a/b"), root.join("memory/c"));
        fs::create_dir_all(&new).unwrap();
        fs::create_dir_all(&old).unwrap();
        fs::write(new.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.join("a/memory.current"), "700\n").unwrap();
        fs::write(root.join("a/memory.stat"), "anon 500\ninactive_file 200\n").unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "5000\n").unwrap();
        fs::write(old.join("memory.usage_in_bytes"), "4000\n").unwrap();
        let groups = find_groups("3:cpu,memory:/c\n2:pids:/d\n0::/a/b\n", &root);
        let left: Vec<_> = groups.iter().map(Group::left).collect();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(left, [Some(1000), Some(500)]);
    }
}
