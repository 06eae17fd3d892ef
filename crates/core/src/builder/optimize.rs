//! Zeros and minima of functions of containers.

use super::draft::Draft;
use super::implicit::{at_least_one, coarsest_epsilon, like_unknowns, require_tolerances, traced};
use super::{BuildControl, BuildElementwise, BuildShape, LinearFunction, LinearOptions, Ops};
use crate::error::{ErrorKind, Result};
use crate::grad::region::Draft as RegionDraft;
use crate::graph::Value;
use crate::op::Tolerance;
use crate::optimize::{Limits, Problem, Search};
use crate::shape::{Shape, TensorType};
use crate::tensor::Tensor;

/// What an optimization found, and for each position of vectorized axes how it ended.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// The unknowns. Their derivatives are those of the implicit function, NaN where the status is not 0.
    pub x: Vec<Tensor>,
    /// The results of the function there.
    pub fun: Vec<Tensor>,
    /// 0: converged; 1: the last allowed iteration was done; 2: no step makes progress; 3: a value is NaN or infinite.
    pub status: Tensor,
    /// The number of iterations.
    pub iterations: Tensor,
    /// How often the function was evaluated.
    pub evaluations: Tensor,
    /// The greatest magnitude in the gradient of the value, or of half the squared norm of the residuals.
    pub gradient_norm: Tensor,
}

/// An algorithm for zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootMethod {
    /// Newton's method with the Jacobian, which is factored.
    Newton,
    /// Newton's method, in which GMRES in cycles of this many products with the Jacobian finds the steps.
    Krylov {
        /// The products of a cycle.
        restart: usize,
    },
}

impl RootMethod {
    /// The names of the algorithms.
    pub const NAMES: &'static [&'static str] = &["newton", "krylov"];

    /// The algorithm of a name. `restart` is that of `krylov`.
    pub fn of_name(name: &str, restart: usize) -> Option<RootMethod> {
        match name {
            "newton" => Some(RootMethod::Newton),
            "krylov" => Some(RootMethod::Krylov { restart }),
            _ => None,
        }
    }
}

/// The options of [`root`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootOptions {
    /// The algorithm.
    pub method: RootMethod,
    /// The tolerance of the last step, relative to each unknown; without one the two-thirds power of the dtype's epsilon.
    pub rtol: Option<f64>,
    /// The magnitude of residuals that count as zero.
    pub atol: f64,
    /// The maximum number of iterations.
    pub maxiter: i64,
}

impl Default for RootOptions {
    /// Newton's method.
    fn default() -> RootOptions {
        RootOptions { method: RootMethod::Newton, rtol: None, atol: 0.0, maxiter: 100 }
    }
}

/// A zero of a function near `x0`, which maps unknowns to as many residuals of the same types.
///
/// # Errors
/// Residuals of other types than the unknowns, options out of range, and the errors of the function.
pub fn root(
    ops: &mut Ops,
    options: &RootOptions,
    x0: &[Tensor],
    function: LinearFunction<'_>,
) -> Result<Optimum> {
    let op = "root";
    require_tolerances(op, &[("rtol", options.rtol), ("atol", Some(options.atol))])?;
    let x0 = unknowns(ops, op, x0)?;
    let (search, derivative) = match options.method {
        RootMethod::Newton => (Search::Newton, LinearOptions::dense()),
        RootMethod::Krylov { restart } => (Search::Krylov(restart), LinearOptions::gmres(restart)),
    };
    let limits = limits(op, &x0, options.rtol, options.atol, options.maxiter)?;
    let kind = Kind { search, limits, derivative };
    solved(ops, op, kind, &x0, ("the value of fun", function), like_unknowns)
}

/// The unknowns as floats.
fn unknowns(ops: &mut Ops, op: &'static str, x0: &[Tensor]) -> Result<Vec<Tensor>> {
    if x0.is_empty() {
        let (given, required) = ("without a tensor".to_owned(), "a container of tensors".to_owned());
        return Err(ErrorKind::OptionValue { op, option: "x0", given, required }.into());
    }
    x0.iter().map(|x| ops.as_type(x, x.ty().dtype.to_float())).collect()
}

