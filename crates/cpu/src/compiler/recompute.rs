//! Values that are computed again where they are read, instead of kept in memory.
//!
//! Reverse mode reads in its second half what element-wise ops computed in the first. Such values take memory, and time to
//! write and to read. Where what they were computed from is in memory anyway, it takes less time to repeat the ops in the
//! nest that reads the values (Chen, Xu, Zhang and Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016, section 3:
//! low-cost operations are dropped). The repeated ops are the same, and so are the bits.

use std::sync::Arc;

use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{Result, memory};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fuse::{Reduction, instructions};
use super::fusion_groups::{FusionGroups, MAX_GROUP_OPS, Role, random};

/// The most cheap instructions for an element, by the bytes of an element that is not kept. A processor of 12 GB/s writes and
/// reads a byte in 0.16 ns; 16 lanes on two cores do 8 instructions in 0.1 ns.
const INSTRUCTIONS_PER_BYTE: usize = 8;

/// Values of at most this part of the bytes that are saved are kept: what rows have.
const SMALL_PART: usize = 16;

/// The least bytes of a value that is worth it: smaller ones stay in a cache.
const MIN_BYTES: usize = 1 << 20;

/// The same, where no test says something else.
fn min_bytes() -> usize {
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    if super::nest::test_hooks::writes_in_place() {
        return 1;
    }
    MIN_BYTES
}

/// A region in which what is cheap is computed again, and its fusion groups.
///
/// # Errors
/// Memory.
pub(super) fn recompute(region: Arc<Region>) -> Result<(Arc<Region>, FusionGroups)> {
    let fusion = FusionGroups::new(&region);
    let is_large = |node: &Node| node.outputs.first().is_some_and(|ty| ty.byte_size() >= min_bytes());
    let mut nodes = region.graph().nodes().iter().zip(&fusion.roles);
    if !nodes.any(|(node, role)| matches!(role, Role::Elementwise) && is_large(node)) {
        return Ok((region, fusion));
    }
    memory::ahead("compile", region.graph().len())?;
    let again = Search::new(&region, &fusion).again();
    if again.is_empty() {
        return Ok((region, fusion));
    }
    let (region, starts_group) = Rewriter::new(&region, &fusion, &again).region();
    let fusion = FusionGroups::with_starts(&region, starts_group);
    Ok((Arc::new(region), fusion))
}

/// For fusion groups, the nodes whose values they compute again.
type Again = FxHashMap<usize, FxHashSet<usize>>;

