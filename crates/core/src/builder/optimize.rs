//! Zeros and minima of functions of containers.

use super::draft::Draft;
use super::implicit::{at_least_one, coarsest_epsilon, like_unknowns, require_tolerances, traced};
use super::{BuildElementwise, BuildShape, LinearFunction, LinearOptions, Ops};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::Value;
use crate::op::Tolerance;
use crate::optimize::{Limits, Problem, Search};
use crate::shape::TensorType;
use crate::solvers::coordinates::Coordinates;
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
///
/// ```
/// use defn_core::builder::RootMethod;
/// assert_eq!(RootMethod::of_name("krylov", 20), Some(RootMethod::Krylov { restart: 20 }));
/// ```
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
///
/// ```
/// use defn_core::builder::{RootMethod, RootOptions};
/// let options = RootOptions { atol: 1e-9, ..RootOptions::default() };
/// assert_eq!((options.method, options.maxiter), (RootMethod::Newton, 100));
/// ```
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
    let limits = limits(op, &x0, (options.rtol, options.atol, None), options.maxiter)?;
    let kind = Kind { search, limits, derivative };
    solved(ops, op, kind, &x0, ("the value of fun", function), like_unknowns)
}

/// An algorithm for minima.
///
/// ```
/// use defn_core::builder::MinimizeMethod;
/// assert_eq!(MinimizeMethod::of_name("lbfgs", 10), Some(MinimizeMethod::Lbfgs { history: 10 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinimizeMethod {
    /// BFGS, which keeps an approximate inverse of the Hessian.
    Bfgs,
    /// L-BFGS, which keeps the last steps.
    Lbfgs {
        /// The number of steps that are kept.
        history: usize,
    },
    /// Newton's method with the Hessian.
    Newton,
}

impl MinimizeMethod {
    /// The names of the algorithms.
    pub const NAMES: &'static [&'static str] = &["bfgs", "lbfgs", "newton"];

    /// The algorithm of a name. `history` is that of `lbfgs`.
    pub fn of_name(name: &str, history: usize) -> Option<MinimizeMethod> {
        match name {
            "bfgs" => Some(MinimizeMethod::Bfgs),
            "lbfgs" => Some(MinimizeMethod::Lbfgs { history }),
            "newton" => Some(MinimizeMethod::Newton),
            _ => None,
        }
    }
}

/// The options of [`minimize`].
///
/// ```
/// use defn_core::builder::{MinimizeMethod, MinimizeOptions};
/// let options = MinimizeOptions { gtol: Some(1e-6), ..MinimizeOptions::default() };
/// assert_eq!((options.method, options.maxiter), (MinimizeMethod::Bfgs, 1000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinimizeOptions {
    /// The algorithm.
    pub method: MinimizeMethod,
    /// The magnitude of a gradient that counts as zero; without one the root of the dtype's epsilon.
    pub gtol: Option<f64>,
    /// The maximum number of iterations.
    pub maxiter: i64,
}

impl Default for MinimizeOptions {
    /// BFGS.
    fn default() -> MinimizeOptions {
        MinimizeOptions { method: MinimizeMethod::Bfgs, gtol: None, maxiter: 1000 }
    }
}

/// A minimum near `x0` of a function, whose value is a real scalar.
///
/// # Errors
/// Another value, options out of range, and the errors of the function.
pub fn minimize(
    ops: &mut Ops,
    options: &MinimizeOptions,
    x0: &[Tensor],
    function: LinearFunction<'_>,
) -> Result<Optimum> {
    let op = "minimize";
    require_tolerances(op, &[("gtol", options.gtol)])?;
    let x0 = unknowns(ops, op, x0)?;
    let (search, derivative) = match options.method {
        MinimizeMethod::Bfgs => (Search::Bfgs, LinearOptions::dense()),
        MinimizeMethod::Newton => (Search::NewtonMinimum, LinearOptions::dense()),
        MinimizeMethod::Lbfgs { history } => {
            let history = at_least_one(op, "history", i64::try_from(history).ok())?.unwrap_or(1);
            (Search::Lbfgs(history), LinearOptions::cg())
        }
    };
    let gtol = options.gtol.unwrap_or_else(|| coarsest_epsilon(&x0).sqrt());
    let limits = limits(op, &x0, (None, 0.0, Some(gtol)), options.maxiter)?;
    let kind = Kind { search, limits, derivative };
    solved(ops, op, kind, &x0, ("the value of fun", function), real_scalar)
}

