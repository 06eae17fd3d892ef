//! Graphs as Python objects: `Node`, a value of a graph, and `Region`, a graph with parameters and outputs.
//!
//! Both are views: a node refers to its graph and to a value of it. Nothing is copied, and graphs cannot be
//! changed through them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use defn_core::form::{self, Argument};
use defn_core::graph::{self, Graph, Value};
use defn_core::op::{Op, UserBlockOp};
use defn_core::region;
use defn_core::tensor::Data;
use defn_core::trace::Trace;
use defn_core::{Tensor, TensorType, compose};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::containers::{self, Flat, Mode, Structure};
use crate::dtype::{self, PyDType};
use crate::error::{Fallible, guard};
use crate::hooks::{self, Slot, WeakTable};
use crate::jit::{self, result_tensor};
use crate::misuse::Misuse;
use crate::pybackend::call;

/// The graph of a view.
#[derive(Clone)]
pub(crate) enum Source {
    /// A graph that is being traced, or whose trace is kept.
    Trace(Arc<Trace>),
    /// A graph inside an operation.
    Region(Arc<region::Region>),
}

/// A graph, and the table of its nodes' slots, if known.
#[derive(Clone)]
pub(crate) struct View {
    source: Source,
    table: Option<Arc<WeakTable>>,
}

impl View {
    /// The graph of a trace.
    fn of_trace(trace: Arc<Trace>) -> View {
        let existing = trace.host().and_then(|host| host.downcast::<WeakTable>().ok());
        // While the graph is being traced, its table is the one that currently collects.
        let table = existing.or_else(|| hooks::collecting().map(Arc::new));
        View { source: Source::Trace(trace), table }
    }

    /// The graph of a region inside this one.
    fn inside(&self, region: Arc<region::Region>) -> View {
        View { source: Source::Region(region), table: self.table.clone() }
    }

    /// Runs `read` on the graph. `read` must not run Python code: the trace is locked meanwhile.
    fn read<R>(&self, read: impl FnOnce(&Graph) -> R) -> R {
        match &self.source {
            Source::Trace(trace) => trace.with_graph(read),
            Source::Region(region) => read(region.graph()),
        }
    }

    fn is_same(&self, other: &View) -> bool {
        match (&self.source, &other.source) {
            (Source::Trace(a), Source::Trace(b)) => Arc::ptr_eq(a, b),
            (Source::Region(a), Source::Region(b)) => Arc::ptr_eq(a, b),
            (Source::Trace(_) | Source::Region(_), _) => false,
        }
    }

    fn address(&self) -> usize {
        match &self.source {
            Source::Trace(trace) => Arc::as_ptr(trace) as usize,
            Source::Region(region) => Arc::as_ptr(region) as usize,
        }
    }

    /// The tag of a user-defined block; its name if the object no longer exists.
    fn tag<'py>(&self, py: Python<'py>, block: &UserBlockOp) -> Bound<'py, PyAny> {
        let slot = self.table.as_ref().and_then(|table| table.get(block.slot));
        match slot.as_deref() {
            Some(Slot::Tag(tag)) => tag.tag.bind(py).clone(),
            Some(Slot::Hook(_) | Slot::Call(_)) | None => PyString::new(py, &block.name).into_any(),
        }
    }

    /// The node at a position.
    ///
    /// # Errors
    /// The definition has ended and its graph was not kept.
    fn node(&self, position: u32) -> Fallible<graph::Node> {
        match self.read(|graph| graph.nodes().get(position as usize).cloned()) {
            Some(node) => Ok(node),
            None => Err(Misuse::GraphGone { node: position }.into()),
        }
    }

    fn ty(&self, value: Value) -> Fallible<TensorType> {
        Ok(self.node(value.node)?.outputs[value.output as usize].clone())
    }

    /// The positions of the nodes that the values depend on, in order; with `effects`, also those of nodes
    /// with effects.
    fn needed(&self, values: &[Value], effects: bool) -> Vec<u32> {
        self.read(|graph| {
            let mut needed = vec![false; graph.len()];
            for value in values {
                if let Some(slot) = needed.get_mut(value.node as usize) {
                    *slot = true;
                }
            }
            for (position, node) in graph.nodes().iter().enumerate().rev() {
                if effects && node.op.has_effect() {
                    needed[position] = true;
                }
                if needed[position] {
                    node.inputs.iter().for_each(|input| needed[input.node as usize] = true);
                }
            }
            (0..graph.len() as u32).filter(|&position| needed[position as usize]).collect()
        })
    }
}

