//! Which code an instruction is.

use super::super::mir::{Conv, Elem, Op};
use super::super::{AllocatedInst, AllocatedPart};
use super::words as w;
use super::words::Condition;
use super::{SCRATCH, Shape, Writer, size_of};

impl Writer<'_> {
    pub(super) fn push(&mut self, word: u32) {
        self.asm.push(word);
    }

    /// A word with the registers of the result and of two sources.
    fn three(&mut self, word: u32, inst: &AllocatedInst) {
        self.push(w::dnm(word, inst.dst, inst.src[0].reg(), inst.src[1].reg()));
    }

    /// A word with the registers of the result and of one source.
    fn two(&mut self, word: u32, inst: &AllocatedInst) {
        self.push(w::dn(word, inst.dst, inst.src[0].reg()));
    }

    /// An instruction that is no control flow.
    pub(super) fn inst(&mut self, inst: &AllocatedInst) {
        let (elem, d) = (inst.elem, inst.dst);
        // Numbers of general registers have no shape.
        let shape = || Shape::of(elem, inst.lanes);
        let a = || inst.src[0].reg();
        match inst.op {
            Op::Number(n) => self.number(d, n),
            Op::Argument(word) => self.argument(d, u32::from(word)),
            Op::AddNumber(n) => self.add_number(d, a(), n.into(), SCRATCH),
            Op::MulNumber(n) => self.mul_number(d, a(), n),
            Op::GeneralAdd => self.three(w::ADD, inst),
            Op::GeneralSub => self.three(w::SUB, inst),
            Op::GeneralMul => self.three(w::MUL, inst),
            Op::GeneralMin => self.extreme(inst, Condition::Lt),
            Op::GeneralMax => self.extreme(inst, Condition::Gt),
            Op::ToGeneral => self.lane_to_general(d, a(), elem, 0),
            Op::OfGeneral => self.of_general(inst),

            Op::Load => self.load(inst),
            Op::LoadSplat => self.load_splat(inst),
            Op::LoadPart => match inst.part {
                AllocatedPart::All => self.load(inst),
                AllocatedPart::Count(count) => self.load_part(inst, count),
                AllocatedPart::Mask(_) => unreachable!("parts are counts"),
            },
            Op::Store => self.store(inst),
            Op::StorePart => match inst.part {
                AllocatedPart::All => self.store(inst),
                AllocatedPart::Count(count) => self.store_part(inst, count),
                AllocatedPart::Mask(_) => unreachable!("parts are counts"),
            },
            Op::Gather(from) => self.gather(inst, from),

            Op::Const(constant) => self.constant(d, constant),
            Op::Splat | Op::MaskSplat => self.two(w::V_DUP | shape().q | w::lane(shape().size, 0), inst),
            Op::Unzip(false) => self.three(w::V_UZP1 | shape().integer(), inst),
            Op::Unzip(true) => self.three(w::V_UZP2 | shape().integer(), inst),
            Op::Zip(false) => self.three(w::V_ZIP1 | shape().integer(), inst),
            Op::Zip(true) => self.three(w::V_ZIP2 | shape().integer(), inst),
            // Halves of eight bytes, or every other lane of four.
            Op::Fold { by, has } if usize::from(by) * elem.bytes() == 8 => {
                let word = if has { w::V_ZIP2 } else { w::V_ZIP1 };
                self.three(word | w::Q | size_of(Elem::I64) << 22, inst);
            }
            Op::Fold { has: false, .. } => self.three(w::V_UZP1 | shape().integer(), inst),
            Op::Fold { has: true, .. } => self.three(w::V_UZP2 | shape().integer(), inst),
            // Within each eight bytes, which then change places.
            Op::Reverse if elem.bytes() == 4 => {
                self.two(w::V_REV64 | shape().integer(), inst);
                if inst.lanes > 2 {
                    self.push(w::ext(d, d, d, 8));
                }
            }
            Op::Reverse => self.push(w::ext(d, a(), a(), 8)),
            Op::Upper(0) => self.move_vector(d, a()),
            Op::Upper(n) => self.push(w::ext(d, a(), a(), u32::from(n) << shape().size)),

            Op::Not | Op::MaskNot => self.two(w::V_NOT | shape().q, inst),
            Op::And | Op::MaskAnd => self.three(w::V_AND | shape().q, inst),
            Op::Or | Op::MaskOr => self.three(w::V_ORR | shape().q, inst),
            Op::Xor | Op::MaskXor => self.three(w::V_EOR | shape().q, inst),
            Op::AndNot | Op::MaskAndNot => self.three(w::V_BIC | shape().q, inst),
            Op::Flip => self.flip(inst),
            Op::Select => self.blend(shape(), d, a(), inst.src[1].reg(), inst.src[2].reg()),

            Op::Sqrt => self.float(w::S_FSQRT, w::V_FSQRT, inst),
            Op::Floor => self.float(w::S_FRINTM, w::V_FRINTM, inst),
            Op::Ceil => self.float(w::S_FRINTP, w::V_FRINTP, inst),
            Op::Trunc => self.float(w::S_FRINTZ, w::V_FRINTZ, inst),
            Op::Nearest => self.float(w::S_FRINTN, w::V_FRINTN, inst),
            Op::Add if elem.is_float() => self.float(w::S_FADD, w::V_FADD, inst),
            Op::Sub if elem.is_float() => self.float(w::S_FSUB, w::V_FSUB, inst),
            Op::Mul if elem.is_float() => self.float(w::S_FMUL, w::V_FMUL, inst),
            Op::Div => self.float(w::S_FDIV, w::V_FDIV, inst),
            Op::Min if elem.is_float() => self.lesser(w::V_FCMGT | shape().float(), inst),
            Op::Max if elem.is_float() => self.greater(w::V_FCMGT | shape().float(), inst),
            Op::Fma => self.fused(w::S_FMADD, w::V_FMLA, inst),
            Op::Fnma => self.fused(w::S_FMSUB, w::V_FMLS, inst),

            Op::Add => self.three(w::V_ADD | shape().integer(), inst),
            Op::Sub => self.three(w::V_SUB | shape().integer(), inst),
            Op::Mul if elem == Elem::I64 => self.wide_product(inst),
            Op::Mul => self.three(w::V_MUL | shape().integer(), inst),
            Op::Min if elem == Elem::I64 => self.lesser(w::V_CMGT | shape().integer(), inst),
            Op::Max if elem == Elem::I64 => self.greater(w::V_CMGT | shape().integer(), inst),
            Op::MinU if elem == Elem::I64 => self.lesser(w::V_CMHI | shape().integer(), inst),
            Op::MaxU if elem == Elem::I64 => self.greater(w::V_CMHI | shape().integer(), inst),
            Op::Min => self.three(w::V_SMIN | shape().integer(), inst),
            Op::Max => self.three(w::V_SMAX | shape().integer(), inst),
            Op::MinU => self.three(w::V_UMIN | shape().integer(), inst),
            Op::MaxU => self.three(w::V_UMAX | shape().integer(), inst),
            Op::PopCount => self.pop_count(inst),
            Op::LeadingZeros if elem == Elem::I64 => self.wide_leading_zeros(inst),
            Op::LeadingZeros => self.two(w::V_CLZ | shape().integer(), inst),

            Op::Shl => self.shift(w::V_USHL, false, inst),
            Op::Shr => self.shift(w::V_USHL, true, inst),
            Op::Sar => self.shift(w::V_SSHL, true, inst),
            Op::ShlBy(0) | Op::ShrBy(0) | Op::SarBy(0) | Op::RotBy(0) => self.move_vector(d, a()),
            Op::ShlBy(n) => self.two(shape().left(w::V_SHL, n), inst),
            Op::ShrBy(n) => self.two(shape().right(w::V_USHR, n), inst),
            Op::SarBy(n) => self.two(shape().right(w::V_SSHR, n), inst),
            Op::RotBy(n) => self.rotate(n, inst),

            Op::Compare(cmp) => self.compare(inst, cmp),
            Op::Test => self.three(w::V_CMTST | shape().integer(), inst),
            Op::Convert(conv, from) => self.convert(inst, conv, from),
            Op::MaskResize(from) => self.resize(d, a(), from, elem, Conv::SignExtend),
            Op::MaskFirst => self.mask_first(inst),

            Op::Scale | Op::StoreStreaming | Op::Permute(_) => {
                unreachable!("the target has no {:?}", inst.op)
            }
            Op::Loop(_) | Op::EndLoop(..) | Op::EndLoopAlways(_) | Op::While | Op::WhileGeneral(_) => {
                unreachable!("{:?} is control flow", inst.op)
            }
            Op::If | Op::IfGeneral(_) | Op::Else | Op::EndIf(_) | Op::Apply(_) | Op::Call(..) => {
                unreachable!("{:?} is control flow", inst.op)
            }
        }
    }
}
