//! Random regions with every form of op, and a small backend for constants.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod bounded;
mod collective;
pub mod digest;
mod drawing;
mod factor;
mod index;
mod rules;
mod sliding;

use std::{any::Any, sync::Arc};

use defn_core::backend::{Backend, Buffer, BufferState, Buffers, HostMemory, Operand};
use defn_core::builder::Builder;
use defn_core::form::name;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{
    ArgOp, BinaryOp, Block, CompositeBlock, CondOp, Literal, Op, Padding, ReduceOp, Starts, TieBreak,
    Tolerance, UnaryOp, UserBlockOp, WhileOp,
};
use defn_core::region::Region;
use defn_core::shape::{Axis, AxisList, Name, Sizes};
use defn_core::{DType, ErrorKind, Location, Number, Result, Scalar, Shape, TensorType};
use proptest::prelude::*;
use smallvec::SmallVec;

/// Regions of up to about 60 nodes, three levels deep.
pub fn regions() -> impl Strategy<Value = Region> {
    regions_of(false)
}

/// The same with collectives, which no single device can run.
pub fn regions_of_devices() -> impl Strategy<Value = Region> {
    regions_of(true)
}

fn regions_of(exchanges: bool) -> impl Strategy<Value = Region> {
    prop::collection::vec(any::<u32>(), 8..1000).prop_map(move |choices| {
        let mut random = Random { choices, next: 0, smooth: false, exchanges };
        let parameters = random.types(3);
        let captures = random.types(2);
        random.region(parameters, captures, 3, None)
    })
}

/// Regions of f32 parameters and ops that mostly have a gradient.
pub fn smooth_regions() -> impl Strategy<Value = Region> {
    prop::collection::vec(any::<u32>(), 100..2000).prop_map(|choices| {
        let mut random = Random { choices, next: 0, smooth: true, exchanges: true };
        let parameters = (0..2).map(|_| TensorType::new(DType::F32, random.shape()).unwrap()).collect();
        random.region(parameters, Vec::new(), 3, None)
    })
}

/// The ops of smooth regions.
const SMOOTH: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "divide",
    "max",
    "atan2",
    "pow",
    "select",
    "clip",
    "sin",
    "exp",
    "tanh",
    "sqrt",
    "abs",
    "negate",
    "sigmoid",
    "reshape",
    "squeeze",
    "broadcast",
    "transpose",
    "pad",
    "reverse",
    "concatenate",
    "stack",
    "slice",
    "put_slice",
    "sum",
    "product",
    "reduce_max",
    "dot",
    "cond",
    "while",
    "custom_grad",
    "implicit",
    "stop_grad",
    "mark",
    "transfer",
    "barrier",
    "hook",
    "logsumexp",
    "as_type",
    "window_sum",
    "window_max",
    "window_min",
    "window_scatter_max",
    "window_scatter_min",
    "conv",
    "fft",
    "ifft",
    "fft2",
    "ifft2",
    "rfft",
    "irfft",
    "gather",
    "take",
    "take_along_axis",
    "indexed_add",
    "indexed_put",
    "sort",
    "top_k",
    "cumulative_sum",
    "cumulative_max",
    "eye",
    "triangular_solve",
    "cholesky",
    "solve",
    "qr",
    "lu",
    "svd",
    "eigh",
    "determinant",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "collective_permute",
];

/// Makes decisions from a list, so that proptest can shrink them.
pub struct Random {
    choices: Vec<u32>,
    next: usize,
    smooth: bool,
    /// Whether collectives are generated.
    exchanges: bool,
}

impl Random {
    fn below(&mut self, count: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        choice as usize % count.max(1)
    }

