//! Initial values of what is learnt.

use defn_core::compose::nn::{self, Distribution, FanAxes, FanMode};
use defn_core::compose::random::{self, Sample};
use defn_core::{AxisRef, Location};

use crate::random::Key;

/// Both forms of functions that draw.
macro_rules! initializers {
    ($($(#[$doc:meta])* $name:ident, $split:ident($($arg:ident: $ty:ty),*)
        |$ops:ident, $key:ident, $sample:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// This function returns the weights and the next key.
        ///
        /// # Errors
        /// A key that is not one vector of two u32 (`DType`); a scale that is not allowed, and a dtype of the sample
        /// that is not (`Option`); axes that the sample does not have, and an axis with several roles (`Axis`).
        #[track_caller]
        pub fn $name<K: Key>(key: &K, $($arg: $ty,)* $sample: impl Into<Sample>) -> K::Two {
            let $sample = &$sample.into();
            key.two(Location::caller(), |$ops, key| {
                let (used, next) = random::fresh($ops, stringify!($name), key)?;
                let $key = &used;
                Ok(($body?, next))
            })
        }

        $(#[$doc])*
        ///
        /// This function draws from the key itself and returns only the weights.
        ///
        /// # Errors
        /// A key that is not one vector of two u32 (`DType`); a scale that is not allowed, and a dtype of the sample
        /// that is not (`Option`); axes that the sample does not have, and an axis with several roles (`Axis`).
        #[track_caller]
        pub fn $split<K: Key>(key: &K, $($arg: $ty,)* $sample: impl Into<Sample>) -> K::One {
            let $sample = &$sample.into();
            key.one(Location::caller(), |$ops, $key| $body)
        }
    )*};
}

initializers! {
    /// Random weights with the mean 0 and the variance `scale / n`, where `n` is the number of connections into a
    /// unit, out of it, or the mean of both: LeCun, Bottou, Orr & Müller, "Efficient backprop" (1998).
    ///
    /// A normal distribution is cut at two of its standard deviations and scaled so that the variance stays.
    /// [`FanAxes`] says which axes are inputs and outputs; the others are those of a kernel that slides.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; f32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{nn, random};
    /// use defn::nn::{Distribution, FanAxes, FanMode};
    /// let (key, axes) = (random::key(1)?, FanAxes::default());
    /// let (w, next) =
    ///     nn::variance_scaling(&key, 3.0, FanMode::FanIn, Distribution::Uniform, &axes, [4, 2])?;
    /// assert!(w.to_vec::<f32>()?.iter().all(|x| x.abs() <= 1.5));
    /// # Ok::<(), defn::Error>(())
    /// ```
    variance_scaling, variance_scaling_split(
        scale: f64,
        mode: FanMode,
        distribution: Distribution,
        axes: &FanAxes
    ) |ops, key, sample| {
        nn::variance_scaling(ops, "variance_scaling", key, scale, mode, distribution, axes, sample)
    };

    /// Random weights with the variance `2 / (fan_in + fan_out)`: Glorot & Bengio, "Understanding the difficulty of
    /// training deep feedforward neural networks" (2010). They wrote it for [`Distribution::Uniform`].
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; f32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{nn, random};
    /// use defn::nn::{Distribution, FanAxes};
    /// let w = nn::glorot_split(&random::key(1)?, Distribution::Uniform, &FanAxes::default(), [4, 2])?;
    /// assert!(w.to_vec::<f32>()?.iter().all(|x| x.abs() <= 1.0));
    /// # Ok::<(), defn::Error>(())
    /// ```
    glorot, glorot_split(distribution: Distribution, axes: &FanAxes)
        |ops, key, sample| nn::glorot(ops, key, distribution, axes, sample);

    /// Random weights with the variance `2 / fan_in`, for layers with [`relu`](crate::nn::relu): He, Zhang, Ren & Sun,
    /// "Delving deep into rectifiers" (2015).
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; f32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{nn, random};
    /// use defn::nn::{Distribution, FanAxes};
    /// let key = random::key(1)?;
    /// let (kernel, next) = nn::he(&key, Distribution::TruncatedNormal, &FanAxes::default(), [3, 3, 2, 8])?;
    /// assert_eq!(kernel.shape().sizes(), [3, 3, 2, 8]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    he, he_split(distribution: Distribution, axes: &FanAxes)
        |ops, key, sample| nn::he(ops, key, distribution, axes, sample);

    /// Random weights with the variance `1 / fan_in`: LeCun, Bottou, Orr & Müller, "Efficient backprop" (1998).
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; f32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{nn, random};
    /// use defn::nn::{Distribution, FanAxes};
    /// let w = nn::lecun_split(&random::key(1)?, Distribution::Uniform, &FanAxes::default(), [3, 2])?;
    /// assert!(w.to_vec::<f32>()?.iter().all(|x| x.abs() <= 1.0));
    /// # Ok::<(), defn::Error>(())
    /// ```
    lecun, lecun_split(distribution: Distribution, axes: &FanAxes)
        |ops, key, sample| nn::lecun(ops, key, distribution, axes, sample);

    /// A random orthogonal matrix times `scale`, with one row for each position on `axis` and the other axes as
    /// columns: Saxe, McClelland & Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear
    /// neural networks" (2013). With more columns than rows its rows are orthonormal, else its columns. It is uniformly
    /// distributed.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats and complex; f32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{Axes, nn, random};
    /// let (w, next) = nn::orthogonal(&random::key(1)?, 1.0, -1, [5, 3])?;
    /// let gram = w.transpose(Axes::All)?.matmul(&w)?.to_vec::<f32>()?;
    /// assert!((gram[0] - 1.0).abs() < 1e-5 && gram[1].abs() < 1e-5);
    /// # Ok::<(), defn::Error>(())
    /// ```
    orthogonal, orthogonal_split(scale: f64, axis: impl Into<AxisRef>)
        |ops, key, sample| nn::orthogonal(ops, key, scale, &axis.into(), sample);
}
