//! On random graphs, compiled programs give the bits of the evaluator, except for those of NaNs, and call the same
//! hooks.

use std::sync::Arc;

use crate::graphs::bounded::bounded;
use crate::graphs::digest::{Notes, bytes};
use crate::graphs::regions;
use defn_core::backend::{Backend, Checks, Compiler, HostMemory};
use defn_core::evaluator::Evaluator;
use defn_core::region::Region;
use defn_core::{DType, Number, Result, Scalar, Tensor, TensorType, pass};
use defn_cpu::{CpuCompiler, cpu_backend, with_threads};
use proptest::prelude::*;

/// The least number of random graphs; `DEFN_TEST_GRAPHS` sets a larger one.
const GRAPHS: u32 = 2000;

/// Elements for an input, different for each position.
fn input(backend: &Arc<dyn Backend>, index: usize, ty: &TensorType) -> Tensor {
    let element = |position: usize| {
        let number = (11 * position + 3 * index) % 7;
        let number = match !ty.dtype.is_inexact() {
            // All types have these values.
            true => Number::Int((position + index) as i128 % 2),
            false => Number::Float(number as f64 / 4.0 - 0.6),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    let buffer = backend.from_host(ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty.clone(), buffer)
}

/// The results of a program, and the values that its hooks see.
type Seen = (Vec<(TensorType, Vec<u8>)>, Vec<(usize, Vec<(TensorType, Vec<u8>)>)>);

fn run(compiler: &dyn Compiler, region: &Arc<Region>) -> Result<Seen> {
    let backend = cpu_backend();
    let program = compiler.compile(region.clone(), Checks::default())?;
    let arguments = region.inputs().iter().enumerate().map(|(index, ty)| input(&backend, index, ty));
    let notes = Notes::default();
    let results = program.run(&backend, arguments.collect(), &notes)?;
    let shown = notes.0.into_inner().into_iter().map(|(slot, values)| (slot, with_one_nan(values)));
    Ok((with_one_nan(bytes(&results)), shown.collect()))
}

/// Replaces the bits of every NaN by the same ones: of two NaNs, processors keep that of the first operand, and in the
/// code of a commutative op either operand may be the first.
fn with_one_nan(mut values: Vec<(TensorType, Vec<u8>)>) -> Vec<(TensorType, Vec<u8>)> {
    for (ty, bytes) in &mut values {
        // Complex elements are two floats each.
        let dtype = ty.dtype.to_real();
        for element in bytes.chunks_exact_mut(dtype.storage_bytes()) {
            if Scalar::from_bytes(dtype, element).value().to_f64().is_nan() {
                element.fill(u8::MAX);
            }
        }
    }
    values
}

fn cases() -> u32 {
    std::env::var("DEFN_TEST_GRAPHS").map_or(GRAPHS, |count| count.parse().expect("a number of graphs"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn compiled_programs_give_what_the_evaluator_gives(region in regions()) {
        let region = Arc::new(bounded(&region, 3));
        let want = evaluated(&region);
        let got = run(&CpuCompiler::new(), &region);
        match (want, got) {
            (Ok(want), Ok(got)) => prop_assert_eq!(want, got, "{}", region.to_text()),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => prop_assert!(false, "{error} in\n{}", region.to_text()),
            (Err(error), Ok(_)) => prop_assert!(false, "no {error} in\n{}", region.to_text()),
        }
    }
}

/// The evaluator's results for the region that compilation starts with: it is simplified, and blocks are expanded.
/// Simplification may change the sign of a zero, and it sees less inside a block.
fn evaluated(region: &Arc<Region>) -> Result<Seen> {
    let expanded = Arc::new(pass::expand(region, &cpu_backend())?);
    run(&Evaluator::new(cpu_backend()), &expanded)
}

/// The numbers of threads that must give the same bits; one of them exceeds the number of processors.
const THREADS: [usize; 3] = [1, 2, 7];

/// The results of a program on each of [`THREADS`], by both compilers, whose numbers of threads are set in two ways.
fn on_any_number_of_threads(region: &Arc<Region>) -> Vec<Result<Seen>> {
    let each = THREADS.iter().flat_map(|&threads| {
        let compiler = CpuCompiler::new().with_threads(threads).unwrap();
        let want = with_threads(threads, || evaluated(region)).unwrap();
        [want, run(&compiler, region)]
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 8))]

    #[test]
    fn any_number_of_threads_gives_the_same_bits(region in regions()) {
        let region = Arc::new(bounded(&region, 3));
        let mut seen = on_any_number_of_threads(&region).into_iter();
        let first = seen.next().unwrap();
        for other in seen {
            match (&first, other) {
                (Ok(first), Ok(other)) => prop_assert_eq!(first, &other, "{}", region.to_text()),
                (Err(_), Err(_)) => {}
                (Ok(_), Err(error)) => prop_assert!(false, "{error} in\n{}", region.to_text()),
                (Err(error), Ok(_)) => prop_assert!(false, "no {error} in\n{}", region.to_text()),
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits_of_what_is_large() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::S16] {
        for region in [together(dtype, 301, 1000), by_rows(dtype, 1001, 300), by_rows(dtype, 3, 100_001)] {
            let seen = on_any_number_of_threads(&Arc::new(region));
            assert!(seen.iter().all(|other| other.as_ref().unwrap() == seen[0].as_ref().unwrap()), "{dtype}");
        }
    }
}

/// A program whose operations are fused: broadcast rows and columns, constants, counts, slices and a reversed row, with
/// intermediate values as results.
fn together(dtype: DType, rows: usize, columns: usize) -> Region {
    let text = format!(
        "defn-ir 1
        ({dtype}[{rows}][{columns}], {dtype}[{columns}], {dtype}[{rows}][1], f32[{wide}]) {{
            %0 = parameter {{index: 0}} : {dtype}[{rows}][{columns}]
            %1 = parameter {{index: 1}} : {dtype}[{columns}]
            %2 = parameter {{index: 2}} : {dtype}[{rows}][1]
            %3 = parameter {{index: 3}} : f32[{wide}]
            %4 = add %0 %1 : {dtype}[{rows}][{columns}]
            %5 = multiply %4 %2 : {dtype}[{rows}][{columns}]
            %6 = iota {{axis: 1}} : {dtype}[{rows}][{columns}]
            %7 = subtract %5 %6 : {dtype}[{rows}][{columns}]
            %8 = reverse %1 {{axes: [0]}} : {dtype}[{columns}]
            %9 = max %7 %8 : {dtype}[{rows}][{columns}]
            %10 = slice %3 {{starts: [1], lengths: [{columns}], strides: [1]}} : f32[{columns}]
            %11 = greater %7 %10 : bool[{rows}][{columns}]
            %12 = select %11 %9 %4 : {dtype}[{rows}][{columns}]
            %13 = sin %12 : {float}[{rows}][{columns}]
            %14 = reshape %13 : {float}[{size}]
            %15 = negate %14 : {float}[{size}]
            return %5 %11 %15 %14
        }}",
        wide = columns + 2,
        size = rows * columns,
        float = dtype.to_float(),
    );
    Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn tiles_of_every_size_and_type_give_what_the_evaluator_gives() {
    let sizes =
        [(1, 1), (1, 7), (3, 341), (1, 1023), (2, 512), (1, 1025), (7, 1000), (300, 301), (2, 150_001)];
    // Differences and sums are those of numbers.
    let dtypes: Vec<DType> =
        DType::ALL.iter().copied().filter(|dtype| !dtype.is_complex() && !dtype.is_bool()).collect();
    for (rows, columns) in sizes {
        for &dtype in &dtypes {
            let region = Arc::new(together(dtype, rows, columns));
            let want = run(&Evaluator::new(cpu_backend()), &region).unwrap();
            let got = run(&CpuCompiler::new(), &region).unwrap();
            assert!(want == got, "{dtype} {rows} {columns}");
        }
    }
}

/// A program with row-block fusion: softmax, and normalisation with a variance. Sums of intermediate values are
/// results.
fn by_rows(dtype: DType, rows: usize, len: usize) -> Region {
    let float = dtype.to_float();
    let text = format!(
        "defn-ir 1
        ({dtype}[{rows}][{len}], {float}[{len}], {float}[{rows}]) {{
            %0 = parameter {{index: 0}} : {dtype}[{rows}][{len}]
            %1 = parameter {{index: 1}} : {float}[{len}]
            %2 = parameter {{index: 2}} : {float}[{rows}]
            %3 = reduce_max %0 {{axes: [1], keep_axes: true}} : {dtype}[{rows}][1]
            %4 = subtract %0 %3 : {dtype}[{rows}][{len}]
            %5 = exp %4 : {float}[{rows}][{len}]
            %6 = sum %5 {{axes: [1], keep_axes: true}} : {float}[{rows}][1]
            %7 = divide %5 %6 : {float}[{rows}][{len}]
            %8 = multiply %7 %1 : {float}[{rows}][{len}]
            %9 = sum %8 {{axes: [1], keep_axes: false}} : {float}[{rows}]
            %10 = add %9 %2 : {float}[{rows}]
            %11 = broadcast %10 {{shape: [{rows}, {len}], axes: [0]}} : {float}[{rows}][{len}]
            %12 = subtract %8 %11 : {float}[{rows}][{len}]
            %13 = multiply %12 %12 : {float}[{rows}][{len}]
            %14 = sum %13 {{axes: [1], keep_axes: false}} : {float}[{rows}]
            %15 = sqrt %14 : {float}[{rows}]
            %16 = reduce_min %13 {{axes: [0, 1], keep_axes: false}} : {float}
            %17 = broadcast %15 {{shape: [{rows}, {len}], axes: [0]}} : {float}[{rows}][{len}]
            %18 = divide %12 %17 : {float}[{rows}][{len}]
            %19 = add %18 %16 : {float}[{rows}][{len}]
            return %7 %15 %19 %14
        }}"
    );
    Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn rows_of_every_length_give_what_the_evaluator_gives() {
    let lengths = [1, 2, 7, 16, 341, 511, 512, 513, 1023, 1024, 1025, 5000, 65_536, 65_537];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::S32, DType::U8] {
        for len in lengths {
            for rows in [1, 3, 70, 1000] {
                if rows * len > 400_000 {
                    continue;
                }
                let region = Arc::new(by_rows(dtype, rows, len));
                let want = run(&Evaluator::new(cpu_backend()), &region).unwrap();
                let got = run(&CpuCompiler::new(), &region).unwrap();
                assert!(want == got, "{dtype} {rows} {len}");
            }
        }
    }
}

/// A program that normalises the middle axis, with operands of each column and of each row.
fn by_columns(dtype: DType, [a, r, c]: [usize; 3]) -> Region {
    let float = dtype.to_float();
    let text = format!(
        "defn-ir 1
        ({dtype}[{a}][{r}][{c}], {float}[{c}], {float}[{r}][1]) {{
            %0 = parameter {{index: 0}} : {dtype}[{a}][{r}][{c}]
            %1 = parameter {{index: 1}} : {float}[{c}]
            %2 = parameter {{index: 2}} : {float}[{r}][1]
            %3 = reduce_max %0 {{axes: [1], keep_axes: true}} : {dtype}[{a}][1][{c}]
            %4 = subtract %0 %3 : {dtype}[{a}][{r}][{c}]
            %5 = exp %4 : {float}[{a}][{r}][{c}]
            %6 = sum %5 {{axes: [1], keep_axes: true}} : {float}[{a}][1][{c}]
            %7 = divide %5 %6 : {float}[{a}][{r}][{c}]
            %8 = multiply %7 %2 : {float}[{a}][{r}][{c}]
            %9 = sum %8 {{axes: [1], keep_axes: false}} : {float}[{a}][{c}]
            %10 = add %9 %1 : {float}[{a}][{c}]
            %11 = reshape %10 : {float}[{a}][1][{c}]
            %12 = subtract %8 %11 : {float}[{a}][{r}][{c}]
            %13 = multiply %12 %12 : {float}[{a}][{r}][{c}]
            %14 = sum %13 {{axes: [1], keep_axes: true}} : {float}[{a}][1][{c}]
            %15 = sqrt %14 : {float}[{a}][1][{c}]
            %16 = divide %12 %15 : {float}[{a}][{r}][{c}]
            %17 = reduce_min %16 {{axes: [0, 1], keep_axes: false}} : {float}[{c}]
            return %7 %15 %16 %14 %17
        }}"
    );
    Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn columns_of_every_length_give_what_the_evaluator_gives() {
    let rows = [2, 3, 15, 16, 17, 31, 32, 33, 47, 48, 100, 256, 1000];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::S32, DType::U8] {
        for rows in rows {
            for columns in [8, 13, 16, 100, 1024, 1025, 2500] {
                for outer in [1, 3] {
                    if outer * rows * columns > 150_000 {
                        continue;
                    }
                    let region = Arc::new(by_columns(dtype, [outer, rows, columns]));
                    let want = run(&Evaluator::new(cpu_backend()), &region).unwrap();
                    let got = run(&CpuCompiler::new(), &region).unwrap();
                    assert!(want == got, "{dtype} {outer} {rows} {columns}");
                }
            }
        }
    }
}

/// A program with reductions of elementwise results, some of which are results: over all axes, the first axes, the
/// middle one and the last.
fn folded(dtype: DType, sizes: [usize; 3], wanted: usize) -> Region {
    let [a, b, c] = sizes;
    let float = dtype.to_float();
    let sum = if dtype == DType::U8 { DType::U32 } else { dtype };
    let made = ["%4 %5", "%5", "%4", "%4 %7 %10", "%8", "%6 %8 %9", "%10 %6 %11"][wanted];
    let text = format!(
        "defn-ir 1
        ({dtype}[{a}][{b}][{c}], {dtype}[{c}]) {{
            %0 = parameter {{index: 0}} : {dtype}[{a}][{b}][{c}]
            %1 = parameter {{index: 1}} : {dtype}[{c}]
            %2 = add %0 %1 : {dtype}[{a}][{b}][{c}]
            %3 = multiply %2 %0 : {dtype}[{a}][{b}][{c}]
            %4 = sum %2 {{axes: [0, 1, 2], keep_axes: false}} : {sum}
            %5 = reduce_max %3 {{axes: [0, 1, 2], keep_axes: true}} : {dtype}[1][1][1]
            %6 = sum %2 {{axes: [0, 1], keep_axes: false}} : {sum}[{c}]
            %7 = sin %3 : {float}[{a}][{b}][{c}]
            %8 = sum %7 {{axes: [1], keep_axes: false}} : {float}[{a}][{c}]
            %9 = all %2 {{axes: [0], keep_axes: false}} : bool[{b}][{c}]
            %10 = product %7 {{axes: [1, 2], keep_axes: false}} : {float}[{a}]
            %11 = reshape %6 : {sum}[1][{c}]
            return {made}
        }}"
    );
    Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn folds_of_every_shape_give_what_the_evaluator_gives() {
    let sizes = [
        [1, 1, 1],
        [2, 3, 4],
        [64, 1, 10],
        [3, 65, 17],
        [1, 40, 512],
        [2, 17, 513],
        [33, 2, 1300],
        [1, 3, 70_000],
        [5, 4000, 9],
        [2, 1, 131_073],
        [20_000, 1, 8],
    ];
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16, DType::S32, DType::U8] {
        for sizes in sizes {
            let is_long = sizes.iter().product::<usize>() > 60_000;
            if is_long && ![DType::F32, DType::BF16].contains(&dtype) {
                continue;
            }
            for wanted in 0..7 {
                let region = Arc::new(folded(dtype, sizes, wanted));
                let want = run(&Evaluator::new(cpu_backend()), &region).unwrap();
                let got = run(&CpuCompiler::new(), &region).unwrap();
                assert!(want == got, "{dtype} {sizes:?} {wanted}");
            }
        }
    }
}

#[test]
fn variances_of_long_rows_are_near_those_of_two_passes() {
    for (rows, len) in [(1, 65_537), (3, 70_000), (2, 131_072)] {
        let text = format!(
            "defn-ir 1
            (f32[{rows}][{len}]) {{
                %0 = parameter {{index: 0}} : f32[{rows}][{len}]
                %1 = constant {{value: {len}.0}} : f32
                %2 = sum %0 {{axes: [1], keep_axes: true}} : f32[{rows}][1]
                %3 = divide %2 %1 : f32[{rows}][1]
                %4 = subtract %0 %3 : f32[{rows}][{len}]
                %5 = multiply %4 %4 : f32[{rows}][{len}]
                %6 = sum %5 {{axes: [1], keep_axes: false}} : f32[{rows}]
                %7 = divide %6 %1 : f32[{rows}]
                return %7 %2 %3
            }}"
        );
        let region = Arc::new(Region::from_text(&text).unwrap());
        let want = run(&Evaluator::new(cpu_backend()), &region).unwrap();
        let numbers = |seen: &Seen| -> Vec<f32> {
            let numbers = seen.0[0].1.as_chunks::<4>().0.iter();
            numbers.map(|&bytes| f32::from_ne_bytes(bytes)).collect()
        };
        for threads in THREADS {
            let got = with_threads(threads, || run(&CpuCompiler::new(), &region)).unwrap().unwrap();
            assert!(want.0[1..] == got.0[1..], "sums of {rows} x {len}");
            for (want, got) in numbers(&want).into_iter().zip(numbers(&got)) {
                assert!((want - got).abs() <= 1e-5 * want, "{got} for {want}");
            }
            assert_eq!(got, run(&CpuCompiler::new(), &region).unwrap(), "{threads} threads");
        }
    }
}

#[test]
fn inputs_have_elements_of_every_type() {
    let backend = cpu_backend();
    for &dtype in DType::ALL {
        let ty = TensorType::new(dtype, defn_core::Shape::new(&[7])).unwrap();
        let bytes = input(&backend, 0, &ty).host_bytes("test").unwrap();
        let width = dtype.storage_bytes();
        assert_ne!(bytes.bytes()[..width], bytes.bytes()[width..2 * width], "{dtype}");
    }
}
