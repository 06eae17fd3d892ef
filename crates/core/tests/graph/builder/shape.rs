use defn_core::builder::{Arg, BuildCreate, BuildShape, Cut, PadMode, Size, Start};
use defn_core::graph::{Graph, Value};
use defn_core::{Axes, DType, Name, Number, Shape, TensorType};
use proptest::prelude::*;

use super::{check, names};

#[test]
fn reshape_drops_names_and_finds_the_open_size() {
    assert_eq!(check(&["f32[x: 2][3]"], |b, v| b.reshape(v[0], [3, 2], None)), "f32[3][2]");
    assert_eq!(check(&["f32[x: 2][3]"], |b, v| b.reshape(v[0], [2, 3], None)), "f32[2][3]");
    assert_eq!(
        check(&["f32[x: 2][3]"], |b, v| b.reshape(v[0], [3, -1], Some(&names(&["", "y"])))),
        "f32[3][y: 2]"
    );
    assert_eq!(
        check(&["f32[6]"], |b, v| b.reshape_to(v[0], Shape::named(&[6], &[Some("n")]).unwrap())),
        "f32[n: 6]"
    );
    assert_eq!(check(&["f32[0][3]"], |b, v| b.reshape(v[0], [-1, 3], None)), "f32[0][3]");
    assert_eq!(check(&["f32"], |b, v| b.reshape(v[0], [Size::Auto], None)), "f32[1]");
    assert_eq!(
        check(&["f32[2][3]"], |b, v| b.reshape(v[0], [4, 2], None)),
        "reshape: f32[2][3] has 6 elements, the new shape [4][2] has 8; the counts must be equal"
    );
    for sizes in [vec![-1, -1], vec![4, -1], vec![0, -1]] {
        let text = check(&["f32[2][3]"], |b, v| b.reshape(v[0], sizes, None));
        assert!(text.starts_with("reshape: the free size of ["), "{text}");
    }
    assert_eq!(
        check(&["f32[2]"], |b, v| b.reshape(v[0], [Size::Known(-2)], None)),
        "reshape: size -2 on axis 0, sizes must be at least 0"
    );
    assert_eq!(
        check(&["f32[2]"], |b, v| b.reshape(v[0], [2], Some(&names(&["a", "b"])))),
        "names: [\"a\", \"b\"] for the shape [2], one entry for each of its 1 axes is required"
    );
}

#[test]
fn flatten_merges_consecutive_axes() {
    let ty = ["s8[a: 2][b: 3][c: 4]"];
    assert_eq!(check(&ty, |b, v| b.flatten(v[0], Axes::All)), "s8[24]");
    assert_eq!(check(&ty, |b, v| b.flatten(v[0], ["c", "b"])), "s8[a: 2][12]");
    assert_eq!(check(&["s8"], |b, v| b.flatten(v[0], Axes::All)), "s8[1]");
    assert_eq!(
        check(&ty, |b, v| b.flatten(v[0], [0, 2])),
        "flatten: axes is [0, 2], it must be consecutive axes of s8[a: 2][b: 3][c: 4]"
    );
}

#[test]
fn squeeze_and_new_axis_keep_the_other_names() {
    let ty = ["s8[a: 2][b: 1][c: 1]"];
    assert_eq!(check(&ty, |b, v| b.squeeze(v[0], Axes::All)), "s8[a: 2]");
    assert_eq!(check(&ty, |b, v| b.squeeze(v[0], -1)), "s8[a: 2][b: 1]");
    assert_eq!(check(&["s8[2]"], |b, v| b.squeeze(v[0], Axes::All)), "s8[2]");
    assert_eq!(
        check(&ty, |b, v| b.squeeze(v[0], "a")),
        "squeeze: axis 0 of s8[a: 2][b: 1][c: 1] has size 2, only axes of size 1 can be squeezed"
    );
    assert_eq!(check(&["s8[a: 2]"], |b, v| b.new_axis(v[0], -1, None)), "s8[a: 2][1]");
    assert_eq!(check(&["s8[a: 2]"], |b, v| b.new_axis(v[0], -2, Some("n".into()))), "s8[n: 1][a: 2]");
    assert_eq!(
        check(&["s8[a: 2]"], |b, v| b.new_axis(v[0], 2, None)),
        "new_axis: a new axis cannot be inserted at axis 2 of [a: 2], the axis must be in -2..=1"
    );
}

#[test]
fn rename_replaces_every_name() {
    assert_eq!(check(&["s8[a: 2][3]"], |b, v| b.rename(v[0], &names(&["", "x"]))), "s8[2][x: 3]");
    assert_eq!(
        check(&["s8[a: 2][3]"], |b, v| b.rename(v[0], &names(&["x"]))),
        "names: [\"x\"] for the shape [a: 2][3], one entry for each of its 2 axes is required"
    );
}

