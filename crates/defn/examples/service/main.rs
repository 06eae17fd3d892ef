//! A service that reads handwritten digits: a compiled program behind HTTP, and a load generator for it.
//!
//! - `cargo run --release -p defn --example service -- [PORT]` serves `POST /predict` with `{"image": [64 numbers]}`,
//!   pixels from 0 to 16 row by row, and answers `{"digit": 7, "probability": 0.99}`. A bad request gets status 400 and
//!   the reason.
//! - `service --load CONNECTIONS SECONDS` sends requests to a server of its own over that number of connections, each
//!   of which is kept, and prints their number, their rate, percentiles of the latency, and the errors.
//! - `--parameters FILE` is where the parameters are, by default in the temporary folder.
//!
//! The parameters are loaded from a safetensors file. Where it is missing, a model is trained for a second and saved.

mod load;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use defn::prelude::*;
use defn::{Compiled, ErrorClass};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

const PIXELS: usize = 64;
const CLASSES: usize = 10;

type Failure = Box<dyn Error + Send + Sync>;

/// Softmax regression.
#[derive(Clone, Tree)]
struct Params<T> {
    weights: T,
    bias: T,
}

fn scores(params: &Params<Expr>, images: &Expr) -> Expr {
    (images / 16).matmul(&params.weights) + &params.bias
}

/// The most probable digit of one image, f32[PIXELS], and its probability.
fn predict((params, image): (Params<Expr>, Expr)) -> (Expr, Expr) {
    let scores = scores(&params, &image);
    let probabilities = (&scores - scores.logsumexp(-1, true)).exp();
    (probabilities.argmax(Some((-1).into()), false), probabilities.reduce_max(-1, false))
}

/// Gradient descent on the mean cross-entropy.
fn train(images: &Tensor, labels: &Tensor) -> defn::Result<Params<Tensor>> {
    let step = jit(|(params, images, labels): (Params<Expr>, Expr, Expr)| {
        let one_hot = labels.new_axis(1).equal(Expr::iota(&[CLASSES], DType::S32, None));
        let gradient = grad(&params, |params| {
            let scores = scores(&params, &images);
            (scores.logsumexp(1, false) - (scores * &one_hot).sum(1, false)).mean(Axes::All, false)
        });
        each([&params, &gradient], |[p, g]| p - 1.0 * g)
    });
    let mut params = Params {
        weights: Tensor::full(&[PIXELS, CLASSES], DType::F32, 0)?,
        bias: Tensor::full(&[CLASSES], DType::F32, 0)?,
    };
    for _ in 0..200 {
        params = step.call((params, images.clone(), labels.clone()))?;
    }
    Ok(params)
}

/// One tensor of a file.
fn named(tensors: &mut BTreeMap<String, Tensor>, name: &str, path: &Path) -> Result<Tensor, Failure> {
    tensors.remove(name).ok_or_else(|| format!("{}: no tensor {name}", path.display()).into())
}

fn digits() -> Result<(Tensor, Tensor), Failure> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/digits.npz"));
    let mut arrays = defn::load(path)?.into_iter().collect();
    let images = named(&mut arrays, "images", path)?;
    Ok((images.reshape(&[-1, PIXELS as i64])?, named(&mut arrays, "labels", path)?))
}

/// The compiled program and its parameters, which all requests share.
struct Model {
    predict: Compiled<(Params<Expr>, Expr), (Expr, Expr)>,
    params: Params<Tensor>,
}

impl Model {
    /// Loads the parameters; trains and saves them first where there is no file.
    fn open(path: &Path) -> Result<Model, Failure> {
        if !path.exists() {
            let (images, labels) = digits()?;
            defn::save_tree(path, &train(&images, &labels)?)?;
        }
        let params = defn::load_tree(
            path,
            &Params {
                weights: Tensor::template(&[PIXELS, CLASSES], DType::F32)?,
                bias: Tensor::template(&[CLASSES], DType::F32)?,
            },
        )?;
        let image = Tensor::template(&[PIXELS], DType::F32)?;
        Ok(Model { predict: jit(predict).compile((params.clone(), image))?, params })
    }

    fn predict(&self, image: Vec<f32>) -> defn::Result<Prediction> {
        let (digit, probability) = self.predict.call((self.params.clone(), Tensor::try_from(image)?))?;
        Ok(Prediction { digit: digit.item()?, probability: probability.item()? })
    }
}

#[derive(Deserialize)]
struct Request {
    image: Vec<f32>,
}

#[derive(Serialize)]
struct Prediction {
    digit: i32,
    probability: f32,
}

/// Answers one request. A program keeps its thread until it is done, a large one for long, so it runs on a thread for
/// blocking work: the threads of the runtime are left to the connections.
async fn answer(
    State(model): State<Arc<Model>>,
    request: Result<Json<Request>, JsonRejection>,
) -> Result<Json<Prediction>, (StatusCode, String)> {
    let Json(request) = request.map_err(|error| (StatusCode::BAD_REQUEST, error.body_text()))?;
    let internal = |error: &dyn Error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    let outcome = tokio::task::spawn_blocking(move || model.predict(request.image)).await;
    match outcome.map_err(|error| internal(&error))? {
        Ok(prediction) => Ok(Json(prediction)),
        Err(error) if is_internal(error.class()) => Err(internal(&error)),
        // The message, without the lines of this program that the text of an error names.
        Err(error) => Err((StatusCode::BAD_REQUEST, error.message())),
    }
}

/// Whether an error is the server's, and not of the image.
fn is_internal(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Backend | ErrorClass::Compile | ErrorClass::OutOfMemory)
}

fn main() -> Result<(), Failure> {
    let mut parameters = std::env::temp_dir().join("defn-service.safetensors");
    let (mut port, mut visitors) = (8000, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
        match option.as_str() {
            "--parameters" => parameters = PathBuf::from(value()?),
            "--load" => {
                visitors = Some((value()?.parse::<usize>()?, Duration::from_secs_f64(value()?.parse()?)))
            }
            _ => port = option.parse()?,
        }
    }
    let kind = if parameters.exists() { "loaded" } else { "trained and saved" };
    let model = Model::open(&parameters)?;
    println!("parameters {kind}");

    let router = Router::new().route("/predict", post(answer)).with_state(Arc::new(model));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    let place = (Ipv4Addr::LOCALHOST, if visitors.is_some() { 0 } else { port });
    let listener = runtime.block_on(TcpListener::bind(place))?;
    let server = listener.local_addr()?;
    let serve = async move { axum::serve(listener, router).await };
    match visitors {
        None => {
            println!("serving on http://{server}/predict");
            runtime.block_on(serve)?;
        }
        Some((connections, time)) => {
            runtime.spawn(serve);
            load::run(server, connections, time)?;
        }
    }
    Ok(())
}
