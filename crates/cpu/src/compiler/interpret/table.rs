//! Which function executes an op of a type.

use super::super::ir::{Cmp, Conv, Elem, Op, Rare, Reduce};
use super::access::{self, GatherFn, MoveFn};
use super::lanes::{self, Reducer, ScalarFn, VectorFn};
use super::scalars as of;

/// The functions of an op: for the lanes of a block, and for scalars.
#[derive(Clone, Copy)]
pub(super) struct OpFunctions {
    pub(super) vector: VectorFn,
    pub(super) scalar: ScalarFn,
}

fn unary<K: of::Unary<A, Y>, A: of::Element, Y: of::Element>() -> Option<OpFunctions> {
    Some(OpFunctions { vector: lanes::each_1::<K, A, Y>, scalar: lanes::one_1::<K, A, Y> })
}

fn plain_unary<K: of::Unary<A, Y>, A: of::Element, Y: of::Element>() -> Option<OpFunctions> {
    Some(OpFunctions { vector: lanes::plain_1::<K, A, Y>, scalar: lanes::one_1::<K, A, Y> })
}

fn binary<K: of::Binary<T, Y>, T: of::Element, Y: of::Element>() -> Option<OpFunctions> {
    Some(OpFunctions { vector: lanes::each_2::<K, T, Y>, scalar: lanes::one_2::<K, T, Y> })
}

fn plain_binary<K: of::Binary<T, Y>, T: of::Element, Y: of::Element>() -> Option<OpFunctions> {
    Some(OpFunctions { vector: lanes::plain_2::<K, T, Y>, scalar: lanes::one_2::<K, T, Y> })
}

fn ternary<K: of::Ternary<A, T>, A: of::Element, T: of::Element>() -> Option<OpFunctions> {
    Some(OpFunctions { vector: lanes::each_3::<K, A, T>, scalar: lanes::one_3::<K, A, T> })
}

/// Evaluates to `$make` with `$T` for the integer.
macro_rules! of_integer {
    ($elem:expr, $T:ident => $make:expr) => {
        match $elem {
            Elem::I8 => {
                type $T = u8;
                $make
            }
            Elem::I16 => {
                type $T = u16;
                $make
            }
            Elem::I32 => {
                type $T = u32;
                $make
            }
            Elem::I64 | Elem::Index => {
                type $T = u64;
                $make
            }
            Elem::Bit | Elem::F32 | Elem::F64 => None,
        }
    };
}

/// Evaluates to `$make` with `$T` for the float.
macro_rules! of_float {
    ($elem:expr, $T:ident => $make:expr) => {
        match $elem {
            Elem::F32 => {
                type $T = f32;
                $make
            }
            Elem::F64 => {
                type $T = f64;
                $make
            }
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => None,
        }
    };
}

/// Evaluates to `$make` with `$T` for the integer or float.
macro_rules! of_number {
    ($elem:expr, $T:ident => $make:expr) => {
        if $elem.is_float() { of_float!($elem, $T => $make) } else { of_integer!($elem, $T => $make) }
    };
}

/// Evaluates to `$make` with `$T` for the bits of any type.
macro_rules! of_bits {
    ($elem:expr, $T:ident => $make:expr) => {
        of_integer!(if $elem == Elem::Bit { Elem::I8 } else { $elem.integer() }, $T => $make)
    };
}

