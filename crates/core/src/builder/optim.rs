//! What optimizers compute of one parameter.

use super::{Arg, Builder, Composite};
use crate::compose::optim;
use crate::error::Result;

/// Moving averages of gradients, and the directions of steps. Each is one pass over the parameter.
///
/// ```
/// use defn_core::builder::{BuildOptim, Builder};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape, TensorType};
///
/// let mut graph = Graph::new();
/// let ty = TensorType::new(DType::BF16, Shape::new(&[3]))?;
/// let (x, mean) = (graph.parameter(0, ty.clone()), graph.parameter(1, ty.clone()));
/// let next = graph.moving_mean(x, mean, 0.9)?;
/// assert_eq!(Builder::ty(&graph, &next), ty);
/// # Ok::<(), defn_core::Error>(())
/// ```
pub trait BuildOptim: Builder + Sized {
    /// `decay * mean + (1 - decay) * x`.
    ///
    /// # Errors
    /// Operands of different shapes.
    fn moving_mean(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        mean: impl Into<Arg<Self::V>>,
        decay: f64,
    ) -> Result<Self::V> {
        let operands = [self.operand(x)?, self.operand(mean)?];
        let function = Composite::new("moving_mean", &[decay.to_bits()]);
        self.composite(function, operands, &|b, [x, mean]| optim::moving_mean(b, x, mean, decay))
    }

    /// `decay * square + (1 - decay) * |x|^2`, which is real.
    ///
    /// # Errors
    /// Operands of different shapes.
    fn moving_square(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        square: impl Into<Arg<Self::V>>,
        decay: f64,
    ) -> Result<Self::V> {
        let operands = [self.operand(x)?, self.operand(square)?];
        let function = Composite::new("moving_square", &[decay.to_bits()]);
        self.composite(function, operands, &|b, [x, square]| optim::moving_square(b, x, square, decay))
    }

    /// The direction of a step of Adam after `count` gradients, from the moving averages with the decays `b1` and `b2`.
    ///
    /// # Errors
    /// Operands of different shapes.
    #[allow(clippy::too_many_arguments, reason = "they are those of the formula")]
    fn adam_direction(
        &mut self,
        mean: impl Into<Arg<Self::V>>,
        square: impl Into<Arg<Self::V>>,
        count: impl Into<Arg<Self::V>>,
        b1: f64,
        b2: f64,
        eps: f64,
        eps_root: f64,
    ) -> Result<Self::V> {
        let operands = [self.operand(mean)?, self.operand(square)?, self.operand(count)?];
        let options = [b1, b2, eps, eps_root];
        let function = Composite::new("adam_direction", &options.map(f64::to_bits));
        self.composite(function, operands, &|b, [mean, square, count]| {
            optim::adam_direction(b, mean, square, count, options)
        })
    }

    /// The moving average of Adam a step ahead, as Nesterov's momentum, with its weights divided by their sum.
    ///
    /// # Errors
    /// Operands of different shapes.
    fn adam_ahead(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        mean: impl Into<Arg<Self::V>>,
        count: impl Into<Arg<Self::V>>,
        b1: f64,
    ) -> Result<Self::V> {
        let operands = [self.operand(x)?, self.operand(mean)?, self.operand(count)?];
        let function = Composite::new("adam_ahead", &[b1.to_bits()]);
        self.composite(function, operands, &|b, [x, mean, count]| optim::adam_ahead(b, x, mean, count, b1))
    }

    /// The direction of a step of RMSProp: `x / sqrt(square + eps)`, or `x / (sqrt(square) + eps)`.
    ///
    /// # Errors
    /// Operands of different shapes.
    fn rms_direction(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        square: impl Into<Arg<Self::V>>,
        eps: f64,
        eps_in_sqrt: bool,
    ) -> Result<Self::V> {
        let operands = [self.operand(x)?, self.operand(square)?];
        let function = Composite::new("rms_direction", &[eps.to_bits(), eps_in_sqrt.into()]);
        self.composite(function, operands, &|b, [x, square]| {
            optim::rms_direction(b, x, square, eps, eps_in_sqrt)
        })
    }

    /// `x + decay * trace`.
    ///
    /// # Errors
    /// Operands of different shapes.
    fn momentum(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        trace: impl Into<Arg<Self::V>>,
        decay: f64,
    ) -> Result<Self::V> {
        let operands = [self.operand(x)?, self.operand(trace)?];
        let function = Composite::new("momentum", &[decay.to_bits()]);
        self.composite(function, operands, &|b, [x, trace]| optim::momentum(b, x, trace, decay))
    }
}

impl<B: Builder> BuildOptim for B {}
