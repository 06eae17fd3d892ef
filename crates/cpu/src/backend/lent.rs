//! Small ops on operands that somebody else keeps, by ways that are as short as they are.

use std::sync::Arc;

use defn_core::backend::{Buffer, Buffers, Lent};
use defn_core::op::Op;
use defn_core::{Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use super::room::Room;
use super::{CpuBackend, Memory, Run, Views, buffer, parallel_over};
use crate::buffer::{CpuBuffer, Storage, Window};
use crate::kernels::elementwise;
use crate::settings;
use crate::view::{View, ViewMut};

/// [`Buffer::run_alike`] for buffers of the CPU.
pub(crate) fn run_alike(
    op: &Op,
    first: &CpuBuffer,
    others: &[&dyn Buffer],
    ty: &TensorType,
) -> Option<Arc<dyn Buffer>> {
    let (name, bytes) = (form::name(op), ty.byte_size());
    settings::check().ok()?;
    let mut windows: SmallVec<[Window; 3]> = SmallVec::new();
    windows.push(first.window(name).ok()?);
    for other in others {
        windows.push(other.as_any().downcast_ref::<CpuBuffer>()?.window(name).ok()?);
    }
    let mut storage = Storage::allocate(name, bytes).ok()?;
    let out = storage.start_mut()?;
    let mut operands: SmallVec<[&[u8]; 3]> = SmallVec::new();
    windows.iter().for_each(|window| operands.push(&window.bytes()[..bytes]));
    // SAFETY: the storage has room for the type, and only this slice reaches it.
    let written = unsafe { std::slice::from_raw_parts_mut(out.cast(), bytes) };
    if !elementwise::alike(op, &operands, ty.dtype, written) {
        return None;
    }
    // SAFETY: kernels write every element of their result.
    Some(buffer(unsafe { Window::new(Arc::new(storage), 0, bytes) }))
}

impl CpuBackend {
    /// [`Backend::run_lent`](defn_core::backend::Backend::run_lent).
    pub(super) fn run_shortly(
        &self,
        op: &Op,
        operands: &[Lent<'_>],
        outputs: &[TensorType],
    ) -> Result<Option<Buffers>> {
        // What gives its operand under another type, and what gives several results, goes the long way.
        let (Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Clip | Op::Reduce { .. } | Op::Dot { .. }, [ty]) =
            (op, outputs)
        else {
            return Ok(None);
        };
        settings::check()?;
        let name = form::name(op);
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
        // SAFETY: the storage was allocated for this type, and only this view and those made of it reach it.
        let out = unsafe { ViewMut::new(ty, start) };
        let par = parallel_over(moved);
        let memory = Memory::Given { operands: &views, results: std::slice::from_ref(&out), over: None };
        self.dispatch(op, Run { room: Room::of(name), par, checked: true, memory }, &|| Ok(()))?;
        // SAFETY: kernels write every element of their result.
        Ok(Some(smallvec![buffer(unsafe { Window::new(Arc::new(storage), 0, bytes) })]))
    }
}
