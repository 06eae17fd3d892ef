//! Profiles of runs: time, operations and memory traffic of each step.
//!
//! A [`Recorder`] is attached to a thread by [`observing`]. An executable that runs in steps asks once for
//! each run whether there is one, by [`current`], and reports the begin and end of its steps to it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cost;
use crate::form;
use crate::graph::{Graph, Value};
use crate::location::Location;
use crate::op::{Op, ScatterOp};

/// The maximum number of recorded spans; further runs are only counted.
const SPANS: usize = 100_000;

/// The ops of a step, and the work of one run of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The fused ops, without those that only change their operand's shape or type.
    pub ops: Vec<&'static str>,
    /// The user's lines that created them, each once, in order.
    pub lines: Vec<Location>,
    /// Operations on elements, as the cost model counts them.
    pub flops: u64,
    /// Bytes read and written, each value once.
    pub bytes: u64,
    /// Whether some of it is computed on 64-bit elements.
    pub is_wide: bool,
    /// Whether it is a loop or a branch, whose work is that of its inner steps, where those are recorded.
    pub is_control: bool,
}

/// A step, and the total of all its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The work of one run.
    pub work: Work,
    /// The step that contains it, by its index in the record.
    pub parent: Option<usize>,
    /// The number of runs.
    pub runs: u64,
    /// The total time of these runs, inner steps included.
    pub time: Duration,
}

/// One run of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The step, by its index in the record.
    pub step: usize,
    /// The start, since the recorder was created.
    pub start: Duration,
    /// The duration.
    pub time: Duration,
}

/// The recorded data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The steps in the order in which they first began, those inside a loop or a branch after it.
    pub steps: Vec<Step>,
    /// Their runs, in the order in which they ended; only the first ones if there are too many.
    pub spans: Vec<Span>,
    /// The number of runs without a span.
    pub left_out: u64,
    /// The total time of whole programs, including the time between steps.
    pub total: Duration,
    /// The number of threads that shared the work, where a program reports it.
    pub threads: Option<usize>,
}

/// A step of a record, with the totals of all its runs, steps inside included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The step, by its index in the record.
    pub step: usize,
    /// The number of loops and branches around it.
    pub depth: usize,
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations on elements.
    pub flops: u64,
    /// Whether some of it is computed on 64-bit elements.
    pub is_wide: bool,
}

impl Record {
    /// The steps with their totals; a loop or a branch comes before the steps inside it.
    pub fn totals(&self) -> Vec<Total> {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        let mut outer = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            match step.parent {
                Some(parent) => inside[parent].push(index),
                None => outer.push(index),
            }
        }
        let mut totals: Vec<Total> = Vec::with_capacity(self.steps.len());
        for (step, Step { work, runs, .. }) in self.steps.iter().enumerate() {
            let (bytes, flops) = (work.bytes.saturating_mul(*runs), work.flops.saturating_mul(*runs));
            totals.push(Total { step, depth: 0, bytes, flops, is_wide: work.is_wide });
        }
        // A step has a higher index than the loop or branch around it.
        for (index, step) in self.steps.iter().enumerate().rev() {
            if step.work.is_control && !inside[index].is_empty() {
                let own = inside[index].iter().map(|&at| totals[at]);
                let add = |a: Total, b: Total| Total {
                    bytes: a.bytes.saturating_add(b.bytes),
                    flops: a.flops.saturating_add(b.flops),
                    is_wide: a.is_wide || b.is_wide,
                    ..a
                };
                let none = Total { step: index, depth: 0, bytes: 0, flops: 0, is_wide: false };
                totals[index] = own.fold(none, add);
            }
        }
        let mut ordered = Vec::with_capacity(totals.len());
        let mut open: Vec<(usize, usize)> = outer.into_iter().rev().map(|index| (index, 0)).collect();
        while let Some((index, depth)) = open.pop() {
            ordered.push(Total { depth, ..totals[index] });
            open.extend(inside[index].iter().rev().map(|&at| (at, depth + 1)));
        }
        ordered
    }
}

/// Records the runs on a thread.
#[derive(Debug)]
pub struct Recorder {
    created: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    record: Record,
    /// The index of a step, by its enclosing step and its identity.
    index_of: FxHashMap<(Option<usize>, usize), usize>,
    open: Vec<usize>,
    programs: usize,
}

