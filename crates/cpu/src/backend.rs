//! The backend runs single ops on buffers.

mod borrowed;
mod epilogue;
mod fourier;
mod index;
mod linalg;
mod matrix;
mod op_run;
mod order;
mod outside;
mod reduce;
mod scratch_allocator;
mod shape;
mod user_fold;
mod window;
mod workspace;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, BorrowedOperand, Buffer, Buffers, Compiler, HostMemory, Operand, Poll};
use defn_core::op::{BinaryOp, Block, Op, ReduceOp};
use defn_core::scalar::are_truths;
use defn_core::{DType, Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use crate::buffer::{CpuBuffer, Storage, Window, adopt, copy};
use crate::compiler::{CpuCompiler, run_elementwise, run_random};
use crate::kernels::fourier::RealDirection;
use crate::kernels::{create, elementwise};
use crate::modes::DefaultModes;
use crate::par::{Par, interruptible};
use crate::settings;
use crate::view::{View, ViewMut, element_align};
pub(crate) use borrowed::run_same_dtype;
#[doc(hidden)]
pub use epilogue::with_epilogues_always;
pub(crate) use epilogue::{forces_epilogues, product_of, run_with_epilogue, supports_epilogue};
pub(crate) use op_run::Views;
use op_run::{Memory, OpRun, fits};
use scratch_allocator::ScratchAllocator;
pub(crate) use workspace::{may_overwrite, workspace};

/// Runs ops on the CPU.
#[derive(Debug)]
pub struct CpuBackend(());

/// Bytes of operands and results up to which an op stays on the caller's thread: waking another takes longer.
const MAX_SERIAL_BYTES: usize = 32 << 10;

/// The parallelism of an op that reads and writes elements of these types.
pub(crate) fn parallel<'t>(types: impl Iterator<Item = &'t TensorType>) -> Par {
    parallel_over(types.map(TensorType::byte_size).sum())
}

/// The parallelism of an op that reads and writes `bytes` bytes.
fn parallel_over(bytes: usize) -> Par {
    if bytes <= MAX_SERIAL_BYTES { Par::Serial } else { Par::Pool }
}

/// The CPU backend of this process.
pub fn cpu_backend() -> Arc<dyn Backend> {
    the_backend().clone()
}

/// The same backend, borrowed.
pub(crate) fn the_backend() -> &'static Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    BACKEND.get_or_init(|| Arc::new(crate::stack::with_stack_probe(CpuBackend(()))))
}

