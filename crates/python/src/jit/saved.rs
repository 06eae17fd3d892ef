//! Serialized compiled functions: the executable, and beside it the structure of the arguments and the results.

use std::sync::Arc;

use defn_core::backend::{Backend, Executable, HostMemory};
use defn_core::device::DeviceError;
use defn_core::format::{Array, native, native::Value};
use defn_core::weak::Weak;
use defn_core::{DType, ErrorKind, Name, Shape, Tensor, TensorType, vectorize};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use super::compiled::{Compiled, CompiledParts, flatten_arguments};
use super::guards::Capture;
use super::leaf::Borrowed;
use super::program::{Output, Program};
use crate::backends;
use crate::build;
use crate::containers::{self, Leaves, Mode, Numbers, Tree};
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::hooks::Table;
use crate::memory;
use crate::misuse::Misuse;
use crate::pjrt;
use crate::tensor::PyTensor;
use crate::trace_allocations;

const WRITE: &str = "save";
const READ: &str = "load";

impl Compiled {
    /// The bytes that [`pjrt_load`] reads.
    ///
    /// # Errors
    /// A program that asks the host for something, a compiler that cannot serialize, a captured tensor that is gone,
    /// and containers that cannot be stored.
    pub(super) fn write(&self, py: Python<'_>) -> Fallible<Vec<u8>> {
        if self.program.has_slots() {
            let problem = "the program shows values to the host, or asks it for some";
            let required = "one that the device runs alone is required; take hooks and runtime_call out";
            return Err(defn_core::Error::from(DeviceError::NotWritten { problem, required }).into());
        }
        let mut borrowed = Borrowed::default();
        let captures = self.captures(py, &mut borrowed)?;
        let captures = captures.iter().map(|tensor| Ok(Value::Tensor(Box::new(Array::of(WRITE, tensor)?))));
        let captures = captures.collect::<Fallible<_>>()?;
        let (outputs, tree) = self.program.results();
        let arguments = self.call.unflatten_pair(py, &mut blanks(py, self.models.len())?.into_iter())?.0;
        let results = tree.unflatten(py, &mut blanks(py, outputs.len())?.into_iter())?;
        let note = Value::Tuple(vec![
            Value::Text(self.name.clone()),
            containers::to_value(&arguments, Numbers::Tensors)?,
            Value::List(self.models.iter().enumerate().map(|(at, x)| self.model_value(at, x)).collect()),
            containers::to_value(&results, Numbers::Tensors)?,
            Value::List(outputs.iter().map(output_value).collect()),
            Value::List(captures),
        ]);
        let executable = self.program.executable();
        Ok(py.detach(|| executable.to_bytes(&native::write(WRITE, &note)?))?)
    }

    /// An argument as a value. A tensor is its type. A number is its dtype, and the indices of the further inputs
    /// that it is for.
    fn model_value(&self, position: usize, model: &Tensor) -> Value {
        if !model.is_weak() {
            return model_value(model);
        }
        let further = self.program.further().iter().enumerate();
        let own = further.filter(|(_, leaf)| **leaf == position).map(|(index, _)| Value::of_number(index));
        Value::Tuple(vec![Value::Text(model.ty().dtype.name().to_owned()), Value::List(own.collect())])
    }

    /// The function of an executable, with the data that was stored beside it.
    fn read(
        py: Python<'_>,
        executable: Arc<dyn Executable>,
        backend: &Arc<dyn Backend>,
        note: Vec<u8>,
    ) -> Fallible<Compiled> {
        let note = native::parse(READ, &HostMemory::from(note))?;
        let parts = note.into_tuple().ok_or_else(foreign)?;
        let [name, arguments, models, results, outputs, captures] = parts;
        let blank = |_: Array| blank();
        let arguments = containers::from_value(py, arguments, &blank)?;
        let call = flatten_arguments(arguments.cast::<PyTuple>().map_err(|_| foreign())?)?;
        let results = containers::from_value(py, results, &blank)?;
        let results = containers::flatten(READ, Mode::State, &results)?;
        let models = models.into_list().and_then(to_models);
        let outputs = outputs.into_list();
        let outputs = outputs.and_then(|outputs| outputs.into_iter().map(to_output).collect());
        let captures = captures.into_list();
        let captures = captures.and_then(|captures| captures.into_iter().map(Value::into_array).collect());
        let (Some(name), Some(models), Some(outputs), Some(captures)) =
            (name.into_text(), models, outputs, captures)
        else {
            return Err(foreign());
        };
        let ((models, further), outputs, captures): ((Vec<Tensor>, Vec<usize>), Vec<Output>, Vec<Array>) =
            (models, outputs, captures);
        let bound =
            captures.into_iter().map(|array| array.on(backend)).collect::<defn_core::Result<Vec<_>>>()?;
        let program = executable.program();
        let behind = further.iter().map(|&leaf| &models[leaf]);
        let inputs = models.iter().chain(behind).chain(&bound);
        let fits = models.len() + further.len() + bound.len() == program.inputs().len()
            && inputs.zip(program.inputs()).all(|(argument, input)| takes(argument, input))
            && call.leaves.len() == models.len()
            && results.leaves.len() == outputs.len()
            && are_outputs(&outputs, models.len(), program.results().len());
        if !fits {
            return Err(foreign());
        }
        let captures = bound.into_iter().map(Capture::Bound).collect();
        let region = program.clone();
        let program = Program::of_parts(&region, executable, (captures, Table::new()), outputs, results.tree);
        let program = program.with_further(further);
        let (fun, hooks, compiler) = (py.None(), None, None);
        let (tree, call) = (Tree::default(), call.tree);
        Ok(CompiledParts { fun, name, tree, call, models, program, hooks, compiler }.into())
    }
}

