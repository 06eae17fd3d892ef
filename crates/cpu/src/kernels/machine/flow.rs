//! Programs with loops and branches: how they are put together, and how they run.

use defn_core::backend::Poll;
use defn_core::{DType, Result};

use super::action::{self, Instruction, Role};
use super::{List, Machine, Register, Registers, fuse, steady};

/// Instructions between two looks at whether to stop.
const BATCH: usize = 1 << 19;

/// What is done at once.
#[derive(Debug)]
pub(crate) enum Node {
    /// Instructions one after the other.
    Straight(Vec<Instruction>),
    /// Something else, by its number. It is told which registers it reads.
    Call(usize, Vec<u8>),
    /// Steps over and over.
    Loop(Box<Loop>),
    /// One of several lists: that of the first register that is not zero, else the last.
    Branches(Vec<(Option<u8>, Vec<Node>)>),
}

/// Steps that run as long as a register is not zero.
#[derive(Debug)]
pub(crate) enum Loop {
    /// Instructions alone: those before the first trip, whose last one tests, and those of a trip with the test at the
    /// end.
    Straight { before: Vec<Instruction>, trip: Vec<Instruction> },
    /// Others: `cond`, whose register `test` says whether `body` runs and all comes again. A trip takes the time of
    /// so many instructions beside the loops in it.
    Any { cond: Vec<Node>, test: u8, body: Vec<Node>, weight: usize },
}

/// A program that is ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    nodes: Vec<Node>,
    words: Registers,
}

impl Register {
    /// Where it is among the registers.
    pub(crate) fn place(self) -> usize {
        usize::from(self.at)
    }
}

impl Machine {
    /// Begins a list within the last one. One that `repeats` may run several times or not at all.
    pub(crate) fn open(&mut self, repeats: bool) {
        self.lists.push(List { nodes: Vec::new(), repeats });
    }

    /// Ends the last list that was begun.
    pub(crate) fn close(&mut self) -> Vec<Node> {
        self.lists.pop().expect("a list is open").nodes
    }

    /// The register in the innermost list, where it changes with each time that this runs.
    pub(crate) fn here(&self, register: Register) -> Register {
        Register { level: self.top(), ..register }
    }

    /// A register that nothing has written yet.
    pub(crate) fn fresh(&mut self, dtype: DType) -> Option<Register> {
        self.take(dtype, self.top())
    }

    /// A register for an address that is known before the program runs.
    pub(crate) fn address(&mut self) -> Option<Register> {
        self.take(DType::U64, 0)
    }

    /// A register that holds a number of bytes, or of positions.
    pub(crate) fn number(&mut self, number: usize) -> Option<Register> {
        let register = self.take(DType::U64, 0)?;
        self.words[register.place()] = number as u64;
        Some(register)
    }

    /// Adds an instruction to the innermost list that writes a register there is.
    fn fixed(&mut self, run: action::Action, role: Role, inputs: &[u8], outputs: &[u8], dtype: DType) {
        self.add(self.top(), Instruction::new(run, role, inputs, outputs, dtype));
    }

    /// Writes one register into another.
    pub(crate) fn set(&mut self, to: Register, from: Register) {
        self.fixed(action::copy, Role::Pure, &[from.at], &[to.at], to.dtype);
    }

    /// Exchanges two registers.
    pub(crate) fn swap(&mut self, a: Register, b: Register) {
        self.fixed(action::swap, Role::Fixed, &[a.at, b.at], &[a.at, b.at], a.dtype);
    }

    /// Writes an element of a type where an address says.
    pub(crate) fn store(&mut self, address: Register, x: Register) {
        self.fixed(action::store(x.dtype), Role::Fixed, &[address.at, x.at], &[], x.dtype);
    }

    /// Reads an element of a type where an address says; of loops in which the address is the same it is moved out.
    pub(crate) fn load(&mut self, address: Register, dtype: DType) -> Option<Register> {
        if dtype.is_complex() {
            return None;
        }
        self.push_as(action::load(dtype), Role::Fixed, &[address], dtype, |_| {})
    }

    /// An address so many steps of `step` bytes on as an integer says, moved into `0..=room`.
    pub(crate) fn advance(
        &mut self,
        from: Register,
        position: Register,
        room: usize,
        step: usize,
    ) -> Option<Register> {
        let (room, step) = (self.number(room)?, self.number(step)?);
        let signed = position.dtype;
        let run = action::advance(signed);
        self.push_as(run, Role::Pure, &[position, room, step, from], DType::U64, |_| {})
    }

