//! Programs that are loops: a step of k-means, Runge and Kutta's method, and Kalman's filter.

use std::array;

use defn::linalg::{determinant, invert};
use defn::prelude::*;
use nalgebra::{Matrix2, Matrix2x4, Matrix4, Vector2, Vector4};
use ndarray::{Array1, Array2, Axis, Zip};

use crate::measure::Runner;
use crate::numbers::{Input, signed, uniform};

const FAMILY: &str = "loops";

pub fn run(runner: &Runner) {
    kmeans::<8, 16>(runner, 8192);
    kmeans::<32, 64>(runner, 8192);
    runge_kutta(runner, 12_000);
    many_systems(runner, 1024, 1000);
    kalman(runner, 2000);
}

/// One round: each centre becomes the mean of the points to which it is the nearest.
fn kmeans<const WIDTH: usize, const CLUSTERS: usize>(runner: &Runner, count: usize) {
    let seeds = signed(&[CLUSTERS, WIDTH], 3.0);
    let noise = signed(&[count, WIDTH], 1.0);
    let values = noise.values.iter().enumerate();
    let values = values.map(|(at, x)| x + seeds.values[at % (CLUSTERS * WIDTH)]).collect();
    let points = Input::of(values, &[count, WIDTH]);
    let centres = Input::of(points.values[..CLUSTERS * WIDTH].to_vec(), &[CLUSTERS, WIDTH]);
    let ours = jit(|(points, centres): (Expr, Expr)| {
        let apart = (&centres * &centres).sum(1, false) - 2.0 * points.matmul(centres.transpose(Axes::All));
        let nearest = apart.argmin(Some(1.into()), true);
        let member = nearest.equal(Expr::iota(&[CLUSTERS], DType::S32, None)).as_type(DType::F32);
        let counts = member.sum(0, false).max(1.0);
        member.transpose(Axes::All).matmul(points) / counts.new_axis(1)
    });
    let rows: Vec<[f32; WIDTH]> =
        points.values.chunks_exact(WIDTH).map(|row| row.try_into().expect("whole rows")).collect();
    let rust = || {
        // By columns, so that the distances to all centres are one vector.
        let columns: [[f32; CLUSTERS]; WIDTH] =
            array::from_fn(|d| array::from_fn(|c| centres.values[c * WIDTH + d]));
        let (mut sums, mut counts) = ([[0f32; WIDTH]; CLUSTERS], [0f32; CLUSTERS]);
        for point in &rows {
            let mut apart = [0f32; CLUSTERS];
            for (x, column) in point.iter().zip(&columns) {
                for (apart, centre) in apart.iter_mut().zip(column) {
                    *apart += (x - centre) * (x - centre);
                }
            }
            let mut nearest = 0;
            for at in 1..CLUSTERS {
                if apart[at] < apart[nearest] {
                    nearest = at;
                }
            }
            counts[nearest] += 1.0;
            sums[nearest].iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
        }
        let means = sums.iter().zip(&counts).map(|(sum, count)| sum.map(|x| x / count.max(1.0)));
        means.flatten().collect::<Vec<f32>>()
    };
    let ndarray = || -> Array2<f32> {
        let (x, centres) = (points.matrix(), centres.matrix());
        let squares = centres.map_axis(Axis(1), |row| row.dot(&row));
        let apart = &squares - 2.0 * x.dot(&centres.t());
        let (mut sums, mut counts) = (Array2::zeros((CLUSTERS, WIDTH)), Array1::zeros(CLUSTERS));
        for (apart, point) in apart.outer_iter().zip(x.outer_iter()) {
            let (mut nearest, mut least) = (0, f32::INFINITY);
            for (at, &apart) in apart.iter().enumerate() {
                if apart < least {
                    (nearest, least) = (at, apart);
                }
            }
            counts[nearest] += 1.0;
            Zip::from(sums.row_mut(nearest)).and(point).for_each(|sum, &x| *sum += x);
        }
        counts.mapv_inplace(|count: f32| count.max(1.0));
        sums / counts.insert_axis(Axis(1))
    };
    let call = || ours.call((points.tensor.clone(), centres.tensor.clone()));
    runner
        .time(FAMILY, format!("k-means step, {count} x {WIDTH}, {CLUSTERS} clusters"), call)
        .within(1e-4)
        .beside("Rust", rust)
        .beside("ndarray", ndarray)
        .done();
}