/// Looks for values that are better computed again.
struct Search<'a> {
    graph: &'a Graph,
    fusion: &'a FusionGroups,
    /// For each node, how many steps that no nest contains come before it, one after another.
    depth: Vec<usize>,
    /// The greatest depth of what reads each node.
    last_use: Vec<usize>,
    /// The element-wise nodes that are in memory, whoever reads them.
    is_kept: Vec<bool>,
    /// For each fusion group the large values of earlier ones that it reads, and that nothing needs in memory.
    reads: FxHashMap<usize, Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(region: &'a Region, fusion: &'a FusionGroups) -> Search<'a> {
        let graph = region.graph();
        let nodes = graph.nodes();
        let base = |input: &Value| fusion.base(*input).node as usize;
        let mut search = Search {
            graph,
            fusion,
            depth: Vec::with_capacity(nodes.len()),
            last_use: vec![0; nodes.len()],
            is_kept: vec![false; nodes.len()],
            reads: FxHashMap::default(),
        };
        region.results().iter().for_each(|result| search.is_kept[base(result)] = true);
        for (position, node) in nodes.iter().enumerate() {
            let before = node.inputs.iter().map(|input| search.depth[base(input)]).max().unwrap_or(0);
            let is_heavy =
                matches!(fusion.roles[position], Role::Step) && Reduction::with_domain(graph, node).is_none();
            search.depth.push(before + usize::from(is_heavy));
            let is_elementwise = matches!(fusion.roles[position], Role::Elementwise);
            for input in &node.inputs {
                let read = base(input);
                search.last_use[read] = search.last_use[read].max(before);
                let in_registers = is_elementwise && fusion.reads_element_by_element(graph, node, *input);
                search.is_kept[read] |= !matches!(fusion.roles[position], Role::View) && !in_registers;
            }
        }
        search.find_reads();
        search
    }

    /// Fills in `reads`.
    fn find_reads(&mut self) {
        for (position, node) in self.graph.nodes().iter().enumerate() {
            let Some(group) = self.fusion.group_of[position] else { continue };
            if !matches!(self.fusion.roles[position], Role::Elementwise) {
                continue;
            }
            for &input in &node.inputs {
                let read = self.fusion.base(input).node as usize;
                let is_far = self.fusion.group_of[read].is_some_and(|other| other != group)
                    && self.depth[read] < self.depth[position];
                if is_far && self.is_repeatable(read) && self.bytes(read) >= min_bytes() {
                    let known = self.reads.entry(group).or_default();
                    if !known.contains(&read) {
                        known.push(read);
                    }
                }
            }
        }
    }

    /// Whether a node is in no memory unless a later step reads it, and can be computed anywhere.
    fn is_repeatable(&self, position: usize) -> bool {
        matches!(self.fusion.roles[position], Role::Elementwise)
            && !self.is_kept[position]
            && random(&self.graph.nodes()[position].op).is_none()
    }

    fn bytes(&self, position: usize) -> usize {
        self.graph.nodes()[position].outputs[0].byte_size()
    }

    /// What each fusion group computes again. A value is in memory unless all that read it later compute it, so that one
    /// that does not decides for the others.
    fn again(mut self) -> Again {
        loop {
            let mut again = Again::default();
            let mut refused: Vec<usize> = Vec::new();
            for (&group, read) in &self.reads {
                match self.nodes_for(group, read) {
                    Some(nodes) => drop(again.insert(group, nodes)),
                    None => refused.extend(read),
                }
            }
            if refused.is_empty() {
                return again;
            }
            refused.iter().for_each(|&node| self.is_kept[node] = true);
            for read in self.reads.values_mut() {
                read.retain(|node| !self.is_kept[*node]);
            }
            self.reads.retain(|_, read| !read.is_empty());
        }
    }

    /// The nodes that a fusion group computes for the values that it reads, if that saves memory and takes little time.
    fn nodes_for(&self, group: usize, read: &[usize]) -> Option<FxHashSet<usize>> {
        let nodes = self.graph.nodes();
        let saved: usize = read.iter().map(|&node| self.bytes(node)).sum();
        let element = |node: usize| nodes[node].outputs[0].dtype.bits().div_ceil(8);
        let allowed = read.iter().map(|&node| element(node)).sum::<usize>() * INSTRUCTIONS_PER_BYTE;
        let depth = self.fusion.order[group].nodes.iter().map(|&node| self.depth[node]).max().unwrap_or(0);
        let (mut found, mut sources) = (FxHashSet::default(), FxHashSet::default());
        let (mut cost, mut held) = (0, 0);
        let mut stack = read.to_vec();
        while let Some(node) = stack.pop() {
            if !found.insert(node) {
                continue;
            }
            cost += instructions(self.graph, node);
            if cost > allowed || found.len() + self.fusion.order[group].nodes.len() > MAX_GROUP_OPS {
                return None;
            }
            for &input in &nodes[node].inputs {
                let source = self.fusion.base(input).node as usize;
                if self.is_repeatable(source) {
                    stack.push(source);
                } else if sources.insert(source) && self.is_held_longer(source, depth, saved) {
                    held += self.graph.ty(self.fusion.base(input)).byte_size();
                }
            }
        }
        (held < saved).then_some(found)
    }

    /// Whether the memory of a value could be free at a depth if nothing were computed again, and is not small.
    fn is_held_longer(&self, node: usize, depth: usize, saved: usize) -> bool {
        let bytes: usize = self.graph.nodes()[node].outputs.iter().map(|ty| ty.byte_size()).sum();
        if let Op::Constant(_) | Op::Literal(_) = &self.graph.nodes()[node].op {
            return false;
        }
        let is_in_memory = !matches!(self.fusion.roles[node], Role::Generated);
        is_in_memory && self.last_use[node] < depth && bytes > saved / SMALL_PART
    }
}

