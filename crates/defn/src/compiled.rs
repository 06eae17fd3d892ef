//! Functions that are compiled for one combination of argument types.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use defn_core as core;
use defn_core::backend::MemoryNeed;
use defn_core::background::Progress;
use defn_core::profile::{Recorder, observing};
use defn_core::region::Region;
use defn_core::{ErrorKind, Location, Result};

use crate::compile::{Key, Options, Program};
use crate::graph::{Rule, Stages};
use crate::saved;
use crate::{Expr, Profile, Tensor, Tree};

/// A function that is compiled for one combination of argument types. [`Jit::compile`](crate::Jit::compile) makes it.
///
/// Its type does not name the function, so that it can be a field of a struct. Threads may share it. `{}` prints the
/// graph of its results.
///
/// ```
/// use defn::prelude::*;
/// use defn::Compiled;
///
/// struct Model {
///     predict: Compiled<(Expr, Expr), Expr>,
///     weight: Tensor,
/// }
///
/// let predict = jit(|(weight, x): (Expr, Expr)| x.matmul(weight).tanh());
/// let (weight, x) = (Tensor::eye(&[2, 2], DType::F32)?, Tensor::template(&[1, 2], DType::F32)?);
/// let model = Model { predict: predict.compile((weight.clone(), x))?, weight };
/// let y = model.predict.call((model.weight.clone(), tensor![[0.0, 0.0]]?))?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0]);
/// assert!(model.predict.to_string().contains("tanh"));
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use = "a function does nothing unless it is called"]
pub struct Compiled<A, R> {
    key: Key,
    program: Arc<Program<R>>,
    options: Options,
    types: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for Compiled<A, R> {
    fn clone(&self) -> Self {
        let (key, program, options) = (self.key.clone(), self.program.clone(), self.options.clone());
        Compiled { key, program, options, types: PhantomData }
    }
}

impl<A, R> fmt::Debug for Compiled<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = self.program.executable.program();
        let types = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let inputs = types(&mut region.parameters().iter().map(ToString::to_string));
        let results = types(&mut region.result_types().map(ToString::to_string));
        write!(f, "Compiled(({inputs}) -> ({results}))")
    }
}

impl<A, R> fmt::Display for Compiled<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&core::print::display(self.graph(), self.graph().results()))
    }
}

impl<A, R> Compiled<A, R> {
    /// The typed graph of the function, without the compiler's changes.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.exp() + 1.0).compile(Tensor::template(&[3], DType::F32)?)?;
    /// assert_eq!(f.graph().result_types().next().unwrap().to_string(), "f32[3]");
    /// assert!(f.graph().to_text().contains("exp"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn graph(&self) -> &Arc<Region> {
        self.program.executable.program()
    }

    /// The memory that a call allocates, in bytes.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.exp() + 1.0).compile(Tensor::template(&[3], DType::F32)?)?;
    /// let memory = f.memory()?;
    /// assert_eq!((memory.arguments, memory.results, memory.temporaries), (12, 12, 0));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A compiler that does not plan memory (`Compile`).
    pub fn memory(&self) -> Result<MemoryNeed> {
        self.program.executable.memory()
    }

    /// The loops and the machine code that the compiler has made, as text, for this processor or for another set of
    /// instructions by its name.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.exp() + 1.0).compile(Tensor::template(&[3], DType::F32)?)?;
    /// assert!(f.asm(Some("avx2"))?.starts_with("nest: "));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A compiler that does not show code, and a set of instructions that it does not know (`Compile`, `Option`).
    pub fn asm(&self, instructions: Option<&str>) -> Result<String> {
        self.program.executable.assembly(instructions)
    }
}

