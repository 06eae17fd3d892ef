//! The tensors of a client that are live: how many there are, and which are the largest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use defn_core::{Location, TensorType};

/// What lies in a device's memory, and who made it.
#[derive(Clone, Debug)]
pub(crate) struct What {
    pub ty: TensorType,
    pub location: Option<Location>,
}

/// The live tensors of a client.
#[derive(Debug, Default)]
pub(crate) struct Live {
    places: Mutex<Places>,
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Places {
    entries: Vec<Option<Arc<What>>>,
    free: Vec<usize>,
}

impl Live {
    /// Counts a tensor, until [`Live::leave`] with what this gives.
    pub fn enter(&self, what: Arc<What>) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.free.pop() {
            Some(place) => {
                places.entries[place] = Some(what);
                place
            }
            None => {
                places.entries.push(Some(what));
                places.entries.len() - 1
            }
        }
    }

    /// Ends the counting of a tensor.
    pub fn leave(&self, place: usize) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = places.entries[place].take();
        places.free.push(place);
        drop(places);
        drop(gone);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The largest, the largest first: what they are, with the line that made them where it is known.
    pub fn largest(&self, count: usize) -> Vec<Arc<What>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<What>> = places.entries.iter().flatten().cloned().collect();
        drop(places);
        all.sort_by_key(|what| std::cmp::Reverse(what.ty.byte_size()));
        all.truncate(count);
        all
    }

    /// The largest as a sentence for messages.
    pub fn text(&self) -> String {
        let largest = self.largest(5);
        if largest.is_empty() {
            return "no tensor is live".to_owned();
        }
        let one = |what: &Arc<What>| {
            let at =
                what.location.as_ref().map_or_else(String::new, |location| format!(" made at {location}"));
            format!("{} of {} bytes{at}", what.ty, what.ty.byte_size())
        };
        let list: Vec<String> = largest.iter().map(one).collect();
        format!("the largest of {} live tensors are {}", self.count(), list.join(", "))
    }
}
