//! The forms of fused products: which operand is overwritten, and which may be in memory.

use super::super::{AllocatedInst, OperandLocation};

/// The opcode of a fused product of packed singles, and its second and third operand.
pub(crate) fn fused_form(inst: &AllocatedInst, is_negated: bool) -> (u8, u8, OperandLocation) {
    let [a, b, c] = inst.src;
    let dst = OperandLocation::Reg(inst.dst);
    let is_register = |location: OperandLocation| matches!(location, OperandLocation::Reg(_));
    let (form, second, third) = if c == dst {
        // dst = second * third + dst
        if is_register(a) { (0xb8, a, b) } else { (0xb8, b, a) }
    } else {
        let other = if a == dst { b } else { a };
        debug_assert!(a == dst || b == dst, "a fused product overwrites an operand: {inst:?}");
        if is_register(other) {
            // dst = second * dst + third
            (0xa8, other, c)
        } else {
            // dst = dst * third + second
            (0x98, c, other)
        }
    };
    (form + 4 * u8::from(is_negated), second.reg(), third)
}
