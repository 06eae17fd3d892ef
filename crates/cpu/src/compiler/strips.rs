//! Which fusion groups go through the rows of a tensor together: sums and extremes of rows, what is done to the
//! elements before, and what is done with both after. Normalising and softmax are such.
//!
//! A strip of rows goes through all of them while the cache holds it. Fusion groups that are put together must not need
//! each other by way of one that is left out; in between those stand before that they do not need, and the others
//! after.

use defn_core::graph::{Graph, Value, Values};
use rustc_hash::FxHashMap;

use super::between::Between;
use super::followed::Followed;
use super::fuse::{Domain, Part, Reduction, has_pairs};
use super::fusion_groups::{FusionGroups, Role, random};
use super::nest::Nest;
use super::users::Uses;
use crate::kernels::reduce::ReductionLayout;

/// How many fusion groups after the first are looked at.
const WINDOW: usize = 64;

/// The most elements of random numbers that are computed where they are reduced. Nests of elements have two of each
/// block of the generator, and reductions would compute all blocks twice.
const FEW_DRAWN: usize = 1 << 12;

/// Fusion groups that are run at once, by their indices.
#[derive(Debug)]
pub(super) enum Piece {
    /// One by itself.
    One(usize),
    /// One or several as one nest; the place is that of the last.
    Nest(usize, Box<Nest>, Option<Strip>),
    /// An op by itself, and a fusion group that follows it.
    Followed(Box<Followed>),
    /// Two products and the rows between them.
    Between(Box<Between>),
}

impl Piece {
    /// The index of one by itself.
    pub(super) fn alone(&self) -> Option<usize> {
        match self {
            Piece::One(index) => Some(*index),
            Piece::Nest(..) | Piece::Followed(_) | Piece::Between(_) => None,
        }
    }
}

/// Fusion groups that go through groups of elements together, ascending.
#[derive(Clone, Debug)]
pub(super) struct Strip {
    pub(super) parts: Vec<(usize, Part)>,
    pub(super) domain: Domain,
}

/// The fusion groups in order, those of a strip in one place, and folds where what they fold is made.
pub(super) fn pieces(graph: &Graph, fusion: &FusionGroups, uses: &dyn Uses) -> Vec<Piece> {
    let finder = Finder { graph, fusion, effects: effects(graph, fusion) };
    let mut pieces = Vec::with_capacity(fusion.order.len());
    let mut done = 0;
    while done < fusion.order.len() {
        let nest = |strip: &Strip| {
            let nest = Nest::of_groups(graph, fusion, uses, strip)?;
            Some(Piece::Nest(strip.last(), Box::new(nest), Some(strip.clone())))
        };
        let found = finder.strip_from(done, false).and_then(|(strip, others)| {
            if let Some(piece) = nest(&strip) {
                return Some((piece, strip, others));
            }
            let one_pass = finder.strip_from(done, true);
            if let Some((strip, others)) = one_pass
                && let Some(piece) = nest(&strip)
            {
                return Some((piece, strip, others));
            }
            let alone = Strip { parts: vec![strip.parts[0]], domain: strip.domain };
            Some((nest(&alone)?, alone, Others::new()))
        });
        let Some((piece, strip, others)) = found else {
            pieces.push(Piece::One(done));
            done += 1;
            continue;
        };
        let (first, last) = (strip.parts[0].0, strip.parts[strip.parts.len() - 1].0);
        pieces.extend((done..first).map(Piece::One));
        let (before, after): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, needs)| !needs);
        pieces.extend(before.into_iter().map(|(index, _)| Piece::One(index)));
        pieces.push(piece);
        pieces.extend(after.into_iter().map(|(index, _)| Piece::One(index)));
        done = last + 1;
    }
    pieces
}

struct Finder<'a> {
    graph: &'a Graph,
    fusion: &'a FusionGroups,
    /// For each fusion group with an effect the one with the effect before, which has to run before it.
    effects: FxHashMap<usize, usize>,
}

/// The fusion groups with effects, each with the one before it.
fn effects(graph: &Graph, fusion: &FusionGroups) -> FxHashMap<usize, usize> {
    let nodes = graph.nodes().iter().zip(&fusion.group_of);
    let indices: Vec<usize> =
        nodes.filter(|(node, _)| node.op.has_effect()).filter_map(|(_, index)| *index).collect();
    indices.windows(2).map(|pair| (pair[1], pair[0])).collect()
}

/// The fusion groups between the first and the last of a strip that are not in it, and whether they need what is.
type Others = Vec<(usize, bool)>;

