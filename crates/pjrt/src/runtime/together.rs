//! Programs that all devices of a mesh run together, each on its own blocks.
//!
//! Each device is a replica. Runs on several devices are started one at a time, because two runs that reached the
//! devices in different orders would wait for each other.
//!
//! If devices of other processes are in the mesh, each process compiles the program and starts its part of a run, on its
//! own devices. All of them must start the same runs in the same order.

use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, Executable, Gone, Hooks, check_arguments};
use defn_core::background::First;
use defn_core::donation::{aliases, named, positions};
use defn_core::mesh::{self, MeshError};
use defn_core::region::Region;
use defn_core::{Result, Tensor, pass};
use smallvec::SmallVec;

use super::buffer::Elements;
use super::disk::Folder;
use super::live::TensorInfo;
use super::mesh::{MeshBackend, MeshBuffer};
use super::programs::Compiled;
use super::{CompilerOptions, failure};
use crate::lower::lower_over;
use crate::options::CompileOptions;

/// Compiles programs for the devices of a mesh, which communicate by collectives.
#[derive(Clone, Debug)]
pub struct MeshCompiler {
    backend: Arc<MeshBackend>,
    fold: Arc<dyn Backend>,
    options: CompilerOptions,
    folder: Option<Folder>,
}

impl MeshCompiler {
    /// A compiler for a mesh. It folds scalar constants on `fold`, a backend of the host.
    pub fn new(backend: Arc<MeshBackend>, fold: Arc<dyn Backend>, options: CompilerOptions) -> MeshCompiler {
        let folder = options.folder();
        MeshCompiler { backend, fold, options, folder }
    }

    /// The mesh.
    pub fn backend(&self) -> &Arc<MeshBackend> {
        &self.backend
    }

    /// The StableHLO of a program, as it is compiled.
    ///
    /// # Errors
    /// As [`Compiler::compile_donating`], except errors from the plugin.
    pub fn text(&self, program: &Region) -> Result<String> {
        Ok(self.lower(program, &[])?.text)
    }

    fn lower(&self, program: &Region, donate: &[usize]) -> Result<crate::lower::LoweredProgram> {
        let count = self.backend.mesh().count();
        let simplified = pass::simplify(program, &self.fold)?;
        mesh::check(&simplified, count)?;
        let mut donated = vec![None; simplified.inputs().len()];
        for (argument, result) in aliases(&simplified, donate)? {
            donated[argument] = Some(result);
        }
        let hardware = self.backend.runtime().hardware();
        lower_over(&simplified, &donated, hardware, count).map_err(failure::lowering)
    }

    fn executable(&self, program: Arc<Region>, checks: Checks, donate: &[usize]) -> Result<MeshExecutable> {
        if checks != Checks::default() {
            return Err(MeshError::Checks.into());
        }
        let lowered = self.lower(&program, donate)?;
        let runtime = self.backend.runtime();
        let mut devices = Vec::with_capacity(self.backend.backends().len());
        for backend in self.backend.backends() {
            let id =
                backend.device().description().map_err(|error| failure::device("shard", runtime, error))?.id;
            devices.push(i64::from(id));
        }
        let options = CompileOptions {
            replicas: i64::try_from(devices.len()).expect("devices are few"),
            devices: Some(devices),
            portable: false,
            ..self.options.to_compile()
        };
        // The processes may compile together, so none of them takes a program that only it has kept.
        let folder = self.folder.as_ref().filter(|_| !self.backend.spans_processes());
        let compiled = runtime.programs.get("compile", runtime, &lowered, &options, folder)?;
        let graph = program.graph();
        let results = program.results().iter().map(|&value| {
            Arc::new(TensorInfo { ty: graph.ty(value).clone(), location: graph.node(value).location.clone() })
        });
        let results = results.collect();
        let donate = positions(donate);
        Ok(MeshExecutable { backend: self.backend.clone(), program, compiled, results, donate })
    }
}

