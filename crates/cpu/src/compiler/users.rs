//! The users of the values of fusion groups.

use defn_core::graph::{Value, Values};
use defn_core::region::Region;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::fusion_groups::FusionGroups;

/// The uses of the values of fusion groups.
pub(super) trait Uses {
    /// The values of a fusion group that are live outside of it.
    fn live_outs(&self, index: usize) -> &Values;
    /// Whether a value is live outside of some fusion groups.
    fn is_live_outside(&self, value: Value, is_within: &dyn Fn(usize) -> bool) -> bool;
}

/// The users of the values of fusion groups.
pub(super) struct Users {
    /// For each fusion group, the values that others or the results take from it.
    live_outs: Vec<Values>,
    /// For each such value the fusion groups that take it, and whether it is a result.
    by: FxHashMap<Value, (SmallVec<[usize; 4]>, bool)>,
}

impl Users {
    /// Looks at what every fusion group takes, and at the results.
    pub(super) fn new(region: &Region, fusion: &FusionGroups) -> Users {
        let mut users =
            Users { live_outs: vec![Values::new(); fusion.order.len()], by: FxHashMap::default() };
        for (position, node) in region.graph().nodes().iter().enumerate() {
            if let Some(index) = fusion.group_of[position] {
                node.inputs.iter().for_each(|&input| users.add(fusion, input, Some(index)));
            }
        }
        region.results().iter().for_each(|&result| users.add(fusion, result, None));
        users
    }

    fn add(&mut self, fusion: &FusionGroups, value: Value, by: Option<usize>) {
        let base = fusion.base(value);
        let Some(index) = fusion.group_of[base.node as usize].filter(|index| Some(*index) != by) else {
            return;
        };
        let (users, is_result) = self.by.entry(base).or_insert_with(|| {
            self.live_outs[index].push(base);
            (SmallVec::new(), false)
        });
        match by {
            Some(by) => users.push(by),
            None => *is_result = true,
        }
    }
}

impl Uses for Users {
    fn live_outs(&self, index: usize) -> &Values {
        &self.live_outs[index]
    }

    fn is_live_outside(&self, value: Value, is_within: &dyn Fn(usize) -> bool) -> bool {
        let Some((users, is_result)) = self.by.get(&value) else { return false };
        *is_result || users.iter().any(|&user| !is_within(user))
    }
}
