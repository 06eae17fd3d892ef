//! The functions that Python calls for ops, one file for each family.
//!
//! A function parses its arguments, which come by position, and calls the builder's method of the same name.

mod collective;
mod create;
mod elementwise;
mod fold;
mod fourier;
mod index;
mod linalg;
mod matrix;
mod order;
mod parse;
mod random;
mod reduce;
mod shape;
mod vectorize;
mod window;

use defn_core::backend::Checks;
use defn_core::builder::{self, Arg, Host, Ops, Source};
use defn_core::op::Op;
use defn_core::origin::Given;
use defn_core::{Number, Tensor, trace};
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use smallvec::SmallVec;

pub(crate) use parse::Parse;

use crate::away;
use crate::checks;
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::hooks;
use crate::location;
use crate::place;
use crate::tensor::PyTensor;

/// Operands of more bytes than this are worked on without the interpreter lock: about 50 us of work.
const RELEASE_BYTES: usize = 256 << 10;

/// Adds every function to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    collective::add(module)?;
    create::add(module)?;
    elementwise::add(module)?;
    index::add(module)?;
    linalg::add(module)?;
    matrix::add(module)?;
    order::add(module)?;
    random::add(module)?;
    reduce::add(module)?;
    shape::add(module)?;
    vectorize::add(module)?;
    fold::add(module)?;
    fourier::add(module)?;
    window::add(module)
}

/// The builder that adds to the open trace, or runs at once on the default backend.
///
/// # Errors
/// A default backend that is not known.
pub(crate) fn builder() -> Fallible<Ops> {
    let ops = Ops::new(place::default()?, Source::Ask(location::ask));
    Ok(Ops { checks: checks::current(), hooks: &hooks::AT_ONCE, host: Some(&Detached), ..ops })
}

/// Runs loops without the interpreter lock.
struct Detached;

impl Host for Detached {
    fn run(&self, body: &mut (dyn FnMut() + Send)) {
        away::leave(body);
    }
}

/// Runs `body` on the builder.
pub(crate) fn with<T>(body: impl FnOnce(&mut Ops) -> defn_core::Result<T>) -> Fallible<T> {
    guard(|| Ok(body(&mut builder()?)?))
}

/// Runs `body` on the builder, without the interpreter lock where that is worth it.
fn run<T: Send>(bytes: usize, body: impl FnOnce(&mut Ops) -> defn_core::Result<T> + Send) -> Fallible<T> {
    let (mut body, mut made) = (Some(body), None);
    // There are several hundred ops, and each is compiled once.
    let mut once = || made = body.take().map(with);
    if bytes < RELEASE_BYTES || trace::depth() > 0 {
        once();
    } else {
        let once: &mut (dyn FnMut() + Send) = &mut once;
        away::leave(once);
    }
    made.expect("the body ran")
}

/// The result of an op on small tensors where nothing stands between it and the backend; None where it goes the long way,
/// which also says why it cannot be done.
pub(crate) fn at_once(op: &Op, operands: &[Arg<&Tensor>]) -> Fallible<Option<Tensor>> {
    let bytes_of = |operand: &Arg<&Tensor>| match operand {
        Arg::Value(tensor) => tensor.whole().byte_size(),
        Arg::Number(_) => 0,
    };
    if operands.iter().map(bytes_of).sum::<usize>() >= RELEASE_BYTES || checks::current() != Checks::default()
    {
        return Ok(None);
    }
    guard(|| Ok(builder::at_once(op, operands)))
}

/// An operand as Python has it, where it is a tensor or a float, which stays where it is.
pub(crate) fn lent<'a>(operand: &'a Bound<'_, PyAny>) -> Option<Arg<&'a Tensor>> {
    if let Ok(tensor) = operand.cast_exact::<PyTensor>() {
        return Some(Arg::Value(&tensor.get().tensor));
    }
    let number = operand.cast_exact::<PyFloat>().ok()?.value();
    Some(Arg::Number(Number::Float(number)))
}

