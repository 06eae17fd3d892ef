//! Functions whose derivatives compute again what they need of the values inside.

use std::sync::Arc;

use super::draft::{Draft, ResultType};
use super::{Arg, BuildControl, Builder, Ops};
use crate::error::{ErrorKind, Result};
use crate::graph::{Node, Value, Values};
use crate::op::{CustomRules, MemorySpace, Op, OpClass, Primitive};
use crate::region::Region;
use crate::shape::Name;
use crate::tensor::Tensor;

/// The values inside of a function that its derivatives keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Those with one of these marks, which may be none, each in a memory.
    Marked(Vec<(Name, MemorySpace)>),
    /// The results of products and convolutions, which take long to compute and are small beside the time.
    Products,
}

/// The results of a function, which is traced into a region. Their derivatives compute the values inside of it again, except
/// for those that are `kept`, so that no others take memory between the function and its derivatives.
///
/// Values inside of branches and loops of the function are not kept.
///
/// # Errors
/// A name that no value of the function is marked with, and the errors of the function.
pub fn checkpoint(
    ops: &mut Ops,
    kept: &Kept,
    function: impl FnOnce(&mut Ops) -> Result<Vec<Arg<Tensor>>>,
) -> Result<Vec<Tensor>> {
    let draft = Draft::trace(ops, "checkpoint", &[], |ops, _| function(ops))?;
    let types: Vec<ResultType> = (0..draft.results.len())
        .map(|leaf| ResultType { ty: draft.leaf_type(leaf), lanes: draft.lanes(leaf).into() })
        .collect();
    let closed = draft.close(ops, &types)?;
    kept.check(&closed.region)?;
    let inside = kept.values(&closed.region);
    let offloaded = inside.iter().filter(|(_, memory)| *memory == MemorySpace::Host).count();
    let (graph, inputs, _, results) = closed.region.into_parts();
    let results: Values = results.into_iter().chain(inside.iter().map(|&(value, _)| value)).collect();
    let parameters = inputs.len();
    let region = Region::new(graph, inputs, parameters, results);
    let mut values = ops.inline(&region, &closed.captures)?;
    if !closed.captures.is_empty() {
        for (value, (_, memory)) in values[types.len()..].iter_mut().zip(&inside) {
            if *memory == MemorySpace::Host {
                *value = ops.emit_one(Op::Transfer { to: *memory }, std::slice::from_ref(value))?;
            }
        }
        let rules = CustomRules::Recompute { region: Arc::new(region), kept: inside.len(), offloaded };
        values = ops.emit_custom_grad(rules, &values, &closed.captures, &[])?.into_vec();
    }
    let results = values.into_iter().zip(&types);
    Ok(results.map(|(value, leaf)| value.with_vectorized(&leaf.lanes)).collect())
}

impl Kept {
    /// The values of a region, each with its memory, those on the host last.
    fn values(&self, region: &Region) -> Vec<(Value, MemorySpace)> {
        let nodes = region.graph().nodes();
        let mut found: Vec<(Value, MemorySpace)> = Vec::new();
        for (position, node) in nodes.iter().enumerate() {
            let next = match self {
                // The value that is marked: its own derivative may need it, too.
                Kept::Marked(names) => {
                    let given = mark(node).and_then(|mark| names.iter().find(|(name, _)| name == mark));
                    given.map(|(_, memory)| (node.inputs[0], *memory))
                }
                Kept::Products => {
                    let result = Value { node: position as u32, output: 0 };
                    if let OpClass::Primitive(Primitive::Contraction) = node.op.class() {
                        Some((result, MemorySpace::Device))
                    } else {
                        None
                    }
                }
            };
            found.extend(next.filter(|(value, _)| found.iter().all(|(other, _)| other != value)));
        }
        found.sort_by_key(|&(_, memory)| memory);
        found
    }

    /// Refuses names that no value of a region is marked with.
    fn check(&self, region: &Region) -> Result<()> {
        let Kept::Marked(names) = self else { return Ok(()) };
        let mut marks: Vec<&Name> = region.graph().nodes().iter().filter_map(mark).collect();
        let Some((name, _)) = names.iter().find(|(name, _)| !marks.contains(&name)) else { return Ok(()) };
        marks.sort();
        marks.dedup();
        let quoted = |name: &Name| format!("\"{name}\"");
        let known = marks.into_iter().map(quoted).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        let required = format!("the mark of a value in the function, which has {known}; set marks with mark");
        let (op, option, given) = ("checkpoint", "a name in policy", quoted(name));
        Err(ErrorKind::OptionValue { op, option, given, required }.into())
    }
}

/// The name with which a node marks its value.
fn mark(node: &Node) -> Option<&Name> {
    if let Op::Mark { name } = &node.op { Some(name) } else { None }
}
