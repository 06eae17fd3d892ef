//! Which registers and slots hold which values.

use smallvec::SmallVec;

use super::super::mir::{Class, Reg};
use super::super::{Limits, OperandLocation};

/// No register.
pub(super) const NO_REG: u8 = u8::MAX;
const NO_SLOT: u32 = u32::MAX;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueLocation {
    Register(u8),
    Slot(u32),
    Both(u8, u32),
    /// Nowhere: the instruction at this position computes it again.
    Rematerialize(usize),
}

impl ValueLocation {
    pub(super) fn register(self) -> Option<u8> {
        match self {
            ValueLocation::Register(register) | ValueLocation::Both(register, _) => Some(register),
            ValueLocation::Slot(_) | ValueLocation::Rematerialize(_) => None,
        }
    }

    pub(super) fn slot(self) -> Option<u32> {
        match self {
            ValueLocation::Slot(slot) | ValueLocation::Both(_, slot) => Some(slot),
            ValueLocation::Register(_) | ValueLocation::Rematerialize(_) => None,
        }
    }

    /// As an operand, of the register if there is one.
    pub(super) fn operand(self) -> OperandLocation {
        match self {
            ValueLocation::Register(register) | ValueLocation::Both(register, _) => {
                OperandLocation::Reg(register)
            }
            ValueLocation::Slot(slot) => OperandLocation::Slot(slot),
            ValueLocation::Rematerialize(_) => OperandLocation::None,
        }
    }
}

/// The registers of a class.
#[derive(Clone, Debug, Default)]
struct RegisterFile {
    /// Those that may be allocated, the best first.
    order: &'static [u8],
    free: u32,
    locked: u32,
    holders: Vec<Reg>,
}

/// Registers, slots and values at one point of the code.
pub(super) struct State {
    files: [RegisterFile; 3],
    registers: Vec<u8>,
    slots: Vec<u32>,
    vector_bytes: u32,
    /// Slots that were used and are free, of vectors and of words.
    free_vectors: Vec<u32>,
    free_words: Vec<u32>,
    bytes: u32,
    temps: SmallVec<[(Class, u8); 4]>,
    classes: Vec<u8>,
    /// The values that have slots.
    slotted: Vec<Reg>,
    waiting: Option<u32>,
}

