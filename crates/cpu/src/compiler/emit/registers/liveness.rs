//! Where values are defined, used, and needed for the last time.

use super::super::mir::{Class, Code, ListId, Op, Part, Reg};
use super::super::{Limits, mask_class};

/// No position.
const NEVER: u32 = u32::MAX;

/// What the allocator asks about the future of values.
pub(super) struct Liveness {
    /// For each register the position of the instruction that defines it.
    definitions: Vec<u32>,
    /// For each register the last position that needs its value; the end of a loop that it is needed in throughout.
    ends: Vec<u32>,
    /// For what a loop carries: the last position of a trip that needs it, and the end of the loop. Between both there
    /// is no value.
    gaps: Vec<Option<(u32, u32)>>,
    /// For the next value of what a loop carries: what it becomes.
    carries: Vec<Reg>,
    /// The uses of all registers, in order, and where those of each begin.
    uses: Vec<u32>,
    starts: Vec<u32>,
    /// By the position of a `Loop`.
    loops: Vec<LoopInfo>,
    loop_at: Vec<u32>,
    /// For `Else` and what leaves a loop: the position of the end.
    ends_of_blocks: Vec<u32>,
}

struct LoopInfo {
    start: u32,
    end: u32,
    /// The most values of each class that are defined in the loop and live at the same time.
    pressure: [usize; 3],
    /// The constants and numbers that it uses, with the number of their uses.
    constants: Vec<(u32, Reg)>,
}

impl Liveness {
    pub(super) fn new(code: &Code, limits: &Limits) -> Liveness {
        let (count, len) = (code.classes.len(), code.insts.len());
        let mut this = Liveness {
            definitions: vec![NEVER; count],
            ends: vec![0; count],
            gaps: vec![None; count],
            carries: vec![Reg::NONE; count],
            uses: Vec::new(),
            starts: vec![0; count + 1],
            loops: Vec::new(),
            loop_at: vec![NEVER; len],
            ends_of_blocks: vec![NEVER; len],
        };
        this.blocks(code);
        let mut pairs: Vec<(Reg, u32)> = Vec::with_capacity(2 * len);
        for at in 0..len {
            uses_of(code, at, |reg| pairs.push((reg, at as u32)));
            if let Op::EndIf(list) = code.insts[at].op {
                let other = this.ends_of_blocks[at];
                code.list(list).chunks(3).for_each(|triple| pairs.push((triple[1], other)));
            }
        }
        for &(reg, _) in &pairs {
            this.starts[reg.index() + 1] += 1;
        }
        for at in 1..=count {
            this.starts[at] += this.starts[at - 1];
        }
        let mut next = this.starts.clone();
        this.uses = vec![0; pairs.len()];
        for &(reg, at) in &pairs {
            this.uses[next[reg.index()] as usize] = at;
            next[reg.index()] += 1;
        }
        for at in 0..count {
            let range = this.starts[at] as usize..this.starts[at + 1] as usize;
            this.uses[range].sort_unstable();
        }
        this.extend(code, &pairs);
        this.measure(code, limits);
        this
    }

    /// Finds blocks, definitions, and what becomes what.
    fn blocks(&mut self, code: &Code) {
        let mut open: Vec<(u32, Vec<u32>)> = Vec::new();
        for (at, inst) in code.insts.iter().enumerate() {
            let position = at as u32;
            if inst.dst.is_some() {
                self.definitions[inst.dst.index()] = position;
                self.ends[inst.dst.index()] = position;
            }
            #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are in blocks")]
            match inst.op {
                Op::Loop(list) => {
                    self.define_each(code, list, 2, position);
                    open.push((position, Vec::new()));
                }
                Op::EndLoop(list, _) | Op::EndLoopAlways(list) => {
                    let (start, leaves) = open.pop().expect("a loop is open");
                    self.loop_at[start as usize] = self.loops.len() as u32;
                    self.loops.push(LoopInfo {
                        start,
                        end: position,
                        pressure: [0; 3],
                        constants: Vec::new(),
                    });
                    leaves.iter().for_each(|&leave| self.ends_of_blocks[leave as usize] = position);
                    for pair in code.list(list).chunks(2) {
                        self.carries[pair[1].index()] = pair[0];
                    }
                }
                Op::While | Op::WhileGeneral(_) => {
                    open.last_mut().expect("a loop is open").1.push(position);
                }
                Op::If | Op::IfGeneral(_) => open.push((position, Vec::new())),
                Op::Else => open.last_mut().expect("a condition is open").1.push(position),
                Op::EndIf(list) => {
                    let (_, other) = open.pop().expect("a condition is open");
                    self.ends_of_blocks[other[0] as usize] = position;
                    // The values of the first side are needed until the second begins.
                    self.ends_of_blocks[at] = other[0];
                    self.define_each(code, list, 3, position);
                }
                _ => {}
            }
        }
        // What becomes what a loop carries is best computed in its register from the first: several elements are added
        // to an accumulator in one trip.
        for inst in code.insts.iter().rev() {
            let (from, to) = (inst.src[0], inst.dst);
            if to.is_some() && from.is_some() && code.class(from) == code.class(to) {
                let carry = self.carries[to.index()];
                let own = &mut self.carries[from.index()];
                if carry.is_some() && !own.is_some() {
                    *own = carry;
                }
            }
        }
        self.loops.sort_unstable_by_key(|info| info.start);
        for (index, info) in self.loops.iter().enumerate() {
            self.loop_at[info.start as usize] = index as u32;
        }
    }

