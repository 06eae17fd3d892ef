//! Windows that slide over a tensor: reductions at each place, positions of extremes, and convolutions.

mod choose;
mod columns;
mod conv;
mod dilated;
mod direct;
mod fold;
mod order;
mod patches;
mod pool;
#[cfg(test)]
mod tests;

pub(crate) use choose::{add_chosen, are_disjoint, choose, scatter_disjoint};
pub(crate) use conv::{AxisOrder, Conv, conv, conv_scratch};
pub(crate) use fold::{AxisPass, doubling_scratch, fold};
pub(crate) use pool::{Pool, extremes};

/// The bound for strides and dilations. Larger ones are equivalent, as no axis is as long, and products with a valid
/// position do not overflow.
const MAX_STRIDE: usize = 1 << 50;

/// The least integer that is not below `a / b`.
fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}
