//! Steps of several operands whose shapes depend on each other: products, convolutions, and reductions with what
//! follows.

use defn_core::Axis;
use defn_core::graph::{Value, Values};
use defn_core::op::{BinaryOp, ConvOp, Op, ReduceOp, UnaryOp};
use smallvec::SmallVec;

use super::generate::{GraphGenerator, MAX_ELEMENTS};
use crate::compiler::fuse::transposed;

/// The most multiplications of a product.
const MAX_PRODUCT_WORK: usize = 1 << 20;

impl GraphGenerator<'_> {
    /// A product with another value, if one has as many elements along an axis, or with a new argument.
    pub(super) fn product(&mut self, x: Value) -> Option<(Op, Values)> {
        let shape = self.graph.ty(x).shape.clone();
        let (sizes, rank) = (shape.sizes(), shape.rank());
        let y = self.value();
        let other = self.graph.ty(y).shape.clone();
        let is_batched = self.source.below(2) == 0 && rank > 1;
        let along = self.source.below(rank.max(1));
        let along = if is_batched { along.max(1) } else { along };
        let (batch, width) = (if is_batched { sizes[0] } else { 1 }, *sizes.get(along)?);
        let fits = |axis: &Axis| other.sizes()[axis.index()] == width && !(is_batched && axis.index() == 0);
        let found = other.axes().find(fits).filter(|_| !is_batched || other.sizes()[0] == batch);
        let (y, contract) = match found {
            Some(axis) if self.source.below(4) > 0 => (y, axis.index()),
            Some(_) | None => {
                let columns = 1 + self.source.below(40);
                let own = if self.source.below(2) == 0 { [width, columns] } else { [columns, width] };
                let contract = usize::from(is_batched) + usize::from(own[0] != width);
                let sizes: Vec<usize> = is_batched.then_some(batch).into_iter().chain(own).collect();
                (self.parameter(self.graph.ty(x).dtype, &sizes, None)?, contract)
            }
        };
        let other = &self.graph.ty(y).shape;
        if shape.size() * (other.size() / width.max(1) / batch.max(1)) > MAX_PRODUCT_WORK {
            return None;
        }
        let first =
            |shape: &defn_core::Shape| shape.axes().next().filter(|_| is_batched).into_iter().collect();
        let op = Op::Dot {
            contract_a: [shape.axis(along)?].into_iter().collect(),
            batch_a: first(&shape),
            contract_b: [other.axis(contract)?].into_iter().collect(),
            batch_b: first(other),
        };
        Some((op, [x, y].into_iter().collect()))
    }

    /// A convolution along one or two axes.
    pub(super) fn convolution(&mut self, x: Value) -> Option<(Op, Values)> {
        let ty = self.graph.ty(x).clone();
        let mut sizes = ty.shape.sizes().to_vec();
        if sizes.len() < 2 || sizes.len() > 4 {
            return None;
        }
        let mut x = x;
        if sizes.len() == 2 || sizes.len() == 3 && self.source.below(2) == 0 {
            sizes.insert(self.source.below(2), 1);
            x = self.graph.push(Op::Reshape { shape: defn_core::Shape::new(&sizes) }, &[x]).ok()?[0];
        }
        let spatial = sizes.len() - 2;
        let mut some = |most: usize| (0..spatial).map(|_| 1 + self.source.below(most)).collect::<Vec<_>>();
        let (strides, input_dilation, kernel_dilation, extents) = (some(3), some(2), some(2), some(4));
        let mut padding = || (self.source.below(4) as i64 - 1, self.source.below(4) as i64 - 1);
        let padding = (0..spatial).map(|_| padding()).collect();
        let channels = sizes[1];
        let is_grouped = channels.is_multiple_of(2) && self.source.below(3) == 0;
        let feature_groups = if is_grouped { 2 } else { 1 };
        let features = feature_groups * (1 + self.source.below(9));
        let mut kernel = vec![features, channels / feature_groups];
        kernel.extend(&extents);
        let work = ty.size() * features * extents.iter().product::<usize>();
        if kernel.iter().product::<usize>() > MAX_ELEMENTS || work > MAX_PRODUCT_WORK {
            return None;
        }
        let kernel = self.parameter(ty.dtype, &kernel, None)?;
        let in_order = || self.graph.ty(x).shape.axes().collect();
        let op = ConvOp {
            strides: strides.into_iter().collect(),
            padding,
            input_dilation: input_dilation.into_iter().collect(),
            kernel_dilation: kernel_dilation.into_iter().collect(),
            feature_groups,
            batch_groups: 1,
            input_permutation: in_order(),
            kernel_permutation: in_order(),
            output_permutation: in_order(),
        };
        Some((Op::Conv(Box::new(op)), [x, kernel].into_iter().collect()))
    }

    /// Something of each element and what its group is reduced to, as in a softmax.
    pub(super) fn normalized(&mut self, x: Value) -> Option<(Op, Values)> {
        let shape = self.graph.ty(x).shape.clone();
        let op = ReduceOp::ALL[self.source.below(ReduceOp::ALL.len())];
        let axes: SmallVec<[Axis; 6]> = self.axes(&shape)?;
        let count = self.graph.nodes().len();
        self.push(Op::Reduce { op, axes, keep_axes: true }, &[x]);
        let reduced =
            (self.graph.nodes().len() > count).then_some(Value { node: count as u32, output: 0 })?;
        let op = BinaryOp::ALL[self.source.below(BinaryOp::ALL.len())];
        let operands = if self.source.below(2) == 0 { [x, reduced] } else { [reduced, x] };
        Some((Op::Binary(op), operands.into_iter().collect()))
    }

    /// A reduction of the long rows of a transposed argument, or of what is computed of them.
    pub(super) fn turned(&mut self) -> Option<(Op, Values)> {
        let dtype = self.dtype();
        let (batch, columns) = (1 + self.source.below(2), 8 + self.source.below(40));
        let [least, most] =
            [transposed::MIN_ELEMENTS + 1, MAX_ELEMENTS].map(|count| count / (batch * columns));
        let rows = least + 1 + self.source.below(most - least);
        let x = self.parameter(dtype, &[batch, rows, columns], None)?;
        let shape = self.graph.ty(x).shape.clone();
        let axes = [0, 2, 1].into_iter().filter_map(|axis| shape.axis(axis)).collect();
        let turned = self.graph.push(Op::Transpose { axes }, &[x]).ok()?[0];
        let others: [&[usize]; 3] = [&[rows], &[columns, 1], &[batch, columns, rows]];
        let (op, other) = (self.source.below(BinaryOp::ALL.len()), self.source.below(4));
        let computed = match others.get(other) {
            Some(sizes) => {
                let other = self.parameter(dtype, sizes, None)?;
                self.graph.push(Op::Binary(BinaryOp::ALL[op]), &[turned, other])
            }
            None => self.graph.push(Op::Unary(UnaryOp::ALL[op % UnaryOp::ALL.len()]), &[turned]),
        };
        let op = ReduceOp::ALL[self.source.below(ReduceOp::ALL.len())];
        let axes = shape.axes().skip(2).collect();
        let keep_axes = self.source.below(2) == 0;
        Some((Op::Reduce { op, axes, keep_axes }, computed.ok()?.into_iter().collect()))
    }
}
