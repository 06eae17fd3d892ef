//! Linear systems and factorizations: the copies that they overwrite, their workspace and results.

use defn_core::backend::Buffers;
use defn_core::op::{Block, Transform};
use defn_core::{DType, ErrorKind, Result, Shape, TensorType};
use num_complex::Complex;
use smallvec::SmallVec;

use super::OpRun;
use super::scratch_allocator::{Scratch, ScratchAllocator};
use crate::kernels::matrix::{self, BatchBuffer, Field, Matrices, Task, TaskMemory};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The dtype in which the matrices are computed.
fn working(dtype: DType) -> DType {
    let float = dtype.to_float();
    if float.is_float() && float.bits() < 32 { DType::F32 } else { float }
}

/// Runs the body with `$T` as the number type of a working dtype.
macro_rules! with_field {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::C64 => {
                type $T = Complex<f32>;
                $body
            }
            DType::C128 => {
                type $T = Complex<f64>;
                $body
            }
            other => unreachable!("no matrix is computed in {other}"),
        }
    };
}

/// Whether a diagonal has a zero.
fn has_zero<T: Field>(a: View<'_>, n: usize) -> bool {
    let zero = |x: &T| x.abs() == <T::Real as Field>::ZERO;
    n > 0 && a.slice::<T>().chunks_exact(n * n).any(|a| a.iter().step_by(n + 1).any(zero))
}

impl OpRun<'_> {
    pub(super) fn triangular_solve(
        self,
        lower: bool,
        left_side: bool,
        transform: Transform,
    ) -> Result<Buffers> {
        // Whether the right-hand side is a vector.
        let vector = self.operand(1).shape.rank() < self.operand(0).shape.rank();
        self.matrices(Task::of_triangular(lower, left_side, transform, vector))
    }

    pub(super) fn factor(self, block: &Block) -> Result<Buffers> {
        match Task::of_block(block) {
            Some(task) => self.matrices(task),
            None => self.refuse("it has no native form of it"),
        }
    }

    /// Runs a task on each matrix of the first operand.
    fn matrices(self, task: Task) -> Result<Buffers> {
        let (allocator, checked) = (self.allocator, self.checked);
        let run = |views: &[View<'_>], outs: &mut [ViewMut<'_>], par: Par| {
            run_task(task, allocator, checked, views, outs, par)
        };
        match overwritten(task) {
            None => self.run_with_scratch_multi(run),
            Some(index) => {
                let dtype = self.output(0).dtype;
                let stays = self.operand(index).dtype == dtype && working(dtype) == dtype;
                let candidates: &[usize] = if stays { &[index] } else { &[] };
                self.run_with_scratch_in_place(candidates, |views, out, par| {
                    run(views, std::slice::from_mut(&mut out.reborrow()), par)
                })
            }
        }
    }
}

/// The operand whose memory the result takes.
fn overwritten(task: Task) -> Option<usize> {
    match task {
        Task::Triangular { .. } | Task::Solve => Some(1),
        Task::Cholesky => Some(0),
        Task::Lu
        | Task::Determinant
        | Task::Qr(_)
        | Task::Svd { .. }
        | Task::Eigh { .. }
        | Task::Eig { .. }
        | Task::Schur
        | Task::Hessenberg
        | Task::Svdvals
        | Task::Eigvalsh => None,
    }
}

/// The operand in whose memory the result of a task may be stored.
pub(super) fn aliased_operand(task: Task, operands: &[&TensorType], output: &TensorType) -> Option<usize> {
    let dtype = output.dtype;
    overwritten(task).filter(|&index| operands[index].dtype == dtype && working(dtype) == dtype)
}

