//! Windows and convolutions: choice of dtype, and scratch memory.

use defn_core::backend::Buffers;
use defn_core::op::{ConvOp, Window, WindowOp, WindowScatterOp};
use defn_core::{Axis, DType, Result, Shape, TensorType};

use super::OpRun;
use super::scratch_allocator::{Scratch, ScratchAllocator};
use crate::kernels::epilogue::EpilogueFn;
use crate::kernels::linalg::compute_dtype;
use crate::kernels::shape::gather;
use crate::kernels::window::{self, AxisOrder, AxisPass, Conv, Pool};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// An operand in the type in which elements of `dtype` are computed; `scratch_slot` owns the copy, if one is needed.
pub(super) fn computed<'a, 'r: 'a>(
    allocator: ScratchAllocator<'r>,
    x: View<'a>,
    dtype: DType,
    scratch_slot: &'a mut Option<Scratch<'r>>,
    par: Par,
) -> Result<View<'a>> {
    let computed = compute_dtype(dtype);
    if x.ty().dtype == computed && dtype == computed {
        return Ok(x);
    }
    let mut scratch = allocator.scratch(x.ty().with_dtype(computed)?)?;
    allocator.convert(x, dtype, &mut scratch.view_mut(), par);
    // SAFETY: the conversion writes every element.
    Ok(unsafe { scratch_slot.insert(scratch).view() })
}

/// An operand with its axes permuted to the order of their roles.
fn by_role<'a, 'r: 'a>(
    allocator: ScratchAllocator<'r>,
    x: View<'a>,
    permutation: &[Axis],
    scratch_slot: &'a mut Option<Scratch<'r>>,
    par: Par,
) -> Result<View<'a>> {
    let ty = x.ty();
    let plan = gather::transpose(ty.shape.sizes(), permutation);
    if permutation.is_sorted() {
        return Ok(x);
    }
    let mut scratch = allocator.scratch(TensorType::new(ty.dtype, ty.shape.permuted(permutation))?)?;
    allocator.copy(&plan, x, &mut scratch.view_mut(), par);
    // SAFETY: the copy writes every element.
    Ok(unsafe { scratch_slot.insert(scratch).view() })
}

