//! Random graphs: reads and writes at positions, sorts and scans.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{Block, CumulativeOp, Direction, Op, ScatterOp};
use defn_core::shape::AxisList;
use defn_core::{DType, TensorType};

use super::Random;

impl Random {
    /// One of the values whose type is right, or any value if there is none.
    pub(super) fn fitting(
        &mut self,
        graph: &Graph,
        values: &[Value],
        is_right: impl Fn(&TensorType) -> bool,
    ) -> Value {
        let fit: Vec<Value> = values.iter().copied().filter(|&value| is_right(graph.ty(value))).collect();
        if fit.is_empty() { self.one(values) } else { self.one(&fit) }
    }

    /// An op of these families, with operands that mostly fit.
    pub(super) fn positions(&mut self, graph: &Graph, values: &[Value]) -> (Op, Values) {
        let x = self.fitting(graph, values, |ty| ty.shape.rank() > 0);
        let shape = graph.ty(x).shape.clone();
        let Some(axis) = self.axis(&shape) else {
            // Indices for the other ops: positions with one entry.
            let shape = defn_core::Shape::new(&[self.one(&[1, 2, 3]), 1]);
            return (
                Op::Iota { shape, dtype: self.one(&[DType::S32, DType::U8]), axis: None },
                Values::new(),
            );
        };
        let is_position = |ty: &TensorType| {
            ty.dtype.is_integer() && ty.shape.sizes().last().is_some_and(|&entries| entries <= shape.rank())
        };
        match self.below(10) {
            0 => {
                let indices = self.fitting(graph, values, is_position);
                let entries = graph.ty(indices).shape.sizes().last().copied().unwrap_or(0);
                let axes: AxisList = shape.axes().take(entries).collect();
                (Op::Gather { axes }, [x, indices].into_iter().collect())
            }
            1 => {
                let is_list = |ty: &TensorType| is_position(ty) && ty.shape.rank() == 2;
                let indices = self.fitting(graph, values, is_list);
                let list = graph.ty(indices).shape.clone();
                let entries = list.sizes().last().copied().unwrap_or(0);
                let rest = &shape.sizes()[entries.min(shape.rank())..];
                let updates = self.fitting(graph, values, |ty| match ty.shape.sizes() {
                    [count, own @ ..] => {
                        *count == list.sizes().first().copied().unwrap_or(0)
                            && own.len() == rest.len()
                            && own.iter().zip(rest).all(|(own, whole)| own <= whole)
                    }
                    [] => false,
                });
                let axes: AxisList = shape.axes().take(entries).collect();
                let op = Op::Scatter { op: self.one(ScatterOp::ALL), axes };
                (op, [x, indices, updates].into_iter().collect())
            }
            2 => {
                let indices = self.fitting(graph, values, |ty| ty.dtype.is_integer());
                let block = if self.flip() { Block::Take { axis } } else { Block::TakeAlongAxis { axis } };
                (Op::Block(block), [x, indices].into_iter().collect())
            }
            3 => {
                let x = self.fitting(graph, values, |ty| ty.dtype.is_integer() && ty.shape.rank() > 0);
                match self.axis(&graph.ty(x).shape) {
                    Some(axis) => (Op::Block(Block::TakeAlongAxis { axis }), [x, x].into_iter().collect()),
                    None => (Op::StopGrad, [x].into_iter().collect()),
                }
            }
            4 => {
                let direction = self.one(Direction::ALL);
                let dtype = self.one(&[DType::S32, DType::U8]);
                let sort = Op::Sort { axis, direction };
                let op = if self.flip() { sort } else { Op::Argsort { axis, direction, dtype } };
                (op, [x].into_iter().collect())
            }
            5 => {
                let size = shape.sizes()[shape.rank() - 1];
                (Op::Block(Block::TopK { k: 1 + self.below(size) }), [x].into_iter().collect())
            }
            6 => {
                let kth = self.below(shape[axis]);
                let (values, places) = (Block::Partition { axis, kth }, Block::Argpartition { axis, kth });
                (Op::Block(if self.flip() { values } else { places }), [x].into_iter().collect())
            }
            7 => {
                let is_vector = |ty: &TensorType| ty.shape.rank() == 1 && !ty.dtype.is_complex();
                let among = self.fitting(graph, values, is_vector);
                (Op::Block(Block::Isin), [x, among].into_iter().collect())
            }
            8 => {
                let is_vector = |ty: &TensorType| ty.shape.rank() == 1 && ty.dtype.is_integer();
                let ids = self.fitting(graph, values, is_vector);
                (Op::Block(Block::Bincount { length: self.below(5) }), [ids].into_iter().collect())
            }
            _ => {
                let block = Block::Cumulative { op: self.one(CumulativeOp::ALL), axis, reverse: self.flip() };
                (Op::Block(block), [x].into_iter().collect())
            }
        }
    }
}
