use defn_core::Axes;
use defn_core::builder::{
    Bins, BuildMissing, BuildOrder, BuildQuantile, BuildSearch, BuildSequence, Overlap, QuantileMethod, Side,
};

use super::check;

#[test]
fn positions_have_the_shape_of_what_is_looked_for() {
    let types = ["f32[a: 9]", "s8[b: 2][3]"];
    assert_eq!(check(&types, |b, v| b.searchsorted(v[0], v[1], Side::Left)), "s32[b: 2][3]");
    assert_eq!(check(&types, |b, v| b.digitize(v[1], v[0], true)), "s32[b: 2][3]");
    assert_eq!(check(&types, |b, v| b.searchsorted(v[0], 2, Side::Right)), "s32");
    assert!(check(&types, |b, v| b.searchsorted(v[1], v[0], Side::Left)).starts_with("searchsorted: "));
}

#[test]
fn counts_have_the_length_that_is_asked_for() {
    let types = ["u8[a: 9]", "f16[9]"];
    assert_eq!(check(&types, |b, v| b.bincount(v[0], None, 4)), "s32[4]");
    assert_eq!(check(&types, |b, v| b.bincount(v[0], Some(v[1].into()), 4)), "f16[4]");
    assert!(check(&types, |b, v| b.bincount(v[1], None, 4)).starts_with("bincount: the indices are f16[9]"));
    let counts = |b: &mut defn_core::graph::Graph, v: &[defn_core::graph::Value]| {
        b.histogram(v[1], Bins::Count(0), None, false, None).map(|(counts, _)| counts)
    };
    assert_eq!(check(&types, counts), "histogram: bins is 0, it must be at least 1 and at most 2147483646");
}

#[test]
fn interpolation_promotes() {
    let types = ["s32[x: 2]", "f32[3]", "c64[3]"];
    assert_eq!(check(&types, |b, v| b.interp(v[0], v[1], v[2], None, None, None)), "c64[x: 2]");
    assert_eq!(
        check(&types, |b, v| b.interp(v[0], v[1], v[1], None, None, Some(0.0))),
        "interp: period is 0, it must be finite, and not 0"
    );
}

#[test]
fn reductions_without_nan_keep_names() {
    let types = ["f32[a: 2][b: 3]", "f64[q: 4]"];
    assert_eq!(check(&types, |b, v| b.nansum(v[0], 0, false)), "f32[b: 3]");
    assert_eq!(check(&types, |b, v| b.nanargmax(v[0], Some("b".into()), true)), "s32[a: 2][b: 1]");
    let method = QuantileMethod::Linear;
    assert_eq!(
        check(&types, |b, v| b.quantile(v[0], v[1], Some(0.into()), false, method)),
        "f32[q: 4][b: 3]"
    );
    assert_eq!(
        check(&types, |b, v| b.percentile(v[0], 101, None, false, method)),
        "percentile: q is 101, it must be at least 0 and at most 100"
    );
    assert!(
        check(&types, |b, v| b.average(v[0], Axes::All, Some(v[1].into()), false)).starts_with("average: ")
    );
}

#[test]
fn sequences_have_the_lengths_of_their_overlap() {
    let types = ["s8[5]", "f32[x: 3]"];
    assert_eq!(check(&types, |b, v| b.convolve(v[0], v[1], Overlap::Full)), "f32[7]");
    assert_eq!(check(&types, |b, v| b.correlate(v[1], v[0], Overlap::Same)), "f32[5]");
    assert_eq!(check(&types, |b, v| b.polyval(v[0], v[1])), "f32[x: 3]");
    assert_eq!(check(&types, |b, v| b.polyfit(v[1], v[1], 1)), "f32[2]");
    assert_eq!(check(&types, |b, v| b.trapezoid(v[1], None, 1.0, 0)), "f32");
    assert!(check(&types, |b, v| b.partition(v[0], &[5], 0)).starts_with("partition: kth is 5"));
}
