//! Loops and branches over containers. The core traces their functions into regions. This module flattens and
//! rebuilds the containers, and passes exceptions of user functions through the core.

use std::cell::RefCell;

use defn_core::builder::{
    self, Arg, BuildControl, Clause, Kept, LoopOptions, MOST_SNAPSHOTS, Ops, Rule, Rules, Thunk,
};
use defn_core::op::MemorySpace;
use defn_core::{Error, Name, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};

use crate::containers::{self, Flat, Mode, Tree};
use crate::convert;
use crate::error::{Fallible, Fault, guard, if_fits};
use crate::hooks::{self, interrupted};
use crate::jit::{result_tensor, wrap};
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// Carries an exception of a user function through the core, which has no Python types.
#[derive(Default)]
pub(crate) struct FaultCarrier {
    fault: RefCell<Option<Fault>>,
}

impl FaultCarrier {
    /// Runs a user function inside a call of the core.
    pub(crate) fn run_user_function<T>(&self, body: impl FnOnce() -> Fallible<T>) -> defn_core::Result<T> {
        match body() {
            Ok(value) => Ok(value),
            Err(Fault::Core(error)) => Err(error),
            Err(fault) => {
                self.fault.replace(Some(fault));
                Err(interrupted())
            }
        }
    }

    /// The result of the core's call, or the fault of the user's function.
    pub(crate) fn into_result<T>(self, result: defn_core::Result<T>) -> Fallible<T> {
        match (self.fault.into_inner(), result) {
            (Some(fault), Err(_)) => Err(fault),
            (_, result) => Ok(result?),
        }
    }
}

/// A container whose leaves are operands.
pub(crate) struct Operands {
    pub(crate) args: Vec<Arg<Tensor>>,
    pub(crate) tree: Tree,
}

/// Flattens a state or a result.
pub(crate) fn operands(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Operands> {
    let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
    let args = leaves.iter().map(|leaf| convert::arg(op, leaf)).collect::<Fallible<_>>()?;
    Ok(Operands { args, tree })
}

/// Flattens a state into tensors.
pub(crate) fn tensors(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<(Vec<Tensor>, Tree)> {
    let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
    let tensors = leaves.iter().map(|leaf| result_tensor(op, leaf)).collect::<Fallible<_>>()?;
    Ok((tensors, tree))
}

/// Builds a container from a structure, with tensors as leaves.
pub(crate) fn container<'py>(
    py: Python<'py>,
    tree: &Tree,
    tensors: &[Tensor],
) -> Fallible<Bound<'py, PyAny>> {
    let mut leaves = wrap(py, tensors.iter().cloned())?.into_iter();
    tree.unflatten(py, &mut leaves)
}

/// Checks that a new state has the structure of the old one and returns its operands in the old order. Dict
/// keys may come in another order.
pub(crate) fn same_structure(
    py: Python<'_>,
    op: &'static str,
    what: &str,
    got: Operands,
    other: &str,
    expected: &Tree,
) -> Fallible<Vec<Arg<Tensor>>> {
    if got.tree.equals(py, expected)? {
        return Ok(got.args);
    }
    if let Some(positions) = expected.leaf_positions_in(py, &got.tree)? {
        return Ok(positions.into_iter().map(|position| got.args[position].clone()).collect());
    }
    let difference = got.tree.difference(py, expected)?;
    let (what, other) = (what.to_owned(), other.to_owned());
    Err(Misuse::Structure { op: op.into(), what, other, difference }.into())
}

/// Adds the path of the changed type within the state to an error; the core only has leaf indices.
pub(crate) fn locate_state(py: Python<'_>, op: &'static str, error: Error, tree: &Tree) -> Fallible<Fault> {
    let paths = tree.leaf_paths(py)?;
    let path_text = |index: usize| {
        let path = paths.get(index).map_or("", String::as_str);
        // In `for_` and `scan`, the core's state begins with a counter that is hidden from the user.
        let shown = if op == "while_" { Some(path) } else { path.strip_prefix("[1]") };
        shown.filter(|path| !path.is_empty()).map_or_else(String::new, |path| format!(" at {path}"))
    };
    Ok(error.with_loop_name(op, path_text).into())
}

/// Whether a traced tensor represents a plain number, whose dtype is weak.
#[pyfunction]
fn is_weak(tensor: &Bound<'_, PyTensor>) -> bool {
    tensor.get().tensor.is_weak()
}

