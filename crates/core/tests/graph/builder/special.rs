use defn_core::DType;
use defn_core::builder::BuildSpecial;

use super::check;

#[test]
fn functions_of_one_operand_are_floats() {
    for &dtype in DType::ALL {
        let ty = format!("{dtype}[x: 2][3]");
        let results = [
            ("lgamma", check(&[&ty], |b, v| b.lgamma(v[0]))),
            ("digamma", check(&[&ty], |b, v| b.digamma(v[0]))),
            ("trigamma", check(&[&ty], |b, v| b.trigamma(v[0]))),
            ("i0", check(&[&ty], |b, v| b.i0(v[0]))),
            ("i0e", check(&[&ty], |b, v| b.i0e(v[0]))),
            ("i1", check(&[&ty], |b, v| b.i1(v[0]))),
            ("i1e", check(&[&ty], |b, v| b.i1e(v[0]))),
            ("ndtr", check(&[&ty], |b, v| b.ndtr(v[0]))),
            ("ndtri", check(&[&ty], |b, v| b.ndtri(v[0]))),
        ];
        for (name, text) in results {
            if dtype.is_complex() {
                let refusal =
                    format!("{name}: the operand is {ty}, it must be an integer or a float, not complex");
                assert!(text.starts_with(&refusal), "{text}");
            } else {
                assert_eq!(text, format!("{}[x: 2][3]", dtype.to_float()), "{name}");
            }
        }
    }
    assert_eq!(check(&[], |b, _| b.lgamma(3)), "f32");
}

#[test]
fn functions_of_several_operands_broadcast() {
    for &a in DType::ALL {
        for &b in &[DType::U8, DType::BF16, DType::F64] {
            let (left, right) = (format!("{a}[x: 2][1]"), format!("{b}[3]"));
            let types = [left.as_str(), right.as_str()];
            let results = [
                ("betaln", check(&types, |b, v| b.betaln(v[0], v[1]))),
                ("gammainc", check(&types, |b, v| b.gammainc(v[0], v[1]))),
                ("gammaincc", check(&types, |b, v| b.gammaincc(v[0], v[1]))),
                ("betainc", check(&types, |b, v| b.betainc(v[0], v[1], 0.5))),
            ];
            let merged = a.merge(b).to_float();
            for (name, text) in results {
                if merged.is_complex() {
                    assert!(text.starts_with(&format!("{name}: the operand")), "{text}");
                } else {
                    assert_eq!(text, format!("{merged}[x: 2][3]"), "{name}");
                }
            }
        }
    }
    assert_eq!(check(&["bf16[2]"], |b, v| b.gammainc(0.5, v[0])), "bf16[2]");
    let text = check(&["f32[2]", "f32[3]"], |b, v| b.betainc(1.0, v[0], v[1]));
    assert!(text.starts_with("betainc: shapes [2] and [3] do not broadcast"), "{text}");
}
