//! Matrix products: choice of dtype, copies of operands, and scratch memory.

use defn_core::backend::Buffers;
use defn_core::{Axis, DType, Result, TensorType};

use super::OpRun;
use super::scratch_allocator::{Scratch, ScratchAllocator};
use crate::compiler::OneProduct;
use crate::kernels::epilogue::EpilogueFn;
use crate::kernels::linalg::{self, Dot, DotAxes, OperandLayout};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Converts an operand of a dot of `dtype` to the dtype of computation, unless the product reads it as it is, and packs
/// it as the plan requires. `converted` and `packed` own the copies.
fn prepare<'a, 'r: 'a>(
    allocator: ScratchAllocator<'r>,
    mut x: View<'a>,
    dtype: DType,
    (side, is_read): (&OperandLayout, bool),
    scratch_slots: &'a mut [Option<Scratch<'r>>; 2],
    par: Par,
) -> Result<View<'a>> {
    let [converted, packed] = scratch_slots;
    let computed = linalg::compute_dtype(dtype);
    // Integers of a few bits are stored as the bytes in which they are computed.
    if !is_read && (x.ty().dtype != dtype || computed.storage_bytes() != dtype.storage_bytes()) {
        let mut scratch = allocator.scratch(x.ty().with_dtype(computed)?)?;
        allocator.convert(x, dtype, &mut scratch.view_mut(), par);
        // SAFETY: the conversion writes every element.
        x = unsafe { converted.insert(scratch).view() };
    }
    if let Some(pack) = &side.pack {
        let mut scratch = allocator.scratch(x.ty().clone())?;
        allocator.copy(pack, x, &mut scratch.view_mut(), par);
        // SAFETY: the copy writes every element.
        x = unsafe { packed.insert(scratch).view() };
    }
    Ok(x)
}

/// Which operands a product in f32 reads in their own types.
pub(super) fn reads_as_stored(operands: [&TensorType; 2], contract: [&[Axis]; 2], batch: usize) -> [bool; 2] {
    let side = |at: usize| DotAxes { sizes: operands[at].shape.sizes(), contract: contract[at], batch };
    let plan = Dot::new(side(0), side(1), true);
    linalg::reads_narrow(&plan, DType::F32, operands.map(|operand| operand.dtype))
}

impl OpRun<'_> {
    pub(super) fn dot(self, contract_a: &[Axis], contract_b: &[Axis], batch: usize) -> Result<Buffers> {
        let (allocator, epilogue) = (self.allocator, self.epilogue);
        let dtype = self.output(0).dtype;
        self.run_with_scratch(|views, out, par| {
            // The kernels for floats read matrices in any layout; the loop for integers reads rows only.
            let [a, b] = [(0, contract_a), (1, contract_b)].map(|(index, contract)| DotAxes {
                sizes: views[index].ty().shape.sizes(),
                contract,
                batch,
            });
            let plan = Dot::new(a, b, !dtype.is_integer());
            if plan.is_of_vector() {
                let types = [views[0].ty(), views[1].ty()];
                let product = OneProduct::new(types, [contract_a, contract_b], batch, out.ty());
                let mut scratch = allocator.bytes(product.scratch())?;
                if allocator.runs() {
                    product.run([views[0], views[1]], out, &scratch.view_mut(), par);
                }
                debug_assert!(epilogue.is_none());
                return Ok(());
            }
            let computed = linalg::compute_dtype(dtype);
            let mut scratch = allocator.scratch(linalg::dot_scratch(&plan, computed))?;
            let (mut a, mut b) = ([None, None], [None, None]);
            let dtypes = [views[0], views[1]].map(|view| view.ty().dtype);
            let [reads_a, reads_b] = linalg::reads_narrow(&plan, computed, dtypes);
            let a = prepare(allocator, views[0], dtype, (&plan.a, reads_a), &mut a, par)?;
            let b = prepare(allocator, views[1], dtype, (&plan.b, reads_b), &mut b, par)?;
            let mut run = |out: &mut ViewMut<'_>, epilogue: Option<EpilogueFn<'_>>| {
                if allocator.runs() {
                    linalg::dot(&plan, a, b, (out, epilogue), &mut scratch.view_mut(), par);
                }
            };
            if dtype == computed {
                run(out, epilogue);
            } else {
                debug_assert!(epilogue.is_none());
                let mut wide = allocator.scratch(out.ty().with_dtype(computed)?)?;
                run(&mut wide.view_mut(), None);
                // SAFETY: the kernel writes every element.
                allocator.convert(unsafe { wide.view() }, dtype, out, par);
            }
            Ok(())
        })
    }
}
