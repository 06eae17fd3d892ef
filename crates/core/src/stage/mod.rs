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

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

pub use error::StageError;
pub use rule::{Marks, Rule, split_by};
pub use run::{Chain, Placed, check, last_uses, run, waits};
pub use split::{Visit, split, split_with};

use crate::error::Result;
use crate::op::Op;
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

/// Where an input of a stage comes from. Arguments of the whole come first, then outputs of stages, then captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A parameter of the whole.
    Argument(usize),
    /// An output of an earlier stage.
    Output {
        /// The position of the stage.
        stage: usize,
        /// Which of its outputs.
        output: usize,
    },
    /// A capture of the whole, by its number among them. It is a capture of the stage too.
    Capture(usize),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Argument(index) => write!(f, "argument {index}"),
            Source::Output { stage, output } => write!(f, "output {output} of stage {stage}"),
            Source::Capture(index) => write!(f, "capture {index}"),
        }
    }
}

impl Source {
    /// An input of a whole that has so many parameters.
    fn input(index: usize, parameters: usize) -> Source {
        match index.checked_sub(parameters) {
            Some(capture) => Source::Capture(capture),
            None => Source::Argument(index),
        }
    }

    /// The number of the capture that it is, if it is one.
    pub fn capture(&self) -> Option<usize> {
        match self {
            Source::Capture(index) => Some(*index),
            Source::Argument(_) | Source::Output { .. } => None,
        }
    }
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
    /// The types of the parameters, then of the captures.
    inputs: Vec<TensorType>,
    parameters: usize,
    stages: usize,
}

/// What a stage is made of again that was taken apart; see [`Stage::from_parts`].
#[derive(Clone, Debug)]
pub struct Parts {
    /// See [`Stage::split`].
    pub split: u64,
    /// See [`Stage::position`].
    pub position: usize,
    /// See [`Stage::count`].
    pub stages: usize,
    /// The types of the parameters of the whole, then of its captures.
    pub inputs: Vec<TensorType>,
    /// How many of them are parameters.
    pub parameters: usize,
    /// See [`Stage::sources`].
    pub sources: Vec<Source>,
    /// See [`Stage::region`].
    pub region: Arc<Region>,
}

impl Stage {
    /// A stage of its parts.
    ///
    /// # Errors
    /// What is wrong with parts that no stage has, as a sentence.
    pub fn from_parts(parts: Parts) -> std::result::Result<Stage, String> {
        let Parts { split, position, stages, inputs, parameters, sources, region } = parts;
        if position >= stages {
            return Err(format!("stage {position} of {stages}, the first is stage 0"));
        }
        if parameters > inputs.len() {
            return Err(format!("{parameters} parameters of {} inputs", inputs.len()));
        }
        if let Some(pair) = sources.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("{} stands before {}, ascending sources are required", pair[0], pair[1]));
        }
        let taken = sources.iter().filter(|source| source.capture().is_none()).count();
        for (given, inputs, what) in [
            (taken, region.parameter_count(), "parameters"),
            (sources.len() - taken, region.capture_count(), "captures"),
        ] {
            if given != inputs {
                return Err(format!("{given} sources for {inputs} {what}, one for each is required"));
            }
        }
        for (source, ty) in sources.iter().zip(region.inputs()) {
            let (known, given) = match source {
                Source::Argument(index) => (*index < parameters, inputs.get(*index)),
                Source::Output { stage, output: _ } => (*stage < position, Some(ty)),
                Source::Capture(index) => (true, inputs[parameters..].get(*index)),
            };
            if !known || given != Some(ty) {
                return Err(format!("there is no {source} of the type {ty}"));
            }
        }
        let mut nodes = vec![0usize; region.inputs().len()];
        for node in region.graph().nodes() {
            if let Op::Parameter { index, ty: _ } = &node.op {
                nodes[*index] += 1;
            }
        }
        if let Some(input) = nodes.iter().position(|&count| count != 1) {
            return Err(format!("input {input} has {} nodes", nodes[input]));
        }
        let whole = Arc::new(Whole { split, inputs, parameters, stages });
        Ok(Stage { position, region, sources, whole })
    }

    /// What it is made of.
    pub fn parts(&self) -> Parts {
        Parts {
            split: self.whole.split,
            position: self.position,
            stages: self.whole.stages,
            inputs: self.whole.inputs.clone(),
            parameters: self.whole.parameters,
            sources: self.sources.clone(),
            region: self.region.clone(),
        }
    }

    /// A number that all stages of one split share, and those of other graphs and other splits do not.
    pub fn split(&self) -> u64 {
        self.whole.split
    }

    /// Where the stage stands among those of its split.
    pub fn position(&self) -> usize {
        self.position
    }

    /// A number that stages of one split do not share, nor those of other graphs and other splits; the same in every
    /// process of one build.
    pub fn id(&self) -> u64 {
        self.id_at(self.position)
    }

    /// The number of the stage at a position of the same split.
    pub fn id_at(&self, position: usize) -> u64 {
        let mut hasher = FxHasher::default();
        (self.whole.split, position).hash(&mut hasher);
        hasher.finish()
    }

    /// What the stage computes. Each of its inputs is used. What travels are its parameters; tensors that the whole
    /// captured are captures here too.
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

    /// The types of the parameters of the whole.
    pub fn arguments(&self) -> &[TensorType] {
        &self.whole.inputs[..self.whole.parameters]
    }

    /// The types of the captures of the whole.
    pub fn captures(&self) -> &[TensorType] {
        &self.whole.inputs[self.whole.parameters..]
    }

    /// How many stages the split has.
    pub fn count(&self) -> usize {
        self.whole.stages
    }
}
