//! Loops that do two simple ops to each element of an array, which nothing else in the loop reads: the loop runs without
//! the array, and the elements go through all trips one after the other, in registers.

use std::sync::Arc;

use defn_core::graph::{Graph, Value};
use defn_core::op::{BinaryOp, Op, WhileOp};
use defn_core::pass;
use defn_core::region::Region;
use defn_core::{DType, Scalar};

use super::Unit;
use super::make::{Array, Held, Making};
use crate::kernels::elementwise::simple::Simple;
use crate::kernels::machine::Register;

/// Elements times trips between two looks at the machine.
const CHUNK: usize = 1 << 17;

/// The most elements of such an array: larger ones are shared among threads.
const MOST: usize = 1 << 16;

/// A loop and an array apart from it.
pub(super) struct Apart {
    /// The loop, which leaves the array as it is.
    rest: WhileOp,
    /// Which part of the state the array is.
    at: usize,
    trips: usize,
    /// The ops in their order, and the numbers beside the elements.
    ops: [(Simple, Number); 2],
}

/// A number that is the same in all trips.
#[derive(Clone, Copy)]
enum Number {
    Constant(Scalar),
    /// An argument of the loop.
    Argument(usize),
}

/// How many nodes read a value, and results are it.
fn uses(region: &Region, value: Value) -> usize {
    let read = region.graph().nodes().iter().flat_map(|node| &node.inputs);
    read.chain(region.results()).filter(|input| **input == value).count()
}

impl Apart {
    /// What of a loop can be apart.
    pub(super) fn of(op: &WhileOp) -> Option<Apart> {
        let trips = usize::try_from(op.trips?).ok()?;
        let (body, graph) = (&*op.body, op.body.graph());
        let found = (0..op.state).find_map(|at| {
            let ty = &body.inputs()[at];
            let is_array = (2..=MOST).contains(&ty.size()) && [DType::F32, DType::F64].contains(&ty.dtype);
            let array = graph.find_parameter(at).filter(|_| is_array)?;
            let is_read = op.cond.graph().find_parameter(at).is_some_and(|value| uses(&op.cond, value) > 0);
            let (second, inner, b) = simple(op, body.results()[at])?;
            let (first, read, a) = simple(op, inner)?;
            let alone = [array, inner, body.results()[at]].into_iter().all(|value| uses(body, value) == 1);
            let same = [inner, body.results()[at]].into_iter().all(|value| graph.ty(value) == ty);
            (read == array && alone && same && !is_read).then_some((at, array, [(first, a), (second, b)]))
        });
        let (at, array, ops) = found?;
        let mut results = body.results().clone();
        results[at] = array;
        let (inputs, parameters) = (body.inputs().to_vec(), body.parameter_count());
        let rest = pass::dce_owned(Region::new(graph.clone(), inputs, parameters, results)).ok()?;
        Some(Apart { rest: WhileOp { body: Arc::new(rest), ..op.clone() }, at, trips, ops })
    }
}

/// An op of an element and a number, as what the value is made.
fn simple(op: &WhileOp, value: Value) -> Option<(Simple, Value, Number)> {
    let graph = op.body.graph();
    let node = graph.node(value);
    let Op::Binary(binary) = node.op else { return None };
    let (left, right) = (node.inputs[0], node.inputs[1]);
    let dtype = node.outputs[0].dtype;
    let (element, number, is_second) = match (number(op, graph, right), number(op, graph, left)) {
        (Some(number), None) => (left, number, false),
        (None, Some(number)) => (right, number, true),
        (_, _) => return None,
    };
    if graph.ty(element).dtype != dtype {
        return None;
    }
    Some((Simple::of(binary, is_second)?, element, number))
}

/// The number that a value of the body has in all trips.
fn number(op: &WhileOp, graph: &Graph, value: Value) -> Option<Number> {
    if graph.ty(value).size() != 1 || graph.ty(value).dtype.is_complex() {
        return None;
    }
    if let Op::Constant(scalar) = &graph.node(value).op {
        return Some(Number::Constant(*scalar));
    }
    if let Op::Parameter { index, ty: _ } = &graph.node(value).op {
        let stays = op.body.results().get(*index).is_none_or(|result| *result == value);
        return stays.then_some(Number::Argument(*index));
    }
    None
}

impl Making {
    /// A loop, and what is done to an array apart from it.
    pub(super) fn repeat_apart(
        &mut self,
        apart: &Apart,
        arguments: Vec<Held>,
        is_whole: bool,
    ) -> Option<Vec<Held>> {
        let at = apart.at;
        let Held::Array(Array { address, ty, is_owned: _ }) = arguments[at].clone() else { return None };
        let mut numbers = Vec::with_capacity(2);
        for (_, number) in &apart.ops {
            let register = match number {
                Number::Constant(scalar) => self.machine.constant(*scalar)?,
                Number::Argument(index) => match &arguments[*index] {
                    Held::Scalar(register) => *register,
                    Held::Array(_) => return None,
                },
            };
            numbers.push(self.machine.convert(register, ty.dtype)?);
        }
        let mut results = self.repeat(&apart.rest, arguments, is_whole)?;
        let now = self.machine.fresh(DType::U64)?;
        self.settle(now, &ty, is_whole.then_some(at))?;
        self.copy(address, now, ty.byte_size());
        let chunk = (CHUNK / ty.size()).max(1);
        let unit = Unit::Trips {
            ops: apart.ops.map(|(op, _)| op),
            dtype: ty.dtype,
            elements: ty.size(),
            trips: (apart.trips, chunk),
        };
        self.in_chunks(unit, apart.trips.div_ceil(chunk), [now, numbers[0], numbers[1]])?;
        results[at] = Held::Array(Array { address: now, ty, is_owned: true });
        Some(results)
    }

    /// Does a unit so many times; its first register is how often it was done before.
    fn in_chunks(&mut self, unit: Unit, count: usize, registers: [Register; 3]) -> Option<()> {
        let [none, one, count] =
            [self.machine.number(0)?, self.machine.number(1)?, self.machine.number(count)?];
        let done = self.machine.fresh(DType::U64)?;
        self.machine.set(done, none);
        self.machine.open(true);
        let now = self.machine.here(done);
        let test = self.machine.binary(BinaryOp::LESS, now, count, DType::Bool)?;
        let cond = self.machine.close();
        self.machine.open(true);
        let now = self.machine.here(done);
        self.call(unit, std::iter::once(now).chain(registers));
        let next = self.machine.binary(BinaryOp::ADD, now, one, DType::U64)?;
        self.machine.set_all(&[(done, next)])?;
        let body = self.machine.close();
        self.machine.repeat(cond, test, body);
        Some(())
    }
}
