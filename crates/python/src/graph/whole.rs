//! Graphs as users pass them: the result of `debug_expr`, or one stage.

use std::sync::Arc;

use defn_core::graph::Value;
use defn_core::region::Region;
use defn_core::tensor::Data;
use defn_core::trace::Trace;
use defn_core::vectorize::NamedAxes;
use defn_core::{Tensor, pass};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::stage::PyStage;
use crate::containers::{self, Flat, Mode, Tree};
use crate::error::Fallible;
use crate::hooks::{Table, WeakTable};
use crate::jit::result_tensor;
use crate::misuse::Misuse;

/// A graph with its Python data.
pub(super) struct Whole {
    pub region: Arc<Region>,
    /// The trace that owns its values; the region's nodes have the same positions there.
    pub trace: Arc<Trace>,
    /// A tensor for each capture.
    pub captures: Vec<Tensor>,
    pub table: Table,
    /// The container of the results, and the vectorized axes of each.
    pub tree: Tree,
    pub lanes: Vec<NamedAxes>,
    /// The vectorized axes of each parameter, if they are known.
    pub arguments: Arc<[NamedAxes]>,
    /// The positions of the arguments that the further parameters repeat in other dtypes.
    pub further: Arc<[usize]>,
}

impl Whole {
    /// The graph of a container of traced tensors. A concrete tensor among them counts as captured, and so
    /// does a number.
    ///
    /// # Errors
    /// A container without traced tensors, tensors of several graphs or of a closed one, and templates.
    pub fn of(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Whole> {
        let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
        let mut found: Option<Arc<Trace>> = None;
        let mut tensors = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let tensor = result_tensor(op, leaf)?;
            match tensor.data() {
                Data::Traced { trace, value } => {
                    if trace.with_graph(|graph| graph.len() <= value.node as usize) {
                        return Err(Misuse::GraphGone { node: value.node }.into());
                    }
                    if found.as_ref().is_some_and(|known| !Arc::ptr_eq(known, trace)) {
                        return Err(Misuse::OtherGraph { op, got: tensor.ty().clone() }.into());
                    }
                    found = Some(trace.clone());
                }
                Data::Buffer(_) => {}
                Data::Template => {
                    return Err(Misuse::NoNode { got: tensor.ty().clone(), what: "is a template" }.into());
                }
            }
            tensors.push(tensor);
        }
        let Some(trace) = found else {
            let (got, hint) = (tree.text(value.py())?, "give what dn.debug_expr gives");
            return Err(Misuse::NoGraph { op, got, hint }.into());
        };
        let (mut graph, mut inputs, mut parameters, _) = trace.snapshot(SmallVec::new()).into_parts();
        let mut captures = trace.captures();
        if inputs.len() != parameters + captures.len() {
            // Compilers receive the captures of a definition as parameters after its arguments.
            parameters = inputs.len();
            captures.clear();
        }
        for capture in &captures {
            capture.require_buffer(op, "trace the function where no other is traced")?;
        }
        let mut results: SmallVec<[Value; 3]> = SmallVec::with_capacity(tensors.len());
        for tensor in &tensors {
            results.push(match tensor.data() {
                Data::Traced { value, .. } => *value,
                Data::Buffer(_) | Data::Template => {
                    captures.push(tensor.flat());
                    inputs.push(tensor.whole().clone());
                    graph.parameter(inputs.len() - 1, tensor.whole().clone())
                }
            });
        }
        let lanes = tensors.iter().map(|tensor| NamedAxes::from(tensor.vectorized_axes())).collect();
        let host = trace.host().and_then(|host| host.downcast::<WeakTable>().ok());
        let table = match host {
            Some(known) => known.table().ok_or(Misuse::GraphGone { node: 0 })?,
            None => Table::new(),
        };
        let region = Arc::new(Region::new(graph, inputs, parameters, results));
        let (arguments, further) = (trace.parameter_lanes().into(), trace.further().into());
        Ok(Whole { region, trace, captures, table, tree, lanes, arguments, further })
    }
}

/// A graph or a stage without unused nodes.
pub(super) fn needed(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Arc<Region>> {
    if let Ok(stage) = value.cast::<PyStage>() {
        return Ok(stage.get().stage.region().clone());
    }
    Ok(Arc::new(pass::dce_owned(Arc::unwrap_or_clone(Whole::of(op, value)?.region))?))
}