impl Compiler for MeshCompiler {
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

    fn in_background(&self, _: &Arc<Region>, _: Checks, _: &[usize]) -> Result<Option<First>> {
        Err(failure::not_in_background("a mesh"))
    }
}

/// A program that was compiled for the devices of a mesh.
struct MeshExecutable {
    backend: Arc<MeshBackend>,
    program: Arc<Region>,
    compiled: Arc<Compiled>,
    /// The descriptions of its results.
    results: Vec<Arc<TensorInfo>>,
    /// The positions of the donated arguments, ascending.
    donate: Vec<usize>,
}

impl MeshExecutable {
    /// The elements of a donated argument: its own if it is on this mesh, else a copy.
    fn take_donated(&self, argument: &Tensor) -> Result<Vec<Arc<Elements>>> {
        match self.buffer_on_mesh(argument) {
            Some(buffer) => buffer.donate(Gone::donated()),
            // The run owns its copy on the devices; the source of the copy stays.
            None => self.backend.adopt(argument),
        }
    }

    fn buffer_on_mesh<'a>(&self, argument: &'a Tensor) -> Option<&'a MeshBuffer> {
        let buffer: &MeshBuffer = argument.buffer()?.as_any().downcast_ref()?;
        buffer.is_on(&self.backend).then_some(buffer)
    }

    /// Restores the donated arguments of a run that did not start.
    fn restore(&self, arguments: &[Tensor], donated: Vec<(usize, Vec<Arc<Elements>>)>) {
        for (position, elements) in donated {
            if let Some(buffer) = self.buffer_on_mesh(&arguments[position])
                && elements.iter().all(|elements| elements.raw().is_deleted() == Ok(false))
            {
                buffer.restore(elements);
            }
        }
    }
}

impl Executable for MeshExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn run(
        &self,
        _backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        _hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        check_arguments("run", self.program.inputs(), arguments.iter())?;
        let count = self.backend.addressable().len();
        let mut lists: Vec<Vec<Arc<Elements>>> = vec![Vec::with_capacity(arguments.len()); count];
        let mut donated: Vec<(usize, Vec<Arc<Elements>>)> = Vec::new();
        let mut non_donatable: SmallVec<[i64; 4]> = SmallVec::new();
        for (position, argument) in arguments.iter().enumerate() {
            let is_donated = self.donate.contains(&position);
            let elements =
                if is_donated { self.take_donated(argument) } else { self.backend.adopt(argument) };
            let elements = match elements {
                Ok(elements) => elements,
                Err(error) => {
                    self.restore(&arguments, donated);
                    return Err(named(error, position, argument));
                }
            };
            if is_donated {
                // If another tensor shares the memory on one device, it is copied on all.
                if elements.iter().any(Elements::is_shared) {
                    non_donatable.extend(i64::try_from(position));
                }
                donated.push((position, elements.clone()));
            }
            lists.iter_mut().zip(elements).for_each(|(list, elements)| list.push(elements));
        }
        let runtime = self.backend.runtime();
        let outputs = match runtime.execute_on_all("run", &self.compiled, lists, &non_donatable) {
            Ok(outputs) => outputs,
            Err(error) => {
                self.restore(&arguments, donated);
                return Err(error);
            }
        };
        let mut devices: Vec<_> = outputs.into_iter().map(Vec::into_iter).collect();
        let results = self.results.iter().zip(self.program.result_types()).map(|(info, ty)| {
            let block = |raw| Elements::new(runtime, raw, info.clone(), false);
            let blocks =
                devices.iter_mut().map(|outputs| block(outputs.next().expect("one for each result")));
            let buffer = MeshBuffer::new(&self.backend, blocks.collect());
            Tensor::concrete(ty.clone(), Arc::new(buffer))
        });
        Ok(results.collect())
    }
}

impl std::fmt::Debug for MeshExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MeshExecutable on {:?}", self.backend)
    }
}
