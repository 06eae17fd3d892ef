//! Linear systems, factorizations, and functions based on them.

use defn_core::Tensor;
use defn_core::builder::{Arg, BuildMatrix, Builder, NormOrder, Ops};
use defn_core::op::{QrMode, Transform};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use super::{Operands, Parse, run};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Parses one of several names.
fn chosen<T: Copy>(
    op: &'static str,
    what: &'static str,
    value: OptionalArg<'_, '_>,
    choices: &[T],
    name: impl Fn(T) -> &'static str,
    required: &str,
) -> Fallible<T> {
    let requested = value.and_then(|value| value.cast::<PyString>().ok()).map(|text| text.to_string());
    match choices.iter().find(|choice| requested.as_deref() == Some(name(**choice))) {
        Some(found) => Ok(*found),
        None => Err(match value {
            Some(value) => convert::bad(op, what, value, required)?,
            None => unreachable!("{op} has a default for {what}"),
        }),
    }
}

impl Parse for Transform {
    fn parse(op: &'static str, what: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Self> {
        let required = "\"none\", \"transpose\" or \"conjugate\"";
        chosen(op, what, value, Transform::ALL, Transform::name, required)
    }
}

impl Parse for QrMode {
    fn parse(op: &'static str, what: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Self> {
        chosen(op, what, value, QrMode::ALL, QrMode::name, "\"reduced\" or \"complete\"")
    }
}

impl Parse for Option<NormOrder> {
    fn parse(op: &'static str, what: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(None) };
        if let Some(power) = convert::index(value)? {
            return Ok(Some(NormOrder::Power(power)));
        }
        if let Ok(number) = value.cast::<PyFloat>().map(|number| number.value()) {
            if number.is_infinite() {
                let order = if number > 0.0 { NormOrder::Infinity } else { NormOrder::NegInfinity };
                return Ok(Some(order));
            }
        } else if let Ok(name) = value.cast::<PyString>() {
            match name.to_str()? {
                "inf" => return Ok(Some(NormOrder::Infinity)),
                "neg_inf" => return Ok(Some(NormOrder::NegInfinity)),
                "frobenius" => return Ok(Some(NormOrder::Frobenius)),
                "nuclear" => return Ok(Some(NormOrder::Nuclear)),
                _ => {}
            }
        }
        let required = "an int, \"inf\", \"neg_inf\", \"frobenius\" or \"nuclear\"";
        Err(convert::bad(op, what, value, required)?)
    }
}

/// Conversion of results for Python.
trait Wrap<Out> {
    fn wrap(self) -> Out;
}

impl Wrap<PyTensor> for Tensor {
    fn wrap(self) -> PyTensor {
        PyTensor::new(self)
    }
}

impl Wrap<(PyTensor, PyTensor)> for (Tensor, Tensor) {
    fn wrap(self) -> (PyTensor, PyTensor) {
        (self.0.wrap(), self.1.wrap())
    }
}

impl Wrap<(PyTensor, PyTensor, PyTensor)> for (Tensor, Tensor, Tensor) {
    fn wrap(self) -> (PyTensor, PyTensor, PyTensor) {
        (self.0.wrap(), self.1.wrap(), self.2.wrap())
    }
}

type Two = (PyTensor, PyTensor);
type Three = (PyTensor, PyTensor, PyTensor);

/// Declares functions: `"op": name(argument: type, ...) -> results |ops| builder call;`. Defaults of options
/// are set in Python.
macro_rules! matrices {
    ($($op:literal: $name:ident($($arg:ident: $ty:ty),*) -> $out:ty, |$ops:ident| $body:expr;)*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = ($($arg = None),*))]
            fn $name($($arg: OptionalArg<'_, '_>),*) -> Fallible<$out> {
                guard(|| {
                    let (mut bytes, mut operands) = (0, Operands::new());
                    $(
                        let $arg: $ty = Parse::parse($op, stringify!($arg), $arg)?;
                        bytes += Parse::bytes(&$arg);
                        Parse::note(&$arg, stringify!($arg), &mut operands);
                    )*
                    // Factorizations do more work per element than other ops.
                    let result = run(bytes.saturating_mul(8), move |$ops: &mut Ops| $body);
                    Ok(result.map_err(|fault| operands.blame(fault))?.wrap())
                })
            }
        )*

        pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

matrices! {
    "adjoint": linalg_adjoint(x: Arg<Tensor>) -> PyTensor, |ops| ops.adjoint(x);
    "cholesky": linalg_cholesky(x: Arg<Tensor>) -> PyTensor, |ops| ops.cholesky(x);
    "cond": linalg_cond(x: Arg<Tensor>, ord: Option<NormOrder>) -> PyTensor, |ops| ops.cond(x, ord);
    "determinant": linalg_determinant(x: Arg<Tensor>) -> PyTensor, |ops| ops.determinant(x);
    "eigh": linalg_eigh(x: Arg<Tensor>, max_iter: usize, eps: f64) -> Two,
        |ops| ops.eigh(x, max_iter, eps);
    "eigvalsh": linalg_eigvalsh(x: Arg<Tensor>) -> PyTensor, |ops| ops.eigvalsh(x);
    "invert": linalg_invert(x: Arg<Tensor>) -> PyTensor, |ops| ops.invert(x);
    "least_squares": linalg_least_squares(a: Arg<Tensor>, b: Arg<Tensor>, eps: f64) -> PyTensor,
        |ops| ops.least_squares(a, b, eps);
    "lu": linalg_lu(x: Arg<Tensor>) -> Three, |ops| ops.lu(x);
    "matrix_power": linalg_matrix_power(x: Arg<Tensor>, power: i64) -> PyTensor,
        |ops| ops.matrix_power(x, power);
    "matrix_rank": linalg_matrix_rank(x: Arg<Tensor>, eps: f64) -> PyTensor,
        |ops| ops.matrix_rank(x, eps);
    "multi_dot": linalg_multi_dot(tensors: Vec<Arg<Tensor>>) -> PyTensor, |ops| {
        let tensors = ops.weak_all("multi_dot", tensors)?;
        ops.multi_dot(&tensors)
    };
    "norm": linalg_norm(x: Arg<Tensor>, ord: Option<NormOrder>, axes: defn_core::Axes, keep_axes: bool) -> PyTensor,
        |ops| ops.norm(x, ord, axes, keep_axes);
    "pinv": linalg_pinv(x: Arg<Tensor>, eps: f64) -> PyTensor, |ops| ops.pinv(x, eps);
    "qr": linalg_qr(x: Arg<Tensor>, mode: QrMode, eps: f64) -> Two, |ops| ops.qr(x, mode, eps);
    "slogdet": linalg_slogdet(x: Arg<Tensor>) -> Two, |ops| ops.slogdet(x);
    "solve": linalg_solve(a: Arg<Tensor>, b: Arg<Tensor>) -> PyTensor, |ops| ops.solve(a, b);
    "svd": linalg_svd(x: Arg<Tensor>, max_iter: usize, full_matrices: bool) -> Three,
        |ops| ops.svd(x, max_iter, full_matrices);
    "svdvals": linalg_svdvals(x: Arg<Tensor>) -> PyTensor, |ops| ops.svdvals(x);
    "triangular_solve": linalg_triangular_solve(
        a: Arg<Tensor>, b: Arg<Tensor>, lower: bool, left_side: bool, transform_a: Transform
    ) -> PyTensor, |ops| ops.triangular_solve(a, b, lower, left_side, transform_a);
}
