//! Boxes of a domain: a concatenation or a padding is another value in each of them, and a transposition is a view.

use defn_core::Axis;
use defn_core::graph::{Graph, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::domain::{Axes, Sizes};
use crate::compiler::fusion_groups::FusionGroups;
use crate::compiler::views::ValueView;
use crate::kernels::StridedView;
use crate::kernels::shape::Layout;

/// A box of a domain.
#[derive(Debug)]
pub(in super::super) struct DomainBox {
    /// The sizes of the domain, where the box begins in it, and its own sizes.
    pub(in super::super) domain: Sizes,
    pub(in super::super) starts: Sizes,
    pub(in super::super) sizes: Sizes,
    /// The nodes that are computed in every box of the domain. Others are computed in this box alone.
    pub(in super::super) nodes: SmallVec<[usize; 6]>,
    /// What each concatenation, padding or transposition is in the box, and each window of one that is read through.
    pub(in super::super) sources: FxHashMap<usize, BoxSource>,
    pub(in super::super) block: Option<TransposeBlock>,
}

/// What a concatenation, a padding or a transposition is in a box.
#[derive(Clone, Debug)]
pub(in super::super) enum BoxSource {
    /// A value, and where the box begins in it. None if the box is the whole value, or reads one element.
    Operand { value: Value, starts: Option<Sizes> },
    /// The same of a value that nobody else needs in memory: a view of another.
    View { view: ValueView, starts: Option<Sizes> },
    /// The box of what it is itself a view of.
    Transposed,
}

/// How a box is gone through that has values with their neighbours along another axis than the last.
///
/// Lanes are along the last axis. A few elements along the other axis are done together, so that what is read there is
/// transposed in registers (`schedule/records.rs`). Tiles of rows are outside of that: what they read lies in few
/// pages.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TransposeBlock {
    pub(in super::super) axis: usize,
    pub(in super::super) elements: usize,
    pub(in super::super) lanes: usize,
}

impl DomainBox {
    /// The concatenation or padding that a value is, or the window of one, if it is one of the box's.
    pub(super) fn concat(&self, graph: &Graph, fusion: &FusionGroups, value: Value) -> Option<usize> {
        if self.sources.contains_key(&(value.node as usize)) {
            return Some(value.node as usize);
        }
        let base = fusion.view(graph, value).base.node as usize;
        self.sources.contains_key(&base).then_some(base)
    }

    /// How that which a concatenation or a padding is in the box lies in memory.
    pub(super) fn source(&self, graph: &Graph, fusion: &FusionGroups, concat: usize) -> ValueView {
        match &self.sources[&concat] {
            BoxSource::Operand { value, starts: Some(starts) } => {
                fusion.view(graph, *value).within(starts, &self.sizes)
            }
            BoxSource::Operand { value, starts: None } => fusion.view(graph, *value),
            BoxSource::View { view, starts: Some(starts) } => view.clone().within(starts, &self.sizes),
            BoxSource::View { view, starts: None } => view.clone(),
            BoxSource::Transposed => self.of(&fusion.unfiltered_view(graph, concat).expect("it is a view")),
        }
    }

    /// What the box has of a value of the domain.
    pub(super) fn of(&self, value_view: &ValueView) -> ValueView {
        value_view.clone().within(&self.starts, &self.sizes)
    }

    /// How the box lies in a result.
    pub(super) fn whole(&self) -> StridedView {
        let strides = Layout::contiguous(&self.domain).strides;
        self.view(&strides)
    }

    fn view(&self, strides: &[isize]) -> StridedView {
        let offset = self.starts.iter().zip(strides).map(|(&start, &stride)| start * stride as usize).sum();
        StridedView::strided(offset, &self.sizes, strides)
    }

    /// The numbers that count along an axis of the domain, or all its elements.
    pub(super) fn iota_view(&self, axis: Option<Axis>) -> StridedView {
        let Some(axis) = axis else { return self.whole() };
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.domain.len());
        strides[axis.index()] = 1;
        self.view(&strides)
    }

    /// How many elements of the box one step along an axis passes.
    fn step(&self, axis: usize) -> usize {
        self.sizes[axis + 1..].iter().product()
    }

    /// Divides the axes of the box into tiles and blocks.
    pub(super) fn divide(&self, axes: &mut Axes) {
        if let Some(block) = self.block {
            axes.divide(block.lanes);
            axes.divide(self.step(block.axis));
            axes.divide(self.step(block.axis) * block.elements);
        }
    }

    /// The axis of such sizes along which the elements of a block are.
    pub(super) fn block_axis(&self, sizes: &[usize]) -> Option<usize> {
        let block = self.block?;
        let mut passed = 1;
        let lanes = sizes.len() - 1;
        (0..sizes.len()).rev().find(|&axis| {
            // Lanes are along the last axis, and so blocks are not.
            let is_it = axis < lanes && passed == self.step(block.axis) && sizes[axis] == block.elements;
            passed *= sizes[axis];
            is_it
        })
    }

    /// Whether all rows of the box begin with a line of a result, of elements of so many bytes.
    pub(super) fn is_aligned(&self, width: usize) -> bool {
        let whole = self.whole();
        let (_, outer) = whole.dims().split_last().map_or((None, &[][..]), |(row, outer)| (Some(row), outer));
        let mut steps = outer.iter().map(|&(_, stride)| stride as usize).chain([whole.offset()]);
        steps.all(|step| (step * width).is_multiple_of(64))
    }
}
