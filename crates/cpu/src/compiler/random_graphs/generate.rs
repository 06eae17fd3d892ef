//! Random programs: element-wise ops, views, reads at positions, reductions, small products and windows, and random
//! numbers.

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use defn_core::infer::infer;
use defn_core::op::{
    ArgOp, BinaryOp, Block, CumulativeOp, Op, Padding, ReduceOp, ScatterOp, Starts, TieBreak, UnaryOp,
    Window, WindowOp,
};
use defn_core::region::Region;
use defn_core::{Axis, DType, Kind, Number, Scalar, Shape, TensorType};
use smallvec::SmallVec;

use super::around::around;
use super::values::{Mixed, elements, scalar};
use crate::kernels::TILE;
use crate::kernels::reduce::CHUNK;

/// What choices come from.
pub(crate) enum Choices<'b> {
    /// A number alone: a linear congruential generator (Knuth).
    #[cfg_attr(fuzzing, allow(dead_code, reason = "the fuzzer has bytes"))]
    Seed(u64),
    /// The bytes of a fuzzer, one or two for each choice. Behind them are zeros.
    Bytes(&'b [u8]),
}

impl Choices<'_> {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        match self {
            Choices::Seed(seed) => {
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((*seed >> 33) as usize) % n
            }
            Choices::Bytes(bytes) => {
                let (chosen, rest) = bytes.split_at(bytes.len().min(if n <= 1 << 8 { 1 } else { 2 }));
                *bytes = rest;
                chosen.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)) % n
            }
        }
    }
}

/// A program, the bytes of its arguments, and how it is compiled.
pub(crate) struct RandomProgram {
    pub(crate) region: Arc<Region>,
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The elements of a piece of a long row.
    pub(crate) chunk: usize,
    /// Whether what follows products is done block by block even where this does not pay.
    pub(crate) forces_epilogues: bool,
}

/// Sizes around the lanes of vectors, blocks of the portable executor, tiles and runs of sums.
const SIZES: &[usize] = &[
    1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 33, 40, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257,
];
/// Sizes of one axis of a graph, now and then.
const LARGE: &[usize] = &[300, 511, 512, 513, 1000, 1023, 1024, 1025, 1100, 2048, 2049, 4100];
/// The shapes of arrays that are read with what is around their elements.
const AROUND: &[&[usize]] =
    &[&[20, 33], &[40, 64], &[33, 129], &[300], &[1100], &[129, 20], &[3, 20, 33], &[18, 2, 64], &[2, 600]];

/// The most elements of a value.
pub(super) const MAX_ELEMENTS: usize = 6000;

/// A random program; None where nothing can be made of the choices.
pub(crate) fn program(source: Choices<'_>) -> Option<RandomProgram> {
    let mut generator = GraphGenerator::new(source);
    let wanted = 1 + generator.source.below(12);
    for _ in 0..4 * wanted {
        if generator.steps == wanted {
            break;
        }
        if let Some((op, operands)) = generator.step() {
            generator.push(op, &operands);
        }
    }
    generator.finish()
}

pub(super) struct GraphGenerator<'b> {
    pub(super) source: Choices<'b>,
    pub(super) graph: Graph,
    inputs: Vec<TensorType>,
    arguments: Vec<Vec<u8>>,
    values: Vec<Value>,
    dims: [usize; 3],
    dtypes: SmallVec<[DType; 3]>,
    steps: usize,
    mixed: Mixed,
    chunk: usize,
    forces_epilogues: bool,
}

