//! A factorization of the matrix, whose columns are the images of the unit vectors.

use super::Problem;
use crate::builder::{BuildCreate, BuildElementwise, BuildMatrix, BuildShape, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::shape::Shape;

/// The solution by LU. It is infinite or NaN where a pivot is 0.
pub(super) fn solve(graph: &mut Graph, problem: &Problem<'_>, captures: &[Value], b: Value) -> Result<Value> {
    let (lanes, n, dtype) =
        (problem.coordinates.lanes(), problem.coordinates.count(), problem.coordinates.dtype());
    let state = [graph.constant(DType::S32, 0)?, graph.full(Shape::new(&[lanes, n, n]), dtype, 0)?];
    let last = region::while_(
        graph,
        Some(n as u64),
        &state,
        captures,
        |graph, state, _| graph.less(state[0], n as i64),
        |graph, state, captures| {
            let positions = graph.iota(Shape::new(&[lanes, n]), DType::S32, Some(1.into()))?;
            let here = graph.equal(positions, state[0])?;
            let unit = graph.as_type(here, dtype)?;
            let column = problem.apply(graph, captures, unit)?;
            let column = graph.new_axis(column, 2, None)?;
            let starts = [Start::Index(0), Start::Index(0), Start::Value(state[0])];
            Ok(vec![graph.add(state[0], 1)?, graph.put_slice(state[1], &starts, column)?])
        },
    )?;
    graph.solve(last[1], b)
}
