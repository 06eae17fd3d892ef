//! Loads and stores on the machine, at all kinds of addresses, and that they touch no other byte.

use super::harness::{Bytes, FunctionBuilder, Random, allocated_inst, mask_bytes};
use super::lanes::{ELEMS, lane_counts};
use crate::compiler::emit::mir::{Elem, Inst, Mem, Op, Part, Reg};
use crate::compiler::emit::{Address, AllocatedInst, AllocatedPart, Constraint, OperandLocation, Target};

/// Two pages of memory, behind which there is none.
struct Pages(*mut u8);

const PAGES: usize = 8192;

impl Pages {
    fn new() -> Pages {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: this asks for new memory.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGES + 4096,
                access,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the last page is ours.
        unsafe { assert_eq!(libc::mprotect(at.add(PAGES), 4096, libc::PROT_NONE), 0) };
        Pages(at.cast())
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: these pages can be read and written, and nothing else refers to them.
        unsafe { std::slice::from_raw_parts_mut(self.0, PAGES) }
    }

    fn fill(&mut self, random: &mut Random) {
        for chunk in self.bytes().chunks_exact_mut(8) {
            chunk.copy_from_slice(&random.next().to_le_bytes());
        }
    }

    /// The address of a byte.
    fn at(&self, position: usize) -> u64 {
        self.0 as u64 + position as u64
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this memory is ours.
        unsafe { libc::munmap(self.0.cast(), PAGES + 4096) };
    }
}

/// An address that the arguments 0 and 1 give the base and the index for, and what the index is.
struct Addressed {
    address: Address,
    index: u64,
}

impl Addressed {
    /// In registers out of these, which it takes.
    fn choose(random: &mut Random, generals: &mut Vec<u8>) -> Addressed {
        let mut take = |random: &mut Random| generals.swap_remove(random.below(generals.len()));
        let base = take(random);
        let index = if random.below(2) == 0 { Some(take(random)) } else { None };
        let offset = random.choose(&[0, 1, 8, -64, 64, 127, 128, -128, -129, 4096, -8192, 8128, 1 << 20]);
        let scale = random.choose(&[1, 2, 4, 8]);
        let address = Address { base, index, scale, offset };
        Addressed { address, index: random.next() >> 40 }
    }

    fn load(&self, builder: &mut FunctionBuilder<'_>) {
        builder.argument(self.address.base, 0);
        if let Some(index) = self.address.index {
            builder.argument(index, 1);
        }
    }

    /// The base for an address to be this one.
    fn base(&self, target: u64) -> u64 {
        let index = if self.address.index.is_some() { self.index * u64::from(self.address.scale) } else { 0 };
        target.wrapping_sub(index).wrapping_sub(self.address.offset as u64)
    }
}

/// The constraint of an instruction with this address and part.
fn constraint(target: &dyn Target, inst: &AllocatedInst) -> Constraint {
    let some = |is_some| if is_some { Reg(0) } else { Reg::NONE };
    let mem = Mem { base: Reg(0), index: some(inst.mem.index.is_some()), scale: 1, offset: inst.mem.offset };
    let part = match inst.part {
        AllocatedPart::All => Part::All,
        AllocatedPart::Count(_) => Part::Count(Reg(0)),
        AllocatedPart::Mask(_) => Part::Mask(Reg(0)),
    };
    let AllocatedInst { op, elem, lanes, .. } = *inst;
    target.constraint(&Inst { op, elem, lanes, dst: Reg::NONE, src: [Reg::NONE; 3], mem, part })
}

/// Takes registers out of those that are left.
fn take<const N: usize>(random: &mut Random, from: &mut Vec<u8>, count: u8) -> [u8; N] {
    let mut taken = [0; N];
    for reg in taken.iter_mut().take(count.into()) {
        *reg = from.swap_remove(random.below(from.len()));
    }
    taken
}

/// An instruction with an address, a part and temporaries; what it was made with.
struct Made {
    inst: AllocatedInst,
    addressed: Addressed,
    vector: u8,
}

