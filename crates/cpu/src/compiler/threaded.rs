//! Programs that are run by a number of threads of their own.

use std::num::NonZeroUsize;
use std::sync::Arc;

use defn_core::backend::{Backend, Buffers, Executable, Hooks, MemoryNeed};
use defn_core::region::Region;
use defn_core::{Result, Tensor, profile};

use crate::par::with_count;

/// A program, and how many threads run it.
#[derive(Debug)]
pub(super) struct Threaded {
    pub(super) executable: Arc<dyn Executable>,
    pub(super) threads: NonZeroUsize,
}

impl Threaded {
    /// Says how many threads there are to who watches the run.
    fn note(&self) {
        if let Some(recorder) = profile::current() {
            recorder.set_threads(self.threads.get());
        }
    }
}

impl Executable for Threaded {
    fn program(&self) -> &Arc<Region> {
        self.executable.program()
    }

    fn uses(&self, input: usize) -> bool {
        self.executable.uses(input)
    }

    fn memory(&self) -> Result<MemoryNeed> {
        self.executable.memory()
    }

    fn assembly(&self, instructions: Option<&str>) -> Result<String> {
        self.executable.assembly(instructions)
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        self.note();
        with_count(self.threads, || self.executable.run(backend, arguments, hooks))
    }

    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        self.note();
        with_count(self.threads, || self.executable.run_borrowed(backend, arguments, hooks))
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        with_count(self.threads, || self.executable.run_each(lists, hooks))
    }

    fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>> {
        self.executable.to_bytes(note)
    }
}
