//! Compares lowered operations with the CPU's: each on every element type, through XLA's plugin for the CPU.

mod quick;
mod rows;
mod wheel;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use defn_core::backend::{Checks, Compiler, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::graph::{Graph, Value};
use defn_core::op::{Collective, CondOp, HookOp, Op, RuntimeCallOp};
use defn_core::region::Region;
use defn_core::{DType, Location, Number, Scalar, Tensor, TensorType, form};
use defn_cpu::{CpuCompiler, cpu_backend};
use defn_pjrt::{
    Attribute, Client, ClientSpec, CompileOptions, Hardware, LowerError, Placement, element_type, lower,
    register, runtime, set_kernel_compiler,
};
use rows::control::region;
use rows::{Closeness, FAMILIES, Family, Row, Table, folds, numbers, program};

fn client() -> &'static Client {
    static CLIENT: OnceLock<&Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        set_kernel_compiler(Arc::new(CpuCompiler::new()));
        let spec = ClientSpec::new(wheel::file("xla_cpu_pjrt.so"));
        register("host", spec.with("cpu_device_count", Attribute::Int(1))).unwrap();
        runtime("test", Some("host")).unwrap().client()
    })
}

/// Whether an op moves a value to another memory. The plugin here has one, and no calls for others.
fn is_transfer(op: &Op) -> bool {
    form::name(op) == "transfer"
}

