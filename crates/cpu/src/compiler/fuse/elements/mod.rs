//! Element-wise ops as instructions of the loop-nest IR, by dtype.
//!
//! A dtype is computed in a type of the IR: bool as predicates, integers in their own width (those of 2 and 4 bits in
//! 8), the small floats in f32, complex numbers as two floats. After each op, what was computed has the dtype's
//! precision and range.

mod binary;
mod complex;
mod convert;
mod integers;
mod random;
mod small;
mod unary;

use defn_core::{DType, Kind, Scalar};
use rustc_hash::FxHashMap;

use crate::compiler::ir::{Access, Builder, Cmp, Conv, Elem, Op, Val};
pub(super) use random::Counter;
pub(crate) use unary::Base;

/// A value, and the dtype whose precision and range it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) value: Val,
    /// The imaginary part of a complex number, whose real part the value is.
    pub(super) imag: Option<Val>,
    pub(super) dtype: DType,
}

impl Element {
    /// An element of a dtype that is not complex.
    pub(super) fn new(value: Val, dtype: DType) -> Element {
        Element { value, imag: None, dtype }
    }
}

/// The type in which a dtype is computed; that of its parts for a complex one.
pub(super) fn computed(dtype: DType) -> Elem {
    match dtype {
        DType::Bool => Elem::Bit,
        DType::U2 | DType::U4 | DType::U8 | DType::S2 | DType::S4 | DType::S8 => Elem::I8,
        DType::U16 | DType::S16 => Elem::I16,
        DType::U32 | DType::S32 => Elem::I32,
        DType::U64 | DType::S64 => Elem::I64,
        DType::F8E5M2 | DType::F8E4M3FN | DType::F16 | DType::BF16 | DType::F32 | DType::C64 => Elem::F32,
        DType::F64 | DType::C128 => Elem::F64,
    }
}

/// The type in which elements of a dtype are stored; that of its parts for a complex one.
fn stored(dtype: DType) -> Elem {
    match dtype {
        DType::Bool | DType::F8E5M2 | DType::F8E4M3FN => Elem::I8,
        DType::F16 | DType::BF16 => Elem::I16,
        DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => computed(dtype),
    }
}

/// Whether a dtype is a float that is computed in f32.
fn is_small(dtype: DType) -> bool {
    dtype.is_float() && dtype.bits() < 32
}

pub(super) fn is_signed(dtype: DType) -> bool {
    dtype.kind() == Kind::Signed
}

/// Builds ops of elements.
pub(super) struct Elements {
    pub(super) b: Builder,
    /// For f32 values that were decoded from small floats: the bits that they were decoded from.
    encoded: FxHashMap<(Val, DType), Val>,
}

impl Elements {
    pub(super) fn new(b: Builder) -> Elements {
        Elements { b, encoded: FxHashMap::default() }
    }

    /// The elements of a dtype in memory.
    pub(super) fn load(&mut self, dtype: DType, access: Access) -> Element {
        let elem = stored(dtype);
        if dtype.is_complex() {
            // The parts are side by side.
            let imag = Access { offset: access.offset + elem.bytes() as i64, ..access.clone() };
            let (value, imag) = (self.b.load(elem, access), self.b.load(elem, imag));
            return Element { value, imag: Some(imag), dtype };
        }
        let raw = self.b.load(elem, access);
        Element::new(self.decoded(raw, dtype), dtype)
    }

    pub(super) fn store(&mut self, x: Element, access: Access) {
        if let Some(imag) = x.imag {
            let beside = Access { offset: access.offset + stored(x.dtype).bytes() as i64, ..access.clone() };
            self.b.store(x.value, access);
            self.b.store(imag, beside);
            return;
        }
        let value = if x.dtype.is_bool() {
            self.b.convert(Conv::OfBit, Elem::I8, x.value)
        } else if is_small(x.dtype) {
            self.encode(x.value, x.dtype)
        } else {
            x.value
        };
        self.b.store(value, access);
    }

    /// What was loaded, in the type in which its dtype is computed.
    fn decoded(&mut self, raw: Val, dtype: DType) -> Val {
        if dtype.is_bool() {
            let zero = self.b.bits(Elem::I8, 0);
            self.b.compare(Cmp::Ne, raw, zero)
        } else if is_small(dtype) {
            self.decode(raw, dtype)
        } else {
            raw
        }
    }

