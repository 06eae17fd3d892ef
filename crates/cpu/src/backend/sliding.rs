//! How windows, convolutions and transforms run: in which dtype, and with which workspace.

use defn_core::backend::Buffers;
use defn_core::op::{ConvOp, FftOp, Window, WindowOp, WindowScatterOp};
use defn_core::{Axis, DType, Result, Shape, TensorType};

use super::Run;
use super::structural::Scratch;
use crate::kernels::fourier::{self, Lines, Way};
use crate::kernels::linalg::compute_dtype;
use crate::kernels::shape::{self, gather};
use crate::kernels::window::{self, Conv, Pass};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// An operand in the type in which elements of `dtype` are computed; `held` keeps what that takes.
fn computed<'a>(
    op: &'static str,
    x: View<'a>,
    dtype: DType,
    held: &'a mut Option<Scratch>,
    par: Par,
) -> Result<View<'a>> {
    let computed = compute_dtype(dtype);
    if x.ty().dtype == computed && dtype == computed {
        return Ok(x);
    }
    let mut scratch = Scratch::new(op, x.ty().with_dtype(computed)?)?;
    shape::convert(x, dtype, &mut scratch.view_mut(), par);
    // SAFETY: the conversion writes every element.
    Ok(unsafe { held.insert(scratch).view() })
}

/// An operand with its axes in the order of their roles.
fn by_role<'a>(
    op: &'static str,
    x: View<'a>,
    permutation: &[Axis],
    held: &'a mut Option<Scratch>,
    par: Par,
) -> Result<View<'a>> {
    let ty = x.ty();
    let plan = gather::transpose(ty.shape.sizes(), permutation);
    if permutation.is_sorted() {
        return Ok(x);
    }
    let mut scratch = Scratch::new(op, TensorType::new(ty.dtype, ty.shape.permuted(permutation))?)?;
    shape::copy(&plan, x, &mut scratch.view_mut(), par);
    // SAFETY: the copy writes every element.
    Ok(unsafe { held.insert(scratch).view() })
}

