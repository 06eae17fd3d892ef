//! The fast path of plans that are one nest of a few elements, whose dispatch would cost more than their arithmetic.

use defn_core::backend::Buffers;
use defn_core::donation::named;
use defn_core::{Result, Tensor};
use smallvec::SmallVec;

use super::Compiled;
use super::buffer_assignment::{BufferRef, ResultBinding};
use super::plan::Plan;
use super::run::{Pointers, allocate_for_node};
use crate::backend::filled;
use crate::buffer::{CpuBuffer, LockedBytes, Storage, Window};
use crate::par::Par;

/// The inputs of the only step of a plan.
#[derive(Debug)]
pub(super) struct FastPath {
    /// For each input the argument, and from which byte on.
    inputs: SmallVec<[(usize, usize); 4]>,
}

impl FastPath {
    /// The fast path of a plan that is one short nest, which reads arguments and writes every result.
    pub(super) fn of(plan: &Plan) -> Option<FastPath> {
        let [step] = &*plan.steps else { return None };
        step.work.nest().filter(|nest| nest.is_single() && nest.scratch_bytes() == 0)?;
        let is_written = |(at, binding): (usize, &ResultBinding)| {
            *binding == ResultBinding::Computed
                && step.outputs.get(at).is_some_and(|(_, buffer_ref)| *buffer_ref == BufferRef::Result(at, 0))
        };
        let all_written = plan.results.iter().enumerate().all(is_written);
        if !all_written || plan.owned_results.len() != plan.results.len() || plan.arena > 0 {
            return None;
        }
        let inputs = step.inputs.iter().map(|(_, buffer_ref)| match buffer_ref {
            BufferRef::Argument(argument, offset) => Some((*argument, *offset)),
            BufferRef::Constant(..) | BufferRef::Result(..) | BufferRef::Arena(_) => None,
        });
        Some(FastPath { inputs: inputs.collect::<Option<_>>()? })
    }

    /// Where the inputs begin, of which each buffer is held once. None where another thread is at one, and where one is
    /// gone.
    fn try_lock_inputs<'b>(
        &self,
        buffers: &[&'b CpuBuffer],
        locked: &mut SmallVec<[LockedBytes<'b>; 4]>,
    ) -> Option<Pointers> {
        let mut inputs = Pointers::new();
        for (at, &buffer) in buffers.iter().enumerate() {
            let offset = self.inputs[at].1;
            let before = buffers[..at].iter().position(|before| std::ptr::eq(*before, buffer));
            let start = match before {
                Some(before) => inputs[before].wrapping_sub(self.inputs[before].1),
                None => {
                    let own = buffer.lock_bytes()?;
                    let start = own.bytes()?.as_ptr().cast_mut();
                    locked.push(own);
                    start
                }
            };
            inputs.push(start.wrapping_add(offset));
        }
        Some(inputs)
    }
}

impl Compiled {
    /// Runs a plan that has a fast path, on arguments of the program's types of which none is donated.
    pub(super) fn run_fast_path(&self, fast_path: &FastPath, arguments: &[&Tensor]) -> Result<Buffers> {
        let mut buffers: SmallVec<[&CpuBuffer; 4]> = SmallVec::new();
        for &(argument, _) in &fast_path.inputs {
            let tensor = arguments[argument];
            buffers.push(self.buffer(tensor).map_err(|error| named(error, argument, tensor))?);
        }
        let (mut locked, mut windows) =
            (SmallVec::<[LockedBytes<'_>; 4]>::new(), SmallVec::<[Window; 4]>::new());
        let inputs = match fast_path.try_lock_inputs(&buffers, &mut locked) {
            Some(inputs) => inputs,
            None => {
                // Another thread has locked some, and may wait for one that is locked here.
                locked.clear();
                let mut inputs = Pointers::new();
                for (&(argument, offset), buffer) in fast_path.inputs.iter().zip(&buffers) {
                    let window = buffer.window("run");
                    let window = window.map_err(|error| named(error, argument, arguments[argument]))?;
                    inputs.push(window.bytes().as_ptr().cast_mut().wrapping_add(offset));
                    windows.push(window);
                }
                inputs
            }
        };
        let (mut made, mut starts) = (SmallVec::<[Storage; 2]>::new(), Pointers::new());
        for owned in &self.plan.owned_results {
            let mut storage = allocate_for_node(&self.plan, Some(owned.node), owned.bytes)?;
            starts.push(storage.start_mut().expect("allocated memory is ours"));
            made.push(storage);
        }
        let nest = self.plan.steps[0].work.nest().expect("the only step is a nest");
        // SAFETY: arguments are of the types that the plan was made for and are held, and results have memory of their
        // sizes.
        unsafe { nest.run(&inputs, &starts, std::ptr::null_mut(), Par::Serial) };
        let mut results = Buffers::new();
        for storage in made {
            // SAFETY: the step has written every element.
            results.push(unsafe { filled(storage) });
        }
        Ok(results)
    }
}
