//! Addresses: pointers to the first element of a row, computed once for all accesses that differ by a constant.

use smallvec::SmallVec;

use super::super::emit::mir::{Mem, Op, Reg};
use super::super::ir::{Access, AccessId, Val};
use super::{Known, Lowering};

/// What accesses to the same pointer have in common: the buffer and the terms.
pub(super) type Key = (u16, SmallVec<[(Val, i64); 3]>);

impl Lowering<'_> {
    /// The pointer that an access counts its offset from.
    pub(super) fn pointer(&mut self, access: Access) -> Reg {
        let key = (access.buffer, access.terms);
        if let Some(&pointer) = self.pointers.get(&key) {
            return pointer;
        }
        let mut pointer = self.argument(key.0);
        for &(term, stride) in &key.1 {
            let term = self.scalar(term);
            let bytes = match i32::try_from(stride) {
                Ok(1) => term,
                Ok(stride) => self.general(Op::MulNumber(stride), &[term]),
                Err(_) => {
                    let stride = self.number(stride);
                    self.general(Op::GeneralMul, &[term, stride])
                }
            };
            pointer = self.general(Op::GeneralAdd, &[pointer, bytes]);
        }
        self.known.push(Known::Pointer(key.clone()));
        self.pointers.insert(key, pointer);
        pointer
    }

    /// The address of an access' first element.
    pub(super) fn address_of(&mut self, access: AccessId) -> Mem {
        let access = self.function.access(access).clone();
        let offset = access.offset;
        let mut base = self.pointer(access);
        let offset = match i32::try_from(offset) {
            Ok(offset) => offset,
            Err(_) => {
                let number = self.number(offset);
                base = self.general(Op::GeneralAdd, &[base, number]);
                0
            }
        };
        Mem { base, index: Reg::NONE, scale: 1, offset }
    }
}
