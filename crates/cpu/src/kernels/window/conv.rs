//! Convolutions: what lies under the kernel at each of a run of places is laid out as columns of a matrix,
//! which the kernel, as a matrix, is multiplied with. A kernel of few output channels is not worth the columns:
//! its elements are added up one by one, over runs of places.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::ConvOp;
use num_complex::Complex;
use smallvec::SmallVec;

use super::FAR;
use super::columns::{add_row, fill_row};
use crate::kernels::Element;
use crate::kernels::linalg::{Panels, gemm};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of the columns that a thread keeps: the memory of a convolution beside its operands.
const COLUMNS: usize = 1 << 17;

/// Rows of the columns that are multiplied at once.
const DEPTH: usize = 512;

/// Into how many pieces the work falls at most.
const PIECES: usize = 32;

/// From so many output channels on, columns are worth their while.
const FEATURES: usize = 4;

/// A convolution whose operands and result have their axes in the order of their roles.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    /// The batch of the result.
    batch: usize,
    /// Groups of features or of the batch.
    groups: usize,
    /// Whether the groups are of the batch.
    of_batch: bool,
    /// Output channels of one group.
    features: usize,
    /// Input channels of one group.
    depth: usize,
    pub(super) spatial: SmallVec<[Spatial; 3]>,
}

/// One spatial axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spatial {
    pub(super) size: usize,
    /// How far neighbours of the input are apart.
    pub(super) step: usize,
    pub(super) kernel: usize,
    pub(super) out: usize,
    pub(super) stride: usize,
    pub(super) low: i64,
    pub(super) input_dilation: usize,
    pub(super) kernel_dilation: usize,
}

impl Conv {
    /// The convolution of tensors of these sizes, all in the order of their roles.
    pub(crate) fn new(op: &ConvOp, input: &[usize], kernel: &[usize], out: &[usize]) -> Conv {
        let mut spatial: SmallVec<[Spatial; 3]> = SmallVec::new();
        for axis in 0..input.len() - 2 {
            spatial.push(Spatial {
                size: input[axis + 2],
                step: input[axis + 3..].iter().product(),
                kernel: kernel[axis + 2],
                out: out[axis + 2],
                stride: op.strides[axis].min(FAR),
                low: op.padding[axis].0,
                input_dilation: op.input_dilation[axis].min(FAR),
                kernel_dilation: op.kernel_dilation[axis].min(FAR),
            });
        }
        let groups = op.feature_groups.max(op.batch_groups);
        Conv {
            batch: out[0],
            groups,
            of_batch: op.batch_groups > 1,
            features: kernel[0] / groups,
            depth: kernel[1],
            spatial,
        }
    }

    /// Elements of the kernel in one channel.
    fn taps(&self) -> usize {
        self.spatial.iter().map(|axis| axis.kernel).product()
    }

    /// Places of the kernel.
    fn places(&self) -> usize {
        self.spatial.iter().map(|axis| axis.out).product()
    }

    /// Elements of the input in one channel.
    fn channel(&self) -> usize {
        self.spatial.iter().map(|axis| axis.size).product()
    }

    /// Whether the columns are the input as it lies.
    fn is_pointwise(&self) -> bool {
        self.spatial.iter().all(|axis| {
            axis.kernel == 1
                && axis.stride == 1
                && axis.low == 0
                && axis.input_dilation == 1
                && axis.out == axis.size
        })
    }
}

/// Convolves operands of one dtype, float or complex and of 32 bits or more a part.
pub(crate) fn conv(conv: &Conv, x: View<'_>, kernel: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let dtype = out.ty().dtype;
    if dtype == DType::F32 {
        run::<f32>(conv, x, kernel, out, par);
    } else if dtype == DType::F64 {
        run::<f64>(conv, x, kernel, out, par);
    } else if dtype == DType::C64 {
        run::<Complex<f32>>(conv, x, kernel, out, par);
    } else if dtype == DType::C128 {
        run::<Complex<f64>>(conv, x, kernel, out, par);
    } else {
        unreachable!("{dtype} is not what convolutions are computed in");
    }
}