/// Runs a control-flow function. Outside of any trace, it then clears the record of new tensors.
pub(crate) fn controlled<T>(body: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    let result = guard(|| hooks::run_eagerly(body));
    trace_allocations::forget();
    result
}

/// The number of states that the gradient of a loop may keep.
pub(crate) fn snapshot_count(op: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Option<usize>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    match convert::index(value)? {
        Some(count) if (1..=MOST_SNAPSHOTS as i64).contains(&count) => Ok(Some(count as usize)),
        Some(_) | None => {
            let required = format!("an int from 1 to {MOST_SNAPSHOTS}, or None");
            Err(convert::bad(op, "snapshots", value, &required)?)
        }
    }
}

/// Repeats `body` on a state while `cond` returns a nonzero value.
#[pyfunction]
#[pyo3(signature = (init, cond, body, snapshots = None))]
fn while_<'py>(
    init: &Bound<'py, PyAny>,
    cond: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
    snapshots: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let py = init.py();
        let snapshots = snapshot_count("while_", snapshots)?;
        let Operands { args: state, tree } = operands("while_", init)?;
        let bridge = FaultCarrier::default();
        let result = builder::while_(
            &mut ops::builder()?,
            state,
            LoopOptions { trips: None, snapshots },
            |_, state| {
                bridge.run_user_function(|| {
                    let predicate = cond.call1((container(py, &tree, state)?,))?;
                    convert::arg("while_", &predicate)
                })
            },
            |_, state| {
                bridge.run_user_function(|| {
                    let next = body.call1((container(py, &tree, state)?,))?;
                    let next = operands("while_", &next)?;
                    same_structure(py, "while_", "the body's value", next, "the state", &tree)
                })
            },
        );
        finish_loop(py, "while_", bridge, result, &tree)
    })
}

/// The final state of a loop as a container.
pub(crate) fn finish_loop<'py>(
    py: Python<'py>,
    op: &'static str,
    bridge: FaultCarrier,
    result: defn_core::Result<Vec<Tensor>>,
    tree: &Tree,
) -> Fallible<Bound<'py, PyAny>> {
    match bridge.into_result(result) {
        Ok(state) => container(py, tree, &state),
        Err(Fault::Core(error)) => Err(locate_state(py, op, error, tree)?),
        Err(fault) => Err(fault),
    }
}

/// Whether a branch is a function without parameters instead of a value.
fn is_thunk(branch: &Bound<'_, PyAny>) -> bool {
    branch.is_callable() && !branch.is_instance_of::<PyTensor>()
}

/// The value of a branch: the result of a function without parameters, or the value itself.
fn branch_value<'py>(branch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_thunk(branch) { branch.call0() } else { Ok(branch.clone()) }
}

/// The truth value of a predicate that is not a tensor, and hence known now.
fn constant_predicate(op: &'static str, predicate: &Bound<'_, PyAny>) -> Fallible<Option<bool>> {
    if predicate.is_instance_of::<PyTensor>() {
        return Ok(None);
    }
    if predicate.is_instance_of::<PyBool>() || convert::number(predicate)?.is_some() {
        return Ok(Some(predicate.is_truthy()?));
    }
    // An array counts as a tensor; any other object is an error.
    convert::arg(op, predicate).map(|_| None)
}

