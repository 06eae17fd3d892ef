//! Short rows, whose elements are done by lanes of their own.

use super::*;
use crate::compiler::fuse::Reduction;

/// The nest of all nodes of a program, which has groups of `reduced` elements.
fn nest_of_rows(region: &Region, reduced: usize) -> Option<Fused> {
    let fusion = FusionGroups::new(region);
    let graph = region.graph();
    let elements = region.inputs()[0].size();
    let domain = Domain::in_order(elements / reduced, reduced, 1);
    let mut nodes = Vec::new();
    for (at, node) in graph.nodes().iter().enumerate() {
        if let Some((reduction, own)) = Reduction::with_domain(graph, node) {
            let is_across = own.across(&domain).is_some();
            let role = if is_across { NodeRole::Across } else { NodeRole::Reduction };
            nodes.push((at, role(reduction)));
        } else if let Role::Elementwise = fusion.roles[at] {
            let is_of_elements = node.outputs[0].size() == elements;
            nodes.push((at, if is_of_elements { NodeRole::Elements } else { NodeRole::Rows }));
        }
    }
    let results = region.results().iter().copied().collect();
    fuse(graph, &fusion, nodes, &domain, &results, &[], false)
}

/// So many elements of a dtype, with special ones among them.
fn operand(dtype: DType, count: usize) -> Vec<u8> {
    let some = few(dtype);
    some.iter().copied().cycle().skip(5 * dtype.storage_bytes()).take(count * dtype.storage_bytes()).collect()
}

fn check_rows(dtype: DType, sizes: &[usize], lines: &[&str], results: &str, is_reduced: bool) {
    let shape = |sizes: &[usize]| sizes.iter().map(|size| format!("[{size}]")).collect::<String>();
    let (rows, length) = (&sizes[..sizes.len() - 1], sizes[sizes.len() - 1]);
    let whole = shape(sizes);
    let kept = shape(&[rows, &[1]].concat());
    let last = shape(&[length]);
    let fill = |line: &&str| {
        let line =
            line.replace("T[N]", &format!("{dtype}{whole}")).replace("T[K]", &format!("{dtype}{kept}"));
        line.replace("[N]", &whole).replace("[K]", &kept).replace("AXIS", &rows.len().to_string())
    };
    let lines: Vec<String> = lines.iter().map(fill).collect();
    let region = region(&[(dtype, &whole), (dtype, &last)], &lines, results);
    let inputs = [operand(dtype, sizes.iter().product()), operand(dtype, length)];
    let fused = nest_of_rows(&region, if is_reduced { length } else { 1 });
    let fused = fused.unwrap_or_else(|| panic!("no nest for {}", region.to_text()));
    if let Err(difference) = check_fused(&region, &inputs, &fused) {
        panic!("{difference}");
    }
}

/// Sums of rows, and what is left of the elements reduced across the rows.
fn check_across(dtype: DType, sizes: [usize; 3], op: &str, results: &str) {
    let [outer, _, length] = sizes;
    let across = format!("%5 = {op} %4 {{axes: [1], keep_axes: false}} : {dtype}[{outer}][{length}]");
    let lines = [
        "%2 = multiply %0 %0 : T[N]",
        "%3 = sum %2 {axes: [2], keep_axes: true} : T[K]",
        "%4 = subtract %0 %3 : T[N]",
        &across,
    ];
    check_rows(dtype, &sizes, &lines, results, true);
}

#[test]
fn reductions_across_short_rows() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::C64] {
        for sizes in [[3, 16, 3], [2, 40, 2], [1, 300, 4], [2, 271, 3]] {
            check_across(dtype, sizes, "sum", "%5");
            check_across(dtype, sizes, "sum", "%4 %5 %3");
            if !dtype.is_complex() {
                check_across(dtype, sizes, "product", "%5");
                check_across(dtype, sizes, "reduce_max", "%5");
            }
        }
    }
}

const SOFTMAX: [&str; 5] = [
    "%2 = reduce_max %0 {axes: [AXIS], keep_axes: true} : T[K]",
    "%3 = subtract %0 %2 : T[N]",
    "%4 = exp %3 : T[N]",
    "%5 = sum %4 {axes: [AXIS], keep_axes: true} : T[K]",
    "%6 = divide %4 %5 : T[N]",
];

#[test]
fn softmax_of_short_rows() {
    for length in 2..16 {
        for rows in [2, 17, 50] {
            check_rows(DType::F32, &[rows, length], &SOFTMAX, "%6", true);
        }
        check_rows(DType::F64, &[21, length], &SOFTMAX, "%6 %5", true);
    }
    check_rows(DType::F32, &[3, 40, 10], &SOFTMAX, "%4 %2 %6", true);
    check_rows(DType::F32, &[40, 3, 10], &SOFTMAX, "%6 %5", true);
}

#[test]
fn reductions_of_short_rows() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::U32, DType::S64] {
        for length in 2..16 {
            for op in ["sum", "product", "reduce_max", "reduce_min"] {
                let line = format!("%2 = {op} %0 {{axes: [AXIS], keep_axes: true}} : T[K]");
                check_rows(dtype, &[37, length], &[&line], "%2", true);
            }
        }
    }
}

#[test]
fn short_rows_with_what_each_column_has() {
    let lines = ["%2 = multiply %0 %1 : T[N]", "%3 = add %2 %1 : T[N]"];
    for dtype in [DType::F32, DType::S64, DType::C64] {
        for length in 2..16 {
            check_rows(dtype, &[37, length], &lines, "%3", false);
        }
    }
}
