//! Compiled functions and what is around them: hooks, streams, stages, files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use defn::graph::{Marks, Rule};
use defn::prelude::*;
use defn::{
    Checks, Compiled, Error, ErrorClass, Jit, Pullback, Result, Saved, Stream, block, named_hook,
    runtime_call, stream, vmap_at,
};

fn number(x: f32) -> Tensor {
    Tensor::full(&[], DType::F32, f64::from(x)).unwrap()
}

#[test]
fn what_threads_share_may_cross_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Tensor>();
    shared::<Expr>();
    shared::<Error>();
    shared::<Jit<fn(Expr) -> Expr, Expr, Expr>>();
    shared::<Compiled<(Expr, Vec<Expr>), Expr>>();
    shared::<Pullback<Expr, Expr>>();
    shared::<Stream<Expr, Expr, Expr>>();
    shared::<Saved>();
    shared::<defn::graph::Stages<Expr, Expr>>();
    shared::<defn::Profile>();
}

#[test]
fn hooks_see_each_trip_and_only_branches_that_are_taken() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let f = jit(move |x: Expr| {
        let log = log.clone();
        for_(x, 0..4, move |x, i| {
            let log = log.clone();
            cond(
                &(&i % 2).equal(0),
                || {
                    let log = log.clone();
                    hook(&x + &i, move |x: Tensor| log.lock().unwrap().push(x.item::<i32>().unwrap()))
                },
                || &x * 2,
            )
        })
    });
    // 1 + 0 = 1, * 2 = 2, + 2 = 4, * 2 = 8.
    assert_eq!(f.call(Tensor::scalar(1).unwrap()).unwrap().item::<i32>().unwrap(), 8);
    assert_eq!(*seen.lock().unwrap(), [1, 4]);
}

#[test]
fn hooks_of_gradients_are_called_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let f = jit(move |x: Expr| {
        let count = count.clone();
        grad(&x, move |x| {
            let count = count.clone();
            hook(x.sin(), move |_: Tensor| _ = count.fetch_add(1, Ordering::Relaxed)).pow(2)
        })
    });
    let slope = f.call(number(0.5)).unwrap().item::<f32>().unwrap();
    assert!((slope - 2.0 * 0.5f32.sin() * 0.5f32.cos()).abs() < 1e-6);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn hooks_take_containers_and_vectorized_axes() {
    let (send, seen) = mpsc::channel();
    let f = jit(move |(x, rest): (Expr, Vec<Expr>)| {
        let send = send.clone();
        hook((x, rest), move |value: (Tensor, Vec<Tensor>)| send.send(value).unwrap()).0
    });
    let x = tensor![[1, 2], [3, 4]].unwrap().vectorize(&["row"]).unwrap();
    f.call((x, vec![number(5.0)])).unwrap();
    let (x, rest) = seen.recv().unwrap();
    assert_eq!(x.vectorized_axes(), [("row".into(), 2)]);
    assert_eq!((x.to_vec::<i32>().unwrap(), rest.len()), (vec![1, 2, 3, 4], 1));
}

#[test]
fn the_error_of_a_hook_stops_the_run_and_comes_out() {
    let after = Arc::new(AtomicUsize::new(0));
    let count = after.clone();
    let f = jit(move |x: Expr| {
        let count = count.clone();
        let x =
            hook(x, |x: Tensor| if x.item::<i32>()? > 0 { Err(Error::other("too much")) } else { Ok(()) });
        hook(x + 1, move |_: Tensor| _ = count.fetch_add(1, Ordering::Relaxed))
    });
    let error = f.call(Tensor::scalar(1).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("too much"), "{error}");
    assert_eq!(after.load(Ordering::Relaxed), 0);
    // The next call works.
    assert_eq!(f.call(Tensor::scalar(0).unwrap()).unwrap().item::<i32>().unwrap(), 1);
    assert_eq!(after.load(Ordering::Relaxed), 1);
}

#[test]
fn a_hook_outside_of_a_function_is_called_at_once() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let x = Expr::from(number(2.0));
    let _ = hook(x, move |_: Tensor| _ = count.fetch_add(1, Ordering::Relaxed));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[test]
