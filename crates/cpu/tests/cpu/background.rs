//! Compilation in the background, with a compiler that waits for the test: what calls do before, at and after the
//! switch.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use defn_core::backend::{Backend, Checks, Compiler, Executable, Hooks, HostMemory, MemoryNeed, NoHooks};
use defn_core::background::{Background, First, Progress, Tell};
use defn_core::builder::{BuildControl, BuildElementwise, Ops, Source};
use defn_core::device::DeviceError;
use defn_core::evaluator::Evaluator;
use defn_core::profile::{Recorder, observing};
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::{DType, ErrorClass, Result, Shape, Tensor, TensorType};
use defn_cpu::{CpuCompiler, cpu_backend};

/// What the compiler does once the test lets it.
#[derive(Clone, Copy, Debug)]
enum Then {
    Compile,
    Fail,
    Panic,
    /// It returns a program that reads more than the first calls do.
    ReadMore,
}

/// The CPU's compiler, which begins when the test says so.
struct Waiting {
    begin: Mutex<Receiver<Then>>,
    compiled: AtomicUsize,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

fn waiting() -> (Arc<Waiting>, Sender<Then>) {
    let (sender, receiver) = channel();
    (Arc::new(Waiting { begin: Mutex::new(receiver), compiled: AtomicUsize::new(0) }), sender)
}

impl Compiler for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        let then = self.begin.lock().unwrap_or_else(PoisonError::into_inner).recv().unwrap();
        self.compiled.fetch_add(1, Ordering::SeqCst);
        match then {
            Then::Compile => CpuCompiler::new().compile_donating(program, checks, donate),
            Then::Fail => Err(DeviceError::no_donation("waiting").into()),
            Then::Panic => panic!("on purpose"),
            Then::ReadMore => Ok(Arc::new(ReadsAll(CpuCompiler::new().compile(program, checks)?))),
        }
    }

    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Option<First>> {
        CpuCompiler::new().in_background(program, checks, donate)
    }
}

#[derive(Debug)]
struct ReadsAll(Arc<dyn Executable>);

impl Executable for ReadsAll {
    fn program(&self) -> &Arc<Region> {
        self.0.program()
    }

    fn run(&self, backend: &Arc<dyn Backend>, given: Vec<Tensor>, hooks: &dyn Hooks) -> Result<Vec<Tensor>> {
        self.0.run(backend, given, hooks)
    }
}

fn vector() -> TensorType {
    TensorType::new(DType::F64, Shape::new(&[2])).unwrap()
}

fn f64s(values: [f64; 2]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let buffer = cpu_backend().from_host(&vector(), HostMemory::new(Arc::new(bytes))).unwrap();
    Tensor::concrete(vector(), buffer)
}

fn read(tensor: &Tensor) -> Vec<f64> {
    let memory = tensor.host_bytes("test").unwrap();
    memory.bytes().chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn traced(function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>) -> Arc<Region> {
    let (tracing, parameters) = Trace::begin(&[vector(), vector()]);
    let results = function(&mut Ops::new(cpu_backend(), Source::Unknown), &parameters).unwrap();
    Arc::new(tracing.finish("test", &results).unwrap().region)
}

/// `sin(x) + 1`; the second parameter is not read.
fn program() -> Arc<Region> {
    traced(|ops, x| {
        let sine = ops.sin(&x[0])?;
        Ok(vec![ops.add(&sine, 1)?])
    })
}

/// The errors that were told.
type Told = Arc<Mutex<Vec<String>>>;

fn telling() -> (Tell, Told) {
    let told = Told::default();
    let kept = told.clone();
    let tell = move |error: &defn_core::Error| -> Result<()> {
        kept.lock().unwrap().push(error.to_string());
        Ok(())
    };
    (Arc::new(tell), told)
}

fn start(region: Arc<Region>, donate: &[usize]) -> (Arc<dyn Executable>, Sender<Then>, Told) {
    let (compiler, begin) = waiting();
    let (tell, told) = telling();
    let made = Background::new(compiler, tell).compile_donating(region, Checks::default(), donate).unwrap();
    (made, begin, told)
}

fn call(executable: &dyn Executable, arguments: [&Tensor; 2]) -> Result<Tensor> {
    let arguments = arguments.map(Clone::clone).to_vec();
    Ok(executable.run(&cpu_backend(), arguments, &NoHooks)?.remove(0))
}

fn steps(executable: &dyn Executable) -> usize {
    let recorder = Arc::new(Recorder::default());
    observing(&recorder, || call(executable, [&f64s([0.0; 2]), &f64s([0.0; 2])])).unwrap();
    recorder.record().steps.len()
}

fn expected(x: [f64; 2]) -> Vec<f64> {
    x.map(|x| x.sin() + 1.0).to_vec()
}

fn close(got: &Tensor, want: &[f64]) {
    let got = read(got);
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-15), "{got:?} {want:?}");
}

