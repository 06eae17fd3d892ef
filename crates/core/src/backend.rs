//! What places, computes and compiles: the traits behind which the rest of the workspace stands.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::DeviceError;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::location::Location;
use crate::op::{Block, Op, UserBlockOp};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// The elements of one tensor, somewhere. Shared, and immutable while shared.
pub trait Buffer: Any + fmt::Debug + Send + Sync {
    /// Where the elements are.
    fn backend(&self) -> Arc<dyn Backend>;

    /// As [`Buffer::backend`], of one that lives as long as the buffer, where there is such a one.
    fn backend_lent(&self) -> Option<&Arc<dyn Backend>> {
        None
    }

    /// Whether the elements are on a backend that is this very object.
    fn is_on(&self, backend: &Arc<dyn Backend>) -> bool {
        Arc::ptr_eq(&self.backend(), backend)
    }

    /// Copies the first `out.len()` bytes to the host: row-major, native byte order, a byte for each 2- or
    /// 4-bit element. Waits until they are there.
    ///
    /// # Errors
    /// When the elements were freed or donated, or the device fails.
    fn read(&self, out: &mut [u8]) -> Result<()>;

    /// The elements as host memory, without a copy, where they are on the host. The result keeps them alive,
    /// and keeps them from being reused in place.
    ///
    /// # Errors
    /// When the elements were freed or donated.
    fn host(&self) -> Result<Option<HostMemory>>;

    /// The elements in another place, by a way of the backend's own. Without one they go by way of the host.
    ///
    /// # Errors
    /// What the backend fails with.
    fn copy_to(&self, _backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        Ok(None)
    }

    /// As [`Buffer::copy_to`], where the elements are freed after.
    ///
    /// # Errors
    /// What the backend fails with.
    fn transfer_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        self.copy_to(backend)
    }

    /// Whether the elements are still there.
    fn state(&self) -> BufferState;

    /// Frees the elements now; a run that uses them keeps its own hold. False if they were gone before.
    ///
    /// # Errors
    /// When the backend fails to free them.
    fn deallocate(&self) -> Result<bool>;

    /// Runs an element-wise op on operands that are all of the type `ty`, or elements of its dtype that stand for all, where
    /// the result is of that shape and of the dtype `to` ([`infer::alike`](crate::infer::alike)) and the op refuses no
    /// elements: the shortest way for small operands, of which this buffer is one. None where the backend has no such way
    /// for them; it is then asked to run the op as any other, and says what is wrong if something is.
    fn run_alike(
        &self,
        op: &Op,
        operands: &[Alike<'_>],
        ty: &TensorType,
        to: DType,
    ) -> Option<Arc<dyn Buffer>> {
        let _ = (op, operands, ty, to);
        None
    }

    /// The bytes `offset..offset + len`, which there are, as a buffer of their own over the same memory. None where the
    /// backend has no such way, and where the bytes are gone.
    fn part(&self, offset: usize, len: usize) -> Option<Arc<dyn Buffer>> {
        let _ = (offset, len);
        None
    }

    /// Lists the elements among what is alive ([`crate::live`]), as a tensor of this type that a line made: where they
    /// hold much of this process's memory, else nothing happens. Where they are listed already, only a line that is not
    /// known yet is added.
    fn list(&self, _ty: &TensorType, _line: fn() -> Option<Location>) {}

    /// For backends, which know their own buffers.
    fn as_any(&self) -> &dyn Any;

    /// For backends, which take a buffer that nobody else holds and reuse it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// An operand of an op whose operands are of one type.
#[derive(Clone, Copy, Debug)]
pub enum Alike<'a> {
    /// Its elements.
    Elements(&'a dyn Buffer),
    /// One element that stands for all.
    Same(Scalar),
}

/// Whether a buffer's elements are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferState {
    /// They are.
    Live,
    /// They are not any more.
    Gone(Gone),
}

/// How elements went, and by which line of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// In a word: `freed` by the user, or `donated` to a run that reused their memory.
    pub how: &'static str,
    /// The line, where it is known.
    pub by: Option<Location>,
}

impl Gone {
    /// Freed by the line that this thread is called from.
    pub fn freed() -> Gone {
        Gone { how: "freed", by: Location::of_user() }
    }

    /// Donated by the line that this thread is called from.
    pub fn donated() -> Gone {
        Gone { how: "donated", by: Location::of_user() }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.how)?;
        match &self.by {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

/// Host memory with its owner.
#[derive(Clone)]
pub struct HostMemory {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl HostMemory {
    /// Memory that lives as long as its owner.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> HostMemory {
        HostMemory { owner }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }

    /// A part of the memory, which keeps all of it alive.
    ///
    /// # Panics
    /// When the memory is shorter.
    pub fn part(&self, range: Range<usize>) -> HostMemory {
        assert!(range.start <= range.end && range.end <= self.bytes().len(), "{range:?} of {self:?}");
        HostMemory::new(Arc::new(Part { memory: self.clone(), range }))
    }
}

/// A part of some memory.
struct Part {
    memory: HostMemory,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.memory.bytes()[self.range.clone()]
    }
}

impl From<Vec<u8>> for HostMemory {
    fn from(bytes: Vec<u8>) -> HostMemory {
        HostMemory::new(Arc::new(bytes))
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostMemory({} bytes)", self.bytes().len())
    }
}

/// An operand of one op: its type, and its buffer. A buffer whose `Arc` nobody else holds may be reused.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The type.
    pub ty: TensorType,
    /// The elements.
    pub buffer: Arc<dyn Buffer>,
}

