//! Cheap ops of f32 that are joined to chains.

use defn_core::DType;

use super::super::action::{self, Detail, Joined, With};
use super::{Draft, Made};
use crate::kernels::chain::Cheap;

/// Whether something is put aside in a chain.
fn has_aside(links: &[Joined]) -> bool {
    links.iter().any(|link| match link {
        Joined::Aside(_) => true,
        Joined::Op { .. } | Joined::Join(_) => false,
    })
}

impl Made {
    /// The op of a chain that it is if it is a cheap one of f32, of the operand at a place.
    fn link(&self, place: usize) -> Option<(Cheap, With)> {
        if self.dtype != DType::F32 || self.once {
            return None;
        }
        let [x, y, _] = self.instruction.operands;
        let one = |op, with| Some((op, with));
        match &self.instruction.detail {
            Detail::Binary(op) if x == y => one(Cheap::of(*op, false)?, With::Same),
            Detail::Binary(op) => one(Cheap::of(*op, place == 1)?, With::Each([y, x][place])),
            // For one of which that is the first operand, they lie the other way round.
            Detail::With(op, is_first) if place == 0 => one(Cheap::of(*op, *is_first)?, With::First(y)),
            Detail::With(..)
            | Detail::Chain(_)
            | Detail::None
            | Detail::Unary(..)
            | Detail::Log(_)
            | Detail::Input(..)
            | Detail::To(..)
            | Detail::Count { .. }
            | Detail::Bytes(_)
            | Detail::Runs { .. } => None,
        }
    }

    /// The operand and the ops of a chain that another goes on with.
    fn taken(&mut self) -> (u16, Vec<Joined>) {
        self.is_gone = true;
        match std::mem::replace(&mut self.instruction.detail, Detail::None) {
            Detail::Chain(links) => (self.instruction.operands[0], links.into_vec()),
            Detail::None
            | Detail::Unary(..)
            | Detail::Binary(_)
            | Detail::Log(_)
            | Detail::Input(..)
            | Detail::To(..)
            | Detail::Count { .. }
            | Detail::Bytes(_)
            | Detail::With(..)
            | Detail::Runs { .. } => unreachable!("a chain goes on"),
        }
    }
}

impl Draft {
    /// Does cheap ops at once of which each alone reads what the one before gives.
    pub(super) fn chain(&mut self) {
        let mut readers = vec![0_usize; self.made.len()];
        for made in &self.made {
            made.read().for_each(|x| readers[x] += 1);
        }
        // A result is needed itself.
        self.results.iter().for_each(|stored| readers[usize::from(stored.register)] += 3);
        for at in 0..self.made.len() {
            let made = &self.made[at];
            let [x, y, _] = made.instruction.operands;
            let both = if made.instruction.reads == 2 && x == y { 2 } else { 1 };
            // After the chain before that something was put aside in, of either operand, or the longest, else the op alone.
            let places = (0..made.instruction.reads.min(2)).filter_map(|place| {
                let link = made.link(place)?;
                let x = made.instruction.operands[place];
                let first = usize::from(x);
                let before = self.made[first].instruction.chained().filter(|_| readers[first] == both);
                Some((before.map_or((false, 0), |links| (has_aside(links), links.len())), x, link))
            });
            let Some((before, x, (op, with))) = places.rev().max_by_key(|(before, ..)| *before) else {
                continue;
            };
            let with = self.number(with);
            let (x, mut links) =
                if before.1 == 0 { (x, Vec::new()) } else { self.made[usize::from(x)].taken() };
            match with {
                // What another chain makes for this op alone is made while the first waits.
                With::Each(y) if before.1 > 0 && readers[usize::from(y)] == 1 && self.is_straight(y) => {
                    let (y, made) = self.made[usize::from(y)].taken();
                    links.push(Joined::Aside(y));
                    links.extend(made);
                    links.push(Joined::Join(op));
                }
                With::Each(_) | With::First(_) | With::Number(_) | With::Same => {
                    links.push(Joined::Op { op, with });
                }
            }
            let made = &mut self.made[at];
            made.instruction.run = action::chain;
            made.instruction.detail = Detail::Chain(links.into());
            made.instruction.operands = [x, 0, 0];
            made.instruction.reads = 1;
        }
    }

    /// Whether a chain makes a register, in which nothing is put aside.
    fn is_straight(&self, register: u16) -> bool {
        self.made[usize::from(register)].instruction.chained().is_some_and(|links| !has_aside(links))
    }

    /// A register of one number as that number.
    fn number(&self, with: With) -> With {
        match with {
            With::First(register) => match &self.made[usize::from(register)].instruction.detail {
                Detail::Bytes([a, b, c, d, ..]) => With::Number(f32::from_ne_bytes([*a, *b, *c, *d])),
                Detail::None
                | Detail::Unary(..)
                | Detail::Binary(_)
                | Detail::Log(_)
                | Detail::Input(..)
                | Detail::To(..)
                | Detail::Count { .. }
                | Detail::With(..)
                | Detail::Runs { .. }
                | Detail::Chain(_) => with,
            },
            With::Each(_) | With::Number(_) | With::Same => with,
        }
    }

    /// Leaves out numbers that nothing reads from a register.
    pub(super) fn drop_numbers(&mut self) {
        let mut is_read = vec![false; self.made.len()];
        for made in self.made.iter().filter(|made| !made.is_gone) {
            made.read().for_each(|x| is_read[x] = true);
        }
        for (made, is_read) in self.made.iter_mut().zip(is_read) {
            made.is_gone |= made.is_number() && !is_read;
        }
    }
}
