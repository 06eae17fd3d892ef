//! Functions of several containers with one structure, and of the paths to leaves.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::class::{Structure, read};
use super::tree::{Part, Step};
use super::{Flat, Leaves, Mode, Tree, flatten};
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;

/// The structure that containers have, and their corresponding leaves. Keys of mappings may come in another
/// order than in the first container. `names` are for messages.
#[pyfunction]
#[pyo3(signature = (op, names, *containers))]
fn corresponding_leaves<'py>(
    op: &str,
    names: Vec<String>,
    containers: &Bound<'py, PyTuple>,
) -> Fallible<(Vec<Bound<'py, PyTuple>>, Structure)> {
    guard(|| {
        let py = containers.py();
        let mut first: Option<Tree> = None;
        let mut columns = Vec::with_capacity(containers.len());
        for (at, container) in containers.iter().enumerate() {
            let Flat { leaves, tree, .. } = flatten(op, Mode::State, &container)?;
            let Some(expected) = &first else {
                first = Some(tree);
                columns.push(leaves);
                continue;
            };
            let positions = positions_in(py, op, &names[0], expected, &names[at], &tree)?;
            columns.push(positions.into_iter().map(|position| leaves[position].clone()).collect());
        }
        let count = columns.first().map_or(0, Leaves::len);
        let rows = (0..count).map(|row| {
            let leaves = columns.iter().map(|column| read(column[row].clone()));
            Ok(PyTuple::new(py, leaves.collect::<Fallible<Vec<_>>>()?)?)
        });
        let rows = rows.collect::<Fallible<Vec<_>>>()?;
        Ok((rows, Structure::new(first.unwrap_or_default(), count)))
    })
}

/// For each leaf of a structure, its position in another one.
fn positions_in(
    py: Python<'_>,
    op: &str,
    what: &str,
    tree: &Tree,
    other: &str,
    of: &Tree,
) -> Fallible<Vec<usize>> {
    if let Some(positions) = tree.leaf_positions_in(py, of)? {
        return Ok(positions);
    }
    let difference = tree.difference(py, of)?;
    let (what, other) = (what.to_owned(), other.to_owned());
    Err(Misuse::Structure { op: op.to_owned().into(), what, other, difference }.into())
}

/// The path of each leaf of a structure: keys, positions and, as objects of the class `field`, names of fields.
#[pyfunction]
fn leaf_paths<'py>(
    structure: &Bound<'py, Structure>,
    field: &Bound<'py, PyType>,
) -> Fallible<Vec<Bound<'py, PyTuple>>> {
    guard(|| {
        let py = structure.py();
        let entry = |step: Step<'py>| match step {
            Step::Key(key) => Ok(key),
            Step::Position(position) => Ok(position.into_pyobject(py)?.into_any()),
            Step::Field(name) => field.call1((name,)),
        };
        let path = |steps: Vec<Step<'py>>| {
            let entries = steps.into_iter().map(entry).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, entries)?)
        };
        structure.get().tree().leaf_steps(py)?.into_iter().map(path).collect()
    })
}

/// A path as messages show it, such as `["layers"][0].bias`.
#[pyfunction]
fn path_text(path: &Bound<'_, PyTuple>, field: &Bound<'_, PyType>) -> Fallible<String> {
    guard(|| {
        let mut text = String::new();
        for entry in path.iter() {
            let step = if entry.is_instance(field)? { Step::Field(entry.str()?) } else { Step::Key(entry) };
            text.push_str(&step.text());
        }
        Ok(text)
    })
}

/// A container with the structure that the parts at the leaves of `outer` have, in which each leaf is a
/// container with the structure `outer`. Without `outer`, it is the outermost container alone.
#[pyfunction]
fn transpose_container<'py>(
    value: &Bound<'py, PyAny>,
    outer: Option<&Bound<'py, Structure>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let py = value.py();
        let op = "transpose";
        let Flat { leaves, tree, .. } = flatten(op, Mode::State, value)?;
        let outer = match outer {
            Some(outer) => outer.get().tree().clone_ref(py),
            None => tree.outermost(py),
        };
        let parts = match tree.parts_at(py, &outer)? {
            Ok(parts) => parts,
            Err(difference) => {
                let (what, other) = ("tree".to_owned(), "outer".to_owned());
                return Err(Misuse::Structure { op: op.into(), what, other, difference }.into());
            }
        };
        let Some(Part { tree: inner, leaves: count }) = parts.first() else {
            return Err(Misuse::NoOuterLeaf { outer: outer.text(py)? }.into());
        };
        let paths = outer.leaf_paths(py)?;
        let name = |at: usize| format!("tree{}", paths[at]);
        let (mut start, mut rows) = (0, Vec::with_capacity(parts.len()));
        for (at, part) in parts.iter().enumerate() {
            let positions = positions_in(py, op, &name(0), inner, &name(at), &part.tree)?;
            rows.push(positions.into_iter().map(|position| start + position).collect::<Vec<_>>());
            start += part.leaves;
        }
        let order = (0..*count).flat_map(|column| rows.iter().map(move |row| row[column]));
        let leaves = order.map(|at| read(leaves[at].clone())).collect::<Fallible<Vec<_>>>()?;
        inner.with_leaves(py, &outer).unflatten(py, &mut leaves.into_iter())
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(corresponding_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(leaf_paths, module)?)?;
    module.add_function(wrap_pyfunction!(path_text, module)?)?;
    module.add_function(wrap_pyfunction!(transpose_container, module)?)
}
