//! Which outputs depend differentiably on which inputs.
//!
//! The analysis may report too many dependencies: a rule then finds that nothing flows. It avoids work and
//! NaNs for values that no gradient needs, loop counters above all.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::graph::{Graph, Value};
use crate::op::{
    BinaryRule, CondOp, ElementWise, GradientFlow, Identity, Op, OpClass, Primitive, UnaryRule, WhileOp,
};
use crate::region::Region;

/// A set of input positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inputs(SmallVec<[u64; 1]>);

impl Inputs {
    fn one(input: usize) -> Inputs {
        let mut set = Inputs::default();
        set.insert(input);
        set
    }

    fn insert(&mut self, input: usize) {
        if self.0.len() <= input / 64 {
            self.0.resize(input / 64 + 1, 0);
        }
        self.0[input / 64] |= 1 << (input % 64);
    }

    /// Whether the set contains an input.
    pub fn has(&self, input: usize) -> bool {
        self.0.get(input / 64).is_some_and(|word| word >> (input % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Inputs) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// How gradients flow through an op.
enum Reach<'a> {
    /// Between these inputs and every output.
    Between(Range<usize>),
    /// Between input and output of the same position.
    Each,
    /// As in a region with all inputs.
    Region(&'a Region),
    /// As in its branches.
    Cond(&'a CondOp),
    /// As in its body, repeatedly.
    While(&'a WhileOp),
}

fn flow(op: &Op, inputs: usize) -> Reach<'_> {
    let (none, all) = (Reach::Between(0..0), Reach::Between(0..inputs));
    match op.class() {
        OpClass::Parameter { .. } | OpClass::Constant(_) | OpClass::Literal(_) => none,
        OpClass::Primitive(Primitive::ElementWise(op)) => match op {
            ElementWise::Unary(op) => match op.rule() {
                UnaryRule::Same
                | UnaryRule::Float
                | UnaryRule::Magnitude
                | UnaryRule::Real
                | UnaryRule::Complex => all,
                UnaryRule::Predicate => none,
            },
            ElementWise::Binary(op) => match op.rule() {
                BinaryRule::Merge | BinaryRule::Float | BinaryRule::Complex => all,
                BinaryRule::Predicate => none,
            },
            ElementWise::Select => Reach::Between(1..3),
            ElementWise::AsType(_) | ElementWise::Bitcast(_) | ElementWise::Clip => all,
        },
        OpClass::Primitive(_) => match op.flow().expect("primitives with attributes have rows") {
            GradientFlow::Nowhere => none,
            GradientFlow::First(operands) => Reach::Between(0..operands),
            GradientFlow::All => all,
        },
        OpClass::Identity(Identity::Constant) => none,
        OpClass::Identity(Identity::Mark(_) | Identity::Transfer(_))
        | OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_) => all,
        OpClass::UserBlock(op) => Reach::Region(&op.default),
        OpClass::Barrier | OpClass::Hook(_) => Reach::Each,
        OpClass::CustomGrad(op) => Reach::Between(op.values..op.values + op.inputs),
        OpClass::Implicit(op) => Reach::Between(op.values..inputs),
        OpClass::Cond(op) => Reach::Cond(op),
        OpClass::While(op) => Reach::While(op),
    }
}

/// For each output of a node, the inputs on which it depends.
pub(crate) fn outputs(op: &Op, inputs: usize, outputs: usize) -> Vec<Inputs> {
    match flow(op, inputs) {
        Reach::Between(range) => {
            let mut set = Inputs::default();
            range.for_each(|input| set.insert(input));
            vec![set; outputs]
        }
        Reach::Each => (0..outputs).map(Inputs::one).collect(),
        Reach::Region(region) => results(region),
        Reach::Cond(op) => {
            let predicates = op.branches.len() - 1;
            let mut sets = vec![Inputs::default(); outputs];
            for branch in &op.branches {
                for (set, captures) in sets.iter_mut().zip(results(branch)) {
                    let captures = (0..inputs - predicates).filter(|&capture| captures.has(capture));
                    captures.for_each(|capture| set.insert(predicates + capture));
                }
            }
            sets
        }
        Reach::While(op) => trips(op.state, &results(&op.body)),
    }
}

/// The dependencies of the state after any number of trips, from those after one.
pub(crate) fn trips(state: usize, step: &[Inputs]) -> Vec<Inputs> {
    let mut sets: Vec<Inputs> = (0..state).map(Inputs::one).collect();
    loop {
        let before = sets.clone();
        for set in &mut sets {
            for (leaf, before) in step[..state].iter().enumerate() {
                if set.has(leaf) {
                    set.extend(before);
                }
            }
        }
        if sets == before {
            return sets;
        }
    }
}

/// For each result of a region, the inputs on which it depends.
pub(crate) fn results(region: &Region) -> Vec<Inputs> {
    let graph = region.graph();
    let mut sets: Vec<SmallVec<[Inputs; 1]>> = Vec::with_capacity(graph.len());
    for node in graph.nodes() {
        if let Op::Parameter { index, .. } = node.op {
            sets.push(smallvec![Inputs::one(index)]);
            continue;
        }
        let mut found = SmallVec::new();
        for from in outputs(&node.op, node.inputs.len(), node.outputs.len()) {
            let mut set = Inputs::default();
            for (position, input) in node.inputs.iter().enumerate() {
                if from.has(position) {
                    set.extend(&sets[input.node as usize][input.output as usize]);
                }
            }
            found.push(set);
        }
        sets.push(found);
    }
    region.results().iter().map(|value| sets[value.node as usize][value.output as usize].clone()).collect()
}

/// A flag for each output of each node.
pub(crate) type Flags = Vec<SmallVec<[bool; 1]>>;

fn flag(flags: &Flags, value: Value) -> bool {
    flags[value.node as usize][value.output as usize]
}

/// The values that are one of `wrt` or depend on one.
pub(super) fn varied(graph: &Graph, wrt: &[Value]) -> Flags {
    let mut flags: Flags = graph.nodes().iter().map(|node| smallvec![false; node.outputs.len()]).collect();
    for value in wrt {
        flags[value.node as usize][value.output as usize] = true;
    }
    for (position, node) in graph.nodes().iter().enumerate() {
        if !node.inputs.iter().any(|&input| flag(&flags, input)) {
            continue;
        }
        for (output, from) in outputs(&node.op, node.inputs.len(), node.outputs.len()).into_iter().enumerate()
        {
            let mut inputs = node.inputs.iter().enumerate();
            let depends = inputs.any(|(position, &input)| from.has(position) && flag(&flags, input));
            flags[position][output] |= depends;
        }
    }
    flags
}

/// The values that are one of `ends`, or on which one of them depends.
pub(crate) fn useful(graph: &Graph, ends: &[Value]) -> Flags {
    let mut flags: Flags = graph.nodes().iter().map(|node| smallvec![false; node.outputs.len()]).collect();
    for value in ends {
        flags[value.node as usize][value.output as usize] = true;
    }
    for (position, node) in graph.nodes().iter().enumerate().rev() {
        if !flags[position].contains(&true) {
            continue;
        }
        for (output, from) in outputs(&node.op, node.inputs.len(), node.outputs.len()).into_iter().enumerate()
        {
            if !flags[position][output] {
                continue;
            }
            for (position, input) in node.inputs.iter().enumerate() {
                flags[input.node as usize][input.output as usize] |= from.has(position);
            }
        }
    }
    flags
}
