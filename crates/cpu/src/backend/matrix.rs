//! How systems of equations and factorizations run: the copies that they overwrite, their workspace and results.

use defn_core::backend::{Buffer, Buffers};
use defn_core::op::{Block, Transform};
use defn_core::{DType, ErrorKind, Result, Shape, TensorType};
use num_complex::Complex;
use smallvec::SmallVec;
use std::sync::Arc;

use super::structural::Scratch;
use super::{Run, buffer};
use crate::buffer::Window;
use crate::kernels::matrix::{self, Field, Matrices, Part, Places, Task};
use crate::kernels::shape;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// In which dtype the matrices are computed.
fn working(dtype: DType) -> DType {
    let float = dtype.to_float();
    if float.is_float() && float.bits() < 32 { DType::F32 } else { float }
}

/// Runs the body with `$T` standing for the numbers of a working dtype.
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

impl Run<'_> {
    pub(super) fn triangular_solve(
        self,
        lower: bool,
        left_side: bool,
        transform: Transform,
    ) -> Result<Buffers> {
        let vector = self.has_vector();
        self.matrices(Task::of_triangular(lower, left_side, transform, vector))
    }

    pub(super) fn factor(self, block: &Block) -> Result<Buffers> {
        match Task::of_block(block) {
            Some(task) => self.matrices(task),
            None => self.refuse("it has no native form of it"),
        }
    }

    /// Whether the right-hand side of a system is a vector.
    fn has_vector(&self) -> bool {
        self.operands[1].ty.shape.rank() < self.operands[0].ty.shape.rank()
    }

    /// Runs a task on each matrix of the first operand.
    fn matrices(self, task: Task) -> Result<Buffers> {
        let (op, par) = (self.op, self.par);
        let sizes = self.operands[0].ty.shape.sizes();
        let (lead, sides) = sizes.split_at(sizes.len() - 2);
        let (batch, rows, columns) = (lead.iter().product::<usize>(), sides[0], sides[1]);
        let merged = self
            .operands
            .iter()
            .skip(1)
            .fold(self.operands[0].ty.dtype, |dtype, operand| dtype.merge(operand.ty.dtype));
        let dtype = working(merged);

        let windows = self.windows()?;
        let views = || {
            let pairs = self.operands.iter().zip(&windows);
            pairs.map(|(operand, window)| View::new(&operand.ty, window.bytes()))
        };
        // What is overwritten, or lies otherwise, is copied.
        let kept = views().next().filter(|view| task.keeps_matrix() && view.ty().dtype == dtype);
        let mut scratch = views()
            .skip(usize::from(kept.is_some()))
            .map(|view| Scratch::converted(op, view, dtype, par))
            .collect::<Result<SmallVec<[Scratch; 2]>>>()?;
        let mut copied = if kept.is_some() { None } else { Some(scratch.remove(0)) };
        match task {
            Task::Triangular { .. } if self.checked => {
                // SAFETY: the conversion has written every element.
                let copied = copied.as_ref().map(|copied| unsafe { copied.view() });
                let a = kept.or(copied).expect("a matrix");
                if with_field!(dtype, T => has_zero::<T>(a, rows)) {
                    return Err(ErrorKind::ZeroDiagonal { got: self.operands[0].ty.clone() }.into());
                }
            }
            Task::Triangular { .. }
            | Task::Solve
            | Task::Cholesky
            | Task::Lu
            | Task::Determinant
            | Task::Qr(_)
            | Task::Svd { .. }
            | Task::Eigh { .. } => {}
        }
        let fresh = match task {
            // The result takes the place of the right-hand side, or of the matrix.
            Task::Triangular { .. } | Task::Solve | Task::Cholesky => 0,
            Task::Lu | Task::Determinant | Task::Qr(_) | Task::Svd { .. } | Task::Eigh { .. } => {
                self.outputs.len()
            }
        };
        let mut results = self.outputs[..fresh]
            .iter()
            .map(|ty| Scratch::new(op, ty.with_dtype(dtype)?))
            .collect::<Result<SmallVec<[Scratch; 3]>>>()?;
        let right = scratch.first().map_or(0, |b| b.ty().size().checked_div(batch).unwrap_or(0));
        let room = with_field!(dtype, T => task.workspace::<T>((rows, columns), right));
        let parts = batch.div_ceil(matrix::grain(batch, (rows, columns), par));
        let mut work = Scratch::new(op, TensorType::new(dtype, Shape::new(&[parts, room]))?)?;

        with_field!(dtype, T => {
            let mut work = work.view_mut();
            matrix::clear::<T>(&mut work, par);
            let mut views: SmallVec<[ViewMut<'_>; 3]> = results.iter_mut().map(Scratch::view_mut).collect();
            for view in &mut views {
                matrix::clear::<T>(view, par);
            }
            let each = |view: &ViewMut<'_>| view.ty().size().checked_div(batch).unwrap_or(0);
            let lent;
            let a = match (kept, &mut copied) {
                (Some(kept), _) => Matrices::Kept(kept),
                // SAFETY: the conversion has written every element.
                (None, Some(copied)) if task.keeps_matrix() => Matrices::Kept(unsafe { copied.view() }),
                (None, Some(copied)) => {
                    lent = copied.view_mut();
                    Matrices::Lent(Part::new(&lent, rows * columns))
                }
                (None, None) => unreachable!("what is not kept is copied"),
            };
            let b = scratch.first_mut().map(Scratch::view_mut);
            let out: SmallVec<[Part<'_>; 3]> = views.iter().map(|view| Part::new(view, each(view))).collect();
            let places = Places {
                a,
                b: b.as_ref().map(|b| Part::new(b, each(b))),
                out: &out,
                work: Part::new(&work, room),
            };
            // SAFETY: conversions and `clear` have written every element, as numbers of this type, and the views
            // are borrowed here only.
            unsafe { matrix::run::<T>(task, batch, (rows, columns), places, par) };
        });

        if fresh == 0 {
            results.extend(scratch.pop().or(copied));
        }
        let outputs = self.outputs.iter().zip(results);
        outputs.map(|(ty, result)| finished(op, ty, result, par)).collect()
    }
}

/// A result as a buffer of its type.
fn finished(op: &'static str, ty: &TensorType, result: Scratch, par: Par) -> Result<Arc<dyn Buffer>> {
    let mut result = result;
    if result.dtype() != ty.dtype {
        let mut converted = Scratch::new(op, ty.clone())?;
        // SAFETY: kernels write every element of their results.
        shape::convert(unsafe { result.view() }, ty.dtype, &mut converted.view_mut(), par);
        result = converted;
    }
    // SAFETY: kernels and conversions write every element.
    let window: Window = unsafe { result.into_window() };
    Ok(buffer(window))
}
