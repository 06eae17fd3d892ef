//! Inputs for all libraries, and results as numbers that can be compared.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_tensor::{Device, TensorData};
use candle_core::Device::Cpu;
use defn::{DType, Tensor};
use faer::Mat;
use nalgebra::{DMatrix, DVector};
use ndarray::{Array, ArrayD, ArrayView, Dimension, Ix1, Ix2, Ix3, IxDyn};

/// candle's tensor.
pub type Candle = candle_core::Tensor;
/// What candle's functions return.
pub type CandleResult = candle_core::Result<Candle>;
/// burn's tensor.
pub type Burn<const D: usize> = burn_tensor::Tensor<D>;

/// The same numbers for each library.
pub struct Input {
    /// In row-major order.
    pub values: Vec<f32>,
    /// For defn.
    pub tensor: Tensor,
    /// For ndarray.
    pub array: ArrayD<f32>,
    /// For candle.
    pub candle: Candle,
}

/// Pseudo-random numbers in [0, 1), the same in every run.
pub fn uniform(sizes: &[usize]) -> Input {
    scaled(sizes, 1.0, 0.0)
}

/// Pseudo-random numbers in [-scale, scale).
pub fn signed(sizes: &[usize], scale: f32) -> Input {
    scaled(sizes, 2.0 * scale, -scale)
}

fn scaled(sizes: &[usize], scale: f32, offset: f32) -> Input {
    let count = sizes.iter().product::<usize>();
    // Each input has its own numbers.
    static INPUTS: AtomicU64 = AtomicU64::new(1);
    let mut state = INPUTS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut draw = || {
        // Xorshift (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 * scale + offset
    };
    Input::of((0..count).map(|_| draw()).collect(), sizes)
}

impl Input {
    /// Numbers in row-major order.
    pub fn of(values: Vec<f32>, sizes: &[usize]) -> Input {
        let tensor = Tensor::from_slice(&values, sizes).expect("there is memory for a benchmark");
        let array = ArrayD::from_shape_vec(IxDyn(sizes), values.clone()).expect("as many numbers");
        let candle = Candle::from_slice(&values, sizes, &Cpu).expect("there is memory for a benchmark");
        Input { values, tensor, array, candle }
    }

    fn view<D: Dimension>(&self) -> ArrayView<'_, f32, D> {
        self.array.view().into_dimensionality().expect("the input has so many axes")
    }

    /// ndarray's view of one axis.
    pub fn vector(&self) -> ArrayView<'_, f32, Ix1> {
        self.view()
    }

    /// ndarray's view of two axes.
    pub fn matrix(&self) -> ArrayView<'_, f32, Ix2> {
        self.view()
    }

    /// ndarray's view of three axes.
    pub fn matrices(&self) -> ArrayView<'_, f32, Ix3> {
        self.view()
    }

    /// For burn, on its backend for the CPU in Rust.
    pub fn burn<const D: usize>(&self) -> Burn<D> {
        let sizes: [usize; D] = self.array.shape().try_into().expect("the input has so many axes");
        Burn::from_data(TensorData::new(self.values.clone(), sizes), &Device::flex())
    }

    /// A matrix for faer, by columns.
    pub fn faer(&self) -> Mat<f32> {
        let x = self.matrix();
        Mat::from_fn(x.nrows(), x.ncols(), |row, column| x[(row, column)])
    }

    /// All numbers as one vector for nalgebra.
    pub fn nalgebra_vector(&self) -> DVector<f32> {
        DVector::from_column_slice(&self.values)
    }

    /// A matrix for nalgebra, by columns.
    pub fn nalgebra(&self) -> DMatrix<f32> {
        let x = self.matrix();
        DMatrix::from_row_slice(x.nrows(), x.ncols(), &self.values)
    }
}

/// A result whose numbers can be compared with those of another library, row by row.
pub trait Numbers {
    /// All numbers.
    fn numbers(&self) -> Vec<f64>;
}

impl Numbers for Tensor {
    fn numbers(&self) -> Vec<f64> {
        self.as_type(DType::F64).and_then(|x| x.to_vec()).expect("there is memory for a benchmark")
    }
}

impl Numbers for Candle {
    fn numbers(&self) -> Vec<f64> {
        let wide = self.to_dtype(candle_core::DType::F64).and_then(|x| x.flatten_all()?.to_vec1());
        wide.expect("there is memory for a benchmark")
    }
}

impl<const D: usize> Numbers for Burn<D> {
    fn numbers(&self) -> Vec<f64> {
        self.try_to_vec_as().expect("there is memory for a benchmark")
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

impl<T: Copy + Into<f64>> Numbers for DMatrix<T> {
    fn numbers(&self) -> Vec<f64> {
        self.row_iter().flat_map(|row| row.iter().map(|&x| x.into()).collect::<Vec<f64>>()).collect()
    }
}

impl Numbers for f32 {
    fn numbers(&self) -> Vec<f64> {
        vec![f64::from(*self)]
    }
}

impl<T: Numbers, E: Debug> Numbers for Result<T, E> {
    fn numbers(&self) -> Vec<f64> {
        self.as_ref().expect("the operation succeeds").numbers()
    }
}

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn numbers(&self) -> Vec<f64> {
        [self.0.numbers(), self.1.numbers()].concat()
    }
}