fn choose<'py>(
    py: Python<'py>,
    op: &'static str,
    clauses: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    otherwise: Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    let mut open: Vec<(Tensor, Bound<'py, PyAny>)> = Vec::new();
    let mut last = otherwise;
    // Functions of branches that cannot run are not called, but branches that are values still take part in
    // dtype promotion.
    let mut unused: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut clauses = clauses.into_iter();
    while let Some((predicate, branch)) = clauses.next() {
        match constant_predicate(op, &predicate)? {
            Some(false) => unused.push(branch),
            Some(true) => {
                // Later clauses cannot run.
                unused.push(std::mem::replace(&mut last, branch));
                unused.extend(clauses.by_ref().map(|(_, branch)| branch));
            }
            None => open.push((convert::tensor(op, &predicate)?, branch)),
        }
    }
    if open.is_empty() {
        let chosen = operands(op, &branch_value(&last)?)?;
        let mut others = Vec::new();
        for branch in unused.iter().filter(|branch| !is_thunk(branch)) {
            // A value of another structure has no leaves to merge with.
            let Ok(other) = operands(op, branch) else { continue };
            if let Some(positions) = chosen.tree.leaf_positions_in(py, &other.tree)? {
                others.push(positions.into_iter().map(|position| other.args[position].clone()).collect());
            }
        }
        let results = ops::with(|ops| builder::merge_results(ops, &chosen.args, &others))?;
        return container(py, &chosen.tree, &results);
    }
    let bridge = FaultCarrier::default();
    let first: RefCell<Option<Tree>> = RefCell::new(None);
    let trace_branch = |position: usize, branch: &Bound<'py, PyAny>| {
        bridge.run_user_function(|| {
            let found = operands(op, &branch_value(branch)?)?;
            let tree = first.take();
            let Some(tree) = tree else {
                first.replace(Some(found.tree));
                return Ok(found.args);
            };
            let what = format!("branch {position}");
            let args = same_structure(py, op, &what, found, "branch 0", &tree);
            first.replace(Some(tree));
            args
        })
    };
    let count = open.len();
    let trace_branch = &trace_branch;
    let mut thunks: Vec<Clause<'_>> = Vec::with_capacity(count);
    for (position, (predicate, branch)) in open.iter().enumerate() {
        let thunk: Thunk<'_> = Box::new(move |_: &mut Ops| trace_branch(position, branch));
        thunks.push((predicate.clone(), thunk));
    }
    let last = &last;
    let otherwise: Thunk<'_> = Box::new(move |_: &mut Ops| trace_branch(count, last));
    let result = builder::cond(&mut ops::builder()?, thunks, otherwise);
    let tree = first.take();
    let results = bridge.into_result(result)?;
    match tree {
        Some(tree) => container(py, &tree, &results),
        None => Err(Misuse::Internal { text: "a conditional without a branch".to_owned() }.into()),
    }
}

/// Runs the function of the first predicate that is nonzero, else the last function.
#[pyfunction]
fn cond<'py>(clauses: &Bound<'py, PyAny>, otherwise: Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let mut pairs = Vec::new();
        let required = "a sequence of (predicate, function)";
        let Some(entries) = if_fits(clauses.py(), clauses.try_iter())? else {
            return Err(convert::bad("cond", "the first argument", clauses, required)?);
        };
        for entry in entries {
            let entry = entry?;
            match entry.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() {
                Ok(pair) => pairs.push(pair),
                Err(_) => return Err(convert::bad("cond", "a clause", &entry, "(predicate, function)")?),
            }
        }
        choose(clauses.py(), "cond", pairs, otherwise)
    })
}

/// A conditional with two branches, which may be values.
#[pyfunction]
#[pyo3(signature = (pred, then, otherwise = None))]
fn if_<'py>(
    pred: Bound<'py, PyAny>,
    then: Bound<'py, PyAny>,
    otherwise: Option<Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let py = pred.py();
        let otherwise = match otherwise {
            Some(otherwise) => otherwise,
            None => 0i32.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        };
        choose(py, "if_", vec![(pred, then)], otherwise)
    })
}

/// Applies an op to every leaf of a container.
pub(crate) fn map_leaves<'py>(
    op: &'static str,
    value: &Bound<'py, PyAny>,
    apply: impl Fn(&mut Ops, Tensor) -> defn_core::Result<Tensor>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (tensors, tree) = tensors(op, value)?;
        let mapped: Vec<Tensor> =
            ops::with(|ops| tensors.into_iter().map(|tensor| apply(ops, tensor)).collect())?;
        container(value.py(), &tree, &mapped)
    })
}

/// A container through which no gradient flows.
#[pyfunction]
fn stop_grad<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    map_leaves("stop_grad", value, |ops, tensor| ops.stop_grad(tensor))
}

/// A container that is marked with a name; a graph may be cut there.
#[pyfunction]
fn mark<'py>(value: &Bound<'py, PyAny>, name: &str) -> Fallible<Bound<'py, PyAny>> {
    let name = Name::from(name);
    map_leaves("mark", value, |ops, tensor| ops.mark(tensor, name.clone()))
}

/// The tensors of a list or tuple of inputs, and its structure.
fn rule_inputs(op: &'static str, inputs: &Bound<'_, PyAny>) -> Fallible<(Vec<Tensor>, Tree)> {
    if !inputs.is_instance_of::<PyList>() && !inputs.is_instance_of::<PyTuple>() {
        return Err(convert::bad(op, "inputs", inputs, "a list of tensors")?);
    }
    tensors(op, inputs)
}

