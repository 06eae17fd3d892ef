//! User-defined blocks on Python backends: the callback for a tag, and its default.

use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Checks, Compiler, Executable};
use defn_core::builder::Builder;
use defn_core::op::UserBlockOp;
use defn_core::region::Region;
use defn_core::{Tensor, TensorType, trace};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::functions::{evaluator, on_backend};
use super::{PyBackend, adapter, base_class, buffer, defines, to_object};
use crate::calls::BlockTag;
use crate::containers::{self, Flat, Mode};
use crate::control::{container, operands, same_structure};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::hooks::{self, Slot, Table};
use crate::jit::{Borrowed, wrap};
use crate::misuse::Misuse;
use crate::ops;

/// The results of a block from a Python backend's callback: the callback named by the tag if the tag is a
/// str, else the callback for blocks. `None` on other backends, and without such a callback.
pub(crate) fn native(
    py: Python<'_>,
    backend: &Arc<dyn Backend>,
    block: &UserBlockOp,
    table: &Table,
    named: Option<Py<PyDict>>,
    values: &[Tensor],
    outputs: &[TensorType],
) -> Fallible<Option<Vec<Tensor>>> {
    let Some(object) = to_object(py, &**backend) else { return Ok(None) };
    let Some(Slot::Tag(tag)) = table.get(block.slot).map(|slot| &**slot) else { return Ok(None) };
    let own = match tag.tag.bind(py).cast::<PyString>() {
        Ok(name) => own_callback(&object, name.to_str()?),
        Err(_) => None,
    };
    if own.is_none() && !defines(&object, "block") {
        return Ok(None);
    }
    let templates: Vec<Tensor> = outputs.iter().map(|ty| Tensor::template(ty.clone())).collect();
    let out = container(py, &tag.output, &templates)?;
    let (args, captures) = values.split_at(block.args);
    let mut leaves = wrap(py, args.iter().cloned())?.into_iter();
    let args: Vec<Bound<'_, PyAny>> =
        tag.args.iter().map(|tree| tree.unflatten(py, &mut leaves)).collect::<Fallible<_>>()?;
    let call = || -> Fallible<(String, Bound<'_, PyAny>)> {
        if let Some((name, callback)) = own {
            let mut parts = vec![out];
            parts.extend(args);
            return Ok((name, callback.call1(PyTuple::new(py, parts)?)?));
        }
        let default = UserDefault {
            backend: object.clone().unbind(),
            slot: Arc::clone(&table[block.slot]),
            region: block.default.clone(),
            program: OnceLock::new(),
            captures: captures.to_vec(),
            table: table.clone(),
            named,
        };
        let parts = (&tag.tag, out, PyList::new(py, args)?, Bound::new(py, default)?);
        Ok(("block".to_owned(), object.call_method1(intern!(py, "block"), parts)?))
    };
    let (callback, result) = trace::suspended(call)?;
    let results = leaves_of(py, &object, &callback, tag, outputs, result)?;
    let adopted = results.into_iter().zip(outputs).map(|(result, ty)| {
        let buffer = buffer::adopt(py, object.as_unbound(), &callback, ty, result)?;
        Ok(Tensor::concrete(ty.clone(), buffer))
    });
    adopted.collect::<Fallible<_>>().map(Some)
}

/// The callback of a name, if the backend's class adds it to those of the base class or overrides it.
fn own_callback<'py>(backend: &Bound<'py, PyBackend>, name: &str) -> Option<(String, Bound<'py, PyAny>)> {
    let py = backend.py();
    let is_own = match base_class(py).and_then(|base| base.getattr_opt(name)) {
        Ok(None) => true,
        Ok(Some(_)) => defines(backend, name),
        Err(_) => false,
    };
    if !is_own {
        return None;
    }
    let callback = backend.getattr_opt(name).ok().flatten()?;
    callback.is_callable().then(|| (name.to_owned(), callback))
}

/// The flattened results of a callback, which returns a tuple of them or the container that the block
/// returns.
fn leaves_of<'py>(
    py: Python<'py>,
    backend: &Bound<'py, PyBackend>,
    callback: &str,
    tag: &BlockTag,
    outputs: &[TensorType],
    result: Bound<'py, PyAny>,
) -> Fallible<Vec<Bound<'py, PyAny>>> {
    if tag.output.is_leaf() {
        return Ok(vec![result]);
    }
    let is_list = result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>();
    if is_list && result.len()? == outputs.len() {
        return Ok(result.try_iter()?.collect::<PyResult<_>>()?);
    }
    if let Some(Flat { leaves, tree, .. }) = if_fits(py, containers::flatten("block", Mode::State, &result))?
        && let Some(positions) = tag.output.leaf_positions_in(py, &tree)?
    {
        return Ok(positions.into_iter().map(|position| leaves[position].clone()).collect());
    }
    let (callback, backend) = (callback.to_owned(), backend.get().name.clone());
    let types: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    let expected = format!("a container of {} as the output is", types.join(", "));
    Err(Misuse::CallbackResult { callback, backend, got: convert::describe(&result)?, expected }.into())
}

/// The default of a user-defined block: `fun(tag, *args)`.
#[pyclass(frozen, module = "defn._core")]
pub(super) struct UserDefault {
    backend: Py<PyBackend>,
    slot: Arc<Slot>,
    region: Arc<Region>,
    program: OnceLock<Arc<dyn Executable>>,
    captures: Vec<Tensor>,
    table: Table,
    named: Option<Py<PyDict>>,
}

#[pymethods]
impl UserDefault {
    #[pyo3(signature = (_tag, *args))]
    fn __call__<'py>(
        &self,
        _tag: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
    ) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let py = args.py();
            let Slot::Tag(tag) = &*self.slot else {
                return Err(Misuse::Internal { text: "the default of no block".to_owned() }.into());
            };
            if args.len() != tag.args.len() {
                let what = format!("the default is given {} arguments", args.len());
                let required = format!("it takes {}", tag.args.len());
                return Err(Misuse::Call { op: "block".to_owned(), what, required }.into());
            }
            let mut tensors = Vec::with_capacity(self.region.inputs().len());
            for (arg, expected) in args.iter().zip(&tag.args) {
                let args = operands("block", &arg)?;
                let what = "an argument of the default";
                let args = same_structure(py, "block", what, args, "the block's", expected)?;
                for arg in args {
                    let tensor = ops::with(|ops| Builder::operand(ops, arg))?;
                    tensors.push(tensor.flat());
                }
            }
            tensors.extend(self.captures.iter().cloned());
            let here = adapter(&self.backend, py);
            on_backend("block", &here, &mut tensors)?;
            if self.program.get().is_none() {
                let compiled = evaluator().compile(self.region.clone(), Checks::default())?;
                // Another thread may have set the same program first.
                let _ = self.program.set(compiled);
            }
            let program = self.program.get().expect("it was set");
            let borrowed = Borrowed::default();
            let run = hooks::RunHooks::new(&self.table, self.named.as_ref(), &borrowed);
            let results = trace::suspended(|| program.run(&here, tensors, &run));
            if let Some(fault) = run.into_fault() {
                return Err(fault);
            }
            container(py, &tag.output, &results?)
        })
    }
}
