//! What is known of integers while a function is being built: the least and the greatest number that they can be, and
//! how they are made of counters of loops.

use super::{Builder, Cmp, Conv, Elem, Op, Val};

/// How far operands of operands are looked at.
const MAX_DEPTH: usize = 8;

/// The least and the greatest number.
pub(crate) type Range = (i64, i64);

impl Builder {
    /// Says what a value can be: the integer of a signed type. It is forgotten with [`Builder::forget_range`].
    pub(crate) fn set_range(&mut self, value: Val, range: Range) {
        self.ranges.insert(value, range);
    }

    /// Says which index is the same number as a value.
    pub(crate) fn set_index(&mut self, value: Val, index: Val) {
        self.indices.insert(value, index);
    }

    /// Forgets what was said of a value.
    pub(crate) fn forget_range(&mut self, value: Val) {
        self.ranges.remove(&value);
        self.indices.remove(&value);
    }

    /// What a value can be as a signed integer, if that is known. No op on its operands wraps then.
    pub(crate) fn range(&self, value: Val) -> Option<Range> {
        self.range_within(value, MAX_DEPTH)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing is known of the results of other ops")]
    fn range_within(&self, value: Val, depth: usize) -> Option<Range> {
        if let Some(&known) = self.ranges.get(&value) {
            return Some(known);
        }
        let inst = self.function.inst(value);
        let elem = inst.ty.elem;
        if elem.is_float() || elem == Elem::Bit || inst.ty.is_vector {
            return None;
        }
        if let Op::Const(bits) = inst.op {
            let number = signed(elem, bits);
            return Some((number, number));
        }
        if inst.op == Op::Loop {
            let trips = self.constant_bits(Some(inst.args[0]).filter(|trips| trips.is_some())?)? as i64;
            return Some((0, trips.checked_sub(1).filter(|last| *last >= 0)?));
        }
        let depth = depth.checked_sub(1)?;
        let of = |at: usize| self.range_within(inst.args[at], depth);
        let range = match inst.op {
            Op::Add => {
                let (a, b) = (of(0)?, of(1)?);
                (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)
            }
            Op::DivS => {
                let (a, by) = (of(0)?, self.divisor(inst.args[1])?);
                (a.0 / by, a.1 / by)
            }
            Op::Sub => match self.range_of_remainder(value, depth) {
                Some(range) => range,
                None => {
                    let (a, b) = (of(0)?, of(1)?);
                    (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)
                }
            },
            Op::Mul => {
                let (a, b) = (of(0)?, of(1)?);
                let products = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
                let products = products.map(|(a, b)| a.checked_mul(b));
                let [a, b, c, d] = [products[0]?, products[1]?, products[2]?, products[3]?];
                (a.min(b).min(c).min(d), a.max(b).max(c).max(d))
            }
            Op::Min => {
                let (a, b) = (of(0)?, of(1)?);
                (a.0.min(b.0), a.1.min(b.1))
            }
            Op::Max => {
                let (a, b) = (of(0)?, of(1)?);
                (a.0.max(b.0), a.1.max(b.1))
            }
            Op::Convert(Conv::SignExtend | Conv::ToIndex | Conv::OfIndex) => of(0)?,
            Op::Convert(Conv::ZeroExtend) => of(0).filter(|range| range.0 >= 0)?,
            _ => return None,
        };
        let (least, greatest) = limits(elem);
        (range.0 >= least && range.1 <= greatest).then_some(range)
    }

    /// A divisor that is known and positive.
    fn divisor(&self, value: Val) -> Option<i64> {
        let bits = self.constant_bits(value)?;
        Some(signed(self.ty(value).elem, bits)).filter(|divisor| *divisor > 0)
    }

    /// What `a - a / b * b` can be, which takes the sign of `a`.
    fn range_of_remainder(&self, value: Val, depth: usize) -> Option<Range> {
        let inst = self.function.inst(value);
        let product = self.function.inst(inst.args[1]);
        let quotient = self.function.inst(Some(product.args[0]).filter(|_| product.op == Op::Mul)?);
        let is_remainder = quotient.op == Op::DivS && quotient.args[..2] == [inst.args[0], product.args[1]];
        let most = self.divisor(product.args[1]).filter(|_| is_remainder)? - 1;
        let (least, greatest) = self.range_within(inst.args[0], depth).unwrap_or((i64::MIN, i64::MAX));
        Some((least.clamp(-most, 0), greatest.clamp(0, most)))
    }

    /// A scalar integer, sign-extended, as an index.
    pub(crate) fn index_of(&mut self, value: Val) -> Val {
        let inst = *self.function.inst(value);
        if inst.ty.elem == Elem::Index {
            return value;
        }
        if let Op::Const(bits) = inst.op {
            return self.index(signed(inst.ty.elem, bits));
        }
        if let Some(&index) = self.indices.get(&value) {
            return index;
        }
        if let Op::Convert(Conv::SignExtend) = inst.op {
            return self.index_of(inst.args[0]);
        }
        // What does not wrap is the same in more bits.
        if let Op::Add | Op::Sub | Op::Mul = inst.op
            && self.range(value).is_some()
        {
            let (a, b) = (self.index_of(inst.args[0]), self.index_of(inst.args[1]));
            return self.computed(inst.op, Elem::Index, [a, b, Val::NONE]);
        }
        let wide = self.convert(Conv::SignExtend, Elem::I64, value);
        self.convert(Conv::ToIndex, Elem::Index, wide)
    }

    /// An index without the number that was added to it, and that number; both as often as the factor says, which takes
    /// what the index was multiplied by.
    pub(crate) fn split_index(&self, mut index: Val, factor: i64) -> (Val, i64, i64) {
        let (mut factor, mut added) = (factor, 0i64);
        loop {
            let inst = self.function.inst(index);
            let constant = |at: usize| {
                let operand = inst.args[at];
                let bits = if operand.is_some() { self.constant_bits(operand) } else { None };
                bits.map(|bits| bits as i64)
            };
            let next = match (inst.op, constant(0), constant(1)) {
                (Op::Add, None, Some(number)) => Some((inst.args[0], number, 1)),
                (Op::Add, Some(number), None) => Some((inst.args[1], number, 1)),
                (Op::Sub, None, Some(number)) => number.checked_neg().map(|number| (inst.args[0], number, 1)),
                (Op::Mul, None, Some(number)) => Some((inst.args[0], 0, number)),
                (Op::Mul, Some(number), None) => Some((inst.args[1], 0, number)),
                (_, _, _) => None,
            };
            let step = next.and_then(|(inner, number, by)| {
                let more = number.checked_mul(factor)?;
                Some((inner, added.checked_add(more)?, factor.checked_mul(by)?))
            });
            let Some((inner, sum, product)) = step.filter(|_| inst.ty.elem == Elem::Index) else {
                return (index, factor, added);
            };
            (index, added, factor) = (inner, sum, product);
        }
    }

    /// Whether a comparison holds, if that is known for all that its operands can be.
    fn known_comparison(&self, cmp: Cmp, a: Val, b: Val) -> Option<bool> {
        let (x, y) = (self.range(a)?, self.range(b)?);
        let known = |holds: bool, fails: bool| (holds || fails).then_some(holds);
        match cmp {
            Cmp::Lt => known(x.1 < y.0, x.0 >= y.1),
            Cmp::Le => known(x.1 <= y.0, x.0 > y.1),
            Cmp::Ne => known(x.1 < y.0 || y.1 < x.0, false),
            Cmp::Eq => known(false, x.1 < y.0 || y.1 < x.0),
            Cmp::LtU | Cmp::LeU => None,
        }
    }

    /// What an op on integers gives, as far as it is known what its operands can be.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are not folded")]
    pub(super) fn folded_by_range(&mut self, op: Op, elem: Elem, [a, b, _]: [Val; 3]) -> Option<Val> {
        if let Op::Compare(cmp) = op {
            let holds = self.known_comparison(cmp, a, b)?;
            return Some(self.bits(Elem::Bit, holds.into()));
        }
        if elem.is_float() || elem == Elem::Bit || !a.is_some() || self.ty(a).is_vector {
            return None;
        }
        match op {
            Op::Min | Op::Max => {
                let (x, y) = (self.range(a)?, self.range(b)?);
                let (first, second) =
                    if op == Op::Min { (x.1 <= y.0, y.1 <= x.0) } else { (x.0 >= y.1, y.0 >= x.1) };
                if first { Some(a) } else { second.then_some(b) }
            }
            Op::SarBy(by) if usize::from(by) + 1 == 8 * elem.bytes() => {
                (self.range(a)?.0 >= 0).then(|| self.bits(elem, 0))
            }
            Op::And if self.range(a) == Some((0, 0)) => Some(a),
            Op::Add if self.range(b) == Some((0, 0)) => Some(a),
            Op::Add if self.range(a) == Some((0, 0)) => Some(b),
            _ => None,
        }
    }
}

/// The bits of a type as a signed number.
fn signed(elem: Elem, bits: u64) -> i64 {
    let unused = 64 - 8 * elem.bytes() as u32;
    (bits << unused) as i64 >> unused
}

/// The least and the greatest signed number of a type.
fn limits(elem: Elem) -> Range {
    let unused = 64 - 8 * elem.bytes() as u32;
    (i64::MIN >> unused, i64::MAX >> unused)
}
