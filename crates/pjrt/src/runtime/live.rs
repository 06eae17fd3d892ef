//! The live tensors of a client: their number, and the largest ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use defn_core::{Location, TensorType};

use super::buffer::Elements;
use crate::api::Event;

/// The description of a tensor: its type, and the line that created it.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub ty: TensorType,
    pub location: Option<Location>,
}

impl TensorInfo {
    /// From this size in bytes the line that created a tensor is recorded: large tensors fill a device's memory, and a
    /// small tensor is created in less time than its line is found.
    const LARGE: usize = 64 << 10;

    /// Whether it matters when a device's memory is full.
    pub fn is_large(&self) -> bool {
        self.ty.byte_size() >= TensorInfo::LARGE
    }

    /// The description of a tensor that is created now, by the user's line that called this thread.
    pub fn created_here(ty: &TensorType) -> Arc<TensorInfo> {
        let mut info = TensorInfo { ty: ty.clone(), location: None };
        if info.is_large() {
            info.location = Location::of_user();
        }
        Arc::new(info)
    }

    /// The description of another tensor of this type; all small ones share it.
    pub fn recreated(self: &Arc<TensorInfo>) -> Arc<TensorInfo> {
        if self.is_large() { TensorInfo::created_here(&self.ty) } else { self.clone() }
    }
}

/// The live tensors of a client. All are counted. The large ones and those that may still be computing are listed; most
/// tensors are small, and are created and dropped in less time than a list entry takes.
#[derive(Default)]
pub(crate) struct Live {
    entries: Mutex<EntryList>,
    count: AtomicUsize,
    /// The events of dropped tensors that were still computing.
    pending: Mutex<Vec<Event>>,
}

#[derive(Default)]
struct EntryList {
    slots: Vec<Option<(Arc<TensorInfo>, Weak<Elements>)>>,
    free: Vec<usize>,
}

impl Live {
    /// Counts a tensor, until [`Live::leave`].
    pub fn enter(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Lists a counted tensor; returns its index, for [`Live::leave`].
    pub fn list(&self, info: Arc<TensorInfo>, elements: Weak<Elements>) -> usize {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.free.pop() {
            Some(index) => {
                entries.slots[index] = Some((info, elements));
                index
            }
            None => {
                entries.slots.push(Some((info, elements)));
                entries.slots.len() - 1
            }
        }
    }

    /// Removes a tensor from the count and from the list.
    pub fn leave(&self, index: Option<usize>) {
        if let Some(index) = index {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = entries.slots[index].take();
            entries.free.push(index);
            drop(entries);
            drop(gone);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Keeps the event of a dropped tensor, if it is still computing.
    pub fn add_pending(&self, ready: Event) {
        if ready.is_ready() != Ok(false) {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished events are removed when the list is full, which then gets room to double: each event is checked a
        // few times.
        if pending.len() == pending.capacity() {
            pending.retain(|event| event.is_ready() == Ok(false));
            let additional = pending.len().max(16);
            pending.reserve(additional);
        }
        pending.push(ready);
    }

    /// Waits until everything is computed, or until `end`; returns whether it is.
    pub fn wait_idle(&self, end: Instant) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let live: Vec<Weak<Elements>> =
            entries.slots.iter().flatten().map(|(_, elements)| elements.clone()).collect();
        drop(entries);
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let live = live.iter().filter_map(|elements| elements.upgrade()?.raw().ready().ok());
        let is_done = |event: Event| loop {
            match event.is_ready() {
                Ok(false) if Instant::now() < end => std::thread::sleep(Duration::from_micros(100)),
                Ok(false) => return false,
                Ok(true) | Err(_) => return true,
            }
        };
        pending.into_iter().chain(live).all(is_done)
    }

    /// The number of live tensors.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The largest tensors, largest first, with the line that created them if it is known.
    pub fn largest(&self, count: usize) -> Vec<Arc<TensorInfo>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<TensorInfo>> =
            entries.slots.iter().flatten().map(|(info, _)| info.clone()).collect();
        drop(entries);
        all.sort_by_key(|info| std::cmp::Reverse(info.ty.byte_size()));
        all.truncate(count);
        all
    }

    /// The largest tensors in a text for messages.
    pub fn text(&self) -> String {
        let largest = self.largest(5);
        if largest.is_empty() {
            let count = self.count();
            return match count {
                0 => "no tensor is live".to_owned(),
                _ => format!("each of {count} live tensors has less than {} bytes", TensorInfo::LARGE),
            };
        }
        let one = |info: &Arc<TensorInfo>| {
            let at =
                info.location.as_ref().map_or_else(String::new, |location| format!(" made at {location}"));
            format!("{} of {} bytes{at}", info.ty, info.ty.byte_size())
        };
        let list: Vec<String> = largest.iter().map(one).collect();
        format!("the largest of {} live tensors are {}", self.count(), list.join(", "))
    }
}