/// Runs an op on operands and writes its results to memory that the caller has chosen. A long op calls `poll` from time
/// to time. Every op that [`Backend::run`] runs is run here, with the same bits. `over` is the operand in whose memory
/// the only result is written, one of those that [`may_overwrite`] returns. Apart from this, operands and results do
/// not overlap; but several operands that [`may_overwrite`] returns may be stored in that same memory.
///
/// # Errors
/// As [`Backend::run`]; the contents of the results are unspecified then. If `checked`, positions out of range are
/// errors, and so are integers that have no quotient or power or are no valid number of bits to shift by.
///
/// # Panics
/// When the op cannot write its result in the memory of the operand `over`.
pub(crate) fn run_into(
    op: &Op,
    operands: &[View<'_>],
    results: &[ViewMut<'_>],
    aliased_operand: Option<usize>,
    par: Par,
    checked: bool,
    poll: Poll<'_>,
) -> Result<()> {
    let memory = Memory::Planned { operands, results, aliased_operand };
    let run = OpRun { allocator: ScratchAllocator::of(form::name(op)), par, checked, memory, epilogue: None };
    CpuBackend(()).dispatch(op, run, poll).map(drop)
}

impl CpuBackend {
    /// A buffer of the host's elements in a window. Bools are stored as 0 or 1, and the unused bits of elements of less
    /// than a byte are those that the backend's own elements have.
    fn own_form(&self, ty: &TensorType, window: Window) -> Result<Arc<dyn Buffer>> {
        let is_whole = match ty.dtype.is_bool() {
            true => are_truths(window.bytes()),
            false => ty.dtype.bits() >= 8,
        };
        let adopted = buffer(window);
        if is_whole {
            return Ok(adopted);
        }
        let operand = Operand { ty: outside::whole_bytes(ty)?, buffer: adopted };
        let op = Op::AsType { dtype: ty.dtype };
        Ok(self.run(&op, smallvec![operand], std::slice::from_ref(ty))?.remove(0))
    }

    /// Runs one op on buffers.
    fn run_on_buffers(
        &self,
        op: &Op,
        mut operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        settings::check()?;
        let _modes = DefaultModes::set();
        let par = parallel(operands.iter().map(|operand| &operand.ty).chain(outputs));
        let memory = Memory::Owned { operands: &mut operands, outputs };
        let run =
            OpRun { allocator: ScratchAllocator::of(form::name(op)), par, checked, memory, epilogue: None };
        interruptible(|| self.dispatch(op, run, poll))
    }

    /// Runs one op. A long op calls `poll` from time to time. Results in memory of the caller are not returned as
    /// buffers.
    fn dispatch(&self, op: &Op, run: OpRun<'_>, poll: Poll<'_>) -> Result<Buffers> {
        let checked = run.checked;
        let in_place = || op.in_place();
        match op {
            // create
            Op::Constant(scalar) => run.fresh(|_, out, par| create::constant(*scalar, out, par)),
            Op::Literal(literal) => match &run.memory {
                Memory::Owned { .. } => {
                    let bytes = HostMemory::new(Arc::new(LiteralBytes(literal.bytes().clone())));
                    Ok(smallvec![self.from_host(literal.ty(), bytes)?])
                }
                Memory::Planned { .. } => run.literal(literal),
            },
            Op::Iota { axis, .. } => run.fresh(|_, out, par| create::iota(*axis, out, par)),
            Op::Eye { .. } => run.fresh(|_, out, par| create::eye(out, par)),

            // elementwise
            Op::AsType { dtype } if *dtype == run.operand(0).dtype => run.share(),
            Op::Binary(binary) => run.in_place(in_place(), |x, out, par| {
                if checked {
                    elementwise::check_operand(*binary, x[1], out.ty(), par)?;
                }
                run_elementwise(op, x, out, par);
                Ok(())
            }),
            Op::Unary(_)
            | Op::AsType { .. }
            | Op::Select
            | Op::Clip
            | Op::Block(Block::Log2 | Block::Log10) => run.in_place(in_place(), |x, out, par| {
                run_elementwise(op, x, out, par);
                Ok(())
            }),
            // Signed and unsigned one-byte elements are extended differently; for wider ones the bits are enough.
            Op::Bitcast { dtype } if dtype.bits() < 8 => run.in_place(in_place(), |x, out, par| {
                run_elementwise(&Op::AsType { dtype: *dtype }, x, out, par);
                Ok(())
            }),
            Op::Bitcast { .. } => run.share(),

            // shape
            Op::Reshape { .. } | Op::Squeeze { .. } => run.share(),
            Op::Broadcast { axes, .. } => run.broadcast(axes),
            Op::Transpose { axes } => run.transpose(axes),
            Op::Pad { config } => run.pad(config),
            Op::Reverse { axes } => run.reverse(axes),
            Op::Concatenate { axis } => run.concatenate(*axis),
            Op::Stack { axis, .. } => run.stack(*axis),
            Op::Slice { starts, lengths, strides } => run.slice(starts, lengths, strides),
            Op::PutSlice { starts } => run.put_slice(starts),

            // reduce
            Op::Reduce { .. } | Op::ArgReduce { .. } => run.reduce(op),

            // linalg
            Op::Dot { contract_a, batch_a, contract_b, .. } => run.dot(contract_a, contract_b, batch_a.len()),

            // index
            Op::Gather { axes } => run.read(axes),
            Op::Scatter { op, axes } => run.scatter(*op, axes),

            // order
            Op::Sort { axis, direction } => run.sort(*axis, *direction),
            Op::Argsort { axis, direction, .. } => run.argsort(*axis, *direction),

            // window
            Op::Window { op, window } => run.window(*op, window),
            Op::WindowScatter { op, window } => run.window_scatter(*op, window),
            Op::Conv(op) => run.conv(op),

            // fourier
            Op::Fft { op, axis, length: _, eps: _ } => run.fft(*op, *axis),

            // linalg
            Op::TriangularSolve { lower, left_side, transform_a } => {
                run.triangular_solve(*lower, *left_side, *transform_a)
            }

            // collective
            Op::Collective(_) => {
                run.refuse("it is one device; run the whole program by dn.shard on \"pjrt\"")
            }

            // control
            Op::StopGrad | Op::Mark { .. } | Op::Transfer { .. } => run.share(),
            Op::Barrier
            | Op::Parameter { .. }
            | Op::Cond(_)
            | Op::While(_)
            | Op::CustomGrad(_)
            | Op::Implicit(_)
            | Op::Hook(_)
            | Op::RuntimeCall(_)
            | Op::UserBlock(_)
            | Op::WindowFold(_) => run.refuse("it runs no regions and no host functions"),
            Op::Fold(op) => run.fold(op, poll),

            // block
            Op::Block(
                Block::Threefry
                | Block::RandomBits { .. }
                | Block::RandomUniform { .. }
                | Block::RandomBelow { .. },
            ) => run.fresh(|x, out, par| {
                // What comes after the key of integers below a bound is the bound.
                if let (Op::Block(Block::RandomBelow { .. }), true, [_, bound]) = (op, checked, x) {
                    elementwise::check_operand(BinaryOp::REMAINDER, *bound, out.ty(), Par::Serial)?;
                }
                run_random(op, x, out, par);
                Ok(())
            }),
            Op::Block(Block::Cumulative { op, axis, reverse }) => run.cumulative(*op, *axis, *reverse),
            Op::Block(Block::TopK { k }) => run.top_k(*k),
            Op::Block(Block::Partition { axis, kth }) => run.partition(*axis, *kth, false),
            Op::Block(Block::Argpartition { axis, kth }) => run.partition(*axis, *kth, true),
            Op::Block(Block::Isin) => run.isin(),
            Op::Block(Block::Bincount { length: _ }) => run.count(),
            Op::Block(Block::Take { axis }) => run.take_at(*axis),
            Op::Block(Block::TakeAlongAxis { axis }) => run.take_along_axis(*axis),
            Op::Block(Block::Rfft { axis, length, eps: _ }) => {
                run.real_fft(RealDirection::Forward, *axis, *length)
            }
            Op::Block(Block::Irfft { axis, length, eps: _ }) => {
                run.real_fft(RealDirection::Inverse, *axis, *length)
            }
            Op::Block(block) => run.factor(block),
        }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn compiler(&self) -> Option<&dyn Compiler> {
        static COMPILER: OnceLock<CpuCompiler> = OnceLock::new();
        Some(COMPILER.get_or_init(CpuCompiler::new))
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        self.own_form(ty, adopt(bytes, ty.byte_size(), element_align(ty))?)
    }

    /// The tensor owns its memory, which a program may reuse if it is donated.
    fn from_host_copy(&self, ty: &TensorType, bytes: &[u8]) -> Result<Arc<dyn Buffer>> {
        self.own_form(ty, copy("tensor", &bytes[..ty.byte_size()])?)
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        self.run_on_buffers(op, operands, outputs, true, &|| Ok(()))
    }

    fn run_borrowed(
        &self,
        op: &Op,
        operands: &[BorrowedOperand<'_>],
        outputs: &[TensorType],
    ) -> Result<Option<Buffers>> {
        self.run_borrowed(op, operands, outputs)
    }

    fn is_same_device(&self, other: &dyn Backend) -> bool {
        // There is one CPU backend; a place is a text.
        other.as_any().is::<CpuBackend>() || self.device_name() == other.device_name()
    }

    fn checks_operands(&self) -> bool {
        true
    }

    fn run_unchecked(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
    ) -> Result<Buffers> {
        self.run_on_buffers(op, operands, outputs, false, &|| Ok(()))
    }

    fn reads_as_stored(&self, product: &Op, operands: [&TensorType; 2]) -> [bool; 2] {
        let Op::Dot { contract_a, batch_a, contract_b, .. } = product else { return [false; 2] };
        linalg::reads_as_stored(operands, [contract_a, contract_b], batch_a.len())
    }

    fn converts_operand(&self, op: &Op, _from: DType, _to: DType) -> bool {
        // Extremes are among the elements: what is compared need not be converted.
        let Op::Reduce { op: ReduceOp::Sum | ReduceOp::Product, .. } = op else { return false };
        true
    }

    fn has_native_fold(&self, fold: &Op) -> bool {
        if let Op::Fold(fold) = fold { user_fold::is_native(fold) } else { false }
    }

    fn run_fold(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        self.run_on_buffers(op, operands, outputs, checked, poll)
    }

    fn has_native(&self, block: &Block) -> bool {
        match block {
            Block::Composite(_) | Block::Fft2 { .. } => false,
            Block::Cholesky
            | Block::Determinant
            | Block::Solve
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Eig { .. }
            | Block::Schur
            | Block::Hessenberg
            | Block::Svdvals
            | Block::Eigvalsh => true,
            Block::Log2
            | Block::Log10
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. }
            | Block::Cumulative { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Isin
            | Block::Bincount { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. } => true,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The elements of a literal of a program.
struct LiteralBytes(Arc<[u8]>);

impl AsRef<[u8]> for LiteralBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(crate) fn buffer(window: Window) -> Arc<dyn Buffer> {
    Arc::new(CpuBuffer::new(window))
}

/// A buffer of all bytes of a storage.
///
/// # Safety
/// They are initialised.
pub(crate) unsafe fn filled(storage: Storage) -> Arc<dyn Buffer> {
    // SAFETY: as the caller says.
    Arc::new(unsafe { CpuBuffer::filled(storage) })
}

pub(crate) fn window(op: &'static str, operand: &Operand) -> Result<Window> {
    let own = operand.buffer.as_any().downcast_ref::<CpuBuffer>().expect("operands are on this backend");
    own.window(op)
}

#[cfg(test)]
mod tests;
