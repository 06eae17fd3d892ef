//! Reverse-mode differentiation: a pass that appends the backward computation to a graph.
//!
//! Each family of ops has its rules in the file of its name. A rule computes the contribution of the
//! cotangents of a node's outputs to each input. This module visits the nodes in reverse and accumulates.
//! Conventions:
//!
//! - Cotangents have no axis names, and rules see operands without names: backward arithmetic pairs axes by
//!   position only. A gradient gets its variable's shape and names at the very end.
//! - A cotangent has its value's element type, but at least f32 (or c64): sums of many small floats would
//!   stagnate. The gradient of a bf16 product multiplies by the cotangent in bf16. The cotangent of an integer
//!   keeps the float type of the incoming cotangent. A conversion of element types passes it unchanged, except
//!   that a real value keeps only the real part of a complex cotangent. A gradient gets its variable's element
//!   type at the very end, f32 for integers.
//! - The gradient of a complex `z` is the `G` with `dL = real(G * dz)`. Holomorphic functions multiply by their
//!   derivative, without a conjugate.

mod binomial;
pub(crate) mod block;
mod checkpoint;
mod collective;
pub(crate) mod control;
pub(crate) mod elementwise;
mod fourier;
mod implicit;
mod index;
mod linalg;
pub(crate) mod loops;
pub(crate) mod matrix;
mod order;
mod products;
pub(crate) mod reach;
pub(crate) mod reduce;
pub(crate) mod region;
mod shape;
pub(crate) mod traced;
pub(crate) mod window;

pub use traced::{Finish, TracedPullback, axes_of_variables, loss_at_positions};

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, Starts};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{Sizes, TensorType};
use region::{Draft, HookCalls};

/// Appends the reverse pass to a graph: propagates `cotangents` from `outputs` to each value of `wrt`.
///
/// The result is `None` for a value that the outputs do not depend on differentiably. A cotangent has the
/// sizes of its output; results have the sizes and the float types of their values, and no names. A forward
/// loop that is already in the graph keeps no states, so that its reverse runs it once more;
/// [`value_and_grad`] avoids this.
///
/// # Errors
/// An op without a gradient on the path.
///
/// # Panics
/// When `outputs` and `cotangents` differ in number, or a cotangent in sizes.
pub fn vjp(
    graph: &mut Graph,
    outputs: &[Value],
    cotangents: &[Value],
    wrt: &[Value],
) -> Result<Vec<Option<Value>>> {
    assert_eq!(outputs.len(), cotangents.len(), "one cotangent for each output");
    let mut pass = ReversePass::new(graph, wrt, FxHashMap::default());
    for (&output, &cotangent) in outputs.iter().zip(cotangents) {
        let cotangent = region::nameless(pass.graph, cotangent)?;
        pass.add(output, cotangent)?;
    }
    pass.run()?;
    wrt.iter()
        .map(|&value| {
            let gradient = pass.take(value);
            let dtype = pass.graph.ty(value).dtype.to_float();
            gradient.map(|gradient| region::convert(pass.graph, gradient, dtype)).transpose()
        })
        .collect()
}

/// A region with the same inputs whose results are the region's own, then the gradient of result `loss` with
/// respect to each input in `wrt`.
///
/// A loss that is no scalar is summed. A gradient has the shape, the names and the element type of its
/// variable, f32 for integers.
///
/// # Errors
/// An op without a gradient between a variable and the loss.
///
/// # Panics
/// When `loss` is no result, or `wrt` names no input.
pub fn value_and_grad(region: &Region, loss: usize, wrt: &[usize]) -> Result<Region> {
    let mut draft = Draft::new();
    let arguments: Vec<Value> = region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
    let needed: Vec<bool> = (0..arguments.len()).map(|input| wrt.contains(&input)).collect();
    let mut useful = vec![false; region.results().len()];
    useful[loss] = true;
    let forward =
        region::replay(&mut draft.graph, region, &arguments, HookCalls::Keep, Some((&needed, &useful)))?;
    let graph = &mut draft.graph;
    let ty = cotangent_type(graph.ty(forward.results[loss]));
    let seed = graph.scalar(Scalar::one(ty.dtype))?;
    let seed = region::fill(graph, seed, &ty.shape)?;

    let variables: Vec<Value> = wrt.iter().map(|&input| arguments[input]).collect();
    let mut pass = ReversePass::new(graph, &variables, forward.loops);
    pass.add(forward.results[loss], seed)?;
    pass.run()?;
    let gradients: Vec<Option<Value>> = variables.iter().map(|&value| pass.take(value)).collect();

    let mut results = forward.results;
    for (&input, gradient) in wrt.iter().zip(gradients) {
        results.push(finished(graph, gradient, &region.inputs()[input])?);
    }
    draft.close(region.parameter_count(), &results)
}

