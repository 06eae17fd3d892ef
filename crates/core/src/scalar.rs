//! Numbers as users write them, and scalars: one element of a given type, exact to the bit.

use std::fmt;
use std::hash::{Hash, Hasher};

use half::{bf16, f16};
use num_complex::Complex;

use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};

/// A plain number without an element type.
///
/// ```
/// use defn_core::{DType, Number};
/// assert_eq!(Number::from(2).dtype(), DType::S32);
/// assert_eq!(Number::from(0.5).to_f64(), 0.5);
/// assert!(Number::complex(0.0, 1.0).is_true());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A boolean.
    Bool(bool),
    /// An integer; large enough for every integer element type.
    Int(i128),
    /// An integer beyond the range of i128, as the nearest float. It fits no integer type.
    Huge(f64),
    /// A float in full host precision.
    Float(f64),
    /// A complex number in full host precision.
    Complex(Complex<f64>),
}

impl Number {
    /// A complex number from its parts.
    pub const fn complex(re: f64, im: f64) -> Number {
        Number::Complex(Complex::new(re, im))
    }

    /// The type of a tensor made from this number alone: bool, s32, f32 or c64.
    pub const fn dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Int(_) | Number::Huge(_) => DType::S32,
            Number::Float(_) => DType::F32,
            Number::Complex(_) => DType::C64,
        }
    }

    /// The number as a float, without its imaginary part.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Int(value) => value as f64,
            Number::Huge(value) | Number::Float(value) => value,
            Number::Complex(value) => value.re,
        }
    }

    /// Whether the number is true: everything but zero is, including NaN.
    pub fn is_true(self) -> bool {
        match self {
            Number::Bool(value) => value,
            Number::Int(value) => value != 0,
            Number::Huge(value) | Number::Float(value) => value != 0.0,
            Number::Complex(value) => value.re != 0.0 || value.im != 0.0,
        }
    }
}

macro_rules! number_from {
    ($($ty:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$ty> for Number {
            fn from(value: $ty) -> Number { Number::$variant(value as $wide) }
        }
    )*};
}
number_from!(i32 => Int as i128, i64 => Int as i128, u32 => Int as i128, u64 => Int as i128,
             usize => Int as i128, f32 => Float as f64, f64 => Float as f64);

impl From<bool> for Number {
    fn from(value: bool) -> Number {
        Number::Bool(value)
    }
}

impl From<Complex<f64>> for Number {
    fn from(value: Complex<f64>) -> Number {
        Number::Complex(value)
    }
}

/// One element: a type and a value that the type represents exactly.
///
/// Equality and hash compare bits: `0.0` and `-0.0` differ, and NaN equals itself.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    dtype: DType,
    value: Number,
}

impl Scalar {
    /// Converts a number to an element. Integers wrap; floats round to the nearest, ties to even; for bool
    /// everything but zero is true, including NaN.
    ///
    /// # Errors
    /// A float for an integer type, or a complex number for a type that is not complex.
    pub fn new(dtype: DType, number: impl Into<Number>) -> Result<Scalar> {
        let number = number.into();
        let value = match (dtype.kind(), number) {
            (Kind::Bool, number) => Number::Bool(number.is_true()),
            (_, Number::Bool(value)) => return Scalar::new(dtype, i32::from(value)),
            (Kind::Unsigned | Kind::Signed, Number::Int(value)) => Number::Int(wrap(dtype, value)),
            (Kind::Unsigned | Kind::Signed, Number::Huge(_)) => {
                return Err(ErrorKind::IntegerRange { number, dtype }.into());
            }
            (Kind::Unsigned | Kind::Signed, Number::Float(_) | Number::Complex(_))
            | (Kind::Float, Number::Complex(_)) => {
                return Err(ErrorKind::NumberKind { number, dtype }.into());
            }
            (Kind::Float, Number::Int(value)) => Number::Float(round_int(dtype, value)),
            (Kind::Float, Number::Huge(value) | Number::Float(value)) => {
                Number::Float(round_float(dtype, value))
            }
            (Kind::Complex, number) => {
                let part = dtype.to_real();
                let (re, im) = match number {
                    Number::Bool(_) => unreachable!("a truth value was converted before"),
                    Number::Int(value) => (round_int(part, value), 0.0),
                    Number::Huge(value) | Number::Float(value) => (value, 0.0),
                    Number::Complex(value) => (value.re, value.im),
                };
                Number::complex(round_float(part, re), round_float(part, im))
            }
        };
        Ok(Scalar { dtype, value })
    }

    /// Zero in any type.
    pub fn zero(dtype: DType) -> Scalar {
        Scalar::small(dtype, 0)
    }

    /// One in any type.
    pub fn one(dtype: DType) -> Scalar {
        Scalar::small(dtype, 1)
    }

