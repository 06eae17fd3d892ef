//! Properties of every cut of every graph: its stages compute the same results, each node once, and only used
//! values pass between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::bounded::bounded;
use crate::common::digest::{Literally, Notes, bytes, digests, seeded};
use crate::common::{regions, scalars};
use defn_core::backend::{Checks, Compiler};
use defn_core::evaluator::Evaluator;
use defn_core::form::name;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{BinaryOp, CondOp, HookOp, Op, WhileOp};
use defn_core::region::Region;
use defn_core::stage::{self, Decision, Rule, Source, Stage, StageExecutable};
use defn_core::{DType, Scalar, Tensor, TensorType, pass, verify};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The largest number of bytes of a value. Every value of a run is kept until it ends.
const MAX_BYTES: usize = 1 << 20;

/// Programs with every op, and some with many effects.
fn programs() -> impl Strategy<Value = Region> {
    prop_oneof![3 => regions(), 1 => arithmetic()]
        .prop_map(|region| bounded(&region, 3))
        .prop_filter("its values are small", |region| largest(region) <= MAX_BYTES)
}

/// The number of bytes of the largest value.
fn largest(region: &Region) -> usize {
    let own = region.graph().nodes().iter().flat_map(|node| &node.outputs).map(TensorType::byte_size);
    let inner = region.graph().nodes().iter().flat_map(|node| node.op.regions()).map(|inner| largest(inner));
    own.chain(inner).chain(region.inputs().iter().map(TensorType::byte_size)).max().unwrap_or(0)
}

/// Decisions for the nodes in the order of visits; mostly no cut, so that stages have several nodes.
fn decisions() -> impl Strategy<Value = Vec<Decision>> {
    let decision = prop_oneof![
        8 => Just(Decision::None),
        1 => Just(Decision::Before),
        1 => Just(Decision::After),
        1 => Just(Decision::Both),
    ];
    prop::collection::vec(decision, 1..80)
}

fn split(region: &Region, decisions: &[Decision]) -> Vec<Stage> {
    let next = |_: &stage::Visit<'_>, at: usize| Ok((decisions[at % decisions.len()], at + 1));
    stage::split_with(region, 0, next).unwrap()
}

fn is_input(op: &Op) -> bool {
    name(op) == "parameter"
}

/// Whether a node computes nothing, so that several stages may have a copy.
fn is_leaf(op: &Op) -> bool {
    ["parameter", "constant", "tensor"].contains(&name(op))
}

fn computed(region: &Region) -> usize {
    region.graph().nodes().iter().filter(|node| !is_leaf(&node.op)).count()
}

/// Checks the structure of each stage, and the connections between stages.
fn check_structure(whole: &Region, stages: &[Stage]) -> Result<(), TestCaseError> {
    prop_assert!(stage::check("test", stages).is_ok());
    // Each needed node is in exactly one stage.
    let needed = pass::dce(whole).unwrap();
    prop_assert_eq!(stages.iter().map(|stage| computed(stage.region())).sum::<usize>(), computed(&needed));
    let mut consumed: BTreeSet<Source> = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (position, stage) in stages.iter().enumerate() {
        let region = stage.region();
        verify::verify(region).map_err(TestCaseError::fail)?;
        let text = region.to_text();
        prop_assert!(Region::from_text(&text).unwrap() == **region, "{}", text);
        prop_assert_eq!((stage.position(), stage.count()), (position, stages.len()));
        prop_assert!(ids.insert(stage.id()));
        // A stage has only nodes that it needs, and a stage other than the last has something to compute.
        prop_assert_eq!(&pass::dce(region).unwrap(), &**region);
        prop_assert!(stages.len() == 1 || computed(region) > 0);
        // Inputs are dense: one for each source, no source twice, each used by a node or a result.
        prop_assert_eq!(region.inputs().len(), stage.sources().len());
        let captures = stage.sources().iter().filter(|source| source.capture().is_some()).count();
        prop_assert_eq!(region.capture_count(), captures);
        let again = Stage::from_text(&stage.to_text()).unwrap();
        prop_assert_eq!(again.to_text(), stage.to_text());
        let located = stage.to_text_with_locations();
        prop_assert_eq!(Stage::from_text(&located).unwrap().to_text_with_locations(), located);
        prop_assert_eq!((again.id(), again.sources()), (stage.id(), stage.sources()));
        prop_assert!(stage.sources().windows(2).all(|pair| pair[0] < pair[1]));
        let mut used = vec![0; region.inputs().len()];
        for node in region.graph().nodes() {
            if let Op::Parameter { index, .. } = &node.op {
                used[*index] += 1;
            }
        }
        prop_assert!(used.iter().all(|&count| count == 1), "{}", text);
        for (source, ty) in stage.sources().iter().zip(region.inputs()) {
            consumed.insert(*source);
            match source {
                Source::Argument(index) => prop_assert_eq!(&whole.inputs()[*index], ty),
                Source::Capture(index) => {
                    prop_assert_eq!(&whole.inputs()[whole.parameter_count() + index], ty)
                }
                Source::Output { stage: from, output } => {
                    prop_assert!(*from < position);
                    let ty_of_output = stages[*from].region().result_types().nth(*output);
                    prop_assert_eq!(ty_of_output, Some(ty));
                }
            }
        }
    }
    // A later stage takes every output of a stage before the last.
    for stage in &stages[..stages.len() - 1] {
        for output in 0..stage.region().results().len() {
            let source = Source::Output { stage: stage.position(), output };
            prop_assert!(consumed.contains(&source));
        }
    }
    let last = stages.last().unwrap().region();
    prop_assert!(last.result_types().eq(whole.result_types()));
    // Every value has exactly one last use.
    let frees = stage::last_uses(stages);
    prop_assert_eq!(frees.iter().flatten().filter(|&&last| last).count(), consumed.len());
    Ok(())
}