impl State {
    pub(super) fn new(values: usize, limits: &Limits) -> State {
        let file = |order: &'static [u8]| RegisterFile {
            order,
            free: order.iter().fold(0, |free, &register| free | 1 << register),
            locked: 0,
            holders: vec![Reg::NONE; 32],
        };
        State {
            files: [file(limits.generals), file(limits.vectors), file(limits.masks)],
            registers: vec![NO_REG; values],
            slots: vec![NO_SLOT; values],
            vector_bytes: limits.vector_bytes as u32,
            free_vectors: Vec::new(),
            free_words: Vec::new(),
            bytes: 0,
            temps: SmallVec::new(),
            classes: vec![0; values],
            slotted: Vec::new(),
            waiting: None,
        }
    }

    /// The bytes of all slots.
    pub(super) fn frame_bytes(&self) -> u32 {
        self.bytes
    }

    /// How many registers a class has, if it has any.
    pub(super) fn count(&self, class: Class) -> Option<usize> {
        Some(self.files[class as usize].order.len()).filter(|count| *count > 0)
    }

    pub(super) fn register(&self, reg: Reg) -> Option<u8> {
        Some(self.registers[reg.index()]).filter(|register| *register != NO_REG)
    }

    pub(super) fn slot(&self, reg: Reg) -> Option<u32> {
        Some(self.slots[reg.index()]).filter(|slot| *slot != NO_SLOT)
    }

    pub(super) fn location(&self, reg: Reg) -> Option<ValueLocation> {
        match (self.register(reg), self.slot(reg)) {
            (Some(register), Some(slot)) => Some(ValueLocation::Both(register, slot)),
            (Some(register), None) => Some(ValueLocation::Register(register)),
            (None, Some(slot)) => Some(ValueLocation::Slot(slot)),
            (None, None) => None,
        }
    }

    /// A register that holds nothing.
    pub(super) fn free(&self, class: Class) -> Option<u8> {
        let file = &self.files[class as usize];
        let free = file.free & !file.locked;
        if free == 0 {
            return None;
        }
        file.order.iter().copied().find(|register| free >> register & 1 == 1)
    }

    pub(super) fn is_free(&self, class: Class, register: u8) -> bool {
        let file = &self.files[class as usize];
        (file.free & !file.locked) >> register & 1 == 1
    }

    /// Puts a value in a register that is free.
    pub(super) fn settle(&mut self, reg: Reg, class: Class, register: u8) {
        let file = &mut self.files[class as usize];
        file.free &= !(1 << register);
        file.holders[usize::from(register)] = reg;
        self.registers[reg.index()] = register;
        self.classes[reg.index()] = class as u8;
    }

    pub(super) fn lock(&mut self, class: Class, register: u8) {
        self.files[class as usize].locked |= 1 << register;
    }

    pub(super) fn unlock(&mut self, class: Class, register: u8) {
        self.files[class as usize].locked &= !(1 << register);
    }

    pub(super) fn unlock_all(&mut self) {
        self.files.iter_mut().for_each(|file| file.locked = 0);
    }

    /// Takes a free register for something that is no value, until [`State::free_temps`].
    pub(super) fn take_temp(&mut self, class: Class, register: u8) {
        self.files[class as usize].free &= !(1 << register);
        self.temps.push((class, register));
    }

    pub(super) fn free_temps(&mut self) {
        for (class, register) in std::mem::take(&mut self.temps) {
            self.files[class as usize].free |= 1 << register;
        }
    }

    /// The values in registers of a class.
    pub(super) fn held(&self, class: Class) -> impl Iterator<Item = (Reg, u8)> + '_ {
        let file = &self.files[class as usize];
        file.order
            .iter()
            .map(|&register| (file.holders[usize::from(register)], register))
            .filter(|(reg, _)| reg.is_some())
    }

    /// The values that the present instruction does not use.
    pub(super) fn unlocked(&self, class: Class) -> impl Iterator<Item = (Reg, u8)> + '_ {
        let locked = self.files[class as usize].locked;
        self.held(class).filter(move |(_, register)| locked >> register & 1 == 0)
    }

    /// Takes a value out of its register; it stays in its slot if it has one.
    pub(super) fn leave_register(&mut self, reg: Reg, class: Class) {
        let register = std::mem::replace(&mut self.registers[reg.index()], NO_REG);
        if register != NO_REG {
            let file = &mut self.files[class as usize];
            file.free |= 1 << register;
            file.holders[usize::from(register)] = Reg::NONE;
        }
    }

    /// Forgets a value.
    pub(super) fn release(&mut self, reg: Reg) {
        let class = class_of(self.classes[reg.index()]);
        self.leave_register(reg, class);
        let slot = std::mem::replace(&mut self.slots[reg.index()], NO_SLOT);
        if slot != NO_SLOT {
            self.free_slot(slot, class);
            self.slotted.retain(|other| *other != reg);
        }
    }

    /// All values that are somewhere.
    fn present(&self) -> Vec<Reg> {
        let held =
            [Class::General, Class::Vector, Class::Mask].into_iter().flat_map(|class| self.held(class));
        let mut present: Vec<Reg> = held.map(|(reg, _)| reg).chain(self.slotted.iter().copied()).collect();
        present.sort_unstable();
        present.dedup();
        present
    }

    fn free_slot(&mut self, slot: u32, class: Class) {
        match class {
            Class::Vector => self.free_vectors.push(slot),
            Class::General | Class::Mask => self.free_words.push(slot),
        }
    }

    /// A slot for a value that has none.
    pub(super) fn new_slot(&mut self, reg: Reg, class: Class) -> u32 {
        let slot = self.free_slot_of(class);
        self.slots[reg.index()] = slot;
        self.classes[reg.index()] = class as u8;
        self.slotted.push(reg);
        slot
    }

    /// The slot where a value waits while others move. It belongs to no value: free slots may be where they move to.
    pub(super) fn waiting_slot(&mut self) -> u32 {
        match self.waiting {
            Some(slot) => slot,
            None => {
                let slot = self.next_line();
                *self.waiting.insert(slot)
            }
        }
    }

    fn next_line(&mut self) -> u32 {
        let line = self.bytes;
        self.bytes += self.vector_bytes;
        line
    }

    fn free_slot_of(&mut self, class: Class) -> u32 {
        match class {
            Class::Vector => self.free_vectors.pop().unwrap_or_else(|| self.next_line()),
            Class::General | Class::Mask => match self.free_words.pop() {
                Some(slot) => slot,
                None => {
                    let line = self.next_line();
                    self.free_words.extend((line + 8..line + self.vector_bytes).step_by(8).rev());
                    line
                }
            },
        }
    }

    /// Where the values are that a rule names.
    pub(super) fn snapshot(&self, is_wanted: impl Fn(Reg) -> bool) -> Vec<(Reg, ValueLocation)> {
        let locations =
            self.present().into_iter().filter_map(|reg| self.location(reg).map(|location| (reg, location)));
        locations.filter(|(reg, _)| is_wanted(*reg)).collect()
    }

    /// Makes this the state in which values are where a list says, but for those that are not needed any more.
    pub(super) fn reset(&mut self, locations: &[(Reg, ValueLocation)], is_wanted: impl Fn(Reg) -> bool) {
        let keep: Vec<(Reg, ValueLocation)> =
            locations.iter().copied().filter(|(reg, _)| is_wanted(*reg)).collect();
        let present = self.present();
        self.slotted.clear();
        // Slots that the list names are taken by what it says.
        let named: Vec<u32> = keep.iter().filter_map(|(_, location)| location.slot()).collect();
        for reg in present {
            let class = class_of(self.classes[reg.index()]);
            self.leave_register(reg, class);
            let slot = std::mem::replace(&mut self.slots[reg.index()], NO_SLOT);
            if slot != NO_SLOT && !named.contains(&slot) {
                self.free_slot(slot, class);
            }
        }
        for (reg, location) in keep {
            self.set_location(reg, class_of(self.classes[reg.index()]), location);
        }
    }

    /// Puts a value where it is said to be: a register and a slot that nothing else has.
    pub(super) fn set_location(&mut self, reg: Reg, class: Class, location: ValueLocation) {
        if let Some(slot) = location.slot() {
            self.slots[reg.index()] = slot;
            self.classes[reg.index()] = class as u8;
            self.slotted.push(reg);
            self.free_vectors.retain(|other| *other != slot);
            self.free_words.retain(|other| *other != slot);
        }
        if let Some(register) = location.register() {
            self.settle(reg, class, register);
        }
    }
}

fn class_of(number: u8) -> Class {
    match number {
        0 => Class::General,
        1 => Class::Vector,
        _ => Class::Mask,
    }
}
