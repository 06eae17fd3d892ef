//! Gradients over containers: a region of the function is traced, the core differentiates it, and the results
//! are put into the variables' containers.

use defn_core::builder::{BuildControl, Ops};
use defn_core::grad::{TracedPullback, axes_of_variables, loss_at_positions};
use defn_core::jvp::has_few_variables;
use defn_core::trace::{Closed, Trace};
use defn_core::vectorize::{self, NamedAxes};
use defn_core::weak::Weak;
use defn_core::{ErrorKind, Tensor, grad};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::containers::{self, Flat, Leaves, Mode, Tree};
use crate::control::controlled;
use crate::convert;
use crate::error::{Fallible, Fault, guard, if_fits};
use crate::jit::leaf::weak as weak_number;
use crate::jit::{Jitted, function_name, leaf_type, result_tensor, wrap};
use crate::jvp;
use crate::location;
use crate::misuse::Misuse;
use crate::numbers::NumberParameters;
use crate::ops;

/// The kind of derivative that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Derivative {
    /// The gradient of the sum of one tensor.
    Gradient,
    /// The same, with the function's value.
    ValueAndGradient,
    /// The derivative of each element of the value by each element of the variables.
    Jacobian(JacobianMode),
    /// The value and its tangent, along tangents of the arguments.
    Tangent,
}

/// The mode in which a Jacobian is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JacobianMode {
    /// Forward where the variables have no more elements than the value, else reverse.
    Either,
    Forward,
    Reverse,
}

/// The parameters of a differentiation.
pub(crate) struct Gradient {
    /// The positional arguments to differentiate by.
    pub(crate) argnums: Vec<i64>,
    /// Whether one gradient is returned instead of a tuple.
    pub(crate) single: bool,
    /// Maps the function's value to the tensor that is differentiated.
    pub(crate) transform: Option<Py<PyAny>>,
    /// The kind of result.
    pub(crate) derivative: Derivative,
    /// Whether the function returns a pair: the value that is differentiated, and the rest, which is returned too.
    pub(crate) has_aux: bool,
}

/// A function that was traced at its variables.
pub(crate) struct Traced<'py> {
    pub(crate) closed: Closed,
    /// The variables. They have the vectorized axes of all variables and of the tensors that the function
    /// captures.
    pub(crate) variables: Vec<Tensor>,
    /// How the variables are numbered as parameters of the region.
    pub(crate) numbers: NumberParameters,
    /// The flattened variables of each argument.
    pub(crate) trees: Vec<Flat<'py>>,
    /// The function's value.
    pub(crate) value: Flat<'py>,
    /// The vectorized axes of the results.
    pub(crate) lanes: Vec<NamedAxes>,
}

impl Gradient {
    /// Whether the arguments are two tuples, the function's arguments and their tangents.
    pub(crate) fn takes_tangents(&self) -> bool {
        match self.derivative {
            Derivative::Tangent => true,
            Derivative::Gradient | Derivative::ValueAndGradient | Derivative::Jacobian(_) => false,
        }
    }