/// A value of a graph: an output of an operation.
///
/// Nodes of one graph with one ``id`` are outputs of one operation; a graph's operations are evaluated in the
/// order of their ids. Nodes compare equal if they are the same output of the same operation, and are
/// hashable.
#[pyclass(frozen, weakref, name = "Node", module = "defn.compilers")]
pub(crate) struct Node {
    view: View,
    value: Value,
}

impl Node {
    fn new(view: &View, value: Value) -> Node {
        Node { view: view.clone(), value }
    }

    fn node(&self) -> Fallible<graph::Node> {
        self.view.node(self.value.node)
    }

    /// The type of the value.
    fn ty(&self) -> Fallible<TensorType> {
        self.view.ty(self.value)
    }

    fn object<'py>(&self, py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, Node::new(&self.view, value))?.into_any())
    }

    /// The arguments of the backend's callback after the template of its result, and its options.
    fn form<'py>(&self, py: Python<'py>) -> Fallible<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let node = self.node()?;
        let form = form::form(&node.op);
        let options = PyDict::new(py);
        let list = |values: &[Value]| -> PyResult<Bound<'py, PyAny>> {
            let nodes = values.iter().map(|&value| self.object(py, value));
            Ok(PyList::new(py, nodes.collect::<PyResult<Vec<_>>>()?)?.into_any())
        };
        if let Op::Block(_) = &node.op {
            let args = PyTuple::new(py, [call::tag(py, &form)?, list(&node.inputs)?])?;
            return Ok((args, options));
        }
        if let Op::UserBlock(block) = &node.op {
            let args = [self.view.tag(py, block), list(&node.inputs[..block.args])?];
            return Ok((PyTuple::new(py, args)?, options));
        }
        let mut args = Vec::new();
        for argument in &form.arguments {
            match argument {
                Argument::Operand { index, .. } => args.push(self.object(py, node.inputs[*index])?),
                // Captures are given by the regions, and operand counts by the lengths of the lists.
                Argument::Operands { name: "captures", .. }
                | Argument::Option { name: "state" | "values" | "inputs", .. } => {}
                Argument::Operands { start, count, .. } => {
                    let end = count.map_or(node.inputs.len(), |count| start + count);
                    args.push(list(&node.inputs[*start..end])?);
                }
                Argument::Attribute { value, .. } => args.push(call::attribute(py, value)?),
                Argument::Option { name, value } => options.set_item(name, call::option(py, name, value)?)?,
            }
        }
        for region in self.regions_of(&node)? {
            args.push(Bound::new(py, region)?.into_any());
        }
        Ok((PyTuple::new(py, args)?, options))
    }

    /// The graphs inside the operation; for a block, its default graph.
    fn regions_of(&self, node: &graph::Node) -> Fallible<Vec<Region>> {
        if let Op::Block(block) = &node.op {
            let types: Vec<TensorType> =
                node.inputs.iter().map(|&input| self.view.ty(input)).collect::<Fallible<_>>()?;
            let default = compose::block::region(block, &types.iter().collect::<Vec<_>>())?;
            return Ok(vec![Region::inside("default", self.view.inside(Arc::new(default)), Vec::new())]);
        }
        let names = form::form(&node.op).regions;
        let regions = node.op.regions();
        Ok(names
            .into_iter()
            .zip(regions)
            .map(|(name, region)| {
                let first = node.inputs.len() - region.capture_count();
                let outside =
                    node.inputs[first..].iter().map(|&value| Node::new(&self.view, value)).collect();
                Region::inside(name, self.view.inside(region.clone()), outside)
            })
            .collect())
    }
}

