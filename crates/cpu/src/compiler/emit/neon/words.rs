//! The words of the instructions that this back end uses. Registers are by number; 31 is the stack pointer or
//! zero.

/// The bits of `n` at the places of the registers `d`, `n` and `m`.
pub(super) const fn dnm(word: u32, d: u8, n: u8, m: u8) -> u32 {
    word | (m as u32) << 16 | (n as u32) << 5 | d as u32
}

/// As [`dnm`], without a third register.
pub(super) const fn dn(word: u32, d: u8, n: u8) -> u32 {
    word | (n as u32) << 5 | d as u32
}

// General registers of 64 bits.

pub(super) const ADD: u32 = 0x8b00_0000;
pub(super) const SUB: u32 = 0xcb00_0000;
/// Multiplies; the addend is the zero register.
pub(super) const MUL: u32 = 0x9b00_7c00;
pub(super) const CLZ: u32 = 0xdac0_1000;
pub(super) const BLR: u32 = 0xd63f_0000;
pub(super) const RET: u32 = 0xd65f_03c0;
/// What indirect calls may land on.
pub(super) const BTI_C: u32 = 0xd503_245f;
pub(super) const MRS_FPCR: u32 = 0xd53b_4400;
pub(super) const MSR_FPCR: u32 = 0xd51b_4400;
pub(super) const MOVZ: u32 = 0xd280_0000;
pub(super) const MOVN: u32 = 0x9280_0000;
pub(super) const MOVK: u32 = 0xf280_0000;

/// The zero register, or the stack pointer where an instruction takes it.
pub(super) const ZERO: u8 = 31;
pub(super) const SP: u8 = 31;

/// A condition after a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Condition {
    Eq = 0,
    Ne = 1,
    Ge = 10,
    Lt = 11,
    Gt = 12,
    Le = 13,
}

impl Condition {
    /// The one that holds where this one does not.
    pub(super) const fn inverse(self) -> Condition {
        match self {
            Condition::Eq => Condition::Ne,
            Condition::Ne => Condition::Eq,
            Condition::Ge => Condition::Lt,
            Condition::Lt => Condition::Ge,
            Condition::Gt => Condition::Le,
            Condition::Le => Condition::Gt,
        }
    }
}

/// Sixteen bits at `16 * halfword`, by [`MOVZ`], [`MOVN`] or [`MOVK`].
pub(super) const fn mov_part(word: u32, d: u8, bits: u16, halfword: u32) -> u32 {
    word | halfword << 21 | (bits as u32) << 5 | d as u32
}

pub(super) const fn mov(d: u8, n: u8) -> u32 {
    dnm(0xaa00_0000, d, ZERO, n)
}

/// Adds `imm`, below 4096, shifted to the left by 12 or not.
pub(super) const fn add_imm(d: u8, n: u8, imm: u32, is_shifted: bool) -> u32 {
    dn(0x9100_0000 | (is_shifted as u32) << 22 | imm << 10, d, n)
}

/// Subtracts as [`add_imm`] adds.
pub(super) const fn sub_imm(d: u8, n: u8, imm: u32, is_shifted: bool) -> u32 {
    dn(0xd100_0000 | (is_shifted as u32) << 22 | imm << 10, d, n)
}

/// `n + (m << shift)`.
pub(super) const fn add_shifted(d: u8, n: u8, m: u8, shift: u32) -> u32 {
    dnm(ADD | shift << 10, d, n, m)
}

/// `n << shift`.
pub(super) const fn lsl(d: u8, n: u8, shift: u32) -> u32 {
    dn(0xd340_0000 | ((64 - shift) % 64) << 16 | (63 - shift) << 10, d, n)
}

pub(super) const fn cmp(n: u8, m: u8) -> u32 {
    dnm(0xeb00_0000, ZERO, n, m)
}

/// `n` if the condition holds, else `m`.
pub(super) const fn csel(d: u8, n: u8, m: u8, condition: Condition) -> u32 {
    dnm(0x9a80_0000 | (condition as u32) << 12, d, n, m)
}

// Jumps, whose distance is in words.

/// The 26 bits of a distance.
pub(super) const fn b(distance: i32) -> u32 {
    0x1400_0000 | distance as u32 & 0x3ff_ffff
}

/// The 19 bits of a distance in a conditional jump or a load of a literal.
pub(super) const fn far(word: u32, distance: i32) -> u32 {
    word | (distance as u32 & 0x7_ffff) << 5
}

