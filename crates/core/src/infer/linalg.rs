//! Types of products.

use crate::error::{ErrorKind, Result};
use crate::shape::{Axis, Name, Shape, TensorType};

type Side<'a> = (&'a TensorType, &'a [Axis], &'a [Axis]);

/// Batch axes, then the free axes of `a`, then the free axes of `b`.
///
/// Batch axes are 0..n in order on both sides, of equal sizes and not contracted; their names come from `a`.
/// Paired contracted axes have equal sizes. Bools are counted in s32. No name may occur twice in the result.
pub(super) fn dot(a: Side<'_>, b: Side<'_>) -> Result<TensorType> {
    let ((left, contract_a, batch_a), (right, contract_b, batch_b)) = (a, b);
    let refuse = |problem: String, required: &'static str| ErrorKind::DotAxes {
        left: left.clone(),
        right: right.clone(),
        problem,
        required,
    };
    if contract_a.len() != contract_b.len() {
        let problem = format!("{} and {} contracted axes", contract_a.len(), contract_b.len());
        return Err(refuse(problem, "both sides must contract equally many").into());
    }
    if batch_a.len() != batch_b.len() {
        let problem = format!("{} and {} batch axes", batch_a.len(), batch_b.len());
        return Err(refuse(problem, "both sides must have equally many").into());
    }
    for (batch, contract) in [(batch_a, contract_a), (batch_b, contract_b)] {
        if batch.iter().enumerate().any(|(i, axis)| axis.index() != i) {
            let list: Vec<String> = batch.iter().map(Axis::to_string).collect();
            let problem = format!("batch axes [{}]", list.join(", "));
            return Err(refuse(problem, "batch axes must be the first axes in order").into());
        }
        if let Some(axis) = contract.iter().find(|axis| batch.contains(axis)) {
            let problem = format!("axis {axis} is both a batch axis and contracted");
            return Err(refuse(problem, "it can only be one of them").into());
        }
    }
    let pairs = [(contract_a, contract_b, "contracted"), (batch_a, batch_b, "batch axes")];
    for (axes_a, axes_b, what) in pairs {
        for (&i, &j) in axes_a.iter().zip(axes_b) {
            if left.shape[i] != right.shape[j] {
                return Err(ErrorKind::DotSizes {
                    op: "dot",
                    left: left.clone(),
                    left_axis: i.index(),
                    right: right.clone(),
                    right_axis: j.index(),
                    what,
                }
                .into());
            }
        }
    }
    let rest = |(ty, contract, batch): Side<'_>| -> Vec<(usize, Option<Name>)> {
        let free_axes = ty.shape.axes().filter(|axis| !contract.contains(axis) && !batch.contains(axis));
        free_axes.map(|axis| (ty.shape[axis], ty.shape.name(axis).cloned())).collect()
    };
    let batch = batch_a.iter().map(|&axis| (left.shape[axis], left.shape.name(axis).cloned()));
    let shape = Shape::from_axes(batch.chain(rest(a)).chain(rest(b)));
    let mut names: Vec<&Name> = shape.names().flatten().collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(ErrorKind::NamesRepeated { op: "dot", name: pair[0].clone() }.into());
    }
    TensorType::new(left.dtype.merge(right.dtype).to_number(), shape)
}
