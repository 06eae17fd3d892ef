//! The traits `Backend`, which runs one op at a time, and `Buffer`, `Compiler` and `Hooks` around it. The
//! other crates implement them.

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

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Op};
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// An operand of an op on same-dtype operands.
#[derive(Clone, Copy, Debug)]
pub enum SameDtypeOperand<'a> {
    /// Its elements.
    Elements(&'a dyn Buffer),
    /// One element, broadcast.
    Same(Scalar),
}

/// An operand of one op: its type and its buffer. A buffer without other owners may be reused.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The type.
    pub ty: TensorType,
    /// The elements.
    pub buffer: Arc<dyn Buffer>,
}

/// A borrowed operand of one op.
#[derive(Clone, Copy, Debug)]
pub struct BorrowedOperand<'a> {
    /// The type.
    pub ty: &'a TensorType,
    /// The elements.
    pub buffer: &'a Arc<dyn Buffer>,
}

/// The operands of an op.
pub type Operands = SmallVec<[Operand; 3]>;

/// The result buffers of an op.
pub type Buffers = SmallVec<[Arc<dyn Buffer>; 1]>;

/// Stores tensors and runs one op at a time. Output types are inferred by the caller; a backend never infers.
pub trait Backend: Any + fmt::Debug + Send + Sync {
    /// The public name.
    fn name(&self) -> &str;

    /// The printed location: the name, and the device where there are several.
    fn device_name(&self) -> String {
        self.name().to_owned()
    }

    /// Makes a buffer of `ty` from bytes in memory order; the bytes may be kept instead of copied.
    ///
    /// # Errors
    /// When there is no memory for it.
    #[expect(clippy::wrong_self_convention, reason = "the backend is where the bytes go")]
    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>>;

    /// As [`Backend::from_host`], with a copy of bytes that belong to someone else.
    ///
    /// # Errors
    /// As [`Backend::from_host`].
    #[expect(clippy::wrong_self_convention, reason = "the backend is where the bytes go")]
    fn from_host_copy(&self, ty: &TensorType, bytes: &[u8]) -> Result<Arc<dyn Buffer>> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len()).map_err(|_| ErrorKind::OutOfMemory {
            op: "tensor",
            requested: bytes.len(),
            available: 0,
        })?;
        copy.extend_from_slice(bytes);
        self.from_host(ty, HostMemory::from(copy))
    }

    /// Runs one op without regions: every op but `Parameter`, `Cond`, `While`, `CustomGrad`, `Implicit`, `Hook` and
    /// blocks for which [`Backend::has_native`] is false.
    ///
    /// # Errors
    /// Errors that depend on the elements, and memory.
    fn run(&self, op: &Op, operands: Operands, outputs: &[TensorType]) -> Result<Buffers>;

    /// As [`Backend::run`], on borrowed operands, the first of which is on this backend: a fast path for
    /// small ops. None where there is no fast path for the op or its operands.
    ///
    /// # Errors
    /// As [`Backend::run`].
    fn run_borrowed(
        &self,
        op: &Op,
        operands: &[BorrowedOperand<'_>],
        outputs: &[TensorType],
    ) -> Result<Option<Buffers>> {
        let _ = (op, operands, outputs);
        Ok(None)
    }

    /// Whether [`Backend::run`] reports errors that depend on the operands' elements: positions out of range,
    /// integer divisors of zero, negative shifts and exponents of integers, zeros on the diagonal of a
    /// triangular system. If not, the evaluator reads and checks these elements before the op runs, where
    /// checks are requested.
    fn checks_operands(&self) -> bool {
        false
    }

    /// Whether a position out of range is an error in an eager op. On a device it is not: every op would have
    /// to wait for its positions to be copied to the host.
    fn checks_positions_eagerly(&self) -> bool {
        true
    }

    /// Runs one op as [`Backend::run`] does, for compiled programs without checks. A position out of range is
    /// no error: a read is clamped to the nearest element and a write is dropped. Neither is an integer
    /// divisor of zero: the quotient has all bits set, and the remainder is the dividend. A backend that does
    /// the same in both cases need not implement this.
    ///
    /// # Errors
    /// As [`Backend::run`], except for these.
    fn run_unchecked(&self, op: &Op, operands: Operands, outputs: &[TensorType]) -> Result<Buffers> {
        self.run(op, operands, outputs)
    }

    /// Whether the backend runs a block natively rather than by its default graph.
    fn has_native(&self, block: &Block) -> bool;

    /// Which operands of a product ([`Op::Dot`]) in f32 the backend reads in the type in which they are stored, and converts
    /// part by part: a conversion beforehand would only take time.
    fn reads_as_stored(&self, _product: &Op, _operands: [&TensorType; 2]) -> [bool; 2] {
        [false; 2]
    }

    /// Whether the backend runs this op, whose operand has the dtype `to`, also on an operand of the dtype `from`: it
    /// converts element by element, without a second array. [`Backend::run`] and [`Backend::run_borrowed`] are then given
    /// the operand as it is, and the types of the results as inferred for `to`.
    fn converts_operand(&self, _op: &Op, _from: DType, _to: DType) -> bool {
        false
    }

    /// Whether the backend runs a fold with a user's function itself ([`Op::Fold`] or [`Op::WindowFold`]),
    /// rather than by its decomposition into other ops. Never called for a fold whose function has effects.
    fn has_native_fold(&self, _fold: &Op) -> bool {
        false
    }

    /// Runs a fold for which [`Backend::has_native_fold`] is true: as [`Backend::run`] if `checked`, else as
    /// [`Backend::run_unchecked`]. A user's function may take long over many elements: `poll` is called
    /// periodically on this thread, and the run stops with its error.
    ///
    /// # Errors
    /// As those methods, and the error of `poll`.
    fn run_fold(
        &self,
        op: &Op,
        operands: Operands,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        poll()?;
        if checked { self.run(op, operands, outputs) } else { self.run_unchecked(op, operands, outputs) }
    }

    /// The compiler for functions of several ops that recur in eager calls. Without one, their ops run one by one.
    fn compiler(&self) -> Option<&dyn Compiler> {
        None
    }

    /// Whether both backends store tensors on the same device.
    fn is_same_device(&self, other: &dyn Backend) -> bool {
        self.device_name() == other.device_name()
    }

    /// Whether an op on tensors of both backends runs on this one, with the tensors of `other` copied. Where
    /// neither takes over, an op on tensors of the default backend and another runs on the other.
    fn takes_over(&self, _other: &dyn Backend) -> bool {
        false
    }

    /// For adapters, to downcast to their own backends.
    fn as_any(&self) -> &dyn Any;
}
