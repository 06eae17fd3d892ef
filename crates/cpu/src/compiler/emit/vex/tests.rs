//! Tests of the emitter for AVX2.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test is of some of the ops")]

use super::Vex;
use crate::compiler::emit::mir::{Cmp, Conv, Elem, Op};
use crate::compiler::emit::x86::tests::harness::inst_with_operands;
use crate::compiler::emit::x86::tests::{self, decode, lanes};
use crate::compiler::emit::{AllocatedInst, AllocatedPart};

/// Whether this machine can execute the code.
fn can_run() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2")
}

#[test]
fn ops_are_those_of_scalars() {
    if can_run() {
        lanes::check_all(&Vex);
    }
}

#[test]
fn code_does_what_it_should() {
    if can_run() {
        tests::check_all(&Vex);
    }
}

#[test]
fn ops_use_their_registers() {
    decode::check_registers(&Vex);
}

#[test]
fn addresses_are_decoded() {
    decode::check_addresses(&Vex);
}

#[test]
fn frames_are_decoded() {
    decode::check_frame(&Vex);
}

#[test]
fn ops_are_decoded() {
    decode::check_texts(&Vex, false, pattern);
}

/// The letters of integers by their width.
fn letter(elem: Elem) -> &'static str {
    ["b", "w", "d", "q"][elem.bytes().trailing_zeros() as usize]
}

/// All bits of the scratch register, and another one inverted with them.
fn inverted(from: &str) -> String {
    format!("vpcmpeqd S,S,S; vpxor D,S,{from}")
}

