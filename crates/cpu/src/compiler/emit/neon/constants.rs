//! Constants: immediates where there is one, else literals behind the code.

use super::super::constant_bytes;
use super::super::mir::{Constant, Elem};
use super::Writer;
use super::words as w;

impl Writer<'_> {
    /// Makes a constant of the pool, in all lanes that fit a register.
    pub(super) fn constant(&mut self, to: u8, constant: u32) {
        match self.function.constants[constant as usize] {
            Constant::Splat(Elem::Bit, bits) => self.splat(to, (bits & 1).wrapping_neg()),
            Constant::Splat(elem, bits) => {
                let width = 8 * elem.bytes();
                let low = bits & u64::MAX >> (64 - width);
                self.splat(to, (0..64).step_by(width).fold(0, |all, at| all | low << at));
            }
            Constant::Iota(elem) => self.iota(to, elem),
            Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
        }
    }

    /// The position of each lane.
    pub(super) fn iota(&mut self, to: u8, elem: Elem) {
        let bytes = constant_bytes(Constant::Iota(elem), (16 / elem.bytes()) as u8);
        self.asm.load_literal(to, bytes.try_into().expect("lanes fill a register"));
    }

    /// The same 64 bits twice.
    fn splat(&mut self, to: u8, bits: u64) {
        if let Some((mode, immediate)) = immediate(bits) {
            return self.push(w::movi(to, mode, immediate));
        }
        let mut literal = [0; 16];
        literal[..8].copy_from_slice(&bits.to_le_bytes());
        literal[8..].copy_from_slice(&bits.to_le_bytes());
        self.asm.load_literal(to, literal);
    }
}

/// The mode and the eight bits that make 64 bits of a vector.
fn immediate(bits: u64) -> Option<(u32, u32)> {
    // Each bit stands for a byte of all ones.
    if bits.to_le_bytes().iter().all(|&byte| byte == 0 || byte == 0xff) {
        let mask = (0..8).fold(0, |mask, byte| mask | (bits >> (8 * byte) & 1) << byte);
        return Some((0b1_1110, mask as u32));
    }
    let (low, high) = (bits as u32, (bits >> 32) as u32);
    if low == high {
        return immediate_of_word(low);
    }
    // A float of few bits: a sign, an exponent near 0 and four bits of a fraction.
    let exponent = bits >> 54 & 0x1ff;
    let is_float = bits & 0xffff_ffff_ffff == 0 && (exponent == 0x100 || exponent == 0x0ff);
    is_float.then_some((0b1_1111, (bits >> 63 << 7 | (bits >> 61 & 1) << 6 | (bits >> 48 & 0x3f)) as u32))
}

/// As [`immediate`], for the same 32 bits twice.
fn immediate_of_word(word: u32) -> Option<(u32, u32)> {
    let half = word & 0xffff;
    if word >> 16 == half {
        if half >> 8 == half & 0xff {
            return Some((0b0_1110, half & 0xff));
        }
        for (mode, half) in [(0b0_1000, half), (0b1_1000, !half & 0xffff)] {
            for (shifted, at) in [(0, 0), (0b10, 8)] {
                if half & !(0xff << at) == 0 {
                    return Some((mode | shifted, half >> at));
                }
            }
        }
    }
    // One byte that is not 0, or the inverse; or one above ones.
    for (inverse, word) in [(0, word), (0b1_0000, !word)] {
        for byte in 0..4 {
            if word & !(0xff << (8 * byte)) == 0 {
                return Some((inverse | byte << 1, word >> (8 * byte)));
            }
        }
        for (mode, ones, at) in [(0b1100, 0xff, 8), (0b1101, 0xffff, 16)] {
            if word & ones == ones && word >> at <= 0xff {
                return Some((inverse | mode, word >> at));
            }
        }
    }
    let exponent = word >> 25 & 0x3f;
    let is_float = word & 0x7_ffff == 0 && (exponent == 0x20 || exponent == 0x1f);
    is_float.then_some((0b0_1111, word >> 31 << 7 | (word >> 29 & 1) << 6 | (word >> 19 & 0x3f)))
}
