//! Values that a condition defines, and solutions of linear systems.

use std::sync::Arc;

use super::draft::{Draft, ResultType, unify_captures};
use super::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildShape, Builder, Ops};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::grad::region::Draft as RegionDraft;
use crate::graph::{Graph, Value};
use crate::op::{ImplicitOp, LinearMethod, LinearSolver, Op, Tolerance};
use crate::region::Region;
use crate::shape::{Shape, TensorType};
use crate::solvers::{LinearSystem, Unsolved};
use crate::tensor::Tensor;
use crate::vectorize::{self, NamedAxes, join_into, position};

/// A function from one tensor for each unknown to as many of the same types.
pub type LinearFunction<'a> = &'a mut dyn FnMut(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>>;

/// The options of a linear solver, as a user gives them.
///
/// ```
/// use defn_core::builder::LinearOptions;
/// let options = LinearOptions::gmres(30).with_rtol(1e-8).with_maxiter(100);
/// assert_eq!((options.rtol, options.maxiter), (Some(1e-8), Some(100)));
/// assert_eq!(LinearOptions::default(), LinearOptions::gmres(20));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOptions {
    /// The algorithm.
    pub method: LinearMethod,
    /// The tolerance relative to the norm of the right-hand side.
    pub rtol: Option<f64>,
    /// The absolute tolerance.
    pub atol: f64,
    /// The maximum number of iterations.
    pub maxiter: Option<i64>,
}

impl Default for LinearOptions {
    /// Generalized minimal residuals in cycles of 20 products, which suit any system.
    fn default() -> LinearOptions {
        LinearOptions::gmres(20)
    }
}

impl LinearOptions {
    /// An algorithm with the default tolerances.
    pub const fn new(method: LinearMethod) -> LinearOptions {
        LinearOptions { method, rtol: None, atol: 0.0, maxiter: None }
    }

    /// Conjugate gradients, for Hermitian positive definite systems.
    pub const fn cg() -> LinearOptions {
        LinearOptions::new(LinearMethod::Cg)
    }

    /// Stabilized biconjugate gradients.
    pub const fn bicgstab() -> LinearOptions {
        LinearOptions::new(LinearMethod::Bicgstab)
    }

    /// Generalized minimal residuals, in cycles of `restart` products with the matrix.
    pub const fn gmres(restart: usize) -> LinearOptions {
        LinearOptions::new(LinearMethod::Gmres { restart })
    }

    /// An LU factorization of the matrix.
    pub const fn dense() -> LinearOptions {
        LinearOptions::new(LinearMethod::Dense)
    }

    /// The options with a tolerance relative to the norm of the right-hand side.
    #[must_use]
    pub const fn with_rtol(self, rtol: f64) -> LinearOptions {
        LinearOptions { rtol: Some(rtol), ..self }
    }

    /// The options with an absolute tolerance.
    #[must_use]
    pub const fn with_atol(self, atol: f64) -> LinearOptions {
        LinearOptions { atol, ..self }
    }

    /// The options with a maximum number of iterations.
    #[must_use]
    pub const fn with_maxiter(self, maxiter: i64) -> LinearOptions {
        LinearOptions { maxiter: Some(maxiter), ..self }
    }

    /// The solver for unknowns of these dtypes. Without `rtol` the tolerance is the two-thirds power of the coarsest dtype's
    /// epsilon: 2e-5 for f32, 4e-11 for f64.
    pub(super) fn solver(&self, op: &'static str, unknowns: &[Tensor]) -> Result<LinearSolver> {
        require_tolerances(op, &[("rtol", self.rtol), ("atol", Some(self.atol))])?;
        let maxiter = at_least_one(op, "maxiter", self.maxiter)?;
        if let Some(0) = self.method.restart() {
            return Err(not_valid(op, "restart", "0".to_owned(), "at least 1"));
        }
        let rtol = self.rtol.unwrap_or_else(|| coarsest_epsilon(unknowns).powf(2.0 / 3.0));
        let method = self.method;
        Ok(LinearSolver { method, rtol: Tolerance(rtol), atol: Tolerance(self.atol), maxiter })
    }
}

/// The greatest epsilon of the unknowns' dtypes.
pub(super) fn coarsest_epsilon(unknowns: &[Tensor]) -> f64 {
    let digits = unknowns.iter().map(|x| x.ty().dtype.to_real().mantissa_bits()).min().unwrap_or(23);
    (-(digits as f64)).exp2()
}

