//! Results of the core's composites, run op by op.

use crate::common::{edges, scalar, tensor, vector};
use defn_core::backend::Operand;
use defn_core::builder::{
    Arg, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape, Builder, Cut, Ops, PadMode,
    Rules, Source, Start, cond, custom_derivative, while_,
};
use defn_core::op::{Op, ReduceOp};
use defn_core::scalar::wrap;
use defn_core::{Axes, DType, ErrorKind, Number, Result, Scalar, Shape, Tensor};
use defn_cpu::cpu_backend;
use proptest::prelude::*;

fn ops() -> Ops {
    Ops::new(cpu_backend(), Source::Unknown)
}

fn given(operand: Operand) -> Tensor {
    Tensor::concrete(operand.ty, operand.buffer)
}

fn elements(tensor: &Tensor) -> Vec<Scalar> {
    let memory = tensor.host_bytes("test").unwrap();
    let width = tensor.ty().dtype.storage_bytes();
    memory.bytes().chunks_exact(width).map(|x| Scalar::from_bytes(tensor.ty().dtype, x)).collect()
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    elements(tensor).into_iter().map(|x| x.value().to_f64()).collect()
}

fn integers(tensor: &Tensor) -> Vec<i64> {
    elements(tensor).into_iter().map(|x| x.value().to_f64() as i64).collect()
}

/// 0, 1, 2 and so on.
fn counted(dtype: DType, sizes: &[usize]) -> Tensor {
    ops().iota(Shape::new(sizes), dtype, None).unwrap()
}

/// Whether two numbers are equal, with NaN equal to itself and signed zeros different.
fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative()
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// `(a, b, a // b, a % b)`, as CPython 3.11 computes them.
const FLOORED: &[(f64, f64, f64, f64)] = &[
    (0.0, 0.1, 0.0, 0.0),
    (0.0, -0.3, -0.0, -0.0),
    (0.0, -10.0, -0.0, -0.0),
    (0.0, 2.5, 0.0, 0.0),
    (0.0, INF, 0.0, 0.0),
    (0.0, -INF, -0.0, -0.0),
    (-0.0, 0.1, -0.0, 0.0),
    (-0.0, -0.3, 0.0, -0.0),
    (-0.0, -10.0, 0.0, -0.0),
    (-0.0, 2.5, -0.0, 0.0),
    (-0.0, INF, -0.0, 0.0),
    (-0.0, -INF, 0.0, -0.0),
    (1.0, 0.1, 9.0, 0.09999999999999995),
    (1.0, -0.3, -4.0, -0.19999999999999996),
    (1.0, -10.0, -1.0, -9.0),
    (1.0, 2.5, 0.0, 1.0),
    (1.0, INF, 0.0, 1.0),
    (1.0, -INF, -1.0, -INF),
    (0.3, 0.1, 2.0, 0.09999999999999998),
    (0.3, -0.3, -1.0, -0.0),
    (0.3, -10.0, -1.0, -9.7),
    (0.3, 2.5, 0.0, 0.3),
    (0.3, INF, 0.0, 0.3),
    (0.3, -INF, -1.0, -INF),
    (-7.5, 0.1, -75.0, 4.163336342344337e-16),
    (-7.5, -0.3, 25.0, -2.7755575615628914e-16),
    (-7.5, -10.0, 0.0, -7.5),
    (-7.5, 2.5, -3.0, 0.0),
    (-7.5, INF, -1.0, INF),
    (-7.5, -INF, 0.0, -7.5),
    (11.0, 0.1, 109.0, 0.0999999999999994),
    (11.0, -0.3, -37.0, -0.09999999999999959),
    (11.0, -10.0, -2.0, -9.0),
    (11.0, 2.5, 4.0, 1.0),
    (11.0, INF, 0.0, 11.0),
    (11.0, -INF, -1.0, -INF),
    (INF, 0.1, NAN, NAN),
    (INF, -0.3, NAN, NAN),
    (INF, -10.0, NAN, NAN),
    (INF, 2.5, NAN, NAN),
    (INF, INF, NAN, NAN),
    (INF, -INF, NAN, NAN),
];

