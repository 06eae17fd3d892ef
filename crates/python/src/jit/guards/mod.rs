//! Guards: what outside the arguments of a call may change the traced program.
//!
//! A guard is a recorded value and the check that this value is unchanged. The value is that of a global, of a
//! variable that a function closes over, of an attribute of a module, class or object, or the type of a captured
//! tensor. A traced program contains such values as constants. A compiled version therefore runs only while its
//! guards hold. Captured tensors are different: only their types are constants, and their elements are hidden inputs
//! of the program, which each call reads again. Four settings are also compared on each call: the compiler, the set
//! of checks, when to compile, and the default float. They are fields of the key in `cache`.
//!
//! Guards are recorded when a version is compiled:
//!
//! 1. Before tracing, [`closed_values()`] reads the cells and defaults of the function, and [`Guards::record`] reads
//!    what the code of the function names.
//! 2. After tracing, [`locate`] searches for the place of each captured tensor.
//! 3. [`record_closed_values`] compares the closed-over values before and after tracing. [`Guards::into_stable`]
//!    compares the other guards in the same way. A value that tracing itself changed is an effect of the function.
//!    It is not guarded.
//! 4. After the first run, [`Guards::disable_changed`] switches off the guards of places that a host function has
//!    changed.
//!
//! Guards are checked on each call, in this order:
//!
//! 1. The closed-over values are part of the key of the call. [`equal_closed_values`] compares them with those of
//!    each version that has the same hash.
//! 2. [`Guards::hold`] reads each guarded place again.
//! 3. [`read_captures`] reads each captured tensor again, and compares its type.
//!
//! The fast path in `versions` checks [`Guards::hold`] alone. It is only for functions that close over nothing and
//! programs without captures.
//!
//! A call passes over a version whose guards do not hold. The version is kept, because its guards may hold again
//! later.
//!
//! | submodule | question |
//! |---|---|
//! | `closed_values` | What do the cells and defaults of a function contain? |
//! | `collect` | Which other places does the code of a function read? |
//! | `read_path` | Where is a guarded place, and what is its value now? |
//! | `values` | What kind of value is at a place? |
//! | `packages` | Is a module the user's, or that of an installed package? |
//! | `guard` | What was recorded of one place, and is it unchanged? |
//! | `array_elements` | Does a NumPy array have the same elements? |
//! | `captures` | Which tensors did a function capture, and what are they now? |
//! | `capture_path` | Where is a captured tensor found again? |

mod array_elements;
mod capture_path;
mod captures;
mod closed_values;
mod collect;
mod guard;
mod packages;
mod read_path;
mod values;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyFunction;
use rustc_hash::FxHashSet;

use crate::containers::{Flat, Tree};
use crate::error::Fallible;
pub(super) use captures::{Capture, input_arrays, locate, missing_capture, read_captures};
pub(super) use closed_values::{
    ClosedLabel, ClosedValue, RecordedClosedValue, closed_labels, closed_values, equal_closed_values,
    has_closed_values, record_closed_values, short_name,
};
pub(super) use collect::add;
use collect::{Excluded, GuardCollector};
pub(super) use guard::Change;
use guard::Guard;
pub(super) use values::describe_value;

/// The guards of a compiled version.
pub(super) struct Guards(Vec<Guard>);

impl Guards {
    /// Records what some functions and objects read, and what the functions that they name read.
    pub(super) fn record(py: Python<'_>, roots: &GuardRoots<'_>) -> Fallible<Guards> {
        Guards::record_without(py, roots, &Excluded::default())
    }

    fn record_without(py: Python<'_>, roots: &GuardRoots<'_>, excluded: &Excluded) -> Fallible<Guards> {
        let mut collector = GuardCollector::new(py, excluded);
        for function in &roots.functions {
            collector.function(function.clone());
        }
        for (object, label) in &roots.objects {
            collector.object(object, label)?;
        }
        collector.finish().map(Guards)
    }

    /// The guards that matter after tracing. Three kinds are dropped: places whose value tracing changed, because
    /// that is what the function does and not what it depends on; places that only its host functions read; and
    /// arrays that are `inputs` of the program.
    pub(super) fn into_stable<'py>(
        self,
        py: Python<'py>,
        roots: &GuardRoots<'py>,
        hosts: impl IntoIterator<Item = Bound<'py, PyAny>>,
        inputs: &FxHashSet<usize>,
    ) -> Fallible<Guards> {
        let excluded = Excluded::of(hosts)?;
        let counted: Option<FxHashSet<String>> = if excluded.is_empty() {
            None
        } else {
            let guards = Guards::record_without(py, roots, &excluded)?;
            Some(guards.iter().map(|guard| guard.key(py)).collect())
        };
        let mut stable = Vec::with_capacity(self.0.len());
        for guard in self.0 {
            let is_counted = counted.as_ref().is_none_or(|counted| counted.contains(&guard.key(py)));
            if is_counted && !guard.is_input(py, inputs)? && guard.holds(py)? {
                stable.push(guard);
            }
        }
        Ok(Guards(stable))
    }

    /// Whether all places have the values that were recorded.
    pub(super) fn hold(&self, py: Python<'_>) -> Fallible<bool> {
        for guard in &self.0 {
            if !guard.holds(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Switches off the guards of places that the first run changed. Host functions may do that.
    pub(super) fn disable_changed(&self, py: Python<'_>) -> Fallible<()> {
        self.0.iter().try_for_each(|guard| guard.disable_if_changed(py))
    }

    /// The guards, one by one.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter()
    }
}

/// Where the search for guards begins: at functions, and at objects with their names in messages.
pub(super) struct GuardRoots<'py> {
    functions: Vec<Bound<'py, PyAny>>,
    objects: Vec<(Bound<'py, PyAny>, String)>,
}

impl<'py> GuardRoots<'py> {
    /// The roots of a call: the function, the functions that are passed to it, and the objects in its arguments and
    /// closed-over values that the key compares by identity only.
    pub(super) fn of_call(
        fun: &Bound<'py, PyAny>,
        transform: Option<&Bound<'py, PyAny>>,
        takes_self: bool,
        flat: &Flat<'py>,
        closed: &[ClosedValue],
    ) -> Fallible<GuardRoots<'py>> {
        let py = fun.py();
        let object = |tree: &Tree| -> Vec<Bound<'py, PyAny>> {
            tree.objects().iter().map(|object| object.object().bind(py).clone()).collect()
        };
        let passed = flat.tree.objects().iter().filter(|object| object.is_function());
        let mut functions: Vec<Bound<'py, PyAny>> =
            passed.map(|object| object.object().bind(py).clone()).collect();
        functions.push(fun.clone());
        functions.extend(transform.cloned());
        let mut objects = Vec::new();
        if !fun.is_exact_instance_of::<PyFunction>()
            && let Some(call) = fun.getattr_opt(intern!(py, "__call__"))?
        {
            functions.push(call);
            objects.push((fun.clone(), "self".to_owned()));
        }
        for object in object(&flat.tree) {
            let label = if takes_self { "self" } else { "an argument" };
            objects.push((object, label.to_owned()));
        }
        if !closed.is_empty() {
            let labels = closed_labels(fun, transform, &flat.tree)?;
            for (value, label) in closed.iter().zip(labels) {
                let label = match label {
                    ClosedLabel::Whole(text) => text,
                    ClosedLabel::Defaults { of, .. } => format!("the defaults{of}"),
                };
                let parts = object(&value.structure.tree);
                objects.extend(parts.into_iter().map(|object| (object, label.clone())));
            }
        }
        Ok(GuardRoots { functions, objects })
    }
}
