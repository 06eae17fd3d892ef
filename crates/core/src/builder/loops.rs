//! Loops over functions that are traced into regions, and over the positions of vectorized axes.

use std::sync::Arc;

use super::draft::{Draft, ResultType, check_predicate, unify_captures};
use super::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder, Ops, Start};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::infer;
use crate::origin::{OperandInfo, Origin};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};
use crate::tensor::Tensor;
use crate::vectorize::{self, NamedAxes, NamedAxis, join_into, position};

/// What is known of a loop, and how its gradient is computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopOptions {
    /// The trip count, if the caller knows it.
    pub trips: Option<u64>,
    /// The number of states that the gradient may keep, from 1 to [`MOST_SNAPSHOTS`]. Without it the gradient decides.
    pub snapshots: Option<usize>,
}

/// More snapshots than any loop has memory for.
pub const MOST_SNAPSHOTS: usize = 1 << 30;

impl From<Option<u64>> for LoopOptions {
    fn from(trips: Option<u64>) -> LoopOptions {
        LoopOptions { trips, snapshots: None }
    }
}

/// A traced function of a loop's state. It is traced again if the state gains vectorized axes.
type StateFn<'a, R> = &'a mut dyn FnMut(&mut Ops, &[Tensor]) -> Result<R>;

/// Repeats `body` on the state while `condition` returns a scalar that is not zero, and returns the last state.
///
/// The state has its initial vectorized axes and those that the body adds; both functions may be traced several times
/// to find them. If the condition is vectorized, the loop runs for each position separately, and the condition's axes
/// come first in the last state.
///
/// A plain number or a weak value in the initial state takes the dtype that the body returns for it, at most once.
/// The body is traced again until no weak value changes its dtype.
///
/// # Errors
/// A condition that is no scalar, a body whose results differ from the state in number or type, and the errors of
/// both functions.
pub fn while_<'a>(
    ops: &mut Ops,
    init: impl IntoIterator<Item = impl Into<Arg<Tensor>>>,
    options: impl Into<LoopOptions>,
    mut condition: impl FnMut(&mut Ops, &[Tensor]) -> Result<Arg<Tensor>> + 'a,
    mut body: impl FnMut(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>> + 'a,
) -> Result<Vec<Tensor>> {
    repeat(ops, init.into_iter().map(Into::into).collect(), options.into(), &mut condition, &mut body)
}

fn repeat(
    ops: &mut Ops,
    init: Vec<Arg<Tensor>>,
    options: LoopOptions,
    condition: StateFn<'_, Arg<Tensor>>,
    body: StateFn<'_, Vec<Arg<Tensor>>>,
) -> Result<Vec<Tensor>> {
    // The weak values of the initial state, as the caller passed them.
    let mut weak: Vec<Option<Arg<Tensor>>> =
        init.iter().map(|arg| ops.weak_number(arg).map(|_| arg.clone())).collect();
    let init = init.into_iter().map(|arg| ops.operand(arg)).collect::<Result<Vec<_>>>()?;
    let mut state = position::read_all(ops, &init)?.into_vec();
    loop {
        let lanes: Vec<NamedAxes> = state.iter().map(|tensor| tensor.vectorized_axes().into()).collect();
        let types: Vec<TensorType> = state.iter().map(|tensor| tensor.whole().clone()).collect();
        let wrap = |state: &[Tensor]| -> Vec<Tensor> {
            state.iter().zip(&lanes).map(|(tensor, axes)| tensor.clone().with_vectorized(axes)).collect()
        };
        let predicate =
            Draft::trace(ops, "while_", &types, |ops, state| Ok(vec![condition(ops, &wrap(state))?]))?;
        let by_position = !predicate.lanes[0].is_empty();
        // The dtypes of weak values are determined by tracing the body for all positions together.
        if by_position && weak.iter().all(Option::is_none) {
            check_predicate("while", &predicate.leaf_type(0))?;
            let axes = predicate.lanes[0].clone();
            drop(predicate);
            return loop_over_positions(ops, state, &axes, options, (condition, body));
        }
        let traced = Draft::trace(ops, "while_", &types, |ops, state| body(ops, &wrap(state)));
        if by_position && traced.is_err() {
            // The body may be valid for single positions although it is invalid for all positions together.
            weak.clear();
            continue;
        }
        let next = traced?;
        let mut is_changed = false;
        for (leaf, (tensor, slot)) in state.iter_mut().zip(&mut weak).enumerate().take(next.results.len()) {
            let Some(arg) = slot else { continue };
            let Some(number) = ops.weak_number(arg) else { continue };
            let before = tensor.ty().dtype;
            if let Some(dtype) = promoted_dtype(number, before, next.result_type(leaf, before).dtype) {
                *tensor = ops.promote_weak("while", arg.clone(), &tensor.ty().with_dtype(dtype)?)?;
                // Each value converts at most once. Its new dtype may convert other weak values in the next trace.
                *slot = None;
                is_changed = true;
            }
        }
        if !is_changed {
            weak.clear();
        }
        if by_position {
            continue;
        }
        for (tensor, axes) in state.iter_mut().zip(&next.lanes) {
            let mut joined: NamedAxes = tensor.vectorized_axes().into();
            join_into("while", &mut joined, axes)?;
            if joined[..] != *tensor.vectorized_axes() {
                *tensor = vectorize::broadcast_vectorized(ops, "while", tensor, &joined)?;
                is_changed = true;
            }
        }
        if is_changed {
            continue;
        }
        let bare = predicate.leaf_type(0).into();
        let types: Vec<ResultType> = (0..next.results.len())
            .map(|leaf| ResultType {
                ty: state_type(&next, leaf, state.get(leaf).map(Tensor::ty)),
                lanes: lanes.get(leaf).cloned().unwrap_or_default(),
            })
            .collect();
        // `infer` would report the types with vectorized axes; the user only knows those without them.
        for (index, (tensor, got)) in state.iter().zip(&types).enumerate() {
            if tensor.is_vectorized() && *tensor.ty() != got.ty {
                let (op, what) = ("while", "state".to_owned());
                let (expected, got) = (tensor.ty().clone(), got.ty.clone());
                let hint = infer::state_hint(&expected, &got);
                return Err(ErrorKind::LoopState { op, what, index, expected, got, hint }.into());
            }
        }
        let closed = vec![predicate.close(ops, &[bare])?, next.close(ops, &types)?];
        let (mut regions, captures) = unify_captures(closed);
        let body = regions.pop().expect("two regions went in");
        let condition = regions.pop().expect("two regions went in");
        let flat: Vec<Tensor> = state.iter().map(Tensor::flat).collect();
        let body = Arc::new(body);
        let last = ops
            .emit_while(Arc::new(condition), body.clone(), options, &flat, &captures)
            .map_err(|error| with_origins(error, &state, &body))?;
        return Ok(last.into_iter().zip(&lanes).map(|(tensor, axes)| tensor.with_vectorized(axes)).collect());
    }
}

