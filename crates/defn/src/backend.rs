//! The backend and the compiler that are used where none is named.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError, RwLock};

use defn_core::backend::{Backend, Checks, Compiler};
use defn_core::evaluator::Evaluator;
use defn_core::{ErrorKind, Result, Tensor};

static DEFAULT: RwLock<Option<Arc<dyn Backend>>> = RwLock::new(None);

thread_local! {
    /// The default backend of this thread, where [`with_default_backend`] runs.
    static HERE: RefCell<Option<Arc<dyn Backend>>> = const { RefCell::new(None) };
    static CHECKS: Cell<Checks> = const { Cell::new(Checks { index: false, nan: false, inf: false }) };
}

/// Runs a function whose tensors are on another default backend, on this thread.
///
/// ```
/// use defn::prelude::*;
///
/// let backend = defn::default_backend()?;
/// let x = defn::with_default_backend(&backend, || Tensor::scalar(1.5))?;
/// assert_eq!(x.core().backend().unwrap().device_name(), "cpu");
/// # Ok::<(), defn::Error>(())
/// ```
pub fn with_default_backend<R>(backend: &Arc<dyn Backend>, body: impl FnOnce() -> R) -> R {
    struct Before(Option<Arc<dyn Backend>>);
    impl Drop for Before {
        fn drop(&mut self) {
            HERE.set(self.0.take());
        }
    }
    let _before = Before(HERE.replace(Some(backend.clone())));
    body()
}

/// Runs a function with checks at run time, in addition to those around it: in operations on tensors, and in compiled
/// functions that it calls. They cost time.
///
/// ```
/// use defn::prelude::*;
/// use defn::{Checks, ErrorClass};
///
/// let x = tensor![-1.0]?;
/// assert!(x.sqrt().is_ok());
/// let checks = Checks { nan: true, ..Checks::default() };
/// assert_eq!(defn::with_checks(checks, || x.sqrt()).unwrap_err().class(), ErrorClass::NonFinite);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn with_checks<R>(checks: Checks, body: impl FnOnce() -> R) -> R {
    struct Before(Checks);
    impl Drop for Before {
        fn drop(&mut self) {
            CHECKS.set(self.0);
        }
    }
    let before = self::checks();
    let _before = Before(before);
    CHECKS.set(union(before, checks));
    body()
}

/// The checks of this thread.
pub(crate) fn checks() -> Checks {
    CHECKS.get()
}

/// The checks that one of two asks for.
pub(crate) fn union(a: Checks, b: Checks) -> Checks {
    Checks { index: a.index || b.index, nan: a.nan || b.nan, inf: a.inf || b.inf }
}

/// The backend of tensors that are not computed from other tensors: the CPU, unless [`set_default_backend`] was
/// called.
///
/// ```
/// use defn::prelude::*;
///
/// let backend = defn::default_backend()?;
/// assert_eq!(backend.device_name(), "cpu");
/// let x = Tensor::scalar(1.5)?.backend_copy(&backend)?;
/// assert_eq!(x.item::<f32>()?, 1.5);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// None was set, and the feature `cpu` is off (`Backend`).
pub fn default_backend() -> Result<Arc<dyn Backend>> {
    if let Some(backend) = HERE.with_borrow(Clone::clone) {
        return Ok(backend);
    }
    if let Some(backend) = &*DEFAULT.read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(backend.clone());
    }
    built_in()
}

/// The backend of the first tensor that is on one, else the default backend.
///
/// # Errors
/// Those of [`default_backend`].
pub(crate) fn of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Arc<dyn Backend>> {
    tensors.into_iter().find_map(Tensor::backend).map_or_else(default_backend, Ok)
}

/// Sets the default backend of this process, and returns the one that was set before. Tensors that exist stay where
/// they are.
///
/// ```
/// let cpu = defn::default_backend()?;
/// assert!(defn::set_default_backend(cpu.clone()).is_none());
/// assert!(defn::set_default_backend(cpu).is_some());
/// # Ok::<(), defn::Error>(())
/// ```
pub fn set_default_backend(backend: Arc<dyn Backend>) -> Option<Arc<dyn Backend>> {
    DEFAULT.write().unwrap_or_else(PoisonError::into_inner).replace(backend)
}

/// A backend of the host, on which constants are folded.
///
/// # Errors
/// The feature `cpu` is off, and no backend was set.
#[cfg(feature = "pjrt")]
pub(crate) fn host() -> Result<Arc<dyn Backend>> {
    built_in().or_else(|_| default_backend())
}

#[cfg(feature = "cpu")]
fn built_in() -> Result<Arc<dyn Backend>> {
    Ok(defn_cpu::cpu_backend())
}

#[cfg(not(feature = "cpu"))]
fn built_in() -> Result<Arc<dyn Backend>> {
    let (name, known) = ("cpu".to_owned(), "those given to set_default_backend".to_owned());
    Err(ErrorKind::UnknownBackend { name, known }.into())
}

/// The compiler of definitions that name none.
pub(crate) const DEFAULT_COMPILER: &str = if cfg!(feature = "cpu") { "cpu" } else { "evaluator" };

/// The compiler of a name, for [`Jit::with_compiler`](crate::Jit::with_compiler).
///
/// "evaluator" runs one operation at a time. "cpu" is the default; it needs the feature `cpu`. "pjrt" compiles for the
/// default device; it needs the feature `pjrt`.
///
/// ```
/// use defn::prelude::*;
///
/// let double = jit(|x: Expr| &x + &x).with_compiler(defn::compiler("evaluator")?);
/// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
/// assert!(defn::compiler("gcc").is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// There is no compiler of that name (`Compile`), or no device (`Backend`).
pub fn compiler(name: &str) -> Result<Arc<dyn Compiler>> {
    match name {
        #[cfg(feature = "cpu")]
        "cpu" => Ok(Arc::new(defn_cpu::CpuCompiler::new())),
        "evaluator" => Ok(Arc::new(Evaluator::new(default_backend()?))),
        #[cfg(feature = "pjrt")]
        "pjrt" => crate::pjrt::compiler(&crate::pjrt::default_device()?),
        _ => {
            let all = [("cpu", cfg!(feature = "cpu")), ("evaluator", true), ("pjrt", cfg!(feature = "pjrt"))];
            let known = all.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| format!("{name:?}"));
            let (name, known) = (name.to_owned(), known.collect::<Vec<_>>().join(", "));
            Err(ErrorKind::UnknownCompiler { name, known }.into())
        }
    }
}
