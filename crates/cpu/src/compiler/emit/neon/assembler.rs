//! The words of a function, its labels and its literals.

use super::words as w;
use super::words::Condition;

/// What of a jump or a load is known only at the end.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// A label, in the 19 bits of a conditional jump.
    Near(usize),
    /// A label, in the 26 bits of a jump.
    Far(usize),
    /// A literal.
    Literal(usize),
}

/// Words, in order.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    words: Vec<u32>,
    /// Where each label is.
    labels: Vec<Option<usize>>,
    /// The words that lack a distance.
    goals: Vec<(usize, Goal)>,
    literals: Vec<[u8; 16]>,
    /// Whether the function is too large for conditional jumps and loads of literals, which reach 1 MiB.
    is_large: bool,
}

impl Assembler {
    pub(super) fn new(labels: u32, is_large: bool) -> Assembler {
        Assembler { labels: vec![None; labels as usize], is_large, ..Assembler::default() }
    }

    pub(super) fn push(&mut self, word: u32) {
        self.words.push(word);
    }

    /// A new label.
    pub(super) fn label(&mut self) -> u32 {
        self.labels.push(None);
        self.labels.len() as u32 - 1
    }

    /// Puts a label here.
    pub(super) fn bind(&mut self, label: u32) {
        self.labels[label as usize] = Some(self.words.len());
    }

    fn push_goal(&mut self, word: u32, goal: Goal) {
        self.goals.push((self.words.len(), goal));
        self.words.push(word);
    }

    /// Jumps to a label.
    pub(super) fn jump(&mut self, label: u32) {
        self.push_goal(w::b(0), Goal::Far(label as usize));
    }

    /// Jumps to a label by the word of a conditional jump; `inverse` is the word that jumps where this one
    /// does not.
    fn jump_by(&mut self, word: u32, inverse: u32, label: u32) {
        if self.is_large {
            self.push(w::far(inverse, 2));
            self.jump(label);
        } else {
            self.push_goal(word, Goal::Near(label as usize));
        }
    }

    /// Jumps if the last comparison says so.
    pub(super) fn jump_if(&mut self, condition: Condition, label: u32) {
        self.jump_by(w::b_if(condition), w::b_if(condition.inverse()), label);
    }

    /// Jumps if all 64 bits are zero.
    pub(super) fn jump_if_zero(&mut self, reg: u8, label: u32) {
        self.jump_by(w::cbz(reg), w::cbnz(reg), label);
    }

    /// Jumps if the low 32 bits are zero.
    pub(super) fn jump_if_low_zero(&mut self, reg: u8, label: u32) {
        self.jump_by(w::cbz_w(reg), w::cbnz_w(reg), label);
    }

    /// Jumps if the low 32 bits are not zero.
    pub(super) fn jump_unless_low_zero(&mut self, reg: u8, label: u32) {
        self.jump_by(w::cbnz_w(reg), w::cbz_w(reg), label);
    }

    /// Loads 16 bytes.
    pub(super) fn load_literal(&mut self, to: u8, literal: [u8; 16]) {
        if self.is_large {
            // The literal is right here, and is jumped over.
            self.push(w::far(w::LDR_Q_LITERAL, 2) | u32::from(to));
            self.push(w::b(5));
            let words =
                literal.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
            self.words.extend(words);
            return;
        }
        let known = self.literals.iter().position(|other| *other == literal);
        let at = known.unwrap_or_else(|| {
            self.literals.push(literal);
            self.literals.len() - 1
        });
        self.push_goal(w::LDR_Q_LITERAL | u32::from(to), Goal::Literal(at));
    }

    /// The bytes of the function with its literals. None if something is out of reach.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        let first_literal = self.words.len().next_multiple_of(4);
        for (at, goal) in std::mem::take(&mut self.goals) {
            let (to, bits) = match goal {
                Goal::Near(label) => (self.labels[label].expect("every label has a place"), 19),
                Goal::Far(label) => (self.labels[label].expect("every label has a place"), 26),
                Goal::Literal(literal) => (first_literal + 4 * literal, 19),
            };
            let distance = i32::try_from(to as i64 - at as i64).ok()?;
            if !(-(1 << (bits - 1))..1 << (bits - 1)).contains(&distance) {
                return None;
            }
            self.words[at] = match goal {
                Goal::Near(_) | Goal::Literal(_) => w::far(self.words[at], distance),
                Goal::Far(_) => w::b(distance),
            };
        }
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !self.literals.is_empty() {
            bytes.resize(4 * first_literal, 0);
            bytes.extend(self.literals.iter().flatten());
        }
        Some(bytes)
    }
}
