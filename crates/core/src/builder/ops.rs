//! The builder that works on tensors: it traces if a trace is open, and otherwise runs ops eagerly.
//!
//! Small element-wise ops have a fast path ([`fast_path`]), whose dispatch would otherwise cost more than
//! their arithmetic. It takes operands of one dtype that compute in that dtype, and neither infers nor
//! dispatches. A Python number or a NumPy scalar that adopts the dtype is a single element.
//! [`view_fast_path`] returns contiguous elements that an index selects as a window of the operand. If a fast
//! path rejects an op, or fails, the general path runs it and reports the error. The fast paths are
//! benchmarked on two 8-element arrays, by instruction counts, because their cost is spread over many
//! functions.

use std::borrow::Cow;
use std::fmt;
use std::slice::from_ref;
use std::sync::Arc;

use smallvec::SmallVec;

use super::composite::{self, Composite};
use super::{Arg, BuildElementwise, BuildReduce, Builder, SIZE_HINT};
use crate::backend::{
    Backend, BorrowedOperand, Buffer, Buffers, Checks, Hooks, HostMemory, NoHooks, Operand, SameDtypeOperand,
};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::evaluator;
use crate::form;
use crate::infer;
use crate::infer::reduce::index_dtype;
use crate::location::{Location, during};
use crate::memory;
use crate::op::Op;
use crate::scalar::{Number, Scalar};
use crate::shape::{Axes, Axis, AxisList, Shape, TensorType};
use crate::tensor::{Data, Tensor};
use crate::trace;
use crate::vectorize::{self, position};
use crate::weak;

/// The source of the location of a node or an error. It is evaluated only when a location is needed.
#[derive(Clone, Debug)]
pub enum Source {
    /// There is no location.
    Unknown,
    /// The location is known already.
    At(Location),
    /// The host language finds the location.
    Lookup(fn() -> Option<Location>),
}

impl Source {
    /// The location, if there is one.
    pub fn locate(&self) -> Option<Location> {
        match self {
            Source::Unknown => None,
            Source::At(location) => Some(location.clone()),
            Source::Lookup(lookup) => lookup(),
        }
    }
}

/// Runs long work without the locks of the host language.
pub trait Host: Sync {
    /// Runs `body` once, on this thread.
    fn run(&self, body: &mut (dyn FnMut() + Send));
}

/// Applies ops to tensors.
#[derive(Clone)]
pub struct Ops {
    /// The backend for tensors that are created without operands.
    pub backend: Arc<dyn Backend>,
    /// The source of the user's location.
    pub source: Source,
    /// The checks of eager ops. Positions out of range are always an error in eager ops.
    pub checks: Checks,
    /// The hooks that receive values from eager ops and can stop them.
    pub hooks: &'static (dyn Hooks + Sync),
    /// Runs eager loops and branches. Without a host they run directly.
    pub host: Option<&'static dyn Host>,
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ops").field("backend", &self.backend).field("checks", &self.checks).finish()
    }
}

impl Ops {
    /// Ops that create tensors on `backend`.
    pub fn new(backend: Arc<dyn Backend>, source: Source) -> Ops {
        Ops { backend, source, checks: Checks::default(), hooks: &NoHooks, host: None }
    }

