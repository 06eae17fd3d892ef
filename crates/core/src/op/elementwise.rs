//! Element-wise ops of one or two operands.

use crate::dtype::DType;

/// The element types that an op accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Every type.
    Any,
    /// Numbers: every type but bool.
    Number,
    /// Ordered types: bools, integers and floats.
    Real,
    /// Integers and floats.
    RealNumber,
    /// Integers.
    Integer,
}

impl Domain {
    /// Whether the domain contains a type.
    pub fn has(self, dtype: DType) -> bool {
        match self {
            Domain::Any => true,
            Domain::Number => !dtype.is_bool(),
            Domain::Real => !dtype.is_complex(),
            Domain::RealNumber => dtype.is_integer() || dtype.is_float(),
            Domain::Integer => dtype.is_integer(),
        }
    }

    /// The domain as the end of a sentence that begins "it must be".
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
    /// The operand's type.
    Same,
    /// The operand's type; f32 for integers and bools.
    Float,
    /// The operand's type; for a complex type, that of its parts.
    Magnitude,
    /// The type of a complex type's parts; a float type as it is; f32 for integers and bools.
    Real,
    /// The complex type of the operand's width.
    Complex,
    /// bool.
    Predicate,
}

/// The element type of a binary op's result, from the merged type of both operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryRule {
    /// The merged type.
    Merge,
    /// The merged type; f32 for integers and bools.
    Float,
    /// The complex type of the merged type's width.
    Complex,
    /// bool.
    Predicate,
}

/// The cost of one element, as classes: what is cheap is rather computed again than kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementCost {
    /// No more time than reading the operands.
    Cheap,
    /// Several times the time of reading the operands.
    Costly,
}

impl ElementCost {
    /// How many cheap instructions take as long.
    ///
    /// ```
    /// use defn_core::op::ElementCost;
    /// assert_eq!(ElementCost::Cheap.instructions(), 1);
    /// assert_eq!(ElementCost::Costly.instructions(), 16);
    /// ```
    pub fn instructions(self) -> usize {
        match self {
            ElementCost::Cheap => 1,
            ElementCost::Costly => 16,
        }
    }
}

/// Whether the operands can be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandOrder {
    /// `op(a, b)` is `op(b, a)`.
    Commutes,
    /// `op(a, b)` may differ from `op(b, a)`.
    Ordered,
}

/// Integers in the second operand for which an op is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Zero.
    ZeroDivisor,
    /// Negative exponents.
    NegativeExponent,
    /// Negative shift counts.
    NegativeShift,
}

/// The properties of a unary op: one row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnaryTraits {
    /// The element types that the op accepts.
    pub domain: Domain,
    /// The element type of the result.
    pub rule: UnaryRule,
    /// The cost of one element.
    pub cost: ElementCost,
}

/// The properties of a binary op: one row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryTraits {
    /// The element types that the op accepts, applied to the merged type.
    pub domain: Domain,
    /// The element type of the result.
    pub rule: BinaryRule,
    /// The cost of one element.
    pub cost: ElementCost,
    /// Whether the operands can be exchanged.
    pub order: OperandOrder,
    /// Integers that the second operand must not contain.
    pub refused: Option<Refused>,
}

