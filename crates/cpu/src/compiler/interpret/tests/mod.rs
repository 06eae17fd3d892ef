//! Tests of the portable executor: each op beside plain Rust, and random functions beside a reference interpreter.

mod control;
mod conversions;
mod ops;
mod random;
mod reference;
mod rows;

use super::super::ir::{Access, Builder, Cmp, Conv, Elem, Function, Op, Val};
use super::lanes::BLOCK;
use super::level::at_every_level;
use super::{Interpreter, compute};

/// A type of elements in the tests: signed and unsigned integers are the same to the IR.
trait Value: Copy + std::fmt::Debug + 'static {
    const ELEM: Elem;
    /// The bits, in the low bytes.
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    /// Numbers at which an op may go wrong.
    fn special() -> Vec<Self>;

    /// Whether these are the same value: the bits of NaN are not specified.
    fn is_same(self, other: Self) -> bool {
        self.bits() == other.bits()
    }
}

macro_rules! integer_values {
    ($($type:ident $unsigned:ident $elem:ident),*) => {$(
        impl Value for $type {
            const ELEM: Elem = Elem::$elem;

            fn bits(self) -> u64 {
                self as $unsigned as u64
            }

            fn of_bits(bits: u64) -> Self {
                bits as Self
            }

            fn special() -> Vec<Self> {
                let least: $unsigned = 1 << ($type::BITS - 1);
                let most = least - 1;
                let near = [0, 1, 2, 3, 7, 8, 15, 31, 63, 64, 100, most, most - 1, least, least + 1];
                near.into_iter().chain([0, 1, 4, 8, 56].map(|x: $unsigned| !x)).map(|x| x as Self).collect()
            }
        }
    )*};
}

integer_values!(i8 u8 I8, u8 u8 I8, i16 u16 I16, u16 u16 I16);
integer_values!(i32 u32 I32, u32 u32 I32, i64 u64 I64, u64 u64 I64);

macro_rules! float_values {
    ($($type:ident $elem:ident $($more:literal),*;)*) => {$(
        impl Value for $type {
            const ELEM: Elem = Elem::$elem;

            fn bits(self) -> u64 {
                self.to_bits().into()
            }

            fn of_bits(bits: u64) -> Self {
                $type::from_bits(bits as _)
            }

            fn special() -> Vec<Self> {
                let tiny = $type::from_bits(1);
                let near = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 1e-3, 126.9, 300.0, 65_520.0];
                let near = near.into_iter().chain([2_147_483_648.0, 1e19]);
                let far = [$type::INFINITY, $type::MAX, $type::MIN_POSITIVE, tiny, 3.0 * tiny, $($more),*];
                let both = near.chain(far).flat_map(|x| [x, -x]);
                both.chain([$type::NAN]).collect()
            }

            fn is_same(self, other: Self) -> bool {
                self.bits() == other.bits() || self.is_nan() && other.is_nan()
            }
        }
    )*};
}

float_values! {
    f32 F32 8_388_609.5, 16_777_216.0, 1e-40;
    f64 F64 4_503_599_627_370_497.5, 9_007_199_254_740_993.0, 1e-310;
}

/// A predicate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flag(bool);

impl Value for Flag {
    const ELEM: Elem = Elem::Bit;

    fn bits(self) -> u64 {
        self.0.into()
    }

    fn of_bits(bits: u64) -> Self {
        Flag(bits & 1 != 0)
    }

    fn special() -> Vec<Self> {
        vec![Flag(false), Flag(true)]
    }
}

/// Bits that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}

/// Special values, and as many random ones.
fn values<T: Value>() -> Vec<T> {
    let mut random = Random(7);
    let special = T::special();
    let more: Vec<T> = special.iter().map(|_| T::of_bits(random.next())).collect();
    special.into_iter().chain(more).collect()
}

/// The bytes of an element in a buffer: a predicate is one.
fn stored(elem: Elem) -> Elem {
    if elem == Elem::Bit { Elem::I8 } else { elem }
}

/// Where elements begin in a buffer: not aligned, and aligned to elements.
const BEGINS: [usize; 2] = [1, 16];

