//! Ops that give what is there already: what constants tell, and simpler ops of integers and predicates.

use super::{Builder, Cmp, Conv, Elem, Op, Ty, Val};

impl Builder {
    /// What an instruction gives, as far as constants tell.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are not folded")]
    pub(super) fn folded(&mut self, op: Op, elem: Elem, [a, b, _]: [Val; 3]) -> Option<Val> {
        let constant = |value: Val| if value.is_some() { self.constant_bits(value) } else { None };
        let (x, y) = (constant(a), constant(b));
        if let (Op::Compare(Cmp::Ne), Some(0)) = (op, y) {
            // A predicate that was stored as a byte.
            let inst = self.function.inst(a);
            return (inst.op == Op::Convert(Conv::OfBit)).then_some(inst.args[0]);
        }
        if let (Op::Convert(conv), Some(bits)) = (op, x)
            && elem != Elem::Bit
        {
            let from = self.ty(a).elem;
            let unused = 64 - 8 * from.bytes() as u32;
            return match conv {
                Conv::SignExtend | Conv::ToIndex => {
                    let extended = (bits << unused) as i64 >> unused;
                    Some(self.bits(elem, extended as u64))
                }
                Conv::ZeroExtend | Conv::OfIndex => Some(self.bits(elem, bits)),
                _ => None,
            };
        }
        if let (Op::ShrBy(by), Some(bits)) = (op, x) {
            return Some(self.bits(elem, bits >> by));
        }
        if elem != Elem::Index {
            return None;
        }
        let signed = |bits: u64| bits as i64;
        match (op, x, y) {
            (Op::Add, Some(x), Some(y)) => Some(self.index(signed(x).wrapping_add(signed(y)))),
            (Op::Sub, Some(x), Some(y)) => Some(self.index(signed(x).wrapping_sub(signed(y)))),
            (Op::Mul, Some(x), Some(y)) => Some(self.index(signed(x).wrapping_mul(signed(y)))),
            (Op::Min, Some(x), Some(y)) => Some(self.index(signed(x).min(signed(y)))),
            (Op::Max, Some(x), Some(y)) => Some(self.index(signed(x).max(signed(y)))),
            (Op::Add, Some(0), None) | (Op::Mul, Some(1), None) => Some(b),
            (Op::Add | Op::Sub, None, Some(0)) | (Op::Mul, None, Some(1)) => Some(a),
            (Op::Mul, Some(0), None) | (Op::Mul, None, Some(0)) => Some(self.index(0)),
            _ => None,
        }
    }

    /// A simpler op of integers or predicates that gives the same, or a value that exists. It is a vector where the op
    /// is one.
    pub(super) fn simplified(&mut self, op: Op, elem: Elem, [a, b, c]: [Val; 3]) -> Option<Val> {
        if elem.is_float() || elem == Elem::Index || !b.is_some() {
            return None;
        }
        let (x, y) = (self.constant_bits(a), self.constant_bits(b));
        let is_vector = [a, b, c].iter().any(|&arg| arg.is_some() && self.ty(arg).is_vector);
        let existing = match (op, elem) {
            (Op::Xor | Op::Or, Elem::Bit) if y == Some(0) => a,
            (Op::Xor | Op::Or, Elem::Bit) if x == Some(0) => b,
            (Op::And, Elem::Bit) if y == Some(1) || x == Some(0) => a,
            (Op::And, Elem::Bit) if x == Some(1) || y == Some(0) => b,
            (Op::And, Elem::Bit) => self.stronger(a, b).or_else(|| self.stronger(b, a))?,
            (Op::Add, _) if y == Some(0) => a,
            (Op::Add, _) if x == Some(0) => b,
            (Op::Mul, _) => return self.product_of_choice(elem, a, b),
            (Op::Select, _) if x == Some(1) => b,
            (Op::Select, _) if x == Some(0) => c,
            (Op::Select, _) => return self.chosen_where_negative(elem, [a, b, c]),
            _ => return None,
        };
        (self.ty(existing).is_vector == is_vector).then_some(existing)
    }

    /// The first predicate, if the second holds wherever it does: a number below another one is not equal to it.
    fn stronger(&self, less: Val, other: Val) -> Option<Val> {
        let (x, y) = (self.function.inst(less), self.function.inst(other));
        let is_of_same = x.op == Op::Compare(Cmp::Lt) && y.op == Op::Compare(Cmp::Ne) && x.args == y.args;
        is_of_same.then_some(less)
    }

    /// The product of a constant with a choice between two constants, or with one under a sign, as a choice.
    fn product_of_choice(&mut self, elem: Elem, a: Val, b: Val) -> Option<Val> {
        let factor = self.constant_bits(b)?;
        let inst = *self.function.inst(a);
        let times = |this: &mut Self, bits: u64| this.bits(elem, bits.wrapping_mul(factor));
        if inst.op == Op::And && inst.ty.elem == elem && self.is_sign(inst.args[0]) {
            let kept = self.constant_bits(inst.args[1])?;
            let kept = times(self, kept);
            return Some(self.op(Op::And, [inst.args[0], kept]));
        }
        let [predicate, then, otherwise] = inst.args;
        if inst.op != Op::Select || inst.ty.elem != elem {
            return None;
        }
        let (then, otherwise) = (self.constant_bits(then)?, self.constant_bits(otherwise)?);
        let (then, otherwise) = (times(self, then), times(self, otherwise));
        Some(self.select(predicate, then, otherwise))
    }

    /// Whether all bits of a number are its sign.
    fn is_sign(&self, value: Val) -> bool {
        let inst = self.function.inst(value);
        let Op::SarBy(by) = inst.op else { return false };
        usize::from(by) + 1 == 8 * inst.ty.elem.bytes()
    }

    /// A number where another one is negative, and else 0, by the sign of that: the comparison of two numbers takes
    /// longer.
    fn chosen_where_negative(&mut self, elem: Elem, [predicate, then, otherwise]: [Val; 3]) -> Option<Val> {
        let inst = *self.function.inst(predicate);
        let of = inst.args[0];
        let fits = elem.bytes() > 1
            && inst.op == Op::Compare(Cmp::Lt)
            && self.ty(of).elem == elem
            && self.constant_bits(inst.args[1]) == Some(0)
            && self.constant_bits(otherwise) == Some(0);
        if !fits {
            return None;
        }
        let is_vector = self.ty(of).is_vector;
        let by = Op::SarBy(8 * elem.bytes() as u8 - 1);
        let sign = self.pure(by, Ty { elem, is_vector }, [of, Val::NONE, Val::NONE]);
        let is_vector = is_vector || self.ty(then).is_vector;
        Some(self.pure(Op::And, Ty { elem, is_vector }, [sign, then, Val::NONE]))
    }
}
