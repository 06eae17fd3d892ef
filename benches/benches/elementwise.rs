//! One op at a time, element by element: tiny, in the cache, and in memory.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn_benches::{Case, compare, uniform};

const SIZES: [usize; 3] = [8, 1 << 16, 1 << 24];

fn add(c: &mut Criterion) {
    for n in SIZES {
        let (a, b) = (uniform(&[n]), uniform(&[n]));
        // Two reads and one write.
        let throughput = Throughput::Bytes(3 * 4 * n as u64);
        let case = Case { group: "add/f32", size: n.to_string(), throughput };
        compare(c, case, 0.0, || &a.tensor + &b.tensor, || &a.array + &b.array);
    }
}

macro_rules! function {
    ($name:ident, $rival:expr) => {
        fn $name(c: &mut Criterion) {
            for n in SIZES {
                let x = uniform(&[n]);
                let throughput = Throughput::Bytes(2 * 4 * n as u64);
                let case =
                    Case { group: concat!(stringify!($name), "/f32"), size: n.to_string(), throughput };
                compare(c, case, 1e-6, || x.tensor.$name(), || x.array.mapv($rival));
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
