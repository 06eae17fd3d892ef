//! The text of the code for every op, type and length, by objdump: `vectors.txt` and `others.txt` are to be
//! read.
//!
//! A line of the table has an op, a type, the numbers of lanes with the same code, and the instructions.
//! Distances are in bytes from the instruction.

use super::super::super::mir::{Class, Cmp, Cond, Conv};
use super::super::words as w;
use super::*;

/// The registers of the result and of the sources; those of numbers are the same.
const D: u8 = 21;
const SOURCES: [u8; 3] = [9, 19, 26];
const TEMP: u8 = 4;

/// The words of an action, without those of its function.
fn words(action: Action) -> Vec<u32> {
    let constants = vec![Constant::Iota(Elem::I32), Constant::Splat(Elem::I32, 1)];
    let lanes = 4;
    let actions = vec![Action::Label(0), action];
    let code = Neon.encode(&Allocated { actions, constants, lanes, slots: 0, labels: 8, words: 3 });
    let words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect();
    let position =
        |word: u32| words.iter().position(|&other| other == word).expect("it is in every function");
    // The modes are set right before, and the status right behind.
    let (start, mut end) = (position(w::MSR_FPCR | 31) + 1, position(w::mov_part(w::MOVZ, 0, 0, 0)));
    // Room for the numbers of a call.
    let grows = |word: u32| word & 0xffc0_03ff == w::sub_imm(w::SP, w::SP, 0, false);
    let start = if grows(words[start]) { start + 1 } else { start };
    if end < start {
        end = start;
    }
    words[start..end].to_vec()
}

/// An instruction with registers that its constraint allows.
fn with_registers(
    op: Op,
    elem: Elem,
    lanes: u8,
    sources: usize,
    mem: Address,
    part: AllocatedPart,
) -> Action {
    let mut inst = allocated_inst(op, elem, lanes);
    let asked = constraint(op, elem, lanes);
    inst.dst = if asked.tied == 0 { D } else { SOURCES[asked.tied.trailing_zeros() as usize] };
    for (location, reg) in inst.src.iter_mut().zip(SOURCES).take(sources) {
        *location = OperandLocation::Reg(reg);
    }
    (inst.mem, inst.part, inst.vector_temps) = (mem, part, [TEMP; 2]);
    Action::Inst(inst)
}

/// The ops of vectors, with the number of their sources.
fn vector_ops() -> Vec<(Op, usize)> {
    let mut ops = Vec::new();
    let one = [
        Op::Not,
        Op::Sqrt,
        Op::Floor,
        Op::Ceil,
        Op::Trunc,
        Op::Nearest,
        Op::PopCount,
        Op::LeadingZeros,
        Op::ShlBy(3),
        Op::ShrBy(3),
        Op::SarBy(3),
        Op::RotBy(3),
        Op::RotBy(8),
        Op::RotBy(16),
        Op::RotBy(32),
        Op::Splat,
        Op::Upper(1),
        Op::Reverse,
        Op::MaskNot,
        Op::MaskFirst,
        Op::MaskSplat,
    ];
    ops.extend(one.map(|op| (op, 1)));
    let two = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Min,
        Op::Max,
        Op::MinU,
        Op::MaxU,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::AndNot,
        Op::Shl,
        Op::Shr,
        Op::Sar,
        Op::Test,
        Op::MaskAnd,
        Op::MaskOr,
        Op::MaskXor,
        Op::MaskAndNot,
        Op::Unzip(false),
        Op::Unzip(true),
        Op::Zip(false),
        Op::Zip(true),
        Op::Fold { by: 1, has: false },
        Op::Fold { by: 1, has: true },
        Op::Fold { by: 2, has: false },
        Op::Fold { by: 2, has: true },
    ];
    ops.extend(two.map(|op| (op, 2)));
    ops.extend([Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::LtU, Cmp::LeU].map(|cmp| (Op::Compare(cmp), 2)));
    ops.extend([Op::Fma, Op::Fnma, Op::Flip, Op::Select].map(|op| (op, 3)));
    for from in ELEMS {
        let convs = [
            Conv::ZeroExtend,
            Conv::SignExtend,
            Conv::Truncate,
            Conv::FloatOfS,
            Conv::FloatOfU,
            Conv::ToS,
            Conv::ToU,
            Conv::Float,
            Conv::OfHalf,
            Conv::ToHalf,
            Conv::Bitcast,
            Conv::OfBit,
        ];
        ops.extend(convs.map(|conv| (Op::Convert(conv, from), 1)));
        ops.push((Op::MaskResize(from), 1));
    }
    ops
}

