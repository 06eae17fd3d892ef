//! A table of every operation on every element type, to lower, compile and compare.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod control;
mod elementwise;
pub mod folds;
mod index;
mod linalg;
pub mod numbers;
mod shape;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::shape::{Axis, AxisList};
use defn_core::{DType, Shape, TensorType, form};

/// The tolerance of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Closeness {
    /// The same number; any NaN matches a NaN.
    Exact,
    /// This many times the distance between neighbouring numbers at the greatest element of the result; once for types
    /// of 16 bits and less, which are computed in wider ones.
    Whole(f64),
    /// As `Whole`, but at each element.
    Each(f64),
    /// As `Whole`. In a result with more than one axis, each column or each row may be multiplied by a number of
    /// magnitude 1.
    Turned(f64),
}

/// An operand: its type and its elements.
#[derive(Clone, Debug)]
pub struct Operand {
    pub ty: TensorType,
    pub bytes: Vec<u8>,
}

/// One operation on some operands.
#[derive(Clone, Debug)]
pub struct Row {
    pub op: Op,
    pub operands: Vec<Operand>,
    pub close: Closeness,
}

impl Row {
    pub fn name(&self) -> String {
        let types: Vec<String> = self.operands.iter().map(|operand| operand.ty.to_string()).collect();
        let op: String = format!("{:?}", self.op).chars().take(300).collect();
        format!("{} of {}: {op}", form::name(&self.op), types.join(", "))
    }
}

/// The rows of a family whose operands begin with one element type. Rows that inference rejects are left out.
#[derive(Default)]
pub struct Table {
    pub rows: Vec<Row>,
}

impl Table {
    /// Adds a row if the operation accepts the operands; returns whether it does.
    fn add(&mut self, op: Op, operands: &[&Operand], close: Closeness) -> bool {
        let row = Row { op, operands: operands.iter().map(|&operand| operand.clone()).collect(), close };
        let mut graph = Graph::new();
        let is_accepted = push(&mut graph, &mut Vec::new(), &row).is_some();
        if is_accepted {
            self.rows.push(row);
        }
        is_accepted
    }

    /// Keeps only the first row of each operation: integers are computed in f32 here, whatever their width.
    fn first_of_each(&mut self) {
        let mut names = BTreeSet::new();
        self.rows.retain(|row| names.insert(form::name(&row.op)));
    }

    /// Adds a row that must be accepted for every element type except bool.
    fn must_of_numbers(&mut self, op: Op, operands: &[&Operand], close: Closeness) {
        let name = format!("{op:?}");
        let of_bools = operands.iter().any(|operand| operand.ty.dtype.is_bool());
        assert!(self.add(op, operands, close) || of_bools, "{name} of {operands:?}");
    }

    /// Adds a row that must be accepted for every element type.
    fn must(&mut self, op: Op, operands: &[&Operand], close: Closeness) {
        let name = format!("{op:?}");
        assert!(self.add(op, operands, close), "{name} of {operands:?}");
    }
}

/// Adds a row's node, with parameters of its own.
fn push(graph: &mut Graph, inputs: &mut Vec<TensorType>, row: &Row) -> Option<Values> {
    let operands: Vec<Value> = row
        .operands
        .iter()
        .map(|operand| {
            inputs.push(operand.ty.clone());
            graph.parameter(inputs.len() - 1, operand.ty.clone())
        })
        .collect();
    if let Op::Parameter { .. } = row.op {
        return Some(operands.into_iter().collect());
    }
    graph.push(row.op.clone(), &operands).ok()
}

/// One program of many rows, and the number of results of each row.
pub fn program(rows: &[Row]) -> (Region, Vec<usize>) {
    let (mut graph, mut inputs, mut results, mut counts) =
        (Graph::new(), Vec::new(), Values::new(), Vec::new());
    for row in rows {
        let outputs = push(&mut graph, &mut inputs, row).expect("it was taken before");
        counts.push(outputs.len());
        results.extend(outputs);
    }
    let count = inputs.len();
    (Region::new(graph, inputs, count, results), counts)
}

/// A family of operations, and its rows for an element type.
pub struct Family {
    pub name: &'static str,
    pub rows: fn(DType) -> Table,
}

/// Every family.
pub const FAMILIES: &[Family] = &[
    Family { name: "create", rows: shape::create },
    Family { name: "unary", rows: elementwise::unary },
    Family { name: "binary", rows: elementwise::binary },
    Family { name: "mixed", rows: elementwise::mixed },
    Family { name: "convert", rows: elementwise::convert },
    Family { name: "shape", rows: shape::moves },
    Family { name: "reduce", rows: folds::reduce },
    Family { name: "order", rows: folds::order },
    Family { name: "window", rows: folds::window },
    Family { name: "index", rows: index::positions },
    Family { name: "random", rows: index::random },
    Family { name: "products", rows: linalg::products },
    Family { name: "factors", rows: linalg::factors },
    Family { name: "spectral", rows: linalg::spectral },
    Family { name: "fourier", rows: linalg::fourier },
    Family { name: "control", rows: control::control },
    Family { name: "examples", rows: examples },
];

/// The names of ops with rows of other families.
fn names_with_rows() -> &'static BTreeSet<&'static str> {
    static NAMES: OnceLock<BTreeSet<&str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let families = FAMILIES.iter().filter(|family| family.name != "examples");
        let tables = families.flat_map(|family| DType::ALL.iter().map(|&dtype| (family.rows)(dtype)));
        tables.flat_map(|table| table.rows).map(|row| form::name(&row.op)).collect()
    })
}

/// An example of each op that no other family has rows of: what a new op is tested by until it has some.
pub fn examples(dtype: DType) -> Table {
    let mut table = Table::default();
    let x = numbers::small(dtype, &[2, 3], 1);
    for (op, count) in Op::examples(&x.ty) {
        if !names_with_rows().contains(form::name(&op)) {
            example(&mut table, op, count, &x);
        }
    }
    table
}

/// Adds a row for an op with equal operands, if it accepts them.
pub fn example(table: &mut Table, op: Op, count: usize, x: &Operand) -> bool {
    table.add(op, &vec![x; count], Closeness::Whole(4.0))
}

pub fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).expect("a small type")
}

pub fn axis(index: usize) -> Axis {
    Shape::new(&[1; 10]).axis(index).expect("an axis of ten")
}

pub fn axes(list: &[usize]) -> AxisList {
    list.iter().map(|&index| axis(index)).collect()
}
