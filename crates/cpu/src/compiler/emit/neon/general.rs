//! General registers: numbers, addresses, and moves between them and vectors.

use super::super::mir::Elem;
use super::super::{Address, AllocatedInst};
use super::words as w;
use super::words::Condition;
use super::{ARGS, OTHER, SCRATCH, Writer, size_of};

impl Writer<'_> {
    /// Makes a number, in as many instructions as it has 16-bit parts that are neither all ones nor all
    /// zeros.
    pub(super) fn number(&mut self, to: u8, number: i64) {
        let parts = |x: u64| (0..4).filter(move |part| (x >> (16 * part)) as u16 != 0);
        let bits = number as u64;
        // MOVN sets all other bits.
        let is_inverted = parts(!bits).count() < parts(bits).count();
        let (first, flip) = if is_inverted { (w::MOVN, !0) } else { (w::MOVZ, 0) };
        let part_of = |part: u32| (bits >> (16 * part)) as u16;
        let mut halfwords = parts(bits ^ flip);
        let start = halfwords.next().unwrap_or(0);
        self.push(w::mov_part(first, to, part_of(start) ^ flip as u16, start));
        for halfword in halfwords {
            self.push(w::mov_part(w::MOVK, to, part_of(halfword), halfword));
        }
    }

    /// Loads a word of the caller's arguments.
    pub(super) fn argument(&mut self, to: u8, word: u32) {
        let mem = Address { base: ARGS, index: None, scale: 1, offset: 8 * word as i32 };
        self.access(w::LDR_X, 3, to, mem);
    }

    /// `to = from + number`; `scratch` may be `to` where that is not `from`.
    pub(super) fn add_number(&mut self, to: u8, from: u8, number: i64, scratch: u8) {
        let magnitude = number.unsigned_abs();
        if magnitude == 0 {
            return self.move_general(to, from);
        }
        if magnitude >= 1 << 24 {
            self.number(scratch, number);
            return self.push(w::dnm(w::ADD, to, from, scratch));
        }
        let word = if number < 0 { w::sub_imm } else { w::add_imm };
        let (high, low) = (magnitude as u32 >> 12, magnitude as u32 & 0xfff);
        if high != 0 {
            self.push(word(to, from, high, true));
        }
        if low != 0 {
            self.push(word(to, if high == 0 { from } else { to }, low, false));
        }
    }

    pub(super) fn mul_number(&mut self, to: u8, from: u8, number: i32) {
        if number > 0 && number & (number - 1) == 0 {
            return self.push(w::lsl(to, from, number.trailing_zeros()));
        }
        let less = i64::from(number) - 1;
        if less > 0 && less & (less - 1) == 0 {
            return self.push(w::add_shifted(to, from, from, less.trailing_zeros()));
        }
        self.number(SCRATCH, number.into());
        self.push(w::dnm(w::MUL, to, from, SCRATCH));
    }

    /// The first source if it compares so to the second, else that.
    pub(super) fn extreme(&mut self, inst: &AllocatedInst, condition: Condition) {
        let (a, b) = (inst.src[0].reg(), inst.src[1].reg());
        self.push(w::cmp(a, b));
        self.push(w::csel(inst.dst, a, b, condition));
    }

    /// `to = base + index * scale + offset`.
    pub(super) fn address_to(&mut self, to: u8, mem: Address) {
        let from = match mem.index {
            Some(index) => {
                self.push(w::add_shifted(to, mem.base, index, mem.scale.trailing_zeros()));
                to
            }
            None => mem.base,
        };
        if from != to || mem.offset != 0 {
            self.add_number(to, from, mem.offset.into(), SCRATCH);
        }
    }

    /// A register that has the address. It may be x17, and x16 may be lost.
    pub(super) fn address(&mut self, mem: Address) -> u8 {
        if mem.index.is_none() && mem.offset == 0 {
            return mem.base;
        }
        self.address_to(OTHER, mem);
        OTHER
    }

    /// Loads or stores `1 << size` bytes.
    pub(super) fn access(&mut self, word: u32, size: u32, reg: u8, mem: Address) {
        let offset = mem.offset;
        if let Some(index) = mem.index {
            let shift = mem.scale.trailing_zeros();
            if offset == 0 && (shift == 0 || shift == size) {
                return self.push(w::at_index(word, reg, mem.base, index, shift != 0));
            }
            self.push(w::add_shifted(OTHER, mem.base, index, shift));
            return self.access(word, size, reg, Address { base: OTHER, index: None, scale: 1, offset });
        }
        if offset >= 0 && offset.trailing_zeros() >= size && offset >> size < 4096 {
            self.push(w::at_units(word, reg, mem.base, offset as u32 >> size));
        } else if (-256..256).contains(&offset) {
            self.push(w::at_near(word, reg, mem.base, offset));
        } else {
            self.number(SCRATCH, offset.into());
            self.push(w::at_index(word, reg, mem.base, SCRATCH, false));
        }
    }

    /// A lane by its sign.
    pub(super) fn lane_to_general(&mut self, to: u8, from: u8, elem: Elem, lane: u32) {
        let size = size_of(elem);
        self.push(match (size, lane) {
            (3, 0) => w::dn(w::FMOV_X_D, to, from),
            (3, _) => w::dn(w::V_UMOV | w::Q | w::lane(3, lane), to, from),
            _ => w::dn(w::V_SMOV | w::lane(size, lane), to, from),
        });
    }

    /// A vector whose lane 0 has the low bits.
    pub(super) fn of_general(&mut self, inst: &AllocatedInst) {
        let word = if size_of(inst.elem) == 3 { w::FMOV_D_X } else { w::FMOV_S_W };
        self.push(w::dn(word, inst.dst, inst.src[0].reg()));
    }
}
