//! Running generated code.

use crate::compiler::emit::mir::{Class, Elem, Op, Reg};
use crate::compiler::emit::{
    Action, Address, Allocated, AllocatedInst, AllocatedPart, Constant, Entry, OperandLocation, Target,
    mask_class,
};

/// Memory that can be executed.
pub(crate) struct Executable {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Executable {
    pub(crate) fn new(code: &[u8]) -> Executable {
        let bytes = code.len().next_multiple_of(4096);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: this asks for new memory.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the memory is new and has room for the code.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), at.cast(), code.len());
            assert_eq!(libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_EXEC), 0);
        }
        Executable { at, bytes }
    }

    /// Where the code is.
    pub(crate) fn entry(&self) -> u64 {
        self.at as u64
    }

    /// Calls the code. Its accesses must be valid.
    pub(crate) fn run(&self, args: &[u64]) -> u32 {
        // SAFETY: the memory has a function of this type.
        let entry: Entry = unsafe { std::mem::transmute(self.at) };
        // SAFETY: tests pass the arguments that the code reads.
        unsafe { entry(args.as_ptr()) }
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: this memory is ours, and nothing runs in it.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Numbers without order.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0;
        (x ^ (x >> 33)).wrapping_mul(0xff51afd7ed558ccd) ^ (x >> 29)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 20) % bound as u64) as usize
    }

    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A vector's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Bytes(pub(crate) [u8; 64]);

impl Bytes {
    pub(crate) fn lane(&self, lane: usize, elem: Elem) -> u64 {
        let mut bits = [0; 8];
        let bytes = elem.bytes();
        bits[..bytes].copy_from_slice(&self.0[lane * bytes..][..bytes]);
        u64::from_le_bytes(bits)
    }

    pub(crate) fn set(&mut self, lane: usize, elem: Elem, bits: u64) {
        let bytes = elem.bytes();
        self.0[lane * bytes..][..bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
    }
}

/// An instruction without operands.
pub(crate) fn allocated_inst(op: Op, elem: Elem, lanes: u8) -> AllocatedInst {
    AllocatedInst {
        op,
        elem,
        lanes,
        dst: 0,
        src: [OperandLocation::None; 3],
        mem: Address { base: 0, index: None, scale: 1, offset: 0 },
        part: AllocatedPart::All,
        vector_temps: [0; 2],
        general_temps: [0; 2],
        mask_temp: 0,
    }
}

/// An instruction with these operands: registers 5 and 6, an address, and what is needed beside them.
pub(crate) fn inst_with_operands(op: Op, elem: Elem, lanes: u8) -> AllocatedInst {
    let src = [OperandLocation::Reg(5), OperandLocation::Reg(6), OperandLocation::None];
    let mem = Address { base: 13, index: Some(12), scale: 4, offset: 64 };
    let part = AllocatedPart::Mask(4);
    let [vector_temps, general_temps] = [[8, 9]; 2];
    AllocatedInst {
        dst: 3,
        src,
        mem,
        part,
        vector_temps,
        general_temps,
        mask_temp: 2,
        ..allocated_inst(op, elem, lanes)
    }
}

/// What actions are made for, and the actions.
pub(crate) struct FunctionBuilder<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) function: Allocated,
}

impl FunctionBuilder<'_> {
    pub(crate) fn new(target: &dyn Target, lanes: u8, words: u32) -> FunctionBuilder<'_> {
        FunctionBuilder { target, function: Allocated { lanes, words, slots: 4096, ..Allocated::default() } }
    }

    pub(crate) fn push(&mut self, inst: AllocatedInst) {
        self.function.actions.push(Action::Inst(inst));
    }

    pub(crate) fn argument(&mut self, to: u8, word: u16) {
        self.push(AllocatedInst { dst: to, ..allocated_inst(Op::Argument(word), Elem::Index, 1) });
    }

    /// An instruction on all bytes of a vector, at the address in a general register.
    fn whole(&self, op: Op, base: u8) -> AllocatedInst {
        let bytes = self.target.limits().vector_bytes as u8;
        AllocatedInst { mem: at(base), ..allocated_inst(op, Elem::I8, bytes) }
    }

    /// Loads a whole vector from where an argument points.
    pub(crate) fn load(&mut self, to: u8, word: u16) {
        self.argument(0, word);
        self.push(AllocatedInst { dst: to, ..self.whole(Op::Load, 0) });
    }

    pub(crate) fn store(&mut self, from: u8, word: u16) {
        self.argument(0, word);
        let src = [OperandLocation::Reg(from), OperandLocation::None, OperandLocation::None];
        self.push(AllocatedInst { src, ..self.whole(Op::Store, 0) });
    }

    pub(crate) fn spill(&mut self, class: Class, slot: u32, from: u8) {
        self.function.actions.push(Action::Spill { class, slot, from });
    }

    pub(crate) fn reload(&mut self, class: Class, to: u8, slot: u32) {
        self.function.actions.push(Action::Reload { class, to, slot });
    }

    /// Whether masks have registers of their own.
    pub(crate) fn has_masks(&self) -> bool {
        mask_class(&self.target.limits()) == Class::Mask
    }

    /// Loads a mask: from the argument itself, or from the vector where it points.
    pub(crate) fn load_mask(&mut self, to: u8, word: u16) {
        if self.has_masks() {
            self.argument(0, word);
            self.spill(Class::General, 2048, 0);
            self.reload(Class::Mask, to, 2048);
        } else {
            self.load(to, word);
        }
    }

    /// Stores the bits of a mask, or the vector that stands for it.
    pub(crate) fn store_mask(&mut self, from: u8, word: u16) {
        if self.has_masks() {
            self.spill(Class::Mask, 2048, from);
            self.reload(Class::General, 1, 2048);
            self.store_general(1, word);
        } else {
            self.store(from, word);
        }
    }

    /// Stores a general register, which is not the first.
    pub(crate) fn store_general(&mut self, from: u8, word: u16) {
        assert_ne!(from, 0);
        let src = [OperandLocation::Reg(from), OperandLocation::None, OperandLocation::None];
        self.push(AllocatedInst { src, dst: 5, ..allocated_inst(Op::OfGeneral, Elem::I64, 1) });
        self.argument(0, word);
        let src = [OperandLocation::Reg(5), OperandLocation::None, OperandLocation::None];
        self.push(AllocatedInst { src, mem: at(0), ..allocated_inst(Op::Store, Elem::I64, 1) });
    }

    pub(crate) fn constant(&mut self, constant: Constant) -> u32 {
        self.function.constants.push(constant);
        self.function.constants.len() as u32 - 1
    }

    pub(crate) fn finish(&self) -> Executable {
        Executable::new(&self.target.encode(&self.function))
    }
}

/// The address in a register.
pub(crate) fn at(base: u8) -> Address {
    Address { base, index: None, scale: 1, offset: 0 }
}

/// A mask as a vector: bit `i` says whether lane `i` is set; above the lanes there is anything.
pub(crate) fn mask_bytes(bits: u64, elem: Elem, lanes: usize, random: &mut Random) -> Bytes {
    let mut bytes = Bytes(std::array::from_fn(|_| random.next() as u8));
    for lane in 0..lanes {
        bytes.set(lane, elem, if bits >> lane & 1 != 0 { u64::MAX } else { 0 });
    }
    bytes
}

/// No register of the machine instructions.
pub(crate) const NONE: Reg = Reg::NONE;
