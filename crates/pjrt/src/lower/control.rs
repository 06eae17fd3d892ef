//! Operations that hold regions, and composites.

use std::f64::consts::{LN_2, LN_10};
use std::sync::Arc;

use defn_core::graph::{Graph, Value};
use defn_core::op::{Block, CondOp, FoldOp, Outputs, WhileOp, WindowFoldOp};
use defn_core::region::Region;
use defn_core::{Location, TensorType, compose};

use super::text::{RegionText, Ssa, Ty, Writer};
use super::{LowerError, Lowering, Operands, Result, tensor};
use crate::element::ElementType as E;

impl Lowering {
    /// Writes a region inside an operation. The writer is lent to whoever writes the region's text.
    fn inner(&mut self, w: &mut Writer, region: &Region, inputs: &[Ssa]) -> Result<Vec<Ssa>> {
        std::mem::swap(&mut self.writer, w);
        self.depth += 1;
        let results = self.region(region, inputs);
        self.depth -= 1;
        std::mem::swap(&mut self.writer, w);
        results
    }

    /// Exactly one branch runs: that of the first predicate that is not zero, else the last.
    pub(super) fn cond(&mut self, op: &CondOp, x: &Operands<'_>, outputs: &Outputs) -> Result<Vec<Ssa>> {
        let count = op.branches.len() - 1;
        let captures = x.values[count..].to_vec();
        let w = &mut self.writer;
        let place = |w: &mut Writer, at: usize| {
            let ty = Ty::scalar(E::S32);
            w.op("constant", &[], &format!("value = dense<{at}> : {ty}"), ty.clone())
        };
        let mut chosen = place(w, count);
        for at in (0..count).rev() {
            let pred = w.load(&x.values[at], x.types[at].dtype);
            let (pred, this) = (w.truth(&pred), place(w, at));
            chosen = w.choose(&pred, &this, &chosen);
        }
        let results: Vec<Ty> = outputs.iter().map(tensor).collect();
        let mut writer = std::mem::take(&mut self.writer);
        let this = std::cell::RefCell::new(&mut *self);
        let regions = op
            .branches
            .iter()
            .map(|branch| {
                let (this, captures) = (&this, &captures);
                RegionText {
                    arguments: Vec::new(),
                    write: Box::new(move |w: &mut Writer, _: &[Ssa]| {
                        this.borrow_mut().inner(w, branch, captures)
                    }),
                }
            })
            .collect();
        let values = writer.op_with("case", &[&chosen], "", regions, &results);
        self.writer = writer;
        values
    }

    /// A value where a scalar predicate holds, else what a region makes of inputs, which runs only then.
    pub(super) fn unless(
        &mut self,
        holds: &Ssa,
        value: &Ssa,
        otherwise: &Region,
        inputs: &[Ssa],
    ) -> Result<Ssa> {
        let mut writer = std::mem::take(&mut self.writer);
        let (no, yes) = (writer.number(E::S32, 0), writer.number(E::S32, 1));
        let chosen = writer.choose(holds, &yes, &no);
        let run = RegionText {
            arguments: Vec::new(),
            write: Box::new(|w: &mut Writer, _: &[Ssa]| self.inner(w, otherwise, inputs)),
        };
        let keep = RegionText {
            arguments: Vec::new(),
            write: Box::new(|_: &mut Writer, _: &[Ssa]| Ok(vec![value.clone()])),
        };
        let results =
            writer.op_with("case", &[&chosen], "", vec![run, keep], std::slice::from_ref(&value.ty));
        self.writer = writer;
        Ok(results?.remove(0))
    }

