//! A Kalman filter of a target in the plane, and the noise of its sensor learnt by the gradient of the likelihood.
//!
//! `cargo run --release -p defn --example kalman`
//!
//! The filter is a `scan` over the measurements. A filter in plain Rust checks its estimates and the log-likelihood.
//! Prints how far measurements and estimates are from the true positions, the noise of the greatest likelihood, and
//! the times of both filters.

use std::f64::consts::TAU;
use std::time::Instant;

use defn::prelude::*;
use defn::random::{self, Sample};
use defn::{Shape, linalg};

const STEPS: usize = 400;
const INTERVAL: f64 = 0.1;
/// The standard deviations of the accelerations and of the measurements.
const AGITATION: f64 = 0.5;
const TRUE_NOISE: f64 = 0.8;

/// Positions and velocities in two dimensions: x, y, and their rates.
const STATES: usize = 4;
const MEASURED: usize = 2;
type Matrix<const N: usize, const M: usize> = [[f64; M]; N];

/// How the state goes on in one interval, without accelerations.
const TRANSITION: Matrix<STATES, STATES> =
    [[1.0, 0.0, INTERVAL, 0.0], [0.0, 1.0, 0.0, INTERVAL], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
/// What accelerations, constant in an interval, add to the state.
const PUSH: Matrix<STATES, MEASURED> =
    [[INTERVAL * INTERVAL / 2.0, 0.0], [0.0, INTERVAL * INTERVAL / 2.0], [INTERVAL, 0.0], [0.0, INTERVAL]];

/// The matrices of the model.
#[derive(Clone, Tree)]
struct Model<T> {
    transition: T,
    process_noise: T,
    observation: T,
}

/// The mean and the covariance of the state.
#[derive(Tree)]
struct Belief<T> {
    mean: T,
    covariance: T,
}

/// The means after each measurement, f64[STEPS][STATES], and the log-likelihood of the measurements, of which `log_noise`
/// is the logarithm of the standard deviation.
fn filter(model: &Model<Expr>, log_noise: &Expr, measurements: &Expr) -> (Expr, Expr) {
    let (a, h) = (&model.transition, &model.observation);
    let noise = (2.0 * log_noise).exp() * Expr::eye(&[MEASURED, MEASURED], DType::F64);
    let start = Belief {
        mean: Expr::full(&[STATES], DType::F64, 0),
        covariance: Expr::eye(&[STATES, STATES], DType::F64),
    };
    let (_, (means, logs)) = scan(start, measurements, |belief, measurement| {
        // Predict.
        let mean = a.matmul(&belief.mean);
        let covariance = a.matmul(&belief.covariance).matmul(a.transpose([1, 0])) + &model.process_noise;
        // Update. The gain is P H' S^-1, and S is symmetric.
        let residual = measurement - h.matmul(&mean);
        let projected = h.matmul(&covariance);
        let s = projected.matmul(h.transpose([1, 0])) + &noise;
        let gain = linalg::solve(&s, &projected).transpose([1, 0]);
        let mean = mean + gain.matmul(&residual);
        let covariance = covariance - gain.matmul(&projected);
        let distance = residual.dot(linalg::solve(&s, &residual));
        let log = -0.5 * (distance + linalg::determinant(&(TAU * s)).log());
        (Belief { mean: mean.clone(), covariance }, (mean, log))
    });
    (means, logs.sum(Axes::All, false))
}

fn multiply<const N: usize, const K: usize, const M: usize>(
    a: Matrix<N, K>,
    b: Matrix<K, M>,
) -> Matrix<N, M> {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..K).map(|k| a[i][k] * b[k][j]).sum()))
}

