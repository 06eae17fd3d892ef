//! Random graphs: ops that generate random bits.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{Block, Op};
use defn_core::{DType, Shape, TensorType};

use super::Random;

impl Random {
    /// An op that draws from a key and operands for it, or an op that creates a key.
    pub(super) fn drawing(&mut self, graph: &Graph, values: &[Value]) -> (Op, Values) {
        let key = self.fitting(graph, values, |ty| ty.dtype == DType::U32 && ty.shape.sizes() == [2]);
        let ty = graph.ty(key);
        if ty.dtype != DType::U32 || ty.shape.sizes() != [2] {
            let op = Op::Iota { shape: Shape::new(&[2]), dtype: DType::U32, axis: None };
            return (op, Values::new());
        }
        let count = self.below(5);
        let one = [key].into_iter().collect();
        let bound = self.fitting(graph, values, |ty| ty.dtype == DType::U64 && ty.shape.rank() == 0);
        if graph.ty(bound) == &TensorType::scalar(DType::U64) && self.below(2) == 0 {
            let dtype = self.one(&[DType::U2, DType::S8, DType::U16, DType::S32, DType::U64]);
            return (Op::Block(Block::RandomBelow { dtype, count }), [key, bound].into_iter().collect());
        }
        match self.below(3) {
            0 => {
                let dtype = self.one(&[DType::U2, DType::U8, DType::U16, DType::U32, DType::U64]);
                (Op::Block(Block::RandomBits { dtype, count }), one)
            }
            1 => {
                let dtype = self.one(&[DType::F8E4M3FN, DType::BF16, DType::F16, DType::F32, DType::F64]);
                (Op::Block(Block::RandomUniform { dtype, count }), one)
            }
            _ => {
                let counters = self.fitting(graph, values, |ty| {
                    ty.dtype == DType::U32 && ty.shape.sizes().first() == Some(&2)
                });
                (Op::Block(Block::Threefry), [key, counters].into_iter().collect())
            }
        }
    }
}