/// A node of the new region: one of the old, on other values.
struct NewNode {
    old: usize,
    inputs: Values,
    starts_group: bool,
}

/// Writes a region in which fusion groups compute values again.
struct Rewriter<'a> {
    region: &'a Region,
    fusion: &'a FusionGroups,
    again: &'a Again,
    nodes: Vec<NewNode>,
    /// Where the old nodes are.
    place: Vec<u32>,
    /// Where what fusion groups compute again is.
    copies: FxHashMap<(usize, usize), u32>,
}

impl<'a> Rewriter<'a> {
    fn new(region: &'a Region, fusion: &'a FusionGroups, again: &'a Again) -> Rewriter<'a> {
        let count = region.graph().len();
        let (nodes, place) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Rewriter { region, fusion, again, nodes, place, copies: FxHashMap::default() }
    }

    /// The region, and for each node whether it begins a fusion group.
    fn region(mut self) -> (Region, Vec<bool>) {
        let region = self.region;
        let old = region.graph().nodes();
        for (position, node) in old.iter().enumerate() {
            let group = self.fusion.group_of[position];
            let again = group.and_then(|group| Some((group, self.again.get(&group)?)));
            let inputs = node.inputs.iter().map(|&input| match again {
                Some((group, again)) => self.copied(group, again, input),
                None => self.placed(input),
            });
            let inputs = inputs.collect();
            self.place.push(self.nodes.len() as u32);
            self.nodes.push(NewNode { old: position, inputs, starts_group: false });
        }
        let results: Values = region.results().iter().map(|&result| self.placed(result)).collect();
        let mut is_live = vec![false; self.nodes.len()];
        results.iter().for_each(|result| is_live[result.node as usize] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let op = &old[node.old].op;
            if let Op::Parameter { .. } = op {
                is_live[at] = true;
            }
            if is_live[at] || op.has_effect() {
                is_live[at] = true;
                node.inputs.iter().for_each(|input| is_live[input.node as usize] = true);
            }
        }
        let (mut graph, mut starts_group) = (Graph::new(), Vec::new());
        let mut place: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let moved = |place: &[u32], value: Value| Value { node: place[value.node as usize], ..value };
        for (node, is_live) in self.nodes.iter().zip(is_live) {
            place.push(graph.len() as u32);
            if is_live {
                let from = &old[node.old];
                let inputs = node.inputs.iter().map(|&input| moved(&place, input)).collect();
                graph.set_location(from.location.clone());
                graph.push_reserved(from.op.clone(), inputs, from.outputs.clone());
                starts_group.push(node.starts_group);
            }
        }
        let results = results.iter().map(|&result| moved(&place, result)).collect();
        (Region::new(graph, region.inputs().to_vec(), region.parameter_count(), results), starts_group)
    }

    fn placed(&self, value: Value) -> Value {
        Value { node: self.place[value.node as usize], ..value }
    }

    /// A value for a fusion group, computed again where it is to be.
    fn copied(&mut self, group: usize, again: &FxHashSet<usize>, value: Value) -> Value {
        // This calls itself at most once for each op of a fusion group, one inside another.
        if !again.contains(&(self.fusion.base(value).node as usize)) {
            return self.placed(value);
        }
        let position = value.node as usize;
        if let Some(&node) = self.copies.get(&(group, position)) {
            return Value { node, ..value };
        }
        let is_own = |fusion: &FusionGroups, value: Value| {
            let base = fusion.base(value).node as usize;
            again.contains(&base) || !matches!(fusion.roles[base], Role::Elementwise)
        };
        let from = &self.region.graph().nodes()[position];
        // What reads element-wise values from memory would be fused with the nest that writes them.
        let starts_group = matches!(self.fusion.roles[position], Role::Elementwise)
            && !from.inputs.iter().all(|&input| is_own(self.fusion, input));
        let inputs = from.inputs.iter().map(|&input| self.copied(group, again, input)).collect();
        let node = self.nodes.len() as u32;
        self.nodes.push(NewNode { old: position, inputs, starts_group });
        self.copies.insert((group, position), node);
        Value { node, ..value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the ops of a region after values are computed again, and the number of fusion groups.
    fn rewritten(text: &str) -> (Vec<String>, usize) {
        let region = Arc::new(Region::from_text(text).unwrap());
        let (region, fusion) = recompute(region).unwrap();
        defn_core::verify::verify(&region).unwrap();
        let ops = region.graph().nodes().iter().map(|node| defn_core::form::name(&node.op).to_owned());
        (ops.collect(), fusion.order.len())
    }

    fn count(ops: &[String], name: &str) -> usize {
        ops.iter().filter(|op| *op == name).count()
    }

    /// A layer and its derivative: the activation is read by a product, its parts by what comes after another product.
    fn layer(size: usize, reads: &str) -> String {
        format!(
            "defn-ir 1
            (f32[{size}][{size}], f32[{size}][{size}]) {{
                %0 = parameter {{index: 0}} : f32[{size}][{size}]
                %1 = parameter {{index: 1}} : f32[{size}][{size}]
                %2 = dot %0 %1 {{contract_a: [1], batch_a: [], contract_b: [0], batch_b: []}} : f32[{size}][{size}]
                %3 = negate %2 : f32[{size}][{size}]
                %4 = exp %3 : f32[{size}][{size}]
                %5 = multiply %2 %4 : f32[{size}][{size}]
                %6 = dot %5 %1 {{contract_a: [1], batch_a: [], contract_b: [0], batch_b: []}} : f32[{size}][{size}]
                %7 = multiply %6 %4 : f32[{size}][{size}]
                %8 = {reads} : f32[{size}][{size}]
                return %8
            }}"
        )
    }

    #[test]
    fn what_is_cheap_is_computed_where_it_is_read() {
        let (ops, groups) = rewritten(&layer(1024, "multiply %7 %2"));
        // The first product is read there anyway.
        assert_eq!((count(&ops, "exp"), count(&ops, "negate")), (2, 2));
        // Two products, the activation, and what reads both: the copies are in its nest.
        assert_eq!(groups, 4);
    }

    #[test]
    fn small_values_are_kept() {
        let (ops, _) = rewritten(&layer(64, "multiply %7 %2"));
        assert_eq!(count(&ops, "exp"), 1);
    }

    #[test]
    fn what_would_keep_as_much_memory_is_kept() {
        let (ops, _) = rewritten(&layer(1024, "negate %7"));
        assert_eq!(count(&ops, "exp"), 1);
    }

    #[test]
    fn what_a_step_reads_is_kept() {
        let text = layer(1024, "add %7 %2").replace("return %8", "return %8 %4");
        assert_eq!(count(&rewritten(&text).0, "exp"), 1);
    }

    #[test]
    fn a_copy_that_reads_element_wise_values_is_in_the_nest_of_its_reader() {
        // The last factor is computed from the activation, which is in memory for the second product.
        let text = "defn-ir 1
            (f32[1024][1024], f32[1024][1024]) {
                %0 = parameter {index: 0} : f32[1024][1024]
                %1 = parameter {index: 1} : f32[1024][1024]
                %2 = dot %0 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[1024][1024]
                %3 = exp %2 : f32[1024][1024]
                %4 = multiply %3 %3 : f32[1024][1024]
                %5 = dot %3 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[1024][1024]
                %6 = multiply %5 %4 : f32[1024][1024]
                %7 = multiply %6 %3 : f32[1024][1024]
                return %7
            }";
        let region = Arc::new(Region::from_text(text).unwrap());
        let (region, fusion) = recompute(region).unwrap();
        let groups: Vec<usize> = fusion.order.iter().map(|group| group.nodes.len()).collect();
        // The square is computed with what reads it alone.
        assert_eq!((region.graph().len(), groups), (8, vec![1, 1, 1, 3]));
    }
}
