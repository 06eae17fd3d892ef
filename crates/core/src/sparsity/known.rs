//! Values that do not depend on unknown inputs: positions that a program computes from constants.
//!
//! The core has no arithmetic, so that the caller evaluates them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{Block, Op, WhileOp};
use crate::region::Region;
use crate::scalar::{Number, Scalar};
use crate::tensor::Tensor;

/// Computes the results of a region from its inputs.
pub type Evaluate<'a> = &'a dyn Fn(&Region, &[Tensor]) -> Result<Vec<Tensor>>;

/// A value that is known.
#[derive(Clone, Debug)]
pub(super) struct Known {
    tensor: Tensor,
    /// The inputs of the whole function from which it was computed.
    pub(super) inputs: SmallVec<[usize; 2]>,
}

impl Known {
    /// An input of the whole function.
    pub(super) fn input(tensor: Tensor, position: usize) -> Known {
        Known { tensor, inputs: SmallVec::from_elem(position, 1) }
    }

    /// The elements.
    fn numbers(&self) -> Result<Vec<Number>> {
        let dtype = self.tensor.ty().dtype;
        let memory = self.tensor.host_bytes("sparsity")?;
        let bytes = &memory.bytes()[..self.tensor.ty().byte_size()];
        let scalars = bytes.chunks_exact(dtype.storage_bytes());
        Ok(scalars.map(|bytes| Scalar::from_bytes(dtype, bytes).value()).collect())
    }

    /// The elements of an integer tensor.
    pub(super) fn integers(&self) -> Result<Vec<i128>> {
        let integer = |number| match number {
            Number::Int(number) => number,
            Number::Bool(number) => i128::from(number),
            Number::Huge(_) | Number::Float(_) | Number::Complex(_) => unreachable!("positions are integers"),
        };
        Ok(self.numbers()?.into_iter().map(integer).collect())
    }

    /// Whether each element is not zero.
    pub(super) fn truths(&self) -> Result<Vec<bool>> {
        Ok(self.numbers()?.into_iter().map(Number::is_true).collect())
    }
}

/// The values of a region's nodes that are known.
pub(super) struct KnownValues<'r> {
    region: &'r Region,
    inputs: Vec<Option<Known>>,
    /// Whether each node depends on known inputs only.
    is_constant: Vec<bool>,
    found: FxHashMap<Value, Option<Known>>,
}

