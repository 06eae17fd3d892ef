//! Runs the steps of a plan.

use std::sync::Arc;

use defn_core::backend::{Backend, Buffer, Buffers, Hooks, Operand};
use defn_core::evaluator::{adopt, is_true, tensors_of};
use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::Op;
use defn_core::{Error, Result, form};
use smallvec::SmallVec;

use super::group::Group;
use super::plan::{Plan, Step, Work};
use crate::backend::{buffer, parallel, window};
use crate::buffer::{Storage, Window};
use crate::kernels::Source;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Buffers by slot.
type Slots = [Option<Arc<dyn Buffer>>];

/// One run.
pub(super) struct Run<'a> {
    pub(super) backend: &'a Arc<dyn Backend>,
    pub(super) hooks: &'a dyn Hooks,
}

impl Run<'_> {
    /// Runs a plan on an argument for each input that it uses. What nobody else holds may be reused.
    pub(super) fn plan(
        &self,
        plan: &Plan,
        mut arguments: Vec<Option<Arc<dyn Buffer>>>,
    ) -> Result<Vec<Arc<dyn Buffer>>> {
        let graph = plan.region.graph();
        let mut slots: Vec<Option<Arc<dyn Buffer>>> = vec![None; plan.slots];
        for &(index, slot) in &plan.arguments {
            slots[slot] = arguments[index].take();
        }
        drop(arguments);
        for (slot, kept) in &plan.kept {
            slots[*slot] = Some(kept.clone());
        }
        for step in &plan.steps {
            let node = &graph.nodes()[step.node];
            let outputs =
                self.step(graph, step, node, &mut slots).map_err(|error| blame(error, graph, node))?;
            for (output, buffer) in step.outputs.iter().zip(outputs) {
                if let Some(slot) = *output {
                    slots[slot] = Some(buffer);
                }
            }
            self.hooks.poll()?;
        }
        let fetch = |&(slot, is_last): &(usize, bool)| {
            let held = &mut slots[slot];
            // The last of equal results takes the buffer, so that the caller may be its only holder.
            let buffer = if is_last { held.take() } else { held.clone() };
            buffer.expect("results live to the end")
        };
        Ok(plan.results.iter().map(fetch).collect())
    }

    fn step(&self, graph: &Graph, step: &Step, node: &Node, slots: &mut Slots) -> Result<Buffers> {
        match &step.work {
            Work::Group(Group { program, inputs, results, elements }) => {
                let values = inputs.iter().map(|(value, _)| *value);
                self.fresh(graph, step, slots, values, results, |views, outs, par| {
                    let pairs = views.iter().zip(inputs);
                    let sources = pairs.map(|(view, (_, walk))| Source::walked(*view, walk.clone()));
                    program.run(&sources.collect::<SmallVec<[Source<'_>; 8]>>(), outs, *elements, par);
                })
            }
            Work::Strip(strip) => {
                let values = strip.inputs.iter().copied();
                self.fresh(graph, step, slots, values, &strip.results, |views, outs, par| {
                    strip.run(graph, views, outs, par);
                })
            }
            Work::Op => {
                let pairs = node.inputs.iter().zip(take(step, slots));
                let operands = pairs.map(|(&input, buffer)| Operand { ty: graph.ty(input).clone(), buffer });
                let operands = operands.collect();
                if let Op::Fold(_) = &node.op {
                    let poll = || self.hooks.poll();
                    return self.backend.run_fold(&node.op, operands, &node.outputs, false, &poll);
                }
                self.backend.run_unchecked(&node.op, operands, &node.outputs)
            }
            Work::Hook { slot, types } => {
                let values: Buffers = take(step, slots).collect();
                self.hooks.call(*slot, &tensors_of(types, &values))?;
                Ok(values)
            }
            Work::Call { slot, types, outputs } => {
                let values: Buffers = take(step, slots).collect();
                let results = self.hooks.compute(*slot, &tensors_of(types, &values), outputs)?;
                adopt(&node.op, results, outputs, self.backend)
            }
            Work::Cond { predicates, branches } => {
                let mut operands = take(step, slots);
                let mut chosen = predicates.len();
                for (position, ty) in predicates.iter().enumerate() {
                    let predicate = operands.next().expect("a predicate for each branch but the last");
                    if chosen == predicates.len() && is_true(ty, &*predicate)? {
                        chosen = position;
                    }
                }
                let captures = operands.map(Some).collect();
                Ok(self.plan(&branches[chosen], captures)?.into())
            }
            Work::While { state, predicate, cond, body } => {
                let mut operands = take(step, slots);
                let mut state: Vec<Arc<dyn Buffer>> = operands.by_ref().take(*state).collect();
                let captures: Vec<Arc<dyn Buffer>> = operands.collect();
                loop {
                    self.hooks.poll()?;
                    let given = state.iter().chain(&captures).cloned().map(Some).collect();
                    let verdict = self.plan(cond, given)?;
                    if !is_true(predicate, &*verdict[0])? {
                        return Ok(state.into());
                    }
                    let given = state.into_iter().chain(captures.iter().cloned()).map(Some).collect();
                    state = self.plan(body, given)?;
                }
            }
        }
    }

    /// Runs what writes results into new memory; `values` are what the step reads.
    fn fresh(
        &self,
        graph: &Graph,
        step: &Step,
        slots: &mut Slots,
        values: impl Iterator<Item = Value> + Clone,
        results: &Values,
        work: impl FnOnce(&[View<'_>], &[ViewMut<'_>], Par),
    ) -> Result<Buffers> {
        let op = form::name(&graph.nodes()[step.node].op);
        let windows = values.clone().zip(&step.inputs).map(|(value, (slot, _))| {
            let buffer = slots[*slot].clone().expect("a value lives until its last use");
            window(op, &Operand { ty: graph.ty(value).clone(), buffer })
        });
        let windows: SmallVec<[Window; 8]> = windows.collect::<Result<_>>()?;
        let pairs = values.clone().zip(&windows);
        let inputs = pairs.map(|(value, window)| View::new(graph.ty(value), window.bytes()));
        let inputs: SmallVec<[View<'_>; 8]> = inputs.collect();
        let types = || results.iter().map(|&value| graph.ty(value));
        let mut storages: SmallVec<[Storage; 2]> =
            types().map(|ty| Storage::allocate(op, ty.byte_size())).collect::<Result<_>>()?;
        let views = types().zip(&mut storages).map(|(ty, storage)| {
            let start = storage.start_mut().expect("allocated memory is ours");
            // SAFETY: the storage was allocated for this type, and only this view reaches it.
            unsafe { ViewMut::new(ty, start) }
        });
        let views: SmallVec<[ViewMut<'_>; 2]> = views.collect();
        work(&inputs, &views, parallel(values.map(|value| graph.ty(value)).chain(types())));
        drop(views);
        for &(slot, dies) in &step.inputs {
            if dies {
                slots[slot] = None;
            }
        }
        let windows = types().zip(storages).map(|(ty, storage)| {
            // SAFETY: programs write every element of their results.
            buffer(unsafe { Window::new(Arc::new(storage), 0, ty.byte_size()) })
        });
        Ok(windows.collect())
    }
}

/// What a step reads, one after the other; what nothing reads later is taken.
fn take<'s>(step: &'s Step, slots: &'s mut Slots) -> impl Iterator<Item = Arc<dyn Buffer>> + use<'s> {
    step.inputs.iter().map(|&(slot, dies)| {
        let buffer = if dies { slots[slot].take() } else { slots[slot].clone() };
        buffer.expect("a value lives until its last use")
    })
}

/// Says where in the user's program a run failed.
#[cold]
fn blame(error: Error, graph: &Graph, node: &Node) -> Error {
    error.at(node.location.clone()).with_operands(node.inputs.iter().map(|&value| graph.ty(value)))
}