fn transpose<const N: usize, const M: usize>(a: Matrix<N, M>) -> Matrix<M, N> {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

/// Noise of independent accelerations in the state.
fn process_noise() -> Matrix<STATES, STATES> {
    multiply(PUSH, transpose(PUSH)).map(|row| row.map(|x| AGITATION * AGITATION * x))
}

/// The same filter in plain Rust. The observation is the first two states.
fn plain_filter(log_noise: f64, measurements: &[[f64; MEASURED]]) -> (Vec<[f64; STATES]>, f64) {
    let mut mean = [0.0; STATES];
    let mut p: Matrix<STATES, STATES> =
        std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    let (process_noise, noise) = (process_noise(), (2.0 * log_noise).exp());
    let (mut means, mut log) = (Vec::new(), 0.0);
    for z in measurements {
        mean = TRANSITION.map(|row| row.iter().zip(&mean).map(|(a, x)| a * x).sum());
        let predicted = multiply(multiply(TRANSITION, p), transpose(TRANSITION));
        p = std::array::from_fn(|i| std::array::from_fn(|j| predicted[i][j] + process_noise[i][j]));
        let s = [[p[0][0] + noise, p[0][1]], [p[1][0], p[1][1] + noise]];
        let determinant = s[0][0] * s[1][1] - s[0][1] * s[1][0];
        let inverse = [[s[1][1], -s[0][1]], [-s[1][0], s[0][0]]].map(|row| row.map(|x| x / determinant));
        let r = [z[0] - mean[0], z[1] - mean[1]];
        let gain: Matrix<STATES, MEASURED> = multiply(p.map(|row| [row[0], row[1]]), inverse);
        let weighted = inverse.map(|row| row[0] * r[0] + row[1] * r[1]);
        log -= 0.5 * (r[0] * weighted[0] + r[1] * weighted[1] + determinant.ln()) + TAU.ln();
        mean = std::array::from_fn(|i| mean[i] + gain[i][0] * r[0] + gain[i][1] * r[1]);
        let step = multiply(gain, [p[0], p[1]]);
        p = std::array::from_fn(|i| std::array::from_fn(|j| p[i][j] - step[i][j]));
        means.push(mean);
    }
    (means, log)
}

/// The rows of a matrix.
fn rows<const N: usize>(x: &Tensor) -> defn::Result<Vec<[f64; N]>> {
    Ok(x.to_vec()?.chunks_exact(N).map(|row| row.try_into().expect("a row")).collect())
}

/// The root of the mean squared distance of the positions in two lists.
fn distance<const N: usize, const M: usize>(a: &[[f64; N]], b: &[[f64; M]]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sum();
    (sum / a.len() as f64).sqrt()
}

fn main() -> defn::Result<()> {
    // The course of a target, and measurements of it.
    let sample = Sample { shape: Shape::new(&[STEPS, MEASURED]), dtype: Some(DType::F64) };
    let (pushes, key) = random::normal(&random::key(3)?, 0.0, AGITATION, &sample)?;
    let noise = rows::<MEASURED>(&random::normal_split(&key, 0.0, TRUE_NOISE, &sample)?)?;
    let mut state = [0.0, 0.0, 1.0, 0.5];
    let (mut course, mut measurements) = (Vec::new(), Vec::new());
    for (push, noise) in rows::<MEASURED>(&pushes)?.into_iter().zip(noise) {
        let free = TRANSITION.map(|row| row.iter().zip(&state).map(|(a, x)| a * x).sum::<f64>());
        state = std::array::from_fn(|i| free[i] + PUSH[i][0] * push[0] + PUSH[i][1] * push[1]);
        course.push(state);
        measurements.push([state[0] + noise[0], state[1] + noise[1]]);
    }

    let model = Model {
        transition: TRANSITION.try_into()?,
        process_noise: process_noise().try_into()?,
        observation: Tensor::eye(&[MEASURED, STATES], DType::F64)?,
    };
    let measured = Tensor::from_nested(&measurements)?;
    let run = jit(|(model, log_noise, measurements): (Model<Expr>, Expr, Expr)| {
        filter(&model, &log_noise, &measurements)
    });
    let arguments = (model.clone(), Tensor::from_nested(TRUE_NOISE.ln())?, measured.clone());
    run.call(arguments.clone())?; // Compiles.
    let now = Instant::now();
    let (means, log) = run.call(arguments)?;
    let compiled = now.elapsed();
    let (means, log) = (rows::<STATES>(&means)?, log.item::<f64>()?);
    let now = Instant::now();
    let (expected, expected_log) = plain_filter(TRUE_NOISE.ln(), &measurements);
    let plain = now.elapsed();
    assert!(distance(&means, &expected) < 1e-9);
    assert!((log - expected_log).abs() < 1e-9 * expected_log.abs(), "{log} {expected_log}");
    let (before, after) = (distance(&measurements, &course), distance(&means, &course));
    println!("measurements are off by {before:.3}, estimates by {after:.3}");
    assert!(after < 0.5 * before);

    // Newton's method on the logarithm of the noise: the second derivative is the gradient of the gradient.
    let slopes = jit(|(model, log_noise, measurements): (Model<Expr>, Expr, Expr)| {
        let likelihood = |log_noise: Expr| filter(&model, &log_noise, &measurements).1;
        value_and_grad(&log_noise, |x| grad(&x, likelihood))
    });
    let (mut log_noise, mut elapsed) = (0.0f64, compiled);
    for _ in 0..8 {
        let at = Tensor::from_nested(log_noise)?;
        let now = Instant::now();
        let (slope, second) = slopes.call((model.clone(), at, measured.clone()))?;
        elapsed = now.elapsed();
        let slope = slope.item::<f64>()?;
        let log = |log_noise| plain_filter(log_noise, &measurements).1;
        let difference = (log(log_noise + 1e-4) - log(log_noise - 1e-4)) / 2e-4;
        assert!((slope - difference).abs() < 1e-3 * (1.0 + difference.abs()), "{slope} {difference}");
        log_noise -= slope / second.item::<f64>()?;
    }
    println!("learnt noise {:.3}, true {TRUE_NOISE}", log_noise.exp());
    // Its standard error is about 1 / sqrt(2 * 800), 2.5 percent.
    assert!((log_noise.exp() / TRUE_NOISE - 1.0).abs() < 0.08);
    let [compiled, plain, elapsed] = [compiled, plain, elapsed].map(|time| 1e3 * time.as_secs_f64());
    println!("{compiled:.2} ms a filter, {plain:.2} ms in plain Rust; {elapsed:.2} ms with two derivatives");
    Ok(())
}
