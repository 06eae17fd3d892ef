//! Kernels that XLA's programs on the host call: results, errors, and which parts of a program become kernels.

mod device;

use std::sync::{Arc, Once};

use defn_core::backend::{Backend, Checks, Compiler, Executable, NoHooks};
use defn_core::builder::*;
use defn_core::op::Direction;
use defn_core::region::Region;
use defn_core::{DType, ErrorKind, Result, Tensor, TensorType};
use defn_cpu::{CpuCompiler, cpu_backend};
use defn_pjrt::{Hardware, PjrtBackend, lower, set_kernel_compiler};

use device::{compiler, floats, own_backend, read, run, trace, ty};

/// The compiler of kernels in these tests: the CPU's, which refuses sorts of 77 numbers.
#[derive(Debug)]
struct Refusing(CpuCompiler);

impl Compiler for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        if program.inputs().first() == Some(&ty(DType::F32, &[77])) {
            let (given, required) = ("77".to_owned(), "another number".to_owned());
            return Err(ErrorKind::OptionValue { op: "sort", option: "size", given, required }.into());
        }
        self.0.compile_donating(program, checks, donate)
    }
}

fn device_with_kernels(client: &str) -> Arc<PjrtBackend> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_kernel_compiler(Arc::new(Refusing(CpuCompiler::new()))));
    own_backend(client)
}

/// The results on the CPU.
fn on_cpu(program: &Arc<Region>, arguments: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let backend = cpu_backend();
    let compiled = CpuCompiler::new().compile(program.clone(), Checks::default()).unwrap();
    let types = program.inputs().iter();
    let arguments = types.zip(arguments).map(|(ty, values)| tensor(&*backend, ty, values)).collect();
    compiled.run(&backend, arguments, &NoHooks).unwrap().iter().map(read).collect()
}

fn tensor(backend: &dyn Backend, ty: &TensorType, values: &[f32]) -> Tensor {
    let flat = floats(backend, values);
    Tensor::concrete(ty.clone(), flat.buffer().unwrap().clone())
}

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The number of kernels in a program.
fn kernels(program: &Region) -> usize {
    let text = lower(program, &[], Hardware::HostWithKernels).unwrap().text;
    text.matches("\"stablehlo.custom_call\"").count()
}

/// Runs a program with kernels, and compares its results with the CPU's within rounding.
fn check(client: &str, program: &Arc<Region>) {
    let backend = device_with_kernels(client);
    let arguments: Vec<Vec<f32>> =
        program.inputs().iter().zip(1..).map(|(ty, seed)| numbers(ty.size(), seed)).collect();
    let on_device = program.inputs().iter().zip(&arguments).map(|(ty, values)| tensor(&*backend, ty, values));
    let compiled = compiler(&backend).compile(program.clone(), Checks::default()).unwrap();
    let results = run(&*compiled, &backend, on_device.collect()).unwrap();
    for (got, expected) in results.iter().zip(on_cpu(program, &arguments)) {
        let got = read(got);
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() <= 1e-4 * (1.0 + expected.abs()), "{got} {expected}");
        }
    }
}

#[test]
fn clients_start_on_several_threads() {
    let program = trace(&[ty(DType::F32, &[64, 256])], |ops, x| {
        let sum = ops.sum(&x[0], 1, true)?;
        Ok(vec![ops.divide(&x[0], &sum)?])
    });
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let program = &program;
            scope.spawn(move || check(&format!("thread {thread}"), program));
        }
    });
}

#[test]
fn a_reduction_with_its_operands_is_one_kernel() {
    let program = trace(&[ty(DType::F32, &[64, 256])], |ops, x| {
        let sum = ops.sum(&x[0], 1, true)?;
        let mean = ops.divide(&sum, 256.0)?;
        let difference = ops.subtract(&x[0], &mean)?;
        let squares = ops.multiply(&difference, &difference)?;
        let spread = ops.sum(&squares, 1, true)?;
        let scale = ops.sqrt(&spread)?;
        Ok(vec![ops.divide(&difference, &scale)?])
    });
    assert_eq!(kernels(&program), 1);
    check("rows", &program);
}

