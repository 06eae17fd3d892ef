//! What each op does to one element: the only place that says so. The loops over lanes and the ops of scalars
//! are made of these functions.
//!
//! Integers are held unsigned; what depends on a sign says so. A predicate is a byte, 0 or 1.

use super::super::ir::Rare;

/// The type of an element.
pub(super) trait Element: Copy + 'static {}

impl Element for u8 {}
impl Element for u16 {}
impl Element for u32 {}
impl Element for u64 {}
impl Element for f32 {}
impl Element for f64 {}

/// What integers and floats have. Integers are compared as signed ones.
pub(super) trait Number: Element + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    fn times(self, b: Self) -> Self;
    fn lesser(self, b: Self) -> Self;
    fn greater(self, b: Self) -> Self;
    fn is_less(self, b: Self) -> bool;
    fn is_at_most(self, b: Self) -> bool;
}

/// Integers.
pub(super) trait Integer: Number + Ord + std::ops::Not<Output = Self> {
    /// The low bits.
    fn low(bits: u64) -> Self;
    fn zero_extended(self) -> u64;
    fn sign_extended(self) -> u64;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn ones(self) -> Self;
    fn zeros_above(self) -> Self;
    fn quotient_s(self, b: Self) -> Self;
    fn quotient_u(self, b: Self) -> Self;
    fn remainder_s(self, b: Self) -> Self;
    fn remainder_u(self, b: Self) -> Self;
    fn left(self, by: Self) -> Self;
    fn right_u(self, by: Self) -> Self;
    fn right_s(self, by: Self) -> Self;
    fn rotated(self, by: Self) -> Self;
    fn to_f32_s(self) -> f32;
    fn to_f32_u(self) -> f32;
    fn to_f64_s(self) -> f64;
    fn to_f64_u(self) -> f64;
    fn of_f32_s(x: f32) -> Self;
    fn of_f32_u(x: f32) -> Self;
    fn of_f64_s(x: f64) -> Self;
    fn of_f64_u(x: f64) -> Self;
}

/// Floats.
pub(super) trait Float: Number {
    fn root(self) -> Self;
    fn down(self) -> Self;
    fn up(self) -> Self;
    fn toward_zero(self) -> Self;
    fn over(self, b: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    fn negated(self) -> Self;
    /// `self * 2^b`, rounded once.
    fn scaled(self, b: Self) -> Self;
    fn of_s<A: Integer>(a: A) -> Self;
    fn of_u<A: Integer>(a: A) -> Self;
    fn to_s<Y: Integer>(self) -> Y;
    fn to_u<Y: Integer>(self) -> Y;
    fn applied(self, rare: Rare) -> Self;
}

macro_rules! integer {
    ($unsigned:ident, $signed:ident) => {
        impl Number for $unsigned {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }

            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }

            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }

            #[inline(always)]
            fn lesser(self, b: Self) -> Self {
                (self as $signed).min(b as $signed) as Self
            }

            #[inline(always)]
            fn greater(self, b: Self) -> Self {
                (self as $signed).max(b as $signed) as Self
            }

            #[inline(always)]
            fn is_less(self, b: Self) -> bool {
                (self as $signed) < b as $signed
            }

