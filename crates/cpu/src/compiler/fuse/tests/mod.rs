//! Nests of single ops: every op on every dtype has one, and it computes the bits of the kernels on every machine.

mod gathers;
mod random;
mod reductions;
mod short;
mod table;

use std::sync::Arc;

use defn_core::backend::{Checks, Compiler, HostMemory, NoHooks};
use defn_core::evaluator::Evaluator;
use defn_core::op::Op as GraphOp;
use defn_core::region::Region;
use defn_core::{DType, Number, Scalar, Tensor, TensorType};

use super::build::{Fused, NodeRole, fuse};
use super::domain::Domain;
use super::gathers::gathered;
use crate::backend::cpu_backend;
use crate::buffer::CpuBuffer;
use crate::compiler::executor_tests::{applied_words, code_of, execute, targets};
use crate::compiler::fusion_groups::{FusionGroups, Role};
use crate::compiler::interpret::Interpreter;
use crate::compiler::ir::Function;
use crate::compiler::users::{Users, Uses};

/// What lies behind the elements of a result.
const POISON: u8 = 0xA5;

/// A program as text, with its results.
fn region(inputs: &[(DType, &str)], lines: &[String], result: &str) -> Arc<Region> {
    let types: Vec<String> = inputs.iter().map(|(dtype, shape)| format!("{dtype}{shape}")).collect();
    let mut text = format!("defn-ir 1\n({}) {{\n", types.join(", "));
    for (at, ty) in types.iter().enumerate() {
        text += &format!("    %{at} = parameter {{index: {at}}} : {ty}\n");
    }
    for line in lines {
        text += &format!("    {line}\n");
    }
    text += &format!("    return {result}\n}}");
    Arc::new(Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}")))
}

/// The nest of a program, if one computes it.
fn nest_of(region: &Region) -> Option<Fused> {
    let fusion = FusionGroups::new(region);
    let users = Users::new(region, &fusion);
    let (group, before) = fusion.order.split_last()?;
    let nodes = &group.nodes;
    let Role::Elementwise = fusion.roles[nodes[0]] else { return None };
    let nodes: Vec<(usize, NodeRole)> = nodes.iter().map(|&node| (node, NodeRole::Elements)).collect();
    // Nothing but gathers, which it does itself.
    let gathered = gathered(region.graph(), &fusion, &users, &nodes);
    if gathered.len() != before.len() {
        return None;
    }
    let elements = region.graph().nodes()[group.nodes[0]].outputs[0].size();
    let results = users.live_outs(before.len());
    fuse(region.graph(), &fusion, nodes, &Domain::of_elements(elements), results, &gathered, false)
}

/// The bytes of a tensor.
fn bytes_of(tensor: &Tensor) -> Vec<u8> {
    let buffer = tensor.require_buffer("test", "").unwrap();
    buffer.as_any().downcast_ref::<CpuBuffer>().unwrap().window("test").unwrap().bytes().to_vec()
}

/// The results by the kernels of the backend, op by op.
fn evaluated(region: &Arc<Region>, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let backend = cpu_backend();
    let tensors = region.inputs().iter().zip(inputs).map(|(ty, bytes)| {
        let buffer = backend.from_host(ty, HostMemory::from(bytes.clone())).unwrap();
        Tensor::concrete(ty.clone(), buffer)
    });
    let program = Evaluator::new(backend.clone()).compile(region.clone(), Checks::default()).unwrap();
    let results = program.run(&backend, tensors.collect(), &NoHooks).unwrap();
    results.iter().map(bytes_of).collect()
}

/// A nest with its memory.
struct Run<'a> {
    region: &'a Region,
    fused: &'a Fused,
    inputs: &'a [Vec<u8>],
}

