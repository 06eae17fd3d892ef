//! Compiled functions.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use defn_core as core;
use defn_core::backend::{Checks, Compiler, Executable, NoHooks};
use defn_core::location::during;
use defn_core::trace::Trace;
use defn_core::vectorize::NamedAxes;
use defn_core::{Location, Result, TensorType};

use crate::tree::{flatten, map};
use crate::{Expr, Tensor, Tree, backend};

/// A function of expressions as a function of tensors. It is traced and compiled at the first call with arguments of
/// new types; other calls only run it.
///
/// The function takes one container, a tuple if there are several arguments, and returns one. Tensors that it captures
/// are hidden inputs of the compiled program, read when the function is traced.
///
/// ```
/// use defn::prelude::*;
///
/// let softmax = jit(|x: Expr| {
///     let e = (&x - x.reduce_max(-1, true)).exp();
///     &e / e.sum(-1, true)
/// });
/// let y = softmax.call(Tensor::from_slice(&[1f32, 2.0, 3.0], &[3])?)?;
/// assert!((y.sum(Axes::All, false)?.item::<f32>()? - 1.0).abs() < 1e-6);
///
/// let error = jit(|(a, b): (Expr, Expr)| a + b)
///     .call((Tensor::from_slice(&[1, 2], &[2])?, Tensor::from_slice(&[1, 2, 3], &[3])?))
///     .unwrap_err();
/// assert!(error.to_string().starts_with("add: shapes [2] and [3] do not broadcast"));
/// # Ok::<(), defn::Error>(())
/// ```
pub fn jit<A, R, F>(fun: F) -> Jit<F, A, R>
where
    F: Fn(A) -> R,
{
    Jit { fun, compiler: None, donate: Vec::new(), programs: Mutex::default(), types: PhantomData }
}

/// A compiled function. [`jit`] returns it.
///
/// Threads may share it; each combination of argument types is compiled once and kept.
///
/// ```
/// use defn::prelude::*;
///
/// let double = jit(|x: Expr| &x + &x);
/// assert_eq!(format!("{double:?}"), "Jit(0 programs)");
/// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
/// assert_eq!(format!("{double:?}"), "Jit(1 programs)");
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use = "a function does nothing unless it is called"]
pub struct Jit<F, A, R> {
    fun: F,
    compiler: Option<Arc<dyn Compiler>>,
    donate: Vec<usize>,
    programs: Mutex<HashMap<Key, Arc<Program<R>>>>,
    types: PhantomData<fn(A) -> R>,
}

/// What a program was compiled for: the types and vectorized axes of the arguments, and the lengths of vectors
/// among them.
type Key = (Vec<(TensorType, NamedAxes)>, Vec<usize>);

struct Program<R> {
    executable: Arc<dyn Executable>,
    captures: Vec<core::Tensor>,
    /// What the function returned, for its structure.
    results: R,
    /// The vectorized axes of the results.
    lanes: Vec<NamedAxes>,
}

impl<F, A, R> fmt::Debug for Jit<F, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jit({} programs)", self.programs.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}

