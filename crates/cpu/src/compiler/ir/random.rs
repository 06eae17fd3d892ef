//! Random functions, for tests that compare executors and check allocations.

use smallvec::SmallVec;

use super::functions::Function1;
use super::{Access, Builder, Call, CallArg, Cmp, Conv, Elem, Function, Op, Reduce, Val};

/// A sequence of numbers that depends on the seed alone.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What a random function may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most ops of a block.
    pub(crate) size: usize,
    /// How far back operands are taken from: the more, the more values live.
    pub(crate) reach: usize,
    /// The types of elements that it may compute with.
    pub(crate) elems: &'static [Elem],
}

/// A function and how it is called: the elements and the bytes of each buffer, of which those from `inputs` on are
/// written.
pub(crate) struct Case {
    pub(crate) function: Function,
    pub(crate) buffers: Vec<(Elem, usize)>,
    pub(crate) inputs: usize,
    /// The scalar arguments. Behind them are the addresses of all buffers.
    pub(crate) params: Vec<u64>,
}

/// The columns of the buffers of a case, and their rows.
pub(crate) const ROWS: usize = 3;

/// The scalar arguments that are numbers.
const NUMBERS: u16 = 2;

/// A random function over rows of `columns` elements.
pub(crate) fn case(random: &mut Random, limits: Limits, columns: usize) -> Case {
    let inputs: Vec<Elem> = (0..1 + random.below(3)).map(|_| random.pick(limits.elems)).collect();
    let is_known = random.below(2) == 0;
    // Up to twelve buffers are written.
    let buffers = inputs.len() as u16 + 12;
    let mut generator = FunctionGenerator {
        random,
        limits,
        b: Builder::new(buffers, NUMBERS + buffers, 1),
        inputs: inputs.clone(),
        outputs: Vec::new(),
        columns,
        extent: Val::NONE,
    };
    generator.extent =
        if is_known { generator.b.index(columns as i64) } else { generator.b.param(0, Elem::Index) };
    generator.function();
    let FunctionGenerator { b, outputs, .. } = generator;
    let function = b.finish();
    let elems = inputs.iter().chain(&outputs).copied();
    let buffers = elems.map(|elem| (elem, ROWS * columns * elem.bytes())).collect();
    Case { function, buffers, inputs: inputs.len(), params: vec![columns as u64, 1.5f64.to_bits()] }
}

struct FunctionGenerator<'r> {
    random: &'r mut Random,
    limits: Limits,
    b: Builder,
    inputs: Vec<Elem>,
    /// The element types of the buffers that are written.
    outputs: Vec<Elem>,
    columns: usize,
    extent: Val,
}

/// The values that ops may take, by type.
type Pool = Vec<Val>;

