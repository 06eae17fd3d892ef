//! Cells of recurrent networks, and their parameters.

use super::initial::{Distribution, FanAxes, glorot};
use crate::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildShape, Builder};
use crate::compose::random::{self, Sample, check_key, wrong_dtype};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::shape::{Axes, AxisRef, Shape, TensorType};

/// The parts of a vector that a cell computes for each unit.
const LSTM_GATES: usize = 4;
const GRU_GATES: usize = 3;

/// What the units of a cell have learnt.
pub struct Weights<'a, V> {
    /// The weights of the inputs: `[inputs][gates * units]`.
    pub kernel: &'a V,
    /// The weights of the last outputs: `[units][gates * units]`.
    pub recurrent_kernel: &'a V,
    /// The offsets: `[gates * units]`.
    pub bias: Option<&'a V>,
    /// The offsets of the products with the last outputs: `[gates * units]`.
    pub recurrent_bias: Option<&'a V>,
}

/// The shapes and dtypes of a cell.
struct Cell {
    op: &'static str,
    gates: usize,
    inputs: usize,
    units: usize,
    dtype: DType,
}

impl Cell {
    fn new<B: Builder>(
        b: &B,
        (op, gates): (&'static str, usize),
        x: &B::V,
        states: &[&B::V],
        weights: &Weights<'_, B::V>,
    ) -> Result<Cell> {
        let mut dtype = b.ty(x).dtype;
        let learnt =
            [Some(weights.kernel), Some(weights.recurrent_kernel), weights.bias, weights.recurrent_bias];
        for value in std::iter::once(x).chain(states.iter().copied()).chain(learnt.into_iter().flatten()) {
            let ty = b.ty(value);
            require_real(op, &ty)?;
            dtype = dtype.merge(ty.dtype);
        }
        let last = |value: &B::V| -> Result<usize> {
            let shape = b.ty(value).shape;
            Ok(shape[shape.resolve(op, &AxisRef::Index(-1))?])
        };
        let (inputs, units) = (last(x)?, last(states[0])?);
        Ok(Cell { op, gates, inputs, units, dtype: dtype.to_float() })
    }

    /// A parameter in the dtype of the cell, without names.
    fn parameter<B: Builder>(
        &self,
        b: &mut B,
        what: &'static str,
        value: &B::V,
        sizes: &[usize],
    ) -> Result<B::V> {
        let (op, got, shape) = (self.op, b.ty(value), Shape::new(sizes));
        let plain = got.shape.without_names();
        let fits = plain.broadcast_with(op, &shape).is_ok_and(|broadcast| broadcast.sizes() == shape.sizes());
        if !fits {
            return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
        }
        let value = b.reshape_to(value, plain)?;
        let value = b.as_type(value, self.dtype)?;
        b.broadcast(value, shape, Axes::All)
    }

    /// The product with a kernel, plus offsets, in the dtype in which a cell computes.
    fn product<B: Builder>(
        &self,
        b: &mut B,
        x: &B::V,
        (what, kernel, size): (&'static str, &B::V, usize),
        (what_bias, bias): (&'static str, Option<&B::V>),
    ) -> Result<B::V> {
        let width = self.gates * self.units;
        let kernel = self.parameter(b, what, kernel, &[size, width])?;
        let x = b.as_type(x, self.dtype)?;
        let product = b.matmul(x, kernel)?;
        let product = b.as_type(product, working_dtype(self.dtype))?;
        let Some(bias) = bias else { return Ok(product) };
        let bias = self.parameter(b, what_bias, bias, &[width])?;
        b.add(product, bias)
    }

    fn products<B: Builder>(
        &self,
        b: &mut B,
        x: &B::V,
        hidden: &B::V,
        weights: &Weights<'_, B::V>,
    ) -> Result<(B::V, B::V)> {
        let kernel = ("the kernel", weights.kernel, self.inputs);
        let of_inputs = self.product(b, x, kernel, ("the bias", weights.bias))?;
        let kernel = ("the recurrent kernel", weights.recurrent_kernel, self.units);
        let bias = ("the recurrent bias", weights.recurrent_bias);
        Ok((of_inputs, self.product(b, hidden, kernel, bias)?))
    }

    /// The part of a product for one gate.
    fn gate<B: Builder>(&self, b: &mut B, product: &B::V, at: usize) -> Result<B::V> {
        b.slice_along_axis(product, (at * self.units) as i64, self.units as i64, -1, 1)
    }
}

/// A step of an LSTM: the next output and the next state of the cells. The gates are those of the inputs, of forgetting,
/// of the candidates and of the outputs.
///
/// # Errors
/// Complex operands, scalars, and parameters that do not have the shapes of the gates.
pub fn lstm_cell<B: Builder>(
    b: &mut B,
    x: &B::V,
    [hidden, cell]: [&B::V; 2],
    weights: &Weights<'_, B::V>,
) -> Result<[B::V; 2]> {
    let shapes = Cell::new(b, ("lstm_cell", LSTM_GATES), x, &[hidden, cell], weights)?;
    let (of_inputs, of_outputs) = shapes.products(b, x, hidden, weights)?;
    let sum = b.add(of_inputs, of_outputs)?;
    let [input, forget, candidate, output] = [0, 1, 2, 3].map(|at| shapes.gate(b, &sum, at));
    let (input, forget) = (b.sigmoid(input?)?, b.sigmoid(forget?)?);
    let (candidate, output) = (b.tanh(candidate?)?, b.sigmoid(output?)?);
    let cell = b.as_type(cell, working_dtype(shapes.dtype))?;
    let kept = b.multiply(forget, cell)?;
    let added = b.multiply(input, candidate)?;
    let cell = b.add(kept, added)?;
    let bounded = b.tanh(&cell)?;
    let hidden = b.multiply(output, bounded)?;
    Ok([b.as_type(hidden, shapes.dtype)?, b.as_type(cell, shapes.dtype)?])
}

/// A step of a GRU: the next output. The gates are those of resetting, of updating and of the candidates.
///
/// # Errors
/// As [`lstm_cell`].
pub fn gru_cell<B: Builder>(b: &mut B, x: &B::V, hidden: &B::V, weights: &Weights<'_, B::V>) -> Result<B::V> {
    let shapes = Cell::new(b, ("gru_cell", GRU_GATES), x, &[hidden], weights)?;
    let (of_inputs, of_outputs) = shapes.products(b, x, hidden, weights)?;
    let parts = [0, 1, 2].map(|at| -> Result<(B::V, B::V)> {
        Ok((shapes.gate(b, &of_inputs, at)?, shapes.gate(b, &of_outputs, at)?))
    });
    let [reset, update, candidate] = parts;
    let [reset, update] = [reset?, update?].map(|(left, right)| -> Result<B::V> {
        let sum = b.add(left, right)?;
        b.sigmoid(sum)
    });
    let (of_inputs, of_outputs) = candidate?;
    let remembered = b.multiply(reset?, of_outputs)?;
    let sum = b.add(of_inputs, remembered)?;
    let candidate = b.tanh(sum)?;
    let hidden = b.as_type(hidden, working_dtype(shapes.dtype))?;
    let difference = b.subtract(hidden, &candidate)?;
    let kept = b.multiply(update?, difference)?;
    let next = b.add(candidate, kept)?;
    b.as_type(next, shapes.dtype)
}

/// The kernel, the recurrent kernel and the offsets of an LSTM. The offsets of forgetting are 1.
///
/// # Errors
/// A value that is no key, and an element type that is no float.
pub fn lstm_parameters<B: Builder>(
    b: &mut B,
    key: &B::V,
    inputs: usize,
    units: usize,
    dtype: DType,
) -> Result<[B::V; 3]> {
    let [kernel, recurrent_kernel, bias] =
        parameters(b, ("lstm_parameters", LSTM_GATES), key, inputs, units, dtype)?;
    let place = b.iota(Shape::new(&[LSTM_GATES, units]), DType::S32, Some(0.into()))?;
    let is_forget = b.equal(place, 1)?;
    let ones = b.as_type(is_forget, dtype)?;
    let ones = b.reshape_to(ones, Shape::new(&[LSTM_GATES * units]))?;
    Ok([kernel, recurrent_kernel, b.add(bias, ones)?])
}

/// The kernel, the recurrent kernel and the offsets of a GRU.
///
/// # Errors
/// As [`lstm_parameters`].
pub fn gru_parameters<B: Builder>(
    b: &mut B,
    key: &B::V,
    inputs: usize,
    units: usize,
    dtype: DType,
) -> Result<[B::V; 3]> {
    parameters(b, ("gru_parameters", GRU_GATES), key, inputs, units, dtype)
}

/// Parameters whose weights are drawn for each gate on its own.
fn parameters<B: Builder>(
    b: &mut B,
    (op, gates): (&'static str, usize),
    key: &B::V,
    inputs: usize,
    units: usize,
    dtype: DType,
) -> Result<[B::V; 3]> {
    check_key(b, op, key)?;
    if !dtype.is_float() {
        return Err(wrong_dtype(op, dtype, "a float dtype"));
    }
    let width = gates.saturating_mul(units);
    TensorType::new(dtype, Shape::new(&[inputs, width]))?;
    TensorType::new(dtype, Shape::new(&[units, width]))?;
    let (of_inputs, of_outputs) = random::fresh(b, op, key)?;
    let axes = FanAxes { input: 0.into(), output: 2.into(), batch: 1.into() };
    let sample = Sample::from([inputs, gates, units]).with_dtype(dtype);
    let kernel = glorot(b, &of_inputs, Distribution::Uniform, &axes, &sample)?;
    let kernel = b.reshape_to(kernel, Shape::new(&[inputs, width]))?;
    let sample = Sample::from([gates]).with_dtype(dtype);
    let matrices = random::orthogonal(b, &of_outputs, units, &sample)?;
    let matrices = b.transpose(matrices, Axes::from([1, 0, 2]))?;
    let recurrent_kernel = b.reshape_to(matrices, Shape::new(&[units, width]))?;
    let zero = b.constant(dtype, 0)?;
    let bias = b.broadcast(zero, Shape::new(&[width]), Axes::All)?;
    Ok([kernel, recurrent_kernel, bias])
}
