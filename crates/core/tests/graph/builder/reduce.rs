use defn_core::builder::{Arg, BuildReduce};
use defn_core::op::{ReduceOp, TieBreak};
use defn_core::{Axes, DType, Number};

use super::check;

const NONE: Axes = Axes::List(Vec::new());

#[test]
fn reductions_have_their_dtypes() {
    for &op in ReduceOp::ALL {
        for &dtype in DType::ALL {
            let expected = match op {
                ReduceOp::Sum | ReduceOp::Product => dtype.to_aggregate(),
                ReduceOp::ReduceMax | ReduceOp::ReduceMin => dtype,
                ReduceOp::All | ReduceOp::Any => DType::Bool,
            };
            let name = op.name();
            let got = check(&[&format!("{dtype}[x: 2][3]")], |b, v| b.reduce(op, v[0], 1, false));
            let ordered = match op {
                ReduceOp::ReduceMax | ReduceOp::ReduceMin => true,
                ReduceOp::Sum | ReduceOp::Product | ReduceOp::All | ReduceOp::Any => false,
            };
            if ordered && dtype.is_complex() {
                assert!(got.starts_with(&format!("{name}: the operand is {dtype}[x: 2][3]")), "{got}");
                continue;
            }
            assert_eq!(got, format!("{expected}[x: 2]"), "{name}");
            // An empty list of axes reduces nothing.
            let nothing = check(&[&format!("{dtype}[x: 2][3]")], |b, v| b.reduce(op, v[0], NONE, false));
            assert_eq!(nothing, format!("{expected}[x: 2][3]"), "{name}");
        }
    }
}

#[test]
fn axes_go_or_stay() {
    let ty = ["f32[a: 2][b: 3][c: 4]"];
    assert_eq!(check(&ty, |b, v| b.sum(v[0], Axes::All, false)), "f32");
    assert_eq!(check(&ty, |b, v| b.sum(v[0], Axes::All, true)), "f32[a: 1][b: 1][c: 1]");
    assert_eq!(check(&ty, |b, v| b.product(v[0], ["c", "a"], false)), "f32[b: 3]");
    assert_eq!(check(&ty, |b, v| b.all(v[0], -2, true)), "bool[a: 2][b: 1][c: 4]");
    assert_eq!(
        check(&ty, |b, v| b.any(v[0], [0, -3], true)),
        "any: axis -3 is given twice, axes of [a: 2][b: 3][c: 4] must be unique"
    );
    assert_eq!(
        check(&ty, |b, v| b.sum(v[0], "d", true)),
        "sum: no axis is named \"d\", the shape is [a: 2][b: 3][c: 4]"
    );
}

#[test]
fn only_folds_with_an_identity_take_no_elements() {
    assert_eq!(check(&["f32[0][3]"], |b, v| b.sum(v[0], 0, false)), "f32[3]");
    assert_eq!(check(&["f32[0]"], |b, v| b.all(v[0], Axes::All, false)), "bool");
    assert_eq!(check(&["f32[0][3]"], |b, v| b.reduce_max(v[0], 1, false)), "f32[0]");
    let required = "a reduction without an identity needs at least one";
    assert_eq!(
        check(&["f32[0][3]"], |b, v| b.reduce_min(v[0], 0, false)),
        format!("reduce_min: f32[0][3] has no element on axis 0, {required}")
    );
    assert_eq!(
        check(&["f32[0][3]"], |b, v| b.mean(v[0], 0, false)),
        format!("mean: f32[0][3] has no element on axis 0, {required}")
    );
    assert_eq!(
        check(&["f32[0]"], |b, v| b.standard_deviation(v[0], Axes::All, false, 0)),
        format!("standard_deviation: f32[0] has no element on axis 0, {required}")
    );
    assert_eq!(
        check(&["f32[0]"], |b, v| b.argmax(v[0], None, false, TieBreak::Low, DType::S32)),
        format!("argmax: f32[0] has no element on axis 0, {required}")
    );
    assert_eq!(check(&["f16[0][3]"], |b, v| b.logsumexp(v[0], 0, true, None)), "f16[1][3]");
}

#[test]
fn extremes_are_found_along_one_axis_or_all() {
    let ty = ["f32[a: 2][3]"];
    let low = TieBreak::Low;
    assert_eq!(check(&ty, |b, v| b.argmax(v[0], Some("a".into()), false, low, DType::S32)), "s32[3]");
    assert_eq!(check(&ty, |b, v| b.argmin(v[0], Some(0.into()), true, low, DType::U8)), "u8[a: 1][3]");
    assert_eq!(check(&ty, |b, v| b.argmin(v[0], None, true, TieBreak::High, DType::S64)), "s64");
    assert_eq!(
        check(&ty, |b, v| b.argmin(v[0], None, true, low, DType::F32)),
        "argmin: dtype is f32, it must be an integer dtype"
    );
    assert!(
        check(&["c64[2]"], |b, v| b.argmax(v[0], None, false, low, DType::S32))
            .starts_with("argmax: the operand is c64[2], it must be")
    );
}

