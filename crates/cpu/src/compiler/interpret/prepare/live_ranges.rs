//! Where blocks end, and how long vectors live.

use super::super::super::ir::{Function, Op, Val};

/// No value, or no position.
pub(super) const END: u32 = u32::MAX;

/// A loop, or a row, which is one of blocks.
struct Cycle {
    /// The loop around it.
    parent: u32,
    /// Its last instruction.
    end: u32,
}

/// Where blocks end and how long vectors live: these fields of [`Prepare`](super::Prepare).
pub(super) struct LiveRanges {
    pub(super) ends: Vec<u32>,
    pub(super) last: Vec<u32>,
    pub(super) writes: Vec<u32>,
    pub(super) dead: Vec<u32>,
    pub(super) next: Vec<u32>,
}

impl LiveRanges {
    pub(super) fn new(function: &Function) -> LiveRanges {
        let count = function.insts.len();
        let (mut ends, mut cycles) = (vec![END; count], Vec::new());
        // The loop that each instruction is in, and the blocks that are open.
        let mut within = vec![END; count];
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut now = END;
        for (at, inst) in function.insts.iter().enumerate() {
            let end = at as u32;
            within[at] = now;
            #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are in blocks")]
            match inst.op {
                Op::Loop | Op::Lanes => {
                    open.push((end, now));
                    cycles.push(Cycle { parent: now, end });
                    now = cycles.len() as u32 - 1;
                }
                Op::If => open.push((end, now)),
                Op::Else => {
                    let (begin, _) = open.pop().expect("an if is open");
                    ends[begin as usize] = end;
                    open.push((end, now));
                }
                Op::EndLoop(_) | Op::EndLanes | Op::EndIf(_) => {
                    let (begin, outer) = open.pop().expect("a block is open");
                    ends[begin as usize] = end;
                    if now != outer {
                        cycles[now as usize].end = end;
                        now = outer;
                    }
                }
                // It is older than its loop, and alive behind it.
                Op::Carry => within[at] = cycles[now as usize].parent,
                _ => {}
            }
        }
        let mut last: Vec<u32> = (0..count as u32).collect();
        let mut read = |value: Val, at: u32, mut cycle: u32| {
            if value.is_some() && function.ty(value).is_vector {
                let mut at = at;
                while cycle != within[value.index()] {
                    at = cycles[cycle as usize].end;
                    cycle = cycles[cycle as usize].parent;
                }
                let last = &mut last[value.index()];
                *last = at.max(*last);
            }
        };
        for (at, inst) in function.insts.iter().enumerate() {
            // Sides of a condition and what a loop carries are read where the block ends, which is before the
            // last position that they are alive at here, or that position itself.
            inst.args.iter().for_each(|&value| read(value, at as u32, within[at]));
            if let Op::EndLoop(list) = inst.op {
                for &(carry, next) in function.list(list) {
                    read(carry, at as u32, within[carry.index()]);
                    read(next, at as u32, within[at]);
                }
            }
        }
        let (mut dead, mut next) = (vec![END; count], vec![END; count]);
        // A store has the type of what it stores, but no value.
        let is_vector = |value: &Val| {
            let inst = function.inst(*value);
            if let Op::Store(_) = inst.op { false } else { inst.ty.is_vector }
        };
        for value in function.values().filter(is_vector) {
            let list = &mut dead[last[value.index()] as usize];
            next[value.index()] = std::mem::replace(list, value.0);
        }
        let mut writes = vec![END; count];
        let mut write = END;
        for (at, inst) in function.insts.iter().enumerate().rev() {
            writes[at] = write;
            if let Op::Store(_) | Op::Call(_) = inst.op {
                write = at as u32;
            }
        }
        LiveRanges { ends, last, writes, dead, next }
    }
}
