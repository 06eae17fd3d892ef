//! Control flow on vectorized tensors: regions are retraced with the vectorized axes on their inputs, by the
//! builder's functions for branches, loops and gradient rules.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::builder::{
    self, Arg, BuildControl, Clause, ImplicitRule, LinearFunction, LoopOptions, Ops, Thunk,
};
use crate::error::Result;
use crate::op::{CondOp, CustomGradOp, CustomRules, ImplicitOp, WhileOp};
use crate::region::Region;
use crate::tensor::Tensor;

fn args(tensors: Vec<Tensor>) -> Vec<Arg<Tensor>> {
    tensors.into_iter().map(Arg::Value).collect()
}

/// A conditional with given regions and a vectorized operand.
pub(super) fn cond(ops: &mut Ops, op: &CondOp, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
    let (predicates, captures) = operands.split_at(op.branches.len() - 1);
    let mut thunks: Vec<Thunk<'_>> = Vec::with_capacity(op.branches.len());
    for branch in &op.branches {
        thunks.push(Box::new(move |ops: &mut Ops| Ok(args(ops.inline(branch, captures)?))));
    }
    let otherwise = thunks.pop().expect("a conditional has at least two branches");
    let clauses: Vec<Clause<'_>> = predicates.iter().cloned().zip(thunks).collect();
    Ok(builder::cond(ops, clauses, otherwise)?.into())
}

/// A loop with given regions and a vectorized operand.
pub(super) fn while_(ops: &mut Ops, op: &WhileOp, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
    let (state, captures) = operands.split_at(op.state);
    let condition = |ops: &mut Ops, state: &[Tensor]| {
        Ok(Arg::Value(ops.inline(&op.cond, &[state, captures].concat())?.remove(0)))
    };
    let options = LoopOptions { trips: op.trips, snapshots: op.snapshots };
    let body = |ops: &mut Ops, state: &[Tensor]| Ok(args(ops.inline(&op.body, &[state, captures].concat())?));
    Ok(builder::while_(ops, state.to_vec(), options, condition, body)?.into())
}

/// Values with a given gradient rule and a vectorized operand.
pub(super) fn custom_grad(
    ops: &mut Ops,
    op: &CustomGradOp,
    operands: &[Tensor],
) -> Result<SmallVec<[Tensor; 1]>> {
    let (values, rest) = operands.split_at(op.values);
    let (inputs, captures) = rest.split_at(op.inputs);
    let applied = |rule: &Arc<Region>| -> builder::Rule<'_> {
        let (rule, captures) = (rule.clone(), captures.to_vec());
        Box::new(move |ops, given| Ok(args(ops.inline(&rule, &[given, &captures].concat())?)))
    };
    let rules = match &op.rules {
        CustomRules::Reverse(rule) => builder::Rules::Reverse(applied(rule)),
        CustomRules::Forward(rule) => builder::Rules::Forward(applied(rule)),
        CustomRules::Both { reverse, forward } => {
            builder::Rules::Both { reverse: applied(reverse), forward: applied(forward) }
        }
        CustomRules::Recompute { region, kept, offloaded } => {
            let (kept, offloaded) = (*kept, *offloaded);
            builder::Rules::Recompute { function: applied(region), kept, offloaded }
        }
    };
    Ok(builder::custom_derivative(ops, values.to_vec(), inputs.to_vec(), rules)?.into())
}

/// Values that a condition defines, and a vectorized operand.
pub(super) fn implicit(ops: &mut Ops, op: &ImplicitOp, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
    let (values, captures) = operands.split_at(op.values);
    let rule = ImplicitRule { solver: op.solver.clone(), lanes: op.lanes, holomorphic: op.holomorphic };
    let mut condition =
        |ops: &mut Ops, x: &[Tensor]| Ok(args(ops.inline(&op.condition, &[x, captures].concat())?));
    let mut approximate = op.preconditioner.as_ref().map(|preconditioner| {
        |ops: &mut Ops, r: &[Tensor]| Ok(args(ops.inline(preconditioner, &[r, captures].concat())?))
    });
    let preconditioner = approximate.as_mut().map(|function| function as LinearFunction<'_>);
    Ok(builder::with_condition(ops, values, rule, &mut condition, preconditioner)?.into())
}
