//! The sequence of passes, applied to nested regions too.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cse::cse_owned;
use super::dce::dce_owned;
use super::fold::fold_node;
use super::simplify::{at_construction, constant};
use super::uncast::uncast;
use super::untransposed::untransposed;
use super::whole::values_of_wholes;
use super::{check, finish, rebuild, trips};
use crate::backend::Backend;
use crate::compose::{block, fold};
use crate::error::Result;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{Block, CondOp, Identity, Op, OpClass, Outputs, WhileOp};
use crate::region::Region;
use crate::scalar::{Number, Scalar};

/// Simplifies a region, nested regions first. Constants are folded on `backend`; the rewrites of
/// [`at_construction`] are applied again; known branches of a `cond` are inlined; the trips of counting
/// `while` loops are determined, and loops without trips are removed; common subexpressions and dead code are
/// eliminated.
///
/// # Errors
/// None is known; ops that the backend refuses to fold stay.
///
/// # Panics
/// When verification is on and the region was not legal before.
pub fn simplify(region: &Region, backend: &Arc<dyn Backend>) -> Result<Region> {
    check("tracing", region);
    Simplifier { backend, expands: false, simplified: FxHashMap::default() }.region(region)
}

/// As [`simplify`], for compilers that run only ops of `backend`. Ops that only pass values on, such as marks
/// and gradient rules, are removed, products read transposed matrices as they lie, and blocks without a native
/// form on the backend are replaced by their defaults.
///
/// # Errors
/// As [`simplify`].
///
/// # Panics
/// As [`simplify`].
pub fn expand(region: &Region, backend: &Arc<dyn Backend>) -> Result<Region> {
    check("tracing", region);
    Simplifier { backend, expands: true, simplified: FxHashMap::default() }.region(region)
}

struct Simplifier<'a> {
    backend: &'a Arc<dyn Backend>,
    /// Whether only ops of the backend may remain.
    expands: bool,
    /// Old and new regions by the old one's address. Both are kept alive, so that no address is reused.
    simplified: FxHashMap<*const Region, (Arc<Region>, Arc<Region>)>,
}

