//! Elementwise ops in every type, compared with their definition on one number.

use crate::common::*;
use defn_core::backend::Operand;
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::scalar::wrap;
use defn_core::{DType, ErrorKind, Number, Scalar};
use num_complex::Complex;
use proptest::prelude::*;

/// All pairs of the edge values of a type, as two vectors.
fn pairs(dtype: DType) -> (Vec<Scalar>, Operand, Operand) {
    let x = edges(dtype);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for &a in &x {
        for &b in &x {
            left.push(a);
            right.push(b);
        }
    }
    let size = [left.len()];
    (x, tensor(dtype, &size, &left), tensor(dtype, &size, &right))
}

fn int(x: Scalar) -> i128 {
    match x.value() {
        Number::Int(value) => value,
        Number::Bool(value) => i128::from(value),
        other @ (Number::Huge(_) | Number::Float(_) | Number::Complex(_)) => {
            panic!("{other:?} is no integer")
        }
    }
}

fn complex(x: Scalar) -> Complex<f64> {
    match x.value() {
        Number::Complex(value) => value,
        other @ (Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_)) => {
            Complex::new(other.to_f64(), 0.0)
        }
    }
}

/// Whether two floats are equal, or both NaN.
fn agree(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

/// Whether `got` is within `ulps` of `want` in the precision of `dtype`.
fn close(dtype: DType, got: f64, want: f64, ulps: f64) -> bool {
    let rounded = Scalar::new(dtype, want).unwrap().value().to_f64();
    if agree(got, rounded) {
        return true;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "only floats have digits")]
    let (digits, least) = match dtype {
        DType::F64 => (52, -1074),
        DType::F32 => (23, -149),
        DType::F16 => (10, -24),
        DType::BF16 => (7, -133),
        DType::F8E5M2 => (2, -16),
        DType::F8E4M3FN => (3, -9),
        other => panic!("{other} is no float"),
    };
    // In two steps: `powi` inverts the positive power, which may be infinite.
    let exponent = (want.abs().log2().floor() as i32 - digits).max(least);
    let unit = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    (got - want).abs() <= ulps * unit
}

#[test]
fn integers_wrap_in_every_type() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_integer()) {
        let (x, a, b) = pairs(dtype);
        let bits = dtype.bits() as i128;
        let check = |op: BinaryOp, want: &dyn Fn(i128, i128) -> i128| {
            let got = integers(&run(&Op::Binary(op), &[&a, &b]).unwrap());
            let all = x.iter().flat_map(|&a| x.iter().map(move |&b| (int(a), int(b))));
            for ((a, b), got) in all.zip(got) {
                assert_eq!(got, wrap(dtype, want(a, b)), "{op:?} of {a} and {b} in {dtype}");
            }
        };
        check(BinaryOp::ADD, &|a, b| a + b);
        check(BinaryOp::SUBTRACT, &|a, b| a - b);
        check(BinaryOp::MULTIPLY, &|a, b| a.wrapping_mul(b));
        check(BinaryOp::MAX, &|a, b| a.max(b));
        check(BinaryOp::MIN, &|a, b| a.min(b));
        check(BinaryOp::BITWISE_AND, &|a, b| a & b);
        check(BinaryOp::BITWISE_OR, &|a, b| a | b);
        check(BinaryOp::BITWISE_XOR, &|a, b| a ^ b);

        // Valid divisors, exponents and shift distances.
        let some = |keep: &dyn Fn(i128) -> bool| -> Vec<Scalar> {
            x.iter().copied().filter(|&x| keep(int(x))).collect()
        };
        let check = |op: BinaryOp, right: &[Scalar], want: &dyn Fn(i128, i128) -> i128| {
            for &b in right {
                let (left, right) = (tensor(dtype, &[x.len()], &x), tensor(dtype, &[], &[b]));
                let got = integers(&run(&Op::Binary(op), &[&left, &right]).unwrap());
                for (&a, got) in x.iter().zip(got) {
                    assert_eq!(got, wrap(dtype, want(int(a), int(b))), "{op:?} of {a} and {b} in {dtype}");
                }
            }
        };
        check(BinaryOp::QUOTIENT, &some(&|b| b != 0), &|a, b| a / b);
        check(BinaryOp::REMAINDER, &some(&|b| b != 0), &|a, b| a % b);
        check(BinaryOp::LEFT_SHIFT, &some(&|b| b >= 0), &|a, b| if b < bits { a << b } else { 0 });
        check(BinaryOp::RIGHT_SHIFT, &some(&|b| b >= 0), &|a, b| a >> b.min(100));
        check(BinaryOp::POW, &some(&|b| (0..=300).contains(&b)), &|a, b| {
            (0..b).fold(1i128, |power, _| wrap(DType::U64, power.wrapping_mul(wrap(DType::U64, a))))
        });

        let check = |op: UnaryOp, want: &dyn Fn(i128) -> i128| {
            let operand = tensor(dtype, &[x.len()], &x);
            let got = integers(&run(&Op::Unary(op), &[&operand]).unwrap());
            for (&x, got) in x.iter().zip(got) {
                assert_eq!(got, wrap(dtype, want(int(x))), "{op:?} of {x} in {dtype}");
            }
        };
        let own = |x: i128| (x & ((1 << bits) - 1)) as u64;
        check(UnaryOp::NEGATE, &|x| -x);
        check(UnaryOp::ABS, &|x| x.abs());
        check(UnaryOp::SIGN, &|x| x.signum());
        check(UnaryOp::FLOOR, &|x| x);
        check(UnaryOp::CEIL, &|x| x);
        check(UnaryOp::ROUND, &|x| x);
        check(UnaryOp::BITWISE_NOT, &|x| !x);
        check(UnaryOp::POPULATION_COUNT, &|x| i128::from(own(x).count_ones()));
        check(UnaryOp::COUNT_LEADING_ZEROS, &|x| i128::from(own(x).leading_zeros()) - (64 - bits));
    }
}

