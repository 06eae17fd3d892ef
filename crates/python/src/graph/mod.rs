//! Graphs in stages: `split` with a user's decision function or a ready-made rule, the schedule of a list of
//! stages, and the inspection of graphs.

mod inspect;
mod program;
mod rule;
mod stage;
mod whole;

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::graph::Value;
use defn_core::stage::{self as cut, Decision, Source, Stage, StageError, Visit};
use defn_core::trace::Trace;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::containers::Flat;
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::{self, wrap};
use crate::misuse::Misuse;
use crate::nodes;
use crate::pybackend::carry;
use rule::PyRule;
use stage::PyStage;
use whole::Whole;

/// The stages of the graph of a container. `decide` is a rule or a function of a node. With an accumulator,
/// the function takes a node and the accumulator, and also returns the next accumulator.
#[pyfunction]
#[pyo3(signature = (expr, decide, acc = None))]
fn graph_split<'py>(
    expr: &Bound<'py, PyAny>,
    decide: &Bound<'py, PyAny>,
    acc: Option<(Bound<'py, PyAny>,)>,
) -> Fallible<Vec<PyStage>> {
    guard(|| {
        let whole = Whole::of("split", expr)?;
        let trace = whole.trace.clone();
        let stages = match (decide.cast::<PyRule>(), acc) {
            (Ok(rule), None) => cut::split_by(&whole.region, &rule.get().rule)?,
            (Ok(_), Some(_)) => {
                return Err(convert::bad(
                    "split",
                    "decide",
                    decide,
                    "a function where an accumulator is given",
                )?);
            }
            (Err(_), _) if !decide.is_callable() => {
                return Err(convert::bad(
                    "split",
                    "decide",
                    decide,
                    "a function of a node, or a rule such as dn.graph.every(3)",
                )?);
            }
            (Err(_), None) => cut::split(&whole.region, |visit| {
                let ask = || decision(&decide.call1((node(decide.py(), &trace, visit)?,))?);
                ask().map_err(carry)
            })?,
            (Err(_), Some((acc,))) => cut::split_with(&whole.region, acc, |visit, acc| {
                let ask = || -> Fallible<(Decision, Bound<'py, PyAny>)> {
                    let answer = decide.call1((node(decide.py(), &trace, visit)?, acc))?;
                    let pair = answer.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
                    let Some(pair) = pair else {
                        let (op, what, got) = ("split", "decide", convert::text(&answer)?);
                        let required = "a tuple of a decision and the next accumulator";
                        return Err(Misuse::BadResult { op, what, got, required }.into());
                    };
                    Ok((decision(&pair.get_item(0)?)?, pair.get_item(1)?))
                };
                ask().map_err(carry)
            })?,
        };
        Ok(of_whole(whole, stages))
    })
}

/// The stages of a graph, each with its tensors, functions and containers.
fn of_whole(whole: Whole, stages: Vec<Stage>) -> Vec<PyStage> {
    let Whole { captures, table, tree, lanes, arguments, further, .. } = whole;
    let last = stages.len() - 1;
    let mut results = Some((tree, lanes));
    let of_stage = |stage: Stage| {
        let own = stage.sources().iter().filter_map(Source::capture);
        let own: Vec<Tensor> = own.map(|index| captures[index].clone()).collect();
        let results = if stage.position() == last { results.take() } else { None };
        PyStage::new(stage, own, table.clone(), results, (arguments.clone(), further.clone()))
    };
    stages.into_iter().map(of_stage).collect()
}

/// The node that a decision function receives.
fn node<'py>(py: Python<'py>, trace: &Arc<Trace>, visit: &Visit<'_>) -> Fallible<Bound<'py, PyAny>> {
    let value = Value { node: visit.position as u32, output: 0 };
    Ok(Bound::new(py, nodes::of_value(trace, value))?.into_any())
}

/// The result of a decision function.
fn decision(given: &Bound<'_, PyAny>) -> Fallible<Decision> {
    match given.cast::<PyString>() {
        Ok(name) => Ok(Decision::parse(name.to_str()?)?),
        Err(_) => {
            let given = convert::text(given)?;
            Err(StageError::Decision { given }.into())
        }
    }
}

