//! Loops and branches as one function.
//!
//! Each region is planned like a program (`regions`). The function of a node of control flow does what the steps of its
//! regions do, one after the other (`link`): nests are copied into it (`inline`), loops and branches of regions are its
//! own (`flow`), ops that only move elements (`moves`), products (`dots`) and systems (`systems`) of few elements are its
//! instructions, and everything else is a kernel that it calls. State is in registers where it is a scalar, and else in memory
//! that the plan of the whole program has for it (`places`). A trip allocates nothing and dispatches nothing.

mod dots;
mod flow;
mod inline;
mod link;
mod moves;
mod overwritten;
mod places;
mod regions;
mod systems;
mod windows;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use defn_core::graph::{Graph, Node};
use defn_core::{Error, Result};
use smallvec::SmallVec;

use super::ir::{BoundKernel, Function, Status};
use super::nest::SharedCode;
use super::plan::{Plan, Step};
use super::run::{PlanRun, Pointers};
use link::{Kernel, Linked, link};
pub(super) use overwritten::overwritten;
pub(super) use regions::Regions;

/// The operands of a step for which nothing is allocated. No nest reads more values than a few dozen.
const MAX_INLINE: usize = 64;

/// A loop or branches, ready to run.
#[derive(Debug)]
pub(super) struct Control {
    code: Arc<SharedCode>,
    kernels: Vec<Kernel>,
    constants: Vec<(Arc<Plan>, usize)>,
    scratch: usize,
    regions: Regions,
}

/// Why a kernel did not go on.
enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// What a kernel is passed beside its arguments.
struct Context<'c> {
    run: &'c PlanRun<'c>,
    kernel: &'c Kernel,
    failure: &'c Cell<Option<Failure>>,
}

impl Control {
    /// The regions of a node.
    pub(super) fn new(regions: Regions, graph: &Graph, node: &Node) -> Control {
        let Linked { function, kernels, constants, scratch } = link(&regions, graph, node);
        Control { code: SharedCode::of(function), kernels, constants, scratch, regions }
    }

    /// How many of the first operands are the state of a loop, which the first results are in the end.
    pub(super) fn state(&self) -> usize {
        self.regions.state()
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.regions.plans()
    }

    /// The bytes that it needs beside operands and results.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    pub(super) fn function(&self) -> &Function {
        &self.code.function
    }

    /// The steps of regions that the function calls.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Plan, &Step)> {
        self.kernels.iter().filter_map(|kernel| match kernel {
            Kernel::Step(plan, at) => Some((&**plan, &plan.steps[*at])),
            Kernel::Copy | Kernel::Poll => None,
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of kernels, and those of the host that is asked now and then.
    ///
    /// # Safety
    /// At the pointers are the elements of the operands, and room for those of the results, aligned, which nobody else
    /// uses meanwhile; a part of a loop's state may be its result. At `scratch` are as many bytes as
    /// [`Control::scratch_bytes`] says.
    pub(super) unsafe fn run(
        &self,
        run: &PlanRun<'_>,
        operands: &[*mut u8],
        results: &[*mut u8],
        scratch: *mut u8,
    ) -> Result<()> {
        let failure = Cell::new(None);
        let contexts: SmallVec<[Context<'_>; 4]> =
            self.kernels.iter().map(|kernel| Context { run, kernel, failure: &failure }).collect();
        let constants = self.constants.iter().map(|(plan, at)| plan.constants[*at].start().cast_mut());
        let pointers = std::iter::once(std::ptr::null_mut()).chain(operands.iter().copied());
        let pointers = pointers.chain(results.iter().copied()).chain([scratch]).chain(constants);
        let mut args: SmallVec<[u64; 32]> =
            pointers.map(|pointer: *mut u8| pointer.expose_provenance() as u64).collect();
        // The pointers are numbers, too.
        let addresses: SmallVec<[u64; 16]> = args.iter().copied().collect();
        args.extend(addresses);
        for context in &contexts {
            let context = std::ptr::from_ref(context).cast_mut().cast::<()>();
            let kernel = BoundKernel { run: call, context };
            args.extend([kernel.run as *const () as u64, kernel.context.expose_provenance() as u64]);
        }
        args.extend_from_slice(&self.code.applied);
        // SAFETY: the arguments are those of the function; it uses the memory as the plans of its regions say.
        let status = unsafe { self.code.runner(usize::MAX).run(&args) };
        match failure.take() {
            None => {
                debug_assert_eq!(status, 0, "who stops says why");
                Ok(())
            }
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic(panic)) => resume_unwind(panic),
        }
    }
}

/// Runs a kernel; another status than 0 stops the function. Nothing unwinds through machine code.
///
/// # Safety
/// The context is one of [`Control::run`], and the arguments are those of its kernel.
unsafe extern "C" fn call(context: *mut (), args: *const u64) -> Status {
    // SAFETY: as the caller says.
    let context = unsafe { &*context.cast::<Context<'_>>() };
    // SAFETY: as above.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { context.kernel.run(context.run, args) }));
    let failure = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => Failure::Error(error),
        Err(panic) => Failure::Panic(panic),
    };
    context.failure.set(Some(failure));
    1
}

impl Kernel {
    /// # Safety
    /// The arguments are those of the kernel.
    unsafe fn run(&self, run: &PlanRun<'_>, args: *const u64) -> Result<()> {
        // SAFETY: as the caller says.
        let word = |at: usize| unsafe { *args.add(at) as usize };
        let pointer = |at: usize| std::ptr::with_exposed_provenance_mut::<u8>(word(at));
        match self {
            Kernel::Copy => {
                if word(0) != word(1) {
                    // SAFETY: values lie apart, or are one.
                    unsafe { std::ptr::copy_nonoverlapping(pointer(0), pointer(1), word(2)) };
                }
                Ok(())
            }
            Kernel::Poll => run.hooks.poll(),
            Kernel::Step(plan, at) => {
                let step = &plan.steps[*at];
                let (inputs, outputs) = (step.inputs.len(), step.outputs.len());
                // A trip allocates nothing.
                let operands: SmallVec<[*mut u8; MAX_INLINE]> = (0..inputs).map(pointer).collect();
                let results: Pointers = (inputs..inputs + outputs).map(pointer).collect();
                // SAFETY: the function passes what the step reads and writes.
                unsafe { run.step(plan, step, &operands, &results, pointer(inputs + outputs)) }
            }
        }
    }
}