pub(super) const fn b_if(condition: Condition) -> u32 {
    0x5400_0000 | condition as u32
}

/// Jumps if the 64-bit register is zero.
pub(super) const fn cbz(n: u8) -> u32 {
    0xb400_0000 | n as u32
}

pub(super) const fn cbnz(n: u8) -> u32 {
    0xb500_0000 | n as u32
}

/// Jumps if the low half of the register is zero.
pub(super) const fn cbz_w(n: u8) -> u32 {
    0x3400_0000 | n as u32
}

pub(super) const fn cbnz_w(n: u8) -> u32 {
    0x3500_0000 | n as u32
}

/// Jumps by `distance` words if a bit below 32 is zero.
pub(super) const fn tbz(n: u8, bit: u32, distance: u32) -> u32 {
    0x3600_0000 | bit << 19 | distance << 5 | n as u32
}

// Memory. A word has the kind of the access; the ways to address are added to it.

/// Eight bytes of a general register.
pub(super) const LDR_X: u32 = 0xf940_0000;
pub(super) const STR_X: u32 = 0xf900_0000;
/// A literal of 16 bytes, by its distance.
pub(super) const LDR_Q_LITERAL: u32 = 0x9c00_0000;
pub(super) const LDP_X: u32 = 0xa940_0000;
pub(super) const STP_X: u32 = 0xa900_0000;
pub(super) const LDP_D: u32 = 0x6d40_0000;
pub(super) const STP_D: u32 = 0x6d00_0000;
/// What of the pair instructions makes them add to the base before and after the access.
pub(super) const STP_X_BEFORE: u32 = 0xa980_0000;
pub(super) const LDP_X_AFTER: u32 = 0xa8c0_0000;

/// Loads the low `1 << size` bytes of a vector; the others become zero.
pub(super) const fn ldr_v(size: u32) -> u32 {
    if size == 4 { 0x3dc0_0000 } else { 0x3d40_0000 | size << 30 }
}

pub(super) const fn str_v(size: u32) -> u32 {
    if size == 4 { 0x3d80_0000 } else { 0x3d00_0000 | size << 30 }
}

/// At `n + units * size`, where units are below 4096.
pub(super) const fn at_units(word: u32, t: u8, n: u8, units: u32) -> u32 {
    dn(word | units << 10, t, n)
}

/// At `n + offset`, from -256 to 255.
pub(super) const fn at_near(word: u32, t: u8, n: u8, offset: i32) -> u32 {
    dn(word & !(1 << 24) | (offset as u32 & 0x1ff) << 12, t, n)
}

/// At `n`, to which `offset`, from -256 to 255, is added before the access.
pub(super) const fn at_before(word: u32, t: u8, n: u8, offset: i32) -> u32 {
    at_near(word, t, n, offset) | 3 << 10
}

/// At `n`, to which `offset`, from -256 to 255, is added after the access.
pub(super) const fn at_after(word: u32, t: u8, n: u8, offset: i32) -> u32 {
    at_near(word, t, n, offset) | 1 << 10
}

/// At `n + m`, or `n + m * size`.
pub(super) const fn at_index(word: u32, t: u8, n: u8, m: u8, is_scaled: bool) -> u32 {
    dnm(word & !(1 << 24) | 0x0020_6800 | (is_scaled as u32) << 12, t, n, m)
}

/// Two registers of eight bytes at `n + 8 * units`.
pub(super) const fn pair(word: u32, t: u8, second: u8, n: u8, units: i32) -> u32 {
    dn(word | (units as u32 & 0x7f) << 15 | (second as u32) << 10, t, n)
}

/// Loads an element for all lanes.
pub(super) const LD1R: u32 = 0x0d40_c000;

/// Loads one lane.
pub(super) const fn ld1_lane(t: u8, n: u8, size: u32, lane: u32) -> u32 {
    // The position in bytes is spread over Q, S and the size; the latter also tells 32 from 64 bits.
    let bytes = lane << size;
    let opcode = [0, 2, 4, 4][size as usize];
    let low = if size == 3 { 1 } else { bytes & 3 };
    dn(0x0d40_0000 | bytes >> 3 << 30 | opcode << 13 | (bytes >> 2 & 1) << 12 | low << 10, t, n)
}

// Vectors. Words of integers take `size << 22`, those of floats `(size & 1) << 22`, and all take Q in bit 30.

