//! Records: elements side by side, of which each lane has its own, such as the elements of short rows.
//!
//! Accesses that stand together, of the first, the second and further elements of each record, become accesses of whole
//! records and a transposition in registers. What is accessed at once is a power of two of elements; the last of them
//! are accessed twice if that takes fewer instructions. Records without gaps of a power of two are whole vectors.

use super::super::emit::mir::{Class, Constant, Inst, Mem, Op, Part, Reg};
use super::super::ir::{self, AccessId, Elem};
use super::{Copies, Lowering, Result, Row, RowEnd, Unsupported};

/// The most elements of records without gaps whose lanes are picked one by one.
const MAX_PICKED: usize = 7;

/// Accesses of consecutive elements of records.
#[derive(Clone, Copy)]
pub(super) struct Record {
    /// The access of the first elements.
    first: AccessId,
    elem: Elem,
    /// How many elements of each record.
    pub(super) count: usize,
    /// Bytes from one record to the next.
    stride: i64,
}

impl Record {
    /// The elements that are accessed together: where they begin, and how many.
    fn parts(&self, lanes: usize) -> Vec<(usize, usize)> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < self.count {
            let mut size = (self.count - at).next_power_of_two().max(2).min(lanes);
            let mut start = at;
            if at + size > self.count {
                if size <= self.count {
                    start = self.count - size;
                } else {
                    size /= 2;
                }
            }
            parts.push((start, size));
            at = start + size;
        }
        parts
    }
}

