//! Which element of each window is the extreme one, and sums of what is sent there.

use defn_core::DType;
use defn_core::op::{Window, WindowScatterOp};
use smallvec::SmallVec;

use super::{FAR, ceil_div};
use crate::kernels::{Element, Real, with_compute, with_real};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that one thread compares at a time.
const CHUNK: usize = 1 << 15;

/// Stands for padding among positions.
const PADDING: u64 = u64::MAX;

/// Writes, for each place of a window, the row-major position of the extreme element, u64; `PADDING` where the
/// start is more extreme than any element and there is padding. The last of equal ones is taken, and NaN is
/// the extreme. Operand and start have the dtype in which elements of `dtype` are computed.
pub(crate) fn choose(
    op: WindowScatterOp,
    dtype: DType,
    window: &Window,
    places: &[usize],
    (x, start): (View<'_>, View<'_>),
    out: &mut ViewMut<'_>,
    par: Par,
) {
    with_real!(dtype, C => {
        let start = start.slice::<C>()[0];
        match op {
            WindowScatterOp::WindowScatterMax => {
                run::<C>(window, places, x, start, out, par, |later, earlier| later.nan() || later >= earlier);
            }
            WindowScatterOp::WindowScatterMin => {
                run::<C>(window, places, x, start, out, par, |later, earlier| later.nan() || later <= earlier);
            }
        }
    });
}

type List = SmallVec<[usize; 6]>;

/// `wins(later, earlier)` says whether a later element takes the place of an earlier one.
fn run<C: Real>(
    window: &Window,
    places: &[usize],
    x: View<'_>,
    start: C,
    out: &mut ViewMut<'_>,
    par: Par,
    wins: impl Fn(C, C) -> bool + Sync,
) {
    let sizes = x.ty().shape.sizes();
    let x = x.slice::<C>();
    let rank = sizes.len();
    let work = window
        .sizes
        .iter()
        .zip(sizes)
        .fold(1usize, |work, (&window, &size)| work.saturating_mul(window.min(size)));
    out.fill::<u64>(par, (CHUNK / work.max(1)).max(1), |first, chunk| {
        let mut place: List = SmallVec::from_elem(0, rank);
        // In each axis: where the window begins, and which of its elements lie in the tensor.
        let (mut begin, mut from, mut to) = ([0i64; 0].to_vec(), place.clone(), place.clone());
        for (flat, out) in (first..).zip(chunk) {
            let mut rest = flat;
            for axis in (0..rank).rev() {
                place[axis] = rest % places[axis];
                rest /= places[axis];
            }
            begin.clear();
            for axis in 0..rank {
                let apart = window.dilations[axis].min(FAR) as i64;
                let low = (place[axis] * window.strides[axis].min(FAR)) as i64 - window.padding[axis].0;
                let (length, size) = (window.sizes[axis] as i64, sizes[axis] as i64);
                from[axis] = ceil_div(-low, apart).clamp(0, length) as usize;
                to[axis] = ceil_div(size - low, apart).clamp(from[axis] as i64, length) as usize;
                begin.push(low);
            }
            let inside = Inside { window, sizes, begin: &begin, from: &from, to: &to };
            let best = inside.best(x, &wins);
            out.write(match (best, inside.last_outside()) {
                (None, _) => PADDING,
                (Some((position, _)), None) => position as u64,
                (Some((position, cell)), Some(padding)) => {
                    let taken =
                        if padding > cell { wins(start, x[position]) } else { !wins(x[position], start) };
                    if taken { PADDING } else { position as u64 }
                }
            });
        }
    });
}

/// The part of a window at one place that lies in the tensor.
struct Inside<'a> {
    window: &'a Window,
    sizes: &'a [usize],
    begin: &'a [i64],
    from: &'a [usize],
    to: &'a [usize],
}