impl Finder<'_> {
    /// The strip that begins at an index, if one does that is more than one fusion group; or what of it goes through
    /// the elements once.
    fn strip_from(&self, start: usize, is_one_pass: bool) -> Option<(Strip, Others)> {
        let domain = match self.fold(start) {
            Some((_, domain)) => domain,
            // What is done to the elements before they are folded.
            None => {
                let elements = self.elements(start)?;
                let end = self.fusion.order.len().min(start + WINDOW);
                let found = (start + 1..end).filter_map(|index| self.fold(index).map(|fold| (index, fold)));
                let (_, (_, domain)) = found.into_iter().find(|(index, (_, domain))| {
                    domain.elements() == elements && self.needs(*index).any(|need| need == start)
                })?;
                domain
            }
        };
        let mut strip = Strip { parts: vec![(start, self.part(start, &domain)?)], domain: domain.clone() };
        // For each fusion group from the start on, whether it is left out and needs what is in the strip.
        let mut tainted = vec![false];
        let mut others: Others = Vec::new();
        let end = self.fusion.order.len().min(start + WINDOW);
        for index in start + 1..end {
            let is_tainted = self.needs(index).any(|need| need >= start && tainted[need - start]);
            let is_related = self.needs(index).any(|need| strip.has(need));
            let part = self.part(index, &domain).filter(|part| {
                self.fits(&strip, index, *part)
                    && !(is_one_pass && self.is_of_next_pass(&strip, index, *part))
            });
            match part {
                Some(part) if is_related && !is_tainted => {
                    strip.parts.push((index, part));
                    tainted.push(false);
                }
                Some(_) | None => {
                    tainted.push(is_tainted || is_related);
                    others.push((index, is_tainted || is_related));
                }
            }
        }
        let folds = strip.parts.iter().any(|(_, part)| matches!(part, Part::Fold(_)));
        let last = strip.parts[strip.parts.len() - 1].0;
        others.retain(|(index, _)| *index < last);
        if folds {
            self.add_needed(&mut strip, &mut others);
        }
        folds.then_some((strip, others))
    }

    /// Whether a fusion group needs what reductions of a strip give, to do something with elements again.
    fn is_of_next_pass(&self, strip: &Strip, index: usize, part: Part) -> bool {
        let is_of_groups = |need: usize| match strip.part_of(need) {
            Some(Part::Fold(_) | Part::Rows) => true,
            Some(Part::Elements) | None => false,
        };
        part != Part::Rows && self.needs(index).any(is_of_groups)
    }

    /// Adds what would stand before a strip and gives it values of the same groups: they need not be written and read
    /// again.
    fn add_needed(&self, strip: &mut Strip, others: &mut Others) {
        for at in (0..others.len()).rev() {
            let (index, is_after) = others[at];
            let needed_by = |other: usize| self.needs(other).any(|need| need == index);
            let is_needed = strip.parts.iter().any(|(member, _)| needed_by(*member));
            // Nobody who stays before the strip may need it.
            let is_free = others.iter().all(|(other, is_after)| *is_after || !needed_by(*other));
            let Some(part) = self.part(index, &strip.domain).filter(|_| !is_after && is_needed && is_free)
            else {
                continue;
            };
            let mut with = strip.clone();
            with.parts.push((index, part));
            with.parts.sort_unstable_by_key(|(index, _)| *index);
            if with.parts.iter().all(|(member, part)| self.fits(&with, *member, *part)) {
                *strip = with;
                others.remove(at);
            }
        }
    }

    /// The fusion groups that one takes values from, and the one with the effect before its own.
    fn needs(&self, index: usize) -> impl Iterator<Item = usize> {
        let nodes = self.fusion.order[index].nodes.iter();
        let inputs = nodes.flat_map(|&node| self.graph.nodes()[node].inputs.iter());
        let values = inputs.filter_map(move |&input| {
            let base = self.fusion.base(input).node as usize;
            self.fusion.group_of[base].filter(|&other| other != index)
        });
        values.chain(self.effects.get(&index).copied())
    }

    /// How many elements the ops of a fusion group have, where they are element-wise.
    fn elements(&self, index: usize) -> Option<usize> {
        let first = self.fusion.order[index].nodes[0];
        match self.fusion.roles[first] {
            Role::Elementwise => Some(self.graph.nodes()[first].outputs[0].size()),
            Role::Given | Role::View | Role::Generated | Role::Step => None,
        }
    }

    /// The reduction that a fusion group is, and its domain.
    fn fold(&self, index: usize) -> Option<(Reduction, Domain)> {
        let [position] = self.fusion.order[index].nodes[..] else { return None };
        let node = &self.graph.nodes()[position];
        let (reduction, axes) = Reduction::of(&node.op)?;
        let shape = &self.graph.ty(node.inputs[0]).shape;
        let axes = axes.unwrap_or_else(|| shape.axes().collect());
        let domain = Domain::of_reduction(&ReductionLayout::new(shape.sizes(), &axes));
        (domain.groups() > 0 && domain.reduced > 1).then_some((reduction, domain))
    }

    /// What a fusion group would do in a strip.
    fn part(&self, index: usize, domain: &Domain) -> Option<Part> {
        if let Some((op, own)) = self.fold(index) {
            return (own == *domain).then_some(Part::Fold(op));
        }
        let elements = self.elements(index)?;
        let mut nodes = self.fusion.order[index].nodes.iter();
        if elements > FEW_DRAWN && nodes.any(|&node| has_pairs(&self.graph.nodes()[node])) {
            return None;
        }
        if elements == domain.elements() {
            Some(Part::Elements)
        } else if elements == domain.groups() {
            Some(Part::Rows)
        } else {
            None
        }
    }

    /// Whether a fusion group reads what is in the strip only as far as its own rows go.
    fn fits(&self, strip: &Strip, index: usize, part: Part) -> bool {
        let nodes = &self.fusion.order[index].nodes;
        nodes.iter().all(|&position| {
            let node = &self.graph.nodes()[position];
            let result = match part {
                Part::Fold(_) => self.graph.ty(node.inputs[0]).shape.sizes(),
                Part::Elements | Part::Rows => node.outputs[0].shape.sizes(),
            };
            let is_before = |input: &Value| {
                let base = self.fusion.base(*input).node as usize;
                self.fusion.group_of[base].is_none_or(|index| !strip.has(index))
            };
            if random(&node.op).is_some() {
                return node.inputs.iter().all(is_before);
            }
            node.inputs.iter().all(|&input| self.reads_in_rows(strip, input, result, part))
        })
    }

    fn reads_in_rows(&self, strip: &Strip, input: Value, result: &[usize], part: Part) -> bool {
        let base = self.fusion.base(input).node as usize;
        let Some(other) = self.fusion.group_of[base].and_then(|index| strip.part_of(index)) else {
            return true;
        };
        let value_view = self.fusion.view(self.graph, input);
        let size = self.graph.ty(value_view.base).size();
        let in_order = value_view.is_identity(self.graph) && size == result.iter().product::<usize>();
        match (other, part) {
            (Part::Elements, Part::Elements | Part::Fold(_)) => in_order,
            (Part::Elements, Part::Rows) => false,
            (Part::Rows | Part::Fold(_), Part::Rows) => in_order,
            // The elements of long rows have left the caches when the rows are reduced.
            (Part::Rows | Part::Fold(_), Part::Elements) => {
                !strip.domain.is_long() && strip.domain.is_of_groups(value_view.strided_view(result))
            }
            (Part::Rows | Part::Fold(_), Part::Fold(_)) => false,
        }
    }
}

