//! Operations with regions, and effects.

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{
    BinaryOp, Block, CompositeBlock, CondOp, CustomGradOp, CustomRules, FoldOp, HookOp, ImplicitOp,
    LinearMethod, LinearSolver, Op, Tolerance, UnaryOp, UserBlockOp, WhileOp, WindowFoldOp,
};
use defn_core::region::Region;
use defn_core::{DType, Scalar, TensorType};

use super::numbers::{operand_from, small, specials};
use super::{Closeness, Table, axes, folds, ty};

/// A region over inputs of some types, the first of which are parameters.
pub fn region(
    inputs: &[TensorType],
    parameters: usize,
    build: impl FnOnce(&mut Graph, &[Value]) -> Values,
) -> Arc<Region> {
    let mut graph = Graph::new();
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = build(&mut graph, &values);
    Arc::new(Region::new(graph, inputs.to_vec(), parameters, results))
}

fn one(graph: &mut Graph, op: Op, inputs: &[Value]) -> Value {
    graph.push(op, inputs).expect("the operands fit")[0]
}

/// Arithmetic; logical operations for bools.
fn binary(graph: &mut Graph, op: BinaryOp, a: Value, b: Value) -> Value {
    let logical = [
        (BinaryOp::ADD, BinaryOp::LOGICAL_OR),
        (BinaryOp::SUBTRACT, BinaryOp::LOGICAL_XOR),
        (BinaryOp::MULTIPLY, BinaryOp::LOGICAL_AND),
    ];
    let of_bools = logical.into_iter().find(|(arithmetic, _)| *arithmetic == op);
    let op = of_bools.filter(|_| graph.ty(a).dtype.is_bool()).map_or(op, |(_, logical)| logical);
    one(graph, Op::Binary(op), &[a, b])
}

pub fn control(dtype: DType) -> Table {
    let mut table = Table::default();
    let close = Closeness::Whole(8.0);
    let vector = ty(dtype, &[3]);
    let (x, y) = (small(dtype, &[3], 1), small(dtype, &[3], 2));
    // Three branches, each selected by a predicate, also of the type itself.
    let types = [vector.clone(), vector.clone()];
    let branch =
        |op| region(&types, 0, |graph, v| [binary(graph, op, v[0], v[1]), v[1]].into_iter().collect());
    let branches: Vec<Arc<Region>> =
        [BinaryOp::ADD, BinaryOp::SUBTRACT, BinaryOp::MULTIPLY].map(branch).into_iter().collect();
    for (first, second) in [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (1.0, 1.0)] {
        let (first, second) = (operand_from(DType::U8, &[], &[first]), operand_from(dtype, &[], &[second]));
        let op = CondOp { branches: branches.iter().cloned().collect() };
        table.must(Op::Cond(op), &[&first, &second, &x, &y], close);
    }
    // Four trips, and no trip.
    let state = [ty(DType::S32, &[]), vector.clone(), vector.clone()];
    let cond = region(&state, 2, |graph, v| {
        let four = one(graph, Op::Constant(Scalar::new(DType::S32, 4).expect("a number")), &[]);
        [binary(graph, BinaryOp::LESS, v[0], four)].into_iter().collect()
    });
    let body = region(&state, 2, |graph, v| {
        let step = one(graph, Op::Constant(Scalar::one(DType::S32)), &[]);
        [binary(graph, BinaryOp::ADD, v[0], step), binary(graph, BinaryOp::ADD, v[1], v[2])]
            .into_iter()
            .collect()
    });
    for from in [0.0, 9.0] {
        let op = WhileOp { state: 2, trips: None, snapshots: None, cond: cond.clone(), body: body.clone() };
        table.must(Op::While(op), &[&operand_from(DType::S32, &[], &[from]), &x, &y], close);
    }
    // A loop in a branch, with a condition of the type itself.
    let inner = [vector.clone(), ty(dtype, &[])];
    let looped = region(&inner, 0, |graph, v| {
        let cond = region(&inner, 2, |_, v| [v[1]].into_iter().collect());
        let body = region(&inner, 2, |graph, v| {
            let less = binary(graph, BinaryOp::SUBTRACT, v[1], v[1]);
            [binary(graph, BinaryOp::MULTIPLY, v[0], v[1]), less].into_iter().collect()
        });
        graph
            .push(Op::While(WhileOp { state: 2, trips: Some(1), snapshots: None, cond, body }), v)
            .expect("the operands fit")
    });
    let identity = region(&inner, 0, |_, v| v.iter().copied().collect());
    for choice in [0.0, 1.0] {
        let op = CondOp { branches: [looped.clone(), identity.clone()].into_iter().collect() };
        let scalar = operand_from(dtype, &[], &[1.0]);
        table.must(Op::Cond(op), &[&operand_from(DType::S8, &[], &[choice]), &x, &scalar], close);
    }
    let rule = region(std::slice::from_ref(&vector), 1, |_, v| [v[0]].into_iter().collect());
    table.must(
        Op::CustomGrad(CustomGradOp { values: 1, inputs: 1, rules: CustomRules::Reverse(rule) }),
        &[&x, &y],
        Closeness::Exact,
    );
    let condition =
        region(&types, 1, |graph, v| [binary(graph, BinaryOp::SUBTRACT, v[0], v[1])].into_iter().collect());
    let solver =
        LinearSolver { method: LinearMethod::Cg, rtol: Tolerance(1e-5), atol: Tolerance(0.0), maxiter: None };
    let (values, lanes, holomorphic, preconditioner) = (1, 0, false, None);
    let op = ImplicitOp { values, lanes, solver, holomorphic, condition, preconditioner };
    table.must(Op::Implicit(op), &[&x, &y], Closeness::Exact);
    table.must(Op::Hook(HookOp { slot: 0, name: None }), &[&x, &y], Closeness::Exact);
    let default = region(&types, 2, |graph, v| {
        let sum = binary(graph, BinaryOp::ADD, v[0], v[1]);
        let negative = if dtype.is_bool() {
            Op::Block(Block::Composite(CompositeBlock::LogicalNot))
        } else {
            Op::Unary(UnaryOp::NEGATE)
        };
        [sum, one(graph, negative, &[sum])].into_iter().collect()
    });
    let block = UserBlockOp { name: "Twice".into(), attributes: "".into(), slot: 0, args: 2, default };
    table.must(Op::UserBlock(block), &[&x, &y], close);
    rounded(dtype, &mut table);
    folded(dtype, &mut table);
    table
}

