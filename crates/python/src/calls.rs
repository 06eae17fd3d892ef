//! Values that a host function computes while a program runs, and user-defined blocks.

use std::cell::RefCell;

use defn_core::builder::{self, Arg, BuildControl, Ops, Tag, exact_scalar};
use defn_core::{ErrorKind, Name, Tensor, TensorType, trace, vectorize};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::build;
use crate::containers::{self, Flat, Mode, Tree};
use crate::control::{FaultCarrier, container, controlled, operands, same_structure, tensors};
use crate::convert;
use crate::error::Fallible;
use crate::hooks::{self, Slot};
use crate::jit::{leaf_model, wrap};
use crate::misuse::Misuse;
use crate::ops;
use crate::recursion;

/// A host function, and the structures of its argument and result.
pub(crate) struct HostCall {
    pub(crate) fun: Py<PyAny>,
    value: Tree,
    output: Tree,
}

impl HostCall {
    /// Calls the function with the values. The results are tensors of the outputs' types.
    pub(crate) fn compute(
        &self,
        py: Python<'_>,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> Fallible<Vec<Tensor>> {
        // The function may run the program that called it.
        let _call = recursion::enter("runtime_call")?;
        let op = "runtime_call";
        let value = container(py, &self.value, values)?;
        // A trace may be open on this thread that does not belong to this run.
        let results = trace::suspended(|| {
            let result = self.fun.bind(py).call1((value,))?;
            operands(op, &result)
        })?;
        let results = same_structure(py, op, "the function's value", results, "the output", &self.output)?;
        let mut tensors = Vec::with_capacity(results.len());
        for (index, (arg, expected)) in results.into_iter().zip(outputs).enumerate() {
            let got = match &arg {
                Arg::Value(tensor) => vectorize::type_text(tensor),
                Arg::Number(number) => format!("a number ({})", number.dtype()),
            };
            let tensor = match arg {
                Arg::Value(tensor) if !tensor.is_vectorized() && expected.is_compatible(tensor.ty()) => {
                    tensor
                }
                // A plain number takes the declared type.
                Arg::Number(number)
                    if expected.shape.rank() == 0 && expected.dtype.merge_weak(number) == expected.dtype =>
                {
                    build::scalar(exact_scalar("runtime_call", expected, number)?)?
                }
                Arg::Value(_) | Arg::Number(_) => {
                    let path = self.output.leaf_paths(py)?.swap_remove(index);
                    let path = if path.is_empty() { path } else { format!(" at {path}") };
                    return Err(Misuse::HostResult { got, path, expected: expected.clone() }.into());
                }
            };
            tensors.push(tensor);
        }
        Ok(tensors)
    }
}

/// The tag of a block, and the structures of the block's arguments and result.
pub(crate) struct BlockTag {
    pub(crate) tag: Py<PyAny>,
    /// One structure for each argument.
    pub(crate) args: Vec<Tree>,
    pub(crate) output: Tree,
}

/// The tensor types that a container of templates describes.
struct Output {
    types: Vec<TensorType>,
    tree: Tree,
}

impl Output {
    fn parse(op: &'static str, output: &Bound<'_, PyAny>) -> Fallible<Output> {
        let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, output)?;
        let mut types = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let model = leaf_model(op, leaf)?;
            // A block becomes a node only for plain tensors. Its vectorized axes are handled by the default
            // implementation.
            if model.is_vectorized() && op == "runtime_call" {
                let axes = vectorize::vectorized_axes_text(model.vectorized_axes());
                return Err(ErrorKind::NotVectorizable { op, what: "the output", axes }.into());
            }
            types.push(model.ty().clone());
        }
        Ok(Output { types, tree })
    }
}

