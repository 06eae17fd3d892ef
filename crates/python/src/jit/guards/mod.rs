//! Guards.

mod array_elements;
mod capture_path;
mod captures;
mod closed_values;
mod collect;
mod guard;
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
pub(super) use guard::{Change, Guard};
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

    /// The guards that count: a place that tracing gave another meaning is what the function changes, and not what
    /// it depends on; nor is what its host functions alone read, nor arrays that are `inputs` of the program.
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
        let mut kept = Vec::with_capacity(self.0.len());
        for guard in self.0 {
            let is_counted = counted.as_ref().is_none_or(|counted| counted.contains(&guard.key(py)));
            if is_counted && !guard.is_input(py, inputs)? && guard.holds(py)? {
                kept.push(guard);
            }
        }
        Ok(Guards(kept))
    }

    /// Whether all places mean what they did.
    pub(super) fn hold(&self, py: Python<'_>) -> Fallible<bool> {
        for guard in &self.0 {
            if !guard.holds(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stops the checks of places that the first run changed, as host functions may.
    pub(super) fn disable_changed(&self, py: Python<'_>) -> Fallible<()> {
        self.0.iter().try_for_each(|guard| guard.disable_if_changed(py))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter()
    }
}

/// Where the search for guards begins: functions, and objects by their names in messages.
pub(super) struct GuardRoots<'py> {
    functions: Vec<Bound<'py, PyAny>>,
    objects: Vec<(Bound<'py, PyAny>, String)>,
}

impl<'py> GuardRoots<'py> {
    /// The function, functions given to it, and the objects that both hold and tell apart by identity only.
    pub(super) fn of_call(
        fun: &Bound<'py, PyAny>,
        transform: Option<&Bound<'py, PyAny>>,
        takes_self: bool,
        flat: &Flat<'py>,
        closed: &[ClosedValue],
    ) -> Fallible<GuardRoots<'py>> {
        let py = fun.py();
        let held = |tree: &Tree| -> Vec<Bound<'py, PyAny>> {
            tree.held().iter().map(|held| held.object().bind(py).clone()).collect()
        };
        let given = flat.tree.held().iter().filter(|held| held.is_function());
        let mut functions: Vec<Bound<'py, PyAny>> =
            given.map(|held| held.object().bind(py).clone()).collect();
        functions.push(fun.clone());
        functions.extend(transform.cloned());
        let mut objects = Vec::new();
        if !fun.is_exact_instance_of::<PyFunction>()
            && let Some(call) = fun.getattr_opt(intern!(py, "__call__"))?
        {
            functions.push(call);
            objects.push((fun.clone(), "self".to_owned()));
        }
        for object in held(&flat.tree) {
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
                let parts = held(&value.structure.tree);
                objects.extend(parts.into_iter().map(|object| (object, label.clone())));
            }
        }
        Ok(GuardRoots { functions, objects })
    }
}
