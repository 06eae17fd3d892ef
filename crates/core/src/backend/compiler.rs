//! Compilers and their executables.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Backend, Buffers, Hooks};
use crate::background::{First, Progress};
use crate::device::DeviceError;
use crate::error::{ErrorKind, Result};
use crate::region::Region;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// Called between the parts of a long operation, so that it can be interrupted.
pub type Poll<'a> = &'a dyn Fn() -> Result<()>;

/// Additional checks that a compiled program makes at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks {
    /// Report what [`Backend::run_unchecked`] accepts: positions out of range, integer divisors of zero.
    pub index: bool,
    /// Report a result with a NaN.
    pub nan: bool,
    /// Report a result with an infinity, unless an operand has one.
    pub inf: bool,
}

/// Compiles a closed graph into an executable.
pub trait Compiler: Any + fmt::Debug + Send + Sync {
    /// The public name.
    fn name(&self) -> &str;

    /// Compiles.
    ///
    /// # Errors
    /// Programs that the compiler does not support.
    fn compile(&self, program: Arc<Region>, checks: Checks) -> Result<Arc<dyn Executable>> {
        self.compile_donating(program, checks, &[])
    }

    /// Compiles such that a run reuses the memory of the arguments at these positions, which are gone after
    /// the run. A compiler without donation returns [`DeviceError::no_donation`].
    ///
    /// # Errors
    /// Programs that the compiler does not support, and an argument whose memory no result can take.
    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>>;

    /// How the first calls of a program run while this compiler works in the background, for
    /// [`Background`](crate::background::Background). None where it would compile at once.
    ///
    /// # Errors
    /// A compiler that does not work in the background: [`DeviceError::no_background`].
    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Option<First>> {
        let _ = (program, checks, donate);
        Err(DeviceError::no_background(self.name()).into())
    }
}

/// Checks that arguments have these types; `op` is for the message.
///
/// # Errors
/// A wrong number of arguments, or an argument of another type.
pub fn check_arguments<'a>(
    op: &'static str,
    types: &[TensorType],
    arguments: impl ExactSizeIterator<Item = &'a Tensor>,
) -> Result<()> {
    let (given, expected) = (arguments.len(), types.len());
    if given != expected {
        return Err(ErrorKind::ArgumentCount { op, given, expected }.into());
    }
    for (position, (argument, ty)) in arguments.zip(types).enumerate() {
        if !ty.is_compatible(argument.whole()) {
            let (got, expected) = (argument.whole().clone(), ty.clone());
            return Err(ErrorKind::ArgumentType { op, argument: position.into(), got, expected }.into());
        }
    }
    Ok(())
}

/// The buffers of a run's results.
pub fn buffers_of(results: Vec<Tensor>) -> Buffers {
    results.into_iter().filter_map(Tensor::into_buffer).collect()
}

/// The memory that a run of a compiled program uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryNeed {
    /// The arguments that the run reads. They are allocated before the run.
    pub arguments: usize,
    /// Allocated for results. Results that are arguments, or use the memory of donated ones, add nothing.
    pub results: usize,
    /// Allocated for temporaries, which share memory where their lifetimes do not overlap.
    pub temporaries: usize,
    /// The largest workspace that one op uses while it runs.
    pub workspace: usize,
}

impl MemoryNeed {
    /// The largest number of bytes allocated at one time.
    pub fn peak(&self) -> usize {
        self.results + self.temporaries + self.workspace
    }
}

/// A compiled program.
pub trait Executable: fmt::Debug + Send + Sync {
    /// The source program.
    fn program(&self) -> &Arc<Region>;

    /// Whether the run reads an input. A template is accepted for an input that the run does not read, so
    /// that unused arguments need not be on the program's device.
    fn uses(&self, _input: usize) -> bool {
        true
    }

    /// How far the program is compiled. Only [`Background`](crate::background::Background) returns programs
    /// before they are.
    fn progress(&self) -> Progress {
        Progress::Compiled
    }

    /// Waits until the program is compiled. `poll` is called periodically, and its error ends the wait.
    ///
    /// # Errors
    /// That of the compiler, and that of `poll`.
    fn wait(&self, _poll: Poll<'_>) -> Result<()> {
        Ok(())
    }

    /// The memory that a run will allocate, exactly.
    ///
    /// # Errors
    /// A compiler that does not plan memory.
    fn memory(&self) -> Result<MemoryNeed> {
        Err(DeviceError::NotPlanned.into())
    }

    /// The code that the compiler has generated, as text: loop nests and their machine code for an instruction
    /// set, by default that of this processor.
    ///
    /// # Errors
    /// A compiler that does not show code, and an instruction set that it does not know.
    fn assembly(&self, _instructions: Option<&str>) -> Result<String> {
        Err(DeviceError::NoAssembly.into())
    }

    /// Runs on `backend`. Takes one tensor of a compatible type for each input of the program, and returns
    /// one for each result. Arguments without other owners may be reused.
    ///
    /// # Errors
    /// Errors that depend on the elements, memory, and errors of hooks.
    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>>;

    /// As [`Executable::run`], on arguments that the caller keeps: a fast path borrows them without taking a
    /// reference. The caller has checked that they have the program's types, and takes the results' types
    /// from the program.
    ///
    /// # Errors
    /// As [`Executable::run`].
    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        let owned = arguments.iter().map(|&argument| argument.clone()).collect();
        Ok(buffers_of(self.run(backend, owned, hooks)?))
    }

    /// As [`Executable::run`], on memory of the caller, without tensors: the bytes of each argument and of each
    /// result, in the layout of the backend of the host. Programs of other runtimes call such parts of
    /// themselves.
    ///
    /// # Errors
    /// Errors that depend on the elements, memory, and a compiler whose programs run only on tensors.
    ///
    /// # Panics
    /// If a number or a size differs from the program's, or memory is not aligned for its elements.
    fn run_on_bytes(&self, arguments: &[&[u8]], results: &mut [&mut [u8]]) -> Result<()> {
        let _ = (arguments, results);
        Err(DeviceError::OnlyTensors.into())
    }

    /// Runs on several lists of arguments, each with the backend that holds its tensors, and returns one list
    /// of results for each. A compiler that drives several devices distributes the lists that are on none of
    /// them round-robin, and runs on the devices in parallel.
    ///
    /// # Errors
    /// As [`Executable::run`]; the other lists may have been run.
    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        lists.into_iter().map(|(backend, list)| self.run(&backend, list, hooks)).collect()
    }

    /// Serializes the compiled program. Its compiler restores it on the same kind of device, in this process
    /// or another. The `note` is stored with it.
    ///
    /// # Errors
    /// A compiler that does not serialize executables.
    fn to_bytes(&self, _note: &[u8]) -> Result<Vec<u8>> {
        let required = "that of a compiler which writes them is required, such as \"pjrt\"";
        Err(DeviceError::NotWritten { problem: "the compiler writes no executables", required }.into())
    }
}