#[test]
fn floored_division_is_that_of_python() {
    let column = |pick: fn(&(f64, f64, f64, f64)) -> f64| FLOORED.iter().map(pick).collect::<Vec<f64>>();
    let (a, b) = (given(vector(DType::F64, &column(|r| r.0))), given(vector(DType::F64, &column(|r| r.1))));
    let quotients = floats(&ops().floor_divide(&a, &b).unwrap());
    let moduli = floats(&ops().floor_modulo(&a, &b).unwrap());
    for ((row, quotient), modulo) in FLOORED.iter().zip(quotients).zip(moduli) {
        assert!(same(quotient, row.2) && same(modulo, row.3), "{row:?}: {quotient}, {modulo}");
    }
}

#[test]
fn floored_division_of_floats_by_zero_is_not_finite() {
    let mut ops = ops();
    let a = given(vector(DType::F32, &[1.0, -1.0, 0.0]));
    let quotients = floats(&ops.floor_divide(&a, 0.0).unwrap());
    assert!(quotients[0] == INF && quotients[1] == -INF && quotients[2].is_nan(), "{quotients:?}");
    assert!(floats(&ops.floor_modulo(&a, 0.0).unwrap()).iter().all(|x| x.is_nan()));
}

#[test]
fn floored_division_of_integers_is_exact_in_every_dtype() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_integer()) {
        let edges = edges(dtype);
        let pairs: Vec<(Scalar, Scalar)> = edges
            .iter()
            .flat_map(|&a| edges.iter().map(move |&b| (a, b)))
            .filter(|(_, b)| !b.is(0))
            .collect();
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let (x, y) = (given(tensor(dtype, &[a.len()], &a)), given(tensor(dtype, &[b.len()], &b)));
        let quotients = elements(&ops().floor_divide(&x, &y).unwrap());
        let moduli = elements(&ops().floor_modulo(&x, &y).unwrap());
        for (((a, b), quotient), modulo) in pairs.into_iter().zip(quotients).zip(moduli) {
            let (Number::Int(n), Number::Int(d)) = (a.value(), b.value()) else { unreachable!() };
            // Rounding towards the divisor's sign: Euclid's division rounds down for positive divisors only.
            let down = if d > 0 { n.div_euclid(d) } else { (-n).div_euclid(-d) };
            assert_eq!(quotient.value(), Number::Int(wrap(dtype, down)), "{dtype} {n} // {d}");
            assert_eq!(modulo.value(), Number::Int(wrap(dtype, n - d * down)), "{dtype} {n} % {d}");
        }
    }
}

#[test]
fn floored_division_by_a_row_or_a_number_broadcasts() {
    let mut ops = ops();
    let x = given(vector(DType::F32, &[7.0, -7.0]));
    let column = ops.new_axis(&x, -1, None).unwrap();
    let row = given(vector(DType::F32, &[2.0, -2.0, 4.0]));
    assert_eq!(floats(&ops.floor_divide(&column, &row).unwrap()), [3.0, -4.0, 1.0, -4.0, 3.0, -2.0]);
    assert_eq!(floats(&ops.floor_modulo(&column, &row).unwrap()), [1.0, -1.0, 3.0, 1.0, -1.0, 1.0]);
    assert_eq!(floats(&ops.floor_divide(&x, 2).unwrap()), [3.0, -4.0]);
    assert_eq!(floats(&ops.floor_modulo(&x, 2).unwrap()), [1.0, 1.0]);
}

#[test]
fn logarithms_have_bases() {
    let mut ops = ops();
    let x = given(vector(DType::F64, &[1.0, 8.0, 1024.0]));
    let close = |got: Vec<f64>, want: [f64; 3]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-14), "{got:?} {want:?}");
    };
    close(floats(&ops.log2(&x).unwrap()), [0.0, 3.0, 10.0]);
    close(floats(&ops.log_base(&x, 4).unwrap()), [0.0, 1.5, 5.0]);
    let base = given(scalar(DType::F64, 2));
    close(floats(&ops.log_base(&x, &base).unwrap()), [0.0, 3.0, 10.0]);
    assert!((floats(&ops.log10(1000.0).unwrap())[0] - 3.0).abs() < 1e-6);
}

