//! What moves elements: transposing, joining, cutting and repeating.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::{Axes, Tensor};
use defn_benches::{Case, compare, uniform};
use ndarray::{Axis, concatenate, s};

const SIDES: [usize; 3] = [4, 256, 4096];

/// A case of a square matrix, read and written once.
fn case(group: &'static str, n: usize) -> Case {
    Case { group, size: format!("{n}x{n}"), throughput: Throughput::Bytes(2 * 4 * (n * n) as u64) }
}

fn transpose(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, n]);
        let rival = || x.array.t().as_standard_layout().into_owned();
        compare(c, case("transpose/f32", n), 0.0, || x.tensor.transpose(Axes::All), rival);
    }
}

fn join(c: &mut Criterion) {
    for n in SIDES {
        let (a, b) = (uniform(&[n, n / 2]), uniform(&[n, n / 2]));
        let tensors = [a.tensor.clone(), b.tensor.clone()];
        let rival = || concatenate(Axis(1), &[a.array.view(), b.array.view()]).expect("the sizes agree");
        compare(c, case("concatenate/f32", n), 0.0, || Tensor::concatenate(&tensors, 1), rival);
    }
}

fn cut(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, n]);
        let inner = n as i64 - 2;
        let ours = || x.tensor.slice(&[1, 1], &[inner, inner]);
        compare(c, case("slice/f32", n), 0.0, ours, || {
            x.array.slice(s![1..n - 1, 1..n - 1]).to_owned().into_dyn()
        });
    }
}

fn repeat(c: &mut Criterion) {
    for n in SIDES {
        let x = uniform(&[n, 1]);
        let rival = || x.array.broadcast(vec![n, n]).expect("one column").as_standard_layout().into_owned();
        compare(c, case("broadcast/f32", n), 0.0, || x.tensor.broadcast(&[n, n]), rival);
    }
}

criterion_group!(shape, transpose, join, cut, repeat);
criterion_main!(shape);
