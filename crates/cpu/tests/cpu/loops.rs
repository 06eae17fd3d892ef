//! Compiled loops and branches over scalars, small arrays, and elements and rows of arrays give the evaluator's bits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use defn_core::backend::{Backend, Checks, Compiler, Hooks, HostMemory, NoHooks};
use defn_core::builder::{BuildCreate, BuildElementwise, BuildShape, Builder};
use defn_core::evaluator::Evaluator;
use defn_core::graph::{Graph, Value};
use defn_core::op::{BinaryOp, CondOp, Op, Starts, UnaryOp, WhileOp};
use defn_core::region::Region;
use defn_core::{DType, ErrorKind, Number, Result, Scalar, Shape, Tensor, TensorType};
use defn_cpu::{CpuCompiler, cpu_backend};
use proptest::prelude::*;

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

/// A region whose last `captures` inputs are captures; the others are parameters.
fn region(
    inputs: &[TensorType],
    captures: usize,
    body: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>,
) -> Arc<Region> {
    let mut graph = Graph::new();
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = body(&mut graph, &values);
    let parameters = inputs.len() - captures;
    Arc::new(Region::new(graph, inputs.to_vec(), parameters, results.into_iter().collect()))
}

/// Elements for an input, different for each position.
fn input(backend: &Arc<dyn Backend>, index: usize, ty: &TensorType) -> Tensor {
    let element = |position: usize| {
        let number = (11 * position + 3 * index) % 7;
        let number = match ty.dtype.is_integer() {
            true => Number::Int((position + index) as i128 % 2),
            false => Number::Float(number as f64 / 4.0 - 0.6),
        };
        Scalar::new(ty.dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    let buffer = backend.from_host(ty, HostMemory::from(bytes)).unwrap();
    Tensor::concrete(ty.clone(), buffer)
}

fn run(compiler: &dyn Compiler, region: &Arc<Region>, hooks: &dyn Hooks) -> Result<Vec<Vec<u8>>> {
    let backend = cpu_backend();
    let program = compiler.compile(region.clone(), Checks::default())?;
    let arguments = region.inputs().iter().enumerate().map(|(index, ty)| input(&backend, index, ty));
    let results = program.run(&backend, arguments.collect(), hooks)?;
    let bytes =
        |result: &Tensor| with_one_nan(result.ty(), result.host_bytes("test").unwrap().bytes().to_vec());
    Ok(results.iter().map(bytes).collect())
}

/// Replaces every NaN by the same one: their signs and payloads are not specified.
fn with_one_nan(ty: &TensorType, mut bytes: Vec<u8>) -> Vec<u8> {
    for element in bytes.chunks_exact_mut(ty.dtype.to_real().storage_bytes()) {
        if Scalar::from_bytes(ty.dtype.to_real(), element).value().to_f64().is_nan() {
            element.fill(u8::MAX);
        }
    }
    bytes
}

/// Checks that a program gives the evaluator's bits.
fn check(region: &Arc<Region>) {
    let want = run(&Evaluator::new(cpu_backend()), region, &NoHooks).unwrap();
    let got = run(&CpuCompiler::new(), region, &NoHooks).unwrap();
    assert!(want == got, "{}", region.to_text());
}

/// A loop of `trips` trips over state and captures of these types, which are the program's inputs. The first value that
/// `cond` and `body` get counts the trips, in s32.
fn counted(
    trips: i64,
    state: &[TensorType],
    captures: &[TensorType],
    body: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>,
) -> Arc<Region> {
    let count = TensorType::scalar(DType::S32);
    let inner: Vec<TensorType> = std::iter::once(&count).chain(state).chain(captures).cloned().collect();
    let cond = region(&inner, captures.len(), |g, v| vec![g.less(v[0], trips).unwrap()]);
    let body = region(&inner, captures.len(), |g, v| {
        let next = g.add(v[0], 1).unwrap();
        std::iter::once(next).chain(body(g, v)).collect()
    });
    let op = WhileOp { state: state.len() + 1, trips: None, snapshots: None, cond, body };
    region(&inner[1..], 0, |g, v| {
        let zero = g.constant(DType::S32, 0).unwrap();
        let operands: Vec<Value> = std::iter::once(zero).chain(v.iter().copied()).collect();
        g.emit(Op::While(op), &operands).unwrap().to_vec()
    })
}

/// The numbers that determine a test's choices.
struct Choices {
    numbers: Vec<u16>,
    at: usize,
}

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        self.at += 1;
        usize::from(self.numbers[self.at % self.numbers.len()]) % count
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A real type.
    fn dtype(&mut self) -> DType {
        let real: Vec<DType> = DType::ALL.iter().copied().filter(|dtype| !dtype.is_complex()).collect();
        // Half of the programs have the common types.
        if self.below(2) == 0 { self.one(&real) } else { self.one(&[DType::F32, DType::F64, DType::S32]) }
    }

    fn ty(&mut self) -> TensorType {
        let dtype = self.dtype();
        let sizes: &[usize] = self.one(&[&[][..], &[], &[], &[1], &[5], &[3, 4], &[1, 4], &[1030]]);
        ty(dtype, sizes)
    }

    /// Converts a value to a type; if its shape differs, a scalar of it is broadcast.
    fn fitted(&mut self, g: &mut Graph, x: Value, ty: &TensorType) -> Value {
        let x = if g.ty(x).shape.sizes() == ty.shape.sizes() {
            x
        } else {
            let scalar = self.element(g, x);
            g.emit_one(Op::Broadcast { shape: ty.shape.clone(), axes: Default::default() }, &[scalar])
                .unwrap()
        };
        g.as_type(x, ty.dtype).unwrap()
    }

    /// A scalar of a value: one of its elements, at a position given by other values.
    fn element(&mut self, g: &mut Graph, x: Value) -> Value {
        let sizes = g.ty(x).shape.sizes().to_vec();
        let starts = sizes.iter().map(|_| self.below(5) as i128 - 1);
        let starts: Vec<Value> =
            starts.map(|start| g.constant(DType::S32, Number::Int(start)).unwrap()).collect();
        let ones: Vec<usize> = vec![1; sizes.len()];
        let op = Op::Slice {
            starts: Starts::Dynamic,
            lengths: ones.iter().copied().collect(),
            strides: ones.iter().copied().collect(),
        };
        let operands: Vec<Value> = std::iter::once(x).chain(starts).collect();
        let one = g.emit_one(op, &operands).unwrap();
        g.reshape_to(one, Shape::new(&[])).unwrap()
    }

    /// Positions on the axes of a shape, from existing scalars.
    fn starts(&mut self, g: &mut Graph, values: &[Value], rank: usize) -> Vec<Value> {
        let scalars: Vec<Value> = values
            .iter()
            .copied()
            .filter(|&x| g.ty(x).shape.rank() == 0 && g.ty(x).dtype.is_integer())
            .collect();
        (0..rank)
            .map(|_| {
                if scalars.is_empty() || self.below(3) == 0 {
                    let start = self.below(6) as i128 - 1;
                    g.constant(DType::S64, Number::Int(start)).unwrap()
                } else {
                    self.one(&scalars)
                }
            })
            .collect()
    }

    /// One more value, if the choice is possible.
    fn value(&mut self, g: &mut Graph, values: &[Value], depth: usize) -> Option<Value> {
        let (a, b, c) = (self.one(values), self.one(values), self.one(values));
        let shape = g.ty(a).shape.clone();
        match self.below(12) {
            0 => {
                let op = self.one(&[
                    UnaryOp::NEGATE,
                    UnaryOp::ABS,
                    UnaryOp::SIGN,
                    UnaryOp::FLOOR,
                    UnaryOp::SIN,
                    UnaryOp::EXP,
                    UnaryOp::TANH,
                    UnaryOp::SQRT,
                    UnaryOp::LOG,
                    UnaryOp::IS_NAN,
                    UnaryOp::BITWISE_NOT,
                ]);
                g.emit_one(Op::Unary(op), &[a]).ok()
            }
            1..=3 => {
                let common = [
                    BinaryOp::ADD,
                    BinaryOp::SUBTRACT,
                    BinaryOp::MULTIPLY,
                    BinaryOp::MAX,
                    BinaryOp::MIN,
                    BinaryOp::DIVIDE,
                ];
                let rare = [
                    BinaryOp::QUOTIENT,
                    BinaryOp::REMAINDER,
                    BinaryOp::POW,
                    BinaryOp::ATAN2,
                    BinaryOp::BITWISE_AND,
                    BinaryOp::BITWISE_OR,
                    BinaryOp::BITWISE_XOR,
                    BinaryOp::LEFT_SHIFT,
                    BinaryOp::RIGHT_SHIFT,
                    BinaryOp::EQUAL,
                    BinaryOp::NOT_EQUAL,
                    BinaryOp::GREATER,
                    BinaryOp::GREATER_EQUAL,
                    BinaryOp::LESS,
                    BinaryOp::LESS_EQUAL,
                    BinaryOp::LOGICAL_AND,
                    BinaryOp::LOGICAL_OR,
                    BinaryOp::LOGICAL_XOR,
                ];
                let op = if self.below(3) == 0 { self.one(&rare) } else { self.one(&common) };
                g.emit_one(Op::Binary(op), &[a, b]).ok()
            }
            4 => g.as_type(a, self.dtype()).ok(),
            5 => g.select(c, a, b).ok(),
            6 => {
                let (lo, hi) = (self.below(3) as i64 - 1, self.below(4) as i64);
                g.clip(a, lo, hi).ok()
            }
            7 if shape.rank() > 0 => {
                // A row, or an element.
                let mut lengths: Vec<usize> = shape.sizes().to_vec();
                lengths[0] = 1;
                if self.below(2) == 0 {
                    lengths.fill(1);
                }
                let starts = self.starts(g, values, lengths.len());
                let strides = lengths.iter().map(|_| 1).collect();
                let op =
                    Op::Slice { starts: Starts::Dynamic, lengths: lengths.into_iter().collect(), strides };
                let operands: Vec<Value> = std::iter::once(a).chain(starts).collect();
                g.emit_one(op, &operands).ok()
            }
            8 if shape.rank() > 0 => {
                let mut lengths: Vec<usize> = shape.sizes().to_vec();
                lengths[0] = 1;
                if self.below(2) == 0 {
                    lengths.fill(1);
                }
                let update = self.fitted(g, b, &ty(g.ty(a).dtype, &lengths));
                let starts = self.starts(g, values, lengths.len());
                let operands: Vec<Value> = [a, update].into_iter().chain(starts).collect();
                g.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &operands).ok()
            }
            9 if shape.rank() > 0 => g.reverse(a, 0).ok(),
            10 if depth > 0 => {
                let captures = [a, b, c];
                let types: Vec<TensorType> = captures.iter().map(|&value| g.ty(value).clone()).collect();
                let wanted = [self.ty(), types[1].clone()];
                let mut branch =
                    || region(&types, types.len(), |g, v| self.results(g, v, &wanted, depth - 1));
                let branches = [branch(), branch()].into_iter().collect();
                let predicate = self.element(g, c);
                let operands: Vec<Value> = std::iter::once(predicate).chain(captures).collect();
                let results = g.emit(Op::Cond(CondOp { branches }), &operands).ok()?;
                Some(results[self.below(2)])
            }
            11 if depth > 0 => {
                let types: Vec<TensorType> = [a, b, c].iter().map(|&value| g.ty(value).clone()).collect();
                let trips = self.below(4) as i64;
                let inner = counted(trips, &types[..2], &types[2..], |g, v| {
                    self.results(g, v, &types[..2], depth - 1)
                });
                let zero = g.constant(DType::S32, 0).unwrap();
                let outer = inner.graph().nodes().last().unwrap();
                let results = g.emit(outer.op.clone(), &[zero, a, b, c]).ok()?;
                Some(results[1 + self.below(2)])
            }
            _ => None,
        }
    }

    /// Values of these types, computed from existing ones.
    fn results(&mut self, g: &mut Graph, given: &[Value], types: &[TensorType], depth: usize) -> Vec<Value> {
        let mut values = given.to_vec();
        for _ in 0..2 + self.below(7) {
            if let Some(value) = self.value(g, &values, depth) {
                values.push(value);
            }
        }
        let late = values.len().saturating_sub(4);
        types
            .iter()
            .map(|ty| {
                let fitting: Vec<Value> = values.iter().copied().filter(|&value| g.ty(value) == ty).collect();
                if !fitting.is_empty() && self.below(3) > 0 {
                    return self.one(&fitting[fitting.len().saturating_sub(3)..]);
                }
                let from = self.one(&values[late..]);
                self.fitted(g, from, ty)
            })
            .collect()
    }
}

