//! The bytes of instructions, as a decoder reads them.

use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, InstructionInfoFactory, IntelFormatter,
    MemorySizeOptions, OpAccess, Register,
};

use super::harness::{Random, allocated_inst};
use super::lanes::{ELEMS, choose, constraint, gives_mask, is_sensible, lane_counts, ops, source_elem};
use crate::compiler::emit::mir::{Class, Elem, Op};
use crate::compiler::emit::x86::{Assembler, LINE, Vectors};
use crate::compiler::emit::{Action, Address, Allocated, AllocatedInst, Constant, OperandLocation, Target};

/// Where the pool of a tested instruction begins.
const POOL: usize = 4096;

/// An instruction's code: what the decoder reads, and the constants behind it.
pub(crate) struct Decoded {
    pub(crate) instructions: Vec<Instruction>,
    pool: Vec<u8>,
}

/// Encodes an instruction and decodes it.
pub(crate) fn decode<T: Vectors>(target: &T, inst: &AllocatedInst, constants: &[Constant]) -> Decoded {
    let lanes = inst.lanes;
    let function = Allocated { constants: constants.to_vec(), lanes, words: 8, ..Allocated::default() };
    let mut asm = Assembler::new(64, 0, constants.len());
    target.inst(&mut asm, &function, inst);
    let vector_bytes = target.limits().vector_bytes;
    asm.link_pool(POOL, vector_bytes);
    let mut pool = Vec::new();
    asm.pool.write(&mut pool, vector_bytes);
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, &asm.bytes, 0, DecoderOptions::NONE).into_iter().collect();
    for instruction in &instructions {
        assert!(!instruction.is_invalid(), "{inst:?} is not valid: {:x?}", &asm.bytes);
    }
    Decoded { instructions, pool }
}

impl Decoded {
    /// The text of the instructions. Constants are written as their bytes.
    pub(crate) fn text(&self) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        let options = formatter.options_mut();
        options.set_use_pseudo_ops(false);
        options.set_memory_size_options(MemorySizeOptions::Always);
        options.set_rip_relative_addresses(false);
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_displacement_leading_zeros(false);
        let format = |instruction: &Instruction| {
            let mut text = String::new();
            formatter.format(instruction, &mut text);
            if !instruction.is_ip_rel_memory_operand() {
                return text;
            }
            let at = instruction.ip_rel_memory_address() as usize - POOL;
            let bytes = instruction.memory_size().element_size().max(1);
            let is_broadcast = instruction.is_broadcast();
            let bytes = if is_broadcast { bytes } else { instruction.memory_size().size() };
            let (start, end) = (text.find('[').expect("an address"), text.find(']').expect("an address"));
            let constant: String =
                self.pool[at..at + bytes].iter().rev().map(|byte| format!("{byte:02x}")).collect();
            text.replace_range(start + 1..end, &constant);
            text
        };
        self.instructions.iter().map(format).collect()
    }
}

/// Checks the text of an instruction.
pub(crate) fn check_text<T: Vectors>(target: &T, inst: AllocatedInst, expected: &str) {
    assert_eq!(decode(target, &inst, &[]).text().join("; "), expected, "{inst:?}");
}

/// The text of a vector register that has so many bytes.
pub(crate) fn vector(reg: u8, bytes: usize) -> String {
    format!(
        "{}mm{reg}",
        match bytes {
            64 => 'z',
            32 => 'y',
            _ => 'x',
        }
    )
}

/// The text of an access to so many bytes.
pub(crate) fn sized(bytes: usize, at: &str) -> String {
    let size = match bytes {
        1 => "byte",
        2 => "word",
        4 => "dword",
        8 => "qword",
        16 => "xmmword",
        32 => "ymmword",
        _ => "zmmword",
    };
    format!("{size} ptr [{at}]")
}

/// The text of a slot's address.
pub(crate) fn slot_text(slot: u32) -> String {
    format!("rsp+{:#x}", LINE + slot)
}

pub(crate) const GENERAL_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// The text of an address.
pub(crate) fn address_text(address: Address) -> String {
    let mut text = GENERAL_NAMES[usize::from(address.base)].to_string();
    if let Some(index) = address.index {
        text += &format!("+{}", GENERAL_NAMES[usize::from(index)]);
        if address.scale > 1 {
            text += &format!("*{}", address.scale);
        }
    }
    match address.offset {
        0 => text,
        offset if offset < 0 => format!("{text}-{:#x}", offset.unsigned_abs()),
        offset => format!("{text}+{offset:#x}"),
    }
}

