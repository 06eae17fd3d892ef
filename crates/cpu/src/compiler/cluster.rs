//! Which element-wise ops are done together.
//!
//! Each node that computes belongs to a cluster, and each cluster has a level: one more than the highest of those that
//! it takes values from. A node joins the clusters of the same level among its operands, if all are element-wise on as
//! many elements; since clusters of one level never need each other, the joined ones can still be put in order.

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{BinaryOp, Block, ElementWise, OnScalars, Op, UnaryOp};
use defn_core::region::Region;

use super::fuse::fitting;
use super::views::Seen;
use crate::kernels::elementwise::vector::Base;

/// The most ops that are done together.
const MOST: usize = 200;

/// What a node is to the plan.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// An input, or what is written in the program: it is there before anything runs.
    Given,
    /// Its operand seen in another way; nobody needs it in memory of its own.
    View,
    /// Numbers that are made where they are read: what counts along axes.
    Generated,
    /// One op on each element.
    Elementwise,
    /// One step by itself.
    Step,
}

/// Nodes that are done together, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<usize>,
}

/// What is known of each node of a region.
pub(super) struct Clusters {
    pub(super) roles: Vec<Role>,
    /// What nodes see of others, where they only look at them in another way.
    seen: Vec<Option<Box<Seen>>>,
    /// Those that are run, in an order in which they can be.
    pub(super) order: Vec<Cluster>,
    /// The place in that order of each node that is run.
    pub(super) place: Vec<Option<usize>>,
}

impl Clusters {
    /// The value whose memory has the elements of another.
    pub(super) fn base(&self, value: Value) -> Value {
        view_of(&self.roles, &self.seen, value).map_or(value, |seen| seen.base)
    }

    /// How the elements of a value lie in memory.
    pub(super) fn seen(&self, graph: &Graph, value: Value) -> Seen {
        view_of(&self.roles, &self.seen, value).cloned().unwrap_or_else(|| Seen::whole(graph, value))
    }

    /// How a node's elements lie in the memory of another, whether or not they have memory of their own too.
    pub(super) fn sight(&self, position: usize) -> Option<&Seen> {
        self.seen[position].as_deref()
    }

    /// How a node's elements lie in the memory of its operand, if it only looks at it in another way; fast or not.
    pub(super) fn turned(&self, graph: &Graph, position: usize) -> Option<Seen> {
        let node = &graph.nodes()[position];
        self.seen(graph, *node.inputs.first()?).through(node)
    }

    pub(super) fn new(region: &Region) -> Clusters {
        let graph = region.graph();
        let (mut roles, seen) = roles(graph);
        require_memory(region, &mut roles, &seen);
        let mut clusters = Clusters { roles, seen, order: Vec::new(), place: Vec::new() };
        // What begins a cluster of its own, since it does not fit in those of its operands.
        let mut apart = vec![false; graph.len()];
        loop {
            clusters.arrange(region, &apart);
            let unfit = |cluster: &Cluster| {
                let is_elementwise = matches!(clusters.roles[cluster.nodes[0]], Role::Elementwise);
                let fitting = if is_elementwise { fitting(graph, &clusters, &cluster.nodes) } else { 1 };
                cluster.nodes.get(fitting).copied()
            };
            let found: Vec<usize> = clusters.order.iter().filter_map(unfit).collect();
            if found.is_empty() {
                return clusters;
            }
            found.into_iter().for_each(|node| apart[node] = true);
        }
    }

    /// Puts each node into the clusters of its operands, but for those that are `apart`.
    fn arrange(&mut self, region: &Region, apart: &[bool]) {
        let graph = region.graph();
        let (roles, seen) = (&self.roles, &self.seen);
        let mut forest = Forest::new(graph.len());
        let mut before = None;
        for (position, node) in graph.nodes().iter().enumerate() {
            match roles[position] {
                Role::Given | Role::View | Role::Generated => continue,
                Role::Elementwise => forest.join(graph, roles, seen, position, apart[position]),
                Role::Step => {
                    let needs = node.inputs.iter().filter_map(|input| base_of(roles, seen, *input));
                    let level = needs.chain(before).map(|need| forest.level_of(need)).max();
                    forest.add(position, level.map_or(0, |level| level + 1), None);
                }
            }
            if node.op.has_effect() {
                before = Some(position);
            }
        }
        (self.order, self.place) = forest.order(graph, roles, seen);
        self.join_to_users(region, apart);
    }
}