#[test]
fn transpose_takes_names_along() {
    let ty = ["s8[a: 2][b: 3][4]"];
    assert_eq!(check(&ty, |b, v| b.transpose(v[0], Axes::All)), "s8[4][b: 3][a: 2]");
    assert_eq!(check(&ty, |b, v| b.transpose(v[0], [1, -1, 0])), "s8[b: 3][4][a: 2]");
    assert_eq!(
        check(&ty, |b, v| b.transpose(v[0], [1, 0])),
        "transpose: axes [1, 0] of s8[a: 2][b: 3][4], a permutation of all 3 axes is required"
    );
    assert_eq!(
        check(&ty, |b, v| b.transpose(v[0], [1, 1, 0])),
        "transpose: axis 1 is given twice, axes of [a: 2][b: 3][4] must be unique"
    );
}

#[test]
fn broadcast_aligns_at_the_end_or_where_it_is_told() {
    let to = |sizes: &[usize]| Shape::new(sizes);
    assert_eq!(check(&["s8[x: 1][3]"], |b, v| b.broadcast(v[0], to(&[4, 2, 3]), Axes::All)), "s8[4][2][3]");
    assert_eq!(check(&["s8[2]"], |b, v| b.broadcast(v[0], to(&[2, 3]), 0)), "s8[2][3]");
    assert_eq!(check(&["s8[1]"], |b, v| b.broadcast(v[0], to(&[0]), Axes::All)), "s8[0]");
    assert_eq!(
        check(&["s8[2]"], |b, v| b.broadcast(v[0], to(&[2, 3]), Axes::All)),
        "broadcast: s8[2] does not fit the shape [2][3] with axes [1], where size 2 meets 3 on axis 1; each size \
         must be 1 or equal the size it meets, and axes must ascend"
    );
    assert_eq!(
        check(&["s8[2][3]"], |b, v| b.broadcast(v[0], to(&[2, 3]), [1, 0])),
        "broadcast: s8[2][3] does not fit the shape [2][3] with axes [1, 0], where size 2 meets 3 on axis 1; each \
         size must be 1 or equal the size it meets, and axes must ascend"
    );
    assert!(
        check(&["s8[2][3]"], |b, v| b.broadcast(v[0], to(&[3]), Axes::All))
            .starts_with("broadcast: s8[2][3] ")
    );
}

#[test]
fn tile_repeats_and_drops_names() {
    assert_eq!(check(&["s8[a: 2][b: 3]"], |b, v| b.tile(v[0], &[2, 1, 4])), "s8[2][2][12]");
    assert_eq!(check(&["s8[a: 2][b: 3]"], |b, v| b.tile(v[0], &[5])), "s8[2][15]");
    assert_eq!(check(&["s8"], |b, v| b.tile(v[0], &[5])), "s8[5]");
    assert_eq!(check(&["s8[2]"], |b, v| b.tile(v[0], &[])), "s8[2]");
    assert_eq!(
        check(&["s8[2]"], |b, v| b.tile(v[0], &[0])),
        "tile: repetitions is [0], it must be integers of at least 1"
    );
    assert!(check(&["s8[2]"], |b, v| b.tile(v[0], &[i64::MAX, i64::MAX])).contains("more bytes"));
}

#[test]
fn concatenate_and_stack_merge_dtypes_and_names() {
    let types = ["u8[x: 2][3]", "s8[2][y: 4]"];
    assert_eq!(check(&types, |b, v| b.concatenate(v, 1)), "s16[x: 2][y: 7]");
    assert_eq!(check(&["u8[x: 2]"], |b, v| b.concatenate(v, 0)), "u8[x: 2]");
    assert_eq!(
        check(&types, |b, v| b.concatenate(v, 0)),
        "concatenate: input 1 is s8[2][y: 4], the first is u8[x: 2][3], axis 1 has sizes 4 and 3; they may differ only on axis 0"
    );
    assert_eq!(
        check(&[], |b, v| b.concatenate(v, 0)),
        "concatenate: no tensors were given, at least one is required"
    );
    assert_eq!(
        check(&["u8[2]"], |b, v| b.concatenate(v, 1)),
        "concatenate: axis 1 is out of range for the shape [2], it must be in -1..1"
    );
    let types = ["u8[x: 2]", "f16[2]"];
    assert_eq!(check(&types, |b, v| b.stack(v, -1, Some("n".into()))), "f16[x: 2][n: 2]");
    assert_eq!(check(&["u8"], |b, v| b.stack(v, 0, None)), "u8[1]");
    assert_eq!(
        check(&["u8[2]", "u8[3]"], |b, v| b.stack(v, 0, None)),
        "stack: input 1 is u8[3], the first is u8[2], axis 0 has sizes 3 and 2; shapes must be equal"
    );
    assert_eq!(
        check(&[], |b, v| b.stack(v, 0, None)),
        "stack: no tensors were given, at least one is required"
    );
}

