//! Large blocks, which all threads keep together.
//!
//! Of what is kept the block is given that wastes least; where several are as good, the one that was freed last, which
//! the caches may still hold. A block that would waste more than an eighth is not given: it is as well given back.
//!
//! What is kept is never more than the most that was in use at once, so that no program has more than twice of what it
//! needs, and never more than an eighth of the machine's memory. What was not used for [`AGE`] is given back, which is
//! looked after whenever a large block is freed, and by a thread of the pool that has nothing to do. Ten seconds are
//! what jemalloc waits too before it lets go of pages (its `dirty_decay_ms`); programs that come back to a size do so
//! sooner.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use defn_core::memory::limit;

use super::{ALIGN, count, from_system};

/// From how many bytes on blocks are mapped for themselves, so that they go back to the system whole.
const MAPPED: usize = 1 << 20;

/// Large pages are of so many bytes, and blocks of as many are aligned to them.
const LARGE_PAGE: usize = 2 << 20;

/// Blocks are multiples of this: the largest of the small pages in use.
const PAGE: usize = 16 << 10;

/// What may be kept at least.
const FLOOR: usize = 64 << 20;

/// What was kept for so long is given back.
pub(crate) const AGE: Duration = Duration::from_secs(10);

/// Blocks that are kept at most: they are looked through one after the other.
const COUNT: usize = 256;

/// A block that is kept.
struct Idle {
    start: NonNull<u8>,
    room: usize,
    since: Instant,
}

/// All that are kept.
struct Kept {
    /// In the order in which they were freed.
    idle: Vec<Idle>,
    /// The bytes of all.
    bytes: usize,
    /// The bytes of blocks that are in use.
    out: usize,
    /// The most that were.
    most: usize,
}

impl Kept {
    /// Takes the best block for so many bytes.
    fn take(&mut self, bytes: usize) -> Option<Idle> {
        let mut best: Option<(usize, usize)> = None;
        for (place, idle) in self.idle.iter().enumerate().rev() {
            if idle.room >= bytes && best.is_none_or(|(_, room)| idle.room < room) {
                best = Some((place, idle.room));
                if idle.room == bytes {
                    break;
                }
            }
        }
        let (place, room) = best.filter(|(_, room)| room - bytes <= bytes / 8)?;
        self.bytes -= room;
        Some(self.idle.remove(place))
    }

    fn count_out(&mut self, room: usize) {
        self.out += room;
        self.most = self.most.max(self.out);
    }

    /// Takes out what is too much or too old at a time, oldest first.
    fn surplus(&mut self, now: Instant) -> Vec<Idle> {
        let bound = self.most.max(FLOOR).min(limit() / 8);
        let mut count = 0;
        let old = |idle: &Idle| now.saturating_duration_since(idle.since) >= AGE;
        while let Some(idle) = self.idle.get(count)
            && (self.bytes > bound || self.idle.len() - count > COUNT || old(idle))
        {
            self.bytes -= idle.room;
            count += 1;
        }
        self.idle.drain(..count).collect()
    }
}

/// A lock that a fork can hold: the child would wait for ever for a thread that it does not have.
struct Locked {
    state: AtomicU8,
    kept: UnsafeCell<Kept>,
}

/// Nobody has asked for the lock yet.
const NEW: u8 = 0;
/// Forks are being told of it.
const BEGUN: u8 = 1;
const FREE: u8 = 2;
const TAKEN: u8 = 3;

// SAFETY: what is kept is reached by who has taken the lock, and any thread may give a block back.
unsafe impl Sync for Locked {}

static KEPT: Locked = Locked {
    state: AtomicU8::new(NEW),
    kept: UnsafeCell::new(Kept { idle: Vec::new(), bytes: 0, out: 0, most: 0 }),
};

impl Locked {
    /// Waits for the lock; none while another thread sets it up.
    fn lock(&self) -> Option<Guard<'_>> {
        for turn in 0_u64.. {
            match self.state.compare_exchange_weak(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Guard { locked: self }),
                Err(FREE) => {}
                Err(TAKEN) if turn < 64 => std::hint::spin_loop(),
                Err(TAKEN) => std::thread::yield_now(),
                Err(BEGUN) => return None,
                Err(_) => self.set_up(),
            }
        }
        None
    }

    #[cold]
    fn set_up(&self) {
        if self.state.compare_exchange(NEW, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        // Where forks cannot be told, nothing is kept: the lock stays as it is.
        if hold_at_forks() {
            self.state.store(FREE, Ordering::Release);
        }
    }

    fn unlock(&self) {
        self.state.store(FREE, Ordering::Release);
    }
}

struct Guard<'a> {
    locked: &'a Locked,
}

impl std::ops::Deref for Guard<'_> {
    type Target = Kept;

    fn deref(&self) -> &Kept {
        // SAFETY: the lock is taken.
        unsafe { &*self.locked.kept.get() }
    }
}

impl std::ops::DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Kept {
        // SAFETY: the lock is taken, and the guard borrowed alone.
        unsafe { &mut *self.locked.kept.get() }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.locked.unlock();
    }
}

/// Makes whoever forks take the lock before and leave it after, in the child too.
#[cfg(unix)]
fn hold_at_forks() -> bool {
    /// Whether `before` has taken the lock: not while it is set up.
    static HELD: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" fn before() {
        if let Some(guard) = KEPT.lock() {
            // `after` unlocks.
            std::mem::forget(guard);
            HELD.store(true, Ordering::Relaxed);
        }
    }
    unsafe extern "C" fn after() {
        if HELD.swap(false, Ordering::Relaxed) {
            KEPT.unlock();
        }
    }
    // SAFETY: both functions may be called at any time, one after the other on one thread.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) == 0 }
}

