//! Composites with a name, which a backend may run natively instead of by their default graph.

use std::sync::Arc;

use super::{CumulativeOp, Fft2Op, QrMode, Row, Tolerance};
use crate::dtype::DType;
use crate::form::{Arguments, Reader};
use crate::region::Region;
use crate::shape::{Axis, AxisList, Name, TensorType};

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

/// The facts about a block of which backends have a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTraits {
    /// Whether an element of the result is computed from those of the operands in the same position.
    pub element_wise: bool,
}

const ELEMENT_WISE: BlockTraits = BlockTraits { element_wise: true };
const OTHER: BlockTraits = BlockTraits { element_wise: false };

/// The facts about a block that every backend runs by its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompositeTraits {
    /// Whether an element of the result is computed from those of the operands in the same position.
    pub element_wise: bool,
    /// The operations for each element of the largest operand.
    pub operand_work: u64,
    /// The operations for each element of the result.
    pub result_work: u64,
    /// How it is applied to vectorized operands.
    pub vectors: Vectors,
}

/// How a block is applied to operands with vectorized axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// The axes are leading axes of its one operand.
    Leading,
    /// By its definition.
    Definition,
}

super::rows::rows! {
    /// A block that no backend has a better way to run than its definition.
    ///
    /// Everything about a new one follows from its row, and from its definition in `compose::block`.
    pub enum CompositeBlock: CompositeTraits {
        others: std::convert::Infallible {}
        units {
            /// Whether `x` is zero.
            LogicalNot = "logical_not" (x) => CompositeTraits {
                element_wise: true, operand_work: 0, result_work: 1, vectors: Vectors::Leading,
            };
            /// The angle of a complex number.
            Phase = "phase" (x) => CompositeTraits {
                element_wise: true, operand_work: 0, result_work: 1, vectors: Vectors::Leading,
            };
        }
        tuples {}
        structs {
            /// `log(sum(exp(x)))`, without overflow.
            Logsumexp = "logsumexp" (x) {
                /// The axes, ascending.
                option axes (ascending in x): AxisList,
                /// Whether the axes stay, with size 1.
                option keep_axes: bool,
            } => CompositeTraits {
                // The greatest, a difference, an exponential and a sum for each; a logarithm and a sum for each result.
                element_wise: false, operand_work: 4, result_work: 2, vectors: Vectors::Leading,
            };
            /// `(a, b)`: whether all elements agree within `atol + rtol * |b|`.
            AllClose = "all_close" (a, b) {
                /// Whether NaN agrees with NaN.
                option equal_nan: bool,
                /// The relative tolerance.
                option rtol: Tolerance,
                /// The absolute tolerance.
                option atol: Tolerance,
            } => CompositeTraits {
                // |a - b| <= atol + rtol * |b|, and all of them.
                element_wise: false, operand_work: 7, result_work: 0, vectors: Vectors::Definition,
            };
        }
    }
}

