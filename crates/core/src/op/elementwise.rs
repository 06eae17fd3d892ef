//! One element in, or two, one out.

use crate::dtype::DType;

/// Which element types an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Every type.
    Any,
    /// Numbers of any kind: every type but bool.
    Number,
    /// What has an order: bools, integers and floats.
    Real,
    /// Integers and floats.
    RealNumber,
    /// Integers.
    Integer,
}

impl Domain {
    /// Whether the domain has a type.
    pub fn has(self, dtype: DType) -> bool {
        match self {
            Domain::Any => true,
            Domain::Number => !dtype.is_bool(),
            Domain::Real => !dtype.is_complex(),
            Domain::RealNumber => dtype.is_integer() || dtype.is_float(),
            Domain::Integer => dtype.is_integer(),
        }
    }

    /// The domain in a sentence that begins "it must be".
    pub fn text(self) -> &'static str {
        match self {
            Domain::Any => "a tensor",
            Domain::Number => "a number, not bool",
            Domain::Real => "an integer or a float, not complex",
            Domain::RealNumber => "an integer or a float",
            Domain::Integer => "an integer",
        }
    }
}

/// The element type of a unary op's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryRule {
    /// The operand's.
    Same,
    /// The operand's, or f32 for integers and bools.
    Float,
    /// The operand's, or the half of a complex one.
    Magnitude,
    /// The half of a complex type, a float as it is, f32 for integers and bools.
    Real,
    /// The complex type of the operand's width.
    Complex,
    /// bool.
    Predicate,
}

/// The element type of a binary op's result, from the merge of both operands'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryRule {
    /// The merged type.
    Merge,
    /// The merged type, or f32 for integers and bools.
    Float,
    /// The complex type of the merged type's width.
    Complex,
    /// bool.
    Predicate,
}

