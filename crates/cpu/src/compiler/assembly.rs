//! The loop nests of a plan and their machine code, as text.

use std::fmt::Write;

use defn_core::device::DeviceError;
use defn_core::{Result, form};

use super::emit::{Action, Allocated, Place, Target};
use super::nest::{Nest, allocated, instruction_sets, processor};
use super::plan::{Plan, Work};

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
            let unknown = || DeviceError::UnknownTarget { target: name.to_owned(), known: known() };
            Some(found.ok_or_else(unknown)?)
        }
    };
    let mut text = String::new();
    nests_of(plan, target, &mut text);
    Ok(text)
}

fn nests_of(plan: &Plan, target: Option<&dyn Target>, text: &mut String) {
    let graph = plan.region.graph();
    for step in &plan.steps {
        match &step.work {
            Work::Nest(nest) => {
                let node = &graph.nodes()[step.node];
                let results: Vec<String> =
                    step.outputs.iter().map(|(value, _)| graph.ty(*value).to_string()).collect();
                let line = format!("{} {}", form::name(&node.op), results.join(", "));
                nest_text(nest, &line, target, text);
            }
            Work::Cond { branches, .. } => branches.iter().for_each(|branch| nests_of(branch, target, text)),
            Work::While(of) => [&of.cond, &of.body].into_iter().for_each(|plan| nests_of(plan, target, text)),
            Work::Group(_)
            | Work::Strip(_)
            | Work::Folds(_)
            | Work::Moments(_)
            | Work::Followed(_)
            | Work::Routine(_)
            | Work::Op
            | Work::Hook { .. }
            | Work::Call { .. } => {}
        }
    }
}

fn nest_text(nest: &Nest, line: &str, target: Option<&dyn Target>, text: &mut String) {
    let function = nest.function();
    let _ = writeln!(text, "nest: {line}\n{function}");
    let Some(target) = target else {
        let _ = writeln!(text, "no machine code: the portable executor runs it\n");
        return;
    };
    match allocated(function, target) {
        Ok(allocated) => {
            let code = target.encode(&allocated);
            let _ = writeln!(text, "machine code: {} bytes", code.len());
            actions(&allocated, text);
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

/// What the machine does, one action a line.
fn actions(allocated: &Allocated, text: &mut String) {
    let place = |place: &Place| match place {
        Place::None => None,
        Place::Reg(register) => Some(format!("r{register}")),
        Place::Slot(slot) => Some(format!("frame[{slot}]")),
        Place::Pool(constant) => Some(format!("{:?}", allocated.constants[*constant as usize])),
    };
    for action in &allocated.actions {
        let _ = match action {
            Action::Inst(inst) => {
                let operands: Vec<String> = inst.src.iter().filter_map(place).collect();
                let mut line = format!(
                    "r{} = {:?} {}x{} {}",
                    inst.dst,
                    inst.op,
                    inst.elem,
                    inst.lanes,
                    operands.join(", ")
                );
                let address = inst.mem;
                if address.scale > 0 {
                    let index = address
                        .index
                        .map(|index| format!(" + r{index} * {}", address.scale))
                        .unwrap_or_default();
                    let _ = write!(line, " [r{}{index} + {}]", address.base, address.offset);
                }
                writeln!(text, "  {line}")
            }
            Action::Label(label) => writeln!(text, " {label}:"),
            Action::Move { class, to, from } => writeln!(text, "  {class:?} r{to} = r{from}"),
            Action::Spill { class, slot, from } => writeln!(text, "  frame[{slot}] = {class:?} r{from}"),
            Action::Reload { class, to, slot } => writeln!(text, "  {class:?} r{to} = frame[{slot}]"),
            Action::Constant { to, constant } => {
                writeln!(text, "  r{to} = {:?}", allocated.constants[*constant as usize])
            }
            Action::Jump(to) => writeln!(text, "  jump {to}"),
            Action::JumpIf { cond, a, b, to } => {
                let (a, b) = (place(a).unwrap_or_default(), place(b).unwrap_or_default());
                writeln!(text, "  jump {to} if {a} {cond:?} {b}")
            }
            Action::JumpIfNone { mask, to, .. } => writeln!(text, "  jump {to} if none of r{mask}"),
            Action::Call { kernel, args } => {
                let args: Vec<String> = args.iter().filter_map(place).collect();
                writeln!(text, "  call k{kernel} {}", args.join(", "))
            }
            Action::Apply { kernel, elem, lanes, to, from } => {
                writeln!(text, "  r{to} = call k{kernel} {elem}x{lanes} r{from}")
            }
            Action::Nothing => Ok(()),
        };
    }
}