    /// Runs an op, whose operand is converted to a dtype if one is given.
    fn eager(
        &self,
        op: &Op,
        name: &'static str,
        tensors: &[Tensor],
        converted: Option<DType>,
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let mut borrowed: SmallVec<[BorrowedOperand<'_>; 3]> = SmallVec::with_capacity(tensors.len());
        for tensor in tensors {
            match tensor.data() {
                Data::Buffer(buffer) => borrowed.push(BorrowedOperand { ty: tensor.ty(), buffer }),
                Data::Traced { trace, .. } => return Err(trace.not_open_error(name, tensor.ty()).into()),
                Data::Template => {
                    return Err(ErrorKind::IsTemplate { op: name, got: tensor.ty().clone() }.into());
                }
            }
        }
        let types: SmallVec<[&TensorType; 4]> = tensors.iter().map(Tensor::ty).collect();
        let outputs = match (converted, tensors) {
            (Some(dtype), [tensor]) => infer::infer(op, &[&tensor.ty().with_dtype(dtype)?]),
            (Some(_) | None, _) => infer::infer(op, &types),
        };
        let outputs = outputs.map_err(|error| error.with_operands(types))?;
        if self.checks == Checks::default()
            && let [first, ..] = &*borrowed
            && let Some(buffers) = first.buffer.backend().run_borrowed(op, &borrowed, &outputs)?
        {
            return Ok(tensors_of(outputs, buffers));
        }
        let operands =
            borrowed.iter().map(|operand| Operand { ty: operand.ty.clone(), buffer: operand.buffer.clone() });
        let mut operands: SmallVec<[Operand; 3]> = operands.collect();
        let backend = pick_backend(name, tensors, &self.backend)?;
        for operand in &mut operands {
            let owner = operand.buffer.backend();
            if !Arc::ptr_eq(&owner, &backend) && !owner.is_same_device(&*backend) {
                // The operand's backend yields to the chosen one, so its data is copied.
                let tensor = Tensor::concrete(operand.ty.clone(), operand.buffer.clone());
                operand.buffer = backend.from_host(&operand.ty, tensor.host_bytes(name)?)?;
            }
        }
        let run = |operands| evaluator::run_op(&backend, op, operands, &outputs, self.hooks, self.checks);
        let buffers = match self.host {
            Some(host) if !op.regions().is_empty() => {
                let (mut operands, mut buffers) = (Some(operands), None);
                host.run(&mut || buffers = operands.take().map(run));
                buffers.expect("a host runs what it is given")?
            }
            Some(_) | None => run(operands)?,
        };
        Ok(tensors_of(outputs, buffers))
    }

    /// Runs ops at the user's location, which errors name.
    fn located<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let outputs = match &self.source {
            Source::At(location) => during(location.clone(), run),
            Source::Unknown | Source::Lookup(_) => run(),
        };
        outputs.map_err(|error: Error| error.at(self.source.locate()))
    }
}

/// The result of an op by a fast path ([`Buffer::run_same_dtype`], [`Backend::run_borrowed`]) of the first operand's backend.
/// The operands must have fewer than `most` bytes together, no trace may be open, and no operand may be vectorized.
/// `None` if there is no fast path, and if the op fails; [`Ops`] then runs the general path and reports the error.
#[inline]
pub fn fast_path(op: &Op, operands: &[Arg<&Tensor>], most: usize) -> Option<Tensor> {
    if trace::depth() > 0 {
        return None;
    }
    if let Some(result) = fast_path_same_dtype(op, operands, most) {
        return Some(result);
    }
    fast_path_by_borrow(op, operands, most)
}

/// The matrix product ([`BuildLinalg::matmul`](super::BuildLinalg::matmul)) of a tensor with a vector or a matrix, by
/// the fast path of [`fast_path`].
pub fn matmul_fast_path(a: &Tensor, b: &Tensor, most: usize) -> Option<Tensor> {
    let shape = &b.ty().shape;
    let (contract_a, contract_b) = (a.ty().shape.last_axis()?, shape.axis(shape.rank().saturating_sub(2))?);
    if shape.rank() > 2 || trace::depth() > 0 {
        return None;
    }
    let op = Op::Dot {
        contract_a: AxisList::from_elem(contract_a, 1),
        batch_a: AxisList::new(),
        contract_b: AxisList::from_elem(contract_b, 1),
        batch_b: AxisList::new(),
    };
    fast_path_by_borrow(&op, &[Arg::Value(a), Arg::Value(b)], most)
}

/// A view of a tensor's memory with another shape, from the element at `first` on. `None` under the conditions of
/// [`fast_path`], and if the backend has no such view ([`Buffer::part`]).
pub fn view_fast_path(tensor: &Tensor, first: usize, shape: Shape) -> Option<Tensor> {
    if trace::depth() > 0 || tensor.is_vectorized() {
        return None;
    }
    let ty = TensorType { dtype: tensor.ty().dtype, shape };
    let part = tensor.buffer()?.part(first * ty.dtype.storage_bytes(), ty.byte_size())?;
    Some(Tensor::concrete(ty, part))
}

