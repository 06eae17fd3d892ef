//! The functions that Python calls for ops, one file for each family.
//!
//! A function parses its positional arguments and calls the builder's method of the same name.

mod arrange;
mod cell;
mod collective;
mod convolution;
mod create;
mod elementwise;
mod fast_function;
mod fold;
mod fourier;
mod index;
mod initial;
mod linalg;
mod mapped;
mod matrix;
mod missing;
mod nn;
mod optim;
mod order;
mod parse;
mod random;
mod reduce;
mod search;
mod sequence;
mod sets;
mod shape;
mod special;
mod vectorize;
mod window;

use defn_core::backend::Checks;
use defn_core::builder::{self, Arg, Host, Ops, Source};
use defn_core::op::Op;
use defn_core::origin::OperandInfo;
use defn_core::weak::{Operator, Weak};
use defn_core::{DType, Number, Shape, Tensor, trace};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;

pub(crate) use fast_function::FastFunction;
pub(crate) use parse::Parse;

use crate::array;
use crate::backends;
use crate::checks;
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::gil;
use crate::hooks;
use crate::location;
use crate::tensor::PyTensor;

/// An op releases the GIL if its operands have more bytes than this: about 50 us of work.
const RELEASE_BYTES: usize = 256 << 10;

/// Adds every function to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    arrange::add(module)?;
    cell::add(module)?;
    convolution::add(module)?;
    collective::add(module)?;
    create::add(module)?;
    elementwise::add(module)?;
    index::add(module)?;
    initial::add(module)?;
    linalg::add(module)?;
    matrix::add(module)?;
    missing::add(module)?;
    nn::add(module)?;
    optim::add(module)?;
    order::add(module)?;
    fast_function::add(module)?;
    random::add(module)?;
    reduce::add(module)?;
    sets::add(module)?;
    search::add(module)?;
    sequence::add(module)?;
    shape::add(module)?;
    special::add(module)?;
    vectorize::add(module)?;
    fold::add(module)?;
    fourier::add(module)?;
    window::add(module)
}

/// The builder that adds to the open trace, or runs ops eagerly on the default backend.
///
/// # Errors
/// An unknown default backend.
pub(crate) fn builder() -> Fallible<Ops> {
    let ops = Ops::new(backends::default()?, Source::Lookup(location::ask));
    Ok(Ops { checks: checks::current(), hooks: &hooks::EAGER_HOOKS, host: Some(&Detached), ..ops })
}

/// Runs loops with the GIL released.
struct Detached;

impl Host for Detached {
    fn run(&self, body: &mut (dyn FnMut() + Send)) {
        gil::release(body);
    }
}

/// Runs `body` with the builder.
pub(crate) fn with<T>(body: impl FnOnce(&mut Ops) -> defn_core::Result<T>) -> Fallible<T> {
    guard(|| Ok(body(&mut builder()?)?))
}

/// Runs `body` with the builder, and with the GIL released if that is worth its cost.
fn run<T: Send>(bytes: usize, body: impl FnOnce(&mut Ops) -> defn_core::Result<T> + Send) -> Fallible<T> {
    let (mut body, mut result) = (Some(body), None);
    // There are several hundred ops, and each instantiates this function: a `dyn` closure keeps that code
    // small.
    let mut once = || result = body.take().map(with);
    if bytes < RELEASE_BYTES || trace::depth() > 0 {
        once();
    } else {
        let once: &mut (dyn FnMut() + Send) = &mut once;
        gil::release(once);
    }
    result.expect("the body ran")
}

/// Runs `path`, a fast path of an op on small tensors without any wrapper between the op and the backend. Its
/// argument is the byte size from which tensors are no longer small. `None` means that the general path must
/// run, which also reports errors.
fn run_fast_path<T>(path: impl FnOnce(usize) -> Fallible<Option<T>>) -> Fallible<Option<T>> {
    if checks::current() != Checks::default() {
        return Ok(None);
    }
    guard(|| path(RELEASE_BYTES))
}

