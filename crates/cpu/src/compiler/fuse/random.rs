//! Random numbers as nodes of nests: each element is computed where it is read, from a key and its position.
//!
//! A block of Threefry makes two words of two counters. For elements of at most 32 bits the words of a block are those
//! of an element of the first half and of the element as far into the second half. Nests of elements go through both
//! halves at once (`pairs`), so that both words of a block are used. Others compute the block of each element.

use defn_core::Scalar;
use defn_core::graph::{Graph, Node};
use defn_core::op::Op as GraphOp;
use smallvec::SmallVec;

use super::build::{NestBuilder, NodeRole};
use super::domain_box::DomainBox;
use super::elements::{Counter, Element};
use super::reads::{Reads, domain_of};
use super::shape::NestKind;
use crate::compiler::fusion_groups::{FusionGroups, Random, random};
use crate::compiler::ir::{Access, Cmp, Conv, Elem, Function, Inst, Op, Val};
use crate::compiler::views::ValueView;
use crate::kernels::StridedView;

/// A number that is the same for all elements, or one for each.
#[derive(Debug)]
pub(super) enum RandomOperand {
    Constant(Scalar),
    /// An input of the nest.
    Input(usize),
}

/// What the elements of a node are computed from.
#[derive(Debug)]
pub(super) struct RandomInputs {
    /// The words of the key, and behind them the counters or the bound.
    sources: SmallVec<[RandomOperand; 4]>,
    /// The positions of its elements.
    positions: StridedView,
}

/// The words that an element is made of.
type RandomWords = SmallVec<[Val; 4]>;

/// The elements whose words are drawn before anything is made of them: they stay in the first cache.
const DRAW_BLOCK: usize = 512;

/// How many words an element of a node is made of.
fn words_of(node: &Node) -> usize {
    let bits = node.outputs[0].dtype.bits();
    match random(&node.op) {
        Some(Random::Below) if bits > 32 => 4,
        Some(Random::Below) => 2,
        Some(Random::Bits | Random::Uniform) if bits > 32 => 2,
        Some(Random::Threefry | Random::Bits | Random::Uniform) | None => 1,
    }
}

/// Whether it pays to draw the words of random numbers before what is made of them: vectors have as many lanes as the
/// widest elements in a loop fit in a register, and words are narrow.
pub(super) fn draws_before(function: &Function) -> bool {
    let is_wide = |inst: &Inst| inst.ty.is_vector && inst.ty.elem.bytes() > Elem::I32.bytes();
    function.insts.iter().any(is_wide)
}

/// Whether the two words of a block are elements of a node.
pub(in super::super) fn has_pairs(node: &Node) -> bool {
    random(&node.op).is_some_and(|random| match random {
        Random::Threefry => true,
        Random::Bits | Random::Uniform => node.outputs[0].dtype.bits() <= 32,
        Random::Below => false,
    })
}

impl Reads {
    /// Adds what a node of random numbers reads.
    pub(super) fn add_random(
        &mut self,
        graph: &Graph,
        fusion: &FusionGroups,
        position: usize,
        random: Random,
        (role, domain_box): (NodeRole, Option<&DomainBox>),
    ) -> Option<()> {
        let node = &graph.nodes()[position];
        let is_per_group = role == NodeRole::Rows && self.is_grouped;
        let sizes =
            domain_box.map_or_else(|| domain_of(graph, position, role), |domain_box| &domain_box.sizes);
        let mut sources = SmallVec::new();
        let mut add = |reads: &mut Reads, value_view: ValueView| -> Option<()> {
            sources.push(if let GraphOp::Constant(scalar) = &graph.node(value_view.base).op {
                RandomOperand::Constant(*scalar)
            } else {
                let strided = value_view.strided_view(sizes);
                let view = if is_per_group { strided } else { reads.domain.in_reduction_order(strided)? };
                RandomOperand::Input(reads.add((value_view.base, view, is_per_group)))
            });
            Some(())
        };
        let value_view = |operand: usize| fusion.view(graph, node.inputs[operand]);
        for word in 0..2 {
            add(self, value_view(0).at(word))?;
        }
        match random {
            Random::Threefry => {
                for row in 0..2 {
                    let value_view = value_view(1).fix_first_axis(row);
                    add(
                        self,
                        domain_box
                            .map_or_else(|| value_view.clone(), |domain_box| domain_box.of(&value_view)),
                    )?;
                }
            }
            Random::Below => add(self, value_view(1))?,
            Random::Bits | Random::Uniform => {}
        }
        let positions = match domain_box {
            Some(domain_box) => domain_box.iota_view(None),
            None => StridedView::strided(0, &[node.outputs[0].size()], &[1]),
        };
        let positions = if is_per_group { positions } else { self.domain.in_reduction_order(positions)? };
        self.iota.insert((position, is_per_group), positions.clone());
        self.random.insert(position, RandomInputs { sources, positions });
        Some(())
    }
}