impl Strip {
    /// The index of the last fusion group.
    pub(super) fn last(&self) -> usize {
        self.parts[self.parts.len() - 1].0
    }

    /// Whether a fusion group is in it.
    pub(super) fn has(&self, index: usize) -> bool {
        self.part_of(index).is_some()
    }

    /// The nodes, and what each is in a nest.
    pub(super) fn nodes(&self, fusion: &FusionGroups) -> Vec<(usize, Part)> {
        let parts = self
            .parts
            .iter()
            .flat_map(|&(index, part)| fusion.order[index].nodes.iter().map(move |&node| (node, part)));
        parts.collect()
    }

    /// What it gives to others.
    pub(super) fn results(&self, uses: &dyn Uses) -> Values {
        let all = self.parts.iter().flat_map(|(index, _)| uses.live_outs(*index).iter().copied());
        all.filter(|&value| uses.is_live_outside(value, &|index| self.has(index))).collect()
    }

    fn part_of(&self, index: usize) -> Option<Part> {
        self.parts.iter().find(|(own, _)| *own == index).map(|(_, part)| *part)
    }
}

#[cfg(test)]
mod tests {
    use defn_core::op::ReduceOp;
    use defn_core::region::Region;

    use super::super::users::Users;
    use super::*;

    /// The parts of the strips of a region.
    fn strips_of(text: &str) -> Vec<Vec<Part>> {
        let region = Region::from_text(text).unwrap();
        let fusion = FusionGroups::new(&region);
        let finder =
            Finder { graph: region.graph(), fusion: &fusion, effects: effects(region.graph(), &fusion) };
        let (mut found, mut done) = (Vec::new(), 0);
        while done < fusion.order.len() {
            done = match finder.strip_from(done, false) {
                Some((strip, _)) => {
                    let next = strip.last() + 1;
                    found.push(strip.parts.into_iter().map(|(_, part)| part).collect());
                    next
                }
                None => done + 1,
            };
        }
        found
    }

