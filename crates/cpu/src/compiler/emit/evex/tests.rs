//! Tests of the emitter for AVX-512.

use super::Evex;
use crate::compiler::emit::mir::{Cmp, Conv, Elem, Op};
use crate::compiler::emit::x86::tests::{self, decode, lanes};

/// Whether this machine can execute the code.
fn can_run() -> bool {
    ["avx512f", "avx512bw", "avx512dq", "avx512vl", "bmi2"].iter().all(|feature| match *feature {
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512dq" => is_x86_feature_detected!("avx512dq"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        _ => is_x86_feature_detected!("bmi2"),
    })
}

#[test]
fn ops_are_those_of_scalars() {
    if can_run() {
        lanes::check_all(&Evex);
    }
}

#[test]
fn code_does_what_it_should() {
    if can_run() {
        tests::check_all(&Evex);
    }
}

#[test]
fn ops_use_their_registers() {
    decode::check_registers(&Evex);
}

#[test]
fn addresses_are_decoded() {
    decode::check_addresses(&Evex);
}

#[test]
fn ops_are_decoded() {
    decode::check_texts(&Evex, true, pattern);
}

/// The letters of integers by their width, and of bits, which have two widths only.
fn letter(elem: Elem) -> &'static str {
    ["b", "w", "d", "q"][elem.bytes().trailing_zeros() as usize]
}

fn bits_letter(elem: Elem) -> &'static str {
    if elem.bytes() == 8 { "q" } else { "d" }
}

/// The text of the ops that one instruction is.
fn pattern(op: Op, elem: Elem, lanes: u8, memory: Option<usize>, tied: &[usize]) -> Option<String> {
    let suffix = match (elem, lanes == 1) {
        (Elem::F32, false) => "ps",
        (Elem::F64, false) => "pd",
        (Elem::F32, true) => "ss",
        (Elem::F64, true) => "sd",
        _ => letter(elem),
    };
    let is_float = elem.is_float();
    let (bits, width) = (bits_letter(elem), letter(elem));
    // The operands of ops that may be swapped.
    let either = if memory == Some(0) { "D,B,A" } else { "D,A,B" };
    let (ps, is_scalar) = (if is_float { "v" } else { "vp" }, lanes == 1);
    let text = match op {
        Op::Add => format!("{ps}add{suffix} {either}"),
        Op::Sub => format!("{ps}sub{suffix} D,A,B"),
        Op::Mul if is_float => format!("vmul{suffix} {either}"),
        Op::Mul => format!("vpmull{suffix} {either}"),
        Op::Div => format!("vdiv{suffix} D,A,B"),
        Op::Min if is_float => format!("vmin{suffix} D,A,B"),
        Op::Max if is_float => format!("vmax{suffix} D,A,B"),
        Op::Min => format!("vpmins{suffix} {either}"),
        Op::Max => format!("vpmaxs{suffix} {either}"),
        Op::MinU => format!("vpminu{suffix} {either}"),
        Op::MaxU => format!("vpmaxu{suffix} {either}"),
        Op::And => format!("vpand{bits} {either}"),
        Op::Or => format!("vpor{bits} {either}"),
        Op::Xor => format!("vpxor{bits} {either}"),
        Op::AndNot => format!("vpandn{bits} D,B,A"),
        Op::Not => format!("vpternlog{bits} D,D,D,0x55"),
        Op::Shl => format!("vpsllv{width} D,A,B"),
        Op::Shr => format!("vpsrlv{width} D,A,B"),
        Op::Sar => format!("vpsrav{width} D,A,B"),
        Op::ShlBy(by) if elem.bytes() > 1 => format!("vpsll{width} D,A,{by:#x}"),
        Op::ShrBy(by) if elem.bytes() > 1 => format!("vpsrl{width} D,A,{by:#x}"),
        Op::SarBy(by) if elem.bytes() > 1 => format!("vpsra{width} D,A,{by:#x}"),
        Op::RotBy(by) if elem.bytes() > 2 => format!("vprol{width} D,A,{by:#x}"),
        Op::Scale => format!("vscalef{suffix} D,A,B"),
        Op::Sqrt if is_scalar => format!("vsqrt{suffix} D,A,A"),
        Op::Sqrt => format!("vsqrt{suffix} D,A"),
        Op::Nearest if is_scalar => format!("vrndscale{suffix} D,A,A,0x8"),
        Op::Floor if is_scalar => format!("vrndscale{suffix} D,A,A,0x9"),
        Op::Ceil if is_scalar => format!("vrndscale{suffix} D,A,A,0xa"),
        Op::Trunc if is_scalar => format!("vrndscale{suffix} D,A,A,0xb"),
        Op::Nearest => format!("vrndscale{suffix} D,A,0x8"),
        Op::Floor => format!("vrndscale{suffix} D,A,0x9"),
        Op::Ceil => format!("vrndscale{suffix} D,A,0xa"),
        Op::Trunc => format!("vrndscale{suffix} D,A,0xb"),
        Op::Fma => format!("vfmadd{}", tests::fused_text(suffix, memory, tied)?),
        Op::Fnma => format!("vfnmadd{}", tests::fused_text(suffix, memory, tied)?),
        Op::Flip => flip_text(bits, memory, tied.first().copied()),
        Op::Compare(cmp) if is_float => format!("vcmp{suffix} {either},{:#x}", match (cmp, memory) {
            (Cmp::Eq, _) => 0,
            (Cmp::Ne, _) => 4,
            (Cmp::Lt, Some(0)) => 0x1e,
            (Cmp::Lt, _) => 0x11,
            (_, Some(0)) => 0x1d,
            _ => 0x12,
        }),
        Op::Compare(cmp) => {
            let sign = if matches!(cmp, Cmp::LtU | Cmp::LeU) { "u" } else { "" };
            let predicate = match (cmp, memory) {
                (Cmp::Eq, _) => 0,
                (Cmp::Ne, _) => 4,
                (Cmp::Lt | Cmp::LtU, Some(0)) => 6,
                (Cmp::Lt | Cmp::LtU, _) => 1,
                (Cmp::Le | Cmp::LeU, Some(0)) => 5,
                (Cmp::Le | Cmp::LeU, _) => 2,
            };
            format!("vpcmp{sign}{width} {either},{predicate:#x}")
        }
        Op::Test => format!("vptestm{width} {either}"),
        Op::Select => format!("vpblendm{width} D{{K}},C,B"),
        Op::Convert(conv, from) => conversion(conv, from, elem, lanes)?,
        _ => return None,
    };
    Some(text)
}

