//! Programs: a traced function, its compiled form, and what it needs at each run.

use std::sync::Arc;

use defn_core as core;
use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::background::{Background, Tell};
use defn_core::location::during;
use defn_core::trace::Trace;
use defn_core::vectorize::{self, NamedAxes, named};
use defn_core::{ErrorKind, Location, Result, TensorType};

use crate::hooks::{self, Named, RunHooks, Table};
use crate::tree::{flatten, map};
use crate::{Expr, Tensor, Tree, backend};

/// What a program was compiled for: the types and vectorized axes of the arguments, the structure of their container, the
/// mapped axes that the function knows by name, and the checks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) types: Vec<(TensorType, NamedAxes)>,
    pub(crate) structure: Vec<usize>,
    named: NamedAxes,
    pub(crate) checks: Checks,
}

impl Key {
    /// The key of some arguments, and their leaves.
    pub(crate) fn of<A: Tree<Tensor>>(arguments: &A, options: &Options) -> (Key, Vec<Tensor>) {
        let (leaves, structure) = flatten(arguments);
        let types = leaves.iter().map(|leaf| (leaf.0.ty().clone(), leaf.0.vectorized_axes().into()));
        let (types, named, checks) = (types.collect(), named::known(), options.checks());
        (Key { types, structure, named, checks }, leaves)
    }

    /// Refuses arguments of other types or another structure. Checks and named axes around a call make no difference.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn require(&self, op: &'static str, got: &Key) -> Result<()> {
        let (given, expected) = (got.types.len(), self.types.len());
        if given != expected {
            return Err(ErrorKind::ArgumentCount { op, given, expected }.into());
        }
        for (position, (got, expected)) in got.types.iter().zip(&self.types).enumerate() {
            if got != expected {
                let (got, expected) = (got.0.clone(), expected.0.clone());
                return Err(ErrorKind::ArgumentType { op, argument: position.into(), got, expected }.into());
            }
        }
        if got.structure == self.structure {
            return Ok(());
        }
        let (option, given) = ("the container", "of another structure".to_owned());
        let required = "that which the function was compiled for".to_owned();
        Err(ErrorKind::OptionValue { op, option, given, required }.into())
    }

    /// In what another key differs, for messages.
    pub(crate) fn differences(&self, new: &Key) -> Vec<String> {
        if self.types.len() != new.types.len() {
            let (old, new) = (self.types.len(), new.types.len());
            return vec![format!("the number of tensors changed from {old} to {new}")];
        }
        let mut found: Vec<String> = Vec::new();
        for (position, ((old, old_axes), (new, new_axes))) in self.types.iter().zip(&new.types).enumerate() {
            let (a, b) = (&old.shape, &new.shape);
            let differ = [
                ("dtype", old.dtype != new.dtype),
                ("rank", a.rank() != b.rank()),
                ("shape", a.rank() == b.rank() && a.sizes() != b.sizes()),
                ("names", a.rank() == b.rank() && !a.names().eq(b.names())),
                ("vectorized axes", old_axes != new_axes),
            ];
            let fields: Vec<&str> =
                differ.iter().filter(|(_, differ)| *differ).map(|(name, _)| *name).collect();
            if fields.is_empty() {
                continue;
            }
            let text = |ty: &TensorType, axes: &NamedAxes| match axes.is_empty() {
                true => ty.to_string(),
                false => format!("{} {ty}", vectorize::vectorized_axes_text(axes)),
            };
            let (old, new) = (text(old, old_axes), text(new, new_axes));
            let fields = fields.join(" and ");
            found.push(format!("the {fields} of tensor {position} changed from {old} to {new}"));
        }
        if self.checks != new.checks {
            found.push(format!("the checks changed from {:?} to {:?}", self.checks, new.checks));
        }
        if self.named != new.named {
            let text = |axes: &NamedAxes| -> String {
                let axes: Vec<String> = axes.iter().map(|(name, size)| format!("{name}: {size}")).collect();
                if axes.is_empty() { "none".to_owned() } else { axes.join(", ") }
            };
            let (old, new) = (text(&self.named), text(&new.named));
            found.push(format!("the named axes around the call changed from {old} to {new}"));
        }
        if found.is_empty() && self.structure != new.structure {
            found.push("the structure of the container, or a value in it, changed".to_owned());
        }
        found
    }
}

/// How functions are compiled and run.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) compiler: Option<Arc<dyn Compiler>>,
    pub(crate) donate: Vec<usize>,
    pub(crate) checks: Checks,
    pub(crate) hooks: Named,
    /// Whether the compiler works in the background, and whom it tells its errors.
    pub(crate) background: Option<Tell>,
}

