//! Cheap ops on f32 one after the other, each on what the one before gives, which stays in the processor's registers
//! from the first to the last: a loop over a cheap op alone takes as long as what it loads and stores. The ops are not
//! known when this is compiled, so that a few vectors at a time go through all of them, by one jump for each op. Each op
//! rounds, as it does by itself.

use std::mem::MaybeUninit;

use defn_core::op::BinaryOp;

#[cfg(target_arch = "x86_64")]
use super::simd::{Level, level};

/// An op of `x` and another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cheap {
    /// `x + other`
    Plus,
    /// `x - other`
    Minus,
    /// `other - x`
    From,
    /// `x * other`
    Times,
    /// `x / other`
    Over,
    /// `other / x`
    Under,
}

impl Cheap {
    /// An op of which `x` is the first operand, or the second.
    pub(crate) fn of(op: BinaryOp, is_second: bool) -> Option<Cheap> {
        if op == BinaryOp::Add {
            Some(Cheap::Plus)
        } else if op == BinaryOp::Multiply {
            Some(Cheap::Times)
        } else if op == BinaryOp::Subtract {
            Some(if is_second { Cheap::From } else { Cheap::Minus })
        } else if op == BinaryOp::Divide {
            Some(if is_second { Cheap::Under } else { Cheap::Over })
        } else {
            None
        }
    }
}

/// The other numbers of an op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Other<'x> {
    /// One for each element.
    Each(&'x [f32]),
    /// One for all of them.
    All(f32),
    /// `x` itself.
    Same,
}

/// An op of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'x> {
    pub(crate) op: Cheap,
    pub(crate) other: Other<'x>,
}

/// Writes what all ops one after the other make of every element.
///
/// # Panics
/// When there are not as many of anything.
pub(crate) fn chain(x: &[f32], links: &[Link<'_>], out: &mut [MaybeUninit<f32>]) {
    assert_eq!(x.len(), out.len(), "a chain");
    for link in links {
        match link.other {
            Other::Each(y) => assert_eq!(y.len(), out.len(), "a link"),
            Other::All(_) | Other::Same => {}
        }
    }
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the level says that the processor has these instructions, and the lengths are equal.
        Level::Avx512 => return unsafe { x86::avx512(x, links, out) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::avx2(x, links, out) },
        Level::Portable => {}
    }
    portable(x, links, out);
}

/// Elements that go through all ops together.
const BLOCK: usize = 64;

