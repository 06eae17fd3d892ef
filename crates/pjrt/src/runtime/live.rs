//! The tensors of a client that are live: how many there are, and which are the largest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use defn_core::{Location, TensorType};

use super::buffer::Elements;
use crate::api::Event;

/// What lies in a device's memory, and who made it.
#[derive(Clone, Debug)]
pub(crate) struct What {
    pub ty: TensorType,
    pub location: Option<Location>,
}

impl What {
    /// From how many bytes on it is known which line made a tensor: what fills a device's memory is large, and a small
    /// tensor is made in less time than the line is found.
    const LARGE: usize = 64 << 10;

    /// Whether it counts where a device's memory is full.
    pub fn is_large(&self) -> bool {
        self.ty.byte_size() >= What::LARGE
    }

    /// What the line made that this thread is called from.
    pub fn made_here(ty: &TensorType) -> Arc<What> {
        let mut what = What { ty: ty.clone(), location: None };
        if what.is_large() {
            what.location = Location::of_user();
        }
        Arc::new(what)
    }

    /// The same in another place or at another time: small ones are all alike.
    pub fn made_again(self: &Arc<What>) -> Arc<What> {
        if self.is_large() { What::made_here(&self.ty) } else { self.clone() }
    }
}

/// The live tensors of a client. All are counted; those are listed that are large, and those that may not be computed
/// yet: most are small, and made and dropped in less time than a list is kept.
#[derive(Default)]
pub(crate) struct Live {
    places: Mutex<Places>,
    count: AtomicUsize,
    /// When what is not live any more and was not computed yet will be.
    left_behind: Mutex<Vec<Event>>,
}

#[derive(Default)]
struct Places {
    entries: Vec<Option<(Arc<What>, Weak<Elements>)>>,
    free: Vec<usize>,
}

impl Live {
    /// Counts a tensor, until [`Live::leave`].
    pub fn enter(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Lists a tensor that is counted; it leaves with what this gives.
    pub fn list(&self, what: Arc<What>, elements: Weak<Elements>) -> usize {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.free.pop() {
            Some(place) => {
                places.entries[place] = Some((what, elements));
                place
            }
            None => {
                places.entries.push(Some((what, elements)));
                places.entries.len() - 1
            }
        }
    }

    /// Ends the counting of a tensor, and its place in the list.
    pub fn leave(&self, place: Option<usize>) {
        if let Some(place) = place {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = places.entries[place].take();
            places.free.push(place);
            drop(places);
            drop(gone);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Remembers when a tensor that leaves will be computed, if it is not.
    pub fn leave_behind(&self, ready: Event) {
        if ready.is_ready() != Ok(false) {
            return;
        }
        let mut left = self.left_behind.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked through when it is full, which leaves as many places as are taken: each event is asked a few times.
        if left.len() == left.capacity() {
            left.retain(|event| event.is_ready() == Ok(false));
            let room = left.len().max(16);
            left.reserve(room);
        }
        left.push(ready);
    }

    /// Waits until everything is computed, or until `end`; whether it is.
    pub fn settle(&self, end: Instant) -> bool {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let live: Vec<Weak<Elements>> =
            places.entries.iter().flatten().map(|(_, elements)| elements.clone()).collect();
        drop(places);
        let left = std::mem::take(&mut *self.left_behind.lock().unwrap_or_else(PoisonError::into_inner));
        let live = live.iter().filter_map(|elements| elements.upgrade()?.raw().ready().ok());
        let is_done = |event: Event| loop {
            match event.is_ready() {
                Ok(false) if Instant::now() < end => std::thread::sleep(Duration::from_micros(100)),
                Ok(false) => return false,
                Ok(true) | Err(_) => return true,
            }
        };
        left.into_iter().chain(live).all(is_done)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The largest, the largest first: what they are, with the line that made them where it is known.
    pub fn largest(&self, count: usize) -> Vec<Arc<What>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<What>> = places.entries.iter().flatten().map(|(what, _)| what.clone()).collect();
        drop(places);
        all.sort_by_key(|what| std::cmp::Reverse(what.ty.byte_size()));
        all.truncate(count);
        all
    }

    /// The largest as a sentence for messages.
    pub fn text(&self) -> String {
        let largest = self.largest(5);
        if largest.is_empty() {
            let count = self.count();
            return match count {
                0 => "no tensor is live".to_owned(),
                _ => format!("each of {count} live tensors has less than {} bytes", What::LARGE),
            };
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