fn limits(op: &'static str, x0: &[Tensor], rtol: Option<f64>, atol: f64, maxiter: i64) -> Result<Limits> {
    let rtol = rtol.unwrap_or_else(|| coarsest_epsilon(x0).powf(2.0 / 3.0));
    let maxiter = at_least_one(op, "maxiter", Some(maxiter))?.unwrap_or(1);
    Ok(Limits { rtol: Tolerance(rtol), atol: Tolerance(atol), maxiter })
}

/// What is wanted, when it is found, and how the derivative is solved for.
struct Kind {
    search: Search,
    limits: Limits,
    derivative: LinearOptions,
}

fn solved(
    ops: &mut Ops,
    op: &'static str,
    kind: Kind,
    x0: &[Tensor],
    function: (&'static str, LinearFunction<'_>),
    types: impl Fn(&'static str, &'static str, &[Tensor], &Draft) -> Result<Vec<TensorType>>,
) -> Result<Optimum> {
    let derivative = kind.derivative.solver(op, x0)?;
    let traced = traced(ops, op, x0, vec![function], types)?;
    let mut arguments: Vec<Tensor> = traced.at.iter().map(Tensor::flat).collect();
    let given = arguments.len();
    arguments.extend(traced.captures.iter().cloned());

    let mut draft = RegionDraft::new();
    let inputs: Vec<Value> = arguments.iter().map(|x| draft.input(x.ty().clone())).collect();
    let Kind { search, limits, .. } = kind;
    let lanes = traced.lanes.len();
    let problem = Problem { search, limits, lanes, function: &traced.functions[0], derivative };
    let graph = &mut draft.graph;
    let found = problem.solve(graph, &inputs[..given], &inputs[given..])?;
    let sizes: Vec<usize> = traced.lanes.iter().map(|&(_, size)| size).collect();
    let mut results: Vec<Value> = found.x.iter().chain(&found.results).copied().collect();
    for number in [found.status, found.iterations, found.evaluations, found.gradient_norm] {
        results.push(graph.reshape_to(number, Shape::new(&sizes))?);
    }
    let region = draft.close(inputs.len(), &results)?;
    let results = ops.inline(&region, &arguments)?;
    let mut results = results.into_iter().map(|x| x.with_vectorized(&traced.lanes));
    let x = results.by_ref().take(given).collect();
    let fun = results.by_ref().take(found.results.len()).collect();
    let mut next = || results.next().expect("a result for each field");
    Ok(Optimum { x, fun, status: next(), iterations: next(), evaluations: next(), gradient_norm: next() })
}

/// Refuses statuses of which one is not 0. The error describes the first such position.
///
/// ```
/// use defn_core::builder::require_converged;
/// assert!(require_converged("root", &[0, 0], &[4, 7], &[0.0, 0.0]).is_ok());
/// let error = require_converged("root", &[0, 2], &[4, 7], &[0.0, 0.5]).unwrap_err();
/// assert!(error.to_string().contains("no step makes progress after iteration 7 at position 1 of 2"));
/// ```
///
/// # Errors
/// A status other than 0.
pub fn require_converged(
    op: &'static str,
    status: &[i64],
    iterations: &[i64],
    gradient_norms: &[f64],
) -> Result<()> {
    let Some(first) = status.iter().position(|&status| status != 0) else { return Ok(()) };
    let (reason, hint) = match status[first] {
        1 => ("the tolerances are not met", "allow more iterations with maxiter"),
        2 => ("no step makes progress", "begin elsewhere, with a larger tolerance, or in f64"),
        _ => ("a value or a derivative is NaN or infinite", "begin where they are finite"),
    };
    let position = match status.len() {
        1 => String::new(),
        count => format!(" at position {first} of {count}"),
    };
    let gradient = format!("{:.1e}", gradient_norms.get(first).copied().unwrap_or(f64::NAN));
    let iterations = iterations.get(first).copied().unwrap_or(0);
    let stopped = format!(
        "{reason} after iteration {iterations}{position}, where the greatest element of the gradient is {gradient}"
    );
    Err(ErrorKind::NotConverged { op, stopped, hint }.into())
}
