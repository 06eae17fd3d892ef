//! Programs with the solver's calls, run on XLA's plugin for the CPU and on the CPU backend.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Checks, Compiler, HostMemory, NoHooks};
use defn_core::builder::{Ops, Source};
use defn_core::evaluator::Evaluator;
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::{DType, Result, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

use super::CHOLESKY;
use super::lapack::{Complex, Matrix};
use super::library::{self, to_bytes, to_numbers};
use crate::api::{Client, Placement};
use crate::lower::{Hardware, SOLVER_CALLS, element_type, lower};
use crate::plugin::Plugin;
use crate::{quick, wheel};

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let plugin = Plugin::load(wheel::file("xla_cpu_pjrt.so")).unwrap();
        let calls = library::calls();
        assert!(calls.iter().map(|call| call.name()).eq(SOLVER_CALLS));
        for call in &calls {
            assert!(plugin.register_library_call("Host", call), "{}", call.name());
        }
        plugin.client(&[]).unwrap()
    })
}

/// A tensor as numbers, row by row.
#[derive(Clone, Debug)]
pub struct Array {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub numbers: Vec<Complex>,
}

impl Array {
    /// Numbers as elements of a type round them.
    pub fn new(dtype: DType, dims: &[usize], numbers: &[Complex]) -> Array {
        assert_eq!(numbers.len(), dims.iter().product::<usize>());
        let numbers = to_numbers(dtype, &to_bytes(dtype, numbers));
        Array { dtype, dims: dims.to_vec(), numbers }
    }

    pub fn real(dtype: DType, dims: &[usize], numbers: &[f64]) -> Array {
        Array::new(dtype, dims, &numbers.iter().map(|&x| x.into()).collect::<Vec<_>>())
    }

    /// Numbers between -4 and 4; whole ones for integers.
    pub fn random(dtype: DType, dims: &[usize], seed: u64) -> Array {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 21) - 4.0
        };
        let numbers = (0..dims.iter().product()).map(|_| {
            let (re, im) = (next(), next());
            Complex::new(re, if dtype.is_complex() { im } else { 0.0 })
        });
        Array::new(dtype, dims, &numbers.collect::<Vec<_>>())
    }

    /// Matrices that have a Cholesky factor in their lower triangle, and other numbers above it.
    pub fn definite(dtype: DType, dims: &[usize], seed: u64) -> Array {
        let n = dims[dims.len() - 1];
        let matrices = Array::random(dtype, dims, seed).matrices();
        let numbers = matrices.iter().flat_map(|x| {
            let product = x.product(&x.adjoint());
            Matrix::from_fn(n, n, |j, i| match i.cmp(&j) {
                Ordering::Less => x[(i, j)],
                Ordering::Equal => product[(i, j)] + Complex::ONE,
                Ordering::Greater => product[(i, j)],
            })
            .values
        });
        Array::new(dtype, dims, &numbers.collect::<Vec<_>>())
    }

    fn ty(&self) -> TensorType {
        TensorType { dtype: self.dtype, shape: Shape::new(&self.dims) }
    }

    fn bytes(&self) -> Vec<u8> {
        to_bytes(self.dtype, &self.numbers)
    }

    /// The number of elements of the last axes.
    fn each(&self, axes: usize) -> usize {
        self.dims[self.dims.len() - axes..].iter().product()
    }

    pub fn matrices(&self) -> Vec<Matrix> {
        let [.., rows, columns] = self.dims[..] else { panic!("a matrix has two axes") };
        let each = self.numbers.chunks_exact(rows * columns);
        each.map(|x| Matrix::from_fn(rows, columns, |i, j| x[i * columns + j])).collect()
    }

    /// One vector for each matrix, as columns.
    pub fn vectors(&self) -> impl Iterator<Item = &[Complex]> {
        self.numbers.chunks_exact(self.each(1))
    }
}

pub fn is_nan(numbers: &[Complex]) -> bool {
    numbers.iter().all(|x| x.re.is_nan())
}

pub fn is_finite(numbers: &[Complex]) -> bool {
    numbers.iter().all(|x| x.re.is_finite() && x.im.is_finite())
}

/// What errors of rounding may be, relative to the greatest number.
pub fn tolerance(dtype: DType) -> f64 {
    let real = dtype.to_float().to_real();
    // Small floats are computed in f32.
    if real.bits() < 32 { 4.0 * real.epsilon().to_f64() } else { 200.0 * real.epsilon().to_f64() }
}

pub fn assert_close(got: &[Complex], expected: &[Complex], tolerance: f64, text: &str) {
    assert_eq!(got.len(), expected.len(), "{text}");
    let most = expected.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    for (at, (a, b)) in got.iter().zip(expected).enumerate() {
        let agrees = |a: f64, b: f64| {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * most.max(f64::MIN_POSITIVE)
        };
        assert!(agrees(a.re, b.re) && agrees(a.im, b.im), "{text}, number {at}: {a:?} and {b:?}");
    }
}

