//! Convolutions of a dilated input, which occur in gradients of strided ones. At places whose distance is a multiple of
//! the period, the same kernel elements are over input elements, and the others are over zeros. Each such phase is a
//! convolution without zeros, with a part of the kernel (Shi et al., "Is the deconvolution layer the same as a
//! convolutional layer?", 2016).

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::conv::{Conv, Spatial, Target};
use crate::kernels::Element;
use crate::par::Par;

/// The most phases; with more of them each is too small.
const MAX_PHASES: usize = 64;

/// Elements that are written in a chunk.
const GRAIN: usize = 1 << 14;

/// Some places on an axis, and the kernel elements that are over input elements there.
#[derive(Clone, Copy, Debug)]
struct Part {
    axis: Spatial,
    /// The first place, and the distance of the others.
    place: (usize, usize),
    /// The first kernel element, and the distance of the others.
    tap: (usize, usize),
}

/// A set of places with the same kernel elements over input elements.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    parts: SmallVec<[Part; 3]>,
    /// Its convolution, with its own kernel and result, both in order.
    pub(super) conv: Conv,
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Spatial {
    /// The distance of places with the same kernel elements over input elements.
    fn period(&self) -> usize {
        self.input_dilation / gcd(self.stride, self.input_dilation)
    }

    /// The places from `first` on, a period apart.
    fn part(&self, first: usize) -> Part {
        let (period, apart) = (self.period(), self.input_dilation);
        let step = apart / gcd(self.kernel_dilation, apart);
        let start = |tap: usize| (first * self.stride + tap * self.kernel_dilation) as i64 - self.low;
        let found = (0..self.kernel.min(step)).find(|&tap| start(tap).rem_euclid(apart as i64) == 0);
        let tap = found.unwrap_or(0);
        let axis = Spatial {
            kernel: found.map_or(0, |tap| (self.kernel - tap).div_ceil(step)),
            out: (self.out - first).div_ceil(period),
            stride: self.stride * period / apart,
            low: -start(tap).div_euclid(apart as i64),
            input_dilation: 1,
            kernel_dilation: step * self.kernel_dilation / apart,
            ..*self
        };
        Part { axis, place: (first, period), tap: (tap, step) }
    }
}

impl Conv {
    /// The phases of a dilated input; none if it is not dilated, or if they are too many.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let counts: SmallVec<[usize; 3]> =
            self.spatial.iter().map(|axis| axis.period().min(axis.out)).collect();
        let count = counts.iter().fold(1usize, |all, &count| all.saturating_mul(count));
        if count > MAX_PHASES || self.spatial.iter().all(|axis| axis.input_dilation == 1) {
            return Vec::new();
        }
        let phase = |mut index: usize| {
            let mut parts: SmallVec<[Part; 3]> = SmallVec::new();
            for (axis, &count) in self.spatial.iter().zip(&counts) {
                parts.push(axis.part(index % count));
                index /= count;
            }
            let conv = self.with_axes(parts.iter().map(|part| part.axis).collect());
            Phase { parts, conv }
        };
        (0..count).map(phase).collect()
    }
}

impl Phase {
    /// Writes the kernel elements that are over input elements.
    pub(super) fn kernel<C: Element>(&self, whole: &Conv, kernel: &[C], to: &mut [MaybeUninit<C>]) {
        let (taps, features) = (self.conv.taps(), self.conv.all_features());
        for feature in 0..features {
            for channel in 0..whole.depth {
                let from = &kernel[feature * whole.kernel.0 + channel * whole.kernel.1..][..whole.taps()];
                let to = &mut to[(feature * whole.depth + channel) * taps..][..taps];
                for (tap, to) in to.iter_mut().enumerate() {
                    let (mut rest, mut place, mut step) = (tap, 0, 1);
                    for (part, axis) in self.parts.iter().zip(&whole.spatial).rev() {
                        place += (part.tap.0 + rest % part.axis.kernel * part.tap.1) * step;
                        rest /= part.axis.kernel;
                        step *= axis.kernel;
                    }
                    to.write(from[place]);
                }
            }
        }
    }

    /// Writes the sums in `from` to the phase's places in the whole result; zeros if the phase has no sums.
    pub(super) fn spread<C: Element>(&self, whole: &Conv, from: Option<&[C]>, to: &Target<C>, par: Par) {
        let places = self.conv.places();
        let features = self.conv.all_features();
        let (last, leading) = self.parts.split_last().expect("there is a spatial axis");
        let wide = last.axis.out;
        let lines = places / wide.max(1);
        par.for_chunks(whole.batch * features * lines, GRAIN.div_ceil(wide), |chunk| {
            for line in chunk {
                let (row, mut rest) = (line / lines, line % lines);
                let (item, feature) = (row / features, row % features);
                let mut first = item * whole.out.0 + feature * whole.out.1 + last.place.0;
                let mut step = whole.spatial[leading.len()].out;
                for (part, axis) in leading.iter().zip(&whole.spatial).rev() {
                    first += (part.place.0 + rest % part.axis.out * part.place.1) * step;
                    rest /= part.axis.out;
                    step *= axis.out;
                }
                for place in 0..wide {
                    let sum = from.map_or(C::ZERO, |from| from[line * wide + place]);
                    // SAFETY: the place is in bounds of the result, and belongs to one phase and one line.
                    unsafe { to.at(first + place * last.place.1).write(sum) };
                }
            }
        });
    }
}
