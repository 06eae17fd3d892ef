//! What is left of reductions beside loop nests: the layout of their operands, sums of pieces, and scans.

mod layout;
mod scan;

pub(crate) use layout::{CHUNK, MIN_INNER, ReductionLayout};
pub(crate) use scan::scan;
