//! Tests of spectra of hard matrices: the properties of the factors, at sizes around the lanes and panels, with every
//! instruction set.

use num_complex::Complex;
use proptest::prelude::*;

use super::passes::pieces;
use super::{Field, RealField, eigh, francis, schur, svd};
use crate::kernels::simd::at_every_level;
use crate::par::Par;

/// The structure of a matrix.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Even,
    Ones,
    Zeros,
    Identity,
    LowRank,
    /// Columns, or rows, whose magnitudes fall from 1 to almost 0.
    GradedColumns,
    GradedRows,
    Jordan,
    /// Ones above a diagonal of zeros.
    Nilpotent,
    /// Magnitudes that differ by many orders.
    Scattered,
    Huge,
    Subnormal,
}

const KINDS: [Kind; 12] = [
    Kind::Even,
    Kind::Ones,
    Kind::Zeros,
    Kind::Identity,
    Kind::LowRank,
    Kind::GradedColumns,
    Kind::GradedRows,
    Kind::Jordan,
    Kind::Nilpotent,
    Kind::Scattered,
    Kind::Huge,
    Kind::Subnormal,
];

/// Numbers between -1 and 1.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A row-major matrix of the type's numbers.
fn matrix<R: RealField + Into<f64>>(kind: Kind, (m, n): (usize, usize), seed: u64) -> Vec<R> {
    let mut draws = Draws(seed);
    let narrow = R::EPSILON.into() > 1e-10;
    let rank = m.min(n).div_ceil(3);
    let left: Vec<f64> = (0..m * rank).map(|_| draws.next()).collect();
    let right: Vec<f64> = (0..rank * n).map(|_| draws.next()).collect();
    let fall = |i: usize, n: usize| 10f64.powf(-18.0 * i as f64 / n as f64);
    let mut element = |i: usize, j: usize| match kind {
        Kind::Even => draws.next(),
        Kind::Ones => 1.0,
        Kind::Zeros => 0.0,
        Kind::Identity => f64::from(i == j),
        Kind::LowRank => (0..rank).map(|k| left[i * rank + k] * right[k * n + j]).sum(),
        Kind::GradedColumns => draws.next() * fall(j, n),
        Kind::GradedRows => draws.next() * fall(m - 1 - i, m),
        Kind::Jordan => f64::from(i == j || i + 1 == j),
        Kind::Nilpotent => f64::from(i + 1 == j),
        Kind::Scattered => draws.next() * 10f64.powf(16.0 * draws.next()),
        Kind::Huge => draws.next() * if narrow { 1e36 } else { 1e306 },
        Kind::Subnormal => draws.next() * if narrow { 1e-41 } else { 1e-311 },
    };
    (0..m * n).map(|index| R::from_f64(element(index / n, index % n))).collect()
}

type C = Complex<f64>;

/// The greatest magnitude, or 1 if all elements are zero.
fn greatest(x: &[C]) -> f64 {
    let most = x.iter().map(|x| x.norm()).fold(0.0, f64::max);
    if most > 0.0 { most } else { 1.0 }
}

/// The distance of a matrix's columns from being orthonormal.
fn skew(x: &[C], columns: usize) -> f64 {
    let mut most = 0.0f64;
    for i in 0..columns {
        for j in i..columns {
            let sum: C = x.chunks_exact(columns).map(|row| row[i].conj() * row[j]).sum();
            most = most.max((sum - f64::from(i == j)).norm());
        }
    }
    most
}

/// The greatest difference between `u diag(s) vh` and a matrix, both divided by `unit`.
fn distance(a: &[C], unit: f64, (u, width): (&[C], usize), s: &[f64], (vh, n): (&[C], usize)) -> f64 {
    let mut most = 0.0f64;
    for (i, row) in a.chunks_exact(n).enumerate() {
        for (j, x) in row.iter().enumerate() {
            let sum: C = (0..s.len()).map(|k| u[i * width + k] * (s[k] / unit) * vh[k * n + j]).sum();
            let difference = (sum - x / unit).norm();
            most = if difference.is_nan() { f64::INFINITY } else { most.max(difference) };
        }
    }
    most
}

