//! Copies between two strided layouts: all shape ops are made of them.

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::kernels::Plain;
use crate::par::Par;

/// A chunk of a parallel copy moves about this many bytes.
pub(super) const COPY_GRAIN_BYTES: usize = 128 << 10;

/// The side in bytes of the square blocks of a transposition, which are read by rows and written by columns.
const BLOCK_BYTES: usize = 128;

/// The address of an element by its index: `offset` plus index times stride, summed over the axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The position of the first element.
    pub(crate) offset: usize,
    /// The distance between neighbours on each axis; it may be negative or 0.
    pub(crate) strides: SmallVec<[isize; 6]>,
}

impl Layout {
    /// Row-major elements without gaps.
    pub(crate) fn contiguous(sizes: &[usize]) -> Layout {
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, sizes.len());
        let mut step = 1usize;
        for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
            *stride = step as isize;
            // An empty tensor may have sizes whose product overflows; nothing is read through its strides.
            step = step.wrapping_mul(size);
        }
        Layout { offset: 0, strides }
    }
}

/// One axis of a copy: its size, and its stride on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    size: usize,
    from: isize,
    to: isize,
}

/// A copy from one layout to another, with axes sorted for sequential access.
///
/// Its axes are stored inline up to six; a tensor's rank bounds their number.
#[derive(Clone, Debug)]
pub(crate) struct StridedCopy {
    dims: SmallVec<[Dim; 6]>,
    from: usize,
    to: usize,
    /// Whether the last two axes are a transposition: `from` is contiguous only on the second to last.
    transposes: bool,
}

impl StridedCopy {
    /// Copies element i of `from` to element i of `to`, for each index i below `sizes`.
    pub(crate) fn new(sizes: &[usize], from: &Layout, to: &Layout) -> StridedCopy {
        assert!(sizes.len() == from.strides.len() && sizes.len() == to.strides.len(), "one stride per axis");
        let mut dims: SmallVec<[Dim; 6]> = sizes
            .iter()
            .zip(from.strides.iter().zip(&to.strides))
            .map(|(&size, (&from, &to))| Dim { size, from, to })
            .filter(|dim| dim.size != 1)
            .collect();
        let (from, to) = (from.offset, to.offset);
        if dims.iter().any(|dim| dim.size == 0) {
            dims.clear();
            dims.push(Dim { size: 0, from: 0, to: 0 });
            return StridedCopy { dims, from, to, transposes: false };
        }
        // Writes run forward through memory; otherwise the order of the axes is free.
        dims.sort_by_key(|dim| std::cmp::Reverse(dim.to.unsigned_abs()));
        merge(&mut dims);
        let transposes = pair_transposed(&mut dims);
        StridedCopy { dims, from, to, transposes }
    }

    /// The number of elements copied.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// The offset of the elements in `from`, if they are stored there as they are from the start of `to`: then no copy
    /// is needed.
    pub(crate) fn shared(&self) -> Option<usize> {
        let forward = match self.dims.as_slice() {
            [] => true,
            [dim] => dim.size == 0 || dim.from == 1 && dim.to == 1,
            [_, _, ..] => false,
        };
        (forward && self.to == 0).then_some(self.from)
    }

    /// Copies. Only the elements of the layout `to` are written.
    ///
    /// # Panics
    /// When a layout refers to elements outside its side.
    pub(crate) fn run<T: Plain>(&self, from: &[T], to: &mut [MaybeUninit<T>], par: Par) {
        if self.len() == 0 {
            return;
        }
        self.check(from.len(), self.from, |dim| dim.from);
        self.check(to.len(), self.to, |dim| dim.to);
        let ends = ElementPointers { from: &raw const from[self.from], to: to[self.to].as_mut_ptr() };
        let Some((split, grain)) = self.split(size_of::<T>()) else {
            // SAFETY: both ranges were checked, they are distinct borrows, and one thread writes.
            unsafe { self.copy_dims(&self.dims, ends) };
            return;
        };
        par.for_chunks(self.dims[split].size, grain, |chunk| {
            let dim = self.dims[split];
            let mut dims = self.dims.clone();
            dims[split].size = chunk.len();
            // SAFETY: as above; in `to`, different indices are different elements, and so chunks of one axis are
            // disjoint.
            unsafe { self.copy_dims(&dims, ends.at(dim, chunk.start)) };
        });
    }

