//! Reductions of transposed values: results are sums of rows that lie beside each other, as columns do. They are read as
//! they lie, and reduced in the order of rows.

use defn_core::graph::{Graph, Value};
use defn_core::op::{Op, ReduceOp};
use defn_core::region::Region;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::domain::{Axes, Domain, strides_along};
use super::merge::Reduction;
use crate::compiler::fusion_groups::Role;
use crate::compiler::views::ValueView;
use crate::kernels::StridedView;
use crate::kernels::reduce::MIN_INNER;

/// Elements of a transposed value up to which it is as well copied.
pub(in crate::compiler) const MIN_ELEMENTS: usize = 1 << 12;

/// Elements of a row up to which it is as well copied.
const MIN_ROW: usize = 64;

/// A reduction that reads transposed values.
struct Candidate {
    node: usize,
    /// How many rows lie beside each other.
    columns: usize,
    /// The transpositions, each as often as it is read.
    transposed: Vec<usize>,
}

/// Makes views of transpositions that only reductions of rows read, if these can go through all that they read in the
/// order of memory. For each of these reductions, gives how many of its rows lie beside each other.
pub(in super::super) fn read_transposed(
    region: &Region,
    roles: &mut [Role],
    views: &mut [Option<Box<ValueView>>],
) -> FxHashMap<usize, usize> {
    let graph = region.graph();
    let is_candidate = |position: usize| {
        matches!((&graph.nodes()[position].op, &roles[position]), (Op::Transpose { .. }, Role::Step))
            && graph.nodes()[position].outputs[0].size() > MIN_ELEMENTS
    };
    if !(0..graph.len()).any(is_candidate) {
        return FxHashMap::default();
    }
    let mut uses = vec![0_usize; graph.len()];
    let read = graph.nodes().iter().flat_map(|node| &node.inputs).chain(region.results());
    read.for_each(|value| uses[value.node as usize] += 1);
    let search = Search { graph, roles, views, uses: &uses };
    let mut found: Vec<Candidate> = (0..graph.len()).filter_map(|node| search.candidate(node)).collect();
    // What others read too is copied for them.
    loop {
        let mut left = uses.clone();
        found.iter().flat_map(|candidate| &candidate.transposed).for_each(|&node| left[node] -= 1);
        let before = found.len();
        found.retain(|candidate| candidate.transposed.iter().all(|&node| left[node] == 0));
        if found.len() == before {
            break;
        }
    }
    let turned: Vec<(usize, ValueView)> = found
        .iter()
        .flat_map(|candidate| &candidate.transposed)
        .filter_map(|&node| Some((node, search.view_of_transposed(node)?)))
        .collect();
    for (node, view) in turned {
        roles[node] = Role::View;
        views[node] = Some(Box::new(view));
    }
    found.into_iter().map(|candidate| (candidate.node, candidate.columns)).collect()
}

struct Search<'a> {
    graph: &'a Graph,
    roles: &'a [Role],
    views: &'a [Option<Box<ValueView>>],
    /// How often the value of each node is read.
    uses: &'a [usize],
}

impl Search<'_> {
    /// A reduction of rows all of whose elements lie in the order of columns, or are the same for each column or row.
    fn candidate(&self, position: usize) -> Option<Candidate> {
        let node = &self.graph.nodes()[position];
        let (Reduction::Of(op), domain) = Reduction::with_domain(self.graph, node)? else { return None };
        let ty = self.graph.ty(node.inputs[0]);
        // A product of complex numbers is computed on whole tiles.
        if op == ReduceOp::Product && ty.dtype.is_complex() {
            return None;
        }
        if domain.inner > 1 || !domain.is_in_order() || domain.reduced < MIN_ROW {
            return None;
        }
        let (mut transposed, mut others) = (Vec::new(), Vec::new());
        let mut open: Vec<(Value, &[usize])> = vec![(node.inputs[0], ty.shape.sizes())];
        while let Some((value, sizes)) = open.pop() {
            let own = value.node as usize;
            let from = &self.graph.nodes()[own];
            let is_whole = self.graph.ty(value).size() == domain.elements();
            match (&self.roles[own], &from.op) {
                (Role::Elementwise, _) if is_whole && self.uses[own] == 1 => {
                    let sizes = from.outputs[0].shape.sizes();
                    open.extend(from.inputs.iter().map(|&input| (input, sizes)));
                }
                (Role::Step, Op::Transpose { .. }) if is_whole && value != node.inputs[0] => {
                    transposed.push(own)
                }
                _ => {
                    let view = self.views[own].as_deref().cloned();
                    others.push(
                        view.unwrap_or_else(|| ValueView::whole(self.graph, value)).strided_view(sizes),
                    );
                }
            }
        }
        let along = |node: &usize| {
            Some(
                self.view_of_transposed(*node)?
                    .strided_view(self.graph.nodes()[*node].outputs[0].shape.sizes()),
            )
        };
        let first = along(transposed.first()?)?;
        let &[.., (columns, 1), (reduced, _)] = first.dims() else { return None };
        let fits = |view: &StridedView, steps: &[isize]| {
            column_step(view, &domain, columns).is_some_and(|step| steps.contains(&step))
        };
        let is_in_order = reduced == domain.reduced
            && columns >= MIN_INNER
            && domain.outer.is_multiple_of(columns)
            && transposed.iter().all(|node| along(node).is_some_and(|view| fits(&view, &[1])))
            && others.iter().all(|view| fits(view, &[0, 1]));
        is_in_order.then_some(Candidate { node: position, columns, transposed })
    }

    /// The view that a transposition is of a value in memory.
    fn view_of_transposed(&self, position: usize) -> Option<ValueView> {
        let node = &self.graph.nodes()[position];
        let operand = node.inputs[0];
        let view = self.views[operand.node as usize].as_deref().cloned();
        view.unwrap_or_else(|| ValueView::whole(self.graph, operand)).compose(node)
    }
}

/// How many elements of memory are from one row to the next, of so many that lie beside each other. None if that is not
/// the same everywhere.
fn column_step(view: &StridedView, domain: &Domain, columns: usize) -> Option<isize> {
    let mut axes = Axes::new(domain.elements());
    axes.divide(domain.reduced);
    axes.divide(domain.reduced * columns);
    let own = axes.clone().sizes()?;
    axes.add(view);
    if axes.sizes()? != own {
        return None;
    }
    let strides: SmallVec<[isize; 6]> = strides_along(view, &own);
    strides.iter().rev().nth(1).copied()
}
