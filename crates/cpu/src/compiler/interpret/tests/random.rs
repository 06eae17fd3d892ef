//! Random functions, beside the reference interpreter: what shares a register with what, and which block repeats a
//! scalar.

use super::super::super::ir::{Reduce, Ty};
use super::reference::evaluate;
use super::*;

/// Rows of the buffers, of eight bytes an element.
const ROW: usize = 2 * BLOCK + 40;

/// Makes a random function of three buffers with `ROW` elements each, and four parameters: the extent of its
/// rows, a number of trips, and two numbers.
///
/// Lanes that are executed together must not depend on each other. So the first buffer is only read; in the
/// others each lane has its own place, which in the second one is of eight bytes, and in the third of those
/// of one type's elements. Behind those of the second one are the places of scalars, which rows only write.
struct FunctionGenerator {
    b: Builder,
    random: Random,
    /// The values that are visible.
    visible: Vec<Val>,
    /// The accumulators that the row has.
    accumulators: Vec<Val>,
    /// The instructions that may still be made.
    left: usize,
    in_lanes: bool,
    depth: usize,
    /// Whether the places of the second buffer go back.
    is_back: bool,
    /// The type of the third buffer.
    dense: Elem,
    /// Where the elements of the buffers begin.
    begin: i64,
}

const ELEMS: [Elem; 6] = [Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::F32, Elem::F64];

impl FunctionGenerator {
    fn make(seed: u64) -> Function {
        let b = Builder::new(3, 4, 0);
        let mut random = Random(seed);
        let left = 10 + random.below(60);
        let (visible, accumulators) = (Vec::new(), Vec::new());
        let (is_back, dense) = (random.below(2) == 0, ELEMS[random.below(ELEMS.len())]);
        let begin = BEGINS[random.below(2)] as i64;
        let mut generator = FunctionGenerator {
            b,
            random,
            visible,
            accumulators,
            left,
            in_lanes: false,
            depth: 0,
            is_back,
            dense,
            begin,
        };
        for (at, elem) in [(2, Elem::I32), (3, Elem::F64)] {
            let param = generator.b.param(at, elem);
            generator.visible.push(param);
        }
        while generator.left > 0 {
            generator.statement();
        }
        generator.b.finish()
    }

    fn elem(&mut self) -> Elem {
        ELEMS[self.random.below(ELEMS.len())]
    }

    /// A value of a type that is visible, or a constant.
    fn value(&mut self, elem: Elem) -> Val {
        let all: Vec<Val> =
            self.visible.iter().copied().filter(|&value| self.b.ty(value).elem == elem).collect();
        if all.is_empty() || self.random.below(8) == 0 {
            let special = [0, 1, 3, 0x4000_0000, 0x3FF0_0000_0000_0000, u64::MAX >> 9];
            return self.b.bits(elem, special[self.random.below(special.len())]);
        }
        // The last ones more often.
        let last = [1, 3, all.len()][self.random.below(3)].min(all.len());
        all[all.len() - 1 - self.random.below(last)]
    }

    fn scalar(&mut self, elem: Elem) -> Val {
        let all = self.visible.iter().copied();
        let all: Vec<Val> = all.filter(|&value| self.b.ty(value) == Ty::scalar(elem)).collect();
        if all.is_empty() { self.b.bits(elem, 5) } else { all[self.random.below(all.len())] }
    }

    /// A type of elements, and an access to them.
    fn access(&mut self, is_store: bool) -> (Elem, Access) {
        let elem = self.elem();
        let bytes = elem.bytes() as i64;
        let begin = self.begin;
        let scalars = begin + 8 * (ROW as i64 + self.random.below(4) as i64);
        match self.random.below(6) {
            0 | 1 if self.in_lanes => (self.dense, strided(2, begin, self.dense.bytes() as i64)),
            0 if is_store || !self.in_lanes => (elem, strided(1, scalars, 0)),
            2 | 3 if self.in_lanes => {
                let back = strided(1, begin + 8 * (ROW as i64 - 1), -8);
                (elem, if self.is_back { back } else { strided(1, begin, 8) })
            }
            _ if is_store => (elem, strided(1, scalars, 0)),
            4 if self.in_lanes => (elem, strided(0, begin + bytes * (ROW as i64 - 1), -bytes)),
            5 => (elem, strided(0, begin + self.random.below(ROW) as i64, 0)),
            _ if self.in_lanes => (elem, strided(0, begin, bytes)),
            _ => (elem, strided(0, begin, 0)),
        }
    }