/// Whether the types of a conversion are such as `schedule` makes.
fn is_made(op: Op, elem: Elem) -> bool {
    if let Op::Convert(conv, from) = op {
        let is_narrower = from.bytes() < elem.bytes();
        return match conv {
            Conv::ZeroExtend | Conv::SignExtend => is_narrower,
            Conv::Truncate => from.bytes() > elem.bytes(),
            Conv::Float => from != elem,
            Conv::OfBit => !from.is_float(),
            Conv::FloatOfS | Conv::FloatOfU | Conv::ToS | Conv::ToU | Conv::OfHalf | Conv::ToHalf => true,
            Conv::Bitcast | Conv::ToIndex | Conv::OfIndex => true,
        };
    }
    if let Op::MaskResize(from) = op {
        return !from.is_float();
    }
    // A rotation by half the width has an instruction of its own; the others are shown once.
    !matches!(op, Op::RotBy(n) if n != 3 && usize::from(n) != 4 * elem.bytes())
}

/// The widest of the types of an op.
fn widest(op: Op, elem: Elem) -> Elem {
    if let Op::Convert(_, from) | Op::MaskResize(from) | Op::Gather(from) = op
        && from.bytes() > elem.bytes()
    {
        return from;
    }
    elem
}

/// What a table shows: the text before the lanes, the lanes, and the words.
type Entry = (String, u8, Vec<u32>);

/// Vectors, lane by lane and as a whole.
fn vector_entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (op, sources) in vector_ops() {
        for elem in ELEMS.into_iter().filter(|&elem| Neon.has(op, elem) && is_made(op, elem)) {
            for lanes in lane_counts(widest(op, elem)) {
                if matches!(op, Op::Upper(_) | Op::Unzip(_) | Op::Zip(_) | Op::Reverse) && lanes == 1 {
                    continue;
                }
                let is_whole = usize::from(lanes) * elem.bytes() == 16;
                if let Op::Fold { by, .. } = op
                    && (by >= lanes || !is_whole)
                {
                    continue;
                }
                let action = with_registers(op, elem, lanes, sources, Address::default(), AllocatedPart::All);
                entries.push((format!("{op:?} {elem:?}"), lanes, words(action)));
            }
        }
    }
    entries
}

