//! What the benchmarks share: numbers to compute with, and the comparison without which a time means nothing.
//!
//! Each family of kernels is timed with a size that is tiny, one that lies in the first caches, and one that lies in
//! none: of the last, a run moves [`MEMORY`] elements or more, where the work of a run does not forbid it.

use std::fmt::Debug;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use defn::{DType, Tensor};
use faer::{Mat, MatRef};
use ndarray::{Array, ArrayD, ArrayView2, Dimension, IxDyn};

/// Elements that cost nothing beside the call.
pub const TINY: usize = 8;

/// Elements of 4 bytes that lie in the first caches of a processor or two.
pub const CACHED: usize = 1 << 16;

/// Elements of 4 bytes that lie in no cache.
pub const MEMORY: usize = 1 << 24;

/// The sizes of what is done element by element.
pub const SIZES: [usize; 3] = [TINY, CACHED, MEMORY];

/// The sides of matrices with as many elements, about.
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
    /// The sizes and the elements of a matrix, row by row.
    ///
    /// # Panics
    /// Where there are not two axes.
    pub fn matrix(&self) -> ArrayView2<'_, f32> {
        self.array.view().into_dimensionality().expect("a matrix")
    }

    /// The matrix as faer sees it, where it lies.
    ///
    /// # Panics
    /// Where there are not two axes.
    pub fn faer(&self) -> MatRef<'_, f32> {
        let [rows, columns] = self.array.shape() else { panic!("not a matrix") };
        MatRef::from_row_major_slice(self.array.as_slice().expect("contiguous"), *rows, *columns)
    }
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

/// A result whose numbers can be compared with another's, row by row.
pub trait Numbers {
    /// All of them.
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

impl Case {
    /// One that moves `count` elements of 4 bytes.
    pub fn moves(group: &'static str, size: impl ToString, count: usize) -> Case {
        Case { group, size: size.to_string(), throughput: Throughput::Bytes(4 * count as u64) }
    }

    /// One that computes `count` elements, or does as many operations.
    pub fn computes(group: &'static str, size: impl ToString, count: usize) -> Case {
        Case { group, size: size.to_string(), throughput: Throughput::Elements(count as u64) }
    }
}

/// One case, timed by several: the numbers of each are those of defn.
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
    /// What results may differ by, relative to the largest number; nothing at first.
    #[must_use]
    pub fn within(self, tolerance: f64) -> Self {
        Comparison { tolerance, ..self }
    }

    /// Holds what defn gave against what is known to be right.
    ///
    /// # Panics
    /// When it is not.
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

    /// Times a rival, after it has given the same numbers.
    ///
    /// # Panics
    /// When it has not.
    #[must_use]
    pub fn beside<R: Numbers>(self, name: &str, rival: impl Fn() -> R) -> Self {
        let mut this = self.gives(&rival());
        this.group.bench_function(BenchmarkId::new(name, &this.case.size), |b| b.iter(&rival));
        this
    }

    /// Nobody else is timed.
    pub fn done(self) {
        self.group.finish();
    }
}
