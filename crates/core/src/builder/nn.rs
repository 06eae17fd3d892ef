//! Functions of neural networks.

use super::composite::along;
use super::{Arg, Builder, Composite};
use crate::compose::nn;
use crate::error::Result;
use crate::shape::AxisRef;

/// Declares methods of one operand.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident($($option:ident: $ty:ty => $bits:expr)?);)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// A complex operand.
        fn $name(&mut self, x: impl Into<Arg<Self::V>> $(, $option: $ty)?) -> Result<Self::V> {
            let x = self.operand(x)?;
            self.composite(Composite::new(stringify!($name), &[$($bits)?]), [x], &|b, [x]| {
                nn::$name(b, x $(, $option)?)
            })
        }
    )*};
}

/// Functions of neural networks: activations, normalizations and losses. All take real operands; integers become f32.
pub trait BuildNn: Builder + Sized {
    activations! {
        /// `x` where it is positive, else 0. The slope at 0 is 0.
        relu();
        /// `x` between 0 and 6. The slope at both ends is 0.
        relu6();
        /// `x` where it is not negative, else `negative_slope * x`.
        leaky_relu(negative_slope: f64 => negative_slope.to_bits());
        /// `x` where it is positive, else `alpha * (exp(x) - 1)`.
        elu(alpha: f64 => alpha.to_bits());
        /// `elu` with the scales that keep a mean of 0 and a variance of 1.
        selu();
        /// `x` times the distribution function of the standard normal distribution, or an approximation by a `tanh`.
        gelu(approximate: bool => approximate.into());
        /// `x * sigmoid(x)`.
        silu();
        /// `log(1 + exp(x))` without overflow.
        softplus();
        /// `x / (1 + |x|)`.
        softsign();
        /// `x` between -1 and 1. The slope at both ends is 1.
        hard_tanh();
        /// `relu6(x + 3) / 6`.
        hard_sigmoid();
        /// `x * hard_sigmoid(x)`.
        hard_silu();
        /// `log(sigmoid(x))` without overflow.
        log_sigmoid();
        /// `x * tanh(softplus(x))`.
        mish();
    }

    /// `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`.
    ///
    /// # Errors
    /// A complex operand, and an `alpha` of 0.
    fn celu(&mut self, x: impl Into<Arg<Self::V>>, alpha: f64) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("celu", &[alpha.to_bits()]), [x], &|b, [x]| nn::celu(b, x, alpha))
    }

    /// The first half along an axis times the sigmoid of the second.
    ///
    /// # Errors
    /// A complex operand, an axis that it does not have, and an odd size.
    fn glu(&mut self, x: impl Into<Arg<Self::V>>, axis: impl Into<AxisRef>) -> Result<Self::V> {
        let x = self.operand(x)?;
        along(self, "glu", [x], Some(&axis.into()), &[], &|b, [x], axis| {
            nn::glu(b, x, axis.expect("an axis was given"))
        })
    }
}

impl<B: Builder> BuildNn for B {}