#[test]
fn what_integers_cannot_do_is_an_error() {
    let a = vector(DType::S32, &[1, 2, 3]);
    let of = |op: BinaryOp, b: &Operand| run(&Op::Binary(op), &[&a, b]).unwrap_err().to_string();
    let (zero, negative) = (vector(DType::U8, &[1, 0, 2]), scalar(DType::S8, -2));
    for op in [BinaryOp::QUOTIENT, BinaryOp::REMAINDER] {
        let name = op.name();
        assert_eq!(
            of(op, &zero),
            format!("{name}: the divisor of an integer division is zero, it must not be zero")
        );
    }
    assert_eq!(
        of(BinaryOp::POW, &negative),
        "pow: the exponent of an integer base is -2, it must not be negative; convert the base to a float"
    );
    assert_eq!(
        of(BinaryOp::LEFT_SHIFT, &negative),
        "left_shift: the number of bits to shift by is -2, it must not be negative"
    );
    // An empty operand has no invalid element, and a large unsigned distance is not negative.
    let none = vector::<i32>(DType::S32, &[]);
    let got = run(&Op::Binary(BinaryOp::QUOTIENT), &[&none, &scalar(DType::S32, 0)]).unwrap();
    assert!(elements(&got).is_empty());
    let far = scalar(DType::U64, u64::MAX);
    assert_eq!(integers(&run(&Op::Binary(BinaryOp::LEFT_SHIFT), &[&a, &far]).unwrap()), [0, 0, 0]);
    assert_eq!(integers(&run(&Op::Binary(BinaryOp::POW), &[&a, &far]).unwrap())[0], 1);
    let floats_divide =
        run(&Op::Binary(BinaryOp::REMAINDER), &[&vector(DType::F32, &[1.0]), &scalar(DType::F32, 0.0)]);
    assert!(floats(&floats_divide.unwrap())[0].is_nan());
}

#[test]
fn floats_round_once_after_every_operation() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_float()) {
        let (x, a, b) = pairs(dtype);
        let check_within = |op: BinaryOp, ulps: f64, want: &dyn Fn(f64, f64) -> f64| {
            let got = floats(&run(&Op::Binary(op), &[&a, &b]).unwrap());
            let all =
                x.iter().flat_map(|&a| x.iter().map(move |&b| (a.value().to_f64(), b.value().to_f64())));
            for ((a, b), got) in all.zip(got) {
                let exact = want(a, b);
                let want = Scalar::new(dtype, exact).unwrap().value().to_f64();
                let ok = agree(got, want) || ulps > 0.0 && close(dtype, got, exact, ulps);
                assert!(ok, "{op:?} of {a} and {b} in {dtype}: {got} and not {want}");
            }
        };
        let check = |op: BinaryOp, want: &dyn Fn(f64, f64) -> f64| check_within(op, 0.0, want);
        check(BinaryOp::ADD, &|a, b| a + b);
        check(BinaryOp::SUBTRACT, &|a, b| a - b);
        check(BinaryOp::MULTIPLY, &|a, b| a * b);
        check(BinaryOp::DIVIDE, &|a, b| a / b);
        check(BinaryOp::REMAINDER, &|a, b| a % b);
        let ulps = bound(dtype);
        check_within(BinaryOp::POW, ulps, &|a, b| a.powf(b));
        check_within(BinaryOp::ATAN2, ulps, &|a, b| a.atan2(b));
        let order = |a: f64, b: f64, greater: bool| match a.is_nan() || b.is_nan() {
            true => f64::NAN,
            false if greater => a.max(b),
            false => a.min(b),
        };
        check(BinaryOp::MAX, &|a, b| order(a, b, true));
        check(BinaryOp::MIN, &|a, b| order(a, b, false));
    }
}

