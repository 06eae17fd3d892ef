use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::kernels::testing::noise;

/// Numbers between -0.5 and 0.5.
fn numbers(seed: u64, count: usize) -> Vec<f64> {
    noise(seed).map(|bits| (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5).take(count).collect()
}

/// A matrix with gaps, stored row-major or column-major. The gaps hold NaN.
fn stored<S: Copy>(
    values: &[S],
    (free, along): (usize, usize),
    turned: bool,
    gap: usize,
    nan: S,
) -> (Vec<S>, usize, usize) {
    let (rows, columns) = if turned { (along, free) } else { (free, along) };
    let stride = columns + gap;
    let mut elements = vec![nan; rows * stride];
    for i in 0..free {
        for k in 0..along {
            let index = if turned { k * stride + i } else { i * stride + k };
            elements[index] = values[i * along + k];
        }
    }
    (elements, if turned { 1 } else { stride }, if turned { stride } else { 1 })
}

struct Case {
    sizes: [usize; 3],
    turned: (bool, bool),
    gaps: (usize, usize, usize),
    accumulation: Accumulation,
}

impl Case {
    /// Checks the product of random numbers, read as `C`, with each instruction set, on one thread and on all.
    fn check<C: GemmElement + Into<f64> + From<f32> + PartialEq + std::fmt::Debug, S: Load<C>>(
        &self,
        of: impl Fn(f64) -> S,
        epsilon: f64,
    ) {
        let [m, n, k] = self.sizes;
        let values = |seed, count| numbers(seed, count).into_iter().map(&of).collect::<Vec<S>>();
        let (a, b) = (values(1, m * k), values(2, n * k));
        let nan = of(f64::NAN);
        let (left, a_free, a_along) = stored(&a, (m, k), self.turned.0, self.gaps.0, nan);
        let (right, b_free, b_along) = stored(&b, (n, k), self.turned.1, self.gaps.1, nan);
        let x = Matrix { elements: &left, free: a_free, along: a_along };
        let y = Matrix { elements: &right, free: b_free, along: b_along };
        let stride = n + self.gaps.2;
        let run = |par| {
            let mut out = vec![C::from(2.0); m * stride];
            let mut space = vec![MaybeUninit::uninit(); scratch::<C>(self.sizes)];
            // SAFETY: the result has room for the rows.
            unsafe {
                multiply(
                    self.sizes,
                    &x,
                    &y,
                    GemmOutput::new(out.as_mut_ptr(), stride),
                    self.accumulation,
                    &mut space,
                    par,
                );
            }
            out
        };
        let got = run(Par::Pool);
        assert_eq!(run(Par::Serial), got, "{:?} on one thread", self.sizes);
        for (index, &got) in got.iter().enumerate() {
            let (i, j) = (index / stride, index % stride);
            if j >= n {
                assert_eq!(got, C::from(2.0), "behind row {i}");
                continue;
            }
            let (start, sign) = match self.accumulation {
                Accumulation::Nothing => (0.0, 1.0),
                Accumulation::Plus => (2.0, 1.0),
                Accumulation::Minus => (2.0, -1.0),
            };
            let (mut want, mut size) = (start, 2.0);
            for step in 0..k {
                let product = a[i * k + step].load().into() * b[j * k + step].load().into();
                want += sign * product;
                size += f64::abs(product);
            }
            let error = (got.into() - want).abs();
            // Each part is summed one by one, then the parts' sums are.
            let bound = (k.min(DEPTH) + k.div_ceil(DEPTH)) as f64 * epsilon * size;
            assert!(error <= bound, "{:?} at {i}, {j}: {got:?}, not {want}", self.sizes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_sizes_and_strides(
        sizes in (1usize..80, 1usize..80, 1usize..300),
        turned in any::<(bool, bool)>(),
        gaps in (0usize..3, 0usize..3, 0usize..3),
        accumulation in prop::sample::select(vec![Accumulation::Nothing, Accumulation::Plus, Accumulation::Minus]),
    ) {
        let case = Case { sizes: [sizes.0, sizes.1, sizes.2], turned, gaps, accumulation };
                    case.check::<f32, f32>(|x| x as f32, f32::EPSILON.into());
            case.check::<f64, f64>(|x| x, f64::EPSILON);
        case.check::<f32, f16>(f16::from_f64, f32::EPSILON.into());
        case.check::<f32, bf16>(bf16::from_f64, f32::EPSILON.into());
    }
}

#[test]
fn operands_that_are_laid_out() {
    for turned in [(false, false), (false, true), (true, false), (true, true)] {
        let accumulation = if turned.0 { Accumulation::Minus } else { Accumulation::Nothing };
        let case = Case { sizes: [290, 100, 270], turned, gaps: (0, 1, 0), accumulation };
        case.check::<f32, f32>(|x| x as f32, f32::EPSILON.into());
        case.check::<f64, f64>(|x| x, f64::EPSILON);
        case.check::<f32, bf16>(bf16::from_f64, f32::EPSILON.into());
    }
    // Larger than what is packed at once, along each axis.
    for sizes in [[PACKED.0 + 5, 40, 60], [70, PACKED.1 + 40, 1000], [70, 40, PACKED.2 + DEPTH + 3]] {
        let case = Case { sizes, turned: (false, false), gaps: (0, 0, 0), accumulation: Accumulation::Plus };
        assert_eq!(Packing::of(sizes, f32::kernels()[0].most_columns()), Packing::Packed);
        case.check::<f32, f32>(|x| x as f32, f32::EPSILON.into());
    }
}

#[test]
fn what_is_not_finite_stays_where_it_is() {
    let mut a = vec![1.0f32; 20 * 30];
    a[7 * 30 + 4] = f32::INFINITY;
    a[9 * 30 + 5] = f32::NAN;
    let b = vec![1.0f32; 30 * 40];
    let mut out = vec![0.0f32; 20 * 40];
    let x = Matrix { elements: &a[..], free: 30, along: 1 };
    let y = Matrix { elements: &b[..], free: 1, along: 40 };
    // SAFETY: the result has room for the rows.
    unsafe {
        multiply(
            [20, 40, 30],
            &x,
            &y,
            GemmOutput::new(out.as_mut_ptr(), 40),
            Accumulation::Nothing,
            &mut [],
            Par::Serial,
        )
    };
    for (row, values) in out.chunks(40).enumerate() {
        for &value in values {
            match row {
                7 => assert_eq!(value, f32::INFINITY),
                9 => assert!(value.is_nan()),
                _ => assert_eq!(value, 30.0),
            }
        }
    }
}

#[test]
fn complex_products_are_real_ones() {
    for [m, n, k] in [[1, 1, 1], [3, 5, 2], [20, 17, 30], [30, 40, 33], [260, 70, 150]] {
        for (left, right) in [(false, false), (false, true), (true, false), (true, true)] {
            let numbers = |seed, count: usize| -> Vec<Complex<f64>> {
                let parts = numbers(seed, 2 * count);
                parts.as_chunks().0.iter().map(|&[re, im]| Complex::new(re, im)).collect()
            };
            let (a, b) = (numbers(1, m * k), numbers(2, n * k));
            let nan = Complex::new(f64::NAN, 0.0);
            let (x, a_free, a_along) = stored(&a, (m, k), left, 1, nan);
            let (y, b_free, b_along) = stored(&b, (n, k), right, 2, nan);
            let x = Matrix { elements: &x[..], free: a_free, along: a_along };
            let y = Matrix { elements: &y[..], free: b_free, along: b_along };
            let sizes = [m, n, k];
            let mut out = vec![Complex::new(2.0, 1.0); m * n];
            let mut space = vec![MaybeUninit::uninit(); complex::scratch::<f64>(sizes)];
            // SAFETY: the result has room for the rows.
            unsafe {
                let to = GemmOutput::new(out.as_mut_ptr(), n);
                complex::multiply(sizes, (&x, &y), to, Accumulation::Minus, &mut space, Par::Pool);
            }
            for (index, got) in out.iter().enumerate() {
                let (i, j) = (index / n, index % n);
                let sum: Complex<f64> = (0..k).map(|p| a[i * k + p] * b[j * k + p]).sum();
                let error = (Complex::new(2.0, 1.0) - sum - got).norm();
                assert!(error < 1e-13, "{m}x{n}x{k} at {i}, {j}");
            }
        }
    }
}

/// The products of a batch have the same bits as products of tiles that are packed, on each instruction set.
fn check_direct<C>(sizes: [usize; 3], count: usize, (a_turned, b_turned): (bool, bool), of: impl Fn(f64) -> C)
where
    C: GemmElement + Into<f64> + Load<C> + PartialEq + std::fmt::Debug,
{
    let [m, n, k] = sizes;
    let operand = |seed, free: usize, turned: bool| {
        let elements: Vec<C> = numbers(seed, count * free * k).into_iter().map(&of).collect();
        (elements, if turned { 1 } else { k }, if turned { free } else { 1 })
    };
    let (left, a_free, a_along) = operand(1, m, a_turned);
    let (right, b_free, b_along) = operand(2, n, !b_turned);
    let a = Matrix { elements: &left[..], free: a_free, along: a_along };
    let b = Matrix { elements: &right[..], free: b_free, along: b_along };
    let batch = Batch { sizes, a, b, strides: (m * k, n * k) };
    for kernels in C::kernels() {
        if !direct::is_direct(kernels, sizes) {
            continue;
        }
        let mut got = vec![of(3.0); count * m * n];
        // SAFETY: the result has room for the batch.
        unsafe { batch.multiply_by(kernels, 0..count, GemmOutput::new(got.as_mut_ptr(), n)) };
        for index in 0..count {
            let mut want = vec![of(2.0); m * n];
            let mut space = vec![MaybeUninit::uninit(); scratch_of(kernels, sizes)];
            let (a, b) = (&left[index * m * k..], &right[index * n * k..]);
            let a = Matrix { elements: a, free: a_free, along: a_along };
            let b = Matrix { elements: b, free: b_free, along: b_along };
            // SAFETY: the result has room for the rows.
            unsafe {
                let out = GemmOutput::new(want.as_mut_ptr(), n);
                multiply_by(kernels, sizes, (&a, &b), out, Accumulation::Nothing, &mut space, Par::Serial);
            }
            assert_eq!(got[index * m * n..][..m * n], want, "{sizes:?}, {index} of {count}");
        }
    }
}

#[test]
fn small_products_are_those_of_packed_tiles() {
    let mut sizes: Vec<[usize; 3]> = (2..30).map(|m| [m, 31 - m, 1 + m / 3]).collect();
    sizes.extend([[4, 4, 4], [32, 10, 128], [128, 10, 32], [64, 70, 40], [100, 33, 300], [13, 65, 512]]);
    for (index, sizes) in sizes.into_iter().enumerate() {
        for turned in [(false, false), (true, false), (false, true), (true, true)] {
            check_direct(sizes, 1 + index % 3, turned, |x| x as f32);
            check_direct(sizes, 1 + index % 3, turned, |x| x);
        }
    }
}

/// A thin, deep or tall product has the same bits as one of packed tiles, on each instruction set and on any number of
/// threads. Gives how many tall ones were computed.
fn check_special<C>([m, n, k]: [usize; 3], (a_turned, b_turned): (bool, bool), of: impl Fn(f64) -> C) -> usize
where
    C: GemmElement + Into<f64> + Load<C> + PartialEq + std::fmt::Debug,
{
    let sizes = [m, n, k];
    let operand = |seed, free: usize, turned: bool| {
        let elements: Vec<C> = numbers(seed, free * k).into_iter().map(&of).collect();
        (elements, if turned { 1 } else { k }, if turned { free } else { 1 })
    };
    let (left, a_free, a_along) = operand(1, m, a_turned);
    let (right, b_free, b_along) = operand(2, n, !b_turned);
    let a = Matrix { elements: &left[..], free: a_free, along: a_along };
    let b = Matrix { elements: &right[..], free: b_free, along: b_along };
    let mut tall = 0;
    for kernels in C::kernels() {
        for accumulation in [Accumulation::Nothing, Accumulation::Plus, Accumulation::Minus] {
            let mut run = |is_special: bool, par| {
                let mut out = vec![of(2.0); m * n];
                let most = scratch_of(kernels, sizes).max(panels_scratch(kernels, sizes));
                let mut space = vec![MaybeUninit::uninit(); most];
                // SAFETY: the result has room for the rows.
                unsafe {
                    let out = GemmOutput::new(out.as_mut_ptr(), n);
                    if is_special && deep::is_deep(sizes) {
                        let deep = deep::Deep { kernels, a: &a, b: &b, sizes, out: &out };
                        deep.multiply(accumulation, &mut space, par);
                    } else if is_special
                        && accumulation == Accumulation::Nothing
                        && direct::multiply_tall(kernels, sizes, (&a, &b), &out, par).is_some()
                    {
                        tall += 1;
                    } else if is_special {
                        let thin = thin::Thin::of(kernels, sizes, (&a, &b), &out)?;
                        thin.multiply(accumulation, par);
                    } else {
                        let (a, b): (&dyn Operand<C>, &dyn Operand<C>) = (&a, &b);
                        let part_depth = part_depth(k);
                        let product = Product { kernels, a, b, out, accumulation, part_depth };
                        match Packing::of(sizes, kernels.most_columns()) {
                            Packing::InPlace => product.in_place(sizes, par),
                            Packing::Packed => product.packed(sizes, &mut space, par),
                        }
                    }
                }
                Some(out)
            };
            let want = run(false, Par::Serial);
            for par in [Par::Serial, Par::Pool] {
                let got = run(true, par);
                assert!(got.is_none() || got == want, "{sizes:?} {a_turned} {b_turned} {accumulation:?}");
            }
        }
    }
    tall
}

#[test]
fn thin_deep_and_tall_products_are_those_of_packed_tiles() {
    let thin = [[3, 700, 600], [1, 130, 40], [12, 513, 17], [200, 5, 1030], [1100, 2, 90], [140, 10, 513]];
    let several_tiles = [[13, 600, 900], [64, 530, 1000], [20, 700, 300], [33, 140, 4000], [47, 1020, 530]];
    let deep = [[2, 3, 2050], [8, 8, 9001], [7, 33, 2500], [64, 64, 2048], [31, 5, 4100], [13, 16, 3000]];
    assert!(deep.into_iter().all(deep::is_deep) && !thin.into_iter().any(deep::is_deep));
    let tall = [
        [300, 10, 40],
        [1001, 16, 8],
        [500, 3, 5],
        [250, 32, 256],
        [241, 17, 1],
        [260, 70, 64],
        [400, 128, 13],
    ];
    let mut tall_ones = 0;
    for sizes in thin.into_iter().chain(several_tiles).chain(deep).chain(tall) {
        for turned in [(false, false), (true, false), (false, true), (true, true)] {
            tall_ones += check_special(sizes, turned, |x| x as f32);
            tall_ones += check_special(sizes, turned, |x| x);
        }
    }
    assert!(tall_ones > 0);
}
