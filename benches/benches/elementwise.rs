//! Single elementwise ops: tiny, in the cache, and in memory.

use criterion::{Criterion, criterion_group, criterion_main};
use defn_benches::{Case, SIZES, time, uniform};

fn add(c: &mut Criterion) {
    for n in SIZES {
        let (a, b) = (uniform(&[n]), uniform(&[n]));
        // Two reads and one write.
        time(c, Case::moves("add/f32", n, 3 * n), || &a.tensor + &b.tensor)
            .beside("ndarray", || &a.array + &b.array)
            .done();
    }
}

macro_rules! function {
    ($name:ident, $rival:expr) => {
        fn $name(c: &mut Criterion) {
            for n in SIZES {
                let x = uniform(&[n]);
                let case = Case::moves(concat!(stringify!($name), "/f32"), n, 2 * n);
                time(c, case, || x.tensor.$name())
                    .within(1e-6)
                    .beside("ndarray", || x.array.mapv($rival))
                    .done();
            }
        }
    };
}
function!(tanh, f32::tanh);
function!(exp, f32::exp);
function!(log1p, f32::ln_1p);
function!(sin, f32::sin);

criterion_group!(elementwise, add, tanh, exp, log1p, sin);
criterion_main!(elementwise);