/// Values as bytes, from an odd address on.
fn to_bytes<T: Value>(values: &[T]) -> Vec<u8> {
    to_bytes_at(1, values)
}

fn to_bytes_at<T: Value>(begin: usize, values: &[T]) -> Vec<u8> {
    let bytes = stored(T::ELEM).bytes();
    let all = values.iter().flat_map(|value| value.bits().to_le_bytes().into_iter().take(bytes));
    std::iter::repeat_n(0, begin).chain(all).collect()
}

fn from_bytes<T: Value>(bytes: &[u8]) -> Vec<T> {
    from_bytes_at(1, bytes)
}

fn from_bytes_at<T: Value>(begin: usize, bytes: &[u8]) -> Vec<T> {
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        T::of_bits(u64::from_le_bytes(word))
    };
    bytes[begin..].chunks_exact(stored(T::ELEM).bytes()).map(element).collect()
}

/// Elements of a buffer without gaps, from its second byte on.
fn row(buffer: u16, elem: Elem) -> Access {
    strided(buffer, 1, stored(elem).bytes() as i64)
}

fn strided(buffer: u16, offset: i64, lane: i64) -> Access {
    Access { buffer, offset, terms: Default::default(), lane, is_streaming: false }
}

/// Loads a value, also a predicate.
fn load(b: &mut Builder, elem: Elem, access: Access) -> Val {
    let value = b.load(stored(elem), access);
    if elem != Elem::Bit {
        return value;
    }
    let zero = b.bits(Elem::I8, 0);
    b.compare(Cmp::Ne, value, zero)
}

/// Stores a value, also a predicate.
fn store(b: &mut Builder, value: Val, access: Access) {
    let is_bit = b.ty(value).elem == Elem::Bit;
    let value = if is_bit { b.convert(Conv::OfBit, Elem::I8, value) } else { value };
    b.store(value, access);
}

/// Runs a function on buffers and parameters.
fn run(function: &Function, buffers: &mut [Vec<u8>], params: &[u64]) {
    assert_eq!((function.buffers as usize, function.params as usize), (buffers.len(), params.len()));
    let pointers = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr() as u64);
    let args: Vec<u64> = pointers.chain(params.iter().copied()).collect();
    // SAFETY: the arguments are the function's, and the tests make buffers large enough.
    let status = unsafe { Interpreter::new(function).run(args.as_ptr()) };
    assert_eq!(status, 0);
}

/// Checks an op of `N` operands, of which `make` makes the instruction, on lists of operands: all as vectors,
/// all as scalars, and with each of them a scalar beside vectors; and [`compute`], if the op has such a form.
fn check<T: Value, Y: Value, const N: usize>(
    elems: [Elem; N],
    operands: &[[u64; N]],
    make: impl Fn(&mut Builder, [Val; N]) -> Val,
    op: Option<Op>,
    expected: impl Fn([u64; N]) -> Y,
) {
    let same = |got: Y, operands: [u64; N], how: &str| {
        let expected = expected(operands);
        assert!(got.is_same(expected), "{how} {op:?} of {operands:x?}: {got:?}, not {expected:?}");
    };
    let last = operands.last().expect("there are operands");
    // Each set of operands that are scalars.
    for scalars in 0..1_u32 << N {
        let is_scalar = |at: usize| scalars >> at & 1 != 0;
        let mut b = Builder::new(N as u16 + 1, N as u16 + 1, 0);
        let extent = b.param(N as u16, Elem::Index);
        let is_one = scalars == (1 << N) - 1;
        if !is_one {
            b.begin_lanes(extent);
        }
        let args = std::array::from_fn(|at| {
            let elem = elems[at];
            if is_scalar(at) { b.param(at as u16, elem) } else { load(&mut b, elem, row(at as u16, elem)) }
        });
        let result = make(&mut b, args);
        let lane = if is_one { 0 } else { stored(Y::ELEM).bytes() as i64 };
        store(&mut b, result, strided(N as u16, 1, lane));
        if !is_one {
            b.end_lanes();
        }
        let function = b.finish();
        // Vectors have all lists; scalars are those of one list at a time.
        let lists: Vec<&[u64; N]> = match scalars {
            0 => vec![last],
            _ if is_one => operands.iter().collect(),
            _ => operands.iter().step_by(operands.len() / 5 + 1).collect(),
        };
        for list in lists {
            let rows: Vec<[u64; N]> = match is_one {
                true => vec![*list],
                false => operands
                    .iter()
                    .map(|row| std::array::from_fn(|at| if is_scalar(at) { list[at] } else { row[at] }))
                    .collect(),
            };
            let mut buffers: Vec<Vec<u8>> = (0..N)
                .map(|at| {
                    let bytes = stored(elems[at]).bytes();
                    let all = rows.iter().flat_map(|row| row[at].to_le_bytes().into_iter().take(bytes));
                    std::iter::once(0).chain(all).collect()
                })
                .collect();
            buffers.push(vec![0; 1 + rows.len() * stored(Y::ELEM).bytes()]);
            let params: Vec<u64> = list.iter().copied().chain([rows.len() as u64]).collect();
            run(&function, &mut buffers, &params);
            for (&row, got) in rows.iter().zip(from_bytes::<Y>(&buffers[N])) {
                same(got, row, if is_one { "scalar" } else { "vector" });
            }
        }
    }
    if let Some(op) = op {
        for &row in operands {
            let args = std::array::from_fn(|at| row.get(at).copied().unwrap_or(0));
            let got = compute(op, elems[N - 1], Y::ELEM, args).expect("an op of values");
            same(Y::of_bits(got), row, "computed");
        }
    }
}