    fn define_each(&mut self, code: &Code, list: ListId, step: usize, position: u32) {
        for group in code.list(list).chunks(step) {
            self.definitions[group[0].index()] = position;
            self.ends[group[0].index()] = position;
        }
    }

    /// Finds the last positions that need values.
    fn extend(&mut self, code: &Code, pairs: &[(Reg, u32)]) {
        // The loops around each use, innermost last.
        let mut open: Vec<u32> = Vec::new();
        let mut next_loop = 0;
        let mut sorted: Vec<(u32, Reg)> = pairs.iter().map(|&(reg, at)| (at, reg)).collect();
        sorted.sort_unstable();
        let mut in_trip: Vec<u32> = vec![0; self.ends.len()];
        for (at, reg) in sorted {
            while next_loop < self.loops.len() && self.loops[next_loop].start < at {
                open.push(next_loop as u32);
                next_loop += 1;
            }
            open.retain(|&index| self.loops[index as usize].end >= at);
            let defined = self.definitions[reg.index()];
            // The outermost loop that the definition is not in.
            let through =
                open.iter().map(|&index| &self.loops[index as usize]).find(|info| info.start > defined);
            let needed = through.map_or(at, |info| info.end);
            let end = &mut self.ends[reg.index()];
            *end = (*end).max(needed);
            if let Some(own) = self.own_loop(code, reg)
                && needed <= own
            {
                in_trip[reg.index()] = in_trip[reg.index()].max(needed);
            }
        }
        for at in 0..self.loops.len() {
            let (start, end) = (self.loops[at].start, self.loops[at].end);
            let Op::Loop(list) = code.insts[start as usize].op else { unreachable!("a loop begins") };
            for pair in code.list(list).chunks(2) {
                let carry = pair[0];
                let mut last = in_trip[carry.index()].max(start);
                if self.ends[carry.index()] > end {
                    // What leaves the loop needs it.
                    let leave = (start..end).rev().find(|&at| self.ends_of_blocks[at as usize] == end);
                    last = last.max(leave.unwrap_or(0));
                }
                // A use at the very end is one of the value that the trip began with.
                self.gaps[carry.index()] = Some((last, end));
                self.ends[carry.index()] = self.ends[carry.index()].max(end);
            }
        }
    }

    /// The end of the loop that carries a register.
    fn own_loop(&self, code: &Code, reg: Reg) -> Option<u32> {
        let defined = self.definitions[reg.index()] as usize;
        let Op::Loop(_) = code.insts[defined].op else { return None };
        Some(self.loops[self.loop_at[defined] as usize].end)
    }

    /// Counts what is live in loops.
    fn measure(&mut self, code: &Code, limits: &Limits) {
        if self.loops.is_empty() {
            return;
        }
        let len = code.insts.len();
        let class_of = |reg: usize| match code.classes[reg] {
            Class::Mask => mask_class(limits) as usize,
            class @ (Class::General | Class::Vector) => class as usize,
        };
        let mut change = vec![[0i32; 3]; len + 2];
        for reg in 0..self.ends.len() {
            let defined = self.definitions[reg];
            if defined == NEVER || code.insts[defined as usize].op.is_rematerialized() {
                continue;
            }
            let class = class_of(reg);
            let mut live = |from: u32, to: u32| {
                change[from as usize][class] += 1;
                change[to as usize][class] -= 1;
            };
            match self.gaps[reg] {
                Some((last, end)) => {
                    live(defined, last.max(defined + 1));
                    if self.ends[reg] > end {
                        live(end, self.ends[reg]);
                    }
                }
                None => live(defined, self.ends[reg].max(defined)),
            }
        }
        let mut live = [0i32; 3];
        let mut counts: Vec<[i32; 3]> = Vec::with_capacity(len);
        for change in &change[..len] {
            for class in 0..3 {
                live[class] += change[class];
            }
            counts.push(live);
        }
        for info in &mut self.loops {
            let (start, end) = (info.start as usize, info.end as usize);
            let before = if start == 0 { [0; 3] } else { counts[start - 1] };
            for class in 0..3 {
                // Values that end where the loop begins make room for what it carries.
                let Op::Loop(list) = code.insts[start].op else { unreachable!("a loop begins") };
                let carried = code.list(list).chunks(2).filter(|pair| class_of(pair[0].index()) == class);
                let through = (counts[start][class] - carried.count() as i32).min(before[class]);
                let most = counts[start..end].iter().map(|counts| counts[class]).max().unwrap_or(0);
                info.pressure[class] = usize::try_from(most - through).unwrap_or(0);
            }
        }
        for reg in 0..self.ends.len() {
            let defined = self.definitions[reg];
            if defined == NEVER || !code.insts[defined as usize].op.is_rematerialized() {
                continue;
            }
            let range = self.starts[reg] as usize..self.starts[reg + 1] as usize;
            for info in &mut self.loops {
                let uses = self.uses[range.clone()].iter();
                let count = uses.filter(|at| (info.start..=info.end).contains(at)).count();
                if count > 0 {
                    info.constants.push((count as u32, Reg(reg as u32)));
                }
            }
        }
        for info in &mut self.loops {
            info.constants.sort_unstable_by_key(|&(count, reg)| (std::cmp::Reverse(count), reg));
        }
    }

