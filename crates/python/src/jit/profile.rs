//! Profiled runs: the implementation of `profile` of a definition.

use std::sync::Arc;

use defn_core::profile::{Recorder, observing};
use defn_core::trace;
use pyo3::intern;
use pyo3::prelude::*;

use crate::compilers::Choice;
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;

/// Runs a program once by `call`, and returns the times of its steps.
///
/// # Errors
/// What the call raises, a compiler whose programs do not run in steps, and a call while tracing.
pub(super) fn profile<'py>(
    py: Python<'py>,
    chosen: impl FnOnce() -> Fallible<Option<Choice>>,
    call: impl FnOnce() -> Fallible<Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        if trace::depth() > 0 {
            let problem = "a definition is being traced, which runs nothing".to_owned();
            return Err(Misuse::Profile { problem, required: "a call outside is required" }.into());
        }
        match chosen()? {
            Some(Choice::BuiltIn(known)) if known.runs_steps() => {}
            choice => {
                let name = choice.as_ref().map_or("pjrt", Choice::name);
                let problem = format!("\"{name}\" runs a program as a whole");
                let required = "\"cpu\" or \"evaluator\", which run it in steps, is required";
                return Err(Misuse::Profile { problem, required }.into());
            }
        }
        let recorder = Arc::new(Recorder::default());
        let result = observing(&recorder, call)?;
        let record = recorder.record();
        let rows: Vec<_> = record
            .steps
            .iter()
            .map(|step| {
                let work = &step.work;
                let lines: Vec<String> = work.lines.iter().map(ToString::to_string).collect();
                (
                    work.ops.clone(),
                    lines,
                    step.runs,
                    step.time.as_secs_f64(),
                    work.bytes,
                    work.flops,
                    work.is_control,
                )
            })
            .collect();
        let totals: Vec<_> = record
            .totals()
            .iter()
            .map(|total| (total.step, total.depth, total.bytes, total.flops, total.is_wide))
            .collect();
        let spans = record.spans.iter();
        let spans: Vec<_> =
            spans.map(|span| (span.step, span.start.as_secs_f64(), span.time.as_secs_f64())).collect();
        let threads = match record.threads {
            Some(threads) => threads,
            None => defn_cpu::threads()?,
        };
        let arguments = (rows, totals, spans, record.total.as_secs_f64(), record.left_out, threads, result);
        Ok(py.import("defn.profile")?.call_method1(intern!(py, "Profile"), arguments)?)
    })
}

/// The limits of the machine with a number of threads: bandwidth, and operations per second of `f32` and `f64`.
#[pyfunction]
fn roofline(py: Python<'_>, threads: usize) -> Fallible<(f64, f64, f64)> {
    guard(|| {
        let measured =
            crate::gil::detach(py, || defn_cpu::with_threads(threads, defn_cpu::Roofline::measured))??;
        Ok((measured.bandwidth, measured.flops, measured.wide_flops))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(roofline, module)?)
}
