//! k-means (Lloyd, 1982) with the starts of k-means++ (Arthur and Vassilvitskii, 2007).
//!
//! `cargo run --release -p defn --example kmeans`
//!
//! Start and iterations are one compiled program, which stops when no point changes its cluster. Lloyd's algorithm in
//! plain Rust, from the same start, checks the result. Prints the true and the found centres, and the times of both.

use std::time::Instant;

use defn::prelude::*;
use defn::random::{self, Sample};
use defn::{Result, Shape};

const POINTS: usize = 10_000;
const CENTRES: [[f64; 2]; 5] = [[0.0, 0.0], [6.0, 1.0], [2.0, 7.0], [-5.0, 4.0], [-3.0, -6.0]];
const K: usize = CENTRES.len();

/// What Lloyd's iterations work on: the centres f64[K][2], the cluster of each point, how many points have changed
/// theirs, and the number of iterations.
#[derive(Tree)]
struct Clustering<T> {
    centres: T,
    labels: T,
    changed: T,
    iterations: T,
}

/// The squared distance of each point to each centre, f64[POINTS][K].
fn distances(points: &Expr, centres: &Expr) -> Expr {
    (points.new_axis(1) - centres).pow(2).sum(-1, false)
}

/// Points as first centres, each drawn with a probability that is proportional to the squared distance to the nearest
/// centre before it.
fn plus_plus(key: Expr, points: &Expr) -> Expr {
    // Without an axis a sample would be of all coordinates.
    let (first, mut key) = random::choice(&key, points, None, 1, Some(0.into()), true);
    let mut centres = first;
    for _ in 1..K {
        let nearest = distances(points, &centres).reduce_min(1, false);
        let weights = &nearest / nearest.sum(Axes::All, false);
        let (next, rest) = random::choice(&key, points, Some(weights.into()), 1, Some(0.into()), true);
        centres = Expr::concatenate(&[centres, next], 0);
        key = rest;
    }
    centres
}

/// Moves each centre to the mean of its points, until no point changes its cluster. A centre without points stays.
fn lloyd(points: &Expr, centres: Expr) -> Clustering<Expr> {
    let nobody = Expr::full(&[POINTS], DType::S32, -1);
    let (one, zero) = (Expr::constant(DType::S32, 1), Expr::constant(DType::S32, 0));
    let start = Clustering { centres, labels: nobody, changed: one, iterations: zero };
    while_(
        start,
        |state| state.changed.greater(0),
        |state| {
            let labels = distances(points, &state.centres).argmin(Some(1.into()), false);
            let changed = labels.not_equal(&state.labels).sum(Axes::All, false);
            let sums = points.segment_sum(&labels, K);
            let sizes = Expr::full(&[POINTS], DType::F64, 1).segment_sum(&labels, K).new_axis(1);
            let centres = sizes.greater(0).select(sums / &sizes, &state.centres);
            Clustering { centres, labels, changed, iterations: state.iterations + 1 }
        },
    )
}

/// Lloyd's algorithm in plain Rust: the centres, the cluster of each point, and the number of iterations.
fn plain_lloyd(points: &[[f64; 2]], mut centres: [[f64; 2]; K]) -> ([[f64; 2]; K], Vec<usize>, i32) {
    let square = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let mut labels = vec![K; points.len()];
    for iterations in 1.. {
        let (mut sums, mut sizes, mut changed) = ([[0.0; 2]; K], [0.0; K], 0);
        for (point, label) in points.iter().zip(&mut labels) {
            let of = |k: &usize| square(*point, centres[*k]);
            let nearest = (0..K).min_by(|a, b| of(a).total_cmp(&of(b))).expect("a centre");
            changed += usize::from(nearest != *label);
            *label = nearest;
            sums[nearest] = [sums[nearest][0] + point[0], sums[nearest][1] + point[1]];
            sizes[nearest] += 1.0;
        }
        for k in (0..K).filter(|&k| sizes[k] > 0.0) {
            centres[k] = sums[k].map(|sum| sum / sizes[k]);
        }
        if changed == 0 {
            return (centres, labels, iterations);
        }
    }
    unreachable!("the sum of distances decreases")
}

/// The rows of a matrix of two columns.
fn pairs(x: &Tensor) -> Result<Vec<[f64; 2]>> {
    Ok(x.to_vec::<f64>()?.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}

fn main() -> Result<()> {
    // Normal clouds around the centres, in turn.
    let cloud = Sample { shape: Shape::new(&[POINTS / K, K, 2]), dtype: Some(DType::F64) };
    let (noise, key) = random::normal(&random::key(5)?, 0.0, 1.0, &cloud)?;
    let points = (&noise + &Tensor::from_nested(CENTRES)?)?.reshape(&[POINTS as i64, 2])?;

    let fit = jit(|(key, points): (Expr, Expr)| {
        let start = plus_plus(key, &points);
        (start.clone(), lloyd(&points, start))
    });
    fit.call((key.clone(), points.clone()))?; // Compiles.
    let now = Instant::now();
    let (start, found) = fit.call((key, points.clone()))?;
    let elapsed = now.elapsed();

    let start: [[f64; 2]; K] = pairs(&start)?.try_into().expect("K centres");
    let points = pairs(&points)?;
    let now = Instant::now();
    let (centres, labels, iterations) = plain_lloyd(&points, start);
    let plain = now.elapsed();
    assert_eq!(found.iterations.item::<i32>()?, iterations);
    assert!(found.labels.to_vec::<i32>()?.iter().zip(&labels).all(|(a, &b)| *a as usize == b));
    let found = pairs(&found.centres)?;
    for (a, b) in found.iter().zip(centres) {
        assert!((a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9, "{a:?} {b:?}");
    }
    println!("{POINTS} points, {iterations} iterations");
    for [x, y] in CENTRES {
        let distance = |c: &[f64; 2]| (c[0] - x).hypot(c[1] - y);
        let nearest = found.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("a centre");
        println!("true ({x:4.1}, {y:4.1}), found ({:5.2}, {:5.2})", nearest[0], nearest[1]);
        assert!(distance(nearest) < 0.1);
    }
    println!("{:.2} ms compiled, with the start; {:.2} ms plain", millis(elapsed), millis(plain));
    Ok(())
}

fn millis(time: std::time::Duration) -> f64 {
    1e3 * time.as_secs_f64()
}