    #[test]
    fn softmax_is_one_strip() {
        let [max, sum] = [ReduceOp::ReduceMax, ReduceOp::Sum].map(|op| Part::Fold(Reduction::Of(op)));
        let found = strips_of(
            "defn-ir 1
            (f32[8][100]) {
                %0 = parameter {index: 0} : f32[8][100]
                %1 = negate %0 : f32[8][100]
                %2 = reduce_max %1 {axes: [1], keep_axes: true} : f32[8][1]
                %3 = subtract %1 %2 : f32[8][100]
                %4 = exp %3 : f32[8][100]
                %5 = sum %4 {axes: [1], keep_axes: true} : f32[8][1]
                %6 = log %5 : f32[8][1]
                %7 = divide %4 %6 : f32[8][100]
                return %7
            }",
        );
        assert_eq!(found, [vec![Part::Elements, max, Part::Elements, sum, Part::Rows, Part::Elements]]);
    }

    #[test]
    fn effects_stay_in_order_around_a_strip() {
        let region = Region::from_text(
            "defn-ir 1
            (f32[8][8]) {
                %0 = parameter {index: 0} : f32[8][8]
                %1 = exp %0 : f32[8][8]
                %2 = sum %1 {axes: [1], keep_axes: false} : f32[8]
                %3 = hook %2 {slot: 0, name: none} : f32[8]
                %4 = hook %0 {slot: 1, name: none} : f32[8][8]
                %5 = exp %2 : f32[8]
                return %5
            }",
        )
        .unwrap();
        let fusion = FusionGroups::new(&region);
        let hooks = [3, 4].map(|node| fusion.group_of[node].unwrap());
        let users = Users::new(&region, &fusion);
        let pieces = pieces(region.graph(), &fusion, &users);
        let order = pieces.iter().filter_map(Piece::alone).filter(|index| hooks.contains(index));
        assert_eq!(order.collect::<Vec<_>>(), hooks);
    }

    #[test]
    fn what_needs_more_than_its_row_is_left_out() {
        let sum = Part::Fold(Reduction::Of(ReduceOp::Sum));
        let found = strips_of(
            "defn-ir 1
            (f32[8][8]) {
                %0 = parameter {index: 0} : f32[8][8]
                %1 = exp %0 : f32[8][8]
                %2 = sum %1 {axes: [1], keep_axes: false} : f32[8]
                %3 = divide %1 %2 : f32[8][8]
                %4 = sort %2 {axis: 0, direction: \"asc\"} : f32[8]
                %5 = reshape %4 : f32[8][1]
                %6 = add %1 %5 : f32[8][8]
                %7 = reshape %2 : f32[8][1]
                %8 = multiply %1 %7 : f32[8][8]
                return %3 %6 %8
            }",
        );
        // What divides by the sums of other rows comes after, and so does what waits for the order of the sums.
        assert_eq!(found, [vec![Part::Elements, sum, Part::Elements]]);
    }

    #[test]
    fn producers_of_the_same_rows_are_part_of_a_strip() {
        let sum = Part::Fold(Reduction::Of(ReduceOp::Sum));
        let found = strips_of(
            "defn-ir 1
            (f32[8][8], f32[8][8]) {
                %0 = parameter {index: 0} : f32[8][8]
                %1 = parameter {index: 1} : f32[8][8]
                %2 = exp %0 : f32[8][8]
                %3 = negate %1 : f32[8][8]
                %4 = sum %3 {axes: [1], keep_axes: true} : f32[8][1]
                %5 = sum %2 {axes: [1], keep_axes: true} : f32[8][1]
                %6 = multiply %2 %5 : f32[8][8]
                %7 = add %6 %4 : f32[8][8]
                %8 = subtract %7 %3 : f32[8][8]
                return %8
            }",
        );
        assert_eq!(found, [vec![Part::Elements, Part::Elements, sum, sum, Part::Elements]]);
    }
}
