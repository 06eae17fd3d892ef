//! Random permutations and random selections of elements.

use super::{Sample, check_key, fresh, gumbel, randint, uniform};
use crate::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildOrder, BuildShape, Builder,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, CumulativeOp, Direction, Op};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisRef, Shape};

/// The number of sorts by random words. Several sorts are needed because equal words keep their order. The words
/// together have three times the bits of the positions. After JAX's `shuffle`.
fn shuffle_rounds(size: usize) -> usize {
    if size < 2 { 0 } else { (3.0 * (size as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize }
}

/// The positions that sort random words along an axis.
fn random_order<B: Builder>(b: &mut B, key: &B::V, shape: &Shape, axis: Axis) -> Result<B::V> {
    let draw = Op::Block(Block::RandomBits { dtype: DType::U32, count: shape.size() });
    let words = b.emit_one(draw, std::slice::from_ref(key))?;
    let words = b.reshape_to(words, shape.without_names())?;
    b.argsort(words, axis, Direction::Asc, positions_dtype(shape[axis]))
}

/// The dtype of positions along an axis of a size.
pub(super) fn positions_dtype(size: usize) -> DType {
    if i32::try_from(size).is_ok() { DType::S32 } else { DType::S64 }
}

/// The positions of a vector in random order, or `None` if there is only one order; and the next key.
fn permutation<B: Builder>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    size: usize,
) -> Result<(Option<B::V>, B::V)> {
    let (mut order, mut key) = (None, key.clone());
    for _ in 0..shuffle_rounds(size) {
        let (used, next) = fresh(b, op, &key)?;
        let again = random_order(b, &used, &Shape::new(&[size]), Axis(0))?;
        order = Some(match order {
            None => again,
            Some(order) => b.take(order, again, 0)?,
        });
        key = next;
    }
    Ok((order, key))
}

/// `x` with its elements along an axis in random order, and the next key. All positions along the other axes share
/// the order, unless `independent` is set.
///
/// # Errors
/// A value that is no key, and an axis that `x` does not have.
pub fn shuffle<B: Builder>(
    b: &mut B,
    key: &B::V,
    x: &B::V,
    axis: &AxisRef,
    independent: bool,
) -> Result<(B::V, B::V)> {
    let (value, next) = shuffled(b, key, x, axis, independent)?;
    Ok((b.order_vectorized_axes(value, &[&key.into(), &x.into()])?, next))
}

fn shuffled<B: Builder>(
    b: &mut B,
    key: &B::V,
    x: &B::V,
    axis: &AxisRef,
    independent: bool,
) -> Result<(B::V, B::V)> {
    check_key(b, "shuffle", key)?;
    let shape = b.ty(x).shape;
    let axis = shape.resolve("shuffle", axis)?;
    let (mut x, mut key) = (x.clone(), key.clone());
    if independent {
        for _ in 0..shuffle_rounds(shape.size()) {
            let (used, next) = fresh(b, "shuffle", &key)?;
            let order = random_order(b, &used, &shape, axis)?;
            x = b.take_along_axis(x, order, axis)?;
            key = next;
        }
    } else {
        let (order, next) = permutation(b, "shuffle", &key, shape[axis])?;
        if let Some(order) = order {
            x = b.take(x, order, axis)?;
        }
        key = next;
    }
    Ok((b.stop_grad(x)?, key))
}

/// The parameters of a random choice.
#[derive(Clone, Debug)]
pub struct Choice<V> {
    /// The probability of each element, as a vector of floats; by default all are equal.
    pub p: Option<Arg<V>>,
    /// The number of elements to choose.
    pub samples: i64,
    /// The axis of the elements; `None` for the flat tensor.
    pub axis: Option<AxisRef>,
    /// Whether an element may be chosen more than once.
    pub replace: bool,
}

/// A valid [`Choice`].
struct ResolvedChoice<V> {
    from: V,
    axis: Axis,
    size: usize,
    samples: usize,
    p: Option<V>,
}

fn picks<B: Builder>(b: &mut B, x: &B::V, choice: &Choice<B::V>) -> Result<ResolvedChoice<B::V>> {
    let got = b.ty(x);
    let (from, axis) = match &choice.axis {
        Some(axis) => (x.clone(), got.shape.resolve("choice", axis)?),
        None => (b.flatten(x, Axes::All)?, Axis(0)),
    };
    let size = b.ty(&from).shape[axis];
    if got.shape.rank() == 0 || size == 0 {
        let required = "at least one axis, and an element to choose along it, are required";
        return Err(ErrorKind::Rank { op: "choice", got, required }.into());
    }
    let samples = match usize::try_from(choice.samples) {
        Ok(samples) if samples >= 1 && (choice.replace || samples <= size) => samples,
        Ok(_) | Err(_) => {
            let (option, given) = ("samples", choice.samples.to_string());
            let required = if choice.replace {
                "at least 1".to_owned()
            } else {
                format!("in 1..={size}, as many as there are without replacement")
            };
            return Err(ErrorKind::OptionValue { op: "choice", option, given, required }.into());
        }
    };
    let p = match &choice.p {
        None => None,
        Some(p) => {
            let p = b.operand(p.clone())?;
            let got = b.ty(&p);
            if got.shape.sizes() != [size] || !got.dtype.is_float() {
                return Err(ErrorKind::Probabilities { got, expected: size }.into());
            }
            Some(b.reshape_to(p, got.shape.without_names())?)
        }
    };
    Ok(ResolvedChoice { from, axis, size, samples, p })
}

/// Elements that are chosen from `x`, and the next key.
///
/// # Errors
/// A value that is no key, no elements, a number of samples below 1 or, without replacement, above the number of
/// elements, and probabilities that are no vector of floats with one for each element.
pub fn choice<B: Builder>(b: &mut B, key: &B::V, x: &B::V, choice: &Choice<B::V>) -> Result<(B::V, B::V)> {
    check_key(b, "choice", key)?;
    let picks = picks(b, x, choice)?;
    let (positions, next) = if choice.replace || picks.p.is_some() {
        let (used, next) = fresh(b, "choice", key)?;
        (draw_positions(b, &used, &picks, choice.replace)?, next)
    } else {
        without_replacement(b, key, &picks)?
    };
    let values = chosen(b, &picks, positions)?;
    Ok((order_vectorized_axes(b, values, key, x, choice)?, next))
}

/// Like [`choice`], but it uses the key directly and returns no next key.
///
/// # Errors
/// As [`choice`].
pub fn choice_split<B: Builder>(b: &mut B, key: &B::V, x: &B::V, choice: &Choice<B::V>) -> Result<B::V> {
    check_key(b, "choice", key)?;
    let picks = picks(b, x, choice)?;
    let positions = if choice.replace || picks.p.is_some() {
        draw_positions(b, key, &picks, choice.replace)?
    } else {
        without_replacement(b, key, &picks)?.0
    };
    let values = chosen(b, &picks, positions)?;
    order_vectorized_axes(b, values, key, x, choice)
}

/// The chosen elements, with their vectorized axes in the order of the operands.
fn order_vectorized_axes<B: Builder>(
    b: &mut B,
    values: B::V,
    key: &B::V,
    x: &B::V,
    choice: &Choice<B::V>,
) -> Result<B::V> {
    let (key, x) = (key.into(), x.into());
    let operands: Vec<&Arg<B::V>> = [&key, &x].into_iter().chain(&choice.p).collect();
    b.order_vectorized_axes(values, &operands)
}

fn chosen<B: Builder>(b: &mut B, picks: &ResolvedChoice<B::V>, positions: B::V) -> Result<B::V> {
    let values = b.take(&picks.from, positions, picks.axis)?;
    b.stop_grad(values)
}

/// The first positions of a random order.
fn without_replacement<B: Builder>(
    b: &mut B,
    key: &B::V,
    picks: &ResolvedChoice<B::V>,
) -> Result<(B::V, B::V)> {
    let (order, next) = permutation(b, "choice", key, picks.size)?;
    let order = match order {
        Some(order) => order,
        None => b.iota(Shape::new(&[picks.size]), DType::S32, None)?,
    };
    Ok((b.slice_along_axis(order, 0, picks.samples as i64, 0, 1)?, next))
}

/// Positions that are determined by one draw.
fn draw_positions<B: Builder>(
    b: &mut B,
    key: &B::V,
    picks: &ResolvedChoice<B::V>,
    replace: bool,
) -> Result<B::V> {
    let samples = Shape::new(&[picks.samples]);
    match &picks.p {
        None => {
            let bounds = [0, picks.size].map(|bound| Arg::Number(Number::from(bound)));
            randint(b, key, &bounds[0], &bounds[1], &Sample::of(samples).with_dtype(DType::U32))
        }
        Some(p) if replace => {
            let dtype = b.ty(p).dtype;
            let op = CumulativeOp::CumulativeSum;
            let sums = Block::Cumulative { op, axis: Axis(0), reverse: false };
            let sums = b.emit_one(Op::Block(sums), std::slice::from_ref(p))?;
            let total = b.slice_along_axis(&sums, picks.size as i64 - 1, 1, 0, 1)?;
            let bounds = [0, 1].map(|bound| Arg::Number(Number::Int(bound)));
            let fraction = uniform(b, key, &bounds[0], &bounds[1], &Sample::of(samples).with_dtype(dtype))?;
            // Above 0, so that no element with probability 0 is chosen.
            let fraction = b.subtract(1, fraction)?;
            let target = b.multiply(total, fraction)?;
            search(b, &sums, &target, picks.size)
        }
        Some(p) => {
            // Takes the greatest Gumbel numbers after the logarithms of the probabilities were added: Vieira,
            // Gumbel-max trick and weighted reservoir sampling (2014).
            let dtype = b.ty(p).dtype;
            let noise = gumbel(b, key, &Sample::of(Shape::new(&[picks.size])).with_dtype(dtype))?;
            let noise = b.negate(noise)?;
            let log = b.log(p)?;
            let cost = b.subtract(noise, log)?;
            let order = b.argsort(cost, 0, Direction::Asc, positions_dtype(picks.size))?;
            b.slice_along_axis(order, 0, picks.samples as i64, 0, 1)
        }
    }
}

/// For each target, the index of the first of the ascending sums that is not below it, by binary search.
fn search<B: Builder>(b: &mut B, sums: &B::V, targets: &B::V, size: usize) -> Result<B::V> {
    let dtype = positions_dtype(size.saturating_mul(2));
    let mut below = b.full(b.ty(targets).shape, dtype, 0)?;
    let mut step = 1 << size.ilog2();
    while step > 0 {
        let further = b.add(&below, Number::from(step))?;
        let last = b.subtract(&further, 1)?;
        let inside = b.less_equal(&further, Number::from(size))?;
        let last = b.min(last, Number::from(size - 1))?;
        let sum = b.take(sums, last, 0)?;
        let is_below = b.less(sum, targets)?;
        let moves = b.logical_and(inside, is_below)?;
        below = b.select(moves, further, below)?;
        step /= 2;
    }
    b.min(below, Number::from(size - 1))
}
