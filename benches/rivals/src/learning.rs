//! A training step of a network with one hidden layer, and an attention block.

use burn_tensor::activation::{log_softmax, relu, softmax};
use burn_tensor::module::layer_norm;
use candle_core::Var;
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops;
use defn::prelude::*;

use crate::measure::Runner;
use crate::numbers::{Burn, Candle, CandleResult, Input, Numbers, signed, uniform};

const FAMILY: &str = "learning";

/// The learning rate.
const RATE: f64 = 0.1;

pub fn run(runner: &Runner) {
    training(runner, "32 x 64 - 256 - 10", [32, 64, 256, 10]);
    training(runner, "128 x 784 - 512 - 10", [128, 784, 512, 10]);
    attention(runner, 128, 256, 4);
    attention(runner, 512, 512, 8);
}

/// The weights and biases of two layers, by library or as gradients.
type Params<T> = [T; 4];

/// A step of gradient descent on the cross-entropy: the loss and the new parameters.
fn training(runner: &Runner, size: &str, [batch, inputs, hidden, classes]: [usize; 4]) {
    let x = uniform(&[batch, inputs]);
    let labels = one_hot(batch, classes);
    let params = [
        signed(&[inputs, hidden], 0.1),
        signed(&[1, hidden], 0.1),
        signed(&[hidden, classes], 0.1),
        signed(&[1, classes], 0.1),
    ];
    let step = jit(|(params, x, labels): (Params<Expr>, Expr, Expr)| {
        let (loss, gradient) = value_and_grad(&params, |[w, b, v, c]| {
            let out = (x.matmul(w) + b).max(0.0).matmul(v) + c;
            (out.logsumexp(1, false) - (&out * &labels).sum(1, false)).mean(Axes::All, false)
        });
        (loss, each([&params, &gradient], |[value, gradient]| value - RATE * gradient))
    });
    let ours = || {
        let params = params.each_ref().map(|x| x.tensor.clone());
        step.call((params, x.tensor.clone(), labels.tensor.clone()))
    };
    let all = |found: &defn::Result<(Tensor, Params<Tensor>)>| {
        let (loss, params) = found.as_ref().expect("the step runs");
        numbers(loss, params)
    };
    let vars = params.each_ref().map(|x| Var::from_tensor(&x.candle).expect("there is memory"));
    let candle = || candle_step(&vars, &x.candle, &labels.candle);
    runner
        .time_by(FAMILY, format!("training step {size}"), ours, all)
        .within(1e-5)
        .beside_by("candle", candle, |found| {
            let (loss, params) = found.as_ref().expect("the step runs");
            numbers(loss, params)
        })
        .beside_by(
            "burn",
            {
                let (x, labels): (Burn<2>, Burn<2>) = (x.burn().autodiff(), labels.burn().autodiff());
                let params = params.each_ref().map(|x| x.burn::<2>().autodiff());
                move || burn_step(&params, &x, &labels)
            },
            |(loss, params)| numbers(loss, params),
        )
        .done();
}

/// The loss and the parameters.
fn numbers<L: Numbers, P: Numbers>(loss: &L, params: &Params<P>) -> Vec<f64> {
    loss.numbers().into_iter().chain(params.iter().flat_map(Numbers::numbers)).collect()
}

/// Pseudo-random labels as rows with one 1.
fn one_hot(batch: usize, classes: usize) -> Input {
    let mut values = vec![0f32; batch * classes];
    for (row, draw) in uniform(&[batch]).values.iter().enumerate() {
        values[row * classes + (draw * classes as f32) as usize] = 1.0;
    }
    Input::of(values, &[batch, classes])
}

fn candle_step(
    vars: &Params<Var>,
    x: &Candle,
    labels: &Candle,
) -> candle_core::Result<(Candle, Params<Candle>)> {
    let [w, b, v, c] = vars;
    let hidden = x.matmul(w)?.broadcast_add(b)?.relu()?;
    let out = hidden.matmul(v)?.broadcast_add(c)?;
    let picked = (ops::log_softmax(&out, 1)? * labels)?.sum(1)?;
    let loss = picked.mean_all()?.neg()?;
    let gradients = loss.backward()?;
    let new = |var: &Var| -> CandleResult {
        let gradient = gradients.get(var).expect("the loss depends on each parameter");
        var.as_tensor() - (gradient * RATE)?
    };
    let params = [new(w)?, new(b)?, new(v)?, new(c)?];
    Ok((loss, params))
}

