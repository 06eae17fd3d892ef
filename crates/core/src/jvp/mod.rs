//! Forward-mode differentiation: a region that computes tangents beside values.
//!
//! Each family of ops has its rules in the file of its name. A rule computes the tangents of a node's outputs from those
//! of its inputs. This module copies a region node by node and applies the rules as it goes, so that a loop carries its
//! state and the tangents of the state together. Conventions:
//!
//! - A tangent has the sizes of its value, no axis names, and the value's element type. The tangent of an integer has a
//!   float type: conversions of element types pass tangents, as they pass gradients.
//! - A tangent that is known to be zero is `None`, and adds no nodes.
//! - Slopes at ties and other edges are those of [`grad`](crate::grad). For real operands the forward rule is the
//!   transpose of the reverse rule; for complex ones it is the transpose without a conjugate.

mod block;
mod collective;
mod control;
mod elementwise;
mod implicit;
mod index;
mod linalg;
mod linear;
mod loops;
mod matrix;
mod order;
mod reduce;
mod shape;
mod traced;
mod window;

pub use traced::{Begin, TracedPushforward, has_few_variables, require_tangent};

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::builder::{BuildElementwise, Builder};
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::grad::region::{self, Draft};
use crate::grad::{Site, reach};
use crate::graph::{Graph, Value, Values};
use crate::op::Op;
use crate::region::Region;
use crate::shape::{AxisList, TensorType};

/// The tangents of several values, each None where it is zero.
pub(crate) type Tangents = SmallVec<[Option<Value>; 1]>;

/// A region from a region's inputs, then a tangent for each input in `wrt`, to the region's results, then the tangent of
/// each result in `of`. All its inputs are parameters.
///
/// Tangents have no names. The tangent of a float or complex value has its element type, that of an integer or a
/// predicate is f32. Hooks run once. Only nodes on which a result in `of` depends need a derivative.
///
/// # Errors
/// An op without a derivative between an input in `wrt` and a result in `of`.
///
/// # Panics
/// When `wrt` names no input, or `of` no result.
pub fn jvp_region(region: &Region, wrt: &[usize], of: &[usize]) -> Result<Region> {
    joint(region, wrt, of, Control::Joint)
}

/// See [`jvp_region`].
fn joint(region: &Region, wrt: &[usize], of: &[usize], control: Control) -> Result<Region> {
    let mut draft = Draft::new();
    let arguments: Vec<Value> = region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
    let mut tangents = vec![None; arguments.len()];
    for &input in wrt {
        tangents[input] = Some(draft.input(tangent_type(&region.inputs()[input])));
    }
    let count = arguments.len() + wrt.len();
    let useful: Vec<bool> = (0..region.results().len()).map(|result| of.contains(&result)).collect();
    let graph = &mut draft.graph;
    let forward = push(graph, region, &arguments, &tangents, &useful, control)?;
    let mut results = forward.results;
    for &result in of {
        let ty = tangent_type(graph.ty(results[result]));
        results.push(materialized(graph, forward.tangents[result], &ty)?);
    }
    draft.close(count, &results)
}

/// How the branches and loops of a region compute their values and the tangents. Those inside of them compute both
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Together.
    Joint,
    /// Apart, so that the values do not depend on the tangents. The values are computed twice.
    Apart,
}

/// The type of the tangent of a value of type `ty`, where an input or a loop declares it.
pub fn tangent_type(ty: &TensorType) -> TensorType {
    TensorType { dtype: ty.dtype.to_float(), shape: ty.shape.without_names() }
}

/// A tangent of a type, zeros where it is None.
fn materialized(graph: &mut Graph, tangent: Option<Value>, ty: &TensorType) -> Result<Value> {
    match tangent {
        Some(tangent) => region::convert(graph, tangent, ty.dtype),
        None => region::zeros(graph, ty),
    }
}

/// The results of a region and their tangents.
struct Pushed {
    results: Values,
    tangents: Tangents,
}

