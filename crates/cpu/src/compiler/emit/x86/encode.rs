//! The bytes of instructions: prefixes, ModRM, SIB, displacements and immediates.

use super::super::Address;
use super::opcode::Opcode;
use super::{Assembler, Fixup, Pooled, RSP};

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

/// Where registers are in the bits of an instruction: a table for each field, by the number.
struct Fields {
    /// The register of ModRM, and the one of the prefix.
    reg: [u64; 32],
    v: [u64; 32],
    /// The register that stands in place of memory.
    rm: [u64; 32],
}

impl Fields {
    /// The fields of prefixes have their low bits where EVEX and VEX have them, and the fifth where only EVEX
    /// has it. `modrm` is the first bit of ModRM.
    const fn new(modrm: u32) -> Fields {
        let mut fields = Fields { reg: [0; 32], v: [0; 32], rm: [0; 32] };
        let mut at = 0;
        while at < 32 {
            let number = at as u64;
            let (low, fourth, fifth) = (number & 7, number >> 3 & 1, number >> 4);
            fields.reg[at] = fourth << 15 | fifth << 12 | low << (modrm + 3);
            fields.v[at] = (number & 15) << 19 | fifth << 27;
            fields.rm[at] = fourth << 13 | fifth << 14 | (0xc0 | low) << modrm;
            at += 1;
        }
        fields
    }
}

static EVEX: Fields = Fields::new(40);
static VEX: Fields = Fields::new(32);

/// The bit of EVEX that says that memory is repeated.
const BROADCAST: u64 = 1 << 28;

/// ModRM and what is behind it: SIB, a displacement, an immediate.
#[derive(Clone, Copy)]
struct Tail {
    modrm: u8,
    /// Bytes from the lowest on.
    bytes: u64,
    len: u32,
}

impl Tail {
    /// For an operand; the other register of ModRM is missing. Displacements of one byte count units of so
    /// many bits.
    fn new(rm: Rm, unit: u32) -> Tail {
        match rm {
            Rm::Reg(rm) => Tail { modrm: 0xc0 | (rm & 7), bytes: 0, len: 0 },
            Rm::At(address, _) => Tail::of_address(address, unit),
            Rm::Pool(_) | Rm::Broadcast(_) => Tail { modrm: 5, bytes: 0, len: 4 },
        }
    }

