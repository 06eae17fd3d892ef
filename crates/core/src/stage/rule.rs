//! Predefined deciders.

use super::balance;
use super::build::build;
use super::cut::{Cuts, is_op};
use super::{Decision, Stage, StageError, split};
use crate::error::Result;
use crate::form::all_names;
use crate::op::Op;
use crate::region::Region;
use crate::shape::Name;

/// A rule for cuts, in place of a decider function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// After every so many ops, in the order in which a decider would see them. Every stage but the last has
    /// exactly this number of ops.
    Every(usize),
    /// At the ops of some names.
    Ops {
        /// The public names.
        names: Vec<String>,
        /// The sides on which to cut.
        decision: Decision,
    },
    /// After marks.
    Marks(Marks),
    /// Into this number of stages: the heaviest has little more work than the least possible, with the least
    /// traffic between stages. Work is [`NodeCost::work`](crate::cost::NodeCost::work).
    Balanced(usize),
}

/// A selection of marks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Marks {
    /// All.
    All,
    /// Those of some names.
    Named(Vec<Name>),
}

/// Splits a region by a rule. Constants do not count as ops.
///
/// # Errors
/// A count of zero, more stages than there are ops, an unknown op, and a mark that the graph does not have.
pub fn split_by(region: &Region, rule: &Rule) -> Result<Vec<Stage>> {
    match rule {
        Rule::Every(0) => {
            let required = "1 or more".to_owned();
            Err(StageError::Count { what: "the number of ops in a stage", given: 0, required }.into())
        }
        Rule::Every(count) => Ok(cut_after(region, |ops| (*count..ops.len()).step_by(*count).collect())),
        Rule::Ops { names, decision } => {
            check_names(names)?;
            split(region, |visit| {
                let is_named = names.iter().any(|name| name == visit.name());
                Ok(if is_named { *decision } else { Decision::None })
            })
        }
        Rule::Marks(marks) => {
            check_marks(region, marks)?;
            split(region, |visit| {
                let Op::Mark { name } = &visit.node().op else { return Ok(Decision::None) };
                Ok(if marks.have(name) { Decision::After } else { Decision::None })
            })
        }
        Rule::Balanced(stages) => {
            let cuts = Cuts::new(region);
            let nodes = region.graph().nodes();
            let ops = cuts.order(region).into_iter().filter(|&at| is_op(&nodes[at])).count();
            let most = ops.max(1);
            if !(1..=most).contains(stages) {
                let required = format!("1 to {most}, as the graph has {ops} ops");
                let what = "the number of stages";
                return Err(StageError::Count { what, given: *stages, required }.into());
            }
            Ok(cut_after(region, |ops| balance::balanced(region, ops, *stages)))
        }
    }
}

impl Marks {
    fn have(&self, mark: &Name) -> bool {
        match self {
            Marks::All => true,
            Marks::Named(names) => names.contains(mark),
        }
    }
}

/// Cuts a region after these numbers of ops, ascending.
fn cut_after(region: &Region, cut_points: impl FnOnce(&[usize]) -> Vec<usize>) -> Vec<Stage> {
    let mut cuts = Cuts::new(region);
    let order = cuts.order(region);
    let nodes = region.graph().nodes();
    let ops: Vec<usize> = order.iter().copied().filter(|&at| is_op(&nodes[at])).collect();
    let mut start = 0;
    for cut in cut_points(&ops) {
        cuts.end_stage(ops[start..cut].to_vec(), &[]);
        start = cut;
    }
    build(region, cuts.finish(&order))
}

fn check_names(names: &[String]) -> Result<()> {
    let known = all_names();
    for name in names {
        // Constants and inputs compute nothing, so that there is nothing to cut.
        let (problem, required) = if !known.contains(&name.as_str()) {
            ("is unknown", "the public name of an op")
        } else if ["parameter", "constant", "tensor"].contains(&name.as_str()) {
            ("computes nothing", "one that does")
        } else {
            continue;
        };
        return Err(StageError::Op { name: name.clone(), problem, required }.into());
    }
    Ok(())
}

fn check_marks(region: &Region, marks: &Marks) -> Result<()> {
    let mut present: Vec<&Name> = Vec::new();
    for node in region.graph().nodes() {
        if let Op::Mark { name } = &node.op
            && !present.contains(&name)
        {
            present.push(name);
        }
    }
    if present.is_empty() {
        return Err(StageError::NoMark.into());
    }
    if let Marks::Named(names) = marks
        && let Some(unknown) = names.iter().find(|name| !present.contains(name))
    {
        let known: Vec<String> = present.iter().map(|name| format!("{name:?}")).collect();
        let (name, known) = (unknown.to_string(), known.join(", "));
        return Err(StageError::UnknownMark { name, known }.into());
    }
    Ok(())
}
