//! Control flow: regions from closures, marks on values, and inlined regions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::draft::{BranchResult, Draft, ResultType, check_predicate, merge_branch_results, unify_captures};
use super::{Arg, BuildCreate, BuildElementwise, BuildReduce, Builder, LoopOptions, Ops};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::grad::cotangent_type;
use crate::graph::{Graph, Value, Values};
use crate::jvp::tangent_type;
use crate::op::{CondOp, CustomGradOp, CustomRules, HookOp, Op, RuntimeCallOp, TieBreak, WhileOp};
use crate::region::Region;
use crate::shape::{Axes, Axis, AxisList, Name, TensorType};
use crate::tensor::Tensor;
use crate::trace::Closed;
use crate::vectorize::position::{self, Taken};
use crate::vectorize::{self, NamedAxes, NamedAxis, join_into};

/// Control flow over existing regions, and marks on values.
pub trait BuildControl: Builder + Sized {
    /// `x`, through which no gradient flows.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn stop_grad(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::StopGrad, &[x])
    }

    /// `x` with a name at which a graph may be cut.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn mark(&mut self, x: impl Into<Arg<Self::V>>, name: Name) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Mark { name }, &[x])
    }

    /// The values, which are also passed to the host function in a slot of the run's table.
    ///
    /// # Errors
    /// As [`Builder::emit`], and, if the op runs eagerly, the errors of the host function.
    fn hook(
        &mut self,
        slot: usize,
        name: Option<Name>,
        values: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        self.emit(Op::Hook(HookOp { slot, name }), values)
    }

    /// The results of the host function in a slot of the run's table: one tensor of each type.
    ///
    /// # Errors
    /// As [`Builder::emit`], vectorized values, and, if the op runs eagerly, the errors of the host function and
    /// results of other types.
    fn runtime_call(
        &mut self,
        slot: usize,
        outputs: &[TensorType],
        values: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        self.emit(Op::RuntimeCall(RuntimeCallOp { slot, outputs: outputs.into() }), values)
    }

    /// A conditional over existing branches. It takes one scalar predicate for each branch but the last, and the
    /// captures, which all branches share.
    ///
    /// # Errors
    /// A predicate that is no scalar, and branches whose inputs are not the captures or whose results differ.
    fn emit_cond(
        &mut self,
        branches: impl IntoIterator<Item = Arc<Region>>,
        predicates: &[Self::V],
        captures: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        let op = Op::Cond(CondOp { branches: branches.into_iter().collect() });
        self.emit(op, &[predicates, captures].concat())
    }

    /// A loop over existing regions, whose inputs are the state, then the captures.
    ///
    /// # Errors
    /// A condition that returns no scalar, and a body that does not return the state's types.
    fn emit_while(
        &mut self,
        cond: Arc<Region>,
        body: Arc<Region>,
        options: impl Into<LoopOptions>,
        state: &[Self::V],
        captures: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        let LoopOptions { trips, snapshots } = options.into();
        let op = Op::While(WhileOp { state: state.len(), trips, snapshots, cond, body });
        self.emit(op, &[state, captures].concat())
    }

    /// Values with their own derivative rules, which are existing regions.
    ///
    /// # Errors
    /// A rule that does not accept these cotangents or tangents, or does not return one for each input or value.
    fn emit_custom_grad(
        &mut self,
        rules: CustomRules,
        values: &[Self::V],
        inputs: &[Self::V],
        captures: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        let op = CustomGradOp { values: values.len(), inputs: inputs.len(), rules };
        self.emit(Op::CustomGrad(op), &[values, inputs, captures].concat())
    }

    /// Applies the nodes of a region one by one to `args`: parameters, then captures. Nodes keep their locations if
    /// the builder keeps locations.
    ///
    /// # Errors
    /// As [`Builder::emit`] for each node, for instance if an argument's type differs from the region's input.
    ///
    /// # Panics
    /// If there are fewer arguments than the region has inputs: a bug of the caller.
    fn inline(&mut self, region: &Region, args: &[Self::V]) -> Result<Vec<Self::V>> {
        assert!(args.len() >= region.inputs().len(), "an argument for each input of {region:?}");
        let mut values: Vec<SmallVec<[Self::V; 1]>> = Vec::with_capacity(region.graph().len());
        let at = |values: &[SmallVec<[Self::V; 1]>], value: &Value| {
            values[value.node as usize][value.output as usize].clone()
        };
        for node in region.graph().nodes() {
            if let Op::Parameter { index, .. } = &node.op {
                values.push(SmallVec::from_elem(args[*index].clone(), 1));
                continue;
            }
            let inputs: SmallVec<[Self::V; 3]> = node.inputs.iter().map(|value| at(&values, value)).collect();
            let before = self.relocate(node.location.clone());
            let outputs = self.emit(node.op.clone(), &inputs);
            self.relocate(before);
            values.push(outputs?);
        }
        Ok(region.results().iter().map(|value| at(&values, value)).collect())
    }
}