#[test]
fn not_is_one_where_there_is_zero_and_phase_is_an_angle() {
    let mut ops = ops();
    let x = given(vector(DType::F32, &[0.0, -0.0, NAN, 2.0]));
    assert_eq!(integers(&ops.logical_not(&x).unwrap()), [1, 1, 0, 0]);
    let z: Vec<Scalar> = [(0.0, 2.0), (-1.0, 0.0), (1.0, -1.0)]
        .map(|(re, im)| Scalar::new(DType::C128, Number::complex(re, im)).unwrap())
        .to_vec();
    let phase = floats(&ops.phase(given(tensor(DType::C128, &[3], &z))).unwrap());
    let pi = std::f64::consts::PI;
    assert!(phase.iter().zip([pi / 2.0, pi, -pi / 4.0]).all(|(a, b)| (a - b).abs() < 1e-15), "{phase:?}");
}

#[test]
fn all_close_follows_its_tolerances() {
    let close = |a: &[f64], b: &[f64], equal_nan: bool| {
        let (a, b) = (given(vector(DType::F32, a)), given(vector(DType::F32, b)));
        integers(&ops().all_close(&a, &b, equal_nan, 1e-5, 1e-8).unwrap())[0]
    };
    assert_eq!(close(&[1.0, INF, -INF], &[1.0 + 5e-6, INF, -INF], false), 1);
    assert_eq!(close(&[1.0], &[1.001], false), 0);
    assert_eq!(close(&[1.0], &[INF], false), 0);
    assert_eq!(close(&[INF], &[1.0], false), 0);
    assert_eq!(close(&[INF], &[-INF], false), 0);
    assert_eq!(close(&[NAN], &[NAN], false), 0);
    assert_eq!(close(&[NAN], &[NAN], true), 1);
    assert_eq!(close(&[NAN], &[1.0], true), 0);
    assert_eq!(close(&[], &[], false), 1);
    // Integers do not wrap in between, and equal ones need no float.
    let integers_close = |dtype: DType, a: u64, b: u64| {
        let (a, b) = (given(scalar(dtype, a)), given(scalar(dtype, b)));
        integers(&ops().all_close(&a, &b, false, 0.0, 1.0).unwrap())[0]
    };
    assert_eq!(integers_close(DType::U8, 1, 2), 1);
    assert_eq!(integers_close(DType::U8, 0, 255), 0);
    assert_eq!(integers_close(DType::U64, u64::MAX, u64::MAX), 1);
}

#[test]
fn triangles_have_their_corners() {
    let mut ops = ops();
    assert_eq!(integers(&ops.tri(2, 3, 0).unwrap()), [1, 0, 0, 1, 1, 0]);
    assert_eq!(integers(&ops.tri(2, 3, 1).unwrap()), [1, 1, 0, 1, 1, 1]);
    assert_eq!(integers(&ops.tri(2, 3, i64::MIN).unwrap()), [0; 6]);
    assert_eq!(integers(&ops.tri(2, 3, i64::MAX).unwrap()), [1; 6]);
    let x = counted(DType::S32, &[2, 2, 2]);
    assert_eq!(integers(&ops.tril(&x, 0).unwrap()), [0, 0, 2, 3, 4, 0, 6, 7]);
    assert_eq!(integers(&ops.triu(&x, 0).unwrap()), [0, 1, 0, 3, 4, 5, 0, 7]);
    assert_eq!(integers(&ops.triu(&x, 1).unwrap()), [0, 1, 0, 0, 0, 5, 0, 0]);
}

