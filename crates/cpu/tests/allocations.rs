//! Allocations that fail: whichever allocation is the first without memory, a program ends with a result or with an
//! out-of-memory error, and never aborts the process.
//!
//! Programs run in child processes, so that an abort is detected and the failed allocation reported.
//! `DEFN_TEST_PROGRAMS` sets a larger number of random programs.

#[path = "../../core/tests/graph/common/mod.rs"]
mod graphs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::process::Command;
use std::sync::Arc;

use defn_core::backend::{Checks, Compiler, HostMemory};
use defn_core::builder::{
    BuildCreate, BuildElementwise, BuildFourier, BuildIndex, BuildLinalg, BuildMatrix, BuildOrder,
    BuildReduce, BuildSearch, BuildSets, BuildShape, FftLength, FftNorm, Ops, Source,
};
use defn_core::evaluator::Evaluator;
use defn_core::op::{Direction, QrMode};
use defn_core::region::Region;
use defn_core::{Axes, DType, ErrorClass, Number, Result, Scalar, Shape, Tensor, TensorType, grad, memory};
use defn_cpu::{Allocator, CpuCompiler, cpu_backend, with_threads};
use graphs::bounded::bounded;
use graphs::digest::Notes;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The number of random programs, and of those that a child runs.
const PROGRAMS: usize = 10;
const BATCH: usize = 10;

/// The most bytes that an infallible allocation gets from the reserve.
const MOST: usize = 64 << 10;

#[global_allocator]
static ALLOCATOR: Allocator<Failing> = Allocator::over(Failing, MOST);

/// The system's allocator until a thread has used up its number of allocations.
struct Failing;

thread_local! {
    /// How many more allocations of this thread succeed; None for no limit.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    /// How many allocations there were.
    static MADE: Cell<usize> = const { Cell::new(0) };
    /// Whether only allocations count that are too large for the reserve.
    static LARGE: Cell<bool> = const { Cell::new(false) };
    /// Whether the first large allocation that fails is printed.
    static TELL: Cell<bool> = const { Cell::new(false) };
}

impl Failing {
    /// Whether an allocation succeeds.
    fn passes(size: usize) -> bool {
        if LARGE.get() && size <= MOST {
            return true;
        }
        MADE.set(MADE.get() + 1);
        match LEFT.get() {
            None => true,
            Some(0) => {
                if size > MOST && TELL.replace(false) {
                    let left = LEFT.replace(None);
                    eprintln!("{size} bytes are refused:\n{}", Backtrace::force_capture());
                    LEFT.set(left);
                }
                false
            }
            Some(left) => {
                LEFT.set(Some(left - 1));
                true
            }
        }
    }
}

// SAFETY: memory comes from the system, or there is none.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Failing::passes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !Failing::passes(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, size) }
    }
}

/// Runs `body` with a number of allocations that succeed; also returns how many there were.
fn after<T>(allocations: Option<usize>, body: impl FnOnce() -> T) -> (T, usize) {
    memory::forget_shortage();
    MADE.set(0);
    LEFT.set(allocations);
    let made = body();
    LEFT.set(None);
    (made, MADE.get())
}

/// Runs a program with 0, 1, 2, ... allocations that succeed, until these suffice.
fn with_any_number(name: &str, mut program: impl FnMut() -> Result<()>) {
    // The second run finds what is allocated once for the process.
    let _ = program();
    let (_, most) = after(None, &mut program);
    TELL.set(std::env::var_os("DEFN_TEST_TELL").is_some());
    for left in 0..=most {
        eprintln!("{name}, {left} of {most}");
        let (ended, _) = after(Some(left), &mut program);
        if let Err(error) = ended {
            let is_memory = error.class() == ErrorClass::OutOfMemory;
            assert!(is_memory || program().is_err(), "{name}: {error}");
        }
    }
}