/// The error for bytes that are an executable, but not that of a Python function.
#[cold]
fn foreign() -> Fault {
    let problem = "the executable is not that of a function".to_owned();
    let required = "one that was saved by this package in Python is required".to_owned();
    ErrorKind::Malformed { op: READ, problem, required }.into()
}

/// A placeholder for a tensor.
fn blank() -> Fallible<PyTensor> {
    let ty = TensorType::scalar(DType::U8);
    Ok(PyTensor::new(trace_allocations::note(build::upload(&backends::host(), ty, vec![0])?)))
}

fn blanks(py: Python<'_>, count: usize) -> Fallible<Leaves<'_>> {
    (0..count).map(|_| Ok(Bound::new(py, blank()?)?.into_any())).collect()
}

/// The type of an argument that is a tensor, with its vectorized axes.
fn model_value(model: &Tensor) -> Value {
    let ty = model.ty();
    let name = |name: Option<&Name>| name.map_or(Value::None, |name| Value::Text(name.to_string()));
    Value::Tuple(vec![
        Value::Text(ty.dtype.name().to_owned()),
        Value::List(ty.shape.sizes().iter().map(|&size| Value::of_number(size)).collect()),
        Value::List(ty.shape.names().map(name).collect()),
        Value::of_axes(model.vectorized_axes()),
    ])
}

fn output_value(output: &Output) -> Value {
    match output {
        Output::Argument(position) => Value::Tuple(vec![Value::of_number(*position)]),
        Output::Result(position, lanes) => {
            Value::Tuple(vec![Value::of_number(*position), Value::of_axes(lanes)])
        }
    }
}

/// Whether every output is an existing argument, or a result that occurs once and in order.
fn are_outputs(outputs: &[Output], arguments: usize, results: usize) -> bool {
    let mut next = 0;
    let all = outputs.iter().all(|output| match output {
        Output::Argument(position) => *position < arguments,
        Output::Result(position, _) => {
            next += 1;
            *position + 1 == next
        }
    });
    all && next == results
}

/// Whether an input of a type accepts an argument.
fn takes(argument: &Tensor, input: &TensorType) -> bool {
    if argument.is_weak() { input.shape.rank() == 0 } else { input.is_compatible(argument.whole()) }
}

/// The arguments, and for each further input the argument that it is for.
fn to_models(values: Vec<Value>) -> Option<(Vec<Tensor>, Vec<usize>)> {
    let (mut models, mut inputs) = (Vec::with_capacity(values.len()), Vec::new());
    for (position, value) in values.into_iter().enumerate() {
        let Value::Tuple(parts) = value else { return None };
        if parts.len() != 2 {
            models.push(to_model(Value::Tuple(parts))?);
            continue;
        }
        let [dtype, own] = Value::Tuple(parts).into_tuple()?;
        let ty = TensorType::scalar(dtype.into_text()?.parse().ok()?);
        models.push(Tensor::template(ty).with_weak(Weak::argument()));
        for index in own.into_list()? {
            inputs.push((index.into_number()?, position));
        }
    }
    inputs.sort_unstable();
    let is_whole = inputs.iter().enumerate().all(|(at, (index, _))| at == *index);
    is_whole.then(|| (models, inputs.into_iter().map(|(_, position)| position).collect()))
}

fn to_model(value: Value) -> Option<Tensor> {
    let [dtype, sizes, names, lanes] = value.into_tuple()?;
    let sizes = sizes.into_list()?.into_iter().map(Value::into_number).collect::<Option<Vec<_>>>()?;
    let name = |value: Value| {
        if let Value::None = value {
            Some(None)
        } else {
            value.into_text().map(|name| Some(Name::from(name)))
        }
    };
    let names = names.into_list()?.into_iter().map(name).collect::<Option<Vec<_>>>()?;
    let lanes = lanes.into_axes()?;
    let inner = Shape::new(&sizes).with_names(names).ok()?;
    let shape = vectorize::whole_shape(&lanes, &inner);
    let ty = TensorType::new(dtype.into_text()?.parse().ok()?, shape).ok()?;
    Some(Tensor::template(ty).with_vectorized(&lanes))
}

fn to_output(value: Value) -> Option<Output> {
    let Value::Tuple(parts) = value else { return None };
    let mut parts = parts.into_iter();
    let position = parts.next()?.into_number()?;
    Some(match parts.next() {
        None => Output::Argument(position),
        Some(lanes) => Output::Result(position, lanes.into_axes()?),
    })
}

/// Restores a compiled function from its bytes, for the devices of a client.
///
/// # Errors
/// Bytes that the user does not declare as trusted. Their program runs in this process, and no check can tell what it
/// does.
#[pyfunction]
#[pyo3(signature = (data, trust, client = None, device_id = None))]
fn pjrt_load(
    data: &Bound<'_, PyAny>,
    trust: &Bound<'_, PyAny>,
    client: Option<&str>,
    device_id: Option<i64>,
) -> Fallible<Compiled> {
    guard(|| {
        let py = data.py();
        if !trust.cast::<PyBool>().is_ok_and(|trust| trust.is_true()) {
            return Err(Misuse::Untrusted { op: READ, trust: convert::describe(trust)? }.into());
        }
        let data = memory::bytes(READ, "data", data)?;
        let (compiler, backend) = pjrt::loader(py, client, device_id)?;
        let (executable, note) = py.detach(|| compiler.load(data.bytes()))?;
        Compiled::read(py, Arc::new(executable), &backend, note)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pjrt_load, module)?)
}
