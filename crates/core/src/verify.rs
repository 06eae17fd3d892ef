//! Checks that a graph is legal. An illegal graph is an internal bug, never the user's.

pub(crate) mod attributes;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::form;
use crate::grad::cotangent_type;
use crate::graph::{Graph, Node};
use crate::infer;
use crate::jvp::tangent_type;
use crate::op::{
    Collective, CollectiveOp, CondOp, CustomGradOp, CustomRules, ImplicitOp, Op, OpClass, Primitive,
    UserBlockOp, WhileOp,
};
use crate::region::Region;
use crate::shape::TensorType;
use attributes::exactly;

static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Makes every pass of this process verify its result, as builds with debug assertions always do, and parse
/// its text back.
pub fn set_always(on: bool) {
    ALWAYS.store(on, Ordering::Relaxed);
}

/// Whether [`set_always`] has switched verification on.
pub fn always() -> bool {
    ALWAYS.load(Ordering::Relaxed)
}

/// Whether passes verify.
pub(crate) fn is_on() -> bool {
    cfg!(any(debug_assertions, test)) || always()
}

/// Checks a region and all nested regions: nodes take values of earlier nodes, parameters agree with the
/// region's inputs, regions with the operands of their node, and every type with `infer`.
///
/// # Errors
/// A sentence about the first illegal node.
pub fn verify(region: &Region) -> Result<(), String> {
    verify_new(region, &mut HashSet::new())
}

/// Checks a region, but no nested region that is known to be legal.
fn verify_new(region: &Region, known: &mut HashSet<*const Region>) -> Result<(), String> {
    let graph = region.graph();
    for (position, node) in graph.nodes().iter().enumerate() {
        let problem = verify_node(region, graph, position, node);
        problem.map_err(|problem| format!("%{position} = {}: {problem}", form::name(&node.op)))?;
        for inner in node.op.regions() {
            // Regions may be shared, for example by a loop and its gradient.
            if known.insert(Arc::as_ptr(inner)) {
                verify_new(inner, known).map_err(|problem| {
                    format!("%{position} = {}: in its region: {problem}", form::name(&node.op))
                })?;
            }
        }
    }
    for value in region.results() {
        let node = graph.nodes().get(value.node as usize);
        if node.is_none_or(|node| value.output as usize >= node.outputs.len()) {
            return Err(format!("the result %{}.{} does not exist", value.node, value.output));
        }
    }
    Ok(())
}

fn verify_node(region: &Region, graph: &Graph, position: usize, node: &Node) -> Result<(), String> {
    let mut types: SmallVec<[&TensorType; 4]> = SmallVec::new();
    for input in &node.inputs {
        let at = input.node as usize;
        if at >= position {
            return Err(format!("it takes %{at}, which is not computed yet"));
        }
        match graph.nodes()[at].outputs.get(input.output as usize) {
            Some(ty) => types.push(ty),
            None => return Err(format!("it takes output {} of %{at}, which has fewer", input.output)),
        }
    }
    if let Op::Parameter { index, ty } = &node.op {
        match region.inputs().get(*index) {
            Some(input) if input == ty => {}
            Some(input) => return Err(format!("input {index} is {input}, the node says {ty}")),
            None => return Err(format!("the region has {} inputs, not {index}", region.inputs().len())),
        }
    }
    operands(&node.op, &types)?;
    let inferred = infer::infer(&node.op, &types).map_err(|error| error.to_string())?;
    if inferred != node.outputs {
        return Err(format!("its types are {}, not {}", list(&inferred), list(&node.outputs)));
    }
    Ok(())
}

/// Checks the builder's guarantees on which `infer` relies: the number of operands, axes in range, and
/// regions whose inputs are the node's operands.
pub(crate) fn operands(op: &Op, types: &[&TensorType]) -> Result<(), String> {
    match op.class() {
        OpClass::Parameter { .. } | OpClass::Constant(_) | OpClass::Literal(_) => exactly(types, 0),
        OpClass::Primitive(Primitive::ElementWise(op)) => exactly(types, op.operand_count()),
        OpClass::Primitive(_) => op.check_row(types),
        OpClass::Identity(_) => exactly(types, 1),
        OpClass::Barrier | OpClass::Hook(_) | OpClass::RuntimeCall(_) => Ok(()),
        OpClass::Collective(op) => collective(op, types),
        OpClass::Fold(op) => {
            fold(&op.fun, types)?;
            attributes::ascending(&op.axes, types, 0)
        }
        OpClass::WindowFold(op) => {
            fold(&op.fun, types)?;
            attributes::sliding(&op.window, types, 0)
        }
        OpClass::Cond(op) => cond(op, types),
        OpClass::While(op) => while_(op, types),
        OpClass::CustomGrad(op) => custom_grad(op, types),
        OpClass::Implicit(op) => implicit(op, types),
        OpClass::UserBlock(op) => user_block(op, types),
        OpClass::Block(block) => block.check(types),
    }
}

