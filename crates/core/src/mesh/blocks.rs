//! Cuts tensors into blocks, and joins blocks.

use std::collections::BTreeMap;

use super::{Mesh, Spec};
use crate::builder::{BuildShape, Builder};
use crate::error::Result;
use crate::op::{Op, Starts};
use crate::shape::{Sizes, TensorType};

/// Blocks by their positions along the axes of a tensor.
type BlocksByPosition<V> = BTreeMap<Vec<usize>, V>;

impl Spec {
    /// The block of each device; `block` is the result of [`Spec::block`] for the tensor's type.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice, and errors of the builder.
    pub fn cut<B: Builder>(
        &self,
        builder: &mut B,
        mesh: &Mesh,
        whole: &B::V,
        block: &TensorType,
    ) -> Result<Vec<B::V>> {
        if block.shape == builder.ty(whole).shape {
            return Ok(vec![whole.clone(); mesh.count()]);
        }
        let lengths: Sizes = block.shape.sizes().into();
        let mut blocks_by_position = BlocksByPosition::new();
        let mut blocks = Vec::with_capacity(mesh.count());
        for device in 0..mesh.count() {
            let at = self.block_position(mesh, device)?;
            if let Some(block) = blocks_by_position.get(&at) {
                blocks.push(B::V::clone(block));
                continue;
            }
            let mut starts: Sizes = lengths.iter().map(|_| 0).collect();
            for (axis, position) in at.iter().enumerate() {
                starts[axis] = position * lengths[axis];
            }
            let strides = lengths.iter().map(|_| 1).collect();
            let op = Op::Slice { starts: Starts::Static(starts), lengths: lengths.clone(), strides };
            let block = builder.emit_one(op, std::slice::from_ref(whole))?;
            blocks_by_position.insert(at, block.clone());
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// Joins a tensor from its blocks. `block` returns the block that some devices share, and is called once for each
    /// distinct block.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice, and errors of `block` and of the builder.
    pub fn join<B: Builder>(
        &self,
        builder: &mut B,
        mesh: &Mesh,
        mut block: impl FnMut(&[usize]) -> Result<B::V>,
    ) -> Result<B::V> {
        let mut devices: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for device in 0..mesh.count() {
            devices.entry(self.block_position(mesh, device)?).or_default().push(device);
        }
        let mut placed = BlocksByPosition::new();
        for (at, sharing) in devices {
            placed.insert(at, block(&sharing)?);
        }
        join(builder, &placed, &mut Vec::new(), self.0.len())
    }
}

/// The blocks at `at` along the first axes, joined along the others up to `axes`.
fn join<B: Builder>(
    builder: &mut B,
    blocks: &BlocksByPosition<B::V>,
    at: &mut Vec<usize>,
    axes: usize,
) -> Result<B::V> {
    if at.len() == axes {
        return Ok(blocks[&*at].clone());
    }
    let axis = at.len();
    let count = blocks.keys().map(|position| position[axis]).max().map_or(1, |last| last + 1);
    let mut parts = Vec::with_capacity(count);
    for position in 0..count {
        at.push(position);
        parts.push(join(builder, blocks, at, axes)?);
        at.pop();
    }
    builder.concatenate(&parts, axis as i64)
}
