//! Differences of neighbours, traces, counts, and statistics of sorted elements.

use crate::builder::{
    Arg, BuildCreate, BuildElementwise, BuildIndex, BuildOrder, BuildReduce, BuildShape, Builder,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::{index_dtype, require_elements, require_number, require_real};
use crate::op::{Block, CumulativeOp, Direction, Domain, Op, TieBreak};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisRef, Shape, TensorType};

use super::working_dtype;

/// See [`BuildReduce::diff`].
///
/// # Errors
/// As the method.
pub fn diff<B: Builder>(b: &mut B, x: &B::V, order: i64, axis: &AxisRef) -> Result<B::V> {
    let got = b.ty(x);
    if got.shape.rank() == 0 {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op: "diff", got, required }.into());
    }
    let axis = got.shape.resolve("diff", axis)?;
    let size = got.shape[axis] as i64;
    if !(0..=size).contains(&order) {
        let given = order.to_string();
        let required = format!("an integer in 0..={size}, the size of axis {} of {got}", axis.index());
        return Err(ErrorKind::OptionValue { op: "diff", option: "order", given, required }.into());
    }
    if order > 0 {
        require_number("diff", &got, got.dtype)?;
    }
    let mut x = x.clone();
    for left in (size - order..size).rev() {
        let later = b.slice_along_axis(&x, 1, left, axis, 1)?;
        let earlier = b.slice_along_axis(&x, 0, left, axis, 1)?;
        x = b.subtract(later, earlier)?;
    }
    Ok(x)
}

/// See [`BuildReduce::trace`].
///
/// # Errors
/// As the method.
pub fn trace<B: Builder>(b: &mut B, x: &B::V, offset: i64) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let diagonal = super::create::diagonal(b, "trace", x, offset)?;
    let sum = b.sum(diagonal, -1, false)?;
    let names: Vec<_> = shape.names().take(shape.rank() - 2).map(|name| name.cloned()).collect();
    b.rename(sum, &names)
}

/// See [`BuildReduce::count_nonzero`].
///
/// # Errors
/// As the method.
pub fn count_nonzero<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    // The axes are checked before the comparison, so that an error names this function.
    let axes = b.ty(x).shape.resolve_all("count_nonzero", axes)?;
    let is_nonzero = b.not_equal(x, 0)?;
    let counted = b.as_type(is_nonzero, DType::S32)?;
    b.sum(counted, axes, keep_axes)
}

/// See [`BuildReduce::ptp`].
///
/// # Errors
/// As the method.
pub fn ptp<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let got = b.ty(x);
    let axes = got.shape.resolve_all("ptp", axes)?;
    require_real("ptp", &got)?;
    require_number("ptp", &got, got.dtype)?;
    require_elements("ptp", &got, &axes)?;
    let greatest = b.reduce_max(x, axes.clone(), keep_axes)?;
    let least = b.reduce_min(x, axes, keep_axes)?;
    b.subtract(greatest, least)
}

/// The sorted elements along the axis of a statistic; all elements if it has no axis.
pub(super) struct SortedAxis<V> {
    pub(super) values: V,
    pub(super) axis: Axis,
    pub(super) size: usize,
    /// The shape of the result.
    pub(super) shape: Shape,
}

impl<V: Clone + Into<Arg<V>>> SortedAxis<V> {
    pub(super) fn new<B: Builder<V = V>>(
        b: &mut B,
        op: &'static str,
        x: &V,
        axis: Option<&AxisRef>,
        keep_axis: bool,
    ) -> Result<SortedAxis<V>> {
        let got = b.ty(x);
        if got.dtype.is_complex() {
            let (required, hint) = (Domain::Real.text(), "");
            return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
        }
        let (flat, axes): (V, Vec<Axis>) = match axis {
            Some(axis) => (x.clone(), vec![got.shape.resolve(op, axis)?]),
            None => (b.flatten(x, Axes::All)?, got.shape.axes().collect()),
        };
        let axis = if axis.is_some() { axes[0] } else { Axis(0) };
        let shape = got.shape.reduced(&axes, keep_axis);
        let size = b.ty(&flat).shape[axis];
        if size == 0 && shape.size() > 0 {
            let axis = axes.iter().find(|&&axis| got.shape[axis] == 0).map_or(0, |axis| axis.index());
            return Err(ErrorKind::EmptyReduction { op, got, axis }.into());
        }
        let values = b.sort(flat, axis, Direction::Asc)?;
        Ok(SortedAxis { values, axis, size, shape })
    }

