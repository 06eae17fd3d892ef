//! Loops compiled for several instruction sets, one of which is selected at run time.
//!
//! Every operation is one of IEEE 754 and is not contracted with another unless the code says so. So all instruction
//! sets give the same bits. Products of matrices and factorizations use fused multiply-add where it is fast, which is
//! everywhere but on processors of before 2013: only on those their results differ.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
use crate::settings::{Instructions, instructions};

/// Defines a function whose loop is compiled for AVX-512, for AVX2, and portably. Functions that it calls must be
/// marked `#[inline(always)]`, or be small, so that they are compiled in the loop. NEON is portable on AArch64.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($generics:tt)*] of [$($param:ident),*] (
        $($arg:ident: $ty:ty),* $(,)?
    ) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[inline(always)]
        $vis fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn body<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

            $crate::kernels::simd::at_level!(
                [$($generics)*],
                [$($param),*],
                ($($arg: $ty),*),
                ($($result)?),
                body::<$($param),*>,
                body::<$($param),*>
            )
        }
    };
}
pub(crate) use vectorized;

/// Calls `$fused` compiled for the level of the processor, or `$plain` if there is no fused multiply-add.
macro_rules! at_level {
    (
        [$($generics:tt)*], [$($param:ident),*], ($($arg:ident: $ty:ty),*), ($($result:ty)?), $plain:expr, $fused:expr
    ) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,fma")]
            fn avx512<$($generics)*>($($arg: $ty),*) $(-> $result)? {
                $fused($($arg),*)
            }

            #[target_feature(enable = "avx2,bmi2,fma")]
            fn avx2<$($generics)*>($($arg: $ty),*) $(-> $result)? {
                $fused($($arg),*)
            }

            match $crate::kernels::simd::level() {
                // SAFETY: the level says that the processor has these instructions.
                $crate::kernels::simd::Level::Avx512 => return unsafe { avx512::<$($param),*>($($arg),*) },
                // SAFETY: as above.
                $crate::kernels::simd::Level::Avx2 => return unsafe { avx2::<$($param),*>($($arg),*) },
                $crate::kernels::simd::Level::Portable => {}
            }
        }
        fn portable<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            if cfg!(target_arch = "aarch64") { $fused($($arg),*) } else { $plain($($arg),*) }
        }
        portable::<$($param),*>($($arg),*)
    }};
}
pub(crate) use at_level;

/// The instruction sets of the processor.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Level {
    Portable = 1,
    Avx2 = 2,
    Avx512 = 3,
}

/// The level of the processor, or 0 before it was detected.
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level of the processor, detected once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> Level {
    #[cfg(test)]
    match tested() {
        1 => return Level::Portable,
        2 => return Level::Avx2,
        _ => {}
    }
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let level = detect();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// The level that the processor has and the environment allows. All code for several instruction sets calls this or
/// [`level`].
#[cfg(target_arch = "x86_64")]
#[cold]
pub(crate) fn detect() -> Level {
    let half = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("fma");
    let wide = half
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    match (instructions(), wide, half) {
        (Instructions::Avx512, true, _) => Level::Avx512,
        (Instructions::Avx512 | Instructions::Avx2, _, true) => Level::Avx2,
        (Instructions::Avx512 | Instructions::Avx2 | Instructions::Portable, _, _) => Level::Portable,
    }
}

#[cfg(test)]
thread_local! {
    /// The level that tests on this thread allow, or 0 for no limit.
    static TESTED: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
}

/// The level that tests on this thread allow, for [`at_tested`] on another thread.
#[cfg(test)]
pub(crate) fn tested() -> u8 {
    TESTED.get()
}

/// Runs `f` with the level of the test whose thread has started it.
#[cfg(test)]
pub(crate) fn at_tested(level: u8, f: impl FnOnce()) {
    let before = TESTED.replace(level);
    f();
    TESTED.set(before);
}

/// Runs `f` with each of the instruction sets that the processor has, the best last: on this thread, and on the helper
/// threads of its calls. Other threads are not affected.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn at_every_level(mut f: impl FnMut()) {
    let best = detect();
    for level in [Level::Portable, Level::Avx2, Level::Avx512] {
        if level as u8 <= best as u8 {
            at_tested(level as u8, &mut f);
        }
    }
}

#[cfg(all(test, not(target_arch = "x86_64")))]
pub(crate) fn at_every_level(mut f: impl FnMut()) {
    f();
}
