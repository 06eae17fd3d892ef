//! Conversions between dtypes, and comparisons, which convert to a common one.
//!
//! Integers wrap. Floats become integers by truncation, saturating, NaN as 0. Floats round to the nearest, ties to
//! even, and once: where a value has more bits than f32, in which small floats are computed, it is first rounded to
//! odd, that is cut, with the last bit set if anything was lost. A second rounding to fewer bits then gives what one
//! would have.

use defn_core::DType;
use defn_core::op::ComparisonOp;

use super::{Element, Elements, computed, is_signed, is_small};
use crate::compiler::ir::{Cmp, Conv, Elem, Op, Val};

impl Elements {
    /// Elements as those of another dtype.
    pub(in super::super) fn convert(&mut self, x: Element, dtype: DType) -> Element {
        if x.dtype == dtype {
            return x;
        }
        if dtype.is_bool() {
            return self.truth(x);
        }
        if dtype.is_complex() {
            let part = dtype.to_real();
            let from = if x.imag.is_some() { x.dtype.to_real() } else { x.dtype };
            let value = self.convert(Element::new(x.value, from), part).value;
            let imag = match x.imag {
                Some(imag) => self.convert(Element::new(imag, from), part).value,
                None => self.number(computed(part), 0),
            };
            return Element { value, imag: Some(imag), dtype };
        }
        if x.imag.is_some() {
            return self.convert(Element::new(x.value, x.dtype.to_real()), dtype);
        }
        let (from, to) = (computed(x.dtype), computed(dtype));
        let (is_from_float, is_to_float) = (from.is_float(), to.is_float());
        let value = if x.dtype.is_bool() {
            let (one, zero) = (self.number(to, 1), self.number(to, 0));
            return Element::new(self.b.select(x.value, one, zero), dtype);
        } else if is_from_float && is_to_float {
            if from == Elem::F64 && is_small(dtype) {
                self.odd_of_double(x.value)
            } else {
                self.b.convert(Conv::Float, to, x.value)
            }
        } else if is_from_float {
            return self.whole(x, dtype);
        } else if is_to_float {
            let conv = if is_signed(x.dtype) { Conv::FloatOfS } else { Conv::FloatOfU };
            if is_small(dtype) && from == Elem::I64 {
                let exact = self.odd_of_long(x.value, conv);
                let double = self.b.convert(conv, Elem::F64, exact);
                self.odd_of_double(double)
            } else if is_small(dtype) && from == Elem::I32 {
                let exact = self.odd_of_word(x.value, conv);
                self.b.convert(conv, Elem::F32, exact)
            } else {
                self.b.convert(conv, to, x.value)
            }
        } else if from.bytes() < to.bytes() {
            let conv = if is_signed(x.dtype) { Conv::SignExtend } else { Conv::ZeroExtend };
            self.b.convert(conv, to, x.value)
        } else {
            self.b.convert(Conv::Truncate, to, x.value)
        };
        self.fit(value, dtype)
    }

    /// The f32 nearest to an f64, or, if that is another number, the neighbour whose last bit is 1.
    fn odd_of_double(&mut self, x: Val) -> Val {
        let near = self.b.convert(Conv::Float, Elem::F32, x);
        let back = self.b.convert(Conv::Float, Elem::F64, near);
        let bits = self.b.to_bits(near);
        let [zero, one, all] = [0, 1, -1].map(|number| self.number(Elem::I32, number));
        // NaN keeps its bits: it is neither less nor greater.
        let (above, below) = (self.b.compare(Cmp::Lt, back, x), self.b.compare(Cmp::Lt, x, back));
        let differs = self.b.op(Op::Or, [above, below]);
        // For floats of one sign the bits grow with the magnitude. Where the nearest is 0, it has the sign of x.
        let is_negative = self.b.compare(Cmp::Lt, bits, zero);
        let grows = self.b.op(Op::Xor, [above, is_negative]);
        let step = self.b.select(grows, one, all);
        let moved = self.b.add(bits, step);
        let is_odd = self.b.test(bits, one);
        let differs = self.b.op(Op::AndNot, [differs, is_odd]);
        let odd = self.b.select(differs, moved, bits);
        self.b.convert(Conv::Bitcast, Elem::F32, odd)
    }

    /// An integer of 64 bits that f64 holds, and that rounds to small floats as the given one.
    fn odd_of_long(&mut self, x: Val, conv: Conv) -> Val {
        self.odd_of_integer(x, conv, 53)
    }

    /// An integer of 32 bits that f32 holds, and that rounds to small floats as the given one.
    fn odd_of_word(&mut self, x: Val, conv: Conv) -> Val {
        self.odd_of_integer(x, conv, 24)
    }

    /// Integers that a float of so many bits may not hold lose their low bits; if any was set, the last that is left is
    /// set. As two's complement this cuts downwards, and is odd on either side.
    fn odd_of_integer(&mut self, x: Val, conv: Conv, digits: u32) -> Val {
        let elem = self.b.ty(x).elem;
        let low = (1u64 << (8 * elem.bytes() as u32 - digits)) - 1;
        let (mask, kept) = (self.b.bits(elem, low), self.b.bits(elem, !low));
        let (last, zero) = (self.b.bits(elem, low + 1), self.b.bits(elem, 0));
        let is_lost = self.b.test(x, mask);
        let sticky = self.b.select(is_lost, last, zero);
        let cut = self.b.op(Op::And, [x, kept]);
        let odd = self.b.op(Op::Or, [cut, sticky]);
        let bound = 1u64 << digits;
        let (least, bound) = match conv == Conv::FloatOfS {
            true => (self.b.bits(elem, bound), self.b.bits(elem, 2 * bound)),
            false => (self.b.bits(elem, 0), self.b.bits(elem, bound)),
        };
        let moved = self.b.add(x, least);
        let is_held = self.b.compare(Cmp::LtU, moved, bound);
        self.b.select(is_held, x, odd)
    }

