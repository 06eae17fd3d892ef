//! Fast paths for small ops on borrowed operands.
//!
//! A fast path locks its operands instead of sharing their memory, and its result is memory that is shared only on
//! request (`Slot::Own` of the buffers). Each reference count that several threads change costs as much as the
//! arithmetic of a small op.

use std::sync::Arc;

use defn_core::backend::{BorrowedOperand, Buffer, Buffers, SameDtypeOperand};
use defn_core::op::Op;
use defn_core::{DType, Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use super::scratch_allocator::ScratchAllocator;
use super::{CpuBackend, Memory, OpRun, Views, buffer, filled, parallel_over};
use crate::buffer::{CpuBuffer, LockedBytes, Storage, Window};
use crate::kernels::elementwise::{self, TileOperand};
use crate::kernels::{TILE, is_computed_as_stored};
use crate::modes::DefaultModes;
use crate::par::interruptible;
use crate::settings;
use crate::view::{View, ViewMut};

/// [`Buffer::run_same_dtype`](defn_core::backend::Buffer::run_alike) for buffers of the CPU.
pub(crate) fn run_same_dtype(
    op: &Op,
    operands: &[SameDtypeOperand<'_>],
    ty: &TensorType,
    to: DType,
) -> Option<Arc<dyn Buffer>> {
    settings::check().ok()?;
    let _modes = DefaultModes::new();
    let (size, dtype) = (ty.size(), ty.dtype);
    if size > TILE || !is_computed_as_stored(dtype) {
        return None;
    }
    let (bytes, result_bytes) = (size * dtype.storage_bytes(), size * to.storage_bytes());
    // An error here is dropped: the general path reports it.
    let mut storage = Storage::allocate("at_once", result_bytes).ok()?;
    // SAFETY: the storage has this size, and only this slice accesses it.
    let out = unsafe { std::slice::from_raw_parts_mut(storage.start_mut()?.cast(), result_bytes) };
    match operands {
        [SameDtypeOperand::Elements(x)] => {
            let x = locked(*x)?;
            elementwise::same_dtype_fast_path(op, &[elements_of(&x, bytes)?], dtype, out);
        }
        // The lock of one buffer is taken only once.
        [SameDtypeOperand::Elements(a), SameDtypeOperand::Elements(b)] if std::ptr::addr_eq(*a, *b) => {
            let x = locked(*a)?;
            elementwise::same_dtype_fast_path(
                op,
                &[elements_of(&x, bytes)?, elements_of(&x, bytes)?],
                dtype,
                out,
            );
        }
        [SameDtypeOperand::Elements(a), SameDtypeOperand::Elements(b)] => {
            let (a, b) = (locked(*a)?, locked(*b)?);
            elementwise::same_dtype_fast_path(
                op,
                &[elements_of(&a, bytes)?, elements_of(&b, bytes)?],
                dtype,
                out,
            );
        }
        [SameDtypeOperand::Elements(a), SameDtypeOperand::Same(b)] => {
            let a = locked(*a)?;
            elementwise::same_dtype_fast_path(
                op,
                &[elements_of(&a, bytes)?, TileOperand::Same(*b)],
                dtype,
                out,
            );
        }
        [SameDtypeOperand::Same(a), SameDtypeOperand::Elements(b)] => {
            let b = locked(*b)?;
            elementwise::same_dtype_fast_path(
                op,
                &[TileOperand::Same(*a), elements_of(&b, bytes)?],
                dtype,
                out,
            );
        }
        [..] => return None,
    }
    // SAFETY: kernels write every element of their result.
    Some(unsafe { filled(storage) })
}

/// Locks the bytes of an operand while the op runs; None for another backend's buffer, or where another thread has the
/// lock.
fn locked(buffer: &dyn Buffer) -> Option<LockedBytes<'_>> {
    buffer.as_any().downcast_ref::<CpuBuffer>()?.lock_bytes()
}

fn elements_of<'h>(locked: &'h LockedBytes<'_>, bytes: usize) -> Option<TileOperand<'h>> {
    locked.bytes()?.get(..bytes).map(TileOperand::Elements)
}

impl CpuBackend {
    /// [`Backend::run_lent`](defn_core::backend::Backend::run_lent).
    pub(super) fn run_borrowed(
        &self,
        op: &Op,
        operands: &[BorrowedOperand<'_>],
        outputs: &[TensorType],
    ) -> Result<Option<Buffers>> {
        let name = form::name(op);
        if let (Op::Reshape { .. } | Op::Squeeze { .. }, [operand]) = (op, operands) {
            settings::check()?;
            let own = operand.buffer.as_any().downcast_ref::<CpuBuffer>();
            return own.map(|own| Ok(smallvec![buffer(own.window(name)?)])).transpose();
        }
        // Ops that return an operand under another type, and ops with several results, take the general path.
        let (
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Clip
            | Op::Concatenate { .. }
            | Op::Stack { .. }
            | Op::Reduce { .. }
            | Op::Dot { .. },
            [ty],
        ) = (op, outputs)
        else {
            return Ok(None);
        };
        settings::check()?;
        let mut windows: SmallVec<[Window; 3]> = SmallVec::new();
        for operand in operands {
            let Some(own) = operand.buffer.as_any().downcast_ref::<CpuBuffer>() else { return Ok(None) };
            windows.push(own.window(name)?);
        }
        let (mut views, bytes) = (Views::new(), ty.byte_size());
        let mut moved = bytes;
        for (operand, window) in operands.iter().zip(&windows) {
            moved += window.bytes().len();
            views.push(View::new(operand.ty, window.bytes()));
        }
        let mut storage = Storage::allocate(name, bytes)?;
        let start = storage.start_mut().expect("allocated memory is ours");
        // SAFETY: the storage was allocated for this type, and only this view and those derived from it access it.
        let out = unsafe { ViewMut::new(ty, start) };
        let par = parallel_over(moved);
        let memory =
            Memory::Planned { operands: &views, results: std::slice::from_ref(&out), aliased_operand: None };
        let run = OpRun { allocator: ScratchAllocator::of(name), par, checked: true, memory, epilogue: None };
        interruptible(|| self.dispatch(op, run, &|| Ok(())))?;
        // SAFETY: kernels write every element of their result.
        Ok(Some(smallvec![unsafe { filled(storage) }]))
    }
}
