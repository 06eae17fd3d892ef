//! Stages that run for several lists of arguments on several threads.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::run::Chain;
use crate::backend::Hooks;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::Tensor;

impl Chain {
    /// Runs the stages for several lists of arguments on so many threads, as a pipeline: a stage takes the next list while
    /// later stages work on those before it. Stages of one list that do not wait for each other run at the same time.
    ///
    /// Each stage sees the lists in order, so that hooks of one stage are called in their order.
    ///
    /// # Errors
    /// No threads, and those of [`Chain::run`]; the first one ends the work.
    pub fn run_each(
        &self,
        lists: Vec<Vec<Tensor>>,
        threads: usize,
        hooks: &(dyn Hooks + Sync),
    ) -> Result<Vec<Vec<Tensor>>> {
        if threads == 0 {
            let (option, given, required) = ("threads", "0".to_owned(), "1 or more".to_owned());
            return Err(ErrorKind::OptionValue { op: "run_each", option, given, required }.into());
        }
        let count = self.steps.len();
        let lists = lists.into_iter().map(|list| self.begin(list)).collect::<Result<Vec<_>>>()?;
        let (requests, tasks) = (lists.len(), lists.len() * count);
        // A stage also waits for its own run for the list before.
        let missing: Vec<usize> =
            (0..tasks).map(|task| self.waits[task % count].len() + usize::from(task >= count)).collect();
        let ready = (0..tasks).filter(|&task| missing[task] == 0).collect();
        let uses = vec![self.uses(); requests];
        let state = State {
            values: lists,
            uses,
            results: vec![Vec::new(); requests],
            missing,
            ready,
            done: 0,
            error: None,
        };
        let pipeline = Pipeline { chain: self, tasks, state: Mutex::new(state), changed: Condvar::new() };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(tasks) {
                scope.spawn(|| pipeline.work(hooks));
            }
            pipeline.work(hooks);
        });
        let state = pipeline.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(state.results), Err)
    }

    /// For each value, the number of times that stages take it.
    fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.values];
        self.steps.iter().flat_map(|step| &step.inputs).for_each(|&(value, _)| uses[value] += 1);
        uses
    }
}

struct Pipeline<'a> {
    chain: &'a Chain,
    /// The number of tasks. A task is one stage of one list, with the number `list * stages + stage`.
    tasks: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The values of each list: its arguments and the outputs of its stages, until their last use.
    values: Vec<Vec<Option<Tensor>>>,
    /// For each value, how often it is still taken.
    uses: Vec<Vec<usize>>,
    /// The outputs of the last stage for each list.
    results: Vec<Vec<Tensor>>,
    /// For each task, the number of tasks that it waits for.
    missing: Vec<usize>,
    /// Tasks that wait for nothing. The oldest list comes first.
    ready: BTreeSet<usize>,
    done: usize,
    error: Option<Error>,
}

impl Pipeline<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs tasks until there are no more.
    fn work(&self, hooks: &dyn Hooks) {
        let stages = self.chain.steps.len();
        let mut state = self.lock();
        while state.done < self.tasks && state.error.is_none() {
            let Some(task) = state.ready.pop_first() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (list, stage) = (task / stages, task % stages);
            let operands = state.take_operands(self.chain, list, stage);
            drop(state);
            let outputs = {
                let _end = EndOnPanic(self);
                self.chain.steps[stage].run(operands, hooks)
            };
            state = self.lock();
            match outputs {
                Ok(outputs) => state.finish(self.chain, list, stage, outputs),
                Err(error) => _ = state.error.get_or_insert(error),
            }
            self.changed.notify_all();
        }
    }
}

impl State {
    fn take_operands(&mut self, chain: &Chain, list: usize, stage: usize) -> Vec<Option<Tensor>> {
        let (values, uses) = (&mut self.values[list], &mut self.uses[list]);
        let take = |&(value, _): &(usize, bool)| {
            uses[value] -= 1;
            if uses[value] == 0 { values[value].take() } else { values[value].clone() }
        };
        chain.steps[stage].inputs.iter().map(take).collect()
    }

    fn finish(&mut self, chain: &Chain, list: usize, stage: usize, outputs: Vec<Tensor>) {
        let stages = chain.steps.len();
        if stage + 1 == stages {
            self.results[list] = outputs;
        } else {
            let (first, uses) = (chain.steps[stage + 1].before, &self.uses[list]);
            for (value, output) in (first..).zip(outputs) {
                self.values[list][value] = Some(output).filter(|_| uses[value] > 0);
            }
        }
        self.done += 1;
        let own = (0..stages).filter(|&later| chain.waits[later].contains(&stage));
        let next = (list + 1 < self.values.len()).then_some((list + 1) * stages + stage);
        for task in own.map(|later| list * stages + later).chain(next) {
            self.missing[task] -= 1;
            if self.missing[task] == 0 {
                self.ready.insert(task);
            }
        }
    }
}

/// Ends the work of the other threads if a hook panics; the scope of the threads then passes the panic on.
struct EndOnPanic<'a, 'b>(&'a Pipeline<'b>);

impl Drop for EndOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().error.get_or_insert(Error::other("run_each: a hook has panicked"));
            self.0.changed.notify_all();
        }
    }
}
