//! Element types, conversions between them, and type promotion.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind};
use crate::scalar::{Number, wrap};

/// The kinds of element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// False and true.
    Bool,
    /// Integers from 0.
    Unsigned,
    /// Two's complement integers.
    Signed,
    /// Binary floating point numbers.
    Float,
    /// Pairs of floats.
    Complex,
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $kind:ident $bits:literal;)*) => {
        /// The type of a tensor's elements.
        ///
        /// ```
        /// use defn_core::DType;
        /// assert_eq!("bf16".parse::<DType>()?, DType::BF16);
        /// assert_eq!(DType::U8.merge(DType::S8), DType::S16);
        /// # Ok::<(), defn_core::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $($(#[$doc])* $variant,)* }

        impl DType {
            /// Every element type: bool, then the other kinds, narrow before wide.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// The public name of the type, as in `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The kind of the elements.
            #[inline]
            pub const fn kind(self) -> Kind {
                match self { $(DType::$variant => Kind::$kind,)* }
            }

            /// The width of an element in bits; 1 for bool, 2 and 4 for the packed integers.
            #[inline]
            pub const fn bits(self) -> usize {
                match self { $(DType::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    /// False or true, stored as a byte that is 0 or 1; the type of predicates.
    Bool = "bool", Bool 1;
    /// Unsigned, 2 bits.
    U2 = "u2", Unsigned 2;
    /// Unsigned, 4 bits.
    U4 = "u4", Unsigned 4;
    /// Unsigned, 8 bits.
    U8 = "u8", Unsigned 8;
    /// Unsigned, 16 bits.
    U16 = "u16", Unsigned 16;
    /// Unsigned, 32 bits.
    U32 = "u32", Unsigned 32;
    /// Unsigned, 64 bits.
    U64 = "u64", Unsigned 64;
    /// Signed, 2 bits.
    S2 = "s2", Signed 2;
    /// Signed, 4 bits.
    S4 = "s4", Signed 4;
    /// Signed, 8 bits.
    S8 = "s8", Signed 8;
    /// Signed, 16 bits.
    S16 = "s16", Signed 16;
    /// Signed, 32 bits; the type of a host integer.
    S32 = "s32", Signed 32;
    /// Signed, 64 bits.
    S64 = "s64", Signed 64;
    /// 8-bit float with 5 exponent bits and infinities (E5M2); `f8` is an alias.
    F8E5M2 = "f8_e5m2", Float 8;
    /// 8-bit float with 4 exponent bits, NaN and no infinity (E4M3FN).
    F8E4M3FN = "f8_e4m3fn", Float 8;
    /// IEEE half precision.
    F16 = "f16", Float 16;
    /// The upper half of an f32.
    BF16 = "bf16", Float 16;
    /// IEEE single precision; the type of a host float.
    F32 = "f32", Float 32;
    /// IEEE double precision.
    F64 = "f64", Float 64;
    /// Two f32.
    C64 = "c64", Complex 64;
    /// Two f64.
    C128 = "c128", Complex 128;
}

impl DType {
    /// Whether a byte of a file or of a foreign array holds several elements: the 2- and 4-bit integers.
    pub const fn is_packed(self) -> bool {
        self.is_integer() && self.bits() < 8
    }

    /// Bytes per element in memory. Types of less than a byte take one byte each.
    #[inline]
    pub const fn storage_bytes(self) -> usize {
        let bytes = self.bits() / 8;
        if bytes == 0 { 1 } else { bytes }
    }

    /// Whether this is bool.
    pub const fn is_bool(self) -> bool {
        matches!(self.kind(), Kind::Bool)
    }

    /// Whether this is a signed or unsigned integer type; bool is none.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Unsigned | Kind::Signed)
    }

    /// Whether this is a real floating point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether elements are pairs of floats.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// The signed integer type of a width in bits; widths above 64 give s64.
    pub const fn signed(bits: usize) -> DType {
        match bits {
            0..=2 => DType::S2,
            3..=4 => DType::S4,
            5..=8 => DType::S8,
            9..=16 => DType::S16,
            17..=32 => DType::S32,
            _ => DType::S64,
        }
    }

    /// The unsigned integer type of a width in bits; widths above 64 give u64.
    pub const fn unsigned(bits: usize) -> DType {
        match bits {
            0..=2 => DType::U2,
            3..=4 => DType::U4,
            5..=8 => DType::U8,
            9..=16 => DType::U16,
            17..=32 => DType::U32,
            _ => DType::U64,
        }
    }

    /// Whether gradients are defined for elements of the type: floats and complex numbers.
    pub const fn is_inexact(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// Floats and complex types stay; integers and bool become f32.
    pub const fn to_float(self) -> DType {
        if self.is_inexact() { self } else { DType::F32 }
    }

    /// The type for counting and adding up elements: s32 for bool, every other type stays.
    pub const fn to_number(self) -> DType {
        if self.is_bool() { DType::S32 } else { self }
    }

    /// Complex types stay; f64 becomes c128, every other type c64.
    pub const fn to_complex(self) -> DType {
        match self.kind() {
            Kind::Complex => self,
            Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Float
                if self.bits() == 64 && self.is_float() =>
            {
                DType::C128
            }
            Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Float => DType::C64,
        }
    }

    /// The type of a complex type's parts; floats stay; integers and bool become f32.
    pub const fn to_real(self) -> DType {
        match self.kind() {
            Kind::Complex if self.bits() == 128 => DType::F64,
            Kind::Complex | Kind::Bool | Kind::Unsigned | Kind::Signed => DType::F32,
            Kind::Float => self,
        }
    }

    /// The result type of `sum` and `product`: s32 or s64 for signed integers, u32 or s64 (for u64, as in Nx)
    /// for unsigned ones, s32 for bool, which is counted; other types stay.
    pub const fn to_aggregate(self) -> DType {
        match self.kind() {
            Kind::Bool => DType::S32,
            Kind::Signed if self.bits() < 64 => DType::S32,
            Kind::Signed => DType::S64,
            Kind::Unsigned if self.bits() < 64 => DType::U32,
            Kind::Unsigned => DType::S64,
            Kind::Float | Kind::Complex => self,
        }
    }

    /// The promoted type of two types, symmetric in them.
    ///
    /// Bool is promoted to every other type. Within a kind the wider type wins. Unsigned and signed give a
    /// signed type that is wide enough, up to s64. Integers are promoted to floats of any width, bf16 and
    /// f8_e4m3fn to other floats.
    pub fn merge(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        let (low, high) = if self.kind() <= other.kind() { (self, other) } else { (other, self) };
        match (low.kind(), high.kind()) {
            (Kind::Unsigned, Kind::Signed) => DType::signed((2 * low.bits()).min(64).max(high.bits())),
            (Kind::Float, Kind::Float) => merge_floats(low, high),
            (Kind::Float, Kind::Complex) => {
                if low == DType::F64 {
                    DType::C128
                } else {
                    high
                }
            }
            (Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Complex, _) | (Kind::Float, _) => {
                if low.kind() == high.kind() && low.bits() > high.bits() { low } else { high }
            }
        }
    }

    /// The type in which elements of two types are compared, symmetric in them. It represents the values of
    /// both, except that an integer is rounded to the float or complex type that it is compared with. None
    /// for u64 with signed integers: no type represents both.
    ///
    /// Where the promoted float type does not represent all values of both, they are compared in f32, which
    /// does.
    pub fn compared(self, other: DType) -> Option<DType> {
        let merged = self.merge(other);
        match (self.kind(), other.kind()) {
            (Kind::Float, Kind::Float) => Some(merged.merge(DType::F32)),
            (Kind::Signed, Kind::Unsigned) if other == DType::U64 => None,
            (Kind::Unsigned, Kind::Signed) if self == DType::U64 => None,
            (Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Complex, _) => Some(merged),
        }
    }

    /// The type of a tensor of this type combined with a plain number. The number affects the kind, not the
    /// width: an integer tensor with a float becomes f32, a complex number makes a real tensor complex. Bool
    /// becomes s32, f32 or c64.
    #[inline]
    pub fn merge_weak(self, number: Number) -> DType {
        match number {
            Number::Bool(_) => self,
            Number::Int(_) | Number::Huge(_) => self.to_number(),
            Number::Float(_) => self.to_float(),
            Number::Complex(_) => self.merge(DType::C64),
        }
    }

    /// Whether this is an integer type whose values do not include the number.
    #[inline]
    pub fn lacks(self, number: Number) -> bool {
        match number {
            Number::Int(value) => self.is_integer() && wrap(self, value) != value,
            Number::Huge(_) => self.is_integer(),
            Number::Bool(_) | Number::Float(_) | Number::Complex(_) => false,
        }
    }

    /// The narrowest dtype in which an integer is compared exactly with integers of a dtype that does not
    /// hold it. Beyond 64 bits an infinity replaces it, which compares the same way with all of them.
    pub(crate) fn comparing(number: Number) -> DType {
        match number {
            Number::Int(value) if !DType::S64.lacks(number) => DType::signed(needed_signed(value)),
            Number::Int(_) if !DType::U64.lacks(number) => DType::U64,
            Number::Int(_) | Number::Huge(_) => DType::F32,
            Number::Bool(_) | Number::Float(_) | Number::Complex(_) => number.dtype(),
        }
    }

    /// Whether the type can hold infinities.
    pub const fn has_infinity(self) -> bool {
        matches!(self.kind(), Kind::Float) && !matches!(self, DType::F8E4M3FN)
    }

    /// The number of fraction bits of a float, or of a part of a complex number.
    ///
    /// # Panics
    /// For integers.
    #[expect(clippy::wildcard_enum_match_arm, reason = "integers have none")]
    pub const fn mantissa_bits(self) -> usize {
        match self {
            DType::F8E5M2 => 2,
            DType::F8E4M3FN => 3,
            DType::BF16 => 7,
            DType::F16 => 10,
            DType::F32 | DType::C64 => 23,
            DType::F64 | DType::C128 => 52,
            _ => panic!("integers have no fraction"),
        }
    }

    /// The exponent of the smallest normal float.
    #[expect(clippy::wildcard_enum_match_arm, reason = "integers have none")]
    const fn least_exponent(self) -> i32 {
        match self {
            DType::F8E4M3FN => -6,
            DType::F8E5M2 | DType::F16 => -14,
            DType::BF16 | DType::F32 | DType::C64 => -126,
            DType::F64 | DType::C128 => -1022,
            _ => panic!("integers have no exponent"),
        }
    }

    /// The smallest float above 0 with full precision.
    ///
    /// # Panics
    /// For integers.
    pub fn smallest_normal(self) -> Number {
        Number::Float(2f64.powi(self.least_exponent()))
    }

    /// The greatest value of an integer type (true of bool), the greatest finite value of a float.
    ///
    /// # Panics
    /// For complex types, which are not ordered.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have their greatest value")]
    pub fn greatest_finite(self) -> Number {
        let exponent = match self {
            DType::F8E5M2 | DType::F16 => 15,
            DType::BF16 | DType::F32 => 127,
            DType::F64 => 1023,
            _ => return self.highest(),
        };
        Number::Float((2.0 - 2f64.powi(-(self.mantissa_bits() as i32))) * 2f64.powi(exponent))
    }

    /// The least value of an integer type, the least finite value of a float.
    ///
    /// # Panics
    /// For complex types, which are not ordered.
    pub fn least_finite(self) -> Number {
        if !self.is_float() { self.lowest() } else { Number::Float(-self.greatest_finite().to_f64()) }
    }

    /// The distance between 1 and the next greater float.
    ///
    /// # Panics
    /// For integers.
    pub fn epsilon(self) -> Number {
        Number::Float(2f64.powi(-(self.mantissa_bits() as i32)))
    }

    /// The least value of an integer type, -inf or the least finite value of a float.
    ///
    /// # Panics
    /// For complex types, which are not ordered.
    pub fn lowest(self) -> Number {
        match self.kind() {
            Kind::Bool => Number::Bool(false),
            Kind::Unsigned => Number::Int(0),
            Kind::Signed => Number::Int(-(1 << (self.bits() - 1))),
            Kind::Float if self.has_infinity() => Number::Float(f64::NEG_INFINITY),
            Kind::Float => Number::Float(-448.0),
            Kind::Complex => panic!("complex numbers have no least value"),
        }
    }

    /// The greatest value of an integer type, +inf or the greatest finite value of a float.
    ///
    /// # Panics
    /// For complex types, which are not ordered.
    pub fn highest(self) -> Number {
        match self.kind() {
            Kind::Bool => Number::Bool(true),
            Kind::Unsigned => Number::Int((1 << self.bits()) - 1),
            Kind::Signed => Number::Int((1 << (self.bits() - 1)) - 1),
            Kind::Float if self.has_infinity() => Number::Float(f64::INFINITY),
            Kind::Float => Number::Float(448.0),
            Kind::Complex => panic!("complex numbers have no greatest value"),
        }
    }
}

/// Promotion of floats: bf16 is promoted to every other type except f8_e4m3fn, and f8_e4m3fn to every other
/// type.
#[expect(clippy::wildcard_enum_match_arm, reason = "the caller passes floats")]
fn merge_floats(a: DType, b: DType) -> DType {
    let rank = |dtype: DType| match dtype {
        DType::F8E4M3FN => 0,
        DType::BF16 => 1,
        DType::F8E5M2 => 2,
        DType::F16 => 3,
        DType::F32 => 4,
        _ => 5,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// The width of the signed type that an integer needs; -2 to 1 fit every type.
fn needed_signed(value: i128) -> usize {
    match if value < 0 { -value - 1 } else { value } {
        0..=1 => 0,
        2..=0x7F => 8,
        0x80..=0x7FFF => 16,
        0x8000..=0x7FFF_FFFF => 32,
        _ => 64,
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType, Error> {
        let name = if name == "f8" { "f8_e5m2" } else { name };
        let found = DType::ALL.iter().copied().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| ErrorKind::UnknownDType { name: name.to_owned() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_symmetric_and_keeps_itself() {
        for &a in DType::ALL {
            assert_eq!(a.merge(a), a);
            for &b in DType::ALL {
                assert_eq!(a.merge(b), b.merge(a), "{a} {b}");
            }
        }
    }

    #[test]
    fn merging_follows_the_table() {
        use DType::*;
        for (a, b, merged) in [
            (U8, S8, S16),
            (U8, S32, S32),
            (U32, S32, S64),
            (U64, S2, S64),
            (S64, F16, F16),
            (BF16, F16, F16),
            (BF16, F8E5M2, F8E5M2),
            (F64, C64, C128),
            (F32, C64, C64),
            (BF16, C64, C64),
            (F8E4M3FN, F8E5M2, F8E5M2),
            (F8E4M3FN, BF16, BF16),
            (U2, S4, S4),
            (U2, U64, U64),
            (C64, C128, C128),
        ] {
            assert_eq!(a.merge(b), merged, "{a} {b}");
        }
    }

    #[test]
    fn compared_types_hold_what_is_compared() {
        use DType::*;
        for (a, b, compared) in [
            (BF16, F16, Some(F32)),
            (BF16, F8E5M2, Some(F32)),
            (F8E4M3FN, F8E5M2, Some(F32)),
            (F32, F64, Some(F64)),
            (F16, C64, Some(C64)),
            (F64, C64, Some(C128)),
            (S32, BF16, Some(BF16)),
            (S64, C64, Some(C64)),
            (U8, S8, Some(S16)),
            (U32, S64, Some(S64)),
            (U64, U8, Some(U64)),
            (U64, S2, None),
            (U64, F32, Some(F32)),
        ] {
            assert_eq!(a.compared(b), compared, "{a} {b}");
            assert_eq!(b.compared(a), compared, "{b} {a}");
        }
    }

    #[test]
    fn numbers_are_weak() {
        use DType::*;
        for (dtype, number, merged) in [
            (U8, Number::Int(255), U8),
            (U8, Number::Int(256), U8),
            (U2, Number::Int(-1), U2),
            (S8, Number::Int(128), S8),
            (S32, Number::Huge(1e40), S32),
            (BF16, Number::Huge(1e40), BF16),
            (S64, Number::Float(0.5), F32),
            (BF16, Number::Float(0.1), BF16),
            (BF16, Number::complex(0.0, 1.0), C64),
            (F8E4M3FN, Number::Float(1e9), F8E4M3FN),
            (F16, Number::Int(70000), F16),
            (F64, Number::complex(0.0, 1.0), C128),
        ] {
            assert_eq!(dtype.merge_weak(number), merged, "{dtype} {number:?}");
            assert_eq!(dtype.merge(merged), merged, "a constant of the merged type keeps it");
        }
    }

    #[test]
    fn integers_are_compared_where_they_fit() {
        use DType::*;
        for (dtype, number, lacks, compared) in [
            (U8, Number::Int(255), false, S16),
            (U8, Number::Int(256), true, S16),
            (U8, Number::Int(-1), true, S2),
            (S8, Number::Int(-129), true, S16),
            (U64, Number::Int(-1), true, S2),
            (S64, Number::Int(1 << 63), true, U64),
            (S64, Number::Int(1 << 64), true, F32),
            (U64, Number::Huge(1e40), true, F32),
            (F16, Number::Huge(1e40), false, F32),
        ] {
            assert_eq!(dtype.lacks(number), lacks, "{dtype} {number:?}");
            assert_eq!(DType::comparing(number), compared, "{dtype} {number:?}");
        }
    }
}
