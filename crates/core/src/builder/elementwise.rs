//! Element-wise ops, with broadcasting and weak numbers.

use super::{Arg, Builder, Composite};
use crate::compose;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{BinaryOp, BinaryRule, Block, CompositeBlock, Op, Tolerance, UnaryOp};
use crate::scalar::Number;
use crate::{binary_rows, unary_rows};

/// Declares a method for each unary op.
macro_rules! unary_methods {
    ($($(#[$family_doc:meta])* $family:ident($leaf:ident) {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident, $cost:ident;)*
    })*) => {$($(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`BuildElementwise::unary`].
        fn $name(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            self.unary(UnaryOp::$constant, x)
        }
    )*)*};
}

/// Declares a method for each binary op.
macro_rules! binary_methods {
    ($($(#[$family_doc:meta])* $family:ident $(($leaf:ident))? {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident,
            $cost:ident, $order:ident $(, refuses $refused:ident)?;)*
    })*) => {$($(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`BuildElementwise::binary`].
        fn $name(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
            self.binary(BinaryOp::$constant, a, b)
        }
    )*)*};
}

/// Element-wise ops. Operands broadcast. A plain number takes the element type of the other operand; if both operands
/// are plain numbers, they become tensors of their default dtypes.
pub trait BuildElementwise: Builder + Sized {
    /// `op(x)`. The shape and its names are kept.
    ///
    /// # Errors
    /// An element type outside the op's domain.
    fn unary(&mut self, op: UnaryOp, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        if op == UnaryOp::BITWISE_NOT && self.ty(&x).dtype.is_bool() {
            return self.logical_not(x);
        }
        self.emit_one(Op::Unary(op), &[x])
    }

    /// `op(a, b)`. Shapes broadcast, names merge, and a plain number takes the element type of the other operand.
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
    /// Shapes or names that do not match, an element type outside the op's domain, an integer that does not fit the
    /// other operand's integer type, and a negative number as the exponent of an integer. Predicates compare all
    /// integers exactly, and ops that compute in floats convert all integers to floats.
    fn binary(
        &mut self,
        op: BinaryOp,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (a, b) = (a.into(), b.into());
        if op == BinaryOp::POW {
            check_exponent(self, &a, &b)?;
        }
        let (a, b) = match op.rule() {
            BinaryRule::Predicate => self.weak_pair_widened(op.name(), a, b, DType::comparing)?,
            BinaryRule::Float | BinaryRule::Complex => {
                self.weak_pair_widened(op.name(), a, b, |_| DType::F32)?
            }
            BinaryRule::Merge => self.weak_pair(op.name(), a, b)?,
        };
        let bools = self.ty(&a).dtype.is_bool() && self.ty(&b).dtype.is_bool();
        let op = if bools { logical_counterpart(op) } else { op };
        self.emit_one(Op::Binary(op), &[a, b])
    }

    /// `x` converted to another element type; `x` itself if it already has that type.
    ///
    /// Conversion to bool is the op `not_equal`: every value but 0 is true, NaN included. Integers wrap. Floats are
    /// truncated to integers and saturate; NaN becomes 0. Complex numbers lose their imaginary part.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn as_type(&mut self, x: impl Into<Arg<Self::V>>, dtype: DType) -> Result<Self::V> {
        let x = x.into();
        // The direct conversion would be an error for a narrow integer type, where the value must wrap.
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

    /// `on_true` where `pred` is not zero, else `on_false`. A plain number takes the element type of the other
    /// branch.
    ///
    /// The predicate and both branches broadcast together, and their names merge.
    ///
    /// # Errors
    /// Shapes that do not match, and an integer that does not fit the other branch's integer type.
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

