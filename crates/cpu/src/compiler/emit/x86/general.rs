//! Instructions on general registers.

use super::super::mir::{Cond, Op};
use super::super::{Address, AllocatedInst, Constraint, OperandLocation};
use super::encode::{BYTE_SIGN, BYTE_STORE, BYTE_ZERO, Condition, Immediate};
use super::{Assembler, RBX, Rm, SCRATCH, general_operand};

pub(crate) const MOV: u16 = 0x8b;
const MOV_STORE: u16 = 0x89;
/// Loads of 1 and 2 bytes, extended by zeros.
pub(crate) const LOAD1: u16 = BYTE_ZERO;
pub(crate) const LOAD2: u16 = 0x0fb7;
/// Copies and loads of 1, 2 and 4 bytes, extended by the sign.
pub(crate) const SIGN1: u16 = BYTE_SIGN;
pub(crate) const SIGN2: u16 = 0x0fbf;
pub(crate) const SIGN4: u16 = 0x63;
const LEA: u16 = 0x8d;
const ADD: u16 = 0x03;
const SUB: u16 = 0x2b;
const CMP: u16 = 0x3b;
const XOR: u16 = 0x33;
const IMUL: u16 = 0x0faf;
const CMOV: u16 = 0x0f40;

/// What instructions on general registers alone ask of their operands.
pub(crate) fn constraint(op: Op) -> Constraint {
    let slot = if let Op::AddNumber(_) | Op::MulNumber(_) = op {
        0b1
    } else if let Op::GeneralAdd | Op::GeneralSub | Op::GeneralMul | Op::GeneralMin | Op::GeneralMax = op {
        0b11
    } else {
        0
    };
    Constraint { slot, ..Constraint::default() }
}

/// The condition of the flags after a comparison.
pub(super) fn condition(cond: Cond) -> Condition {
    match cond {
        Cond::Eq => Condition::Equal,
        Cond::Ne => Condition::NotEqual,
        Cond::Lt => Condition::Less,
        Cond::Le => Condition::NotGreater,
        Cond::Gt => Condition::Greater,
        Cond::Ge => Condition::NotLess,
    }
}

impl Assembler {
    /// An instruction on eight bytes without an immediate.
    pub(crate) fn general(&mut self, code: u16, reg: u8, rm: Rm) {
        self.legacy(true, code, reg, rm, Immediate::None);
    }

    /// Copies a general register, or loads it.
    pub(crate) fn general_copy(&mut self, to: u8, from: Rm) {
        if from != Rm::Reg(to) {
            self.general(MOV, to, from);
        }
    }

    pub(crate) fn general_store(&mut self, to: Address, from: u8) {
        self.general(MOV_STORE, from, Rm::At(to, 8));
    }

    pub(crate) fn compare(&mut self, a: u8, b: Rm) {
        self.general(CMP, a, b);
    }

    /// Compares with 0.
    pub(crate) fn test(&mut self, a: u8) {
        self.general(0x85, a, Rm::Reg(a));
    }

    /// Stores the low byte, or the low two.
    pub(crate) fn store_low(&mut self, bytes: u8, to: Rm, from: u8) {
        if bytes == 1 {
            self.legacy(false, BYTE_STORE, from, to, Immediate::None);
        } else {
            // The prefix stands before REX.
            self.raw([0x66]);
            self.legacy(false, MOV_STORE, from, to, Immediate::None);
        }
    }

    /// Copies if the condition holds.
    pub(crate) fn copy_if(&mut self, condition: Condition, to: u8, from: Rm) {
        self.general(CMOV | condition as u16, to, from);
    }

    pub(crate) fn address(&mut self, to: u8, address: Address) {
        if address.index.is_none() && address.offset == 0 {
            self.general_copy(to, Rm::Reg(address.base));
        } else {
            self.general(LEA, to, Rm::At(address, 8));
        }
    }

    pub(crate) fn number(&mut self, to: u8, number: i64) {
        if number == 0 {
            self.legacy(false, XOR, to, Rm::Reg(to), Immediate::None);
        } else if let Ok(low) = u32::try_from(number) {
            let [a, b, c, d] = low.to_le_bytes();
            self.names_general(to);
            if to < 8 {
                self.raw([0xb8 | to, a, b, c, d]);
            } else {
                self.raw([0x41, 0xb8 | (to & 7), a, b, c, d]);
            }
        } else if let Ok(low) = i32::try_from(number) {
            self.legacy(true, 0xc7, 0, Rm::Reg(to), Immediate::Four(low));
        } else {
            let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
            self.names_general(to);
            self.raw([0x48 | to >> 3, 0xb8 | (to & 7), a, b, c, d, e, f, g, h]);
        }
    }

