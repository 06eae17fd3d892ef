//! Ops of integers that machines lack, by those that they have.

use super::super::emit::Target;
use super::super::emit::mir::{Class, Cmp, Constant, Conv, Elem, Op, Reg};
use super::super::ir;
use super::{Lowering, Result};

/// Numbers that round what is added to them to integers, which are in the low bits of the sums then.
const INTEGERS32: u64 = 0x4b40_0000;
const INTEGERS64: u64 = 0x4338_0000_0000_0000;

/// The bytes of the widest elements that an op on integers takes on a machine, with what it is expanded to.
pub(super) fn widest(op: ir::Op, elem: Elem, target: &dyn Target) -> usize {
    if let ir::Op::DivS | ir::Op::DivU | ir::Op::RemS | ir::Op::RemU = op {
        return if elem.bytes() < 4 { 4 } else { 8 };
    }
    let shift = if op == ir::Op::Shl {
        Op::Shl
    } else if op == ir::Op::Shr {
        Op::Shr
    } else if op == ir::Op::Sar {
        Op::Sar
    } else {
        return elem.bytes();
    };
    if target.has(shift, elem) { elem.bytes() } else { wider(shift, elem, target).bytes() }
}

/// The narrowest type above one that a machine shifts.
fn wider(shift: Op, elem: Elem, target: &dyn Target) -> Elem {
    if elem == Elem::I8 && target.has(shift, Elem::I16) { Elem::I16 } else { Elem::I32 }
}

/// The bits of a float's reciprocal, rounded away from zero, of an integer that the float holds exactly.
fn reciprocal(of: i128, float: Elem) -> u64 {
    if float == Elem::F32 {
        let (x, of) = (1.0 / of as f32, of as f32);
        return (x.to_bits() + u32::from(x.mul_add(of, -1.0) < 0.0)).into();
    }
    let (x, of) = (1.0 / of as f64, of as f64);
    x.to_bits() + u64::from(x.mul_add(of, -1.0) < 0.0)
}

