//! The check of an allocation: does every instruction find its operands where the allocator says?
//!
//! The actions are run symbolically. For each register and slot the check knows which values of the code it holds;
//! where paths meet, only what both have. It shares nothing with the allocator but the origin of each action. Debug
//! builds check every function, and tests do.

use smallvec::{SmallVec, smallvec};

use super::mir::{Class, Code, Inst, Op, Part, Reg};
use super::registers::Origin;
use super::{Action, Allocated, AllocatedInst, AllocatedPart, OperandLocation, Target, mask_class};

/// A register or a slot, as an index.
#[derive(Clone, Copy, Debug)]
struct Location(usize);

impl Location {
    /// As many as a class has at most.
    const REGISTERS: usize = 32;
    const FIRST_SLOT: usize = 3 * Location::REGISTERS;

    fn register(class: Class, register: u8) -> Location {
        assert!(usize::from(register) < Location::REGISTERS, "{class:?} has no register {register}");
        Location(class as usize * Location::REGISTERS + usize::from(register))
    }

    fn slot(slot: u32) -> Location {
        Location(Location::FIRST_SLOT + slot as usize)
    }
}

type Values = SmallVec<[Reg; 2]>;

/// The values that each location holds.
#[derive(Clone, Debug, Default)]
struct State {
    values: Vec<Values>,
    /// How many locations hold a value: most new values are nowhere, and are not looked for.
    copies: Vec<u32>,
}

impl State {
    fn values(&self, location: Location) -> &[Reg] {
        self.values.get(location.0).map_or(&[], |values| values)
    }

    fn holds(&self, location: Location, reg: Reg) -> bool {
        self.values(location).contains(&reg)
    }

    /// The locations that hold a value.
    fn locations(&self, reg: Reg) -> impl Iterator<Item = Location> + '_ {
        let count = self.copies.get(reg.index()).map_or(0, |count| *count as usize);
        let all = (0..self.values.len()).map(Location);
        all.filter(move |location| self.holds(*location, reg)).take(count)
    }

    fn add(&mut self, location: Location, reg: Reg) {
        if self.values.len() <= location.0 {
            self.values.resize_with(location.0 + 1, Values::new);
        }
        if self.copies.len() <= reg.index() {
            self.copies.resize(reg.index() + 1, 0);
        }
        self.values[location.0].push(reg);
        self.copies[reg.index()] += 1;
    }

    fn clear(&mut self, location: Location) {
        if let Some(values) = self.values.get_mut(location.0) {
            values.drain(..).for_each(|reg| self.copies[reg.index()] -= 1);
        }
    }

    fn set(&mut self, location: Location, values: Values) {
        self.clear(location);
        values.into_iter().for_each(|reg| self.add(location, reg));
    }

    fn copy(&mut self, to: Location, from: Location) {
        self.set(to, self.values(from).into());
    }

    /// A call leaves only the slots as they were.
    fn forget_registers(&mut self) {
        (0..Location::FIRST_SLOT).for_each(|register| self.clear(Location(register)));
    }

    /// A value is new: it is nowhere else.
    fn define(&mut self, reg: Reg) {
        let locations: SmallVec<[Location; 4]> = self.locations(reg).collect();
        for location in locations {
            self.values[location.0].retain(|other| *other != reg);
            self.copies[reg.index()] -= 1;
        }
    }

    /// What both have. Returns whether that is less.
    fn meet(&mut self, other: &State) -> bool {
        let mut is_less = false;
        for (at, values) in self.values.iter_mut().enumerate() {
            values.retain(|reg| {
                let both = other.holds(Location(at), *reg);
                self.copies[reg.index()] -= u32::from(!both);
                is_less |= !both;
                both
            });
        }
        is_less
    }
}

