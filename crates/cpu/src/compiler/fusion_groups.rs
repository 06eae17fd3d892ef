//! Fusion groups: which element-wise ops are fused.
//!
//! Each node that computes belongs to a fusion group, and each group has a level: one more than the highest of
//! those that it takes values from. A node joins the fusion groups of the same level among its operands, if all are
//! element-wise on as many elements; since those of one level never need each other, the joined ones can still
//! be put in order.

use defn_core::DType;
use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{BinaryOp, Block, ElementWise, OnScalars, Op, UnaryOp};
use defn_core::region::Region;
use rustc_hash::FxHashMap;

use super::control::overwritten;
use super::fuse::{fitting, read_transposed};
use super::views::ValueView;
use crate::kernels::elementwise::vector::Base;

/// The most ops of a fusion group.
pub(super) const MAX_GROUP_OPS: usize = 200;

/// The role of a node in the plan.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// An input or a constant: it exists before anything runs.
    Leaf,
    /// A strided view of its operand, which needs no memory of its own.
    View,
    /// Numbers that are computed where they are read: iota.
    Generated,
    /// An element-wise op.
    Elementwise,
    /// A step of its own.
    Step,
}

/// Nodes that are fused, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct FusionGroup {
    pub(super) nodes: Vec<usize>,
}

/// The roles, views and fusion groups of the nodes of a region.
pub(super) struct FusionGroups {
    pub(super) roles: Vec<Role>,
    /// For each node that is only a view of another, that view.
    views: Vec<Option<Box<ValueView>>>,
    /// The groups, in an order in which they can run.
    pub(super) order: Vec<FusionGroup>,
    /// For each node that runs, the index of its group in that order.
    pub(super) group_of: Vec<Option<usize>>,
    /// The reductions of rows that lie beside each other, and how many do.
    turned: FxHashMap<usize, usize>,
}

impl FusionGroups {
    /// The value whose memory has the elements of another.
    pub(super) fn base(&self, value: Value) -> Value {
        view_without_memory(&self.roles, &self.views, value).map_or(value, |view| view.base)
    }

    /// How the elements of a value are stored.
    pub(super) fn view(&self, graph: &Graph, value: Value) -> ValueView {
        view_without_memory(&self.roles, &self.views, value)
            .cloned()
            .unwrap_or_else(|| ValueView::whole(graph, value))
    }

    /// The view that a node is of another, whether or not it has memory of its own too.
    pub(super) fn node_view(&self, position: usize) -> Option<&ValueView> {
        self.views[position].as_deref()
    }

    /// The view that a node is of its operand, fast or not.
    pub(super) fn unfiltered_view(&self, graph: &Graph, position: usize) -> Option<ValueView> {
        let node = &graph.nodes()[position];
        self.view(graph, *node.inputs.first()?).compose(node)
    }

    /// How many rows lie beside each other, for a reduction of such rows.
    pub(super) fn turned_columns(&self, position: usize) -> Option<usize> {
        self.turned.get(&position).copied()
    }

    pub(super) fn new(region: &Region) -> FusionGroups {
        FusionGroups::with_starts(region, vec![false; region.graph().len()])
    }

    /// As [`FusionGroups::new`], where some nodes begin a group: they are not fused with their operands.
    pub(super) fn with_starts(region: &Region, starts_group: Vec<bool>) -> FusionGroups {
        FusionGroups::with_views(region, ValueView::is_fast, starts_group)
    }

    /// Those in which every value that can be a view of another is one, however its elements are read.
    pub(super) fn with_all_views(region: &Region) -> FusionGroups {
        FusionGroups::with_views(region, |_, _| true, vec![false; region.graph().len()])
    }

    /// Whether a node reads an operand element by element as the operand computes them.
    pub(super) fn reads_element_by_element(&self, graph: &Graph, node: &Node, input: Value) -> bool {
        is_elementwise_read(graph, &self.views, node, input)
    }

