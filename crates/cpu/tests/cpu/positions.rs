//! Gathers, scatters and scans, compared with their definitions element by element.

use crate::common::*;
use defn_core::backend::Operand;
use defn_core::op::{Block, CumulativeOp, Op, ScatterOp};
use defn_core::shape::AxisList;
use defn_core::{DType, Number, Scalar, Shape};
use proptest::prelude::*;

fn axes(positions: &[usize]) -> AxisList {
    let shape = Shape::new(&[1; 8]);
    positions.iter().map(|&position| shape.axis(position).unwrap()).collect()
}

/// Integers of a dtype, wrapped.
fn ints(dtype: DType, sizes: &[usize], values: impl IntoIterator<Item = i128>) -> Operand {
    let scalars: Vec<Scalar> =
        values.into_iter().map(|value| Scalar::new(dtype, Number::Int(value)).unwrap()).collect();
    tensor(dtype, sizes, &scalars)
}

/// The numbers from 0 on, wrapped.
fn count(dtype: DType, sizes: &[usize]) -> Operand {
    ints(dtype, sizes, 0..sizes.iter().product::<usize>() as i128)
}

fn index_of(sizes: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (place, &size) in index.iter_mut().zip(sizes).rev() {
        *place = flat % size;
        flat /= size;
    }
    index
}

fn flat_of(sizes: &[usize], index: &[usize]) -> usize {
    sizes.iter().zip(index).fold(0, |flat, (size, i)| flat * size + i)
}

/// Merges the entries of a position and the indices of the other axes.
fn joined(rank: usize, axes: &[usize], entries: &[usize], rest: &[usize]) -> Vec<usize> {
    let (mut entries, mut rest) = (entries.iter(), rest.iter());
    (0..rank)
        .map(|axis| *if axes.contains(&axis) { entries.next() } else { rest.next() }.expect("one for each"))
        .collect()
}

/// A tensor, the axes of a position's entries, rows of positions that may be out of range, and the sizes of updates on
/// the other axes.
#[derive(Clone, Debug)]
struct Sample {
    sizes: Vec<usize>,
    axes: Vec<usize>,
    rows: Vec<Vec<i64>>,
    lengths: Vec<usize>,
    index: DType,
}

fn samples() -> impl Strategy<Value = Sample> {
    let sizes = prop::collection::vec(1usize..6, 1..5);
    (sizes, any::<u8>(), 0usize..9, prop::collection::vec(any::<u32>(), 64), any::<bool>()).prop_map(
        |(sizes, chosen, rows, draws, wide)| {
            let axes: Vec<usize> = (0..sizes.len()).filter(|axis| chosen >> axis & 1 == 1).collect();
            let mut draws = draws.into_iter().cycle();
            let mut draw = |below: usize| draws.next().expect("it goes on") as usize % below.max(1);
            let rows = (0..rows)
                .map(|_| {
                    axes.iter().map(|&axis| draw(sizes[axis] + 2) as i64 - i64::from(draw(6) == 0)).collect()
                })
                .collect();
            let rest = (0..sizes.len()).filter(|axis| !axes.contains(axis));
            let lengths = rest.map(|axis| sizes[axis] - draw(2).min(sizes[axis])).collect();
            Sample { sizes, axes, rows, lengths, index: if wide { DType::S64 } else { DType::S8 } }
        },
    )
}

impl Sample {
    fn indices(&self) -> Operand {
        let entries = self.rows.iter().flatten().map(|&entry| i128::from(entry));
        ints(self.index, &[self.rows.len(), self.axes.len()], entries)
    }

    fn rest(&self) -> Vec<usize> {
        (0..self.sizes.len()).filter(|axis| !self.axes.contains(axis)).map(|axis| self.sizes[axis]).collect()
    }

    fn is_in_range(&self, row: &[i64]) -> bool {
        let is_in = |(&entry, &axis): (&i64, &usize)| {
            let size = self.sizes[axis] as i64;
            (-size..size).contains(&entry)
        };
        row.iter().zip(&self.axes).all(is_in)
    }

    fn clamped(&self, row: &[i64]) -> Vec<usize> {
        row.iter().zip(&self.axes).map(|(&entry, &axis)| nearest(entry, self.sizes[axis])).collect()
    }
}

