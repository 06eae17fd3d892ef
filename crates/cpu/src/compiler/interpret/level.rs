//! Loops compiled for two instruction sets, one of which is selected at run time: AVX2 with fused multiply-add, and the
//! baseline of the architecture. Both give the same bits. AVX-512 would be as much code again, for what is rarely run.
//!
//! The macro has the form of the one for kernels (`kernels/support/simd.rs`).

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Defines a function whose loop is compiled for each level. Functions that it calls must be marked
/// `#[inline(always)]`, or be small, so that they are compiled in the loop. NEON is portable on AArch64.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($generics:tt)*] of [$($param:ident),*] (
        $($arg:ident: $ty:ty),* $(,)?
    ) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[inline(always)]
        $vis fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn body<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi2,fma")]
                fn avx2<$($generics)*>($($arg: $ty),*) $(-> $result)? {
                    body::<$($param),*>($($arg),*)
                }

                match $crate::compiler::interpret::level::level() {
                    $crate::compiler::interpret::level::Level::Avx2 => {
                        // SAFETY: the level says that the processor has these instructions.
                        return unsafe { avx2::<$($param),*>($($arg),*) };
                    }
                    $crate::compiler::interpret::level::Level::Portable => {}
                }
            }
            body::<$($param),*>($($arg),*)
        }
    };
}
pub(super) use vectorized;

/// The instruction sets of the processor.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Level {
    Portable = 1,
    Avx2 = 2,
}

/// The level of the processor, or 0 before it was detected.
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

#[cfg(test)]
thread_local! {
    /// The level that a test on this thread asks for, or 0.
    static TESTED: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
}

/// The level of the processor, detected once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> Level {
    #[cfg(test)]
    if TESTED.get() == Level::Portable as u8 {
        return Level::Portable;
    }
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Avx2,
        _ => {
            let level = detect();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn detect() -> Level {
    let is_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("fma");
    if is_avx2 { Level::Avx2 } else { Level::Portable }
}

/// Runs `f` with each of the levels that the processor has, the best last.
#[cfg(test)]
pub(crate) fn at_every_level(mut f: impl FnMut()) {
    #[cfg(target_arch = "x86_64")]
    {
        TESTED.set(Level::Portable as u8);
        f();
    }
    TESTED.set(0);
    f();
}
