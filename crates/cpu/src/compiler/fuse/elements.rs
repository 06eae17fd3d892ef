//! Element-wise ops as instructions of the loop-nest IR, by dtype.
//!
//! A dtype is computed in a type of the IR: bool as predicates, integers in their own width (those of 2 and 4 bits in 8),
//! the small floats in f32. After each op, what was computed has the dtype's precision and range.

use defn_core::op::{
    ArithmeticOp, BinaryOp, BitsOp, BitwiseOp, ComparisonOp, FunctionOp, LogicalOp, PartOp, RoundingOp,
    SignOp, TestOp, UnaryOp,
};
use defn_core::{DType, Kind, Scalar};

use crate::compiler::ir::functions::{Function1, Function2};
use crate::compiler::ir::{Access, Builder, Cmp, Conv, Elem, Op, Val};
use crate::kernels::elementwise::vector::Base;

/// A value, and the dtype whose precision and range it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) value: Val,
    pub(super) dtype: DType,
}

/// The type in which a dtype is computed, if it is one of the IR's.
pub(super) fn computed(dtype: DType) -> Option<Elem> {
    match dtype {
        DType::Bool => Some(Elem::Bit),
        DType::U2 | DType::U4 | DType::U8 | DType::S2 | DType::S4 | DType::S8 => Some(Elem::I8),
        DType::U16 | DType::S16 => Some(Elem::I16),
        DType::U32 | DType::S32 => Some(Elem::I32),
        DType::U64 | DType::S64 => Some(Elem::I64),
        DType::F16 | DType::BF16 | DType::F32 => Some(Elem::F32),
        DType::F64 => Some(Elem::F64),
        DType::F8E5M2 | DType::F8E4M3FN | DType::C64 | DType::C128 => None,
    }
}

/// The function of floats that an op is, if nests have it.
fn function_of(op: FunctionOp) -> Option<Function1> {
    Some(match op {
        FunctionOp::Exp => Function1::Exp,
        FunctionOp::Expm1 => Function1::Expm1,
        FunctionOp::Log => Function1::Log,
        FunctionOp::Log1p => Function1::Log1p,
        FunctionOp::Sigmoid => Function1::Sigmoid,
        FunctionOp::Sinh => Function1::Sinh,
        FunctionOp::Cosh => Function1::Cosh,
        FunctionOp::Tanh => Function1::Tanh,
        FunctionOp::Asin => Function1::Asin,
        FunctionOp::Acos => Function1::Acos,
        FunctionOp::Atan => Function1::Atan,
        FunctionOp::Asinh => Function1::Asinh,
        FunctionOp::Acosh => Function1::Acosh,
        FunctionOp::Atanh => Function1::Atanh,
        FunctionOp::Cbrt => Function1::Cbrt,
        FunctionOp::Erf => Function1::Erf,
        FunctionOp::Erfc => Function1::Erfc,
        FunctionOp::ErfInv => Function1::ErfInv,
        // Their side exits for large numbers are not there yet.
        FunctionOp::Sin | FunctionOp::Cos | FunctionOp::Tan => return None,
        FunctionOp::Sqrt | FunctionOp::Rsqrt => unreachable!("they are ops of the IR"),
    })
}

/// The type in which elements of a dtype are stored.
pub(super) fn stored(dtype: DType) -> Option<Elem> {
    if dtype.is_bool() {
        Some(Elem::I8)
    } else if is_half(dtype) {
        Some(Elem::I16)
    } else {
        computed(dtype)
    }
}

/// Whether a dtype is a float of 16 bits.
fn is_half(dtype: DType) -> bool {
    dtype == DType::F16 || dtype == DType::BF16
}

fn is_signed(dtype: DType) -> bool {
    dtype.kind() == Kind::Signed
}

/// Builds ops of elements. None is returned for what the IR does not have.
pub(super) struct Elements {
    pub(super) b: Builder,
}

impl Elements {
    /// The elements of a dtype in memory.
    pub(super) fn load(&mut self, dtype: DType, access: Access) -> Option<Element> {
        let raw = self.b.load(stored(dtype)?, access);
        let value = if dtype.is_bool() {
            let zero = self.b.bits(Elem::I8, 0);
            self.b.compare(Cmp::Ne, raw, zero)
        } else if dtype == DType::F16 {
            self.b.convert(Conv::OfHalf, Elem::F32, raw)
        } else if dtype == DType::BF16 {
            let wide = self.b.convert(Conv::ZeroExtend, Elem::I32, raw);
            let bits = self.b.op(Op::ShlBy(16), [wide]);
            self.b.convert(Conv::Bitcast, Elem::F32, bits)
        } else {
            raw
        };
        Some(Element { value, dtype })
    }

