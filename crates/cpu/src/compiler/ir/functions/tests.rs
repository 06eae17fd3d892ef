//! Special values, and samples beside the functions of the system's library.

mod complex;

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use smallvec::SmallVec;

use super::super::{Access, Function, Rare};
use super::narrow::trig::{NARROW_LIMIT, TAN_LIMIT};
use super::*;
use crate::compiler::interpret::Interpreter;
use Function1::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

const ALL: [Function1; 23] = [
    Exp, Expm1, Sigmoid, Sinh, Cosh, Tanh, Log, Log2, Log10, Log1p, Asinh, Acosh, Atanh, Asin, Acos, Atan,
    Cbrt, Erf, Erfc, ErfInv, Sin, Cos, Tan,
];

/// A type of the functions.
trait Number: Copy + Default {
    const ELEM: Elem;
    /// The distance of 1 to the next number.
    const EPSILON: f64;
    const MIN_POSITIVE: f64;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
}

impl Number for f32 {
    const ELEM: Elem = Elem::F32;
    const EPSILON: f64 = f32::EPSILON as f64;
    const MIN_POSITIVE: f64 = f32::MIN_POSITIVE as f64;
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    const ELEM: Elem = Elem::F64;
    const EPSILON: f64 = f64::EPSILON;
    const MIN_POSITIVE: f64 = f64::MIN_POSITIVE;
    fn of(x: f64) -> f64 {
        x
    }
    fn wide(self) -> f64 {
        self
    }
}

/// Computes a function of rows.
fn rows<T: Number, const N: usize>(
    inputs: [&[T]; N],
    make: impl Fn(&mut Builder, [Val; N]) -> Val,
) -> Vec<T> {
    let mut b = Builder::new(N as u16 + 1, 1, 0);
    let extent = b.param(0, Elem::Index);
    let row = |buffer: usize| Access {
        buffer: buffer as u16,
        offset: 0,
        terms: SmallVec::new(),
        lane: T::ELEM.bytes() as i64,
        is_streaming: false,
    };
    b.begin_lanes(extent);
    let operands = std::array::from_fn(|at| b.load(T::ELEM, row(at)));
    let result = make(&mut b, operands);
    b.store(result, row(N));
    b.end_lanes();
    run(&b.finish(), &inputs, inputs[0].len())
}

/// Runs a function that reads rows and writes one.
fn run<T: Number>(function: &Function, inputs: &[&[T]], len: usize) -> Vec<T> {
    let mut out = vec![T::default(); len];
    let mut args: Vec<u64> = inputs.iter().map(|input| input.as_ptr() as u64).collect();
    args.extend([out.as_mut_ptr() as u64, len as u64]);
    // SAFETY: the arguments are the rows and their length.
    let status = unsafe { Interpreter::new(function).run(args.as_ptr()) };
    assert_eq!(status, 0);
    out
}

fn of<T: Number>(function: Function1, x: &[T]) -> Vec<T> {
    rows([x], |b, [x]| b.function(function, x))
}

fn of_two<T: Number>(function: Function2, a: &[T], b: &[T]) -> Vec<T> {
    rows([a, b], |builder, [a, b]| builder.function2(function, a, b))
}

/// Whether the numbers are equal, including the sign of zero, or both NaN.
fn same(got: f64, want: f64) -> bool {
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
}

/// What C99 says in Annex F, and the analogous values of functions that C lacks.
fn special(function: Function1) -> &'static [(f64, f64)] {
    match function {
        Exp => &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e9, INF), (-1e9, 0.0)],
        Expm1 => &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (-1e9, -1.0)],
        Sigmoid => &[(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (1e9, 1.0), (-1e9, 0.0)],
        Sinh => &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-1e9, -INF)],
        Cosh => &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-1e9, INF)],
        Tanh => &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (-1e9, -1.0)],
        Log => &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
        Log2 => &[
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
        Log10 => &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (100.0, 2.0), (INF, INF), (-1.0, NAN), (NAN, NAN)],
        Log1p => &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (NAN, NAN)],
        Asinh => &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
        Acosh => &[(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN), (NAN, NAN)],
        Atanh => &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN), (NAN, NAN)],
        Asin => &[(0.0, 0.0), (-0.0, -0.0), (1.0, FRAC_PI_2), (2.0, NAN), (-INF, NAN), (NAN, NAN)],
        Acos => &[(1.0, 0.0), (-1.0, PI), (2.0, NAN), (-INF, NAN), (NAN, NAN), (0.0, FRAC_PI_2)],
        Atan => {
            &[(0.0, 0.0), (-0.0, -0.0), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (NAN, NAN), (1.0, FRAC_PI_4)]
        }
        Cbrt => &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-27.0, -3.0), (8.0, 2.0)],
        Erf => &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
        Erfc => &[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (1e9, 0.0)],
        ErfInv => &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
        Sin | Tan => &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
        Cos => &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    }
}

