//! The cells that functions close over.

use pyo3::intern;
use pyo3::prelude::*;

use super::{DEPTH, GuardCollector, NamedRead, entries, entry};
use crate::containers::{self, Sort};
use crate::error::Fallible;
use crate::jit::guards::guard::RecordedValue;
use crate::jit::guards::read_path::{ReadPath, ReadStep};
use crate::jit::guards::values::{function_of, library_contents};

impl<'py> GuardCollector<'_, 'py> {
    /// Guards the cells that the code reads. `path` is the path of the function. The definition's own function has
    /// no path; its cells are part of the key of the call.
    pub(super) fn read_cells(
        &mut self,
        function: &Bound<'py, PyAny>,
        code: &Bound<'py, PyAny>,
        cells: &[NamedRead<'py>],
        path: Option<&ReadPath>,
    ) -> Fallible<()> {
        let py = self.py;
        let names: Vec<Bound<'py, PyAny>> =
            code.getattr(intern!(py, "co_freevars"))?.try_iter()?.collect::<PyResult<_>>()?;
        let closure = function.getattr(intern!(py, "__closure__"))?;
        for (name, steps) in cells {
            let mut cell = None;
            for (at, known) in names.iter().enumerate() {
                if known.eq(name)? {
                    cell = Some(at);
                }
            }
            let Some(cell) = cell.filter(|_| !closure.is_none()) else { continue };
            let Ok(content) = closure.get_item(cell)?.getattr(intern!(py, "cell_contents")) else { continue };
            if let Some(path) = path {
                self.follow(path.then(ReadStep::Cell(cell, name.to_string())), content, steps)?;
            } else if function_of(&content)?.is_some() {
                self.functions.push((content, None));
            } else if let Some(inside) = library_contents(&content)? {
                let at = ReadPath::object(&content, &format!("the closure's {name}"))?;
                self.value(at.then(ReadStep::Contents), inside)?;
            } else if containers::sort(&content)? == Sort::Object {
                // The key compares the identity of the object. What the object holds is guarded here.
                let at = ReadPath::object(&content, &format!("the closure's {name}"))?;
                self.follow(at, content, steps)?;
            } else {
                let (mut read, mut label, mut items) = (content, format!("the closure's {name}"), 0);
                for (_, key) in steps.iter().take_while(|(is_item, _)| *is_item) {
                    let Some(entry) = entry(&read, key)? else { break };
                    label.push_str(&format!("[{}]", containers::value_text(key)));
                    (read, items) = (entry, items + 1);
                }
                self.closed_arrays(&read, &label, (&name.to_string(), items))?;
            }
        }
        Ok(())
    }

    /// Guards the elements of arrays that a closure or its containers hold. The key compares only the identities of
    /// the arrays.
    fn closed_arrays(
        &mut self,
        value: &Bound<'py, PyAny>,
        label: &str,
        (name, items): (&str, usize),
    ) -> Fallible<()> {
        if let Some(recorded) = RecordedValue::elements(value, (name.to_owned(), items))? {
            return self.guard(ReadPath::object(value, label)?, recorded);
        }
        if items <= DEPTH && containers::sort(value)? == Sort::Container {
            for (key, item) in entries(value)? {
                let label = format!("{label}[{}]", containers::value_text(&key));
                self.closed_arrays(&item, &label, (name, items + 1))?;
            }
        }
        Ok(())
    }
}