/// A loop whose condition differs between the positions of `axes`: an outer loop over the positions, with an inner
/// loop for each.
fn loop_over_positions(
    ops: &mut Ops,
    init: Vec<Tensor>,
    axes: &NamedAxes,
    options: LoopOptions,
    (condition, body): (StateFn<'_, Arg<Tensor>>, StateFn<'_, Vec<Arg<Tensor>>>),
) -> Result<Vec<Tensor>> {
    let count: usize = axes.iter().map(|(_, size)| size).product();
    if count == 0 {
        // Without positions no state changes.
        return broadcast_over_positions(ops, &init, axes);
    }
    let dtype = if i32::try_from(count).is_ok() { DType::S32 } else { DType::S64 };
    let mut outer = vec![ops.constant(dtype, 0)?];
    for tensor in &init {
        // The positions become one axis of the outer state; its other vectorized axes stay vectorized.
        let is_other = |lane: &&NamedAxis| !axes.iter().any(|axis| axis.0 == lane.0);
        let others: NamedAxes = tensor.vectorized_axes().iter().filter(is_other).cloned().collect();
        let order: NamedAxes = others.iter().chain(axes).cloned().collect();
        let broadcast = vectorize::broadcast_vectorized(ops, "while", tensor, &order)?.flat();
        let lead = others.iter().map(|&(_, size)| (size, None));
        let shape = Shape::from_axes(lead.chain([(count, None)]).chain(tensor.ty().shape.entries()));
        outer.push(ops.reshape_to(broadcast, shape)?.with_vectorized(&others));
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
            let inner = inner.into_iter().map(Arg::Value).collect();
            let options = LoopOptions { trips: None, ..options };
            let done = repeat(ops, inner, options, &mut *condition, &mut *body);
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
        let others: NamedAxes = tensor.vectorized_axes().into();
        let all: NamedAxes = others.iter().chain(axes).cloned().collect();
        let shape = vectorize::whole_shape(&all, &before.ty().shape);
        let tensor = ops.reshape_to(tensor.flat(), shape)?.with_vectorized(&all);
        let mut order = axes.clone();
        join_into("while", &mut order, before.vectorized_axes())?;
        join_into("while", &mut order, &others)?;
        results.push(vectorize::broadcast_vectorized(ops, "while", &tensor, &order)?);
    }
    Ok(results)
}

/// The initial state, broadcast over the positions.
fn broadcast_over_positions(ops: &mut Ops, init: &[Tensor], axes: &NamedAxes) -> Result<Vec<Tensor>> {
    init.iter()
        .map(|tensor| {
            let mut order = axes.clone();
            join_into("while", &mut order, tensor.vectorized_axes())?;
            vectorize::broadcast_vectorized(ops, "while", tensor, &order)
        })
        .collect()
}

/// The dtype that a weak value of a loop's initial state takes, or `None` if it keeps its dtype `before`. `after` is
/// the dtype that the body returned for it.
pub fn promoted_dtype(number: Number, before: DType, after: DType) -> Option<DType> {
    (after != before && after.merge_weak(number) == after).then_some(after)
}

/// The type of a result of a loop's body: the state's type if numbers and missing names can adapt to it, else its own
/// type, which `infer` then rejects with a reason.
fn state_type(body: &Draft, leaf: usize, expected: Option<&TensorType>) -> TensorType {
    let mut got = body.leaf_type(leaf);
    let Some(expected) = expected else { return got };
    if let Some(number) = body.number(leaf) {
        got.dtype = expected.dtype.merge_weak(number);
    }
    if expected.is_compatible(&got) { expected.clone() } else { got }
}

/// Adds to the error where the value whose type changed was created, before the loop and in it.
#[cold]
fn with_origins(error: Error, state: &[Tensor], body: &Region) -> Error {
    let ErrorKind::LoopState { index, .. } = error.kind() else { return error };
    let (Some(before), Some(after)) = (state.get(*index), body.results().get(*index)) else { return error };
    let location = body.graph().nodes().get(after.node as usize).and_then(|node| node.location.clone());
    let ty = body.graph().ty(*after).clone();
    let after = OperandInfo { name: Some("after"), ty, origin: Origin::Computed(location) };
    error.with_operand_info(vec![OperandInfo::new(Some("before"), before), after])
}
