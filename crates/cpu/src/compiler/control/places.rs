//! Where the values of regions are: in memory, or as scalars in registers.

use std::collections::BTreeMap;

use defn_core::DType;
use smallvec::SmallVec;

use crate::compiler::ir::{Access, Elem, Val};

/// The pointer that is 0: addresses are counted from it.
pub(super) const NOWHERE: u16 = 0;

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) buffer: u16,
    /// An address that is known only when the function runs. The buffer is [`NOWHERE`] then.
    pub(super) address: Option<Val>,
    pub(super) offset: i64,
}

impl Place {
    pub(super) fn new(buffer: u16, offset: usize) -> Place {
        Place { buffer, address: None, offset: offset as i64 }
    }

    pub(super) fn at_address(address: Val) -> Place {
        Place { buffer: NOWHERE, address: Some(address), offset: 0 }
    }

    pub(super) fn offset_by(&self, bytes: usize) -> Place {
        Place { offset: self.offset + bytes as i64, ..self.clone() }
    }

    /// An access of the memory that begins here, as if it were a buffer of its own.
    pub(super) fn access(&self, own: &Access, terms: impl Iterator<Item = (Val, i64)>) -> Access {
        let terms = self.address.map(|address| (address, 1)).into_iter().chain(terms).collect();
        Access { buffer: self.buffer, offset: self.offset + own.offset, terms, ..own.clone() }
    }

    /// An access of one element, so many bytes behind the place.
    pub(super) fn element(&self, offset: i64) -> Access {
        let own = Access { buffer: 0, offset, terms: SmallVec::new(), lane: 0, is_streaming: false };
        self.access(&own, std::iter::empty())
    }
}

/// The parts of a scalar as its memory has them: the bytes before each, and its value.
pub(super) type Words = SmallVec<[(i64, Val); 2]>;

/// The parts of an element of a dtype in memory: the bytes before each, and its type.
pub(super) fn words_of(dtype: DType) -> SmallVec<[(i64, Elem); 2]> {
    let elem = match dtype {
        DType::Bool
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::F8E5M2
        | DType::F8E4M3FN => Elem::I8,
        DType::U16 | DType::S16 | DType::F16 | DType::BF16 => Elem::I16,
        DType::U32 | DType::S32 => Elem::I32,
        DType::U64 | DType::S64 => Elem::I64,
        DType::F32 => Elem::F32,
        DType::F64 => Elem::F64,
        DType::C64 => return SmallVec::from_slice(&[(0, Elem::F32), (4, Elem::F32)]),
        DType::C128 => return SmallVec::from_slice(&[(0, Elem::F64), (8, Elem::F64)]),
    };
    SmallVec::from_slice(&[(0, elem)])
}

/// A scalar that is in registers.
#[derive(Clone, Debug)]
struct Scalar {
    words: Words,
    bytes: i64,
    /// Whether its memory has it too.
    is_stored: bool,
}

/// The scalars that are known where the function is being built, by the memory that the plan has for them. Most of them
/// are never written there.
#[derive(Clone, Debug, Default)]
pub(super) struct Scalars(BTreeMap<(u16, i64), Scalar>);

impl Scalars {
    fn key(place: &Place) -> Option<(u16, i64)> {
        place.address.is_none().then_some((place.buffer, place.offset))
    }

    /// The scalar at a place.
    pub(super) fn get(&self, place: &Place) -> Option<&Words> {
        Some(&self.0.get(&Scalars::key(place)?)?.words)
    }

    /// Records a scalar of so many bytes.
    pub(super) fn insert(&mut self, place: &Place, bytes: usize, words: Words, is_stored: bool) {
        self.forget(place, bytes);
        if let Some(key) = Scalars::key(place) {
            self.0.insert(key, Scalar { words, bytes: bytes as i64, is_stored });
        }
    }

    /// Forgets what was in memory that is written.
    pub(super) fn forget(&mut self, place: &Place, bytes: usize) {
        let Some((buffer, start)) = Scalars::key(place) else { return };
        let end = start + bytes as i64;
        // Scalars are short, and those of one plan do not overlap.
        let first = start - 16;
        let found = self.0.range((buffer, first)..(buffer, end));
        let found: SmallVec<[(u16, i64); 4]> =
            found.filter(|((_, at), scalar)| at + scalar.bytes > start).map(|(key, _)| *key).collect();
        found.iter().for_each(|key| drop(self.0.remove(key)));
    }

    /// The scalars in some bytes that memory lacks. They count as stored from then on.
    pub(super) fn to_store(&mut self, place: &Place, bytes: usize) -> SmallVec<[(i64, Words); 1]> {
        let Some((buffer, start)) = Scalars::key(place) else { return SmallVec::new() };
        let found = self.0.range_mut((buffer, start)..(buffer, start + bytes as i64));
        let lacking = found.filter_map(|((_, at), scalar)| {
            let is_stored = std::mem::replace(&mut scalar.is_stored, true);
            (!is_stored).then(|| (*at - start, scalar.words.clone()))
        });
        lacking.collect()
    }
}