/// Adds the nodes of a region to a graph, with the tangents of the results that are `useful`.
fn push(
    graph: &mut Graph,
    region: &Region,
    arguments: &[Value],
    tangents: &[Option<Value>],
    useful: &[bool],
    control: Control,
) -> Result<Pushed> {
    let source = region.graph();
    let ends = region.results().iter().zip(useful).filter(|(_, useful)| **useful);
    let ends: Vec<Value> = ends.map(|(&value, _)| value).collect();
    let useful = reach::useful(source, &ends);
    let mut pass = ForwardPass { graph, nameless: FxHashMap::default(), control };
    let mut values: Vec<Values> = Vec::with_capacity(source.len());
    let mut flowing: Vec<Tangents> = Vec::with_capacity(source.len());
    let before = pass.graph.set_location(None);
    for (node, useful) in source.nodes().iter().zip(&useful) {
        let location = node.location.clone().or_else(|| before.clone());
        pass.graph.set_location(location.clone());
        if let Op::Parameter { index, .. } = node.op {
            values.push(smallvec![arguments[index]]);
            flowing.push(smallvec![tangents[index]]);
            continue;
        }
        let of = |value: &Value| (value.node as usize, value.output as usize);
        let inputs: Values = node.inputs.iter().map(of).map(|(node, output)| values[node][output]).collect();
        let from: SmallVec<[Option<Value>; 4]> =
            node.inputs.iter().map(of).map(|(node, output)| flowing[node][output]).collect();
        // A tangent flows to an output that depends differentiably on an input with one.
        let varied: SmallVec<[bool; 1]> = if from.iter().any(Option::is_some) {
            let depends =
                |set: reach::Inputs| (0..from.len()).any(|input| from[input].is_some() && set.has(input));
            let outputs = reach::outputs(&node.op, inputs.len(), node.outputs.len());
            outputs.into_iter().zip(useful).map(|(set, &useful)| useful && depends(set)).collect()
        } else {
            smallvec![false; node.outputs.len()]
        };
        let (outputs, tangents) = if varied.contains(&true) {
            pass.visit(&node.op, inputs, &from, &varied).map_err(|error| error.at(location))?
        } else {
            let outputs = pass.graph.emit(node.op.clone(), &inputs)?.into_iter().collect();
            (outputs, smallvec![None; node.outputs.len()])
        };
        values.push(outputs);
        flowing.push(tangents);
    }
    pass.graph.set_location(before);
    let of = |value: &Value| (value.node as usize, value.output as usize);
    let results = region.results().iter().map(of).map(|(node, output)| values[node][output]).collect();
    let tangents = region.results().iter().map(of).map(|(node, output)| flowing[node][output]).collect();
    Ok(Pushed { results, tangents })
}

/// The copy of a region with its tangents, in progress.
struct ForwardPass<'a> {
    graph: &'a mut Graph,
    nameless: FxHashMap<Value, Value>,
    control: Control,
}

impl ForwardPass<'_> {
    /// Adds a node and the tangents of its outputs. `varied` marks the outputs whose tangents are needed and may not be
    /// zero.
    fn visit(
        &mut self,
        op: &Op,
        inputs: Values,
        tangents: &[Option<Value>],
        varied: &[bool],
    ) -> Result<(Values, Tangents)> {
        if let Op::Cond(_) | Op::While(_) = op {
            return self.visit_control(op, &inputs, tangents, varied);
        }
        let outputs: Values = self.graph.emit(op.clone(), &inputs)?.into_iter().collect();
        let needed = tangents.iter().map(Option::is_some).collect();
        let (graph, nameless) = (&mut *self.graph, &mut self.nameless);
        let mut site = Site { graph, nameless, inputs, outputs, needed };
        let mut found = rule(&mut site, op, tangents, varied)?;
        for (output, tangent) in found.iter_mut().enumerate() {
            let needed = tangent.filter(|_| varied[output]);
            let value = site.outputs[output];
            *tangent = needed.map(|tangent| fit(site.graph, value, tangent)).transpose()?;
        }
        Ok((site.outputs, found))
    }

    /// Adds a branch or a loop that computes values and tangents.
    fn visit_control(
        &mut self,
        op: &Op,
        inputs: &[Value],
        tangents: &[Option<Value>],
        varied: &[bool],
    ) -> Result<(Values, Tangents)> {
        let values = match self.control {
            Control::Joint => None,
            Control::Apart => Some(self.graph.emit(op.clone(), inputs)?.into_iter().collect()),
        };
        // The hooks run with the values.
        let op = if values.is_some() { &region::without_hooks(op)? } else { op };
        let (outputs, tangents) = if let Op::Cond(op) = op {
            control::cond(self.graph, op, inputs, tangents, varied)?
        } else if let Op::While(op) = op {
            loops::while_(self.graph, op, inputs, tangents, varied)?
        } else {
            unreachable!("only branches and loops come here")
        };
        Ok((values.unwrap_or(outputs), tangents))
    }
}