    fn statement(&mut self) {
        self.left = self.left.saturating_sub(1);
        match self.random.below(if self.depth < 3 { 16 } else { 10 }) {
            0 | 1 => {
                let (elem, access) = self.access(false);
                let value = self.b.load(elem, access);
                self.visible.push(value);
            }
            2 => {
                let (elem, access) = self.access(true);
                let mut value = self.value(elem);
                if elem.is_float() {
                    // The bits of NaN are not specified.
                    let is_nan = self.b.compare(Cmp::Ne, value, value);
                    let one = self.b.float(elem, 1.0);
                    value = self.b.select(is_nan, one, value);
                }
                self.b.store(value, access);
            }
            3 if self.in_lanes && !self.accumulators.is_empty() => {
                let accumulator = self.accumulators[self.random.below(self.accumulators.len())];
                let value = self.value(self.b.ty(accumulator).elem);
                self.b.reduce(accumulator, value);
            }
            4 if self.in_lanes => {
                let lane = self.b.lane(Elem::I32);
                self.visible.push(lane);
            }
            3..=9 => self.op(),
            10 | 11 => self.condition(),
            12 | 13 => self.repeat(),
            _ if !self.in_lanes => self.row(),
            _ => self.op(),
        }
    }

    fn op(&mut self) {
        let elem = self.elem();
        let (a, b, c) = (self.value(elem), self.value(elem), self.value(elem));
        let pick = self.random.below(8);
        let value = match pick {
            0 => self.b.op(Op::Min, [a, b]),
            1 => self.b.sub(a, b),
            2 => self.b.mul(a, b),
            // Of a NaN this would be any number.
            3 if !elem.is_float() => self.b.op(Op::Flip, [a, b, c]),
            4 => {
                let less = self.b.compare(Cmp::Lt, a, b);
                self.b.select(less, c, a)
            }
            5 if elem.is_float() => self.b.fma(a, b, c),
            5 => self.b.op(Op::ShlBy(3), [a]),
            6 => {
                let to = self.elem();
                match (elem.is_float(), to.is_float()) {
                    (true, true) => self.b.convert(Conv::Float, to, a),
                    (true, false) => self.b.convert(Conv::ToS, to, a),
                    (false, true) => self.b.convert(Conv::FloatOfS, to, a),
                    (false, false) if to.bytes() > elem.bytes() => self.b.convert(Conv::SignExtend, to, a),
                    (false, false) => self.b.convert(Conv::Truncate, to, a),
                }
            }
            _ => self.b.add(a, b),
        };
        self.visible.push(value);
    }

    /// Some statements of a block, whose values are not visible behind it.
    fn block(&mut self) {
        self.depth += 1;
        for _ in 0..1 + self.random.below(6) {
            self.statement();
        }
        self.depth -= 1;
    }

    fn condition(&mut self) {
        let (a, b) = (self.scalar(Elem::I32), self.scalar(Elem::I32));
        let less = self.b.compare(Cmp::LeU, a, b);
        let count = self.random.below(3);
        let elems: Vec<Elem> = (0..count).map(|_| self.elem()).collect();
        // The values of the other side, if it has no instructions.
        let mut otherwise: Vec<Val> = elems.iter().map(|&elem| self.value(elem)).collect();
        let before = self.visible.len();
        self.b.begin_if(less);
        self.block();
        let then: Vec<Val> = elems.iter().map(|&elem| self.value(elem)).collect();
        self.visible.truncate(before);
        if self.random.below(3) > 0 {
            self.b.begin_else();
            self.block();
            otherwise = elems.iter().map(|&elem| self.value(elem)).collect();
        }
        self.visible.truncate(before);
        let pairs: Vec<(Val, Val)> = then.into_iter().zip(otherwise).collect();
        self.visible.extend(self.b.end_if(&pairs));
    }