/// Checks the text of ops. `pattern` gives it, with letters for operands: `D` for the result, `A`, `B` and
/// `C` for sources, `K` for source `A` as a mask, `S` for the scratch register and `Z` for the low 16 bytes
/// of the result. It is asked for the op, the elements, the lanes, which source is in memory, and which are
/// in the register of the result.
pub(crate) fn check_texts<T: Vectors>(
    target: &T,
    has_broadcasts: bool,
    pattern: impl Fn(Op, Elem, u8, Option<usize>, &[usize]) -> Option<String>,
) {
    let mut random = Random(11);
    for (op, count) in ops() {
        for elem in ELEMS {
            if !is_sensible(op, elem) || !target.has(op, elem) {
                continue;
            }
            let widest =
                (0..count).map(|at| source_elem(op, elem, at).bytes()).fold(elem.bytes(), usize::max);
            for lanes in lane_counts(target, widest) {
                for memory in [None, None, None, None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
                    let Some(made) = choose(target, &mut random, op, count, elem, lanes, memory) else {
                        continue;
                    };
                    let inst = made.inst;
                    let tied: Vec<usize> =
                        (0..count).filter(|&at| inst.src[at] == OperandLocation::Reg(inst.dst)).collect();
                    let Some(pattern) = pattern(op, elem, lanes, memory.map(|at| at % 3), &tied) else {
                        continue;
                    };
                    let expected = expand(target, &pattern, &inst, &made.constants, has_broadcasts);
                    let decoded = decode(target, &inst, &made.constants);
                    assert_eq!(decoded.text().join("; "), expected, "{inst:?}");
                }
            }
        }
    }
}

/// The pattern with operands for its letters.
fn expand<T: Vectors>(
    target: &T,
    pattern: &str,
    inst: &AllocatedInst,
    constants: &[Constant],
    has_broadcasts: bool,
) -> String {
    let limits = target.limits();
    let AllocatedInst { op, elem, lanes, .. } = *inst;
    let has_masks = !limits.masks.is_empty();
    let length = |elem: Elem| (usize::from(lanes) * elem.bytes()).max(16);
    let mnemonic = pattern.split(' ').next().expect("a mnemonic");
    let is_scalar = lanes == 1 && elem.is_float() && (mnemonic.ends_with("ss") || mnemonic.ends_with("sd"));
    let operand = |at: usize| {
        let of = source_elem(op, elem, at);
        let widest = if of.bytes() > elem.bytes() { of } else { elem };
        let memory = if is_scalar { of.bytes() } else { length(widest) * of.bytes() / widest.bytes() };
        match inst.src[at] {
            OperandLocation::Reg(reg) if of == Elem::Bit && has_masks => format!("k{reg}"),
            OperandLocation::Reg(reg) if of == Elem::Bit => vector(reg, length(elem)),
            OperandLocation::Reg(reg) => vector(reg, length(of)),
            OperandLocation::Slot(slot) => sized(memory, &slot_text(slot)),
            OperandLocation::Pool(constant) => {
                let constant = constants[constant as usize];
                let text = |bytes: usize| -> String {
                    let element = |lane: usize| match constant {
                        Constant::Splat(_, bits) => bits,
                        Constant::Iota(_) => lane as u64,
                        Constant::Lanes(_) => unreachable!("no operand has numbers of lanes"),
                    };
                    let byte = |at: usize| element(at / of.bytes()).to_le_bytes()[at % of.bytes()];
                    (0..bytes).rev().map(|at| format!("{:02x}", byte(at))).collect()
                };
                let is_splat = matches!(constant, Constant::Splat(..));
                if has_broadcasts && is_splat && of.bytes() >= 4 && !is_scalar {
                    format!("{}{{1to{}}}", sized(of.bytes(), &text(of.bytes())), memory / of.bytes())
                } else {
                    sized(memory, &text(memory))
                }
            }
            OperandLocation::None => panic!("{op:?} has no source {at}"),
        }
    };
    let dst =
        if gives_mask(op) && has_masks { format!("k{}", inst.dst) } else { vector(inst.dst, length(elem)) };
    let mut text = String::new();
    for letter in pattern.chars() {
        match letter {
            'D' => text += &dst,
            'A' | 'K' => text += &operand(0),
            'B' => text += &operand(1),
            'C' => text += &operand(2),
            'S' => text += &vector(limits.scratch[Class::Vector as usize], length(elem)),
            'Z' => text += &vector(inst.dst, 16),
            letter => text.push(letter),
        }
    }
    text
}