/// Runs all stages, always the last one of those that need not wait.
fn run_late_first(
    stages: &[Stage],
    placed: &[StageExecutable],
    arguments: &[Tensor],
    notes: &Notes,
) -> Vec<Tensor> {
    let waits = stage::waits(stages);
    let mut outputs: Vec<Option<Vec<Tensor>>> = vec![None; stages.len()];
    for _ in stages {
        let is_ready =
            |at: &usize| outputs[*at].is_none() && waits[*at].iter().all(|&other| outputs[other].is_some());
        let next = (0..stages.len()).rev().find(is_ready).expect("a stage that is left waits for none");
        let value = |source: &Source| match source {
            Source::Argument(index) => arguments[*index].clone(),
            Source::Capture(index) => arguments[stages[next].arguments().len() + index].clone(),
            Source::Output { stage, output } => outputs[*stage].as_ref().unwrap()[*output].clone(),
        };
        let operands = stages[next].sources().iter().map(value).collect();
        outputs[next] = Some(placed[next].executable.run(&placed[next].backend, operands, notes).unwrap());
    }
    outputs.pop().unwrap().unwrap()
}

/// Compares the results and the hook calls of the whole and of its stages.
fn check_run(whole: &Arc<Region>, stages: &[Stage]) -> Result<(), TestCaseError> {
    let arguments: Vec<Tensor> =
        whole.inputs().iter().enumerate().map(|(index, ty)| seeded(ty, index)).collect();
    let (expected_notes, notes) = (Notes::default(), Notes::default());
    let placed = |region: &Arc<Region>| StageExecutable {
        executable: Arc::new(Literally(region.clone())),
        backend: digests(),
    };
    // Stages have no unused nodes.
    let whole = placed(&Arc::new(pass::dce(whole).unwrap()));
    let expected = whole.executable.run(&whole.backend, arguments.clone(), &expected_notes).unwrap();
    let placed: Vec<StageExecutable> = stages.iter().map(|stage| placed(stage.region())).collect();
    let got = stage::run(stages, &placed, arguments.clone(), &notes).unwrap();
    prop_assert_eq!(bytes(&got), bytes(&expected));
    prop_assert_eq!(&notes.0.into_inner(), &*expected_notes.0.borrow());
    // Late stages run as early as allowed.
    let notes = Notes::default();
    let got = run_late_first(stages, &placed, &arguments, &notes);
    prop_assert_eq!(bytes(&got), bytes(&expected));
    prop_assert_eq!(notes.0.into_inner(), expected_notes.0.into_inner());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn stages_compute_what_the_whole_computes(region in programs(), decisions in decisions()) {
        let region = Arc::new(region);
        let stages = split(&region, &decisions);
        check_structure(&region, &stages)?;
        check_run(&region, &stages)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn rules_cut_into_what_they_say(region in programs(), count in 1usize..20) {
        let region = Arc::new(region);
        let ops = computed(&pass::dce(&region).unwrap());
        let every = stage::split_by(&region, &Rule::Every(count)).unwrap();
        check_structure(&region, &every)?;
        check_run(&region, &every)?;
        prop_assert_eq!(every.len(), ops.div_ceil(count).max(1));
        prop_assert!(every[..every.len() - 1].iter().all(|stage| computed(stage.region()) == count));

        let balanced = stage::split_by(&region, &Rule::Balanced(count));
        if !(1..=ops.max(1)).contains(&count) {
            prop_assert!(balanced.is_err());
            return Ok(());
        }
        let balanced = balanced.unwrap();
        check_structure(&region, &balanced)?;
        check_run(&region, &balanced)?;
        prop_assert_eq!(balanced.len(), count);
    }

    #[test]
    fn loops_and_branches_are_cut_out_whole(region in programs(), side in 1usize..4) {
        let is_control = |op: &Op| ["while", "cond"].contains(&name(op));
        let decide = |visit: &stage::Visit<'_>| {
            Ok(if is_control(&visit.node().op) { Decision::ALL[side] } else { Decision::None })
        };
        let stages = stage::split(&region, decide).unwrap();
        check_structure(&region, &stages)?;
        for stage in &stages {
            let nodes = stage.region().graph().nodes();
            if nodes.iter().any(|node| is_control(&node.op)) {
                prop_assert_eq!(computed(stage.region()), 1, "{}", stage.region().to_text());
            }
        }
    }

    #[test]
    fn deciders_see_operands_first_and_every_node_once(region in regions()) {
        let mut seen = BTreeSet::new();
        let mut complaints = Vec::new();
        let stages = stage::split(&region, |visit| {
            if is_input(&visit.node().op) {
                complaints.push("a parameter");
            }
            let inputs = visit.node().inputs.iter().map(|value| value.node as usize);
            if !inputs.clone().all(|at| seen.contains(&at) || is_input(&visit.graph.nodes()[at].op)) {
                complaints.push("an operand comes later");
            }
            if !seen.insert(visit.position) {
                complaints.push("a node twice");
            }
            Ok(Decision::None)
        });
        prop_assert!(complaints.is_empty(), "{:?}", complaints);
        prop_assert_eq!(stages.unwrap().len(), 1);
        let needed = pass::dce(&region).unwrap();
        prop_assert_eq!(seen.len(), needed.graph().nodes().iter().filter(|node| !is_input(&node.op)).count());
    }
}

