//! Extremes and their positions.
//!
//! XLA on the host reduces a long axis in several passes over memory. It reduces pairs of a value and its position
//! without vector instructions. Its kernel library is fast on floats but loses a NaN. Programs for the host avoid all
//! three, with the same results. A long axis is split into several short ones, which XLA reduces in nested loops, fused
//! with the producers of the elements. A position is searched for once the extreme is known.

use defn_core::op::{ArgOp, TieBreak};
use defn_core::{Axis, DType, Number, Scalar, TensorType};
use smallvec::{SmallVec, smallvec};

use super::reduce::RegionResult;
use super::text::{Dims, RegionText, Ssa, Ty, Writer, array};
use super::value::storage_type;
use super::{Lowering, Operands};
use crate::element::ElementType as E;

/// The longest axis that XLA on the host reduces in one loop.
const MAX_LOOP_SIZE: usize = 32;
/// From this number of elements, a reduction to one element runs in two steps, the first on all threads.
const SHARED: usize = 1 << 14;

/// Splits an axis into short axes. Their product is `size` or a little more, and the last ones are the longest.
fn short_axes(size: usize) -> SmallVec<[usize; 6]> {
    // A step is at most an eighth of the size. The size grows by steps until it has such factors.
    let mut step = 1;
    while size / step > 8 * MAX_LOOP_SIZE {
        step *= MAX_LOOP_SIZE;
    }
    let mut padded = size;
    loop {
        let (mut axes, mut rest): (SmallVec<[usize; 6]>, usize) = (SmallVec::new(), padded);
        while rest > MAX_LOOP_SIZE {
            let Some(factor) = (8..=MAX_LOOP_SIZE).rev().find(|&factor| rest.is_multiple_of(factor)) else {
                break;
            };
            axes.insert(0, factor);
            rest /= factor;
        }
        if rest <= MAX_LOOP_SIZE {
            axes.insert(0, rest);
            return axes;
        }
        padded = (padded / step + 1) * step;
    }
}

/// The extreme to find.
#[derive(Clone, Copy)]
pub(super) struct Extreme {
    /// The operation in StableHLO.
    pub(super) name: &'static str,
    /// The comparison that holds for a number further in its direction.
    beyond: &'static str,
    /// The NaN that is ordered beyond all numbers: a NaN is either extreme.
    nan: f64,
}

pub(super) const GREATEST: Extreme = Extreme { name: "maximum", beyond: "GT", nan: f64::NAN.copysign(1.0) };
pub(super) const LEAST: Extreme = Extreme { name: "minimum", beyond: "LT", nan: f64::NAN.copysign(-1.0) };

impl Extreme {
    fn of(op: ArgOp) -> Extreme {
        match op {
            ArgOp::Argmax => GREATEST,
            ArgOp::Argmin => LEAST,
        }
    }
}

/// The integer type for a float's bits, if floats of that type are compared by their bits.
pub(super) fn bits_of(float: E) -> Option<E> {
    match float {
        E::F32 => Some(E::S32),
        E::F64 => Some(E::S64),
        E::Pred
        | E::S2
        | E::S4
        | E::S8
        | E::S16
        | E::S32
        | E::S64
        | E::U2
        | E::U4
        | E::U8
        | E::U16
        | E::U32
        | E::U64
        | E::F16
        | E::Bf16
        | E::C64
        | E::C128
        | E::F8E5M2
        | E::F8E4M3Fn
        | E::F8E4M3B11Fnuz
        | E::F8E5M2Fnuz
        | E::F8E4M3Fnuz
        | E::F8E4M3
        | E::F8E3M4
        | E::F8E8M0Fnu
        | E::F4E2M1Fn => None,
    }
}

/// A value whose last axis is split into several, with padding at their end where `is_padded`.
struct SplitAxis {
    x: Ssa,
    axes: SmallVec<[usize; 6]>,
    is_padded: bool,
}

impl Writer {
    /// The greatest element along axes; NaN if there is one.
    pub fn reduce_max(&mut self, x: &Ssa, dtype: DType, axes: &[usize]) -> Ssa {
        let start = self.limit(dtype, true);
        self.reduce_extreme(x, &start, axes, GREATEST)
    }

    /// The least element along axes; NaN if there is one.
    pub fn reduce_min(&mut self, x: &Ssa, dtype: DType, axes: &[usize]) -> Ssa {
        let start = self.limit(dtype, false);
        self.reduce_extreme(x, &start, axes, LEAST)
    }

