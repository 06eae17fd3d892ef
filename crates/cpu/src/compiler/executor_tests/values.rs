//! What conditions and loops give and carry: values of each class, alone and in rows.

use super::control::{at, lane_sum, row, stepped};
use super::*;
use crate::compiler::ir::{Builder, Cmp, Conv, Op, Reduce, Val};

/// Lengths of rows: none, less than a vector, whole vectors, and steps of several vectors with an end.
const LENGTHS: [usize; 8] = [0, 1, 3, 8, 16, 33, 64, 300];

/// The types of elements in memory.
const STORED: [Elem; 6] = [Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::F32, Elem::F64];

/// The bits of a small number.
fn number(elem: Elem, x: i64) -> u64 {
    match elem {
        Elem::F32 => (x as f32).to_bits().into(),
        Elem::F64 => (x as f64).to_bits(),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => x as u64,
    }
}

fn constant(b: &mut Builder, elem: Elem, x: i64) -> Val {
    b.bits(elem, number(elem, x))
}

/// A call with rows of small numbers.
fn with_rows(rows: &[(Elem, Vec<i64>)], params: &[u64]) -> Call {
    let mut call = Call::new();
    for (elem, numbers) in rows {
        call.buffer(*elem, 3, numbers.iter().map(|&x| number(*elem, x)));
    }
    params.iter().fold(call, |call, &param| call.param(param))
}

/// A condition gives an index, floats, and a predicate, which are used in different ways behind it.
#[test]
fn conditions_give_scalars_of_each_class() {
    for has_else in [false, true] {
        let mut b = Builder::new(3, 2, 0);
        let (p, q) = (b.param(0, Elem::Index), b.param(1, Elem::F32));
        let (five, seven, zero) = (b.index(5), b.index(7), b.f32(0.0));
        let x = b.load(Elem::F64, at(0, Elem::F64, 0));
        let is_positive = b.compare(Cmp::Lt, zero, q);
        let is_small = b.compare(Cmp::Lt, p, five);
        b.begin_if(is_small);
        let position = b.add(p, five);
        let double = b.add(q, q);
        let square = b.mul(x, x);
        let is_seven = b.compare(Cmp::Eq, p, seven);
        let either = b.op(Op::Or, [is_seven, is_positive]);
        let mut other = q;
        if has_else {
            b.begin_else();
            other = b.sub(zero, q);
        }
        let joined = b.end_if(&[(position, p), (double, other), (square, x), (either, is_positive)]);
        let y = b.load(Elem::F64, stepped(at(0, Elem::F64, 0), Elem::F64, joined[0], 1));
        b.store(y, at(1, Elem::F64, 0));
        b.store(joined[2], at(1, Elem::F64, 1));
        b.store(joined[1], at(2, Elem::F32, 0));
        let chosen = b.select(joined[3], joined[1], q);
        b.store(chosen, at(2, Elem::F32, 1));
        b.begin_if(joined[3]);
        b.store(zero, at(2, Elem::F32, 2));
        b.end_if(&[]);
        let function = b.finish();
        let x: Vec<f64> = (0..16).map(|x| f64::from(x) + 0.25).collect();
        let mut trials = Vec::new();
        for (p, q) in [(0, 1.5f32), (4, -2.5), (5, 3.0), (7, -0.5), (9, f32::NAN)] {
            let call = |y: [f64; 2], z: [f32; 3]| {
                Call::new().with(&x).with(&y).with(&z).param(p).param(q.to_bits().into())
            };
            let (wide, narrow) = ([-1.0; 2], [-1.0; 3]);
            let (is_small, holds) = (p < 5, q > 0.0);
            let position = if is_small { p + 5 } else { p };
            let other = if has_else { 0.0 - q } else { q };
            let joined = if is_small { q + q } else { other };
            let y = [x[position as usize], if is_small { x[0] * x[0] } else { x[0] }];
            let z = [joined, if holds { joined } else { q }, if holds { 0.0 } else { -1.0 }];
            trials.push(Trial { call: call(wide, narrow), after: call(y, z), status: 0 });
        }
        check_all_executors(&function, &trials);
    }
}

