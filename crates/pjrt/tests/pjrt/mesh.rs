//! Programs that the devices of a mesh run together.

use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, HostMemory, NoHooks};
use defn_core::builder::*;
use defn_core::mesh::{self, Mesh};
use defn_core::op::{AllReduceOp, DeviceGroups};
use defn_core::region::Region;
use defn_core::{DType, Kind, Number, Result, Scalar, Tensor, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{CompilerOptions, MeshBackend, MeshCompiler};

use crate::device::{self, floats, host_backend, read, trace, ty};

fn mesh_of(axes: &[(&str, usize)], devices: &[i64]) -> Arc<MeshBackend> {
    let mesh = Mesh::new(axes.iter().map(|&(name, size)| (name.into(), size)).collect()).unwrap();
    MeshBackend::new(mesh, devices.iter().map(|&id| host_backend(id)).collect()).unwrap()
}

fn compiler_of(mesh: &Arc<MeshBackend>) -> MeshCompiler {
    MeshCompiler::new(mesh.clone(), cpu_backend(), CompilerOptions::default())
}

/// Traces a function for a mesh.
fn trace_on(
    mesh: &MeshBackend,
    types: &[TensorType],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Arc<Region> {
    let _mesh = mesh::enter(mesh.mesh().clone());
    trace(types, function)
}

/// Runs a program on blocks, with one row for each argument; returns the blocks of each result.
fn run(mesh: &Arc<MeshBackend>, program: Arc<Region>, arguments: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
    let executable = compiler_of(mesh).compile(program.clone(), Checks::default())?;
    let arguments = arguments.iter().zip(program.inputs());
    let arguments = arguments.map(|(blocks, ty)| mesh.gather_blocks(ty, blocks)).collect::<Result<_>>()?;
    let backend: Arc<dyn Backend> = mesh.clone();
    let results = executable.run(&backend, arguments, &NoHooks)?;
    results.iter().map(MeshBackend::blocks).collect()
}

fn groups_over(axes: &[&str]) -> DeviceGroups {
    mesh::device_groups("test", &axes.iter().map(|&axis| axis.into()).collect::<Vec<_>>()).unwrap()
}

/// A tensor of small numbers on the host, which depend on the seed.
fn small(dtype: DType, sizes: &[usize], seed: usize) -> Tensor {
    let ty = ty(dtype, sizes);
    let number = |at: usize| {
        let value = i128::from((at * 7 + seed * 3) as u32 % 4);
        let value = if dtype.kind() == Kind::Unsigned { value } else { value - 2 };
        match dtype.kind() {
            Kind::Bool => Number::Bool(value > 0),
            Kind::Unsigned | Kind::Signed => Number::Int(value),
            Kind::Float | Kind::Complex => Number::Float(value as f64),
        }
    };
    let bytes: Vec<u8> =
        (0..ty.size()).flat_map(|at| Scalar::new(dtype, number(at)).unwrap().to_bytes()).collect();
    let buffer = cpu_backend().from_host(&ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty, buffer)
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    tensor.host_bytes("test").unwrap().bytes()[..tensor.whole().byte_size()].to_vec()
}

fn host() -> Ops {
    Ops::new(cpu_backend(), Source::Unknown)
}

#[test]
fn bools_are_gathered_and_sent_and_not_added() {
    let mesh = mesh_of(&[("data", 2)], &[0, 1]);
    let program = trace_on(&mesh, &[ty(DType::Bool, &[4, 3])], |ops, x| {
        let error = ops.all_reduce(&x[0], AllReduceOp::Sum, &groups_over(&[])).unwrap_err().to_string();
        assert!(error.starts_with("all_reduce: the operand is bool[4][3], it must be a number"), "{error}");
        Ok(vec![
            ops.all_gather(&x[0], 0, &groups_over(&[]))?,
            ops.collective_permute(&x[0], &[(0, 1), (1, 0)], &groups_over(&[]))?,
        ])
    });
    let x: Vec<Tensor> = (0..2).map(|seed| small(DType::Bool, &[4, 3], seed)).collect();
    assert_ne!(bytes(&x[0]), bytes(&x[1]));
    let results = run(&mesh, program, std::slice::from_ref(&x)).unwrap();
    let all = [bytes(&x[0]), bytes(&x[1])].concat();
    for device in 0..2 {
        assert_eq!(bytes(&results[0][device]), all);
        assert_eq!(bytes(&results[1][device]), bytes(&x[1 - device]));
    }
}

#[test]
fn every_exchange_of_every_dtype() {
    let mesh = mesh_of(&[("data", 2), ("model", 2)], &[0, 1, 2, 3]);
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_bool()) {
        let is_ordered = dtype.kind() != Kind::Complex;
        let program = trace_on(&mesh, &[ty(dtype, &[4, 3])], |ops, x| {
            let (all, data) = (groups_over(&[]), groups_over(&["data"]));
            let mut results = vec![
                ops.all_reduce(&x[0], AllReduceOp::Sum, &all)?,
                ops.all_gather(&x[0], 1, &data)?,
                ops.reduce_scatter(&x[0], 0, &data)?,
                ops.collective_permute(&x[0], &[(0, 1), (1, 0)], &groups_over(&["model"]))?,
                ops.collective_permute(&x[0], &[(3, 0)], &all)?,
            ];
            if is_ordered {
                results.push(ops.all_reduce(&x[0], AllReduceOp::Max, &all)?);
                results.push(ops.all_reduce(&x[0], AllReduceOp::Min, &data)?);
            }
            Ok(results)
        });
        let x: Vec<Tensor> = (0..4).map(|seed| small(dtype, &[4, 3], seed)).collect();
        let results = run(&mesh, program, std::slice::from_ref(&x)).unwrap();
        let mut ops = host();
        let mut add = |a: &Tensor, b: &Tensor| ops.add(a, b).unwrap();
        // Devices 0 and 2 differ along "data" only, devices 0 and 1 along "model".
        let sum = [0, 1, 2, 3].map(|at| x[at].clone()).into_iter().reduce(|a, b| add(&a, &b)).unwrap();
        let pairs = [(0, 2), (1, 3)].map(|(a, b)| add(&x[a], &x[b]));
        for device in 0..4 {
            let got = |result: usize| bytes(&results[result][device]);
            let mut ops = host();
            assert_eq!(got(0), bytes(&sum), "{dtype} sum");
            let column = [&x[device % 2], &x[device % 2 + 2]].map(Clone::clone);
            assert_eq!(got(1), bytes(&ops.concatenate(&column, 1).unwrap()), "{dtype} gather");
            let expected = bytes(&pairs[device % 2]);
            let half = expected.len() / 2;
            assert_eq!(got(2), expected[device / 2 * half..][..half], "{dtype} scatter");
            assert_eq!(got(3), bytes(&x[device ^ 1]), "{dtype} permute");
            let expected_block = if device == 0 { bytes(&x[3]) } else { vec![0; half * 2] };
            assert_eq!(got(4), expected_block, "{dtype} permute of one");
            if is_ordered {
                let mut max = x[0].clone();
                for other in &x[1..] {
                    max = ops.max(&max, other).unwrap();
                }
                assert_eq!(got(5), bytes(&max), "{dtype} max");
                let min = ops.min(&x[device % 2], &x[device % 2 + 2]).unwrap();
                assert_eq!(got(6), bytes(&min), "{dtype} min");
            }
        }
    }
}

#[test]
fn a_nan_is_the_greatest_and_the_least() {
    let mesh = mesh_of(&[("data", 4)], &[3, 1, 2, 0]);
    let program = trace_on(&mesh, &[ty(DType::F32, &[4])], |ops, x| {
        let max = ops.all_reduce(&x[0], AllReduceOp::Max, &groups_over(&["data"]))?;
        let min = ops.all_reduce(&x[0], AllReduceOp::Min, &groups_over(&["data"]))?;
        Ok(vec![max, min, ops.mesh_index(&groups_over(&["data"]))?])
    });
    let cpu = cpu_backend();
    let rows = [
        [f32::NAN, -1.0, -0.0, f32::INFINITY],
        [2.0, -3.0, 0.0, 1.0],
        [3.0, f32::MIN, -0.0, 5.0],
        [4.0, -1e-40, 0.0, f32::NEG_INFINITY],
    ];
    let blocks = rows.iter().map(|row| floats(&*cpu, row)).collect();
    let results = run(&mesh, program, &[blocks]).unwrap();
    for device in 0..4 {
        let (max, min) = (read(&results[0][device]), read(&results[1][device]));
        assert!(max[0].is_nan() && min[0].is_nan());
        assert_eq!(max[1..], [-1e-40, 0.0, f32::INFINITY]);
        assert_eq!(min[1..], [f32::MIN, 0.0, f32::NEG_INFINITY]);
        assert_eq!((max[2].is_sign_positive(), min[2].is_sign_negative()), (true, true));
        assert_eq!(bytes(&results[2][device]), (device as i32).to_ne_bytes());
        // The order of the blocks is that of the mesh's devices.
        let device_name = results[0][device].backend().unwrap().device_name();
        assert_eq!(device_name, format!("pjrt<host:{}>", [3, 1, 2, 0][device]));
    }
}

#[test]
fn empty_blocks_and_one_device() {
    let mesh = mesh_of(&[("data", 1)], &[2]);
    let program = trace_on(&mesh, &[ty(DType::F32, &[0, 2]), ty(DType::F32, &[2])], |ops, x| {
        let groups = groups_over(&["data"]);
        Ok(vec![
            ops.all_reduce(&x[0], AllReduceOp::Sum, &groups)?,
            ops.all_gather(&x[1], 0, &groups)?,
            ops.reduce_scatter(&x[1], 0, &groups)?,
            ops.collective_permute(&x[1], &[], &groups)?,
            ops.all_reduce(&x[1], AllReduceOp::Min, &groups)?,
        ])
    });
    let cpu = cpu_backend();
    let empty = small(DType::F32, &[0, 2], 0);
    let results = run(&mesh, program, &[vec![empty], vec![floats(&*cpu, &[1.0, -2.0])]]).unwrap();
    let each: Vec<Vec<f32>> = results[1..].iter().map(|blocks| read(&blocks[0])).collect();
    assert_eq!(each, [[1.0, -2.0], [1.0, -2.0], [0.0, 0.0], [1.0, -2.0]]);
    assert_eq!(results[0][0].whole().to_string(), "f32[0][2]");
}

#[test]
fn donated_blocks_are_gone_unless_the_run_fails() {
    let mesh = mesh_of(&[("data", 2)], &[1, 0]);
    let x = ty(DType::F32, &[2]);
    let program = trace_on(&mesh, &[x.clone(), x.clone()], |ops, v| {
        let sum = ops.all_reduce(&v[0], AllReduceOp::Sum, &groups_over(&["data"]))?;
        Ok(vec![ops.add(&sum, &v[1])?])
    });
    let executable = compiler_of(&mesh).compile_donating(program, Checks::default(), &[0]).unwrap();
    let cpu = cpu_backend();
    let tensor_of = |values: [f32; 2]| {
        mesh.gather_blocks(&x, &[floats(&*cpu, &values), floats(&*cpu, &[1.0, 1.0])]).unwrap()
    };
    let backend: Arc<dyn Backend> = mesh.clone();
    let (a, b) = (tensor_of([1.0, 2.0]), tensor_of([0.5, 0.5]));
    let results = executable.run(&backend, vec![a.clone(), b.clone()], &NoHooks).unwrap();
    let blocks = MeshBackend::blocks(&results[0]).unwrap();
    assert_eq!((read(&blocks[0]), read(&blocks[1])), (vec![2.5, 3.5], vec![3.0, 4.0]));
    assert!(MeshBackend::blocks(&a).unwrap_err().to_string().contains("donated"));
    let error = executable.run(&backend, vec![a, b.clone()], &NoHooks).unwrap_err();
    assert!(error.to_string().starts_with("run: argument 0 is f32[2] and its memory was donated"), "{error}");
    // A block that another tensor shares is copied instead.
    let c = tensor_of([4.0, 4.0]);
    let blocks_of_c = MeshBackend::blocks(&c).unwrap();
    let results = executable.run(&backend, vec![c, b], &NoHooks).unwrap();
    assert_eq!(read(&MeshBackend::blocks(&results[0]).unwrap()[1]), [6.0, 6.0]);
    assert_eq!((read(&blocks_of_c[0]), read(&blocks_of_c[1])), (vec![4.0, 4.0], vec![1.0, 1.0]));
}

#[test]
fn exchanges_follow_one_another() {
    let mesh = mesh_of(&[("data", 4)], &[0, 1, 2, 3]);
    let program = trace_on(&mesh, &[ty(DType::F32, &[])], |ops, x| {
        let groups = groups_over(&["data"]);
        let mut sum = x[0].clone();
        for _ in 0..3 {
            sum = ops.all_reduce(&sum, AllReduceOp::Sum, &groups)?;
        }
        Ok(vec![sum])
    });
    let blocks = (0..4).map(|seed| small(DType::F32, &[], seed)).collect::<Vec<_>>();
    let sum: f32 = blocks.iter().map(|block| read(block)[0]).sum();
    let results = run(&mesh, program, &[blocks]).unwrap();
    assert_eq!(read(&results[0][2]), [sum * 16.0]);
}

#[test]
fn threads_that_run_at_once_take_turns() {
    let mesh = mesh_of(&[("data", 4)], &[0, 1, 2, 3]);
    let other = mesh_of(&[("data", 2)], &[2, 1]);
    let x = ty(DType::F32, &[8]);
    let executables: Vec<_> = [&mesh, &other]
        .map(|mesh| {
            let program = trace_on(mesh, std::slice::from_ref(&x), |ops, v| {
                let sum = ops.all_reduce(&v[0], AllReduceOp::Sum, &groups_over(&["data"]))?;
                Ok(vec![ops.all_reduce(&sum, AllReduceOp::Max, &groups_over(&["data"]))?])
            });
            compiler_of(mesh).compile(program, Checks::default()).unwrap()
        })
        .into();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (mesh, executable) =
                if thread % 2 == 0 { (&mesh, &executables[0]) } else { (&other, &executables[1]) };
            let x = &x;
            scope.spawn(move || {
                let backend: Arc<dyn Backend> = mesh.clone();
                let cpu = cpu_backend();
                for round in 0..50_u8 {
                    let value = f32::from(thread) + f32::from(round);
                    let blocks: Vec<Tensor> =
                        mesh.backends().iter().map(|_| floats(&*cpu, &[value; 8])).collect();
                    let argument = mesh.gather_blocks(x, &blocks).unwrap();
                    let results = executable.run(&backend, vec![argument], &NoHooks).unwrap();
                    let devices = mesh.backends().len() as f32;
                    for block in MeshBackend::blocks(&results[0]).unwrap() {
                        assert_eq!(read(&block), [value * devices; 8]);
                    }
                }
            });
        }
    });
}

