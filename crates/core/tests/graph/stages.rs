//! Stages of chosen graphs: their nodes, the values between them, runs and errors.

use std::any::Any;
use std::sync::{Arc, Mutex};

use crate::common::Bytes;
use defn_core::backend::{Backend, Buffer, Buffers, Executable, Hooks, HostMemory, NoHooks, Operand};
use defn_core::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildReduce};
use defn_core::graph::{Graph, Value};
use defn_core::op::{Block, Op};
use defn_core::print::display;
use defn_core::region::Region;
use defn_core::stage::{self, Chain, Decision, Marks, Rule, Source, Stage, StageExecutable, Visit};
use defn_core::{Axes, DType, ErrorClass, Result, Shape, Tensor, TensorType};
use insta::assert_snapshot;
use smallvec::SmallVec;

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

fn region(inputs: &[TensorType], body: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>) -> Region {
    let mut graph = Graph::new();
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = body(&mut graph, &values).unwrap();
    Region::new(graph, inputs.to_vec(), inputs.len(), results.into_iter().collect())
}

fn parse(text: &str) -> Region {
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

/// A decision at one op.
fn at(name: &'static str, decision: Decision) -> impl Fn(&Visit<'_>) -> Result<Decision> {
    move |visit| Ok(if visit.name() == name { decision } else { Decision::None })
}

/// Each stage: the sources of its inputs, and its text.
fn shown(stages: &[Stage]) -> String {
    let mut out = String::new();
    for stage in stages {
        let source = |source: &Source| match source {
            Source::Argument(index) => format!("argument {index}"),
            Source::Output { stage, output } => format!("stage {stage}, output {output}"),
            Source::Capture(index) => format!("capture {index}"),
        };
        let sources: Vec<String> = stage.sources().iter().map(source).collect();
        out += &format!("stage {}: {}\n", stage.position(), sources.join("; "));
        for &result in stage.region().results() {
            out += &format!("{}--\n", display(stage.region(), &[result]));
        }
    }
    out
}

/// The example of Nx.Defn.Graph's documentation: its stages, their sources and their texts.
#[test]
fn the_example_of_the_documentation() {
    let region = region(&[ty(DType::S32, &[]), ty(DType::S32, &[])], |g, v| {
        let a = g.negate(v[0])?;
        let b = g.sin(a)?;
        let c = g.cos(b)?;
        Ok(vec![g.add(c, v[1])?])
    });
    let stages = stage::split(&region, at("cos", Decision::Before)).unwrap();
    assert_snapshot!(shown(&stages), @r"
    stage 0: argument 0
    parameter a:0   s32
    b = negate a    s32
    c = sin b       f32
    --
    stage 1: argument 1; stage 0, output 0
    parameter a:1   f32
    parameter c:0   s32
    b = cos a       f32
    d = add b, c    f32
    --
    ");
    let after = stage::split(&region, at("cos", Decision::After)).unwrap();
    assert_snapshot!(shown(&after), @r"
    stage 0: argument 0
    parameter a:0   s32
    b = negate a    s32
    c = sin b       f32
    d = cos c       f32
    --
    stage 1: argument 1; stage 0, output 0
    parameter a:1   f32
    parameter b:0   s32
    c = add a, b    f32
    --
    ");
    let both = stage::split(&region, at("cos", Decision::Both)).unwrap();
    assert_snapshot!(shown(&both), @r"
    stage 0: argument 0
    parameter a:0   s32
    b = negate a    s32
    c = sin b       f32
    --
    stage 1: stage 0, output 0
    parameter a:0   f32
    b = cos a       f32
    --
    stage 2: argument 1; stage 1, output 0
    parameter a:1   f32
    parameter b:0   s32
    c = add a, b    f32
    --
    ");
    assert_eq!(stage::split(&region, at("tan", Decision::Both)).unwrap().len(), 1);
}

/// The accumulator of Nx.Defn.Graph's documentation: a cut before every third op.
#[test]
fn an_accumulator_cuts_every_third_op() {
    let region = region(&[ty(DType::F32, &[]), ty(DType::F32, &[])], |g, v| {
        let mut x = v[0];
        for step in 0..4 {
            x = if step % 2 == 0 { g.sin(x)? } else { g.cos(x)? };
            x = g.multiply(x, v[1])?;
        }
        Ok(vec![x])
    });
    let every_third = |_: &Visit<'_>, count: usize| {
        let new_count = count + 1;
        let is_third = count > 0 && new_count.is_multiple_of(3);
        Ok((if is_third { Decision::Before } else { Decision::None }, new_count))
    };
    let stages = stage::split_with(&region, 0, every_third).unwrap();
    assert_snapshot!(shown(&stages), @r"
    stage 0: argument 0; argument 1
    parameter a:0       f32
    parameter c:1       f32
    b = sin a           f32
    d = multiply b, c   f32
    --
    stage 1: argument 1; stage 0, output 0
    parameter a:1       f32
    parameter c:0       f32
    b = cos a           f32
    d = multiply b, c   f32
    e = sin d           f32
    --
    stage 2: argument 1; stage 1, output 0
    parameter a:1       f32
    parameter b:0       f32
    c = multiply a, b   f32
    d = cos c           f32
    e = multiply d, b   f32
    --
    ");
}

/// A value that both sides of a cut use is computed on the first and passed on; Nx computes it twice.
#[test]
fn what_both_sides_need_is_computed_once() {
    let region = region(&[ty(DType::F32, &[2]), ty(DType::F32, &[2])], |g, v| {
        let x = g.add(v[0], v[1])?;
        let y = g.subtract(v[0], v[1])?;
        let z = g.multiply(x, y)?;
        let w = g.max(z, v[1])?;
        let scaled = g.multiply(w, 0.5)?;
        let other = g.multiply(y, 0.5)?;
        Ok(vec![g.add(other, scaled)?, y, v[0]])
    });
    let stages = stage::split(&region, at("max", Decision::Both)).unwrap();
    assert_snapshot!(shown(&stages), @r"
    stage 0: argument 0; argument 1
    parameter a:0       f32[2]
    parameter b:1       f32[2]
    c = add a, b        f32[2]
    d = subtract a, b   f32[2]
    e = multiply c, d   f32[2]
    --
    parameter a:0       f32[2]
    parameter b:1       f32[2]
    c = subtract a, b   f32[2]
    --
    stage 1: argument 1; stage 0, output 0
    parameter a:1   f32[2]
    parameter b:0   f32[2]
    c = max a, b    f32[2]
    --
    stage 2: argument 0; stage 0, output 1; stage 1, output 0
    parameter a:1         f32[2]
    parameter c:2         f32[2]
    b = multiply a, 0.5   f32[2]
    d = multiply c, 0.5   f32[2]
    e = add b, d          f32[2]
    --
    parameter a:1   f32[2]
    --
    parameter a:0   f32[2]
    --
    ");
}

#[test]
fn loops_are_cut_out_and_never_inside() {
    let region = parse(
        r#"(f32; f32) {
            %0 = parameter {index: 0} : f32
            %1 = parameter {index: 1} : f32
            %2 = sin %0 : f32
            %3 = while %2 %1 {state: 1, trips: none} : f32
              cond (f32; f32) {
                %0 = parameter {index: 0} : f32
                %1 = parameter {index: 1} : f32
                %2 = less %0 %1 : bool
                return %2
              }
              body (f32; f32) {
                %0 = parameter {index: 0} : f32
                %1 = sin %0 : f32
                return %1
              }
            %4 = sin %3 : f32
            return %4
        }"#,
    );
    for decision in [Decision::Before, Decision::After, Decision::Both] {
        let stages = stage::split(&region, at("while", decision)).unwrap();
        let texts: Vec<usize> = stages.iter().map(|stage| stage.region().graph().len()).collect();
        assert_eq!(texts, [2, 3, 2]);
        assert_eq!(stages[1].sources(), [Source::Output { stage: 0, output: 0 }, Source::Capture(0)]);
        assert_eq!((stages[1].region().parameter_count(), stages[1].region().capture_count()), (1, 1));
    }
    // The decider is not called for the sines inside the loop.
    let stages = stage::split(&region, at("sin", Decision::After)).unwrap();
    assert_eq!(stages.len(), 2);
}

#[test]
fn effects_stay_in_order() {
    let region = parse(
        r#"(f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            %2 = hook %1 {slot: 0, name: none} : f32
            %3 = cos %0 : f32
            %4 = hook %3 {slot: 1, name: none} : f32
            %5 = exp %4 : f32
            %6 = hook %0 {slot: 2, name: none} : f32
            return %5
        }"#,
    );
    // The result needs the second hook, which is cut out; the first must come before it.
    let stages = stage::split(&region, at("exp", Decision::Before)).unwrap();
    let slots = |stage: &Stage| -> Vec<usize> {
        let nodes = stage.region().graph().nodes().iter();
        nodes.filter_map(|node| if let Op::Hook(op) = &node.op { Some(op.slot) } else { None }).collect()
    };
    assert_eq!(stages.iter().map(slots).collect::<Vec<_>>(), [vec![0, 1], vec![2]]);
}

#[test]
fn rules_cut_at_ops_and_marks() {
    let region = parse(
        r#"(f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            %2 = mark %1 {name: "first"} : f32
            %3 = sin %2 : f32
            %4 = mark %3 {name: "second"} : f32
            %5 = cos %4 : f32
            return %5
        }"#,
    );
    let sizes = |rule: Rule| -> Vec<usize> {
        let stages = stage::split_by(&region, &rule).unwrap();
        stages.iter().map(|stage| stage.region().graph().len() - 1).collect()
    };
    let ops = |name: &str, decision| Rule::Ops { names: vec![name.to_owned()], decision };
    assert_eq!(sizes(ops("sin", Decision::After)), [1, 2, 2]);
    assert_eq!(sizes(ops("sin", Decision::Before)), [2, 3]);
    assert_eq!(sizes(ops("dot", Decision::Both)), [5]);
    assert_eq!(sizes(Rule::Marks(Marks::All)), [2, 2, 1]);
    assert_eq!(sizes(Rule::Marks(Marks::Named(vec!["second".into()]))), [4, 1]);
    assert_eq!(sizes(Rule::Every(2)), [2, 2, 1]);
    assert_eq!(sizes(Rule::Every(usize::MAX)), [5]);
    assert_eq!(sizes(Rule::Balanced(5)), [1; 5]);
}

/// Blocks of a network: only the running sum passes from one to the next, and the blocks are equal.
#[test]
fn a_balanced_cut_is_between_blocks() {
    let (batch, width) = (4, 32);
    let mut inputs = vec![ty(DType::F32, &[batch, width])];
    inputs.extend((0..16).map(|_| ty(DType::F32, &[width, width])));
    let region = region(&inputs, |g, v| {
        let mut x = v[0];
        for weights in v[1..].chunks(2) {
            let hidden = g.dot(x, weights[0])?;
            let hidden = g.tanh(hidden)?;
            let out = g.dot(hidden, weights[1])?;
            x = g.add(x, out)?;
        }
        Ok(vec![g.sum(x, Axes::All, false)?])
    });
    let stages = stage::split_by(&region, &Rule::Balanced(4)).unwrap();
    let dots = |stage: &Stage| {
        stage.region().graph().nodes().iter().filter(|node| defn_core::form::name(&node.op) == "dot").count()
    };
    assert_eq!(stages.iter().map(dots).collect::<Vec<_>>(), [4; 4]);
    for stage in &stages[1..] {
        let travels = stage.sources().iter().filter(|&source| *source > Source::Argument(usize::MAX));
        assert_eq!(travels.count(), 1);
        assert_eq!(stage.needs()[..], [stage.position() - 1]);
    }
}

/// An executable that records every run: its stage, and the number of owners of each input.
#[derive(Debug)]
struct Probe {
    program: Arc<Region>,
    stage: usize,
    seen: Arc<Mutex<Vec<(usize, Vec<usize>)>>>,
}

#[derive(Debug)]
struct NamedBackend(&'static str);

/// Zeros on a backend.
fn zeros(device_name: &'static str, ty: &TensorType) -> Arc<dyn Buffer> {
    Bytes::at(Arc::new(NamedBackend(device_name)), vec![0; ty.byte_size()])
}

impl Backend for NamedBackend {
    fn name(&self) -> &str {
        self.0
    }

    fn from_host(&self, ty: &TensorType, _: HostMemory) -> Result<Arc<dyn Buffer>> {
        Ok(zeros(self.0, ty))
    }

    fn run(&self, _: &Op, _: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        Ok(outputs.iter().map(|ty| zeros(self.0, ty)).collect())
    }

    fn has_native(&self, _: &Block) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Executable for Probe {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn run(&self, backend: &Arc<dyn Backend>, arguments: Vec<Tensor>, _: &dyn Hooks) -> Result<Vec<Tensor>> {
        let holders = arguments.iter().map(|argument| {
            let buffer = argument.buffer().unwrap();
            assert_eq!(buffer.backend().name(), backend.name());
            Arc::strong_count(buffer)
        });
        self.seen.lock().unwrap().push((self.stage, holders.collect()));
        let name = backend.as_any().downcast_ref::<NamedBackend>().unwrap().0;
        let make = |ty: &TensorType| Tensor::concrete(ty.clone(), zeros(name, ty));
        Ok(self.program.result_types().map(make).collect())
    }
}

fn tensor(ty: &TensorType) -> Tensor {
    Tensor::concrete(ty.clone(), zeros("here", ty))
}

fn placed(stage: &Stage, name: &'static str, seen: &Arc<Mutex<Vec<(usize, Vec<usize>)>>>) -> StageExecutable {
    let (program, seen) = (stage.region().clone(), seen.clone());
    StageExecutable {
        executable: Arc::new(Probe { program, stage: stage.position(), seen }),
        backend: Arc::new(NamedBackend(name)),
    }
}

/// `x` and the sine are used twice, the second argument never.
fn shared() -> Region {
    region(&[ty(DType::F32, &[2]), ty(DType::F32, &[3]), ty(DType::F32, &[2])], |g, v| {
        let sine = g.sin(v[0])?;
        let a = g.exp(sine)?;
        let b = g.max(a, v[0])?;
        let c = g.min(b, sine)?;
        Ok(vec![g.add(c, v[2])?])
    })
}

#[test]
fn values_are_freed_after_their_last_use() {
    let region = shared();
    let stages = stage::split_by(&region, &Rule::Every(1)).unwrap();
    assert_eq!(
        stage::last_uses(&stages),
        [vec![false], vec![false], vec![true, true], vec![true, true], vec![true, true]]
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all: Vec<StageExecutable> = stages.iter().map(|stage| placed(stage, "here", &seen)).collect();
    let arguments: Vec<Tensor> = region.inputs().iter().map(tensor).collect();
    let unused = Arc::downgrade(arguments[1].buffer().unwrap());
    let results = stage::run(&stages, &all, arguments, &NoHooks).unwrap();
    assert_eq!(results.len(), 1);
    assert!(unused.upgrade().is_none());
    // At its last use, a value has no other owner.
    let expected = vec![(0, vec![2]), (1, vec![2]), (2, vec![1, 1]), (3, vec![1, 1]), (4, vec![1, 1])];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn stages_on_several_backends_get_copies() {
    let region = shared();
    let stages = stage::split_by(&region, &Rule::Balanced(3)).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let names = ["here", "there", "here"];
    let all: Vec<StageExecutable> =
        stages.iter().zip(names).map(|(stage, name)| placed(stage, name, &seen)).collect();
    let arguments: Vec<Tensor> = region.inputs().iter().map(tensor).collect();
    // The probe asserts that its inputs are on its backend.
    let chain = Chain::new(&stages, all).unwrap();
    for _ in 0..2 {
        let results = chain.run(arguments.clone(), &NoHooks).unwrap();
        assert_eq!(results[0].buffer().unwrap().backend().name(), "here");
    }
    assert_eq!(seen.lock().unwrap().iter().map(|(stage, _)| *stage).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
    assert!(arguments.iter().all(|argument| Arc::strong_count(argument.buffer().unwrap()) == 1));
}

#[test]
fn lists_that_do_not_run_are_refused() {
    let region = shared();
    let stages = stage::split_by(&region, &Rule::Every(2)).unwrap();
    let others = stage::split_by(&region, &Rule::Every(3)).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let arguments = || -> Vec<Tensor> { region.inputs().iter().map(tensor).collect() };
    let all: Vec<StageExecutable> = stages.iter().map(|stage| placed(stage, "here", &seen)).collect();
    let refused = |stages: &[Stage], placed: &[StageExecutable], arguments: Vec<Tensor>| -> String {
        let error = stage::run(stages, placed, arguments, &NoHooks).unwrap_err();
        format!("{:?}: {error}", error.class())
    };
    let swapped = vec![stages[1].clone(), stages[0].clone(), stages[2].clone()];
    let mixed = vec![stages[0].clone(), others[1].clone()];
    let lines = [
        refused(&[], &[], arguments()),
        refused(&swapped, &all, arguments()),
        refused(&mixed, &all, arguments()),
        refused(&stages[..2], &all[..2], arguments()),
        refused(&stages, &all[..2], arguments()),
        refused(&stages, &[all[1].clone(), all[0].clone(), all[2].clone()], arguments()),
        refused(&stages, &all, arguments()[..2].to_vec()),
        refused(&stages, &all, vec![tensor(&ty(DType::F32, &[3])); 3]),
    ];
    assert_snapshot!(lines.join("\n"), @r"
    Container: run: no stage is given, those that split gave are required
    Container: run: stage 1 of 3 is at position 0, stages are required in the order in which split gave them
    Container: run: the stage at position 1 is of another graph or another split than the first, all stages of one split are required
    Container: run: 2 stages, the graph was split into 3; pass all that split gave
    Container: run: 2 executables for 3 stages, one for each is required
    Compile: run: the executable for stage 0 runs another program, one compiled from the stage's region is required
    Shape: run: 2 arguments, the graph was traced with 3
    Shape: run: argument 0 is f32[3], the graph was traced with f32[2]; trace and split it again for other types
    ");
    // No stage has run.
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn wrong_rules_and_decisions_are_refused() {
    let region = shared();
    let marked = parse(
        r#"(f32) {
            %0 = parameter {index: 0} : f32
            %1 = mark %0 {name: "block"} : f32
            return %1
        }"#,
    );
    let refused = |region: &Region, rule: Rule| -> String {
        let error = stage::split_by(region, &rule).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Option);
        error.to_string()
    };
    let ops = |name: &str| Rule::Ops { names: vec![name.to_owned()], decision: Decision::After };
    let mut lines = vec![
        Decision::parse("middle").unwrap_err().to_string(),
        refused(&region, Rule::Every(0)),
        refused(&region, Rule::Balanced(0)),
        refused(&region, Rule::Balanced(6)),
        refused(&region, ops("matmul")),
        refused(&region, ops("parameter")),
        refused(&region, Rule::Marks(Marks::All)),
        refused(&marked, Rule::Marks(Marks::Named(vec!["blok".into()]))),
    ];
    // An error of the decider is returned unchanged.
    let fails = |visit: &Visit<'_>| Decision::parse(visit.name());
    lines.push(stage::split(&region, fails).unwrap_err().to_string());
    assert_snapshot!(lines.join("\n"), @r#"
    split: the decision is "middle", it must be "before", "after", "both" or "none"
    split: the number of ops in a stage is 0, it must be 1 or more
    split: the number of stages is 0, it must be 1 to 5, as the graph has 5 ops
    split: the number of stages is 6, it must be 1 to 5, as the graph has 5 ops
    split: the op "matmul" is unknown, the public name of an op is required, such as "dot"
    split: the op "parameter" computes nothing, one that does is required, such as "dot"
    split: the graph has no mark, one to cut at is required; set marks with mark
    split: the graph has no mark "blok", it must be one of "block"; set marks with mark
    split: the decision is "sin", it must be "before", "after", "both" or "none"
    "#);
    for decision in Decision::ALL {
        assert_eq!(Decision::parse(decision.name()).unwrap(), *decision);
    }
}

#[test]
fn a_graph_without_ops_is_one_stage() {
    let region = region(&[ty(DType::F32, &[]), ty(DType::F32, &[])], |g, v| {
        Ok(vec![v[1], g.constant(DType::F32, 2.0)?, v[1]])
    });
    for stages in [
        stage::split(&region, |_| Ok(Decision::Both)).unwrap(),
        stage::split_by(&region, &Rule::Balanced(1)).unwrap(),
        stage::split_by(&region, &Rule::Every(1)).unwrap(),
    ] {
        assert_eq!(stages.len(), 1);
        assert_eq!(stages[0].sources(), [Source::Argument(1)]);
        assert_eq!(stages[0].region().results().len(), 3);
    }
}

#[test]
fn a_long_chain_is_split_without_recursion() {
    let region = region(&[ty(DType::F32, &[])], |g, v| {
        let mut x = v[0];
        for _ in 0..20_000 {
            x = g.sin(x)?;
        }
        Ok(vec![x])
    });
    assert_eq!(stage::split_by(&region, &Rule::Every(7)).unwrap().len(), 20_000usize.div_ceil(7));
    let balanced = stage::split_by(&region, &Rule::Balanced(4)).unwrap();
    assert!(balanced.iter().all(|stage| (4900..=5100).contains(&(stage.region().graph().len() - 1))));
}