            #[inline(always)]
            fn is_at_most(self, b: Self) -> bool {
                self as $signed <= b as $signed
            }
        }

        impl Integer for $unsigned {
            #[inline(always)]
            fn low(bits: u64) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn zero_extended(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn sign_extended(self) -> u64 {
                self as $signed as i64 as u64
            }

            #[inline(always)]
            fn and(self, b: Self) -> Self {
                self & b
            }

            #[inline(always)]
            fn or(self, b: Self) -> Self {
                self | b
            }

            #[inline(always)]
            fn xor(self, b: Self) -> Self {
                self ^ b
            }

            #[inline(always)]
            fn ones(self) -> Self {
                self.count_ones() as Self
            }

            #[inline(always)]
            fn zeros_above(self) -> Self {
                self.leading_zeros() as Self
            }

            #[inline(always)]
            fn quotient_s(self, b: Self) -> Self {
                if b == 0 { Self::MAX } else { (self as $signed).wrapping_div(b as $signed) as Self }
            }

            #[inline(always)]
            fn quotient_u(self, b: Self) -> Self {
                self.checked_div(b).unwrap_or(Self::MAX)
            }

            #[inline(always)]
            fn remainder_s(self, b: Self) -> Self {
                if b == 0 { self } else { (self as $signed).wrapping_rem(b as $signed) as Self }
            }

            #[inline(always)]
            fn remainder_u(self, b: Self) -> Self {
                self.checked_rem(b).unwrap_or(self)
            }

            #[inline(always)]
            fn left(self, by: Self) -> Self {
                // Both sides are computed, so that there is no branch; the distance is below the width in
                // either.
                let shifted = self << (by & (Self::BITS - 1) as Self);
                if by < Self::BITS as Self { shifted } else { 0 }
            }

            #[inline(always)]
            fn right_u(self, by: Self) -> Self {
                let shifted = self >> (by & (Self::BITS - 1) as Self);
                if by < Self::BITS as Self { shifted } else { 0 }
            }

            #[inline(always)]
            fn right_s(self, by: Self) -> Self {
                (self as $signed >> by.min((Self::BITS - 1) as Self)) as Self
            }

            #[inline(always)]
            fn rotated(self, by: Self) -> Self {
                self.rotate_left(by as u32)
            }

            #[inline(always)]
            fn to_f32_s(self) -> f32 {
                self as $signed as f32
            }

            #[inline(always)]
            fn to_f32_u(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn to_f64_s(self) -> f64 {
                self as $signed as f64
            }

            #[inline(always)]
            fn to_f64_u(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn of_f32_s(x: f32) -> Self {
                x as $signed as Self
            }

            #[inline(always)]
            fn of_f32_u(x: f32) -> Self {
                x as Self
            }

            #[inline(always)]
            fn of_f64_s(x: f64) -> Self {
                x as $signed as Self
            }

            #[inline(always)]
            fn of_f64_u(x: f64) -> Self {
                x as Self
            }
        }
    };
}

integer!(u8, i8);
integer!(u16, i16);
integer!(u32, i32);
integer!(u64, i64);

macro_rules! float {
    ($float:ident, $of_s:ident, $of_u:ident, $to_s:ident, $to_u:ident, $scale:ident, $rare:ident) => {
        impl Number for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self + b
            }

            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self - b
            }

            #[inline(always)]
            fn times(self, b: Self) -> Self {
                self * b
            }

            #[inline(always)]
            fn lesser(self, b: Self) -> Self {
                // The comparison is false for NaN, so that a NaN in `b` is the result.
                if self < b || self.is_nan() { self } else { b }
            }

            #[inline(always)]
            fn greater(self, b: Self) -> Self {
                if self > b || self.is_nan() { self } else { b }
            }

            #[inline(always)]
            fn is_less(self, b: Self) -> bool {
                self < b
            }

            #[inline(always)]
            fn is_at_most(self, b: Self) -> bool {
                self <= b
            }
        }

        impl Float for $float {
            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }

            #[inline(always)]
            fn down(self) -> Self {
                self.floor()
            }

            #[inline(always)]
            fn up(self) -> Self {
                self.ceil()
            }

            #[inline(always)]
            fn toward_zero(self) -> Self {
                self.trunc()
            }

            #[inline(always)]
            fn over(self, b: Self) -> Self {
                self / b
            }

            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }

            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }

            #[inline(always)]
            fn scaled(self, b: Self) -> Self {
                let infinite = if b > 0.0 { self * Self::INFINITY } else { self * 0.0 };
                let finite = $scale(self, b);
                let scaled = if b.is_infinite() { infinite } else { finite };
                if b.is_nan() { b } else { scaled }
            }

            #[inline(always)]
            fn of_s<A: Integer>(a: A) -> Self {
                a.$of_s()
            }

            #[inline(always)]
            fn of_u<A: Integer>(a: A) -> Self {
                a.$of_u()
            }

            #[inline(always)]
            fn to_s<Y: Integer>(self) -> Y {
                Y::$to_s(self)
            }

            #[inline(always)]
            fn to_u<Y: Integer>(self) -> Y {
                Y::$to_u(self)
            }

            #[inline(always)]
            fn applied(self, rare: Rare) -> Self {
                rare.$rare(self)
            }
        }
    };
}

