//! From graphs to loop nests: which nodes one nest computes, over which axes, and how it reads and writes memory.
//!
//! A nest computes a set of nodes over one domain, whose innermost axis is its row. Its nodes are of three kinds:
//! element-wise ops on the elements of the domain, reductions of groups of elements, and element-wise ops on what each
//! group has. Groups are rows, or columns of which many adjacent ones are gone through together. If the reduced axes
//! are not beside each other, the domain has them in the order of the reduction (`domain`). A group is done in passes.
//! A node that needs the result of a reduction is in the pass after it; what an earlier pass has computed is computed
//! again if that is cheap, and else kept for the group. Groups that are too long for that have one pass, by pieces
//! (`pieces`).

mod access;
mod blocks;
mod boxes;
mod build;
mod columns;
mod domain;
mod domain_box;
mod elements;
mod fit;
mod gathers;
mod iota;
mod merge;
mod narrow;
mod pairs;
mod passes;
mod pieces;
mod random;
mod reads;
mod rows;
mod shape;
mod short;
mod stores;
#[cfg(test)]
mod tests;
pub(super) mod transposed;
mod turned;

pub(super) use blocks::{Blocks, fuse_blocks};
pub(super) use boxes::fuse_boxes;
pub(super) use build::{Fused, LONG_ROW, NodeRole, fuse};
pub(super) use domain::{Domain, Sizes};
pub(super) use domain_box::{BoxSource, DomainBox, TransposeBlock};
pub(crate) use elements::Base;
pub(super) use fit::fitting;
pub(super) use gathers::gathered;
pub(super) use merge::Reduction;
pub(super) use passes::instructions;
pub(super) use pieces::chunk;
pub(super) use random::has_pairs;
pub(super) use transposed::read_transposed;
