//! Random graphs: linear systems and factorizations.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{Block, CompositeBlock, Op, QrMode, Tolerance, Transform};
use defn_core::{DType, Shape, TensorType};

use super::Random;

fn is_square(ty: &TensorType) -> bool {
    match ty.shape.sizes() {
        [.., rows, columns] => rows == columns,
        [] | [_] => false,
    }
}

impl Random {
    /// An op of these families, with operands that mostly fit.
    pub(super) fn matrices(&mut self, graph: &Graph, values: &[Value]) -> (Op, Values) {
        let a = self.fitting(graph, values, is_square);
        if !is_square(graph.ty(a)) {
            let n = self.one(&[2, 3, 4, 0]);
            let dtype = self.one(&[DType::F32, DType::F32, DType::C64, DType::S32]);
            return (Op::Eye { shape: Shape::new(&[n, n]), dtype }, Values::new());
        }
        let one: Values = [a].into_iter().collect();
        let block = match self.below(16) {
            0 => Block::Cholesky,
            1 => Block::Lu,
            2 => Block::Determinant,
            3 => Block::Qr { mode: self.one(QrMode::ALL), eps: Tolerance(1e-10) },
            4 => Block::Svd { max_iter: 1 + self.below(100), full_matrices: self.flip() },
            5 => Block::Eigh { max_iter: 1 + self.below(1000), eps: Tolerance(0.0) },
            6 => Block::Composite(CompositeBlock::Expm),
            7 => Block::Composite(CompositeBlock::Sqrtm),
            8 => Block::Composite(CompositeBlock::Logm),
            9 => Block::Schur,
            10 => Block::Hessenberg,
            11 => Block::Eig { vectors: self.flip() },
            12 => Block::Svdvals,
            13 => Block::Eigvalsh,
            which => {
                let system = graph.ty(a).shape.clone();
                let batch = &system.sizes()[..system.rank() - 2];
                let n = system.sizes()[system.rank() - 1];
                let right = self.fitting(graph, values, |ty| match ty.shape.sizes().strip_prefix(batch) {
                    Some([size]) | Some([size, _]) => *size == n,
                    Some(_) | None => false,
                });
                let operands = [a, right].into_iter().collect();
                if which == 14 {
                    return (Op::Block(Block::Solve), operands);
                }
                let op = Op::TriangularSolve {
                    lower: self.flip(),
                    left_side: self.flip(),
                    transform_a: self.one(Transform::ALL),
                };
                return (op, operands);
            }
        };
        (Op::Block(block), one)
    }
}
