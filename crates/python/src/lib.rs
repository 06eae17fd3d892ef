//! `defn._core`: the Python interface of the core. Conversions and handles; no numerical logic.

mod about;
mod annotations;
mod array;
mod associative;
mod backends;
mod batches;
mod buffer;
mod build;
mod calls;
mod catalogue;
mod checks;
mod compilers;
mod containers;
mod control;
mod convert;
mod dlpack;
mod dtype;
mod error;
mod fields;
mod formats;
mod generators;
mod gil;
mod grad;
mod graph;
mod hooks;
mod index;
mod jit;
mod jvp;
mod lazy;
mod location;
mod memory;
mod misuse;
mod nodes;
mod numbers;
mod ode;
mod ops;
mod optimize;
mod options;
mod pickle;
mod pjrt;
mod pointer;
mod pybackend;
mod read;
mod recursion;
mod report;
mod rows;
mod scope;
mod shard;
mod show;
mod solvers;
mod sparsity;
mod tensor;
mod threads;
mod trace_allocations;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: defn_cpu::Allocator = defn_cpu::Allocator::new();

/// The extension module. It relies on the GIL: a free-threaded interpreter enables it on import.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    defn_core::location::find_by(location::ask);
    defn_cpu::set_poll(gil::poll_main);
    // The backend registers where thread stacks end, which must be known before anything is computed.
    let _ = defn_cpu::cpu_backend();
    module.add_class::<dtype::PyDType>()?;
    module.add_class::<tensor::PyTensor>()?;
    module.add("dtypes", dtype::all(py)?)?;
    module.add_function(wrap_pyfunction!(dtype::dtype_of, module)?)?;
    module.add_function(wrap_pyfunction!(pickle::rebuild, module)?)?;
    ops::add(module)?;
    index::add(module)?;
    pybackend::add(module)?;
    about::add(module)?;
    containers::add(module)?;
    lazy::add(module)?;
    scope::add(module)?;
    options::add(module)?;
    checks::add(module)?;
    threads::add(module)?;
    report::add(module)?;
    backends::add(module)?;
    pjrt::add(module)?;
    shard::add(module)?;
    pointer::add(module)?;
    formats::add(module)?;
    batches::add(module)?;
    show::add(module)?;
    jit::add(module)?;
    nodes::add(module)?;
    compilers::add(module)?;
    grad::add(module)?;
    jvp::add(module)?;
    sparsity::add(module)?;
    associative::add(module)?;
    solvers::add(module)?;
    ode::add(module)?;
    optimize::add(module)?;
    control::add(module)?;
    hooks::add(module)?;
    calls::add(module)?;
    generators::add(module)?;
    graph::add(module)?;
    catalogue::add(module)
}
