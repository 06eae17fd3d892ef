//! Types of ops with regions. The builder makes the regions' signatures fit; errors of users are checked
//! here.

use super::window;
use crate::error::{ErrorKind, Result};
use crate::op::{CondOp, CustomGradOp, FoldOp, ImplicitOp, Outputs, UserBlockOp, WhileOp, WindowFoldOp};
use crate::region::Region;
use crate::shape::TensorType;

/// One scalar predicate for each branch but the last; all branches return the same types.
pub(super) fn cond(op: &CondOp, operands: &[&TensorType]) -> Result<Outputs> {
    let (predicates, captures) = operands.split_at(op.branches.len() - 1);
    for predicate in predicates {
        require_predicate("cond", predicate)?;
    }
    for (position, branch) in op.branches.iter().enumerate() {
        require_inputs("cond", branch, captures);
        let expected = op.branches[0].results().len();
        if branch.results().len() != expected {
            let got = branch.results().len();
            return Err(ErrorKind::BranchCount { op: "cond", branch: position, got, expected }.into());
        }
        let types = op.branches[0].result_types().zip(branch.result_types());
        for (index, (expected, got)) in types.enumerate() {
            if expected != got {
                return Err(ErrorKind::LoopState {
                    op: "cond",
                    what: format!("result of branch {position}, value"),
                    index,
                    expected: expected.clone(),
                    got: got.clone(),
                    hint: "",
                }
                .into());
            }
        }
    }
    Ok(op.branches[0].result_types().cloned().collect())
}

/// The body returns the state's types; the condition returns a scalar.
pub(super) fn while_(op: &WhileOp, operands: &[&TensorType]) -> Result<Outputs> {
    let state = &operands[..op.state];
    require_inputs("while", &op.cond, operands);
    require_inputs("while", &op.body, operands);
    if op.cond.results().len() != 1 {
        let got = op.cond.results().len();
        return Err(ErrorKind::RegionResults { op: "while", what: "condition", got, expected: 1 }.into());
    }
    for predicate in op.cond.result_types() {
        require_predicate("while", predicate)?;
    }
    let got = op.body.results().len();
    if got != state.len() {
        let expected = state.len();
        return Err(ErrorKind::RegionResults { op: "while", what: "body", got, expected }.into());
    }
    for (index, (expected, got)) in state.iter().zip(op.body.result_types()).enumerate() {
        if *expected != got {
            return Err(ErrorKind::LoopState {
                op: "while",
                what: "state".to_owned(),
                index,
                expected: (*expected).clone(),
                got: got.clone(),
                hint: state_hint(expected, got),
            }
            .into());
        }
    }
    Ok(state.iter().map(|ty| (*ty).clone()).collect())
}

/// A hint about the usual reasons for a change of a loop state's type.
pub(crate) fn state_hint(before: &TensorType, after: &TensorType) -> &'static str {
    if !before.dtype.is_inexact() && after.dtype.is_inexact() {
        "; start from a float, as in 0.0"
    } else if before.dtype != after.dtype {
        "; convert with as_type before the loop or in the body"
    } else if before.shape.sizes() != after.shape.sizes() {
        "; broadcast the state before the loop"
    } else {
        "; rename the axes before the loop"
    }
}

/// The values pass through.
pub(super) fn custom_grad(op: &CustomGradOp, operands: &[&TensorType]) -> Result<Outputs> {
    let rules = [
        ("custom_grad", "gradient function", op.rules.reverse(), op.inputs),
        ("custom_jvp", "tangent function", op.rules.forward(), op.values),
        ("checkpoint", "recomputed function", op.rules.recomputed(), op.values),
    ];
    for (op, what, rule, expected) in rules {
        let got = rule.map_or(expected, |rule| rule.results().len());
        if got != expected {
            return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
        }
    }
    Ok(operands[..op.values].iter().map(|ty| (*ty).clone()).collect())
}

/// The values pass through. Each has a residual of its type.
pub(super) fn implicit(op: &ImplicitOp, operands: &[&TensorType]) -> Result<Outputs> {
    let regions = [("condition", Some(&op.condition)), ("preconditioner", op.preconditioner.as_ref())];
    for (what, region) in regions {
        let Some(region) = region else { continue };
        let (got, expected) = (region.results().len(), op.values);
        if got != expected {
            return Err(ErrorKind::RegionResults { op: "implicit", what, got, expected }.into());
        }
        for (index, (got, &expected)) in region.result_types().zip(operands).enumerate() {
            if got != expected {
                let (got, expected) = (got.clone(), expected.clone());
                return Err(ErrorKind::CallResult { op: "implicit", index, got, expected }.into());
            }
        }
    }
    Ok(operands[..op.values].iter().map(|ty| (*ty).clone()).collect())
}

/// The result types of the default.
pub(super) fn user_block(op: &UserBlockOp, operands: &[&TensorType]) -> Outputs {
    require_inputs("block", &op.default, operands);
    op.default.result_types().cloned().collect()
}

/// The tensor without the reduced axes, in the start's dtype. One element of the start's dtype for each
/// position of the window.
pub(super) fn fold(op: &FoldOp, operands: &[&TensorType]) -> Result<TensorType> {
    let (x, acc) = (operands[0], operands[1]);
    require_fold("reduce", &op.fun, acc)?;
    TensorType::new(acc.dtype, x.shape.reduced(&op.axes, op.keep_axes))
}

/// One element of the start's dtype for each place of the window.
pub(super) fn window_fold(op: &WindowFoldOp, operands: &[&TensorType]) -> Result<TensorType> {
    let (x, acc) = (operands[0], operands[1]);
    require_fold("window_reduce", &op.fun, acc)?;
    TensorType::new(acc.dtype, window::position_counts("window_reduce", x, &op.window)?)
}

/// The start is a scalar, and the function returns a scalar of its type.
fn require_fold(op: &'static str, fun: &Region, acc: &TensorType) -> Result<()> {
    if acc.shape.rank() != 0 {
        return Err(ErrorKind::NotScalar { op, what: "the accumulator", got: acc.clone() }.into());
    }
    let got = fun.results().len();
    if got != 1 {
        return Err(ErrorKind::RegionResults { op, what: "function", got, expected: 1 }.into());
    }
    for got in fun.result_types() {
        if got != acc {
            let (expected, got) = (acc.clone(), got.clone());
            return Err(ErrorKind::FoldResult { op, got, expected }.into());
        }
    }
    Ok(())
}

fn require_predicate(op: &'static str, got: &TensorType) -> Result<()> {
    if got.shape.rank() == 0 {
        return Ok(());
    }
    Err(ErrorKind::Predicate { op, got: got.clone() }.into())
}

/// A region's inputs are exactly the node's operands: an internal invariant.
fn require_inputs(op: &str, region: &Region, operands: &[&TensorType]) {
    assert!(
        region.inputs().iter().eq(operands.iter().copied()),
        "{op}: the region takes {:?}, the node passes {operands:?}",
        region.inputs()
    );
}
