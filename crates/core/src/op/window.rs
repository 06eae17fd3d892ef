//! Attributes of the ops that slide a window over a tensor.

use smallvec::SmallVec;

use crate::shape::{AxisList, Sizes};

super::catalogue! {
    /// The result of a window, computed from its elements.
    pub enum WindowOp {
        /// The sum; padding counts as 0.
        WindowSum = "window_sum",
        /// The product; padding counts as 1.
        WindowProduct = "window_product",
        /// The greatest; NaN if any element is. Padding is never above an element.
        WindowMax = "window_max",
        /// The least; NaN if any element is. Padding is never below an element.
        WindowMin = "window_min",
    }
}

super::catalogue! {
    /// The element of a window that receives the scattered value; the last of several equal ones.
    pub enum WindowScatterOp {
        /// The greatest.
        WindowScatterMax = "window_scatter_max",
        /// The least.
        WindowScatterMin = "window_scatter_min",
    }
}

/// A window and how it moves over a tensor, with one entry for each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The number of elements in the window, dilation not counted.
    pub sizes: Sizes,
    /// The step of the window.
    pub strides: Sizes,
    /// The number of padding elements before the first and after the last; negative crops.
    pub padding: SmallVec<[(i64, i64); 4]>,
    /// The distance of neighbours in the window.
    pub dilations: Sizes,
}

impl Window {
    /// The axes along which windows of a tensor of `sizes` are reduced, one after the other, as `docs/order.md` says:
    /// the axis along which the tensor shrinks most comes first.
    pub fn order(&self, sizes: &[usize], counts: &[usize]) -> SmallVec<[usize; 4]> {
        let moves = |axis: usize| self.padding[axis] != (0, 0) || counts[axis] != sizes[axis];
        let reduced = (0..sizes.len()).filter(|&axis| self.sizes[axis] != 1 || moves(axis));
        let mut axes: SmallVec<[usize; 4]> = reduced.collect();
        axes.sort_by(|&a, &b| (counts[a] * sizes[b]).cmp(&(counts[b] * sizes[a])));
        axes
    }
}

/// A convolution: how the kernel moves, and the roles of the axes.
///
/// The roles of the input's and the result's axes are batch, channels, then the spatial ones; those of the
/// kernel's are output channels, input channels, then the spatial ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvOp {
    /// The step of the kernel along each spatial axis.
    pub strides: Sizes,
    /// Zeros before and after each spatial axis of the dilated input; negative crops.
    pub padding: SmallVec<[(i64, i64); 4]>,
    /// The distance of neighbours in the input, with zeros between them.
    pub input_dilation: Sizes,
    /// The distance of neighbours in the kernel.
    pub kernel_dilation: Sizes,
    /// The number of channel groups, each with its own kernels.
    pub feature_groups: usize,
    /// The number of batch groups, each with its own kernels.
    pub batch_groups: usize,
    /// The axis of the input that plays each role.
    pub input_permutation: AxisList,
    /// The axis of the kernel that plays each role.
    pub kernel_permutation: AxisList,
    /// The axis of the result that plays each role.
    pub output_permutation: AxisList,
}
