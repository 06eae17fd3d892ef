use defn_core::builder::{Arg, BuildElementwise, Builder};
use defn_core::graph::Graph;
use defn_core::op::{BinaryOp, BinaryRule, UnaryOp, UnaryRule};
use defn_core::{DType, Number, Scalar, TensorType};
use proptest::prelude::*;

use super::check;

#[test]
fn unary_ops_follow_their_rules_in_every_dtype() {
    for &op in UnaryOp::ALL {
        for &dtype in DType::ALL {
            let got = check(&[&format!("{dtype}[x: 2]")], |b, v| b.unary(op, v[0]));
            let is_logical = dtype.is_bool() && op == UnaryOp::BITWISE_NOT;
            if !op.domain().has(dtype) && !is_logical {
                assert!(got.starts_with(&format!("{}: the operand is {dtype}[x: 2], ", op.name())), "{got}");
                continue;
            }
            let expected = match op.rule() {
                UnaryRule::Same => dtype,
                UnaryRule::Float => dtype.to_float(),
                UnaryRule::Magnitude if dtype.is_complex() => dtype.to_real(),
                UnaryRule::Magnitude => dtype,
                UnaryRule::Real => dtype.to_real(),
                UnaryRule::Complex => dtype.to_complex(),
                UnaryRule::Predicate => DType::Bool,
            };
            assert_eq!(got, format!("{expected}[x: 2]"), "{}", op.name());
        }
    }
}