#[test]
fn ranges_begin_and_end_where_they_should() {
    let mut ops = ops();
    let (f32, f64) = (DType::F32, DType::F64);
    assert_eq!(floats(&ops.linspace(0, 1, 5, None, f32, true).unwrap()), [0.0, 0.25, 0.5, 0.75, 1.0]);
    assert_eq!(floats(&ops.linspace(0, 1, 4, None, f32, false).unwrap()), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(floats(&ops.linspace(3, 9, 1, None, f32, true).unwrap()), [3.0]);
    assert_eq!(integers(&ops.linspace(10, 0, 6, None, DType::S64, true).unwrap()), [10, 8, 6, 4, 2, 0]);
    // The last value is exact, even if the steps add up to another, and numbers are not rounded to f32 first.
    let values = floats(&ops.linspace(0.1, 0.7, 4, None, f64, true).unwrap());
    assert_eq!((values[0], values[3]), (0.1, 0.7));
    let (start, stop) = (given(vector(f32, &[0.0, 10.0])), given(vector(f32, &[2.0, 30.0])));
    assert_eq!(
        floats(&ops.linspace(&start, &stop, 3, None, f32, true).unwrap()),
        [0.0, 1.0, 2.0, 10.0, 20.0, 30.0]
    );
}

#[test]
fn fill_takes_the_shape_and_the_value() {
    let mut ops = ops();
    let x = counted(DType::U8, &[2]);
    assert_eq!(integers(&ops.fill(&x, 200, None).unwrap()), [200, 200]);
    assert_eq!(
        ops.fill(&x, 300, None).unwrap_err().to_string(),
        "fill: the integer 300 beside u8[2], an integer from 0 to 255 is required; convert the tensor to a wider \
         dtype with as_type"
    );
    assert_eq!(integers(&ops.fill(&x, 300, Some(DType::U8)).unwrap()), [44, 44]);
    assert_eq!(integers(&ops.ones_like(&x).unwrap()), [1, 1]);
}

proptest! {
    /// Each function of diagonals agrees with the indices.
    #[test]
    fn diagonals_agree_with_their_indices(rows in 0usize..5, columns in 0usize..5, offset in -5i64..6) {
        let mut ops = ops();
        let matrix = counted(DType::S32, &[rows, columns]);
        let at = |row: usize, column: usize| (row * columns + column) as i64;
        let diagonal: Vec<(usize, usize)> = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .filter(|&(row, column)| column as i64 - row as i64 == offset)
            .collect();
        let exists = offset == 0 || -(rows as i64) < offset && offset < columns as i64;
        let taken = ops.take_diagonal(&matrix, offset);
        // Outside the matrix a diagonal is empty, and cannot be put.
        let expected: Vec<i64> = diagonal.iter().map(|&(row, column)| at(row, column)).collect();
        prop_assert_eq!(integers(&taken.unwrap()), expected);
        if exists {
            let new: Vec<i64> = (0..diagonal.len() as i64).map(|i| -1 - i).collect();
            let put = ops.put_diagonal(&matrix, given(vector(DType::S32, &new)), offset).unwrap();
            let mut expected: Vec<i64> = (0..(rows * columns) as i64).collect();
            for (i, &(row, column)) in diagonal.iter().enumerate() {
                expected[at(row, column) as usize] = new[i];
            }
            prop_assert_eq!(integers(&put), expected);
        }
        let made = ops.make_diagonal(counted(DType::S32, &[rows]), offset).unwrap();
        let side = rows + offset.unsigned_abs() as usize;
        prop_assert_eq!(made.ty().shape.sizes(), &[side, side]);
        let expected: Vec<i64> = (0..side * side)
            .map(|i| ((i / side) as i64, (i % side) as i64))
            .map(|(row, column)| if column - row == offset { row.min(column) } else { 0 })
            .collect();
        prop_assert_eq!(integers(&made), expected);
    }

    /// Padding reads `x` at the positions that define the mode.
    #[test]
    fn pad_outer_reads_the_positions_of_its_mode(size in 1i64..6, left in 0i64..14, right in 0i64..14) {
        let x = counted(DType::S32, &[size as usize]);
        let walk = |wave: &[i64]| -> Vec<i64> {
            (-left..size + right).map(|at| wave[at.rem_euclid(wave.len() as i64) as usize]).collect()
        };
        let there: Vec<i64> = (0..size).collect();
        let mirror: Vec<i64> = there.iter().chain(there.iter().rev()).copied().collect();
        let inner = if size > 1 { &there[1..size as usize - 1] } else { &[][..] };
        let reflect: Vec<i64> = there.iter().chain(inner.iter().rev()).copied().collect();
        let edge: Vec<i64> = (-left..size + right).map(|at| at.clamp(0, size - 1)).collect();
        for (mode, expected) in [
            (PadMode::Cyclic, walk(&there)),
            (PadMode::Mirror, walk(&mirror)),
            (PadMode::Reflect, walk(&reflect)),
            (PadMode::Replicate, edge),
        ] {
            let padded = ops().pad_outer(&x, mode.clone(), &[(left, right)]).unwrap();
            prop_assert_eq!(integers(&padded), expected, "{:?}", mode);
        }
    }

    /// Tiling reads `x` modulo its sizes.
    #[test]
    fn tile_reads_modulo_the_sizes(rows in 1usize..4, columns in 1usize..4, down in 1i64..4, across in 1i64..4) {
        let x = counted(DType::S32, &[rows, columns]);
        let tiled = integers(&ops().tile(&x, &[down, across]).unwrap());
        let width = columns * across as usize;
        let expected: Vec<i64> = (0..rows * down as usize * width)
            .map(|i| ((i / width) % rows * columns + (i % width) % columns) as i64)
            .collect();
        prop_assert_eq!(tiled, expected);
    }
}

#[test]
fn pad_outer_pads_every_axis_and_with_a_scalar() {
    let mut ops = ops();
    let x = counted(DType::S32, &[2, 2]);
    let cyclic = ops.pad_outer(&x, PadMode::Cyclic, &[(1, 0), (0, 1)]).unwrap();
    assert_eq!(integers(&cyclic), [2, 3, 2, 0, 1, 0, 2, 3, 2]);
    let framed = ops.pad_outer(&x, PadMode::Value(Arg::Number(Number::Int(9))), &[(0, 0), (1, -1)]).unwrap();
    assert_eq!(integers(&framed), [9, 0, 9, 2]);
}

#[test]
fn tensors_are_cut_joined_and_overwritten() {
    let mut ops = ops();
    let x = counted(DType::S32, &[5]);
    let (first, second) = ops.split(&x, Cut::Share(0.5), 0).unwrap();
    assert_eq!((integers(&first), integers(&second)), (vec![0, 1, 2], vec![3, 4]));
    let joined = ops.concatenate(&[second, first], 0).unwrap();
    assert_eq!(integers(&joined), [3, 4, 0, 1, 2]);
    let sliced = ops.slice(&x, &[Start::Index(100)], &[3], Some(&[2])).unwrap();
    assert_eq!(integers(&sliced), [2, 4]);
    let late = given(scalar(DType::U8, 200));
    let sliced = ops.slice(&x, &[Start::Value(late.clone())], &[3], None).unwrap();
    assert_eq!(integers(&sliced), [2, 3, 4]);
    let nines = given(vector(DType::S32, &[9, 9]));
    assert_eq!(integers(&ops.put_slice(&x, &[Start::Index(-5)], &nines).unwrap()), [9, 9, 2, 3, 4]);
    let error = ops.put_slice(&x, &[Start::Index(-7)], &nines).unwrap_err().to_string();
    assert!(error.starts_with("put_slice: start -7 on axis 0"), "{error}");
    let error = ops.put_slice(&x, &[Start::Value(late)], &nines).unwrap_err().to_string();
    assert!(error.starts_with("put_slice: start 200 on axis 0"), "{error}");
}

#[test]
fn statistics_are_those_of_the_definition() {
    let mut ops = ops();
    let x = given(vector(DType::U8, &[200, 100, 210, 90]));
    assert_eq!(floats(&ops.mean(&x, Axes::All, false).unwrap()), [150.0]);
    assert_eq!(floats(&ops.variance(&x, Axes::All, false, 0).unwrap()), [3050.0]);
    assert_eq!(floats(&ops.variance(&x, Axes::All, false, 2).unwrap()), [6100.0]);
    let deviation = floats(&ops.standard_deviation(&x, 0, true, 0).unwrap())[0];
    assert!((deviation - 3050f64.sqrt()).abs() < 1e-5);
    // The products of u8 would wrap.
    let weights = given(vector(DType::U8, &[1, 3, 0, 0]));
    assert_eq!(floats(&ops.weighted_mean(&x, &weights, Axes::All, false).unwrap()), [125.0]);
    let matrix = counted(DType::F32, &[2, 3]);
    let weights = [1, 0, 0, 0, 0, 2].map(|x| Scalar::new(DType::F32, x).unwrap());
    let weights = given(tensor(DType::F32, &[3, 2], &weights));
    let mean = floats(&ops.weighted_mean(&matrix, &weights, [1, 0], false).unwrap())[0];
    assert!((mean - 10.0 / 3.0).abs() < 1e-6);
}

#[test]
fn means_of_small_floats_neither_overflow_nor_stop_growing() {
    let mut ops = ops();
    for dtype in [DType::F8E5M2, DType::F8E4M3FN, DType::F16, DType::BF16] {
        let x = ops.full(Shape::new(&[300, 300]), dtype, 3).unwrap();
        assert_eq!(floats(&ops.mean(&x, Axes::All, false).unwrap()), [3.0], "{dtype}");
        assert_eq!(floats(&ops.standard_deviation(&x, Axes::All, false, 0).unwrap()), [0.0], "{dtype}");
    }
}

#[test]
fn an_empty_list_of_axes_folds_nothing() {
    let mut ops = ops();
    let none = || Axes::List(Vec::new());
    let x = given(vector(DType::U8, &[0, 7]));
    assert_eq!(integers(&ops.sum(&x, none(), false).unwrap()), [0, 7]);
    // The truth value of each element alone.
    assert_eq!(integers(&ops.all(&x, none(), false).unwrap()), [0, 1]);
    assert_eq!(floats(&ops.mean(&x, none(), false).unwrap()), [0.0, 7.0]);
    assert_eq!(floats(&ops.logsumexp(&x, none(), false, None).unwrap()), [0.0, 7.0]);
}

#[test]
fn logsumexp_neither_overflows_nor_makes_nan_of_infinities() {
    let of = |dtype: DType, x: &[f64]| {
        floats(&ops().logsumexp(given(vector(dtype, x)), Axes::All, false, None).unwrap())[0]
    };
    let f64 = DType::F64;
    assert!((of(f64, &[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
    assert!((of(f64, &[-1000.0, -1001.0]) - (-1000.0 + (-1f64).exp().ln_1p())).abs() < 1e-12);
    assert_eq!(of(f64, &[-INF, -INF]), -INF);
    assert_eq!(of(f64, &[-INF, 3.0]), 3.0);
    assert_eq!(of(f64, &[INF, 3.0]), INF);
    assert_eq!(of(f64, &[INF, -INF]), INF);
    assert!(of(f64, &[NAN, 3.0]).is_nan());
    assert_eq!(of(f64, &[]), -INF);
    assert_eq!(of(DType::F16, &vec![11.0; 1024]), 17.9375);
    let mut ops = ops();
    let x = counted(DType::F64, &[2, 2]);
    let factor = given(vector(DType::F64, &[0.0, 2.0]));
    let rows = floats(&ops.logsumexp(&x, 1, false, Some(Arg::Value(factor))).unwrap());
    assert!(rows.iter().zip([1.0, 3.0]).all(|(a, b)| (a - b - 2f64.ln()).abs() < 1e-12), "{rows:?}");
}

#[test]
fn an_integer_divided_by_zero_is_an_error() {
    let x = given(vector(DType::S32, &[1, 2]));
    let error: Result<Tensor> = ops().floor_divide(&x, 0);
    assert!(matches!(error.unwrap_err().kind(), ErrorKind::DivisionByZero { .. }));
}

/// `np.matmul` of operands with the elements 0, 1, 2, ..., by loops.
fn product(a: &[usize], b: &[usize]) -> (Vec<usize>, Vec<f64>) {
    let lead = |x: &[usize]| x[..x.len() - 2].to_vec();
    let (lead_a, lead_b) = (Shape::new(&lead(a)), Shape::new(&lead(b)));
    let lead = lead_a.broadcast_with("test", &lead_b).unwrap();
    let (rows, inner, columns) = (a[a.len() - 2], a[a.len() - 1], b[b.len() - 1]);
    let mut out = Vec::new();
    for batch in 0..lead.size() {
        // The offset of a batch in an operand: its own leading sizes, aligned at the end, with broadcasting of 1.
        let offset = |x: &[usize]| {
            let (mut rest, mut step, mut at) = (batch, 1, 0);
            for back in 0..lead.rank() {
                let size = lead.sizes()[lead.rank() - 1 - back];
                let own = (x.len() - 2).checked_sub(back + 1).map_or(1, |axis| x[axis]);
                at += if own == 1 { 0 } else { rest % size * step };
                (rest, step) = (rest / size, step * own);
            }
            at * x[x.len() - 2] * x[x.len() - 1]
        };
        let (first, second) = (offset(a), offset(b));
        for row in 0..rows {
            for column in 0..columns {
                let terms =
                    (0..inner).map(|i| ((first + row * inner + i) * (second + i * columns + column)) as f64);
                out.push(terms.sum());
            }
        }
    }
    let mut sizes = lead.sizes().to_vec();
    sizes.extend([rows, columns]);
    (sizes, out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Batched products against loops, with broadcasting of leading axes.
    #[test]
    fn matmul_agrees_with_loops(
        lead in proptest::collection::vec(1usize..4, 0..3),
        ones in proptest::collection::vec((any::<bool>(), any::<bool>()), 3),
        cut in (0usize..3, 0usize..3),
        (rows, inner, columns) in (1usize..4, 0usize..4, 1usize..4),
    ) {
        let operand = |pick: fn(&(bool, bool)) -> bool, cut: usize, last: [usize; 2]| -> Vec<usize> {
            let lead = lead.iter().zip(&ones).map(|(&size, one)| if pick(one) { 1 } else { size });
            lead.skip(cut).chain(last).collect()
        };
        let a = operand(|one| one.0, cut.0, [rows, inner]);
        let b = operand(|one| one.1, cut.1, [inner, columns]);
        let (sizes, expected) = product(&a, &b);
        let got = ops().matmul(counted(DType::F64, &a), counted(DType::F64, &b)).unwrap();
        prop_assert_eq!(got.ty().shape.sizes(), &sizes[..]);
        prop_assert_eq!(floats(&got), expected);
    }
}

#[test]
fn products_of_vectors() {
    let mut ops = ops();
    let (x, y) = (counted(DType::F32, &[3]), given(vector(DType::F32, &[1.0, 2.0, 3.0])));
    assert_eq!(floats(&ops.dot(&x, &y).unwrap()), [8.0]);
    assert_eq!(floats(&ops.matmul(&x, &y).unwrap()), [8.0]);
    assert_eq!(floats(&ops.dot(&x, 2).unwrap()), [0.0, 2.0, 4.0]);
    assert_eq!(floats(&ops.outer(&x, &y).unwrap()), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 2.0, 4.0, 6.0]);
    let columns = counted(DType::F32, &[2, 3, 2]);
    assert_eq!(floats(&ops.matmul(&x, &columns).unwrap()), [10.0, 13.0, 28.0, 31.0]);
    let i = given(tensor(DType::C64, &[1], &[Scalar::new(DType::C64, Number::complex(0.0, 1.0)).unwrap()]));
    let square = elements(&ops.outer(&i, &i).unwrap());
    assert_eq!(square[0].value(), Number::complex(1.0, 0.0));
}

#[test]
fn covariances_are_those_of_the_definition() {
    let mut ops = ops();
    let x = [1.0, 2.0, 3.0, 6.0, 5.0, 4.0].map(|x| Scalar::new(DType::F64, x).unwrap());
    let x = given(tensor(DType::F64, &[3, 2], &x));
    // Deviations (-2, -2), (0, 2) and (2, 0).
    assert_eq!(floats(&ops.covariance(&x, None, 1).unwrap()), [4.0, 2.0, 2.0, 4.0]);
    let mean = given(vector(DType::F64, &[1.0, 2.0]));
    assert_eq!(floats(&ops.covariance(&x, Some(Arg::Value(mean)), 1).unwrap()), [10.0, 8.0, 8.0, 10.0]);
}

#[test]
fn conditionals_and_loops_run_at_once_outside_of_a_trace() {
    let mut ops = ops();
    let x = given(vector(DType::F32, &[1.0, 2.0]));
    let choose = |ops: &mut Ops, predicate: i32| {
        let predicate = given(scalar(DType::U8, predicate));
        let (x, y) = (x.clone(), x.clone());
        let results = cond(
            ops,
            vec![(predicate, Box::new(move |ops: &mut Ops| Ok(vec![ops.negate(&x)?.into()])))],
            Box::new(move |ops: &mut Ops| Ok(vec![ops.sum(&y, Axes::All, false)?.into()])),
        );
        floats(&results.unwrap()[0])
    };
    assert_eq!(choose(&mut ops, 1), [-1.0, -2.0]);
    assert_eq!(choose(&mut ops, 0), [3.0, 3.0]);

    // The loop captures the tensor and the limit.
    let limit = given(scalar(DType::S32, 5));
    let state = vec![given(scalar(DType::S32, 0)), counted(DType::F32, &[2])];
    let last = while_(
        &mut ops,
        state,
        None,
        |ops, s| Ok(ops.less(&s[0], &limit)?.into()),
        |ops, s| Ok(vec![ops.add(&s[0], 1)?.into(), ops.add(&s[1], &x)?.into()]),
    )
    .unwrap();
    assert_eq!((integers(&last[0]), floats(&last[1])), (vec![5], vec![5.0, 11.0]));

    let values = {
        let rule = Rules::Reverse(Box::new(|_, g| Ok(vec![g[0].clone().into()])));
        custom_derivative(&mut ops, vec![x.clone()], vec![x.clone()], rule)
    };
    assert_eq!(floats(&values.unwrap()[0]), [1.0, 2.0]);
}

/// The real and the imaginary part.
fn parts(number: Number) -> [f64; 2] {
    if let Number::Complex(number) = number { [number.re, number.im] } else { [number.to_f64(), 0.0] }
}

#[test]
fn a_reduction_converts_its_operand() {
    let mut b = ops();
    for &dtype in DType::ALL {
        for to in [DType::F32, DType::F64, DType::S64, DType::C128] {
            if dtype.is_complex() && !to.is_complex() {
                continue;
            }
            for sizes in [&[24, 5][..], &[2, 60], &[3, 1, 40], &[120, 1], &[0, 3], &[3, 0]] {
                // Every fourth element is a special one.
                let (edges, count) = (edges(dtype), sizes.iter().product());
                let small = |at: usize| Scalar::new(dtype, Number::Int((at % 2) as i128)).unwrap();
                let values =
                    (0..count).map(|at| if at % 4 == 3 { edges[at / 4 % edges.len()] } else { small(at) });
                let x = given(tensor(dtype, sizes, &values.collect::<Vec<_>>()));
                for (reduce, axes) in [(ReduceOp::Sum, [0]), (ReduceOp::Sum, [1]), (ReduceOp::Product, [1])] {
                    let axes = x.ty().shape.resolve_all("sum", &Axes::from(&axes[..])).unwrap();
                    let op = Op::Reduce { op: reduce, axes, keep_axes: false };
                    let got = b.emit_converted(op.clone(), &x, to).unwrap();
                    let converted = b.as_type(&x, to).unwrap();
                    let want = b.emit_one(op, &[converted]).unwrap();
                    assert_eq!(got.ty(), want.ty());
                    for (got, want) in elements(&got).into_iter().zip(elements(&want)) {
                        for (got, want) in parts(got.value()).into_iter().zip(parts(want.value())) {
                            let near = (got - want).abs() <= 1e-6 * want.abs();
                            assert!(
                                same(got, want) || near,
                                "{reduce:?} of {dtype} in {to}: {got} and {want}"
                            );
                        }
                    }
                }
            }
        }
    }
}