    /// Floats are compared as integers. Devices find integer extremes fast, while some lose a NaN where they are fast
    /// on floats.
    fn reduce_extreme(&mut self, x: &Ssa, start: &Ssa, axes: &[usize], extreme: Extreme) -> Ssa {
        let float = x.element();
        let Some(integer) = bits_of(float) else { return self.fold(x, start, axes, extreme.name) };
        let last = x.dims().len().wrapping_sub(1);
        let is_long = self.on_host && axes.contains(&last) && x.dims()[last] > MAX_LOOP_SIZE;
        // The axis is split before any operation on the elements: XLA would merge axes that are split later.
        let (x, first, rest) = if is_long {
            let split_axis = self.split_axis(x, start);
            (split_axis.x, split_axis.axes, axes.iter().copied().filter(|&axis| axis != last).collect())
        } else {
            (x.clone(), SmallVec::from_slice(axes), SmallVec::<[usize; 6]>::new())
        };
        let (mut keys, start) = (self.ordered_keys(&x, integer, extreme), self.ordered_bits(start, integer));
        let mut axes = first;
        let all: usize = keys.dims().iter().product();
        let folded: usize = axes.iter().map(|&axis| keys.dims()[axis]).product();
        if self.on_host && axes.len() > 1 && folded == all && all >= SHARED {
            keys = self.fold(&keys, &start, &axes[1..], extreme.name);
            // Without it XLA would merge both reductions.
            keys = self.op("optimization_barrier", &[&keys], "", keys.ty.clone());
            axes.truncate(1);
        }
        let mut folded = self.fold(&keys, &start, &axes, extreme.name);
        if !rest.is_empty() {
            folded = self.fold(&folded, &start, &rest, extreme.name);
        }
        self.unordered_keys(&folded, float)
    }

    /// Floats as integers in the same order, with NaN beyond all numbers.
    pub(super) fn ordered_keys(&mut self, x: &Ssa, integer: E, extreme: Extreme) -> Ssa {
        let is_nan = self.compare(x, x, "NE");
        let beyond = self.float_like(x, extreme.nan);
        let x = self.choose(&is_nan, &beyond, x);
        self.ordered_bits(&x, integer)
    }

    /// The floats that [`Writer::ordered_keys`] converted.
    pub(super) fn unordered_keys(&mut self, keys: &Ssa, float: E) -> Ssa {
        let bits = self.invert_negative(keys);
        self.op("bitcast_convert", &[&bits], "", bits.ty.of(float))
    }

    fn ordered_bits(&mut self, x: &Ssa, integer: E) -> Ssa {
        let bits = self.op("bitcast_convert", &[x], "", x.ty.of(integer));
        self.invert_negative(&bits)
    }

    /// Converts the bits of floats to integers in the same order, and back: of a negative number all bits but the sign
    /// are inverted.
    fn invert_negative(&mut self, bits: &Ssa) -> Ssa {
        let is_wide = bits.element() == E::S64;
        let mask = if is_wide { i64::MAX.to_le_bytes().to_vec() } else { i32::MAX.to_le_bytes().to_vec() };
        let width = if is_wide { 63 } else { 31 };
        let width = self.number_like(bits, width);
        let mask = self.literal(Ty::scalar(bits.element()), &mask);
        let mask = self.splat(&mask, bits.dims());
        let sign = self.op("shift_right_arithmetic", &[bits, &width], "", bits.ty.clone());
        let flipped_bits = self.op("and", &[&sign, &mask], "", bits.ty.clone());
        self.op("xor", &[bits, &flipped_bits], "", bits.ty.clone())
    }

    /// The lowest or the highest number of a dtype, in its compute type.
    pub fn limit(&mut self, dtype: DType, is_lowest: bool) -> Ssa {
        let number: Number = if is_lowest { dtype.lowest() } else { dtype.highest() };
        self.scalar(Scalar::new(dtype, number).expect("a limit of the type"))
    }

    /// Splits the last axis into several short ones, with `filling` at the end.
    fn split_axis(&mut self, x: &Ssa, filling: &Ssa) -> SplitAxis {
        let (&size, before) = x.dims().split_last().expect("an axis");
        let sizes = short_axes(size);
        let padded: usize = sizes.iter().product();
        let mut config: SmallVec<[(i64, i64, usize); 6]> = smallvec![(0, 0, 0); before.len()];
        config.push((0, i64::try_from(padded - size).expect("less than the size"), 0));
        let full = self.pad(x, filling, &config);
        let dims: Dims = before.iter().chain(&sizes).copied().collect();
        let axes = (before.len()..dims.len()).collect();
        SplitAxis { x: self.reshape(&full, &dims), axes, is_padded: padded != size }
    }