fn named_hooks_are_called_where_they_have_a_function() {
    let f = |x: Expr| named_hook(x + 1, "next");
    assert_eq!(jit(f).call(Tensor::scalar(1).unwrap()).unwrap().item::<i32>().unwrap(), 2);
    let (send, seen) = mpsc::channel();
    let logged = jit(f)
        .with_hook("next", move |leaves| send.send(leaves).unwrap())
        .with_hook("other", |_| -> () { panic!("there is no such hook") });
    logged.call(Tensor::scalar(1).unwrap()).unwrap();
    assert_eq!(seen.recv().unwrap()[0].item::<i32>().unwrap(), 2);
}

#[test]
fn results_of_the_program_must_have_the_declared_types() {
    let call = |output: Tensor, given: Tensor| {
        jit(move |x: Expr| {
            let given = given.clone();
            runtime_call(&output, x, move |_: Tensor| Ok(given.clone()))
        })
        .call(number(1.0))
    };
    let ty = || Tensor::template(&[2], DType::F32).unwrap();
    assert!(call(ty(), tensor![1.0, 2.0].unwrap()).is_ok());
    let error = call(ty(), tensor![1, 2].unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("runtime_call: result 0 of the function is s32[2]"), "{error}");
    assert!(call(ty(), tensor![1.0, 2.0, 3.0].unwrap()).is_err());
    let error = jit(|x: Expr| {
        let ty = Tensor::template(&[], DType::F32).unwrap();
        runtime_call(&vec![ty.clone(), ty], x, |x: Tensor| Ok(vec![x]))[0].clone()
    })
    .call(number(1.0))
    .unwrap_err();
    assert!(error.to_string().contains("2 are required"), "{error}");
}

#[test]
fn a_block_is_one_operation_with_the_gradient_of_its_function() {
    let f = |x: Expr| block("softplus", x, |x| (x.exp() + 1.0).log());
    let compiled = jit(f).compile(Tensor::template(&[], DType::F32).unwrap()).unwrap();
    assert!(compiled.to_string().contains("softplus"), "{compiled}");
    let slope = jit(move |x: Expr| grad(&x, f)).call(number(0.0)).unwrap();
    assert_eq!(slope.item::<f32>().unwrap(), 0.5);
}