/// Refuses negative tolerances.
pub(super) fn require_tolerances(op: &'static str, given: &[(&'static str, Option<f64>)]) -> Result<()> {
    for &(option, value) in given {
        if let Some(value) = value
            && !(value >= 0.0 && value.is_finite())
        {
            return Err(not_valid(op, option, value.to_string(), "a number of at least 0"));
        }
    }
    Ok(())
}

/// A count, if it is given.
pub(super) fn at_least_one(
    op: &'static str,
    option: &'static str,
    given: Option<i64>,
) -> Result<Option<usize>> {
    match given.map(usize::try_from) {
        None => Ok(None),
        Some(Ok(count)) if count > 0 => Ok(Some(count)),
        Some(Ok(_) | Err(_)) => {
            let given = given.unwrap_or_default().to_string();
            Err(not_valid(op, option, given, "at least 1"))
        }
    }
}

pub(super) fn not_valid(
    op: &'static str,
    option: &'static str,
    given: String,
    required: &str,
) -> crate::error::Error {
    ErrorKind::OptionValue { op, option, given, required: required.to_owned() }.into()
}

/// Values with the derivatives that the implicit function theorem gives: `condition` is zero at them, and computes one
/// residual of the type of each value. The derivatives flow to the tensors that it captures, and not through the values'
/// own computation.
///
/// The linear systems of the derivatives are solved by the options; each position of vectorized axes is a system of its own.
/// Derivatives are NaN where a system is not solved.
///
/// # Errors
/// Values that are integers, residuals of other types, options out of range, and the errors of the condition.
pub fn implicit(
    ops: &mut Ops,
    values: &[Tensor],
    options: &LinearOptions,
    condition: LinearFunction<'_>,
) -> Result<Vec<Tensor>> {
    let solver = options.solver("implicit", values)?;
    for value in values {
        require_inexact("implicit", value)?;
    }
    let rule = ImplicitRule { solver, lanes: 0, holomorphic: false };
    with_condition(ops, values, rule, condition, None)
}

/// The derivative of values that a condition defines.
pub(crate) struct ImplicitRule {
    pub(crate) solver: LinearSolver,
    /// The number of leading axes of the values, after their vectorized axes, that count systems.
    pub(crate) lanes: usize,
    pub(crate) holomorphic: bool,
}

/// Values that a condition defines. See [`implicit`].
pub(crate) fn with_condition<'a>(
    ops: &mut Ops,
    values: &[Tensor],
    rule: ImplicitRule,
    condition: LinearFunction<'a>,
    preconditioner: Option<LinearFunction<'a>>,
) -> Result<Vec<Tensor>> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut functions = vec![("the condition", condition)];
    functions.extend(preconditioner.map(|function| ("m", function)));
    let traced = traced(ops, "implicit", values, functions, like_unknowns)?;
    let mut regions = traced.functions.into_iter();
    let op = ImplicitOp {
        values: values.len(),
        lanes: traced.lanes.len() + rule.lanes,
        solver: rule.solver,
        holomorphic: rule.holomorphic,
        condition: regions.next().expect("a region for the condition"),
        preconditioner: regions.next(),
    };
    let operands: Vec<Tensor> = traced.at.iter().map(Tensor::flat).chain(traced.captures).collect();
    let results = ops.emit(Op::Implicit(op), &operands)?;
    Ok(results.into_iter().map(|x| x.with_vectorized(&traced.lanes)).collect())
}

/// Functions that were traced at unknowns.
pub(super) struct Traced {
    /// The unknowns, with the vectorized axes of all of them and of the functions' results.
    pub(super) at: Vec<Tensor>,
    pub(super) lanes: NamedAxes,
    pub(super) functions: Vec<Arc<Region>>,
    pub(super) captures: Vec<Tensor>,
}

impl Traced {
    /// What a graph computes of the unknowns, the other arguments and the captures, with the vectorized axes.
    pub(super) fn inlined(
        &self,
        ops: &mut Ops,
        others: Vec<Tensor>,
        build: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>,
    ) -> Result<Vec<Tensor>> {
        let arguments: Vec<Tensor> =
            self.at.iter().map(Tensor::flat).chain(others).chain(self.captures.iter().cloned()).collect();
        let mut draft = RegionDraft::new();
        let inputs: Vec<Value> = arguments.iter().map(|x| draft.input(x.ty().clone())).collect();
        let results = build(&mut draft.graph, &inputs)?;
        let region = draft.close(inputs.len(), &results)?;
        let results = ops.inline(&region, &arguments)?;
        Ok(results.into_iter().map(|x| x.with_vectorized(&self.lanes)).collect())
    }

    /// The sizes of the vectorized axes.
    pub(super) fn sizes(&self) -> Shape {
        Shape::new(&self.lanes.iter().map(|&(_, size)| size).collect::<Vec<_>>())
    }
}