    /// The position of each element along the axis that was split.
    fn axis_positions(&mut self, split_axis: &SplitAxis, element: E) -> Ssa {
        let ty = split_axis.x.ty.of(element);
        let mut stride = 1;
        let mut sum: Option<Ssa> = None;
        for &axis in split_axis.axes.iter().rev() {
            let count = self.iota(ty.clone(), axis);
            let step = i32::try_from(stride).ok();
            let position = match step {
                Some(1) => count,
                Some(step) => {
                    let step = self.number_like(&count, step);
                    self.op("multiply", &[&count, &step], "", ty.clone())
                }
                None => {
                    let step = self.position(stride);
                    let step = self.splat(&step, count.dims());
                    self.op("multiply", &[&count, &step], "", ty.clone())
                }
            };
            stride *= split_axis.x.dims()[axis];
            sum = Some(match sum {
                Some(sum) => self.op("add", &[&sum, &position], "", ty.clone()),
                None => position,
            });
        }
        sum.expect("an axis")
    }
}

/// How positions are counted, and the number that means none: it loses every tie.
struct Counting {
    dtype: DType,
    nowhere: Ssa,
    tie_break: TieBreak,
}

impl Counting {
    /// Narrow integers are faster.
    fn along(w: &mut Writer, size: usize, tie_break: TieBreak) -> Counting {
        let (dtype, nowhere) = match (i32::try_from(size), tie_break) {
            (Ok(size), TieBreak::Low) => (DType::S32, w.number(E::S32, size)),
            (Ok(_), TieBreak::High) => (DType::S32, w.number(E::S32, -1)),
            (Err(_), TieBreak::Low) => (DType::S64, w.position(size)),
            (Err(_), TieBreak::High) => (DType::S64, w.number(E::S64, -1)),
        };
        Counting { dtype, nowhere, tie_break }
    }
}

impl Lowering {
    pub(super) fn arg_reduce(
        &mut self,
        op: ArgOp,
        operands: &Operands<'_>,
        axis: Option<Axis>,
        tie_break: TieBreak,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let from = operands.types[0].dtype;
        let mut x = w.load(&operands.values[0], from);
        let axis = match axis {
            Some(axis) => axis.index(),
            None => {
                x = w.reshape(&x, &[x.dims().iter().product()]);
                0
            }
        };
        let size = x.dims()[axis];
        let counting = Counting::along(w, size, tie_break);
        let position = if w.on_host && size > MAX_LOOP_SIZE {
            w.arg_reduce_by_search(op, &x, from, axis, &counting)
        } else {
            w.arg_reduce_pairs(op, &x, from, axis, &counting)
        };
        let position = w.cast(&position, counting.dtype, out.dtype);
        w.reshape(&position, out.shape.sizes())
    }
}

impl Writer {
    /// The position of an extreme along an axis: finds the extreme, then compares the elements with it.
    fn arg_reduce_by_search(
        &mut self,
        op: ArgOp,
        x: &Ssa,
        dtype: DType,
        axis: usize,
        counting: &Counting,
    ) -> Ssa {
        let extreme = Extreme::of(op);
        let start = self.limit(dtype, op == ArgOp::Argmax);
        let extreme_value = self.reduce_extreme(x, &start, &[axis], extreme);
        let size = x.dims()[axis];
        let split_axis = if axis + 1 == x.dims().len() {
            self.split_axis(x, &start)
        } else {
            SplitAxis { x: x.clone(), axes: smallvec![axis], is_padded: false }
        };
        let x = &split_axis.x;
        let kept_axes: SmallVec<[usize; 6]> =
            (0..x.dims().len()).filter(|axis| !split_axis.axes.contains(axis)).collect();
        let extreme_value = self.broadcast_along(&extreme_value, &kept_axes, x.dims());
        let mut hit = self.compare(x, &extreme_value, "EQ");
        if dtype.is_float() {
            let (nan, sought) =
                (self.compare(x, x, "NE"), self.compare(&extreme_value, &extreme_value, "NE"));
            let both = self.op("and", &[&nan, &sought], "", nan.ty.clone());
            hit = self.op("or", &[&hit, &both], "", both.ty.clone());
        }
        let element = storage_type(counting.dtype);
        let axis_positions = self.axis_positions(&split_axis, element);
        if split_axis.is_padded {
            let end = self.position(size);
            let end = self.convert(&end, element);
            let end = self.splat(&end, axis_positions.dims());
            let is_inside = self.compare(&axis_positions, &end, "LT");
            hit = self.op("and", &[&hit, &is_inside], "", is_inside.ty.clone());
        }
        let nowhere = self.splat(&counting.nowhere, axis_positions.dims());
        let axis_positions = self.choose(&hit, &axis_positions, &nowhere);
        let earlier = match counting.tie_break {
            TieBreak::Low => "minimum",
            TieBreak::High => "maximum",
        };
        self.fold(&axis_positions, &counting.nowhere, &split_axis.axes, earlier)
    }