/// The rule for reverse mode: a function from the cotangent of the value, which has its structure, to a list.
fn reverse_rule<'a>(bridge: &'a FaultCarrier, fun: &'a Bound<'_, PyAny>, value: &'a Tree) -> Rule<'a> {
    Box::new(|_, cotangents| {
        bridge.run_user_function(|| {
            let gradients = fun.call1((container(fun.py(), value, cotangents)?,))?;
            if !gradients.is_instance_of::<PyList>() && !gradients.is_instance_of::<PyTuple>() {
                let got = convert::describe(&gradients)?;
                let (what, required) = ("the function", "a list with one cotangent for each input");
                return Err(Misuse::BadResult { op: "custom_grad", what, got, required }.into());
            }
            operands("custom_grad", &gradients).map(|found| found.args)
        })
    })
}

/// The rule for forward mode: a function from the tangents of the inputs to the tangent of the value, which has its
/// structure.
fn forward_rule<'a>(
    bridge: &'a FaultCarrier,
    fun: &'a Bound<'_, PyAny>,
    value: &'a Tree,
    inputs: &'a Tree,
) -> Rule<'a> {
    let op = "custom_jvp";
    Box::new(move |_, tangents| {
        bridge.run_user_function(|| {
            let py = fun.py();
            let tangents = container(py, inputs, tangents)?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let tangent = fun.call1(PyTuple::new(py, tangents)?)?;
            same_structure(py, op, "the function's result", operands(op, &tangent)?, "the value", value)
        })
    })
}

/// A container with its own gradient rule, and one for forward mode if it is given.
#[pyfunction]
#[pyo3(signature = (value, inputs, fun, jvp = None))]
fn custom_grad<'py>(
    value: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    fun: &Bound<'py, PyAny>,
    jvp: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (values, tree) = tensors("custom_grad", value)?;
        let (inputs, form) = rule_inputs("custom_grad", inputs)?;
        let bridge = FaultCarrier::default();
        let reverse = reverse_rule(&bridge, fun, &tree);
        let rules = match jvp {
            Some(jvp) => Rules::Both { reverse, forward: forward_rule(&bridge, jvp, &tree, &form) },
            None => Rules::Reverse(reverse),
        };
        let result = builder::custom_derivative(&mut ops::builder()?, values, inputs, rules);
        container(value.py(), &tree, &bridge.into_result(result)?)
    })
}

/// A container with its own rule for forward mode.
#[pyfunction]
fn custom_jvp<'py>(
    value: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    fun: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (values, tree) = tensors("custom_jvp", value)?;
        let (inputs, form) = rule_inputs("custom_jvp", inputs)?;
        let bridge = FaultCarrier::default();
        let rules = Rules::Forward(forward_rule(&bridge, fun, &tree, &form));
        let result = builder::custom_derivative(&mut ops::builder()?, values, inputs, rules);
        container(value.py(), &tree, &bridge.into_result(result)?)
    })
}

/// The value of a function whose derivatives compute again what is inside, except for values with the marks `names`, or for
/// products.
#[pyfunction]
#[pyo3(signature = (fun, args, kwargs, names, products))]
fn checkpoint<'py>(
    fun: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    names: Vec<(String, bool)>,
    products: bool,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let kept = if products {
            Kept::Products
        } else {
            let memory = |on_host| if on_host { MemorySpace::Host } else { MemorySpace::Device };
            Kept::Marked(
                names.iter().map(|(name, on_host)| (name.as_str().into(), memory(*on_host))).collect(),
            )
        };
        let (bridge, form) = (FaultCarrier::default(), RefCell::new(None));
        let result = builder::checkpoint(&mut ops::builder()?, &kept, |_| {
            bridge.run_user_function(|| {
                let Operands { args, tree } = operands("checkpoint", &fun.call(args, kwargs)?)?;
                form.replace(Some(tree));
                Ok(args)
            })
        });
        let results = bridge.into_result(result)?;
        let Some(tree) = form.take() else {
            return Err(Misuse::Internal { text: "a function was not traced".to_owned() }.into());
        };
        container(fun.py(), &tree, &results)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_weak, module)?)?;
    module.add_function(wrap_pyfunction!(while_, module)?)?;
    module.add_function(wrap_pyfunction!(cond, module)?)?;
    module.add_function(wrap_pyfunction!(if_, module)?)?;
    module.add_function(wrap_pyfunction!(stop_grad, module)?)?;
    module.add_function(wrap_pyfunction!(mark, module)?)?;
    module.add_function(wrap_pyfunction!(custom_grad, module)?)?;
    module.add_function(wrap_pyfunction!(custom_jvp, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint, module)?)
}