impl Clusters {
    /// Joins element-wise clusters to the only one that takes their values, if that is element-wise too: they are needed
    /// then, not as early as they could be.
    fn join_to_users(&mut self, region: &Region, apart: &[bool]) {
        let graph = region.graph();
        let mut users = vec![User::None; self.order.len()];
        for &result in region.results() {
            if let Some(place) = self.place[self.base(result).node as usize] {
                users[place] = User::Other;
            }
        }
        for (position, node) in graph.nodes().iter().enumerate() {
            let Some(own) = self.place[position] else { continue };
            for &input in &node.inputs {
                let Some(place) = self.place[self.base(input).node as usize].filter(|place| *place != own)
                else {
                    continue;
                };
                let is_elementwise = |role: &Role| matches!(role, Role::Elementwise);
                let fits = !apart[position]
                    && is_elementwise(&self.roles[position])
                    && is_elementwise(&self.roles[self.order[place].nodes[0]])
                    && is_elementwise_read(graph, &self.seen, node, input);
                users[place] = users[place].and(own, fits);
            }
        }
        // Users come after what they take. For each cluster the one that it is part of, and how many nodes that has.
        let mut roots: Vec<usize> = (0..self.order.len()).collect();
        let mut counts: Vec<usize> = self.order.iter().map(|cluster| cluster.nodes.len()).collect();
        for (place, user) in users.iter().enumerate().rev() {
            let User::Cluster(user) = *user else { continue };
            let root = roots[user];
            if counts[root] + counts[place] <= MOST {
                counts[root] += counts[place];
                roots[place] = root;
            }
        }
        if roots.iter().enumerate().all(|(place, root)| place == *root) {
            return;
        }
        for (place, &root) in roots.iter().enumerate() {
            if root != place {
                let nodes = std::mem::take(&mut self.order[place].nodes);
                self.order[root].nodes.extend(nodes);
            }
        }
        self.order.retain(|cluster| !cluster.nodes.is_empty());
        for (place, cluster) in self.order.iter_mut().enumerate() {
            cluster.nodes.sort_unstable();
            cluster.nodes.iter().for_each(|&node| self.place[node] = Some(place));
        }
    }
}

/// Who takes the values of a cluster.
#[derive(Clone, Copy, Debug)]
enum User {
    None,
    /// One cluster alone, element by element.
    Cluster(usize),
    /// Several clusters, a result, or a node that needs them in memory.
    Other,
}

impl User {
    /// With one more, which may take them element by element.
    fn and(self, place: usize, is_elementwise: bool) -> User {
        match self {
            User::None if is_elementwise => User::Cluster(place),
            User::Cluster(known) if is_elementwise && known == place => self,
            User::None | User::Cluster(_) | User::Other => User::Other,
        }
    }
}

/// What each node is by its op and operands alone.
fn roles(graph: &Graph) -> (Vec<Role>, Vec<Option<Box<Seen>>>) {
    let mut roles: Vec<Role> = Vec::with_capacity(graph.len());
    let mut seen: Vec<Option<Box<Seen>>> = Vec::with_capacity(graph.len());
    for node in graph.nodes() {
        let has_elements = node.outputs.first().is_some_and(|ty| ty.size() > 0);
        let through =
            node.inputs.first().filter(|_| has_elements && node.op.view().is_some()).and_then(|&operand| {
                let of = seen[operand.node as usize].as_deref().cloned();
                let of = of.unwrap_or_else(|| Seen::whole(graph, operand));
                of.through(node).filter(|seen| seen.is_fast(graph.ty(seen.base).dtype))
            });
        let role = match (&through, &node.op) {
            (Some(_), _) => Role::View,
            (None, Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_)) => Role::Given,
            (None, _) if !has_elements => Role::Step,
            (None, Op::Iota { .. }) => Role::Generated,
            (None, op) if elementwise(op).is_some() => Role::Elementwise,
            (None, _) => Role::Step,
        };
        seen.push(through.map(Box::new));
        roles.push(role);
    }
    (roles, seen)
}

/// Makes steps of the nodes that a step or a result needs in memory, and of numbers that are not read in order.
fn require_memory(region: &Region, roles: &mut [Role], seen: &[Option<Box<Seen>>]) {
    let graph = region.graph();
    let mut needed = vec![false; graph.len()];
    region.results().iter().for_each(|result| needed[result.node as usize] = true);
    for (position, node) in graph.nodes().iter().enumerate().rev() {
        match roles[position] {
            Role::View | Role::Generated if needed[position] => roles[position] = Role::Step,
            Role::Given | Role::View | Role::Generated | Role::Elementwise | Role::Step => {}
        }
        match roles[position] {
            Role::Step => node.inputs.iter().for_each(|input| needed[input.node as usize] = true),
            Role::Elementwise => {
                for &input in &node.inputs {
                    if !is_elementwise_read(graph, seen, node, input) {
                        let base = seen[input.node as usize].as_deref().map_or(input, |seen| seen.base);
                        needed[base.node as usize] = true;
                    }
                }
            }
            Role::Given | Role::View | Role::Generated => {}
        }
    }
}

