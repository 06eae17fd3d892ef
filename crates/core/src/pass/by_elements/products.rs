//! Products with vectors: sums of element-wise products. An outer product is only the latter.
//!
//! Here a vector has no axis of more than one element that is neither contracted nor of the batch. The axes of the
//! product are those of the other operand, the matrix, so that it is read as it lies.

use smallvec::SmallVec;

use super::super::product_sizes;
use super::{push, shaped};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Value};
use crate::op::{BinaryOp, Op, ReduceOp};
use crate::shape::{Axis, AxisList, Shape, Sizes};

/// One operand.
struct Side<'a> {
    value: Value,
    sizes: Sizes,
    contract: &'a [Axis],
    /// How many axes of the batch it begins with.
    batch: usize,
}

impl Side<'_> {
    /// The axes that are neither of the batch nor contracted.
    fn free(&self) -> impl Iterator<Item = usize> + '_ {
        let contracts = |axis: usize| self.contract.iter().any(|other| other.index() == axis);
        (self.batch..self.sizes.len()).filter(move |&axis| !contracts(axis))
    }

    /// The sizes of its axes, 1 of free ones.
    fn sizes_without_free(&self) -> Sizes {
        let mut sizes = self.sizes.clone();
        self.free().for_each(|axis| sizes[axis] = 1);
        sizes
    }
}

/// The sizes of a product of these operands, if it is one of a vector, or of one pair of elements for each result.
pub(super) fn vector_sizes(graph: &Graph, node: &Node, inputs: &[Value]) -> Option<[usize; 3]> {
    let (Op::Dot { contract_a, batch_a, contract_b, .. }, &[a, b]) = (&node.op, inputs) else { return None };
    let [a, b] = [a, b].map(|value| graph.ty(value).shape.sizes());
    let sizes = product_sizes((a, contract_a), (b, contract_b), batch_a.len());
    let [rows, columns, length] = sizes;
    let is_of_matrices = length > 1 && rows > 1 && columns > 1;
    (node.outputs[0].size() > 0 && length > 0 && !is_of_matrices).then_some(sizes)
}

/// The node as a sum of products, if it is the product of a vector; or as a product of elements, if one pair is all
/// that each sum has.
pub(super) fn written(graph: &mut Graph, node: &Node, inputs: &[Value]) -> Result<Option<Value>> {
    let (Op::Dot { contract_a, batch_a, contract_b, .. }, &[a, b]) = (&node.op, inputs) else {
        return Ok(None);
    };
    let Some([_, columns, length]) = vector_sizes(graph, node, inputs) else { return Ok(None) };
    let ty = &node.outputs[0];
    let side = |value: Value, contract| {
        let sizes = graph.ty(value).shape.sizes().into();
        Side { value, sizes, contract, batch: batch_a.len() }
    };
    let (a, b) = (side(a, contract_a), side(b, contract_b));
    // Sums of narrow floats are rounded once.
    let is_narrow = ty.dtype.is_float() && ty.dtype.bits() < 32;
    let dtype = if is_narrow { DType::F32 } else { ty.dtype };
    let value = if length == 1 {
        let free = |side: &Side<'_>| side.free().map(|axis| side.sizes[axis]).collect::<Sizes>();
        let (of_a, of_b) = (free(&a), free(&b));
        let batch = &a.sizes[..a.batch];
        let one = |count: usize| std::iter::repeat_n(1, count);
        let left: Sizes = batch.iter().chain(&of_a).copied().chain(one(of_b.len())).collect();
        let right: Sizes = batch.iter().copied().chain(one(of_a.len())).chain(of_b).collect();
        let left = factor(graph, a.value, &left, ty.shape.sizes(), dtype)?;
        let right = factor(graph, b.value, &right, ty.shape.sizes(), dtype)?;
        push(graph, Op::Binary(BinaryOp::MULTIPLY), &[left, right])?
    } else {
        let (matrix, vector) = if columns == 1 { (&a, &b) } else { (&b, &a) };
        let whole = factor(graph, matrix.value, &matrix.sizes, &matrix.sizes, dtype)?;
        let vector = in_order_of(graph, matrix, vector)?;
        let along = factor(graph, vector, &matrix.sizes_without_free(), &matrix.sizes, dtype)?;
        let operands = if columns == 1 { [whole, along] } else { [along, whole] };
        let product = push(graph, Op::Binary(BinaryOp::MULTIPLY), &operands)?;
        let mut axes: AxisList = matrix.contract.iter().copied().collect();
        axes.sort_unstable();
        push(graph, Op::Reduce { op: ReduceOp::Sum, axes, keep_axes: false }, &[product])?
    };
    // A sum of narrow integers has more bits.
    let value = if graph.ty(value).dtype == ty.dtype {
        value
    } else {
        push(graph, Op::AsType { dtype: ty.dtype }, &[value])?
    };
    shaped(graph, value, &ty.shape).map(Some)
}

/// A factor of the products: a value in another shape, and of their dtype. Where it is converted, that is done for each
/// product, so that one loop does all.
fn factor(graph: &mut Graph, value: Value, own: &[usize], products: &[usize], dtype: DType) -> Result<Value> {
    let mut value = shaped(graph, value, &Shape::new(own))?;
    if graph.ty(value).dtype == dtype {
        return Ok(value);
    }
    if own != products {
        let shape = Shape::new(products);
        let axes = shape.axes().collect();
        value = push(graph, Op::Broadcast { shape, axes }, &[value])?;
    }
    push(graph, Op::AsType { dtype }, &[value])
}

/// The vector with its contracted axes in the order of the matrix's.
fn in_order_of(graph: &mut Graph, matrix: &Side<'_>, vector: &Side<'_>) -> Result<Value> {
    let mut pairs: SmallVec<[(Axis, Axis); 4]> =
        matrix.contract.iter().copied().zip(vector.contract.iter().copied()).collect();
    pairs.sort_unstable();
    if pairs.is_sorted_by_key(|&(_, own)| own) {
        return Ok(vector.value);
    }
    let along = pairs.iter().map(|&(_, own)| own);
    let axes = (0..vector.batch).map(Axis).chain(along).chain(vector.free().map(Axis)).collect();
    push(graph, Op::Transpose { axes }, &[vector.value])
}
