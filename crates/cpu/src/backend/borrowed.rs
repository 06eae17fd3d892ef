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
use crate::compiler::{InOrder, run_in_order};
use crate::par::interruptible;
use crate::settings;
use crate::view::{View, ViewMut};

/// The most elements of an op of the fast path, which runs on the caller's thread.
const FAST_PATH_ELEMENTS: usize = 1024;

/// [`Buffer::run_same_dtype`] for buffers of the CPU.
pub(crate) fn run_same_dtype(
    op: &Op,
    operands: &[SameDtypeOperand<'_>],
    ty: &TensorType,
    to: DType,
) -> Option<Arc<dyn Buffer>> {
    settings::check().ok()?;
    let (size, dtype) = (ty.size(), ty.dtype);
    if size > FAST_PATH_ELEMENTS {
        return None;
    }
    // An error here is dropped: the general path reports it.
    let mut storage = Storage::allocate("run_same_dtype", size * to.storage_bytes()).ok()?;
    let result = storage.start_mut()?;
    let mut numbers = [[0_u64; 2]; 2];
    let mut locks: [Option<LockedBytes<'_>>; 2] = [None, None];
    let mut in_order = [InOrder { dtype, start: std::ptr::null(), is_repeated: false }; 2];
    let in_order = in_order.get_mut(..operands.len())?;
    for (at, operand) in operands.iter().enumerate() {
        match (operand, operands) {
            // The lock of one buffer is taken only once.
            (SameDtypeOperand::Elements(own), [SameDtypeOperand::Elements(first), _])
                if at == 1 && std::ptr::addr_eq(*own, *first) =>
            {
                in_order[1].start = in_order[0].start;
            }
            (SameDtypeOperand::Elements(own), _) => {
                let lock = locks[at].insert(locked(*own)?);
                in_order[at].start = lock.bytes()?.get(..size * dtype.storage_bytes())?.as_ptr();
            }
            (SameDtypeOperand::Same(number), _) => {
                let (place, bytes) = (&mut numbers[at], number.to_bytes());
                // SAFETY: no element has more than 16 bytes.
                unsafe { place.as_mut_ptr().cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
                in_order[at].start = place.as_ptr().cast();
                in_order[at].is_repeated = true;
            }
        }
    }
    // SAFETY: operands are locked and have so many elements, or are numbers; the result's memory is new.
    unsafe { run_in_order(op, in_order, to, result, size) };
    // SAFETY: ops write every element of their result.
    Some(unsafe { filled(storage) })
}

/// Locks the bytes of an operand while the op runs; None for another backend's buffer, or where another thread has the
/// lock.
fn locked(buffer: &dyn Buffer) -> Option<LockedBytes<'_>> {
    buffer.as_any().downcast_ref::<CpuBuffer>()?.lock_bytes()
}

impl CpuBackend {
    /// [`Backend::run_borrowed`](defn_core::backend::Backend::run_borrowed).
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