    fn repeat(&mut self) {
        let trips = match self.random.below(3) {
            0 => self.b.param(1, Elem::Index),
            count => self.b.index(count as i64),
        };
        let carried: Vec<(Val, bool)> = (0..self.random.below(4))
            .map(|_| {
                let elem = self.elem();
                let init = self.value(elem);
                let may_be_vector = self.in_lanes && self.random.below(2) == 0;
                (init, self.b.ty(init).is_vector || may_be_vector)
            })
            .collect();
        let before = self.visible.len();
        let (counter, carries) = self.b.begin_loop(Some(trips), &carried);
        self.visible.extend(&carries);
        if self.random.below(2) == 0 {
            let count = self.b.convert(Conv::OfIndex, Elem::I32, counter);
            self.visible.push(count);
        }
        self.block();
        if self.random.below(3) == 0 {
            let (a, b) = (self.scalar(Elem::I32), self.scalar(Elem::I32));
            let less = self.b.compare(Cmp::LeU, a, b);
            self.b.while_(less);
            self.statement_without_blocks();
        }
        let next: Vec<(Val, Val)> = carries
            .iter()
            .map(|&carry| {
                let ty = self.b.ty(carry);
                let next = if ty.is_vector { self.value(ty.elem) } else { self.scalar(ty.elem) };
                // A constant that is not visible yet is a scalar, too.
                (carry, next)
            })
            .collect();
        self.b.end_loop(&next);
        self.visible.truncate(before);
        self.visible.extend(&carries);
    }

    fn statement_without_blocks(&mut self) {
        let depth = std::mem::replace(&mut self.depth, 3);
        self.statement();
        self.depth = depth;
    }

    fn row(&mut self) {
        let count = self.random.below(3);
        let accumulators: Vec<Val> = (0..count)
            .map(|_| {
                let elem = self.elem();
                let integer = [Reduce::Add, Reduce::Or, Reduce::MinU];
                let float = [Reduce::Add, Reduce::Min, Reduce::Mul];
                let reduce = if elem.is_float() { float } else { integer }[self.random.below(3)];
                self.b.accumulator(reduce, elem, 1 << self.random.below(7))
            })
            .collect();
        self.accumulators.clone_from(&accumulators);
        let extent = self.b.param(0, Elem::Index);
        let before = self.visible.len();
        self.b.begin_lanes(extent);
        self.in_lanes = true;
        self.block();
        self.block();
        self.b.end_lanes();
        self.in_lanes = false;
        self.visible.truncate(before);
        self.accumulators.clear();
        self.visible.extend(accumulators);
    }
}

#[test]
fn random_functions() {
    let count = if cfg!(debug_assertions) { 2500 } else { 8000 };
    for seed in 0..count {
        let function = FunctionGenerator::make(seed * 7919);
        let mut random = Random(seed);
        // Small integers of eight bytes are no NaN under any type.
        let data: Vec<Vec<u8>> =
            (0..3).map(|_| (0..8 * ROW + 48).map(|_| (random.next() % 23) as u8).collect()).collect();
        let extent = [0, 1, 60, 64, BLOCK, BLOCK + 30, ROW][random.below(7)];
        let params = [extent as u64, random.below(4) as u64, random.next() % 7, 2.5_f64.to_bits()];
        let mut expected = data.clone();
        let pointers: Vec<u64> =
            expected.iter_mut().map(|buffer| buffer.as_mut_ptr() as u64).chain(params).collect();
        // SAFETY: accesses are in the buffers.
        unsafe { evaluate(&function, &pointers) };
        let mut level = 0;
        at_every_level(|| {
            let mut got = data.clone();
            run(&function, &mut got, &params);
            for (got, expected) in got.iter().zip(&expected) {
                if got != expected {
                    let at = got.iter().zip(expected).position(|(got, expected)| got != expected);
                    panic!("seed {seed}, level {level}, byte {at:?}:\n{function}");
                }
            }
            level += 1;
        });
    }
}