/// `a ^ (b & c)`, whose table is that of the order of its operands.
fn flip_text(bits: &str, memory: Option<usize>, tied: Option<usize>) -> String {
    let rest = match (tied, memory) {
        (Some(0), Some(1)) => "C,B,0x78",
        (Some(0), _) => "B,C,0x78",
        (Some(1), Some(2)) => "A,C,0x6c",
        (Some(1), _) => "C,A,0x6a",
        (_, Some(1)) => "A,B,0x6c",
        _ => "B,A,0x6a",
    };
    format!("vpternlog{bits} D,{rest}")
}

fn conversion(conv: Conv, from: Elem, to: Elem, lanes: u8) -> Option<String> {
    let is_single = lanes == 1;
    let name = match (conv, from, to) {
        (Conv::ZeroExtend, ..) => format!("vpmovzx{}{}", letter(from), letter(to)),
        (Conv::SignExtend, ..) => format!("vpmovsx{}{}", letter(from), letter(to)),
        (Conv::Truncate, ..) => format!("vpmov{}{}", letter(from), letter(to)),
        (Conv::FloatOfS, Elem::I32, Elem::F32) => "vcvtdq2ps".into(),
        (Conv::FloatOfS, Elem::I32, _) => "vcvtdq2pd".into(),
        (Conv::FloatOfS, _, Elem::F32) => "vcvtqq2ps".into(),
        (Conv::FloatOfS, ..) => "vcvtqq2pd".into(),
        (Conv::FloatOfU, Elem::I32, Elem::F32) => "vcvtudq2ps".into(),
        (Conv::FloatOfU, Elem::I32, _) => "vcvtudq2pd".into(),
        (Conv::FloatOfU, _, Elem::F32) => "vcvtuqq2ps".into(),
        (Conv::FloatOfU, ..) => "vcvtuqq2pd".into(),
        (Conv::Float, Elem::F32, _) if is_single => return Some("vcvtss2sd D,A,A".into()),
        (Conv::Float, ..) if is_single => return Some("vcvtsd2ss D,A,A".into()),
        (Conv::Float, Elem::F32, _) => "vcvtps2pd".into(),
        (Conv::Float, ..) => "vcvtpd2ps".into(),
        (Conv::OfHalf, ..) => "vcvtph2ps".into(),
        (Conv::ToHalf, ..) => return Some("vcvtps2ph D,A,0x0".into()),
        _ => return None,
    };
    Some(format!("{name} D,A"))
}
