//! Shared by the benchmarks: inputs, and the check of results, without which a time means nothing.
//!
//! Each family of kernels is timed with a tiny size, one that fits the first-level caches, and one that fits no cache:
//! in the last case a run moves [`MEMORY`] elements or more, unless the work of a run would take too long.

use std::fmt::Debug;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use defn::{DType, Tensor};
use faer::{Mat, MatRef};
use ndarray::{Array, ArrayD, ArrayView2, Dimension, IxDyn};

/// A number of elements whose cost is negligible compared with the call.
pub const TINY: usize = 8;

/// A number of 4-byte elements that fits the first-level caches of one or two processors.
pub const CACHED: usize = 1 << 16;

/// A number of 4-byte elements that fits no cache.
pub const MEMORY: usize = 1 << 24;

/// The sizes for elementwise ops.
pub const SIZES: [usize; 3] = [TINY, CACHED, MEMORY];

/// The sides of square matrices with about as many elements.
pub const SIDES: [usize; 3] = [4, 256, 4096];

/// The same numbers as a tensor and as the rival's array.
#[derive(Clone, Debug)]
pub struct Input {
    /// For defn.
    pub tensor: Tensor,
    /// For the rivals.
    pub array: ArrayD<f32>,
}

impl Input {
    /// The array as a matrix.
    ///
    /// # Panics
    /// Where there are not two axes.
    pub fn matrix(&self) -> ArrayView2<'_, f32> {
        self.array.view().into_dimensionality().expect("a matrix")
    }

    /// The matrix as a view for faer, without a copy.
    ///
    /// # Panics
    /// Where there are not two axes.
    pub fn faer(&self) -> MatRef<'_, f32> {
        let [rows, columns] = self.array.shape() else { panic!("not a matrix") };
        MatRef::from_row_major_slice(self.array.as_slice().expect("contiguous"), *rows, *columns)
    }
}

/// Pseudo-random numbers in [0, 1), the same in every run.
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

/// A result whose numbers can be compared with another's, row by row.
pub trait Numbers {
    /// All numbers.
    fn numbers(&self) -> Vec<f64>;
}

impl Numbers for Tensor {
    fn numbers(&self) -> Vec<f64> {
        self.as_type(DType::F64).and_then(|x| x.to_vec()).expect("there is memory for a benchmark")
    }
}

impl<T: Copy + Into<f64>, D: Dimension> Numbers for Array<T, D> {
    fn numbers(&self) -> Vec<f64> {
        self.iter().map(|&x| x.into()).collect()
    }
}

impl<T: Copy + Into<f64>> Numbers for Vec<T> {
    fn numbers(&self) -> Vec<f64> {
        self.iter().map(|&x| x.into()).collect()
    }
}

impl<T: Copy + Into<f64>> Numbers for Mat<T> {
    fn numbers(&self) -> Vec<f64> {
        let of_row = |row| (0..self.ncols()).map(move |column| self[(row, column)].into());
        (0..self.nrows()).flat_map(of_row).collect()
    }
}

/// The name of a benchmark of one size, and its throughput.
#[derive(Clone, Debug)]
pub struct Case {
    /// The benchmark's group.
    pub group: &'static str,
    /// The size, as printed.
    pub size: String,
    /// The bytes moved or the operations computed by one run.
    pub throughput: Throughput,
}

impl Case {
    /// A case that moves `count` elements of 4 bytes.
    pub fn moves(group: &'static str, size: impl ToString, count: usize) -> Case {
        Case { group, size: size.to_string(), throughput: Throughput::Bytes(4 * count as u64) }
    }

    /// A case that computes `count` elements or operations.
    pub fn computes(group: &'static str, size: impl ToString, count: usize) -> Case {
        Case { group, size: size.to_string(), throughput: Throughput::Elements(count as u64) }
    }
}

/// One case, timed for defn and its rivals, whose results must agree with defn's.
pub struct Comparison<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    case: Case,
    tolerance: f64,
    got: Vec<f64>,
}

impl Debug for Comparison<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison").field("case", &self.case).finish_non_exhaustive()
    }
}

/// Times defn.
///
/// # Panics
/// When an op refuses.
pub fn time<'a>(c: &'a mut Criterion, case: Case, ours: impl Fn() -> defn::Result<Tensor>) -> Comparison<'a> {
    let got = ours().expect("the op runs").numbers();
    let mut group = c.benchmark_group(case.group);
    group.throughput(case.throughput.clone());
    group.sample_size(20);
    group.bench_function(BenchmarkId::new("defn", &case.size), |b| b.iter(&ours));
    Comparison { group, case, tolerance: 0.0, got }
}

impl Comparison<'_> {
    /// Sets the tolerance relative to the largest number; the default is 0.
    #[must_use]
    pub fn within(self, tolerance: f64) -> Self {
        Comparison { tolerance, ..self }
    }

    /// Compares defn's result with a known one.
    ///
    /// # Panics
    /// When they differ.
    #[must_use]
    pub fn gives(self, want: &impl Numbers) -> Self {
        let want = want.numbers();
        assert_eq!(self.got.len(), want.len(), "{:?}", self.case);
        let largest = want.iter().fold(0f64, |largest, x| largest.max(x.abs()));
        for (got, want) in self.got.iter().zip(&want) {
            let difference = (got - want).abs();
            assert!(difference <= self.tolerance * largest, "{:?}: {got} and not {want}", self.case);
        }
        self
    }

    /// Times a rival after comparing its result with defn's.
    ///
    /// # Panics
    /// When they differ.
    #[must_use]
    pub fn beside<R: Numbers>(self, name: &str, rival: impl Fn() -> R) -> Self {
        let mut this = self.gives(&rival());
        this.group.bench_function(BenchmarkId::new(name, &this.case.size), |b| b.iter(&rival));
        this
    }

    /// Ends the comparison.
    pub fn done(self) {
        self.group.finish();
    }
}