#[test]
fn meshes_that_there_cannot_be() {
    let two = Mesh::new(vec![("data".into(), 2)]).unwrap();
    let text = |ids: &[i64]| {
        let backends = ids.iter().map(|&id| host_backend(id)).collect();
        MeshBackend::new(two.clone(), backends).unwrap_err().to_string()
    };
    assert!(text(&[0]).starts_with("mesh: {data: 2} needs 2 devices and there are 1"));
    assert!(text(&[1, 1]).starts_with("mesh: pjrt<host:1> is given twice"));
    let other = device::own_backend("another");
    let error = MeshBackend::new(two.clone(), vec![host_backend(0), other]).unwrap_err().to_string();
    assert!(error.starts_with("mesh: pjrt<host:0> and pjrt<another:0> belong to two clients"), "{error}");
}

#[test]
fn programs_that_a_mesh_does_not_run() {
    let mesh = mesh_of(&[("data", 2)], &[0, 1]);
    let compile = |program: Arc<Region>| {
        compiler_of(&mesh).compile(program, Checks::default()).unwrap_err().to_string()
    };
    let x = ty(DType::F32, &[2]);
    let four = Mesh::new(vec![("data".into(), 4)]).unwrap();
    let program = trace(std::slice::from_ref(&x), |ops, v| {
        let groups = four.device_groups("test", &[])?;
        Ok(vec![ops.all_reduce(&v[0], AllReduceOp::Sum, &groups)?])
    });
    assert!(compile(program.clone()).starts_with("all_reduce: the program is for 4 devices"));
    let error_of_one =
        device::compiler(&device::host_backend(0)).compile(program.clone(), Checks::default()).unwrap_err();
    assert!(
        error_of_one
            .to_string()
            .starts_with("all_reduce: a compiler of \"pjrt\" runs a program on one device")
    );
    let evaluator = defn_core::evaluator::Evaluator::new(cpu_backend());
    let error_of_one = evaluator.compile(program, Checks::default()).unwrap_err();
    assert!(
        error_of_one.to_string().starts_with("all_reduce: the evaluator runs a program on one device"),
        "{error_of_one}"
    );
    let checks = Checks { nan: true, ..Checks::default() };
    let plain = trace(std::slice::from_ref(&x), |_, v| Ok(v.to_vec()));
    let error = compiler_of(&mesh).compile(plain, checks).unwrap_err().to_string();
    assert!(error.starts_with("shard: checks are asked for"), "{error}");
    let hooked = trace(&[x], |ops, v| Ok(ops.hook(0, None, v)?.to_vec()));
    assert!(compile(hooked).starts_with("shard: hook in a program for several devices"));
}
