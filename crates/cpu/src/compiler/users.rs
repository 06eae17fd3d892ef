//! Which values clusters take from each other.

use defn_core::graph::{Value, Values};
use defn_core::region::Region;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::Clusters;

/// What each value of the clusters of a nest is needed for.
pub(super) trait Uses {
    /// The values of a cluster that others need.
    fn of(&self, place: usize) -> &Values;
    /// Whether a value is needed by others than some clusters.
    fn is_needed_beyond(&self, value: Value, is_within: &dyn Fn(usize) -> bool) -> bool;
}

/// Who needs the values of clusters.
pub(super) struct Users {
    /// For each cluster, the values that others or the results take from it.
    needed: Vec<Values>,
    /// For each such value the clusters that take it, and whether it is a result.
    by: FxHashMap<Value, (SmallVec<[usize; 4]>, bool)>,
}

impl Users {
    /// Looks at what every cluster takes, and at the results.
    pub(super) fn new(region: &Region, clusters: &Clusters) -> Users {
        let mut users = Users { needed: vec![Values::new(); clusters.order.len()], by: FxHashMap::default() };
        for (position, node) in region.graph().nodes().iter().enumerate() {
            if let Some(place) = clusters.place[position] {
                node.inputs.iter().for_each(|&input| users.add(clusters, input, Some(place)));
            }
        }
        region.results().iter().for_each(|&result| users.add(clusters, result, None));
        users
    }

    fn add(&mut self, clusters: &Clusters, value: Value, by: Option<usize>) {
        let base = clusters.base(value);
        let Some(place) = clusters.place[base.node as usize].filter(|place| Some(*place) != by) else {
            return;
        };
        let (users, is_result) = self.by.entry(base).or_insert_with(|| {
            self.needed[place].push(base);
            (SmallVec::new(), false)
        });
        match by {
            Some(by) => users.push(by),
            None => *is_result = true,
        }
    }
}

impl Uses for Users {
    fn of(&self, place: usize) -> &Values {
        &self.needed[place]
    }

    fn is_needed_beyond(&self, value: Value, is_within: &dyn Fn(usize) -> bool) -> bool {
        let Some((users, is_result)) = self.by.get(&value) else { return false };
        *is_result || users.iter().any(|&user| !is_within(user))
    }
}
