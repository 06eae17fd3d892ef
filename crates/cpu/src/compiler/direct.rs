//! Plans of one step on a few elements: the way to it would take longer than it does.

use std::sync::Arc;

use defn_core::backend::Buffers;
use defn_core::donation::named;
use defn_core::{Result, Tensor};
use smallvec::SmallVec;

use super::Compiled;
use super::group::Group;
use super::places::{Given, Place};
use super::plan::{Plan, Work};
use super::run::{Pointers, room_for};
use crate::backend::buffer;
use crate::buffer::{Storage, Window};

/// Where the only step of a plan finds what it reads.
#[derive(Debug)]
pub(super) struct Direct {
    /// For each input the argument, and from which byte on.
    inputs: SmallVec<[(usize, usize); 4]>,
}

impl Direct {
    /// The way of a plan that has a brief group alone, which reads arguments and writes every result.
    pub(super) fn of(plan: &Plan) -> Option<Direct> {
        let [step] = &*plan.steps else { return None };
        let Work::Group(Group { brief: Some(_), .. }) = &step.work else { return None };
        let is_written = |(at, given): (usize, &Given)| {
            *given == Given::Written
                && step.outputs.get(at).is_some_and(|(_, place)| *place == Place::Result(at, 0))
        };
        let all_written = plan.results.iter().enumerate().all(is_written);
        if !all_written || plan.own.len() != plan.results.len() || plan.arena > 0 {
            return None;
        }
        let inputs = step.inputs.iter().map(|(_, place)| match place {
            Place::Argument(argument, offset) => Some((*argument, *offset)),
            Place::Kept(..) | Place::Result(..) | Place::Arena(_) => None,
        });
        Some(Direct { inputs: inputs.collect::<Option<_>>()? })
    }
}

impl Compiled {
    /// Runs a plan that has such a way, on arguments of the program's types of which none is donated.
    pub(super) fn run_directly(&self, direct: &Direct, arguments: &[&Tensor]) -> Result<Buffers> {
        let Work::Group(Group { program, brief: Some(brief), .. }) = &self.plan.steps[0].work else {
            unreachable!("the only step is a brief group")
        };
        let (mut held, mut inputs) = (SmallVec::<[Window; 4]>::new(), Pointers::new());
        for &(argument, offset) in &direct.inputs {
            let tensor = arguments[argument];
            let window = self.buffer(tensor).and_then(|buffer| buffer.window("run"));
            let window = window.map_err(|error| named(error, argument, tensor))?;
            inputs.push(window.bytes().as_ptr().cast_mut().wrapping_add(offset));
            held.push(window);
        }
        let (mut made, mut results) = (SmallVec::<[Storage; 2]>::new(), Pointers::new());
        for own in &self.plan.own {
            let mut storage = room_for(&self.plan, Some(own.node), own.bytes)?;
            results.push(storage.start_mut().expect("allocated memory is ours"));
            made.push(storage);
        }
        // SAFETY: arguments are of the types that the plan was made for and are held, and results have the room.
        unsafe { program.run_brief(brief, &inputs, &results) };
        let mut buffers = Buffers::new();
        for (storage, own) in made.into_iter().zip(&self.plan.own) {
            // SAFETY: the step has written every element.
            buffers.push(buffer(unsafe { Window::new(Arc::new(storage), 0, own.bytes) }));
        }
        Ok(buffers)
    }
}
