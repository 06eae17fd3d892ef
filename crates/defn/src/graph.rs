//! Graphs of compiled functions: their cost, their text and pictures, and their stages.
//!
//! [`Compiled::graph`](crate::Compiled::graph) gives the graph, [`Compiled::split`](crate::Compiled::split) cuts it into
//! stages.
//!
//! ```
//! use defn::graph::{cost, diff, mermaid};
//! use defn::prelude::*;
//!
//! let x = Tensor::template(&[3], DType::F32)?;
//! let (old, new) = (jit(|x: Expr| x.sin()).compile(x.clone())?, jit(|x: Expr| x.cos()).compile(x)?);
//! assert_eq!(cost(old.graph()).flops, 3);
//! assert!(diff(old.graph(), new.graph()).to_string().contains("cos"));
//! assert!(mermaid(old.graph()).contains("sin"));
//! # Ok::<(), defn::Error>(())
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use defn_core as core;
use defn_core::backend::{Backend, Executable};
use defn_core::stage::{self, Source, StageExecutable};
use defn_core::{ErrorKind, Location, Result};

pub use defn_core::cost::{Cost, cost};
pub use defn_core::diff::{Difference, diff};
pub use defn_core::print::{dot, mermaid};
pub use defn_core::region::Region;
pub use defn_core::stage::{Decision, Marks, Rule, Stage, split};

use crate::hooks::RunHooks;
use crate::{Compiled, Expr, Tensor, Tree, backend};

/// The stages of a function, each compiled by itself. [`Compiled::split`] makes them.
///
/// ```
/// use defn::graph::{Marks, Rule};
/// use defn::prelude::*;
///
/// let model = jit(|x: Expr| x.sin().mark("features").exp());
/// let stages = model.compile(Tensor::template(&[2], DType::F32)?)?.split(&Rule::Marks(Marks::All))?;
/// assert_eq!(stages.len(), 2);
/// assert_eq!(stages.call(tensor![0.0, 0.0]?)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Stages<A, R> {
    whole: Compiled<A, R>,
    stages: Vec<Stage>,
    executables: Vec<Arc<dyn Executable>>,
}

impl<A, R> fmt::Debug for Stages<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stages({} of {:?})", self.stages.len(), self.whole)
    }
}

impl<A, R> Stages<A, R> {
    /// The number of stages, at least 1.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
    /// assert_eq!(f.split(&Rule::Balanced(2))?.len(), 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "there is always a stage")]
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// The stages: the graph of each, and where its inputs come from.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
    /// let stages = f.split(&Rule::Every(1))?;
    /// assert_eq!(stages.stages()[1].needs().to_vec(), [0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

impl<A, R> Stages<A, R>
where
    A: Tree<Expr>,
    A::Of<Tensor>: Tree<Tensor, Of<Expr> = A>,
    R: Tree<Expr>,
{
    pub(crate) fn new(whole: Compiled<A, R>, stages: Vec<Stage>) -> Result<Stages<A, R>> {
        let (compiler, checks) = (whole.options().compiler()?, whole.options().checks());
        let compile = |stage: &Stage| compiler.compile(stage.region().clone(), checks);
        let executables = stages.iter().map(compile).collect::<Result<_>>()?;
        Ok(Stages { whole, stages, executables })
    }

    /// Runs the stages one after the other.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| (x + 1) * 2).compile(Tensor::template(&[], DType::S32)?)?;
    /// assert_eq!(f.split(&Rule::Every(1))?.call(Tensor::scalar(3)?)?.item::<i32>()?, 8);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`].
    #[track_caller]
    pub fn call(&self, arguments: A::Of<Tensor>) -> Result<R::Of<Tensor>> {
        let location = Location::caller();
        let run = || {
            let inputs = self.inputs(&arguments)?;
            let backend = backend_of(&inputs)?;
            let place = |executable: &Arc<dyn Executable>| StageExecutable {
                executable: executable.clone(),
                backend: backend.clone(),
            };
            let placed: Vec<StageExecutable> = self.executables.iter().map(place).collect();
            stage::run(&self.stages, &placed, inputs, &self.hooks())
        };
        let outputs = run().map_err(|error| error.at(Some(location)))?;
        Ok(self.whole.program().rebuild(outputs))
    }

    /// Runs the stages for several arguments on so many threads, as a pipeline: a stage takes the next argument while later
    /// stages work on those before it. Stages of one argument that do not need each other run at the same time.
    ///
    /// Each stage sees the arguments in order, so that hooks are called in the order of the arguments.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| (x + 1) * 2).compile(Tensor::template(&[], DType::S32)?)?;
    /// let stages = f.split(&Rule::Every(1))?;
    /// let arguments = (0..4).map(Tensor::scalar).collect::<Result<_, _>>()?;
    /// let results = stages.call_each(arguments, 2)?;
    /// assert_eq!(results[3].item::<i32>()?, 8);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No threads (`Option`), and those of [`Compiled::call`]; the first one ends the work.
    #[track_caller]
    pub fn call_each(&self, arguments: Vec<A::Of<Tensor>>, threads: usize) -> Result<Vec<R::Of<Tensor>>> {
        let location = Location::caller();
        let run = || {
            if threads == 0 {
                let (given, required) = ("0".to_owned(), "1 or more".to_owned());
                return Err(
                    ErrorKind::OptionValue { op: "call_each", option: "threads", given, required }.into()
                );
            }
            let requests = arguments.iter().map(|one| self.inputs(one)).collect::<Result<Vec<_>>>()?;
            Pipeline::new(&self.stages, &self.executables, requests)?.run(threads, &self.hooks())
        };
        let outputs = run().map_err(|error: core::Error| error.at(Some(location)))?;
        Ok(outputs.into_iter().map(|outputs| self.whole.program().rebuild(outputs)).collect())
    }

    fn hooks(&self) -> RunHooks<'_> {
        RunHooks { table: &self.whole.program().table, named: &self.whole.options().hooks }
    }