impl Run<'_> {
    pub(super) fn window(self, which: WindowOp, window: &Window) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        self.fresh(|views, out, par| {
            if out.ty().size() == 0 {
                return Ok(());
            }
            let passes = Pass::plan(views[0].ty().shape.sizes(), window, out.ty().shape.sizes());
            let Some(((last, _), first)) = passes.split_last() else {
                shape::convert(views[0], dtype, out, par);
                return Ok(());
            };
            let mut held = None;
            let mut x = computed(op, views[0], dtype, &mut held, par)?;
            let inner = compute_dtype(dtype);
            let fold = |pass: &Pass, x: View<'_>, out: &mut ViewMut<'_>| -> Result<()> {
                let mut rungs = Scratch::new(op, window::ladder_scratch(pass, inner))?;
                window::fold(which, dtype, pass, x, out, &mut rungs.view_mut(), par);
                Ok(())
            };
            let mut before: Scratch;
            for (pass, shape) in first {
                let mut next = Scratch::new(op, TensorType::new(inner, shape.clone())?)?;
                fold(pass, x, &mut next.view_mut())?;
                before = next;
                // SAFETY: the fold writes every element.
                x = unsafe { before.view() };
            }
            if inner == dtype {
                return fold(last, x, out);
            }
            let mut wide = Scratch::new(op, out.ty().with_dtype(inner)?)?;
            fold(last, x, &mut wide.view_mut())?;
            // SAFETY: the fold writes every element.
            shape::convert(unsafe { wide.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn window_scatter(self, which: WindowScatterOp, window: &Window) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        self.fresh(|views, out, par| {
            let (x, source, init) = (views[0], views[1], views[2]);
            let compared = x.ty().dtype.merge(init.ty().dtype);
            let (mut held_x, mut held_init) = (None, None);
            let mut chosen = Scratch::new(op, source.ty().with_dtype(DType::U64)?)?;
            {
                let x = computed(op, x, compared, &mut held_x, par)?;
                let start = computed(op, init, compared, &mut held_init, par)?;
                let places = source.ty().shape.sizes();
                window::choose(which, compared, window, places, (x, start), &mut chosen.view_mut(), par);
            }
            let (mut held_source, mut held_init) = (None, None);
            let source = computed(op, source, dtype, &mut held_source, par)?;
            let start = computed(op, init, dtype, &mut held_init, par)?;
            // SAFETY: the choice writes every element.
            let chosen = unsafe { chosen.view() };
            if compute_dtype(dtype) == dtype {
                window::add_chosen(dtype, chosen, source, start, out, par);
                return Ok(());
            }
            let mut wide = Scratch::new(op, out.ty().with_dtype(compute_dtype(dtype))?)?;
            window::add_chosen(dtype, chosen, source, start, &mut wide.view_mut(), par);
            // SAFETY: the sums write every element.
            shape::convert(unsafe { wide.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn conv(self, conv: &ConvOp) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        let inner = compute_dtype(dtype);
        self.fresh(|views, out, par| {
            let (mut held_x, mut moved_x, mut held_kernel, mut moved_kernel) = (None, None, None, None);
            let x = computed(op, views[0], dtype, &mut held_x, par)?;
            let x = by_role(op, x, &conv.input_permutation, &mut moved_x, par)?;
            let kernel = computed(op, views[1], dtype, &mut held_kernel, par)?;
            let kernel = by_role(op, kernel, &conv.kernel_permutation, &mut moved_kernel, par)?;
            let roles: Shape = out.ty().shape.permuted(&conv.output_permutation);
            let plan = Conv::new(conv, x.ty().shape.sizes(), kernel.ty().shape.sizes(), roles.sizes());
            let in_order = conv.output_permutation.is_sorted();
            if in_order && inner == dtype {
                window::conv(&plan, x, kernel, out, par);
                return Ok(());
            }
            let mut wide = Scratch::new(op, TensorType::new(inner, roles.clone())?)?;
            window::conv(&plan, x, kernel, &mut wide.view_mut(), par);
            // SAFETY: the convolution writes every element.
            let wide = unsafe { wide.view() };
            if in_order {
                shape::convert(wide, dtype, out, par);
                return Ok(());
            }
            let mut back = conv.output_permutation.clone();
            for (role, axis) in conv.output_permutation.iter().enumerate() {
                back[axis.index()] = roles.axis(role).expect("each axis has a role");
            }
            let plan = gather::transpose(roles.sizes(), &back);
            if inner == dtype {
                shape::copy(&plan, wide, out, par);
            } else {
                let narrow = Scratch::converted(op, wide, dtype, par)?;
                // SAFETY: the conversion writes every element.
                shape::copy(&plan, unsafe { narrow.view() }, out, par);
            }
            Ok(())
        })
    }

    /// Real elements to the first half of their frequencies, or back.
    pub(super) fn real_fft(self, way: Way, axis: Axis, length: usize) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        // Real elements of a precision that has complex numbers, whatever the operand's and the result's.
        let complex = self.operands[0].ty.dtype.merge(dtype).to_complex();
        let real = complex.to_real();
        self.fresh(|views, out, par| {
            if out.ty().size() == 0 {
                return Ok(());
            }
            let mut held = None;
            let x = computed(op, views[0], if way == Way::Forth { real } else { complex }, &mut held, par)?;
            let (sizes, at) = (x.ty().shape.sizes(), axis.index());
            let lines = Lines {
                outer: sizes[..at].iter().product(),
                size: sizes[at],
                length,
                inner: sizes[at + 1..].iter().product(),
            };
            if way == Way::Forth || dtype == real {
                return fourier::transform_real(way, lines, x, out, par);
            }
            let mut wide = Scratch::new(op, out.ty().with_dtype(real)?)?;
            fourier::transform_real(way, lines, x, &mut wide.view_mut(), par)?;
            // SAFETY: the transform writes every element.
            shape::convert(unsafe { wide.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn fft(self, which: FftOp, axis: Axis) -> Result<Buffers> {
        let op = self.op;
        let dtype = self.outputs[0].dtype;
        self.fresh(|views, out, par| {
            let mut held = None;
            let x = computed(op, views[0], dtype, &mut held, par)?;
            let (sizes, at) = (x.ty().shape.sizes(), axis.index());
            let lines = Lines {
                outer: sizes[..at].iter().product(),
                size: sizes[at],
                length: out.ty().shape[axis],
                inner: sizes[at + 1..].iter().product(),
            };
            fourier::transform(which, lines, x, out, par)
        })
    }
}