/// A condition on a scalar in a row gives vectors, a scalar's copies, and predicates of lanes, of which some are
/// constants.
#[test]
fn conditions_in_rows_give_vectors_and_masks() {
    for elem in STORED {
        let mut b = Builder::new(2, 2, 0);
        let (extent, choice) = (b.param(0, Elem::Index), b.param(1, Elem::Bit));
        let three = constant(&mut b, elem, 3);
        b.begin_lanes(extent);
        let x = b.load(elem, row(0, elem));
        let is_large = b.compare(Cmp::Lt, three, x);
        b.begin_if(choice);
        let double = b.add(x, x);
        let (yes, no) = (b.bits(Elem::Bit, 1), b.bits(Elem::Bit, 0));
        b.begin_else();
        let is_three = b.compare(Cmp::Eq, x, three);
        let (yes_here, no_here) = (b.bits(Elem::Bit, 1), b.bits(Elem::Bit, 0));
        let joined = b.end_if(&[
            (double, three),
            (is_large, is_three),
            (yes, is_large),
            (is_large, no_here),
            (no, yes_here),
        ]);
        let mut y = joined[0];
        for (at, &predicate) in joined[1..].iter().enumerate() {
            let step = constant(&mut b, elem, 1 << (at + 3));
            let more = b.add(y, step);
            y = b.select(predicate, more, y);
        }
        b.store(y, row(1, elem));
        b.end_lanes();
        let function = b.finish();
        let mut trials = Vec::new();
        for length in LENGTHS {
            for choice in [false, true] {
                let x: Vec<i64> = (0..length as i64).map(|at| at * 7 % 11).collect();
                let result = |&x: &i64| {
                    let large = x > 3;
                    let predicates =
                        if choice { [large, true, large, false] } else { [x == 3, large, false, true] };
                    let steps =
                        predicates.iter().enumerate().map(|(at, &holds)| i64::from(holds) << (at + 3));
                    steps.sum::<i64>() + if choice { x + x } else { 3 }
                };
                let params = [length as u64, choice.into()];
                let call = |y: Vec<i64>| with_rows(&[(elem, x.clone()), (elem, y)], &params);
                let (call, after) = (call(vec![0; length]), call(x.iter().map(result).collect()));
                trials.push(Trial { call, after, status: 0 });
            }
        }
        check_all_executors(&function, &trials);
    }
}

/// Predicates of scalars that select between vectors: of indices, and of floats wider than the row's elements, which
/// are computed before the row, in it, and under a condition in it, and needed behind that.
#[test]
fn predicates_of_scalars_select_vectors() {
    for elem in STORED {
        let mut b = Builder::new(3, 4, 0);
        let extent = b.param(0, Elem::Index);
        let (p, q) = (b.param(1, Elem::Index), b.param(2, Elem::Index));
        let choice = b.param(3, Elem::Bit);
        let wide = b.load(Elem::F64, at(2, Elem::F64, 0));
        let zero = b.f64(0.0);
        let is_less = b.compare(Cmp::Lt, p, q);
        let is_positive = b.compare(Cmp::Lt, zero, wide);
        b.begin_lanes(extent);
        let x = b.load(elem, row(0, elem));
        let (one, two, four, eight) = (
            constant(&mut b, elem, 1),
            constant(&mut b, elem, 2),
            constant(&mut b, elem, 4),
            constant(&mut b, elem, 8),
        );
        let more = b.add(x, two);
        let mut y = b.select(is_less, more, x);
        let more = b.add(y, four);
        y = b.select(is_positive, more, y);
        let is_equal = b.compare(Cmp::Eq, p, q);
        b.begin_if(choice);
        let more = b.add(y, eight);
        let then = b.select(is_equal, y, more);
        y = b.end_if(&[(then, y)])[0];
        let more = b.add(y, one);
        y = b.select(is_equal, more, y);
        b.store(y, row(1, elem));
        b.end_lanes();
        let function = b.finish();
        let mut trials = Vec::new();
        for (length, p, q, wide, choice) in [
            (3, 0, 1, 1.0, true),
            (33, 1, 0, 1.0, false),
            (40, 2, 2, -1.0, true),
            (300, 2, 2, f64::NAN, false),
        ] {
            let x: Vec<i64> = (0..length).map(|at| at * 5 % 17).collect();
            let steps = i64::from(p < q) * 2 + i64::from(wide > 0.0) * 4 + i64::from(choice && p != q) * 8;
            let steps = steps + i64::from(p == q);
            let call = |y: Vec<i64>| {
                let mut call = with_rows(&[(elem, x.clone()), (elem, y)], &[]).with(&[wide]);
                for param in [length as u64, p, q, choice.into()] {
                    call = call.param(param);
                }
                call
            };
            let after = call(x.iter().map(|x| x + steps).collect());
            trials.push(Trial { call: call(vec![0; x.len()]), after, status: 0 });
        }
        check_all_executors(&function, &trials);
    }
}

