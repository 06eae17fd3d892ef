//! Tests of the emitter for AVX2.

use super::Vex;
use crate::compiler::emit::mir::{Cmp, Conv, Elem, Op};
use crate::compiler::emit::x86::tests::{self, decode, lanes};

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
        Op::Mul => format!("vpmull{suffix} {either}"),
        Op::Div => format!("vdiv{suffix} D,A,B"),
        Op::Min if is_float => format!("vmin{suffix} D,A,B"),
        Op::Max if is_float => format!("vmax{suffix} D,A,B"),
        Op::Min if is_long => "vpcmpgtq S,A,B; vblendvpd D,A,B,S".into(),
        Op::Max if is_long => "vpcmpgtq S,A,B; vblendvpd D,B,A,S".into(),
        Op::MinU | Op::MaxU if is_long => return None,
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
        Op::Compare(cmp) if is_float => format!("vcmp{suffix} {either},{:#x}", match (cmp, memory) {
            (Cmp::Eq, _) => 0,
            (Cmp::Ne, _) => 4,
            (Cmp::Lt, Some(0)) => 0x1e,
            (Cmp::Lt, _) => 0x11,
            (_, Some(0)) => 0x1d,
            _ => 0x12,
        }),
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
