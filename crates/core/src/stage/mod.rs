//! Graphs in stages: a closed region cut into a chain of regions that together compute what it computes.
//!
//! [`split`] shows every node to a decider and cuts where it says so, as Nx.Defn.Graph does. Where that computes a
//! value on both sides of a cut once for each side, here nothing is computed twice: each node is in the first stage
//! that needs it, and what later stages use of it is among that stage's outputs. A stage takes only what it uses, each
//! value once. [`split_by`] has deciders ready made, [`Chain`] runs stages one after the other.
//!
//! What is written in the program, a constant or a tensor, is no computation: it stands in every stage that uses it
//! and does not travel, so that a compiler knows as much of a stage as of the whole.

mod balance;
mod build;
mod cut;
mod error;
pub(crate) mod role;
mod rule;
mod run;
mod split;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

pub use error::StageError;
pub use rule::{Marks, Rule, split_by};
pub use run::{Chain, Placed, check, last_uses, run, waits};
pub use split::{Visit, split, split_with};

use crate::error::Result;
use crate::region::Region;
use crate::shape::TensorType;

/// Where a decider wants a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Nowhere.
    None,
    /// A stage ends that computes the node's operands.
    Before,
    /// A stage ends that computes the node.
    After,
    /// Both: the node has a stage of its own.
    Both,
}

impl Decision {
    /// Every decision.
    pub const ALL: &'static [Decision] = &[Decision::None, Decision::Before, Decision::After, Decision::Both];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::None => "none",
            Decision::Before => "before",
            Decision::After => "after",
            Decision::Both => "both",
        }
    }

    /// The decision of a name.
    ///
    /// # Errors
    /// A name that is none of a decision.
    pub fn parse(name: &str) -> Result<Decision> {
        let found = Decision::ALL.iter().copied().find(|decision| decision.name() == name);
        found.ok_or_else(|| StageError::Decision { given: format!("{name:?}") }.into())
    }
}

/// Where an input of a stage comes from. Arguments of the whole come before outputs of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An input of the whole: its parameters, then its captures.
    Argument(usize),
    /// An output of an earlier stage.
    Output {
        /// The position of the stage.
        stage: usize,
        /// Which of its outputs.
        output: usize,
    },
}

/// One part of a graph that was split. Its region gives what later stages use; that of the last stage gives what the
/// whole gives.
#[derive(Clone, Debug)]
pub struct Stage {
    position: usize,
    region: Arc<Region>,
    sources: Vec<Source>,
    whole: Arc<Whole>,
}

/// What all stages of one split have in common.
#[derive(Debug)]
struct Whole {
    /// The graph and how it was cut, as one number.
    split: u64,
    inputs: Vec<TensorType>,
    stages: usize,
}

impl Stage {
    /// Where the stage stands among those of its split.
    pub fn position(&self) -> usize {
        self.position
    }

    /// A number that stages of one split do not share, nor those of other graphs and other splits; the same in every
    /// process of one build.
    pub fn id(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.whole.split, self.position).hash(&mut hasher);
        hasher.finish()
    }

    /// What the stage computes. All of its inputs are parameters, and each is used.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Where each input comes from: ascending, and none twice.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The stages whose outputs this one uses, ascending.
    pub fn needs(&self) -> SmallVec<[usize; 4]> {
        let mut needs: SmallVec<[usize; 4]> = SmallVec::new();
        for source in &self.sources {
            if let Source::Output { stage, output: _ } = source
                && needs.last() != Some(stage)
            {
                needs.push(*stage);
            }
        }
        needs
    }

    /// The types of the inputs of the whole.
    pub fn arguments(&self) -> &[TensorType] {
        &self.whole.inputs
    }

    /// How many stages the split has.
    pub fn count(&self) -> usize {
        self.whole.stages
    }
}
