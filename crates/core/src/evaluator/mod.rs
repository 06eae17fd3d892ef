//! The evaluator: a compiler that generates no code and runs a graph op by op on a backend.
//!
//! It is the reference for every other compiler, and best for debugging. Values are dropped after their last
//! use. The last use passes ownership of the buffer, so that a backend may reuse its memory.

mod elements;
mod ends;
mod plan;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::backend::{Backend, Buffer, Buffers, Checks, Compiler, Executable, Hooks, Operand};
use crate::background::First;
use crate::device::DeviceError;
use crate::error::{Error, ErrorKind, Result};
use crate::form;
use crate::graph::Node;
use crate::infer::infer;
use crate::memory;
use crate::op::{Op, ReduceOp, UnaryOp};
use crate::pass;
use crate::profile::{self, Recorder};
use crate::region::Region;
use crate::shape::TensorType;
use crate::stack;
use crate::tensor::Tensor;
pub(crate) use elements::depends_on_elements;
pub use ends::{adopt, argument_buffers, is_true, tensors_of};
use plan::{Plan, Step};

/// Compiles by simplifying and finding last uses.
#[derive(Clone, Debug)]
pub struct Evaluator {
    fold: Arc<dyn Backend>,
}

impl Evaluator {
    /// An evaluator that folds scalar constants on `backend`.
    pub fn new(backend: Arc<dyn Backend>) -> Evaluator {
        Evaluator { fold: backend }
    }
}

impl Compiler for Evaluator {
    fn name(&self) -> &str {
        "evaluator"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        if !donate.is_empty() {
            return Err(DeviceError::no_donation(self.name()).into());
        }
        let simplified = Arc::new(pass::simplify(&program, &self.fold)?);
        Ok(Arc::new(Evaluation { plan: Plan::new(simplified)?, program, checks }))
    }

    /// There is nothing to wait for.
    fn in_background(&self, _: &Arc<Region>, _: Checks, _: &[usize]) -> Result<Option<First>> {
        Ok(None)
    }
}

/// A program with its plan.
#[derive(Debug)]
struct Evaluation {
    program: Arc<Region>,
    plan: Plan,
    checks: Checks,
}

impl Executable for Evaluation {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        self.plan.used_inputs[input]
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        let used = |input: usize| self.plan.used_inputs[input];
        let buffers = argument_buffers(&self.program, used, backend, arguments)?;
        let run =
            Execution { backend, hooks, checks: self.checks, is_eager: false, recorder: profile::current() };
        let _program = run.recorder.as_deref().map(Recorder::program);
        let results = run.inputs(&self.plan, buffers)?;
        let types = self.program.result_types().cloned();
        Ok(types.zip(results).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect())
    }
}

/// Runs one eager op, including its regions. Positions out of range are an error, independent of the checks,
/// where the backend reports them. Only a window whose starts do not count from the end is clamped into range
/// on every backend.
///
/// # Errors
/// Errors that depend on the elements, memory, and errors of hooks.
pub fn run_op(
    backend: &Arc<dyn Backend>,
    op: &Op,
    operands: SmallVec<[Operand; 3]>,
    outputs: &[TensorType],
    hooks: &dyn Hooks,
    checks: Checks,
) -> Result<Buffers> {
    let step = {
        let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|operand| &operand.ty).collect();
        Step::new(op, &types)?
    };
    // Only plans keep constants; here a constant is computed like any other result.
    let run = Execution { backend, hooks, checks, is_eager: true, recorder: None };
    let is_constant = matches!(step, Step::CachedConstant(_));
    if is_constant || run.is_native(op, &step) {
        return run.one(op, operands, outputs);
    }
    let buffers = operands.into_iter().map(|operand| operand.buffer).collect();
    run.control(op, &step, buffers)
}

/// One execution.
struct Execution<'a> {
    backend: &'a Arc<dyn Backend>,
    hooks: &'a dyn Hooks,
    checks: Checks,
    /// Whether this is an eager op: operands for which the op is not defined are then an error, independent
    /// of the checks.
    is_eager: bool,
    /// Records the time of each step, where profiling is on.
    recorder: Option<Arc<Recorder>>,
}

