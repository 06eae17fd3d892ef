//! Every operation compiles for an H200, on a machine that need not have one.
//!
//! `./dev test gpu-compile` installs the packages that this needs and runs it. `cargo test` alone skips it, because the
//! packages are large.
//!
//! Most of the time is spent in `ptxas`, which XLA starts once for each kernel. The programs of a family share the
//! kernels that XLA has compiled, because its programs for many element types compute in few types.

mod device;
mod rows;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Checks, Executable, NoHooks};
use defn_core::graph::Graph;
use defn_core::op::{BinaryOp, MemorySpace, Op};
use defn_core::region::Region;
use defn_core::{DType, form};
use defn_core::{Shape, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{
    Attribute, CompileOptions, CompilerOptions, Hardware, PjrtCompiler, Target, TargetCompiler, lower,
};
use rows::{FAMILIES, Row, program};

/// The folder of the packages `jax-cuda13-pjrt`, `nvidia-cuda-nvcc` and `nvidia-nvvm`.
fn packages() -> PathBuf {
    let folder = std::env::var_os("DEFN_CUDA_PACKAGES");
    folder.map(PathBuf::from).expect("`./dev test gpu-compile` sets DEFN_CUDA_PACKAGES")
}

fn target() -> &'static Arc<Target> {
    static TARGET: OnceLock<Arc<Target>> = OnceLock::new();
    TARGET.get_or_init(|| {
        let plugin = packages().join("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
        Arc::new(Target::new("h200", "cuda", plugin).unwrap())
    })
}

#[test]
fn a_plugin_without_a_library_has_no_solver() {
    assert_eq!(target().hardware(), Hardware::Device);
}

#[test]
fn a_program_is_compiled_for_an_h200_and_for_nothing_else() {
    let ty = TensorType { dtype: DType::F32, shape: Shape::new(&[8]) };
    let mut graph = Graph::new();
    let x: Vec<_> = (0..2).map(|index| graph.parameter(index, ty.clone())).collect();
    let sum = graph.push(Op::Binary(BinaryOp::ADD), &x).unwrap();
    let program = Region::new(graph, vec![ty.clone(), ty], 2, sum);
    let fold: Arc<dyn Backend> = cpu_backend();
    let compiler = TargetCompiler::new(target().clone(), fold.clone(), CompilerOptions::default());
    let compiled = compiler.executable(Arc::new(program), Checks::default(), &[0]).unwrap();
    let bytes = compiled.to_bytes(&[]).unwrap();
    assert!(bytes.windows(5).any(|part| part == b"sm_90"));
    let compiler = PjrtCompiler::new(device::host_backend(0), fold, CompilerOptions::default());
    let error = compiler.load(&bytes).unwrap_err().to_string();
    assert!(error.starts_with("load: the executable is for h200 on cuda and this is cpu ("), "{error}");
    let x = device::floats(&*cpu_backend(), &[0.0; 8]);
    let backend: Arc<dyn Backend> = cpu_backend();
    let error = compiled.run(&backend, vec![x.clone(), x], &NoHooks).unwrap_err().to_string();
    assert!(error.starts_with("run: the executable is for h200 on cuda and this is cpu ("), "{error}");
}

/// The compile options of a family's programs, which keep their kernels in one file of the family. XLA reads and writes
/// the whole file, so no two programs may be compiled with one file at the same time.
struct Options {
    kernels: PathBuf,
    options: CompileOptions,
}

impl Options {
    fn new(family: &str) -> Options {
        let name = format!("kernels-{}-{family}", std::process::id());
        let kernels = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let path = kernels.to_str().expect("the folder's name is text").to_owned();
        let flags = [
            ("xla_gpu_kernel_cache_file", Attribute::Text(path)),
            // XLA would compile several candidates for a kernel, which it cannot compare without a device.
            ("xla_gpu_autotune_level", Attribute::Int(0)),
        ];
        let flags = flags.map(|(flag, value)| (flag.to_owned(), value)).to_vec();
        Options { kernels, options: CompileOptions { flags, ..CompileOptions::default() } }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // The file does not exist if no program was compiled.
        let _ = fs::remove_file(&self.kernels);
    }
}

/// Compiles rows as one program; if that fails, each half by itself.
fn compile(rows: &[Row], options: &CompileOptions, rejected: &mut Vec<String>) {
    let text = lower(&program(rows).0, &[], Hardware::Device).expect("every row has a lowering").text;
    match target().topology().compile(text.as_bytes(), options) {
        Ok(executable) => {
            let bytes = executable.serialize().expect("an executable is written");
            let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
            assert!(holds(b"sm_90"), "an executable for an H200 names it");
            assert!(holds(b"\x7fELF"), "an executable holds kernels");
        }
        Err(error) if rows.len() == 1 => rejected.push(format!("{}: {error}", rows[0].name())),
        Err(_) => {
            let (first, second) = rows.split_at(rows.len() / 2);
            compile(first, options, rejected);
            compile(second, options, rejected);
        }
    }
}

fn check(name: &str) {
    let family = FAMILIES.iter().find(|family| family.name == name).unwrap();
    let options = Options::new(name);
    let (mut rejected, mut count) = (Vec::new(), 0);
    for &dtype in DType::ALL {
        // One row of each operation: the device's compiler does not read the elements.
        let mut names = BTreeSet::new();
        let mut rows = (family.rows)(dtype).rows;
        // Each row's results are the program's, which lie on the device.
        let is_on_host = |op: &Op| *op == Op::Transfer { to: MemorySpace::Host };
        rows.retain(|row| !is_on_host(&row.op) && names.insert(form::name(&row.op)));
        if !rows.is_empty() {
            compile(&rows, &options.options, &mut rejected);
        }
        count += rows.len();
    }
    assert!(
        rejected.is_empty(),
        "{} of {count} rows of {name} are refused:\n{}",
        rejected.len(),
        rejected.join("\n")
    );
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

#[test]
fn every_family_has_a_test() {
    assert!(FAMILIES.iter().map(|family| family.name).eq(TESTED.iter().copied()));
}
