//! The large tensors of this process that are alive: what they are, who made them, and what memory they hold.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::location::Location;
use crate::shape::TensorType;

/// From how many bytes of memory on a tensor is listed: what fills memory is large, and a small tensor is made in less
/// time than a list is kept.
pub const LARGE: usize = 64 << 10;

/// What is known of a tensor while its buffer is there.
#[derive(Debug)]
pub struct Live {
    ty: TensorType,
    line: OnceLock<Location>,
    memory: Memory,
    is_gone: AtomicBool,
}

/// The memory that a tensor holds: all of it, of which other tensors may have a part too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where it begins, which says which tensors hold the same.
    pub start: usize,
    /// How many bytes it has.
    pub bytes: usize,
    /// Whether somebody else lends it, such as an array of the host language.
    pub is_borrowed: bool,
}

impl Live {
    /// Says which line made the tensor, unless that is known.
    pub fn made_by(&self, line: impl FnOnce() -> Option<Location>) {
        if self.line.get().is_none()
            && let Some(line) = line()
        {
            // Where two threads say so, the first is heard.
            let _known = self.line.set(line);
        }
    }

    /// Says whether the elements were freed or donated.
    pub fn set_gone(&self, is_gone: bool) {
        self.is_gone.store(is_gone, Ordering::Relaxed);
    }
}

static LIST: Mutex<Vec<Weak<Live>>> = Mutex::new(Vec::new());

/// The list, or nothing where a thread has it that does not give it back: a fork has none of its parent's threads.
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

/// Lists a tensor for as long as the result is held, and its elements are not gone.
pub fn list(ty: &TensorType, memory: Memory) -> Arc<Live> {
    let (line, is_gone) = (OnceLock::new(), AtomicBool::new(false));
    let live = Arc::new(Live { ty: ty.clone(), line, memory, is_gone });
    if let Some(mut list) = lock() {
        // Looked through when it is full, which leaves as many places as are taken: each tensor is met a few times.
        if list.len() == list.capacity() {
            list.retain(|live| live.strong_count() > 0);
            let room = list.len().max(16);
            list.reserve(room);
        }
        list.push(Arc::downgrade(&live));
    }
    live
}

/// Live tensors of one type that one line made.
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
    /// Their type.
    pub ty: TensorType,
    /// The line, where it is known.
    pub line: Option<Location>,
    /// How many there are.
    pub count: usize,
    /// The bytes of the memory that they hold, each part of it counted once.
    pub bytes: usize,
    /// Whether somebody else lends it.
    pub is_borrowed: bool,
    /// Whether tensors of other groups hold some of it too.
    pub is_shared: bool,
}

/// All large tensors that are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// In groups, those that hold most first.
    pub groups: Vec<Group>,
    /// The bytes of their memory that is our own, each part of it counted once.
    pub own: usize,
    /// As much of what others lend.
    pub borrowed: usize,
}

/// All large tensors that are alive.
pub fn alive() -> Alive {
    let listed = lock().map_or_else(Vec::new, |list| list.iter().filter_map(Weak::upgrade).collect());
    let mut alive = Alive::default();
    let mut members: Vec<FxHashSet<usize>> = Vec::new();
    // For each memory how many groups hold it.
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

/// The largest as a part of a sentence for messages; nothing where none is large.
pub fn largest() -> Option<String> {
    let Alive { groups, .. } = alive();
    if groups.is_empty() {
        return None;
    }
    let mut text = "the largest live tensors are ".to_owned();
    for (at, group) in groups.iter().take(5).enumerate() {
        let between = if at == 0 { "" } else { ", " };
        write!(text, "{between}{group}").expect("a string takes any text");
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
        // Sizes that no other test makes.
        let (one, other) = (ty(1_234_567), ty(1_234_566));
        let memory = |start| Memory { start, bytes: 9_876_536, is_borrowed: false };
        let line = Location { file: "user.py".into(), line: 3 };
        let held = [
            list(&one, memory(64)),
            list(&one, memory(64)),
            list(&one, memory(128)),
            list(&other, memory(128)),
        ];
        held[..3].iter().for_each(|live| live.made_by(|| Some(line.clone())));
        held[0].made_by(|| unreachable!("the line is known"));
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
        held[3].set_gone(true);
        assert_eq!(ours().len(), 1);
        assert!(!ours()[0].is_shared);
        held[3].set_gone(false);
        drop(held);
        assert_eq!(ours(), []);
    }
}
