//! Reductions over axes and windows, and sorting.

use defn_core::DType;
use defn_core::op::{
    ArgOp, Block, CompositeBlock, ConvOp, CumulativeOp, Direction, Op, ReduceOp, TieBreak, Tolerance, Window,
    WindowOp, WindowScatterOp,
};

use super::numbers::{operand_from, small, specials};
use super::{Closeness, Operand, Table, axes, axis};

/// Operands with equal elements in each row, and some with a NaN.
fn uneven(dtype: DType) -> Vec<Operand> {
    let mut all = vec![small(dtype, &[3, 4], 1), small(dtype, &[2, 3, 2], 2), specials(dtype)];
    if dtype.is_float() {
        let (nan, inf) = (f64::NAN, if dtype.has_infinity() { f64::INFINITY } else { 448.0 });
        let rows = [1.0, nan, 2.0, nan, inf, -1.0, inf, -inf, 0.0, -0.0, 0.0, -0.0];
        all.push(operand_from(dtype, &[3, 4], &rows));
    }
    all
}

/// Operands with axes too long for one loop. Some rows have only the least number, zeros of both signs, or two NaN.
fn long(dtype: DType) -> Vec<Operand> {
    let mut all = vec![
        small(dtype, &[4, 70], 1),
        small(dtype, &[1009], 2),
        small(dtype, &[17_000], 3),
        small(dtype, &[2, 41, 3], 4),
        small(dtype, &[3, 2, 40], 5),
    ];
    if dtype.is_float() {
        let (columns, inf) = (37, if dtype.has_infinity() { f64::INFINITY } else { 448.0 });
        let row = |of: &dyn Fn(usize) -> f64| (0..columns).map(of).collect::<Vec<_>>();
        let rows = [
            row(&|_| -inf),
            row(&|_| inf),
            row(&|at| if at % 2 == 0 { -0.0 } else { 0.0 }),
            row(&|at| if at % 17 == 5 { f64::NAN } else { inf }),
            row(&|at| if at == columns - 1 { f64::NAN.copysign(-1.0) } else { at as f64 }),
        ];
        all.push(operand_from(dtype, &[rows.len(), columns], &rows.concat()));
    }
    all
}

pub fn reduce(dtype: DType) -> Table {
    let mut table = Table::default();
    for &op in ReduceOp::ALL {
        let close = match op {
            ReduceOp::Sum | ReduceOp::Product => Closeness::Whole(8.0),
            ReduceOp::ReduceMax | ReduceOp::ReduceMin | ReduceOp::All | ReduceOp::Any => Closeness::Exact,
        };
        for operand in uneven(dtype) {
            let rank = operand.ty.shape.rank();
            let lists: &[&[usize]] = match rank {
                1 => &[&[0]],
                2 => &[&[], &[0], &[1], &[0, 1]],
                _ => &[&[1], &[0, 2]],
            };
            for list in lists {
                let keep_axes = list.len() == 1;
                table.add(Op::Reduce { op, axes: axes(list), keep_axes }, &[&operand], close);
            }
        }
        for list in [&[0][..], &[1], &[0, 1]] {
            table.add(
                Op::Reduce { op, axes: axes(list), keep_axes: false },
                &[&small(dtype, &[0, 3], 0)],
                close,
            );
        }
        table.add(Op::Reduce { op, axes: axes(&[]), keep_axes: false }, &[&small(dtype, &[], 0)], close);
    }
    for operand in uneven(dtype) {
        let last = operand.ty.shape.rank() - 1;
        for list in [&[][..], &[last], &[0]] {
            let block = Block::Composite(CompositeBlock::Logsumexp { axes: axes(list), keep_axes: false });
            table.add(Op::Block(block), &[&operand], Closeness::Each(16.0));
        }
        for equal_nan in [false, true] {
            let block = CompositeBlock::AllClose { equal_nan, rtol: Tolerance(1e-5), atol: Tolerance(1e-8) };
            let block = Block::Composite(block);
            table.must(Op::Block(block), &[&operand, &operand], Closeness::Exact);
        }
    }
    let equal_nan =
        CompositeBlock::AllClose { equal_nan: true, rtol: Tolerance(1e-5), atol: Tolerance(1e-8) };
    table.must(
        Op::Block(Block::Composite(equal_nan)),
        &[&small(dtype, &[5], 1), &small(dtype, &[5], 2)],
        Closeness::Exact,
    );
    table
}

