//! Arithmetic of vectors.

use super::super::mir::{Cmp, Elem};
use super::super::{AllocatedInst, OperandLocation};
use super::words as w;
use super::{OTHER, SCRATCH, SCRATCH_V, Shape, Writer, size_of};

/// Whether a rotation by `n` swaps the halves of its elements, which is one instruction.
pub(super) fn is_rev(elem: Elem, n: u8) -> bool {
    elem.bytes() > 1 && usize::from(n) == 4 * elem.bytes()
}

impl Shape {
    /// A word of a shift to the left by a constant.
    pub(super) fn left(self, word: u32, n: u8) -> u32 {
        word | self.q | ((8 << self.size) + u32::from(n)) << 16
    }

    /// A word of a shift to the right by a constant that is not 0.
    pub(super) fn right(self, word: u32, n: u8) -> u32 {
        word | self.q | ((16 << self.size) - u32::from(n)) << 16
    }
}

impl Writer<'_> {
    /// Floats of one or two sources, by the word for one float or that for a vector.
    pub(super) fn float(&mut self, scalar: u32, vector: u32, inst: &AllocatedInst) {
        let shape = Shape::of(inst.elem, inst.lanes);
        let word = if shape.is_scalar { scalar | (shape.size & 1) << 22 } else { vector | shape.float() };
        // The words for one source have other bits at the place of the second.
        let second = if inst.src[1] == OperandLocation::None { 0 } else { inst.src[1].reg() };
        self.push(w::dnm(word, inst.dst, inst.src[0].reg(), second));
    }

    /// Products that are added to `c`, or subtracted from it.
    pub(super) fn fused(&mut self, scalar: u32, vector: u32, inst: &AllocatedInst) {
        let shape = Shape::of(inst.elem, inst.lanes);
        let (d, c) = (inst.dst, inst.src[2].reg());
        let word = if shape.is_scalar {
            scalar | (shape.size & 1) << 22 | u32::from(c) << 10
        } else {
            debug_assert_eq!(d, c, "the addend is in the register of the result");
            vector | shape.float()
        };
        self.push(w::dnm(word, d, inst.src[0].reg(), inst.src[1].reg()));
    }

    /// `a ^ (b & c)`.
    pub(super) fn flip(&mut self, inst: &AllocatedInst) {
        let q = Shape::of(inst.elem, inst.lanes).q;
        self.push(w::dnm(w::V_AND | q, SCRATCH_V, inst.src[1].reg(), inst.src[2].reg()));
        self.push(w::dnm(w::V_EOR | q, inst.dst, inst.src[0].reg(), SCRATCH_V));
    }

    /// Sums the bits of bytes, pair by pair.
    pub(super) fn pop_count(&mut self, inst: &AllocatedInst) {
        let shape = Shape::of(inst.elem, inst.lanes);
        self.push(w::dn(w::V_CNT | shape.q, inst.dst, inst.src[0].reg()));
        for size in 0..shape.size {
            self.push(w::dn(w::V_UADDLP | shape.q | size << 22, inst.dst, inst.dst));
        }
    }

    /// Of 64-bit integers, by general registers.
    pub(super) fn wide_leading_zeros(&mut self, inst: &AllocatedInst) {
        let (d, a) = (inst.dst, inst.src[0].reg());
        // All are read first: the first that is written clears the others.
        let regs = [SCRATCH, OTHER];
        for (lane, &reg) in (0..inst.lanes).zip(&regs) {
            self.lane_to_general(reg, a, Elem::I64, lane.into());
            self.push(w::dn(w::CLZ, reg, reg));
        }
        self.push(w::dn(w::FMOV_D_X, d, SCRATCH));
        if inst.lanes > 1 {
            self.push(w::dn(w::V_INS_X | w::lane(3, 1), d, OTHER));
        }
    }

    /// `if a < b { a } else { b }`, by the word of `>`.
    pub(super) fn lesser(&mut self, word: u32, inst: &AllocatedInst) {
        self.choose(word, inst.src[1].reg(), inst.src[0].reg(), inst);
    }

    /// `if a > b { a } else { b }`, by the word of `>`.
    pub(super) fn greater(&mut self, word: u32, inst: &AllocatedInst) {
        self.choose(word, inst.src[0].reg(), inst.src[1].reg(), inst);
    }

    /// `a` where `n` compares so to `m`, else `b`.
    fn choose(&mut self, word: u32, n: u8, m: u8, inst: &AllocatedInst) {
        let (d, a, b) = (inst.dst, inst.src[0].reg(), inst.src[1].reg());
        let mask = if d == a || d == b { SCRATCH_V } else { d };
        self.push(w::dnm(word, mask, n, m));
        self.blend(Shape::of(inst.elem, inst.lanes), d, mask, a, b);
    }

    /// `b` where the mask is set, else `c`.
    pub(super) fn blend(&mut self, shape: Shape, d: u8, mask: u8, b: u8, c: u8) {
        let (word, n, m) = if d == mask {
            (w::V_BSL, b, c)
        } else if d == b {
            (w::V_BIF, c, mask)
        } else if d == c {
            (w::V_BIT, b, mask)
        } else {
            self.move_vector(d, mask);
            (w::V_BSL, b, c)
        };
        self.push(w::dnm(word | shape.q, d, n, m));
    }

    /// The low 64 bits of products.
    pub(super) fn wide_product(&mut self, inst: &AllocatedInst) {
        let (d, a, b) = (inst.dst, inst.src[0].reg(), inst.src[1].reg());
        if inst.lanes == 1 {
            self.push(w::dn(w::FMOV_X_D, SCRATCH, a));
            self.push(w::dn(w::FMOV_X_D, OTHER, b));
            self.push(w::dnm(w::MUL, SCRATCH, SCRATCH, OTHER));
            return self.push(w::dn(w::FMOV_D_X, d, SCRATCH));
        }
        // The products of a low and a high half are added, and shifted up to the product of the low halves.
        let temp = inst.vector_temps[0];
        let word = |word: u32, size: u32| word | w::Q | size << 22;
        self.push(w::dn(word(w::V_REV64, 2), d, b));
        self.push(w::dnm(word(w::V_MUL, 2), d, d, a));
        self.push(w::dn(word(w::V_UADDLP, 2), d, d));
        self.push(w::dn(w::V_SHL | w::Q | (64 + 32) << 16, d, d));
        self.push(w::dn(w::V_XTN | 2 << 22, SCRATCH_V, a));
        self.push(w::dn(w::V_XTN | 2 << 22, temp, b));
        self.push(w::dnm(w::V_UMLAL | 2 << 22, d, SCRATCH_V, temp));
    }

    /// Shifts by a vector, to the right if the distance is negated.
    pub(super) fn shift(&mut self, word: u32, is_negated: bool, inst: &AllocatedInst) {
        let shape = Shape::of(inst.elem, inst.lanes);
        // The distance is a signed byte, and from -64 and 64 on all is shifted out. So distances above 127
        // become that: a shift to the left saturates, and one goes back.
        let spare = (8 << shape.size) - 7;
        self.push(w::dn(shape.left(w::V_UQSHL, spare), SCRATCH_V, inst.src[1].reg()));
        self.push(w::dn(shape.right(w::V_USHR, spare), SCRATCH_V, SCRATCH_V));
        if is_negated {
            self.push(w::dn(w::V_NEG | shape.integer(), SCRATCH_V, SCRATCH_V));
        }
        self.push(w::dnm(word | shape.integer(), inst.dst, inst.src[0].reg(), SCRATCH_V));
    }

    /// Rotates by a constant that is not 0.
    pub(super) fn rotate(&mut self, n: u8, inst: &AllocatedInst) {
        let shape = Shape::of(inst.elem, inst.lanes);
        let (d, a) = (inst.dst, inst.src[0].reg());
        if is_rev(inst.elem, n) {
            let word = [0, w::V_REV16, w::V_REV32, w::V_REV64][shape.size as usize];
            return self.push(w::dn(word | shape.q | (shape.size - 1) << 22, d, a));
        }
        debug_assert_ne!(d, a, "the result is written early");
        self.push(w::dn(shape.left(w::V_SHL, n), d, a));
        self.push(w::dn(shape.right(w::V_SRI, (8 << shape.size) - n), d, a));
    }

    pub(super) fn compare(&mut self, inst: &AllocatedInst, cmp: Cmp) {
        let shape = Shape::of(inst.elem, inst.lanes);
        let (d, a, b) = (inst.dst, inst.src[0].reg(), inst.src[1].reg());
        let (word, n, m) = match (cmp, inst.elem.is_float()) {
            (Cmp::Eq | Cmp::Ne, true) => (w::V_FCMEQ, a, b),
            (Cmp::Lt, true) => (w::V_FCMGT, b, a),
            (Cmp::Le, true) => (w::V_FCMGE, b, a),
            (Cmp::Eq | Cmp::Ne, false) => (w::V_CMEQ, a, b),
            (Cmp::Lt, false) => (w::V_CMGT, b, a),
            (Cmp::Le, false) => (w::V_CMGE, b, a),
            (Cmp::LtU, _) => (w::V_CMHI, b, a),
            (Cmp::LeU, _) => (w::V_CMHS, b, a),
        };
        let form = if inst.elem.is_float() { shape.float() } else { shape.integer() };
        self.push(w::dnm(word | form, d, n, m));
        if cmp == Cmp::Ne {
            self.push(w::dn(w::V_NOT | shape.q, d, d));
        }
    }

    /// The mask of the first lanes.
    pub(super) fn mask_first(&mut self, inst: &AllocatedInst) {
        let size = size_of(inst.elem);
        let count = inst.src[0].reg();
        // A large count would not fit a narrow element.
        self.number(SCRATCH, inst.lanes.into());
        self.push(w::cmp(count, SCRATCH));
        self.push(w::csel(SCRATCH, count, SCRATCH, w::Condition::Lt));
        self.push(w::dn(w::V_DUP_X | w::Q | w::lane(size, 0), inst.dst, SCRATCH));
        self.iota(SCRATCH_V, inst.elem);
        self.push(w::dnm(w::V_CMHI | w::Q | size << 22, inst.dst, inst.dst, SCRATCH_V));
    }
}
