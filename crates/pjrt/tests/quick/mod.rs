//! How XLA compiles the programs of tests fast.

use crate::{Attribute, CompileOptions};

/// Options for programs that run once, of which each processor compiles one: XLA takes half the time. LLVM's
/// optimizations double it.
pub fn options(is_optimized: bool) -> CompileOptions {
    let flag = |name: &str, value| (name.to_owned(), value);
    let mut flags = vec![
        flag("xla_cpu_use_fusion_emitters", Attribute::Bool(false)),
        flag("xla_cpu_parallel_codegen_split_count", Attribute::Int(1)),
    ];
    if !is_optimized {
        flags.push(flag("xla_backend_optimization_level", Attribute::Int(0)));
    }
    CompileOptions { flags, ..CompileOptions::default() }
}
