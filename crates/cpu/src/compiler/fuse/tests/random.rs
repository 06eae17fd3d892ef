//! Random numbers: nests of one op compute what its definition says, op by op, on every machine.

use std::sync::Arc;

use defn_core::compose::block;
use defn_core::graph::{Graph, Values};
use defn_core::op::{BinaryOp, Block, Op};
use defn_core::region::Region;
use defn_core::{DType, Kind, Scalar, Shape, TensorType};

use super::{Fused, check_against, evaluated, nest_of};
use crate::compiler::executor_tests::{code_of, execute, targets};
use crate::compiler::interpret::Interpreter;

/// Below, at and above the sizes of vectors, and of rows whose lengths are arguments.
const COUNTS: &[usize] = &[1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 130, 513, 1024, 1027, 4098];

fn of_kind(kind: Kind) -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(move |dtype| dtype.kind() == kind)
}

/// A program of one block on parameters, or on constants where there are numbers.
fn one(block: &Block, types: &[TensorType], constants: &[Option<u64>]) -> Arc<Region> {
    let mut graph = Graph::new();
    let mut inputs: Vec<TensorType> = Vec::new();
    let mut operands = Values::new();
    for (ty, constant) in types.iter().zip(constants) {
        operands.push(match constant {
            Some(bits) => {
                let scalar = Scalar::from_bytes(ty.dtype, &bits.to_le_bytes());
                graph.push(Op::Constant(scalar), &[]).unwrap()[0]
            }
            None => {
                inputs.push(ty.clone());
                graph.parameter(inputs.len() - 1, ty.clone())
            }
        });
    }
    let results = graph.push(Op::Block(block.clone()), &operands).unwrap();
    let count = inputs.len();
    Arc::new(Region::new(graph, inputs, count, results))
}

fn check(block: &Block, types: &[TensorType], operands: &[Vec<u8>], constants: &[Option<u64>]) {
    let definition = Arc::new(block::region(block, &types.iter().collect::<Vec<_>>()).unwrap());
    let want = evaluated(&definition, operands);
    let region = one(block, types, constants);
    let given = operands.iter().zip(constants).filter(|(_, constant)| constant.is_none());
    let given: Vec<Vec<u8>> = given.map(|(bytes, _)| bytes.clone()).collect();
    let fused = nest_of(&region).expect("random numbers are a nest");
    check_against(&region, &given, &fused, &want).unwrap();
}

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn bits_and_uniform_numbers_are_those_of_the_definition() {
    let (key, bytes) = (ty(DType::U32, &[2]), words(&[0x1234_5678, 0xFEDC_BA98]));
    for &count in COUNTS {
        let bits = of_kind(Kind::Unsigned).map(|dtype| Block::RandomBits { dtype, count });
        let uniform = of_kind(Kind::Float).map(|dtype| Block::RandomUniform { dtype, count });
        for block in bits.chain(uniform) {
            check(&block, std::slice::from_ref(&key), std::slice::from_ref(&bytes), &[None]);
        }
    }
}

#[test]
fn numbers_below_a_bound_are_those_of_the_definition() {
    let types = [ty(DType::U32, &[2]), ty(DType::U64, &[])];
    let ends = [19, 26, 32, 63].map(|power| 1u64 << power).map(|end| [end - 1, end, end + 1]);
    let bounds = [1, 2, 3, 100, 255, 256, u64::MAX].into_iter().chain(ends.concat());
    for bound in bounds {
        for dtype in of_kind(Kind::Unsigned).chain(of_kind(Kind::Signed)) {
            for count in [1, 2, 33, 70] {
                let block = Block::RandomBelow { dtype, count };
                let operands = [words(&[5, 6]), bound.to_ne_bytes().to_vec()];
                check(&block, &types, &operands, &[None, None]);
                check(&block, &types, &operands, &[None, Some(bound)]);
            }
        }
    }
}

#[test]
fn words_of_given_counters_are_those_of_the_definition() {
    for &count in COUNTS {
        let counters: Vec<u32> = (0..2 * count as u32).map(|at| at.wrapping_mul(0x9E37_79B9)).collect();
        for sizes in [vec![2, count], vec![2, 1, count], vec![2, count, 1]] {
            let types = [ty(DType::U32, &[2]), ty(DType::U32, &sizes)];
            check(&Block::Threefry, &types, &[words(&[7, 9]), words(&counters)], &[None, None]);
        }
    }
}

