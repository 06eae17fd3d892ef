//! Tests of what is written as element-wise ops, from text to text.

use std::sync::Arc;

use defn_core::region::Region;
use defn_core::{pass, verify};
use insta::assert_snapshot;

fn parse(text: &str) -> Region {
    verify::set_always(true);
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

fn by_elements(text: &str) -> String {
    pass::by_elements(&Arc::new(parse(text))).unwrap().to_text()
}

#[test]
fn windows_become_slices_in_their_order() {
    // The second axis shrinks most, and is reduced first.
    let text = "(f32[64][96]) {
        %0 = parameter {index: 0} : f32[64][96]
        %1 = window_sum %0 {window: [2, 2], strides: [1, 3], padding: [(0, 0, 0), (0, 0, 0)], window_dilations: [1, 1]} : f32[63][32]
        return %1
    }";
    assert_snapshot!(by_elements(text), @r"
    defn-ir 1
    (f32[64][96]) {
      %0 = parameter {index: 0} : f32[64][96]
      %1 = slice %0 {starts: [0, 0], lengths: [63, 94], strides: [1, 3]} : f32[63][32]
      %2 = slice %0 {starts: [0, 1], lengths: [63, 94], strides: [1, 3]} : f32[63][32]
      %3 = add %1 %2 : f32[63][32]
      %4 = slice %0 {starts: [1, 0], lengths: [63, 94], strides: [1, 3]} : f32[63][32]
      %5 = slice %0 {starts: [1, 1], lengths: [63, 94], strides: [1, 3]} : f32[63][32]
      %6 = add %4 %5 : f32[63][32]
      %7 = add %3 %6 : f32[63][32]
      return %7
    }
    ");
}

#[test]
fn few_or_padded_windows_stay() {
    for (sizes, counts, strides, padding) in [
        ("[8][9]", "[7][8]", "[1, 1]", "[(0, 0, 0), (0, 0, 0)]"),
        ("[64][96]", "[65][95]", "[1, 1]", "[(1, 1, 0), (0, 0, 0)]"),
        ("[64][960]", "[63][120]", "[1, 8]", "[(0, 0, 0), (0, 0, 0)]"),
    ] {
        let text = format!(
            "(f32{sizes}) {{
                %0 = parameter {{index: 0}} : f32{sizes}
                %1 = window_max %0 {{window: [2, 2], strides: {strides}, padding: {padding}, window_dilations: [1, 1]}} : f32{counts}
                return %1
            }}"
        );
        assert_eq!(by_elements(&text), parse(&text).to_text());
    }
}

#[test]
fn slices_are_computed_where_that_costs_little() {
    let text = "(f32[64][96]) {
        %0 = parameter {index: 0} : f32[64][96]
        %1 = multiply %0 %0 : f32[64][96]
        %2 = slice %1 {starts: [0, 0], lengths: [63, 96], strides: [1, 1]} : f32[63][96]
        %3 = slice %1 {starts: [1, 0], lengths: [63, 96], strides: [1, 1]} : f32[63][96]
        %4 = subtract %3 %2 : f32[63][96]
        return %4
    }";
    assert_snapshot!(by_elements(text), @r"
    defn-ir 1
    (f32[64][96]) {
      %0 = parameter {index: 0} : f32[64][96]
      %1 = slice %0 {starts: [0, 0], lengths: [63, 96], strides: [1, 1]} : f32[63][96]
      %2 = multiply %1 %1 : f32[63][96]
      %3 = slice %0 {starts: [1, 0], lengths: [63, 96], strides: [1, 1]} : f32[63][96]
      %4 = multiply %3 %3 : f32[63][96]
      %5 = subtract %4 %2 : f32[63][96]
      return %5
    }
    ");
    let costly = text.replace("multiply %0 %0", "exp %0");
    assert_eq!(by_elements(&costly), parse(&costly).to_text());
    let needed = text.replace("return %4", "return %4 %1");
    assert_eq!(by_elements(&needed), parse(&needed).to_text());
}

#[test]
fn additions_to_one_element_of_each_row_compare_positions() {
    let text = "(s32[64][1], f32[64][1]) {
        %0 = parameter {index: 0} : s32[64][1]
        %1 = parameter {index: 1} : f32[64][1]
        %2 = constant {value: 0.0} : f32
        %3 = broadcast %2 {shape: [64, 100], axes: []} : f32[64][100]
        %4 = iota {axis: 0} : s32[64][1]
        %5 = stack %4 %0 {axis: 2} : s32[64][1][2]
        %6 = reshape %5 : s32[64][2]
        %7 = reshape %1 : f32[64]
        %8 = indexed_add %3 %6 %7 {axes: [0, 1]} : f32[64][100]
        return %8
    }";
    assert_snapshot!(by_elements(text), @r"
    defn-ir 1
    (s32[64][1], f32[64][1]) {
      %0 = parameter {index: 0} : s32[64][1]
      %1 = parameter {index: 1} : f32[64][1]
      %2 = reshape %1 : f32[64]
      %3 = reshape %0 : s32[64][1]
      %4 = constant {value: 0} : s32
      %5 = constant {value: 100} : s32
      %6 = less %3 %4 : bool[64][1]
      %7 = add %3 %5 : s32[64][1]
      %8 = select %6 %7 %3 : s32[64][1]
      %9 = iota {axis: 1} : s32[64][100]
      %10 = equal %9 %8 : bool[64][100]
      %11 = constant {value: 0.0} : f32
      %12 = reshape %2 : f32[64][1]
      %13 = add %11 %12 : f32[64][1]
      %14 = select %10 %13 %11 : f32[64][100]
      return %14
    }
    ");
    // Rows that several positions may name.
    let other = text.replace("%4 = iota {axis: 0} : s32[64][1]", "%4 = negate %0 : s32[64][1]");
    assert_eq!(by_elements(&other), parse(&other).to_text());
}

