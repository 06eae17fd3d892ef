//! Tensors without operands, and operations that move elements.

use defn_core::op::{Literal, MemorySpace, Op, Padding, Starts};
use defn_core::{DType, Scalar, Shape};
use smallvec::SmallVec;

use super::numbers::{operand_from, small, special, specials};
use super::{Closeness, Table, axes, axis as axis_at, ty};

pub fn create(dtype: DType) -> Table {
    let mut table = Table::default();
    let exact = Closeness::Exact;
    for number in special(dtype) {
        let scalar = Scalar::new(dtype, number).expect("a number of the type");
        table.must(Op::Constant(scalar), &[], exact);
    }
    table.must(Op::Parameter { index: 0, ty: ty(dtype, &[2]) }, &[&small(dtype, &[2], 0)], exact);
    for operand in
        [specials(dtype), small(dtype, &[], 1), small(dtype, &[0, 2], 1), small(dtype, &[2, 3, 1], 1)]
    {
        table.must(Op::Literal(Literal::new(operand.ty, operand.bytes)), &[], exact);
    }
    for (sizes, axis) in [
        (&[][..], None),
        (&[7], None),
        (&[2, 3], None),
        (&[2, 3], Some(0)),
        (&[2, 3], Some(1)),
        (&[0, 3], None),
        (&[2, 0], Some(1)),
    ] {
        // Bools cannot count.
        if !dtype.is_bool() {
            table.must(Op::Iota { shape: Shape::new(sizes), dtype, axis: axis.map(axis_at) }, &[], exact);
        }
    }
    for sizes in [&[3, 3][..], &[2, 3], &[2, 3, 2], &[0, 2]] {
        table.must(Op::Eye { shape: Shape::new(sizes), dtype }, &[], exact);
    }
    table
}

const MANY: [usize; 10] = [1, 2, 1, 3, 1, 1, 2, 1, 1, 2];

