//! Trains a small GPT on a nursery rhyme, byte by byte, and lets it recite.
//!
//! `cargo run --release -p defn --example gpt_step`
//!
//! One step of training is one compiled program: the loss, its gradient, and AdamW. The state is donated, so that a
//! step writes the next state into the memory of the last one. Prints the loss on the way, the text that the model
//! continues, and the time of a step.

use std::time::Instant;

use defn::prelude::*;
use defn::{Result, leaves, random, try_each};

const BYTES: usize = 128;
const LAYERS: usize = 2;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const CONTEXT: usize = 32;
const BATCH: usize = 8;
const STEPS: usize = 200;
const TEXT: &str = "\
This is the house that Jack built. This is the malt that lay in the house that Jack built. This is the rat that ate \
the malt that lay in the house that Jack built. This is the cat that killed the rat that ate the malt that lay in the \
house that Jack built. This is the dog that worried the cat that killed the rat that ate the malt that lay in the \
house that Jack built.";

#[derive(Clone, Tree)]
struct Norm<T> {
    scale: T,
    shift: T,
}

#[derive(Clone, Tree)]
struct Block<T> {
    before_attention: Norm<T>,
    queries_keys_values: [T; 3],
    merge: T,
    before_hidden: Norm<T>,
    hidden: T,
    output: T,
}

/// The embeddings of bytes, which are the weights of the output too, and of positions; blocks; the last norm.
#[derive(Clone, Tree)]
struct Gpt<T> {
    bytes: T,
    positions: T,
    blocks: Vec<Block<T>>,
    norm: Norm<T>,
}

/// The parameters and AdamW's moving averages of gradients and of their squares.
#[derive(Tree)]
struct State<T> {
    params: Gpt<T>,
    mean: Gpt<T>,
    square: Gpt<T>,
}

/// Ba, Kiros and Hinton, "Layer normalization", 2016.
fn layer_norm(x: &Expr, norm: &Norm<Expr>) -> Expr {
    let normal = (x - x.mean(-1, true)) * (x.variance(-1, true, 0) + 1e-5).rsqrt();
    normal * &norm.scale + &norm.shift
}

/// Attention of each position to itself and to those before it, f32[batch][length][WIDTH].
fn attention(x: &Expr, block: &Block<Expr>, length: usize) -> Expr {
    let width = WIDTH / HEADS;
    let [q, k, v] = block.queries_keys_values.each_ref().map(|weights| {
        let parts = x.matmul(weights).reshape(&[-1, length as i64, HEADS as i64, width as i64]);
        parts.transpose([0, 2, 1, 3])
    });
    let scores = q.matmul(k.transpose([0, 1, 3, 2])) / (width as f64).sqrt();
    let scores = Expr::tri(length, length, 0).select(scores, -1e9);
    let weights = (&scores - scores.logsumexp(-1, true)).exp();
    let mixed = weights.matmul(v).transpose([0, 2, 1, 3]).reshape(&[-1, length as i64, WIDTH as i64]);
    mixed.matmul(&block.merge)
}

/// The logits of the next byte at each position of texts, s32[batch][length].
fn logits(params: &Gpt<Expr>, texts: &Expr) -> Expr {
    let length = texts.shape().map_or(0, |shape| shape.sizes()[1]);
    let mut x = params.bytes.take(texts, 0) + params.positions.at(..length);
    for block in &params.blocks {
        x = &x + attention(&layer_norm(&x, &block.before_attention), block, length);
        let hidden = layer_norm(&x, &block.before_hidden).matmul(&block.hidden);
        let activated = &hidden * (1.702 * &hidden).sigmoid();
        x = &x + activated.matmul(&block.output);
    }
    layer_norm(&x, &params.norm).matmul(params.bytes.transpose([1, 0]))
}

/// The mean cross-entropy of the bytes that follow each position of texts, s32[batch][CONTEXT + 1].
fn loss(params: &Gpt<Expr>, texts: &Expr) -> Expr {
    let scores = logits(params, &texts.at((.., ..CONTEXT)));
    let targets = texts.at((.., 1..)).new_axis(-1);
    (scores.logsumexp(-1, true) - scores.take_along_axis(targets, -1)).mean(Axes::All, false)
}

