//! Frames: what functions do at their entry and their exits, and calls.
//!
//! From the stack pointer up there are the line for the ends of rows, the slots, and the arguments of calls.
//! Above, at the frame pointer, are the caller's registers and the caller's floating-point control.

use super::super::{Address, Allocated, OperandLocation};
use super::encode::{Condition, Immediate};
use super::general::argument;
use super::{Assembler, LINE, RAX, RBP, RBX, RDI, RSI, RSP, Rm, SCRATCH, general_operand, line, slot};

/// The bits of the floating-point control that matter, and their value: no traps, to nearest, no flushes to
/// 0.
const CONTROL_MASK: i32 = 0xffc0;
const CONTROL: i32 = 0x1f80;

/// Registers that the callee saves, but for those that frames use always.
const SAVED: [u8; 4] = [12, 13, 14, 15];

/// What code must know of its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where the arguments of calls are, as a slot: behind all slots.
    outgoing: u32,
    /// The word of the first kernel among the caller's arguments.
    words: u32,
}

impl Frame {
    pub(super) fn new(function: &Allocated) -> Frame {
        Frame { outgoing: function.slots.next_multiple_of(8), words: function.words }
    }
}

/// An address below the frame pointer.
fn below(bytes: i32) -> Address {
    Address { base: RBP, index: None, scale: 1, offset: -bytes }
}

fn push(asm: &mut Assembler, reg: u8) {
    if reg < 8 { asm.raw([0x50 | reg]) } else { asm.raw([0x41, 0x50 | (reg & 7)]) }
}

fn pop(asm: &mut Assembler, reg: u8) {
    if reg < 8 { asm.raw([0x58 | reg]) } else { asm.raw([0x41, 0x58 | (reg & 7)]) }
}

impl Assembler {
    /// The callee's registers that are named, beside the one for the arguments.
    fn saved(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        let generals = self.generals;
        SAVED.into_iter().filter(move |reg| generals >> reg & 1 != 0)
    }

    /// Calls a kernel.
    pub(super) fn call(&mut self, frame: Frame, kernel: u16, args: &[OperandLocation]) {
        self.outgoing = self.outgoing.max(args.len() as u32);
        for (at, &arg) in args.iter().enumerate() {
            let from = match arg {
                OperandLocation::Reg(reg) => reg,
                OperandLocation::Slot(_) | OperandLocation::Pool(_) | OperandLocation::None => {
                    self.general_copy(SCRATCH, general_operand(arg));
                    SCRATCH
                }
            };
            self.general_store(slot(frame.outgoing + 8 * at as u32), from);
        }
        self.call_kernel(frame, kernel);
        self.legacy(false, 0x85, RAX, Rm::Reg(RAX), Immediate::None);
        self.exit(Condition::NotEqual);
    }

    /// Calls a kernel with the address of the line and a number of lanes, which are there. It always succeeds.
    pub(super) fn apply(&mut self, frame: Frame, kernel: u16, lanes: u8) {
        self.outgoing = self.outgoing.max(2);
        self.address(SCRATCH, line());
        self.general_store(slot(frame.outgoing), SCRATCH);
        self.number(SCRATCH, lanes.into());
        self.general_store(slot(frame.outgoing + 8), SCRATCH);
        self.call_kernel(frame, kernel);
    }

    /// Calls a kernel, whose arguments are there.
    fn call_kernel(&mut self, frame: Frame, kernel: u16) {
        let word = frame.words + 2 * u32::from(kernel);
        self.argument(RDI, word + 1);
        self.address(RSI, slot(frame.outgoing));
        self.vzeroupper();
        self.legacy(false, 0xff, 2, Rm::At(argument(word), 8), Immediate::None);
    }

    fn vzeroupper(&mut self) {
        self.raw([0xc5, 0xf8, 0x77]);
    }

    /// Where the caller's floating-point control is; ours is four bytes above.
    fn control(&self) -> i32 {
        8 * (self.saved().count() as i32 + 2)
    }

