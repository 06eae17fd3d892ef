//! Collective operations between the devices of a mesh.

use defn_core::builder::{Arg, Builder};
use defn_core::op::AllReduceOp;
use defn_core::vectorize::named;
use defn_core::{AxisRef, Name, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::tensor::PyTensor;

/// Axes of the mesh or of enclosing mapped functions; all axes of the mesh if none is named.
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
                let required = "the name of an axis, a sequence of them, or None for all of the mesh";
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
        let tensor = ops.operand(tensor)?;
        named::all_reduce(ops, &tensor, op, &over.0)
    };
    all_gather(tensor: Arg<Tensor>, over: MeshAxes, axis: AxisRef) => |ops| {
        let tensor = ops.operand(tensor)?;
        named::all_gather(ops, &tensor, &axis, &over.0)
    };
    reduce_scatter(tensor: Arg<Tensor>, over: MeshAxes, axis: AxisRef) => |ops| {
        let tensor = ops.operand(tensor)?;
        named::reduce_scatter(ops, &tensor, &axis, &over.0)
    };
    collective_permute(tensor: Arg<Tensor>, over: MeshAxes, pairs: Pairs) => |ops| {
        let tensor = ops.operand(tensor)?;
        named::permute(ops, &tensor, &pairs.0, &over.0)
    };
    mesh_index(over: MeshAxes = None) => |ops| {
        named::index(ops, &over.0)
    };
}

/// The number of devices or positions along axes.
#[pyfunction]
#[pyo3(signature = (over = None))]
fn mesh_size(over: Option<&Bound<'_, PyAny>>) -> Fallible<usize> {
    guard(|| {
        let over = MeshAxes::parse("mesh_size", "over", over)?;
        Ok(named::size(&over.0)?)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(mesh_size, module)?)
}
