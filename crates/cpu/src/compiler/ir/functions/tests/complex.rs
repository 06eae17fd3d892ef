//! Functions of complex numbers: both sides of cuts, inverse functions, and large numbers. Zeros, infinities and NaN are
//! compared with NumPy in `tests/test_complex_ends.py`.

use std::f64::consts::LN_2;

use num_complex::Complex as C;

use super::super::complex::{Complex, ComplexFunction};
use super::*;

type C64 = C<f64>;

const ONE: C64 = C64::new(1.0, 0.0);
const I: C64 = C64::new(0.0, 1.0);

/// Computes a function of rows of complex numbers.
fn rows<const N: usize>(
    inputs: [&[C64]; N],
    make: impl Fn(&mut Builder, [Complex; N]) -> Complex,
) -> Vec<C64> {
    let part = |buffer: usize, part: i64| Access {
        buffer: buffer as u16,
        offset: 8 * part,
        terms: SmallVec::new(),
        lane: 16,
        is_streaming: false,
    };
    let mut b = Builder::new(N as u16 + 1, 1, 0);
    let extent = b.param(0, Elem::Index);
    b.begin_lanes(extent);
    let operands = std::array::from_fn(|at| {
        let [re, im] = [0, 1].map(|of| b.load(Elem::F64, part(at, of)));
        Complex { re, im }
    });
    let result = make(&mut b, operands);
    b.store(result.re, part(N, 0));
    b.store(result.im, part(N, 1));
    b.end_lanes();
    let function = b.finish();
    let mut out = vec![C64::default(); inputs[0].len()];
    let mut args: Vec<u64> = inputs.iter().map(|input| input.as_ptr() as u64).collect();
    args.extend([out.as_mut_ptr() as u64, out.len() as u64]);
    // SAFETY: the arguments are the rows and their length.
    assert_eq!(unsafe { Interpreter::new(&function).run(args.as_ptr()) }, 0);
    out
}

fn of(function: ComplexFunction, z: C64) -> C64 {
    rows([&[z]], |b, [z]| b.complex_function(function, z))[0]
}

fn power(a: C64, b: C64) -> C64 {
    rows([&[a], &[b]], |builder, [a, b]| builder.complex_power(a, b))[0]
}

fn quotient(a: C64, b: C64) -> C64 {
    rows([&[a], &[b]], |builder, [a, b]| builder.complex_quotient(a, b))[0]
}

fn is_near(got: C64, want: C64) -> bool {
    (got - want).norm() <= 8.0 * f64::EPSILON * want.norm().max(f64::MIN_POSITIVE)
}

fn check(function: ComplexFunction, z: C64, want: C64) {
    let got = of(function, z);
    assert!(is_near(got, want), "{function:?} of {z} is {got}, not {want}");
}

/// The sign of a zero selects the side of a cut.
#[test]
fn cuts_have_two_sides() {
    use ComplexFunction::*;
    // acosh(2) and atanh(1/2).
    let (a, b) = ((2.0 + 3f64.sqrt()).ln(), 3f64.ln() / 2.0);
    for side in [1.0, -1.0] {
        let zero = 0f64.copysign(side);
        check(Log, C::new(-1.0, zero), C::new(0.0, side * PI));
        check(Sqrt, C::new(-4.0, zero), C::new(0.0, side * 2.0));
        check(Asin, C::new(2.0, zero), C::new(FRAC_PI_2, side * a));
        check(Asin, C::new(-2.0, zero), C::new(-FRAC_PI_2, side * a));
        check(Acos, C::new(2.0, zero), C::new(0.0, -side * a));
        check(Acos, C::new(-2.0, zero), C::new(PI, -side * a));
        check(Atanh, C::new(2.0, zero), C::new(b, side * FRAC_PI_2));
        check(Acosh, C::new(-2.0, zero), C::new(a, side * PI));
        check(Acosh, C::new(0.5, zero), C::new(0.0, side * PI / 3.0));
        check(Asinh, C::new(zero, 2.0), C::new(side * a, FRAC_PI_2));
        check(Atan, C::new(zero, 2.0), C::new(side * FRAC_PI_2, b));
    }
}