impl<B: Builder> BuildControl for B {}

/// A function that is traced into a region. Its return values are the region's results; plain numbers among them take
/// the required dtype.
pub type Thunk<'a> = Box<dyn FnOnce(&mut Ops) -> Result<Vec<Arg<Tensor>>> + 'a>;

/// A predicate and the branch that runs if it is the first that is not zero.
pub type Clause<'a> = (Tensor, Thunk<'a>);

/// Runs the branch of the first predicate that is not zero, or the last branch if all are zero.
///
/// Every branch is traced. All branches must have the same number of results. Corresponding results merge: element
/// types, shapes by broadcasting, names, and vectorized axes. If a predicate is vectorized, each branch that is taken
/// at any position runs for all positions, and each position selects the results of its own branch.
///
/// # Errors
/// A predicate that is no scalar, a branch with another number of results than the first, results that do not merge,
/// and the errors of the branches.
pub fn cond(ops: &mut Ops, clauses: Vec<Clause<'_>>, otherwise: Thunk<'_>) -> Result<Vec<Tensor>> {
    let mut predicates = Vec::with_capacity(clauses.len());
    let mut thunks = Vec::with_capacity(clauses.len() + 1);
    for (predicate, branch) in clauses {
        check_predicate("cond", predicate.ty())?;
        predicates.push(position::read(ops, &predicate)?);
        thunks.push(branch);
    }
    thunks.push(otherwise);
    let taken = taken_by_position(ops, &predicates)?;
    let mut branches = Vec::with_capacity(thunks.len());
    for (position, branch) in thunks.into_iter().enumerate() {
        branches.push(Draft::trace(ops, "cond", &[], |ops, _| {
            // Without positions there is no first one, and nothing to replace.
            let has_positions =
                |taken: &&Taken| taken.mask.is_vectorized() && taken.mask.whole().shape.size() > 0;
            let taken = taken.get(position).filter(has_positions);
            let _scope = taken.map(position::enter_branch);
            branch(ops)
        })?);
    }
    let expected = branches[0].results.len();
    for (branch, draft) in branches.iter().enumerate() {
        let got = draft.results.len();
        if got != expected {
            return Err(ErrorKind::BranchCount { op: "cond", branch, got, expected }.into());
        }
    }
    let merged = |leaf| merge_branch_results(branches.iter().map(|branch| branch.branch_result(leaf)));
    let types = (0..expected).map(merged).collect::<Result<Vec<_>>>()?;
    if predicates.is_empty() {
        // Without predicates the only branch is inlined.
        let Closed { region, captures, .. } = branches.remove(0).close(ops, &types)?;
        let results = ops.inline(&region, &captures)?;
        return Ok(results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes)).collect());
    }
    let closed = branches.into_iter().map(|draft| draft.close(ops, &types));
    let closed = closed.collect::<Result<Vec<_>>>()?;
    let (regions, captures) = unify_captures(closed);
    let regions: Vec<Arc<Region>> = regions.into_iter().map(Arc::new).collect();
    if !taken.is_empty() {
        return select_by_position(ops, &regions, &taken, &captures, &types);
    }
    let results = ops.emit_cond(regions, &predicates, &captures)?;
    Ok(results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes)).collect())
}