/// The tensors that a function was given, for what is said where it refuses them. While nothing is traced none
/// are kept: it is not known where they were made.
pub(crate) struct Operands(Option<SmallVec<[(Option<&'static str>, Tensor); 3]>>);

impl Operands {
    pub(crate) fn new() -> Operands {
        Operands((trace::depth() > 0).then(SmallVec::new))
    }

    /// Two operands, a left and a right one.
    pub(crate) fn sides(a: &Arg<Tensor>, b: &Arg<Tensor>) -> Operands {
        let mut operands = Operands::new();
        operands.add_arg("left", a);
        operands.add_arg("right", b);
        operands
    }

    /// Adds a tensor, under the name that the function has for it, where it has one.
    pub(crate) fn add(&mut self, name: Option<&'static str>, tensor: &Tensor) {
        if let Some(kept) = &mut self.0 {
            kept.push((name, tensor.clone()));
        }
    }

    /// Adds an operand; a number is none that could be at fault.
    pub(crate) fn add_arg(&mut self, name: &'static str, arg: &Arg<Tensor>) {
        match arg {
            Arg::Value(tensor) => self.add(Some(name), tensor),
            Arg::Number(_) => {}
        }
    }

    /// Says of an error what the function was given.
    #[cold]
    pub(crate) fn blame(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Core(error) => {
                let kept = self.0.iter().flatten();
                Fault::Core(error.given(kept.map(|(name, tensor)| Given::new(*name, tensor)).collect()))
            }
            Fault::Misuse(_) | Fault::Python(_) => fault,
        }
    }
}

/// Applies `body` to one tensor.
pub(crate) fn on(
    tensor: &Tensor,
    body: impl FnOnce(&mut Ops, &Tensor) -> defn_core::Result<Tensor> + Send,
) -> Fallible<PyTensor> {
    let mut operands = Operands::new();
    operands.add(None, tensor);
    let made = run(tensor.whole().byte_size(), |ops| body(ops, tensor));
    made.map(PyTensor::new).map_err(|fault| operands.blame(fault))
}

/// An operator of Python: `NotImplemented` where the other operand is none of ours.
pub(crate) fn operator<'py>(
    tensor: &PyTensor,
    other: &Bound<'py, PyAny>,
    reflected: bool,
    body: impl FnOnce(&mut Ops, Arg<Tensor>, Arg<Tensor>) -> defn_core::Result<Tensor> + Send,
) -> Fallible<Bound<'py, PyAny>> {
    let py = other.py();
    let Some(other) = guard(|| convert::try_arg(other))? else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let bytes = tensor.tensor.whole().byte_size() + size_of_arg(&other);
    let this = Arg::Value(tensor.tensor.clone());
    let (a, b) = if reflected { (other, this) } else { (this, other) };
    let operands = Operands::sides(&a, &b);
    let result = run(bytes, |ops| body(ops, a, b)).map_err(|fault| operands.blame(fault))?;
    Ok(Bound::new(py, PyTensor::new(result))?.into_any())
}

/// The bytes of an operand; a number has none.
fn size_of_arg(arg: &Arg<Tensor>) -> usize {
    match arg {
        Arg::Value(tensor) => tensor.whole().byte_size(),
        Arg::Number(_) => 0,
    }
}

/// Declares functions that give one tensor: `name(argument: type, ...) => |ops| builder call;`. The types say
/// how arguments are parsed; `= None` marks one that may be left out.
macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty $(= $none:ident)?),*) => |$ops:ident| $body:expr;)*) => {
        $(
            #[allow(clippy::too_many_arguments, reason = "they are those of the public function")]
            #[pyfunction]
            #[pyo3(signature = ($($arg $(= $none)?),*))]
            fn $name($($arg: Option<&Bound<'_, PyAny>>),*) -> Fallible<PyTensor> {
                crate::error::guard(|| {
                    let mut bytes = 0;
                    #[allow(unused_mut, reason = "not every function has an operand")]
                    let mut operands = $crate::ops::Operands::new();
                    $(
                        let $arg: $ty = $crate::ops::Parse::parse(stringify!($name), stringify!($arg), $arg)?;
                        bytes += $crate::ops::Parse::bytes(&$arg);
                        $crate::ops::Parse::note(&$arg, stringify!($arg), &mut operands);
                    )*
                    let run = move |$ops: &mut defn_core::builder::Ops| $body;
                    let made = $crate::ops::run(bytes, run).map(PyTensor::new);
                    made.map_err(|fault| operands.blame(fault))
                })
            }
        )*

        fn add_declared(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}
pub(crate) use functions;
