//! A line search for the strong Wolfe conditions: the number decreases by a part of what its slope predicts, and the slope
//! becomes flatter.
//!
//! It brackets a length that meets them and halves the bracket by cubic interpolation (Nocedal and Wright, Numerical
//! Optimization, 2006, algorithms 3.5 and 3.6). Both phases are one loop: before there is a bracket, its far end is infinite.
//! Near a minimum rounding hides the decrease and slopes decide (Hager and Zhang, A New Conjugate Gradient Method with Guaranteed
//! Descent and an Efficient Line Search, 2005).

use super::objective::Objective;
use super::state;
use crate::builder::{BuildCreate, BuildElementwise};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::scalar::Number;
use crate::solvers::vectors;

/// The part of the predicted decrease that suffices.
const DECREASE: f64 = 1e-4;
/// The part of the slope that may be left.
const CURVATURE: f64 = 0.9;
/// Lengths that are tried along a direction.
const TRIALS: i64 = 40;
/// How much longer the next length is while there is no bracket.
const EXPANSION: f64 = 4.0;
/// The part of a bracket next to its ends in which no length is tried.
const MARGIN: f64 = 0.1;
/// Changes of the number, in units of its epsilon, that may be rounding.
pub(super) const ROUNDING: f64 = 4.0;

/// Where a search begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) x: Value,
    pub(super) f: Value,
    pub(super) g: Value,
    /// The direction, and the slope along it, which is negative.
    pub(super) p: Value,
    pub(super) slope: Value,
    /// The first length.
    pub(super) length: Value,
}

/// Where a search ended.
pub(super) struct Found {
    pub(super) x: Value,
    pub(super) f: Value,
    pub(super) g: Value,
    /// The lanes that moved to a better point.
    pub(super) moved: Value,
    pub(super) evaluations: Value,
}

/// A length with the number and the slope there.
#[derive(Clone, Copy)]
struct Point {
    length: Value,
    f: Value,
    slope: Value,
}

impl Point {
    fn choose(graph: &mut Graph, mask: Value, a: Point, b: Point) -> Result<Point> {
        Ok(Point {
            length: graph.select(mask, a.length, b.length)?,
            f: graph.select(mask, a.f, b.f)?,
            slope: graph.select(mask, a.slope, b.slope)?,
        })
    }
}

/// Searches in the lanes of a mask.
pub(super) fn search(
    graph: &mut Graph,
    objective: &Objective<'_>,
    captures: &[Value],
    start: Start,
    open: Value,
    evaluations: Value,
) -> Result<Found> {
    let (lanes, dtype) = (objective.unknowns.lanes(), objective.unknowns.dtype());
    let epsilon = dtype.epsilon().to_f64();
    let zero = state::numbers(graph, lanes, dtype, 0.0)?;
    let infinite = graph.constant(dtype, Number::Float(f64::INFINITY))?;
    let infinite = graph.add(zero, infinite)?;
    let magnitude = graph.abs(start.f)?;
    let noise = graph.multiply(magnitude, ROUNDING * epsilon)?;
    let (longest, widest) = (state::greatest(graph, start.p)?, state::greatest(graph, start.x)?);
    let least = graph.multiply(widest, epsilon)?;
    let (trips, nobody) = (graph.constant(DType::S32, 0)?, state::nobody(graph, lanes)?);
    let near = [zero, start.f, start.slope];
    let far = [infinite, start.f, start.slope];
    let mut carried = vec![trips, open, nobody, start.length, evaluations, start.x, start.g];
    carried.extend(near.into_iter().chain(far));
    let mut all = captures.to_vec();
    let given = captures.len();
    all.extend([start.x, start.f, start.p, start.slope, noise, longest, least]);

    let last = region::while_(
        graph,
        None,
        &carried,
        &all,
        |graph, carried, _| state::is_open(graph, carried[0], carried[1], TRIALS),
        |graph, carried, all| {
            let &[trips, open, ended, length, evaluations, best, best_g, ..] = carried else {
                unreachable!("the state begins with these")
            };
            let point = |at: usize| Point { length: carried[at], f: carried[at + 1], slope: carried[at + 2] };
            let (near, far) = (point(7), point(10));
            let &[x, f, p, slope, noise, longest, least] = &all[given..] else {
                unreachable!("seven values are given")
            };
            let candidate = vectors::add_scaled(graph, x, length, p)?;
            let (value, g) = objective.evaluate(graph, &all[..given], candidate)?;
            let here = Point { length, f: value, slope: vectors::dot(graph, g, p)? };

            let high = is_high(graph, here, near, (f, slope, noise))?;
            let low = graph.logical_not(high)?;
            let low = graph.logical_and(open, low)?;
            let flat = is_flat(graph, here, slope)?;
            let taken = graph.logical_and(low, flat)?;
            // Where the number rises from here toward the far end, the minimum is between here and the near end.
            let ahead = graph.greater(far.length, near.length)?;
            let back = graph.negate(here.slope)?;
            let toward = graph.select(ahead, here.slope, back)?;
            let rises = graph.greater_equal(toward, 0)?;
            let turns = graph.logical_and(low, rises)?;
            let high = graph.logical_and(open, high)?;
            let other = Point::choose(graph, turns, near, far)?;
            let far = Point::choose(graph, high, here, other)?;
            let near = Point::choose(graph, low, here, near)?;

            let (next, width) = next_length(graph, near, far)?;
            let reach = graph.multiply(width, longest)?;
            let moves = graph.greater(reach, least)?;
            let rest = graph.logical_not(taken)?;
            let rest = graph.logical_and(open, rest)?;
            let mut next = vec![
                graph.add(trips, 1)?,
                graph.logical_and(rest, moves)?,
                graph.logical_or(ended, taken)?,
                next,
                state::counted(graph, evaluations, open)?,
                vectors::choose(graph, low, candidate, best)?,
                vectors::choose(graph, low, g, best_g)?,
            ];
            next.extend([near.length, near.f, near.slope, far.length, far.f, far.slope]);
            Ok(next)
        },
    )?;
    // Without the second condition, a point with a smaller number is better, too.
    let (best, length) = (last[8], last[7]);
    let less = graph.less(best, start.f)?;
    let away = graph.greater(length, 0)?;
    let better = graph.logical_and(less, away)?;
    let moved = graph.logical_or(last[2], better)?;
    Ok(Found {
        x: vectors::choose(graph, moved, last[5], start.x)?,
        f: graph.select(moved, best, start.f)?,
        g: vectors::choose(graph, moved, last[6], start.g)?,
        moved,
        evaluations: last[4],
    })
}

