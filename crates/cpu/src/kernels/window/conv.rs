//! Convolutions as matrix products of the kernel and the input elements under it at each place (im2col). The second
//! matrix is packed part by part during the product; for complex numbers its columns are materialized first. With few
//! output channels this does not pay: the kernel's elements are added one by one, over runs of places.

use std::mem::MaybeUninit;

use defn_core::op::ConvOp;
use defn_core::{Axis, DType, Shape, TensorType};
use num_complex::Complex;
use smallvec::SmallVec;

use super::MAX_STRIDE;
use super::columns::{add_row, fill_row};
use super::dilated::{Phase, alternate, are_pairs};
use super::direct::DirectConv;
use super::patches::{Patches, Weights};
use crate::kernels::epilogue::{self, EpilogueFn};
use crate::kernels::linalg::{Panels, gemm};
use crate::kernels::{Element, SendPtr};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of the columns that a thread holds: the workspace of a convolution.
const COLUMNS: usize = 1 << 17;

/// Rows of the columns that are multiplied at once.
const DEPTH: usize = 512;

/// The most pieces of work.
const MAX_TASKS: usize = 32;

/// The number of output channels from which on a matrix product pays.
const FEATURES: usize = 4;

/// The number of kernel elements from which on the kernel may be stored with its first two axes swapped.
const SWAPPED_KERNEL_TAPS: usize = 64;

/// Groups with fewer multiplications than this are shared among threads as a whole.
const SHARED_GROUP_WORK: usize = 1 << 21;

/// A convolution of operands and a result with known layouts.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    /// The batch of the result.
    pub(super) batch: usize,
    /// Groups of features or of the batch.
    groups: usize,
    /// Whether the groups divide the batch.
    of_batch: bool,
    /// Output channels of one group.
    pub(super) features: usize,
    /// Input channels of one group.
    pub(super) depth: usize,
    /// The strides of items and of channels in the input.
    pub(super) input: (usize, usize),
    /// The strides of features and of channels in the kernel.
    pub(super) kernel: (usize, usize),
    /// The strides of items and of features in the result.
    pub(super) out: (usize, usize),
    pub(super) spatial: SmallVec<[Spatial; 3]>,
}

/// Which of its first two axes an operand stores first; the others are in the order of their roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisOrder {
    InOrder,
    Swapped,
}

impl AxisOrder {
    /// The layout of a tensor whose axes have these roles; None unless its spatial axes are the last, in order.
    pub(crate) fn of(permutation: &[Axis]) -> Option<AxisOrder> {
        let spatial = permutation[2..].iter().enumerate().all(|(index, axis)| axis.index() == index + 2);
        let lie = if permutation[0].index() == 0 { AxisOrder::InOrder } else { AxisOrder::Swapped };
        spatial.then_some(lie)
    }

    /// As [`of`](AxisOrder::of), for a kernel of `dtype`.
    pub(crate) fn of_kernel(permutation: &[Axis], sizes: &[usize], dtype: DType) -> Option<AxisOrder> {
        let taps: usize = permutation[2..].iter().map(|axis| sizes[axis.index()]).product();
        let free = taps >= SWAPPED_KERNEL_TAPS && !dtype.is_complex();
        AxisOrder::of(permutation).filter(|&lie| lie == AxisOrder::InOrder || free)
    }

    /// The strides of the first role and of the second.
    fn strides(self, sizes: &[usize]) -> (usize, usize) {
        let rest: usize = sizes[2..].iter().product();
        match self {
            AxisOrder::InOrder => (sizes[1] * rest, rest),
            AxisOrder::Swapped => (rest, sizes[0] * rest),
        }
    }
}

/// One spatial axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spatial {
    pub(super) size: usize,
    /// The distance of neighbours of the input.
    pub(super) step: usize,
    pub(super) kernel: usize,
    pub(super) out: usize,
    pub(super) stride: usize,
    pub(super) low: i64,
    pub(super) input_dilation: usize,
    pub(super) kernel_dilation: usize,
}