macro_rules! binary {
    (alone {
        $(#[$own_doc:meta])* $own:ident $own_constant:ident $own_name:ident: $own_domain:ident => $own_rule:ident,
            $own_cost:ident, $own_order:ident;
    }
    $($(#[$doc:meta])* $family:ident($leaf:ident) {
        $($(#[$row:meta])* $variant:ident $constant:ident $name:ident: $domain:ident => $rule:ident,
            $cost:ident, $order:ident $(, refuses $refused:ident)?;)*
    })*) => {
        $(
            super::catalogue! {
                $(#[$doc])*
                pub enum $leaf { $($(#[$row])* $variant = stringify!($name),)* }
            }

            impl $leaf {
                /// The properties of the op.
                pub const fn traits(self) -> BinaryTraits {
                    match self {
                        $($leaf::$variant => BinaryTraits {
                            domain: Domain::$domain,
                            rule: BinaryRule::$rule,
                            cost: ElementCost::$cost,
                            order: OperandOrder::$order,
                            refused: refused!($($refused)?),
                        },)*
                    }
                }
            }

            impl From<$leaf> for BinaryOp {
                fn from(op: $leaf) -> BinaryOp {
                    BinaryOp::$family(op)
                }
            }
        )*

        /// Element-wise op of two tensors, with broadcasting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BinaryOp {
            $($(#[$doc])* $family($leaf),)*
            $(#[$own_doc])*
            $own,
        }

        impl BinaryOp {
            $($(
                $(#[$row])*
                pub const $constant: BinaryOp = BinaryOp::$family($leaf::$variant);
            )*)*
            $(#[$own_doc])*
            pub const $own_constant: BinaryOp = BinaryOp::$own;

            /// Every op, in the order of the catalogue.
            pub const ALL: &'static [BinaryOp] = &[$($(BinaryOp::$constant,)*)* BinaryOp::$own];

            /// The public name, the same in Rust, in Python, in graphs and in messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(BinaryOp::$family(op) => op.name(),)*
                    BinaryOp::$own => stringify!($own_name),
                }
            }

            /// The properties of the op.
            pub const fn traits(self) -> BinaryTraits {
                match self {
                    $(BinaryOp::$family(op) => op.traits(),)*
                    BinaryOp::$own => BinaryTraits {
                        domain: Domain::$own_domain,
                        rule: BinaryRule::$own_rule,
                        cost: ElementCost::$own_cost,
                        order: OperandOrder::$own_order,
                        refused: None,
                    },
                }
            }
        }
    };
}

macro_rules! refused {
    () => {
        None
    };
    ($refused:ident) => {
        Some(Refused::$refused)
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $family:ident($leaf:ident) {
        $($(#[$row:meta])* $variant:ident $constant:ident $name:ident: $domain:ident => $rule:ident, $cost:ident;)*
    })*) => {
        $(
            super::catalogue! {
                $(#[$doc])*
                pub enum $leaf { $($(#[$row])* $variant = stringify!($name),)* }
            }

            impl $leaf {
                /// The properties of the op.
                pub const fn traits(self) -> UnaryTraits {
                    match self {
                        $($leaf::$variant => UnaryTraits {
                            domain: Domain::$domain,
                            rule: UnaryRule::$rule,
                            cost: ElementCost::$cost,
                        },)*
                    }
                }
            }

            impl From<$leaf> for UnaryOp {
                fn from(op: $leaf) -> UnaryOp {
                    UnaryOp::$family(op)
                }
            }
        )*

        /// Element-wise op of one tensor; the shape and its names are kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum UnaryOp { $($(#[$doc])* $family($leaf),)* }

        impl UnaryOp {
            $($(
                $(#[$row])*
                pub const $constant: UnaryOp = UnaryOp::$family($leaf::$variant);
            )*)*

            /// Every op, in the order of the catalogue.
            pub const ALL: &'static [UnaryOp] = &[$($(UnaryOp::$constant,)*)*];

            /// The public name, the same in Rust, in Python, in graphs and in messages.
            pub const fn name(self) -> &'static str {
                match self { $(UnaryOp::$family(op) => op.name(),)* }
            }

            /// The properties of the op.
            pub const fn traits(self) -> UnaryTraits {
                match self { $(UnaryOp::$family(op) => op.traits(),)* }
            }
        }
    };
}

/// Calls a macro with the rows of the unary ops: the op, its constant, its public name, the element types that it
/// accepts, the result's element type, and the cost of one element.
#[doc(hidden)]
#[macro_export]
macro_rules! unary_rows {
    ($generate:ident) => {
        $generate! {
            /// Signs and magnitudes.
            Sign(SignOp) {
                /// `-x`, wrapping for integers.
                Negate NEGATE negate: Number => Same, Cheap;
                /// `|x|`; the most negative integer wraps to itself.
                Abs ABS abs: Any => Magnitude, Cheap;
                /// -1, 0 or 1; NaN stays NaN; `z / |z|` for complex.
                Sign SIGN sign: Any => Same, Cheap;
            }
            /// The nearest integer in a direction; the identity on integers.
            Rounding(RoundingOp) {
                /// The greatest integer not above `x`; the identity on integers.
                Floor FLOOR floor: Real => Same, Cheap;
                /// The least integer not below `x`; the identity on integers.
                Ceil CEIL ceil: Real => Same, Cheap;
                /// The nearest integer, halves away from zero; the identity on integers.
                Round ROUND round: Real => Same, Cheap;
            }
            /// Functions of one variable, computed in floats.
            Function(FunctionOp) {
                /// `e^x`.
                Exp EXP exp: Any => Float, Costly;
                /// `e^x - 1`, accurate near zero, where `exp(x) - 1` cancels.
                Expm1 EXPM1 expm1: Any => Float, Costly;
                /// The natural logarithm; NaN for negative reals.
                Log LOG log: Any => Float, Costly;
                /// `log(1 + x)`, accurate near zero.
                Log1p LOG1P log1p: Any => Float, Costly;
                /// `1 / (1 + e^-x)`.
                Sigmoid SIGMOID sigmoid: Any => Float, Costly;
                /// Sine.
                Sin SIN sin: Any => Float, Costly;
                /// Cosine.
                Cos COS cos: Any => Float, Costly;
                /// Tangent.
                Tan TAN tan: Any => Float, Costly;
                /// Hyperbolic sine.
                Sinh SINH sinh: Any => Float, Costly;
                /// Hyperbolic cosine.
                Cosh COSH cosh: Any => Float, Costly;
                /// Hyperbolic tangent.
                Tanh TANH tanh: Any => Float, Costly;
                /// Arc sine.
                Asin ASIN asin: Any => Float, Costly;
                /// Arc cosine.
                Acos ACOS acos: Any => Float, Costly;
                /// Arc tangent.
                Atan ATAN atan: Any => Float, Costly;
                /// Inverse hyperbolic sine.
                Asinh ASINH asinh: Any => Float, Costly;
                /// Inverse hyperbolic cosine.
                Acosh ACOSH acosh: Any => Float, Costly;
                /// Inverse hyperbolic tangent.
                Atanh ATANH atanh: Any => Float, Costly;
                /// The square root; NaN for negative reals.
                Sqrt SQRT sqrt: Any => Float, Cheap;
                /// `1 / sqrt(x)`.
                Rsqrt RSQRT rsqrt: Any => Float, Costly;
                /// The cube root; negative for negative reals.
                Cbrt CBRT cbrt: Any => Float, Costly;
                /// The error function.
                Erf ERF erf: Real => Float, Costly;
                /// `1 - erf(x)`, accurate for large `x`.
                Erfc ERFC erfc: Real => Float, Costly;
                /// The inverse of `erf`; infinite at -1 and 1.
                ErfInv ERF_INV erf_inv: Real => Float, Costly;
            }
            /// Parts of a complex number, and its conjugate.
            Part(PartOp) {
                /// The complex conjugate; a real operand becomes complex.
                Conjugate CONJUGATE conjugate: Any => Complex, Cheap;
                /// The real part.
                Real REAL real: Any => Real, Cheap;
                /// The imaginary part; 0 for real operands.
                Imag IMAG imag: Any => Real, Cheap;
            }
            /// Functions of the bits of an integer.
            Bits(BitsOp) {
                /// Every bit inverted.
                Not BITWISE_NOT bitwise_not: Integer => Same, Cheap;
                /// How many bits are 1.
                PopulationCount POPULATION_COUNT population_count: Integer => Same, Cheap;
                /// How many bits are 0 before the first 1, in the type's own width.
                CountLeadingZeros COUNT_LEADING_ZEROS count_leading_zeros: Integer => Same, Cheap;
            }
            /// Whether a number is NaN or infinite.
            Test(TestOp) {
                /// Whether `x` is not a number; a complex number if either part is.
                Nan IS_NAN is_nan: Any => Predicate, Cheap;
                /// Whether `x` is infinite; a complex number if either part is.
                Infinity IS_INFINITY is_infinity: Any => Predicate, Cheap;
            }
        }
    };
}

/// Calls a macro with the rows of the binary ops: the op, its constant, its public name, the element types that it
/// accepts, the result's element type, the cost of one element, whether the operands can be exchanged, and the
/// integers that it refuses.
#[doc(hidden)]
#[macro_export]
macro_rules! binary_rows {
    ($generate:ident) => {
        $generate! {
            alone {
                /// The complex number `a + bi`; the operands are real.
                Complex COMPLEX complex: Real => Complex, Cheap, Ordered;
            }
            /// Sums, products, quotients, powers and extremes.
            Arithmetic(ArithmeticOp) {
                /// `a + b`, wrapping for integers. For two bools the builder emits `logical_or`.
                Add ADD add: Number => Merge, Cheap, Commutes;
                /// `a - b`, wrapping for integers.
                Subtract SUBTRACT subtract: Number => Merge, Cheap, Ordered;
                /// `a * b`, wrapping for integers. For two bools the builder emits `logical_and`.
                Multiply MULTIPLY multiply: Number => Merge, Cheap, Commutes;
                /// `a / b`, always a float.
                Divide DIVIDE divide: Any => Float, Cheap, Ordered;
                /// `a^b`; exact modulo 2^bits for integers, whose exponents must not be negative.
                Pow POW pow: Number => Merge, Costly, Ordered, refuses NegativeExponent;
                /// The angle of the point (b, a).
                Atan2 ATAN2 atan2: Real => Float, Costly, Ordered;
                /// The integer quotient, truncated towards zero.
                Quotient QUOTIENT quotient: Integer => Merge, Costly, Ordered, refuses ZeroDivisor;
                /// The remainder of truncated division; it has the sign of `a`.
                Remainder REMAINDER remainder: RealNumber => Merge, Costly, Ordered, refuses ZeroDivisor;
                /// The greater; NaN if either is.
                Max MAX max: Real => Merge, Cheap, Commutes;
                /// The lesser; NaN if either is.
                Min MIN min: Real => Merge, Cheap, Commutes;
            }
            /// Functions of the bits of integers.
            Bitwise(BitwiseOp) {
                /// Bits that are 1 in both.
                And BITWISE_AND bitwise_and: Integer => Merge, Cheap, Commutes;
                /// Bits that are 1 in either.
                Or BITWISE_OR bitwise_or: Integer => Merge, Cheap, Commutes;
                /// Bits that differ.
                Xor BITWISE_XOR bitwise_xor: Integer => Merge, Cheap, Commutes;
                /// `a * 2^b`; 0 if `b` is at least the type's width.
                LeftShift LEFT_SHIFT left_shift: Integer => Merge, Cheap, Ordered, refuses NegativeShift;
                /// `a / 2^b` rounded down: arithmetic for signed results, logical for unsigned ones.
                RightShift RIGHT_SHIFT right_shift: Integer => Merge, Cheap, Ordered, refuses NegativeShift;
            }
            /// Comparisons of two numbers by value, whatever their types.
            Comparison(ComparisonOp) {
                /// Whether the values are equal, compared as numbers whatever their types.
                Equal EQUAL equal: Any => Predicate, Cheap, Commutes;
                /// Whether the values differ.
                NotEqual NOT_EQUAL not_equal: Any => Predicate, Cheap, Commutes;
                /// Whether `a > b`.
                Greater GREATER greater: Real => Predicate, Cheap, Ordered;
                /// Whether `a >= b`.
                GreaterEqual GREATER_EQUAL greater_equal: Real => Predicate, Cheap, Ordered;
                /// Whether `a < b`.
                Less LESS less: Real => Predicate, Cheap, Ordered;
                /// Whether `a <= b`.
                LessEqual LESS_EQUAL less_equal: Real => Predicate, Cheap, Ordered;
            }
            /// Functions of truth values; every nonzero number is true.
            Logical(LogicalOp) {
                /// Whether neither is zero.
                And LOGICAL_AND logical_and: Any => Predicate, Cheap, Commutes;
                /// Whether either is not zero.
                Or LOGICAL_OR logical_or: Any => Predicate, Cheap, Commutes;
                /// Whether exactly one is not zero.
                Xor LOGICAL_XOR logical_xor: Any => Predicate, Cheap, Commutes;
            }
        }
    };
}

unary_rows!(unary);
binary_rows!(binary);

impl UnaryOp {
    /// The element types that the op accepts.
    pub const fn domain(self) -> Domain {
        self.traits().domain
    }

    /// The element type of the result.
    pub const fn rule(self) -> UnaryRule {
        self.traits().rule
    }
}

impl BinaryOp {
    /// The element types that the op accepts, applied to the merged type.
    pub const fn domain(self) -> Domain {
        self.traits().domain
    }

    /// The element type of the result.
    pub const fn rule(self) -> BinaryRule {
        self.traits().rule
    }
}
