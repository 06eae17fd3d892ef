//! Factorizations as calls of NVIDIA's library cuSOLVER, through the functions of JAX's package for CUDA.
//!
//! These functions take matrices column by column, with any number of leading axes. Matrices with elements that are
//! not finite are replaced before a call that need not end with them; the results are NaN, as in the default graphs.

use defn_core::op::{Block, QrMode};
use defn_core::{DType, TensorType};

use super::text::{Dims, List, Ssa, Ty, Writer, layout};
use super::value::half;
use super::{Lowering, Operands, Result};
use crate::element::ElementType as E;

/// The functions that programs call.
pub(crate) const SOLVER_CALLS: [&str; 8] = [
    "cusolver_potrf_ffi",
    "cusolver_getrf_ffi",
    "cu_lu_pivots_to_permutation",
    "cusolver_geqrf_ffi",
    "cusolver_orgqr_ffi",
    "cusolver_syevd_ffi",
    "cusolver_gesvd_ffi",
    "cusolver_gesvdj_ffi",
];

/// The number of rows and columns up to which Jacobi's method computes singular values, as in JAX.
const MAX_JACOBI: usize = 1024;
/// The number of rows and columns up to which Jacobi's method takes all matrices at once. It then has full vectors.
const MAX_BATCHED_JACOBI: usize = 32;

impl Lowering {
    /// The results of a block by the library, if it has a function for it.
    pub(super) fn by_solver(
        &mut self,
        block: &Block,
        x: &Operands<'_>,
        outputs: &[TensorType],
    ) -> Result<Option<Vec<Ssa>>> {
        if !self.has_solver || x.types[0].size() == 0 {
            return Ok(None);
        }
        // The first factor of LU is a permutation in the dtype of the operand.
        let dtype = outputs[outputs.len() - 1].dtype;
        let w = &mut self.writer;
        let matrix = |w: &mut Writer| w.load_as(&x.values[0], x.types[0].dtype, dtype);
        let results: Vec<Ssa> = match block {
            Block::Cholesky => {
                let matrix = matrix(w);
                let (factor, succeeded) = w.potrf(&matrix);
                return Ok(Some(vec![self.complete_cholesky(x, &factor, Some(&succeeded), &outputs[0])?]));
            }
            Block::Lu => {
                let matrix = matrix(w);
                let [permutation, lower, upper] = w.lu(&matrix);
                let permutation = w.cast(&permutation, DType::Bool, outputs[0].dtype);
                return Ok(Some(vec![permutation, w.store(&lower, dtype), w.store(&upper, dtype)]));
            }
            Block::Qr { mode, eps: _ } => {
                let matrix = matrix(w);
                w.qr(&matrix, *mode).into()
            }
            Block::Eigh { max_iter: _, eps } => {
                let matrix = matrix(w);
                w.eigh(&matrix, eps.0).into()
            }
            // The library's functions for complex matrices are not used: the default graph has no phases of its own.
            Block::Svd { .. } if dtype.is_complex() => return Ok(None),
            Block::Svd { max_iter: _, full_matrices } => {
                let matrix = matrix(w);
                w.svd(&matrix, *full_matrices).into()
            }
            // The default graphs of the first four have factorizations.
            Block::Solve
            | Block::Determinant
            | Block::Svdvals
            | Block::Eigvalsh
            // The library has no functions for these.
            | Block::Eig { .. }
            | Block::Schur
            | Block::Hessenberg
            | Block::Composite(_)
            | Block::Log2
            | Block::Log10
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Cumulative { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Isin
            | Block::Bincount { .. }
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => return Ok(None),
        };
        Ok(Some(results.iter().map(|result| self.writer.store(result, dtype)).collect()))
    }
}

/// How a function takes its matrices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Columns,
    Rows,
}

/// A call of a function of the library.
struct Call<'a> {
    function: &'a str,
    options: &'a str,
    order: Order,
    /// Whether it works in the memory of its first operand, which then is that of its first result.
    in_place: bool,
}

