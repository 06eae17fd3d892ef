//! Loops and branches of regions, as those of the function.

use defn_core::TensorType;

use super::link::{Frame, Kernel, Linker};
use super::places::{PerElement, Place, elements_of};
use super::regions::{Cond, Kept, While, own_cost};
use crate::compiler::ir::{Cmp, Elem, Op, Val};

/// What is counted down until the host is asked whether to go on: less than a millisecond.
pub(super) const FUEL: i64 = 1 << 19;

impl Linker {
    /// A loop.
    pub(super) fn repeat(
        &mut self,
        of: &While,
        polls: bool,
        (operands, types): (&[Place], &[TensorType]),
        (outputs, _): (&[Place], &[TensorType]),
        (scratch, inner): (Place, Place),
    ) {
        // What the regions are given. Captures stay as they are.
        let mut arguments = operands.to_vec();
        let mut carried: Vec<(Val, bool)> = Vec::new();
        for (at, kept) in of.state.iter().enumerate() {
            let ty = &types[at];
            match *kept {
                Kept::Constant => {}
                Kept::Scalar { given, .. } => {
                    let words = self.elements(&operands[at], ty);
                    carried.extend(words.iter().map(|&(_, value)| (value, false)));
                    arguments[at] = scratch.offset_by(given);
                }
                Kept::InPlace => {
                    self.begin_state(of, at, &operands[at], &outputs[at], ty);
                    arguments[at] = outputs[at].clone();
                }
                Kept::Alternating { other } => {
                    self.begin_state(of, at, &operands[at], &outputs[at], ty);
                    let (now, next) = (self.address(&outputs[at]), self.address(&scratch.offset_by(other)));
                    carried.extend([(now, false), (next, false)]);
                }
                Kept::Rotated { .. } => {
                    self.copy(&operands[at], &outputs[at], ty);
                    carried.push((self.address(&outputs[at]), false));
                }
            }
        }
        // What is read often is in registers before the loop.
        for (at, (place, ty)) in operands.iter().zip(types).enumerate() {
            if ty.size() == 1 && !of.is_overwritten(at) {
                self.elements(place, ty);
            }
        }
        if polls {
            carried.extend(self.fuel.map(|fuel| (fuel, false)));
        }
        let trips = of.trips.map(|trips| self.b.index(trips as i64));
        let (counter, carries) = self.b.begin_loop(trips, &carried);
        let around = self.scalars.clone();
        let mut values = carries.iter().copied();
        let mut next_places = outputs.to_vec();
        for (at, kept) in of.state.iter().enumerate() {
            match *kept {
                Kept::Constant | Kept::InPlace => {}
                Kept::Scalar { next, .. } => {
                    self.take_elements(&arguments[at], &types[at], &mut values);
                    next_places[at] = scratch.offset_by(next);
                }
                Kept::Alternating { .. } => {
                    let [now, next] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    arguments[at] = Place::at_address(now);
                    next_places[at] = Place::at_address(next);
                }
                Kept::Rotated { .. } => {
                    let now = values.next().expect("an address is carried");
                    arguments[at] = Place::at_address(now);
                }
            }
        }
        for (at, kept) in of.state.iter().enumerate() {
            if let Kept::Rotated { from } = *kept {
                next_places[at] = arguments[from].clone();
            }
        }
        if polls {
            self.fuel = values.next().or(self.fuel);
        }
        let counted = self.count(of, counter, &carries);
        if trips.is_none() {
            let predicate = [scratch.offset_by(of.predicate)];
            let frame = Frame { arguments: &arguments, results: &predicate, arena: inner.clone() };
            self.region(&of.cond, &frame);
            let goes_on = self.predicate(&predicate[0], of.predicate_type());
            self.b.while_(goes_on);
        }
        let frame = Frame { arguments: &arguments, results: &next_places, arena: inner };
        self.region(&of.body, &frame);
        let mut next: Vec<Val> = Vec::new();
        let mut values = carries.iter().copied();
        for (at, kept) in of.state.iter().enumerate() {
            match kept {
                Kept::Constant | Kept::InPlace => {}
                Kept::Scalar { .. } => {
                    let words = self.elements(&next_places[at], &types[at]);
                    values.by_ref().take(words.len()).for_each(drop);
                    next.extend(words.iter().map(|&(_, value)| value));
                }
                Kept::Alternating { .. } => {
                    let [_, other] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    // The memory that nobody takes over is free.
                    let last = of.chain(at).pop().unwrap_or(at);
                    let free = self.address(&arguments[last]);
                    next.extend([other, free]);
                }
                Kept::Rotated { .. } => {
                    values.by_ref().take(1).for_each(drop);
                    next.push(self.address(&next_places[at]));
                }
            }
        }
        if polls {
            next.extend(self.burn(own_cost(&of.cond) + own_cost(&of.body)));
        }
        let pairs: Vec<(Val, Val)> = carries.iter().copied().zip(next).collect();
        self.b.end_loop(&pairs);
        counted.into_iter().for_each(|carry| self.b.forget_range(carry));
        self.scalars = around;
        let mut values = carries.iter().copied();
        // Where arrays are in the end, and the memory that is free beside each.
        let mut ends: Vec<Option<(Val, Val)>> = vec![None; of.state.len()];
        for (at, kept) in of.state.iter().enumerate() {
            let ty = &types[at];
            match kept {
                Kept::Constant => self.copy(&operands[at], &outputs[at], ty),
                Kept::InPlace => self.scalars.forget(&outputs[at], ty.byte_size()),
                Kept::Scalar { .. } => self.take_elements(&outputs[at], ty, &mut values),
                Kept::Alternating { .. } => {
                    let [now, free] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    ends[at] = Some((now, free));
                }
                Kept::Rotated { .. } => {
                    let now = values.next().expect("an address is carried");
                    ends[at] = Some((now, now));
                }
            }
        }
        for (at, kept) in of.state.iter().enumerate() {
            if let (Kept::Alternating { .. }, Some((_, free))) = (kept, ends[at]) {
                let chain = of.chain(at);
                let now = chain.iter().filter_map(|&part| Some(ends[part]?.0)).collect();
                let places: Vec<&Place> = chain.iter().map(|&part| &outputs[part]).collect();
                self.settle(now, free, &places, &types[at]);
            }
        }
        if polls {
            self.fuel = values.next().or(self.fuel);
        }
    }

