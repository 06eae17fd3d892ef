//! Every operation compiles for an H200, on a machine that need not have one.
//!
//! `./dev test gpu-compile` installs what this needs and runs it; `cargo test` alone leaves it out, since the
//! packages are large.

mod device;
mod rows;

use std::collections::BTreeSet;
use std::path::PathBuf;

use defn_core::backend::Backend;
use defn_core::graph::Graph;
use defn_core::op::{BinaryOp, Op};
use defn_core::region::Region;
use defn_core::{DType, form};
use defn_core::{Shape, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{CompileOptions, CompilerOptions, PjrtCompiler, Target, Topology, lower};
use rows::{FAMILIES, Row, program};

/// The folder of the packages `jax-cuda13-pjrt`, `nvidia-cuda-nvcc` and `nvidia-nvvm`.
fn packages() -> PathBuf {
    let folder = std::env::var_os("DEFN_CUDA_PACKAGES");
    folder.map(PathBuf::from).expect("`./dev test gpu-compile` sets DEFN_CUDA_PACKAGES")
}

fn target() -> Target {
    Target::new("h200", packages().join("jax_plugins/xla_cuda13/xla_cuda_plugin.so")).unwrap()
}

#[test]
fn a_program_is_compiled_for_an_h200_and_for_nothing_else() {
    let ty = TensorType { dtype: DType::F32, shape: Shape::new(&[8]) };
    let mut graph = Graph::new();
    let x: Vec<_> = (0..2).map(|index| graph.parameter(index, ty.clone())).collect();
    let sum = graph.push(Op::Binary(BinaryOp::Add), &x).unwrap();
    let program = Region::new(graph, vec![ty.clone(), ty], 2, sum);
    let fold: std::sync::Arc<dyn Backend> = cpu_backend();
    let bytes = target().compile(&program, &fold, &CompilerOptions::default(), &[0]).unwrap();
    assert!(bytes.windows(5).any(|part| part == b"sm_90"));
    let compiler = PjrtCompiler::new(device::place(0), fold, CompilerOptions::default());
    let error = compiler.load(&bytes).unwrap_err().to_string();
    assert!(error.starts_with("load: the executable is for cuda and this is cpu ("), "{error}");
}

fn compile(topology: &Topology, rows: &[Row], refused: &mut Vec<String>) -> usize {
    let text = lower(&program(rows).0, &[]).expect("every row has a lowering").text;
    match topology.compile(text.as_bytes(), &CompileOptions::default()) {
        Ok(executable) => {
            let bytes = executable.serialize().expect("an executable is written");
            assert!(bytes.windows(5).any(|part| part == b"sm_90"), "an executable for an H200 names it");
            bytes.len()
        }
        Err(error) if rows.len() == 1 => {
            refused.push(format!("{}: {error}", rows[0].name()));
            0
        }
        Err(_) => {
            let (first, second) = rows.split_at(rows.len() / 2);
            compile(topology, first, refused) + compile(topology, second, refused)
        }
    }
}

#[test]
fn every_operation_compiles_for_an_h200() {
    let target = target();
    let topology = target.topology();
    let (mut refused, mut count) = (Vec::new(), 0);
    for family in FAMILIES {
        let start = std::time::Instant::now();
        let mut bytes = 0;
        for &dtype in DType::ALL {
            // One row of each operation: the device's compiler does not look at the elements.
            let mut names = BTreeSet::new();
            let mut rows = (family.rows)(dtype).rows;
            rows.retain(|row| names.insert(form::name(&row.op)));
            if !rows.is_empty() {
                bytes += compile(topology, &rows, &mut refused);
            }
            count += rows.len();
            println!("{} {dtype}: {:.1} s", family.name, start.elapsed().as_secs_f64());
        }
        println!("{}: {bytes} bytes in {:.0} s", family.name, start.elapsed().as_secs_f64());
    }
    assert!(refused.is_empty(), "{} of {count} rows are refused:\n{}", refused.len(), refused.join("\n"));
}
