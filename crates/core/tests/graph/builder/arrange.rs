use defn_core::builder::{BuildArrange, BuildIndex, BuildReduce, Indexing, Sections};
use defn_core::{Axes, Shape};

use super::check;

#[test]
fn axes_move_and_turn_with_their_names() {
    let types = ["u8[a: 2][b: 3][c: 4]"];
    assert_eq!(check(&types, |b, v| b.moveaxis(v[0], "a", -1)), "u8[b: 3][c: 4][a: 2]");
    assert_eq!(check(&types, |b, v| b.moveaxis(v[0], [0, 2], [-1, 0])), "u8[c: 4][b: 3][a: 2]");
    assert_eq!(check(&types, |b, v| b.moveaxis(v[0], Axes::All, [2, 0, 1])), "u8[b: 3][c: 4][a: 2]");
    assert_eq!(
        check(&types, |b, v| b.moveaxis(v[0], [0, 1], 0)),
        "moveaxis: destination is [0], it must be one position for each axis in source, [0, 1]"
    );
    assert_eq!(check(&types, |b, v| b.rot90(v[0], 1, [0, 2])), "u8[c: 4][b: 3][a: 2]");
    assert_eq!(check(&types, |b, v| b.rot90(v[0], -6, [0, 2])), "u8[a: 2][b: 3][c: 4]");
    assert!(check(&types, |b, v| b.rot90(v[0], 1, Axes::All)).starts_with("rot90: 3 axes"));
}

#[test]
fn rolls_and_repeats_keep_names() {
    let types = ["f16[a: 2][b: 3]"];
    assert_eq!(check(&types, |b, v| b.roll(v[0], &[1], Axes::All)), "f16[a: 2][b: 3]");
    assert_eq!(check(&types, |b, v| b.roll(v[0], &[i64::MIN, i64::MAX], [0, 1])), "f16[a: 2][b: 3]");
    assert_eq!(
        check(&types, |b, v| b.roll(v[0], &[1, 2], 0)),
        "roll: shift is [1, 2], it must be one integer, or one for each of the axes [0]"
    );
    assert_eq!(check(&types, |b, v| b.repeat(v[0], &[4], Some("b".into()))), "f16[a: 2][b: 12]");
    assert_eq!(check(&types, |b, v| b.repeat(v[0], &[4, 0, 1], Some(1.into()))), "f16[a: 2][b: 5]");
    assert_eq!(check(&types, |b, v| b.repeat(v[0], &[2], None)), "f16[12]");
    assert!(check(&types, |b, v| b.repeat(v[0], &[i64::MAX], None)).contains("more bytes"));
    assert!(check(&types, |b, v| b.repeat(v[0], &[i64::MAX, 1], Some(0.into()))).contains("more bytes"));
    assert_eq!(
        check(&types, |b, v| b.repeat(v[0], &[1, -1], Some(0.into()))),
        "repeat: repeats is [1, -1], it must be integers of at least 0"
    );
    assert_eq!(
        check(&types, |b, v| b.repeat(v[0], &[1; 9], Some(0.into()))),
        "repeat: repeats is 9 integers, it must be one integer, or one for each of the 2 elements on axis 0 of \
         f16[a: 2][b: 3]"
    );
}

#[test]
fn parts_keep_the_other_axes() {
    let types = ["s8[a: 5][b: 2]"];
    assert_eq!(check(&types, |b, v| b.unstack(v[0], 1)), "s8[a: 5], s8[a: 5]");
    assert_eq!(check(&types, |b, v| b.array_split(v[0], 2, 0)), "s8[a: 3][b: 2], s8[a: 2][b: 2]");
    assert_eq!(
        check(&types, |b, v| b.array_split(v[0], [4, -2], "a")),
        "s8[a: 4][b: 2], s8[a: 0][b: 2], s8[a: 2][b: 2]"
    );
    assert_eq!(check(&types, |b, v| b.array_split(v[0], Sections::At(vec![]), 0)), "s8[a: 5][b: 2]");
    assert!(
        check(&types, |b, v| b.array_split(v[0], 0, 0)).starts_with("array_split: sections_or_indices is 0")
    );
}

#[test]
fn joins_name_themselves_in_errors() {
    let types = ["u8[x: 2]", "s8[2][y: 3]"];
    assert_eq!(check(&types, |b, v| b.column_stack(v)), "s16[x: 2][y: 4]");
    assert_eq!(check(&["u8[x: 2]"], |b, v| b.dstack(v)), "u8[1][x: 2][1]");
    assert!(
        check(&["u8[2]", "u8[3]"], |b, v| b.column_stack(v)).starts_with("column_stack: input 1 is u8[3][1]")
    );
    assert!(check(&["u8[x: 2]", "u8[y: 2]"], |b, v| b.dstack(v)).starts_with("dstack: axis 1 is named"));
}

#[test]
fn grids_and_common_shapes_have_all_names() {
    let types = ["u8[x: 2]", "f32[y: 3]"];
    assert_eq!(check(&types, |b, v| b.meshgrid(v, Indexing::Xy)), "u8[y: 3][x: 2], f32[y: 3][x: 2]");
    assert_eq!(check(&types, |b, v| b.meshgrid(v, Indexing::Ij)), "u8[x: 2][y: 3], f32[x: 2][y: 3]");
    let types = ["u8[x: 2][1]", "f32[y: 3]"];
    assert_eq!(check(&types, |b, v| b.broadcast_arrays(v)), "u8[x: 2][y: 3], f32[x: 2][y: 3]");
    assert_eq!(check(&["u8"], |b, v| b.atleast_2d(v[0])), "u8[1][1]");
    assert_eq!(check(&["u8[x: 2][3]"], |b, v| b.atleast_3d(v[0])), "u8[x: 2][3][1]");
}

#[test]
fn positions_are_as_wide_as_the_shape_needs() {
    let unravel = |ty: &str, sizes: &[usize]| check(&[ty], |b, v| b.unravel_index(v[0], &Shape::new(sizes)));
    assert_eq!(unravel("u8[n: 4]", &[2, 3]), "s32[n: 4], s32[n: 4]");
    assert_eq!(unravel("u64", &[1 << 20, 1 << 20]), "s64, s64");
    assert!(unravel("s32", &[usize::MAX, 2]).contains("more bytes"));
    assert!(unravel("s32", &[2, 0]).starts_with("unravel_index: axis 1 of s32[2][0] has no element"));
    assert_eq!(check(&[], |b, _| b.tril_indices(3, 4, 0)), "s32[6], s32[6]");
    assert_eq!(check(&[], |b, _| b.triu_indices(3, 4, i64::MAX)), "s32[0], s32[0]");
}

#[test]
fn traces_and_ranges_reduce() {
    let types = ["u8[x: 2][y: 3][3]"];
    assert_eq!(check(&types, |b, v| b.trace(v[0], 0)), "u32[x: 2]");
    assert_eq!(check(&types, |b, v| b.ptp(v[0], "y", true)), "u8[x: 2][y: 1][3]");
    assert_eq!(check(&types, |b, v| b.count_nonzero(v[0], Axes::All, false)), "s32");
}
