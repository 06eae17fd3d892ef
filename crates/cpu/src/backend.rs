//! The backend runs single ops on buffers.

mod folding;
mod followed;
mod fourier;
mod index;
mod lent;
mod linalg;
mod matrix;
mod order;
mod outside;
mod reduce;
mod room;
mod shape;
mod window;
mod workspace;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, BorrowedOperand, Buffer, Buffers, HostMemory, Operand, Poll};
use defn_core::op::{Block, Literal, Op};
use defn_core::scalar::are_truths;
use defn_core::{DType, ErrorKind, Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use crate::buffer::{CpuBuffer, Storage, Window, adopt};
use crate::kernels::elementwise::vector::Base;
use crate::kernels::epilogue::Tail;
use crate::kernels::fourier::Way;
use crate::kernels::{create, elementwise, random};
use crate::par::{Par, interruptible};
use crate::settings;
use crate::view::{View, ViewMut, element_align};
#[doc(hidden)]
pub use followed::following_always;
pub(crate) use followed::{run_followed, takes_tail};
pub(crate) use lent::run_same_dtype;
use room::Room;
pub(crate) use workspace::{may_overwrite, workspace};

/// Runs ops on the CPU.
#[derive(Debug)]
pub struct CpuBackend(());

/// Bytes of operands and results up to which an op stays on the caller's thread: waking another takes longer.
const SMALL: usize = 32 << 10;

/// The parallelism of an op that reads and writes elements of these types.
pub(crate) fn parallel<'t>(types: impl Iterator<Item = &'t TensorType>) -> Par {
    parallel_over(types.map(TensorType::byte_size).sum())
}

/// The parallelism of an op that reads and writes `bytes` bytes.
fn parallel_over(bytes: usize) -> Par {
    if bytes <= SMALL { Par::Serial } else { Par::Pool }
}

/// The CPU backend of this process.
pub fn cpu_backend() -> Arc<dyn Backend> {
    the_backend().clone()
}

/// The same backend, borrowed.
pub(crate) fn the_backend() -> &'static Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    BACKEND.get_or_init(|| Arc::new(crate::stack::known(CpuBackend(()))))
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
    over: Option<usize>,
    par: Par,
    checked: bool,
    poll: Poll<'_>,
) -> Result<()> {
    let memory = Memory::Given { operands, results, over };
    let run = Run { room: Room::of(form::name(op)), par, checked, memory, tail: None };
    CpuBackend(()).dispatch(op, run, poll).map(drop)
}

impl CpuBackend {
    /// Runs one op on buffers.
    fn run_held(
        &self,
        op: &Op,
        mut operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        settings::check()?;
        let par = parallel(operands.iter().map(|operand| &operand.ty).chain(outputs));
        let memory = Memory::Held { operands: &mut operands, outputs };
        let run = Run { room: Room::of(form::name(op)), par, checked, memory, tail: None };
        interruptible(|| self.dispatch(op, run, poll))
    }