    /// Differentiates a function at some arguments, in the open trace or eagerly.
    pub(crate) fn call<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = args.py();
        let with_value = match self.derivative {
            Derivative::Jacobian(mode) => return self.jacobian(mode, fun, args, kwargs),
            Derivative::Tangent => return jvp::call(fun, args, self.has_aux),
            Derivative::Gradient => false,
            Derivative::ValueAndGradient => true,
        };
        let traced = self.trace(fun, args, kwargs, true)?;
        let wrt: Vec<usize> = (0..traced.numbers.count()).collect();
        let count = traced.value.leaves.len();
        let outputs = ops::with(|ops| {
            let region = grad::value_and_grad(&traced.closed.region, count, &wrt)?;
            let arguments = traced.numbers.arguments(ops, &traced.closed, &traced.variables)?;
            let mut outputs = ops.inline(&region, &arguments)?;
            let gradients = outputs.split_off(count + 1);
            outputs.extend(traced.numbers.gradients(ops, &gradients)?);
            Ok(outputs)
        })?;
        // The outputs are the value, the loss, and the gradients.
        let lanes = traced.lanes.iter().map(|lanes| &lanes[..]);
        let lanes = lanes.chain(traced.variables.iter().map(Tensor::vectorized_axes));
        let outputs = outputs.into_iter().zip(lanes).map(|(output, lanes)| output.with_vectorized(lanes));
        let mut wrapped = wrap(py, outputs)?.into_iter();
        let values: Leaves<'py> = wrapped.by_ref().take(count).collect();
        let gradient = self.parts(py, &traced.trees, wrapped.skip(1))?;
        if !with_value && !self.has_aux {
            return Ok(gradient);
        }
        let value = traced.value.tree.unflatten(py, &mut values.into_iter())?;
        let parts = if with_value { [value, gradient] } else { [gradient, value.get_item(1)?] };
        Ok(PyTuple::new(py, parts)?.into_any())
    }

    /// Puts one leaf for each variable into the variables' containers.
    fn parts<'py>(
        &self,
        py: Python<'py>,
        trees: &[Flat<'py>],
        mut leaves: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let mut parts = Vec::with_capacity(trees.len());
        for flat in trees {
            parts.push(flat.tree.unflatten(py, &mut leaves)?);
        }
        Ok(if self.single { parts.remove(0) } else { PyTuple::new(py, parts)?.into_any() })
    }

    /// Traces a function at the arguments by which it is differentiated. With `with_loss`, the last result is
    /// the tensor that is differentiated.
    pub(crate) fn trace<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        with_loss: bool,
    ) -> Fallible<Traced<'py>> {
        let py = args.py();
        let positions = self.positions(fun, args.len())?;
        let mut trees: Vec<Flat<'py>> = Vec::with_capacity(positions.len());
        for &position in &positions {
            let flat = containers::flatten("grad", Mode::State, &args.get_item(position)?)?;
            if flat.leaves.is_empty() {
                return Err(Misuse::StaticGrad { position, fun: function_name(fun) }.into());
            }
            trees.push(flat);
        }
        let (mut variables, mut weak_numbers) = (Vec::new(), Vec::new());
        for leaf in trees.iter().flat_map(|flat| &flat.leaves) {
            let variable = result_tensor("grad", leaf)?;
            let number = weak_number(leaf)?;
            variables.push(if number.is_some() { variable.with_weak(Weak::argument()) } else { variable });
            weak_numbers.push(number);
        }
        let mut variables = ops::with(|ops| vectorize::broadcast_vectors(ops, &variables, false))?;
        loop {
            let (tracing, parameters) = Trace::begin_like(&variables);
            let tracing = tracing.at(location::of_function(fun));
            let mut wrapped = wrap(py, parameters.into_iter())?.into_iter();
            let mut inner: Vec<Bound<'py, PyAny>> = args.iter().collect();
            for (&position, flat) in positions.iter().zip(&trees) {
                inner[position] = flat.tree.unflatten(py, &mut wrapped)?;
            }
            let value = fun.call(PyTuple::new(py, inner)?, kwargs)?;
            let loss = if with_loss {
                let differentiated = if self.has_aux { first(&value)? } else { value.clone() };
                let chosen = match &self.transform {
                    Some(transform) => transform.bind(py).call1((differentiated,))?,
                    None => differentiated,
                };
                Some(loss(&chosen)?)
            } else {
                None
            };
            let value = containers::flatten("grad", Mode::State, &value)?;
            let mut results: Vec<Tensor> =
                value.leaves.iter().map(|leaf| result_tensor("grad", leaf)).collect::<Fallible<_>>()?;
            let differentiated = if with_loss { results.len() } else { 0 };
            let own = vectorize::union("grad", &variables)?;
            if let Some(loss) = loss {
                results.push(ops::with(|ops| loss_at_positions(ops, &loss, &own))?);
            }
            let lanes: Vec<NamedAxes> =
                results.iter().map(|result| result.vectorized_axes().into()).collect();
            let closed = tracing.finish("grad", &results)?;
            let required_lanes = axes_of_variables(&own, &closed.lanes, &lanes[differentiated..]);
            if required_lanes == own {
                let numbers = NumberParameters::new(&closed, &variables, &weak_numbers);
                return Ok(Traced { closed, variables, numbers, trees, value, lanes });
            }
            variables = ops::with(|ops| {
                variables
                    .iter()
                    .map(|x| vectorize::broadcast_vectorized(ops, "grad", x, &required_lanes))
                    .collect()
            })?;
        }
    }

    /// The derivative of each element of the value by each element of the variables.
    fn jacobian<'py>(
        &self,
        mode: JacobianMode,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = args.py();
        let traced = self.trace(fun, args, kwargs, false)?;
        let first = if self.has_aux { Some(first_of_pair(py, "jacobian", &traced.value)?) } else { None };
        let count = first.as_ref().map_or(traced.lanes.len(), |(_, leaves)| *leaves);
        let is_forward = match mode {
            JacobianMode::Forward => true,
            JacobianMode::Reverse => false,
            JacobianMode::Either => {
                has_few_variables(&traced.closed.region, &traced.lanes[..count], &traced.variables)
            }
        };
        let columns = if is_forward { Some(jvp::jacobian(&traced, count)) } else { None };
        // In either mode: a user's rule for gradients may have no forward mode.
        let parts = match columns {
            Some(Err(Fault::Core(error)))
                if mode == JacobianMode::Either && matches!(error.kind(), ErrorKind::NoGradient { .. }) =>
            {
                self::rows(&traced, count)?
            }
            Some(columns) => columns?,
            None => self::rows(&traced, count)?,
        };
        let mut rows: Vec<Bound<'py, PyAny>> = Vec::with_capacity(parts.len());
        for parts in parts {
            rows.push(self.parts(py, &traced.trees, wrap(py, parts.into_iter())?.into_iter())?);
        }
        let Some((first, _)) = first else {
            return traced.value.tree.unflatten(py, &mut rows.into_iter());
        };
        let arguments = ops::with(|ops| traced.numbers.arguments(ops, &traced.closed, &traced.variables))?;
        let value = values(&traced, &arguments, py)?;
        let jacobian = first.unflatten(py, &mut rows.into_iter())?;
        Ok(PyTuple::new(py, [jacobian, value.get_item(1)?])?.into_any())
    }

    /// The function's value, and a function that maps its cotangents to cotangents of the variables. With `has_aux` the
    /// second part of the value has no cotangent and is returned last.
    fn pullback<'py>(
        self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyTuple>> {
        let py = args.py();
        let traced = self.trace(fun, args, kwargs, false)?;
        let first = if self.has_aux { Some(first_of_pair(py, "vjp", &traced.value)?) } else { None };
        let pull = NumberedPullback::new(&traced, first.as_ref().map(|(_, leaves)| *leaves))?;
        let value = values(&traced, pull.traced.arguments(), py)?;
        let trees = traced.trees.into_iter().map(|flat| flat.tree).collect();
        let of = match first {
            Some((first, _)) => first,
            None => traced.value.tree,
        };
        let pullback = Bound::new(py, Pullback { pull, value: of, trees, single: self.single })?.into_any();
        with_derivative(&value, pullback, self.has_aux)
    }

    fn positions(&self, fun: &Bound<'_, PyAny>, count: usize) -> Fallible<Vec<usize>> {
        let mut positions = Vec::with_capacity(self.argnums.len());
        for &argnum in &self.argnums {
            let position = position(fun, argnum, count)?;
            if positions.contains(&position) {
                let (option, got) = ("argnums".to_owned(), format!("{:?}", self.argnums));
                let required = "a list that names each argument once".to_owned();
                return Err(Misuse::OptionValue { op: "grad", option, got, required }.into());
            }
            positions.push(position);
        }
        Ok(positions)
    }
}

