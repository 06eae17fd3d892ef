//! Nests that go through both halves of their elements at once: the two words of a block of Threefry are random numbers
//! of either (`random`).

use super::build::{NestBuilder, Position};
use super::domain::{Domain, Sizes};
use super::reads::Reads;
use super::shape::NestKind;
use super::short::LoadedValues;
use crate::compiler::ir::{Op, Val};
use crate::kernels::StridedView;

/// The least elements of a row whose halves are gone through at once.
const MIN_ROW: usize = 16;

/// The axes of a domain with `sizes` if its halves are gone through at once: one, or behind the first those of a half.
/// None if a half has not the same axes as the other, or its rows are short.
pub(super) fn paired_sizes(
    reads: &Reads,
    domain: &Domain,
    written: [Option<&StridedView>; 2],
    sizes: &Sizes,
) -> Option<Sizes> {
    let elements = domain.elements();
    if domain.reduced > 1 || !domain.is_in_order() {
        return None;
    }
    let paired = match sizes.len() {
        1 => sizes.clone(),
        _ if elements.is_multiple_of(2) => reads.sizes(domain, None, written, Some(elements / 2))?,
        _ => return None,
    };
    (paired[paired.len() - 1] >= MIN_ROW).then_some(paired)
}

impl NestBuilder<'_> {
    /// All elements, or those of the part of a row of the first half that begins at an argument and has as many
    /// elements as another says, and those as far into the second half. If there is an odd number of elements, the last
    /// one of the first half has nothing beside it.
    pub(super) fn pairs(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let stored = self.stored_of(0);
        let length = self.shape.lanes_steps(self.sizes);
        let (begin, count) = match part {
            Some((begin, count)) => (Some(begin), count),
            None => (None, self.e.b.index(length as i64)),
        };
        if self.sizes.len() > 1 || self.sizes[0].is_multiple_of(2) {
            return self.each_pair((begin, count), &stored, &[false, true]);
        }
        let begin = begin.unwrap_or_else(|| self.e.b.index(0));
        let last = self.e.b.index(length as i64 - 1);
        let left = self.e.b.sub(last, begin);
        let paired = self.e.b.op(Op::Min, [count, left]);
        self.each_pair((Some(begin), paired), &stored, &[false, true])?;
        let unpaired = self.e.b.sub(count, paired);
        self.is_unpaired = true;
        self.each_pair((Some(last), unpaired), &stored, &[false])
    }

    fn each_pair(&mut self, part: (Option<Val>, Val), stored: &[usize], halves: &[bool]) -> Option<()> {
        self.each_drawn(part, halves, &mut |builder, halves| builder.store_pairs(stored, halves))
    }

    /// Computes nodes for an element of each half, and then stores them: a result may lie in an operand's memory.
    fn store_pairs(&mut self, stored: &[usize], halves: &[bool]) -> Option<()> {
        let mut known = [LoadedValues::default(), LoadedValues::default()];
        let mut elements = Vec::new();
        for &node in stored {
            for &is_second in halves {
                self.set_half(is_second);
                let half = usize::from(is_second);
                (self.values, self.loaded) = std::mem::take(&mut known[half]);
                let element = self.element(node);
                known[half] = (std::mem::take(&mut self.values), std::mem::take(&mut self.loaded));
                for (input, element) in std::mem::take(&mut self.loaded_of_rows) {
                    known.iter_mut().zip(element).for_each(|(known, element)| {
                        known.1.insert(input, element);
                    });
                }
                elements.push((node, is_second, element?));
            }
        }
        for (node, is_second, element) in elements {
            self.set_half(is_second);
            self.store_element(node, element);
        }
        self.set_half(false);
        Some(())
    }

    /// Goes to the elements of a half.
    pub(super) fn set_half(&mut self, is_second: bool) {
        self.is_second_half = is_second;
        if self.shape.kind != NestKind::Pairs {
            return;
        }
        let offset = if is_second { self.shape.half as i64 } else { 0 };
        self.positions[0] = Position { offset, ..Position::default() };
    }
}
