//! Reductions over axes.

use super::GradientFlow;

super::catalogue! {
    /// The result of a reduction.
    pub enum ReduceOp {
        /// The sum; small integers add up in 32 bits, wrapping.
        Sum = "sum",
        /// The product; small integers multiply in 32 bits, wrapping.
        Product = "product",
        /// The greatest; NaN if any element is.
        ReduceMax = "reduce_max",
        /// The least; NaN if any element is.
        ReduceMin = "reduce_min",
        /// True if no element is zero.
        All = "all",
        /// True if an element is not zero.
        Any = "any",
    }
}

impl ReduceOp {
    /// The operands to which gradients propagate.
    pub const fn flow(self) -> GradientFlow {
        match self {
            ReduceOp::Sum | ReduceOp::Product | ReduceOp::ReduceMax | ReduceOp::ReduceMin => {
                GradientFlow::All
            }
            ReduceOp::All | ReduceOp::Any => GradientFlow::Nowhere,
        }
    }
}

super::catalogue! {
    /// The element whose index is searched. A NaN counts as the extreme.
    pub enum ArgOp {
        /// The greatest.
        Argmax = "argmax",
        /// The least.
        Argmin = "argmin",
    }
}

super::catalogue! {
    /// The result of a scan at each position, computed from the elements up to it.
    pub enum CumulativeOp {
        /// Their sum, wrapping.
        CumulativeSum = "cumulative_sum",
        /// Their product, wrapping.
        CumulativeProduct = "cumulative_product",
        /// The greatest; NaN from the first NaN on.
        CumulativeMax = "cumulative_max",
        /// The least; NaN from the first NaN on.
        CumulativeMin = "cumulative_min",
    }
}

super::catalogue! {
    /// Which of several equal elements `argmax` and `argmin` choose.
    pub enum TieBreak {
        /// The first.
        Low = "low",
        /// The last.
        High = "high",
    }
}
