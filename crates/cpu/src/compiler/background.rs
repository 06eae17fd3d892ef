//! The first calls of a program that is compiled in the background: they run op by op, on the same arguments.

use std::sync::Arc;
use std::sync::mpsc::channel;

use defn_core::backend::{Backend, Checks, Compiler, Executable, Gone, Hooks, check_arguments};
use defn_core::background::Job;
use defn_core::donation::{named, positions};
use defn_core::evaluator::Evaluator;
use defn_core::region::Region;
use defn_core::{Result, Tensor};
use smallvec::SmallVec;

use super::cpu_buffer;
use crate::buffer::{CpuBuffer, Window};

/// The stack of a thread that compiles: as large as that of a main thread, so that programs which compile there do here.
const STACK_BYTES: usize = 8 << 20;

/// Runs a job on a thread of its own; if the system has no more threads, this thread runs it.
pub(super) fn start(job: Job) {
    let (sender, receiver) = channel::<Job>();
    let run = move || {
        if let Ok(job) = receiver.recv() {
            job();
        }
    };
    match std::thread::Builder::new().name("defn-compile".to_owned()).stack_size(STACK_BYTES).spawn(run) {
        Ok(_) => sender.send(job).unwrap_or_else(|unsent| (unsent.0)()),
        Err(_) => job(),
    }
}

/// The evaluator, with the donation and the messages of a compiled program.
#[derive(Debug)]
pub(super) struct FirstCalls {
    evaluator: Arc<dyn Executable>,
    backend: Arc<dyn Backend>,
    /// The positions of the donated arguments, ascending.
    donate: Vec<usize>,
}

impl FirstCalls {
    pub(super) fn new(
        program: &Arc<Region>,
        backend: Arc<dyn Backend>,
        donate: &[usize],
    ) -> Result<FirstCalls> {
        let evaluator = Evaluator::new(backend.clone()).compile(program.clone(), Checks::default())?;
        Ok(FirstCalls { evaluator, backend, donate: positions(donate) })
    }

    /// The arguments for the evaluator, which hold their elements, and the elements of the donated ones.
    fn take(&self, arguments: &[Tensor], taken: &mut SmallVec<[Window; 2]>) -> Result<Vec<Tensor>> {
        let mut inputs = arguments.to_vec();
        let mut set = |position: usize, window: Window| {
            let ty = arguments[position].whole().clone();
            inputs[position] = Tensor::concrete(ty, Arc::new(CpuBuffer::new(window)));
        };
        // Others first: one of them may be the same tensor as a donated one.
        for (position, argument) in arguments.iter().enumerate() {
            if self.evaluator.uses(position) && !self.donate.contains(&position) {
                let window = cpu_buffer(argument, &self.backend).and_then(|buffer| buffer.window("run"));
                set(position, window.map_err(|error| named(error, position, argument))?);
            }
        }
        let gone = Gone::donated();
        for &position in &self.donate {
            let argument = &arguments[position];
            let window = cpu_buffer(argument, &self.backend)
                .and_then(|buffer| buffer.take_window("run", gone.clone()))
                .map_err(|error| named(error, position, argument))?;
            taken.push(window.clone());
            set(position, window);
        }
        Ok(inputs)
    }
}

impl Executable for FirstCalls {
    fn program(&self) -> &Arc<Region> {
        self.evaluator.program()
    }

    fn uses(&self, input: usize) -> bool {
        self.evaluator.uses(input) || self.donate.contains(&input)
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        if !backend.is_same_device(&*self.backend) {
            return self.evaluator.run(backend, arguments, hooks);
        }
        check_arguments("run", self.program().inputs(), arguments.iter())?;
        let mut taken = SmallVec::new();
        let inputs = self.take(&arguments, &mut taken);
        inputs.and_then(|inputs| self.evaluator.run(backend, inputs, hooks)).inspect_err(|_| {
            for (&position, window) in self.donate.iter().zip(taken) {
                if let Ok(buffer) = cpu_buffer(&arguments[position], &self.backend) {
                    buffer.restore(window);
                }
            }
        })
    }
}
