//! What reductions keep of the elements so far, and how two such states are joined.

use defn_core::graph::{Graph, Node};
use defn_core::op::{ArgOp, BinaryOp, Op as GraphOp, ReduceOp, TieBreak};
use defn_core::{Axis, DType, Kind};
use smallvec::SmallVec;

use super::build::{NestBuilder, NodeRole};
use super::domain::Domain;
use super::elements::{Element, computed};
use crate::compiler::ir::{Cmp, Conv, Elem, Op, Reduce, Val};
use crate::kernels::reduce::ReductionLayout;

/// A reduction of groups of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Reduction {
    /// Joins the elements.
    Of(ReduceOp),
    /// Finds the position of the greatest or the least element.
    Position(ArgOp, TieBreak),
}

impl Reduction {
    /// The reduction that a node is, and the axes that it reduces; None stands for all.
    pub(in super::super) fn of(op: &GraphOp) -> Option<(Reduction, Option<SmallVec<[Axis; 6]>>)> {
        if let GraphOp::Reduce { op, axes, keep_axes: _ } = op {
            return Some((Reduction::Of(*op), Some(axes.iter().copied().collect())));
        }
        if let GraphOp::ArgReduce { op, tie_break, axis, .. } = op {
            let axes = axis.map(|axis| SmallVec::from_slice(&[axis]));
            return Some((Reduction::Position(*op, *tie_break), axes));
        }
        None
    }

    /// The reduction that a node is, and its domain.
    pub(in super::super) fn with_domain(graph: &Graph, node: &Node) -> Option<(Reduction, Domain)> {
        let (reduction, axes) = Reduction::of(&node.op)?;
        let shape = &graph.ty(node.inputs[0]).shape;
        let axes = axes.unwrap_or_else(|| shape.axes().collect());
        Some((reduction, Domain::of_reduction(&ReductionLayout::new(shape.sizes(), &axes))))
    }
}

/// The state of a reduction in registers.
pub(super) type State = SmallVec<[Val; 4]>;

/// How two states are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// By an op of one part.
    One(Reduce, Elem),
    /// By sums of the parts of complex numbers.
    Sums(Elem),
    /// By a product of complex numbers.
    Product(DType),
    /// The more extreme element and its position, in integers of a type.
    Extreme { reduce: Reduce, elem: Elem, position: Elem, is_last: bool },
}

impl Merge {
    /// The types of the parts of a state.
    pub(super) fn parts(self) -> SmallVec<[Elem; 2]> {
        match self {
            Merge::One(_, elem) => SmallVec::from_slice(&[elem]),
            Merge::Sums(elem) => SmallVec::from_slice(&[elem; 2]),
            Merge::Product(dtype) => SmallVec::from_slice(&[computed(dtype); 2]),
            Merge::Extreme { elem, position, .. } => SmallVec::from_slice(&[elem, position]),
        }
    }

    /// The bytes of an element of the accumulator.
    pub(super) fn bytes(self) -> usize {
        match self {
            Merge::One(_, elem) | Merge::Extreme { elem, .. } => elem.bytes(),
            Merge::Sums(elem) => 2 * elem.bytes(),
            Merge::Product(dtype) => dtype.storage_bytes(),
        }
    }
}

