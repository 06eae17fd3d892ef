//! Random numbers: Threefry-2x32 with 20 rounds, and what is made of its words.
//!
//! After Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011).

use defn_core::DType;

use super::{Element, Elements, computed};
use crate::compiler::ir::{Cmp, Conv, Elem, Op, Val};

/// The rotations, in bits, of the four rounds of a group. The groups alternate between both rows.
const ROTATIONS: [[u8; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

/// The third key word is the XOR of this with the first two.
const PARITY: i64 = 0x1BD1_1BDA;

/// Up to this bound, f64 holds the sum of three products of a word and a remainder plus a word exactly.
const TINY: i64 = 1 << 19;

/// A counter of a block: a number, and the position in the row if it is counted along that.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Counter {
    pub(in super::super) first: Val,
    pub(in super::super) along: Option<Val>,
}

impl Elements {
    /// The pair of words that a key makes of a pair of counters.
    pub(in super::super) fn threefry(&mut self, key: [Val; 2], counters: [Counter; 2]) -> [Val; 2] {
        let parity = self.number(Elem::I32, PARITY);
        let third = self.b.op(Op::Xor, key);
        let words = [key[0], key[1], self.b.op(Op::Xor, [third, parity])];
        // What does not change along a row is added first: that is done once.
        let [mut x, mut y] = [0, 1].map(|at| {
            let Counter { first, along } = counters[at];
            let sum = self.b.add(first, words[at]);
            along.map_or(sum, |along| self.b.add(along, sum))
        });
        for group in 1..=5 {
            for rotation in ROTATIONS[(group - 1) % 2] {
                x = self.b.add(x, y);
                let turned = self.b.op(Op::RotBy(rotation), [y]);
                y = self.b.op(Op::Xor, [turned, x]);
            }
            x = self.b.add(x, words[group % 3]);
            let count = self.number(Elem::I32, group as i64);
            let word = self.b.add(words[(group + 1) % 3], count);
            y = self.b.add(y, word);
        }
        [x, y]
    }

    /// A word as an unsigned integer of a dtype that has no more bits.
    pub(in super::super) fn bits_of_word(&mut self, word: Val, dtype: DType) -> Element {
        self.convert(Element::new(word, DType::U32), dtype)
    }

    /// A pair of words as one integer.
    pub(in super::super) fn joined_words(&mut self, high: Val, low: Val) -> Val {
        let [high, low] = [high, low].map(|word| self.b.convert(Conv::ZeroExtend, Elem::I64, word));
        let high = self.b.op(Op::ShlBy(32), [high]);
        self.b.op(Op::Or, [high, low])
    }

    /// A number in [0, 1) of the low bits of a word, as many as a float of at most 32 bits has: the upper ones of these
    /// are the mantissa of a number in [1, 2), from which 1 is subtracted. All of that is exact, in f32 too.
    pub(in super::super) fn unit_of_word(&mut self, word: Val, dtype: DType) -> Element {
        let (bits, mantissa) = (dtype.bits() as u8, dtype.mantissa_bits() as u8);
        let high = if bits < 32 { self.b.op(Op::ShlBy(32 - bits), [word]) } else { word };
        let own = self.b.op(Op::ShrBy(32 - mantissa), [high]);
        let placed = if mantissa < 23 { self.b.op(Op::ShlBy(23 - mantissa), [own]) } else { own };
        let one = self.b.bits(Elem::I32, 1f32.to_bits().into());
        let bits = self.b.op(Op::Or, [placed, one]);
        let number = self.b.convert(Conv::Bitcast, Elem::F32, bits);
        let one = self.b.f32(1.0);
        Element::new(self.b.sub(number, one), dtype)
    }

    /// A f64 in [0, 1) of a pair of words, in the same way.
    pub(in super::super) fn unit_of_pair(&mut self, high: Val, low: Val) -> Element {
        let word = self.joined_words(high, low);
        let own = self.b.op(Op::ShrBy(12), [word]);
        let one = self.b.bits(Elem::I64, 1f64.to_bits());
        let bits = self.b.op(Op::Or, [own, one]);
        let number = self.b.convert(Conv::Bitcast, Elem::F64, bits);
        let one = self.b.f64(1.0);
        Element::new(self.b.sub(number, one), DType::F64)
    }

    /// A number below a bound, of the words that it is made of.
    pub(in super::super) fn below(&mut self, words: &[Val], bound: Val, dtype: DType) -> Element {
        match *words {
            [high, low] => self.below_of_words([high, low], bound, dtype),
            [a, b, c, d] => self.below_of_pairs([[a, b], [c, d]], bound, dtype),
            _ => unreachable!("words are pairs"),
        }
    }

    /// A number below a bound, of two words that have as many bits as a dtype, the upper one first: what they are
    /// together modulo the bound. Modulo 0 it is itself.
    fn below_of_words(&mut self, words: [Val; 2], bound: Val, dtype: DType) -> Element {
        let modulus = Modulus::new(self, bound);
        let bits = dtype.bits() as u8;
        let [left, right] = words;
        let short = (bits < 32).then(|| {
            let mask = self.b.bits(Elem::I32, (1 << bits) - 1);
            let [left, right] = words.map(|word| self.b.op(Op::And, [word, mask]));
            let high = self.b.op(Op::ShlBy(bits), [left]);
            self.b.op(Op::Or, [high, right])
        });
        self.by_size(
            &modulus,
            dtype,
            |e| {
                let number = match short {
                    Some(short) => e.b.convert(Conv::FloatOfU, Elem::F64, short),
                    None => {
                        let [left, right] =
                            [left, right].map(|word| e.b.convert(Conv::FloatOfU, Elem::F64, word));
                        e.b.fma(left, modulus.half_float, right)
                    }
                };
                modulus.rest(e, number)
            },
            |e| {
                let number = match short {
                    Some(short) => e.b.convert(Conv::ZeroExtend, Elem::I64, short),
                    None => e.joined_words(left, right),
                };
                e.b.op(Op::RemU, [number, bound])
            },
        )
    }

    /// The same for words of 64 bits, which are pairs of words, combined modulo 2^64.
    fn below_of_pairs(&mut self, [high, low]: [[Val; 2]; 2], bound: Val, dtype: DType) -> Element {
        let modulus = Modulus::new(self, bound);
        self.by_size(
            &modulus,
            dtype,
            |e| {
                let [a, b, c, d] = [high[0], high[1], low[0], low[1]]
                    .map(|word| e.b.convert(Conv::FloatOfU, Elem::F64, word));
                let sum = e.b.fma(c, modulus.half_float, d);
                let sum = e.b.fma(b, modulus.whole_float, sum);
                let sum = e.b.fma(a, modulus.third_float, sum);
                modulus.rest(e, sum)
            },
            |e| {
                let [high, low] = [high, low].map(|[high, low]| {
                    let word = e.joined_words(high, low);
                    e.b.op(Op::RemU, [word, bound])
                });
                let product = e.b.mul(high, modulus.whole);
                let sum = e.b.add(product, low);
                e.b.op(Op::RemU, [sum, bound])
            },
        )
    }

    /// What is computed in f64 if a bound is tiny, and in integers else, as elements of a dtype. Which, is the same for
    /// all elements.
    fn by_size(
        &mut self,
        modulus: &Modulus,
        dtype: DType,
        of_tiny: impl Fn(&mut Elements) -> Val,
        of_any: impl Fn(&mut Elements) -> Val,
    ) -> Element {
        let tiny = |e: &mut Elements| {
            let rest = of_tiny(e);
            let rest = e.b.convert(Conv::ToS, Elem::I32, rest);
            e.convert(Element::new(rest, DType::U32), dtype).value
        };
        let any = |e: &mut Elements| {
            let rest = of_any(e);
            e.convert(Element::new(rest, DType::U64), dtype).value
        };
        let value = match modulus.known {
            Some(true) => tiny(self),
            Some(false) => any(self),
            None => {
                self.b.begin_if(modulus.is_tiny);
                let tiny = tiny(self);
                self.b.begin_else();
                let any = any(self);
                self.b.end_if(&[(tiny, any)])[0]
            }
        };
        debug_assert_eq!(self.b.ty(value).elem, computed(dtype));
        Element::new(value, dtype)
    }
}

/// A bound that is the same for all elements, and what remainders by it take.
struct Modulus {
    /// Whether it is known to be tiny, or not to be.
    known: Option<bool>,
    is_tiny: Val,
    number: Val,
    /// One divided by it.
    inverse: Val,
    /// 2^64 modulo it, by the square of 2^32 modulo it, which is modulo 2^64.
    whole: Val,
    /// 2^32, 2^64 and 2^96 modulo it, if it is tiny.
    half_float: Val,
    whole_float: Val,
    third_float: Val,
}

impl Modulus {
    fn new(e: &mut Elements, bound: Val) -> Modulus {
        let [one, tiny, word] = [1, TINY, 1 << 32].map(|number| e.number(Elem::I64, number));
        let before = e.b.sub(bound, one);
        let is_tiny = e.b.compare(Cmp::LtU, before, tiny);
        let known = e.b.constant_bits(bound).map(|bound| (1..=TINY as u64).contains(&bound));
        let modulo = |e: &mut Elements, number: Val| e.b.op(Op::RemU, [number, bound]);
        let half = modulo(e, word);
        let square = e.b.mul(half, half);
        let whole = modulo(e, square);
        let cube = e.b.mul(half, whole);
        let third = modulo(e, cube);
        let [number, half_float, whole_float, third_float] =
            [bound, half, whole, third].map(|number| e.b.convert(Conv::FloatOfU, Elem::F64, number));
        let one = e.b.f64(1.0);
        let inverse = e.b.div(one, number);
        Modulus { known, is_tiny, number, inverse, whole, half_float, whole_float, third_float }
    }

    /// An integral f64 below 2^53 minus the number, modulo the number: both are exact, and the quotient may be off by one.
    fn rest(&self, e: &mut Elements, x: Val) -> Val {
        let quotient = e.b.mul(x, self.inverse);
        let quotient = e.b.op(Op::Trunc, [quotient]);
        let rest = e.b.fnma(quotient, self.number, x);
        let zero = e.b.f64(0.0);
        let more = e.b.add(rest, self.number);
        let is_negative = e.b.compare(Cmp::Lt, rest, zero);
        let rest = e.b.select(is_negative, more, rest);
        let less = e.b.sub(rest, self.number);
        let is_large = e.b.compare(Cmp::Le, self.number, rest);
        e.b.select(is_large, less, rest)
    }
}