/// The text of ops of up to four instructions. `S` is the scratch register.
fn pattern(op: Op, elem: Elem, lanes: u8, memory: Option<usize>, tied: &[usize]) -> Option<String> {
    let packed = if elem == Elem::F64 { "pd" } else { "ps" };
    let suffix = match (elem, lanes == 1) {
        (Elem::F32 | Elem::F64, false) => packed,
        (Elem::F32, true) => "ss",
        (Elem::F64, true) => "sd",
        _ => letter(elem),
    };
    let (is_float, is_scalar, is_long) = (elem.is_float(), lanes == 1, elem == Elem::I64);
    // The operands of ops that may be swapped.
    let (first, second) = if memory == Some(0) { ("B", "A") } else { ("A", "B") };
    let either = format!("D,{first},{second}");
    let ps = if is_float { "v" } else { "vp" };
    let bits = |name: &str| if is_float { format!("v{name}{packed}") } else { format!("vp{name}") };
    let text = match op {
        Op::Add => format!("{ps}add{suffix} {either}"),
        Op::Sub => format!("{ps}sub{suffix} D,A,B"),
        Op::Mul if is_float => format!("vmul{suffix} {either}"),
        Op::Mul if !is_long => format!("vpmull{suffix} {either}"),
        Op::Div => format!("vdiv{suffix} D,A,B"),
        Op::Min if is_float => format!("vmin{suffix} D,A,B"),
        Op::Max if is_float => format!("vmax{suffix} D,A,B"),
        Op::Min if is_long => "vpcmpgtq S,A,B; vblendvpd D,A,B,S".into(),
        Op::Max if is_long => "vpcmpgtq S,A,B; vblendvpd D,B,A,S".into(),
        Op::Mul | Op::MinU | Op::MaxU if is_long => return None,
        Op::Min => format!("vpmins{suffix} {either}"),
        Op::Max => format!("vpmaxs{suffix} {either}"),
        Op::MinU => format!("vpminu{suffix} {either}"),
        Op::MaxU => format!("vpmaxu{suffix} {either}"),
        Op::And => format!("{} {either}", bits("and")),
        Op::Or => format!("{} {either}", bits("or")),
        Op::Xor => format!("{} {either}", bits("xor")),
        Op::AndNot => format!("{} D,B,A", bits("andn")),
        Op::Not => inverted("A"),
        Op::Shl => format!("vpsllv{suffix} D,A,B"),
        Op::Shr => format!("vpsrlv{suffix} D,A,B"),
        Op::Sar if !is_long => format!("vpsrav{suffix} D,A,B"),
        Op::ShlBy(by) if elem.bytes() > 1 => format!("vpsll{suffix} D,A,{by:#x}"),
        Op::ShrBy(by) if elem.bytes() > 1 => format!("vpsrl{suffix} D,A,{by:#x}"),
        Op::SarBy(by) if elem.bytes() > 1 && !is_long => format!("vpsra{suffix} D,A,{by:#x}"),
        Op::RotBy(by) if elem.bytes() > 1 => {
            let right = 8 * elem.bytes() - usize::from(by);
            format!("vpsll{suffix} S,A,{by:#x}; vpsrl{suffix} D,A,{right:#x}; vpor D,D,S")
        }
        Op::Sqrt if is_scalar => format!("vsqrt{suffix} D,A,A"),
        Op::Sqrt => format!("vsqrt{suffix} D,A"),
        Op::Nearest if is_scalar => format!("vround{suffix} D,A,A,0x8"),
        Op::Floor if is_scalar => format!("vround{suffix} D,A,A,0x9"),
        Op::Ceil if is_scalar => format!("vround{suffix} D,A,A,0xa"),
        Op::Trunc if is_scalar => format!("vround{suffix} D,A,A,0xb"),
        Op::Nearest => format!("vround{suffix} D,A,0x8"),
        Op::Floor => format!("vround{suffix} D,A,0x9"),
        Op::Ceil => format!("vround{suffix} D,A,0xa"),
        Op::Trunc => format!("vround{suffix} D,A,0xb"),
        Op::Fma => format!("vfmadd{}", tests::fused_text(suffix, memory, tied)?),
        Op::Fnma => format!("vfnmadd{}", tests::fused_text(suffix, memory, tied)?),
        Op::Flip if memory == Some(1) => format!("{} S,C,B; {} D,S,A", bits("and"), bits("xor")),
        Op::Flip => format!("{} S,B,C; {} D,S,A", bits("and"), bits("xor")),
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
        Op::Compare(Cmp::Eq) => format!("vpcmpeq{suffix} {either}"),
        Op::Compare(Cmp::Ne) => format!("vpcmpeq{suffix} {either}; {}", inverted("D")),
        Op::Compare(Cmp::Lt) => format!("vpcmpgt{suffix} D,B,A"),
        Op::Compare(Cmp::Le) => format!("vpcmpgt{suffix} D,A,B; {}", inverted("D")),
        Op::Compare(_) if is_long => return None,
        Op::Compare(Cmp::LeU) => format!("vpminu{suffix} S,A,B; vpcmpeq{suffix} D,S,A"),
        Op::Compare(Cmp::LtU) => {
            format!("vpmaxu{suffix} S,A,B; vpcmpeq{suffix} D,S,A; {}", inverted("D"))
        }
        Op::Test => {
            let not = inverted("D");
            format!("vpand S,{first},{second}; vpxor Z,Z,Z; vpcmpeq{suffix} D,D,S; {not}")
        }
        Op::Select => match elem {
            Elem::I8 | Elem::I16 => "vpblendvb D,C,B,A".into(),
            Elem::I32 | Elem::F32 => "vblendvps D,C,B,A".into(),
            _ => "vblendvpd D,C,B,A".into(),
        },
        Op::Convert(conv, from) => conversion(conv, from, elem, lanes)?,
        _ => return None,
    };
    Some(text)
}

