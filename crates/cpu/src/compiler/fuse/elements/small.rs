//! The floats below 32 bits: their elements as f32 values, which hold all of them, and back.

use defn_core::DType;

use super::Elements;
use crate::compiler::ir::{Cmp, Conv, Elem, Op, Val};

/// A float of 8 bits: a sign, an exponent and a mantissa.
struct Format {
    mantissa_bits: u8,
    bias: i64,
    /// The code of infinity, or of the greatest number where there is none: what is larger becomes that.
    overflow: i64,
    nan: i64,
}

const E5M2: Format = Format { mantissa_bits: 2, bias: 15, overflow: 0x7C, nan: 0x7E };
const E4M3FN: Format = Format { mantissa_bits: 3, bias: 7, overflow: 0x7E, nan: 0x7F };

impl Elements {
    /// The f32 value of the bits of a small float.
    pub(super) fn decode(&mut self, raw: Val, dtype: DType) -> Val {
        let value = if dtype == DType::F16 {
            self.b.convert(Conv::OfHalf, Elem::F32, raw)
        } else if dtype == DType::BF16 {
            let wide = self.b.convert(Conv::ZeroExtend, Elem::I32, raw);
            let bits = self.b.op(Op::ShlBy(16), [wide]);
            self.b.convert(Conv::Bitcast, Elem::F32, bits)
        } else if dtype == DType::F8E5M2 {
            // It is the upper half of a float of 16 bits.
            let wide = self.b.convert(Conv::ZeroExtend, Elem::I16, raw);
            let half = self.b.op(Op::ShlBy(8), [wide]);
            self.b.convert(Conv::OfHalf, Elem::F32, half)
        } else {
            self.decode_e4m3(raw)
        };
        self.encoded.insert((value, dtype), raw);
        value
    }

    /// The bits of the small float that is nearest to an f32 value, ties to even.
    pub(super) fn encode(&mut self, x: Val, dtype: DType) -> Val {
        if let Some(&raw) = self.encoded.get(&(x, dtype)) {
            return raw;
        }
        if dtype == DType::F16 {
            self.b.convert(Conv::ToHalf, Elem::I16, x)
        } else if dtype == DType::BF16 {
            let bits = self.nearest_bf16(x);
            self.b.convert(Conv::Truncate, Elem::I16, bits)
        } else {
            self.encode_byte(x, if dtype == DType::F8E5M2 { &E5M2 } else { &E4M3FN })
        }
    }

    /// The bits of the nearest bf16; NaN stays NaN.
    fn nearest_bf16(&mut self, x: Val) -> Val {
        let bits = self.b.to_bits(x);
        let [one, below_half, quiet] = [1, 0x7FFF, 0x40_0000].map(|bits| self.number(Elem::I32, bits));
        let last = self.b.op(Op::ShrBy(16), [bits]);
        let last = self.b.op(Op::And, [last, one]);
        let raised = self.b.add(bits, below_half);
        let raised = self.b.add(raised, last);
        let nan = self.b.op(Op::Or, [bits, quiet]);
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        let rounded = self.b.select(is_nan, nan, raised);
        self.b.op(Op::ShrBy(16), [rounded])
    }

    fn decode_e4m3(&mut self, raw: Val) -> Val {
        let Format { mantissa_bits, bias, nan, .. } = E4M3FN;
        let wide = self.b.convert(Conv::ZeroExtend, Elem::I32, raw);
        let [rest, sign] = [0x7F, 0x80].map(|bits| self.number(Elem::I32, bits));
        let code = self.b.op(Op::And, [wide, rest]);
        // Exponent and mantissa come to their places, and the exponent to the other bias.
        let shifted = self.b.op(Op::ShlBy(23 - mantissa_bits), [code]);
        let more = self.number(Elem::I32, (127 - bias) << 23);
        let normal = self.b.add(shifted, more);
        let normal = self.b.convert(Conv::Bitcast, Elem::F32, normal);
        // Below the normal numbers codes count units.
        let count = self.b.convert(Conv::FloatOfS, Elem::F32, code);
        let unit = self.b.f32(2f32.powi((1 - bias) as i32 - i32::from(mantissa_bits)));
        let subnormal = self.b.mul(count, unit);
        let least = self.number(Elem::I32, 1 << mantissa_bits);
        let is_subnormal = self.b.compare(Cmp::Lt, code, least);
        let value = self.b.select(is_subnormal, subnormal, normal);
        let nan = self.number(Elem::I32, nan);
        let is_nan = self.b.compare(Cmp::Eq, code, nan);
        let no_number = self.b.f32(f32::NAN);
        let value = self.b.select(is_nan, no_number, value);
        let sign = self.b.op(Op::And, [wide, sign]);
        let sign = self.b.op(Op::ShlBy(24), [sign]);
        let bits = self.b.to_bits(value);
        let bits = self.b.op(Op::Or, [bits, sign]);
        self.b.convert(Conv::Bitcast, Elem::F32, bits)
    }

    fn encode_byte(&mut self, x: Val, format: &Format) -> Val {
        let &Format { mantissa_bits, bias, overflow, nan } = format;
        let lost = 23 - mantissa_bits;
        let bits = self.b.to_bits(x);
        let rest = self.number(Elem::I32, 0x7FFF_FFFF);
        let magnitude = self.b.op(Op::And, [bits, rest]);
        // Codes of one sign increase without gaps, so that a carry into the exponent is right.
        let one = self.number(Elem::I32, 1);
        let last = self.b.op(Op::ShrBy(lost), [magnitude]);
        let last = self.b.op(Op::And, [last, one]);
        let more = self.number(Elem::I32, (1 << (lost - 1)) - 1 - ((127 - bias) << 23));
        let normal = self.b.add(magnitude, more);
        let normal = self.b.add(normal, last);
        let normal = self.b.op(Op::ShrBy(lost), [normal]);
        // A number whose last bit counts units of subnormal codes rounds what is added to it to such units.
        let least = 1 - bias + 127;
        let units = ((least + i64::from(lost)) << 23) as u64;
        let (units_float, units) = (self.b.bits(Elem::F32, units), self.b.bits(Elem::I32, units));
        let absolute = self.b.convert(Conv::Bitcast, Elem::F32, magnitude);
        let sum = self.b.add(absolute, units_float);
        let sum = self.b.to_bits(sum);
        let subnormal = self.b.sub(sum, units);
        let least = self.number(Elem::I32, least << 23);
        let is_subnormal = self.b.compare(Cmp::Lt, magnitude, least);
        let code = self.b.select(is_subnormal, subnormal, normal);
        let overflow = self.number(Elem::I32, overflow);
        let code = self.b.op(Op::MinU, [code, overflow]);
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        let nan = self.number(Elem::I32, nan);
        let code = self.b.select(is_nan, nan, code);
        let sign = self.b.op(Op::ShrBy(24), [bits]);
        let flag = self.number(Elem::I32, 0x80);
        let sign = self.b.op(Op::And, [sign, flag]);
        let code = self.b.op(Op::Or, [code, sign]);
        self.b.convert(Conv::Truncate, Elem::I8, code)
    }
}
