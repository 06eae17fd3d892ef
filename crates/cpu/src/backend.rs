//! The backend: one op at a time, on buffers.

mod folding;
mod index;
mod matrix;
mod order;
mod sliding;
mod structural;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Buffer, Buffers, HostMemory, Operand, Poll};
use defn_core::op::{Block, Op};
use defn_core::{DType, ErrorKind, Kind, Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use crate::buffer::{CpuBuffer, Storage, Window, adopt};
use crate::kernels::fourier::Way;
use crate::kernels::lanes::Base;
use crate::kernels::{create, elementwise, random};
use crate::par::Par;
use crate::view::{View, ViewMut, element_align};

/// Runs ops on the CPU.
#[derive(Debug)]
pub struct CpuBackend(());

/// Bytes of operands and results up to which an op stays on the caller's thread: waking another takes longer.
const SMALL: usize = 32 << 10;

/// Where what reads and writes elements of these types runs.
pub(crate) fn parallel<'t>(types: impl Iterator<Item = &'t TensorType>) -> Par {
    if types.map(TensorType::byte_size).sum::<usize>() <= SMALL { Par::Serial } else { Par::Pool }
}

/// The CPU backend of this process.
pub fn cpu_backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<CpuBackend>> = OnceLock::new();
    BACKEND.get_or_init(|| Arc::new(CpuBackend(()))).clone()
}

