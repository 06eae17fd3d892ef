//! Linear systems, factorizations, and functions based on them.

use defn_core::builder::{Arg, BuildMatrix, Builder, NormOrder, Ops};
use defn_core::op::{QrMode, Transform};
use defn_core::{ErrorKind, Tensor};
use pyo3::intern;
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
            if number.is_finite() {
                let whole = number.fract() == 0.0 && number.abs() < 1e15;
                return Ok(Some(if whole {
                    NormOrder::Power(number as i64)
                } else {
                    NormOrder::Real(number)
                }));
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
        let required = "a number, \"inf\", \"neg_inf\", \"frobenius\" or \"nuclear\"";
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

/// Declares results that are named tuples of `defn.linalg`.
macro_rules! named_results {
    ($($name:ident($tuple:ty, $tensors:ty);)*) => {$(
        struct $name($tuple);

        impl Wrap<$name> for $tensors {
            fn wrap(self) -> $name {
                $name(self.wrap())
            }
        }

        impl<'py> IntoPyObject<'py> for $name {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let module = py.import(intern!(py, "defn.linalg"))?;
                module.getattr(intern!(py, stringify!($name)))?.call1(self.0)
            }
        }
    )*};
}

named_results! {
    EigResult(Two, (Tensor, Tensor));
    EighResult(Two, (Tensor, Tensor));
    QRResult(Two, (Tensor, Tensor));
    SlogdetResult(Two, (Tensor, Tensor));
    SVDResult(Three, (Tensor, Tensor, Tensor));
}

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
    "block_diag": linalg_block_diag(tensors: Vec<Arg<Tensor>>) -> PyTensor, |ops| {
        let tensors = ops.weak_all("block_diag", tensors)?;
        ops.block_diag(&tensors)
    };
    "cho_solve": linalg_cho_solve(factor: Arg<Tensor>, b: Arg<Tensor>, lower: bool) -> PyTensor,
        |ops| ops.cho_solve(factor, b, lower);
    "determinant": linalg_determinant(x: Arg<Tensor>) -> PyTensor, |ops| ops.determinant(x);
    "eig": linalg_eig(x: Arg<Tensor>) -> EigResult, |ops| ops.eig(x);
    "eigh": linalg_eigh(x: Arg<Tensor>, max_iter: usize, eps: f64) -> EighResult,
        |ops| ops.eigh(x, max_iter, eps);
    "eigvals": linalg_eigvals(x: Arg<Tensor>) -> PyTensor, |ops| ops.eigvals(x);
    "eigvalsh": linalg_eigvalsh(x: Arg<Tensor>) -> PyTensor, |ops| ops.eigvalsh(x);
    "expm": linalg_expm(x: Arg<Tensor>) -> PyTensor, |ops| ops.expm(x);
    "hessenberg": linalg_hessenberg(x: Arg<Tensor>) -> Two, |ops| ops.hessenberg(x);
    "invert": linalg_invert(x: Arg<Tensor>) -> PyTensor, |ops| ops.invert(x);
    "least_squares": linalg_least_squares(a: Arg<Tensor>, b: Arg<Tensor>, eps: f64) -> PyTensor,
        |ops| ops.least_squares(a, b, eps);
    "logm": linalg_logm(x: Arg<Tensor>) -> PyTensor, |ops| ops.logm(x);
    "lu": linalg_lu(x: Arg<Tensor>) -> Three, |ops| ops.lu(x);
    "lu_solve": linalg_lu_solve(factors: Vec<Arg<Tensor>>, b: Arg<Tensor>) -> PyTensor, |ops| {
        let count = factors.len();
        let Ok([p, l, u]) = <[Arg<Tensor>; 3]>::try_from(factors) else {
            let (op, option, given) = ("lu_solve", "factors", count.to_string());
            let required = "the three factors that lu returns".to_owned();
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        };
        ops.lu_solve(p, l, u, b)
    };
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
    "qr": linalg_qr(x: Arg<Tensor>, mode: QrMode, eps: f64) -> QRResult, |ops| ops.qr(x, mode, eps);
    "slogdet": linalg_slogdet(x: Arg<Tensor>) -> SlogdetResult, |ops| ops.slogdet(x);
    "schur": linalg_schur(x: Arg<Tensor>) -> Two, |ops| ops.schur(x);
    "solve": linalg_solve(a: Arg<Tensor>, b: Arg<Tensor>) -> PyTensor, |ops| ops.solve(a, b);
    "sqrtm": linalg_sqrtm(x: Arg<Tensor>) -> PyTensor, |ops| ops.sqrtm(x);
    "svd": linalg_svd(x: Arg<Tensor>, max_iter: usize, full_matrices: bool) -> SVDResult,
        |ops| ops.svd(x, max_iter, full_matrices);
    "svdvals": linalg_svdvals(x: Arg<Tensor>) -> PyTensor, |ops| ops.svdvals(x);
    "toeplitz": linalg_toeplitz(column: Arg<Tensor>, row: Option<Arg<Tensor>>) -> PyTensor, |ops| {
        let (column, row) = match row {
            Some(row) => {
                let (column, row) = ops.weak_pair("toeplitz", column, row)?;
                (column, Some(row.into()))
            }
            None => (ops.operand(column)?, None),
        };
        ops.toeplitz(column, row)
    };
    "triangular_solve": linalg_triangular_solve(
        a: Arg<Tensor>, b: Arg<Tensor>, lower: bool, left_side: bool, transform_a: Transform
    ) -> PyTensor, |ops| ops.triangular_solve(a, b, lower, left_side, transform_a);
}
