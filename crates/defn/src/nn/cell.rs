//! Cells of recurrent networks, and their parameters.

use defn_core::builder::{Builder, Ops};
use defn_core::compose::nn::{self, Weights};
use defn_core::compose::random;
use defn_core::{DType, Location, Result, Tensor};

use super::{Values, optional};
use crate::expr::Operand;

/// A step of an LSTM: the next output and the next state of the cells.
///
/// Hochreiter & Schmidhuber, "Long short-term memory" (1997), with the gates of Gers, Schmidhuber & Cummins,
/// "Learning to forget" (2000). With `z = x @ kernel + hidden @ recurrent_kernel + bias`, cut into the gates `i`, `f`,
/// `g` and `o`, the next cell is `sigmoid(f) * cell + sigmoid(i) * tanh(g)`, and the next output
/// `sigmoid(o) * tanh(cell)`. Nothing is added to the gate of forgetting; [`lstm_parameters`] has offsets of 1 for it.
///
/// - Shape: `x` is `..[inputs]`, both states `..[units]`, `kernel` `[inputs][4 * units]`, `recurrent_kernel`
///   `[units][4 * units]` and `bias` `[4 * units]`; the results are `..[units]`.
/// - Dtypes: any but complex; promoted, integers and bools to f32. Gates of floats of 8 and 16 bits are computed in
///   f32.
/// - Gradient: to all operands.
///
/// ```
/// # use defn::prelude::*;
/// use defn::{nn, random};
/// let [kernel, recurrent, bias, _] = nn::lstm_parameters(&random::key(1)?, 2, 3, DType::F32)?;
/// let zeros = Tensor::from_slice(&[0f32; 3], &[3])?;
/// let x = tensor![1.0, 2.0]?;
/// let (hidden, cell) = nn::lstm_cell(&x, (zeros.clone().into(), zeros.into()), kernel, recurrent, Some(bias.into()))?;
/// assert_eq!((hidden.shape().sizes(), cell.shape().sizes()), (&[3][..], &[3][..]));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), scalars (`Axis`), and parameters without the shapes of the gates (`Shape`).
#[track_caller]
pub fn lstm_cell<V: Values>(
    x: &V,
    (hidden, cell): (Operand, Operand),
    kernel: impl Into<Operand>,
    recurrent_kernel: impl Into<Operand>,
    bias: Option<Operand>,
) -> V::Two {
    let (kernel, recurrent_kernel) = (kernel.into(), recurrent_kernel.into());
    x.two(Location::caller(), |ops, x| {
        let (hidden, cell) = (ops.operand(hidden.0?)?, ops.operand(cell.0?)?);
        let learnt = Learnt::new(ops, kernel, recurrent_kernel, bias, None)?;
        let [hidden, cell] = nn::lstm_cell(ops, x, [&hidden, &cell], &learnt.weights())?;
        Ok((hidden, cell))
    })
}

/// A step of a GRU: the next output.
///
/// Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine translation"
/// (2014), with the reset gate after the product, as in cuDNN. With `u = x @ kernel + bias` and
/// `v = hidden @ recurrent_kernel + recurrent_bias`, cut into the gates `r`, `z` and `n`, the candidate is
/// `c = tanh(u_n + sigmoid(u_r + v_r) * v_n)`, and the result `c + sigmoid(u_z + v_z) * (hidden - c)`.
///
/// - Shape: `x` is `..[inputs]`, `hidden` `..[units]`, `kernel` `[inputs][3 * units]`, `recurrent_kernel`
///   `[units][3 * units]` and both offsets `[3 * units]`; the result is `..[units]`.
/// - Dtypes: any but complex; promoted, integers and bools to f32. Gates of floats of 8 and 16 bits are computed in
///   f32.
/// - Gradient: to all operands.
///
/// ```
/// # use defn::prelude::*;
/// use defn::{nn, random};
/// let [kernel, recurrent, bias] = nn::gru_parameters_split(&random::key(1)?, 2, 3, DType::F32)?;
/// let zeros = Tensor::from_slice(&[0f32; 3], &[3])?;
/// let hidden = nn::gru_cell(&tensor![1.0, 2.0]?, &zeros, kernel, recurrent, Some(bias.into()), None)?;
/// assert!(hidden.to_vec::<f32>()?.iter().all(|x| x.abs() < 1.0));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`lstm_cell`].
#[track_caller]
pub fn gru_cell<V: Values>(
    x: &V,
    hidden: impl Into<Operand>,
    kernel: impl Into<Operand>,
    recurrent_kernel: impl Into<Operand>,
    bias: Option<Operand>,
    recurrent_bias: Option<Operand>,
) -> V::One {
    let (hidden, kernel, recurrent_kernel) = (hidden.into(), kernel.into(), recurrent_kernel.into());
    x.one(Location::caller(), |ops, x| {
        let hidden = ops.operand(hidden.0?)?;
        let learnt = Learnt::new(ops, kernel, recurrent_kernel, bias, recurrent_bias)?;
        nn::gru_cell(ops, x, &hidden, &learnt.weights())
    })
}

