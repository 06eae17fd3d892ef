//! How the ops that move or fold elements run: what they share, what they need meanwhile, which kernel.

use std::sync::Arc;

use defn_core::backend::Buffers;
use defn_core::op::{ArgOp, CumulativeOp, Padding, ReduceOp, Starts, TieBreak};
use defn_core::{Axis, DType, Number, Result, Scalar, TensorType};
use smallvec::{SmallVec, smallvec};

use super::{Run, buffer, window};
use crate::buffer::{Storage, Window};
use crate::kernels::linalg::{self, Dot, DotAxes, Side};
use crate::kernels::reduce;
use crate::kernels::shape::{self, StridedCopy, gather, scatter};
use crate::par::Par;
use crate::view::{View, ViewMut};

type Sizes = SmallVec<[usize; 6]>;

/// Memory that a kernel needs while it runs.
pub(super) struct Scratch {
    ty: TensorType,
    storage: Storage,
}

impl Scratch {
    /// Room for the elements of `ty`.
    pub(super) fn new(op: &'static str, ty: TensorType) -> Result<Scratch> {
        let storage = Storage::allocate(op, ty.byte_size())?;
        Ok(Scratch { ty, storage })
    }

    /// The elements of an operand as those of another dtype.
    pub(super) fn converted(op: &'static str, x: View<'_>, dtype: DType, par: Par) -> Result<Scratch> {
        let mut scratch = Scratch::new(op, x.ty().with_dtype(dtype)?)?;
        shape::convert(x, dtype, &mut scratch.view_mut(), par);
        Ok(scratch)
    }

    /// Element type and shape.
    pub(super) fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The room, to be written.
    pub(super) fn view_mut(&mut self) -> ViewMut<'_> {
        let start = self.storage.start_mut().expect("allocated memory is ours");
        // SAFETY: it was allocated for the type, and the storage is borrowed while the view lives.
        unsafe { ViewMut::new(&self.ty, start) }
    }

    /// The elements.
    ///
    /// # Safety
    /// All of them were written.
    pub(super) unsafe fn view(&self) -> View<'_> {
        // SAFETY: it was allocated for the type; the caller promises that the bytes are initialised.
        let bytes = unsafe { std::slice::from_raw_parts(self.storage.start(), self.ty.byte_size()) };
        View::new(&self.ty, bytes)
    }

    /// The element type.
    pub(super) fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The elements to be kept.
    ///
    /// # Safety
    /// All of them were written.
    pub(super) unsafe fn into_window(self) -> Window {
        let bytes = self.ty.byte_size();
        // SAFETY: as the caller promises; nobody else holds the storage, so that nobody writes it any more.
        unsafe { Window::new(Arc::new(self.storage), 0, bytes) }
    }
}

/// Copies an operand to its place in the result, by way of the result's dtype where its own is another.
fn put(op: &'static str, plan: &StridedCopy, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let dtype = out.ty().dtype;
    if x.ty().dtype == dtype {
        shape::copy(plan, x, out, par);
    } else {
        let scratch = Scratch::converted(op, x, dtype, par)?;
        // SAFETY: the conversion writes every element.
        shape::copy(plan, unsafe { scratch.view() }, out, par);
    }
    Ok(())
}

