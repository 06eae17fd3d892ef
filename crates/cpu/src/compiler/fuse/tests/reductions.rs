//! Reductions of every kind of group, which nests compute as the kernels do.

use super::*;
use crate::compiler::fuse::Reduction;

/// The nest of all nodes of a program, of the groups of its first reduction.
fn nest_of_groups(region: &Region) -> Option<Fused> {
    let fusion = FusionGroups::new(region);
    let graph = region.graph();
    let reductions = graph.nodes().iter().enumerate().filter_map(|(at, node)| {
        let (_, domain) = Reduction::with_domain(graph, node)?;
        Some(fusion.turned_columns(at).map_or(domain.clone(), |columns| domain.turned(columns)))
    });
    let domain = reductions.into_iter().next()?;
    let mut nodes = Vec::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        if let Some((reduction, _)) = Reduction::of(&node.op) {
            nodes.push((at, NodeRole::Reduction(reduction)));
        } else if let Role::Elementwise = fusion.roles[at] {
            let is_of_elements = node.outputs[0].size() == domain.elements();
            nodes.push((at, if is_of_elements { NodeRole::Elements } else { NodeRole::Rows }));
        }
    }
    let results = region.results().iter().copied().collect();
    fuse(graph, &fusion, nodes, &domain, &results, &[], false)
}

fn shape(sizes: &[usize]) -> String {
    sizes.iter().map(|size| format!("[{size}]")).collect()
}

/// Compares a program with the kernels: `[N]` is the shape of the operand, `[K]` that of what is left of it, `[B]` that
/// of a second operand. Elements do not repeat with a period of lanes.
fn check_groups(dtype: DType, sizes: &[usize], axes: &[usize], lines: &[&str], results: &str) {
    let kept: Vec<usize> =
        sizes.iter().enumerate().map(|(axis, &size)| if axes.contains(&axis) { 1 } else { size }).collect();
    let last = &sizes[sizes.len() - 1..];
    let fill = |line: &&str| {
        let shapes = [("[N]", sizes), ("[K]", &kept), ("[B]", last)];
        let line =
            shapes.iter().fold(line.to_string(), |line, (name, sizes)| line.replace(name, &shape(sizes)));
        let line = line.replace("S[", &format!("{}[", dtype.to_aggregate()));
        line.replace("T[", &format!("{dtype}[")).replace("AXES", &format!("{axes:?}"))
    };
    let lines: Vec<String> = lines.iter().map(fill).collect();
    let region = region(&[(dtype, &shape(sizes)), (dtype, &shape(last))], &lines, results);
    let inputs = [operand(dtype, sizes.iter().product()), operand(dtype, last[0])];
    let fused = nest_of_groups(&region).unwrap_or_else(|| panic!("no nest for {}", region.to_text()));
    if let Err(difference) = check_fused(&region, &inputs, &fused) {
        panic!("{difference}");
    }
}

/// Rows that lie beside each other are reduced as they lie, in the order of rows.
fn check_transposed(dtype: DType, batch: usize, rows: usize, columns: usize, line: &str) {
    let sizes = [batch, rows, columns];
    let turned = format!("{dtype}[{batch}][{columns}][{rows}]");
    let lines = [
        format!("%2 = transpose %0 {{axes: [0, 2, 1]}} : {turned}"),
        format!("%3 = {line} : {turned}"),
        format!("%4 = sum %3 {{axes: [2], keep_axes: false}} : {}[{batch}][{columns}]", dtype.to_aggregate()),
    ];
    let region = region(&[(dtype, &shape(&sizes)), (dtype, &format!("[{rows}]"))], &lines, "%4");
    let fusion = FusionGroups::new(&region);
    assert_eq!(fusion.turned_columns(4), Some(columns), "{}", region.to_text());
    let fused = nest_of_groups(&region).unwrap_or_else(|| panic!("no nest for {}", region.to_text()));
    let inputs = [operand(dtype, sizes.iter().product()), operand(dtype, rows)];
    if let Err(difference) = check_fused(&region, &inputs, &fused) {
        panic!("{difference}");
    }
}

#[test]
fn transposed_rows_are_reduced_as_they_lie() {
    for (batch, rows, columns) in
        [(1, 64, 70), (1, 200, 24), (2, 255, 9), (1, 256, 17), (1, 300, 130), (3, 1030, 8), (1, 2100, 19)]
    {
        for dtype in [DType::F32, DType::F64, DType::S32, DType::C64] {
            check_transposed(dtype, batch, rows, columns, "multiply %2 %1");
        }
        check_transposed(DType::F32, batch, rows, columns, "exp %2");
    }
}

/// So many elements of a dtype: a few special ones, others near 1.
fn operand(dtype: DType, count: usize) -> Vec<u8> {
    let some = few(dtype);
    let width = dtype.storage_bytes();
    let special: Vec<&[u8]> = some.chunks(width).collect();
    let mut random = Random(7 + count as u64);
    let mut bytes = Vec::with_capacity(count * width);
    let rare = (count / 3).max(40) as u64;
    for _ in 0..count {
        let draw = random.next();
        if draw.is_multiple_of(rare) {
            bytes.extend_from_slice(special[(draw >> 32) as usize % special.len()]);
            continue;
        }
        let part = |shift: u32| f64::from((draw >> shift) as u16) / 65536.0 + 0.5;
        let number = match dtype.kind() {
            defn_core::Kind::Bool => Number::Bool(draw >> 40 & 7 != 0),
            defn_core::Kind::Unsigned => Number::Int(i128::from(draw >> 20 & 3)),
            defn_core::Kind::Signed => Number::Int(i128::from(draw >> 20 & 3) - 2),
            defn_core::Kind::Float => Number::Float(part(20)),
            defn_core::Kind::Complex => Number::complex(part(20), part(40) - 0.9),
        };
        bytes.extend(Scalar::new(dtype, number).unwrap().to_bytes());
    }
    bytes
}

