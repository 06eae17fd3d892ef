//! The unknowns of a system as one vector for each lane.

use crate::builder::{BuildElementwise, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::shape::{Shape, TensorType};

/// How values become one vector for each lane. Floats of less than 32 bits are widened, so that only the solution is
/// rounded.
pub(crate) struct Coordinates {
    types: Vec<TensorType>,
    lanes: usize,
    /// The number of elements of each value in a lane.
    sizes: Vec<usize>,
    /// Whether the real and the imaginary part of complex values are separate coordinates.
    by_parts: bool,
    dtype: DType,
}

impl Coordinates {
    /// Coordinates of values whose first `lanes` axes count lanes. Complex values stay complex if the system is linear over
    /// complex numbers, and all unknowns are complex.
    pub(crate) fn new(types: Vec<TensorType>, lanes: usize, is_complex_linear: bool) -> Coordinates {
        let all_complex = types.iter().all(|ty| ty.dtype.is_complex());
        let by_parts = !(all_complex && is_complex_linear) && types.iter().any(|ty| ty.dtype.is_complex());
        let parts = types.iter().map(|ty| if by_parts { ty.dtype.to_real() } else { ty.dtype });
        let dtype = parts.fold(DType::F32, DType::merge);
        let lane_count: usize = types.first().map_or(1, |ty| ty.shape.sizes()[..lanes].iter().product());
        let sizes = types.iter().map(|ty| ty.shape.sizes()[lanes..].iter().product()).collect();
        Coordinates { types, lanes: lane_count, sizes, by_parts, dtype }
    }

    /// The types of the values.
    pub(crate) fn types(&self) -> &[TensorType] {
        &self.types
    }

    /// The number of lanes.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// The dtype of the vectors.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of unknowns of a lane.
    pub(crate) fn count(&self) -> usize {
        let parts = |(ty, size): (&TensorType, &usize)| size * (1 + usize::from(self.has_parts(ty)));
        self.types.iter().zip(&self.sizes).map(parts).sum()
    }

    /// Whether there are no unknowns.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes * self.count() == 0
    }

    fn has_parts(&self, ty: &TensorType) -> bool {
        self.by_parts && ty.dtype.is_complex()
    }

    /// The vectors of values.
    pub(crate) fn join(&self, graph: &mut Graph, values: &[Value]) -> Result<Value> {
        let mut parts = Vec::with_capacity(values.len());
        for ((&value, ty), &size) in values.iter().zip(&self.types).zip(&self.sizes) {
            let flat = graph.reshape_to(value, Shape::new(&[self.lanes, size]))?;
            if self.has_parts(ty) {
                parts.push(graph.real(flat)?);
                parts.push(graph.imag(flat)?);
            } else {
                parts.push(flat);
            }
        }
        for part in &mut parts {
            *part = region::convert(graph, *part, self.dtype)?;
        }
        match parts[..] {
            [only] => Ok(only),
            _ => graph.concatenate(&parts, 1),
        }
    }

    /// The values of vectors.
    pub(crate) fn split(&self, graph: &mut Graph, vectors: Value) -> Result<Vec<Value>> {
        let mut start = 0;
        let count = self.count();
        let mut next = |graph: &mut Graph, size: usize| -> Result<Value> {
            let part = if size == count {
                vectors
            } else {
                graph.slice_along_axis(vectors, start as i64, size as i64, 1, 1)?
            };
            start += size;
            Ok(part)
        };
        let mut values = Vec::with_capacity(self.types.len());
        for (ty, &size) in self.types.iter().zip(&self.sizes) {
            let first = next(graph, size)?;
            let flat = match self.has_parts(ty) {
                true => {
                    let imag = next(graph, size)?;
                    graph.complex(first, imag)?
                }
                false => first,
            };
            let flat = region::convert(graph, flat, ty.dtype)?;
            values.push(graph.emit_one(Op::Reshape { shape: ty.shape.clone() }, &[flat])?);
        }
        Ok(values)
    }
}
