//! Row-block fusion: reductions of rows are fused with their producers and their consumers. Softmax and normalizations
//! become one nest.
//!
//! A block of rows passes through all fused groups while the cache holds it. Fused groups must not depend on each other
//! through a group that is left out. Groups in between that are left out run before the nest, or after it if they
//! depend on it.

use defn_core::graph::{Graph, Value, Values};
use rustc_hash::FxHashMap;

use super::back_to_back::BackToBackGemm;
use super::epilogues::OpWithEpilogue;
use super::fuse::{Domain, NodeRole, Reduction, has_pairs, instructions};
use super::fusion_groups::{FusionGroups, Role, random};
use super::nest::Nest;
use super::users::Uses;

/// How many fusion groups after the first are looked at.
const SEARCH_WINDOW: usize = 64;

/// The most elements of random numbers that are computed where they are reduced. Nests of elements have two of each
/// block of the generator, and reductions would compute all blocks twice.
const MAX_REDUCED_RANDOM: usize = 1 << 12;

/// The elements of a vector: rows of fewer have lanes of their own, and fewer rows do not fill one.
const LANES: usize = 16;

/// What becomes one step of the plan: fusion groups, by their indices.
#[derive(Debug)]
pub(super) enum FusedKernel {
    /// One group that is not fused further.
    Single(usize),
    /// One or several groups as one nest; the index is that of the last.
    Nest(usize, Box<Nest>, Option<RowBlockFusion>),
    /// An op, and the fusion group that is its epilogue.
    Epilogue(Box<OpWithEpilogue>),
    /// Two products and the rows between them.
    BackToBackGemm(Box<BackToBackGemm>),
}

impl FusedKernel {
    /// The index of a group that is not fused further.
    pub(super) fn single_group(&self) -> Option<usize> {
        match self {
            FusedKernel::Single(index) => Some(*index),
            FusedKernel::Nest(..) | FusedKernel::Epilogue(_) | FusedKernel::BackToBackGemm(_) => None,
        }
    }
}

/// Fusion groups that are computed together for each block of rows, ascending.
#[derive(Clone, Debug)]
pub(super) struct RowBlockFusion {
    pub(super) members: Vec<(usize, NodeRole)>,
    pub(super) domain: Domain,
}

/// How much of what could be in a row-block fusion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// What does not go across groups.
    Groups,
    /// Of that what goes through the elements once.
    OnePass,
}

