//! Initial values of what is learnt.

use std::cmp::Ordering;

use crate::builder::{Arg, BuildControl, BuildElementwise, BuildShape, Builder};
use crate::compose::random::{self, Sample, check_key, orthonormal_columns, wrong_dtype};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::catalogue;
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, AxisRef, Shape, TensorType};

catalogue! {
    /// The connections that are counted: those into a unit, those out of it, or their mean.
    ///
    /// ```
    /// use defn_core::compose::nn::FanMode;
    /// assert_eq!(FanMode::FanIn.name(), "fan_in");
    /// ```
    pub enum FanMode {
        /// The connections into a unit.
        FanIn = "fan_in",
        /// The connections out of a unit.
        FanOut = "fan_out",
        /// The mean of both.
        FanAvg = "fan_avg",
    }
}

catalogue! {
    /// The distribution of initial values, with the mean 0.
    ///
    /// ```
    /// use defn_core::compose::nn::Distribution;
    /// assert_eq!(Distribution::TruncatedNormal.name(), "truncated_normal");
    /// ```
    pub enum Distribution {
        /// Between two bounds.
        Uniform = "uniform",
        /// The normal distribution.
        Normal = "normal",
        /// The normal distribution without what is more than two of its standard deviations from 0.
        TruncatedNormal = "truncated_normal",
    }
}

/// The roles of the axes of a tensor of weights. All others are those of a kernel that slides.
///
/// ```
/// use defn_core::compose::nn::FanAxes;
/// assert_eq!(FanAxes::default().input, (-2).into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanAxes {
    /// The axes of the inputs, the last but one by default.
    pub input: Axes,
    /// The axes of the outputs, the last by default.
    pub output: Axes,
    /// The axes of which every position is a tensor of weights of its own, none by default.
    pub batch: Axes,
}

impl Default for FanAxes {
    fn default() -> FanAxes {
        FanAxes { input: (-2).into(), output: (-1).into(), batch: Axes::NONE }
    }
}

impl FanAxes {
    /// The number of connections into a unit, and out of it.
    fn of(&self, op: &'static str, shape: &Shape) -> Result<(f64, f64)> {
        let [input, output, batch] = [&self.input, &self.output, &self.batch];
        let roles =
            [shape.resolve_all(op, input)?, shape.resolve_all(op, output)?, shape.resolve_all(op, batch)?];
        let mut seen = AxisList::new();
        for &axis in roles.iter().flatten() {
            if seen.contains(&axis) {
                let axis = AxisRef::Index(axis.index() as i64);
                return Err(ErrorKind::AxisRepeated { op, axis, shape: shape.clone() }.into());
            }
            seen.push(axis);
        }
        let count =
            |axes: &mut dyn Iterator<Item = Axis>| axes.map(|axis| shape[axis] as f64).product::<f64>();
        let [inputs, outputs, _] = roles.map(|axes| count(&mut axes.into_iter()));
        let field = count(&mut shape.axes().filter(|axis| !seen.contains(axis)));
        Ok((inputs * field, outputs * field))
    }
}

/// Random weights with the mean 0 and the variance `scale` divided by the number of connections. `op` is for messages.
///
/// # Errors
/// A value that is no key, a scale that is negative or not finite, an element type that is no float, axes that the
/// shape does not have, and one axis with several roles.
#[expect(clippy::too_many_arguments, reason = "they are those of the public function")]
pub fn variance_scaling<B: Builder>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    scale: f64,
    mode: FanMode,
    distribution: Distribution,
    axes: &FanAxes,
    sample: &Sample,
) -> Result<B::V> {
    check_key(b, op, key)?;
    check_scale(op, scale, scale >= 0.0, "a number of at least 0")?;
    let dtype = sample.dtype.unwrap_or(DType::F32);
    if !dtype.is_float() {
        return Err(wrong_dtype(op, dtype, "a float dtype"));
    }
    let plain = sample.shape.without_names();
    TensorType::new(dtype, plain.clone())?;
    let (inputs, outputs) = axes.of(op, &sample.shape)?;
    let connections = match mode {
        FanMode::FanIn => inputs,
        FanMode::FanOut => outputs,
        FanMode::FanAvg => (inputs + outputs) / 2.0,
    };
    // Without connections there are no weights.
    let deviation = (scale / connections.max(1.0)).sqrt();
    let floats = Sample::of(plain).with_dtype(working_dtype(dtype));
    let number = |number: f64| Arg::Number(Number::Float(number));
    let value = match distribution {
        Distribution::Uniform => {
            let bound = 3f64.sqrt() * deviation;
            random::uniform(b, key, &number(-bound), &number(bound), &floats)?
        }
        Distribution::Normal => random::normal(b, key, &number(0.0), &number(deviation), &floats)?,
        Distribution::TruncatedNormal => {
            let value = random::truncated_normal(b, key, &number(-2.0), &number(2.0), &floats)?;
            b.multiply(value, deviation / TRUNCATED_DEVIATION)?
        }
    };
    let value = b.as_type(value, dtype)?;
    let value = b.reshape_to(value, sample.shape.clone())?;
    b.stop_grad(value)
}

