//! Random programs of loops in loops, branches, updates in place and windows at positions that are computed.

use std::sync::Arc;

use defn_core::grad::value_and_grad;
use defn_core::graph::{Graph, Value, Values};
use defn_core::infer::infer;
use defn_core::op::{
    BinaryOp, Block, CondOp, CumulativeOp, Op, ReduceOp, ScatterOp, Starts, UnaryOp, WhileOp,
};
use defn_core::region::Region;
use defn_core::{Axis, DType, Kind, Shape, TensorType};
use smallvec::SmallVec;

use super::RandomProgram;
use super::around::around;
use super::generate::Choices;
use super::values::{Mixed, elements, scalar};
use crate::kernels::reduce::CHUNK;

/// Sizes around those of values in registers, of vectors and of what kernels move.
const SHAPES: &[&[usize]] = &[
    &[],
    &[],
    &[1],
    &[2],
    &[3],
    &[3],
    &[8],
    &[9],
    &[10],
    &[16],
    &[17],
    &[40],
    &[300],
    &[3, 3],
    &[2, 2],
    &[4, 6],
    &[1, 5],
    &[20, 33],
    &[2, 3, 4],
];

/// The most elements of a value.
const MAX_ELEMENTS: usize = 2000;

/// Regions within regions.
const MAX_DEPTH: usize = 3;

/// A random program with control flow; None where nothing can be made of the choices.
pub(crate) fn program(mut source: Choices<'_>) -> Option<RandomProgram> {
    let dtypes = dtypes(&mut source);
    program_of(source, &dtypes)
}

/// A random program with control flow whose parameters have these dtypes.
pub(crate) fn program_of(mut source: Choices<'_>, dtypes: &[DType]) -> Option<RandomProgram> {
    let mut mixed = Mixed::new(source.below(1 << 16) as u64);
    let mut scope = Scope { source: &mut source, dtypes, graph: Graph::new(), values: Vec::new(), depth: 0 };
    let count = 2 + scope.source.below(3);
    let types: Vec<TensorType> = (0..count).map(|_| scope.ty()).collect();
    for (index, ty) in types.iter().enumerate() {
        let value = scope.graph.parameter(index, ty.clone());
        scope.values.push(value);
    }
    let steps = 1 + scope.source.below(3);
    scope.steps(steps);
    scope.control();
    let steps = scope.source.below(3);
    scope.steps(steps);
    let Scope { graph, values, .. } = scope;
    let is_computed = |value: &&Value| !matches!(graph.node(**value).op, Op::Parameter { .. });
    let results: Values = values.iter().filter(is_computed).copied().collect();
    if results.is_empty() {
        return None;
    }
    let arguments = types.iter().map(|ty| elements(ty, None, &mut mixed)).collect();
    let region = Arc::new(Region::new(graph, types, count, results));
    Some(RandomProgram { region, arguments, chunk: CHUNK, forces_epilogues: false })
}

fn dtypes(source: &mut Choices<'_>) -> Vec<DType> {
    let common = [DType::F32, DType::F64, DType::S32, DType::S64, DType::BF16, DType::Bool, DType::C64];
    let mut one = || match source.below(4) {
        0 | 1 => DType::F32,
        2 => common[source.below(common.len())],
        _ => DType::ALL[source.below(DType::ALL.len())],
    };
    vec![one(), one(), DType::S32]
}

/// A region while it is made.
struct Scope<'s, 'b> {
    source: &'s mut Choices<'b>,
    dtypes: &'s [DType],
    graph: Graph,
    values: Vec<Value>,
    depth: usize,
}

impl Scope<'_, '_> {
    fn ty(&mut self) -> TensorType {
        let dtype = self.dtypes[self.source.below(self.dtypes.len())];
        let shape = SHAPES[self.source.below(SHAPES.len())];
        TensorType::new(dtype, Shape::new(shape)).expect("the shape is small")
    }

