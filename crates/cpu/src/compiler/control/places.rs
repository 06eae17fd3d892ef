//! Where the values of regions are: in memory, or as scalars in registers.

use std::collections::BTreeMap;

use defn_core::{DType, TensorType};
use smallvec::SmallVec;

use crate::compiler::ir::{Access, Builder, Elem, Val};

/// The pointer that is 0: addresses are counted from it.
pub(super) const NOWHERE: u16 = 0;

/// The most elements of an array each of which is a scalar of its own. A row of more elements is worth a vector.
const MAX_ELEMENTS: usize = 9;

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) buffer: u16,
    /// Indices that are known only when the function runs, and the bytes that a step of each passes. Of an address, the
    /// buffer is [`NOWHERE`].
    pub(super) terms: SmallVec<[(Val, i64); 3]>,
    pub(super) offset: i64,
}

impl Place {
    pub(super) fn new(buffer: u16, offset: usize) -> Place {
        Place::fixed(buffer, offset as i64)
    }

    /// A place that is known.
    pub(super) fn fixed(buffer: u16, offset: i64) -> Place {
        Place { buffer, terms: SmallVec::new(), offset }
    }

    pub(super) fn at_address(address: Val) -> Place {
        Place { buffer: NOWHERE, terms: SmallVec::from_slice(&[(address, 1)]), offset: 0 }
    }

    /// Where in the bytes from another place on this one is.
    pub(super) fn within(&self, other: &Place, bytes: usize) -> Option<usize> {
        let at = usize::try_from(self.offset - other.offset).ok()?;
        (self.buffer == other.buffer && self.terms == other.terms && at < bytes).then_some(at)
    }

    /// Whether so many bytes from here on may be some of those from another place on. Addresses are those of values that
    /// lie apart.
    pub(super) fn may_overlap(&self, bytes: usize, other: &Place, other_bytes: usize) -> bool {
        if self.buffer != other.buffer || bytes == 0 || other_bytes == 0 {
            return false;
        }
        if self.terms != other.terms {
            return self.buffer != NOWHERE;
        }
        self.offset < other.offset + other_bytes as i64 && other.offset < self.offset + bytes as i64
    }

    pub(super) fn offset_by(&self, bytes: usize) -> Place {
        Place { offset: self.offset + bytes as i64, ..self.clone() }
    }

    /// An access of the memory that begins here, as if it were a buffer of its own.
    pub(super) fn access(&self, own: &Access, terms: impl Iterator<Item = (Val, i64)>) -> Access {
        let terms = self.terms.iter().copied().chain(terms).collect();
        Access { buffer: self.buffer, offset: self.offset + own.offset, terms, ..own.clone() }
    }

    /// An access of one element, so many bytes behind the place.
    pub(super) fn element(&self, offset: i64) -> Access {
        let own = Access { buffer: 0, offset, terms: SmallVec::new(), lane: 0, is_streaming: false };
        self.access(&own, std::iter::empty())
    }
}

/// An access that is moved by indices, each as many bytes as it says. What is added to an index moves the offset, so that
/// accesses beside each other have the same indices.
pub(super) fn with_terms(b: &Builder, access: Access, terms: impl Iterator<Item = (Val, i64)>) -> Access {
    let mut access = access;
    for (term, by) in terms {
        let (term, by, added) = b.split_index(term, by);
        access.offset += added;
        match b.constant_bits(term) {
            Some(bits) => access.offset += bits as i64 * by,
            None => access.terms.push((term, by)),
        }
    }
    access
}

/// The elements of a value, or the parts of them: the bytes before each, and what it is.
pub(super) type PerElement<T> = SmallVec<[(i64, T); 4]>;

/// The type in which an element of a dtype is moved, and how many parts of it there are.
pub(super) fn parts_of(dtype: DType) -> (Elem, usize) {
    match dtype {
        DType::Bool
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::F8E5M2
        | DType::F8E4M3FN => (Elem::I8, 1),
        DType::U16 | DType::S16 | DType::F16 | DType::BF16 => (Elem::I16, 1),
        DType::U32 | DType::S32 => (Elem::I32, 1),
        DType::U64 | DType::S64 => (Elem::I64, 1),
        DType::F32 => (Elem::F32, 1),
        DType::F64 => (Elem::F64, 1),
        DType::C64 => (Elem::F32, 2),
        DType::C128 => (Elem::F64, 2),
    }
}

/// The elements of a value of which each is a scalar of its own, if the value has few.
pub(super) fn elements_of(ty: &TensorType) -> Option<PerElement<Elem>> {
    let (elem, parts) = parts_of(ty.dtype);
    let count = ty.size() * parts;
    let word = |at: usize| ((at * elem.bytes()) as i64, elem);
    (1..=MAX_ELEMENTS).contains(&ty.size()).then(|| (0..count).map(word).collect())
}

/// A scalar that is in a register.
#[derive(Clone, Copy, Debug)]
struct Word {
    value: Val,
    bytes: i64,
    /// Whether its memory has it too.
    is_stored: bool,
}

/// The scalars that are known where the function is being built, by the memory that the plan has for them. Most of them
/// are never written there.
#[derive(Clone, Debug, Default)]
pub(super) struct Scalars(BTreeMap<(u16, i64), Word>);

impl Scalars {
    /// The scalar that is so many bytes at a place.
    pub(super) fn get(&self, place: &Place, bytes: usize) -> Option<Val> {
        let word = self.0.get(&(place.buffer, place.offset)).filter(|_| place.terms.is_empty())?;
        (word.bytes == bytes as i64).then_some(word.value)
    }

    /// Records a scalar of so many bytes.
    pub(super) fn insert(&mut self, place: &Place, bytes: usize, value: Val, is_stored: bool) {
        self.forget(place, bytes);
        if place.terms.is_empty() {
            self.0.insert((place.buffer, place.offset), Word { value, bytes: bytes as i64, is_stored });
        }
    }

    /// Forgets what was in memory that is written.
    pub(super) fn forget(&mut self, place: &Place, bytes: usize) {
        if !place.terms.is_empty() {
            return;
        }
        let (start, end) = (place.offset, place.offset + bytes as i64);
        let longest = Elem::F64.bytes() as i64;
        let found = self.0.range((place.buffer, start - longest)..(place.buffer, end));
        let found = found.filter(|((_, at), word)| at + word.bytes > start);
        let found: SmallVec<[(u16, i64); 16]> = found.map(|(key, _)| *key).collect();
        for key in found {
            self.0.remove(&key);
        }
    }

    /// The scalars in some bytes that memory lacks, and the bytes before them. They count as stored from then on.
    pub(super) fn take_unstored(&mut self, place: &Place, bytes: usize) -> PerElement<Val> {
        if !place.terms.is_empty() {
            return PerElement::new();
        }
        let start = place.offset;
        let found = self.0.range_mut((place.buffer, start)..(place.buffer, start + bytes as i64));
        let lacking = found.filter_map(|((_, at), word)| {
            let is_stored = std::mem::replace(&mut word.is_stored, true);
            (!is_stored).then_some((*at - start, word.value))
        });
        lacking.collect()
    }
}
