use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::*;
use crate::kernels::simd::at_every_level;

type Unary<T> = fn(&[T], &mut [MaybeUninit<T>]);
type Binary<T> = fn(&[T], &[T], &mut [MaybeUninit<T>]);

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn of<T: Float>(f: Unary<T>, x: &[T]) -> Vec<T> {
    let mut out = vec![MaybeUninit::uninit(); x.len()];
    f(x, &mut out);
    // SAFETY: the functions write every element.
    out.into_iter().map(|x| unsafe { x.assume_init() }).collect()
}

fn of_two<T: Float>(f: Binary<T>, a: &[T], b: &[T]) -> Vec<T> {
    let mut out = vec![MaybeUninit::uninit(); a.len()];
    f(a, b, &mut out);
    // SAFETY: the functions write every element.
    out.into_iter().map(|x| unsafe { x.assume_init() }).collect()
}

/// Whether the numbers are equal, including the sign of zero, or both NaN.
fn same(got: f64, want: f64) -> bool {
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
}

macro_rules! functions {
    ($($name:ident),*) => {
        fn singles() -> Vec<(&'static str, Unary<f32>)> {
            vec![$((stringify!($name), $name::<f32>)),*]
        }
        fn doubles() -> Vec<(&'static str, Unary<f64>)> {
            vec![$((stringify!($name), $name::<f64>)),*]
        }
    };
}
functions!(
    exp, expm1, sigmoid, sinh, cosh, tanh, log, log2, log10, log1p, asinh, acosh, atanh, asin, acos, atan,
    cbrt, erf, erfc, erf_inv, sin, cos, tan
);

/// Special values of annex F of C99, and the analogous values of functions that C lacks.
#[test]
fn special_values() {
    let table: &[(&str, &[(f64, f64)])] = &[
        ("exp", &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e9, INF), (-1e9, 0.0)]),
        ("expm1", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (-1e9, -1.0)]),
        ("sigmoid", &[(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (1e9, 1.0), (-1e9, 0.0)]),
        ("sinh", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-1e9, -INF)]),
        ("cosh", &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-1e9, INF)]),
        ("tanh", &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (-1e9, -1.0)]),
        ("log", &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)]),
        (
            "log2",
            &[
                (0.0, -INF),
                (-0.0, -INF),
                (1.0, 0.0),
                (8.0, 3.0),
                (0.25, -2.0),
                (INF, INF),
                (-1.0, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            "log10",
            &[
                (0.0, -INF),
                (-0.0, -INF),
                (1.0, 0.0),
                (100.0, 2.0),
                (INF, INF),
                (-1.0, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            "log1p",
            &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (NAN, NAN)],
        ),
        ("asinh", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)]),
        ("acosh", &[(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN), (NAN, NAN)]),
        ("atanh", &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN), (NAN, NAN)]),
        ("asin", &[(0.0, 0.0), (-0.0, -0.0), (1.0, FRAC_PI_2), (2.0, NAN), (-INF, NAN), (NAN, NAN)]),
        ("acos", &[(1.0, 0.0), (-1.0, PI), (2.0, NAN), (-INF, NAN), (NAN, NAN), (0.0, FRAC_PI_2)]),
        (
            "atan",
            &[(0.0, 0.0), (-0.0, -0.0), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (NAN, NAN), (1.0, FRAC_PI_4)],
        ),
        (
            "cbrt",
            &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-27.0, -3.0), (8.0, 2.0)],
        ),
        ("erf", &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)]),
        ("erfc", &[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (1e9, 0.0)]),
        (
            "erf_inv",
            &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
        ),
        ("sin", &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
        ("cos", &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
        ("tan", &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    ];
    let mut seen = 0;
    for ((name, double), (_, single)) in doubles().into_iter().zip(singles()) {
        let (_, rows) = table.iter().find(|(of, _)| *of == name).expect("every function has special values");
        seen += 1;
        for &(x, want) in *rows {
            let got = of(double, &[x])[0];
            assert!(same(got, want), "{name}({x}) in f64 is {got}");
            let got = of(single, &[x as f32])[0];
            assert!(same(f64::from(got), f64::from(want as f32)), "{name}({x}) in f32 is {got}");
        }
    }
    assert_eq!(seen, table.len());
}

#[test]
fn special_angles() {
    let rows = [
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0),
        (0.0, -0.0, PI),
        (-0.0, -0.0, -PI),
        (0.0, -1.0, PI),
        (-0.0, 1.0, -0.0),
        (-1.0, 0.0, -FRAC_PI_2),
        (1.0, -0.0, FRAC_PI_2),
        (1.0, -INF, PI),
        (-1.0, INF, -0.0),
        (INF, 1.0, FRAC_PI_2),
        (INF, INF, FRAC_PI_4),
        (INF, -INF, 3.0 * FRAC_PI_4),
        (-INF, -INF, -3.0 * FRAC_PI_4),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (1e-300, 1e300, 0.0),
        (1e300, 1e-300, FRAC_PI_2),
        (-1.0, -1.0, -3.0 * FRAC_PI_4),
        (1.7e308, 1.7e308, FRAC_PI_4),
        (5e-324, 5e-324, FRAC_PI_4),
    ];
    for (y, x, want) in rows {
        let got = of_two(atan2::<f64>, &[y], &[x])[0];
        assert!(same(got, want), "atan2({y}, {x}) is {got}");
    }
}

