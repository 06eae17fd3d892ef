//! Patterns of Jacobians: a function is traced, and the core finds which elements of its value depend on which of an argument.

use defn_core::builder::BuildControl;
use defn_core::region::Region;
use defn_core::sparsity::{Coloring, Pattern, Variable, detect};
use defn_core::vectorize::NamedAxes;
use defn_core::{DType, Tensor, TensorType, trace};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};

use crate::containers::{self, Flat, Mode};
use crate::error::{Fallible, guard};
use crate::grad::{Derivative, Gradient, position};
use crate::jit::{result_tensor, wrap};
use crate::misuse::Misuse;
use crate::ops;

/// The pattern of a sparse matrix.
#[pyclass(frozen, module = "defn._core")]
struct SparsityPattern(Pattern);

#[pymethods]
impl SparsityPattern {
    /// A pattern from where each row begins and the columns of its entries: arrays of s64.
    #[new]
    fn new(
        columns: usize,
        starts: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
    ) -> Fallible<SparsityPattern> {
        guard(|| {
            let starts = positions(starts)?.into_iter().map(|start| start as usize).collect();
            let indices = positions(indices)?.into_iter().map(|index| index as u32).collect();
            Ok(SparsityPattern(Pattern::new(columns, starts, indices)?))
        })
    }

    /// The number of rows and of columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// Where each row begins, and the number of entries: the bytes of s64.
    fn starts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        bytes(py, self.0.starts(), |&start| (start as i64).to_ne_bytes())
    }

    /// The columns of the entries of each row: the bytes of s32.
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        bytes(py, self.0.indices(), |index| index.to_ne_bytes())
    }

    /// A color for each column, or for each row, as the bytes of s32; and the number of colors.
    fn coloring<'py>(&self, py: Python<'py>, of_rows: bool) -> Fallible<(Bound<'py, PyByteArray>, usize)> {
        let coloring =
            guard(|| Ok(if of_rows { Coloring::of_rows(&self.0)? } else { Coloring::of_columns(&self.0)? }))?;
        Ok((bytes(py, &coloring.colors, |color| color.to_ne_bytes())?, coloring.count))
    }
}

/// The bytes of numbers.
fn bytes<'py, T, const N: usize>(
    py: Python<'py>,
    numbers: &[T],
    each: impl Fn(&T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * N, |bytes| {
        bytes
            .chunks_exact_mut(N)
            .zip(numbers)
            .for_each(|(bytes, number)| bytes.copy_from_slice(&each(number)));
        Ok(())
    })
}

/// The integers of an array of s64.
fn positions(array: &Bound<'_, PyAny>) -> Fallible<Vec<i64>> {
    let tensor = result_tensor("sparsity", array)?;
    let ty = tensor.ty();
    if ty.dtype != DType::S64 {
        let (what, got) = ("the array of positions".to_owned(), ty.to_string());
        let (op, required) = ("sparsity".to_owned(), "of dtype s64".to_owned());
        return Err(Misuse::BadArgument { op, what, got, required }.into());
    }
    let memory = tensor.host_bytes("sparsity")?;
    let (numbers, _) = memory.bytes()[..ty.byte_size()].as_chunks();
    Ok(numbers.iter().map(|number| i64::from_ne_bytes(*number)).collect())
}

/// Refuses a container of several tensors, a plain number, and vectorized axes.
fn require_one(what: &'static str, flat: &Flat<'_>, types: &[(&TensorType, bool)]) -> Fallible<()> {
    let got = match types {
        [(ty, is_vectorized)] if *is_vectorized => format!("{ty} with vectorized axes"),
        [_] if flat.tree.is_leaf() => return Ok(()),
        types => format!("a container of {} tensors", types.len()),
    };
    let (op, required) = ("sparsity".to_owned(), "one tensor without vectorized axes".to_owned());
    Err(Misuse::BadArgument { op, what: what.to_owned(), got, required }.into())
}

/// The pattern of the Jacobian of a function's value by one argument, and the tensors from outside of the
/// function whose elements decide positions in the pattern.
#[pyfunction]
#[pyo3(signature = (fun, argnum, args, kwargs = None))]
fn sparsity<'py>(
    fun: &Bound<'py, PyAny>,
    argnum: i64,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Fallible<(SparsityPattern, Vec<Bound<'py, PyAny>>)> {
    guard(|| {
        let py = args.py();
        let chosen = position(fun, argnum, args.len())?;
        // The pattern holds for all values of the other arguments, which are parameters too.
        let mut argnums = Vec::with_capacity(args.len());
        for (position, arg) in args.iter().enumerate() {
            if position == chosen || containers::flatten("sparsity", Mode::State, &arg)?.tree.has_leaves() {
                argnums.push(position as i64);
            }
        }
        let tree = argnums.iter().position(|&argnum| argnum as usize == chosen).expect("it is one of them");
        let derivative = Derivative::Gradient;
        let spec = Gradient { argnums, single: false, transform: None, derivative, has_aux: false };
        let traced = spec.trace(fun, args, kwargs, false)?;
        let of_tree = |tree: usize| traced.trees[tree].leaves.len();
        let first: usize = (0..tree).map(of_tree).sum();
        let variables = first..first + of_tree(tree);
        let types: Vec<(&TensorType, bool)> =
            traced.variables[variables.clone()].iter().map(|x| (x.ty(), x.is_vectorized())).collect();
        require_one("the argument", &traced.trees[tree], &types)?;
        let region = &traced.closed.region;
        let has_lanes = traced.lanes.iter().map(|lanes: &NamedAxes| !lanes.is_empty());
        let values: Vec<(&TensorType, bool)> = region.result_types().zip(has_lanes).collect();
        require_one("the value", &traced.value, &values)?;

        // A plain number is a parameter for each dtype in which it is used; all are the same columns.
        let parameters = region.parameter_count();
        let inputs = traced.numbers.of_variables(&variables.collect::<Vec<_>>()).into_iter();
        let variables: Vec<Variable> = inputs.map(|input| Variable { input, first: 0 }).collect();
        let columns = types[0].0.size();
        let mut known: Vec<Option<Tensor>> = vec![None; parameters];
        let captures = traced.closed.captures.iter();
        known.extend(captures.map(|tensor| tensor.buffer().is_some().then(|| tensor.clone())));
        let found = ops::with(|ops| {
            let evaluate = |region: &Region, inputs: &[Tensor]| {
                let mut ops = ops.clone();
                trace::suspended(|| ops.inline(region, inputs))
            };
            detect(region, (&variables, columns), &[0], &known, &evaluate)
        })?;
        let read = found.read.iter().map(|&input| traced.closed.captures[input - parameters].clone());
        Ok((SparsityPattern(found.pattern), wrap(py, read)?.into_iter().collect()))
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SparsityPattern>()?;
    module.add_function(wrap_pyfunction!(sparsity, module)?)
}
