//! Copies that read a whole row-major operand, or a window of it, and write a part of the result.

use defn_core::Axis;
use defn_core::op::Padding;
use smallvec::SmallVec;

use super::{Layout, StridedCopy};

/// Copies the elements of `operand` that `config` keeps to their positions in `result`.
pub(crate) fn pad(operand: &[usize], config: &[Padding], result: &[usize]) -> StridedCopy {
    let (mut from, mut to) = (Layout::contiguous(operand), Layout::contiguous(result));
    let mut sizes = SmallVec::<[usize; 6]>::new();
    for (axis, padding) in config.iter().enumerate() {
        let step = padding.interior as i128 + 1;
        let low = i128::from(padding.low);
        // Element i goes to `low + i * step`: the first and the last element within the result.
        let first = if low < 0 { (-low + step - 1) / step } else { 0 };
        let last = (result[axis] as i128 - 1 - low).div_euclid(step).min(operand[axis] as i128 - 1);
        sizes.push((last - first + 1).max(0) as usize);
        if last < first {
            continue;
        }
        from.offset += first as usize * from.strides[axis].unsigned_abs();
        to.offset += (low + first * step) as usize * to.strides[axis].unsigned_abs();
        to.strides[axis] *= step as isize;
    }
    StridedCopy::new(&sizes, &from, &to)
}

/// Fills all elements of `result` that `pad` does not write, by one element: along each axis the positions before and
/// after the operand, within the operand's range on the previous axes. None if padding is interior or negative.
pub(crate) fn border(operand: &[usize], config: &[Padding], result: &[usize]) -> Option<Vec<StridedCopy>> {
    if config.iter().any(|padding| padding.low < 0 || padding.high < 0 || padding.interior > 0) {
        return None;
    }
    let mut sizes: SmallVec<[usize; 6]> = result.into();
    let mut to = Layout::contiguous(result);
    let still = Layout { offset: 0, strides: SmallVec::from_elem(0, result.len()) };
    let mut plans = Vec::new();
    for (axis, padding) in config.iter().enumerate() {
        let step = to.strides[axis].unsigned_abs();
        let (low, high) = (padding.low as usize, padding.high as usize);
        for (length, start) in [(low, 0), (high, low + operand[axis])] {
            sizes[axis] = length;
            let layout = Layout { offset: to.offset + start * step, strides: to.strides.clone() };
            if !sizes.contains(&0) {
                plans.push(StridedCopy::new(&sizes, &still, &layout));
            }
        }
        sizes[axis] = operand[axis];
        to.offset += low * step;
    }
    Some(plans)
}

/// Copies the whole operand to the window that begins at index `starts`. The window is in bounds.
pub(crate) fn put_slice(operand: &[usize], starts: &[usize], result: &[usize]) -> StridedCopy {
    let mut to = Layout::contiguous(result);
    if !operand.contains(&0) {
        to.offset = starts.iter().zip(&to.strides).map(|(start, step)| start * step.unsigned_abs()).sum();
    }
    StridedCopy::new(operand, &Layout::contiguous(operand), &to)
}

/// Copies one operand of a concatenation, which begins at `start` along `axis`.
pub(crate) fn concatenate(operand: &[usize], axis: Axis, start: usize, result: &[usize]) -> StridedCopy {
    let mut starts: SmallVec<[usize; 6]> = SmallVec::from_elem(0, operand.len());
    starts[axis.index()] = start;
    put_slice(operand, &starts, result)
}

/// Copies one operand of a stack, which becomes entry `index` of the new axis `axis`.
pub(crate) fn stack(operand: &[usize], axis: usize, index: usize, result: &[usize]) -> StridedCopy {
    let mut entry: SmallVec<[usize; 6]> = operand.into();
    entry.insert(axis, 1);
    let mut starts: SmallVec<[usize; 6]> = SmallVec::from_elem(0, result.len());
    starts[axis] = index;
    put_slice(&entry, &starts, result)
}

