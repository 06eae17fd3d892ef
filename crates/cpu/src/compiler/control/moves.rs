//! Ops that only move elements, as instructions: windows at starts that are known when the function runs, joined and
//! rearranged arrays.

use std::sync::Arc;

use defn_core::graph::Node;
use defn_core::op::{Op as GraphOp, Padding, Starts, View};
use defn_core::{Kind, Shape, TensorType};
use smallvec::SmallVec;

use super::link::Linker;
use super::places::{Place, elements_of, parts_of, with_terms};
use crate::compiler::ir::{Access, Builder, Conv, Elem, Op, Val};
use crate::compiler::plan::{Plan, Step};
use crate::compiler::views::ValueView;
use crate::kernels::shape::Layout;

/// More bytes are moved by a kernel.
const MAX_MOVED: usize = 1 << 15;

/// Where the elements of a box are, in elements of the memory at a place.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    place: Place,
    offset: i64,
    strides: SmallVec<[isize; 6]>,
    /// Positions that are known when the function runs, and the elements that a step of each passes.
    starts: SmallVec<[(Val, i64); 3]>,
    /// The bytes of the value that has them.
    bytes: usize,
    /// Whether the elements of that value are in registers.
    is_small: bool,
}

impl Elements {
    pub(super) fn whole(place: &Place, ty: &TensorType) -> Elements {
        let strides = Layout::contiguous(ty.shape.sizes()).strides;
        Elements {
            place: place.clone(),
            offset: 0,
            strides,
            starts: SmallVec::new(),
            bytes: ty.byte_size(),
            is_small: elements_of(ty).is_some(),
        }
    }

    /// Where the first element is.
    pub(super) fn first(&self, b: &Builder, width: i64) -> Place {
        let own = Access { terms: SmallVec::new(), ..self.place.element(self.offset * width) };
        let starts = self.starts.iter().map(|&(value, by)| (value, by * width));
        let moved = with_terms(b, own, starts);
        let terms = self.place.terms.iter().copied().chain(moved.terms).collect();
        Place { terms, offset: moved.offset, ..self.place.clone() }
    }

    /// Where the element is that has these positions, and where others are as loops say.
    fn access(&self, b: &Builder, width: i64, positions: &[usize], counters: &[(Val, usize)]) -> Access {
        let steps = positions.iter().zip(&self.strides);
        let offset: i64 = self.offset + steps.map(|(&at, &by)| at as i64 * by as i64).sum::<i64>();
        let counted = counters.iter().map(|&(counter, axis)| (counter, self.strides[axis] as i64));
        let terms = self.starts.iter().copied().chain(counted);
        let terms = terms.filter(|(_, by)| *by != 0).map(|(value, by)| (value, by * width));
        let own = self.place.element(offset * width);
        with_terms(b, own, terms)
    }
}

impl Linker {
    /// What a step of an op does, if it only moves elements, and not too many.
    pub(super) fn moves(
        &mut self,
        plan: &Arc<Plan>,
        step: &Step,
        (inputs, operands): (&[Place], &[TensorType]),
        output: &Place,
    ) -> bool {
        let node = &plan.region.graph().nodes()[step.node];
        let ty = &node.outputs[0];
        if let GraphOp::PutSlice { starts } = &node.op {
            return self.put_slice(node, starts, step.aliased_input.is_some(), (inputs, operands), output);
        }
        if ty.byte_size() > MAX_MOVED || ty.size() == 0 {
            return false;
        }
        let sizes = ty.shape.sizes();
        if let GraphOp::Concatenate { axis } = &node.op {
            let mut to = Elements::whole(output, ty);
            let step = to.strides[axis.index()] as i64;
            if operands.iter().any(|operand| operand.dtype != ty.dtype || operand.size() == 0) {
                return false;
            }
            for (place, operand) in inputs.iter().zip(operands) {
                let own = operand.shape.sizes();
                self.copy_box(ty, own, &Elements::whole(place, operand), &to);
                to.offset += step * own[axis.index()] as i64;
            }
            return true;
        }
        if let GraphOp::Pad { config } = &node.op {
            return self.pad(ty, config, (inputs, operands), output);
        }
        if let GraphOp::Stack { axis, .. } = &node.op {
            let mut to = Elements::whole(output, ty);
            let step = to.strides.remove(*axis) as i64;
            if operands.iter().any(|operand| operand.dtype != ty.dtype) {
                return false;
            }
            for (place, operand) in inputs.iter().zip(operands) {
                let own = operand.shape.sizes();
                self.copy_box(ty, own, &Elements::whole(place, operand), &to);
                to.offset += step;
            }
            return true;
        }
        let Some(view) = node.op.view() else { return false };
        if operands[0].dtype != ty.dtype {
            return false;
        }
        let mut from = Elements::whole(&inputs[0], &operands[0]);
        if let View::Slice { starts: starts @ (Starts::Dynamic | Starts::FromEnd), lengths, strides } = view {
            self.add_starts(&mut from, starts, lengths, (inputs, operands), 1);
            from.strides.iter_mut().zip(strides).for_each(|(own, by)| *own *= *by as isize);
        } else {
            let whole = ValueView::whole(plan.region.graph(), node.inputs[0]);
            let Some(composed) = whole.compose(node) else { return false };
            from.offset = composed.first() as i64;
            from.strides = composed.strides().into();
        }
        self.copy_box(ty, sizes, &from, &Elements::whole(output, ty));
        true
    }

