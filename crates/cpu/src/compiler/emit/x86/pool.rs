//! Constants behind the code.

use super::super::mir::Elem;
use super::super::{Allocated, Constant};
use super::Assembler;

/// A constant of the pool, by its size and its position among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pooled {
    /// As large as a vector.
    Vector(u16),
    /// Eight bytes.
    Long(u16),
    /// Four bytes.
    Word(u16),
}

/// The constants of a function, each once.
#[derive(Debug, Default)]
pub(super) struct Pool {
    vectors: Vec<[u8; 64]>,
    longs: Vec<u64>,
    words: Vec<u32>,
}

/// The position of a value, which is added if it is new. There are few.
fn intern<T: PartialEq>(values: &mut Vec<T>, value: T) -> u16 {
    let at = values.iter().position(|other| *other == value).unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    });
    u16::try_from(at).expect("a function has few constants")
}

/// The bytes of a vector of equal elements.
pub(super) fn splat(bytes: usize, bits: u64) -> [u8; 64] {
    std::array::from_fn(|at| bits.to_le_bytes()[at % bytes])
}

impl Pool {
    pub(super) fn vector(&mut self, bytes: [u8; 64]) -> Pooled {
        Pooled::Vector(intern(&mut self.vectors, bytes))
    }

    pub(super) fn long(&mut self, bits: u64) -> Pooled {
        Pooled::Long(intern(&mut self.longs, bits))
    }

    pub(super) fn word(&mut self, bits: u32) -> Pooled {
        Pooled::Word(intern(&mut self.words, bits))
    }

    /// Where a constant is in the pool, whose vectors have so many bytes. The largest come first, so that all
    /// are aligned.
    pub(super) fn offset(&self, constant: Pooled, vector_bytes: usize) -> usize {
        let longs = self.vectors.len() * vector_bytes;
        match constant {
            Pooled::Vector(at) => usize::from(at) * vector_bytes,
            Pooled::Long(at) => longs + 8 * usize::from(at),
            Pooled::Word(at) => longs + 8 * self.longs.len() + 4 * usize::from(at),
        }
    }

    /// Appends the constants.
    pub(super) fn write(&self, to: &mut Vec<u8>, vector_bytes: usize) {
        for vector in &self.vectors {
            to.extend_from_slice(&vector[..vector_bytes]);
        }
        to.extend(self.longs.iter().flat_map(|bits| bits.to_le_bytes()));
        to.extend(self.words.iter().flat_map(|bits| bits.to_le_bytes()));
    }
}

impl Assembler {
    /// A constant of four or eight bytes that holds an element, repeated where it is smaller, and its type.
    pub(crate) fn element(&mut self, elem: Elem, bits: u64) -> (Elem, Pooled) {
        match elem.bytes() {
            1 => (Elem::I32, self.word(u32::from_le_bytes([bits as u8; 4]))),
            2 => (Elem::I32, self.word(u32::from(bits as u16) * 0x1_0001)),
            4 => (Elem::I32, self.word(bits as u32)),
            _ => (Elem::I64, self.long(bits)),
        }
    }

    /// A constant as a whole vector.
    pub(crate) fn constant_vector(&mut self, constant: Constant) -> Pooled {
        match constant {
            Constant::Splat(elem, bits) => self.splat(elem.bytes(), bits),
            Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
            Constant::Iota(elem) => {
                let bytes = elem.bytes();
                self.vector(std::array::from_fn(|at| (at / bytes).to_le_bytes()[at % bytes]))
            }
        }
    }

    /// A constant of the function as a whole vector.
    pub(crate) fn known_vector(&mut self, function: &Allocated, at: u32) -> Pooled {
        if let [_, Some(pooled)] = self.constants[at as usize] {
            return pooled;
        }
        let pooled = self.constant_vector(function.constants[at as usize]);
        self.constants[at as usize][1] = Some(pooled);
        pooled
    }

    /// A constant of the function as one element of this width, where that is four or eight bytes and all are
    /// equal.
    pub(crate) fn known_element(&mut self, function: &Allocated, at: u32, elem: Elem) -> Option<Pooled> {
        match function.constants[at as usize] {
            Constant::Splat(of, bits) if of.bytes() == elem.bytes() && elem.bytes() >= 4 => {
                let [known, _] = self.constants[at as usize];
                let pooled = known.unwrap_or_else(|| self.element(of, bits).1);
                self.constants[at as usize][0] = Some(pooled);
                Some(pooled)
            }
            Constant::Splat(..) | Constant::Iota(_) | Constant::Lanes(_) => None,
        }
    }
}