/// The error bound of a function in units of the last place: the narrow types are rounded from f32.
fn bound(dtype: DType) -> f64 {
    if dtype == DType::F64 {
        4.0
    } else if dtype == DType::F32 {
        2.0
    } else {
        1.0
    }
}

#[test]
fn functions_of_floats_are_accurate_in_every_type() {
    type Function = fn(f64) -> f64;
    let functions: &[(UnaryOp, Function)] = &[
        (UnaryOp::NEGATE, |x| -x),
        (UnaryOp::ABS, f64::abs),
        (UnaryOp::FLOOR, f64::floor),
        (UnaryOp::CEIL, f64::ceil),
        (UnaryOp::ROUND, f64::round),
        (UnaryOp::EXP, f64::exp),
        (UnaryOp::EXPM1, f64::exp_m1),
        (UnaryOp::LOG, f64::ln),
        (UnaryOp::LOG1P, f64::ln_1p),
        (UnaryOp::SIGMOID, |x| 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::SIN, f64::sin),
        (UnaryOp::COS, f64::cos),
        (UnaryOp::TAN, f64::tan),
        (UnaryOp::SINH, f64::sinh),
        (UnaryOp::COSH, f64::cosh),
        (UnaryOp::TANH, f64::tanh),
        (UnaryOp::ASIN, f64::asin),
        (UnaryOp::ACOS, f64::acos),
        (UnaryOp::ATAN, f64::atan),
        (UnaryOp::ASINH, libm::asinh),
        (UnaryOp::ACOSH, libm::acosh),
        (UnaryOp::ATANH, libm::atanh),
        (UnaryOp::SQRT, f64::sqrt),
        (UnaryOp::RSQRT, |x| 1.0 / x.sqrt()),
        (UnaryOp::CBRT, f64::cbrt),
        (UnaryOp::ERF, libm::erf),
        (UnaryOp::ERFC, libm::erfc),
    ];
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_float()) {
        let mut x = edges(dtype);
        x.extend((-400..400).map(|i| Scalar::new(dtype, f64::from(i) * 0.0173).unwrap()));
        let operand = tensor(dtype, &[x.len()], &x);
        for &(op, want) in functions {
            let got = floats(&run(&Op::Unary(op), &[&operand]).unwrap());
            for (x, got) in x.iter().map(|x| x.value().to_f64()).zip(got) {
                let ok = close(dtype, got, want(x), bound(dtype));
                assert!(ok, "{op:?} of {x} in {dtype}: {got:e} and not {:e}", want(x));
            }
        }
        // The inverse, checked by the function that it inverts.
        let inverse = run(&Op::Unary(UnaryOp::ERF_INV), &[&operand]).unwrap();
        for (x, got) in x.iter().map(|x| x.value().to_f64()).zip(floats(&inverse)) {
            match x.abs() {
                1.0 => {
                    // 448 if the type has no infinity.
                    let end = Scalar::new(dtype, f64::INFINITY.copysign(x)).unwrap();
                    assert_eq!(got, end.value().to_f64());
                }
                inside if inside < 0.9 => assert!(close(dtype, libm::erf(got), x, 4.0), "{dtype} {x}"),
                inside => assert_eq!(got.is_nan(), inside > 1.0 || x.is_nan(), "{dtype} {x}"),
            }
        }
        let signs = run(&Op::Unary(UnaryOp::SIGN), &[&operand]).unwrap();
        for (x, got) in x.iter().map(|x| x.value().to_f64()).zip(floats(&signs)) {
            assert!(agree(got, if x == 0.0 { 0.0 } else { x.signum() }), "{dtype} {x}");
        }
    }
}