/// Extremes along long axes.
pub fn extremes(dtype: DType) -> Table {
    let mut table = Table::default();
    let exact = Closeness::Exact;
    for operand in long(dtype) {
        let last = operand.ty.shape.rank() - 1;
        for op in [ReduceOp::ReduceMax, ReduceOp::ReduceMin] {
            table.add(Op::Reduce { op, axes: axes(&[last]), keep_axes: false }, &[&operand], exact);
            if last > 0 {
                table.add(Op::Reduce { op, axes: axes(&[0, last]), keep_axes: false }, &[&operand], exact);
            }
        }
        for (op, tie_break) in [(ArgOp::Argmax, TieBreak::High), (ArgOp::Argmin, TieBreak::Low)] {
            for axis in [None, Some(axis(last)), Some(axis(last / 2))] {
                let op = Op::ArgReduce { op, axis, keep_axis: false, tie_break, dtype: DType::S32 };
                table.add(op, &[&operand], exact);
            }
        }
    }
    table
}

pub fn order(dtype: DType) -> Table {
    let mut table = Table::default();
    let exact = Closeness::Exact;
    for operand in uneven(dtype) {
        let rank = operand.ty.shape.rank();
        let last = rank - 1;
        for &op in ArgOp::ALL {
            for &tie_break in TieBreak::ALL {
                let choices = [
                    (None, false, DType::S32),
                    (None, true, DType::S64),
                    (Some(axis(last)), false, DType::U8),
                ];
                for (axis, keep_axis, dtype) in choices {
                    let op = Op::ArgReduce { op, axis, keep_axis, tie_break, dtype };
                    table.add(op, &[&operand], exact);
                }
                let op =
                    Op::ArgReduce { op, axis: Some(axis(0)), keep_axis: true, tie_break, dtype: DType::S32 };
                table.add(op, &[&operand], exact);
            }
        }
        for &direction in Direction::ALL {
            table.add(Op::Sort { axis: axis(0), direction }, &[&operand], exact);
            table.add(Op::Argsort { axis: axis(last), direction, dtype: DType::S32 }, &[&operand], exact);
        }
        table.add(Op::Block(Block::TopK { k: 2 }), &[&operand], exact);
        for axis in [axis(0), axis(last)] {
            let kth = operand.ty.shape[axis] / 2;
            table.add(Op::Block(Block::Partition { axis, kth }), &[&operand], exact);
            table.add(Op::Block(Block::Argpartition { axis, kth }), &[&operand], exact);
        }
        for &op in CumulativeOp::ALL {
            let close = match op {
                CumulativeOp::CumulativeSum | CumulativeOp::CumulativeProduct => Closeness::Whole(16.0),
                CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin => Closeness::Exact,
            };
            // The device chooses the order of the sums, and with it which of them overflow.
            if close == Closeness::Exact || rank > 1 {
                let (axis_index, reverse) = if rank == 2 { (0, false) } else { (last, true) };
                let block = Block::Cumulative { op, axis: axis(axis_index), reverse };
                table.add(Op::Block(block), &[&operand], close);
            }
        }
    }
    let none = small(dtype, &[2, 0], 0);
    table.add(Op::Sort { axis: axis(1), direction: Direction::Asc }, &[&none], exact);
    table.add(Op::Argsort { axis: axis(0), direction: Direction::Desc, dtype: DType::S64 }, &[&none], exact);
    table
}

fn window_of(sizes: &[usize], strides: &[usize], padding: &[(i64, i64)], dilations: &[usize]) -> Window {
    Window {
        sizes: sizes.into(),
        strides: strides.into(),
        padding: padding.iter().copied().collect(),
        dilations: dilations.into(),
    }
}

/// Windows over a tensor of the sizes 3 and 4.
pub fn windows() -> [Window; 4] {
    [
        window_of(&[2, 2], &[1, 1], &[(0, 0), (0, 0)], &[1, 1]),
        window_of(&[2, 3], &[2, 1], &[(1, 0), (1, 1)], &[1, 1]),
        window_of(&[2, 2], &[1, 2], &[(0, 1), (-1, 2)], &[2, 1]),
        window_of(&[1, 1], &[2, 3], &[(0, 0), (0, -1)], &[1, 1]),
    ]
}