/// A position counted from the front, after counting negative ones from the end and clamping.
fn nearest(entry: i64, size: usize) -> usize {
    let size = size as i64;
    let entry = if entry < 0 { entry + size } else { entry };
    entry.clamp(0, size - 1) as usize
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn reads_are_those_of_the_definition(sample in samples(), dtype in prop::sample::select(DType::ALL)) {
        let x = count(dtype, &sample.sizes);
        let from = elements(&x);
        let rest = sample.rest();
        let mut want = Vec::new();
        for row in &sample.rows {
            for flat in 0..rest.iter().product() {
                let place = joined(
                    sample.sizes.len(), &sample.axes, &sample.clamped(row), &index_of(&rest, flat),
                );
                want.push(from[flat_of(&sample.sizes, &place)]);
            }
        }
        let op = Op::Gather { axes: axes(&sample.axes) };
        let indices = sample.indices();
        prop_assert_eq!(elements(&unchecked(&op, &[&x, &indices])), want.clone());
        let checked = run(&op, &[&x, &indices]);
        if sample.rows.iter().all(|row| sample.is_in_range(row)) {
            prop_assert_eq!(elements(&checked.unwrap()), want);
        } else {
            let text = checked.unwrap_err().to_string();
            prop_assert!(text.starts_with("gather: index "), "{}", text);
        }
    }

    #[test]
    fn writes_are_those_of_the_definition(
        sample in samples(),
        dtype in prop::sample::select(&[DType::U4, DType::U8, DType::S32, DType::BF16, DType::F64, DType::C64][..]),
        op in prop::sample::select(ScatterOp::ALL),
        owned in any::<bool>(),
    ) {
        let x = count(dtype, &sample.sizes);
        let sizes: Vec<usize> = [sample.rows.len()].iter().chain(&sample.lengths).copied().collect();
        // An update of another dtype is converted.
        let updates = count(DType::S8, &sizes);
        // Sums of small integers are exact in every dtype here, except those that wrap.
        let mut want: Vec<i128> =
            if dtype.is_integer() { integers(&x) } else { (0..x.ty.size() as i128).collect() };
        let block: usize = sample.lengths.iter().product();
        for (at, row) in sample.rows.iter().enumerate().filter(|(_, row)| sample.is_in_range(row)) {
            for flat in 0..block {
                let place = joined(
                    sample.sizes.len(), &sample.axes, &sample.clamped(row), &index_of(&sample.lengths, flat),
                );
                let place = flat_of(&sample.sizes, &place);
                let update = ((at * block + flat) as i8) as i128;
                want[place] = match op {
                    ScatterOp::IndexedAdd => want[place] + update,
                    ScatterOp::IndexedPut => update,
                };
            }
        }
        prop_assume!(want.iter().all(|value| value.abs() < 256) || dtype.is_integer() || dtype == DType::F64);
        let want = elements(&ints(unified(dtype), &sample.sizes, want));
        let op = Op::Scatter { op, axes: axes(&sample.axes) };
        let indices = sample.indices();
        let got = unchecked(&op, &[&x, &indices, &updates]);
        prop_assert_eq!(got.ty.dtype, unified(dtype));
        prop_assert_eq!(elements(&got), want.clone());
        if !sample.rows.iter().all(|row| sample.is_in_range(row)) {
            prop_assert!(run(&op, &[&x, &indices, &updates]).is_err());
        } else if owned {
            // In the operand's own memory, if it has the result's dtype.
            let again = run_owned(&op, vec![x, indices, updates]).unwrap();
            prop_assert_eq!(elements(&again), want);
        }
    }

    #[test]
    fn takes_are_those_of_the_definition(
        sizes in prop::collection::vec(1usize..5, 1..5),
        axis in 0usize..4,
        picks in prop::collection::vec(-2i64..8, 1..9),
        dtype in prop::sample::select(DType::ALL),
    ) {
        let axis = axis % sizes.len();
        let x = count(dtype, &sizes);
        let from = elements(&x);
        let at = |place: &[usize], pick: i64| {
            let mut place = place.to_vec();
            place[axis] = nearest(pick, sizes[axis]);
            from[flat_of(&sizes, &place)]
        };
        let mut taken = sizes.clone();
        taken[axis] = picks.len();
        let along = axes(&[axis])[0];
        let indices = ints(DType::S16, &[picks.len()], picks.iter().map(|&pick| i128::from(pick)));
        let places = (0..taken.iter().product()).map(|flat| index_of(&taken, flat));
        let want: Vec<Scalar> = places.clone().map(|place| at(&place, picks[place[axis]])).collect();
        let got = unchecked(&Op::Block(Block::Take { axis: along }), &[&x, &indices]);
        prop_assert_eq!(elements(&got), want);

        let pick = |place: &[usize]| picks[flat_of(&taken, place) % picks.len()];
        let indices = ints(DType::S64, &taken, places.clone().map(|place| i128::from(pick(&place))));
        let want: Vec<Scalar> = places.map(|place| at(&place, pick(&place))).collect();
        let got = unchecked(&Op::Block(Block::TakeAlongAxis { axis: along }), &[&x, &indices]);
        prop_assert_eq!(elements(&got), want);
    }
}

/// The common dtype with s8.
fn unified(dtype: DType) -> DType {
    dtype.merge(DType::S8)
}

