//! Conversions. Each step reads what the one before has written, so that the result may be where the source
//! is.
//!
//! All are exact: integers widen first, so that the one conversion between an integer and a float rounds or
//! saturates; what narrows behind it saturates again. The 64-bit integers of f32 go through general
//! registers, as an f64 between them would round twice.

use super::super::AllocatedInst;
use super::super::mir::{Conv, Elem};
use super::words as w;
use super::{OTHER, SCRATCH, SCRATCH_V, Shape, Writer, size_of};

/// Whether there is code for a conversion.
pub(super) fn has(conv: Conv, from: Elem, to: Elem) -> bool {
    let is_integer = |elem: Elem| matches!(elem, Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64);
    match conv {
        Conv::ZeroExtend | Conv::SignExtend | Conv::Truncate => is_integer(from) && is_integer(to),
        Conv::FloatOfS | Conv::FloatOfU => is_integer(from) && to.is_float(),
        Conv::ToS | Conv::ToU => from.is_float() && is_integer(to),
        Conv::Float => from.is_float() && to.is_float(),
        Conv::OfHalf => (from, to) == (Elem::I16, Elem::F32),
        Conv::ToHalf => (from, to) == (Elem::F32, Elem::I16),
        Conv::Bitcast => from.bytes() == to.bytes() && from != Elem::Index && to != Elem::Index,
        Conv::OfBit => is_integer(to) || to.is_float(),
        Conv::ToIndex | Conv::OfIndex => false,
    }
}

impl Writer<'_> {
    pub(super) fn convert(&mut self, inst: &AllocatedInst, conv: Conv, from: Elem) {
        let (d, a, to) = (inst.dst, inst.src[0].reg(), inst.elem);
        match conv {
            Conv::ZeroExtend | Conv::SignExtend | Conv::Truncate => self.resize(d, a, from, to, conv),
            Conv::FloatOfS | Conv::FloatOfU => self.float_of(inst, conv, from),
            Conv::ToS | Conv::ToU => self.float_to(inst, conv, from),
            Conv::Float if size_of(from) < size_of(to) => self.push(w::dn(w::V_FCVTL | 1 << 22, d, a)),
            Conv::Float => self.push(w::dn(w::V_FCVTN | 1 << 22, d, a)),
            Conv::OfHalf => self.push(w::dn(w::V_FCVTL, d, a)),
            Conv::ToHalf => self.push(w::dn(w::V_FCVTN, d, a)),
            Conv::Bitcast => self.move_vector(d, a),
            Conv::OfBit => self.of_bit(inst, from),
            Conv::ToIndex | Conv::OfIndex => unreachable!("{conv:?} is no conversion of vectors"),
        }
    }

    /// Widens or narrows integers step by step: by zeros for [`Conv::ZeroExtend`], and narrowing saturates
    /// for [`Conv::ToS`] and [`Conv::ToU`].
    pub(super) fn resize(&mut self, d: u8, a: u8, from: Elem, to: Elem, conv: Conv) {
        let (first, last) = (size_of(from), size_of(to));
        if first == last {
            return self.move_vector(d, a);
        }
        let mut source = a;
        let widen = if conv == Conv::ZeroExtend { w::V_UXTL } else { w::V_SXTL };
        for size in first..last {
            self.push(w::dn(widen | 8 << size << 16, d, source));
            source = d;
        }
        let narrow = match conv {
            Conv::ToS => w::V_SQXTN,
            Conv::ToU => w::V_UQXTN,
            Conv::ZeroExtend | Conv::SignExtend | Conv::Truncate | Conv::FloatOfS | Conv::FloatOfU => {
                w::V_XTN
            }
            Conv::Float | Conv::OfHalf | Conv::ToHalf | Conv::Bitcast | Conv::OfBit => w::V_XTN,
            Conv::ToIndex | Conv::OfIndex => w::V_XTN,
        };
        for size in (last..first).rev() {
            self.push(w::dn(narrow | size << 22, d, source));
            source = d;
        }
    }

    fn float_of(&mut self, inst: &AllocatedInst, conv: Conv, from: Elem) {
        let (d, a) = (inst.dst, inst.src[0].reg());
        let is_signed = conv == Conv::FloatOfS;
        if from == Elem::I64 && inst.elem == Elem::F32 {
            let word = if is_signed { w::S_SCVTF_X } else { w::S_UCVTF_X };
            self.lane_to_general(SCRATCH, a, from, 0);
            if inst.lanes > 1 {
                self.lane_to_general(OTHER, a, from, 1);
                self.push(w::dn(word, SCRATCH_V, OTHER));
            }
            self.push(w::dn(word, d, SCRATCH));
            if inst.lanes > 1 {
                self.push(w::ins(2, d, 1, SCRATCH_V, 0));
            }
            return;
        }
        let (extend, word) =
            if is_signed { (Conv::SignExtend, w::V_SCVTF) } else { (Conv::ZeroExtend, w::V_UCVTF) };
        let integer = inst.elem.integer();
        let source = if from == integer { a } else { d };
        if from != integer {
            self.resize(d, a, from, integer, extend);
        }
        self.push(w::dn(word | Shape::of(inst.elem, inst.lanes).float(), d, source));
    }

    fn float_to(&mut self, inst: &AllocatedInst, conv: Conv, from: Elem) {
        let (d, a) = (inst.dst, inst.src[0].reg());
        let word = if conv == Conv::ToS { w::V_FCVTZS } else { w::V_FCVTZU };
        if from == Elem::F32 && inst.elem == Elem::I64 {
            self.push(w::dn(w::V_FCVTL | 1 << 22, d, a));
            return self.push(w::dn(word | w::Q | 1 << 22, d, d));
        }
        self.push(w::dn(word | Shape::of(from, inst.lanes).float(), d, a));
        self.resize(d, d, from.integer(), inst.elem, conv);
    }

    /// A mask to 0 or 1. The mask has the width of `from`, or that of the result where `from` is a predicate.
    fn of_bit(&mut self, inst: &AllocatedInst, from: Elem) {
        let (d, to) = (inst.dst, inst.elem);
        let mut source = inst.src[0].reg();
        if from != Elem::Bit && from.bytes() != to.bytes() {
            self.resize(d, source, from, to, Conv::SignExtend);
            source = d;
        }
        let shape = Shape::of(to, inst.lanes);
        if to.is_float() {
            // 1.0 as an immediate.
            let mode = if to == Elem::F32 { 0b0_1111 } else { 0b1_1111 };
            self.push(w::movi(SCRATCH_V, mode, 0x70));
            self.push(w::dnm(w::V_AND | shape.q, d, source, SCRATCH_V));
        } else {
            self.push(w::dn(w::V_NEG | shape.integer(), d, source));
        }
    }
}