#[cfg(test)]
mod tests {
    use defn_core::Shape;
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::shape::tests_support::{UNTOUCHED, run};
    use crate::kernels::testing::{flat_of, index_of, sizes};

    proptest! {
        #[test]
        fn pads(
            sizes in sizes(),
            amounts in prop::collection::vec((-4i64..5, -4i64..5, 0usize..3), 4),
        ) {
            let config: Vec<Padding> = amounts[..sizes.len()]
                .iter()
                .map(|&(low, high, interior)| Padding { low, high, interior })
                .collect();
            let spread = |n: usize, p: &Padding| n as i64 + n.saturating_sub(1) as i64 * p.interior as i64;
            let total = |(n, p): (&usize, &Padding)| spread(*n, p) + p.low + p.high;
            let result: Vec<i64> = sizes.iter().zip(&config).map(total).collect();
            prop_assume!(result.iter().all(|&size| size >= 0));
            let result: Vec<usize> = result.into_iter().map(|size| size as usize).collect();
            let got = run(&pad(&sizes, &config, &result), &sizes, &result);
            let mut want = vec![UNTOUCHED; got.len()];
            for flat in 0..sizes.iter().product() {
                let position: Vec<i64> = index_of(&sizes, flat)
                    .iter()
                    .zip(&config)
                    .map(|(&i, p)| p.low + i as i64 * (p.interior as i64 + 1))
                    .collect();
                if position.iter().zip(&result).all(|(&i, &size)| (0..size as i64).contains(&i)) {
                    let position: Vec<usize> = position.into_iter().map(|i| i as usize).collect();
                    want[flat_of(&result, &position)] = flat;
                }
            }
            prop_assert_eq!(&got, &want);
            if let Some(plans) = border(&sizes, &config, &result) {
                for plan in plans {
                    let around = run(&plan, &[1], &result);
                    for (want, around) in want.iter_mut().zip(around) {
                        if around != UNTOUCHED {
                            prop_assert_eq!(*want, UNTOUCHED, "written once");
                            *want = around;
                        }
                    }
                }
                prop_assert!(!want.contains(&UNTOUCHED));
            }
        }

        #[test]
        fn puts_slices(
            sizes in sizes(),
            cuts in prop::collection::vec((0usize..9, 0usize..9), 4),
        ) {
            let slice_sizes: Vec<usize> = sizes.iter().zip(&cuts).map(|(&size, cut)| cut.0.min(size)).collect();
            let starts: Vec<usize> =
                (0..sizes.len()).map(|axis| cuts[axis].1.min(sizes[axis] - slice_sizes[axis])).collect();
            let got = run(&put_slice(&slice_sizes, &starts, &sizes), &slice_sizes, &sizes);
            let mut want = vec![UNTOUCHED; got.len()];
            for flat in 0..slice_sizes.iter().product() {
                let position: Vec<usize> = index_of(&slice_sizes, flat).iter().zip(&starts).map(|(a, b)| a + b).collect();
                want[flat_of(&sizes, &position)] = flat;
            }
            prop_assert_eq!(got, want);
        }

        #[test]
        fn stacks(sizes in sizes(), position in 0usize..5, count in 1usize..4) {
            let position = position.min(sizes.len());
            let mut result = sizes.clone();
            result.insert(position, count);
            for entry in 0..count {
                let got = run(&stack(&sizes, position, entry, &result), &sizes, &result);
                for (flat, value) in got.into_iter().enumerate() {
                    let mut index = index_of(&result, flat);
                    let inside = index.remove(position) == entry;
                    prop_assert_eq!(value, if inside { flat_of(&sizes, &index) } else { UNTOUCHED });
                }
            }
        }
    }

    #[test]
    fn concatenates_along_the_axis() {
        let axis = Shape::new(&[2, 3]).axis(1).unwrap();
        let got = run(&concatenate(&[2, 1], axis, 2, &[2, 3]), &[2, 1], &[2, 3]);
        assert_eq!(got, [UNTOUCHED, UNTOUCHED, 0, UNTOUCHED, UNTOUCHED, 1]);
    }
}
