//! Compilers and what they compile.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Backend, Buffers, Hooks};
use crate::device::DeviceError;
use crate::error::{ErrorKind, Result};
use crate::region::Region;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// Called between the parts of what takes long, so that it can be interrupted.
pub type Poll<'a> = &'a dyn Fn() -> Result<()>;

/// What a compiled program looks for while it runs, beside what is always an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks {
    /// What [`Backend::run_unchecked`] lets pass is an error: positions out of range, integer divisors of zero.
    pub index: bool,
    /// A result with a NaN is an error.
    pub nan: bool,
    /// A result with an infinity is an error, unless an operand has one.
    pub inf: bool,
}

/// Turns a closed graph into something that runs.
pub trait Compiler: Any + fmt::Debug + Send + Sync {
    /// The name, as users choose it.
    fn name(&self) -> &str;

    /// Compiles.
    ///
    /// # Errors
    /// What the compiler cannot do.
    fn compile(&self, program: Arc<Region>, checks: Checks) -> Result<Arc<dyn Executable>> {
        self.compile_donating(program, checks, &[])
    }

    /// Compiles, so that a run reuses the memory of the arguments at these positions: they are gone after it. A
    /// compiler that reuses none refuses them by [`DeviceError::no_donation`].
    ///
    /// # Errors
    /// What the compiler cannot do, and an argument whose memory no result can take.
    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>>;
}

/// Refuses arguments that are not of these types; `op` is for the message.
///
/// # Errors
/// Another number of arguments, and one of another type.
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

/// The memory that a run of a compiled program takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryNeed {
    /// What the arguments have that it reads. They are there before it.
    pub arguments: usize,
    /// What it allocates for results. Those that are arguments, or lie in the memory of donated ones, take none.
    pub results: usize,
    /// What it allocates for values in between, which lie where others lay that nothing reads any more.
    pub between: usize,
    /// The most that an op takes beside while it runs.
    pub workspace: usize,
}

impl MemoryNeed {
    /// The most that is allocated at once.
    pub fn peak(&self) -> usize {
        self.results + self.between + self.workspace
    }
}

/// A compiled program.
pub trait Executable: fmt::Debug + Send + Sync {
    /// The program as it was given.
    fn program(&self) -> &Arc<Region>;

    /// Whether running looks at an input. For one that it does not look at a template will do, so that what nothing
    /// uses need not be where the program runs.
    fn uses(&self, _input: usize) -> bool {
        true
    }

    /// What a run will allocate, exactly, before it is run.
    ///
    /// # Errors
    /// A compiler that does not plan memory.
    fn memory(&self) -> Result<MemoryNeed> {
        Err(DeviceError::NotPlanned.into())
    }

    /// Runs on `backend`. One tensor for each input of the program, types compatible; one for each result.
    /// Arguments that nobody else holds may be reused.
    ///
    /// # Errors
    /// What can only be known from the elements, memory, and what hooks raise.
    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>>;

    /// As [`Executable::run`], on arguments that the caller keeps: a short run takes no hold of them. The caller has
    /// looked whether they are of the program's types, and knows the results' types from there.
    ///
    /// # Errors
    /// As [`Executable::run`].
    fn run_lent(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        let held = arguments.iter().map(|&argument| argument.clone()).collect();
        Ok(buffers_of(self.run(backend, held, hooks)?))
    }

    /// Runs on several lists of arguments, each with the backend that its tensors are on; a list of results for each.
    /// Where the compiler drives several devices, lists that are on none of them are dealt to them in turn, and the
    /// runs go on side by side.
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

    /// The compiled program as bytes, from which its compiler makes it again where the device is, in this process or
    /// another. The `note` is kept with it.
    ///
    /// # Errors
    /// A compiler that does not write programs.
    fn to_bytes(&self, _note: &[u8]) -> Result<Vec<u8>> {
        let required = "that of a compiler which writes them is required, such as \"pjrt\"";
        Err(DeviceError::NotWritten { problem: "the compiler writes no executables", required }.into())
    }
}
