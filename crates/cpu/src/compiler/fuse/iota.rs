//! Positions as numbers, which are counted where they are read.

use defn_core::DType;

use super::build::NestBuilder;
use super::elements::Element;
use crate::compiler::ir::{Access, Conv, Elem, Val};
use crate::kernels::StridedView;

impl NestBuilder<'_> {
    /// The positions that a view has, as elements of a dtype.
    pub(super) fn iota(&mut self, view: &StridedView, is_per_group: bool, dtype: DType) -> Element {
        let most: usize = view.dims().iter().map(|&(size, _)| size).product();
        let elem = if most <= i32::MAX as usize { Elem::I32 } else { Elem::I64 };
        let (first, along) = self.count(view, is_per_group, elem);
        let number = along.map_or(first, |along| self.e.b.add(first, along));
        self.e.iota(number, dtype)
    }

    /// The positions that a view has, modulo 2 to the bits of an integer: that at the first lane, and how many behind
    /// it that at another is.
    pub(super) fn count(&mut self, view: &StridedView, is_per_group: bool, elem: Elem) -> (Val, Option<Val>) {
        let access = if is_per_group { self.group_access(0, view, 1) } else { self.access(0, view, 1) };
        self.count_of(access, elem)
    }

    /// The same of an access to bytes.
    pub(super) fn count_of(&mut self, access: Access, elem: Elem) -> (Val, Option<Val>) {
        let mut first = self.e.b.index(access.offset);
        for (counter, by) in access.terms {
            let by = self.e.b.index(by);
            let passed = self.e.b.mul(counter, by);
            first = self.e.b.add(first, passed);
        }
        let number = self.e.b.convert(Conv::OfIndex, elem, first);
        if access.lane == 0 {
            return (number, None);
        }
        let lane = self.e.b.lane(elem);
        if access.lane == 1 {
            return (number, Some(lane));
        }
        let by = self.e.b.bits(elem, access.lane as u64);
        (number, Some(self.e.b.mul(lane, by)))
    }
}
