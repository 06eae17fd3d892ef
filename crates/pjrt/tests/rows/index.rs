//! Gather and scatter, and random bits.

use defn_core::op::{Block, Op, ScatterOp};
use defn_core::{DType, Kind};

use super::numbers::{operand_from, small};
use super::{Closeness, Operand, Table, axes, axis};

fn integers(dtype: DType, sizes: &[usize], numbers: &[i64]) -> Operand {
    let numbers: Vec<f64> = numbers.iter().map(|&number| number as f64).collect();
    operand_from(dtype, sizes, &numbers)
}

pub fn positions(dtype: DType) -> Table {
    let mut table = Table::default();
    let exact = Closeness::Exact;
    let (x, cube) = (small(dtype, &[4, 3], 1), small(dtype, &[2, 3, 2], 2));
    let gather = |list: &[usize]| Op::Gather { axes: axes(list) };
    // Some positions are below the range, some above.
    let rows = integers(DType::S32, &[5, 1], &[0, 3, -1, 9, 2]);
    let pairs = integers(DType::S64, &[2, 3, 2], &[0, 0, 3, 2, 1, 1, -5, 2, 1, 50, 9, 9]);
    table.must(gather(&[0]), &[&x, &rows], exact);
    table.must(gather(&[1]), &[&x, &rows], exact);
    table.must(gather(&[0, 1]), &[&x, &pairs], exact);
    table.must(gather(&[0, 2]), &[&cube, &pairs], exact);
    table.must(gather(&[1]), &[&cube, &integers(DType::U8, &[1], &[200])], exact);
    table.must(gather(&[]), &[&x, &integers(DType::S32, &[2, 0], &[])], exact);
    table.must(gather(&[0]), &[&small(dtype, &[0, 2], 0), &integers(DType::S32, &[0, 1], &[])], exact);
    let mut out_of_range = integers(DType::U64, &[1, 1], &[0]);
    out_of_range.bytes = u64::MAX.to_ne_bytes().to_vec();
    table.must(gather(&[0]), &[&x, &out_of_range], exact);
    if dtype.is_integer() {
        table.must(gather(&[0]), &[&x, &integers(dtype, &[2, 1], &[1, 0])], exact);
    }
    let lists = integers(DType::S32, &[5, 2], &[0, 0, 3, 2, 0, 0, -1, 1, 1, 9]);
    for &op in ScatterOp::ALL {
        let scatter = |list: &[usize]| Op::Scatter { op, axes: axes(list) };
        let close = match op {
            ScatterOp::IndexedAdd => Closeness::Whole(4.0),
            ScatterOp::IndexedPut => exact,
        };
        let single = integers(DType::S16, &[4, 1], &[2, 0, 2, 7]);
        table.must_of_numbers(scatter(&[0, 1]), &[&x, &lists, &small(dtype, &[5], 3)], close);
        table.must_of_numbers(scatter(&[0, 1]), &[&x, &lists, &small(DType::S8, &[5], 3)], close);
        table.must_of_numbers(scatter(&[0]), &[&x, &single, &small(dtype, &[4, 3], 4)], close);
        table.must_of_numbers(scatter(&[1]), &[&x, &single, &small(dtype, &[4, 2], 4)], close);
        table.must_of_numbers(scatter(&[0, 2]), &[&cube, &lists, &small(dtype, &[5, 3], 5)], close);
        table.must_of_numbers(
            scatter(&[]),
            &[&x, &integers(DType::S32, &[2, 0], &[]), &small(dtype, &[2, 4, 3], 5)],
            close,
        );
        table.must_of_numbers(
            scatter(&[0]),
            &[&x, &integers(DType::S32, &[0, 1], &[]), &small(dtype, &[0, 3], 5)],
            close,
        );
        table.must_of_numbers(
            scatter(&[0, 1]),
            &[&x, &integers(DType::U64, &[1, 2], &[3, 2]), &small(dtype, &[1], 3)],
            close,
        );
    }
    for axis_index in [0, 1] {
        let indices = integers(DType::S32, &[2, 2], &[0, 2, -1, 7]);
        table.must(Op::Block(Block::Take { axis: axis(axis_index) }), &[&x, &indices], exact);
        let along = if axis_index == 0 { [2, 3] } else { [4, 2] };
        let numbers: Vec<i64> = (0..along[0] * along[1]).map(|at| at * 2 % 5 - 1).collect();
        let along = integers(DType::S64, &[along[0] as usize, along[1] as usize], &numbers);
        table.must(Op::Block(Block::TakeAlongAxis { axis: axis(axis_index) }), &[&x, &along], exact);
    }
    if !dtype.is_complex() {
        table.must(Op::Block(Block::Isin), &[&x, &small(dtype, &[9], 5)], exact);
    }
    let ids = integers(DType::S32, &[7], &[0, 2, -1, 7, 2, 3, 0]);
    table.must(Op::Block(Block::Bincount { length: 3 }), &[&ids], exact);
    table
}

/// Random numbers, of each type once.
pub fn random(dtype: DType) -> Table {
    let mut table = Table::default();
    let key = integers(DType::U32, &[2], &[232, 3_567_587_327]);
    for count in [0, 1, 7, 10] {
        let bound = integers(DType::U64, &[], &[if dtype.bits() > 8 { 1000 } else { 3 }]);
        match dtype.kind() {
            Kind::Unsigned => {
                table.must(Op::Block(Block::RandomBits { dtype, count }), &[&key], Closeness::Exact);
                table.must(Op::Block(Block::RandomBelow { dtype, count }), &[&key, &bound], Closeness::Exact);
            }
            Kind::Signed => {
                table.must(Op::Block(Block::RandomBelow { dtype, count }), &[&key, &bound], Closeness::Exact);
            }
            Kind::Float => {
                table.must(Op::Block(Block::RandomUniform { dtype, count }), &[&key], Closeness::Exact)
            }
            Kind::Bool | Kind::Complex => {}
        }
    }
    if dtype == DType::U32 {
        table.must(Op::Block(Block::Threefry), &[&key, &small(dtype, &[2, 5], 1)], Closeness::Exact);
        table.must(Op::Block(Block::Threefry), &[&key, &small(dtype, &[2, 2, 2], 1)], Closeness::Exact);
    }
    table
}
