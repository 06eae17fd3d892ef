//! Repetition, splits, and padding with a tensor's own elements.

use crate::builder::{BuildShape, Builder, Cut, PadMode};
use crate::error::{ErrorKind, Result};
use crate::shape::{Axes, Axis, AxisRef, Shape};

/// See [`BuildShape::tile`].
///
/// # Errors
/// As the method.
pub fn tile<B: Builder>(b: &mut B, x: &B::V, repetitions: &[i64]) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let mut times = Vec::with_capacity(repetitions.len());
    for &repetition in repetitions {
        match usize::try_from(repetition) {
            Ok(repetition) if repetition >= 1 => times.push(repetition),
            _ => {
                let (option, given) = ("repetitions", format!("{repetitions:?}"));
                let required = "integers of at least 1".to_owned();
                return Err(ErrorKind::OptionValue { op: "tile", option, given, required }.into());
            }
        }
    }
    // Each axis becomes two axes, first the repetitions and then the elements. A reshape merges them.
    let rank = shape.rank().max(times.len());
    let (mut split, mut element_axes, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..rank {
        let time = (axis + times.len()).checked_sub(rank).map_or(1, |at| times[at]);
        let size = (axis + shape.rank()).checked_sub(rank).map(|at| shape.sizes()[at]);
        split.extend([time, size.unwrap_or(1)]);
        if size.is_some() {
            element_axes.push(AxisRef::Index(split.len() as i64 - 1));
        }
        joined.push(
            time.checked_mul(size.unwrap_or(1))
                .ok_or_else(|| ErrorKind::TooLarge { dtype: b.ty(x).dtype, shape: Shape::new(&split) })?,
        );
    }
    let repeated = b.broadcast(x, Shape::new(&split), Axes::List(element_axes))?;
    b.reshape_to(repeated, Shape::new(&joined))
}

/// See [`BuildShape::split`].
///
/// # Errors
/// As the method.
pub fn split<B: Builder>(b: &mut B, x: &B::V, cut: Cut, axis: &AxisRef) -> Result<(B::V, B::V)> {
    let ty = b.ty(x);
    let axis = ty.shape.resolve("split", axis)?;
    let size = ty.shape[axis] as i64;
    let (at, given) = match cut {
        Cut::At(at) if at < 0 => (size.saturating_add(at), at.to_string()),
        Cut::At(at) => (at, at.to_string()),
        Cut::Share(share) => ((share * size as f64).ceil() as i64, share.to_string()),
    };
    if at <= 0 || at >= size {
        let required = format!("a cut inside axis {axis} of {ty}");
        return Err(ErrorKind::OptionValue { op: "split", option: "the cut", given, required }.into());
    }
    let first = b.slice_along_axis(x, 0, at, axis, 1)?;
    let second = b.slice_along_axis(x, at, size - at, axis, 1)?;
    Ok((first, second))
}

