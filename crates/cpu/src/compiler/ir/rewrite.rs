//! Copies a function with changes.

use rustc_hash::FxHashMap;

use super::{Access, AccessId, CallArg, CallId, Elem, Function, Inst, ListId, Op, Ty, Val};

/// A function as it is rewritten.
pub(super) struct Rewriter<'f> {
    pub(super) old: &'f Function,
    pub(super) new: Function,
    /// The new values.
    pub(super) values: Vec<Val>,
    accesses: FxHashMap<AccessId, AccessId>,
}

impl<'f> Rewriter<'f> {
    pub(super) fn new(old: &'f Function) -> Rewriter<'f> {
        let empty = Function {
            insts: Vec::new(),
            accesses: Vec::new(),
            lists: Vec::new(),
            calls: Vec::new(),
            ..*old
        };
        Rewriter { old, new: empty, values: vec![Val::NONE; old.insts.len()], accesses: FxHashMap::default() }
    }

    pub(super) fn value(&self, value: Val) -> Val {
        if value.is_some() { self.values[value.index()] } else { value }
    }

    pub(super) fn push(&mut self, op: Op, ty: Ty, args: [Val; 3]) -> Val {
        self.new.insts.push(Inst { op, ty, args });
        Val(self.new.insts.len() as u32 - 1)
    }

    /// An index.
    pub(super) fn index(&mut self, number: i64) -> Val {
        self.push(Op::Const(number as u64), Ty::scalar(Elem::Index), [Val::NONE; 3])
    }

    /// An access of the new function, with terms of the old one.
    pub(super) fn access(&mut self, access: &Access) -> AccessId {
        let terms = access.terms.iter().map(|&(term, by)| (self.value(term), by)).collect();
        self.push_access(Access { terms, ..access.clone() })
    }

    pub(super) fn push_access(&mut self, access: Access) -> AccessId {
        self.new.accesses.push(access);
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

    /// Copies the instruction at a position.
    pub(super) fn copy(&mut self, at: usize) {
        let inst = self.old.insts[at];
        let args = inst.args.map(|arg| self.value(arg));
        let op = self.op(inst.op);
        self.values[at] = self.push(op, inst.ty, args);
    }

    /// An op with what it names beside its operands.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops name nothing but their operands")]
    fn op(&mut self, op: Op) -> Op {
        match op {
            Op::Load(id) => Op::Load(self.known_access(id)),
            Op::Store(id) => Op::Store(self.known_access(id)),
            Op::Gather(id) => Op::Gather(self.known_access(id)),
            Op::EndLoop(list) => Op::EndLoop(self.list(list, &[])),
            Op::EndIf(list) => Op::EndIf(self.list(list, &[])),
            Op::Call(id) => {
                let mut call = self.old.call(id).clone();
                for CallArg::Index(index) in &mut call.args {
                    *index = self.value(*index);
                }
                self.new.calls.push(call);
                Op::Call(CallId(self.new.calls.len() as u32 - 1))
            }
            _ => op,
        }
    }

    /// The pairs of a list, and more of the new function.
    pub(super) fn list(&mut self, list: ListId, more: &[(Val, Val)]) -> ListId {
        let pairs = self.old.list(list).iter().map(|&(one, other)| (self.value(one), self.value(other)));
        let pairs = pairs.chain(more.iter().copied()).collect();
        self.new.lists.push(pairs);
        ListId(self.new.lists.len() as u32 - 1)
    }
}
