//! Functions of one part of their arguments, applied to all parts: `vmap`.

use defn_core::vectorize::{self, Level, named};
use defn_core::{AxisRef, Name, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::containers::{self, Flat, LeafValue, Leaves, Misfit, Mode};
use crate::control::controlled;
use crate::convert;
use crate::error::{Fallible, Fault};
use crate::jit::result_tensor;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

const OP: &str = "vmap";

/// The number of positions along the mapped axes, and the argument that has it, for messages.
type Size = (usize, String);

/// Calls a function on one part of its arguments, which stands for all parts: the mapped axes are a
/// vectorized axis meanwhile.
#[pyfunction]
#[pyo3(name = "vmap")]
pub(super) fn map_axes<'py>(
    fun: &Bound<'py, PyAny>,
    axes: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    axis_name: Option<&Bound<'py, PyAny>>,
    axis_size: Option<&Bound<'py, PyAny>>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> Fallible<Bound<'py, PyAny>> {
    let (in_axes, out_axes) = axes;
    controlled(|| {
        let py = fun.py();
        let mut arguments = arguments(args, &in_axes)?;
        let mut size = axis_size.map(given_size).transpose()?;
        for argument in &arguments {
            argument.measure(&mut size)?;
        }
        let Some((size, _)) = size else {
            return Err(Misuse::NoMappedAxes { got: convert::describe(&in_axes)? }.into());
        };
        let level = Level::enter();
        let name = match axis_name {
            Some(name) => given_name(name, &arguments)?,
            None => {
                let tensors: Vec<Tensor> = arguments.iter().flat_map(|one| one.tensors.clone()).collect();
                level.axis_name(OP, &tensors)
            }
        };
        let inner = arguments.iter_mut().map(|argument| argument.enter(py, &name));
        let inner = inner.collect::<Fallible<Vec<_>>>()?;
        let scope = axis_name.map(|_| named::know(OP, name.clone(), size)).transpose()?;
        let result = fun.call(PyTuple::new(py, inner)?, Some(kwargs))?;
        drop(scope);
        drop(level);
        leave(&result, &out_axes, &name, size)
    })
}

/// A positional argument.
struct Argument<'py> {
    value: Bound<'py, PyAny>,
    position: usize,
    flat: Flat<'py>,
    paths: Vec<String>,
    /// The tensors of all leaves.
    tensors: Vec<Tensor>,
    /// The mapped axis of each leaf.
    axes: Vec<Option<AxisRef>>,
    given: Vec<LeafValue<'py>>,
}

fn arguments<'py>(args: &Bound<'py, PyTuple>, in_axes: &Bound<'py, PyAny>) -> Fallible<Vec<Argument<'py>>> {
    let is_list = in_axes.is_instance_of::<PyTuple>() || in_axes.is_instance_of::<PyList>();
    let entries: Option<Vec<Bound<'py, PyAny>>> =
        if is_list { Some(in_axes.try_iter()?.collect::<PyResult<_>>()?) } else { None };
    if let Some(entries) = &entries
        && entries.len() != args.len()
    {
        let (what, given, expected) = ("in_axes", entries.len(), args.len());
        return Err(Misuse::AxisCount { what, given, expected }.into());
    }
    let mut arguments = Vec::with_capacity(args.len());
    for (position, value) in args.iter().enumerate() {
        let (entry, what) = match &entries {
            Some(entries) => (&entries[position], format!("in_axes[{position}]")),
            None => (in_axes, "in_axes".to_owned()),
        };
        let flat = containers::flatten(OP, Mode::State, &value)?;
        let given = spread(&flat, entry, &what)?;
        let tensors = flat.leaves.iter().map(|leaf| result_tensor(OP, leaf)).collect::<Fallible<_>>()?;
        let axes = given.iter().map(|given| in_axis(given, &what)).collect::<Fallible<_>>()?;
        let paths = flat.tree.leaf_paths(value.py())?;
        arguments.push(Argument { value, position, flat, paths, tensors, axes, given });
    }
    Ok(arguments)
}

/// What is given for each leaf.
fn spread<'py>(flat: &Flat<'py>, axes: &Bound<'py, PyAny>, what: &str) -> Fallible<Vec<LeafValue<'py>>> {
    let values = containers::flatten(OP, Mode::State, axes)?;
    match flat.tree.spread(axes.py(), &values)? {
        Ok(given) => Ok(given),
        Err(Misfit { path, given, structure }) => {
            let required = format!("an axis, or a container with the structure of {structure}");
            Err(bad(&format!("{what}{path}"), convert::describe(&given)?, &required))
        }
    }
}

fn in_axis(given: &LeafValue<'_>, what: &str) -> Fallible<Option<AxisRef>> {
    let LeafValue { value, path } = given;
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(Some(AxisRef::Name(name.to_str()?.into())));
    }
    match convert::index(value)? {
        Some(index) if !value.is_instance_of::<PyBool>() => Ok(Some(AxisRef::Index(index))),
        Some(_) | None => Err(bad(
            &format!("{what}{path}"),
            convert::describe(value)?,
            "an int, the name of an axis, or None",
        )),
    }
}