impl<'b> GraphGenerator<'b> {
    fn new(mut source: Choices<'b>) -> GraphGenerator<'b> {
        let mut dims = [0; 3].map(|_| SIZES[source.below(SIZES.len())]);
        if source.below(6) == 0 {
            dims[source.below(2)] = LARGE[source.below(LARGE.len())];
        }
        dims[2] = SIZES[source.below(12)];
        let chunk = if source.below(4) == 0 { TILE << source.below(2) } else { CHUNK };
        if chunk < CHUNK {
            let long = &LARGE[5..];
            dims[source.below(2)] = long[source.below(long.len())];
        }
        let forces_epilogues = source.below(2) == 0;
        let count = 1 + source.below(3);
        let dtype = |source: &mut Choices<'_>| match source.below(4) {
            0 => DType::F32,
            1 => [DType::F64, DType::S32, DType::S64, DType::BF16][source.below(4)],
            _ => DType::ALL[source.below(DType::ALL.len())],
        };
        let dtypes = (0..count).map(|_| dtype(&mut source)).collect();
        let mixed = Mixed::new(source.below(1 << 16) as u64);
        let mut generator = GraphGenerator {
            source,
            graph: Graph::new(),
            inputs: Vec::new(),
            arguments: Vec::new(),
            values: Vec::new(),
            dims,
            dtypes,
            steps: 0,
            mixed,
            chunk,
            forces_epilogues,
        };
        for _ in 0..1 + generator.source.below(4) {
            let dtype = generator.dtype();
            let shape = generator.shape();
            generator.parameter(dtype, &shape, None);
        }
        generator
    }

    pub(super) fn dtype(&mut self) -> DType {
        self.dtypes[self.source.below(self.dtypes.len())]
    }

    fn shape(&mut self) -> Vec<usize> {
        let [a, b, c] = self.dims;
        let all: [&[usize]; 12] = [
            &[a, b],
            &[a, b],
            &[a, b],
            &[b],
            &[b],
            &[a],
            &[a, 1],
            &[1, b],
            &[],
            &[c, a, b],
            &[a, c, b],
            &[b, a],
        ];
        let shape = all[self.source.below(all.len())];
        if shape.iter().product::<usize>() <= MAX_ELEMENTS { shape.to_vec() } else { vec![b] }
    }

    /// An argument, of positions below a bound if there is one.
    pub(super) fn parameter(&mut self, dtype: DType, shape: &[usize], bound: Option<usize>) -> Option<Value> {
        let ty = TensorType::new(dtype, Shape::new(shape)).ok()?;
        let bytes = elements(&ty, bound, &mut self.mixed);
        let value = self.graph.parameter(self.inputs.len(), ty.clone());
        self.inputs.push(ty);
        self.arguments.push(bytes);
        if bound.is_none() {
            self.values.push(value);
        }
        Some(value)
    }

    /// One of the values, mostly one of the last.
    pub(super) fn value(&mut self) -> Value {
        let count = self.values.len();
        let back =
            if self.source.below(3) > 0 { self.source.below(count.min(3)) } else { self.source.below(count) };
        self.values[count - 1 - back]
    }

    fn is_argument(&self, value: Value) -> bool {
        matches!(self.graph.node(value).op, Op::Parameter { .. })
    }

    fn axis(&mut self, shape: &Shape) -> Option<Axis> {
        (shape.rank() > 0).then(|| shape.axis(self.source.below(shape.rank())))?
    }

    /// Some of the axes, at least one.
    pub(super) fn axes(&mut self, shape: &Shape) -> Option<SmallVec<[Axis; 6]>> {
        let chosen = 1 + self.source.below((1 << shape.rank().min(4)) - 1 + usize::from(shape.rank() == 0));
        let axes: SmallVec<[Axis; 6]> = shape.axes().filter(|axis| chosen >> axis.index() & 1 == 1).collect();
        (!axes.is_empty()).then_some(axes)
    }

    /// Adds an op, if it can be.
    pub(super) fn push(&mut self, op: Op, operands: &[Value]) {
        let types: Vec<&TensorType> = operands.iter().map(|&value| self.graph.ty(value)).collect();
        let Ok(outputs) = infer(&op, &types) else { return };
        if outputs.iter().any(|ty| ty.size() > MAX_ELEMENTS || ty.size() == 0) {
            return;
        }
        if let Ok(outputs) = self.graph.push(op, operands) {
            self.values.extend(outputs);
            self.steps += 1;
        }
    }

