//! Programs that are compiled in the background: their first calls run on the host, and nobody notices.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use defn_core::backend::{Checks, Compiler, Executable, Hooks, NoHooks};
use defn_core::background::{Background, First};
use defn_core::builder::*;
use defn_core::mesh::Mesh;
use defn_core::region::Region;
use defn_core::{DType, Result, Tensor};
use defn_cpu::cpu_backend;
use defn_pjrt::{CompilerOptions, MeshBackend, MeshCompiler, PjrtCompiler};

use crate::device::{compiler, dynamic, floats, host_backend, own_backend, read, run, trace, ty};

/// The compiler, which begins when the test says so.
struct Waiting(PjrtCompiler, Mutex<Receiver<()>>);

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl Compiler for Waiting {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        self.1.lock().unwrap().recv().unwrap();
        self.0.compile_donating(program, checks, donate)
    }

    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Option<First>> {
        self.0.in_background(program, checks, donate)
    }
}

fn start(compiler: PjrtCompiler, region: Arc<Region>, donate: &[usize]) -> (Arc<dyn Executable>, Sender<()>) {
    let (begin, receiver) = channel();
    let compiler = Arc::new(Waiting(compiler, Mutex::new(receiver)));
    let background = Background::new(compiler, Arc::new(|error| Err(error.clone())));
    (background.compile_donating(region, Checks::default(), donate).unwrap(), begin)
}

/// Runs `test` before and after the switch.
fn in_both(made: &dyn Executable, begin: &Sender<()>, mut test: impl FnMut()) {
    test();
    begin.send(()).unwrap();
    made.wait(&|| Ok(())).unwrap();
    test();
}

fn sums() -> Arc<Region> {
    trace(&[ty(DType::F32, &[3]), ty(DType::F32, &[3])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![ops.multiply(&sum, 2.0)?])
    })
}

#[test]
fn results_are_on_the_device_of_the_run() {
    let backend = own_backend("background");
    let (made, begin) = start(compiler(&backend), sums(), &[]);
    let host = cpu_backend();
    in_both(&*made, &begin, || {
        let compiles = backend.runtime().cache_report().compiles;
        assert!(compiles <= 1, "the first calls compile nothing, not even single ops");
        for (x, y) in [
            (floats(&*backend, &[1.0, 2.0, 3.0]), floats(&*backend, &[1.0; 3])),
            (floats(&*host, &[1.0, 2.0, 3.0]), floats(&*host, &[1.0; 3])),
            (floats(&*backend, &[1.0, 2.0, 3.0]), floats(&*host, &[1.0; 3])),
        ] {
            let result = run(&*made, &backend, vec![x, y]).unwrap().remove(0);
            assert_eq!(result.backend().unwrap().device_name(), "pjrt<background:0>");
            assert_eq!(read(&result), [4.0, 6.0, 8.0]);
        }
    });
    drop(made);
    assert_eq!(backend.runtime().live_buffers(), 0);
}

#[test]
fn lists_are_distributed_over_the_devices() {
    let (made, begin) = start(compiler(&host_backend(0)), sums(), &[]);
    in_both(&*made, &begin, || {
        let list = |n: u8| {
            let backend = cpu_backend();
            let list = vec![floats(&*backend, &[f32::from(n); 3]), floats(&*backend, &[1.0; 3])];
            (backend, list)
        };
        let results = made.run_each((0..5).map(list).collect(), &NoHooks).unwrap();
        for (n, results) in (0_u8..).zip(&results) {
            assert_eq!(results[0].backend().unwrap().device_name(), format!("pjrt<host:{}>", n % 4));
            assert_eq!(read(&results[0]), [2.0 * (f32::from(n) + 1.0); 3]);
        }
    });
}

#[test]
fn an_argument_on_another_device_is_refused() {
    let (made, begin) = start(compiler(&host_backend(0)), sums(), &[]);
    in_both(&*made, &begin, || {
        let arguments = vec![floats(&*host_backend(1), &[1.0; 3]), floats(&*host_backend(2), &[1.0; 3])];
        let error = run(&*made, &host_backend(1), arguments).unwrap_err();
        assert!(
            error.to_string().starts_with("run: the operands are on pjrt<host:1> and pjrt<host:2>"),
            "{error}"
        );
    });
}