fn cases() -> u32 {
    std::env::var("DEFN_TEST_GRAPHS").map_or(1500, |count| count.parse().expect("a number of programs"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn loops_give_what_the_evaluator_gives(numbers in proptest::collection::vec(any::<u16>(), 40..160)) {
        let mut choices = Choices { numbers, at: 0 };
        let state: Vec<TensorType> = (0..1 + choices.below(4)).map(|_| choices.ty()).collect();
        let captures: Vec<TensorType> = (0..choices.below(3)).map(|_| choices.ty()).collect();
        let trips = choices.below(6) as i64;
        let program =
            counted(trips, &state, &captures, |g, v| choices.results(g, v, &state, 2));
        check(&program);
    }
}

#[test]
fn state_that_is_read_after_it_is_written_is_what_it_was() {
    let float = ty(DType::F32, &[]);
    for x in [float.clone(), ty(DType::F32, &[7]), ty(DType::F16, &[]), ty(DType::F32, &[3, 1100])] {
        for trips in [0, 1, 2, 3, 10] {
            // Exchanged, rotated, and both the same.
            check(&counted(trips, &[x.clone(), x.clone()], &[], |_, v| vec![v[2], v[1]]));
            check(&counted(trips, &[x.clone(), x.clone(), x.clone()], &[], |_, v| vec![v[2], v[3], v[1]]));
            check(&counted(trips, &[x.clone(), x.clone()], &[], |_, v| vec![v[2], v[2]]));
            check(&counted(trips, &[x.clone(), x.clone()], &[], |g, v| {
                let sum = g.add(v[1], v[2]).unwrap();
                vec![v[2], sum]
            }));
            check(&counted(trips, &[x.clone(), x.clone()], &[], |g, v| {
                let sum = g.add(v[1], v[2]).unwrap();
                let product = g.multiply(v[1], sum).unwrap();
                vec![sum, product]
            }));
            check(&counted(trips, &[x.clone(), x.clone()], std::slice::from_ref(&x), |g, v| {
                let sum = g.add(v[1], v[3]).unwrap();
                vec![sum, v[3]]
            }));
            // The counter is read after its increment.
            check(&counted(trips, std::slice::from_ref(&x), &[], |g, v| {
                vec![g.add(v[1], v[0]).unwrap()]
                    .into_iter()
                    .map(|sum| g.as_type(sum, x.dtype).unwrap())
                    .collect()
            }));
            if x.shape.rank() > 0 {
                check(&counted(trips, std::slice::from_ref(&x), &[], |g, v| {
                    let turned = g.reverse(v[1], 0).unwrap();
                    vec![g.add(turned, v[1]).unwrap()]
                }));
                check(&counted(trips, std::slice::from_ref(&x), &[], |g, v| {
                    vec![g.reverse(v[1], 0).unwrap()]
                }));
            }
        }
    }
}

#[test]
fn elements_that_change_by_themselves_go_through_all_trips() {
    for (dtype, len) in [(DType::F32, 2), (DType::F32, 1030), (DType::F64, 64), (DType::F16, 65)] {
        let (x, number) = (ty(dtype, &[len]), TensorType::scalar(dtype));
        for trips in [0, 1, 2, 300] {
            // With constants, and with scalars from outside on either side.
            check(&counted(trips, std::slice::from_ref(&x), &[], |g, v| {
                let product = g.multiply(v[1], 0.75).unwrap();
                vec![g.subtract(0.5, product).unwrap()]
            }));
            check(&counted(trips, std::slice::from_ref(&x), &[number.clone(), number.clone()], |g, v| {
                let difference = g.subtract(v[1], v[2]).unwrap();
                vec![g.multiply(v[3], difference).unwrap()]
            }));
            // With other state: an array, and a value that does not change.
            check(&counted(trips, &[x.clone(), x.clone(), number.clone()], &[], |g, v| {
                let sum = g.add(v[1], v[3]).unwrap();
                let product = g.multiply(sum, 0.5).unwrap();
                let other = g.multiply(v[2], v[2]).unwrap();
                vec![product, other, v[3]]
            }));
            // One state is read by another, or an intermediate value is.
            check(&counted(trips, &[x.clone(), x.clone()], &[], |g, v| {
                let product = g.multiply(v[1], 0.5).unwrap();
                let sum = g.add(product, 0.25).unwrap();
                vec![sum, g.multiply(v[1], v[2]).unwrap()]
            }));
            check(&counted(trips, &[x.clone(), x.clone()], &[], |g, v| {
                let product = g.multiply(v[1], 0.5).unwrap();
                let sum = g.add(product, 0.25).unwrap();
                vec![sum, product]
            }));
        }
    }
}

/// A recurrence over the rows of an array, each of which is written to a second array.
fn scan(dtype: DType, rows: usize, len: usize) -> Arc<Region> {
    let all = ty(dtype, &[rows, len]);
    let row = ty(dtype, &[1, len]);
    counted(rows as i64 + 2, &[row, all.clone()], &[all], |g, v| {
        let zero = g.constant(DType::S32, 0).unwrap();
        let (lengths, strides) = ([1, len].into_iter().collect(), [1, 1].into_iter().collect());
        let op = Op::Slice { starts: Starts::Dynamic, lengths, strides };
        let read = g.emit_one(op, &[v[3], v[0], zero]).unwrap();
        let half = g.multiply(v[1], 0.5).unwrap();
        let next = g.add(half, read).unwrap();
        let next = g.as_type(next, dtype).unwrap();
        let put = g.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &[v[2], next, v[0], zero]).unwrap();
        vec![next, put]
    })
}

#[test]
fn rows_are_read_and_written_where_they_are() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F8E5M2, DType::C64] {
        for len in [1, 2, 33, 1500] {
            check(&scan(dtype, 20, len));
        }
    }
}

