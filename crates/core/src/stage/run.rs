//! Runs stages, and checks lists of stages.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Source, Stage, StageError};
use crate::backend::{Backend, Executable, Hooks};
use crate::error::Result;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// The executable of one stage, and its backend.
#[derive(Clone, Debug)]
pub struct StageExecutable {
    /// Compiled from [`Stage::region`].
    pub executable: Arc<dyn Executable>,
    /// The backend of the run. Inputs on other backends are copied to it.
    pub backend: Arc<dyn Backend>,
}

/// Checks that a list of stages is complete, in order and from one split. `op` is for the message.
///
/// # Errors
/// An empty list, a stage at a wrong position or of another split, and a list that is too short.
pub fn check(op: &'static str, stages: &[Stage]) -> Result<()> {
    let Some(first) = stages.first() else { return Err(StageError::Empty { op }.into()) };
    for (index, stage) in stages.iter().enumerate() {
        if stage.whole.split != first.whole.split {
            return Err(StageError::Foreign { op, index }.into());
        }
        if stage.position != index {
            let (position, stages) = (stage.position, stage.whole.stages);
            return Err(StageError::Order { op, position, stages, index }.into());
        }
    }
    if stages.len() != first.whole.stages {
        let (given, expected) = (stages.len(), first.whole.stages);
        return Err(StageError::Missing { op, given, expected }.into());
    }
    Ok(())
}

/// For each stage and each of its inputs, whether no later stage takes the same value: it can be freed after
/// the stage.
pub fn last_uses(stages: &[Stage]) -> Vec<Vec<bool>> {
    let mut last: FxHashMap<Source, usize> = FxHashMap::default();
    for stage in stages {
        last.extend(stage.sources.iter().map(|&source| (source, stage.position)));
    }
    let of_stage =
        |stage: &Stage| stage.sources.iter().map(|source| last[source] == stage.position).collect();
    stages.iter().map(of_stage).collect()
}

/// For each stage, the stages that must run before it, ascending: those whose outputs it takes and, for a
/// stage with effects, the previous stage with effects. Stages that do not depend on each other, directly or
/// indirectly, may run in parallel or in any order.
pub fn waits(stages: &[Stage]) -> Vec<SmallVec<[usize; 4]>> {
    let mut effect = None;
    let of_stage = |stage: &Stage| {
        let mut waits = stage.needs();
        if stage.region.has_effects() {
            let before: Option<usize> = effect.replace(stage.position);
            waits.extend(before);
            waits.sort_unstable();
            waits.dedup();
        }
        waits
    };
    stages.iter().map(of_stage).collect()
}

/// Stages with their executables, checked once and run any number of times, also by several threads.
#[derive(Debug)]
pub struct Chain {
    arguments: Vec<TensorType>,
    /// For each argument, whether a stage uses it.
    used: Vec<bool>,
    pub(super) steps: Vec<Step>,
    /// The stages that each stage waits for.
    pub(super) waits: Vec<SmallVec<[usize; 4]>>,
    /// The number of values: the arguments, then the outputs of each stage.
    pub(super) values: usize,
}

/// One stage, with its values as numbers.
#[derive(Debug)]
pub(super) struct Step {
    placed: StageExecutable,
    /// The values that it takes, and whether this is their last use.
    pub(super) inputs: Vec<(usize, bool)>,
    /// The number of the previous stage's first output.
    pub(super) before: usize,
}

impl Step {
    /// Runs the stage on its inputs.
    pub(super) fn run(&self, inputs: Vec<Option<Tensor>>, hooks: &dyn Hooks) -> Result<Vec<Tensor>> {
        let StageExecutable { executable, backend } = &self.placed;
        let bring = |(input, value): (usize, Option<Tensor>)| {
            let value = value.expect("a value lives until its last use");
            if executable.uses(input) { bring("run", value, backend) } else { Ok(value) }
        };
        let operands = inputs.into_iter().enumerate().map(bring).collect::<Result<_>>()?;
        executable.run(backend, operands, hooks)
    }
}