#[test]
fn binary_ops_merge_dtypes_shapes_and_names() {
    for &op in BinaryOp::ALL {
        for &a in DType::ALL {
            for &b in DType::ALL {
                let merged = a.merge(b);
                let got = check(&[&format!("{a}[x: 2][1]"), &format!("{b}[y: 3]")], |b, v| {
                    b.binary(op, v[0], v[1])
                });
                // Sums of bools are `or`, products `and`; their bits are booleans.
                let logical = [
                    BinaryOp::ADD,
                    BinaryOp::MULTIPLY,
                    BinaryOp::BITWISE_AND,
                    BinaryOp::BITWISE_OR,
                    BinaryOp::BITWISE_XOR,
                ];
                let is_logical = merged.is_bool() && logical.contains(&op);
                if !is_logical && !op.domain().has(merged) {
                    assert!(got.starts_with(&format!("{}: the operands are", op.name())), "{got}");
                    continue;
                }
                let expected = match op.rule() {
                    BinaryRule::Merge => merged,
                    BinaryRule::Float => merged.to_float(),
                    BinaryRule::Complex => merged.to_complex(),
                    BinaryRule::Predicate => DType::Bool,
                };
                // The second axis of the left operand has no name and merges with `y`.
                assert_eq!(got, format!("{expected}[x: 2][y: 3]"), "{}", op.name());
            }
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    assert_eq!(
        check(&["f32[2]", "f32[3]"], |b, v| b.add(v[0], v[1])),
        "add: shapes [2] and [3] do not broadcast, axis 0 of the result has sizes 2 and 3; sizes must be \
         equal or 1\n  left: f32[2]\n  right: f32[3]"
    );
    assert_eq!(
        check(&["f32[x: 2]", "f32[y: 2]"], |b, v| b.add(v[0], v[1])),
        "add: axis 0 is named \"x\" and axis 0 of the other operand \"y\", merged axes must have one name; \
         rename one of them\n  left: f32[x: 2]\n  right: f32[y: 2]"
    );
}

#[test]
fn plain_numbers_give_way() {
    let sum = |dtype: &str, number: Number| check(&[dtype], |b, v| b.add(v[0], number));
    assert_eq!(sum("u8", Number::Int(255)), "u8");
    assert_eq!(sum("s64", Number::Float(1.0)), "f32");
    assert_eq!(sum("f16", Number::Float(1e300)), "f16");
    assert_eq!(sum("f64", Number::complex(0.0, 1.0)), "c128");
    assert_eq!(check(&[], |b, _| b.add(1, 2)), "s32");
    assert_eq!(check(&[], |b, _| b.add(1, 2.5)), "f32");
    assert_eq!(
        check(&["s64"], |b, v| b.add(v[0], u64::MAX)),
        "add: the integer 18446744073709551615 beside s64, an integer from -9223372036854775808 to \
         9223372036854775807 is required; convert the tensor to a wider dtype with as_type"
    );
    assert_eq!(sum("f32", Number::Huge(1e40)), "f32");
    assert_eq!(
        sum("u8", Number::Huge(-1e40)),
        "add: the integer -1e40 beside u8, an integer from 0 to 255 is required; convert the tensor to a wider dtype \
         with as_type"
    );
    assert_eq!(check(&["u8[2]"], |b, v| b.less(v[0], 300)), "bool[2]");
}

#[test]
fn plain_numbers_give_way_among_three_operands() {
    assert_eq!(check(&["u8[2]", "f16[2]"], |b, v| b.select(v[0], v[1], 0.5)), "f16[2]");
    assert_eq!(check(&["u8[2]", "u8[2]"], |b, v| b.select(v[0], v[1], 0)), "u8[2]");
    assert_eq!(check(&["u8[2]"], |b, v| b.select(v[0], 1, 0.5)), "f32[2]");
    assert_eq!(check(&["f16[2]"], |b, v| b.clip(v[0], 0.0, 1.0)), "f16[2]");
    assert_eq!(check(&["u8[2]"], |b, v| b.clip(v[0], -1, 300)), "u8[2]");
    assert_eq!(check(&["u8[2]"], |b, v| b.clip(v[0], 0, 0.5)), "f32[2]");
    assert_eq!(check(&["f16", "f64"], |b, v| b.clip(0, v[0], v[1])), "f64");
}

#[test]
fn select_broadcasts_the_predicate_and_both_branches() {
    let of = |types: &[&str]| check(types, |b, v| b.select(v[0], v[1], v[2]));
    assert_eq!(of(&["u8", "s8[x: 2][1]", "u8[y: 3]"]), "s16[x: 2][y: 3]");
    assert_eq!(of(&["f32[2]", "s8[x: 2]", "s8"]), "s8[x: 2]");
    assert_eq!(of(&["u8[p: 2][1]", "s8[x: 3]", "s8"]), "s8[p: 2][x: 3]");
    assert_eq!(
        of(&["f32[p: 2]", "s8[x: 2]", "s8"]),
        "select: axis 0 is named \"p\" and axis 0 of the other operand \"x\", merged axes must have one name; \
         rename one of them\n  operand 0: f32[p: 2]\n  operand 1: s8[x: 2]\n  operand 2: s8"
    );
    assert_eq!(
        of(&["u8[2]", "s8[3]", "s8"]),
        "select: the predicate is u8[2] and the branches are s8[3] and s8; all three must broadcast together"
    );
}

#[test]
fn clip_refuses_bounds_with_axes_and_complex_operands() {
    assert_eq!(
        check(&["f32[2]", "f32[2]"], |b, v| b.clip(v[0], v[1], 1.0)),
        "clip: the lower bound is f32[2], it must be a scalar"
    );
    assert_eq!(
        check(&["c64"], |b, v| b.clip(v[0], 0, 1)),
        "clip: the operand is c64, it must be an integer or a float, not complex"
    );
}

#[test]
fn an_integer_has_no_negative_power() {
    assert_eq!(
        check(&["s32[2]"], |b, v| b.pow(v[0], -1)),
        "pow: the exponent of an integer base is -1, it must not be negative; convert the base to a float"
    );
    assert_eq!(check(&["f32[2]"], |b, v| b.pow(v[0], -1)), "f32[2]");
    assert_eq!(check(&["s32[2]"], |b, v| b.pow(v[0], -1.0)), "f32[2]");
    assert_eq!(check(&["s32[2]", "s8"], |b, v| b.pow(v[0], v[1])), "s32[2]");
}

#[test]
fn casts_to_the_same_type_add_no_node() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::scalar(DType::F32));
    assert_eq!(graph.as_type(x, DType::F32).unwrap(), x);
    let y = graph.as_type(x, DType::U8).unwrap();
    assert_eq!(Builder::ty(&graph, &y).dtype, DType::U8);
    assert_eq!(check(&["f32[x: 1]"], |b, v| b.bitcast(v[0], DType::S32)), "s32[x: 1]");
    assert_eq!(
        check(&["f32[1]"], |b, v| b.bitcast(v[0], DType::S64)),
        "bitcast: the operand is f32[1], a bitcast to s64 needs elements of 64 bits that are not complex"
    );
}

