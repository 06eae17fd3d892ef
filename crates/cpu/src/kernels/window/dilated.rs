//! Convolutions of a dilated input, which occur in gradients of strided ones. At places whose distance is a multiple of
//! the period, the same kernel elements are over input elements, and the others are over zeros. Each such phase is a
//! convolution without zeros, with a part of the kernel (Shi et al., "Is the deconvolution layer the same as a
//! convolutional layer?", 2016).

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::conv::{Conv, Spatial};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, SendPtr};
use crate::par::Par;

/// The most phases; with more of them each is too small.
const MAX_PHASES: usize = 64;

/// Elements that are written in a chunk.
const SCATTER_GRAIN: usize = 1 << 14;

/// Some output positions on an axis, and the kernel elements that are over input elements there.
#[derive(Clone, Copy, Debug)]
struct AxisPhase {
    axis: Spatial,
    /// The first output position, and the distance of the others.
    out_positions: (usize, usize),
    /// The first kernel element, and the distance of the others.
    tap: (usize, usize),
}

/// A set of output positions with the same kernel elements over input elements.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    axis_phases: SmallVec<[AxisPhase; 3]>,
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
    fn axis_phase(&self, first: usize) -> AxisPhase {
        let (period, input_dilation) = (self.period(), self.input_dilation);
        let step = input_dilation / gcd(self.kernel_dilation, input_dilation);
        let start = |tap: usize| (first * self.stride + tap * self.kernel_dilation) as i64 - self.low;
        let first_tap =
            (0..self.kernel.min(step)).find(|&tap| start(tap).rem_euclid(input_dilation as i64) == 0);
        let tap = first_tap.unwrap_or(0);
        let axis = Spatial {
            kernel: first_tap.map_or(0, |tap| (self.kernel - tap).div_ceil(step)),
            out: (self.out - first).div_ceil(period),
            stride: self.stride * period / input_dilation,
            low: -start(tap).div_euclid(input_dilation as i64),
            input_dilation: 1,
            kernel_dilation: step * self.kernel_dilation / input_dilation,
            ..*self
        };
        AxisPhase { axis, out_positions: (first, period), tap: (tap, step) }
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
            let mut axis_phases: SmallVec<[AxisPhase; 3]> = SmallVec::new();
            // The last axis is the fastest, so that phases whose places alternate on it follow each other.
            for (axis, &count) in self.spatial.iter().zip(&counts).rev() {
                axis_phases.push(axis.axis_phase(index % count));
                index /= count;
            }
            axis_phases.reverse();
            let conv = self.with_axes(axis_phases.iter().map(|axis_phase| axis_phase.axis).collect());
            Phase { axis_phases, conv }
        };
        (0..count).map(phase).collect()
    }
}

/// Whether phases are pairs whose places alternate on the last axis.
pub(super) fn are_pairs(phases: &[Phase]) -> bool {
    phases.len() > 1
        && (0..).zip(phases).all(|(index, phase)| {
            phase.axis_phases.last().is_some_and(|last| last.out_positions == (index % 2, 2))
        })
}

/// Writes the sums of a pair of phases, which alternate on the last axis, to their places in the whole result.
pub(super) fn alternate<C: Element>(
    pair: [&Phase; 2],
    whole: &Conv,
    sums: [&[C]; 2],
    to: &SendPtr<C>,
    par: Par,
) {
    let [(wide, lines), (other, _)] = pair.map(Phase::lines);
    let features = whole.all_features();
    par.for_chunks(whole.batch * features * lines, SCATTER_GRAIN.div_ceil(wide + other), |chunk| {
        for line in chunk {
            let first = pair[0].first_of(whole, line);
            // SAFETY: the line is in bounds of the result, and belongs to one pair of phases.
            let to = unsafe { to.part(first, wide + other) };
            alternate_line(&sums[0][line * wide..][..wide], &sums[1][line * other..][..other], to);
        }
    });
}

vectorized! {
    /// Writes elements of both in turn.
    fn alternate_line[C: Element] of [C] (a: &[C], b: &[C], to: &mut [MaybeUninit<C>]) {
        let (pairs, rest) = to.as_chunks_mut::<2>();
        for ((to, &a), &b) in pairs.iter_mut().zip(a).zip(b) {
            *to = [MaybeUninit::new(a), MaybeUninit::new(b)];
        }
        if let (Some(to), Some(&a)) = (rest.first_mut(), a.get(b.len())) {
            to.write(a);
        }
    }
}

impl Phase {
    /// The places of a line along the last axis, and the lines of a feature.
    fn lines(&self) -> (usize, usize) {
        let wide = self.axis_phases.last().expect("there is a spatial axis").axis.out;
        (wide, self.conv.out_positions() / wide.max(1))
    }

    /// The position of a line's first place in the whole result.
    fn first_of(&self, whole: &Conv, line: usize) -> usize {
        let (last, leading) = self.axis_phases.split_last().expect("there is a spatial axis");
        let (features, lines) = (self.conv.all_features(), self.lines().1);
        let (row, mut rest) = (line / lines, line % lines);
        let (item, feature) = (row / features, row % features);
        let mut first = item * whole.out.0 + feature * whole.out.1 + last.out_positions.0;
        let mut step = whole.spatial[leading.len()].out;
        for (axis_phase, axis) in leading.iter().zip(&whole.spatial).rev() {
            first +=
                (axis_phase.out_positions.0 + rest % axis_phase.axis.out * axis_phase.out_positions.1) * step;
            rest /= axis_phase.axis.out;
            step *= axis.out;
        }
        first
    }

    /// Writes the kernel elements that are over input elements.
    pub(super) fn kernel<C: Element>(&self, whole: &Conv, kernel: &[C], to: &mut [MaybeUninit<C>]) {
        let (taps, features) = (self.conv.taps(), self.conv.all_features());
        for feature in 0..features {
            for channel in 0..whole.depth {
                let from = &kernel[feature * whole.kernel.0 + channel * whole.kernel.1..][..whole.taps()];
                let to = &mut to[(feature * whole.depth + channel) * taps..][..taps];
                for (tap, to) in to.iter_mut().enumerate() {
                    let (mut rest, mut index, mut step) = (tap, 0, 1);
                    for (axis_phase, axis) in self.axis_phases.iter().zip(&whole.spatial).rev() {
                        index += (axis_phase.tap.0 + rest % axis_phase.axis.kernel * axis_phase.tap.1) * step;
                        rest /= axis_phase.axis.kernel;
                        step *= axis.kernel;
                    }
                    to.write(from[index]);
                }
            }
        }
    }

    /// Writes the sums in `from` to the phase's places in the whole result; zeros if the phase has no sums.
    pub(super) fn scatter_sums<C: Element>(
        &self,
        whole: &Conv,
        from: Option<&[C]>,
        to: &SendPtr<C>,
        par: Par,
    ) {
        let last = self.axis_phases.last().expect("there is a spatial axis");
        let (wide, lines) = self.lines();
        let all = whole.batch * self.conv.all_features() * lines;
        par.for_chunks(all, SCATTER_GRAIN.div_ceil(wide), |chunk| {
            for line in chunk {
                let first = self.first_of(whole, line);
                for column in 0..wide {
                    let sum = from.map_or(C::ZERO, |from| from[line * wide + column]);
                    // SAFETY: the position is in bounds of the result, and belongs to one phase and one line.
                    unsafe { to.at(first + column * last.out_positions.1).write(sum) };
                }
            }
        });
    }
}