/// Runs what writes all elements of `dtype` in the type in which they are computed.
fn in_wide(
    allocator: ScratchAllocator<'_>,
    dtype: DType,
    out: &mut ViewMut<'_>,
    write: impl FnOnce(&mut ViewMut<'_>),
    par: Par,
) -> Result<()> {
    if compute_dtype(dtype) == dtype {
        write(out);
        return Ok(());
    }
    let mut wide = allocator.scratch(out.ty().with_dtype(compute_dtype(dtype))?)?;
    write(&mut wide.view_mut());
    // SAFETY: every element was written.
    allocator.convert(unsafe { wide.view() }, dtype, out, par);
    Ok(())
}

impl OpRun<'_> {
    pub(super) fn window(self, which: WindowOp, window: &Window) -> Result<Buffers> {
        let allocator = self.allocator;
        let dtype = self.output(0).dtype;
        self.run_with_scratch(|views, out, par| {
            if out.ty().size() == 0 {
                return Ok(());
            }
            let passes = AxisPass::plan(views[0].ty().shape.sizes(), window, out.ty().shape.sizes());
            let Some(((last, _), first)) = passes.split_last() else {
                allocator.convert(views[0], dtype, out, par);
                return Ok(());
            };
            let mut scratch_slot = None;
            let mut x = computed(allocator, views[0], dtype, &mut scratch_slot, par)?;
            let inner = compute_dtype(dtype);
            let pool = match which {
                WindowOp::WindowMax | WindowOp::WindowMin => {
                    Pool::of(window, x.ty().shape.sizes(), out.ty().shape.sizes(), inner)
                }
                WindowOp::WindowSum | WindowOp::WindowProduct => None,
            };
            if let Some(pool) = pool.filter(|pool| pool.is_in_order) {
                let extremes = |out: &mut ViewMut<'_>| {
                    if allocator.runs() {
                        window::extremes(which, &pool, x, out, par);
                    }
                };
                return in_wide(allocator, dtype, out, extremes, par);
            }
            let fold = |pass: &AxisPass, x: View<'_>, out: &mut ViewMut<'_>| -> Result<()> {
                let mut rungs = allocator.scratch(window::doubling_scratch(pass, inner))?;
                if allocator.runs() {
                    window::fold(which, dtype, pass, x, out, &mut rungs.view_mut(), par);
                }
                Ok(())
            };
            let mut before: Scratch<'_>;
            for (pass, shape) in first {
                let mut next = allocator.scratch(TensorType::new(inner, shape.clone())?)?;
                fold(pass, x, &mut next.view_mut())?;
                before = next;
                // SAFETY: the fold writes every element.
                x = unsafe { before.view() };
            }
            if inner == dtype {
                return fold(last, x, out);
            }
            let mut wide = allocator.scratch(out.ty().with_dtype(inner)?)?;
            fold(last, x, &mut wide.view_mut())?;
            // SAFETY: the fold writes every element.
            allocator.convert(unsafe { wide.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn window_scatter(self, which: WindowScatterOp, window: &Window) -> Result<Buffers> {
        let allocator = self.allocator;
        let dtype = self.output(0).dtype;
        self.run_with_scratch(|views, out, par| {
            let (x, source, init) = (views[0], views[1], views[2]);
            let compared = x.ty().dtype.merge(init.ty().dtype);
            let (mut held_x, mut held_init) = (None, None);
            if window::are_disjoint(window) && compared == dtype {
                let mut held_source = None;
                let x = computed(allocator, x, dtype, &mut held_x, par)?;
                let source = computed(allocator, source, dtype, &mut held_source, par)?;
                let start = computed(allocator, init, dtype, &mut held_init, par)?;
                let send = |out: &mut ViewMut<'_>| {
                    if allocator.runs() {
                        window::scatter_disjoint(which, dtype, window, (x, source, start), out, par);
                    }
                };
                return in_wide(allocator, dtype, out, send, par);
            }
            let mut chosen = allocator.scratch(source.ty().with_dtype(DType::U64)?)?;
            {
                let x = computed(allocator, x, compared, &mut held_x, par)?;
                let start = computed(allocator, init, compared, &mut held_init, par)?;
                let out_sizes = source.ty().shape.sizes();
                if allocator.runs() {
                    window::choose(
                        which,
                        compared,
                        window,
                        out_sizes,
                        (x, start),
                        &mut chosen.view_mut(),
                        par,
                    );
                }
            }
            let (mut held_source, mut held_init) = (None, None);
            let source = computed(allocator, source, dtype, &mut held_source, par)?;
            let start = computed(allocator, init, dtype, &mut held_init, par)?;
            // SAFETY: the choice writes every element.
            let chosen = unsafe { chosen.view() };
            let add = |out: &mut ViewMut<'_>| {
                if allocator.runs() {
                    window::add_chosen(dtype, chosen, source, start, out, par);
                }
            };
            in_wide(allocator, dtype, out, add, par)
        })
    }

    pub(super) fn conv(self, conv: &ConvOp) -> Result<Buffers> {
        let (allocator, epilogue) = (self.allocator, self.epilogue);
        let dtype = self.output(0).dtype;
        let inner = compute_dtype(dtype);
        self.run_with_scratch(|views, out, par| {
            let (mut held_x, mut moved_x, mut held_kernel, mut moved_kernel) = (None, None, None, None);
            let x = computed(allocator, views[0], dtype, &mut held_x, par)?;
            let roles: Shape = out.ty().shape.permuted(&conv.output_permutation);
            // Operands in a layout that the kernel cannot read are copied.
            let input = x.ty().shape.permuted(&conv.input_permutation);
            let input_lies = AxisOrder::of(&conv.input_permutation);
            let x = match input_lies {
                Some(_) => x,
                None => by_role(allocator, x, &conv.input_permutation, &mut moved_x, par)?,
            };
            let kernel = computed(allocator, views[1], dtype, &mut held_kernel, par)?;
            let weights = kernel.ty().shape.permuted(&conv.kernel_permutation);
            let sizes = kernel.ty().shape.sizes();
            let kernel_lies = AxisOrder::of_kernel(&conv.kernel_permutation, sizes, inner);
            let kernel = match kernel_lies {
                Some(_) => kernel,
                None => by_role(allocator, kernel, &conv.kernel_permutation, &mut moved_kernel, par)?,
            };
            let out_lies = AxisOrder::of(&conv.output_permutation);
            let plan = Conv::new(
                conv,
                (input.sizes(), input_lies.unwrap_or(AxisOrder::InOrder)),
                (weights.sizes(), kernel_lies.unwrap_or(AxisOrder::InOrder)),
                (roles.sizes(), out_lies.unwrap_or(AxisOrder::InOrder)),
            );
            let mut space = allocator.scratch(window::conv_scratch(&plan, inner))?;
            let mut convolve = |out: &mut ViewMut<'_>, epilogue: Option<EpilogueFn<'_>>| {
                if allocator.runs() {
                    window::conv(&plan, x, kernel, (out, epilogue), &mut space.view_mut(), par);
                }
            };
            let in_order = out_lies.is_some();
            if in_order && inner == dtype {
                convolve(out, epilogue);
                return Ok(());
            }
            debug_assert!(epilogue.is_none());
            let shape = if in_order { out.ty().shape.clone() } else { roles.clone() };
            let mut wide = allocator.scratch(TensorType::new(inner, shape)?)?;
            convolve(&mut wide.view_mut(), None);
            // SAFETY: the convolution writes every element.
            let wide = unsafe { wide.view() };
            if in_order {
                allocator.convert(wide, dtype, out, par);
                return Ok(());
            }
            let mut back = conv.output_permutation.clone();
            for (role, axis) in conv.output_permutation.iter().enumerate() {
                back[axis.index()] = roles.axis(role).expect("each axis has a role");
            }
            let plan = gather::transpose(roles.sizes(), &back);
            if inner == dtype {
                allocator.copy(&plan, wide, out, par);
            } else {
                let narrow = allocator.converted(wide, dtype, par)?;
                // SAFETY: the conversion writes every element.
                allocator.copy(&plan, unsafe { narrow.view() }, out, par);
            }
            Ok(())
        })
    }
}
