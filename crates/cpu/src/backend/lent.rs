//! Small ops on operands that somebody else keeps, by ways that are as short as they are.

use std::sync::Arc;

use defn_core::backend::{Alike, Buffer, Buffers, Lent};
use defn_core::op::Op;
use defn_core::{Result, TensorType, form};
use smallvec::{SmallVec, smallvec};

use super::room::Room;
use super::{CpuBackend, Memory, Run, Views, buffer, parallel_over};
use crate::buffer::{CpuBuffer, Storage, Window};
use crate::kernels::elementwise::{self, Given};
use crate::kernels::{TILE, is_computed_as_it_lies};
use crate::settings;
use crate::view::{View, ViewMut};

/// [`Buffer::run_alike`](defn_core::backend::Buffer::run_alike) for buffers of the CPU.
pub(crate) fn run_alike(op: &Op, operands: &[Alike<'_>], ty: &TensorType) -> Option<Arc<dyn Buffer>> {
    // Nobody is told what fails here.
    let (name, bytes) = ("at_once", ty.byte_size());
    settings::check().ok()?;
    if ty.size() > TILE || !is_computed_as_it_lies(ty.dtype) {
        return None;
    }
    let mut windows: SmallVec<[Window; 2]> = SmallVec::new();
    for operand in operands {
        if let Alike::Elements(buffer) = operand {
            windows.push(buffer.as_any().downcast_ref::<CpuBuffer>()?.window(name).ok()?);
        }
    }
    let (mut given, mut held) = (SmallVec::<[Given<'_>; 2]>::new(), windows.iter());
    for operand in operands {
        given.push(match operand {
            Alike::Elements(_) => Given::Elements(held.next()?.bytes().get(..bytes)?),
            Alike::Same(scalar) => Given::Same(*scalar),
        });
    }
    let mut storage = Storage::allocate(name, bytes).ok()?;
    // SAFETY: the storage has room for the type, and only this slice reaches it.
    let out = unsafe { std::slice::from_raw_parts_mut(storage.start_mut()?.cast(), bytes) };
    elementwise::alike(op, &given, ty.dtype, out);
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