    pub(super) fn store(&mut self, x: Element, access: Access) -> Option<()> {
        stored(x.dtype)?;
        let value = if x.dtype.is_bool() {
            self.b.convert(Conv::OfBit, Elem::I8, x.value)
        } else if x.dtype == DType::F16 {
            self.b.convert(Conv::ToHalf, Elem::I16, x.value)
        } else if x.dtype == DType::BF16 {
            let bits = self.b.to_bits(x.value);
            let high = self.b.op(Op::ShrBy(16), [bits]);
            self.b.convert(Conv::Truncate, Elem::I16, high)
        } else {
            x.value
        };
        self.b.store(value, access);
        Some(())
    }

    pub(super) fn constant(&mut self, scalar: Scalar) -> Option<Element> {
        let dtype = scalar.dtype();
        let elem = computed(dtype)?;
        let bytes = scalar.to_bytes();
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(&bytes);
        let bits = u64::from_le_bytes(word);
        let value = if dtype == DType::F16 {
            self.b.f32(half::f16::from_bits(bits as u16).to_f32())
        } else if dtype == DType::BF16 {
            self.b.f32(half::bf16::from_bits(bits as u16).to_f32())
        } else {
            self.b.bits(elem, bits)
        };
        Some(Element { value, dtype })
    }

    /// Numbers of a type that is not theirs.
    fn number(&mut self, elem: Elem, number: i64) -> Val {
        if elem.is_float() { self.b.float(elem, number as f64) } else { self.b.bits(elem, number as u64) }
    }

    /// Brings what was computed to the precision and range of a dtype.
    fn fit(&mut self, value: Val, dtype: DType) -> Element {
        let value = if let DType::U2 | DType::U4 = dtype {
            let mask = self.number(Elem::I8, (1 << dtype.bits()) - 1);
            self.b.op(Op::And, [value, mask])
        } else if let DType::S2 | DType::S4 = dtype {
            // The sign bit is subtracted from what it stands for.
            let (mask, sign) = ((1 << dtype.bits()) - 1, 1 << (dtype.bits() - 1));
            let (mask, sign) = (self.number(Elem::I8, mask), self.number(Elem::I8, sign));
            let low = self.b.op(Op::And, [value, mask]);
            let flipped = self.b.op(Op::Xor, [low, sign]);
            self.b.sub(flipped, sign)
        } else if dtype == DType::F16 {
            let half = self.b.convert(Conv::ToHalf, Elem::I16, value);
            self.b.convert(Conv::OfHalf, Elem::F32, half)
        } else if dtype == DType::BF16 {
            self.nearest_bf16(value)
        } else {
            value
        };
        Element { value, dtype }
    }

    /// The nearest bf16, ties to even; NaN stays NaN.
    fn nearest_bf16(&mut self, x: Val) -> Val {
        let bits = self.b.to_bits(x);
        let (one, below_half) = (self.number(Elem::I32, 1), self.number(Elem::I32, 0x7FFF));
        let (quiet, high) = (self.number(Elem::I32, 0x40_0000), self.number(Elem::I32, 0xFFFF_0000));
        let last = self.b.op(Op::ShrBy(16), [bits]);
        let last = self.b.op(Op::And, [last, one]);
        let raised = self.b.add(bits, below_half);
        let raised = self.b.add(raised, last);
        let nan = self.b.op(Op::Or, [bits, quiet]);
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        let rounded = self.b.select(is_nan, nan, raised);
        let rounded = self.b.op(Op::And, [rounded, high]);
        self.b.convert(Conv::Bitcast, Elem::F32, rounded)
    }

    /// Whether elements are not zero. NaN is not.
    pub(super) fn truth(&mut self, x: Element) -> Element {
        if x.dtype.is_bool() {
            return x;
        }
        let zero = self.number(self.b.ty(x.value).elem, 0);
        Element { value: self.b.compare(Cmp::Ne, x.value, zero), dtype: DType::Bool }
    }

