//! A compiler of one's own, in fifty lines: functions of f64 scalars become a list of closures.
//!
//! `cargo run --release -p defn --example own_compiler`
//!
//! A compiler gets a typed graph, whose nodes come after what they use, and returns a program that runs. What it does not
//! support, it refuses by name. Prints what it compiled and what it refused.

use std::fmt;
use std::sync::Arc;

use defn::core::backend::{Backend, Checks, Compiler, Executable, Hooks};
use defn::core::form;
use defn::core::graph::Node;
use defn::core::op::Op;
use defn::graph::Region;
use defn::prelude::*;
use defn::{Error, Result};

#[derive(Debug)]
struct Closures;

/// Computes one node from the values before it and the arguments.
type Step = Box<dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync>;

struct Program {
    region: Arc<Region>,
    steps: Vec<Step>,
}

/// The closure of a node.
fn step(node: &Node) -> Result<Step> {
    let at = |position: usize| node.inputs[position].node as usize;
    let unary = |f: fn(f64) -> f64| -> Result<Step> {
        let x = at(0);
        Ok(Box::new(move |values, _| f(values[x])))
    };
    let binary = |f: fn(f64, f64) -> f64| -> Result<Step> {
        let (a, b) = (at(0), at(1));
        Ok(Box::new(move |values, _| f(values[a], values[b])))
    };
    if let Op::Parameter { index, .. } = node.op {
        return Ok(Box::new(move |_, arguments| arguments[index]));
    }
    if let Op::Constant(scalar) = node.op {
        return Ok(Box::new(move |_, _| scalar.value().to_f64()));
    }
    match form::name(&node.op) {
        "add" => binary(|a, b| a + b),
        "subtract" => binary(|a, b| a - b),
        "multiply" => binary(|a, b| a * b),
        "negate" => unary(|x| -x),
        "sin" => unary(f64::sin),
        "cos" => unary(f64::cos),
        name => Err(Error::other(format!("closures: {name} is not supported"))),
    }
}

impl Compiler for Closures {
    fn name(&self) -> &str {
        "closures"
    }

    fn compile_donating(&self, region: Arc<Region>, _: Checks, _: &[usize]) -> Result<Arc<dyn Executable>> {
        let mut types = region.inputs().iter().chain(region.result_types()).map(ToString::to_string);
        let other = types.find(|ty| ty != "f64");
        drop(types);
        if let Some(other) = other {
            return Err(Error::other(format!("closures: {other} is not f64")));
        }
        let steps = region.graph().nodes().iter().map(step).collect::<Result<_>>()?;
        Ok(Arc::new(Program { region, steps }))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} closures)", self.steps.len())
    }
}

impl Executable for Program {
    fn program(&self) -> &Arc<Region> {
        &self.region
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<defn::core::Tensor>,
        _: &dyn Hooks,
    ) -> Result<Vec<defn::core::Tensor>> {
        let read = |x: defn::core::Tensor| Tensor::from(x).item::<f64>();
        let arguments = arguments.into_iter().map(read).collect::<Result<Vec<f64>>>()?;
        let mut values = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            values.push(step(&values, &arguments));
        }
        let write = |value: &defn::core::graph::Value| {
            let number = Tensor::from_slice(&[values[value.node as usize]], &[])?;
            Ok(number.backend_transfer(backend)?.core().clone())
        };
        self.region.results().iter().map(write).collect()
    }
}

fn main() -> Result<()> {
    let wave = |x: Expr| grad(&x, |x| (&x * &x).sin() - 3.0 * x);
    let compiled = jit(wave).with_compiler(Arc::new(Closures));
    let x = Tensor::from_slice(&[0.5f64], &[])?;
    let slope: f64 = compiled.call(x.clone())?.item()?;
    let expected = 2.0 * 0.5 * 0.25f64.cos() - 3.0;
    assert!((slope - expected).abs() < 1e-12);
    println!("slope {slope:.6}");

    let refused = jit(|x: Expr| x.tanh()).with_compiler(Arc::new(Closures)).call(x).unwrap_err();
    println!("{}", refused.to_string().lines().next().unwrap_or_default());
    Ok(())
}