/// The fusion groups in order, with row-block fusions as one kernel each.
pub(super) fn fused_kernels(graph: &Graph, fusion: &FusionGroups, uses: &dyn Uses) -> Vec<FusedKernel> {
    let finder = Finder { graph, fusion, effects: effects(graph, fusion) };
    let mut kernels = Vec::with_capacity(fusion.order.len());
    let mut next = 0;
    while next < fusion.order.len() {
        let nest = |row_blocks: &RowBlockFusion| {
            let nest = Nest::of_row_blocks(graph, fusion, uses, row_blocks)?;
            Some(FusedKernel::Nest(row_blocks.last(), Box::new(nest), Some(row_blocks.clone())))
        };
        let found = finder.row_block_fusion_at(next, Extent::Whole).and_then(|(row_blocks, bystanders)| {
            if let Some(kernel) = nest(&row_blocks) {
                return Some((kernel, row_blocks, bystanders));
            }
            for extent in [Extent::Groups, Extent::OnePass] {
                if extent == Extent::Groups && !row_blocks.goes_across() {
                    continue;
                }
                if let Some((row_blocks, bystanders)) = finder.row_block_fusion_at(next, extent)
                    && let Some(kernel) = nest(&row_blocks)
                {
                    return Some((kernel, row_blocks, bystanders));
                }
            }
            let first_only =
                RowBlockFusion { members: vec![row_blocks.members[0]], domain: row_blocks.domain };
            Some((nest(&first_only)?, first_only, Bystanders::new()))
        });
        let Some((kernel, row_blocks, bystanders)) = found else {
            kernels.push(FusedKernel::Single(next));
            next += 1;
            continue;
        };
        let (first, last) = (row_blocks.members[0].0, row_blocks.members[row_blocks.members.len() - 1].0);
        kernels.extend((next..first).map(FusedKernel::Single));
        let (before, after): (Vec<_>, Vec<_>) =
            bystanders.into_iter().partition(|(_, needs_group)| !needs_group);
        kernels.extend(before.into_iter().map(|(index, _)| FusedKernel::Single(index)));
        kernels.push(kernel);
        kernels.extend(after.into_iter().map(|(index, _)| FusedKernel::Single(index)));
        next = last + 1;
    }
    kernels
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

/// The fusion groups between the first and the last of a row-block fusion that are not in it, and whether they need
/// what is.
type Bystanders = Vec<(usize, bool)>;

impl Finder<'_> {
    /// The row-block fusion that begins at an index, if one does that is more than one fusion group.
    fn row_block_fusion_at(&self, start: usize, extent: Extent) -> Option<(RowBlockFusion, Bystanders)> {
        let domain = match self.reduction(start) {
            Some((_, domain)) => domain,
            // What is done to the elements before they are reduced.
            None => {
                let elements = self.elements(start)?;
                let end = self.fusion.order.len().min(start + SEARCH_WINDOW);
                let found = (start + 1..end)
                    .filter_map(|index| self.reduction(index).map(|reduction| (index, reduction)));
                let (_, (_, domain)) = found.into_iter().find(|(index, (_, domain))| {
                    domain.elements() == elements && self.operand_groups(*index).any(|need| need == start)
                })?;
                domain
            }
        };
        let mut row_blocks =
            RowBlockFusion { members: vec![(start, self.role(start, &domain)?)], domain: domain.clone() };
        // For each fusion group from the start on, whether it is left out and needs what is in the row-block fusion.
        let mut tainted = vec![false];
        let mut bystanders: Bystanders = Vec::new();
        let end = self.fusion.order.len().min(start + SEARCH_WINDOW);
        for index in start + 1..end {
            let is_tainted = self.operand_groups(index).any(|need| need >= start && tainted[need - start]);
            let is_related = self.operand_groups(index).any(|need| row_blocks.has(need));
            let across = || self.across(index, &domain).filter(|_| extent == Extent::Whole);
            let role = self.role(index, &domain).or_else(across).filter(|role| {
                self.reads_within_groups(&row_blocks, index, *role)
                    && !(extent == Extent::OnePass && self.reads_reduction_results(&row_blocks, index, *role))
            });
            match role {
                Some(role) if is_related && !is_tainted => {
                    row_blocks.members.push((index, role));
                    tainted.push(false);
                }
                Some(_) | None => {
                    tainted.push(is_tainted || is_related);
                    bystanders.push((index, is_tainted || is_related));
                }
            }
        }
        let has_reduction = row_blocks.members.iter().any(|(_, role)| matches!(role, NodeRole::Reduction(_)));
        let last = row_blocks.members[row_blocks.members.len() - 1].0;
        bystanders.retain(|(index, _)| *index < last);
        if has_reduction {
            self.add_producers(&mut row_blocks, &mut bystanders);
        }
        has_reduction.then_some((row_blocks, bystanders))
    }

    /// Whether a fusion group needs what reductions of a row-block fusion give, to do something with elements again.
    fn reads_reduction_results(&self, row_blocks: &RowBlockFusion, index: usize, role: NodeRole) -> bool {
        let is_per_group = |need: usize| match row_blocks.role_of(need) {
            Some(NodeRole::Reduction(_) | NodeRole::Across(_) | NodeRole::Rows) => true,
            Some(NodeRole::Elements) | None => false,
        };
        role != NodeRole::Rows && self.operand_groups(index).any(is_per_group)
    }

    /// Adds what would stand before a row-block fusion and gives it values of the same groups: they need not be written
    /// and read again.
    fn add_producers(&self, row_blocks: &mut RowBlockFusion, bystanders: &mut Bystanders) {
        for at in (0..bystanders.len()).rev() {
            let (index, is_after) = bystanders[at];
            let needed_by = |other: usize| self.operand_groups(other).any(|need| need == index);
            let is_needed = row_blocks.members.iter().any(|(member, _)| needed_by(*member));
            // Nobody who stays before the row-block fusion may need it.
            let is_free = bystanders.iter().all(|(other, is_after)| *is_after || !needed_by(*other));
            let Some(role) =
                self.role(index, &row_blocks.domain).filter(|_| !is_after && is_needed && is_free)
            else {
                continue;
            };
            let mut with = row_blocks.clone();
            with.members.push((index, role));
            with.members.sort_unstable_by_key(|(index, _)| *index);
            if with.members.iter().all(|(member, role)| self.reads_within_groups(&with, *member, *role)) {
                *row_blocks = with;
                bystanders.remove(at);
            }
        }
    }

    /// The fusion groups that one takes values from, and the one with the effect before its own.
    fn operand_groups(&self, index: usize) -> impl Iterator<Item = usize> {
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
            Role::Leaf | Role::View | Role::Generated | Role::Step => None,
        }
    }

    /// The reduction that a fusion group is, and its domain.
    fn reduction(&self, index: usize) -> Option<(Reduction, Domain)> {
        let [position] = self.fusion.order[index].nodes[..] else { return None };
        let (reduction, mut domain) = Reduction::with_domain(self.graph, &self.graph.nodes()[position])?;
        if let Some(columns) = self.fusion.turned_columns(position) {
            domain = domain.turned(columns);
        }
        (domain.groups() > 0 && domain.reduced > 1).then_some((reduction, domain))
    }

    /// What a fusion group would do in a row-block fusion.
    fn role(&self, index: usize, domain: &Domain) -> Option<NodeRole> {
        if let Some((op, own)) = self.reduction(index) {
            return (own == *domain).then_some(NodeRole::Reduction(op));
        }
        let elements = self.elements(index)?;
        let mut nodes = self.fusion.order[index].nodes.iter();
        if elements > MAX_REDUCED_RANDOM && nodes.any(|&node| has_pairs(&self.graph.nodes()[node])) {
            return None;
        }
        if elements == domain.elements() {
            Some(NodeRole::Elements)
        } else if elements == domain.groups() && !self.takes_longer_by_rows(index, domain) {
            Some(NodeRole::Rows)
        } else {
            None
        }
    }

    /// That of a reduction across the groups of a row-block fusion, if these are short rows.
    fn across(&self, index: usize, domain: &Domain) -> Option<NodeRole> {
        let (reduction, own) = self.reduction(index)?;
        own.across(domain).map(|_| NodeRole::Across(reduction))
    }

    /// Whether what a fusion group does for each row takes longer than the row: by itself it is done in vectors.
    fn takes_longer_by_rows(&self, index: usize, domain: &Domain) -> bool {
        // Lanes have short rows, or columns.
        if domain.inner > 1 || domain.reduced < LANES || domain.groups() < LANES {
            return false;
        }
        let nodes = self.fusion.order[index].nodes.iter();
        let taken = nodes.map(|&node| instructions(self.graph, node)).filter(|taken| *taken > 1);
        // A row takes few instructions for each vector of it.
        taken.sum::<usize>() > domain.reduced / 2
    }

    /// Whether a fusion group reads what is in the row-block fusion only as far as its own rows go.
    fn reads_within_groups(&self, row_blocks: &RowBlockFusion, index: usize, role: NodeRole) -> bool {
        let nodes = &self.fusion.order[index].nodes;
        nodes.iter().all(|&position| {
            let node = &self.graph.nodes()[position];
            let result = match role {
                NodeRole::Reduction(_) | NodeRole::Across(_) => self.graph.ty(node.inputs[0]).shape.sizes(),
                NodeRole::Elements | NodeRole::Rows => node.outputs[0].shape.sizes(),
            };
            let is_before = |input: &Value| {
                let base = self.fusion.base(*input).node as usize;
                self.fusion.group_of[base].is_none_or(|index| !row_blocks.has(index))
            };
            if random(&node.op).is_some() {
                return node.inputs.iter().all(is_before);
            }
            node.inputs.iter().all(|&input| self.reads_in_rows(row_blocks, input, result, role))
        })
    }

    fn reads_in_rows(
        &self,
        row_blocks: &RowBlockFusion,
        input: Value,
        result: &[usize],
        role: NodeRole,
    ) -> bool {
        let base = self.fusion.base(input).node as usize;
        let Some(other) = self.fusion.group_of[base].and_then(|index| row_blocks.role_of(index)) else {
            return true;
        };
        let value_view = self.fusion.view(self.graph, input);
        let size = self.graph.ty(value_view.base).size();
        let in_order = value_view.is_identity(self.graph) && size == result.iter().product::<usize>();
        match (other, role) {
            (NodeRole::Elements, NodeRole::Elements | NodeRole::Reduction(_) | NodeRole::Across(_)) => {
                in_order
            }
            (NodeRole::Elements, NodeRole::Rows) => false,
            (NodeRole::Rows | NodeRole::Reduction(_), NodeRole::Rows) => in_order,
            // The elements of long rows have left the caches when the rows are reduced.
            (NodeRole::Rows | NodeRole::Reduction(_), NodeRole::Elements) => {
                !row_blocks.domain.is_long()
                    && row_blocks.domain.is_per_group(value_view.strided_view(result))
            }
            (NodeRole::Rows | NodeRole::Reduction(_), NodeRole::Reduction(_) | NodeRole::Across(_))
            | (NodeRole::Across(_), _) => false,
        }
    }
}

