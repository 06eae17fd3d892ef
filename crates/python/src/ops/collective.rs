//! Collective operations between the devices of a mesh.

use defn_core::builder::{Arg, BuildCollective};
use defn_core::mesh;
use defn_core::op::AllReduceOp;
use defn_core::{AxisRef, Name, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::tensor::PyTensor;

/// Axes of the mesh; all axes if none is named.
struct MeshAxes(Vec<Name>);

impl Parse for MeshAxes {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(MeshAxes(Vec::new())) };
        if let Ok(name) = value.cast::<PyString>() {
            return Ok(MeshAxes(vec![name.to_str()?.into()]));
        }
        match if_fits(value.py(), value.extract::<Vec<String>>())? {
            Some(names) if !names.is_empty() => Ok(MeshAxes(names.into_iter().map(Name::from).collect())),
            Some(_) | None => {
                let required = "the name of an axis of the mesh, a sequence of them, or None for all";
                Err(convert::bad(op, what, value, required)?)
            }
        }
    }
}

impl Parse for AllReduceOp {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(AllReduceOp::Sum) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        let found = AllReduceOp::ALL.iter().find(|known| name.as_deref() == Some(known.name()));
        match found {
            Some(&found) => Ok(found),
            None => Err(convert::bad(op, what, value, "\"sum\", \"max\" or \"min\"")?),
        }
    }
}

/// Pairs of source and target devices, by position.
struct Pairs(Vec<(usize, usize)>);

impl Parse for Pairs {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "a sequence of pairs of positions, from which device and to which";
        let Some(value) = value else {
            let (op, what, got) = (op.to_owned(), what.to_owned(), "None".to_owned());
            return Err(
                crate::misuse::Misuse::BadArgument { op, what, got, required: required.to_owned() }.into()
            );
        };
        match convert::tuples(value)? {
            Some(pairs) => Ok(Pairs(pairs.into_iter().map(<(usize, usize)>::from).collect())),
            None => Err(convert::bad(op, what, value, required)?),
        }
    }
}

functions! {
    all_reduce(tensor: Arg<Tensor>, over: MeshAxes = None, op: AllReduceOp = None) => |ops| {
        let over = mesh::device_groups("all_reduce", &over.0)?;
        ops.all_reduce(tensor, op, &over)
    };
    all_gather(tensor: Arg<Tensor>, over: MeshAxes, axis: AxisRef) => |ops| {
        let over = mesh::device_groups("all_gather", &over.0)?;
        ops.all_gather(tensor, axis, &over)
    };
    reduce_scatter(tensor: Arg<Tensor>, over: MeshAxes, axis: AxisRef) => |ops| {
        let over = mesh::device_groups("reduce_scatter", &over.0)?;
        ops.reduce_scatter(tensor, axis, &over)
    };
    collective_permute(tensor: Arg<Tensor>, over: MeshAxes, pairs: Pairs) => |ops| {
        let over = mesh::device_groups("collective_permute", &over.0)?;
        ops.collective_permute(tensor, &pairs.0, &over)
    };
    mesh_index(over: MeshAxes = None) => |ops| {
        let over = mesh::device_groups("mesh_index", &over.0)?;
        ops.mesh_index(&over)
    };
}

/// The number of devices along axes of the mesh.
#[pyfunction]
#[pyo3(signature = (over = None))]
fn mesh_size(over: Option<&Bound<'_, PyAny>>) -> Fallible<usize> {
    guard(|| {
        let over = MeshAxes::parse("mesh_size", "over", over)?;
        Ok(mesh::device_groups("mesh_size", &over.0)?.size())
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(mesh_size, module)?)
}