/// The random cuts must actually cut graphs, and reach the difficult cases.
#[test]
fn random_cuts_reach_every_case() {
    let mut runner = TestRunner::deterministic();
    let (mut most, mut control, mut effects, mut several) = (0, 0, 0, 0);
    for _ in 0..1000 {
        let region = programs().new_tree(&mut runner).unwrap().current();
        let stages = split(&region, &decisions().new_tree(&mut runner).unwrap().current());
        most = most.max(stages.len());
        if stages.len() == 1 {
            continue;
        }
        let nodes = || stages.iter().flat_map(|stage| stage.region().graph().nodes());
        control += usize::from(nodes().any(|node| !node.op.regions().is_empty()));
        effects += usize::from(stages.iter().filter(|stage| stage.region().has_effects()).count() > 1);
        several += usize::from(stages.iter().any(|stage| stage.needs().len() > 1));
    }
    assert!(
        most > 8 && control > 100 && effects > 20 && several > 100,
        "{most} {control} {effects} {several}"
    );
}

/// Programs of f64 scalars with real arithmetic: shared sums and products, loops, branches, hooks, marks.
fn arithmetic() -> impl Strategy<Value = Region> {
    prop::collection::vec((0u8..12, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40)
        .prop_map(|choices| {
            let number = TensorType::scalar(DType::F64);
            let mut graph = Graph::new();
            let inputs = vec![number.clone(); 3];
            let mut values: Vec<Value> = (0..3).map(|index| graph.parameter(index, number.clone())).collect();
            for (kind, a, b) in choices {
                let (x, y) = (*a.get(&values), *b.get(&values));
                let add = Op::Binary(BinaryOp::ADD);
                let outputs = match kind {
                    0..4 => graph.push(add, &[x, y]),
                    4..7 => graph.push(Op::Binary(BinaryOp::MULTIPLY), &[x, y]),
                    // Numbers that the simplifier treats specially, and others.
                    7 => {
                        let numbers = [1.0, 1.0, 0.5, 1.5, 0.1];
                        graph.push(Op::Constant(Scalar::new(DType::F64, *a.get(&numbers)).unwrap()), &[])
                    }
                    8 => {
                        let less = graph.push(Op::Binary(BinaryOp::LESS), &[x, y]).unwrap()[0];
                        let branch = |op: BinaryOp| Arc::new(pair(op));
                        let branches =
                            [branch(BinaryOp::ADD), branch(BinaryOp::MULTIPLY)].into_iter().collect();
                        graph.push(Op::Cond(CondOp { branches }), &[less, x, y])
                    }
                    9 => graph.push(Op::While(doubling()), &[x, y]),
                    10 => graph.push(Op::Hook(HookOp { slot: 0, name: None }), &[x]),
                    _ => graph.push(Op::Mark { name: "m".into() }, &[x]),
                };
                values.extend(outputs.unwrap());
            }
            let results: Values = values[values.len().saturating_sub(2)..].iter().copied().collect();
            Region::new(graph, inputs, 3, results)
        })
}

/// `op(x, y)` on two captures.
fn pair(op: BinaryOp) -> Region {
    let number = TensorType::scalar(DType::F64);
    let mut graph = Graph::new();
    let (x, y) = (graph.parameter(0, number.clone()), graph.parameter(1, number.clone()));
    let results = graph.push(Op::Binary(op), &[x, y]).unwrap();
    Region::new(graph, vec![number.clone(), number], 0, results)
}

/// `while x < 100: x = x + x + y`, which ends since all numbers are positive.
fn doubling() -> WhileOp {
    let number = TensorType::scalar(DType::F64);
    let inputs = vec![number.clone(), number.clone()];
    let mut graph = Graph::new();
    let x = graph.parameter(0, number.clone());
    let limit = graph.push(Op::Constant(Scalar::new(DType::F64, 100.0).unwrap()), &[]).unwrap()[0];
    let less = graph.push(Op::Binary(BinaryOp::LESS), &[x, limit]).unwrap();
    let cond = Region::new(graph, inputs.clone(), 1, less);
    let mut graph = Graph::new();
    let (x, y) = (graph.parameter(0, number.clone()), graph.parameter(1, number));
    let twice = graph.push(Op::Binary(BinaryOp::ADD), &[x, x]).unwrap()[0];
    let next = graph.push(Op::Binary(BinaryOp::ADD), &[twice, y]).unwrap();
    let body = Region::new(graph, inputs, 1, next);
    WhileOp { state: 1, trips: None, snapshots: None, cond: Arc::new(cond), body: Arc::new(body) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn compiled_stages_run_to_the_same_bits(region in arithmetic(), decisions in decisions()) {
        let compiler = Evaluator::new(scalars());
        let compile = |region: &Arc<Region>| compiler.compile(region.clone(), Checks::default()).unwrap();
        let region = Arc::new(region);
        let stages = split(&region, &decisions);
        check_structure(&region, &stages)?;
        let number = |value: f64| {
            let scalar = Op::Constant(Scalar::new(DType::F64, value).unwrap());
            let ty = TensorType::scalar(DType::F64);
            let result = scalars().run(&scalar, Default::default(), std::slice::from_ref(&ty)).unwrap();
            Tensor::concrete(ty, result[0].clone())
        };
        let arguments = [0.3, 1.7, 42.0].map(number).to_vec();
        let (expected_notes, notes) = (Notes::default(), Notes::default());
        let expected = compile(&region).run(&scalars(), arguments.clone(), &expected_notes).unwrap();
        let placed: Vec<StageExecutable> = stages
            .iter()
            .map(|stage| StageExecutable { executable: compile(stage.region()), backend: scalars() })
            .collect();
        let got = stage::run(&stages, &placed, arguments, &notes).unwrap();
        prop_assert_eq!(bytes(&got), bytes(&expected));
        prop_assert_eq!(notes.0.into_inner(), expected_notes.0.into_inner());
    }
}