    /// Adds a number to a register.
    pub(crate) fn add_number(&mut self, to: u8, number: i32) {
        if number != 0 {
            let (code, immediate) = Immediate::shortest(number, 0x83, 0x81);
            self.legacy(true, code, 0, Rm::Reg(to), immediate);
        }
    }

    /// Shifts a register to the left.
    pub(crate) fn shift_left(&mut self, to: u8, by: u8) {
        if by != 0 {
            self.legacy(true, 0xc1, 4, Rm::Reg(to), Immediate::Byte(by as i8));
        }
    }

    fn mul_number(&mut self, to: u8, from: Rm, number: i32) {
        if number == 0 {
            self.number(to, 0);
        } else if number > 0 && number & (number - 1) == 0 {
            self.general_copy(to, from);
            self.shift_left(to, number.trailing_zeros() as u8);
        } else {
            let (code, immediate) = Immediate::shortest(number, 0x6b, 0x69);
            self.legacy(true, code, to, from, immediate);
        }
    }

    /// The caller's argument at a position.
    pub(crate) fn argument(&mut self, to: u8, word: u32) {
        self.general(MOV, to, Rm::At(argument(word), 8));
    }

    /// An op of two operands that may be swapped, of which one may be in memory.
    fn swappable(
        &mut self,
        dst: u8,
        a: OperandLocation,
        b: OperandLocation,
        op: impl FnOnce(&mut Assembler, Rm),
    ) {
        let (a, b) = if b == OperandLocation::Reg(dst) { (b, a) } else { (a, b) };
        self.general_copy(dst, general_operand(a));
        op(self, general_operand(b));
    }

    fn add(&mut self, dst: u8, a: OperandLocation, b: OperandLocation) {
        match (a, b) {
            (OperandLocation::Reg(base), OperandLocation::Reg(index)) if base != dst && index != dst => {
                self.general(LEA, dst, Rm::At(Address { base, index: Some(index), scale: 1, offset: 0 }, 8));
            }
            _ => self.swappable(dst, a, b, |asm, b| asm.general(ADD, dst, b)),
        }
    }

    fn sub(&mut self, dst: u8, a: OperandLocation, b: OperandLocation) {
        if b == OperandLocation::Reg(dst) && a != b {
            self.legacy(true, 0xf7, 3, Rm::Reg(dst), Immediate::None);
            self.general(ADD, dst, general_operand(a));
        } else {
            self.general_copy(dst, general_operand(a));
            self.general(SUB, dst, general_operand(b));
        }
    }

    /// An instruction on general registers alone.
    pub(crate) fn general_inst(&mut self, inst: &AllocatedInst) {
        let [a, b, _] = inst.src;
        let dst = inst.dst;
        match (inst.op, a) {
            (Op::Number(number), _) => self.number(dst, number),
            (Op::Argument(word), _) => self.argument(dst, word.into()),
            (Op::AddNumber(number), OperandLocation::Reg(base)) if base != dst => {
                self.address(dst, Address { base, index: None, scale: 1, offset: number });
            }
            (Op::AddNumber(number), _) => {
                self.general_copy(dst, general_operand(a));
                self.add_number(dst, number);
            }
            (Op::MulNumber(number), _) => self.mul_number(dst, general_operand(a), number),
            (Op::GeneralAdd, _) => self.add(dst, a, b),
            (Op::GeneralSub, _) => self.sub(dst, a, b),
            (Op::GeneralMul, _) => self.swappable(dst, a, b, |asm, b| asm.general(IMUL, dst, b)),
            (Op::GeneralMin | Op::GeneralMax, _) => {
                let take = if inst.op == Op::GeneralMin { Condition::Greater } else { Condition::Less };
                self.swappable(dst, a, b, |asm, b| {
                    asm.compare(dst, b);
                    asm.copy_if(take, dst, b);
                });
            }
            _ => unreachable!("{:?} is not on general registers alone", inst.op),
        }
    }

    /// The lesser of a count, which is not negative, and a number, in the scratch register.
    pub(crate) fn clamp(&mut self, count: u8, number: u8) {
        self.number(SCRATCH, number.into());
        self.compare(count, Rm::Reg(SCRATCH));
        self.copy_if(Condition::Below, SCRATCH, Rm::Reg(count));
    }
}

/// The address of an argument.
pub(super) fn argument(word: u32) -> Address {
    Address { base: RBX, index: None, scale: 1, offset: 8 * word as i32 }
}
