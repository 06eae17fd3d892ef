//! Sums of products over indices: any contraction of any number of operands.
//!
//! Indices that one operand alone has are summed out first, and equal indices of one operand select its diagonal. Then
//! pairs are contracted in the order of `path`, each by one [`dot_general`](BuildLinalg::dot_general), or by a
//! product if nothing is summed.

mod parse;
mod path;

use crate::builder::{Arg, BuildElementwise, BuildLinalg, BuildReduce, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Axis, AxisRef, Name, Shape, TensorType};

use super::working_dtype;
use parse::Equation;

/// A value and the index of each of its axes. No index stands twice.
struct Factor<V> {
    value: V,
    indices: Vec<usize>,
}

/// See [`BuildLinalg::einsum`].
///
/// # Errors
/// As the method.
pub fn einsum<B: Builder>(b: &mut B, equation: &str, operands: &[B::V]) -> Result<B::V> {
    let types: Vec<TensorType> = operands.iter().map(|operand| b.ty(operand)).collect();
    let equation = parse::parse(equation, &types)?;
    contract(b, "einsum", operands, &types, &equation)
}

/// The contraction of operands whose axes have these indices: `terms` for each operand, `output` for the result. An
/// axis of size 1 is broadcast.
///
/// # Errors
/// Sizes and names that do not fit.
pub(super) fn contract_indices<B: Builder>(
    b: &mut B,
    op: &'static str,
    operands: &[B::V],
    terms: Vec<Vec<usize>>,
    output: Vec<usize>,
) -> Result<B::V> {
    let types: Vec<TensorType> = operands.iter().map(|operand| b.ty(operand)).collect();
    let equation = Equation::new(op, &types, terms, output)?;
    contract(b, op, operands, &types, &equation)
}

fn contract<B: Builder>(
    b: &mut B,
    op: &'static str,
    operands: &[B::V],
    types: &[TensorType],
    equation: &Equation,
) -> Result<B::V> {
    let names = result_names(op, types, equation)?;
    let dtype = types.iter().map(|ty| ty.dtype).reduce(DType::merge).unwrap_or(DType::F32).to_number();
    let mut distinct_factors = Vec::with_capacity(operands.len());
    for (operand, term) in operands.iter().zip(&equation.terms) {
        distinct_factors.push(distinct(b, operand, term, &equation.sizes)?);
    }
    let sets: Vec<path::Set> = distinct_factors.iter().map(|factor| path::set(&factor.indices)).collect();
    // The indices that only the factor at a position has.
    let alone = |at: usize| -> path::Set {
        let others = sets.iter().enumerate().filter(|&(other, _)| other != at);
        sets[at] & !others.fold(path::set(&equation.output), |union, (_, set)| union | set)
    };
    let sums = (0..operands.len()).filter(|&at| alone(at) != 0).count();
    // One step rounds once in any dtype.
    let steps = sums + operands.len() - 1;
    let working = if dtype.is_float() && steps > 1 { working_dtype(dtype) } else { dtype };
    let mut factors: Vec<Option<Factor<B::V>>> = Vec::with_capacity(2 * operands.len());
    for (at, factor) in distinct_factors.into_iter().enumerate() {
        let factor = Factor { value: b.as_type(factor.value, working)?, ..factor };
        factors.push(Some(sum_out(b, factor, alone(at))?));
    }
    let sets: Vec<path::Set> = factors.iter().flatten().map(|factor| path::set(&factor.indices)).collect();
    let order = path::order(&sets, path::set(&equation.output), &equation.sizes);
    for (step, &(left, right)) in order.iter().enumerate() {
        let pair = (factors[left].take(), factors[right].take());
        let (Some(left), Some(right)) = pair else { unreachable!("a path contracts each factor once") };
        let others = factors.iter().flatten().map(|factor| path::set(&factor.indices));
        let needed = others.fold(path::set(&equation.output), |union, set| union | set);
        let last = step + 1 == order.len();
        factors.push(Some(pairwise(b, left, right, needed, last.then_some(&equation.output[..]))?));
    }
    let Some(result) = factors.pop().flatten() else { unreachable!("a path ends in one factor") };
    let value = permuted(b, result, &equation.output)?;
    let value = b.as_type(value, dtype)?;
    let sizes = equation.output.iter().map(|&index| equation.sizes[index]);
    let value = b.reshape_to(value, Shape::from_axes(sizes.zip(names)))?;
    let operands: Vec<Arg<B::V>> = operands.iter().map(Arg::from).collect();
    b.order_vectorized_axes(value, &operands.iter().collect::<Vec<_>>())
}

