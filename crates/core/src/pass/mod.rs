//! Passes: a region in, a region out, with the same inputs and the same result types.

pub mod simplify;