    fn with_views(
        region: &Region,
        may_be_view: fn(&ValueView, DType) -> bool,
        mut starts_group: Vec<bool>,
    ) -> FusionGroups {
        let graph = region.graph();
        let (mut roles, mut views) = roles(graph, may_be_view);
        let turned = read_transposed(region, &mut roles, &mut views);
        require_memory(region, &mut roles, &views);
        let mut fusion = FusionGroups { roles, views, order: Vec::new(), group_of: Vec::new(), turned };
        loop {
            fusion.arrange(region, &starts_group);
            let unfit = |group: &FusionGroup| {
                let is_elementwise = matches!(fusion.roles[group.nodes[0]], Role::Elementwise);
                let fitting = if is_elementwise { fitting(graph, &fusion, &group.nodes) } else { 1 };
                group.nodes.get(fitting).copied()
            };
            let found: Vec<usize> = fusion.order.iter().filter_map(unfit).collect();
            if found.is_empty() {
                return fusion;
            }
            // It does not fit in the groups of its operands.
            found.into_iter().for_each(|node| starts_group[node] = true);
        }
    }

    /// Puts each node into the fusion groups of its operands, but for those that start a group.
    fn arrange(&mut self, region: &Region, starts_group: &[bool]) {
        let graph = region.graph();
        let (roles, views) = (&self.roles, &self.views);
        let mut forest = Forest::new(graph.len());
        let mut before = None;
        for (position, node) in graph.nodes().iter().enumerate() {
            match roles[position] {
                Role::Leaf | Role::View | Role::Generated => continue,
                Role::Elementwise => forest.join(graph, roles, views, position, starts_group[position]),
                Role::Step => {
                    let needs = node.inputs.iter().filter_map(|input| base_of(roles, views, *input));
                    let level = needs.chain(before).map(|need| forest.level_of(need)).max();
                    forest.add(position, level.map_or(0, |level| level + 1), None);
                }
            }
            if node.op.has_effect() {
                before = Some(position);
            }
        }
        (self.order, self.group_of) = forest.order(graph, roles, views);
        self.join_to_users(region, starts_group);
    }
}

impl FusionGroups {
    /// Joins element-wise fusion groups to the only one that takes their values, if that is element-wise too: they are
    /// needed then, not as early as they could be.
    fn join_to_users(&mut self, region: &Region, starts_group: &[bool]) {
        let graph = region.graph();
        let mut users = vec![User::None; self.order.len()];
        for &result in region.results() {
            if let Some(index) = self.group_of[self.base(result).node as usize] {
                users[index] = User::Other;
            }
        }
        for (position, node) in graph.nodes().iter().enumerate() {
            let Some(own) = self.group_of[position] else { continue };
            for &input in &node.inputs {
                let Some(index) = self.group_of[self.base(input).node as usize].filter(|index| *index != own)
                else {
                    continue;
                };
                let is_elementwise = |role: &Role| matches!(role, Role::Elementwise);
                let fits = !starts_group[position]
                    && is_elementwise(&self.roles[position])
                    && is_elementwise(&self.roles[self.order[index].nodes[0]])
                    && is_elementwise_read(graph, &self.views, node, input);
                users[index] = users[index].and(own, fits);
            }
        }
        // Users come after what they take. For each fusion group the one that it is part of, and how many nodes that
        // has.
        let mut roots: Vec<usize> = (0..self.order.len()).collect();
        let mut counts: Vec<usize> = self.order.iter().map(|group| group.nodes.len()).collect();
        for (index, user) in users.iter().enumerate().rev() {
            let User::FusionGroup(user) = *user else { continue };
            let root = roots[user];
            if counts[root] + counts[index] <= MAX_GROUP_OPS {
                counts[root] += counts[index];
                roots[index] = root;
            }
        }
        if roots.iter().enumerate().all(|(index, root)| index == *root) {
            return;
        }
        for (index, &root) in roots.iter().enumerate() {
            if root != index {
                let nodes = std::mem::take(&mut self.order[index].nodes);
                self.order[root].nodes.extend(nodes);
            }
        }
        self.order.retain(|group| !group.nodes.is_empty());
        for (index, group) in self.order.iter_mut().enumerate() {
            group.nodes.sort_unstable();
            group.nodes.iter().for_each(|&node| self.group_of[node] = Some(index));
        }
    }
}

