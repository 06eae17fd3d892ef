//! The storage of a dot's operands as batches of matrices, either in place or after a packing copy.

use defn_core::Axis;
use smallvec::SmallVec;

use crate::kernels::shape::{Layout, StridedCopy};

/// A dot as batched products of an `m` by `k` and a `k` by `n` matrix.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: OperandLayout,
    pub(crate) b: OperandLayout,
}

/// The matrices of one operand: the strides between their elements.
#[derive(Clone, Debug)]
pub(crate) struct OperandLayout {
    /// Stride from one matrix of the batch to the next.
    pub(crate) batch: usize,
    /// Stride along the free axes.
    pub(crate) free: isize,
    /// Stride along the contracted axes.
    pub(crate) along: isize,
    /// The copy that gives the operand these strides, if it does not have them in place.
    pub(crate) pack: Option<StridedCopy>,
}

/// The axes of one operand of a dot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DotAxes<'a> {
    pub(crate) sizes: &'a [usize],
    /// The contracted axes.
    pub(crate) contract: &'a [Axis],
    /// The number of leading batch axes, shared with the other operand.
    pub(crate) batch: usize,
}

type List = SmallVec<[usize; 6]>;

impl DotAxes<'_> {
    fn free(&self) -> List {
        let contracts = |axis: usize| self.contract.iter().any(|other| other.index() == axis);
        (self.batch..self.sizes.len()).filter(|&axis| !contracts(axis)).collect()
    }

    fn count(&self, axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().map(|axis| self.sizes[axis]).product()
    }

    /// The contracted axes in the order of `pairs`.
    fn along(&self, pairs: &[usize]) -> List {
        pairs.iter().map(|&pair| self.contract[pair].index()).collect()
    }

    /// The common stride of `axes` merged into one axis, or `None` if they cannot be merged.
    fn joined(&self, axes: &[usize]) -> Option<isize> {
        let strides = Layout::contiguous(self.sizes).strides;
        let mut joined: Option<isize> = None;
        for &axis in axes.iter().filter(|&&axis| self.sizes[axis] != 1) {
            let fits = joined.is_none_or(|outer| outer == strides[axis] * self.sizes[axis] as isize);
            if !fits {
                return None;
            }
            joined = Some(strides[axis]);
        }
        // Zero elements or one: any stride fits.
        Some(joined.unwrap_or(1))
    }

    /// The free size, the contracted size and the layout of matrices of one free and one contracted axis, which lie in
    /// place. Most products have such operands, and small ones take as little time as the general way to a layout.
    pub(super) fn matrices(&self) -> Option<(usize, usize, OperandLayout)> {
        let [contracted] = self.contract else { return None };
        let [first, second] = self.sizes.get(self.batch..)? else { return None };
        let is_last = contracted.index() == self.batch + 1;
        let (free, along) = if is_last { (*first, *second) } else { (*second, *first) };
        // An axis of one element has the stride of a contiguous one.
        let [free_stride, along_stride] = if is_last {
            [if free == 1 { 1 } else { along }, 1]
        } else {
            [1, if along == 1 { 1 } else { free }]
        };
        let layout = OperandLayout {
            batch: free * along,
            free: free_stride as isize,
            along: along_stride as isize,
            pack: None,
        };
        (free * along > 0).then_some((free, along, layout))
    }

    pub(super) fn side(&self, pairs: &[usize], contiguous: bool) -> OperandLayout {
        let (free, along) = (self.free(), self.along(pairs));
        let (rows, k) = (self.count(free.iter().copied()), self.count(along.iter().copied()));
        let in_place = self.joined(&free).zip(self.joined(&along));
        match in_place.filter(|&(_, along)| !contiguous || along == 1) {
            Some((free, along)) => OperandLayout { batch: rows * k, free, along, pack: None },
            None => {
                let order: List = (0..self.batch).chain(free).chain(along).collect();
                let plain = Layout::contiguous(self.sizes).strides;
                let sizes: List = order.iter().map(|&axis| self.sizes[axis]).collect();
                let strides = order.iter().map(|&axis| plain[axis]).collect();
                let from = Layout { offset: 0, strides };
                let pack = StridedCopy::new(&sizes, &from, &Layout::contiguous(&sizes));
                OperandLayout { batch: rows * k, free: k as isize, along: 1, pack: Some(pack) }
            }
        }
    }
}

impl Dot {
    /// Whether there is nothing to sum, or nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        [self.batch, self.m, self.n, self.k].contains(&0)
    }

    /// Whether it has elements, and one operand is a vector or sums have one element: it is a nest.
    pub(crate) fn is_of_vector(&self) -> bool {
        !self.is_empty() && [self.m, self.n, self.k].contains(&1)
    }

    /// The dot of two operands. If `matrices` is true, matrices may be multiplied in place with any strides; otherwise
    /// the contracted axis must be contiguous.
    pub(crate) fn new(a: DotAxes<'_>, b: DotAxes<'_>, matrices: bool) -> Dot {
        if let (Some((m, k, left)), Some((n, _, right))) = (a.matrices(), b.matrices())
            && (matrices || left.along == 1 && right.along == 1)
        {
            return Dot { batch: a.count(0..a.batch), m, n, k, a: left, b: right };
        }
        // The order of the contracted axes is free, but both operands must share it: choose an order in which both can
        // be read in place.
        let by = |side: DotAxes<'_>| {
            let mut pairs: List = (0..side.contract.len()).collect();
            pairs.sort_by_key(|&pair| side.contract[pair]);
            pairs
        };
        let both = |pairs: &List| a.joined(&a.along(pairs)).is_some() && b.joined(&b.along(pairs)).is_some();
        let pairs = [by(a), by(b)].into_iter().find(both).unwrap_or_else(|| by(a));
        let (m, n) = (a.count(a.free()), b.count(b.free()));
        Dot {
            batch: a.count(0..a.batch),
            m,
            n,
            k: a.count(a.along(&pairs)),
            // A vector must be contiguous along the contracted axis.
            a: a.side(&pairs, !matrices || m == 1),
            b: b.side(&pairs, !matrices || n == 1),
        }
    }
}