impl<'py> Argument<'py> {
    /// The name of a leaf, for messages.
    fn leaf_name(&self, leaf: usize) -> String {
        format!("argument {}{}", self.position, self.paths[leaf])
    }

    /// Checks that each mapped axis is there and has the size of the others.
    fn measure(&self, size: &mut Option<Size>) -> Fallible<()> {
        for (leaf, (tensor, axis)) in self.tensors.iter().zip(&self.axes).enumerate() {
            let Some(axis) = axis else { continue };
            let Ok(at) = tensor.ty().shape.resolve(OP, axis) else {
                let axis = convert::describe(&self.given[leaf].value)?;
                let (what, got) = (self.leaf_name(leaf), vectorize::type_text(tensor));
                return Err(Misuse::NoMappedAxis { what, got, axis }.into());
            };
            let own = tensor.ty().shape.sizes()[at.index()];
            let (known, other) = size.get_or_insert_with(|| (own, self.leaf_name(leaf)));
            if *known != own {
                let (what, other, known) = (self.leaf_name(leaf), other.clone(), *known);
                return Err(Misuse::MappedSizes { what, own, other, known }.into());
            }
        }
        Ok(())
    }

    /// The argument that the function gets.
    fn enter(&mut self, py: Python<'py>, name: &Name) -> Fallible<Bound<'py, PyAny>> {
        if self.axes.iter().all(Option::is_none) {
            return Ok(self.value.clone());
        }
        let mut leaves = Leaves::with_capacity(self.axes.len());
        for ((leaf, tensor), axis) in self.flat.leaves.iter().zip(&self.tensors).zip(&self.axes) {
            leaves.push(match axis {
                None => leaf.clone(),
                Some(axis) => {
                    let inner = ops::with(|ops| vectorize::enter(ops, tensor, axis, name))?;
                    Bound::new(py, PyTensor::new(inner))?.into_any()
                }
            });
        }
        self.flat.tree.unflatten(py, &mut leaves.into_iter())
    }
}

/// The result with the vectorized axis as an axis of its tensors again.
fn leave<'py>(
    result: &Bound<'py, PyAny>,
    out_axes: &Bound<'py, PyAny>,
    name: &Name,
    size: usize,
) -> Fallible<Bound<'py, PyAny>> {
    let py = result.py();
    let flat = containers::flatten(OP, Mode::State, result)?;
    let given = spread(&flat, out_axes, "out_axes")?;
    let mut leaves = Leaves::with_capacity(given.len());
    for (leaf, LeafValue { value, path }) in flat.leaves.iter().zip(&given) {
        let tensor = result_tensor(OP, leaf)?;
        let has_axis = tensor.vectorized_axes().iter().any(|axis| axis.0 == *name);
        if value.is_none() {
            if has_axis {
                let required = "an int, because the result differs along the mapped axis";
                return Err(bad(&format!("out_axes{path}"), "None".to_owned(), required));
            }
            leaves.push(leaf.clone());
            continue;
        }
        let axis = match convert::index(value)? {
            Some(axis) if !value.is_instance_of::<PyBool>() => axis,
            Some(_) | None => {
                let required = "an int, None, or a container of them";
                return Err(bad(&format!("out_axes{path}"), convert::describe(value)?, required));
            }
        };
        let rank = tensor.ty().shape.rank() as i64 + 1;
        if !(-rank..rank).contains(&axis) {
            let (what, got) = (format!("out_axes{path}"), vectorize::type_text(&tensor));
            return Err(Misuse::NoResultAxis { what, axis, got, rank }.into());
        }
        let whole = ops::with(|ops| vectorize::leave(ops, &tensor, axis, name, size))?;
        leaves.push(Bound::new(py, PyTensor::new(whole))?.into_any());
    }
    flat.tree.unflatten(py, &mut leaves.into_iter())
}

fn given_size(value: &Bound<'_, PyAny>) -> Fallible<Size> {
    match convert::index(value)?.map(usize::try_from) {
        Some(Ok(size)) if !value.is_instance_of::<PyBool>() => Ok((size, "axis_size".to_owned())),
        Some(_) | None => Err(bad("axis_size", convert::describe(value)?, "an int of at least 0, or None")),
    }
}

/// The name that the caller gives the mapped axis, which no axis of the arguments has.
fn given_name(value: &Bound<'_, PyAny>, arguments: &[Argument<'_>]) -> Fallible<Name> {
    let Ok(name) = value.cast::<PyString>() else {
        return Err(bad("axis_name", convert::describe(value)?, "a str, or None"));
    };
    let name: Name = name.to_str()?.into();
    for argument in arguments {
        for (leaf, tensor) in argument.tensors.iter().enumerate() {
            let is_own = tensor.ty().shape.names().flatten().any(|own| *own == name);
            if is_own || tensor.vectorized_axes().iter().any(|axis| axis.0 == name) {
                let (what, got) = (argument.leaf_name(leaf), vectorize::type_text(tensor));
                return Err(Misuse::MappedName { name: name.to_string(), what, got }.into());
            }
        }
    }
    Ok(name)
}

fn bad(what: &str, got: String, required: &str) -> Fault {
    let (op, what, required) = (OP.to_owned(), what.to_owned(), required.to_owned());
    Misuse::BadArgument { op, what, got, required }.into()
}