#[test]
fn blocks_and_composites_have_the_types_of_their_definitions() {
    assert_eq!(check(&["c64[x: 2]"], |b, v| b.logical_not(v[0])), "bool[x: 2]");
    assert_eq!(check(&["c128[x: 2]"], |b, v| b.phase(v[0])), "f64[x: 2]");
    assert_eq!(check(&["u8[x: 2]"], |b, v| b.phase(v[0])), "f32[x: 2]");
    assert_eq!(check(&["u8[2][3]", "f32[3]"], |b, v| b.all_close(v[0], v[1], true, 1e-5, 1e-8)), "bool");
    assert_eq!(check(&["f16[2]"], |b, v| b.all_close(v[0], 1, false, 1e-5, 1e-8)), "bool");
    assert_eq!(check(&["u8[2]"], |b, v| b.log2(v[0])), "f32[2]");
    assert_eq!(check(&["f16[2]"], |b, v| b.log_base(v[0], 3.5)), "f16[2]");
    assert_eq!(check(&["f16[2]", "f64"], |b, v| b.log_base(v[0], v[1])), "f64[2]");
    for base in [0.0, 1.0, -2.0, f64::NAN] {
        let text = check(&["f32"], |b, v| b.log_base(v[0], base));
        assert_eq!(text, format!("log: base is {base}, it must be a number above 0 other than 1"));
    }
}

#[test]
fn derived_functions_of_one_operand_have_their_dtypes() {
    for &dtype in DType::ALL {
        let ty = format!("{dtype}[x: 2][3]");
        let float = dtype.to_float();
        let floats = format!("{float}[x: 2][3]");
        assert_eq!(check(&[&ty], |b, v| b.reciprocal(v[0])), floats);
        assert_eq!(check(&[&ty], |b, v| b.exp2(v[0])), floats);
        assert_eq!(check(&[&ty], |b, v| b.sinc(v[0])), floats);
        assert_eq!(check(&[&ty], |b, v| b.isfinite(v[0])), "bool[x: 2][3]");
        assert_eq!(check(&[&ty, "u8[3]"], |b, v| b.isclose(v[0], v[1], false, 0.0, 1.0)), "bool[x: 2][3]");
        assert_eq!(check(&[&ty], |b, v| b.nan_to_num(v[0], 0.0, None, Some(1.0))), ty);
        assert_eq!(check(&[&ty], |b, v| b.square(v[0])), ty);
        let texts = [
            (check(&[&ty], |b, v| b.signbit(v[0])), "bool[x: 2][3]".to_owned()),
            (check(&[&ty], |b, v| b.trunc(v[0])), ty.clone()),
            (check(&[&ty], |b, v| b.radians(v[0])), floats.clone()),
            (check(&[&ty], |b, v| b.degrees(v[0])), floats),
        ];
        for (name, (text, wanted)) in ["signbit", "trunc", "radians", "degrees"].iter().zip(texts) {
            if dtype.is_complex() {
                let refusal =
                    format!("{name}: the operand is {ty}, it must be an integer or a float, not complex");
                assert!(text.starts_with(&refusal), "{text}");
            } else {
                assert_eq!(text, wanted, "{name}");
            }
        }
    }
    assert_eq!(check(&[], |b, _| b.exp2(3)), "f32");
}