    /// Copies a part of the state to where it is before the first trip, unless nobody needs it.
    fn begin_state(&mut self, of: &While, at: usize, operand: &Place, output: &Place, ty: &TensorType) {
        if of.is_overwritten(at) {
            self.scalars.forget(output, ty.byte_size());
        } else {
            self.copy(operand, output, ty);
        }
    }

    /// Tells what the state of a loop can be that counts its trips; gives the values that it is.
    fn count(&mut self, of: &While, counter: Val, carries: &[Val]) -> Vec<Val> {
        let Some(last) = of.trips.and_then(|trips| i64::try_from(trips).ok()?.checked_sub(1)) else {
            return Vec::new();
        };
        let mut counted = Vec::new();
        let mut carries = carries.iter().copied();
        for (at, kept) in of.state.iter().enumerate() {
            let taken = match kept {
                Kept::Constant | Kept::InPlace => 0,
                Kept::Scalar { .. } => elements_of(&of.body.region.inputs()[at]).map_or(0, |all| all.len()),
                Kept::Alternating { .. } => 2,
                Kept::Rotated { .. } => 1,
            };
            let own: PerElement<Val> = carries.by_ref().take(taken).map(|carry| (0, carry)).collect();
            let (Some(step), &[(_, carry)]) = (of.step(at), &own[..]) else { continue };
            let init = self.b.initial(carry);
            let Some((least, greatest)) = self.b.range(init) else { continue };
            let Some(way) = step.checked_mul(last) else { continue };
            let (Some(first), Some(end)) = (least.checked_add(way.min(0)), greatest.checked_add(way.max(0)))
            else {
                continue;
            };
            // A counter that wraps is no index.
            let bits = 8 * self.b.ty(carry).elem.bytes() as u32;
            if first < i64::MIN >> (64 - bits) || end > i64::MAX >> (64 - bits) {
                continue;
            }
            self.b.set_range(carry, (first, end));
            let start = self.b.index_of(init);
            let step = self.b.index(step);
            let moved = self.b.computed(Op::Mul, Elem::Index, [counter, step, Val::NONE]);
            let index = self.b.computed(Op::Add, Elem::Index, [moved, start, Val::NONE]);
            self.b.set_index(carry, index);
            counted.push(carry);
        }
        counted
    }