/// A predicate of indices, which needs no register where it only decides, is selected by on both sides of a condition
/// and behind it.
#[test]
fn predicates_of_indices_are_values_anywhere() {
    let mut b = Builder::new(2, 3, 0);
    let (p, q, choice) = (b.param(0, Elem::Index), b.param(1, Elem::Index), b.param(2, Elem::Bit));
    let (x, y) = (b.load(Elem::I32, at(0, Elem::I32, 0)), b.load(Elem::I32, at(0, Elem::I32, 1)));
    let is_less = b.compare(Cmp::Lt, p, q);
    b.begin_if(choice);
    let chosen = b.select(is_less, x, y);
    let then = b.add(chosen, x);
    b.begin_else();
    let chosen = b.select(is_less, y, x);
    let otherwise = b.add(chosen, y);
    let joined = b.end_if(&[(then, otherwise)]);
    let last = b.select(is_less, x, y);
    b.store(joined[0], at(1, Elem::I32, 0));
    b.store(last, at(1, Elem::I32, 1));
    let function = b.finish();
    let mut trials = Vec::new();
    for (p, q, choice) in [(0, 1, true), (0, 1, false), (1, 1, true), (5, -9, false)] {
        let (x, y) = (40, 5);
        let call = |y: [i32; 2]| {
            Call::new().with(&[40, 5]).with(&y).param(p as u64).param(q as u64).param(u64::from(choice))
        };
        let first = if choice { x + if p < q { x } else { y } } else { y + if p < q { y } else { x } };
        let after = call([first, if p < q { x } else { y }]);
        trials.push(Trial { call: call([0; 2]), after, status: 0 });
    }
    check_all_executors(&function, &trials);
}

/// Loops carry predicates of other types than those that they begin with, beside rows of narrow elements.
#[test]
fn loops_carry_predicates() {
    for elem in STORED {
        let mut b = Builder::new(3, 2, 0);
        let (extent, trips) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
        let (zero, one) = (b.f64(0.0), b.f64(1.0));
        let no = b.bits(Elem::Bit, 0);
        let four = constant(&mut b, elem, 4);
        let number = b.load(elem, at(0, elem, 0));
        let is_first = b.compare(Cmp::Lt, number, four);
        let (i, carried) = b.begin_loop(Some(trips), &[(is_first, false), (no, false), (zero, false)]);
        let sum = b.add(carried[2], one);
        let two = b.f64(2.0);
        let is_wide = b.compare(Cmp::Lt, sum, two);
        b.begin_lanes(extent);
        let x = b.load(elem, row(0, elem));
        let more = b.add(x, four);
        let y = b.select(carried[0], more, x);
        let (one, two) = (constant(&mut b, elem, 1), constant(&mut b, elem, 2));
        let more = b.add(y, one);
        let y = b.select(carried[1], more, y);
        let more = b.add(y, two);
        let y = b.select(is_wide, more, y);
        b.store(y, row(1, elem));
        b.end_lanes();
        let two = b.index(2);
        let is_late = b.compare(Cmp::Le, two, i);
        b.end_loop(&[(carried[0], is_wide), (carried[1], is_late), (carried[2], sum)]);
        let both = b.op(Op::Or, [carried[0], carried[1]]);
        let both = b.convert(Conv::OfBit, Elem::I8, both);
        b.store(both, at(2, Elem::I8, 0));
        let function = b.finish();
        let mut trials = Vec::new();
        for (length, trips) in [(1, 0), (1, 1), (9, 2), (33, 3), (33, 5), (140, 4)] {
            let x: Vec<i64> = (0..length).map(|at| (at * 5 + 2) % 17).collect();
            let call = |y: Vec<i64>, both: bool| {
                let rows = [(elem, x.clone()), (elem, y), (Elem::I8, vec![both.into()])];
                with_rows(&rows, &[length as u64, trips])
            };
            let mut y = vec![0; x.len()];
            let mut carried = (x[0] < 4, false, 0);
            for i in 0..trips {
                let is_wide = carried.2 + 1 < 2;
                let more = 4 * i64::from(carried.0) + i64::from(carried.1) + 2 * i64::from(is_wide);
                y = x.iter().map(|x| x + more).collect();
                carried = (is_wide, i >= 2, carried.2 + 1);
            }
            let after = call(y, carried.0 || carried.1);
            trials.push(Trial { call: call(vec![0; x.len()], true), after, status: 0 });
        }
        check_all_executors(&function, &trials);
    }
}

