//! Regions from closures, values with a name or without a gradient, and regions put in place.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Arg, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder, Ops, Start, exact};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value, Values};
use crate::infer;
use crate::op::{CondOp, CustomGradOp, HookOp, Op, WhileOp};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::trace::{Closed, Trace, is_same};
use crate::vectorize::{self, Lane, Lanes, join_into, position};

/// Control flow over regions that exist already, and marks on values.
pub trait BuildControl: Builder + Sized {
    /// `x`, through which no gradient flows.
    ///
    /// # Errors
    /// What the builder has against a new node.
    fn stop_grad(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::StopGrad, &[x])
    }

    /// `x` under a name, where a graph may be cut.
    ///
    /// # Errors
    /// What the builder has against a new node.
    fn mark(&mut self, x: impl Into<Arg<Self::V>>, name: Name) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Mark { name }, &[x])
    }

    /// The values, shown to the host function in a slot of the run's table on the way.
    ///
    /// # Errors
    /// What the builder has against a new node, and, where it runs at once, what the host function raises.
    fn hook(
        &mut self,
        slot: usize,
        name: Option<Name>,
        values: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        self.emit(Op::Hook(HookOp { slot, name }), values)
    }

    /// A conditional over ready branches: one scalar predicate for each but the last, and the captures, which
    /// all branches share.
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

    /// A loop over ready regions, which take the state, then the captures.
    ///
    /// # Errors
    /// A condition that gives no scalar, and a body that does not give the state's types.
    fn emit_while(
        &mut self,
        cond: Arc<Region>,
        body: Arc<Region>,
        trips: Option<u64>,
        state: &[Self::V],
        captures: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        let op = Op::While(WhileOp { state: state.len(), trips, cond, body });
        self.emit(op, &[state, captures].concat())
    }

    /// Values with their own gradient rule, a ready region from cotangents of the values, then captures, to
    /// cotangents of the inputs.
    ///
    /// # Errors
    /// A rule that does not take these cotangents or give one for each input.
    fn emit_custom_grad(
        &mut self,
        rule: Arc<Region>,
        values: &[Self::V],
        inputs: &[Self::V],
        captures: &[Self::V],
    ) -> Result<SmallVec<[Self::V; 1]>> {
        let op = CustomGradOp { values: values.len(), inputs: inputs.len(), rule };
        self.emit(Op::CustomGrad(op), &[values, inputs, captures].concat())
    }

    /// Applies the nodes of a region one by one to `args`: parameters, then captures. Nodes keep their
    /// locations where the builder keeps any.
    ///
    /// # Errors
    /// What the builder has against a node, as when an argument has another type than the region's input.
    ///
    /// # Panics
    /// When there are fewer arguments than the region has inputs: a bug of the caller.
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

/// A function that is traced into a region: what it returns are the region's results, where plain numbers give
/// way to what the region must give.
pub type Thunk<'a> = Box<dyn FnOnce(&mut Ops) -> Result<Vec<Arg<Tensor>>> + 'a>;

/// A predicate and what runs if it is the first that is not zero.
pub type Clause<'a> = (Tensor, Thunk<'a>);

