//! The instruction sets that code is generated for, and that of this processor.

use super::super::emit::check::check;
use super::super::emit::evex::Evex;
use super::super::emit::neon::Neon;
use super::super::emit::registers::allocate;
use super::super::emit::vex::Vex;
use super::super::emit::{Allocated, Target};
use super::super::ir::Function;
use super::super::memory::code;
use super::super::schedule::{Unsupported, lower};

/// A function with the registers of an instruction set. Debug builds and tests check them.
///
/// # Errors
/// The instruction set lacks an op.
pub(in super::super) fn allocated(
    function: &Function,
    target: &dyn Target,
) -> Result<Allocated, Unsupported> {
    let code = lower(function, target)?;
    let words = u32::from(function.buffers + function.params);
    if !cfg!(any(debug_assertions, test)) {
        return Ok(allocate(&code, target, words, None));
    }
    let mut origins = Vec::new();
    let allocated = allocate(&code, target, words, Some(&mut origins));
    if let Err(problem) = check(&code, &allocated, &origins, target) {
        panic!("{problem}\n{function}");
    }
    Ok(allocated)
}

/// The instruction set of the machine code that compiled programs consist of on this machine: `"avx512"`, `"avx2"` or
/// `"neon"`.
///
/// # Errors
/// Why there is no machine code. Programs run in the portable executor then, slower, with the same results.
///
/// ```
/// match defn_cpu::machine_code() {
///     Ok(instructions) => println!("machine code of {instructions}"),
///     Err(reason) => println!("no machine code: {reason}"),
/// }
/// ```
pub fn machine_code() -> Result<&'static str, &'static str> {
    let target = processor().ok_or("no code is generated for the instruction set of the kernels")?;
    code::available()?;
    Ok(target.name())
}

/// Why the system refuses memory for the code of this processor's instruction set, if it does.
#[doc(hidden)]
pub fn refused_memory_for_code() -> Option<&'static str> {
    processor().and_then(|_| code::available().err())
}

/// The instruction set of this processor, as far as the settings allow it.
#[cfg(target_arch = "x86_64")]
pub(in super::super) fn processor() -> Option<&'static dyn Target> {
    use crate::kernels::simd::{Level, level};
    match level() {
        Level::Avx512 => Some(&Evex),
        Level::Avx2 if is_x86_feature_detected!("f16c") => Some(&Vex),
        Level::Avx2 | Level::Portable => None,
    }
}

/// The instruction set of this processor, as far as the settings allow it.
#[cfg(target_arch = "aarch64")]
pub(in super::super) fn processor() -> Option<&'static dyn Target> {
    use crate::settings::{Instructions, instructions};
    match instructions() {
        Instructions::Portable => None,
        Instructions::Avx2 | Instructions::Avx512 => Some(&Neon),
    }
}

/// Other processors have the portable executor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(in super::super) fn processor() -> Option<&'static dyn Target> {
    None
}

/// The instruction sets that code is generated for.
pub(in super::super) fn instruction_sets() -> [&'static dyn Target; 3] {
    [&Evex, &Vex, &Neon]
}
