//! What machines lack, by what they have. Every expansion gives the bits that the op is defined to give.

use super::super::emit::mir::{Class, Cmp, Constant, Conv, Elem, Op, Reg};
use super::super::ir;
use super::{Lowering, Result, Unsupported};

impl Lowering<'_> {
    /// The lesser or greater of two floats; NaN if either is. Machines give the second operand if either is NaN.
    pub(super) fn float_extreme(
        &mut self,
        op: ir::Op,
        elem: Elem,
        lanes: u8,
        src: &[Reg],
        constants: [Option<u64>; 3],
    ) -> Result<Reg> {
        let raw = if let ir::Op::Min = op { Op::Min } else { Op::Max };
        let is_number = |at: usize, may_be_zero: bool| {
            constants[at].is_some_and(|bits| {
                let x =
                    if elem == Elem::F32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) };
                !x.is_nan() && (may_be_zero || x != 0.0)
            })
        };
        if is_number(0, true) {
            return self.machine(raw, elem, lanes, src);
        }
        // In another order a zero could have another sign.
        if is_number(1, false) {
            return self.machine(raw, elem, lanes, &[src[1], src[0]]);
        }
        let extreme = self.machine(raw, elem, lanes, src)?;
        let mask = self.emit(Op::Compare(Cmp::Ne), elem, lanes, Class::Mask, &[src[0], src[0]]);
        self.mask_elems.insert(mask, elem.integer());
        self.machine(Op::Select, elem, lanes, &[mask, src[0], extreme])
    }

    /// An op that the machine lacks.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops cannot be expanded")]
    pub(super) fn expand(&mut self, op: Op, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        match op {
            Op::Flip => {
                let bits = self.machine(Op::And, elem, lanes, &[src[1], src[2]])?;
                self.machine(Op::Xor, elem, lanes, &[src[0], bits])
            }
            Op::Scale => self.scale(elem, lanes, src),
            Op::RotBy(by) => {
                let width = 8 * elem.bytes() as u8;
                let high = self.machine(Op::ShlBy(by), elem, lanes, src)?;
                let low = self.machine(Op::ShrBy(width - by), elem, lanes, src)?;
                self.machine(Op::Or, elem, lanes, &[high, low])
            }
            Op::PopCount => self.pop_count(elem, lanes, src),
            Op::LeadingZeros => self.leading_zeros(elem, lanes, src),
            Op::Shl | Op::Shr | Op::Sar if elem.bytes() < 4 => self.wide_shift(op, elem, lanes, src),
            Op::Mul if elem == Elem::I8 => self.byte_product(lanes, src),
            op => Err(Unsupported(format!("{op:?} of {elem}"))),
        }
    }

    /// `a * 2^b` by two products, of which the first is exact.
    fn scale(&mut self, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        // A float to which an integer was added has it in its low bits.
        let (round, half, shift, one): (u64, u64, u8, u64) = if elem == Elem::F32 {
            (12_582_912f32.to_bits().into(), 0.5f32.to_bits().into(), 23, 1f32.to_bits().into())
        } else {
            (6_755_399_441_055_744f64.to_bits(), 0.5f64.to_bits(), 52, 1f64.to_bits())
        };
        let [round, half] = [round, half].map(|bits| self.constant(Constant::Splat(elem, bits)));
        let one = self.constant(Constant::Splat(elem.integer(), one));
        let first = self.machine(Op::Mul, elem, lanes, &[src[1], half])?;
        let first = self.machine(Op::Floor, elem, lanes, &[first])?;
        let second = self.machine(Op::Sub, elem, lanes, &[src[1], first])?;
        let mut result = src[0];
        for exponent in [first, second] {
            let raised = self.machine(Op::Add, elem, lanes, &[exponent, round])?;
            let bits = self.machine(Op::ShlBy(shift), elem.integer(), lanes, &[raised])?;
            let power = self.machine(Op::Add, elem.integer(), lanes, &[bits, one])?;
            result = self.machine(Op::Mul, elem, lanes, &[result, power])?;
        }
        Ok(result)
    }

    /// A conversion, in steps where the machine has none.
    pub(super) fn convert(&mut self, conv: Conv, elem: Elem, from: Elem, lanes: u8, src: Reg) -> Result<Reg> {
        if from == Elem::Bit {
            let mask = self.mask_for(src, elem, lanes);
            return self.machine(Op::Convert(Conv::OfBit, Elem::Bit), elem, lanes, &[mask]);
        }
        if conv == Conv::Bitcast {
            // The register is the same.
            return Ok(src);
        }
        if self.target.has(Op::Convert(conv, from), elem) {
            return Ok(self.emit(Op::Convert(conv, from), elem, lanes, Class::Vector, &[src]));
        }
        if from.bytes() < 4 && (conv == Conv::FloatOfS || conv == Conv::FloatOfU) {
            let extend = if conv == Conv::FloatOfS { Conv::SignExtend } else { Conv::ZeroExtend };
            let wide = self.convert(extend, Elem::I32, from, lanes, src)?;
            return self.convert(Conv::FloatOfS, elem, Elem::I32, lanes, wide);
        }
        Err(Unsupported(format!("{conv:?} of {from} to {elem}")))
    }
}