impl FunctionGenerator<'_> {
    fn row_access(&mut self, buffer: u16, elem: Elem, row: Option<Val>, lane: i64) -> Access {
        let terms: SmallVec<[(Val, i64); 3]> =
            row.into_iter().map(|row| (row, (self.columns * elem.bytes()) as i64)).collect();
        let offset = if lane < 0 { (self.columns as i64 - 1) * -lane } else { 0 };
        Access { buffer, offset, terms, lane, is_streaming: false }
    }

    /// The address where a row of a buffer begins.
    fn row_address(&mut self, buffer: u16, elem: Elem, row: Option<Val>) -> Val {
        let start = self.b.param(NUMBERS + buffer, Elem::Index);
        let Some(row) = row else { return start };
        let bytes = self.b.index((self.columns * elem.bytes()) as i64);
        let before = self.b.mul(row, bytes);
        self.b.add(start, before)
    }

    fn output(&mut self, elem: Elem) -> u16 {
        self.outputs.push(elem);
        (self.inputs.len() + self.outputs.len() - 1) as u16
    }

    fn function(&mut self) {
        let rows = self.b.index(ROWS as i64);
        let has_rows = self.random.below(3) > 0;
        let mut row = None;
        let mut carried = SmallVec::new();
        let mut init = Val::NONE;
        if has_rows {
            init = self.b.float(Elem::F32, 0.25);
            let carries: &[(Val, bool)] =
                if self.limits.elems.contains(&Elem::F32) { &[(init, false)] } else { &[] };
            let (counter, carries) = self.b.begin_loop(Some(rows), carries);
            row = Some(counter);
            carried = carries;
        }
        let mut scalars: Pool = carried.iter().copied().collect();
        for _ in 0..1 + self.random.below(2) {
            self.row(row, &mut scalars);
        }
        if self.random.below(4) == 0 {
            self.call(row);
        }
        if has_rows {
            let next: Vec<(Val, Val)> = carried
                .iter()
                .map(|&carry| {
                    let same = scalars.iter().rev().find(|&&value| self.b.ty(value) == self.b.ty(carry));
                    (carry, *same.unwrap_or(&init))
                })
                .collect();
            self.b.end_loop(&next);
        }
        for &carry in &carried {
            let buffer = self.outputs.len();
            if buffer < 12 {
                let elem = self.b.ty(carry).elem;
                let output = self.output(elem);
                let access = self.row_access(output, elem, None, 0);
                self.b.store(carry, access);
            }
        }
    }

    /// A call of the kernel, which mixes the bytes of an input into an element.
    fn call(&mut self, row: Option<Val>) {
        if self.outputs.len() >= 11 {
            return;
        }
        let output = self.output(Elem::I64);
        let input = self.inputs[0];
        let (to, from) = (self.row_address(output, Elem::I64, row), self.row_address(0, input, row));
        let bytes = self.b.index(input.bytes() as i64);
        self.b.call(Call { kernel: 0, args: [to, from, bytes].into_iter().map(CallArg::Index).collect() });
    }

    /// A vectorized row, with reductions whose results become scalars.
    fn row(&mut self, row: Option<Val>, scalars: &mut Pool) {
        let mut accumulators = Vec::new();
        for _ in 0..self.random.below(3) {
            let elem = self.random.pick(self.limits.elems);
            let reduce = self.random.pick(&[Reduce::Add, Reduce::Mul, Reduce::Min, Reduce::Max, Reduce::Add]);
            let lanes = self.random.pick(&[16, 64]);
            accumulators.push((self.b.accumulator(reduce, elem, lanes), elem));
        }
        self.b.begin_lanes(self.extent);
        let mut pool = scalars.clone();
        for buffer in 0..self.inputs.len() {
            let elem = self.inputs[buffer];
            let lane = if self.random.below(8) == 0 { 0 } else { elem.bytes() as i64 };
            let access = self.row_access(buffer as u16, elem, row, lane);
            pool.push(self.b.load(elem, access));
        }
        let size = 1 + self.random.below(self.limits.size);
        self.ops(&mut pool, size, 0);
        for &(accumulator, elem) in &accumulators {
            let value = self.of_type(&mut pool, elem);
            self.b.reduce(accumulator, value);
        }
        for _ in 0..1 + self.random.below(2) {
            if self.outputs.len() < 10 {
                let values: Pool =
                    pool.iter().copied().filter(|&value| self.b.ty(value).elem != Elem::Bit).collect();
                let value = values[values.len() - 1 - self.random.below(values.len().min(4))];
                let elem = self.b.ty(value).elem;
                let output = self.output(elem);
                let access = self.row_access(output, elem, row, elem.bytes() as i64);
                self.b.store(value, access);
            }
        }
        self.b.end_lanes();
        scalars.extend(accumulators.iter().map(|(accumulator, _)| *accumulator));
        let size = self.random.below(4);
        self.ops(scalars, size, 1);
    }

    /// A value of an element type: one that exists, or a constant.
    fn of_type(&mut self, pool: &mut Pool, elem: Elem) -> Val {
        let reach = self.limits.reach.min(pool.len());
        let from = pool.len() - reach;
        let fitting: Pool =
            pool[from..].iter().copied().filter(|&value| self.b.ty(value).elem == elem).collect();
        if fitting.is_empty() || self.random.below(8) == 0 {
            return self.constant(elem);
        }
        self.random.pick(&fitting)
    }

    fn constant(&mut self, elem: Elem) -> Val {
        let number = self.random.below(40) as f64 * 0.3 - 1.7;
        match elem {
            Elem::F32 | Elem::F64 => self.b.float(elem, f64::from(number as f32)),
            Elem::Bit => self.b.bits(Elem::Bit, u64::from(number > 3.0)),
            Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => {
                self.b.bits(elem, (number * 17.0) as i64 as u64)
            }
        }
    }

    /// Adds ops on what is in the pool, and blocks of such.
    fn ops(&mut self, pool: &mut Pool, size: usize, depth: usize) {
        for _ in 0..size {
            match self.random.below(40) {
                0 if depth < 2 => self.condition(pool, depth),
                1 if depth < 2 => self.inner_loop(pool, depth),
                _ => {
                    let value = self.op(pool);
                    pool.push(value);
                }
            }
        }
    }

    fn predicate(&mut self, pool: &mut Pool) -> Val {
        let elem = self.random.pick(self.limits.elems);
        let (a, b) = (self.of_type(pool, elem), self.of_type(pool, elem));
        let cmp = match elem.is_float() {
            true => self.random.pick(&[Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le]),
            false => self.random.pick(&[Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::LtU, Cmp::LeU]),
        };
        self.b.compare(cmp, a, b)
    }

    fn op(&mut self, pool: &mut Pool) -> Val {
        let elem = self.random.pick(self.limits.elems);
        let (a, b, c) = (self.of_type(pool, elem), self.of_type(pool, elem), self.of_type(pool, elem));
        match self.random.below(12) {
            0 => return self.predicate(pool),
            1 => {
                let predicate = self.of_type(pool, Elem::Bit);
                return self.b.select(predicate, a, b);
            }
            2 => {
                let predicate = self.predicate(pool);
                return self.b.select(predicate, b, c);
            }
            3 => return self.conversion(pool, elem),
            4 => {
                let (p, q) = (self.of_type(pool, Elem::Bit), self.of_type(pool, Elem::Bit));
                let op = self.random.pick(&[Op::And, Op::Or, Op::Xor, Op::AndNot]);
                return self.b.op(op, [p, q]);
            }
            _ => {}
        }
        if elem.is_float() {
            let of_two = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max];
            match self.random.below(12) {
                4 => {
                    let functions = [Function1::Sin, Function1::Cos, Function1::Tan];
                    let function = self.random.pick(&functions);
                    self.b.function(function, a)
                }
                0 => self.b.fma(a, b, c),
                1 => self.b.fnma(a, b, c),
                2 => {
                    let [a, b, c] = [a, b, c].map(|x| self.number(x));
                    self.b.op(Op::Flip, [a, b, c])
                }
                3 => {
                    let op = self.random.pick(&[Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc]);
                    self.b.op(op, [a])
                }
                _ => {
                    let op = self.random.pick(&of_two);
                    self.b.op(op, [a, b])
                }
            }
        } else {
            let by = self.random.below(8 * elem.bytes()) as u8;
            let of_two = [
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::Min,
                Op::Max,
                Op::MinU,
                Op::MaxU,
                Op::And,
                Op::Or,
                Op::Xor,
                Op::AndNot,
            ];
            match self.random.below(12) {
                0 => self.b.op(Op::ShlBy(by), [a]),
                1 => self.b.op(Op::ShrBy(by), [a]),
                2 => self.b.op(Op::SarBy(by), [a]),
                3 => self.b.op(Op::Flip, [a, b, c]),
                4 => {
                    let op = self.random.pick(&[Op::Not, Op::PopCount, Op::LeadingZeros]);
                    self.b.op(op, [a])
                }
                5 => {
                    let shifts = [Op::Shl, Op::Shr, Op::Sar];
                    let quotients = [Op::DivS, Op::DivU, Op::RemS, Op::RemU];
                    let is_shift = self.random.below(2) == 0;
                    let op = self.random.pick(if is_shift { &shifts[..] } else { &quotients[..] });
                    self.b.op(op, [a, b])
                }
                _ => {
                    let op = self.random.pick(&of_two);
                    self.b.op(op, [a, b])
                }
            }
        }
    }

    /// A float that is not NaN, whose bits are not specified.
    fn number(&mut self, x: Val) -> Val {
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        let half = self.b.float(self.b.ty(x).elem, 0.5);
        self.b.select(is_nan, half, x)
    }

    /// A conversion to an element type, from one that converts to it in one step.
    fn conversion(&mut self, pool: &mut Pool, elem: Elem) -> Val {
        let elems = self.limits.elems;
        let froms: Vec<(Elem, Conv)> = match elem {
            Elem::F32 => {
                vec![(Elem::F64, Conv::Float), (Elem::I32, Conv::FloatOfS), (Elem::I32, Conv::Bitcast)]
            }
            Elem::F64 => {
                vec![(Elem::F32, Conv::Float), (Elem::I32, Conv::FloatOfS), (Elem::I64, Conv::Bitcast)]
            }
            Elem::I32 => {
                vec![(Elem::F32, Conv::Bitcast), (Elem::F32, Conv::ToS), (Elem::I64, Conv::Truncate)]
            }
            Elem::I64 => {
                vec![(Elem::I32, Conv::SignExtend), (Elem::I32, Conv::ZeroExtend), (Elem::F64, Conv::Bitcast)]
            }
            Elem::I16 => vec![(Elem::I32, Conv::Truncate), (Elem::I8, Conv::SignExtend)],
            Elem::I8 => vec![(Elem::I32, Conv::Truncate), (Elem::I16, Conv::Truncate)],
            Elem::Bit | Elem::Index => Vec::new(),
        };
        if elem != Elem::Bit && self.random.below(4) == 0 {
            let predicate = self.of_type(pool, Elem::Bit);
            return self.b.convert(Conv::OfBit, elem, predicate);
        }
        let froms: Vec<(Elem, Conv)> = froms.into_iter().filter(|(from, _)| elems.contains(from)).collect();
        if froms.is_empty() {
            return self.constant(elem);
        }
        let (from, conv) = self.random.pick(&froms);
        let mut value = self.of_type(pool, from);
        if conv == Conv::Bitcast && from.is_float() {
            value = self.number(value);
        }
        self.b.convert(conv, elem, value)
    }

    /// A condition on a scalar.
    fn condition(&mut self, pool: &mut Pool, depth: usize) {
        let scalars: Pool = pool.iter().copied().filter(|&value| !self.b.ty(value).is_vector).collect();
        let Some(&a) = scalars.iter().rev().find(|&&value| self.b.ty(value).elem == Elem::F32) else {
            return;
        };
        let limit = self.constant(Elem::F32);
        let predicate = self.b.compare(Cmp::Lt, a, limit);
        let elem = self.random.pick(self.limits.elems);
        self.b.begin_if(predicate);
        let mut inner = pool.clone();
        let size = self.random.below(5);
        self.ops(&mut inner, size, depth + 1);
        let then = self.of_type(&mut inner, elem);
        self.b.begin_else();
        let mut inner = pool.clone();
        let size = self.random.below(5);
        self.ops(&mut inner, size, depth + 1);
        let otherwise = self.of_type(&mut inner, elem);
        let joined = self.b.end_if(&[(then, otherwise)]);
        pool.push(joined[0]);
    }

    /// A short loop that carries two values.
    fn inner_loop(&mut self, pool: &mut Pool, depth: usize) {
        let in_lanes = pool.iter().any(|&value| self.b.ty(value).is_vector);
        let elem = self.random.pick(self.limits.elems);
        let inits = [self.of_type(pool, elem), self.of_type(pool, elem)];
        let trips = self.random.below(4) as i64;
        let trips = self.b.index(trips);
        let (_, carries) = self.b.begin_loop(Some(trips), &inits.map(|init| (init, in_lanes)));
        let mut inner = pool.clone();
        inner.extend(&carries);
        let size = 1 + self.random.below(5);
        self.ops(&mut inner, size, depth + 1);
        let next = [self.of_type(&mut inner, elem), carries[0]];
        self.b.end_loop(&[(carries[0], next[0]), (carries[1], next[1])]);
        pool.extend(carries);
    }
}
