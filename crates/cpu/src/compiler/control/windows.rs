//! Windows of arrays at starts that are known when the function runs. Where the elements of a window lie beside each
//! other, it is read where it is, and copied only when the array is written while somebody still needs the window.

use std::sync::Arc;

use defn_core::TensorType;
use defn_core::op::{Starts, View};

use super::link::{Frame, Linker};
use super::moves::Elements;
use super::places::{Place, elements_of, parts_of};
use crate::compiler::buffer_assignment::{BufferRef, ResultBinding};
use crate::compiler::plan::{Plan, Step, Work};

/// A window that is read where it is.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The memory that the plan has for it.
    home: Place,
    ty: TensorType,
    /// Where its elements are.
    view: Place,
    /// The array that they are in, and its bytes.
    array: (Place, usize),
}

impl Linker {
    /// Where the elements of what the plan has at a place are.
    pub(super) fn seen(&self, home: &Place) -> Place {
        let within = |window: &Window| {
            let at = home.within(&window.home, window.ty.byte_size())?;
            Some(window.view.offset_by(at))
        };
        self.windows.iter().find_map(within).unwrap_or_else(|| home.clone())
    }

    /// Makes a window of a step that cuts one, if its elements lie beside each other.
    pub(super) fn window(
        &mut self,
        plan: &Arc<Plan>,
        step: &Step,
        (inputs, operands): (&[Place], &[TensorType]),
        home: &Place,
    ) -> bool {
        let node = &plan.region.graph().nodes()[step.node];
        let Some(View::Slice { starts: starts @ (Starts::Dynamic | Starts::FromEnd), lengths, strides }) =
            node.op.view()
        else {
            return false;
        };
        let (BufferRef::Arena(_), ty) = (step.outputs[0].1, &node.outputs[0]) else { return false };
        let is_small = elements_of(ty).is_some() || ty.size() == 0;
        if is_small || operands[0].dtype != ty.dtype || strides.iter().any(|&by| by != 1) {
            return false;
        }
        let sizes = operands[0].shape.sizes().iter().zip(lengths);
        let mut inner = sizes.skip_while(|(_, length)| **length == 1).skip(1);
        if !inner.all(|(size, length)| size == length) {
            return false;
        }
        let mut elements = Elements::whole(&inputs[0], &operands[0]);
        self.add_starts(&mut elements, starts, lengths, (inputs, operands), 1);
        let (elem, parts) = parts_of(ty.dtype);
        let view = elements.first(&self.b, (elem.bytes() * parts) as i64);
        let seen = self
            .windows
            .iter()
            .find(|window| inputs[0].within(&window.view, window.ty.byte_size()).is_some());
        let array = match seen {
            Some(window) => window.array.clone(),
            None => (inputs[0].clone(), operands[0].byte_size()),
        };
        self.windows.push(Window { home: home.clone(), ty: ty.clone(), view, array });
        true
    }

    /// Copies the windows that are needed by a step or later, and whose arrays the step writes.
    pub(super) fn before_writes(
        &mut self,
        plan: &Arc<Plan>,
        at: usize,
        frame: &Frame<'_>,
        outputs: &[Place],
    ) {
        if self.windows.is_empty() {
            return;
        }
        let step = &plan.steps[at];
        let graph = plan.region.graph();
        let sizes = step.outputs.iter().map(|(value, _)| graph.ty(*value).byte_size());
        let scratch = frame.arena.offset_by(step.scratch_offset);
        let mut written: Vec<(Place, usize)> = outputs.iter().cloned().zip(sizes).collect();
        written.push((scratch, step.scratch_bytes(graph)));
        // Kernels write over operands that lie where the result does.
        let is_copied = |work: &Work| match work {
            Work::Nest(_) | Work::Regions(_) => true,
            Work::Epilogue(_)
            | Work::BackToBackGemm(_)
            | Work::Op
            | Work::Hook { .. }
            | Work::Call { .. }
            | Work::Control(_) => false,
        };
        let needs_home = !is_copied(&step.work);
        let mut later = Vec::new();
        for step in &plan.steps[at..] {
            later.extend(step.inputs.iter().map(|&(_, buffer)| self.place(plan, frame, buffer)));
        }
        for binding in &plan.results {
            if let ResultBinding::Existing(buffer) | ResultBinding::Copied(buffer) = binding {
                later.push(self.place(plan, frame, *buffer));
            }
        }
        let mut at = 0;
        while let Some(window) = self.windows.get(at).cloned() {
            let bytes = window.ty.byte_size();
            let overlaps =
                |(place, own): &(Place, usize), other: &Place, bytes| place.may_overlap(*own, other, bytes);
            let (array, array_bytes) = &window.array;
            let is_array_written = written.iter().any(|place| overlaps(place, array, *array_bytes));
            let is_home_written = written.iter().any(|place| overlaps(place, &window.home, bytes));
            let is_kept = !(is_array_written || needs_home && is_home_written);
            if is_kept {
                at += 1;
                continue;
            }
            self.windows.remove(at);
            if later.iter().any(|place| place.within(&window.home, bytes).is_some()) {
                self.copy(&window.view, &window.home, &window.ty);
            }
        }
    }

    /// Forgets the windows whose memory has something else.
    pub(super) fn after_writes(&mut self, outputs: &[Place], results: &[TensorType]) {
        for (place, ty) in outputs.iter().zip(results) {
            let is_kept =
                |window: &Window| !place.may_overlap(ty.byte_size(), &window.home, window.ty.byte_size());
            self.windows.retain(is_kept);
        }
    }
}