/// An operand of one op that somebody else keeps.
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a> {
    /// The type.
    pub ty: &'a TensorType,
    /// The elements.
    pub buffer: &'a Arc<dyn Buffer>,
}

/// The buffers that an op gives.
pub type Buffers = SmallVec<[Arc<dyn Buffer>; 1]>;

/// A place for tensors that can run one op at a time. Types come inferred; a backend never infers.
pub trait Backend: Any + fmt::Debug + Send + Sync {
    /// The name, as users choose it.
    fn name(&self) -> &str;

    /// The place as it prints: the name, and the device where there are several.
    fn place(&self) -> String {
        self.name().to_owned()
    }

    /// Makes a buffer of `ty` from bytes in memory order; the bytes may be kept instead of copied.
    ///
    /// # Errors
    /// When there is no memory for it.
    #[expect(clippy::wrong_self_convention, reason = "the backend is where the bytes go")]
    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>>;

    /// Runs one op without regions: every op but `Parameter`, `Cond`, `While`, `CustomGrad`, `Hook` and a
    /// block that [`Backend::has_native`] does not name.
    ///
    /// # Errors
    /// What can only be known from the elements, and memory.
    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers>;

    /// As [`Backend::run`], on operands of which somebody else keeps every one, the first on this backend: a shorter way
    /// for small ops. None where there is no such way for the op or its operands.
    ///
    /// # Errors
    /// As [`Backend::run`].
    fn run_lent(&self, op: &Op, operands: &[Lent<'_>], outputs: &[TensorType]) -> Result<Option<Buffers>> {
        let _ = (op, operands, outputs);
        Ok(None)
    }

    /// Whether [`Backend::run`] refuses what only the elements of operands tell: positions out of range, integer
    /// divisors of zero, negative shifts and exponents of integers, zeros on the diagonal of a triangular system. For
    /// a backend that does not, they are read and looked at before the op runs, where that is asked for.
    fn checks_operands(&self) -> bool {
        false
    }

    /// Whether a position out of range is an error where an op runs at once. On a device it is not: positions would have to
    /// be brought to the host first, and every op would wait for them.
    fn refuses_positions(&self) -> bool {
        true
    }

    /// Runs one op as [`Backend::run`] does, where a compiled program asks for no checks. A position out of range is
    /// no error: a read is moved to the nearest element and a write is dropped. Neither is an integer divisor of
    /// zero: the quotient has all bits set, and the remainder is the dividend. A backend that does the same
    /// in both cases need not say so.
    ///
    /// # Errors
    /// As [`Backend::run`], but for those.
    fn run_unchecked(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
    ) -> Result<Buffers> {
        self.run(op, operands, outputs)
    }

    /// Whether the backend runs a block natively rather than by its default graph.
    fn has_native(&self, block: &Block) -> bool;

    /// Whether the backend runs a fold by a function of the user's itself, [`Op::Fold`] or
    /// [`Op::WindowFold`], rather than by the ops that it is in others. A fold whose function has effects is
    /// never asked for.
    fn has_native_fold(&self, _fold: &Op) -> bool {
        false
    }

    /// Runs a fold that [`Backend::has_native_fold`] names, as [`Backend::run`] does where it is `checked` and as
    /// [`Backend::run_unchecked`] does where not. A user's function may take long over many elements: `poll` is
    /// called now and then, on this thread, and the run stops with its error.
    ///
    /// # Errors
    /// As those, and what `poll` gives.
    fn run_fold(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        poll()?;
        if checked { self.run(op, operands, outputs) } else { self.run_unchecked(op, operands, outputs) }
    }

    /// Whether tensors of both are in one place.
    fn is_same_place(&self, other: &dyn Backend) -> bool {
        self.place() == other.place()
    }

    /// Whether an op on tensors of both runs here, those of `other` being copied. Where neither backend takes over,
    /// the default backend gives way to the other.
    fn takes_over(&self, _other: &dyn Backend) -> bool {
        false
    }

    /// For adapters that know their own backends.
    fn as_any(&self) -> &dyn Any;
}

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

/// The host functions of one run, by the slots that hook nodes name.
pub trait Hooks {
    /// Called with the values of a hook, in program order.
    ///
    /// # Errors
    /// The host function's; the run stops with it.
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()>;

    /// Called for what a host function makes of values: one tensor for each of `outputs`, of its type and anywhere.
    ///
    /// # Errors
    /// The host function's; the run stops with it. Without host functions, that there is none.
    fn compute(&self, slot: usize, _values: &[Tensor], _outputs: &[TensorType]) -> Result<Vec<Tensor>> {
        Err(ErrorKind::NoHostFunction { slot }.into())
    }

    /// What a user's block is on a backend that has a native form of it: one tensor for each of `outputs`, of its
    /// type and anywhere. The values are the block's arguments, then its captures. Nothing where the backend has
    /// none, which is so for every backend that is not the host language's: the default runs.
    ///
    /// # Errors
    /// What the native form fails with; the run stops with it.
    fn native(
        &self,
        _block: &UserBlockOp,
        _backend: &Arc<dyn Backend>,
        _values: &[Tensor],
        _outputs: &[TensorType],
    ) -> Result<Option<Vec<Tensor>>> {
        Ok(None)
    }

    /// Called between ops and at every trip of a loop, so that a run can be interrupted.
    ///
    /// # Errors
    /// The interruption; the run stops with it.
    fn poll(&self) -> Result<()> {
        Ok(())
    }
}

/// No host functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn call(&self, _: usize, _: &[Tensor]) -> Result<()> {
        Ok(())
    }
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
