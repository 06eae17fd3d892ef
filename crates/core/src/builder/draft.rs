//! Drafts of regions: the results of a traced function before they are converted to the required types.

use super::{Arg, BuildElementwise, BuildShape, Builder, Ops, exact_scalar};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value, Values};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Axes, Shape, TensorType};
use crate::stack;
use crate::tensor::Tensor;
use crate::trace::{Closed, Trace, depth, is_same};
use crate::vectorize::{self, NamedAxes, NamedAxis, join_into};
use crate::weak::number_of;

/// The maximum nesting of traced functions. Passes recurse over nested regions, and the thread's stack limits that.
const DEPTH_LIMIT: usize = 100;

/// The regions with one shared list of captures, in which each tensor appears once, and that list.
///
/// # Panics
/// Not for traced regions, because they have one capture for each captured tensor.
pub(super) fn unify_captures(closed: Vec<Closed>) -> (Vec<Region>, Vec<Tensor>) {
    let mut shared: Vec<Tensor> = Vec::new();
    let mut positions: Vec<Vec<usize>> = Vec::with_capacity(closed.len());
    for Closed { captures, .. } in &closed {
        let position_of = |capture: &Tensor| {
            shared.iter().position(|known| is_same(known, capture)).unwrap_or_else(|| {
                shared.push(capture.clone());
                shared.len() - 1
            })
        };
        positions.push(captures.iter().map(position_of).collect());
    }
    let types: Vec<TensorType> = shared.iter().map(|tensor| tensor.whole().clone()).collect();
    let regions = closed
        .into_iter()
        .zip(positions)
        .map(|(closed, positions)| closed.region.with_captures(&positions, &types))
        .collect();
    (regions, shared)
}

/// A traced region whose results may still be plain numbers.
pub(super) struct Draft {
    op: &'static str,
    closed: Closed,
    pub(super) results: Vec<DraftResult>,
    /// The vectorized axes of each result. They are the leading axes of its value.
    pub(super) lanes: Vec<NamedAxes>,
    /// The weak results, as tensors outside the region. They take the required dtype.
    weak: Vec<Option<Tensor>>,
}

/// The required type of a result; `ty` does not include its vectorized axes.
#[derive(Clone)]
pub(super) struct ResultType {
    pub(super) ty: TensorType,
    pub(super) lanes: NamedAxes,
}

impl From<TensorType> for ResultType {
    fn from(ty: TensorType) -> ResultType {
        ResultType { ty, lanes: NamedAxes::new() }
    }
}

/// A result of a draft.
#[derive(Clone, Copy)]
pub(super) enum DraftResult {
    /// A result of the region.
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
        let depth = depth();
        if depth >= DEPTH_LIMIT {
            return Err(ErrorKind::TooNested { op, depth }.into());
        }
        stack::require(op)?;
        let (tracing, parameters) = Trace::begin(parameters);
        let tracing = tracing.at(ops.source.locate());
        let returned = function(ops, &parameters)?;
        let tensors: Vec<Tensor> = returned
            .iter()
            .filter_map(|arg| match arg {
                Arg::Value(tensor) => Some(tensor.clone()),
                Arg::Number(_) => None,
            })
            .collect();
        let closed = tracing.finish(op, &tensors)?;
        let mut values = closed.region.results().iter();
        let lanes = returned
            .iter()
            .map(|arg| match arg {
                Arg::Value(tensor) => tensor.vectorized_axes().into(),
                Arg::Number(_) => NamedAxes::new(),
            })
            .collect();
        let weak = |arg: &Arg<Tensor>| match arg {
            Arg::Value(tensor) => tensor.is_weak().then(|| tensor.clone()),
            Arg::Number(_) => None,
        };
        let weak = returned.iter().map(weak).collect();
        let results = returned
            .into_iter()
            .map(|arg| match arg {
                Arg::Value(_) => DraftResult::Value(*values.next().expect("a result for each tensor")),
                Arg::Number(number) => DraftResult::Number(number),
            })
            .collect();
        Ok(Draft { op, closed, results, lanes, weak })
    }

    /// The type of a result without its vectorized axes; for a number, its default type.
    pub(super) fn leaf_type(&self, leaf: usize) -> TensorType {
        match self.results[leaf] {
            DraftResult::Value(value) => {
                let TensorType { dtype, shape } = self.closed.region.graph().ty(value).clone();
                let lanes = self.lanes[leaf].len();
                if lanes == 0 {
                    return TensorType { dtype, shape };
                }
                TensorType { dtype, shape: Shape::from_axes(shape.entries().skip(lanes)) }
            }
            DraftResult::Number(number) => TensorType::scalar(number.dtype()),
        }
    }

    pub(super) fn branch_result(&self, leaf: usize) -> BranchResult {
        match self.number(leaf) {
            None => {
                BranchResult::Value(ResultType { ty: self.leaf_type(leaf), lanes: self.lanes[leaf].clone() })
            }
            Some(number) => BranchResult::Number(number),
        }
    }

    /// The number of a weak result; `None` for other results.
    pub(super) fn number(&self, leaf: usize) -> Option<Number> {
        match self.results[leaf] {
            DraftResult::Value(_) => self.weak[leaf].as_ref().and_then(Tensor::weakness),
            DraftResult::Number(number) => Some(number),
        }
    }

    /// The vectorized axes of a result.
    pub(super) fn lanes(&self, leaf: usize) -> &[NamedAxis] {
        &self.lanes[leaf]
    }

    /// The type of a result; a weak result takes `dtype`, merged with its kind.
    pub(super) fn result_type(&self, leaf: usize, dtype: DType) -> TensorType {
        let mut ty = self.leaf_type(leaf);
        if let Some(number) = self.number(leaf) {
            ty.dtype = dtype.merge_weak(number);
        }
        ty
    }

    /// The region with results of exactly these types.
    pub(super) fn close(mut self, ops: &mut Ops, types: &[ResultType]) -> Result<Closed> {
        for (leaf, ty) in types.iter().enumerate() {
            self.promote_weak_result(ops, leaf, ty.ty.dtype)?;
        }
        let Draft { op, closed: Closed { region, captures, lanes: used, further }, results, lanes, .. } =
            self;
        let (mut graph, inputs, parameters, _) = region.into_parts();
        let results = results
            .into_iter()
            .zip(&lanes)
            .zip(types)
            .map(|((leaf, lanes), ty)| convert_result(op, &mut graph, leaf, lanes, ty))
            .collect::<Result<Values>>()?;
        Ok(Closed { region: Region::new(graph, inputs, parameters, results), captures, lanes: used, further })
    }
}