impl Conv {
    /// The convolution of tensors of these sizes, in the order of their roles, with these layouts.
    pub(crate) fn new(
        op: &ConvOp,
        (input, input_lies): (&[usize], AxisOrder),
        (kernel, kernel_lies): (&[usize], AxisOrder),
        (out, out_lies): (&[usize], AxisOrder),
    ) -> Conv {
        let mut spatial: SmallVec<[Spatial; 3]> = SmallVec::new();
        for axis in 0..input.len() - 2 {
            spatial.push(Spatial {
                size: input[axis + 2],
                step: input[axis + 3..].iter().product(),
                kernel: kernel[axis + 2],
                out: out[axis + 2],
                stride: op.strides[axis].min(MAX_STRIDE),
                low: op.padding[axis].0,
                input_dilation: op.input_dilation[axis].min(MAX_STRIDE),
                kernel_dilation: op.kernel_dilation[axis].min(MAX_STRIDE),
            });
        }
        let groups = op.feature_groups.max(op.batch_groups);
        Conv {
            batch: out[0],
            groups,
            of_batch: op.batch_groups > 1,
            features: kernel[0] / groups,
            depth: kernel[1],
            input: input_lies.strides(input),
            kernel: kernel_lies.strides(kernel),
            out: out_lies.strides(out),
            spatial,
        }
        .simplified()
    }

    /// Merges the spatial axes if the kernel has one element in each channel and reads the input in order.
    fn simplified(mut self) -> Conv {
        if self.is_pointwise() && self.spatial.len() > 1 {
            let mut axis = self.spatial[self.spatial.len() - 1];
            (axis.size, axis.out) = (self.channel(), self.out_positions());
            self.spatial = SmallVec::from_elem(axis, 1);
        }
        self
    }

    /// The number of output channels.
    pub(super) fn all_features(&self) -> usize {
        self.groups * self.features
    }

    /// The same for other places and other kernel elements, with kernel and result in order.
    pub(super) fn with_axes(&self, spatial: SmallVec<[Spatial; 3]>) -> Conv {
        let mut conv = Conv { spatial, ..self.clone() };
        conv.kernel = (conv.rows(), conv.taps());
        conv.out = (conv.all_features() * conv.out_positions(), conv.out_positions());
        conv
    }

    /// The number of products added in each element of the result.
    pub(super) fn rows(&self) -> usize {
        self.depth * self.taps()
    }

    /// Sizes of the matrix product of a group.
    fn sizes(&self) -> [usize; 3] {
        [self.features, self.batch * self.out_positions(), self.rows()]
    }

    /// The offsets of a group in the input, the kernel and the result.
    fn group(&self, group: usize) -> (usize, usize, usize) {
        let input =
            if self.of_batch { group * self.batch * self.input.0 } else { group * self.depth * self.input.1 };
        (input, group * self.features * self.kernel.0, group * self.features * self.out.1)
    }

    /// The number of kernel elements in one channel.
    pub(super) fn taps(&self) -> usize {
        self.spatial.iter().map(|axis| axis.kernel).product()
    }

    /// The number of places of the kernel.
    pub(super) fn out_positions(&self) -> usize {
        self.spatial.iter().map(|axis| axis.out).product()
    }

    /// The number of input elements in one channel.
    fn channel(&self) -> usize {
        self.spatial.iter().map(|axis| axis.size).product()
    }

