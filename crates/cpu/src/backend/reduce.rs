//! Reductions and scans: choice of dtype, and scratch memory.

use defn_core::backend::Buffers;
use defn_core::op::{CumulativeOp, Op};
use defn_core::{Axis, Result};

use super::OpRun;
use crate::compiler::OneReduction;
use crate::kernels::{linalg, reduce};
use crate::view::{View, ViewMut};

impl OpRun<'_> {
    pub(super) fn reduce(self, op: &Op) -> Result<Buffers> {
        let allocator = self.allocator;
        self.run_with_scratch(|views, out, par| {
            let reduction = OneReduction::new(op, views[0].ty(), out.ty());
            let mut scratch = allocator.bytes(reduction.scratch())?;
            if allocator.runs() {
                reduction.run(views[0], out, &mut scratch.view_mut(), par)?;
            }
            Ok(())
        })
    }

    pub(super) fn cumulative(self, scan: CumulativeOp, axis: Axis, reverse: bool) -> Result<Buffers> {
        let allocator = self.allocator;
        let dtype = self.output(0).dtype;
        // Small floats are rounded once for each output; the carried value is not rounded.
        let computed = linalg::compute_dtype(dtype);
        self.run_with_scratch(|views, out, par| {
            let run = |x: View<'_>, out: &mut ViewMut<'_>| {
                if allocator.runs() {
                    reduce::scan(scan, x, axis.index(), reverse, out, par);
                }
            };
            if computed == dtype && views[0].ty().dtype == dtype {
                run(views[0], out);
                return Ok(());
            }
            let wide = allocator.converted(views[0], computed, par)?;
            let mut scanned = allocator.scratch(out.ty().with_dtype(computed)?)?;
            // SAFETY: the conversion writes every element.
            run(unsafe { wide.view() }, &mut scanned.view_mut());
            // SAFETY: the scan writes every element.
            allocator.convert(unsafe { scanned.view() }, dtype, out, par);
            Ok(())
        })
    }
}