    pub(super) fn constant(&mut self, scalar: Scalar) -> Element {
        let dtype = scalar.dtype();
        let bytes = scalar.to_bytes();
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        if dtype.is_complex() {
            let elem = computed(dtype);
            let [value, imag] = [0, 1].map(|part| word(&bytes[part * elem.bytes()..][..elem.bytes()]));
            let (value, imag) = (self.b.bits(elem, value), self.b.bits(elem, imag));
            return Element { value, imag: Some(imag), dtype };
        }
        if is_small(dtype) {
            return Element::new(self.b.f32(scalar.value().to_f64() as f32), dtype);
        }
        Element::new(self.b.bits(computed(dtype), word(&bytes)), dtype)
    }

    /// Numbers of a type that is not theirs.
    fn number(&mut self, elem: Elem, number: i64) -> Val {
        if elem.is_float() { self.b.float(elem, number as f64) } else { self.b.bits(elem, number as u64) }
    }

    /// Brings what was computed to the precision and range of a dtype, which is not complex.
    pub(super) fn fit(&mut self, value: Val, dtype: DType) -> Element {
        let value = if let DType::U2 | DType::U4 = dtype {
            let mask = self.number(Elem::I8, (1 << dtype.bits()) - 1);
            self.b.op(Op::And, [value, mask])
        } else if let DType::S2 | DType::S4 = dtype {
            // The sign bit is subtracted from what it stands for.
            let (mask, sign) = ((1 << dtype.bits()) - 1, 1 << (dtype.bits() - 1));
            let (mask, sign) = (self.number(Elem::I8, mask), self.number(Elem::I8, sign));
            let low = self.b.op(Op::And, [value, mask]);
            let flipped = self.b.op(Op::Xor, [low, sign]);
            self.b.sub(flipped, sign)
        } else if is_small(dtype) {
            let encoded = self.encode(value, dtype);
            self.decode(encoded, dtype)
        } else {
            value
        };
        Element::new(value, dtype)
    }

    /// Whether elements are not zero. NaN is not.
    pub(super) fn truth(&mut self, x: Element) -> Element {
        if x.dtype.is_bool() {
            return x;
        }
        let zero = self.number(self.b.ty(x.value).elem, 0);
        let mut value = self.b.compare(Cmp::Ne, x.value, zero);
        if let Some(imag) = x.imag {
            let imag = self.b.compare(Cmp::Ne, imag, zero);
            value = self.b.op(Op::Or, [value, imag]);
        }
        Element::new(value, DType::Bool)
    }

    /// `a` where `predicate` is true, else `b`.
    pub(super) fn select(&mut self, predicate: Element, a: Element, b: Element, dtype: DType) -> Element {
        let predicate = self.truth(predicate).value;
        let (a, b) = (self.convert(a, dtype), self.convert(b, dtype));
        let value = self.b.select(predicate, a.value, b.value);
        let imag = a.imag.zip(b.imag).map(|(a, b)| self.b.select(predicate, a, b));
        Element { value, imag, dtype }
    }

    /// `x` moved into `low..=high`; `high` wins.
    pub(super) fn clip(&mut self, x: Element, low: Element, high: Element, dtype: DType) -> Element {
        let [x, low, high] = [x, low, high].map(|operand| self.convert(operand, dtype).value);
        let (max, min) = extremes(dtype);
        let above = self.b.op(max, [x, low]);
        Element::new(self.b.op(min, [above, high]), dtype)
    }

    /// Integers that are signed numbers of 64 bits, or of 32 where all are small, as elements of a dtype.
    pub(super) fn iota(&mut self, number: Val, dtype: DType) -> Element {
        let from = if self.b.ty(number).elem == Elem::I64 { DType::S64 } else { DType::S32 };
        let number = Element::new(number, from);
        // Counts of small floats are those of f32, rounded.
        let number = if is_small(dtype) { self.convert(number, DType::F32) } else { number };
        self.convert(number, dtype)
    }
}

/// The ops for the greater and the lesser of two elements.
fn extremes(dtype: DType) -> (Op, Op) {
    match dtype.kind() {
        Kind::Bool => (Op::Or, Op::And),
        Kind::Unsigned => (Op::MaxU, Op::MinU),
        Kind::Signed | Kind::Float | Kind::Complex => (Op::Max, Op::Min),
    }
}
