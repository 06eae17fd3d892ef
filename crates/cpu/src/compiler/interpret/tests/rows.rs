//! Rows: their lengths, accesses of all kinds, and accumulators.

use super::super::super::ir::Reduce;
use super::*;

/// Lengths around those of steps and blocks.
fn lengths() -> Vec<usize> {
    let near = |at: usize| [at - 1, at, at + 1];
    let mut all = vec![0, 1, 2, 3, 7, 15, 16, 17, 31, 33];
    all.extend([64, BLOCK, 2 * BLOCK, 5 * BLOCK].into_iter().flat_map(near));
    all
}

/// As [`row`], from another byte on.
fn row_at(begin: usize, buffer: u16, elem: Elem) -> Access {
    Access { offset: begin as i64, ..row(buffer, elem) }
}

#[test]
fn rows_of_all_lengths() {
    for (begin, length) in
        BEGINS.into_iter().flat_map(|begin| lengths().into_iter().map(move |at| (begin, at)))
    {
        // y = x * 2 + 1, -x, and the positions.
        let mut b = Builder::new(4, 1, 0);
        let extent = b.param(0, Elem::Index);
        b.begin_lanes(extent);
        let x = b.load(Elem::F32, row_at(begin, 0, Elem::F32));
        let (two, one, zero) = (b.f32(2.0), b.f32(1.0), b.f32(0.0));
        let y = b.mul(x, two);
        let minus = b.sub(zero, x);
        let y = b.add(y, one);
        b.store(y, row_at(begin, 1, Elem::F32));
        b.store(minus, row_at(begin, 3, Elem::F32));
        let lane = b.lane(Elem::I32);
        b.store(lane, row_at(begin, 2, Elem::I32));
        b.end_lanes();
        let x: Vec<f32> = (1..=length).map(|x| x as f32).collect();
        // What is behind the row stays.
        let (y, lanes) = (vec![-1.0_f32; length + 100], vec![-1_i32; length + 100]);
        let y = to_bytes_at(begin, &y);
        let mut buffers = [to_bytes_at(begin, &x), y.clone(), to_bytes_at(begin, &lanes), y];
        run(&b.finish(), &mut buffers, &[length as u64]);
        let expected: Vec<f32> = x.iter().map(|x| x * 2.0 + 1.0).chain([-1.0; 100]).collect();
        assert_eq!(from_bytes_at::<f32>(begin, &buffers[1]), expected);
        let expected: Vec<f32> = x.iter().map(|x| -x).chain([-1.0; 100]).collect();
        assert_eq!(from_bytes_at::<f32>(begin, &buffers[3]), expected);
        let expected: Vec<i32> = (0..length as i32).chain([-1; 100]).collect();
        assert_eq!(from_bytes_at::<i32>(begin, &buffers[2]), expected);
    }
}

#[test]
fn no_elements_for_a_negative_extent() {
    let mut b = Builder::new(1, 1, 0);
    let extent = b.param(0, Elem::Index);
    let one = b.f32(1.0);
    b.begin_lanes(extent);
    b.store(one, row(0, Elem::F32));
    b.end_lanes();
    let mut buffers = [to_bytes(&[0_f32])];
    run(&b.finish(), &mut buffers, &[-1_i64 as u64]);
    assert_eq!(from_bytes::<f32>(&buffers[0]), [0.0]);
}

/// A row is read and written in place, through a value that is read again after it was written over.
#[test]
fn a_loaded_value_is_not_what_is_stored_later() {
    for (begin, length) in
        BEGINS.into_iter().flat_map(|begin| lengths().into_iter().map(move |at| (begin, at)))
    {
        let mut b = Builder::new(2, 1, 0);
        let extent = b.param(0, Elem::Index);
        b.begin_lanes(extent);
        let x = b.load(Elem::I32, row_at(begin, 0, Elem::I32));
        let y = b.load(Elem::I32, row_at(begin, 1, Elem::I32));
        b.store(y, row_at(begin, 0, Elem::I32));
        b.store(x, row_at(begin, 1, Elem::I32));
        let sum = b.add(x, y);
        let sum = b.mul(sum, x);
        b.store(sum, row_at(begin, 1, Elem::I32));
        b.end_lanes();
        let x: Vec<i32> = (0..length as i32).collect();
        let y: Vec<i32> = x.iter().map(|x| x * 7 - 100).collect();
        let mut buffers = [to_bytes_at(begin, &x), to_bytes_at(begin, &y)];
        run(&b.finish(), &mut buffers, &[length as u64]);
        assert_eq!(from_bytes_at::<i32>(begin, &buffers[0]), y);
        let expected: Vec<i32> = x.iter().zip(&y).map(|(x, y)| (x + y) * x).collect();
        assert_eq!(from_bytes_at::<i32>(begin, &buffers[1]), expected);
    }
}