fn numbers<R: RealField + Into<f64>>(x: &[R]) -> Vec<C> {
    x.iter().map(|&x| C::from(x.into())).collect()
}

/// Aligned workspace, as the backend provides it, filled with NaN: no result may depend on its content.
fn with_room<T: Field, O>(count: usize, work: impl FnOnce(&mut [T]) -> O) -> O {
    let mut memory = vec![T::from_real(T::Real::NAN); count + 64];
    let start = memory.as_ptr().align_offset(64);
    work(&mut memory[start..start + count])
}

type Factors<R> = (Vec<R>, Vec<R>, Vec<R>);

fn svd_of<R: RealField>(a: &[R], (m, n): (usize, usize), full: bool, par: Par) -> Factors<R> {
    let (long, short) = (m.max(n), m.min(n));
    let width = if full { long } else { short };
    let (rows, columns) = if m < n { (short, width) } else { (width, short) };
    let zeros = |count: usize| vec![R::ZERO; count];
    let (mut u, mut s, mut vh) = (zeros(m * rows), zeros(short), zeros(columns * n));
    with_room(svd::workspace::<R>(long, short, full), |work| {
        svd::factors(&mut a.to_vec(), (m, n), full, (&mut u, &mut s, &mut vh), work, par);
    });
    (u, s, vh)
}

/// The values alone.
fn svdvals_of<T: Field>(a: &[T], (m, n): (usize, usize)) -> Vec<T> {
    let (long, short) = (m.max(n), m.min(n));
    let mut s = vec![T::ZERO; short];
    with_room(svd::values_workspace(long, short), |work| {
        svd::values(&mut a.to_vec(), (m, n), &mut s, work);
    });
    s
}

fn check_svd<R: RealField + Into<f64> + std::fmt::Debug>(kind: Kind, (m, n): (usize, usize), seed: u64) {
    let a = matrix::<R>(kind, (m, n), seed);
    let (wide, k) = (numbers(&a), m.min(n));
    let unit = greatest(&wide);
    let eps: f64 = R::EPSILON.into();
    let least: f64 = R::MIN_POSITIVE.into();
    let slack = 20.0 * eps * m.max(n) as f64;
    for full in [false, true] {
        let what = format!("{kind:?} {m}x{n}, full {full}, seed {seed}, eps {eps:e}");
        let (u, s, vh) = svd_of(&a, (m, n), full, Par::Pool);
        let alone = svd_of(&a, (m, n), full, Par::Serial);
        assert!((&u, &s, &vh) == (&alone.0, &alone.1, &alone.2), "{what}: by other threads");
        assert!(svdvals_of(&a, (m, n)) == s, "{what}: without vectors");
        let values: Vec<f64> = s.iter().map(|&s| s.into()).collect();
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]) && values[k - 1] >= 0.0, "{what}: {s:?}");
        let (width, height) = (u.len() / m, vh.len() / n);
        let (u, vh) = (numbers(&u), numbers(&vh));
        let v: Vec<C> = (0..n * height).map(|index| vh[index % height * n + index / height]).collect();
        let skews = (skew(&u, width), skew(&v, height));
        assert!(skews.0 <= slack && skews.1 <= slack, "{what}: {skews:?}");
        // Small results are not more exact than the smallest number.
        let spacing = least * eps / unit * k as f64;
        let size = values[0] / unit;
        let far = distance(&wide, unit, (&u, width), &values, (&vh, n));
        assert!(far <= slack * size.max(1.0) + spacing, "{what}: {far:e} from it");
    }
}

