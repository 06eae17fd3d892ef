//! The bytes of instructions: prefixes, ModRM, SIB, displacements and immediates.

use super::super::Address;
use super::opcode::Opcode;
use super::{Assembler, Fixup, LONGEST, Pooled, RSP};

/// The operand of an instruction that may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rm {
    Reg(u8),
    /// So many bytes of memory. The index of a gather is a vector, without its fifth bit.
    At(Address, u8),
    /// A constant, as large as the operand.
    Pool(Pooled),
    /// A constant that is repeated for each element.
    Broadcast(Pooled),
}

/// What masks the result of an EVEX instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Masking {
    /// The register; 0 for none.
    pub(crate) mask: u8,
    /// Whether other lanes become 0.
    pub(crate) is_zeroing: bool,
}

/// An instruction in the making.
struct Line {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Line {
    fn new() -> Line {
        Line { bytes: [0; LONGEST], len: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.len & (LONGEST - 1)] = byte;
        self.len += 1;
    }

    fn push4(&mut self, value: i32) {
        for byte in value.to_le_bytes() {
            self.push(byte);
        }
    }
}

/// The high bits of the base and the index.
fn high_bits(rm: Rm) -> (u8, u8) {
    match rm {
        Rm::Reg(reg) => ((reg >> 3) & 1, (reg >> 4) & 1),
        Rm::At(address, _) => (address.base >> 3, address.index.map_or(0, |index| index >> 3)),
        Rm::Pool(_) | Rm::Broadcast(_) => (0, 0),
    }
}

impl Assembler {
    fn write(&mut self, line: &Line) {
        if self.bytes.len() < self.len + LONGEST {
            self.bytes.resize(2 * self.bytes.len() + LONGEST, 0);
        }
        self.bytes[self.len..self.len + LONGEST].copy_from_slice(&line.bytes);
        self.len += line.len;
    }