    fn at<B: Builder<V = V>>(&self, b: &mut B, position: usize) -> Result<V> {
        let value = b.slice_along_axis(&self.values, position as i64, 1, self.axis, 1)?;
        b.reshape_to(value, self.shape.clone())
    }
}

/// See [`BuildReduce::median`].
///
/// # Errors
/// As the method.
pub fn median<B: Builder>(b: &mut B, x: &B::V, axis: Option<&AxisRef>, keep_axis: bool) -> Result<B::V> {
    middle(b, "median", x, axis, keep_axis)
}

/// The median of the function `op`.
pub(super) fn middle<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axis: Option<&AxisRef>,
    keep_axis: bool,
) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    let ordered = SortedAxis::new(b, op, x, axis, keep_axis)?;
    if ordered.size == 0 {
        return b.full(ordered.shape, dtype.to_float(), 0);
    }
    let middle = ordered.size / 2;
    if ordered.size % 2 == 1 {
        return ordered.at(b, middle);
    }
    let working = working_dtype(dtype);
    let (low, high) = (ordered.at(b, middle - 1)?, ordered.at(b, middle)?);
    let (low, high) = (b.as_type(low, working)?, b.as_type(high, working)?);
    let sum = b.add(low, high)?;
    let mean = b.divide(sum, 2)?;
    b.as_type(mean, dtype.to_float())
}

/// See [`BuildReduce::mode`].
///
/// # Errors
/// As the method.
pub fn mode<B: Builder>(b: &mut B, x: &B::V, axis: Option<&AxisRef>, keep_axis: bool) -> Result<B::V> {
    let is_scalar = b.ty(x).shape.rank() == 0;
    let SortedAxis { values, axis, size, shape } = SortedAxis::new(b, "mode", x, axis, keep_axis)?;
    // The axis of the flattened elements, which a scalar has as well.
    let shape = if is_scalar && keep_axis { Shape::new(&[1]) } else { shape };
    if size <= 1 {
        return b.reshape_to(values, shape);
    }
    let sorted = TensorType { shape: b.ty(&values).shape.without_names(), ..b.ty(&values) };
    let values = b.reshape_to(values, sorted.shape.clone())?;
    // Equal elements form a run. The length of a run is known at its end, and the first of the longest runs has the
    // least element.
    let later = b.slice_along_axis(&values, 1, size as i64 - 1, axis, 1)?;
    let earlier = b.slice_along_axis(&values, 0, size as i64 - 1, axis, 1)?;
    let begins = b.not_equal(later, earlier)?;
    let mut config = vec![(0, 0, 0); sorted.shape.rank()];
    config[axis.index()] = (1, 0, 0);
    let begins = b.pad(begins, Number::Int(1), &config)?;
    let dtype = index_dtype(size);
    let position = b.iota(sorted.shape, dtype, Some(AxisRef::from(axis)))?;
    let zero = b.constant(dtype, 0)?;
    let starts = b.select(begins, &position, zero)?;
    let op = CumulativeOp::CumulativeMax;
    let runs = Op::Block(Block::Cumulative { op, axis, reverse: false });
    let starts = b.emit_one(runs, &[starts])?;
    let length = b.subtract(position, starts)?;
    let longest = b.argmax(length, Some(AxisRef::from(axis)), true, TieBreak::Low, dtype)?;
    let value = b.take_along_axis(values, longest, axis)?;
    b.reshape_to(value, shape)
}