/// The rates of births and deaths of prey, and of predators, and the length of a step.
const RATES: [f32; 4] = [1.1, 0.4, 0.4, 0.1];
const STEP: f32 = 0.005;

/// How fast prey and predators grow (Lotka and Volterra).
fn growth(x: f32, y: f32) -> (f32, f32) {
    (x * (RATES[0] - RATES[1] * y), y * (RATES[3] * x - RATES[2]))
}

/// A step of the classical method of Runge and Kutta.
fn rust_step(x: f32, y: f32) -> (f32, f32) {
    let half = 0.5 * STEP;
    let a = growth(x, y);
    let b = growth(x + half * a.0, y + half * a.1);
    let c = growth(x + half * b.0, y + half * b.1);
    let d = growth(x + STEP * c.0, y + STEP * c.1);
    let sixth = STEP / 6.0;
    (x + sixth * (a.0 + 2.0 * b.0 + 2.0 * c.0 + d.0), y + sixth * (a.1 + 2.0 * b.1 + 2.0 * c.1 + d.1))
}

/// The same step by defn.
fn traced_step((x, y): (Expr, Expr)) -> (Expr, Expr) {
    let ([births, eaten, deaths, fed], step) = (RATES.map(f64::from), f64::from(STEP));
    let growth = |x: &Expr, y: &Expr| (x * (births - eaten * y), y * (fed * x - deaths));
    let half = 0.5 * step;
    let a = growth(&x, &y);
    let b = growth(&(&x + half * &a.0), &(&y + half * &a.1));
    let c = growth(&(&x + half * &b.0), &(&y + half * &b.1));
    let d = growth(&(&x + step * &c.0), &(&y + step * &c.1));
    let sixth = step / 6.0;
    (&x + sixth * (a.0 + 2.0 * b.0 + 2.0 * c.0 + d.0), &y + sixth * (a.1 + 2.0 * b.1 + 2.0 * c.1 + d.1))
}

/// Two equations: each operation waits for the one before.
fn runge_kutta(runner: &Runner, steps: i32) {
    let ours = jit(move |state: (Expr, Expr)| for_(state, 0..steps, |state, _| traced_step(state)));
    let [x, y] = [10f32, 5.0].map(|x| Tensor::scalar(x).expect("there is memory for a number"));
    let rust = || {
        let (mut x, mut y) = std::hint::black_box((10f32, 5f32));
        for _ in 0..steps {
            (x, y) = rust_step(x, y);
        }
        (x, y)
    };
    runner
        .time(FAMILY, format!("Runge-Kutta 4, 2 equations, {steps} steps"), || {
            ours.call((x.clone(), y.clone()))
        })
        .within(1e-3)
        .beside("Rust", rust)
        .done();
}