macro_rules! elementwise {
    ($(#[$doc:meta])* pub enum $name:ident: $rule_ty:ident {
        $($(#[$row:meta])* $variant:ident = $text:literal, $domain:ident => $rule:ident;)*
    }) => {
        super::catalogue! {
            $(#[$doc])*
            pub enum $name { $($(#[$row])* $variant = $text,)* }
        }

        impl $name {
            /// The element types that the op takes; of the merged type, where there are two operands.
            pub const fn domain(self) -> Domain {
                match self { $($name::$variant => Domain::$domain,)* }
            }

            /// The element type of the result.
            pub const fn rule(self) -> $rule_ty {
                match self { $($name::$variant => $rule_ty::$rule,)* }
            }
        }
    };
}

elementwise! {
    /// One tensor in, one out, element by element; the shape and its names are kept.
    pub enum UnaryOp: UnaryRule {
        /// `-x`, wrapping for integers.
        Negate = "negate", Number => Same;
        /// `|x|`; the most negative integer wraps to itself.
        Abs = "abs", Any => Magnitude;
        /// -1, 0 or 1; NaN stays NaN; `z / |z|` for complex.
        Sign = "sign", Any => Same;
        /// The greatest integer not above `x`; the identity on integers.
        Floor = "floor", Real => Same;
        /// The least integer not below `x`; the identity on integers.
        Ceil = "ceil", Real => Same;
        /// The nearest integer, halves away from zero; the identity on integers.
        Round = "round", Real => Same;
        /// `e^x`.
        Exp = "exp", Any => Float;
        /// `e^x - 1`, accurate near zero, where `exp(x) - 1` cancels.
        Expm1 = "expm1", Any => Float;
        /// The natural logarithm; NaN for negative reals.
        Log = "log", Any => Float;
        /// `log(1 + x)`, accurate near zero.
        Log1p = "log1p", Any => Float;
        /// `1 / (1 + e^-x)`.
        Sigmoid = "sigmoid", Any => Float;
        /// Sine.
        Sin = "sin", Any => Float;
        /// Cosine.
        Cos = "cos", Any => Float;
        /// Tangent.
        Tan = "tan", Any => Float;
        /// Hyperbolic sine.
        Sinh = "sinh", Any => Float;
        /// Hyperbolic cosine.
        Cosh = "cosh", Any => Float;
        /// Hyperbolic tangent.
        Tanh = "tanh", Any => Float;
        /// Arc sine.
        Asin = "asin", Any => Float;
        /// Arc cosine.
        Acos = "acos", Any => Float;
        /// Arc tangent.
        Atan = "atan", Any => Float;
        /// Inverse hyperbolic sine.
        Asinh = "asinh", Any => Float;
        /// Inverse hyperbolic cosine.
        Acosh = "acosh", Any => Float;
        /// Inverse hyperbolic tangent.
        Atanh = "atanh", Any => Float;
        /// The square root; NaN for negative reals.
        Sqrt = "sqrt", Any => Float;
        /// `1 / sqrt(x)`.
        Rsqrt = "rsqrt", Any => Float;
        /// The cube root; negative for negative reals.
        Cbrt = "cbrt", Any => Float;
        /// The error function.
        Erf = "erf", Real => Float;
        /// `1 - erf(x)`, accurate for large `x`.
        Erfc = "erfc", Real => Float;
        /// The inverse of `erf`; infinite at -1 and 1.
        ErfInv = "erf_inv", Real => Float;
        /// The complex conjugate; a real operand becomes complex.
        Conjugate = "conjugate", Any => Complex;
        /// The real part.
        Real = "real", Any => Real;
        /// The imaginary part; 0 for real operands.
        Imag = "imag", Any => Real;
        /// Every bit inverted.
        BitwiseNot = "bitwise_not", Integer => Same;
        /// How many bits are 1.
        PopulationCount = "population_count", Integer => Same;
        /// How many bits are 0 before the first 1, in the type's own width.
        CountLeadingZeros = "count_leading_zeros", Integer => Same;
        /// Whether `x` is not a number; a complex number if either part is.
        IsNan = "is_nan", Any => Predicate;
        /// Whether `x` is infinite; a complex number if either part is.
        IsInfinity = "is_infinity", Any => Predicate;
    }
}

elementwise! {
    /// Two tensors in, one out, element by element, with broadcasting.
    pub enum BinaryOp: BinaryRule {
        /// `a + b`, wrapping for integers. Of two bools the builder makes `logical_or`.
        Add = "add", Number => Merge;
        /// `a - b`, wrapping for integers.
        Subtract = "subtract", Number => Merge;
        /// `a * b`, wrapping for integers. Of two bools the builder makes `logical_and`.
        Multiply = "multiply", Number => Merge;
        /// `a / b`, always a float.
        Divide = "divide", Any => Float;
        /// `a^b`; exact modulo 2^bits for integers, whose exponents must not be negative.
        Pow = "pow", Number => Merge;
        /// The angle of the point (b, a).
        Atan2 = "atan2", Real => Float;
        /// The integer quotient, truncated towards zero.
        Quotient = "quotient", Integer => Merge;
        /// What truncated division leaves; it has the sign of `a`.
        Remainder = "remainder", RealNumber => Merge;
        /// The greater; NaN if either is.
        Max = "max", Real => Merge;
        /// The lesser; NaN if either is.
        Min = "min", Real => Merge;
        /// Bits that are 1 in both.
        BitwiseAnd = "bitwise_and", Integer => Merge;
        /// Bits that are 1 in either.
        BitwiseOr = "bitwise_or", Integer => Merge;
        /// Bits that differ.
        BitwiseXor = "bitwise_xor", Integer => Merge;
        /// `a * 2^b`; 0 from the type's width on.
        LeftShift = "left_shift", Integer => Merge;
        /// `a / 2^b` rounded down: arithmetic for signed results, logical for unsigned ones.
        RightShift = "right_shift", Integer => Merge;
        /// Whether the values are equal, compared as numbers whatever their types.
        Equal = "equal", Any => Predicate;
        /// Whether the values differ.
        NotEqual = "not_equal", Any => Predicate;
        /// Whether `a > b`.
        Greater = "greater", Real => Predicate;
        /// Whether `a >= b`.
        GreaterEqual = "greater_equal", Real => Predicate;
        /// Whether `a < b`.
        Less = "less", Real => Predicate;
        /// Whether `a <= b`.
        LessEqual = "less_equal", Real => Predicate;
        /// Whether neither is zero.
        LogicalAnd = "logical_and", Any => Predicate;
        /// Whether either is not zero.
        LogicalOr = "logical_or", Any => Predicate;
        /// Whether exactly one is not zero.
        LogicalXor = "logical_xor", Any => Predicate;
        /// The complex number `a + bi`; the operands are real.
        Complex = "complex", Real => Complex;
    }
}
