//! Pairs of elements side by side, such as the parts of complex numbers.
//!
//! Two accesses that stand together, of the first and of the second element of each pair, become accesses of whole
//! vectors: what is loaded is parted, and what is stored is joined before.

use super::super::emit::mir::{Class, Inst, Mem, Op, Part, Reg};
use super::super::ir::{self, AccessId, Elem, Val};
use super::{Copies, Lowering, Result, Unsupported};

impl Lowering<'_> {
    /// The access of the first elements, if the instruction at a position and the next one are of pairs in a row.
    pub(super) fn pair_at(&self, at: usize) -> Option<AccessId> {
        self.row?;
        let (first, second) = (self.function.insts.get(at)?, self.function.insts.get(at + 1)?);
        let (a, b) = match (first.op, second.op) {
            (ir::Op::Load(a), ir::Op::Load(b)) if first.ty == second.ty => (a, b),
            (ir::Op::Store(a), ir::Op::Store(b)) if first.ty.elem == second.ty.elem => (a, b),
            _ => return None,
        };
        let elem = first.ty.elem;
        let bytes = elem.bytes() as i64;
        let (x, y) = (self.function.access(a), self.function.access(b));
        let are_interleaved = x.lane == 2 * bytes && y.lane == x.lane && y.offset == x.offset + bytes;
        let have_same_base = x.buffer == y.buffer && x.terms == y.terms;
        (are_interleaved && have_same_base && self.target.has(Op::Zip(false), elem)).then_some(a)
    }

    /// Loads pairs, by the instruction at a position and the next.
    pub(super) fn load_pairs(&mut self, at: usize, access: AccessId) -> Result<()> {
        let elem = self.function.insts[at].ty.elem;
        let (lanes, row) = (self.code.lanes, self.row.expect("pairs are of rows"));
        let parts = self.pair_parts(elem);
        let op = if parts[0] == Part::All { Op::Load } else { Op::LoadPart };
        let mut of_both = [Copies::new(), Copies::new()];
        for copy in 0..row.copies {
            let addresses = self.pair_addresses(access, elem, copy)?;
            let mut loaded = [Reg::NONE; 2];
            for ((loaded, mem), part) in loaded.iter_mut().zip(addresses).zip(parts) {
                *loaded = self.code.reg(Class::Vector);
                self.push(Inst { op, elem, lanes, dst: *loaded, src: [Reg::NONE; 3], mem, part });
            }
            for (which, regs) in of_both.iter_mut().enumerate() {
                if self.is_dead[at + which] {
                    continue;
                }
                regs.push(self.emit(Op::Unzip(which == 1), elem, lanes, Class::Vector, &loaded));
            }
        }
        for (which, regs) in of_both.into_iter().enumerate() {
            self.values[at + which] = regs;
        }
        Ok(())
    }

    /// Stores pairs, by the instruction at a position and the next.
    pub(super) fn store_pairs(&mut self, at: usize, access: AccessId) -> Result<()> {
        let elem = self.function.insts[at].ty.elem;
        let values: [Val; 2] = [0, 1].map(|which| self.function.insts[at + which].args[0]);
        let (lanes, row) = (self.code.lanes, self.row.expect("pairs are of rows"));
        let is_streaming = self.function.access(access).is_streaming;
        let parts = self.pair_parts(elem);
        let op = match parts[0] {
            Part::All if is_streaming && self.target.has(Op::StoreStreaming, elem) => Op::StoreStreaming,
            Part::All => Op::Store,
            Part::Count(_) | Part::Mask(_) => Op::StorePart,
        };
        for copy in 0..row.copies {
            let of_both = values.map(|value| self.vector(value, copy));
            let addresses = self.pair_addresses(access, elem, copy)?;
            for ((upper, mem), part) in [false, true].into_iter().zip(addresses).zip(parts) {
                let value = self.emit(Op::Zip(upper), elem, lanes, Class::Vector, &of_both);
                let src = [value, Reg::NONE, Reg::NONE];
                self.push(Inst { op, elem, lanes, dst: Reg::NONE, src, mem, part });
            }
        }
        Ok(())
    }

    /// The addresses of the two vectors that a copy's pairs are in.
    fn pair_addresses(&mut self, access: AccessId, elem: Elem, copy: usize) -> Result<[Mem; 2]> {
        let row = self.row.expect("pairs are of rows");
        let (lanes, bytes) = (i64::from(self.code.lanes), elem.bytes() as i64);
        let mut mem = self.address_of(access);
        if let Some(position) = row.position {
            if bytes == 4 {
                (mem.index, mem.scale) = (position, 8);
            } else {
                mem.index = self.general(Op::MulNumber(2), &[position]);
                mem.scale = 8;
            }
        }
        let pairs = row.offset + copy as i64 * lanes;
        let mut addresses = [mem; 2];
        for (at, mem) in addresses.iter_mut().enumerate() {
            let offset = i64::from(mem.offset) + (2 * pairs + at as i64 * lanes) * bytes;
            mem.offset = i32::try_from(offset).map_err(|_| Unsupported("a row so long".to_owned()))?;
        }
        Ok(addresses)
    }

    /// The elements of either vector that a row has.
    fn pair_parts(&mut self, elem: Elem) -> [Part; 2] {
        let Some(end) = self.row.and_then(|row| row.end) else { return [Part::All; 2] };
        let lanes = self.code.lanes;
        let elements = self.general(Op::MulNumber(2), &[end.count]);
        let (most, zero) = (self.number(lanes.into()), self.number(0));
        let first = self.general(Op::GeneralMin, &[elements, most]);
        let second = self.general(Op::AddNumber(-i32::from(lanes)), &[elements]);
        let second = self.general(Op::GeneralMax, &[second, zero]);
        [first, second].map(|count| {
            if !self.target.has_masked_access(elem) {
                return Part::Count(count);
            }
            let mask = self.emit(Op::MaskFirst, elem.integer(), lanes, Class::Mask, &[count]);
            self.mask_elems.insert(mask, elem.integer());
            Part::Mask(mask)
        })
    }
}
