//! Executes the steps of a function.

use smallvec::SmallVec;

use super::super::ir::{BoundKernel, Elem, Status};
use super::Interpreter;
use super::lanes::{self, BLOCK, Reducer, STEP, VectorFn};
use super::step::{KernelCall, NONE, SPLAT, Slot, Step, VIEW};

/// One run of a function.
pub(super) struct InterpreterRun<'a> {
    pub(super) interpreter: &'a Interpreter,
    pub(super) args: *const u64,
    pub(super) frame: *mut u8,
    /// The position of the block's first element in its row.
    pub(super) start: usize,
    /// The elements of the block.
    pub(super) count: usize,
}

impl InterpreterRun<'_> {
    /// The address of a slot of the frame.
    #[inline(always)]
    fn at(&self, slot: Slot) -> *mut u8 {
        self.frame.wrapping_add(slot as usize)
    }

    /// A number of eight bytes.
    ///
    /// # Safety
    /// The slot has one.
    #[inline(always)]
    unsafe fn index(&self, slot: Slot) -> i64 {
        // SAFETY: as the caller says. Scalars are aligned to eight bytes.
        unsafe { self.at(slot).cast::<i64>().read() }
    }

    /// Where an operand of a vector op is.
    ///
    /// # Safety
    /// A view has been made.
    #[inline(always)]
    unsafe fn operand(&self, slot: Slot) -> *mut u8 {
        let at = self.at(slot & !(SPLAT | VIEW));
        // SAFETY: as the caller says.
        if slot & VIEW != 0 { unsafe { at.cast::<*mut u8>().read() } } else { at }
    }

    /// Executes an op of vectors.
    ///
    /// # Safety
    /// The operands are registers that the op expects, and the result is elements of so many bytes.
    #[inline(always)]
    unsafe fn each(&self, run: VectorFn, to: *mut u8, bytes: u8, from: [Slot; 3]) {
        let [a, b, c] = from.map(|slot| self.at(slot & !SPLAT));
        // SAFETY: as the caller says.
        run(unsafe { self.lanes(to, bytes) }, a, b, c, splats(from));
    }

    /// Whether the lanes of the block are whole steps and their address is aligned, so that ops can access
    /// them in place.
    #[inline(always)]
    fn is_in_steps(&self, address: *mut u8, bytes: u8) -> bool {
        self.count.is_multiple_of(STEP) && address.addr() & (usize::from(bytes) - 1) == 0
    }

    /// The steps of a result that have lanes of the block.
    ///
    /// # Safety
    /// They are elements of so many bytes, and no other reference to them is alive.
    #[inline(always)]
    unsafe fn lanes<'b>(&self, at: *mut u8, bytes: u8) -> &'b mut [u8] {
        // SAFETY: as the caller says.
        unsafe { std::slice::from_raw_parts_mut(at, self.count.next_multiple_of(STEP) * usize::from(bytes)) }
    }

    /// The address of a place's element, for the first lane of the block.
    ///
    /// # Safety
    /// The place is one of the function's, whose indices have been computed.
    #[inline(always)]
    unsafe fn address(&self, access: u32) -> (*mut u8, i64) {
        let access = self.interpreter.accesses[access as usize];
        let terms = &self.interpreter.terms[access.terms.0 as usize..access.terms.1 as usize];
        let mut offset = access.offset.wrapping_add(access.lane.wrapping_mul(self.start as i64));
        for term in terms {
            // SAFETY: as the caller says.
            offset = offset.wrapping_add(unsafe { self.index(term.index) }.wrapping_mul(term.stride));
        }
        // SAFETY: the caller's arguments begin with the pointers.
        let buffer = unsafe { self.args.add(access.buffer as usize).cast::<*mut u8>().read() };
        (buffer.wrapping_offset(offset as isize), access.lane)
    }

    /// Runs steps.
    ///
    /// # Safety
    /// They are those of the function, in order, on its frame and arguments.
    pub(super) unsafe fn all(&mut self, steps: &[Step]) -> Status {
        let mut next = 0;
        loop {
            let step = steps[next];
            next += 1;
            // SAFETY: `prepare` gives each step slots in the frame with what the step expects; the caller's
            // arguments are the function's.
            unsafe {
                match step {
                    Step::ScalarOp { run, to, from } => {
                        let [a, b, c] = from;
                        run(self.at(to), self.at(a), self.at(b), self.at(c));
                    }
                    Step::VectorOp { run, bytes, to, from } => self.each(run, self.at(to), bytes, from),
                    Step::VectorOpOfViews { run, bytes, to, from } => {
                        let [a, b, c] = from.map(|slot| self.operand(slot));
                        run(self.lanes(self.at(to), bytes), a, b, c, splats(from));
                    }
                    Step::View { to, register, access, bytes } => {
                        let address = self.address(access).0;
                        let at = if self.is_in_steps(address, bytes) {
                            address
                        } else {
                            let count = self.count * usize::from(bytes);
                            self.at(register).copy_from_nonoverlapping(address, count);
                            self.at(register)
                        };
                        self.at(to).cast::<*mut u8>().write(at);
                    }
                    Step::VectorOpToMemory { run, bytes, to, from, access } => {
                        let address = self.address(access).0;
                        if self.is_in_steps(address, bytes) {
                            self.each(run, address, bytes, from);
                        } else {
                            self.each(run, self.at(to), bytes, from);
                            address.copy_from_nonoverlapping(self.at(to), self.count * usize::from(bytes));
                        }
                    }
                    Step::Splat { run, to, from } => run(self.at(from), self.at(to), STEP),
                    Step::Move { run, register, access, is_block } => {
                        let (address, stride) = self.address(access);
                        run(address, stride, self.at(register), if is_block { self.count } else { 1 });
                    }
                    Step::Gather { run, to, positions, access, is_block } => {
                        let (address, stride) = self.address(access);
                        let count = if is_block { self.count } else { 1 };
                        run(address, stride, self.operand(positions), self.at(to), count);
                    }
                    Step::EndLanes { extent, begin, most } => {
                        self.start += self.count;
                        let rest = self.index(extent) as usize - self.start;
                        self.count = rest.min(most as usize);
                        if rest > 0 {
                            next = begin as usize;
                        } else {
                            (self.start, self.count) = (0, 1);
                        }
                    }
                    Step::EndLoop { counter, trips, begin } => {
                        let count = self.index(counter).wrapping_add(1);
                        self.at(counter).cast::<i64>().write(count);
                        if trips == NONE || count < self.index(trips) {
                            next = begin as usize;
                        }
                    }
                    Step::Unless { predicate, to } => {
                        if self.at(predicate).read() == 0 {
                            next = to as usize;
                        }
                    }
                    Step::Jump { to } => next = to as usize,
                    Step::Accumulate { reducer, lanes, count, value, bytes } => {
                        self.add(reducer, lanes, count as usize, value, bytes as usize);
                    }
                    Step::Loop { counter, trips, exit } => {
                        self.at(counter).cast::<i64>().write(0);
                        if trips != NONE && self.index(trips) <= 0 {
                            next = exit as usize;
                        }
                    }
                    Step::Lanes { extent, exit, most } => {
                        let extent = self.index(extent);
                        if extent > 0 {
                            (self.start, self.count) = (0, (extent as usize).min(most as usize));
                        } else {
                            next = exit as usize;
                        }
                    }
                    Step::Fill { reducer, from, lanes, count } => {
                        (reducer.fill)(self.at(from), self.at(lanes), count as usize);
                    }
                    Step::Combine { reducer, lanes, count, to } => {
                        (reducer.join)(self.at(lanes), count as usize);
                        self.at(to).cast::<u64>().write(self.at(lanes).cast::<u64>().read());
                    }
                    Step::Positions { run, to, bytes } => {
                        run(self.lanes(self.at(to), bytes), self.start);
                    }
                    Step::AnyLane { to, from } => {
                        let predicates = std::slice::from_raw_parts(self.at(from), self.count);
                        self.at(to).write(lanes::any(predicates).into());
                    }
                    Step::Call { call } => {
                        let status = self.call(&self.interpreter.calls[call as usize]);
                        if status != 0 {
                            return status;
                        }
                    }
                    Step::Constant { to, bits } => self.at(to).cast::<u64>().write(bits),
                    Step::Param { to, at, elem } => {
                        let bits = self.args.add(self.interpreter.buffers + at as usize).read();
                        let bits = if elem == Elem::Bit { bits & 1 } else { bits };
                        self.at(to).cast::<u64>().write(bits);
                    }
                    Step::Return => return 0,
                }
            }
        }
    }

    /// Adds a value to the lanes of an accumulator, step by step.
    ///
    /// # Safety
    /// The accumulator and the value are the fold's.
    unsafe fn add(&self, reducer: &'static Reducer, lanes: Slot, count: usize, value: Slot, bytes: usize) {
        // SAFETY: as the caller says.
        let (mut at, is_splat) = (unsafe { self.operand(value) }, value & SPLAT != 0);
        let most = if is_splat { STEP } else { BLOCK };
        let mut done = 0;
        while done < self.count {
            let number = (self.count - done).min(most);
            // SAFETY: as the caller says; a repeated value has a step, others have the block.
            unsafe { (reducer.add)(self.at(lanes), count, at, number, self.start + done) };
            done += number;
            at = if is_splat { at } else { at.wrapping_add(number * bytes) };
        }
    }

    /// Calls a kernel.
    ///
    /// # Safety
    /// The caller's arguments are the function's.
    unsafe fn call(&self, call: &KernelCall) -> Status {
        // SAFETY: the indices have been computed.
        let arg = |&slot: &Slot| unsafe { self.index(slot) as u64 };
        let args: SmallVec<[u64; 16]> = call.args.iter().map(arg).collect();
        // SAFETY: the kernels stand behind the scalars, two words each, which are aligned as words are.
        let kernel =
            unsafe { self.args.add(self.interpreter.words).cast::<BoundKernel>().add(call.kernel).read() };
        // SAFETY: the kernel takes these arguments.
        unsafe { (kernel.run)(kernel.context, args.as_ptr()) }
    }
}

/// The operands that are one step, bit by bit.
#[inline(always)]
fn splats([a, b, c]: [Slot; 3]) -> u32 {
    (a & SPLAT) | (b & SPLAT) << 1 | (c & SPLAT) << 2
}