    /// Loads or stores the floating-point control.
    fn control_register(&mut self, is_store: bool, bytes: i32) {
        self.legacy(false, 0x0fae, if is_store { 3 } else { 2 }, Rm::At(below(bytes), 4), Immediate::None);
    }

    /// Compares the caller's floating-point control with ours; the flags then say whether they are equal.
    fn compare_control(&mut self, control: i32) {
        self.legacy(false, 0x8b, SCRATCH, Rm::At(below(control), 4), Immediate::None);
        self.legacy(false, 0x81, 4, Rm::Reg(SCRATCH), Immediate::Four(CONTROL_MASK));
        self.legacy(false, 0x81, 7, Rm::Reg(SCRATCH), Immediate::Four(CONTROL));
    }

    /// The code before the body, which this assembler has, in one of its own. Its length is a multiple of 32.
    pub(super) fn prologue(&self, frame: Frame) -> Assembler {
        let mut asm = Assembler::new(128, 0, 0);
        asm.raw([0xf3, 0x0f, 0x1e, 0xfa]);
        push(&mut asm, RBP);
        asm.legacy(true, 0x8b, RBP, Rm::Reg(RSP), Immediate::None);
        push(&mut asm, RBX);
        for reg in self.saved() {
            push(&mut asm, reg);
        }
        let control = self.control();
        let bytes = (LINE + frame.outgoing + 8 * self.outgoing).next_multiple_of(64);
        // Pages of the stack must be touched in order.
        for page in 1..=bytes.div_ceil(4096).saturating_sub(1) {
            let at = Address { base: RSP, index: None, scale: 1, offset: -4096 * page as i32 };
            asm.legacy(true, 0x83, 1, Rm::At(at, 8), Immediate::Byte(0));
        }
        let down = Address { base: RSP, index: None, scale: 1, offset: -(bytes as i32) - 8 };
        asm.address(RSP, down);
        asm.legacy(true, 0x83, 4, Rm::Reg(RSP), Immediate::Byte(-64));
        asm.general_copy(RBX, Rm::Reg(RDI));
        asm.control_register(true, control);
        asm.compare_control(control);
        let is_ours = asm.skip(Condition::Equal);
        asm.legacy(false, 0xc7, 0, Rm::At(below(control - 4), 4), Immediate::Four(CONTROL));
        asm.control_register(false, control - 4);
        asm.bind_skip(is_ours);
        asm.align(32);
        asm
    }

    /// The code behind the body, and its position: that where the status is in eax.
    pub(super) fn epilogue(&mut self) -> u32 {
        self.legacy(false, 0x33, RAX, Rm::Reg(RAX), Immediate::None);
        let exit = self.here() as u32;
        if self.is_streaming {
            self.raw([0x0f, 0xae, 0xf8]);
        }
        self.vzeroupper();
        let control = self.control();
        self.compare_control(control);
        let is_ours = self.skip(Condition::Equal);
        self.control_register(false, control);
        self.bind_skip(is_ours);
        self.address(RSP, below(control - 8));
        for reg in self.saved().rev() {
            pop(self, reg);
        }
        pop(self, RBX);
        pop(self, RBP);
        self.raw([0xc3]);
        exit
    }

    /// Fills up to a multiple of so many bytes.
    pub(super) fn align(&mut self, to: usize) {
        let end = self.here().next_multiple_of(to);
        while self.here() < end {
            self.pad(end - self.here());
        }
    }

    /// Up to so many bytes of one instruction that does nothing.
    fn pad(&mut self, bytes: usize) {
        match bytes {
            0 => {}
            1 => self.raw([0x90]),
            2 => self.raw([0x66, 0x90]),
            3 => self.raw([0x0f, 0x1f, 0x00]),
            4 => self.raw([0x0f, 0x1f, 0x40, 0]),
            5 => self.raw([0x0f, 0x1f, 0x44, 0, 0]),
            6 => self.raw([0x66, 0x0f, 0x1f, 0x44, 0, 0]),
            7 => self.raw([0x0f, 0x1f, 0x80, 0, 0, 0, 0]),
            8 => self.raw([0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]),
            _ => self.raw([0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]),
        }
    }
}
