//! Fits the rates of the Lotka-Volterra equations to populations of hares and lynxes, by gradients through the solver.
//!
//! `cargo run --release -p defn --example ode_fit`
//!
//! The solver is RK4 in a `scan` over the observed years. A solver in plain Rust makes the observations, and checks the
//! compiled loss and its gradient. Prints the loss on the way, the fitted rates beside the true ones, and times.

use std::time::Instant;

use defn::prelude::*;

const YEARS: usize = 20;
const STEPS_PER_YEAR: i32 = 20;
const STEP: f64 = 1.0 / STEPS_PER_YEAR as f64;
/// Hares and lynxes in year 0, in thousands.
const START: [f64; 2] = [33.0, 6.0];
const TRUE_RATES: [f64; 4] = [0.55, 0.028, 0.024, 0.8];
const GUESS: [f64; 4] = [0.7, 0.022, 0.03, 0.65];
const UPDATES: usize = 600;

/// Numbers per year: births of hares, meals of lynxes, their growth by meals, and their deaths.
#[derive(Clone, Tree)]
struct Rates<T> {
    births: T,
    meals: T,
    growth: T,
    deaths: T,
}

/// Adam's moving averages of gradients and of their squares, and the number of updates.
#[derive(Tree)]
struct Adam<T> {
    mean: Rates<T>,
    square: Rates<T>,
    updates: T,
}

/// Hares and lynxes.
type Animals = (Expr, Expr);

/// The rates of change of both populations.
fn slope(rates: &Rates<Expr>, (hares, lynxes): &Animals) -> Animals {
    let meetings = hares * lynxes;
    (&rates.births * hares - &rates.meals * &meetings, &rates.growth * &meetings - &rates.deaths * lynxes)
}

/// One step of the classical Runge-Kutta method.
fn runge_kutta(rates: &Rates<Expr>, y: &Animals) -> Animals {
    let along = |k: &Animals, time: f64| each([y, k], |[y, k]| y + time * k);
    let k1 = slope(rates, y);
    let k2 = slope(rates, &along(&k1, STEP / 2.0));
    let k3 = slope(rates, &along(&k2, STEP / 2.0));
    let k4 = slope(rates, &along(&k3, STEP));
    each([y, &k1, &k2, &k3, &k4], |[y, k1, k2, k3, k4]| y + STEP / 6.0 * (k1 + 2.0 * (k2 + k3) + k4))
}

/// The mean squared difference of the logarithms of simulated and observed populations, f64[YEARS] each. The rates are
/// given by their logarithms, so that they stay positive.
fn loss(logs: &Rates<Expr>, seen: &Animals) -> Expr {
    let rates = each([logs], |[rate]| rate.exp());
    let start = (Expr::constant(DType::F64, START[0]), Expr::constant(DType::F64, START[1]));
    let (_, errors) = scan(start, seen, |y, (hares, lynxes)| {
        let y = for_(y, 0..STEPS_PER_YEAR, |y, _| runge_kutta(&rates, &y));
        let error = (y.0.log() - hares.log()).pow(2) + (y.1.log() - lynxes.log()).pow(2);
        (y, error)
    });
    errors.mean(Axes::All, false)
}

/// One update by Adam (Kingma and Ba, 2015): the next logarithms of the rates, the optimizer's state, and the loss.
fn update(
    (logs, adam, seen, speed): (Rates<Expr>, Adam<Expr>, Animals, Expr),
) -> (Rates<Expr>, Adam<Expr>, Expr) {
    let (value, gradient) = value_and_grad(&logs, |logs| loss(&logs, &seen));
    let updates = adam.updates + 1;
    let power = |base: f64| Expr::constant(DType::F64, base).pow(&updates);
    let mean = each([&adam.mean, &gradient], |[mean, g]| 0.9 * mean + 0.1 * g);
    let square = each([&adam.square, &gradient], |[square, g]| 0.99 * square + 0.01 * g * g);
    let scale = speed * (1 - power(0.99)).sqrt() / (1 - power(0.9));
    let logs = each([&logs, &mean, &square], |[p, m, s]| p - &scale * m / (s.sqrt() + 1e-12));
    (logs, Adam { mean, square, updates }, value)
}

