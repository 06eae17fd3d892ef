//! Opcodes of vector instructions, which VEX and EVEX share but for a bit.

use super::super::mir::{Elem, Op};

/// An opcode as an instruction without operands: registers and lengths are set in its bits. The lowest byte
/// is the first one. ModRM follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opcode {
    /// With an EVEX prefix: five bytes.
    pub(super) evex: u64,
    /// With a VEX prefix of three bytes: four.
    pub(super) vex: u64,
}

/// The W bit of both prefixes.
const W: u64 = 1 << 23;

impl Opcode {
    /// `prefix` is 0 for none, then 66, F3 and F2; `map` is 1 for 0F, 2 for 0F38, 3 for 0F3A.
    pub(crate) const fn new(prefix: u8, map: u8, code: u8) -> Opcode {
        // Fields for registers are inverted.
        let evex = u64::from_le_bytes([0x62, 0xf0 | map, 0x7c | prefix, 0x08, code, 0, 0, 0]);
        let vex = u64::from_le_bytes([0xc4, 0xe0 | map, 0x78 | prefix, code, 0, 0, 0, 0]);
        Opcode { evex, vex }
    }

    /// None.
    pub(crate) const NONE: Opcode = Opcode { evex: 0, vex: 0 };

    /// No prefix, map 0F.
    pub(crate) const fn plain(code: u8) -> Opcode {
        Opcode::new(0, 1, code)
    }

    /// Prefix 66, map 0F.
    pub(crate) const fn p66(code: u8) -> Opcode {
        Opcode::new(1, 1, code)
    }

    /// Prefix F3, map 0F.
    pub(crate) const fn pf3(code: u8) -> Opcode {
        Opcode::new(2, 1, code)
    }

    /// Prefix F2, map 0F.
    pub(crate) const fn pf2(code: u8) -> Opcode {
        Opcode::new(3, 1, code)
    }

    /// Prefix 66, map 0F38.
    pub(crate) const fn p38(code: u8) -> Opcode {
        Opcode::new(1, 2, code)
    }

    /// Prefix F3, map 0F38.
    pub(crate) const fn pf3_38(code: u8) -> Opcode {
        Opcode::new(2, 2, code)
    }

    /// Prefix 66, map 0F3A.
    pub(crate) const fn p3a(code: u8) -> Opcode {
        Opcode::new(1, 3, code)
    }

    /// With W set.
    pub(crate) const fn w(self) -> Opcode {
        Opcode { evex: self.evex | W, vex: self.vex | W }
    }

    /// With W set in EVEX; VEX ignores the bit.
    pub(crate) const fn ew(self) -> Opcode {
        Opcode { evex: self.evex | W, ..self }
    }
}

/// The opcodes of an op: by the elements, then for scalar floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row([Opcode; 10]);

impl Row {
    /// Opcodes of integers by their width, and of floats: packed singles and doubles, then scalar ones.
    pub(crate) const fn new(integers: [Opcode; 4], floats: [Opcode; 4]) -> Row {
        let mut row = [Opcode::NONE; 10];
        let mut at = 0;
        while at < 4 {
            row[Elem::I8 as usize + at] = integers[at];
            at += 1;
        }
        row[Elem::F32 as usize] = floats[0];
        row[Elem::F64 as usize] = floats[1];
        row[Elem::F32 as usize + SCALAR] = floats[2];
        row[Elem::F64 as usize + SCALAR] = floats[3];
        Row(row)
    }

    /// Those of integers alone.
    pub(crate) const fn integers(integers: [Opcode; 4]) -> Row {
        Row::new(integers, [Opcode::NONE; 4])
    }

    /// The opcode for elements, or [`Opcode::NONE`].
    pub(crate) fn at(&self, elem: Elem, is_scalar: bool) -> Opcode {
        self.0[elem as usize + if is_scalar { SCALAR } else { 0 }]
    }
}

/// How far scalar floats are behind packed ones.
const SCALAR: usize = 3;

/// Arithmetic of floats: packed singles and doubles, then scalar ones.
pub(crate) const fn floats(code: u8) -> [Opcode; 4] {
    [Opcode::plain(code), Opcode::p66(code).ew(), Opcode::pf3(code), Opcode::pf2(code).ew()]
}