#[test]
fn compiled_functions_refuse_other_arguments() {
    let f = jit(|(x, rest): (Expr, Vec<Expr>)| rest.into_iter().fold(x, |sum, x| sum + x));
    let ty = || Tensor::template(&[2], DType::F32).unwrap();
    let compiled = f.compile((ty(), vec![ty()])).unwrap();
    let x = || tensor![1.0, 2.0].unwrap();
    assert_eq!(compiled.call((x(), vec![x()])).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    let text = |arguments| compiled.call(arguments).unwrap_err().to_string();
    assert!(text((x(), vec![x(), x()])).contains("3 arguments, the compiled function takes 2"));
    assert!(text((number(1.0), vec![x()])).contains("argument 0 is f32, the compiled function takes f32[2]"));
    assert!(text((x(), vec![ty()])).contains("template"), "a template has no values");
}

#[test]
fn explanations_name_what_differs() {
    let f = jit(|x: Vec<Expr>| x[0].clone());
    f.call(vec![tensor![1, 2].unwrap()]).unwrap();
    f.call(vec![tensor![1.0, 2.0, 3.0].unwrap()]).unwrap();
    assert_eq!(f.explain(&vec![tensor![1, 2].unwrap()]), "runs program 1 of 2");
    let why = f.explain(&vec![tensor![1, 2, 3].unwrap()]);
    // Both are one difference away in one tensor: the newer one is named.
    assert_eq!(why, "compiles: the dtype of tensor 0 changed from f32[3] to s32[3]");
    let why = f.explain(&vec![number(1.0), number(2.0)]);
    assert_eq!(why, "compiles: the number of tensors changed from 1 to 2");
}

#[test]
fn checks_hold_for_functions_and_for_scopes() {
    let log = jit(|x: Expr| x.log());
    let checks = Checks { nan: true, ..Checks::default() };
    assert!(log.call(number(-1.0)).unwrap().item::<f32>().unwrap().is_nan());
    let error = defn::with_checks(checks, || log.call(number(-1.0))).unwrap_err();
    assert_eq!(error.class(), ErrorClass::NonFinite);
    assert_eq!(log.programs(), 2);
    let checked = jit(|x: Expr| x.log()).with_checks(checks);
    assert_eq!(checked.call(number(-1.0)).unwrap_err().class(), ErrorClass::NonFinite);
    assert!(number(-1.0).log().is_ok());
}

#[test]
fn stages_give_what_the_whole_gives() {
    let captured = tensor![1.0, 2.0, 3.0].unwrap();
    let f = jit(move |(x, w): (Expr, Expr)| {
        let h = (x.dot(&w) + &captured).tanh().mark("hidden");
        (h.sum(Axes::All, false), h.dot(w.transpose(Axes::All)) * 2.0)
    });
    let x = Tensor::iota(&[4, 2], DType::F32, None).unwrap().divide(8).unwrap();
    let w = Tensor::iota(&[2, 3], DType::F32, None).unwrap().divide(6).unwrap();
    let whole = f.compile((x.clone(), w.clone())).unwrap();
    let (sum, out) = whole.call((x.clone(), w.clone())).unwrap();
    let rules = [Rule::Every(1), Rule::Every(2), Rule::Marks(Marks::All), Rule::Balanced(3)];
    for rule in rules {
        let stages = whole.split(&rule).unwrap();
        let (a, b) = stages.call((x.clone(), w.clone())).unwrap();
        assert_eq!(a.to_vec::<f32>().unwrap(), sum.to_vec::<f32>().unwrap(), "{rule:?}");
        assert_eq!(b.to_vec::<f32>().unwrap(), out.to_vec::<f32>().unwrap(), "{rule:?}");
        for threads in [1, 2, 5] {
            let lists = (0..7).map(|_| (x.clone(), w.clone())).collect();
            for (a, b) in stages.call_each(lists, threads).unwrap() {
                assert_eq!(a.to_vec::<f32>().unwrap(), sum.to_vec::<f32>().unwrap(), "{rule:?}");
                assert_eq!(b.to_vec::<f32>().unwrap(), out.to_vec::<f32>().unwrap(), "{rule:?}");
            }
        }
        assert!(stages.call_each(Vec::new(), 2).unwrap().is_empty());
        assert!(stages.call_each(Vec::new(), 0).is_err());
    }
    assert!(whole.split(&Rule::Every(0)).is_err());
}

#[test]
fn stages_of_a_pipeline_see_requests_in_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let f = jit(move |x: Expr| {
        let log = log.clone();
        let y = hook(x.sin(), move |y: Tensor| log.lock().unwrap().push(y.item::<f32>().unwrap()));
        y.cos()
    });
    let stages =
        f.compile(Tensor::template(&[], DType::F32).unwrap()).unwrap().split(&Rule::Every(1)).unwrap();
    let xs: Vec<f32> = (0..20).map(|i| i as f32 / 20.0).collect();
    let results = stages.call_each(xs.iter().map(|&x| number(x)).collect(), 4).unwrap();
    assert_eq!(results.len(), 20);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 20);
    assert!(seen.is_sorted(), "{seen:?}");
}

#[test]
fn an_error_ends_a_pipeline() {
    let f = jit(|x: Expr| {
        hook(x + 1, |x: Tensor| if x.item::<i32>()? == 5 { Err(Error::other("five")) } else { Ok(()) }) * 2
    });
    let stages =
        f.compile(Tensor::template(&[], DType::S32).unwrap()).unwrap().split(&Rule::Every(1)).unwrap();
    let lists = (0..10).map(|i| Tensor::scalar(i).unwrap()).collect();
    assert!(stages.call_each(lists, 3).unwrap_err().to_string().starts_with("five"));
}

