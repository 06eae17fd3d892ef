//! Backends, which run one op at a time, and the traits of what surrounds them: the rest of the workspace stands behind
//! these.

mod buffer;
mod compiler;
mod hooks;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

pub use buffer::{Buffer, BufferState, Gone, HostMemory};
pub use compiler::{Checks, Compiler, Executable, MemoryNeed, Poll, buffers_of, check_arguments};
pub use hooks::{Hooks, NoHooks};

use crate::error::Result;
use crate::op::{Block, Op};
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// An operand of an op whose operands are of one type.
#[derive(Clone, Copy, Debug)]
pub enum Alike<'a> {
    /// Its elements.
    Elements(&'a dyn Buffer),
    /// One element that stands for all.
    Same(Scalar),
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
