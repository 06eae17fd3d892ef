//! Functions that callbacks receive: user functions, traced to a region, and defaults of blocks.

use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Checks, Compiler, Executable, NoHooks};
use defn_core::builder::exact_scalar;
use defn_core::compose;
use defn_core::evaluator::Evaluator;
use defn_core::op::Block;
use defn_core::region::Region;
use defn_core::{ErrorKind, Tensor, trace};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{PyBackend, adapter};
use crate::build;
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::wrap;
use crate::ops;
use crate::tensor::PyTensor;

/// A user function, which runs op by op on the backend.
#[pyclass(frozen, module = "defn._core")]
pub(super) struct Function {
    backend: Py<PyBackend>,
    program: Arc<dyn Executable>,
    captures: Vec<Tensor>,
}

impl Function {
    pub(super) fn new(
        backend: Py<PyBackend>,
        region: Arc<Region>,
        captures: Vec<Tensor>,
    ) -> Fallible<Function> {
        Ok(Function { backend, program: evaluator().compile(region, Checks::default())?, captures })
    }
}

/// The evaluator that compiles the functions of callbacks.
pub(super) fn evaluator() -> &'static Evaluator {
    static EVALUATOR: OnceLock<Evaluator> = OnceLock::new();
    EVALUATOR.get_or_init(|| Evaluator::new(defn_cpu::cpu_backend()))
}

/// Copies tensors of other backends to a backend.
pub(super) fn on_backend(
    op: &'static str,
    backend: &Arc<dyn Backend>,
    tensors: &mut [Tensor],
) -> Fallible<()> {
    for tensor in tensors {
        if tensor.backend().is_some_and(|owner| !owner.is_same_device(&**backend)) {
            let buffer = backend.from_host(tensor.ty(), tensor.host_bytes(op)?)?;
            *tensor = Tensor::concrete(tensor.ty().clone(), buffer);
        }
    }
    Ok(())
}

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let program = self.program.program();
            let (op, expected, given) = ("fun", program.parameter_count(), args.len());
            if given != expected {
                return Err(ErrorKind::ArgumentCount { op, given, expected }.into());
            }
            let mut tensors = Vec::with_capacity(program.inputs().len());
            for (arg, ty) in args.iter().zip(program.inputs()) {
                // A plain number takes the parameter's type.
                tensors.push(match convert::number(&arg)? {
                    Some(number) if ty.shape.rank() == 0 => build::scalar(exact_scalar(op, ty, number)?)?,
                    Some(_) | None => convert::tensor(op, &arg)?.flat(),
                });
            }
            tensors.extend(self.captures.iter().cloned());
            let here = adapter(&self.backend, args.py());
            on_backend(op, &here, &mut tensors)?;
            let results = trace::suspended(|| self.program.run(&here, tensors, &NoHooks))?;
            one_or_all(args.py(), results)
        })
    }
}

/// The default of a block, in primitive ops: `fun(tag, *args)`.
#[pyclass(frozen, module = "defn._core")]
pub(super) struct BlockDefault {
    backend: Py<PyBackend>,
    block: Block,
}

impl BlockDefault {
    pub(super) fn new(backend: Py<PyBackend>, block: Block) -> BlockDefault {
        BlockDefault { backend, block }
    }
}

#[pymethods]
impl BlockDefault {
    #[pyo3(signature = (_tag, *args))]
    fn __call__<'py>(
        &self,
        _tag: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
    ) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let tensors: Vec<Tensor> =
                args.iter().map(|arg| Ok(convert::tensor("block", &arg)?.flat())).collect::<Fallible<_>>()?;
            let mut builder = ops::builder()?;
            // New tensors that the default creates are placed on this backend too.
            builder.backend = adapter(&self.backend, args.py());
            let default = || compose::block::default(&mut builder, &self.block, &tensors);
            let results = trace::suspended(default)?;
            one_or_all(args.py(), results.into_vec())
        })
    }
}

/// One tensor, or a tuple of several.
fn one_or_all(py: Python<'_>, mut results: Vec<Tensor>) -> Fallible<Bound<'_, PyAny>> {
    if results.len() == 1 {
        return Ok(Bound::new(py, PyTensor::new(results.remove(0)))?.into_any());
    }
    Ok(PyTuple::new(py, wrap(py, results.into_iter())?)?.into_any())
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Function>()?;
    module.add_class::<BlockDefault>()
}
