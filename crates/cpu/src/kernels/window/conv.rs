//! Convolutions, as products of the kernel as a matrix and of what lies under it at each place. That is laid out
//! part by part as the product goes on; for complex numbers, as columns before it. A kernel of few output channels
//! is not worth it: its elements are added up one by one, over runs of places.

use std::mem::MaybeUninit;

use defn_core::op::ConvOp;
use defn_core::{Axis, DType, Shape, TensorType};
use num_complex::Complex;
use smallvec::SmallVec;

use super::FAR;
use super::columns::{add_row, fill_row};
use super::dilated::Phase;
use super::direct::Direct;
use super::patches::{Patches, Weights};
use crate::kernels::Element;
use crate::kernels::epilogue::{self, Tail};
use crate::kernels::linalg::{Panels, gemm};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of the columns that a thread keeps: the memory of a convolution beside its operands.
const COLUMNS: usize = 1 << 17;

/// Rows of the columns that are multiplied at once.
const DEPTH: usize = 512;

/// Into how many pieces the work falls at most.
const PIECES: usize = 32;

/// From so many output channels on, a product is worth its while.
const FEATURES: usize = 4;

/// From so many elements of a kernel on, it need not lie in the order of its roles.
const LONG: usize = 64;

/// Multiplications of a group below which groups are shared among threads.
const GRAIN: usize = 1 << 21;

/// A convolution whose operands and result lie as it says.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    /// The batch of the result.
    pub(super) batch: usize,
    /// Groups of features or of the batch.
    groups: usize,
    /// Whether the groups are of the batch.
    of_batch: bool,
    /// Output channels of one group.
    pub(super) features: usize,
    /// Input channels of one group.
    pub(super) depth: usize,
    /// From one item, and from one channel, of the input to the next.
    pub(super) input: (usize, usize),
    /// From one feature, and from one channel, of the kernel to the next.
    pub(super) kernel: (usize, usize),
    /// From one item, and from one feature, of the result to the next.
    pub(super) out: (usize, usize),
    pub(super) spatial: SmallVec<[Spatial; 3]>,
}

/// Which of its first two axes an operand has first, where the others are in the order of their roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    InOrder,
    Swapped,
}

impl Lie {
    /// How a tensor lies whose axes have these roles; nothing where its spatial axes are not the last, in order.
    pub(crate) fn of(permutation: &[Axis]) -> Option<Lie> {
        let spatial = permutation[2..].iter().enumerate().all(|(place, axis)| axis.index() == place + 2);
        let lie = if permutation[0].index() == 0 { Lie::InOrder } else { Lie::Swapped };
        spatial.then_some(lie)
    }

    /// As [`of`](Lie::of), of a kernel of `dtype`.
    pub(crate) fn of_kernel(permutation: &[Axis], sizes: &[usize], dtype: DType) -> Option<Lie> {
        let taps: usize = permutation[2..].iter().map(|axis| sizes[axis.index()]).product();
        let free = taps >= LONG && !dtype.is_complex();
        Lie::of(permutation).filter(|&lie| lie == Lie::InOrder || free)
    }

