//! Conversion of errors to Python exceptions.
//!
//! The exception classes are defined in `defn.errors`. Each message ends with the user's file and line.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use defn_core::memory::forget_shortage;
use defn_core::stage::StageError;
use defn_core::{Error, ErrorClass, ErrorKind};
use pyo3::exceptions::{
    PyBufferError, PyException, PyMemoryError, PyOverflowError, PyRecursionError, PyTypeError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::location;
use crate::misuse::Misuse;
use crate::threads;

/// The errors of a call into the extension.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error of the core.
    Core(Error),
    /// An invalid call that only the Python layer can detect.
    Misuse(Box<Misuse>),
    /// An exception of Python or of user code, which passes through unchanged.
    Python(PyErr),
}

/// The result of functions that Python calls.
pub(crate) type Fallible<T> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Core(error)
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Fault {
        Fault::Core(kind.into())
    }
}

impl From<StageError> for Fault {
    fn from(error: StageError) -> Fault {
        Fault::Core(error.into())
    }
}

impl From<Misuse> for Fault {
    fn from(misuse: Misuse) -> Fault {
        Fault::Misuse(Box::new(misuse))
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Fault {
        Fault::Python(error)
    }
}

impl From<pyo3::CastError<'_, '_>> for Fault {
    fn from(error: pyo3::CastError<'_, '_>) -> Fault {
        Fault::Python(error.into())
    }
}

impl Fault {
    /// The Python exception in it, if any.
    fn raised(&self) -> Option<&PyErr> {
        match self {
            Fault::Python(error) => Some(error),
            Fault::Core(error) => {
                let ErrorKind::Host { error } = error.kind() else { return None };
                error.downcast_ref::<PyErr>()
            }
            Fault::Misuse(_) => None,
        }
    }
}

/// The converted argument; `None` if the argument is not of the requested kind.
///
/// # Errors
/// Any other exception: an interruption, a lack of memory, errors of the argument's own methods.
pub(crate) fn if_fits<T>(py: Python<'_>, result: Result<T, impl Into<Fault>>) -> Fallible<Option<T>> {
    unless(result, |error| {
        !error.is_instance_of::<PyTypeError>(py)
            && !error.is_instance_of::<PyOverflowError>(py)
            && !error.is_instance_of::<PyBufferError>(py)
    })
}

/// The value read from a user's object; `None` if the object raises an ordinary exception.
///
/// # Errors
/// Exceptions that the object did not mean as an answer: an interruption, a lack of memory or of stack.
pub(crate) fn if_there<T>(py: Python<'_>, found: Result<T, impl Into<Fault>>) -> Fallible<Option<T>> {
    unless(found, |error| {
        !error.is_instance_of::<PyException>(py)
            || error.is_instance_of::<PyMemoryError>(py)
            || error.is_instance_of::<PyRecursionError>(py)
    })
}

/// The number of threads with a pending exception. If it is zero, no thread reads its `PENDING`, which would
/// cost a function call.
static PENDING_COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// As [`if_there`], for callers that cannot return an error: the exception is raised when the enclosing call
/// ends.
pub(crate) fn if_there_or_defer<T>(py: Python<'_>, found: PyResult<T>) -> Option<T> {
    match if_there(py, found) {
        Ok(found) => found,
        Err(fault) => {
            let earlier = PENDING.with_borrow_mut(|pending| pending.replace(fault.into()));
            if earlier.is_none() {
                PENDING_COUNT.fetch_add(1, Ordering::Relaxed);
            }
            drop(earlier);
            None
        }
    }
}

fn unless<T>(
    result: Result<T, impl Into<Fault>>,
    passes: impl FnOnce(&PyErr) -> bool,
) -> Fallible<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let fault: Fault = error.into();
            if fault.raised().is_some_and(passes) { Err(fault) } else { Ok(None) }
        }
    }
}

impl From<Fault> for PyErr {
    #[cold]
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Core(error) => {
                if let ErrorKind::Host { error } = error.kind()
                    && let Some(raised) = error.downcast_ref::<PyErr>()
                {
                    return Python::attach(|py| raised.clone_ref(py));
                }
                let error = if error.location().is_some() { error } else { error.at(location::ask()) };
                raise(class_name(error.class()), error.to_string())
            }
            Fault::Misuse(misuse) => {
                let mut text = misuse.to_string();
                if let Some(location) = location::ask() {
                    text.push_str(&format!("\n  at {location}"));
                }
                raise(misuse.class(), text)
            }
            Fault::Python(error) => error,
        }
    }
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Shape => "ShapeError",
        ErrorClass::Axis => "AxisError",
        ErrorClass::DType => "DTypeError",
        ErrorClass::Range => "RangeError",
        ErrorClass::Option => "OptionError",
        ErrorClass::Division => "DivisionError",
        ErrorClass::NonFinite => "NonFiniteError",
        ErrorClass::Convergence => "ConvergenceError",
        ErrorClass::Container => "ContainerError",
        ErrorClass::Bounds => "BoundsError",
        ErrorClass::Trace => "TraceError",
        ErrorClass::Compile => "CompileError",
        ErrorClass::Backend => "BackendError",
        ErrorClass::Format => "FormatError",
        ErrorClass::OutOfMemory => "OutOfMemoryError",
        _ => "Error",
    }
}

fn raise(class: &'static str, text: String) -> PyErr {
    Python::attach(|py| match find_class(py, class) {
        Ok(class) => PyErr::from_type(class, text),
        // Without the Python layer, the extension still reports the message.
        Err(_) => PyException::new_err(text),
    })
}

fn find_class<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("defn.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(class)?.cast_into::<PyType>()?)
}

/// Runs `body` with the thread count of the context. A panic, which is a bug of ours, becomes an exception
/// that `except Exception` catches.
pub(crate) fn guard<T>(body: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    // Hundreds of functions instantiate this: a `dyn` closure keeps their code small.
    let (mut body, mut result) = (Some(body), None);
    guard_dyn(&mut || result = body.take().map(|body| body()))?;
    result.expect("the body ran")
}

fn guard_dyn(body: &mut dyn FnMut()) -> Fallible<()> {
    forget_shortage();
    let run = || {
        threads::within(|| {
            body();
            Ok(())
        })
    };
    let result = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        // CPU work that is interrupted outside of an op unwinds with the error.
        Err(panic) => match panic.downcast::<Error>() {
            Ok(error) => Err(Fault::Core(*error)),
            Err(panic) => Err(panic_fault(&*panic)),
        },
    };
    if PENDING_COUNT.load(Ordering::Relaxed) > 0
        && let Some(pending) = PENDING.take()
    {
        PENDING_COUNT.fetch_sub(1, Ordering::Relaxed);
        return Err(pending.into());
    }
    result
}

#[cold]
fn panic_fault(panic: &(dyn Any + Send)) -> Fault {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Misuse::Internal { text }.into()
}