    pub(super) fn definition(&self, reg: Reg) -> usize {
        self.definitions[reg.index()] as usize
    }

    /// Whether a value is needed after a position, by what comes behind it or by the next trip of a loop.
    pub(super) fn lives_after(&self, reg: Reg, at: usize) -> bool {
        let at = at as u32;
        match self.gaps[reg.index()] {
            Some((last, end)) if at < end => last > at,
            Some(_) | None => self.ends[reg.index()] > at,
        }
    }

    /// The last position that needs a value.
    pub(super) fn end(&self, reg: Reg) -> usize {
        self.ends[reg.index()] as usize
    }

    /// What the next value of a loop becomes.
    pub(super) fn carry_of(&self, reg: Reg) -> Option<Reg> {
        Some(self.carries[reg.index()]).filter(|carry| carry.is_some())
    }

    /// The position of the next use after one; far for a value that is only needed by a next trip.
    pub(super) fn next_use(&self, reg: Reg, at: usize) -> usize {
        let uses = self.uses_of(reg);
        let next = uses.partition_point(|&use_at| use_at as usize <= at);
        uses.get(next).map_or(usize::MAX / 2, |&use_at| use_at as usize)
    }

    fn uses_of(&self, reg: Reg) -> &[u32] {
        &self.uses[self.starts[reg.index()] as usize..self.starts[reg.index() + 1] as usize]
    }

    fn info(&self, at: usize) -> &LoopInfo {
        &self.loops[self.loop_at[at] as usize]
    }

    /// The most values of a class that are defined in the loop at a position and live at the same time.
    pub(super) fn pressure(&self, at: usize, class: Class) -> usize {
        self.info(at).pressure[class as usize]
    }

    /// How often the loop at a position uses a value.
    pub(super) fn uses_in_loop(&self, reg: Reg, at: usize) -> usize {
        let info = self.info(at);
        let uses = self.uses_of(reg);
        let below = |limit: u32| uses.partition_point(|&use_at| use_at <= limit);
        below(info.end) - below(info.start)
    }

    /// The constants of a class that the loop at a position uses most.
    pub(super) fn constants_of_loop(&self, code: &Code, at: usize, class: Class, most: usize) -> Vec<Reg> {
        let constants = self.info(at).constants.iter().map(|(_, reg)| *reg);
        constants.filter(|reg| code.class(*reg) == class).take(most).collect()
    }

    /// The end of the block that an `Else` divides, or that a `While` leaves.
    pub(super) fn end_of_block(&self, at: usize) -> usize {
        self.ends_of_blocks[at] as usize
    }
}

/// Calls `work` with every register that an instruction reads.
pub(super) fn uses_of(code: &Code, at: usize, mut work: impl FnMut(Reg)) {
    let inst = &code.insts[at];
    for reg in inst.src.into_iter().chain([inst.mem.base, inst.mem.index]) {
        if reg.is_some() {
            work(reg);
        }
    }
    match inst.part {
        Part::All => {}
        Part::Count(reg) | Part::Mask(reg) => work(reg),
    }
    if let Op::Loop(list) | Op::EndLoop(list, _) | Op::EndLoopAlways(list) = inst.op {
        code.list(list).chunks(2).for_each(|pair| work(pair[1]));
    } else if let Op::EndIf(list) = inst.op {
        // The values of the first side are used where it ends.
        code.list(list).chunks(3).for_each(|triple| work(triple[2]));
    } else if let Op::Call(_, list) = inst.op {
        code.list(list).iter().for_each(|&reg| work(reg));
    }
}
