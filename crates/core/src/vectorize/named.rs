//! Vectorized axes that a mapped function knows by name, and exchanges between the positions along them.
//!
//! An exchange along such an axis becomes plain ops on the whole tensor: no graph has it. Axes of the current
//! mesh are known by name, too; an exchange along several axes goes through them one after the other.

use std::cell::RefCell;
use std::marker::PhantomData;

use super::{NamedAxes, NamedAxis, broadcast_vectorized, position, vectorize, whole_shape};
use crate::builder::{
    BuildCollective, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Ops, Start, check_pairs,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer;
use crate::mesh::{self, MeshError};
use crate::op::{AllReduceOp, Collective, CollectiveOp, DeviceGroups, Op};
use crate::shape::{Axis, AxisRef, Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::trace;

thread_local! {
    static NAMED: RefCell<Vec<NamedAxis>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a named axis known on this thread until it is dropped.
#[derive(Debug)]
#[must_use = "the axis is known until this is dropped"]
pub struct NamedScope {
    /// The stack is thread-local.
    not_send: PhantomData<*const ()>,
}

impl Drop for NamedScope {
    fn drop(&mut self) {
        NAMED.with_borrow_mut(Vec::pop);
    }
}

/// Makes a vectorized axis known by its name to the function that is mapped along it.
///
/// # Errors
/// A name that an enclosing function's axis has, or an axis of the current mesh.
pub fn know(op: &'static str, name: Name, size: usize) -> Result<NamedScope> {
    let is_of_mesh = mesh::current(op).is_ok_and(|mesh| mesh.axes().iter().any(|axis| axis.0 == name));
    if is_of_mesh || size_of(&name).is_some() {
        return Err(ErrorKind::KnownAxis { op, name }.into());
    }
    NAMED.with_borrow_mut(|known| known.push((name, size)));
    Ok(NamedScope { not_send: PhantomData })
}

/// The named axes of the mapped functions that are running on this thread.
pub fn known() -> NamedAxes {
    NAMED.with_borrow(|known| known.iter().cloned().collect())
}

/// Whether these are the named axes of the mapped functions that are running on this thread.
pub fn is_known(axes: &[NamedAxis]) -> bool {
    NAMED.with_borrow(|known| known[..] == *axes)
}

fn size_of(name: &Name) -> Option<usize> {
    NAMED.with_borrow(|known| known.iter().find(|axis| axis.0 == *name).map(|axis| axis.1))
}

/// An axis along which there is an exchange.
enum Over {
    Positions(NamedAxis),
    Devices(DeviceGroups),
}

impl Over {
    fn size(&self) -> usize {
        match self {
            Over::Positions((_, size)) => *size,
            Over::Devices(groups) => groups.size(),
        }
    }
}

/// The axes of these names, in their order. Neighbours that are axes of the mesh are one, and without names
/// there are all axes of the mesh.
fn axes(op: &'static str, names: &[Name]) -> Result<Vec<Over>> {
    let mut found: Vec<Over> = Vec::with_capacity(names.len());
    let mut devices: Vec<Name> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(MeshError::AxisRepeated { op, axis: name.clone() }.into());
        }
        match size_of(name) {
            Some(size) => {
                if let Some(inside) = position::diverging(name) {
                    let name = name.clone();
                    return Err(ErrorKind::DivergentPositions { op, name, inside }.into());
                }
                flush(op, &mut devices, &mut found)?;
                found.push(Over::Positions((name.clone(), size)));
            }
            None => devices.push(name.clone()),
        }
    }
    if names.is_empty() {
        found.push(Over::Devices(mesh::device_groups(op, names)?));
    }
    flush(op, &mut devices, &mut found)?;
    Ok(found)
}

/// Adds neighbouring axes of the mesh.
fn flush(op: &'static str, devices: &mut Vec<Name>, found: &mut Vec<Over>) -> Result<()> {
    let Some(first) = devices.first() else { return Ok(()) };
    let known: Vec<String> = known().iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let mesh = mesh::current(op);
    if let (false, Err(_)) = (known.is_empty(), &mesh) {
        return Err(ErrorKind::UnknownNamedAxis { op, name: first.clone(), known: known.join(", ") }.into());
    }
    found.push(Over::Devices(mesh?.device_groups(op, devices)?));
    devices.clear();
    Ok(())
}

/// The type of what a position gets from an exchange along an axis: the one that a device would get.
///
/// # Errors
/// A type that the exchange refuses.
fn exchanged(kind: Collective, x: &Tensor, (name, size): &NamedAxis) -> Result<TensorType> {
    let positions: Vec<u32> = (0..*size as u32).collect();
    match DeviceGroups::new(name.clone(), positions, *size) {
        Ok(groups) => {
            let outputs = infer::infer(&Op::Collective(CollectiveOp { kind, groups }), &[x.ty()])?;
            Ok(outputs[0].clone())
        }
        // Without positions nothing is exchanged.
        Err(_) => Ok(x.ty().clone()),
    }
}

/// The tensor with its vectorized axis as the first axis of its shape.
fn as_first(ops: &mut Ops, op: &'static str, x: &Tensor, axis: &NamedAxis) -> Result<Tensor> {
    let x = position::read(ops, x)?;
    trace::note_vectorized(&x);
    let others: NamedAxes = x.vectorized_axes().iter().filter(|own| own.0 != axis.0).cloned().collect();
    let order: NamedAxes = others.iter().cloned().chain([axis.clone()]).collect();
    Ok(broadcast_vectorized(ops, op, &x, &order)?.flat().with_vectorized(&others))
}

/// The sum, greatest or least of the elements at one place of the tensors at all positions or on all devices.
///
/// # Errors
/// An axis that is neither known nor of the mesh, and the maximum or minimum of complex elements.
pub fn all_reduce(ops: &mut Ops, x: &Tensor, op: AllReduceOp, over: &[Name]) -> Result<Tensor> {
    let name = "all_reduce";
    let mut x = x.clone();
    for axis in axes(name, over)? {
        x = match axis {
            Over::Devices(groups) => ops.all_reduce(&x, op, &groups)?,
            Over::Positions(axis) => {
                let TensorType { dtype, .. } = exchanged(Collective::AllReduce { op }, &x, &axis)?;
                let all = as_first(ops, name, &x, &axis)?;
                let reduced = match op {
                    AllReduceOp::Sum => ops.sum(&all, 0, false)?,
                    AllReduceOp::Max => ops.reduce_max(&all, 0, false)?,
                    AllReduceOp::Min => ops.reduce_min(&all, 0, false)?,
                };
                ops.as_type(&reduced, dtype)?
            }
        };
    }
    Ok(x)
}

/// The tensors at all positions or on all devices, concatenated along an axis.
///
/// # Errors
/// An axis that is neither known nor of the mesh, one that `x` does not have, and a result that is too large.
pub fn all_gather(ops: &mut Ops, x: &Tensor, at: &AxisRef, over: &[Name]) -> Result<Tensor> {
    let op = "all_gather";
    let at = x.ty().shape.resolve(op, at)?.index();
    let mut x = x.clone();
    // The last axis is the fastest.
    for axis in axes(op, over)?.into_iter().rev() {
        x = match axis {
            Over::Devices(groups) => ops.all_gather(&x, at as i64, &groups)?,
            Over::Positions(axis) => {
                let TensorType { shape, .. } =
                    exchanged(Collective::AllGather { axis: Axis(at) }, &x, &axis)?;
                let all = as_first(ops, op, &x, &axis)?;
                let order = (1..=at).chain([0]).chain(at + 1..=shape.rank()).map(|axis| axis as i64);
                let moved = ops.transpose(&all, order.collect::<Vec<_>>().as_slice())?;
                reshape(ops, &moved, shape)?
            }
        };
    }
    Ok(x)
}

/// The part of each position or device, along an axis, of the sum of all tensors.
///
/// # Errors
/// An axis that is neither known nor of the mesh, one that `x` does not have, and a size that the positions
/// do not divide.
pub fn reduce_scatter(ops: &mut Ops, x: &Tensor, at: &AxisRef, over: &[Name]) -> Result<Tensor> {
    let op = "reduce_scatter";
    let at = x.ty().shape.resolve(op, at)?.index();
    let mut x = x.clone();
    for axis in axes(op, over)? {
        x = match axis {
            Over::Devices(groups) => ops.reduce_scatter(&x, at as i64, &groups)?,
            Over::Positions(axis) => {
                let kind = Collective::ReduceScatter { axis: Axis(at) };
                let TensorType { dtype, shape } = exchanged(kind, &x, &axis)?;
                let (name, count) = axis.clone();
                let all = as_first(ops, op, &x, &axis)?;
                let sum = ops.sum(&all, 0, false)?;
                let sum = ops.as_type(&sum, dtype)?;
                let before = shape.entries().take(at);
                let parts = before.chain([(count, None)]).chain(shape.entries().skip(at));
                let parts = reshape(ops, &sum, Shape::from_axes(parts))?;
                let order = [at].into_iter().chain((0..=shape.rank()).filter(|&other| other != at));
                let order: Vec<i64> = order.map(|axis| axis as i64).collect();
                let first = ops.transpose(&parts, order.as_slice())?;
                vectorize(ops, &first, &[(name, None)])?
            }
        };
    }
    Ok(x)
}

/// Each pair's tensor at its first position or device, given to its second; zeros where no pair gives one.
///
/// # Errors
/// An axis that is neither known nor of the mesh, or several axes that are not all of the mesh; a position
/// that is out of range, and two pairs with the same source or the same target.
pub fn permute(ops: &mut Ops, x: &Tensor, pairs: &[(usize, usize)], over: &[Name]) -> Result<Tensor> {
    let op = "collective_permute";
    let mut axes = axes(op, over)?;
    let (Some(axis), None) = (axes.pop(), axes.pop()) else {
        let problem = format!("the axes are {}", quoted(over));
        let required = "one axis of a vmap, or axes of the mesh are required".to_owned();
        return Err(MeshError::Pairs { problem, required }.into());
    };
    let axis = match axis {
        Over::Devices(groups) => return ops.collective_permute(x, pairs, &groups),
        Over::Positions(axis) => axis,
    };
    let (name, size) = axis.clone();
    check_pairs(pairs, size, &name)?;
    let all = as_first(ops, op, x, &axis)?;
    let inner = Shape::from_axes(all.ty().shape.entries().skip(1));
    let mut rows = Vec::with_capacity(size);
    for target in 0..size {
        let source = pairs.iter().find(|pair| pair.1 == target).map(|pair| pair.0);
        rows.push(match source {
            Some(source) => ops.slice_along_axis(&all, Start::Index(source as i64), 1, 0, 1)?,
            None => {
                let row = Shape::from_axes([(1, None)].into_iter().chain(inner.entries()));
                ops.full(row, x.ty().dtype, 0)?
            }
        });
    }
    if rows.is_empty() {
        return Ok(x.clone());
    }
    let moved = ops.concatenate(&rows, 0)?;
    vectorize(ops, &moved, &[(name, None)])
}

/// The position along axes, the last fastest, an s32.
///
/// # Errors
/// An axis that is neither known nor of the mesh.
pub fn index(ops: &mut Ops, over: &[Name]) -> Result<Tensor> {
    let mut index: Option<Tensor> = None;
    for axis in axes("mesh_index", over)? {
        let size = axis.size();
        let own = match axis {
            Over::Devices(groups) => ops.mesh_index(&groups)?,
            Over::Positions((name, size)) => {
                let counts = ops.iota(Shape::new(&[size]), DType::S32, None)?;
                vectorize(ops, &counts, &[(name, None)])?
            }
        };
        index = Some(match index {
            None => own,
            Some(before) => {
                let before = ops.multiply(&before, size as i64)?;
                ops.add(&before, &own)?
            }
        });
    }
    Ok(index.expect("there is an axis, or an error"))
}

/// The number of positions or devices along axes.
///
/// # Errors
/// An axis that is neither known nor of the mesh.
pub fn size(over: &[Name]) -> Result<usize> {
    Ok(axes("mesh_size", over)?.iter().map(Over::size).product())
}

/// The elements in another inner shape.
fn reshape(ops: &mut Ops, x: &Tensor, inner: Shape) -> Result<Tensor> {
    let lanes: NamedAxes = x.vectorized_axes().into();
    Ok(ops.reshape_to(x.flat(), whole_shape(&lanes, &inner))?.with_vectorized(&lanes))
}

fn quoted(names: &[Name]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