impl Inside<'_> {
    /// The position of the extreme element, and its cell in the window; none where all is padding.
    fn best<C: Real>(&self, x: &[C], wins: &impl Fn(C, C) -> bool) -> Option<(usize, List)> {
        if self.from.iter().zip(self.to).any(|(from, to)| from >= to) {
            return None;
        }
        let rank = self.sizes.len();
        let mut cell: List = self.from.into();
        let mut best: Option<(usize, List)> = None;
        loop {
            let position = (0..rank).fold(0, |flat, axis| {
                let apart = self.window.dilations[axis].min(FAR);
                let at = self.begin[axis] + (cell[axis] * apart) as i64;
                flat * self.sizes[axis] + at as usize
            });
            if best.as_ref().is_none_or(|(before, _)| wins(x[position], x[*before])) {
                best = Some((position, cell.clone()));
            }
            // The next cell, in row-major order.
            let Some(axis) = (0..rank).rev().find(|&axis| cell[axis] + 1 < self.to[axis]) else {
                return best;
            };
            cell[axis] += 1;
            cell[axis + 1..].copy_from_slice(&self.from[axis + 1..]);
        }
    }

    /// The last cell, in row-major order, that is padding; none where there is no padding.
    fn last_outside(&self) -> Option<List> {
        let last: List = self.window.sizes.iter().map(|&size| size - 1).collect();
        if last.iter().zip(self.to).any(|(&last, &to)| to <= last) {
            return Some(last);
        }
        // Everything up to the last cell is there, so that padding is only before the tensor.
        let axis = (0..last.len()).rev().find(|&axis| self.from[axis] > 0)?;
        let mut cell = last;
        cell[axis] = self.from[axis] - 1;
        Some(cell)
    }
}

/// Writes the start everywhere, and adds each element of `source` to the position chosen for it. All have the
/// dtype in which elements of `dtype` are computed.
pub(crate) fn add_chosen(
    dtype: DType,
    chosen: View<'_>,
    source: View<'_>,
    start: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    with_compute!(dtype, C => {
        let start = start.slice::<C>()[0];
        out.fill::<C>(par, CHUNK, |_, chunk| chunk.iter_mut().for_each(|out| {
            out.write(start);
        }));
        // SAFETY: every element was just written.
        let sums = unsafe { out.slice::<C>().assume_init_mut() };
        for (&position, &value) in chosen.slice::<u64>().iter().zip(source.slice::<C>()) {
            if position != PADDING {
                let sum = &mut sums[position as usize];
                *sum = sum.plus(value);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use defn_core::{Shape, TensorType};
    use smallvec::smallvec;

    use super::*;
    use crate::kernels::testing::Array;

    fn chosen(x: &[f64], start: f64, window: usize, padding: (i64, i64), count: usize) -> Vec<Option<u64>> {
        let window = Window {
            sizes: smallvec![window],
            strides: smallvec![1],
            padding: smallvec![padding],
            dilations: smallvec![1],
        };
        let x = Array::new(DType::F64, &[x.len()], x.iter().map(|&x| x.into()));
        let start = Array::new(DType::F64, &[], [start.into()]);
        let mut out = Array::unwritten(TensorType::new(DType::U64, Shape::new(&[count])).unwrap());
        let op = WindowScatterOp::WindowScatterMax;
        choose(op, DType::F64, &window, &[count], (x.view(), start.view()), &mut out.view_mut(), Par::Serial);
        out.view().slice::<u64>().iter().map(|&at| (at != PADDING).then_some(at)).collect()
    }

    #[test]
    fn the_last_of_equal_elements_is_chosen() {
        assert_eq!(chosen(&[1.0, 2.0, 2.0, 0.0], 0.0, 2, (0, 0), 3), [Some(1), Some(2), Some(2)]);
        assert_eq!(chosen(&[f64::NAN, 2.0, f64::NAN], 0.0, 2, (0, 0), 2), [Some(0), Some(2)]);
    }

    #[test]
    fn padding_takes_part_as_the_start() {
        // Padding before: a tie goes to the later element. Padding after: it goes to the padding.
        assert_eq!(chosen(&[0.0, -1.0], 0.0, 2, (1, 1), 3), [Some(0), Some(0), None]);
        assert_eq!(chosen(&[0.0], 0.0, 2, (0, 1), 1), [None]);
        assert_eq!(chosen(&[1.0], 2.0, 2, (1, 0), 1), [None]);
        assert_eq!(chosen(&[1.0], f64::NAN, 2, (1, 0), 1), [None]);
        assert_eq!(chosen(&[1.0], 2.0, 2, (3, -1), 2), [None, None]);
    }
}
