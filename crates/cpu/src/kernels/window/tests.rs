//! Convolutions compared with their definition.

use defn_core::op::ConvOp;
use defn_core::{Axis, DType, Shape, TensorType};
use smallvec::SmallVec;

use super::{AxisOrder, Conv, conv, conv_scratch};
use crate::kernels::simd::at_every_level;
use crate::kernels::testing::{Array, noise};
use crate::par::Par;

/// A convolution and the sizes of its operands and its result, by their roles.
struct Case {
    op: ConvOp,
    x: Vec<usize>,
    kernel: Vec<usize>,
    out: Vec<usize>,
}

impl Case {
    fn random(mut below: impl FnMut(usize) -> usize) -> Case {
        let rank = 1 + below(2) + below(2);
        let (groups, kind) = (1 + below(2), below(3));
        let (feature_groups, batch_groups) = if kind == 0 { (1, groups) } else { (groups, 1) };
        let (batch, depth, features) = (batch_groups * (1 + below(3)), 1 + below(4), groups * (1 + below(9)));
        let (mut x, mut kernel) = (vec![batch, feature_groups * depth], vec![features, depth]);
        let mut out = vec![batch / batch_groups, features];
        let mut op = ConvOp {
            strides: SmallVec::new(),
            padding: SmallVec::new(),
            input_dilation: SmallVec::new(),
            kernel_dilation: SmallVec::new(),
            feature_groups,
            batch_groups,
            input_permutation: SmallVec::new(),
            kernel_permutation: SmallVec::new(),
            output_permutation: SmallVec::new(),
        };
        // A kernel that is longer than its number of places is packed by columns.
        let long = rank < 3 && below(3) == 0;
        for _ in 0..rank {
            let taps = if long { 6 + below(20) } else { 1 + below(4) };
            let (dilation, input_dilation, stride) = (1 + below(2), 1 + below(3), 1 + below(3));
            let (low, high) = (below(5) as i64 - 2, below(5) as i64 - 2);
            let reach = ((taps - 1) * dilation + 1) as i64;
            let least = (reach - low - high).max(1) as usize;
            let size = least.div_ceil(input_dilation) + 1 + below(if rank == 1 { 60 } else { 7 });
            let padded = ((size - 1) * input_dilation + 1) as i64 + low + high;
            x.push(size);
            kernel.push(taps);
            out.push(((padded - reach) / stride as i64 + 1) as usize);
            op.strides.push(stride);
            op.padding.push((low, high));
            op.input_dilation.push(input_dilation);
            op.kernel_dilation.push(dilation);
        }
        Case { op, x, kernel, out }
    }

    /// The sums, by the definition, of tensors in order.
    fn sums(&self, x: &[f64], kernel: &[f64]) -> Vec<f64> {
        let rank = self.x.len() - 2;
        let flat = |sizes: &[usize], index: &[usize]| {
            sizes.iter().zip(index).fold(0, |flat, (&size, &at)| flat * size + at)
        };
        let unflat = |sizes: &[usize], mut flat: usize| {
            let mut index = vec![0; sizes.len()];
            for (at, &size) in index.iter_mut().zip(sizes).rev() {
                *at = flat % size;
                flat /= size;
            }
            index
        };
        let groups = self.op.feature_groups * self.op.batch_groups;
        (0..self.out.iter().product())
            .map(|out_index| {
                let out_index = unflat(&self.out, out_index);
                let group = out_index[1] / (self.out[1] / groups);
                let mut sum = 0.0;
                for cell in 0..self.kernel[1..].iter().product() {
                    let cell = unflat(&self.kernel[1..], cell);
                    let (item, channel) = if self.op.batch_groups > 1 {
                        (group * self.out[0] + out_index[0], cell[0])
                    } else {
                        (out_index[0], group * self.kernel[1] + cell[0])
                    };
                    let mut at = vec![item, channel];
                    for axis in 0..rank {
                        let (stride, dilation) = (self.op.strides[axis], self.op.kernel_dilation[axis]);
                        let dilated = (out_index[axis + 2] * stride + cell[axis + 1] * dilation) as i64
                            - self.op.padding[axis].0;
                        let input_dilation = self.op.input_dilation[axis] as i64;
                        if dilated >= 0
                            && dilated % input_dilation == 0
                            && dilated / input_dilation < self.x[axis + 2] as i64
                        {
                            at.push((dilated / input_dilation) as usize);
                        }
                    }
                    if at.len() == rank + 2 {
                        let weight = [&[out_index[1]], &cell[..]].concat();
                        sum += x[flat(&self.x, &at)] * kernel[flat(&self.kernel, &weight)];
                    }
                }
                sum
            })
            .collect()
    }
}

