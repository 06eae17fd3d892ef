//! Composites with a name, which a backend may run natively instead of by their default graph.

use std::sync::Arc;

use super::{CumulativeOp, FftOp, QrMode, Tolerance};
use crate::dtype::DType;
use crate::region::Region;
use crate::shape::{Axis, AxisList, Name};

/// A block that a user has made. Operands: the arguments, then the captures. Outputs: the default's results.
///
/// It is its default to everybody but a host backend that knows its tag. Gradients and vectorized axes go through
/// the default, and a default with effects is what runs in any case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserBlockOp {
    /// The tag's name.
    pub name: Name,
    /// The tag's attributes as they print, empty where it has none.
    pub attributes: Name,
    /// Which entry of the run's table holds the tag.
    pub slot: usize,
    /// How many operands are arguments.
    pub args: usize,
    /// From arguments and captures to the results.
    pub default: Arc<Region>,
}

/// What a block computes. Its default, in primitive ops, is in `compose::block`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    // elementwise
    /// 1 where `x` is zero.
    LogicalNot,
    /// The angle of a complex number.
    Phase,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,

    // reduce
    /// `log(sum(exp(x)))`, without overflow.
    Logsumexp {
        /// The axes, ascending.
        axes: AxisList,
        /// Whether the axes stay, with size 1.
        keep_axes: bool,
    },
    /// `(a, b)`: 1 if all elements agree within `atol + rtol * |b|`.
    AllClose {
        /// Whether NaN agrees with NaN.
        equal_nan: bool,
        /// The relative tolerance.
        rtol: Tolerance,
        /// The absolute tolerance.
        atol: Tolerance,
    },
    /// At each place of an axis, what is made of the elements up to it.
    Cumulative {
        /// What is made of them.
        op: CumulativeOp,
        /// The axis.
        axis: Axis,
        /// Whether the scan begins at the last element.
        reverse: bool,
    },

    // index
    /// `(x, indices)`: `x` at positions along an axis.
    Take {
        /// The axis, which gives way to the axes of the indices.
        axis: Axis,
    },
    /// `(x, indices)`: `x` at a position along an axis for each place along the others.
    TakeAlongAxis {
        /// The axis.
        axis: Axis,
    },

    // order
    /// The greatest elements along the last axis, descending, and their positions.
    TopK {
        /// How many.
        k: usize,
    },

    // fourier
    /// A transform along two axes.
    Fft2 {
        /// The direction.
        op: FftOp,
        /// The axes.
        axes: [Axis; 2],
        /// The length along each, to which `x` is cut or filled up with zeros.
        lengths: [usize; 2],
        /// Parts of the result smaller than this may be 0.
        eps: Tolerance,
    },
    /// The first half of the frequencies of real elements, the last of which is in the middle.
    Rfft {
        /// The axis.
        axis: Axis,
        /// The length, to which `x` is cut or filled up with zeros.
        length: usize,
        /// Parts of the result smaller than this may be 0.
        eps: Tolerance,
    },
    /// Real elements from the first half of their frequencies.
    Irfft {
        /// The axis.
        axis: Axis,
        /// The length of the result.
        length: usize,
        /// Parts of the result smaller than this may be 0.
        eps: Tolerance,
    },

    // linalg
    /// The lower factor `l` of `l adjoint(l)`; NaN where there is none.
    Cholesky,
    /// `(a, b)`: the `x` of `a x = b`.
    Solve,
    /// An orthogonal factor, and an upper triangular one.
    Qr {
        /// How much of the orthogonal factor.
        mode: QrMode,
        /// What is small enough to be 0.
        eps: Tolerance,
    },
    /// A permutation, a lower and an upper triangular factor.
    Lu,
    /// The singular vectors on the left, the singular values, descending, and the vectors on the right, in rows.
    Svd {
        /// The most sweeps of an iteration.
        max_iter: usize,
        /// Whether both sets of vectors are complete.
        full_matrices: bool,
    },
    /// Eigenvalues, ascending, and eigenvectors in columns, of a symmetric or Hermitian matrix.
    Eigh {
        /// The most sweeps of an iteration.
        max_iter: usize,
        /// What is small enough to be 0.
        eps: Tolerance,
    },
    /// The determinant.
    Determinant,

    // random
    /// `(key, counters)`: a pair of random words for each pair of counters, which stand side by side on axis 0.
    Threefry,
    /// The random bits of a key, as a vector of unsigned integers.
    RandomBits {
        /// The unsigned type.
        dtype: DType,
        /// How many.
        count: usize,
    },
    /// The random numbers of a key in [0, 1), as a vector of floats.
    RandomUniform {
        /// The float type.
        dtype: DType,
        /// How many.
        count: usize,
    },
    /// `(key, bound)`: the random integers of a key below a bound, a scalar of u64, as a vector. Two words of an
    /// integer's bits, the upper one first, modulo the bound.
    RandomBelow {
        /// The integer type.
        dtype: DType,
        /// How many.
        count: usize,
    },
}