/// Whether the number is too great: not finite, above the line of sufficient decrease, or above that of the near end.
fn is_high(
    graph: &mut Graph,
    here: Point,
    near: Point,
    (f, slope, noise): (Value, Value, Value),
) -> Result<Value> {
    let predicted = graph.multiply(here.length, slope)?;
    let allowed = graph.multiply(predicted, DECREASE)?;
    let allowed = graph.add(allowed, noise)?;
    let allowed = graph.add(f, allowed)?;
    let known = graph.add(near.f, noise)?;
    let (decreases, least) = (graph.less_equal(here.f, allowed)?, graph.less_equal(here.f, known)?);
    let fits = graph.logical_and(decreases, least)?;
    let (value, derivative) = (graph.isfinite(here.f)?, graph.isfinite(here.slope)?);
    let finite = graph.logical_and(value, derivative)?;
    let fits = graph.logical_and(fits, finite)?;
    graph.logical_not(fits)
}

/// Whether the slope has become flat enough.
fn is_flat(graph: &mut Graph, here: Point, slope: Value) -> Result<Value> {
    let steepness = graph.abs(here.slope)?;
    let bound = graph.multiply(slope, -CURVATURE)?;
    graph.less_equal(steepness, bound)
}

/// The next length, and the width of the bracket, or the length itself where there is none: the minimum of the cubic through both
/// ends (Nocedal and Wright, equation 3.59), or the middle.
fn next_length(graph: &mut Graph, near: Point, far: Point) -> Result<(Value, Value)> {
    let (a, b) = (near, far);
    let width = graph.subtract(b.length, a.length)?;
    let rise = graph.subtract(b.f, a.f)?;
    let secant = graph.divide(rise, width)?;
    let triple = graph.multiply(secant, 3)?;
    let d1 = graph.add(a.slope, b.slope)?;
    let d1 = graph.subtract(d1, triple)?;
    let squared = graph.multiply(d1, d1)?;
    let product = graph.multiply(a.slope, b.slope)?;
    let squared = graph.subtract(squared, product)?;
    let root = graph.sqrt(squared)?;
    let sign = graph.sign(width)?;
    let d2 = graph.multiply(sign, root)?;
    let over = graph.add(b.slope, d2)?;
    let over = graph.subtract(over, d1)?;
    let under = graph.subtract(b.slope, a.slope)?;
    let twice = graph.multiply(d2, 2)?;
    let under = graph.add(under, twice)?;
    let fraction = graph.divide(over, under)?;
    // From the near end.
    let fraction = graph.subtract(1, fraction)?;
    let known = graph.isfinite(fraction)?;
    let fraction = graph.select(known, fraction, 0.5)?;
    let fraction = graph.clip(fraction, MARGIN, 1.0 - MARGIN)?;
    let step = graph.multiply(width, fraction)?;
    let inside = graph.add(a.length, step)?;
    let beyond = graph.multiply(a.length, EXPANSION)?;
    let bracketed = graph.isfinite(b.length)?;
    let width = graph.abs(width)?;
    Ok((graph.select(bracketed, inside, beyond)?, graph.select(bracketed, width, beyond)?))
}
