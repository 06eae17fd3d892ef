//! Element by element, with broadcasting, and numbers that give way.

use super::{Arg, Builder};
use crate::compose;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{BinaryOp, BinaryRule, Block, Op, Tolerance, UnaryOp};
use crate::scalar::Number;

/// Makes the trait: a method for each op of the catalogue, and the methods written out. The tests' functions
/// at the end match on the catalogue, so that an op without a method does not compile.
macro_rules! build_elementwise {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident => $unary_op:ident;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident => $binary_op:ident;)* }
        $(#[$doc:meta])* trait { $($methods:tt)* }
    ) => {
        $(#[$doc])*
        pub trait BuildElementwise: Builder + Sized {
            $($methods)*

            $(
                $(#[$unary_doc])*
                ///
                /// # Errors
                /// As [`BuildElementwise::unary`].
                fn $unary(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
                    self.unary(UnaryOp::$unary_op, x)
                }
            )*

            $(
                $(#[$binary_doc])*
                ///
                /// # Errors
                /// As [`BuildElementwise::binary`].
                fn $binary(
                    &mut self,
                    a: impl Into<Arg<Self::V>>,
                    b: impl Into<Arg<Self::V>>,
                ) -> Result<Self::V> {
                    self.binary(BinaryOp::$binary_op, a, b)
                }
            )*
        }

        #[cfg(test)]
        fn unary_by_name<B: Builder>(b: &mut B, op: UnaryOp, x: &B::V) -> (&'static str, Result<B::V>) {
            match op { $(UnaryOp::$unary_op => (stringify!($unary), b.$unary(x)),)* }
        }

        #[cfg(test)]
        fn binary_by_name<B: Builder>(
            b: &mut B,
            op: BinaryOp,
            x: &B::V,
            y: &B::V,
        ) -> (&'static str, Result<B::V>) {
            match op { $(BinaryOp::$binary_op => (stringify!($binary), b.$binary(x, y)),)* }
        }
    };
}

build_elementwise! {
    unary {
        /// `-x`, wrapping for integers.
        negate => Negate;
        /// `|x|`; the most negative integer wraps to itself.
        abs => Abs;
        /// -1, 0 or 1; NaN stays NaN; `z / |z|` for complex.
        sign => Sign;
        /// The greatest integer not above `x`; the identity on integers.
        floor => Floor;
        /// The least integer not below `x`; the identity on integers.
        ceil => Ceil;
        /// The nearest integer, halves away from zero; the identity on integers.
        round => Round;
        /// `e^x`.
        exp => Exp;
        /// `e^x - 1`, accurate near zero, where `exp(x) - 1` cancels.
        expm1 => Expm1;
        /// The natural logarithm; NaN for negative reals.
        log => Log;
        /// `log(1 + x)`, accurate near zero.
        log1p => Log1p;
        /// `1 / (1 + e^-x)`.
        sigmoid => Sigmoid;
        /// Sine.
        sin => Sin;
        /// Cosine.
        cos => Cos;
        /// Tangent.
        tan => Tan;
        /// Hyperbolic sine.
        sinh => Sinh;
        /// Hyperbolic cosine.
        cosh => Cosh;
        /// Hyperbolic tangent.
        tanh => Tanh;
        /// Arc sine.
        asin => Asin;
        /// Arc cosine.
        acos => Acos;
        /// Arc tangent.
        atan => Atan;
        /// Inverse hyperbolic sine.
        asinh => Asinh;
        /// Inverse hyperbolic cosine.
        acosh => Acosh;
        /// Inverse hyperbolic tangent.
        atanh => Atanh;
        /// The square root; NaN for negative reals.
        sqrt => Sqrt;
        /// `1 / sqrt(x)`.
        rsqrt => Rsqrt;
        /// The cube root; negative for negative reals.
        cbrt => Cbrt;
        /// The error function.
        erf => Erf;
        /// `1 - erf(x)`, accurate for large `x`.
        erfc => Erfc;
        /// The inverse of `erf`; infinite at -1 and 1.
        erf_inv => ErfInv;
        /// The complex conjugate; a real operand becomes complex.
        conjugate => Conjugate;
        /// The real part.
        real => Real;
        /// The imaginary part; 0 for real operands.
        imag => Imag;
        /// Every bit inverted.
        bitwise_not => BitwiseNot;
        /// How many bits are 1.
        population_count => PopulationCount;
        /// How many bits are 0 before the first 1, in the type's own width.
        count_leading_zeros => CountLeadingZeros;
        /// Whether `x` is not a number; a complex number if either part is.
        is_nan => IsNan;
        /// Whether `x` is infinite; a complex number if either part is.
        is_infinity => IsInfinity;
    }
    binary {
        /// `a + b`, wrapping for integers.
        add => Add;
        /// `a - b`, wrapping for integers.
        subtract => Subtract;
        /// `a * b`, wrapping for integers.
        multiply => Multiply;
        /// `a / b`, always a float.
        divide => Divide;
        /// `a^b`; exact modulo 2^bits for integers, whose exponents must not be negative.
        pow => Pow;
        /// The angle of the point (b, a).
        atan2 => Atan2;
        /// The integer quotient, truncated towards zero.
        quotient => Quotient;
        /// What truncated division leaves; it has the sign of `a`.
        remainder => Remainder;
        /// The greater; NaN if either is.
        max => Max;
        /// The lesser; NaN if either is.
        min => Min;
        /// Bits that are 1 in both.
        bitwise_and => BitwiseAnd;
        /// Bits that are 1 in either.
        bitwise_or => BitwiseOr;
        /// Bits that differ.
        bitwise_xor => BitwiseXor;
        /// `a * 2^b`; 0 from the type's width on.
        left_shift => LeftShift;
        /// `a / 2^b` rounded down: arithmetic for signed results, logical for unsigned ones.
        right_shift => RightShift;
        /// Whether the values are equal, compared as numbers whatever their types.
        equal => Equal;
        /// Whether the values differ.
        not_equal => NotEqual;
        /// Whether `a > b`.
        greater => Greater;
        /// Whether `a >= b`.
        greater_equal => GreaterEqual;
        /// Whether `a < b`.
        less => Less;
        /// Whether `a <= b`.
        less_equal => LessEqual;
        /// Whether neither is zero.
        logical_and => LogicalAnd;
        /// Whether either is not zero.
        logical_or => LogicalOr;
        /// Whether exactly one is not zero.
        logical_xor => LogicalXor;
        /// The complex number `a + bi`; the operands are real.
        complex => Complex;
    }

    /// Elementwise ops. Operands broadcast; a plain number beside a tensor takes on the tensor's element
    /// type, and two plain numbers are tensors of their own.
    trait {
        /// `op(x)`. The shape and its names are kept.
        ///
        /// # Errors
        /// An element type outside the op's domain.
        fn unary(&mut self, op: UnaryOp, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            let x = self.operand(x)?;
            if op == UnaryOp::BitwiseNot && self.ty(&x).dtype.is_bool() {
                return self.logical_not(x);
            }
            self.emit_one(Op::Unary(op), &[x])
        }

        /// `op(a, b)`. Shapes broadcast, names merge, and a plain number gives way to the tensor beside it.
        ///
        /// ```
        /// use defn_core::builder::{BuildCreate, BuildElementwise, Builder};
        /// use defn_core::graph::Graph;
        /// use defn_core::{DType, Shape};
        /// let mut graph = Graph::new();
        /// let x = graph.iota(Shape::new(&[3]), DType::U8, None)?;
        /// let y = graph.add(x, 1.5)?;
        /// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[3]");
        /// # Ok::<(), defn_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// Shapes or names that do not fit, an element type outside the op's domain, an integer that does not
        /// fit the integer type that it meets, and a negative number as exponent of an integer. Predicates compare
        /// any integer exactly, and what is computed in floats takes any integer as one.
        fn binary(
            &mut self,
            op: BinaryOp,
            a: impl Into<Arg<Self::V>>,
            b: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            let (a, b) = (a.into(), b.into());
            if op == BinaryOp::Pow {
                check_exponent(self, &a, &b)?;
            }
            let (a, b) = match op.rule() {
                BinaryRule::Predicate => self.wide_pair(op.name(), a, b, DType::comparing)?,
                BinaryRule::Float | BinaryRule::Complex => self.wide_pair(op.name(), a, b, |_| DType::F32)?,
                BinaryRule::Merge => self.weak_pair(op.name(), a, b)?,
            };
            let bools = self.ty(&a).dtype.is_bool() && self.ty(&b).dtype.is_bool();
            let op = if bools { of_bools(op) } else { op };
            self.emit_one(Op::Binary(op), &[a, b])
        }

        /// `x` with elements of another type; `x` itself where it has it already.
        ///
        /// As bool everything but 0 is true, NaN too; that is the op `not_equal`. Integers wrap, floats become integers by truncation and saturate, NaN becomes 0, complex
        /// numbers lose their imaginary part.
        ///
        /// # Errors
        /// What the builder has against a new node.
        fn as_type(&mut self, x: impl Into<Arg<Self::V>>, dtype: DType) -> Result<Self::V> {
            let x = x.into();
            // A narrow integer type would refuse what has to wrap.
            if let Arg::Value(value) = &x
                && let Some(number) = self.weakness(value)
                && dtype.merge_weak(number) == dtype
                && (dtype == DType::S64 || !dtype.is_integer())
            {
                return self.in_dtype(value.clone(), dtype);
            }
            let x = self.operand(x)?;
            if self.ty(&x).dtype == dtype {
                Ok(x)
            } else if dtype.is_bool() {
                self.not_equal(x, 0)
            } else {
                self.emit_one(Op::AsType { dtype }, &[x])
            }
        }

        /// The bits of `x` read as elements of another type of the same width.
        ///
        /// # Errors
        /// Widths that differ, or a complex type on either side.
        fn bitcast(&mut self, x: impl Into<Arg<Self::V>>, dtype: DType) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.emit_one(Op::Bitcast { dtype }, &[x])
        }

        /// `on_true` where `pred` is not zero, else `on_false`. A plain number gives way to the other branch.
        ///
        /// The predicate and both branches broadcast together, and their names merge.
        ///
        /// # Errors
        /// Shapes that do not fit, and an integer that does not fit the integer type of the other branch.
        fn select(
            &mut self,
            pred: impl Into<Arg<Self::V>>,
            on_true: impl Into<Arg<Self::V>>,
            on_false: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            let (on_true, on_false) = self.weak_pair("select", on_true, on_false)?;
            let pred = self.operand(pred)?;
            self.emit_one(Op::Select, &[pred, on_true, on_false])
        }

        /// `x` moved into the bounds, which are scalars; `hi` wins where `lo > hi`, NaN stays NaN. The result's
        /// element type merges all three; plain numbers give way, and bounds beyond an integer type are its ends.
        ///
        /// # Errors
        /// Bounds that are no scalars, and complex operands.
        fn clip(
            &mut self,
            x: impl Into<Arg<Self::V>>,
            lo: impl Into<Arg<Self::V>>,
            hi: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            let mut operands = [x.into(), lo.into(), hi.into()];
            if let Some(ty) = self.weak_type(&operands) {
                for bound in &mut operands[1..] {
                    match bound {
                        Arg::Number(number) if ty.dtype.lacks(*number) => {
                            *number = if number.to_f64() < 0.0 { ty.dtype.lowest() } else { ty.dtype.highest() };
                        }
                        Arg::Value(value)
                            if self.weakness(value).is_some() && ty.dtype.is_integer() && ty.dtype != DType::S64 =>
                        {
                            let wide = self.in_dtype(value.clone(), DType::S64)?;
                            let within = self.clip(wide, ty.dtype.lowest(), ty.dtype.highest())?;
                            *bound = self.as_type(within, ty.dtype)?.into();
                        }
                        Arg::Number(_) | Arg::Value(_) => {}
                    }
                }
            }
            let operands = self.weak_all("clip", operands)?;
            self.emit_one(Op::Clip, &operands)
        }

        /// Whether `x` is zero.
        ///
        /// # Errors
        /// What the builder has against a new node.
        fn logical_not(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.emit_one(Op::Block(Block::LogicalNot), &[x])
        }

        /// The angle of a complex number, a real one's being 0 or pi.
        ///
        /// # Errors
        /// What the builder has against a new node.
        fn phase(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.emit_one(Op::Block(Block::Phase), &[x])
        }

        /// A bool scalar: whether all elements agree within `atol + rtol * |b|`. Equal infinities agree.
        ///
        /// # Errors
        /// Shapes that do not broadcast.
        fn all_close(
            &mut self,
            a: impl Into<Arg<Self::V>>,
            b: impl Into<Arg<Self::V>>,
            equal_nan: bool,
            rtol: f64,
            atol: f64,
        ) -> Result<Self::V> {
            let (a, b) = self.wide_pair("all_close", a, b, DType::comparing)?;
            let (rtol, atol) = (Tolerance(rtol), Tolerance(atol));
            self.emit_one(Op::Block(Block::AllClose { equal_nan, rtol, atol }), &[a, b])
        }

        /// The logarithm to a base; a plain number as base gives way to the type of `x`.
        ///
        /// # Errors
        /// A plain number as base that is 1, or not above 0.
        fn log_base(
            &mut self,
            x: impl Into<Arg<Self::V>>,
            base: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            compose::elementwise::log_base(self, x.into(), base.into())
        }

        /// The logarithm to base 2.
        ///
        /// # Errors
        /// What the builder has against a new node.
        fn log2(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.emit_one(Op::Block(Block::Log2), &[x])
        }

        /// The logarithm to base 10.
        ///
        /// # Errors
        /// What the builder has against a new node.
        fn log10(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.emit_one(Op::Block(Block::Log10), &[x])
        }

        /// `a / b` rounded down: Python's `//`, for integers without going through floats.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        fn floor_divide(
            &mut self,
            a: impl Into<Arg<Self::V>>,
            b: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            let (a, b) = self.weak_pair("floor_divide", a, b)?;
            compose::elementwise::floor_divide(self, &a, &b)
        }

        /// What [`BuildElementwise::floor_divide`] leaves, with the sign of `b`: Python's `%`.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        fn floor_modulo(
            &mut self,
            a: impl Into<Arg<Self::V>>,
            b: impl Into<Arg<Self::V>>,
        ) -> Result<Self::V> {
            let (a, b) = self.weak_pair("floor_modulo", a, b)?;
            compose::elementwise::floor_modulo(self, &a, &b)
        }
    }
}