#[test]
fn statistics_are_floats() {
    for &dtype in DType::ALL {
        let (ty, float) = (format!("{dtype}[x: 2][3]"), dtype.to_float());
        assert_eq!(check(&[&ty], |b, v| b.mean(v[0], 1, false)), format!("{float}[x: 2]"));
        assert_eq!(check(&[&ty], |b, v| b.mean(v[0], NONE, false)), format!("{float}[x: 2][3]"));
        assert_eq!(check(&[&ty], |b, v| b.variance(v[0], 0, true, 1)), format!("{float}[x: 1][3]"));
        assert_eq!(check(&[&ty], |b, v| b.standard_deviation(v[0], Axes::All, false, 0)), float.to_string());
        assert_eq!(check(&[&ty], |b, v| b.covariance(v[0], None, 0)), format!("{float}[3][3]"));
        assert_eq!(
            check(&[&ty, "u8[3]"], |b, v| b.weighted_mean(v[0], v[1], 1, false)),
            format!("{}[x: 2]", dtype.merge(DType::U8).to_float())
        );
    }
}

#[test]
fn weights_have_the_shape_or_the_axes() {
    let of = |weights: &str, axes: Axes| {
        check(&["f32[a: 2][b: 3][c: 4]", weights], |b, v| b.weighted_mean(v[0], v[1], axes, false))
    };
    assert_eq!(of("f32[2][3][4]", Axes::All), "f32");
    assert_eq!(of("f32[4][2]", Axes::from(["c", "a"])), "f32[b: 3]");
    assert_eq!(
        of("f32[2][4]", Axes::from(["c", "a"])),
        "weighted_mean: shapes f32[a: 2][b: 3][c: 4] and f32[2][4] must be equal, the ranks are 3 and 2"
    );
    assert!(of("f32[4]", Axes::All).starts_with("weighted_mean: shapes"));
}

#[test]
fn covariance_takes_a_mean_and_drops_names() {
    assert_eq!(check(&["f16[b: 5][n: 2][d: 3]"], |b, v| b.covariance(v[0], None, 1)), "f16[5][3][3]");
    assert_eq!(
        check(&["f16[n: 2][d: 3]", "f64[d: 3]"], |b, v| b.covariance(v[0], Some(v[1].into()), 1)),
        "f64[3][3]"
    );
    assert_eq!(
        check(&["f16[2][3]", "f64[2]"], |b, v| b.covariance(v[0], Some(v[1].into()), 1)),
        "covariance: shapes [2][3] and [1][2] do not broadcast, axis 1 of the result has sizes 3 and 2; sizes must be \
         equal or 1"
    );
    assert_eq!(
        check(&["f16[2]"], |b, v| b.covariance(v[0], None, 1)),
        "covariance: the operand is f16[2], at least two axes are required, rows being observations"
    );
    assert_eq!(
        check(&["f16[2][3]"], |b, v| b.covariance(v[0], None, -1)),
        "covariance: ddof is -1, it must be an integer of at least 0"
    );
}

#[test]
fn logsumexp_is_a_block_or_takes_a_factor() {
    assert_eq!(check(&["bf16[a: 2][3]"], |b, v| b.logsumexp(v[0], "a", false, None)), "bf16[3]");
    assert_eq!(check(&["u8[a: 2][3]"], |b, v| b.logsumexp(v[0], Axes::All, true, None)), "f32[a: 1][1]");
    let factor = |number| Some(Arg::Number(Number::Float(number)));
    assert_eq!(check(&["f16[a: 2][3]"], |b, v| b.logsumexp(v[0], 1, false, factor(2.0))), "f16[a: 2]");
    assert_eq!(
        check(&["f16[a: 2][3]", "f64[3]"], |b, v| b.logsumexp(v[0], 1, false, Some(v[1].into()))),
        "f64[a: 2]"
    );
    assert_eq!(
        check(&["f16[3]", "f16[2][3]"], |b, v| b.logsumexp(v[0], 0, false, Some(v[1].into()))),
        "logsumexp: the factor is f16[2][3], it must broadcast to the shape [3]"
    );
    assert_eq!(
        check(&["c64[3]"], |b, v| b.logsumexp(v[0], 0, false, None)),
        "logsumexp: the operand is c64[3], it must be an integer or a float, not complex"
    );
}