    /// Whether `a` is beyond `b` in a direction, and whether they tie. A NaN is beyond all numbers, and all NaNs tie.
    pub(super) fn beyond(&mut self, a: &Ssa, b: &Ssa, direction: &str, is_float: bool) -> (Ssa, Ssa) {
        let (better, same) = (self.compare(a, b, direction), self.compare(a, b, "EQ"));
        if !is_float {
            return (better, same);
        }
        let (a_nan, b_nan) = (self.compare(a, a, "NE"), self.compare(b, b, "NE"));
        let (ty, not_b) = (a_nan.ty.clone(), self.op("not", &[&b_nan], "", b_nan.ty.clone()));
        let only_a = self.op("and", &[&a_nan, &not_b], "", ty.clone());
        let both = self.op("and", &[&a_nan, &b_nan], "", ty.clone());
        let better = self.op("or", &[&better, &only_a], "", ty.clone());
        (better, self.op("or", &[&same, &both], "", ty))
    }

    /// The position of an extreme along an axis, by a reduction over pairs of value and position.
    fn arg_reduce_pairs(
        &mut self,
        op: ArgOp,
        x: &Ssa,
        dtype: DType,
        axis: usize,
        counting: &Counting,
    ) -> Ssa {
        let start = self.limit(dtype, op == ArgOp::Argmax);
        let direction = Extreme::of(op).beyond;
        let index_element = storage_type(counting.dtype);
        let axis_positions = self.iota(x.ty.of(index_element), axis);
        let earlier = match counting.tie_break {
            TieBreak::Low => "LT",
            TieBreak::High => "GT",
        };
        let dims = x.dims().iter().enumerate().filter(|&(at, _)| at != axis).map(|(_, &size)| size);
        let value = Ty { element: x.element(), dims: dims.collect() };
        let is_float = dtype.is_float();
        let (scalar, one) = (Ty::scalar(x.element()), Ty::scalar(index_element));
        let region = RegionText {
            arguments: vec![scalar.clone(), one.clone(), scalar, one],
            write: Box::new(move |w: &mut Writer, arguments: &[Ssa]| -> RegionResult<Vec<Ssa>> {
                let [a, a_position, b, b_position] = arguments else {
                    unreachable!("two values and two places")
                };
                let (better, same) = w.beyond(a, b, direction, is_float);
                let first = w.compare(a_position, b_position, earlier);
                let tie = w.op("and", &[&same, &first], "", same.ty.clone());
                let wins = w.op("or", &[&better, &tie], "", same.ty.clone());
                Ok(vec![w.choose(&wins, a, b), w.choose(&wins, a_position, b_position)])
            }),
        };
        let attributes = format!("dimensions = {}", array([axis]));
        let results = [value.clone(), value.of(index_element)];
        let mut folded = self
            .op_with(
                "reduce",
                &[x, &axis_positions, &start, &counting.nowhere],
                &attributes,
                vec![region],
                &results,
            )
            .expect("comparisons are always written");
        folded.remove(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_axes_hold_an_axis_and_little_more() {
        let sizes = (33..5000).chain([50_257, 65_537, 1 << 20, 16_777_213, (1 << 40) + 1, 1 << 62]);
        for size in sizes {
            let axes = short_axes(size);
            let storage_type: usize = axes.iter().product();
            assert!(axes.iter().all(|&axis| axis <= MAX_LOOP_SIZE), "{size}: {axes:?}");
            assert!(storage_type >= size && storage_type - size <= size / 4, "{size}: {axes:?}");
        }
        assert_eq!(short_axes(1024)[..], [32, 32]);
        assert_eq!(short_axes(40)[..], [2, 20]);
    }
}
