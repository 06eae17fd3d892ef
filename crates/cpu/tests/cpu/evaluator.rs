//! The evaluator on the CPU: control flow, effects, reuse of memory, and the position of an error.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use defn_core::backend::{
    Backend, Buffer, BufferState, Buffers, Checks, Compiler, Executable, Gone, Hooks, HostMemory, NoHooks,
    Operand,
};
use defn_core::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Ops, Source, Start, cond,
    reduce, while_,
};
use defn_core::evaluator::Evaluator;
use defn_core::op::{Block, Op};
use defn_core::trace::Trace;
use defn_core::{Axes, DType, ErrorKind, Location, Result, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;
use smallvec::SmallVec;

fn ops() -> Ops {
    Ops::new(cpu_backend(), Source::Unknown)
}

fn f32s(values: &[f32]) -> Tensor {
    let ty = TensorType::new(DType::F32, Shape::new(&[values.len()])).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let buffer = cpu_backend().from_host(&ty, HostMemory::new(Arc::new(bytes))).unwrap();
    Tensor::concrete(ty, buffer)
}

fn s32(value: i32) -> Tensor {
    ops().constant(DType::S32, value).unwrap()
}

fn read_f32(tensor: &Tensor) -> Vec<f32> {
    let memory = tensor.host_bytes("test").unwrap();
    memory.bytes().chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn read_s32(tensor: &Tensor) -> i32 {
    i32::from_ne_bytes(tensor.host_bytes("test").unwrap().bytes().try_into().unwrap())
}

/// Traces a function of the given types and compiles it.
fn compile(
    types: &[TensorType],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Arc<dyn Executable> {
    let (tracing, parameters) = Trace::begin(types);
    let results = function(&mut ops(), &parameters).unwrap();
    let closed = tracing.finish("test", &results).unwrap();
    assert!(closed.captures.is_empty());
    Evaluator::new(cpu_backend()).compile(Arc::new(closed.region), Checks::default()).unwrap()
}

fn scalar(dtype: DType) -> TensorType {
    TensorType::scalar(dtype)
}

/// Records which slots were called with which integers, and returns an error for one.
#[derive(Default)]
struct Log {
    seen: RefCell<Vec<(usize, i32)>>,
    refused: Option<usize>,
    polls: RefCell<usize>,
    interrupt_after: Option<usize>,
}

impl Hooks for Log {
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()> {
        if self.refused == Some(slot) {
            return Err(ErrorKind::DivisionByZero { op: "the hook's own" }.into());
        }
        self.seen.borrow_mut().push((slot, read_s32(&values[0])));
        Ok(())
    }

    fn poll(&self) -> Result<()> {
        *self.polls.borrow_mut() += 1;
        match self.interrupt_after {
            Some(limit) if *self.polls.borrow() > limit => {
                Err(ErrorKind::BufferGone { op: "interrupted", gone: Gone { how: "interrupted", by: None } }
                    .into())
            }
            _ => Ok(()),
        }
    }
}

/// Counts from the argument down to 0, with a hook in slot 7 at each trip.
fn countdown() -> Arc<dyn Executable> {
    compile(&[scalar(DType::S32)], |ops, x| {
        while_(
            ops,
            vec![x[0].clone()],
            None,
            |ops, state| Ok(ops.greater(&state[0], 0)?.into()),
            |ops, state| {
                let shown = ops.hook(7, None, &[state[0].clone()])?;
                Ok(vec![ops.subtract(&shown[0], 1)?.into()])
            },
        )
    })
}

#[test]
fn a_loop_runs_its_hooks_once_a_trip_and_in_order() {
    let log = Log::default();
    let out = countdown().run(&cpu_backend(), vec![s32(4)], &log).unwrap();
    assert_eq!(read_s32(&out[0]), 0);
    assert_eq!(*log.seen.borrow(), [(7, 4), (7, 3), (7, 2), (7, 1)]);
}

#[test]
fn a_fold_shows_each_element_by_itself() {
    let fold = |axes: Axes| {
        compile(&[scalar(DType::S32), scalar(DType::S32)], move |ops, x| {
            let row = ops.stack(&[x[0].clone(), x[1].clone()], 0, None)?;
            let above = ops.add(&row, 5)?;
            let pair = ops.stack(&[row, above], 0, None)?;
            let shown = |ops: &mut Ops, element: &Tensor, acc: &Tensor| {
                let shown = ops.hook(3, None, std::slice::from_ref(element))?;
                Ok(ops.subtract(&shown[0], acc)?.into())
            };
            let start = Arg::Number(0.into());
            let folded = reduce(ops, Arg::Value(pair), start, &axes, false, None, Box::new(shown))?;
            Ok(vec![ops.sum(folded, Axes::All, false)?])
        })
    };
    // Of the rows (1, 2) and (6, 7): the elements in order, and the first elements of the rows before the second.
    for (axes, result, order) in
        [(Axes::All, 7 - (6 - (2 - 1)), [1, 2, 6, 7]), (1.into(), 1 + 1, [1, 6, 2, 7])]
    {
        let log = Log::default();
        let out = fold(axes).run(&cpu_backend(), vec![s32(1), s32(2)], &log).unwrap();
        assert_eq!(read_s32(&out[0]), result);
        assert_eq!(*log.seen.borrow(), order.map(|element| (3, element)));
    }
}

#[test]
fn a_loop_without_trips_gives_its_state() {
    let out = countdown().run(&cpu_backend(), vec![s32(-3)], &NoHooks).unwrap();
    assert_eq!(read_s32(&out[0]), -3);
}

#[test]
fn a_hook_that_refuses_stops_the_run_and_the_next_run_works() {
    let program = countdown();
    let log = Log { refused: Some(7), ..Log::default() };
    let error = program.run(&cpu_backend(), vec![s32(4)], &log).unwrap_err();
    assert!(error.to_string().contains("the hook's own"), "{error}");
    assert_eq!(read_s32(&program.run(&cpu_backend(), vec![s32(4)], &NoHooks).unwrap()[0]), 0);
}

#[test]
fn a_loop_can_be_interrupted() {
    let log = Log { interrupt_after: Some(1000), ..Log::default() };
    let error = countdown().run(&cpu_backend(), vec![s32(i32::MAX)], &log).unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn exactly_one_branch_runs() {
    let program = compile(&[scalar(DType::S32)], |ops, x| {
        let mut clauses: Vec<(Tensor, defn_core::builder::Thunk<'_>)> = Vec::new();
        for (slot, bound) in [(0, 10), (1, 5)] {
            let (predicate, x) = (ops.greater(&x[0], bound)?, x[0].clone());
            let branch = move |ops: &mut Ops| -> Result<Vec<Arg<Tensor>>> {
                let shown = ops.hook(slot, None, &[x])?;
                Ok(vec![shown[0].clone().into()])
            };
            clauses.push((predicate, Box::new(branch)));
        }
        cond(ops, clauses, Box::new(|_| Ok(vec![(-1).into()])))
    });
    for (x, seen, value) in [(11, vec![(0, 11)], 11), (6, vec![(1, 6)], 6), (2, vec![], -1)] {
        let log = Log::default();
        let out = program.run(&cpu_backend(), vec![s32(x)], &log).unwrap();
        assert_eq!((read_s32(&out[0]), log.seen.into_inner()), (value, seen));
    }
}

#[test]
fn an_argument_that_nobody_else_holds_is_written_in_place() {
    let ty = TensorType::new(DType::F32, Shape::new(&[4])).unwrap();
    let program = compile(&[ty], |ops, x| {
        let update = ops.full(Shape::new(&[1]), DType::F32, 9.0)?;
        Ok(vec![ops.put_slice(&x[0], &[Start::from(2i64)], &update)?])
    });
    // Memory of the backend's own; borrowed memory is never written.
    let owned = || ops().add(f32s(&[0.0, 1.0, 2.0, 3.0]), 0.0).unwrap();
    let at = |tensor: &Tensor| tensor.host_bytes("test").unwrap().bytes().as_ptr();

    let alone = owned();
    let before = at(&alone);
    let out = program.run(&cpu_backend(), vec![alone], &NoHooks).unwrap();
    assert_eq!(at(&out[0]), before);
    assert_eq!(read_f32(&out[0]), [0.0, 1.0, 9.0, 3.0]);

    let kept = owned();
    let out = program.run(&cpu_backend(), vec![kept.clone()], &NoHooks).unwrap();
    assert_eq!(read_f32(&out[0]), [0.0, 1.0, 9.0, 3.0]);
    assert_eq!(read_f32(&kept), [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn a_loop_writes_its_tape_in_place() {
    let ty = TensorType::new(DType::F32, Shape::new(&[4])).unwrap();
    let program = compile(&[ty], |ops, x| {
        let zero = ops.constant(DType::S32, 0)?;
        while_(
            ops,
            vec![zero, x[0].clone()],
            Some(4),
            |ops, state| Ok(ops.less(&state[0], 4)?.into()),
            |ops, state| {
                let row = ops.new_axis(&state[0], 0, None)?;
                let update = ops.as_type(&row, DType::F32)?;
                let start = Start::Value(state[0].clone());
                let tape = ops.put_slice(&state[1], &[start], &update)?;
                Ok(vec![ops.add(&state[0], 1)?.into(), tape.into()])
            },
        )
    });
    let tape = ops().add(f32s(&[-1.0; 4]), 0.0).unwrap();
    let before = tape.host_bytes("test").unwrap().bytes().as_ptr();
    let out = program.run(&cpu_backend(), vec![tape], &NoHooks).unwrap();
    assert_eq!(read_f32(&out[1]), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(out[1].host_bytes("test").unwrap().bytes().as_ptr(), before);
}

#[test]
fn equal_arguments_and_equal_results_are_kept_apart() {
    let ty = TensorType::new(DType::F32, Shape::new(&[2])).unwrap();
    let program = compile(&[ty.clone(), ty], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![sum.clone(), x[0].clone(), sum])
    });
    let x = f32s(&[1.0, 2.0]);
    let out = program.run(&cpu_backend(), vec![x.clone(), x.clone()], &NoHooks).unwrap();
    assert_eq!(out.iter().map(read_f32).collect::<Vec<_>>(), [[2.0, 4.0], [1.0, 2.0], [2.0, 4.0]]);
    assert!(Arc::ptr_eq(out[1].buffer().unwrap(), x.buffer().unwrap()), "an input returned is not copied");
}

#[test]
fn arguments_of_other_types_are_refused_before_anything_runs() {
    let program = countdown();
    let error = program.run(&cpu_backend(), vec![f32s(&[1.0])], &NoHooks).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run: argument 0 is f32[1], the compiled function takes s32; compile it again for other types"
    );
    assert!(program.run(&cpu_backend(), vec![], &NoHooks).is_err());
    let template = Tensor::template(scalar(DType::S32));
    assert!(program.run(&cpu_backend(), vec![template], &NoHooks).is_err());
}

#[test]
fn an_error_of_a_run_names_the_line_that_made_the_node() {
    let line = Location { file: "model.py".into(), line: 12 };
    let (tracing, x) = Trace::begin(&[scalar(DType::S32)]);
    let mut at = Ops::new(cpu_backend(), Source::At(line.clone()));
    let quotient = at.quotient(7, &x[0]).unwrap();
    let closed = tracing.finish("test", &[quotient]).unwrap();
    let checks = Checks { index: true, ..Checks::default() };
    let program = Evaluator::new(cpu_backend()).compile(Arc::new(closed.region), checks).unwrap();
    let error = program.run(&cpu_backend(), vec![s32(0)], &NoHooks).unwrap_err();
    assert_eq!(error.location(), Some(&line), "{error}");
}

#[test]
fn control_flow_runs_at_once_outside_a_trace() {
    let out = while_(
        &mut ops(),
        vec![s32(1)],
        None,
        |ops, state| Ok(ops.less(&state[0], 100)?.into()),
        |ops, state| Ok(vec![ops.multiply(&state[0], 3)?.into()]),
    );
    assert_eq!(read_s32(&out.unwrap()[0]), 243);
}

/// Another backend, which stores its data on the CPU under another name.
#[derive(Debug)]
struct Elsewhere;

#[derive(Debug)]
struct Kept(Arc<dyn Buffer>);

impl Buffer for Kept {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(Elsewhere)
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        self.0.read(out)
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        Ok(None)
    }

    fn state(&self) -> BufferState {
        self.0.state()
    }

    fn deallocate(&self) -> Result<bool> {
        self.0.deallocate()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Backend for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(Kept(cpu_backend().from_host(ty, bytes)?)))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        let here = |operand: Operand| {
            let kept = operand.buffer.as_any().downcast_ref::<Kept>().expect("an operand of this backend");
            Operand { ty: operand.ty, buffer: kept.0.clone() }
        };
        let made = cpu_backend().run(op, operands.into_iter().map(here).collect(), outputs)?;
        Ok(made.into_iter().map(|buffer| Arc::new(Kept(buffer)) as Arc<dyn Buffer>).collect())
    }

    fn has_native(&self, _: &Block) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn the_default_backend_gives_way_at_once_and_is_refused_in_a_compiled_run() {
    let here = f32s(&[1.0, 2.0]);
    let there = {
        let memory = here.host_bytes("test").unwrap();
        Tensor::concrete(here.ty().clone(), Elsewhere.from_host(here.ty(), memory).unwrap())
    };
    let sum = ops().add(&here, &there).unwrap();
    assert_eq!(sum.backend().unwrap().name(), "elsewhere");
    assert_eq!(read_f32(&sum), [2.0, 4.0]);

    let types = [here.ty().clone(), here.ty().clone()];
    let program = compile(&types, |ops, x| Ok(vec![ops.add(&x[0], &x[1])?]));
    let error = program.run(&cpu_backend(), vec![here, there], &NoHooks).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run: the operands are on cpu and elsewhere; move one with backend_copy or backend_transfer"
    );
}
