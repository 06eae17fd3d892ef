//! A region: blocks of code in one file in memory.

use std::ptr::NonNull;

use super::system::{self, Views};

/// Blocks begin at multiples of this.
pub(super) const ALIGN: usize = 64;

/// The memory of a region is taken from the system in pieces of this size, a multiple of all page sizes in use.
pub(super) const GRANULE: usize = 64 << 10;

/// A region. It is never moved.
#[derive(Debug)]
pub(super) struct Region {
    run: NonNull<u8>,
    /// None in a child that has inherited the region.
    write: Option<NonNull<u8>>,
    bytes: usize,
    /// Nothing from here on has been used.
    fresh: usize,
    /// The memory up to here has been taken from the system.
    taken: usize,
    /// What has been given back: where it begins and ends, in order, without neighbours.
    free: Vec<(usize, usize)>,
    /// The blocks that exist.
    blocks: usize,
    /// Whether nothing is written any more, because another process may execute what is here.
    is_sealed: bool,
}

/// A range for a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CodeRange {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Whether there was other code before.
    pub(super) is_used: bool,
}

impl Region {
    /// Maps a region of so many bytes, a multiple of [`GRANULE`].
    ///
    /// # Errors
    /// What the system has refused.
    pub(super) fn new(bytes: usize) -> Result<Region, &'static str> {
        let Views { run, write } = system::map(bytes)?;
        let write = Some(write);
        Ok(Region { run, write, bytes, fresh: 0, taken: 0, free: Vec::new(), blocks: 0, is_sealed: false })
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Whether less than half of it has not been used.
    pub(super) fn is_used_up(&self) -> bool {
        self.fresh > self.bytes / 2
    }

    /// Whether an address is in it.
    pub(super) fn has(&self, entry: NonNull<u8>) -> bool {
        (self.run.addr().get()..self.run.addr().get() + self.bytes).contains(&entry.addr().get())
    }

    /// Allocates the smallest range that was released and is large enough for so many bytes, a multiple of
    /// [`ALIGN`].
    pub(super) fn take_free(&mut self, bytes: usize) -> Option<CodeRange> {
        if self.is_sealed {
            return None;
        }
        let fits = self.free.iter().enumerate().filter(|(_, (begin, end))| end - begin >= bytes);
        let (at, &(begin, end)) = fits.min_by_key(|(_, (begin, end))| end - begin)?;
        if end - begin == bytes {
            self.free.remove(at);
        } else {
            self.free[at].0 += bytes;
        }
        self.blocks += 1;
        Some(CodeRange { offset: begin, bytes, is_used: true })
    }

    /// Takes a range at the end of what was used: none of it was, or only its beginning, which has been given back.
    pub(super) fn take_fresh(&mut self, bytes: usize) -> Option<CodeRange> {
        let write = self.write.filter(|_| !self.is_sealed)?;
        let tail = self.free.last().copied().filter(|&(_, end)| end == self.fresh);
        let offset = tail.map_or(self.fresh, |(begin, _)| begin);
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes)?;
        if end > self.taken {
            let taken = end.next_multiple_of(GRANULE);
            // SAFETY: these are whole pages of the view.
            if !unsafe { system::populate(write.as_ptr().add(self.taken), taken - self.taken) } {
                return None;
            }
            self.taken = taken;
        }
        if tail.is_some() {
            self.free.pop();
        }
        self.fresh = self.fresh.max(end);
        self.blocks += 1;
        Some(CodeRange { offset, bytes, is_used: tail.is_some() })
    }

    /// Writes code to an allocated range, and returns where it can be executed.
    pub(super) fn fill(&mut self, range: CodeRange, code: &[u8]) -> NonNull<u8> {
        let CodeRange { offset, bytes, is_used: _ } = range;
        let write = self.write.expect("places are taken from regions that can be written");
        assert!(code.len() <= bytes && offset + bytes <= self.fresh, "a range holds its code");
        // SAFETY: the range is in both views, and no block has it. What is behind the code traps: the byte is `int3` on
        // x86-64, and words of it are no instructions on AArch64.
        unsafe {
            let (to, run) = (write.add(offset), self.run.add(offset));
            to.copy_from_nonoverlapping(NonNull::from(code).cast(), code.len());
            to.add(code.len()).write_bytes(0xCC, bytes - code.len());
            system::clean_caches(to.as_ptr(), run.as_ptr(), bytes);
            run
        }
    }

    /// Releases the range of a block; it is used again if that is wanted.
    pub(super) fn release(&mut self, entry: NonNull<u8>, bytes: usize, again: bool) {
        self.blocks -= 1;
        if self.is_sealed || !again {
            return;
        }
        let begin = entry.addr().get() - self.run.addr().get();
        let end = begin + bytes;
        let at = self.free.partition_point(|&(other, _)| other < begin);
        let joins_next = self.free.get(at).is_some_and(|&(next, _)| next == end);
        let joins_last = at > 0 && self.free[at - 1].1 == begin;
        match (joins_last, joins_next) {
            (true, true) => self.free[at - 1].1 = self.free.remove(at).1,
            (true, false) => self.free[at - 1].1 = end,
            (false, true) => self.free[at].0 = begin,
            (false, false) => self.free.insert(at, (begin, end)),
        }
    }

    /// Forgets what has been given back.
    pub(super) fn forget_free(&mut self) {
        self.free.clear();
    }

    /// After a fork: a child may execute the blocks, so that nothing is written any more if there are any. May be
    /// called at any time.
    pub(super) fn keep_for_child(&mut self) {
        self.is_sealed |= self.blocks > 0;
    }

    /// In a child: the region is the parent's. The writable view has not been inherited, so that its addresses may be
    /// something else. May be called at any time.
    pub(super) fn inherit(&mut self) {
        self.is_sealed = true;
        self.write = None;
    }
}

impl Drop for Region {
    /// Unmaps the region, if no block is in it.
    fn drop(&mut self) {
        if self.blocks > 0 {
            return;
        }
        // SAFETY: both views are the region's, and nothing refers to them.
        unsafe {
            system::unmap(self.run, self.bytes);
            if let Some(write) = self.write {
                system::unmap(write, self.bytes);
            }
        }
    }
}
