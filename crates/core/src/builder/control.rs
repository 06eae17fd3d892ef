//! Regions from closures, values with a name or without a gradient, and regions put in place.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Arg, BuildElementwise, BuildShape, Builder, Ops, exact};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value, Values};
use crate::op::{CondOp, CustomGradOp, HookOp, Op, WhileOp};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Axes, Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::trace::{Closed, Trace, is_same};

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
/// broadcasting, and names.
///
/// # Errors
/// A predicate that is no scalar, another number of results than the first branch gives, results that do not
/// merge, and what the branches raise.
pub fn cond(ops: &mut Ops, clauses: Vec<Clause<'_>>, otherwise: Thunk<'_>) -> Result<Vec<Tensor>> {
    let mut predicates = Vec::with_capacity(clauses.len());
    let mut branches = Vec::with_capacity(clauses.len() + 1);
    for (predicate, branch) in clauses {
        check_predicate("cond", predicate.ty())?;
        predicates.push(predicate);
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
    if predicates.is_empty() {
        // Without a choice there is nothing to run later: the branch is put in place.
        let (region, captures) = branches.remove(0).close_as_is()?;
        return ops.inline(&region, &captures);
    }
    let types = (0..expected).map(|leaf| merge_leaf(&branches, leaf)).collect::<Result<Vec<_>>>()?;
    let closed = branches.into_iter().map(|draft| draft.close(&types)).collect::<Result<Vec<_>>>()?;
    let (regions, captures) = unify_captures(closed);
    Ok(ops.emit_cond(regions.into_iter().map(Arc::new), &predicates, &captures)?.into_vec())
}

/// Repeats `body` on the state while `condition` gives a scalar that is not zero, and returns the last state.
/// `trips` is the number of repetitions where the caller knows it.
///
/// # Errors
/// A condition that is no scalar, a body that gives another number of values than the state has or values of
/// other types, and what both raise.
pub fn while_<'a>(
    ops: &mut Ops,
    init: Vec<Tensor>,
    trips: Option<u64>,
    condition: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Arg<Tensor>> + 'a,
    body: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a,
) -> Result<Vec<Tensor>> {
    let types: Vec<TensorType> = init.iter().map(|tensor| tensor.ty().clone()).collect();
    let condition = Draft::trace(ops, "while_", &types, |ops, state| Ok(vec![condition(ops, state)?]))?;
    let body = Draft::trace(ops, "while_", &types, body)?;
    let predicate = condition.leaf_type(0);
    let next =
        (0..body.results.len()).map(|leaf| state_type(&body, leaf, types.get(leaf))).collect::<Vec<_>>();
    let closed = vec![condition.close(&[predicate])?, body.close(&next)?];
    let (mut regions, captures) = unify_captures(closed);
    let body = regions.pop().expect("two regions went in");
    let condition = regions.pop().expect("two regions went in");
    Ok(ops.emit_while(Arc::new(condition), Arc::new(body), trips, &init, &captures)?.into_vec())
}

/// Values whose gradient is what `rule` makes of their cotangents: one cotangent for each of `inputs`, of its
/// shape or a scalar. No gradient flows through the values by themselves.
///
/// A cotangent has the shape of its value, and at least the element type f32.
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
    let cotangents = values
        .iter()
        .map(|value| {
            let dtype = DType::F32.merge(value.ty().dtype.to_float());
            TensorType::new(dtype, value.ty().shape.without_names())
        })
        .collect::<Result<Vec<_>>>()?;
    let draft = Draft::trace(ops, "custom_grad", &cotangents, rule)?;
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
        types.push(TensorType::new(got.dtype, input.ty().shape.without_names())?);
    }
    let (mut regions, captures) = unify_captures(vec![draft.close(&types)?]);
    let rule = Arc::new(regions.pop().expect("one region went in"));
    Ok(ops.emit_custom_grad(rule, &values, &inputs, &captures)?.into_vec())
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
    let types: Vec<TensorType> = shared.iter().map(|tensor| tensor.ty().clone()).collect();
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
        let results = written
            .into_iter()
            .map(|arg| match arg {
                Arg::Value(_) => Leaf::Value(*values.next().expect("a result for each tensor")),
                Arg::Number(number) => Leaf::Number(number),
            })
            .collect();
        Ok(Draft { closed, results })
    }

    /// The type of a result; a number's own where it is one.
    fn leaf_type(&self, leaf: usize) -> TensorType {
        match self.results[leaf] {
            Leaf::Value(value) => self.closed.region.graph().ty(value).clone(),
            Leaf::Number(number) => TensorType::scalar(number.dtype()),
        }
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
    pub(super) fn close(self, types: &[TensorType]) -> Result<Closed> {
        let Draft { closed: Closed { region, captures }, results } = self;
        let (mut graph, inputs, parameters, _) = region.into_parts();
        let results = results
            .into_iter()
            .zip(types)
            .map(|(leaf, ty)| conform(&mut graph, leaf, ty))
            .collect::<Result<Values>>()?;
        Ok(Closed { region: Region::new(graph, inputs, parameters, results), captures })
    }

    /// The region with results of their own types, and its captures.
    fn close_as_is(self) -> Result<(Region, Vec<Tensor>)> {
        let types: Vec<TensorType> = (0..self.results.len()).map(|leaf| self.leaf_type(leaf)).collect();
        let closed = self.close(&types)?;
        Ok((closed.region, closed.captures))
    }
}

/// A result converted, broadcast and renamed to a type.
fn conform(graph: &mut Graph, leaf: Leaf, ty: &TensorType) -> Result<Value> {
    let value = match leaf {
        Leaf::Value(value) => graph.as_type(value, ty.dtype)?,
        Leaf::Number(number) => graph.scalar(exact(ty.dtype, number)?)?,
    };
    if graph.ty(value).shape.sizes() == ty.shape.sizes() {
        graph.reshape_to(value, ty.shape.clone())
    } else {
        graph.broadcast(value, ty.shape.clone(), Axes::All)
    }
}

/// The type in which all branches can give one of their results.
fn merge_leaf(branches: &[Draft], leaf: usize) -> Result<TensorType> {
    let mut dtype: Option<DType> = None;
    let mut shape = Shape::scalar();
    for branch in branches {
        if let Leaf::Value(_) = branch.results[leaf] {
            let ty = branch.leaf_type(leaf);
            dtype = Some(dtype.map_or(ty.dtype, |dtype| dtype.merge(ty.dtype)));
            shape = shape.broadcast_with("cond", &ty.shape)?;
        }
    }
    // Numbers give way to the tensors; among themselves they merge as tensors of their own.
    let tensors = dtype.is_some();
    for branch in branches {
        if let Leaf::Number(number) = branch.results[leaf] {
            dtype = Some(match dtype {
                Some(dtype) if tensors => dtype.merge_weak(number),
                Some(dtype) => dtype.merge(number.dtype()),
                None => number.dtype(),
            });
        }
    }
    TensorType::new(dtype.expect("there is a branch"), shape)
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