pub(super) const Q: u32 = 1 << 30;

pub(super) const V_NOT: u32 = 0x2e20_5800;
pub(super) const V_AND: u32 = 0x0e20_1c00;
pub(super) const V_BIC: u32 = 0x0e60_1c00;
pub(super) const V_ORR: u32 = 0x0ea0_1c00;
pub(super) const V_EOR: u32 = 0x2e20_1c00;
/// `d` says by bits whether to take `n` or `m`.
pub(super) const V_BSL: u32 = 0x2e60_1c00;
/// Takes `n` where `m` is set.
pub(super) const V_BIT: u32 = 0x2ea0_1c00;
/// Takes `n` where `m` is not set.
pub(super) const V_BIF: u32 = 0x2ee0_1c00;

pub(super) const V_CNT: u32 = 0x0e20_5800;
pub(super) const V_CLZ: u32 = 0x2e20_4800;
pub(super) const V_NEG: u32 = 0x2e20_b800;
/// Sums of two neighbours, of twice the width; the size is that of the sources.
pub(super) const V_UADDLP: u32 = 0x2e20_2800;
/// Reverse the elements in 64, 32 and 16 bits.
pub(super) const V_REV64: u32 = 0x0e20_0800;
pub(super) const V_REV32: u32 = 0x2e20_0800;
pub(super) const V_REV16: u32 = 0x0e20_1800;

pub(super) const V_ADD: u32 = 0x0e20_8400;
pub(super) const V_SUB: u32 = 0x2e20_8400;
pub(super) const V_MUL: u32 = 0x0e20_9c00;
/// Adds the products of the low halves, of twice the width.
pub(super) const V_UMLAL: u32 = 0x2e20_8000;
pub(super) const V_SMIN: u32 = 0x0e20_6c00;
pub(super) const V_SMAX: u32 = 0x0e20_6400;
pub(super) const V_UMIN: u32 = 0x2e20_6c00;
pub(super) const V_UMAX: u32 = 0x2e20_6400;
/// Maxima of neighbours.
pub(super) const V_UMAXP: u32 = 0x2e20_a400;
pub(super) const V_CMEQ: u32 = 0x2e20_8c00;
pub(super) const V_CMGT: u32 = 0x0e20_3400;
pub(super) const V_CMGE: u32 = 0x0e20_3c00;
pub(super) const V_CMHI: u32 = 0x2e20_3400;
pub(super) const V_CMHS: u32 = 0x2e20_3c00;
pub(super) const V_CMTST: u32 = 0x0e20_8c00;
/// Shift by the low byte of each element, signed.
pub(super) const V_USHL: u32 = 0x2e20_4400;
pub(super) const V_SSHL: u32 = 0x0e20_4400;

pub(super) const V_FADD: u32 = 0x0e20_d400;
pub(super) const V_FSUB: u32 = 0x0ea0_d400;
pub(super) const V_FMUL: u32 = 0x2e20_dc00;
pub(super) const V_FDIV: u32 = 0x2e20_fc00;
pub(super) const V_FMLA: u32 = 0x0e20_cc00;
pub(super) const V_FMLS: u32 = 0x0ea0_cc00;
pub(super) const V_FCMEQ: u32 = 0x0e20_e400;
pub(super) const V_FCMGE: u32 = 0x2e20_e400;
pub(super) const V_FCMGT: u32 = 0x2ea0_e400;
pub(super) const V_FSQRT: u32 = 0x2ea1_f800;
pub(super) const V_FRINTN: u32 = 0x0e21_8800;
pub(super) const V_FRINTP: u32 = 0x0ea1_8800;
pub(super) const V_FRINTM: u32 = 0x0e21_9800;
pub(super) const V_FRINTZ: u32 = 0x0ea1_9800;

/// Floats of one lane: `(size & 1) << 22` is the type.
pub(super) const S_FADD: u32 = 0x1e20_2800;
pub(super) const S_FSUB: u32 = 0x1e20_3800;
pub(super) const S_FMUL: u32 = 0x1e20_0800;
pub(super) const S_FDIV: u32 = 0x1e20_1800;
pub(super) const S_FSQRT: u32 = 0x1e21_c000;
pub(super) const S_FRINTN: u32 = 0x1e24_4000;
pub(super) const S_FRINTP: u32 = 0x1e24_c000;
pub(super) const S_FRINTM: u32 = 0x1e25_4000;
pub(super) const S_FRINTZ: u32 = 0x1e25_c000;
/// `a + n * m` and `a - n * m`, with `a << 10`.
pub(super) const S_FMADD: u32 = 0x1f00_0000;
pub(super) const S_FMSUB: u32 = 0x1f00_8000;
/// The f32 of the 64-bit general register, signed or not, rounded once.
pub(super) const S_SCVTF_X: u32 = 0x9e22_0000;
pub(super) const S_UCVTF_X: u32 = 0x9e23_0000;

