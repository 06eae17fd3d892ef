//! Functions that are compiled in the background.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use defn::prelude::*;
use defn::{Checks, ErrorClass, compiler};
use defn_core::backend::{Compiler, Executable};
use defn_core::background::First;
use defn_core::device::DeviceError;
use defn_core::region::Region;

/// The CPU's compiler, which begins when the test says so, and fails if the test says that.
#[derive(Debug)]
struct Waiting(Arc<dyn Compiler>, Mutex<Receiver<bool>>);

impl Compiler for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> defn::Result<Arc<dyn Executable>> {
        match self.1.lock().unwrap().recv().unwrap() {
            true => self.0.compile_donating(program, checks, donate),
            false => Err(DeviceError::no_donation("waiting").into()),
        }
    }

    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> defn::Result<Option<First>> {
        self.0.in_background(program, checks, donate)
    }
}

#[test]
fn a_function_switches_when_its_program_is_there() {
    let (begin, receiver) = channel();
    let waiting = Arc::new(Waiting(compiler("cpu").unwrap(), Mutex::new(receiver)));
    let step = jit(|(x, y): (Expr, Expr)| x.exp() + y)
        .with_compiler(waiting)
        .in_background(|error| panic!("{error}"))
        .donating(&[0]);
    let call = || {
        let (x, y) = (Tensor::scalar(0.0).unwrap(), Tensor::scalar(2.0).unwrap());
        assert_eq!(step.call((x.clone(), y)).unwrap().item::<f32>().unwrap(), 3.0);
        let error = x.item::<f32>().unwrap_err().to_string();
        assert!(error.contains("memory was donated at crates/defn/tests/facade/background.rs"), "{error}");
    };
    call();
    call();
    let arguments = || (Tensor::scalar(0.0).unwrap(), Tensor::scalar(2.0).unwrap());
    assert_eq!(step.explain(&arguments()), "runs program 1 of 1, which is compiled in the background");
    let compiled = step.compile(arguments()).unwrap();
    assert!(!compiled.is_ready());
    begin.send(true).unwrap();
    compiled.wait().unwrap();
    step.wait().unwrap();
    assert!(compiled.is_ready());
    call();
    assert_eq!(step.explain(&arguments()), "runs program 1 of 1");
}

#[test]
fn a_failure_is_told_once() {
    let (begin, receiver) = channel();
    let waiting = Arc::new(Waiting(compiler("cpu").unwrap(), Mutex::new(receiver)));
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let double = jit(|x: Expr| &x + &x)
        .with_compiler(waiting)
        .in_background(move |error| kept.lock().unwrap().push(error.to_string()));
    let call = || double.call(Tensor::scalar(2).unwrap()).unwrap().item::<i32>().unwrap();
    assert_eq!(call(), 4);
    begin.send(false).unwrap();
    let error = double.wait().unwrap_err();
    assert_eq!(error.class(), ErrorClass::Compile);
    assert_eq!((call(), call()), (4, 4));
    assert_eq!(*told.lock().unwrap(), [error.to_string()]);
    let explained = double.explain(&Tensor::scalar(2).unwrap());
    assert_eq!(explained, format!("runs program 1 of 1, which was not compiled: {error}"));
}

#[test]
fn errors_of_the_function_are_those_of_the_call() {
    let add = jit(|(a, b): (Expr, Expr)| a + b).in_background(|error| panic!("{error}"));
    let error = add.call((tensor![1, 2].unwrap(), tensor![1, 2, 3].unwrap())).unwrap_err();
    assert!(error.to_string().starts_with("add: shapes [2] and [3] do not broadcast"), "{error}");
}