/// Checks the text of what surrounds a function's body, and of a call.
pub(crate) fn check_frame(target: &dyn Target) {
    let mem = Address { base: 12, index: None, scale: 1, offset: 0 };
    let store = AllocatedInst {
        mem,
        src: [OperandLocation::Reg(1); 3],
        ..allocated_inst(Op::StoreStreaming, Elem::I8, 16)
    };
    let args = [OperandLocation::Reg(12), OperandLocation::Slot(24)].into_iter().collect();
    let function = Allocated {
        actions: vec![
            Action::Inst(store),
            Action::Call { kernel: 1, args },
            Action::Apply { kernel: 2, elem: Elem::F32, lanes: 4, to: 6, from: 5 },
        ],
        slots: 32,
        words: 3,
        lanes: 16,
        ..Allocated::default()
    };
    let code = target.encode(&function);
    let decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
    let decoded = Decoded { instructions: decoder.into_iter().collect(), pool: Vec::new() };
    let text = decoded.text().join("\n");
    let expected = "endbr64\npush rbp\nmov rbp,rsp\npush rbx\npush r12\nlea rsp,[rsp-0x88]\n\
        and rsp,0xffffffffffffffc0\nmov rbx,rdi\n\
        stmxcsr dword ptr [rbp-0x18]\nmov r11d,dword ptr [rbp-0x18]\n\
        and r11d,0xffc0\ncmp r11d,0x1f80\nje short 0x000000000000003d\n\
        mov dword ptr [rbp-0x14],0x1f80\nldmxcsr dword ptr [rbp-0x14]\n";
    assert!(text.starts_with(expected), "{text}");
    let expected = "vmovntps xmmword ptr [r12],xmm1\nmov qword ptr [rsp+0x60],r12\n\
        mov r11,qword ptr [rsp+0x58]\nmov qword ptr [rsp+0x68],r11\nmov rdi,qword ptr [rbx+0x30]\n\
        lea rsi,[rsp+0x60]\nvzeroupper\ncall qword ptr [rbx+0x28]\ntest eax,eax\n";
    assert!(text.contains(expected), "{text}");
    let whole = if target.limits().vector_bytes == 64 { "zmm" } else { "ymm" };
    let size = if target.limits().vector_bytes == 64 { "zmmword" } else { "ymmword" };
    let expected = format!(
        "vmovups {size} ptr [rsp],{whole}5\nmov r11,rsp\nmov qword ptr [rsp+0x60],r11\n\
            mov r11d,0x4\nmov qword ptr [rsp+0x68],r11\nmov rdi,qword ptr [rbx+0x40]\n\
            lea rsi,[rsp+0x60]\nvzeroupper\ncall qword ptr [rbx+0x38]\nvmovups {whole}6,{size} ptr [rsp]\n"
    );
    assert!(text.contains(&expected), "{text}\n{expected}");
    let expected = "xor eax,eax\nsfence\nvzeroupper\nmov r11d,dword ptr [rbp-0x18]\nand r11d,0xffc0\n\
        cmp r11d,0x1f80\nje short ";
    assert!(text.contains(expected), "{text}");
    let expected = "\nldmxcsr dword ptr [rbp-0x18]\nlea rsp,[rbp-0x10]\npop r12\npop rbx\npop rbp\nret\n";
    assert!(text.contains(expected), "{text}");
}

/// Which registers an instruction may write: its result, temporaries and scratch ones.
fn is_ours(target: &dyn Target, inst: &AllocatedInst, class: Class, reg: u8) -> bool {
    let limits = target.limits();
    let has_masks = !limits.masks.is_empty();
    let given = constraint(target, inst.op, inst.elem, inst.lanes);
    let result = match inst.op {
        Op::Compare(_) | Op::Test if has_masks => Class::Mask,
        _ => Class::Vector,
    };
    if limits.scratch[class as usize] == reg || class == result && inst.dst == reg {
        return true;
    }
    match class {
        Class::General => inst.general_temps[..given.general_temps.into()].contains(&reg),
        Class::Vector => inst.vector_temps[..given.vector_temps.into()].contains(&reg),
        Class::Mask => given.mask_temps > 0 && inst.mask_temp == reg,
    }
}

/// The class and the number of a register.
fn class_of(register: Register) -> Option<(Class, u8)> {
    let number = register.number() as u8;
    if register.is_vector_register() {
        Some((Class::Vector, number))
    } else if register.is_k() {
        Some((Class::Mask, number))
    } else if register.is_gpr() {
        Some((Class::General, number))
    } else {
        None
    }
}

/// Checks that ops write no register that is not theirs, and read none before it has a value.
pub(crate) fn check_registers<T: Vectors>(target: &T) {
    let mut random = Random(12);
    let mut info = InstructionInfoFactory::new();
    for (op, count) in ops() {
        for elem in ELEMS {
            if !is_sensible(op, elem) || !target.has(op, elem) {
                continue;
            }
            let widest =
                (0..count).map(|at| source_elem(op, elem, at).bytes()).fold(elem.bytes(), usize::max);
            for lanes in lane_counts(target, widest) {
                for memory in [None, None, None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
                    let Some(made) = choose(target, &mut random, op, count, elem, lanes, memory) else {
                        continue;
                    };
                    check_written(
                        target,
                        &made.inst,
                        &decode(target, &made.inst, &made.constants),
                        &mut info,
                    );
                }
            }
        }
    }
}

