//! Lists in which a host language collects what belongs to the graph that is being traced: the functions that the
//! graph knows by number.

use std::cell::RefCell;
use std::thread::LocalKey;

/// The open lists of a thread, the innermost last.
#[derive(Debug)]
pub struct Lists<T>(RefCell<Vec<Vec<T>>>);

impl<T> Lists<T> {
    /// No lists.
    pub const fn new() -> Lists<T> {
        Lists(RefCell::new(Vec::new()))
    }

    /// Adds an item to the innermost list, and returns its number; `None` without a list.
    pub fn push(&self, item: T) -> Option<usize> {
        let mut lists = self.0.borrow_mut();
        let list = lists.last_mut()?;
        list.push(item);
        Some(list.len() - 1)
    }

    /// What `body` returns for the innermost list, if there is one. It must not drop items, since that may run anything.
    pub fn innermost<R>(&self, body: impl FnOnce(&mut Vec<T>) -> R) -> Option<R> {
        self.0.borrow_mut().last_mut().map(body)
    }
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists::new()
    }
}

/// A list that collects items on this thread until it is taken or dropped.
#[derive(Debug)]
#[must_use = "the list is closed when this is dropped"]
pub struct Collecting<T: 'static>(&'static LocalKey<Lists<T>>);

impl<T> Collecting<T> {
    /// Opens a list.
    pub fn begin(lists: &'static LocalKey<Lists<T>>) -> Collecting<T> {
        lists.with(|lists| lists.0.borrow_mut().push(Vec::new()));
        Collecting(lists)
    }

    /// The items that were collected.
    pub fn finish(self) -> Vec<T> {
        self.0.with(|lists| lists.innermost(std::mem::take)).unwrap_or_default()
    }
}

impl<T> Drop for Collecting<T> {
    fn drop(&mut self) {
        // Items are dropped after the borrow has ended, since dropping them may run anything.
        let list = self.0.with(|lists| lists.0.borrow_mut().pop());
        drop(list);
    }
}