    /// Elements with others around and between them.
    fn pad(
        &mut self,
        ty: &TensorType,
        config: &[Padding],
        (inputs, operands): (&[Place], &[TensorType]),
        output: &Place,
    ) -> bool {
        let x = &operands[0];
        if operands.iter().any(|operand| operand.dtype != ty.dtype) || operands[1].size() != 1 {
            return false;
        }
        let (mut from, mut to) = (Elements::whole(&inputs[0], x), Elements::whole(output, ty));
        let strides = SmallVec::from_elem(0, config.len());
        let value = Elements { strides, ..Elements::whole(&inputs[1], &operands[1]) };
        self.copy_box(ty, ty.shape.sizes(), &value, &to);
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
        for (axis, padding) in config.iter().enumerate() {
            let (size, step) = (x.shape.sizes()[axis] as i64, padding.interior as i64 + 1);
            // The first elements are cropped, as far as they lie before the result.
            let cropped = ((-padding.low).max(0) + step - 1) / step;
            let first = padding.low + cropped * step;
            let end = ty.shape.sizes()[axis] as i64;
            let count = ((end - first + step - 1) / step).min(size - cropped);
            if count <= 0 {
                return true;
            }
            from.offset += cropped * from.strides[axis] as i64;
            to.offset += first * to.strides[axis] as i64;
            to.strides[axis] *= step as isize;
            sizes.push(count as usize);
        }
        let part = TensorType { dtype: ty.dtype, shape: Shape::new(&sizes) };
        self.copy_box(&part, &sizes, &from, &to);
        true
    }

    /// An update of a window, in place where the plan has it so.
    fn put_slice(
        &mut self,
        node: &Node,
        starts: &Starts,
        is_in_place: bool,
        (inputs, operands): (&[Place], &[TensorType]),
        output: &Place,
    ) -> bool {
        let (ty, update) = (&node.outputs[0], &operands[1]);
        let has_dtype = |operand: &TensorType| operand.dtype == ty.dtype;
        if !operands[..2].iter().all(has_dtype) || update.size() == 0 || update.byte_size() > MAX_MOVED {
            return false;
        }
        let sizes = update.shape.sizes();
        let mut to = Elements::whole(output, ty);
        match starts {
            Starts::Static(starts) => {
                let steps = starts.iter().zip(&to.strides);
                to.offset = steps.map(|(&start, &by)| start as i64 * by as i64).sum();
            }
            Starts::Dynamic | Starts::FromEnd => {
                self.add_starts(&mut to, starts, sizes, (inputs, operands), 2)
            }
        }
        if !is_in_place {
            self.copy(&inputs[0], output, ty);
        }
        self.copy_box(update, sizes, &Elements::whole(&inputs[1], update), &to);
        true
    }

    /// Adds starts that are operands from one on: those of a window of so many elements.
    pub(super) fn add_starts(
        &mut self,
        elements: &mut Elements,
        starts: &Starts,
        lengths: &[usize],
        (inputs, operands): (&[Place], &[TensorType]),
        first: usize,
    ) {
        let sizes: SmallVec<[usize; 6]> = operands[0].shape.sizes().into();
        for (axis, (&size, &length)) in sizes.iter().zip(lengths).enumerate() {
            if size == length {
                continue;
            }
            let (place, ty) = (&inputs[first + axis], &operands[first + axis]);
            let (_, start) = self.elements(place, ty)[0];
            let wraps = starts.count_from_end().then_some(size);
            let start = self.start(start, ty.dtype.kind() == Kind::Signed, wraps, size - length);
            let by = elements.strides[axis] as i64;
            match self.b.constant_bits(start) {
                Some(known) => elements.offset += known as i64 * by,
                None => elements.starts.push((start, by)),
            }
        }
    }