#[test]
fn calls_are_evaluated_until_the_program_is_there() {
    let (made, begin, told) = start(program(), &[]);
    let x = [0.5, 1.5];
    for _ in 0..3 {
        close(&call(&*made, [&f64s(x), &f64s(x)]).unwrap(), &expected(x));
        assert!(matches!(made.progress(), Progress::Compiling));
        assert_eq!(steps(&*made), 2, "an op is a step of the evaluator");
    }
    begin.send(Then::Compile).unwrap();
    made.wait(&|| Ok(())).unwrap();
    assert!(matches!(made.progress(), Progress::Compiled));
    close(&call(&*made, [&f64s(x), &f64s(x)]).unwrap(), &expected(x));
    assert_eq!(steps(&*made), 1, "they are one loop nest");
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn what_a_call_need_not_pass_stays_so() {
    let (made, begin, _) = start(program(), &[]);
    let unused = Tensor::template(vector());
    for is_compiled in [false, true] {
        assert_eq!([made.uses(0), made.uses(1)], [true, false]);
        close(&call(&*made, [&f64s([1.0, 2.0]), &unused]).unwrap(), &expected([1.0, 2.0]));
        if !is_compiled {
            begin.send(Then::Compile).unwrap();
            made.wait(&|| Ok(())).unwrap();
        }
    }
}

#[test]
fn a_failure_is_told_once_and_calls_go_on() {
    for (then, text) in [
        (Then::Fail, "donate: the compiler \"waiting\" reuses no arguments"),
        (Then::Panic, "compile: the compiler panicked (on purpose)"),
        (Then::ReadMore, "compile: the program reads argument 1"),
    ] {
        let (made, begin, told) = start(program(), &[]);
        begin.send(then).unwrap();
        let error = made.wait(&|| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(error.class(), ErrorClass::Compile);
        assert!(matches!(made.progress(), Progress::Failed(_)));
        assert!(told.lock().unwrap().is_empty(), "a call tells");
        for _ in 0..3 {
            close(&call(&*made, [&f64s([3.0, 4.0]), &f64s([0.0; 2])]).unwrap(), &expected([3.0, 4.0]));
        }
        assert_eq!(*told.lock().unwrap(), [error.to_string()]);
        assert_eq!(made.memory().unwrap_err().to_string(), error.to_string());
    }
}

#[test]
fn an_error_of_telling_ends_one_call() {
    let (compiler, begin) = waiting();
    let tell: Tell = Arc::new(|error| Err(error.clone()));
    let made = Background::new(compiler, tell).compile(program(), Checks::default()).unwrap();
    begin.send(Then::Fail).unwrap();
    made.wait(&|| Ok(())).unwrap_err();
    let x = f64s([0.0; 2]);
    assert!(call(&*made, [&x, &x]).is_err());
    assert!(call(&*made, [&x, &x]).is_ok());
}

#[test]
fn donated_arguments_are_gone_before_and_after_the_switch() {
    let (made, begin, _) = start(program(), &[0]);
    let other = f64s([0.0; 2]);
    for is_compiled in [false, true] {
        let (given, gone) = (f64s([1.0, 2.0]), f64s([5.0, 6.0]));
        let result = call(&*made, [&given, &other]).unwrap();
        close(&result, &expected([1.0, 2.0]));
        let error = given.host_bytes("read").unwrap_err();
        assert!(error.to_string().contains("donated"), "{error}");
        gone.buffer().unwrap().deallocate().unwrap();
        let error = call(&*made, [&gone, &other]).unwrap_err();
        assert!(
            error.to_string().starts_with("run: argument 0 is f64[2] and its memory was freed"),
            "{error}"
        );
        if !is_compiled {
            begin.send(Then::Compile).unwrap();
            made.wait(&|| Ok(())).unwrap();
        }
    }
}

/// Refuses the hook.
struct Refusing;

impl Hooks for Refusing {
    fn call(&self, _: usize, _: &[Tensor]) -> Result<()> {
        Err(DeviceError::no_donation("hook").into())
    }
}

#[test]
fn a_call_that_fails_gives_the_donated_argument_back() {
    let region = traced(|ops, x| {
        let shown = ops.hook(3, None, &[x[0].clone()])?.remove(0);
        Ok(vec![ops.add(&shown, 1)?])
    });
    let (made, begin, _) = start(region, &[0]);
    let x = f64s([1.0, 2.0]);
    made.run(&cpu_backend(), vec![x.clone(), x.clone()], &Refusing).unwrap_err();
    assert_eq!(read(&x), [1.0, 2.0]);
    begin.send(Then::Compile).unwrap();
}

#[test]
fn a_result_that_is_a_donated_argument_lives() {
    let region = traced(|_, x| Ok(vec![x[0].clone()]));
    let (made, begin, _) = start(region, &[0]);
    for is_compiled in [false, true] {
        let x = f64s([1.0, 2.0]);
        let result = call(&*made, [&x, &f64s([0.0; 2])]).unwrap();
        assert!(x.host_bytes("read").is_err());
        assert_eq!(read(&result), [1.0, 2.0]);
        if !is_compiled {
            begin.send(Then::Compile).unwrap();
            made.wait(&|| Ok(())).unwrap();
        }
    }
}

#[test]
fn an_argument_that_no_result_can_take_is_refused_by_the_call() {
    let region = traced(|ops, x| Ok(vec![ops.equal(&x[0], &x[1])?]));
    let (compiler, _begin) = waiting();
    let made = Background::new(compiler.clone(), telling().0);
    let error = made.compile_donating(region, Checks::default(), &[0]).unwrap_err();
    assert!(error.to_string().starts_with("donate: argument 0 is f64[2], a result of its dtype"), "{error}");
    assert_eq!(compiler.compiled.load(Ordering::SeqCst), 0);
}

#[test]
fn a_program_that_is_dropped_while_it_is_compiled() {
    let (compiler, begin) = waiting();
    let (tell, told) = telling();
    let made = Background::new(compiler.clone(), tell).compile(program(), Checks::default()).unwrap();
    drop(made);
    begin.send(Then::Fail).unwrap();
    // Its thread ends: before it compiles, or after, when nobody wants the program.
    while Arc::strong_count(&compiler) > 1 {
        std::thread::yield_now();
    }
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn threads_call_during_the_switch() {
    let (made, begin, told) = start(program(), &[]);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let made = &made;
            scope.spawn(move || {
                let x = [f64::from(thread), 0.5];
                let (given, other) = (f64s(x), f64s(x));
                // Each thread calls before and after.
                for _ in 0..20 {
                    close(&call(&**made, [&given, &other]).unwrap(), &expected(x));
                }
                made.wait(&|| Ok(())).unwrap();
                for _ in 0..20 {
                    close(&call(&**made, [&given, &other]).unwrap(), &expected(x));
                }
            });
        }
        begin.send(Then::Compile).unwrap();
    });
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn what_is_asked_of_the_program_waits_for_it() {
    let (made, begin, _) = start(program(), &[]);
    begin.send(Then::Compile).unwrap();
    let need = MemoryNeed { arguments: 16, results: 16, temporaries: 0, workspace: 0 };
    assert_eq!(made.memory().unwrap(), need);
    assert!(made.assembly(Some("avx2")).unwrap().starts_with("nest: "));
    assert!(made.to_bytes(&[]).unwrap_err().to_string().starts_with("save: the compiler writes"));
}

#[test]
fn a_wait_is_interrupted() {
    let (made, begin, _) = start(program(), &[]);
    let error = made.wait(&|| Err(DeviceError::no_donation("interrupted").into())).unwrap_err();
    assert!(error.to_string().contains("interrupted"));
    begin.send(Then::Compile).unwrap();
    made.wait(&|| Ok(())).unwrap();
}

#[test]
fn compilers_without_background_compilation() {
    #[derive(Debug)]
    struct Own;
    impl Compiler for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn compile_donating(&self, _: Arc<Region>, _: Checks, _: &[usize]) -> Result<Arc<dyn Executable>> {
            unreachable!("it is refused before")
        }
    }
    let error = Background::new(Arc::new(Own), telling().0).compile(program(), Checks::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "compile: the compiler \"own\" only compiles at once, one that also does in the background is required, such as \"cpu\" or \"pjrt\"; compile now"
    );
    // The evaluator has nothing to wait for, nor has a program with checks.
    let evaluator: Arc<dyn Compiler> = Arc::new(Evaluator::new(cpu_backend()));
    let nan = Checks { nan: true, ..Checks::default() };
    for (compiler, checks) in [(evaluator, Checks::default()), (Arc::new(CpuCompiler::new()), nan)] {
        let made = Background::new(compiler, telling().0).compile(program(), checks).unwrap();
        assert!(matches!(made.progress(), Progress::Compiled));
        close(&call(&*made, [&f64s([1.0, 2.0]), &f64s([0.0; 2])]).unwrap(), &expected([1.0, 2.0]));
    }
}
