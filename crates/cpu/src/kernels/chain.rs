//! Cheap ops on f32 one after the other, each on what the one before gives, which stays in the processor's registers
//! from the first to the last: a loop over a cheap op alone takes as long as what it loads and stores. What other ops
//! make for one of them stays there too. The ops are not known when this is compiled, so that a few vectors at a time go
//! through all of them, by one jump for each op. Each op rounds, as it does by itself.

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
        if op == BinaryOp::ADD {
            Some(Cheap::Plus)
        } else if op == BinaryOp::MULTIPLY {
            Some(Cheap::Times)
        } else if op == BinaryOp::SUBTRACT {
            Some(if is_second { Cheap::From } else { Cheap::Minus })
        } else if op == BinaryOp::DIVIDE {
            Some(if is_second { Cheap::Under } else { Cheap::Over })
        } else {
            None
        }
    }
}

/// The other numbers of an op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Other {
    /// One for each element, from an address on.
    Each(*const f32),
    /// One for all of them.
    All(f32),
    /// `x` itself.
    Same,
}

/// A step of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    /// An op of what was made so far, which is `x`.
    Op { op: Cheap, other: Other },
    /// Puts that aside, and begins anew with the numbers from an address on.
    Aside(*const f32),
    /// An op of what was put aside, which is `x`, and what was made since.
    Join(Cheap),
}

/// Writes what all steps one after the other make of every element. What is put aside is joined before the next is.
///
/// # Safety
/// At `x` and at the other addresses there are `len` elements, and at `out` room for them, which nobody else uses. What
/// is read lies apart from `out`, or at the same address.
pub(crate) unsafe fn chain(x: *const f32, links: &[Link], out: *mut f32, len: usize) {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the level says that the processor has these instructions; the rest is the caller's promise.
        Level::Avx512 => return unsafe { x86::avx512(x, links, out, len) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86::avx2(x, links, out, len) },
        Level::Portable => {}
    }
    // SAFETY: the caller's promise.
    unsafe { portable(x, links, out, len) };
}

/// Elements that go through all ops together.
const BLOCK: usize = 64;

