//! The compiler: simplifies a graph, lowers it to StableHLO, and has the plugin compile it.

use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, Executable};
use defn_core::background::First;
use defn_core::device::DeviceError;
use defn_core::donation::{aliases, input_of};
use defn_core::evaluator::Evaluator;
use defn_core::graph::Value;
use defn_core::region::Region;
use defn_core::{Result, pass};
use smallvec::SmallVec;

use super::digest::{Digest, digest_of};
use super::disk::Folder;
use super::execution::{DeviceProgram, ExecutionMode, PjrtExecutable};
use super::live::TensorInfo;
use super::plan::{self, Plan};
use super::programs::{Compiled, Origin};
use super::saved::Saved;
use super::{CompilerOptions, PjrtBackend, failure, helpers};
use crate::lower::{self, Hardware, lower};
use crate::options::CompileOptions;

/// Compiles for the devices of a client. A program runs on the device of its arguments, if that belongs to the client,
/// else on the device that the compiler was created for.
#[derive(Clone, Debug)]
pub struct PjrtCompiler {
    backend: Arc<PjrtBackend>,
    fold: Arc<dyn Backend>,
    options: CompilerOptions,
    folder: Option<Folder>,
}

impl PjrtCompiler {
    /// A compiler for a device and the others of its client. It folds scalar constants on `fold`, a backend of the
    /// host.
    pub fn new(backend: Arc<PjrtBackend>, fold: Arc<dyn Backend>, options: CompilerOptions) -> PjrtCompiler {
        let folder = options.folder();
        PjrtCompiler { backend, fold, options, folder }
    }

    /// The device for programs whose arguments are on no device of the client.
    pub fn backend(&self) -> &Arc<PjrtBackend> {
        &self.backend
    }

