//! The distance of two traced integers that differ by a constant, such as `i` and `i + 2`.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::dtype::DType;
use crate::graph::{Graph, Value};
use crate::op::{ArithmeticOp, BinaryOp, Op, UnaryOp};
use crate::scalar::Number;
use crate::tensor::{Data, Tensor};
use crate::trace::Trace;

/// The number of values that are replaced by what they are made of before the distance counts as unknown.
const MOST_STEPS: usize = 1000;

/// The number of nodes that are compared to find out whether two values are computed in the same way.
const MOST_COMPARED: usize = 100;

/// `to - from`, if both are traced integers whose difference is the same whatever the program's inputs are. Sums and
/// products with constants are followed, also out of the functions of loops and branches. That integers may wrap is
/// ignored.
pub fn distance(from: &Tensor, to: &Tensor) -> Option<i64> {
    let (mut difference, mut unknown) = (Sum::default(), Sum::default());
    difference.add(to, 1)?;
    difference.add(from, -1)?;
    for _ in 0..MOST_STEPS {
        let Some(last) = difference.take_last() else {
            return unknown.terms.is_empty().then(|| i64::try_from(difference.constant).ok())?;
        };
        if difference.replace(&last)? == Known::No {
            unknown.add_like(last)?;
        }
    }
    None
}

/// Whether it is known what a value is made of.
#[derive(PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

/// A value with a factor, which is not zero.
struct Term {
    trace: Arc<Trace>,
    value: Value,
    factor: i128,
}

/// A sum of values with factors, each value once, and a constant.
#[derive(Default)]
struct Sum {
    terms: SmallVec<[Term; 4]>,
    constant: i128,
}

/// What a value is made of.
enum Made {
    Constant(i128),
    /// The captured value of this number.
    Captured(usize),
    /// A sum of values with factors.
    Of(SmallVec<[(Value, i128); 2]>),
}

impl Sum {
    fn add(&mut self, tensor: &Tensor, factor: i128) -> Option<()> {
        match tensor.data() {
            Data::Traced { trace, value } if tensor.ty().dtype.is_integer() => {
                self.add_value(trace, *value, factor)
            }
            Data::Traced { .. } | Data::Buffer(_) | Data::Template => None,
        }
    }

    fn add_value(&mut self, trace: &Arc<Trace>, value: Value, factor: i128) -> Option<()> {
        let same = |term: &Term| Arc::ptr_eq(&term.trace, trace) && term.value == value;
        match self.terms.iter().position(same) {
            Some(at) => {
                self.terms[at].factor = self.terms[at].factor.checked_add(factor)?;
                if self.terms[at].factor == 0 {
                    self.terms.remove(at);
                }
            }
            None if factor == 0 => {}
            None => self.terms.push(Term { trace: trace.clone(), value, factor }),
        }
        Some(())
    }

    /// Adds a term to the one whose value is the same, or is computed in the same way.
    fn add_like(&mut self, term: Term) -> Option<()> {
        let same = |known: &&Term| {
            Arc::ptr_eq(&known.trace, &term.trace)
                && term
                    .trace
                    .with_graph(|graph| is_same(graph, known.value, term.value, &mut { MOST_COMPARED }))
        };
        let value = self.terms.iter().find(same).map_or(term.value, |known| known.value);
        self.add_value(&term.trace, value, term.factor)
    }

    /// The value that was made last. No other term is made of it, so each value is replaced once, when all of its
    /// factors are added up.
    fn take_last(&mut self) -> Option<Term> {
        let order = |term: &Term| (term.trace.id(), term.value);
        let last = (0..self.terms.len()).max_by_key(|&at| order(&self.terms[at]))?;
        Some(self.terms.remove(last))
    }

