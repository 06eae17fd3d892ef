//! One op while it runs: the memory of its operands and results, and how a kernel gets them.

use std::any::Any;
use std::sync::Arc;

use defn_core::backend::{Buffers, Operand};
use defn_core::op::{Literal, Op};
use defn_core::{ErrorKind, Result, TensorType};
use smallvec::{SmallVec, smallvec};

use super::scratch_allocator::ScratchAllocator;
use super::{buffer, outside, window};
use crate::buffer::{CpuBuffer, Storage, Window};
use crate::compiler::run_elementwise;
use crate::kernels::epilogue::EpilogueFn;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The operands of one op, as kernels take them.
pub(crate) type Views<'a> = SmallVec<[View<'a>; 6]>;

/// One op while it runs.
pub(super) struct OpRun<'a> {
    pub(super) allocator: ScratchAllocator<'a>,
    pub(super) par: Par,
    pub(super) checked: bool,
    pub(super) memory: Memory<'a>,
    /// The epilogue, called on complete elements of the only result; None for ops that
    /// [`supports_epilogue`](crate::backend::supports_epilogue) rejects.
    pub(super) epilogue: Option<EpilogueFn<'a>>,
}

/// The memory of operands and results.
pub(super) enum Memory<'a> {
    /// Operands that may have other owners. Results are written to new memory or to the memory of an operand without
    /// other owners, or they share an operand's memory.
    Owned { operands: &'a mut [Operand], outputs: &'a [TensorType] },
    /// The caller has chosen the memory, as in [`run_into`](crate::backend::run_into).
    Planned { operands: &'a [View<'a>], results: &'a [ViewMut<'a>], aliased_operand: Option<usize> },
}

impl<'a> OpRun<'a> {
    /// The type of an operand.
    pub(super) fn operand(&self, index: usize) -> &TensorType {
        match &self.memory {
            Memory::Owned { operands, .. } => &operands[index].ty,
            Memory::Planned { operands, .. } => operands[index].ty(),
        }
    }

    /// The type of a result.
    pub(super) fn output(&self, index: usize) -> &'a TensorType {
        match &self.memory {
            Memory::Owned { outputs, .. } => &outputs[index],
            Memory::Planned { results, .. } => results[index].ty(),
        }
    }

    /// Runs a kernel that needs no workspace, into new memory or the caller's. For ops of one output.
    pub(super) fn fresh(
        self,
        kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        self.in_place(&[], kernel)
    }

    /// Runs a kernel that needs no workspace, with the aliasing of [`OpRun::run_with_scratch_in_place`].
    pub(super) fn in_place(
        self,
        candidates: &[usize],
        kernel: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        if self.allocator.runs() {
            self.run_with_scratch_in_place(candidates, kernel)
        } else {
            Ok(Buffers::new())
        }
    }

    /// Runs `work`, which calls kernels and takes workspace, into new memory or the caller's. For ops of one output.
    pub(super) fn run_with_scratch(
        self,
        work: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        self.run_with_scratch_in_place(&[], work)
    }

    /// Runs `work`, which calls kernels and takes workspace, in the caller's memory if given, else in that of the first
    /// candidate operand of the result's size and element width without other owners, else in new memory.
    pub(super) fn run_with_scratch_in_place(
        self,
        candidates: &[usize],
        work: impl FnOnce(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let mut work = Some(work);
        // Many ops have work of their own; what finds their memory is compiled once.
        self.run_in_memory(candidates, &mut |views, out, par| {
            let work = work.take().expect("work is done once");
            work(views, out, par)
        })
    }

    fn run_in_memory(
        self,
        candidates: &[usize],
        work: &mut dyn FnMut(&[View<'_>], &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let op = self.allocator.op;
        let (operands, ty) = match self.memory {
            Memory::Planned { operands, results, aliased_operand } => {
                let [result] = results else { unreachable!("{op} has one output") };
                // SAFETY: the caller's memory is for this type, and only this view and those derived from it access it.
                let mut out = unsafe { ViewMut::new(result.ty(), result.start()) };
                let Some(aliased_operand) = aliased_operand else {
                    work(operands, &mut out, self.par)?;
                    return Ok(Buffers::new());
                };
                assert!(candidates.contains(&aliased_operand), "{op} writes over operand {aliased_operand}");
                let lies_there = |(index, view): (usize, &View<'_>)| {
                    let is_aliased = view.start() == out.start().cast_const() && candidates.contains(&index);
                    index == aliased_operand || is_aliased && fits(view.ty(), out.ty())
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
            Memory::Owned { operands, outputs } => {
                let [ty] = outputs else { unreachable!("{op} has one output") };
                (operands, ty)
            }
        };
        let mut reused = None;
        for &index in candidates {
            if fits(&operands[index].ty, ty)
                && let Some((storage, offset)) = take(op, &mut operands[index])?
            {
                reused = Some((index, storage, offset));
                break;
            }
        }
        let aliased_operand = reused.as_ref().map(|(index, _, _)| *index);
        let windows: SmallVec<[Option<Window>; 3]> = operands
            .iter()
            .enumerate()
            .map(|(i, operand)| (Some(i) != aliased_operand).then(|| window(op, operand)).transpose())
            .collect::<Result<_>>()?;
        let (mut storage, offset) = match reused {
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

    /// As [`OpRun::run_with_scratch`], for several results.
    pub(super) fn run_with_scratch_multi(
        self,
        work: impl FnOnce(&[View<'_>], &mut [ViewMut<'_>], Par) -> Result<()>,
    ) -> Result<Buffers> {
        let op = self.allocator.op;
        match self.memory {
            Memory::Planned { operands, results, aliased_operand } => {
                assert!(aliased_operand.is_none(), "{op} writes over no operand");
                let mut outs: SmallVec<[ViewMut<'_>; 3]> = results
                    .iter()
                    // SAFETY: the caller's memory is for these types, and only these views and those derived from them
                    // access it.
                    .map(|result| unsafe { ViewMut::new(result.ty(), result.start()) })
                    .collect();
                work(operands, &mut outs, self.par)?;
                Ok(Buffers::new())
            }
            Memory::Owned { operands, outputs } => {
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
    pub(super) fn share(self) -> Result<Buffers> {
        match &self.memory {
            Memory::Owned { operands, .. } => Ok(smallvec![buffer(window(self.allocator.op, &operands[0])?)]),
            Memory::Planned { aliased_operand: Some(0), .. } => Ok(Buffers::new()),
            Memory::Planned { .. } => self.fresh(|views, out, par| {
                copy_bytes(views[0].bytes(), out, par);
                Ok(())
            }),
        }
    }

    /// Writes the elements of a literal.
    pub(super) fn literal(self, literal: &Literal) -> Result<Buffers> {
        self.fresh(|_, out, par| {
            if literal.ty().dtype.bits() < 8 {
                let whole = outside::whole_bytes(literal.ty())?;
                let op = Op::AsType { dtype: out.ty().dtype };
                run_elementwise(&op, &[View::new(&whole, literal.bytes())], out, par);
                return Ok(());
            }
            copy_bytes(literal.bytes(), out, par);
            Ok(())
        })
    }

    /// Returns the error that the backend does not run the op.
    pub(super) fn refuse(self, why: &str) -> Result<Buffers> {
        let backend = "cpu".to_owned();
        Err(ErrorKind::BackendRefused { op: self.allocator.op, backend, why: why.to_owned() }.into())
    }
}

/// Whether an operand has the number and width of the result's elements.
pub(super) fn fits(operand: &TensorType, result: &TensorType) -> bool {
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
