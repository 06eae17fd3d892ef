//! Rows between two products are one step with both, and give the evaluator's results.

use defn_core::DType;

use super::{Program, check, shape};

/// Products of stacks with rows between them, as in attention: heads, queries, keys, sizes of keys and of values.
#[derive(Clone, Copy, Debug)]
struct Attention {
    dtype: DType,
    heads: usize,
    sizes: [usize; 4],
    /// Whether keys are given by columns.
    transposed: bool,
}

/// The number of things that are done to rows.
const MIDDLES: usize = 6;

impl Attention {
    fn text(self, middle: usize) -> String {
        let Attention { dtype, heads, sizes: [m, n, k, d], transposed } = self;
        let of = |sizes: &[usize]| format!("{dtype}{}", shape(&[&[heads], sizes].concat()));
        let mut program = Program::new();
        let q = program.input(&of(&[m, k]));
        let keys = program.input(&of(&if transposed { [k, n] } else { [n, k] }));
        let values = program.input(&of(&[n, d]));
        let along = if transposed { 1 } else { 2 };
        let dot = |a: &str, b: &str, along: usize| {
            format!("dot {a} {b} {{contract_a: [2], batch_a: [0], contract_b: [{along}], batch_b: [0]}}")
        };
        let (whole, rows) = (of(&[m, n]), of(&[m, 1]));
        let mut scores = program.add(&dot(&q, &keys, along), &whole);
        let scale = program.add("constant {value: 0.125}", &dtype.to_string());
        if middle != 1 {
            scores = program.add(&format!("multiply {scores} {scale}"), &whole);
        }
        match middle {
            // Another operand of all rows, and one of each head's.
            2 => {
                let other = program.input(&whole);
                scores = program.add(&format!("add {scores} {other}"), &whole);
            }
            3 => {
                let bias = program.input(&format!("{dtype}{}", shape(&[m, n])));
                scores = program.add(&format!("add {scores} {bias}"), &whole);
            }
            _ => {}
        }
        let fold = |op: &str, x: &str| format!("{op} {x} {{axes: [2], keep_axes: true}}");
        let most = program.add(&fold("reduce_max", &scores), &rows);
        let less = program.add(&format!("subtract {scores} {most}"), &whole);
        let weights = program.add(&format!("exp {less}"), &whole);
        let sums = program.add(&fold("sum", &weights), &rows);
        let shares = program.add(&format!("divide {weights} {sums}"), &whole);
        let mixed = program.add(&dot(&shares, &values, 1), &of(&[m, d]));
        match middle {
            // Who else needs what lies between has it.
            4 => program.finish(&[mixed, scores]),
            5 => program.finish(&[mixed, shares]),
            _ => program.finish(&[mixed]),
        }
    }
}

/// Whether a step has both products.
fn fuses_both(text: &str) -> bool {
    check(text).iter().any(|ops| ops.iter().filter(|op| **op == "dot").count() == 2)
}

#[test]
fn rows_between_products_give_what_the_evaluator_gives() {
    for (heads, sizes) in [
        (1, [40, 64, 16, 24]),
        (3, [100, 200, 33, 40]),
        (2, [13, 600, 64, 8]),
        (2, [350, 48, 600, 100]),
        (5, [7, 1030, 20, 33]),
    ] {
        for middle in 0..MIDDLES {
            let dtype = if middle % 2 == 1 { DType::F64 } else { DType::F32 };
            for transposed in [false, true] {
                let text = Attention { dtype, heads, sizes, transposed }.text(middle);
                assert_eq!(fuses_both(&text), middle < 4, "{text}");
            }
        }
    }
}

#[test]
fn other_rows_and_types_give_what_the_evaluator_gives() {
    // Long rows, few elements in a row, one row, small floats.
    for (dtype, sizes) in [
        (DType::F32, [30, 6000, 8, 20]),
        (DType::F32, [30, 9, 8, 20]),
        (DType::F32, [1, 90, 8, 20]),
        (DType::BF16, [30, 90, 8, 20]),
    ] {
        for middle in 0..MIDDLES {
            assert!(
                !fuses_both(&Attention { dtype, heads: 2, sizes, transposed: false }.text(middle)),
                "{sizes:?}"
            );
        }
    }
}