    /// A start as an index from 0 to `last`; negative ones count from the end of an axis of a size that is given.
    fn start(&mut self, start: Val, is_signed: bool, wraps: Option<usize>, last: usize) -> Val {
        // An unsigned number that is known to be small is a signed one, too.
        let is_signed = is_signed || self.b.range(start).is_some_and(|(least, _)| least >= 0);
        if !is_signed {
            let wide = self.b.convert(Conv::ZeroExtend, Elem::I64, start);
            let most = self.b.bits(Elem::I64, last as u64);
            let start = self.b.op(Op::MinU, [wide, most]);
            return self.b.convert(Conv::ToIndex, Elem::Index, start);
        }
        let index = self.b.index_of(start);
        let [zero, last, minus_one] = [0, last as i64, -1].map(|number| self.b.index(number));
        let mut of_two = |op, a, b| self.b.computed(op, Elem::Index, [a, b, Val::NONE]);
        let mut counted = index;
        if let Some(size) = wraps {
            // -1 before the first element, else 0.
            let below = of_two(Op::Min, index, zero);
            let is_below = of_two(Op::Max, below, minus_one);
            let by = self.b.index(-(size as i64));
            let mut of_two = |op, a, b| self.b.computed(op, Elem::Index, [a, b, Val::NONE]);
            let moved = of_two(Op::Mul, is_below, by);
            counted = of_two(Op::Add, index, moved);
        }
        let mut of_two = |op, a, b| self.b.computed(op, Elem::Index, [a, b, Val::NONE]);
        let least = of_two(Op::Max, counted, zero);
        of_two(Op::Min, least, last)
    }

    /// Copies the elements of a box, which are of one dtype.
    fn copy_box(&mut self, ty: &TensorType, sizes: &[usize], from: &Elements, to: &Elements) {
        let (elem, parts) = parts_of(ty.dtype);
        let width = (elem.bytes() * parts) as i64;
        let is_small = elements_of(ty).is_some() || sizes.iter().product::<usize>() == 1;
        if is_small {
            self.copy_elements(elem, parts, sizes, from, to);
            return;
        }
        self.store(&from.place, from.bytes);
        self.store(&to.place, to.bytes);
        self.scalars.forget(&to.place, to.bytes);
        let rank = sizes.len();
        let fits = |by: isize| parts == 1 && (by == 1 || elem.bytes() >= 4 && by > 0);
        let [read, written] = [from, to].map(|elements| elements.strides[rank - 1]);
        // What lies in reverse order is turned in registers.
        let has_lanes = fits(written) && (fits(read) || read == 0 || fits(-read));
        let zeros: SmallVec<[usize; 6]> = SmallVec::from_elem(0, rank);
        let mut counters: SmallVec<[(Val, usize); 6]> = SmallVec::new();
        let loops = if has_lanes { rank - 1 } else { rank };
        for (axis, &size) in sizes[..loops].iter().enumerate().filter(|(_, size)| **size != 1) {
            let trips = self.b.index(size as i64);
            let (counter, _) = self.b.begin_loop(Some(trips), &[]);
            counters.push((counter, axis));
        }
        if has_lanes {
            let extent = self.b.index(sizes[rank - 1] as i64);
            self.b.begin_lanes(extent);
        }
        for part in 0..parts {
            let [source, target] = [from, to].map(|elements| {
                let mut access = elements.access(&self.b, width, &zeros, &counters);
                access.offset += (part * elem.bytes()) as i64;
                access.lane = if has_lanes { elements.strides[rank - 1] as i64 * width } else { 0 };
                access
            });
            let value = self.b.load(elem, source);
            self.b.store(value, target);
        }
        if has_lanes {
            self.b.end_lanes();
        }
        counters.iter().for_each(|_| self.b.end_loop(&[]));
    }

    /// Copies few elements, each by itself, and without an instruction where they are in registers.
    fn copy_elements(&mut self, elem: Elem, parts: usize, sizes: &[usize], from: &Elements, to: &Elements) {
        let (bytes, width) = (elem.bytes(), (elem.bytes() * parts) as i64);
        let count: usize = sizes.iter().product();
        if !from.starts.is_empty() {
            self.store(&from.place, from.bytes);
        }
        // Which element is written may be known only when the function runs.
        let is_kept = to.is_small && to.starts.is_empty();
        if !is_kept {
            self.store(&to.place, to.bytes);
        }
        let mut moved: SmallVec<[(Access, Val); 9]> = SmallVec::new();
        for at in 0..count {
            let mut left = at;
            let mut positions: SmallVec<[usize; 6]> = SmallVec::from_elem(0, sizes.len());
            for (position, &size) in positions.iter_mut().zip(sizes).rev() {
                (*position, left) = (left % size, left / size);
            }
            for part in 0..parts {
                let [source, target] = [from, to].map(|elements| {
                    let mut access = elements.access(&self.b, width, &positions, &[]);
                    access.offset += (part * bytes) as i64;
                    access
                });
                let known = if source.terms.is_empty() {
                    let place = Place::fixed(source.buffer, source.offset);
                    self.scalars.get(&place, bytes).map(|value| self.b.convert(Conv::Bitcast, elem, value))
                } else {
                    None
                };
                moved.push((target, known.unwrap_or_else(|| self.b.load(elem, source))));
            }
        }
        for (access, value) in moved {
            if is_kept && access.terms.is_empty() {
                let place = Place::fixed(access.buffer, access.offset);
                self.scalars.insert(&place, bytes, value, false);
            } else {
                self.b.store(value, access);
            }
        }
        if !is_kept {
            self.scalars.forget(&to.place, to.bytes);
        }
    }
}