pub fn moves(dtype: DType) -> Table {
    let mut table = Table::default();
    let exact = Closeness::Exact;
    let (x, many, none) = (small(dtype, &[2, 3], 1), small(dtype, &MANY, 2), small(dtype, &[2, 0], 3));
    let one = small(dtype, &[], 4);
    let shape = Shape::new;
    table.must(Op::Reshape { shape: shape(&[3, 1, 2]) }, &[&x], exact);
    table.must(Op::Reshape { shape: shape(&[4, 6]) }, &[&many], exact);
    table.must(Op::Reshape { shape: shape(&[0]) }, &[&none], exact);
    table.must(Op::Reshape { shape: shape(&[1; 10]) }, &[&one], exact);
    table.must(Op::Squeeze { axes: axes(&[0, 2, 4, 5, 7, 8]) }, &[&many], exact);
    table.must(Op::Broadcast { shape: shape(&[2, 4, 3]), axes: axes(&[0, 2]) }, &[&x], exact);
    table.must(Op::Broadcast { shape: shape(&[2, 0]), axes: axes(&[]) }, &[&one], exact);
    table.must(
        Op::Broadcast {
            shape: shape(&[2, 2, 1, 3, 1, 2, 2, 1, 1, 2]),
            axes: axes(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        },
        &[&many],
        exact,
    );
    table.must(Op::Transpose { axes: axes(&[1, 0]) }, &[&x], exact);
    table.must(Op::Transpose { axes: axes(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]) }, &[&many], exact);
    table.must(Op::Transpose { axes: axes(&[]) }, &[&one], exact);
    table.must(Op::Transpose { axes: axes(&[1, 0]) }, &[&none], exact);
    let pad = |entries: &[(i64, i64, usize)]| Op::Pad {
        config: entries.iter().map(|&(low, high, interior)| Padding { low, high, interior }).collect(),
    };
    for config in
        [[(1, 0, 0), (0, 2, 1)], [(-1, 1, 0), (1, -2, 2)], [(0, 0, 0), (-1, -1, 0)], [(-1, -1, 0), (0, 0, 0)]]
    {
        table.must(pad(&config), &[&x, &one], exact);
        table.must(pad(&config), &[&x, &small(DType::S8, &[], 5)], exact);
    }
    table.must(pad(&[(0, 1, 1), (1, 1, 1)]), &[&none, &one], exact);
    table.must(pad(&[]), &[&one, &one], exact);
    table.must(Op::Reverse { axes: axes(&[0, 1]) }, &[&x], exact);
    table.must(Op::Reverse { axes: axes(&[1]) }, &[&x], exact);
    table.must(Op::Reverse { axes: axes(&[]) }, &[&x], exact);
    table.must(Op::Reverse { axes: axes(&[0, 1]) }, &[&none], exact);
    let other = small(DType::S16, &[2, 1], 6);
    table.must(Op::Concatenate { axis: axis_at(1) }, &[&x, &none, &x, &other], exact);
    table.must(Op::Concatenate { axis: axis_at(0) }, &[&x], exact);
    table.must(Op::Stack { axis: 1, name: None }, &[&x, &x, &small(DType::U8, &[2, 3], 6)], exact);
    table.must(Op::Stack { axis: 0, name: None }, &[&one, &one], exact);
    let fixed = |starts: &[usize]| Starts::Static(starts.into());
    let slice = |starts, lengths: &[usize], strides: &[usize]| Op::Slice {
        starts,
        lengths: lengths.into(),
        strides: strides.into(),
    };
    table.must(slice(fixed(&[0, 1]), &[2, 2], &[1, 1]), &[&x], exact);
    table.must(slice(fixed(&[0, 0]), &[2, 3], &[2, 2]), &[&x], exact);
    table.must(slice(fixed(&[1, 3]), &[1, 0], &[1, 3]), &[&x], exact);
    table.must(slice(fixed(&[]), &[], &[]), &[&one], exact);
    // Starts in range, below it, above it, and beyond the range of an index.
    let integers = [DType::U8, DType::S8, DType::S64, DType::S32];
    for (index, start) in [(0, 1.0), (1, -3.0), (2, 100.0), (3, 2.0)] {
        let start = operand_from(integers[index], &[], &[start]);
        table.must(slice(Starts::Dynamic, &[1, 2], &[1, 1]), &[&x, &start, &start], exact);
        table.must(slice(Starts::Dynamic, &[2, 3], &[1, 2]), &[&x, &start, &start], exact);
        let update = small(dtype, &[1, 2], 8);
        table.must(Op::PutSlice { starts: Starts::Dynamic }, &[&x, &update, &start, &start], exact);
    }
    let mut out_of_range = operand_from(DType::U64, &[], &[0.0]);
    out_of_range.bytes = u64::MAX.to_ne_bytes().to_vec();
    table.must(slice(Starts::Dynamic, &[1, 2], &[1, 1]), &[&x, &out_of_range, &out_of_range], exact);
    if dtype.is_integer() {
        // Starts of the type itself.
        let start = operand_from(dtype, &[], &[1.0]);
        table.must(slice(Starts::Dynamic, &[1, 2], &[1, 1]), &[&x, &start, &start], exact);
    }
    table.must(Op::PutSlice { starts: fixed(&[1, 0]) }, &[&x, &small(DType::U4, &[1, 2], 7)], exact);
    table.must(Op::PutSlice { starts: fixed(&[0, 3]) }, &[&x, &none], exact);
    table.must(Op::PutSlice { starts: Starts::Static(SmallVec::new()) }, &[&one, &one], exact);
    table.must(Op::StopGrad, &[&x], exact);
    table.must(Op::Mark { name: "here".into() }, &[&x], exact);
    table.must(Op::Transfer { to: MemorySpace::Host }, &[&x], exact);
    table.must(Op::Transfer { to: MemorySpace::Device }, &[&x], exact);
    table.must(Op::Barrier, &[&x, &one], exact);
    table
}