fn check_special<T: Number>() {
    for function in ALL {
        let (x, want): (Vec<T>, Vec<T>) =
            special(function).iter().map(|&(x, y)| (T::of(x), T::of(y))).unzip();
        for ((x, want), got) in x.iter().zip(want).zip(of(function, &x)) {
            assert!(
                same(got.wide(), want.wide()),
                "{function:?} of {} in {} is {}",
                x.wide(),
                T::ELEM,
                got.wide()
            );
        }
    }
}

#[test]
fn special_values() {
    check_special::<f32>();
    check_special::<f64>();
}

fn check_special_pairs<T: Number>(function: Function2, all: &[(f64, f64, f64)]) {
    let fits =
        |x: f64| !x.is_finite() || x == 0.0 || (T::MIN_POSITIVE..1.0 / T::MIN_POSITIVE).contains(&x.abs());
    for &(a, b, want) in all.iter().filter(|row| [row.0, row.1, row.2].into_iter().all(fits)) {
        let got = of_two(function, &[T::of(a)], &[T::of(b)])[0].wide();
        assert!(same(got, T::of(want).wide()), "{function:?} of {a} and {b} in {} is {got}", T::ELEM);
    }
}

#[test]
fn special_angles() {
    let all = [
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
        (-1.0, -1.0, -3.0 * FRAC_PI_4),
        (1e-300, 1e300, 0.0),
        (1e300, 1e-300, FRAC_PI_2),
        (1.7e308, 1.7e308, FRAC_PI_4),
    ];
    check_special_pairs::<f32>(Function2::Atan2, &all);
    check_special_pairs::<f64>(Function2::Atan2, &all);
    let kinds = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN];
    let no_number: Vec<_> = kinds.iter().flat_map(|&x| [(NAN, x, NAN), (x, NAN, NAN)]).collect();
    check_special_pairs::<f32>(Function2::Atan2, &no_number);
    check_special_pairs::<f64>(Function2::Atan2, &no_number);
    // Subnormal numbers.
    assert_eq!(of_two(Function2::Atan2, &[5e-324], &[5e-324]), [FRAC_PI_4]);
    assert_eq!(of_two(Function2::Atan2, &[1e-45f32], &[1e-45]), [FRAC_PI_4 as f32]);
}

#[test]
fn special_powers() {
    let all = [
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (0.0, INF, 0.0),
        (0.0, -INF, INF),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (1.0, INF, 1.0),
        (1.0, NAN, 1.0),
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (INF, 0.0, 1.0),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (-8.0, 1.0 / 3.0, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 4.0, 16.0),
        (-2.0, 9_007_199_254_740_993.0, INF),
        (-2.0, 1e30, INF),
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
        (-INF, INF, INF),
        (10.0, 2.0, 100.0),
        (2.0, 1023.0, 8.98846567431158e307),
        (2.0, 1024.0, INF),
    ];
    check_special_pairs::<f32>(Function2::Pow, &all);
    check_special_pairs::<f64>(Function2::Pow, &all);
    // Subnormal numbers.
    assert_eq!(of_two(Function2::Pow, &[2f64, 5e-324], &[-1074.0, 0.5]), [5e-324, 2.2227587494850775e-162]);
    assert_eq!(of_two(Function2::Pow, &[2f32, 1e-45], &[-149.0, 0.5]), [1e-45, 3.743_392e-23]);
}

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
}