#[test]
fn saved_functions_are_the_same_elsewhere() {
    let path = std::env::temp_dir().join(format!("defn-programs-{}.program", std::process::id()));
    let weight = Tensor::iota(&[2, 2], DType::F32, None).unwrap();
    let f = jit(move |(x, n): (Expr, Expr)| (for_(x, 0..3, |x, _| x.dot(&weight).tanh()), n + 0.1));
    let x = tensor![[0.25, -0.5]].unwrap();
    let n = tensor![1.0, 2.0; f64].unwrap().vectorize(&["lane"]).unwrap();
    let compiled = f.compile((x.clone(), n.clone())).unwrap();
    compiled.save(&path).unwrap();
    let loaded = Saved::load(&path).unwrap();
    let expected = compiled.call((x.clone(), n.clone())).unwrap();
    let got = loaded.call(&(x.clone(), n.clone())).unwrap();
    assert_eq!(got[0].to_vec::<f32>().unwrap(), expected.0.to_vec::<f32>().unwrap());
    assert_eq!(got[1].to_vec::<f64>().unwrap(), expected.1.to_vec::<f64>().unwrap());
    assert_eq!(got[1].vectorized_axes(), n.vectorized_axes());
    assert!(loaded.call(&(x.clone(), x.clone())).is_err());
    assert!(loaded.call(&x).is_err());

    // Every single byte may be wrong: an error or a function, never a panic.
    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x15;
        std::fs::write(&path, &broken).unwrap();
        if let Ok(function) = Saved::load(&path) {
            _ = function.call(&(x.clone(), n.clone()));
        }
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(Saved::load(&path).is_err(), "{at} bytes");
    }
    std::fs::remove_file(&path).unwrap();
    let hooked = jit(|x: Expr| hook(x, |_: Tensor| ())).compile(number(1.0)).unwrap();
    assert!(hooked.save(&path).unwrap_err().to_string().contains("hooks"));
}

/// A stream of sums, which hold at most two chunks.
fn sums() -> Stream<Expr, Expr, Expr> {
    let step = |x: Expr, sum: Expr| (sum.clone(), x + sum);
    stream(step, Tensor::template(&[], DType::S32).unwrap(), Tensor::scalar(0).unwrap(), 2).unwrap()
}

#[test]
fn a_full_stream_waits_until_an_output_is_received() {
    let sums = sums();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| (1..=5).try_for_each(|i| sums.send(Tensor::scalar(i)?)));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!sender.is_finished());
        let mut outputs: Vec<i32> = Vec::new();
        while outputs.len() < 5 {
            // Where the sender has not come yet, nothing is under way.
            outputs.extend((&sums).map(|sum| sum.unwrap().item::<i32>().unwrap()));
        }
        assert_eq!(outputs, [0, 1, 3, 6, 10]);
        sender.join().unwrap().unwrap();
    });
    assert_eq!(format!("{sums:?}"), "Stream(open, 0 chunks under way)");
    assert_eq!(sums.done().unwrap().item::<i32>().unwrap(), 15);
}

#[test]
fn streams_refuse_what_does_not_fit() {
    let sums = sums();
    assert!(sums.send(number(1.0)).is_err());
    assert!(sums.recv().unwrap_err().to_string().contains("without a chunk under way"));
    sums.send(Tensor::scalar(1).unwrap()).unwrap();
    assert_eq!(sums.recv().unwrap().item::<i32>().unwrap(), 0);
    let template = || Tensor::template(&[], DType::S32).unwrap();
    let step = |x: Expr, sum: Expr| (x.clone(), (x + sum).as_type(DType::F32));
    let error = stream(step, template(), Tensor::scalar(0).unwrap(), 1).unwrap_err();
    assert!(error.to_string().contains("is f32 after the body and s32 before"), "{error}");
    let step = |x: Expr, sum: Expr| (x, sum);
    assert!(stream(step, template(), Tensor::scalar(0).unwrap(), 0).is_err());
}

#[test]
fn the_error_of_a_step_comes_out_of_its_output() {
    let step = |x: Expr, n: Expr| {
        let x = hook(x, |x: Tensor| if x.item::<i32>()? == 2 { Err(Error::other("two")) } else { Ok(()) });
        (x, n)
    };
    let stream =
        stream(step, Tensor::template(&[], DType::S32).unwrap(), Tensor::scalar(0).unwrap(), 4).unwrap();
    for i in 1..=2 {
        stream.send(Tensor::scalar(i).unwrap()).unwrap();
    }
    let outputs: Vec<Result<Tensor>> = (&stream).collect();
    assert!(outputs[0].is_ok());
    let error = outputs[1].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("two\n  at ") && error.contains("programs.rs"), "{error}");
    assert_eq!(outputs.len(), 2);
    assert!(stream.send(Tensor::scalar(3).unwrap()).is_err());
    assert!(stream.done().is_err());
}

#[test]
fn a_stream_whose_step_panics_does_not_hang() {
    let step = |x: Expr, n: Expr| (hook(x, |_: Tensor| -> () { panic!("in the step") }), n);
    let stream =
        stream(step, Tensor::template(&[], DType::S32).unwrap(), Tensor::scalar(0).unwrap(), 1).unwrap();
    stream.send(Tensor::scalar(1).unwrap()).unwrap();
    assert!(stream.recv().unwrap_err().to_string().starts_with("stream: the step has panicked"));
}