#[test]
fn products_with_vectors_become_sums_of_products() {
    // Each matrix of the batch is read as it lies, its columns by the vector's contracted axes in its own order.
    let text = "(bf16[5][3][2], bf16[5][2][9][3]) {
        %0 = parameter {index: 0} : bf16[5][3][2]
        %1 = parameter {index: 1} : bf16[5][2][9][3]
        %2 = dot %0 %1 {contract_a: [1, 2], batch_a: [0], contract_b: [3, 1], batch_b: [0]} : bf16[5][9]
        return %2
    }";
    assert_snapshot!(by_elements(text), @r"
    defn-ir 1
    (bf16[5][3][2], bf16[5][2][9][3]) {
      %0 = parameter {index: 0} : bf16[5][3][2]
      %1 = parameter {index: 1} : bf16[5][2][9][3]
      %2 = as_type %1 : f32[5][2][9][3]
      %3 = transpose %0 {axes: [0, 2, 1]} : bf16[5][2][3]
      %4 = reshape %3 : bf16[5][2][1][3]
      %5 = broadcast %4 {shape: [5, 2, 9, 3], axes: [0, 1, 2, 3]} : bf16[5][2][9][3]
      %6 = as_type %5 : f32[5][2][9][3]
      %7 = multiply %6 %2 : f32[5][2][9][3]
      %8 = sum %7 {axes: [1, 3], keep_axes: false} : f32[5][9]
      %9 = as_type %8 : bf16[5][9]
      return %9
    }
    ");
    let outer = "(s8[4], f32[3][1]) {
        %0 = parameter {index: 0} : s8[4]
        %1 = parameter {index: 1} : f32[3][1]
        %2 = dot %0 %1 {contract_a: [], batch_a: [], contract_b: [], batch_b: []} : f32[4][3][1]
        return %2
    }";
    assert_snapshot!(by_elements(outer), @r"
    defn-ir 1
    (s8[4], f32[3][1]) {
      %0 = parameter {index: 0} : s8[4]
      %1 = parameter {index: 1} : f32[3][1]
      %2 = reshape %0 : s8[4][1][1]
      %3 = broadcast %2 {shape: [4, 3, 1], axes: [0, 1, 2]} : s8[4][3][1]
      %4 = as_type %3 : f32[4][3][1]
      %5 = reshape %1 : f32[1][3][1]
      %6 = multiply %4 %5 : f32[4][3][1]
      return %6
    }
    ");
    for (a, b, result) in [("[2][3]", "[3][2]", "[2][2]"), ("[0]", "[0][4]", "[4]"), ("[2]", "[2][0]", "[0]")]
    {
        let contract = if a.len() == 3 { 0 } else { 1 };
        let text = format!(
            "(f32{a}, f32{b}) {{
                %0 = parameter {{index: 0}} : f32{a}
                %1 = parameter {{index: 1}} : f32{b}
                %2 = dot %0 %1 {{contract_a: [{contract}], batch_a: [], contract_b: [0], batch_b: []}} : f32{result}
                return %2
            }}"
        );
        assert_eq!(by_elements(&text), parse(&text).to_text());
    }
}

#[test]
fn identity_matrices_are_compared_where_elements_read_them() {
    let text = "(f32[64][100]) {
        %0 = parameter {index: 0} : f32[64][100]
        %1 = eye : f32[64][100]
        %2 = add %0 %1 : f32[64][100]
        return %2
    }";
    assert_snapshot!(by_elements(text), @r"
    defn-ir 1
    (f32[64][100]) {
      %0 = parameter {index: 0} : f32[64][100]
      %1 = iota {axis: 0} : s32[64][100]
      %2 = iota {axis: 1} : s32[64][100]
      %3 = equal %1 %2 : bool[64][100]
      %4 = as_type %3 : f32[64][100]
      %5 = add %0 %4 : f32[64][100]
      return %5
    }
    ");
    // As a result it is written once.
    let result = text.replace("return %2", "return %2 %1");
    assert_eq!(by_elements(&result), parse(&result).to_text());
    let reversed = text.replace("add %0 %1", "reverse %1 {axes: [0]}");
    assert_eq!(by_elements(&reversed), parse(&reversed).to_text());
}