#[test]
fn derived_functions_of_two_operands_are_floats() {
    for &a in DType::ALL {
        for &b in DType::ALL {
            let (left, right) = (format!("{a}[x: 2][1]"), format!("{b}[3]"));
            let types = [left.as_str(), right.as_str()];
            let results = [
                ("copysign", check(&types, |b, v| b.copysign(v[0], v[1]))),
                ("hypot", check(&types, |b, v| b.hypot(v[0], v[1]))),
                ("logaddexp", check(&types, |b, v| b.logaddexp(v[0], v[1]))),
                ("heaviside", check(&types, |b, v| b.heaviside(v[0], v[1]))),
                ("nextafter", check(&types, |b, v| b.nextafter(v[0], v[1]))),
            ];
            let merged = a.merge(b).to_float();
            for (name, text) in results {
                if merged.is_complex() {
                    assert!(text.starts_with(&format!("{name}: the operands are")), "{text}");
                } else {
                    assert_eq!(text, format!("{merged}[x: 2][3]"), "{name}");
                }
            }
        }
    }
    // An integer that the other operand's dtype does not hold is a float.
    assert_eq!(check(&["u8[2]"], |b, v| b.hypot(v[0], 300)), "f32[2]");
    assert_eq!(check(&["bf16[2]"], |b, v| b.logaddexp(0.5, v[0])), "bf16[2]");
}

#[test]
fn floor_division_keeps_the_merged_dtype() {
    for &a in DType::ALL {
        for &b in DType::ALL {
            let (left, right) = (format!("{a}[x: 2][1]"), format!("{b}[3]"));
            let quotient = check(&[&left, &right], |g, v| g.floor_divide(v[0], v[1]));
            let modulo = check(&[&left, &right], |g, v| g.floor_modulo(v[0], v[1]));
            let both = check(&[&left, &right], |g, v| g.divmod(v[0], v[1]));
            let merged = a.merge(b);
            if merged.is_complex() || merged.is_bool() {
                assert!(quotient.starts_with("floor_divide: the operands are"), "{quotient}");
                assert!(modulo.starts_with("floor_modulo: the operands are"), "{modulo}");
                assert!(both.starts_with("divmod: the operands are"), "{both}");
            } else {
                assert_eq!(quotient, format!("{merged}[x: 2][3]"));
                assert_eq!(modulo, format!("{merged}[x: 2][3]"));
                assert_eq!(both, format!("{quotient}, {modulo}"));
            }
        }
    }
}

fn any_dtype() -> impl Strategy<Value = DType> {
    proptest::sample::select(DType::ALL)
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_map(Number::from),
    ]
}

proptest! {
    /// A number combined with a tensor is a constant of a type that holds it, or an error, on either side.
    #[test]
    fn numbers_are_the_same_on_either_side(dtype in any_dtype(), number in any_number()) {
        let ty = dtype.to_string();
        let right = check(&[&ty], |b, v| b.multiply(v[0], number));
        let left = check(&[&ty], |b, v| b.multiply(number, v[0]));
        prop_assert_eq!(&left, &right);
        let merged = dtype.merge_weak(number);
        let exact = match number {
            Number::Int(value) if merged.is_integer() => {
                Scalar::new(merged, number).unwrap().value() == Number::Int(value)
            }
            Number::Bool(_)
            | Number::Int(_)
            | Number::Huge(_)
            | Number::Float(_)
            | Number::Complex(_) => true,
        };
        if exact {
            prop_assert_eq!(right, merged.to_string());
        } else {
            prop_assert!(right.contains("convert the tensor to a wider dtype"), "{}", right);
        }
    }

    /// Broadcasting depends on the pair, not on its order.
    #[test]
    fn broadcasting_is_symmetric(
        a in proptest::collection::vec(0usize..4, 0..4),
        b in proptest::collection::vec(0usize..4, 0..4),
    ) {
        let text = |sizes: &[usize]| sizes.iter().fold("f32".to_owned(), |text, size| format!("{text}[{size}]"));
        let forward = check(&[&text(&a), &text(&b)], |g, v| g.add(v[0], v[1]));
        let backward = check(&[&text(&b), &text(&a)], |g, v| g.add(v[0], v[1]));
        if forward.starts_with("f32") {
            prop_assert_eq!(forward, backward);
        } else {
            prop_assert!(backward.starts_with("add: shapes"), "{}", backward);
        }
    }
}

#[test]
fn arguments_convert_from_what_users_write() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::scalar(DType::F32));
    let by_value = graph.add(x, 1.5).unwrap();
    #[expect(clippy::needless_borrows_for_generic_args, reason = "the reference is what is tested")]
    let by_reference = graph.add(&x, Arg::Number(Number::Float(1.5))).unwrap();
    assert_eq!(graph.ty(by_value), graph.ty(by_reference));
}
