//! The compiler: a graph as steps, in which element-wise ops are done together.

mod cluster;
mod group;
mod plan;
mod run;
mod strip;
mod strips;
mod views;

use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Checks, Compiler, Executable, Hooks};
use defn_core::device::DeviceError;
use defn_core::evaluator::{Evaluator, argument_buffers};
use defn_core::region::Region;
use defn_core::{Result, Tensor, pass};

use crate::backend::cpu_backend;
use plan::Plan;
use run::Run;

/// Compiles for the CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCompiler(());

impl CpuCompiler {
    /// The compiler.
    pub fn new() -> CpuCompiler {
        CpuCompiler(())
    }
}

impl Compiler for CpuCompiler {
    fn name(&self) -> &str {
        "cpu"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        let backend = cpu_backend();
        if !donate.is_empty() {
            return Err(DeviceError::no_donation(self.name()).into());
        }
        // What is looked at op by op is run op by op.
        if checks != Checks::default() {
            return Evaluator::new(backend).compile(program, checks);
        }
        let plan = Plan::new(Arc::new(pass::expand(&program, &backend)?), &backend)?;
        let mut used = vec![false; program.inputs().len()];
        plan.arguments.iter().for_each(|&(index, _)| used[index] = true);
        Ok(Arc::new(Compiled { program, plan, used, backend, elsewhere: OnceLock::new() }))
    }
}

/// A compiled program.
#[derive(Debug)]
struct Compiled {
    program: Arc<Region>,
    plan: Plan,
    /// For each input, whether anything uses it.
    used: Vec<bool>,
    backend: Arc<dyn Backend>,
    /// How it runs on tensors of another backend: op by op.
    elsewhere: OnceLock<Arc<dyn Executable>>,
}

impl Compiled {
    fn elsewhere(&self) -> Result<&Arc<dyn Executable>> {
        if let Some(known) = self.elsewhere.get() {
            return Ok(known);
        }
        let evaluator = Evaluator::new(self.backend.clone());
        let made = evaluator.compile(self.program.clone(), Checks::default())?;
        Ok(self.elsewhere.get_or_init(|| made))
    }
}

impl Executable for Compiled {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        if !backend.is_same_place(&*self.backend) {
            return self.elsewhere()?.run(backend, arguments, hooks);
        }
        let buffers = argument_buffers(&self.program, |input| self.used[input], &self.backend, arguments)?;
        let results = Run { backend: &self.backend, hooks }.plan(&self.plan, buffers)?;
        let types = self.program.result_types().cloned();
        Ok(types.zip(results).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect())
    }
}