/// Where a slice of `lengths` begins: as the program says, or as scalar operands do, moved into range.
fn starts_of(starts: &Starts, dynamic: &[View<'_>], lengths: &[usize], sizes: &[usize]) -> Sizes {
    match starts {
        Starts::Static(starts) => starts.clone(),
        Starts::Dynamic => {
            let numbers = dynamic.iter().map(|x| match Scalar::from_bytes(x.ty().dtype, x.bytes()).value() {
                Number::Int(start) => start,
                Number::Float(_) | Number::Complex(_) => {
                    unreachable!("starts are integers, and not {}", x.ty())
                }
            });
            gather::clamp_starts(numbers, lengths, sizes)
        }
    }
}

impl Run<'_> {
    fn sizes(&self) -> &[usize] {
        self.operands[0].ty.shape.sizes()
    }

    fn result(&self) -> &[usize] {
        self.outputs[0].shape.sizes()
    }

    pub(super) fn broadcast(self, axes: &[Axis]) -> Result<Buffers> {
        let plan = gather::broadcast(self.sizes(), self.result(), axes);
        self.gather(&plan)
    }

    pub(super) fn transpose(self, axes: &[Axis]) -> Result<Buffers> {
        let plan = gather::transpose(self.sizes(), axes);
        self.gather(&plan)
    }

    pub(super) fn reverse(self, axes: &[Axis]) -> Result<Buffers> {
        let plan = gather::reverse(self.sizes(), axes);
        self.gather(&plan)
    }

    pub(super) fn slice(self, starts: &Starts, lengths: &[usize], strides: &[usize]) -> Result<Buffers> {
        let windows = self.windows()?;
        let dynamic: SmallVec<[View<'_>; 3]> = self.operands[1..]
            .iter()
            .zip(&windows[1..])
            .map(|(operand, window)| View::new(&operand.ty, window.bytes()))
            .collect();
        let starts = starts_of(starts, &dynamic, lengths, self.sizes());
        let plan = gather::slice(self.sizes(), &starts, strides, self.result());
        drop(dynamic);
        self.gather(&plan)
    }

    /// Makes one copy of the first operand, of the result's dtype, that fills the result; or none, where the
    /// elements lie as they should.
    fn gather(self, plan: &StridedCopy) -> Result<Buffers> {
        let ty = &self.outputs[0];
        if let Some(first) = plan.shared() {
            let whole = window(self.op, &self.operands[0])?;
            let part = whole.part(first * ty.dtype.storage_bytes(), ty.byte_size());
            return Ok(smallvec![buffer(part)]);
        }
        self.fresh(|views, out, par| {
            shape::copy(plan, views[0], out, par);
            Ok(())
        })
    }

    pub(super) fn pad(self, config: &[Padding]) -> Result<Buffers> {
        let op = self.op;
        let plan = scatter::pad(self.sizes(), config, self.result());
        let border = scatter::border(self.sizes(), config, self.result());
        self.fresh(|views, out, par| {
            if plan.len() < out.ty().size() {
                let value = Scratch::converted(op, views[1], out.ty().dtype, par)?;
                // SAFETY: the conversion writes every element.
                let value = unsafe { value.view() };
                match border {
                    Some(plans) => plans.iter().for_each(|plan| shape::copy(plan, value, out, par)),
                    None => shape::fill(value, out, par),
                }
            }
            put(op, &plan, views[0], out, par)
        })
    }

    pub(super) fn concatenate(self, axis: Axis) -> Result<Buffers> {
        let op = self.op;
        let (outer, inner) = self.result().split_at(axis.index());
        let rows = shape::Joined { count: outer.iter().product(), len: inner.iter().product() };
        self.fresh(|views, out, par| {
            if rows.are_long(out.ty().dtype) && views.iter().all(|x| x.ty().dtype == out.ty().dtype) {
                shape::join(rows, views, out, par);
                return Ok(());
            }
            let mut start = 0;
            for x in views {
                let shape = &x.ty().shape;
                let plan = scatter::concatenate(shape.sizes(), axis, start, out.ty().shape.sizes());
                put(op, &plan, *x, out, par)?;
                start += shape[axis];
            }
            Ok(())
        })
    }

    pub(super) fn stack(self, axis: usize) -> Result<Buffers> {
        let op = self.op;
        self.fresh(|views, out, par| {
            for (index, x) in views.iter().enumerate() {
                let plan = scatter::stack(x.ty().shape.sizes(), axis, index, out.ty().shape.sizes());
                put(op, &plan, *x, out, par)?;
            }
            Ok(())
        })
    }

    pub(super) fn put_slice(self, starts: &Starts) -> Result<Buffers> {
        let op = self.op;
        // Only elements of the result's dtype can stay where they are.
        let candidates: &[usize] =
            if self.operands[0].ty.dtype == self.outputs[0].dtype { &[0] } else { &[] };
        self.in_place(candidates, |views, out, par| {
            let (x, update) = (views[0], views[1]);
            let (sizes, lengths) = (out.ty().shape.sizes(), update.ty().shape.sizes());
            let starts = starts_of(starts, &views[2..], lengths, sizes);
            if !x.is_aliased() {
                shape::convert(x, out.ty().dtype, out, par);
            }
            put(op, &scatter::put_slice(lengths, &starts, sizes), update, out, par)
        })
    }

    pub(super) fn reduce(self, reduce_op: ReduceOp, axes: &[Axis]) -> Result<Buffers> {
        let need = reduce::reduce_scratch(&self.operands[0].ty, axes, &self.outputs[0]);
        let mut scratch = Scratch::new(self.op, need)?;
        self.fresh(|views, out, par| {
            reduce::reduce(reduce_op, views[0], axes, out, &mut scratch.view_mut(), par);
            Ok(())
        })
    }

    pub(super) fn arg_reduce(self, which: (ArgOp, TieBreak), axis: Option<Axis>) -> Result<Buffers> {
        let mut scratch = Scratch::new(self.op, reduce::arg_scratch(&self.operands[0].ty, axis))?;
        self.fresh(|views, out, par| {
            reduce::arg_reduce(which, views[0], axis, out, &mut scratch.view_mut(), par);
            Ok(())
        })
    }

    pub(super) fn cumulative(self, scan: CumulativeOp, axis: Axis, reverse: bool) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        // Small floats are rounded once at each place, and not what is carried on.
        let computed = linalg::compute_dtype(dtype);
        self.fresh(|views, out, par| {
            if computed == dtype {
                reduce::scan(scan, views[0], axis.index(), reverse, out, par);
                return Ok(());
            }
            let wide = Scratch::converted(op, views[0], computed, par)?;
            let mut scanned = Scratch::new(op, out.ty().with_dtype(computed)?)?;
            // SAFETY: the conversion writes every element.
            reduce::scan(scan, unsafe { wide.view() }, axis.index(), reverse, &mut scanned.view_mut(), par);
            // SAFETY: the scan writes every element.
            shape::convert(unsafe { scanned.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn dot(self, contract_a: &[Axis], contract_b: &[Axis], batch: usize) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        // Matrices of floats are taken as they lie; the loop for integers takes them by rows only.
        let axes = |index: usize, contract| {
            let sizes = self.operands[index].ty.shape.sizes();
            DotAxes { sizes, contract, batch }
        };
        let plan = Dot::new(axes(0, contract_a), axes(1, contract_b), !dtype.is_integer());
        let computed = linalg::compute_dtype(dtype);
        let mut scratch = Scratch::new(op, linalg::dot_scratch(&plan, computed))?;
        self.fresh(|views, out, par| {
            let (mut a, mut b) = ([None, None], [None, None]);
            let a = prepare(op, views[0], dtype, &plan.a, &mut a, par)?;
            let b = prepare(op, views[1], dtype, &plan.b, &mut b, par)?;
            let scratch = &mut scratch.view_mut();
            if dtype == computed {
                linalg::dot(&plan, a, b, out, scratch, par);
            } else {
                let mut wide = Scratch::new(op, out.ty().with_dtype(computed)?)?;
                linalg::dot(&plan, a, b, &mut wide.view_mut(), scratch, par);
                // SAFETY: the kernel writes every element.
                shape::convert(unsafe { wide.view() }, dtype, out, par);
            }
            Ok(())
        })
    }
}

/// An operand of a dot of `dtype`, converted to what that is computed in and moved to where the plan expects its
/// elements; `held` keeps what that takes.
fn prepare<'a>(
    op: &'static str,
    mut x: View<'a>,
    dtype: DType,
    side: &Side,
    held: &'a mut [Option<Scratch>; 2],
    par: Par,
) -> Result<View<'a>> {
    let [converted, packed] = held;
    let computed = linalg::compute_dtype(dtype);
    // Integers of a few bits lie as the bytes in which they are computed.
    if x.ty().dtype != dtype || computed.storage_bytes() != dtype.storage_bytes() {
        let mut scratch = Scratch::new(op, x.ty().with_dtype(computed)?)?;
        shape::convert(x, dtype, &mut scratch.view_mut(), par);
        // SAFETY: the conversion writes every element.
        x = unsafe { converted.insert(scratch).view() };
    }
    if let Some(pack) = &side.pack {
        let mut scratch = Scratch::new(op, x.ty().clone())?;
        shape::copy(pack, x, &mut scratch.view_mut(), par);
        // SAFETY: the copy writes every element.
        x = unsafe { packed.insert(scratch).view() };
    }
    Ok(x)
}