float!(f32, to_f32_s, to_f32_u, of_f32_s, of_f32_u, scaled_f32, of_f32);
float!(f64, to_f64_s, to_f64_u, of_f64_s, of_f64_u, scaled_f64, of);

/// `2^n` for an integral `n` from -1022 to 1023.
#[inline(always)]
fn power(n: f64) -> f64 {
    // The sum has the integer in its low bits.
    const INTEGERS: f64 = 6_755_399_441_055_744.0;
    f64::from_bits((n + (INTEGERS + 1023.0)).to_bits() << 52)
}

/// `a * 2^b` for a finite `b`.
#[inline(always)]
fn scaled_f32(a: f32, b: f32) -> f32 {
    // The product is exact in f64. Beyond 300 the result of every `a` is zero or infinite.
    (f64::from(a) * power(f64::from(b.floor().clamp(-300.0, 300.0)))) as f32
}

/// `a * 2^b` for a finite `b`.
#[inline(always)]
fn scaled_f64(a: f64, b: f64) -> f64 {
    /// A factor of at most the largest power, and what is left. The factor leaves room for 53 bits above the
    /// least normal number: either no bit is lost here, or all are when the last factor is applied.
    #[inline(always)]
    fn part(a: f64, n: f64) -> (f64, f64) {
        let by = if n > 1023.0 { 1023.0 } else { -969.0 };
        let is_in_range = (-1022.0..=1023.0).contains(&n);
        if is_in_range { (a, n) } else { (a * power(by), n - by) }
    }
    let (a, n) = part(a, b.floor().clamp(-2200.0, 2200.0));
    let (a, n) = part(a, n);
    a * power(n.clamp(-1022.0, 1023.0))
}

/// An op of one operand.
pub(super) trait Unary<A, Y> {
    fn apply(a: A) -> Y;
}

/// An op of two operands of one type.
pub(super) trait Binary<T, Y> {
    fn apply(a: T, b: T) -> Y;
}

/// An op of three operands, of which the last two have the result's type.
pub(super) trait Ternary<A, T> {
    fn apply(a: A, b: T, c: T) -> T;
}

macro_rules! unary {
    ($($name:ident [$($generics:tt)*] $a:ident: $A:ty => $Y:ty { $body:expr })*) => {$(
        pub(super) struct $name;

        impl<$($generics)*> Unary<$A, $Y> for $name {
            #[inline(always)]
            fn apply($a: $A) -> $Y {
                $body
            }
        }
    )*};
}

macro_rules! binary {
    ($($name:ident [$T:ident: $bound:ident] $a:ident, $b:ident => $Y:ty { $body:expr })*) => {$(
        pub(super) struct $name;

        impl<$T: $bound> Binary<$T, $Y> for $name {
            #[inline(always)]
            fn apply($a: $T, $b: $T) -> $Y {
                $body
            }
        }
    )*};
}

macro_rules! ternary {
    ($($name:ident [$T:ident: $bound:ident] $a:ident: $A:ty, $b:ident, $c:ident { $body:expr })*) => {$(
        pub(super) struct $name;

        impl<$T: $bound> Ternary<$A, $T> for $name {
            #[inline(always)]
            fn apply($a: $A, $b: $T, $c: $T) -> $T {
                $body
            }
        }
    )*};
}

