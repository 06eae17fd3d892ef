//! Forward mode over containers: a function is traced, the core adds the tangents, and both results are put into the
//! containers of the function's value.

use defn_core::builder::{BuildCreate, Ops};
use defn_core::jvp::{Control, TracedPushforward, require_tangent, tangent_type};
use defn_core::weak::Weak;
use defn_core::{Tensor, TensorType, vectorize};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::containers::{self, Mode, Tree};
use crate::control::controlled;
use crate::error::{Fallible, guard};
use crate::grad::{Derivative, Gradient, Traced, first_of_pair, with_derivative};
use crate::jit::leaf::weak as weak_number;
use crate::jit::{Jitted, result_tensor, wrap};
use crate::misuse::Misuse;
use crate::numbers::NumberParameters;
use crate::ops;

/// The forward mode of a traced function, with tangents of some variables and of some results.
struct NumberedPushforward {
    pushforward: TracedPushforward,
    numbers: NumberParameters,
    /// The types of the traced region's inputs.
    inputs: Vec<TensorType>,
    /// The variables with tangents.
    varied: Vec<usize>,
}

impl NumberedPushforward {
    fn new(
        traced: &Traced<'_>,
        varied: Vec<usize>,
        of: &[usize],
        control: Control,
    ) -> Fallible<NumberedPushforward> {
        let Traced { closed, numbers, variables, lanes, .. } = traced;
        let arguments = ops::with(|ops| numbers.arguments(ops, closed, variables))?;
        let wrt = numbers.of_variables(&varied);
        let with_tangents: Vec<&Tensor> = varied.iter().map(|&variable| &variables[variable]).collect();
        let pushforward =
            TracedPushforward::new(&closed.region, (&wrt, of), lanes, arguments, &with_tangents, control)?;
        let inputs = closed.region.inputs().to_vec();
        Ok(NumberedPushforward { pushforward, numbers: numbers.clone(), inputs, varied })
    }

    /// The values and the tangents of the results, for one tangent of each variable in `varied`.
    fn apply(&self, tangents: &[Tensor]) -> Fallible<(Vec<Tensor>, Vec<Tensor>)> {
        ops::with(|ops| self.pushforward.apply(ops, tangents, &self.begin()))
    }

    /// The tangents of the parameters from those of the variables.
    fn begin(&self) -> impl Fn(&mut Ops, &[Tensor]) -> defn_core::Result<Vec<Tensor>> {
        |ops, tangents| self.numbers.tangents(ops, &self.inputs, &self.varied, tangents)
    }
}

/// The Jacobians of each of the first results by the variables: one tangent for each element of a variable, on a
/// vectorized axis.
pub(crate) fn jacobian(traced: &Traced<'_>, results: usize) -> Fallible<Vec<Vec<Tensor>>> {
    let variables = traced.variables.len();
    let of: Vec<usize> = (0..results).collect();
    let numbered = NumberedPushforward::new(traced, (0..variables).collect(), &of, Control::Joint)?;
    let name = vectorize::fresh_name("element", &traced.variables);
    let mut rows = vec![Vec::with_capacity(variables); results];
    for variable in 0..variables {
        let begin = numbered.begin();
        let columns = ops::with(|ops| numbered.pushforward.jacobian(ops, variable, &name, &begin))?;
        rows.iter_mut().zip(columns).for_each(|(row, column)| row.push(column));
    }
    Ok(rows)
}

/// The structures of primals.
fn structures(primals: &Bound<'_, PyTuple>) -> Fallible<Vec<Tree>> {
    primals.iter().map(|primal| Ok(containers::flatten("jvp", Mode::State, &primal)?.tree)).collect()
}

/// For each leaf of the primals its tangent, or None.
fn tangents<'py>(
    primals: &[Tree],
    tangents: &Bound<'py, PyTuple>,
) -> Fallible<Vec<Option<Bound<'py, PyAny>>>> {
    let py = tangents.py();
    if primals.len() != tangents.len() {
        let (got, required) =
            (tangents.len().to_string(), format!("{}, one for each argument", primals.len()));
        let option = "the number of tangents".to_owned();
        return Err(Misuse::OptionValue { op: "jvp", option, got, required }.into());
    }
    let mut found = Vec::new();
    for (position, (primal, tangent)) in primals.iter().zip(tangents).enumerate() {
        let given = containers::flatten("jvp", Mode::State, &tangent)?;
        let Some(leaves) = primal.leaf_positions_in_parts(py, &given.tree)? else {
            let (what, other) = (format!("tangent {position}"), format!("argument {position}"));
            let difference = given.tree.difference(py, primal)?;
            return Err(Misuse::Structure { op: "jvp".into(), what, other, difference }.into());
        };
        found.extend(leaves.into_iter().map(|leaf| leaf.map(|leaf| given.leaves[leaf].clone())));
    }
    Ok(found)
}

/// The function, traced at all primals that are inputs.
fn trace<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyTuple>,
    structures: &[Tree],
) -> Fallible<Traced<'py>> {
    let is_input = |position: &i64| structures[*position as usize].has_leaves();
    let argnums = (0..structures.len() as i64).filter(is_input).collect();
    let derivative = Derivative::Gradient;
    let spec = Gradient { argnums, single: false, transform: None, derivative, has_aux: false };
    spec.trace(fun, primals, None, false)
}

