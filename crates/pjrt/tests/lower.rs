//! Lowered operations against the CPU's, one by one, over random graphs.

#[path = "../../core/tests/common/mod.rs"]
mod common;
mod wheel;

use std::sync::{Arc, OnceLock};

use defn_core::backend::{Checks, Compiler, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::form::name;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{DType, Number, Scalar, Tensor, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{Attribute, Client, CompileOptions, Place, Plugin, element_type, lower};
use proptest::strategy::{Strategy, ValueTree};

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let plugin = Plugin::load(wheel::file("xla_cpu_pjrt.so")).unwrap();
        plugin.client(&[("cpu_device_count".to_owned(), Attribute::Int(1))]).unwrap()
    })
}

/// A region in which every node of another stands alone, on parameters of its own; and the nodes' names.
fn apart(region: &Region) -> (Region, Vec<String>) {
    let from = region.graph();
    let (mut graph, mut inputs, mut results, mut names) =
        (Graph::new(), Vec::new(), Values::new(), Vec::new());
    for node in from.nodes() {
        if matches!(node.op, Op::Parameter { .. }) || node.op.has_effect() {
            continue;
        }
        let operands: Vec<Value> = node
            .inputs
            .iter()
            .map(|&input| {
                let ty = from.ty(input).clone();
                inputs.push(ty.clone());
                graph.parameter(inputs.len() - 1, ty)
            })
            .collect();
        let outputs = graph.push(node.op.clone(), &operands).unwrap();
        names.extend(outputs.iter().map(|_| {
            let types: Vec<String> = node.inputs.iter().map(|&input| from.ty(input).to_string()).collect();
            format!("{} of {}: {:?}", name(&node.op), types.join(", "), node.op)
        }));
        results.extend(outputs);
    }
    let count = inputs.len();
    (Region::new(graph, inputs, count, results), names)
}

/// Elements of a type that are small numbers mostly.
fn elements(ty: &TensorType, seed: &mut u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..ty.size() {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = *seed >> 40;
        let number = match (ty.dtype.kind(), draw % 8) {
            (defn_core::Kind::Unsigned | defn_core::Kind::Signed, _) => Number::Int(i128::from(draw / 8 % 5)),
            (defn_core::Kind::Float | defn_core::Kind::Complex, 0) => Number::Float(0.0),
            (defn_core::Kind::Float | defn_core::Kind::Complex, _) => {
                Number::Float((draw / 8 % 4096) as f64 / 1024.0 - 2.0)
            }
        };
        bytes.extend(Scalar::new(ty.dtype, number).unwrap().to_bytes());
    }
    bytes
}

fn on_device(region: &Region, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let program = lower(region, &[]).unwrap();
    let executable = client()
        .compile(program.text.as_bytes(), &CompileOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{}", program.text));
    let device = &client().addressable_devices().unwrap()[0];
    let buffers: Vec<_> = region
        .inputs()
        .iter()
        .zip(arguments)
        .map(|(ty, bytes)| {
            let dims: Vec<i64> = ty.shape.sizes().iter().map(|&size| size as i64).collect();
            client().buffer(bytes, element_type(ty), &dims, Place::Device(device)).unwrap()
        })
        .collect();
    let buffers: Vec<&_> = buffers.iter().collect();
    let outputs = executable.run(&buffers, &[], None).unwrap();
    region
        .result_types()
        .zip(outputs)
        .map(|(ty, buffer)| {
            let mut bytes = vec![0; ty.byte_size()];
            buffer.read(&mut bytes).unwrap();
            bytes
        })
        .collect()
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

/// Whether two elements are as close as the type allows.
fn agree(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let (a, b) = (Scalar::from_bytes(dtype, a).value(), Scalar::from_bytes(dtype, b).value());
    let close = |a: f64, b: f64| {
        let tolerance = match dtype {
            DType::F8E5M2 | DType::F8E4M3FN => 0.3,
            DType::F16 => 2e-3,
            DType::BF16 => 2e-2,
            DType::F32 | DType::C64 => 1e-4,
            _ => 1e-9,
        };
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + a.abs().min(b.abs()))
    };
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a == b,
        (Number::Complex(a), Number::Complex(b)) => close(a.re, b.re) && close(a.im, b.im),
        (a, b) => close(a.to_f64(), b.to_f64()),
    }
}

#[test]
fn explore() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = common::regions();
    let mut bad = std::collections::BTreeMap::<String, (usize, String)>::new();
    for round in 0..std::env::var("ROUNDS").map_or(20, |n| n.parse().unwrap()) {
        let region = strategy.new_tree(&mut runner).unwrap().current();
        let (region, names) = apart(&region);
        let mut seed = round;
        let arguments: Vec<Vec<u8>> = region.inputs().iter().map(|ty| elements(ty, &mut seed)).collect();
        let got = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_device(&region, &arguments)));
        let Ok(got) = got else { continue };
        let want = on_cpu(&region, &arguments);
        for (((got, want), ty), name) in got.iter().zip(&want).zip(region.result_types()).zip(&names) {
            let each = ty.dtype.storage_bytes();
            let pair = got.chunks(each).zip(want.chunks(each)).find(|(a, b)| !agree(ty.dtype, a, b));
            if let Some((a, b)) = pair {
                let short: String = name.split(" of ").next().unwrap().to_owned();
                let entry = bad.entry(short).or_insert((0, String::new()));
                entry.0 += 1;
                entry.1 = format!(
                    "{name} -> {ty}: {:?} {:?}",
                    Scalar::from_bytes(ty.dtype, a).value(),
                    Scalar::from_bytes(ty.dtype, b).value()
                );
            }
        }
    }
    for (name, (count, text)) in &bad {
        println!("{name} {count}: {}", &text[..text.len().min(600)]);
    }
}
