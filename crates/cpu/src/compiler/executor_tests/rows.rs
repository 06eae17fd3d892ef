//! Loops over rows that are reduced: several rows at once give what they give one by one.

use super::control::{at, row, stepped};
use super::*;
use crate::compiler::ir::{Builder, Op, Reduce, Val};

/// Rows so long are shorter than a vector, whole vectors, or have an end.
const LENGTHS: [usize; 6] = [1, 3, 8, 16, 33, 100];

/// Numbers of rows, in blocks and not.
const COUNTS: [usize; 7] = [0, 1, 3, 4, 8, 21, 40];

/// What is done with the numbers of each row.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// They are stored.
    Stored,
    /// Something is computed with them and with a number of the row, and the elements are stored, too.
    Computed,
}

/// The products of rows of a matrix with a vector, and their extremes. The rows are so many from one on.
fn reduced_rows(elem: Elem, length: usize, what: Use) -> Function {
    let mut b = Builder::new(6, 2, 0);
    let (begin, count) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (counter, _) = b.begin_loop(Some(count), &[]);
    let of = b.add(begin, counter);
    let sum = b.accumulator(Reduce::Add, elem, 16);
    let extreme = b.accumulator(Reduce::Max, elem, 16);
    let extent = b.index(length as i64);
    b.begin_lanes(extent);
    let x = b.load(elem, stepped(row(0, elem), elem, of, length));
    let y = b.load(elem, row(1, elem));
    let product = b.mul(x, y);
    b.reduce(sum, product);
    b.reduce(extreme, product);
    if let Use::Computed = what {
        let negative = b.sub(product, x);
        b.store(negative, stepped(row(5, elem), elem, of, length));
    }
    b.end_lanes();
    let with = |b: &mut Builder, value: Val| {
        let more = b.load(elem, stepped(at(2, elem, 0), elem, of, 1));
        b.add(value, more)
    };
    let (sum, extreme) = match what {
        Use::Stored => (sum, extreme),
        Use::Computed => (with(&mut b, sum), b.op(Op::Max, [extreme, sum])),
    };
    b.store(sum, stepped(at(3, elem, 0), elem, of, 1));
    b.store(extreme, stepped(at(4, elem, 0), elem, of, 2));
    b.end_loop(&[]);
    b.finish()
}

fn call(elem: Elem, length: usize, count: usize) -> Call {
    let mut call = Call::new();
    let rows = count + 2;
    let number = |seed: i64| {
        let x = seed * 7919 % 101 - 50;
        match elem {
            Elem::F32 => (x as f32 / 16.0).to_bits().into(),
            Elem::F64 => (x as f64 / 3.0).to_bits(),
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => x as u64,
        }
    };
    for (which, size) in [rows * length, length, rows, rows, 2 * rows, rows * length].into_iter().enumerate()
    {
        call.buffer(elem, 1 + which, (0..size).map(|at| number((at + 31 * which) as i64)));
    }
    call.param(2).param(count as u64)
}

#[test]
fn several_rows_at_once_are_as_one_by_one() {
    for elem in [Elem::F32, Elem::F64, Elem::I32, Elem::I64] {
        for (length, what) in
            LENGTHS.into_iter().flat_map(|length| [(length, Use::Stored), (length, Use::Computed)])
        {
            let function = reduced_rows(elem, length, what);
            let one_by_one = Interpreter::new(&function);
            let trials: Vec<Trial> = COUNTS
                .into_iter()
                .map(|count| {
                    let [call, mut after] = [(); 2].map(|()| call(elem, length, count));
                    // SAFETY: the arguments are those of the function.
                    let (status, data) = run_here(&call, |args| unsafe { one_by_one.run(args) });
                    after.data = data;
                    Trial { call, after, status }
                })
                .collect();
            // The registers of AVX-512, AVX2 and NEON, and more than any of them has.
            for (vectors, bytes) in [(16, 64), (8, 32), (16, 16), (64, 64)] {
                let together = function.clone().with_rows_together(vectors, bytes);
                check_all_executors(&together, &trials);
            }
        }
    }
}

#[test]
fn rows_that_depend_on_each_other_are_done_one_by_one() {
    let mut b = Builder::new(2, 1, 0);
    let count = b.param(0, Elem::Index);
    let (counter, _) = b.begin_loop(Some(count), &[]);
    let sum = b.accumulator(Reduce::Add, Elem::F32, 16);
    let extent = b.index(8);
    b.begin_lanes(extent);
    let x = b.load(Elem::F32, stepped(row(0, Elem::F32), Elem::F32, counter, 1));
    b.reduce(sum, x);
    b.end_lanes();
    b.store(sum, stepped(at(0, Elem::F32, 8), Elem::F32, counter, 1));
    b.end_loop(&[]);
    let function = b.finish();
    assert_eq!(function.clone().with_rows_together(16, 64), function);
}
