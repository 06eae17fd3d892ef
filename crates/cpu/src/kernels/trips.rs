//! Two simple ops that are done to each element again and again, while it stays in a register. Each op rounds.

use super::Element;
use super::elementwise::simple::{FROM, MINUS, PLUS, Simple, TIMES, apply};
use super::simd::vectorized;

/// Elements that stay in registers together: enough that none waits for another.
const BLOCK: usize = 128;

vectorized! {
    /// Does both ops so many times.
    fn repeat[T: Element, const F: u8, const G: u8] of [T, F, G] (x: &mut [T], a: T, b: T, trips: usize) {
        let (blocks, rest) = x.as_chunks_mut::<BLOCK>();
        for block in blocks {
            let mut held = *block;
            for _ in 0..trips {
                for x in &mut held {
                    *x = apply::<T, G>(apply::<T, F>(*x, a), b);
                }
            }
            *block = held;
        }
        for x in rest {
            for _ in 0..trips {
                *x = apply::<T, G>(apply::<T, F>(*x, a), b);
            }
        }
    }
}

/// Does an op with one number and then one with another to each element, so many times.
pub(crate) fn trips<T: Element>(x: &mut [T], first: (Simple, T), second: (Simple, T), trips: usize) {
    fn then<T: Element, const F: u8>(x: &mut [T], a: T, (second, b): (Simple, T), trips: usize) {
        match second {
            Simple::Plus => repeat::<T, F, PLUS>(x, a, b, trips),
            Simple::Minus => repeat::<T, F, MINUS>(x, a, b, trips),
            Simple::From => repeat::<T, F, FROM>(x, a, b, trips),
            Simple::Times => repeat::<T, F, TIMES>(x, a, b, trips),
        }
    }
    let (first, a) = first;
    match first {
        Simple::Plus => then::<T, PLUS>(x, a, second, trips),
        Simple::Minus => then::<T, MINUS>(x, a, second, trips),
        Simple::From => then::<T, FROM>(x, a, second, trips),
        Simple::Times => then::<T, TIMES>(x, a, second, trips),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::simd::at_every_level;

    #[test]
    fn trips_are_those_of_one_element_after_the_other() {
        let ops = [Simple::Plus, Simple::Minus, Simple::From, Simple::Times];
        let of = |op: Simple, x: f32, other: f32| match op {
            Simple::Plus => x + other,
            Simple::Minus => x - other,
            Simple::From => other - x,
            Simple::Times => x * other,
        };
        at_every_level(|| {
            for (first, second) in ops.into_iter().flat_map(|first| ops.map(|second| (first, second))) {
                for (count, many) in [(1, 3), (128, 0), (300, 7)] {
                    let x: Vec<f32> = (0..count).map(|i| i as f32 * 0.37 - 5.0).collect();
                    let mut got = x.clone();
                    trips(&mut got, (first, 0.9), (second, -0.3), many);
                    let want =
                        x.iter().map(|&x| (0..many).fold(x, |x, _| of(second, of(first, x, 0.9), -0.3)));
                    assert!(got.into_iter().eq(want), "{first:?} and {second:?}");
                }
            }
        });
    }
}
