//! Compiled programs on devices: results, effects in their order, donation, and the caches.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::backend::{Backend, BufferState, Checks, Compiler, Gone, Hooks, NoHooks};
use defn_core::builder::*;
use defn_core::location::during;
use defn_core::region::Region;
use defn_core::{DType, ErrorClass, ErrorKind, Location, Number, Result, Scalar, Tensor, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{Attribute, CompilerOptions, PjrtCompiler};

use crate::device::{compiler, dynamic, floats, host_backend, own_backend, read, run, trace, ty};

fn s32(backend: &dyn Backend, value: i32) -> Tensor {
    let ty = TensorType::scalar(DType::S32);
    let bytes = Scalar::new(DType::S32, Number::Int(value.into())).unwrap().to_bytes().to_vec();
    let buffer = backend.from_host(&ty, bytes.into()).unwrap();
    Tensor::concrete(ty, buffer)
}

fn read_s32(tensor: &Tensor) -> i32 {
    i32::from_ne_bytes(tensor.host_bytes("test").unwrap().bytes().try_into().unwrap())
}

/// Records which slots were called, and with which integers.
#[derive(Default)]
struct Log {
    slot_values: RefCell<Vec<(usize, i32)>>,
    interrupt_after: Option<usize>,
    polls: RefCell<usize>,
}

impl Hooks for Log {
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()> {
        self.slot_values.borrow_mut().push((slot, read_s32(&values[0])));
        Ok(())
    }

    fn compute(&self, slot: usize, values: &[Tensor], _: &[TensorType]) -> Result<Vec<Tensor>> {
        let value = read_s32(&values[0]);
        self.slot_values.borrow_mut().push((slot, value));
        Ok(vec![s32(&*cpu_backend(), 10 * value)])
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
fn countdown() -> Arc<Region> {
    trace(&[TensorType::scalar(DType::S32)], |ops, x| {
        while_(
            ops,
            vec![x[0].clone()],
            None,
            |ops, state| Ok(ops.greater(&state[0], 0)?.into()),
            |ops, state| {
                let hooked = ops.hook(7, None, &[state[0].clone()])?;
                Ok(vec![ops.subtract(&hooked[0], 1)?.into()])
            },
        )
    })
}

#[test]
fn a_program_runs_where_its_arguments_are() {
    let region = trace(&[ty(DType::F32, &[2]), ty(DType::F32, &[2])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![sum.clone(), x[0].clone(), sum])
    });
    let program = compiler(&host_backend(0)).compile(region, Checks::default()).unwrap();
    for backend in [host_backend(0), host_backend(3)] {
        let x = floats(&*backend, &[1.0, 2.0]);
        let out = run(&*program, &backend, vec![x.clone(), x.clone()]).unwrap();
        assert_eq!(out.iter().map(read).collect::<Vec<_>>(), [[2.0, 4.0], [1.0, 2.0], [2.0, 4.0]]);
        for tensor in &out {
            assert_eq!(tensor.backend().unwrap().device_name(), backend.device_name());
        }
        x.buffer().unwrap().deallocate().unwrap();
        assert_eq!(read(&out[1]), [1.0, 2.0], "a result outlives the argument that it is");
    }
    let x = floats(&*cpu_backend(), &[3.0, 4.0]);
    let out = program.run(&cpu_backend(), vec![x.clone(), x], &NoHooks).unwrap();
    assert_eq!(
        (read(&out[0]), out[0].backend().unwrap().device_name()),
        (vec![6.0, 8.0], "pjrt<host:0>".to_owned())
    );
}

#[test]
fn arguments_on_two_devices_conflict() {
    let region =
        trace(&[ty(DType::F32, &[1]), ty(DType::F32, &[1])], |ops, x| Ok(vec![ops.add(&x[0], &x[1])?]));
    let program = compiler(&host_backend(0)).compile(region, Checks::default()).unwrap();
    let arguments = vec![floats(&*host_backend(0), &[1.0]), floats(&*host_backend(1), &[1.0])];
    let error = run(&*program, &host_backend(0), arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run: the operands are on pjrt<host:0> and pjrt<host:1>; move one with backend_copy or backend_transfer"
    );
}

#[test]
fn what_nothing_uses_may_be_a_template() {
    let types = [ty(DType::F32, &[1]), ty(DType::F32, &[1])];
    let region = trace(&types, |ops, x| Ok(vec![ops.exp(&x[1])?]));
    let program = compiler(&host_backend(0)).compile(region, Checks::default()).unwrap();
    assert!(!program.uses(0) && program.uses(1));
    let arguments = vec![Tensor::template(types[0].clone()), floats(&*host_backend(0), &[0.0])];
    assert_eq!(read(&run(&*program, &host_backend(0), arguments).unwrap()[0]), [1.0]);
}

#[test]
fn a_loop_runs_its_hooks_once_a_trip_and_in_order() {
    let backend = host_backend(0);
    let program = compiler(&backend).compile(countdown(), Checks::default()).unwrap();
    let log = Log::default();
    let out = program.run(&dynamic(&backend), vec![s32(&*backend, 4)], &log).unwrap();
    assert_eq!(read_s32(&out[0]), 0);
    assert_eq!(*log.slot_values.borrow(), [(7, 4), (7, 3), (7, 2), (7, 1)]);
    let out = run(&*program, &backend, vec![s32(&*backend, -3)]).unwrap();
    assert_eq!(read_s32(&out[0]), -3);
}

#[test]
fn a_loop_with_effects_can_be_interrupted() {
    let backend = host_backend(0);
    let program = compiler(&backend).compile(countdown(), Checks::default()).unwrap();
    let log = Log { interrupt_after: Some(100), ..Log::default() };
    let error = program.run(&dynamic(&backend), vec![s32(&*backend, i32::MAX)], &log).unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn effects_keep_their_order_at_every_level() {
    let backend = host_backend(0);
    let region = trace(&[TensorType::scalar(DType::S32)], |ops, x| {
        let first = ops.hook(1, None, &[x[0].clone()])?.remove(0);
        let doubled = ops.multiply(&first, 2)?;
        let second = ops.hook(2, None, &[doubled])?.remove(0);
        let looped = while_(
            ops,
            vec![second],
            None,
            |ops, state| Ok(ops.less(&state[0], 20)?.into()),
            |ops, state| {
                let answer =
                    ops.runtime_call(3, &[TensorType::scalar(DType::S32)], &[state[0].clone()])?.remove(0);
                let is_large = ops.greater(&answer, 50)?;
                let (large, small) = (answer.clone(), answer);
                let branch = move |ops: &mut Ops| -> Result<Vec<Arg<Tensor>>> {
                    Ok(vec![ops.hook(4, None, &[large])?.remove(0).into()])
                };
                let next = cond(
                    ops,
                    vec![(is_large, Box::new(branch))],
                    Box::new(move |ops| Ok(vec![ops.add(&small, 0)?.into()])),
                )?;
                let next = ops.subtract(&next[0], 35)?;
                Ok(vec![next.into()])
            },
        )?;
        let last = ops.hook(5, None, &[looped[0].clone()])?.remove(0);
        Ok(vec![ops.add(&last, &x[0])?])
    });
    let program = compiler(&backend).compile(region.clone(), Checks::default()).unwrap();
    let reference =
        defn_core::evaluator::Evaluator::new(cpu_backend()).compile(region, Checks::default()).unwrap();
    for start in [2, 3, 30] {
        let (log, expected) = (Log::default(), Log::default());
        let out = program.run(&dynamic(&backend), vec![s32(&*backend, start)], &log).unwrap();
        let expected_outputs =
            reference.run(&cpu_backend(), vec![s32(&*cpu_backend(), start)], &expected).unwrap();
        assert_eq!(read_s32(&out[0]), read_s32(&expected_outputs[0]));
        assert_eq!(*log.slot_values.borrow(), *expected.slot_values.borrow());
    }
}

#[test]
fn a_donated_argument_is_gone_and_its_memory_is_a_result_s() {
    let backend = own_backend("donation");
    let region =
        trace(&[ty(DType::F32, &[2]), ty(DType::F32, &[2])], |ops, x| Ok(vec![ops.add(&x[0], &x[1])?]));
    let program = compiler(&backend).compile_donating(region, Checks::default(), &[0]).unwrap();
    let (x, y) = (floats(&*backend, &[1.0, 2.0]), floats(&*backend, &[3.0, 4.0]));
    let pointer = |tensor: &Tensor| {
        let buffer: &defn_pjrt::PjrtBuffer = tensor.buffer().unwrap().as_any().downcast_ref().unwrap();
        buffer.pointer(&|| Ok(())).unwrap()
    };
    let before = pointer(&x);
    let at = Location { file: "user.rs".into(), line: 5 };
    let out = during(at, || run(&*program, &backend, vec![x.clone(), y.clone()])).unwrap();
    assert_eq!(pointer(&out[0]), before);
    assert_eq!(read(&out[0]), [4.0, 6.0]);
    assert_eq!(backend.runtime().live_buffers(), 2);
    let error = run(&*program, &backend, vec![x, y.clone()]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Backend);
    assert_eq!(
        error.to_string(),
        "run: argument 0 is f32[2] and its memory was donated at user.rs:5, a tensor that is there is required; keep a copy, or do not use it after"
    );
    // Bytes that the host reads are a copy.
    let x = floats(&*backend, &[1.0, 2.0]);
    let view = x.host_bytes("test").unwrap();
    let out = run(&*program, &backend, vec![x.clone(), y]).unwrap();
    assert_eq!((read(&out[0]), &view.bytes()[4..]), (vec![4.0, 6.0], &2f32.to_ne_bytes()[..]));
    assert_eq!(x.buffer().unwrap().state(), BufferState::Gone(Gone { how: "donated", by: None }));
}

#[test]
fn a_run_that_does_not_start_uses_nothing_up() {
    let backend = host_backend(0);
    let region = trace(&[ty(DType::F32, &[2]), ty(DType::F32, &[2])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![ops.exp(&sum)?, sum])
    });
    let program = compiler(&backend).compile_donating(region, Checks::default(), &[0, 1]).unwrap();
    let (x, y) = (floats(&*backend, &[1.0, 2.0]), floats(&*backend, &[3.0, 4.0]));
    y.buffer().unwrap().deallocate().unwrap();
    assert!(run(&*program, &backend, vec![x.clone(), y]).is_err());
    assert_eq!(read(&x), [1.0, 2.0]);
    // One tensor cannot be donated twice.
    assert!(run(&*program, &backend, vec![x.clone(), x.clone()]).is_err());
    assert_eq!(read(&x), [1.0, 2.0]);
}

#[test]
fn donation_is_guaranteed_or_refused() {
    let compiler = compiler(&host_backend(0));
    let refusal = |region: Arc<Region>, donate: &[usize]| {
        compiler.compile_donating(region, Checks::default(), donate).unwrap_err().to_string()
    };
    let sum = |ops: &mut Ops, x: &[Tensor]| Ok(vec![ops.sum(&x[0], defn_core::Axes::All, false)?]);
    assert_eq!(
        refusal(trace(&[ty(DType::F32, &[2])], sum), &[0]),
        "donate: argument 0 is f32[2], a result of its dtype and shape that takes no other argument's memory is required; do not donate it"
    );
    assert_eq!(
        refusal(trace(&[ty(DType::F32, &[2])], sum), &[1]),
        "donate: there is no argument 1, it must be one of 1"
    );
    assert!(refusal(countdown(), &[0]).starts_with("donate: the program has effects inside loops"));
    let evaluator = defn_core::evaluator::Evaluator::new(cpu_backend());
    let error = evaluator.compile_donating(countdown(), Checks::default(), &[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "donate: the compiler \"evaluator\" reuses no arguments, a compiler that does is required, such as \"pjrt\""
    );
}

#[test]
fn checks_are_made() {
    let backend = host_backend(0);
    let region = trace(&[ty(DType::F32, &[2]), TensorType::scalar(DType::S32)], |ops, x| {
        let index = ops.reshape(&x[1], [1_i64], None)?;
        let element = ops.take(&x[0], &index, 0)?;
        Ok(vec![ops.log(&element)?])
    });
    let compiled = |index, nan| {
        compiler(&backend).compile(region.clone(), Checks { index, nan, ..Checks::default() }).unwrap()
    };
    let arguments = |value: f32, at: i32| vec![floats(&*backend, &[1.0, value]), s32(&*backend, at)];
    let checked = compiled(true, false);
    assert_eq!(read(&run(&*checked, &backend, arguments(1.0, 1)).unwrap()[0]), [0.0]);
    let error = run(&*checked, &backend, arguments(1.0, 2)).unwrap_err();
    assert_eq!(error.to_string(), "take: index 2 on axis 0 of f32[2], it must be in -2..2");
    assert_eq!(read(&run(&*compiled(false, false), &backend, arguments(1.0, 2)).unwrap()[0]), [0.0]);
    let error = run(&*compiled(false, true), &backend, arguments(-1.0, 1)).unwrap_err();
    assert!(error.to_string().starts_with("log: the result f32[1] has a NaN"), "{error}");
    let error = checked.to_bytes(&[]).unwrap_err().to_string();
    assert_eq!(error, "save: the program is run with checks, op by op, one without is required");
    let checks = Checks { index: true, ..Checks::default() };
    let error = compiler(&backend).compile_donating(region, checks, &[0]).unwrap_err().to_string();
    assert_eq!(error, "donate: the program is run with checks, op by op, one without checks is required");
}

#[test]
fn unknown_options_are_refused_by_name() {
    let error =
        CompilerOptions::parse(&[("fusion".to_owned(), Attribute::Bool(true))]).unwrap_err().to_string();
    assert_eq!(
        error,
        "compiler \"pjrt\": unknown option \"fusion\", it takes \"cache_dir\" and XLA's flags, which begin with \"xla_\""
    );
    let backend = own_backend("refusing");
    for (flag, value, why) in [
        ("xla_no_such_flag", Attribute::Bool(true), "No such compile option: 'xla_no_such_flag'"),
        (
            "xla_cpu_prefer_vector_width",
            Attribute::Text("wide".to_owned()),
            "While setting option xla_cpu_prefer_vector_width, 'wide' is not a valid int32 value",
        ),
    ] {
        let flags =
            [("xla_cpu_enable_fast_math".to_owned(), Attribute::Bool(false)), (flag.to_owned(), value)];
        let options = CompilerOptions::parse(&flags).unwrap();
        let region = trace(&[ty(DType::F32, &[2])], |ops, x| Ok(vec![ops.exp(&x[0])?]));
        let compiler = PjrtCompiler::new(backend.clone(), cpu_backend(), options);
        let error = compiler.compile(region, Checks::default()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Option);
        let start = format!(
            "compiler \"pjrt\": the plugin of client \"refusing\" refuses the option \"{flag}\" ({why}), a flag that"
        );
        assert!(error.to_string().starts_with(&start), "{error}");
    }
    assert_eq!(backend.runtime().cache_report().entries, 0, "what was refused is no program");
}