    /// From one index of the first role, and from one of the second, to the next.
    fn strides(self, sizes: &[usize]) -> (usize, usize) {
        let rest: usize = sizes[2..].iter().product();
        match self {
            Lie::InOrder => (sizes[1] * rest, rest),
            Lie::Swapped => (rest, sizes[0] * rest),
        }
    }
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
    /// The convolution of tensors of these sizes, in the order of their roles, which lie so.
    pub(crate) fn new(
        op: &ConvOp,
        (input, input_lies): (&[usize], Lie),
        (kernel, kernel_lies): (&[usize], Lie),
        (out, out_lies): (&[usize], Lie),
    ) -> Conv {
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
            input: input_lies.strides(input),
            kernel: kernel_lies.strides(kernel),
            out: out_lies.strides(out),
            spatial,
        }
        .simplified()
    }

    /// The same with one axis, where the kernel has one element in each channel and what lies under it is the
    /// input in order.
    fn simplified(mut self) -> Conv {
        if self.is_pointwise() && self.spatial.len() > 1 {
            let mut axis = self.spatial[self.spatial.len() - 1];
            (axis.size, axis.out) = (self.channel(), self.places());
            self.spatial = SmallVec::from_elem(axis, 1);
        }
        self
    }

    /// Output channels.
    pub(super) fn all_features(&self) -> usize {
        self.groups * self.features
    }

    /// The same over other places and with other elements of the kernel; kernel and result are in order.
    pub(super) fn with_axes(&self, spatial: SmallVec<[Spatial; 3]>) -> Conv {
        let mut conv = Conv { spatial, ..self.clone() };
        conv.kernel = (conv.rows(), conv.taps());
        conv.out = (conv.all_features() * conv.places(), conv.places());
        conv
    }

    /// What is added up in each element of the result.
    pub(super) fn rows(&self) -> usize {
        self.depth * self.taps()
    }

    /// Sizes of the product of a group.
    fn sizes(&self) -> [usize; 3] {
        [self.features, self.batch * self.places(), self.rows()]
    }

    /// The first elements of a group: of the input, of the kernel and of the result.
    fn group(&self, group: usize) -> (usize, usize, usize) {
        let input =
            if self.of_batch { group * self.batch * self.input.0 } else { group * self.depth * self.input.1 };
        (input, group * self.features * self.kernel.0, group * self.features * self.out.1)
    }

    /// Elements of the kernel in one channel.
    pub(super) fn taps(&self) -> usize {
        self.spatial.iter().map(|axis| axis.kernel).product()
    }

    /// Places of the kernel.
    pub(super) fn places(&self) -> usize {
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

/// What [`conv`] keeps meanwhile: elements of `dtype`, possibly none.
pub(crate) fn conv_scratch(conv: &Conv, dtype: DType) -> TensorType {
    let scratch = |conv: &Conv| {
        if dtype == DType::F32 { products_scratch::<f32>(conv) } else { products_scratch::<f64>(conv) }
    };
    let count = if dtype.is_complex() {
        0
    } else {
        let phases = conv.phases();
        let space = phases.iter().map(|phase| scratch(&phase.conv)).max();
        let (kernel, out) = phase_room(&phases);
        // A kernel that is not finite is multiplied with the zeros, too.
        scratch(conv).max(space.unwrap_or(0) + kernel + out)
    };
    TensorType { dtype, shape: Shape::new(&[count]) }
}

/// Elements of the largest kernel and the largest result of sets of places.
fn phase_room(phases: &[Phase]) -> (usize, usize) {
    let most = |size: fn(&Conv) -> usize| phases.iter().map(|phase| size(&phase.conv)).max().unwrap_or(0);
    let kernel = most(|conv| conv.all_features() * conv.rows());
    (kernel, most(|conv| conv.batch * conv.all_features() * conv.places()))
}

/// Convolves operands of one dtype, float or complex and of 32 bits or more a part, and tells the tail of all elements.
/// The scratch is as [`conv_scratch`] says.
pub(crate) fn conv(
    conv: &Conv,
    x: View<'_>,
    kernel: View<'_>,
    (out, tail): (&mut ViewMut<'_>, Option<Tail<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let dtype = out.ty().dtype;
    if dtype == DType::F32 {
        real::<f32>(conv, x, kernel, (out, tail), scratch, par);
    } else if dtype == DType::F64 {
        real::<f64>(conv, x, kernel, (out, tail), scratch, par);
    } else if dtype == DType::C64 {
        complex::<Complex<f32>>(conv, x, kernel, out, par);
        epilogue::at_the_end(tail, out.ty().size(), par);
    } else if dtype == DType::C128 {
        complex::<Complex<f64>>(conv, x, kernel, out, par);
        epilogue::at_the_end(tail, out.ty().size(), par);
    } else {
        unreachable!("{dtype} is not what convolutions are computed in");
    }
}

/// Whether no element of a kernel is infinite or NaN. Then places without an element of the input need no product.
fn is_finite<C: Element>(kernel: &[C]) -> bool {
    kernel.iter().all(|weight| !weight.nan() && !weight.infinite())
}

/// Whether the kernel's elements are added up one by one.
fn is_plain<C: Element>(conv: &Conv, kernel: &[C]) -> bool {
    conv.rows() == 0 || conv.features < FEATURES && is_finite(kernel)
}

fn real<C: Element + gemm::Fused>(
    conv: &Conv,
    x: View<'_>,
    kernel: View<'_>,
    (out, tail): (&mut ViewMut<'_>, Option<Tail<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let (x, kernel) = (x.slice::<C>(), kernel.slice::<C>());
    if conv.places() == 0 || conv.batch == 0 || conv.features == 0 {
        return;
    }
    let size = out.ty().size();
    let out = Target(out.start().cast::<MaybeUninit<C>>());
    let space = scratch.slice::<C>();
    if is_plain(conv, kernel) {
        plain(conv, x, kernel, &out, par);
        return epilogue::at_the_end(tail, size, par);
    }
    let phases = conv.phases();
    if phases.is_empty() || !is_finite(kernel) {
        // SAFETY: the result has room for the convolution, and nobody else uses it.
        return unsafe { products(conv, x, kernel, (&out, tail), space, par) };
    }
    let (for_kernel, for_out) = phase_room(&phases);
    let (weights, rest) = space.split_at_mut(for_kernel);
    let (sums, space) = rest.split_at_mut(for_out);
    for phase in &phases {
        let (rows, places) = (phase.conv.rows(), phase.conv.places());
        if rows == 0 {
            phase.spread(conv, None, &out, par);
            continue;
        }
        let weights = &mut weights[..conv.all_features() * rows];
        phase.kernel(conv, kernel, weights);
        let sums = &mut sums[..conv.batch * conv.all_features() * places];
        // SAFETY: the weights were written, and the sums are as many as the convolution has.
        unsafe {
            let sums = Target(sums.as_mut_ptr());
            products(&phase.conv, x, weights.assume_init_ref(), (&sums, None), space, par);
        }
        // SAFETY: products write every element.
        phase.spread(conv, Some(unsafe { sums.assume_init_ref() }), &out, par);
    }
    epilogue::at_the_end(tail, size, par);
}

/// How a convolution slides, if it does: small groups are shared among threads instead.
fn direct<C: gemm::Fused>(conv: &Conv) -> Option<Direct<'_>> {
    let is_large = conv.groups == 1 || conv.sizes().into_iter().product::<usize>() >= GRAIN;
    Direct::of(conv, gemm::lanes::<C>()).filter(|_| is_large)
}

/// Elements that [`products`] needs.
fn products_scratch<C: gemm::Fused>(conv: &Conv) -> usize {
    let sizes = conv.sizes();
    match direct::<C>(conv) {
        Some(direct) => direct.scratch::<C>(),
        None if sizes.contains(&0) => 0,
        None => gemm::scratch::<C>(sizes),
    }
}

/// The products of all groups; the tail is told of all elements.
///
/// # Safety
/// The result has room for the convolution, and nobody else uses it.
unsafe fn products<C: Element + gemm::Fused>(
    conv: &Conv,
    x: &[C],
    kernel: &[C],
    (out, tail): (&Target<C>, Option<Tail<'_>>),
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
                let target = gemm::Target::new(out.at(first), conv.out.1).with_tail(tail, first);
                direct.run(&x[input..], &weights, target, space, par);
            }
        }
        return;
    }
    let multiply = |group: usize, space: &mut [MaybeUninit<C>], par: Par| {
        let (input, weights, first) = conv.group(group);
        let weights = Weights { conv, kernel: &kernel[weights..] };
        let patches = Patches { conv, input: &x[input..] };
        // SAFETY: groups are disjoint parts of the result, whose items and features are as far apart.
        unsafe {
            let target = gemm::Target::new(out.at(first), conv.out.1).in_runs(conv.places(), conv.out.0);
            let target = target.with_tail(tail, first);
            gemm::multiply(sizes, &weights, &patches, target, gemm::Onto::Nothing, space, par);
        }
    };
    if conv.groups > 1 && gemm::scratch::<C>(sizes) == 0 && m * n * k < GRAIN {
        par.for_chunks(conv.groups, (GRAIN / 4).div_ceil(m * n * k), |groups| {
            groups.for_each(|group| multiply(group, &mut [], Par::Serial));
        });
    } else {
        (0..conv.groups).for_each(|group| multiply(group, space, par));
    }
}

