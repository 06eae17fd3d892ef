//! Calls of sharded functions.

use std::sync::Arc;

use defn_core::backend::Backend;
use defn_core::builder::{Ops, Source};
use defn_core::mesh::Spec;
use defn_core::region::Region;
use defn_core::vectorize::vectorized_axes_text;
use defn_core::{ErrorKind, Tensor, TensorType, trace};
use defn_pjrt::{CompilerOptions, MeshBackend, MeshCompiler};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::spec::Specs;
use super::{MeshCompilerHandle, PyMesh, PySharded};
use crate::backends;
use crate::containers::{self, Flat, Mode};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::fields::Fields;
use crate::gil;
use crate::jit::leaf::number_model;
use crate::jit::{Jitted, function_name, leaf_arguments, leaf_type};
use crate::location;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// A function that the devices of a mesh run together.
#[pyclass(frozen, dict, weakref, module = "defn._core")]
pub(crate) struct ShardedFunction(Fields<Sharded>);

struct Sharded {
    jitted: Py<Jitted>,
    mesh: Arc<MeshBackend>,
    inputs: Vec<Specs>,
    outputs: Specs,
}

/// The specs of positional arguments.
fn inputs(value: &Bound<'_, PyAny>, mesh: &MeshBackend) -> Fallible<Vec<Specs>> {
    if !value.is_instance_of::<PyTuple>() && !value.is_instance_of::<PyList>() {
        let required = "a tuple or list with one spec for each positional argument";
        return Err(convert::bad("shard", "in_specs", value, required)?);
    }
    let each = value.try_iter()?.enumerate();
    each.map(|(at, spec)| Specs::parse(&format!("argument {at}"), &spec?, mesh.mesh())).collect()
}

impl ShardedFunction {
    fn jitted<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, Jitted> {
        self.0.jitted.bind(py)
    }

    fn name(&self, py: Python<'_>) -> String {
        function_name(self.0.jitted.get().fun(py))
    }

    /// The flattened call, with the spec of each leaf. Keyword arguments are replicated on every device.
    fn flatten_call<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<(Flat<'py>, Vec<Spec>)> {
        let py = args.py();
        if trace::depth() > 0 {
            return Err(Misuse::ShardTraced { fun: self.name(py) }.into());
        }
        let jitted = self.0.jitted.get();
        let flat = jitted.flatten_call(py, args, kwargs)?;
        let arguments = flat.tree.arguments(py);
        let (given, expected) = (self.0.inputs.len(), arguments.positional.len());
        if given != expected {
            let what = format!("the arguments of {}", self.name(py));
            return Err(Misuse::SpecCount { what, given, expected }.into());
        }
        let (values, _) = leaf_arguments(py, &flat.tree, flat.leaves.iter().cloned())?;
        let mut specs = Vec::with_capacity(flat.leaves.len());
        for (at, (range, input)) in arguments.positional.iter().zip(&self.0.inputs).enumerate() {
            match input {
                Specs::One(spec) => specs.extend(std::iter::repeat_n(spec.clone(), range.len())),
                // A parameter that is entirely static has no tensors to distribute.
                Specs::List(_) | Specs::Dict(_) if range.is_empty() => {}
                Specs::List(_) | Specs::Dict(_) => {
                    let what = format!("argument {}", jitted.argument_name(py, at));
                    input.assign(&what, &values.get_item(at)?, &mut specs)?;
                }
            }
        }
        specs.resize(flat.leaves.len(), Spec::default());
        Ok((flat, specs))
    }

    /// The block type of a leaf; `position` is the leaf's index in the call.
    fn block(
        &self,
        py: Python<'_>,
        flat: &Flat<'_>,
        position: usize,
        spec: &Spec,
        ty: &TensorType,
    ) -> Fallible<TensorType> {
        let mesh = self.0.mesh.mesh();
        if let Ok(block) = spec.block(mesh, "", ty) {
            return Ok(block);
        }
        let jitted = self.0.jitted.get();
        let paths = flat.tree.argument_leaf_paths(py, |at| jitted.argument_name(py, at))?;
        Ok(spec.block(mesh, &format!("argument {}", paths[position]), ty)?)
    }

    /// Distributes a leaf over the mesh.
    fn distribute(&self, py: Python<'_>, flat: &Flat<'_>, position: usize, spec: &Spec) -> Fallible<Tensor> {
        let leaf = &flat.leaves[position];
        let whole = match leaf.cast::<PySharded>() {
            Ok(sharded) => {
                let sharded = sharded.get();
                if sharded.spec == *spec && sharded.backend.is_same_device(&*self.0.mesh) {
                    return Ok(sharded.block.clone());
                }
                sharded.whole(py)?
            }
            Err(_) => convert::tensor("shard", leaf)?,
        };
        if whole.is_vectorized() {
            let (what, axes) = ("an argument", vectorized_axes_text(whole.vectorized_axes()));
            return Err(ErrorKind::NotVectorizable { op: "shard", what, axes }.into());
        }
        whole.require_buffer("shard", "pass a tensor with values")?;
        let block = self.block(py, flat, position, spec, whole.ty())?;
        let mesh = &self.0.mesh;
        Ok(gil::detach(py, || {
            let mut ops = Ops::new(backends::host(), Source::Lookup(location::ask));
            let blocks = spec.cut(&mut ops, mesh.mesh(), &whole, &block)?;
            mesh.gather_blocks(&block, &blocks)
        })?)
    }