    /// A position along an axis of `size`, counted from the front: one below 0 counts from the end.
    pub(crate) fn counted(&mut self, position: Register, size: usize) -> Option<Register> {
        if position.dtype.kind() != defn_core::Kind::Signed {
            return Some(position);
        }
        let size = self.number(size)?;
        self.push_as(action::counted, Role::Pure, &[position, size], DType::S64, |_| {})
    }

    /// A register whose low bytes are an element as it lies in memory.
    pub(crate) fn encoded(&mut self, x: Register) -> Option<Register> {
        match action::encode(x.dtype) {
            Some(action) => self.push_as(action, Role::Pure, &[x], DType::U64, |made| made.dtype = x.dtype),
            None => Some(x),
        }
    }

    /// Whether an element counts as true: not zero where it does.
    pub(crate) fn predicate(&mut self, x: Register) -> Option<Register> {
        if !x.dtype.is_inexact() { Some(x) } else { self.truth(x) }
    }

    /// Has something else done here, which reads registers.
    pub(crate) fn call(&mut self, number: usize, reads: impl Iterator<Item = Register>) {
        let top = usize::from(self.top());
        self.lists[top].nodes.push(Node::Call(number, reads.map(|register| register.at).collect()));
    }

    /// Writes registers at the end of the innermost list, all at once; where it can be, what computes a new value
    /// writes the register itself.
    pub(crate) fn set_all(&mut self, pairs: &[(Register, Register)]) -> Option<()> {
        let top = usize::from(self.top());
        let mut moves: Vec<(u8, u8)> = pairs.iter().map(|(to, from)| (to.at, from.at)).collect();
        fuse::coalesce(&mut self.lists[top].nodes, &mut moves);
        moves.retain(|(to, from)| to != from);
        while !moves.is_empty() {
            // What no other move reads can be written.
            let free = moves.iter().position(|(to, _)| !moves.iter().any(|(_, from)| from == to));
            if let Some(at) = free {
                let (to, from) = moves.swap_remove(at);
                self.fixed(action::copy, Role::Pure, &[from], &[to], DType::U64);
                continue;
            }
            // Only circles are left.
            let held = self.fresh(DType::U64)?;
            let (_, from) = moves[0];
            self.fixed(action::copy, Role::Pure, &[from], &[held.at], DType::U64);
            moves.iter_mut().filter(|(_, other)| *other == from).for_each(|(_, other)| *other = held.at);
        }
        Some(())
    }

    /// Adds a loop of two lists: `test` is a register of the first, and says whether the second runs and all comes
    /// again.
    pub(crate) fn repeat(&mut self, cond: Vec<Node>, test: Register, body: Vec<Node>) {
        let top = usize::from(self.top());
        let (cond, body) = (straight(cond), straight(body));
        let made = match (cond, body) {
            (Ok(mut cond), Ok(body)) => {
                cond.push(Instruction::testing(test.at));
                let trip = fuse::fuse([body, cond.clone()].concat());
                Loop::Straight { before: fuse::fuse(cond), trip }
            }
            (cond, body) => {
                let nodes = |list: std::result::Result<_, _>| match list {
                    Ok(instructions) => vec![Node::Straight(fuse::fuse(instructions))],
                    Err(nodes) => nodes,
                };
                let (cond, body) = (nodes(cond), nodes(body));
                Loop::Any { weight: weight(&cond) + weight(&body) + 1, cond, test: test.at, body }
            }
        };
        self.lists[top].nodes.push(Node::Loop(Box::new(made)));
    }

    /// Adds branches: the list of the first register that is not zero runs, else the last, which has none.
    pub(crate) fn branch(&mut self, branches: Vec<(Option<Register>, Vec<Node>)>) {
        let top = usize::from(self.top());
        let branches = branches.into_iter().map(|(test, nodes)| (test.map(|test| test.at), nodes));
        self.lists[top].nodes.push(Node::Branches(branches.collect()));
    }

    /// The program, which begins with its outermost list.
    pub(crate) fn finish_program(mut self) -> Program {
        Program { nodes: self.close(), words: self.words }
    }
}

/// The instructions of a list that has nothing else.
fn straight(mut nodes: Vec<Node>) -> std::result::Result<Vec<Instruction>, Vec<Node>> {
    match (nodes.len(), nodes.first()) {
        (0, _) => Ok(Vec::new()),
        (1, Some(Node::Straight(_))) => match nodes.remove(0) {
            Node::Straight(list) => Ok(list),
            other @ (Node::Call(..) | Node::Loop(_) | Node::Branches(_)) => Err(vec![other]),
        },
        (_, _) => Err(nodes),
    }
}