    /// A float truncated to an integer, saturating; NaN is 0.
    fn whole(&mut self, x: Element, dtype: DType) -> Element {
        let to = computed(dtype);
        if to.bytes() >= 4 {
            let conv = if is_signed(dtype) { Conv::ToS } else { Conv::ToU };
            return Element::new(self.b.convert(conv, to, x.value), dtype);
        }
        let wide = self.b.convert(Conv::ToS, Elem::I32, x.value);
        let bits = dtype.bits();
        let (low, high) = match is_signed(dtype) {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        };
        let (low, high) = (self.number(Elem::I32, low), self.number(Elem::I32, high));
        let bounded = self.b.op(Op::Max, [wide, low]);
        let bounded = self.b.op(Op::Min, [bounded, high]);
        Element::new(self.b.convert(Conv::Truncate, to, bounded), dtype)
    }

    /// Compares by mathematical value.
    pub(super) fn compare(&mut self, op: ComparisonOp, a: Element, b: Element) -> Val {
        let Some(both) = a.dtype.compared(b.dtype) else {
            return if a.dtype == DType::U64 {
                self.compare_long(op, a.value, b)
            } else {
                self.compare_long(swapped(op), b.value, a)
            };
        };
        let (a, b) = (self.convert(a, both), self.convert(b, both));
        if let Some((c, d)) = a.imag.zip(b.imag) {
            let (real, imag) = (self.b.compare(Cmp::Eq, a.value, b.value), self.b.compare(Cmp::Eq, c, d));
            let equal = self.b.op(Op::And, [real, imag]);
            return if op == ComparisonOp::Equal { equal } else { self.b.op(Op::Not, [equal]) };
        }
        let (a, b) = (a.value, b.value);
        if both.is_bool() {
            return self.compare_bits(op, a, b);
        }
        let is_unsigned = !computed(both).is_float() && !is_signed(both);
        let (less, less_equal) = if is_unsigned { (Cmp::LtU, Cmp::LeU) } else { (Cmp::Lt, Cmp::Le) };
        match op {
            ComparisonOp::Equal => self.b.compare(Cmp::Eq, a, b),
            ComparisonOp::NotEqual => self.b.compare(Cmp::Ne, a, b),
            ComparisonOp::Less => self.b.compare(less, a, b),
            ComparisonOp::LessEqual => self.b.compare(less_equal, a, b),
            ComparisonOp::Greater => self.b.compare(less, b, a),
            ComparisonOp::GreaterEqual => self.b.compare(less_equal, b, a),
        }
    }

    /// Compares predicates: false comes before true.
    fn compare_bits(&mut self, op: ComparisonOp, a: Val, b: Val) -> Val {
        match op {
            ComparisonOp::NotEqual => self.b.op(Op::Xor, [a, b]),
            ComparisonOp::Equal => {
                let differ = self.b.op(Op::Xor, [a, b]);
                self.b.op(Op::Not, [differ])
            }
            ComparisonOp::Greater => self.b.op(Op::AndNot, [a, b]),
            ComparisonOp::Less => self.b.op(Op::AndNot, [b, a]),
            ComparisonOp::GreaterEqual => {
                let less = self.b.op(Op::AndNot, [b, a]);
                self.b.op(Op::Not, [less])
            }
            ComparisonOp::LessEqual => {
                let greater = self.b.op(Op::AndNot, [a, b]);
                self.b.op(Op::Not, [greater])
            }
        }
    }

    /// Compares an unsigned integer with a signed one, which no type holds both of.
    fn compare_long(&mut self, op: ComparisonOp, a: Val, b: Element) -> Val {
        let b = self.convert(b, DType::S64).value;
        let zero = self.number(Elem::I64, 0);
        let is_negative = self.b.compare(Cmp::Lt, b, zero);
        let (cmp, is_inverse) = match op {
            ComparisonOp::Equal => (Cmp::Eq, false),
            ComparisonOp::NotEqual => (Cmp::Eq, true),
            ComparisonOp::Less => (Cmp::LtU, false),
            ComparisonOp::LessEqual => (Cmp::LeU, false),
            ComparisonOp::Greater => (Cmp::LeU, true),
            ComparisonOp::GreaterEqual => (Cmp::LtU, true),
        };
        let holds = self.b.compare(cmp, a, b);
        let holds = self.b.op(Op::AndNot, [holds, is_negative]);
        if is_inverse { self.b.op(Op::Not, [holds]) } else { holds }
    }
}

/// The comparison of `b` with `a` that says what this one says of `a` and `b`.
fn swapped(op: ComparisonOp) -> ComparisonOp {
    match op {
        ComparisonOp::Equal | ComparisonOp::NotEqual => op,
        ComparisonOp::Less => ComparisonOp::Greater,
        ComparisonOp::LessEqual => ComparisonOp::GreaterEqual,
        ComparisonOp::Greater => ComparisonOp::Less,
        ComparisonOp::GreaterEqual => ComparisonOp::LessEqual,
    }
}