/// Loops in rows carry vectors, which change places, and predicates of lanes; the trips are the row's or those that any
/// lane asks for.
#[test]
fn loops_in_rows_go_on_while_any_lane_does() {
    for elem in [Elem::I32, Elem::F32, Elem::I64, Elem::F64] {
        let mut b = Builder::new(3, 2, 0);
        let (extent, most) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
        let (zero, one) = (constant(&mut b, elem, 0), constant(&mut b, elem, 1));
        b.begin_lanes(extent);
        let x = b.load(elem, row(0, elem));
        let no = b.bits(Elem::Bit, 0);
        let (_, carried) = b.begin_loop(Some(most), &[(x, true), (zero, true), (no, true), (one, true)]);
        let is_left = b.compare(Cmp::Lt, zero, carried[0]);
        let any = b.any(is_left);
        b.while_(any);
        let less = b.sub(carried[0], one);
        let next = b.select(is_left, less, carried[0]);
        let steps = b.add(carried[1], carried[3]);
        let steps = b.select(is_left, steps, carried[1]);
        // The third says whether the last step of the lane was an odd one.
        let is_odd = b.op(Op::Not, [carried[2]]);
        let stays = b.op(Op::AndNot, [carried[2], is_left]);
        let turns = b.op(Op::And, [is_odd, is_left]);
        let is_odd = b.op(Op::Or, [stays, turns]);
        b.end_loop(&[
            (carried[0], next),
            (carried[1], steps),
            (carried[2], is_odd),
            (carried[3], carried[3]),
        ]);
        b.store(carried[1], row(1, elem));
        let odd = b.select(carried[2], one, zero);
        b.store(odd, row(2, elem));
        b.end_lanes();
        let function = b.finish();
        let mut trials = Vec::new();
        for length in LENGTHS {
            for most in [0, 1, 9, 100] {
                let x: Vec<i64> = (0..length as i64).map(|at| at * 7 % 41 - 5).collect();
                let call = |y: Vec<i64>, odd: Vec<i64>| {
                    with_rows(&[(elem, x.clone()), (elem, y), (elem, odd)], &[length as u64, most as u64])
                };
                let steps: Vec<i64> = x.iter().map(|&x| x.max(0).min(most)).collect();
                let odd = steps.iter().map(|steps| steps % 2).collect();
                let first = call(vec![9; length], vec![9; length]);
                trials.push(Trial { call: first, after: call(steps, odd), status: 0 });
            }
        }
        check_all_executors(&function, &trials);
    }
}