    /// Runs one op. A long op calls `poll` from time to time. Results in memory of the caller are not returned as
    /// buffers.
    fn dispatch(&self, op: &Op, run: Run<'_>, poll: Poll<'_>) -> Result<Buffers> {
        let checked = run.checked;
        let over = || op.in_place();
        match op {
            // create
            Op::Constant(scalar) => run.fresh(|_, out, par| create::constant(*scalar, out, par)),
            Op::Literal(literal) => match &run.memory {
                Memory::Held { .. } => {
                    let bytes = HostMemory::new(Arc::new(Held(literal.bytes().clone())));
                    Ok(smallvec![self.from_host(literal.ty(), bytes)?])
                }
                Memory::Given { .. } => run.literal(literal),
            },
            Op::Iota { axis, .. } => run.fresh(|_, out, par| create::iota(*axis, out, par)),
            Op::Eye { .. } => run.fresh(|_, out, par| create::eye(out, par)),

            // elementwise
            Op::Unary(op) => run.in_place(over(), |x, out, par| elementwise::unary(*op, x[0], out, par)),
            Op::Binary(op) => {
                run.in_place(over(), |x, out, par| elementwise::binary(*op, x[0], x[1], out, par, checked))
            }
            Op::AsType { dtype } if *dtype == run.operand(0).dtype => run.share(),
            Op::AsType { .. } => run.in_place(over(), |x, out, par| elementwise::as_type(x[0], out, par)),
            // Signed and unsigned one-byte elements are extended differently; for wider ones the bits are enough.
            Op::Bitcast { dtype } if dtype.bits() < 8 => {
                run.in_place(over(), |x, out, par| elementwise::as_type(x[0], out, par))
            }
            Op::Bitcast { .. } => run.share(),
            Op::Select => run.in_place(over(), |x, out, par| elementwise::select(x[0], x[1], x[2], out, par)),
            Op::Clip => run.in_place(over(), |x, out, par| elementwise::clip(x[0], x[1], x[2], out, par)),

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
            Op::Reduce { op, axes, .. } => run.reduce(*op, axes),
            Op::ArgReduce { op, axis, tie_break, .. } => run.arg_reduce((*op, *tie_break), *axis),

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
            Op::StopGrad | Op::Mark { .. } => run.share(),
            Op::Parameter { .. }
            | Op::Cond(_)
            | Op::While(_)
            | Op::CustomGrad(_)
            | Op::Hook(_)
            | Op::RuntimeCall(_)
            | Op::UserBlock(_)
            | Op::WindowFold(_) => run.refuse("it runs no regions and no host functions"),
            Op::Fold(op) => run.fold(op, poll),

            // block
            Op::Block(Block::Log2) => {
                run.in_place(over(), |x, out, par| elementwise::log_to(Base::Two, x[0], out, par))
            }
            Op::Block(Block::Log10) => {
                run.in_place(over(), |x, out, par| elementwise::log_to(Base::Ten, x[0], out, par))
            }
            Op::Block(Block::Threefry) => run.fresh(|x, out, par| {
                random::threefry(x[0], x[1], out, par);
                Ok(())
            }),
            Op::Block(Block::RandomBits { .. }) => run.fresh(|x, out, par| {
                random::bits(x[0], out, par);
                Ok(())
            }),
            Op::Block(Block::RandomUniform { dtype: DType::F32 | DType::F64, .. }) => {
                run.fresh(|x, out, par| {
                    random::uniform(x[0], out, par);
                    Ok(())
                })
            }
            Op::Block(Block::RandomBelow { .. }) => {
                run.fresh(|x, out, par| random::below(x[0], x[1], out, par, checked))
            }
            Op::Block(Block::Cumulative { op, axis, reverse }) => run.cumulative(*op, *axis, *reverse),
            Op::Block(Block::TopK { k }) => run.top_k(*k),
            Op::Block(Block::Take { axis }) => run.take_at(*axis),
            Op::Block(Block::TakeAlongAxis { axis }) => run.take_along_axis(*axis),
            Op::Block(Block::Rfft { axis, length, eps: _ }) => run.real_fft(Way::Forth, *axis, *length),
            Op::Block(Block::Irfft { axis, length, eps: _ }) => run.real_fft(Way::Back, *axis, *length),
            Op::Block(block) => run.factor(block),
        }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        let is_whole = match ty.dtype.is_bool() {
            true => are_truths(bytes.bytes()),
            false => ty.dtype.bits() >= 8,
        };
        let adopted = buffer(adopt(bytes, ty.byte_size(), element_align(ty))?);
        if is_whole {
            return Ok(adopted);
        }
        let operand = Operand { ty: outside::whole_bytes(ty)?, buffer: adopted };
        let op = Op::AsType { dtype: ty.dtype };
        Ok(self.run(&op, smallvec![operand], std::slice::from_ref(ty))?.remove(0))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        self.run_held(op, operands, outputs, true, &|| Ok(()))
    }

    fn run_borrowed(
        &self,
        op: &Op,
        operands: &[BorrowedOperand<'_>],
        outputs: &[TensorType],
    ) -> Result<Option<Buffers>> {
        self.run_shortly(op, operands, outputs)
    }

    fn is_same_place(&self, other: &dyn Backend) -> bool {
        // There is one CPU backend; a place is a text.
        other.as_any().is::<CpuBackend>() || self.place() == other.place()
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
        self.run_held(op, operands, outputs, false, &|| Ok(()))
    }

    fn has_native_fold(&self, fold: &Op) -> bool {
        if let Op::Fold(fold) = fold { folding::is_native(fold) } else { false }
    }

    fn run_fold(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        self.run_held(op, operands, outputs, checked, poll)
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
            | Block::Eigh { .. } => true,
            Block::Log2
            | Block::Log10
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::Cumulative { .. }
            | Block::TopK { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. } => true,
            // Floats of 8 and 16 bits are rare; the default expansion is exact too.
            Block::RandomUniform { dtype, .. } => dtype.bits() >= 32,
            // Integers of less than a byte are rare.
            Block::RandomBelow { dtype, .. } => dtype.bits() >= 8,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The elements of a literal of a program.
struct Held(Arc<[u8]>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The operands of one op, as kernels take them.
pub(crate) type Views<'a> = SmallVec<[View<'a>; 3]>;

/// One op while it runs.
struct Run<'a> {
    room: Room<'a>,
    par: Par,
    checked: bool,
    memory: Memory<'a>,
    /// The epilogue, called on complete elements of the only result; None for ops that [`takes_tail`] rejects.
    tail: Option<Tail<'a>>,
}

/// The memory of operands and results.
enum Memory<'a> {
    /// Operands that may have other owners. Results are written to new memory or to the memory of an operand without
    /// other owners, or they share an operand's memory.
    Held { operands: &'a mut [Operand], outputs: &'a [TensorType] },
    /// The caller has chosen the memory, as in [`run_into`].
    Given { operands: &'a [View<'a>], results: &'a [ViewMut<'a>], over: Option<usize> },
}