    /// `x` clamped to the bounds, which are scalars. If `lo > hi`, the result is `hi`; NaN stays NaN. The result's
    /// element type merges all three. Plain numbers are weak; bounds outside the range of an integer type become its
    /// limits.
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
                        if self.weakness(value).is_some()
                            && ty.dtype.is_integer()
                            && ty.dtype != DType::S64 =>
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
    /// As [`Builder::emit`].
    fn logical_not(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("logical_not", &[]), [x], &|b, x| {
            b.emit_one(Op::Block(Block::Composite(CompositeBlock::LogicalNot)), x)
        })
    }

    /// The angle of a complex number; for a real number 0 or pi.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn phase(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("phase", &[]), [x], &|b, x| {
            b.emit_one(Op::Block(Block::Composite(CompositeBlock::Phase)), x)
        })
    }

    /// Whether `x` is neither infinite nor NaN; of a complex number, whether both parts are.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn isfinite(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("isfinite", &[]), [x], &|b, [x]| compose::derived::isfinite(b, x))
    }

    /// Whether the sign bit of `x` is set, also that of -0.0 and of NaN. Bools and unsigned integers have none.
    ///
    /// # Errors
    /// A complex operand.
    fn signbit(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("signbit", &[]), [x], &|b, [x]| compose::derived::signbit(b, x))
    }

    /// `x * x`.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn square(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("square", &[]), [x], &|b, [x]| b.multiply(x, x))
    }

    /// `1 / x`, always a float.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn reciprocal(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("reciprocal", &[]), [x], &|b, [x]| b.divide(1, x))
    }

    /// `x` without its fraction; the identity on integers and bools.
    ///
    /// # Errors
    /// A complex operand.
    fn trunc(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("trunc", &[]), [x], &|b, [x]| compose::derived::trunc(b, x))
    }

    /// `2^x`, always a float.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn exp2(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("exp2", &[]), [x], &|b, [x]| compose::derived::exp2(b, x))
    }

    /// An angle in radians, from degrees.
    ///
    /// # Errors
    /// A complex operand.
    fn radians(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("radians", &[]), [x], &|b, [x]| compose::derived::radians(b, x))
    }

    /// An angle in degrees, from radians.
    ///
    /// # Errors
    /// A complex operand.
    fn degrees(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("degrees", &[]), [x], &|b, [x]| compose::derived::degrees(b, x))
    }

    /// `sin(pi x) / (pi x)`, which is 1 at 0. Derivatives are accurate near 0.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn sinc(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("sinc", &[]), [x], &|b, [x]| compose::derived::sinc(b, x))
    }

    /// A bool scalar: whether all elements are equal within `atol + rtol * |b|`. Equal infinities count as equal.
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
        let (a, b) = self.weak_pair_widened("all_close", a, b, DType::comparing)?;
        let options = [equal_nan.into(), rtol.to_bits(), atol.to_bits()];
        self.composite(Composite::new("all_close", &options), [a, b], &|b, operands| {
            let (rtol, atol) = (Tolerance(rtol), Tolerance(atol));
            let block = CompositeBlock::AllClose { equal_nan, rtol, atol };
            b.emit_one(Op::Block(Block::Composite(block)), operands)
        })
    }

    /// Whether elements are equal within `atol + rtol * |b|`. Equal infinities count as equal.
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    fn isclose(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        equal_nan: bool,
        rtol: f64,
        atol: f64,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("isclose", a, b, DType::comparing)?;
        self.ty(&a).shape.broadcast_with("isclose", &self.ty(&b).shape)?;
        let options = [u64::from(equal_nan), rtol.to_bits(), atol.to_bits()];
        self.composite(Composite::new("isclose", &options), [a, b], &|b, [x, y]| {
            compose::derived::isclose(b, x, y, equal_nan, rtol, atol)
        })
    }

    /// `x` with numbers in place of NaN and of infinities; without a number for an infinity, the greatest or least
    /// finite number of the type. Integers and bools stay as they are, and each part of a complex number is replaced.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn nan_to_num(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        nan: f64,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let [upper, lower] = [posinf, neginf].map(|number| number.map_or(0, f64::to_bits));
        let options = [nan.to_bits(), upper, lower, posinf.is_none().into(), neginf.is_none().into()];
        let function = Composite::new("nan_to_num", &options);
        self.composite(function, [x], &|b, [x]| compose::derived::nan_to_num(b, x, nan, posinf, neginf))
    }

    /// The logarithm to a base. A plain number as base takes the type of `x`.
    ///
    /// # Errors
    /// A plain number as base that is 1 or not positive.
    fn log_base(&mut self, x: impl Into<Arg<Self::V>>, base: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        compose::elementwise::log_base(self, x.into(), base.into())
    }

    /// The logarithm to base 2.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn log2(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("log2", &[]), [x], &|b, x| b.emit_one(Op::Block(Block::Log2), x))
    }

    /// The logarithm to base 10.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn log10(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("log10", &[]), [x], &|b, x| b.emit_one(Op::Block(Block::Log10), x))
    }

    /// `a / b` rounded down: Python's `//`. Integers are divided without conversion to floats.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn floor_divide(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("floor_divide", a, b)?;
        if !has_floats(self, [&a, &b]) {
            return compose::elementwise::floor_divide(self, &a, &b);
        }
        let function = Composite::new("floor_divide", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::elementwise::floor_divide(b, x, y))
    }

    /// The remainder of [`BuildElementwise::floor_divide`], with the sign of `b`: Python's `%`.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn floor_modulo(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("floor_modulo", a, b)?;
        if !has_floats(self, [&a, &b]) {
            return compose::elementwise::floor_modulo(self, &a, &b);
        }
        let function = Composite::new("floor_modulo", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::elementwise::floor_modulo(b, x, y))
    }

    /// The magnitude of `a` with the sign bit of `b`, also that of -0.0 and of NaN. Always a float.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn copysign(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("copysign", a, b, |_| DType::F32)?;
        let function = Composite::new("copysign", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::derived::copysign(b, x, y))
    }

    /// `sqrt(a^2 + b^2)` without overflow in between; infinite if an operand is, even beside NaN.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn hypot(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("hypot", a, b, |_| DType::F32)?;
        let function = Composite::new("hypot", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::derived::hypot(b, x, y))
    }

    /// `log(exp(a) + exp(b))` without overflow in between.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn logaddexp(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("logaddexp", a, b, |_| DType::F32)?;
        let function = Composite::new("logaddexp", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::derived::logaddexp(b, x, y))
    }

    /// 0 where `a` is negative, 1 where it is positive, `b` where it is 0, and NaN where it is NaN.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn heaviside(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("heaviside", a, b, |_| DType::F32)?;
        let function = Composite::new("heaviside", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::derived::heaviside(b, x, y))
    }

    /// The next float from `a` towards `b`; `b` where both are equal, and NaN where one is NaN.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn nextafter(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("nextafter", a, b, |_| DType::F32)?;
        let function = Composite::new("nextafter", &[]);
        self.composite(function, [a, b], &|b, [x, y]| compose::derived::nextafter(b, x, y))
    }

    /// [`BuildElementwise::floor_divide`] and [`BuildElementwise::floor_modulo`]: Python's `divmod`.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn divmod(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
    ) -> Result<(Self::V, Self::V)> {
        let (a, b) = self.weak_pair("divmod", a, b)?;
        if !has_floats(self, [&a, &b]) {
            return compose::elementwise::divmod(self, &a, &b);
        }
        let [quotient, remainder] =
            self.composite_results(Composite::new("divmod", &[]), [a, b], &|b, [x, y]| {
                let (quotient, remainder) = compose::elementwise::divmod(b, x, y)?;
                Ok([quotient, remainder])
            })?;
        Ok((quotient, remainder))
    }

    unary_rows!(unary_methods);
    binary_rows!(binary_methods);
}

impl<B: Builder> BuildElementwise for B {}

/// The op on two bools: addition is "or", multiplication is "and", and bitwise ops are the logical ops.
fn logical_counterpart(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::ADD | BinaryOp::BITWISE_OR => BinaryOp::LOGICAL_OR,
        BinaryOp::MULTIPLY | BinaryOp::BITWISE_AND => BinaryOp::LOGICAL_AND,
        BinaryOp::BITWISE_XOR => BinaryOp::LOGICAL_XOR,
        BinaryOp::Arithmetic(_)
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => op,
    }
}

/// Returns an error if an integer's exponent is a number known to be negative, because the power is no integer.
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

/// Whether an operand has floats. A division of integers by zero is an error in eager ops, but not in compiled programs.
fn has_floats<B: Builder>(b: &B, operands: [&B::V; 2]) -> bool {
    operands.iter().any(|operand| b.ty(operand).dtype.is_inexact())
}