impl Lowering<'_> {
    /// The record whose elements the instructions from a position on access, if they do.
    pub(super) fn record_at(&self, at: usize) -> Option<Record> {
        self.row?;
        let (first, elem, is_load) = self.strided(at)?;
        let (known, bytes) = (self.function.access(first), elem.bytes() as i64);
        if elem.bytes() < 4 || !self.target.has(Op::Zip(false), elem) || known.lane % bytes != 0 {
            return None;
        }
        let follows = |count: usize| {
            let Some((access, other, kind)) = self.strided(at + count) else { return false };
            let access = self.function.access(access);
            (other, kind) == (elem, is_load)
                && access.buffer == known.buffer
                && access.terms == known.terms
                && access.lane == known.lane
                && access.offset == known.offset + count as i64 * bytes
        };
        let most = (known.lane / bytes) as usize;
        let mut count = 1;
        while count < most && follows(count) {
            count += 1;
        }
        // Single elements are gathered.
        (count > 1 || !is_load).then_some(Record { first, elem, count, stride: known.lane })
    }

    /// The access of vectors whose elements are apart, if an instruction is one, and whether it loads them.
    fn strided(&self, at: usize) -> Option<(AccessId, Elem, bool)> {
        let inst = self.function.insts.get(at)?;
        let (access, is_load) = if let ir::Op::Load(access) = inst.op {
            (access, true)
        } else if let ir::Op::Store(access) = inst.op {
            (access, false)
        } else {
            return None;
        };
        let elem = inst.ty.elem;
        (self.function.access(access).lane > elem.bytes() as i64).then_some((access, elem, is_load))
    }

    /// Loads records: each instruction from a position on gives one element of all of them.
    pub(super) fn load_records(&mut self, at: usize, record: Record) -> Result<()> {
        let (row, lanes) = (self.row.expect("records are of rows"), usize::from(self.code.lanes));
        let mut loaded = vec![Copies::new(); record.count];
        for copy in 0..row.copies {
            let base = self.records(record, row, copy)?;
            if row.end.is_none() && self.is_dense(record) {
                let mut vectors = Vec::with_capacity(record.count);
                for vector in 0..record.count {
                    let mem = moved(base, (vector * lanes * record.elem.bytes()) as i64)?;
                    vectors.push(self.load_record(record.elem, lanes, mem));
                }
                let elements = self.parted(record.elem, vectors);
                loaded.iter_mut().zip(elements).for_each(|(to, reg)| to.push(reg));
                continue;
            }
            let mut done = 0;
            for (start, size) in record.parts(lanes) {
                let mut rows = Vec::with_capacity(lanes);
                for lane in 0..lanes {
                    let mem = self.record_of_lane(base, record, lane, row.end)?;
                    let mem = moved(mem, (start * record.elem.bytes()) as i64)?;
                    rows.push(self.load_record(record.elem, size, mem));
                }
                let mut network = Network { elem: record.elem, rows: &rows, known: Vec::new() };
                for (element, loaded) in loaded.iter_mut().enumerate().take(start + size).skip(done) {
                    let is_needed = !self.is_dead[at + element];
                    let reg = if is_needed {
                        network.output(self, lanes.ilog2(), element - start)
                    } else {
                        Reg::NONE
                    };
                    loaded.push(reg);
                }
                done = start + size;
            }
        }
        for (which, regs) in loaded.into_iter().enumerate() {
            if !self.is_dead[at + which] {
                self.values[at + which] = regs;
            }
        }
        Ok(())
    }

    /// Stores records: each instruction from a position on has one element of all of them.
    pub(super) fn store_records(&mut self, at: usize, record: Record) -> Result<()> {
        let (row, lanes) = (self.row.expect("records are of rows"), usize::from(self.code.lanes));
        for copy in 0..row.copies {
            let base = self.records(record, row, copy)?;
            let is_dense = row.end.is_none() && self.is_dense(record);
            let parts = if is_dense { vec![(0, record.count)] } else { record.parts(lanes) };
            for (start, size) in parts {
                let elements: Vec<Reg> = (start..start + size)
                    .map(|element| self.vector(self.function.insts[at + element].args[0], copy))
                    .collect();
                let vectors = self.in_turn(record.elem, elements);
                if is_dense {
                    for (vector, reg) in vectors.into_iter().enumerate() {
                        let mem = moved(base, (vector * lanes * record.elem.bytes()) as i64)?;
                        self.store_record(record.elem, lanes, reg, mem);
                    }
                    continue;
                }
                let records: Vec<Reg> =
                    vectors.into_iter().flat_map(|reg| self.divided(record.elem, reg, lanes, size)).collect();
                // Those that the row lacks are stored to the place of its last, which comes after them.
                for (lane, reg) in records.into_iter().enumerate().rev() {
                    let mem = self.record_of_lane(base, record, lane, row.end)?;
                    let mem = moved(mem, (start * record.elem.bytes()) as i64)?;
                    self.store_record(record.elem, size, reg, mem);
                }
            }
        }
        Ok(())
    }

    /// Whether vectors of records without gaps are whole. Those of other counts than powers of two are picked lane by lane.
    fn is_dense(&self, record: Record) -> bool {
        let bytes = (record.count * record.elem.bytes()) as i64;
        let fits = match record.count.is_power_of_two() {
            true => record.count <= usize::from(self.code.lanes),
            false => record.count <= MAX_PICKED && self.target.has(Op::Permute(0), record.elem),
        };
        fits && record.stride == bytes
    }

    /// For each lane the lane of some vectors one after the other that `of` says.
    fn picked(&mut self, elem: Elem, vectors: &[Reg], of: impl Fn(usize) -> usize) -> Reg {
        let lanes = usize::from(self.code.lanes);
        let mut picked = vectors[0];
        for (at, &vector) in vectors.iter().enumerate().skip(1) {
            let from = |lane: usize| match of(lane) {
                from if from / lanes == at => lanes + from % lanes,
                from if at == 1 && from < lanes => from,
                _ => lane,
            };
            let table = Constant::Lanes(std::array::from_fn(|lane| from(lane) as u8));
            let known = self.code.constants.iter().position(|constant| *constant == table);
            let index = known.unwrap_or_else(|| {
                self.code.constants.push(table);
                self.code.constants.len() - 1
            });
            let op = Op::Permute(index as u32);
            picked = self.emit(op, elem, self.code.lanes, Class::Vector, &[picked, vector]);
        }
        picked
    }

    fn load_record(&mut self, elem: Elem, lanes: usize, mem: Mem) -> Reg {
        let dst = self.code.reg(Class::Vector);
        let src = [Reg::NONE; 3];
        self.push(Inst { op: Op::Load, elem, lanes: lanes as u8, dst, src, mem, part: Part::All });
        dst
    }

    fn store_record(&mut self, elem: Elem, lanes: usize, value: Reg, mem: Mem) {
        let src = [value, Reg::NONE, Reg::NONE];
        let (lanes, dst) = (lanes as u8, Reg::NONE);
        self.push(Inst { op: Op::Store, elem, lanes, dst, src, mem, part: Part::All });
    }

    /// The elements of records that are one after the other in vectors.
    fn parted(&mut self, elem: Elem, vectors: Vec<Reg>) -> Vec<Reg> {
        let (count, lanes) = (vectors.len(), self.code.lanes);
        if count == 1 {
            return vectors;
        }
        if !count.is_power_of_two() {
            let of = |element: usize| move |lane: usize| lane * count + element;
            return (0..count).map(|element| self.picked(elem, &vectors, of(element))).collect();
        }
        let [even, odd] = [false, true].map(|odd| {
            let half = vectors
                .chunks(2)
                .map(|pair| self.emit(Op::Unzip(odd), elem, lanes, Class::Vector, pair))
                .collect();
            self.parted(elem, half)
        });
        even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect()
    }

    /// The vectors of records one after the other.
    fn in_turn(&mut self, elem: Elem, elements: Vec<Reg>) -> Vec<Reg> {
        let count = elements.len();
        if count == 1 {
            return elements;
        }
        if !count.is_power_of_two() {
            let lanes = usize::from(self.code.lanes);
            let of = |vector: usize| {
                move |lane: usize| {
                    let at = vector * lanes + lane;
                    at % count * lanes + at / count
                }
            };
            return (0..count).map(|vector| self.picked(elem, &elements, of(vector))).collect();
        }
        let [even, odd] = [0, 1].map(|first| {
            let half = elements.iter().copied().skip(first).step_by(2).collect();
            self.in_turn(elem, half)
        });
        let lanes = self.code.lanes;
        let mut vectors = Vec::with_capacity(elements.len());
        for pair in even.into_iter().zip(odd) {
            for upper in [false, true] {
                vectors.push(self.emit(Op::Zip(upper), elem, lanes, Class::Vector, &[pair.0, pair.1]));
            }
        }
        vectors
    }

    /// The records of a register that has so many lanes of them.
    fn divided(&mut self, elem: Elem, reg: Reg, lanes: usize, size: usize) -> Vec<Reg> {
        if lanes == size {
            return vec![reg];
        }
        let half = lanes / 2;
        let upper = self.emit(Op::Upper(half as u8), elem, self.code.lanes, Class::Vector, &[reg]);
        let lower = self.divided(elem, reg, half, size);
        let upper = self.divided(elem, upper, half, size);
        [lower, upper].concat()
    }

    /// Where the first record of a copy is.
    fn records(&mut self, record: Record, row: Row, copy: usize) -> Result<Mem> {
        let mut mem = self.address_of(record.first);
        if let Some(position) = row.position {
            let stride = self.small_stride(record)?;
            let bytes = self.general(Op::MulNumber(stride), &[position]);
            mem.base = self.general(Op::GeneralAdd, &[mem.base, bytes]);
        }
        let before = row.offset + (copy * usize::from(self.code.lanes)) as i64;
        moved(mem, before * record.stride)
    }

    /// Where the record of a lane is, or of the last one that the row has.
    fn record_of_lane(&mut self, base: Mem, record: Record, lane: usize, end: Option<RowEnd>) -> Result<Mem> {
        let Some(end) = end else { return moved(base, lane as i64 * record.stride) };
        if lane == 0 {
            return Ok(base);
        }
        let stride = self.small_stride(record)?;
        let last = self.general(Op::AddNumber(-1), &[end.count]);
        let lane = self.number(lane as i64);
        let lane = self.general(Op::GeneralMin, &[lane, last]);
        let bytes = self.general(Op::MulNumber(stride), &[lane]);
        Ok(Mem { base: self.general(Op::GeneralAdd, &[base.base, bytes]), ..base })
    }

    fn small_stride(&self, record: Record) -> Result<i32> {
        i32::try_from(record.stride).map_err(|_| Unsupported("a stride so long".to_owned()))
    }
}