    /// The inputs of the whole graph: the arguments, then what the function captured.
    fn inputs(&self, arguments: &A::Of<Tensor>) -> Result<Vec<core::Tensor>> {
        let leaves = self.whole.leaves(arguments)?.into_iter().map(|leaf| leaf.0.flat());
        Ok(leaves.chain(self.whole.program().captures.iter().cloned()).collect())
    }
}

fn backend_of(inputs: &[core::Tensor]) -> Result<Arc<dyn Backend>> {
    inputs.iter().find_map(core::Tensor::backend).map_or_else(backend::default_backend, Ok)
}

/// Stages that run for several requests on several threads.
struct Pipeline<'a> {
    stages: &'a [Stage],
    executables: &'a [Arc<dyn Executable>],
    requests: usize,
    /// For each stage, the stages that wait for it.
    waiting: Vec<Vec<usize>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A stage of a request is a task, with the number `request * stages + stage`.
struct State {
    /// The inputs of the whole graph for each request.
    inputs: Vec<Vec<core::Tensor>>,
    /// The outputs of each task that is done.
    outputs: Vec<Vec<core::Tensor>>,
    /// For each task, the number of tasks that it waits for.
    missing: Vec<usize>,
    /// Tasks that wait for nothing, the oldest request first.
    ready: BTreeSet<usize>,
    done: usize,
    error: Option<core::Error>,
}

impl<'a> Pipeline<'a> {
    fn new(
        stages: &'a [Stage],
        executables: &'a [Arc<dyn Executable>],
        inputs: Vec<Vec<core::Tensor>>,
    ) -> Result<Pipeline<'a>> {
        let waits = stage::waits(stages);
        let (requests, count) = (inputs.len(), stages.len());
        let mut waiting = vec![Vec::new(); count];
        for (stage, waits) in waits.iter().enumerate() {
            waits.iter().for_each(|&before| waiting[before].push(stage));
        }
        // A stage also waits for its run for the request before.
        let missing: Vec<usize> = (0..requests * count)
            .map(|task| waits[task % count].len() + usize::from(task >= count))
            .collect();
        let ready = (0..missing.len()).filter(|&task| missing[task] == 0).collect();
        let outputs = vec![Vec::new(); missing.len()];
        let state = State { inputs, outputs, missing, ready, done: 0, error: None };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Pipeline { stages, executables, requests, waiting, state, changed })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results of each request: the outputs of its last stage.
    fn run(self, threads: usize, hooks: &RunHooks<'_>) -> Result<Vec<Vec<core::Tensor>>> {
        std::thread::scope(|scope| {
            for _ in 1..threads.min(self.requests * self.stages.len()) {
                scope.spawn(|| self.work(hooks));
            }
            self.work(hooks);
        });
        let count = self.stages.len();
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.error {
            Some(error) => Err(error),
            None => Ok(state.outputs.iter_mut().skip(count - 1).step_by(count).map(std::mem::take).collect()),
        }
    }

    /// Runs tasks until there are no more.
    fn work(&self, hooks: &RunHooks<'_>) {
        let (count, total) = (self.stages.len(), self.requests * self.stages.len());
        let mut state = self.lock();
        loop {
            if state.done == total || state.error.is_some() {
                return;
            }
            let Some(task) = state.ready.pop_first() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (request, stage) = (task / count, task % count);
            let operands = self.operands(&state, request, stage);
            drop(state);
            let outputs = backend_of(&operands)
                .and_then(|backend| self.executables[stage].run(&backend, operands, hooks));
            state = self.lock();
            match outputs {
                Ok(outputs) => {
                    state.outputs[task] = outputs;
                    state.done += 1;
                    let own = self.waiting[stage].iter().map(|&later| request * count + later);
                    let next = (task + count < total).then_some(task + count);
                    for later in own.chain(next) {
                        state.missing[later] -= 1;
                        if state.missing[later] == 0 {
                            state.ready.insert(later);
                        }
                    }
                }
                Err(error) => _ = state.error.get_or_insert(error),
            }
            self.changed.notify_all();
        }
    }

    fn operands(&self, state: &State, request: usize, stage: usize) -> Vec<core::Tensor> {
        let first = request * self.stages.len();
        let parameters = self.stages[stage].arguments().len();
        let value = |source: &Source| match source {
            Source::Argument(index) => state.inputs[request][*index].clone(),
            Source::Output { stage, output } => state.outputs[first + stage][*output].clone(),
            Source::Capture(index) => state.inputs[request][parameters + index].clone(),
        };
        self.stages[stage].sources().iter().map(value).collect()
    }
}