#[pymethods]
impl Node {
    /// The operation's name, which is also the name of the backend's callback.
    #[getter]
    fn op(&self) -> Fallible<&'static str> {
        let node = self.node()?;
        Ok(if let Op::Block(_) = &node.op { "block" } else { form::name(&node.op) })
    }

    /// The arguments of the callback after ``out``, in order: a node for a tensor, a list of nodes for a list
    /// of tensors, a region for a function, and plain values.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| Ok(self.form(py)?.0))
    }

    /// The options of the callback, by name.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyDict>> {
        guard(|| Ok(self.form(py)?.1))
    }

    /// The inputs of the operation: its operands, then the captures of its regions.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        let inputs = self.node()?.inputs;
        Ok(PyTuple::new(py, inputs.iter().map(|&value| Node::new(&self.view, value)))?)
    }

    /// The graphs inside the operation: the condition and body of a loop, or each side of a branch.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| Ok(PyTuple::new(py, self.regions_of(&self.node()?)?)?))
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyDType>> {
        Ok(dtype::object(py, self.ty()?.dtype)?.clone())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        Ok(PyTuple::new(py, self.ty()?.shape.sizes())?)
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        let ty = self.ty()?;
        let names: Vec<Option<&str>> = ty.shape.names().map(|name| name.map(|name| &**name)).collect();
        Ok(PyTuple::new(py, names)?)
    }

    /// A template of the value's type: the ``out`` argument of a callback.
    #[getter]
    fn template<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        Ok(call::template(py, &self.ty()?)?)
    }

    /// The file and line of the user's program that created the operation, if known.
    #[getter]
    fn source(&self) -> Fallible<Option<(String, u32)>> {
        Ok(self.node()?.location.map(|location| (location.file.to_string(), location.line)))
    }

    /// The position of the operation in its graph.
    #[getter]
    fn id(&self) -> u32 {
        self.value.node
    }

    /// The index of this output among the operation's outputs.
    #[getter]
    fn output(&self) -> u32 {
        self.value.output
    }

    /// All outputs of the operation.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        let count = self.node()?.outputs.len() as u32;
        let values = (0..count).map(|output| Value { node: self.value.node, output });
        Ok(PyTuple::new(py, values.map(|value| Node::new(&self.view, value)))?)
    }

    /// Whether running the operation has effects besides its outputs: a hook, or a region with one.
    #[getter]
    fn has_effect(&self) -> Fallible<bool> {
        Ok(self.node()?.op.has_effect())
    }

    /// The operations on which this value depends, each once, by its first output. Operands come before their
    /// users, and this one is last.
    fn walk<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            self.node()?;
            needed_nodes(py, &self.view, &[self.value], false)
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Node>().is_ok_and(|other| {
            let other = other.get();
            self.value == other.value && self.view.is_same(&other.view)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.view.address(), self.value).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> Fallible<String> {
        guard(|| {
            let node = self.node()?;
            let label = |value: Value, count: usize| match count {
                1 => format!("%{}", value.node),
                _ => format!("%{}.{}", value.node, value.output),
            };
            let (args, attrs) = self.form(py)?;
            let mut parts = Vec::new();
            for arg in args.iter() {
                parts.push(text(&arg)?);
            }
            for (name, value) in attrs.iter() {
                parts.push(format!("{name}={}", value.repr()?));
            }
            let this = label(self.value, node.outputs.len());
            Ok(format!("<{this} = {}({}): {}>", self.op()?, parts.join(", "), self.ty()?))
        })
    }
}

/// An argument of an operation as it is printed.
fn text(value: &Bound<'_, PyAny>) -> Fallible<String> {
    if let Ok(node) = value.cast::<Node>() {
        let node = node.get();
        let count = node.node()?.outputs.len();
        return Ok(match count {
            1 => format!("%{}", node.value.node),
            _ => format!("%{}.{}", node.value.node, node.value.output),
        });
    }
    if let Ok(region) = value.cast::<Region>() {
        return Ok(region.get().name.to_owned());
    }
    if let Ok(list) = value.cast::<PyList>() {
        let entries = list.iter().map(|entry| text(&entry)).collect::<Fallible<Vec<_>>>()?;
        return Ok(format!("[{}]", entries.join(", ")));
    }
    Ok(value.repr()?.to_string())
}

/// The operations on which some values depend, in order.
fn needed_nodes<'py>(
    py: Python<'py>,
    view: &View,
    values: &[Value],
    effects: bool,
) -> Fallible<Bound<'py, PyAny>> {
    let positions = view.needed(values, effects).into_iter();
    let nodes = positions.map(|node| Node::new(view, Value { node, output: 0 }));
    Ok(PyList::new(py, nodes.collect::<Vec<_>>())?.try_iter()?.into_any())
}

/// A closed graph: parameters and captures in, outputs out.
///
/// Inside it, ``parameter(i)`` is the ``i``-th parameter; indices from the number of parameters on are the
/// captures.
#[pyclass(frozen, weakref, name = "Region", module = "defn.compilers")]
pub(crate) struct Region {
    name: &'static str,
    view: View,
    inputs: Vec<TensorType>,
    parameters: usize,
    results: SmallVec<[Value; 3]>,
    /// The captured values, as nodes of the enclosing graph.
    outside: Vec<Node>,
}

