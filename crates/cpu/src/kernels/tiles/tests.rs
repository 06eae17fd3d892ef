use defn_core::op::{BinaryOp, UnaryOp};
use defn_core::{DType, Shape, TensorType};

use super::{Draft, Operand};
use crate::kernels::{Source, Walk};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// A chain of so many sums and sines, each of which is read until the end.
fn chain(count: usize) -> Draft {
    let mut draft = Draft::default();
    let x = Operand::Input { index: 0, dtype: DType::F64, constant: false };
    let mut made = vec![x];
    for at in 0..count {
        let sine = draft.unary(UnaryOp::Sin, made[at], DType::F64);
        made.push(draft.binary(BinaryOp::Add, sine.into(), x, DType::F64).into());
    }
    let all = made.into_iter().reduce(|a, b| draft.binary(BinaryOp::Add, a, b, DType::F64).into());
    draft.store(all.expect("there is the input"));
    draft
}

fn run(draft: Draft, x: &[f64]) -> Vec<f64> {
    let ty = TensorType::new(DType::F64, Shape::new(&[x.len()])).unwrap();
    // SAFETY: the same memory as bytes, for as long.
    let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) };
    let walk = Walk::strided(0, &[x.len()], &[1]);
    let source = Source::walked(View::new(&ty, bytes), &walk);
    let mut out = vec![0.0f64; x.len()];
    // SAFETY: the room is for these elements, and only the view reaches it.
    let view = unsafe { ViewMut::new(&ty, out.as_mut_ptr().cast()) };
    draft.finish().run(&[source], &[view], x.len(), Par::Pool);
    out
}

/// The same by numbers.
fn expected(count: usize, x: f64) -> f64 {
    let mut made = vec![x];
    for at in 0..count {
        made.push(made[at].sin() + x);
    }
    made.into_iter().reduce(|a, b| a + b).unwrap()
}

#[test]
fn registers_that_are_read_late_keep_their_elements() {
    let x: Vec<f64> = (0..5000).map(|at| f64::from(at) / 1000.0 - 2.5).collect();
    for count in [0, 1, 7, 40] {
        let got = run(chain(count), &x);
        for (&x, got) in x.iter().zip(got) {
            let want = expected(count, x);
            assert!((want - got).abs() <= 1e-12 * want.abs().max(1.0), "{count}: {x} gave {got}, not {want}");
        }
    }
}

#[test]
fn tiles_shrink_where_many_registers_are_alive() {
    let (few, many) = (chain(1).finish(), chain(40).finish());
    assert!(few.tile > many.tile, "{} {}", few.tile, many.tile);
    assert!(many.bank <= few.bank * 50);
}

#[test]
fn results_past_the_caches_are_as_others() {
    let mut draft = Draft::default();
    let x = Operand::Input { index: 0, dtype: DType::F64, constant: false };
    let sum = draft.binary(BinaryOp::Add, x, x, DType::F64);
    let root = draft.unary(UnaryOp::Abs, sum.into(), DType::F64);
    let small = draft.convert(root, DType::F16);
    draft.store(sum.into());
    draft.store(small.into());
    let program = draft.finish();
    // The results have 16 MiB together, and the last tile is not whole.
    let x: Vec<f64> = (0..1_700_013).map(|at| f64::from(at % 1999 - 1000)).collect();
    let types = [DType::F64, DType::F64, DType::F16]
        .map(|dtype| TensorType::new(dtype, Shape::new(&[x.len()])).unwrap());
    // SAFETY: the same memory as bytes, for as long.
    let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(&*x)) };
    let walk = Walk::strided(0, &[x.len()], &[1]);
    let source = Source::walked(View::new(&types[0], bytes), &walk);
    let mut sums = vec![0.0f64; x.len()];
    let mut roots = vec![half::f16::ZERO; x.len()];
    // SAFETY: the room is for these elements, and only the views reach it.
    let views = unsafe {
        [
            ViewMut::new(&types[1], sums.as_mut_ptr().cast()),
            ViewMut::new(&types[2], roots.as_mut_ptr().cast()),
        ]
    };
    program.run(&[source], &views, x.len(), Par::Pool);
    for ((x, sum), root) in x.iter().zip(sums).zip(roots) {
        assert_eq!((sum, root), (x + x, half::f16::from_f64((x + x).abs())));
    }
}
