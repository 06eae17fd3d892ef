//! Instructions that are put together: values that are written where they are needed, and two ops in one instruction.

use defn_core::op::BinaryOp;
use defn_core::{DType, Kind};

use super::Registers;
use super::action::{Action, Instruction, Role, Word};
use super::flow::{Loop, Node};
use super::steady::{Steady, change};
use crate::kernels::with_real;

/// How far apart two instructions are that are put together.
const REACH: usize = 16;

/// Has what computes the new value of a register write it, where nothing reads the old one later; takes those moves
/// away. `nodes` is the list at whose end the moves happen, all at once.
pub(super) fn coalesce(nodes: &mut Vec<Node>, moves: &mut [(u8, u8)]) {
    for at in 0..moves.len() {
        let (to, from) = moves[at];
        let is_moved = moves.iter().enumerate().any(|(other, (_, from))| other != at && *from == to);
        let is_register = moves.iter().any(|(to, _)| *to == from);
        if is_register || is_moved {
            continue;
        }
        let Some(mut found) = writer(nodes, from) else { continue };
        if count_later(nodes, found, &mut |i| i.inputs().contains(&to)) > 0 {
            // It is done last, where that changes nothing.
            let made = instruction(nodes, found);
            let (operands, role) = (made.inputs().to_vec(), made.role);
            let moves_freely = role != Role::Fixed
                && count_later(nodes, found, &mut |i| {
                    i.inputs().contains(&from) || i.outputs().iter().any(|out| operands.contains(out))
                }) == 0;
            if !moves_freely {
                continue;
            }
            found = move_to_end(nodes, found);
        }
        if count_later(nodes, found, &mut |i| i.outputs().contains(&to)) > 0 {
            continue;
        }
        let rename = |register: &mut u8| {
            if *register == from {
                *register = to;
            }
        };
        let Node::Straight(list) = &mut nodes[found.0] else { unreachable!("instructions are in lists") };
        rename(&mut list[found.1].out[0]);
        list[found.1 + 1..].iter_mut().for_each(|i| i.operands.iter_mut().for_each(rename));
        for node in &mut nodes[found.0 + 1..] {
            each_mut(node, &mut |i| i.operands.iter_mut().for_each(rename), &mut |test| rename(test));
        }
        moves.iter_mut().for_each(|(_, from)| rename(from));
    }
}

/// The instruction of the list itself that writes a register as its only result, where no other writes it.
fn writer(nodes: &[Node], register: u8) -> Option<(usize, usize)> {
    let mut count = 0;
    nodes.iter().for_each(|node| each(node, &mut |i| count += usize::from(i.outputs().contains(&register))));
    if count != 1 {
        return None;
    }
    nodes.iter().enumerate().find_map(|(at, node)| match node {
        Node::Straight(list) => list.iter().position(|i| i.outputs() == [register]).map(|inner| (at, inner)),
        Node::Call(..) | Node::Loop(_) | Node::Branches(_) => None,
    })
}

fn instruction(nodes: &[Node], (at, inner): (usize, usize)) -> Instruction {
    match &nodes[at] {
        Node::Straight(list) => list[inner],
        Node::Call(..) | Node::Loop(_) | Node::Branches(_) => unreachable!("instructions are in lists"),
    }
}

fn move_to_end(nodes: &mut Vec<Node>, (at, inner): (usize, usize)) -> (usize, usize) {
    let Node::Straight(list) = &mut nodes[at] else { unreachable!("instructions are in lists") };
    let moved = list.remove(inner);
    if !matches_straight(nodes.last()) {
        nodes.push(Node::Straight(Vec::new()));
    }
    let last = nodes.len() - 1;
    let Node::Straight(list) = &mut nodes[last] else { unreachable!("the last node was looked at") };
    list.push(moved);
    (last, list.len() - 1)
}

fn matches_straight(node: Option<&Node>) -> bool {
    match node {
        Some(Node::Straight(_)) => true,
        Some(Node::Call(..) | Node::Loop(_) | Node::Branches(_)) | None => false,
    }
}

/// How many instructions after one satisfy `is`; what is called counts as instructions that read.
fn count_later(
    nodes: &[Node],
    (at, inner): (usize, usize),
    is: &mut dyn FnMut(&Instruction) -> bool,
) -> usize {
    let mut count = 0;
    for (position, node) in nodes.iter().enumerate().skip(at) {
        match node {
            Node::Straight(list) => {
                let skipped = if position == at { inner + 1 } else { 0 };
                count += list[skipped..].iter().filter(|i| is(i)).count();
            }
            Node::Call(..) | Node::Loop(_) | Node::Branches(_) => {
                each(node, &mut |i| count += usize::from(is(i)));
            }
        }
    }
    count
}