/// A running step or program; it ends when this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Running<'a> {
    recorder: &'a Recorder,
    /// None for a program.
    step: Option<usize>,
    start: Instant,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder { created: Instant::now(), state: Mutex::default() }
    }
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the measurement of a program.
    pub fn program(&self) -> Running<'_> {
        self.state().programs += 1;
        Running { recorder: self, step: None, start: Instant::now() }
    }

    /// Records how many threads share the work of a program.
    pub fn set_threads(&self, count: usize) {
        self.state().record.threads = Some(count);
    }

    /// Starts the measurement of a step. `identity` is the same for each run of the step, and unique in the
    /// program; `work` is called at the first run.
    pub fn step(&self, identity: usize, work: impl FnOnce() -> Work) -> Running<'_> {
        let mut state = self.state();
        let parent = state.open.last().copied();
        let index = match state.index_of.get(&(parent, identity)) {
            Some(&index) => index,
            None => {
                let index = state.record.steps.len();
                state.record.steps.push(Step { work: work(), parent, runs: 0, time: Duration::ZERO });
                state.index_of.insert((parent, identity), index);
                index
            }
        };
        state.open.push(index);
        drop(state);
        Running { recorder: self, step: Some(index), start: Instant::now() }
    }

    /// A copy of the record so far.
    pub fn record(&self) -> Record {
        self.state().record.clone()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let time = self.start.elapsed();
        let mut state = self.recorder.state();
        let Some(step) = self.step else {
            state.programs -= 1;
            // Programs that a host function runs are part of the program that calls it.
            if state.programs == 0 {
                state.record.total += time;
            }
            return;
        };
        state.open.pop();
        state.record.steps[step].runs += 1;
        state.record.steps[step].time += time;
        if state.record.spans.len() < SPANS {
            let start = self.start.duration_since(self.recorder.created);
            state.record.spans.push(Span { step, start, time });
        } else {
            state.record.left_out += 1;
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Recorder>>> = const { RefCell::new(None) };
}

/// Runs `body` while a recorder records the runs on this thread.
pub fn observing<R>(recorder: &Arc<Recorder>, body: impl FnOnce() -> R) -> R {
    struct Before(Option<Arc<Recorder>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(Some(recorder.clone())));
    body()
}

/// The recorder of this thread, if there is one.
#[inline]
pub fn current() -> Option<Arc<Recorder>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The work of a step that computes `outputs` from `inputs` and ends with the node at `last`.
pub fn work(graph: &Graph, inputs: &[Value], outputs: &[Value], last: usize) -> Work {
    let nodes = nodes_of_step(graph, inputs, outputs, last);
    let mut work = Work { is_control: has_inner_steps(&graph.nodes()[last].op), ..Work::default() };
    let mut seen = FxHashSet::default();
    let size = |value: &Value| graph.ty(*value).byte_size() as u64;
    for value in inputs.iter().chain(outputs) {
        if seen.insert(*value) {
            work.bytes = work.bytes.saturating_add(size(value));
        }
    }
    if let [only] = nodes[..] {
        // An op may read only a part of an operand.
        let cost = cost::of_node(graph, only);
        work.bytes = cost.read.saturating_add(cost.written);
    }
    let mut forms = Vec::new();
    for &position in &nodes {
        let node = &graph.nodes()[position];
        let flops = cost::of_node(graph, position).flops;
        work.flops = work.flops.saturating_add(flops);
        let bits = |value: &Value| {
            let dtype = graph.ty(*value).dtype;
            if dtype.is_complex() { dtype.bits() / 2 } else { dtype.bits() }
        };
        work.is_wide |= flops > 0 && graph.outputs(position).iter().any(|value| bits(value) >= 64);
        if flops > 0 { &mut work.ops } else { &mut forms }.push(form::name(&node.op));
        if let Some(line) = &node.location
            && !work.lines.contains(line)
        {
            work.lines.push(line.clone());
        }
    }
    if work.ops.is_empty() {
        work.ops = forms;
    }
    work
}

/// The bytes read and written by an op that updates its first operand in place and leaves most of it
/// unchanged.
pub fn in_place(graph: &Graph, node: usize) -> Option<u64> {
    let node = &graph.nodes()[node];
    let size = |at: usize| graph.ty(node.inputs[at]).byte_size() as u64;
    if let Op::PutSlice { .. } = &node.op {
        let starts: u64 = (2..node.inputs.len()).map(size).sum();
        return Some(starts.saturating_add(size(1).saturating_mul(2)));
    }
    let Op::Scatter { op, axes: _ } = &node.op else { return None };
    // An addition also reads the old elements.
    let times = match op {
        ScatterOp::IndexedAdd => 3,
        ScatterOp::IndexedPut => 2,
    };
    Some(size(1).saturating_add(size(2).saturating_mul(times)))
}

/// The nodes of a step, in order.
fn nodes_of_step(graph: &Graph, inputs: &[Value], outputs: &[Value], last: usize) -> Vec<usize> {
    let boundary: FxHashSet<Value> = inputs.iter().copied().collect();
    let mut nodes = FxHashSet::default();
    let mut open: Vec<usize> = outputs.iter().map(|value| value.node as usize).chain([last]).collect();
    while let Some(position) = open.pop() {
        if !nodes.insert(position) {
            continue;
        }
        let node = &graph.nodes()[position];
        let further = node.inputs.iter().filter(|value| !boundary.contains(value));
        open.extend(further.map(|value| value.node as usize));
    }
    let mut nodes: Vec<usize> =
        nodes.into_iter().filter(|&position| !is_input_or_constant(&graph.nodes()[position].op)).collect();
    nodes.sort_unstable();
    nodes
}

/// Whether an op contains ops that are steps of their own.
fn has_inner_steps(op: &Op) -> bool {
    let (Op::Cond(_) | Op::While(_)) = op else { return false };
    true
}

/// Whether a node computes nothing: an argument or a constant.
fn is_input_or_constant(op: &Op) -> bool {
    let (Op::Parameter { .. } | Op::Constant(_) | Op::Literal(_)) = op else { return false };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    #[test]
    fn the_work_of_a_step_is_that_of_its_nodes() {
        let text = "defn-ir 1
            (f32[4][8], f32[8]) {
              %0 = parameter {index: 0} : f32[4][8]
              %1 = parameter {index: 1} : f32[8]
              %2 = multiply %0 %1 : f32[4][8]
              %3 = sin %2 : f32[4][8]
              %4 = reshape %3 : f32[32]
              %5 = as_type %4 : f64[32]
              %6 = sum %5 {axes: [0], keep_axes: false} : f64
              return %6
            }";
        let region = Region::from_text(text).unwrap();
        let graph = region.graph();
        let value = |node| graph.outputs(node)[0];
        let group = work(graph, &[value(0), value(1)], &[value(5)], 5);
        assert_eq!(group.ops, ["multiply", "sin"]);
        assert_eq!((group.flops, group.bytes), (64, 4 * (32 + 8) + 8 * 32));
        assert!(!group.is_wide && !group.is_control);
        let sum = work(graph, &[value(5)], &[value(6)], 6);
        assert_eq!((sum.ops.as_slice(), sum.flops, sum.is_wide), (["sum"].as_slice(), 32, true));
        assert_eq!(work(graph, &[value(3)], &[value(4)], 4).ops, ["reshape"]);
    }

    #[test]
    fn steps_inside_others_are_known_by_them() {
        let recorder = Arc::new(Recorder::default());
        assert!(current().is_none());
        observing(&recorder, || {
            let recorder = current().unwrap();
            let _program = recorder.program();
            for _ in 0..3 {
                let _outer = recorder.step(1, || Work { is_control: true, ..Work::default() });
                for _ in 0..2 {
                    let _inner = recorder.step(2, Work::default);
                }
            }
            let _other = recorder.step(2, Work::default);
        });
        assert!(current().is_none());
        let record = recorder.record();
        let found: Vec<_> = record.steps.iter().map(|step| (step.parent, step.runs)).collect();
        assert_eq!(found, [(None, 3), (Some(0), 6), (None, 1)]);
        assert_eq!((record.spans.len(), record.left_out), (10, 0));
        let order: Vec<_> = record.totals().iter().map(|total| (total.step, total.depth)).collect();
        assert_eq!(order, [(0, 0), (1, 1), (2, 0)]);
        assert!(record.steps[1].time <= record.steps[0].time);
        assert!(record.steps[0].time + record.steps[2].time <= record.total);
    }
}