/// Elements that are added to an accumulator under a condition, on both of its sides, and in a loop.
#[test]
fn conditions_and_loops_in_rows_reduce() {
    for elem in [Elem::I32, Elem::F32, Elem::F64] {
        let mut b = Builder::new(2, 3, 0);
        let (extent, choice) = (b.param(0, Elem::Index), b.param(1, Elem::Bit));
        let trips = b.param(2, Elem::Index);
        let sum = b.accumulator(Reduce::Add, elem, 16);
        let most = b.accumulator(Reduce::Max, elem, 64);
        b.begin_lanes(extent);
        let x = b.load(elem, row(0, elem));
        b.begin_if(choice);
        b.reduce(sum, x);
        b.begin_else();
        let double = b.add(x, x);
        b.reduce(sum, double);
        b.reduce(most, double);
        b.end_if(&[]);
        b.begin_loop(Some(trips), &[]);
        b.reduce(sum, x);
        b.end_loop(&[]);
        b.reduce(most, x);
        b.end_lanes();
        b.store(sum, at(1, elem, 0));
        b.store(most, at(1, elem, 1));
        let function = b.finish();
        let mut trials = Vec::new();
        for length in LENGTHS.into_iter().filter(|&length| length > 0) {
            for (choice, trips) in [(false, 0), (true, 0), (false, 1), (true, 3)] {
                let x: Vec<i64> = (0..length as i64).map(|at| at * 7 % 23 - 9).collect();
                let params = [length as u64, choice.into(), trips as u64];
                let call = |y: [i64; 2]| with_rows(&[(elem, x.clone()), (elem, y.to_vec())], &params);
                let sum = x.iter().sum::<i64>() * (trips + if choice { 1 } else { 2 });
                let most = x.iter().max().expect("there are elements");
                let most = if choice { *most } else { (2 * most).max(*most) };
                trials.push(Trial { call: call([7, 7]), after: call([sum, most]), status: 0 });
            }
        }
        check_all_executors(&function, &trials);
    }
}

/// A lane of an accumulator gets all that an element gives it before it gets anything of the next.
#[test]
fn elements_are_added_one_after_the_other() {
    for lanes in [16u16, 64] {
        let mut b = Builder::new(2, 2, 0);
        let (extent, trips) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
        let third = b.f32(1.0 / 3.0);
        let sum = b.accumulator(Reduce::Add, Elem::F32, lanes);
        b.begin_lanes(extent);
        let x = b.load(Elem::F32, row(0, Elem::F32));
        b.reduce(sum, x);
        b.begin_loop(Some(trips), &[]);
        let y = b.mul(x, third);
        b.reduce(sum, y);
        b.reduce(sum, third);
        b.end_loop(&[]);
        b.end_lanes();
        b.store(sum, at(1, Elem::F32, 0));
        let function = b.finish();
        let mut trials = Vec::new();
        for length in LENGTHS {
            for trips in [0, 1, 3] {
                let x: Vec<f32> = (0..length).map(|at| (at * 37 % 101) as f32 * 0.173 - 8.3).collect();
                let third = 1.0f32 / 3.0;
                let of_element =
                    |&x: &f32| std::iter::once(x).chain((0..trips).flat_map(move |_| [x * third, third]));
                let call = |sum: f32| Call::new().with(&x).with(&[sum]).param(length as u64).param(trips);
                let after = call(lane_sum(&x, lanes.into(), of_element));
                trials.push(Trial { call: call(7.0), after, status: 0 });
            }
        }
        check_all_executors(&function, &trials);
    }
}

/// Whether any lane asks for work is itself a predicate that others are joined with.
#[test]
fn any_is_joined_with_other_predicates() {
    let mut b = Builder::new(2, 2, 0);
    let (extent, allowed) = (b.param(0, Elem::Index), b.param(1, Elem::Bit));
    let (zero, one) = (b.f32(0.0), b.f32(1.0));
    b.begin_lanes(extent);
    let x = b.load(Elem::F32, row(0, Elem::F32));
    let is_negative = b.compare(Cmp::Lt, x, zero);
    let any = b.any(is_negative);
    let both = b.op(Op::And, [any, allowed]);
    b.begin_if(both);
    let more = b.add(x, one);
    let then = b.select(is_negative, more, x);
    let joined = b.end_if(&[(then, x)]);
    b.store(joined[0], row(1, Elem::F32));
    b.end_lanes();
    let function = b.finish();
    let mut trials = Vec::new();
    for length in LENGTHS {
        for allowed in [false, true] {
            // Negative ones are far from the first lane.
            let x: Vec<i64> = (0..length as i64).map(|at| if at % 16 == 3 { -5 } else { at }).collect();
            let y = x.iter().map(|&x| if allowed && x < 0 { x + 1 } else { x }).collect();
            let params = [length as u64, allowed.into()];
            let call = |y: Vec<i64>| with_rows(&[(Elem::F32, x.clone()), (Elem::F32, y)], &params);
            trials.push(Trial { call: call(vec![0; length]), after: call(y), status: 0 });
        }
    }
    check_all_executors(&function, &trials);
}