/// A row is moved by some elements in its own buffer, which gives the same as element by element in this
/// direction.
#[test]
fn rows_that_overlap() {
    for length in lengths() {
        let mut b = Builder::new(1, 1, 0);
        let extent = b.param(0, Elem::Index);
        b.begin_lanes(extent);
        let x = b.load(Elem::I64, row_at(16 + 8 * 3, 0, Elem::I64));
        let one = b.bits(Elem::I64, 1);
        let y = b.add(x, one);
        b.store(y, row_at(16, 0, Elem::I64));
        b.end_lanes();
        let x: Vec<i64> = (0..length as i64 + 3).collect();
        let mut buffers = [to_bytes_at(16, &x)];
        run(&b.finish(), &mut buffers, &[length as u64]);
        let expected: Vec<i64> =
            (0..length as i64).map(|x| x + 4).chain(x[length..].iter().copied()).collect();
        assert_eq!(from_bytes_at::<i64>(16, &buffers[0]), expected);
    }
}

fn strides_of<T: Value + PartialEq>(make: impl Fn(usize) -> T) {
    let bytes = T::ELEM.bytes() as i64;
    for length in [1, 5, 64, BLOCK - 1, BLOCK, 2 * BLOCK + 9] {
        for (from_stride, to_stride) in [
            (bytes, -bytes),
            (-bytes, bytes),
            (3 * bytes, bytes),
            (bytes, 2 * bytes + 1),
            (-2 * bytes - 1, bytes),
            (0, bytes),
        ] {
            let extreme = |stride: i64| (length as i64 - 1) * stride;
            let offset = |stride: i64| 1 - extreme(stride).min(0);
            let size = |stride: i64| (1 + extreme(stride).unsigned_abs() as i64 + bytes) as usize;
            let mut b = Builder::new(2, 1, 0);
            let extent = b.param(0, Elem::Index);
            b.begin_lanes(extent);
            let x = b.load(T::ELEM, strided(0, offset(from_stride), from_stride));
            assert_eq!(b.ty(x).is_vector, from_stride != 0);
            b.store(x, strided(1, offset(to_stride), to_stride));
            b.end_lanes();
            let mut buffers = [vec![0_u8; size(from_stride)], vec![0_u8; size(to_stride)]];
            let at = |stride: i64, lane: usize| {
                let begin = (offset(stride) + lane as i64 * stride) as usize;
                begin..begin + bytes as usize
            };
            for lane in (0..length).rev() {
                let word = make(lane).bits().to_le_bytes();
                buffers[0][at(from_stride, lane)].copy_from_slice(&word[..bytes as usize]);
            }
            run(&b.finish(), &mut buffers, &[length as u64]);
            for lane in 0..length {
                let expected = make(if from_stride == 0 { 0 } else { lane }).bits().to_le_bytes();
                assert_eq!(buffers[1][at(to_stride, lane)], expected[..bytes as usize]);
            }
        }
    }
}

#[test]
fn elements_any_distance_apart() {
    strides_of(|lane| lane as u8);
    strides_of(|lane| lane as u16 * 3);
    strides_of(|lane| lane as u32 * 70_001);
    strides_of(|lane| lane as u64 * 1_000_000_007);
    strides_of(|lane| lane as f32 * 0.5);
    strides_of(|lane| lane as f64 * 0.1);
}