    /// Compiles, as [`Compiler::compile_donating`] does.
    ///
    /// # Errors
    /// As there.
    pub fn executable(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<PjrtExecutable> {
        let mode = if checks == Checks::default() {
            ExecutionMode::Compiled(self.plan(&program, donate, !self.backend.runtime().is_single())?)
        } else if donate.is_empty() {
            // The checks are made after each op.
            ExecutionMode::Checked(Evaluator::new(self.fold.clone()).compile(program.clone(), checks)?)
        } else {
            let problem = failure::CHECKED.to_owned();
            return Err(DeviceError::Donate { problem, required: "one without checks is required" }.into());
        };
        Ok(PjrtExecutable::new(self.clone(), program, mode, self.backend.runtime().hardware(), donate))
    }

    /// The backend of the host.
    pub(super) fn host(&self) -> &Arc<dyn Backend> {
        &self.fold
    }

    /// A program in compiled segments. A `portable` one is for any device of any client, another one only for this
    /// client's first device, where a short program takes 1.69 us instead of 1.83.
    pub(super) fn plan(
        &self,
        program: &Region,
        donate: &[usize],
        portable: bool,
    ) -> Result<Plan<DeviceProgram>> {
        let runtime = self.backend.runtime();
        let options = CompileOptions { portable, ..self.options.to_compile() };
        prepare(program, &self.fold, donate, runtime.hardware(), &mut |segment| {
            let folder = self.folder.as_ref();
            let compiled = runtime.programs.get("compile", runtime, &segment.program, &options, folder)?;
            Ok(DeviceProgram { compiled, text: segment.digest(), results: segment.results })
        })
    }

    /// Loads the bytes that [`Executable::to_bytes`] wrote, here or for a [`Target`](super::Target), for the devices of
    /// this client. Also returns the note that was saved with them.
    ///
    /// # Errors
    /// Damaged bytes, bytes of another version, or bytes for other devices.
    pub fn load(&self, bytes: &[u8]) -> Result<(PjrtExecutable, Vec<u8>)> {
        let saved = Saved::from_bytes(bytes)?;
        Ok((self.restore(&saved)?, saved.into_note()))
    }

    /// The executable of saved bytes.
    pub(super) fn restore(&self, saved: &Saved) -> Result<PjrtExecutable> {
        let runtime = self.backend.runtime();
        runtime.require_process("load")?;
        saved.require_machine(runtime.machine())?;
        let hardware = saved.require_hardware(runtime.hardware())?;
        let program = Arc::new(saved.program()?);
        let mut segments = saved.segments();
        let plan = prepare(&program, &self.fold, saved.donated(), hardware, &mut |segment| {
            let text = segment.digest();
            let bytes = segments.next(text)?;
            let executable = runtime.client().load(bytes).map_err(|error| saved.rejected(runtime, &error))?;
            let compiled =
                Arc::new(Compiled::new(executable, &segment.program, true, Origin::Bytes(bytes.into())));
            Ok(DeviceProgram { compiled, text, results: segment.results })
        })?;
        Ok(PjrtExecutable::new(
            self.clone(),
            program,
            ExecutionMode::Compiled(plan),
            hardware,
            saved.donated(),
        ))
    }
}

/// A segment of a program, ready to be compiled.
pub(super) struct LoweredSegment {
    pub program: lower::LoweredProgram,
    /// The descriptions of its outputs.
    pub results: SmallVec<[Arc<TensorInfo>; 2]>,
}

impl LoweredSegment {
    /// The digest that identifies the segment among saved ones.
    pub fn digest(&self) -> Digest {
        digest_of(&[self.program.text.as_bytes()])
    }
}

/// Simplifies, plans and lowers a program; `compile` compiles its segments, in the program's order.
pub(super) fn prepare<P>(
    program: &Region,
    fold: &Arc<dyn Backend>,
    donate: &[usize],
    hardware: Hardware,
    compile: &mut dyn FnMut(LoweredSegment) -> Result<P>,
) -> Result<Plan<P>> {
    let simplified = pass::simplify(program, fold)?;
    let aliases = aliases(&simplified, donate)?;
    let required_inputs: Vec<usize> = aliases.iter().map(|(argument, _)| *argument).collect();
    if !required_inputs.is_empty() && plan::has_host_steps(&simplified) {
        let problem = "the program has effects inside loops or branches, which the host runs".to_owned();
        let required =
            "a program that the device runs in one piece is required; do not donate, or move the effects out";
        return Err(DeviceError::Donate { problem, required }.into());
    }
    plan::plan(&simplified, &required_inputs, &mut |segment| {
        let donated: Vec<Option<usize>> =
            segment.inputs.iter().map(|input| aliased_output(&simplified, &aliases, *input)).collect();
        let program = lower(&segment.region, &donated, hardware).map_err(failure::lowering)?;
        let graph = segment.region.graph();
        let result = |&value: &Value| TensorInfo {
            ty: graph.ty(value).clone(),
            location: graph.node(value).location.clone(),
        };
        let hook_values = segment.hooks.iter().flat_map(|(_, types)| types);
        let hook_values = hook_values.map(|ty| TensorInfo { ty: ty.clone(), location: None });
        let results = segment.region.results().iter().map(result).chain(hook_values).map(Arc::new).collect();
        compile(LoweredSegment { program, results })
    })
}

/// In a program of one segment, the output that aliases an input's memory.
fn aliased_output(program: &Region, aliases: &[(usize, usize)], input: usize) -> Option<usize> {
    let (_, result) = aliases.iter().find(|(argument, _)| *argument == input)?;
    // The outputs of a segment are the values that are needed outside it, each once, in the order of the nodes.
    let mut live_out: Vec<Value> = program.results().to_vec();
    live_out.retain(|&value| input_of(program, value).is_none());
    live_out.sort_unstable();
    live_out.dedup();
    live_out.iter().position(|value| *value == program.results()[*result])
}

impl Compiler for PjrtCompiler {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(self.executable(program, checks, donate)?))
    }

    /// The first calls run on the host: on the device each op would be compiled, too.
    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Option<First>> {
        // A program with checks runs op by op anyway.
        if checks != Checks::default() {
            return Ok(None);
        }
        let runtime = self.backend.runtime();
        runtime.require_process("compile")?;
        let evaluator = Evaluator::new(self.fold.clone()).compile(program.clone(), checks)?;
        let mode = ExecutionMode::OnHost(evaluator);
        let executable =
            Arc::new(PjrtExecutable::new(self.clone(), program.clone(), mode, runtime.hardware(), donate));
        Ok(Some(First { executable, start: helpers::start }))
    }
}
