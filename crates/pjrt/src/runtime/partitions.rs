//! One program on several devices at once.

use std::sync::Arc;

use defn_core::backend::{Backend, Hooks};
use defn_core::{ErrorKind, Result, Tensor};

use super::{PjrtBackend, PjrtExecutable};

impl PjrtExecutable {
    /// Runs on several devices at once: a list of arguments for each place, and a list of results from each. Without
    /// places they are the client's devices, the first of them for the first list.
    ///
    /// The runs are started one after the other and go on side by side. Hooks, and loops with effects, are the
    /// host's: the run of one list waits for them before the next is started.
    ///
    /// # Errors
    /// More or fewer places than lists, more lists than devices, places of another client, and what running one
    /// list fails with; the others that were started go on, and their results are let go.
    pub fn run_partitions(
        &self,
        places: &[Arc<PjrtBackend>],
        lists: Vec<Vec<Tensor>>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        let own = self.place().runtime();
        let places = match places {
            [] => own.backends(),
            given => given,
        };
        let is_enough = places.len() >= lists.len();
        if !is_enough || (!std::ptr::eq(places, own.backends()) && places.len() != lists.len()) {
            let given = format!("{} devices for {} lists of arguments", places.len(), lists.len());
            let required = "one for each".to_owned();
            return Err(ErrorKind::OptionValue { op: "run", option: "partitions", given, required }.into());
        }
        if let Some(place) = places.iter().find(|place| !std::ptr::eq(place.runtime(), own)) {
            let (left, right) = (self.place().place(), place.place());
            return Err(ErrorKind::BackendConflict { op: "run", left, right }.into());
        }
        lists.into_iter().zip(places).map(|(list, place)| self.run_at(place, list, hooks)).collect()
    }
}
