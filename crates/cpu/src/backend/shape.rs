//! Ops that move elements: when they share their operand's memory, and with which kernel they copy.

use defn_core::backend::Buffers;
use defn_core::op::{Padding, Starts};
use defn_core::shape::Sizes;
use defn_core::{Axis, Number, Result, Scalar, TensorType};
use smallvec::{SmallVec, smallvec};

use super::scratch_allocator::ScratchAllocator;
use super::{Memory, OpRun, Views, buffer, window};
use crate::buffer::Window;
use crate::kernels::shape::{self, StridedCopy, gather, scatter};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Copies an operand into the result, converted first if its dtype differs.
fn put(
    allocator: ScratchAllocator<'_>,
    plan: &StridedCopy,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) -> Result<()> {
    let dtype = out.ty().dtype;
    if x.ty().dtype == dtype {
        allocator.copy(plan, x, out, par);
    } else {
        let scratch = allocator.converted(x, dtype, par)?;
        // SAFETY: the conversion writes every element.
        allocator.copy(plan, unsafe { scratch.view() }, out, par);
    }
    Ok(())
}

/// The start of a window of `lengths` in `x`: static, or from scalar operands. It is clamped into range; if `checked`,
/// one out of range is an error.
fn starts_of(
    allocator: ScratchAllocator<'_>,
    starts: &Starts,
    dynamic: &[View<'_>],
    lengths: &[usize],
    x: &TensorType,
    checked: bool,
) -> Result<Sizes> {
    let number = |x: &View<'_>| match Scalar::from_bytes(x.ty().dtype, x.bytes()).value() {
        Number::Int(start) => start,
        Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
            unreachable!("starts are integers, and not {}", x.ty())
        }
    };
    match starts {
        Starts::Static(starts) => Ok(starts.clone()),
        // The start of a slice does not affect the memory needed.
        Starts::Dynamic | Starts::FromEnd if !allocator.runs() => Ok(SmallVec::from_elem(0, x.shape.rank())),
        Starts::Dynamic | Starts::FromEnd => {
            let window = x.shape.axes().zip(dynamic).zip(lengths);
            window
                .map(|((axis, start), &length)| {
                    let start = number(start);
                    if checked {
                        starts.require(allocator.op, start, length, (x, axis))?;
                    }
                    Ok(starts.nearest(start, length, x.shape[axis]))
                })
                .collect()
        }
    }
}

impl<'a> OpRun<'a> {
    fn sizes(&self) -> &[usize] {
        self.operand(0).shape.sizes()
    }

    fn result(&self) -> &'a [usize] {
        self.output(0).shape.sizes()
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
        let (op, checked) = (self.allocator.op, self.checked);
        let (x, sizes) = (self.operand(0), self.sizes());
        let starts = match &self.memory {
            Memory::Owned { operands, .. } => {
                let windows: SmallVec<[Window; 3]> =
                    operands[1..].iter().map(|operand| window(op, operand)).collect::<Result<_>>()?;
                let pairs = operands[1..].iter().zip(&windows);
                let dynamic: Views<'_> =
                    pairs.map(|(operand, window)| View::new(&operand.ty, window.bytes())).collect();
                starts_of(self.allocator, starts, &dynamic, lengths, x, checked)?
            }
            Memory::Planned { operands, .. } => {
                starts_of(self.allocator, starts, &operands[1..], lengths, x, checked)?
            }
        };
        let plan = gather::slice(sizes, &starts, strides, self.result());
        self.gather(&plan)
    }

    /// Fills the result by one copy of the first operand, which has the result's dtype; or shares its memory, if the
    /// elements are in place already.
    fn gather(self, plan: &StridedCopy) -> Result<Buffers> {
        if let (Memory::Owned { operands, outputs }, Some(first)) = (&self.memory, plan.shared()) {
            let (whole, ty) = (window(self.allocator.op, &operands[0])?, &outputs[0]);
            let part = whole.part(first * ty.dtype.storage_bytes(), ty.byte_size());
            return Ok(smallvec![buffer(part)]);
        }
        self.fresh(|views, out, par| {
            shape::copy(plan, views[0], out, par);
            Ok(())
        })
    }

    pub(super) fn pad(self, config: &[Padding]) -> Result<Buffers> {
        let allocator = self.allocator;
        let plan = scatter::pad(self.sizes(), config, self.result());
        let border = scatter::border(self.sizes(), config, self.result());
        self.run_with_scratch(|views, out, par| {
            if plan.len() < out.ty().size() {
                let value = allocator.converted(views[1], out.ty().dtype, par)?;
                // SAFETY: the conversion writes every element.
                let value = unsafe { value.view() };
                match border {
                    Some(plans) => plans.iter().for_each(|plan| allocator.copy(plan, value, out, par)),
                    None if allocator.runs() => shape::fill(value, out, par),
                    None => {}
                }
            }
            put(allocator, &plan, views[0], out, par)
        })
    }

    pub(super) fn concatenate(self, axis: Axis) -> Result<Buffers> {
        let allocator = self.allocator;
        let (outer, inner) = self.result().split_at(axis.index());
        let rows = shape::ConcatRows { count: outer.iter().product(), len: inner.iter().product() };
        self.run_with_scratch(|views, out, par| {
            if rows.are_long(out.ty().dtype) && views.iter().all(|x| x.ty().dtype == out.ty().dtype) {
                if allocator.runs() {
                    shape::join(rows, views, out, par);
                }
                return Ok(());
            }
            let mut start = 0;
            for x in views {
                let shape = &x.ty().shape;
                let plan = scatter::concatenate(shape.sizes(), axis, start, out.ty().shape.sizes());
                put(allocator, &plan, *x, out, par)?;
                start += shape[axis];
            }
            Ok(())
        })
    }

    pub(super) fn stack(self, axis: usize) -> Result<Buffers> {
        let allocator = self.allocator;
        self.run_with_scratch(|views, out, par| {
            for (index, x) in views.iter().enumerate() {
                let plan = scatter::stack(x.ty().shape.sizes(), axis, index, out.ty().shape.sizes());
                put(allocator, &plan, *x, out, par)?;
            }
            Ok(())
        })
    }

    pub(super) fn put_slice(self, starts: &Starts) -> Result<Buffers> {
        let (allocator, checked) = (self.allocator, self.checked);
        // Only elements of the result's dtype can stay where they are.
        let candidates: &[usize] = if self.operand(0).dtype == self.output(0).dtype { &[0] } else { &[] };
        self.run_with_scratch_in_place(candidates, |views, out, par| {
            let (x, update) = (views[0], views[1]);
            let (sizes, lengths) = (out.ty().shape.sizes(), update.ty().shape.sizes());
            let starts = starts_of(allocator, starts, &views[2..], lengths, x.ty(), checked)?;
            if !x.is_aliased() {
                allocator.convert(x, out.ty().dtype, out, par);
            }
            put(allocator, &scatter::put_slice(lengths, &starts, sizes), update, out, par)
        })
    }
}
