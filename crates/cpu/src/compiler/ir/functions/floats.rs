//! Building blocks of the functions: ops of floats, polynomials, and the decomposition of numbers.

use super::super::{Builder, Cmp, Conv, Elem, Op, Val};
use super::tables::Precision;

/// A value, or a number that becomes a constant.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Value(Val),
    Number(f64),
}

impl From<Val> for Operand {
    fn from(value: Val) -> Operand {
        Operand::Value(value)
    }
}

impl From<f64> for Operand {
    fn from(number: f64) -> Operand {
        Operand::Number(number)
    }
}

impl From<f32> for Operand {
    fn from(number: f32) -> Operand {
        Operand::Number(number.into())
    }
}

/// An integer as a float, and in the low bits of an integer.
#[derive(Clone, Copy)]
pub(super) struct Exponent {
    pub(super) number: Val,
    pub(super) bits: Val,
}

/// Makes the ops of a function of floats of one type.
pub(super) struct Floats<'a> {
    pub(super) ir: &'a mut Builder,
    pub(super) elem: Elem,
    /// How accurate results are.
    pub(super) precision: &'static Precision,
}

impl Floats<'_> {
    // Values.

    pub(super) fn value(&mut self, operand: impl Into<Operand>) -> Val {
        match operand.into() {
            Operand::Value(value) => value,
            Operand::Number(number) => self.ir.float(self.elem, number),
        }
    }

    /// An integer of the width of the floats.
    pub(super) fn integer(&mut self, bits: u64) -> Val {
        self.ir.bits(self.elem.integer(), bits)
    }

    // Types.

    /// The same for f64.
    pub(super) fn wide(&mut self) -> Floats<'_> {
        Floats { ir: self.ir, elem: Elem::F64, precision: self.precision }
    }

    /// An f32 as f64.
    pub(super) fn widened(&mut self, x: Val) -> Val {
        self.ir.convert(Conv::Float, Elem::F64, x)
    }

    /// An f64 as the nearest f32.
    pub(super) fn narrowed(&mut self, x: Val) -> Val {
        self.ir.convert(Conv::Float, Elem::F32, x)
    }

    // Arithmetic.

    fn op<const N: usize>(&mut self, op: Op, operands: [Operand; N]) -> Val {
        let operands = operands.map(|operand| self.value(operand));
        self.ir.op(op, operands)
    }

    pub(super) fn add(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.op(Op::Add, [a.into(), b.into()])
    }

    pub(super) fn sub(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.op(Op::Sub, [a.into(), b.into()])
    }

    pub(super) fn mul(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.op(Op::Mul, [a.into(), b.into()])
    }

    pub(super) fn div(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.op(Op::Div, [a.into(), b.into()])
    }

    /// `a * b + c`, rounded once.
    pub(super) fn fma(&mut self, a: impl Into<Operand>, b: impl Into<Operand>, c: impl Into<Operand>) -> Val {
        self.op(Op::Fma, [a.into(), b.into(), c.into()])
    }

    /// `c - a * b`, rounded once.
    pub(super) fn fnma(
        &mut self,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) -> Val {
        self.op(Op::Fnma, [a.into(), b.into(), c.into()])
    }

    pub(super) fn sqrt(&mut self, x: Val) -> Val {
        self.ir.op(Op::Sqrt, [x])
    }

    /// The polynomial with these coefficients, lowest first, by Horner's scheme.
    pub(super) fn poly<C: Copy + Into<Operand>>(&mut self, x: Val, coefficients: &[C]) -> Val {
        let mut terms = coefficients.iter().rev();
        let highest = *terms.next().expect("a polynomial has coefficients");
        let highest = self.value(highest);
        terms.fold(highest, |sum, &coefficient| self.fma(sum, x, coefficient))
    }

    // Choices.

    /// `x`, but no more than a number. NaN stays NaN.
    pub(super) fn at_most(&mut self, number: impl Into<Operand>, x: Val) -> Val {
        self.op(Op::Min, [number.into(), x.into()])
    }

    /// `x`, but no less than a number. NaN stays NaN.
    pub(super) fn at_least(&mut self, number: impl Into<Operand>, x: Val) -> Val {
        self.op(Op::Max, [number.into(), x.into()])
    }

    fn compare(&mut self, cmp: Cmp, a: Operand, b: Operand) -> Val {
        let (a, b) = (self.value(a), self.value(b));
        self.ir.compare(cmp, a, b)
    }

    pub(super) fn lt(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.compare(Cmp::Lt, a.into(), b.into())
    }

    pub(super) fn le(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.compare(Cmp::Le, a.into(), b.into())
    }

    pub(super) fn eq(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        self.compare(Cmp::Eq, a.into(), b.into())
    }

    pub(super) fn is_nan(&mut self, x: Val) -> Val {
        self.ir.compare(Cmp::Ne, x, x)
    }

    /// Whether a number that is not negative is neither 0 nor infinite nor NaN; of any number, whether it is
    /// above 0 besides.
    pub(super) fn is_positive_finite(&mut self, x: Val) -> Val {
        // 0, or NaN.
        let zero = self.sub(x, x);
        self.lt(zero, x)
    }

    pub(super) fn both(&mut self, a: Val, b: Val) -> Val {
        self.ir.op(Op::And, [a, b])
    }

    pub(super) fn either(&mut self, a: Val, b: Val) -> Val {
        self.ir.op(Op::Or, [a, b])
    }

    pub(super) fn not(&mut self, a: Val) -> Val {
        self.ir.op(Op::Not, [a])
    }

    /// `a` where the predicate holds, else `b`.
    pub(super) fn select(&mut self, predicate: Val, a: impl Into<Operand>, b: impl Into<Operand>) -> Val {
        let (a, b) = (self.value(a), self.value(b));
        self.ir.select(predicate, a, b)
    }

    // Bits.

    /// The bits of one, whose exponent is 0.
    pub(super) fn one_bits(&self) -> u64 {
        if self.elem == Elem::F32 { 1f32.to_bits().into() } else { 1f64.to_bits() }
    }

    /// The bits of a mantissa.
    pub(super) fn mantissa_width(&self) -> u8 {
        if self.elem == Elem::F32 { 23 } else { 52 }
    }

    /// The float that has only its sign bit set.
    fn sign_bit(&mut self) -> Val {
        self.value(-0.0)
    }

    /// `|x|`.
    pub(super) fn abs(&mut self, x: Val) -> Val {
        let sign = self.sign_bit();
        self.ir.op(Op::AndNot, [x, sign])
    }

    pub(super) fn neg(&mut self, x: Val) -> Val {
        let sign = self.sign_bit();
        self.ir.op(Op::Xor, [x, sign])
    }

    /// `x` with its sign flipped if `sign` is negative.
    pub(super) fn flipped(&mut self, x: Val, sign: Val) -> Val {
        let bit = self.sign_bit();
        self.ir.op(Op::Flip, [x, sign, bit])
    }

    /// The bits of a float.
    pub(super) fn bits(&mut self, x: Val) -> Val {
        self.ir.to_bits(x)
    }

    /// The float with these bits.
    pub(super) fn of_bits(&mut self, bits: Val) -> Val {
        self.ir.convert(Conv::Bitcast, self.elem, bits)
    }

    pub(super) fn shl(&mut self, bits: Val, by: u8) -> Val {
        self.ir.op(Op::ShlBy(by), [bits])
    }

    pub(super) fn shr(&mut self, bits: Val, by: u8) -> Val {
        self.ir.op(Op::ShrBy(by), [bits])
    }

    /// The sum of integers.
    pub(super) fn plus(&mut self, a: Val, number: u64) -> Val {
        let number = self.integer(number);
        self.ir.add(a, number)
    }

    /// The bits of `a` that the mask has.
    pub(super) fn masked(&mut self, a: Val, mask: u64) -> Val {
        let mask = self.integer(mask);
        self.ir.op(Op::And, [a, mask])
    }

    /// The bits of a mantissa with the exponent 0, as a number between 1 and 2.
    pub(super) fn mantissa(&mut self, bits: Val) -> Val {
        let mantissa = self.masked(bits, (1 << self.mantissa_width()) - 1);
        let one = self.integer(self.one_bits());
        let mantissa = self.ir.op(Op::Or, [mantissa, one]);
        self.of_bits(mantissa)
    }

    /// Whether any of these bits is set.
    pub(super) fn has_bits(&mut self, a: Val, mask: u64) -> Val {
        let mask = self.integer(mask);
        self.ir.test(a, mask)
    }

    /// An f64 without its low 27 bits: products of two such numbers are exact.
    pub(super) fn head(&mut self, x: Val) -> Val {
        let mask = self.ir.bits(self.elem, u64::MAX << 27);
        self.ir.op(Op::And, [x, mask])
    }

    /// What rounds numbers to integers, ties to even, when it is added; the integer is then in the low bits.
    /// Numbers must be below 2^22 in f32, and 2^51 in f64.
    fn round(&self) -> f64 {
        if self.elem == Elem::F32 { 12_582_912.0 } else { 6_755_399_441_055_744.0 }
    }

    /// The integer nearest to `x * scale`.
    pub(super) fn exponent(&mut self, x: Val, scale: impl Into<Operand>) -> Exponent {
        let raised = self.fma(x, scale, self.round());
        let number = self.sub(raised, self.round());
        Exponent { number, bits: self.bits(raised) }
    }

    /// `2^(n + more)` for `n` in the low bits; it must be a normal number.
    pub(super) fn power_of_two(&mut self, n: Val, more: i64) -> Val {
        let width = self.mantissa_width();
        let bits = self.shl(n, width);
        let bits = self.plus(bits, self.one_bits().wrapping_add((more << width) as u64));
        self.of_bits(bits)
    }

    // Control flow.

    /// `x` where no lane has a special case; else the result of `rare`, which may only change lanes with one.
    pub(super) fn unless_any(&mut self, special: Val, x: Val, rare: impl FnOnce(&mut Self) -> Val) -> Val {
        let any = if self.ir.ty(special).is_vector { self.ir.any(special) } else { special };
        self.ir.begin_if(any);
        let patched = rare(self);
        self.ir.begin_else();
        self.ir.end_if(&[(patched, x)])[0]
    }
}