/// The results of a branch that is known to be taken, merged with the results of the other branches as in [`cond`].
///
/// # Errors
/// Results that do not merge.
///
/// # Panics
/// If a branch has fewer results than the one that is taken: a bug of the caller.
pub fn merge_results(
    ops: &mut Ops,
    taken: &[Arg<Tensor>],
    others: &[Vec<Arg<Tensor>>],
) -> Result<Vec<Tensor>> {
    let branch_result = |arg: &Arg<Tensor>| match (arg.weakness(), arg) {
        (None, Arg::Value(tensor)) => BranchResult::Value(ResultType {
            ty: tensor.ty().clone(),
            lanes: tensor.vectorized_axes().into(),
        }),
        (Some(number), _) => BranchResult::Number(number),
        (None, Arg::Number(number)) => BranchResult::Number(*number),
    };
    let mut results = Vec::with_capacity(taken.len());
    for (leaf, arg) in taken.iter().enumerate() {
        let all = std::iter::once(arg).chain(others.iter().map(|other| &other[leaf]));
        let ResultType { ty, lanes } = merge_branch_results(all.map(branch_result))?;
        let value = match arg {
            Arg::Value(tensor) if !tensor.is_weak() => ops.as_type(tensor, ty.dtype)?,
            arg @ (Arg::Value(_) | Arg::Number(_)) => ops.promote_weak("cond", arg.clone(), &ty)?,
        };
        let value =
            vectorize::broadcast_lanes(ops, &value.flat(), value.vectorized_axes(), &lanes, &ty.shape)?;
        results.push(value.with_vectorized(&lanes));
    }
    Ok(results)
}

/// For each branch, the positions that take it, if the predicates differ between positions, else nothing.
fn taken_by_position(ops: &mut Ops, predicates: &[Tensor]) -> Result<Vec<Taken>> {
    if !predicates.iter().any(Tensor::is_vectorized) {
        return Ok(Vec::new());
    }
    let mut all = Vec::with_capacity(predicates.len() + 1);
    let mut rest = ops.constant(DType::Bool, 1)?;
    for position in 0..=predicates.len() {
        let mask = match predicates.get(position) {
            Some(predicate) => {
                let holds = ops.not_equal(predicate, 0)?;
                let mask = ops.logical_and(&rest, &holds)?;
                let fails = ops.logical_not(holds)?;
                rest = ops.logical_and(rest, fails)?;
                mask
            }
            None => rest.clone(),
        };
        let is_empty = mask.whole().shape.size() == 0;
        let first = match is_empty {
            true => ops.constant(DType::S32, 0)?,
            false => ops.argmax(mask.flat(), None, false, TieBreak::Low, None)?,
        };
        all.push(Taken { mask, first });
    }
    Ok(all)
}

/// A conditional whose predicates differ between positions. A branch runs if any position takes it.
fn select_by_position(
    ops: &mut Ops,
    branches: &[Arc<Region>],
    taken: &[Taken],
    captures: &[Tensor],
    types: &[ResultType],
) -> Result<Vec<Tensor>> {
    let zeros = Arc::new(zeros_like(&branches[0])?);
    let mut chosen: Option<Vec<Tensor>> = None;
    for (branch, Taken { mask, .. }) in branches.iter().zip(taken).rev() {
        let any = ops.any(mask.flat(), Axes::All, false)?;
        let results = ops.emit_cond([branch.clone(), zeros.clone()], &[any], captures)?;
        let results = results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes));
        chosen = Some(match chosen {
            None => results.collect(),
            Some(others) => results
                .zip(others)
                .map(|(result, other)| ops.select(mask, result, other))
                .collect::<Result<_>>()?,
        });
    }
    Ok(chosen.expect("a conditional has at least two branches"))
}

/// A region with the inputs and result types of another, whose results are zeros.
fn zeros_like(region: &Region) -> Result<Region> {
    let mut graph = Graph::new();
    let results = region
        .result_types()
        .map(|ty| graph.full(ty.shape.clone(), ty.dtype, 0))
        .collect::<Result<Values>>()?;
    Ok(Region::new(graph, region.inputs().to_vec(), region.parameter_count(), results))
}

/// The function of a derivative rule, from cotangents or tangents to others.
pub type Rule<'a> = Box<dyn FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a>;