    /// For an address. Some registers cannot go without SIB or displacement.
    fn of_address(address: Address, unit: u32) -> Tail {
        let Address { base, index, scale, offset } = address;
        let low = base & 7;
        let (rm, sib) = match index {
            Some(index) => (RSP, (scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | low),
            None => (low, 0x24),
        };
        let sib_len = u32::from(rm == RSP);
        let sib = u64::from(sib) & (u64::from(sib_len) * 0xff);
        let short = offset >> unit;
        let (mode, displacement, len) = if offset == 0 && low != 5 {
            (0, 0, 0)
        } else if short << unit == offset && i8::try_from(short).is_ok() {
            (0x40, u64::from(short as u8), 1)
        } else {
            (0x80, u64::from(offset as u32), 4)
        };
        Tail { modrm: mode | rm, bytes: sib | displacement << (8 * sib_len), len: sib_len + len }
    }

    /// With a byte behind it, if there is one.
    fn and(self, immediate: Option<u8>) -> Tail {
        match immediate {
            Some(byte) => {
                let bytes = self.bytes | u64::from(byte) << (8 * self.len);
                Tail { bytes, len: self.len + 1, ..self }
            }
            None => self,
        }
    }
}

/// The high bits of the base and the index, where prefixes have them.
fn high_bits(rm: Rm) -> u64 {
    match rm {
        Rm::Reg(reg) => u64::from(reg >> 3) << 13,
        Rm::At(address, _) => {
            let index = address.index.map_or(0, |index| index >> 3);
            u64::from(address.base >> 3) << 13 | u64::from(index) << 14
        }
        Rm::Pool(_) | Rm::Broadcast(_) => 0,
    }
}

/// The form with a prefix of two bytes, if there is one, and its length.
fn short(head: u64, len: usize) -> (u64, usize) {
    // Map 0F, no W, and only the first operand has a high number.
    if head & 0x80_7f00 == 0x6100 {
        (0xc5 | head & 0x8000 | head >> 8 & 0x7f00 | head >> 8 & !0xffff, len - 1)
    } else {
        (head, len)
    }
}

impl Masking {
    /// The bits of the prefix.
    fn bits(self) -> u8 {
        u8::from(self.is_zeroing) << 7 | self.mask
    }
}

impl Assembler {
    /// The position of the next instruction.
    #[inline]
    pub(crate) fn here(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the low bytes of a number. Writing all eight of them first is faster.
    #[inline]
    fn append(&mut self, bytes: u64, len: usize) {
        let end = self.bytes.len() + len;
        self.bytes.extend_from_slice(&bytes.to_le_bytes());
        self.bytes.truncate(end);
    }

    /// Appends an instruction without memory of so many bytes, and an immediate.
    #[inline]
    fn registers(&mut self, head: u64, len: usize, immediate: Option<u8>) {
        match immediate {
            Some(byte) => self.append(head | u64::from(byte) << (8 * len), len + 1),
            None => self.append(head, len),
        }
    }

    /// Appends so many bytes, up to 5, then ModRM and the rest; another immediate of so many bytes follows.
    #[inline]
    fn write(&mut self, head: u64, head_len: usize, tail: Tail, rm: Rm, following: u32) {
        // What the head has of ModRM is its other register.
        self.append(head | u64::from(tail.modrm) << (8 * head_len), head_len + 1);
        let at = self.here();
        self.append(tail.bytes, tail.len as usize);
        if let Rm::Pool(constant) | Rm::Broadcast(constant) = rm {
            self.fixups.push(Fixup { at: at as u32, end: self.here() as u32 + following, constant });
        }
    }

    /// An instruction with an EVEX prefix on vectors of so many bytes. The fifth bit of `v` belongs to the
    /// index of a gather too.
    #[inline]
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
        let head = op.evex ^ EVEX.reg[usize::from(reg & 31)] ^ EVEX.v[usize::from(v & 31)];
        // The length is in bits that are those of its number of bytes.
        let head = head | u64::from(bytes as u8 & 0x60 | masking.bits()) << 24;
        if let Rm::Reg(rm) = rm {
            return self.registers(head ^ EVEX.rm[usize::from(rm & 31)], 6, immediate);
        }
        self.evex_memory(head, rm, immediate);
    }

    /// The rest of an instruction with an operand in memory.
    #[inline(never)]
    fn evex_memory(&mut self, head: u64, rm: Rm, immediate: Option<u8>) {
        match rm {
            Rm::At(_, bytes) => {
                let tail = Tail::new(rm, bytes.trailing_zeros()).and(immediate);
                self.write(head ^ high_bits(rm), 5, tail, rm, 0);
            }
            Rm::Broadcast(_) => self.write(head | BROADCAST, 5, Tail::new(rm, 0).and(immediate), rm, 0),
            Rm::Reg(_) | Rm::Pool(_) => self.write(head, 5, Tail::new(rm, 0).and(immediate), rm, 0),
        }
    }

    /// An instruction with a VEX prefix on vectors of so many bytes.
    #[inline]
    pub(crate) fn vex(&mut self, op: Opcode, bytes: usize, reg: u8, v: u8, rm: Rm, immediate: Option<u8>) {
        debug_assert!(
            reg < 16 && v < 16 && !matches!(rm, Rm::Broadcast(_) | Rm::Reg(16..)),
            "{reg} {v} {rm:?}"
        );
        let head = op.vex ^ VEX.reg[usize::from(reg & 15)] ^ VEX.v[usize::from(v & 15)];
        let head = head | (bytes as u64 & 32) << 13;
        if let Rm::Reg(rm) = rm {
            let (head, len) = short(head ^ VEX.rm[usize::from(rm & 15)], 5);
            return self.registers(head, len, immediate);
        }
        self.vex_memory(head, rm, immediate);
    }