impl Run<'_> {
    /// Runs the functions, and gives the bytes of the results.
    fn by(&self, run: impl Fn(&Function, *const u64) -> u32) -> Vec<Vec<u8>> {
        let graph = self.region.graph();
        let types: Vec<&TensorType> = self.fused.results.iter().map(|&value| graph.ty(value)).collect();
        let mut args: Vec<u64> = Vec::new();
        for (value, _) in &self.fused.inputs {
            let GraphOp::Parameter { index, .. } = graph.nodes()[value.node as usize].op else {
                panic!("an input is a parameter")
            };
            args.push(self.inputs[index].as_ptr() as u64);
        }
        let mut results: Vec<Vec<u8>> = types.iter().map(|ty| vec![POISON; ty.byte_size() + 64]).collect();
        args.extend(results.iter_mut().map(|result| result.as_mut_ptr() as u64));
        let mut scratch = [self.fused.scratch, self.fused.partial].map(|bytes| vec![0u64; bytes / 8 + 8]);
        let count = if self.fused.combining.is_some() { 2 } else { 1 };
        args.extend(scratch[..count].iter_mut().map(|buffer| buffer.as_mut_ptr() as u64));
        let fixed = args.len();
        let combining = self.fused.combining.as_ref().map(|(function, steps)| (function, *steps));
        for (function, steps) in std::iter::once((&self.fused.function, self.fused.steps)).chain(combining) {
            args.truncate(fixed);
            args.extend([0, steps as u64]);
            args.extend(applied_words(function));
            assert_eq!(run(function, args.as_ptr()), 0);
        }
        for (result, ty) in results.iter_mut().zip(&types) {
            assert!(result[ty.byte_size()..].iter().all(|&byte| byte == POISON), "a byte behind {ty}");
            result.truncate(ty.byte_size());
        }
        // In the order of the program's results.
        let place = |result| self.fused.results.iter().position(|other| other == result).expect("a result");
        self.region.results().iter().map(|result| results[place(result)].clone()).collect()
    }
}

/// Replaces the bits of every NaN by the same ones.
fn with_one_nan(ty: &TensorType, mut bytes: Vec<u8>) -> Vec<u8> {
    if !ty.dtype.is_inexact() {
        return bytes;
    }
    let dtype = ty.dtype.to_real();
    for element in bytes.chunks_exact_mut(dtype.storage_bytes()) {
        if Scalar::from_bytes(dtype, element).value().to_f64().is_nan() {
            element.fill(u8::MAX);
        }
    }
    bytes
}

/// Compares the nest of a program on all executors with the kernels; says how it differs.
fn check(region: &Arc<Region>, inputs: &[Vec<u8>]) -> Result<(), String> {
    let fused = nest_of(region).ok_or_else(|| format!("no nest for\n{}", region.to_text()))?;
    check_fused(region, inputs, &fused)
}

/// Compares a nest on all executors with the kernels; says how it differs.
fn check_fused(region: &Arc<Region>, inputs: &[Vec<u8>], fused: &Fused) -> Result<(), String> {
    check_against(region, inputs, fused, &evaluated(region, inputs))
}

/// Compares a nest on all executors with what it should give; says how it differs.
fn check_against(
    region: &Arc<Region>,
    inputs: &[Vec<u8>],
    fused: &Fused,
    want: &[Vec<u8>],
) -> Result<(), String> {
    let text = region.to_text();
    let run = Run { region, fused, inputs };
    let compare = |name: &str, got: Vec<Vec<u8>>| {
        let results = region.result_types().zip(want).zip(&got);
        match results.map(|((ty, want), got)| difference(ty, want, got)).find_map(|found| found) {
            None => Ok(()),
            Some((at, difference)) => {
                let operand = |(bytes, ty): (&Vec<u8>, &TensorType)| {
                    let at = at % ty.size() * ty.dtype.storage_bytes();
                    Scalar::from_bytes(ty.dtype, &bytes[at..][..ty.dtype.storage_bytes()]).to_string()
                };
                let operands: Vec<String> = inputs.iter().zip(region.inputs()).map(operand).collect();
                Err(format!(
                    "{name}: element {at}, of {}, is {difference} in\n{text}",
                    operands.join(" and ")
                ))
            }
        }
    };
    // SAFETY: the arguments are those of the function.
    compare("portable", run.by(|function, args| unsafe { Interpreter::new(function).run(args) }))?;
    for (name, target) in targets() {
        let code = |function: &Function| {
            code_of(function, target, name)
                .unwrap_or_else(|lacks| panic!("{name} lacks {lacks:?} for\n{text}"))
        };
        compare(name, run.by(|function, args| execute(&code(function), args)))?;
    }
    Ok(())
}

/// The first element in which results differ, and how.
fn difference(ty: &TensorType, want: &[u8], got: &[u8]) -> Option<(usize, String)> {
    let (want, got) = (with_one_nan(ty, want.to_vec()), with_one_nan(ty, got.to_vec()));
    let width = ty.dtype.storage_bytes();
    let mut elements = want.chunks(width).zip(got.chunks(width));
    let at = elements.position(|(want, got)| want != got)?;
    let [want, got] = [&want, &got].map(|bytes| Scalar::from_bytes(ty.dtype, &bytes[at * width..][..width]));
    Some((at, format!("{got}, and not {want},")))
}