    /// One of the values, mostly one of the last.
    fn value(&mut self) -> Value {
        let count = self.values.len();
        let recent = if self.source.below(3) > 0 { count.min(4) } else { count };
        self.values[count - 1 - self.source.below(recent)]
    }

    fn push(&mut self, op: Op, operands: &[Value]) -> Option<Value> {
        let types: Vec<&TensorType> = operands.iter().map(|&value| self.graph.ty(value)).collect();
        let outputs = infer(&op, &types).ok()?;
        if outputs.iter().any(|ty| ty.size() > MAX_ELEMENTS || ty.size() == 0) {
            return None;
        }
        let outputs = self.graph.push(op, operands).ok()?;
        self.values.extend(outputs.iter().copied());
        outputs.first().copied()
    }

    fn number(&mut self, dtype: DType, number: f64) -> Option<Value> {
        Some(self.graph.push(Op::Constant(scalar(dtype, number)), &[]).ok()?[0])
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            if self.source.below(5) == 0 && self.depth < MAX_DEPTH {
                self.control();
            } else {
                self.step();
            }
        }
    }

    fn step(&mut self) -> Option<Value> {
        let x = self.value();
        let (shape, dtype) = (self.graph.ty(x).shape.clone(), self.graph.ty(x).dtype);
        match self.source.below(21) {
            0 | 1 => {
                let op = UnaryOp::ALL[self.source.below(UnaryOp::ALL.len())];
                self.push(Op::Unary(op), &[x])
            }
            2..=5 => {
                let y = self.value();
                let op = BinaryOp::ALL[self.source.below(BinaryOp::ALL.len())];
                self.push(Op::Binary(op), &[x, y])
            }
            6 => {
                let number = self.source.below(4) as f64;
                let y = self.number(dtype, number)?;
                let op = [BinaryOp::ADD, BinaryOp::MULTIPLY, BinaryOp::SUBTRACT][self.source.below(3)];
                self.push(Op::Binary(op), &[x, y])
            }
            7 => {
                let to = self.dtypes[self.source.below(self.dtypes.len())];
                self.push(Op::AsType { dtype: to }, &[x])
            }
            8 | 9 => {
                let op = ReduceOp::ALL[self.source.below(ReduceOp::ALL.len())];
                let axes: SmallVec<[Axis; 6]> = match self.source.below(2) {
                    0 => shape.axes().collect(),
                    _ => shape.axes().take(1).collect(),
                };
                self.push(Op::Reduce { op, axes, keep_axes: false }, &[x])
            }
            10 | 11 => self.window(x, &shape),
            12..=14 => self.update(x, &shape),
            15 => {
                let y = self.value();
                let axis = shape.axes().next()?;
                let op = match self.source.below(3) {
                    0 => Op::Stack { axis: self.source.below(shape.rank() + 1), name: None },
                    _ => Op::Concatenate { axis },
                };
                self.push(op, &[x, y])
            }
            16 => self.product(x, &shape),
            17 => {
                let axes = shape.axes().rev().collect();
                let op = match self.source.below(3) {
                    0 => Op::Transpose { axes },
                    1 => Op::Reverse { axes: shape.axes().take(1).collect() },
                    _ => {
                        let axis = shape.axes().next()?;
                        Op::Block(Block::Cumulative {
                            op: CumulativeOp::ALL[self.source.below(4)],
                            axis,
                            reverse: false,
                        })
                    }
                };
                self.push(op, &[x])
            }
            18 => {
                let (a, b) = (self.value(), self.value());
                self.push(Op::Select, &[x, a, b])
            }
            19 => {
                let large = self.values.iter().copied().find(|&value| self.graph.ty(value).size() >= 300);
                let (x, y) = (large.unwrap_or(x), self.value());
                let (op, operands) = around(self.source, &mut self.graph, x, y)?;
                self.push(op, &operands)
            }
            _ => {
                let count = shape.size();
                let to =
                    if self.source.below(2) == 0 { Shape::new(&[count]) } else { Shape::new(&[1, count]) };
                self.push(Op::Reshape { shape: to }, &[x])
            }
        }
    }

    /// A scalar integer: one of the values, or a constant that may be out of range.
    fn start(&mut self) -> Option<Value> {
        let is_integer = |ty: &TensorType| {
            ty.shape.rank() == 0 && matches!(ty.dtype.kind(), Kind::Signed | Kind::Unsigned)
        };
        let integers = self.values.iter().copied().filter(|&value| is_integer(self.graph.ty(value)));
        let integers: Vec<Value> = integers.collect();
        if !integers.is_empty() && self.source.below(4) > 0 {
            return Some(integers[self.source.below(integers.len())]);
        }
        let dtype = [DType::S32, DType::S64, DType::U8, DType::S8][self.source.below(4)];
        let number = self.source.below(9) as f64 - 3.0;
        self.number(dtype, if dtype == DType::U8 { number.abs() } else { number })
    }

    /// Starts of a window of a shape, and what they are as operands.
    fn starts(&mut self, shape: &Shape, lengths: &[usize]) -> Option<(Starts, Vec<Value>)> {
        let kind = self.source.below(4);
        if kind == 0 {
            let starts = shape.sizes().iter().zip(lengths);
            let starts = starts.map(|(&size, &length)| self.source.below(size - length + 1)).collect();
            return Some((Starts::Static(starts), Vec::new()));
        }
        let starts = shape.axes().map(|_| self.start()).collect::<Option<_>>()?;
        Some((if kind == 1 { Starts::Dynamic } else { Starts::FromEnd }, starts))
    }

    fn window(&mut self, x: Value, shape: &Shape) -> Option<Value> {
        let lengths: SmallVec<[usize; 4]> =
            shape.sizes().iter().map(|&size| 1 + self.source.below(size)).collect();
        let strides = lengths.iter().map(|_| if self.source.below(4) == 0 { 2 } else { 1 }).collect();
        let (starts, operands) = self.starts(shape, &lengths)?;
        let operands: Vec<Value> = std::iter::once(x).chain(operands).collect();
        self.push(Op::Slice { starts, lengths, strides }, &operands)
    }

    /// Something that is written into a value.
    fn update(&mut self, x: Value, shape: &Shape) -> Option<Value> {
        let dtype = self.graph.ty(x).dtype;
        if self.source.below(3) == 0 {
            let axis = shape.axes().next()?;
            let positions = self.values.iter().copied().rev().find(|&value| {
                let ty = self.graph.ty(value);
                ty.shape.rank() == 1 && ty.dtype == DType::S32
            })?;
            let count = self.graph.ty(positions).shape.size();
            let positions = self.push(Op::Reshape { shape: Shape::new(&[count, 1]) }, &[positions])?;
            let sizes: Vec<usize> =
                std::iter::once(count).chain(shape.sizes()[1..].iter().copied()).collect();
            let from = self.value();
            let one = Op::Reduce {
                op: ReduceOp::ReduceMax,
                axes: self.graph.ty(from).shape.axes().collect(),
                keep_axes: false,
            };
            let one = self.push(one, &[from])?;
            let one = self.push(Op::AsType { dtype }, &[one])?;
            let updates =
                self.push(Op::Broadcast { shape: Shape::new(&sizes), axes: SmallVec::new() }, &[one])?;
            let op = ScatterOp::ALL[self.source.below(ScatterOp::ALL.len())];
            let axes = [axis].into_iter().collect();
            return self.push(Op::Scatter { op, axes }, &[x, positions, updates]);
        }
        // A window of another value, or an element.
        let y = self.value();
        let other = self.graph.ty(y).shape.clone();
        let update = if other.rank() == shape.rank() && self.source.below(3) > 0 {
            let lengths: SmallVec<[usize; 4]> =
                other.sizes().iter().zip(shape.sizes()).map(|(&a, &b)| a.min(b)).collect();
            let strides = lengths.iter().map(|_| 1).collect();
            let starts = Starts::Static(lengths.iter().map(|_| 0).collect());
            self.push(Op::Slice { starts, lengths, strides }, &[y])?
        } else {
            let op = ReduceOp::ALL[self.source.below(2)];
            let one = self.push(Op::Reduce { op, axes: other.axes().collect(), keep_axes: false }, &[y])?;
            let ones: Vec<usize> = shape.sizes().iter().map(|_| 1).collect();
            self.push(Op::Reshape { shape: Shape::new(&ones) }, &[one])?
        };
        let update =
            if self.source.below(4) == 0 { update } else { self.push(Op::AsType { dtype }, &[update])? };
        let lengths: Vec<usize> = self.graph.ty(update).shape.sizes().to_vec();
        let (starts, operands) = self.starts(shape, &lengths)?;
        let operands: Vec<Value> = [x, update].into_iter().chain(operands).collect();
        self.push(Op::PutSlice { starts }, &operands)
    }

    fn product(&mut self, x: Value, shape: &Shape) -> Option<Value> {
        let y = self.value();
        let other = self.graph.ty(y).shape.clone();
        if let [rows, columns] = *shape.sizes()
            && rows == columns
        {
            match self.source.below(4) {
                0 => return self.push(Op::Block(Block::Determinant), &[x]),
                1 => return self.push(Op::Block(Block::Solve), &[x, y]),
                _ => {}
            }
        }
        let (last, first) = (shape.axes().next_back()?, other.axes().next()?);
        let op = Op::Dot {
            contract_a: [last].into_iter().collect(),
            batch_a: SmallVec::new(),
            contract_b: [first].into_iter().collect(),
            batch_b: SmallVec::new(),
        };
        self.push(op, &[x, y])
    }

    // Control flow.

    fn control(&mut self) -> Option<()> {
        if self.source.below(3) == 0 { self.branches() } else { self.repeated() }
    }

    /// Some of the values, each once.
    fn some(&mut self, most: usize) -> Vec<Value> {
        let mut chosen = Vec::new();
        for _ in 0..1 + self.source.below(most) {
            let value = self.value();
            if !chosen.contains(&value) {
                chosen.push(value);
            }
        }
        chosen
    }

    /// A region with parameters and captures of such types, and what `work` makes of them.
    fn region(
        &mut self,
        types: &[TensorType],
        parameters: usize,
        work: impl FnOnce(&mut Scope<'_, '_>) -> Option<Values>,
    ) -> Option<Arc<Region>> {
        let mut inner = Scope {
            source: self.source,
            dtypes: self.dtypes,
            graph: Graph::new(),
            values: Vec::new(),
            depth: self.depth + 1,
        };
        for (index, ty) in types.iter().enumerate() {
            let value = inner.graph.parameter(index, ty.clone());
            inner.values.push(value);
        }
        let results = work(&mut inner)?;
        Some(Arc::new(Region::new(inner.graph, types.to_vec(), parameters, results)))
    }

    /// A value of a type, mostly one that was just computed.
    fn of_type(&mut self, ty: &TensorType) -> Option<Value> {
        let fitting: Vec<Value> =
            self.values.iter().copied().filter(|&value| self.graph.ty(value) == ty).collect();
        let last = *fitting.last()?;
        Some(if self.source.below(4) == 0 { fitting[self.source.below(fitting.len())] } else { last })
    }

    fn repeated(&mut self) -> Option<()> {
        let counter = TensorType { dtype: DType::S32, shape: Shape::scalar() };
        let mut state = self.some(3);
        let captures = self.some(3);
        state.push(self.number(DType::S32, 0.0)?);
        let count = state.len();
        let operands: Vec<Value> = state.into_iter().chain(captures).collect();
        let types: Vec<TensorType> = operands.iter().map(|&value| self.graph.ty(value).clone()).collect();
        debug_assert_eq!(types[count - 1], counter);
        let trips = [0, 1, 2, 3, 5][self.source.below(5)];
        let asks = self.source.below(3) == 0;
        let cond = self.region(&types, count, |inner| {
            let (counted, first) = (inner.values[count - 1], inner.values[0]);
            let end = inner.number(DType::S32, trips as f64)?;
            let mut goes_on = inner.push(Op::Binary(BinaryOp::LESS), &[counted, end])?;
            if asks {
                let axes = inner.graph.ty(first).shape.axes().collect();
                let most =
                    inner.push(Op::Reduce { op: ReduceOp::ReduceMax, axes, keep_axes: false }, &[first])?;
                goes_on = inner.push(Op::Binary(BinaryOp::LOGICAL_AND), &[goes_on, most])?;
            }
            Some([goes_on].into_iter().collect())
        })?;
        let body = self.region(&types, count, |inner| {
            let steps = 1 + inner.source.below(6);
            inner.steps(steps);
            let mut next = Values::new();
            for ty in &types[..count - 1] {
                next.push(inner.of_type(ty)?);
            }
            let counted = inner.values[count - 1];
            let one = inner.number(DType::S32, 1.0)?;
            next.push(inner.push(Op::Binary(BinaryOp::ADD), &[counted, one])?);
            Some(next)
        })?;
        let known = !asks && self.source.below(2) == 0;
        let op = WhileOp { state: count, trips: known.then_some(trips as u64), snapshots: None, cond, body };
        self.push(Op::While(op), &operands).map(drop)
    }

    fn branches(&mut self) -> Option<()> {
        let captures = self.some(4);
        let types: Vec<TensorType> = captures.iter().map(|&value| self.graph.ty(value).clone()).collect();
        let tests = 1 + self.source.below(2);
        let mut operands = Vec::new();
        for _ in 0..tests {
            let x = self.value();
            let axes = self.graph.ty(x).shape.axes().collect();
            operands.push(self.push(Op::Reduce { op: ReduceOp::ReduceMin, axes, keep_axes: false }, &[x])?);
        }
        let results: Vec<TensorType> =
            (0..1 + self.source.below(2)).map(|_| types[self.source.below(types.len())].clone()).collect();
        let mut branches = SmallVec::new();
        for _ in 0..=tests {
            branches.push(self.region(&types, 0, |inner| {
                let steps = inner.source.below(4);
                inner.steps(steps);
                results.iter().map(|ty| inner.of_type(ty)).collect()
            })?);
        }
        operands.extend(captures);
        self.push(Op::Cond(CondOp { branches }), &operands).map(drop)
    }
}