fn burn_step(params: &Params<Burn<2>>, x: &Burn<2>, labels: &Burn<2>) -> (Burn<1>, Params<Burn<2>>) {
    // The parameters of a step are new leaves.
    let leaves = params.each_ref().map(|param| param.clone().require_grad());
    let [w, b, v, c] = leaves.clone();
    let out = relu(x.clone().matmul(w) + b).matmul(v) + c;
    let loss = -(log_softmax(out, 1) * labels.clone()).sum_dim(1).mean();
    let gradients = loss.backward();
    let new = |leaf: &Burn<2>| {
        let gradient = leaf.grad(&gradients).expect("the loss depends on each parameter");
        leaf.clone().inner() - gradient * RATE
    };
    (loss.inner(), leaves.each_ref().map(new))
}

/// `x` plus the attention of its normalized rows, in several heads: what a transformer repeats.
fn attention(runner: &Runner, length: usize, width: usize, heads: usize) {
    let depth = width / heads;
    let x = signed(&[length, width], 1.0);
    let (scale, offset) = (signed(&[width], 1.0), signed(&[width], 0.5));
    let (mix, back) = (signed(&[width, 3 * width], 0.1), signed(&[width, width], 0.1));
    let root = (depth as f64).sqrt();
    let sizes = [length as i64, 3, heads as i64, depth as i64];
    type Inputs = (Expr, Expr, Expr, Expr, Expr);
    let ours = jit(move |(x, scale, offset, mix, back): Inputs| {
        let spread = x.variance(-1, true, 0) + 1e-5;
        let normed = (&x - x.mean(-1, true)) / spread.sqrt() * scale + offset;
        let parts = normed.matmul(mix).reshape(&sizes).transpose([1, 2, 0, 3]);
        let part = |at| parts.slice_along_axis(at, 1, 0).squeeze(0);
        let scores = part(0).matmul(part(1).transpose([0, 2, 1])) / root;
        let e = (&scores - scores.reduce_max(-1, true)).exp();
        let mixed = (&e / e.sum(-1, true)).matmul(part(2));
        let joined = mixed.transpose([1, 0, 2]).reshape(&[length as i64, width as i64]);
        x + joined.matmul(back)
    });
    let call = || {
        let [x, scale, offset, mix, back] = [&x, &scale, &offset, &mix, &back].map(|x| x.tensor.clone());
        ours.call((x, scale, offset, mix, back))
    };
    let parts = || -> candle_core::Result<Candle> {
        let normed = ops::layer_norm(&x.candle, &scale.candle, &offset.candle, 1e-5)?;
        normed.matmul(&mix.candle)?.reshape((length, 3, heads, depth))
    };
    let candle = || -> CandleResult {
        let parts = parts()?.permute((1, 2, 0, 3))?;
        let part = |at: usize| -> CandleResult { parts.get(at)?.contiguous() };
        let scores = (part(0)?.matmul(&part(1)?.transpose(1, 2)?)? / root)?;
        let mixed = ops::softmax_last_dim(&scores)?.matmul(&part(2)?)?;
        let joined = mixed.transpose(0, 1)?.reshape((length, width))?;
        &x.candle + joined.matmul(&back.candle)?
    };
    let flash = || -> CandleResult {
        let parts = parts()?.permute((1, 0, 2, 3))?;
        let part = |at: usize| -> CandleResult { parts.get(at)?.contiguous()?.unsqueeze(0) };
        let scale = 1.0 / root as f32;
        let mixed = flash_attn::<f32>(&part(0)?, &part(1)?, &part(2)?, scale, AttnMask::None, None, None)?;
        let joined = mixed.squeeze(0)?.transpose(0, 1)?.reshape((length, width))?;
        &x.candle + joined.matmul(&back.candle)?
    };
    runner
        .time(FAMILY, format!("attention block {length} x {width}, {heads} heads"), call)
        .within(1e-5)
        .beside("candle", candle)
        .beside("candle, flash", flash)
        .beside("burn", {
            let (x, mix, back): (Burn<2>, Burn<2>, Burn<2>) = (x.burn(), mix.burn(), back.burn());
            let (scale, offset): (Burn<1>, Burn<1>) = (scale.burn(), offset.burn());
            move || {
                let normed = layer_norm(x.clone(), scale.clone(), Some(offset.clone()), 1e-5);
                let parts = normed.matmul(mix.clone()).reshape([length, 3, heads, depth]);
                let parts = parts.permute([1, 2, 0, 3]);
                let part = |at: usize| parts.clone().narrow(0, at, 1).squeeze_dim::<3>(0);
                let scores = part(0).matmul(part(1).swap_dims(1, 2)) / root;
                let mixed = softmax(scores, 2).matmul(part(2));
                let joined = mixed.swap_dims(0, 1).reshape([length, width]);
                x.clone() + joined.matmul(back.clone())
            }
        })
        .done();
}