/// A tensor with its first two axes swapped.
fn swapped(sizes: &[usize], x: &[f64]) -> Vec<f64> {
    let rest: usize = sizes[2..].iter().product();
    let row = |b: usize, a: usize| &x[(a * sizes[1] + b) * rest..][..rest];
    (0..sizes[1]).flat_map(|b| (0..sizes[0]).flat_map(move |a| row(b, a).to_vec())).collect()
}

/// The sizes of such a tensor.
fn swapped_sizes(sizes: &[usize]) -> Vec<usize> {
    [&[sizes[1], sizes[0]], &sizes[2..]].concat()
}

/// Integers, whose sums are exact in any order.
fn array(dtype: DType, sizes: &[usize], x: &[f64]) -> Array {
    Array::new(dtype, sizes, x.iter().map(|&x| x.into()))
}

fn check(case: &Case, dtype: DType, orders: [AxisOrder; 3], seed: u64) {
    let mut random = noise(seed);
    let mut numbers = |sizes: &[usize]| -> Vec<f64> {
        (0..sizes.iter().product()).map(|_| (random.next().unwrap() % 9) as f64 - 4.0).collect()
    };
    let (x, kernel) = (numbers(&case.x), numbers(&case.kernel));
    let want = case.sums(&x, &kernel);
    let stored = |orders: AxisOrder, sizes: &[usize], x: &[f64]| match orders {
        AxisOrder::InOrder => (sizes.to_vec(), x.to_vec()),
        AxisOrder::Swapped => (swapped_sizes(sizes), swapped(sizes, x)),
    };
    let (x_sizes, x) = stored(orders[0], &case.x, &x);
    let (kernel_sizes, kernel) = stored(orders[1], &case.kernel, &kernel);
    let (out_sizes, want) = stored(orders[2], &case.out, &want);
    let (x, kernel) = (array(dtype, &x_sizes, &x), array(dtype, &kernel_sizes, &kernel));
    let plan = Conv::new(&case.op, (&case.x, orders[0]), (&case.kernel, orders[1]), (&case.out, orders[2]));
    for par in [Par::Serial, Par::Pool] {
        let mut out = Array::unwritten(TensorType::new(dtype, Shape::new(&out_sizes)).unwrap());
        let mut scratch = Array::unwritten(conv_scratch(&plan, dtype));
        conv(&plan, x.view(), kernel.view(), (&mut out.view_mut(), None), &mut scratch.view_mut(), par);
        let got = array(dtype, &out_sizes, &want);
        assert_eq!(out.scalars(), got.scalars(), "{:?} {orders:?} {plan:?}", case.op);
    }
}

#[test]
fn convolutions_are_as_defined() {
    at_every_level(|| {
        let mut random = noise(11);
        let mut below = |count: usize| (random.next().unwrap() % count as u64) as usize;
        let mut dilated = 0;
        for round in 0..40 {
            let case = Case::random(&mut below);
            dilated += usize::from(case.op.input_dilation.iter().any(|&dilation| dilation > 1));
            let dtype = [DType::F32, DType::F64, DType::C64][below(3)];
            let mut orders =
                [0; 3].map(|_| if below(2) == 0 { AxisOrder::InOrder } else { AxisOrder::Swapped });
            if dtype.is_complex() {
                orders[1] = AxisOrder::InOrder;
            }
            check(&case, dtype, orders, round);
        }
        assert!(dilated > 8, "{dilated} with a dilated input");
    });
}

#[test]
fn what_lies_otherwise_is_copied() {
    let axes = |order: &[usize]| -> Vec<Axis> {
        let shape = Shape::new(&vec![1; order.len()]);
        order.iter().map(|&axis| shape.axis(axis).unwrap()).collect()
    };
    assert_eq!(AxisOrder::of(&axes(&[0, 1, 2, 3])), Some(AxisOrder::InOrder));
    assert_eq!(AxisOrder::of(&axes(&[1, 0, 2, 3])), Some(AxisOrder::Swapped));
    assert_eq!(AxisOrder::of(&axes(&[0, 3, 1, 2])), None);
    let (order, few, many) = (axes(&[1, 0, 2, 3]), [4, 4, 3, 3], [4, 4, 8, 8]);
    assert_eq!(AxisOrder::of_kernel(&order, &few, DType::F32), None);
    assert_eq!(AxisOrder::of_kernel(&order, &many, DType::F32), Some(AxisOrder::Swapped));
    assert_eq!(AxisOrder::of_kernel(&order, &many, DType::C64), None);
}
