//! Trains the classifier of handwritten digits that `examples/digits.py` trains, to the same losses.
//!
//! `cargo run --release -p defn --example digits -- [--epochs N] [--seed N] [--data FILE] [--log FILE]`
//!
//! Prints the loss and the accuracy of each epoch, the time of a step, and the accuracy on digits that were held out.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use defn::prelude::*;
use defn::try_each;

const PIXELS: usize = 64;
const HIDDEN: usize = 256;
const CLASSES: usize = 10;
const HELD_OUT: usize = 360;
const BATCH: usize = 32;
const RATE: f64 = 3e-3;

/// The parameters of both layers; their gradients and moments have the same form.
#[derive(Tree)]
struct Params<T> {
    hidden: T,
    hidden_bias: T,
    output: T,
    output_bias: T,
}

/// The optimizer's state: how many steps, moving averages of gradients and their squares.
#[derive(Tree)]
struct Adam<T> {
    step: T,
    mean: Params<T>,
    square: Params<T>,
}

/// A score for each class; the greatest is the guess.
fn scores(params: &Params<Expr>, images: &Expr) -> Expr {
    let hidden = ((images / 16).matmul(&params.hidden) + &params.hidden_bias).max(0);
    hidden.matmul(&params.output) + &params.output_bias
}

/// The digit that each image seems to show.
fn guess((params, images): (Params<Expr>, Expr)) -> Expr {
    scores(&params, &images).argmax(Some(1.into()), false)
}

/// The mean cross-entropy of a batch, and the part of it that is guessed right.
fn loss_and_accuracy(params: &Params<Expr>, images: &Expr, labels: &Expr) -> (Expr, Expr) {
    let out = scores(params, images);
    let one_hot = labels.new_axis(1).equal(Expr::iota(&[CLASSES], DType::S32, None));
    let loss = (out.logsumexp(1, false) - (&out * one_hot).sum(1, false)).mean(Axes::All, false);
    let right = out.argmax(Some(1.into()), false).equal(labels);
    (loss, right.mean(Axes::All, false))
}

/// The next parameters and state. The averages start at zero, which `scale` makes up for.
fn adam(
    params: &Params<Expr>,
    gradient: &Params<Expr>,
    state: &Adam<Expr>,
    rate: &Expr,
) -> (Params<Expr>, Adam<Expr>) {
    let step = &state.step + 1;
    let power = |base: f64| Expr::constant(DType::F32, base).pow(&step);
    let mean = each([&state.mean, gradient], |[mean, g]| 0.9 * mean + 0.1 * g);
    let square = each([&state.square, gradient], |[square, g]| 0.999 * square + 0.001 * g * g);
    let scale = rate * (1 - power(0.999)).sqrt() / (1 - power(0.9));
    let params = each([params, &mean, &square], |[p, m, s]| p - &scale * m / (s.sqrt() + 1e-8));
    (params, Adam { step, mean, square })
}

/// Parameters, optimizer's state, images, labels and learning rate.
type Inputs = (Params<Expr>, Adam<Expr>, Expr, Expr, Expr);

/// One step on one batch: the next parameters and state, the loss and the accuracy.
fn train_step((params, state, images, labels, rate): Inputs) -> (Params<Expr>, Adam<Expr>, Expr, Expr) {
    let ((loss, accuracy), gradient) = value_and_grad_of(
        &params,
        |params| loss_and_accuracy(&params, &images, &labels),
        |(loss, _)| loss.clone(),
    );
    let (params, state) = adam(&params, &gradient, &state, &rate);
    (params, state, loss, accuracy)
}

/// SplitMix64: a generator so small that the Python example draws the same numbers.
struct Random {
    state: u64,
}

impl Random {
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self, sizes: [usize; 2], bound: f64) -> defn::Result<Tensor> {
        let draw = |_| (((self.bits() >> 40) as f64 / 8_388_608.0 - 1.0) * bound) as f32;
        let numbers: Vec<f32> = (0..sizes[0] * sizes[1]).map(draw).collect();
        Tensor::from_slice(&numbers, &sizes)
    }

    fn shuffled(&mut self, items: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut order: Vec<usize> = items.into_iter().collect();
        for i in (1..order.len()).rev() {
            let j = (self.bits() % (i as u64 + 1)) as usize;
            order.swap(i, j);
        }
        order
    }
}