/// Traces functions of unknowns, which share their captures. `types` gives the types of the results without vectorized axes,
/// of what a function is, the unknowns and the draft.
pub(super) fn traced(
    ops: &mut Ops,
    op: &'static str,
    at: &[Tensor],
    mut functions: Vec<(&'static str, LinearFunction<'_>)>,
    types: impl Fn(&'static str, &'static str, &[Tensor], &Draft) -> Result<Vec<TensorType>>,
) -> Result<Traced> {
    let at = position::read_all(ops, at)?.into_vec();
    let mut lanes = NamedAxes::new();
    for x in &at {
        join_into(op, &mut lanes, x.vectorized_axes())?;
    }
    loop {
        let at = at.iter().map(|x| vectorize::broadcast_vectorized(ops, op, x, &lanes));
        let at = at.collect::<Result<Vec<_>>>()?;
        let parameters: Vec<TensorType> = at.iter().map(|x| x.whole().clone()).collect();
        let mut joined = lanes.clone();
        let mut drafts = Vec::with_capacity(functions.len());
        for (what, function) in &mut functions {
            let draft = Draft::trace(ops, op, &parameters, |ops, inputs| {
                let inputs: Vec<_> = inputs.iter().map(|x| x.clone().with_vectorized(&lanes)).collect();
                function(ops, &inputs)
            })?;
            let types = types(op, what, &at, &draft)?;
            for leaf in 0..types.len() {
                join_into(op, &mut joined, draft.lanes(leaf))?;
            }
            drafts.push((draft, types));
        }
        if joined != lanes {
            lanes = joined;
            continue;
        }
        let mut closed = Vec::with_capacity(drafts.len());
        for (draft, types) in drafts {
            let types = types.into_iter().map(|ty| ResultType { ty, lanes: lanes.clone() });
            closed.push(draft.close(ops, &types.collect::<Vec<_>>())?);
        }
        let (regions, captures) = unify_captures(closed);
        return Ok(Traced { at, lanes, functions: regions.into_iter().map(Arc::new).collect(), captures });
    }
}

/// The types of the unknowns, which the results must have.
pub(super) fn like_unknowns(
    op: &'static str,
    what: &'static str,
    at: &[Tensor],
    draft: &Draft,
) -> Result<Vec<TensorType>> {
    let (got, expected) = (draft.results.len(), at.len());
    if got != expected {
        let what = "function";
        return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
    }
    for (leaf, x) in at.iter().enumerate() {
        require_same(op, what, leaf, &draft.result_type(leaf, x.ty().dtype), x.ty())?;
    }
    Ok(at.iter().map(|x| x.ty().clone()).collect())
}

fn require_same(
    op: &'static str,
    what: &'static str,
    index: usize,
    got: &TensorType,
    expected: &TensorType,
) -> Result<()> {
    if got.dtype == expected.dtype && got.shape.sizes() == expected.shape.sizes() {
        return Ok(());
    }
    let (got, expected) = (got.clone(), expected.clone());
    Err(ErrorKind::SolverResult { op, what, index, got, expected }.into())
}

pub(super) fn require_inexact(op: &'static str, value: &Tensor) -> Result<()> {
    if value.ty().dtype.is_inexact() {
        return Ok(());
    }
    Err(ErrorKind::SolverDType { op, got: value.ty().clone() }.into())
}

/// A matrix, or a function that multiplies by it.
pub enum LinearMap<'a> {
    /// A square matrix.
    Matrix(Tensor),
    /// A function that is linear.
    Function(LinearFunction<'a>),
}

