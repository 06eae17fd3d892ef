//! Common subexpression elimination.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{compacted, copy};
use crate::error::Result;
use crate::graph::Fate;
use crate::region::Region;

/// Merges nodes with the same op, attributes, equal regions and the same operands. Nodes with effects are
/// never merged. The first node stays, with its location.
///
/// # Errors
/// Memory.
pub fn cse(region: &Region) -> Result<Region> {
    cse_owned(copy(region)?)
}

/// As [`cse`], of a region that is not needed any more.
pub(super) fn cse_owned(region: Region) -> Result<Region> {
    let mut seen: FxHashMap<u64, SmallVec<[u32; 1]>> =
        FxHashMap::with_capacity_and_hasher(region.graph().len(), FxBuildHasher);
    compacted("cse", region, |kept, _, node| {
        if node.op.has_effect() {
            return Fate::Kept;
        }
        let mut hasher = FxHasher::default();
        (&node.op, &node.inputs).hash(&mut hasher);
        let candidates = seen.entry(hasher.finish()).or_default();
        let same = candidates.iter().copied().find(|&at| {
            let other = &kept[at as usize];
            other.inputs == node.inputs && other.op == node.op
        });
        if let Some(at) = same {
            return Fate::Merged(at);
        }
        candidates.push(kept.len() as u32);
        Fate::Kept
    })
}