impl Options {
    pub(crate) fn compiler(&self) -> Result<Arc<dyn Compiler>> {
        let compiler = match &self.compiler {
            Some(compiler) => compiler.clone(),
            None => backend::compiler(backend::DEFAULT_COMPILER)?,
        };
        Ok(match &self.background {
            Some(tell) => Arc::new(Background::new(compiler, tell.clone())),
            None => compiler,
        })
    }

    pub(crate) fn checks(&self) -> Checks {
        backend::union(self.checks, backend::checks())
    }
}

/// A compiled function.
pub(crate) struct Program<R> {
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) captures: Vec<core::Tensor>,
    pub(crate) table: Table,
    /// What the function returned, for its structure.
    pub(crate) results: R,
    /// The vectorized axes of the results.
    pub(crate) lanes: Vec<NamedAxes>,
}

impl<R: Tree<Expr>> Program<R> {
    /// Traces a function for arguments, which may be templates, and compiles it.
    pub(crate) fn compile<A>(
        fun: impl FnOnce(A) -> R,
        arguments: &A::Of<Tensor>,
        leaves: &[Tensor],
        checks: Checks,
        options: &Options,
    ) -> Result<Program<R>>
    where
        A: Tree<Expr>,
        A::Of<Tensor>: Tree<Tensor, Of<Expr> = A>,
    {
        let models: Vec<core::Tensor> = leaves.iter().map(|leaf| leaf.0.clone()).collect();
        let collecting = hooks::collect();
        let (tracing, parameters) = Trace::begin_like(&models);
        drop(models);
        let mut parameters = parameters.into_iter();
        let inputs = map(arguments, |_| Expr(Ok(parameters.next().expect("a parameter for each leaf"))));
        let results = fun(inputs);
        let leaves: Result<Vec<core::Tensor>> = flatten(&results).0.into_iter().map(|leaf| leaf.0).collect();
        let axes = |leaf: &core::Tensor| -> NamedAxes { leaf.vectorized_axes().into() };
        let lanes = leaves.as_ref().map(|leaves| leaves.iter().map(axes).collect()).unwrap_or_default();
        // An error may be in no result, and a result may be void by an error of another trace.
        let closed = match leaves {
            Ok(leaves) => tracing.finish("jit", &leaves)?,
            Err(error) => return Err(tracing.finish("jit", &[]).err().unwrap_or(error)),
        };
        let table = collecting.finish();
        let region = Arc::new(closed.region);
        let executable = options.compiler()?.compile_donating(region, checks, &options.donate)?;
        Ok(Program { executable, captures: closed.captures, table, results, lanes })
    }

    /// Runs the program. `leaves` are of the types that it was compiled for.
    pub(crate) fn run(
        &self,
        leaves: Vec<Tensor>,
        options: &Options,
        location: Location,
    ) -> Result<R::Of<Tensor>> {
        let mut inputs: Vec<core::Tensor> = leaves.into_iter().map(|leaf| leaf.0).collect();
        inputs.extend(self.captures.iter().cloned());
        let backend = backend::of(&inputs)?;
        separate(&mut inputs, &options.donate)?;
        let hooks = RunHooks { table: &self.table, named: &options.hooks };
        let run = || self.executable.run(&backend, inputs, &hooks);
        // Whoever uses a donated argument after is told which call took it.
        let outputs = if options.donate.is_empty() { run()? } else { during(location, run)? };
        Ok(self.rebuild(outputs))
    }

    /// The container of the results.
    pub(crate) fn rebuild(&self, outputs: Vec<core::Tensor>) -> R::Of<Tensor> {
        let mut outputs = outputs.into_iter();
        let mut lanes = self.lanes.iter();
        map(&self.results, |_| {
            let output = outputs.next().expect("a tensor for each result");
            Tensor(output.with_vectorized(lanes.next().expect("axes for each result")))
        })
    }
}

/// Copies each donated tensor whose memory another argument has too, such as the equal results of an earlier call: memory
/// is given away once.
fn separate(inputs: &mut [core::Tensor], donate: &[usize]) -> Result<()> {
    for (index, &position) in donate.iter().enumerate() {
        let Some(own) = inputs.get(position).and_then(core::Tensor::buffer).cloned() else { continue };
        let is_shared = inputs.iter().enumerate().any(|(other, x)| {
            let is_later = donate.iter().skip(index + 1).any(|&later| later == other);
            other != position && !is_later && x.buffer().is_some_and(|buffer| Arc::ptr_eq(buffer, &own))
        });
        if is_shared && let Some(input) = inputs.get_mut(position) {
            *input = input.copy_to("donate", &own.backend())?;
        }
    }
    Ok(())
}