/// The solution of `a x = b` by an iterative method, and for each position of vectorized axes 0 where it converged, else the
/// number of iterations. Iterations begin with `x0`, or with zeros. `m` is the preconditioner, an approximate inverse of `a`.
///
/// Derivatives are those of the solution, in both modes and to what `a` captures, by systems that are solved in the same way.
///
/// # Errors
/// A matrix that is not square or of another size than `b`; functions whose results have other types than the unknowns;
/// an `x0` of other shapes than `b`; options out of range; and the errors of the functions.
pub fn linear_solve<'a>(
    ops: &mut Ops,
    op: &'static str,
    options: &LinearOptions,
    (a, m): (LinearMap<'a>, Option<LinearMap<'a>>),
    b: &[Tensor],
    x0: Option<&[Tensor]>,
) -> Result<(Vec<Tensor>, Tensor)> {
    let matrices = [("a", Some(&a)), ("m", m.as_ref())];
    let matrices = matrices.into_iter().filter_map(|(option, map)| Some((option, map?.matrix()?.clone())));
    let rhs = unknowns(ops, op, &matrices.collect::<Vec<_>>(), b, x0)?;
    let solver = options.solver(op, &rhs)?;
    let (mut a, mut m) = (a.multiplier(), m.map(LinearMap::multiplier));
    let mut functions = vec![("a", &mut *a as LinearFunction<'_>)];
    functions.extend(m.as_mut().map(|m| ("m", &mut **m as LinearFunction<'_>)));
    let traced = traced(ops, op, &rhs, functions, like_unknowns)?;
    let rhs = &traced.at;
    let mut starts = Vec::new();
    for (start, b) in x0.unwrap_or_default().iter().zip(rhs) {
        let start = ops.as_type(start, b.ty().dtype)?;
        let start = ops.reshape_to(start, b.ty().shape.clone())?;
        starts.push(vectorize::broadcast_vectorized(ops, op, &start, &traced.lanes)?.flat());
    }
    let (count, given) = (rhs.len(), rhs.len() + starts.len());
    let system = LinearSystem {
        solver: &solver,
        lanes: traced.lanes.len(),
        holomorphic: true,
        map: &traced.functions[0],
        preconditioner: traced.functions.get(1),
    };
    let mut results = traced.inlined(ops, starts, |graph, inputs| {
        let start = x0.map(|_| &inputs[count..given]);
        let solution = system.solve(graph, &inputs[..count], start, &inputs[given..], Unsolved::Keep)?;
        let info = match solution.info {
            Some(info) => graph.reshape_to(info, traced.sizes())?,
            None => graph.full(traced.sizes(), DType::S32, 0)?,
        };
        Ok(solution.values.into_iter().chain([info]).collect())
    })?;
    let info = results.pop().expect("the last result");
    Ok((results, info))
}

/// The right-hand side in the dtypes of the unknowns, with the vectorized axes of the start.
fn unknowns(
    ops: &mut Ops,
    op: &'static str,
    matrices: &[(&'static str, Tensor)],
    b: &[Tensor],
    x0: Option<&[Tensor]>,
) -> Result<Vec<Tensor>> {
    if let Some(x0) = x0
        && x0.len() != b.len()
    {
        let (what, got, expected) = ("x0", x0.len(), b.len());
        return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
    }
    let mut rhs = Vec::with_capacity(b.len());
    for (leaf, b) in b.iter().enumerate() {
        let (mut dtype, mut lanes) = (b.ty().dtype.to_float(), NamedAxes::from(b.vectorized_axes()));
        if let Some(start) = x0.map(|x0| &x0[leaf]) {
            if start.ty().shape.sizes() != b.ty().shape.sizes() {
                let (left, right) = (start.ty().clone(), b.ty().clone());
                return Err(ErrorKind::ShapesDiffer { op, left, right }.into());
            }
            dtype = dtype.merge(start.ty().dtype);
            join_into(op, &mut lanes, start.vectorized_axes())?;
        }
        for (option, matrix) in matrices {
            require_matrix(op, option, matrix, b)?;
            dtype = dtype.merge(matrix.ty().dtype);
        }
        let b = ops.as_type(b, dtype)?;
        rhs.push(vectorize::broadcast_vectorized(ops, op, &b, &lanes)?);
    }
    Ok(rhs)
}

/// Refuses a matrix that does not map the right-hand side to its own shape.
fn require_matrix(op: &'static str, option: &'static str, matrix: &Tensor, b: &Tensor) -> Result<()> {
    if let (&[rows, columns], Some(&size)) = (matrix.ty().shape.sizes(), b.ty().shape.sizes().first())
        && (rows, columns) == (size, size)
        && b.ty().shape.rank() <= 2
    {
        return Ok(());
    }
    let (got, b) = (matrix.ty().clone(), b.ty().clone());
    Err(ErrorKind::SolverMatrix { op, option, got, b }.into())
}

impl<'a> LinearMap<'a> {
    fn matrix(&self) -> Option<&Tensor> {
        match self {
            LinearMap::Matrix(matrix) => Some(matrix),
            LinearMap::Function(_) => None,
        }
    }

    /// The function that multiplies.
    fn multiplier(self) -> Box<dyn FnMut(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a> {
        match self {
            LinearMap::Matrix(matrix) => Box::new(move |ops, x| {
                let matrix = ops.as_type(&matrix, x[0].ty().dtype)?;
                Ok(vec![Arg::Value(ops.matmul(matrix, &x[0])?)])
            }),
            LinearMap::Function(function) => Box::new(function),
        }
    }
}