#[test]
fn inverse_functions_invert() {
    use ComplexFunction::*;
    let pairs = [
        (Exp, Log),
        (Expm1, Log1p),
        (Sin, Asin),
        (Cos, Acos),
        (Tan, Atan),
        (Sinh, Asinh),
        (Cosh, Acosh),
        (Tanh, Atanh),
    ];
    let parts = [-3.5, -1.25, -0.1, 0.0, 1e-3, 0.7, 2.0];
    let all: Vec<C64> = parts.iter().flat_map(|&re| parts.map(|im| C::new(re, im))).collect();
    let others: Vec<C64> = all.into_iter().filter(|&z| z != C64::default()).collect();
    let check = |name: &str, got: &[C64]| {
        for (z, back) in others.iter().zip(got) {
            assert!((back - z).norm() <= 1e-13 * (1.0 + z.norm()), "{name}: {z} became {back}");
        }
    };
    for (function, inverse) in pairs {
        let back = rows([&others], |b, [z]| {
            let w = b.complex_function(inverse, z);
            b.complex_function(function, w)
        });
        check(&format!("{function:?}"), &back);
    }
    let roots = rows([&others], |b, [z]| b.complex_function(Sqrt, z));
    check("the square", &roots.iter().map(|w| w * w).collect::<Vec<_>>());
    let roots = rows([&others], |b, [z]| b.complex_function(Cbrt, z));
    check("the cube", &roots.iter().map(|w| w * w * w).collect::<Vec<_>>());
    let roots = rows([&others], |b, [z]| b.complex_function(Rsqrt, z));
    check("the inverse of the square", &roots.iter().map(|w| ONE / (w * w)).collect::<Vec<_>>());
}

#[test]
fn nothing_overflows_on_the_way() {
    use ComplexFunction::*;
    let large = C::new(3e200, 4e200);
    let abs = rows([&[large]], |b, [z]| Complex { re: b.hypotenuse(z.re, z.im), im: z.im })[0].re;
    assert!((abs / 5e200 - 1.0).abs() <= f64::EPSILON);
    assert!(is_near(quotient(large, large), ONE));
    let root = of(Sqrt, large);
    assert!(is_near(root * root / 1e200, C::new(3.0, 4.0)));
    check(Sign, large, C::new(0.6, 0.8));
    let (log_abs, angle) = (5f64.ln() + 200.0 * 10f64.ln(), 4f64.atan2(3.0));
    check(Log, large, C::new(log_abs, angle));
    check(Asinh, large, C::new(log_abs + LN_2, angle));
    check(Acosh, large, C::new(log_abs + LN_2, angle));
    check(Atanh, large, C::new(3.0 / 25e200, FRAC_PI_2));
    check(Atanh, C::new(1.0, 1e-160), C::new((LN_2 - 1e-160f64.ln()) / 2.0, FRAC_PI_4));
    // e^710 overflows, half of it does not.
    let sinh = of(Sinh, C::new(710.0, 1.0));
    check(Cosh, C::new(710.0, 1.0), sinh);
    assert!(sinh.re.is_finite());
    assert_eq!(of(Tanh, C::new(-1e9, 3.0)).re, -1.0);
    check(Sigmoid, C::new(-1000.0, 1.0), C64::default());
    check(Sigmoid, C::new(1000.0, 1.0), ONE);
}

#[test]
fn powers_of_complex_numbers() {
    let zero = C64::default();
    assert_eq!(power(I, C::new(2.0, 0.0)), -ONE);
    assert_eq!(power(C::new(1.0, 2.0), C::new(3.0, 0.0)), C::new(-11.0, -2.0));
    assert_eq!(power(zero, zero), ONE);
    assert_eq!(power(zero, C::new(2.0, 1.0)), zero);
    assert!(power(zero, -ONE).is_nan());
    assert!(is_near(power(C::new(2.0, 0.0), -ONE), C::new(0.5, 0.0)));
    assert!(is_near(power(I, I), C::new((-FRAC_PI_2).exp(), 0.0)));
    let root = of(ComplexFunction::Cbrt, C::new(-8.0, 1.0));
    assert!(is_near(power(root, C::new(3.0, 0.0)), C::new(-8.0, 1.0)));
}

#[test]
fn division_by_zero_gives_infinities() {
    let zero = C64::default();
    let singles =
        |a: C64, b: C64| rows([&[a], &[b]], |builder, [a, b]| builder.complex_quotient_of_singles(a, b))[0];
    for divide in [&quotient as &dyn Fn(C64, C64) -> C64, &singles] {
        let got = divide(C::new(1.0, -2.0), zero);
        assert_eq!((got.re, got.im), (INF, -INF));
        assert!(divide(zero, zero).re.is_nan());
        assert_eq!(divide(ONE, C::new(INF, 1.0)), zero);
        assert!(is_near(divide(C::new(-5.0, 10.0), C::new(1.0, 2.0)), C::new(3.0, 4.0)));
    }
}
