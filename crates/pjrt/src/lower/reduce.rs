//! Folds over axes, extremes and where they are, and elements in order.

use defn_core::op::{ArgOp, Direction, ReduceOp, TieBreak};
use defn_core::{Axis, DType, Kind, Number, Scalar, TensorType};

use super::text::{RegionText, Ssa, Ty, Writer, array};
use super::value::{computed, held};
use super::{LowerError, Lowering, Operands};
use crate::element::ElementType as E;

/// What never fails gives this.
pub(super) type Sure<T> = std::result::Result<T, LowerError>;

impl Writer {
    /// A fold by an operation of two operands.
    pub fn fold(&mut self, x: &Ssa, start: &Ssa, axes: &[usize], name: &'static str) -> Ssa {
        let dims =
            x.dims().iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &size)| size);
        let ty = Ty { element: x.element(), dims: dims.collect() };
        let attributes = format!("dimensions = {}", array(axes));
        let region = combine(x.element(), name);
        let folded: Sure<Vec<Ssa>> = self.op_with("reduce", &[x, start], &attributes, vec![region], &[ty]);
        folded.expect("an operation of two operands is always written").remove(0)
    }

    /// The greatest or the least; a NaN, which is given as what lies beyond all numbers, is either. Floats are ordered
    /// as integers, whose extremes devices find fast, while some lose a NaN where they are fast on floats.
    fn fold_extreme(
        &mut self,
        x: &Ssa,
        start: &Ssa,
        axes: &[usize],
        (name, nan): (&'static str, f64),
    ) -> Ssa {
        let float = x.element();
        let integer = match float {
            E::F32 => E::S32,
            E::F64 => E::S64,
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
            | E::F4E2M1Fn => return self.fold(x, start, axes, name),
        };
        let is_nan = self.compare(x, x, "NE");
        let beyond = self.float_like(x, nan);
        let x = self.choose(&is_nan, &beyond, x);
        let bits = |w: &mut Writer, x: &Ssa| {
            let bits = w.op("bitcast_convert", &[x], "", x.ty.of(integer));
            w.in_order(&bits)
        };
        let (keys, first) = (bits(self, &x), bits(self, start));
        let folded = self.fold(&keys, &first, axes, name);
        let folded = self.in_order(&folded);
        self.op("bitcast_convert", &[&folded], "", folded.ty.of(float))
    }

    /// The bits of floats as integers of the same order, and those as the bits again: of a negative number all bits
    /// but the sign are turned.
    fn in_order(&mut self, bits: &Ssa) -> Ssa {
        let is_wide = bits.element() == E::S64;
        let mask = if is_wide { i64::MAX.to_le_bytes().to_vec() } else { i32::MAX.to_le_bytes().to_vec() };
        let width = if is_wide { 63 } else { 31 };
        let width = self.number_like(bits, width);
        let mask = self.literal(Ty::scalar(bits.element()), &mask);
        let mask = self.splat(&mask, bits.dims());
        let sign = self.op("shift_right_arithmetic", &[bits, &width], "", bits.ty.clone());
        let turned = self.op("and", &[&sign, &mask], "", bits.ty.clone());
        self.op("xor", &[bits, &turned], "", bits.ty.clone())
    }

    /// The number from which no element of a type is further in a direction, in the type that computes it.
    pub fn limit(&mut self, dtype: DType, is_lowest: bool) -> Ssa {
        let number: Number = if is_lowest { dtype.lowest() } else { dtype.highest() };
        self.scalar(Scalar::new(dtype, number).expect("a limit of the type"))
    }

    /// Whether computed element `a` comes before `b`, NaN above every number.
    fn comes_before(&mut self, a: &Ssa, b: &Ssa, kind: Kind, direction: Direction) -> Ssa {
        let (order, first, second) = match direction {
            Direction::Asc => ("LT", b, a),
            Direction::Desc => ("GT", a, b),
        };
        let before = self.compare(a, b, order);
        if kind != Kind::Float {
            return before;
        }
        let (nan, number) = (self.compare(first, first, "NE"), self.compare(second, second, "EQ"));
        let both = self.op("and", &[&nan, &number], "", nan.ty.clone());
        self.op("or", &[&before, &both], "", nan.ty.clone())
    }
}