#[test]
fn split_cuts_strictly_inside() {
    let ty = ["s8[x: 5][3]"];
    assert_eq!(check(&ty, |b, v| b.split(v[0], Cut::At(2), "x")), "s8[x: 2][3], s8[x: 3][3]");
    assert_eq!(check(&ty, |b, v| b.split(v[0], Cut::At(-1), 0)), "s8[x: 4][3], s8[x: 1][3]");
    assert_eq!(check(&ty, |b, v| b.split(v[0], Cut::Share(0.5), 0)), "s8[x: 3][3], s8[x: 2][3]");
    for cut in [Cut::At(0), Cut::At(5), Cut::At(-5), Cut::At(i64::MIN), Cut::Share(1.0), Cut::Share(f64::NAN)]
    {
        let text = check(&ty, |b, v| b.split(v[0], cut, 0));
        assert!(text.starts_with("split: the cut is "), "{text}");
        assert!(text.ends_with("it must be a cut inside axis 0 of s8[x: 5][3]"), "{text}");
    }
}

fn indices(starts: &[i64]) -> Vec<Start<Value>> {
    starts.iter().map(|&start| Start::Index(start)).collect()
}

#[test]
fn slice_clamps_starts_and_counts_strides() {
    let ty = ["s8[x: 5][4]"];
    let slice = |starts: &[i64], lengths: &[i64], strides: Option<&[i64]>| {
        let starts = indices(starts);
        check(&ty, |b, v| b.slice(v[0], &starts, lengths, strides))
    };
    assert_eq!(slice(&[1, 1], &[2, 3], None), "s8[x: 2][3]");
    assert_eq!(slice(&[100, -100], &[5, 4], Some(&[2, 3])), "s8[x: 3][2]");
    assert_eq!(slice(&[5, 0], &[0, 4], None), "s8[x: 0][4]");
    assert_eq!(
        slice(&[0, 1], &[2, 5], None),
        "slice: start 1 and length 5 on axis 1 of s8[x: 5][4], the length must be in 0..=4"
    );
    assert_eq!(
        slice(&[0, 0], &[-1, 5], None),
        "slice: start 0 and length -1 on axis 0 of s8[x: 5][4], the length must be in 0..=5"
    );
    assert_eq!(
        slice(&[0, 0], &[1, 1], Some(&[1, 0])),
        "slice: stride 0 on axis 1, strides must be at least 1"
    );
    assert_eq!(
        slice(&[0], &[1, 1], None),
        "slice: 1 axes for the shape [x: 5][4], one entry for each axis is required"
    );
}

#[test]
fn one_dynamic_start_makes_all_dynamic() {
    let slice = |starts: &str| {
        check(&["s8[5][4]", starts], |b, v| {
            let sliced = b.slice(v[0], &[Start::Value(v[1]), Start::Index(-3)], &[2, 2], None)?;
            let node = b.node(sliced).clone();
            assert_eq!(node.inputs.len(), 3);
            assert_eq!(b.ty(node.inputs[1]), b.ty(node.inputs[2]));
            Ok(node.inputs[1])
        })
    };
    assert_eq!(slice("u8"), "s32");
    assert_eq!(slice("s64"), "s64");
    assert_eq!(slice("u32"), "s64");
    for start in ["f32", "s32[1]"] {
        assert_eq!(
            slice(start),
            format!(
                "slice: the start index of axis 0 is {start}, it must be an integer or a scalar integer tensor"
            )
        );
    }
}

#[test]
fn slice_along_axis_leaves_the_others() {
    assert_eq!(check(&["s8[x: 5][4]"], |b, v| b.slice_along_axis(v[0], 1, 3, "x", 2)), "s8[x: 2][4]");
    assert_eq!(
        check(&["s8[x: 5][4]", "u8"], |b, v| b.slice_along_axis(v[0], Start::Value(v[1]), 1, -1, 1)),
        "s8[x: 5][1]"
    );
    assert_eq!(
        check(&["s8[x: 5][4]"], |b, v| b.slice_along_axis(v[0], 1, 3, "y", 2)),
        "slice_along_axis: no axis is named \"y\", the shape is [x: 5][4]"
    );
}