/// The users of the values of a fusion group.
#[derive(Clone, Copy, Debug)]
enum User {
    None,
    /// One fusion group alone, element by element.
    FusionGroup(usize),
    /// Several fusion groups, a result, or a node that needs them in memory.
    Other,
}

impl User {
    /// With one more, which may take them element by element.
    fn and(self, index: usize, is_elementwise: bool) -> User {
        match self {
            User::None if is_elementwise => User::FusionGroup(index),
            User::FusionGroup(known) if is_elementwise && known == index => self,
            User::None | User::FusionGroup(_) | User::Other => User::Other,
        }
    }
}

/// The role of each node by its op and operands alone.
fn roles(
    graph: &Graph,
    may_be_view: fn(&ValueView, DType) -> bool,
) -> (Vec<Role>, Vec<Option<Box<ValueView>>>) {
    let mut roles: Vec<Role> = Vec::with_capacity(graph.len());
    let mut views: Vec<Option<Box<ValueView>>> = Vec::with_capacity(graph.len());
    for node in graph.nodes() {
        let has_elements = node.outputs.first().is_some_and(|ty| ty.size() > 0);
        let through =
            node.inputs.first().filter(|_| has_elements && node.op.view().is_some()).and_then(|&operand| {
                let of = views[operand.node as usize].as_deref().cloned();
                let of = of.unwrap_or_else(|| ValueView::whole(graph, operand));
                of.compose(node).filter(|view| may_be_view(view, graph.ty(view.base).dtype))
            });
        let role = match (&through, &node.op) {
            (Some(_), _) => Role::View,
            (None, Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_)) => Role::Leaf,
            (None, _) if !has_elements => Role::Step,
            (None, Op::Iota { .. }) => Role::Generated,
            (None, op) if elementwise(op).is_some() => Role::Elementwise,
            (None, _) => Role::Step,
        };
        views.push(through.map(Box::new));
        roles.push(role);
    }
    (roles, views)
}

/// Makes steps of the nodes that a step or a result needs in memory, and of numbers that are not read in order.
fn require_memory(region: &Region, roles: &mut [Role], views: &[Option<Box<ValueView>>]) {
    let graph = region.graph();
    let mut needed = vec![false; graph.len()];
    region.results().iter().for_each(|result| needed[result.node as usize] = true);
    for (position, node) in graph.nodes().iter().enumerate().rev() {
        match roles[position] {
            Role::View | Role::Generated if needed[position] => roles[position] = Role::Step,
            Role::Leaf | Role::View | Role::Generated | Role::Elementwise | Role::Step => {}
        }
        match roles[position] {
            Role::Step => {
                let is_overwritten = overwritten(graph, node);
                let read = node.inputs.iter().enumerate().filter(|(at, _)| !is_overwritten(*at));
                read.for_each(|(_, input)| needed[input.node as usize] = true);
            }
            Role::Elementwise => {
                for &input in &node.inputs {
                    if !is_elementwise_read(graph, views, node, input) {
                        let base = views[input.node as usize].as_deref().map_or(input, |view| view.base);
                        needed[base.node as usize] = true;
                    }
                }
            }
            Role::Leaf | Role::View | Role::Generated => {}
        }
    }
}

/// The view that a value is of another, if it has no memory of its own.
fn view_without_memory<'s>(
    roles: &[Role],
    views: &'s [Option<Box<ValueView>>],
    value: Value,
) -> Option<&'s ValueView> {
    let position = value.node as usize;
    match roles[position] {
        Role::View => views[position].as_deref(),
        Role::Leaf | Role::Generated | Role::Elementwise | Role::Step => None,
    }
}