impl RandomProgram {
    /// The gradients of what real floats among the results sum up to, with that sum. None where there is none.
    pub(super) fn differentiated(&self) -> Option<RandomProgram> {
        let (loss, wrt) = self.loss()?;
        let region = Arc::new(value_and_grad(&loss, 0, &wrt).ok()?);
        Some(RandomProgram { region, arguments: self.arguments.clone(), ..*self })
    }

    /// What real floats among the results sum up to, and the inputs that are real floats. None where there are none.
    pub(super) fn loss(&self) -> Option<(Region, Vec<usize>)> {
        let is_real = |ty: &TensorType| ty.dtype.kind() == Kind::Float;
        let wrt: Vec<usize> =
            (0..self.region.inputs().len()).filter(|&at| is_real(&self.region.inputs()[at])).collect();
        let (mut graph, inputs, parameters, results) = self.region.as_ref().clone().into_parts();
        let mut loss: Option<Value> = None;
        for result in results.into_iter().filter(|&result| is_real(graph.ty(result))).collect::<Vec<_>>() {
            let axes = graph.ty(result).shape.axes().collect();
            let sum =
                graph.push(Op::Reduce { op: ReduceOp::Sum, axes, keep_axes: false }, &[result]).ok()?[0];
            let sum = graph.push(Op::AsType { dtype: DType::F64 }, &[sum]).ok()?[0];
            loss = Some(match loss {
                Some(loss) => graph.push(Op::Binary(BinaryOp::ADD), &[loss, sum]).ok()?[0],
                None => sum,
            });
        }
        let region = Region::new(graph, inputs, parameters, [loss?].into_iter().collect());
        (!wrt.is_empty()).then_some((region, wrt))
    }
}