fn conversion(conv: Conv, from: Elem, to: Elem, lanes: u8) -> Option<String> {
    let is_single = lanes == 1;
    let name = match (conv, from, to) {
        (Conv::ZeroExtend, ..) => format!("vpmovzx{}{}", letter(from), letter(to)),
        (Conv::SignExtend, ..) => format!("vpmovsx{}{}", letter(from), letter(to)),
        (Conv::FloatOfS, Elem::I32, Elem::F32) => "vcvtdq2ps".into(),
        (Conv::FloatOfS, Elem::I32, _) => "vcvtdq2pd".into(),
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
    let check = |op, elem: Elem, lanes, text: &str| {
        let inst = inst_with_operands(op, elem, lanes);
        let part = match op {
            Op::Gather(_) => AllocatedPart::All,
            _ if elem.bytes() < 4 => AllocatedPart::Count(1),
            _ => inst.part,
        };
        decode::check_text(&Vex, AllocatedInst { part, ..inst }, &text.replace("[at]", at));
    };
    check(Op::LoadPart, F32, 8, "vpmaskmovd ymm3,ymm4,ymmword ptr [at]");
    check(Op::LoadPart, I64, 2, "vpmaskmovq xmm3,xmm4,xmmword ptr [at]");
    let limited = "vpslldq xmm15,xmm4,0xc; vpsrldq xmm15,xmm15,0xc";
    check(Op::LoadPart, F32, 1, &format!("{limited}; vpmaskmovd xmm3,xmm15,xmmword ptr [at]"));
    check(Op::StorePart, F32, 1, &format!("{limited}; vpmaskmovd xmmword ptr [at],xmm15,xmm5"));
    check(Op::StorePart, F64, 4, "vpmaskmovq ymmword ptr [at],ymm4,ymm5");
    let load = "vpxor xmm15,xmm15,xmm15; vmovups ymmword ptr [rsp],ymm15; lea r8,[at]; mov r11,rcx; \
        test r11,r11; je short 0x0000000000000028; movzx r9,byte ptr [r8+r11-0x1]; \
        mov byte ptr [rsp+r11-0x1],r9b; add r11,0xffffffffffffffff; jne short 0x0000000000000017; \
        vmovups ymm3,ymmword ptr [rsp]";
    check(Op::LoadPart, I8, 32, load);
    let store = "vmovups xmmword ptr [rsp],xmm5; lea r8,[at]; mov r11,rcx; test r11,r11; \
        je short 0x0000000000000024; movzx r9,word ptr [rsp+r11*2-0x2]; mov word ptr [r8+r11*2-0x2],r9w; \
        add r11,0xffffffffffffffff; jne short 0x0000000000000012";
    check(Op::StorePart, I16, 8, store);
    let cases = [
        (F32, I32, 8, "ymm8,ymm8,ymm8", "vpgatherdd ymm3,dword ptr [r11+ymm5*4],ymm8"),
        (F32, I64, 4, "xmm8,xmm8,xmm8", "vpgatherqd xmm3,dword ptr [r11+ymm5*4],xmm8"),
        (F64, I32, 4, "ymm8,ymm8,ymm8", "vpgatherdq ymm3,qword ptr [r11+xmm5*8],ymm8"),
        (I64, I64, 4, "ymm8,ymm8,ymm8", "vpgatherqq ymm3,qword ptr [r11+ymm5*8],ymm8"),
    ];
    for (elem, from, lanes, ones, gather) in cases {
        let text = format!("vpcmpeqd {ones}; lea r11,[at]; vpxor xmm3,xmm3,xmm3; {gather}");
        check(Op::Gather(from), elem, lanes, &text);
    }
    let scalar = "vmovq r11,xmm5; lea r8,[at]; vmovsd xmm3,qword ptr [r8+r11*8]";
    check(Op::Gather(I64), F64, 1, scalar);
    check(Op::Splat, I8, 32, "vpbroadcastb ymm3,xmm5");
    check(Op::Splat, F32, 8, "vpbroadcastd ymm3,xmm5");
    check(Op::MaskSplat, I32, 8, "vpbroadcastd ymm3,xmm5");
    check(Op::Upper(4), F32, 8, "vextracti128 xmm3,ymm5,0x1");
    check(Op::Upper(2), F32, 4, "vpsrldq xmm3,xmm5,0x8");
    check(Op::Upper(2), F32, 8, "vperm2i128 ymm15,ymm5,ymm5,0x81; vpalignr ymm3,ymm15,ymm5,0x8");
    let first = "mov r11d,0x4; cmp rbp,r11; cmovb r11,rbp; vmovd xmm15,r11d; vpbroadcastq ymm15,xmm15; \
        vpcmpgtq ymm3,ymm15,ymmword ptr \
        [0000000000000003000000000000000200000000000000010000000000000000]";
    check(Op::MaskFirst, I64, 4, first);
    check(Op::MaskAnd, I32, 8, "vpand ymm3,ymm5,ymm6");
    check(Op::MaskOr, I32, 8, "vpor ymm3,ymm5,ymm6");
    check(Op::MaskXor, I32, 8, "vpxor ymm3,ymm5,ymm6");
    check(Op::MaskAndNot, I32, 8, "vpandn ymm3,ymm6,ymm5");
    check(Op::MaskNot, I32, 8, "vpcmpeqd ymm15,ymm15,ymm15; vpxor ymm3,ymm15,ymm5");
    check(Op::MaskResize(I64), I32, 4, "vextracti128 xmm15,ymm5,0x1; vshufps xmm3,xmm5,xmm15,0x88");
    check(Op::MaskResize(I16), I32, 8, "vpmovsxwd ymm3,xmm5");
    check(Op::ToGeneral, I16, 1, "vmovd ebx,xmm5; movsx rbx,bx");
    check(Op::OfGeneral, I64, 1, "vmovq xmm3,rbp");
}