/// The type of a number to be minimized.
pub(super) fn real_scalar(
    op: &'static str,
    what: &'static str,
    at: &[Tensor],
    draft: &Draft,
) -> Result<Vec<TensorType>> {
    let dtype = at.iter().map(|x| x.ty().dtype.to_real()).fold(DType::F32, DType::merge);
    if draft.results.len() != 1 {
        let (what, got) = ("function", draft.results.len());
        return Err(ErrorKind::RegionResults { op, what, got, expected: 1 }.into());
    }
    let ty = draft.result_type(0, dtype);
    if ty.shape.rank() != 0 {
        return Err(ErrorKind::NotScalar { op, what, got: ty }.into());
    }
    if !ty.dtype.is_float() {
        return Err(ErrorKind::ObjectiveDType { op, got: ty }.into());
    }
    Ok(vec![ty])
}

/// An algorithm for least squares.
///
/// ```
/// use defn_core::builder::LeastSquaresMethod;
/// assert_eq!(LeastSquaresMethod::of_name("gauss_newton"), Some(LeastSquaresMethod::GaussNewton));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastSquaresMethod {
    /// That of Levenberg and Marquardt, which damps steps.
    LevenbergMarquardt,
    /// That of Gauss and Newton, which shortens steps.
    GaussNewton,
}

impl LeastSquaresMethod {
    /// The names of the algorithms.
    pub const NAMES: &'static [&'static str] = &["lm", "gauss_newton"];

    /// The algorithm of a name.
    pub fn of_name(name: &str) -> Option<LeastSquaresMethod> {
        match name {
            "lm" => Some(LeastSquaresMethod::LevenbergMarquardt),
            "gauss_newton" => Some(LeastSquaresMethod::GaussNewton),
            _ => None,
        }
    }
}

/// The options of [`least_squares`].
///
/// ```
/// use defn_core::builder::{LeastSquaresMethod, LeastSquaresOptions};
/// let options = LeastSquaresOptions { maxiter: 50, ..LeastSquaresOptions::default() };
/// assert_eq!(options.method, LeastSquaresMethod::LevenbergMarquardt);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquaresOptions {
    /// The algorithm.
    pub method: LeastSquaresMethod,
    /// The tolerance of the step that the linearization asks for, relative to each unknown; without one the two-thirds power of
    /// the dtype's epsilon.
    pub rtol: Option<f64>,
    /// The cosine of the residuals and the range of the Jacobian that counts as zero; without one the two-thirds power of the
    /// dtype's epsilon.
    pub gtol: Option<f64>,
    /// The maximum number of iterations.
    pub maxiter: i64,
}

impl Default for LeastSquaresOptions {
    /// The method of Levenberg and Marquardt.
    fn default() -> LeastSquaresOptions {
        let method = LeastSquaresMethod::LevenbergMarquardt;
        LeastSquaresOptions { method, rtol: None, gtol: None, maxiter: 500 }
    }
}