fn check_eigh<T: Field>(a: &[T], n: usize, what: &str)
where
    T::Real: Into<f64>,
{
    let wide = |x: &T| {
        let mut own = [*x];
        let parts = T::parts(&mut own);
        C::new(parts[0].into(), if T::COMPLEX { parts[1].into() } else { 0.0 })
    };
    let run = |par: Par| {
        let (mut w, mut v) = (vec![T::ZERO; n], vec![T::ZERO; n * n]);
        with_room(eigh::workspace::<T>(n), |work| {
            eigh::factors(&mut a.to_vec(), n, 0.0, (&mut w, &mut v), work, par);
        });
        (w.iter().map(wide).collect::<Vec<C>>(), v.iter().map(wide).collect::<Vec<C>>())
    };
    let (w, v) = run(Par::Pool);
    assert!((&w, &v) == (&run(Par::Serial).0, &run(Par::Serial).1), "{what}: by other threads");
    let mut alone = vec![T::ZERO; n];
    with_room(eigh::values_workspace(n), |work| eigh::values(a, n, &mut alone, work));
    assert!(alone.iter().map(wide).eq(w.iter().copied()), "{what}: without vectors");
    let matrix: Vec<C> = a.iter().map(wide).collect();
    let (unit, eps): (f64, f64) = (greatest(&matrix), T::Real::EPSILON.into());
    let slack = 20.0 * eps * n as f64;
    let values: Vec<f64> = w.iter().map(|w| w.re).collect();
    assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{what}: {values:?}");
    let size = values.iter().fold(1.0f64, |most, value| most.max((value / unit).abs()));
    let skew = skew(&v, n);
    assert!(skew <= slack, "{what}: {skew:e}");
    let adjoint: Vec<C> = (0..n * n).map(|index| v[index % n * n + index / n].conj()).collect();
    let spacing = T::Real::MIN_POSITIVE.into() * eps / unit * n as f64;
    let far = distance(&matrix, unit, (&v, n), &values, (&adjoint, n));
    assert!(far <= slack * size + spacing, "{what}: {far:e} from it");
}

fn check_symmetric<R: RealField + Into<f64>>(kind: Kind, n: usize, seed: u64) {
    let a = matrix::<R>(kind, (n, n), seed);
    let half = R::from_f64(0.5);
    let even = |i: usize, j: usize| a[i * n + j] * half + a[j * n + i] * half;
    let symmetric: Vec<R> = (0..n * n).map(|index| even(index / n, index % n)).collect();
    check_eigh(&symmetric, n, &format!("{kind:?} {n}, seed {seed}"));
}

/// With a skew-symmetric imaginary part.
fn check_hermitian(kind: Kind, n: usize, seed: u64) {
    let a = matrix::<f32>(kind, (n, n), seed);
    let element = |i: usize, j: usize| {
        let (one, other) = (a[i * n + j] * 0.5, a[j * n + i] * 0.5);
        Complex::new(one + other, one - other)
    };
    let hermitian: Vec<Complex<f32>> = (0..n * n).map(|index| element(index / n, index % n)).collect();
    check_eigh(&hermitian, n, &format!("complex {kind:?} {n}, seed {seed}"));
}

#[test]
fn singular_values_of_every_kind_and_shape() {
    let shapes = [(1, 1), (2, 2), (3, 3), (16, 16), (17, 17), (33, 31), (31, 33), (20, 6), (6, 20), (1, 18)];
    for kind in KINDS {
        for (seed, &sides) in shapes.iter().enumerate() {
            check_svd::<f32>(kind, sides, seed as u64);
            check_svd::<f64>(kind, sides, seed as u64);
        }
    }
}

#[test]
fn eigenvalues_of_every_kind_and_size() {
    for kind in KINDS {
        for n in [1, 2, 3, 16, 17, 33, 64] {
            check_symmetric::<f32>(kind, n, n as u64);
            check_symmetric::<f64>(kind, n, n as u64);
            check_hermitian(kind, n, n as u64);
        }
    }
}

#[test]
fn spectra_of_more_rotations_than_are_noted_down_at_once() {
    for kind in [Kind::Even, Kind::LowRank] {
        check_svd::<f32>(kind, (90, 90), 7);
        check_symmetric::<f64>(kind, 90, 7);
    }
}

