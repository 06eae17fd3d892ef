//! Sparsity: which elements of a function's results depend on which elements of its arguments.
//!
//! Each element of a value has a set of columns: the elements of the variables on which it may depend. Each family of ops
//! has its rules in the file of its name. A rule gives the sets of a node's outputs from those of its inputs. Conventions:
//!
//! - A rule never misses a column that the derivative of the op reaches. What [`grad`](crate::grad) treats as constant, such
//!   as comparisons and the rounding of numbers, has no columns.
//! - Positions that do not depend on unknown inputs are evaluated, so that a read or write there is exact. Other positions
//!   may be anywhere.
//! - Factors of zero count like others: the pattern holds for all values of the arguments.
//!
//! Sets of indices propagate as in C. H. Bischof, P. M. Khademi, A. Bouaricha, A. Carle, "Efficient computation of gradients
//! and Jacobians by dynamic exploitation of sparsity in automatic differentiation", 1996, but through a graph, before any
//! value is there. Equal sets are stored once.

mod axes;
mod block;
mod collective;
mod coloring;
mod control;
mod elementwise;
mod index;
mod known;
mod linalg;
mod loops;
mod matrix;
mod pattern;
mod reduce;
mod sets;
mod shape;
mod window;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

pub use coloring::Coloring;
pub use known::Evaluate;
pub use pattern::Pattern;

use crate::error::{ErrorKind, Result};
use crate::grad::reach;
use crate::graph::{Node, Value};
use crate::op::Op;
use crate::region::Region;
use crate::shape::{Axis, TensorType};
use crate::tensor::Tensor;
use known::{Known, KnownValues};
use sets::{EMPTY, Id, Sets};

/// The sets of a value's elements in row-major order; None where all are empty.
type Dependence = Option<Arc<[Id]>>;

/// The sets of a node's outputs.
type Dependences = SmallVec<[Dependence; 1]>;

/// An input of a region whose elements are columns of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The position among the region's inputs.
    pub input: usize,
    /// The column of its first element.
    pub first: usize,
}

/// A pattern, and what it depends on.
#[derive(Clone, Debug)]
pub struct Detected {
    /// The elements of the results, in rows, by the elements of the variables.
    pub pattern: Pattern,
    /// The known inputs whose values decide positions in the pattern. It holds only for these values.
    pub read: Vec<usize>,
}

/// The entries of the Jacobian of a region's results by the variables that may differ from zero, for any values of the inputs
/// that are not known. `known` has an entry for each input. Nothing is differentiated, and only what decides positions is
/// evaluated.
///
/// # Errors
/// More than 2^31 elements, and memory.
pub fn detect(
    region: &Region,
    (variables, columns): (&[Variable], usize),
    results: &[usize],
    known: &[Option<Tensor>],
    evaluate: Evaluate<'_>,
) -> Result<Detected> {
    let rows: usize = region.result_types().map(|ty| ty.size()).sum();
    let limit = i32::MAX as usize;
    if columns > limit || rows > limit {
        let (option, given) = ("pattern", format!("{rows} rows and {columns} columns"));
        let required = format!("at most {limit} of each");
        return Err(ErrorKind::OptionValue { op: "sparsity", option, given, required }.into());
    }
    let mut inputs: Vec<Input> = (known.iter().enumerate())
        .map(|(position, tensor)| Input {
            sets: None,
            known: tensor.clone().map(|tensor| Known::input(tensor, position)),
        })
        .collect();
    for variable in variables {
        let size = region.inputs()[variable.input].size();
        let columns = variable.first..variable.first + size;
        let sets = columns.map(|column| Sets::single(column as u32)).collect();
        inputs[variable.input] = Input { sets: Some(sets), known: None };
    }
    let useful: Vec<bool> = (0..region.results().len()).map(|result| results.contains(&result)).collect();
    let mut analysis = Analysis { sets: Sets::new(columns as u32), evaluate, read: Vec::new() };
    let found = analysis.region(region, inputs, &useful)?.0;
    let mut elements = Vec::new();
    for &result in results {
        let size = region.graph().ty(region.results()[result]).size();
        match &found[result] {
            Some(sets) => elements.extend_from_slice(sets),
            None => elements.resize(elements.len() + size, EMPTY),
        }
    }
    let rows = elements.iter().map(|&id| analysis.sets.ranges(id));
    let pattern = Pattern::from_ranges(columns, rows)?;
    let mut read = analysis.read;
    read.sort_unstable();
    read.dedup();
    Ok(Detected { pattern, read })
}