/// A minimum near `x0` of the sum of squared magnitudes of a function's values, the residuals.
///
/// # Errors
/// Residuals that are integers, fewer residuals than unknowns for [`LeastSquaresMethod::GaussNewton`], options out of range, and
/// the errors of the function.
pub fn least_squares(
    ops: &mut Ops,
    options: &LeastSquaresOptions,
    x0: &[Tensor],
    function: LinearFunction<'_>,
) -> Result<Optimum> {
    let op = "least_squares";
    require_tolerances(op, &[("rtol", options.rtol), ("gtol", options.gtol)])?;
    let x0 = unknowns(ops, op, x0)?;
    let search = match options.method {
        LeastSquaresMethod::LevenbergMarquardt => Search::LevenbergMarquardt,
        LeastSquaresMethod::GaussNewton => Search::GaussNewton,
    };
    let limits = limits(op, &x0, (options.rtol, 0.0, options.gtol), options.maxiter)?;
    let kind = Kind { search, limits, derivative: LinearOptions::dense() };
    let types = |op, _, at: &[Tensor], draft: &Draft| residuals(op, options.method, at, draft);
    solved(ops, op, kind, &x0, ("the value of fun", function), types)
}

/// The types of residuals.
fn residuals(
    op: &'static str,
    method: LeastSquaresMethod,
    at: &[Tensor],
    draft: &Draft,
) -> Result<Vec<TensorType>> {
    let dtype = at.iter().map(|x| x.ty().dtype).fold(DType::F32, DType::merge);
    let types: Vec<TensorType> =
        (0..draft.results.len()).map(|leaf| draft.result_type(leaf, dtype)).collect();
    if let Some(ty) = types.iter().find(|ty| !ty.dtype.is_inexact()) {
        return Err(ErrorKind::SolverDType { op, got: ty.clone() }.into());
    }
    let count = |types: Vec<TensorType>| Coordinates::new(types, 0, false).count();
    let (rows, columns) = (count(types.clone()), count(at.iter().map(|x| x.ty().clone()).collect()));
    if rows < columns && method == LeastSquaresMethod::GaussNewton {
        let given = format!("\"gauss_newton\" for {rows} residuals and {columns} unknowns");
        let required = "\"lm\" where there are fewer residuals than unknowns".to_owned();
        return Err(ErrorKind::OptionValue { op, option: "method", given, required }.into());
    }
    Ok(types)
}

/// The unknowns as floats.
pub(super) fn unknowns(ops: &mut Ops, op: &'static str, x0: &[Tensor]) -> Result<Vec<Tensor>> {
    if x0.is_empty() {
        let (given, required) = ("without a tensor".to_owned(), "a container of tensors".to_owned());
        return Err(ErrorKind::OptionValue { op, option: "x0", given, required }.into());
    }
    x0.iter().map(|x| ops.as_type(x, x.ty().dtype.to_float())).collect()
}

fn limits(
    op: &'static str,
    x0: &[Tensor],
    (rtol, atol, gtol): (Option<f64>, f64, Option<f64>),
    maxiter: i64,
) -> Result<Limits> {
    let fine = coarsest_epsilon(x0).powf(2.0 / 3.0);
    let (rtol, gtol) = (rtol.unwrap_or(fine), gtol.unwrap_or(fine));
    let maxiter = at_least_one(op, "maxiter", Some(maxiter))?.unwrap_or(1);
    Ok(Limits { rtol: Tolerance(rtol), atol: Tolerance(atol), gtol: Tolerance(gtol), maxiter })
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
    let (count, lanes) = (traced.at.len(), traced.lanes.len());
    let Kind { search, limits, .. } = kind;
    let problem = Problem { search, limits, lanes, function: &traced.functions[0], derivative };
    let mut results = traced.inlined(ops, Vec::new(), |graph, inputs| {
        let found = problem.solve(graph, &inputs[..count], &inputs[count..])?;
        let mut results: Vec<Value> = found.x.iter().chain(&found.results).copied().collect();
        for number in [found.status, found.iterations, found.evaluations, found.gradient_norm] {
            results.push(graph.reshape_to(number, traced.sizes())?);
        }
        Ok(results)
    })?;
    let numbers = results.split_off(results.len() - 4);
    let [status, iterations, evaluations, gradient_norm] =
        <[Tensor; 4]>::try_from(numbers).expect("four numbers stand last");
    let fun = results.split_off(count);
    Ok(Optimum { x: results, fun, status, iterations, evaluations, gradient_norm })
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