/// Random weights, whose spread keeps the activations' spread, and an optimizer at its start.
fn initial(random: &mut Random) -> defn::Result<(Params<Tensor>, Adam<Tensor>)> {
    let params = Params {
        hidden: random.uniform([PIXELS, HIDDEN], (6.0 / PIXELS as f64).sqrt())?,
        hidden_bias: Tensor::full(&[HIDDEN], DType::F32, 0)?,
        output: random.uniform([HIDDEN, CLASSES], (6.0 / HIDDEN as f64).sqrt())?,
        output_bias: Tensor::full(&[CLASSES], DType::F32, 0)?,
    };
    let zeros = || try_each([&params], |[p]| p.zeros_like());
    let (mean, square) = (zeros()?, zeros()?);
    Ok((params, Adam { step: Tensor::scalar(0)?, mean, square }))
}

/// The images, u8[1797][PIXELS] from 0 to 16, and the digits that they show.
struct Digits {
    images: Tensor,
    labels: Tensor,
}

impl Digits {
    fn load(path: &Path) -> Result<Digits, Box<dyn Error>> {
        let mut arrays: BTreeMap<String, Tensor> = defn::load(path)?.into_iter().collect();
        let mut array = |name| arrays.remove(name).ok_or_else(|| format!("the archive has no {name}"));
        Ok(Digits { images: array("images")?.reshape(&[-1, PIXELS as i64])?, labels: array("labels")? })
    }

    /// The images and labels at some positions.
    fn batch(&self, positions: &[usize]) -> defn::Result<(Tensor, Tensor)> {
        let positions = positions.iter().map(|&position| position as i32).collect::<Vec<_>>();
        let positions = Tensor::try_from(positions)?;
        Ok((self.images.take(&positions, 0)?, self.labels.take(&positions, 0)?))
    }
}

struct Options {
    epochs: usize,
    seed: u64,
    data: PathBuf,
    log: Option<PathBuf>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/digits.npz");
    let mut options = Options { epochs: 20, seed: 0, data: data.into(), log: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--epochs" => options.epochs = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--data" => options.data = value.into(),
            "--log" => options.log = Some(value.into()),
            _ => return Err(format!("unknown option {option}: --epochs, --seed, --data, --log").into()),
        }
    }
    if options.epochs == 0 {
        return Err("--epochs must be at least 1".into());
    }
    Ok(options)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("digits: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let digits = Digits::load(&options.data)?;
    let mut random = Random { state: options.seed };
    let order = random.shuffled(0..digits.labels.shape().size());
    let (held_out, training) = order.split_at(HELD_OUT);
    println!("{} digits to train on, {} held out", training.len(), held_out.len());

    let step = jit(train_step);
    let (mut params, mut state) = initial(&mut random)?;
    let mut losses: Vec<f32> = Vec::new();
    let start = Instant::now();
    for epoch in 0..options.epochs {
        let rate = RATE * (1.0 - 0.9 * epoch as f64 / options.epochs as f64);
        let mut right = Vec::new();
        for batch in random.shuffled(training.iter().copied()).chunks_exact(BATCH) {
            let (images, labels) = digits.batch(batch)?;
            let (loss, accuracy);
            (params, state, loss, accuracy) =
                step.call((params, state, images, labels, Tensor::scalar(rate)?))?;
            losses.push(loss.item()?);
            right.push(accuracy.item::<f32>()?);
        }
        let accuracy = right.iter().sum::<f32>() / right.len() as f32;
        let loss = losses[losses.len() - right.len()..].iter().sum::<f32>() / right.len() as f32;
        println!("epoch {:2}: loss {loss:.4}, accuracy {accuracy:.3}", epoch + 1);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} steps in {seconds:.2} s: {:.3} ms a step",
        losses.len(),
        1e3 * seconds / losses.len() as f64
    );

    if let Some(path) = options.log {
        let losses: Vec<String> = losses.iter().map(f32::to_string).collect();
        writeln!(fs::File::create(path)?, "[{}]", losses.join(", "))?;
    }
    let (images, labels) = digits.batch(held_out)?;
    let guesses = jit(guess).call((params, images))?;
    let accuracy = guesses.equal(labels)?.mean(Axes::All, false)?.item::<f32>()?;
    println!("test accuracy: {:.1}%", 100.0 * accuracy);
    Ok(())
}