pub fn window(dtype: DType) -> Table {
    let mut table = Table::default();
    let mut operands = uneven(dtype);
    operands.retain(|operand| operand.ty.shape.sizes() == [3, 4]);
    for operand in &operands {
        for window in windows() {
            for &op in WindowOp::ALL {
                let close = match op {
                    WindowOp::WindowSum | WindowOp::WindowProduct => Closeness::Whole(8.0),
                    WindowOp::WindowMax | WindowOp::WindowMin => Closeness::Exact,
                };
                table.add(Op::Window { op, window: Box::new(window.clone()) }, &[operand], close);
            }
            let output_sizes: Vec<usize> = (0..2)
                .map(|at| {
                    let (low, high) = window.padding[at];
                    let size = operand.ty.shape.sizes()[at] as i64 + low + high;
                    let span = (window.sizes[at] as i64 - 1) * window.dilations[at] as i64 + 1;
                    ((size - span) / window.strides[at] as i64 + 1) as usize
                })
                .collect();
            let source = small(dtype, &output_sizes, 4);
            for &op in WindowScatterOp::ALL {
                // The initial value stands for padding. It has another type only where the padding is compared.
                let other = if window.padding[0] == (1, 0) { DType::S8 } else { dtype };
                let (init, window) = (small(other, &[], 8), window.clone());
                table.add(
                    Op::WindowScatter { op, window: Box::new(window) },
                    &[operand, &source, &init],
                    Closeness::Whole(8.0),
                );
            }
        }
    }
    for &op in WindowOp::ALL {
        let none = window_of(&[1], &[1], &[(0, 0)], &[1]);
        table.add(Op::Window { op, window: Box::new(none) }, &[&small(dtype, &[0], 0)], Closeness::Exact);
        let scalar = window_of(&[], &[], &[], &[]);
        table.add(Op::Window { op, window: Box::new(scalar) }, &[&small(dtype, &[], 0)], Closeness::Exact);
    }
    // Integers are computed in f32 here, whatever their width.
    let some = if dtype.is_integer() { 2 } else { usize::MAX };
    for conv in convolutions().into_iter().take(some) {
        let (input, kernel) = sides(&conv);
        let (input, kernel) = (small(dtype, &input, 1), small(dtype, &kernel, 2));
        table.must(Op::Conv(Box::new(conv)), &[&input, &kernel], Closeness::Whole(8.0));
    }
    table
}

fn sides(conv: &ConvOp) -> (Vec<usize>, Vec<usize>) {
    let permuted = |permutation: &[defn_core::Axis], roles: &[usize]| {
        let mut sizes = vec![0; roles.len()];
        permutation.iter().zip(roles).for_each(|(axis, &size)| sizes[axis.index()] = size);
        sizes
    };
    let spatial = [5, 4, 3];
    let extents = [2, 3, 2];
    let count = conv.strides.len();
    let input: Vec<usize> =
        [2 * conv.batch_groups, 2 * conv.feature_groups].iter().chain(&spatial[..count]).copied().collect();
    let kernel: Vec<usize> =
        [2 * conv.feature_groups * conv.batch_groups, 2].iter().chain(&extents[..count]).copied().collect();
    (permuted(&conv.input_permutation, &input), permuted(&conv.kernel_permutation, &kernel))
}

fn convolutions() -> Vec<ConvOp> {
    let plain = |rank: usize| ConvOp {
        strides: std::iter::repeat_n(1, rank - 2).collect(),
        padding: std::iter::repeat_n((1, 1), rank - 2).collect(),
        input_dilation: std::iter::repeat_n(1, rank - 2).collect(),
        kernel_dilation: std::iter::repeat_n(1, rank - 2).collect(),
        feature_groups: 1,
        batch_groups: 1,
        input_permutation: (0..rank).map(axis).collect(),
        kernel_permutation: (0..rank).map(axis).collect(),
        output_permutation: (0..rank).map(axis).collect(),
    };
    vec![
        plain(3),
        plain(4),
        ConvOp {
            strides: [2, 1].as_slice().into(),
            padding: [(0, 2), (-1, 3)].into_iter().collect(),
            ..plain(4)
        },
        ConvOp {
            input_dilation: [2, 1].as_slice().into(),
            kernel_dilation: [1, 2].as_slice().into(),
            ..plain(4)
        },
        ConvOp { feature_groups: 2, ..plain(4) },
        ConvOp { batch_groups: 2, ..plain(3) },
        ConvOp {
            input_permutation: axes(&[0, 3, 1, 2]),
            kernel_permutation: axes(&[3, 2, 0, 1]),
            output_permutation: axes(&[1, 0, 3, 2]),
            ..plain(4)
        },
        plain(5),
    ]
}
