//! Initial value problems of ordinary differential equations.

use defn_core::builder::{self, OdeFunction, Ops};
use defn_core::{Location, Result};

use crate::control::{Exprs, refill, require_structure, results, tensors};
use crate::expr::record;
use crate::{Expr, Leaf, OdeOptions, Tensor, Tree, Visit};

/// What [`odeint`] returns: the unknowns at the times, and how far the steps came.
///
/// ```
/// use defn::prelude::*;
/// use defn::{OdeSolution, odeint};
///
/// let solve = jit(|(y, ts): (Expr, Expr)| odeint(|_, y: Expr| &y * &y, &y, &ts, &Default::default()));
/// let solution: OdeSolution<Tensor, Tensor> = solve.call((Tensor::scalar(1.0)?, tensor![0.0, 0.5, 2.0]?))?;
/// assert_eq!(solution.status.item::<i32>()?, 2);
/// assert!((solution.t_reached.item::<f32>()? - 1.0).abs() < 1e-2);
/// assert!(solution.check().unwrap_err().to_string().contains("steps became too short"));
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OdeSolution<T, A> {
    /// The unknowns at the times, along a new first axis; NaN at times that were not reached.
    pub ys: A,
    /// 0 if all times were reached; 1 after too many steps; 2 where steps became too short to change the time, as for stiff
    /// problems and where values are not finite; 3 for times that are not in order; 4 at an event.
    pub status: T,
    /// The time that was reached.
    pub t_reached: T,
    /// The number of accepted steps.
    pub steps: T,
    /// The number of rejected steps.
    pub rejected: T,
    /// The time of the event of [`odeint_until`], NaN if there was none.
    pub t_event: Option<T>,
    /// The unknowns at the event.
    pub y_event: Option<A>,
}

impl<T: Leaf, A: Tree<T>> Tree<T> for OdeSolution<T, A> {
    type Of<U: Leaf> = OdeSolution<U, A::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
        OdeSolution {
            ys: visit.part("ys", &self.ys),
            status: visit.part("status", &self.status),
            t_reached: visit.part("t_reached", &self.t_reached),
            steps: visit.part("steps", &self.steps),
            rejected: visit.part("rejected", &self.rejected),
            t_event: visit.part("t_event", &self.t_event),
            y_event: visit.part("y_event", &self.y_event),
        }
    }
}

impl<A> OdeSolution<Tensor, A> {
    /// The unknowns at the times.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::odeint;
    /// let solve = jit(|(y, ts): (Expr, Expr)| odeint(|_, y: Expr| -y, &y, &ts, &Default::default()));
    /// let ys = solve.call((Tensor::scalar(1.0)?, tensor![0.0, 1.0]?))?.check()?;
    /// assert!((ys.to_vec::<f32>()?[1] - 0.3679).abs() < 1e-3);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A solution that stopped before the last time, other than at an event (`Convergence`).
    #[track_caller]
    pub fn check(self) -> Result<A> {
        let location = Location::caller();
        let status: Vec<i64> = self.status.to_vec::<i32>()?.into_iter().map(i64::from).collect();
        let times = self.t_reached.as_type(defn_core::DType::F64)?.to_vec::<f64>()?;
        builder::require_reached(&status, &times).map_err(|error| error.at(Some(location)))?;
        Ok(self.ys)
    }
}

/// The solution of `dy/dt = f(t, y)` with `y = y0` at the first of the times `ts`, at all times.
///
/// The methods are explicit Runge-Kutta pairs of order 5(4), of Tsitouras (2011) and of Dormand and Prince (1980), whose
/// steps are as long as the tolerances allow. Values at the times are those of dense output of order 4. Times may descend.
/// [`odeint_until`] ends at an event.
///
/// - Shapes: `ts` is a vector, whose size is the new first axis of each unknown.
/// - Dtypes: `y0` keeps its dtypes, integers become f32; computed in at least f32.
/// - Gradient: to `y0`, `ts` and what `f` captures. [`OdeGradient::Direct`](crate::OdeGradient::Direct): that of the steps that
///   were taken, whose lengths count as constants, in both modes and of any order.
///   [`OdeGradient::Adjoint`](crate::OdeGradient::Adjoint): by the adjoint equation, in reverse mode.
///
/// ```
/// use defn::prelude::*;
/// use defn::{OdeOptions, odeint};
///
/// let oscillator = jit(|(y, ts): ((Expr, Expr), Expr)| {
///     let options = OdeOptions { rtol: Some(1e-6), ..OdeOptions::default() };
///     odeint(|_, (x, v): (Expr, Expr)| (v, -x), &y, &ts, &options)
/// });
/// let start = (Tensor::scalar(1.0)?, Tensor::scalar(0.0)?);
/// let (x, v) = oscillator.call((start, tensor![0.0, 3.1415927]?))?.check()?;
/// assert!((x.to_vec::<f32>()?[1] + 1.0).abs() < 1e-4 && v.to_vec::<f32>()?[1].abs() < 1e-4);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// The gradient by the adjoint equation:
///
/// ```
/// use defn::prelude::*;
/// use defn::{OdeGradient, OdeOptions, odeint};
///
/// let options = OdeOptions { gradient: OdeGradient::Adjoint, ..OdeOptions::default() };
/// let slope = jit(move |(rate, y0, ts): (Expr, Expr, Expr)| {
///     grad(&rate, |rate| odeint(|_, y: Expr| -(&rate * y), &y0, &ts, &options).ys.sum(Axes::All, false))
/// });
/// let slope = slope.call((Tensor::scalar(1.0)?, Tensor::scalar(1.0)?, tensor![0.0, 1.0]?))?;
/// assert!((slope.item::<f32>()? + 0.3679).abs() < 1e-3);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Times that are not a vector (`Shape`), slopes of another structure (`Container`), number or shape (`Shape`) than the
/// unknowns, and options out of range (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn odeint<A: Exprs>(
    mut f: impl FnMut(Expr, A) -> A,
    y0: &A,
    ts: &Expr,
    options: &OdeOptions,
) -> OdeSolution<Expr, A> {
    solution(Location::caller(), &mut f, None, y0, ts, options)
}

