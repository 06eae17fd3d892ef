//! Random graphs: windows, convolutions, transforms and folds.

use std::sync::Arc;

use defn_core::TensorType;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{
    Block, ConvOp, Fft2Op, FftOp, FoldOp, Op, Tolerance, Window, WindowFoldOp, WindowOp, WindowScatterOp,
};
use defn_core::shape::{AxisList, Shape};
use smallvec::SmallVec;

use super::Random;

impl Random {
    /// A window that mostly fits a shape.
    fn window(&mut self, shape: &Shape) -> Window {
        Window {
            sizes: shape.sizes().iter().map(|&size| 1 + self.below(size.min(3))).collect(),
            strides: shape.axes().map(|_| 1 + self.below(2)).collect(),
            padding: shape.axes().map(|_| (self.below(3) as i64 - 1, self.below(3) as i64)).collect(),
            dilations: shape.axes().map(|_| 1 + self.below(2)).collect(),
        }
    }

    fn conv(&mut self, shape: &Shape) -> ConvOp {
        let spatial = shape.rank().saturating_sub(2);
        let identity: AxisList = shape.axes().collect();
        let mut turned = identity.clone();
        turned.rotate_left(self.below(shape.rank()));
        ConvOp {
            strides: (0..spatial).map(|_| 1 + self.below(2)).collect(),
            padding: (0..spatial).map(|_| (self.below(3) as i64 - 1, self.below(3) as i64)).collect(),
            input_dilation: (0..spatial).map(|_| 1 + self.below(2)).collect(),
            kernel_dilation: SmallVec::from_elem(1, spatial),
            feature_groups: 1,
            batch_groups: 1 + self.below(2),
            input_permutation: identity.clone(),
            kernel_permutation: identity,
            output_permutation: turned,
        }
    }

    /// An op that slides over a value, transforms it, or folds it with a function.
    pub(super) fn sliding(&mut self, graph: &Graph, values: &[Value], depth: usize) -> (Op, Values) {
        let (x, y) = (self.late(values), self.late(values));
        let ty = graph.ty(x).clone();
        let one: Values = [x].into_iter().collect();
        match self.below(8) {
            0 => {
                let window = self.window(&ty.shape);
                (Op::Window { op: self.one(WindowOp::ALL), window: Box::new(window) }, one)
            }
            1 => {
                // A window of one element has one position for each element of the tensor.
                let mut window = self.window(&ty.shape);
                window.sizes.iter_mut().chain(&mut window.strides).for_each(|entry| *entry = 1);
                window.padding.iter_mut().for_each(|entry| *entry = (0, 0));
                let scalars: Vec<Value> =
                    values.iter().copied().filter(|&value| graph.ty(value).shape.rank() == 0).collect();
                let init = if scalars.is_empty() { y } else { self.one(&scalars) };
                let op = Op::WindowScatter { op: self.one(WindowScatterOp::ALL), window: Box::new(window) };
                (op, [x, x, init].into_iter().collect())
            }
            2 => (Op::Conv(Box::new(self.conv(&ty.shape))), [x, x].into_iter().collect()),
            3..6 => {
                let eps = Tolerance(1e-10);
                let (length, op) = (1 + self.below(4), self.one(FftOp::ALL));
                let Some(axis) = self.axis(&ty.shape) else { return (Op::StopGrad, one) };
                let op = match self.below(4) {
                    0 => Op::Fft { op, axis, length, eps },
                    1 => Op::Block(Block::Rfft { axis, length, eps }),
                    2 => Op::Block(Block::Irfft { axis, length, eps }),
                    _ => match (ty.shape.axis(0), ty.shape.last_axis()) {
                        (Some(first), Some(last)) if first != last => {
                            let (axes, lengths) = ([last, first], [length, 2]);
                            let op = match op {
                                FftOp::Fft => Fft2Op::Fft2,
                                FftOp::Ifft => Fft2Op::Ifft2,
                            };
                            Op::Block(Block::Fft2 { op, axes, lengths, eps })
                        }
                        (_, _) => Op::StopGrad,
                    },
                };
                (op, one)
            }
            _ => {
                let accs: Vec<Value> =
                    values.iter().copied().filter(|&value| graph.ty(value).shape.rank() == 0).collect();
                if accs.is_empty() || depth == 0 {
                    return (Op::StopGrad, one);
                }
                let acc = self.one(&accs);
                let captures: Values = (0..self.below(2)).map(|_| self.one(values)).collect();
                let scalars = [x, acc].map(|value| TensorType::scalar(graph.ty(value).dtype));
                let result = [scalars[1].clone()];
                let types = captures.iter().map(|&value| graph.ty(value).clone()).collect();
                let fun = Arc::new(self.region(scalars.to_vec(), types, depth - 1, Some(&result)));
                let operands = [x, acc].into_iter().chain(captures).collect();
                if self.flip() {
                    let (axes, keep_axes) = (self.axes(&ty.shape), self.flip());
                    return (Op::Fold(FoldOp { axes, keep_axes, fun }), operands);
                }
                (Op::WindowFold(WindowFoldOp { window: Box::new(self.window(&ty.shape)), fun }), operands)
            }
        }
    }
}
