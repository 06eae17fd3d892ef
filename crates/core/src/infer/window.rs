//! Types of window ops and convolutions.

use super::reduce::require_number;
use crate::error::{ErrorKind, Result};
use crate::op::{ConvOp, Domain, Window, WindowOp, WindowScatterOp};
use crate::shape::{Axis, Shape, Sizes, TensorType};

/// The limit of padding in either direction: no tensor has such a long axis, and sums of a few such numbers
/// cannot overflow.
const MOST_PADDING: u64 = 1 << 48;

/// One element for each position of the window.
pub(super) fn window(op: WindowOp, x: &TensorType, window: &Window) -> Result<TensorType> {
    let dtype = match op {
        // Bools are counted.
        WindowOp::WindowSum | WindowOp::WindowProduct => x.dtype.to_number(),
        WindowOp::WindowMax | WindowOp::WindowMin => {
            require_real(op.name(), x)?;
            x.dtype
        }
    };
    TensorType::new(dtype, position_counts(op.name(), x, window)?)
}

/// The shape of `x` in the merged dtype of source and start.
pub(super) fn scatter(
    op: WindowScatterOp,
    x: &TensorType,
    source: &TensorType,
    init: &TensorType,
    window: &Window,
) -> Result<TensorType> {
    for operand in [x, source, init] {
        require_real(op.name(), operand)?;
    }
    if init.shape.rank() != 0 {
        let (what, got) = ("the initial value", init.clone());
        return Err(ErrorKind::NotScalar { op: op.name(), what, got }.into());
    }
    let expected = position_counts(op.name(), x, window)?.without_names();
    if source.shape.sizes() != expected.sizes() {
        let (left, got) = (source.clone(), x.clone());
        return Err(ErrorKind::WindowSource { op: op.name(), left, got, expected }.into());
    }
    let dtype = source.dtype.merge(init.dtype);
    require_number(op.name(), source, dtype)?;
    TensorType::new(dtype, x.shape.clone())
}

/// The number of window positions on each axis of `x`, with the names of `x`.
///
/// At least one position is required. The exception is an axis without elements, padding included, with a
/// window of size 1: it may have none.
pub(crate) fn position_counts(op: &'static str, x: &TensorType, window: &Window) -> Result<Shape> {
    check_padding(op, &window.padding)?;
    let mut counts = Sizes::new();
    for axis in x.shape.axes() {
        let i = axis.index();
        let (size, dilation) = (window.sizes[i], window.dilations[i]);
        let padding = window.padding[i];
        let padded = x.shape[axis] as i128 + i128::from(padding.0) + i128::from(padding.1);
        let span = dilated(size, dilation);
        let fit = Fit { padded, window: span, stride: window.strides[i] };
        let Some(count) = fit.count().or(if padded == 0 && size == 1 { Some(0) } else { None }) else {
            let got = x.clone();
            return Err(ErrorKind::WindowFit { op, axis: i, got, span, padding, padded }.into());
        };
        counts.push(count);
    }
    let names = x.shape.names().map(|name| name.cloned());
    Ok(Shape::from_axes(counts.into_iter().zip(names)))
}

/// The length of `size` elements that are `dilation` apart.
fn dilated(size: usize, dilation: usize) -> i128 {
    if size == 0 { 0 } else { (size as i128 - 1) * dilation as i128 + 1 }
}

/// A window on an axis.
struct Fit {
    padded: i128,
    window: i128,
    stride: usize,
}

impl Fit {
    /// The number of positions, if there are any.
    fn count(&self) -> Option<usize> {
        if self.window > self.padded {
            return None;
        }
        usize::try_from((self.padded - self.window) / self.stride as i128 + 1).ok()
    }
}

