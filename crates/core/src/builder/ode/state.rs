//! The state of the steps, and the unknowns as one vector.

use super::tableau::POWERS;
use crate::builder::{Arg, BuildCreate, BuildElementwise, BuildShape, Builder, Ops};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{AxisRef, Shape, TensorType};
use crate::tensor::Tensor;

/// The stages of a step.
pub(super) struct Stages {
    /// The result of the step.
    pub(super) y: Tensor,
    pub(super) slopes: Vec<Tensor>,
    /// Whether the error is small enough.
    pub(super) accepted: Tensor,
    /// The estimated error, in tolerances.
    pub(super) size: Tensor,
}

/// The state between two steps.
#[derive(Clone)]
pub(super) struct State {
    pub(super) t: Tensor,
    pub(super) y: Tensor,
    /// The slopes at `t`.
    pub(super) slope: Tensor,
    /// The length of the next step.
    pub(super) h: Tensor,
    /// The estimated error of the last accepted step, in tolerances.
    pub(super) size: Tensor,
    /// Whether the last step was accepted.
    pub(super) accepted: Tensor,
    /// The time and the unknowns before the last accepted step, and its length with a sign.
    pub(super) t_before: Tensor,
    pub(super) y_before: Tensor,
    pub(super) length: Tensor,
    pub(super) status: Tensor,
    pub(super) steps: Tensor,
    pub(super) rejected: Tensor,
    /// The coefficients of dense output of the last accepted step.
    pub(super) dense: Vec<Tensor>,
    /// The numbers of the event, if there is one: before the last step if it changed a sign, else after it.
    pub(super) event: Vec<Tensor>,
}

impl State {
    /// The state before the first step. Dense output gives the initial values.
    pub(super) fn begin(
        ops: &mut Ops,
        time: DType,
        t: Tensor,
        y: Tensor,
        slope: Tensor,
        h: Tensor,
    ) -> Result<State> {
        let zero = ops.constant(DType::S32, 0)?;
        let none = ops.zeros_like(&y)?;
        Ok(State {
            size: ops.constant(time, 1e-4)?,
            accepted: ops.constant(DType::Bool, 1)?,
            t_before: t.clone(),
            y_before: y.clone(),
            length: ops.constant(time, 1)?,
            status: zero.clone(),
            steps: zero.clone(),
            rejected: zero,
            dense: vec![none; POWERS],
            event: Vec::new(),
            t,
            y,
            slope,
            h,
        })
    }

    pub(super) fn into_vec(self) -> Vec<Tensor> {
        let mut all = vec![
            self.t,
            self.y,
            self.slope,
            self.h,
            self.size,
            self.accepted,
            self.t_before,
            self.y_before,
            self.length,
            self.status,
            self.steps,
            self.rejected,
        ];
        all.extend(self.dense);
        all.extend(self.event);
        all
    }

    pub(super) fn into_args(self) -> Vec<Arg<Tensor>> {
        self.into_vec().into_iter().map(Arg::Value).collect()
    }

    /// # Panics
    /// For other tensors than those of [`State::into_vec`]: a bug of the caller.
    pub(super) fn from_slice(all: &[Tensor]) -> State {
        let [t, y, slope, h, size, accepted, t_before, y_before, length, status, steps, rejected, rest @ ..] =
            all
        else {
            unreachable!("the tensors of a state")
        };
        State {
            t: t.clone(),
            y: y.clone(),
            slope: slope.clone(),
            h: h.clone(),
            size: size.clone(),
            accepted: accepted.clone(),
            t_before: t_before.clone(),
            y_before: y_before.clone(),
            length: length.clone(),
            status: status.clone(),
            steps: steps.clone(),
            rejected: rejected.clone(),
            dense: rest[..POWERS].to_vec(),
            event: rest[POWERS..].to_vec(),
        }
    }
}

/// How the unknowns lie in one vector.
pub(super) struct Layout {
    types: Vec<TensorType>,
    dtype: DType,
}