    /// Whether the columns are the input itself.
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

/// The scratch memory of [`conv`]: elements of `dtype`, possibly none.
pub(crate) fn conv_scratch(conv: &Conv, dtype: DType) -> TensorType {
    let scratch = |conv: &Conv| {
        if dtype == DType::F32 { products_scratch::<f32>(conv) } else { products_scratch::<f64>(conv) }
    };
    let count = if dtype.is_complex() {
        0
    } else {
        let phases = conv.phases();
        let space = phases.iter().map(|phase| scratch(&phase.conv)).max();
        let (kernel, out) = phase_scratch(&phases);
        // A kernel with infinities or NaN is multiplied with the padding's zeros, too.
        scratch(conv).max(space.unwrap_or(0) + kernel + out)
    };
    TensorType { dtype, shape: Shape::new(&[count]) }
}

/// Elements of the largest kernel of all phases, and of the largest results that are written together.
fn phase_scratch(phases: &[Phase]) -> (usize, usize) {
    let most = |size: fn(&Conv) -> usize| phases.iter().map(|phase| size(&phase.conv)).max().unwrap_or(0);
    let kernel = most(|conv| conv.all_features() * conv.rows());
    let together = if are_pairs(phases) { 2 } else { 1 };
    (kernel, together * most(|conv| conv.batch * conv.all_features() * conv.out_positions()))
}

/// Convolves operands of one dtype, float or complex and of at least 32 bits a part, and calls the epilogue on all
/// elements. [`conv_scratch`] gives the type of the scratch.
pub(crate) fn conv(
    conv: &Conv,
    x: View<'_>,
    kernel: View<'_>,
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let dtype = out.ty().dtype;
    if dtype == DType::F32 {
        real::<f32>(conv, x, kernel, (out, epilogue), scratch, par);
    } else if dtype == DType::F64 {
        real::<f64>(conv, x, kernel, (out, epilogue), scratch, par);
    } else if dtype == DType::C64 {
        complex::<Complex<f32>>(conv, x, kernel, out, par);
        epilogue::run_on_whole_result(epilogue, out.ty().size(), par);
    } else if dtype == DType::C128 {
        complex::<Complex<f64>>(conv, x, kernel, out, par);
        epilogue::run_on_whole_result(epilogue, out.ty().size(), par);
    } else {
        unreachable!("{dtype} is not what convolutions are computed in");
    }
}

/// Whether all elements of a kernel are finite. Then products with padding can be skipped.
fn is_finite<C: Element>(kernel: &[C]) -> bool {
    kernel.iter().all(|weight| !weight.nan() && !weight.infinite())
}

/// Whether the kernel's elements are added one by one.
fn is_plain<C: Element>(conv: &Conv, kernel: &[C]) -> bool {
    conv.rows() == 0 || conv.features < FEATURES && is_finite(kernel)
}

fn real<C: Element + gemm::GemmElement>(
    conv: &Conv,
    x: View<'_>,
    kernel: View<'_>,
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let (x, kernel) = (x.slice::<C>(), kernel.slice::<C>());
    if conv.out_positions() == 0 || conv.batch == 0 || conv.features == 0 {
        return;
    }
    let size = out.ty().size();
    let out = SendPtr::new(out.start().cast::<C>());
    let space = scratch.slice::<C>();
    if is_plain(conv, kernel) {
        plain(conv, x, kernel, &out, par);
        return epilogue::run_on_whole_result(epilogue, size, par);
    }
    let phases = conv.phases();
    if phases.is_empty() || !is_finite(kernel) {
        // SAFETY: the result has room for the convolution, and no other code uses it.
        return unsafe { products(conv, x, kernel, (&out, epilogue), space, par) };
    }
    let (for_kernel, for_out) = phase_scratch(&phases);
    let (weights, rest) = space.split_at_mut(for_kernel);
    let (sums, space) = rest.split_at_mut(for_out);
    // Phases that alternate are written together, line by line.
    let together = if are_pairs(&phases) { 2 } else { 1 };
    for phases in phases.chunks(together) {
        let mut rest = &mut *sums;
        let mut done: SmallVec<[Option<&[C]>; 2]> = SmallVec::new();
        for phase in phases {
            let rows = phase.conv.rows();
            let (sums, others) =
                rest.split_at_mut(conv.batch * conv.all_features() * phase.conv.out_positions());
            rest = others;
            if rows == 0 {
                if together == 1 {
                    done.push(None);
                    continue;
                }
                sums.fill(MaybeUninit::new(C::ZERO));
                // SAFETY: just written.
                done.push(Some(unsafe { sums.assume_init_ref() }));
                continue;
            }
            let weights = &mut weights[..conv.all_features() * rows];
            phase.kernel(conv, kernel, weights);
            // SAFETY: the weights were written, there is a sum for each result of the convolution, and products write
            // every one.
            unsafe {
                let target = SendPtr::of(sums);
                products(&phase.conv, x, weights.assume_init_ref(), (&target, None), space, par);
                done.push(Some(sums.assume_init_ref()));
            }
        }
        match (phases, &done[..]) {
            ([first, second], &[Some(a), Some(b)]) => alternate([first, second], conv, [a, b], &out, par),
            _ => phases.iter().zip(done).for_each(|(phase, sums)| phase.scatter_sums(conv, sums, &out, par)),
        }
    }
    epilogue::run_on_whole_result(epilogue, size, par);
}

/// The direct convolution, if it is possible; small groups are shared among threads instead.
fn direct<C: gemm::GemmElement>(conv: &Conv) -> Option<DirectConv<'_>> {
    let is_large = conv.groups == 1 || conv.sizes().into_iter().product::<usize>() >= SHARED_GROUP_WORK;
    DirectConv::of(conv, gemm::lanes::<C>()).filter(|_| is_large)
}

