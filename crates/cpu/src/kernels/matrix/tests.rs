use defn_core::op::Transform;
use num_complex::Complex;

use super::*;
use crate::kernels::testing::noise;

/// Sizes on both sides of the blocks.
const SIZES: [usize; 8] = [1, 2, 5, 31, 32, 33, 65, 130];

/// Numbers that the tests can generate and measure.
trait Number: Field + PartialEq {
    fn of(re: f64, im: f64) -> Self;
    fn size(self) -> f64;
    const EPSILON: f64;
}

macro_rules! number {
    ($($ty:ident),*) => {$(
        impl Number for $ty {
            fn of(re: f64, _: f64) -> $ty {
                re as $ty
            }
            fn size(self) -> f64 {
                self.abs().into()
            }
            const EPSILON: f64 = $ty::EPSILON as f64;
        }
        impl Number for Complex<$ty> {
            fn of(re: f64, im: f64) -> Self {
                Complex::new(re as $ty, im as $ty)
            }
            fn size(self) -> f64 {
                self.norm().into()
            }
            const EPSILON: f64 = $ty::EPSILON as f64;
        }
    )*};
}
number!(f32, f64);

/// Numbers between -0.5 and 0.5.
fn numbers<T: Number>(seed: u64, count: usize) -> Vec<T> {
    let mut draws = noise(seed).map(|bits| (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
    (0..count).map(|_| T::of(draws.next().unwrap(), draws.next().unwrap())).collect()
}

/// The product of an `m` by `k` and a `k` by `n` matrix.
fn times<T: Field>(a: &[T], b: &[T], [m, n, k]: [usize; 3]) -> Vec<T> {
    let mut product = vec![T::ZERO; m * n];
    for (index, sum) in product.iter_mut().enumerate() {
        let (i, j) = (index / n, index % n);
        for step in 0..k {
            *sum = *sum + a[i * k + step] * b[step * n + j];
        }
    }
    product
}

fn distance<T: Number>(x: &[T], y: &[T]) -> f64 {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(&x, &y)| Number::size(x - y)).fold(0.0, f64::max)
}

fn greatest<T: Number>(x: &[T]) -> f64 {
    x.iter().map(|&x| Number::size(x)).fold(1.0, f64::max)
}

/// The factors of a matrix, the same on one thread and on all.
fn factors_of<T: Number>(a: &[T], n: usize) -> [Vec<T>; 3] {
    let of = |par| {
        let mut out = [(); 3].map(|()| vec![T::ZERO; n * n]);
        let mut work = vec![T::ZERO; lu::workspace::<T>(n)];
        let [p, l, u] = &mut out;
        lu::factors(&mut a.to_vec(), n, (p, l, u), &mut work, par);
        out
    };
    let all = of(Par::Pool);
    for (one, all) in of(Par::Serial).iter().flatten().zip(all.iter().flatten()) {
        // Two NaNs are equal.
        let nan = Number::size(*one).is_nan() && Number::size(*all).is_nan();
        assert!(one == all || nan, "{n} rows on one thread");
    }
    all
}

fn check_lu<T: Number>() {
    for n in SIZES {
        let a = numbers::<T>(n as u64, n * n);
        let [p, l, u] = factors_of(&a, n);
        let back = times(&p, &times(&l, &u, [n; 3]), [n; 3]);
        assert!(distance(&back, &a) <= n as f64 * T::EPSILON, "{n} rows");
        for i in 0..n {
            assert!(l[i * n..(i + 1) * n].iter().all(|&x| Number::size(x) < 1.0 + 1e-5));
            assert!(l[i * n + i] == T::ONE && l[i * n + i + 1..(i + 1) * n].iter().all(|&x| x == T::ZERO));
            assert!(u[i * n..i * n + i].iter().all(|&x| x == T::ZERO));
        }
        let mut work = vec![T::ZERO; lu::workspace::<T>(n)];
        let size = lu::determinant(&mut a.clone(), n, &mut work, Par::Serial);
        let pivots = (0..n).fold(T::ONE, |product, i| product * u[i * n + i]);
        // The closed forms round differently.
        let difference = Number::size(size - pivots).min(Number::size(size + pivots));
        let bound = 10.0 * T::EPSILON * Number::size(pivots).max(0.1);
        assert!(difference <= bound || !pivots.is_finite(), "{n} rows");
    }
}

#[test]
fn factors_are_those_of_the_matrix() {
    check_lu::<f32>();
    check_lu::<f64>();
    check_lu::<Complex<f32>>();
    check_lu::<Complex<f64>>();
}

#[test]
fn a_column_of_zeros_is_left_as_it_is() {
    for (n, zeros) in [(5, 2), (32, 31), (70, 0), (70, 40)] {
        let mut a = numbers::<f64>(3, n * n);
        a.chunks_mut(n).for_each(|row| row[zeros] = 0.0);
        let [p, l, u] = factors_of(&a, n);
        assert!(distance(&times(&p, &times(&l, &u, [n; 3]), [n; 3]), &a) <= 1e-13);
        assert_eq!(u[zeros * n + zeros], 0.0);
        assert!((zeros + 1..n).all(|i| l[i * n + zeros] == 0.0));
        let mut work = vec![0.0; lu::workspace::<f64>(n)];
        assert_eq!(lu::determinant(&mut a, n, &mut work, Par::Serial), 0.0);
    }
}

#[test]
fn the_first_nan_of_a_column_is_its_pivot() {
    for n in [5, 70] {
        let mut a = numbers::<f64>(4, n * n);
        (a[3 * n], a[4 * n], a[2 * n]) = (f64::NAN, f64::NAN, f64::INFINITY);
        let [p, l, u] = factors_of(&a, n);
        assert_eq!(p[3 * n], 1.0);
        assert!(u[0].is_nan() && u[1] == a[3 * n + 1]);
        assert!((1..n).all(|i| l[i * n].is_nan() && u[i * n + i].is_nan()));
    }
}

fn check_solve<T: Number>() {
    for n in SIZES {
        for columns in [1, 3, 8, 40] {
            let (a, b) = (numbers::<T>(n as u64, n * n), numbers::<T>(7, n * columns));
            let solve = |par| {
                let mut x = b.clone();
                let mut work = vec![T::ZERO; lu::solve_workspace::<T>(n, b.len())];
                lu::solve(&mut a.clone(), n, &mut x, &mut work, par);
                x
            };
            let x = solve(Par::Pool);
            assert!(solve(Par::Serial) == x);
            let bound = 4.0 * n as f64 * T::EPSILON * greatest(&x);
            assert!(distance(&times(&a, &x, [n, columns, n]), &b) <= bound, "{n} by {columns}");
        }
    }
}

#[test]
fn systems_are_solved() {
    check_solve::<f32>();
    check_solve::<f64>();
    check_solve::<Complex<f32>>();
    check_solve::<Complex<f64>>();
}

fn check_cholesky<T: Number>(n: usize) {
    let b = numbers::<T>(n as u64, n * n);
    let adjoint: Vec<T> = (0..n * n).map(|index| b[index % n * n + index / n].conj()).collect();
    let mut a = times(&b, &adjoint, [n; 3]);
    (0..n).for_each(|i| a[i * n + i] = a[i * n + i] + T::ONE);
    let factor = |a: &[T], par| {
        let (mut l, mut work) = (a.to_vec(), vec![T::ZERO; cholesky::workspace::<T>(n)]);
        // Elements above the diagonal are not read.
        (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(T::of(f64::NAN, 0.0)));
        cholesky::factor(&mut l, n, &mut work, par);
        l
    };
    let l = factor(&a, Par::Pool);
    assert!(factor(&a, Par::Serial) == l, "{n} rows on one thread");
    assert!((0..n).all(|i| l[i * n + i + 1..(i + 1) * n].iter().all(|&x| x == T::ZERO)));
    let adjoint: Vec<T> = (0..n * n).map(|index| l[index % n * n + index / n].conj()).collect();
    let error = distance(&times(&l, &adjoint, [n; 3]), &a);
    assert!(error <= n as f64 * T::EPSILON * greatest(&a), "{n} rows: {error:e}");
    a[n * n - 1] = T::of(-1.0, 0.0);
    assert!(factor(&a, Par::Pool).iter().all(|&x| Number::size(x).is_nan()), "{n} rows");
}

#[test]
fn cholesky_factors_are_those_of_the_matrix() {
    for n in SIZES.into_iter().chain([176, 300, 580]) {
        check_cholesky::<f32>(n);
        check_cholesky::<f64>(n);
        check_cholesky::<Complex<f32>>(n);
        check_cholesky::<Complex<f64>>(n);
    }
}

fn check_triangular<T: Number>(n: usize, columns: usize, system: Triangular, vector: bool) {
    let Triangular { lower, left_side, transform } = system;
    let mut a = numbers::<T>(n as u64, n * n);
    for i in 0..n {
        a[i * n + i] = a[i * n + i] + T::of(3.0 + n as f64 / 8.0, 0.0);
    }
    let triangle: Vec<T> = (0..n * n)
        .map(|index| {
            let (i, j) = (index / n, index % n);
            let (transposes, conjugates) = match transform {
                Transform::None => (false, false),
                Transform::Transpose => (true, false),
                Transform::Conjugate => (false, true),
                Transform::Adjoint => (true, true),
            };
            let (i, j) = if transposes { (j, i) } else { (i, j) };
            let x = if (j <= i) == lower || i == j { a[i * n + j] } else { T::ZERO };
            if conjugates { x.conj() } else { x }
        })
        .collect();
    let b = numbers::<T>(8, n * columns);
    let solve = |par| {
        let mut x = b.clone();
        let mut work = vec![T::ZERO; system.workspace::<T>(n, b.len(), vector)];
        system.solve(&a, n, &mut x, vector, &mut work, par);
        x
    };
    let x = solve(Par::Pool);
    assert!(solve(Par::Serial) == x);
    let back =
        if left_side { times(&triangle, &x, [n, columns, n]) } else { times(&x, &triangle, [columns, n, n]) };
    let error = distance(&back, &b);
    assert!(error <= 4.0 * n as f64 * T::EPSILON, "{system:?} of {n} by {columns}: {error:e}");
}

#[test]
fn triangles_are_solved_on_both_sides() {
    for lower in [false, true] {
        for left_side in [false, true] {
            for &transform in Transform::ALL {
                let system = Triangular { lower, left_side, transform };
                for n in SIZES {
                    check_triangular::<f32>(n, 1, system, true);
                    check_triangular::<Complex<f64>>(n, 1, system, true);
                    for columns in [1, 3, 8, 21] {
                        check_triangular::<f64>(n, columns, system, false);
                        check_triangular::<Complex<f32>>(n, columns, system, false);
                    }
                }
            }
        }
    }
}

/// The factors of a matrix of real numbers reproduce it, and its eigenvalues are real or exact conjugates.
fn check_real_schur(a: &[f64], n: usize) {
    let complex: Vec<_> = a.iter().map(|&x| Complex::new(x, 0.0)).collect();
    let zero = Complex::new(0.0, 0.0);
    let (mut t, mut q) = (vec![zero; n * n], vec![zero; n * n]);
    let mut work = vec![zero; schur::workspace::<Complex<f64>>(n)];
    let results = (&mut t[..], Some(&mut q[..]));
    schur::factors(&mut complex.clone(), n, schur::Wanted::Factors, results, &mut work, Par::Serial);
    assert!((0..n).all(|i| t[i * n..i * n + i].iter().all(|&x| x == zero)), "{n} rows");
    let adjoint: Vec<_> = (0..n * n).map(|index| q[index % n * n + index / n].conj()).collect();
    let bound = 8.0 * n as f64 * f64::EPSILON;
    let one: Vec<_> = (0..n * n).map(|k| Complex::new(f64::from(k % (n + 1) == 0), 0.0)).collect();
    assert!(distance(&times(&q, &adjoint, [n; 3]), &one) <= bound, "{n} rows");
    let error = distance(&times(&q, &times(&t, &adjoint, [n; 3]), [n; 3]), &complex);
    assert!(error <= bound * greatest(&complex), "{n} rows: {error:e}");
    let mut k = 0;
    while k < n {
        let value = t[k * n + k];
        if value.im != 0.0 {
            assert!(value.im > 0.0 && t[(k + 1) * n + k + 1] == value.conj(), "{n} rows");
            k += 1;
        }
        k += 1;
    }
}

#[test]
fn real_matrices_have_schur_factors() {
    for n in SIZES {
        check_real_schur(&numbers(n as u64, n * n), n);
    }
    for n in [1, 2, 3, 4, 7, 40] {
        let of = |f: fn(usize, usize, usize) -> bool| -> Vec<f64> {
            (0..n * n).map(|index| f64::from(f(index / n, index % n, n))).collect()
        };
        // Zeros, a permutation without a gap between the magnitudes of its eigenvalues, a Jordan block and its transpose,
        // a matrix of rank one, and two copies of one eigenvalue pair after another.
        check_real_schur(&of(|_, _, _| false), n);
        check_real_schur(&of(|i, j, n| (i + 1) % n == j), n);
        check_real_schur(&of(|i, j, _| i == j || i + 1 == j), n);
        check_real_schur(&of(|i, j, _| i == j || i == j + 1), n);
        check_real_schur(&of(|_, _, _| true), n);
        let mut pairs = of(|i, j, _| i / 2 == j / 2 && i < j);
        (1..n).step_by(2).for_each(|i| pairs[i * n + i - 1] = -1.0);
        check_real_schur(&pairs, n);
    }
}
