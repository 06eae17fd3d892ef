//! Ops of values, and memory.

use smallvec::SmallVec;

use super::super::emit::mir::{self, Class, Cond, Constant, Inst, Mem, Op, Part, Reg};
use super::super::ir::{self, AccessId, Cmp, Conv, Elem, Val};
use super::records::moved;
use super::{Copies, Known, Lowering, Result, Unsupported, cond_of};

impl Lowering<'_> {
    /// Lowers an op of values.
    pub(super) fn value(&mut self, value: Val) -> Result<()> {
        let inst = *self.function.inst(value);
        let regs = match (inst.op, inst.ty.elem) {
            // They are made where they are used.
            (ir::Op::Const(_), _) => return Ok(()),
            (_, Elem::Index) => SmallVec::from_slice(&[self.index(value)?]),
            (ir::Op::Param(at), Elem::Bit) => {
                let word = self.argument(self.function.buffers + at);
                let bits = self.emit(Op::OfGeneral, Elem::I32, 1, Class::Vector, &[word]);
                let one = self.constant(Constant::Splat(Elem::I32, 1));
                SmallVec::from_slice(&[self.comparison(Op::Test, Elem::I32, 1, &[bits, one])?])
            }
            (ir::Op::Param(at), elem) => {
                let word = self.argument(self.function.buffers + at);
                SmallVec::from_slice(&[self.emit(Op::OfGeneral, elem, 1, Class::Vector, &[word])])
            }
            (ir::Op::Compare(cmp), _) if self.function.ty(inst.args[0]).elem == Elem::Index => {
                let cond = cond_of(cmp).ok_or_else(|| Unsupported("unsigned indices".to_owned()))?;
                let (a, b) = (self.scalar(inst.args[0]), self.scalar(inst.args[1]));
                self.conditions.insert(value, (cond, a, b));
                self.values[value.index()].clear();
                return Ok(());
            }
            (ir::Op::Convert(Conv::OfIndex), elem) => {
                let from = self.scalar(inst.args[0]);
                SmallVec::from_slice(&[self.emit(Op::OfGeneral, elem, 1, Class::Vector, &[from])])
            }
            (ir::Op::Lane, elem) => self.positions(elem)?,
            (ir::Op::Any, _) => {
                let any = self.any(inst.args[0])?;
                let is_value = !self.only_decides(value);
                SmallVec::from_slice(&[if is_value { self.any_as_scalar(any) } else { any }])
            }
            (op, elem) => {
                let from = if inst.args[0].is_some() { self.operand_elem(&inst) } else { elem };
                let lanes = if inst.ty.is_vector { self.code.lanes } else { 1 };
                let copies = if inst.ty.is_vector { self.row.map_or(1, |row| row.copies) } else { 1 };
                let constants = inst.args.map(|operand| self.constant_bits(operand));
                let mut regs = Copies::new();
                for copy in 0..copies {
                    let src: SmallVec<[Reg; 6]> = inst
                        .operands()
                        .map(|operand| {
                            if inst.ty.is_vector { self.vector(operand, copy) } else { self.scalar(operand) }
                        })
                        .collect();
                    regs.push(self.op(op, elem, from, lanes, &src, constants)?);
                }
                regs
            }
        };
        self.values[value.index()] = regs;
        Ok(())
    }

    /// The type of the elements that an op reads.
    fn operand_elem(&self, inst: &ir::Inst) -> Elem {
        if inst.op == ir::Op::Select { inst.ty.elem } else { self.function.ty(inst.args[0]).elem }
    }

    fn constant_bits(&self, value: Val) -> Option<u64> {
        if value.is_some() { self.function.inst(value).op.constant() } else { None }
    }

    /// An op of indices.
    #[expect(clippy::wildcard_enum_match_arm, reason = "indices have few ops")]
    fn index(&mut self, value: Val) -> Result<Reg> {
        let inst = *self.function.inst(value);
        if let ir::Op::Convert(_) = inst.op {
            let elem = self.function.ty(inst.args[0]).elem;
            let from = self.scalar(inst.args[0]);
            return Ok(self.general_of(elem, from));
        }
        let src: SmallVec<[Reg; 6]> = inst.operands().map(|operand| self.scalar(operand)).collect();
        let small =
            |at: usize| self.constant_bits(inst.args[at]).and_then(|bits| i32::try_from(bits as i64).ok());
        Ok(match inst.op {
            ir::Op::Param(at) => self.argument(self.function.buffers + at),
            ir::Op::Add => match small(1) {
                Some(number) => self.general(Op::AddNumber(number), &src[..1]),
                None => self.general(Op::GeneralAdd, &src),
            },
            ir::Op::Sub => self.general(Op::GeneralSub, &src),
            ir::Op::Mul => match small(1) {
                Some(number) => self.general(Op::MulNumber(number), &src[..1]),
                None => self.general(Op::GeneralMul, &src),
            },
            ir::Op::Min => self.general(Op::GeneralMin, &src),
            ir::Op::Max => self.general(Op::GeneralMax, &src),
            op => return Err(Unsupported(format!("{op:?} of indices"))),
        })
    }

    /// Lane 0, an integer, as an index.
    fn general_of(&mut self, elem: Elem, from: Reg) -> Reg {
        self.emit(Op::ToGeneral, elem, 1, Class::General, &[from])
    }

    /// The mask of one lane that says whether indices compare so.
    pub(super) fn predicate_of(&mut self, cond: Cond, a: Reg, b: Reg) -> Reg {
        let (cmp, a, b) = match cond {
            Cond::Eq => (Cmp::Eq, a, b),
            Cond::Ne => (Cmp::Ne, a, b),
            Cond::Lt => (Cmp::Lt, a, b),
            Cond::Le => (Cmp::Le, a, b),
            Cond::Gt => (Cmp::Lt, b, a),
            Cond::Ge => (Cmp::Le, b, a),
        };
        let mut of = |reg| self.emit(Op::OfGeneral, Elem::I64, 1, Class::Vector, &[reg]);
        let (a, b) = (of(a), of(b));
        let mask = self.emit(Op::Compare(cmp), Elem::I64, 1, Class::Mask, &[a, b]);
        self.mask_elems.insert(mask, Elem::I64);
        mask
    }

    /// A predicate that is known.
    pub(super) fn constant_predicate(&mut self, holds: bool, lanes: u8) -> Reg {
        let elem = if lanes == 1 { Elem::I32 } else { self.lane_elem() };
        let zero = self.constant(Constant::Splat(elem, 0));
        let cmp = if holds { Cmp::Eq } else { Cmp::Ne };
        let mask = self.emit(Op::Compare(cmp), elem, lanes, Class::Mask, &[zero, zero]);
        self.mask_elems.insert(mask, elem);
        mask
    }

    /// Whether a predicate does nothing but decide where to go on.
    fn only_decides(&self, predicate: Val) -> bool {
        let is_used = |inst: &ir::Inst| {
            let (ir::Op::If | ir::Op::While) = inst.op else { return inst.args.contains(&predicate) };
            false
        };
        let is_listed =
            |list: &Vec<(Val, Val)>| list.iter().any(|pair| pair.0 == predicate || pair.1 == predicate);
        !self.function.insts.iter().any(is_used) && !self.function.lists.iter().any(is_listed)
    }

    /// The predicate of one lane that says whether any lane is set.
    fn any_as_scalar(&mut self, any: Reg) -> Reg {
        let (elem, lanes) = (self.mask_elem(any), self.code.lanes);
        self.control(Op::If, elem, lanes, &[any]);
        let yes = self.constant_predicate(true, 1);
        self.control(Op::Else, Elem::Bit, 1, &[]);
        let no = self.constant_predicate(false, 1);
        let joined = self.code.reg(Class::Mask);
        self.mask_elems.insert(joined, Elem::I32);
        let list = self.list([joined, yes, no]);
        self.control(Op::EndIf(list), Elem::Bit, 1, &[]);
        joined
    }

    /// Whether a predicate holds for any lane of the copies.
    fn any(&mut self, predicate: Val) -> Result<Reg> {
        let copies = self.row.map_or(1, |row| row.copies);
        let lanes = self.code.lanes;
        let mut any = self.vector(predicate, 0);
        let elem = self.mask_elem(any);
        for copy in 1..copies {
            let other = self.vector(predicate, copy);
            let other = self.mask_for(other, elem, lanes);
            any = self.mask_op(Op::MaskOr, elem, lanes, &[any, other]);
        }
        if let Some(end) = self.row.and_then(|row| row.end) {
            let mask = self.mask_for(end.mask, elem, lanes);
            any = self.mask_op(Op::MaskAnd, elem, lanes, &[any, mask]);
        }
        Ok(any)
    }

    fn mask_op(&mut self, op: Op, elem: Elem, lanes: u8, src: &[Reg]) -> Reg {
        let mask = self.emit(op, elem, lanes, Class::Mask, src);
        self.mask_elems.insert(mask, elem);
        mask
    }

    /// The positions of the lanes in the row.
    fn positions(&mut self, elem: Elem) -> Result<Copies> {
        let row = self.row.expect("positions are of rows");
        let lanes = self.code.lanes;
        let mut first = self.constant(Constant::Iota(elem));
        if let Some(position) = row.position {
            let scalar = self.emit(Op::OfGeneral, elem, 1, Class::Vector, &[position]);
            let start = self.emit(Op::Splat, elem, lanes, Class::Vector, &[scalar]);
            first = self.emit(Op::Add, elem, lanes, Class::Vector, &[first, start]);
        }
        let mut regs = Copies::new();
        for copy in 0..row.copies {
            let number = row.offset + (copy * usize::from(lanes)) as i64;
            let mut position = first;
            if number != 0 {
                let number = self.constant(Constant::Splat(elem, number as u64));
                position = self.emit(Op::Add, elem, lanes, Class::Vector, &[position, number]);
            }
            regs.push(position);
        }
        Ok(regs)
    }

    /// An op on the lanes of registers. `from` is the type of the operands; constants are known bits of theirs.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are lowered elsewhere")]
    pub(super) fn op(
        &mut self,
        op: ir::Op,
        elem: Elem,
        from: Elem,
        lanes: u8,
        src: &[Reg],
        constants: [Option<u64>; 3],
    ) -> Result<Reg> {
        if from == Elem::Bit {
            let (ir::Op::Convert(_) | ir::Op::Select) = op else {
                return self.predicate_op(op, lanes, src);
            };
        }
        let is_float = elem.is_float();
        let direct = match op {
            ir::Op::Not => Op::Not,
            ir::Op::Sqrt => Op::Sqrt,
            ir::Op::Floor => Op::Floor,
            ir::Op::Ceil => Op::Ceil,
            ir::Op::Trunc => Op::Trunc,
            ir::Op::PopCount => Op::PopCount,
            ir::Op::LeadingZeros => Op::LeadingZeros,
            ir::Op::Add => Op::Add,
            ir::Op::Sub => Op::Sub,
            ir::Op::Mul => Op::Mul,
            ir::Op::Div => Op::Div,
            ir::Op::Min | ir::Op::Max if is_float => {
                return self.float_extreme(op, elem, lanes, src, constants);
            }
            ir::Op::Min => Op::Min,
            ir::Op::Max => Op::Max,
            ir::Op::MinU => Op::MinU,
            ir::Op::MaxU => Op::MaxU,
            ir::Op::And => Op::And,
            ir::Op::Or => Op::Or,
            ir::Op::Xor => Op::Xor,
            ir::Op::AndNot => Op::AndNot,
            ir::Op::Shl => Op::Shl,
            ir::Op::Shr => Op::Shr,
            ir::Op::Sar => Op::Sar,
            ir::Op::ShlBy(by) => Op::ShlBy(by),
            ir::Op::ShrBy(by) => Op::ShrBy(by),
            ir::Op::SarBy(by) => Op::SarBy(by),
            ir::Op::RotBy(by) => Op::RotBy(by),
            ir::Op::Scale => Op::Scale,
            ir::Op::Fma => Op::Fma,
            ir::Op::Fnma => Op::Fnma,
            ir::Op::Flip => Op::Flip,
            ir::Op::Compare(cmp) => return self.comparison(Op::Compare(cmp), from, lanes, src),
            ir::Op::Test => return self.comparison(Op::Test, from, lanes, src),
            ir::Op::DivS | ir::Op::DivU => {
                return self.quotient(op == ir::Op::DivS, elem, lanes, src, constants[1]);
            }
            ir::Op::RemS | ir::Op::RemU => {
                return self.remainder(op == ir::Op::RemS, elem, lanes, src, constants[1]);
            }
            ir::Op::Select if elem == Elem::Bit => return self.select_predicate(lanes, src),
            ir::Op::Select => {
                let mask = self.mask_for(src[0], elem, lanes);
                return self.machine(Op::Select, elem, lanes, &[mask, src[1], src[2]]);
            }
            ir::Op::Convert(conv) => return self.convert(conv, elem, from, lanes, src[0]),
            ir::Op::Apply(rare) => {
                let position = self.applied.iter().position(|applied| *applied == (rare, elem));
                let position = position.expect("the function lists what it applies") as u16;
                Op::Apply(self.function.kernels + position)
            }
            op => return Err(Unsupported(format!("{op:?}"))),
        };
        self.machine(direct, elem, lanes, src)
    }

    /// An instruction of vectors, if the machine has it, or what does the same.
    pub(super) fn machine(&mut self, op: Op, elem: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        if self.target.has(op, elem) {
            return Ok(self.emit(op, elem, lanes, Class::Vector, src));
        }
        self.expand(op, elem, lanes, src)
    }

    fn comparison(&mut self, op: Op, from: Elem, lanes: u8, src: &[Reg]) -> Result<Reg> {
        if !self.target.has(op, from) {
            return Err(Unsupported(format!("{op:?} of {from}")));
        }
        let mask = self.emit(op, from, lanes, Class::Mask, src);
        self.mask_elems.insert(mask, from.integer());
        Ok(mask)
    }

    /// An op of predicates.
    #[expect(clippy::wildcard_enum_match_arm, reason = "predicates have few ops")]
    fn predicate_op(&mut self, op: ir::Op, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let elem = self.mask_elem(src[0]);
        let mut src: SmallVec<[Reg; 6]> = src.into();
        for at in 1..src.len() {
            src[at] = self.mask_for(src[at], elem, lanes);
        }
        Ok(match op {
            ir::Op::Not => self.mask_op(Op::MaskNot, elem, lanes, &src),
            ir::Op::And => self.mask_op(Op::MaskAnd, elem, lanes, &src),
            ir::Op::Or => self.mask_op(Op::MaskOr, elem, lanes, &src),
            ir::Op::Xor | ir::Op::Compare(Cmp::Ne) => self.mask_op(Op::MaskXor, elem, lanes, &src),
            ir::Op::AndNot => self.mask_op(Op::MaskAndNot, elem, lanes, &src),
            ir::Op::Compare(Cmp::Eq) => {
                let differ = self.mask_op(Op::MaskXor, elem, lanes, &src);
                self.mask_op(Op::MaskNot, elem, lanes, &[differ])
            }
            op => return Err(Unsupported(format!("{op:?} of predicates"))),
        })
    }

    /// Selects a predicate by another.
    fn select_predicate(&mut self, lanes: u8, src: &[Reg]) -> Result<Reg> {
        let elem = self.mask_elem(src[0]);
        let (a, b) = (self.mask_for(src[1], elem, lanes), self.mask_for(src[2], elem, lanes));
        let a = self.mask_op(Op::MaskAnd, elem, lanes, &[a, src[0]]);
        let b = self.mask_op(Op::MaskAndNot, elem, lanes, &[b, src[0]]);
        Ok(self.mask_op(Op::MaskOr, elem, lanes, &[a, b]))
    }

    // Memory.

    /// Lowers an access.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the caller passes accesses")]
    pub(super) fn memory(&mut self, value: Val) -> Result<()> {
        let inst = *self.function.inst(value);
        match inst.op {
            ir::Op::Load(access) => {
                let regs = self.load(access, inst.ty.elem)?;
                if let (Some(_), 0) = (self.row, self.function.access(access).lane) {
                    // It is in all lanes already.
                    self.splats[value.index()] = regs[0];
                    self.known.push(Known::Splat(value));
                }
                self.values[value.index()] = regs;
            }
            ir::Op::Store(access) => self.store(access, inst.args[0])?,
            ir::Op::Gather(access) => {
                let regs = self.gather(access, inst.ty, inst.args[0])?;
                self.values[value.index()] = regs;
            }
            _ => unreachable!("it is an access"),
        }
        Ok(())
    }

    /// The address of the elements of a copy of the row, which are side by side.
    fn row_address(&mut self, access: AccessId, elem: Elem, copy: usize) -> Result<Mem> {
        let mem = self.address_of(access);
        let row = self.row.expect("rows have addresses");
        let elements = row.offset + (copy * usize::from(self.code.lanes)) as i64;
        let offset = i64::from(mem.offset) + elements * elem.bytes() as i64;
        let offset = i32::try_from(offset).map_err(|_| Unsupported("a row so long".to_owned()))?;
        let (index, scale) = match row.position {
            Some(position) => (position, elem.bytes() as u8),
            None => (Reg::NONE, 1),
        };
        Ok(Mem { index, scale, offset, ..mem })
    }

    /// The lanes of an access: all, or those that the row has.
    fn part(&mut self, elem: Elem) -> Part {
        match self.row.and_then(|row| row.end) {
            None => Part::All,
            Some(end) if self.target.has_masked_access(elem) => {
                Part::Mask(self.mask_for(end.mask, elem, self.code.lanes))
            }
            Some(end) => Part::Count(end.count),
        }
    }

    fn access_inst(&mut self, op: Op, elem: Elem, lanes: u8, mem: Mem, part: Part) -> Reg {
        let dst = self.code.reg(Class::Vector);
        self.push(Inst { op, elem, lanes, dst, src: [Reg::NONE; 3], mem, part });
        dst
    }

    fn load(&mut self, access: AccessId, elem: Elem) -> Result<Copies> {
        let lane = self.function.access(access).lane;
        if lane == 0 {
            let mem = self.address_of(access);
            let (op, lanes) =
                if self.row.is_some() { (Op::LoadSplat, self.code.lanes) } else { (Op::Load, 1) };
            return Ok(SmallVec::from_slice(&[self.access_inst(op, elem, lanes, mem, Part::All)]));
        }
        let row = self.row.expect("vectors are of rows");
        let lanes = self.code.lanes;
        let mut regs = Copies::new();
        if lane == elem.bytes() as i64 {
            let part = self.part(elem);
            let op = if part == Part::All { Op::Load } else { Op::LoadPart };
            for copy in 0..row.copies {
                let mem = self.row_address(access, elem, copy)?;
                regs.push(self.access_inst(op, elem, lanes, mem, part));
            }
            return Ok(regs);
        }
        if lane == -(elem.bytes() as i64) && row.end.is_none() && self.target.has(Op::Reverse, elem) {
            let first = self.strided_address(access)?;
            for copy in 0..row.copies {
                let mem = moved(first, ((copy + 1) * usize::from(lanes) - 1) as i64 * lane)?;
                let vector = self.access_inst(Op::Load, elem, lanes, mem, Part::All);
                regs.push(self.emit(Op::Reverse, elem, lanes, Class::Vector, &[vector]));
            }
            return Ok(regs);
        }
        // Strided: the elements at multiples of the stride.
        let stride = lane / elem.bytes() as i64;
        if stride * elem.bytes() as i64 != lane {
            return Err(Unsupported("a stride between elements".to_owned()));
        }
        let from = if self.limits.vector_bytes / usize::from(lanes) == 8 { Elem::I64 } else { Elem::I32 };
        if usize::from(lanes) * from.bytes() > self.limits.vector_bytes {
            return Err(Unsupported("narrow elements that are apart".to_owned()));
        }
        let positions = self.stride_positions(from, stride)?;
        let first = self.strided_address(access)?;
        for copy in 0..row.copies {
            let mem = moved(first, (copy * usize::from(lanes)) as i64 * lane)?;
            let positions = self.present_positions(positions, from);
            regs.push(self.gather_inst(elem, from, positions, mem)?);
        }
        Ok(regs)
    }

    /// Where the first lane of the row is that is done, where lanes are apart.
    fn strided_address(&mut self, access: AccessId) -> Result<Mem> {
        let (lane, mut mem) = (self.function.access(access).lane, self.address_of(access));
        let row = self.row.expect("rows have addresses");
        if let Some(position) = row.position {
            let bytes = i32::try_from(lane).map_err(|_| Unsupported("a stride so long".to_owned()))?;
            let moved = self.general(Op::MulNumber(bytes), &[position]);
            mem.base = self.general(Op::GeneralAdd, &[mem.base, moved]);
        }
        moved(mem, row.offset * lane)
    }

    /// The positions of lanes so many elements apart.
    fn stride_positions(&mut self, elem: Elem, stride: i64) -> Result<Reg> {
        if let Some(&known) = self.strides.get(&(elem, stride)) {
            return Ok(known);
        }
        let iota = self.constant(Constant::Iota(elem));
        let by = self.constant(Constant::Splat(elem, stride as u64 & (u64::MAX >> (64 - 8 * elem.bytes()))));
        let reg = self.machine(Op::Mul, elem, self.code.lanes, &[iota, by])?;
        self.strides.insert((elem, stride), reg);
        self.known.push(Known::Strides((elem, stride)));
        Ok(reg)
    }

    /// Positions of lanes that the row has; others are 0, which can be read.
    fn present_positions(&mut self, positions: Reg, elem: Elem) -> Reg {
        let Some(end) = self.row.and_then(|row| row.end) else { return positions };
        let lanes = self.code.lanes;
        let mask = self.mask_for(end.mask, elem, lanes);
        let zero = self.constant(Constant::Splat(elem, 0));
        self.emit(Op::Select, elem, lanes, Class::Vector, &[mask, positions, zero])
    }

    fn gather_inst(&mut self, elem: Elem, from: Elem, positions: Reg, mem: Mem) -> Result<Reg> {
        let op = Op::Gather(from);
        if !self.target.has(op, elem) {
            return Err(Unsupported(format!("gather of {elem}")));
        }
        let dst = self.code.reg(Class::Vector);
        let src = [positions, Reg::NONE, Reg::NONE];
        self.push(mir::Inst { op, elem, lanes: self.code.lanes, dst, src, mem, part: Part::All });
        Ok(dst)
    }

    fn gather(&mut self, access: AccessId, ty: ir::Ty, position: Val) -> Result<Copies> {
        let from = self.function.ty(position).elem;
        if !ty.is_vector {
            let mut index = self.scalar(position);
            if from != Elem::Index {
                index = self.general_of(from, index);
            }
            let mem = Mem { index, scale: ty.elem.bytes() as u8, ..self.address_of(access) };
            let (op, lanes) =
                if self.row.is_some() { (Op::LoadSplat, self.code.lanes) } else { (Op::Load, 1) };
            return Ok(SmallVec::from_slice(&[self.access_inst(op, ty.elem, lanes, mem, Part::All)]));
        }
        let row = self.row.expect("vectors are of rows");
        let mut regs = Copies::new();
        for copy in 0..row.copies {
            let positions = self.vector(position, copy);
            let positions = self.present_positions(positions, from);
            let mem = self.address_of(access);
            regs.push(self.gather_inst(ty.elem, from, positions, mem)?);
        }
        Ok(regs)
    }

    fn store(&mut self, access: AccessId, value: Val) -> Result<()> {
        let elem = self.function.ty(value).elem;
        let known = self.function.access(access);
        let (lane, is_streaming) = (known.lane, known.is_streaming);
        let push = |this: &mut Self, op, lanes, value, mem, part| {
            let src = [value, Reg::NONE, Reg::NONE];
            this.push(Inst { op, elem, lanes, dst: Reg::NONE, src, mem, part });
        };
        if lane == 0 {
            let value = self.scalar(value);
            let mem = self.address_of(access);
            push(self, Op::Store, 1, value, mem, Part::All);
            return Ok(());
        }
        if lane != elem.bytes() as i64 {
            return Err(Unsupported("a strided store".to_owned()));
        }
        let row = self.row.expect("vectors are of rows");
        let part = self.part(elem);
        let op = match part {
            Part::All if is_streaming && self.target.has(Op::StoreStreaming, elem) => Op::StoreStreaming,
            Part::All => Op::Store,
            Part::Count(_) | Part::Mask(_) => Op::StorePart,
        };
        for copy in 0..row.copies {
            let value = self.vector(value, copy);
            let mem = self.row_address(access, elem, copy)?;
            push(self, op, self.code.lanes, value, mem, part);
        }
        Ok(())
    }
}
