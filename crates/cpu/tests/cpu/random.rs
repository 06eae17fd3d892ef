//! Nests of random numbers compared with their definition, and their dtypes with those of the definition.

use crate::common::{place, run};
use defn_core::builder::{Builder, Ops, Source};
use defn_core::compose::block;
use defn_core::graph::Graph;
use defn_core::infer::infer;
use defn_core::op::{Block, Op};
use defn_core::{DType, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

/// Below, at and above the sizes of registers, tiles and chunks.
const COUNTS: &[usize] = &[0, 1, 2, 3, 15, 16, 17, 511, 512, 513, 1023, 1024, 1025, 40_001];

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for &count in COUNTS {
        let bits = [DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64];
        blocks.extend(bits.map(|dtype| Block::RandomBits { dtype, count }));
        let floats = DType::ALL.iter().filter(|dtype| dtype.is_float());
        blocks.extend(floats.map(|&dtype| Block::RandomUniform { dtype, count }));
    }
    blocks
}

fn words(sizes: &[usize], words: &[u32]) -> defn_core::backend::Operand {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    place(TensorType::new(DType::U32, Shape::new(sizes)).unwrap(), bytes)
}

/// The bytes of the definition, op by op.
fn defined(block: &Block, operands: &[&defn_core::backend::Operand]) -> Vec<u8> {
    let mut ops = Ops::new(cpu_backend(), Source::Unknown);
    let tensors: Vec<Tensor> =
        operands.iter().map(|x| Tensor::concrete(x.ty.clone(), x.buffer.clone())).collect();
    let result = block::default(&mut ops, block, &tensors).unwrap().remove(0);
    result.host_bytes("test").unwrap().bytes()[..result.ty().byte_size()].to_vec()
}

fn bytes(x: &defn_core::backend::Operand) -> Vec<u8> {
    let mut bytes = vec![0; x.ty.byte_size()];
    x.buffer.read(&mut bytes).unwrap();
    bytes
}

#[test]
fn nests_draw_what_the_definition_does() {
    let key = words(&[2], &[0x1234_5678, 0xFEDC_BA98]);
    for block in blocks() {
        assert!(cpu_backend().has_native(&block));
        let got = run(&Op::Block(block.clone()), &[&key]).unwrap();
        assert!(bytes(&got) == defined(&block, &[&key]), "{block:?}");
    }
}

#[test]
fn integers_stay_below_a_bound() {
    let key = words(&[2], &[5, 6]);
    let ends = [1 << 19, 1 << 26].map(|end: u64| [end - 1, end, end + 1]);
    let bounds = [1, 2, 3, 100, 255, 256, 1 << 32, u64::MAX / 2, u64::MAX].into_iter().chain(ends.concat());
    for bound in bounds {
        let ty = TensorType::scalar(DType::U64);
        let bound = place(ty, bound.to_ne_bytes().to_vec());
        for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_integer()) {
            for &count in COUNTS {
                let block = Block::RandomBelow { dtype, count };
                assert!(cpu_backend().has_native(&block));
                let got = run(&Op::Block(block.clone()), &[&key, &bound]).unwrap();
                assert!(bytes(&got) == defined(&block, &[&key, &bound]), "{block:?}");
            }
        }
    }
    let none = place(TensorType::scalar(DType::U64), vec![0; 8]);
    assert!(run(&Op::Block(Block::RandomBelow { dtype: DType::S32, count: 3 }), &[&key, &none]).is_err());
}

#[test]
fn pairs_of_any_shape_are_encrypted() {
    let key = words(&[2], &[7, 9]);
    for &count in COUNTS {
        let counters: Vec<u32> = (0..2 * count as u32).map(|at| at.wrapping_mul(0x9E37_79B9)).collect();
        for sizes in [vec![2, count], vec![2, count, 1]] {
            let counters = words(&sizes, &counters);
            let got = run(&Op::Block(Block::Threefry), &[&key, &counters]).unwrap();
            assert_eq!(got.ty, counters.ty);
            assert!(bytes(&got) == defined(&Block::Threefry, &[&key, &counters]), "{count}");
        }
    }
}

#[test]
fn the_known_types_are_those_of_the_definition() {
    let key = TensorType::new(DType::U32, Shape::named(&[2], &[Some("key")]).unwrap()).unwrap();
    let counters = TensorType::new(DType::U32, Shape::new(&[2, 3, 4])).unwrap();
    let check = |block: &Block, operands: &[&TensorType]| {
        let mut graph = Graph::new();
        let parameters: Vec<_> =
            operands.iter().enumerate().map(|(at, ty)| graph.parameter(at, (*ty).clone())).collect();
        let result = block::default(&mut graph, block, &parameters).unwrap().remove(0);
        let known = infer(&Op::Block(block.clone()), operands).unwrap().remove(0);
        assert_eq!(known, Builder::ty(&graph, &result), "{block:?}");
    };
    for block in blocks() {
        check(&block, &[&key]);
    }
    check(&Block::Threefry, &[&key, &counters]);
    let bound = TensorType::scalar(DType::U64);
    for dtype in [DType::U4, DType::S8, DType::U32, DType::S64] {
        check(&Block::RandomBelow { dtype, count: 5 }, &[&key, &bound]);
    }
}