super::rows::rows! {
    /// What a block computes. Its definition, in primitive ops, is in `compose::block`.
    pub enum Block: BlockTraits {
        others: &CompositeBlock {
            /// A block that every backend runs by its definition.
            Composite(block: CompositeBlock) => block;
        }
        units {
            // elementwise
            /// The logarithm to base 2.
            Log2 = "log2" (x) => ELEMENT_WISE;
            /// The logarithm to base 10.
            Log10 = "log10" (x) => ELEMENT_WISE;

            // linalg
            /// The lower factor `l` of `l adjoint(l)`; NaN where there is none.
            Cholesky = "cholesky" (x) => OTHER;
            /// `(a, b)`: the `x` of `a x = b`.
            Solve = "solve" (a, b) => OTHER;
            /// A permutation, a lower and an upper triangular factor.
            Lu = "lu" (x) => OTHER;
            /// The determinant.
            Determinant = "determinant" (x) => OTHER;

            // random
            /// `(key, counters)`: a pair of random words for each pair of counters, which stand side by side on axis 0.
            Threefry = "threefry" (key, counters) => OTHER;
        }
        tuples {}
        structs {
            // reduce
            /// The running sum, product or extreme along an axis.
            Cumulative by
                /// Which.
                op: CumulativeOp (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// Whether the scan begins at the last element.
                option reverse: bool,
            } => OTHER;

            // index
            /// `(x, indices)`: `x` at positions along an axis.
            Take = "take" (x, indices) {
                /// The axis, in whose place the axes of the indices are.
                option axis (valid in x): Axis,
            } => OTHER;
            /// `(x, indices)`: `x` at a position along an axis for each place along the others.
            TakeAlongAxis = "take_along_axis" (x, indices) {
                /// The axis.
                option axis (valid in x): Axis,
            } => OTHER;

            // order
            /// The greatest elements along the last axis, descending, and their positions.
            TopK = "top_k" (x) {
                /// How many.
                option k: usize,
            } => OTHER;

            // fourier
            /// A transform along two axes.
            Fft2 by
                /// The direction.
                op: Fft2Op (x) {
                /// The axes.
                option axes (valid in x): [Axis; 2],
                /// The length along each, to which `x` is cut or filled up with zeros.
                option lengths: [usize; 2],
                /// Parts of the result smaller than this may be 0.
                option eps: Tolerance,
            } => OTHER;
            /// The first half of the frequencies of real elements, the last of which is in the middle.
            Rfft = "rfft" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The length, to which `x` is cut or filled up with zeros.
                option length: usize,
                /// Parts of the result smaller than this may be 0.
                option eps: Tolerance,
            } => OTHER;
            /// Real elements from the first half of their frequencies.
            Irfft = "irfft" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The length of the result.
                option length: usize,
                /// Parts of the result smaller than this may be 0.
                option eps: Tolerance,
            } => OTHER;

            // linalg
            /// An orthogonal factor, and an upper triangular one.
            Qr = "qr" (x) {
                /// How much of the orthogonal factor.
                option mode: QrMode,
                /// What is small enough to be 0.
                option eps: Tolerance,
            } => OTHER;
            /// The singular vectors on the left, the singular values, descending, and the vectors on the right, in rows.
            Svd = "svd" (x) {
                /// The most sweeps of an iteration.
                option max_iter: usize,
                /// Whether both sets of vectors are complete.
                option full_matrices: bool,
            } => OTHER;
            /// Eigenvalues, ascending, and eigenvectors in columns, of a symmetric or Hermitian matrix.
            Eigh = "eigh" (x) {
                /// The most sweeps of an iteration.
                option max_iter: usize,
                /// What is small enough to be 0.
                option eps: Tolerance,
            } => OTHER;

            // random
            /// The random bits of a key, as a vector of unsigned integers.
            RandomBits = "random_bits" (key) {
                /// The unsigned type.
                result dtype: DType,
                /// How many.
                result count: usize,
            } => OTHER;
            /// The random numbers of a key in [0, 1), as a vector of floats.
            RandomUniform = "random_uniform" (key) {
                /// The float type.
                result dtype: DType,
                /// How many.
                result count: usize,
            } => OTHER;
            /// `(key, bound)`: the random integers of a key below a bound, a scalar of u64, as a vector. Two words of an
            /// integer's bits, the upper one first, modulo the bound.
            RandomBelow = "random_below" (key, bound) {
                /// The integer type.
                result dtype: DType,
                /// How many.
                result count: usize,
            } => OTHER;
        }
    }
}

impl Block {
    /// The public name.
    pub(crate) fn name(&self) -> &'static str {
        let name = if let Block::Composite(block) = self { block.row_name() } else { self.row_name() };
        name.expect("every block has a row")
    }

    /// The operands and attributes.
    pub(crate) fn arguments(&self) -> Arguments {
        let arguments =
            if let Block::Composite(block) = self { block.row_arguments() } else { self.row_arguments() };
        arguments.expect("every block has a row")
    }

    /// The block that was read, if the name is that of one.
    ///
    /// # Errors
    /// A sentence about the first attribute that is wrong.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Block>, String> {
        match CompositeBlock::read_row(reader)? {
            Some(block) => Ok(Some(Block::Composite(block))),
            None => Block::read_row(reader),
        }
    }

    /// Checks the number of operands and the attributes.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub(crate) fn check(&self, types: &[&TensorType]) -> Result<(), String> {
        if let Block::Composite(block) = self { block.check_row(types) } else { self.check_row(types) }
    }

    /// The block behind so many new leading axes.
    pub(crate) fn behind(&self, lead: usize) -> Block {
        let behind = if let Block::Composite(block) = self {
            block.row_behind(lead).map(Block::Composite)
        } else {
            self.row_behind(lead)
        };
        behind.expect("every block has a row")
    }

    /// Whether an element of the result is computed from those of the operands in the same position.
    pub const fn is_element_wise(&self) -> bool {
        match self.row() {
            Row::Declared(traits) => traits.element_wise,
            Row::Other(block) => block.traits().element_wise,
        }
    }
}

impl CompositeBlock {
    /// The facts about the block.
    pub const fn traits(&self) -> CompositeTraits {
        match self.row() {
            Row::Declared(traits) => traits,
            Row::Other(never) => match never {},
        }
    }
}