    /// The function's result, in which the blocks of each tensor are combined into a sharded tensor.
    fn wrap<'py>(&self, result: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        let py = result.py();
        let mut specs = Vec::new();
        self.0.outputs.assign("the result", result, &mut specs)?;
        let flat = containers::flatten("shard", Mode::State, result)?;
        let mut wrapped = Vec::with_capacity(specs.len());
        for (position, (leaf, spec)) in flat.leaves.iter().zip(specs).enumerate() {
            let tensor = convert::tensor("shard", leaf)?;
            let block = match tensor.backend() {
                Some(backend) if MeshBackend::of(&*backend).is_some() => tensor,
                Some(_) | None => {
                    let copies = vec![tensor.clone(); self.0.mesh.mesh().count()];
                    gil::detach(py, || self.0.mesh.gather_blocks(tensor.ty(), &copies))?
                }
            };
            let mesh = self.0.mesh.mesh();
            let ty = match spec.whole(mesh, "", block.ty()) {
                Ok(ty) => ty,
                Err(_) => {
                    let what = format!("the result{}", flat.tree.leaf_paths(py)?[position]);
                    spec.whole(mesh, &what, block.ty())?
                }
            };
            let sharded = PySharded { block, backend: self.0.mesh.clone(), spec, ty };
            wrapped.push(Bound::new(py, sharded)?.into_any());
        }
        flat.tree.unflatten(py, &mut wrapped.into_iter())
    }

    /// The graph of a call, which each device runs on its blocks.
    fn region<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Arc<Region>> {
        let py = args.py();
        let (flat, specs) = self.flatten_call(args, kwargs)?;
        let mut models = Vec::with_capacity(specs.len());
        for (position, (leaf, spec)) in flat.leaves.iter().zip(&specs).enumerate() {
            if let Some(model) = number_model(leaf)? {
                self.block(py, &flat, position, spec, model.ty())?;
                models.push(model);
                continue;
            }
            let ty = match leaf.cast::<PySharded>() {
                Ok(sharded) => sharded.get().ty.clone(),
                Err(_) => leaf_type("shard", leaf)?,
            };
            models.push(Tensor::template(self.block(py, &flat, position, spec, &ty)?));
        }
        Jitted::region(self.jitted(py), &flat.tree, &models)
    }
}

#[pymethods]
impl ShardedFunction {
    #[new]
    #[pyo3(signature = (fun, mesh, in_specs, out_specs, **options))]
    fn new<'py>(
        fun: &Bound<'py, PyAny>,
        mesh: &Bound<'py, PyAny>,
        in_specs: &Bound<'py, PyAny>,
        out_specs: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<ShardedFunction> {
        guard(|| {
            let py = fun.py();
            let Ok(py_mesh) = mesh.cast::<PyMesh>() else {
                return Err(convert::bad("shard", "the mesh", mesh, "a dn.Mesh")?);
            };
            let backend = py_mesh.get().backend.clone();
            if !fun.is_callable() {
                return Err(convert::bad("shard", "the function", fun, "callable")?);
            }
            let (inputs, outputs) =
                (inputs(in_specs, &backend)?, Specs::parse("the result", out_specs, backend.mesh())?);
            let options = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
            options.set_item("compiler", MeshCompilerHandle(py_mesh.clone().unbind()))?;
            options.set_item("on_conflict", "raise")?;
            let jitted = py.get_type::<Jitted>().call((fun,), Some(&options))?;
            let jitted = jitted.cast_into::<Jitted>().map_err(PyErr::from)?.unbind();
            Ok(ShardedFunction(Sharded { jitted, mesh: backend, inputs, outputs }.into()))
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let py = args.py();
            let (flat, specs) = self.flatten_call(args, kwargs)?;
            let mut leaves = Vec::with_capacity(specs.len());
            for (position, spec) in specs.iter().enumerate() {
                let leaf = &flat.leaves[position];
                // A plain number is replicated on every device, and takes the dtype of its other operands
                // there.
                if let Some(model) = number_model(leaf)? {
                    self.block(py, &flat, position, spec, model.ty())?;
                    leaves.push(leaf.clone());
                    continue;
                }
                let laid = self.distribute(py, &flat, position, spec)?;
                leaves.push(Bound::new(py, PyTensor::new(laid))?.into_any());
            }
            let (args, kwargs) = leaf_arguments(py, &flat.tree, leaves.into_iter())?;
            let result = self.jitted(py).call(args, Some(&kwargs))?;
            self.wrap(&result)
        })
    }

    /// The graph of a call as text.
    #[pyo3(signature = (*args, **kwargs))]
    fn text<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> Fallible<String> {
        guard(|| Ok(self.region(args, kwargs)?.to_text()))
    }

    /// The program of a call in StableHLO, as XLA compiles it.
    #[pyo3(signature = (*args, **kwargs))]
    fn stablehlo<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<String> {
        guard(|| {
            let region = self.region(args, kwargs)?;
            let compiler =
                MeshCompiler::new(self.0.mesh.clone(), backends::host(), CompilerOptions::default());
            Ok(compiler.text(&region)?)
        })
    }

    /// The mesh on which it runs.
    #[getter]
    fn mesh(&self) -> PyMesh {
        PyMesh { backend: self.0.mesh.clone() }
    }

    /// The numbers of calls that found or compiled a version, as for any definition.
    fn cache_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.jitted(py).call_method0(intern!(py, "cache_info"))
    }

    /// Drops all compiled versions.
    fn cache_clear(&self, py: Python<'_>) -> PyResult<()> {
        self.jitted(py).call_method0(intern!(py, "cache_clear")).map(|_| ())
    }

    /// Why each version was compiled.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.jitted(py).call_method0(intern!(py, "explain"))
    }

    #[getter]
    fn __wrapped__<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.0.jitted.get().fun(py).clone()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mesh = Bound::new(py, self.mesh())?;
        Ok(format!("<shard {} over {}>", self.name(py), mesh.repr()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.get().map_or(Ok(()), |fields| visit.call(&fields.jitted))
    }
}
