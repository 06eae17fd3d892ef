//! How elements and what groups have are stored.

use super::build::NestBuilder;
use super::elements::Element;
use super::shape::NestKind;
use crate::kernels::StridedView;

impl NestBuilder<'_> {
    /// Stores the elements of nodes.
    pub(super) fn store_elements(&mut self, nodes: &[usize]) -> Option<()> {
        let mut elements = Vec::new();
        for &node in nodes {
            elements.push((node, self.element(node)?));
        }
        elements.into_iter().for_each(|(node, element)| self.store_element(node, element));
        Some(())
    }

    /// Stores an element of a node.
    pub(super) fn store_element(&mut self, node: usize, element: Element) {
        let width = element.dtype.storage_bytes();
        if let Some(&offset) = self.result_of(node).and_then(|at| self.result_columns.get(&at)) {
            let access = self.column_access(offset, width);
            self.e.store(element, access);
        } else if let Some(at) = self.result_of(node) {
            let mut access = self.access(self.result_buffer(at), self.whole, width);
            // Rows that begin within a line are not stored past the caches, nor parts of rows.
            let length = match (self.sizes.len(), self.shape.kind) {
                (1, NestKind::Pairs) => self.shape.half,
                (1, NestKind::Rows | NestKind::Short | NestKind::Columns) => 0,
                (axes, _) => self.sizes[axes - 1],
            };
            let is_aligned = match self.domain_box {
                None => (length * width).is_multiple_of(64),
                Some(domain_box) => domain_box.is_aligned(width),
            };
            access.is_streaming = self.is_streaming && is_aligned && self.element.is_none();
            self.e.store(element, access);
        }
        if let Some(&offset) = self.offsets.get(&node) {
            let access = self.scratch_access(offset, width);
            self.e.store(element, access);
        }
    }

    /// Stores what each group has, if it is a result.
    pub(super) fn store_group(&mut self, position: usize) -> Option<()> {
        let Some(at) = self.result_of(position) else { return Some(()) };
        let element = self.groups[&position];
        let width = element.dtype.storage_bytes();
        let whole = StridedView::strided(0, &[self.group_sizes().iter().product()], &[1]);
        let access = self.group_access(self.result_buffer(at), &whole, width);
        self.e.store(element, access);
        Some(())
    }

    pub(super) fn result_of(&self, position: usize) -> Option<usize> {
        self.results.iter().position(|result| result.node as usize == position)
    }

    pub(super) fn result_buffer(&self, result: usize) -> u16 {
        (self.inputs + result) as u16
    }

    pub(super) fn scratch_buffer(&self) -> u16 {
        (self.inputs + self.results.len()) as u16
    }
}