/// Other systems have no forks.
#[cfg(not(unix))]
fn hold_at_forks() -> bool {
    true
}

/// A block of at least so many bytes, and its room.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
pub(super) fn take(bytes: usize) -> Result<(NonNull<u8>, usize), usize> {
    if bytes > isize::MAX as usize - LARGE_PAGE {
        return Err(defn_core::memory::available());
    }
    let room = bytes.next_multiple_of(PAGE);
    let kept = KEPT.lock().and_then(|mut kept| {
        let found = kept.take(room)?;
        kept.count_out(found.room);
        Some(found)
    });
    if let Some(Idle { start, room, since: _ }) = kept {
        return Ok((start, room));
    }
    let start = from_system(room, || ask(room))?;
    if let Some(mut kept) = KEPT.lock() {
        kept.count_out(room);
    }
    Ok((start, room))
}

/// Takes a block back.
///
/// # Safety
/// It was taken with this room, and nobody refers to it any more.
pub(super) unsafe fn give(start: NonNull<u8>, room: usize) {
    let since = Instant::now();
    let Some(mut kept) = KEPT.lock() else {
        // SAFETY: as the caller says.
        return unsafe { to_system(start, room) };
    };
    // What was taken while the lock was set up was not counted.
    kept.out = kept.out.saturating_sub(room);
    kept.idle.push(Idle { start, room, since });
    kept.bytes += room;
    let surplus = kept.surplus(since);
    drop(kept);
    all_to_system(surplus);
}

/// Gives back to the system what is kept.
pub(super) fn give_back() {
    if let Some(mut kept) = KEPT.lock() {
        kept.bytes = 0;
        let all = std::mem::take(&mut kept.idle);
        drop(kept);
        all_to_system(all);
    }
}

/// Gives back to the system what was kept too long.
pub(crate) fn give_back_old() {
    give_back_at(Instant::now());
}

/// As [`give_back_old`] does at a time; whether anything is still kept.
pub(super) fn give_back_at(now: Instant) -> bool {
    let Some(mut kept) = KEPT.lock() else { return false };
    let surplus = kept.surplus(now);
    let rest = !kept.idle.is_empty();
    drop(kept);
    all_to_system(surplus);
    rest
}

/// The lock is not held: the system takes its time.
fn all_to_system(blocks: Vec<Idle>) {
    for Idle { start, room, since: _ } in blocks {
        // SAFETY: what was kept came from the system with this room, and nobody refers to it.
        unsafe { to_system(start, room) };
    }
}

/// # Safety
/// The block came from the system with this room, and nobody refers to it.
unsafe fn to_system(start: NonNull<u8>, room: usize) {
    count::let_go(room);
    if cfg!(unix) && room >= MAPPED {
        // SAFETY: as the caller says, and `ask` maps such rooms.
        unsafe { unmap(start, room) };
    } else {
        // SAFETY: as the caller says, and `ask` allocates such rooms by this layout.
        unsafe { dealloc(start.as_ptr(), layout(room)) };
    }
}

fn layout(room: usize) -> Layout {
    Layout::from_size_align(room, ALIGN).expect("sizes are checked when blocks are taken")
}

/// Memory from the system.
fn ask(room: usize) -> Option<NonNull<u8>> {
    if cfg!(unix) && room >= MAPPED {
        return map(room);
    }
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout(room)) })
}

/// Maps memory; where there is room for large pages it is aligned to them, and they are asked for.
#[cfg(unix)]
fn map(room: usize) -> Option<NonNull<u8>> {
    let skipped = if room >= LARGE_PAGE { LARGE_PAGE } else { 0 };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new mapping changes nothing that is there.
    let whole = unsafe { libc::mmap(std::ptr::null_mut(), room + skipped, protection, flags, -1, 0) };
    if whole == libc::MAP_FAILED {
        return None;
    }
    let whole = NonNull::new(whole.cast::<u8>())?;
    if skipped == 0 {
        return Some(whole);
    }
    let before = whole.align_offset(LARGE_PAGE);
    // SAFETY: both are inside the mapping, which has so many bytes more.
    let (start, end) = unsafe { (whole.add(before), whole.add(before + room)) };
    for (rest, bytes) in [(whole, before), (end, skipped - before)] {
        if bytes > 0 {
            // SAFETY: the part was just mapped, and is in pages of which the block has none.
            unsafe { unmap(rest, bytes) };
        }
    }
    prefer_large_pages(start, room);
    Some(start)
}

#[cfg(not(unix))]
fn map(_: usize) -> Option<NonNull<u8>> {
    unreachable!("blocks are allocated here")
}

/// # Safety
/// The range was mapped, and nobody refers to it.
#[cfg(unix)]
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller says.
    if unsafe { libc::munmap(start.as_ptr().cast(), bytes) } != 0 {
        // A mapping would be cut in two and there are too many: only the addresses are lost.
        // SAFETY: as the caller says.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }
}

#[cfg(not(unix))]
unsafe fn unmap(_: NonNull<u8>, _: usize) {
    unreachable!("blocks are allocated here")
}

/// Tells the system that all of the memory will be used: it then maps hundreds of pages at once, where one after
/// the other takes longer than most operations take to write them.
#[cfg(target_os = "linux")]
fn prefer_large_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the memory was just mapped, and the advice changes none of it. Systems without large pages refuse it,
    // which does no harm.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Other systems choose themselves.
#[cfg(all(unix, not(target_os = "linux")))]
fn prefer_large_pages(_: NonNull<u8>, _: usize) {}
