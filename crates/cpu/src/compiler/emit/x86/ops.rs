//! What is the same of ops for both emitters.

use super::super::mir::{Cmp, Conv, Elem, Op};

/// Whether an op is on elements, which have a width.
pub(crate) fn is_of_elements(op: Op) -> bool {
    let is_arithmetic = matches!(
        op,
        Op::Not
            | Op::Sqrt
            | Op::Floor
            | Op::Ceil
            | Op::Trunc
            | Op::Nearest
            | Op::PopCount
            | Op::LeadingZeros
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Min
            | Op::Max
            | Op::MinU
            | Op::MaxU
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::AndNot
            | Op::Shl
            | Op::Shr
            | Op::Sar
            | Op::ShlBy(_)
            | Op::ShrBy(_)
            | Op::SarBy(_)
            | Op::RotBy(_)
            | Op::Scale
            | Op::Fma
            | Op::Fnma
            | Op::Flip
            | Op::Compare(_)
            | Op::Test
            | Op::Select
            | Op::Convert(..)
    );
    is_arithmetic
        || matches!(
            op,
            Op::Splat
                | Op::Unzip(_)
                | Op::Zip(_)
                | Op::Fold { .. }
                | Op::Reverse
                | Op::Permute(_)
                | Op::Upper(_)
                | Op::Load
                | Op::LoadSplat
                | Op::LoadPart
                | Op::Store
                | Op::StoreStreaming
                | Op::StorePart
                | Op::Gather(_)
        )
}

/// Whether operands may be swapped. Min and Max of floats are not the same the other way round.
pub(crate) fn is_swappable(op: Op, elem: Elem) -> bool {
    if let Op::Min | Op::Max = op {
        return !elem.is_float();
    }
    [Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::MinU, Op::MaxU].contains(&op)
}

/// The predicate of a comparison, and that of the one with swapped operands.
pub(crate) fn predicates(cmp: Cmp, is_float: bool) -> (u8, u8) {
    match (cmp, is_float) {
        (Cmp::Eq, _) => (0, 0),
        (Cmp::Ne, _) => (4, 4),
        // Less, or greater, than; ordered and quiet.
        (Cmp::Lt | Cmp::LtU, true) => (0x11, 0x1e),
        (Cmp::Le | Cmp::LeU, true) => (0x12, 0x1d),
        (Cmp::Lt | Cmp::LtU, false) => (1, 6),
        (Cmp::Le | Cmp::LeU, false) => (2, 5),
    }
}

/// Whether there is code for a conversion. Floats are converted from and to integers of four and eight bytes
/// only.
pub(crate) fn has_conversion(conv: Conv, from: Elem, to: Elem) -> bool {
    let is_integer = |elem| matches!(elem, Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64);
    let is_large = |elem| matches!(elem, Elem::I32 | Elem::I64);
    match conv {
        Conv::ZeroExtend | Conv::SignExtend => {
            is_integer(from) && is_integer(to) && from.bytes() < to.bytes()
        }
        Conv::Truncate => is_integer(from) && is_integer(to) && from.bytes() > to.bytes(),
        Conv::FloatOfS | Conv::FloatOfU => is_large(from) && to.is_float(),
        Conv::ToS | Conv::ToU => from.is_float() && is_large(to),
        Conv::Float => from.is_float() && to.is_float() && from != to,
        Conv::OfHalf => from == Elem::I16 && to == Elem::F32,
        Conv::ToHalf => from == Elem::F32 && to == Elem::I16,
        Conv::Bitcast => from.bytes() == to.bytes() && from.bytes() > 0,
        // A predicate has the width of an integer.
        Conv::OfBit => from == Elem::Bit || is_integer(from) && from.bytes() == to.bytes(),
        Conv::ToIndex | Conv::OfIndex => false,
    }
}