#[test]
fn integers_become_f32_where_a_result_is_real() {
    let x = vector(DType::S64, &[4, 9]);
    let root = run(&Op::Unary(UnaryOp::SQRT), &[&x]).unwrap();
    assert_eq!((root.ty.dtype, floats(&root)), (DType::F32, vec![2.0, 3.0]));
    let ratio = run(&Op::Binary(BinaryOp::DIVIDE), &[&x, &scalar(DType::U8, 8)]).unwrap();
    assert_eq!((ratio.ty.dtype, floats(&ratio)), (DType::F32, vec![0.5, 1.125]));
    let real = run(&Op::Unary(UnaryOp::REAL), &[&x]).unwrap();
    assert_eq!((real.ty.dtype, floats(&real)), (DType::F32, vec![4.0, 9.0]));
    let imag = run(&Op::Unary(UnaryOp::IMAG), &[&x]).unwrap();
    assert_eq!((imag.ty.dtype, floats(&imag)), (DType::F32, vec![0.0, 0.0]));
    let own = run(&Op::Unary(UnaryOp::CONJUGATE), &[&x]).unwrap();
    assert_eq!(numbers(&own), [Number::complex(4.0, 0.0), Number::complex(9.0, 0.0)]);
}

/// Operands are rounded to the merged type before the computation.
#[test]
fn operands_are_converted_first() {
    let sum = run(&Op::Binary(BinaryOp::ADD), &[&vector(DType::S32, &[257]), &vector(DType::BF16, &[3.0])]);
    assert_eq!(floats(&sum.unwrap()), [260.0], "257 is 256 in bf16, and 259 rounds to 260");
}

#[test]
fn comparisons_are_of_values_whatever_the_types() {
    let compare = |op: BinaryOp, a: &Operand, b: &Operand| integers(&run(&Op::Binary(op), &[a, b]).unwrap());
    let exact: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| dtype.is_integer()).collect();
    for &left in &exact {
        for &right in &exact {
            for &a in &edges(left) {
                let b = edges(right);
                let (x, y) = (tensor(left, &[], &[a]), tensor(right, &[b.len()], &b));
                let want = |f: &dyn Fn(i128, i128) -> bool| -> Vec<i128> {
                    b.iter().map(|&b| i128::from(f(int(a), int(b)))).collect()
                };
                assert_eq!(compare(BinaryOp::EQUAL, &x, &y), want(&|a, b| a == b), "{left} {a} {right}");
                assert_eq!(compare(BinaryOp::NOT_EQUAL, &x, &y), want(&|a, b| a != b), "{left} {a} {right}");
                assert_eq!(compare(BinaryOp::LESS, &x, &y), want(&|a, b| a < b), "{left} {a} {right}");
                assert_eq!(compare(BinaryOp::LESS_EQUAL, &x, &y), want(&|a, b| a <= b), "{left} {a} {right}");
                assert_eq!(compare(BinaryOp::GREATER, &x, &y), want(&|a, b| a > b), "{left} {a} {right}");
                assert_eq!(
                    compare(BinaryOp::GREATER_EQUAL, &x, &y),
                    want(&|a, b| a >= b),
                    "{left} {a} {right}"
                );
            }
        }
    }
    let (nan, one) = (scalar(DType::F16, f64::NAN), scalar(DType::S8, 1));
    assert_eq!(compare(BinaryOp::EQUAL, &nan, &nan), [0]);
    assert_eq!(compare(BinaryOp::NOT_EQUAL, &nan, &one), [1]);
    assert_eq!(compare(BinaryOp::LESS_EQUAL, &nan, &one), [0]);
    assert_eq!(compare(BinaryOp::EQUAL, &scalar(DType::F64, -0.0), &scalar(DType::U2, 0)), [1]);
    let z = scalar(DType::C64, Complex::new(1.0, 0.0));
    assert_eq!(compare(BinaryOp::EQUAL, &z, &one), [1]);
    assert_eq!(compare(BinaryOp::NOT_EQUAL, &z, &scalar(DType::C128, Complex::new(1.0, 2.0))), [1]);
}