    /// Elements as those of another dtype.
    pub(super) fn convert(&mut self, x: Element, dtype: DType) -> Option<Element> {
        if x.dtype == dtype {
            return Some(x);
        }
        if dtype.is_bool() {
            return Some(self.truth(x));
        }
        let (from, to) = (computed(x.dtype)?, computed(dtype)?);
        let (is_from_float, is_to_float) = (from.is_float(), to.is_float());
        let value = if x.dtype.is_bool() {
            let (one, zero) = (self.number(to, 1), self.number(to, 0));
            return Some(Element { value: self.b.select(x.value, one, zero), dtype });
        } else if is_from_float && is_to_float {
            // A second rounding could differ from one.
            if from == Elem::F64 && dtype != DType::F32 && dtype != DType::F64 {
                return None;
            }
            self.b.convert(Conv::Float, to, x.value)
        } else if is_from_float {
            return self.whole(x, dtype);
        } else if is_to_float {
            if to == Elem::F32 && dtype != DType::F32 && from.bytes() >= 4 {
                return None;
            }
            let conv = if is_signed(x.dtype) { Conv::FloatOfS } else { Conv::FloatOfU };
            self.b.convert(conv, to, x.value)
        } else if from.bytes() < to.bytes() {
            let conv = if is_signed(x.dtype) { Conv::SignExtend } else { Conv::ZeroExtend };
            self.b.convert(conv, to, x.value)
        } else {
            self.b.convert(Conv::Truncate, to, x.value)
        };
        Some(self.fit(value, dtype))
    }

    /// A float truncated to an integer, saturating; NaN is 0.
    fn whole(&mut self, x: Element, dtype: DType) -> Option<Element> {
        let to = computed(dtype)?;
        if to.bytes() >= 4 {
            let conv = if is_signed(dtype) { Conv::ToS } else { Conv::ToU };
            return Some(Element { value: self.b.convert(conv, to, x.value), dtype });
        }
        let wide = self.b.convert(Conv::ToS, Elem::I32, x.value);
        let bits = dtype.bits();
        let (low, high) = match is_signed(dtype) {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        };
        let (low, high) = (self.number(Elem::I32, low), self.number(Elem::I32, high));
        let bounded = self.b.op(Op::Max, [wide, low]);
        let bounded = self.b.op(Op::Min, [bounded, high]);
        Some(Element { value: self.b.convert(Conv::Truncate, to, bounded), dtype })
    }

    /// An op of one operand, with a result of `dtype`.
    pub(super) fn unary(&mut self, op: UnaryOp, x: Element, dtype: DType) -> Option<Element> {
        match op {
            UnaryOp::Test(test) => {
                computed(x.dtype)?;
                let elem = self.b.ty(x.value).elem;
                let value = match test {
                    _ if !elem.is_float() => self.b.bits(Elem::Bit, 0),
                    TestOp::Nan => self.b.compare(Cmp::Ne, x.value, x.value),
                    TestOp::Infinity => {
                        let magnitude = self.magnitude(x.value);
                        let infinity = self.b.float(elem, f64::INFINITY);
                        self.b.compare(Cmp::Eq, magnitude, infinity)
                    }
                };
                return Some(Element { value, dtype: DType::Bool });
            }
            UnaryOp::Part(part) => {
                return match part {
                    PartOp::Real if !x.dtype.is_complex() => self.convert(x, dtype),
                    PartOp::Imag if !x.dtype.is_complex() => self.constant(Scalar::zero(dtype)),
                    PartOp::Real | PartOp::Imag | PartOp::Conjugate => None,
                };
            }
            UnaryOp::Sign(_) | UnaryOp::Rounding(_) | UnaryOp::Bits(_) | UnaryOp::Function(_) => {}
        }
        let x = self.convert(x, dtype)?.value;
        let elem = self.b.ty(x).elem;
        let is_float = elem.is_float();
        let value = match op {
            UnaryOp::Sign(SignOp::Negate) if is_float => self.flip_sign(x),
            UnaryOp::Sign(SignOp::Negate) => {
                let zero = self.number(elem, 0);
                self.b.sub(zero, x)
            }
            UnaryOp::Sign(SignOp::Abs) if is_float => self.magnitude(x),
            UnaryOp::Sign(SignOp::Abs) if is_signed(dtype) => {
                let zero = self.number(elem, 0);
                let negative = self.b.sub(zero, x);
                self.b.op(Op::Max, [x, negative])
            }
            UnaryOp::Sign(SignOp::Abs) => x,
            UnaryOp::Sign(SignOp::Sign) => self.sign(x, dtype),
            UnaryOp::Rounding(_) if !is_float => x,
            UnaryOp::Rounding(RoundingOp::Floor) => self.b.op(Op::Floor, [x]),
            UnaryOp::Rounding(RoundingOp::Ceil) => self.b.op(Op::Ceil, [x]),
            UnaryOp::Rounding(RoundingOp::Round) => self.round(x),
            UnaryOp::Bits(BitsOp::Not) => self.b.op(Op::Not, [x]),
            UnaryOp::Function(FunctionOp::Sqrt) => self.b.op(Op::Sqrt, [x]),
            UnaryOp::Function(FunctionOp::Rsqrt) => {
                let (one, root) = (self.number(elem, 1), self.b.op(Op::Sqrt, [x]));
                self.b.div(one, root)
            }
            UnaryOp::Function(op) => self.b.function(function_of(op)?, x),
            UnaryOp::Bits(_) | UnaryOp::Part(_) | UnaryOp::Test(_) => return None,
        };
        Some(self.fit(value, dtype))
    }