/// The function by the system's library, but for the inverse of the error function.
fn reference(function: Function1, x: f64) -> f64 {
    match function {
        Exp => x.exp(),
        Expm1 => x.exp_m1(),
        Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Sinh => x.sinh(),
        Cosh => x.cosh(),
        Tanh => x.tanh(),
        Log => x.ln(),
        Log2 => x.log2(),
        Log10 => x.log10(),
        Log1p => x.ln_1p(),
        // Those of the standard library lose digits.
        Asinh => (x.abs() + x * x / (1.0 + (x * x + 1.0).sqrt())).ln_1p().copysign(x),
        Acosh => (x - 1.0 + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p(),
        Atanh => (0.5 * (2.0 * x.abs() / (1.0 - x.abs())).ln_1p()).copysign(x),
        Asin => x.asin(),
        Acos => x.acos(),
        Atan => x.atan(),
        Cbrt => x.cbrt(),
        Erf => erf(x),
        Erfc => erfc(x),
        ErfInv => unreachable!("it is checked by the error function"),
        Sin => x.sin(),
        Cos => x.cos(),
        Tan => x.tan(),
    }
}

/// Random numbers whose function is finite: of all sizes, and of ordinary size.
fn sample<T: Number>(function: Function1) -> Vec<T> {
    let (low, high) = match function {
        Exp | Expm1 => (-100.0, 88.0),
        Sigmoid => (-100.0, 30.0),
        Sinh | Cosh => (-88.0, 88.0),
        Log | Log2 | Log10 => (1e-30, 100.0),
        Log1p => (-0.999, 100.0),
        Acosh => (1.0, 100.0),
        Atanh | Asin | Acos | ErfInv => (-0.9999, 0.9999),
        Erfc => (-5.0, 9.0),
        Tanh | Asinh | Atan | Cbrt | Erf | Sin | Cos | Tan => (-100.0, 100.0),
    };
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut next = |at: usize| {
        let share = random.unit();
        let x = if at.is_multiple_of(2) {
            low + (high - low) * share
        } else {
            share * (-40.0 * random.unit()).exp2()
        };
        T::of(if at % 4 == 1 && low < 0.0 { -x } else { x })
    };
    (0..3001).map(&mut next).filter(|x| (low..=high).contains(&x.wide())).collect()
}

/// A generator of random numbers: xorshift (Marsaglia, 2003).
struct Random(u64);

impl Random {
    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How many units in the last place two numbers differ by.
fn ulps<T: Number>(got: T, want: f64) -> f64 {
    let exponent = want.abs().max(T::MIN_POSITIVE).log2().floor();
    (got.wide() - want).abs() / (T::EPSILON * exponent.exp2())
}

/// The bound in f64 has room for the errors of the library, and of the formulas that it lacks.
fn check_sample<T: Number>(function: Function1, most: f64) {
    let x = sample::<T>(function);
    assert!(x.len() > 500, "there are few samples of {function:?}");
    for (&x, got) in x.iter().zip(of(function, &x)) {
        let error = if function == ErfInv {
            // How much of the error comes from the slope.
            let root = got.wide();
            let slope = 2.0 / PI.sqrt() * (-root * root).exp();
            let exact = root - (erf(root) - x.wide()) / slope;
            if x.wide().abs() < 0.99 { ulps(got, exact) } else { 0.0 }
        } else {
            ulps(got, reference(function, x.wide()))
        };
        assert!(
            error <= most,
            "{function:?} of {:e} in {} is {:e}: {error} ulp",
            x.wide(),
            T::ELEM,
            got.wide()
        );
    }
}

#[test]
fn samples() {
    for function in ALL {
        check_sample::<f32>(function, 2.0);
        check_sample::<f64>(function, 6.0);
    }
}

#[test]
fn samples_of_two_numbers() {
    let mut random = Random(88172645463325252);
    let a: Vec<f32> =
        (0..2000).map(|_| (random.unit() * (20.0 * random.unit() - 10.0).exp2()) as f32).collect();
    let b: Vec<f32> = (0..2000).map(|_| (40.0 * random.unit() - 20.0) as f32).collect();
    let powers = of_two(Function2::Pow, &a, &b);
    let angles = of_two(Function2::Atan2, &b, &a);
    for (((&a, &b), power), angle) in a.iter().zip(&b).zip(powers).zip(angles) {
        let want = f64::from(a).powf(b.into());
        if want < f32::MAX.into() {
            assert!(ulps(power, want) <= 1.0, "{a} to {b} is {power}");
        }
        assert!(ulps(angle, f64::from(b).atan2(a.into())) <= 2.0, "the angle of {a} and {b} is {angle}");
    }
    let (a, b) = ([a, vec![1e-3]].concat(), [b, vec![100.0]].concat());
    let (a, b): (Vec<f64>, Vec<f64>) =
        (a.iter().map(|&x| x.into()).collect(), b.iter().map(|&x| x.into()).collect());
    let powers = of_two(Function2::Pow, &a, &b);
    let angles = of_two(Function2::Atan2, &b, &a);
    for (((&a, &b), power), angle) in a.iter().zip(&b).zip(powers).zip(angles) {
        assert!(ulps(power, a.powf(b)) <= 3.0, "{a} to {b} is {power}");
        assert!(ulps(angle, b.atan2(a)) <= 3.0, "the angle of {a} and {b} is {angle}");
    }
}

/// Angles around the ends of the reductions, and beyond them.
#[test]
fn large_angles() {
    for limit in [NARROW_LIMIT, TAN_LIMIT, trig::LIMIT, 1e10, 1e30] {
        let x: Vec<f32> = (0..2000).map(|at| (limit * (0.99 + 1e-5 * f64::from(at))) as f32).collect();
        for function in [Sin, Cos, Tan] {
            for (&x, got) in x.iter().zip(of(function, &x)) {
                let error = ulps(got, reference(function, x.into()));
                assert!(error <= 2.0, "{function:?} of {x:e} is {got:e}: {error} ulp");
            }
        }
    }
    // Computed with 1,400 bits: 2^1023, 10^22, and the f64 closest to a multiple of pi / 2 (Muller,
    // Elementary Functions, 1997).
    let rows: [(f64, f64, f64); 3] = [
        (8.98846567431158e307, 0.563127779850884, -0.826369834614148),
        (1e22, -0.8522008497671888, 0.5232147853951389),
        (5.319372648326541e255, 1.0, -4.687165924254628e-19),
    ];
    for (x, sine, cosine) in rows {
        let (s, c) = (of(Sin, &[x])[0], of(Cos, &[x])[0]);
        assert!((s - sine).abs() <= 2.3e-16 * sine.abs(), "sin({x:e}) is {s:e}");
        assert!((c - cosine).abs() <= 2.3e-16 * cosine.abs(), "cos({x:e}) is {c:e}");
    }
}

/// A side exit is of the lanes that need it: others keep their bits beside them.
#[test]
fn rare_numbers_leave_others_alone() {
    let plain: Vec<f32> = (0..500).map(|at| 0.013 * at as f32 + 0.5).collect();
    let mut mixed = plain.clone();
    for (at, x) in mixed.iter_mut().enumerate().filter(|(at, _)| at % 7 == 3) {
        *x = [1e9, f32::NAN, f32::INFINITY][at % 3];
    }
    let others = |got: &[f32], want: &[f32]| {
        assert!((0..500).filter(|at| at % 7 != 3).all(|at| got[at].to_bits() == want[at].to_bits()));
    };
    for function in [Sin, Cos, Tan] {
        others(&of(function, &mixed), &of(function, &plain));
    }
    let exponents = vec![1.7f32; 500];
    others(&of_two(Function2::Pow, &mixed, &exponents), &of_two(Function2::Pow, &plain, &exponents));
}

#[test]
fn scalars_have_the_bits_of_lanes() {
    for function in ALL {
        let x = sample::<f32>(function)[7];
        let mut b = Builder::new(2, 1, 0);
        let at = |buffer| Access { buffer, offset: 0, terms: SmallVec::new(), lane: 0, is_streaming: false };
        let value = b.load(Elem::F32, at(0));
        let result = b.function(function, value);
        b.store(result, at(1));
        let scalar = run(&b.finish(), &[&[x]], 1)[0];
        assert_eq!(scalar.to_bits(), of(function, &[x])[0].to_bits(), "{function:?} of {x}");
    }
}

#[test]
fn functions_of_f32_that_are_narrow_have_no_f64() {
    for function in ALL {
        let mut b = Builder::new(1, 0, 0);
        let access = Access { buffer: 0, offset: 0, terms: SmallVec::new(), lane: 0, is_streaming: false };
        let x = b.load(Elem::F32, access);
        b.function(function, x);
        let is_wide = b.finish().insts.iter().any(|inst| inst.ty.elem == Elem::F64);
        let is_expected = matches!(function, Erf | Erfc | ErfInv);
        assert_eq!(is_wide, is_expected, "{function:?}");
    }
}

#[test]
fn both_reductions_agree() {
    for x in [999_999.5, 1e6, 1_000_000.5, 1_048_575.9] {
        for (rare, function) in [(Rare::Sin, Sin), (Rare::Cos, Cos), (Rare::Tan, Tan)] {
            let (compiled, want) = (rare.of(x), of(function, &[x])[0]);
            assert!(
                (compiled - want).abs() <= 4e-16 * want.abs().max(1.0),
                "{function:?} of {x} is {compiled}"
            );
            assert_eq!(rare.of(-x).abs(), compiled.abs());
        }
    }
}