#[test]
fn everything_but_zero_is_true() {
    for &dtype in DType::ALL {
        let x = edges(dtype);
        let truth: Vec<i128> = x
            .iter()
            .map(|&x| {
                let z = complex(x);
                i128::from(z.re != 0.0 || z.im != 0.0)
            })
            .collect();
        let operand = tensor(dtype, &[x.len()], &x);
        for (right, is) in [(scalar(DType::U8, 2), 1), (scalar(DType::F32, 0.0), 0)] {
            let of = |op| integers(&run(&Op::Binary(op), &[&operand, &right]).unwrap());
            let want = |f: &dyn Fn(i128) -> i128| truth.iter().map(|&x| f(x)).collect::<Vec<_>>();
            assert_eq!(of(BinaryOp::LOGICAL_AND), want(&|x| x & is), "{dtype}");
            assert_eq!(of(BinaryOp::LOGICAL_OR), want(&|x| x | is), "{dtype}");
            assert_eq!(of(BinaryOp::LOGICAL_XOR), want(&|x| x ^ is), "{dtype}");
        }
        let picked = run(&Op::Select, &[&operand, &scalar(DType::S8, -1), &scalar(DType::U8, 9)]).unwrap();
        assert_eq!(picked.ty.dtype, DType::S16);
        let want: Vec<i128> = truth.iter().map(|&x| if x == 1 { -1 } else { 9 }).collect();
        assert_eq!(integers(&picked), want, "{dtype}");
        let nan: Vec<i128> = x.iter().map(|&x| i128::from(complex(x).is_nan())).collect();
        assert_eq!(integers(&run(&Op::Unary(UnaryOp::IS_NAN), &[&operand]).unwrap()), nan, "{dtype}");
        let infinite: Vec<i128> = x.iter().map(|&x| i128::from(complex(x).is_infinite())).collect();
        assert_eq!(
            integers(&run(&Op::Unary(UnaryOp::IS_INFINITY), &[&operand]).unwrap()),
            infinite,
            "{dtype}"
        );
    }
}

#[test]
fn clipping_keeps_nan_and_prefers_the_upper_bound() {
    let x = vector(DType::F32, &[-5.0, 0.5, 7.0, f64::NAN, f64::NEG_INFINITY]);
    let clip = |lo: f64, hi: f64| {
        floats(&run(&Op::Clip, &[&x, &scalar(DType::F32, lo), &scalar(DType::F32, hi)]).unwrap())
    };
    let got = clip(-1.0, 2.0);
    assert_eq!((&got[..3], got[4]), (&[-1.0, 0.5, 2.0][..], -1.0));
    assert!(got[3].is_nan());
    assert_eq!(clip(3.0, 1.0)[..3], [1.0, 1.0, 1.0]);
    let bytes = vector(DType::U8, &[0, 100, 255]);
    let got = run(&Op::Clip, &[&bytes, &scalar(DType::S32, -1), &scalar(DType::S32, 200)]).unwrap();
    assert_eq!((got.ty.dtype, integers(&got)), (DType::S32, vec![0, 100, 200]));
}

#[test]
fn complex_arithmetic_and_parts() {
    for dtype in [DType::C64, DType::C128] {
        let (a, b) = (Complex::new(3.0, -4.0), Complex::new(-1.0, 2.0));
        let (x, y) = (vector(dtype, &[a]), vector(dtype, &[b]));
        let of = |op| complex(elements(&run(&Op::Binary(op), &[&x, &y]).unwrap())[0]);
        assert_eq!(of(BinaryOp::ADD), a + b);
        assert_eq!(of(BinaryOp::SUBTRACT), a - b);
        assert_eq!(of(BinaryOp::MULTIPLY), Complex::new(5.0, 10.0));
        assert!((of(BinaryOp::DIVIDE) - Complex::new(-2.2, -0.4)).norm() < 1e-6);
        let one = |op| run(&Op::Unary(op), &[&x]).unwrap();
        assert_eq!(floats(&one(UnaryOp::ABS)), [5.0]);
        assert_eq!(one(UnaryOp::ABS).ty.dtype, dtype.to_real());
        assert_eq!((floats(&one(UnaryOp::REAL)), floats(&one(UnaryOp::IMAG))), (vec![3.0], vec![-4.0]));
        assert_eq!(complex(elements(&one(UnaryOp::CONJUGATE))[0]), Complex::new(3.0, 4.0));
        assert!((complex(elements(&one(UnaryOp::SIGN))[0]) - Complex::new(0.6, -0.8)).norm() < 1e-6);
        let large = vector(dtype, &[Complex::new(f64::NEG_INFINITY, f64::NAN)]);
        assert_eq!(floats(&run(&Op::Unary(UnaryOp::ABS), &[&large]).unwrap()), [f64::INFINITY]);
    }
    let joined =
        run(&Op::Binary(BinaryOp::Complex), &[&vector(DType::S8, &[1, -2]), &scalar(DType::F64, 0.5)]);
    let joined = joined.unwrap();
    assert_eq!(joined.ty.dtype, DType::C128);
    assert_eq!(numbers(&joined), [Number::complex(1.0, 0.5), Number::complex(-2.0, 0.5)]);
}

