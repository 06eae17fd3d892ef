//! The loop nests of a plan and their machine code, as text.

use std::fmt::Write;

use defn_core::device::DeviceError;
use defn_core::{Result, form};

use super::emit::mir::{Class, Cond, Constant, Conv, Elem, Op};
use super::emit::{Action, Allocated, AllocatedInst, AllocatedPart, OperandLocation, Target, mask_class};
use super::ir::{self, Function};
use super::nest::{allocated, instruction_sets, processor};
use super::plan::{Plan, Step, Work};

/// Bytes of code in a line.
const LINE: usize = 32;

/// The nests of a plan, each as it is and as it is executed.
///
/// # Errors
/// An instruction set that is unknown.
pub(super) fn text(plan: &Plan, instructions: Option<&str>) -> Result<String> {
    let target = match instructions {
        None => processor(),
        Some(name) => {
            let found = instruction_sets().into_iter().find(|target| target.name() == name);
            let known = || instruction_sets().map(|target| format!("{:?}", target.name())).join(", ");
            let unknown =
                || DeviceError::UnknownTarget { op: "asm", target: name.to_owned(), known: known() };
            Some(found.ok_or_else(unknown)?)
        }
    };
    let mut text = String::new();
    nests_of(plan, target, &mut text);
    Ok(text)
}

fn nests_of(plan: &Plan, target: Option<&dyn Target>, text: &mut String) {
    plan.steps.iter().for_each(|step| step_text(plan, step, target, text));
}

fn step_text(plan: &Plan, step: &Step, target: Option<&dyn Target>, text: &mut String) {
    let graph = plan.region.graph();
    let line = || {
        let node = &graph.nodes()[step.node];
        let results: Vec<String> =
            step.outputs.iter().map(|(value, _)| graph.ty(*value).to_string()).collect();
        format!("{} {}", form::name(&node.op), results.join(", "))
    };
    match &step.work {
        Work::Nest(nest) => {
            nest.functions().for_each(|function| nest_text(function, &line(), target, text));
        }
        // It is called for each block that the op completes.
        Work::Epilogue(made) => {
            nest_text(made.nest().function(), &format!("behind {}", line()), target, text);
        }
        // It is called for each block of rows.
        Work::BackToBackGemm(made) => {
            nest_text(made.nest().function(), &format!("before {}", line()), target, text);
        }
        Work::Control(control) => {
            nest_text(control.function(), &line(), target, text);
            // What the function calls.
            control.steps().for_each(|(plan, step)| step_text(plan, step, target, text));
        }
        Work::Regions(_) | Work::Op | Work::Hook { .. } | Work::Call { .. } => {}
    }
}

fn nest_text(function: &Function, line: &str, target: Option<&dyn Target>, text: &mut String) {
    let _ = writeln!(text, "nest: {line}\n{function}");
    let Some(target) = target else {
        let _ = writeln!(text, "no machine code: the portable executor runs it\n");
        return;
    };
    match allocated(function, target) {
        Ok(allocated) => {
            let code = target.encode(&allocated);
            let _ = writeln!(text, "machine code: {} bytes", code.len());
            actions(&allocated, target, text);
            for line in code.chunks(LINE) {
                let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(text, "  {}", bytes.join(" "));
            }
        }
        Err(lacks) => {
            let _ = writeln!(
                text,
                "no machine code, since the processor lacks {}: the portable executor runs it",
                lacks.0
            );
        }
    }
    text.push('\n');
}

/// What the machine does, one action a line. Registers have their numbers in the encoding: `g` those of integers and
/// addresses, `v` vectors, `m` masks.
fn actions(allocated: &Allocated, target: &dyn Target, text: &mut String) {
    let names = Names { allocated, mask: mask_class(&target.limits()) };
    for action in &allocated.actions {
        let _ = match action {
            Action::Inst(inst) => writeln!(text, "  {}", names.instruction(inst)),
            Action::Label(label) => writeln!(text, " {label}:"),
            Action::Move { class, to, from } => {
                writeln!(text, "  {} = {}", names.register(*class, *to), names.register(*class, *from))
            }
            Action::Spill { class, slot, from } => {
                writeln!(text, "  frame[{slot}] = {}", names.register(*class, *from))
            }
            Action::Reload { class, to, slot } => {
                writeln!(text, "  {} = frame[{slot}]", names.register(*class, *to))
            }
            Action::Constant { to, constant } => writeln!(text, "  v{to} = {}", names.constant(*constant)),
            Action::Jump(to) => writeln!(text, "  jump {to}"),
            Action::JumpIf { cond, a, b, to } => {
                let [a, b] =
                    [a, b].map(|location| names.location(Class::General, location).unwrap_or_default());
                let cond = match cond {
                    Cond::Eq => "==",
                    Cond::Ne => "!=",
                    Cond::Lt => "<",
                    Cond::Le => "<=",
                    Cond::Gt => ">",
                    Cond::Ge => ">=",
                };
                writeln!(text, "  jump {to} if {a} {cond} {b}")
            }
            Action::JumpIfNone { mask, elem, lanes, to } => {
                let mask = names.register(Class::Mask, *mask);
                writeln!(text, "  jump {to} if none {elem}x{lanes} {mask}")
            }
            Action::Call { kernel, args } => {
                let args = args.iter().filter_map(|location| names.location(Class::General, location));
                writeln!(text, "  call k{kernel} {}", args.collect::<Vec<_>>().join(", "))
            }
            Action::Apply { kernel, elem, lanes, to, from } => {
                writeln!(text, "  v{to} = call k{kernel} {elem}x{lanes} v{from}")
            }
            Action::Nothing => Ok(()),
        };
    }
}

