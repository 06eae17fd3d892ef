//! The cache of large blocks, which all threads share.
//!
//! An allocation gets the cached block that wastes least; of equal blocks, the one freed last, which the caches may
//! still hold. A block that would waste more than an eighth is not reused.
//!
//! The cache never holds more than the most that was in use at once, so that no program has more than twice the memory
//! that it needs, and never more than an eighth of the machine's memory. Blocks that were unused for [`MAX_IDLE_TIME`] go back to
//! the system. This is checked whenever a large block is freed, and by an idle thread of the pool. jemalloc, too, waits
//! ten seconds before it releases pages (its `dirty_decay_ms`); programs that use a size repeatedly do so within less
//! time.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use defn_core::memory::limit;

use super::{ALIGN, count, from_system};

/// Blocks from this size on are mapped separately, so that they go back to the system as a whole.
const MAPPED: usize = 1 << 20;

/// The size of a large page. Blocks of at least this size are aligned to it.
const LARGE_PAGE: usize = 2 << 20;

/// Block sizes are multiples of this: the largest of the small page sizes in use.
const PAGE: usize = 16 << 10;

/// The lower bound of the cache's limit.
const FLOOR: usize = 64 << 20;

/// Blocks that were cached for this long go back to the system.
pub(crate) const MAX_IDLE_TIME: Duration = Duration::from_secs(10);

/// The most blocks in the cache: it is searched linearly.
const COUNT: usize = 256;

/// A cached block.
struct CachedBlock {
    start: NonNull<u8>,
    capacity: usize,
    since: Instant,
}

/// The cache.
struct BlockCache {
    /// In the order in which they were freed.
    idle: Vec<CachedBlock>,
    /// The bytes of all cached blocks.
    bytes: usize,
    /// The bytes of blocks in use.
    out: usize,
    /// The maximum of `out`.
    most: usize,
}

impl BlockCache {
    /// Takes the best block for `bytes` bytes.
    fn take(&mut self, bytes: usize) -> Option<CachedBlock> {
        let mut best: Option<(usize, usize)> = None;
        for (index, idle) in self.idle.iter().enumerate().rev() {
            if idle.capacity >= bytes && best.is_none_or(|(_, capacity)| idle.capacity < capacity) {
                best = Some((index, idle.capacity));
                if idle.capacity == bytes {
                    break;
                }
            }
        }
        let (index, capacity) = best.filter(|(_, capacity)| capacity - bytes <= bytes / 8)?;
        self.bytes -= capacity;
        Some(self.idle.remove(index))
    }

    fn count_out(&mut self, capacity: usize) {
        self.out += capacity;
        self.most = self.most.max(self.out);
    }

    /// Removes the blocks that are beyond the limits or too old at `now`, oldest first.
    fn evict(&mut self, now: Instant) -> Vec<CachedBlock> {
        let bound = self.most.max(FLOOR).min(limit() / 8);
        let mut count = 0;
        let old = |idle: &CachedBlock| now.saturating_duration_since(idle.since) >= MAX_IDLE_TIME;
        while let Some(idle) = self.idle.get(count)
            && (self.bytes > bound || self.idle.len() - count > COUNT || old(idle))
        {
            self.bytes -= idle.capacity;
            count += 1;
        }
        self.idle.drain(..count).collect()
    }
}

/// A spin lock that `fork` can take: otherwise a child could inherit a lock held by a thread that it does not have, and
/// would wait for ever.
struct Locked {
    state: AtomicU8,
    cache: UnsafeCell<BlockCache>,
}

/// The lock was not used yet.
const NEW: u8 = 0;
/// The fork handlers are being registered.
const BEGUN: u8 = 1;
const FREE: u8 = 2;
const LOCKED: u8 = 3;

// SAFETY: the cache is accessed under the lock only, and any thread may free a block.
unsafe impl Sync for Locked {}

static LARGE_CACHE: Locked = Locked {
    state: AtomicU8::new(NEW),
    cache: UnsafeCell::new(BlockCache { idle: Vec::new(), bytes: 0, out: 0, most: 0 }),
};

impl Locked {
    /// Takes the lock; None while another thread initialises it.
    fn lock(&self) -> Option<Guard<'_>> {
        for attempt in 0_u64.. {
            match self.state.compare_exchange_weak(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Guard { locked: self }),
                Err(FREE) => {}
                Err(LOCKED) if attempt < 64 => std::hint::spin_loop(),
                Err(LOCKED) => std::thread::yield_now(),
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
        // Without fork handlers nothing is cached: the lock stays in this state.
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
    type Target = BlockCache;

    fn deref(&self) -> &BlockCache {
        // SAFETY: the lock is taken.
        unsafe { &*self.locked.cache.get() }
    }
}

impl std::ops::DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut BlockCache {
        // SAFETY: the lock is taken, and the guard is borrowed exclusively.
        unsafe { &mut *self.locked.cache.get() }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.locked.unlock();
    }
}

/// Registers fork handlers that take the lock before a fork and release it after, in the child too.
#[cfg(unix)]
fn hold_at_forks() -> bool {
    /// Whether `before` has taken the lock; it does not while the lock is initialised.
    static HELD: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" fn before() {
        if let Some(guard) = LARGE_CACHE.lock() {
            // `after` unlocks.
            std::mem::forget(guard);
            HELD.store(true, Ordering::Relaxed);
        }
    }
    unsafe extern "C" fn after() {
        if HELD.swap(false, Ordering::Relaxed) {
            LARGE_CACHE.unlock();
        }
    }
    // SAFETY: both functions may be called at any time, one after the other on one thread.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) == 0 }
}

/// Other systems have no `fork`.
#[cfg(not(unix))]
fn hold_at_forks() -> bool {
    true
}

