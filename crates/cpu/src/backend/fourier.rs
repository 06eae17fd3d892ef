//! Fourier transforms: choice of dtype, and scratch memory.

use defn_core::backend::Buffers;
use defn_core::op::FftOp;
use defn_core::{Axis, DType, Result, Shape, TensorType};
use num_complex::Complex;

use super::OpRun;
use super::scratch_allocator::ScratchAllocator;
use super::window::computed;
use crate::kernels::Element;
use crate::kernels::fourier::{self, Lines, RealDirection, RealTransform, Transform};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Runs a transform with scratch memory for `count` complex numbers, or only counts the memory.
fn with_scratch<T>(
    allocator: ScratchAllocator<'_>,
    count: usize,
    run: impl FnOnce(&mut ViewMut<'_>),
) -> Result<()>
where
    Complex<T>: Element,
{
    let mut scratch = allocator.scratch(TensorType::new(Complex::<T>::DTYPE, Shape::new(&[count]))?)?;
    if allocator.runs() {
        run(&mut scratch.view_mut());
    }
    Ok(())
}

/// Transforms complex lines.
fn transform<T: fourier::FftFloat>(
    allocator: ScratchAllocator<'_>,
    which: FftOp,
    lines: Lines,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) -> Result<()>
where
    Complex<T>: Element,
{
    let transform = Transform::<T>::new(which, lines)?;
    with_scratch::<T>(allocator, transform.scratch(par), |scratch| transform.run(x, out, scratch, par))
}

/// Transforms real lines to complex ones, or back.
fn transform_real<T: fourier::FftFloat + Element>(
    allocator: ScratchAllocator<'_>,
    way: RealDirection,
    lines: Lines,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) -> Result<()>
where
    Complex<T>: Element,
{
    let transform = RealTransform::<T>::new(way, lines)?;
    with_scratch::<T>(allocator, transform.scratch(par), |scratch| transform.run(x, out, scratch, par))
}

impl OpRun<'_> {
    /// Transforms real elements to the first half of their spectrum, or back.
    pub(super) fn real_fft(self, way: RealDirection, axis: Axis, length: usize) -> Result<Buffers> {
        let allocator = self.allocator;
        let dtype = self.output(0).dtype;
        // The precision is one that has complex numbers, whatever the dtypes of operand and result.
        let complex = self.operand(0).dtype.merge(dtype).to_complex();
        let real = complex.to_real();
        self.run_with_scratch(|views, out, par| {
            if out.ty().size() == 0 {
                return Ok(());
            }
            let mut converted = None;
            let x = computed(
                allocator,
                views[0],
                if way == RealDirection::Forward { real } else { complex },
                &mut converted,
                par,
            )?;
            let (sizes, at) = (x.ty().shape.sizes(), axis.index());
            let lines = Lines {
                outer: sizes[..at].iter().product(),
                size: sizes[at],
                length,
                inner: sizes[at + 1..].iter().product(),
            };
            let run = |out: &mut ViewMut<'_>| {
                if complex == DType::C64 {
                    transform_real::<f32>(allocator, way, lines, x, out, par)
                } else {
                    transform_real::<f64>(allocator, way, lines, x, out, par)
                }
            };
            if way == RealDirection::Forward || dtype == real {
                return run(out);
            }
            let mut wide = allocator.scratch(out.ty().with_dtype(real)?)?;
            run(&mut wide.view_mut())?;
            // SAFETY: the transform writes every element.
            allocator.convert(unsafe { wide.view() }, dtype, out, par);
            Ok(())
        })
    }

    pub(super) fn fft(self, which: FftOp, axis: Axis) -> Result<Buffers> {
        let allocator = self.allocator;
        let dtype = self.output(0).dtype;
        self.run_with_scratch(|views, out, par| {
            let mut converted = None;
            let x = computed(allocator, views[0], dtype, &mut converted, par)?;
            let (sizes, at) = (x.ty().shape.sizes(), axis.index());
            let lines = Lines {
                outer: sizes[..at].iter().product(),
                size: sizes[at],
                length: out.ty().shape[axis],
                inner: sizes[at + 1..].iter().product(),
            };
            if out.ty().size() == 0 {
                return Ok(());
            }
            if out.ty().dtype == DType::C64 {
                transform::<f32>(allocator, which, lines, x, out, par)
            } else {
                transform::<f64>(allocator, which, lines, x, out, par)
            }
        })
    }
}