/// A tangent converted and broadcast for its value: real where the value is real.
fn fit(graph: &mut Graph, value: Value, tangent: Value) -> Result<Value> {
    let (ty, got) = (graph.ty(value).clone(), graph.ty(tangent).clone());
    // The tangent of an integer is real, and keeps its float type.
    let dtype = if ty.dtype.is_inexact() { ty.dtype } else { got.dtype.to_real() };
    let real = if got.dtype.is_complex() && !dtype.is_complex() { graph.real(tangent)? } else { tangent };
    let tangent = region::convert(graph, real, dtype)?;
    let shape = ty.shape.without_names();
    if got.shape == shape {
        return Ok(tangent);
    }
    let axes: AxisList = shape.axes().skip(shape.rank() - got.shape.rank()).collect();
    graph.emit_one(Op::Broadcast { shape, axes }, &[tangent])
}

/// The tangents, zeros where one is None.
fn all(site: &mut Site<'_>, tangents: &[Option<Value>]) -> Result<Values> {
    let operands = tangents.iter().enumerate();
    operands
        .map(|(input, tangent)| {
            let ty = tangent_type(&site.input_ty(input));
            tangent.map_or_else(|| region::zeros(site.graph, &ty), Ok)
        })
        .collect()
}

/// The tangents of a node's outputs. `t` has an entry for each input, at least one of them not None; `varied` marks the
/// outputs whose tangents are needed.
fn rule(site: &mut Site<'_>, op: &Op, t: &[Option<Value>], varied: &[bool]) -> Result<Tangents> {
    let refused = |hint| Err(ErrorKind::NoGradient { op: form::name(op), hint }.into());
    // The same op, on the tangent of its first operand.
    let same = |site: &mut Site<'_>| t[0].map(|t| site.graph.emit_one(op.clone(), &[t])).transpose();
    let tangent = match op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_) | Op::Iota { .. } | Op::Eye { .. } => None,

        Op::Unary(op) => elementwise::unary(site, *op, t)?,
        Op::Binary(op) => elementwise::binary(site, *op, t)?,
        // Conversions to integers pass tangents.
        Op::AsType { .. } | Op::Bitcast { .. } => t[0],
        Op::Select => elementwise::select(site, t)?,
        Op::Clip => elementwise::clip(site, t)?,

        Op::Reshape { .. } | Op::Squeeze { .. } => shape::reshape(site, t)?,
        Op::Broadcast { axes, .. } => shape::broadcast(site, axes, t)?,
        Op::Transpose { .. } | Op::Reverse { .. } => same(site)?,
        Op::Pad { .. } | Op::Concatenate { .. } => shape::linear(site, op, t)?,
        Op::Stack { axis, .. } => shape::linear(site, &Op::Stack { axis: *axis, name: None }, t)?,
        Op::Slice { .. } => shape::at_starts(site, op, 1, t)?,
        Op::PutSlice { .. } => shape::at_starts(site, op, 2, t)?,

        Op::Reduce { op, axes, keep_axes } => reduce::reduce(site, *op, axes, *keep_axes, t)?,
        Op::ArgReduce { .. } => None,

        Op::Dot { .. } | Op::Conv(_) => linalg::bilinear(site, op, t)?,

        Op::Gather { .. } => index::gather(site, op, t)?,
        Op::Scatter { .. } => index::scatter(site, op, t)?,
        Op::Sort { axis, direction } => order::sort(site, *axis, *direction, t)?,
        Op::Argsort { .. } => None,
        Op::Window { op, window } => window::window(site, *op, window, t)?,
        Op::WindowScatter { op, window } => window::scatter(site, *op, window, t)?,
        Op::Fft { .. } => same(site)?,
        Op::TriangularSolve { lower, left_side, transform_a } => {
            matrix::triangular_solve(site, *lower, *left_side, *transform_a, t)?
        }
        Op::Collective(op) => collective::collective(site, op, t)?,
        Op::Fold(_) | Op::WindowFold(_) => {
            return refused(
                "use sum, product, reduce_max or another named reduction, stop_grad, or custom_grad",
            );
        }

        Op::Cond(_) | Op::While(_) => unreachable!("their values are computed together with the tangents"),
        Op::CustomGrad(op) => return control::custom_grad(site, op, t, varied),
        Op::Implicit(op) => return implicit::implicit(site, op, t),
        Op::StopGrad => None,
        Op::Mark { .. } | Op::Transfer { .. } => t[0],
        Op::Barrier | Op::Hook(_) => return Ok(t.iter().copied().collect()),
        Op::RuntimeCall(_) => {
            return refused(
                "give its result a gradient with custom_grad, or keep its value out with stop_grad",
            );
        }

        Op::Block(block) => return block::rule(site, block, t, varied),
        Op::UserBlock(op) => return block::user(site, op, t, varied),
    };
    Ok(smallvec![tangent])
}