/// A collective has one operand, `mesh_index` none, and each device sends at most one block and receives at
/// most one.
fn collective(op: &CollectiveOp, types: &[&TensorType]) -> Result<(), String> {
    let axis = match &op.kind {
        Collective::AllReduce { op: _ } | Collective::CollectivePermute { pairs: _ } => None,
        Collective::AllGather { axis } | Collective::ReduceScatter { axis } => Some(*axis),
        Collective::MeshIndex => {
            return if types.is_empty() {
                Ok(())
            } else {
                Err(format!("the operands are {}, none must be given", list(types.iter().copied())))
            };
        }
    };
    let &[x] = types else {
        return Err(format!("the operands are {}, 1 must be given", list(types.iter().copied())));
    };
    attributes::valid(&axis, &[x], 0)?;
    op.check_pairs()
}

/// The function of a fold takes an element, the accumulator, and the captures.
fn fold(fun: &Region, types: &[&TensorType]) -> Result<(), String> {
    let [x, acc, captures @ ..] = types else {
        return Err("a tensor and a start must be given".to_owned());
    };
    let expected: Vec<TensorType> = [x, acc]
        .map(|ty| TensorType::scalar(ty.dtype))
        .into_iter()
        .chain(captures.iter().map(|&ty| ty.clone()))
        .collect();
    if !fun.inputs().iter().eq(&expected) {
        return Err(format!("the function takes {}, it must take {}", list(fun.inputs()), list(&expected)));
    }
    Ok(())
}

fn cond(op: &CondOp, types: &[&TensorType]) -> Result<(), String> {
    if op.branches.len() < 2 {
        return Err(format!("{} branches, at least 2 are required", op.branches.len()));
    }
    let Some(captures) = types.get(op.branches.len() - 1..) else {
        return Err(format!("{} operands for {} branches", types.len(), op.branches.len()));
    };
    op.branches.iter().try_for_each(|branch| signature("branch", branch, &[], captures))
}

fn while_(op: &WhileOp, types: &[&TensorType]) -> Result<(), String> {
    let Some((state, captures)) = types.split_at_checked(op.state) else {
        return Err(format!("{} operands, of which {} are state", types.len(), op.state));
    };
    signature("condition", &op.cond, state, captures)?;
    signature("body", &op.body, state, captures)
}

fn custom_grad(op: &CustomGradOp, types: &[&TensorType]) -> Result<(), String> {
    let own = op.values.checked_add(op.inputs).filter(|&own| own <= types.len());
    let Some(own) = own else {
        let (values, inputs) = (op.values, op.inputs);
        return Err(format!("{} operands, of which {values} are values and {inputs} inputs", types.len()));
    };
    if let Some(rule) = op.rules.reverse() {
        let cotangents: Vec<TensorType> = types[..op.values].iter().map(|ty| cotangent_type(ty)).collect();
        signature("rule", rule, &cotangents.iter().collect::<Vec<_>>(), &types[own..])?;
    }
    if let Some(rule) = op.rules.forward() {
        let tangents: Vec<TensorType> = types[op.values..own].iter().map(|ty| tangent_type(ty)).collect();
        signature("forward rule", rule, &tangents.iter().collect::<Vec<_>>(), &types[own..])?;
    }
    if let CustomRules::Recompute { region, kept, offloaded } = &op.rules {
        if *offloaded > *kept || *kept > op.values {
            return Err(format!("{kept} values are kept of {}, {offloaded} of them on the host", op.values));
        }
        signature("recomputed region", region, &types[op.values..own], &types[own..])?;
        if !region.result_types().eq(types[..op.values].iter().copied()) {
            let (values, results) = (list(types[..op.values].iter().copied()), list(region.result_types()));
            return Err(format!("the values are {values}, the recomputed region gives {results}"));
        }
    }
    Ok(())
}