impl Layout {
    /// # Errors
    /// No unknowns at all.
    pub(super) fn new(ops: &Ops, y0: &[Tensor]) -> Result<Layout> {
        let mut types: Vec<TensorType> = y0.iter().map(|y| ops.ty(y)).collect();
        for ty in &mut types {
            ty.dtype = ty.dtype.to_float();
        }
        let Some(dtype) = types.iter().map(|ty| working_dtype(ty.dtype)).reduce(DType::merge) else {
            return Err(ErrorKind::NoTensors { op: "odeint" }.into());
        };
        Ok(Layout { types, dtype })
    }

    /// The layout whose only unknown is the vector.
    pub(super) fn of_vectors(&self) -> Layout {
        let shape = Shape::new(&[self.size()]);
        Layout { types: vec![TensorType { dtype: self.dtype, shape }], dtype: self.dtype }
    }

    /// The dtype of the vector: at least f32.
    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of elements.
    pub(super) fn size(&self) -> usize {
        self.types.iter().map(|ty| ty.shape.size()).sum()
    }

    /// The vector of the unknowns.
    pub(super) fn join(&self, ops: &mut Ops, unknowns: &[Tensor]) -> Result<Tensor> {
        let parts = unknowns.iter().zip(&self.types).map(|(part, ty)| {
            let part = ops.as_type(part, self.dtype)?;
            ops.reshape_to(part, Shape::new(&[ty.shape.size()]))
        });
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        if parts.len() == 1 { Ok(parts.remove(0)) } else { ops.concatenate(&parts, AxisRef::Index(0)) }
    }

    /// The vector of slopes.
    ///
    /// # Errors
    /// Slopes of another number or shape than the unknowns, and complex ones of real unknowns.
    pub(super) fn join_slopes(&self, ops: &mut Ops, slopes: Vec<Arg<Tensor>>) -> Result<Tensor> {
        let op = "odeint";
        let (got, expected) = (slopes.len(), self.types.len());
        if got != expected {
            return Err(ErrorKind::RegionResults { op, what: "function", got, expected }.into());
        }
        let mut parts = Vec::with_capacity(got);
        for (index, (slope, ty)) in slopes.into_iter().zip(&self.types).enumerate() {
            let slope = ops.operand(slope)?;
            let own = ops.ty(&slope);
            let is_complex = own.dtype.is_complex() && !ty.dtype.is_complex();
            if is_complex || own.shape.sizes() != ty.shape.sizes() {
                let what = "the function";
                return Err(
                    ErrorKind::SolverResult { op, what, index, got: own, expected: ty.clone() }.into()
                );
            }
            parts.push(slope);
        }
        self.join(ops, &parts)
    }

    /// The unknowns in a vector.
    pub(super) fn split(&self, ops: &mut Ops, vector: &Tensor) -> Result<Vec<Tensor>> {
        let mut begin = 0;
        let parts = self.types.iter().map(|ty| {
            let length = ty.shape.size() as i64;
            let part = if self.types.len() == 1 {
                vector.clone()
            } else {
                ops.slice_along_axis(vector, begin, length, AxisRef::Index(0), 1)?
            };
            begin += length;
            let part = ops.reshape_to(part, ty.shape.clone())?;
            ops.as_type(part, ty.dtype)
        });
        parts.collect()
    }

    /// The unknowns in rows of vectors, each along a new first axis.
    pub(super) fn split_rows(&self, ops: &mut Ops, rows: &Tensor, count: usize) -> Result<Vec<Tensor>> {
        let mut begin = 0;
        let parts = self.types.iter().map(|ty| {
            let length = ty.shape.size() as i64;
            let part = ops.slice_along_axis(rows, begin, length, AxisRef::Index(1), 1)?;
            begin += length;
            let shape = Shape::from_axes(std::iter::once((count, None)).chain(ty.shape.entries()));
            let part = ops.reshape_to(part, shape)?;
            ops.as_type(part, ty.dtype)
        });
        parts.collect()
    }
}