/// A target's opcodes of ops of two operands, where one instruction does them.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) add: Row,
    pub(crate) sub: Row,
    pub(crate) mul: Row,
    pub(crate) div: Row,
    pub(crate) min: Row,
    pub(crate) max: Row,
    pub(crate) min_u: Row,
    pub(crate) max_u: Row,
    pub(crate) and: Row,
    pub(crate) or: Row,
    pub(crate) xor: Row,
    pub(crate) and_not: Row,
    pub(crate) shl: Row,
    pub(crate) shr: Row,
    pub(crate) sar: Row,
    pub(crate) scale: Row,
}

impl Rows {
    /// Whether there is an opcode.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other ops have no two operands")]
    pub(crate) fn has(&self, op: Op, elem: Elem) -> bool {
        let row = match op {
            Op::Add => &self.add,
            Op::Sub => &self.sub,
            Op::Mul => &self.mul,
            Op::Div => &self.div,
            Op::Min => &self.min,
            Op::Max => &self.max,
            Op::MinU => &self.min_u,
            Op::MaxU => &self.max_u,
            Op::And => &self.and,
            Op::Or => &self.or,
            Op::Xor => &self.xor,
            Op::AndNot => &self.and_not,
            Op::Shl => &self.shl,
            Op::Shr => &self.shr,
            Op::Sar => &self.sar,
            Op::Scale => &self.scale,
            _ => return false,
        };
        row.at(elem, false) != Opcode::NONE
    }
}

/// The one for the width of the elements, of four for 1, 2, 4 and 8 bytes.
pub(crate) fn by_width<T: Copy>(elem: Elem, four: [T; 4]) -> T {
    match elem {
        Elem::I8 | Elem::Bit => four[0],
        Elem::I16 => four[1],
        Elem::I32 | Elem::F32 => four[2],
        Elem::I64 | Elem::F64 | Elem::Index => four[3],
    }
}

/// Arithmetic of floats: packed, or of the lowest element.
pub(crate) fn float(code: u8, elem: Elem, is_scalar: bool) -> Opcode {
    let is_double = elem == Elem::F64;
    // Prefixes in order are for packed singles and doubles, then for scalar ones.
    let op = Opcode::new(2 * u8::from(is_scalar) + u8::from(is_double), 1, code);
    if is_double { op.ew() } else { op }
}

/// Fused products. The scalar forms have the next opcode.
pub(crate) fn fused(code: u8, elem: Elem, is_scalar: bool) -> Opcode {
    wide(Opcode::p38(code + u8::from(is_scalar)), elem)
}

/// Rounding to integral floats, with the mode in an immediate.
pub(crate) fn round(elem: Elem, is_scalar: bool) -> Opcode {
    let code = 0x08 + 2 * u8::from(is_scalar);
    if elem == Elem::F64 { Opcode::p3a(code + 1).ew() } else { Opcode::p3a(code) }
}

/// One opcode with W for elements of eight bytes.
pub(crate) fn wide(op: Opcode, elem: Elem) -> Opcode {
    if elem.bytes() == 8 { op.w() } else { op }
}

pub(crate) const ADD: [Opcode; 4] =
    [Opcode::p66(0xfc), Opcode::p66(0xfd), Opcode::p66(0xfe), Opcode::p66(0xd4).ew()];
pub(crate) const SUB: [Opcode; 4] =
    [Opcode::p66(0xf8), Opcode::p66(0xf9), Opcode::p66(0xfa), Opcode::p66(0xfb).ew()];
pub(crate) const MIN: [Opcode; 4] =
    [Opcode::p38(0x38), Opcode::p66(0xea), Opcode::p38(0x39), Opcode::p38(0x39).ew()];
pub(crate) const MAX: [Opcode; 4] =
    [Opcode::p38(0x3c), Opcode::p66(0xee), Opcode::p38(0x3d), Opcode::p38(0x3d).ew()];
pub(crate) const MIN_U: [Opcode; 4] =
    [Opcode::p66(0xda), Opcode::p38(0x3a), Opcode::p38(0x3b), Opcode::p38(0x3b).ew()];
pub(crate) const MAX_U: [Opcode; 4] =
    [Opcode::p66(0xde), Opcode::p38(0x3e), Opcode::p38(0x3f), Opcode::p38(0x3f).ew()];