/// See [`BuildShape::pad_outer`].
///
/// # Errors
/// As the method.
pub fn pad_outer<B: Builder>(
    b: &mut B,
    x: &B::V,
    mode: PadMode<B::V>,
    config: &[(i64, i64)],
) -> Result<B::V> {
    let fold: fn(i64, i64) -> i64 = match mode {
        PadMode::Value(value) => {
            let config: Vec<_> = config.iter().map(|&(low, high)| (low, high, 0)).collect();
            return b.pad(x, value, &config);
        }
        PadMode::Cyclic => |at, size| at.rem_euclid(size),
        PadMode::Mirror => |at, size| {
            let at = at.rem_euclid(2 * size);
            at.min(2 * size - 1 - at)
        },
        PadMode::Replicate => |at, size| at.clamp(0, size - 1),
        PadMode::Reflect => |at, size| {
            let period = (2 * size - 2).max(1);
            let at = at.rem_euclid(period);
            at.min(period - at)
        },
    };
    let got = b.ty(x);
    if config.len() != got.shape.rank() {
        return Err(ErrorKind::PadCount { count: config.len(), got }.into());
    }
    let mut padded = x.clone();
    for (axis, &(left, right)) in got.shape.axes().zip(config) {
        let size = got.shape[axis] as i64;
        let refused = left < 0 || right < 0 || (size == 0 && (left > 0 || right > 0));
        if refused {
            let required = format!(
                "two integers of at least 0{}",
                if size == 0 { ", and 0 on an axis without elements" } else { "" }
            );
            let given = format!("({left}, {right}) on axis {axis} of {got}");
            let option = "the padding";
            return Err(ErrorKind::OptionValue { op: "pad_outer", option, given, required }.into());
        }
        let too_large = || ErrorKind::TooLarge { dtype: got.dtype, shape: got.shape.clone() };
        let total = size.checked_add(left).and_then(|n| n.checked_add(right)).ok_or_else(too_large)?;
        // A length beyond the addressable memory is refused before its positions are computed.
        let mut target = b.ty(&padded).shape;
        target[axis] = total as usize;
        crate::shape::TensorType::new(got.dtype, target)?;
        if left == 0 && right == 0 {
            continue;
        }
        // The tensor itself is one piece between the padding before and after it.
        let take = |b: &mut B, from: i64, to: i64| {
            let runs = PositionRun::split_into_runs(from, to, |at| fold(at, size));
            runs.iter().map(|run| run.take(b, &padded, axis)).collect::<Result<Vec<_>>>()
        };
        let mut parts = take(b, -left, 0)?;
        parts.push(padded.clone());
        parts.extend(take(b, size, size + right)?);
        padded = b.concatenate(&parts, axis)?;
    }
    Ok(padded)
}

/// Consecutive positions that read consecutive or equal elements.
#[derive(Debug, PartialEq)]
struct PositionRun {
    /// The element that the first position reads.
    first: i64,
    /// The difference between the elements of consecutive positions: -1, 0 or 1; 1 for a single position.
    step: i64,
    /// The number of positions.
    length: i64,
}

impl PositionRun {
    /// Splits the positions `from..to` into runs. Each position reads the element that `source` returns for it.
    fn split_into_runs(from: i64, to: i64, source: impl Fn(i64) -> i64) -> Vec<PositionRun> {
        let mut runs: Vec<PositionRun> = Vec::new();
        for at in from..to {
            let element = source(at);
            match runs.last_mut() {
                Some(run) if run.length == 1 && (element - run.first).abs() <= 1 => {
                    (run.step, run.length) = (element - run.first, 2);
                }
                Some(run) if run.length > 1 && element == run.first + run.step * run.length => {
                    run.length += 1;
                }
                Some(_) | None => runs.push(PositionRun { first: element, step: 1, length: 1 }),
            }
        }
        runs
    }

    /// The elements that the positions read.
    fn take<B: Builder>(&self, b: &mut B, x: &B::V, axis: Axis) -> Result<B::V> {
        let lowest = if self.step < 0 { self.first + self.step * (self.length - 1) } else { self.first };
        let length = if self.step == 0 { 1 } else { self.length };
        let slice = b.slice_along_axis(x, lowest, length, axis, 1)?;
        match self.step {
            -1 => b.reverse(slice, axis),
            0 => {
                let mut shape = b.ty(&slice).shape;
                shape[axis] = self.length as usize;
                b.broadcast(slice, shape, Axes::All)
            }
            _ => Ok(slice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_covered_by_as_few_runs_as_needed() {
        let run = |first, step, length| PositionRun { first, step, length };
        assert_eq!(
            PositionRun::split_into_runs(-2, 5, |at| at.clamp(0, 2)),
            [run(0, 0, 3), run(1, 1, 2), run(2, 0, 2)]
        );
        assert_eq!(
            PositionRun::split_into_runs(-2, 5, |at| at.rem_euclid(3)),
            [run(1, 1, 2), run(0, 1, 3), run(0, 1, 2)]
        );
        assert_eq!(PositionRun::split_into_runs(0, 1, |at| at), [run(0, 1, 1)]);
        assert_eq!(PositionRun::split_into_runs(0, 0, |at| at), []);
    }
}