impl Simplifier<'_> {
    fn region(&mut self, region: &Region) -> Result<Region> {
        let shared = values_of_wholes(region);
        let rewritten = rebuild(region, |graph, position, node, inputs| {
            if shared.contains(&position)
                && let Op::Block(block) = &node.op
            {
                return self.defined(graph, block, &inputs);
            }
            self.node(graph, &node.op, inputs, &node.outputs)
        })?;
        dce_owned(cse_owned(finish("simplify", region, rewritten))?)
    }

    /// A shared region is simplified once, and remains shared.
    fn inner(&mut self, region: &Arc<Region>) -> Result<Arc<Region>> {
        if let Some((_, new)) = self.simplified.get(&Arc::as_ptr(region)) {
            return Ok(new.clone());
        }
        let new = self.region(region)?;
        let new = if new == **region { region.clone() } else { Arc::new(new) };
        self.simplified.insert(Arc::as_ptr(region), (region.clone(), new.clone()));
        self.simplified.insert(Arc::as_ptr(&new), (new.clone(), new.clone()));
        Ok(new)
    }

    /// Adds the simplified node to the graph.
    fn node(
        &mut self,
        graph: &mut Graph,
        op: &Op,
        inputs: Values,
        outputs: &crate::op::Outputs,
    ) -> Result<Values> {
        let mut op = op.map_regions(|region| self.inner(region))?;
        if let Op::Cond(cond) = &op
            && let Some(values) = self.cond(graph, cond, &inputs, outputs)?
        {
            return Ok(values);
        }
        if let Op::While(loop_) = &mut op {
            loop_.trips = loop_.trips.or_else(|| trips::counted(graph, loop_, &inputs));
            if makes_no_trip(loop_) {
                return Ok(inputs[..loop_.state].into());
            }
        }
        if self.expands
            && let Some(values) = self.expanded(graph, &op, &inputs)?
        {
            return Ok(values);
        }
        if let Some(value) = fold_node(graph, &op, &inputs, outputs, self.backend)? {
            return Ok(SmallVec::from_elem(value, 1));
        }
        if let Some(value) = at_construction(graph, &op, &inputs)? {
            return Ok(SmallVec::from_elem(value, 1));
        }
        let (op, inputs) = if self.expands { self.direct(graph, op, inputs, outputs) } else { (op, inputs) };
        graph.push_typed(op, inputs, outputs.clone())
    }

    /// A product that reads its operands as they lie, instead of what they are transposed or converted to.
    fn direct(&self, graph: &Graph, mut op: Op, mut inputs: Values, outputs: &Outputs) -> (Op, Values) {
        inputs = uncast(graph, &op, &inputs, outputs, self.backend).unwrap_or(inputs);
        if let Some((of_sources, sources)) = untransposed(graph, &op, &inputs) {
            (op, inputs) = (of_sources, sources);
            inputs = uncast(graph, &op, &inputs, outputs, self.backend).unwrap_or(inputs);
        }
        (op, inputs)
    }

    /// The expansion of an op into ops of the backend, if it is none.
    fn expanded(&mut self, graph: &mut Graph, op: &Op, inputs: &[Value]) -> Result<Option<Values>> {
        match op.class() {
            OpClass::Identity(Identity::Constant | Identity::Mark(_)) => Ok(Some(inputs.into())),
            OpClass::Identity(Identity::Transfer(_)) => Ok(None),
            OpClass::CustomGrad(op) => Ok(Some(inputs[..op.values].into())),
            OpClass::Implicit(op) => Ok(Some(inputs[..op.values].into())),
            OpClass::UserBlock(op) => self.inline(graph, &op.default, inputs).map(Some),
            OpClass::Block(block) if !self.backend.has_native(block) => {
                self.defined(graph, block, inputs).map(Some)
            }
            OpClass::Fold(_) | OpClass::WindowFold(_)
                if op.has_effect() || !self.backend.has_native_fold(op) =>
            {
                let types: SmallVec<[_; 4]> = inputs.iter().map(|&input| graph.ty(input).clone()).collect();
                let default = fold::region(op, &types.iter().collect::<SmallVec<[_; 4]>>())?;
                self.inline(graph, &default.expect("a fold"), inputs).map(Some)
            }
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Barrier
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => Ok(None),
        }
    }

    /// Adds the definition of a block.
    fn defined(&mut self, graph: &mut Graph, block: &Block, inputs: &[Value]) -> Result<Values> {
        let types: SmallVec<[_; 4]> = inputs.iter().map(|&input| graph.ty(input).clone()).collect();
        let default = block::region(block, &types.iter().collect::<SmallVec<[_; 4]>>())?;
        self.inline(graph, &default, inputs)
    }

    /// The replacement of a cond with known predicates, all or some.
    fn cond(
        &mut self,
        graph: &mut Graph,
        op: &CondOp,
        inputs: &[Value],
        outputs: &crate::op::Outputs,
    ) -> Result<Option<Values>> {
        let (predicates, captures) = inputs.split_at(op.branches.len() - 1);
        let (mut open, mut branches) = (Values::new(), SmallVec::<[Arc<Region>; 2]>::new());
        let mut last = &op.branches[predicates.len()];
        for (&predicate, branch) in predicates.iter().zip(&op.branches) {
            match constant(graph, predicate) {
                Some(scalar) if is_zero(scalar) => {}
                Some(_) => {
                    last = branch;
                    break;
                }
                None => {
                    open.push(predicate);
                    branches.push(branch.clone());
                }
            }
        }
        if open.is_empty() {
            return Ok(Some(self.inline(graph, last, captures)?));
        }
        if branches.len() + 1 == op.branches.len() {
            return Ok(None);
        }
        branches.push(last.clone());
        open.extend_from_slice(captures);
        Ok(Some(graph.push_typed(Op::Cond(CondOp { branches }), open, outputs.clone())?))
    }

    /// Adds the nodes of a region, such as a branch, in place of its op.
    fn inline(&mut self, graph: &mut Graph, branch: &Region, captures: &[Value]) -> Result<Values> {
        let outer = graph.set_location(None);
        let mut moved: Vec<Values> = Vec::with_capacity(branch.graph().len());
        for Node { op, inputs, outputs, location } in branch.graph().nodes() {
            if let Op::Parameter { index, .. } = op {
                moved.push(SmallVec::from_elem(captures[*index], 1));
                continue;
            }
            let inputs =
                inputs.iter().map(|input| moved[input.node as usize][input.output as usize]).collect();
            graph.set_location(location.clone());
            moved.push(self.node(graph, op, inputs, outputs)?);
        }
        graph.set_location(outer);
        let results = branch.results().iter();
        Ok(results.map(|result| moved[result.node as usize][result.output as usize]).collect())
    }
}

/// Whether the condition is false before the first trip. A condition with effects must run once anyway.
fn makes_no_trip(op: &WhileOp) -> bool {
    let scalar = constant(op.cond.graph(), op.cond.results()[0]);
    !op.cond.has_effects() && (op.trips == Some(0) || scalar.is_some_and(is_zero))
}

/// Whether a predicate is false: zeros of both signs are, NaN is not.
fn is_zero(scalar: Scalar) -> bool {
    match scalar.value() {
        Number::Bool(value) => !value,
        Number::Int(value) => value == 0,
        Number::Huge(value) | Number::Float(value) => value == 0.0,
        Number::Complex(value) => value.re == 0.0 && value.im == 0.0,
    }
}