/// A region from a region's inputs, then one cotangent for each of its results, to the gradient of each input
/// in `wrt`. All its inputs are parameters.
///
/// Cotangents have no names and the element type of their result, merged with f32. Gradients are as those of
/// [`value_and_grad`]. Hooks in the region do not run.
///
/// # Errors
/// An op without a gradient between a variable and a result.
///
/// # Panics
/// When `wrt` names no input.
pub fn vjp_region(region: &Region, wrt: &[usize]) -> Result<Region> {
    let cotangents: Vec<_> = region.result_types().map(|ty| Some(cotangent_type(ty))).collect();
    let pullback = region::Pullback::new(region, wrt, &cotangents, &vec![None; wrt.len()])?;
    let mut draft = Draft::new();
    let types = region.inputs().iter().cloned().chain(cotangents.into_iter().flatten());
    let arguments: Vec<Value> = types.map(|ty| draft.input(ty)).collect();
    let graph = &mut draft.graph;
    let gradients = region::inline(graph, &pullback.region, &arguments)?;
    let mut gradients = gradients.into_iter();
    let mut results = Values::new();
    for (&input, &flows) in wrt.iter().zip(&pullback.flows) {
        let gradient = if flows { gradients.next() } else { None };
        results.push(finished(graph, gradient, &region.inputs()[input])?);
    }
    let count = arguments.len();
    draft.close(count, &results)
}

/// The final gradient of a variable: with its shape, names and element type, and zeros without a cotangent.
fn finished(graph: &mut Graph, cotangent: Option<Value>, variable: &TensorType) -> Result<Value> {
    let ty = TensorType { dtype: variable.dtype.to_float(), shape: variable.shape.clone() };
    let Some(cotangent) = cotangent else { return region::zeros(graph, &ty) };
    let gradient = region::convert(graph, cotangent, ty.dtype)?;
    graph.emit_one(Op::Reshape { shape: ty.shape }, &[gradient])
}

/// The type of a cotangent that a loop carries or a region takes for a value of type `ty`.
pub(crate) fn cotangent_type(ty: &TensorType) -> TensorType {
    let dtype = DType::F32.merge(ty.dtype.to_float());
    TensorType { dtype, shape: ty.shape.without_names() }
}

/// The result of a rule.
enum Vjp {
    /// One contribution for each input.
    Flows(SmallVec<[Contribution; 3]>),
    /// Contributions to given values, which need not be the node's inputs.
    To(SmallVec<[(Value, Contribution); 3]>),
    /// No gradient passes.
    Zero,
    /// There is no rule; the hint suggests an alternative.
    Refused {
        /// The end of the message.
        hint: &'static str,
    },
}

impl Vjp {
    /// A cotangent for each input.
    fn flows(contributions: impl IntoIterator<Item = Option<Value>>) -> Vjp {
        Vjp::Flows(
            contributions
                .into_iter()
                .map(|contribution| contribution.map_or(Contribution::None, Contribution::Whole))
                .collect(),
        )
    }

    /// A cotangent for the only input.
    fn one(contribution: Value) -> Vjp {
        Vjp::flows([Some(contribution)])
    }
}

/// The contribution of a node to the cotangent of one of its inputs.
enum Contribution {
    /// Nothing.
    None,
    /// A value of the input's sizes.
    Whole(Value),
    /// A value that is added to a window of the input, with zeros around it. The window is updated in place,
    /// so that reading a large value in pieces, also in a loop, costs no more than the pieces.
    Window {
        /// The cotangent of the window.
        update: Value,
        /// Where the window begins.
        starts: Starts,
        /// The scalar starts, if they are dynamic.
        operands: Values,
    },
}