fn check_written<T: Vectors>(
    target: &T,
    inst: &AllocatedInst,
    decoded: &Decoded,
    info: &mut InstructionInfoFactory,
) {
    let has_masks = !target.limits().masks.is_empty();
    let mut known: Vec<(Class, u8)> = Vec::new();
    for at in 0..3 {
        if let OperandLocation::Reg(reg) = inst.src[at] {
            let is_mask = has_masks && source_elem(inst.op, inst.elem, at) == Elem::Bit;
            known.push((if is_mask { Class::Mask } else { Class::Vector }, reg));
        }
    }
    for instruction in &decoded.instructions {
        let info = info.info(instruction);
        for used in info.used_registers() {
            let Some((class, reg)) = class_of(used.register()) else { continue };
            let is_read = matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let is_written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None);
            // The frame, comparisons of a register with itself, and functions that are always 1.
            let is_idiom = instruction.op_count() >= 3
                && instruction.op1_register() == instruction.op2_register()
                && instruction.op0_register() == instruction.op1_register();
            if is_read && !is_idiom && (class, reg) != (Class::General, 4) {
                assert!(
                    known.contains(&(class, reg)),
                    "{inst:?} reads {class:?} {reg}: {:?}",
                    decoded.text()
                );
            }
            if is_written {
                assert!(
                    is_ours(target, inst, class, reg),
                    "{inst:?} writes {class:?} {reg}: {:?}",
                    decoded.text()
                );
            }
        }
        for used in info.used_registers() {
            if let Some(register) = class_of(used.register())
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            {
                known.push(register);
            }
        }
    }
}

/// Checks the text of addresses: all registers, scales and sizes of the offset.
pub(crate) fn check_addresses<T: Vectors>(target: &T) {
    let offsets =
        [0, 1, 4, 8, 64, -64, 127, 128, -128, -129, 64 * 127, 64 * 128, -64 * 128, i32::MAX, i32::MIN];
    for base in 0..16 {
        for index in (0..16).filter(|&index| index != 4).map(Some).chain([None]) {
            for scale in [1, 2, 4, 8] {
                let offset = offsets[usize::from(base + index.unwrap_or(7) + scale) % offsets.len()];
                for offset in [offset, 0, 64] {
                    let mem = Address { base, index, scale, offset };
                    check_address(target, mem);
                }
            }
        }
        for offset in offsets {
            check_address(target, Address { base, index: None, scale: 1, offset });
        }
    }
}

fn check_address<T: Vectors>(target: &T, mem: Address) {
    let text = address_text(mem);
    let check = |op: Op, elem: Elem, lanes: u8, expected: &str| {
        let inst = AllocatedInst {
            mem,
            dst: 9,
            src: [OperandLocation::Reg(10); 3],
            ..allocated_inst(op, elem, lanes)
        };
        assert_eq!(decode(target, &inst, &[]).text().join("; "), expected, "{inst:?}");
    };
    for elem in ELEMS {
        for lanes in lane_counts(target, elem.bytes()) {
            let total = usize::from(lanes) * elem.bytes();
            let at = |bytes| sized(bytes, &text);
            let (nine, ten) = (vector(9, total), vector(10, total));
            match total {
                1 => {
                    check(Op::Load, elem, lanes, &format!("movzx r11,{}; vmovd xmm9,r11d", at(1)));
                    check(Op::Store, elem, lanes, &format!("vpextrb {},xmm10,0x0", at(1)));
                }
                2 => {
                    check(Op::Load, elem, lanes, &format!("movzx r11,{}; vmovd xmm9,r11d", at(2)));
                    check(Op::Store, elem, lanes, &format!("vpextrw {},xmm10,0x0", at(2)));
                }
                4 => {
                    check(Op::Load, elem, lanes, &format!("vmovss xmm9,{}", at(4)));
                    check(Op::Store, elem, lanes, &format!("vmovss {},xmm10", at(4)));
                }
                8 => {
                    check(Op::Load, elem, lanes, &format!("vmovsd xmm9,{}", at(8)));
                    check(Op::Store, elem, lanes, &format!("vmovsd {},xmm10", at(8)));
                }
                _ => {
                    check(Op::Load, elem, lanes, &format!("vmovups {nine},{}", at(total)));
                    check(Op::Store, elem, lanes, &format!("vmovups {},{ten}", at(total)));
                    check(Op::StoreStreaming, elem, lanes, &format!("vmovntps {},{ten}", at(total)));
                }
            }
            if lanes > 1 {
                let letter = ["b", "w", "d", "q"][elem.bytes().trailing_zeros() as usize];
                let bytes = elem.bytes();
                check(Op::LoadSplat, elem, lanes, &format!("vpbroadcast{letter} {nine},{}", at(bytes)));
            }
        }
    }
}