    fn small(dtype: DType, value: i128) -> Scalar {
        Scalar::new(dtype, Number::Int(value)).expect("an integer converts to every type")
    }

    /// The element's type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The exact value.
    pub fn value(self) -> Number {
        self.value
    }

    /// Whether this is the number `value`; `-0.0` is not zero here, since adding it differs from adding
    /// `0.0`.
    pub fn is(self, value: i32) -> bool {
        self == Scalar::small(self.dtype, i128::from(value))
    }

    /// The element in memory layout, in native byte order; 2- and 4-bit types take a byte.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.dtype.storage_bytes());
        match self.value {
            Number::Bool(value) => out.push(u8::from(value)),
            Number::Int(value) => {
                // A narrow element is the low part of the wide one; `wrap` has made it exact.
                let wide = (value as i64).to_le_bytes();
                out.extend_from_slice(&wide[..self.dtype.storage_bytes()]);
                if cfg!(target_endian = "big") {
                    out.reverse();
                }
            }
            Number::Huge(value) | Number::Float(value) => push_float(self.dtype, value, &mut out),
            Number::Complex(value) => {
                push_float(self.dtype.to_real(), value.re, &mut out);
                push_float(self.dtype.to_real(), value.im, &mut out);
            }
        }
        out
    }

    /// Reads one element in memory layout.
    ///
    /// # Panics
    /// When `bytes` is not exactly one element long.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Scalar {
        assert_eq!(bytes.len(), dtype.storage_bytes(), "one element of {dtype}");
        let value = match dtype.kind() {
            // Foreign bytes may have values other than 0 and 1.
            Kind::Bool => Number::Bool(bytes[0] != 0),
            Kind::Unsigned | Kind::Signed => {
                let mut wide = [0u8; 8];
                if cfg!(target_endian = "big") {
                    wide[8 - bytes.len()..].copy_from_slice(bytes);
                    wide.reverse();
                } else {
                    wide[..bytes.len()].copy_from_slice(bytes);
                }
                Number::Int(wrap(dtype, i128::from(u64::from_le_bytes(wide))))
            }
            Kind::Float => Number::Float(pull_float(dtype, bytes)),
            Kind::Complex => {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                Number::complex(pull_float(dtype.to_real(), re), pull_float(dtype.to_real(), im))
            }
        };
        Scalar { dtype, value }
    }

    fn bits(self) -> (u64, u64) {
        match self.value {
            Number::Bool(value) => (u64::from(value), 0),
            Number::Int(value) => (value as u64, 0),
            Number::Huge(value) | Number::Float(value) => (value.to_bits(), 1),
            Number::Complex(value) => (value.re.to_bits(), value.im.to_bits()),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.dtype == other.dtype && self.bits() == other.bits()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dtype, self.bits()).hash(state);
    }
}

/// Nx's text of an element: `1`, `1.0`, `1.0e-7`, `NaN`, `Inf`, `1.0-2.0i`.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Number::Bool(value) => write!(f, "{value}"),
            Number::Int(value) => write!(f, "{value}"),
            Number::Huge(value) | Number::Float(value) => f.write_str(&float_text(self.dtype, value)),
            Number::Complex(value) => {
                let part = self.dtype.to_real();
                let sign = if value.im.is_sign_negative() { '-' } else { '+' };
                write!(f, "{}{sign}{}i", float_text(part, value.re), float_text(part, value.im.abs()))
            }
        }
    }
}

/// Whether all bytes are valid bools. Other nonzero values count as true in conversions, but ops on bools
/// require 0 and 1.
pub fn are_truths(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte <= 1)
}

/// Reduces an integer modulo 2^bits into the range of its type; for bool, to 1 unless it is 0.
pub fn wrap(dtype: DType, value: i128) -> i128 {
    if dtype.is_bool() {
        return i128::from(value != 0);
    }
    let bits = dtype.bits();
    let low = value & ((1i128 << bits) - 1);
    if dtype.kind() == Kind::Signed && low >> (bits - 1) == 1 { low - (1i128 << bits) } else { low }
}

/// Rounds to the nearest value of a float type, ties to even; the result is exact in f64.
///
/// f8_e4m3fn has no infinity and saturates to 448 of the same sign.
#[expect(clippy::wildcard_enum_match_arm, reason = "only floats are asked for")]
pub fn round_float(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => f64::from(value as f32),
        DType::F16 => f64::from(f16::from_f32(round_to_odd(value))),
        DType::BF16 => f64::from(bf16::from_f32(round_to_odd(value))),
        DType::F8E5M2 => E5M2.decode(E5M2.encode(value)),
        DType::F8E4M3FN => E4M3FN.decode(E4M3FN.encode(value)),
        other => unreachable!("{other} is no float"),
    }
}