    /// Appends ModRM and what belongs to it. Displacements of one byte count units.
    fn modrm(&mut self, line: &mut Line, reg: u8, rm: Rm, unit: i32, immediate: u32) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(rm) => line.push(0xc0 | reg | (rm & 7)),
            Rm::At(address, _) => address_bytes(line, reg, address, unit),
            Rm::Pool(constant) | Rm::Broadcast(constant) => {
                line.push(reg | 5);
                let at = (self.len + line.len) as u32;
                self.fixups.push(Fixup { at, end: at + 4 + immediate, constant });
                line.push4(0);
            }
        }
    }

    /// An instruction with an EVEX prefix on vectors of so many bytes. The fifth bit of `v` belongs to the index of
    /// a gather too.
    #[expect(clippy::too_many_arguments, reason = "these are the fields of the encoding")]
    pub(crate) fn evex(
        &mut self,
        op: Opcode,
        bytes: usize,
        reg: u8,
        v: u8,
        rm: Rm,
        masking: Masking,
        immediate: Option<u8>,
    ) {
        let mut line = Line::new();
        let (b, x) = high_bits(rm);
        let inverted = ((reg >> 3) & 1) << 7 | x << 6 | b << 5 | (reg >> 4) << 4;
        let unit = match rm {
            Rm::At(_, bytes) => i32::from(bytes),
            Rm::Reg(_) | Rm::Pool(_) | Rm::Broadcast(_) => 1,
        };
        line.push(0x62);
        line.push((inverted ^ 0xf0) | op.map);
        line.push(u8::from(op.evex_w) << 7 | (!v & 15) << 3 | 4 | op.prefix);
        line.push(
            u8::from(masking.is_zeroing) << 7
                | ((bytes >> 5) as u8) << 5
                | u8::from(matches!(rm, Rm::Broadcast(_))) << 4
                | ((v >> 4) ^ 1) << 3
                | masking.mask,
        );
        line.push(op.code);
        self.modrm(&mut line, reg, rm, unit, u32::from(immediate.is_some()));
        if let Some(immediate) = immediate {
            line.push(immediate);
        }
        self.write(&line);
    }

    /// An instruction with a VEX prefix on vectors of so many bytes.
    pub(crate) fn vex(&mut self, op: Opcode, bytes: usize, reg: u8, v: u8, rm: Rm, immediate: Option<u8>) {
        debug_assert!(
            reg < 16 && v < 16 && !matches!(rm, Rm::Broadcast(_) | Rm::Reg(16..)),
            "{reg} {v} {rm:?}"
        );
        let mut line = Line::new();
        let (b, x) = high_bits(rm);
        let last = (!v & 15) << 3 | u8::from(bytes == 32) << 2 | op.prefix;
        let r = (reg >> 3) ^ 1;
        if b | x == 0 && op.map == 1 && !op.vex_w {
            line.push(0xc5);
            line.push(r << 7 | last);
        } else {
            line.push(0xc4);
            line.push(r << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | op.map);
            line.push(u8::from(op.vex_w) << 7 | last);
        }
        line.push(op.code);
        self.modrm(&mut line, reg, rm, 1, u32::from(immediate.is_some()));
        if let Some(immediate) = immediate {
            line.push(immediate);
        }
        self.write(&line);
    }

    /// An instruction on general registers. `code` is the opcode, whose high byte is 0F or nothing. Registers are
    /// marked as named.
    pub(crate) fn legacy(&mut self, is_wide: bool, code: u16, reg: u8, rm: Rm, immediate: Immediate) {
        let mut line = Line::new();
        let (b, x) = high_bits(rm);
        let rex = u8::from(is_wide) << 3 | (reg >> 3) << 2 | x << 1 | b;
        // Without the prefix, numbers 4 to 7 are other registers where operands have one byte.
        if rex != 0 || matches!(code, BYTE_STORE | BYTE_ZERO | BYTE_SIGN | BYTE_TEST) {
            line.push(0x40 | rex);
        }
        if code >> 8 != 0 {
            line.push((code >> 8) as u8);
        }
        line.push(code as u8);
        self.generals |= 1 << reg;
        if let Rm::Reg(rm) = rm {
            self.generals |= 1 << rm;
        }
        let immediate_bytes = match immediate {
            Immediate::None => 0,
            Immediate::Byte(_) => 1,
            Immediate::Four(_) => 4,
        };
        self.modrm(&mut line, reg, rm, 1, immediate_bytes);
        match immediate {
            Immediate::None => {}
            Immediate::Byte(byte) => line.push(byte as u8),
            Immediate::Four(value) => line.push4(value),
        }
        self.write(&line);
    }

    /// Bytes as they are.
    pub(crate) fn raw<const N: usize>(&mut self, bytes: [u8; N]) {
        let mut line = Line::new();
        for byte in bytes {
            line.push(byte);
        }
        self.write(&line);
    }

    /// Marks a general register that an instruction with another encoding writes.
    pub(crate) fn names_general(&mut self, reg: u8) {
        self.generals |= 1 << reg;
    }

    // Jumps.

    /// Puts a label here.
    pub(super) fn label(&mut self, label: u32) {
        self.labels[label as usize] = self.len as u32;
    }

    /// Jumps to a label: always, or on a condition of the flags.
    pub(super) fn jump(&mut self, condition: Option<Condition>, label: u32) {
        let target = self.labels[label as usize];
        let distance = i64::from(target) - (self.len as i64 + 2);
        if target != u32::MAX && distance >= -128 {
            let code = condition.map_or(0xeb, |condition| 0x70 | condition as u8);
            self.raw([code, distance as u8]);
            return;
        }
        self.long_jump(condition);
        let at = self.len as u32 - 4;
        if target == u32::MAX {
            self.jumps.push((at, label));
        } else {
            self.patch(at, target);
        }
    }

    /// Leaves the function, with its status in eax, on a condition.
    pub(super) fn exit(&mut self, condition: Condition) {
        self.long_jump(Some(condition));
        self.exits.push(self.len as u32 - 4);
    }

    fn long_jump(&mut self, condition: Option<Condition>) {
        match condition {
            Some(condition) => self.raw([0x0f, 0x80 | condition as u8, 0, 0, 0, 0]),
            None => self.raw([0xe9, 0, 0, 0, 0]),
        }
    }

    /// A short jump forward, whose distance [`Assembler::land`] sets.
    pub(crate) fn skip(&mut self, condition: Condition) -> Skip {
        self.raw([0x70 | condition as u8, 0]);
        Skip(self.len as u32)
    }

    /// Where a short jump goes.
    pub(crate) fn land(&mut self, skip: Skip) {
        let distance = self.len - skip.0 as usize;
        debug_assert!(distance < 128, "a short jump over {distance} bytes");
        self.bytes[skip.0 as usize - 1] = distance as u8;
    }

    /// The position of the next instruction, for [`Assembler::back`].
    pub(crate) fn here(&self) -> usize {
        self.len
    }

    /// A short jump back.
    pub(crate) fn back(&mut self, condition: Condition, to: usize) {
        let distance = to as i64 - (self.len as i64 + 2);
        debug_assert!(distance >= -128, "a short jump over {distance} bytes");
        self.raw([0x70 | condition as u8, distance as u8]);
    }

    /// Sets a displacement of four bytes at the end of an instruction.
    fn patch(&mut self, at: u32, target: u32) {
        self.set4(at, target.wrapping_sub(at + 4));
    }

    fn set4(&mut self, at: u32, value: u32) {
        self.bytes[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Sets the displacements of all jumps.
    pub(super) fn link(&mut self, exit: u32) {
        for at in 0..self.jumps.len() {
            let (at, label) = self.jumps[at];
            self.patch(at, self.labels[label as usize]);
        }
        for at in 0..self.exits.len() {
            self.patch(self.exits[at], exit);
        }
    }

    /// Sets the displacements to constants, in a pool that begins at this position.
    pub(super) fn link_pool(&mut self, pool: usize, vector_bytes: usize) {
        for at in 0..self.fixups.len() {
            let Fixup { at, end, constant } = self.fixups[at];
            let target = pool + self.pool.offset(constant, vector_bytes);
            self.set4(at, (target as u32).wrapping_sub(end));
        }
    }
}

/// A short jump whose distance is not known.
#[must_use]
pub(crate) struct Skip(u32);

/// A condition of the flags, by its number in encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Condition {
    Below = 2,
    NotBelow = 3,
    Equal = 4,
    NotEqual = 5,
    Less = 12,
    NotLess = 13,
    NotGreater = 14,
    Greater = 15,
}

