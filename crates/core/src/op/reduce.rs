//! Reductions over axes.

use super::Flow;

super::catalogue! {
    /// What a reduction computes from the elements that it folds.
    pub enum ReduceOp {
        /// The sum; small integers add up in 32 bits, wrapping.
        Sum = "sum",
        /// The product; small integers multiply in 32 bits, wrapping.
        Product = "product",
        /// The greatest; NaN if any element is.
        ReduceMax = "reduce_max",
        /// The least; NaN if any element is.
        ReduceMin = "reduce_min",
        /// 1 if no element is zero.
        All = "all",
        /// 1 if an element is not zero.
        Any = "any",
    }
}

impl ReduceOp {
    /// The operands that a gradient reaches.
    pub const fn flow(self) -> Flow {
        match self {
            ReduceOp::Sum | ReduceOp::Product | ReduceOp::ReduceMax | ReduceOp::ReduceMin => Flow::All,
            ReduceOp::All | ReduceOp::Any => Flow::Nowhere,
        }
    }
}

super::catalogue! {
    /// Which element an index is sought of. A NaN counts as the extreme.
    pub enum ArgOp {
        /// The greatest.
        Argmax = "argmax",
        /// The least.
        Argmin = "argmin",
    }
}

super::catalogue! {
    /// What a scan computes from the elements up to each place.
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
    /// Which of several equal elements `argmax` and `argmin` name.
    pub enum TieBreak {
        /// The first.
        Low = "low",
        /// The last.
        High = "high",
    }
}