/// Lengths around lanes, tiles and pieces.
const LENGTHS: [usize; 12] = [2, 15, 16, 17, 255, 256, 1000, 1024, 1025, 65_536, 65_537, 200_000];

fn reductions_of(dtype: DType) -> Vec<String> {
    let mut ops: Vec<(&str, &str)> = vec![("all", "bool"), ("any", "bool")];
    if !dtype.is_bool() {
        ops.extend([("sum", "S"), ("product", "S")]);
    }
    if !dtype.is_complex() {
        ops.extend([("reduce_max", "T"), ("reduce_min", "T")]);
    }
    let line = |(op, ty): (&str, &str)| format!("%2 = {op} %0 {{axes: AXES, keep_axes: true}} : {ty}[K]");
    ops.into_iter().map(line).collect()
}

#[test]
fn rows_of_every_length() {
    for dtype in [DType::F32, DType::C64, DType::S16, DType::BF16] {
        for length in LENGTHS {
            for line in reductions_of(dtype) {
                check_groups(dtype, &[3, length], &[1], &[&line], "%2");
            }
        }
    }
}

#[test]
fn every_dtype_is_reduced() {
    for &dtype in DType::ALL {
        for line in reductions_of(dtype) {
            for (sizes, axes) in [([5, 300], [1]), ([300, 40], [0]), ([1000, 3], [0]), ([70, 5], [1])] {
                // What is narrow and apart has no machine code.
                if dtype.storage_bytes() < 4 && sizes == [1000, 3] {
                    continue;
                }
                check_groups(dtype, &sizes, &axes, &[&line], "%2");
            }
        }
    }
}

#[test]
fn groups_over_several_axes() {
    for (sizes, axes) in [
        (vec![5, 3, 40], vec![0, 2]),
        (vec![7, 4, 6, 50], vec![0, 2, 3]),
        (vec![40, 4, 60, 50], vec![0, 2, 3]),
        (vec![9, 3, 40, 17], vec![0, 2]),
        (vec![30, 5], vec![0]),
        (vec![70_000, 3], vec![0]),
        (vec![4, 300, 3], vec![1]),
        (vec![300, 2, 500, 3], vec![0, 2]),
    ] {
        for dtype in [DType::F32, DType::C128, DType::U32] {
            let line = "%2 = sum %0 {axes: AXES, keep_axes: true} : S[K]";
            check_groups(dtype, &sizes, &axes, &[line], "%2");
        }
    }
}

#[test]
fn what_is_reduced_is_made_in_the_same_nest() {
    let lines = [
        "%2 = multiply %0 %1 : T[N]",
        "%3 = sum %2 {axes: AXES, keep_axes: true} : T[K]",
        "%4 = sqrt %3 : T[K]",
        "%5 = sum %0 {axes: AXES, keep_axes: true} : T[K]",
    ];
    for (sizes, axes) in [
        (vec![20, 50], vec![0, 1]),
        (vec![300, 500], vec![0, 1]),
        (vec![3, 70, 1100], vec![1, 2]),
        (vec![3, 70, 1100], vec![0, 2]),
        (vec![50, 3, 100], vec![0]),
    ] {
        check_groups(DType::F32, &sizes, &axes, &lines, "%2 %3 %4 %5");
        check_groups(DType::C64, &sizes, &axes, &lines[..2], "%3");
    }
    let softmax = [
        "%2 = add %0 %1 : T[N]",
        "%3 = reduce_max %2 {axes: AXES, keep_axes: true} : T[K]",
        "%4 = subtract %2 %3 : T[N]",
        "%5 = exp %4 : T[N]",
        "%6 = sum %5 {axes: AXES, keep_axes: true} : T[K]",
        "%7 = divide %5 %6 : T[N]",
    ];
    for (sizes, axes) in [
        (vec![6, 20, 30], vec![1, 2]),
        (vec![9, 5], vec![0]),
        (vec![20, 6, 30], vec![0, 2]),
        (vec![3, 60, 40], vec![1]),
    ] {
        check_groups(DType::F32, &sizes, &axes, &softmax, "%7 %6");
    }
}

#[test]
fn positions_of_extremes() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::S64, DType::U8, DType::S32] {
        for (op, tie) in [("argmax", "low"), ("argmax", "high"), ("argmin", "low"), ("argmin", "high")] {
            let line = format!("%2 = {op} %0 {{tie_break: \"{tie}\", axis: AXIS, keep_axis: true}} : s32[K]");
            for length in LENGTHS {
                let line = line.replace("AXIS", "1");
                check_groups(dtype, &[3, length], &[1], &[&line], "%2");
            }
            let line = line.replace("AXIS", "0");
            for sizes in [[2, 40], [16, 40], [100, 9], [1000, 3], [70_000, 2]] {
                if dtype.storage_bytes() < 4 && sizes[1] < 8 {
                    continue;
                }
                check_groups(dtype, &sizes, &[0], &[&line], "%2");
            }
        }
    }
}
