//! How elements are put in order: rows by the kernels, other axes as rows of a transposed copy.

use defn_core::backend::Buffers;
use defn_core::op::Direction;
use defn_core::{Axis, Result, Shape, TensorType};
use smallvec::SmallVec;

use super::structural::Scratch;
use super::{Run, buffer};
use crate::kernels::order;
use crate::kernels::shape::{self, gather};
use crate::par::Par;
use crate::view::{View, ViewMut};

impl Run<'_> {
    pub(super) fn sort(self, axis: Axis, direction: Direction) -> Result<Buffers> {
        let op = self.op;
        self.along_rows(axis, |x, out, par| {
            let mut tmp = Scratch::new(op, out.ty().clone())?;
            let mut counts = Scratch::new(op, order::counts_scratch(x.ty()))?;
            order::sort(x, direction, out, &mut tmp.view_mut(), &mut counts.view_mut(), par);
            Ok(())
        })
    }

    pub(super) fn argsort(self, axis: Axis, direction: Direction) -> Result<Buffers> {
        let op = self.op;
        self.along_rows(axis, |x, out, par| {
            let mut pairs = Scratch::new(op, order::pairs_scratch(x.ty()))?;
            let mut tmp = Scratch::new(op, order::pairs_scratch(x.ty()))?;
            let mut counts = Scratch::new(op, order::counts_scratch(x.ty()))?;
            let pairs = [&mut pairs.view_mut(), &mut tmp.view_mut()];
            order::argsort(x, direction, out, pairs, &mut counts.view_mut(), par);
            Ok(())
        })
    }

    /// The `k` greatest elements of the last axis and their positions.
    pub(super) fn top_k(self, k: usize) -> Result<Buffers> {
        let (op, par) = (self.op, self.par);
        let [values, places] = self.outputs else { unreachable!("{op} has two outputs") };
        let windows = self.windows()?;
        let x = View::new(&self.operands[0].ty, windows[0].bytes());
        let [mut values, mut places] = [Scratch::new(op, values.clone())?, Scratch::new(op, places.clone())?];
        if order::is_few(x.ty(), k) {
            let mut candidates = Scratch::new(op, order::candidates_scratch(x.ty(), k))?;
            let candidates = &mut candidates.view_mut();
            order::top_k(x, k, &mut values.view_mut(), &mut places.view_mut(), candidates, par);
        } else {
            let mut all = Scratch::new(op, x.ty().with_dtype(places.dtype())?)?;
            let mut pairs = Scratch::new(op, order::pairs_scratch(x.ty()))?;
            let mut tmp = Scratch::new(op, order::pairs_scratch(x.ty()))?;
            let mut counts = Scratch::new(op, order::counts_scratch(x.ty()))?;
            let pairs = [&mut pairs.view_mut(), &mut tmp.view_mut()];
            order::argsort(x, Direction::Desc, &mut all.view_mut(), pairs, &mut counts.view_mut(), par);
            // SAFETY: the kernel writes every element.
            let all = unsafe { all.view() };
            order::first_of(x, all, k, &mut values.view_mut(), &mut places.view_mut(), par);
        }
        // SAFETY: kernels write every element of their results.
        Ok([values, places].into_iter().map(|result| buffer(unsafe { result.into_window() })).collect())
    }

    /// Runs a kernel that works on the last axis, with another axis there.
    fn along_rows(
        self,
        axis: Axis,
        kernel: impl FnOnce(View<'_>, &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let op = self.op;
        let sizes: SmallVec<[usize; 6]> = self.operands[0].ty.shape.sizes().into();
        let inner = sizes[axis.index() + 1..].iter().product::<usize>();
        if inner == 1 || self.outputs[0].size() == 0 {
            // The axes after it have one element, and no axis of the others is longer than the row.
            let rows = [self.outputs[0].size() / sizes[axis.index()].max(1), sizes[axis.index()]];
            return self.fresh(|views, out, par| {
                let ty = TensorType::new(views[0].ty().dtype, Shape::new(&rows))?;
                let out_ty = TensorType::new(out.ty().dtype, Shape::new(&rows))?;
                kernel(views[0].with_type(&ty), &mut out.with_type(&out_ty), par)
            });
        }
        // [outer][axis][inner] to [outer][inner][axis], and back.
        let outer = sizes[..axis.index()].iter().product::<usize>();
        let size = sizes[axis.index()];
        let order = Shape::new(&[0; 3]).axes().collect::<SmallVec<[Axis; 3]>>();
        let order = [order[0], order[2], order[1]];
        let rows = Shape::new(&[outer, inner, size]);
        self.fresh(|views, out, par| {
            let mut x = Scratch::new(op, TensorType::new(views[0].ty().dtype, rows.clone())?)?;
            shape::copy(&gather::transpose(&[outer, size, inner], &order), views[0], &mut x.view_mut(), par);
            let mut sorted = Scratch::new(op, TensorType::new(out.ty().dtype, rows.clone())?)?;
            // SAFETY: the copy writes every element.
            kernel(unsafe { x.view() }, &mut sorted.view_mut(), par)?;
            // SAFETY: kernels write every element of their result.
            let sorted = unsafe { sorted.view() };
            shape::copy(&gather::transpose(&[outer, inner, size], &order), sorted, out, par);
            Ok(())
        })
    }
}