impl NestBuilder<'_> {
    /// How a reduction joins.
    pub(super) fn merge_of(&self, node: usize) -> Merge {
        let (NodeRole::Reduction(reduction) | NodeRole::Across(reduction)) = self.role(node) else {
            unreachable!("it is a reduction")
        };
        let dtype = self.accumulation(node);
        let elem = if dtype.is_bool() { Elem::I8 } else { computed(dtype) };
        let is_unsigned = dtype.is_bool() || dtype.kind() == Kind::Unsigned;
        let greatest = if is_unsigned { Reduce::MaxU } else { Reduce::Max };
        let least = if is_unsigned { Reduce::MinU } else { Reduce::Min };
        let op = match reduction {
            Reduction::Of(op) => op,
            Reduction::Position(op, tie_break) => {
                let position = if self.reduced_size() <= i32::MAX as usize { Elem::I32 } else { Elem::I64 };
                let reduce = match op {
                    ArgOp::Argmax => greatest,
                    ArgOp::Argmin => least,
                };
                return Merge::Extreme { reduce, elem, position, is_last: tie_break == TieBreak::High };
            }
        };
        let reduce = match op {
            ReduceOp::Sum if dtype.is_complex() => return Merge::Sums(elem),
            ReduceOp::Product if dtype.is_complex() => return Merge::Product(dtype),
            ReduceOp::Sum => Reduce::Add,
            ReduceOp::Product => Reduce::Mul,
            ReduceOp::ReduceMax => greatest,
            ReduceOp::ReduceMin => least,
            ReduceOp::All => Reduce::And,
            ReduceOp::Any => Reduce::Or,
        };
        Merge::One(reduce, elem)
    }

    /// The dtype in which a reduction accumulates.
    fn accumulation(&self, node: usize) -> DType {
        let node = &self.graph.nodes()[node];
        let is_position = Reduction::of(&node.op).is_some_and(|(reduction, _)| match reduction {
            Reduction::Of(_) => false,
            Reduction::Position(..) => true,
        });
        let dtype = if is_position { self.graph.ty(node.inputs[0]).dtype } else { node.outputs[0].dtype };
        if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype }
    }

    /// The parts of an element that a reduction joins, without its position.
    pub(super) fn lifted(&mut self, node: usize) -> Option<State> {
        let (input, role) = (self.graph.nodes()[node].inputs[0], self.role(node));
        let x = self.operand(node, input, role)?;
        let (NodeRole::Reduction(reduction) | NodeRole::Across(reduction)) = role else {
            unreachable!("it is a reduction")
        };
        let x = match reduction {
            Reduction::Of(ReduceOp::All | ReduceOp::Any) => self.e.truth(x),
            Reduction::Of(ReduceOp::Sum | ReduceOp::Product | ReduceOp::ReduceMax | ReduceOp::ReduceMin)
            | Reduction::Position(..) => {
                let dtype = self.accumulation(node);
                self.e.convert(x, dtype)
            }
        };
        let is_bit = self.e.b.ty(x.value).elem == Elem::Bit;
        let value = if is_bit { self.e.b.convert(Conv::OfBit, Elem::I8, x.value) } else { x.value };
        Some(std::iter::once(value).chain(x.imag).collect())
    }

    /// The state of an element at a position of its group.
    pub(super) fn state_at(&mut self, node: usize, position: impl FnOnce(&mut Self) -> Val) -> Option<State> {
        let mut state = self.lifted(node)?;
        if let Merge::Extreme { position: elem, .. } = self.merge_of(node) {
            let position = position(self);
            state.push(self.e.b.convert(Conv::OfIndex, elem, position));
        }
        Some(state)
    }

    /// Joins the states of earlier and of later elements.
    pub(super) fn merge(&mut self, how: Merge, a: &[Val], b: &[Val]) -> State {
        match how {
            Merge::One(reduce, _) => SmallVec::from_slice(&[self.e.b.op(reduce.op(), [a[0], b[0]])]),
            Merge::Sums(_) => SmallVec::from_slice(&[self.e.b.add(a[0], b[0]), self.e.b.add(a[1], b[1])]),
            Merge::Product(dtype) => {
                let [a, b] = [a, b].map(|state| Element { value: state[0], imag: Some(state[1]), dtype });
                let product = self.e.binary(BinaryOp::MULTIPLY, a, b, dtype);
                std::iter::once(product.value).chain(product.imag).collect()
            }
            Merge::Extreme { reduce, elem, is_last, .. } => {
                let b_wins = self.wins(reduce, elem, is_last, a, b);
                (0..2).map(|part| self.e.b.select(b_wins, b[part], a[part])).collect()
            }
        }
    }

    /// Whether a later extreme replaces an earlier one. NaN is more extreme than any number.
    fn wins(&mut self, reduce: Reduce, elem: Elem, is_last: bool, a: &[Val], b: &[Val]) -> Val {
        let is_unsigned = reduce == Reduce::MaxU || reduce == Reduce::MinU;
        let less = if is_unsigned { Cmp::LtU } else { Cmp::Lt };
        let is_greatest = reduce == Reduce::Max || reduce == Reduce::MaxU;
        let (low, high) = if is_greatest { (a[0], b[0]) } else { (b[0], a[0]) };
        let build = &mut self.e.b;
        let mut wins = build.compare(less, low, high);
        let mut is_tie = build.compare(Cmp::Eq, a[0], b[0]);
        if elem.is_float() {
            let [nan_a, nan_b] = [a[0], b[0]].map(|x| build.compare(Cmp::Ne, x, x));
            let number_a = build.compare(Cmp::Eq, a[0], a[0]);
            let new_nan = build.op(Op::And, [nan_b, number_a]);
            wins = build.op(Op::Or, [wins, new_nan]);
            let both = build.op(Op::And, [nan_a, nan_b]);
            is_tie = build.op(Op::Or, [is_tie, both]);
        }
        if is_last {
            let is_later = build.compare(Cmp::Lt, a[1], b[1]);
            let tie = build.op(Op::And, [is_tie, is_later]);
            wins = build.op(Op::Or, [wins, tie]);
        }
        wins
    }

    /// Joins states pairwise: 0 to 1, 2 to 3, then pairs to pairs; a last one without a partner stays.
    pub(super) fn merge_pairwise(&mut self, how: Merge, mut states: Vec<State>) -> State {
        while states.len() > 1 {
            let mut next = Vec::with_capacity(states.len().div_ceil(2));
            for pair in states.chunks(2) {
                next.push(match pair {
                    [a, b] => self.merge(how, a, b),
                    _ => pair[0].clone(),
                });
            }
            states = next;
        }
        states.swap_remove(0)
    }

    /// Notes the results of reductions.
    pub(super) fn finish_reductions(&mut self, nodes: &[usize], states: Vec<State>) -> Option<()> {
        for (&node, state) in nodes.iter().zip(states) {
            let to = self.graph.nodes()[node].outputs[0].dtype;
            if let Merge::Extreme { .. } = self.merge_of(node) {
                let element = self.e.iota(state[1], to);
                self.groups.insert(node, element);
                continue;
            }
            let dtype = self.accumulation(node);
            let value = if dtype.is_bool() {
                let zero = self.e.b.bits(Elem::I8, 0);
                self.e.b.compare(Cmp::Ne, state[0], zero)
            } else {
                state[0]
            };
            let element = Element { value, imag: state.get(1).copied(), dtype };
            let element =
                if dtype.is_integer() && dtype.bits() < 8 { self.e.fit(value, dtype) } else { element };
            let element = self.e.convert(element, to);
            self.groups.insert(node, element);
        }
        Some(())
    }
}