/// The stages in a list.
fn stages(list: &Bound<'_, PyAny>) -> Fallible<Vec<Stage>> {
    let mut stages = Vec::new();
    for (position, entry) in list.try_iter()?.enumerate() {
        let entry = entry?;
        match entry.cast::<PyStage>() {
            Ok(stage) => stages.push(stage.get().stage.clone()),
            Err(_) => {
                let what = format!("stages[{position}]");
                return Err(convert::bad("run", &what, &entry, "a stage that split gave")?);
            }
        }
    }
    Ok(stages)
}

/// For each stage, whether each input has its last use there, and the stages for which it waits.
type Order = (Vec<Vec<bool>>, Vec<Vec<usize>>);

/// Checks a list of stages, and returns the schedule that a run needs.
#[pyfunction]
fn graph_order(list: &Bound<'_, PyAny>) -> Fallible<Order> {
    guard(|| {
        let stages = stages(list)?;
        cut::check("run", &stages)?;
        let waits = cut::waits(&stages).into_iter().map(|waits| waits.to_vec()).collect();
        let travels = |(last, stage): (Vec<bool>, &Stage)| {
            let both = last.into_iter().zip(stage.sources());
            both.filter(|(_, source)| source.capture().is_none()).map(|(last, _)| last).collect()
        };
        let last_uses = cut::last_uses(&stages).into_iter().zip(&stages).map(travels).collect();
        Ok((last_uses, waits))
    })
}

/// The tensors of a run's arguments. They must have the types with which the whole graph was traced.
#[pyfunction]
fn graph_inputs<'py>(stage: &Bound<'py, PyStage>, args: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyList>> {
    guard(|| {
        let (py, op) = (stage.py(), "run");
        let args = match (args.cast::<PyTuple>(), args.cast::<PyList>()) {
            (Ok(args), _) => args.clone(),
            (Err(_), Ok(args)) => args.to_tuple(),
            (Err(_), Err(_)) => {
                return Err(convert::bad(op, "args", args, "a list or tuple of the function's arguments")?);
            }
        };
        let Flat { leaves, tree, .. } = jit::flatten_arguments(&args)?;
        let types = stage.get().stage.arguments();
        let further = stage.get().further(leaves.len())?;
        if leaves.len() + further.len() != types.len() {
            let (given, expected) = (leaves.len(), types.len() - further.len());
            return Err(StageError::InputCount { op, given, expected }.into());
        }
        let mut tensors = Vec::with_capacity(types.len());
        let positions = (0..leaves.len()).chain(further.iter().copied());
        for (position, ty) in positions.zip(types) {
            let leaf = &leaves[position];
            let tensor = jit::leaf::input(op, leaf, position, ty)?;
            let paths = || tree.argument_leaf_paths(py, |at| format!("args[{at}]"));
            tensor.require_buffer(op, "run stages outside of definitions")?;
            let lanes = stage.get().argument_lanes(position);
            let same_axes = lanes.is_none_or(|lanes| tensor.vectorized_axes() == lanes);
            if !same_axes || !ty.is_compatible(tensor.whole()) {
                let argument = format!("argument {}", paths()?[position]);
                let expected = Tensor::template(ty.clone()).with_vectorized(lanes.unwrap_or_default());
                let (got, expected) = (jit::named_type(&tensor), jit::named_type(&expected));
                return Err(StageError::InputType { op, argument, got, expected }.into());
            }
            tensors.push(tensor.flat());
        }
        Ok(PyList::new(py, wrap(py, tensors.into_iter())?)?)
    })
}

/// The container of the whole graph's results, built from the outputs of the last stage.
#[pyfunction]
fn graph_results<'py>(
    stage: &Bound<'py, PyStage>,
    values: Vec<Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let mut tensors = Vec::with_capacity(values.len());
        for value in &values {
            tensors.push(convert::tensor("run", value)?.flat());
        }
        stage.get().rebuild(stage.py(), tensors)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStage>()?;
    module.add_function(wrap_pyfunction!(graph_split, module)?)?;
    module.add_function(wrap_pyfunction!(graph_order, module)?)?;
    module.add_function(wrap_pyfunction!(graph_inputs, module)?)?;
    module.add_function(wrap_pyfunction!(graph_results, module)?)?;
    module.add_function(wrap_pyfunction!(stage::unpickled, module)?)?;
    program::add(module)?;
    rule::add(module)?;
    inspect::add(module)
}