#[test]
fn the_last_lane_is_what_a_distance_of_zero_keeps() {
    let mut b = Builder::new(2, 1, 0);
    let extent = b.param(0, Elem::Index);
    b.begin_lanes(extent);
    let x = b.load(Elem::I32, row(0, Elem::I32));
    b.store(x, strided(1, 1, 0));
    b.end_lanes();
    let function = b.finish();
    for length in lengths().into_iter().filter(|&length| length > 0) {
        let x: Vec<i32> = (0..length as i32).collect();
        let mut buffers = [to_bytes(&x), to_bytes(&[-1_i32])];
        run(&function, &mut buffers, &[length as u64]);
        assert_eq!(from_bytes::<i32>(&buffers[1]), [length as i32 - 1]);
    }
}

/// Addresses are sums of indices times strides, some of which go back; scalars are stored to all elements.
#[test]
fn indices_and_scalars_in_a_row() {
    const LENGTH: usize = BLOCK + 5;
    let mut b = Builder::new(2, 2, 0);
    let (rows, extent) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (counter, _) = b.begin_loop(Some(rows), &[]);
    let (one, last) = (b.index(1), b.sub(rows, counter));
    let last = b.sub(last, one);
    b.begin_lanes(extent);
    // One scalar of each row, from the last one on, negated: once a block.
    let terms = [(last, 16), (counter, -8)].into_iter().collect();
    let x = b.load(Elem::F64, Access { buffer: 0, offset: 1 + 8 * 3, terms, lane: 0, is_streaming: false });
    let zero = b.f64(0.0);
    let x = b.sub(zero, x);
    let terms = [(counter, 8 * LENGTH as i64)].into_iter().collect();
    b.store(x, Access { buffer: 1, offset: 1, terms, lane: 8, is_streaming: true });
    b.end_lanes();
    b.end_loop(&[]);
    let x: Vec<f64> = (0..20).map(f64::from).collect();
    let mut buffers = [to_bytes(&x), to_bytes(&[0_f64; 4 * LENGTH])];
    run(&b.finish(), &mut buffers, &[4, LENGTH as u64]);
    let expected: Vec<f64> =
        (0..4).flat_map(|row| [-(f64::from(2 * (3 - row)) - f64::from(row) + 3.0); LENGTH]).collect();
    assert_eq!(from_bytes::<f64>(&buffers[1]), expected);
}

fn gather_of<T: Value + PartialEq>(make: impl Fn(usize) -> T) {
    const LENGTH: usize = 2 * BLOCK + 3;
    let mut random = Random(11);
    let data: Vec<T> = (0..1000).map(make).collect();
    // Positions count from the middle.
    let positions: Vec<i64> = (0..LENGTH).map(|_| random.below(1000) as i64 - 500).collect();
    let bytes = T::ELEM.bytes() as i64;
    let expected: Vec<T> = positions.iter().map(|at| data[(at + 500) as usize]).collect();
    for elem in [Elem::I32, Elem::I64] {
        let mut b = Builder::new(3, 1, 0);
        let extent = b.param(0, Elem::Index);
        b.begin_lanes(extent);
        let position = b.load(elem, row(1, elem));
        let x = b.gather(T::ELEM, position, strided(0, 1 + 500 * bytes, 0));
        b.store(x, row(2, T::ELEM));
        b.end_lanes();
        let positions = if elem == Elem::I32 {
            to_bytes(&positions.iter().map(|&at| at as i32).collect::<Vec<_>>())
        } else {
            to_bytes(&positions)
        };
        let mut buffers = [to_bytes(&data), positions, to_bytes(&[data[0]; LENGTH])];
        run(&b.finish(), &mut buffers, &[LENGTH as u64]);
        assert_eq!(from_bytes::<T>(&buffers[2]), expected);
    }
    // A scalar, at an index.
    let mut b = Builder::new(2, 1, 0);
    let position = b.param(0, Elem::Index);
    let x = b.gather(T::ELEM, position, strided(0, 1 + 500 * bytes, 0));
    b.store(x, strided(1, 1, 0));
    let mut buffers = [to_bytes(&data), to_bytes(&data[..1])];
    run(&b.finish(), &mut buffers, &[-7_i64 as u64]);
    assert_eq!(from_bytes::<T>(&buffers[1]), [data[493]]);
}