/// Two words of a key and a pair of counters, as the generator's authors write it.
fn threefry(key: [u32; 2], counters: [u32; 2]) -> [u32; 2] {
    let words = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let [mut x, mut y] = [0, 1].map(|at| counters[at].wrapping_add(words[at]));
    for group in 1..=5usize {
        for rotation in [[17, 29, 16, 24], [13, 15, 26, 6]][group % 2] {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        x = x.wrapping_add(words[group % 3]);
        y = y.wrapping_add(words[(group + 1) % 3]).wrapping_add(group as u32);
    }
    [x, y]
}

const KEY: [u32; 2] = [0x1234_5678, 0xFEDC_BA98];

/// Runs a nest on some steps, on all executors; `results` is where its first element would be.
fn run_part(fused: &Fused, inputs: &[u64], results: u64, steps: [u64; 2], mut see: impl FnMut(&str)) {
    let mut scratch = vec![0u64; fused.scratch.div_ceil(8)];
    let mut args: Vec<u64> = inputs.to_vec();
    args.extend([results, scratch.as_mut_ptr() as u64]);
    args.extend(steps);
    // SAFETY: the arguments are those of the function.
    assert_eq!(unsafe { Interpreter::new(&fused.function).run(args.as_ptr()) }, 0);
    see("portable");
    for (name, target) in targets() {
        assert_eq!(execute(&code_of(&fused.function, target, name).unwrap(), args.as_ptr()), 0);
        see(name);
    }
}

#[test]
fn counters_of_large_positions_wrap() {
    let count = (1 << 33) + 5;
    let region = one(&Block::RandomBits { dtype: DType::U64, count }, &[ty(DType::U32, &[2])], &[None]);
    let fused = nest_of(&region).unwrap();
    let (first, mut got) = ((1u64 << 32) - 20, [0u64; 40]);
    // Elements of which none but these are there.
    let start = (got.as_mut_ptr() as u64).wrapping_sub(first * 8);
    let key = KEY.as_ptr() as u64;
    run_part(&fused, &[key, key], start, [first, 40], |name| {
        for (at, got) in got.iter().enumerate() {
            let counter = first + at as u64;
            let [high, low] = threefry(KEY, [counter as u32, (counter + count as u64) as u32]);
            assert_eq!(*got, u64::from(high) << 32 | u64::from(low), "{name} at {at}");
        }
    });
}

#[test]
fn the_half_of_a_large_position_is_found() {
    // An odd number of elements in rows.
    let (rows, row) = ((1usize << 30) + 1, 17);
    let count = rows * row;
    let half = count.div_ceil(2) as u64;
    let mut graph = Graph::new();
    let inputs = vec![ty(DType::U32, &[2]), ty(DType::U8, &[rows, 1])];
    let [key, x] = [0, 1].map(|at| graph.parameter(at, inputs[at].clone()));
    let bits = graph.push(Op::Block(Block::RandomBits { dtype: DType::U8, count }), &[key]).unwrap()[0];
    let bits = graph.push(Op::Reshape { shape: Shape::new(&[rows, row]) }, &[bits]).unwrap()[0];
    let sums = graph.push(Op::Binary(BinaryOp::ADD), &[bits, x]).unwrap();
    let region = Region::new(graph, inputs, 2, sums);
    let fused = nest_of(&region).unwrap();
    for first in [0, half / 17 - 1, rows as u64 / 4 * 3, rows as u64 - 3] {
        let (added, mut got) = ([5u8; 3], [0u8; 51]);
        let start = (got.as_mut_ptr() as u64).wrapping_sub(first * 17);
        let operands = fused.inputs.iter().map(|(value, _)| match value.node {
            0 => KEY.as_ptr() as u64,
            _ => (added.as_ptr() as u64).wrapping_sub(first),
        });
        let operands: Vec<u64> = operands.collect();
        run_part(&fused, &operands, start, [first, 3], |name| {
            for (at, got) in got.iter().enumerate() {
                let position = first * 17 + at as u64;
                let pair = position % half;
                let other = if pair == half - 1 { 0 } else { pair + half };
                let words = threefry(KEY, [pair as u32, other as u32]);
                let word = words[usize::from(position >= half)];
                assert_eq!(*got, (word as u8).wrapping_add(5), "{name} at {position}");
            }
        });
    }
}