    fn sign_bit(&mut self, elem: Elem) -> Val {
        self.b.bits(elem, 1 << (8 * elem.bytes() - 1))
    }

    fn flip_sign(&mut self, x: Val) -> Val {
        let sign = self.sign_bit(self.b.ty(x).elem);
        self.b.op(Op::Xor, [x, sign])
    }

    fn magnitude(&mut self, x: Val) -> Val {
        let elem = self.b.ty(x).elem;
        let others = self.b.bits(elem, u64::MAX >> (65 - 8 * elem.bytes()));
        self.b.op(Op::And, [x, others])
    }

    /// -1, 0 or 1; NaN stays NaN.
    fn sign(&mut self, x: Val, dtype: DType) -> Val {
        let elem = self.b.ty(x).elem;
        let [zero, one, minus] = [0, 1, -1].map(|number| self.number(elem, number));
        if !elem.is_float() && !is_signed(dtype) {
            let is_zero = self.b.compare(Cmp::Eq, x, zero);
            return self.b.select(is_zero, zero, one);
        }
        let (above, below) = (self.b.compare(Cmp::Lt, zero, x), self.b.compare(Cmp::Lt, x, zero));
        let sign = self.b.select(above, one, zero);
        let sign = self.b.select(below, minus, sign);
        if !elem.is_float() {
            return sign;
        }
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        self.b.select(is_nan, x, sign)
    }

    /// The nearest integer, halves away from zero: what is cut off decides, which is exact.
    fn round(&mut self, x: Val) -> Val {
        let elem = self.b.ty(x).elem;
        let (half, one, sign) = (self.b.float(elem, 0.5), self.b.float(elem, 1.0), self.sign_bit(elem));
        let whole = self.b.op(Op::Trunc, [x]);
        let rest = self.b.sub(x, whole);
        let rest = self.magnitude(rest);
        let one = self.b.op(Op::Flip, [one, x, sign]);
        let further = self.b.add(whole, one);
        let is_far = self.b.compare(Cmp::Le, half, rest);
        // NaN and infinities have no rest.
        self.b.select(is_far, further, whole)
    }

    /// The logarithm to a base, with a result of `dtype`.
    pub(super) fn log_to(&mut self, base: Base, x: Element, dtype: DType) -> Option<Element> {
        let x = self.convert(x, dtype)?.value;
        let function = match base {
            Base::Two => Function1::Log2,
            Base::Ten => Function1::Log10,
        };
        let value = self.b.function(function, x);
        Some(self.fit(value, dtype))
    }