/// The node to which a rule is applied, and the graph to which the rule adds nodes. In forward mode `needed` marks the
/// inputs with tangents.
pub(crate) struct Site<'a> {
    pub(crate) graph: &'a mut Graph,
    pub(crate) nameless: &'a mut FxHashMap<Value, Value>,
    pub(crate) inputs: Values,
    pub(crate) outputs: Values,
    pub(crate) needed: SmallVec<[bool; 4]>,
}

impl Site<'_> {
    /// Whether the gradient of an input is needed; rules skip the others.
    fn needs_gradient(&self, input: usize) -> bool {
        self.needed[input]
    }

    /// An input without names.
    pub(crate) fn input(&mut self, input: usize) -> Result<Value> {
        self.without_names(self.inputs[input])
    }

    /// An output without names.
    pub(crate) fn output(&mut self, output: usize) -> Result<Value> {
        self.without_names(self.outputs[output])
    }

    /// An input without names, converted to the float or complex type in which the node computes.
    pub(crate) fn float_input(&mut self, input: usize) -> Result<Value> {
        let dtype = self.output_ty(0).dtype.to_float();
        let x = self.input(input)?;
        self.graph.emit_one(Op::AsType { dtype }, &[x])
    }

    /// The cotangent of a product in the type in which it is multiplied: bf16 where the product is, since devices multiply
    /// pairs of bf16 many times as fast as f32. Their sums are f32. f16 and the 8-bit floats would lose cotangents that
    /// are beyond their range.
    fn as_factor(&mut self, g: Value) -> Result<Value> {
        if self.output_ty(0).dtype != DType::BF16 {
            return Ok(g);
        }
        region::convert(self.graph, g, DType::BF16)
    }

    fn without_names(&mut self, value: Value) -> Result<Value> {
        if let Some(&nameless) = self.nameless.get(&value) {
            return Ok(nameless);
        }
        let plain = region::nameless(self.graph, value)?;
        self.nameless.insert(value, plain);
        Ok(plain)
    }

    pub(crate) fn input_ty(&self, input: usize) -> TensorType {
        self.graph.ty(self.inputs[input]).clone()
    }

    pub(crate) fn output_ty(&self, output: usize) -> TensorType {
        self.graph.ty(self.outputs[output]).clone()
    }

    /// The zero of a value's element type.
    pub(crate) fn zero_of(&mut self, value: Value) -> Result<Value> {
        let dtype = self.graph.ty(value).dtype;
        self.graph.scalar(Scalar::zero(dtype))
    }

    /// `g` where `mask` is not zero, else zero.
    pub(crate) fn masked(&mut self, mask: Value, g: Value) -> Result<Value> {
        let zero = self.zero_of(g)?;
        self.graph.emit_one(Op::Select, &[mask, g, zero])
    }

    /// Sums a cotangent over the axes along which an input was broadcast.
    fn unbroadcast(&mut self, g: Value, input: usize) -> Result<Value> {
        let sizes: Sizes = self.input_ty(input).shape.sizes().into();
        region::unbroadcast(self.graph, g, &sizes)
    }

    /// The contribution to an input that may have been broadcast; computed only where it is needed.
    fn contribution(
        &mut self,
        input: usize,
        make: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Option<Value>> {
        if !self.needs_gradient(input) {
            return Ok(None);
        }
        let contribution = make(self)?;
        Ok(Some(self.unbroadcast(contribution, input)?))
    }
}

/// The reverse pass over one graph.
struct ReversePass<'a> {
    graph: &'a mut Graph,
    /// For each node before the pass, whether each output depends on a variable.
    varied: Vec<SmallVec<[bool; 1]>>,
    cotangents: Vec<SmallVec<[Option<Value>; 1]>>,
    nameless: FxHashMap<Value, Value>,
    /// The values that the forward loops keep for their reverse, by node.
    loops: FxHashMap<u32, loops::SavedLoop>,
}