impl Chain {
    /// Combines stages and executables, one for each stage.
    ///
    /// # Errors
    /// Those of [`check`], and executables of other programs.
    pub fn new(stages: &[Stage], placed: Vec<StageExecutable>) -> Result<Chain> {
        let op = "run";
        check(op, stages)?;
        if placed.len() != stages.len() {
            let (given, expected) = (placed.len(), stages.len());
            return Err(StageError::Executables { op, given, expected }.into());
        }
        let (arguments, parameters) = (stages[0].whole.inputs.clone(), stages[0].whole.parameters);
        let mut used = vec![false; arguments.len()];
        let mut values = arguments.len();
        let mut first_outputs = Vec::with_capacity(stages.len());
        let mut steps = Vec::with_capacity(stages.len());
        for ((stage, placed), last) in stages.iter().zip(placed).zip(last_uses(stages)) {
            let program = placed.executable.program();
            if !Arc::ptr_eq(program, &stage.region) && *program != stage.region {
                return Err(StageError::Program { op, position: stage.position }.into());
            }
            let number = |source: &Source| match source {
                Source::Argument(index) => {
                    used[*index] = true;
                    *index
                }
                Source::Output { stage, output } => first_outputs[*stage] + output,
                Source::Capture(index) => {
                    used[parameters + index] = true;
                    parameters + index
                }
            };
            let inputs = stage.sources.iter().map(number).zip(last).collect();
            steps.push(Step { placed, inputs, before: first_outputs.last().copied().unwrap_or(values) });
            first_outputs.push(values);
            values += stage.region.results().len();
        }
        Ok(Chain { arguments, used, steps, waits: waits(stages), values })
    }

    /// Runs the stages in sequence on the arguments of the whole graph: its parameters, then its captures.
    /// Returns the results of the whole graph. Ownership of a value passes on at its last use, so that its
    /// memory may be reused; an argument that no stage takes is dropped at once. Hooks are called in the same
    /// order as in a run of the whole.
    ///
    /// # Errors
    /// Arguments of other types, and errors of the runs; values with other owners are unchanged.
    pub fn run(&self, arguments: Vec<Tensor>, hooks: &dyn Hooks) -> Result<Vec<Tensor>> {
        let mut values = self.begin(arguments)?;
        let mut outputs = Vec::new();
        for step in &self.steps {
            for (slot, tensor) in values[step.before..].iter_mut().zip(outputs) {
                *slot = Some(tensor);
            }
            let take = |&(value, last): &(usize, bool)| {
                if last { values[value].take() } else { values[value].clone() }
            };
            let inputs = step.inputs.iter().map(take).collect();
            outputs = step.run(inputs, hooks)?;
        }
        Ok(outputs)
    }

    /// The values before the first stage: the arguments, where a stage uses them.
    pub(super) fn begin(&self, arguments: Vec<Tensor>) -> Result<Vec<Option<Tensor>>> {
        let op = "run";
        if arguments.len() != self.arguments.len() {
            let (given, expected) = (arguments.len(), self.arguments.len());
            return Err(StageError::InputCount { op, given, expected }.into());
        }
        for (position, (argument, ty)) in arguments.iter().zip(&self.arguments).enumerate() {
            if !ty.is_compatible(argument.whole()) {
                let (got, expected) = (argument.whole().clone(), ty.clone());
                let argument = format!("argument {position}");
                return Err(StageError::InputType { op, argument, got, expected }.into());
            }
        }
        let marked = arguments.into_iter().zip(&self.used);
        let mut values: Vec<Option<Tensor>> =
            marked.map(|(argument, used)| used.then_some(argument)).collect();
        values.resize(self.values, None);
        Ok(values)
    }
}

/// Runs stages once; see [`Chain::run`].
///
/// # Errors
/// As [`Chain::new`] and [`Chain::run`].
pub fn run(
    stages: &[Stage],
    placed: &[StageExecutable],
    arguments: Vec<Tensor>,
    hooks: &dyn Hooks,
) -> Result<Vec<Tensor>> {
    Chain::new(stages, placed.to_vec())?.run(arguments, hooks)
}

/// Copies a tensor to a stage's backend.
fn bring(op: &'static str, tensor: Tensor, backend: &Arc<dyn Backend>) -> Result<Tensor> {
    match tensor.backend() {
        Some(owner) if !owner.is_same_device(&**backend) => tensor.copy_to(op, backend),
        // The executable reports tensors without elements.
        Some(_) | None => Ok(tensor),
    }
}