/// The node that has to run before a value exists, if one has to.
fn base_of(roles: &[Role], views: &[Option<Box<ValueView>>], value: Value) -> Option<usize> {
    let base = view_without_memory(roles, views, value).map_or(value, |view| view.base).node as usize;
    match roles[base] {
        Role::Elementwise | Role::Step => Some(base),
        Role::Leaf | Role::View | Role::Generated => None,
    }
}

/// An op that is done on each element alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Elementwise {
    Unary(UnaryOp),
    Binary(BinaryOp),
    AsType,
    Select,
    Clip,
    Log(Base),
    Random(Random),
}

/// Random numbers, of which each is computed from a key and its position. They are element-wise, but their operands are
/// read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Random {
    /// The words of blocks with given counters.
    Threefry,
    Bits,
    Uniform,
    Below,
}

/// The random numbers that an op makes.
pub(super) fn random(op: &Op) -> Option<Random> {
    if let Some(Elementwise::Random(random)) = elementwise(op) { Some(random) } else { None }
}

/// What an op does on each element alone, if that is all.
pub(super) fn elementwise(op: &Op) -> Option<Elementwise> {
    match op.on_scalars() {
        OnScalars::ElementWise(ElementWise::Unary(op)) => Some(Elementwise::Unary(op)),
        OnScalars::ElementWise(ElementWise::Binary(op)) => Some(Elementwise::Binary(op)),
        OnScalars::ElementWise(ElementWise::AsType(_)) => Some(Elementwise::AsType),
        OnScalars::ElementWise(ElementWise::Select) => Some(Elementwise::Select),
        OnScalars::ElementWise(ElementWise::Clip) => Some(Elementwise::Clip),
        OnScalars::Block(Block::Log2) => Some(Elementwise::Log(Base::Two)),
        OnScalars::Block(Block::Log10) => Some(Elementwise::Log(Base::Ten)),
        OnScalars::Block(Block::Threefry) => Some(Elementwise::Random(Random::Threefry)),
        OnScalars::Block(Block::RandomBits { .. }) => Some(Elementwise::Random(Random::Bits)),
        OnScalars::Block(Block::RandomUniform { .. }) => Some(Elementwise::Random(Random::Uniform)),
        OnScalars::Block(Block::RandomBelow { .. }) => Some(Elementwise::Random(Random::Below)),
        OnScalars::ElementWise(ElementWise::Bitcast(_))
        | OnScalars::Block(_)
        | OnScalars::Input(_)
        | OnScalars::Constant(_)
        | OnScalars::Operand
        | OnScalars::Other => None,
    }
}

/// Fusion groups as they grow: each is a tree of a disjoint-set forest.
struct Forest {
    /// The fusion group of each node that has one.
    group: Vec<Option<usize>>,
    trees: Vec<Tree>,
}

struct Tree {
    parent: usize,
    level: usize,
    /// How many elements its ops have, where they are element-wise.
    elements: Option<usize>,
    count: usize,
}

impl Forest {
    fn new(nodes: usize) -> Forest {
        Forest { group: vec![None; nodes], trees: Vec::new() }
    }

    fn add(&mut self, position: usize, level: usize, elements: Option<usize>) {
        self.group[position] = Some(self.trees.len());
        self.trees.push(Tree { parent: self.trees.len(), level, elements, count: 1 });
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.trees[at].parent != at {
            self.trees[at].parent = self.trees[self.trees[at].parent].parent;
            at = self.trees[at].parent;
        }
        at
    }

    fn root_of(&mut self, node: usize) -> usize {
        let group = self.group[node].expect("operands come before what takes them");
        self.root(group)
    }

    fn level_of(&mut self, node: usize) -> usize {
        let root = self.root_of(node);
        self.trees[root].level
    }

