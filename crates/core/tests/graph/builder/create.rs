use defn_core::builder::{Arg, BuildCreate};
use defn_core::{DType, Name, Number, Shape};

use super::check;

#[test]
fn numbers_become_constants() {
    assert_eq!(check(&[], |b, _| b.constant(DType::BF16, 0.1)), "bf16");
    assert_eq!(check(&[], |b, _| b.constant(DType::U8, 300)), "u8");
    assert_eq!(
        check(&[], |b, _| b.constant(DType::S32, 0.5)),
        "tensor: the float 0.5 cannot be stored as s32; convert it explicitly with as_type"
    );
}

#[test]
fn iota_counts_along_one_axis_or_all() {
    let shape = || Shape::named(&[2, 3], &[Some("x"), None]).unwrap();
    assert_eq!(check(&[], |b, _| b.iota(shape(), DType::S8, Some("x".into()))), "s8[x: 2][3]");
    assert_eq!(check(&[], |b, _| b.iota(shape(), DType::S8, None)), "s8[x: 2][3]");
    assert_eq!(
        check(&[], |b, _| b.iota(shape(), DType::S8, Some(2.into()))),
        "iota: axis 2 is out of range for the shape [x: 2][3], it must be in -2..2"
    );
}

#[test]
fn eye_needs_two_axes() {
    assert_eq!(check(&[], |b, _| b.eye(Shape::new(&[4, 2, 3]), DType::U8)), "u8[4][2][3]");
    assert_eq!(
        check(&[], |b, _| b.eye(Shape::new(&[3]), DType::U8)),
        "eye: the operand is u8[3], at least two axes are required"
    );
}

#[test]
fn likes_keep_the_type_and_fill_gives_way() {
    assert_eq!(check(&["f8_e5m2[x: 2]"], |b, v| b.zeros_like(v[0])), "f8_e5m2[x: 2]");
    assert_eq!(check(&["c64"], |b, v| b.ones_like(v[0])), "c64");
    assert_eq!(check(&["u8[x: 2]"], |b, v| b.fill(v[0], 255, None)), "u8[x: 2]");
    assert_eq!(
        check(&["u8[x: 2]"], |b, v| b.fill(v[0], 256, None)),
        "fill: the integer 256 beside u8[x: 2], an integer from 0 to 255 is required; convert the tensor to a wider \
         dtype with as_type"
    );
    assert_eq!(check(&["u8[2]", "s8"], |b, v| b.fill(v[0], v[1], None)), "s16[2]");
    assert_eq!(check(&["u8[2]"], |b, v| b.fill(v[0], 0.5, Some(DType::F16))), "f16[2]");
    assert_eq!(
        check(&["u8[2]", "s8[2]"], |b, v| b.fill(v[0], v[1], None)),
        "fill: the value is s8[2], it must be a scalar"
    );
}

#[test]
fn triangles_are_cut_from_the_last_two_axes() {
    assert_eq!(check(&[], |b, _| b.tri(3, 4, i64::MAX)), "bool[3][4]");
    assert_eq!(check(&["u8[b: 5][x: 2][3]"], |b, v| b.tril(v[0], -1)), "u8[b: 5][x: 2][3]");
    assert_eq!(check(&["f16[2][2]"], |b, v| b.triu(v[0], i64::MIN)), "f16[2][2]");
    assert_eq!(
        check(&["f16[2]"], |b, v| b.triu(v[0], 0)),
        "triu: the operand is f16[2], at least two axes are required"
    );
}

#[test]
fn linspace_adds_an_axis() {
    let n = Some(Name::from("n"));
    let f32 = DType::F32;
    assert_eq!(check(&[], |b, _| b.linspace(0, 1, 5, n.clone(), f32, true)), "f32[n: 5]");
    assert_eq!(
        check(&["f32[x: 2]", "s32[2]"], |b, v| b.linspace(v[0], v[1], 5, None, DType::S16, false)),
        "s16[x: 2][5]"
    );
    assert_eq!(
        check(&["f64[x: 2]", "f64[2]"], |b, v| b.linspace(v[0], v[1], 1, n, f32, true)),
        "f32[x: 2][n: 1]"
    );
    assert_eq!(
        check(&[], |b, _| b.linspace(0, 1, 0, None, f32, true)),
        "linspace: n is 0, it must be an integer of at least 1"
    );
    assert_eq!(
        check(&["f32[2]"], |b, v| b.linspace(v[0], Arg::Number(Number::Int(1)), 2, None, f32, true)),
        "linspace: shapes f32[2] and f32 must be equal, the ranks are 1 and 0"
    );
}

#[test]
fn diagonals_are_made_taken_and_put() {
    assert_eq!(check(&["u8[x: 3]"], |b, v| b.make_diagonal(v[0], -2)), "s32[5][5]");
    assert_eq!(check(&["f16[0]"], |b, v| b.make_diagonal(v[0], 2)), "f16[2][2]");
    assert_eq!(
        check(&["u8[3][3]"], |b, v| b.make_diagonal(v[0], 0)),
        "make_diagonal: the operand is u8[3][3], a vector is required"
    );
    assert!(check(&["u8[3]"], |b, v| b.make_diagonal(v[0], i64::MIN)).starts_with("tensor: s32["));

    assert_eq!(check(&["u8[b: 2][x: 3][4]"], |b, v| b.take_diagonal(v[0], 0)), "u8[2][3]");
    assert_eq!(check(&["u8[3][4]"], |b, v| b.take_diagonal(v[0], 2)), "u8[2]");
    assert_eq!(check(&["u8[3][4]"], |b, v| b.take_diagonal(v[0], -2)), "u8[1]");
    assert_eq!(check(&["u8[0][4]"], |b, v| b.take_diagonal(v[0], 0)), "u8[0]");
    assert_eq!(check(&["u8[3][4]"], |b, v| b.take_diagonal(v[0], 4)), "u8[0]");

    assert_eq!(check(&["s8[x: 3][4]", "u8[3]"], |b, v| b.put_diagonal(v[0], v[1], 1)), "s16[x: 3][4]");
    assert_eq!(check(&["s8[0][0]", "s8[0]"], |b, v| b.put_diagonal(v[0], v[1], 0)), "s8[0][0]");
    assert_eq!(
        check(&["s8[3][4]", "u8[3]"], |b, v| b.put_diagonal(v[0], v[1], -1)),
        "put_diagonal: the diagonal is u8[3], diagonal -1 of s8[3][4] has 2 elements; pass a vector of that length"
    );
    assert_eq!(
        check(&["s8[3]", "u8[3]"], |b, v| b.put_diagonal(v[0], v[1], 0)),
        "put_diagonal: the operand is s8[3], a matrix is required"
    );
}

#[test]
fn sizes_that_overflow_are_refused() {
    let text = check(&[], |b, _| b.full(Shape::new(&[usize::MAX, 2]), DType::F64, 0));
    assert!(text.ends_with("has more bytes than memory can address; use smaller sizes"), "{text}");
}