fn check_padding(op: &'static str, padding: &[(i64, i64)]) -> Result<()> {
    let too_much = |entry: i64| entry.unsigned_abs() > MOST_PADDING;
    match padding.iter().find(|(low, high)| too_much(*low) || too_much(*high)) {
        Some((low, high)) => {
            let (option, given) = ("padding", format!("({low}, {high})"));
            let required = format!("between -{MOST_PADDING} and {MOST_PADDING}");
            Err(ErrorKind::OptionValue { op, option, given, required }.into())
        }
        None => Ok(()),
    }
}

fn require_real(op: &'static str, x: &TensorType) -> Result<()> {
    if Domain::Real.has(x.dtype) {
        return Ok(());
    }
    let hint = "; take real, imag or abs first";
    Err(ErrorKind::OperandDType { op, got: x.clone(), required: Domain::Real.text(), hint }.into())
}

/// Batch, output channels and the kernel's positions, ordered by the output's permutation.
///
/// Names come from the input, by role.
pub(super) fn conv(op: &ConvOp, x: &TensorType, kernel: &TensorType) -> Result<TensorType> {
    let refuse = |problem: String, required: &'static str| ErrorKind::Conv {
        left: x.clone(),
        right: kernel.clone(),
        problem,
        required,
    };
    check_padding("conv", &op.padding)?;
    let rank = x.shape.rank();
    if rank < 3 || kernel.shape.rank() != rank {
        let problem = format!("{rank} and {} axes", kernel.shape.rank());
        return Err(refuse(problem, "both sides must have equally many, at least 3").into());
    }
    let (input, weights) =
        (x.shape.permuted(&op.input_permutation), kernel.shape.permuted(&op.kernel_permutation));
    let (&[batch, channels], spatial) = split(input.sizes());
    let (&[features, depth], extents) = split(weights.sizes());
    let (feature_groups, batch_groups) = (op.feature_groups, op.batch_groups);
    if feature_groups > 1 && batch_groups > 1 {
        let problem = format!("feature_group_size={feature_groups} and batch_group_size={batch_groups}");
        return Err(refuse(problem, "only one of them may be above 1").into());
    }
    if batch % batch_groups != 0 {
        let problem = format!("a batch of {batch} with batch_group_size={batch_groups}");
        return Err(refuse(problem, "the batch must be a multiple of it").into());
    }
    for (option, groups) in [("feature_group_size", feature_groups), ("batch_group_size", batch_groups)] {
        if features % groups != 0 {
            let problem = format!("{features} output channels with {option}={groups}");
            return Err(refuse(problem, "the channels must be a multiple of it").into());
        }
    }
    if depth.checked_mul(feature_groups) != Some(channels) {
        let problem =
            format!("{channels} channels, and a kernel for {depth} in each of {feature_groups} groups");
        return Err(refuse(problem, "the channels must be those of the kernel times the groups").into());
    }
    let mut sizes: Sizes = [batch / batch_groups, features].into_iter().collect();
    for (i, (&size, &extent)) in spatial.iter().zip(extents).enumerate() {
        let (low, high) = op.padding[i];
        let padded = dilated(size, op.input_dilation[i]) + i128::from(low) + i128::from(high);
        let window = dilated(extent, op.kernel_dilation[i]);
        let count = Fit { padded, window, stride: op.strides[i] }.count();
        let Some(count) = count.filter(|_| extent > 0) else {
            let problem = format!(
                "a kernel that spans {window} elements on spatial axis {i}, which has {padded} with padding"
            );
            return Err(refuse(problem, "it must fit at one position at least").into());
        };
        sizes.push(count);
    }
    let mut axes = vec![(0, None); rank];
    for (role, axis) in op.output_permutation.iter().enumerate() {
        axes[axis.index()] = (sizes[role], input.name(Axis(role)).cloned());
    }
    TensorType::new(x.dtype.merge(kernel.dtype).to_float(), Shape::from_axes(axes))
}

/// The first two sizes, and the spatial sizes.
fn split(sizes: &[usize]) -> (&[usize; 2], &[usize]) {
    sizes.split_first_chunk().expect("the rank was checked")
}
