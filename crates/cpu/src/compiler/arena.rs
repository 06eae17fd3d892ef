//! Where values lie in the one block of memory that a run has for what it does not give.

use std::collections::{BTreeMap, BTreeSet};

/// What values begin at a multiple of: a cache line.
const ALIGN: usize = 64;

/// The block as it is given out, step by step.
#[derive(Debug, Default)]
pub(super) struct Arena {
    /// Free ranges by where they begin.
    free: BTreeMap<usize, usize>,
    /// The same by how long they are.
    by_length: BTreeSet<(usize, usize)>,
    end: usize,
}

/// So many bytes, with those up to where the next value begins.
pub(super) fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

impl Arena {
    /// Room for a value: the shortest free range that holds it, or more memory at the end.
    pub(super) fn allocate(&mut self, bytes: usize) -> usize {
        let bytes = rounded(bytes);
        if bytes == 0 {
            return 0;
        }
        if let Some(&(length, start)) = self.by_length.range((bytes, 0)..).next() {
            self.remove(start, length);
            if length > bytes {
                self.insert(start + bytes, length - bytes);
            }
            return start;
        }
        // A free range at the end is made longer.
        let last = self.free.last_key_value().map(|(&start, &length)| (start, length));
        let start = match last {
            Some((start, length)) if start + length == self.end => {
                self.remove(start, length);
                start
            }
            Some(_) | None => self.end,
        };
        self.end = start + bytes;
        start
    }

    /// Gives back what was taken.
    pub(super) fn release(&mut self, start: usize, bytes: usize) {
        let (mut start, mut length) = (start, rounded(bytes));
        if length == 0 {
            return;
        }
        if let Some((&before, &long)) = self.free.range(..start).next_back()
            && before + long == start
        {
            self.remove(before, long);
            (start, length) = (before, long + length);
        }
        if let Some(&long) = self.free.get(&(start + length)) {
            self.remove(start + length, long);
            length += long;
        }
        self.insert(start, length);
    }

    /// How many bytes all of it takes.
    pub(super) fn bytes(&self) -> usize {
        self.end
    }

    fn insert(&mut self, start: usize, length: usize) {
        self.free.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: usize, length: usize) {
        self.free.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ranges_are_joined_and_the_shortest_is_taken() {
        let mut arena = Arena::default();
        let starts: Vec<usize> = [100, 64, 200, 64].iter().map(|&bytes| arena.allocate(bytes)).collect();
        assert_eq!(starts, [0, 128, 192, 448]);
        assert_eq!(arena.bytes(), 512);
        arena.release(0, 100);
        arena.release(192, 200);
        assert_eq!(arena.allocate(128), 0);
        arena.release(0, 128);
        arena.release(128, 64);
        // The three are one range now.
        assert_eq!(arena.allocate(448), 0);
        arena.release(448, 64);
        assert_eq!(arena.allocate(1000), 448);
        assert_eq!(arena.bytes(), 448 + 1024);
    }

    #[test]
    fn nothing_takes_no_room() {
        let mut arena = Arena::default();
        arena.release(0, 0);
        assert_eq!((arena.allocate(0), arena.bytes()), (0, 0));
    }
}