    /// Puts an element-wise node where it can be.
    fn join(
        &mut self,
        graph: &Graph,
        roles: &[Role],
        views: &[Option<Box<ValueView>>],
        position: usize,
        must_start_group: bool,
    ) {
        let node = &graph.nodes()[position];
        let elements = node.outputs[0].size();
        let mut level = 0;
        // The fusion groups of the highest level, and whether the node can be in all of them.
        let (mut highest, mut fits): (Vec<usize>, bool) = (Vec::new(), true);
        for &input in &node.inputs {
            let Some(base) = base_of(roles, views, input) else { continue };
            let root = self.root_of(base);
            let tree = &self.trees[root];
            if highest.is_empty() || tree.level > level {
                (level, fits) = (tree.level, true);
                highest.clear();
            } else if tree.level < level {
                continue;
            }
            fits &= tree.elements == Some(elements) && is_elementwise_read(graph, views, node, input);
            if !highest.contains(&root) {
                highest.push(root);
            }
        }
        let count: usize = highest.iter().map(|&root| self.trees[root].count).sum();
        if highest.is_empty() {
            return self.add(position, 0, Some(elements));
        }
        if !fits || must_start_group || count >= MAX_GROUP_OPS {
            return self.add(position, level + 1, Some(elements));
        }
        let first = highest[0];
        for &other in &highest[1..] {
            self.trees[other].parent = first;
        }
        self.trees[first].count = count + 1;
        self.group[position] = Some(first);
    }

    /// The fusion groups, each after those that it takes values from and otherwise as early as its last node says.
    fn order(
        mut self,
        graph: &Graph,
        roles: &[Role],
        views: &[Option<Box<ValueView>>],
    ) -> (Vec<FusionGroup>, Vec<Option<usize>>) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.trees.len()];
        let mut effects: Vec<usize> = Vec::new();
        for (position, node) in graph.nodes().iter().enumerate() {
            if self.group[position].is_some() {
                let root = self.root_of(position);
                members[root].push(position);
                if node.op.has_effect() {
                    effects.push(position);
                }
            }
        }
        let mut ends: Vec<usize> = (0..members.len()).filter(|&root| !members[root].is_empty()).collect();
        ends.sort_by_key(|&root| members[root].last().copied());
        let mut group_of: Vec<Option<usize>> = vec![None; graph.len()];
        let mut placed = vec![false; members.len()];
        let mut order: Vec<FusionGroup> = Vec::with_capacity(ends.len());
        for root in ends {
            // Levels rise from what is needed to who needs it, so that this ends.
            let mut stack = vec![(root, false)];
            while let Some((root, is_ready)) = stack.pop() {
                if placed[root] {
                    continue;
                }
                if is_ready {
                    placed[root] = true;
                    let nodes = std::mem::take(&mut members[root]);
                    nodes.iter().for_each(|&node| group_of[node] = Some(order.len()));
                    order.push(FusionGroup { nodes });
                    continue;
                }
                stack.push((root, true));
                for &position in &members[root] {
                    let node = &graph.nodes()[position];
                    let effect = node.op.has_effect().then(|| {
                        let at = effects.partition_point(|&effect| effect < position);
                        at.checked_sub(1).map(|at| effects[at])
                    });
                    let needs = node.inputs.iter().filter_map(|&input| base_of(roles, views, input));
                    for need in needs.chain(effect.flatten()) {
                        let other = self.root_of(need);
                        if other != root && !placed[other] {
                            stack.push((other, false));
                        }
                    }
                }
            }
        }
        (order, group_of)
    }
}

/// Whether a node reads an operand element by element as the operand computes them.
fn is_elementwise_read(graph: &Graph, views: &[Option<Box<ValueView>>], node: &Node, input: Value) -> bool {
    let is_whole = match &views[input.node as usize] {
        Some(view) => view.is_identity(graph),
        None => graph.node(input).outputs.len() == 1,
    };
    is_whole && random(&node.op).is_none() && graph.ty(input).size() == node.outputs[0].size()
}