impl Region {
    /// A graph inside an operation.
    fn inside(name: &'static str, view: View, outside: Vec<Node>) -> Region {
        let Source::Region(region) = &view.source else { unreachable!("operations hold regions") };
        Region {
            name,
            inputs: region.inputs().to_vec(),
            parameters: region.parameter_count(),
            results: region.results().clone(),
            view: view.clone(),
            outside,
        }
    }

    /// The graph as a region of the core.
    pub(crate) fn closed(&self) -> region::Region {
        let graph = self.view.read(Graph::clone);
        region::Region::new(graph, self.inputs.clone(), self.parameters, self.results.clone())
    }

    fn templates<'py>(&self, py: Python<'py>, types: &[TensorType]) -> PyResult<Bound<'py, PyTuple>> {
        let templates = types.iter().map(|ty| call::template(py, ty));
        PyTuple::new(py, templates.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Region {
    /// The region's role in its operation: "cond", "body", "branch", "fun", "rule" or "default".
    #[getter]
    fn name(&self) -> &'static str {
        self.name
    }

    /// The types of the parameters, as templates.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.templates(py, &self.inputs[..self.parameters])
    }

    /// The values that the region captures, after the parameters: nodes of the enclosing graph. The captures
    /// of a whole program are tensors that the function captured, as templates.
    #[getter]
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.outside.is_empty() {
            return self.templates(py, &self.inputs[self.parameters..]);
        }
        PyTuple::new(py, self.outside.iter().map(|node| Node::new(&node.view, node.value)))
    }

    /// The outputs of the region.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.results.iter().map(|&value| Node::new(&self.view, value)))
    }

    /// The operations of the region in evaluation order, each once, by its first output: those on which its
    /// outputs depend, and those with an effect.
    fn walk<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| needed_nodes(py, &self.view, &self.results, true))
    }

    fn __repr__(&self) -> Fallible<String> {
        let results: Vec<String> = self
            .results
            .iter()
            .map(|&value| Ok(self.view.ty(value)?.to_string()))
            .collect::<Fallible<_>>()?;
        let list =
            |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let inputs = list(&self.inputs[..self.parameters]);
        Ok(format!("<region {}: ({inputs}) -> ({})>", self.name, results.join(", ")))
    }
}

/// The node of a value of a trace.
pub(crate) fn of_value(trace: &Arc<Trace>, value: Value) -> Node {
    Node { view: View::of_trace(trace.clone()), value }
}

/// The node of a traced tensor.
pub(crate) fn of_tensor(tensor: &Tensor) -> Fallible<Node> {
    match tensor.data() {
        Data::Traced { trace, value } => {
            let node = Node { view: View::of_trace(trace.clone()), value: *value };
            // A missing graph is reported now, while the tensor is known.
            node.node()?;
            Ok(node)
        }
        Data::Buffer(_) => Err(Misuse::NoNode { got: tensor.ty().clone(), what: "has values" }.into()),
        Data::Template => Err(Misuse::NoNode { got: tensor.ty().clone(), what: "is a template" }.into()),
    }
}

/// The result of a traced function, as a region and the structure of its container. If the result contains no
/// tensor, the graph is that of `fun`, the function that was traced.
#[pyfunction]
#[pyo3(signature = (value, fun = None))]
fn program(value: &Bound<'_, PyAny>, fun: Option<&Bound<'_, PyAny>>) -> Fallible<(Region, Structure)> {
    guard(|| {
        let Flat { leaves, tree, .. } = containers::flatten("program", Mode::State, value)?;
        let mut results = SmallVec::new();
        let mut found: Option<Arc<Trace>> = fun.and_then(jit::traced_by);
        for leaf in &leaves {
            let tensor = result_tensor("program", leaf)?;
            let node = of_tensor(&tensor)?;
            let Source::Trace(trace) = node.view.source else {
                unreachable!("a tensor is a value of a trace")
            };
            if found.as_ref().is_some_and(|known| !Arc::ptr_eq(known, &trace)) {
                return Err(Misuse::OtherGraph { op: "program", got: tensor.ty().clone() }.into());
            }
            found = Some(trace);
            results.push(node.value);
        }
        let Some(trace) = found else {
            let (got, hint) = (tree.text(value.py())?, "return one from the definition");
            return Err(Misuse::NoGraph { op: "program", got, hint }.into());
        };
        let (inputs, parameters) = trace.inputs();
        let (name, view, outside) = ("program", View::of_trace(trace), Vec::new());
        Ok((Region { name, view, inputs, parameters, results, outside }, Structure::new(tree, leaves.len())))
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Node>()?;
    module.add_class::<Region>()?;
    module.add_function(wrap_pyfunction!(program, module)?)
}