/// By what the compiler makes of loops over a few elements.
///
/// # Safety
/// As for [`chain`].
unsafe fn portable(x: *const f32, links: &[Link], out: *mut f32, len: usize) {
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
    let mut aside = [0.0; BLOCK];
    for start in (0..len).step_by(BLOCK) {
        let count = BLOCK.min(len - start);
        let read = |from: *const f32| {
            let mut numbers = [0.0; BLOCK];
            // SAFETY: so many elements are left there, as the caller promises.
            unsafe { from.add(start).copy_to_nonoverlapping(numbers.as_mut_ptr(), count) };
            numbers
        };
        let mut held = read(x);
        for link in links {
            match *link {
                Link::Op { op, other: Other::Each(y) } => {
                    let y = read(y);
                    of(&mut held, op, |at, _| y[at]);
                }
                Link::Op { op, other: Other::All(y) } => of(&mut held, op, |_, _| y),
                Link::Op { op, other: Other::Same } => of(&mut held, op, |_, x| x),
                Link::Aside(y) => aside = std::mem::replace(&mut held, read(y)),
                Link::Join(op) => {
                    let made = std::mem::replace(&mut held, aside);
                    of(&mut held, op, |at, _| made[at]);
                }
            }
        }
        // SAFETY: there is room for so many elements, as the caller promises.
        unsafe { out.add(start).copy_from_nonoverlapping(held.as_ptr(), count) };
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

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
            $name:ident, $features:literal, $lanes:literal, $many:literal, $both:literal,
            $load:ident, $store:ident, $load_part:ident, $store_part:ident, $all:ident, $add:ident, $sub:ident, $mul:ident, $div:ident
        ) => {
            /// # Safety
            /// As for [`super::chain`], and the processor has the instructions.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(x: *const f32, links: &[Link], out: *mut f32, len: usize) {
                /// Takes `COUNT` vectors from element `at` on through all ops; of a vector that is a `PART` so many elements.
                ///
                /// # Safety
                /// As there, and there are so many elements.
                #[inline]
                #[target_feature(enable = $features)]
                unsafe fn block<const COUNT: usize, const PART: bool>(
                    x: *const f32,
                    links: &[Link],
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
                    let mut aside = held;
                    for (i, held) in held.iter_mut().enumerate() {
                        *held = read(x, i);
                    }
                    for link in links {
                        // The same for each kind of numbers, which are expressions of a vector's number.
                        macro_rules! of {
                            ($op:ident, $i:ident, $x:expr, $other:expr) => {
                                match $op {
                                    Cheap::Plus => {
                                        for $i in 0..COUNT {
                                            held[$i] = $add($x, $other);
                                        }
                                    }
                                    Cheap::Minus => {
                                        for $i in 0..COUNT {
                                            held[$i] = $sub($x, $other);
                                        }
                                    }
                                    Cheap::From => {
                                        for $i in 0..COUNT {
                                            held[$i] = $sub($other, $x);
                                        }
                                    }
                                    Cheap::Times => {
                                        for $i in 0..COUNT {
                                            held[$i] = $mul($x, $other);
                                        }
                                    }
                                    Cheap::Over => {
                                        for $i in 0..COUNT {
                                            held[$i] = $div($x, $other);
                                        }
                                    }
                                    Cheap::Under => {
                                        for $i in 0..COUNT {
                                            held[$i] = $div($other, $x);
                                        }
                                    }
                                }
                            };
                        }
                        match *link {
                            Link::Op { op, other: Other::Each(y) } => of!(op, i, held[i], read(y, i)),
                            Link::Op { op, other: Other::All(y) } => {
                                let y = $all(y);
                                of!(op, i, held[i], y);
                            }
                            Link::Op { op, other: Other::Same } => of!(op, i, held[i], held[i]),
                            Link::Aside(y) => {
                                for i in 0..COUNT {
                                    aside[i] = held[i];
                                    held[i] = read(y, i);
                                }
                            }
                            Link::Join(op) => of!(op, i, aside[i], held[i]),
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

                let has_aside = links.iter().any(|link| match link {
                    Link::Aside(_) => true,
                    Link::Op { .. } | Link::Join(_) => false,
                });
                // There are registers for so many vectors, of which there are two kinds then.
                let most = if has_aside { $both } else { $many };
                let mut at = 0;
                while most == $many && len - at >= $many * $lanes {
                    // SAFETY: so many elements are left, and the caller promises the rest.
                    unsafe { block::<$many, false>(x, links, out, at, $lanes) };
                    at += $many * $lanes;
                }
                while len - at >= $many / 2 * $lanes {
                    // SAFETY: as above.
                    unsafe { block::<{ $many / 2 }, false>(x, links, out, at, $lanes) };
                    at += $many / 2 * $lanes;
                }
                while len - at >= $lanes {
                    // SAFETY: as above.
                    unsafe { block::<1, false>(x, links, out, at, $lanes) };
                    at += $lanes;
                }
                if at < len {
                    // SAFETY: as above.
                    unsafe { block::<1, true>(x, links, out, at, len - at) };
                }
            }
        };
    }

    chain!(
        avx512,
        "avx512f",
        16,
        8,
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
        4,
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
        /// What a chain makes of one element.
        fn want(x: &[f32], links: &[Link], at: usize, of: impl Fn(Cheap, f32, f32) -> f32) -> f32 {
            let (mut held, mut aside) = (x[at], f32::NAN);
            for link in links {
                // SAFETY: the tests have as many elements wherever they read.
                let read = |from: *const f32| unsafe { *from.add(at) };
                match *link {
                    Link::Op { op, other: Other::Each(y) } => held = of(op, held, read(y)),
                    Link::Op { op, other: Other::All(y) } => held = of(op, held, y),
                    Link::Op { op, other: Other::Same } => held = of(op, held, held),
                    Link::Aside(y) => (aside, held) = (held, read(y)),
                    Link::Join(op) => held = of(op, aside, held),
                }
            }
            held
        }
        let is_same = |got: f32, want: f32| got == want || got.is_nan() && want.is_nan();
        at_every_level(|| {
            for count in [0, 1, 15, 16, 64, 127, 128, 300] {
                let mut x: Vec<f32> = (0..count).map(|i| i as f32 * 0.37 - 5.1).collect();
                let y: Vec<f32> = (0..count).map(|i| 2.3 - i as f32 * 0.01).collect();
                let mut links = Vec::new();
                for op in ops {
                    links.push(Link::Op { op, other: Other::Each(y.as_ptr()) });
                    links.push(Link::Op { op, other: Other::All(0.7) });
                    links.push(Link::Op { op, other: Other::Same });
                }
                let mut lists: Vec<Vec<Link>> = links.windows(3).map(<[Link]>::to_vec).collect();
                lists.extend(links.iter().map(|link| vec![*link]));
                lists.push(Vec::new());
                for (op, pair) in ops.iter().zip(links.windows(2)) {
                    let aside = [Link::Aside(y.as_ptr()), pair[0], pair[1], Link::Join(*op)];
                    lists.push([&[pair[1]], &aside[..], &[pair[0]], &aside[..]].concat());
                }
                for links in lists {
                    let mut out = vec![0.0; count];
                    // SAFETY: all have as many elements.
                    unsafe { chain(x.as_ptr(), &links, out.as_mut_ptr(), count) };
                    for (at, &got) in out.iter().enumerate() {
                        let want = want(&x, &links, at, of);
                        assert!(is_same(got, want), "{links:?} at {at}: {got} {want}");
                    }
                }
                // What is written lies where all of it is read.
                let start = x.as_mut_ptr();
                let other = Other::Each(start.cast_const());
                let links = [
                    Link::Op { op: Cheap::Times, other: Other::All(0.5) },
                    Link::Aside(start.cast_const()),
                    Link::Op { op: Cheap::Plus, other: Other::All(1.5) },
                    Link::Join(Cheap::Under),
                    Link::Op { op: Cheap::Minus, other },
                ];
                let before = x.clone();
                // SAFETY: as above, at the same address.
                unsafe { chain(start, &links, start, count) };
                for (at, &got) in x.iter().enumerate() {
                    let x = before[at];
                    assert!(is_same(got, (x + 1.5) / (x * 0.5) - x), "in place at {at}: {got}");
                }
            }
        });
    }
}