/// Shows all instructions of a node, and tests of registers as instructions that read them.
fn each(node: &Node, show: &mut dyn FnMut(&Instruction)) {
    match node {
        Node::Straight(list) => list.iter().for_each(show),
        Node::Call(_, registers) => registers.iter().for_each(|at| show(&Instruction::testing(*at))),
        Node::Loop(repeated) => match &**repeated {
            Loop::Straight { before, trip } => before.iter().chain(trip).for_each(show),
            Loop::Any { cond, test, body, weight: _ } => {
                cond.iter().chain(body).for_each(|node| each(node, &mut *show));
                show(&Instruction::testing(*test));
            }
        },
        Node::Branches(branches) => {
            for (test, nodes) in branches {
                test.iter().for_each(|test| show(&Instruction::testing(*test)));
                nodes.iter().for_each(|node| each(node, &mut *show));
            }
        }
    }
}

fn each_mut(node: &mut Node, change: &mut dyn FnMut(&mut Instruction), test_of: &mut dyn FnMut(&mut u8)) {
    match node {
        Node::Straight(list) => list.iter_mut().for_each(change),
        Node::Call(_, registers) => registers.iter_mut().for_each(test_of),
        Node::Loop(repeated) => match &mut **repeated {
            Loop::Straight { before, trip } => before.iter_mut().chain(trip).for_each(change),
            Loop::Any { cond, test, body, weight: _ } => {
                cond.iter_mut().chain(body).for_each(|node| each_mut(node, &mut *change, &mut *test_of));
                test_of(test);
            }
        },
        Node::Branches(branches) => {
            for (test, nodes) in branches {
                test.iter_mut().for_each(&mut *test_of);
                nodes.iter_mut().for_each(|node| each_mut(node, &mut *change, &mut *test_of));
            }
        }
    }
}

/// Puts pairs of instructions together in a list of which nothing else reads what tests read. It computes the same.
pub(super) fn fuse(mut list: Vec<Instruction>) -> Vec<Instruction> {
    // What is compared to be tested is tested at once.
    for at in (1..list.len()).rev() {
        let (compared, tested) = (list[at - 1], list[at]);
        if compared.role == Role::Comparison
            && tested.role == Role::Test
            && compared.outputs() == tested.inputs()
            && list.iter().filter(|i| i.inputs().contains(&compared.out[0])).count() == 1
            && let Some(run) = test_of(compared.binary, compared.dtype)
        {
            list[at] = Instruction { run, role: Role::Test, writes: 0, ..compared };
            list.remove(at - 1);
            break;
        }
    }
    let mut at = 0;
    while at < list.len() {
        match partner(&list, at) {
            Some((later, made)) => {
                list[later] = made;
                list.remove(at);
            }
            None => at += 1,
        }
    }
    list
}

/// The instruction that reads the result of one first and can be put together with it, and what both are then.
fn partner(list: &[Instruction], at: usize) -> Option<(usize, Instruction)> {
    let first = list[at];
    if first.role != Role::Arithmetic {
        return None;
    }
    let made = first.out[0];
    for (later, second) in list.iter().enumerate().skip(at + 1).take(REACH) {
        if let Some(operand) = second.inputs().iter().position(|input| *input == made) {
            let is_right = operand == 1;
            let (run, steady) = pair(&first, second, is_right)?;
            let [a, b, ..] = first.operands;
            let other = second.operands[usize::from(!is_right)];
            let (out, writes) = match second.role {
                Role::Test => ([made; 2], 1),
                Role::Pure | Role::Arithmetic | Role::Comparison | Role::Fixed => ([second.out[0], made], 2),
            };
            let role = if second.role == Role::Test { Role::Test } else { Role::Pure };
            let operands = [a, b, other, other];
            return Some((
                later,
                Instruction { run, role, operands, reads: 3, out, writes, steady, ..*second },
            ));
        }
        // The first moves to the second: what is between must leave its operands and its result alone.
        let is_between = second.outputs().iter().any(|out| *out == made || first.inputs().contains(out));
        if is_between || second.role == Role::Test {
            return None;
        }
    }
    None
}

/// Two ops as one, whose operands are those of the first and the other one of the second, which reads the result of the
/// first on the left or right.
fn pair(first: &Instruction, second: &Instruction, is_right: bool) -> Option<(Action, Steady)> {
    type Made = Option<(Action, Steady)>;
    fn of<T: Word>(first: &Instruction, second: &Instruction, is_right: bool) -> Made {
        if first.binary == BinaryOp::ADD {
            after::<T, Plus>(second, is_right)
        } else if first.binary == BinaryOp::SUBTRACT {
            after::<T, Minus>(second, is_right)
        } else if first.binary == BinaryOp::MULTIPLY {
            after::<T, Times>(second, is_right)
        } else {
            None
        }
    }
    fn after<T: Word, F: Fun>(second: &Instruction, is_right: bool) -> Made {
        match second.role {
            Role::Arithmetic => {
                if second.binary == BinaryOp::ADD {
                    Some(two::<T, F, Plus>(is_right))
                } else if second.binary == BinaryOp::SUBTRACT {
                    Some(two::<T, F, Minus>(is_right))
                } else if second.binary == BinaryOp::MULTIPLY {
                    Some(two::<T, F, Times>(is_right))
                } else {
                    None
                }
            }
            Role::Test if second.reads == 2 => {
                let is_signed = T::DTYPE.kind() == Kind::Signed;
                let is_count = is_signed && F::IS_PLUS && second.binary == BinaryOp::LESS && !is_right;
                let steady = if is_count {
                    Steady::Count { bits: 8 * size_of::<T>() as u32 }
                } else {
                    Steady::Unknown
                };
                Some((counted::<T, F>(second.binary, is_right)?, steady))
            }
            Role::Pure | Role::Comparison | Role::Test | Role::Fixed => None,
        }
    }
    fn two<T: Word, F: Fun, G: Fun>(is_right: bool) -> (Action, Steady) {
        if is_right {
            (both::<T, F, G, true>, Steady::Change(change::<T, F, G, true>))
        } else {
            (both::<T, F, G, false>, Steady::Change(change::<T, F, G, false>))
        }
    }
    if first.dtype != second.dtype {
        return None;
    }
    if first.dtype == DType::F32 {
        of::<f32>(first, second, is_right)
    } else if first.dtype == DType::F64 {
        of::<f64>(first, second, is_right)
    } else if first.dtype == DType::S32 {
        of::<i32>(first, second, is_right)
    } else if first.dtype == DType::S64 {
        of::<i64>(first, second, is_right)
    } else if first.dtype == DType::U32 {
        of::<u32>(first, second, is_right)
    } else if first.dtype == DType::U64 {
        of::<u64>(first, second, is_right)
    } else {
        None
    }
}

