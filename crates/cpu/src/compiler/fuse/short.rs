//! Nests with short rows: each lane has a row of its own, whose elements are done one after the other.
//!
//! All that is done of a row is in one vectorized loop over the rows, so that its passes find in registers what those
//! before have computed. The elements of a row are loaded together, and stored together: schedules turn them into
//! accesses of whole rows (`schedule/records.rs`).

use defn_core::DType;
use defn_core::graph::{Graph, Values};
use rustc_hash::FxHashMap;

use super::build::{NestBuilder, NodeRole, Position};
use super::domain::{Domain, strides_along};
use super::elements::Element;
use super::merge::{Merge, Reduction, State};
use super::passes::Passes;
use super::reads::Reads;
use super::rows::lanes_of;
use crate::compiler::ir::{Access, Reduce, Val};
use crate::kernels::StridedView;

/// The lanes that a tile of few elements has; `docs/order.md` has the order of reductions.
pub(super) const LANES: usize = 16;

/// Where the results of a reduction across the rows of a domain lie, if there is one. None if lanes cannot have them, or
/// there are several.
pub(super) fn across(graph: &Graph, passes: &Passes, domain: &Domain) -> Option<Option<StridedView>> {
    let mut found = None;
    for &(node, role) in &passes.nodes {
        let NodeRole::Across(_) = role else { continue };
        let (_, own) = Reduction::with_domain(graph, &graph.nodes()[node])?;
        let (neighbours, length) = (own.across(domain)?, domain.reduced);
        let outer = domain.elements() / (neighbours * length);
        let view = StridedView::strided(0, &[outer, neighbours, length], &[length as isize, 0, 1]);
        if found.replace(view).is_some() {
            return None;
        }
    }
    Some(found)
}

/// What is known of each element of a row: nodes and inputs.
pub(super) type LoadedValues = (FxHashMap<usize, Element>, FxHashMap<usize, Element>);