#[test]
fn put_slice_merges_dtypes_and_names() {
    let put = |types: &[&str]| check(types, |b, v| b.put_slice(v[0], &indices(&[9, -9]), v[1]));
    assert_eq!(put(&["u8[x: 5][4]", "s8[2][y: 4]"]), "s16[x: 5][y: 4]");
    assert_eq!(
        put(&["u8[5][4]", "u8[2][5]"]),
        "put_slice: the slice is u8[2][5] and the target u8[5][4], axis 1 has sizes 5 and 4; ranks must be equal and no size may \
         exceed the target's"
    );
    assert!(put(&["u8[5][4]", "u8[4]"]).starts_with("put_slice: the slice is u8[4]"));
    assert_eq!(
        check(&["u8[5]", "f32", "s64"], |b, v| {
            let one = b.reshape(v[1], [1], None)?;
            b.put_slice(v[0], &[Start::Value(v[2])], one)
        }),
        "f32[5]"
    );
    assert_eq!(
        check(&["u8[5]", "u8[1]", "f32"], |b, v| b.put_slice(v[0], &[Start::Value(v[2])], v[1])),
        "put_slice: the start index of axis 0 is f32, it must be an integer or a scalar integer tensor"
    );
}

#[test]
fn pad_is_weak_in_its_value() {
    let pad = |config: &[(i64, i64, i64)]| check(&["u8[x: 5]"], |b, v| b.pad(v[0], 0, config));
    assert_eq!(pad(&[(1, 2, 1)]), "u8[x: 12]");
    assert_eq!(pad(&[(-2, -2, 0)]), "u8[x: 1]");
    assert_eq!(check(&["u8[5]"], |b, v| b.pad(v[0], 0.5, &[(0, 1, 0)])), "f32[6]");
    assert_eq!(check(&["u8[5]", "s8"], |b, v| b.pad(v[0], v[1], &[(0, 1, 0)])), "s16[6]");
    assert_eq!(check(&["u8[0]"], |b, v| b.pad(v[0], 0, &[(2, 1, 7)])), "u8[3]");
    for (config, text) in [((0, 0, -1), "(0, 0, -1)"), ((-3, -3, 0), "(-3, -3, 0)")] {
        assert_eq!(
            pad(&[config]),
            format!(
                "pad: {text} on axis 0 of u8[x: 5], the interior must not be negative and the size of the \
                 result must be at least 0"
            )
        );
    }
    assert_eq!(pad(&[]), "pad: 0 entries for u8[x: 5], one (low, high, interior) for each axis is required");
    assert_eq!(
        check(&["u8[5]", "u8[1]"], |b, v| b.pad(v[0], v[1], &[(0, 1, 0)])),
        "pad: the padding value is u8[1], it must be a scalar"
    );
}

fn modes() -> [PadMode<Value>; 4] {
    [PadMode::Cyclic, PadMode::Mirror, PadMode::Replicate, PadMode::Reflect]
}

#[test]
fn pad_outer_keeps_names_and_grows() {
    for mode in modes() {
        let text = check(&["u8[x: 3][1]"], |b, v| b.pad_outer(v[0], mode, &[(7, 4), (0, 2)]));
        assert_eq!(text, "u8[x: 14][3]");
    }
    let value = || PadMode::Value(Arg::Number(Number::Float(0.5)));
    assert_eq!(check(&["u8[x: 3]"], |b, v| b.pad_outer(v[0], value(), &[(-1, 4)])), "f32[x: 6]");
    assert_eq!(check(&["f16[x: 3]"], |b, v| b.pad_outer(v[0], value(), &[(-1, 4)])), "f16[x: 6]");
    for mode in modes() {
        let text = check(&["u8[0][2]"], |b, v| b.pad_outer(v[0], mode, &[(0, 0), (1, 1)]));
        assert_eq!(text, "u8[0][4]");
    }
    for mode in modes() {
        assert_eq!(
            check(&["u8[3]"], |b, v| b.pad_outer(v[0], mode, &[(-1, 0)])),
            "pad_outer: the padding is (-1, 0) on axis 0 of u8[3], it must be two integers of at least 0"
        );
    }
    assert_eq!(
        check(&["u8[0]"], |b, v| b.pad_outer(v[0], PadMode::Cyclic, &[(1, 0)])),
        "pad_outer: the padding is (1, 0) on axis 0 of u8[0], it must be two integers of at least 0, and 0 on \
         an axis without elements"
    );
    let huge = check(&["u8[3]"], |b, v| b.pad_outer(v[0], PadMode::Cyclic, &[(i64::MAX - 10, i64::MAX)]));
    assert!(huge.contains("more bytes than memory can address"), "{huge}");
}