/// What a cell has learnt, as tensors.
struct Learnt {
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Option<Tensor>,
    recurrent_bias: Option<Tensor>,
}

impl Learnt {
    fn new(
        ops: &mut Ops,
        kernel: Operand,
        recurrent_kernel: Operand,
        bias: Option<Operand>,
        recurrent_bias: Option<Operand>,
    ) -> Result<Learnt> {
        let mut value = |operand: Option<Operand>| -> Result<Option<Tensor>> {
            optional(operand)?.map(|operand| ops.operand(operand)).transpose()
        };
        let (bias, recurrent_bias) = (value(bias)?, value(recurrent_bias)?);
        let (kernel, recurrent_kernel) = (ops.operand(kernel.0?)?, ops.operand(recurrent_kernel.0?)?);
        Ok(Learnt { kernel, recurrent_kernel, bias, recurrent_bias })
    }

    fn weights(&self) -> Weights<'_, Tensor> {
        Weights {
            kernel: &self.kernel,
            recurrent_kernel: &self.recurrent_kernel,
            bias: self.bias.as_ref(),
            recurrent_bias: self.recurrent_bias.as_ref(),
        }
    }
}

/// Both forms of functions that draw parameters.
macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident, $split:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// This function returns the kernel, the recurrent kernel, the offsets and the next key.
        ///
        /// # Errors
        /// A key that is not one vector of two u32 (`DType`), and a dtype that is no float (`Option`).
        #[track_caller]
        pub fn $name<V: Values>(key: &V, inputs: usize, units: usize, dtype: DType) -> V::Many<4> {
            key.many(Location::caller(), |ops, key| {
                let (used, next) = random::fresh(ops, stringify!($name), key)?;
                let [kernel, recurrent_kernel, bias] = nn::$name(ops, &used, inputs, units, dtype)?;
                Ok([kernel, recurrent_kernel, bias, next])
            })
        }

        $(#[$doc])*
        ///
        /// This function draws from the key itself and returns the kernel, the recurrent kernel and the offsets.
        ///
        /// # Errors
        /// A key that is not one vector of two u32 (`DType`), and a dtype that is no float (`Option`).
        #[track_caller]
        pub fn $split<V: Values>(key: &V, inputs: usize, units: usize, dtype: DType) -> V::Many<3> {
            key.many(Location::caller(), |ops, key| nn::$name(ops, key, inputs, units, dtype))
        }
    )*};
}

parameters! {
    /// Parameters of [`lstm_cell`]: uniform [`glorot`](super::glorot) weights of the inputs, orthogonal ones of the last
    /// outputs, each for every gate, and offsets of 0, but of 1 for the gate of forgetting: Jozefowicz, Zaremba &
    /// Sutskever, "An empirical exploration of recurrent network architectures" (2015).
    ///
    /// - Shape: `[inputs][4 * units]`, `[units][4 * units]` and `[4 * units]`.
    /// - Dtypes: floats.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use defn::{nn, random};
    /// let [kernel, _, bias] = nn::lstm_parameters_split(&random::key(1)?, 3, 2, DType::F32)?;
    /// assert_eq!(kernel.shape().sizes(), [3, 8]);
    /// assert_eq!(bias.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    lstm_parameters, lstm_parameters_split;

    /// Parameters of [`gru_cell`]: uniform [`glorot`](super::glorot) weights of the inputs, orthogonal ones of the last
    /// outputs, each for every gate, and offsets of 0.
    ///
    /// - Shape: `[inputs][3 * units]`, `[units][3 * units]` and `[3 * units]`.
    /// - Dtypes: floats.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use defn::{nn, random};
    /// let [kernel, recurrent_kernel, bias, next] = nn::gru_parameters(&random::key(1)?, 3, 2, DType::F32)?;
    /// assert_eq!((kernel.shape().sizes(), recurrent_kernel.shape().sizes()), (&[3, 6][..], &[2, 6][..]));
    /// assert_eq!(bias.to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    gru_parameters, gru_parameters_split;
}