#[test]
fn donated_arguments_are_gone() {
    let backend = host_backend(0);
    let (made, begin) = start(compiler(&backend), sums(), &[0]);
    in_both(&*made, &begin, || {
        let (x, y) = (floats(&*backend, &[1.0, 2.0, 3.0]), floats(&*backend, &[1.0; 3]));
        let result = run(&*made, &backend, vec![x.clone(), y.clone()]).unwrap().remove(0);
        assert_eq!(read(&result), [4.0, 6.0, 8.0]);
        assert!(x.host_bytes("read").unwrap_err().to_string().contains("donated"));
        let error = run(&*made, &backend, vec![x, y.clone()]).unwrap_err();
        assert!(
            error.to_string().starts_with("run: argument 0 is f32[3] and its memory was donated"),
            "{error}"
        );
        // A tensor of the host is copied to the device first; a tensor that is not donated stays.
        let host = floats(&*cpu_backend(), &[1.0, 2.0, 3.0]);
        run(&*made, &backend, vec![host.clone(), y.clone()]).unwrap();
        assert_eq!((read(&host), read(&y)), (vec![1.0, 2.0, 3.0], vec![1.0; 3]));
    });
}

#[test]
fn a_call_that_fails_uses_up_nothing() {
    let backend = host_backend(0);
    let (made, begin) = start(compiler(&backend), sums(), &[0]);
    in_both(&*made, &begin, || {
        let (x, gone) = (floats(&*backend, &[1.0, 2.0, 3.0]), floats(&*backend, &[1.0; 3]));
        gone.buffer().unwrap().deallocate().unwrap();
        let error = run(&*made, &backend, vec![x.clone(), gone]).unwrap_err();
        assert!(
            error.to_string().starts_with("run: argument 1 is f32[3] and its memory was freed"),
            "{error}"
        );
        assert_eq!(read(&x), [1.0, 2.0, 3.0]);
    });
}

/// Keeps what hooks see and where it is, and computes three times a value.
#[derive(Default)]
struct Seeing(Mutex<Vec<(usize, Vec<f32>, String)>>);

impl Seeing {
    fn see(&self, slot: usize, value: &Tensor) {
        let seen = (slot, read(value), value.backend().unwrap().device_name());
        self.0.lock().unwrap().push(seen);
    }
}

impl Hooks for Seeing {
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()> {
        self.see(slot, &values[0]);
        Ok(())
    }

    fn compute(&self, slot: usize, values: &[Tensor], _: &[defn_core::TensorType]) -> Result<Vec<Tensor>> {
        self.see(slot, &values[0]);
        let tripled: Vec<f32> = read(&values[0]).iter().map(|value| 3.0 * value).collect();
        Ok(vec![floats(&*cpu_backend(), &tripled)])
    }
}

#[test]
fn hooks_see_values_on_the_device_in_order() {
    let backend = host_backend(1);
    let vector = ty(DType::F32, &[2]);
    let region = trace(std::slice::from_ref(&vector), |ops, x| {
        let x = ops.hook(5, None, &[x[0].clone()])?.remove(0);
        let x = ops.runtime_call(6, std::slice::from_ref(&vector), &[x])?.remove(0);
        let x = ops.add(&x, 1.0)?;
        Ok(vec![ops.hook(7, None, &[x])?.remove(0)])
    });
    let (made, begin) = start(compiler(&backend), region, &[]);
    in_both(&*made, &begin, || {
        let seeing = Seeing::default();
        let x = floats(&*backend, &[1.0, 2.0]);
        let result = made.run(&dynamic(&backend), vec![x], &seeing).unwrap().remove(0);
        assert_eq!(read(&result), [4.0, 7.0]);
        assert_eq!(result.backend().unwrap().device_name(), "pjrt<host:1>");
        let device = || "pjrt<host:1>".to_owned();
        assert_eq!(
            *seeing.0.lock().unwrap(),
            [(5, vec![1.0, 2.0], device()), (6, vec![1.0, 2.0], device()), (7, vec![4.0, 7.0], device())]
        );
    });
}

#[test]
fn programs_of_several_devices_are_refused() {
    let backends = vec![host_backend(0), host_backend(1)];
    let mesh = MeshBackend::new(Mesh::new(vec![("data".into(), 2)]).unwrap(), backends).unwrap();
    let mesh_compiler = MeshCompiler::new(mesh, cpu_backend(), CompilerOptions::default());
    let background = Background::new(Arc::new(mesh_compiler), Arc::new(|error| Err(error.clone())));
    let error = background.compile(sums(), Checks::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "compile: programs for a mesh compile only at once, a program for one device of this machine is required"
    );
}
