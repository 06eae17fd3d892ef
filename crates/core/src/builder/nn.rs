//! Functions of neural networks.

use super::composite::along;
use super::{Arg, Builder, Composite};
use crate::compose::nn::{self, Attention, Learnt};
use crate::compose::random::check_key;
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::op::Domain;
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, AxisRef};

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

/// Declares methods of two operands that broadcast.
macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident($x:ident, $y:ident $(, $option:ident: $ty:ty => $bits:expr)?);)*) => {$(
        $(#[$doc])*
        fn $name(
            &mut self,
            $x: impl Into<Arg<Self::V>>,
            $y: impl Into<Arg<Self::V>>,
            $($option: $ty,)?
        ) -> Result<Self::V> {
            let (x, y) = self.weak_pair_widened(stringify!($name), $x, $y, |_| DType::F32)?;
            self.composite(Composite::new(stringify!($name), &[$($bits)?]), [x, y], &|b, [x, y]| {
                nn::$name(b, x, y $(, $option)?)
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

    /// `exp(x)` divided by its sum over axes, where elements that the mask does not select count for nothing: they are
    /// 0, and so is everything where none is selected.
    ///
    /// # Errors
    /// A complex operand, axes that it does not have or that are repeated, and a mask that does not broadcast to it.
    fn softmax(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        mask: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        over_axes(self, "softmax", x.into(), &axes.into(), mask, &nn::softmax)
    }

    /// The logarithm of `softmax`, without its rounding to 0: `x - logsumexp(x)`. It is -inf where the mask does not
    /// select.
    ///
    /// # Errors
    /// As [`BuildNn::softmax`].
    fn log_softmax(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        mask: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        over_axes(self, "log_softmax", x.into(), &axes.into(), mask, &nn::log_softmax)
    }

    /// `(x - mean) / sqrt(variance + eps)`, with both over axes.
    ///
    /// # Errors
    /// A complex operand, and axes that it does not have or that are repeated.
    fn standardize(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axes = self.ty(&x).shape.resolve_all("standardize", &axes.into())?;
        self.composite(Composite::over("standardize", &[eps.to_bits()], &axes), [x], &|b, [x]| {
            nn::standardize(b, x, &axes, eps)
        })
    }

    /// One at the position of each label along a new axis, else zero. A label out of range has no one.
    ///
    /// # Errors
    /// Labels that are not integers, and a position that the new axis cannot have.
    fn one_hot(
        &mut self,
        labels: impl Into<Arg<Self::V>>,
        classes: usize,
        dtype: DType,
        axis: i64,
    ) -> Result<Self::V> {
        let labels = self.operand(labels)?;
        nn::one_hot(self, &labels, classes, dtype, axis)
    }

    /// The negative logarithm of the probability that `softmax` of the logits gives to each label. Labels that are
    /// integers are classes, and have the logits' shape without the axis; floats are probabilities of all classes.
    /// A class out of range is an error where it is known, and makes NaN in a program.
    ///
    /// # Errors
    /// Complex logits, labels that are bools or complex or do not fit the logits' shape, an axis that there is not, and
    /// a known class out of range.
    fn cross_entropy(
        &mut self,
        logits: impl Into<Arg<Self::V>>,
        labels: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let (op, logits, labels) = ("cross_entropy", self.operand(logits)?, labels.into());
        let ty = self.ty(&logits);
        let axis = ty.shape.resolve(op, &axis.into())?;
        if let Arg::Number(label @ Number::Int(number)) = labels
            && !(0..ty.shape[axis] as i128).contains(&number)
        {
            return Err(ErrorKind::Label { op, what: "label", label, got: ty, axis: axis.index() }.into());
        }
        let labels = self.operand(labels)?;
        match self.ty(&labels).dtype.kind() {
            Kind::Unsigned | Kind::Signed => {
                nn::classes_shape(&ty, &self.ty(&labels), axis)?;
                self.require_labels(op, "label", &labels, &ty, axis)?;
            }
            Kind::Bool | Kind::Float | Kind::Complex => {}
        }
        self.composite(Composite::over(op, &[], &[axis]), [logits, labels], &|b, [logits, labels]| {
            nn::cross_entropy(b, logits, labels, axis)
        })
    }

    /// The rows of a table, along its first axis, at indices. An index out of range is an error where it is known, and
    /// makes a row of NaN in a program.
    ///
    /// # Errors
    /// A table that is complex or has no axis, indices that are not integers, and a known index out of range.
    fn embedding(
        &mut self,
        table: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (op, table, indices) = ("embedding", self.operand(table)?, indices.into());
        let ty = self.ty(&table);
        let axis = ty.shape.resolve(op, &AxisRef::Index(0))?;
        if let Arg::Number(label @ Number::Int(number)) = indices
            && !(0..ty.shape[axis] as i128).contains(&number)
        {
            return Err(ErrorKind::Label { op, what: "index", label, got: ty, axis: axis.index() }.into());
        }
        let indices = self.operand(indices)?;
        if Domain::Integer.has(self.ty(&indices).dtype) {
            self.require_labels(op, "index", &indices, &ty, axis)?;
        }
        self.composite(Composite::new(op, &[]), [table, indices], &|b, [table, indices]| {
            nn::embedding(b, table, indices)
        })
    }

    /// Means of values, weighted by `softmax` of the products of queries with keys. The operands are
    /// `[..., length, heads, size]`; each head of the key serves as many heads of the query as there are for it. A query
    /// without a key has zeros.
    ///
    /// # Errors
    /// Complex operands, sizes that do not fit, and a mask or a bias that do not broadcast to
    /// `[..., heads, queries, keys]`.
    fn attention(
        &mut self,
        query: impl Into<Arg<Self::V>>,
        key: impl Into<Arg<Self::V>>,
        value: impl Into<Arg<Self::V>>,
        options: Attention<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (query, key, value) = (self.operand(query)?, self.operand(key)?, self.operand(value)?);
        let Attention { mask, bias, causal, scale } = options;
        let (has_mask, has_bias) = (mask.is_some(), bias.is_some());
        let bits = [causal, scale.is_some(), has_mask, has_bias].map(u64::from);
        let mut bits = bits.to_vec();
        bits.extend(scale.map(f64::to_bits));
        let function = Composite::new("attention", &bits);
        let mut given = [mask, bias].into_iter().flatten();
        let mut next = || given.next().map(|operand| self.operand(operand)).transpose();
        match (next()?, next()?) {
            (None, _) => self.composite(function, [query, key, value], &|b, [query, key, value]| {
                nn::attention(b, query, key, value, &Attention { mask: None, bias: None, causal, scale })
            }),
            (Some(one), None) => {
                self.composite(function, [query, key, value, one], &|b, [query, key, value, one]| {
                    let (mask, bias) = (has_mask.then_some(one), has_bias.then_some(one));
                    nn::attention(b, query, key, value, &Attention { mask, bias, causal, scale })
                })
            }
            (Some(mask), Some(bias)) => {
                let operands = [query, key, value, mask, bias];
                self.composite(function, operands, &|b, [query, key, value, mask, bias]| {
                    let (mask, bias) = (Some(mask), Some(bias));
                    nn::attention(b, query, key, value, &Attention { mask, bias, causal, scale })
                })
            }
        }
    }

    /// Each element 0 with the probability `rate`, else divided by `1 - rate`, so that its mean stays. Along
    /// `shared_axes` all elements share one draw. The key is used directly.
    ///
    /// # Errors
    /// A complex operand, a value that is no key, a rate that is not between 0 and 1, and axes that the operand does
    /// not have or that are repeated.
    fn dropout(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        key: impl Into<Arg<Self::V>>,
        rate: f64,
        shared_axes: impl Into<Axes>,
    ) -> Result<Self::V> {
        let op = "dropout";
        if !(0.0..=1.0).contains(&rate) {
            let (option, given, required) = ("rate", rate.to_string(), "a number from 0 to 1".to_owned());
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        let (x, key) = (self.operand(x)?, self.operand(key)?);
        check_key(self, op, &key)?;
        let axes = self.ty(&x).shape.resolve_all(op, &shared_axes.into())?;
        let function = Composite::over(op, &[rate.to_bits()], &axes);
        self.composite(function, [x, key], &|b, [x, key]| nn::dropout(b, x, key, rate, &axes))
    }

    errors! {
        /// The negative logarithm of the probability that `sigmoid` of a logit gives to a label of 0 or 1, or to a
        /// probability in between.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        binary_cross_entropy(logits, labels);
        /// `(x - y)^2`.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        squared_error(x, y);
        /// `|x - y|`.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        absolute_error(x, y);
        /// Half the square of an error up to `delta`, and beyond it the line that continues it.
        ///
        /// # Errors
        /// Complex operands, shapes that do not broadcast, and a `delta` that is not positive.
        huber(x, y, delta: f64 => delta.to_bits());
        /// `log(cosh(x - y))` without overflow.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        log_cosh(x, y);
        /// `1 - scores * labels` where it is positive, else 0, for labels of -1 and 1.
        ///
        /// # Errors
        /// Complex operands, and shapes that do not broadcast.
        hinge(scores, labels);
    }

    /// The cosine of the angle between vectors along an axis of the operands broadcast together, whose norms count as
    /// at least `eps`.
    ///
    /// # Errors
    /// Complex operands, shapes that do not broadcast, an axis that there is not, and an `eps` that is not positive.
    fn cosine_similarity(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        y: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        eps: f64,
    ) -> Result<Self::V> {
        let op = "cosine_similarity";
        if eps.is_nan() || eps <= 0.0 {
            let (option, given, required) = ("eps", eps.to_string(), "a number above 0".to_owned());
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        let (x, y) = self.weak_pair_widened(op, x, y, |_| DType::F32)?;
        let axis = self.ty(&x).shape.broadcast_with(op, &self.ty(&y).shape)?.resolve(op, &axis.into())?;
        self.composite(Composite::over(op, &[eps.to_bits()], &[axis]), [x, y], &|b, [x, y]| {
            nn::cosine_similarity(b, x, y, axis, eps)
        })
    }

    /// The sum over an axis of `targets * (log(targets) - log_predictions)`.
    ///
    /// # Errors
    /// Complex operands, shapes that do not broadcast, and an axis that there is not.
    fn kl_divergence(
        &mut self,
        log_predictions: impl Into<Arg<Self::V>>,
        targets: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let op = "kl_divergence";
        let (x, y) = self.weak_pair_widened(op, log_predictions, targets, |_| DType::F32)?;
        let axis = self.ty(&x).shape.broadcast_with(op, &self.ty(&y).shape)?.resolve(op, &axis.into())?;
        self.composite(Composite::over(op, &[], &[axis]), [x, y], &|b, [x, y]| {
            nn::kl_divergence(b, x, y, axis)
        })
    }

    /// `standardize` over axes, times `scale`, plus `bias`, which have one axis for each of `axes`, in their order, or
    /// are scalars.
    ///
    /// # Errors
    /// Complex operands, axes that `x` does not have or that are repeated, and parameters of another shape.
    fn layer_norm(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        scale: Option<Arg<Self::V>>,
        bias: Option<Arg<Self::V>>,
        eps: f64,
    ) -> Result<Self::V> {
        let op = "layer_norm";
        let (x, scale, bias) = with_parameters(self, op, x.into(), scale, bias)?;
        let axes = self.ty(&x).shape.resolve_all(op, &axes.into())?;
        learnt(self, op, &[eps.to_bits()], &axes, x, scale, bias, &|b, x, learnt| {
            nn::layer_norm(b, x, &axes, learnt, eps)
        })
    }

    /// `x / sqrt(mean(x^2) + eps)`, with the mean over axes, times `scale`, which has one axis for each of `axes`, in
    /// their order, or is a scalar.
    ///
    /// # Errors
    /// As [`BuildNn::layer_norm`].
    fn rms_norm(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        scale: Option<Arg<Self::V>>,
        eps: f64,
    ) -> Result<Self::V> {
        let op = "rms_norm";
        let (x, scale, _) = with_parameters(self, op, x.into(), scale, None)?;
        let axes = self.ty(&x).shape.resolve_all(op, &axes.into())?;
        learnt(self, op, &[eps.to_bits()], &axes, x, scale, None, &|b, x, learnt| {
            nn::rms_norm(b, x, &axes, learnt.scale, eps)
        })
    }

    /// `standardize` over groups of neighbours on the axis of channels and over all axes but `batch_axes`, times
    /// `scale`, plus `bias`, which have one element for each channel, or are scalars.
    ///
    /// # Errors
    /// Complex operands, axes that `x` does not have or that are repeated, a number of groups that does not divide the
    /// channels, and parameters of another shape.
    #[expect(clippy::too_many_arguments, reason = "they are those of the public function")]
    fn group_norm(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        groups: usize,
        axis: impl Into<AxisRef>,
        batch_axes: impl Into<Axes>,
        scale: Option<Arg<Self::V>>,
        bias: Option<Arg<Self::V>>,
        eps: f64,
    ) -> Result<Self::V> {
        let op = "group_norm";
        let (x, scale, bias) = with_parameters(self, op, x.into(), scale, bias)?;
        let shape = self.ty(&x).shape;
        let (axis, batch) = (axis.into(), batch_axes.into());
        let channels = shape.resolve(op, &axis)?;
        let batch = shape.resolve_all(op, &batch)?;
        if batch.contains(&channels) {
            return Err(ErrorKind::AxisRepeated { op, axis, shape }.into());
        }
        let reduced: AxisList =
            shape.axes().filter(|axis| *axis != channels && !batch.contains(axis)).collect();
        let options = [eps.to_bits(), groups as u64, channels.index() as u64];
        learnt(self, op, &options, &reduced, x, scale, bias, &|b, x, learnt| {
            nn::group_norm(b, x, groups, (channels, &reduced), learnt, eps)
        })
    }

    /// `(x - mean) / sqrt(variance + eps)` for each position on the axis of channels, times `scale`, plus `bias`; the
    /// result, the mean and the variance. Without statistics, they are those of `x` over the other axes.
    ///
    /// # Errors
    /// Complex operands, an axis that `x` does not have, and parameters that do not have one element for each channel.
    fn batch_norm(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        statistics: Option<(Arg<Self::V>, Arg<Self::V>)>,
        scale: Option<Arg<Self::V>>,
        bias: Option<Arg<Self::V>>,
        eps: f64,
    ) -> Result<(Self::V, Self::V, Self::V)> {
        let op = "batch_norm";
        let (x, scale, bias) = with_parameters(self, op, x.into(), scale, bias)?;
        let channels = self.ty(&x).shape.resolve(op, &axis.into())?;
        let statistics = match statistics {
            Some((mean, variance)) => Some((self.operand(mean)?, self.operand(variance)?)),
            None => None,
        };
        let statistics = statistics.as_ref().map(|(mean, variance)| (mean, variance));
        let learnt = Learnt { scale: scale.as_ref(), bias: bias.as_ref() };
        let [result, mean, variance] = nn::batch_norm(self, &x, channels, statistics, learnt, eps)?;
        Ok((result, mean, variance))
    }
}

/// An operand and what is learnt. Plain numbers take the dtype of the others.
#[expect(clippy::type_complexity, reason = "three values")]
fn with_parameters<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: Arg<B::V>,
    scale: Option<Arg<B::V>>,
    bias: Option<Arg<B::V>>,
) -> Result<(B::V, Option<B::V>, Option<B::V>)> {
    let (has_scale, has_bias) = (scale.is_some(), bias.is_some());
    let mut values = b.weak_all(op, [Some(x), scale, bias].into_iter().flatten())?.into_iter();
    let x = values.next().expect("the first operand");
    let scale = if has_scale { values.next() } else { None };
    let bias = if has_bias { values.next() } else { None };
    Ok((x, scale, bias))
}

/// A function of an operand and of what is learnt, of which either may be missing.
#[expect(clippy::too_many_arguments, reason = "the parts of a composite")]
fn learnt<B: Builder>(
    b: &mut B,
    op: &'static str,
    options: &[u64],
    axes: &[Axis],
    x: B::V,
    scale: Option<B::V>,
    bias: Option<B::V>,
    body: &dyn Fn(&mut B, &B::V, Learnt<'_, B::V>) -> Result<B::V>,
) -> Result<B::V> {
    // A factor alone and an offset alone are functions of two operands of the same types.
    let mut options = options.to_vec();
    options.push(bias.is_some().into());
    let function = Composite::over(op, &options, axes);
    match (scale, bias) {
        (None, None) => b.composite(function, [x], &|b, [x]| body(b, x, Learnt { scale: None, bias: None })),
        (Some(scale), None) => b.composite(function, [x, scale], &|b, [x, scale]| {
            body(b, x, Learnt { scale: Some(scale), bias: None })
        }),
        (None, Some(bias)) => b.composite(function, [x, bias], &|b, [x, bias]| {
            body(b, x, Learnt { scale: None, bias: Some(bias) })
        }),
        (Some(scale), Some(bias)) => b.composite(function, [x, scale, bias], &|b, [x, scale, bias]| {
            body(b, x, Learnt { scale: Some(scale), bias: Some(bias) })
        }),
    }
}

/// A function over axes of one operand, and where there is a mask, of the elements that it selects.
fn over_axes<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: Arg<B::V>,
    axes: &Axes,
    mask: Option<Arg<B::V>>,
    body: &dyn Fn(&mut B, &B::V, &[Axis], Option<&B::V>) -> Result<B::V>,
) -> Result<B::V> {
    let x = b.operand(x)?;
    let axes = b.ty(&x).shape.resolve_all(op, axes)?;
    let function = Composite::over(op, &[], &axes);
    match mask {
        None => b.composite(function, [x], &|b, [x]| body(b, x, &axes, None)),
        Some(mask) => {
            let mask = b.operand(mask)?;
            b.composite(function, [x, mask], &|b, [x, mask]| body(b, x, &axes, Some(mask)))
        }
    }
}

impl<B: Builder> BuildNn for B {}
