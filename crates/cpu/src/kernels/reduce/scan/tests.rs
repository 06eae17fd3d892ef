//! Scans beside ones that do what the module promises, place by place.

use defn_core::op::CumulativeOp;
use defn_core::{DType, Number, Scalar};
use proptest::prelude::*;

use super::{BLOCK, IN_ORDER, is_exact, scan_with};
use crate::kernels::simd::at_every_level;
use crate::kernels::stream::StoreKind;
use crate::kernels::testing::{Array, COMPUTED, noise};
use crate::kernels::{Element, Real, with_compute, with_real};
use crate::par::{Par, with_threads};

const OPS: [CumulativeOp; 4] = [
    CumulativeOp::CumulativeSum,
    CumulativeOp::CumulativeProduct,
    CumulativeOp::CumulativeMax,
    CumulativeOp::CumulativeMin,
];

/// Elements whose products neither vanish nor overflow soon, zeros of both signs among them.
fn elements(op: CumulativeOp, dtype: DType, sizes: &[usize], seed: u64) -> Array {
    let part = |bits: u64| match op {
        CumulativeOp::CumulativeProduct => {
            (1.0 + (bits % 1000) as f64 / 1e5) * [1.0, -0.995][(bits >> 32 & 1) as usize]
        }
        CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin if bits.is_multiple_of(3) => {
            [0.0, -0.0][(bits >> 32 & 1) as usize]
        }
        CumulativeOp::CumulativeSum | CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin => {
            (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        }
    };
    let mut noise = noise(seed);
    let count = sizes.iter().product::<usize>();
    let mut next = || noise.next().expect("it goes on");
    let numbers = (0..count).map(|_| {
        let bits = next();
        if dtype.is_complex() {
            Number::Complex(num_complex::Complex::new(part(bits), part(next())))
        } else if dtype.is_inexact() {
            Number::Float(part(bits))
        } else {
            Number::Int(i128::from(bits | 1))
        }
    });
    Array::new(dtype, sizes, numbers.collect::<Vec<_>>())
}

/// The scan of one axis in the order of the module's documentation.
fn in_order<C: Element>(
    x: &[C],
    sizes: [usize; 3],
    reverse: bool,
    has_blocks: bool,
    fold: fn(C, C) -> C,
) -> Vec<C> {
    let [outer, len, inner] = sizes;
    let mut out = vec![C::ZERO; x.len()];
    for line in 0..outer * inner {
        let at = |place: usize| {
            let row = if reverse { len - 1 - place } else { place };
            (line / inner * len + row) * inner + line % inner
        };
        let block = if has_blocks { BLOCK } else { len };
        let mut now = C::ZERO;
        for place in 0..len {
            let x = x[at(place)];
            now = if place % block == 0 { x } else { fold(now, x) };
            let before = place / block * block;
            out[at(place)] = if before == 0 { now } else { fold(out[at(before - 1)], now) };
        }
    }
    out
}

fn expected(op: CumulativeOp, x: &Array, sizes: [usize; 3], reverse: bool) -> Vec<Scalar> {
    let dtype = x.ty.dtype;
    let has_blocks = sizes[1] > IN_ORDER && !is_exact(op, dtype);
    macro_rules! by {
        ($with:ident, $fold:ident) => {
            $with!(dtype, C => {
                let out = in_order::<C>(x.view().slice(), sizes, reverse, has_blocks, C::$fold);
                let bytes = out.iter().flat_map(|x| {
                    // SAFETY: elements have no padding.
                    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(x).cast::<u8>(), size_of::<C>()) }
                });
                Array::of_bytes(x.ty.clone(), &bytes.copied().collect::<Vec<u8>>())
            })
        };
    }
    let out = match op {
        CumulativeOp::CumulativeSum => by!(with_compute, plus),
        CumulativeOp::CumulativeProduct => by!(with_compute, times),
        CumulativeOp::CumulativeMax => by!(with_real, greater),
        CumulativeOp::CumulativeMin => by!(with_real, lesser),
    };
    out.scalars()
}

/// Equal bits for any number of threads and both kinds of stores.
fn check(op: CumulativeOp, dtype: DType, sizes: [usize; 3], reverse: bool, seed: u64) {
    let x = elements(op, dtype, &sizes, seed);
    let want = expected(op, &x, sizes, reverse);
    let run = |stores: StoreKind, par: Par, what: &str| {
        let mut out = Array::unwritten(x.ty.clone());
        scan_with(op, x.view(), (1, reverse), &mut out.view_mut(), stores, par);
        let got = out.scalars();
        let differs = got.iter().zip(&want).position(|(got, want)| got.to_bytes() != want.to_bytes());
        assert_eq!(differs, None, "{op:?} {} reverse {reverse} {stores:?} {what}", x.ty);
    };
    for stores in [StoreKind::Cached, StoreKind::NonTemporal] {
        run(stores, Par::Serial, "serial");
        for threads in [1, 2, 7] {
            with_threads(threads, || run(stores, Par::Pool, &format!("{threads} threads"))).unwrap();
        }
    }
}

