//! One-pass variance: sums of long rows, and sums of the squared deviations from their means. The moments of a tile are
//! computed while the first-level cache holds it, and tiles are combined pairwise (Chan, Golub and LeVeque, Algorithms
//! for Computing the Sample Variance, 1983). The mean of a tile is closer to its elements than the overall mean, so
//! that this is as accurate as a second pass.

use defn_core::{Axis, DType, Shape, TensorType};

use super::fold::{Cascade, Sum, fold_slice};
use super::layout::{CHUNK, ReductionLayout};
use super::rows::join_pieces;
use super::{read, store, write};
use crate::kernels::TILE;
use crate::kernels::math::Float;
use crate::kernels::simd::vectorized;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Rows whose moments are computed together.
#[derive(Debug)]
pub(crate) struct OnePassMoments {
    folding: ReductionLayout,
    dtype: DType,
}

/// The moments of some elements.
#[derive(Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    /// The sum of the squared deviations from the mean.
    squares: f64,
}

/// The number of fields of [`Moments`].
const NUMBERS: usize = 3;

/// The lanes of sums of squares.
const LANES: usize = 64;

impl Moments {
    const NONE: Moments = Moments { count: 0.0, mean: 0.0, squares: 0.0 };

    fn join(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        let (delta, weight) = (other.mean - self.mean, other.count / count);
        Moments {
            count,
            mean: self.mean + delta * weight,
            squares: self.squares + other.squares + delta * delta * self.count * weight,
        }
    }

    /// The moments of all elements, combined by halves.
    fn of_all(moments: &[Moments]) -> Moments {
        match moments {
            [] => Moments::NONE,
            [one] => *one,
            _ => {
                let (first, second) = moments.split_at(moments.len() / 2);
                Moments::of_all(first).join(Moments::of_all(second))
            }
        }
    }

    /// The moments of a tile, whose sum is known.
    fn of_tile<T: Float>(tile: &[T], sum: T) -> Moments {
        let count = tile.len() as f64;
        let mut mean = sum.wide() / count;
        if !mean.is_finite() {
            // The sum may overflow where the mean does not.
            mean = tile.iter().map(|x| x.wide() / count).sum();
        }
        Moments { count, mean, squares: squares_from(tile, T::nearest(mean)).wide() }
    }
}

vectorized! {
    /// The sum of squared differences from a number, for at most a tile.
    fn squares_from[T: Float] of [T] (tile: &[T], center: T) -> T {
        let square = |x: T| {
            let deviation = x.minus(center);
            deviation.times(deviation)
        };
        let (lines, rest) = tile.as_chunks::<LANES>();
        let mut total = [T::ZERO; LANES];
        for line in lines {
            for (lane, &x) in total.iter_mut().zip(line) {
                *lane = lane.plus(square(x));
            }
        }
        for (lane, &x) in total.iter_mut().zip(rest) {
            *lane = lane.plus(square(x));
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            let (low, high) = total.split_at_mut(width);
            for (low, &high) in low.iter_mut().zip(&high[..width]) {
                *low = low.plus(high);
            }
        }
        total[0]
    }
}

impl OnePassMoments {
    /// The moments of an operand over axes; None unless it has floats, the axes need no reordering, and rows are long.
    /// Shorter rows are still in a cache when they are read again.
    pub(crate) fn new(operand: &TensorType, axes: &[Axis]) -> Option<OnePassMoments> {
        let folding = ReductionLayout::new(operand.shape.sizes(), axes);
        let fits = (operand.dtype == DType::F32 || operand.dtype == DType::F64)
            && operand.size() > 0
            && folding.inner == 1
            && folding.reduced > CHUNK
            && folding.is_in_order();
        fits.then_some(OnePassMoments { folding, dtype: operand.dtype })
    }

    /// The number of rows, and their length.
    pub(crate) fn rows(&self) -> (usize, usize) {
        (self.folding.outer, self.folding.reduced)
    }

    fn pieces(&self) -> usize {
        self.folding.outer * self.folding.reduced.div_ceil(CHUNK)
    }

    /// The partial results: the sums, and the moments of pieces.
    pub(crate) fn partial(&self) -> [TensorType; 2] {
        let of = |dtype, count| TensorType { dtype, shape: Shape::new(&[count]) };
        [of(self.dtype, self.pieces()), of(DType::F64, NUMBERS * self.pieces())]
    }

    /// Writes the sums, with the bits of [`super::reduce`], and the sums of squares.
    pub(crate) fn run(&self, x: View<'_>, out: [&ViewMut<'_>; 2], partial: [&ViewMut<'_>; 2], par: Par) {
        if self.dtype == DType::F64 {
            self.run_in::<f64>(x, out, partial, par);
        } else {
            self.run_in::<f32>(x, out, partial, par);
        }
    }

