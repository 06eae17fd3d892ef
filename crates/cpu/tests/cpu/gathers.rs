//! Reads at positions that nests do themselves: the bits are those of the evaluator, for positions of every type, in and
//! out of range.

use std::sync::Arc;

use crate::graphs::digest::bytes;
use defn_core::backend::{Backend, Checks, Compiler, Executable, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::region::Region;
use defn_core::{DType, Kind, Number, Scalar, Tensor, TensorType};
use defn_cpu::{CpuCompiler, cpu_backend, with_threads};

/// Programs of positions `at`, some of which count from the end and some of which are out of range. `n` is the size of
/// the table, `w` that of its rows, `c` how many positions there are.
fn programs(dtype: DType, index: DType, [n, w, c]: [usize; 3]) -> Vec<Arc<Region>> {
    let head = format!(
        "defn-ir 1
        ({dtype}[{n}][{w}], {index}[{c}], {dtype}[{c}][{w}], {dtype}[{c}][{n}]) {{
            %0 = parameter {{index: 0}} : {dtype}[{n}][{w}]
            %1 = parameter {{index: 1}} : {index}[{c}]
            %2 = parameter {{index: 2}} : {dtype}[{c}][{w}]
            %3 = parameter {{index: 3}} : {dtype}[{c}][{n}]"
    );
    let half = c / 2;
    // Other sums may have another type.
    let fold = if dtype.is_inexact() && dtype.bits() >= 32 { "sum" } else { "reduce_max" };
    let bodies = [
        // Rows of a table.
        format!(
            "%4 = take %0 %1 {{axis: 0}} : {dtype}[{c}][{w}]
            %5 = multiply %4 %2 : {dtype}[{c}][{w}]
            %6 = add %5 %4 : {dtype}[{c}][{w}]
            return %6"
        ),
        // Columns of one.
        format!(
            "%4 = take %0 %1 {{axis: 1}} : {dtype}[{n}][{c}]
            %5 = multiply %4 %4 : {dtype}[{n}][{c}]
            return %5"
        ),
        // One element of each row, of which there are sums, too.
        format!(
            "%4 = reshape %1 : {index}[{c}][1]
            %5 = take_along_axis %3 %4 {{axis: 1}} : {dtype}[{c}][1]
            %6 = {fold} %3 {{axes: [1], keep_axes: true}} : {dtype}[{c}][1]
            %7 = subtract %5 %6 : {dtype}[{c}][1]
            return %7"
        ),
        // Single elements, by positions along both axes.
        format!(
            "%4 = slice %1 {{starts: [0], lengths: [{even}], strides: [1]}} : {index}[{even}]
            %5 = reshape %4 : {index}[{half}][2]
            %6 = gather %0 %5 {{axes: [0, 1]}} : {dtype}[{half}]
            %7 = multiply %6 %6 : {dtype}[{half}]
            return %7 %6",
            even = 2 * half,
        ),
        // The same without a result of its own, in a larger nest.
        format!(
            "%4 = slice %1 {{starts: [0], lengths: [{even}], strides: [1]}} : {index}[{even}]
            %5 = reshape %4 : {index}[{half}][2]
            %6 = gather %0 %5 {{axes: [0, 1]}} : {dtype}[{half}]
            %7 = multiply %6 %6 : {dtype}[{half}]
            return %7",
            even = 2 * half,
        ),
        // Sums of rows of a table, by twos, and of the elements of each row.
        format!(
            "%4 = slice %1 {{starts: [0], lengths: [{even}], strides: [1]}} : {index}[{even}]
            %5 = reshape %4 : {index}[{half}][2]
            %6 = take %0 %5 {{axis: 0}} : {dtype}[{half}][2][{w}]
            %7 = {fold} %6 {{axes: [1], keep_axes: false}} : {dtype}[{half}][{w}]
            %8 = take %0 %1 {{axis: 0}} : {dtype}[{c}][{w}]
            %9 = {fold} %8 {{axes: [1], keep_axes: false}} : {dtype}[{c}]
            return %7 %9",
            even = 2 * half,
        ),
        // A table and positions that are computed, along the first axis.
        format!(
            "%4 = add %2 %2 : {dtype}[{c}][{w}]
            %5 = add %1 %1 : {index}[{c}]
            %6 = broadcast %5 {{axes: [0], shape: [{c}, {w}]}} : {index}[{c}][{w}]
            %7 = take_along_axis %4 %6 {{axis: 0}} : {dtype}[{c}][{w}]
            %8 = add %7 %4 : {dtype}[{c}][{w}]
            return %8"
        ),
    ];
    let region = |body: String| {
        let text = format!("{head}\n            {body}\n        }}");
        Arc::new(Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}")))
    };
    bodies.into_iter().map(region).collect()
}

/// Elements for an input: of a table, or positions around an axis.
fn input(backend: &Arc<dyn Backend>, at: usize, ty: &TensorType) -> Tensor {
    let element = |position: usize| {
        let number = (7 * position + 3 * at) % 11;
        let number = match (at, ty.dtype.is_inexact()) {
            (1, _) if position.is_multiple_of(13) => Number::Int(120),
            (1, _) if ty.dtype.kind() == Kind::Unsigned => Number::Int(number as i128),
            (1, _) => Number::Int(2 * number as i128 - 11),
            (_, true) => Number::Float(number as f64 / 4.0 - 0.6),
            (_, false) => Number::Int(number as i128 % 3),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    let buffer = backend.from_host(ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty.clone(), buffer)
}

fn run(program: &Arc<dyn Executable>, region: &Region) -> Vec<(TensorType, Vec<u8>)> {
    let backend = cpu_backend();
    let arguments = region.inputs().iter().enumerate().map(|(at, ty)| input(&backend, at, ty)).collect();
    bytes(&program.run(&backend, arguments, &NoHooks).unwrap())
}

/// Runs programs often enough that they have machine code.
fn agree(dtype: DType, index: DType, sizes: [usize; 3]) {
    for region in programs(dtype, index, sizes) {
        let evaluator = Evaluator::new(cpu_backend()).compile(region.clone(), Checks::default()).unwrap();
        let compiled = CpuCompiler::new().compile(region.clone(), Checks::default()).unwrap();
        let want = run(&evaluator, &region);
        let check = || {
            let got = run(&compiled, &region);
            assert!(want == got, "{dtype} {index} {sizes:?}\n{}", region.to_text());
        };
        check();
        with_threads(1, || (0..8).for_each(|_| check())).unwrap();
        with_threads(3, check).unwrap();
    }
}

#[test]
fn positions_of_every_type_are_clamped() {
    for &index in DType::ALL.iter().filter(|dtype| dtype.is_integer() && dtype.bits() >= 8) {
        for sizes in [[5, 20, 30], [9, 3, 41], [1, 17, 2]] {
            agree(DType::F32, index, sizes);
        }
    }
}

#[test]
fn threads_share_long_gathers() {
    agree(DType::F32, DType::S32, [60, 33, 3000]);
}

#[test]
fn tables_of_every_type_are_read() {
    // Of complex numbers and of what is narrow, single elements are read by the kernels.
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.bits() >= 8 && !dtype.is_bool()) {
        for sizes in [[7, 32, 9], [4, 1, 130], [33, 15, 65]] {
            agree(dtype, DType::S32, sizes);
        }
    }
}