#[test]
fn large_blocks_are_shared_among_threads() {
    // One row of each position has more elements than a chunk, and positions repeat.
    let (rows, width) = (3usize, 70_000usize);
    let x = ints(DType::S32, &[rows, width], std::iter::repeat_n(0, rows * width));
    let indices = ints(DType::S32, &[4, 1], [2, 0, 2, 7]);
    let updates = ints(DType::S32, &[4, width - 1], (0..4 * (width as i128 - 1)).map(|i| i % 1000));
    for &scatter in ScatterOp::ALL {
        let op = Op::Scatter { op: scatter, axes: axes(&[0]) };
        let got = integers(&unchecked(&op, &[&x, &indices, &updates]));
        let update = |at: usize, column: usize| ((at * (width - 1) + column) % 1000) as i128;
        for column in 0..width {
            let inside = column < width - 1;
            let (first, again) = (|| update(0, column), || update(2, column));
            let last = match scatter {
                ScatterOp::IndexedAdd if inside => first() + again(),
                ScatterOp::IndexedPut if inside => again(),
                ScatterOp::IndexedAdd | ScatterOp::IndexedPut => 0,
            };
            assert_eq!(got[2 * width + column], last, "{scatter:?} {column}");
            assert_eq!(got[column], if inside { update(1, column) } else { 0 });
            assert_eq!(got[width + column], 0);
        }
    }
}

#[test]
fn scans_are_those_of_the_definition() {
    // Lines of one piece and of several, contiguous and not.
    for sizes in [&[5][..], &[3, 7], &[2, 3, 700], &[1, 200_001], &[65_537, 2], &[2, 0, 3], &[4, 1]] {
        for axis in 0..sizes.len() {
            for &op in CumulativeOp::ALL {
                for reverse in [false, true] {
                    for dtype in [DType::S32, DType::U4] {
                        scan(sizes, axis, op, reverse, dtype);
                    }
                }
            }
        }
    }
}

fn scan(sizes: &[usize], axis: usize, op: CumulativeOp, reverse: bool, dtype: DType) {
    let total: usize = sizes.iter().product();
    let x = ints(dtype, sizes, (0..total as i128).map(|i| (i * 7919) % 23 - 11));
    let from = integers(&x);
    let inner: usize = sizes[axis + 1..].iter().product();
    let mut want = from.clone();
    for flat in 0..total {
        let flat = if reverse { total - 1 - flat } else { flat };
        let place = flat / inner % sizes[axis];
        let before = if reverse {
            (place + 1 < sizes[axis]).then(|| flat + inner)
        } else {
            (place > 0).then(|| flat - inner)
        };
        if let Some(before) = before {
            let (a, b) = (want[before], from[flat]);
            let folded = match op {
                CumulativeOp::CumulativeSum => a + b,
                CumulativeOp::CumulativeProduct => a * b,
                CumulativeOp::CumulativeMax => a.max(b),
                CumulativeOp::CumulativeMin => a.min(b),
            };
            want[flat] = defn_core::scalar::wrap(dtype, folded);
        }
    }
    let along = axes(&[axis])[0];
    let got = integers(&run(&Op::Block(Block::Cumulative { op, axis: along, reverse }), &[&x]).unwrap());
    assert!(got == want, "{op:?} of {sizes:?} along {axis}, reverse {reverse}");
}

#[test]
fn scans_keep_a_nan_and_signs_of_zero() {
    let x = vector(DType::F32, &[-0.0, 1.0, f64::NAN, 2.0]);
    let along = axes(&[0])[0];
    for &op in CumulativeOp::ALL {
        let got =
            floats(&run(&Op::Block(Block::Cumulative { op, axis: along, reverse: false }), &[&x]).unwrap());
        assert!(got[0] == 0.0 && got[0].is_sign_negative(), "{op:?}");
        assert!(!got[1].is_nan() && got[2].is_nan() && got[3].is_nan(), "{op:?}");
    }
}

#[test]
fn small_floats_are_rounded_once_at_each_place() {
    // 256 + 1 is no bf16, but 256 + 1 + 1 is one.
    let x = vector(DType::BF16, &[256.0, 1.0, 1.0]);
    let op = Block::Cumulative { op: CumulativeOp::CumulativeSum, axis: axes(&[0])[0], reverse: false };
    assert_eq!(floats(&run(&Op::Block(op), &[&x]).unwrap()), [256.0, 256.0, 258.0]);
    let indices = ints(DType::S32, &[2, 1], [0, 0]);
    let updates = vector(DType::BF16, &[1.0, 1.0]);
    let op = Op::Scatter { op: ScatterOp::IndexedAdd, axes: axes(&[0]) };
    assert_eq!(floats(&run(&op, &[&x, &indices, &updates]).unwrap()), [258.0, 1.0, 1.0]);
}