    /// The next op and its operands.
    fn step(&mut self) -> Option<(Op, Values)> {
        let x = self.value();
        let shape = self.graph.ty(x).shape.clone();
        let dtype = self.graph.ty(x).dtype;
        let one = |op| Some((op, [x].into_iter().collect::<Values>()));
        match self.source.below(41) {
            0..=4 => one(Op::Unary(UnaryOp::ALL[self.source.below(UnaryOp::ALL.len())])),
            5..=11 => {
                let op = BinaryOp::ALL[self.source.below(BinaryOp::ALL.len())];
                let y = self.value();
                Some((Op::Binary(op), [x, y].into_iter().collect()))
            }
            12 => {
                let common = [BinaryOp::ADD, BinaryOp::SUBTRACT, BinaryOp::MULTIPLY, BinaryOp::DIVIDE];
                let op = common[self.source.below(4)];
                let number = self.source.below(5) as f64;
                let y = self.graph.push(Op::Constant(scalar(dtype, number)), &[]).ok()?[0];
                Some((Op::Binary(op), [x, y].into_iter().collect()))
            }
            13 => one(Op::AsType { dtype: DType::ALL[self.source.below(DType::ALL.len())] }),
            // The bits of a NaN that was computed depend on the order of operands.
            14 if !dtype.is_inexact() || self.is_argument(x) => {
                one(Op::Bitcast { dtype: DType::ALL[self.source.below(DType::ALL.len())] })
            }
            14 => None,
            15 => Some((Op::Select, [self.value(), x, self.value()].into_iter().collect())),
            16 => {
                let [low, high] = [0, 1].map(|at| Op::Constant(scalar(dtype, f64::from(at))));
                let (low, high) = (self.graph.push(low, &[]).ok()?[0], self.graph.push(high, &[]).ok()?[0]);
                Some((Op::Clip, [x, low, high].into_iter().collect()))
            }
            17..=19 => {
                let op = ReduceOp::ALL[self.source.below(ReduceOp::ALL.len())];
                let axes = self.axes(&shape)?;
                one(Op::Reduce { op, axes, keep_axes: self.source.below(2) == 0 })
            }
            20 => {
                let op = ArgOp::ALL[self.source.below(ArgOp::ALL.len())];
                let tie_break = TieBreak::ALL[self.source.below(TieBreak::ALL.len())];
                let axis = if self.source.below(3) == 0 { None } else { Some(self.axis(&shape)?) };
                let keep_axis = self.source.below(2) == 0;
                one(Op::ArgReduce { op, tie_break, axis, keep_axis, dtype: DType::S32 })
            }
            21 | 22 => one(self.view(&shape)?),
            23 => {
                let padding = |source: &mut Choices<'_>| Padding {
                    low: source.below(6) as i64 - 2,
                    high: source.below(6) as i64 - 2,
                    interior: source.below(8) / 6,
                };
                let config = (0..shape.rank()).map(|_| padding(&mut self.source)).collect();
                let value = self.graph.push(Op::Constant(scalar(dtype, 1.0)), &[]).ok()?[0];
                Some((Op::Pad { config }, [x, value].into_iter().collect()))
            }
            24 => {
                let axis = self.axis(&shape)?;
                let others = 1 + self.source.below(2);
                let operands = std::iter::once(x).chain((0..others).map(|_| self.value())).collect();
                let op = if self.source.below(3) == 0 {
                    Op::Stack { axis: axis.index(), name: None }
                } else {
                    Op::Concatenate { axis }
                };
                Some((op, operands))
            }
            25 | 26 => self.read(x, &shape),
            27 | 28 => self.product(x),
            29 => self.convolution(x),
            30 | 31 => self.normalized(x),
            32 => {
                let op = WindowOp::ALL[self.source.below(WindowOp::ALL.len())];
                let rank = shape.rank();
                let mut some = |most: usize| (0..rank).map(|_| 1 + self.source.below(most)).collect();
                let (sizes, strides, dilations) = (some(4), some(2), some(2));
                let padding = (0..rank).map(|_| (self.source.below(3) as i64, self.source.below(3) as i64));
                let padding = padding.collect();
                one(Op::Window { op, window: Box::new(Window { sizes, strides, padding, dilations }) })
            }
            33 => {
                let op = CumulativeOp::ALL[self.source.below(CumulativeOp::ALL.len())];
                let (axis, reverse) = (self.axis(&shape)?, self.source.below(2) == 0);
                one(Op::Block(Block::Cumulative { op, axis, reverse }))
            }
            34 => {
                let axis = if self.source.below(2) == 0 { None } else { self.axis(&shape) };
                let dtype = self.dtype();
                Some((Op::Iota { shape, dtype, axis }, Values::new()))
            }
            35 => self.written(x, &shape),
            36 => self.turned(),
            37 | 38 => self.drawn(),
            _ => {
                // Small domains are computed otherwise.
                let shape = AROUND[self.source.below(AROUND.len())];
                let is_small = self.graph.ty(x).size() < shape.iter().product() || self.source.below(4) == 0;
                let x = if is_small { self.parameter(dtype, shape, None)? } else { x };
                let y = self.value();
                around(&mut self.source, &mut self.graph, x, y)
            }
        }
    }

    /// Random numbers in the shape of a value, or the words of blocks.
    fn drawn(&mut self) -> Option<(Op, Values)> {
        let kind = self.source.below(8);
        let like = self.value();
        let shape = if self.source.below(3) == 0 {
            Shape::new(&self.shape())
        } else {
            self.graph.ty(like).shape.without_names()
        };
        let count = shape.size();
        let is_key = |value: &Value| self.graph.ty(*value) == &key_type();
        let known = self.values.iter().rev().copied().find(is_key).filter(|_| self.source.below(2) == 0);
        let key = known.or_else(|| self.parameter(DType::U32, &[2], None))?;
        let of_kind = |source: &mut Choices<'_>, kind| {
            let all: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| dtype.kind() == kind).collect();
            if source.below(2) == 0 { None } else { Some(all[source.below(all.len())]) }
        };
        let mut operands: Values = [key].into_iter().collect();
        let block = match kind {
            0 | 1 => {
                let dtype = of_kind(&mut self.source, Kind::Unsigned).unwrap_or(DType::U32);
                Block::RandomBits { dtype, count }
            }
            2..=4 => {
                let dtype = of_kind(&mut self.source, Kind::Float).unwrap_or(DType::F32);
                Block::RandomUniform { dtype, count }
            }
            5 | 6 => {
                let signed = of_kind(&mut self.source, Kind::Signed);
                let dtype = of_kind(&mut self.source, Kind::Unsigned).or(signed).unwrap_or(DType::S32);
                operands.push(if self.source.below(2) == 0 {
                    let bounds = [1, 2, 3, 100, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, 1 << 32, u64::MAX];
                    let number = Number::Int(bounds[self.source.below(bounds.len())].into());
                    let bound = Op::Constant(Scalar::new(DType::U64, number).ok()?);
                    self.graph.push(bound, &[]).ok()?[0]
                } else {
                    self.parameter(DType::U64, &[], None)?
                });
                Block::RandomBelow { dtype, count }
            }
            _ => {
                let sizes: Vec<usize> = std::iter::once(2).chain(shape.sizes().iter().copied()).collect();
                operands
                    .push(self.parameter(DType::U32, &sizes, None).filter(|_| 2 * count <= MAX_ELEMENTS)?);
                return Some((Op::Block(Block::Threefry), operands));
            }
        };
        let drawn = self.graph.push(Op::Block(block), &operands).ok()?[0];
        Some((Op::Reshape { shape }, [drawn].into_iter().collect()))
    }

    fn view(&mut self, shape: &Shape) -> Option<Op> {
        let sizes = shape.sizes();
        Some(match self.source.below(7) {
            0 => Op::Reverse { axes: self.axes(shape)? },
            1 => {
                let mut axes: SmallVec<[Axis; 6]> = shape.axes().collect();
                let rank = axes.len();
                for at in (1..rank).rev() {
                    axes.swap(at, self.source.below(at + 1));
                }
                Op::Transpose { axes }
            }
            2 | 3 => {
                let (mut starts, mut lengths, mut strides) =
                    (SmallVec::new(), SmallVec::new(), SmallVec::new());
                for &size in sizes {
                    let start = self.source.below(size);
                    starts.push(start);
                    lengths.push(1 + self.source.below(size - start));
                    strides.push(if self.source.below(3) == 0 { 1 + self.source.below(3) } else { 1 });
                }
                Op::Slice { starts: Starts::Static(starts), lengths, strides }
            }
            4 => {
                let count = sizes.iter().product::<usize>();
                let by = [1, 2, 3, 4, 8][self.source.below(5)];
                if !count.is_multiple_of(by) {
                    return None;
                }
                let shape = if self.source.below(2) == 0 { [by, count / by] } else { [count / by, by] };
                Op::Reshape { shape: Shape::new(&shape) }
            }
            5 => {
                let front = 1 + self.source.below(5);
                let all: Vec<usize> = std::iter::once(front).chain(sizes.iter().copied()).collect();
                let shape = Shape::new(&all);
                let axes = shape.axes().skip(1).collect();
                Op::Broadcast { shape, axes }
            }
            _ => {
                let last = 1 + self.source.below(20);
                let all: Vec<usize> = sizes.iter().copied().chain([last]).collect();
                let shape = Shape::new(&all);
                let axes = shape.axes().take(sizes.len()).collect();
                Op::Broadcast { shape, axes }
            }
        })
    }

    /// Elements at positions, some of which count from the end or are out of range.
    fn read(&mut self, x: Value, shape: &Shape) -> Option<(Op, Values)> {
        let axis = self.axis(shape)?;
        let size = shape.sizes()[axis.index()];
        let dtype = [DType::S32, DType::S64, DType::U8, DType::S8][self.source.below(4)];
        let count = SIZES[self.source.below(12)];
        let (op, positions) = match self.source.below(3) {
            0 => (Op::Block(Block::Take { axis }), vec![count]),
            1 => {
                let mut sizes = shape.sizes().to_vec();
                sizes[axis.index()] = count;
                (Op::Block(Block::TakeAlongAxis { axis }), sizes)
            }
            _ => (Op::Gather { axes: [axis].into_iter().collect() }, vec![count, 1]),
        };
        if positions.iter().product::<usize>() > MAX_ELEMENTS {
            return None;
        }
        let indices = self.parameter(dtype, &positions, Some(size))?;
        Some((op, [x, indices].into_iter().collect()))
    }

    /// Something that is written into a value.
    fn written(&mut self, x: Value, shape: &Shape) -> Option<(Op, Values)> {
        let y = self.value();
        if self.source.below(2) == 0 {
            let starts = shape.sizes().iter().zip(self.graph.ty(y).shape.sizes());
            let starts = starts.map(|(&size, &part)| size.checked_sub(part).map(|rest| rest / 2));
            let starts = Starts::Static(starts.collect::<Option<_>>()?);
            return Some((Op::PutSlice { starts }, [x, y].into_iter().collect()));
        }
        let axis = self.axis(shape)?;
        let count = SIZES[self.source.below(12)];
        let indices = self.parameter(DType::S32, &[count, 1], Some(shape.sizes()[axis.index()]))?;
        let mut sizes = vec![count];
        sizes.extend(shape.axes().filter(|&other| other != axis).map(|other| shape.sizes()[other.index()]));
        if sizes.iter().product::<usize>() > MAX_ELEMENTS {
            return None;
        }
        let dtype = self.graph.ty(x).dtype;
        let updates = self.parameter(dtype, &sizes, None)?;
        let op = ScatterOp::ALL[self.source.below(ScatterOp::ALL.len())];
        let axes = [axis].into_iter().collect();
        Some((Op::Scatter { op, axes }, [x, indices, updates].into_iter().collect()))
    }

    /// The results are the last value, and some others.
    fn finish(mut self) -> Option<RandomProgram> {
        let inputs = self.inputs.len();
        let mut results: Values = Values::new();
        let is_computed = |value: &Value| !matches!(self.graph.node(*value).op, Op::Parameter { .. });
        let computed: Vec<Value> = self.values.iter().copied().filter(is_computed).collect();
        let (last, others) = computed.split_last()?;
        results.push(*last);
        let rare = [1, 4, 4, 8][self.source.below(4)];
        for &other in others {
            if self.source.below(rare) == 0 {
                results.push(other);
            }
        }
        let region = Arc::new(Region::new(self.graph, self.inputs, inputs, results));
        let GraphGenerator { arguments, chunk, forces_epilogues, .. } = self;
        Some(RandomProgram { region, arguments, chunk, forces_epilogues })
    }
}

/// The type of the keys of random numbers.
fn key_type() -> TensorType {
    TensorType { dtype: DType::U32, shape: Shape::new(&[2]) }
}

/// The number as an element, or what is nearest to it.
pub(super) fn number_of(dtype: DType, number: f64) -> Option<Scalar> {
    Scalar::new(dtype, Number::Float(number))
        .ok()
        .or_else(|| Scalar::new(dtype, Number::Int(number as i128)).ok())
}