/// The standard deviation of the standard normal distribution between -2 and 2.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

/// Returns an error for a scale that breaks a rule, or is not finite.
fn check_scale(op: &'static str, scale: f64, is_valid: bool, required: &str) -> Result<()> {
    if is_valid && scale.is_finite() {
        return Ok(());
    }
    let (option, given, required) = ("scale", scale.to_string(), required.to_owned());
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}

macro_rules! scalings {
    ($($(#[$doc:meta])* $name:ident: $scale:literal, $mode:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`variance_scaling`].
        pub fn $name<B: Builder>(
            b: &mut B,
            key: &B::V,
            distribution: Distribution,
            axes: &FanAxes,
            sample: &Sample,
        ) -> Result<B::V> {
            variance_scaling(b, stringify!($name), key, $scale, FanMode::$mode, distribution, axes, sample)
        }
    )*};
}

scalings! {
    /// Random weights with the variance 1 divided by the mean of the numbers of connections.
    glorot: 1.0, FanAvg;
    /// Random weights with the variance 2 divided by the number of connections into a unit.
    he: 2.0, FanIn;
    /// Random weights with the variance 1 divided by the number of connections into a unit.
    lecun: 1.0, FanIn;
}

/// A random tensor that is an orthogonal matrix times `scale`, with one row for each position on `axis` and the other
/// axes as columns. Where it has more columns than rows, its rows are orthonormal, else its columns. It is uniformly
/// distributed.
///
/// # Errors
/// A value that is no key, a scale that is not finite, an element type that is neither float nor complex, and an axis
/// that the shape does not have.
pub fn orthogonal<B: Builder>(
    b: &mut B,
    key: &B::V,
    scale: f64,
    axis: &AxisRef,
    sample: &Sample,
) -> Result<B::V> {
    let op = "orthogonal";
    check_key(b, op, key)?;
    check_scale(op, scale, true, "a finite number")?;
    let dtype = sample.dtype.unwrap_or(DType::F32);
    if !dtype.is_inexact() {
        return Err(wrong_dtype(op, dtype, "a float or complex dtype"));
    }
    let plain = sample.shape.without_names();
    TensorType::new(dtype, plain.clone())?;
    let axis = sample.shape.resolve(op, axis)?;
    let rows = plain[axis];
    let others: Vec<usize> = plain.axes().filter(|&other| other != axis).map(|other| plain[other]).collect();
    let columns = others.iter().product();
    let tall = Shape::new(&[rows.max(columns), rows.min(columns)]);
    let matrix = orthonormal_columns(b, key, &tall, dtype)?;
    let matrix = if rows < columns { b.transpose(matrix, Axes::All)? } else { matrix };
    let matrix = b.multiply(matrix, scale)?;
    let matrix = b.as_type(matrix, dtype)?;
    let first: Vec<usize> = std::iter::once(rows).chain(others).collect();
    let value = b.reshape_to(matrix, Shape::new(&first))?;
    // The axis of the rows, which is the first, moves to its place.
    let order = plain.axes().map(|own| match own.index().cmp(&axis.index()) {
        Ordering::Less => own.index() + 1,
        Ordering::Equal => 0,
        Ordering::Greater => own.index(),
    });
    let order = order.map(|from| AxisRef::Index(from as i64)).collect();
    let value = b.transpose(value, Axes::List(order))?;
    let value = b.reshape_to(value, sample.shape.clone())?;
    let value = b.stop_grad(value)?;
    b.order_vectorized_axes(value, &[&key.into()])
}
