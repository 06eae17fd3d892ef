//! The devices that tests run on: four devices of XLA's plugin for the CPU, under the name `host`.

#![allow(dead_code, reason = "each test program uses a part")]

#[path = "../wheel/mod.rs"]
pub mod wheel;

use std::sync::Arc;

use defn_core::backend::{Backend, Executable, HostMemory, NoHooks};
use defn_core::builder::{Ops, Source};
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::{DType, Result, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{Attribute, ClientSpec, CompilerOptions, PjrtBackend, PjrtCompiler, backend, register};

/// The plugin's file, as a client with four devices.
pub fn spec() -> ClientSpec {
    ClientSpec::new(wheel::file("xla_cpu_pjrt.so")).with("cpu_device_count", Attribute::Int(4))
}

/// A device of the client `host`.
pub fn host_backend(id: i64) -> Arc<PjrtBackend> {
    register("host", spec()).unwrap();
    backend("test", Some("host"), Some(id)).unwrap()
}

/// A device of a client of the test's own, so that the test can count its live tensors.
pub fn own_backend(client: &str) -> Arc<PjrtBackend> {
    register(client, spec()).unwrap();
    backend("test", Some(client), None).unwrap()
}

pub fn dynamic(backend: &Arc<PjrtBackend>) -> Arc<dyn Backend> {
    backend.clone()
}

/// Ops that create tensors on a device.
pub fn ops(backend: &Arc<PjrtBackend>) -> Ops {
    Ops::new(backend.clone(), Source::Unknown)
}

pub fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType { dtype, shape: Shape::from_axes(sizes.iter().map(|&size| (size, None))) }
}

/// A tensor of floats on a backend.
pub fn floats(backend: &dyn Backend, values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let ty = ty(DType::F32, &[values.len()]);
    let buffer = backend.from_host(&ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty, buffer)
}

/// The elements of a tensor of floats.
pub fn read(tensor: &Tensor) -> Vec<f32> {
    let bytes = tensor.host_bytes("test").unwrap();
    bytes.bytes().chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
}

pub fn compiler(backend: &Arc<PjrtBackend>) -> PjrtCompiler {
    PjrtCompiler::new(backend.clone(), cpu_backend(), CompilerOptions::default())
}

/// Traces a function of the given types.
pub fn trace(
    types: &[TensorType],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Arc<Region> {
    let (tracing, parameters) = Trace::begin(types);
    let results = function(&mut Ops::new(cpu_backend(), Source::Unknown), &parameters).unwrap();
    Arc::new(tracing.finish("test", &results).unwrap().region)
}

pub fn run(
    program: &dyn Executable,
    backend: &Arc<PjrtBackend>,
    arguments: Vec<Tensor>,
) -> Result<Vec<Tensor>> {
    program.run(&dynamic(backend), arguments, &NoHooks)
}