impl<'a> Call<'a> {
    /// A function without options.
    fn new(function: &'a str) -> Call<'a> {
        Call { function, options: "", order: Order::Columns, in_place: true }
    }
}

/// The sizes of the leading axes, then the sizes `last`.
fn batch_of(x: &Ssa, last: &[usize]) -> Dims {
    let lead = &x.dims()[..x.ty.rank() - 2];
    lead.iter().chain(last).copied().collect()
}

/// Rows and columns.
fn matrix_sizes(x: &Ssa) -> (usize, usize) {
    let [.., rows, columns] = x.dims() else { unreachable!("a matrix has two axes") };
    (*rows, *columns)
}

impl Writer {
    fn solver_call(&mut self, call: &Call<'_>, operands: &[&Ssa], results: &[Ty]) -> Vec<Ssa> {
        let rank = operands[0].ty.rank();
        let layout = |ty: &Ty| {
            let mut axes: Dims = (0..ty.rank()).rev().collect();
            if call.order == Order::Columns && ty.rank() == rank {
                axes.swap(0, 1);
            }
            layout(&axes)
        };
        let output = if results.len() == 1 { "" } else { "0" };
        let alias = format!(
            ", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [{output}], \
             operand_index = 0, operand_tuple_indices = []>]"
        );
        let attributes = format!(
            "call_target_name = \"{}\", api_version = 4 : i32, backend_config = {{{}}}, \
             operand_layouts = [{}], result_layouts = [{}]{}",
            call.function,
            call.options,
            List(operands.iter().map(|operand| layout(&operand.ty))),
            List(results.iter().map(layout)),
            if call.in_place { &alias } else { "" },
        );
        self.ops("custom_call", operands, &attributes, results)
    }

    /// The predicate that a call succeeded, for each matrix.
    fn succeeded(&mut self, info: &Ssa) -> Ssa {
        let zero = self.number_like(info, 0);
        self.compare(info, &zero, "EQ")
    }

    /// The factor by Cholesky's method in the lower triangle, and whether there is one.
    fn potrf(&mut self, x: &Ssa) -> (Ssa, Ssa) {
        let info = Ty::new(E::S32, &batch_of(x, &[]));
        let call = Call { options: "lower = true", ..Call::new("cusolver_potrf_ffi") };
        let results = self.solver_call(&call, &[x], &[x.ty.clone(), info]);
        (results[0].clone(), self.succeeded(&results[1]))
    }

    /// The permutation, as predicates, and the two triangular factors.
    fn lu(&mut self, x: &Ssa) -> [Ssa; 3] {
        let (n, rank) = (matrix_sizes(x).0, x.ty.rank());
        let pivots = Ty::new(E::S32, &batch_of(x, &[n]));
        let info = Ty::new(E::S32, &batch_of(x, &[]));
        // A singular matrix has factors too.
        let results =
            self.solver_call(&Call::new("cusolver_getrf_ffi"), &[x], &[x.ty.clone(), pivots.clone(), info]);
        let (packed, rows) = (&results[0], &results[1]);
        // The library counts rows from 1.
        let one = self.number_like(rows, 1);
        let rows = self.op("subtract", &[rows, &one], "", pivots.clone());
        let call = Call { order: Order::Rows, in_place: false, ..Call::new("cu_lu_pivots_to_permutation") };
        let order = self.solver_call(&call, &[&rows], &[pivots]).remove(0);
        // Row i of the product of the factors is row order[i] of the matrix.
        let others: Dims = (0..rank).filter(|&axis| axis != rank - 2).collect();
        let order = self.broadcast_along(&order, &others, x.dims());
        let own = self.iota(order.ty.clone(), rank - 2);
        let permutation = self.compare(&order, &own, "EQ");
        let (zero, one) = (self.number_like(packed, 0), self.number_like(packed, 1));
        let below = self.triangle(x, "GT");
        let on = self.triangle(x, "EQ");
        let edge = self.choose(&on, &one, &zero);
        [permutation, self.choose(&below, packed, &edge), self.choose(&below, &zero, packed)]
    }