    /// Repeats the body while the condition gives a value that is not zero.
    pub(super) fn while_(&mut self, op: &WhileOp, x: &Operands<'_>, outputs: &Outputs) -> Result<Vec<Ssa>> {
        self.is_open |= op.trips.is_none();
        let counters = self.counters(op, x);
        let (state, captures) = x.values.split_at(op.state);
        let results: Vec<Ty> = outputs.iter().map(tensor).collect();
        let predicate = op.cond.graph().ty(op.cond.results()[0]).dtype;
        let mut writer = std::mem::take(&mut self.writer);
        let this = std::cell::RefCell::new(&mut *self);
        let with_captures = |state: &[Ssa]| -> Vec<Ssa> { state.iter().chain(captures).cloned().collect() };
        let cond = RegionText {
            arguments: results.clone(),
            write: Box::new(|w: &mut Writer, state: &[Ssa]| {
                let holds = this.borrow_mut().inner(w, &op.cond, &with_captures(state))?;
                let holds = w.load(&holds[0], predicate);
                Ok(vec![w.truth(&holds)])
            }),
        };
        let body = RegionText {
            arguments: results.clone(),
            write: Box::new(|w: &mut Writer, state: &[Ssa]| {
                counters.iter().for_each(|&at| w.remember_from_zero(&state[at]));
                this.borrow_mut().inner(w, &op.body, &with_captures(state))
            }),
        };
        let operands: Vec<&Ssa> = state.iter().collect();
        let values = writer.op_with("while", &operands, "", vec![cond, body], &results);
        self.writer = writer;
        values
    }

    /// The values go on, and are outputs of the program too.
    pub(super) fn hook(
        &mut self,
        slot: usize,
        x: &Operands<'_>,
        location: Option<&Location>,
    ) -> Result<Vec<Ssa>> {
        if self.depth > 0 {
            return Err(LowerError::InnerHook { location: location.cloned() });
        }
        self.hooks.push((slot, x.values.clone()));
        Ok(x.values.clone())
    }

    pub(super) fn fold(&mut self, op: &FoldOp, x: &Operands<'_>) -> Result<Ssa> {
        let results =
            self.default(x, |graph, operands| Ok(vec![compose::fold::fold(graph, op, operands)?]))?;
        Ok(results[0].clone())
    }

    pub(super) fn window_fold(
        &mut self,
        op: &WindowFoldOp,
        x: &Operands<'_>,
        out: &TensorType,
    ) -> Result<Ssa> {
        let results = self.default(x, |graph, operands| {
            Ok(vec![compose::fold::window_fold(graph, op, operands, &out.shape)?])
        })?;
        Ok(results[0].clone())
    }

    /// A block that StableHLO has an operation for, or that rounds less than its default graph.
    pub(super) fn native(
        &mut self,
        block: &Block,
        x: &Operands<'_>,
        out: &TensorType,
    ) -> Result<Option<Ssa>> {
        Ok(match block {
            Block::Log2 => Some(self.log_to(LN_2, x, out)),
            Block::Log10 => Some(self.log_to(LN_10, x, out)),
            Block::Fft2 { op, axes, lengths, eps } => {
                Some(self.fft_along(op.each(), x, axes, lengths, *eps, out))
            }
            Block::Rfft { axis, length, eps } => Some(self.rfft(x, *axis, *length, *eps, out)),
            Block::Irfft { axis, length, eps } => Some(self.irfft(x, *axis, *length, *eps, out)),
            Block::Cholesky => Some(self.cholesky(x, out)?),
            Block::Composite(_)
            | Block::Cumulative { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::TopK { .. }
            | Block::Solve
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Determinant
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => None,
        })
    }

    /// A block by its default graph.
    pub(super) fn block(&mut self, block: &Block, x: &Operands<'_>) -> Result<Vec<Ssa>> {
        self.default(x, |graph, operands| Ok(compose::block::default(graph, block, operands)?.into_vec()))
    }

    /// What a function makes of operands in a graph of its own, written in place.
    fn default(
        &mut self,
        x: &Operands<'_>,
        make: impl FnOnce(&mut Graph, &[Value]) -> defn_core::Result<Vec<Value>>,
    ) -> Result<Vec<Ssa>> {
        let region = Arc::new(defined(x, make)?);
        self.region(&region, &x.values)
    }
}

/// What a definition makes of operands.
pub(super) fn defined(
    x: &Operands<'_>,
    make: impl FnOnce(&mut Graph, &[Value]) -> defn_core::Result<Vec<Value>>,
) -> Result<Region> {
    let mut graph = Graph::new();
    let inputs: Vec<TensorType> = x.types.iter().map(|ty| (*ty).clone()).collect();
    let operands: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = make(&mut graph, &operands)?;
    let count = inputs.len();
    Ok(Region::new(graph, inputs, count, results.into_iter().collect()))
}