/// The value as f32 if exact, else the neighbouring f32 whose last bit is 1.
///
/// Rounding the result to 22 bits or fewer equals rounding `value` directly: unlike the nearest f32, it is
/// never half-way between two narrower values unless `value` is.
fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || near.is_nan() || near.to_bits() & 1 == 1 {
        return near;
    }
    // The bits of floats of one sign increase with the magnitude.
    let grows = near == 0.0 || (value > back) == (near > 0.0);
    f32::from_bits(if grows { near.to_bits() + 1 } else { near.to_bits() - 1 })
}

/// Rounds an integer once, directly to the target type: f64 as an intermediate would round twice for f32.
fn round_int(dtype: DType, value: i128) -> f64 {
    if dtype == DType::F32 { f64::from(value as f32) } else { round_float(dtype, value as f64) }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only floats are asked for")]
fn push_float(dtype: DType, value: f64, out: &mut Vec<u8>) {
    match dtype {
        DType::F64 => out.extend_from_slice(&value.to_ne_bytes()),
        DType::F32 => out.extend_from_slice(&(value as f32).to_ne_bytes()),
        DType::F16 => out.extend_from_slice(&f16::from_f32(round_to_odd(value)).to_ne_bytes()),
        DType::BF16 => out.extend_from_slice(&bf16::from_f32(round_to_odd(value)).to_ne_bytes()),
        DType::F8E5M2 => out.push(E5M2.encode(value)),
        DType::F8E4M3FN => out.push(E4M3FN.encode(value)),
        other => unreachable!("{other} is no float"),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only floats are asked for")]
fn pull_float(dtype: DType, bytes: &[u8]) -> f64 {
    const WIDTH: &str = "the caller checked the width";
    match dtype {
        DType::F64 => f64::from_ne_bytes(bytes.try_into().expect(WIDTH)),
        DType::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().expect(WIDTH))),
        DType::F16 => f64::from(f16::from_ne_bytes(bytes.try_into().expect(WIDTH))),
        DType::BF16 => f64::from(bf16::from_ne_bytes(bytes.try_into().expect(WIDTH))),
        DType::F8E5M2 => E5M2.decode(bytes[0]),
        DType::F8E4M3FN => E4M3FN.decode(bytes[0]),
        other => unreachable!("{other} is no float"),
    }
}

/// An 8-bit float format.
///
/// Layouts after Micikevicius et al., FP8 Formats for Deep Learning (2022).
#[derive(Clone, Copy, Debug)]
pub struct Float8 {
    mantissa_bits: u32,
    bias: i32,
    /// The code of the greatest finite value.
    max: u8,
    /// The code for overflow: infinity, or the greatest finite value.
    overflow: u8,
    nan: u8,
}

/// 5 exponent bits, 2 mantissa bits, infinities.
pub const E5M2: Float8 = Float8 { mantissa_bits: 2, bias: 15, max: 0x7B, overflow: 0x7C, nan: 0x7E };

/// 4 exponent bits, 3 mantissa bits, NaN and no infinity; overflow saturates.
pub const E4M3FN: Float8 = Float8 { mantissa_bits: 3, bias: 7, max: 0x7E, overflow: 0x7E, nan: 0x7F };

impl Float8 {
    /// The nearest code, ties to even.
    pub fn encode(self, value: f64) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return sign | self.nan;
        }
        let magnitude = value.abs();
        if magnitude.is_infinite() {
            return sign | self.overflow;
        }
        let least_exponent = 1 - self.bias;
        let bits = magnitude.to_bits();
        let exponent = (((bits >> 52) as i32) - 1023).max(least_exponent);
        // One unit in the last place at this exponent; scaling by a power of two is exact.
        let unit = 2f64.powi(exponent - self.mantissa_bits as i32);
        let steps = (magnitude / unit).round_ties_even() as u32;
        // Codes of one sign increase without gaps, so that a carry into the exponent needs no special case.
        let code = (((exponent - least_exponent) as u32) << self.mantissa_bits) + steps;
        sign | if code > u32::from(self.max) { self.overflow } else { code as u8 }
    }

    /// The exact value of a code.
    pub fn decode(self, code: u8) -> f64 {
        let magnitude = code & 0x7F;
        let value = if magnitude > self.max {
            if self.overflow != self.max && magnitude == self.overflow { f64::INFINITY } else { f64::NAN }
        } else {
            let mantissa = f64::from(magnitude & ((1 << self.mantissa_bits) - 1));
            let exponent = i32::from(magnitude >> self.mantissa_bits);
            let hidden = if exponent == 0 { 0.0 } else { f64::from(1u32 << self.mantissa_bits) };
            let scale = exponent.max(1) - self.bias - self.mantissa_bits as i32;
            (mantissa + hidden) * 2f64.powi(scale)
        };
        if code & 0x80 != 0 { -value } else { value }
    }
}

