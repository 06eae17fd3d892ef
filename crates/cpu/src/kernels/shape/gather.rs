//! Copies that fill a whole row-major result and read the operand in another order.

use defn_core::Axis;

use super::{Layout, StridedCopy};

/// A copy of elements in layout `from` to a row-major result of `sizes`.
fn gather(sizes: &[usize], from: &Layout) -> StridedCopy {
    StridedCopy::new(sizes, from, &Layout::contiguous(sizes))
}

/// Axis i of `operand` becomes axis `axes[i]` of `result`; new axes, and axes of size 1, repeat.
pub(crate) fn broadcast(operand: &[usize], result: &[usize], axes: &[Axis]) -> StridedCopy {
    let plain = Layout::contiguous(operand);
    let mut from = Layout { offset: 0, strides: smallvec::smallvec![0; result.len()] };
    for (index, axis) in axes.iter().enumerate() {
        if operand[index] != 1 {
            from.strides[axis.index()] = plain.strides[index];
        }
    }
    gather(result, &from)
}

/// Axis i of the result is axis `axes[i]` of `operand`.
pub(crate) fn transpose(operand: &[usize], axes: &[Axis]) -> StridedCopy {
    let plain = Layout::contiguous(operand);
    let sizes: smallvec::SmallVec<[usize; 6]> = axes.iter().map(|axis| operand[axis.index()]).collect();
    let strides = axes.iter().map(|axis| plain.strides[axis.index()]).collect();
    gather(&sizes, &Layout { offset: 0, strides })
}

/// The operand in reverse order along `axes`.
pub(crate) fn reverse(sizes: &[usize], axes: &[Axis]) -> StridedCopy {
    let mut from = Layout::contiguous(sizes);
    if sizes.contains(&0) {
        return gather(sizes, &from);
    }
    for axis in axes {
        let stride = &mut from.strides[axis.index()];
        from.offset += (sizes[axis.index()] - 1) * stride.unsigned_abs();
        *stride = -*stride;
    }
    gather(sizes, &from)
}

/// Every `strides[i]`th element of the operand from `starts[i]` on, up to the size of `result`. All are in bounds.
pub(crate) fn slice(operand: &[usize], starts: &[usize], strides: &[usize], result: &[usize]) -> StridedCopy {
    let mut from = Layout::contiguous(operand);
    if result.contains(&0) {
        return gather(result, &from);
    }
    for (axis, stride) in from.strides.iter_mut().enumerate() {
        from.offset += starts[axis] * stride.unsigned_abs();
        *stride *= strides[axis] as isize;
    }
    gather(result, &from)
}

#[cfg(test)]
mod tests {
    use defn_core::Shape;
    use defn_core::op::Starts;
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::shape::tests_support::run;
    use crate::kernels::testing::{index_of, sizes};

    proptest! {
        #[test]
        fn transposes(sizes in sizes(), seed in any::<u64>()) {
            let shape = Shape::new(&sizes);
            let mut axes: Vec<Axis> = shape.axes().collect();
            axes.sort_by_key(|axis| (seed >> (axis.index() * 7)) % 128);
            let result: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
            let got = run(&transpose(&sizes, &axes), &sizes, &result);
            for (flat, value) in got.into_iter().enumerate() {
                let index = index_of(&result, flat);
                let mut from = vec![0; sizes.len()];
                axes.iter().enumerate().for_each(|(i, axis)| from[axis.index()] = index[i]);
                prop_assert_eq!(index_of(&sizes, value), from);
            }
        }

        #[test]
        fn reverses(sizes in sizes(), chosen in any::<u8>()) {
            let axes: Vec<Axis> =
                Shape::new(&sizes).axes().filter(|axis| chosen >> axis.index() & 1 == 1).collect();
            let got = run(&reverse(&sizes, &axes), &sizes, &sizes);
            for (flat, value) in got.into_iter().enumerate() {
                let mut index = index_of(&sizes, flat);
                axes.iter().for_each(|axis| {
                    let axis = axis.index();
                    index[axis] = sizes[axis] - 1 - index[axis];
                });
                prop_assert_eq!(index_of(&sizes, value), index);
            }
        }

        #[test]
        fn broadcasts(result in sizes(), kept in any::<u8>(), ones in any::<u8>()) {
            let axes: Vec<Axis> =
                Shape::new(&result).axes().filter(|axis| kept >> axis.index() & 1 == 1).collect();
            let one = |axis: usize| ones >> axis & 1 == 1;
            let size = |axis: &Axis| if one(axis.index()) { 1 } else { result[axis.index()] };
            let operand: Vec<usize> = axes.iter().map(size).collect();
            let got = run(&broadcast(&operand, &result, &axes), &operand, &result);
            for (flat, value) in got.into_iter().enumerate() {
                let index = index_of(&result, flat);
                let from: Vec<usize> =
                    axes.iter().map(|axis| if one(axis.index()) { 0 } else { index[axis.index()] }).collect();
                prop_assert_eq!(index_of(&operand, value), from);
            }
        }

        #[test]
        fn slices(
            sizes in sizes(),
            starts in prop::collection::vec(-3i128..12, 4),
            cuts in prop::collection::vec((0usize..9, 1usize..4), 4),
        ) {
            let lengths: Vec<usize> = sizes.iter().zip(&cuts).map(|(&size, cut)| cut.0.min(size)).collect();
            let strides: Vec<usize> = cuts[..sizes.len()].iter().map(|cut| cut.1).collect();
            let result: Vec<usize> = lengths.iter().zip(&strides).map(|(n, step)| n.div_ceil(*step)).collect();
            let axes = starts.iter().zip(&lengths).zip(&sizes);
            let clamped: Vec<usize> =
                axes.map(|((&start, &length), &size)| Starts::Dynamic.nearest(start, length, size)).collect();
            for (axis, &start) in clamped.iter().enumerate() {
                prop_assert!(start + lengths[axis] <= sizes[axis]);
                let inside = starts[axis] >= 0 && starts[axis] as usize + lengths[axis] <= sizes[axis];
                prop_assert!(!inside || start as i128 == starts[axis]);
            }
            let got = run(&slice(&sizes, &clamped, &strides, &result), &sizes, &result);
            if let Some(offset) = slice(&sizes, &clamped, &strides, &result).shared() {
                prop_assert!(got.iter().copied().eq(offset..offset + got.len()));
            }
            for (flat, value) in got.into_iter().enumerate() {
                let mut index = index_of(&result, flat);
                (0..sizes.len()).for_each(|axis| index[axis] = clamped[axis] + index[axis] * strides[axis]);
                prop_assert_eq!(index_of(&sizes, value), index);
            }
        }
    }

    #[test]
    fn leading_slices_share_storage() {
        let shared = |starts, strides, result| slice(&[4, 3], starts, strides, result).shared();
        assert_eq!(shared(&[1, 0], &[1, 1], &[2, 3]), Some(3));
        assert_eq!(shared(&[2, 1], &[1, 1], &[1, 2]), Some(7));
        assert_eq!(shared(&[0, 1], &[1, 1], &[2, 2]), None);
        assert_eq!(shared(&[0, 0], &[2, 1], &[2, 3]), None);
        let axes: Vec<Axis> = Shape::new(&[2, 1, 3]).axes().collect();
        assert_eq!(transpose(&[2, 1, 3], &[axes[1], axes[0], axes[2]]).shared(), Some(0));
        assert_eq!(transpose(&[2, 1, 3], &[axes[2], axes[0], axes[1]]).shared(), None);
    }
}
