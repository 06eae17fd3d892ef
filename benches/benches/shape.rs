//! Ops that move elements: transposition, concatenation, slices and repetition.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{Axes, Tensor};
use defn_benches::{Case, SIDES, time, uniform};
use ndarray::{Axis, concatenate, s};

/// A case of a square matrix, read and written once.
fn case(group: &'static str, n: usize) -> Case {
    Case::moves(group, format!("{n}x{n}"), 2 * n * n)
}

fn transpose(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, n]);
        time(c, case("transpose/f32", n), || x.tensor.transpose(Axes::All))
            .beside("ndarray", || x.array.t().as_standard_layout().into_owned())
            .done();
    }
}

fn join(c: &mut Criterion) {
    for n in SIDES {
        let (a, b) = (uniform(&[n, n / 2]), uniform(&[n, n / 2]));
        let tensors = [a.tensor.clone(), b.tensor.clone()];
        let rival = || concatenate(Axis(1), &[a.array.view(), b.array.view()]).expect("the sizes agree");
        time(c, case("concatenate/f32", n), || Tensor::concatenate(&tensors, 1))
            .beside("ndarray", rival)
            .done();
    }
}

fn cut(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, n]);
        let inner = n as i64 - 2;
        time(c, case("slice/f32", n), || x.tensor.slice(&[1, 1], &[inner, inner]))
            .beside("ndarray", || x.array.slice(s![1..n - 1, 1..n - 1]).to_owned())
            .done();
    }
}

fn repeat(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, 1]);
        let rival = || x.array.broadcast(vec![n, n]).expect("one column").as_standard_layout().into_owned();
        time(c, case("broadcast/f32", n), || x.tensor.broadcast(&[n, n])).beside("ndarray", rival).done();
    }
}

criterion_group!(shape, transpose, join, cut, repeat);
criterion_main!(shape);
