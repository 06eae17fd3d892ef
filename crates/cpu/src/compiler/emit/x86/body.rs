//! Functions: what is done after allocation, one by one.

use super::super::mir::{Class, Cond, Elem};
use super::super::{Action, Address, Allocated, AllocatedInst, OperandLocation, Target};
use super::frame::Frame;
use super::{Assembler, Rm, general, line, slot};

/// What an emitter for x86-64 knows of vectors and masks.
pub(crate) trait Vectors: Target {
    /// An instruction.
    fn inst(&self, asm: &mut Assembler, function: &Allocated, inst: &AllocatedInst);

    /// Copies a whole vector.
    fn copy(&self, asm: &mut Assembler, bytes: usize, to: u8, from: u8);

    fn load(&self, asm: &mut Assembler, bytes: usize, to: u8, from: Address);

    fn store(&self, asm: &mut Assembler, bytes: usize, to: Address, from: u8);

    fn copy_mask(&self, asm: &mut Assembler, to: u8, from: u8);

    fn load_mask(&self, asm: &mut Assembler, to: u8, from: Address);

    fn store_mask(&self, asm: &mut Assembler, to: Address, from: u8);

    /// Makes a constant of the function.
    fn constant(&self, asm: &mut Assembler, function: &Allocated, to: u8, constant: u32);

    /// Sets the flags to equal if none of the lanes is set.
    fn test_mask(&self, asm: &mut Assembler, mask: u8, elem: Elem, lanes: u8);
}

/// The bytes of a function.
pub(crate) fn encode<T: Vectors>(target: &T, function: &Allocated) -> Vec<u8> {
    let frame = Frame::new(function);
    let vector_bytes = target.limits().vector_bytes;
    let mut asm =
        Assembler::new(12 * function.actions.len() + 128, function.labels, function.constants.len());
    // Scalars leave the rest of their registers alone.
    let bytes = if function.lanes == 1 { 16 } else { vector_bytes };
    for action in &function.actions {
        encode_action(target, &mut asm, function, frame, bytes, action);
    }
    let exit = asm.epilogue();
    asm.link(exit);
    let prologue = asm.prologue(frame);
    let pool = (prologue.here() + asm.here()).next_multiple_of(64);
    asm.link_pool(pool - prologue.here(), vector_bytes);
    let mut bytes = Vec::with_capacity(pool + asm.pool.offset(super::Pooled::Word(0), vector_bytes) + 256);
    bytes.extend_from_slice(&prologue.bytes);
    bytes.extend_from_slice(&asm.bytes);
    bytes.resize(pool, 0xcc);
    asm.pool.write(&mut bytes, vector_bytes);
    bytes
}

fn encode_action<T: Vectors>(
    target: &T,
    asm: &mut Assembler,
    function: &Allocated,
    frame: Frame,
    bytes: usize,
    action: &Action,
) {
    match *action {
        Action::Inst(ref inst) => target.inst(asm, function, inst),
        Action::Move { class: Class::General, to, from } => asm.general_copy(to, Rm::Reg(from)),
        Action::Move { class: Class::Vector, to, from } => target.copy(asm, bytes, to, from),
        Action::Move { class: Class::Mask, to, from } => target.copy_mask(asm, to, from),
        Action::Spill { class: Class::General, slot: to, from } => asm.general_store(slot(to), from),
        Action::Spill { class: Class::Vector, slot: to, from } => target.store(asm, bytes, slot(to), from),
        Action::Spill { class: Class::Mask, slot: to, from } => target.store_mask(asm, slot(to), from),
        Action::Reload { class: Class::General, to, slot: from } => {
            asm.general_copy(to, Rm::At(slot(from), 8));
        }
        Action::Reload { class: Class::Vector, to, slot: from } => target.load(asm, bytes, to, slot(from)),
        Action::Reload { class: Class::Mask, to, slot: from } => target.load_mask(asm, to, slot(from)),
        Action::Constant { to, constant } => target.constant(asm, function, to, constant),
        Action::Label(label) => asm.label(label),
        Action::Jump(to) => asm.jump(None, to),
        Action::JumpIf { cond, a, b, to } => {
            let cond = compare_places(target, asm, cond, a, b);
            asm.jump(Some(general::condition(cond)), to);
        }
        Action::JumpIfNone { mask, elem, lanes, to } => {
            target.test_mask(asm, mask, elem, lanes);
            asm.jump(Some(super::encode::Condition::Equal), to);
        }
        Action::Call { kernel, ref args } => asm.call(frame, kernel, args),
        Action::Apply { kernel, elem: _, lanes, to, from } => {
            target.store(asm, bytes, line(), from);
            asm.apply(frame, kernel, lanes);
            target.load(asm, bytes, to, line());
        }
        Action::Nothing => {}
    }
}

/// Compares two general values, of which one at least comes to a register; gives the condition to jump by.
fn compare_places<T: Vectors>(
    target: &T,
    asm: &mut Assembler,
    cond: Cond,
    a: OperandLocation,
    b: OperandLocation,
) -> Cond {
    let rm = |location: OperandLocation| match location {
        OperandLocation::Slot(at) => Rm::At(slot(at), 8),
        OperandLocation::Reg(_) | OperandLocation::Pool(_) | OperandLocation::None => Rm::Reg(location.reg()),
    };
    match (a, b) {
        (OperandLocation::Reg(a), _) => asm.compare(a, rm(b)),
        (_, OperandLocation::Reg(b)) => {
            asm.compare(b, rm(a));
            return cond.swapped();
        }
        _ => {
            let scratch = target.limits().scratch[Class::General as usize];
            asm.general_copy(scratch, rm(a));
            asm.compare(scratch, rm(b));
        }
    }
    cond
}
