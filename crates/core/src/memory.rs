//! How much memory of the host may still be taken, so that asking for too much is an error and not an abort.
//!
//! What depends on shapes and elements is asked for by what may refuse ([`reserve`], `try_reserve`). What grows with the
//! length of a graph is spread over thousands of small allocations, which Rust's collections make without asking: an
//! allocator that keeps a spare for them notes that it was used ([`note_shortage`]), and who walks over nodes looks at
//! each ([`check`]). What takes more at once than the spare is asked for ahead ([`ahead`]).

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// The bytes of an allocation of this thread for which only the spare was left, 0 for none.
    static SHORT: Cell<usize> = const { Cell::new(0) };
    /// How often this thread was refused memory.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// Whether any thread ever was short: until then none looks at its own place, which takes a call.
static WAS_SHORT: AtomicBool = AtomicBool::new(false);

/// Bytes that working on a node takes, about: its copies, its values and its places in a plan.
const NODE: usize = 1 << 10;

/// What is taken without asking for it ahead.
const SMALL: usize = 1 << 20;

/// For an allocator: only what it keeps for this case was left for so many bytes of this thread.
pub fn note_shortage(bytes: usize) {
    WAS_SHORT.store(true, Ordering::Relaxed);
    SHORT.set(bytes.max(1));
}

/// Forgets a shortage of this thread that nobody was told of: what was to be done is over.
#[inline]
pub fn forget_shortage() {
    if WAS_SHORT.load(Ordering::Relaxed) {
        SHORT.set(0);
    }
}

/// Whether this thread came to an end of the memory, and nobody was told.
pub fn is_short() -> bool {
    WAS_SHORT.load(Ordering::Relaxed) && SHORT.get() != 0
}

/// Stops what this thread does where it came to an end of the memory. Asked once for each node and step.
///
/// # Errors
/// It did; the next one is told only of what came after.
#[inline]
pub fn check(op: &'static str) -> Result<()> {
    if !WAS_SHORT.load(Ordering::Relaxed) {
        return Ok(());
    }
    match SHORT.replace(0) {
        0 => Ok(()),
        requested => Err(refuse(op, requested)),
    }
}

#[cold]
fn refuse(op: &'static str, requested: usize) -> Error {
    REFUSED.set(REFUSED.get() + 1);
    ErrorKind::OutOfMemory { op, requested, available: 0 }.into()
}

/// How often this thread was refused memory: who finds fault with something that takes memory to look at knows then whether
/// that is the fault.
pub(crate) fn refused() -> usize {
    REFUSED.get()
}

/// Asks for the memory that working on so many nodes takes, before it is begun.
///
/// # Errors
/// There is less.
pub fn ahead(op: &'static str, nodes: usize) -> Result<()> {
    check(op)?;
    let bytes = nodes.saturating_mul(NODE);
    if bytes <= SMALL {
        return Ok(());
    }
    // What is given back at once is there for who asks next.
    std::hint::black_box(room::<u8>(op, bytes)?);
    Ok(())
}

/// An empty list with room for so many items.
///
/// # Errors
/// There is no memory for them.
pub fn room<T>(op: &'static str, count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    grow(op, &mut list, count)?;
    Ok(list)
}

/// Makes room for so many more items.
///
/// # Errors
/// There is no memory for them.
pub fn grow<T>(op: &'static str, list: &mut Vec<T>, count: usize) -> Result<()> {
    list.try_reserve(count)
        .map_err(|_| refuse(op, list.len().saturating_add(count).saturating_mul(size_of::<T>())))
}

/// How many bytes are handed out between two looks at the system's counters.
const CREDIT: usize = 64 << 20;

/// Bytes that may be taken before the counters are read again.
static LEFT: AtomicIsize = AtomicIsize::new(0);

/// Asks whether `bytes` may be allocated. Small requests are answered from credit, without a system call.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
pub fn reserve(bytes: usize) -> std::result::Result<(), usize> {
    let wanted = isize::try_from(bytes).map_err(|_| available())?;
    if LEFT.load(Ordering::Relaxed) >= wanted {
        // Two threads may both pass and overdraw by what they ask for: the credit is far below the limit.
        LEFT.fetch_sub(wanted, Ordering::Relaxed);
        return Ok(());
    }
    let available = available();
    if bytes > available {
        return Err(available);
    }
    LEFT.store(((available - bytes) / 8).min(CREDIT) as isize, Ordering::Relaxed);
    Ok(())
}

/// Bytes that can be had: the least of what the system and each enclosing control group leave.
pub fn available() -> usize {
    let system = meminfo("MemAvailable:").unwrap_or(usize::MAX);
    groups().iter().filter_map(Group::left).fold(system, usize::min)
}

/// Bytes that this process could have at most: the least of what the system has and the limit of each enclosing control
/// group. Read once.
pub fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let system = meminfo("MemTotal:").unwrap_or(usize::MAX);
        groups().iter().map(|group| group.limit).fold(system, usize::min)
    })
}

/// A line of what the system says about its memory; none where there is no `/proc`.
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
    /// The line of `stat` that counts file pages which the kernel gives up first.
    reclaimable: &'static str,
}

impl Group {
    /// What the group may still take.
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

/// The groups that limit this process, found once: limits are set before a process starts.
fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        find_groups(&text, Path::new("/sys/fs/cgroup"))
    })
}

/// Reads the lines `id:controllers:path`; both versions of control groups may be there.
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
        // A limit of any ancestor binds; inside a container the path may name groups that cannot be seen.
        for ancestor in Path::new(path.trim_start_matches('/')).ancestors() {
            let directory = base.join(ancestor);
            // Without a limit the file says `max`, which is no number.
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