/// One step of AdamW (Loshchilov and Hutter, 2019) on texts: the next state, and the loss.
fn train_step((state, texts, step, rate): (State<Expr>, Expr, Expr, Expr)) -> (State<Expr>, Expr) {
    let (value, gradient) = value_and_grad(&state.params, |params| loss(&params, &texts));
    let mean = each([&state.mean, &gradient], |[mean, g]| 0.9 * mean + 0.1 * g);
    let square = each([&state.square, &gradient], |[square, g]| 0.99 * square + 0.01 * g * g);
    let correction = |base: f64| 1 - Expr::constant(DType::F32, base).pow(&step);
    let (of_mean, of_square) = (correction(0.9), correction(0.99));
    let params = each([&state.params, &mean, &square], |[p, m, s]| {
        let change = m / &of_mean / ((s / &of_square).sqrt() + 1e-8);
        // Biases and scales do not decay.
        let decay = if p.shape().is_some_and(|shape| shape.rank() > 1) { 0.01 } else { 0.0 };
        p - &rate * (change + decay * p)
    });
    (State { params, mean, square }, value)
}

/// Normal weights; those that are added to the residual stream are smaller.
fn initial() -> Result<Gpt<Tensor>> {
    let mut key = random::key(0)?;
    let mut normal = |sizes: [usize; 2], deviation: f64| {
        let (weights, next) = random::normal(&key, 0.0, deviation, sizes)?;
        key = next;
        Result::Ok(weights)
    };
    let filled = |number: f64| Tensor::full(&[WIDTH], DType::F32, number);
    let norm = || Result::Ok(Norm { scale: filled(1.0)?, shift: filled(0.0)? });
    let residual = 0.08 / (2.0 * LAYERS as f64).sqrt();
    let (bytes, positions) = (normal([BYTES, WIDTH], 0.02)?, normal([CONTEXT, WIDTH], 0.02)?);
    let square = [WIDTH, WIDTH];
    let mut block = |_| {
        Ok(Block {
            before_attention: norm()?,
            queries_keys_values: [normal(square, 0.08)?, normal(square, 0.08)?, normal(square, 0.08)?],
            merge: normal(square, residual)?,
            before_hidden: norm()?,
            hidden: normal([WIDTH, 4 * WIDTH], 0.08)?,
            output: normal([4 * WIDTH, WIDTH], residual)?,
        })
    };
    let blocks = (0..LAYERS).map(&mut block).collect::<Result<_>>()?;
    Ok(Gpt { bytes, positions, blocks, norm: norm()? })
}

fn main() -> Result<()> {
    let params = initial()?;
    let zeros = || try_each([&params], |[p]| p.zeros_like());
    let (mean, square) = (zeros()?, zeros()?);
    let mut state = State { params, mean, square };
    // The state is the first argument, so that its leaves are the first ones.
    let step = jit(train_step).donating(&(0..leaves(&state).len()).collect::<Vec<_>>());

    let text: Vec<i32> = TEXT.bytes().map(i32::from).collect();
    let last = (text.len() - CONTEXT - 1) as i32;
    let starts = random::randint_split(&random::key(1)?, 0, last + 1, [STEPS, BATCH])?;
    let (mut losses, mut now) = (Vec::new(), Instant::now());
    for (i, starts) in (1..).zip(&starts) {
        let part = |&start: &i32| &text[start as usize..][..=CONTEXT];
        let texts = Tensor::try_from(starts?.to_vec()?.iter().map(part).collect::<Vec<_>>())?;
        let rate = Tensor::scalar(3e-3 * (f64::from(i) / 10.0).min(1.0))?;
        let value;
        (state, value) = step.call((state, texts, Tensor::scalar(i)?, rate))?;
        losses.push(value.item::<f32>()?);
        if i == 1 {
            now = Instant::now(); // The first call compiles.
        }
        if i % 50 == 0 {
            println!("step {i:3}: loss {:.2}", losses[losses.len() - 1]);
        }
    }
    let milliseconds = 1e3 * now.elapsed().as_secs_f64() / (STEPS - 1) as f64;
    // At first every byte is about as likely as any other.
    assert!((losses[0] - (BYTES as f32).ln()).abs() < 0.3, "{}", losses[0]);
    assert!(losses[STEPS - 1] < 0.25, "{}", losses[STEPS - 1]);

    let next =
        jit(|(params, text): (Gpt<Expr>, Expr)| logits(&params, &text).at((0, -1)).argmax(None, false));
    let mut recited = text[..CONTEXT].to_vec();
    for _ in 0..60 {
        let window = Tensor::from_nested([&recited[recited.len() - CONTEXT..]])?;
        recited.push(next.call((state.params.clone(), window))?.item()?);
    }
    let recited: String = recited.iter().map(|&byte| char::from(byte as u8)).collect();
    println!("{recited}");
    // The rhyme goes on in several ways after the same words.
    assert!((0..recited.len() - 12).all(|i| TEXT.contains(&recited[i..i + 12])));
    println!("{milliseconds:.2} ms a step");
    Ok(())
}
