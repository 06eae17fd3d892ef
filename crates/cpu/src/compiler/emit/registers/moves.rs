//! Moves that happen at the same time, one after the other.

use super::super::mir::{Class, Elem, Op, Reg};
use super::super::{Action, Address, AllocatedInst, AllocatedPart, OperandLocation};
use super::state::{NO_REG, ValueLocation};
use super::{Allocator, Origin};

/// A value that has to be somewhere else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) class: Class,
    /// A register or a slot.
    pub(super) to: ValueLocation,
    pub(super) from: ValueLocation,
}

impl Allocator<'_> {
    /// Does all moves as if at the same time; before them, each first register of a pair begins to be where the second
    /// is.
    pub(super) fn parallel(&mut self, mut moves: Vec<Move>, renamed: Vec<(Reg, Reg)>) {
        if self.origins.is_some() && !renamed.is_empty() {
            // An action that does nothing tells the checker.
            self.emit(Action::Nothing, || Origin::Rename(renamed));
        }
        moves.retain(|each| each.to != each.from);
        while !moves.is_empty() {
            // Slots of general registers and of masks are the same ones.
            let is_slot = |location: ValueLocation| location.register().is_none();
            let is_read = |to: &Move| {
                let reads = |other: &Move| other.from == to.to && (other.class == to.class || is_slot(to.to));
                moves.iter().any(reads)
            };
            match moves.iter().position(|each| !is_read(each)) {
                Some(at) => {
                    let next = moves.remove(at);
                    self.one_move(next);
                }
                None => {
                    // A cycle: the first value waits in a slot.
                    let Move { class, from, .. } = moves[0];
                    let slot = self.state.waiting_slot();
                    self.one_move(Move { class, to: ValueLocation::Slot(slot), from });
                    for each in &mut moves {
                        if each.class == class && each.from == from {
                            each.from = ValueLocation::Slot(slot);
                        }
                    }
                }
            }
        }
    }

    fn one_move(&mut self, Move { class, to, from }: Move) {
        let moved = || Origin::Moved;
        let scratch = self.limits.scratch[class as usize];
        match (to, from) {
            (ValueLocation::Register(to), ValueLocation::Register(from)) => {
                self.emit(Action::Move { class, to, from }, moved)
            }
            (ValueLocation::Register(to), ValueLocation::Slot(slot)) => {
                self.emit(Action::Reload { class, to, slot }, moved)
            }
            (ValueLocation::Slot(slot), ValueLocation::Register(from)) => {
                self.emit(Action::Spill { class, slot, from }, moved)
            }
            (ValueLocation::Slot(to), ValueLocation::Slot(from)) => {
                self.emit(Action::Reload { class, to: scratch, slot: from }, moved);
                self.emit(Action::Spill { class, slot: to, from: scratch }, moved);
            }
            (ValueLocation::Register(to), ValueLocation::Rematerialize(definition)) => {
                self.rematerialize(definition, to)
            }
            (ValueLocation::Slot(slot), ValueLocation::Rematerialize(definition)) => {
                self.rematerialize(definition, scratch);
                self.emit(Action::Spill { class, slot, from: scratch }, moved);
            }
            (ValueLocation::Both(..) | ValueLocation::Rematerialize(_), _) | (_, ValueLocation::Both(..)) => {
                unreachable!("a move is from one place to one place")
            }
        }
    }

    /// Makes a constant, a number or an argument again, by the instruction at a position.
    pub(super) fn rematerialize(&mut self, definition: usize, to: u8) {
        let inst = self.code.insts[definition];
        let action = if let Op::Const(constant) = inst.op {
            Action::Constant { to, constant }
        } else {
            Action::Inst(AllocatedInst {
                op: inst.op,
                elem: Elem::Index,
                lanes: 1,
                dst: to,
                src: [OperandLocation::None; 3],
                mem: Address::default(),
                part: AllocatedPart::All,
                vector_temps: [NO_REG; 2],
                general_temps: [NO_REG; 2],
                mask_temp: NO_REG,
            })
        };
        self.emit(action, || Origin::Rematerialized(definition));
    }
}