#[test]
fn kernels_before_and_after_products_do_not_wait_for_each_other() {
    let matrix = ty(DType::F32, &[128, 128]);
    let program = trace(&[matrix.clone(), matrix], |ops, x| {
        // The first sum is a kernel's. The product needs it, and the second kernel needs the product and what the first
        // one computed too.
        let squares = ops.multiply(&x[0], &x[0])?;
        let sum = ops.sum(&squares, 0, true)?;
        let scaled = ops.divide(&x[0], &sum)?;
        let product = ops.dot(&scaled, &x[1])?;
        let added = ops.add(&product, &squares)?;
        let total = ops.sum(&added, 1, false)?;
        let raised = ops.add(&squares, 1.0)?;
        let least = ops.reduce_min(&raised, 0, false)?;
        Ok(vec![total, least, squares, scaled])
    });
    assert_eq!(kernels(&program), 2);
    check("products", &program);
}

/// A random program of element-wise ops, reductions, products and sorts on square matrices, with several results. All
/// values stay between -1 and 1.
fn random_program(seed: u32) -> Arc<Region> {
    let mut state = seed;
    let mut pick = move |count: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % count
    };
    trace(&[ty(DType::F32, &[96, 96]), ty(DType::F32, &[96, 96])], move |ops, x| {
        let mut values = x.to_vec();
        for _ in 0..4 + pick(16) {
            let (a, b) = (values[pick(values.len())].clone(), values[pick(values.len())].clone());
            let axis = pick(2) as i64;
            let value = match pick(9) {
                0 | 1 => ops.multiply(&a, &b)?,
                2 | 3 => {
                    let difference = ops.subtract(&a, &b)?;
                    ops.tanh(&difference)?
                }
                4 | 5 => {
                    let sum = ops.sum(&a, axis, true)?;
                    let mean = ops.divide(&sum, 96.0)?;
                    ops.multiply(&b, &mean)?
                }
                6 => {
                    let greatest = ops.reduce_max(&a, axis, true)?;
                    let least = ops.min(&b, &greatest)?;
                    ops.cos(&least)?
                }
                7 => {
                    let product = ops.dot(&a, &b)?;
                    ops.divide(&product, 96.0)?
                }
                _ => ops.sort(&a, axis, Direction::Asc)?,
            };
            values.push(value);
        }
        let whole = ops.sum(&values[pick(values.len())], 0, false)?;
        let last = values.last().expect("there are some").clone();
        Ok(vec![whole, values[pick(values.len())].clone(), last])
    })
}

#[test]
fn random_programs_agree_with_the_cpu() {
    let programs: Vec<Arc<Region>> = (0..120).map(random_program).collect();
    let with_several = programs.iter().filter(|program| kernels(program) > 1).count();
    assert!(with_several > 40, "{with_several} programs have several kernels");
    programs.iter().for_each(|program| check("random", program));
}

#[test]
fn short_reductions_are_left_to_xla() {
    let program = trace(&[ty(DType::F32, &[8, 16])], |ops, x| Ok(vec![ops.sum(&x[0], 0, false)?]));
    assert_eq!(kernels(&program), 0);
    check("short", &program);
}

#[test]
fn the_error_of_a_kernel_is_the_error_of_the_run() {
    let backend = device_with_kernels("failing");
    let program = trace(&[ty(DType::F32, &[77])], |ops, x| Ok(vec![ops.sort(&x[0], 0, Direction::Asc)?]));
    let compiled = compiler(&backend).compile(program, Checks::default()).unwrap();
    for _ in 0..3 {
        let arguments = vec![floats(&*backend, &numbers(77, 1))];
        let ended = run(&*compiled, &backend, arguments).and_then(|results| {
            results[0].host_bytes("read")?;
            Ok(())
        });
        let message = ended.unwrap_err().to_string();
        assert!(message.contains("sort: size is 77"), "{message}");
    }
    // The device goes on.
    let program = trace(&[ty(DType::F32, &[4])], |ops, x| Ok(vec![ops.sort(&x[0], 0, Direction::Asc)?]));
    check("failing", &program);
}