/// The position of an argument of a function that is called with `count` of them; negative ones count from the last.
pub(crate) fn position(fun: &Bound<'_, PyAny>, argnum: i64, count: usize) -> Fallible<usize> {
    let extent = count as i64;
    if !(-extent..extent).contains(&argnum) {
        let given = argnum.to_string();
        return Err(Misuse::ArgNums { given, fun: function_name(fun), count }.into());
    }
    Ok(argnum.rem_euclid(extent) as usize)
}

/// The value of a traced function, with its structure.
fn values<'py>(traced: &Traced<'py>, arguments: &[Tensor], py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
    let values = ops::with(|ops| ops.inline(&traced.closed.region, arguments))?;
    let values = values.into_iter().zip(&traced.lanes).map(|(value, lanes)| value.with_vectorized(lanes));
    traced.value.tree.unflatten(py, &mut wrap(py, values)?.into_iter())
}

/// The Jacobians of each of the first results by the variables, in reverse mode: one cotangent for each element of the
/// result, on a vectorized axis.
fn rows(traced: &Traced<'_>, count: usize) -> Fallible<Vec<Vec<Tensor>>> {
    let numbered = NumberedPullback::new(traced, Some(count))?;
    let (pull, finish) = (&numbered.traced, numbered.finish());
    let name = vectorize::fresh_name("element", &traced.variables);
    let results = 0..pull.results().len();
    results.map(|position| ops::with(|ops| pull.jacobian(ops, position, &name, &finish))).collect()
}

