//! Linear systems, factorizations and their composites.

use std::slice::from_ref;

use super::{Arg, Builder, Composite};
use crate::compose;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, CompositeBlock, Op, QrMode, Tolerance, Transform};
use crate::shape::Axes;

/// The order of a norm.
///
/// ```
/// use defn_core::Axes;
/// use defn_core::builder::{BuildCreate, BuildMatrix, Builder, NormOrder};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[2, 3]), DType::F32, None)?;
/// let rows = graph.norm(x, Some(NormOrder::Power(1)), 1, false)?;
/// assert_eq!(Builder::ty(&graph, &rows).to_string(), "f32[2]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormOrder {
    /// The p-norm of vectors. For matrices, 1 and -1 are the maximum and minimum of the columns' sums of magnitudes;
    /// 2 and -2 are the largest and smallest singular value.
    Power(i64),
    /// The p-norm of vectors, for any other number.
    Real(f64),
    /// The maximum magnitude of a vector; for matrices the maximum of the rows' sums of magnitudes.
    Infinity,
    /// The minimum magnitude of a vector; for matrices the minimum of the rows' sums of magnitudes.
    NegInfinity,
    /// The square root of the sum of squares of a matrix.
    Frobenius,
    /// The sum of the singular values of a matrix.
    Nuclear,
}

impl NormOrder {
    /// Numbers that tell orders apart.
    fn options(order: Option<NormOrder>) -> [u64; 2] {
        match order {
            None => [0, 0],
            Some(NormOrder::Power(power)) => [1, power.cast_unsigned()],
            Some(NormOrder::Real(power)) => [2, power.to_bits()],
            Some(NormOrder::Infinity) => [3, 0],
            Some(NormOrder::NegInfinity) => [4, 0],
            Some(NormOrder::Frobenius) => [5, 0],
            Some(NormOrder::Nuclear) => [6, 0],
        }
    }
}