/// The eigenvalues of real matrices by two shifts at a time: of a rotated block-diagonal matrix with known values.
fn check_francis<R: RealField + Into<f64>>(n: usize, seed: u64)
where
    Complex<R>: Field<Real = R>,
{
    let mut draws = Draws(seed);
    let mut own: Vec<C> = Vec::new();
    let mut blocks = vec![0.0; n * n];
    while own.len() < n {
        let (at, re, im) = (own.len(), draws.next(), draws.next());
        blocks[at * n + at] = re;
        own.push(C::from(re));
        if at + 1 < n && im > -0.5 {
            (blocks[at * n + at + 1], blocks[(at + 1) * n + at]) = (im, -im);
            blocks[(at + 1) * n + at + 1] = re;
            own[at] = C::new(re, im.abs());
            own.push(C::new(re, -im.abs()));
        }
    }
    // Reflections from both sides keep the values, and their conditions.
    for _ in 0..3 {
        let vector: Vec<f64> = (0..n).map(|_| draws.next()).collect();
        let square: f64 = vector.iter().map(|x| x * x).sum();
        for transposed in [false, true] {
            let index = |i: usize, j: usize| if transposed { j * n + i } else { i * n + j };
            for j in 0..n {
                let along: f64 = (0..n).map(|i| vector[i] * blocks[index(i, j)]).sum();
                (0..n).for_each(|i| blocks[index(i, j)] -= 2.0 * along / square * vector[i]);
            }
        }
    }
    let a: Vec<Complex<R>> = blocks.iter().map(|&x| Complex::new(R::from_f64(x), R::ZERO)).collect();
    let mut found = vec![Complex::<R>::ZERO; n];
    let converged =
        with_room(schur::workspace::<Complex<R>>(n), |work| francis::values(&a, n, &mut found, work));
    assert!(converged, "{n} rows, seed {seed}");
    let slack = 40.0 * n as f64 * R::EPSILON.into();
    for x in found {
        let x = C::new(x.re.into(), x.im.into());
        let distance = |at: &usize| (own[*at] - x).norm();
        let nearest = (0..own.len()).min_by(|i, j| distance(i).total_cmp(&distance(j))).unwrap();
        assert!(distance(&nearest) <= slack, "{n} rows, seed {seed}: {x} is {:e} off", distance(&nearest));
        own.swap_remove(nearest);
    }
}

#[test]
fn eigenvalues_of_real_matrices() {
    for (seed, n) in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 50, 64].into_iter().enumerate() {
        check_francis::<f32>(n, seed as u64);
        check_francis::<f64>(n, seed as u64);
    }
}

#[test]
fn every_instruction_set_gives_factors() {
    at_every_level(|| {
        check_francis::<f64>(19, 3);
        check_svd::<f32>(Kind::Even, (35, 20), 3);
        check_svd::<f64>(Kind::LowRank, (20, 20), 3);
        check_symmetric::<f32>(Kind::Even, 35, 3);
        check_hermitian(Kind::Even, 18, 3);
    });
}

#[test]
fn pieces_are_all_of_a_slice() {
    for par in [Par::Serial, Par::Pool] {
        let mut x = [0; 23];
        pieces(&mut x, 5, par, |index, piece| piece.iter_mut().for_each(|x| *x += 1 + index));
        assert_eq!(x, std::array::from_fn(|i| 1 + i / 5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn eigenvalues_of_any_real_matrix(n in 1usize..24, seed: u64) {
        check_francis::<f32>(n, seed);
        check_francis::<f64>(n, seed);
    }

    #[test]
    fn spectra_of_any_matrix(
        kind in proptest::sample::select(&KINDS[..]),
        m in 1usize..24,
        n in 1usize..24,
        seed: u64,
    ) {
        check_svd::<f32>(kind, (m, n), seed);
        check_svd::<f64>(kind, (m, n), seed);
        check_symmetric::<f32>(kind, n, seed);
        check_hermitian(kind, n, seed);
    }
}
