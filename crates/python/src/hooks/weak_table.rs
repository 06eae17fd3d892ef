//! Slot tables for the inspection of graphs.

use std::sync::{Arc, Weak};

use super::{Slot, Table};

/// A table for code that inspects a graph. It keeps no slots alive except those in `_kept`.
#[derive(Default)]
pub(crate) struct WeakTable {
    slots: Vec<Weak<Slot>>,
    _kept: Table,
}

impl WeakTable {
    /// A weak view of a table that has another owner.
    pub(crate) fn of(table: &Table) -> WeakTable {
        WeakTable { slots: table.iter().map(Arc::downgrade).collect(), _kept: Table::new() }
    }

    /// A table that this object owns.
    pub(crate) fn keeping(table: Table) -> WeakTable {
        WeakTable { _kept: table.clone(), ..WeakTable::of(&table) }
    }

    /// The whole table, if all of its entries are still alive.
    pub(crate) fn table(&self) -> Option<Table> {
        self.slots.iter().map(Weak::upgrade).collect()
    }

    /// An entry, if it is still alive.
    pub(crate) fn get(&self, slot: usize) -> Option<Arc<Slot>> {
        self.slots.get(slot).and_then(Weak::upgrade)
    }
}