fn run<C: Gemm>(conv: &Conv, x: View<'_>, kernel: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let (x, kernel) = (x.slice::<C>(), kernel.slice::<C>());
    let (taps, places, channel) = (conv.taps(), conv.places(), conv.channel());
    let &Conv { batch, groups, of_batch, features, depth, .. } = conv;
    let rows = depth * taps;
    if places == 0 || batch == 0 || features == 0 {
        return;
    }
    // Places without an element count as zeros that are multiplied, which shows when the kernel is not finite.
    let columns = features >= FEATURES || !kernel.iter().all(|weight| weight.finite());
    let height = rows.clamp(1, DEPTH);
    let width = if columns { (COLUMNS / height).next_multiple_of(8) } else { COLUMNS / 8 };
    // Enough pieces for the threads, as long as each is worth its while.
    let wide = places.div_ceil(64).next_multiple_of(64).max((1 << 18) / (rows.max(1) * features).max(1));
    let width = width.min(wide.max(64)).min(places);
    let tiles = places.div_ceil(width);
    let out = Target(out.slice::<C>().as_mut_ptr());
    let tasks = batch * groups * tiles;
    // A thread takes several, so that it takes memory for columns once.
    par.for_chunks(tasks, tasks.div_ceil(PIECES), |chunk| {
        let (mut held, mut space): (Vec<C>, Vec<MaybeUninit<C>>) = (Vec::new(), Vec::new());
        for task in chunk {
            let (tile, group, item) = (task % tiles, task / tiles % groups, task / tiles / groups);
            let range = tile * width..places.min((tile + 1) * width);
            let weights = &kernel[group * features * rows..][..features * rows];
            let first =
                if of_batch { (group * batch + item) * depth } else { (item * groups + group) * depth };
            let input = &x[first * channel..][..depth * channel];
            let start = ((item * groups + group) * features) * places + range.start;
            if rows == 0 || !columns {
                for feature in 0..features {
                    // SAFETY: the tile's places of one channel belong to this task and are inside the result.
                    let sums = unsafe { out.part(start + feature * places, range.len()) };
                    sums.iter_mut().for_each(|sum| {
                        sum.write(C::ZERO);
                    });
                    // SAFETY: just written.
                    let sums = unsafe { sums.assume_init_mut() };
                    for (row, &weight) in weights[feature * rows..][..rows].iter().enumerate() {
                        let x = &input[row / taps * channel..][..channel];
                        add_row(conv, row % taps, range.clone(), x, weight, sums);
                    }
                }
                continue;
            }
            for from in (0..rows).step_by(height) {
                let count = height.min(rows - from);
                let (matrix, stride) = if conv.is_pointwise() {
                    (&input[from * channel + range.start..], channel)
                } else {
                    held.resize(height * range.len(), C::ZERO);
                    for (row, line) in (from..from + count).zip(held.chunks_exact_mut(range.len())) {
                        let x = &input[row / taps * channel..][..channel];
                        fill_row(conv, row % taps, range.clone(), x, line);
                    }
                    (&held[..], range.len())
                };
                let product = Product {
                    sizes: [features, count, range.len()],
                    weights: (&weights[from..], rows),
                    columns: (matrix, stride),
                    adds: from > 0,
                };
                // SAFETY: the tile's places of the group's channels belong to this task and are inside the
                // result; they were written before they are added to.
                unsafe { C::multiply(&product, out.at(start), places, &mut space) };
            }
        }
    });
}

/// Where results are written.
struct Target<C>(*mut MaybeUninit<C>);

// SAFETY: threads write disjoint parts behind the pointer, which the result's exclusive borrow outlives.
unsafe impl<C: Element> Sync for Target<C> {}

impl<C> Target<C> {
    /// # Safety
    /// The position is inside the result.
    unsafe fn at(&self, position: usize) -> *mut C {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(position) }.cast()
    }

    /// # Safety
    /// The range is inside the result, and nobody else uses it.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    unsafe fn part(&self, start: usize, len: usize) -> &mut [MaybeUninit<C>] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// Weights times columns: both with their rows a distance apart.
struct Product<'a, C> {
    /// Rows of the weights, what is summed over, columns.
    sizes: [usize; 3],
    weights: (&'a [C], usize),
    columns: (&'a [C], usize),
    /// Whether the product adds to what is there.
    adds: bool,
}

/// Elements whose matrices can be multiplied.
trait Gemm: Element {
    /// Whether neither part is infinite or NaN.
    fn finite(self) -> bool {
        !self.nan() && !self.infinite()
    }

    /// Writes a product; `space` keeps the memory that this takes.
    ///
    /// # Safety
    /// Its rows, from `out` on and a stride apart, are writable, and nobody else uses them. They are
    /// initialised if the product adds to them.
    unsafe fn multiply(
        product: &Product<'_, Self>,
        out: *mut Self,
        stride: usize,
        space: &mut Vec<MaybeUninit<Self>>,
    );
}

macro_rules! gemm_by_panels {
    ($($ty:ty),*) => {$(
        impl Gemm for $ty {
            unsafe fn multiply(
                product: &Product<'_, $ty>,
                out: *mut $ty,
                stride: usize,
                space: &mut Vec<MaybeUninit<$ty>>,
            ) {
                let &Product { sizes: [m, k, n], weights: (a, a_stride), columns: (b, b_stride), adds } = product;
                let sizes = [m, n, k];
                let a = gemm::Matrix { elements: a, free: a_stride, along: 1 };
                let b = gemm::Matrix { elements: b, free: 1, along: b_stride };
                space.resize(<$ty as Panels>::scratch(sizes), MaybeUninit::uninit());
                let onto = if adds { gemm::Onto::Plus } else { gemm::Onto::Nothing };
                // SAFETY: the caller's promise.
                unsafe { Panels::multiply(sizes, (&a, &b), (out, stride), onto, space, Par::Serial) };
            }
        }
    )*};
}
gemm_by_panels!(f32, f64, Complex<f32>, Complex<f64>);