/// How many instructions take the time of a list, beside that of its loops' trips.
fn weight(nodes: &[Node]) -> usize {
    /// What is done by others takes longer.
    const CALL: usize = 1 << 10;
    let each = nodes.iter().map(|node| match node {
        Node::Straight(list) => list.len(),
        Node::Call(..) => CALL,
        Node::Loop(_) => 1,
        Node::Branches(branches) => branches.iter().map(|(_, nodes)| weight(nodes)).max().unwrap_or(0),
    });
    each.sum()
}

/// What a run needs beside its registers.
pub(crate) struct Env<'a> {
    /// Does what a number stands for, with the registers that it reads.
    pub(crate) call: &'a mut dyn FnMut(usize, &[u8], &Registers),
    /// Says whether to stop.
    pub(crate) poll: Poll<'a>,
}

struct Running<'e, 'a> {
    env: &'e mut Env<'a>,
    /// Instructions until the next look at whether to stop.
    left: usize,
}

impl Program {
    /// The registers before the first instruction.
    pub(crate) fn start(&self) -> Registers {
        self.words
    }

    /// Runs all. What addresses there are in the registers must be as the program's maker said.
    ///
    /// # Errors
    /// What `poll` gives.
    pub(crate) fn run(&self, words: &mut Registers, env: &mut Env<'_>) -> Result<()> {
        Running { env, left: BATCH }.list(&self.nodes, words)
    }
}

impl Running<'_, '_> {
    fn list(&mut self, nodes: &[Node], words: &mut Registers) -> Result<()> {
        for node in nodes {
            match node {
                Node::Straight(list) => {
                    for instruction in list {
                        (instruction.run)(instruction, words);
                    }
                }
                Node::Call(number, registers) => (self.env.call)(*number, registers, words),
                Node::Loop(repeated) => self.repeat(repeated, words)?,
                Node::Branches(branches) => {
                    let taken = |test: &Option<u8>| test.is_none_or(|test| words[usize::from(test)] != 0);
                    let chosen = branches.iter().find(|(test, _)| taken(test));
                    let (_, nodes) = chosen.expect("the last branch has no test");
                    self.list(nodes, words)?;
                }
            }
        }
        Ok(())
    }

    /// Takes off what was done, and looks whether to stop where it is time to.
    fn spend(&mut self, instructions: usize) -> Result<()> {
        if instructions < self.left {
            self.left -= instructions;
            return Ok(());
        }
        self.left = BATCH;
        (self.env.poll)()
    }

    fn repeat(&mut self, repeated: &Loop, words: &mut Registers) -> Result<()> {
        match repeated {
            Loop::Straight { before, trip } => {
                if !go(before, words) {
                    return Ok(());
                }
                if let [step, test] = trip.as_slice()
                    && let Some(mut trips) = steady::trips(step, test, words)
                {
                    while trips > 0 {
                        let now = trips.min(self.left.div_ceil(trip.len()));
                        steady::run(step, test, now, words);
                        self.spend(now * trip.len())?;
                        trips -= now;
                    }
                    return Ok(());
                }
                let trips = |trips, words: &mut Registers| match trip.as_slice() {
                    [a] => cycle(&[*a], trips, words),
                    [a, b] => cycle(&[*a, *b], trips, words),
                    [a, b, c] => cycle(&[*a, *b, *c], trips, words),
                    [a, b, c, d] => cycle(&[*a, *b, *c, *d], trips, words),
                    [a, b, c, d, e] => cycle(&[*a, *b, *c, *d, *e], trips, words),
                    [a, b, c, d, e, f] => cycle(&[*a, *b, *c, *d, *e, *f], trips, words),
                    longer => (0..trips).find(|_| !go(longer, words)),
                };
                loop {
                    let most = self.left.div_ceil(trip.len());
                    match trips(most, words) {
                        Some(done) => return self.spend(done * trip.len()),
                        None => self.spend(most * trip.len())?,
                    }
                }
            }
            Loop::Any { cond, test, body, weight } => loop {
                self.list(cond, words)?;
                if words[usize::from(*test)] == 0 {
                    return Ok(());
                }
                self.list(body, words)?;
                self.spend(*weight)?;
            },
        }
    }
}

/// Runs instructions until one says that the program may not go on.
#[inline(always)]
fn go(list: &[Instruction], words: &mut Registers) -> bool {
    list.iter().all(|instruction| (instruction.run)(instruction, words))
}

/// Runs a few instructions so many times: each has a call of its own, which the processor foresees. Before which trip
/// it ended, if it did.
#[inline(never)]
fn cycle<const N: usize>(list: &[Instruction; N], trips: usize, words: &mut Registers) -> Option<usize> {
    (0..trips).find(|_| !go(list, words))
}
