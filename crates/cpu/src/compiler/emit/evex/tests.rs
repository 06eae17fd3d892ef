//! Tests of the emitter for AVX-512.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test is of some of the ops")]

use super::Evex;
use crate::compiler::emit::mir::{Cmp, Conv, Elem, Op};
use crate::compiler::emit::x86::tests::harness::inst_with_operands;
use crate::compiler::emit::x86::tests::{self, decode, lanes};
use crate::compiler::emit::{AllocatedInst, AllocatedPart};

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
fn frames_are_decoded() {
    decode::check_frame(&Evex);
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
        Op::Compare(cmp) if is_float => format!(
            "vcmp{suffix} {either},{:#x}",
            match (cmp, memory) {
                (Cmp::Eq, _) => 0,
                (Cmp::Ne, _) => 4,
                (Cmp::Lt, Some(0)) => 0x1e,
                (Cmp::Lt, _) => 0x11,
                (_, Some(0)) => 0x1d,
                _ => 0x12,
            }
        ),
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

#[test]
fn ops_of_whole_vectors_are_decoded() {
    use Elem::{F32, F64, I8, I16, I32, I64};
    let at = "[r13+r12*4+0x40]";
    let check = |op, elem, lanes, text: &str| {
        let all = AllocatedInst { part: AllocatedPart::All, ..inst_with_operands(op, elem, lanes) };
        let inst = if matches!(op, Op::Gather(_)) { all } else { inst_with_operands(op, elem, lanes) };
        decode::check_text(&Evex, inst, &text.replace("[at]", at));
    };
    check(Op::LoadPart, I8, 64, "vmovdqu8 zmm3{k4}{z},zmmword ptr [at]");
    check(Op::LoadPart, I16, 16, "vmovdqu16 ymm3{k4}{z},ymmword ptr [at]");
    check(Op::LoadPart, F32, 4, "vmovdqu32 xmm3{k4}{z},xmmword ptr [at]");
    check(Op::LoadPart, F64, 8, "vmovdqu64 zmm3{k4}{z},zmmword ptr [at]");
    check(Op::LoadPart, I8, 8, "kmovb k2,k4; vmovdqu8 xmm3{k2}{z},xmmword ptr [at]");
    check(
        Op::LoadPart,
        F32,
        1,
        "kshiftlb k2,k4,0x7; kshiftrb k2,k2,0x7; vmovdqu32 xmm3{k2}{z},xmmword ptr [at]",
    );
    check(Op::StorePart, I8, 32, "vmovdqu8 ymmword ptr [at]{k4},ymm5");
    check(Op::StorePart, I16, 32, "vmovdqu16 zmmword ptr [at]{k4},zmm5");
    check(Op::StorePart, I32, 8, "vmovdqu32 ymmword ptr [at]{k4},ymm5");
    check(Op::StorePart, F64, 2, "vmovdqu64 xmmword ptr [at]{k4},xmm5");
    check(Op::Compare(Cmp::Eq), F32, 16, "vcmpps k3{k4},zmm5,zmm6,0x0");
    check(Op::Compare(Cmp::Eq), F64, 4, "vcmppd k3{k4},ymm5,ymm6,0x0");
    check(Op::Compare(Cmp::Lt), F32, 1, "vcmpss k3{k4},xmm5,xmm6,0x11");
    check(Op::Compare(Cmp::LtU), I8, 64, "vpcmpub k3{k4},zmm5,zmm6,0x1");
    let gather = "kxnorq k2,k2,k2; lea r11,[at]";
    let cases = [
        (F32, I32, 16, "vpxord zmm3,zmm3,zmm3; vpgatherdd zmm3,k2,dword ptr [r11+zmm5*4]"),
        (F32, I64, 8, "vpxord ymm3,ymm3,ymm3; vpgatherqd ymm3,k2,dword ptr [r11+zmm5*4]"),
        (F64, I32, 8, "vpxord zmm3,zmm3,zmm3; vpgatherdq zmm3,k2,qword ptr [r11+ymm5*8]"),
        (I64, I64, 4, "vpxord ymm3,ymm3,ymm3; vpgatherqq ymm3,k2,qword ptr [r11+ymm5*8]"),
    ];
    for (elem, from, lanes, text) in cases {
        check(Op::Gather(from), elem, lanes, &format!("{gather}; {text}"));
    }
    let scalar = "vmovd r11d,xmm5; movsxd r11,r11d; lea r8,[at]; vmovss xmm3,dword ptr [r8+r11*4]";
    check(Op::Gather(I32), F32, 1, scalar);
    check(Op::Splat, I8, 64, "vpbroadcastb zmm3,xmm5");
    check(Op::Splat, F64, 4, "vpbroadcastq ymm3,xmm5");
    check(Op::Splat, F64, 1, "vmovaps xmm3,xmm5");
    check(Op::Upper(8), F32, 16, "vextracti64x4 ymm3,zmm5,0x1");
    check(Op::Upper(4), F32, 8, "vextracti32x4 xmm3,ymm5,0x1");
    check(Op::Upper(2), F32, 4, "valignd xmm3,xmm5,xmm5,0x2");
    check(Op::Upper(4), F32, 16, "valignd zmm3,zmm5,zmm5,0x4");
    check(Op::Upper(1), I16, 2, "vpsrldq xmm3,xmm5,0x2");
    let first = "mov r11d,0x10; cmp rbp,r11; cmovb r11,rbp; \
        bzhi r11,qword ptr [ffffffffffffffff],r11; kmovq k3,r11";
    check(Op::MaskFirst, I32, 16, first);
    check(Op::MaskSplat, I32, 16, "kmovd r11d,k5; and r11d,0x1; neg r11; kmovq k3,r11");
    check(Op::MaskAnd, I8, 64, "kandq k3,k5,k6");
    check(Op::MaskOr, I8, 64, "korq k3,k5,k6");
    check(Op::MaskXor, I8, 64, "kxorq k3,k5,k6");
    check(Op::MaskAndNot, I8, 64, "kandnq k3,k6,k5");
    check(Op::MaskNot, I8, 64, "knotq k3,k5");
    check(Op::ToGeneral, I8, 1, "vmovd ebx,xmm5; movsx rbx,bl");
    check(Op::ToGeneral, I64, 1, "vmovq rbx,xmm5");
    check(Op::OfGeneral, I64, 1, "vmovq xmm3,rbp");
}
