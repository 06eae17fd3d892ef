//! Tables of slots for those who look at graphs.

use std::sync::{Arc, Weak};

use super::{Slot, Table};

/// A table for those who look at a graph, and keep nothing of it alive but what `kept` says.
#[derive(Default)]
pub(crate) struct Known {
    slots: Vec<Weak<Slot>>,
    _kept: Table,
}

impl Known {
    /// A table that somebody else keeps.
    pub(crate) fn of(table: &Table) -> Known {
        Known { slots: table.iter().map(Arc::downgrade).collect(), _kept: Table::new() }
    }

    /// A table that is kept with this.
    pub(crate) fn keeping(table: Table) -> Known {
        Known { _kept: table.clone(), ..Known::of(&table) }
    }

    /// The whole table, if all of its entries are there still.
    pub(crate) fn table(&self) -> Option<Table> {
        self.slots.iter().map(Weak::upgrade).collect()
    }

    /// An entry, if it is there still.
    pub(crate) fn get(&self, slot: usize) -> Option<Arc<Slot>> {
        self.slots.get(slot).and_then(Weak::upgrade)
    }
}
