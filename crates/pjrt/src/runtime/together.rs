//! Programs that all devices of a mesh run together, each on its own blocks.
//!
//! Each device is a replica. Runs on several devices are started one at a time, because two runs that reached the
//! devices in different orders would wait for each other.

use std::path::PathBuf;
use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, Executable, Gone, Hooks, check_arguments};
use defn_core::donation::{aliases, named};
use defn_core::mesh::{self, MeshError};
use defn_core::region::Region;
use defn_core::{Result, Tensor, pass};
use smallvec::SmallVec;

use super::buffer::Elements;
use super::live::TensorInfo;
use super::mesh::{MeshBackend, MeshBuffer};
use super::programs::Compiled;
use super::{CompilerOptions, failure};
use crate::lower::lower_over;
use crate::options::CompileOptions;

/// Compiles programs for the devices of a mesh, which communicate by collectives.
#[derive(Clone, Debug)]
pub struct MeshCompiler {
    place: Arc<MeshBackend>,
    fold: Arc<dyn Backend>,
    options: CompilerOptions,
    folder: Option<PathBuf>,
}

impl MeshCompiler {
    /// A compiler for a mesh. It folds scalar constants on `fold`, a backend of the host.
    pub fn new(place: Arc<MeshBackend>, fold: Arc<dyn Backend>, options: CompilerOptions) -> MeshCompiler {
        let folder = options.folder();
        MeshCompiler { place, fold, options, folder }
    }

    /// The mesh.
    pub fn place(&self) -> &Arc<MeshBackend> {
        &self.place
    }

    /// The StableHLO of a program, as it is compiled.
    ///
    /// # Errors
    /// As [`Compiler::compile_donating`], except errors from the plugin.
    pub fn text(&self, program: &Region) -> Result<String> {
        Ok(self.lower(program, &[])?.text)
    }

    fn lower(&self, program: &Region, donate: &[usize]) -> Result<crate::lower::Program> {
        let count = self.place.mesh().count();
        let simplified = pass::simplify(program, &self.fold)?;
        mesh::check(&simplified, count)?;
        let mut donated = vec![None; simplified.inputs().len()];
        for (argument, result) in aliases(&simplified, donate)? {
            donated[argument] = Some(result);
        }
        let hardware = self.place.runtime().hardware();
        lower_over(&simplified, &donated, hardware, count).map_err(failure::lowering)
    }

    fn executable(&self, program: Arc<Region>, checks: Checks, donate: &[usize]) -> Result<MeshExecutable> {
        if checks != Checks::default() {
            return Err(MeshError::Checks.into());
        }
        let lowered = self.lower(&program, donate)?;
        let runtime = self.place.runtime();
        let mut devices = Vec::with_capacity(self.place.places().len());
        for place in self.place.places() {
            let id =
                place.device().description().map_err(|error| failure::device("shard", runtime, error))?.id;
            devices.push(i64::from(id));
        }
        let options = CompileOptions {
            replicas: i64::try_from(devices.len()).expect("devices are few"),
            devices: Some(devices),
            portable: false,
            ..self.options.to_compile()
        };
        let compiled =
            runtime.programs.get("compile", runtime, &lowered, &options, self.folder.as_deref())?;
        let graph = program.graph();
        let results = program.results().iter().map(|&value| {
            Arc::new(TensorInfo { ty: graph.ty(value).clone(), location: graph.node(value).location.clone() })
        });
        let results = results.collect();
        let mut donate = donate.to_vec();
        donate.sort_unstable();
        donate.dedup();
        Ok(MeshExecutable { place: self.place.clone(), program, compiled, results, donate })
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
}

/// A program that was compiled for the devices of a mesh.
struct MeshExecutable {
    place: Arc<MeshBackend>,
    program: Arc<Region>,
    compiled: Arc<Compiled>,
    /// The descriptions of its results.
    results: Vec<Arc<TensorInfo>>,
    /// The positions of the donated arguments, ascending.
    donate: Vec<usize>,
}

impl MeshExecutable {
    /// The elements of a donated argument: its own if it is on this mesh, else a copy.
    fn take(&self, argument: &Tensor) -> Result<Vec<Arc<Elements>>> {
        match self.own(argument) {
            Some(own) => own.donate(Gone::donated()),
            // The run owns its copy on the devices; the source of the copy stays.
            None => self.place.adopt(argument),
        }
    }

    fn own<'a>(&self, argument: &'a Tensor) -> Option<&'a MeshBuffer> {
        let own: &MeshBuffer = argument.buffer()?.as_any().downcast_ref()?;
        own.backend_is(&self.place).then_some(own)
    }

    /// Restores the donated arguments of a run that did not start.
    fn restore(&self, arguments: &[Tensor], taken: Vec<(usize, Vec<Arc<Elements>>)>) {
        for (position, elements) in taken {
            if let Some(own) = self.own(&arguments[position])
                && elements.iter().all(|elements| elements.raw().is_deleted() == Ok(false))
            {
                own.restore(elements);
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
        let count = self.place.places().len();
        let mut lists: Vec<Vec<Arc<Elements>>> = vec![Vec::with_capacity(arguments.len()); count];
        let mut taken: Vec<(usize, Vec<Arc<Elements>>)> = Vec::new();
        let mut keep: SmallVec<[i64; 4]> = SmallVec::new();
        for (position, argument) in arguments.iter().enumerate() {
            let is_donated = self.donate.contains(&position);
            let found = if is_donated { self.take(argument) } else { self.place.adopt(argument) };
            let elements = match found {
                Ok(elements) => elements,
                Err(error) => {
                    self.restore(&arguments, taken);
                    return Err(named(error, position, argument));
                }
            };
            if is_donated {
                // If another tensor shares the memory on one device, it is copied on all.
                if elements.iter().any(Elements::is_shared) {
                    keep.extend(i64::try_from(position));
                }
                taken.push((position, elements.clone()));
            }
            lists.iter_mut().zip(elements).for_each(|(list, elements)| list.push(elements));
        }
        let runtime = self.place.runtime();
        let made = match runtime.execute_together("run", &self.compiled, lists, &keep) {
            Ok(made) => made,
            Err(error) => {
                self.restore(&arguments, taken);
                return Err(error);
            }
        };
        let mut devices: Vec<_> = made.into_iter().map(Vec::into_iter).collect();
        let results = self.results.iter().zip(self.program.result_types()).map(|(what, ty)| {
            let block = |raw| Elements::new(runtime, raw, what.clone(), false);
            let blocks = devices.iter_mut().map(|made| block(made.next().expect("one for each result")));
            let buffer = MeshBuffer::new(&self.place, blocks.collect());
            Tensor::concrete(ty.clone(), Arc::new(buffer))
        });
        Ok(results.collect())
    }
}

impl std::fmt::Debug for MeshExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MeshExecutable on {:?}", self.place)
    }
}