/// The texts of a program, as far as they differ: for the host with kernels, which is what runs here if nothing else is
/// said, then for the host without and, if it can run here, for other devices.
fn texts(region: &Region) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    let moves = region.graph().nodes().iter().any(|node| is_transfer(&node.op));
    let others = (!moves).then_some(Hardware::Device);
    for hardware in [Hardware::HostWithKernels, Hardware::Host].into_iter().chain(others) {
        let text = lower(region, &[], hardware).map_err(|error| error.to_string())?.text;
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// The element types whose programs LLVM optimizes as for users, where they are what runs here if nothing else is said.
const OPTIMIZED: [DType; 5] = [DType::F32, DType::F64, DType::BF16, DType::S32, DType::C64];

/// The results of a program on the device, or the plugin's error.
fn on_device(
    region: &Region,
    text: &str,
    options: &CompileOptions,
    arguments: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, String> {
    let executable = client().compile(text.as_bytes(), options).map_err(|error| error.to_string())?;
    let device = &client().addressable_devices().unwrap()[0];
    let buffers: Vec<_> = region
        .inputs()
        .iter()
        .zip(arguments)
        .map(|(ty, bytes)| {
            let dims: Vec<i64> = ty.shape.sizes().iter().map(|&size| size as i64).collect();
            client().buffer(bytes, element_type(ty), &dims, Placement::Device(device)).unwrap()
        })
        .collect();
    let buffers: Vec<&_> = buffers.iter().collect();
    let outputs = executable.run(&buffers, &[], None).map_err(|error| error.to_string())?;
    let read = |(ty, buffer): (&TensorType, &defn_pjrt::Buffer)| {
        let mut bytes = vec![0; ty.byte_size()];
        buffer.read(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    };
    region.result_types().zip(&outputs).map(read).collect()
}

fn on_cpu(region: &Region, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let backend = cpu_backend();
    let executable =
        Evaluator::new(backend.clone()).compile(Arc::new(region.clone()), Checks::default()).unwrap();
    let arguments = region
        .inputs()
        .iter()
        .zip(arguments)
        .map(|(ty, bytes)| {
            let buffer = backend.from_host(ty, HostMemory::from(bytes.clone())).unwrap();
            Tensor::concrete(ty.clone(), buffer)
        })
        .collect();
    let results = executable.run(&(backend as _), arguments, &NoHooks).unwrap();
    results.iter().map(|tensor| tensor.host_bytes("test").unwrap().bytes().to_vec()).collect()
}

/// The distance between neighbouring numbers of a float type.
fn distance(dtype: DType, at: f64) -> f64 {
    let at = at.abs().max(dtype.smallest_normal().to_f64()).min(dtype.greatest_finite().to_f64());
    at.log2().floor().exp2() * dtype.epsilon().to_f64()
}

type Complex = [f64; 2];

fn product(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Elements as complex numbers.
fn numbers(dtype: DType, bytes: &[u8]) -> Vec<Complex> {
    let number = |bytes: &[u8]| match Scalar::from_bytes(dtype, bytes).value() {
        Number::Complex(z) => [z.re, z.im],
        Number::Huge(x) | Number::Float(x) => [x, 0.0],
        Number::Int(x) => [x as f64, 0.0],
        Number::Bool(x) => [f64::from(u8::from(x)), 0.0],
    };
    bytes.chunks_exact(dtype.storage_bytes()).map(number).collect()
}

/// The elements of the last two axes. Each line with steps of `stride` is multiplied by the number of magnitude 1 that
/// brings it closest to `expected`.
fn align_phase(got: &[Complex], expected: &[Complex], n: usize, stride: usize) -> Vec<Complex> {
    let mut align_phase = got.to_vec();
    for line in 0..got.len() / n {
        let at = |i: usize| line / stride * stride * n + line % stride + i * stride;
        let dot = (0..n).fold([0.0, 0.0], |sum: Complex, i| {
            let [re, im] = product([got[at(i)][0], -got[at(i)][1]], expected[at(i)]);
            [sum[0] + re, sum[1] + im]
        });
        let size = dot[0].hypot(dot[1]);
        if size > 0.0 {
            (0..n).for_each(|i| align_phase[at(i)] = product(got[at(i)], [dot[0] / size, dot[1] / size]));
        }
    }
    align_phase
}

/// Compares two results; returns the first element that differs, if any.
///
/// The plugin treats subnormal numbers of the compute type as zero.
fn compare(
    ty: &TensorType,
    got: &[u8],
    expected: &[u8],
    close: Closeness,
) -> Option<(usize, Complex, Complex)> {
    let dtype = ty.dtype;
    if got == expected {
        return None;
    }
    if !dtype.is_inexact() {
        let each = dtype.storage_bytes();
        let at = got.iter().zip(expected).position(|(got, expected)| got != expected).unwrap_or(0) / each;
        return Some((at, numbers(dtype, got)[at], numbers(dtype, expected)[at]));
    }
    let (all_got, all_expected) = (numbers(dtype, got), numbers(dtype, expected));
    let real = dtype.to_real();
    let computed = if real.bits() < 32 { DType::F32 } else { real };
    let least = computed.smallest_normal().to_f64();
    let most = all_expected.iter().flatten().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    let steps = |steps: f64| if real.bits() < 32 { 1.0 } else { steps };
    let agrees = |got: Complex, expected: Complex| {
        let size = expected[0].abs().max(expected[1].abs());
        let bound = match close {
            Closeness::Exact => 0.0,
            Closeness::Whole(many) | Closeness::Turned(many) => steps(many) * distance(real, most),
            Closeness::Each(many) => steps(many) * distance(real, size),
        };
        got.iter().zip(expected).all(|(&got, expected)| {
            got == expected
                || got.is_nan() && expected.is_nan()
                || (got - expected).abs() <= bound
                || got.abs() <= least && expected.abs() <= least
        })
    };
    let find = |got: &[Complex]| {
        (0..got.len())
            .find(|&at| !agrees(got[at], all_expected[at]))
            .map(|at| (at, got[at], all_expected[at]))
    };
    let first = find(&all_got);
    match (close, ty.shape.sizes()) {
        (Closeness::Turned(_), &[.., rows, columns]) if first.is_some() => {
            find(&align_phase(&all_got, &all_expected, rows, columns))
                .and_then(|_| find(&align_phase(&all_got, &all_expected, columns, 1)))
        }
        _ => first,
    }
}

/// Rows whose results differ, with the results, and rows that the plugin rejects, with its errors.
#[derive(Default)]
struct Outcome {
    rows: usize,
    differ: Vec<String>,
    rejected: Vec<String>,
}

impl Outcome {
    /// Runs the rows of an element type as one program; if that fails, each half by itself.
    fn run(&mut self, dtype: DType, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        let (region, counts) = program(rows);
        let arguments: Vec<Vec<u8>> =
            rows.iter().flat_map(|row| row.operands.iter().map(|operand| operand.bytes.clone())).collect();
        let got = texts(&region).and_then(|texts| {
            let each = |(position, text): (usize, &String)| {
                let options = quick::options(position == 0 && OPTIMIZED.contains(&dtype));
                on_device(&region, text, &options, &arguments)
            };
            texts.iter().enumerate().map(each).collect::<Result<Vec<_>, _>>()
        });
        let got = match got {
            Ok(got) => got,
            Err(error) if rows.len() == 1 => {
                self.rows += 1;
                self.rejected.push(format!("{}: {error}", rows[0].name()));
                return;
            }
            Err(_) => {
                let (first, second) = rows.split_at(rows.len() / 2);
                self.run(dtype, first);
                self.run(dtype, second);
                return;
            }
        };
        self.rows += rows.len();
        let expected = on_cpu(&region, &arguments);
        let types: Vec<&TensorType> = region.result_types().collect();
        let mut at = 0;
        for (row, count) in rows.iter().zip(counts) {
            let pairs = got.iter().flat_map(|got| (at..at + count).map(move |at| (at, &got[at])));
            let differ = pairs.into_iter().find_map(|(at, got)| {
                let (position, got, expected) = compare(types[at], got, &expected[at], row.close)?;
                Some(format!(
                    "{}: element {position} of {} is {got:?}, not {expected:?}",
                    row.name(),
                    types[at]
                ))
            });
            self.differ.extend(differ);
            at += count;
        }
    }
}

fn check(name: &str) {
    check_rows(name, FAMILIES.iter().find(|family| family.name == name).unwrap().rows, DType::ALL);
}

fn check_rows(name: &str, rows: fn(DType) -> Table, dtypes: &[DType]) {
    // XLA compiles a program on one thread, and families take unequal times.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Outcome::default();
        while let Some(&dtype) = dtypes.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Apart, so that all others run in the form for other devices, too.
            let (moves, others): (Vec<Row>, Vec<Row>) =
                rows(dtype).rows.into_iter().partition(|row| is_transfer(&row.op));
            own.run(dtype, &others);
            own.run(dtype, &moves);
        }
        own
    };
    let (mut all, other) = thread::scope(|scope| {
        let other = scope.spawn(work);
        (work(), other.join().unwrap())
    });
    all.rows += other.rows;
    all.rejected.extend(other.rejected);
    all.differ.extend(other.differ);
    let bad = [&all.rejected[..], &all.differ].concat();
    assert!(bad.is_empty(), "{} of {} rows of {name}:\n{}", bad.len(), all.rows, bad.join("\n"));
}

macro_rules! families {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

families! {
    create unary binary mixed convert shape reduce order window index random products factors spectral fourier control
    examples
}

/// Extremes are lowered differently for the host and for other devices. The types are floats with integers of their
/// size, a float that is computed in another type, and an integer.
#[test]
fn extremes_along_long_axes() {
    check_rows("extremes", folds::extremes, &[DType::F32, DType::F64, DType::BF16, DType::S32]);
}

#[test]
fn every_operation_has_rows_and_every_family_a_test() {
    assert!(FAMILIES.iter().map(|family| family.name).eq(TESTED.iter().copied()));
    let (mut names, mut dtypes) = (BTreeSet::new(), BTreeSet::new());
    for Family { rows, .. } in FAMILIES {
        for &dtype in DType::ALL {
            for row in rows(dtype).rows {
                names.insert(form::name(&row.op));
                dtypes.insert(dtype);
            }
        }
    }
    // Collectives need programs for several devices, which have their own test file; a host function has no lowering.
    names.extend(Collective::NAMES);
    names.insert("runtime_call");
    assert_eq!(names, form::all_names().into_iter().collect());
    assert_eq!(dtypes.len(), DType::ALL.len());
}

/// The rows of ops without written ones: the examples of some known ops are legal, and accepted.
#[test]
fn examples_of_ops_are_legal() {
    let x = numbers::small(DType::F32, &[2, 3], 1);
    let mut table = Table::default();
    for (op, count) in Op::examples(&x.ty) {
        rows::example(&mut table, op, count, &x);
    }
    let names: BTreeSet<_> = table.rows.iter().map(|row| form::name(&row.op)).collect();
    for name in [
        "reshape",
        "reverse",
        "concatenate",
        "slice",
        "sum",
        "argmax",
        "sort",
        "window_sum",
        "cumulative_sum",
        "log2",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
}

/// Operations that only the host can run have no lowering, and the error names their location.
#[test]
fn what_the_host_has_to_do_is_refused() {
    let vector = rows::ty(DType::F32, &[3]);
    let location = Some(Location { file: "program.py".into(), line: 7 });
    let call = Op::RuntimeCall(RuntimeCallOp { slot: 0, outputs: [vector.clone()].into_iter().collect() });
    let program = |op: &Op, inside: bool| {
        let inputs = [vector.clone()];
        let effect = |graph: &mut Graph, inputs: &[Value]| {
            graph.set_location(location.clone());
            graph.push(op.clone(), inputs).expect("it takes anything")
        };
        if !inside {
            return region(&inputs, 1, effect);
        }
        region(&inputs, 1, |graph, values| {
            let branch = region(&inputs, 0, effect);
            let predicate = graph.push(Op::Constant(Scalar::one(DType::U8)), &[]).expect("a number")[0];
            let op = CondOp { branches: [branch.clone(), branch].into_iter().collect() };
            graph.push(Op::Cond(op), &[predicate, values[0]]).expect("the branches agree")
        })
    };
    for inside in [false, true] {
        let error = lower(&program(&call, inside), &[], Hardware::Host).unwrap_err();
        assert!(matches!(&error, LowerError::RuntimeCall { location: at } if *at == location), "{error}");
    }
    let hook = Op::Hook(HookOp { slot: 2, name: None });
    assert_eq!(lower(&program(&hook, false), &[], Hardware::Host).unwrap().hooks, [(2, 1)]);
    let error = lower(&program(&hook, true), &[], Hardware::Host).unwrap_err();
    assert!(matches!(&error, LowerError::InnerHook { location: at } if *at == location), "{error}");
}
