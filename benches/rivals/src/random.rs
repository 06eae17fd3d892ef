//! Random numbers, each library by its own generator: the moments are compared.

use burn_tensor::{Device, Distribution};
use candle_core::Device::Cpu;
use defn::Shape;
use defn::random::{self, Sample};
use rand::SeedableRng;
use rand::distr::Distribution as _;
use rand::rngs::SmallRng;
use rand_distr::StandardNormal;

use crate::measure::Runner;
use crate::numbers::{Burn, Candle, Numbers};

const FAMILY: &str = "random";

pub fn run(runner: &Runner) {
    for (size, n) in [("64 K", 1 << 16), ("4 M", 1 << 22)] {
        normal(runner, size, n);
        uniform(runner, size, n);
    }
}

/// One more than the mean and the mean of squares: the tolerance is relative.
fn moments<R: Numbers>(y: &R) -> Vec<f64> {
    let numbers = y.numbers();
    let mean = |f: fn(f64) -> f64| numbers.iter().map(|&x| f(x)).sum::<f64>() / numbers.len() as f64;
    vec![numbers.len() as f64, 1.0 + mean(|x| x), 1.0 + mean(|x| x * x)]
}

/// The moments without the length, which must be equal.
fn checked<R: Numbers>(n: usize) -> impl Fn(&R) -> Vec<f64> {
    move |y| {
        let found = moments(y);
        assert_eq!(found[0] as usize, n, "the number of random numbers");
        found[1..].to_vec()
    }
}

fn normal(runner: &Runner, size: &str, n: usize) {
    let key = random::key(1701).expect("there is memory for a key");
    let (sample, device) = (Sample::of(Shape::new(&[n])), Device::flex());
    let rust = || {
        let mut generator = SmallRng::seed_from_u64(1701);
        StandardNormal.sample_iter(&mut generator).take(n).collect::<Vec<f32>>()
    };
    runner
        .time_by(
            FAMILY,
            format!("normal, {size}"),
            || random::normal_split(&key, 0.0, 1.0, &sample),
            checked(n),
        )
        .within(2e-2)
        .beside_by("rand", rust, checked(n))
        .beside_by("candle", || Candle::randn(0f32, 1f32, n, &Cpu), checked(n))
        .beside_by("burn", || Burn::<1>::random([n], Distribution::Normal(0.0, 1.0), &device), checked(n))
        .done();
}

fn uniform(runner: &Runner, size: &str, n: usize) {
    let key = random::key(1701).expect("there is memory for a key");
    let (sample, device) = (Sample::of(Shape::new(&[n])), Device::flex());
    let rust = || {
        let generator = SmallRng::seed_from_u64(1701);
        rand::distr::StandardUniform.sample_iter(generator).take(n).collect::<Vec<f32>>()
    };
    runner
        .time_by(
            FAMILY,
            format!("uniform, {size}"),
            || random::uniform_split(&key, 0.0, 1.0, &sample),
            checked(n),
        )
        .within(2e-2)
        .beside_by("rand", rust, checked(n))
        .beside_by("candle", || Candle::rand(0f32, 1f32, n, &Cpu), checked(n))
        .beside_by("burn", || Burn::<1>::random([n], Distribution::Uniform(0.0, 1.0), &device), checked(n))
        .done();
}