/// Values that are rounded between operations stay rounded.
fn rounded(dtype: DType, table: &mut Table) {
    let operand = specials(dtype);
    let default = region(std::slice::from_ref(&operand.ty), 1, |graph, v| {
        let narrow = [DType::BF16, DType::F8E4M3FN, DType::F8E5M2, DType::F16];
        narrow
            .into_iter()
            .map(|narrow| {
                let narrow = one(graph, Op::AsType { dtype: narrow }, &[v[0]]);
                one(graph, Op::AsType { dtype: DType::F64 }, &[narrow])
            })
            .collect()
    });
    let block =
        |default| UserBlockOp { name: "Chain".into(), attributes: "".into(), slot: 0, args: 1, default };
    table.must(Op::UserBlock(block(default)), &[&operand], Closeness::Exact);
    // Devices fuse products and sums of wider floats.
    if !dtype.is_float() || dtype.bits() > 16 {
        return;
    }
    let default = region(std::slice::from_ref(&operand.ty), 1, |graph, v| {
        let third = one(graph, Op::Constant(Scalar::new(dtype, 3).unwrap_or(Scalar::one(dtype))), &[]);
        let term = binary(graph, BinaryOp::DIVIDE, v[0], third);
        let square = binary(graph, BinaryOp::MULTIPLY, term, term);
        let root = one(graph, Op::Unary(UnaryOp::SQRT), &[square]);
        [binary(graph, BinaryOp::SUBTRACT, square, root)].into_iter().collect()
    });
    table.must(Op::UserBlock(block(default)), &[&operand], Closeness::Exact);
}

/// Folds by functions that are one operation, by other functions, and by some that must be applied one element at a
/// time.
fn folded(dtype: DType, table: &mut Table) {
    let close = Closeness::Whole(16.0);
    let scalar = ty(dtype, &[]);
    let two = [scalar.clone(), scalar.clone()];
    let sum = region(&two, 2, |graph, v| [binary(graph, BinaryOp::ADD, v[0], v[1])].into_iter().collect());
    let weighed = [scalar.clone(), scalar.clone(), scalar.clone()];
    let weighed = region(&weighed, 2, |graph, v| {
        let term = binary(graph, BinaryOp::MULTIPLY, v[0], v[2]);
        [binary(graph, BinaryOp::SUBTRACT, term, v[1])].into_iter().collect()
    });
    let chosen = region(&two, 2, |graph, v| {
        let keep = region(&two, 0, |_, v| [v[1]].into_iter().collect());
        let add =
            region(&two, 0, |graph, v| [binary(graph, BinaryOp::SUBTRACT, v[0], v[1])].into_iter().collect());
        let op = CondOp { branches: [add, keep].into_iter().collect() };
        graph.push(Op::Cond(op), &[v[0], v[0], v[1]]).expect("the operands fit")
    });
    let (x, acc, weight) = (small(dtype, &[3, 4], 1), small(dtype, &[], 2), small(dtype, &[], 4));
    for list in [&[][..], &[0], &[1], &[0, 1]] {
        let fold = |fun: &Arc<Region>| {
            Op::Fold(FoldOp { axes: axes(list), keep_axes: list.len() == 1, fun: fun.clone() })
        };
        table.must(fold(&sum), &[&x, &acc], close);
        table.must(fold(&weighed), &[&x, &acc, &weight], close);
        table.must(fold(&chosen), &[&x, &acc], close);
    }
    let long = small(dtype, &[20, 2], 1);
    let fold = Op::Fold(FoldOp { axes: axes(&[0]), keep_axes: false, fun: weighed.clone() });
    table.must(fold, &[&long, &acc, &operand_from(dtype, &[], &[1.0])], close);
    for window in folds::windows() {
        let fold = |fun: &Arc<Region>| {
            Op::WindowFold(WindowFoldOp { window: Box::new(window.clone()), fun: fun.clone() })
        };
        table.must(fold(&sum), &[&x, &acc], close);
        table.must(fold(&weighed), &[&x, &acc, &weight], close);
        table.must(fold(&chosen), &[&x, &acc], close);
    }
}