    /// One of several values, mostly a late one, so that graphs become deep.
    fn late(&mut self, values: &[Value]) -> Value {
        if self.below(4) == 0 {
            self.one(values)
        } else {
            self.one(&values[values.len().saturating_sub(4)..])
        }
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn dtype(&mut self) -> DType {
        // Mostly one dtype, so that operands fit together.
        if self.below(4) != 0 { DType::F32 } else { self.one(DType::ALL) }
    }

    fn name(&mut self) -> Option<Name> {
        let names = ["x", "row", "a \"quoted\" \\ name", "line\nbreak // no comment", "ünïcode\u{7f}", ""];
        if self.below(8) == 0 { Some(self.one(&names).into()) } else { None }
    }

    fn shape(&mut self) -> Shape {
        let rank = self.below(4);
        Shape::from_axes((0..rank).map(|_| (self.one(&[2, 2, 3, 3, 1, 0]), self.name())).collect::<Vec<_>>())
    }

    fn ty(&mut self) -> TensorType {
        TensorType::new(self.dtype(), self.shape()).unwrap()
    }

    fn types(&mut self, most: usize) -> Vec<TensorType> {
        (0..self.below(most + 1)).map(|_| self.ty()).collect()
    }

    /// Some of a shape's axes, ascending.
    fn axes(&mut self, shape: &Shape) -> AxisList {
        shape.axes().filter(|_| self.flip()).collect()
    }

    fn axis(&mut self, shape: &Shape) -> Option<Axis> {
        shape.axis(self.below(shape.rank()))
    }

    fn scalar(&mut self) -> Scalar {
        let dtype = self.dtype();
        let bytes: Vec<u8> = (0..dtype.storage_bytes()).map(|_| self.below(256) as u8).collect();
        match self.below(4) {
            0 => Scalar::zero(dtype),
            1 => Scalar::one(dtype),
            2 => Scalar::from_bytes(dtype, &bytes),
            _ => {
                let special = [-0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 0.1];
                Scalar::new(dtype, self.one(&special)).unwrap_or_else(|_| Scalar::one(dtype))
            }
        }
    }

    fn literal(&mut self) -> Literal {
        let ty = self.ty();
        let scalar = |random: &mut Random| {
            let bytes: Vec<u8> = (0..ty.dtype.storage_bytes()).map(|_| random.below(256) as u8).collect();
            // Packed types have one bit pattern for each value.
            if ty.dtype.bits() < 8 { Scalar::from_bytes(ty.dtype, &bytes).to_bytes() } else { bytes }
        };
        let bytes: Vec<u8> = (0..ty.size()).flat_map(|_| scalar(self)).collect();
        Literal::new(ty, bytes)
    }

    /// A region with at least one result, or with results of given types.
    fn region(
        &mut self,
        parameters: Vec<TensorType>,
        captures: Vec<TensorType>,
        depth: usize,
        results: Option<&[TensorType]>,
    ) -> Region {
        let mut graph = Graph::new();
        let count = parameters.len();
        let inputs: Vec<TensorType> = parameters.into_iter().chain(captures).collect();
        let mut values: Vec<Value> =
            inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
        let nodes = if depth == 3 { 4 + self.below(50) } else { self.below(12) };
        for line in 0..nodes {
            if self.next >= self.choices.len() {
                break;
            }
            graph.set_location(Some(Location { file: "file\n.py".into(), line: line as u32 }));
            let (op, operands) = self.op(&graph, &values, depth);
            if self.smooth && !SMOOTH.contains(&name(&op)) {
                continue;
            }
            // Operands that do not fit are refused, and the graph is unchanged.
            if let Ok(outputs) = graph.emit(op, &operands) {
                values.extend(outputs);
            }
        }
        graph.set_location(None);
        let results: Values = match results {
            Some(types) => types.iter().map(|ty| self.value_of(&mut graph, &values, ty)).collect(),
            None => {
                if values.is_empty() {
                    values.extend(graph.emit(Op::Constant(Scalar::one(DType::F32)), &[]).unwrap());
                }
                (0..1 + self.below(3)).map(|_| self.late(&values)).collect()
            }
        };
        Region::new(graph, inputs, count, results)
    }

    /// A value of a type: an existing one, or a broadcast constant.
    fn value_of(&mut self, graph: &mut Graph, values: &[Value], ty: &TensorType) -> Value {
        let fit: Vec<Value> = values.iter().copied().filter(|&value| graph.ty(value) == ty).collect();
        if !fit.is_empty() && self.below(4) != 0 {
            return self.late(&fit);
        }
        let scalar = graph.emit(Op::Constant(Scalar::one(ty.dtype)), &[]).unwrap()[0];
        let op = Op::Broadcast { shape: ty.shape.clone(), axes: SmallVec::new() };
        graph.emit(op, &[scalar]).unwrap()[0]
    }

    fn starts(&mut self, shape: &Shape) -> Starts {
        Starts::Static(shape.sizes().iter().map(|&size| self.below(size + 1)).collect())
    }

    /// An op, with operands that mostly fit.
    fn op(&mut self, graph: &Graph, values: &[Value], depth: usize) -> (Op, Values) {
        if values.is_empty() {
            return (Op::Constant(self.scalar()), Values::new());
        }
        let (x, y, z) = (self.late(values), self.late(values), self.one(values));
        let shape = graph.ty(x).shape.clone();
        let one: Values = [x].into_iter().collect();
        let two: Values = [x, y].into_iter().collect();
        let three: Values = [x, y, z].into_iter().collect();
        if self.exchanges && self.below(16) == 0 {
            return self.exchange(&shape, one);
        }
        match self.below(40) {
            0 => (Op::Constant(self.scalar()), Values::new()),
            1 => (Op::Literal(self.literal()), Values::new()),
            2 => {
                let TensorType { dtype, shape } = self.ty();
                let axis = if self.flip() { self.axis(&shape) } else { None };
                (Op::Iota { shape, dtype, axis }, Values::new())
            }
            3 => {
                let TensorType { dtype, shape } = self.ty();
                (Op::Eye { shape, dtype }, Values::new())
            }
            4..8 => (Op::Unary(self.one(UnaryOp::ALL)), one),
            8..14 => (
                Op::Binary(self.one(BinaryOp::ALL)),
                if self.flip() { two } else { [x, x].into_iter().collect() },
            ),
            14 => (Op::AsType { dtype: self.one(DType::ALL) }, one),
            15 => (Op::Bitcast { dtype: self.one(DType::ALL) }, one),
            16 => (Op::Select, three),
            17 => (Op::Clip, three),
            18 => {
                let mut sizes: Vec<_> = shape.entries().map(|(size, _)| (size, self.name())).collect();
                sizes.rotate_left(self.below(shape.rank()));
                sizes.push((1, self.name()));
                (Op::Reshape { shape: Shape::from_axes(sizes) }, one)
            }
            19 => {
                let axes = self.axes(&shape);
                (Op::Squeeze { axes: axes.into_iter().filter(|&axis| shape[axis] == 1).collect() }, one)
            }
            20 => {
                let entries: Vec<_> = [(2, self.name())].into_iter().chain(shape.entries()).collect();
                let new = Shape::from_axes(entries);
                (Op::Broadcast { axes: new.axes().skip(1).collect(), shape: new }, one)
            }
            21 => {
                let mut axes: AxisList = shape.axes().collect();
                axes.rotate_left(self.below(shape.rank()));
                (Op::Transpose { axes }, one)
            }
            22 => {
                let entry = |random: &mut Random| Padding {
                    low: random.below(3) as i64 - 1,
                    high: random.below(3) as i64,
                    interior: random.below(2),
                };
                (Op::Pad { config: shape.axes().map(|_| entry(self)).collect() }, two)
            }
            23 => (Op::Reverse { axes: self.axes(&shape) }, one),
            24 => match self.axis(&shape) {
                Some(axis) => (Op::Concatenate { axis }, [x, x].into_iter().collect()),
                None => (Op::StopGrad, one),
            },
            25 => {
                let op = Op::Stack { axis: self.below(shape.rank() + 1), name: self.name() };
                (op, [x, x].into_iter().collect())
            }
            26 => {
                let starts = self.starts(&shape);
                let Starts::Static(list) = &starts else { unreachable!("they are static") };
                let lengths: Sizes = shape
                    .sizes()
                    .iter()
                    .zip(list)
                    .map(|(&size, &start)| self.below(size - start + 1))
                    .collect();
                let strides: Sizes = shape.axes().map(|_| 1 + self.below(2)).collect();
                if self.flip() {
                    return (Op::Slice { starts, lengths, strides }, one);
                }
                let operands = std::iter::once(x).chain(shape.axes().map(|_| y)).collect();
                (Op::Slice { starts: Starts::Dynamic, lengths, strides }, operands)
            }
            27 => {
                if self.flip() {
                    let starts = Starts::Static(shape.axes().map(|_| 0).collect());
                    return (Op::PutSlice { starts }, [x, x].into_iter().collect());
                }
                let operands = [x, x].into_iter().chain(shape.axes().map(|_| y)).collect();
                (Op::PutSlice { starts: Starts::Dynamic }, operands)
            }
            28 => {
                let (op, axes) = (self.one(ReduceOp::ALL), self.axes(&shape));
                (Op::Reduce { op, axes, keep_axes: self.flip() }, one)
            }
            29 => {
                let op = Op::ArgReduce {
                    op: self.one(ArgOp::ALL),
                    axis: if self.flip() { self.axis(&shape) } else { None },
                    keep_axis: self.flip(),
                    tie_break: self.one(TieBreak::ALL),
                    dtype: self.one(&[DType::S32, DType::U8]),
                };
                (op, one)
            }
            30 => {
                let axes: AxisList = self.axis(&shape).into_iter().collect();
                let batch = AxisList::new();
                let op = Op::Dot {
                    contract_a: axes.clone(),
                    batch_a: batch.clone(),
                    contract_b: axes,
                    batch_b: batch,
                };
                (op, [x, x].into_iter().collect())
            }
            31 => match self.below(9) {
                0..6 => self.passed(one, two),
                6 => {
                    let not = Block::Composite(CompositeBlock::LogicalNot);
                    let phase = Block::Composite(CompositeBlock::Phase);
                    (Op::Block(self.one(&[not, phase, Block::Log2, Block::Log10])), one)
                }
                7 => {
                    let axes = self.axes(&shape);
                    let block = CompositeBlock::Logsumexp { axes, keep_axes: self.flip() };
                    (Op::Block(Block::Composite(block)), one)
                }
                _ => (
                    Op::Block(Block::Composite(CompositeBlock::AllClose {
                        equal_nan: self.flip(),
                        rtol: Tolerance(1e-5),
                        atol: Tolerance(0.0),
                    })),
                    two,
                ),
            },
            32 | 33 => self.sliding(graph, values, depth),
            34 | 35 => self.positions(graph, values),
            36 | 37 => self.matrices(graph, values),
            38 => self.drawing(graph, values),
            _ if depth == 0 => (Op::StopGrad, one),
            _ => self.control(graph, values, depth - 1),
        }
    }

    fn control(&mut self, graph: &Graph, values: &[Value], depth: usize) -> (Op, Values) {
        let scalars: Vec<Value> =
            values.iter().copied().filter(|&value| graph.ty(value).shape.rank() == 0).collect();
        let captures: Values = (0..self.below(3)).map(|_| self.one(values)).collect();
        let types =
            |values: &[Value]| values.iter().map(|&value| graph.ty(value).clone()).collect::<Vec<_>>();
        let state: Values = (0..1 + self.below(2)).map(|_| self.late(values)).collect();
        match self.below(4) {
            0 if !scalars.is_empty() => {
                let results = types(&state);
                let count = 2 + self.below(2);
                let branches = (0..count)
                    .map(|_| Arc::new(self.region(Vec::new(), types(&captures), depth, Some(&results))))
                    .collect();
                let mut operands: Values = (1..count).map(|_| self.one(&scalars)).collect();
                operands.extend(captures);
                (Op::Cond(CondOp { branches }), operands)
            }
            1 => {
                let predicate = [TensorType::scalar(self.dtype())];
                let cond = self.region(types(&state), types(&captures), depth, Some(&predicate));
                let body = self.region(types(&state), types(&captures), depth, Some(&types(&state)));
                let trips = if self.flip() { Some(u64::MAX) } else { None };
                let op = WhileOp {
                    state: state.len(),
                    trips,
                    snapshots: None,
                    cond: Arc::new(cond),
                    body: Arc::new(body),
                };
                (Op::While(op), state.into_iter().chain(captures).collect())
            }
            2 => {
                let results = types(&(0..self.below(3)).map(|_| self.one(values)).collect::<Values>());
                let region = self.region(types(&state), types(&captures), depth, Some(&results));
                let (name, attributes) = ("Softmax".into(), "axis=(0, 1), name=\"a\\n\"".into());
                let (slot, args, default) = (self.below(3), state.len(), Arc::new(region));
                let op = UserBlockOp { name, attributes, slot, args, default };
                (Op::UserBlock(op), state.into_iter().chain(captures).collect())
            }
            _ => {
                let inputs: Values = (0..self.below(2)).map(|_| self.one(values)).collect();
                let types = [&types(&state)[..], &types(&inputs), &types(&captures)];
                (self.derivative(types, depth), state.into_iter().chain(inputs).chain(captures).collect())
            }
        }
    }
}

/// Runs constants, conversions, and sums, products and comparisons of f64 and s32 scalars.
#[derive(Debug)]
pub struct Scalars;

/// The backend, as the passes take it.
pub fn scalars() -> Arc<dyn Backend> {
    Arc::new(Scalars)
}

/// A buffer of bytes on a test's backend.
#[derive(Debug)]
pub struct Bytes {
    backend: Arc<dyn Backend>,
    bytes: Vec<u8>,
}

impl Bytes {
    pub fn at(backend: Arc<dyn Backend>, bytes: Vec<u8>) -> Arc<dyn Buffer> {
        Arc::new(Bytes { backend, bytes })
    }
}

impl Buffer for Bytes {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&self.bytes[..out.len()]);
        Ok(())
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        Ok(None)
    }

    fn state(&self) -> BufferState {
        BufferState::Live
    }

    fn deallocate(&self) -> Result<bool> {
        Ok(false)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Backend for Scalars {
    fn name(&self) -> &str {
        "scalars"
    }

    fn from_host(&self, _: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        Ok(Bytes::at(scalars(), bytes.bytes().to_vec()))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        let value = |operand: &Operand| {
            let mut bytes = vec![0; operand.ty.byte_size()];
            operand.buffer.read(&mut bytes).unwrap();
            Scalar::from_bytes(operand.ty.dtype, &bytes).value()
        };
        let number = match (op, &operands[..]) {
            (Op::Constant(scalar), []) => Some(scalar.value()),
            (Op::AsType { .. }, [x]) => Some(value(x)),
            (Op::Binary(op), [a, b]) => binary(*op, value(a), value(b)),
            (_, _) => None,
        };
        let scalar = number.and_then(|number| Scalar::new(outputs[0].dtype, number).ok());
        match scalar {
            Some(scalar) => Ok(SmallVec::from_elem(Bytes::at(scalars(), scalar.to_bytes()), 1)),
            None => Err(ErrorKind::BackendRefused {
                op: "run",
                backend: "scalars".to_owned(),
                why: "the tests do not need it".to_owned(),
            }
            .into()),
        }
    }

    fn has_native(&self, _: &Block) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn binary(op: BinaryOp, a: Number, b: Number) -> Option<Number> {
    let (
        Number::Int(_) | Number::Huge(_) | Number::Float(_),
        Number::Int(_) | Number::Huge(_) | Number::Float(_),
    ) = (a, b)
    else {
        return None;
    };
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let (sum, product, less) = (a.wrapping_add(b), a.wrapping_mul(b), i128::from(a < b));
        let known = [(BinaryOp::ADD, sum), (BinaryOp::MULTIPLY, product), (BinaryOp::LESS, less)];
        return known.into_iter().find_map(|(known, value)| (known == op).then_some(Number::Int(value)));
    }
    let (a, b) = (a.to_f64(), b.to_f64());
    if op == BinaryOp::LESS {
        return Some(Number::Int(i128::from(a < b)));
    }
    [(BinaryOp::ADD, a + b), (BinaryOp::MULTIPLY, a * b)]
        .into_iter()
        .find_map(|(known, value)| (known == op).then_some(Number::Float(value)))
}