impl RowBlockFusion {
    /// The index of the last fusion group.
    pub(super) fn last(&self) -> usize {
        self.members[self.members.len() - 1].0
    }

    /// Whether a fusion group is in it.
    pub(super) fn has(&self, index: usize) -> bool {
        self.role_of(index).is_some()
    }

    /// Whether it has reductions across groups.
    fn goes_across(&self) -> bool {
        self.members.iter().any(|(_, role)| matches!(role, NodeRole::Across(_)))
    }

    /// The nodes, and what each is in a nest.
    pub(super) fn nodes(&self, fusion: &FusionGroups) -> Vec<(usize, NodeRole)> {
        let members = self
            .members
            .iter()
            .flat_map(|&(index, role)| fusion.order[index].nodes.iter().map(move |&node| (node, role)));
        members.collect()
    }

    /// What it gives to others.
    pub(super) fn results(&self, uses: &dyn Uses) -> Values {
        let all = self.members.iter().flat_map(|(index, _)| uses.live_outs(*index).iter().copied());
        all.filter(|&value| uses.is_live_outside(value, &|index| self.has(index))).collect()
    }

    fn role_of(&self, index: usize) -> Option<NodeRole> {
        self.members.iter().find(|(own, _)| *own == index).map(|(_, role)| *role)
    }
}