/// A region that combines two elements by an operation.
pub(super) fn combine<'a>(element: E, name: &'static str) -> RegionText<'a, LowerError> {
    let ty = Ty::scalar(element);
    RegionText {
        arguments: vec![ty.clone(), ty.clone()],
        write: Box::new(move |w, arguments| Ok(vec![w.op(name, &[&arguments[0], &arguments[1]], "", ty)])),
    }
}

/// Axes side by side that are all folded, or all kept, as one axis each, those of size 1 left out, and which of them
/// are folded. Plugins take time that grows with the third power of the number of axes.
fn runs(sizes: &[usize], folded: &[Axis]) -> (Vec<usize>, Vec<usize>) {
    let mut is_folded = vec![false; sizes.len()];
    folded.iter().for_each(|axis| is_folded[axis.index()] = true);
    let mut runs: Vec<(usize, bool)> = Vec::new();
    for (&size, is_folded) in sizes.iter().zip(is_folded).filter(|&(&size, _)| size != 1) {
        match runs.last_mut() {
            // The product of some axes is too large where another has no elements.
            Some((run, of)) if *of == is_folded && run.checked_mul(size).is_some() => *run *= size,
            Some(_) | None => runs.push((size, is_folded)),
        }
    }
    let axes = (0..runs.len()).filter(|&run| runs[run].1).collect();
    (runs.into_iter().map(|(size, _)| size).collect(), axes)
}

