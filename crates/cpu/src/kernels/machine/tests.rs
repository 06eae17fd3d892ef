use defn_core::op::BinaryOp;
use defn_core::{DType, Number, Scalar};

use super::flow::Loop;
use super::{Env, Machine, Node, Register};

fn number(machine: &mut Machine, dtype: DType, number: Number) -> Register {
    machine.constant(Scalar::new(dtype, number).unwrap()).unwrap()
}

/// `while i < 10: i, x, y = i + 1, x * 0.5 + 1.0, x`, and the registers of the state.
fn counting() -> (Machine, [Register; 3]) {
    let mut machine = Machine::program();
    let zero = number(&mut machine, DType::S64, Number::Int(0));
    let (one, ten) =
        (number(&mut machine, DType::S64, Number::Int(1)), number(&mut machine, DType::S64, Number::Int(10)));
    let [start, half, whole] =
        [3.0, 0.5, 1.0].map(|value| number(&mut machine, DType::F64, Number::Float(value)));
    let state = [DType::S64, DType::F64, DType::F64].map(|dtype| machine.fresh(dtype).unwrap());
    for (register, first) in state.iter().zip([zero, start, start]) {
        machine.set(*register, first);
    }
    machine.open(true);
    let [i, ..] = state.map(|register| machine.here(register));
    let test = machine.binary(BinaryOp::LESS, i, ten, DType::Bool).unwrap();
    let cond = machine.close();
    machine.open(true);
    let [i, x, _] = state.map(|register| machine.here(register));
    let next = machine.binary(BinaryOp::ADD, i, one, DType::S64).unwrap();
    // The same in each trip, and done before the first.
    let twice = machine.binary(BinaryOp::MULTIPLY, half, whole, DType::F64).unwrap();
    let scaled = machine.binary(BinaryOp::MULTIPLY, x, twice, DType::F64).unwrap();
    let moved = machine.binary(BinaryOp::ADD, scaled, whole, DType::F64).unwrap();
    machine.set_all(&[(state[0], next), (state[1], moved), (state[2], x)]).unwrap();
    let body = machine.close();
    machine.repeat(cond, test, body);
    (machine, state)
}

#[test]
fn a_trip_has_an_instruction_for_two_ops_and_for_each_move() {
    let (machine, _) = counting();
    let nodes = &machine.lists[0].nodes;
    let loops = nodes.iter().filter_map(|node| match node {
        Node::Loop(repeated) => Some(&**repeated),
        Node::Straight(_) | Node::Call(..) | Node::Branches(_) => None,
    });
    let trips: Vec<usize> = loops
        .map(|repeated| match repeated {
            Loop::Straight { trip, .. } => trip.len(),
            Loop::Any { .. } => usize::MAX,
        })
        .collect();
    // Two ops, the old number, the new one, and the count with its test.
    assert_eq!(trips, [4]);
}

#[test]
fn a_loop_counts() {
    let (machine, state) = counting();
    let program = machine.finish_program();
    let mut words = program.start();
    let mut call = |unit: usize, _: &[u8], _: &_| unreachable!("nothing is called, and not {unit}");
    program.run(&mut words, &mut Env { call: &mut call, poll: &|| Ok(()) }).unwrap();
    let [i, x, y] = state.map(|register| words[register.place()]);
    let (mut want, mut before) = (3.0, 3.0);
    for _ in 0..10 {
        (before, want) = (want, want * 0.5 + 1.0);
    }
    assert_eq!((i, f64::from_bits(x), f64::from_bits(y)), (10, want, before));
}

#[test]
fn a_number_changes_as_often_as_is_counted() {
    // From, by, to, and the trips: of a count that ends, that is passed, that is there before, and of the greatest.
    let cases = [(0, 1, 1000, 1000), (-5, 3, 6, 4), (7, 2, 7, 0), (i64::MAX - 2, 2, i64::MAX, 1)];
    for (is_left, (from, by, to, trips)) in
        [false, true].into_iter().flat_map(|side| cases.map(|case| (side, case)))
    {
        let mut machine = Machine::program();
        let [from, by, to] = [from, by, to].map(|n| number(&mut machine, DType::S64, Number::Int(n.into())));
        let [start, factor, term] =
            [3.0, 0.75, 0.3].map(|value| number(&mut machine, DType::F32, Number::Float(value)));
        let state = [DType::S64, DType::F32].map(|dtype| machine.fresh(dtype).unwrap());
        machine.set(state[0], from);
        machine.set(state[1], start);
        machine.open(true);
        let i = machine.here(state[0]);
        let test = machine.binary(BinaryOp::LESS, i, to, DType::Bool).unwrap();
        let cond = machine.close();
        machine.open(true);
        let [i, x] = state.map(|register| machine.here(register));
        let next = machine.binary(BinaryOp::ADD, i, by, DType::S64).unwrap();
        let (a, b) = if is_left { (x, factor) } else { (factor, x) };
        let scaled = machine.binary(BinaryOp::MULTIPLY, a, b, DType::F32).unwrap();
        let moved = machine.binary(BinaryOp::SUBTRACT, term, scaled, DType::F32).unwrap();
        machine.set_all(&[(state[0], next), (state[1], moved)]).unwrap();
        let body = machine.close();
        machine.repeat(cond, test, body);
        let program = machine.finish_program();
        let mut words = program.start();
        let first = words[from.place()] as i64;
        let step = words[by.place()] as i64;
        let mut call = |unit: usize, _: &[u8], _: &_| unreachable!("nothing is called, and not {unit}");
        program.run(&mut words, &mut Env { call: &mut call, poll: &|| Ok(()) }).unwrap();
        let [i, x] = state.map(|register| words[register.place()]);
        let want = (0..trips).fold(3.0f32, |x, _| 0.3 - x * 0.75);
        assert_eq!((i as i64, f32::from_bits(x as u32)), (first.wrapping_add(trips * step), want));
    }
}