/// A place so many bytes on.
pub(super) fn moved(mem: Mem, bytes: i64) -> Result<Mem> {
    let offset = i64::from(mem.offset) + bytes;
    let offset = i32::try_from(offset).map_err(|_| Unsupported("a row so long".to_owned()))?;
    Ok(Mem { offset, ..mem })
}

/// The transposition of as many registers as there are lanes, as far as it is needed: every stage takes the elements of
/// one register of the first half and of one of the second half in turn.
struct Network<'r> {
    elem: Elem,
    rows: &'r [Reg],
    /// The outputs of stages that exist.
    known: Vec<((u32, usize), Reg)>,
}

impl Network<'_> {
    /// An output of a stage.
    fn output(&mut self, lowering: &mut Lowering<'_>, stage: u32, at: usize) -> Reg {
        if stage == 0 {
            return self.rows[at];
        }
        if let Some((_, reg)) = self.known.iter().find(|(key, _)| *key == (stage, at)) {
            return *reg;
        }
        let pair = [at / 2, at / 2 + self.rows.len() / 2].map(|from| self.output(lowering, stage - 1, from));
        let op = Op::Zip(at % 2 == 1);
        let reg = lowering.emit(op, self.elem, lowering.code.lanes, Class::Vector, &pair);
        self.known.push(((stage, at), reg));
        reg
    }
}
