//! What is read through, in how many steps, and with the bits of the evaluator.

use std::sync::Arc;

use defn_core::backend::{Checks, Compiler, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::region::Region;
use defn_core::{Tensor, pass};

use crate::backend::cpu_backend;
use crate::compiler::CpuCompiler;
use crate::compiler::plan::Plan;

/// How many steps a program has; it gives the bits of the evaluator.
fn steps(text: &str) -> usize {
    let region = Arc::new(Region::from_text(&format!("defn-ir 1\n{text}")).unwrap());
    let arguments: Vec<Tensor> = region
        .inputs()
        .iter()
        .map(|ty| {
            let bytes: Vec<u8> = (0..ty.byte_size()).map(|at| (at * 7 % 61) as u8).collect();
            let buffer = cpu_backend().from_host(ty, HostMemory::new(Arc::new(bytes)));
            Tensor::concrete(ty.clone(), buffer.unwrap())
        })
        .collect();
    let results = |compiler: &dyn Compiler| -> Vec<Vec<u8>> {
        let executable = compiler.compile(region.clone(), Checks::default()).unwrap();
        let results = executable.run(&cpu_backend(), arguments.clone(), &NoHooks).unwrap();
        let read = |tensor: &Tensor| {
            let mut bytes = vec![0; tensor.ty().byte_size()];
            tensor.require_buffer("test", "").unwrap().read(&mut bytes).unwrap();
            bytes
        };
        results.iter().map(read).collect()
    };
    let wanted = results(&Evaluator::new(cpu_backend()));
    for threads in [1, 2] {
        assert_eq!(results(&CpuCompiler::new().with_threads(threads).unwrap()), wanted, "{text}");
    }
    let expanded = Arc::new(pass::expand(&region, &cpu_backend()).unwrap());
    let donations = vec![None; region.results().len()];
    Plan::new(expanded, &cpu_backend(), &donations).unwrap().steps.len()
}

/// A board with its last row before it and its first behind it, and then the same with columns.
const TORUS: &str = "%1 = slice %0 {starts: [47, 0], lengths: [1, 40], strides: [1, 1]} : T[1][40]
    %2 = slice %0 {starts: [0, 0], lengths: [1, 40], strides: [1, 1]} : T[1][40]
    %3 = concatenate %1 %0 %2 {axis: 0} : T[50][40]
    %4 = slice %3 {starts: [0, 39], lengths: [50, 1], strides: [1, 1]} : T[50][1]
    %5 = slice %3 {starts: [0, 0], lengths: [50, 1], strides: [1, 1]} : T[50][1]
    %6 = concatenate %4 %3 %5 {axis: 1} : T[50][42]
    %7 = slice %6 {starts: [0, 2], lengths: [48, 40], strides: [1, 1]} : T[48][40]
    %8 = slice %6 {starts: [2, 1], lengths: [48, 40], strides: [1, 1]} : T[48][40]";

fn torus(dtype: &str, rest: &str, result: &str) -> String {
    let text = format!(
        "(T[48][40]) {{
    %0 = parameter {{index: 0}} : T[48][40]
    {TORUS}
    {rest}
    return {result}
}}"
    );
    text.replace("T[", &format!("{dtype}["))
}

#[test]
fn stencils_on_a_torus_read_the_board() {
    for dtype in ["u8", "s16", "f32", "f64"] {
        let sum = "%9 = add %7 %8 : T[48][40]\n    %10 = add %9 %0 : T[48][40]";
        assert_eq!(steps(&torus(dtype, sum, "%10")), 1, "{dtype}");
    }
}

#[test]
fn what_others_need_stays_in_memory() {
    // The second join is a result. Then there are both joins, of which the second reads columns of the first in place,
    // and the sum.
    let sum = "%9 = add %7 %8 : T[48][40]";
    assert_eq!(steps(&torus("f32", sum, "%9 %6")), 3);
    // The first join is read in another order, too. Columns and the second join are still read through.
    let sums = "%9 = add %7 %8 : T[48][40]\n    %10 = reverse %3 {axes: [0]} : T[50][40]
    %11 = negate %10 : T[50][40]";
    assert_eq!(steps(&torus("f32", sums, "%9 %11")), 3);
}

#[test]
fn windows_of_other_joins_are_read_through() {
    // Zeros around a board, a window of which is written anew.
    let padded = "(f32[48][40], f32[44][40]) {
    %0 = parameter {index: 0} : f32[48][40]
    %1 = parameter {index: 1} : f32[44][40]
    %2 = constant {value: 0.0} : f32
    %3 = put_slice %0 %1 {starts: [3, 0]} : f32[48][40]
    %4 = pad %3 %2 {config: [(1, 0, 0), (0, 0, 0)]} : f32[49][40]
    %5 = slice %4 {starts: [0, 0], lengths: [48, 40], strides: [1, 1]} : f32[48][40]
    %6 = slice %4 {starts: [1, 0], lengths: [48, 40], strides: [1, 1]} : f32[48][40]
    %7 = add %5 %6 : f32[48][40]
    return %7
}";
    assert_eq!(steps(padded), 1);
    // What is rolled along one axis, and then along the other.
    let rolled = "(s8[48][40]) {
    %0 = parameter {index: 0} : s8[48][40]
    %1 = slice %0 {starts: [5, 0], lengths: [43, 40], strides: [1, 1]} : s8[43][40]
    %2 = slice %0 {starts: [0, 0], lengths: [5, 40], strides: [1, 1]} : s8[5][40]
    %3 = concatenate %1 %2 {axis: 0} : s8[48][40]
    %4 = slice %3 {starts: [0, 39], lengths: [48, 1], strides: [1, 1]} : s8[48][1]
    %5 = slice %3 {starts: [0, 0], lengths: [48, 39], strides: [1, 1]} : s8[48][39]
    %6 = concatenate %4 %5 {axis: 1} : s8[48][40]
    %7 = subtract %6 %0 : s8[48][40]
    return %7
}";
    assert_eq!(steps(rolled), 1);
}

#[test]
fn what_a_join_computes_in_its_place_is_not_read_through() {
    let text = "(f32[48][40]) {
    %0 = parameter {index: 0} : f32[48][40]
    %1 = exp %0 : f32[48][40]
    %2 = constant {value: 0.0} : f32
    %3 = pad %1 %2 {config: [(1, 1, 0), (0, 0, 0)]} : f32[50][40]
    %4 = slice %3 {starts: [0, 0], lengths: [48, 40], strides: [1, 1]} : f32[48][40]
    %5 = slice %3 {starts: [2, 0], lengths: [48, 40], strides: [1, 1]} : f32[48][40]
    %6 = add %4 %5 : f32[48][40]
    return %6
}";
    // The join with the exponentials, and the sum.
    assert_eq!(steps(text), 2);
}

#[test]
fn transpositions_are_read_with_more_or_fewer_axes() {
    for shape in ["[1][256][128]", "[256][1][128]", "[256][128]", "[32768]", "[2][128][128]"] {
        let text = format!(
            "(f32[128][256]) {{
    %0 = parameter {{index: 0}} : f32[128][256]
    %1 = transpose %0 {{axes: [1, 0]}} : f32[256][128]
    %2 = reshape %1 : f32{shape}
    %3 = add %2 %2 : f32{shape}
    return %3
}}"
        );
        assert!(steps(&text) <= 2, "{shape}");
    }
}
