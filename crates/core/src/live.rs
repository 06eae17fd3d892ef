//! The large live tensors of this process: their types, the user's lines that created them, and their memory.
//!
//! The code that creates a tensor's handle lists the tensor, not the run that computes it: there the user's
//! line is known, and a run need not ask the interpreter for it.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::location::Location;
use crate::shape::TensorType;

/// The minimum size in bytes of a listed tensor: small tensors rarely exhaust memory, and are created faster
/// than they could be listed.
pub const LARGE: usize = 64 << 10;

/// The entry of a tensor while its buffer exists.
#[derive(Debug)]
pub struct Live {
    ty: TensorType,
    line: OnceLock<Location>,
    memory: Memory,
    is_gone: AtomicBool,
}

/// The memory block that a tensor uses; other tensors may use parts of it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its start address, which identifies the block.
    pub start: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// Whether it is borrowed, for example from an array of the host language.
    pub is_borrowed: bool,
}

impl Live {
    /// Records the line that created the tensor, unless a line is recorded.
    pub fn set_line(&self, line: impl FnOnce() -> Option<Location>) {
        if self.line.get().is_none()
            && let Some(line) = line()
        {
            // If two threads record a line, the first one wins.
            let _known = self.line.set(line);
        }
    }

    /// Records whether the elements were freed or donated.
    pub fn set_gone(&self, is_gone: bool) {
        self.is_gone.store(is_gone, Ordering::Relaxed);
    }
}

static LIST: Mutex<Vec<Weak<Live>>> = Mutex::new(Vec::new());

/// Locks the list. None if another thread does not release it: after a fork the parent's threads do not
/// exist.
fn lock() -> Option<MutexGuard<'static, Vec<Weak<Live>>>> {
    for _ in 0..10_000 {
        match LIST.try_lock() {
            Ok(list) => return Some(list),
            Err(TryLockError::Poisoned(list)) => return Some(PoisonError::into_inner(list)),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// Lists a tensor until the result is dropped or its elements are gone.
pub fn list(ty: &TensorType, memory: Memory) -> Arc<Live> {
    let (line, is_gone) = (OnceLock::new(), AtomicBool::new(false));
    let live = Arc::new(Live { ty: ty.clone(), line, memory, is_gone });
    if let Some(mut list) = lock() {
        // Cleaned when it is full, and then given as much spare capacity as it has entries: amortized, an
        // entry is visited a few times.
        if list.len() == list.capacity() {
            list.retain(|live| live.strong_count() > 0);
            let spare_capacity = list.len().max(16);
            list.reserve(spare_capacity);
        }
        list.push(Arc::downgrade(&live));
    }
    live
}

/// Live tensors of one type from one user line.
///
/// ```
/// use defn_core::live::{Memory, alive, list};
/// use defn_core::{DType, Shape, TensorType};
/// let ty = TensorType::new(DType::F32, Shape::new(&[65536]))?;
/// let _held = list(&ty, Memory { start: 64, bytes: 262144, is_borrowed: false });
/// let groups = alive().groups;
/// assert_eq!((groups[0].count, groups[0].bytes), (1, 262144));
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The type.
    pub ty: TensorType,
    /// The line, if it is known.
    pub line: Option<Location>,
    /// The number of tensors.
    pub count: usize,
    /// The size of their memory in bytes, shared blocks counted once.
    pub bytes: usize,
    /// Whether the memory is borrowed.
    pub is_borrowed: bool,
    /// Whether tensors of other groups also use some of the memory.
    pub is_shared: bool,
}

/// All large live tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// The groups, largest memory first.
    pub groups: Vec<Group>,
    /// The bytes of memory that is our own, shared blocks counted once.
    pub own: usize,
    /// The bytes of borrowed memory.
    pub borrowed: usize,
}

/// All large live tensors.
pub fn alive() -> Alive {
    let listed = lock().map_or_else(Vec::new, |list| list.iter().filter_map(Weak::upgrade).collect());
    let mut alive = Alive::default();
    let mut members: Vec<FxHashSet<usize>> = Vec::new();
    // For each memory block, the number of groups that use it.
    let mut holders: FxHashMap<usize, usize> = FxHashMap::default();
    for live in listed.iter().filter(|live: &&Arc<Live>| !live.is_gone.load(Ordering::Relaxed)) {
        let (line, memory) = (live.line.get(), live.memory);
        let is_of = |group: &Group| {
            group.ty == live.ty && group.line.as_ref() == line && group.is_borrowed == memory.is_borrowed
        };
        let at = alive.groups.iter().position(is_of).unwrap_or_else(|| {
            let (ty, line, is_borrowed) = (live.ty.clone(), line.cloned(), memory.is_borrowed);
            alive.groups.push(Group { ty, line, count: 0, bytes: 0, is_borrowed, is_shared: false });
            members.push(FxHashSet::default());
            members.len() - 1
        });
        let group = &mut alive.groups[at];
        group.count += 1;
        if members[at].insert(memory.start) {
            group.bytes += memory.bytes;
            let holders = holders.entry(memory.start).or_insert(0);
            *holders += 1;
            if *holders == 1 {
                *(if memory.is_borrowed { &mut alive.borrowed } else { &mut alive.own }) += memory.bytes;
            }
        }
    }
    for (group, starts) in alive.groups.iter_mut().zip(&members) {
        group.is_shared = starts.iter().any(|start| holders[start] > 1);
    }
    alive.groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    alive
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{} of {} bytes", self.ty, self.bytes)?,
            count => write!(f, "{count} of {} in {} bytes", self.ty, self.bytes)?,
        }
        match &self.line {
            Some(line) => write!(f, " made at {line}"),
            None => Ok(()),
        }
    }
}

/// The largest groups, as part of a sentence for messages; None if there are no large tensors.
pub fn largest() -> Option<String> {
    let Alive { groups, .. } = alive();
    if groups.is_empty() {
        return None;
    }
    let mut text = "the largest live tensors are ".to_owned();
    for (at, group) in groups.iter().take(5).enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        write!(text, "{separator}{group}").expect("a string takes any text");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Shape};

    #[test]
    fn groups_count_memory_once() {
        let ty = |size| TensorType { dtype: DType::F64, shape: Shape::new(&[size]) };
        // Sizes that no other test uses.
        let (one, other) = (ty(1_234_567), ty(1_234_566));
        let memory = |start| Memory { start, bytes: 9_876_536, is_borrowed: false };
        let line = Location { file: "user.py".into(), line: 3 };
        let tensors = [
            list(&one, memory(64)),
            list(&one, memory(64)),
            list(&one, memory(128)),
            list(&other, memory(128)),
        ];
        tensors[..3].iter().for_each(|live| live.set_line(|| Some(line.clone())));
        tensors[0].set_line(|| unreachable!("the line is known"));
        let ours = || {
            let is_ours = |group: &Group| group.ty == one || group.ty == other;
            alive().groups.into_iter().filter(is_ours).collect::<Vec<_>>()
        };
        let groups = ours();
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].count, groups[0].bytes, groups[0].is_shared), (3, 2 * 9_876_536, true));
        assert_eq!(groups[0].to_string(), "3 of f64[1234567] in 19753072 bytes made at user.py:3");
        assert_eq!((groups[1].count, groups[1].bytes, groups[1].is_shared), (1, 9_876_536, true));
        assert_eq!(groups[1].to_string(), "f64[1234566] of 9876536 bytes");
        tensors[3].set_gone(true);
        assert_eq!(ours().len(), 1);
        assert!(!ours()[0].is_shared);
        tensors[3].set_gone(false);
        drop(tensors);
        assert_eq!(ours(), []);
    }
}