    /// The rest of an instruction with an operand in memory.
    #[inline(never)]
    fn vex_memory(&mut self, head: u64, rm: Rm, immediate: Option<u8>) {
        let (head, len) = short(head ^ high_bits(rm), 4);
        self.write(head, len, Tail::new(rm, 0).and(immediate), rm, 0);
    }

    /// An instruction on general registers. `code` is the opcode, whose high byte is 0F or nothing. Registers
    /// are marked as named.
    pub(crate) fn legacy(&mut self, is_wide: bool, code: u16, reg: u8, rm: Rm, immediate: Immediate) {
        let high = high_bits(rm);
        let rex = u8::from(is_wide) << 3 | (reg >> 3) << 2 | (high >> 13) as u8;
        let (mut head, mut len) =
            if code >> 8 == 0 { (u64::from(code), 1) } else { (u64::from(code.swap_bytes()), 2) };
        // Without the prefix, numbers 4 to 7 are other registers where operands have one byte.
        if rex != 0 || matches!(code, BYTE_STORE | BYTE_ZERO | BYTE_SIGN | BYTE_TEST) {
            head = head << 8 | u64::from(0x40 | rex);
            len += 1;
        }
        self.generals |= 1 << reg;
        if let Rm::Reg(rm) = rm {
            self.generals |= 1 << rm;
        }
        let head = head | u64::from((reg & 7) << 3) << (8 * len);
        let tail = Tail::new(rm, 0);
        match immediate {
            Immediate::None => self.write(head, len, tail, rm, 0),
            Immediate::Byte(byte) => self.write(head, len, tail.and(Some(byte as u8)), rm, 0),
            Immediate::Four(value) => {
                self.write(head, len, tail, rm, 4);
                self.raw(value.to_le_bytes());
            }
        }
    }

    /// Bytes as they are.
    pub(crate) fn raw<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes.extend_from_slice(&bytes);
    }

    /// Marks a general register that an instruction with another encoding writes.
    pub(crate) fn names_general(&mut self, reg: u8) {
        self.generals |= 1 << reg;
    }

    // Jumps.

    /// Puts a label here. One that no jump has gone to yet begins a loop.
    pub(super) fn label(&mut self, label: u32) {
        if !self.is_forward[label as usize] {
            self.align(32);
        }
        self.labels[label as usize] = self.here() as u32;
    }

    /// Jumps to a label: always, or on a condition of the flags.
    pub(super) fn jump(&mut self, condition: Option<Condition>, label: u32) {
        let target = self.labels[label as usize];
        let distance = i64::from(target) - (self.here() as i64 + 2);
        if target != u32::MAX && distance >= -128 {
            let code = condition.map_or(0xeb, |condition| 0x70 | condition as u8);
            self.raw([code, distance as u8]);
            return;
        }
        self.long_jump(condition);
        let at = self.here() as u32 - 4;
        if target == u32::MAX {
            self.is_forward[label as usize] = true;
            self.jumps.push((at, label));
        } else {
            self.patch(at, target);
        }
    }

    /// Leaves the function, with its status in eax, on a condition.
    pub(super) fn exit(&mut self, condition: Condition) {
        self.long_jump(Some(condition));
        self.exits.push(self.here() as u32 - 4);
    }

    fn long_jump(&mut self, condition: Option<Condition>) {
        match condition {
            Some(condition) => self.raw([0x0f, 0x80 | condition as u8, 0, 0, 0, 0]),
            None => self.raw([0xe9, 0, 0, 0, 0]),
        }
    }

    /// A short jump forward, whose distance [`Assembler::bind_skip`] sets.
    pub(crate) fn skip(&mut self, condition: Condition) -> Skip {
        self.raw([0x70 | condition as u8, 0]);
        Skip(self.here() as u32)
    }

    /// Makes a short jump go here.
    pub(crate) fn bind_skip(&mut self, skip: Skip) {
        let distance = self.here() - skip.0 as usize;
        debug_assert!(distance < 128, "a short jump over {distance} bytes");
        self.bytes[skip.0 as usize - 1] = distance as u8;
    }

    /// A short jump back.
    pub(crate) fn back(&mut self, condition: Condition, to: usize) {
        let distance = to as i64 - (self.here() as i64 + 2);
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