/// The names of the result's axes: each index merges the names of the axes that it stands for.
fn result_names(op: &'static str, types: &[TensorType], equation: &Equation) -> Result<Vec<Option<Name>>> {
    let mut names: Vec<Option<Name>> = Vec::with_capacity(equation.output.len());
    for &index in &equation.output {
        let mut merged: Option<(Name, usize)> = None;
        for (term, ty) in equation.terms.iter().zip(types) {
            for (axis, (&other, name)) in term.iter().zip(ty.shape.names()).enumerate() {
                match (name, &merged) {
                    (Some(right), Some((left, left_axis))) if other == index && left != right => {
                        let (left, left_axis, right) = (left.clone(), *left_axis, right.clone());
                        let kind = ErrorKind::NamesConflict { op, left, left_axis, right, right_axis: axis };
                        return Err(kind.into());
                    }
                    (Some(name), None) if other == index => merged = Some((name.clone(), axis)),
                    (Some(_) | None, Some(_) | None) => {}
                }
            }
        }
        let name = merged.map(|(name, _)| name);
        if let Some(name) = &name
            && names.iter().flatten().any(|other| other == name)
        {
            return Err(ErrorKind::NamesRepeated { op, name: name.clone() }.into());
        }
        names.push(name);
    }
    Ok(names)
}

/// The factor of an operand: without names, without axes of size 1 that other operands broadcast, and with the diagonal
/// over axes that have the same index.
fn distinct<B: Builder>(b: &mut B, value: &B::V, term: &[usize], sizes: &[usize]) -> Result<Factor<B::V>> {
    let own = b.ty(value).shape.sizes().to_vec();
    let kept = || (0..term.len()).filter(|&axis| own[axis] == sizes[term[axis]]);
    let kept_sizes: Vec<usize> = kept().map(|axis| own[axis]).collect();
    let mut value = b.reshape_to(value, Shape::new(&kept_sizes))?;
    let mut indices: Vec<usize> = kept().map(|axis| term[axis]).collect();
    let is_repeated = |indices: &[usize], index| indices.iter().filter(|&&other| other == index).count() > 1;
    while let Some(index) = indices.iter().copied().find(|&index| is_repeated(&indices, index)) {
        // The axes of the index come last and are merged; elements of the diagonal have equal distances.
        let (same, others): (Vec<usize>, Vec<usize>) =
            (0..indices.len()).partition(|&axis| indices[axis] == index);
        let (size, count) = (sizes[index], same.len());
        value = transposed(b, value, others.iter().chain(&same).copied())?;
        indices = others.iter().map(|&axis| indices[axis]).collect();
        let mut merged: Vec<usize> = indices.iter().map(|&index| sizes[index]).collect();
        let elements: usize = (0..count).map(|_| size).product();
        let distance: usize =
            (0..count).scan(1, |power, _| Some(std::mem::replace(power, *power * size))).sum();
        merged.push(elements);
        value = b.reshape_to(value, Shape::new(&merged))?;
        value = b.slice_along_axis(value, 0, elements as i64, -1, distance as i64)?;
        indices.push(index);
    }
    Ok(Factor { value, indices })
}

/// The sum over some of the indices.
fn sum_out<B: Builder>(b: &mut B, factor: Factor<B::V>, summed: path::Set) -> Result<Factor<B::V>> {
    let is_summed = |index: usize| summed >> index & 1 == 1;
    let axes: Vec<usize> =
        (0..factor.indices.len()).filter(|&axis| is_summed(factor.indices[axis])).collect();
    if axes.is_empty() {
        return Ok(factor);
    }
    let dtype = b.ty(&factor.value).dtype;
    let sum = b.sum(factor.value, references(axes), false)?;
    let value = b.as_type(sum, dtype)?;
    let indices = factor.indices.into_iter().filter(|&index| !is_summed(index)).collect();
    Ok(Factor { value, indices })
}