unary! {
    Copy_ [T: Element] a: T => T { a }
    Not [T: Integer] a: T => T { !a }
    NotBit [] a: u8 => u8 { a ^ 1 }
    Sqrt [T: Float] a: T => T { a.root() }
    Floor [T: Float] a: T => T { a.down() }
    Ceil [T: Float] a: T => T { a.up() }
    Trunc [T: Float] a: T => T { a.toward_zero() }
    Sin [T: Float] a: T => T { a.applied(Rare::Sin) }
    Cos [T: Float] a: T => T { a.applied(Rare::Cos) }
    Tan [T: Float] a: T => T { a.applied(Rare::Tan) }
    PopCount [T: Integer] a: T => T { a.ones() }
    LeadingZeros [T: Integer] a: T => T { a.zeros_above() }
    // A cut is this, too.
    ZeroExtend [A: Integer, Y: Integer] a: A => Y { Y::low(a.zero_extended()) }
    SignExtend [A: Integer, Y: Integer] a: A => Y { Y::low(a.sign_extended()) }
    FloatOfS [A: Integer, Y: Float] a: A => Y { Y::of_s(a) }
    FloatOfU [A: Integer, Y: Float] a: A => Y { Y::of_u(a) }
    ToS [A: Float, Y: Integer] a: A => Y { a.to_s() }
    ToU [A: Float, Y: Integer] a: A => Y { a.to_u() }
    Widen [] a: f32 => f64 { f64::from(a) }
    Narrow [] a: f64 => f32 { a as f32 }
    OfHalf [] a: u16 => f32 { half::f16::from_bits(a).to_f32() }
    ToHalf [] a: f32 => u16 { half::f16::from_f32(a).to_bits() }
    OfBit [Y: Number] a: u8 => Y { if a != 0 { Y::ONE } else { Y::ZERO } }
}

binary! {
    Add [T: Number] a, b => T { a.plus(b) }
    Sub [T: Number] a, b => T { a.minus(b) }
    Mul [T: Number] a, b => T { a.times(b) }
    Div [T: Float] a, b => T { a.over(b) }
    DivS [T: Integer] a, b => T { a.quotient_s(b) }
    DivU [T: Integer] a, b => T { a.quotient_u(b) }
    RemS [T: Integer] a, b => T { a.remainder_s(b) }
    RemU [T: Integer] a, b => T { a.remainder_u(b) }
    Min [T: Number] a, b => T { a.lesser(b) }
    Max [T: Number] a, b => T { a.greater(b) }
    MinU [T: Integer] a, b => T { a.min(b) }
    MaxU [T: Integer] a, b => T { a.max(b) }
    And [T: Integer] a, b => T { a.and(b) }
    Or [T: Integer] a, b => T { a.or(b) }
    Xor [T: Integer] a, b => T { a.xor(b) }
    AndNot [T: Integer] a, b => T { a.and(!b) }
    Shl [T: Integer] a, b => T { a.left(b) }
    Shr [T: Integer] a, b => T { a.right_u(b) }
    Sar [T: Integer] a, b => T { a.right_s(b) }
    Rot [T: Integer] a, b => T { a.rotated(b) }
    Scale [T: Float] a, b => T { a.scaled(b) }
    Eq [T: Number] a, b => u8 { u8::from(a == b) }
    Ne [T: Number] a, b => u8 { u8::from(a != b) }
    Lt [T: Number] a, b => u8 { u8::from(a.is_less(b)) }
    Le [T: Number] a, b => u8 { u8::from(a.is_at_most(b)) }
    LtU [T: Integer] a, b => u8 { u8::from(a < b) }
    LeU [T: Integer] a, b => u8 { u8::from(a <= b) }
    Test [T: Integer] a, b => u8 { u8::from(a.and(b) != T::ZERO) }
}

ternary! {
    Fma [T: Float] a: T, b, c { a.fused(b, c) }
    Fnma [T: Float] a: T, b, c { a.negated().fused(b, c) }
    Flip [T: Integer] a: T, b, c { a.xor(b.and(c)) }
    Select [T: Element] a: u8, b, c { std::hint::select_unpredictable(a != 0, b, c) }
}