/// Many such systems at once, as arrays.
fn many_systems(runner: &Runner, count: usize, steps: i32) {
    let ours = jit(move |state: (Expr, Expr)| for_(state, 0..steps, |state, _| traced_step(state)));
    let (x, y) = (uniform(&[count]), uniform(&[count]));
    let shift = |x: Input, by: f32| Input::of(x.values.iter().map(|x| x + by).collect(), &[count]);
    let (x, y) = (shift(x, 10.0), shift(y, 5.0));
    let rust = || {
        let (mut xs, mut ys) = (x.values.clone(), y.values.clone());
        for _ in 0..steps {
            for (x, y) in xs.iter_mut().zip(&mut ys) {
                (*x, *y) = rust_step(*x, *y);
            }
        }
        (xs, ys)
    };
    let ndarray = || {
        let (mut xs, mut ys) = (x.array.clone(), y.array.clone());
        for _ in 0..steps {
            Zip::from(&mut xs).and(&mut ys).for_each(|x, y| (*x, *y) = rust_step(*x, *y));
        }
        (xs, ys)
    };
    runner
        .time(FAMILY, format!("Runge-Kutta 4, {count} systems, {steps} steps"), || {
            ours.call((x.tensor.clone(), y.tensor.clone()))
        })
        .within(1e-3)
        .beside("Rust", rust)
        .beside("ndarray", ndarray)
        .done();
}

/// Kalman's filter with 4 states and 2 observed numbers: the last mean and the logarithm of the likelihood.
fn kalman(runner: &Runner, steps: usize) {
    let observed = signed(&[steps, 2], 1.0);
    // A point that moves with constant speed, of which the place is observed.
    let motion = Matrix4::new(1., 0., 0.1, 0., 0., 1., 0., 0.1, 0., 0., 1., 0., 0., 0., 0., 1.);
    let view = Matrix2x4::new(1., 0., 0., 0., 0., 1., 0., 0.);
    let (drift, noise) = (Matrix4::identity() * 0.01f32, Matrix2::identity() * 0.25f32);
    let tensor = |values: &[f32], sizes: &[usize]| {
        Tensor::from_slice(values, sizes).expect("there is memory for a benchmark")
    };
    // nalgebra stores columns.
    let model = [
        tensor(motion.transpose().as_slice(), &[4, 4]),
        tensor(view.transpose().as_slice(), &[2, 4]),
        tensor(drift.as_slice(), &[4, 4]),
        tensor(noise.as_slice(), &[2, 2]),
    ];
    let ours = jit(|(observed, [motion, view, drift, noise]): (Expr, [Expr; 4])| {
        let turned = view.transpose(Axes::All);
        let start = (
            Expr::full(&[4], DType::F32, 0.0),
            Expr::eye(&[4, 4], DType::F32),
            Expr::constant(DType::F32, 0.0),
        );
        let ((mean, _, total), ()) = scan(start, &observed, |(mean, spread, total), seen| {
            let mean = motion.dot(mean);
            let spread = motion.matmul(spread).matmul(motion.transpose(Axes::All)) + &drift;
            let apart = seen - view.dot(&mean);
            let around = view.matmul(&spread).matmul(&turned) + &noise;
            let weight = invert(&around);
            let gain = spread.matmul(&turned).matmul(&weight);
            let total = total - 0.5 * (apart.dot(weight.dot(&apart)) + determinant(&around).log());
            ((mean + gain.dot(&apart), &spread - gain.matmul(view.matmul(&spread)), total), ())
        });
        (mean, total)
    });
    let nalgebra = || {
        let (mut mean, mut spread) = (Vector4::<f32>::zeros(), Matrix4::<f32>::identity());
        let mut total = 0f32;
        for seen in observed.values.chunks_exact(2) {
            mean = motion * mean;
            spread = motion * spread * motion.transpose() + drift;
            let apart = Vector2::new(seen[0], seen[1]) - view * mean;
            let around = view * spread * view.transpose() + noise;
            let weight = around.try_inverse().expect("not singular");
            let gain = spread * view.transpose() * weight;
            total -= 0.5 * (apart.dot(&(weight * apart)) + around.determinant().ln());
            mean += gain * apart;
            spread -= gain * (view * spread);
        }
        (mean.iter().copied().collect::<Vec<f32>>(), total)
    };
    runner
        .time(FAMILY, format!("Kalman filter, 4 states, {steps} steps"), || {
            ours.call((observed.tensor.clone(), model.clone()))
        })
        .within(1e-3)
        .beside("nalgebra", nalgebra)
        .done();
}
