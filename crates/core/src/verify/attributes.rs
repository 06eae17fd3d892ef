//! Attribute rules, with the names that the rows of ops use: the builder's guarantees on which `infer`
//! relies.
//!
//! A rule takes the attribute, the types of the operands, and the operand that it refers to.

use super::list;
use crate::op::{ConvOp, Starts, Window};
use crate::shape::{Axis, AxisList, TensorType};

/// Attributes that contain axes.
pub(crate) trait NamesAxes {
    fn axes(&self) -> &[Axis];
}

impl NamesAxes for Axis {
    fn axes(&self) -> &[Axis] {
        std::slice::from_ref(self)
    }
}

impl NamesAxes for Option<Axis> {
    fn axes(&self) -> &[Axis] {
        self.as_slice()
    }
}

impl NamesAxes for AxisList {
    fn axes(&self) -> &[Axis] {
        self
    }
}

impl NamesAxes for [Axis; 2] {
    fn axes(&self) -> &[Axis] {
        self
    }
}

/// The number of operands is `count`.
pub(crate) fn exactly(types: &[&TensorType], count: usize) -> Result<(), String> {
    if types.len() == count {
        return Ok(());
    }
    Err(format!("the operands are {}, {count} must be given", list(types.iter().copied())))
}

/// The position of an operand, or of the first one in the list of operands at the end.
pub(crate) fn position(operands: &[&str], list: Option<&str>, operand: &str) -> usize {
    let mut all = operands.iter().copied().chain(list);
    all.position(|own| own == operand).expect("a rule names an operand of its row")
}

/// The axes are axes of the operand.
pub(crate) fn valid(axes: &impl NamesAxes, types: &[&TensorType], operand: usize) -> Result<(), String> {
    let rank = types[operand].shape.rank();
    match axes.axes().iter().find(|axis| axis.index() >= rank) {
        Some(axis) => Err(format!("axis {axis} is beyond the rank {rank}")),
        None => Ok(()),
    }
}

/// The axes are distinct axes of the operand in ascending order.
pub(crate) fn ascending(axes: &AxisList, types: &[&TensorType], operand: usize) -> Result<(), String> {
    valid(axes, types, operand)?;
    if axes.windows(2).all(|pair| pair[0] < pair[1]) { Ok(()) } else { Err("axes must ascend".to_owned()) }
}

/// The axes are distinct axes of the operand.
pub(crate) fn distinct(axes: &AxisList, types: &[&TensorType], operand: usize) -> Result<(), String> {
    valid(axes, types, operand)?;
    if axes.iter().enumerate().any(|(i, axis)| axes[..i].contains(axis)) {
        return Err("a contracted axis is given twice".to_owned());
    }
    Ok(())
}

/// The position of the new axis is valid; all operands have one rank, which `infer` checks.
pub(crate) fn inserted(axis: &usize, types: &[&TensorType], operand: usize) -> Result<(), String> {
    match types.get(operand) {
        Some(x) if *axis > x.shape.rank() => {
            Err(format!("the new axis {axis} is beyond the rank {}", x.shape.rank()))
        }
        Some(_) | None => Ok(()),
    }
}

/// The next operand, written at the starts, is inside this one.
pub(crate) fn fitting(starts: &Starts, types: &[&TensorType], operand: usize) -> Result<(), String> {
    let Starts::Static(starts) = starts else { return Ok(()) };
    let (whole, part) = (types[operand].shape.sizes(), types[operand + 1].shape.sizes());
    let fits = starts.len() == whole.len()
        && part.len() == whole.len()
        && starts
            .iter()
            .zip(part)
            .zip(whole)
            .all(|((start, part), whole)| start.checked_add(*part).is_some_and(|end| end <= *whole));
    if fits { Ok(()) } else { Err(format!("{} does not fit at {starts:?}", types[operand + 1])) }
}

/// A window has one entry for each axis.
pub(crate) fn sliding(window: &Window, types: &[&TensorType], operand: usize) -> Result<(), String> {
    let rank = types[operand].shape.rank();
    let Window { sizes, strides, padding, dilations } = window;
    let counts = [sizes.len(), strides.len(), padding.len(), dilations.len()];
    if counts.iter().any(|&count| count != rank) {
        return Err(format!("the window has {counts:?} entries, the operand has rank {rank}"));
    }
    if strides.iter().chain(dilations).chain(sizes).any(|&entry| entry == 0) {
        return Err("sizes, strides and dilations of a window must be positive".to_owned());
    }
    Ok(())
}

/// A convolution has one entry for each spatial axis, and permutations of all axes.
pub(crate) fn check(op: &ConvOp, types: &[&TensorType]) -> Result<(), String> {
    let (rank, kernel_rank) = (types[0].shape.rank(), types[1].shape.rank());
    let spatial = rank.checked_sub(2).ok_or("a convolution needs two axes")?;
    let counts = [op.strides.len(), op.padding.len(), op.input_dilation.len(), op.kernel_dilation.len()];
    if kernel_rank != rank || counts.iter().any(|&count| count != spatial) {
        return Err(format!("the entries are {counts:?}, there are {spatial} spatial axes"));
    }
    for permutation in [&op.input_permutation, &op.kernel_permutation, &op.output_permutation] {
        valid(permutation, types, 0)?;
        let distinct = permutation.iter().enumerate().all(|(i, axis)| !permutation[..i].contains(axis));
        if permutation.len() != rank || !distinct {
            return Err("a permutation must name every axis once".to_owned());
        }
    }
    let entries = op.strides.iter().chain(&op.input_dilation).chain(&op.kernel_dilation);
    if entries.chain([&op.feature_groups, &op.batch_groups]).any(|&entry| entry == 0) {
        return Err("strides, dilations and groups must be positive".to_owned());
    }
    Ok(())
}