    /// Adds what a term is made of, if that is known; `None` if the numbers are too large.
    fn replace(&mut self, term: &Term) -> Option<Known> {
        let (_, parameters) = term.trace.inputs();
        match term.trace.with_graph(|graph| made(graph, parameters, term.value)) {
            None => return Some(Known::No),
            Some(Made::Constant(constant)) => {
                self.constant = self.constant.checked_add(constant.checked_mul(term.factor)?)?;
            }
            Some(Made::Captured(at)) => match term.trace.captures().get(at) {
                Some(captured) if captured.is_traced() => self.add(captured, term.factor)?,
                Some(_) | None => return Some(Known::No),
            },
            Some(Made::Of(parts)) => {
                for (value, factor) in parts {
                    self.add_value(&term.trace, value, factor.checked_mul(term.factor)?)?;
                }
            }
        }
        Some(Known::Yes)
    }
}

/// Whether two values of a graph are computed in the same way from the same values, as far as `left` nodes show.
fn is_same(graph: &Graph, a: Value, b: Value, left: &mut usize) -> bool {
    if a == b {
        return true;
    }
    let (Some(one), Some(other)) = (graph.nodes().get(a.node as usize), graph.nodes().get(b.node as usize))
    else {
        return false;
    };
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    a.output == b.output
        && one.op == other.op
        && !one.op.has_effect()
        && one.inputs.len() == other.inputs.len()
        && one.inputs.iter().zip(&other.inputs).all(|(&a, &b)| is_same(graph, a, b, left))
}

/// What a value of a graph is made of, if that is known.
fn made(graph: &Graph, parameters: usize, value: Value) -> Option<Made> {
    let node = graph.nodes().get(value.node as usize)?;
    let input = |at: usize| node.inputs[at];
    let is_one = |of: Value| graph.ty(of).size() == graph.ty(value).size();
    let same = || Some(Made::Of(smallvec![(input(0), 1)]));
    if let Op::Parameter { index, .. } = node.op {
        return index.checked_sub(parameters).map(Made::Captured);
    }
    if let Op::Constant(_) = node.op {
        return constant(graph, value).map(Made::Constant);
    }
    if let Op::AsType { dtype } = node.op {
        return if holds(dtype, graph.ty(input(0)).dtype) { same() } else { None };
    }
    if let Op::Reshape { .. } | Op::Broadcast { .. } = node.op {
        return match constant(graph, input(0)) {
            Some(constant) => Some(Made::Constant(constant)),
            None if is_one(input(0)) => same(),
            None => None,
        };
    }
    if let Op::Unary(op) = node.op {
        return (op == UnaryOp::NEGATE).then(|| Made::Of(smallvec![(input(0), -1)]));
    }
    let Op::Binary(BinaryOp::Arithmetic(op)) = node.op else { return None };
    match op {
        ArithmeticOp::Add => Some(Made::Of(smallvec![(input(0), 1), (input(1), 1)])),
        ArithmeticOp::Subtract => Some(Made::Of(smallvec![(input(0), 1), (input(1), -1)])),
        ArithmeticOp::Multiply => match (constant(graph, input(0)), constant(graph, input(1))) {
            (Some(factor), _) => Some(Made::Of(smallvec![(input(1), factor)])),
            (None, Some(factor)) => Some(Made::Of(smallvec![(input(0), factor)])),
            (None, None) => None,
        },
        ArithmeticOp::Divide
        | ArithmeticOp::Pow
        | ArithmeticOp::Atan2
        | ArithmeticOp::Quotient
        | ArithmeticOp::Remainder
        | ArithmeticOp::Max
        | ArithmeticOp::Min => None,
    }
}

/// The integer that a value is.
fn constant(graph: &Graph, value: Value) -> Option<i128> {
    let mut value = value;
    loop {
        let node = graph.nodes().get(value.node as usize)?;
        if let Op::Constant(scalar) = node.op {
            return match scalar.value() {
                Number::Int(constant) => Some(constant),
                Number::Bool(_) | Number::Float(_) | Number::Huge(_) | Number::Complex(_) => None,
            };
        }
        let (Op::Reshape { .. } | Op::Broadcast { .. }) = node.op else { return None };
        value = node.inputs[0];
    }
}

/// Whether an integer dtype holds all values of another dtype.
fn holds(wide: DType, narrow: DType) -> bool {
    let contains = |number| !wide.lacks(number);
    wide.is_integer() && narrow.is_integer() && contains(narrow.lowest()) && contains(narrow.highest())
}
