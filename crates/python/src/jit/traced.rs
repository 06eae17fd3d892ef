//! Tracing: what is traced, and the graph that tracing returns.

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::builder::{Arg, Builder};
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::vectorize::NamedAxes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Jitted;
use super::guards::{self, Capture};
use super::leaf::{self, Borrowed};
use super::program::Output;
use crate::compilers::{self, Choice};
use crate::containers::{self, Flat, Leaves, Mode, Tree};
use crate::convert;
use crate::error::Fallible;
use crate::hooks::{self, Table};
use crate::location;
use crate::ops;
use crate::recursion;
use crate::trace_allocations;

/// Calls the function that is traced.
pub(super) type TracedCall =
    Arc<dyn Fn(&Bound<'_, PyTuple>, &Bound<'_, PyDict>) -> Fallible<Py<PyAny>> + Send + Sync>;

/// What is traced: a call with a tuple and a dict, and the callable in whose closure and globals captures are found.
pub(super) struct TraceSource {
    pub(super) op: &'static str,
    pub(super) fun: Py<PyAny>,
    call: TracedCall,
}

impl TraceSource {
    pub(super) fn new(op: &'static str, fun: &Bound<'_, PyAny>, call: TracedCall) -> TraceSource {
        TraceSource { op, fun: fun.clone().unbind(), call }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> TraceSource {
        TraceSource { op: self.op, fun: self.fun.clone_ref(py), call: self.call.clone() }
    }

    /// The types of the leaves of a call.
    pub(super) fn models(&self, leaves: &Leaves<'_>) -> Fallible<Vec<Tensor>> {
        leaves.iter().map(|leaf| leaf::model(self.op, leaf)).collect()
    }
}

/// A function that was traced on types.
pub(super) struct TracedFunction {
    pub(super) region: Arc<Region>,
    /// The trace, which is closed.
    pub(super) trace: Arc<Trace>,
    pub(super) captures: Arc<[Capture]>,
    pub(super) outputs: Vec<Output>,
    pub(super) tree: Tree,
    /// The parameters that follow those for the leaves: one for each number in a further dtype.
    pub(super) further: Vec<usize>,
    /// A traced tensor for each leaf of the result.
    pub(super) leaves: Vec<Tensor>,
    pub(super) slots: Table,
}

/// The traced tensor of a leaf of a result. A number becomes a tensor.
pub(crate) fn result_tensor(op: &'static str, leaf: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    let arg = convert::arg(op, leaf)?;
    ops::with(|ops| match arg {
        Arg::Value(tensor) => Ok(tensor),
        Arg::Number(_) => Builder::operand(ops, arg),
    })
}

impl TracedFunction {
    /// Traces a function on arguments of a structure and types.
    pub(super) fn of(
        py: Python<'_>,
        source: &TraceSource,
        tree: &Tree,
        models: &[Tensor],
        compiler: &Choice,
    ) -> Fallible<TracedFunction> {
        let _call = recursion::enter(source.op)?;
        let _current = compilers::enter(compiler.clone());
        let table = hooks::collect();
        let (tracing, parameters) = Trace::begin_like(models);
        let tracing = tracing.at(location::of_function(source.fun.bind(py)));
        let wrapped = leaf::wrap(py, parameters.iter().cloned())?;
        let (args, kwargs) = leaf::arguments(py, tree, wrapped.into_iter())?;
        let result = (source.call)(&args, &kwargs)?.into_bound(py);
        let flat = containers::flatten(source.op, Mode::State, &result)?;
        let (mut outputs, mut results) = (Vec::with_capacity(flat.leaves.len()), Vec::new());
        let mut leaves = Vec::with_capacity(flat.leaves.len());
        for leaf in &flat.leaves {
            let tensor = result_tensor(source.op, leaf)?;
            let position = parameters.iter().position(|parameter| leaf::is_same_value(parameter, &tensor));
            match position.filter(|_| !tensor.is_weak()) {
                Some(position) => {
                    outputs.push(Output::Argument(position));
                    leaves.push(parameters[position].clone());
                }
                None => {
                    let lanes = NamedAxes::from(tensor.vectorized_axes());
                    outputs.push(Output::Result(results.len(), lanes));
                    leaves.push(tensor.clone());
                    results.push(tensor);
                }
            }
        }
        let slots = table.finish();
        let trace = tracing.trace().clone();
        let closed = tracing.finish(source.op, &results)?;
        // A tensor from outside the trace is a value of the trace now.
        for (output, leaf) in outputs.iter().zip(&mut leaves) {
            if let Output::Result(position, lanes) = output {
                let value = closed.region.results()[*position];
                let ty = closed.region.graph().ty(value).clone();
                *leaf = Tensor::traced(ty, trace.clone(), value).with_vectorized(lanes);
            }
        }
        let captures = closed
            .captures
            .iter()
            .map(|capture| guards::locate(source.op, source.fun.bind(py), tree, capture))
            .collect::<Fallible<_>>()?;
        let (region, further) = (Arc::new(closed.region), closed.further);
        Ok(TracedFunction { region, trace, captures, outputs, tree: flat.tree, further, leaves, slots })
    }

    /// A copy, for a program that outlives what the compiler received.
    pub(super) fn clone_ref(&self, py: Python<'_>) -> TracedFunction {
        TracedFunction {
            region: self.region.clone(),
            trace: self.trace.clone(),
            captures: self.captures.clone(),
            outputs: self.outputs.clone(),
            tree: self.tree.clone_ref(py),
            further: self.further.clone(),
            leaves: self.leaves.clone(),
            slots: self.slots.clone(),
        }
    }

    /// The values of the captures, as [`Program::read_captures`](super::program::Program::read_captures).
    pub(super) fn read_captures(
        &self,
        fun: &Bound<'_, PyAny>,
        arguments: &Tree,
        borrowed: &mut Borrowed,
    ) -> Fallible<Option<Vec<Tensor>>> {
        guards::read_captures(&self.captures, fun, arguments, borrowed)
    }
}

impl Jitted {
    /// The flattened arguments of a call.
    pub(crate) fn flatten_call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Flat<'py>> {
        self.signature.flatten(self.function.bind(py), args, kwargs)
    }

    /// The name of a positional argument.
    pub(crate) fn argument_name(&self, py: Python<'_>, position: usize) -> String {
        self.signature.name(py, position)
    }

    /// What a trace of the definition calls.
    pub(super) fn source(slf: &Bound<'_, Jitted>) -> TraceSource {
        let (this, definition) = (slf.get(), slf.clone().unbind());
        let call = move |args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>| {
            Ok(definition.get().apply(args, Some(kwargs))?.unbind())
        };
        TraceSource::new(this.kind.op(), this.function.bind(slf.py()), Arc::new(call))
    }

    /// The graph of the function for arguments of a structure and types. Nothing is compiled.
    pub(crate) fn region(slf: &Bound<'_, Jitted>, tree: &Tree, models: &[Tensor]) -> Fallible<Arc<Region>> {
        let py = slf.py();
        let traced =
            TracedFunction::of(py, &Jitted::source(slf), tree, models, &slf.get().settings.compiler(py)?);
        trace_allocations::forget();
        Ok(traced?.region)
    }
}