/// The functions of an op of values, whose last operand has the type `from`, and whose result has the type
/// `to`. None if it is no such op, or has none of these types.
pub(super) fn functions(op: Op, from: Elem, to: Elem) -> Option<OpFunctions> {
    match op {
        Op::Apply(Rare::Sin) => of_float!(to, T => plain_unary::<of::Sin, T, T>()),
        Op::Apply(Rare::Cos) => of_float!(to, T => plain_unary::<of::Cos, T, T>()),
        Op::Apply(Rare::Tan) => of_float!(to, T => plain_unary::<of::Tan, T, T>()),
        Op::Not if to == Elem::Bit => unary::<of::NotBit, u8, u8>(),
        Op::Not => of_bits!(to, T => unary::<of::Not, T, T>()),
        Op::Sqrt => of_float!(to, T => unary::<of::Sqrt, T, T>()),
        Op::Floor => of_float!(to, T => unary::<of::Floor, T, T>()),
        Op::Ceil => of_float!(to, T => unary::<of::Ceil, T, T>()),
        Op::Trunc => of_float!(to, T => unary::<of::Trunc, T, T>()),
        Op::PopCount => of_integer!(to, T => unary::<of::PopCount, T, T>()),
        Op::LeadingZeros => of_integer!(to, T => unary::<of::LeadingZeros, T, T>()),
        Op::Convert(conv) => conversion(conv, from, to),
        Op::Add => of_number!(to, T => binary::<of::Add, T, T>()),
        Op::Sub => of_number!(to, T => binary::<of::Sub, T, T>()),
        Op::Mul => of_number!(to, T => binary::<of::Mul, T, T>()),
        Op::Div => of_float!(to, T => binary::<of::Div, T, T>()),
        Op::DivS => of_integer!(to, T => plain_binary::<of::DivS, T, T>()),
        Op::DivU => of_integer!(to, T => plain_binary::<of::DivU, T, T>()),
        Op::RemS => of_integer!(to, T => plain_binary::<of::RemS, T, T>()),
        Op::RemU => of_integer!(to, T => plain_binary::<of::RemU, T, T>()),
        Op::Min => of_number!(to, T => binary::<of::Min, T, T>()),
        Op::Max => of_number!(to, T => binary::<of::Max, T, T>()),
        Op::MinU => of_integer!(to, T => binary::<of::MinU, T, T>()),
        Op::MaxU => of_integer!(to, T => binary::<of::MaxU, T, T>()),
        Op::And => of_bits!(to, T => binary::<of::And, T, T>()),
        Op::Or => of_bits!(to, T => binary::<of::Or, T, T>()),
        Op::Xor => of_bits!(to, T => binary::<of::Xor, T, T>()),
        Op::AndNot => of_bits!(to, T => binary::<of::AndNot, T, T>()),
        Op::Shl | Op::ShlBy(_) => of_integer!(to, T => binary::<of::Shl, T, T>()),
        Op::Shr | Op::ShrBy(_) => of_integer!(to, T => binary::<of::Shr, T, T>()),
        Op::Sar | Op::SarBy(_) => of_integer!(to, T => binary::<of::Sar, T, T>()),
        Op::RotBy(_) => of_integer!(to, T => binary::<of::Rot, T, T>()),
        Op::Scale => of_float!(to, T => binary::<of::Scale, T, T>()),
        Op::Compare(cmp) => comparison(cmp, from),
        Op::Test => of_bits!(from, T => binary::<of::Test, T, u8>()),
        Op::Fma => of_float!(to, T => ternary::<of::Fma, T, T>()),
        Op::Fnma => of_float!(to, T => ternary::<of::Fnma, T, T>()),
        Op::Flip => of_bits!(to, T => ternary::<of::Flip, T, T>()),
        Op::Select => of_bits!(to, T => ternary::<of::Select, u8, T>()),
        Op::Const(_)
        | Op::Param(_)
        | Op::Lane
        | Op::Any
        | Op::Load(_)
        | Op::Store(_)
        | Op::Gather(_)
        | Op::Loop
        | Op::Carry
        | Op::While
        | Op::EndLoop(_)
        | Op::If
        | Op::Else
        | Op::EndIf(_)
        | Op::Join
        | Op::Accumulator(..)
        | Op::Lanes
        | Op::Reduce
        | Op::EndLanes
        | Op::Call(_) => None,
    }
}

/// The functions that copy elements of a type.
pub(super) fn copy(elem: Elem) -> Option<OpFunctions> {
    of_bits!(elem, T => unary::<of::Copy_, T, T>())
}

fn comparison(cmp: Cmp, elem: Elem) -> Option<OpFunctions> {
    let elem = if elem == Elem::Bit { Elem::I8 } else { elem };
    match cmp {
        Cmp::Eq => of_number!(elem, T => binary::<of::Eq, T, u8>()),
        Cmp::Ne => of_number!(elem, T => binary::<of::Ne, T, u8>()),
        Cmp::Lt => of_number!(elem, T => binary::<of::Lt, T, u8>()),
        Cmp::Le => of_number!(elem, T => binary::<of::Le, T, u8>()),
        Cmp::LtU => of_integer!(elem, T => binary::<of::LtU, T, u8>()),
        Cmp::LeU => of_integer!(elem, T => binary::<of::LeU, T, u8>()),
    }
}