impl<F, A, R> Jit<F, A, R>
where
    F: Fn(A) -> R,
    A: Tree<Expr>,
    A::Of<Tensor>: Tree<Tensor, Of<Expr> = A>,
    R: Tree<Expr>,
{
    /// The same function with another compiler than the default one. Programs that are compiled already are dropped.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x).with_compiler(defn::compiler("evaluator")?);
    /// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn with_compiler(self, compiler: Arc<dyn Compiler>) -> Self {
        Jit { compiler: Some(compiler), programs: Mutex::default(), ..self }
    }

    /// The same function, which reuses the memory of some tensors of the argument for its results. `positions` count
    /// all leaves of the argument. Those tensors are freed by a call.
    ///
    /// Only some compilers reuse arguments; others refuse at the call.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let next = jit(|x: Expr| x + 1).donating(&[0]);
    /// let x = Tensor::scalar(1)?;
    /// assert_eq!(next.call(x.clone())?.item::<i32>()?, 2);
    /// assert!(x.item::<i32>().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn donating(self, positions: &[usize]) -> Self {
        Jit { donate: positions.to_vec(), programs: Mutex::default(), ..self }
    }

    /// The number of programs that were compiled, one for each combination of argument types.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x);
    /// for x in [Tensor::scalar(1)?, Tensor::scalar(2)?, Tensor::scalar(0.5)?] {
    ///     double.call(x)?;
    /// }
    /// assert_eq!(double.programs(), 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn programs(&self) -> usize {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Runs the function, and compiles it first if the types of the arguments are new. The memory of arguments that
    /// have no other owner may be reused.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let norm = jit(|(x, y): (Expr, Expr)| (&x * &x + &y * &y).sqrt());
    /// let (x, y) = (Tensor::scalar(3.0)?, Tensor::scalar(4.0)?);
    /// assert_eq!(norm.call((x, y))?.item::<f32>()?, 5.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error on expressions, with its line of the program; a function that the compiler refuses (`Compile`);
    /// arguments that were freed (`Backend`); too little memory (`OutOfMemory`).
    #[track_caller]
    pub fn call(&self, arguments: A::Of<Tensor>) -> Result<R::Of<Tensor>> {
        let location = Location::caller();
        let (leaves, lengths) = flatten(&arguments);
        let types =
            leaves.iter().map(|leaf| (leaf.0.ty().clone(), leaf.0.vectorized_axes().into())).collect();
        let key = (types, lengths);
        let known = self.programs.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let program = match known {
            Some(program) => program,
            None => {
                let program = Arc::new(self.compile(&arguments, &leaves)?);
                let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
                programs.insert(key, program.clone());
                program
            }
        };
        drop(arguments);
        let mut inputs: Vec<core::Tensor> = leaves.into_iter().map(|leaf| leaf.0).collect();
        inputs.extend(program.captures.iter().cloned());
        let backend = match inputs.iter().find_map(core::Tensor::backend) {
            Some(backend) => backend,
            None => backend::default_backend()?,
        };
        let run = || program.executable.run(&backend, inputs, &NoHooks);
        // Whoever uses a donated argument after is told which call took it.
        let outputs = if self.donate.is_empty() { run()? } else { during(location, run)? };
        let mut outputs = outputs.into_iter();
        let mut lanes = program.lanes.iter();
        Ok(map(&program.results, |_| {
            let output = outputs.next().expect("a tensor for each result");
            Tensor(output.with_vectorized(lanes.next().expect("axes for each result")))
        }))
    }

    fn compile(&self, arguments: &A::Of<Tensor>, leaves: &[Tensor]) -> Result<Program<R>> {
        let models: Vec<core::Tensor> = leaves.iter().map(|leaf| leaf.0.clone()).collect();
        let (tracing, parameters) = Trace::begin_like(&models);
        drop(models);
        let mut parameters = parameters.into_iter();
        let inputs = map(arguments, |_| Expr(Ok(parameters.next().expect("a parameter for each leaf"))));
        let results = (self.fun)(inputs);
        let leaves: Result<Vec<core::Tensor>> = flatten(&results).0.into_iter().map(|leaf| leaf.0).collect();
        let axes = |leaf: &core::Tensor| -> NamedAxes { leaf.vectorized_axes().into() };
        let lanes = leaves.as_ref().map(|leaves| leaves.iter().map(axes).collect()).unwrap_or_default();
        // An error may be in no result, and a result may be void by an error of another trace.
        let closed = match leaves {
            Ok(leaves) => tracing.finish("jit", &leaves)?,
            Err(error) => return Err(tracing.finish("jit", &[]).err().unwrap_or(error)),
        };
        let compiler = match &self.compiler {
            Some(compiler) => compiler.clone(),
            None => backend::compiler(backend::DEFAULT_COMPILER)?,
        };
        let region = Arc::new(closed.region);
        let executable = compiler.compile_donating(region, Checks::default(), &self.donate)?;
        Ok(Program { executable, captures: closed.captures, results, lanes })
    }
}