/// The fast path of an op on small tensors, as [`run_fast_path`]. Python's object is made where the result is: each
/// copy of a tensor waits for the stores of its parts.
pub(crate) fn fast_path<'py>(
    py: Python<'py>,
    op: &Op,
    operands: &[Arg<&Tensor>],
) -> Fallible<Option<Bound<'py, PyTensor>>> {
    run_fast_path(|most| match builder::fast_path(op, operands, most) {
        Some(result) => Ok(Some(Bound::new(py, PyTensor::new(result))?)),
        None => Ok(None),
    })
}

/// The fast path of a function of several ops on small tensors, as [`run_fast_path`].
fn composite_fast_path<'py>(
    name: &str,
    args: &Bound<'py, PyTuple>,
) -> Fallible<Option<Bound<'py, PyTensor>>> {
    let mut handles: SmallVec<[Borrowed<'_, 'py, PyAny>; 3]> = SmallVec::new();
    for position in 0..args.len() {
        handles.push(args.get_borrowed_item(position)?);
    }
    let tensors: Option<SmallVec<[&Tensor; 3]>> = handles.iter().map(|handle| borrowed(handle)).collect();
    let Some(tensors) = tensors else { return Ok(None) };
    run_fast_path(|most| match builder::composite_fast_path(name, &tensors, most) {
        Some(result) => Ok(Some(Bound::new(args.py(), PyTensor::new(result))?)),
        None => Ok(None),
    })
}

/// The fast path of a matrix product of small tensors, as [`run_fast_path`].
pub(crate) fn matmul_fast_path(a: &Tensor, b: &Tensor) -> Fallible<Option<Tensor>> {
    run_fast_path(|most| Ok(builder::matmul_fast_path(a, b, most)))
}

/// A contiguous window of a tensor's elements, as [`run_fast_path`].
pub(crate) fn view_fast_path(tensor: &Tensor, first: usize, shape: Shape) -> Fallible<Option<Tensor>> {
    run_fast_path(|_| Ok(builder::view_fast_path(tensor, first, shape)))
}

/// The tensor of a Python handle, borrowed.
pub(crate) fn borrowed<'a>(operand: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    operand.cast_exact::<PyTensor>().ok().map(|tensor| &tensor.get().tensor)
}

/// An operand beside a tensor of this dtype: a borrowed tensor, or a weak number. A NumPy scalar of exactly
/// this dtype is treated as a weak number, which gives the same element.
pub(crate) fn borrowed_operand<'a>(operand: &'a Bound<'_, PyAny>, dtype: DType) -> Option<Arg<&'a Tensor>> {
    if let Some(tensor) = borrowed(operand) {
        return Some(Arg::Value(tensor));
    }
    let number = if let Ok(float) = operand.cast_exact::<PyFloat>() {
        Number::Float(float.value())
    } else if operand.is_exact_instance_of::<PyInt>() {
        // Larger integers are refused on the general path, with a message.
        Number::Int(i128::from(operand.extract::<i64>().ok()?))
    } else {
        array::number_of(operand, dtype)?
    };
    Some(Arg::Number(number))
}

/// Two operands, of which at least one is a tensor.
pub(crate) fn borrowed_operands<'a>(
    a: &'a Bound<'_, PyAny>,
    b: &'a Bound<'_, PyAny>,
) -> Option<[Arg<&'a Tensor>; 2]> {
    if let Some(left) = borrowed(a) {
        return Some([Arg::Value(left), borrowed_operand(b, left.ty().dtype)?]);
    }
    let right = borrowed(b)?;
    Some([borrowed_operand(a, right.ty().dtype)?, Arg::Value(right)])
}