/// Like [`fast_path`], by [`Backend::run_borrowed`].
fn fast_path_by_borrow(op: &Op, operands: &[Arg<&Tensor>], most: usize) -> Option<Tensor> {
    let mut bytes = 0;
    let (mut borrowed, mut types) =
        (SmallVec::<[BorrowedOperand<'_>; 3]>::new(), SmallVec::<[&TensorType; 3]>::new());
    for operand in operands {
        let Arg::Value(tensor) = operand else { return None };
        let buffer = tensor.buffer().filter(|_| !tensor.is_vectorized())?;
        bytes += tensor.ty().byte_size();
        borrowed.push(BorrowedOperand { ty: tensor.ty(), buffer });
        types.push(tensor.ty());
    }
    if bytes >= most {
        return None;
    }
    let outputs = infer::infer(op, &types).ok()?;
    let buffers = backend_of(borrowed.first()?.buffer).run_borrowed(op, &borrowed, &outputs).ok()??;
    let pair = outputs.into_iter().zip(buffers).next();
    pair.map(|(ty, buffer)| Tensor::concrete(ty, buffer))
}

/// Like [`fast_path`], for ops that are computed in the common type of their operands; numbers take that type. No
/// inference is needed.
#[inline]
fn fast_path_same_dtype(op: &Op, operands: &[Arg<&Tensor>], most: usize) -> Option<Tensor> {
    let first = operands.iter().find_map(|operand| match operand {
        Arg::Value(tensor) => Some(*tensor),
        Arg::Number(_) => None,
    })?;
    let ty = first.ty();
    let to = infer::same_dtype_result(op, ty)?;
    // The general path reports errors that depend on values. Ops whose results are predicates have none.
    if to == ty.dtype && evaluator::depends_on_elements(op, ty) || operands.len() * ty.byte_size() >= most {
        return None;
    }
    // Operands that are pushed one by one are copied, which waits for the stores of their parts.
    let mut same_dtype_operands = [SameDtypeOperand::Elements(&**first.buffer()?); 2];
    let same_dtype_operands = same_dtype_operands.get_mut(..operands.len())?;
    for (place, operand) in same_dtype_operands.iter_mut().zip(operands) {
        match operand {
            Arg::Value(tensor) => {
                let has_same_type =
                    !tensor.is_vectorized() && (std::ptr::eq(*tensor, first) || tensor.ty() == ty);
                *place = SameDtypeOperand::Elements(&**tensor.buffer().filter(|_| has_same_type)?);
            }
            Arg::Number(number) if ty.dtype.merge_weak(*number) == ty.dtype && !ty.dtype.lacks(*number) => {
                *place = SameDtypeOperand::Same(Scalar::new(ty.dtype, *number).ok()?);
            }
            Arg::Number(_) => return None,
        }
    }
    let result = first.buffer()?.run_same_dtype(op, same_dtype_operands, ty, to)?;
    Some(Tensor::concrete(TensorType { dtype: to, shape: ty.shape.clone() }, result))
}

/// Tensors from buffers and their types.
fn tensors_of(types: SmallVec<[TensorType; 1]>, buffers: Buffers) -> SmallVec<[Tensor; 1]> {
    types.into_iter().zip(buffers).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect()
}

impl Builder for Ops {
    type V = Tensor;

    fn ty(&self, value: &Tensor) -> TensorType {
        value.ty().clone()
    }

    fn emit(&mut self, op: Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        if operands.iter().any(Tensor::is_vectorized) {
            return vectorize::emit(self, op, operands);
        }
        let name = form::name(&op);
        match trace::current() {
            Some(trace) => Ok(trace.emit(op, name, operands, self.source.locate())?.into()),
            None => self.located(|| self.eager(&op, name, operands, None)),
        }
    }

    fn emit_converted(&mut self, op: Op, x: &Tensor, dtype: DType) -> Result<Tensor> {
        let from = x.ty().dtype;
        let is_one_op = trace::depth() == 0
            && !x.is_vectorized()
            && from != dtype
            && x.buffer().is_some_and(|buffer| backend_of(buffer).converts_operand(&op, from, dtype));
        if is_one_op {
            let name = form::name(&op);
            let mut outputs = self.located(|| self.eager(&op, name, from_ref(x), Some(dtype)))?;
            return Ok(outputs.remove(0));
        }
        super::convert_and_emit(self, op, x, dtype)
    }

    fn composite_results<const N: usize, const M: usize>(
        &mut self,
        function: Composite,
        operands: [Tensor; N],
        body: &dyn Fn(&mut Ops, &[Tensor; N]) -> Result<[Tensor; M]>,
    ) -> Result<[Tensor; M]> {
        composite::run(self, &function, &operands, body)
    }

    fn weakness(&self, value: &Tensor) -> Option<Number> {
        value.weakness()
    }

    fn in_dtype(&mut self, value: Tensor, dtype: DType) -> Result<Tensor> {
        if value.is_weak() { weak::in_dtype(self, &value, dtype) } else { Ok(value) }
    }

    fn strong(&self, value: Tensor) -> Tensor {
        value.strong()
    }

    fn vectorized_like(&mut self, value: Tensor, model: &Tensor) -> Result<Tensor> {
        // The model is in no op that would read it and note its axes.
        let model = position::read(self, model)?;
        if !model.is_vectorized() {
            return Ok(value);
        }
        trace::note_vectorized(&model);
        let axes = vectorize::union("broadcast", &[model, value.clone()])?;
        vectorize::broadcast_vectorized(self, "broadcast", &value, &axes)
    }

    fn is_vectorized(&self, value: &Tensor) -> bool {
        value.is_vectorized()
    }

    fn require_values(&self, op: &'static str, value: &Tensor) -> Result<()> {
        if value.is_vectorized() {
            let axes = vectorize::vectorized_axes_text(value.vectorized_axes());
            return Err(ErrorKind::NotVectorizable { op, what: "the operand without size=n", axes }.into());
        }
        if trace::depth() > 0 && value.buffer().is_some() {
            return Err(ErrorKind::NoValues { op, got: value.ty().clone(), hint: SIZE_HINT }.into());
        }
        value.require_buffer(op, SIZE_HINT).map(drop)
    }

    fn true_positions(&mut self, op: &'static str, mask: &Tensor) -> Result<Tensor> {
        let buffer = mask.require_buffer(op, SIZE_HINT)?;
        let Some(memory) = buffer.host()? else {
            // A device reduces the mask to its count, which alone is read.
            let count = self.sum(mask, Axes::All, false)?;
            let count = self.as_type(count, DType::S64)?;
            let memory = count.host_bytes(op)?;
            let count = i64::from_ne_bytes(memory.bytes()[..8].try_into().expect("an s64"));
            return crate::compose::sets::flatnonzero(self, op, mask, Some(count), 0);
        };
        let truths = &memory.bytes()[..mask.ty().size()];
        let count = truths.iter().filter(|&&truth| truth != 0).count();
        let dtype = index_dtype(truths.len() + 1);
        let ty = TensorType::new(dtype, Shape::new(&[count]))?;
        // One more, so that each position can be written before its truth is known.
        let mut bytes = memory::with_capacity(op, ty.byte_size() + dtype.storage_bytes())?;
        bytes.resize(ty.byte_size() + dtype.storage_bytes(), 0);
        if dtype == DType::S32 {
            write_positions(truths, bytes.as_chunks_mut().0, |position| (position as i32).to_ne_bytes());
        } else {
            write_positions(truths, bytes.as_chunks_mut().0, |position| (position as i64).to_ne_bytes());
        }
        bytes.truncate(ty.byte_size());
        let backend = buffer.backend();
        let buffer = backend.from_host(&ty, HostMemory::new(Arc::new(bytes)))?;
        Ok(Tensor::concrete(ty, buffer))
    }

    fn require_labels(
        &self,
        op: &'static str,
        what: &'static str,
        labels: &Tensor,
        of: &TensorType,
        axis: Axis,
    ) -> Result<()> {
        let Some(buffer) = labels.buffer() else { return Ok(()) };
        // A tensor that a definition captures is an input of its program.
        if trace::depth() > 0 || !buffer.backend().checks_positions_eagerly() {
            return Ok(());
        }
        let (dtype, classes) = (labels.ty().dtype, of.shape[axis] as i128);
        let memory = labels.host_bytes(op)?;
        for bytes in memory.bytes().chunks_exact(dtype.storage_bytes()) {
            let label = Scalar::from_bytes(dtype, bytes).value();
            let is_class = match label {
                Number::Int(label) => (0..classes).contains(&label),
                Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => false,
            };
            if !is_class {
                return Err(ErrorKind::Label { op, what, label, axis: axis.index(), got: of.clone() }.into());
            }
        }
        Ok(())
    }

    fn order_vectorized_axes(&mut self, value: Tensor, operands: &[&Arg<Tensor>]) -> Result<Tensor> {
        if value.vectorized_axes().len() < 2 {
            return Ok(value);
        }
        let operands = operands.iter().filter_map(|operand| match operand {
            Arg::Value(tensor) => Some(tensor),
            Arg::Number(_) => None,
        });
        let mut order = vectorize::join("broadcast", operands)?;
        order.retain(|(name, _)| value.vectorized_axes().iter().any(|(known, _)| known == name));
        vectorize::join_into("broadcast", &mut order, value.vectorized_axes())?;
        vectorize::broadcast_vectorized(self, "broadcast", &value, &order)
    }
}

/// The backend that all arguments of a run share, if it is one object. Nothing is copied then, and no default backend
/// is needed.
#[inline]
pub fn common_backend<'a>(tensors: &[&'a Tensor]) -> Option<Cow<'a, Arc<dyn Backend>>> {
    let mut buffers = tensors.iter().filter_map(|tensor| tensor.buffer());
    let first = buffers.next()?;
    let backend = backend_of(first);
    buffers.all(|buffer| buffer.is_on(&backend)).then_some(backend)
}