/// Consecutive integers broadcast from `sizes` to `to`, element by element.
fn broadcast(sizes: &[usize], to: &[usize]) -> Vec<i128> {
    let count: usize = to.iter().product();
    (0..count)
        .map(|flat| {
            let (mut rest, mut index, mut step) = (flat, 0, 1);
            for (axis, &size) in to.iter().enumerate().rev() {
                let (own, position) = (axis + sizes.len(), rest % size);
                rest /= size;
                if own >= to.len() && sizes[own - to.len()] > 1 {
                    index += position * step;
                }
                if own >= to.len() {
                    step *= sizes[own - to.len()];
                }
            }
            index as i128
        })
        .collect()
}

proptest! {
    /// All combinations of kept, repeated and missing axes, across tiles.
    #[test]
    fn operands_broadcast(
        to in prop::collection::vec(1usize..9, 0..5),
        inner in prop::sample::select(vec![1usize, 3, 700]),
        keep in prop::collection::vec(any::<bool>(), 6),
        dropped in 0usize..6,
        in_f16 in any::<bool>(),
    ) {
        let mut to = to;
        to.push(inner);
        let own: Vec<usize> =
            to.iter().zip(&keep).map(|(&size, &keep)| if keep { size } else { 1 }).skip(dropped).collect();
        let iota = |sizes: &[usize], dtype| {
            run(&Op::Iota { shape: defn_core::Shape::new(sizes), dtype, axis: None }, &[]).unwrap()
        };
        let left = if in_f16 { DType::F16 } else { DType::S32 };
        let a = run(&Op::AsType { dtype: left }, &[&run(
            &Op::Binary(BinaryOp::REMAINDER), &[&iota(&own, DType::S32), &scalar(DType::S32, 2000)]).unwrap()]).unwrap();
        let b = iota(&to, DType::S64);
        let sum = run(&Op::Binary(BinaryOp::SUBTRACT), &[&b, &a]).unwrap();
        let want: Vec<f64> = broadcast(&own, &to).into_iter().enumerate()
            .map(|(flat, x)| {
                let value = |x: i128| Scalar::new(sum.ty.dtype, x as i64).unwrap().value().to_f64();
                let exact = value(flat as i128) - value(x % 2000);
                if in_f16 { Scalar::new(DType::F16, exact).unwrap().value().to_f64() } else { exact }
            })
            .collect();
        prop_assert_eq!(floats(&sum), want);
    }

    #[test]
    fn f32_arithmetic_is_exact_for_any_bits(a in any::<u32>(), b in any::<u32>()) {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let (left, right) = (vector(DType::F32, &[x]), vector(DType::F32, &[y]));
        let results = [
            (BinaryOp::ADD, x + y), (BinaryOp::MULTIPLY, x * y), (BinaryOp::DIVIDE, x / y),
            (BinaryOp::REMAINDER, x % y),
        ];
        for (op, want) in results {
            let got = floats(&run(&Op::Binary(op), &[&left, &right]).unwrap())[0];
            prop_assert!(agree(got, f64::from(want)), "{:?} {} {} {} {}", op, x, y, got, want);
        }
    }
}

#[test]
fn large_results_are_the_same_in_place_and_elsewhere() {
    let n = 1 << 18;
    let x = run(&Op::Iota { shape: defn_core::Shape::new(&[n + 5]), dtype: DType::F32, axis: None }, &[])
        .unwrap();
    let elsewhere = run(&Op::Unary(UnaryOp::SIN), &[&x]).unwrap();
    let in_place = run_owned(&Op::Unary(UnaryOp::SIN), vec![x]).unwrap();
    assert_eq!(elements(&elsewhere), elements(&in_place));
    let error = run_owned(
        &Op::Binary(BinaryOp::QUOTIENT),
        vec![run(&Op::AsType { dtype: DType::S32 }, &[&in_place]).unwrap(), scalar(DType::S32, 0)],
    )
    .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DivisionByZero { op: "quotient" }));
}