    /// Takes the elements of a small value from values.
    fn take_elements(&mut self, place: &Place, ty: &TensorType, values: &mut impl Iterator<Item = Val>) {
        let words = elements_of(ty).expect("the value is small");
        let taken = |(offset, _)| (offset, values.next().expect("a value for each element"));
        let words: PerElement<Val> = words.into_iter().map(taken).collect();
        self.set_elements(place, words);
    }

    /// Copies arrays of a type from addresses to their places, where those are others. An array that lies in the place of
    /// another goes to the memory that is free.
    fn settle(&mut self, mut now: Vec<Val>, mut free: Val, places: &[&Place], ty: &TensorType) {
        for (at, place) in places.iter().enumerate() {
            let home = self.address(place);
            let is_elsewhere = self.b.compare(Cmp::Ne, now[at], home);
            self.b.begin_if(is_elsewhere);
            let mut moved = now.clone();
            for other in at + 1..now.len() {
                let is_there = self.b.compare(Cmp::Eq, now[other], home);
                self.b.begin_if(is_there);
                self.copy(&Place::at_address(home), &Place::at_address(free), ty);
                moved[other] = self.b.end_if(&[(free, now[other])])[0];
            }
            self.copy(&Place::at_address(now[at]), place, ty);
            let others = moved.into_iter().zip(now.iter().copied()).skip(at + 1);
            let pairs: Vec<(Val, Val)> = std::iter::once((now[at], free)).chain(others).collect();
            let joined = self.b.end_if(&pairs);
            free = joined[0];
            now[at + 1..].copy_from_slice(&joined[1..]);
            self.scalars.forget(place, ty.byte_size());
        }
    }

    /// Counts some work; asks the host if that is due. Gives what is left.
    fn burn(&mut self, cost: u64) -> Option<Val> {
        let fuel = self.fuel?;
        let (cost, none, full) = (self.b.index(cost as i64), self.b.index(0), self.b.index(FUEL));
        let left = self.b.sub(fuel, cost);
        let is_due = self.b.compare(Cmp::Lt, left, none);
        self.b.begin_if(is_due);
        self.call(Kernel::Poll, &[]);
        self.fuel = Some(self.b.end_if(&[(full, left)])[0]);
        self.fuel
    }

    /// Branches, of which the first whose predicate holds is run, or the last.
    pub(super) fn branch(
        &mut self,
        of: &Cond,
        polls: bool,
        (operands, types): (&[Place], &[TensorType]),
        (outputs, results): (&[Place], &[TensorType]),
        inner: Place,
    ) {
        let tests = of.branches.len() - 1;
        let predicates: Vec<Val> = (0..tests).map(|at| self.predicate(&operands[at], &types[at])).collect();
        for (place, ty) in operands.iter().zip(types).skip(tests) {
            if ty.size() == 1 {
                self.elements(place, ty);
            }
        }
        let fuel = self.fuel.filter(|_| polls);
        let frame = Frame { arguments: &operands[tests..], results: outputs, arena: inner };
        let around = self.scalars.clone();
        // The sides that ran already, innermost last.
        let mut sides = Vec::new();
        for (branch, predicate) in of.branches.iter().zip(&predicates) {
            self.b.begin_if(*predicate);
            self.region(branch, &frame);
            sides.push(self.side(polls, &frame, results));
            self.scalars = around.clone();
            self.fuel = fuel.or(self.fuel);
            self.b.begin_else();
        }
        self.region(&of.branches[tests], &frame);
        let mut otherwise = self.side(polls, &frame, results);
        while let Some(then) = sides.pop() {
            let pairs: Vec<(Val, Val)> = then.into_iter().zip(otherwise).collect();
            otherwise = self.b.end_if(&pairs).to_vec();
        }
        self.scalars = around;
        let mut values = otherwise.into_iter();
        for (place, ty) in outputs.iter().zip(results) {
            if elements_of(ty).is_some() {
                self.take_elements(place, ty, &mut values);
            } else {
                self.scalars.forget(place, ty.byte_size());
            }
        }
        self.fuel = values.next().or(self.fuel);
    }

    /// What one side of a branch gives: scalars, and what is left until the host is asked.
    fn side(&mut self, polls: bool, frame: &Frame<'_>, results: &[TensorType]) -> Vec<Val> {
        let mut values = Vec::new();
        for (place, ty) in frame.results.iter().zip(results) {
            if elements_of(ty).is_some() {
                values.extend(self.elements(place, ty).iter().map(|&(_, value)| value));
            }
        }
        values.extend(self.fuel.filter(|_| polls));
        values
    }
}