fn implicit(op: &ImplicitOp, types: &[&TensorType]) -> Result<(), String> {
    let Some((values, captures)) = types.split_at_checked(op.values) else {
        return Err(format!("{} operands, of which {} are values", types.len(), op.values));
    };
    let Some(first) = values.first() else { return Err("no values, one is required".to_owned()) };
    for ty in values {
        let lanes = |ty: &TensorType| ty.shape.sizes().get(..op.lanes).map(<[usize]>::to_vec);
        if lanes(ty).is_none() || lanes(ty) != lanes(first) {
            return Err(format!("the value {ty} lacks the {} leading axes of {first}", op.lanes));
        }
    }
    signature("condition", &op.condition, values, captures)?;
    op.preconditioner.iter().try_for_each(|m| signature("preconditioner", m, values, captures))
}

fn user_block(op: &UserBlockOp, types: &[&TensorType]) -> Result<(), String> {
    let Some((args, captures)) = types.split_at_checked(op.args) else {
        return Err(format!("{} operands, of which {} are arguments", types.len(), op.args));
    };
    signature("default", &op.default, args, captures)
}

/// A region takes the parameters, then the captures.
fn signature(
    what: &str,
    region: &Region,
    parameters: &[&TensorType],
    captures: &[&TensorType],
) -> Result<(), String> {
    let passed = || parameters.iter().chain(captures).copied();
    let fits = region.parameter_count() == parameters.len() && region.inputs().iter().eq(passed());
    if fits {
        return Ok(());
    }
    Err(format!(
        "the {what} takes {} parameters of {}, the node passes {} of {}",
        region.parameter_count(),
        list(region.inputs()),
        parameters.len(),
        list(passed())
    ))
}

/// `(f32[2], s32)`.
pub(crate) fn list<'a>(types: impl IntoIterator<Item = &'a TensorType>) -> String {
    let mut out = "(".to_owned();
    for (position, ty) in types.into_iter().enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(out, "{comma}{ty}");
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::graph::{Value, Values};
    use crate::op::{BinaryOp, UnaryOp};
    use crate::scalar::Scalar;
    use crate::shape::Axis;

    /// The error for a node after a constant of type f32, with a declared output type f32.
    fn problem(op: Op, inputs: &[(u32, u32)]) -> String {
        let mut graph = Graph::new();
        graph.push(Op::Constant(Scalar::one(DType::F32)), &[]).unwrap();
        let inputs: Values = inputs.iter().map(|&(node, output)| Value { node, output }).collect();
        let outputs = [TensorType::scalar(DType::F32)].into_iter().collect();
        let results = graph.push_typed(op, inputs, outputs).unwrap();
        verify(&Region::new(graph, Vec::new(), 0, results)).unwrap_err()
    }

    #[test]
    fn problems_name_the_node() {
        let sin = Op::Unary(UnaryOp::SIN);
        assert_eq!(problem(sin.clone(), &[(1, 0)]), "%1 = sin: it takes %1, which is not computed yet");
        assert_eq!(problem(sin.clone(), &[(9, 0)]), "%1 = sin: it takes %9, which is not computed yet");
        assert_eq!(problem(sin.clone(), &[(0, 1)]), "%1 = sin: it takes output 1 of %0, which has fewer");
        assert_eq!(problem(sin, &[]), "%1 = sin: the operands are (), 1 must be given");
        let equal = Op::Binary(BinaryOp::EQUAL);
        assert_eq!(problem(equal, &[(0, 0), (0, 0)]), "%1 = equal: its types are (bool), not (f32)");
        let all = Op::Reverse { axes: [Axis(0)].into_iter().collect() };
        assert_eq!(problem(all, &[(0, 0)]), "%1 = reverse: axis 0 is beyond the rank 0");
    }

    #[test]
    fn regions_take_what_the_node_passes() {
        let mut graph = Graph::new();
        let x = graph.parameter(0, TensorType::scalar(DType::S32));
        let body = Region::new(graph, vec![TensorType::scalar(DType::S32)], 1, [x].into_iter().collect());
        let body = Arc::new(body);
        let op = WhileOp { state: 1, trips: None, snapshots: None, cond: body.clone(), body };
        assert_eq!(
            problem(Op::While(op), &[(0, 0)]),
            "%1 = while: the condition takes 1 parameters of (s32), the node passes 1 of (f32)"
        );
    }

    #[test]
    fn results_must_exist() {
        let results = [Value { node: 3, output: 0 }].into_iter().collect();
        let region = Region::new(Graph::new(), Vec::new(), 0, results);
        assert_eq!(verify(&region).unwrap_err(), "the result %3.0 does not exist");
    }
}