/// The pullback of a traced function, whose parameters are the variables in the dtypes that they meet.
struct NumberedPullback {
    traced: TracedPullback,
    numbers: NumberParameters,
}

impl NumberedPullback {
    /// The pullback of the first `results` results, or of all.
    fn new(traced: &Traced<'_>, results: Option<usize>) -> Fallible<NumberedPullback> {
        let Traced { closed, numbers, variables, lanes, .. } = traced;
        let lanes = &lanes[..results.unwrap_or(lanes.len())];
        let arguments = ops::with(|ops| numbers.arguments(ops, closed, variables))?;
        let traced = TracedPullback::new(&closed.region, numbers.count(), lanes, arguments, variables)?;
        Ok(NumberedPullback { traced, numbers: numbers.clone() })
    }

    /// The gradients of the variables from those of the parameters.
    fn finish(&self) -> impl Fn(&mut Ops, Vec<Tensor>) -> defn_core::Result<Vec<Tensor>> {
        |ops, gradients| self.numbers.gradients(ops, &gradients)
    }
}

/// Maps cotangents of a function's value to cotangents of its variables.
#[pyclass(frozen, module = "defn._core")]
struct Pullback {
    pull: NumberedPullback,
    value: Tree,
    trees: Vec<Tree>,
    single: bool,
}

#[pymethods]
impl Pullback {
    /// The cotangents of the variables, in their containers.
    fn __call__<'py>(&self, cotangent: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let py = cotangent.py();
            let given = containers::flatten("vjp", Mode::State, cotangent)?;
            if !given.tree.equals(py, &self.value)? {
                let (what, other) = ("the cotangent".to_owned(), "the value".to_owned());
                let difference = given.tree.difference(py, &self.value)?;
                return Err(Misuse::Structure { op: "vjp".into(), what, other, difference }.into());
            }
            let tensors = given.leaves.iter().map(|leaf| result_tensor("vjp", leaf));
            let tensors = tensors.collect::<Fallible<Vec<_>>>()?;
            self.pull.traced.require_shapes(&tensors)?;
            let gradients = ops::with(|ops| self.pull.traced.apply(ops, &tensors, &self.pull.finish()))?;
            let mut leaves = wrap(py, gradients.into_iter())?.into_iter();
            let mut parts = Vec::with_capacity(self.trees.len());
            for tree in &self.trees {
                parts.push(tree.unflatten(py, &mut leaves)?);
            }
            Ok(if self.single { parts.remove(0) } else { PyTuple::new(py, parts)?.into_any() })
        })
    }
}

/// A function's value beside its derivative. With `has_aux` the value is a pair, whose second part is last.
pub(crate) fn with_derivative<'py>(
    value: &Bound<'py, PyAny>,
    derivative: Bound<'py, PyAny>,
    has_aux: bool,
) -> Fallible<Bound<'py, PyTuple>> {
    let py = value.py();
    Ok(match has_aux {
        false => PyTuple::new(py, [value.clone(), derivative])?,
        true => PyTuple::new(py, [value.get_item(0)?, derivative, value.get_item(1)?])?,
    })
}

/// The structure of the first part of a pair, and the number of its leaves.
pub(crate) fn first_of_pair(py: Python<'_>, op: &'static str, value: &Flat<'_>) -> Fallible<(Tree, usize)> {
    value.tree.first_of_pair(py).ok_or_else(|| {
        let (option, got) = ("has_aux".to_owned(), "True".to_owned());
        let required = "False unless the function returns a pair: its value, and the rest".to_owned();
        Misuse::OptionValue { op, option, got, required }.into()
    })
}

/// The first part of a pair that a function returned.
fn first<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    let flat = containers::flatten("grad", Mode::State, value)?;
    first_of_pair(value.py(), "grad", &flat)?;
    Ok(value.get_item(0)?)
}