    /// Asserts that a side's layout refers only to the elements below `len`.
    fn check(&self, len: usize, offset: usize, stride: impl Fn(&Dim) -> isize) {
        let reach = |backwards: bool| -> isize {
            let far = |dim: &Dim| (dim.size as isize - 1) * stride(dim);
            self.dims.iter().filter(|dim| (stride(dim) < 0) == backwards).map(far).sum()
        };
        let (low, high) = (offset as isize + reach(true), offset as isize + reach(false));
        assert!(low >= 0 && high < len as isize, "a layout from {low} to {high} in {len} elements");
    }

    /// The axis that threads share and the size of its chunks, which depend only on the sizes; None for copies that are
    /// faster on one thread.
    fn split(&self, width: usize) -> Option<(usize, usize)> {
        let chunks = (self.len() * width).div_ceil(COPY_GRAIN_BYTES);
        if chunks < 2 {
            return None;
        }
        let enough = self.dims.iter().position(|dim| dim.size >= chunks);
        let axis = enough.or_else(|| (0..self.dims.len()).max_by_key(|&axis| self.dims[axis].size))?;
        let grain = self.dims[axis].size.div_ceil(chunks);
        let inner = axis + 2 >= self.dims.len();
        // A chunk of a transposition has complete blocks.
        let grain =
            if self.transposes && inner { grain.next_multiple_of(BLOCK_BYTES / width) } else { grain };
        Some((axis, grain))
    }

    /// Copies along `dims`, a suffix of the copy's axes.
    ///
    /// # Safety
    /// All elements that `dims` reaches from `ends` are readable and writable, and no other code writes them.
    unsafe fn copy_dims<T: Plain>(&self, dims: &[Dim], ends: ElementPointers<T>) {
        match dims {
            // SAFETY: the caller's promise, for the one element.
            [] => unsafe { ends.to.write(*ends.from) },
            // SAFETY: the caller's promise.
            [row] => unsafe { copy_row(*row, ends) },
            // SAFETY: the caller's promise.
            [across, along] if self.transposes => unsafe { transpose(*across, *along, ends) },
            [dim, rest @ ..] => {
                for index in 0..dim.size {
                    // SAFETY: an index below the size stays in the range that the caller promises.
                    unsafe { self.copy_dims(rest, ends.at(*dim, index)) };
                }
            }
        }
    }
}

/// Merges neighbouring axes where both sides step through them as through one axis.
fn merge(dims: &mut SmallVec<[Dim; 6]>) {
    let mut last: usize = 0;
    for index in 1..dims.len() {
        let (outer, inner) = (dims[last], dims[index]);
        let size = inner.size as isize;
        if outer.from == inner.from * size && outer.to == inner.to * size {
            dims[last] = Dim { size: outer.size * inner.size, ..inner };
        } else {
            last += 1;
            dims[last] = inner;
        }
    }
    dims.truncate(last + 1);
}

/// If reads along the last axis are not contiguous but those along another axis are, moves that axis next to the last.
fn pair_transposed(dims: &mut SmallVec<[Dim; 6]>) -> bool {
    let Some((last, outer)) = dims.split_last_mut() else { return false };
    if last.to != 1 || matches!(last.from, -1..=1) {
        return false;
    }
    match outer.iter().position(|dim| dim.from == 1) {
        Some(found) => {
            outer[found..].rotate_left(1);
            true
        }
        None => false,
    }
}

/// The current positions of reads and writes.
struct ElementPointers<T> {
    from: *const T,
    to: *mut T,
}

impl<T> Clone for ElementPointers<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ElementPointers<T> {}