/// Runs the branch of the first predicate that is not zero, else the last.
///
/// Every branch is traced. Their results, which must be equally many, merge one by one: element types, shapes by
/// broadcasting, names, and vectorized axes. Where a predicate is vectorized, the branches that some position takes
/// run for all positions, and each position keeps what its own gives.
///
/// # Errors
/// A predicate that is no scalar, another number of results than the first branch gives, results that do not
/// merge, and what the branches raise.
pub fn cond(ops: &mut Ops, clauses: Vec<Clause<'_>>, otherwise: Thunk<'_>) -> Result<Vec<Tensor>> {
    let mut predicates = Vec::with_capacity(clauses.len());
    let mut branches = Vec::with_capacity(clauses.len() + 1);
    for (predicate, branch) in clauses {
        check_predicate("cond", predicate.ty())?;
        predicates.push(position::read(ops, &predicate)?);
        branches.push(Draft::trace(ops, "cond", &[], |ops, _| branch(ops))?);
    }
    branches.push(Draft::trace(ops, "cond", &[], |ops, _| otherwise(ops))?);
    let expected = branches[0].results.len();
    for (branch, draft) in branches.iter().enumerate() {
        let got = draft.results.len();
        if got != expected {
            return Err(ErrorKind::BranchCount { op: "cond", branch, got, expected }.into());
        }
    }
    let merged = |leaf| merge_leaf(branches.iter().map(|branch| branch.written(leaf)));
    let types = (0..expected).map(merged).collect::<Result<Vec<_>>>()?;
    if predicates.is_empty() {
        // Without a choice there is nothing to run later: the branch is put in place.
        let Closed { region, captures, .. } = branches.remove(0).close(&types)?;
        let results = ops.inline(&region, &captures)?;
        return Ok(results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes)).collect());
    }
    let closed = branches.into_iter().map(|draft| draft.close(&types)).collect::<Result<Vec<_>>>()?;
    let (regions, captures) = unify_captures(closed);
    let regions: Vec<Arc<Region>> = regions.into_iter().map(Arc::new).collect();
    if predicates.iter().any(Tensor::is_vectorized) {
        return choose_by_position(ops, &regions, &predicates, &captures, &types);
    }
    let results = ops.emit_cond(regions, &predicates, &captures)?;
    Ok(results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes)).collect())
}

/// What a branch that is known to be taken gives, merged with what the others would give: as [`cond`] merges them.
///
/// # Errors
/// Results that do not merge.
///
/// # Panics
/// When a branch gives fewer results than the one that is taken: a bug of the caller.
pub fn merge_results(
    ops: &mut Ops,
    taken: &[Arg<Tensor>],
    others: &[Vec<Arg<Tensor>>],
) -> Result<Vec<Tensor>> {
    let written = |arg: &Arg<Tensor>| match arg {
        Arg::Value(tensor) => {
            Written::Value(LeafType { ty: tensor.ty().clone(), lanes: tensor.vectorized_axes().into() })
        }
        Arg::Number(number) => Written::Number(*number),
    };
    let mut results = Vec::with_capacity(taken.len());
    for (leaf, arg) in taken.iter().enumerate() {
        let all = std::iter::once(arg).chain(others.iter().map(|other| &other[leaf]));
        let LeafType { ty, lanes } = merge_leaf(all.map(written))?;
        let value = match arg {
            Arg::Value(tensor) => ops.as_type(tensor, ty.dtype)?,
            Arg::Number(number) => ops.scalar(exact(ty.dtype, *number)?)?,
        };
        let value = vectorize::spread(ops, &value.flat(), value.vectorized_axes(), &lanes, &ty.shape)?;
        results.push(value.with_vectorized(&lanes));
    }
    Ok(results)
}

/// A conditional whose predicates differ from position to position: a branch runs if any position takes it.
fn choose_by_position(
    ops: &mut Ops,
    branches: &[Arc<Region>],
    predicates: &[Tensor],
    captures: &[Tensor],
    types: &[LeafType],
) -> Result<Vec<Tensor>> {
    let zeros = Arc::new(zeros_like(&branches[0])?);
    let mut chosen: Option<Vec<Tensor>> = None;
    // The last branch comes first: what takes an earlier one overrides it.
    for (position, branch) in branches.iter().enumerate().rev() {
        let mut takes = match predicates.get(position) {
            Some(predicate) => ops.not_equal(predicate, 0)?,
            None => ops.constant(DType::U8, 1)?,
        };
        for earlier in &predicates[..position] {
            let passed = ops.equal(earlier, 0)?;
            takes = ops.logical_and(takes, passed)?;
        }
        let any = ops.any(takes.flat(), Axes::All, false)?;
        let results = ops.emit_cond([branch.clone(), zeros.clone()], &[any], captures)?;
        let results = results.into_iter().zip(types).map(|(x, leaf)| x.with_vectorized(&leaf.lanes));
        chosen = Some(match chosen {
            None => results.collect(),
            Some(others) => results
                .zip(others)
                .map(|(result, other)| ops.select(&takes, result, other))
                .collect::<Result<_>>()?,
        });
    }
    Ok(chosen.expect("a conditional has at least two branches"))
}

