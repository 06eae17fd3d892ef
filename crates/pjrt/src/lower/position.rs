//! Positions in the values of a program: integers of any type; negative ones count from the end.

use defn_core::graph::Value;
use defn_core::op::{BinaryOp, ElementWise, Op, OpClass, Primitive, Starts, WhileOp};
use defn_core::region::Region;
use defn_core::{DType, Kind, Number, Scalar, TensorType};

use super::text::{Ssa, Ty, Writer};
use super::{Lowering, Operands, constant};
use crate::element::ElementType as E;

impl Writer {
    /// Converts integers to indices along axes of some sizes: to 32 bits if these hold all integers and sizes, else as
    /// [`Writer::index`] does.
    pub fn narrow_index(&mut self, x: &Ssa, dtype: DType, sizes: &[usize]) -> Ssa {
        let is_narrow = match dtype.kind() {
            Kind::Signed => dtype.bits() <= 32,
            Kind::Unsigned => dtype.bits() < 32,
            Kind::Bool | Kind::Float | Kind::Complex => false,
        };
        let are_short = sizes.iter().all(|&size| i32::try_from(size).is_ok());
        if is_narrow && are_short { self.convert(x, E::S32) } else { self.index(x, dtype) }
    }

    /// Converts integers to signed 64-bit indices; larger integers become the greatest index.
    pub fn index(&mut self, x: &Ssa, dtype: DType) -> Ssa {
        if dtype == DType::U64 {
            let most = self.op(
                "constant",
                &[],
                &format!("value = dense<{}> : tensor<ui64>", i64::MAX),
                Ty::scalar(E::U64),
            );
            let most = self.splat(&most, x.dims());
            let x = self.op("minimum", &[x, &most], "", x.ty.clone());
            return self.convert(&x, E::S64);
        }
        self.convert(x, E::S64)
    }

    /// Positions counted from the front. Their last axis has an entry for each of `axes` of a tensor of `sizes`.
    pub fn positions(&mut self, x: &Ssa, dtype: DType, sizes: &[usize], axes: &[usize]) -> Ssa {
        let indices = self.narrow_index(x, dtype, sizes);
        let counted: Vec<usize> = axes.iter().map(|&axis| sizes[axis]).collect();
        self.counted(&indices, x, dtype, &counted)
    }

    /// Start positions, one for each axis of a tensor of `sizes`.
    pub fn starts(&mut self, kind: &Starts, x: &[Ssa], types: &[&TensorType], sizes: &[usize]) -> Vec<Ssa> {
        let mut starts = Vec::with_capacity(x.len());
        for ((start, ty), &size) in x.iter().zip(types).zip(sizes) {
            let index = self.index(start, ty.dtype);
            starts.push(if kind.count_from_end() {
                self.counted(&index, start, ty.dtype, &[size])
            } else {
                index
            });
        }
        starts
    }

    /// Adds the size of their axis to negative indices. `indices` are converted from `x`. `sizes` has an entry for each
    /// entry of the last axis, or one for all. Nothing is added if the indices are known not to be negative.
    fn counted(&mut self, indices: &Ssa, x: &Ssa, dtype: DType, sizes: &[usize]) -> Ssa {
        if dtype.kind() == Kind::Unsigned || self.is_non_negative(x) || sizes.is_empty() {
            return indices.clone();
        }
        let (all_alike, ty) = (sizes.iter().all(|&size| size == sizes[0]), indices.ty.clone());
        let added = if all_alike {
            let attributes = format!("value = dense<{}> : {ty}", sizes[0]);
            self.op("constant", &[], &attributes, ty.clone())
        } else {
            let row = Ty::new(ty.element, &[sizes.len()]);
            let attributes = format!("value = dense<{sizes:?}> : {row}");
            let row = self.op("constant", &[], &attributes, row);
            self.broadcast_along(&row, &[ty.rank() - 1], &ty.dims)
        };
        let zero = self.number_like(indices, 0);
        let is_below = self.compare(indices, &zero, "LT");
        let sum = self.op("add", &[indices, &added], "", ty);
        self.choose(&is_below, &sum, indices)
    }

    /// A position as a scalar.
    pub fn position(&mut self, position: usize) -> Ssa {
        let ty = Ty::scalar(E::S64);
        self.op("constant", &[], &format!("value = dense<{position}> : {ty}"), ty.clone())
    }
}

impl Lowering {
    /// Whether the result of an op is known to be integers that are not negative.
    pub(super) fn is_non_negative(&self, op: &Op, x: &Operands<'_>, out: &TensorType) -> bool {
        let is_known = |at: usize| {
            let ty = x.types[at];
            // The greatest unsigned numbers become negative in a signed type that is no wider.
            let fits_signed = ty.dtype.kind() == Kind::Unsigned && ty.dtype.bits() < out.dtype.bits();
            fits_signed || self.writer.is_non_negative(&x.values[at])
        };
        let is_positive = |scalar: Scalar| match scalar.value() {
            Number::Int(value) => value >= 0,
            Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => false,
        };
        if out.dtype.kind() != Kind::Signed {
            return false;
        }
        let all_known = || (0..x.types.len()).all(is_known);
        match op.class() {
            OpClass::Constant(scalar) => is_positive(scalar),
            OpClass::Literal(literal) => {
                let mut elements = literal.bytes().chunks_exact(out.dtype.storage_bytes());
                elements.all(|bytes| is_positive(Scalar::from_bytes(out.dtype, bytes)))
            }
            OpClass::Primitive(class) => match class {
                Primitive::Creation | Primitive::Positions => true,
                Primitive::ElementWise(op) => match op {
                    ElementWise::AsType(dtype) => x.types[0].dtype.bits() <= dtype.bits() && is_known(0),
                    ElementWise::Select | ElementWise::Clip => is_known(1) && is_known(2),
                    ElementWise::Binary(BinaryOp::MAX | BinaryOp::BITWISE_AND) => is_known(0) || is_known(1),
                    ElementWise::Binary(BinaryOp::MIN | BinaryOp::QUOTIENT) => is_known(0) && is_known(1),
                    ElementWise::Binary(BinaryOp::REMAINDER) => is_known(0),
                    ElementWise::Unary(_) | ElementWise::Binary(_) | ElementWise::Bitcast(_) => false,
                },
                Primitive::View | Primitive::Broadcast | Primitive::Selection | Primitive::Order => {
                    is_known(0)
                }
                Primitive::Movement => all_known(),
                // Updates may be additions, and sums may wrap.
                Primitive::Update
                | Primitive::Reduction
                | Primitive::Window
                | Primitive::Contraction
                | Primitive::Transform
                | Primitive::Solve => false,
            },
            OpClass::Identity(_) => is_known(0),
            OpClass::Parameter { .. }
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Implicit(_)
            | OpClass::Barrier
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => false,
        }
    }

