//! Loads of what the trip before stored become values that the loop carries: a chain through memory takes several times
//! as long as one through registers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::rewrite::Rewriter;
use super::{Access, Function, Op, Val};

/// A load that is replaced: the instruction that it is, and its value in the next trip.
struct Forwarded {
    load: usize,
    stored: Val,
    /// What it loads in the first trip.
    first: Access,
}

impl Function {
    /// The function without loads of what was stored one trip before. `has_address` is the pointer that is zero, whose
    /// accesses may be anywhere; the others are of memory that lies apart, where something is stored. The kernel at
    /// `harmless` touches none of it.
    pub(crate) fn with_forwarded_stores(self, has_address: u16, harmless: Option<u16>) -> Function {
        let forwarded =
            self.blocks().map(|(start, end)| (start, self.forwarded(start, end, has_address, harmless)));
        let found: FxHashMap<usize, Vec<Forwarded>> =
            forwarded.filter(|(_, forwarded)| !forwarded.is_empty()).collect();
        if found.is_empty() {
            return self;
        }
        rewritten(&self, &found).verified()
    }

    /// The loads in a block that are replaced.
    fn forwarded(&self, start: usize, end: usize, has_address: u16, harmless: Option<u16>) -> Vec<Forwarded> {
        let begin = &self.insts[start];
        let is_counted = begin.op == Op::Loop && begin.args[0].is_some();
        if !is_counted || self.inst(begin.args[0]).op.constant().is_none_or(|trips| trips as i64 <= 0) {
            return Vec::new();
        }
        let counter = Val(start as u32);
        // The instructions of the block itself, and all stores.
        let (mut own, mut stores) = (SmallVec::<[usize; 32]>::new(), SmallVec::<[(usize, bool); 4]>::new());
        let mut depth = 0;
        for at in start + 1..end {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops do not touch memory")]
            match self.insts[at].op {
                Op::Call(call) if Some(self.call(call).kernel) != harmless => return Vec::new(),
                Op::While if depth == 0 => return Vec::new(),
                Op::Loop | Op::If | Op::Lanes => depth += 1,
                Op::EndLoop(_) | Op::EndIf(_) | Op::EndLanes => depth -= 1,
                Op::Store(_) => stores.push((at, depth == 0)),
                Op::Load(_) if depth == 0 => own.push(at),
                _ => {}
            }
        }
        let mut found = Vec::new();
        for &(store, is_own) in &stores {
            let Op::Store(id) = self.insts[store].op else { continue };
            let to = self.access(id);
            let is_alone = stores.iter().filter(|(other, _)| *other != store).all(|&(other, _)| {
                let Op::Store(other) = self.insts[other].op else { return false };
                let buffer = self.access(other).buffer;
                buffer != to.buffer && buffer != has_address && to.buffer != has_address
            });
            let is_invariant = |&(term, _): &(Val, i64)| term == counter || term.index() < start;
            let value = self.insts[store].args[0];
            if !is_own
                || !is_alone
                || to.lane != 0
                || self.ty(value).is_vector
                || !to.terms.iter().all(is_invariant)
            {
                continue;
            }
            let step: i64 = to.terms.iter().filter(|(term, _)| *term == counter).map(|(_, by)| by).sum();
            for &load in &own {
                let Op::Load(id) = self.insts[load].op else { continue };
                let from = self.access(id);
                let is_before = from.buffer == to.buffer && from.lane == 0 && from.offset == to.offset - step;
                if step != 0 && is_before && from.terms == to.terms && self.insts[load].ty == self.ty(value) {
                    let terms = from.terms.iter().copied().filter(|(term, _)| *term != counter).collect();
                    found.push(Forwarded { load, stored: value, first: Access { terms, ..from.clone() } });
                }
            }
        }
        found
    }
}

/// The function with the loads replaced of the blocks that begin at these positions.
fn rewritten(old: &Function, found: &FxHashMap<usize, Vec<Forwarded>>) -> Function {
    let mut to = Rewriter::new(old);
    // For each open loop, what it carries in addition.
    let mut open: SmallVec<[Vec<(Val, Val)>; 8]> = SmallVec::new();
    let mut at = 0;
    while at < old.insts.len() {
        let inst = &old.insts[at];
        // A load that is replaced has its value since its loop began.
        if to.values[at].is_some() {
            at += 1;
        } else if inst.op == Op::Loop {
            let (end, carried) = begin_loop(&mut to, at, found.get(&at).map_or(&[][..], |found| found));
            open.push(carried);
            at = end;
        } else if let Op::EndLoop(list) = inst.op {
            let mut more = open.pop().expect("a loop is open");
            more.iter_mut().for_each(|(_, stored)| *stored = to.value(*stored));
            let list = to.list(list, &more);
            to.values[at] = to.push(Op::EndLoop(list), inst.ty, inst.args);
            at += 1;
        } else {
            to.copy(at);
            at += 1;
        }
    }
    to.new
}

/// The beginning of a loop; gives the position of what follows, and what the loop carries in addition, with the values
/// of the old function that are stored.
fn begin_loop(to: &mut Rewriter<'_>, at: usize, found: &[Forwarded]) -> (usize, Vec<(Val, Val)>) {
    let old = to.old;
    let ty = |forwarded: &Forwarded| old.insts[forwarded.load].ty;
    let mut first: Vec<Val> = Vec::new();
    for forwarded in found {
        let id = to.access(&forwarded.first);
        first.push(to.push(Op::Load(id), ty(forwarded), [Val::NONE; 3]));
    }
    let mut end = at;
    while end == at || old.insts[end].op == Op::Carry {
        to.copy(end);
        end += 1;
    }
    let mut carried = Vec::new();
    for (forwarded, first) in found.iter().zip(first) {
        let carry = to.push(Op::Carry, ty(forwarded), [first, Val::NONE, Val::NONE]);
        to.values[forwarded.load] = carry;
        carried.push((carry, forwarded.stored));
    }
    (end, carried)
}