/// Memory, general registers and control flow.
fn other_entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    let near = near(12, 32);
    let index = Address { base: 12, index: Some(13), scale: 4, offset: 0 };
    let both = Address { base: 12, index: Some(13), scale: 8, offset: -24 };
    let part = AllocatedPart::Count(14);
    let memory = [
        (Op::Load, 0, AllocatedPart::All),
        (Op::LoadSplat, 0, AllocatedPart::All),
        (Op::Store, 1, AllocatedPart::All),
        (Op::LoadPart, 0, part),
        (Op::StorePart, 1, part),
        (Op::Gather(Elem::I32), 1, AllocatedPart::All),
        (Op::Gather(Elem::I64), 1, AllocatedPart::All),
    ];
    for (op, sources, part) in memory {
        for elem in ELEMS {
            for lanes in lane_counts(widest(op, elem)) {
                let action = with_registers(op, elem, lanes, sources, near, part);
                entries.push((format!("{op:?} {elem:?}"), lanes, words(action)));
            }
        }
    }
    let name_of = |mem: Address| {
        let index = mem.index.map(|index| format!(" + x{index} * {}", mem.scale)).unwrap_or_default();
        format!("x{}{index} + {}", mem.base, mem.offset)
    };
    for mem in [index, both, self::near(12, -7), self::near(12, 4095), self::near(12, 1 << 20)] {
        for (op, sources) in [(Op::Load, 0), (Op::Store, 1), (Op::LoadSplat, 0)] {
            let action = with_registers(op, Elem::F32, 4, sources, mem, AllocatedPart::All);
            entries.push((format!("{op:?} F32 {}", name_of(mem)), 4, words(action)));
        }
    }
    let numbers = [
        Op::Number(0),
        Op::Number(-1),
        Op::Number(0x1234_5678),
        Op::Number(-0x1_0001),
        Op::Number(i64::MIN),
        Op::Argument(0),
        Op::Argument(5),
        Op::Argument(5000),
        Op::AddNumber(8),
        Op::AddNumber(-8),
        Op::AddNumber(0x12_3000),
        Op::AddNumber(-0x12_3456),
        Op::AddNumber(i32::MAX),
        Op::MulNumber(16),
        Op::MulNumber(9),
        Op::MulNumber(10),
        Op::GeneralAdd,
        Op::GeneralSub,
        Op::GeneralMul,
        Op::GeneralMin,
        Op::GeneralMax,
    ];
    for op in numbers {
        let action = with_registers(op, Elem::Index, 1, 2, Address::default(), AllocatedPart::All);
        entries.push((format!("{op:?}"), 1, words(action)));
    }
    for (op, elem) in INTEGERS.into_iter().flat_map(|elem| [(Op::ToGeneral, elem), (Op::OfGeneral, elem)]) {
        let action = with_registers(op, elem, 1, 1, Address::default(), AllocatedPart::All);
        entries.push((format!("{op:?} {elem:?}"), 1, words(action)));
    }
    for elem in INTEGERS {
        for lanes in lane_counts(elem) {
            entries.push((
                format!("JumpIfNone {elem:?}"),
                lanes,
                words(Action::JumpIfNone { mask: D, elem, lanes, to: 0 }),
            ));
        }
    }
    for cond in [Cond::Eq, Cond::Ne, Cond::Lt, Cond::Le, Cond::Gt, Cond::Ge] {
        entries.push((
            format!("JumpIf {cond:?}"),
            1,
            words(Action::JumpIf { cond, a: OperandLocation::Reg(9), b: OperandLocation::Reg(D), to: 0 }),
        ));
    }
    entries.push(("Jump".to_owned(), 1, words(Action::Jump(0))));
    for class in [Class::General, Class::Vector] {
        entries.push((format!("Move {class:?}"), 1, words(Action::Move { class, to: D, from: 9 })));
        for slot in [0, 24, 1 << 20] {
            entries.push((
                format!("Spill {class:?} {slot}"),
                1,
                words(Action::Spill { class, slot, from: D }),
            ));
            entries.push((
                format!("Reload {class:?} {slot}"),
                1,
                words(Action::Reload { class, to: D, slot }),
            ));
        }
    }
    for constant in 0..2 {
        entries.push((format!("Constant {constant}"), 4, words(Action::Constant { to: D, constant })));
    }
    let args =
        [OperandLocation::Reg(9), OperandLocation::Slot(16), OperandLocation::Reg(D)].into_iter().collect();
    entries.push(("Call".to_owned(), 1, words(Action::Call { kernel: 1, args })));
    let (elem, lanes) = (Elem::F64, 2);
    let apply = Action::Apply { kernel: 1, elem, lanes, to: D, from: SOURCES[0] };
    entries.push(("Apply".to_owned(), lanes, words(apply)));
    entries
}

/// The text of an instruction, with the distance in place of an address.
fn relative(line: &str, position: usize) -> String {
    let target = line.rsplit_once(' ').and_then(|(start, end)| Some((start, end.strip_prefix("0x")?)));
    match target.and_then(|(start, digits)| Some((start, i64::from_str_radix(digits, 16).ok()?))) {
        Some((start, target)) => format!("{start} .{:+}", target - 4 * position as i64),
        None => line.to_owned(),
    }
}

/// Compares the text of entries with a table.
fn check(entries: Vec<Entry>, expected: &str, name: &str) {
    let code: Vec<u8> =
        entries.iter().flat_map(|(.., words)| words).flat_map(|word| word.to_le_bytes()).collect();
    let Some(lines) = neon_run::disassemble(&code) else { return };
    assert_eq!(4 * lines.len(), code.len());
    let mut table: Vec<(String, String, String)> = Vec::new();
    let mut position = 0;
    for (name, lanes, words) in entries {
        let text: Vec<String> =
            (position..position + words.len()).map(|at| relative(&lines[at], at)).collect();
        position += words.len();
        let text = text.join("; ");
        match table.last_mut() {
            Some((last, counts, other)) if *last == name && *other == text => *counts += &format!(",{lanes}"),
            _ => table.push((name, format!("{lanes}"), text)),
        }
    }
    let table: String =
        table.iter().map(|(name, lanes, text)| format!("{name} x{lanes}: {text}\n")).collect();
    if table == expected {
        return;
    }
    let path = std::env::temp_dir().join(format!("neon-{name}"));
    std::fs::write(&path, &table).expect("a temporary file can be written");
    let differs = table.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    panic!("the table {name}, which now is {}, differs: {differs:?}", path.display());
}

#[test]
fn the_code_of_vectors_is_what_the_table_says() {
    check(vector_entries(), include_str!("vectors.txt"), "vectors.txt");
}

#[test]
fn the_code_of_the_rest_is_what_the_table_says() {
    check(other_entries(), include_str!("others.txt"), "others.txt");
}
