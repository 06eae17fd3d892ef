//! The pure instructions that are visible where a function is being built.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{Elem, Inst, Op, Val};

const EMPTY: u32 = u32::MAX;

/// A hash table of instructions by what they compute, with linear probing. A block's instructions are removed when it
/// ends: the last of all first, which restores the table of before, so that removed entries need no marks.
pub(super) struct KnownInsts {
    /// Positions of instructions; a power of two, at least twice as many as there are entries.
    slots: Vec<u32>,
    /// The slots in use, in the order in which they were filled.
    filled: Vec<u32>,
    /// How many slots were in use when each open block began.
    blocks: Vec<u32>,
}

/// What a pure instruction computes.
#[derive(Clone, Copy)]
pub(super) struct Computed {
    pub(super) op: Op,
    pub(super) elem: Elem,
    pub(super) args: [Val; 3],
}

impl Computed {
    fn of(inst: &Inst) -> Computed {
        Computed { op: inst.op, elem: inst.ty.elem, args: inst.args }
    }

    fn is(&self, inst: &Inst) -> bool {
        self.args == inst.args && self.elem == inst.ty.elem && self.op == inst.op
    }

    fn hash(&self) -> usize {
        let [a, b, c] = self.args.map(|value| u64::from(value.0));
        let mut hasher = FxHasher::default();
        self.op.hash(&mut hasher);
        hasher.write_u64(a << 32 | b);
        hasher.write_u64(c << 32 | self.elem as u64);
        hasher.finish() as usize
    }
}

impl KnownInsts {
    /// A table with room for so many instructions.
    pub(super) fn with_capacity(len: usize) -> KnownInsts {
        let slots = vec![EMPTY; (2 * len).next_power_of_two()];
        KnownInsts { slots, filled: Vec::with_capacity(len), blocks: Vec::new() }
    }

    /// The instruction that computes the same, or the slot for a new one.
    pub(super) fn find(&self, computed: &Computed, insts: &[Inst]) -> Result<Val, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = computed.hash() & mask;
        loop {
            match self.slots[slot] {
                EMPTY => return Err(slot),
                value if computed.is(&insts[value as usize]) => return Ok(Val(value)),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Adds an instruction at the slot that [`find`](KnownInsts::find) returned.
    pub(super) fn insert(&mut self, slot: usize, value: Val, insts: &[Inst]) {
        self.slots[slot] = value.0;
        self.filled.push(slot as u32);
        if 2 * self.filled.len() > self.slots.len() {
            self.grow(insts);
        }
    }

    fn grow(&mut self, insts: &[Inst]) {
        let mut filled = std::mem::take(&mut self.filled);
        let wider = vec![EMPTY; 2 * self.slots.len()];
        let old = std::mem::replace(&mut self.slots, wider);
        // In the order in which they came: the last ones must be the first to go.
        for slot in &mut filled {
            let value = old[*slot as usize];
            let free = self.find(&Computed::of(&insts[value as usize]), insts);
            let free = free.expect_err("instructions of a table differ");
            self.slots[free] = value;
            *slot = free as u32;
        }
        self.filled = filled;
    }

    /// Begins a block.
    pub(super) fn open(&mut self) {
        self.blocks.push(self.filled.len() as u32);
    }

    /// Ends a block: its instructions are no longer visible.
    pub(super) fn close(&mut self) {
        let first = self.blocks.pop().expect("a block is open") as usize;
        for slot in self.filled.drain(first..) {
            self.slots[slot as usize] = EMPTY;
        }
    }

    /// The number of open blocks.
    pub(super) fn open_blocks(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::*;
    use crate::compiler::ir::Ty;

    #[test]
    fn blocks_see_what_is_around_them_and_nothing_after_their_end() {
        let mut random = 1u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % limit
        };
        for _ in 0..200 {
            let mut known = KnownInsts::with_capacity(1);
            let mut insts: Vec<Inst> = Vec::new();
            // For each block what it has added; the outermost never ends.
            let mut blocks: Vec<FxHashMap<(u64, usize), u32>> = vec![FxHashMap::default()];
            for _ in 0..below(600) {
                match below(8) {
                    0 => {
                        known.open();
                        blocks.push(FxHashMap::default());
                    }
                    1 if blocks.len() > 1 => {
                        known.close();
                        blocks.pop();
                    }
                    _ => {
                        let (bits, elem) = (below(150), below(2) as usize);
                        let computed = Computed {
                            op: Op::Const(bits),
                            elem: [Elem::I32, Elem::F32][elem],
                            args: [Val::NONE; 3],
                        };
                        let want = blocks.iter().find_map(|block| block.get(&(bits, elem)).copied());
                        match known.find(&computed, &insts) {
                            Ok(value) => assert_eq!(Some(value.0), want),
                            Err(slot) => {
                                assert_eq!(want, None);
                                let value = insts.len() as u32;
                                let Computed { op, elem: of, args } = computed;
                                insts.push(Inst { op, ty: Ty::scalar(of), args });
                                known.insert(slot, Val(value), &insts);
                                blocks.last_mut().unwrap().insert((bits, elem), value);
                            }
                        }
                    }
                }
            }
        }
    }
}
