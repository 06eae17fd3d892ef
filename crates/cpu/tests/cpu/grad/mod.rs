//! Gradients and tangents by the rules, compared with central differences in f64, and with each other.

mod loops;
mod rules;

use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, HostMemory, NoHooks};
use defn_core::builder::{BuildCreate, BuildElementwise, BuildReduce, Builder};
use defn_core::evaluator::Evaluator;
use defn_core::grad::value_and_grad;
use defn_core::graph::{Graph, Value};
use defn_core::jvp::jvp_region;
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{Axes, DType, Number, Result, Scalar, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

/// A tensor's sizes and elements.
#[derive(Clone, Debug)]
struct Array {
    sizes: Vec<usize>,
    values: Vec<f64>,
}

fn vector(values: &[f64]) -> Array {
    Array { sizes: vec![values.len()], values: values.into() }
}

fn scalar(value: f64) -> Array {
    Array { sizes: vec![], values: vec![value] }
}

/// Distinct irregular values between -1 and 1, none near 0.
fn noise(sizes: &[usize], seed: usize) -> Array {
    let count = sizes.iter().product();
    let value = |i: usize| {
        let angle = (i * 37 + seed * 101 + 11) as f64;
        let value = (angle * 0.618_033_988_749_895).fract() * 1.8 - 0.9;
        if value < 0.0 { value - 0.1 } else { value + 0.1 }
    };
    Array { sizes: sizes.into(), values: (0..count).map(value).collect() }
}

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

/// A region from a closure over parameters of the given types.
fn region(types: &[TensorType], build: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>) -> Region {
    let mut graph = Graph::new();
    let inputs: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = build(&mut graph, &inputs).unwrap_or_else(|error| panic!("{error}"));
    Region::new(graph, types.to_vec(), types.len(), results.into())
}

/// A region whose last inputs are captures.
fn closed(
    parameters: &[TensorType],
    captures: &[TensorType],
    build: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>,
) -> Arc<Region> {
    let types = [parameters, captures].concat();
    let region = region(&types, build);
    Arc::new(Region::new(region.graph().clone(), types, parameters.len(), region.results().clone()))
}

fn to_tensor(backend: &Arc<dyn Backend>, ty: &TensorType, values: &[f64]) -> Tensor {
    let element = |value: f64| {
        let integer = ty.dtype.is_integer();
        let number = if integer { Number::Int(value as i128) } else { Number::Float(value) };
        Scalar::new(ty.dtype, number).unwrap()
    };
    let bytes: Vec<u8> = values.iter().flat_map(|&value| element(value).to_bytes()).collect();
    Tensor::concrete(ty.clone(), backend.from_host(ty, HostMemory::new(Arc::new(bytes))).unwrap())
}

/// The elements; for complex ones, the real parts.
fn values(tensor: &Tensor) -> Vec<f64> {
    let memory = tensor.host_bytes("test").unwrap();
    let dtype = tensor.ty().dtype;
    let elements = memory.bytes().chunks(dtype.storage_bytes());
    elements.map(|bytes| Scalar::from_bytes(dtype, bytes).value().to_f64()).collect()
}

fn run_on(backend: &Arc<dyn Backend>, region: &Region, inputs: &[Vec<f64>]) -> Vec<Tensor> {
    let program = Evaluator::new(cpu_backend()).compile(Arc::new(region.clone()), Checks::default()).unwrap();
    let pairs = region.inputs().iter().zip(inputs);
    let tensors = pairs.map(|(ty, values)| to_tensor(backend, ty, values)).collect();
    program.run(backend, tensors, &NoHooks).unwrap()
}

fn run(region: &Region, inputs: &[Vec<f64>]) -> Vec<Tensor> {
    run_on(&cpu_backend(), region, inputs)
}

/// The loss that a check differentiates: the sum of the elements with distinct weights.
fn weighted(graph: &mut Graph, y: Value) -> Result<Value> {
    let shape = Shape::new(&[graph.ty(y).size()]);
    let flat = graph.emit_one(Op::Reshape { shape: shape.clone() }, &[y])?;
    let places = graph.iota(shape, DType::F64, None)?;
    let places = graph.add(places, 1)?;
    let weights = graph.cos(places)?;
    let product = graph.multiply(flat, weights)?;
    graph.sum(product, Axes::All, false)
}

/// Compares the gradient of a region's first result, a scalar, with central differences in all its inputs.
fn check_region(name: &str, program: &Region, inputs: &[Vec<f64>]) {
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let both = value_and_grad(program, 0, &wrt).unwrap_or_else(|error| panic!("{name}: {error}"));
    let results = run(&both, inputs);
    let plain = values(&run(program, inputs)[0]);
    assert_eq!(values(&results[0]), plain, "{name}: the value beside the gradient");
    check_tangents(name, program, inputs, &results[program.results().len()..]);
    for (input, gradient) in wrt.iter().zip(&results[program.results().len()..]) {
        assert_eq!(gradient.ty().shape, program.inputs()[*input].shape, "{name}: input {input}");
        for (element, got) in values(gradient).into_iter().enumerate() {
            let at = |by: f64| {
                let mut inputs = inputs.to_vec();
                inputs[*input][element] += by;
                values(&run(program, &inputs)[0])[0]
            };
            let step = 1e-5 * inputs[*input][element].abs().max(0.1);
            let want = (at(step) - at(-step)) / (2.0 * step);
            let close = (got - want).abs() <= 1e-7 + 1e-6 * want.abs().max(plain[0].abs());
            assert!(close, "{name}: element {element} of input {input} is {got}, differences give {want}");
        }
    }
}

/// Compares the tangent of a region's first result, a scalar, with the products of its `gradients` and the tangents of its
/// inputs: first of all inputs, then of each alone.
fn check_tangents(name: &str, program: &Region, inputs: &[Vec<f64>], gradients: &[Tensor]) {
    let every: Vec<usize> = (0..inputs.len()).collect();
    let alone = every.iter().map(|&input| vec![input]).filter(|_| inputs.len() > 1);
    for wrt in std::iter::once(every.clone()).chain(alone) {
        let forward = jvp_region(program, &wrt, &[0]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let tangents: Vec<Vec<f64>> =
            wrt.iter().map(|&input| noise(&[inputs[input].len()], input + 7).values).collect();
        let products = wrt.iter().zip(&tangents).flat_map(|(&input, tangent)| {
            values(&gradients[input]).into_iter().zip(tangent.clone()).map(|(g, t)| g * t)
        });
        let products: Vec<f64> = products.collect();
        let (want, scale) = (products.iter().sum::<f64>(), products.iter().map(|p| p.abs()).sum::<f64>());
        let results = run(&forward, &[inputs.to_vec(), tangents].concat());
        let got = values(results.last().unwrap())[0];
        let close = (got - want).abs() <= 1e-12 + 1e-9 * scale;
        assert!(close, "{name}: the tangent of {wrt:?} is {got}, the gradient gives {want}");
        assert_eq!(
            values(&results[0]),
            values(&run(program, inputs)[0]),
            "{name}: the value beside the tangent"
        );
    }
}

/// Checks a function of f64 arrays.
fn check(name: &str, inputs: &[Array], build: impl FnOnce(&mut Graph, &[Value]) -> Result<Value>) {
    let types: Vec<TensorType> = inputs.iter().map(|input| ty(DType::F64, &input.sizes)).collect();
    let program = region(&types, |graph, inputs| {
        let y = build(graph, inputs)?;
        Ok(vec![weighted(graph, y)?])
    });
    let inputs: Vec<Vec<f64>> = inputs.iter().map(|input| input.values.clone()).collect();
    check_region(name, &program, &inputs);
}

/// The gradients of the sum of a function's elements.
fn gradients(
    types: &[TensorType],
    inputs: &[Vec<f64>],
    build: impl FnOnce(&mut Graph, &[Value]) -> Result<Value>,
) -> Vec<Tensor> {
    let program = region(types, |graph, inputs| Ok(vec![build(graph, inputs)?]));
    let wrt: Vec<usize> = (0..types.len()).collect();
    run(&value_and_grad(&program, 0, &wrt).unwrap(), inputs)[1..].to_vec()
}

/// The gradient of the sum of the elements of a function of one f64 vector.
fn gradient(x: &[f64], build: impl FnOnce(&mut Graph, Value) -> Result<Value>) -> Vec<f64> {
    let types = [ty(DType::F64, &[x.len()])];
    values(&gradients(&types, &[x.to_vec()], |graph, inputs| build(graph, inputs[0]))[0])
}