/// The operands of a function, for its error messages. They are recorded only while tracing: eager tensors
/// have no recorded location.
pub(crate) struct Operands(Option<SmallVec<[(Option<&'static str>, Tensor); 3]>>);

impl Operands {
    pub(crate) fn new() -> Operands {
        Operands((trace::depth() > 0).then(SmallVec::new))
    }

    /// A left and a right operand.
    pub(crate) fn sides(a: &Arg<Tensor>, b: &Arg<Tensor>) -> Operands {
        let mut operands = Operands::new();
        operands.add_arg("left", a);
        operands.add_arg("right", b);
        operands
    }

    /// Adds a tensor, with its parameter name if it has one.
    pub(crate) fn add(&mut self, name: Option<&'static str>, tensor: &Tensor) {
        if let Some(recorded) = &mut self.0 {
            recorded.push((name, tensor.clone()));
        }
    }

    /// Adds an operand. Numbers are skipped.
    pub(crate) fn add_arg(&mut self, name: &'static str, arg: &Arg<Tensor>) {
        match arg {
            Arg::Value(tensor) => self.add(Some(name), tensor),
            Arg::Number(_) => {}
        }
    }

    /// Adds the operands to an error.
    #[cold]
    pub(crate) fn blame(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Core(error) => {
                let recorded = self.0.iter().flatten();
                Fault::Core(error.with_operand_info(
                    recorded.map(|(name, tensor)| OperandInfo::new(*name, tensor)).collect(),
                ))
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
    let result = run(tensor.whole().byte_size(), |ops| body(ops, tensor));
    result.map(PyTensor::new).map_err(|fault| operands.blame(fault))
}

/// A Python operator; `NotImplemented` if the other operand is not a tensor, a number or an array.
pub(crate) fn operator<'py>(
    tensor: &PyTensor,
    other: &Bound<'py, PyAny>,
    (operator, reflected): (Option<Operator>, bool),
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
    let weak = operator.filter(|_| [&a, &b].iter().all(|operand| operand.weakness().is_some()));
    let weak = weak.map(|operator| Weak::of(operator, &[a.clone(), b.clone()]));
    let result = run(bytes, |ops| body(ops, a, b)).map_err(|fault| operands.blame(fault))?;
    let result = match weak {
        Some(weak) => result.with_weak(weak),
        None => result,
    };
    Ok(Bound::new(py, PyTensor::new(result))?.into_any())
}

/// The bytes of an operand; a number has none.
fn size_of_arg(arg: &Arg<Tensor>) -> usize {
    match arg {
        Arg::Value(tensor) => tensor.whole().byte_size(),
        Arg::Number(_) => 0,
    }
}

/// Declares functions that return one tensor: `name(argument: type, ...) => |ops| builder call;`. The types
/// determine how arguments are parsed; `= None` marks an optional one. `after function` names a fast path
/// that is tried on the arguments first.
macro_rules! functions {
    (add $add:ident $($name:ident($($arg:ident: $ty:ty $(= $none:ident)?),* $(,)?) $(after $short:ident)?
        => |$ops:ident| $body:expr;)*) => {
        $(
            #[allow(clippy::too_many_arguments, reason = "they are those of the public function")]
            #[pyfunction]
            #[pyo3(signature = ($($arg $(= $none)?),*))]
            fn $name($($arg: Option<&Bound<'_, PyAny>>),*) -> Fallible<PyTensor> {
                #[allow(unused_variables, reason = "most functions have no other way")]
                let arguments = [$($arg),*];
                $(if let Some(result) = $short(&arguments)? {
                    return Ok(result);
                })?
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
                    let result = $crate::ops::run(bytes, run).map(PyTensor::new);
                    result.map_err(|fault| operands.blame(fault))
                })
            }
        )*

        fn $add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
    ($($row:tt)*) => {
        $crate::ops::functions! { add add_declared $($row)* }
    };
}
pub(crate) use functions;

/// Declares the functions of the rows in `defn_core::functions`; Python passes all options by position.
macro_rules! shared {
    ($($(#[$doc:meta])* fn $name:ident($($operand:ident),*; $($arg:ident: $ty:ty),*);
        errors $errors:expr; example $example:tt)*) => {
        $crate::ops::functions! {
            add add_shared
            $($name(tensor: Arg<Tensor>, $($operand: Arg<Tensor>,)* $($arg: $ty),*)
                => |ops| ops.$name(tensor, $($operand,)* $($arg),*);)*
        }
    };
}
pub(crate) use shared;