pub(crate) const MUL16: Opcode = Opcode::p66(0xd5);
pub(crate) const MUL32: Opcode = Opcode::p38(0x40);
pub(crate) const AND: Opcode = Opcode::p66(0xdb);
/// `!a & b`.
pub(crate) const AND_NOT: Opcode = Opcode::p66(0xdf);
pub(crate) const OR: Opcode = Opcode::p66(0xeb);
pub(crate) const XOR: Opcode = Opcode::p66(0xef);
pub(crate) const SHL: Opcode = Opcode::p38(0x47);
pub(crate) const SHR: Opcode = Opcode::p38(0x45);
pub(crate) const SAR: Opcode = Opcode::p38(0x46);
/// EVEX only, as the next two.
pub(crate) const SHL16: Opcode = Opcode::p38(0x12).w();
pub(crate) const SHR16: Opcode = Opcode::p38(0x10).w();
pub(crate) const SAR16: Opcode = Opcode::p38(0x11).w();
/// Shifts by an immediate; the digit of ModRM says which.
pub(crate) const SHIFT16: Opcode = Opcode::p66(0x71);
pub(crate) const SHIFT32: Opcode = Opcode::p66(0x72);
pub(crate) const SHIFT64: Opcode = Opcode::p66(0x73).ew();
/// Shifts of 16 bytes by bytes, and of eight by bits.
pub(crate) const SHIFT128: Opcode = Opcode::p66(0x73);
/// Chooses doublewords of two vectors within each 16 bytes.
pub(crate) const SHUFFLE_TWO: Opcode = Opcode::plain(0xc6);

pub(crate) const EQUAL: [Opcode; 4] =
    [Opcode::p66(0x74), Opcode::p66(0x75), Opcode::p66(0x76), Opcode::p38(0x29)];
pub(crate) const GREATER: [Opcode; 4] =
    [Opcode::p66(0x64), Opcode::p66(0x65), Opcode::p66(0x66), Opcode::p38(0x37)];

pub(crate) const BROADCAST: [Opcode; 4] =
    [Opcode::p38(0x78), Opcode::p38(0x79), Opcode::p38(0x58), Opcode::p38(0x59).ew()];

/// Loads of a vector at any address; the store has the next opcode.
pub(crate) const LOAD: Opcode = Opcode::plain(0x10);
pub(crate) const STORE: Opcode = Opcode::plain(0x11);
/// Loads of 4 and 8 bytes, which clear the rest; the stores have the next opcodes.
pub(crate) const LOAD4: Opcode = Opcode::pf3(0x10);
pub(crate) const STORE4: Opcode = Opcode::pf3(0x11);
pub(crate) const LOAD8: Opcode = Opcode::pf2(0x10).ew();
pub(crate) const STORE8: Opcode = Opcode::pf2(0x11).ew();
/// Between registers.
pub(crate) const COPY: Opcode = Opcode::plain(0x28);
pub(crate) const STORE_STREAMING: Opcode = Opcode::plain(0x2b);
/// From and to general registers; with W all eight bytes.
pub(crate) const OF_GENERAL: Opcode = Opcode::p66(0x6e);
pub(crate) const TO_GENERAL: Opcode = Opcode::p66(0x7e);
pub(crate) const EXTRACT1: Opcode = Opcode::p3a(0x14);
pub(crate) const EXTRACT2: Opcode = Opcode::p3a(0x15);
/// 16 bytes of a vector, which are the r/m operand.
pub(crate) const EXTRACT16: Opcode = Opcode::p3a(0x39);
/// Bytes of two vectors as one, shifted within each 16.
pub(crate) const ALIGN_BYTES: Opcode = Opcode::p3a(0x0f);

/// The opcode that widens elements, without sign; that with sign is less by 0x10.
pub(crate) fn widen(from: Elem, to: Elem) -> u8 {
    match (from.bytes(), to.bytes()) {
        (1, 2) => 0x30,
        (1, 4) => 0x31,
        (1, 8) => 0x32,
        (2, 4) => 0x33,
        (2, 8) => 0x34,
        (4, 8) => 0x35,
        _ => unreachable!("{from:?} is not narrower than {to:?}"),
    }
}

pub(crate) const HALF_TO_SINGLE: Opcode = Opcode::p38(0x13);
pub(crate) const SINGLE_TO_HALF: Opcode = Opcode::p3a(0x1d);
pub(crate) const I32_TO_SINGLE: Opcode = Opcode::plain(0x5b);
pub(crate) const I32_TO_DOUBLE: Opcode = Opcode::pf3(0xe6);
pub(crate) const SINGLE_TO_I32: Opcode = Opcode::pf3(0x5b);
pub(crate) const DOUBLE_TO_I32: Opcode = Opcode::p66(0xe6).ew();