/// The functions of [`CustomRules`].
pub enum Rules<'a> {
    /// For reverse mode.
    Reverse(Rule<'a>),
    /// For forward mode.
    Forward(Rule<'a>),
    /// For each mode.
    Both {
        /// As that of `Reverse`.
        reverse: Rule<'a>,
        /// As that of `Forward`.
        forward: Rule<'a>,
    },
    /// Those of a function from the inputs to the values.
    Recompute {
        /// The function.
        function: Rule<'a>,
        /// The number of its last results that are kept.
        kept: usize,
        /// The number of the last of these that are kept on the host.
        offloaded: usize,
    },
}

/// Values with derivative rules. No other derivative flows through the values.
///
/// The rule for reverse mode maps cotangents of the values to one cotangent for each of `inputs`, that for forward mode
/// tangents of the inputs to one tangent for each value. Each has the shape of its input or value, or is a scalar.
///
/// A cotangent has the shape and the vectorized axes of its value, and at least the element type f32; a tangent has the
/// shape, the vectorized axes and the float type of its input. Results of the rule for reverse mode are summed over
/// vectorized axes that the input lacks.
///
/// # Errors
/// A rule whose results differ from the inputs or values in number or shape, and the errors of the rules.
pub fn custom_derivative(
    ops: &mut Ops,
    values: Vec<Tensor>,
    inputs: Vec<Tensor>,
    rules: Rules<'_>,
) -> Result<Vec<Tensor>> {
    let mut values = position::read_all(ops, &values)?;
    let inputs = position::read_all(ops, &inputs)?;
    let (reverse, forward) = match rules {
        Rules::Recompute { function, kept, offloaded } => {
            return with_recomputed(ops, &values, &inputs, function, (kept, offloaded));
        }
        Rules::Reverse(reverse) => (Some(reverse), None),
        Rules::Forward(forward) => (None, Some(forward)),
        Rules::Both { reverse, forward } => (Some(reverse), Some(forward)),
    };
    let forward = forward.map(|rule| forward_rule(ops, &mut values, &inputs, rule)).transpose()?;
    let reverse = reverse.map(|rule| reverse_rule(ops, &values, &inputs, rule)).transpose()?;
    let (has_reverse, closed) = (reverse.is_some(), reverse.into_iter().chain(forward).collect());
    let (regions, captures) = unify_captures(closed);
    let mut regions = regions.into_iter().map(Arc::new);
    let rules = match (regions.next().expect("there is a rule"), regions.next()) {
        (reverse, Some(forward)) => CustomRules::Both { reverse, forward },
        (reverse, None) if has_reverse => CustomRules::Reverse(reverse),
        (forward, None) => CustomRules::Forward(forward),
    };
    let flat = |tensors: &[Tensor]| tensors.iter().map(Tensor::flat).collect::<Vec<_>>();
    let results = ops.emit_custom_grad(rules, &flat(&values), &flat(&inputs), &captures)?;
    let lanes = values.iter().map(Tensor::vectorized_axes);
    Ok(results.into_iter().zip(lanes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect())
}

/// Values with the derivatives of a function.
fn with_recomputed(
    ops: &mut Ops,
    values: &[Tensor],
    inputs: &[Tensor],
    function: Rule<'_>,
    (kept, offloaded): (usize, usize),
) -> Result<Vec<Tensor>> {
    let op = "checkpoint";
    let types = inputs.iter().map(|input| input.whole().clone()).collect::<Vec<_>>();
    let draft = Draft::trace(ops, op, &types, |ops, given| function(ops, &like(given, inputs)))?;
    let targets = values
        .iter()
        .map(|value| ResultType { ty: value.ty().clone(), lanes: value.vectorized_axes().into() });
    let closed = draft.close(ops, &targets.collect::<Vec<_>>())?;
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::flat).chain(closed.captures).collect();
    let flat: Vec<Tensor> = values.iter().map(Tensor::flat).collect();
    let (graph, types, _, results) = closed.region.into_parts();
    let parameters = types.len();
    let region = Arc::new(Region::new(graph, types, parameters, results));
    let rules = CustomRules::Recompute { region, kept, offloaded };
    let results = ops.emit_custom_grad(rules, &flat, &inputs, &[])?;
    let lanes = values.iter().map(Tensor::vectorized_axes);
    Ok(results.into_iter().zip(lanes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect())
}

/// Tensors with the vectorized axes of others.
fn like<'a>(tensors: &[Tensor], others: impl IntoIterator<Item = &'a Tensor>) -> Vec<Tensor> {
    let axes = others.into_iter().map(Tensor::vectorized_axes);
    tensors.iter().cloned().zip(axes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect()
}

/// The types of a rule's results, one for each of `targets`: their shapes, and the element types of the results.
fn rule_types(
    op: &'static str,
    what: &'static str,
    draft: &Draft,
    targets: &[Tensor],
) -> Result<Vec<ResultType>> {
    let (got, expected) = (draft.results.len(), targets.len());
    if got != expected {
        return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
    }
    let types = targets.iter().enumerate().map(|(leaf, target)| {
        let got = draft.leaf_type(leaf);
        if got.shape.rank() != 0 && got.shape.sizes() != target.ty().shape.sizes() {
            return Err(ErrorKind::ShapesDiffer { op, left: got, right: target.ty().clone() }.into());
        }
        let ty = TensorType::new(got.dtype, target.ty().shape.without_names())?;
        Ok(ResultType { ty, lanes: target.vectorized_axes().into() })
    });
    types.collect()
}

/// The rule for reverse mode as a region.
fn reverse_rule(ops: &mut Ops, values: &[Tensor], inputs: &[Tensor], rule: Rule<'_>) -> Result<Closed> {
    let op = "custom_grad";
    let cotangents = values.iter().map(|value| cotangent_type(value.whole())).collect::<Vec<_>>();
    let draft = Draft::trace(ops, op, &cotangents, |ops, cotangents| {
        let mut gradients = rule(ops, &like(cotangents, values))?;
        for (result, input) in gradients.iter_mut().zip(inputs) {
            if let Arg::Value(tensor) = result {
                *tensor = sum_extra_axes(ops, tensor, input.vectorized_axes())?;
            }
        }
        Ok(gradients)
    })?;
    let types = rule_types(op, "gradient function", &draft, inputs)?;
    draft.close(ops, &types)
}

/// The rule for forward mode as a region. The values get the vectorized axes of their tangents.
fn forward_rule(ops: &mut Ops, values: &mut [Tensor], inputs: &[Tensor], rule: Rule<'_>) -> Result<Closed> {
    let op = "custom_jvp";
    let tangents = inputs.iter().map(|input| tangent_type(input.whole())).collect::<Vec<_>>();
    let draft = Draft::trace(ops, op, &tangents, |ops, tangents| rule(ops, &like(tangents, inputs)))?;
    for (leaf, value) in values.iter_mut().enumerate().take(draft.results.len()) {
        let mut axes: NamedAxes = value.vectorized_axes().into();
        join_into(op, &mut axes, draft.lanes(leaf))?;
        *value = vectorize::broadcast_vectorized(ops, op, value, &axes)?;
    }
    let types = rule_types(op, "tangent function", &draft, values)?;
    draft.close(ops, &types)
}

/// A cotangent, summed over its vectorized axes that are not in `axes` or have another size there.
fn sum_extra_axes(ops: &mut Ops, tensor: &Tensor, axes: &[NamedAxis]) -> Result<Tensor> {
    let is_retained = |lane: &&NamedAxis| axes.contains(lane);
    let retained: NamedAxes = tensor.vectorized_axes().iter().filter(is_retained).cloned().collect();
    if retained.len() == tensor.vectorized_axes().len() {
        return Ok(tensor.clone());
    }
    let others = tensor.vectorized_axes().iter().filter(|lane| !is_retained(lane)).cloned();
    let order: NamedAxes = retained.iter().cloned().chain(others).collect();
    let broadcast = vectorize::broadcast_vectorized(ops, "custom_grad", tensor, &order)?.flat();
    let axes: AxisList = (retained.len()..order.len()).map(Axis).collect();
    Ok(ops.sum(broadcast, Axes::from(axes), false)?.with_vectorized(&retained))
}