/// Linear algebra on the matrices in the last two axes, for each position of the leading axes.
///
/// Results are floats or complex; floats of 8 and 16 bits are computed in f32. Factors have no axis names.
pub trait BuildMatrix: Builder + Sized {
    /// The conjugate transpose of the last two axes. For ranks below 2, all axes are reversed.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn adjoint(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::matrix::adjoint(self, &x)
    }

    /// The `x` of `t(a) x = b`, or of `x t(a) = b` if `a` is on the right. Only the lower or the upper triangle of
    /// `a` is read. `b` contains matrices, or one vector for each matrix of `a`. The result has the shape and names
    /// of `b`.
    ///
    /// # Errors
    /// Matrices that are not square, and a right-hand side of another size. In an eager call also a zero on the
    /// diagonal, which leads to infinities and NaN in compiled programs.
    fn triangular_solve(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        lower: bool,
        left_side: bool,
        transform: Transform,
    ) -> Result<Self::V> {
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        self.emit_one(Op::TriangularSolve { lower, left_side, transform_a: transform }, &[a, b])
    }

    /// The `x` of `a x = b`, where `b` contains matrices, or one vector for each matrix of `a`. The result is
    /// infinite or NaN if `a` is singular.
    ///
    /// # Errors
    /// Matrices that are not square, and a right-hand side of another size.
    fn solve(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        self.emit_one(Op::Block(Block::Solve), &[a, b])
    }

    /// The inverse; NaN if the magnitude of the determinant is below 1000 times the smallest normal number.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn invert(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::matrix::invert(self, &x)
    }

    /// The pseudo-inverse; for a number its inverse, for a vector its adjoint divided by its squared norm. A singular
    /// value counts as zero if it is at most `eps` times the largest, or at most the rounding error of zero: the
    /// larger side times the distance from 1 to the next number, times the largest.
    ///
    /// # Errors
    /// An `eps` that is negative or NaN.
    fn pinv(&mut self, x: impl Into<Arg<Self::V>>, eps: f64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::matrix::pinv(self, &x, eps)
    }

    /// The lower factor `l` of `l adjoint(l)`, with the names of `x`. Only the lower triangle of the Hermitian
    /// matrices is read. NaN if a matrix has a negative eigenvalue; a singular matrix leads to columns of zeros.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn cholesky(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Block(Block::Cholesky), &[x])
    }

    /// The orthogonal `q` and the upper triangular `r` of `x = q r`. In complete mode `q` is square, and `r` has the
    /// size of `x`. `eps` allows columns with a smaller norm to count as zero.
    ///
    /// # Errors
    /// Fewer than two axes.
    fn qr(&mut self, x: impl Into<Arg<Self::V>>, mode: QrMode, eps: f64) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let eps = Tolerance(eps);
        let mut factors = self.emit(Op::Block(Block::Qr { mode, eps }), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors)))
    }

    /// The permutation `p`, in the element type of `x`, the unit lower triangular `l` and the upper triangular `u` of
    /// `x = p l u`, with partial pivoting.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn lu(&mut self, x: impl Into<Arg<Self::V>>) -> Result<(Self::V, Self::V, Self::V)> {
        let x = self.operand(x)?;
        let mut factors = self.emit(Op::Block(Block::Lu), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors), take(&mut factors)))
    }

    /// The eigenvalues of symmetric or Hermitian matrices, ascending, and unit eigenvectors in columns. Elements of
    /// both become zero if their magnitude is at most `eps`. The iteration runs at most `max_iter` sweeps.
    ///
    /// # Errors
    /// Matrices that are not square, a `max_iter` of 0, and an `eps` that is negative or NaN.
    fn eigh(&mut self, x: impl Into<Arg<Self::V>>, max_iter: usize, eps: f64) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        at_least_one("eigh", max_iter)?;
        not_negative("eigh", eps)?;
        let eps = Tolerance(eps);
        let mut factors = self.emit(Op::Block(Block::Eigh { max_iter, eps }), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors)))
    }

    /// The singular vectors `u` in columns, the singular values `s`, descending, and the singular vectors `vh` in
    /// rows, with `x = u diag(s) vh`. Both sets of vectors are complete bases, or have one vector for each singular
    /// value. The iteration runs at most `max_iter` sweeps.
    ///
    /// # Errors
    /// Fewer than two axes, and a `max_iter` of 0.
    fn svd(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        max_iter: usize,
        full_matrices: bool,
    ) -> Result<(Self::V, Self::V, Self::V)> {
        let x = self.operand(x)?;
        at_least_one("svd", max_iter)?;
        let mut factors = self.emit(Op::Block(Block::Svd { max_iter, full_matrices }), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors), take(&mut factors)))
    }

    /// The eigenvalues of square matrices, complex, in no specified order, and unit eigenvectors in columns, whose element
    /// of the greatest magnitude is positive. NaN for matrices with a NaN or an infinity.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn eig(&mut self, x: impl Into<Arg<Self::V>>) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let mut factors = self.emit(Op::Block(Block::Eig { vectors: true }), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors)))
    }

    /// The eigenvalues of square matrices, complex, in no specified order.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn eigvals(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Block(Block::Eig { vectors: false }), &[x])
    }

    /// The upper triangular `t`, with the eigenvalues on its diagonal, and the unitary `z` of `x = z t adjoint(z)`, both
    /// complex.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn schur(&mut self, x: impl Into<Arg<Self::V>>) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let mut factors = self.emit(Op::Block(Block::Schur), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors)))
    }

    /// The `h`, which is zero below its first subdiagonal, and the unitary `q` of `x = q h adjoint(q)`.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn hessenberg(&mut self, x: impl Into<Arg<Self::V>>) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let mut factors = self.emit(Op::Block(Block::Hessenberg), &[x])?.into_iter();
        Ok((take(&mut factors), take(&mut factors)))
    }

    /// The exponential of square matrices: the sum of their powers over the factorials.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn expm(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        function_of_matrices(self, CompositeBlock::Expm, "expm", x)
    }

    /// The principal square root of square matrices, complex: that whose eigenvalues have no negative real part.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn sqrtm(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        function_of_matrices(self, CompositeBlock::Sqrtm, "sqrtm", x)
    }

    /// The principal logarithm of square matrices, complex: that whose eigenvalues have imaginary parts from -π to π.
    /// NaN for singular matrices.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn logm(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        function_of_matrices(self, CompositeBlock::Logm, "logm", x)
    }

    /// The sign of the determinant, for complex matrices its phase, and the logarithm of its magnitude, through
    /// [`lu`](BuildMatrix::lu). They are 0 and negative infinity for singular matrices.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn slogdet(&mut self, x: impl Into<Arg<Self::V>>) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let [sign, log] = self.composite_results(Composite::new("slogdet", &[]), [x], &|b, [x]| {
            let (sign, log) = compose::matrix::values::slogdet(b, x)?;
            Ok([sign, log])
        })?;
        Ok((sign, log))
    }

    /// The singular values, descending.
    ///
    /// # Errors
    /// Fewer than two axes.
    fn svdvals(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Block(Block::Svdvals), &[x])
    }

    /// The eigenvalues of symmetric or Hermitian matrices, ascending; real also for complex matrices.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn eigvalsh(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Block(Block::Eigvalsh), &[x])
    }

    /// The condition number: the quotient of the greatest and the least singular value. For another order than 2 and
    /// -2 the norm of the matrix times that of its inverse. Infinite for singular matrices.
    ///
    /// # Errors
    /// Fewer than two axes, and matrices without elements. For other orders than 2 and -2, matrices that are not square, several matrices, and an order that is not defined for matrices.
    fn cond(&mut self, x: impl Into<Arg<Self::V>>, order: Option<NormOrder>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("cond", &NormOrder::options(order)), [x], &|b, [x]| {
            compose::matrix::values::cond(b, x, order)
        })
    }

    /// The product of matrices, in the order of multiplication with the fewest products of elements. The first tensor
    /// may be a vector, as a row, and the last one, as a column; their axes are dropped.
    ///
    /// # Errors
    /// No tensor, other ranks, sizes that differ, and names of the result that are equal.
    fn multi_dot(&mut self, tensors: &[Self::V]) -> Result<Self::V> {
        compose::matrix::values::multi_dot(self, tensors)
    }

    /// The `x` of `a x = b` from the factors of `a` that [`lu`](BuildMatrix::lu) returns; NaN if `a` is singular.
    ///
    /// # Errors
    /// Factors that are not square or whose shapes differ, and a right-hand side of another size.
    fn lu_solve(
        &mut self,
        permutation: impl Into<Arg<Self::V>>,
        lower: impl Into<Arg<Self::V>>,
        upper: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (p, l, u) = (self.operand(permutation)?, self.operand(lower)?, self.operand(upper)?);
        let b = self.operand(b)?;
        compose::matrix::systems::lu_solve(self, [&p, &l, &u], &b)
    }

    /// The `x` of `a x = b` from the factor of `a` that [`cholesky`](BuildMatrix::cholesky) returns, or from the upper
    /// factor `u` of `a = adjoint(u) u`. Only that triangle is read.
    ///
    /// # Errors
    /// Factors that are not square, and a right-hand side of another size. In an eager call also a zero on the diagonal.
    fn cho_solve(
        &mut self,
        factor: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        lower: bool,
    ) -> Result<Self::V> {
        let (factor, b) = (self.operand(factor)?, self.operand(b)?);
        compose::matrix::systems::cho_solve(self, &factor, &b, lower)
    }

    /// The matrix with the given matrices along its diagonal and zeros elsewhere, without names. A vector is one row, a
    /// scalar one element.
    ///
    /// # Errors
    /// No tensor, and a rank above 2.
    fn block_diag(&mut self, tensors: &[Self::V]) -> Result<Self::V> {
        compose::matrix::systems::block_diag(self, tensors)
    }

    /// The matrix with equal elements along each diagonal, from its first column and its first row, whose first element
    /// is not used. Without a row it is the conjugate of the column. The result has no names.
    ///
    /// # Errors
    /// Another rank than 1.
    fn toeplitz(&mut self, column: impl Into<Arg<Self::V>>, row: Option<Arg<Self::V>>) -> Result<Self::V> {
        let column = self.operand(column)?;
        let row = row.map(|row| self.operand(row)).transpose()?;
        compose::matrix::systems::toeplitz(self, &column, row.as_ref())
    }

    /// The determinant.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn determinant(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(Op::Block(Block::Determinant), &[x])
    }

    /// The matrix to the given power. For a negative power, the inverse of the positive one; for zero, the identity
    /// in s32.
    ///
    /// # Errors
    /// Matrices that are not square.
    fn matrix_power(&mut self, x: impl Into<Arg<Self::V>>, power: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::matrix::matrix_power(self, &x, power)
    }

    /// The number of singular values of matrices above `eps` times their longer side times the largest singular value.
    ///
    /// # Errors
    /// Fewer than two axes, and an `eps` that is negative or NaN.
    fn matrix_rank(&mut self, x: impl Into<Arg<Self::V>>, eps: f64) -> Result<Self::V> {
        let x = self.operand(x)?;
        not_negative("matrix_rank", eps)?;
        self.composite(Composite::new("matrix_rank", &[eps.to_bits()]), [x], &|b, [x]| {
            compose::matrix::matrix_rank(b, x, eps)
        })
    }

    /// The shortest vector `x` that minimizes the distance of `a x` from `b`. Singular values below `eps` count as
    /// zero.
    ///
    /// # Errors
    /// Operands other than a matrix and a vector with one element for each row.
    fn least_squares(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        eps: f64,
    ) -> Result<Self::V> {
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        not_negative("least_squares", eps)?;
        compose::matrix::least_squares(self, &a, &b, eps)
    }

    /// The norms of the vectors along one axis, or of the matrices in two axes, rows first; real. The default order is
    /// the square root of the sum of squares along any number of axes.
    ///
    /// # Errors
    /// A scalar, axes that `x` does not have, an order that is not defined for vectors or for matrices, and an order
    /// for more than two axes.
    fn norm(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        order: Option<NormOrder>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axes = axes.into();
        let Ok(along) = self.ty(&x).shape.resolve_all("norm", &axes) else {
            return compose::matrix::norm(self, &x, order, &axes, keep_axes);
        };
        let [kind, power] = NormOrder::options(order);
        // Without axes, tensors of other ranks than matrices are vectors.
        let options = [kind, power, keep_axes.into(), matches!(axes, Axes::All).into()];
        self.composite(Composite::over("norm", &options, &along), [x], &|b, [x]| {
            compose::matrix::norm(b, x, order, &axes, keep_axes)
        })
    }
}

impl<B: Builder> BuildMatrix for B {}

/// A function whose definition has many ops.
fn function_of_matrices<B: Builder>(
    b: &mut B,
    block: CompositeBlock,
    name: &'static str,
    x: B::V,
) -> Result<B::V> {
    b.composite(Composite::new(name, &[]), [x], &|b, [x]| {
        b.emit_one(Op::Block(Block::Composite(block.clone())), from_ref(x))
    })
}

fn take<V>(factors: &mut impl Iterator<Item = V>) -> V {
    factors.next().expect("a factorization has all its factors")
}

fn at_least_one(op: &'static str, max_iter: usize) -> Result<()> {
    if max_iter > 0 {
        return Ok(());
    }
    let (option, given, required) = ("max_iter", "0".to_owned(), "at least 1".to_owned());
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}

fn not_negative(op: &'static str, eps: f64) -> Result<()> {
    if eps >= 0.0 {
        return Ok(());
    }
    let (option, given, required) = ("eps", eps.to_string(), "at least 0".to_owned());
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}