    fn run_in<T: Float>(
        &self,
        x: View<'_>,
        [sums, squares]: [&ViewMut<'_>; 2],
        [partial_sums, partial_moments]: [&ViewMut<'_>; 2],
        par: Par,
    ) {
        let (x, length) = (x.slice::<T>(), self.folding.reduced);
        let pieces = length.div_ceil(CHUNK);
        par.for_chunks(self.pieces(), 1, |chunk| {
            for task in chunk {
                let (row, from) = (task / pieces, task % pieces * CHUNK);
                let piece = &x[row * length + from..][..CHUNK.min(length - from)];
                let mut cascade = Cascade::new();
                let mut moments = [Moments::NONE; CHUNK / TILE];
                for (tile, tile_moments) in piece.chunks(TILE).zip(&mut moments) {
                    let sum = fold_slice::<Sum<T>>(tile);
                    cascade.push::<Sum<T>>(sum);
                    *tile_moments = Moments::of_tile(tile, sum);
                }
                let all = Moments::of_all(&moments[..piece.len().div_ceil(TILE)]);
                // SAFETY: each piece belongs to one chunk.
                unsafe {
                    write(partial_sums, task, &[cascade.finish::<Sum<T>>()]);
                    write(partial_moments, task * NUMBERS, &[all.count, all.mean, all.squares]);
                }
            }
        });
        join_pieces::<Sum<T>>(&self.folding, sums, partial_sums);
        for row in 0..self.folding.outer {
            // SAFETY: all pieces are written, and no thread writes them any more.
            let partial_moments: &[f64] =
                unsafe { read(partial_moments, row * pieces * NUMBERS, pieces * NUMBERS) };
            let all = partial_moments.as_chunks::<NUMBERS>().0.iter();
            let moments: Vec<Moments> =
                all.map(|&[count, mean, squares]| Moments { count, mean, squares }).collect();
            // SAFETY: no other thread writes the output.
            unsafe { store(squares, row, &[T::nearest(Moments::of_all(&moments).squares)]) };
        }
    }
}

#[cfg(test)]
mod tests {
    use defn_core::op::ReduceOp;

    use super::super::{reduce, reduce_scratch};
    use super::*;
    use crate::kernels::testing::Array;

    fn rows(count: usize, length: usize, of: impl Fn(usize) -> f32) -> (Array, Vec<f32>) {
        let x: Vec<f32> = (0..count * length).map(of).collect();
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let ty = TensorType::new(DType::F32, Shape::new(&[count, length])).unwrap();
        (Array::of_bytes(ty, &bytes), x)
    }

    /// The sums, and the sums of squares.
    fn sums_and_squares(x: &Array, par: Par) -> [Vec<f32>; 2] {
        let axes = [x.ty.shape.axes().nth(1).unwrap()];
        let reduction = OnePassMoments::new(&x.ty, &axes).unwrap();
        let ty = TensorType::new(DType::F32, x.ty.shape.reduced(&axes, false)).unwrap();
        let (mut sums, mut squares) = (Array::unwritten(ty.clone()), Array::unwritten(ty.clone()));
        let mut partial = reduction.partial().map(Array::unwritten);
        let [first, second] = &mut partial;
        let out = [&sums.view_mut(), &squares.view_mut()];
        reduction.run(x.view(), out, [&first.view_mut(), &second.view_mut()], par);
        let mut scratch = Array::unwritten(reduce_scratch(&x.ty, &axes, &ty));
        let mut right = Array::unwritten(ty);
        reduce(ReduceOp::Sum, x.view(), &axes, &mut right.view_mut(), &mut scratch.view_mut(), par);
        assert_eq!(sums.bytes(), right.bytes());
        [sums, squares].map(|array| {
            let numbers = array.bytes().as_chunks::<4>().0.iter();
            numbers.map(|&bytes| f32::from_ne_bytes(bytes)).collect()
        })
    }

    fn right(x: &[f32]) -> f64 {
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
        x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum()
    }

    #[test]
    fn squares_are_as_near_as_two_passes_give_them() {
        let length = CHUNK + 3 * TILE + 77;
        let noise = |at: usize| (at * 7919 % 10007) as f32 / 10007.0;
        let kinds: [&dyn Fn(usize) -> f32; 4] = [
            &noise,
            // Far from zero; a slope, whose tiles have distant means; and rows with distant means.
            &|at| 1000.0 + noise(at),
            &|at| (at % length) as f32 + noise(at),
            &|at| (at / length) as f32 * 1e6,
        ];
        for kind in kinds {
            let (array, x) = rows(3, length, kind);
            let [_, squares] = sums_and_squares(&array, Par::Pool);
            assert_eq!(sums_and_squares(&array, Par::Serial)[1], squares);
            for (row, &square) in x.chunks(length).zip(&squares) {
                let right = right(row);
                assert!((f64::from(square) - right).abs() <= 1e-5 * right, "{square} for {right}");
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_large_shows() {
        let length = CHUNK + 1;
        for (odd, is_nan) in [(f32::NAN, true), (f32::INFINITY, true), (3e38, false)] {
            let (array, _) = rows(2, length, |at| if at == 7 || at == 8 { odd } else { 0.5 });
            let [_, squares] = sums_and_squares(&array, Par::Serial);
            assert_eq!(squares[0].is_nan(), is_nan);
            assert_eq!(squares[0].is_infinite(), !is_nan);
            assert_eq!(squares[1], 0.0);
        }
    }
}