/// The backend of a buffer, borrowed if possible.
#[inline]
fn backend_of(buffer: &Arc<dyn Buffer>) -> Cow<'_, Arc<dyn Backend>> {
    buffer.backend_ref().map_or_else(|| Cow::Owned(buffer.backend()), Cow::Borrowed)
}

/// Brings the arguments of a run to one backend and returns it. The default backend yields to any other, and any
/// backend yields to one that takes over its tensors. Tensors on other backends are copied.
///
/// # Errors
/// Arguments on two backends of which neither yields, and errors of copying.
pub fn move_to_common_backend(
    op: &'static str,
    tensors: &mut [Tensor],
    default: &Arc<dyn Backend>,
) -> Result<Arc<dyn Backend>> {
    let backend = pick_backend(op, tensors, default)?;
    for tensor in tensors {
        let Some(owner) = tensor.backend() else { continue };
        if !Arc::ptr_eq(&owner, &backend) && !owner.is_same_device(&*backend) {
            let buffer = backend.from_host(tensor.whole(), tensor.host_bytes(op)?)?;
            *tensor = Tensor::concrete(tensor.whole().clone(), buffer);
        }
    }
    Ok(backend)
}

/// The backend of an op on several tensors: one that takes over the others' tensors, else any but the default.
fn pick_backend(
    op: &'static str,
    tensors: &[Tensor],
    default: &Arc<dyn Backend>,
) -> Result<Arc<dyn Backend>> {
    let mut picked: Option<Arc<dyn Backend>> = None;
    for backend in tensors.iter().filter_map(Tensor::backend) {
        match &picked {
            None => picked = Some(backend),
            // The common case, which needs no comparison of devices.
            Some(found) if Arc::ptr_eq(found, &backend) => {}
            Some(found) if found.is_same_device(&*backend) || found.takes_over(&*backend) => {}
            Some(found) if backend.takes_over(&**found) => picked = Some(backend),
            Some(_) if backend.is_same_device(&**default) => {}
            Some(found) if found.is_same_device(&**default) => picked = Some(backend),
            Some(found) => {
                let (left, right) = (found.device_name(), backend.device_name());
                return Err(ErrorKind::BackendConflict { op, left, right }.into());
            }
        }
    }
    Ok(picked.unwrap_or_else(|| default.clone()))
}

/// Truths that are passed over together where none is true.
const TRUTHS: usize = 64;

/// Writes the positions of what is true, without a branch for each, which may be unpredictable. There is room for one
/// position more.
fn write_positions<const N: usize>(truths: &[u8], out: &mut [[u8; N]], bytes: impl Fn(usize) -> [u8; N]) {
    let (mut next, last) = (0, out.len() - 1);
    for (block, truths) in truths.chunks(TRUTHS).enumerate() {
        if truths.iter().fold(0, |any, &truth| any | truth) == 0 {
            continue;
        }
        for (place, &truth) in truths.iter().enumerate() {
            out[next.min(last)] = bytes(block * TRUTHS + place);
            next += usize::from(truth != 0);
        }
    }
}