impl Lowering<'_> {
    fn splat_of(&mut self, elem: Elem, bits: u64) -> Reg {
        self.constant(Constant::Splat(elem, bits & u64::MAX >> (64 - 8 * elem.bytes())))
    }

    fn compare_lanes(&mut self, cmp: Cmp, elem: Elem, lanes: u8, a: Reg, b: Reg) -> Reg {
        let mask = self.emit(Op::Compare(cmp), elem, lanes, Class::Mask, &[a, b]);
        self.mask_elems.insert(mask, elem.integer());
        mask
    }

    /// The remainder by the quotient: the dividend where the divisor is 0, since the quotient times that is 0.
    pub(super) fn remainder(
        &mut self,
        is_signed: bool,
        elem: Elem,
        lanes: u8,
        src: &[Reg],
        divisor: Option<u64>,
    ) -> Result<Reg> {
        let quotient = self.quotient(is_signed, elem, lanes, src, divisor)?;
        let product = self.machine(Op::Mul, elem, lanes, &[quotient, src[1]])?;
        self.machine(Op::Sub, elem, lanes, &[src[0], product])
    }

    /// The quotient towards zero; all bits are set where the divisor is 0, unless it is known not to be.
    pub(super) fn quotient(
        &mut self,
        is_signed: bool,
        elem: Elem,
        lanes: u8,
        src: &[Reg],
        divisor: Option<u64>,
    ) -> Result<Reg> {
        let unused = 64 - 8 * elem.bytes() as u32;
        let extended = |bits: u64| {
            let bits = bits << unused;
            if is_signed { i128::from(bits as i64 >> unused) } else { i128::from(bits >> unused) }
        };
        let known = divisor.map(extended).filter(|divisor| *divisor != 0);
        let quotient = match elem.bytes() {
            8 => self.long_quotient(is_signed, lanes, src, known)?,
            4 => self.quotient_by_floats(is_signed, elem, Elem::F64, lanes, src, known)?,
            _ => {
                let conv = if is_signed { Conv::SignExtend } else { Conv::ZeroExtend };
                let a = self.convert(conv, Elem::I32, elem, lanes, src[0])?;
                let b = match known {
                    Some(_) => Reg::NONE,
                    None => self.convert(conv, Elem::I32, elem, lanes, src[1])?,
                };
                // As integers of 32 bits they are signed either way.
                let quotient = self.quotient_by_floats(true, Elem::I32, Elem::F32, lanes, &[a, b], known)?;
                self.convert(Conv::Truncate, elem, Elem::I32, lanes, quotient)?
            }
        };
        if known.is_some() {
            return Ok(quotient);
        }
        let (zero, all) = (self.splat_of(elem, 0), self.splat_of(elem, u64::MAX));
        let is_zero = self.compare_lanes(Cmp::Eq, elem, lanes, src[1], zero);
        self.machine(Op::Select, elem, lanes, &[is_zero, all, quotient])
    }

    /// The quotient of integers by that of floats, whose mantissa has more bits than the integers.
    ///
    /// Let `a / b` lie between the integers `n` and `n + 1`, in magnitude, and not be `n + 1`. Then it is at least
    /// `1 / |b|` below, which relative to it is at least `1 / |a|`, and that is more than half a unit of the float's
    /// last place. So the rounded quotient is below `n + 1`, too, and cut to `n`. The quotient of the least integer by
    /// -1 is what wraps: its low bits are those of the least integer.
    ///
    /// A divisor that is known is multiplied by: its reciprocal rounded away from zero gives no less than `n` where the
    /// quotient is `n`, and at most two units of the last place too much, which is below `n + 1` as before.
    fn quotient_by_floats(
        &mut self,
        is_signed: bool,
        elem: Elem,
        float: Elem,
        lanes: u8,
        src: &[Reg],
        known: Option<i128>,
    ) -> Result<Reg> {
        let conv = if is_signed { Conv::FloatOfS } else { Conv::FloatOfU };
        let a = self.convert(conv, float, elem, lanes, src[0])?;
        let quotient = match known {
            Some(divisor) => {
                let by = self.splat_of(float, reciprocal(divisor, float));
                self.machine(Op::Mul, float, lanes, &[a, by])?
            }
            None => {
                let b = self.convert(conv, float, elem, lanes, src[1])?;
                self.machine(Op::Div, float, lanes, &[a, b])?
            }
        };
        let whole = self.machine(Op::Trunc, float, lanes, &[quotient])?;
        let integers = self.splat_of(float, if float == Elem::F32 { INTEGERS32 } else { INTEGERS64 });
        let sum = self.machine(Op::Add, float, lanes, &[whole, integers])?;
        if float == Elem::F32 { Ok(sum) } else { self.convert(Conv::Truncate, elem, Elem::I64, lanes, sum) }
    }

    /// The quotient of integers of 64 bits, whose magnitudes are divided.
    fn long_quotient(&mut self, is_signed: bool, lanes: u8, src: &[Reg], known: Option<i128>) -> Result<Reg> {
        let elem = Elem::I64;
        let known_magnitude = known.map(|divisor| divisor.unsigned_abs() as u64);
        if !is_signed {
            return self.long_quotient_of_magnitudes(lanes, src[0], src[1], known_magnitude);
        }
        let magnitude = |this: &mut Self, of: Reg| {
            let sign = this.machine(Op::SarBy(63), elem, lanes, &[of])?;
            let flipped = this.machine(Op::Xor, elem, lanes, &[of, sign])?;
            Ok((this.machine(Op::Sub, elem, lanes, &[flipped, sign])?, sign))
        };
        let (a, sign) = magnitude(self, src[0])?;
        let (b, other_sign) = match known {
            Some(divisor) => {
                let sign = (divisor < 0).then(|| self.splat_of(elem, u64::MAX));
                (self.splat_of(elem, divisor.unsigned_abs() as u64), sign)
            }
            None => magnitude(self, src[1]).map(|(b, sign)| (b, Some(sign)))?,
        };
        let quotient = self.long_quotient_of_magnitudes(lanes, a, b, known_magnitude)?;
        let sign = match other_sign {
            Some(other) => self.machine(Op::Xor, elem, lanes, &[sign, other])?,
            None => sign,
        };
        let flipped = self.machine(Op::Xor, elem, lanes, &[quotient, sign])?;
        self.machine(Op::Sub, elem, lanes, &[flipped, sign])
    }

    /// The quotient of unsigned integers of 64 bits, by two quotients of doubles, or products with the reciprocal of a
    /// divisor that is known.
    ///
    /// Let `b` be below 2^63. The first quotient of doubles, `a / b` after four roundings, is off by less than
    /// `2^64 / b * 4.01 * 2^-53`; as an integer `q`, the nearest, by half more. So `r = a - q b` is below
    /// `b / 2 + 8300` in magnitude, which is below 2^63: it is exact as a signed integer, although products wrap. Then
    /// `r / b` is below 8301, so that its quotient of doubles is off by less than 2^-37. With the nearest integer to
    /// that, what is left is at most `(1/2 + 2^-37) b` in magnitude: where it is negative the quotient is one too large.
    ///
    /// Where `b` is at least 2^63 the quotient is 1 or 0.
    fn long_quotient_of_magnitudes(&mut self, lanes: u8, a: Reg, b: Reg, known: Option<u64>) -> Result<Reg> {
        let (elem, float) = (Elem::I64, Elem::F64);
        let of = |this: &mut Self, conv, integer| this.convert(conv, float, elem, lanes, integer);
        let (op, by) = match known {
            Some(divisor) => (Op::Mul, self.splat_of(float, (1.0 / divisor as f64).to_bits())),
            None => (Op::Div, of(self, Conv::FloatOfU, b)?),
        };
        let dividend = of(self, Conv::FloatOfU, a)?;
        let first = self.machine(op, float, lanes, &[dividend, by])?;
        let first = self.machine(Op::Nearest, float, lanes, &[first])?;
        let first = self.convert(Conv::ToU, elem, float, lanes, first)?;
        let product = self.machine(Op::Mul, elem, lanes, &[first, b])?;
        let rest = self.machine(Op::Sub, elem, lanes, &[a, product])?;
        let second = of(self, Conv::FloatOfS, rest)?;
        let second = self.machine(op, float, lanes, &[second, by])?;
        let integers = self.splat_of(float, INTEGERS64);
        let second = self.machine(Op::Add, float, lanes, &[second, integers])?;
        let integers = self.splat_of(elem, INTEGERS64);
        let second = self.machine(Op::Sub, elem, lanes, &[second, integers])?;
        let quotient = self.machine(Op::Add, elem, lanes, &[first, second])?;
        let product = self.machine(Op::Mul, elem, lanes, &[second, b])?;
        let rest = self.machine(Op::Sub, elem, lanes, &[rest, product])?;
        let (zero, one) = (self.splat_of(elem, 0), self.splat_of(elem, 1));
        let less = self.machine(Op::Sub, elem, lanes, &[quotient, one])?;
        let is_negative = self.compare_lanes(Cmp::Lt, elem, lanes, rest, zero);
        let quotient = self.machine(Op::Select, elem, lanes, &[is_negative, less, quotient])?;
        if known.is_some_and(|divisor| divisor < 1 << 63) {
            return Ok(quotient);
        }
        let is_in = self.compare_lanes(Cmp::LeU, elem, lanes, b, a);
        let once = self.machine(Op::Select, elem, lanes, &[is_in, one, zero])?;
        let is_large = self.compare_lanes(Cmp::Lt, elem, lanes, b, zero);
        self.machine(Op::Select, elem, lanes, &[is_large, once, quotient])
    }

    /// A shift by a vector as one of wider elements, in which what is shifted out is beyond the result.
    pub(super) fn wide_shift(&mut self, op: Op, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let wide = wider(op, elem, self.target);
        let conv = if op == Op::Sar { Conv::SignExtend } else { Conv::ZeroExtend };
        let a = self.convert(conv, wide, elem, lanes, src[0])?;
        let by = self.convert(Conv::ZeroExtend, wide, elem, lanes, src[1])?;
        let shifted = self.machine(op, wide, lanes, &[a, by])?;
        self.convert(Conv::Truncate, elem, wide, lanes, shifted)
    }

    /// The low bytes of products, by products of pairs of bytes: of the lower ones, and of the upper ones.
    pub(super) fn byte_product(&mut self, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let (elem, lanes) = (Elem::I16, lanes.div_ceil(2));
        let (low, high) = (self.splat_of(elem, 0x00ff), self.splat_of(elem, 0xff00));
        let even = self.machine(Op::Mul, elem, lanes, src)?;
        let even = self.machine(Op::And, elem, lanes, &[even, low])?;
        let a = self.machine(Op::And, elem, lanes, &[src[0], high])?;
        let b = self.machine(Op::ShrBy(8), elem, lanes, &[src[1]])?;
        let odd = self.machine(Op::Mul, elem, lanes, &[a, b])?;
        self.machine(Op::Or, elem, lanes, &[even, odd])
    }

    /// How many bits are set: sums of pairs, of fours, of bytes, then of all bytes.
    pub(super) fn pop_count(&mut self, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let [pairs, fours, bytes] =
            [0x55, 0x33, 0x0f].map(|byte| self.splat_of(elem, u64::from_ne_bytes([byte; 8])));
        let half = self.machine(Op::ShrBy(1), elem, lanes, src)?;
        let half = self.machine(Op::And, elem, lanes, &[half, pairs])?;
        let sum = self.machine(Op::Sub, elem, lanes, &[src[0], half])?;
        let high = self.machine(Op::ShrBy(2), elem, lanes, &[sum])?;
        let high = self.machine(Op::And, elem, lanes, &[high, fours])?;
        let low = self.machine(Op::And, elem, lanes, &[sum, fours])?;
        let sum = self.machine(Op::Add, elem, lanes, &[low, high])?;
        let high = self.machine(Op::ShrBy(4), elem, lanes, &[sum])?;
        let sum = self.machine(Op::Add, elem, lanes, &[sum, high])?;
        let mut sum = self.machine(Op::And, elem, lanes, &[sum, bytes])?;
        let mut by = 8;
        while by < 8 * elem.bytes() as u8 {
            let high = self.machine(Op::ShrBy(by), elem, lanes, &[sum])?;
            sum = self.machine(Op::Add, elem, lanes, &[sum, high])?;
            by *= 2;
        }
        if elem == Elem::I8 {
            return Ok(sum);
        }
        let low = self.splat_of(elem, 0x7f);
        self.machine(Op::And, elem, lanes, &[sum, low])
    }

    /// How many bits are not set above the first: those that are not, once all below it are.
    pub(super) fn leading_zeros(&mut self, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let mut filled = src[0];
        let mut by = 1;
        while by < 8 * elem.bytes() as u8 {
            let low = self.machine(Op::ShrBy(by), elem, lanes, &[filled])?;
            filled = self.machine(Op::Or, elem, lanes, &[filled, low])?;
            by *= 2;
        }
        let above = self.machine(Op::Not, elem, lanes, &[filled])?;
        self.machine(Op::PopCount, elem, lanes, &[above])
    }
}