impl Execution<'_> {
    /// Runs one op of the backend.
    fn one(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        let looks = self.checks.index
            || self.is_eager && !elements::clamps_when_eager(op, &outputs[0], &**self.backend);
        if looks && !self.backend.checks_operands() {
            elements::check(op, &operands, &outputs[0])?;
        }
        // An infinity in an operand is not the op's fault. The clones also keep the operands from being
        // reused in place.
        let before = if self.checks.inf { operands.clone() } else { SmallVec::new() };
        let buffers = if let Op::Fold(_) | Op::WindowFold(_) = op {
            self.backend.run_fold(op, operands, outputs, looks, &|| self.hooks.poll())?
        } else if looks {
            self.backend.run(op, operands, outputs)?
        } else {
            self.backend.run_unchecked(op, operands, outputs)?
        };
        self.require_numbers(op, &before, outputs, &buffers)?;
        Ok(buffers)
    }

    /// The results of a host function, checked and copied to the program's backend.
    fn adopt(&self, op: &Op, results: Vec<Tensor>, outputs: &[TensorType]) -> Result<Buffers> {
        let buffers = adopt(op, results, outputs, self.backend)?;
        self.require_numbers(op, &[], outputs, &buffers)?;
        Ok(buffers)
    }

    /// Reports results with a NaN or an infinity, as far as checks request it.
    fn require_numbers(
        &self,
        op: &Op,
        operands: &[Operand],
        outputs: &[TensorType],
        buffers: &[Arc<dyn Buffer>],
    ) -> Result<()> {
        let name = || form::name(op);
        for (ty, buffer) in outputs.iter().zip(buffers) {
            if self.checks.nan && self.has(UnaryOp::IS_NAN, ty, buffer)? {
                return Err(ErrorKind::FoundNan { op: name(), got: ty.clone() }.into());
            }
            if self.checks.inf && !operands.is_empty() && self.has(UnaryOp::IS_INFINITY, ty, buffer)? {
                let mut is_new = true;
                for operand in operands {
                    is_new &= !self.has(UnaryOp::IS_INFINITY, &operand.ty, &operand.buffer)?;
                }
                if is_new {
                    return Err(ErrorKind::FoundInfinity { op: name(), got: ty.clone() }.into());
                }
            }
        }
        Ok(())
    }

    /// Whether a predicate is true for any element.
    fn has(&self, predicate: UnaryOp, ty: &TensorType, buffer: &Arc<dyn Buffer>) -> Result<bool> {
        if !ty.dtype.is_inexact() {
            return Ok(false);
        }
        let run = |op: Op, ty: &TensorType, buffer: &Arc<dyn Buffer>| -> Result<_> {
            let operand = Operand { ty: ty.clone(), buffer: buffer.clone() };
            let mut outputs = infer(&op, &[ty])?;
            let result = self.backend.run(&op, SmallVec::from_iter([operand]), &outputs)?.remove(0);
            Ok((outputs.remove(0), result))
        };
        let (mask_ty, mask) = run(Op::Unary(predicate), ty, buffer)?;
        let axes = ty.shape.axes().collect();
        let any = Op::Reduce { op: ReduceOp::Any, axes, keep_axes: false };
        let (verdict, any) = run(any, &mask_ty, &mask)?;
        is_true(&verdict, &*any)
    }

    /// Whether a step is one op of the backend.
    fn is_native(&self, op: &Op, step: &Step) -> bool {
        match step {
            Step::Backend => true,
            Step::Block(default) => self.backend.has_native(&default.block),
            // Where operands are checked before an op, they are checked before each step of a fold.
            Step::Default(_) => {
                let looks = (self.checks.index || self.is_eager) && !self.backend.checks_operands();
                self.backend.has_native_fold(op)
                    && !op.has_effect()
                    && !(looks && elements::counts_inside(op))
            }
            Step::Parameter { .. }
            | Step::CachedConstant(_)
            | Step::Pass { .. }
            | Step::Hook { .. }
            | Step::Call { .. }
            | Step::User { .. }
            | Step::Cond { .. }
            | Step::While { .. } => false,
        }
    }

    /// Runs a region on buffers for all its inputs; arguments without other owners may be reused.
    fn region(&self, plan: &Plan, arguments: Vec<Arc<dyn Buffer>>) -> Result<Vec<Arc<dyn Buffer>>> {
        stack::require("run")?;
        self.inputs(plan, arguments.into_iter().map(Some).collect())
    }

    /// Runs a region on buffers for the inputs that it uses.
    fn inputs(
        &self,
        plan: &Plan,
        mut arguments: Vec<Option<Arc<dyn Buffer>>>,
    ) -> Result<Vec<Arc<dyn Buffer>>> {
        let graph = plan.region.graph();
        let mut slots: Vec<Option<Arc<dyn Buffer>>> = memory::with_capacity("run", plan.slots)?;
        slots.resize(plan.slots, None);
        for (position, (node, planned)) in graph.nodes().iter().zip(&plan.nodes).enumerate() {
            let take = |slots: &mut [Option<Arc<dyn Buffer>>], input: usize| {
                let slot = &mut slots[plan.slot(node.inputs[input])];
                let buffer = if planned.dies[input] { slot.take() } else { slot.clone() };
                buffer.expect("a value lives until its last use")
            };
            let _running = self.recorder.as_deref().and_then(|recorder| {
                is_done(&planned.step).then(|| {
                    let work = || profile::work(graph, &node.inputs, &graph.outputs(position), position);
                    recorder.step(std::ptr::from_ref(planned).addr(), work)
                })
            });
            let outputs: Buffers = match &planned.step {
                Step::Parameter { index, last } => {
                    let argument = &mut arguments[*index];
                    let buffer = if *last { argument.take() } else { argument.clone() };
                    SmallVec::from_elem(buffer.expect("an argument lives until its last parameter"), 1)
                }
                Step::CachedConstant(cached) => {
                    let make = || self.backend.run(&node.op, SmallVec::new(), &node.outputs);
                    SmallVec::from_elem(
                        cached.get(self.backend, make).map_err(|e| with_node_location(e, node))?,
                        1,
                    )
                }
                step @ (Step::Backend | Step::Block(_) | Step::Default(_))
                    if self.is_native(&node.op, step) =>
                {
                    let operands = (0..node.inputs.len())
                        .map(|input| Operand {
                            ty: graph.ty(node.inputs[input]).clone(),
                            buffer: take(&mut slots, input),
                        })
                        .collect();
                    self.one(&node.op, operands, &node.outputs).map_err(|e| {
                        with_node_location(e, node).with_operands(node.inputs.iter().map(|&v| graph.ty(v)))
                    })?
                }
                step @ (Step::Backend
                | Step::Block(_)
                | Step::Pass { .. }
                | Step::Hook { .. }
                | Step::Call { .. }
                | Step::User { .. }
                | Step::Default(_)
                | Step::Cond { .. }
                | Step::While { .. }) => {
                    let operands = (0..node.inputs.len()).map(|input| take(&mut slots, input)).collect();
                    self.control(&node.op, step, operands).map_err(|e| with_node_location(e, node))?
                }
            };
            self.hooks.poll()?;
            memory::check(form::name(&node.op)).map_err(|e| with_node_location(e, node))?;
            for (output, buffer) in outputs.into_iter().enumerate() {
                if planned.used[output] {
                    slots[plan.first_slot(position) + output] = Some(buffer);
                }
            }
        }
        let results = plan.region.results();
        let fetch = |(at, value): (usize, &crate::graph::Value)| {
            let slot = &mut slots[plan.slot(*value)];
            // The last of equal results takes the buffer, so that the caller may be its only owner.
            let buffer = if results[at + 1..].contains(value) { slot.clone() } else { slot.take() };
            buffer.expect("results live to the end")
        };
        Ok(results.iter().enumerate().map(fetch).collect())
    }

    /// Runs a step that is not a single op of the backend.
    fn control(&self, op: &Op, step: &Step, mut operands: Vec<Arc<dyn Buffer>>) -> Result<Buffers> {
        match step {
            Step::Parameter { .. } | Step::CachedConstant(_) | Step::Backend => {
                unreachable!("{op:?} is run by the backend")
            }
            Step::Pass { count } => {
                operands.truncate(*count);
                Ok(operands.into())
            }
            Step::Hook { slot, types } => {
                self.hooks.call(*slot, &tensors_of(types, &operands))?;
                Ok(operands.into())
            }
            Step::Call { slot, types, outputs } => {
                let results = self.hooks.compute(*slot, &tensors_of(types, &operands), outputs)?;
                self.adopt(op, results, outputs)
            }
            Step::User { block, types, default } => {
                let values = tensors_of(types, &operands);
                let outputs: SmallVec<[TensorType; 1]> = block.default.result_types().cloned().collect();
                let native = if op.has_effect() {
                    None
                } else {
                    self.hooks.native(block, self.backend, &values, &outputs)?
                };
                drop(values);
                match native {
                    Some(results) => self.adopt(op, results, &outputs),
                    None => Ok(self.region(default, operands)?.into()),
                }
            }
            Step::Block(default) => Ok(self.region(default.plan()?, operands)?.into()),
            Step::Default(plan) => Ok(self.region(plan, operands)?.into()),
            Step::Cond { predicates, branches } => {
                let captures = operands.split_off(predicates.len());
                let mut chosen = predicates.len();
                for (position, (ty, buffer)) in predicates.iter().zip(&operands).enumerate() {
                    if is_true(ty, &**buffer)? {
                        chosen = position;
                        break;
                    }
                }
                drop(operands);
                Ok(self.region(&branches[chosen], captures)?.into())
            }
            Step::While { state, predicate, cond, body } => {
                let captures = operands.split_off(*state);
                let with_captures = |mut arguments: Vec<Arc<dyn Buffer>>| {
                    arguments.extend(captures.iter().cloned());
                    arguments
                };
                let mut state = operands;
                for trip in 0.. {
                    self.hooks.poll()?;
                    let here = |error: Error| error.in_trip(trip);
                    let verdict = self.region(cond, with_captures(state.clone())).map_err(here)?;
                    if !is_true(predicate, &*verdict[0])? {
                        break;
                    }
                    state = self.region(body, with_captures(state)).map_err(here)?;
                }
                Ok(state.into())
            }
        }
    }
}

/// Whether a step does work, rather than pass on existing values.
fn is_done(step: &Step) -> bool {
    match step {
        Step::Parameter { .. } | Step::CachedConstant(_) | Step::Pass { .. } => false,
        Step::Backend
        | Step::Block(_)
        | Step::Hook { .. }
        | Step::Call { .. }
        | Step::User { .. }
        | Step::Default(_)
        | Step::Cond { .. }
        | Step::While { .. } => true,
    }
}

/// Adds the location in the user's program to an error of a run.
#[cold]
fn with_node_location(error: Error, node: &Node) -> Error {
    error.at(node.location.clone())
}