#[test]
fn elements_at_positions() {
    gather_of(|at| at as u8);
    gather_of(|at| at as u16);
    gather_of(|at| at as u32 * 5);
    gather_of(|at| at as u64 * 5);
    gather_of(|at| at as f32);
    gather_of(|at| at as f64);
}

/// Reduces rows with accumulators of several numbers of lanes, of a vector and of a scalar at once.
fn reduce<T: Value>(reduce: Reduce, join: impl Fn(T, T) -> T) {
    let special = values::<T>();
    let mut random = Random(23);
    let neutral = T::of_bits(reduce.neutral(T::ELEM));
    for length in lengths() {
        // Few rows have NaN or infinities, so that most results depend on all elements.
        let x: Vec<T> = (0..length)
            .map(|_| match random.below(length + 1) {
                0 => special[random.below(special.len())],
                _ => T::of_bits(random.next()),
            })
            .collect();
        let one = special[random.below(special.len())];
        for lanes in [1_u16, 2, 16, 32, 64, 1024] {
            let mut b = Builder::new(2, 2, 0);
            let (extent, scalar) = (b.param(0, Elem::Index), b.param(1, T::ELEM));
            let all = b.accumulator(reduce, T::ELEM, lanes);
            let same = b.accumulator(reduce, T::ELEM, lanes);
            b.begin_lanes(extent);
            let x_in = b.load(T::ELEM, row(0, T::ELEM));
            b.reduce(all, x_in);
            b.reduce(same, scalar);
            b.end_lanes();
            b.store(all, strided(1, 1, 0));
            b.store(same, strided(1, 1 + T::ELEM.bytes() as i64, 0));
            let mut buffers = [to_bytes(&x), to_bytes(&[neutral, neutral])];
            run(&b.finish(), &mut buffers, &[length as u64, one.bits()]);
            let expected = |value: &dyn Fn(usize) -> T| {
                let mut sums = vec![neutral; lanes.into()];
                for lane in 0..length {
                    let sum = &mut sums[lane % usize::from(lanes)];
                    *sum = join(*sum, value(lane));
                }
                while sums.len() > 1 {
                    let half = sums.len() / 2;
                    sums = (0..half).map(|lane| join(sums[lane], sums[lane + half])).collect();
                }
                sums[0]
            };
            let got = from_bytes::<T>(&buffers[1]);
            for (got, expected) in got.into_iter().zip([expected(&|lane| x[lane]), expected(&|_| one)]) {
                assert!(got.is_same(expected), "{reduce:?} {length} {lanes}: {got:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn floats_are_reduced() {
    macro_rules! reduce_floats {
        ($($type:ident),*) => {$(
            reduce::<$type>(Reduce::Add, |a, b| a + b);
            reduce::<$type>(Reduce::Mul, |a, b| a * b);
            reduce::<$type>(Reduce::Min, |a, b| {
                if a.is_nan() || b.is_nan() { $type::NAN } else if a < b { a } else { b }
            });
            reduce::<$type>(Reduce::Max, |a, b| {
                if a.is_nan() || b.is_nan() { $type::NAN } else if a > b { a } else { b }
            });
        )*};
    }
    at_every_level(|| {
        reduce_floats!(f32, f64);
    });
}

#[test]
fn integers_are_reduced() {
    macro_rules! reduce_integers {
        ($($signed:ident $unsigned:ident),*) => {$(
            reduce::<$unsigned>(Reduce::Add, |a, b| a.wrapping_add(b));
            reduce::<$unsigned>(Reduce::Mul, |a, b| a.wrapping_mul(b));
            reduce::<$signed>(Reduce::Min, |a, b| a.min(b));
            reduce::<$signed>(Reduce::Max, |a, b| a.max(b));
            reduce::<$unsigned>(Reduce::MinU, |a, b| a.min(b));
            reduce::<$unsigned>(Reduce::MaxU, |a, b| a.max(b));
            reduce::<$unsigned>(Reduce::And, |a, b| a & b);
            reduce::<$unsigned>(Reduce::Or, |a, b| a | b);
        )*};
    }
    at_every_level(|| {
        reduce_integers!(i8 u8, i16 u16, i32 u32, i64 u64);
    });
}

/// An accumulator that is added to under a condition and in a loop, in a row that is in a loop itself.
#[test]
fn accumulators_in_loops() {
    let mut b = Builder::new(2, 2, 0);
    let (rows, extent) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (row_at, _) = b.begin_loop(Some(rows), &[]);
    let sum = b.accumulator(Reduce::Add, Elem::I64, 16);
    let two = b.index(2);
    let odd = b.op(Op::RemS, [row_at, two]);
    let zero = b.index(0);
    let is_odd = b.compare(Cmp::Ne, odd, zero);
    b.begin_lanes(extent);
    let terms = [(row_at, 8 * BLOCK as i64)].into_iter().collect();
    let x = b.load(Elem::I64, Access { terms, ..row(0, Elem::I64) });
    b.begin_if(is_odd);
    b.reduce(sum, x);
    b.end_if(&[]);
    let three = b.index(3);
    let (_, _) = b.begin_loop(Some(three), &[]);
    b.reduce(sum, x);
    b.end_loop(&[]);
    b.end_lanes();
    let terms = [(row_at, 8)].into_iter().collect();
    b.store(sum, Access { terms, ..strided(1, 1, 0) });
    b.end_loop(&[]);
    let function = b.finish();
    let x: Vec<i64> = (0..4 * BLOCK as i64).map(|x| x * x).collect();
    for extent in [0, 1, BLOCK - 7, BLOCK] {
        let mut buffers = [to_bytes(&x), to_bytes(&[-1_i64; 4])];
        run(&function, &mut buffers, &[4, extent as u64]);
        let expected: Vec<i64> = (0..4)
            .map(|row| {
                let factor = if row % 2 == 1 { 4 } else { 3 };
                x[row * BLOCK..][..extent].iter().sum::<i64>() * factor
            })
            .collect();
        assert_eq!(from_bytes::<i64>(&buffers[1]), expected);
    }
}

/// Sums of floats, which depend on the order: a lane gets all values of an element before those of the next
/// one.
#[test]
fn several_values_of_an_element() {
    for (lanes, length) in [(1_u16, 70), (2, 3 * BLOCK), (16, BLOCK + 9), (64, BLOCK + 90)] {
        for in_loop in [false, true] {
            let mut b = Builder::new(2, 1, 0);
            let extent = b.param(0, Elem::Index);
            let sum = b.accumulator(Reduce::Add, Elem::F32, lanes);
            b.begin_lanes(extent);
            let x = b.load(Elem::F32, row(0, Elem::F32));
            let y = b.mul(x, x);
            if in_loop {
                let two = b.index(2);
                let (_, carried) = b.begin_loop(Some(two), &[(x, true), (y, true)]);
                b.reduce(sum, carried[0]);
                b.end_loop(&[(carried[0], carried[1]), (carried[1], carried[0])]);
            } else {
                b.reduce(sum, x);
                b.reduce(sum, y);
            }
            b.end_lanes();
            b.store(sum, strided(1, 1, 0));
            let x: Vec<f32> = (0..length).map(|x| 1.1_f32.powi(x as i32 % 50)).collect();
            let mut buffers = [to_bytes(&x), to_bytes(&[0_f32])];
            run(&b.finish(), &mut buffers, &[length as u64]);
            let mut sums = vec![-0.0_f32; lanes.into()];
            for (lane, &x) in x.iter().enumerate() {
                sums[lane % usize::from(lanes)] += x;
                sums[lane % usize::from(lanes)] += x * x;
            }
            while sums.len() > 1 {
                let half = sums.len() / 2;
                sums = (0..half).map(|lane| sums[lane] + sums[lane + half]).collect();
            }
            assert_eq!(from_bytes::<f32>(&buffers[1]), sums, "{lanes} {in_loop}");
        }
    }
}