impl NestBuilder<'_> {
    /// The passes over so many short rows, or over those that begin at an argument and are as many as another says.
    pub(super) fn short_rows(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let (rows, length) = (self.sizes[self.shape.lanes], self.sizes[self.shape.row]);
        let extent = part.map_or_else(|| self.e.b.index(rows as i64), |(_, count)| count);
        let mut known: Vec<LoadedValues> = vec![LoadedValues::default(); length];
        let mut across: Vec<(usize, Vec<State>)> = Vec::new();
        for pass in 0..self.passes.count {
            for node in self.nodes_of(pass, |role| matches!(role, NodeRole::Across(_))) {
                across.push((node, self.accumulators(node, (rows, length))?));
            }
        }
        self.e.b.begin_lanes(extent);
        for pass in 0..self.passes.count {
            self.pass = pass;
            if pass == 0 {
                self.row_values(0)?;
            }
            let reductions = self.nodes_of(pass, |role| matches!(role, NodeRole::Reduction(_)));
            let mut folded = Vec::new();
            for &reduction in &reductions {
                let states = self.of_each(&mut known, |builder| {
                    builder.state_at(reduction, |builder| {
                        let row = builder.shape.row;
                        builder.e.b.index(builder.positions[row].offset)
                    })
                })?;
                folded.push(self.combined(reduction, states));
            }
            for (node, accumulators) in across.iter().filter(|(node, _)| self.passes.of(*node) == pass) {
                let states = self.of_each(&mut known, |builder| builder.lifted(*node))?;
                for (&accumulator, &element) in accumulators.iter().flatten().zip(states.iter().flatten()) {
                    self.e.b.reduce(accumulator, element);
                }
            }
            // All is computed before anything is stored: a result may lie in an operand's memory.
            let mut stored = Vec::new();
            for node in self.stored_of(pass) {
                stored.push((node, self.of_each(&mut known, |builder| builder.element(node))?));
            }
            stored.into_iter().for_each(|(node, elements)| self.store_rows(node, elements));
            self.finish_reductions(&reductions, folded)?;
            self.row_values(pass + 1)?;
            reductions.into_iter().try_for_each(|reduction| self.store_group(reduction))?;
        }
        self.e.b.end_lanes();
        across.into_iter().try_for_each(|(node, states)| self.store_across(node, states))
    }

    /// What reduces so many neighbours across rows: for each element of a row, as one tile.
    fn accumulators(&mut self, node: usize, (neighbours, length): (usize, usize)) -> Option<Vec<State>> {
        let how = self.merge_of(node);
        let (reduce, parts, elem) = match how {
            Merge::One(reduce, elem) => (reduce, 1, elem),
            Merge::Sums(elem) => (Reduce::Add, 2, elem),
            Merge::Product(_) | Merge::Extreme { .. } => return None,
        };
        let lanes = lanes_of(how, neighbours) as u16;
        let of_place = |_| (0..parts).map(|_| self.e.b.accumulator(reduce, elem, lanes)).collect();
        Some((0..length).map(of_place).collect())
    }

    /// Stores what a reduction across rows gives for each element of a row.
    fn store_across(&mut self, node: usize, states: Vec<State>) -> Option<()> {
        let (result, across) = (self.result_of(node)?, self.across?);
        for (at, state) in states.into_iter().enumerate() {
            self.finish_reductions(&[node], vec![state])?;
            self.set_element(at);
            let element = self.groups[&node];
            let access = self.access(self.result_buffer(result), across, element.dtype.storage_bytes());
            self.e.store(element, access);
        }
        Some(())
    }

    /// Computes something of each element of the rows.
    fn of_each<T>(
        &mut self,
        known: &mut [LoadedValues],
        compute: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut all = Vec::with_capacity(known.len());
        for at in 0..known.len() {
            self.set_element(at);
            (self.values, self.loaded) = std::mem::take(&mut known[at]);
            let result = compute(self);
            known[at] = (std::mem::take(&mut self.values), std::mem::take(&mut self.loaded));
            all.push(result?);
            // What is loaded for one element is there for the others.
            for (input, element) in std::mem::take(&mut self.loaded_of_rows) {
                for (other, known) in known.iter_mut().enumerate() {
                    known.1.insert(input, element[other]);
                }
            }
        }
        Some(all)
    }

    fn set_element(&mut self, at: usize) {
        let row = self.shape.row;
        self.positions[row] = Position { offset: at as i64, ..Position::default() };
    }

    /// Joins the elements of each row as lanes are joined, the upper half to the lower.
    fn combined(&mut self, reduction: usize, mut states: Vec<State>) -> State {
        let how = self.merge_of(reduction);
        if let Merge::Extreme { .. } = how {
            // Ties are decided by who comes first.
            let mut states = states.into_iter();
            let first = states.next().expect("a row has elements");
            return states.fold(first, |before, state| self.merge(how, &before, &state));
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for at in width..states.len() {
                states[at - width] = self.merge(how, &states[at - width], &states[at]);
            }
            states.truncate(width);
        }
        states.swap_remove(0)
    }

    /// Loads all elements of the rows from an input, one right after the other; gives the current one.
    pub(super) fn load_rows(&mut self, input: usize, view: &StridedView, dtype: DType) -> Element {
        let row = self.shape.row;
        let at = self.positions[row].offset as usize;
        let mut elements: Vec<Element> = Vec::new();
        let mut accesses: Vec<Access> = Vec::new();
        for element in 0..self.sizes[row] {
            self.set_element(element);
            let access = self.access(input as u16, view, dtype.storage_bytes());
            let known = accesses.iter().position(|other| *other == access);
            elements.push(match known {
                Some(known) => elements[known],
                None => self.e.load(dtype, access.clone()),
            });
            accesses.push(access);
        }
        self.set_element(at);
        let element = elements[at];
        self.loaded_of_rows.push((input, elements));
        element
    }

    /// Whether lanes of a view are apart, and their elements of the row are not.
    pub(super) fn has_strided_lanes(&self, view: &StridedView) -> bool {
        let strides = strides_along(view, self.sizes);
        strides[self.shape.lanes].unsigned_abs() > 1 && strides[self.shape.row] == 1
    }

    /// Stores all elements of the rows, one right after the other.
    fn store_rows(&mut self, node: usize, elements: Vec<Element>) {
        let Some(result) = self.result_of(node) else { return };
        for (at, element) in elements.into_iter().enumerate() {
            self.set_element(at);
            let width = element.dtype.storage_bytes();
            let mut access = self.access(self.result_buffer(result), self.whole, width);
            let is_aligned = self.domain_box.is_some_and(|domain_box| domain_box.is_aligned(width));
            access.is_streaming = self.is_streaming && self.shape.is_block && is_aligned;
            self.e.store(element, access);
        }
    }
}

/// Whether elements of short rows can be read and written where they are: they are parts of 4 bytes or 8.
pub(super) fn has_records(graph: &Graph, reads: &Reads, results: &Values) -> bool {
    let mut values = reads.inputs.iter().map(|(value, _)| *value).chain(results.iter().copied());
    values.all(|value| graph.ty(value).dtype.storage_bytes() >= 4)
}
