//! Forward and reverse mode of random programs with loops and branches: the same derivatives, first and second, also where
//! values are computed again.

use std::sync::Arc;

use defn_core::builder::BuildControl;
use defn_core::grad::value_and_grad;
use defn_core::graph::{Graph, Value};
use defn_core::jvp::jvp_region;
use defn_core::op::CustomRules;
use defn_core::region::Region;
use defn_core::{DType, Kind};

use super::generate::Choices;
use super::tests::range;
use super::{RandomProgram, control};

/// Numbers between -1 and 1 that look random.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut choices = Choices::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..count).map(|_| (choices.below(2001) as f64 - 1000.0) / 1000.0).collect()
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// The results of a region of f64 values; None if it cannot be run.
fn results(region: Region, arguments: Vec<Vec<u8>>, like: &RandomProgram) -> Option<Vec<Vec<f64>>> {
    let program = RandomProgram { region: Arc::new(region), arguments, ..*like };
    let results = program.evaluated().ok()?;
    let floats = |bytes: &Vec<u8>| {
        bytes
            .chunks_exact(8)
            .map(|eight| f64::from_ne_bytes(eight.try_into().expect("eight bytes")))
            .collect()
    };
    Some(results.iter().map(floats).collect())
}

/// The product of two vectors, and the sum of its terms' magnitudes.
fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> (f64, f64) {
    let terms = a.concat().into_iter().zip(b.concat()).map(|(a, b)| a * b);
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// Whether two numbers agree within rounding, for terms of this size. True where something is not finite.
fn agree(left: f64, right: f64, size: f64) -> bool {
    !left.is_finite() || !right.is_finite() || (left - right).abs() <= 1e-7 * (size + 1e-3)
}

/// The region as a checkpointed function, whose gradient keeps some values inside of it.
fn checkpointed(region: &Region, seed: u64) -> Region {
    let mut choices = Choices::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let inside = region.graph();
    let values: Vec<Value> = (0..inside.len()).flat_map(|node| inside.outputs(node)).collect();
    let kept = choices.below(4);
    let results = region.results().iter().copied();
    let results = results.chain((0..kept).map(|_| values[choices.below(values.len())])).collect();
    let inner = Region::new(inside.clone(), region.inputs().to_vec(), region.inputs().len(), results);
    let mut graph = Graph::new();
    let inputs: Vec<Value> =
        inner.inputs().iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let values = graph.inline(&inner, &inputs).expect("the region fits");
    let rules = CustomRules::Recompute { region: Arc::new(inner), kept, offloaded: choices.below(kept + 1) };
    let outputs = graph.emit_custom_grad(rules, &values, &inputs, &[]).expect("the values are the region's");
    let results = outputs[..region.results().len()].into();
    Region::new(graph, region.inputs().to_vec(), region.parameter_count(), results)
}

/// Compares the derivatives of a program; says how they differ. False if it has none, or none that are finite.
fn check(program: &RandomProgram, seed: u64) -> Result<bool, String> {
    let Some((loss, wrt)) = program.loss() else { return Ok(false) };
    let Ok(gradient) = value_and_grad(&loss, 0, &wrt) else { return Ok(false) };
    let text = loss.to_text();
    if text.contains("indexed_put") {
        // Of several updates of one position each has a gradient, although one takes effect.
        return Ok(false);
    }
    let failed = |what: &str| format!("{what} in\n{text}");
    let tangents = |seed: u64| -> Vec<Vec<f64>> {
        let sizes = wrt.iter().map(|&input| loss.inputs()[input].size());
        sizes.zip(seed..).map(|(size, seed)| numbers(size, seed)).collect()
    };
    let (v, w) = (tangents(seed * 100), tangents(seed * 100 + 50));
    let arguments = |along: &[Vec<f64>]| -> Vec<Vec<u8>> {
        program.arguments.iter().cloned().chain(along.iter().map(|values| bytes(values))).collect()
    };
    let forward = jvp_region(&loss, &wrt, &[0]).map_err(|error| failed(&error.to_string()))?;
    let Some(reverse) = results(gradient.clone(), program.arguments.clone(), program) else {
        return Ok(false);
    };
    let pushed =
        results(forward, arguments(&v), program).ok_or_else(|| failed("forward mode does not run"))?;
    let (want, size) = product(&reverse[1..], &v);
    let got = pushed[1][0];
    if !agree(got, want, size) {
        return Err(failed(&format!("the tangent is {got}, the gradient gives {want}")));
    }
    // The Hessian is symmetric: forward over reverse along each direction, times the other one.
    let of: Vec<usize> = (1..=wrt.len()).collect();
    let second = jvp_region(&gradient, &wrt, &of).map_err(|error| failed(&error.to_string()))?;
    let again =
        value_and_grad(&checkpointed(&loss, seed), 0, &wrt).map_err(|error| failed(&error.to_string()))?;
    let recomputed = results(again.clone(), program.arguments.clone(), program)
        .ok_or_else(|| failed("the checkpointed program does not run"))?;
    for (got, want) in recomputed.concat().into_iter().zip(reverse.concat()) {
        if !agree(got, want, want.abs()) {
            return Err(failed(&format!("the gradient is {want}, of the checkpointed program {got}")));
        }
    }
    let count = reverse.len();
    let along = |tangents: &[Vec<f64>]| results(second.clone(), arguments(tangents), program);
    let (Some(hv), Some(hw)) = (along(&v), along(&w)) else {
        return Err(failed("the second derivative fails"));
    };
    let ((left, size), (right, other)) = (product(&hv[count..], &w), product(&hw[count..], &v));
    let third = jvp_region(&again, &wrt, &of).map_err(|error| failed(&error.to_string()))?;
    let recomputed = results(third, arguments(&v), program)
        .ok_or_else(|| failed("the second derivative of the checkpointed program fails"))?;
    let (checkpointed, _) = product(&recomputed[count..], &w);
    if !agree(left, checkpointed, size) {
        return Err(failed(&format!("the Hessian gives {left}, of the checkpointed program {checkpointed}")));
    }
    if !agree(left, right, size.max(other)) {
        return Err(failed(&format!("the Hessian gives {left} and {right}")));
    }
    Ok(want.is_finite() && left.is_finite())
}

#[test]
fn forward_and_reverse_mode_agree() {
    let (mut made, mut compared) = (0, 0);
    let mut found = Vec::new();
    for seed in range("DEFN_RANDOM_TANGENTS", 200) {
        let choices = Choices::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let dtypes = [DType::F64, DType::F64, DType::S32];
        let Some(mut program) = control::program_of(choices, &dtypes) else { continue };
        made += 1;
        for (ty, argument) in program.region.inputs().iter().zip(&mut program.arguments) {
            if ty.dtype.kind() == Kind::Float {
                *argument = bytes(&numbers(ty.size(), seed + 7));
            }
        }
        match check(&program, seed) {
            Ok(is_finite) => compared += u32::from(is_finite),
            Err(difference) if std::env::var_os("DEFN_RANDOM_GRAPHS_ALL").is_some() => {
                println!("seed {seed}: {}", difference.lines().next().unwrap_or_default());
                found.push(seed);
            }
            Err(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    println!("{made} programs made, {compared} compared");
    assert!(found.is_empty(), "{found:?}");
    assert!(compared * 3 > made);
}