/// The number of scratch elements of [`products`].
fn products_scratch<C: gemm::GemmElement>(conv: &Conv) -> usize {
    let sizes = conv.sizes();
    match direct::<C>(conv) {
        Some(direct) => direct.scratch::<C>(),
        None if sizes.contains(&0) => 0,
        None => gemm::scratch::<C>(sizes),
    }
}

/// The matrix products of all groups, with an epilogue.
///
/// # Safety
/// The result has room for the convolution, and no other code uses it.
unsafe fn products<C: Element + gemm::GemmElement>(
    conv: &Conv,
    x: &[C],
    kernel: &[C],
    (out, epilogue): (&SendPtr<C>, Option<EpilogueFn<'_>>),
    space: &mut [MaybeUninit<C>],
    par: Par,
) {
    let sizes @ [m, n, k] = conv.sizes();
    if let Some(direct) = direct::<C>(conv) {
        for group in 0..conv.groups {
            let (input, weights, first) = conv.group(group);
            let weights = Weights { conv, kernel: &kernel[weights..] };
            // SAFETY: groups are disjoint parts of the result.
            unsafe {
                let target = gemm::GemmOutput::new(out.at(first), conv.out.1).with_epilogue(epilogue, first);
                direct.run(&x[input..], &weights, target, space, par);
            }
        }
        return;
    }
    let multiply = |group: usize, space: &mut [MaybeUninit<C>], par: Par| {
        let (input, weights, first) = conv.group(group);
        let weights = Weights { conv, kernel: &kernel[weights..] };
        let patches = Patches { conv, input: &x[input..] };
        // SAFETY: groups are disjoint parts of the result, with the strides given for items and features.
        unsafe {
            let target =
                gemm::GemmOutput::new(out.at(first), conv.out.1).in_runs(conv.out_positions(), conv.out.0);
            let target = target.with_epilogue(epilogue, first);
            gemm::multiply(sizes, &weights, &patches, target, gemm::Accumulation::Nothing, space, par);
        }
    };
    if conv.groups > 1 && gemm::scratch::<C>(sizes) == 0 && m * n * k < SHARED_GROUP_WORK {
        par.for_chunks(conv.groups, (SHARED_GROUP_WORK / 4).div_ceil(m * n * k), |groups| {
            groups.for_each(|group| multiply(group, &mut [], Par::Serial));
        });
    } else {
        (0..conv.groups).for_each(|group| multiply(group, space, par));
    }
}

/// Places of one feature in a chunk.
const MAX_TILE_POSITIONS: usize = COLUMNS / 8;

/// Adds the kernel's elements one by one.
fn plain<C: Element>(conv: &Conv, x: &[C], kernel: &[C], out: &SendPtr<C>, par: Par) {
    let (taps, out_positions, channel, rows) =
        (conv.taps(), conv.out_positions(), conv.channel(), conv.rows());
    let &Conv { batch, groups, features, .. } = conv;
    // Enough pieces for all threads, but none too small.
    let wide =
        out_positions.div_ceil(64).next_multiple_of(64).max((1 << 18) / (rows.max(1) * features).max(1));
    let width = MAX_TILE_POSITIONS.min(wide.max(64)).min(out_positions);
    let tiles = out_positions.div_ceil(width);
    let tasks = batch * groups * tiles;
    par.for_chunks(tasks, tasks.div_ceil(MAX_TASKS), |chunk| {
        for task in chunk {
            let (tile, group, item) = (task % tiles, task / tiles % groups, task / tiles / groups);
            let range = tile * width..out_positions.min((tile + 1) * width);
            let (input, weights, first) = conv.group(group);
            for feature in 0..features {
                let start = first + item * conv.out.0 + feature * conv.out.1 + range.start;
                // SAFETY: the tile's places of one channel belong to this task and are in bounds of the result.
                let sums = unsafe { out.part(start, range.len()) };
                sums.iter_mut().for_each(|sum| {
                    sum.write(C::ZERO);
                });
                // SAFETY: just written.
                let sums = unsafe { sums.assume_init_mut() };
                for row in 0..rows {
                    let (depth, tap) = (row / taps, row % taps);
                    let weight = kernel[weights + feature * conv.kernel.0 + depth * conv.kernel.1 + tap];
                    let x = &x[input + item * conv.input.0 + depth * conv.input.1..][..channel];
                    add_row(conv, tap, range.clone(), x, weight, sums);
                }
            }
        }
    });
}

fn complex<C: Gemm>(conv: &Conv, x: View<'_>, kernel: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let (x, kernel) = (x.slice::<C>(), kernel.slice::<C>());
    let (taps, out_positions, channel, rows) =
        (conv.taps(), conv.out_positions(), conv.channel(), conv.rows());
    let &Conv { batch, groups, features, .. } = conv;
    if out_positions == 0 || batch == 0 || features == 0 {
        return;
    }
    let out = SendPtr::of(out.slice::<C>());
    if is_plain(conv, kernel) {
        return plain(conv, x, kernel, &out, par);
    }
    let height = rows.clamp(1, DEPTH);
    // Enough pieces for all threads, but none too small.
    let wide = out_positions.div_ceil(64).next_multiple_of(64).max((1 << 18) / (rows * features));
    let width = (COLUMNS / height).next_multiple_of(8).min(wide.max(64)).min(out_positions);
    let tiles = out_positions.div_ceil(width);
    let tasks = batch * groups * tiles;
    // A thread takes several tasks, so that it allocates memory for columns once.
    par.for_chunks(tasks, tasks.div_ceil(MAX_TASKS), |chunk| {
        let (mut column_block, mut space): (Vec<C>, Vec<MaybeUninit<C>>) = (Vec::new(), Vec::new());
        for task in chunk {
            let (tile, group, item) = (task % tiles, task / tiles % groups, task / tiles / groups);
            let range = tile * width..out_positions.min((tile + 1) * width);
            let (input, weights, first) = conv.group(group);
            let weights = &kernel[weights..][..features * rows];
            let start = first + item * conv.out.0 + range.start;
            for from in (0..rows).step_by(height) {
                let count = height.min(rows - from);
                column_block.resize(height * range.len(), C::ZERO);
                for (row, line) in (from..from + count).zip(column_block.chunks_exact_mut(range.len())) {
                    let first = input + item * conv.input.0 + row / taps * conv.input.1;
                    fill_row(conv, row % taps, range.clone(), &x[first..][..channel], line);
                }
                let product = Product {
                    sizes: [features, count, range.len()],
                    weights: (&weights[from..], rows),
                    columns: (&column_block[..], range.len()),
                    adds: from > 0,
                };
                // SAFETY: the tile's places of the group's channels belong to this task and are in bounds of the
                // result; they are written before they are added to.
                unsafe { C::multiply(&product, out.at(start), conv.out.1, &mut space) };
            }
        }
    });
}

/// Weights times columns, each with its row stride.
struct Product<'a, C> {
    /// Rows of the weights, their columns, columns of the product.
    sizes: [usize; 3],
    weights: (&'a [C], usize),
    columns: (&'a [C], usize),
    /// Whether the product is added to the result.
    adds: bool,
}

/// Element types whose columns are materialized before they are multiplied.
trait Gemm: Element {
    /// Writes a product; `space` is scratch memory.
    ///
    /// # Safety
    /// Its rows, from `out` on and a stride apart, are writable, and no other code uses them. They are initialised if
    /// the product is added to them.
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
                let accumulation = if adds { gemm::Accumulation::Plus } else { gemm::Accumulation::Nothing };
                // SAFETY: the caller's promise.
                unsafe {
                    let out = gemm::GemmOutput::new(out, stride);
                    Panels::multiply(sizes, (&a, &b), out, accumulation, space, Par::Serial);
                }
            }
        }
    )*};
}
gemm_by_panels!(Complex<f32>, Complex<f64>);
