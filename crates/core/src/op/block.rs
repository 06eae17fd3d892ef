//! Named composites, which a backend may run natively instead of by their default graph.

use std::sync::Arc;

use super::{CumulativeOp, Fft2Op, QrMode, Row, Tolerance};
use crate::dtype::DType;
use crate::form::{Arguments, Reader};
use crate::region::Region;
use crate::shape::{Axis, AxisList, Name, TensorType};

/// A block that the user defines. Operands: the arguments, then the captures. Outputs: the default's results.
///
/// Only a host backend that knows its tag runs it natively; all others run its default. Gradients and vectorized axes
/// use the default, and a default with effects always runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserBlockOp {
    /// The tag's name.
    pub name: Name,
    /// The tag's attributes as they are printed, empty if it has none.
    pub attributes: Name,
    /// The index of the tag in the run's table.
    pub slot: usize,
    /// The number of operands that are arguments.
    pub args: usize,
    /// The region from arguments and captures to the results.
    pub default: Arc<Region>,
}

/// The properties of a block for which backends have a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTraits {
    /// Whether an element of the result depends only on the operands' elements in the same position.
    pub element_wise: bool,
}

const ELEMENT_WISE: BlockTraits = BlockTraits { element_wise: true };
const NOT_ELEMENT_WISE: BlockTraits = BlockTraits { element_wise: false };

/// The properties of a block that every backend runs by its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompositeTraits {
    /// Whether an element of the result depends only on the operands' elements in the same position.
    pub element_wise: bool,
    /// The number of operations for each element of the largest operand.
    pub operand_work: u64,
    /// The number of operations for each element of the result.
    pub result_work: u64,
    /// How the block is applied to vectorized operands.
    pub vectors: Vectors,
}

/// A function of square matrices. Its work is that of the products and of the system of an exponential (N. J. Higham,
/// "The scaling and squaring method for the matrix exponential revisited", 2005), for matrices of some tens of rows.
const MATRIX_FUNCTION: CompositeTraits =
    CompositeTraits { element_wise: false, operand_work: 1000, result_work: 0, vectors: Vectors::Leading };

/// How a block is applied to operands with vectorized axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// The vectorized axes become leading axes of its only operand.
    Leading,
    /// The block's definition is applied to the operands.
    Definition,
}