impl<'r> KnownValues<'r> {
    pub(super) fn new(region: &'r Region, inputs: Vec<Option<Known>>) -> KnownValues<'r> {
        let mut is_constant: Vec<bool> = Vec::with_capacity(region.graph().len());
        for node in region.graph().nodes() {
            let is_pure = if let Op::Parameter { index, .. } = &node.op {
                inputs[*index].is_some()
            } else {
                // The devices of a mesh run together.
                !node.op.has_effect() && !has_collective(&node.op)
            };
            let operands = node.inputs.iter().all(|input| is_constant[input.node as usize]);
            is_constant.push(is_pure && operands);
        }
        KnownValues { region, inputs, is_constant, found: FxHashMap::default() }
    }

    /// A value, where it is known.
    pub(super) fn get(&mut self, evaluate: Evaluate<'_>, value: Value) -> Option<Known> {
        if !self.is_constant[value.node as usize] {
            return None;
        }
        if let Some(found) = self.found.get(&value) {
            return found.clone();
        }
        let known = self.compute(evaluate, value);
        self.found.insert(value, known.clone());
        known
    }

    fn compute(&self, evaluate: Evaluate<'_>, value: Value) -> Option<Known> {
        let nodes = self.region.graph().nodes();
        if let Op::Parameter { index, .. } = &nodes[value.node as usize].op {
            return self.inputs[*index].clone();
        }
        let mut is_needed = vec![false; value.node as usize + 1];
        is_needed[value.node as usize] = true;
        for position in (0..is_needed.len()).rev() {
            if is_needed[position] {
                nodes[position].inputs.iter().for_each(|input| is_needed[input.node as usize] = true);
            }
        }
        let (mut graph, mut given, mut inputs) = (Graph::new(), Vec::new(), SmallVec::<[usize; 2]>::new());
        let mut copies: FxHashMap<u32, Values> = FxHashMap::default();
        for (position, node) in nodes[..is_needed.len()].iter().enumerate() {
            if !is_needed[position] {
                continue;
            }
            let copy = if let Op::Parameter { index, ty } = &node.op {
                let known = self.inputs[*index].as_ref()?;
                inputs.extend(known.inputs.iter().copied());
                given.push(known.tensor.clone());
                Values::from_elem(graph.parameter(given.len() - 1, ty.clone()), 1)
            } else {
                let of = |input: &Value| copies[&input.node][input.output as usize];
                let operands = node.inputs.iter().map(of).collect();
                graph.push_typed(node.op.clone(), operands, node.outputs.clone()).ok()?
            };
            copies.insert(position as u32, copy);
        }
        let result = copies[&value.node][value.output as usize];
        let types = given.iter().map(|tensor| tensor.ty().clone()).collect();
        let count = given.len();
        let region = Region::new(graph, types, count, Values::from_elem(result, 1));
        // An eager op may refuse what a program does not, such as a position out of range. The value is then not known.
        let tensor = evaluate(&region, &given).ok()?.pop()?;
        inputs.sort_unstable();
        inputs.dedup();
        Some(Known { tensor, inputs })
    }
}

fn has_collective(op: &Op) -> bool {
    let inside =
        |region: &&std::sync::Arc<Region>| region.graph().nodes().iter().any(|node| has_collective(&node.op));
    if let Op::Collective(_) = op { true } else { op.regions().iter().any(inside) }
}

/// The inputs of a region whose values decide which elements are read or written. `results` marks results that do.
pub(super) fn deciding_inputs(region: &Region, results: &[bool]) -> Vec<bool> {
    let nodes = region.graph().nodes();
    let mut decides = vec![false; nodes.len()];
    for (result, _) in region.results().iter().zip(results).filter(|(_, decides)| **decides) {
        decides[result.node as usize] = true;
    }
    let mut found = vec![false; region.inputs().len()];
    for (position, node) in nodes.iter().enumerate().rev() {
        if let Op::Parameter { index, .. } = &node.op {
            found[*index] |= decides[position];
            continue;
        }
        let count = node.inputs.len();
        let of = if decides[position] { vec![true; count] } else { deciding(&node.op, count) };
        for (input, _) in node.inputs.iter().zip(of).filter(|(_, decides)| *decides) {
            decides[input.node as usize] = true;
        }
    }
    found
}

/// The state and the captures of a loop whose values, at any trip, decide which elements are read or written, or how often
/// the loop runs where that is not known.
pub(super) fn deciding_state(op: &WhileOp) -> Vec<bool> {
    let mut found = deciding_inputs(&op.cond, &[op.trips.is_none()]);
    loop {
        let before = found.clone();
        merge(&mut found, &deciding_inputs(&op.body, &before[..op.state]));
        if found == before {
            return found;
        }
    }
}

/// For each operand of an op, whether its values decide which elements of the others are read or written.
fn deciding(op: &Op, inputs: usize) -> Vec<bool> {
    let from = |first: usize| (0..inputs).map(|input| input >= first).collect();
    let only = |which: usize| (0..inputs).map(|input| input == which).collect();
    let none = || vec![false; inputs];
    match op {
        Op::Slice { .. } => from(1),
        Op::PutSlice { .. } => from(2),
        Op::Gather { .. } | Op::Scatter { .. } => only(1),
        Op::Select => only(0),
        Op::Cond(op) => {
            let predicates = op.branches.len() - 1;
            let mut found: Vec<bool> = (0..inputs).map(|input| input < predicates).collect();
            for branch in &op.branches {
                merge(&mut found[predicates..], &deciding_inputs(branch, &[]));
            }
            found
        }
        Op::While(op) => deciding_state(op),
        Op::CustomGrad(op) => {
            let mut found = none();
            if let Some(region) = op.rules.recomputed() {
                merge(&mut found[op.values..], &deciding_inputs(region, &[]));
                return found;
            }
            let captures = &mut found[op.values + op.inputs..];
            for rule in op.rules.regions() {
                merge(captures, &deciding_inputs(rule, &[])[rule.parameter_count()..]);
            }
            found
        }
        Op::UserBlock(op) => deciding_inputs(&op.default, &[]),
        Op::Block(Block::Take { .. } | Block::TakeAlongAxis { .. }) => only(1),
        Op::Block(
            Block::Composite(_)
            | Block::Log2
            | Block::Log10
            | Block::Cholesky
            | Block::Solve
            | Block::Lu
            | Block::Determinant
            | Block::Schur
            | Block::Hessenberg
            | Block::Svdvals
            | Block::Eigvalsh
            | Block::Isin
            | Block::Threefry
            | Block::Cumulative { .. }
            | Block::Bincount { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Qr { .. }
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Eig { .. }
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. },
        )
        | Op::Parameter { .. }
        | Op::Constant(_)
        | Op::Literal(_)
        | Op::Iota { .. }
        | Op::Eye { .. }
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::AsType { .. }
        | Op::Bitcast { .. }
        | Op::Clip
        | Op::Collective(_)
        | Op::Fold(_)
        | Op::WindowFold(_)
        | Op::StopGrad
        | Op::Mark { .. }
        | Op::Transfer { .. }
        | Op::Barrier
        | Op::Hook(_)
        | Op::RuntimeCall(_)
        | Op::Implicit(_)
        | Op::Conv(_)
        | Op::Reshape { .. }
        | Op::Squeeze { .. }
        | Op::Broadcast { .. }
        | Op::Transpose { .. }
        | Op::Pad { .. }
        | Op::Reverse { .. }
        | Op::Concatenate { .. }
        | Op::Stack { .. }
        | Op::Reduce { .. }
        | Op::ArgReduce { .. }
        | Op::Sort { .. }
        | Op::Argsort { .. }
        | Op::Window { .. }
        | Op::WindowScatter { .. }
        | Op::Fft { .. }
        | Op::Dot { .. }
        | Op::TriangularSolve { .. } => none(),
    }
}

fn merge(found: &mut [bool], more: &[bool]) {
    found.iter_mut().zip(more).for_each(|(found, more)| *found |= more);
}
