//! Builds the regions of stages from the assignment of nodes.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::cut::StageAssignment;
use super::role::{Role, role};
use super::{Source, Stage, Whole};
use crate::graph::{Graph, Value, Values};
use crate::op::Op;
use crate::pass;
use crate::region::Region;

/// The inputs, nodes and outputs of one stage, as values of the whole graph.
#[derive(Default)]
struct StageContents {
    sources: BTreeSet<Source>,
    /// The stage's nodes: its own, and copies of constants.
    nodes: BTreeSet<usize>,
    outputs: Vec<Value>,
}

/// Builds the stages of a region.
pub(super) fn build(region: &Region, assignment: StageAssignment) -> Vec<Stage> {
    let mut parts: Vec<StageContents> = Vec::new();
    parts.resize_with(assignment.targets.len(), StageContents::default);
    let source_of = outputs(region, &assignment, &mut parts);
    let graph = region.graph();
    let last = parts.len() - 1;
    let take = |part: &mut StageContents, stage: usize, value: Value| {
        let node = graph.node(value);
        if let Op::Parameter { index, ty: _ } = &node.op {
            part.sources.insert(Source::input(*index, region.parameter_count()));
        } else if role(&node.op) == Role::CopiedConstant {
            part.nodes.insert(value.node as usize);
        } else if assignment.stage_of[value.node as usize] != Some(stage) {
            part.sources.insert(source_of[&value]);
        }
    };
    for (position, stage) in assignment.stage_of.iter().enumerate() {
        let Some(stage) = *stage else { continue };
        parts[stage].nodes.insert(position);
        for &input in &graph.nodes()[position].inputs {
            take(&mut parts[stage], stage, input);
        }
    }
    for &result in region.results() {
        take(&mut parts[last], last, result);
    }
    parts[last].outputs = region.results().to_vec();

    let mut hasher = FxHasher::default();
    (region.structural_hash(), &assignment.stage_of).hash(&mut hasher);
    let whole = Arc::new(Whole {
        split: hasher.finish(),
        inputs: region.inputs().to_vec(),
        parameters: region.parameter_count(),
        stages: parts.len(),
    });
    let mut value_of: FxHashMap<Source, Value> =
        source_of.into_iter().map(|(value, source)| (source, value)).collect();
    for (position, node) in graph.nodes().iter().enumerate() {
        if let Op::Parameter { index, ty: _ } = &node.op {
            value_of
                .entry(Source::input(*index, region.parameter_count()))
                .or_insert(Value { node: position as u32, output: 0 });
        }
    }
    let stages = parts.into_iter().enumerate().map(|(position, part)| {
        let built = stage_region(region, &part, &value_of);
        pass::check("split", &built);
        let sources = part.sources.into_iter().collect();
        Stage { position, region: Arc::new(built), sources, whole: whole.clone() }
    });
    stages.collect()
}

/// Finds the values that a stage other than their own uses, and the results of the whole graph from stages
/// before the last. These are outputs: first those for which a cut was made, then the others in order.
fn outputs(
    region: &Region,
    assignment: &StageAssignment,
    parts: &mut [StageContents],
) -> FxHashMap<Value, Source> {
    let graph = region.graph();
    let mut crossing: BTreeSet<Value> = BTreeSet::new();
    let mut used = |value: Value, by: usize| {
        let producer = assignment.stage_of[value.node as usize];
        if producer.is_some_and(|producer| producer != by) {
            crossing.insert(value);
        }
    };
    for (node, stage) in graph.nodes().iter().zip(&assignment.stage_of) {
        if let Some(stage) = *stage {
            node.inputs.iter().for_each(|&input| used(input, stage));
        }
    }
    for &result in region.results() {
        used(result, parts.len() - 1);
    }
    let mut source_of: FxHashMap<Value, Source> = FxHashMap::default();
    let targets = assignment.targets.iter().flatten().copied().filter(|value| crossing.contains(value));
    let in_order: Vec<Value> = targets.chain(crossing.iter().copied()).collect();
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    for value in in_order {
        if seen.insert(value) {
            let stage = assignment.stage_of[value.node as usize].expect("what crosses is made in a stage");
            source_of.insert(value, Source::Output { stage, output: parts[stage].outputs.len() });
            parts[stage].outputs.push(value);
        }
    }
    source_of
}

/// The region of one stage. `value_of` maps each source to its value in the whole graph.
fn stage_region(region: &Region, part: &StageContents, value_of: &FxHashMap<Source, Value>) -> Region {
    let old = region.graph();
    let mut graph = Graph::new();
    let mut inputs = Vec::with_capacity(part.sources.len());
    // The new value of each value of the whole. An argument may have several nodes there; the first one is
    // used.
    let mut new_values: FxHashMap<Value, Value> = FxHashMap::default();
    for (index, source) in part.sources.iter().enumerate() {
        let value = value_of[source];
        graph.set_location(old.node(value).location.clone());
        inputs.push(old.ty(value).clone());
        new_values.insert(value, graph.parameter(index, old.ty(value).clone()));
    }
    let mapped = |new_values: &FxHashMap<Value, Value>, value: Value| {
        if let Op::Parameter { index, ty: _ } = &old.node(value).op {
            new_values[&value_of[&Source::input(*index, region.parameter_count())]]
        } else {
            new_values[&value]
        }
    };
    for &position in &part.nodes {
        let node = &old.nodes()[position];
        let operands: Values = node.inputs.iter().map(|&input| mapped(&new_values, input)).collect();
        graph.set_location(node.location.clone());
        let new_outputs = graph.push_reserved(node.op.clone(), operands, node.outputs.clone());
        new_values.extend(old.outputs(position).into_iter().zip(new_outputs));
    }
    graph.set_location(None);
    let results: Values = part.outputs.iter().map(|&value| mapped(&new_values, value)).collect();
    let parameters = part.sources.iter().filter(|source| source.capture().is_none()).count();
    Region::new(graph, inputs, parameters, results)
}