impl CpuBackend {
    /// Runs one op; one that takes long calls `poll` now and then. Positions out of range, and integers that have
    /// no quotient or power or are no number of bits to shift by, are errors where they are `checked`.
    fn dispatch(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        let par = parallel(operands.iter().map(|operand| &operand.ty).chain(outputs));
        let run = Run { op: form::name(op), par, checked, operands, outputs };
        match op {
            // create
            Op::Constant(scalar) => run.fresh(|_, out, par| create::constant(*scalar, out, par)),
            Op::Literal(literal) => {
                let bytes = HostMemory::new(Arc::new(Held(literal.bytes().clone())));
                Ok(smallvec![self.from_host(literal.ty(), bytes)?])
            }
            Op::Iota { axis, .. } => run.fresh(|_, out, par| create::iota(*axis, out, par)),
            Op::Eye { .. } => run.fresh(|_, out, par| create::eye(out, par)),

            // elementwise
            Op::Unary(op) => run.in_place(&[0], |x, out, par| elementwise::unary(*op, x[0], out, par)),
            Op::Binary(op) => {
                run.in_place(&[0, 1], |x, out, par| elementwise::binary(*op, x[0], x[1], out, par, checked))
            }
            Op::AsType { dtype } if *dtype == run.operands[0].ty.dtype => run.share(),
            Op::AsType { .. } => run.in_place(&[0], |x, out, par| elementwise::as_type(x[0], out, par)),
            // Signed and unsigned elements of one byte are extended differently, the others are their bits.
            Op::Bitcast { dtype } if dtype.bits() < 8 => {
                run.in_place(&[0], |x, out, par| elementwise::as_type(x[0], out, par))
            }
            Op::Bitcast { .. } => run.share(),
            Op::Select => {
                run.in_place(&[1, 2, 0], |x, out, par| elementwise::select(x[0], x[1], x[2], out, par))
            }
            Op::Clip => run.in_place(&[0], |x, out, par| elementwise::clip(x[0], x[1], x[2], out, par)),

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
            Op::TriangularSolve { lower, left_side, transform } => {
                run.triangular_solve(*lower, *left_side, *transform)
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
                run.in_place(&[0], |x, out, par| elementwise::log_to(Base::Two, x[0], out, par))
            }
            Op::Block(Block::Log10) => {
                run.in_place(&[0], |x, out, par| elementwise::log_to(Base::Ten, x[0], out, par))
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
        let adopted = buffer(adopt(bytes, ty.byte_size(), element_align(ty))?);
        if ty.dtype.bits() >= 8 {
            return Ok(adopted);
        }
        // Kernels count on the unused bits of a byte to extend the element; bytes from outside may hold any.
        let whole = if ty.dtype.kind() == Kind::Signed { DType::S8 } else { DType::U8 };
        let operand = Operand { ty: ty.with_dtype(whole)?, buffer: adopted };
        let op = Op::AsType { dtype: ty.dtype };
        Ok(self.run(&op, smallvec![operand], std::slice::from_ref(ty))?.remove(0))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        self.dispatch(op, operands, outputs, true, &|| Ok(()))
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
        self.dispatch(op, operands, outputs, false, &|| Ok(()))
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
        self.dispatch(op, operands, outputs, checked, poll)
    }

    fn has_native(&self, block: &Block) -> bool {
        match block {
            Block::LogicalNot
            | Block::Phase
            | Block::Logsumexp { .. }
            | Block::AllClose { .. }
            | Block::Fft2 { .. } => false,
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
            // Floats of 8 and 16 bits are rare; their default is exact too.
            Block::RandomUniform { dtype, .. } => dtype.bits() >= 32,
            // Integers of less than a byte are rare.
            Block::RandomBelow { dtype, .. } => dtype.bits() >= 8,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Elements that a program holds.
struct Held(Arc<[u8]>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The operands of one op as kernels see them.
pub(crate) type Views<'a> = SmallVec<[View<'a>; 3]>;

/// One op being run.
struct Run<'a> {
    op: &'static str,
    par: Par,
    checked: bool,
    operands: SmallVec<[Operand; 3]>,
    outputs: &'a [TensorType],
}

impl Run<'_> {
    /// Runs a kernel into new memory; for ops of one output.
    fn fresh(self, kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>) -> Result<Buffers> {
        let [ty] = self.outputs else { unreachable!("{} has one output", self.op) };
        let windows = self.windows()?;
        let mut storage = Storage::allocate(self.op, ty.byte_size())?;
        let start = storage.start_mut().expect("allocated memory is ours");
        let views: Views<'_> = self
            .operands
            .iter()
            .zip(&windows)
            .map(|(operand, w)| View::new(&operand.ty, w.bytes()))
            .collect();
        // SAFETY: the storage was allocated for this type, and only this view reaches it.
        let mut out = unsafe { ViewMut::new(ty, start) };
        kernel(&views, &mut out, self.par)?;
        // SAFETY: kernels write every element of their result.
        let window = unsafe { Window::new(Arc::new(storage), 0, ty.byte_size()) };
        Ok(smallvec![buffer(window)])
    }

    /// Runs a kernel in the memory of the first of these operands that is as large as the result, element by
    /// element, and that nobody else holds; else into new memory.
    fn in_place(
        mut self,
        candidates: &[usize],
        kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let [ty] = self.outputs else { unreachable!("{} has one output", self.op) };
        for &index in candidates {
            let own = &self.operands[index].ty;
            if own.dtype.storage_bytes() != ty.dtype.storage_bytes() || own.size() != ty.size() {
                continue;
            }
            let Some((mut storage, offset)) = self.take(index)? else { continue };
            let windows: SmallVec<[Option<Window>; 3]> = self
                .operands
                .iter()
                .enumerate()
                .map(|(i, operand)| (i != index).then(|| window(self.op, operand)).transpose())
                .collect::<Result<_>>()?;
            let start = storage.start_mut().expect("only memory of ours is taken");
            // SAFETY: the operand's elements lie there, as wide and as many as the result's and so with room
            // and aligned, and nobody else holds the storage.
            let mut out = unsafe { ViewMut::new(ty, start.add(offset)) };
            let views: Views<'_> = self
                .operands
                .iter()
                .zip(&windows)
                .map(|(operand, window)| match window {
                    Some(window) => View::new(&operand.ty, window.bytes()),
                    None => View::aliasing(&operand.ty, &out),
                })
                .collect();
            kernel(&views, &mut out, self.par)?;
            // SAFETY: kernels write every element of their result.
            let window = unsafe { Window::new(Arc::new(storage), offset, ty.byte_size()) };
            return Ok(smallvec![buffer(window)]);
        }
        self.fresh(kernel)
    }

    /// The storage of an operand that nobody else holds, and where the operand begins in it. The operand is
    /// unchanged where there is none.
    fn take(&mut self, index: usize) -> Result<Option<(Storage, usize)>> {
        let operand = &mut self.operands[index];
        if Arc::strong_count(&operand.buffer) != 1 || Arc::weak_count(&operand.buffer) != 0 {
            return Ok(None);
        }
        let Some(own) = Arc::get_mut(&mut operand.buffer) else { return Ok(None) };
        let own = (own as &mut dyn Any).downcast_mut::<CpuBuffer>().expect("operands are on this backend");
        own.take_unique(self.op)
    }

    /// The first operand's elements as they lie, under the output's type.
    fn share(self) -> Result<Buffers> {
        Ok(smallvec![buffer(window(self.op, &self.operands[0])?)])
    }

    /// Holds on all operands.
    fn windows(&self) -> Result<SmallVec<[Window; 3]>> {
        self.operands.iter().map(|operand| window(self.op, operand)).collect()
    }

    /// Says no.
    fn refuse(self, why: &str) -> Result<Buffers> {
        let backend = "cpu".to_owned();
        Err(ErrorKind::BackendRefused { op: self.op, backend, why: why.to_owned() }.into())
    }
}

pub(crate) fn buffer(window: Window) -> Arc<dyn Buffer> {
    Arc::new(CpuBuffer::new(window))
}

pub(crate) fn window(op: &'static str, operand: &Operand) -> Result<Window> {
    let own = operand.buffer.as_any().downcast_ref::<CpuBuffer>().expect("operands are on this backend");
    own.window(op)
}