/// A region with the inputs and the types of the results of another, that gives zeros.
fn zeros_like(region: &Region) -> Result<Region> {
    let mut graph = Graph::new();
    let results = region
        .result_types()
        .map(|ty| graph.full(ty.shape.clone(), ty.dtype, 0))
        .collect::<Result<Values>>()?;
    Ok(Region::new(graph, region.inputs().to_vec(), region.parameter_count(), results))
}

/// A function of a loop's state that is traced, more than once where the state gains vectorized axes.
type StateFn<'a, R> = &'a mut dyn FnMut(&mut Ops, &[Tensor]) -> Result<R>;

/// Repeats `body` on the state while `condition` gives a scalar that is not zero, and returns the last state.
/// `trips` is the number of repetitions where the caller knows it.
///
/// The state has the vectorized axes that it begins with, and those that the body adds; both functions may be
/// traced several times to find them. Where the condition is vectorized, the positions are looped over one by one.
///
/// # Errors
/// A condition that is no scalar, a body that gives another number of values than the state has or values of
/// other types, and what both raise.
pub fn while_<'a>(
    ops: &mut Ops,
    init: Vec<Tensor>,
    trips: Option<u64>,
    mut condition: impl FnMut(&mut Ops, &[Tensor]) -> Result<Arg<Tensor>> + 'a,
    mut body: impl FnMut(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a,
) -> Result<Vec<Tensor>> {
    repeat(ops, init, trips, &mut condition, &mut body)
}