    /// How the row of each element of a matrix compares with its column.
    pub fn triangle(&mut self, x: &Ssa, direction: &str) -> Ssa {
        let (rank, index_type) = (x.ty.rank(), x.ty.of(E::S64));
        let (rows, columns) = (self.iota(index_type.clone(), rank - 2), self.iota(index_type, rank - 1));
        self.compare(&rows, &columns, direction)
    }

    fn matrix_transpose(&mut self, x: &Ssa) -> Ssa {
        let rank = x.ty.rank();
        let mut axes: Dims = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        self.transpose(x, &axes)
    }

    /// A value for each matrix, or for each vector, of `x`, broadcast to the shape of `x`.
    pub fn for_each_matrix(&mut self, value: &Ssa, x: &Ssa) -> Ssa {
        let lead: Dims = (0..value.ty.rank()).collect();
        self.broadcast_along(value, &lead, x.dims())
    }

    /// The first rows and columns of a matrix.
    fn corner(&mut self, x: &Ssa, rows: usize, columns: usize) -> Ssa {
        let rank = x.ty.rank();
        self.cut(x, &Dims::from_elem(0, rank), &batch_of(x, &[rows, columns]), &Dims::from_elem(1, rank))
    }

    /// The orthogonal factor, and the triangular one.
    fn qr(&mut self, x: &Ssa, mode: QrMode) -> [Ssa; 2] {
        let (m, n) = matrix_sizes(x);
        let width = match mode {
            QrMode::Reduced => m.min(n),
            QrMode::Complete => m,
        };
        let scales = Ty::new(x.element(), &batch_of(x, &[m.min(n)]));
        let packed = self.solver_call(&Call::new("cusolver_geqrf_ffi"), &[x], &[x.ty.clone(), scales]);
        let reflections = self.corner(&packed[0], m, width.min(n));
        let zero = self.number(x.element(), 0);
        let further = i64::try_from(width.saturating_sub(n)).expect("sizes fit in 63 bits");
        let mut padding = vec![(0, 0, 0); x.ty.rank() - 1];
        padding.push((0, further, 0));
        let reflections = self.pad(&reflections, &zero, &padding);
        let call = Call::new("cusolver_orgqr_ffi");
        let ty = reflections.ty.clone();
        let orthogonal = self.solver_call(&call, &[&reflections, &packed[1]], &[ty]).remove(0);
        let upper = self.corner(&packed[0], width, n);
        let below = self.triangle(&upper, "GT");
        let zero = self.number_like(&upper, 0);
        [orthogonal, self.choose(&below, &zero, &upper)]
    }

    /// Eigenvalues, ascending, in the type of the matrix, and eigenvectors in columns. Magnitudes up to `eps` become 0.
    fn eigh(&mut self, x: &Ssa, eps: f64) -> [Ssa; 2] {
        let n = matrix_sizes(x).0;
        let is_complex = x.is_complex();
        let real = if is_complex { half(x.element()) } else { x.element() };
        let (x, is_finite) = self.finite_or_zero(x);
        // Halved first, so that the sum does not overflow.
        let two = self.number_like(&x, 2);
        let halved = self.op("divide", &[&x, &two], "", x.ty.clone());
        let turned = self.matrix_transpose(&halved);
        let turned = if is_complex { self.conjugate(&turned) } else { turned };
        let symmetric = self.op("add", &[&halved, &turned], "", x.ty.clone());
        let values = Ty::new(real, &batch_of(&x, &[n]));
        let info = Ty::new(E::S32, &batch_of(&x, &[]));
        let call = Call { options: "algorithm = 0 : ui8, lower = true", ..Call::new("cusolver_syevd_ffi") };
        let results = self.solver_call(&call, &[&symmetric], &[x.ty.clone(), values, info]);
        let succeeded = self.succeeded(&results[2]);
        let good = self.op("and", &[&is_finite, &succeeded], "", succeeded.ty.clone());
        let values = self.nan_unless(&good, &results[1], eps);
        let vectors = self.nan_unless(&good, &results[0], eps);
        if !is_complex {
            return [values, vectors];
        }
        let zero = self.number_like(&values, 0);
        let ty = values.ty.of(x.element());
        [self.op("complex", &[&values, &zero], "", ty), vectors]
    }