/// A tangent as a tensor; a plain number is weak.
fn tangent_tensor(leaf: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    let tensor = result_tensor("jvp", leaf)?;
    Ok(if weak_number(leaf)?.is_some() { tensor.with_weak(Weak::argument()) } else { tensor })
}

/// The value of a function and its tangent at two tuples, the primals and their tangents. With `has_aux` the value is a
/// pair, whose second part has no tangent and is returned last.
pub(crate) fn call<'py>(
    fun: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    has_aux: bool,
) -> Fallible<Bound<'py, PyAny>> {
    let py = args.py();
    let (primals, along) = (args.get_item(0)?, args.get_item(1)?);
    let (primals, along) = (primals.cast::<PyTuple>()?, along.cast::<PyTuple>()?);
    let structures = structures(primals)?;
    let leaves = tangents(&structures, along)?;
    let traced = trace(fun, primals, &structures)?;
    let (mut varied, mut given) = (Vec::new(), Vec::new());
    for (variable, leaf) in leaves.iter().enumerate() {
        let Some(leaf) = leaf else { continue };
        let tangent = tangent_tensor(leaf)?;
        require_tangent("jvp", &traced.variables[variable], &tangent)?;
        varied.push(variable);
        given.push(tangent);
    }
    let count = if has_aux { first_of_pair(py, "jvp", &traced.value)?.1 } else { traced.lanes.len() };
    let of: Vec<usize> = (0..count).collect();
    let numbered = NumberedPushforward::new(&traced, varied, &of, Control::Joint)?;
    let (values, pushed) = numbered.apply(&given)?;
    let values = wrap(py, values.into_iter())?;
    let pushed = wrap(py, pushed.into_iter())?;
    // Beside the tangent, a part without one is as in the value.
    let mut beside = pushed.into_iter().chain(values.iter().skip(count).cloned());
    let tangent = traced.value.tree.unflatten(py, &mut beside)?;
    let value = traced.value.tree.unflatten(py, &mut values.into_iter())?;
    let tangent = if has_aux { tangent.get_item(0)? } else { tangent };
    Ok(with_derivative(&value, tangent, has_aux)?.into_any())
}

/// Maps tangents of a function's arguments to the tangent of its value.
#[pyclass(frozen, module = "defn._core")]
struct Linear {
    numbered: NumberedPushforward,
    /// The variables.
    variables: Vec<Tensor>,
    primals: Vec<Tree>,
    value: Tree,
}

#[pymethods]
impl Linear {
    /// The tangent of the value.
    #[pyo3(signature = (*tangents))]
    fn __call__<'py>(&self, tangents: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let py = tangents.py();
            let leaves = self::tangents(&self.primals, tangents)?;
            let mut given = Vec::with_capacity(self.numbered.varied.len());
            for (variable, leaf) in leaves.iter().enumerate() {
                let value = &self.variables[variable];
                let tangent = leaf.as_ref().map(tangent_tensor).transpose()?;
                tangent.as_ref().map_or(Ok(()), |tangent| require_tangent("jvp", value, tangent))?;
                if self.numbered.varied.contains(&variable) {
                    given.push(tangent.map_or_else(|| zeros(value), Ok)?);
                }
            }
            let (_, pushed) = self.numbered.apply(&given)?;
            self.value.unflatten(py, &mut wrap(py, pushed.into_iter())?.into_iter())
        })
    }
}

/// The tangent of zero.
fn zeros(value: &Tensor) -> Fallible<Tensor> {
    let ty = tangent_type(value.ty());
    ops::with(|ops| ops.full(ty.shape, ty.dtype, 0))
}

/// A function's value at some arguments, and its linearization there. With `has_aux` the value is a pair, whose second part
/// has no tangent and is returned last.
#[pyfunction]
fn linearize<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyTuple>,
    has_aux: bool,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let py = primals.py();
        let structures = structures(primals)?;
        let traced = trace(fun, primals, &structures)?;
        let varied = traced.variables.iter().enumerate();
        let varied =
            varied.filter(|(_, x)| x.ty().dtype.is_inexact()).map(|(variable, _)| variable).collect();
        let first = if has_aux { Some(first_of_pair(py, "linearize", &traced.value)?) } else { None };
        let count = first.as_ref().map_or(traced.lanes.len(), |(_, leaves)| *leaves);
        let of: Vec<usize> = (0..count).collect();
        let numbered = NumberedPushforward::new(&traced, varied, &of, Control::Apart)?;
        let (values, pushforward) = ops::with(|ops| numbered.pushforward.linearize(ops))?;
        let numbered = NumberedPushforward { pushforward, ..numbered };
        let value = traced.value.tree.unflatten(py, &mut wrap(py, values.into_iter())?.into_iter())?;
        let form = first.map_or(traced.value.tree, |(first, _)| first);
        let linear = Linear { numbered, variables: traced.variables, primals: structures, value: form };
        let linear = Bound::new(py, linear)?.into_any();
        with_derivative(&value, linear, has_aux)
    })
}

/// A definition that computes a function's value and its tangent.
#[pyfunction]
fn pushforward(fun: &Bound<'_, PyAny>, has_aux: bool) -> Fallible<Jitted> {
    guard(|| {
        let (argnums, derivative) = (Vec::new(), Derivative::Tangent);
        Jitted::gradient(fun, Gradient { argnums, single: false, transform: None, derivative, has_aux })
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Linear>()?;
    module.add_function(wrap_pyfunction!(linearize, module)?)?;
    module.add_function(wrap_pyfunction!(pushforward, module)?)
}