/// Allocates a block of at least `bytes` bytes; returns it and its size.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
pub(super) fn take(bytes: usize) -> Result<(NonNull<u8>, usize), usize> {
    if bytes > isize::MAX as usize - LARGE_PAGE {
        return Err(defn_core::memory::available());
    }
    let capacity = bytes.next_multiple_of(PAGE);
    let cached = LARGE_CACHE.lock().and_then(|mut cache| {
        let found = cache.take(capacity)?;
        cache.count_out(found.capacity);
        Some(found)
    });
    if let Some(CachedBlock { start, capacity, since: _ }) = cached {
        return Ok((start, capacity));
    }
    let start = from_system(capacity, || allocate_from_system(capacity))?;
    if let Some(mut cache) = LARGE_CACHE.lock() {
        cache.count_out(capacity);
    }
    Ok((start, capacity))
}

/// Frees a block.
///
/// # Safety
/// It was allocated with this size, and is not accessed any more.
pub(super) unsafe fn free(start: NonNull<u8>, capacity: usize) {
    let since = Instant::now();
    let Some(mut cache) = LARGE_CACHE.lock() else {
        // SAFETY: as the caller says.
        return unsafe { to_system(start, capacity) };
    };
    // Blocks allocated while the lock was initialised were not counted.
    cache.out = cache.out.saturating_sub(capacity);
    cache.idle.push(CachedBlock { start, capacity, since });
    cache.bytes += capacity;
    let evict = cache.evict(since);
    drop(cache);
    all_to_system(evict);
}

/// Returns the cached blocks to the system.
pub(super) fn return_cached() {
    if let Some(mut cache) = LARGE_CACHE.lock() {
        cache.bytes = 0;
        let all = std::mem::take(&mut cache.idle);
        drop(cache);
        all_to_system(all);
    }
}

/// Returns the blocks to the system that were cached too long.
pub(crate) fn give_back_old() {
    give_back_at(Instant::now());
}

/// As [`give_back_old`], for the time `now`; returns whether blocks are still cached.
pub(super) fn give_back_at(now: Instant) -> bool {
    let Some(mut cache) = LARGE_CACHE.lock() else { return false };
    let evict = cache.evict(now);
    let rest = !cache.idle.is_empty();
    drop(cache);
    all_to_system(evict);
    rest
}

/// Called without the lock: the system calls are slow.
fn all_to_system(blocks: Vec<CachedBlock>) {
    for CachedBlock { start, capacity, since: _ } in blocks {
        // SAFETY: a cached block came from the system with this size, and is not accessed.
        unsafe { to_system(start, capacity) };
    }
}

/// # Safety
/// The block came from the system with this size, and is not accessed any more.
unsafe fn to_system(start: NonNull<u8>, capacity: usize) {
    count::returned_to_system(capacity);
    if cfg!(unix) && capacity >= MAPPED {
        // SAFETY: as the caller says, and `allocate_from_system` maps blocks of this size.
        unsafe { unmap(start, capacity) };
    } else {
        // SAFETY: as the caller says, and `allocate_from_system` allocates blocks of this size with this layout.
        unsafe { dealloc(start.as_ptr(), layout(capacity)) };
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGN).expect("sizes are checked when blocks are taken")
}

/// Allocates memory from the system.
fn allocate_from_system(capacity: usize) -> Option<NonNull<u8>> {
    if cfg!(unix) && capacity >= MAPPED {
        return map(capacity);
    }
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout(capacity)) })
}

/// Maps memory. Blocks of the size of a large page or more are aligned to large pages, which are requested.
#[cfg(unix)]
fn map(capacity: usize) -> Option<NonNull<u8>> {
    let skipped = if capacity >= LARGE_PAGE { LARGE_PAGE } else { 0 };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new mapping changes no existing one.
    let whole = unsafe { libc::mmap(std::ptr::null_mut(), capacity + skipped, protection, flags, -1, 0) };
    if whole == libc::MAP_FAILED {
        return None;
    }
    let whole = NonNull::new(whole.cast::<u8>())?;
    if skipped == 0 {
        return Some(whole);
    }
    let before = whole.align_offset(LARGE_PAGE);
    // SAFETY: both are inside the mapping, which is `skipped` bytes longer.
    let (start, end) = unsafe { (whole.add(before), whole.add(before + capacity)) };
    for (rest, bytes) in [(whole, before), (end, skipped - before)] {
        if bytes > 0 {
            // SAFETY: the part was just mapped, and shares no page with the block.
            unsafe { unmap(rest, bytes) };
        }
    }
    prefer_large_pages(start, capacity);
    Some(start)
}

#[cfg(not(unix))]
fn map(_: usize) -> Option<NonNull<u8>> {
    unreachable!("blocks are allocated here")
}

/// # Safety
/// The range was mapped, and is not accessed any more.
#[cfg(unix)]
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller says.
    if unsafe { libc::munmap(start.as_ptr().cast(), bytes) } != 0 {
        // `munmap` would split a mapping and fails if there are too many: only addresses are lost then. SAFETY: as the
        // caller says.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    }
}

#[cfg(not(unix))]
unsafe fn unmap(_: NonNull<u8>, _: usize) {
    unreachable!("blocks are allocated here")
}

/// Advises the system that all of the memory will be used. It then maps hundreds of pages at once; page faults one by
/// one take longer than most ops need to write the pages.
#[cfg(target_os = "linux")]
fn prefer_large_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the memory was just mapped, and the advice does not change it. Systems without large pages refuse it,
    // which does no harm.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Other systems decide by themselves.
#[cfg(all(unix, not(target_os = "linux")))]
fn prefer_large_pages(_: NonNull<u8>, _: usize) {}
