//! Reductions over axes.

use defn_core::op::ReduceOp;
use defn_core::{Axis, DType, TensorType};

use super::text::{RegionText, Ssa, Ty, Writer, array};
use super::value::compute_type;
use super::{LowerError, Lowering, Operands};
use crate::element::ElementType as E;

/// The result of writing a region that never fails.
pub(super) type RegionResult<T> = std::result::Result<T, LowerError>;

impl Writer {
    /// A reduction by a binary operation.
    pub fn fold(&mut self, x: &Ssa, start: &Ssa, axes: &[usize], name: &'static str) -> Ssa {
        let dims =
            x.dims().iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &size)| size);
        let ty = Ty { element: x.element(), dims: dims.collect() };
        let attributes = format!("dimensions = {}", array(axes));
        let region = combine(x.element(), name);
        let folded: RegionResult<Vec<Ssa>> =
            self.op_with("reduce", &[x, start], &attributes, vec![region], &[ty]);
        folded.expect("an operation of two operands is always written").remove(0)
    }
}

/// A region that combines two elements with an operation.
pub(super) fn combine<'a>(element: E, name: &'static str) -> RegionText<'a, LowerError> {
    let ty = Ty::scalar(element);
    RegionText {
        arguments: vec![ty.clone(), ty.clone()],
        write: Box::new(move |w, arguments| Ok(vec![w.op(name, &[&arguments[0], &arguments[1]], "", ty)])),
    }
}

/// Merges adjacent axes that are all reduced or all kept, and drops axes of size 1. Returns the sizes, and which axes
/// are reduced. Plugins take time that grows with the third power of the number of axes.
fn runs(sizes: &[usize], folded: &[Axis]) -> (Vec<usize>, Vec<usize>) {
    let mut is_folded = vec![false; sizes.len()];
    folded.iter().for_each(|axis| is_folded[axis.index()] = true);
    let mut runs: Vec<(usize, bool)> = Vec::new();
    for (&size, is_folded) in sizes.iter().zip(is_folded).filter(|&(&size, _)| size != 1) {
        match runs.last_mut() {
            // The product of some axes may overflow if another axis has size 0.
            Some((run, of)) if *of == is_folded && run.checked_mul(size).is_some() => *run *= size,
            Some(_) | None => runs.push((size, is_folded)),
        }
    }
    let axes = (0..runs.len()).filter(|&run| runs[run].1).collect();
    (runs.into_iter().map(|(size, _)| size).collect(), axes)
}

impl Lowering {
    pub(super) fn reduce(&mut self, op: ReduceOp, x: &Operands<'_>, axes: &[Axis], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let from = x.types[0].dtype;
        let element = compute_type(out.dtype);
        let (dims, axes) = runs(x.types[0].shape.sizes(), axes);
        let value = w.reshape(&x.values[0], &dims);
        let folded = match op {
            ReduceOp::Sum => {
                let (x, zero) = (w.load_as(&value, from, out.dtype), w.number(element, 0));
                w.fold(&x, &zero, &axes, "add")
            }
            ReduceOp::Product => {
                let (x, one) = (w.load_as(&value, from, out.dtype), w.number(element, 1));
                w.fold(&x, &one, &axes, "multiply")
            }
            ReduceOp::ReduceMax => {
                let x = w.load(&value, from);
                w.reduce_max(&x, from, &axes)
            }
            ReduceOp::ReduceMin => {
                let x = w.load(&value, from);
                w.reduce_min(&x, from, &axes)
            }
            ReduceOp::All => w.reduce_predicate(&value, from, &axes, (1, "and")),
            ReduceOp::Any => w.reduce_predicate(&value, from, &axes, (0, "or")),
        };
        let stored = w.store(&folded, out.dtype);
        w.reshape(&stored, out.shape.sizes())
    }
}

impl Writer {
    /// Whether all elements, or any, are nonzero, as a predicate.
    fn reduce_predicate(
        &mut self,
        x: &Ssa,
        dtype: DType,
        axes: &[usize],
        (start, name): (i32, &'static str),
    ) -> Ssa {
        let x = self.load(x, dtype);
        let (x, start) = (self.truth(&x), self.number(E::Pred, start));
        self.fold(&x, &start, axes, name)
    }
}