/// What is known of a region's input.
#[derive(Clone)]
struct Input {
    sets: Dependence,
    known: Option<Known>,
}

/// A detection in progress.
struct Analysis<'a> {
    sets: Sets,
    evaluate: Evaluate<'a>,
    /// The inputs of the whole function whose values were used.
    read: Vec<usize>,
}

impl<'a> Analysis<'a> {
    /// The sets of the results of a region that are `useful`, and the values that are known in it.
    fn region<'r>(
        &mut self,
        region: &'r Region,
        inputs: Vec<Input>,
        useful: &[bool],
    ) -> Result<(Vec<Dependence>, KnownValues<'r>)> {
        let graph = region.graph();
        let ends = region.results().iter().zip(useful).filter(|(_, useful)| **useful);
        let ends: Vec<Value> = ends.map(|(&value, _)| value).collect();
        let useful = reach::useful(graph, &ends);
        let (sets, known): (Vec<Dependence>, Vec<Option<Known>>) =
            inputs.into_iter().map(|input| (input.sets, input.known)).unzip();
        let mut known = KnownValues::new(region, known);
        let mut values: Vec<Dependences> = Vec::with_capacity(graph.len());
        for (node, useful) in graph.nodes().iter().zip(&useful) {
            if let Op::Parameter { index, .. } = node.op {
                values.push(smallvec![sets[index].clone()]);
                continue;
            }
            let of = |input: &Value| values[input.node as usize][input.output as usize].clone();
            let inputs: SmallVec<[Dependence; 4]> = node.inputs.iter().map(of).collect();
            let outputs = if useful.contains(&true) && inputs.iter().any(Option::is_some) {
                let mut site =
                    Site { analysis: &mut *self, known: &mut known, region, node, inputs: &inputs };
                site.rule(useful).map_err(|error| error.at(node.location.clone()))?
            } else {
                smallvec![None; node.outputs.len()]
            };
            values.push(outputs);
        }
        let of = |result: &Value| values[result.node as usize][result.output as usize].clone();
        Ok((region.results().iter().map(of).collect(), known))
    }
}

/// A node whose rule is applied, with the sets of its inputs.
struct Site<'s, 'a, 'r> {
    analysis: &'s mut Analysis<'a>,
    known: &'s mut KnownValues<'r>,
    region: &'r Region,
    node: &'r Node,
    inputs: &'s [Dependence],
}

