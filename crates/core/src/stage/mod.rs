//! Stages: a closed region, cut into a chain of regions that together compute the same results.
//!
//! [`split`] passes every node to a decider and cuts according to its decisions, like Nx.Defn.Graph. Nx
//! computes a value that both sides of a cut need once on each side; here nothing is computed twice. Each
//! node is in the first stage that needs it, and values that later stages use are outputs of that stage. A
//! stage takes only values that it uses, each once. [`split_by`] has predefined deciders, [`Chain`] runs
//! stages in sequence.
//!
//! Constants are not computation: they are copied into every stage that uses them and are not passed between
//! stages, so that a compiler can simplify a stage like the whole graph.
//!
//! Each cut makes a stage of the nodes that the values at the cut need and that no earlier stage has
//! (`cut`). A value that one stage computes and another uses becomes an output of the first and an input of
//! the second (`build`); nothing else is passed on. Each effect depends on the effect before it. The
//! balanced decider uses the cost model ([`cost`](crate::cost)).
//!
//! A tensor that the function captured is a capture of every stage that uses it. Captures are a stage's
//! last inputs and are not passed at each run. For engines that run stages in another way, `run` also
//! computes which stages wait for which, and the last use of each value.

mod balance;
mod build;
mod cut;
mod error;
mod pipeline;
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
pub use run::{Chain, StageExecutable, check, last_uses, run, waits};
pub use split::{Visit, split, split_with};

use crate::error::Result;
use crate::op::Op;
use crate::region::Region;
use crate::shape::TensorType;

/// A decider's choice of cuts at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// No cut.
    None,
    /// End a stage that computes the node's operands.
    Before,
    /// End a stage that computes the node.
    After,
    /// Both: the node is a stage of its own.
    Both,
}

impl Decision {
    /// Every decision.
    pub const ALL: &'static [Decision] = &[Decision::None, Decision::Before, Decision::After, Decision::Both];

    /// The public name.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::None => "none",
            Decision::Before => "before",
            Decision::After => "after",
            Decision::Both => "both",
        }
    }

    /// Parses a decision.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Decision> {
        let found = Decision::ALL.iter().copied().find(|decision| decision.name() == name);
        found.ok_or_else(|| StageError::Decision { given: format!("{name:?}") }.into())
    }
}

/// The source of a stage's input. Arguments of the whole graph sort first, then outputs of stages, then
/// captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A parameter of the whole graph.
    Argument(usize),
    /// An output of an earlier stage.
    Output {
        /// The position of the stage.
        stage: usize,
        /// The index among its outputs.
        output: usize,
    },
    /// A capture of the whole graph, by its number. It is a capture of the stage too.
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
    /// The source for an input of a whole graph with this number of parameters.
    fn input(index: usize, parameters: usize) -> Source {
        match index.checked_sub(parameters) {
            Some(capture) => Source::Capture(capture),
            None => Source::Argument(index),
        }
    }

    /// The number of the capture, if this is one.
    pub fn capture(&self) -> Option<usize> {
        match self {
            Source::Capture(index) => Some(*index),
            Source::Argument(_) | Source::Output { .. } => None,
        }
    }
}

/// One part of a split graph. Its region returns the values that later stages use; the last stage's region
/// returns the results of the whole graph.
#[derive(Clone, Debug)]
pub struct Stage {
    position: usize,
    region: Arc<Region>,
    sources: Vec<Source>,
    whole: Arc<Whole>,
}

/// The data that all stages of one split share.
#[derive(Debug)]
struct Whole {
    /// A hash of the graph and its cuts.
    split: u64,
    /// The types of the parameters, then of the captures.
    inputs: Vec<TensorType>,
    parameters: usize,
    stages: usize,
}

/// The parts from which a stage can be rebuilt; see [`Stage::from_parts`].
#[derive(Clone, Debug)]
pub struct Parts {
    /// See [`Stage::split`].
    pub split: u64,
    /// See [`Stage::position`].
    pub position: usize,
    /// See [`Stage::count`].
    pub stages: usize,
    /// The types of the whole graph's parameters, then of its captures.
    pub inputs: Vec<TensorType>,
    /// The number of parameters among them.
    pub parameters: usize,
    /// See [`Stage::sources`].
    pub sources: Vec<Source>,
    /// See [`Stage::region`].
    pub region: Arc<Region>,
}

impl Stage {
    /// Builds a stage from its parts.
    ///
    /// # Errors
    /// A sentence about parts that do not form a stage.
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
        let parameter_sources = sources.iter().filter(|source| source.capture().is_none()).count();
        for (source_count, inputs, what) in [
            (parameter_sources, region.parameter_count(), "parameters"),
            (sources.len() - parameter_sources, region.capture_count(), "captures"),
        ] {
            if source_count != inputs {
                return Err(format!("{source_count} sources for {inputs} {what}, one for each is required"));
            }
        }
        for (source, ty) in sources.iter().zip(region.inputs()) {
            let (is_known, expected) = match source {
                Source::Argument(index) => (*index < parameters, inputs.get(*index)),
                Source::Output { stage, output: _ } => (*stage < position, Some(ty)),
                Source::Capture(index) => (true, inputs[parameters..].get(*index)),
            };
            if !is_known || expected != Some(ty) {
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

    /// The parts of the stage.
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

    /// A number that is the same for all stages of one split, and differs for other graphs and other splits.
    pub fn split(&self) -> u64 {
        self.whole.split
    }

    /// The position of the stage in its split.
    pub fn position(&self) -> usize {
        self.position
    }

    /// A number that differs between stages, also of other graphs and other splits; it is the same in every
    /// process of one build.
    pub fn id(&self) -> u64 {
        self.id_at(self.position)
    }

    /// The id of the stage at a position of the same split.
    pub fn id_at(&self, position: usize) -> u64 {
        let mut hasher = FxHasher::default();
        (self.whole.split, position).hash(&mut hasher);
        hasher.finish()
    }

    /// The stage's computation. Each of its inputs is used. Its parameters are passed in at each run; tensors
    /// that the whole graph captured are captures here too.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The source of each input: ascending and distinct.
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

    /// The types of the whole graph's parameters.
    pub fn arguments(&self) -> &[TensorType] {
        &self.whole.inputs[..self.whole.parameters]
    }

    /// The types of the whole graph's captures.
    pub fn captures(&self) -> &[TensorType] {
        &self.whole.inputs[self.whole.parameters..]
    }

    /// The number of stages in the split.
    pub fn count(&self) -> usize {
        self.whole.stages
    }
}