/// The results of a program by the library, and the CPU's.
pub struct Results {
    pub got: Vec<Array>,
    pub expected: Vec<Array>,
    /// What was run.
    pub text: String,
    pub program: String,
}

impl Results {
    /// Results that are the CPU's within rounding.
    pub fn assert_close(&self) -> &Results {
        for (got, expected) in self.got.iter().zip(&self.expected) {
            assert_close(&got.numbers, &expected.numbers, tolerance(expected.dtype), &self.text);
        }
        self
    }

    /// Results of NaN for the matrix `bad`, and none but finite ones for the others; each has this number of axes.
    pub fn assert_nan_at(&self, bad: usize, axes: &[usize]) -> &Results {
        for (got, &axes) in self.got.iter().zip(axes) {
            for (at, numbers) in got.numbers.chunks_exact(got.each(axes)).enumerate() {
                let is_right = if at == bad { is_nan(numbers) } else { is_finite(numbers) };
                assert!(is_right, "{}: matrix {at} is {numbers:?}", self.text);
            }
        }
        self
    }
}

/// Runs a function of these operands, whose program has these calls and no others, and has no loop unless it needs one.
pub fn run(
    operands: &[&Array],
    calls: &[&str],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Results {
    let types: Vec<TensorType> = operands.iter().map(|array| array.ty()).collect();
    let (tracing, parameters) = Trace::begin(&types);
    let results = function(&mut Ops::new(cpu_backend(), Source::Unknown), &parameters).unwrap();
    let region = tracing.finish("test", &results).unwrap().region;
    let program = lower(&region, &[], Hardware::DeviceWithSolver).unwrap().text;
    let names = program.split("call_target_name = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), calls.iter().copied().collect(), "{program}");
    assert!(calls == CHOLESKY || calls.is_empty() || !program.contains("stablehlo.while"), "{program}");
    let arrays = |region: &Region, bytes: Vec<Vec<u8>>| -> Vec<Array> {
        let array = |(ty, bytes): (&TensorType, Vec<u8>)| {
            let numbers = to_numbers(ty.dtype, &bytes);
            Array { dtype: ty.dtype, dims: ty.shape.sizes().to_vec(), numbers }
        };
        region.result_types().zip(bytes).map(array).collect()
    };
    let got = arrays(&region, by_library(&region, &program, operands));
    let expected = arrays(&region, on_cpu(&region, operands));
    let text = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Results { got, expected, text: format!("{calls:?} of {text}"), program }
}

fn by_library(region: &Region, program: &str, operands: &[&Array]) -> Vec<Vec<u8>> {
    let executable = client().compile(program.as_bytes(), &quick::options(false)).unwrap();
    let device = &client().addressable_devices().unwrap()[0];
    let buffer = |array: &&Array| {
        let dims: Vec<i64> = array.dims.iter().map(|&size| size as i64).collect();
        client().buffer(&array.bytes(), element_type(&array.ty()), &dims, Placement::Device(device)).unwrap()
    };
    let buffers: Vec<_> = operands.iter().map(buffer).collect();
    let outputs = executable.run(&buffers.iter().collect::<Vec<_>>(), &[], None).unwrap();
    let read = |(ty, buffer): (&TensorType, &crate::Buffer)| {
        let mut bytes = vec![0; ty.byte_size()];
        buffer.read(&mut bytes).unwrap();
        bytes
    };
    region.result_types().zip(&outputs).map(read).collect()
}

fn on_cpu(region: &Region, operands: &[&Array]) -> Vec<Vec<u8>> {
    let backend = cpu_backend();
    let executable =
        Evaluator::new(backend.clone()).compile(Arc::new(region.clone()), Checks::default()).unwrap();
    let tensor = |array: &&Array| {
        let buffer = backend.from_host(&array.ty(), HostMemory::from(array.bytes())).unwrap();
        Tensor::concrete(array.ty(), buffer)
    };
    let arguments = operands.iter().map(tensor).collect();
    let results = executable.run(&(backend.clone() as _), arguments, &NoHooks).unwrap();
    results.iter().map(|tensor| tensor.host_bytes("test").unwrap().bytes().to_vec()).collect()
}

pub fn assert_matrix(got: &Matrix, expected: &Matrix, tolerance: f64, text: &str) {
    assert_close(&got.values, &expected.values, tolerance, text);
}

/// The columns have length 1 and are orthogonal.
pub fn assert_orthonormal(x: &Matrix, tolerance: f64, text: &str) {
    assert_matrix(&x.adjoint().product(x), &Matrix::identity(x.columns, x.columns), tolerance, text);
}
