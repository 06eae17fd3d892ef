//! Loads of what the trip before stored become values that the loop carries: a chain through memory takes several times
//! as long as one through registers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Access, AccessId, CallArg, Function, Inst, ListId, Op, Ty, Val};

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
        let mut found: FxHashMap<usize, Vec<Forwarded>> = FxHashMap::default();
        let mut open: SmallVec<[usize; 8]> = SmallVec::new();
        for (at, inst) in self.insts.iter().enumerate() {
            if let Op::Loop | Op::If | Op::Lanes = inst.op {
                open.push(at);
            } else if let Op::EndLoop(_) | Op::EndIf(_) | Op::EndLanes = inst.op {
                let start = open.pop().expect("a block is open");
                let forwarded = self.forwarded(start, at, has_address, harmless);
                if !forwarded.is_empty() {
                    found.insert(start, forwarded);
                }
            }
        }
        if found.is_empty() {
            return self;
        }
        Rewriter::new(&self).rewritten(&found).verified()
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

/// A function as it is rewritten.
struct Rewriter<'f> {
    old: &'f Function,
    new: Function,
    /// The new values.
    values: Vec<Val>,
    accesses: FxHashMap<AccessId, AccessId>,
}

impl<'f> Rewriter<'f> {
    fn new(old: &'f Function) -> Rewriter<'f> {
        let empty = Function {
            insts: Vec::new(),
            accesses: Vec::new(),
            lists: Vec::new(),
            calls: Vec::new(),
            ..*old
        };
        Rewriter { old, new: empty, values: vec![Val::NONE; old.insts.len()], accesses: FxHashMap::default() }
    }

    fn value(&self, value: Val) -> Val {
        if value.is_some() { self.values[value.index()] } else { value }
    }

    fn push(&mut self, op: Op, ty: Ty, args: [Val; 3]) -> Val {
        self.new.insts.push(Inst { op, ty, args });
        Val(self.new.insts.len() as u32 - 1)
    }

    fn access(&mut self, access: &Access) -> AccessId {
        let terms = access.terms.iter().map(|&(term, by)| (self.value(term), by)).collect();
        self.new.accesses.push(Access { terms, ..access.clone() });
        AccessId(self.new.accesses.len() as u32 - 1)
    }

    fn known_access(&mut self, id: AccessId) -> AccessId {
        if let Some(&known) = self.accesses.get(&id) {
            return known;
        }
        let old = self.old;
        let new = self.access(old.access(id));
        self.accesses.insert(id, new);
        new
    }

    fn rewritten(mut self, found: &FxHashMap<usize, Vec<Forwarded>>) -> Function {
        let old = self.old;
        // For each open loop, what it carries in addition.
        let mut open: SmallVec<[Vec<(Val, Val)>; 8]> = SmallVec::new();
        let mut at = 0;
        while at < old.insts.len() {
            let inst = &old.insts[at];
            // A load that is replaced has its value since its loop began.
            if self.values[at].is_some() {
                at += 1;
                continue;
            }
            if inst.op == Op::Loop {
                at = self.loop_(at, found.get(&at).map_or(&[][..], |forwarded| forwarded), &mut open);
                continue;
            }
            let args = inst.args.map(|arg| self.value(arg));
            let op = self.op(inst.op, &mut open);
            self.values[at] = self.push(op, inst.ty, args);
            at += 1;
        }
        self.new
    }

    /// The beginning of a loop, up to the instruction that is given.
    fn loop_(&mut self, at: usize, found: &[Forwarded], open: &mut SmallVec<[Vec<(Val, Val)>; 8]>) -> usize {
        let old = self.old;
        let ty = |forwarded: &Forwarded| old.insts[forwarded.load].ty;
        let mut first: Vec<Val> = Vec::new();
        for forwarded in found {
            let id = self.access(&forwarded.first);
            first.push(self.push(Op::Load(id), ty(forwarded), [Val::NONE; 3]));
        }
        let mut end = at;
        while end == at || old.insts[end].op == Op::Carry {
            let inst = &old.insts[end];
            let args = inst.args.map(|arg| self.value(arg));
            self.values[end] = self.push(inst.op, inst.ty, args);
            end += 1;
        }
        let mut carried = Vec::new();
        for (forwarded, first) in found.iter().zip(first) {
            let carry = self.push(Op::Carry, ty(forwarded), [first, Val::NONE, Val::NONE]);
            self.values[forwarded.load] = carry;
            carried.push((carry, forwarded.stored));
        }
        open.push(carried);
        end
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops name nothing but their operands")]
    fn op(&mut self, op: Op, open: &mut SmallVec<[Vec<(Val, Val)>; 8]>) -> Op {
        match op {
            Op::Load(id) => Op::Load(self.known_access(id)),
            Op::Store(id) => Op::Store(self.known_access(id)),
            Op::Gather(id) => Op::Gather(self.known_access(id)),
            Op::EndLoop(list) => {
                let carried = open.pop().expect("a loop is open");
                let pairs =
                    self.old.list(list).iter().map(|&(carry, next)| (self.value(carry), self.value(next)));
                let more = carried.into_iter().map(|(carry, stored)| (carry, self.value(stored)));
                let pairs = pairs.chain(more).collect();
                Op::EndLoop(self.list(pairs))
            }
            Op::EndIf(list) => {
                let pairs = self.old.list(list).iter();
                let pairs = pairs.map(|&(then, other)| (self.value(then), self.value(other))).collect();
                Op::EndIf(self.list(pairs))
            }
            Op::Call(id) => {
                let mut call = self.old.call(id).clone();
                for CallArg::Index(index) in &mut call.args {
                    *index = self.value(*index);
                }
                self.new.calls.push(call);
                Op::Call(super::CallId(self.new.calls.len() as u32 - 1))
            }
            _ => op,
        }
    }

    fn list(&mut self, pairs: Vec<(Val, Val)>) -> ListId {
        self.new.lists.push(pairs);
        ListId(self.new.lists.len() as u32 - 1)
    }
}
