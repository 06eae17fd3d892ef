//! Ops give the same bits when the caller chooses the memory of their results, also in an operand's memory.

#[path = "../../../core/tests/graph/common/mod.rs"]
mod graphs;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::backend::{Buffer, HostMemory};
use defn_core::graph::Graph;
use defn_core::region::Region;
use defn_core::{Number, Result, Scalar, TensorType};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::difference::difference;
use crate::memory::{live_bytes, peak_bytes, reset_peak};

/// Whether nothing else runs in this process, so that all allocations are the op's.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// An operand of an op.
type OperandValue = (TensorType, Arc<dyn Buffer>);

/// Some elements, different for each position.
fn elements(index: usize, ty: &TensorType) -> Arc<dyn Buffer> {
    let element = |position: usize| {
        let number = match ty.dtype.is_integer() {
            true => Number::Int((position * 7 + index) as i128 % 2),
            false => Number::Float(((11 * position + 3 * index) % 7) as f64 / 4.0 - 0.6),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    cpu_backend().from_host(ty, HostMemory::from(bytes)).unwrap()
}

fn bytes(ty: &TensorType, buffer: &dyn Buffer) -> Vec<u8> {
    let mut bytes = vec![0; ty.byte_size()];
    buffer.read(&mut bytes).unwrap();
    bytes
}

/// Whether results are equal bit for bit. Signs and payloads of NaN are not specified: a program's first runs and its
/// machine code may give different ones.
fn are_same(outputs: &[TensorType], a: &[Vec<u8>], b: &[Vec<u8>]) -> bool {
    outputs.iter().zip(a).zip(b).all(|((ty, a), b)| difference(ty, a, b).is_none())
}

/// Runs an op into memory with other contents. The operands `aliased` are stored in the result's memory; the
/// first of them is passed as `aliased`.
fn into_memory(
    op: &Op,
    arguments: &[OperandValue],
    outputs: &[TensorType],
    aliased: &[usize],
    checked: bool,
) -> Result<Vec<Vec<u8>>> {
    let windows: Vec<Window> = arguments
        .iter()
        .map(|(ty, buffer)| window("test", &Operand { ty: ty.clone(), buffer: buffer.clone() }).unwrap())
        .collect();
    let mut storages: Vec<Storage> =
        outputs.iter().map(|ty| Storage::allocate("test", ty.byte_size()).unwrap()).collect();
    let starts: Vec<*mut u8> = storages.iter_mut().map(|storage| storage.start_mut().unwrap()).collect();
    for (start, ty) in starts.iter().zip(outputs) {
        // SAFETY: the storage has room for the type.
        unsafe { start.write_bytes(0xA5, ty.byte_size()) };
    }
    for &index in aliased {
        let from = windows[index].bytes();
        // SAFETY: the operand has as many bytes as the only result.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), starts[0], arguments[index].0.byte_size()) };
    }
    let views: Vec<View<'_>> = arguments
        .iter()
        .zip(&windows)
        .enumerate()
        .map(|(index, ((ty, _), window))| {
            if aliased.contains(&index) {
                // SAFETY: the elements were just written.
                unsafe { View::of_part(ty, starts[0]) }
            } else {
                View::new(ty, window.bytes())
            }
        })
        .collect();
    let results: Vec<ViewMut<'_>> = outputs
        .iter()
        .zip(&starts)
        // SAFETY: each storage has room for its type, and only overwritten operands share it.
        .map(|(ty, &start)| unsafe { ViewMut::new(ty, start) })
        .collect();
    let types: Vec<&TensorType> = arguments.iter().map(|(ty, _)| ty).collect();
    let par = parallel(types.iter().copied().chain(outputs));
    reset_peak();
    let before = live_bytes();
    let outcome = run_into(op, &views, &results, aliased.first().copied(), par, checked, &|| Ok(()));
    let took = peak_bytes() - before;
    if COUNTS.load(Ordering::Relaxed) {
        assert_eq!(live_bytes(), before, "{op:?} keeps memory");
        let planned = workspace(op, &types, outputs);
        let holds = if outcome.is_ok() { took == planned } else { took <= planned };
        assert!(holds, "{op:?} of {types:?} to {outputs:?} takes {took} bytes, and {planned} are planned");
    }
    outcome?;
    let read = |(ty, &start): (&TensorType, &*mut u8)| {
        // SAFETY: all of it was written.
        unsafe { std::slice::from_raw_parts(start, ty.byte_size()) }.to_vec()
    };
    Ok(outputs.iter().zip(&starts).map(read).collect())
}

/// Checks an op with its result in each possible place, and returns its results.
fn check(op: &Op, arguments: &[OperandValue], outputs: &[TensorType]) -> Option<Vec<Arc<dyn Buffer>>> {
    let operands =
        || arguments.iter().map(|(ty, buffer)| Operand { ty: ty.clone(), buffer: buffer.clone() }).collect();
    let backend = cpu_backend();
    let mut results = None;
    for checked in [true, false] {
        let want = if checked {
            backend.run(op, operands(), outputs)
        } else {
            backend.run_unchecked(op, operands(), outputs)
        };
        let types: Vec<&TensorType> = arguments.iter().map(|(ty, _)| ty).collect();
        let alone = may_overwrite(op, &types, outputs);
        let same = |&index: &usize| arguments[index].0 == arguments[alone[0]].0;
        let together: Vec<usize> = alone.iter().copied().filter(same).collect();
        let mut cases: Vec<(Vec<usize>, Vec<OperandValue>)> = vec![(Vec::new(), arguments.to_vec())];
        cases.extend(alone.iter().map(|&index| (vec![index], arguments.to_vec())));
        let shown = || format!("{op:?} of {types:?} to {outputs:?}");
        let want = want.map(|want| {
            let read = |(ty, buffer): (&TensorType, &Arc<dyn Buffer>)| bytes(ty, &**buffer);
            (outputs.iter().zip(&want).map(read).collect::<Vec<_>>(), want)
        });
        for (aliased, arguments) in cases {
            let got = into_memory(op, &arguments, outputs, &aliased, checked);
            match (&want, got) {
                (Ok((want, _)), Ok(got)) => {
                    assert!(are_same(outputs, want, &got), "{} over {aliased:?}", shown());
                }
                (Err(want), Err(got)) => assert_eq!(want.to_string(), got.to_string(), "{}", shown()),
                (want, got) => panic!("{want:?} and {got:?}: {}", shown()),
            }
        }
        if together.len() > 1 && want.is_ok() {
            let one: Vec<OperandValue> = (0..arguments.len())
                .map(|index| arguments[if together.contains(&index) { together[0] } else { index }].clone())
                .collect();
            let want = into_memory(op, &one, outputs, &[], checked).ok();
            let got = into_memory(op, &one, outputs, &together, checked).ok();
            let same = match (&want, &got) {
                (Some(want), Some(got)) => are_same(outputs, want, got),
                (want, got) => want.is_none() && got.is_none(),
            };
            assert!(same, "{} over {together:?}", shown());
        }
        results = want.ok().map(|(_, buffers)| buffers.into_iter().collect());
    }
    results
}

/// Most bytes of a value of a graph that is checked. Products of products may have a million times as many elements.
const MAX_BYTES: usize = 1 << 24;

/// Checks every node of a region on the results of the nodes before it.
fn check_all(graph: &Graph) {
    if graph.nodes().iter().flat_map(|node| &node.outputs).any(|ty| ty.byte_size() > MAX_BYTES) {
        return;
    }
    let mut values: Vec<Vec<OperandValue>> = Vec::new();
    for (position, node) in graph.nodes().iter().enumerate() {
        let arguments: Vec<OperandValue> = node
            .inputs
            .iter()
            .map(|input| values[input.node as usize][input.output as usize].clone())
            .collect();
        // Other folds were expanded to loops.
        let foreign = if let Op::Fold(fold) = &node.op { !user_fold::is_native(fold) } else { false };
        let results = if foreign { None } else { check(&node.op, &arguments, &node.outputs) };
        let results =
            results.unwrap_or_else(|| node.outputs.iter().map(|ty| elements(position, ty)).collect());
        values.push(node.outputs.iter().cloned().zip(results).collect());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn ops_write_where_they_are_told(region in graphs::regions()) {
        check_all(region.graph());
    }
}

/// Ops that are large enough for several threads: operands, attributes and results, and the dtypes that replace T.
const LARGE: &[(&str, &str)] = &[
    ("add T[300][100] T[100] : T[300][100]", "u4 s8 u16 s32 f16 f32 f64 c64 c128"),
    ("sin T[30000] : T[30000]", "bf16 f32 f64 c64"),
    ("select u8[30000] T[30000] T[30000] : T[30000]", "s2 u8 f32 c128"),
    ("as_type T[30000] : f16[30000]", "s4 u16 f32 f64"),
    ("pad T[100][100] T {config: [(3, 5, 0), (0, 20, 2)]} : T[108][318]", "u2 bf16 f32 c64"),
    ("pad s32[100][100] f32 {config: [(3, 5, 0), (0, 20, 0)]} : f32[108][120]", "f32"),
    ("concatenate T[100][100] f32[50][100] T[1][100] {axis: 0} : f32[151][100]", "s8 f16 f32"),
    ("concatenate T[100][200] f32[100][300] {axis: 1} : f32[100][500]", "f32 s32"),
    ("stack f32[100][100] T[100][100] {axis: 1} : f32[100][2][100]", "s8 f16 f32"),
    ("put_slice T[200][100] f32[50][50] {starts: [150, 50]} : f32[200][100]", "s16 f32"),
    ("put_slice f32[200][100] T[50][50] s32 s32 : f32[200][100]", "s16 f32"),
    ("slice T[200][100] s32 s32 {lengths: [50, 100], strides: [1, 1]} : T[50][100]", "u4 f32"),
    ("transpose T[200][100] {axes: [1, 0]} : T[100][200]", "u4 f16 f32 c128"),
    ("reshape T[200][100] : T[20000]", "u4 f32 c128"),
    ("sum T[300][100] {axes: [0], keep_axes: false} : T[100]", "u32 s64 bf16 f32 c64"),
    ("sum T[3][40000] {axes: [1], keep_axes: false} : T[3]", "u32 s64 bf16 f32 c64"),
    ("reduce_max T[30][20][50] {axes: [0, 2], keep_axes: false} : T[20]", "u4 f16 f32"),
    ("argmax T[300][100] {tie_break: \"low\", axis: 0, keep_axis: false} : s32[100]", "u4 f16 f32 s64"),
    ("argmax T[30000] {tie_break: \"high\", axis: none, keep_axis: false} : s32", "f32 f64"),
    ("cumulative_sum T[300][100] {axis: 0, reverse: true} : T[300][100]", "s2 bf16 f32 c64"),
    ("dot T[96][80] T[80][70] {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : T[96][70]",
        "u4 s8 s32 f16 f32 f64 c64 c128"),
    ("dot T[9][40][50] f32[9][30][50] {contract_a: [2], batch_a: [0], contract_b: [2], batch_b: [0]} : f32[9][40][30]",
        "s8 f16 f32"),
    ("dot T[20][30][40] T[30][20] {contract_a: [0, 1], batch_a: [], contract_b: [1, 0], batch_b: []} : T[40]",
        "s32 bf16 f32 c64"),
    ("dot T[20000] T[20000] {contract_a: [0], batch_a: [], contract_b: [0], batch_b: []} : T", "s32 f32"),
    ("gather T[2000][10] s32[300][1] {axes: [0]} : T[300][10]", "u4 f32"),
    ("indexed_add T[2000][10] s32[300][1] f32[300][10] {axes: [0]} : f32[2000][10]", "s32 f16 f32"),
    ("indexed_add T[2000][10] s32[300][1] T[300][10] {axes: [0]} : T[2000][10]", "s4 u8 f16 f32 c64"),
    ("indexed_put T[2000][10] s32[300][1] f32[300][10] {axes: [0]} : f32[2000][10]", "s32 f32"),
    ("sort T[30000] {axis: 0, direction: \"asc\"} : T[30000]", "s4 u8 bf16 f32 s64"),
    ("sort T[70][90][3] {axis: 1, direction: \"desc\"} : T[70][90][3]", "u16 f32 f64"),
    ("sort T[80000] {axis: 0, direction: \"asc\"} : T[80000]", "u8 f16 f32 f64"),
    ("argsort T[80000] {axis: 0, direction: \"asc\"} : s32[80000]", "u8 f16 f32 s64"),
    ("argsort T[70][90][3] {axis: 0, direction: \"desc\"} : s64[70][90][3]", "u16 f32 f64"),
    ("partition T[80000] {axis: 0, kth: 30000} : T[80000]", "s4 u8 f16 f32 f64"),
    ("partition T[70][90][3] {axis: 1, kth: 89} : T[70][90][3]", "u16 f32 f64"),
    ("argpartition T[80000] {axis: 0, kth: 70000} : s32[80000]", "u8 f16 f32 s64"),
    ("isin T[80000] T[9000] : bool[80000]", "s4 u8 f16 f32 f64 s64"),
    ("isin T[300][100] f32[9000] : bool[300][100]", "s32 f16"),
    ("bincount T[80000] {length: 300} : s32[300]", "u8 s32 u64"),
    ("top_k T[20][1000] {k: 3} : T[20][3], s32[20][3]", "s8 f32 f64"),
    ("top_k T[20][1000] {k: 700} : T[20][700], s32[20][700]", "s8 f32 f64"),
    ("window_sum T[70][200] {window: [3, 20], strides: [1, 2], padding: [(1, 1, 0), (0, 0, 0)], \
        window_dilations: [1, 1]} : T[70][91]", "u8 f16 f32 c64"),
    ("window_max T[30000] {window: [100], strides: [3], padding: [(0, 0, 0)], window_dilations: [2]} : T[9934]",
        "u4 bf16 f32"),
    ("window_scatter_max T[100][100] T[50][50] T {window: [2, 2], strides: [2, 2], \
        padding: [(0, 0, 0), (0, 0, 0)], window_dilations: [1, 1]} : T[100][100]", "s8 f16 f32"),
    ("conv T[2][3][30][30] T[8][3][3][3] {strides: [1, 1], padding: [(1, 1, 0), (1, 1, 0)], input_dilation: [1, 1], \
        kernel_dilation: [1, 1], feature_group_size: 1, batch_group_size: 1, input_permutation: [0, 1, 2, 3], \
        kernel_permutation: [0, 1, 2, 3], output_permutation: [0, 1, 2, 3]} : T[2][8][30][30]", "f16 f32 f64 c64"),
    ("conv T[2][30][30][8] T[8][1][3][3] {strides: [1, 1], padding: [(1, 1, 0), (1, 1, 0)], input_dilation: [1, 1], \
        kernel_dilation: [1, 1], feature_group_size: 8, batch_group_size: 1, input_permutation: [0, 3, 1, 2], \
        kernel_permutation: [0, 1, 2, 3], output_permutation: [0, 3, 1, 2]} : T[2][30][30][8]", "bf16 f32 c128"),
    ("conv T[2][4][15][15] T[4][4][4][4] {strides: [1, 1], padding: [(2, 2, 0), (2, 2, 0)], input_dilation: [2, 2], \
        kernel_dilation: [1, 1], feature_group_size: 1, batch_group_size: 1, input_permutation: [0, 1, 2, 3], \
        kernel_permutation: [1, 0, 2, 3], output_permutation: [0, 1, 2, 3]} : T[2][4][30][30]", "f16 f32 f64 c64"),
    ("fft T[30][200][5] {axis: 1, length: 150, eps: 1e-10} : c64[30][150][5]", "s8 f32 c64"),
    ("ifft T[100][200] {axis: 1, length: 211, eps: 1e-10} : T[100][211]", "c64 c128"),
    ("fft T[70000] {axis: 0, length: 65536, eps: 1e-10} : T[65536]", "c64 c128"),
    ("rfft f32[100][200] {axis: 1, length: 200, eps: 1e-10} : c64[100][101]", "f32"),
    ("rfft T[100][200] {axis: 0, length: 75, eps: 1e-10} : c128[38][200]", "f64"),
    ("rfft f32[131072] {axis: 0, length: 131072, eps: 1e-10} : c64[65537]", "f32"),
    ("irfft c64[101][50] {axis: 0, length: 200, eps: 1e-10} : f32[200][50]", "f32"),
    ("irfft c64[60000] {axis: 0, length: 131072, eps: 1e-10} : f32[131072]", "f32"),
    ("triangular_solve T[90][90] T[90][50] {lower: true, left_side: true, transform_a: \"none\"} : T[90][50]",
        "f16 f32 f64 c64"),
    ("triangular_solve f32[30][20][20] T[30][20] {lower: false, left_side: true, transform_a: \"transpose\"} \
        : f32[30][20]", "s8 f32"),
    ("solve T[90][90] T[90][50] : T[90][50]", "f16 f32 c64"),
    ("solve s32[30][20][20] f32[30][20] : f32[30][20]", "f32"),
    ("cholesky T[40][20][20] : T[40][20][20]", "f16 f32 c128"),
    ("determinant T[40][20][20] : T[40]", "bf16 f32 c64"),
    ("lu T[40][20][20] : T[40][20][20], T[40][20][20], T[40][20][20]", "f16 f32 c64"),
    ("qr T[4][60][40] {mode: \"reduced\", eps: 1e-10} : T[4][60][40], T[4][40][40]", "f16 f32 c64"),
    ("qr T[60][40] {mode: \"complete\", eps: 1e-10} : T[60][60], T[60][40]", "f32"),
    ("svd T[50][30] {max_iter: 100, full_matrices: true} : T[50][50], T[30], T[30][30]", "f16 f32"),
    ("svd T[9][20][30] {max_iter: 100, full_matrices: false} : T[9][20][20], T[9][20], T[9][20][30]", "f32 f64"),
    ("eigh T[9][30][30] {max_iter: 1000, eps: 0.0} : T[9][30], T[9][30][30]", "bf16 f32 f64"),
    ("random_bits u32[2] : T[30000]", "u4 u8 u16 u32 u64"),
    ("random_uniform u32[2] : T[30000]", "f32 f64"),
    ("random_below u32[2] u64 : T[30000]", "u8 s32 s64"),
    ("reduce T[70][3000] T {axes: [0], keep_axes: false} : T[3000] fun (T, T) { %0 = parameter {index: 0} : T
        %1 = parameter {index: 1} : T %2 = multiply %0 %0 : T %3 = add %2 %1 : T return %3 }", "s32 f16 f32"),
    ("reduce T[3000][3] T {axes: [0], keep_axes: false} : T[3] fun (T, T) { %0 = parameter {index: 0} : T
        %1 = parameter {index: 1} : T %2 = multiply %0 %0 : T %3 = add %2 %1 : T return %3 }", "s32 f16 f32"),
];

/// A region of one op.
fn region_of(text: &str, dtype: &str) -> Region {
    let text = text.replace('T', dtype);
    let (head, rest) = text.split_once(" : ").unwrap();
    let (operands, attributes) = head.split_at(head.find('{').unwrap_or(head.len()));
    let mut words = operands.split_whitespace();
    let name = words.next().unwrap();
    let types: Vec<&str> = words.collect();
    let parameters: String = types
        .iter()
        .enumerate()
        .map(|(index, ty)| format!("%{index} = parameter {{index: {index}}} : {ty}\n"))
        .collect();
    let arguments: String = (0..types.len()).map(|index| format!(" %{index}")).collect();
    let last = types.len();
    let text = format!(
        "defn-ir 1\n({}) {{\n{parameters}%{last} = {name}{arguments} {attributes} : {rest}\nreturn %{last}\n}}",
        types.join(", ")
    );
    Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

/// Set in a process in which nothing else runs.
const ALONE: &str = "DEFN_TEST_ALONE";

#[test]
fn ops_take_the_memory_that_is_planned() {
    if std::env::var_os(ALONE).is_none() {
        let mut test = Command::new(std::env::current_exe().unwrap());
        let name = "backend::tests::ops_take_the_memory_that_is_planned";
        let output = test.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
        return;
    }
    COUNTS.store(true, Ordering::Relaxed);
    for (text, dtypes) in LARGE {
        for dtype in dtypes.split_whitespace() {
            check_all(region_of(text, dtype).graph());
        }
    }
    let mut runner = TestRunner::new(Config::with_cases(500));
    let every = |region: Region| {
        check_all(region.graph());
        Ok(())
    };
    runner.run(&graphs::regions(), every).unwrap();
}

#[test]
fn planned_memory_is_what_kernels_ask_for() {
    let take = |text: &str, dtype: &str| {
        let region = region_of(text, dtype);
        let graph = region.graph();
        let node = graph.nodes().last().unwrap();
        let types: Vec<&TensorType> = node.inputs.iter().map(|&input| graph.ty(input)).collect();
        workspace(&node.op, &types, &node.outputs)
    };
    assert_eq!(take("add T[300] T[300] : T[300]", "f32"), 0);
    // Rows are sorted in the result, with scratch memory of the same size.
    assert_eq!(take("sort T[30000] {axis: 0, direction: \"asc\"} : T[30000]", "f32"), 120_000);
    // In addition, columns are transposed to rows and back.
    assert_eq!(take("sort T[100][300] {axis: 0, direction: \"asc\"} : T[100][300]", "f32"), 360_000);
    // The scan computes in f32, from an f32 copy.
    let scan = "cumulative_sum T[300][100] {axis: 0, reverse: true} : T[300][100]";
    assert_eq!(take(scan, "f16"), 240_000);
    assert_eq!(take(scan, "f32"), 0);
}