/// The names of what a function uses.
struct Names<'a> {
    allocated: &'a Allocated,
    /// Where masks are.
    mask: Class,
}

impl Names<'_> {
    fn register(&self, class: Class, number: u8) -> String {
        match if class == Class::Mask { self.mask } else { class } {
            Class::General => format!("g{number}"),
            Class::Vector => format!("v{number}"),
            Class::Mask => format!("m{number}"),
        }
    }

    fn location(&self, class: Class, location: &OperandLocation) -> Option<String> {
        match location {
            OperandLocation::None => None,
            OperandLocation::Reg(register) => Some(self.register(class, *register)),
            OperandLocation::Slot(slot) => Some(format!("frame[{slot}]")),
            OperandLocation::Pool(constant) => Some(self.constant(*constant)),
        }
    }

    fn constant(&self, constant: u32) -> String {
        match self.allocated.constants[constant as usize] {
            Constant::Splat(elem, bits) => ir::constant(elem, bits),
            Constant::Iota(_) => "(0, 1, 2, ...)".to_owned(),
            Constant::Lanes(lanes) => format!("lanes {lanes:?}"),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are written alike")]
    fn instruction(&self, inst: &AllocatedInst) -> String {
        let operands = inst.src.iter().enumerate();
        let mut operands: Vec<String> = operands
            .filter_map(|(at, location)| self.location(source_class(inst.op, at), location))
            .collect();
        let address = inst.mem;
        if address.scale > 0 {
            let index = address.index.map(|index| format!(" + g{index} * {}", address.scale));
            operands.push(format!("[g{}{} + {}]", address.base, index.unwrap_or_default(), address.offset));
        }
        let part = match inst.part {
            AllocatedPart::All => String::new(),
            AllocatedPart::Count(register) => format!(" of the first g{register}"),
            AllocatedPart::Mask(register) => format!(" of {}", self.register(Class::Mask, register)),
        };
        let op = match inst.op {
            Op::Const(constant) => self.constant(constant),
            Op::Number(number) => number.to_string(),
            Op::Argument(word) => format!("argument {word}"),
            op => {
                if let Op::AddNumber(number) | Op::MulNumber(number) = op {
                    operands.push(number.to_string());
                }
                let lanes = if inst.elem == Elem::Index {
                    String::new()
                } else {
                    format!(" {}x{}", inst.elem, inst.lanes)
                };
                format!("{}{lanes} {}", op_name(op), operands.join(", "))
            }
        };
        match result_class(inst.op) {
            Some(class) => format!("{} = {op}{part}", self.register(class, inst.dst)),
            None => format!("{op}{part}"),
        }
    }
}

/// An op as the IR writes its ops.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other names are those of the variants")]
fn op_name(op: Op) -> String {
    let name = match op {
        Op::AddNumber(_) | Op::GeneralAdd => "Add".to_owned(),
        Op::MulNumber(_) | Op::GeneralMul => "Mul".to_owned(),
        Op::GeneralSub => "Sub".to_owned(),
        Op::GeneralMin => "Min".to_owned(),
        Op::GeneralMax => "Max".to_owned(),
        op => format!("{op:?}"),
    };
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && text.ends_with(|before: char| before.is_ascii_lowercase()) {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The class of what an instruction gives, if it gives anything.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other ops give vectors")]
fn result_class(op: Op) -> Option<Class> {
    match op {
        Op::Store | Op::StoreStreaming | Op::StorePart => None,
        Op::Compare(_) | Op::Test | Op::MaskAnd | Op::MaskOr | Op::MaskXor | Op::MaskAndNot => {
            Some(Class::Mask)
        }
        Op::MaskNot | Op::MaskFirst | Op::MaskResize(_) | Op::MaskSplat => Some(Class::Mask),
        Op::Number(_) | Op::Argument(_) | Op::AddNumber(_) | Op::MulNumber(_) => Some(Class::General),
        Op::GeneralAdd | Op::GeneralSub | Op::GeneralMul | Op::GeneralMin | Op::GeneralMax => {
            Some(Class::General)
        }
        Op::ToGeneral => Some(Class::General),
        _ => Some(Class::Vector),
    }
}

/// The class of an operand.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other ops take vectors")]
fn source_class(op: Op, at: usize) -> Class {
    match op {
        Op::AddNumber(_) | Op::MulNumber(_) | Op::GeneralAdd | Op::GeneralSub | Op::GeneralMul => {
            Class::General
        }
        Op::GeneralMin | Op::GeneralMax | Op::MaskFirst | Op::OfGeneral => Class::General,
        Op::MaskAnd | Op::MaskOr | Op::MaskXor | Op::MaskAndNot | Op::MaskNot => Class::Mask,
        Op::MaskResize(_) | Op::MaskSplat | Op::Convert(Conv::OfBit, _) => Class::Mask,
        Op::Select if at == 0 => Class::Mask,
        _ => Class::Vector,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use defn_core::backend::{Checks, Compiler};
    use defn_core::region::Region;

    use crate::CpuCompiler;

    fn text_of(region: &str, instructions: &str) -> String {
        let region = Arc::new(Region::from_text(region).expect("the text is a region"));
        let program = CpuCompiler::new().compile(region, Checks::default()).expect("it compiles");
        program.assembly(Some(instructions)).expect("the instruction set is known")
    }

    const TWICE_AND_ONE: &str = "defn-ir 1
        (f32[3][6]) {
            %0 = parameter {index: 0} : f32[3][6]
            %1 = constant {value: 2.0} : f32
            %2 = multiply %0 %1 : f32[3][6]
            %3 = constant {value: 1.0} : f32
            %4 = add %2 %3 : f32[3][6]
            return %4
        }";

    /// The actions of a text.
    fn actions_of(text: &str) -> Vec<&str> {
        let lines = text.lines().skip_while(|line| !line.starts_with("machine code: ")).skip(1);
        let is_code = |line: &&str| line.split(' ').any(|word| word.len() > 2) || line.contains(['=', ':']);
        lines.map_while(|line| Some(line).filter(is_code)).map(str::trim).collect()
    }

    #[test]
    fn actions_are_readable() {
        let text = text_of(TWICE_AND_ONE, "avx512");
        assert!(text.starts_with("nest: add f32[3][6]\nfunction(buffers 3, params 2, kernels 0)\n"));
        assert_eq!(
            actions_of(&text),
            [
                "g0 = argument 0",
                "v0 = load f32x16 [g0 + 0]",
                "v0 = mul f32x16 v0, 2.0",
                "v0 = add f32x16 v0, 1.0",
                "g1 = argument 1",
                "store f32x16 v0, [g1 + 0]",
                "g2 = 2",
                "m1 = mask_first i32x16 g2",
                "v0 = load_part f32x16 [g0 + 64] of m1",
                "v0 = mul f32x16 v0, 2.0",
                "v0 = add f32x16 v0, 1.0",
                "store_part f32x16 v0, [g1 + 64] of m1",
            ]
        );
        // Where masks are vectors, they are called so; constants that no instruction takes are made in registers.
        let text = text_of(TWICE_AND_ONE, "neon");
        let actions = actions_of(&text);
        for line in [
            "v4 = 2.0",
            "v0 = mul f32x4 v0, v4",
            "v0 = mask_first i32x4 g2",
            "v0 = load_part f32x4 [g0 + 64] of the first g2",
        ] {
            assert!(actions.contains(&line), "{line} is not in {actions:#?}");
        }
    }

    /// Bools are predicates in registers and bytes in memory.
    #[test]
    fn predicates_have_code_everywhere() {
        for instructions in ["avx512", "avx2", "neon"] {
            let text = text_of(
                "defn-ir 1
                (f32[60], bool[60]) {
                    %0 = parameter {index: 0} : f32[60]
                    %1 = parameter {index: 1} : bool[60]
                    %2 = constant {value: 2.0} : f32
                    %3 = less %0 %2 : bool[60]
                    %4 = logical_and %3 %1 : bool[60]
                    return %4
                }",
                instructions,
            );
            assert_eq!(text.matches("nest: ").count(), 1, "{text}");
            assert!(text.contains("machine code: "), "{text}");
        }
    }

    #[test]
    fn loops_and_addresses_are_readable() {
        let text = text_of(
            "defn-ir 1
            (f32[9][700], f32[700]) {
                %0 = parameter {index: 0} : f32[9][700]
                %1 = parameter {index: 1} : f32[700]
                %2 = broadcast %1 {shape: [9, 700], axes: [1]} : f32[9][700]
                %3 = add %0 %2 : f32[9][700]
                return %3
            }",
            "avx2",
        );
        let actions = actions_of(&text);
        assert!(actions.iter().any(|line| line.contains(" + g") && line.contains(" * 4 + 32]")), "{text}");
        assert!(actions.iter().any(|line| line.starts_with("jump ") && line.contains(" if g")), "{text}");
        assert!(actions.iter().any(|line| line.contains(" = mul g") && line.ends_with(", 2800")), "{text}");
    }
}