/// What a value sees of another, where it has no memory of its own.
fn view_of<'s>(roles: &[Role], seen: &'s [Option<Box<Seen>>], value: Value) -> Option<&'s Seen> {
    let position = value.node as usize;
    match roles[position] {
        Role::View => seen[position].as_deref(),
        Role::Given | Role::Generated | Role::Elementwise | Role::Step => None,
    }
}

/// The node that has to run before a value is there, if one has to.
fn base_of(roles: &[Role], seen: &[Option<Box<Seen>>], value: Value) -> Option<usize> {
    let base = view_of(roles, seen, value).map_or(value, |seen| seen.base).node as usize;
    match roles[base] {
        Role::Elementwise | Role::Step => Some(base),
        Role::Given | Role::View | Role::Generated => None,
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

/// Clusters as they grow: each is a tree of clusters that were joined.
struct Forest {
    /// The cluster of each node that has one.
    cluster: Vec<Option<usize>>,
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
        Forest { cluster: vec![None; nodes], trees: Vec::new() }
    }

    fn add(&mut self, position: usize, level: usize, elements: Option<usize>) {
        self.cluster[position] = Some(self.trees.len());
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
        let cluster = self.cluster[node].expect("operands come before what takes them");
        self.root(cluster)
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
        seen: &[Option<Box<Seen>>],
        position: usize,
        is_apart: bool,
    ) {
        let node = &graph.nodes()[position];
        let elements = node.outputs[0].size();
        let mut level = 0;
        // The clusters of the highest level, and whether the node can be in all of them.
        let (mut highest, mut fits): (Vec<usize>, bool) = (Vec::new(), true);
        for &input in &node.inputs {
            let Some(base) = base_of(roles, seen, input) else { continue };
            let root = self.root_of(base);
            let tree = &self.trees[root];
            if highest.is_empty() || tree.level > level {
                (level, fits) = (tree.level, true);
                highest.clear();
            } else if tree.level < level {
                continue;
            }
            fits &= tree.elements == Some(elements) && is_elementwise_read(graph, seen, node, input);
            if !highest.contains(&root) {
                highest.push(root);
            }
        }
        let count: usize = highest.iter().map(|&root| self.trees[root].count).sum();
        if highest.is_empty() {
            return self.add(position, 0, Some(elements));
        }
        if !fits || is_apart || count >= MOST {
            return self.add(position, level + 1, Some(elements));
        }
        let first = highest[0];
        for &other in &highest[1..] {
            self.trees[other].parent = first;
        }
        self.trees[first].count = count + 1;
        self.cluster[position] = Some(first);
    }

    /// The clusters, each after those that it takes values from and otherwise as early as its last node says.
    fn order(
        mut self,
        graph: &Graph,
        roles: &[Role],
        seen: &[Option<Box<Seen>>],
    ) -> (Vec<Cluster>, Vec<Option<usize>>) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.trees.len()];
        let mut effects: Vec<usize> = Vec::new();
        for (position, node) in graph.nodes().iter().enumerate() {
            if self.cluster[position].is_some() {
                let root = self.root_of(position);
                members[root].push(position);
                if node.op.has_effect() {
                    effects.push(position);
                }
            }
        }
        let mut ends: Vec<usize> = (0..members.len()).filter(|&root| !members[root].is_empty()).collect();
        ends.sort_by_key(|&root| members[root].last().copied());
        let mut place: Vec<Option<usize>> = vec![None; graph.len()];
        let mut placed = vec![false; members.len()];
        let mut order: Vec<Cluster> = Vec::with_capacity(ends.len());
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
                    nodes.iter().for_each(|&node| place[node] = Some(order.len()));
                    order.push(Cluster { nodes });
                    continue;
                }
                stack.push((root, true));
                for &position in &members[root] {
                    let node = &graph.nodes()[position];
                    let effect = node.op.has_effect().then(|| {
                        let at = effects.partition_point(|&effect| effect < position);
                        at.checked_sub(1).map(|at| effects[at])
                    });
                    let needs = node.inputs.iter().filter_map(|&input| base_of(roles, seen, input));
                    for need in needs.chain(effect.flatten()) {
                        let other = self.root_of(need);
                        if other != root && !placed[other] {
                            stack.push((other, false));
                        }
                    }
                }
            }
        }
        (order, place)
    }
}

/// Whether a node reads an operand element by element as the operand computes them.
fn is_elementwise_read(graph: &Graph, seen: &[Option<Box<Seen>>], node: &Node, input: Value) -> bool {
    let is_whole = match &seen[input.node as usize] {
        Some(seen) => seen.is_whole(graph),
        None => graph.node(input).outputs.len() == 1,
    };
    is_whole && random(&node.op).is_none() && graph.ty(input).size() == node.outputs[0].size()
}