fn ops_and_dtypes() -> impl Strategy<Value = (CumulativeOp, DType)> {
    (prop::sample::select(&OPS[..]), prop::sample::select(&COMPUTED[..])).prop_filter(
        "an order",
        |&(op, dtype)| {
            !dtype.is_complex() || matches!(op, CumulativeOp::CumulativeSum | CumulativeOp::CumulativeProduct)
        },
    )
}

/// Lengths around those of segments, blocks and tiles, and of the longest axis in order.
fn lengths() -> impl Strategy<Value = usize> {
    let near = |length: usize| length.saturating_sub(3)..length + 4;
    prop_oneof![
        4 => 0usize..40,
        2 => near(BLOCK),
        2 => near(4 * BLOCK),
        1 => near(16 * BLOCK),
        1 => near(17 * BLOCK),
        3 => near(IN_ORDER),
        1 => near(IN_ORDER + BLOCK),
        1 => IN_ORDER..4 * IN_ORDER,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn scans_have_the_bits_of_their_order(
        (op, dtype) in ops_and_dtypes(),
        len in lengths(),
        outer in prop_oneof![3 => 0usize..4, 1 => 4usize..30],
        inner in prop_oneof![3 => Just(1usize), 3 => 1usize..9, 2 => 8usize..70, 1 => 60usize..1100],
        reverse: bool,
        seed: u64,
    ) {
        // The size is bounded by first the matrices, then the columns.
        let limit = 300_000;
        let outer = outer.min((limit / len.max(1)).max(1));
        let inner = inner.min((limit / (len.max(1) * outer.max(1))).max(1));
        check(op, dtype, [outer, len, inner], reverse, seed);
    }
}

#[test]
fn wide_and_narrow_columns_have_blocks() {
    use DType::{C128, F32, F64};
    let cases =
        [(2, 1, F32), (5, 2, F32), (8, 1, F64), (33, 1, F32), (64, 1, F32), (20, 1, C128), (36, 1, C128)];
    for (inner, outer, dtype) in cases.into_iter().chain([(65, 1, F32), (100, 1, F32)]) {
        check(CumulativeOp::CumulativeSum, dtype, [outer, IN_ORDER + 1025, inner], inner % 2 == 0, 3);
    }
}

#[test]
fn all_instruction_sets_give_the_same_bits() {
    at_every_level(|| {
        for op in OPS {
            check(op, DType::F32, [1, IN_ORDER + 1500, 1], false, 1);
            check(op, DType::F64, [3, 2048, 3], true, 2);
        }
    });
}

#[test]
fn nan_stays_and_zeros_are_the_last_ones() {
    for op in [CumulativeOp::CumulativeMax, CumulativeOp::CumulativeMin] {
        for len in [40, 8 * BLOCK, IN_ORDER + 7 * BLOCK] {
            let at = len / 2 + 7;
            let numbers = (0..len).map(|i| Number::Float(if i == at { f64::NAN } else { -0.0 }));
            let x = Array::new(DType::F32, &[len], numbers.collect::<Vec<_>>());
            let mut out = Array::unwritten(x.ty.clone());
            scan_with(op, x.view(), (0, false), &mut out.view_mut(), StoreKind::Cached, Par::Pool);
            let out = out.view();
            let out: &[f32] = out.slice();
            assert!(out[..at].iter().all(|x| x.to_bits() == (-0f32).to_bits()), "{op:?} {len}");
            assert!(out[at..].iter().all(|x| x.is_nan()), "{op:?} {len}");
        }
    }
}

/// Rounded sums that are smaller than one before would break searches in them.
#[test]
fn sums_of_numbers_that_are_not_negative_never_decrease() {
    let len = 5 * IN_ORDER + 77;
    let numbers = noise(9).map(|bits| Number::Float((bits % 1000) as f64 / 7e3));
    let x = Array::new(DType::F32, &[len], numbers.take(len).collect::<Vec<_>>());
    let mut out = Array::unwritten(x.ty.clone());
    scan_with(
        CumulativeOp::CumulativeSum,
        x.view(),
        (0, false),
        &mut out.view_mut(),
        StoreKind::Cached,
        Par::Pool,
    );
    assert!(out.view().slice::<f32>().is_sorted());
}