#[test]
fn a_stream_may_be_dropped_with_chunks_under_way() {
    let sums = sums();
    sums.send(Tensor::scalar(1).unwrap()).unwrap();
    sums.send(Tensor::scalar(2).unwrap()).unwrap();
    drop(sums);
}

#[test]
fn mapped_functions_give_what_loops_give() {
    let x = Tensor::iota(&[3, 4], DType::F32, None).unwrap();
    let rows = jit(|x: Expr| vmap(x, |row| vmap(row, |a| a.sin() * 2.0).sum(Axes::All, false)));
    let expected = x.sin().unwrap().multiply(2).unwrap().sum(1, false).unwrap();
    assert_eq!(rows.call(x.clone()).unwrap().to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    let columns = jit(|x: Expr| vmap_at(x, &[-1], 1, |column| column.cumulative_sum(0, false)));
    let y = columns.call(x.clone()).unwrap();
    assert_eq!(y.ty().to_string(), "f32[3][4]");
    assert_eq!(y.to_vec::<f32>().unwrap(), x.cumulative_sum(0, false).unwrap().to_vec::<f32>().unwrap());
    let text = |result: Result<Tensor>| result.unwrap_err().to_string();
    let error = text(jit(|x: Expr| vmap_at(x, &[0, 1], 0, |x| x)).call(x.clone()));
    assert!(error.starts_with("vmap: axes is 2 axes, it must be one for each of 1 tensors"), "{error}");
    let error = text(jit(|x: Expr| vmap(x, |x| x)).call(number(1.0)));
    assert!(error.starts_with("vmap: axis 0 is out of range"), "{error}");
    let error =
        text(jit(|(a, b): (Expr, Expr)| vmap((a, b), |(a, b)| a + b)).call((x, tensor![1.0].unwrap())));
    assert!(error.starts_with("vmap: the sizes of the mapped axes is [3, 1]"), "{error}");
}

#[test]
fn starts_may_be_computed() {
    let f = jit(|(x, i): (Expr, Expr)| {
        let row = x.slice(&[i.clone(), Expr::constant(DType::S32, 0)], &[1, 2]);
        let all = x.put_slice(&row * 10, &[&i, &i.zeros_like()]);
        (x.slice_along_axis(&i, 1, 0), all)
    });
    let x = Tensor::iota(&[3, 2], DType::S32, None).unwrap();
    let (row, all) = f.call((x.clone(), Tensor::scalar(1).unwrap())).unwrap();
    assert_eq!(row.to_vec::<i32>().unwrap(), [2, 3]);
    assert_eq!(all.to_vec::<i32>().unwrap(), [0, 1, 20, 30, 4, 5]);
    assert!(
        x.slice(&[0.5, 0.0], &[1, 1])
            .unwrap_err()
            .to_string()
            .starts_with("slice: a start is a number (f32)")
    );
}

#[test]
fn profiles_count_steps_of_loops() {
    let f = jit(|x: Expr| {
        while_(
            (x, Expr::constant(DType::S32, 0)),
            |(_, i)| i.less(3),
            |(x, i)| (x.sort(0, defn::Direction::Asc), i + 1),
        )
        .0
    });
    let x = Tensor::iota(&[100], DType::F32, None).unwrap();
    let (_, profile) = f.compile(x.clone()).unwrap().profile(x).unwrap();
    let steps = profile.steps();
    assert!(steps.iter().any(|step| step.depth == 1 && step.runs == 3), "{profile}");
    assert!(profile.to_string().contains("programs.rs"), "{profile}");
}

#[test]
fn equal_results_may_be_donated_together() {
    let start = jit(|x: Expr| (x.zeros_like(), x.zeros_like(), x));
    let step = jit(|(a, b, x): (Expr, Expr, Expr)| (&a + &x, &b - &x, x)).donating(&[0, 1]);
    let mut state = start.call(Tensor::full(&[64], DType::F32, 2.0).unwrap()).unwrap();
    for _ in 0..3 {
        state = step.call(state).unwrap();
    }
    assert_eq!(state.0.to_vec::<f32>().unwrap(), [6.0; 64]);
    assert_eq!(state.1.to_vec::<f32>().unwrap(), [-6.0; 64]);
}