/// Polls a number of times, then returns an error.
struct Stops(AtomicUsize, usize);

impl Hooks for Stops {
    fn call(&self, slot: usize, _: &[Tensor]) -> Result<()> {
        unreachable!("no program here shows anything in {slot}")
    }

    fn poll(&self) -> Result<()> {
        let stops = self.0.fetch_add(1, Ordering::Relaxed) >= self.1;
        if stops { Err(ErrorKind::DivisionByZero { op: "stopped" }.into()) } else { Ok(()) }
    }
}

#[test]
fn endless_loops_stop_when_they_are_asked_to() {
    for x in [ty(DType::F32, &[]), ty(DType::F32, &[64])] {
        for (cond, body) in [(1.0, 0.5), (1.0, 1.0)] {
            let inner = [x.clone()];
            let cond = region(&inner, 0, |g, _| vec![g.constant(DType::F32, cond).unwrap()]);
            let body = region(&inner, 0, |g, v| vec![g.multiply(v[0], body).unwrap()]);
            let op = WhileOp { state: 1, trips: None, snapshots: None, cond, body };
            let program = region(&inner, 0, |g, v| g.emit(Op::While(op), v).unwrap().to_vec());
            let error = run(&CpuCompiler::new(), &program, &Stops(AtomicUsize::new(0), 2)).unwrap_err();
            assert!(error.to_string().contains("stopped"), "{error}");
        }
    }
}
