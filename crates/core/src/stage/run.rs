//! Runs stages, and says which lists of stages run.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Source, Stage, StageError};
use crate::backend::{Backend, Executable, Hooks};
use crate::error::{ErrorKind, Result};
use crate::tensor::Tensor;

/// How one stage is run: what was compiled from its region, and where.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What was compiled from [`Stage::region`].
    pub executable: Arc<dyn Executable>,
    /// Where it runs. What the stage takes is copied there, where it is elsewhere.
    pub backend: Arc<dyn Backend>,
}

/// Whether a list of stages is all that one split gave, in its order. `op` is for the message.
///
/// # Errors
/// No stage, a stage at another's place, one of another split, and a list that is too short.
pub fn check(op: &'static str, stages: &[Stage]) -> Result<()> {
    let Some(first) = stages.first() else { return Err(StageError::Empty { op }.into()) };
    for (place, stage) in stages.iter().enumerate() {
        if stage.whole.split != first.whole.split {
            return Err(StageError::Foreign { op, place }.into());
        }
        if stage.position != place {
            let (position, stages) = (stage.position, stage.whole.stages);
            return Err(StageError::Order { op, position, stages, place }.into());
        }
    }
    if stages.len() != first.whole.stages {
        let (given, expected) = (stages.len(), first.whole.stages);
        return Err(StageError::Missing { op, given, expected }.into());
    }
    Ok(())
}

/// For each stage and each of its inputs, whether no later stage takes the same value: it can be freed after it.
pub fn last_uses(stages: &[Stage]) -> Vec<Vec<bool>> {
    let mut last: FxHashMap<Source, usize> = FxHashMap::default();
    for stage in stages {
        last.extend(stage.sources.iter().map(|&source| (source, stage.position)));
    }
    let of_stage =
        |stage: &Stage| stage.sources.iter().map(|source| last[source] == stage.position).collect();
    stages.iter().map(of_stage).collect()
}

/// For each stage, the stages that must have run before it, ascending: those whose outputs it takes, and where it has
/// effects the one before that has. Stages that do not wait for each other, by themselves or by others, may run side by
/// side or in any order.
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

/// Runs stages one after the other on arguments of the whole: its parameters, then its captures. Gives what the whole
/// gives. A value is dropped after its last use, and handed over there, so that its memory may be reused; an
/// argument that no stage takes is dropped at once.
///
/// Hooks are called as a run of the whole calls them.
///
/// # Errors
/// What [`check`] has against the stages, executables of other programs, arguments of other types, and what the runs
/// fail with; what was given and is held elsewhere stays as it is.
pub fn run(
    stages: &[Stage],
    placed: &[Placed],
    arguments: Vec<Tensor>,
    hooks: &dyn Hooks,
) -> Result<Vec<Tensor>> {
    let op = "run";
    check(op, stages)?;
    if placed.len() != stages.len() {
        let (given, expected) = (placed.len(), stages.len());
        return Err(StageError::Executables { op, given, expected }.into());
    }
    for (stage, placed) in stages.iter().zip(placed) {
        if placed.executable.program() != &stage.region {
            return Err(StageError::Program { op, position: stage.position }.into());
        }
    }
    let types = stages[0].arguments();
    if arguments.len() != types.len() {
        let (given, expected) = (arguments.len(), types.len());
        return Err(ErrorKind::ArgumentCount { op, given, expected }.into());
    }
    for (position, (argument, ty)) in arguments.iter().zip(types).enumerate() {
        if !ty.is_compatible(argument.whole()) {
            let (got, expected) = (argument.whole().clone(), ty.clone());
            return Err(ErrorKind::ArgumentType { op, argument: position.into(), got, expected }.into());
        }
    }
    let last = last_uses(stages);
    let taken: FxHashSet<Source> = stages.iter().flat_map(|stage| stage.sources.iter().copied()).collect();
    let given = arguments.into_iter().enumerate().map(|(at, argument)| (Source::Argument(at), argument));
    let mut values: FxHashMap<Source, Tensor> = given.filter(|(source, _)| taken.contains(source)).collect();
    let mut results = Vec::new();
    for ((stage, placed), last) in stages.iter().zip(placed).zip(last) {
        let mut given = Vec::with_capacity(stage.sources.len());
        for (input, (source, last)) in stage.sources.iter().zip(last).enumerate() {
            let value = if last { values.remove(source) } else { values.get(source).cloned() };
            let value = value.expect("a value lives until its last use");
            given.push(if placed.executable.uses(input) {
                bring(op, value, &placed.backend)?
            } else {
                value
            });
        }
        let made = placed.executable.run(&placed.backend, given, hooks)?;
        if stage.position + 1 == stages.len() {
            results = made;
        } else {
            let outputs = made.into_iter().enumerate();
            let source = |output| Source::Output { stage: stage.position, output };
            values.extend(outputs.map(|(output, tensor)| (source(output), tensor)));
        }
    }
    Ok(results)
}

/// A tensor where a stage runs.
fn bring(op: &'static str, tensor: Tensor, backend: &Arc<dyn Backend>) -> Result<Tensor> {
    match tensor.backend() {
        Some(place) if !place.is_same_place(&**backend) => tensor.copy_to(op, backend),
        // What is no tensor with elements is the executable's to refuse.
        Some(_) | None => Ok(tensor),
    }
}