impl<A, R> Compiled<A, R>
where
    A: Tree<Expr>,
    A::Of<Tensor>: Tree<Tensor, Of<Expr> = A>,
    R: Tree<Expr>,
{
    pub(crate) fn new(key: Key, program: Arc<Program<R>>, options: Options) -> Compiled<A, R> {
        Compiled { key, program, options, types: PhantomData }
    }

    /// Runs the function.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x + 1).compile(Tensor::template(&[], DType::S32)?)?;
    /// assert_eq!(f.call(Tensor::scalar(1)?)?.item::<i32>()?, 2);
    /// let error = f.call(Tensor::scalar(1.0)?).unwrap_err();
    /// assert!(error.to_string().starts_with("call: argument 0 is f32, the compiled function takes s32"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arguments of other types, or a container of another structure (`Container`); arguments that were freed
    /// (`Backend`); too little memory (`OutOfMemory`); the errors of hooks.
    #[track_caller]
    pub fn call(&self, arguments: A::Of<Tensor>) -> Result<R::Of<Tensor>> {
        let location = Location::caller();
        let leaves = self.leaves(&arguments).map_err(|error| error.at(Some(location.clone())))?;
        drop(arguments);
        self.program.run(leaves, &self.options, location)
    }

    /// Whether the program is there; it may be compiled in the background
    /// ([`Jit::in_background`](crate::Jit::in_background)).
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x).in_background(|error| eprintln!("{error}"));
    /// let double = double.compile(Tensor::template(&[], DType::S32)?)?;
    /// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
    /// double.wait()?;
    /// assert!(double.is_ready());
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn is_ready(&self) -> bool {
        match self.program.executable.progress() {
            Progress::Compiled => true,
            Progress::Compiling | Progress::Failed(_) => false,
        }
    }

    /// Waits until the program is there; see [`Compiled::is_ready`].
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x + 1).compile(Tensor::template(&[], DType::S32)?)?;
    /// f.wait()?;
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The compiler's.
    pub fn wait(&self) -> Result<()> {
        self.program.executable.wait(&|| Ok(()))
    }

    /// Runs the function once, and measures the time of each of its steps. The first run also allocates memory and wakes
    /// threads.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.exp().sum(Axes::All, false)).compile(Tensor::template(&[1000], DType::F32)?)?;
    /// let (sum, profile) = f.profile(Tensor::full(&[1000], DType::F32, 0.0)?)?;
    /// assert_eq!(sum.item::<f32>()?, 1000.0);
    /// assert_eq!(profile.steps()[0].name, "exp sum");
    /// println!("{profile}");
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`].
    #[track_caller]
    pub fn profile(&self, arguments: A::Of<Tensor>) -> Result<(R::Of<Tensor>, Profile)> {
        let location = Location::caller();
        let recorder = Arc::new(Recorder::default());
        let leaves = self.leaves(&arguments).map_err(|error| error.at(Some(location.clone())))?;
        drop(arguments);
        let result = observing(&recorder, || self.program.run(leaves, &self.options, location))?;
        Ok((result, Profile::new(recorder.record())?))
    }

    /// Splits the function into stages by a rule, and compiles each of them.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use defn::graph::Rule;
    ///
    /// let f = jit(|x: Expr| (x + 1.0).sin().exp()).compile(Tensor::template(&[3], DType::F32)?)?;
    /// let stages = f.split(&Rule::Every(1))?;
    /// assert_eq!(stages.len(), 3);
    /// let x = tensor![0.0, 1.0, 2.0]?;
    /// assert_eq!(stages.call(x.clone())?.to_vec::<f32>()?, f.call(x)?.to_vec::<f32>()?);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rule that does not fit the graph (`Option`), and a stage that the compiler refuses (`Compile`).
    #[track_caller]
    pub fn split(&self, rule: &Rule) -> Result<Stages<A, R>> {
        let location = Location::caller();
        let split = || Stages::new(self.clone(), core::stage::split_by(self.graph(), rule)?);
        split().map_err(|error| error.at(Some(location)))
    }

    /// Writes the function to a file, with the tensors that it captured. [`Saved::load`](crate::Saved::load) reads it, in this process or
    /// another, and compiles it there.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use defn::Saved;
    ///
    /// let path = std::env::temp_dir().join(format!("defn-example-{}.program", std::process::id()));
    /// let weight = tensor![2.0, 3.0]?;
    /// jit(move |x: Expr| x * &weight).compile(Tensor::template(&[2], DType::F32)?)?.save(&path)?;
    ///
    /// let loaded = Saved::load(&path)?;
    /// assert_eq!(loaded.call(&tensor![1.0, 10.0]?)?[0].to_vec::<f32>()?, [2.0, 30.0]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A program with hooks or other functions of this process (`Option`), captured tensors that were freed (`Backend`),
    /// and errors of the system (`Host`).
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let location = Location::caller();
        saved::write(path.as_ref(), &self.key, &self.program).map_err(|error| error.at(Some(location)))
    }

    pub(crate) fn program(&self) -> &Program<R> {
        &self.program
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The leaves of arguments of the right types.
    pub(crate) fn leaves(&self, arguments: &A::Of<Tensor>) -> Result<Vec<Tensor>> {
        let (key, leaves) = Key::of(arguments, &self.options);
        self.key.require("call", &key)?;
        Ok(leaves)
    }

    /// Refuses a function whose last results are not of the types of a state, which it takes last.
    pub(crate) fn require_last(&self, count: usize) -> Result<()> {
        let graph = self.graph();
        let results: Vec<_> = graph.result_types().zip(&self.program.lanes).collect();
        let results = results.iter().rev().take(count).rev();
        let arguments = self.key.types.iter().skip(self.key.types.len().saturating_sub(count));
        for (index, ((got, lanes), (expected, axes))) in results.zip(arguments).enumerate() {
            let plain = core::Tensor::template((*got).clone()).with_vectorized(lanes);
            if *lanes != axes || plain.ty() != expected {
                let (got, expected) = (plain.ty().clone(), expected.clone());
                let (what, hint) = ("the state's tensor".to_owned(), "");
                return Err(ErrorKind::LoopState { op: "stream", what, index, expected, got, hint }.into());
            }
        }
        Ok(())
    }
}