/// The shortest decimal text that parses to the same element, with `.0` or an exponent.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other float is narrow")]
pub fn float_text(dtype: DType, value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = match dtype {
        DType::F64 => format!("{value:e}"),
        DType::F32 => format!("{:e}", value as f32),
        // The narrow types have few digits: try increasing numbers of digits.
        _ => (0..=8)
            .map(|digits| format!("{value:.digits$e}"))
            .find(|text| text.parse::<f64>().is_ok_and(|back| round_float(dtype, back) == value))
            .unwrap_or_else(|| format!("{value:e}")),
    };
    let (digits, exponent) = shortest.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes an integer exponent");
    // Trailing zeros occur when a narrow type's text needed more digits.
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let plain: String = digits.chars().filter(|c| *c != '.').collect();
    // Plain notation in the range where Elixir, and so Nx, uses it: up to about 16 digits before the point.
    if (-5..16).contains(&exponent) && !(value == 0.0 && exponent != 0) {
        let text = if exponent < 0 {
            format!("0.{}{plain}", "0".repeat((-exponent - 1) as usize))
        } else {
            let whole = exponent as usize + 1;
            if plain.len() <= whole {
                format!("{plain}{}.0", "0".repeat(whole - plain.len()))
            } else {
                format!("{}.{}", &plain[..whole], &plain[whole..])
            }
        };
        format!("{sign}{text}")
    } else {
        let rest = if plain.len() > 1 { &plain[1..] } else { "0" };
        format!("{sign}{}.{rest}e{exponent}", &plain[..1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_an_f8_survives() {
        for format in [E5M2, E4M3FN] {
            for code in 0..=255u8 {
                let value = format.decode(code);
                if value.is_nan() {
                    assert!(format.decode(format.encode(value)).is_nan());
                } else {
                    assert_eq!(format.encode(value), code, "{value}");
                }
            }
        }
    }

    #[test]
    fn f8_rounds_to_even_and_overflows_as_its_format_says() {
        assert_eq!(round_float(DType::F8E4M3FN, 1.0625), 1.0);
        assert_eq!(round_float(DType::F8E4M3FN, 1.1875), 1.25);
        assert_eq!(round_float(DType::F8E4M3FN, f64::INFINITY), 448.0);
        assert_eq!(round_float(DType::F8E4M3FN, -1e9), -448.0);
        assert_eq!(round_float(DType::F8E5M2, 1e9), f64::INFINITY);
        assert_eq!(round_float(DType::F8E5M2, 2f64.powi(-17)), 0.0);
    }

    #[test]
    fn f16_and_bf16_round_once() {
        // Slightly off the middle of two neighbours, by less than f32 can represent.
        let tiny = 2f64.powi(-40);
        for (dtype, half) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
            for sign in [1.0, -1.0] {
                assert_eq!(round_float(dtype, sign * (1.0 + half)), sign, "a tie goes to even");
                assert_eq!(round_float(dtype, sign * (1.0 + half - tiny)), sign);
                assert_eq!(round_float(dtype, sign * (1.0 + half + tiny)), sign * (1.0 + 2.0 * half));
            }
            assert_eq!(round_float(dtype, 1e300), f64::INFINITY);
            assert_eq!(round_float(dtype, -1e-300).to_bits(), (-0.0f64).to_bits());
            assert!(round_float(dtype, f64::NAN).is_nan());
        }
    }

    #[test]
    fn bytes_read_back() {
        for &dtype in DType::ALL {
            let scalar = Scalar::new(dtype, 1).unwrap();
            assert_eq!(Scalar::from_bytes(dtype, &scalar.to_bytes()), scalar);
        }
        let scalar = Scalar::new(DType::S4, -3).unwrap();
        assert_eq!(Scalar::from_bytes(DType::S4, &scalar.to_bytes()), scalar);
    }

    #[test]
    fn floats_print_as_in_nx() {
        let text = |dtype, value: f64| float_text(dtype, round_float(dtype, value));
        assert_eq!(text(DType::F32, 0.1), "0.1");
        assert_eq!(text(DType::F32, 1.0), "1.0");
        assert_eq!(text(DType::F32, -0.0), "-0.0");
        assert_eq!(text(DType::F32, 1e-10), "1.0e-10");
        assert_eq!(text(DType::F64, 1.5e300), "1.5e300");
        assert_eq!(text(DType::F16, 0.1), "0.1");
        assert_eq!(text(DType::BF16, 2.72), "2.72");
        assert_eq!(text(DType::F32, 123456.0), "123456.0");
    }
}