/// The result of a host function that is called each time the program runs.
#[pyfunction]
fn runtime_call<'py>(
    output: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    fun: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (py, op) = (value.py(), "runtime_call");
        if !fun.is_callable() {
            return Err(convert::bad(op, "fun", fun, "a function")?);
        }
        let Output { types, tree } = Output::parse(op, output)?;
        let (values, value) = tensors(op, value)?;
        let call = HostCall { fun: fun.clone().unbind(), value, output: tree.clone_ref(py) };
        // If no hooks are collected, the program never runs.
        let slot = hooks::push(Slot::Call(call)).unwrap_or_default();
        let results = ops::with(|ops| ops.runtime_call(slot, &types, &values))?;
        container(py, &tree, &results)
    })
}

/// A user-defined block: a default implementation under the name of a tag. `with_tag` says whether the
/// default takes the tag before the arguments.
#[pyfunction]
fn block<'py>(
    tag: &Bound<'py, PyAny>,
    text: (String, String),
    args: &Bound<'py, PyAny>,
    output: Option<&Bound<'py, PyAny>>,
    fun: &Bound<'py, PyAny>,
    with_tag: bool,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (py, op) = (tag.py(), if with_tag { "block" } else { "optional" });
        if !args.is_instance_of::<PyList>() && !args.is_instance_of::<PyTuple>() {
            return Err(convert::bad(op, "args", args, "a list of arguments")?);
        }
        if !fun.is_callable() {
            return Err(convert::bad(op, "fun", fun, "a function")?);
        }
        let expected = output.map(|output| Output::parse(op, output)).transpose()?;
        let (mut trees, mut values) = (Vec::new(), Vec::new());
        let args: Vec<Bound<'py, PyAny>> = args.try_iter()?.collect::<PyResult<_>>()?;
        let operands_end =
            args.iter().rposition(|arg| !arg.is_instance_of::<PyDict>()).map_or(0, |at| at + 1);
        for (position, arg) in args.iter().enumerate() {
            let (leaves, tree) = if position < operands_end {
                tensors(op, arg)?
            } else {
                // Trailing options: numbers in them stay static.
                let Flat { leaves, tree, .. } = containers::flatten(op, Mode::Options, arg)?;
                (leaves.iter().map(|leaf| convert::tensor(op, leaf)).collect::<Fallible<_>>()?, tree)
            };
            values.extend(leaves);
            trees.push(tree);
        }
        let bridge = FaultCarrier::default();
        // The structure of the results: that of `output` if given, else that of the default's result.
        let structure: RefCell<Option<Tree>> = RefCell::new(None);
        let default = |_: &mut Ops, given: &[Tensor]| {
            bridge.run_user_function(|| {
                let mut leaves = wrap(py, given.iter().cloned())?.into_iter();
                let mut parts = if with_tag { vec![tag.clone()] } else { Vec::new() };
                for tree in &trees {
                    parts.push(tree.unflatten(py, &mut leaves)?);
                }
                let result = operands(op, &fun.call1(PyTuple::new(py, parts)?)?)?;
                let Some(Output { tree, .. }) = &expected else {
                    structure.replace(Some(result.tree));
                    return Ok(result.args);
                };
                structure.replace(Some(tree.clone_ref(py)));
                same_structure(py, op, "the default's value", result, "the output", tree)
            })
        };
        let found = || structure.borrow().as_ref().map(|tree| tree.clone_ref(py)).unwrap_or_default();
        let tag = || {
            let args = trees.iter().map(|tree| tree.clone_ref(py)).collect();
            let entry = BlockTag { tag: tag.clone().unbind(), args, output: found() };
            let slot = hooks::push(Slot::Tag(entry)).unwrap_or_default();
            Tag { name: Name::from(text.0), attributes: Name::from(text.1), slot }
        };
        let types = expected.as_ref().map(|output| &output.types[..]);
        let result = builder::block(&mut ops::builder()?, tag, values, types, default);
        let results = bridge.into_result(result)?;
        container(py, &found(), &results)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(runtime_call, module)?)?;
    module.add_function(wrap_pyfunction!(block, module)?)
}