    /// The left singular vectors in columns, the values, descending, and the right vectors in rows.
    fn svd(&mut self, x: &Ssa, full: bool) -> [Ssa; 3] {
        let (m, n) = matrix_sizes(x);
        let k = m.min(n);
        let (x, is_finite) = self.finite_or_zero(x);
        let matrices = |rows, columns| Ty::new(x.element(), &batch_of(&x, &[rows, columns]));
        let values = Ty::new(x.element(), &batch_of(&x, &[k]));
        let info = Ty::new(E::S32, &batch_of(&x, &[]));
        let (rows, columns) = if full { (m, n) } else { (k, k) };
        let (left, values, right, info) = if m.max(n) <= MAX_JACOBI {
            let is_full = full || k <= MAX_BATCHED_JACOBI;
            let (wide, high) = if is_full { (m, n) } else { (k, k) };
            let options = format!("compute_uv = true, full_matrices = {is_full}");
            let call = Call { options: &options, ..Call::new("cusolver_gesvdj_ffi") };
            let types = [x.ty.clone(), values, matrices(m, wide), matrices(n, high), info];
            let results = self.solver_call(&call, &[&x], &types);
            let left = self.corner(&results[2], m, rows);
            // These are in columns.
            let right = self.corner(&results[3], n, columns);
            (left, results[1].clone(), self.matrix_transpose(&right), results[4].clone())
        } else {
            // The function takes matrices with no more columns than rows: a wide one row by row is its transpose
            // column by column.
            let is_wide = m < n;
            let options = format!("compute_uv = true, full_matrices = {full}, transposed = {is_wide}");
            let order = if is_wide { Order::Rows } else { Order::Columns };
            let call = Call { options: &options, order, ..Call::new("cusolver_gesvd_ffi") };
            let (left, right) = (matrices(m, rows), matrices(columns, n));
            let (first, second) = if is_wide { (right, left) } else { (left, right) };
            let results = self.solver_call(&call, &[&x], &[x.ty.clone(), values, first, second, info]);
            let (left, right) = if is_wide { (3, 2) } else { (2, 3) };
            (results[left].clone(), results[1].clone(), results[right].clone(), results[4].clone())
        };
        let succeeded = self.succeeded(&info);
        let good = self.op("and", &[&is_finite, &succeeded], "", succeeded.ty.clone());
        [left, values, right].map(|result| self.nan_unless(&good, &result, 0.0))
    }

    /// Matrices with all elements finite, and zeros instead of the others, with a predicate for each.
    fn finite_or_zero(&mut self, x: &Ssa) -> (Ssa, Ssa) {
        let rank = x.ty.rank();
        let bad = self.parts(x, |w, x| {
            let finite = w.op("is_finite", &[x], "", x.ty.of(E::Pred));
            w.op("not", &[&finite], "", finite.ty.clone())
        });
        let is_finite = self.op("not", &[&bad], "", bad.ty.clone());
        let yes = self.number(E::Pred, 1);
        let good = self.fold(&is_finite, &yes, &[rank - 2, rank - 1], "and");
        let all = self.for_each_matrix(&good, x);
        let zero = self.number_like(x, 0);
        (self.choose(&all, x, &zero), good)
    }

    /// Results for each matrix, NaN where the predicate does not hold. Magnitudes up to `eps` become 0.
    fn nan_unless(&mut self, good: &Ssa, x: &Ssa, eps: f64) -> Ssa {
        let is_complex = x.is_complex();
        let size = if is_complex { self.complex_abs(x) } else { self.op("abs", &[x], "", x.ty.clone()) };
        let kept = if eps == 0.0 {
            x.clone()
        } else {
            let bound = self.float_like(&size, eps);
            let small = self.compare(&size, &bound, "LE");
            let zero = self.number_like(x, 0);
            self.choose(&small, &zero, x)
        };
        let nan = self.float_like(&size, f64::NAN);
        let nan = if is_complex { self.op("complex", &[&nan, &nan], "", x.ty.clone()) } else { nan };
        let good = self.for_each_matrix(good, x);
        self.choose(&good, &kept, &nan)
    }
}