impl<'r> Site<'_, '_, 'r> {
    /// The type of an input.
    fn input_type(&self, input: usize) -> &'r TensorType {
        self.region.graph().ty(self.node.inputs[input])
    }

    /// The sizes of an input.
    fn input_sizes(&self, input: usize) -> &'r [usize] {
        self.input_type(input).shape.sizes()
    }

    /// The sizes of an output.
    fn output_sizes(&self, output: usize) -> &'r [usize] {
        self.node.outputs[output].shape.sizes()
    }

    /// The sets of all elements of an input.
    fn all(&self, input: usize) -> Arc<[Id]> {
        match &self.inputs[input] {
            Some(sets) => sets.clone(),
            None => vec![EMPTY; self.input_sizes(input).iter().product()].into(),
        }
    }

    /// The unions of an input's sets over axes.
    fn reduced(&mut self, input: usize, axes: &[Axis]) -> Vec<Id> {
        let (x, sizes) = (self.all(input), self.input_sizes(input));
        axes::reduce(&mut self.analysis.sets, &x, sizes, &shape::indices(axes))
    }

    /// The union of the sets of some inputs' elements.
    fn union_of(&mut self, inputs: impl Iterator<Item = usize>) -> Id {
        let ids: Vec<Id> =
            inputs.filter_map(|input| self.inputs[input].as_ref()).flat_map(|x| x.iter().copied()).collect();
        self.analysis.sets.union_all(ids)
    }

    /// An input, where its value is known. The pattern then depends on it.
    fn value(&mut self, input: usize) -> Option<Known> {
        let known = self.known.get(self.analysis.evaluate, self.node.inputs[input])?;
        self.analysis.read.extend(known.inputs.iter().copied());
        Some(known)
    }

    /// The integers of an input, where they are known.
    fn integers(&mut self, input: usize) -> Result<Option<Vec<i128>>> {
        self.value(input).map(|known| known.integers()).transpose()
    }

    /// What is known of an input, for a region that it enters. Its value is only computed where it `decides` positions.
    fn entering(&mut self, input: usize, decides: bool) -> Input {
        let known =
            decides.then(|| self.known.get(self.analysis.evaluate, self.node.inputs[input])).flatten();
        Input { sets: self.inputs[input].clone(), known }
    }

    /// The sets of the node's outputs. Those of outputs that are not `useful` may be left out.
    fn rule(&mut self, useful: &[bool]) -> Result<Dependences> {
        let op = &self.node.op;
        let same = || self.inputs[0].clone();
        Ok(smallvec![match op {
            Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_) | Op::Iota { .. } | Op::Eye { .. } =>
                None,

            Op::Unary(op) => elementwise::unary(self, *op),
            Op::Binary(op) => elementwise::binary(self, *op),
            // Conversions to integers pass derivatives.
            Op::AsType { .. } | Op::Bitcast { .. } => same(),
            Op::Select => elementwise::select(self)?,
            Op::Clip => elementwise::union(self, 0..3),

            Op::Reshape { .. } | Op::Squeeze { .. } => same(),
            Op::Broadcast { axes, .. } => shape::broadcast(self, axes),
            Op::Transpose { axes } => shape::transpose(self, axes),
            Op::Reverse { axes } => shape::reverse(self, axes),
            Op::Pad { config } => shape::pad(self, config),
            Op::Concatenate { axis } => shape::concatenate(self, *axis),
            Op::Stack { axis, .. } => shape::stack(self, *axis),
            Op::Slice { starts, lengths, strides } => shape::slice(self, starts, lengths, strides)?,
            Op::PutSlice { starts } => shape::put_slice(self, starts)?,

            Op::Reduce { op, axes, .. } => reduce::reduce(self, *op, axes),
            Op::ArgReduce { .. } => None,

            Op::Dot { contract_a, contract_b, batch_a, batch_b: _ } => {
                linalg::dot(self, (contract_a, contract_b), batch_a.len())
            }
            Op::Conv(op) => window::conv(self, op),

            Op::Gather { axes } => index::gather(self, axes)?,
            Op::Scatter { op, axes } => index::scatter(self, *op, axes)?,
            Op::Sort { axis, .. } => shape::lines(self, axis.index(), usize::MAX),
            Op::Argsort { .. } => None,
            Op::Window { op: _, window } => window::window(self, window),
            Op::WindowScatter { op: _, window } => window::scatter(self, window),
            Op::Fft { axis, length, .. } => shape::lines(self, axis.index(), *length),
            Op::TriangularSolve { left_side, .. } => matrix::solve(self, *left_side),
            Op::Collective(op) => collective::collective(self, op),
            Op::Fold(op) => reduce::fold(self, &op.axes),
            Op::WindowFold(op) => window::fold(self, &op.window),

            Op::Cond(op) => return control::cond(self, op, useful),
            Op::While(op) => return loops::while_(self, op, useful),
            Op::CustomGrad(op) => return control::custom_grad(self, op),
            // The inverse of a sparse matrix is dense.
            Op::Implicit(op) => return Ok(control::everything(self, op.values)),
            Op::StopGrad => None,
            Op::Mark { .. } | Op::Transfer { .. } => same(),
            Op::Barrier | Op::Hook(_) => return Ok(self.inputs.iter().cloned().collect()),
            Op::RuntimeCall(_) => return Ok(control::everything(self, 0)),

            Op::Block(block) => return block::rule(self, block),
            Op::UserBlock(op) => return block::defined(self, &op.default, useful),
        }])
    }
}