#[cfg(test)]
mod tests {
    use defn_core::op::ReduceOp;
    use defn_core::region::Region;

    use super::super::users::Users;
    use super::*;

    /// The parts of the row-block fusion of a region.
    fn row_block_fusions_of(text: &str) -> Vec<Vec<NodeRole>> {
        let region = Region::from_text(text).unwrap();
        let fusion = FusionGroups::new(&region);
        let finder =
            Finder { graph: region.graph(), fusion: &fusion, effects: effects(region.graph(), &fusion) };
        let (mut found, mut next) = (Vec::new(), 0);
        while next < fusion.order.len() {
            next = match finder.row_block_fusion_at(next, Extent::Whole) {
                Some((row_blocks, _)) => {
                    let next = row_blocks.last() + 1;
                    found.push(row_blocks.members.into_iter().map(|(_, role)| role).collect());
                    next
                }
                None => next + 1,
            };
        }
        found
    }

    #[test]
    fn softmax_is_one_fusion() {
        let [max, sum] =
            [ReduceOp::ReduceMax, ReduceOp::Sum].map(|op| NodeRole::Reduction(Reduction::Of(op)));
        let found = row_block_fusions_of(
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
        assert_eq!(
            found,
            [vec![NodeRole::Elements, max, NodeRole::Elements, sum, NodeRole::Rows, NodeRole::Elements]]
        );
    }

    #[test]
    fn sums_across_short_rows_are_in_the_fusion() {
        let text = |neighbours: usize| {
            format!(
                "defn-ir 1
                (f32[9][{neighbours}][3]) {{
                    %0 = parameter {{index: 0}} : f32[9][{neighbours}][3]
                    %1 = sum %0 {{axes: [2], keep_axes: true}} : f32[9][{neighbours}][1]
                    %2 = multiply %0 %1 : f32[9][{neighbours}][3]
                    %3 = sum %2 {{axes: [1], keep_axes: false}} : f32[9][3]
                    return %3
                }}"
            )
        };
        let sum = Reduction::Of(ReduceOp::Sum);
        let rows = vec![NodeRole::Reduction(sum), NodeRole::Elements];
        let with_across = [rows.clone(), vec![NodeRole::Across(sum)]].concat();
        assert_eq!(row_block_fusions_of(&text(40)), [with_across]);
        // Few neighbours do not fill the lanes.
        assert_eq!(row_block_fusions_of(&text(8))[0], rows);
    }

    #[test]
    fn effects_stay_in_order_around_a_row_block_fusion() {
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
        let kernels = fused_kernels(region.graph(), &fusion, &users);
        let order =
            kernels.iter().filter_map(FusedKernel::single_group).filter(|index| hooks.contains(index));
        assert_eq!(order.collect::<Vec<_>>(), hooks);
    }

    #[test]
    fn what_needs_more_than_its_row_is_left_out() {
        let sum = NodeRole::Reduction(Reduction::Of(ReduceOp::Sum));
        let found = row_block_fusions_of(
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
        assert_eq!(found, [vec![NodeRole::Elements, sum, NodeRole::Elements]]);
    }

    #[test]
    fn producers_of_the_same_rows_are_fused() {
        let sum = NodeRole::Reduction(Reduction::Of(ReduceOp::Sum));
        let found = row_block_fusions_of(
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
        assert_eq!(found, [vec![NodeRole::Elements, NodeRole::Elements, sum, sum, NodeRole::Elements]]);
    }
}