/// Elements for an input.
fn input(ty: &TensorType, index: usize) -> Tensor {
    let element = |position: usize| {
        let number = match ty.dtype.is_integer() {
            true => Number::Int((position + index) as i128 % 2),
            false => Number::Float(((11 * position + 3 * index) % 7) as f64 / 4.0 - 0.6),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    let buffer = cpu_backend().from_host(ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty.clone(), buffer)
}

/// The life of a program: it is differentiated, compiled by both compilers, run, printed and parsed.
fn live(region: &Arc<Region>, arguments: &[Tensor]) -> Result<()> {
    let backend = cpu_backend();
    for compiler in [&CpuCompiler::new() as &dyn Compiler, &Evaluator::new(backend.clone())] {
        let program = compiler.compile(region.clone(), Checks::default())?;
        program.run(&backend, arguments.to_vec(), &Notes::default())?;
    }
    let wrt: Vec<usize> = (0..region.parameter_count()).collect();
    match grad::value_and_grad(region, 0, &wrt) {
        Ok(_) => {}
        Err(error) if error.class() == ErrorClass::OutOfMemory => return Err(error),
        // Many programs have no gradient.
        Err(_) => {}
    }
    Ok(())
}

/// Random programs, the same ones in every run.
fn random(first: usize, count: usize) -> Vec<Region> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = graphs::regions();
    let drawn = (0..first + count).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    drawn.skip(first).collect()
}

fn random_programs(first: usize) {
    for (at, region) in random(first, BATCH).iter().enumerate() {
        let region = Arc::new(bounded(region, 3));
        let types = region.inputs().iter().enumerate();
        let arguments: Vec<Tensor> = types.map(|(index, ty)| input(ty, index)).collect();
        with_any_number(&format!("program {}", first + at), || live(&region, &arguments));
    }
}

/// Ops on arrays that are larger than the reserve.
fn large_arrays() {
    LARGE.set(true);
    let ops = || Ops::new(cpu_backend(), Source::Unknown);
    let matrix = input(&TensorType::new(DType::F64, Shape::new(&[150, 150])).unwrap(), 0);
    let long = input(&TensorType::new(DType::F64, Shape::new(&[30_011])).unwrap(), 0);
    let places = input(&TensorType::new(DType::S64, Shape::new(&[30_000])).unwrap(), 0);
    let square = ops().dot(&matrix, ops().transpose(&matrix, Axes::All).unwrap()).unwrap();
    let eye = ops().eye(square.ty().shape.clone(), DType::F64).unwrap();
    let square = ops().add(&square, &eye).unwrap();
    macro_rules! each {
        ($($name:literal: |$ops:ident| $body:expr;)*) => {$(
            with_any_number($name, || {
                let mut $ops = ops();
                let _made = $body?;
                Ok(())
            });
        )*};
    }
    each! {
        "add": |ops| ops.add(&matrix, &matrix);
        "dot": |ops| ops.dot(&matrix, &matrix);
        "sort": |ops| ops.sort(&long, 0, Direction::Asc);
        "sort columns": |ops| ops.sort(&matrix, 0, Direction::Asc);
        "argsort": |ops| ops.argsort(&long, 0, Direction::Asc, DType::S64);
        "top_k": |ops| ops.top_k(&long, 20_000);
        "partition": |ops| ops.partition(&long, &[20_000], 0);
        "argpartition": |ops| ops.argpartition(&long, &[20_000], 0);
        "isin": |ops| ops.isin(&long, &long, false);
        "bincount": |ops| ops.bincount(&places, None, 30_000);
        "median": |ops| ops.median(&long, None, false);
        "take": |ops| ops.take(&long, &places, 0);
        "fft": |ops| ops.fft(&long, -1, FftLength::Axis, FftNorm::Backward, 1e-10);
        "rfft": |ops| ops.rfft(&long, -1, FftLength::Axis, FftNorm::Backward, 1e-10);
        "solve": |ops| ops.solve(&square, &square);
        "cholesky": |ops| ops.cholesky(&square);
        "qr": |ops| ops.qr(&matrix, QrMode::Reduced, 1e-10);
        "lu": |ops| ops.lu(&square);
        "svd": |ops| ops.svd(&matrix, 100, true);
        "svdvals": |ops| ops.svdvals(&matrix);
        "eigvalsh": |ops| ops.eigvalsh(&square);
        "eigh": |ops| ops.eigh(&square, 100, 1e-10);
        "determinant": |ops| ops.determinant(&square);
        "transpose": |ops| ops.transpose(&matrix, Axes::All);
        "covariance": |ops| ops.covariance(&matrix, None, 1);
    }
    for copy in [&matrix, &long] {
        with_any_number("copy", || copy.copy_to("backend_copy", &cpu_backend()).map(drop));
    }
}

/// The work of a child process.
#[test]
fn child() {
    let Ok(task) = std::env::var("DEFN_TEST_CHILD") else { return };
    // The message of a panic is allocated before.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        LEFT.set(None);
        told(panic);
    }));
    with_threads(1, || match task.as_str() {
        "large" => large_arrays(),
        first => random_programs(first.parse().unwrap()),
    })
    .unwrap();
    println!("done");
}

/// Runs a child; returns the end of its output if it does not finish.
fn run(task: &str) {
    let output = |tell: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["child", "--exact", "--nocapture"]).env("DEFN_TEST_CHILD", task);
        if tell {
            command.env("DEFN_TEST_TELL", "");
        }
        command.output().unwrap()
    };
    if output(false).status.success() {
        return;
    }
    let again = output(true);
    let words = String::from_utf8_lossy(&again.stderr).into_owned();
    let last: Vec<&str> = words.lines().rev().take(60).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    panic!("{task}: {}\n{}", again.status, last.join("\n"));
}

#[test]
fn random_programs_end_with_an_error() {
    let programs = std::env::var("DEFN_TEST_PROGRAMS").map_or(PROGRAMS, |count| count.parse().unwrap());
    (0..programs).step_by(BATCH).for_each(|first| run(&first.to_string()));
}

#[test]
fn ops_on_large_arrays_end_with_an_error() {
    run("large");
}
