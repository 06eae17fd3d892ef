//! Element-wise functions. Those of single ops are generated from the catalogue, so that none can be missing.

use defn_core::builder::{Arg, BuildElementwise};
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::{DType, Tensor};
use pyo3::prelude::*;

use super::{Operands, borrowed, borrowed_operands, fast_path, functions, run, shared, size_of_arg};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

/// `f(x)` for one unary op.
#[pyclass(frozen, module = "defn._core")]
pub(crate) struct UnaryFunction {
    pub(super) op: UnaryOp,
}

#[pymethods]
impl UnaryFunction {
    #[getter(__name__)]
    fn name(&self) -> &'static str {
        self.op.name()
    }

    #[pyo3(signature = (tensor, /))]
    fn __call__<'py>(&self, tensor: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyTensor>> {
        if let Some(result) = self.fast_path(tensor)? {
            return Ok(result);
        }
        let result = guard(|| {
            let x = convert::arg(self.op.name(), tensor)?;
            let mut operands = Operands::new();
            operands.add_arg("tensor", &x);
            let result = run(size_of_arg(&x), |ops| ops.unary(self.op, x)).map(PyTensor::new);
            result.map_err(|fault| operands.blame(fault))
        })?;
        Ok(Bound::new(tensor.py(), result)?)
    }

    fn __repr__(&self) -> String {
        format!("<function {}>", self.op.name())
    }
}

impl UnaryFunction {
    /// The fast path for a small tensor; `None` if the call needs the general path.
    pub(super) fn fast_path<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> Fallible<Option<Bound<'py, PyTensor>>> {
        let Some(x) = borrowed(tensor) else { return Ok(None) };
        fast_path(tensor.py(), &Op::Unary(self.op), &[Arg::Value(x)])
    }
}

/// `f(a, b)` for one binary op.
#[pyclass(frozen, module = "defn._core")]
pub(crate) struct BinaryFunction {
    pub(super) op: BinaryOp,
}

#[pymethods]
impl BinaryFunction {
    #[getter(__name__)]
    fn name(&self) -> &'static str {
        self.op.name()
    }

    #[pyo3(signature = (a, b, /))]
    fn __call__<'py>(&self, a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyTensor>> {
        if let Some(result) = self.fast_path(a, b)? {
            return Ok(result);
        }
        let py = a.py();
        let result = guard(|| {
            let (a, b) = (convert::arg(self.op.name(), a)?, convert::arg(self.op.name(), b)?);
            let bytes = size_of_arg(&a) + size_of_arg(&b);
            let operands = Operands::sides(&a, &b);
            let result = run(bytes, |ops| ops.binary(self.op, a, b)).map(PyTensor::new);
            result.map_err(|fault| operands.blame(fault))
        })?;
        Ok(Bound::new(py, result)?)
    }

    fn __repr__(&self) -> String {
        format!("<function {}>", self.op.name())
    }
}

impl BinaryFunction {
    /// The fast path for small tensors; `None` if the call needs the general path.
    pub(super) fn fast_path<'py>(
        &self,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
    ) -> Fallible<Option<Bound<'py, PyTensor>>> {
        let Some(operands) = borrowed_operands(a, b) else { return Ok(None) };
        fast_path(a.py(), &Op::Binary(self.op), &operands)
    }
}

defn_core::elementwise_functions!(shared);

functions! {
    log2(tensor: Arg<Tensor>) => |ops| ops.log2(tensor);
    log10(tensor: Arg<Tensor>) => |ops| ops.log10(tensor);
    log(tensor: Arg<Tensor>, base: Option<Arg<Tensor>> = None) => |ops| match base {
        None => ops.log(tensor),
        Some(base) => ops.log_base(tensor, base),
    };
    floor_divide(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.floor_divide(a, b);
    floor_modulo(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.floor_modulo(a, b);
    copysign(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.copysign(a, b);
    hypot(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.hypot(a, b);
    logaddexp(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.logaddexp(a, b);
    heaviside(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.heaviside(a, b);
    nextafter(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.nextafter(a, b);
    select(pred: Arg<Tensor>, on_true: Arg<Tensor>, on_false: Arg<Tensor>)
        => |ops| ops.select(pred, on_true, on_false);
    clip(tensor: Arg<Tensor>, lo: Arg<Tensor>, hi: Arg<Tensor>) => |ops| ops.clip(tensor, lo, hi);
    isclose(a: Arg<Tensor>, b: Arg<Tensor>, equal_nan: bool, rtol: f64, atol: f64)
        => |ops| ops.isclose(a, b, equal_nan, rtol, atol);
    nan_to_num(tensor: Arg<Tensor>, nan: f64, posinf: Option<f64> = None, neginf: Option<f64> = None)
        => |ops| ops.nan_to_num(tensor, nan, posinf, neginf);
    all_close(a: Arg<Tensor>, b: Arg<Tensor>, equal_nan: bool, rtol: f64, atol: f64)
        => |ops| ops.all_close(a, b, equal_nan, rtol, atol);
}

#[pyfunction]
fn divmod(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let (a, b) = (convert::arg("divmod", a)?, convert::arg("divmod", b)?);
        let operands = Operands::sides(&a, &b);
        let pair = run(size_of_arg(&a) + size_of_arg(&b), |ops| ops.divmod(a, b));
        let (quotient, remainder) = pair.map_err(|fault| operands.blame(fault))?;
        Ok((PyTensor::new(quotient), PyTensor::new(remainder)))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for &op in UnaryOp::ALL {
        module.add(op.name(), Bound::new(module.py(), UnaryFunction { op })?)?;
    }
    for &op in BinaryOp::ALL {
        module.add(op.name(), Bound::new(module.py(), BinaryFunction { op })?)?;
    }
    // `log` also takes a base, and so replaces the op of the same name.
    add_shared(module)?;
    module.add_function(wrap_pyfunction!(divmod, module)?)?;
    add_declared(module)
}
