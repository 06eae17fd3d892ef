//! Region drafts, and common node patterns of the gradient rules.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::loops::{self, LoopPlan};
use super::{ReversePass, reach};
use crate::builder::{BuildElementwise, Builder, LoopOptions};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{CondOp, Op, Padding, ReduceOp, Starts, WhileOp};
use crate::pass;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{Axis, AxisList, Shape, Sizes, TensorType};

/// A region whose inputs are declared one by one.
pub(crate) struct Draft {
    pub graph: Graph,
    inputs: Vec<TensorType>,
}

impl Draft {
    /// A region without inputs.
    pub fn new() -> Draft {
        Draft { graph: Graph::new(), inputs: Vec::new() }
    }

    /// The next input.
    pub fn input(&mut self, ty: TensorType) -> Value {
        self.inputs.push(ty.clone());
        self.graph.parameter(self.inputs.len() - 1, ty)
    }

    /// The region, without nodes that neither a result nor an effect needs.
    pub fn close(self, parameters: usize, results: &[Value]) -> Result<Region> {
        pass::dce_owned(Region::new(self.graph, self.inputs, parameters, results.into()))
    }
}

/// A region with some of a region's results and the inputs at `retained`, which must include all that these
/// results and the effects need.
fn with_inputs(region: &Region, retained: &[usize], results: &[Value]) -> Result<Region> {
    let nodes = region.graph().nodes();
    let live = pass::live_nodes(nodes, results);
    let mut graph = Graph::new();
    graph.reserve("grad", nodes.len())?;
    let mut values: Vec<Values> = Vec::with_capacity(nodes.len());
    for (node, live) in nodes.iter().zip(live) {
        if !live {
            values.push(Values::new());
            continue;
        }
        graph.set_location(node.location.clone());
        let mut op = node.op.clone();
        if let Op::Parameter { index, .. } = &mut op {
            *index = retained.iter().position(|input| input == index).expect("a needed input is kept");
        }
        let inputs: Values = node.inputs.iter().map(|&input| mapped(&values, input)).collect();
        values.push(graph.push_typed(op, inputs, node.outputs.clone())?);
    }
    graph.set_location(None);
    let types = retained.iter().map(|&input| region.inputs()[input].clone()).collect();
    let parameters = retained.iter().filter(|&&input| input < region.parameter_count()).count();
    let results = results.iter().map(|&result| mapped(&values, result)).collect();
    Ok(Region::new(graph, types, parameters, results))
}

fn mapped(values: &[Values], value: Value) -> Value {
    values[value.node as usize][value.output as usize]
}

/// The inputs that a region's nodes use.
pub(crate) fn used_inputs(region: &Region) -> Vec<bool> {
    let mut used = vec![false; region.inputs().len()];
    for node in region.graph().nodes() {
        if let Op::Parameter { index, .. } = node.op {
            used[index] = true;
        }
    }
    used
}

/// A region with some of its results only.
pub(super) fn with_results(region: &Region, results: &[usize]) -> Result<Region> {
    let inputs: Vec<usize> = (0..region.inputs().len()).collect();
    let results: Values = results.iter().map(|&result| region.results()[result]).collect();
    with_inputs(region, &inputs, &results)
}

/// Whether a replayed region calls its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookCalls {
    /// It calls them.
    Keep,
    /// It does not: the region is rerun only for a gradient. A region's nodes, copied into another graph.
    Drop,
}

/// A region's nodes in another graph.
pub(super) struct Replayed {
    pub results: Values,
    /// The values that its loops keep for their reverse, by node.
    pub loops: FxHashMap<u32, loops::SavedLoop>,
}

/// Adds the nodes of a region to a graph.
pub(crate) fn inline(graph: &mut Graph, region: &Region, arguments: &[Value]) -> Result<Values> {
    Ok(replay(graph, region, arguments, HookCalls::Keep, None)?.results)
}