/// The product of two factors, summed over the indices that are not needed any more.
fn pairwise<B: Builder>(
    b: &mut B,
    left: Factor<B::V>,
    right: Factor<B::V>,
    needed: path::Set,
    output: Option<&[usize]>,
) -> Result<Factor<B::V>> {
    let is_needed = |index: usize| needed >> index & 1 == 1;
    let split = |own: &Factor<B::V>, other: &Factor<B::V>| -> (Vec<usize>, Vec<usize>) {
        own.indices.iter().copied().partition(|index| other.indices.contains(index))
    };
    let (common, free_left) = split(&left, &right);
    let (_, free_right) = split(&right, &left);
    let (mut batch, summed): (Vec<usize>, Vec<usize>) =
        common.into_iter().partition(|&index| is_needed(index));
    if let Some(output) = output {
        batch = output.iter().copied().filter(|index| batch.contains(index)).collect();
    }
    let joined = |first: &[usize], second: &[usize]| [&batch[..], first, second].concat();
    if summed.is_empty() {
        let indices = output.map_or_else(|| joined(&free_left, &free_right), <[usize]>::to_vec);
        let left = aligned(b, left, &indices)?;
        let right = aligned(b, right, &indices)?;
        return Ok(Factor { value: b.multiply(left, right)?, indices });
    }
    // The factor whose free indices come first in the result is the left one.
    let swap = output.is_some_and(|output| output == joined(&free_right, &free_left));
    let (left, right) = if swap { (right, left) } else { (left, right) };
    let indices = if swap { joined(&free_right, &free_left) } else { joined(&free_left, &free_right) };
    let (left, right) = (batch_first(b, left, &batch)?, batch_first(b, right, &batch)?);
    let axes = |factor: &Factor<B::V>| {
        references(summed.iter().filter_map(|index| factor.indices.iter().position(|other| other == index)))
    };
    let leading = || references(0..batch.len());
    let (contract_left, contract_right) = (axes(&left), axes(&right));
    let value =
        b.dot_general(left.value, contract_left, leading(), right.value, contract_right, leading())?;
    Ok(Factor { value, indices })
}

/// A factor with the axes of some indices in front, in their order.
fn batch_first<B: Builder>(b: &mut B, factor: Factor<B::V>, batch: &[usize]) -> Result<Factor<B::V>> {
    let others = factor.indices.iter().copied().filter(|index| !batch.contains(index));
    let indices: Vec<usize> = batch.iter().copied().chain(others).collect();
    let value = permuted(b, factor, &indices)?;
    Ok(Factor { value, indices })
}

/// The value of a factor with its axes in the order of `indices`, and size 1 where it lacks one.
fn aligned<B: Builder>(b: &mut B, factor: Factor<B::V>, indices: &[usize]) -> Result<B::V> {
    let own: Vec<usize> = indices.iter().copied().filter(|index| factor.indices.contains(index)).collect();
    let has: Vec<bool> = indices.iter().map(|index| own.contains(index)).collect();
    let value = permuted(b, factor, &own)?;
    let shape = b.ty(&value).shape;
    let mut sizes = shape.sizes().iter().copied();
    let sizes: Vec<usize> = has.iter().map(|&has| if has { sizes.next().unwrap_or(1) } else { 1 }).collect();
    b.reshape_to(value, Shape::new(&sizes))
}

/// The value of a factor with its axes in the order of those `indices` that it has.
fn permuted<B: Builder>(b: &mut B, factor: Factor<B::V>, indices: &[usize]) -> Result<B::V> {
    let position = |index: &usize| factor.indices.iter().position(|other| other == index);
    let axes: Vec<usize> = indices.iter().filter_map(position).collect();
    transposed(b, factor.value, axes)
}

fn transposed<B: Builder>(b: &mut B, value: B::V, axes: impl IntoIterator<Item = usize>) -> Result<B::V> {
    b.transpose(value, references(axes))
}

fn references(axes: impl IntoIterator<Item = usize>) -> Vec<AxisRef> {
    axes.into_iter().map(|axis| AxisRef::from(Axis(axis))).collect()
}