// SAFETY: the pointers come from a shared and from an exclusive borrow that outlive the copy; `run` gives threads
// disjoint elements to write.
unsafe impl<T: Plain> Send for ElementPointers<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for ElementPointers<T> {}

impl<T: Plain> ElementPointers<T> {
    /// The positions `index` steps along an axis.
    ///
    /// # Safety
    /// Both stay within their slices.
    unsafe fn at(self, dim: Dim, index: usize) -> ElementPointers<T> {
        let index = index as isize;
        // SAFETY: the caller's promise.
        unsafe {
            ElementPointers { from: self.from.offset(index * dim.from), to: self.to.offset(index * dim.to) }
        }
    }
}

/// Copies along one axis. The loops are separate so that strides are constant where possible.
///
/// # Safety
/// As for [`StridedCopy::copy_dims`].
unsafe fn copy_row<T: Plain>(row: Dim, ends: ElementPointers<T>) {
    let ElementPointers { from, to } = ends;
    let count = row.size as isize;
    // SAFETY: every index below the count is in bounds by the caller's promise.
    unsafe {
        match (row.from, row.to) {
            // A call of memcpy costs more than a few elements.
            (1, 1) if row.size >= 16 => std::ptr::copy_nonoverlapping(from, to, row.size),
            (1, 1) => (0..count).for_each(|i| to.offset(i).write(*from.offset(i))),
            (0, 1) => {
                let value = *from;
                (0..count).for_each(|i| to.offset(i).write(value));
            }
            (-1, 1) => (0..count).for_each(|i| to.offset(i).write(*from.offset(-i))),
            (step, 1) => (0..count).for_each(|i| to.offset(i).write(*from.offset(i * step))),
            (1, step) => (0..count).for_each(|i| to.offset(i * step).write(*from.offset(i))),
            (a, b) => (0..count).for_each(|i| to.offset(i * b).write(*from.offset(i * a))),
        }
    }
}

/// Copies two axes block by block. `across` is contiguous to read, `along` contiguous to write.
///
/// # Safety
/// As for [`StridedCopy::copy_dims`]; `across.from` and `along.to` are 1.
unsafe fn transpose<T: Plain>(across: Dim, along: Dim, ends: ElementPointers<T>) {
    // The side in elements depends on their width; it is a constant for each, so that the inner loops are unrolled.
    // SAFETY: the caller's promise.
    unsafe {
        match size_of::<T>() {
            1 => transpose_by::<T, { BLOCK_BYTES / 2 }>(across, along, ends),
            2 => transpose_by::<T, { BLOCK_BYTES / 2 }>(across, along, ends),
            4 => transpose_by::<T, { BLOCK_BYTES / 4 }>(across, along, ends),
            8 => transpose_by::<T, { BLOCK_BYTES / 8 }>(across, along, ends),
            _ => transpose_by::<T, { BLOCK_BYTES / 16 }>(across, along, ends),
        }
    }
}