/// Adds the nodes of a region to a graph. Where gradients are `needed` of some inputs through some results,
/// the loops between them are added in the form that keeps values for the reverse.
pub(super) fn replay(
    graph: &mut Graph,
    region: &Region,
    arguments: &[Value],
    hooks: HookCalls,
    needed: Option<(&[bool], &[bool])>,
) -> Result<Replayed> {
    let source = region.graph();
    // The analysis is only needed for loops, and these have regions.
    let may_loop = source.nodes().iter().any(|node| !node.op.regions().is_empty());
    let needed = needed.filter(|_| may_loop).map(|(inputs, results)| {
        let is_needed = |op: &Op| if let Op::Parameter { index, .. } = op { inputs[*index] } else { false };
        let nodes = (0..source.len()).filter(|&node| is_needed(&source.nodes()[node].op));
        let wrt: Vec<Value> = nodes.map(|node| Value { node: node as u32, output: 0 }).collect();
        let ends = region.results().iter().zip(results).filter(|(_, useful)| **useful);
        let ends: Vec<Value> = ends.map(|(&value, _)| value).collect();
        (reach::varied(source, &wrt), reach::useful(source, &ends))
    });
    let mut loops = FxHashMap::default();
    let mut values: Vec<Values> = Vec::with_capacity(source.len());
    let before = graph.set_location(None);
    for (position, node) in source.nodes().iter().enumerate() {
        let inputs: Values = node.inputs.iter().map(|&input| mapped(&values, input)).collect();
        graph.set_location(node.location.clone().or_else(|| before.clone()));
        if let Op::Parameter { index, .. } = &node.op {
            values.push(SmallVec::from_elem(arguments[*index], 1));
            continue;
        }
        if let (Op::Hook(_), HookCalls::Drop) = (&node.op, hooks) {
            values.push(inputs);
            continue;
        }
        let op = if hooks == HookCalls::Drop { without_hooks(&node.op)? } else { node.op.clone() };
        let plan = if let (Op::While(op), Some((varied, useful))) = (&op, &needed) {
            let flag = |value: &Value| varied[value.node as usize][value.output as usize];
            let from: Vec<bool> = node.inputs.iter().map(flag).collect();
            let types: Vec<&TensorType> = node.inputs.iter().map(|&v| source.ty(v)).collect();
            LoopPlan::new(op, &types, &from, &useful[position])?
        } else {
            None
        };
        let outputs = if let Some(plan) = plan {
            let operands: Values =
                inputs.iter().map(|&input| nameless(graph, input)).collect::<Result<_>>()?;
            let (outputs, saved) = loops::forward(graph, plan, operands)?;
            loops.insert(saved.node(), saved);
            let shapes = node.outputs.iter().map(|ty| ty.shape.clone());
            let named = outputs.into_iter().zip(shapes);
            named
                .map(|(value, shape)| graph.emit_one(Op::Reshape { shape }, &[value]))
                .collect::<Result<_>>()?
        } else {
            graph.emit(op, &inputs)?.into_iter().collect()
        };
        values.push(outputs);
    }
    graph.set_location(before);
    let results = region.results().iter().map(|&result| mapped(&values, result)).collect();
    Ok(Replayed { results, loops })
}

/// A region that calls no hooks.
pub(crate) fn without_hook_calls(region: &Region) -> Result<Region> {
    let mut draft = Draft::new();
    let arguments: Vec<Value> = region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
    let replayed = replay(&mut draft.graph, region, &arguments, HookCalls::Drop, None)?;
    draft.close(region.parameter_count(), &replayed.results)
}

/// An op with regions that call no hooks.
pub(crate) fn without_hooks(op: &Op) -> Result<Op> {
    if !op.has_effect() {
        return Ok(op.clone());
    }
    op.map_regions(|region| without_hook_calls(region).map(Arc::new))
}

/// The gradient of a region as a region.
pub(crate) struct Pullback {
    /// From the region's inputs, the requested cotangents and the seeds, to the gradients that flow.
    pub region: Region,
    /// For each variable, whether its gradient is among the results.
    pub flows: Vec<bool>,
}

impl Pullback {
    /// Differentiates a region with respect to the inputs `wrt`. `cotangents` has an entry for each result.
    /// `seeds` has one for each variable: the type of a cotangent that it already has from elsewhere.
    pub fn new(
        region: &Region,
        wrt: &[usize],
        cotangents: &[Option<TensorType>],
        seeds: &[Option<TensorType>],
    ) -> Result<Pullback> {
        Pullback::keeping(region, wrt, cotangents, seeds, 0)
    }

