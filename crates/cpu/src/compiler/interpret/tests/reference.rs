//! The reference interpreter of tests: it follows the words of the IR one element at a time, without registers or
//! blocks.

use std::collections::HashMap;

use super::super::super::ir::{Access, Elem, Function, Op, Val};
use super::super::compute;

/// Runs a function, which calls no kernels, on the same arguments as `Interpreter::run`.
///
/// # Safety
/// As there.
pub(super) unsafe fn evaluate(function: &Function, args: &[u64]) {
    let mut reference = ReferenceInterpreter {
        function,
        args,
        values: vec![0; function.insts.len()],
        lane: 0,
        accumulators: HashMap::new(),
        next: Vec::new(),
    };
    reference.block(0, function.insts.len());
}

/// Whether a loop goes on.
#[derive(PartialEq)]
enum Flow {
    On,
    Leave,
}

struct ReferenceInterpreter<'a> {
    function: &'a Function,
    args: &'a [u64],
    values: Vec<u64>,
    lane: i64,
    /// The lanes of accumulators.
    accumulators: HashMap<Val, Vec<u64>>,
    /// The accumulators of the next row.
    next: Vec<Val>,
}

impl ReferenceInterpreter<'_> {
    fn get(&self, value: Val) -> u64 {
        self.values[value.index()]
    }

    fn copy(&mut self, from: Val, to: Val) {
        self.values[to.index()] = self.get(from);
    }

    fn address(&self, access: &Access) -> *mut u8 {
        let mut offset = access.offset + self.lane * access.lane;
        for &(index, stride) in &access.terms {
            offset += self.get(index) as i64 * stride;
        }
        (self.args[usize::from(access.buffer)] as *mut u8).wrapping_offset(offset as isize)
    }

    fn read(&self, address: *mut u8, elem: Elem) -> u64 {
        let mut word = [0; 8];
        // SAFETY: the function accesses what is in memory.
        unsafe { address.copy_to_nonoverlapping(word.as_mut_ptr(), elem.bytes()) };
        u64::from_le_bytes(word)
    }

    /// The end of the block that an instruction begins, or the other side of a condition.
    fn end(&self, begin: usize) -> usize {
        let mut depth = 0;
        for (at, inst) in self.function.insts.iter().enumerate().skip(begin + 1) {
            if let Op::If | Op::Loop | Op::Lanes = inst.op {
                depth += 1;
            } else if depth == 0 && matches!(inst.op, Op::Else | Op::EndIf(_) | Op::EndLoop(_) | Op::EndLanes)
            {
                return at;
            } else if let Op::EndIf(_) | Op::EndLoop(_) | Op::EndLanes = inst.op {
                depth -= 1;
            }
        }
        unreachable!("a block has an end")
    }

    fn behind(&self, from: usize, op: Op) -> Vec<Val> {
        let insts = self.function.insts[from..].iter();
        (from as u32..).zip(insts.take_while(|inst| inst.op == op)).map(|(at, _)| Val(at)).collect()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are ops of values")]
    fn block(&mut self, begin: usize, end: usize) -> Flow {
        let mut at = begin;
        while at < end {
            let inst = *self.function.inst(Val(at as u32));
            let [a, b, _] = inst.args;
            let args = inst.args.map(|arg| if arg.is_some() { self.get(arg) } else { 0 });
            let mut next = at + 1;
            match inst.op {
                Op::Const(bits) => self.values[at] = bits,
                Op::Param(param) => {
                    let word = self.args[usize::from(self.function.buffers + param)];
                    self.values[at] = if inst.ty.elem == Elem::Bit { word & 1 } else { word };
                }
                Op::Lane => self.values[at] = self.lane as u64,
                Op::Any => self.values[at] = args[0],
                Op::Load(access) => {
                    self.values[at] = self.read(self.address(self.function.access(access)), inst.ty.elem);
                }
                Op::Store(access) => {
                    let address = self.address(self.function.access(access));
                    let word = args[0].to_le_bytes();
                    // SAFETY: the function accesses what is in memory.
                    unsafe { address.copy_from_nonoverlapping(word.as_ptr(), inst.ty.elem.bytes()) };
                }
                Op::Gather(access) => {
                    let is_short = self.function.ty(a).elem == Elem::I32;
                    let position = if is_short { args[0] as i32 as isize } else { args[0] as isize };
                    let elem = inst.ty.elem;
                    let address = self.address(self.function.access(access));
                    self.values[at] =
                        self.read(address.wrapping_offset(position * elem.bytes() as isize), elem);
                }
                Op::Loop => next = self.repeat(at, a),
                Op::While if args[0] == 0 => return Flow::Leave,
                Op::If => {
                    let mut end = self.end(at);
                    let (then, mut otherwise) = ((at + 1, end), (end, end));
                    if self.function.insts[end].op == Op::Else {
                        end = self.end(end);
                        otherwise = (then.1 + 1, end);
                    }
                    let (side, (from, to)) = if args[0] != 0 { (0, then) } else { (1, otherwise) };
                    if self.block(from, to) == Flow::Leave {
                        return Flow::Leave;
                    }
                    for join in self.behind(end + 1, Op::Join) {
                        self.copy(self.function.inst(join).args[side], join);
                    }
                    next = end + 1;
                }
                Op::Accumulator(_, lanes) => {
                    self.values[at] = args[0];
                    self.accumulators.insert(Val(at as u32), vec![args[0]; lanes.into()]);
                    self.next.push(Val(at as u32));
                }
                Op::Lanes => next = self.row(at, args[0] as i64),
                Op::Reduce => {
                    let elem = inst.ty.elem;
                    let Op::Accumulator(reduce, count) = self.function.inst(a).op else { unreachable!() };
                    let value = self.get(b);
                    let lanes = self.accumulators.get_mut(&a).expect("it stands before the row");
                    let lane = &mut lanes[self.lane as usize % usize::from(count)];
                    *lane = compute(reduce.op(), elem, elem, [*lane, value, 0]).expect("an op");
                }
                Op::Carry | Op::Join | Op::While => {}
                Op::EndLoop(_) | Op::Else | Op::EndIf(_) | Op::EndLanes => unreachable!("blocks end before"),
                Op::Call(_) => unreachable!("no kernels"),
                op => {
                    let last = inst.operands().last().expect("an op has operands");
                    let result = compute(op, self.function.ty(last).elem, inst.ty.elem, args);
                    self.values[at] = result.expect("an op of values");
                }
            }
            at = next;
        }
        Flow::On
    }

    fn repeat(&mut self, at: usize, trips: Val) -> usize {
        let end = self.end(at);
        for carry in self.behind(at + 1, Op::Carry) {
            self.copy(self.function.inst(carry).args[0], carry);
        }
        let Op::EndLoop(list) = self.function.insts[end].op else { unreachable!() };
        let trips = if trips.is_some() { self.get(trips) as i64 } else { i64::MAX };
        for trip in 0..trips {
            self.values[at] = trip as u64;
            if self.block(at + 1, end) == Flow::Leave {
                break;
            }
            let pairs = self.function.list(list);
            let new: Vec<u64> = pairs.iter().map(|&(_, next)| self.get(next)).collect();
            for (&(carry, _), new) in pairs.iter().zip(new) {
                self.values[carry.index()] = new;
            }
        }
        end + 1
    }

    fn row(&mut self, at: usize, extent: i64) -> usize {
        let end = self.end(at);
        for lane in 0..extent {
            self.lane = lane;
            self.block(at + 1, end);
        }
        self.lane = 0;
        for accumulator in std::mem::take(&mut self.next) {
            let inst = *self.function.inst(accumulator);
            let Op::Accumulator(reduce, _) = inst.op else { unreachable!() };
            let mut lanes = self.accumulators.remove(&accumulator).expect("it has lanes");
            while lanes.len() > 1 {
                let upper = lanes.split_off(lanes.len() / 2);
                for (lane, upper) in lanes.iter_mut().zip(upper) {
                    *lane =
                        compute(reduce.op(), inst.ty.elem, inst.ty.elem, [*lane, upper, 0]).expect("an op");
                }
            }
            if extent > 0 {
                self.values[accumulator.index()] = lanes[0];
            }
        }
        end + 1
    }
}
