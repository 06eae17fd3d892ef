//! Common subexpression elimination.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{finish, rebuild};
use crate::error::Result;
use crate::region::Region;

/// Merges nodes with the same op, attributes, equal regions and the same operands. Nodes with effects are
/// never merged. The first node stays, with its location.
///
/// # Errors
/// None is known; the signature is that of all passes.
pub fn cse(region: &Region) -> Result<Region> {
    let mut seen: FxHashMap<u64, SmallVec<[u32; 1]>> = FxHashMap::default();
    let new = rebuild(region, |graph, _, node, inputs| {
        if node.op.has_effect() {
            return graph.push_typed(node.op.clone(), inputs, node.outputs.clone());
        }
        let mut hasher = FxHasher::default();
        (&node.op, &inputs).hash(&mut hasher);
        let candidates = seen.entry(hasher.finish()).or_default();
        let same = candidates.iter().copied().find(|&at| {
            let other = &graph.nodes()[at as usize];
            other.inputs == inputs && other.op == node.op
        });
        if let Some(at) = same {
            return Ok(graph.outputs(at as usize));
        }
        candidates.push(graph.len() as u32);
        graph.push_typed(node.op.clone(), inputs, node.outputs.clone())
    })?;
    Ok(finish("cse", region, new))
}