/// An op of two elements.
pub(super) trait Fun {
    /// Whether it is a sum.
    const IS_PLUS: bool;

    /// The result.
    fn of<T: Word>(a: T, b: T) -> T;
}

struct Plus;
struct Minus;
struct Times;

impl Fun for Plus {
    const IS_PLUS: bool = true;

    #[inline(always)]
    fn of<T: Word>(a: T, b: T) -> T {
        a.plus(b)
    }
}

impl Fun for Minus {
    const IS_PLUS: bool = false;

    #[inline(always)]
    fn of<T: Word>(a: T, b: T) -> T {
        a.minus(b)
    }
}

impl Fun for Times {
    const IS_PLUS: bool = false;

    #[inline(always)]
    fn of<T: Word>(a: T, b: T) -> T {
        a.times(b)
    }
}

/// One op after the other. The result of the first is written too.
fn both<T: Word, F: Fun, G: Fun, const RIGHT: bool>(i: &Instruction, words: &mut Registers) -> bool {
    let [a, b, other, _] = i.operands.map(usize::from);
    let made = F::of(T::from_word(words[a]), T::from_word(words[b]));
    words[usize::from(i.out[1])] = made.word();
    let other = T::from_word(words[other]);
    let result = if RIGHT { G::of(other, made) } else { G::of(made, other) };
    words[usize::from(i.out[0])] = result.word();
    true
}

/// An op, and how its result compares with another element.
#[inline(always)]
fn then<T: Word, F: Fun>(i: &Instruction, words: &mut Registers, f: impl Fn(T, T) -> bool) -> bool {
    let [a, b, other, _] = i.operands.map(usize::from);
    let made = F::of(T::from_word(words[a]), T::from_word(words[b]));
    words[usize::from(i.out[0])] = made.word();
    f(made, T::from_word(words[other]))
}

/// An op whose result is then compared with another element, on the left or right, to be tested.
fn counted<T: Word, F: Fun>(op: BinaryOp, is_right: bool) -> Option<Action> {
    if op == BinaryOp::EQUAL {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b == a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a == b)
        })
    } else if op == BinaryOp::NOT_EQUAL {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b != a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a != b)
        })
    } else if op == BinaryOp::GREATER {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b > a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a > b)
        })
    } else if op == BinaryOp::GREATER_EQUAL {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b >= a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a >= b)
        })
    } else if op == BinaryOp::LESS {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b < a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a < b)
        })
    } else if op == BinaryOp::LESS_EQUAL {
        Some(if is_right {
            |i, words| then::<T, F>(i, words, |a, b| b <= a)
        } else {
            |i, words| then::<T, F>(i, words, |a, b| a <= b)
        })
    } else {
        None
    }
}

/// A comparison that says at once whether the program goes on.
fn test_of(op: BinaryOp, dtype: DType) -> Option<Action> {
    fn of<T: Word>(op: BinaryOp) -> Option<Action> {
        if op == BinaryOp::EQUAL {
            Some(|i, words| i.is(words, |a: T, b: T| a == b))
        } else if op == BinaryOp::NOT_EQUAL {
            Some(|i, words| i.is(words, |a: T, b: T| a != b))
        } else if op == BinaryOp::GREATER {
            Some(|i, words| i.is(words, |a: T, b: T| a > b))
        } else if op == BinaryOp::GREATER_EQUAL {
            Some(|i, words| i.is(words, |a: T, b: T| a >= b))
        } else if op == BinaryOp::LESS {
            Some(|i, words| i.is(words, |a: T, b: T| a < b))
        } else if op == BinaryOp::LESS_EQUAL {
            Some(|i, words| i.is(words, |a: T, b: T| a <= b))
        } else {
            None
        }
    }
    with_real!(dtype, T => of::<T>(op))
}