/// Checks an op of one operand at every level.
fn unary<A: Value, Y: Value>(op: Op, expected: impl Fn(A) -> Y) {
    let operands: Vec<[u64; 1]> = values::<A>().into_iter().map(|a| [a.bits()]).collect();
    at_every_level(|| {
        let make = |b: &mut Builder, [a]: [Val; 1]| {
            if let Op::Convert(conv) = op { b.convert(conv, Y::ELEM, a) } else { b.op(op, [a]) }
        };
        check::<A, Y, 1>([A::ELEM], &operands, make, Some(op), |[a]| expected(A::of_bits(a)));
    });
}

/// Checks an op of two operands at every level, on all pairs.
fn binary<T: Value, Y: Value>(op: Op, expected: impl Fn(T, T) -> Y) {
    let all = values::<T>();
    let operands: Vec<[u64; 2]> = all.iter().flat_map(|a| all.iter().map(|b| [a.bits(), b.bits()])).collect();
    at_every_level(|| {
        let make = |b: &mut Builder, [x, y]: [Val; 2]| {
            if let Op::Compare(cmp) = op {
                b.compare(cmp, x, y)
            } else if op == Op::Test {
                b.test(x, y)
            } else {
                b.op(op, [x, y])
            }
        };
        let expected = |[a, b]: [u64; 2]| expected(T::of_bits(a), T::of_bits(b));
        check::<T, Y, 2>([T::ELEM; 2], &operands, make, Some(op), expected);
    });
}

/// Checks an op of three operands at every level.
fn ternary<A: Value, T: Value>(op: Op, expected: impl Fn(A, T, T) -> T) {
    let mut random = Random(3);
    let (firsts, all) = (values::<A>(), values::<T>());
    let mut operands = Vec::new();
    for a in firsts.iter().cycle().take(firsts.len().max(8)) {
        for b in &all {
            // Some of the third operands for each pair.
            for _ in 0..4 {
                operands.push([a.bits(), b.bits(), all[random.below(all.len())].bits()]);
            }
        }
    }
    at_every_level(|| {
        let make = |b: &mut Builder, args: [Val; 3]| b.op(op, args);
        let expected = |[a, b, c]: [u64; 3]| expected(A::of_bits(a), T::of_bits(b), T::of_bits(c));
        check::<A, T, 3>([A::ELEM, T::ELEM, T::ELEM], &operands, make, Some(op), expected);
    });
}

#[test]
fn a_program_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Interpreter>();
}