    /// The state values of a loop that are counters and never negative.
    pub(super) fn counters(&self, op: &WhileOp, x: &Operands<'_>) -> Vec<usize> {
        (0..op.state).filter(|&at| self.counts(op, x, at)).collect()
    }

    /// Whether a state value starts at 0 or above and grows by a step that does not wrap.
    fn counts(&self, op: &WhileOp, x: &Operands<'_>, at: usize) -> bool {
        let is_this = |region: &Region, value: Value| {
            if let Op::Parameter { index, .. } = region.graph().node(value).op { index == at } else { false }
        };
        let number = |region: &Region, value: Value| {
            let constant = if let Op::Parameter { index, .. } = region.graph().node(value).op {
                x.constants[index]
            } else {
                constant(region.graph(), value)
            };
            match constant?.value() {
                Number::Int(number) => Some(number),
                Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => None,
            }
        };
        let dtype = x.types[at].dtype;
        let next = op.body.graph().node(op.body.results()[at]);
        let Op::Binary(BinaryOp::ADD) = next.op else { return false };
        if dtype.kind() != Kind::Signed || !self.writer.is_non_negative(&x.values[at]) {
            return false;
        }
        let (a, b) = (next.inputs[0], next.inputs[1]);
        let step = if is_this(&op.body, a) { b } else { a };
        if !is_this(&op.body, a) && !is_this(&op.body, b) {
            return false;
        }
        let Some(step) = number(&op.body, step).filter(|&step| step >= 0) else { return false };
        // While it is less than another value of its type, adding 1 does not wrap.
        let test = op.cond.graph().node(op.cond.results()[0]);
        let is_below = if let Op::Binary(BinaryOp::LESS) = test.op {
            is_this(&op.cond, test.inputs[0])
        } else if let Op::Binary(BinaryOp::GREATER) = test.op {
            is_this(&op.cond, test.inputs[1])
        } else {
            false
        };
        if is_below && step <= 1 && test.inputs.iter().all(|&input| op.cond.graph().ty(input).dtype == dtype)
        {
            return true;
        }
        let (Some(start), Some(trips)) = (x.constants[at], op.trips) else { return false };
        let (Number::Int(start), Number::Int(highest)) = (start.value(), dtype.highest()) else {
            return false;
        };
        step.checked_mul(i128::from(trips)).is_some_and(|distance| start + distance <= highest)
    }
}

#[cfg(test)]
mod tests {
    use defn_core::builder::{BuildCreate, BuildElementwise, BuildIndex, BuildShape};
    use defn_core::graph::{Graph, Value};
    use defn_core::{Axes, Shape, TensorType};

    use super::*;
    use crate::lower::{Hardware, lower};

    /// Whether the lowered gather adds the size to negative positions, for positions of a dtype.
    fn is_counted(dtype: DType, positions: impl Fn(&mut Graph, Value) -> Value) -> bool {
        let inputs = vec![
            TensorType::new(DType::F32, Shape::new(&[4])).unwrap(),
            TensorType::new(dtype, Shape::new(&[2, 1])).unwrap(),
        ];
        let mut graph = Graph::new();
        let x = graph.parameter(0, inputs[0].clone());
        let at = graph.parameter(1, inputs[1].clone());
        let at = positions(&mut graph, at);
        let read = graph.gather(x, at, Axes::All).unwrap();
        let region = Region::new(graph, inputs, 2, [read].into_iter().collect());
        lower(&region, &[], Hardware::Device).unwrap().text.contains("comparison_direction LT")
    }

    #[test]
    fn what_is_known_not_to_be_below_zero_is_not_looked_at() {
        assert!(is_counted(DType::S32, |_, at| at));
        assert!(is_counted(DType::S8, |graph, at| graph.as_type(at, DType::S64).unwrap()));
        assert!(!is_counted(DType::U8, |_, at| at));
        assert!(!is_counted(DType::U32, |graph, at| graph.as_type(at, DType::S64).unwrap()));
        // In a signed type of equal width the greatest numbers are negative.
        assert!(is_counted(DType::U32, |graph, at| graph.as_type(at, DType::S32).unwrap()));
        assert!(!is_counted(DType::S32, |graph, _| {
            let at = graph.iota(Shape::new(&[2]), DType::S32, None).unwrap();
            graph.reshape_to(at, Shape::new(&[2, 1])).unwrap()
        }));
        assert!(!is_counted(DType::S32, |graph, at| graph.max(at, 0).unwrap()));
        assert!(is_counted(DType::S32, |graph, at| graph.max(at, -1).unwrap()));
    }
}