    /// As [`Pullback::new`], without computing the last `kept` results again: they are further inputs, behind the seeds.
    pub fn keeping(
        region: &Region,
        wrt: &[usize],
        cotangents: &[Option<TensorType>],
        seeds: &[Option<TensorType>],
        kept: usize,
    ) -> Result<Pullback> {
        let mut draft = Draft::new();
        let arguments: Vec<Value> = region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
        let g: Vec<_> = cotangents.iter().map(|ty| ty.clone().map(|ty| draft.input(ty))).collect();
        let seeds: Vec<_> = seeds.iter().map(|ty| ty.clone().map(|ty| draft.input(ty))).collect();
        let first = region.results().len() - kept;
        let given: Vec<Value> = region.result_types().skip(first).map(|ty| draft.input(ty.clone())).collect();
        let needed: Vec<bool> = (0..arguments.len()).map(|input| wrt.contains(&input)).collect();
        let useful: Vec<bool> = g.iter().map(Option::is_some).collect();
        let graph = &mut draft.graph;
        let forward = replay(graph, region, &arguments, HookCalls::Drop, Some((&needed, &useful)))?;
        let variables: Vec<Value> = wrt.iter().map(|&input| arguments[input]).collect();
        let mut pass = ReversePass::new(graph, &variables, forward.loops);
        // Seeds come first, so that other cotangents are added to them in place.
        let pairs = variables.iter().zip(&seeds).chain(forward.results.iter().zip(&g));
        for (&value, cotangent) in pairs {
            if let Some(cotangent) = *cotangent {
                pass.add(value, cotangent)?;
            }
        }
        pass.run()?;
        let gradients: Vec<Option<Value>> = variables.iter().map(|&value| pass.take(value)).collect();
        let mut results: Values = gradients.iter().copied().flatten().collect();
        if kept > 0 {
            let pairs = forward.results[first..].iter().copied().zip(given);
            (draft.graph, results) = replaced(&draft.graph, &results, &pairs.collect())?;
        }
        let count = draft.inputs.len();
        let flows = gradients.iter().map(Option::is_some).collect();
        Ok(Pullback { region: draft.close(count, &results)?, flows })
    }
}

/// A graph in which nodes read other values than some, which come before those.
fn replaced(graph: &Graph, results: &[Value], others: &FxHashMap<Value, Value>) -> Result<(Graph, Values)> {
    let mut copy = Graph::new();
    copy.reserve("grad", graph.len())?;
    let mut values: Vec<Values> = Vec::with_capacity(graph.len());
    let read = |values: &[Values], value: Value| mapped(values, others.get(&value).copied().unwrap_or(value));
    for node in graph.nodes() {
        copy.set_location(node.location.clone());
        let inputs: Values = node.inputs.iter().map(|&input| read(&values, input)).collect();
        values.push(copy.push_typed(node.op.clone(), inputs, node.outputs.clone())?);
    }
    copy.set_location(None);
    let results = results.iter().map(|&result| read(&values, result)).collect();
    Ok((copy, results))
}