/// By what the compiler makes of loops over a few elements.
fn portable(x: &[f32], links: &[Link<'_>], out: &mut [MaybeUninit<f32>]) {
    fn of(held: &mut [f32], op: Cheap, other: impl Fn(usize, f32) -> f32) {
        let held = held.iter_mut().enumerate();
        match op {
            Cheap::Plus => held.for_each(|(at, x)| *x += other(at, *x)),
            Cheap::Minus => held.for_each(|(at, x)| *x -= other(at, *x)),
            Cheap::From => held.for_each(|(at, x)| *x = other(at, *x) - *x),
            Cheap::Times => held.for_each(|(at, x)| *x *= other(at, *x)),
            Cheap::Over => held.for_each(|(at, x)| *x /= other(at, *x)),
            Cheap::Under => held.for_each(|(at, x)| *x = other(at, *x) / *x),
        }
    }
    let mut held = [0.0; BLOCK];
    for start in (0..x.len()).step_by(BLOCK) {
        let held = &mut held[..BLOCK.min(x.len() - start)];
        held.copy_from_slice(&x[start..][..held.len()]);
        for link in links {
            match link.other {
                Other::Each(y) => {
                    let y = &y[start..][..held.len()];
                    of(held, link.op, |at, _| y[at]);
                }
                Other::All(y) => of(held, link.op, |_, _| y),
                Other::Same => of(held, link.op, |_, x| x),
            }
        }
        out[start..][..held.len()].write_copy_of_slice(held);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    use super::{Cheap, Link, Other};

    /// The first elements of a vector, and zeros.
    ///
    /// # Safety
    /// The processor has the instructions, and there are so many elements, less than 16.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_16(from: *const f32, count: usize) -> __m512 {
        // SAFETY: the caller's promise; nothing else is read.
        unsafe { _mm512_maskz_loadu_ps((1 << count) - 1, from) }
    }

    /// # Safety
    /// As for [`load_16`], of room for as many.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store_16(to: *mut f32, count: usize, x: __m512) {
        // SAFETY: the caller's promise; nothing else is written.
        unsafe { _mm512_mask_storeu_ps(to, (1 << count) - 1, x) }
    }

    /// All bits set for so many of 8 elements.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_of_8(count: usize) -> __m256i {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places)
    }

    /// As [`load_16`], of less than 8.
    ///
    /// # Safety
    /// As there.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load_8(from: *const f32, count: usize) -> __m256 {
        // SAFETY: the caller's promise; nothing else is read.
        unsafe { _mm256_maskload_ps(from, first_of_8(count)) }
    }

    /// # Safety
    /// As for [`load_8`], of room for as many.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_8(to: *mut f32, count: usize, x: __m256) {
        // SAFETY: the caller's promise; nothing else is written.
        unsafe { _mm256_maskstore_ps(to, first_of_8(count), x) }
    }

    /// Defines a chain in vectors of so many elements.
    macro_rules! chain {
        (
            $name:ident, $features:literal, $lanes:literal, $many:literal,
            $load:ident, $store:ident, $load_part:ident, $store_part:ident, $all:ident, $add:ident, $sub:ident, $mul:ident, $div:ident
        ) => {
            /// # Safety
            /// The processor has the instructions, and all slices have as many elements.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(x: &[f32], links: &[Link<'_>], out: &mut [MaybeUninit<f32>]) {
                /// Takes `COUNT` vectors from element `at` on through all ops; of a vector that is a `PART` so many elements.
                ///
                /// # Safety
                /// As there, and there are so many elements.
                #[inline]
                #[target_feature(enable = $features)]
                unsafe fn block<const COUNT: usize, const PART: bool>(
                    x: *const f32,
                    links: &[Link<'_>],
                    out: *mut f32,
                    at: usize,
                    part: usize,
                ) {
                    let place = |vector: usize| at + vector * $lanes;
                    // SAFETY: the caller's promise.
                    let read = |start: *const f32, vector: usize| unsafe {
                        let from = start.add(place(vector));
                        if PART { $load_part(from, part) } else { $load(from) }
                    };
                    let mut held = [$all(0.0); COUNT];
                    for (i, held) in held.iter_mut().enumerate() {
                        *held = read(x, i);
                    }
                    for link in links {
                        // The same for each kind of other number, which is an expression of a vector's number.
                        macro_rules! of {
                            ($i:ident, $other:expr) => {
                                match link.op {
                                    Cheap::Plus => {
                                        for $i in 0..COUNT {
                                            held[$i] = $add(held[$i], $other);
                                        }
                                    }
                                    Cheap::Minus => {
                                        for $i in 0..COUNT {
                                            held[$i] = $sub(held[$i], $other);
                                        }
                                    }
                                    Cheap::From => {
                                        for $i in 0..COUNT {
                                            held[$i] = $sub($other, held[$i]);
                                        }
                                    }
                                    Cheap::Times => {
                                        for $i in 0..COUNT {
                                            held[$i] = $mul(held[$i], $other);
                                        }
                                    }
                                    Cheap::Over => {
                                        for $i in 0..COUNT {
                                            held[$i] = $div(held[$i], $other);
                                        }
                                    }
                                    Cheap::Under => {
                                        for $i in 0..COUNT {
                                            held[$i] = $div($other, held[$i]);
                                        }
                                    }
                                }
                            };
                        }
                        match link.other {
                            Other::Each(y) => {
                                let y = y.as_ptr();
                                of!(i, read(y, i));
                            }
                            Other::All(y) => {
                                let y = $all(y);
                                of!(i, y);
                            }
                            Other::Same => of!(i, held[i]),
                        }
                    }
                    for (i, held) in held.into_iter().enumerate() {
                        // SAFETY: there is room for the elements.
                        unsafe {
                            let to = out.add(place(i));
                            if PART { $store_part(to, part, held) } else { $store(to, held) }
                        }
                    }
                }

                let (from, to, len) = (x.as_ptr(), out.as_mut_ptr().cast::<f32>(), x.len());
                let mut at = 0;
                while len - at >= $many * $lanes {
                    // SAFETY: so many elements are left, and the caller promises the rest.
                    unsafe { block::<$many, false>(from, links, to, at, $lanes) };
                    at += $many * $lanes;
                }
                if len - at >= $many / 2 * $lanes {
                    // SAFETY: as above.
                    unsafe { block::<{ $many / 2 }, false>(from, links, to, at, $lanes) };
                    at += $many / 2 * $lanes;
                }
                while len - at >= $lanes {
                    // SAFETY: as above.
                    unsafe { block::<1, false>(from, links, to, at, $lanes) };
                    at += $lanes;
                }
                if at < len {
                    // SAFETY: as above.
                    unsafe { block::<1, true>(from, links, to, at, len - at) };
                }
            }
        };
    }

    chain!(
        avx512,
        "avx512f",
        16,
        8,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        load_16,
        store_16,
        _mm512_set1_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_div_ps
    );
    chain!(
        avx2,
        "avx2",
        8,
        8,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        load_8,
        store_8,
        _mm256_set1_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::simd::at_every_level;

    #[test]
    fn a_chain_gives_what_its_ops_give_one_after_the_other() {
        let ops = [Cheap::Plus, Cheap::Minus, Cheap::From, Cheap::Times, Cheap::Over, Cheap::Under];
        let of = |op: Cheap, x: f32, other: f32| match op {
            Cheap::Plus => x + other,
            Cheap::Minus => x - other,
            Cheap::From => other - x,
            Cheap::Times => x * other,
            Cheap::Over => x / other,
            Cheap::Under => other / x,
        };
        at_every_level(|| {
            for count in [0, 1, 15, 16, 64, 127, 128, 300] {
                let x: Vec<f32> = (0..count).map(|i| i as f32 * 0.37 - 5.1).collect();
                let y: Vec<f32> = (0..count).map(|i| 2.3 - i as f32 * 0.01).collect();
                let mut links = Vec::new();
                for op in ops {
                    links.push(Link { op, other: Other::Each(&y) });
                    links.push(Link { op, other: Other::All(0.7) });
                    links.push(Link { op, other: Other::Same });
                }
                for links in links.windows(3).chain(links.chunks(1)).chain([&links[..0]]) {
                    let mut out = vec![MaybeUninit::uninit(); count];
                    chain(&x, links, &mut out);
                    for (at, out) in out.into_iter().enumerate() {
                        let want = links.iter().fold(x[at], |x, link| match link.other {
                            Other::Each(y) => of(link.op, x, y[at]),
                            Other::All(y) => of(link.op, x, y),
                            Other::Same => of(link.op, x, x),
                        });
                        // SAFETY: all was written.
                        let got = unsafe { out.assume_init() };
                        assert!(
                            got == want || got.is_nan() && want.is_nan(),
                            "{links:?} at {at}: {got} {want}"
                        );
                    }
                }
            }
        });
    }
}
