//! Passes: functions from regions to regions with the same inputs and the same result types.
//!
//! Every pass visits the nodes in order, so that long chains of nodes cannot overflow the stack; only the
//! nesting of regions recurses. The result of a pass is verified in tests and where [`verify::set_always`]
//! requests it.

mod by_elements;
mod cse;
mod dce;
mod fills;
mod fold;
mod hoist;
mod simplifier;
pub mod simplify;
mod state;
mod trips;
mod turned;
mod uncast;
mod untransposed;
mod whole;

pub use by_elements::by_elements;
pub use cse::cse;
pub(crate) use dce::live_nodes;
pub use dce::{dce, dce_owned};
pub use fold::fold;
pub use hoist::hoist;
pub use simplifier::{expand, simplify};

use crate::error::Result;
use crate::graph::{Fate, Graph, Node, Value, Values};
use crate::memory;
use crate::region::Region;
use crate::shape::Axis;
use crate::verify;

/// Rebuilds a region node by node. `each` gets a node and the new values of its inputs, and returns the new
/// values of its outputs. Nodes that it adds get the location of the old node.
fn rebuild(
    region: &Region,
    mut each: impl FnMut(&mut Graph, usize, &Node, Values) -> Result<Values>,
) -> Result<Region> {
    let old = region.graph();
    memory::ahead("compile", old.len())?;
    let mut graph = Graph::new();
    graph.reserve("compile", old.len())?;
    let mut new_values: Vec<Values> = memory::with_capacity("compile", old.len())?;
    for (position, node) in old.nodes().iter().enumerate() {
        memory::check("compile")?;
        let inputs = node.inputs.iter().filter_map(|&input| find(&new_values, input)).collect();
        graph.set_location(node.location.clone());
        new_values.push(each(&mut graph, position, node, inputs)?);
    }
    let results = region
        .results()
        .iter()
        .map(|&result| find(&new_values, result).expect("a pass keeps what the results are computed from"));
    let results = results.collect();
    Ok(Region::new(graph, region.inputs().to_vec(), region.parameter_count(), results))
}

/// The sizes of a product of matrices, by the sizes of its operands, their contracted axes, and how many axes of the batch
/// they begin with: of the free axes of either operand together, and of the contracted ones.
fn product_sizes(a: (&[usize], &[Axis]), b: (&[usize], &[Axis]), batch: usize) -> [usize; 3] {
    let free = |(sizes, contract): (&[usize], &[Axis])| -> usize {
        let contracts = |axis: usize| contract.iter().any(|other| other.index() == axis);
        (batch..sizes.len()).filter(|&axis| !contracts(axis)).map(|axis| sizes[axis]).product()
    };
    [free(a), free(b), a.1.iter().map(|axis| a.0[axis.index()]).product()]
}

/// A copy of a region, to be changed in place.
fn copy(region: &Region) -> Result<Region> {
    memory::ahead("compile", region.graph().len())?;
    Ok(region.clone())
}

/// Leaves nodes out of a region in place: a large graph need not be there twice. `fate` is as for [`Graph::compact`].
///
/// # Panics
/// When verification is on and the region has become illegal, or its results have other types.
fn compacted(pass: &str, region: Region, fate: impl FnMut(&[Node], usize, &Node) -> Fate) -> Result<Region> {
    memory::check("compile")?;
    let types = verify::is_on().then(|| region.result_types().cloned().collect::<Vec<_>>());
    let (mut graph, inputs, parameters, mut results) = region.into_parts();
    let positions = graph.compact(fate)?;
    for result in &mut results {
        result.node =
            positions[result.node as usize].expect("a pass keeps what the results are computed from");
    }
    let new = Region::new(graph, inputs, parameters, results);
    check(pass, &new);
    if let Some(types) = types {
        assert!(new.result_types().eq(&types), "{pass} changed the types of results in\n{}", new.to_text());
    }
    Ok(new)
}

/// The new value of an old one; None if a pass has dropped its node.
fn find(new_values: &[Values], value: Value) -> Option<Value> {
    new_values[value.node as usize].get(value.output as usize).copied()
}

/// Ends every pass.
///
/// # Panics
/// When verification is on and the pass has built an illegal region or changed the region's signature.
fn finish(pass: &str, old: &Region, new: Region) -> Region {
    check(pass, &new);
    if verify::is_on() {
        let same = old.inputs() == new.inputs()
            && old.parameter_count() == new.parameter_count()
            && old.result_types().eq(new.result_types());
        assert!(same, "{pass} changed the signature of\n{}to\n{}", old.to_text(), new.to_text());
    }
    new
}

/// Checks a region where verification is on. Where it is on for the whole process, as in tests, the region's
/// text must also parse back.
///
/// # Panics
/// When the region is not legal.
pub(crate) fn check(origin: &str, region: &Region) {
    if !verify::is_on() {
        return;
    }
    let refusal_count = memory::refusal_count();
    if let Err(problem) = verify::verify(region)
        && memory::refusal_count() == refusal_count
    {
        panic!("{origin} made an illegal graph: {problem}\n{}", region.to_text());
    }
    if verify::always() {
        let text = region.to_text();
        let back = Region::from_text(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        assert!(back == *region, "another region comes back from\n{text}");
    }
}