/// Runs a task on each matrix of the first operand. The operand whose memory the result takes may already be stored
/// there.
fn run_task(
    task: Task,
    allocator: ScratchAllocator<'_>,
    checked: bool,
    operands: &[View<'_>],
    outs: &mut [ViewMut<'_>],
    par: Par,
) -> Result<()> {
    let sizes = operands[0].ty().shape.sizes();
    let (lead, sides) = sizes.split_at(sizes.len() - 2);
    let (batch, rows, columns) = (lead.iter().product::<usize>(), sides[0], sides[1]);
    let dtypes = operands.iter().map(|operand| operand.ty().dtype);
    let dtype = working(dtypes.reduce(DType::merge).expect("a matrix"));
    let dtype = if task.is_complex() { dtype.to_complex() } else { dtype };
    let each = |ty: &TensorType| ty.size().checked_div(batch).unwrap_or(0);

    // Results that are converted afterwards; kernels write the others directly.
    let mut wide = outs
        .iter()
        .map(|out| {
            (out.ty().dtype != dtype).then(|| allocator.scratch(out.ty().with_dtype(dtype)?)).transpose()
        })
        .collect::<Result<SmallVec<[Option<Scratch<'_>>; 3]>>>()?;
    {
        let pairs = outs.iter_mut().zip(&mut wide);
        let mut results: SmallVec<[ViewMut<'_>; 3]> = pairs
            .map(|(out, wide)| wide.as_mut().map_or_else(|| out.reborrow(), Scratch::view_mut))
            .collect();
        let overwritten_index = overwritten(task);
        match overwritten_index.map(|index| operands[index]) {
            Some(x) if !x.is_aliased() => allocator.convert(x, dtype, &mut results[0], par),
            Some(_) | None => {}
        }
        // A matrix is copied if it is overwritten or has another dtype.
        let a = operands[0];
        let mut copied = if overwritten_index == Some(0) || task.keeps_matrix() && a.ty().dtype == dtype {
            None
        } else {
            Some(allocator.converted(a, dtype, par)?)
        };
        let right =
            overwritten_index.filter(|&index| index > 0).map_or(0, |index| each(operands[index].ty()));
        let count = with_field!(dtype, T => task.workspace::<T>((rows, columns), right));
        let chunks = batch.div_ceil(matrix::grain(batch, (rows, columns)));
        let mut work = allocator.scratch(TensorType::new(dtype, Shape::new(&[chunks, count]))?)?;
        if !allocator.runs() {
            return Ok(());
        }
        if task.keeps_matrix() && checked {
            // SAFETY: the conversion has written every element.
            let a = copied.as_ref().map_or(a, |copied| unsafe { copied.view() });
            if with_field!(dtype, T => has_zero::<T>(a, rows)) {
                return Err(ErrorKind::ZeroDiagonal { got: operands[0].ty().clone() }.into());
            }
        }
        with_field!(dtype, T => {
            let mut work = work.view_mut();
            matrix::clear::<T>(&mut work, par);
            if overwritten_index.is_none() {
                results.iter_mut().for_each(|result| matrix::clear::<T>(result, par));
            }
            let out: SmallVec<[BatchBuffer<'_>; 3]> =
                results.iter().map(|result| BatchBuffer::new(result, each(result.ty()))).collect();
            let copy;
            let a = match &mut copied {
                // SAFETY: the conversion has written every element.
                Some(copied) if task.keeps_matrix() => Matrices::ReadOnly(unsafe { copied.view() }),
                Some(copied) => {
                    copy = copied.view_mut();
                    Matrices::Overwritten(BatchBuffer::new(&copy, rows * columns))
                }
                None if overwritten_index == Some(0) => Matrices::Overwritten(out[0]),
                None => Matrices::ReadOnly(a),
            };
            let b = if overwritten_index == Some(1) { Some(out[0]) } else { None };
            let out: &[BatchBuffer<'_>] = if overwritten_index.is_none() { &out } else { &[] };
            let task_memory = TaskMemory { a, b, out, work: BatchBuffer::new(&work, count) };
            // SAFETY: conversions and `clear` have written every element as a number of this type, and the views are
            // borrowed only here.
            unsafe { matrix::run::<T>(task, batch, (rows, columns), task_memory, par) };
        });
    }
    for (out, wide) in outs.iter_mut().zip(&wide) {
        if let Some(wide) = wide {
            // SAFETY: kernels write every element of their results.
            allocator.convert(unsafe { wide.view() }, out.ty().dtype, out, par);
        }
    }
    Ok(())
}
