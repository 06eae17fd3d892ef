//! Values that are strided views of others: their users read those.

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{Starts, View};
use defn_core::{Axis, DType};
use smallvec::SmallVec;

use crate::kernels::StridedView;
use crate::kernels::shape::Layout;

/// Elements up to which any order is as good as another.
const ANY_ORDER_IS_FAST: usize = 1 << 12;
/// From how many elements that lie side by side on, reading them is as fast as reading all in order.
const MIN_CONTIGUOUS_RUN: usize = 16;
/// The longest step from one element to the next with which a cache line has several of them.
const MAX_STRIDE_WITHIN_LINE: isize = 4;

/// A strided view of the memory of a value.
#[derive(Clone, Debug)]
pub(super) struct ValueView {
    /// The value that has the memory.
    pub(super) base: Value,
    sizes: SmallVec<[usize; 6]>,
    layout: Layout,
}

impl ValueView {
    /// A value that has memory of its own.
    pub(super) fn whole(graph: &Graph, value: Value) -> ValueView {
        let sizes: SmallVec<[usize; 6]> = graph.ty(value).shape.sizes().into();
        let layout = Layout::contiguous(&sizes);
        ValueView { base: value, sizes, layout }
    }

    /// The view that a node is of its first operand, composed with this one.
    pub(super) fn compose(self, node: &Node) -> Option<ValueView> {
        let result = node.outputs[0].shape.sizes();
        match node.op.view()? {
            View::Reshape => self.reshaped(result),
            View::Broadcast(axes) => {
                let mut strides = smallvec::smallvec![0; result.len()];
                for (from, axis) in axes.iter().enumerate() {
                    if self.sizes[from] != 1 {
                        strides[axis.index()] = self.layout.strides[from];
                    }
                }
                Some(self.with(result, strides))
            }
            View::Transpose(axes) => {
                let strides = axes.iter().map(|axis| self.layout.strides[axis.index()]).collect();
                Some(self.with(result, strides))
            }
            View::Reverse(axes) => Some(self.reversed(axes)),
            View::Slice { starts: Starts::Static(starts), strides, .. } => {
                Some(self.sliced(starts, strides, result))
            }
            View::Slice { starts: Starts::Dynamic | Starts::FromEnd, .. } => None,
        }
    }

    fn with(self, sizes: &[usize], strides: SmallVec<[isize; 6]>) -> ValueView {
        ValueView { sizes: sizes.into(), layout: Layout { strides, ..self.layout }, ..self }
    }

    /// The same elements in order under another shape, where strides can tell that.
    fn reshaped(self, sizes: &[usize]) -> Option<ValueView> {
        if self.is_contiguous() {
            let strides = Layout::contiguous(sizes).strides;
            return Some(self.with(sizes, strides));
        }
        // Axes of size 1 come and go.
        let long = |sizes: &[usize]| {
            sizes.iter().filter(|&&size| size != 1).copied().collect::<SmallVec<[usize; 6]>>()
        };
        if long(&self.sizes) != long(sizes) {
            return None;
        }
        let pairs = self.sizes.iter().zip(&self.layout.strides);
        let mut strides = pairs.filter(|(size, _)| **size != 1).map(|(_, &stride)| stride);
        let strides = sizes.iter().map(|&size| if size == 1 { 0 } else { strides.next().expect("as many") });
        let strides = strides.collect();
        Some(self.with(sizes, strides))
    }

    fn reversed(mut self, axes: &[Axis]) -> ValueView {
        for axis in axes {
            let size = self.sizes[axis.index()];
            let stride = &mut self.layout.strides[axis.index()];
            let end = self.layout.offset as isize + (size as isize - 1) * *stride;
            self.layout.offset = usize::try_from(end).expect("the last element is one of the value's");
            *stride = -*stride;
        }
        self
    }

    fn sliced(mut self, starts: &[usize], steps: &[usize], sizes: &[usize]) -> ValueView {
        let mut offset = self.layout.offset as isize;
        for ((&start, &step), stride) in starts.iter().zip(steps).zip(&mut self.layout.strides) {
            offset += start as isize * *stride;
            *stride *= step as isize;
        }
        self.layout.offset = usize::try_from(offset).expect("the first element is one of the value's");
        ValueView { sizes: sizes.into(), ..self }
    }

