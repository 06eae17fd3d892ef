//! Cuts according to a decider function.

use super::build::build;
use super::cut::Cuts;
use super::role::{Role, role};
use super::{Decision, Stage};
use crate::error::Result;
use crate::form;
use crate::graph::{Graph, Node};
use crate::region::Region;

/// A node that is passed to a decider.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'r> {
    /// The graph that is split.
    pub graph: &'r Graph,
    /// The position of the node in it.
    pub position: usize,
}

impl<'r> Visit<'r> {
    /// The node.
    pub fn node(&self) -> &'r Node {
        &self.graph.nodes()[self.position]
    }

    /// The public name of the node's op.
    pub fn name(&self) -> &'static str {
        form::name(&self.node().op)
    }
}

/// Splits a region according to `decide`.
///
/// It is called once for every node that the results need or that has an effect, except parameters: operands
/// first, in depth-first order from the first result. It is also called for constants, where no cut is
/// possible. It is not called for nodes inside loops and branches.
///
/// - [`Decision::Before`] ends a stage that computes the node's operands; for a node with an effect, the
///   stage also computes the previous effects.
/// - [`Decision::After`] ends a stage that computes the node.
/// - [`Decision::Both`] does one after the other.
///
/// A stage has the nodes for which it was made and all that they need and no earlier stage has; the last
/// stage has all remaining nodes. A cut with nothing to compute on one side is ignored. A loop or a branch is
/// never cut inside: every cut there is on both sides, so that the node is a stage of its own. Effects stay
/// in order.
///
/// ```
/// use defn_core::region::Region;
/// use defn_core::stage::{self, Decision, Source};
/// let region = Region::from_text("defn-ir 1
///     (f32, f32) {
///       %0 = parameter {index: 0} : f32
///       %1 = sin %0 : f32
///       %2 = cos %1 : f32
///       %3 = parameter {index: 1} : f32
///       %4 = add %2 %3 : f32
///       return %4
///     }")?;
/// let before_cos = |visit: &stage::Visit<'_>| {
///     Ok(if visit.name() == "cos" { Decision::Before } else { Decision::None })
/// };
/// let stages = stage::split(&region, before_cos)?;
/// assert_eq!(stages.len(), 2);
/// assert_eq!(stages[0].sources(), [Source::Argument(0)]);
/// assert_eq!(stages[1].sources(), [Source::Argument(1), Source::Output { stage: 0, output: 0 }]);
/// # Ok::<(), defn_core::Error>(())
/// ```
///
/// # Errors
/// The decider's.
pub fn split(region: &Region, mut decide: impl FnMut(&Visit<'_>) -> Result<Decision>) -> Result<Vec<Stage>> {
    split_with(region, (), |visit, ()| Ok((decide(visit)?, ())))
}

/// As [`split`], with a decider that takes an accumulator and returns the next.
///
/// # Errors
/// The decider's.
pub fn split_with<A>(
    region: &Region,
    mut acc: A,
    mut decide: impl FnMut(&Visit<'_>, A) -> Result<(Decision, A)>,
) -> Result<Vec<Stage>> {
    let mut cuts = Cuts::new(region);
    let order = cuts.order(region);
    let graph = region.graph();
    for &position in &order {
        let node = &graph.nodes()[position];
        let role = role(&node.op);
        if role == Role::Input {
            continue;
        }
        let (decision, next) = decide(&Visit { graph, position }, acc)?;
        acc = next;
        let (before, after) = sides(decision, role);
        if before {
            cuts.end_before(position);
        }
        if after {
            cuts.end_after(position);
        }
    }
    Ok(build(region, cuts.finish(&order)))
}

/// The sides of a node on which a decision cuts.
fn sides(decision: Decision, role: Role) -> (bool, bool) {
    let (before, after) = match decision {
        Decision::None => (false, false),
        Decision::Before => (true, false),
        Decision::After => (false, true),
        Decision::Both => (true, true),
    };
    match role {
        Role::Whole => (before || after, before || after),
        Role::Input | Role::CopiedConstant | Role::Computes => (before, after),
    }
}