/// Numbers that look random: xorshift (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The bytes of special and of random elements of a dtype.
fn elements(dtype: DType) -> Vec<u8> {
    let scalar = |number: Number| Scalar::new(dtype, number).unwrap().to_bytes().to_vec();
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ dtype.bits() as u64);
    let mut found: Vec<Vec<u8>> = Vec::new();
    match dtype.kind() {
        defn_core::Kind::Bool => found.extend([false, true].map(|x| scalar(Number::Bool(x)))),
        defn_core::Kind::Unsigned | defn_core::Kind::Signed => {
            let (Number::Int(low), Number::Int(high)) = (dtype.lowest(), dtype.highest()) else {
                unreachable!("integers have bounds")
            };
            let near = [0, 1, 2, 3, 5, 7, 8, 9, 10, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 1000];
            let powers = (4..64).step_by(5).map(|power| 1i128 << power);
            let ends = [low, low + 1, high / 2, high / 2 + 1, high - 1, high];
            let all =
                near.into_iter().chain(powers.flat_map(|x| [x, x - 1])).flat_map(|x| [x, -x]).chain(ends);
            found.extend(all.filter(|x| (low..=high).contains(x)).map(|x| scalar(Number::Int(x))));
            for _ in 0..10 {
                let by = random.next() % dtype.bits() as u64;
                let number = low + i128::from(random.next()) % (high - low + 1);
                found.push(scalar(Number::Int(number >> by)));
            }
        }
        defn_core::Kind::Float => {
            found.extend(floats(dtype).into_iter().map(|x| scalar(Number::Float(x))));
        }
        defn_core::Kind::Complex => {
            let parts: Vec<f64> = floats(dtype.to_real());
            for &re in &parts {
                found.extend(parts.iter().step_by(3).map(|&im| scalar(Number::complex(re, im))));
                let lines = [(0.0, re), (-0.0, re), (-1.0, re), (re, 0.0), (re, -0.0), (re, re)];
                found.extend(lines.map(|(re, im)| scalar(Number::complex(re, im))));
            }
        }
    }
    found.concat()
}

/// As [`elements`], but no more than some dozens.
fn few(dtype: DType) -> Vec<u8> {
    if dtype.is_complex() {
        let parts = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.3, f64::INFINITY, f64::NAN, 1e30, -1e-30];
        let all = parts.iter().flat_map(|&re| parts.map(|im| Number::complex(re, im)));
        return all.flat_map(|z| Scalar::new(dtype, z).unwrap().to_bytes().to_vec()).collect();
    }
    let all = elements(dtype);
    let width = dtype.storage_bytes();
    let step = (all.len() / width).div_ceil(60);
    // The first are special.
    let kept = all.chunks(width).enumerate().filter(|(at, _)| *at < 14 || at % step == 0);
    kept.flat_map(|(_, element)| element.to_vec()).collect()
}

/// Special numbers, and some of all sizes.
fn floats(dtype: DType) -> Vec<f64> {
    let special = [
        f64::NAN,
        f64::INFINITY,
        0.0,
        1.0,
        0.5,
        0.25,
        1.5,
        2.0,
        2.5,
        3.0,
        4.0,
        5.5,
        7.0,
        10.0,
        23.0,
        41.0,
        0.1,
        0.3,
        0.7,
        0.999,
        1.001,
        1e-3,
        1e-7,
        1e-20,
        1e-38,
        1e-40,
        1e-45,
        1e-300,
        5e-324,
        100.5,
        300.0,
        448.0,
        460.0,
        700.0,
        711.0,
        6e4,
        65504.0,
        65519.0,
        65520.0,
        999_999.0,
        1e6,
        1.1e6,
        1e10,
        1e30,
        3.4e38,
        1e300,
        f64::MAX,
        127.0,
        128.0,
        255.0,
        256.0,
        32767.5,
        2_147_483_647.0,
        2_147_483_648.0,
        4_294_967_296.0,
        9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
        std::f64::consts::FRAC_PI_2,
        std::f64::consts::PI,
        1.0 + f64::EPSILON,
        16_777_217.0,
        1.0009766,
    ];
    let mut random = Random(88_172_645_463_325_252 + dtype.bits() as u64);
    let mut all: Vec<f64> = special.into_iter().flat_map(|x| [x, -x]).collect();
    for _ in 0..20 {
        let x = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let power = (random.next() % 40) as i32 - 20;
        all.push(if random.next().is_multiple_of(2) { x * 2f64.powi(power) } else { -x * 2f64.powi(power) });
    }
    all
}

/// All pairs of elements, as two lists.
fn pairs(a: (DType, &[u8]), b: (DType, &[u8])) -> [Vec<u8>; 2] {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for x in a.1.chunks(a.0.storage_bytes()) {
        for y in b.1.chunks(b.0.storage_bytes()) {
            left.extend_from_slice(x);
            right.extend_from_slice(y);
        }
    }
    [left, right]
}