impl<B: Builder> BuildElementwise for B {}

/// The op that two bools stand for: their sum is "or", their product "and", and their bits are themselves.
fn of_bools(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::BitwiseOr => BinaryOp::LogicalOr,
        BinaryOp::Multiply | BinaryOp::BitwiseAnd => BinaryOp::LogicalAnd,
        BinaryOp::BitwiseXor => BinaryOp::LogicalXor,
        BinaryOp::Subtract
        | BinaryOp::Divide
        | BinaryOp::Pow
        | BinaryOp::Atan2
        | BinaryOp::Quotient
        | BinaryOp::Remainder
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => op,
    }
}

/// An exponent that is known to be negative has no integer power.
fn check_exponent<B: Builder>(b: &B, base: &Arg<B::V>, exponent: &Arg<B::V>) -> Result<()> {
    let base_is_integer = match base {
        Arg::Value(base) => b.ty(base).dtype.is_integer(),
        Arg::Number(number) => number.dtype().is_integer(),
    };
    match exponent {
        Arg::Number(Number::Int(value)) if *value < 0 && base_is_integer => {
            Err(ErrorKind::NegativeExponent { value: *value }.into())
        }
        Arg::Number(
            Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_),
        )
        | Arg::Value(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::shape::TensorType;

    #[test]
    fn methods_are_named_as_the_ops_and_apply_them() {
        let mut graph = Graph::new();
        // Every op takes integers; the first two parameters differ, so that nothing simplifies away.
        let x = graph.parameter(0, TensorType::scalar(DType::U8));
        let y = graph.parameter(1, TensorType::scalar(DType::S16));
        for &op in UnaryOp::ALL {
            let (name, value) = unary_by_name(&mut graph, op, &x);
            assert_eq!(name, op.name());
            assert_eq!(graph.node(value.unwrap()).op, Op::Unary(op));
        }
        for &op in BinaryOp::ALL {
            let (name, value) = binary_by_name(&mut graph, op, &x, &y);
            assert_eq!(name, op.name());
            let node = graph.node(value.unwrap());
            assert_eq!((&node.op, &node.inputs[..]), (&Op::Binary(op), &[x, y][..]));
        }
    }
}
