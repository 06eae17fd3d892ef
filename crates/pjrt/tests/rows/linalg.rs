//! Matrix products and factorizations, and transforms.

use defn_core::DType;
use defn_core::op::{Block, CompositeBlock, Fft2Op, FftOp, Op, QrMode, Tolerance, Transform};

use super::numbers::{definite, general, small};
use super::{Closeness, Operand, Table, axes, axis};

fn dot(contract_a: &[usize], batch_a: &[usize], contract_b: &[usize], batch_b: &[usize]) -> Op {
    Op::Dot {
        contract_a: axes(contract_a),
        batch_a: axes(batch_a),
        contract_b: axes(contract_b),
        batch_b: axes(batch_b),
    }
}

pub fn products(dtype: DType) -> Table {
    let mut table = Table::default();
    let close = Closeness::Whole(8.0);
    let (a, b, c) = (small(dtype, &[3, 4], 1), small(dtype, &[4, 2], 2), small(dtype, &[3, 5, 4], 3));
    table.must(dot(&[1], &[], &[0], &[]), &[&a, &b], close);
    table.must(dot(&[1], &[0], &[2], &[0]), &[&a, &c], close);
    table.must(dot(&[0, 1], &[], &[0, 2], &[]), &[&a, &c], close);
    table.must(dot(&[], &[], &[], &[]), &[&b, &b], close);
    table.must(dot(&[0], &[], &[0], &[]), &[&small(dtype, &[6], 1), &small(dtype, &[6], 2)], close);
    table.must(dot(&[1], &[], &[0], &[]), &[&small(dtype, &[2, 0], 1), &small(dtype, &[0, 3], 2)], close);
    table.must(dot(&[1], &[], &[0], &[]), &[&a, &small(DType::S16, &[4, 2], 2)], close);
    let transforms = if dtype.is_integer() { &Transform::ALL[..1] } else { Transform::ALL };
    for lower in [true, false] {
        for left_side in [true, false] {
            for &transform in transforms {
                let op = Op::TriangularSolve { lower, left_side, transform_a: transform };
                let close = Closeness::Whole(32.0);
                let matrix = definite(dtype, 2, 3);
                let sides: [&[usize]; 2] = [&[2, 3], if left_side { &[2, 3, 2] } else { &[2, 2, 3] }];
                for side in sides {
                    table.must(op.clone(), &[&matrix, &small(dtype, side, 2)], close);
                }
            }
        }
    }
    table
}

pub fn factors(dtype: DType) -> Table {
    let mut table = Table::default();
    let close = Closeness::Whole(64.0);
    let (definite, general) = (definite(dtype, 2, 3), general(dtype, 4, 4));
    table.must(Op::Block(Block::Cholesky), &[&definite], close);
    table.must(Op::Block(Block::Cholesky), &[&small(dtype, &[0, 0], 0)], close);
    let mut negative = small(dtype, &[2, 2], 0);
    negative
        .bytes
        .copy_from_slice(&super::numbers::operand_from(dtype, &[2, 2], &[1.0, 3.0, 3.0, 1.0]).bytes);
    if dtype.bits() > 2 {
        table.must(Op::Block(Block::Cholesky), &[&negative], close);
    }
    table.must(Op::Block(Block::Solve), &[&general, &small(dtype, &[4], 1)], close);
    table.must(Op::Block(Block::Solve), &[&definite, &small(dtype, &[2, 3, 2], 1)], close);
    table.must(Op::Block(Block::Lu), &[&general], close);
    table.must(Op::Block(Block::Lu), &[&definite], close);
    table.must(Op::Block(Block::Determinant), &[&general], close);
    table.must(Op::Block(Block::Determinant), &[&definite], close);
    for &mode in QrMode::ALL {
        for (rows, columns) in [(4, 3), (3, 4)] {
            let block = Block::Qr { mode, eps: Tolerance(1e-10) };
            table.must(Op::Block(block), &[&super::numbers::general(dtype, rows, columns)], close);
        }
    }
    if dtype.is_integer() {
        table.first_of_each();
    }
    table
}

pub fn spectral(dtype: DType) -> Table {
    let mut table = Table::default();
    let close = Closeness::Turned(256.0);
    table.must(Op::Block(Block::Svdvals), &[&definite(dtype, 1, 3)], close);
    table.must(Op::Block(Block::Eigvalsh), &[&definite(dtype, 1, 3)], close);
    let eigh = Block::Eigh { max_iter: 1000, eps: Tolerance(1e-7) };
    table.must(Op::Block(eigh), &[&definite(dtype, 1, 3)], close);
    for full_matrices in [true, false] {
        let block = Block::Svd { max_iter: 100, full_matrices };
        table.add(Op::Block(block), &[&general(dtype, 4, 3)], close);
    }
    // Their loops take a compiler for a GPU minutes for all types.
    if dtype == DType::F32 {
        let definite = definite(dtype, 1, 3);
        for block in [
            Block::Eig { vectors: true },
            Block::Eig { vectors: false },
            Block::Schur,
            Block::Hessenberg,
            Block::Composite(CompositeBlock::Expm),
            Block::Composite(CompositeBlock::Sqrtm),
            Block::Composite(CompositeBlock::Logm),
        ] {
            table.add(Op::Block(block), &[&definite], close);
        }
    }
    if dtype.is_integer() {
        table.first_of_each();
    }
    table
}

pub fn fourier(dtype: DType) -> Table {
    let mut table = Table::default();
    let close = Closeness::Whole(16.0);
    let eps = Tolerance(1e-10);
    let operands: [Operand; 2] = [small(dtype, &[3, 4], 1), small(dtype, &[2, 5, 3], 2)];
    for operand in &operands {
        for &op in FftOp::ALL {
            for (axis_index, length) in [(0, 3), (1, 4), (1, 5), (1, 2), (0, 1), (1, 8)] {
                table.must(Op::Fft { op, axis: axis(axis_index), length, eps }, &[operand], close);
            }
        }
        for &op in Fft2Op::ALL {
            let block = Block::Fft2 { op, axes: [axis(0), axis(1)], lengths: [4, 3], eps };
            table.must(Op::Block(block), &[operand], close);
        }
        for (axis_index, length) in [(0, 4), (1, 5), (1, 4)] {
            if !dtype.is_complex() {
                table.must(Op::Block(Block::Rfft { axis: axis(axis_index), length, eps }), &[operand], close);
            }
            table.must(Op::Block(Block::Irfft { axis: axis(axis_index), length, eps }), &[operand], close);
        }
    }
    table.must(
        Op::Fft { op: FftOp::Fft, axis: axis(0), length: 4, eps },
        &[&small(dtype, &[4, 0], 1)],
        close,
    );
    table.must(Op::Fft { op: FftOp::Ifft, axis: axis(0), length: 2, eps }, &[&small(dtype, &[0], 1)], close);
    if dtype.is_integer() {
        table.first_of_each();
    }
    table
}
