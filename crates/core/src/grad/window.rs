//! Gradients of window ops and convolutions. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::region::{self, fill, zeros};
use super::{Site, Vjp};
use crate::builder::{BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::compose::fold::for_each_window_offset;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Value;
use crate::op::{ConvOp, Op, Padding, Window, WindowOp, WindowScatterOp};
use crate::scalar::Number;
use crate::shape::{Axis, AxisList, Shape, Sizes, TensorType};

/// Why products of windows have no derivative.
pub(crate) const NO_PRODUCT: &str =
    "for positive elements use exp of a window_sum of log, or cut the gradient with stop_grad or custom_grad";

/// The value to which a search for the extreme element prefers every other.
pub(crate) fn least(op: WindowScatterOp, dtype: DType) -> Number {
    match op {
        WindowScatterOp::WindowScatterMax => dtype.lowest(),
        WindowScatterOp::WindowScatterMin => dtype.highest(),
    }
}

/// Sums distribute `g` over their windows; maxima and minima pass it to one element.
pub(super) fn window(site: &mut Site<'_>, op: WindowOp, window: &Window, g: Value) -> Result<Vjp> {
    match op {
        WindowOp::WindowSum => Ok(Vjp::one(sum(site, window, g)?)),
        WindowOp::WindowProduct => Ok(Vjp::Refused { hint: NO_PRODUCT }),
        WindowOp::WindowMax => Ok(Vjp::one(extreme(site, WindowScatterOp::WindowScatterMax, window, g)?)),
        WindowOp::WindowMin => Ok(Vjp::one(extreme(site, WindowScatterOp::WindowScatterMin, window, g)?)),
    }
}

/// Every element gets the sum over the windows that contain it.
fn sum(site: &mut Site<'_>, window: &Window, g: Value) -> Result<Value> {
    let shape = site.input_ty(0).shape.without_names();
    let ty = site.graph.ty(g).clone();
    if shape.size() == 0 || ty.shape.size() == 0 {
        return zeros(site.graph, &TensorType::new(ty.dtype, shape)?);
    }
    // The strides between windows become gaps. The padding places each window so that it ends at its element.
    let mut config = SmallVec::new();
    for axis in shape.axes() {
        let i = axis.index();
        let reach = (window.sizes[i] - 1) * window.dilations[i];
        let extent = (ty.shape[axis] - 1) * window.strides[i] + 1;
        let low = reach as i64 - window.padding[i].0;
        let high = (shape[axis] + reach) as i64 - extent as i64 - low;
        config.push(Padding { low, high, interior: window.strides[i] - 1 });
    }
    let zero = site.zero_of(g)?;
    let dilated = site.graph.emit_one(Op::Pad { config }, &[g, zero])?;
    let rank = shape.rank();
    let window = Window {
        strides: SmallVec::from_elem(1, rank),
        padding: SmallVec::from_elem((0, 0), rank),
        ..window.clone()
    };
    site.graph.emit_one(Op::Window { op: WindowOp::WindowSum, window: Box::new(window) }, &[dilated])
}

/// The last of a window's extreme elements gets all of `g`.
fn extreme(site: &mut Site<'_>, op: WindowScatterOp, window: &Window, g: Value) -> Result<Value> {
    let x = site.input(0)?;
    let dtype = site.graph.ty(x).dtype;
    let padding = site.graph.constant(dtype, least(op, dtype))?;
    let zero = site.zero_of(g)?;
    scattered(site, op, window, (x, padding), (g, zero))
}

/// `source` added to the extreme elements of the windows of `x`, on `start`. The padding takes part in the search for the
/// extreme element; it is not the start of the scatter.
pub(crate) fn scattered(
    site: &mut Site<'_>,
    op: WindowScatterOp,
    window: &Window,
    (x, padding): (Value, Value),
    (source, start): (Value, Value),
) -> Result<Value> {
    let padded = site.graph.emit_one(Op::Pad { config: padding_config(window, 1) }, &[x, padding])?;
    let op = Op::WindowScatter { op, window: Box::new(unpadded(window)) };
    let sums = site.graph.emit_one(op, &[padded, source, start])?;
    site.graph.emit_one(Op::Pad { config: padding_config(window, -1) }, &[sums, start])
}

/// The window's padding as that of a pad, or, with sign -1, its inverse.
fn padding_config(window: &Window, sign: i64) -> SmallVec<[Padding; 4]> {
    let entry = |&(low, high): &(i64, i64)| Padding { low: sign * low, high: sign * high, interior: 0 };
    window.padding.iter().map(entry).collect()
}

fn unpadded(window: &Window) -> Window {
    Window { padding: SmallVec::from_elem((0, 0), window.padding.len()), ..window.clone() }
}

/// The source gets the elements of `g` to which it was scattered, the start gets the sum of `g`.
pub(super) fn scatter(site: &mut Site<'_>, op: WindowScatterOp, window: &Window, g: Value) -> Result<Vjp> {
    let source = if site.needs_gradient(1) {
        let (x, init, positions) = (site.input(0)?, site.input(2)?, site.input_ty(1).shape.without_names());
        Some(chosen(site, op, window, (x, init), &positions, g)?)
    } else {
        None
    };
    let init = if site.needs_gradient(2) {
        let axes = site.graph.ty(g).shape.axes().collect();
        Some(region::sum(site.graph, g, axes)?)
    } else {
        None
    };
    Ok(Vjp::flows([None, source, init]))
}

/// `g` at the extreme element of each window of `x`, whose padding is `init`: a scan over the window's positions keeps the
/// last one that no other exceeds.
pub(crate) fn chosen(
    site: &mut Site<'_>,
    op: WindowScatterOp,
    window: &Window,
    (x, init): (Value, Value),
    positions: &Shape,
    g: Value,
) -> Result<Value> {
    let dtype = site.graph.ty(g).dtype;
    if positions.size() == 0 {
        return zeros(site.graph, &TensorType::new(dtype, positions.clone())?);
    }
    let graph = &mut *site.graph;
    let merged = graph.ty(x).dtype.merge(graph.ty(init).dtype);
    let x = region::convert(graph, x, merged)?;
    let padded = graph.emit_one(Op::Pad { config: padding_config(window, 1) }, &[x, init])?;
    let zero = graph.constant(dtype, 0)?;
    let g = graph.emit_one(Op::Pad { config: padding_config(window, 1) }, &[g, zero])?;
    let worst = least(op, merged);
    let worst = graph.constant(merged, worst)?;
    let (best, none) = (fill(graph, worst, positions)?, fill(graph, zero, positions)?);
    let arrays = [padded, g];
    let state = for_each_window_offset(
        graph,
        &unpadded(window),
        positions,
        &arrays,
        &[best, none],
        &[],
        |graph, cell, state, _| {
            let wins = match op {
                WindowScatterOp::WindowScatterMax => graph.greater_equal(cell[0], state[0])?,
                WindowScatterOp::WindowScatterMin => graph.less_equal(cell[0], state[0])?,
            };
            let nan = graph.is_nan(cell[0])?;
            let wins = graph.logical_or(wins, nan)?;
            Ok(vec![graph.select(wins, cell[0], state[0])?, graph.select(wins, cell[1], state[1])?])
        },
    )?;
    Ok(state[1])
}

/// Input and kernel: convolutions of `g` with the kernel and of the input with `g`, with strides and
/// dilations exchanged. Both are computed with axes in the order of their roles.
pub(super) fn conv(site: &mut Site<'_>, op: &ConvOp, g: Value) -> Result<Vjp> {
    let (x, kernel, g) = (site.input(0)?, site.input(1)?, site.as_factor(g)?);
    let g = by_role(site, &op.output_permutation, g)?;
    let x_roles = by_role(site, &op.input_permutation, x)?;
    let kernel_roles = by_role(site, &op.kernel_permutation, kernel)?;
    let sides = Sides::new(site, op, x_roles, kernel_roles, g);
    let to_x = if site.needs_gradient(0) {
        let contribution = sides.to_input(site)?;
        Some(
            site.graph
                .emit_one(Op::Transpose { axes: region::inverse(&op.input_permutation) }, &[contribution])?,
        )
    } else {
        None
    };
    let to_kernel = if site.needs_gradient(1) {
        let contribution = sides.to_kernel(site)?;
        Some(
            site.graph
                .emit_one(Op::Transpose { axes: region::inverse(&op.kernel_permutation) }, &[contribution])?,
        )
    } else {
        None
    };
    Ok(Vjp::flows([to_x, to_kernel]))
}

/// The value with its axes in the order of their roles.
fn by_role(site: &mut Site<'_>, permutation: &[Axis], value: Value) -> Result<Value> {
    site.graph.emit_one(Op::Transpose { axes: permutation.into() }, &[value])
}

/// A convolution with axes in the order of their roles, and its cotangent.
struct Sides<'a> {
    op: &'a ConvOp,
    x: Value,
    kernel: Value,
    g: Value,
    x_sizes: Sizes,
    kernel_sizes: Sizes,
    g_sizes: Sizes,
}