super::rows::rows! {
    /// A block for which no backend has a faster kernel than its definition.
    ///
    /// A new one needs only its row here and its definition in `compose::block`.
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
            /// The exponential of a matrix.
            Expm = "expm" (x) => MATRIX_FUNCTION;
            /// The principal square root of a matrix, complex.
            Sqrtm = "sqrtm" (x) => MATRIX_FUNCTION;
            /// The principal logarithm of a matrix, complex.
            Logm = "logm" (x) => MATRIX_FUNCTION;
        }
        tuples {}
        structs {
            /// `log(sum(exp(x)))`, without overflow.
            Logsumexp = "logsumexp" (x) {
                /// The axes, ascending.
                option axes (ascending in x): AxisList,
                /// Whether the axes are kept, with size 1.
                option keep_axes: bool,
            } => CompositeTraits {
                // Per element: a maximum, a subtraction, an exponential and an addition. Per result: a logarithm and
                // an addition.
                element_wise: false, operand_work: 4, result_work: 2, vectors: Vectors::Leading,
            };
            /// `(a, b)`: whether all elements are equal within `atol + rtol * |b|`.
            AllClose = "all_close" (a, b) {
                /// Whether NaN is equal to NaN.
                option equal_nan: bool,
                /// The relative tolerance.
                option rtol: Tolerance,
                /// The absolute tolerance.
                option atol: Tolerance,
            } => CompositeTraits {
                // The operations of |a - b| <= atol + rtol * |b|, and one `and`.
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
            /// The lower factor `l` of `l adjoint(l)`; NaN if there is none.
            Cholesky = "cholesky" (x) => NOT_ELEMENT_WISE;
            /// `(a, b)`: the `x` of `a x = b`.
            Solve = "solve" (a, b) => NOT_ELEMENT_WISE;
            /// A permutation, a lower triangular and an upper triangular factor.
            Lu = "lu" (x) => NOT_ELEMENT_WISE;
            /// The determinant.
            Determinant = "determinant" (x) => NOT_ELEMENT_WISE;
            /// The upper triangular and the unitary factor of `x = z t adjoint(z)`, complex.
            Schur = "schur" (x) => NOT_ELEMENT_WISE;
            /// The factor with one subdiagonal and the unitary factor of `x = q h adjoint(q)`.
            Hessenberg = "hessenberg" (x) => NOT_ELEMENT_WISE;
            /// The singular values, descending, real.
            Svdvals = "svdvals" (x) => NOT_ELEMENT_WISE;
            /// The eigenvalues of a symmetric or Hermitian matrix, ascending, real.
            Eigvalsh = "eigvalsh" (x) => NOT_ELEMENT_WISE;

            // order
            /// `(x, among)`: whether elements of `x` are among those of a vector.
            Isin = "isin" (x, among) => NOT_ELEMENT_WISE;

            // random
            /// `(key, counters)`: two random words for each pair of counters. The words and the counters of a pair
            /// are side by side on axis 0.
            Threefry = "threefry" (key, counters) => NOT_ELEMENT_WISE;
        }
        tuples {}
        structs {
            // reduce
            /// The running sum, product or extreme along an axis.
            Cumulative by
                /// The operation.
                op: CumulativeOp (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// Whether the scan begins at the last element.
                option reverse: bool,
            } => NOT_ELEMENT_WISE;

            // index
            /// `(x, indices)`: the elements of `x` at positions along an axis.
            Take = "take" (x, indices) {
                /// The axis that the axes of the indices replace.
                option axis (valid in x): Axis,
            } => NOT_ELEMENT_WISE;
            /// `(x, indices)`: for each position along the other axes, the elements of `x` at their own positions
            /// along an axis.
            TakeAlongAxis = "take_along_axis" (x, indices) {
                /// The axis.
                option axis (valid in x): Axis,
            } => NOT_ELEMENT_WISE;

            /// The number of each integer of a vector from 0 on. Other integers are left out.
            Bincount = "bincount" (x) {
                /// The number of integers that are counted.
                option length: usize,
            } => NOT_ELEMENT_WISE;

            // order
            /// The greatest elements along the last axis, descending, and their positions.
            TopK = "top_k" (x) {
                /// The number of elements.
                option k: usize,
            } => NOT_ELEMENT_WISE;

            /// The elements with the one at a position of a sort there: those that a sort puts before it are before it,
            /// the others behind it, both in their order.
            Partition = "partition" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The position.
                option kth: usize,
            } => NOT_ELEMENT_WISE;
            /// The positions of the elements of a partition before it.
            Argpartition = "argpartition" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The position.
                option kth: usize,
            } => NOT_ELEMENT_WISE;

            // fourier
            /// A transform along two axes.
            Fft2 by
                /// The direction.
                op: Fft2Op (x) {
                /// The axes.
                option axes (valid in x): [Axis; 2],
                /// The length along each, to which `x` is cut or padded with zeros.
                option lengths: [usize; 2],
                /// Real and imaginary parts of the result below this may be set to 0.
                option eps: Tolerance,
            } => NOT_ELEMENT_WISE;
            /// The first half of the frequencies of real elements, up to and including the middle one.
            Rfft = "rfft" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The length, to which `x` is cut or padded with zeros.
                option length: usize,
                /// Real and imaginary parts of the result below this may be set to 0.
                option eps: Tolerance,
            } => NOT_ELEMENT_WISE;
            /// The real elements that have the given first half of frequencies.
            Irfft = "irfft" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The length of the result.
                option length: usize,
                /// Parts of the result below this may be set to 0.
                option eps: Tolerance,
            } => NOT_ELEMENT_WISE;

            // linalg
            /// An orthogonal factor, and an upper triangular one.
            Qr = "qr" (x) {
                /// The size of the orthogonal factor.
                option mode: QrMode,
                /// Values below this count as 0.
                option eps: Tolerance,
            } => NOT_ELEMENT_WISE;
            /// The left singular vectors, the singular values, descending, and the right singular vectors, in rows.
            Svd = "svd" (x) {
                /// The maximum number of sweeps.
                option max_iter: usize,
                /// Whether both sets of singular vectors are complete bases.
                option full_matrices: bool,
            } => NOT_ELEMENT_WISE;
            /// Eigenvalues, ascending, and eigenvectors in columns, of a symmetric or Hermitian matrix.
            Eigh = "eigh" (x) {
                /// The maximum number of sweeps.
                option max_iter: usize,
                /// Values below this count as 0.
                option eps: Tolerance,
            } => NOT_ELEMENT_WISE;
            /// The complex eigenvalues, and eigenvectors in columns, of a square matrix.
            Eig = "eig" (x) {
                /// Whether there are eigenvectors.
                option vectors: bool,
            } => NOT_ELEMENT_WISE;

            // random
            /// The random bits of a key, as a vector of unsigned integers.
            RandomBits = "random_bits" (key) {
                /// The unsigned type.
                result dtype: DType,
                /// The number of elements.
                result count: usize,
            } => NOT_ELEMENT_WISE;
            /// The random numbers of a key in [0, 1), as a vector of floats.
            RandomUniform = "random_uniform" (key) {
                /// The float type.
                result dtype: DType,
                /// The number of elements.
                result count: usize,
            } => NOT_ELEMENT_WISE;
            /// `(key, bound)`: the random integers of a key below a bound, which is a scalar of u64, as a vector.
            /// Each is computed from two words of the integer's width, the upper word first, modulo the bound.
            RandomBelow = "random_below" (key, bound) {
                /// The integer type.
                result dtype: DType,
                /// The number of elements.
                result count: usize,
            } => NOT_ELEMENT_WISE;
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

    /// The block with the reader's name, or `None` if the name is not a block's.
    ///
    /// # Errors
    /// A sentence about the first invalid attribute.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Block>, String> {
        match CompositeBlock::read_row(reader)? {
            Some(block) => Ok(Some(Block::Composite(block))),
            None => Block::read_row(reader),
        }
    }

    /// Checks the number of operands and the attributes.
    ///
    /// # Errors
    /// A sentence about the first error.
    pub(crate) fn check(&self, types: &[&TensorType]) -> Result<(), String> {
        if let Block::Composite(block) = self { block.check_row(types) } else { self.check_row(types) }
    }

    /// The block after `lead` new leading axes were inserted into its operands.
    pub(crate) fn shifted(&self, lead: usize) -> Block {
        let shifted = if let Block::Composite(block) = self {
            block.row_with_leading_axes(lead).map(Block::Composite)
        } else {
            self.row_with_leading_axes(lead)
        };
        shifted.expect("every block has a row")
    }

    /// Whether an element of the result depends only on the operands' elements in the same position.
    pub const fn is_element_wise(&self) -> bool {
        match self.row() {
            Row::Declared(traits) => traits.element_wise,
            Row::Other(block) => block.traits().element_wise,
        }
    }
}

impl CompositeBlock {
    /// The properties of the block.
    pub const fn traits(&self) -> CompositeTraits {
        match self.row() {
            Row::Declared(traits) => traits,
            Row::Other(never) => match never {},
        }
    }
}