/// Makes an instruction with an address whose only vector operand, source or result, is `vector`.
fn make(
    builder: &mut FunctionBuilder<'_>,
    random: &mut Random,
    op: Op,
    elem: Elem,
    lanes: u8,
    is_part: bool,
) -> Made {
    let limits = builder.target.limits();
    let (mut generals, mut vectors) = (limits.generals.to_vec(), limits.vectors.to_vec());
    let mut masks = limits.masks.to_vec();
    let addressed = Addressed::choose(random, &mut generals);
    let [vector] = take(random, &mut vectors, 1);
    let part = if !is_part {
        AllocatedPart::All
    } else if !builder.target.has_masked_access(elem) {
        AllocatedPart::Count(take::<1>(random, &mut generals, 1)[0])
    } else {
        let from = if builder.has_masks() { &mut masks } else { &mut vectors };
        AllocatedPart::Mask(take::<1>(random, from, 1)[0])
    };
    let mut inst = AllocatedInst { mem: addressed.address, part, ..allocated_inst(op, elem, lanes) };
    if matches!(op, Op::Store | Op::StoreStreaming | Op::StorePart) {
        inst.src[0] = OperandLocation::Reg(vector);
    } else {
        inst.dst = vector;
    }
    let constraint = constraint(builder.target, &inst);
    inst.general_temps = take(random, &mut generals, constraint.general_temps);
    inst.vector_temps = take(random, &mut vectors, constraint.vector_temps);
    [inst.mask_temp] = take(random, &mut masks, constraint.mask_temps);
    Made { inst, addressed, vector }
}

fn filled(random: &mut Random) -> Bytes {
    Bytes(std::array::from_fn(|_| random.next() as u8))
}

/// Loads, stores and splats.
pub(crate) fn check_all(target: &dyn Target) {
    let mut random = Random(2);
    let mut pages = Pages::new();
    for elem in ELEMS {
        for lanes in lane_counts(target, elem.bytes()) {
            for _ in 0..12 {
                for op in [Op::Load, Op::LoadSplat] {
                    check_load(target, op, elem, lanes, &mut random, &mut pages);
                }
                for op in [Op::Store, Op::StoreStreaming] {
                    check_store(target, op, elem, lanes, &mut random, &mut pages);
                }
            }
        }
    }
}

fn check_load(target: &dyn Target, op: Op, elem: Elem, lanes: u8, random: &mut Random, pages: &mut Pages) {
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let made = make(&mut builder, random, op, elem, lanes, false);
    made.addressed.load(&mut builder);
    builder.push(made.inst);
    builder.store(made.vector, 2);
    pages.fill(random);
    let total = elem.bytes() * if op == Op::LoadSplat { 1 } else { usize::from(lanes) };
    let position = PAGES - total;
    let mut result = Bytes([0; 64]);
    let args = [made.addressed.base(pages.at(position)), made.addressed.index, &raw mut result as u64];
    assert_eq!(builder.finish().run(&args), 0);
    for (at, &byte) in result.0.iter().enumerate().take(usize::from(lanes) * elem.bytes()) {
        assert_eq!(byte, pages.bytes()[position + at % total], "{:?}", made.inst);
    }
}

fn check_store(target: &dyn Target, op: Op, elem: Elem, lanes: u8, random: &mut Random, pages: &mut Pages) {
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let made = make(&mut builder, random, op, elem, lanes, false);
    builder.load(made.vector, 2);
    made.addressed.load(&mut builder);
    builder.push(made.inst);
    pages.fill(random);
    let total = elem.bytes() * usize::from(lanes);
    let position = PAGES - total;
    let source = filled(random);
    let mut expected = pages.bytes().to_vec();
    expected[position..].copy_from_slice(&source.0[..total]);
    let args = [made.addressed.base(pages.at(position)), made.addressed.index, &raw const source as u64];
    assert_eq!(builder.finish().run(&args), 0);
    assert!(pages.bytes() == expected, "{:?}", made.inst);
}

/// Loads and stores of parts.
pub(crate) fn check_parts(target: &dyn Target) {
    let mut random = Random(3);
    let mut pages = Pages::new();
    for elem in ELEMS {
        for lanes in lane_counts(target, elem.bytes()) {
            for op in [Op::LoadPart, Op::StorePart] {
                for _ in 0..4 {
                    check_part(target, op, elem, lanes, &mut random, &mut pages);
                }
            }
        }
    }
}