/// Says what is wrong with an allocation, if anything is.
pub(crate) fn check(
    code: &Code,
    allocated: &Allocated,
    origins: &[Origin],
    target: &dyn Target,
) -> Result<(), String> {
    if origins.len() != allocated.actions.len() {
        return Err("an action has no origin".to_owned());
    }
    let labels = vec![None; allocated.labels as usize];
    let mut checker = Checker { code, target, labels, renamed: Vec::new() };
    // States at labels shrink until they fit all jumps; then operands are checked.
    loop {
        let mut changed = false;
        checker.pass(allocated, origins, false, &mut changed)?;
        if !changed {
            return checker.pass(allocated, origins, true, &mut changed);
        }
    }
}

struct Checker<'a> {
    code: &'a Code,
    target: &'a dyn Target,
    labels: Vec<Option<State>>,
    /// What was renamed where paths meet: a value that is made again there is the renamed one, too.
    renamed: Vec<(Reg, Reg)>,
}

impl Checker<'_> {
    fn pass(
        &mut self,
        allocated: &Allocated,
        origins: &[Origin],
        is_last: bool,
        changed: &mut bool,
    ) -> Result<(), String> {
        let mut state = Some(State::default());
        for (at, (action, origin)) in allocated.actions.iter().zip(origins).enumerate() {
            if let Action::Label(label) = action {
                self.renamed.clear();
                self.join(*label, state.as_ref(), changed);
                state = self.labels[*label as usize].clone();
                continue;
            }
            // What no path reaches is not checked.
            let Some(now) = &mut state else { continue };
            let result = self.action(action, origin, now, is_last, changed);
            result.map_err(|problem| format!("action {at}, {action:?}, of {origin:?}: {problem}"))?;
            if let Action::Jump(_) = action {
                state = None;
            }
        }
        Ok(())
    }

    fn join(&mut self, label: u32, state: Option<&State>, changed: &mut bool) {
        let Some(state) = state else { return };
        match &mut self.labels[label as usize] {
            Some(known) => *changed |= known.meet(state),
            unknown => {
                *unknown = Some(state.clone());
                *changed = true;
            }
        }
    }

    fn class(&self, reg: Reg) -> Class {
        match self.code.class(reg) {
            Class::Mask => mask_class(&self.target.limits()),
            class @ (Class::General | Class::Vector) => class,
        }
    }

    fn action(
        &mut self,
        action: &Action,
        origin: &Origin,
        state: &mut State,
        is_last: bool,
        changed: &mut bool,
    ) -> Result<(), String> {
        match action {
            Action::Inst(allocated_inst) => match origin {
                Origin::Inst(at) => self.instruction(*at, allocated_inst, state, is_last)?,
                Origin::Rematerialized(at) => {
                    let values = self.rematerialized(self.code.insts[*at].dst);
                    state.set(Location::register(Class::General, allocated_inst.dst), values);
                }
                Origin::Rename(_) | Origin::Moved => return Err("an instruction of no origin".to_owned()),
            },
            Action::Constant { to, constant } => {
                let Origin::Rematerialized(at) = origin else {
                    return Err("a constant of no origin".to_owned());
                };
                let inst = self.code.insts[*at];
                if inst.op != Op::Const(*constant) {
                    return Err("another constant".to_owned());
                }
                state.set(Location::register(Class::Vector, *to), self.rematerialized(inst.dst));
            }
            Action::Move { class, to, from } => {
                state.copy(Location::register(*class, *to), Location::register(*class, *from));
            }
            Action::Spill { class, slot, from } => {
                state.copy(Location::slot(*slot), Location::register(*class, *from));
            }
            Action::Reload { class, to, slot } => {
                state.copy(Location::register(*class, *to), Location::slot(*slot));
            }
            Action::Label(_) => {}
            Action::Jump(to) => self.join(*to, Some(state), changed),
            Action::JumpIf { a, b, to, .. } => {
                if let (Origin::Inst(at), true) = (origin, is_last) {
                    let inst = self.code.insts[*at];
                    self.operand(inst.src[0], *a, state)?;
                    self.operand(inst.src[1], *b, state)?;
                }
                self.join(*to, Some(state), changed);
            }
            Action::JumpIfNone { mask, to, .. } => {
                if let (Origin::Inst(at), true) = (origin, is_last) {
                    self.operand(self.code.insts[*at].src[0], OperandLocation::Reg(*mask), state)?;
                }
                self.join(*to, Some(state), changed);
            }
            Action::Call { args, .. } => {
                let Origin::Inst(at) = origin else { return Err("a call of no origin".to_owned()) };
                let Op::Call(_, list) = self.code.insts[*at].op else { return Err("no call".to_owned()) };
                if is_last {
                    for (&reg, &location) in self.code.list(list).iter().zip(args) {
                        self.operand(reg, location, state)?;
                    }
                }
                state.forget_registers();
            }
            Action::Apply { kernel, elem, lanes, to, from } => {
                let Origin::Inst(at) = origin else { return Err("a call of no origin".to_owned()) };
                let inst = self.code.insts[*at];
                if (inst.op, inst.elem, inst.lanes) != (Op::Apply(*kernel), *elem, *lanes) {
                    return Err("another call".to_owned());
                }
                if is_last {
                    self.operand(inst.src[0], OperandLocation::Reg(*from), state)?;
                }
                state.forget_registers();
                state.define(inst.dst);
                state.set(Location::register(Class::Vector, *to), smallvec![inst.dst]);
            }
            Action::Nothing => {
                let Origin::Rename(pairs) = origin else { return Err("nothing of no origin".to_owned()) };
                let found: Vec<(Location, Reg)> = pairs
                    .iter()
                    .flat_map(|&(to, from)| state.locations(from).map(move |location| (location, to)))
                    .collect();
                for &(to, _) in pairs {
                    state.define(to);
                }
                self.renamed.clone_from(pairs);
                for (location, to) in found {
                    state.add(location, to);
                }
            }
        }
        Ok(())
    }

    /// A value that was made again, and what it was renamed to.
    fn rematerialized(&self, reg: Reg) -> Values {
        let renamed = self.renamed.iter().filter(|(_, from)| *from == reg).map(|(to, _)| *to);
        std::iter::once(reg).chain(renamed).collect()
    }

    fn operand(&self, reg: Reg, location: OperandLocation, state: &State) -> Result<(), String> {
        let is_there = match location {
            OperandLocation::None => !reg.is_some(),
            OperandLocation::Reg(register) => {
                reg.is_some() && state.holds(Location::register(self.class(reg), register), reg)
            }
            OperandLocation::Slot(slot) => reg.is_some() && state.holds(Location::slot(slot), reg),
            OperandLocation::Pool(constant) => {
                let defined = self.code.insts.iter().find(|inst| inst.dst == reg);
                defined.is_some_and(|inst| inst.op == Op::Const(constant))
            }
        };
        if is_there { Ok(()) } else { Err(format!("{reg:?} is not at {location:?}")) }
    }

    fn instruction(
        &self,
        at: usize,
        allocated_inst: &AllocatedInst,
        state: &mut State,
        is_last: bool,
    ) -> Result<(), String> {
        let inst = &self.code.insts[at];
        let limits = self.target.limits();
        if is_last {
            for (&reg, &location) in inst.src.iter().zip(&allocated_inst.src) {
                self.operand(reg, location, state)?;
            }
            if inst.mem.base.is_some() {
                self.operand(inst.mem.base, OperandLocation::Reg(allocated_inst.mem.base), state)?;
            }
            if inst.mem.index.is_some() {
                let index = allocated_inst.mem.index.ok_or("an index is missing")?;
                self.operand(inst.mem.index, OperandLocation::Reg(index), state)?;
            }
            match (inst.part, allocated_inst.part) {
                (Part::All, AllocatedPart::All) => {}
                (Part::Count(reg), AllocatedPart::Count(register))
                | (Part::Mask(reg), AllocatedPart::Mask(register)) => {
                    self.operand(reg, OperandLocation::Reg(register), state)?;
                }
                (Part::All | Part::Count(_) | Part::Mask(_), _) => return Err("another part".to_owned()),
            }
            self.constraints(inst, allocated_inst)?;
        }
        let temps = allocated_inst.vector_temps.map(|temp| (Class::Vector, temp));
        let temps = temps.into_iter().chain(allocated_inst.general_temps.map(|temp| (Class::General, temp)));
        let temps = temps.chain([(mask_class(&limits), allocated_inst.mask_temp)]);
        let scratch =
            [Class::General, Class::Vector, Class::Mask].map(|class| (class, limits.scratch[class as usize]));
        // What an instruction does not need has the number of no register.
        for (class, register) in temps.chain(scratch).filter(|(_, register)| *register != u8::MAX) {
            state.clear(Location::register(class, register));
        }
        if inst.dst.is_some() {
            state.define(inst.dst);
            state.set(Location::register(self.class(inst.dst), allocated_inst.dst), smallvec![inst.dst]);
        }
        Ok(())
    }

    /// Whether registers are as the target asks for.
    fn constraints(&self, inst: &Inst, allocated_inst: &AllocatedInst) -> Result<(), String> {
        let constraint = self.target.constraint(inst);
        let is_dst = |at: usize| {
            inst.src[at].is_some()
                && self.class(inst.src[at]) == self.class(inst.dst)
                && allocated_inst.src[at] == OperandLocation::Reg(allocated_inst.dst)
        };
        let tied: Vec<usize> =
            (0..3).filter(|at| constraint.tied >> at & 1 == 1 && inst.src[*at].is_some()).collect();
        if !tied.is_empty() && !tied.iter().any(|at| is_dst(*at)) {
            return Err("no source is in the register of the result".to_owned());
        }
        if constraint.is_early && inst.dst.is_some() {
            let shared = (0..3).filter(|at| is_dst(*at)).count();
            if shared > usize::from(!tied.is_empty()) {
                return Err("a source is in the register that is written early".to_owned());
            }
        }
        let mut memory = 0;
        for (at, location) in allocated_inst.src.iter().enumerate() {
            let allowed = match location {
                OperandLocation::None | OperandLocation::Reg(_) => continue,
                OperandLocation::Slot(_) => constraint.slot,
                OperandLocation::Pool(_) => constraint.pool,
            };
            memory += 1;
            if allowed >> at & 1 == 0 || memory > 1 {
                return Err(format!("source {at} is in memory"));
            }
        }
        let mut used: Vec<(u8, u8)> = Vec::new();
        let mut take = |class: Class, register: u8| {
            let is_new = !used.contains(&(class as u8, register));
            used.push((class as u8, register));
            is_new
        };
        let mask = mask_class(&self.target.limits());
        let temps = allocated_inst.vector_temps[..usize::from(constraint.vector_temps)]
            .iter()
            .map(|temp| (Class::Vector, *temp));
        let general = allocated_inst.general_temps[..usize::from(constraint.general_temps)].iter();
        let temps = temps.chain(general.map(|temp| (Class::General, *temp)));
        let temps = temps.chain((constraint.mask_temps > 0).then_some((mask, allocated_inst.mask_temp)));
        for (class, register) in temps {
            if register == u8::MAX || !take(class, register) {
                return Err("temporary registers are not apart".to_owned());
            }
            let is_source = |at: usize| {
                inst.src[at].is_some()
                    && self.class(inst.src[at]) == class
                    && allocated_inst.src[at] == OperandLocation::Reg(register)
            };
            let is_result =
                inst.dst.is_some() && self.class(inst.dst) == class && allocated_inst.dst == register;
            if (0..3).any(is_source) || is_result {
                return Err("a temporary register is an operand".to_owned());
            }
        }
        Ok(())
    }
}