#[test]
fn special_powers() {
    let rows = [
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (1.0, NAN, 1.0),
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (-8.0, 1.0 / 3.0, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 4.0, 16.0),
        (-2.0, 9_007_199_254_740_993.0, INF),
        (-2.0, 1e300, INF),
        (0.5, INF, 0.0),
        (0.5, -INF, INF),
        (2.0, INF, INF),
        (2.0, -INF, 0.0),
        (INF, -1.0, 0.0),
        (INF, 1.0, INF),
        (-INF, 3.0, -INF),
        (-INF, -3.0, -0.0),
        (-INF, 2.0, INF),
        (-INF, 0.5, INF),
        (2.0, -1074.0, 5e-324),
        (2.0, 1023.0, 8.98846567431158e307),
        (2.0, 1024.0, INF),
        (10.0, 2.0, 100.0),
        (5e-324, 0.5, 2.2227587494850775e-162),
    ];
    for (x, y, want) in rows {
        let got = of_two(pow::<f64>, &[x], &[y])[0];
        assert!(same(got, want), "{x} to the power of {y} is {got}");
    }
}

/// Whether two results differ by at most some units in the last place.
fn close<T: Float>(a: T, b: T, unit: f64) -> bool {
    let (a, b) = (a.wide(), b.wide());
    same(a, b) || (a - b).abs() <= 8.0 * unit * a.abs().max(f64::MIN_POSITIVE)
}

/// Kernels with fused multiply-add give the same bits at every width; the others give close results.
#[test]
fn all_instruction_sets_agree() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move || {
        // Xorshift (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Arbitrary bit patterns, and numbers of ordinary size.
    let doubles_in: Vec<f64> = (0..3001)
        .map(|i| {
            let bits = random();
            if i % 2 == 0 { f64::from_bits(bits) } else { (bits >> 40) as f64 / 4096.0 - 2048.0 }
        })
        .collect();
    let singles_in: Vec<f32> = doubles_in.iter().map(|&x| f32::from_bits(x.to_bits() as u32)).collect();
    let doubles_beside: Vec<f64> = doubles_in.iter().rev().copied().collect();
    let singles_beside: Vec<f32> = singles_in.iter().rev().copied().collect();
    let mut seen: Vec<(Vec<Vec<f64>>, Vec<Vec<f32>>)> = Vec::new();
    at_every_level(|| {
        let mut double: Vec<_> = doubles().into_iter().map(|(_, f)| of(f, &doubles_in)).collect();
        double.push(of_two(pow::<f64>, &doubles_in, &doubles_beside));
        double.push(of_two(atan2::<f64>, &doubles_in, &doubles_beside));
        let mut single: Vec<_> = singles().into_iter().map(|(_, f)| of(f, &singles_in)).collect();
        single.push(of_two(pow::<f32>, &singles_in, &singles_beside));
        single.push(of_two(atan2::<f32>, &singles_in, &singles_beside));
        seen.push((double, single));
    });
    let (double, single) = seen.last().expect("there is one level at least");
    for (level, (other_double, other_single)) in seen.iter().enumerate() {
        let fused = level > 0;
        for (a, b) in double.iter().flatten().zip(other_double.iter().flatten()) {
            assert!(if fused { same(*a, *b) } else { close(*a, *b, f64::EPSILON) }, "{a:e} {b:e}");
        }
        for (a, b) in single.iter().flatten().zip(other_single.iter().flatten()) {
            let ok = if fused { same(a.wide(), b.wide()) } else { close(*a, *b, f32::EPSILON.wide()) };
            assert!(ok, "{a:e} {b:e}");
        }
    }
}

/// Multiples of pi and numbers close to them, at the change of reduction and at the ends of the range.
#[test]
fn large_angles() {
    // Computed with 1,400 bits: 2^1023, 10^22, and the f64 closest to a multiple of pi / 2 (Muller, Elementary
    // Functions, 1997).
    let rows = [
        (8.98846567431158e307, 0.563127779850884, -0.826369834614148),
        (1e22, -0.8522008497671888, 0.5232147853951389),
        (5.319372648326541e255, 1.0, -4.687165924254628e-19),
    ];
    for (x, sine, cosine) in rows {
        let (s, c) = scalar::sin_cos(x);
        assert!((s - sine).abs() <= 2.3e-16 * sine.abs(), "sin({x:e}) is {s:e}");
        assert!((c - cosine).abs() <= 2.3e-16 * cosine.abs(), "cos({x:e}) is {c:e}");
    }
}

#[test]
fn exponentials_are_the_same_beside_the_ends_of_the_range() {
    let near: Vec<f32> = (0..4000).map(|at| at as f32 * 0.043_5 - 87.0).collect();
    let mut both = near.clone();
    both.extend([1000.0, f32::NAN, -95.0]);
    at_every_level(|| {
        let (separate, together) = (of(exp::<f32>, &near), of(exp::<f32>, &both));
        assert!(separate.iter().zip(&together).all(|(a, b)| a.to_bits() == b.to_bits()));
    });
}
