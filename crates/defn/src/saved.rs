//! Compiled functions in files: their graphs and the tensors that they captured.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use defn_core as core;
use defn_core::backend::{Executable, HostMemory, check_arguments};
use defn_core::format::{Array, native, native::Value};
use defn_core::region::Region;
use defn_core::vectorize::NamedAxes;
use defn_core::{ErrorKind, Location, Result, TensorType};

use crate::compile::{Key, Options, Program};
use crate::files::failed;
use crate::hooks::{Named, RunHooks, Slot, Table};
use crate::replace::replace;
use crate::tree::flatten;
use crate::{Tensor, Tree, backend};

/// What the files begin with, after the marks of the format.
const KIND: &str = "defn program 1";

/// A function from a file that [`Compiled::save`](crate::Compiled::save) wrote, compiled for this machine.
///
/// The file holds a graph, which is checked; it cannot run anything else. Threads may share the function.
///
/// ```
/// use defn::prelude::*;
/// use defn::Saved;
///
/// let path = std::env::temp_dir().join(format!("defn-saved-{}.program", std::process::id()));
/// let distance = jit(|(a, b): (Expr, Expr)| (a - b).abs());
/// let number = Tensor::template(&[], DType::F32)?;
/// distance.compile((number.clone(), number))?.save(&path)?;
///
/// let loaded = Saved::load(&path)?;
/// assert_eq!(loaded.arguments().len(), 2);
/// let result = loaded.call(&(Tensor::scalar(1.0)?, Tensor::scalar(4.0)?))?;
/// assert_eq!(result[0].item::<f32>()?, 3.0);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Saved {
    executable: Arc<dyn Executable>,
    captures: Vec<core::Tensor>,
    /// The vectorized axes of the arguments and of the results.
    lanes: (Vec<NamedAxes>, Vec<NamedAxes>),
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |types: &mut dyn Iterator<Item = &TensorType>| {
            types.map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (arguments, results) = (text(&mut self.arguments().iter()), text(&mut self.results()));
        write!(f, "Saved(({arguments}) -> ({results}))")
    }
}

impl Saved {
    /// Reads a function, and compiles it with the default compiler.
    ///
    /// ```
    /// # use defn::Saved;
    /// assert!(Saved::load("nowhere.program").is_err());
    /// ```
    ///
    /// # Errors
    /// A file that holds no function (`Format`), and errors of the system (`Host`).
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Saved> {
        let location = Location::caller();
        let read = || read(&std::fs::read(path.as_ref()).map_err(failed)?);
        read().map_err(|error| error.at(Some(location)))
    }

    /// The types of the arguments, vectorized axes first.
    ///
    /// ```
    /// # use defn::{Saved, TensorType};
    /// fn takes(function: &Saved, ty: &TensorType) -> bool {
    ///     function.arguments() == [ty.clone()]
    /// }
    /// ```
    pub fn arguments(&self) -> &[TensorType] {
        self.executable.program().parameters()
    }

    /// The types of the results, vectorized axes first.
    ///
    /// ```
    /// # use defn::Saved;
    /// fn bytes(function: &Saved) -> usize {
    ///     function.results().map(|ty| ty.byte_size()).sum()
    /// }
    /// ```
    pub fn results(&self) -> impl Iterator<Item = &TensorType> {
        self.executable.program().result_types()
    }

