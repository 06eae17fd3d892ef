use defn_core::builder::{Arg, BuildLinalg};
use defn_core::{Axes, Number};

use super::check;

fn dot(types: &[&str]) -> String {
    check(types, |b, v| b.dot(v[0], v[1]))
}

#[test]
fn dot_contracts_the_last_axis_with_the_last_but_one() {
    assert_eq!(dot(&["f32[n: 2]", "f32[2]"]), "f32");
    assert_eq!(dot(&["u8[x: 2][3]", "s8[3][y: 4]"]), "s16[x: 2][y: 4]");
    assert_eq!(dot(&["f32[2][3]", "f32[5][3][4]"]), "f32[2][5][4]");
    assert_eq!(dot(&["f32[0]", "f32[0]"]), "f32");
    assert_eq!(dot(&["f32", "u8[x: 2]"]), "f32[x: 2]");
    assert_eq!(check(&["u8[x: 2]"], |b, v| b.dot(v[0], 2)), "u8[x: 2]");
    assert_eq!(
        dot(&["f32[2][3]", "f32[2][3]"]),
        "dot: axis 1 of f32[2][3] and axis 0 of f32[2][3] are contracted together and have sizes 3 and 2; \
         they must be equal"
    );
    assert_eq!(
        dot(&["f32[x: 2][3]", "f32[3][x: 2]"]),
        "dot: the name \"x\" would stand on two axes of the result, names must differ; rename one operand's axis\n  \
         left: f32[x: 2][3]\n  right: f32[3][x: 2]"
    );
}

#[test]
fn dot_takes_axes_and_batches() {
    assert_eq!(
        check(&["f32[x: 2][3]", "f32[2][y: 5]"], |b, v| b.dot_axes(v[0], "x", v[1], 0)),
        "f32[3][y: 5]"
    );
    assert_eq!(
        check(&["f32[b: 7][2][3]", "f32[7][3][2]"], |b, v| {
            b.dot_general(v[0], [1, 2], 0, v[1], [2, 1], 0)
        }),
        "f32[b: 7]"
    );
    let general = |contract: i64, batch: Axes| {
        check(&["f32[7][2]", "f32[7][2]"], |b, v| b.dot_general(v[0], contract, batch, v[1], contract, 0))
    };
    assert_eq!(
        general(1, Axes::List(vec![])),
        "dot: 0 and 1 batch axes for f32[7][2] and f32[7][2], both sides must have equally many"
    );
    assert_eq!(
        general(0, 0.into()),
        "dot: axis 0 is both a batch axis and contracted for f32[7][2] and f32[7][2], it can only be one of them"
    );
    assert_eq!(
        general(0, 1.into()),
        "dot: batch axes [1] for f32[7][2] and f32[7][2], batch axes must be the first axes in order"
    );
    assert_eq!(
        check(&["f32[2]", "f32[2]"], |b, v| b.dot_axes(v[0], 0, v[1], Axes::List(vec![]))),
        "dot: 1 and 0 contracted axes for f32[2] and f32[2], both sides must contract equally many"
    );
}

#[test]
fn outer_flattens_and_keeps_two_names() {
    assert_eq!(check(&["u8[a: 2][3]", "s8[4][d: 5]"], |b, v| b.outer(v[0], v[1])), "s16[a: 6][d: 20]");
    assert_eq!(check(&["f32"], |b, v| b.outer(v[0], Arg::Number(Number::Int(1)))), "f32[1][1]");
    assert_eq!(check(&["f32[2]", "c64[3]"], |b, v| b.outer(v[0], v[1])), "c64[2][3]");
    assert_eq!(
        check(&["f32[a: 2]", "f32[a: 2]"], |b, v| b.outer(v[0], v[1])),
        "outer: the name \"a\" would stand on two axes of the result, names must differ; rename one operand's axis"
    );
}

#[test]
fn matmul_broadcasts_what_leads() {
    let of = |types: &[&str]| check(types, |b, v| b.matmul(v[0], v[1]));
    assert_eq!(of(&["f32[2]", "f32[2]"]), "f32");
    assert_eq!(of(&["f32[x: 2][3]", "f32[3]"]), "f32[x: 2]");
    assert_eq!(of(&["f32[b: 7][x: 2][3]", "f32[3][y: 4]"]), "f32[b: 7][x: 2][y: 4]");
    assert_eq!(of(&["f32[3]", "f32[b: 7][3][y: 4]"]), "f32[b: 7][y: 4]");
    assert_eq!(of(&["f32[x: 2][3]", "f32[b: 7][3][y: 4]"]), "f32[b: 7][x: 2][y: 4]");
    assert_eq!(of(&["f32[a: 5][1][2][3]", "f32[b: 7][3][4]"]), "f32[a: 5][b: 7][2][4]");
    assert_eq!(
        of(&["f32", "f32[2]"]),
        "matmul: the operand is f32, at least one axis is required; use multiply to scale by a number"
    );
    assert_eq!(
        of(&["f32[5][2][3]", "f32[7][3][4]"]),
        "matmul: shapes [5] and [7] do not broadcast, axis 0 of the result has sizes 5 and 7; sizes must be \
         equal or 1"
    );
}

#[test]
fn einsum_has_an_axis_for_each_letter_of_the_result() {
    assert_eq!(
        check(&["u8[x: 2][3]", "s8[4][3]"], |b, v| b.einsum("ij,kj->ki", &[v[0], v[1]])),
        "s16[4][x: 2]"
    );
    assert_eq!(check(&["f32[5][2][3]", "f32[3][4]"], |b, v| b.einsum("...ij,jk", v)), "f32[5][2][4]");
    assert_eq!(check(&["bool[x: 3][3]"], |b, v| b.einsum("ii->i", v)), "s32[x: 3]");
    assert_eq!(
        check(&["f32[2][3]"], |b, v| b.einsum("ij->ik", v)),
        "einsum: equation is \"ij->ik\", it must be an equation whose result has indices of the operands; none has \"k\""
    );
}

#[test]
fn products_over_axes_and_vectors() {
    assert_eq!(
        check(&["f32[2][3][4]", "f32[3][4][y: 5]"], |b, v| b.tensordot(v[0], v[1], 2)),
        "f32[2][y: 5]"
    );
    assert_eq!(check(&["f32[2][3]", "f32[2][5]"], |b, v| b.tensordot(v[0], v[1], (0, 0))), "f32[3][5]");
    assert_eq!(check(&["f32[x: 2][3]", "f32[4][3]"], |b, v| b.inner(v[0], v[1])), "f32[x: 2][4]");
    assert_eq!(check(&["bool[2][3]", "bool[6]"], |b, v| b.vdot(v[0], v[1])), "s32");
    assert_eq!(check(&["f32[7][1][3]", "f32[y: 5][3]"], |b, v| b.vecdot(v[0], v[1], -1)), "f32[7][y: 5]");
    assert_eq!(check(&["u8[2][3]", "u8[4]"], |b, v| b.kron(v[0], v[1])), "u8[2][12]");
    assert_eq!(check(&["f32[x: 5][3]", "f32[3]"], |b, v| b.cross(v[0], v[1], -1)), "f32[x: 5][3]");
    assert_eq!(check(&["f32[3]", "f32[3][5]"], |b, v| b.cross(v[0], v[1], 0)), "f32[3][5]");
}