/// Places of one feature that a thread adds up at a time.
const PLACES: usize = COLUMNS / 8;

/// Adds up the kernel's elements one by one.
fn plain<C: Element>(conv: &Conv, x: &[C], kernel: &[C], out: &Target<C>, par: Par) {
    let (taps, places, channel, rows) = (conv.taps(), conv.places(), conv.channel(), conv.rows());
    let &Conv { batch, groups, features, .. } = conv;
    // Enough pieces for the threads, as long as each is worth its while.
    let wide = places.div_ceil(64).next_multiple_of(64).max((1 << 18) / (rows.max(1) * features).max(1));
    let width = PLACES.min(wide.max(64)).min(places);
    let tiles = places.div_ceil(width);
    let tasks = batch * groups * tiles;
    par.for_chunks(tasks, tasks.div_ceil(PIECES), |chunk| {
        for task in chunk {
            let (tile, group, item) = (task % tiles, task / tiles % groups, task / tiles / groups);
            let range = tile * width..places.min((tile + 1) * width);
            let (input, weights, first) = conv.group(group);
            for feature in 0..features {
                let start = first + item * conv.out.0 + feature * conv.out.1 + range.start;
                // SAFETY: the tile's places of one channel belong to this task and are inside the result.
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
    let (taps, places, channel, rows) = (conv.taps(), conv.places(), conv.channel(), conv.rows());
    let &Conv { batch, groups, features, .. } = conv;
    if places == 0 || batch == 0 || features == 0 {
        return;
    }
    let out = Target(out.slice::<C>().as_mut_ptr());
    if is_plain(conv, kernel) {
        return plain(conv, x, kernel, &out, par);
    }
    let height = rows.clamp(1, DEPTH);
    // Enough pieces for the threads, as long as each is worth its while.
    let wide = places.div_ceil(64).next_multiple_of(64).max((1 << 18) / (rows * features));
    let width = (COLUMNS / height).next_multiple_of(8).min(wide.max(64)).min(places);
    let tiles = places.div_ceil(width);
    let tasks = batch * groups * tiles;
    // A thread takes several, so that it takes memory for columns once.
    par.for_chunks(tasks, tasks.div_ceil(PIECES), |chunk| {
        let (mut held, mut space): (Vec<C>, Vec<MaybeUninit<C>>) = (Vec::new(), Vec::new());
        for task in chunk {
            let (tile, group, item) = (task % tiles, task / tiles % groups, task / tiles / groups);
            let range = tile * width..places.min((tile + 1) * width);
            let (input, weights, first) = conv.group(group);
            let weights = &kernel[weights..][..features * rows];
            let start = first + item * conv.out.0 + range.start;
            for from in (0..rows).step_by(height) {
                let count = height.min(rows - from);
                held.resize(height * range.len(), C::ZERO);
                for (row, line) in (from..from + count).zip(held.chunks_exact_mut(range.len())) {
                    let first = input + item * conv.input.0 + row / taps * conv.input.1;
                    fill_row(conv, row % taps, range.clone(), &x[first..][..channel], line);
                }
                let product = Product {
                    sizes: [features, count, range.len()],
                    weights: (&weights[from..], rows),
                    columns: (&held[..], range.len()),
                    adds: from > 0,
                };
                // SAFETY: the tile's places of the group's channels belong to this task and are inside the
                // result; they were written before they are added to.
                unsafe { C::multiply(&product, out.at(start), conv.out.1, &mut space) };
            }
        }
    });
}

/// Where results are written.
pub(super) struct Target<C>(*mut MaybeUninit<C>);

// SAFETY: threads write disjoint parts behind the pointer, which the result's exclusive borrow outlives.
unsafe impl<C: Element> Sync for Target<C> {}

impl<C> Target<C> {
    /// # Safety
    /// The position is inside the result.
    pub(super) unsafe fn at(&self, position: usize) -> *mut C {
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

/// Elements whose columns are laid out before they are multiplied.
trait Gemm: Element {
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
                unsafe {
                    let out = gemm::Target::new(out, stride);
                    Panels::multiply(sizes, (&a, &b), out, onto, space, Par::Serial);
                }
            }
        }
    )*};
}
gemm_by_panels!(Complex<f32>, Complex<f64>);