fn repeat(
    ops: &mut Ops,
    init: Vec<Tensor>,
    trips: Option<u64>,
    condition: StateFn<'_, Arg<Tensor>>,
    body: StateFn<'_, Vec<Arg<Tensor>>>,
) -> Result<Vec<Tensor>> {
    let mut state = position::read_all(ops, &init)?.into_vec();
    loop {
        let lanes: Vec<Lanes> = state.iter().map(|tensor| tensor.vectorized_axes().into()).collect();
        let types: Vec<TensorType> = state.iter().map(|tensor| tensor.whole().clone()).collect();
        let wrap = |state: &[Tensor]| -> Vec<Tensor> {
            state.iter().zip(&lanes).map(|(tensor, axes)| tensor.clone().with_vectorized(axes)).collect()
        };
        let predicate =
            Draft::trace(ops, "while_", &types, |ops, state| Ok(vec![condition(ops, &wrap(state))?]))?;
        if !predicate.lanes[0].is_empty() {
            check_predicate("while", &predicate.leaf_type(0))?;
            let axes = predicate.lanes[0].clone();
            drop(predicate);
            return repeat_by_position(ops, state, &axes, condition, body);
        }
        let next = Draft::trace(ops, "while_", &types, |ops, state| body(ops, &wrap(state)))?;
        let mut grown = false;
        for (tensor, axes) in state.iter_mut().zip(&next.lanes) {
            let mut joined: Lanes = tensor.vectorized_axes().into();
            join_into("while", &mut joined, axes)?;
            if joined[..] != *tensor.vectorized_axes() {
                *tensor = vectorize::spread_over(ops, "while", tensor, &joined)?;
                grown = true;
            }
        }
        if grown {
            continue;
        }
        let bare = predicate.leaf_type(0).into();
        let types: Vec<LeafType> = (0..next.results.len())
            .map(|leaf| LeafType {
                ty: state_type(&next, leaf, state.get(leaf).map(Tensor::ty)),
                lanes: lanes.get(leaf).cloned().unwrap_or_default(),
            })
            .collect();
        // `infer` would say it of the whole types; the user knows the inner ones.
        for (index, (tensor, got)) in state.iter().zip(&types).enumerate() {
            if tensor.is_vectorized() && *tensor.ty() != got.ty {
                let (op, what) = ("while", "state".to_owned());
                let (expected, got) = (tensor.ty().clone(), got.ty.clone());
                let hint = infer::state_hint(&expected, &got);
                return Err(ErrorKind::LoopState { op, what, index, expected, got, hint }.into());
            }
        }
        let closed = vec![predicate.close(&[bare])?, next.close(&types)?];
        let (mut regions, captures) = unify_captures(closed);
        let body = regions.pop().expect("two regions went in");
        let condition = regions.pop().expect("two regions went in");
        let flat: Vec<Tensor> = state.iter().map(Tensor::flat).collect();
        let last = ops.emit_while(Arc::new(condition), Arc::new(body), trips, &flat, &captures)?;
        return Ok(last.into_iter().zip(&lanes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect());
    }
}

/// A loop whose condition differs from position to position of `axes`: one loop for each, inside one over all.
fn repeat_by_position(
    ops: &mut Ops,
    init: Vec<Tensor>,
    axes: &Lanes,
    condition: StateFn<'_, Arg<Tensor>>,
    body: StateFn<'_, Vec<Arg<Tensor>>>,
) -> Result<Vec<Tensor>> {
    let count: usize = axes.iter().map(|(_, size)| size).product();
    if count == 0 {
        // Nowhere is there a state to change.
        return spread_by(ops, &init, axes);
    }
    let dtype = if i32::try_from(count).is_ok() { DType::S32 } else { DType::S64 };
    let mut outer = vec![ops.constant(dtype, 0)?];
    for tensor in &init {
        // The positions become one axis inside; what other vectorized axes the state has stay vectorized.
        let is_other = |lane: &&Lane| !axes.iter().any(|axis| axis.0 == lane.0);
        let others: Lanes = tensor.vectorized_axes().iter().filter(is_other).cloned().collect();
        let order: Lanes = others.iter().chain(axes).cloned().collect();
        let spread = vectorize::spread_over(ops, "while", tensor, &order)?.flat();
        let lead = others.iter().map(|&(_, size)| (size, None));
        let shape = Shape::from_axes(lead.chain([(count, None)]).chain(tensor.ty().shape.entries()));
        outer.push(ops.reshape_to(spread, shape)?.with_vectorized(&others));
    }
    let last = while_(
        ops,
        outer,
        Some(count as u64),
        |ops, state| Ok(Arg::Value(ops.less(&state[0], Arg::Number(Number::from(count)))?)),
        |ops, state| {
            let at = &state[0];
            let mut inner = Vec::with_capacity(init.len());
            for all in &state[1..] {
                let slice = ops.slice_along_axis(all, Start::Value(at.clone()), 1, 0, 1)?;
                inner.push(ops.squeeze(slice, 0)?);
            }
            let guard = position::enter(ops, axes, at)?;
            let done = repeat(ops, inner, None, &mut *condition, &mut *body);
            drop(guard);
            let mut next = vec![Arg::Value(ops.add(at, 1)?)];
            for (all, result) in state[1..].iter().zip(done?) {
                let row = ops.new_axis(result, 0, None)?;
                let mut starts = vec![Start::Index(0); all.ty().shape.rank()];
                starts[0] = Start::Value(at.clone());
                next.push(Arg::Value(ops.put_slice(all, &starts, row)?));
            }
            Ok(next)
        },
    )?;
    let mut results = Vec::with_capacity(init.len());
    for (tensor, before) in last[1..].iter().zip(&init) {
        let others: Lanes = tensor.vectorized_axes().into();
        let all: Lanes = others.iter().chain(axes).cloned().collect();
        let lead = all.iter().map(|&(_, size)| (size, None));
        let shape = Shape::from_axes(lead.chain(before.ty().shape.entries()));
        let tensor = ops.reshape_to(tensor.flat(), shape)?.with_vectorized(&all);
        let mut order: Lanes = before.vectorized_axes().into();
        join_into("while", &mut order, axes)?;
        join_into("while", &mut order, &others)?;
        results.push(vectorize::spread_over(ops, "while", &tensor, &order)?);
    }
    Ok(results)
}

/// The state over the positions as well.
fn spread_by(ops: &mut Ops, init: &[Tensor], axes: &Lanes) -> Result<Vec<Tensor>> {
    init.iter()
        .map(|tensor| {
            let mut order: Lanes = tensor.vectorized_axes().into();
            join_into("while", &mut order, axes)?;
            vectorize::spread_over(ops, "while", tensor, &order)
        })
        .collect()
}

/// Values whose gradient is what `rule` makes of their cotangents: one cotangent for each of `inputs`, of its
/// shape or a scalar. No gradient flows through the values by themselves.
///
/// A cotangent has the shape and the vectorized axes of its value, and at least the element type f32. What the rule
/// gives on vectorized axes that an input lacks is added up.
///
/// # Errors
/// A rule that gives another number of values than there are inputs or values of other shapes, and what it
/// raises.
pub fn custom_grad<'a>(
    ops: &mut Ops,
    values: Vec<Tensor>,
    inputs: Vec<Tensor>,
    rule: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a,
) -> Result<Vec<Tensor>> {
    let values = position::read_all(ops, &values)?;
    let inputs = position::read_all(ops, &inputs)?;
    let cotangents = values
        .iter()
        .map(|value| {
            let dtype = DType::F32.merge(value.ty().dtype.to_float());
            TensorType::new(dtype, value.whole().shape.without_names())
        })
        .collect::<Result<Vec<_>>>()?;
    let draft = Draft::trace(ops, "custom_grad", &cotangents, |ops, cotangents| {
        let wrapped = cotangents
            .iter()
            .zip(&values)
            .map(|(x, value)| x.clone().with_vectorized(value.vectorized_axes()));
        let mut given = rule(ops, &wrapped.collect::<Vec<_>>())?;
        for (result, input) in given.iter_mut().zip(&inputs) {
            if let Arg::Value(tensor) = result {
                *tensor = sum_over_others(ops, tensor, input.vectorized_axes())?;
            }
        }
        Ok(given)
    })?;
    if draft.results.len() != inputs.len() {
        let (got, expected) = (draft.results.len(), inputs.len());
        let what = "gradient function";
        return Err(ErrorKind::RegionResults { op: "custom_grad", what, got, expected }.into());
    }
    let mut types = Vec::with_capacity(inputs.len());
    for (leaf, input) in inputs.iter().enumerate() {
        let got = draft.leaf_type(leaf);
        if got.shape.rank() != 0 && got.shape.sizes() != input.ty().shape.sizes() {
            let (left, right) = (got, input.ty().clone());
            return Err(ErrorKind::ShapesDiffer { op: "custom_grad", left, right }.into());
        }
        let ty = TensorType::new(got.dtype, input.ty().shape.without_names())?;
        types.push(LeafType { ty, lanes: input.vectorized_axes().into() });
    }
    let (mut regions, captures) = unify_captures(vec![draft.close(&types)?]);
    let rule = Arc::new(regions.pop().expect("one region went in"));
    let flat = |tensors: &[Tensor]| tensors.iter().map(Tensor::flat).collect::<Vec<_>>();
    let results = ops.emit_custom_grad(rule, &flat(&values), &flat(&inputs), &captures)?;
    let lanes = values.iter().map(Tensor::vectorized_axes);
    Ok(results.into_iter().zip(lanes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect())
}

/// A cotangent without the vectorized axes that are not among `axes`, or that have size 1 there: it is summed over
/// them.
fn sum_over_others(ops: &mut Ops, tensor: &Tensor, axes: &[Lane]) -> Result<Tensor> {
    let keeps = |lane: &&Lane| axes.contains(lane);
    let kept: Lanes = tensor.vectorized_axes().iter().filter(keeps).cloned().collect();
    if kept.len() == tensor.vectorized_axes().len() {
        return Ok(tensor.clone());
    }
    let others = tensor.vectorized_axes().iter().filter(|lane| !keeps(lane)).cloned();
    let order: Lanes = kept.iter().cloned().chain(others).collect();
    let spread = vectorize::spread_over(ops, "custom_grad", tensor, &order)?.flat();
    let axes: AxisList = (kept.len()..order.len()).map(Axis).collect();
    Ok(ops.sum(spread, Axes::from(axes), false)?.with_vectorized(&kept))
}

/// The regions under one list of captures, in which no tensor stands twice, and that list.
///
/// # Panics
/// Never for regions that were traced: their captures are as many as their tensors.
pub fn unify_captures(closed: Vec<Closed>) -> (Vec<Region>, Vec<Tensor>) {
    let mut shared: Vec<Tensor> = Vec::new();
    let mut places: Vec<Vec<usize>> = Vec::with_capacity(closed.len());
    for Closed { captures, .. } in &closed {
        let place = |capture: &Tensor| {
            shared.iter().position(|known| is_same(known, capture)).unwrap_or_else(|| {
                shared.push(capture.clone());
                shared.len() - 1
            })
        };
        places.push(captures.iter().map(place).collect());
    }
    let types: Vec<TensorType> = shared.iter().map(|tensor| tensor.whole().clone()).collect();
    let regions = closed
        .into_iter()
        .zip(places)
        .map(|(closed, places)| closed.region.with_captures(&places, &types))
        .collect();
    (regions, shared)
}

/// A traced region whose results may still be plain numbers.
pub(super) struct Draft {
    closed: Closed,
    results: Vec<Leaf>,
    /// The vectorized axes of each result; the leading ones of its value.
    lanes: Vec<Lanes>,
}

/// The type that a result must have, its vectorized axes aside.
#[derive(Clone)]
pub(super) struct LeafType {
    ty: TensorType,
    lanes: Lanes,
}

impl From<TensorType> for LeafType {
    fn from(ty: TensorType) -> LeafType {
        LeafType { ty, lanes: Lanes::new() }
    }
}

/// A result of a draft.
#[derive(Clone, Copy)]
enum Leaf {
    /// One of the region's.
    Value(Value),
    /// A number.
    Number(Number),
}

impl Draft {
    pub(super) fn trace(
        ops: &mut Ops,
        op: &'static str,
        parameters: &[TensorType],
        function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>>,
    ) -> Result<Draft> {
        let (tracing, parameters) = Trace::begin(parameters);
        let written = function(ops, &parameters)?;
        let tensors: Vec<Tensor> = written
            .iter()
            .filter_map(|arg| match arg {
                Arg::Value(tensor) => Some(tensor.clone()),
                Arg::Number(_) => None,
            })
            .collect();
        let closed = tracing.finish(op, &tensors)?;
        let mut values = closed.region.results().iter();
        let lanes = written
            .iter()
            .map(|arg| match arg {
                Arg::Value(tensor) => tensor.vectorized_axes().into(),
                Arg::Number(_) => Lanes::new(),
            })
            .collect();
        let results = written
            .into_iter()
            .map(|arg| match arg {
                Arg::Value(_) => Leaf::Value(*values.next().expect("a result for each tensor")),
                Arg::Number(number) => Leaf::Number(number),
            })
            .collect();
        Ok(Draft { closed, results, lanes })
    }

    /// The type of a result, its vectorized axes left out; a number's own where it is one.
    fn leaf_type(&self, leaf: usize) -> TensorType {
        match self.results[leaf] {
            Leaf::Value(value) => {
                let TensorType { dtype, shape } = self.closed.region.graph().ty(value).clone();
                let lanes = self.lanes[leaf].len();
                if lanes == 0 {
                    return TensorType { dtype, shape };
                }
                TensorType { dtype, shape: Shape::from_axes(shape.entries().skip(lanes)) }
            }
            Leaf::Number(number) => TensorType::scalar(number.dtype()),
        }
    }

    fn written(&self, leaf: usize) -> Written {
        match self.results[leaf] {
            Leaf::Value(_) => {
                Written::Value(LeafType { ty: self.leaf_type(leaf), lanes: self.lanes[leaf].clone() })
            }
            Leaf::Number(number) => Written::Number(number),
        }
    }

    /// The vectorized axes of a result.
    pub(super) fn lanes(&self, leaf: usize) -> &[Lane] {
        &self.lanes[leaf]
    }

    /// The type of a result, where a number gives way to `dtype`.
    pub(super) fn result_type(&self, leaf: usize, dtype: DType) -> TensorType {
        let mut ty = self.leaf_type(leaf);
        if let Leaf::Number(number) = self.results[leaf] {
            ty.dtype = dtype.merge_weak(number);
        }
        ty
    }

    /// The region with results of exactly these types.
    pub(super) fn close(self, types: &[LeafType]) -> Result<Closed> {
        let Draft { closed: Closed { region, captures, lanes: used }, results, lanes } = self;
        let (mut graph, inputs, parameters, _) = region.into_parts();
        let results = results
            .into_iter()
            .zip(&lanes)
            .zip(types)
            .map(|((leaf, lanes), ty)| conform(&mut graph, leaf, lanes, ty))
            .collect::<Result<Values>>()?;
        Ok(Closed { region: Region::new(graph, inputs, parameters, results), captures, lanes: used })
    }
}

/// A result converted, broadcast and renamed to a type.
fn conform(graph: &mut Graph, leaf: Leaf, from: &[Lane], to: &LeafType) -> Result<Value> {
    let LeafType { ty, lanes } = to;
    let value = match leaf {
        Leaf::Value(value) => graph.as_type(value, ty.dtype)?,
        Leaf::Number(number) => graph.scalar(exact(ty.dtype, number)?)?,
    };
    if !lanes.is_empty() {
        return vectorize::spread(graph, &value, from, lanes, &ty.shape);
    }
    if graph.ty(value).shape.sizes() == ty.shape.sizes() {
        graph.reshape_to(value, ty.shape.clone())
    } else {
        graph.broadcast(value, ty.shape.clone(), Axes::All)
    }
}

/// A result as a branch writes it.
enum Written {
    Value(LeafType),
    Number(Number),
}

/// The type in which all branches can give one of their results.
fn merge_leaf(written: impl Iterator<Item = Written>) -> Result<LeafType> {
    let (mut lanes, mut shape) = (Lanes::new(), Shape::scalar());
    let (mut dtype, mut numbers) = (None, Vec::new());
    for result in written {
        match result {
            Written::Number(number) => numbers.push(number),
            Written::Value(value) => {
                join_into("cond", &mut lanes, &value.lanes)?;
                shape = shape.broadcast_with("cond", &value.ty.shape)?;
                dtype = Some(dtype.map_or(value.ty.dtype, |dtype: DType| dtype.merge(value.ty.dtype)));
            }
        }
    }
    // Numbers give way to the tensors; among themselves they merge as tensors of their own.
    let tensors = dtype.is_some();
    for number in numbers {
        dtype = Some(match dtype {
            Some(dtype) if tensors => dtype.merge_weak(number),
            Some(dtype) => dtype.merge(number.dtype()),
            None => number.dtype(),
        });
    }
    Ok(LeafType { ty: TensorType::new(dtype.expect("there is a branch"), shape)?, lanes })
}

fn check_predicate(op: &'static str, ty: &TensorType) -> Result<()> {
    if ty.shape.rank() == 0 {
        return Ok(());
    }
    Err(ErrorKind::Predicate { op, got: ty.clone() }.into())
}

/// The type that a loop's body gives: the state's, where numbers and missing names can give way to it, else its
/// own, which `infer` refuses with the reason.
fn state_type(body: &Draft, leaf: usize, expected: Option<&TensorType>) -> TensorType {
    let mut got = body.leaf_type(leaf);
    let Some(expected) = expected else { return got };
    if let Leaf::Number(number) = body.results[leaf] {
        got.dtype = expected.dtype.merge_weak(number);
    }
    if expected.is_compatible(&got) { expected.clone() } else { got }
}