/// # Safety
/// As for [`transpose`].
unsafe fn transpose_by<T: Plain, const SIDE: usize>(across: Dim, along: Dim, ends: ElementPointers<T>) {
    // Whole cache lines are read into the block at once. Rows whose distance is a power of two share a cache set, and
    // would evict each other before their lines were used up.
    let mut block = [[MaybeUninit::<T>::uninit(); SIDE]; SIDE];
    for first in (0..across.size).step_by(SIDE) {
        let width = SIDE.min(across.size - first);
        for start in (0..along.size).step_by(SIDE) {
            let height = SIDE.min(along.size - start);
            // SAFETY: the block's corners are within both axes, and so the whole block is, by the caller's promise; the
            // elements of the block that are read were written just before.
            unsafe {
                let corner = ends.at(across, first).at(along, start);
                for (j, line) in block.iter_mut().enumerate().take(height) {
                    let from = corner.at(along, j).from;
                    std::ptr::copy_nonoverlapping(from, line.as_mut_ptr().cast(), width);
                }
                for i in 0..width {
                    let to = corner.at(across, i).to;
                    // A full block has a separate loop of constant length.
                    let lines = if height == SIDE { &block[..] } else { &block[..height] };
                    for (j, line) in lines.iter().enumerate() {
                        to.add(j).write(line[i].assume_init());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Copies element by element, according to the definition.
    fn naive(sizes: &[usize], from: &Layout, to: &Layout, input: &[u32], output: &mut [u32]) {
        let count = sizes.iter().product::<usize>();
        for mut flat in 0..count {
            let (mut a, mut b) = (from.offset as isize, to.offset as isize);
            for axis in (0..sizes.len()).rev() {
                let index = (flat % sizes[axis]) as isize;
                flat /= sizes[axis];
                a += index * from.strides[axis];
                b += index * to.strides[axis];
            }
            output[b as usize] = input[a as usize];
        }
    }

    /// A layout of `sizes` with permuted axes, strides of any sign or 0, and gaps; and the number of elements that it
    /// spans.
    fn layout(sizes: &[usize], keys: &[(u8, u8, u8)], repeats: bool) -> (Layout, usize) {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&axis| keys[axis].0);
        let (mut step, mut offset) = (1usize, 0usize);
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, sizes.len());
        for axis in order {
            let span = step * (1 + usize::from(keys[axis].1.is_multiple_of(3)));
            match keys[axis].2 % 4 {
                0 if repeats => continue,
                1 => {
                    offset += span * sizes[axis].saturating_sub(1);
                    strides[axis] = -(span as isize);
                }
                _ => strides[axis] = span as isize,
            }
            step = span * sizes[axis].max(1);
        }
        (Layout { offset, strides }, step)
    }

    proptest! {
        #[test]
        fn copies_as_the_definition_says(
            sizes in prop::collection::vec(0usize..12, 0..5),
            a in prop::collection::vec(any::<(u8, u8, u8)>(), 5),
            b in prop::collection::vec(any::<(u8, u8, u8)>(), 5),
        ) {
            let ((from, inputs), (to, outputs)) = (layout(&sizes, &a, true), layout(&sizes, &b, false));
            let input: Vec<u32> = (1..=inputs as u32).collect();
            let mut want = vec![0; outputs];
            naive(&sizes, &from, &to, &input, &mut want);
            let mut got = vec![MaybeUninit::new(0); outputs];
            StridedCopy::new(&sizes, &from, &to).run(&input, &mut got, Par::Serial);
            // SAFETY: every element was initialised with 0.
            let got: Vec<u32> = got.into_iter().map(|x| unsafe { x.assume_init() }).collect();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn large_transpositions_of_every_width_are_shared_among_threads() {
        fn check<T: Plain + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T) {
            let (rows, columns) = (517, 1201);
            let input: Vec<T> = (0..rows * columns).map(number).collect();
            let from = Layout { offset: 0, strides: SmallVec::from_slice(&[1, columns as isize]) };
            let sizes = [columns, rows];
            let mut got = vec![MaybeUninit::uninit(); rows * columns];
            StridedCopy::new(&sizes, &from, &Layout::contiguous(&sizes)).run(&input, &mut got, Par::Pool);
            for (index, value) in got.into_iter().enumerate() {
                // SAFETY: the copy writes every element.
                let value = unsafe { value.assume_init() };
                assert_eq!(value, input[index % rows * columns + index / rows]);
            }
        }
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as u32);
        check(|i| i as u64);
        check(|i| [i as u64, !i as u64]);
    }

    #[test]
    #[should_panic(expected = "a layout")]
    fn layouts_that_reach_outside_are_refused() {
        let layout = Layout { offset: 0, strides: SmallVec::from_slice(&[-1]) };
        let copy = StridedCopy::new(&[2], &layout, &Layout::contiguous(&[2]));
        copy.run(&[1u8, 2], &mut [MaybeUninit::uninit(); 2], Par::Serial);
    }
}