impl<'a> Run<'a> {
    /// The type of an operand.
    fn operand(&self, index: usize) -> &TensorType {
        match &self.memory {
            Memory::Held { operands, .. } => &operands[index].ty,
            Memory::Given { operands, .. } => operands[index].ty(),
        }
    }

    /// The type of a result.
    fn output(&self, index: usize) -> &'a TensorType {
        match &self.memory {
            Memory::Held { outputs, .. } => &outputs[index],
            Memory::Given { results, .. } => results[index].ty(),
        }
    }

    /// Runs a kernel that needs no workspace, into new memory or the caller's. For ops of one output.
    fn fresh(self, kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>) -> Result<Buffers> {
        self.in_place(&[], kernel)
    }

    /// Runs a kernel that needs no workspace, with the aliasing of [`Run::stage_in_place`].
    fn in_place(
        self,
        candidates: &[usize],
        kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        if self.room.runs() { self.stage_in_place(candidates, kernel) } else { Ok(Buffers::new()) }
    }

    /// Runs `work`, which calls kernels and takes workspace, into new memory or the caller's. For ops of one output.
    fn stage(self, work: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>) -> Result<Buffers> {
        self.stage_in_place(&[], work)
    }

    /// Runs `work`, which calls kernels and takes workspace, in the caller's memory if given, else in that of the first
    /// candidate operand of the result's size and element width without other owners, else in new memory.
    fn stage_in_place(
        self,
        candidates: &[usize],
        work: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let op = self.room.op;
        let (operands, ty) = match self.memory {
            Memory::Given { operands, results, over } => {
                let [result] = results else { unreachable!("{op} has one output") };
                // SAFETY: the caller's memory is for this type, and only this view and those derived from it access it.
                let mut out = unsafe { ViewMut::new(result.ty(), result.start()) };
                let Some(over) = over else {
                    work(operands, &mut out, self.par)?;
                    return Ok(Buffers::new());
                };
                assert!(candidates.contains(&over), "{op} writes over operand {over}");
                let lies_there = |(index, view): (usize, &View<'_>)| {
                    let shares = view.start() == out.start().cast_const() && candidates.contains(&index);
                    index == over || shares && fits(view.ty(), out.ty())
                };
                let views: Views<'_> = operands
                    .iter()
                    .enumerate()
                    .map(
                        |(i, view)| {
                            if lies_there((i, view)) { View::aliasing(view.ty(), &out) } else { *view }
                        },
                    )
                    .collect();
                work(&views, &mut out, self.par)?;
                return Ok(Buffers::new());
            }
            Memory::Held { operands, outputs } => {
                let [ty] = outputs else { unreachable!("{op} has one output") };
                (operands, ty)
            }
        };
        let mut taken = None;
        for &index in candidates {
            if fits(&operands[index].ty, ty)
                && let Some((storage, offset)) = take(op, &mut operands[index])?
            {
                taken = Some((index, storage, offset));
                break;
            }
        }
        let over = taken.as_ref().map(|(index, _, _)| *index);
        let windows: SmallVec<[Option<Window>; 3]> = operands
            .iter()
            .enumerate()
            .map(|(i, operand)| (Some(i) != over).then(|| window(op, operand)).transpose())
            .collect::<Result<_>>()?;
        let (mut storage, offset) = match taken {
            Some((_, storage, offset)) => (storage, offset),
            None => (Storage::allocate(op, ty.byte_size())?, 0),
        };
        let start = storage.start_mut().expect("only memory of ours is written");
        // SAFETY: the storage was allocated for this type, or an operand without other owners is stored there, with as
        // many elements of the same width, so that it is large enough and aligned.
        let mut out = unsafe { ViewMut::new(ty, start.add(offset)) };
        let views: Views<'_> = operands
            .iter()
            .zip(&windows)
            .map(|(operand, window)| match window {
                Some(window) => View::new(&operand.ty, window.bytes()),
                None => View::aliasing(&operand.ty, &out),
            })
            .collect();
        work(&views, &mut out, self.par)?;
        // SAFETY: kernels write every element of their result.
        let window = unsafe { Window::new(Arc::new(storage), offset, ty.byte_size()) };
        Ok(smallvec![buffer(window)])
    }

    /// As [`Run::stage`], for several results.
    fn stage_all(
        self,
        work: impl FnOnce(&[View<'_>], &mut [ViewMut<'_>], Par) -> Result<()>,
    ) -> Result<Buffers> {
        let op = self.room.op;
        match self.memory {
            Memory::Given { operands, results, over } => {
                assert!(over.is_none(), "{op} writes over no operand");
                let mut outs: SmallVec<[ViewMut<'_>; 3]> = results
                    .iter()
                    // SAFETY: the caller's memory is for these types, and only these views and those derived from them
                    // access it.
                    .map(|result| unsafe { ViewMut::new(result.ty(), result.start()) })
                    .collect();
                work(operands, &mut outs, self.par)?;
                Ok(Buffers::new())
            }
            Memory::Held { operands, outputs } => {
                let windows: SmallVec<[Window; 3]> =
                    operands.iter().map(|operand| window(op, operand)).collect::<Result<_>>()?;
                let pairs = operands.iter().zip(&windows);
                let views: Views<'_> =
                    pairs.map(|(operand, window)| View::new(&operand.ty, window.bytes())).collect();
                let mut storages: SmallVec<[Storage; 3]> =
                    outputs.iter().map(|ty| Storage::allocate(op, ty.byte_size())).collect::<Result<_>>()?;
                let mut outs: SmallVec<[ViewMut<'_>; 3]> = outputs
                    .iter()
                    .zip(&mut storages)
                    .map(|(ty, storage)| {
                        let start = storage.start_mut().expect("allocated memory is ours");
                        // SAFETY: the storage was allocated for this type, and only this view accesses it.
                        unsafe { ViewMut::new(ty, start) }
                    })
                    .collect();
                work(&views, &mut outs, self.par)?;
                drop(outs);
                let results = outputs.iter().zip(storages).map(|(ty, storage)| {
                    // SAFETY: kernels write every element of their results.
                    buffer(unsafe { Window::new(Arc::new(storage), 0, ty.byte_size()) })
                });
                Ok(results.collect())
            }
        }
    }

    /// Returns the first operand's elements, without a copy where possible, under the output's type.
    fn share(self) -> Result<Buffers> {
        match &self.memory {
            Memory::Held { operands, .. } => Ok(smallvec![buffer(window(self.room.op, &operands[0])?)]),
            Memory::Given { over: Some(0), .. } => Ok(Buffers::new()),
            Memory::Given { .. } => self.fresh(|views, out, par| {
                copy_bytes(views[0].bytes(), out, par);
                Ok(())
            }),
        }
    }

    /// Writes the elements of a literal.
    fn literal(self, literal: &Literal) -> Result<Buffers> {
        self.fresh(|_, out, par| {
            if literal.ty().dtype.bits() < 8 {
                return elementwise::as_type(
                    View::new(&outside::whole_bytes(literal.ty())?, literal.bytes()),
                    out,
                    par,
                );
            }
            copy_bytes(literal.bytes(), out, par);
            Ok(())
        })
    }

    /// Returns the error that the backend does not run the op.
    fn refuse(self, why: &str) -> Result<Buffers> {
        let backend = "cpu".to_owned();
        Err(ErrorKind::BackendRefused { op: self.room.op, backend, why: why.to_owned() }.into())
    }
}

/// Whether an operand has the number and width of the result's elements.
fn fits(operand: &TensorType, result: &TensorType) -> bool {
    operand.dtype.storage_bytes() == result.dtype.storage_bytes() && operand.size() == result.size()
}

/// Takes the storage of an operand without other owners, and its offset there; None, and no change, for other operands.
fn take(op: &'static str, operand: &mut Operand) -> Result<Option<(Storage, usize)>> {
    if Arc::strong_count(&operand.buffer) != 1 || Arc::weak_count(&operand.buffer) != 0 {
        return Ok(None);
    }
    let Some(own) = Arc::get_mut(&mut operand.buffer) else { return Ok(None) };
    let own = (own as &mut dyn Any).downcast_mut::<CpuBuffer>().expect("operands are on this backend");
    own.take_unique(op)
}

/// Bytes that one thread copies in a chunk.
const COPIED: usize = 1 << 18;

/// Copies bytes to a result.
fn copy_bytes(from: &[u8], out: &mut ViewMut<'_>, par: Par) {
    let out = &*out;
    par.for_chunks(out.ty().byte_size(), COPIED, |chunk| {
        // SAFETY: chunks are disjoint and in range, and the view is borrowed mutably meanwhile.
        unsafe { out.part_bytes(chunk.start, chunk.len()) }.write_copy_of_slice(&from[chunk]);
    });
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
