//! Elementwise functions and fused chains of them, in the cache and in memory.

use defn::{Expr, jit};
use ndarray::Zip;

use crate::measure::Runner;
use crate::numbers::{Burn, Candle, CandleResult, signed, uniform};

const FAMILY: &str = "element-wise";

/// Sizes of f32 that fit the second-level cache, and that fit no cache.
const SIZES: [(&str, usize); 2] = [("64 K", 1 << 16), ("4 M", 1 << 22)];

pub fn run(runner: &Runner) {
    for (size, n) in SIZES {
        add(runner, size, n);
        chain(runner, size, n);
        functions(runner, size, n);
        gelu(runner, size, n);
    }
}

fn add(runner: &Runner, size: &str, n: usize) {
    let (a, b) = (uniform(&[n]), uniform(&[n]));
    let (x, y) = (a.nalgebra_vector(), b.nalgebra_vector());
    runner
        .time(FAMILY, format!("a + b, {size}"), || &a.tensor + &b.tensor)
        .beside("Rust", || a.values.iter().zip(&b.values).map(|(a, b)| a + b).collect::<Vec<f32>>())
        .beside("ndarray", || &a.array + &b.array)
        .beside_by("nalgebra", || &x + &y, |sum| sum.iter().map(|&x| f64::from(x)).collect())
        .beside("candle", || &a.candle + &b.candle)
        .beside("burn", {
            let (a, b) = (a.burn::<1>(), b.burn::<1>());
            move || a.clone() + b.clone()
        })
        .done();
}

/// Sums, products and a quotient of two arrays: each element is read once, if the operations are fused.
fn chain(runner: &Runner, size: &str, n: usize) {
    let (a, b) = (uniform(&[n]), uniform(&[n]));
    let ours = jit(|(a, b): (Expr, Expr)| (&a * &b + &a * 0.5) / (&b * &b + 1.0) - &b * 0.25);
    let scalar = |a: f32, b: f32| (a * b + a * 0.5) / (b * b + 1.0) - b * 0.25;
    let candle = |a: &Candle, b: &Candle| -> CandleResult {
        (((a * b)? + (a * 0.5)?)? / ((b * b)? + 1.0)?)? - (b * 0.25)?
    };
    runner
        .time(FAMILY, format!("chain of 8, {size}"), || ours.call((a.tensor.clone(), b.tensor.clone())))
        .within(1e-6)
        .beside("Rust", || a.values.iter().zip(&b.values).map(|(&a, &b)| scalar(a, b)).collect::<Vec<f32>>())
        .beside("ndarray", || Zip::from(&a.array).and(&b.array).map_collect(|&a, &b| scalar(a, b)))
        .beside("candle", || candle(&a.candle, &b.candle))
        .beside("burn", {
            let (a, b) = (a.burn::<1>(), b.burn::<1>());
            move || {
                let over = a.clone() * b.clone() + a.clone() * 0.5;
                over / (b.clone() * b.clone() + 1.0) - b.clone() * 0.25
            }
        })
        .done();
}

fn functions(runner: &Runner, size: &str, n: usize) {
    let x = signed(&[n], 4.0);
    macro_rules! function {
        ($name:ident) => {
            runner
                .time(FAMILY, format!("{}, {size}", stringify!($name)), || x.tensor.$name())
                .within(1e-6)
                .beside("Rust", || x.values.iter().map(|x| x.$name()).collect::<Vec<f32>>())
                .beside("ndarray", || x.array.mapv(f32::$name))
                .beside("candle", || x.candle.$name())
                .beside("burn", {
                    let x = x.burn::<1>();
                    move || x.clone().$name()
                })
                .done();
        };
    }
    function!(exp);
    function!(tanh);
    function!(sin);
}

/// GELU, approximated by tanh.
fn gelu(runner: &Runner, size: &str, n: usize) {
    let x = signed(&[n], 4.0);
    const SCALE: f64 = 0.797_884_560_802_865_4;
    let ours = jit(|x: Expr| 0.5 * &x * (1.0 + (SCALE * (&x + 0.044_715 * &x * &x * &x)).tanh()));
    let scalar = |x: f32| 0.5 * x * (1.0 + (SCALE as f32 * (x + 0.044_715 * x * x * x)).tanh());
    runner
        .time(FAMILY, format!("gelu, {size}"), || ours.call(x.tensor.clone()))
        .within(1e-6)
        .beside("Rust", || x.values.iter().map(|&x| scalar(x)).collect::<Vec<f32>>())
        .beside("ndarray", || x.array.mapv(scalar))
        .beside("candle", || x.candle.gelu())
        .beside("burn", {
            let x: Burn<1> = x.burn();
            move || burn_tensor::activation::gelu_approximate(x.clone())
        })
        .done();
}
