//! Special functions of real numbers.

use super::{Arg, Builder, Composite};
use crate::compose::special;
use crate::dtype::DType;
use crate::error::Result;

/// Special functions. All are floats, and have gradients.
pub trait BuildSpecial: Builder + Sized {
    /// `log(|gamma(x)|)`, which is infinite at 0 and at negative integers.
    /// The gradient is `g * digamma(x)`.
    ///
    /// # Errors
    /// A complex operand.
    fn lgamma(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("lgamma", &[]), [x], &|b, [x]| special::lgamma(b, x))
    }

    /// The derivative of `lgamma`. It is infinite at 0 and NaN at negative integers.
    /// The gradient is `g * trigamma(x)`.
    ///
    /// # Errors
    /// A complex operand.
    fn digamma(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("digamma", &[]), [x], &|b, [x]| special::digamma(b, x))
    }

    /// The derivative of `digamma`; infinite at 0 and at negative integers.
    /// The gradient is of the definition.
    ///
    /// # Errors
    /// A complex operand.
    fn trigamma(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("trigamma", &[]), [x], &|b, [x]| special::trigamma(b, x))
    }

    /// The modified Bessel function of the first kind of order 0.
    /// The gradient is `g * i1(x)`.
    ///
    /// # Errors
    /// A complex operand.
    fn i0(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("i0", &[]), [x], &|b, [x]| special::i0(b, x))
    }

    /// `exp(-|x|) * i0(x)`, without overflow.
    /// The gradient is `g * (i1e(x) - sign(x) * y)`.
    ///
    /// # Errors
    /// A complex operand.
    fn i0e(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("i0e", &[]), [x], &|b, [x]| special::i0e(b, x))
    }

    /// The modified Bessel function of the first kind of order 1.
    /// The gradient is `g * (i0(x) - y / x)`.
    ///
    /// # Errors
    /// A complex operand.
    fn i1(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("i1", &[]), [x], &|b, [x]| special::i1(b, x))
    }

    /// `exp(-|x|) * i1(x)`, without overflow.
    /// The gradient is `g * (i0e(x) - y * (sign(x) + 1 / x))`.
    ///
    /// # Errors
    /// A complex operand.
    fn i1e(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("i1e", &[]), [x], &|b, [x]| special::i1e(b, x))
    }

    /// The distribution function of the standard normal distribution.
    /// The gradient is `g * exp(-x^2 / 2) / sqrt(2 pi)`.
    ///
    /// # Errors
    /// A complex operand.
    fn ndtr(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("ndtr", &[]), [x], &|b, [x]| special::ndtr(b, x))
    }

    /// The quantile of the standard normal distribution: the inverse of `ndtr`. NaN outside of 0 to 1.
    /// The gradient is `g * sqrt(2 pi) * exp(y^2 / 2)`.
    ///
    /// # Errors
    /// A complex operand.
    fn ndtri(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("ndtri", &[]), [x], &|b, [x]| special::ndtri(b, x))
    }

    /// `log(|beta(a, b)|)`, that is `lgamma(a) + lgamma(b) - lgamma(a + b)` without its cancellation for large
    /// operands.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn betaln(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair_widened("betaln", a, b, |_| DType::F32)?;
        self.composite(Composite::new("betaln", &[]), [a, b], &|builder, [a, b]| {
            special::betaln(builder, a, b)
        })
    }

    /// The regularized lower incomplete gamma function: the integral of `t^(a - 1) exp(-t) / gamma(a)` from 0 to `x`.
    /// NaN for negative operands.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn gammainc(&mut self, a: impl Into<Arg<Self::V>>, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, x) = self.weak_pair_widened("gammainc", a, x, |_| DType::F32)?;
        self.composite(Composite::new("gammainc", &[]), [a, x], &|builder, [a, x]| {
            special::gammainc(builder, a, x)
        })
    }

    /// The regularized upper incomplete gamma function, `1 - gammainc(a, x)` without its cancellation.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn gammaincc(&mut self, a: impl Into<Arg<Self::V>>, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, x) = self.weak_pair_widened("gammaincc", a, x, |_| DType::F32)?;
        self.composite(Composite::new("gammaincc", &[]), [a, x], &|builder, [a, x]| {
            special::gammaincc(builder, a, x)
        })
    }

    /// The regularized incomplete beta function: the integral of `t^(a - 1) (1 - t)^(b - 1) / beta(a, b)` from 0 to
    /// `x`. NaN for negative parameters and for an `x` outside of 0 to 1.
    ///
    /// # Errors
    /// Complex operands, and shapes that do not broadcast.
    fn betainc(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        x: impl Into<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let mut operands = self.weak_all("betainc", [a.into(), b.into(), x.into()])?.into_iter();
        let operands = std::array::from_fn(|_| operands.next().expect("three operands"));
        self.composite(Composite::new("betainc", &[]), operands, &|builder, [a, b, x]| {
            special::betainc(builder, a, b, x)
        })
    }
}

impl<B: Builder> BuildSpecial for B {}
