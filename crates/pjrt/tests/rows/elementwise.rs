//! Element-wise operations, and conversions.

use defn_core::DType;
use defn_core::op::{BinaryOp, Block, CompositeBlock, Op, UnaryOp};

use super::numbers::{column, operand_from, small, special, specials};
use super::{Closeness, Table};

/// The tolerance of a function of one operand.
fn unary_close(op: UnaryOp, dtype: DType) -> Closeness {
    match op {
        UnaryOp::NEGATE | UnaryOp::Rounding(_) | UnaryOp::Part(_) | UnaryOp::Bits(_) | UnaryOp::Test(_) => {
            Closeness::Exact
        }
        UnaryOp::Sign(_) if !dtype.is_complex() => Closeness::Exact,
        UnaryOp::Sign(_) | UnaryOp::Function(_) => Closeness::Each(16.0),
    }
}

/// The tolerance of an operation on two operands.
fn binary_close(op: BinaryOp, dtype: DType) -> Closeness {
    match op {
        // The error of the product in the exponent grows with the exponent.
        BinaryOp::POW if dtype.is_complex() => Closeness::Each(512.0),
        BinaryOp::DIVIDE | BinaryOp::MULTIPLY if dtype.is_complex() => Closeness::Each(16.0),
        BinaryOp::POW if dtype.is_integer() => Closeness::Exact,
        BinaryOp::POW | BinaryOp::ATAN2 => Closeness::Each(8.0),
        BinaryOp::Arithmetic(_)
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => Closeness::Exact,
    }
}

/// Every function of one operand at every special number.
pub fn unary(dtype: DType) -> Table {
    let mut table = Table::default();
    for &op in UnaryOp::ALL {
        table.add(Op::Unary(op), &[&specials(dtype)], unary_close(op, dtype));
    }
    let composites = [CompositeBlock::LogicalNot, CompositeBlock::Phase].map(Block::Composite);
    for block in composites.into_iter().chain([Block::Log2, Block::Log10]) {
        table.must(Op::Block(block), &[&specials(dtype)], Closeness::Each(16.0));
    }
    table.must(Op::Unary(UnaryOp::EXP), &[&small(dtype, &[2, 0], 0)], Closeness::Exact);
    table
}

/// Every function of two operands at every pair of special numbers.
pub fn binary(dtype: DType) -> Table {
    let mut table = Table::default();
    for &op in BinaryOp::ALL {
        let close = binary_close(op, dtype);
        // Negative exponents of integers, and negative shifts, are undefined.
        let right = match op {
            BinaryOp::POW | BinaryOp::LEFT_SHIFT | BinaryOp::RIGHT_SHIFT if dtype.is_integer() => {
                let numbers: Vec<f64> = special(dtype)
                    .iter()
                    .map(|x| x.to_f64())
                    .filter(|&x| (0.0..200.0).contains(&x))
                    .collect();
                operand_from(dtype, &[numbers.len()], &numbers)
            }
            BinaryOp::POW
            | BinaryOp::LEFT_SHIFT
            | BinaryOp::RIGHT_SHIFT
            | BinaryOp::ADD
            | BinaryOp::SUBTRACT
            | BinaryOp::MULTIPLY
            | BinaryOp::DIVIDE
            | BinaryOp::ATAN2
            | BinaryOp::QUOTIENT
            | BinaryOp::REMAINDER
            | BinaryOp::MAX
            | BinaryOp::MIN
            | BinaryOp::BITWISE_AND
            | BinaryOp::BITWISE_OR
            | BinaryOp::BITWISE_XOR
            | BinaryOp::EQUAL
            | BinaryOp::NOT_EQUAL
            | BinaryOp::GREATER
            | BinaryOp::GREATER_EQUAL
            | BinaryOp::LESS
            | BinaryOp::LESS_EQUAL
            | BinaryOp::LOGICAL_AND
            | BinaryOp::LOGICAL_OR
            | BinaryOp::LOGICAL_XOR
            | BinaryOp::Complex => specials(dtype),
        };
        table.add(Op::Binary(op), &[&column(dtype), &right], close);
    }
    table.must_of_numbers(
        Op::Binary(BinaryOp::ADD),
        &[&small(dtype, &[], 0), &small(dtype, &[3, 0, 2], 0)],
        Closeness::Exact,
    );
    table
}

/// Operands of two types.
pub fn mixed(dtype: DType) -> Table {
    let mut table = Table::default();
    for &other in DType::ALL {
        if other == dtype {
            continue;
        }
        // No signed type holds the greatest numbers of u64.
        let wide = [dtype, other].contains(&DType::U64);
        let all = [
            BinaryOp::LESS,
            BinaryOp::EQUAL,
            BinaryOp::NOT_EQUAL,
            BinaryOp::GREATER_EQUAL,
            BinaryOp::GREATER,
        ];
        for op in &all[..if wide { 5 } else { 1 }] {
            table.add(Op::Binary(*op), &[&column(dtype), &specials(other)], Closeness::Exact);
        }
        if dtype < other {
            table.must(Op::Binary(BinaryOp::ADD), &[&specials(dtype), &column(other)], Closeness::Exact);
            table.must(Op::Binary(BinaryOp::EQUAL), &[&specials(dtype), &column(other)], Closeness::Exact);
            continue;
        }
        let scalar = small(other, &[], 3);
        table.must(Op::Select, &[&specials(dtype), &scalar, &small(dtype, &[1], 1)], Closeness::Exact);
        table.add(Op::Clip, &[&specials(dtype), &scalar, &small(other, &[], 9)], Closeness::Exact);
    }
    table
}

/// Conversions between any two types.
pub fn convert(dtype: DType) -> Table {
    let mut table = Table::default();
    for &other in DType::ALL {
        // A conversion to bool is a comparison.
        if !other.is_bool() || dtype.is_bool() {
            table.must(Op::AsType { dtype: other }, &[&specials(dtype)], Closeness::Exact);
        }
        table.add(Op::Bitcast { dtype: other }, &[&specials(dtype)], Closeness::Exact);
    }
    table.must(Op::Select, &[&specials(dtype), &small(dtype, &[], 1), &specials(dtype)], Closeness::Exact);
    table.must(
        Op::Select,
        &[&operand_from(dtype, &[], &[1.0]), &small(dtype, &[3, 2], 1), &small(dtype, &[2], 2)],
        Closeness::Exact,
    );
    table.add(
        Op::Clip,
        &[&specials(dtype), &operand_from(dtype, &[], &[0.0]), &operand_from(dtype, &[], &[1.0])],
        Closeness::Exact,
    );
    table.add(
        Op::Clip,
        &[&specials(dtype), &operand_from(dtype, &[], &[1.0]), &operand_from(dtype, &[], &[0.0])],
        Closeness::Exact,
    );
    table
}
