//! The floating-point modes of a thread. Another library may have set it to flush subnormals to zero, or to round in
//! another direction; the threads that it starts inherit that. Kernels and the portable executor need the defaults, as
//! all Rust code does. Machine code of nests sees to itself.

/// Sets the modes to their defaults, until it is dropped: rounding to nearest, and subnormals as they are.
///
/// Ops and programs see to this themselves. It is for what is computed beside them: constants while a function is traced.
///
/// ```
/// let _modes = defn_cpu::DefaultModes::set();
/// assert!(std::hint::black_box(1e-40f64) as f32 > 0.0);
/// ```
#[derive(Debug)]
pub struct DefaultModes {
    /// The modes before, if they were others.
    before: Option<u64>,
}

impl DefaultModes {
    /// Reads the modes of this thread, and sets them if they are others.
    #[inline]
    #[must_use = "the modes are as before when it is dropped"]
    pub fn set() -> DefaultModes {
        let modes = read();
        if modes & CONTROLS == DEFAULT {
            return DefaultModes { before: None };
        }
        write(modes & !CONTROLS | DEFAULT);
        DefaultModes { before: Some(modes) }
    }
}

/// Sets the modes of a thread of the pool, which has inherited others.
pub(crate) fn set_defaults() {
    write(read() & !CONTROLS | DEFAULT);
}

impl Drop for DefaultModes {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

/// All but the flags of exceptions, which are set by every inexact result: the modes of MXCSR.
#[cfg(target_arch = "x86_64")]
const CONTROLS: u64 = 0xFFC0;
/// All exceptions are masked.
#[cfg(target_arch = "x86_64")]
const DEFAULT: u64 = 0x1F80;

/// FPCR's rounding, flush to zero, and default NaN.
#[cfg(target_arch = "aarch64")]
const CONTROLS: u64 = 0x7 << 24 | 3 << 22 | 1 << 19;
#[cfg(target_arch = "aarch64")]
const DEFAULT: u64 = 0;

/// Nothing is known of other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CONTROLS: u64 = 0;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT: u64 = 0;

#[inline]
fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut modes = 0u32;
        // SAFETY: it writes four bytes.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut modes, options(nostack, preserves_flags)) };
        u64::from(modes)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let modes: u64;
        // SAFETY: it reads a register.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) modes, options(nomem, nostack, preserves_flags)) };
        modes
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

#[inline]
fn write(modes: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        let modes = modes as u32;
        // SAFETY: it reads four bytes, which were read from the register but for the defaults.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const modes, options(nostack)) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as it was read, but for the defaults.
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) modes, options(nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = modes;
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_modes_are_the_defaults_meanwhile() {
        let before = read();
        // Flush to zero, denormals are zero, and round down.
        let others = before | 0x8040 | 0x2000;
        write(others);
        let modes = DefaultModes::set();
        let product = std::hint::black_box(1e-30f32) * std::hint::black_box(1e-10f32);
        let meanwhile = read();
        drop(modes);
        let after = read();
        write(before);
        assert_eq!(meanwhile & CONTROLS, DEFAULT);
        assert_eq!(after & CONTROLS, others & CONTROLS);
        assert!(product > 0.0 && product < f32::MIN_POSITIVE);
    }
}
