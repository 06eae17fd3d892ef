//! Sorting: the kernels sort rows; another axis is moved to the rows of a transposed copy.

use defn_core::backend::Buffers;
use defn_core::op::Direction;
use defn_core::{Axis, Result, Shape, TensorType};
use smallvec::SmallVec;

use super::OpRun;
use crate::kernels::order;
use crate::kernels::shape::gather;
use crate::par::Par;
use crate::view::{View, ViewMut};

impl OpRun<'_> {
    pub(super) fn sort(self, axis: Axis, direction: Direction) -> Result<Buffers> {
        let allocator = self.allocator;
        self.along_rows(axis, |x, out, par| {
            let mut tmp = allocator.scratch(out.ty().clone())?;
            let mut counts = allocator.scratch(order::counts_scratch(x.ty()))?;
            if allocator.runs() {
                order::sort(x, direction, out, &mut tmp.view_mut(), &mut counts.view_mut(), par);
            }
            Ok(())
        })
    }

    pub(super) fn argsort(self, axis: Axis, direction: Direction) -> Result<Buffers> {
        let allocator = self.allocator;
        self.along_rows(axis, |x, out, par| {
            let mut pairs = allocator.scratch(order::pairs_scratch(x.ty()))?;
            let mut tmp = allocator.scratch(order::pairs_scratch(x.ty()))?;
            let mut counts = allocator.scratch(order::counts_scratch(x.ty()))?;
            if allocator.runs() {
                let pairs = [&mut pairs.view_mut(), &mut tmp.view_mut()];
                order::argsort(x, direction, out, pairs, &mut counts.view_mut(), par);
            }
            Ok(())
        })
    }

    /// The elements, or their positions, on both sides of the one at a position of a sort.
    pub(super) fn partition(self, axis: Axis, kth: usize, wants_positions: bool) -> Result<Buffers> {
        let allocator = self.allocator;
        self.along_rows(axis, |x, out, par| {
            let mut keys = allocator.scratch(order::keys_scratch(x.ty()))?;
            let mut tmp = allocator.scratch(order::keys_scratch(x.ty()))?;
            if allocator.runs() {
                let kernel = if wants_positions { order::argpartition } else { order::partition };
                kernel(x, kth, out, [&mut keys.view_mut(), &mut tmp.view_mut()], par);
            }
            Ok(())
        })
    }

    /// Whether elements are among others.
    pub(super) fn isin(self) -> Result<Buffers> {
        let allocator = self.allocator;
        self.run_with_scratch(|views, out, par| {
            let dtype = views[0].ty().dtype.merge(views[1].ty().dtype);
            let convert = |view: View<'_>| match view.ty().dtype == dtype {
                true => Ok(None),
                false => allocator.converted(view, dtype, par).map(Some),
            };
            let (x, among) = (convert(views[0])?, convert(views[1])?);
            let among_ty = views[1].ty().with_dtype(dtype)?;
            let mut table = allocator.scratch(order::table_scratch(&among_ty))?;
            if allocator.runs() {
                // SAFETY: conversions write every element.
                let (x, among) = unsafe {
                    (
                        x.as_ref().map_or(views[0], |x| x.view()),
                        among.as_ref().map_or(views[1], |among| among.view()),
                    )
                };
                order::isin(x, among, out, &mut table.view_mut(), par);
            }
            Ok(())
        })
    }

    /// The `k` greatest elements of the last axis and their positions.
    pub(super) fn top_k(self, k: usize) -> Result<Buffers> {
        let allocator = self.allocator;
        self.run_with_scratch_multi(|views, outs, par| {
            let x = views[0];
            let [values, positions] = outs else { unreachable!("{} has two outputs", allocator.op) };
            if order::selection_is_faster(x.ty(), k) {
                let mut candidates = allocator.scratch(order::candidates_scratch(x.ty(), k))?;
                if allocator.runs() {
                    order::top_k(x, k, values, positions, &mut candidates.view_mut(), par);
                }
                return Ok(());
            }
            let mut all = allocator.scratch(x.ty().with_dtype(positions.ty().dtype)?)?;
            let mut pairs = allocator.scratch(order::pairs_scratch(x.ty()))?;
            let mut tmp = allocator.scratch(order::pairs_scratch(x.ty()))?;
            let mut counts = allocator.scratch(order::counts_scratch(x.ty()))?;
            if allocator.runs() {
                let pairs = [&mut pairs.view_mut(), &mut tmp.view_mut()];
                let counts = &mut counts.view_mut();
                order::argsort(x, Direction::Desc, &mut all.view_mut(), pairs, counts, par);
                // SAFETY: the kernel writes every element.
                order::first_of(x, unsafe { all.view() }, k, values, positions, par);
            }
            Ok(())
        })
    }

    /// Runs a kernel for the last axis along another axis.
    fn along_rows(
        self,
        axis: Axis,
        kernel: impl FnOnce(View<'_>, &mut ViewMut<'_>, Par) -> Result<()>,
    ) -> Result<Buffers> {
        let allocator = self.allocator;
        let sizes: SmallVec<[usize; 6]> = self.operand(0).shape.sizes().into();
        let inner = sizes[axis.index() + 1..].iter().product::<usize>();
        if inner == 1 || self.output(0).size() == 0 {
            // The axes behind it have one element, so that it is the row axis without a copy.
            let rows = [self.output(0).size() / sizes[axis.index()].max(1), sizes[axis.index()]];
            return self.run_with_scratch(|views, out, par| {
                let ty = TensorType::new(views[0].ty().dtype, Shape::new(&rows))?;
                let out_ty = TensorType::new(out.ty().dtype, Shape::new(&rows))?;
                kernel(views[0].with_type(&ty), &mut out.with_type(&out_ty), par)
            });
        }
        // [outer][axis][inner] to [outer][inner][axis], and back.
        let outer = sizes[..axis.index()].iter().product::<usize>();
        let size = sizes[axis.index()];
        let order = Shape::new(&[0; 3]).axes().collect::<SmallVec<[Axis; 6]>>();
        let order = [order[0], order[2], order[1]];
        let rows = Shape::new(&[outer, inner, size]);
        self.run_with_scratch(|views, out, par| {
            let mut x = allocator.scratch(TensorType::new(views[0].ty().dtype, rows.clone())?)?;
            allocator.copy(
                &gather::transpose(&[outer, size, inner], &order),
                views[0],
                &mut x.view_mut(),
                par,
            );
            let mut sorted = allocator.scratch(TensorType::new(out.ty().dtype, rows.clone())?)?;
            // SAFETY: the copy writes every element.
            kernel(unsafe { x.view() }, &mut sorted.view_mut(), par)?;
            // SAFETY: kernels write every element of their result.
            let sorted = unsafe { sorted.view() };
            allocator.copy(&gather::transpose(&[outer, inner, size], &order), sorted, out, par);
            Ok(())
        })
    }
}