impl Lowering {
    pub(super) fn reduce(&mut self, op: ReduceOp, x: &Operands<'_>, axes: &[Axis], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let from = x.types[0].dtype;
        let element = computed(out.dtype);
        let (dims, axes) = runs(x.types[0].shape.sizes(), axes);
        let value = w.reshape(&x.values[0], &dims);
        let folded = match op {
            ReduceOp::Sum => {
                let (x, zero) = (w.load_as(&value, from, out.dtype), w.number(element, 0));
                w.fold(&x, &zero, &axes, "add")
            }
            ReduceOp::Product => {
                let (x, one) = (w.load_as(&value, from, out.dtype), w.number(element, 1));
                w.fold(&x, &one, &axes, "multiply")
            }
            ReduceOp::ReduceMax => {
                let (x, least) = (w.load(&value, from), w.limit(from, true));
                w.fold_extreme(&x, &least, &axes, ("maximum", f64::NAN.copysign(1.0)))
            }
            ReduceOp::ReduceMin => {
                let (x, most) = (w.load(&value, from), w.limit(from, false));
                w.fold_extreme(&x, &most, &axes, ("minimum", f64::NAN.copysign(-1.0)))
            }
            ReduceOp::All => w.fold_truth(&value, from, &axes, (1, "and")),
            ReduceOp::Any => w.fold_truth(&value, from, &axes, (0, "or")),
        };
        let stored = w.store(&folded, out.dtype);
        w.reshape(&stored, out.shape.sizes())
    }

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
        // A place that loses every tie; narrow ones are faster.
        let start = w.limit(from, op == ArgOp::Argmax);
        let (counted, nowhere) = match (i32::try_from(x.dims()[axis]), tie_break) {
            (Ok(size), TieBreak::Low) => (DType::S32, w.number(E::S32, size)),
            (Ok(_), TieBreak::High) => (DType::S32, w.number(E::S32, -1)),
            (Err(_), TieBreak::Low) => (DType::S64, w.position(x.dims()[axis])),
            (Err(_), TieBreak::High) => (DType::S64, w.number(E::S64, -1)),
        };
        let places = w.iota(x.ty.of(held(counted)), axis);
        let direction = match op {
            ArgOp::Argmax => "GT",
            ArgOp::Argmin => "LT",
        };
        let earlier = match tie_break {
            TieBreak::Low => "LT",
            TieBreak::High => "GT",
        };
        let dims = x.dims().iter().enumerate().filter(|&(at, _)| at != axis).map(|(_, &size)| size);
        let value = Ty { element: x.element(), dims: dims.collect() };
        let is_float = from.is_float();
        let (scalar, place) = (Ty::scalar(x.element()), Ty::scalar(held(counted)));
        let region = RegionText {
            arguments: vec![scalar.clone(), place.clone(), scalar, place],
            write: Box::new(move |w: &mut Writer, arguments: &[Ssa]| -> Sure<Vec<Ssa>> {
                let [a, a_place, b, b_place] = arguments else { unreachable!("two values and two places") };
                let mut better = w.compare(a, b, direction);
                let mut same = w.compare(a, b, "EQ");
                if is_float {
                    // A NaN is the extreme, and one is as good as another.
                    let (a_nan, b_nan) = (w.compare(a, a, "NE"), w.compare(b, b, "NE"));
                    let (ty, not_b) = (a_nan.ty.clone(), w.op("not", &[&b_nan], "", b_nan.ty.clone()));
                    let only_a = w.op("and", &[&a_nan, &not_b], "", ty.clone());
                    let both = w.op("and", &[&a_nan, &b_nan], "", ty.clone());
                    better = w.op("or", &[&better, &only_a], "", ty.clone());
                    same = w.op("or", &[&same, &both], "", ty);
                }
                let first = w.compare(a_place, b_place, earlier);
                let tie = w.op("and", &[&same, &first], "", same.ty.clone());
                let wins = w.op("or", &[&better, &tie], "", same.ty.clone());
                Ok(vec![w.choose(&wins, a, b), w.choose(&wins, a_place, b_place)])
            }),
        };
        let attributes = format!("dimensions = {}", array([axis]));
        let results = [value.clone(), value.of(held(counted))];
        let folded = w
            .op_with("reduce", &[&x, &places, &start, &nowhere], &attributes, vec![region], &results)
            .expect("comparisons are always written");
        let place = w.cast(&folded[1], counted, out.dtype);
        w.reshape(&place, out.shape.sizes())
    }

    pub(super) fn sort(&mut self, x: &Operands<'_>, axis: Axis, direction: Direction) -> Ssa {
        let mut sorted = self.sorted(&[&x.values[0]], x.types[0].dtype, axis, direction);
        sorted.remove(0)
    }

    pub(super) fn argsort(
        &mut self,
        x: &Operands<'_>,
        axis: Axis,
        direction: Direction,
        dtype: DType,
    ) -> Ssa {
        let value = &x.values[0];
        let places = self.writer.iota(value.ty.of(E::S64), axis.index());
        let sorted = self.sorted(&[value, &places], x.types[0].dtype, axis, direction);
        self.writer.cast(&sorted[1], DType::S64, dtype)
    }

    /// Operands put in the order of the first one's elements; equal ones keep theirs.
    fn sorted(&mut self, operands: &[&Ssa], dtype: DType, axis: Axis, direction: Direction) -> Vec<Ssa> {
        let w = &mut self.writer;
        let types: Vec<Ty> = operands.iter().map(|operand| operand.ty.clone()).collect();
        let arguments =
            types.iter().flat_map(|ty| [Ty::scalar(ty.element), Ty::scalar(ty.element)]).collect::<Vec<_>>();
        let region = RegionText {
            arguments,
            write: Box::new(move |w: &mut Writer, arguments: &[Ssa]| -> Sure<Vec<Ssa>> {
                let (a, b) = (w.load(&arguments[0], dtype), w.load(&arguments[1], dtype));
                Ok(vec![w.comes_before(&a, &b, dtype.kind(), direction)])
            }),
        };
        let attributes = format!("dimension = {} : i64, is_stable = true", axis.index());
        w.op_with("sort", operands, &attributes, vec![region], &types)
            .expect("comparisons are always written")
    }
}

impl Writer {
    /// Whether all elements, or any, are not zero, as a predicate.
    fn fold_truth(
        &mut self,
        x: &Ssa,
        dtype: DType,
        axes: &[usize],
        (start, name): (i32, &'static str),
    ) -> Ssa {
        let x = self.load(x, dtype);
        let (x, start) = (self.truth(&x), self.number(E::Pred, start));
        let folded = self.fold(&x, &start, axes, name);
        debug_assert_eq!(held(DType::U8), E::U8);
        self.predicate(&folded)
    }
}