fn conversion(conv: Conv, from: Elem, to: Elem) -> Option<OpFunctions> {
    let wider = from.bytes() <= to.bytes();
    match conv {
        Conv::ZeroExtend if wider => {
            of_integer!(from, A => of_integer!(to, Y => unary::<of::ZeroExtend, A, Y>()))
        }
        Conv::SignExtend | Conv::ToIndex if wider => {
            of_integer!(from, A => of_integer!(to, Y => unary::<of::SignExtend, A, Y>()))
        }
        Conv::Truncate | Conv::OfIndex if !wider || from.bytes() == to.bytes() => {
            of_integer!(from, A => of_integer!(to, Y => unary::<of::ZeroExtend, A, Y>()))
        }
        Conv::ZeroExtend | Conv::SignExtend | Conv::ToIndex | Conv::Truncate | Conv::OfIndex => None,
        Conv::FloatOfS => of_integer!(from, A => of_float!(to, Y => unary::<of::FloatOfS, A, Y>())),
        Conv::FloatOfU => of_integer!(from, A => of_float!(to, Y => unary::<of::FloatOfU, A, Y>())),
        Conv::ToS => of_float!(from, A => of_integer!(to, Y => unary::<of::ToS, A, Y>())),
        Conv::ToU => of_float!(from, A => of_integer!(to, Y => unary::<of::ToU, A, Y>())),
        Conv::Float => match (from, to) {
            (Elem::F32, Elem::F64) => unary::<of::Widen, f32, f64>(),
            (Elem::F64, Elem::F32) => unary::<of::Narrow, f64, f32>(),
            _ => None,
        },
        Conv::OfHalf => plain_unary::<of::OfHalf, u16, f32>(),
        Conv::ToHalf => plain_unary::<of::ToHalf, f32, u16>(),
        Conv::Bitcast => copy(to).filter(|_| from.bytes() == to.bytes()),
        Conv::OfBit => of_number!(to, T => unary::<of::OfBit, u8, T>()),
    }
}

/// The functions of an accumulator.
pub(super) fn reducer(reduce: Reduce, elem: Elem) -> Option<&'static Reducer> {
    match reduce {
        Reduce::Add => of_number!(elem, T => Some(Reducer::of::<of::Add, T>())),
        Reduce::Mul => of_number!(elem, T => Some(Reducer::of::<of::Mul, T>())),
        Reduce::Min => of_number!(elem, T => Some(Reducer::of::<of::Min, T>())),
        Reduce::Max => of_number!(elem, T => Some(Reducer::of::<of::Max, T>())),
        Reduce::MinU => of_integer!(elem, T => Some(Reducer::of::<of::MinU, T>())),
        Reduce::MaxU => of_integer!(elem, T => Some(Reducer::of::<of::MaxU, T>())),
        Reduce::And => of_bits!(elem, T => Some(Reducer::of::<of::And, T>())),
        Reduce::Or => of_bits!(elem, T => Some(Reducer::of::<of::Or, T>())),
    }
}

/// The function that repeats a scalar.
pub(super) fn splat(elem: Elem) -> Option<unsafe fn(*const u8, *mut u8, usize)> {
    of_bits!(elem, T => Some(lanes::splat::<T>))
}

/// The function that writes positions.
pub(super) fn positions(elem: Elem) -> Option<fn(&mut [u8], usize)> {
    of_integer!(elem, T => Some(lanes::positions::<T>))
}

/// How elements are loaded.
pub(super) fn load(elem: Elem) -> Option<MoveFn> {
    of_integer!(elem.integer(), T => Some(access::load::<T>))
}

/// How elements are stored: from a vector, or all from one scalar.
pub(super) fn store(elem: Elem, is_vector: bool) -> Option<MoveFn> {
    of_integer!(elem.integer(), T => Some(if is_vector { access::store::<T> } else { access::fill::<T> }))
}

/// How elements at positions of a type are loaded.
pub(super) fn gather(elem: Elem, positions: Elem) -> Option<GatherFn> {
    match positions {
        Elem::I32 => of_integer!(elem.integer(), T => Some(access::gather::<T, u32>)),
        Elem::I64 | Elem::Index => of_integer!(elem.integer(), T => Some(access::gather::<T, u64>)),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::F32 | Elem::F64 => None,
    }
}