// Shifts by constants take `bits << 16`: the width plus a distance to the left, or twice the width less one
// to the right.

pub(super) const V_SHL: u32 = 0x0f00_5400;
pub(super) const V_UQSHL: u32 = 0x2f00_7400;
pub(super) const V_USHR: u32 = 0x2f00_0400;
pub(super) const V_SSHR: u32 = 0x0f00_0400;
pub(super) const V_SRI: u32 = 0x2f00_4400;
/// Widens the low half by zeros, with the width of the sources.
pub(super) const V_UXTL: u32 = 0x2f00_a400;
pub(super) const V_SXTL: u32 = 0x0f00_a400;

// Conversions. The size is that of the narrower elements.

pub(super) const V_XTN: u32 = 0x0e21_2800;
pub(super) const V_SQXTN: u32 = 0x0e21_4800;
pub(super) const V_UQXTN: u32 = 0x2e21_4800;
pub(super) const V_SCVTF: u32 = 0x0e21_d800;
pub(super) const V_UCVTF: u32 = 0x2e21_d800;
pub(super) const V_FCVTZS: u32 = 0x0ea1_b800;
pub(super) const V_FCVTZU: u32 = 0x2ea1_b800;
/// Between f16 and f32; with bit 22 between f32 and f64.
pub(super) const V_FCVTL: u32 = 0x0e21_7800;
pub(super) const V_FCVTN: u32 = 0x0e21_6800;

// Lanes.

/// The bits that name a lane of elements of a size.
pub(super) const fn lane(size: u32, lane: u32) -> u32 {
    (lane << 1 | 1) << size << 16
}

/// A lane for all lanes, with [`lane`] and Q.
pub(super) const V_DUP: u32 = 0x0e00_0400;
/// The low bits of a general register for all lanes.
pub(super) const V_DUP_X: u32 = 0x0e00_0c00;
/// The low bits of a general register to a lane.
pub(super) const V_INS_X: u32 = 0x4e00_1c00;
/// A lane to a general register, by zeros: with Q for 64 bits, else without.
pub(super) const V_UMOV: u32 = 0x0e00_3c00;
/// A lane to a general register of 64 bits, by its sign.
pub(super) const V_SMOV: u32 = 0x4e00_2c00;
/// Lanes of two vectors in turn: of the lower halves, and of the upper ones.
pub(super) const V_ZIP1: u32 = 0x0e00_3800;
pub(super) const V_ZIP2: u32 = 0x0e00_7800;
/// Every other lane of two vectors: the even ones, and the odd ones.
pub(super) const V_UZP1: u32 = 0x0e00_1800;
pub(super) const V_UZP2: u32 = 0x0e00_5800;
pub(super) const FMOV_D_X: u32 = 0x9e67_0000;
pub(super) const FMOV_S_W: u32 = 0x1e27_0000;
pub(super) const FMOV_X_D: u32 = 0x9e66_0000;
pub(super) const FMOV_W_S: u32 = 0x1e26_0000;

/// Lane `from` of `n` to lane `to`.
pub(super) const fn ins(size: u32, d: u8, to: u32, n: u8, from: u32) -> u32 {
    dn(0x6e00_0400 | lane(size, to) | from << size << 11, d, n)
}

/// The bytes of `n`, then of `m`, from `bytes` on.
pub(super) const fn ext(d: u8, n: u8, m: u8, bytes: u32) -> u32 {
    dnm(0x6e00_0000 | bytes << 11, d, n, m)
}

/// All 16 bytes.
pub(super) const fn v_mov(d: u8, n: u8) -> u32 {
    dnm(V_ORR | Q, d, n, n)
}

/// Eight bits, spread over a vector as `mode` (op and cmode) says.
pub(super) const fn movi(d: u8, mode: u32, bits: u32) -> u32 {
    0x4f00_0400 | (mode >> 4) << 29 | (bits >> 5) << 16 | (mode & 15) << 12 | (bits & 31) << 5 | d as u32
}
