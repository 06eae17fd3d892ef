use defn_core::builder::BuildIndex;
use defn_core::{Axes, DType};

use super::check;

#[test]
fn reads_have_the_indices_axes_in_front() {
    let ty = ["f16[a: 2][b: 3][c: 4]", "s8[p: 5][6][2]"];
    assert_eq!(check(&ty, |b, v| b.gather(v[0], v[1], Axes::All)), "f16[5][6][4]");
    assert_eq!(check(&ty, |b, v| b.gather(v[0], v[1], ["a", "c"])), "f16[5][6][3]");
    assert_eq!(check(&["f32[2][3]", "u2[2]"], |b, v| b.gather(v[0], v[1], Axes::All)), "f32");
    assert_eq!(check(&["f32[2][3]", "u2[7][0]"], |b, v| b.gather(v[0], v[1], Axes::All)), "f32[7][2][3]");
    assert_eq!(check(&["f32[0][3]", "s32[0][1]"], |b, v| b.gather(v[0], v[1], Axes::All)), "f32[0][3]");
    assert_eq!(
        check(&ty, |b, v| b.gather(v[0], v[1], ["c", "a"])),
        "gather: axes is [\"c\", \"a\"], it must be ascending axes of f16[a: 2][b: 3][c: 4], one for each entry \
         of a position in s8[p: 5][6][2]"
    );
}

#[test]
fn taking_splices_axes_in() {
    let ty = ["u8[a: 2][b: 3]", "s64[b: 4]", "s32[p: 5][q: 6]", "u64"];
    assert_eq!(check(&ty, |b, v| b.take(v[0], v[1], "b")), "u8[a: 2][b: 4]");
    assert_eq!(check(&ty, |b, v| b.take(v[0], v[2], 0)), "u8[p: 5][q: 6][b: 3]");
    assert_eq!(check(&ty, |b, v| b.take(v[0], v[3], -1)), "u8[a: 2]");
    assert_eq!(check(&["u8[3]", "s32[4]"], |b, v| b.take(v[0], v[1], 0)), "u8[4]");
    assert!(check(&ty, |b, v| b.take(v[0], v[1], 0)).starts_with("take: axis 0 is named \"a\""));
    let along = ["u8[a: 2][b: 3]", "s64[x: 2][y: 7]"];
    assert_eq!(check(&along, |b, v| b.take_along_axis(v[0], v[1], 1)), "u8[a: 2][b: 7]");
    assert_eq!(
        check(&along, |b, v| b.take_along_axis(v[0], v[1], 0)),
        "take_along_axis: the indices are s64[x: 2][y: 7], the sizes of u8[a: 2][b: 3] are required but on axis 0"
    );
}

#[test]
fn writes_keep_the_shape_and_merge_dtypes() {
    for &left in DType::ALL {
        for &right in DType::ALL {
            let ty = [format!("{left}[a: 2][b: 3]"), "s32[5][1]".to_owned(), format!("{right}[n: 5][m: 2]")];
            let ty = [&*ty[0], &*ty[1], &*ty[2]];
            let expected = format!("{}[a: 2][b: 3]", left.merge(right));
            let added = check(&ty, |b, v| b.indexed_add(v[0], v[1], v[2], Axes::All));
            if left.merge(right).is_bool() {
                let required = "it must be a number, not bool; convert with as_type";
                assert_eq!(added, format!("indexed_add: the operand is {}, {required}", ty[0]));
            } else {
                assert_eq!(added, expected);
            }
            assert_eq!(check(&ty, |b, v| b.indexed_put(v[0], v[1], v[2], 0)), expected);
        }
    }
    let ty = ["f32[2][3][4]", "s32[5][2]", "f32[5][3]", "s32[3]", "f32"];
    assert_eq!(check(&ty, |b, v| b.indexed_add(v[0], v[1], v[2], [0, 2])), "f32[2][3][4]");
    assert_eq!(check(&ty, |b, v| b.indexed_put(v[0], v[3], v[4], Axes::All)), "f32[2][3][4]");
    assert_eq!(
        check(&ty, |b, v| b.indexed_put(v[0], v[1], v[4], Axes::All)),
        "indexed_put: the updates are f32, sizes [5, at most 4] are required to update f32[2][3][4] at s32[5][2]"
    );
    // A plain number adopts the tensor's dtype.
    assert_eq!(check(&["f16[3]", "s32[1]"], |b, v| b.indexed_put(v[0], v[1], 1, Axes::All)), "f16[3]");
    assert_eq!(check(&["u8[3]", "s32[1]"], |b, v| b.indexed_put(v[0], v[1], 1, Axes::All)), "u8[3]");
}
