//! The location of a call in the user's program.
//!
//! The user's frame is the innermost one whose file is outside of the package. It is looked up only while
//! tracing and for errors. The file of each code object is cached, so that a node costs two look-ups.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::{Location, background};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rustc_hash::FxHashMap;

use crate::gil;

/// The maximum number of cached code objects on each thread. A full cache is cleared, which costs only time.
const CACHE_LIMIT: usize = 4096;

/// A code object, kept alive so that its address is not reused, and its file if that is a user's file.
struct CachedCode {
    _code: Py<PyAny>,
    file: Option<Arc<str>>,
}

thread_local! {
    static CODES: RefCell<FxHashMap<usize, CachedCode>> = RefCell::new(FxHashMap::default());
}

/// The user's line, if a frame of the user's code is on the stack.
pub(crate) fn ask() -> Option<Location> {
    // A thread that compiles in the background runs no line, and must not wait for the interpreter.
    if background::is_here() {
        return None;
    }
    gil::attach(|py| find(py).ok().flatten())
}

fn find(py: Python<'_>) -> PyResult<Option<Location>> {
    // SAFETY: the thread is attached; the result is a borrowed reference to a frame, or null.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut frame: Option<Bound<'_, PyAny>> = frame;
    while let Some(current) = frame {
        let pointer: *mut ffi::PyFrameObject = current.as_ptr().cast();
        // SAFETY: the pointer is a live frame; the call gives a new reference to its code, never null.
        let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(pointer).cast()) };
        if let Some(file) = file_of(&code)? {
            // SAFETY: the pointer is a live frame.
            let line = unsafe { ffi::PyFrame_GetLineNumber(pointer) };
            return Ok(Some(Location { file, line: line.max(0) as u32 }));
        }
        let back = current.getattr(intern!(py, "f_back"))?;
        frame = (!back.is_none()).then_some(back);
    }
    Ok(None)
}

/// The first line of a user's function, looking through wrappers.
pub(crate) fn of_function(fun: &Bound<'_, PyAny>) -> Option<Location> {
    let py = fun.py();
    let mut fun = fun.clone();
    // A wrapper may wrap itself, so the depth is limited.
    for _ in 0..16 {
        if let Ok(code) = fun.getattr(intern!(py, "__code__")) {
            let line = code.getattr(intern!(py, "co_firstlineno")).ok()?.extract().ok()?;
            return file_of(&code).ok()?.map(|file| Location { file, line });
        }
        let inner = fun.getattr(intern!(py, "__wrapped__")).or_else(|_| fun.getattr(intern!(py, "__func__")));
        fun = inner.or_else(|_| fun.getattr(intern!(py, "func"))).ok()?;
    }
    None
}

/// The file of a code object, unless it belongs to the package.
fn file_of(code: &Bound<'_, PyAny>) -> PyResult<Option<Arc<str>>> {
    let address = code.as_ptr() as usize;
    let known = CODES.with_borrow(|codes| codes.get(&address).map(|known| known.file.clone()));
    if let Some(file) = known {
        return Ok(file);
    }
    let file: String = code.getattr(intern!(code.py(), "co_filename"))?.extract()?;
    let inside = package_directory(code.py())?.is_some_and(|directory| file.starts_with(directory))
        || file.ends_with("threading.py") && threading_file(code.py())? == file;
    let file: Option<Arc<str>> = (!inside).then(|| file.into());
    let known = CachedCode { _code: code.clone().unbind(), file: file.clone() };
    // The old cache entries are dropped outside the borrow.
    let full = CODES.with_borrow_mut(|codes| {
        let full = (codes.len() >= CACHE_LIMIT).then(|| std::mem::take(codes));
        codes.insert(address, known);
        full
    });
    drop(full);
    Ok(file)
}

/// The file of `threading`, whose frames are the outermost ones of a thread. In a thread that the package has
/// started, they are not the user's.
fn threading_file(py: Python<'_>) -> PyResult<&'static str> {
    static FILE: PyOnceLock<String> = PyOnceLock::new();
    let file = FILE.get_or_try_init(py, || py.import("threading")?.getattr("__file__")?.extract())?;
    Ok(file)
}

/// The directory of the package with a trailing separator, once the package is imported.
fn package_directory(py: Python<'_>) -> PyResult<Option<&'static str>> {
    static DIRECTORY: PyOnceLock<Option<String>> = PyOnceLock::new();
    let directory = DIRECTORY.get_or_try_init(py, || -> PyResult<Option<String>> {
        let modules = py.import("sys")?.getattr("modules")?;
        let Ok(module) = modules.get_item("defn._core") else {
            return Ok(None);
        };
        let file: String = module.getattr("__file__")?.extract()?;
        let end = file.rfind(['/', '\\']).map_or(0, |at| at + 1);
        Ok(Some(file[..end].to_owned()))
    })?;
    Ok(directory.as_deref())
}

/// The user's source line in quotes, after a colon; empty if it cannot be read.
pub(crate) fn source_line() -> String {
    let Some(location) = ask() else {
        return String::new();
    };
    let read = |py: Python<'_>| -> PyResult<String> {
        let line = py.import("linecache")?.call_method1("getline", (&*location.file, location.line))?;
        line.extract()
    };
    match Python::attach(read) {
        Ok(line) if !line.trim().is_empty() => format!(" in `{}`", line.trim()),
        Ok(_) | Err(_) => String::new(),
    }
}
