//! Annotations of functions and classes, resolved where they can be.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::error::Fallible;
use crate::misuse::Misuse;

/// Another source that declares names static, besides annotations. It decides which unresolvable annotations
/// are errors, and words the advice in the message.
pub(crate) struct StaticDeclarations<'a> {
    pub(crate) op: &'static str,
    /// The advice as text before and after the name.
    pub(crate) advice: (&'static str, &'static str),
    pub(crate) is_marked: &'a dyn Fn(&str) -> bool,
}

/// The annotations of a function or a class by name. An annotation whose names cannot be resolved is left
/// out: it is not a marker.
///
/// # Errors
/// An annotation that contains `Static` and cannot be resolved: options and inputs could not be told apart.
pub(crate) fn resolve<'py>(
    owner: &Bound<'py, PyAny>,
    otherwise: &StaticDeclarations<'_>,
) -> Fallible<Bound<'py, PyDict>> {
    let py = owner.py();
    let typing = py.import("typing")?;
    let with_extras = PyDict::new(py);
    with_extras.set_item("include_extras", true)?;
    let all = typing.call_method(intern!(py, "get_type_hints"), (owner,), Some(&with_extras));
    match all {
        Ok(hints) => return Ok(hints.cast_into::<PyDict>().map_err(PyErr::from)?),
        Err(error) if error.is_instance_of::<PyException>(py) => {}
        Err(error) => return Err(error.into()),
    }
    // One unresolvable annotation makes the call fail for all of them, so each is resolved separately.
    let found = PyDict::new(py);
    let namespace = py.import("types")?.getattr(intern!(py, "SimpleNamespace"))?;
    for (holder, globals) in holders(owner)? {
        let Some(annotations) = holder.getattr_opt(intern!(py, "__annotations__"))? else { continue };
        let Ok(annotations) = annotations.cast_into::<PyDict>() else { continue };
        with_extras.set_item("globalns", globals)?;
        for (name, annotation) in annotations.iter() {
            let alone = PyDict::new(py);
            alone.set_item(&name, &annotation)?;
            let fields = PyDict::new(py);
            fields.set_item("__annotations__", alone)?;
            let holder = namespace.call((), Some(&fields))?;
            match typing.call_method(intern!(py, "get_type_hints"), (holder,), Some(&with_extras)) {
                Ok(hint) => found.set_item(&name, hint.get_item(&name)?)?,
                Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error.into()),
                Err(error) => {
                    let (name, text) = (name.str()?.to_string(), annotation.str()?.to_string());
                    let text = text.trim_matches(['\'', '"']);
                    if annotation.is_instance_of::<PyString>()
                        && text.contains("Static")
                        && !(otherwise.is_marked)(&name)
                    {
                        let (op, (before, behind)) = (otherwise.op.to_owned(), otherwise.advice);
                        let why = error.value(py);
                        let what = format!("the annotation \"{text}\" of {name} cannot be resolved: {why}");
                        let required = format!(
                            "a static one must name what its module has, or else {before}{name}{behind}"
                        );
                        return Err(Misuse::Call { op, what, required }.into());
                    }
                }
            }
        }
    }
    Ok(found)
}

/// The objects that carry annotations, each with the globals in which its names are resolved: a function, or
/// a class and its base classes, the most distant base first.
fn holders<'py>(owner: &Bound<'py, PyAny>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = owner.py();
    let Ok(class) = owner.cast::<PyType>() else {
        let inner = py.import("inspect")?.call_method1(intern!(py, "unwrap"), (owner,))?;
        let globals = inner.getattr_opt(intern!(py, "__globals__"))?;
        return Ok(vec![(owner.clone(), globals.unwrap_or_else(|| PyDict::new(py).into_any()))]);
    };
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    let mut found = Vec::new();
    for base in class.mro().iter() {
        if !base.getattr(intern!(py, "__dict__"))?.contains(intern!(py, "__annotations__"))? {
            continue;
        }
        // If the module is missing, only builtins can be resolved.
        let globals = match modules.get_item(base.getattr(intern!(py, "__module__"))?) {
            Ok(module) => module.getattr(intern!(py, "__dict__"))?,
            Err(_) => PyDict::new(py).into_any(),
        };
        found.push((base, globals));
    }
    found.reverse();
    Ok(found)
}