    /// Runs the function on the tensors of a container, and returns the tensors of the result, both in order.
    ///
    /// ```
    /// # use defn::{Saved, Tensor};
    /// fn predict(model: &Saved, x: Tensor) -> defn::Result<Vec<f32>> {
    ///     model.call(&x)?[0].to_vec()
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`](crate::Compiled::call).
    #[track_caller]
    pub fn call<A: Tree<Tensor>>(&self, arguments: &A) -> Result<Vec<Tensor>> {
        let location = Location::caller();
        self.run(flatten(arguments).0).map_err(|error| error.at(Some(location)))
    }

    fn run(&self, leaves: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let op = "call";
        check_arguments(op, self.arguments(), leaves.iter().map(|leaf| &leaf.0))?;
        let types = self.arguments().iter().zip(&self.lanes.0);
        for (position, (leaf, (ty, lanes))) in leaves.iter().zip(types).enumerate() {
            if leaf.0.vectorized_axes() != lanes.as_slice() {
                let (argument, got, expected) = (position.into(), leaf.0.ty().clone(), ty.clone());
                return Err(ErrorKind::ArgumentType { op, argument, got, expected }.into());
            }
        }
        let inputs: Vec<core::Tensor> =
            leaves.into_iter().map(|leaf| leaf.0).chain(self.captures.iter().cloned()).collect();
        let backend = backend::of(&inputs)?;
        let hooks = RunHooks { table: &Table::new(), named: &Named::new() };
        let results = self.executable.run(&backend, inputs, &hooks)?.into_iter().zip(&self.lanes.1);
        Ok(results.map(|(result, lanes)| Tensor(result.with_vectorized(lanes))).collect())
    }
}

/// Writes a program.
pub(crate) fn write<R>(path: &Path, key: &Key, program: &Program<R>) -> Result<()> {
    let op = "save";
    if program.table.iter().any(|slot| matches!(slot, Slot::Hook { .. } | Slot::Call(_))) {
        let (given, required) =
            ("with hooks or runtime_call".to_owned(), "without functions of this process".to_owned());
        return Err(ErrorKind::OptionValue { op, option: "the program", given, required }.into());
    }
    let capture = |tensor: &core::Tensor| Ok(Value::Tensor(Box::new(Array::of(op, tensor)?)));
    let captures = program.captures.iter().map(capture).collect::<Result<_>>()?;
    let of_arguments = key.types.iter().map(|(_, axes)| Value::of_axes(axes));
    let of_results = program.lanes.iter().map(|axes| Value::of_axes(axes));
    let value = Value::Tuple(vec![
        Value::Text(KIND.to_owned()),
        Value::Text(program.executable.program().to_text()),
        Value::List(captures),
        Value::List(of_arguments.collect()),
        Value::List(of_results.collect()),
    ]);
    replace(path, &native::write(op, &value)?).map_err(failed)
}

fn read(bytes: &[u8]) -> Result<Saved> {
    let op = "load";
    let foreign = || {
        let problem = "the file holds no function".to_owned();
        let required = "one that Compiled::save wrote is required".to_owned();
        core::Error::from(ErrorKind::Malformed { op, problem, required })
    };
    if !native::is_native(bytes) {
        return Err(foreign());
    }
    let value = native::parse(op, &HostMemory::from(bytes.to_vec()))?;
    let Some([Value::Text(kind), Value::Text(text), Value::List(captures), arguments, results]) =
        value.into_tuple()
    else {
        return Err(foreign());
    };
    let lanes = to_lists(arguments).zip(to_lists(results)).filter(|_| kind == KIND).ok_or_else(foreign)?;
    let region = Region::from_text(&text)?;
    let backend = backend::default_backend()?;
    let bind = |value: Value| value.into_array().ok_or_else(foreign)?.on(&backend);
    let captures = captures.into_iter().map(bind).collect::<Result<Vec<_>>>()?;
    let fits = region.capture_count() == captures.len()
        && captures.iter().zip(region.captures()).all(|(x, ty)| x.whole() == ty)
        && are_of(&lanes.0, region.parameters().iter())
        && are_of(&lanes.1, region.result_types());
    if !fits || region.has_effects() {
        return Err(foreign());
    }
    let options = Options::default();
    let executable = options.compiler()?.compile(Arc::new(region), options.checks())?;
    Ok(Saved { executable, captures, lanes })
}

/// Whether axes are the leading ones of types, which are as many.
fn are_of<'a>(lanes: &[NamedAxes], types: impl ExactSizeIterator<Item = &'a TensorType>) -> bool {
    let leads = |(axes, ty): (&NamedAxes, &TensorType)| {
        axes.len() <= ty.shape.rank() && axes.iter().zip(ty.shape.sizes()).all(|((_, a), b)| a == b)
    };
    lanes.len() == types.len() && lanes.iter().zip(types).all(leads)
}

fn to_lists(value: Value) -> Option<Vec<NamedAxes>> {
    value.into_list()?.into_iter().map(Value::into_axes).collect()
}
