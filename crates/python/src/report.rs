//! A report of tensor memory and the lines that allocated it.

use defn_cpu::MemoryReport;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::dtype;

/// The report as a tuple: live, peak, cached, borrowed and unlisted bytes, a list of the tensors, and the
/// text. Each entry of the list has dtype, sizes, names, count, bytes, line, and whether the memory is
/// borrowed and shared.
#[pyfunction]
fn memory_report(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let report = defn_cpu::memory_report();
    let text = report.to_string();
    let MemoryReport { live, peak, cached, borrowed, unlisted, tensors } = report;
    let list = PyList::empty(py);
    for group in tensors {
        let shape = &group.ty.shape;
        let names: Vec<Option<&str>> = shape.names().map(|name| name.map(|name| &**name)).collect();
        let line = group.line.as_ref().map(ToString::to_string);
        list.append((
            dtype::object(py, group.ty.dtype)?.clone(),
            PyTuple::new(py, shape.sizes())?,
            PyTuple::new(py, names)?,
            group.count,
            group.bytes,
            line,
            group.is_borrowed,
            group.is_shared,
        ))?;
    }
    (live, peak, cached, borrowed, unlisted, list, text).into_pyobject(py)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(memory_report, module)?)
}