/// An immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Immediate {
    None,
    Byte(i8),
    Four(i32),
}

impl Immediate {
    /// The shorter form for a number, and the opcode that goes with it.
    pub(crate) fn shortest(value: i32, short: u16, long: u16) -> (u16, Immediate) {
        match i8::try_from(value) {
            Ok(byte) => (short, Immediate::Byte(byte)),
            Err(_) => (long, Immediate::Four(value)),
        }
    }
}

/// Opcodes with operands of one byte.
pub(crate) const BYTE_STORE: u16 = 0x88;
pub(crate) const BYTE_ZERO: u16 = 0x0fb6;
pub(crate) const BYTE_SIGN: u16 = 0x0fbe;
pub(crate) const BYTE_TEST: u16 = 0xf6;

/// ModRM, SIB and displacement of an address. Some registers cannot go without SIB or displacement.
fn address_bytes(line: &mut Line, reg: u8, address: Address, unit: i32) {
    let Address { base, index, scale, offset } = address;
    let low = base & 7;
    let short = if offset % unit == 0 { i8::try_from(offset / unit).ok() } else { None };
    let mode = match short {
        Some(0) if low != 5 => 0,
        Some(_) => 0x40,
        None => 0x80,
    };
    match index {
        Some(index) => {
            line.push(mode | reg | 4);
            line.push((scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | low);
        }
        None if low == RSP => {
            line.push(mode | reg | 4);
            line.push(0x24);
        }
        None => line.push(mode | reg | low),
    }
    match (mode, short) {
        (0, _) => {}
        (_, Some(short)) => line.push(short as u8),
        (_, None) => line.push4(offset),
    }
}