    /// The elements in a box of a tensor to which the value is broadcast.
    pub(super) fn within(mut self, starts: &[usize], sizes: &[usize]) -> ValueView {
        let skipped = sizes.len() - self.sizes.len();
        let mut offset = self.layout.offset as isize;
        let axes = self.sizes.iter_mut().zip(&self.layout.strides);
        for ((own, &stride), (&start, &size)) in axes.zip(starts.iter().zip(sizes).skip(skipped)) {
            if *own != 1 {
                offset += start as isize * stride;
                *own = size;
            }
        }
        self.layout.offset = usize::try_from(offset).expect("the first element is one of the value's");
        self
    }

    /// One element of a vector.
    pub(super) fn at(mut self, element: usize) -> ValueView {
        self = self.fix_first_axis(element);
        ValueView {
            sizes: SmallVec::new(),
            layout: Layout { strides: SmallVec::new(), ..self.layout },
            ..self
        }
    }

    /// The same at all positions along the first axis: what is there at one.
    pub(super) fn fix_first_axis(mut self, position: usize) -> ValueView {
        let stride = std::mem::take(&mut self.layout.strides[0]);
        let offset = self.layout.offset as isize + position as isize * stride;
        self.layout.offset = usize::try_from(offset).expect("the element is one of the value's");
        self
    }

    /// The elements from one to the next along each axis.
    pub(super) fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    /// Where the first element lies.
    pub(super) fn first(&self) -> usize {
        self.layout.offset
    }

    /// Where the elements begin in a tensor of some sizes that lies at the base, if they are a window of it.
    pub(super) fn window_of(&self, sizes: &[usize]) -> Option<SmallVec<[usize; 4]>> {
        if self.sizes.len() != sizes.len() {
            return None;
        }
        let mut left = self.layout.offset;
        let mut starts = SmallVec::new();
        let plain = Layout::contiguous(sizes).strides;
        for (axis, &by) in plain.iter().enumerate() {
            let start = left / by.unsigned_abs().max(1);
            left -= start * by.unsigned_abs();
            let is_along = self.sizes[axis] == 1 || self.layout.strides[axis] == by;
            if !is_along || start + self.sizes[axis] > sizes[axis] {
                return None;
            }
            starts.push(start);
        }
        Some(starts)
    }

    /// Whether the elements lie in their order, without gaps.
    fn is_contiguous(&self) -> bool {
        let plain = Layout::contiguous(&self.sizes);
        let axes = self.sizes.iter().zip(self.layout.strides.iter().zip(&plain.strides));
        axes.into_iter().all(|(&size, (stride, plain))| size == 1 || stride == plain)
    }

    /// Where the elements begin, if they lie in their order, without gaps.
    pub(super) fn contiguous_start(&self) -> Option<usize> {
        self.is_contiguous().then_some(self.layout.offset)
    }

    /// Whether these are all elements of the base, as they lie.
    pub(super) fn is_identity(&self, graph: &Graph) -> bool {
        self.layout.offset == 0
            && self.is_contiguous()
            && self.sizes.iter().product::<usize>() == graph.ty(self.base).size()
    }

    /// Whether elements of a dtype are read about as fast as they would be as they lie.
    pub(super) fn is_fast(&self, dtype: DType) -> bool {
        if self.sizes.iter().product::<usize>() <= ANY_ORDER_IS_FAST {
            return true;
        }
        let axes = self.sizes.iter().zip(&self.layout.strides).rev();
        let mut axes = axes.filter(|(size, _)| **size != 1).peekable();
        // Every few elements are read with those between, and reverse order is turned in registers.
        let is_wide = !dtype.is_complex() && dtype.storage_bytes() >= 4;
        if let Some(&(&size, &stride)) = axes.peek()
            && (stride == -1 || (2..=MAX_STRIDE_WITHIN_LINE).contains(&stride))
        {
            return is_wide && size >= MIN_CONTIGUOUS_RUN;
        }
        let mut run = 1;
        for (&size, &stride) in axes {
            if stride != 0 && stride != run as isize {
                break;
            }
            run *= size;
            if stride == 0 || run >= MIN_CONTIGUOUS_RUN {
                return run >= MIN_CONTIGUOUS_RUN;
            }
        }
        run >= MIN_CONTIGUOUS_RUN
    }

    /// The way through the base's elements in the order of a result to which the value is broadcast.
    pub(super) fn strided_view(&self, result: &[usize]) -> StridedView {
        let skipped = result.len() - self.sizes.len();
        let axes = self.sizes.iter().zip(&self.layout.strides);
        let own = axes.map(|(&size, &stride)| if size == 1 { 0 } else { stride });
        let strides: SmallVec<[isize; 6]> = std::iter::repeat_n(0, skipped).chain(own).collect();
        StridedView::strided(self.layout.offset, result, &strides)
    }
}
