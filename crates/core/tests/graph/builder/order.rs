use defn_core::builder::{BuildOrder, BuildReduce, Builder};
use defn_core::op::{Block, CumulativeOp, Direction, Op};
use defn_core::{DType, Shape};

use super::check;

#[test]
fn what_has_no_order_is_refused() {
    for &dtype in DType::ALL {
        let ty = [&*format!("{dtype}[x: 2][3]")];
        let refused = format!("the operand is {dtype}[x: 2][3], it must be an integer or a float");
        let sorted = check(&ty, |b, v| b.sort(v[0], "x", Direction::Desc));
        let indices = check(&ty, |b, v| b.argsort(v[0], -1, Direction::Asc, DType::U16));
        if dtype.is_complex() {
            assert!(sorted.starts_with(&format!("sort: {refused}")), "{sorted}");
            assert!(indices.starts_with(&format!("argsort: {refused}")), "{indices}");
        } else {
            assert_eq!(sorted, ty[0]);
            assert_eq!(indices, "u16[x: 2][3]");
        }
        for &op in CumulativeOp::ALL {
            let extreme = match op {
                CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin => true,
                CumulativeOp::CumulativeSum | CumulativeOp::CumulativeProduct => false,
            };
            let scanned = check(&ty, |b, v| b.cumulative(op, v[0], 0, true));
            if extreme && dtype.is_complex() {
                assert!(scanned.starts_with(&format!("{}: {refused}", op.name())), "{scanned}");
            } else if !extreme && dtype.is_bool() {
                assert_eq!(scanned, "s32[x: 2][3]", "bools are counted");
            } else {
                assert_eq!(scanned, ty[0]);
            }
        }
    }
}

#[test]
fn places_are_integers_and_axes_exist() {
    let ty = ["f32[2][3]"];
    assert_eq!(
        check(&ty, |b, v| b.argsort(v[0], 0, Direction::Asc, DType::F32)),
        "argsort: dtype is f32, it must be an integer dtype"
    );
    assert_eq!(
        check(&ty, |b, v| b.sort(v[0], 2, Direction::Asc)),
        "sort: axis 2 is out of range for the shape [2][3], it must be in -2..2"
    );
    assert!(check(&["f32"], |b, v| b.cumulative_sum(v[0], 0, false)).starts_with("cumulative_sum: axis 0"));
    assert_eq!(check(&["f32[0][3]"], |b, v| b.cumulative_product(v[0], 0, false)), "f32[0][3]");
}

#[test]
fn the_greatest_come_with_their_places() {
    let ty = ["u8[x: 2][y: 3]"];
    assert_eq!(check(&ty, |b, v| b.top_k(v[0], 2)), "u8[x: 2][y: 2], s32[x: 2][y: 2]");
    for (k, given) in [(0, "0"), (4, "4"), (-1, "-1")] {
        assert_eq!(
            check(&ty, |b, v| b.top_k(v[0], k)),
            format!(
                "top_k: k is {given}, it must be at least 1 and at most the size of the last axis of {}",
                ty[0]
            )
        );
    }
    assert_eq!(
        check(&["f32"], |b, v| b.top_k(v[0], 1)),
        "top_k: the operand is f32, at least one axis is required"
    );
    assert!(
        check(&["c64[3]"], |b, v| b.top_k(v[0], 1)).starts_with("top_k: the operand is c64[3], it must be")
    );
}

#[test]
fn partitions_have_the_types_of_sorts() {
    let ty = ["u8[x: 2][y: 3]"];
    for kth in [&[][..], &[0], &[-1], &[0, 2, 1, -3]] {
        assert_eq!(check(&ty, |b, v| b.partition(v[0], kth, "y")), ty[0], "{kth:?}");
        assert_eq!(check(&ty, |b, v| b.argpartition(v[0], kth, "y")), "s32[x: 2][y: 3]", "{kth:?}");
    }
    let block = |block: Block| check(&ty, |b, v| b.emit_one(Op::Block(block.clone()), &[v[0]]));
    let axis = Shape::new(&[2, 3]).axis(1).expect("an axis");
    assert_eq!(block(Block::Partition { axis, kth: 2 }), ty[0]);
    assert_eq!(block(Block::Argpartition { axis, kth: 2 }), "s32[x: 2][y: 3]");
    let beyond = "kth is 3, it must be a position on axis 1 of u8[x: 2][y: 3]";
    assert_eq!(block(Block::Partition { axis, kth: 3 }), format!("partition: {beyond}"));
    assert_eq!(block(Block::Argpartition { axis, kth: 3 }), format!("argpartition: {beyond}"));
    assert!(
        check(&["c64[3]"], |b, v| b.partition(v[0], &[1], 0)).starts_with("partition: the operand is c64")
    );
}