/// The length of `size` elements that are `step` apart.
fn dilated_length(size: usize, step: usize) -> i64 {
    ((size - 1) * step + 1) as i64
}

impl Sides<'_> {
    fn new<'a>(site: &Site<'_>, op: &'a ConvOp, x: Value, kernel: Value, g: Value) -> Sides<'a> {
        let sizes = |value| Sizes::from(site.graph.ty(value).shape.sizes());
        let [x_sizes, kernel_sizes, g_sizes] = [x, kernel, g].map(sizes);
        Sides { op, x, kernel, g, x_sizes, kernel_sizes, g_sizes }
    }

    /// Whether a sum or a result is empty.
    fn is_empty(&self) -> bool {
        [&self.x_sizes, &self.kernel_sizes, &self.g_sizes].into_iter().any(|sizes| sizes.contains(&0))
    }

    fn identity(&self) -> AxisList {
        (0..self.x_sizes.len()).map(Axis).collect()
    }

    /// The dilated lengths of input, kernel and result on a spatial axis.
    fn dilated_lengths(&self, axis: usize) -> (i64, i64, i64) {
        (
            dilated_length(self.x_sizes[axis + 2], self.op.input_dilation[axis]),
            dilated_length(self.kernel_sizes[axis + 2], self.op.kernel_dilation[axis]),
            dilated_length(self.g_sizes[axis + 2], self.op.strides[axis]),
        )
    }

    fn zeros(&self, site: &mut Site<'_>, sizes: &[usize]) -> Result<Value> {
        let dtype = site.graph.ty(self.g).dtype;
        zeros(site.graph, &TensorType::new(dtype, Shape::new(sizes))?)
    }

    fn spatial(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.x_sizes.len() - 2
    }

    /// `g` convolved with the reversed kernel, whose channels are exchanged within each group. The channels
    /// of each group belong to a separate part of the batch.
    fn to_input(&self, site: &mut Site<'_>) -> Result<Value> {
        if self.is_empty() {
            return self.zeros(site, &self.x_sizes);
        }
        let graph = &mut *site.graph;
        let groups = self.op.feature_groups.max(self.op.batch_groups);
        let (features, depth) = (self.kernel_sizes[0], self.kernel_sizes[1]);
        let axes: AxisList = self.identity()[2..].into();
        let backwards = graph.emit_one(Op::Reverse { axes }, &[self.kernel])?;
        let split = join(&[groups, features / groups, depth], &self.kernel_sizes[2..]);
        let turned = swap(
            graph,
            backwards,
            &split,
            1,
            2,
            &join(&[groups * depth, features / groups], &self.kernel_sizes[2..]),
        )?;
        let padding = self.spatial().map(|axis| {
            let (x, kernel, g) = self.dilated_lengths(axis);
            let low = kernel - 1 - self.op.padding[axis].0;
            (low, x + kernel - 1 - g - low)
        });
        let op = ConvOp {
            strides: self.op.input_dilation.clone(),
            padding: padding.collect(),
            input_dilation: self.op.strides.clone(),
            kernel_dilation: self.op.kernel_dilation.clone(),
            feature_groups: groups,
            batch_groups: 1,
            input_permutation: self.identity(),
            kernel_permutation: self.identity(),
            output_permutation: self.identity(),
        };
        let contribution = graph.emit_one(Op::Conv(Box::new(op)), &[self.g, turned])?;
        if self.op.batch_groups == 1 {
            return Ok(contribution);
        }
        // The channels of each group belong to a part of the batch of their own.
        let split = join(&[self.g_sizes[0], groups, depth], &self.x_sizes[2..]);
        swap(graph, contribution, &split, 0, 1, &self.x_sizes)
    }

    /// The input convolved with `g`, with batch and channels exchanged in both.
    fn to_kernel(&self, site: &mut Site<'_>) -> Result<Value> {
        if self.is_empty() {
            return self.zeros(site, &self.kernel_sizes);
        }
        let graph = &mut *site.graph;
        let padding = self.spatial().map(|axis| {
            let (x, kernel, g) = self.dilated_lengths(axis);
            let low = self.op.padding[axis].0;
            (low, g + kernel - x - 1 - low)
        });
        let mut swapped = self.identity();
        swapped.swap(0, 1);
        let op = ConvOp {
            strides: self.op.kernel_dilation.clone(),
            padding: padding.collect(),
            input_dilation: self.op.input_dilation.clone(),
            kernel_dilation: self.op.strides.clone(),
            feature_groups: self.op.batch_groups,
            batch_groups: self.op.feature_groups,
            input_permutation: swapped.clone(),
            kernel_permutation: swapped.clone(),
            output_permutation: swapped,
        };
        graph.emit_one(Op::Conv(Box::new(op)), &[self.x, self.g])
    }
}

fn join(first: &[usize], rest: &[usize]) -> Sizes {
    first.iter().chain(rest).copied().collect()
}

/// The value reshaped to the sizes `split`, with two axes exchanged, reshaped to the sizes `joined`.
fn swap(
    graph: &mut crate::graph::Graph,
    value: Value,
    split: &[usize],
    one: usize,
    other: usize,
    joined: &[usize],
) -> Result<Value> {
    let value = graph.reshape_to(value, Shape::new(split))?;
    let mut axes: AxisList = (0..split.len()).map(Axis).collect();
    axes.swap(one, other);
    let value = graph.emit_one(Op::Transpose { axes }, &[value])?;
    graph.reshape_to(value, Shape::new(joined))
}
