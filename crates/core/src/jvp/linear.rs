//! Forward mode in two parts: one computes the values once, the other the tangents, for any number of directions.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::grad::region::Draft;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{Op, OpClass, Primitive};
use crate::region::Region;

/// The parts of a region that computes values and tangents.
pub(super) struct Parts {
    /// From the arguments to the values, then the residuals: values that the second part needs.
    pub values: Region,
    /// From the arguments, the residuals and the tangents of arguments to the tangents of results.
    pub tangents: Region,
}

/// Splits a region whose inputs are `arguments` and tangents, and whose results are `values` and tangents.
///
/// What is computed from arguments alone belongs to the first part. Of its values, the second part repeats those that take
/// no time, such as constants and broadcasts, and is given the others.
pub(super) fn split(region: &Region, arguments: usize, values: usize) -> Result<Parts> {
    let nodes = region.graph().nodes();
    let mut depends: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let is_tangent = if let Op::Parameter { index, .. } = node.op { index >= arguments } else { false };
        depends.push(is_tangent || node.inputs.iter().any(|input| depends[input.node as usize]));
    }
    let (of_values, of_tangents) = region.results().split_at(values);

    // The values that cross from one part to the other.
    let mut repeated = vec![false; nodes.len()];
    let mut residuals: FxHashSet<Value> = FxHashSet::default();
    let users = nodes.iter().zip(&depends).filter(|(_, depends)| **depends);
    let mut open: Vec<Value> = users.flat_map(|(node, _)| node.inputs.iter().copied()).collect();
    open.extend(of_tangents);
    while let Some(value) = open.pop() {
        let position = value.node as usize;
        let node = &nodes[position];
        if depends[position] || repeated[position] || residuals.contains(&value) {
            continue;
        }
        if takes_no_time(node) {
            repeated[position] = true;
            open.extend(&node.inputs);
        } else {
            residuals.insert(value);
        }
    }
    let mut residuals: Vec<Value> = residuals.into_iter().collect();
    residuals.sort_by_key(|value| (value.node, value.output));

    let types = region.inputs();
    let mut draft = Draft::new();
    let given: Vec<Value> = types[..arguments].iter().map(|ty| draft.input(ty.clone())).collect();
    let mut copied = FxHashMap::default();
    copy(&mut draft.graph, nodes, &given, &mut copied, |position| !depends[position])?;
    let results: Values = of_values.iter().chain(&residuals).map(|value| copied[value]).collect();
    let first = draft.close(arguments, &results)?;

    let mut draft = Draft::new();
    let mut given: Vec<Value> = types[..arguments].iter().map(|ty| draft.input(ty.clone())).collect();
    let mut copied = FxHashMap::default();
    for &value in &residuals {
        copied.insert(value, draft.input(region.graph().ty(value).clone()));
    }
    given.extend(types[arguments..].iter().map(|ty| draft.input(ty.clone())));
    copy(&mut draft.graph, nodes, &given, &mut copied, |position| depends[position] || repeated[position])?;
    let results: Values = of_tangents.iter().map(|value| copied[value]).collect();
    let second = draft.close(types.len() + residuals.len(), &results)?;
    Ok(Parts { values: first, tangents: second })
}

/// Whether a node is repeated rather than kept: inputs, constants, and values that others are read through.
fn takes_no_time(node: &Node) -> bool {
    match node.op.class() {
        OpClass::Parameter { .. } | OpClass::Constant(_) | OpClass::Literal(_) | OpClass::Identity(_) => true,
        OpClass::Primitive(primitive) => match primitive {
            Primitive::Creation | Primitive::View | Primitive::Broadcast => true,
            Primitive::ElementWise(_)
            | Primitive::Movement
            | Primitive::Selection
            | Primitive::Update
            | Primitive::Reduction
            | Primitive::Order
            | Primitive::Positions
            | Primitive::Window
            | Primitive::Contraction
            | Primitive::Transform
            | Primitive::Solve => false,
        },
        OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::Cond(_)
        | OpClass::While(_)
        | OpClass::CustomGrad(_)
        | OpClass::Implicit(_)
        | OpClass::Barrier
        | OpClass::Hook(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_)
        | OpClass::UserBlock(_) => false,
    }
}

/// Adds the chosen nodes to a graph. Parameters become the given values.
fn copy(
    graph: &mut Graph,
    nodes: &[Node],
    given: &[Value],
    copied: &mut FxHashMap<Value, Value>,
    is_chosen: impl Fn(usize) -> bool,
) -> Result<()> {
    for (position, node) in nodes.iter().enumerate().filter(|(position, _)| is_chosen(*position)) {
        let outputs = if let Op::Parameter { index, .. } = &node.op {
            Values::from_elem(given[*index], 1)
        } else {
            graph.set_location(node.location.clone());
            let inputs: Values = node.inputs.iter().map(|input| copied[input]).collect();
            graph.push_typed(node.op.clone(), inputs, node.outputs.clone())?
        };
        for (output, value) in outputs.into_iter().enumerate() {
            copied.insert(Value { node: position as u32, output: output as u32 }, value);
        }
    }
    graph.set_location(None);
    Ok(())
}