impl<'a> ReversePass<'a> {
    fn new(graph: &'a mut Graph, wrt: &[Value], loops: FxHashMap<u32, loops::SavedLoop>) -> ReversePass<'a> {
        let varied = reach::varied(graph, wrt);
        let cotangents = graph.nodes().iter().map(|node| smallvec![None; node.outputs.len()]).collect();
        ReversePass { graph, varied, cotangents, nameless: FxHashMap::default(), loops }
    }

    fn is_varied(&self, value: Value) -> bool {
        self.varied[value.node as usize][value.output as usize]
    }

    /// Visits every node once, the last first: all uses of a value are visited before it.
    fn run(&mut self) -> Result<()> {
        for node in (0..self.varied.len()).rev() {
            let reached = self.cotangents[node].iter().any(Option::is_some);
            let inputs = self.graph.nodes()[node].inputs.clone();
            if reached && inputs.iter().any(|&input| self.is_varied(input)) {
                // Nodes of the reverse get the location of the forward node.
                let location = self.graph.nodes()[node].location.clone();
                let before = self.graph.set_location(location.clone());
                let visited = self.visit(node, inputs);
                self.graph.set_location(before);
                visited.map_err(|error| error.at(location))?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, node: usize, inputs: Values) -> Result<()> {
        let op = self.graph.nodes()[node].op.clone();
        let outputs = self.graph.outputs(node);
        let g = self.cotangents[node].clone();
        let needed = inputs.iter().map(|&input| self.is_varied(input)).collect();
        let saved = self.loops.remove(&(node as u32));
        let (graph, nameless) = (&mut *self.graph, &mut self.nameless);
        let mut site = Site { graph, nameless, inputs: inputs.clone(), outputs, needed };
        match rule(&mut site, &op, &g, saved)? {
            Vjp::Flows(contributions) => {
                debug_assert_eq!(contributions.len(), inputs.len(), "{op:?}");
                inputs
                    .into_iter()
                    .zip(contributions)
                    .try_for_each(|(input, contribution)| self.accumulate(input, contribution))
            }
            Vjp::To(contributions) => contributions
                .into_iter()
                .try_for_each(|(value, contribution)| self.accumulate(value, contribution)),
            Vjp::Zero => Ok(()),
            Vjp::Refused { hint } => Err(ErrorKind::NoGradient { op: form::name(&op), hint }.into()),
        }
    }

    fn accumulate(&mut self, value: Value, contribution: Contribution) -> Result<()> {
        // Rules may return contributions to inputs that need none.
        if !self.is_varied(value) {
            return Ok(());
        }
        match contribution {
            Contribution::None => Ok(()),
            Contribution::Whole(cotangent) => self.add(value, cotangent),
            Contribution::Window { update, starts, operands } => {
                let update = self.fit(value, update)?;
                let sizes = self.graph.ty(value).shape.without_names();
                let before = self.cotangents[value.node as usize][value.output as usize];
                let sum = match before {
                    None => region::embed_window(self.graph, update, starts, &operands, &sizes)?,
                    Some(before) => {
                        let lengths = self.graph.ty(update).shape.sizes().into();
                        let window = region::window(self.graph, before, starts.clone(), &operands, lengths)?;
                        let sum = self.graph.add(window, update)?;
                        let operands: Values = [before, sum].into_iter().chain(operands).collect();
                        self.graph.emit_one(Op::PutSlice { starts }, &operands)?
                    }
                };
                self.cotangents[value.node as usize][value.output as usize] = Some(sum);
                Ok(())
            }
        }
    }

    /// Adds to the cotangent of a value.
    fn add(&mut self, value: Value, cotangent: Value) -> Result<()> {
        let cotangent = self.fit(value, cotangent)?;
        assert_eq!(
            self.graph.ty(cotangent).shape,
            self.graph.ty(value).shape.without_names(),
            "the cotangent of {:?}",
            self.graph.node(value).op
        );
        let sum = &mut self.cotangents[value.node as usize][value.output as usize];
        *sum = Some(match *sum {
            None => cotangent,
            Some(before) => self.graph.add(before, cotangent)?,
        });
        Ok(())
    }

    /// A cotangent converted for its value: real where the value is real, and at least f32.
    fn fit(&mut self, value: Value, cotangent: Value) -> Result<Value> {
        let (ty, got) = (cotangent_type(self.graph.ty(value)), self.graph.ty(cotangent).dtype);
        let real =
            if got.is_complex() && !ty.dtype.is_complex() { self.graph.real(cotangent)? } else { cotangent };
        // A conversion to integers passes gradients, and does not round them.
        let is_integer = !self.graph.ty(value).dtype.is_inexact();
        let dtype = if is_integer { ty.dtype.merge(self.graph.ty(real).dtype) } else { ty.dtype };
        region::convert(self.graph, real, dtype)
    }

    fn take(&self, value: Value) -> Option<Value> {
        self.cotangents[value.node as usize][value.output as usize]
    }
}

/// The contributions of the cotangents of a node's outputs to its inputs. `g` has an entry for each output,
/// at least one of them not None.
fn rule(site: &mut Site<'_>, op: &Op, g: &[Option<Value>], saved: Option<loops::SavedLoop>) -> Result<Vjp> {
    let first = || g[0].expect("a node with one output is visited for its cotangent");
    match op {
        Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_) | Op::Iota { .. } | Op::Eye { .. } => {
            Ok(Vjp::Zero)
        }

        Op::Unary(op) => elementwise::unary(site, *op, first()),
        Op::Binary(op) => elementwise::binary(site, *op, first()),
        // Conversions to integers pass gradients.
        Op::AsType { .. } | Op::Bitcast { .. } => Ok(Vjp::one(first())),
        Op::Select => elementwise::select(site, first()),
        Op::Clip => elementwise::clip(site, first()),

        Op::Reshape { .. } | Op::Squeeze { .. } => shape::reshape(site, first()),
        Op::Broadcast { axes, .. } => shape::broadcast(site, axes, first()),
        Op::Transpose { axes } => shape::transpose(site, axes, first()),
        Op::Pad { config } => shape::pad(site, config, first()),
        Op::Reverse { .. } => Ok(Vjp::one(site.graph.emit_one(op.clone(), &[first()])?)),
        Op::Concatenate { axis } => shape::concatenate(site, *axis, first()),
        Op::Stack { axis, .. } => shape::stack(site, *axis, first()),
        Op::Slice { starts, lengths, strides } => shape::slice(site, starts, lengths, strides, first()),
        Op::PutSlice { starts } => shape::put_slice(site, starts, first()),

        Op::Reduce { op, axes, keep_axes } => reduce::reduce(site, *op, axes, *keep_axes, first()),
        Op::ArgReduce { .. } => Ok(Vjp::Zero),

        Op::Dot { contract_a, batch_a, contract_b, batch_b } => {
            linalg::dot(site, (contract_a, batch_a), (contract_b, batch_b), first())
        }

        Op::Gather { axes } => index::gather(site, axes, first()),
        Op::Scatter { op, axes } => index::scatter(site, *op, axes, first()),
        Op::Sort { axis, direction } => order::sort(site, *axis, *direction, first()),
        Op::Argsort { .. } => Ok(Vjp::Zero),
        Op::Window { op, window } => window::window(site, *op, window, first()),
        Op::WindowScatter { op, window } => window::scatter(site, *op, window, first()),
        Op::Conv(op) => window::conv(site, op, first()),
        Op::Fft { op, axis, length, eps } => fourier::fft(site, *op, *axis, *length, *eps, first()),
        Op::TriangularSolve { lower, left_side, transform_a } => {
            matrix::triangular_solve(site, *lower, *left_side, *transform_a, first())
        }
        Op::Collective(op) => collective::collective(site, op, first()),
        Op::Fold(_) | Op::WindowFold(_) => Ok(Vjp::Refused {
            hint: "use sum, product, reduce_max or another named reduction, stop_grad, or custom_grad",
        }),

        Op::Cond(op) => control::cond(site, op, g),
        Op::While(op) => loops::while_(site, op, g, saved),
        Op::CustomGrad(op) => control::custom_grad(site, op, g),
        Op::Implicit(op) => implicit::implicit(site, op, g),
        Op::StopGrad => Ok(Vjp::Zero),
        Op::Mark { .. } | Op::Transfer { .. } => Ok(Vjp::one(first())),
        // The hook has run forward and does not run again.
        Op::Barrier | Op::Hook(_) => Ok(Vjp::flows(g.iter().copied())),
        Op::RuntimeCall(_) => Ok(Vjp::Refused {
            hint: "give its result a gradient with custom_grad, or keep its value out with stop_grad",
        }),

        Op::Block(block) => block::rule(site, block, g),
        Op::UserBlock(op) => block::user(site, op, g),
    }
}
