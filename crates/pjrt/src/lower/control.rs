//! Control flow (operations with regions), and hooks.

use defn_core::op::{CondOp, MemorySpace, Outputs, WhileOp};
use defn_core::region::Region;
use defn_core::{Location, TensorType};

use super::text::{RegionText, Ssa, Ty, Writer};
use super::{LowerError, Lowering, Operands, Result, tensor};
use crate::element::ElementType as E;

impl Lowering {
    /// A value in another memory, by the call that XLA's passes for host memory expect. On the host it is the same one.
    pub(super) fn transfer(&mut self, x: &Operands<'_>, to: MemorySpace, out: &TensorType) -> Ssa {
        if self.writer.on_host {
            return x.values[0].clone();
        }
        let memory = match to {
            MemorySpace::Device => "device",
            MemorySpace::Host => "pinned_host",
        };
        let attributes = format!(
            "call_target_name = \"annotate_device_placement\", has_side_effect = true, \
             mhlo.frontend_attributes = {{_xla_buffer_placement = \"{memory}\"}}"
        );
        self.writer.op("custom_call", &[&x.values[0]], &attributes, tensor(out))
    }

    /// Writes a region inside an operation. While it does, `self` and `w` exchange their writers.
    fn inner(&mut self, w: &mut Writer, region: &Region, inputs: &[Ssa]) -> Result<Vec<Ssa>> {
        std::mem::swap(&mut self.writer, w);
        self.depth += 1;
        let results = self.region(region, inputs);
        self.depth -= 1;
        std::mem::swap(&mut self.writer, w);
        results
    }

    /// Exactly one branch runs: that of the first nonzero predicate, else the last.
    pub(super) fn cond(&mut self, op: &CondOp, x: &Operands<'_>, outputs: &Outputs) -> Result<Vec<Ssa>> {
        let count = op.branches.len() - 1;
        let captures = x.values[count..].to_vec();
        let w = &mut self.writer;
        let index_constant = |w: &mut Writer, at: usize| {
            let ty = Ty::scalar(E::S32);
            w.op("constant", &[], &format!("value = dense<{at}> : {ty}"), ty.clone())
        };
        let mut chosen = index_constant(w, count);
        for at in (0..count).rev() {
            let pred = w.load(&x.values[at], x.types[at].dtype);
            let (pred, this) = (w.truth(&pred), index_constant(w, at));
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

    /// `value` if a scalar predicate holds, else the result of a region on `inputs`, which runs only in that case.
    pub(super) fn value_or_region(
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

    /// Repeats the body while the condition is nonzero.
    pub(super) fn while_(&mut self, op: &WhileOp, x: &Operands<'_>, outputs: &Outputs) -> Result<Vec<Ssa>> {
        self.has_unbounded_loop |= op.trips.is_none();
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
                counters.iter().for_each(|&at| w.mark_non_negative(&state[at]));
                this.borrow_mut().inner(w, &op.body, &with_captures(state))
            }),
        };
        let operands: Vec<&Ssa> = state.iter().collect();
        let values = writer.op_with("while", &operands, "", vec![cond, body], &results);
        self.writer = writer;
        values
    }

    /// Passes the values on, and also makes them outputs of the program.
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
}