/// As [`odeint`], up to the first time at which a number of `event` changes its sign.
///
/// The event returns a container of real numbers. It is found if a sign differs at the end of a step, and located on the
/// dense output of that step by bisection. The unknowns are NaN at later times.
///
/// - Gradient: of the time by the implicit function theorem, and of the unknowns at it;
///   [`OdeGradient::Direct`](crate::OdeGradient::Direct) only.
///
/// ```
/// use defn::prelude::*;
/// use defn::{OdeOptions, odeint_until};
///
/// // A stone that falls from a height of 1.
/// let fall = jit(|(height, speed, ts): (Expr, Expr, Expr)| {
///     let y0 = (height, speed);
///     let slopes = |_, (_, v): (Expr, Expr)| (v.clone(), v.zeros_like() - 9.81);
///     odeint_until(slopes, |_, (x, _): (Expr, Expr)| x, &y0, &ts, &OdeOptions::default())
/// });
/// let solution = fall.call((Tensor::scalar(1.0)?, Tensor::scalar(0.0)?, tensor![0.0, 1.0]?))?;
/// assert_eq!(solution.status.item::<i32>()?, 4);
/// assert!((solution.t_reached.item::<f32>()? - (2.0_f32 / 9.81).sqrt()).abs() < 1e-4);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`odeint`], numbers that are complex, and another gradient than the direct one (`Option`).
#[track_caller]
pub fn odeint_until<A: Exprs, E: Exprs>(
    mut f: impl FnMut(Expr, A) -> A,
    mut event: impl FnMut(Expr, A) -> E,
    y0: &A,
    ts: &Expr,
    options: &OdeOptions,
) -> OdeSolution<Expr, A> {
    let mut numbers = |_: &mut Ops, t: &defn_core::Tensor, y: &[defn_core::Tensor]| {
        results(&event(Expr(Ok(t.clone())), refill(y0, Ok(y.to_vec()))))
    };
    solution(Location::caller(), &mut f, Some(&mut numbers), y0, ts, options)
}

fn solution<A: Exprs>(
    location: Location,
    f: &mut dyn FnMut(Expr, A) -> A,
    event: Option<OdeFunction<'_>>,
    y0: &A,
    ts: &Expr,
    options: &OdeOptions,
) -> OdeSolution<Expr, A> {
    let has_event = event.is_some();
    let outcome = tensors(y0).and_then(|unknowns| {
        let times = ts.0.clone()?;
        record(location, |ops| {
            let mut slopes = |_: &mut Ops, t: &defn_core::Tensor, y: &[defn_core::Tensor]| {
                let value = f(Expr(Ok(t.clone())), refill(y0, Ok(y.to_vec())));
                require_structure("odeint", "function's container of another structure", y0, &value)?;
                results(&value)
            };
            match event {
                None => builder::odeint(ops, options, &mut slopes, &unknowns, &times),
                Some(event) => builder::odeint_until(ops, options, &mut slopes, event, &unknowns, &times),
            }
        })
    });
    let one = |part: fn(&builder::OdeSolution) -> &defn_core::Tensor| {
        Expr(outcome.as_ref().map(|solution| part(solution).clone()).map_err(Clone::clone))
    };
    let at_event = || {
        outcome
            .as_ref()
            .map(|solution| solution.event.clone().expect("an event was asked for"))
            .map_err(Clone::clone)
    };
    OdeSolution {
        ys: refill(y0, outcome.as_ref().map(|solution| solution.ys.clone()).map_err(Clone::clone)),
        status: one(|solution| &solution.status),
        t_reached: one(|solution| &solution.t_reached),
        steps: one(|solution| &solution.steps),
        rejected: one(|solution| &solution.rejected),
        t_event: has_event.then(|| Expr(at_event().map(|event| event.t))),
        y_event: has_event.then(|| refill(y0, at_event().map(|event| event.y))),
    }
}