    /// An op of two operands, with a result of `dtype`.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Element, b: Element, dtype: DType) -> Option<Element> {
        match op {
            BinaryOp::Comparison(op) => {
                let value = self.compare(op, a, b)?;
                return self.convert(Element { value, dtype: DType::Bool }, dtype);
            }
            BinaryOp::Logical(op) => {
                let (a, b) = (self.truth(a).value, self.truth(b).value);
                let op = match op {
                    LogicalOp::And => Op::And,
                    LogicalOp::Or => Op::Or,
                    LogicalOp::Xor => Op::Xor,
                };
                let value = self.b.op(op, [a, b]);
                return self.convert(Element { value, dtype: DType::Bool }, dtype);
            }
            BinaryOp::Complex => return None,
            BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) => {}
        }
        let (a, b) = (self.convert(a, dtype)?.value, self.convert(b, dtype)?.value);
        let elem = self.b.ty(a).elem;
        let is_unsigned = !elem.is_float() && !is_signed(dtype);
        if elem == Elem::Bit {
            return None;
        }
        if let BinaryOp::Arithmetic(op @ (ArithmeticOp::Pow | ArithmeticOp::Atan2)) = op {
            if !elem.is_float() {
                return None;
            }
            let function = if op == ArithmeticOp::Pow { Function2::Pow } else { Function2::Atan2 };
            let value = self.b.function2(function, a, b);
            return Some(self.fit(value, dtype));
        }
        let op = match op {
            BinaryOp::Arithmetic(op) => match op {
                ArithmeticOp::Add => Op::Add,
                ArithmeticOp::Subtract => Op::Sub,
                ArithmeticOp::Multiply => Op::Mul,
                ArithmeticOp::Divide => Op::Div,
                ArithmeticOp::Max if is_unsigned => Op::MaxU,
                ArithmeticOp::Min if is_unsigned => Op::MinU,
                ArithmeticOp::Max => Op::Max,
                ArithmeticOp::Min => Op::Min,
                ArithmeticOp::Pow
                | ArithmeticOp::Atan2
                | ArithmeticOp::Quotient
                | ArithmeticOp::Remainder => {
                    return None;
                }
            },
            BinaryOp::Bitwise(op) => match op {
                BitwiseOp::And => Op::And,
                BitwiseOp::Or => Op::Or,
                BitwiseOp::Xor => Op::Xor,
                BitwiseOp::LeftShift => Op::Shl,
                BitwiseOp::RightShift if is_unsigned => Op::Shr,
                BitwiseOp::RightShift => Op::Sar,
            },
            BinaryOp::Comparison(_) | BinaryOp::Logical(_) | BinaryOp::Complex => unreachable!("done above"),
        };
        let value = self.b.op(op, [a, b]);
        Some(self.fit(value, dtype))
    }

    /// Compares by mathematical value.
    fn compare(&mut self, op: ComparisonOp, a: Element, b: Element) -> Option<Val> {
        let both = a.dtype.compared(b.dtype)?;
        let (a, b) = (self.convert(a, both)?.value, self.convert(b, both)?.value);
        let elem = self.b.ty(a).elem;
        if elem == Elem::Bit {
            // False comes before true.
            return Some(match op {
                ComparisonOp::NotEqual => self.b.op(Op::Xor, [a, b]),
                ComparisonOp::Equal => {
                    let differ = self.b.op(Op::Xor, [a, b]);
                    self.b.op(Op::Not, [differ])
                }
                ComparisonOp::Greater => self.b.op(Op::AndNot, [a, b]),
                ComparisonOp::Less => self.b.op(Op::AndNot, [b, a]),
                ComparisonOp::GreaterEqual => {
                    let less = self.b.op(Op::AndNot, [b, a]);
                    self.b.op(Op::Not, [less])
                }
                ComparisonOp::LessEqual => {
                    let greater = self.b.op(Op::AndNot, [a, b]);
                    self.b.op(Op::Not, [greater])
                }
            });
        }
        let is_unsigned = !elem.is_float() && !is_signed(both);
        let (less, less_equal) = if is_unsigned { (Cmp::LtU, Cmp::LeU) } else { (Cmp::Lt, Cmp::Le) };
        Some(match op {
            ComparisonOp::Equal => self.b.compare(Cmp::Eq, a, b),
            ComparisonOp::NotEqual => self.b.compare(Cmp::Ne, a, b),
            ComparisonOp::Less => self.b.compare(less, a, b),
            ComparisonOp::LessEqual => self.b.compare(less_equal, a, b),
            ComparisonOp::Greater => self.b.compare(less, b, a),
            ComparisonOp::GreaterEqual => self.b.compare(less_equal, b, a),
        })
    }

    /// `a` where `predicate` is true, else `b`.
    pub(super) fn select(
        &mut self,
        predicate: Element,
        a: Element,
        b: Element,
        dtype: DType,
    ) -> Option<Element> {
        computed(predicate.dtype)?;
        let predicate = self.truth(predicate).value;
        let (a, b) = (self.convert(a, dtype)?.value, self.convert(b, dtype)?.value);
        Some(Element { value: self.b.select(predicate, a, b), dtype })
    }

    /// `x` moved into `low..=high`; `high` wins.
    pub(super) fn clip(&mut self, x: Element, low: Element, high: Element, dtype: DType) -> Option<Element> {
        let [x, low, high] = [x, low, high].map(|operand| self.convert(operand, dtype));
        let (x, low, high) = (x?.value, low?.value, high?.value);
        let elem = self.b.ty(x).elem;
        if elem == Elem::Bit {
            return None;
        }
        let (max, min) =
            if !elem.is_float() && !is_signed(dtype) { (Op::MaxU, Op::MinU) } else { (Op::Max, Op::Min) };
        let above = self.b.op(max, [x, low]);
        Some(Element { value: self.b.op(min, [above, high]), dtype })
    }
}