/// Adds a loop, with regions built by closures from state and captures. State has no names. Unused captures
/// are left out.
pub(crate) fn while_(
    graph: &mut Graph,
    options: impl Into<LoopOptions>,
    state: &[Value],
    captures: &[Value],
    cond: impl FnOnce(&mut Graph, &[Value], &[Value]) -> Result<Value>,
    body: impl FnOnce(&mut Graph, &[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Values> {
    let types: Vec<TensorType> = state.iter().chain(captures).map(|&value| graph.ty(value).clone()).collect();
    let open = || {
        let mut draft = Draft::new();
        draft.graph.set_location(graph.location().cloned());
        let inputs: Vec<Value> = types.iter().map(|ty| draft.input(ty.clone())).collect();
        (draft, inputs)
    };
    let (mut draft, inputs) = open();
    let verdict = cond(&mut draft.graph, &inputs[..state.len()], &inputs[state.len()..])?;
    let cond = draft.close(state.len(), &[verdict])?;
    let (mut draft, inputs) = open();
    let next = body(&mut draft.graph, &inputs[..state.len()], &inputs[state.len()..])?;
    let next: Vec<Value> = next
        .into_iter()
        .zip(&types)
        .map(|(value, ty)| convert(&mut draft.graph, value, ty.dtype))
        .collect::<Result<_>>()?;
    let body = draft.close(state.len(), &next)?;

    let used: Vec<bool> = used_inputs(&cond).iter().zip(used_inputs(&body)).map(|(&a, b)| a || b).collect();
    let retained: Vec<usize> = (0..types.len()).filter(|&input| input < state.len() || used[input]).collect();
    let cond = Arc::new(with_inputs(&cond, &retained, cond.results())?);
    let body = Arc::new(with_inputs(&body, &retained, body.results())?);
    let operands: Values = retained
        .iter()
        .map(|&input| if input < state.len() { state[input] } else { captures[input - state.len()] })
        .collect();
    let LoopOptions { trips, snapshots } = options.into();
    let op = Op::While(WhileOp { state: state.len(), trips, snapshots, cond, body });
    graph.push(op, &operands)
}

/// Adds a conditional on values. Captures that no branch uses are left out.
pub(crate) fn cond(
    graph: &mut Graph,
    predicates: &[Value],
    captures: &[Value],
    branches: &[Region],
) -> Result<Values> {
    let mut used = vec![false; captures.len()];
    for branch in branches {
        used.iter_mut().zip(used_inputs(branch)).for_each(|(used, here)| *used |= here);
    }
    let retained: Vec<usize> = (0..captures.len()).filter(|&capture| used[capture]).collect();
    let branches = branches
        .iter()
        .map(|branch| Ok(Arc::new(with_inputs(branch, &retained, branch.results())?)))
        .collect::<Result<_>>()?;
    let captures = retained.iter().map(|&capture| captures[capture]);
    let operands: Values = predicates.iter().copied().chain(captures).collect();
    graph.push(Op::Cond(CondOp { branches }), &operands)
}

/// A value without names.
pub(crate) fn nameless(graph: &mut Graph, value: Value) -> Result<Value> {
    let shape = graph.ty(value).shape.without_names();
    graph.emit_one(Op::Reshape { shape }, &[value])
}

/// A value converted to another element type.
pub(crate) fn convert(graph: &mut Graph, value: Value, dtype: DType) -> Result<Value> {
    graph.as_type(value, dtype)
}

/// A scalar broadcast to a shape.
pub(crate) fn fill(graph: &mut Graph, scalar: Value, shape: &Shape) -> Result<Value> {
    graph.emit_one(Op::Broadcast { shape: shape.clone(), axes: AxisList::new() }, &[scalar])
}

/// Zeros of a type.
pub(crate) fn zeros(graph: &mut Graph, ty: &TensorType) -> Result<Value> {
    let zero = graph.scalar(Scalar::zero(ty.dtype))?;
    fill(graph, zero, &ty.shape)
}

/// The sum over axes, which are removed.
pub(super) fn sum(graph: &mut Graph, value: Value, axes: AxisList) -> Result<Value> {
    if axes.is_empty() {
        return Ok(value);
    }
    graph.emit_one(Op::Reduce { op: ReduceOp::Sum, axes, keep_axes: false }, &[value])
}

/// Sums over the axes along which a value of the given sizes was broadcast, aligned at the end.
pub(crate) fn unbroadcast(graph: &mut Graph, value: Value, sizes: &[usize]) -> Result<Value> {
    let shape = graph.ty(value).shape.clone();
    if shape.sizes() == sizes {
        return Ok(value);
    }
    let added = shape.rank() - sizes.len();
    let stretched = |axis: &Axis| axis.index() < added || sizes[axis.index() - added] != shape[*axis];
    let axes = shape.axes().filter(stretched).collect();
    let value = sum(graph, value, axes)?;
    graph.emit_one(Op::Reshape { shape: Shape::new(sizes) }, &[value])
}

/// The inverse of a permutation.
pub(crate) fn inverse(axes: &[Axis]) -> AxisList {
    let mut inverse: AxisList = axes.into();
    for (position, axis) in axes.iter().enumerate() {
        inverse[axis.index()] = Axis(position);
    }
    inverse
}

/// A window of a value.
pub(crate) fn window(
    graph: &mut Graph,
    value: Value,
    starts: Starts,
    operands: &[Value],
    lengths: Sizes,
) -> Result<Value> {
    let strides = SmallVec::from_elem(1, lengths.len());
    let operands: Values = std::iter::once(value).chain(operands.iter().copied()).collect();
    graph.emit_one(Op::Slice { starts, lengths, strides }, &operands)
}

/// Zeros with a window in them.
pub(super) fn embed_window(
    graph: &mut Graph,
    update: Value,
    starts: Starts,
    operands: &[Value],
    shape: &Shape,
) -> Result<Value> {
    let TensorType { dtype, shape: inner } = graph.ty(update).clone();
    if inner == *shape {
        return Ok(update);
    }
    let zero = graph.scalar(Scalar::zero(dtype))?;
    if let Starts::Static(starts) = &starts {
        let padding = |axis: Axis| {
            let low = starts[axis.index()];
            Padding { low: low as i64, high: (shape[axis] - low - inner[axis]) as i64, interior: 0 }
        };
        let config = inner.axes().map(padding).collect();
        return graph.emit_one(Op::Pad { config }, &[update, zero]);
    }
    let zeros = fill(graph, zero, shape)?;
    let operands: Values = [zeros, update].into_iter().chain(operands.iter().copied()).collect();
    graph.emit_one(Op::PutSlice { starts }, &operands)
}