impl NestBuilder<'_> {
    /// An element of a node of random numbers.
    pub(super) fn random(&mut self, position: usize, random: Random, role: NodeRole) -> Option<Element> {
        let graph = self.graph;
        let node = &graph.nodes()[position];
        let dtype = node.outputs[0].dtype;
        let words = match self.drawn.get(&(position, self.is_second_half)) {
            Some(&offset) => self.load_words(offset, words_of(node)),
            None => self.words(position, random, role),
        };
        Some(match (random, &words[..]) {
            (Random::Uniform, &[word]) => self.e.unit_of_word(word, dtype),
            (Random::Bits | Random::Threefry, &[word]) => self.e.bits_of_word(word, dtype),
            (Random::Uniform, &[high, low]) => self.e.unit_of_pair(high, low),
            (Random::Bits, &[high, low]) => Element::new(self.e.joined_words(high, low), dtype),
            (Random::Below, words) => {
                let bound = self.operand_of_random(position, 2, role);
                self.e.below(words, bound, dtype)
            }
            (Random::Threefry | Random::Bits | Random::Uniform, _) => unreachable!("the words of an element"),
        })
    }

    /// A number that random numbers are computed from.
    fn operand_of_random(&mut self, position: usize, at: usize, role: NodeRole) -> Val {
        let is_per_group = role == NodeRole::Rows && self.reads.is_grouped;
        // The key has two words.
        let dtype = self.graph.ty(self.graph.nodes()[position].inputs[at / 2]).dtype;
        match self.reads.random[&position].sources[at] {
            RandomOperand::Constant(scalar) => self.e.constant(scalar).value,
            RandomOperand::Input(input) => self.input(input, is_per_group, dtype).value,
        }
    }

    /// The words that an element is made of.
    fn words(&mut self, position: usize, random: Random, role: NodeRole) -> RandomWords {
        let (graph, reads) = (self.graph, self.reads);
        let node = &graph.nodes()[position];
        let count = node.outputs[0].size();
        let is_per_group = role == NodeRole::Rows && reads.is_grouped;
        let positions = &reads.random[&position].positions;
        let key = [0, 1].map(|at| self.operand_of_random(position, at, role));
        if has_pairs(node) {
            let given = (random == Random::Threefry)
                .then(|| [2, 3].map(|at| self.operand_of_random(position, at, role)));
            return RandomWords::from_slice(&[self.word_of_block(
                key,
                given,
                (positions, is_per_group),
                count,
            )]);
        }
        // They are those of one block, or of two: counters are numbers of elements apart.
        let (first, along) = self.count(positions, is_per_group, Elem::I32);
        let blocks: &[[usize; 2]] = if words_of(node) == 4 { &[[0, 2], [1, 3]] } else { &[[0, 1]] };
        let mut words = RandomWords::new();
        for block in blocks {
            let counters = block.map(|passed| {
                let passed = self.e.b.bits(Elem::I32, passed.wrapping_mul(count) as u64);
                Counter { first: self.e.b.add(first, passed), along }
            });
            words.extend(self.e.threefry(key, counters));
        }
        words
    }

    /// The word that an element is. Its block has the counters of the element and of that as far into the other half,
    /// or those that are given. Where there is an odd number of elements, the other counter of the last of the first
    /// half is 0.
    fn word_of_block(
        &mut self,
        key: [Val; 2],
        given: Option<[Val; 2]>,
        (positions, is_per_group): (&StridedView, bool),
        count: usize,
    ) -> Val {
        let (half, is_odd) = (count.div_ceil(2), !count.is_multiple_of(2));
        let is_paired = self.shape.kind == NestKind::Pairs;
        let given = given.map(|given| given.map(|first| Counter { first, along: None }));
        if is_paired {
            let second = usize::from(self.is_second_half);
            let mut access = self.access(0, positions, 1);
            access.offset -= (second * half) as i64;
            let (first, along) = self.count_of(access, Elem::I32);
            let far = self.e.b.bits(Elem::I32, half as u64);
            let other = if self.is_unpaired {
                Counter { first: self.e.b.bits(Elem::I32, 0), along: None }
            } else {
                Counter { first: self.e.b.add(first, far), along }
            };
            let counters = given.unwrap_or([Counter { first, along }, other]);
            return self.e.threefry(key, counters)[second];
        }
        let elem = if u32::try_from(count).is_ok() { Elem::I32 } else { Elem::I64 };
        let (first, along) = self.count(positions, is_per_group, elem);
        let at = along.map_or(first, |along| self.e.b.add(first, along));
        let far = self.e.b.bits(elem, half as u64);
        let is_second = self.e.b.compare(Cmp::LeU, far, at);
        let counters = given.unwrap_or_else(|| {
            let (before, behind) = (self.e.b.sub(at, far), self.e.b.add(at, far));
            let left = self.e.b.select(is_second, before, at);
            let mut right = self.e.b.select(is_second, at, behind);
            if is_odd {
                let [last, zero] = [half - 1, 0].map(|number| self.e.b.bits(elem, number as u64));
                let is_last = self.e.b.compare(Cmp::Eq, at, last);
                right = self.e.b.select(is_last, zero, right);
            }
            [left, right].map(|number| Counter {
                first: self.e.b.convert(Conv::Truncate, Elem::I32, number),
                along: None,
            })
        });
        let [left, right] = self.e.threefry(key, counters);
        self.e.b.op(Op::Select, [is_second, right, left])
    }

    /// Where words that were drawn before are: in the memory that each thread has, one after the other.
    fn words_access(&self, offset: usize, word: usize) -> Access {
        let offset = (offset + word * DRAW_BLOCK * Elem::I32.bytes()) as i64;
        let lane = Elem::I32.bytes() as i64;
        Access { buffer: self.scratch_buffer(), offset, terms: SmallVec::new(), lane, is_streaming: false }
    }

    fn load_words(&mut self, offset: usize, count: usize) -> RandomWords {
        let load = |word| {
            let access = self.words_access(offset, word);
            self.e.b.load(Elem::I32, access)
        };
        (0..count).map(load).collect()
    }

    /// Goes through a row, or the part of it that begins at one value and has as many elements as another says. If
    /// random words are drawn before what is made of them, that is done for a few elements at a time.
    pub(super) fn each_drawn(
        &mut self,
        (begin, count): (Option<Val>, Val),
        halves: &[bool],
        work: &mut dyn FnMut(&mut Self, &[bool]) -> Option<()>,
    ) -> Option<()> {
        if !self.draws_before {
            self.row_start = begin;
            self.e.b.begin_lanes(count);
            work(self, halves)?;
            self.e.b.end_lanes();
            return Some(());
        }
        let (zero, most) = (self.e.b.index(0), self.e.b.index(DRAW_BLOCK as i64));
        let (_, carried) = self.e.b.begin_loop(None, &[(zero, false)]);
        let done = carried[0];
        let is_left = self.e.b.compare(Cmp::Lt, done, count);
        self.e.b.while_(is_left);
        let left = self.e.b.sub(count, done);
        let extent = self.e.b.op(Op::Min, [left, most]);
        self.row_start = Some(begin.map_or(done, |begin| self.e.b.add(begin, done)));
        self.e.b.begin_lanes(extent);
        self.draw(halves);
        self.e.b.end_lanes();
        for half in halves.chunks(1) {
            self.e.b.begin_lanes(extent);
            work(self, half)?;
            self.e.b.end_lanes();
        }
        let next = self.e.b.add(done, extent);
        self.e.b.end_loop(&[(done, next)]);
        self.drawn.clear();
        Some(())
    }

    /// Draws the words of all random numbers.
    fn draw(&mut self, halves: &[bool]) {
        let graph = self.graph;
        let mut at = 0;
        for node in self.nodes_of(0, |role| role == NodeRole::Elements) {
            let Some(random) = random(&graph.nodes()[node].op) else { continue };
            for &is_second in halves {
                self.set_half(is_second);
                let words = self.words(node, random, NodeRole::Elements);
                self.drawn.insert((node, is_second), at);
                for (word, value) in words.iter().enumerate() {
                    let access = self.words_access(at, word);
                    self.e.b.store(*value, access);
                }
                at += words.len() * DRAW_BLOCK * Elem::I32.bytes();
            }
        }
        self.set_half(false);
        self.loaded.clear();
        self.loaded_of_rows.clear();
        self.scratch.bytes = self.scratch.bytes.max(at);
    }
}