#[test]
fn reverse_keeps_the_type() {
    assert_eq!(check(&["u8[x: 3][2]"], |b, v| b.reverse(v[0], Axes::All)), "u8[x: 3][2]");
    assert_eq!(
        check(&["u8[x: 3][2]"], |b, v| b.reverse(v[0], [2])),
        "reverse: axis 2 is out of range for the shape [x: 3][2], it must be in -2..2"
    );
}

#[test]
fn what_changes_nothing_adds_no_node() {
    let mut graph = Graph::new();
    let shape = Shape::named(&[2, 3], &[Some("x"), None]).unwrap();
    let x = graph.iota(shape.clone(), DType::F32, None).unwrap();
    let before = graph.len();
    assert_eq!(graph.reshape_to(x, shape.clone()).unwrap(), x);
    assert_eq!(graph.broadcast(x, shape, Axes::All).unwrap(), x);
    assert_eq!(graph.transpose(x, [0, 1]).unwrap(), x);
    assert_eq!(graph.squeeze(x, Axes::All).unwrap(), x);
    assert_eq!(graph.reverse(x, Axes::List(vec![])).unwrap(), x);
    assert_eq!(graph.concatenate(&[x], 0).unwrap(), x);
    assert_eq!(graph.len(), before);
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0usize..5, 0..4)
}

fn tensor(sizes: &[usize]) -> (Graph, Value) {
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F32, Shape::new(sizes)).unwrap();
    let x = graph.parameter(0, ty);
    (graph, x)
}

proptest! {
    /// Tiling has NumPy's result shape for any ranks.
    #[test]
    fn tile_multiplies_sizes(sizes in sizes(), times in proptest::collection::vec(1i64..4, 0..5)) {
        let (mut graph, x) = tensor(&sizes);
        let tiled = graph.tile(x, &times).unwrap();
        let rank = sizes.len().max(times.len());
        let at = |list: &[usize], axis: usize| (axis + list.len()).checked_sub(rank).map_or(1, |at| list[at]);
        let times: Vec<usize> = times.iter().map(|&n| n as usize).collect();
        let expected: Vec<usize> = (0..rank).map(|axis| at(&sizes, axis) * at(&times, axis)).collect();
        prop_assert_eq!(graph.ty(tiled).shape.sizes(), &expected[..]);
    }

    /// Every axis can be left open if the number of elements determines it.
    #[test]
    fn the_open_size_is_found(sizes in proptest::collection::vec(1usize..5, 1..5), at in any::<prop::sample::Index>()) {
        let (mut graph, x) = tensor(&sizes);
        let flat = graph.flatten(x, Axes::All).unwrap();
        let open = at.index(sizes.len());
        let requested = sizes.iter().enumerate().map(|(axis, &size)| if axis == open { Size::Auto } else { size.into() });
        let back = graph.reshape(flat, requested, None).unwrap();
        prop_assert_eq!(graph.ty(back).shape.sizes(), &sizes[..]);
    }

    /// For any starts, a slice has the requested lengths, and its node is legal.
    #[test]
    fn starts_are_always_clamped(sizes in sizes(), seed in any::<i64>()) {
        let (mut graph, x) = tensor(&sizes);
        let starts: Vec<Start<Value>> = (0..sizes.len())
            .map(|axis| Start::Index(seed.rotate_left(17 * axis as u32)))
            .collect();
        let lengths: Vec<i64> = sizes.iter().map(|&size| (size / 2) as i64).collect();
        let sliced = graph.slice(x, &starts, &lengths, None).unwrap();
        let expected: Vec<usize> = sizes.iter().map(|&size| size / 2).collect();
        prop_assert_eq!(graph.ty(sliced).shape.sizes(), &expected[..]);
    }

    /// A transposition by a permutation and its inverse is the identity, names included.
    #[test]
    fn transposing_back_restores(order in Just(vec![0i64, 1, 2, 3]).prop_shuffle()) {
        let mut graph = Graph::new();
        let names: Vec<Option<Name>> = names(&["a", "b", "", "d"]);
        let shape = Shape::new(&[2, 3, 4, 5]).with_names(names).unwrap();
        let x = graph.parameter(0, TensorType::new(DType::U8, shape.clone()).unwrap());
        let moved = graph.transpose(x, &order[..]).unwrap();
        let back: Vec<i64> = (0..4).map(|axis| order.iter().position(|&at| at == axis).unwrap() as i64).collect();
        let restored = graph.transpose(moved, &back[..]).unwrap();
        prop_assert_eq!(&graph.ty(restored).shape, &shape);
    }
}
