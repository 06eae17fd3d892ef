//! What the benchmarks share: numbers to compute with, and the comparison without which a time means nothing.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use defn::Tensor;
use ndarray::{ArrayD, IxDyn};

/// The same numbers as a tensor and as the rival's array.
#[derive(Clone, Debug)]
pub struct Input {
    /// For defn.
    pub tensor: Tensor,
    /// For ndarray.
    pub array: ArrayD<f32>,
}

/// Numbers from 0 up to 1 that look random and are the same in every run.
///
/// # Panics
/// When there is no memory for them.
pub fn uniform(sizes: &[usize]) -> Input {
    let count = sizes.iter().product::<usize>();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let numbers: Vec<f32> = (0..count)
        .map(|_| {
            // Xorshift (Marsaglia, 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        })
        .collect();
    let tensor = Tensor::from_slice(&numbers, sizes).expect("there is memory for a benchmark");
    let array = ArrayD::from_shape_vec(IxDyn(sizes), numbers).expect("as many numbers as the shape has");
    Input { tensor, array }
}

/// What a benchmark of one size is called, and what it moves or computes.
#[derive(Clone, Debug)]
pub struct Case {
    /// The benchmark's group.
    pub group: &'static str,
    /// The size, as it prints.
    pub size: String,
    /// What one run moves or computes.
    pub throughput: Throughput,
}

/// Times defn and ndarray, after both have given the same numbers to `tolerance`, relative to the largest.
///
/// # Panics
/// When the results differ, or an op refuses.
pub fn compare(
    c: &mut Criterion,
    case: Case,
    tolerance: f32,
    ours: impl Fn() -> defn::Result<Tensor>,
    rival: impl Fn() -> ArrayD<f32>,
) {
    let mut group = checked(c, &case, tolerance, &ours, &rival());
    group.bench_function(BenchmarkId::new("defn", &case.size), |b| b.iter(&ours));
    group.bench_function(BenchmarkId::new("ndarray", &case.size), |b| b.iter(&rival));
    group.finish();
}

/// Times defn alone, after it has given `want` to `tolerance`, relative to the largest.
///
/// # Panics
/// When the results differ, or an op refuses.
pub fn alone(
    c: &mut Criterion,
    case: Case,
    tolerance: f32,
    ours: impl Fn() -> defn::Result<Tensor>,
    want: &ArrayD<f32>,
) {
    let mut group = checked(c, &case, tolerance, &ours, want);
    group.bench_function(BenchmarkId::new("defn", &case.size), |b| b.iter(&ours));
    group.finish();
}

/// The group of a case whose result is right.
fn checked<'a>(
    c: &'a mut Criterion,
    case: &Case,
    tolerance: f32,
    ours: &impl Fn() -> defn::Result<Tensor>,
    want: &ArrayD<f32>,
) -> BenchmarkGroup<'a, WallTime> {
    let got = ours().and_then(|x| x.to_vec::<f32>()).expect("the op runs");
    assert_eq!(got.len(), want.len(), "{case:?}");
    let largest = want.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * largest, "{case:?}: {got} and not {want}");
    }
    let mut group = c.benchmark_group(case.group);
    group.throughput(case.throughput.clone());
    group
}