fn check_part(target: &dyn Target, op: Op, elem: Elem, lanes: u8, random: &mut Random, pages: &mut Pages) {
    let is_load = op == Op::LoadPart;
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let made = make(&mut builder, random, op, elem, lanes, true);
    builder.load(made.vector, 2);
    if let AllocatedPart::Mask(mask) = made.inst.part {
        builder.load_mask(mask, 3);
    }
    made.addressed.load(&mut builder);
    if let AllocatedPart::Count(count) = made.inst.part {
        builder.argument(count, 3);
    }
    builder.push(made.inst);
    builder.store(made.vector, 4);
    let code = builder.finish();
    let bytes = elem.bytes();
    for count in 0..=u32::from(lanes) {
        let first = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        let is_count = matches!(made.inst.part, AllocatedPart::Count(_));
        // Lanes beyond the count are behind the memory.
        let position = PAGES - count as usize * bytes;
        let bits = if is_count { first } else { first & (random.next() | random.next()) };
        let source = filled(random);
        let mask = mask_bytes(bits, elem.integer(), lanes.into(), random);
        let above = if lanes == 64 { 0 } else { random.next() << lanes };
        let part = match made.inst.part {
            AllocatedPart::Count(_) => count.into(),
            AllocatedPart::Mask(_) | AllocatedPart::All if builder.has_masks() => bits | above,
            AllocatedPart::Mask(_) | AllocatedPart::All => &raw const mask as u64,
        };
        pages.fill(random);
        let mut expected = pages.bytes().to_vec();
        let mut loaded = Bytes([0; 64]);
        for lane in (0..count as usize).filter(|lane| bits >> lane & 1 != 0) {
            let at = position + lane * bytes;
            if is_load {
                loaded.0[lane * bytes..][..bytes].copy_from_slice(&expected[at..at + bytes]);
            } else {
                expected[at..at + bytes].copy_from_slice(&source.0[lane * bytes..][..bytes]);
            }
        }
        let mut result = Bytes([0; 64]);
        let base = made.addressed.base(pages.at(position));
        let result_at = &raw mut result as u64;
        let args = [base, made.addressed.index, &raw const source as u64, part, result_at];
        assert_eq!(code.run(&args), 0);
        assert!(pages.bytes() == expected, "{:?} of {count} lanes", made.inst);
        let total = usize::from(lanes) * bytes;
        if is_load {
            assert_eq!(result.0[..total], loaded.0[..total], "{:?} of {count} lanes, {bits:x}", made.inst);
        }
    }
}

/// Gathers.
pub(crate) fn check_gathers(target: &dyn Target) {
    let mut random = Random(4);
    let mut pages = Pages::new();
    for elem in ELEMS {
        for from in [Elem::I32, Elem::I64] {
            if !target.has(Op::Gather(from), elem) {
                continue;
            }
            for lanes in lane_counts(target, elem.bytes().max(from.bytes())) {
                for _ in 0..20 {
                    check_gather(target, elem, from, lanes, &mut random, &mut pages);
                }
            }
        }
    }
}

fn check_gather(
    target: &dyn Target,
    elem: Elem,
    from: Elem,
    lanes: u8,
    random: &mut Random,
    pages: &mut Pages,
) {
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let is_part = random.below(3) == 0;
    let mut made = make(&mut builder, random, Op::Gather(from), elem, lanes, is_part);
    let is_early = constraint(target, &made.inst).is_early;
    let temps = made.inst.vector_temps;
    let position = loop {
        let reg = random.choose(target.limits().vectors);
        if !(is_early && reg == made.inst.dst
            || temps.contains(&reg)
            || !builder.has_masks() && made.inst.part == AllocatedPart::Mask(reg))
        {
            break reg;
        }
    };
    made.inst.src[0] = OperandLocation::Reg(position);
    builder.load(position, 2);
    if let AllocatedPart::Mask(mask) = made.inst.part {
        builder.load_mask(mask, 4);
    }
    made.addressed.load(&mut builder);
    builder.push(made.inst);
    builder.store(made.vector, 3);
    pages.fill(random);
    // Positions count from the middle.
    let (middle, most) = (PAGES / 2, PAGES / 2 / elem.bytes());
    let mut positions = filled(random);
    let bits = if made.inst.part == AllocatedPart::All { u64::MAX } else { random.next() };
    let mask = mask_bytes(bits, elem.integer(), lanes.into(), random);
    let part = if builder.has_masks() { bits } else { &raw const mask as u64 };
    let mut expected = Bytes([0; 64]);
    for lane in 0..usize::from(lanes) {
        let at = random.below(2 * most) as i64 - most as i64;
        if bits >> lane & 1 == 0 {
            // Nothing is there.
            positions.set(lane, from, 1 << 30);
            continue;
        }
        positions.set(lane, from, at as u64);
        let at = (middle as i64 + at * elem.bytes() as i64) as usize;
        expected.0[lane * elem.bytes()..][..elem.bytes()]
            .copy_from_slice(&pages.bytes()[at..at + elem.bytes()]);
    }
    let mut result = Bytes([0; 64]);
    let base = made.addressed.base(pages.at(middle));
    let args = [base, made.addressed.index, &raw const positions as u64, &raw mut result as u64, part];
    assert_eq!(builder.finish().run(&args), 0);
    let total = usize::from(lanes) * elem.bytes();
    assert_eq!(result.0[..total], expected.0[..total], "{:?}", made.inst);
}