/// The tensor that is differentiated.
fn loss(value: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    let py = value.py();
    if if_fits(py, leaf_type("grad", value))?.is_some() {
        return result_tensor("grad", value);
    }
    let what = match if_fits(py, containers::flatten("grad", Mode::State, value))? {
        Some(flat) => flat.tree.text(py)?,
        None => format!("of type {}", value.get_type().name()?),
    };
    Err(Misuse::GradValue { what }.into())
}

/// The positions of the arguments by which to differentiate, and whether a single position was given instead
/// of a list.
fn parse_argnums(argnums: Option<&Bound<'_, PyAny>>) -> Fallible<(Vec<i64>, bool)> {
    let Some(value) = argnums else {
        return Ok((vec![0], true));
    };
    match convert::index(value)? {
        Some(argnum) => Ok((vec![argnum], true)),
        None => match if_fits(value.py(), value.extract::<Vec<i64>>())? {
            Some(list) if !list.is_empty() => Ok((list, false)),
            Some(_) | None => Err(convert::bad("grad", "argnums", value, "an int or a tuple of ints")?),
        },
    }
}

fn with_value_or_not(with_value: bool) -> Derivative {
    if with_value { Derivative::ValueAndGradient } else { Derivative::Gradient }
}

/// A definition that computes the gradient of a function, and with `with_value` also its value.
#[pyfunction]
#[pyo3(signature = (fun, argnums = None, transform = None, with_value = false, has_aux = false))]
fn gradient(
    fun: &Bound<'_, PyAny>,
    argnums: Option<&Bound<'_, PyAny>>,
    transform: Option<Py<PyAny>>,
    with_value: bool,
    has_aux: bool,
) -> Fallible<Jitted> {
    guard(|| {
        let (argnums, single) = parse_argnums(argnums)?;
        let derivative = with_value_or_not(with_value);
        Jitted::gradient(fun, Gradient { argnums, single, transform, derivative, has_aux })
    })
}

/// A definition that computes the derivative of each element of a function's value.
#[pyfunction]
#[pyo3(signature = (fun, argnums = None, mode = None, has_aux = false))]
fn jacobian(
    fun: &Bound<'_, PyAny>,
    argnums: Option<&Bound<'_, PyAny>>,
    mode: Option<&str>,
    has_aux: bool,
) -> Fallible<Jitted> {
    guard(|| {
        let (argnums, single) = parse_argnums(argnums)?;
        let derivative = Derivative::Jacobian(match mode {
            Some("forward") => JacobianMode::Forward,
            Some("reverse") => JacobianMode::Reverse,
            Some(_) | None => JacobianMode::Either,
        });
        Jitted::gradient(fun, Gradient { argnums, single, transform: None, derivative, has_aux })
    })
}

/// A function's value at some arguments, and a function from its cotangents to cotangents of the variables.
#[pyfunction]
#[pyo3(signature = (fun, argnums, args, kwargs = None, has_aux = false))]
fn vjp<'py>(
    fun: &Bound<'py, PyAny>,
    argnums: Option<&Bound<'py, PyAny>>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    has_aux: bool,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let (argnums, single) = parse_argnums(argnums)?;
        let derivative = Derivative::Gradient;
        Gradient { argnums, single, transform: None, derivative, has_aux }.pullback(fun, args, kwargs)
    })
}

/// The gradient of a function of one argument, at a container.
#[pyfunction]
#[pyo3(signature = (vars, fun, transform = None, with_value = false, has_aux = false))]
fn gradient_at<'py>(
    vars: &Bound<'py, PyAny>,
    fun: &Bound<'py, PyAny>,
    transform: Option<Py<PyAny>>,
    with_value: bool,
    has_aux: bool,
) -> Fallible<Bound<'py, PyAny>> {
    let derivative = with_value_or_not(with_value);
    let spec = Gradient { argnums: vec![0], single: true, transform, derivative, has_aux };
    let definition = guard(|| Jitted::gradient(fun, spec))?;
    Ok(Bound::new(fun.py(), definition)?.call1((vars,))?)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Pullback>()?;
    module.add_function(wrap_pyfunction!(jacobian, module)?)?;
    module.add_function(wrap_pyfunction!(vjp, module)?)?;
    module.add_function(wrap_pyfunction!(gradient, module)?)?;
    module.add_function(wrap_pyfunction!(gradient_at, module)?)
}