impl Draft {
    /// Converts a weak result to the dtype that it takes. The conversion is outside the region, which captures the
    /// converted value.
    fn promote_weak_result(&mut self, ops: &mut Ops, leaf: usize, dtype: DType) -> Result<()> {
        let Some(tensor) = self.weak[leaf].take() else { return Ok(()) };
        let own = tensor.ty().dtype;
        if dtype == own || dtype.merge_weak(number_of(own)) != dtype {
            return Ok(());
        }
        let value = ops.in_dtype(tensor, dtype)?;
        let Closed { region, captures, .. } = &mut self.closed;
        let (mut graph, mut inputs, parameters, results) = region.clone().into_parts();
        self.results[leaf] = DraftResult::Value(graph.parameter(inputs.len(), value.whole().clone()));
        inputs.push(value.whole().clone());
        captures.push(value.flat());
        *region = Region::new(graph, inputs, parameters, results);
        Ok(())
    }
}

/// A result that is converted, broadcast and renamed to a type.
fn convert_result(
    op: &'static str,
    graph: &mut Graph,
    leaf: DraftResult,
    from: &[NamedAxis],
    to: &ResultType,
) -> Result<Value> {
    let ResultType { ty, lanes } = to;
    let value = match leaf {
        DraftResult::Value(value) => graph.as_type(value, ty.dtype)?,
        DraftResult::Number(number) => graph.scalar(exact_scalar(op, ty, number)?)?,
    };
    if !lanes.is_empty() {
        return vectorize::broadcast_lanes(graph, &value, from, lanes, &ty.shape);
    }
    if graph.ty(value).shape.sizes() == ty.shape.sizes() {
        graph.reshape_to(value, ty.shape.clone())
    } else {
        graph.broadcast(value, ty.shape.clone(), Axes::All)
    }
}

/// A result of a branch before the branches' types merge.
pub(super) enum BranchResult {
    Value(ResultType),
    Number(Number),
}

/// The merged type of one result of all branches.
pub(super) fn merge_branch_results(results: impl Iterator<Item = BranchResult>) -> Result<ResultType> {
    let (mut lanes, mut shape) = (NamedAxes::new(), Shape::scalar());
    let (mut dtype, mut numbers) = (None, Vec::new());
    for result in results {
        match result {
            BranchResult::Number(number) => numbers.push(number),
            BranchResult::Value(value) => {
                join_into("cond", &mut lanes, &value.lanes)?;
                shape = shape.broadcast_with("cond", &value.ty.shape)?;
                dtype = Some(dtype.map_or(value.ty.dtype, |dtype: DType| dtype.merge(value.ty.dtype)));
            }
        }
    }
    // Numbers take the dtype of the tensors. Without tensors they merge as tensors of their default dtypes.
    let tensors = dtype.is_some();
    for number in numbers {
        dtype = Some(match dtype {
            Some(dtype) if tensors => dtype.merge_weak(number),
            Some(dtype) => dtype.merge(number.dtype()),
            None => number.dtype(),
        });
    }
    Ok(ResultType { ty: TensorType::new(dtype.expect("there is a branch"), shape)?, lanes })
}

pub(super) fn check_predicate(op: &'static str, ty: &TensorType) -> Result<()> {
    if ty.shape.rank() == 0 {
        return Ok(());
    }
    Err(ErrorKind::Predicate { op, got: ty.clone() }.into())
}