/// The same simulation in plain Rust: the populations of each year.
fn simulate(rates: [f64; 4]) -> Vec<[f64; 2]> {
    let slope = |[hares, lynxes]: [f64; 2]| {
        let [births, meals, growth, deaths] = rates;
        [births * hares - meals * hares * lynxes, growth * hares * lynxes - deaths * lynxes]
    };
    let along = |y: [f64; 2], k: [f64; 2], time: f64| [y[0] + time * k[0], y[1] + time * k[1]];
    let mut y = START;
    let mut years = Vec::new();
    for _ in 0..YEARS {
        for _ in 0..STEPS_PER_YEAR {
            let k1 = slope(y);
            let k2 = slope(along(y, k1, STEP / 2.0));
            let k3 = slope(along(y, k2, STEP / 2.0));
            let k4 = slope(along(y, k3, STEP));
            y = [0, 1].map(|i| y[i] + STEP / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]));
        }
        years.push(y);
    }
    years
}

fn simulated_loss(logs: [f64; 4], seen: &[[f64; 2]]) -> f64 {
    let error = |(y, seen): (&[f64; 2], &[f64; 2])| {
        (y[0].ln() - seen[0].ln()).powi(2) + (y[1].ln() - seen[1].ln()).powi(2)
    };
    simulate(logs.map(f64::exp)).iter().zip(seen).map(error).sum::<f64>() / seen.len() as f64
}

/// A container of scalars, f64.
fn rates(values: [f64; 4]) -> defn::Result<Rates<Tensor>> {
    let [births, meals, growth, deaths] = values.map(Tensor::from_nested);
    Ok(Rates { births: births?, meals: meals?, growth: growth?, deaths: deaths? })
}

fn values(rates: &Rates<Tensor>) -> defn::Result<[f64; 4]> {
    Ok([rates.births.item()?, rates.meals.item()?, rates.growth.item()?, rates.deaths.item()?])
}

fn main() -> defn::Result<()> {
    let observed = simulate(TRUE_RATES);
    let column = |i: usize| Tensor::try_from(observed.iter().map(|y| y[i]).collect::<Vec<f64>>());
    let seen = (column(0)?, column(1)?);
    let guess = GUESS.map(f64::ln);

    // The compiled loss and its gradient against the plain simulation and its central differences.
    let slopes = jit(|(logs, seen): (Rates<Expr>, Animals)| value_and_grad(&logs, |logs| loss(&logs, &seen)));
    let (value, gradient) = slopes.call((rates(guess)?, seen.clone()))?;
    let expected = simulated_loss(guess, &observed);
    assert!((value.item::<f64>()? - expected).abs() < 1e-12 * expected);
    for (i, slope) in values(&gradient)?.into_iter().enumerate() {
        let at = |by: f64| {
            simulated_loss(std::array::from_fn(|j| guess[j] + if i == j { by } else { 0.0 }), &observed)
        };
        let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((slope - difference).abs() < 1e-6 * difference.abs(), "{slope} {difference}");
    }

    let step = jit(update);
    let (mut logs, zero) = (rates(guess)?, rates([0.0; 4])?);
    let mut adam = Adam { mean: zero.clone(), square: zero, updates: Tensor::from_nested(0.0)? };
    let mut start = Instant::now();
    for i in 0..UPDATES {
        let speed = Tensor::from_nested(0.03 * (1.0 - i as f64 / UPDATES as f64))?;
        let value;
        (logs, adam, value) = step.call((logs, adam, seen.clone(), speed))?;
        if i == 0 {
            start = Instant::now(); // The first call compiles.
        }
        if i % 100 == 0 {
            println!("update {i:3}: loss {:.3e}", value.item::<f64>()?);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let fitted = values(&logs)?.map(f64::exp);
    for (fitted, rate) in fitted.into_iter().zip(TRUE_RATES) {
        println!("fitted {fitted:.5}, true {rate:.5}");
        assert!((fitted / rate - 1.0).abs() < 1e-3, "{fitted} {rate}");
    }
    let now = Instant::now();
    assert!(simulated_loss(values(&logs)?, &observed) < 1e-9);
    let plain = 1e3 * now.elapsed().as_secs_f64();
    println!("{:.3} ms an update, {plain:.3} ms a loss in plain Rust", 1e3 * seconds / (UPDATES - 1) as f64);
    Ok(())
}
