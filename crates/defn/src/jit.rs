//! Compiled functions.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use defn_core::backend::{Checks, Compiler};
use defn_core::background::Progress;
use defn_core::{Error, Location, Result};

use crate::compile::{Key, Options, Program};
use crate::hooks::Outcome;
use crate::{Compiled, Expr, Tensor, Tree};

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
    A: Tree<Expr>,
    R: Tree<Expr>,
{
    Jit { fun, options: Options::default(), programs: Mutex::default(), types: PhantomData }
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
    options: Options,
    programs: Mutex<Programs<R>>,
    types: PhantomData<fn(A) -> R>,
}

/// The programs by what they were compiled for, with their numbers.
type Programs<R> = HashMap<Key, (usize, Arc<Program<R>>)>;

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
        self.with(|options| options.compiler = Some(compiler))
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
        self.with(|options| options.donate = positions.to_vec())
    }

    /// The same function, with checks at run time that the compiler would leave out. They cost time.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use defn::Checks;
    ///
    /// let take = jit(|(x, at): (Expr, Expr)| x.take(at, 0));
    /// let (x, far) = (tensor![1, 2, 3]?, tensor![7]?);
    /// assert_eq!(take.call((x.clone(), far.clone()))?.to_vec::<i32>()?, [3]);
    /// let checked = take.with_checks(Checks { index: true, ..Checks::default() });
    /// assert!(checked.call((x, far)).unwrap_err().to_string().starts_with("take: index 7 on axis 0"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn with_checks(self, checks: Checks) -> Self {
        self.with(|options| options.checks = checks)
    }

    /// The same function, which is compiled on a thread. Until its program is there, calls are evaluated one operation
    /// at a time. If the compiler fails they go on so, and the next one tells `tell` the error, once for each program.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x).in_background(|error| eprintln!("{error}"));
    /// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
    /// double.wait()?;
    /// assert_eq!(double.explain(&Tensor::scalar(3)?), "runs program 1 of 1");
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn in_background(self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        let tell = move |error: &Error| -> Result<()> {
            tell(error);
            Ok(())
        };
        self.with(|options| options.background = Some(Arc::new(tell)))
    }

    /// Waits until the programs that are compiled in the background ([`Jit::in_background`]) are there.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x).in_background(|error| eprintln!("{error}"));
    /// double.wait()?;
    /// for n in 0..3 {
    ///     assert_eq!(double.call(Tensor::scalar(n)?)?.item::<i32>()?, 2 * n);
    ///     double.wait()?;
    /// }
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The compiler's.
    pub fn wait(&self) -> Result<()> {
        let programs: Vec<_> = self.lock().values().map(|(_, program)| program.clone()).collect();
        programs.iter().try_for_each(|program| program.executable.wait(&|| Ok(())))
    }

    /// The same function, with a function for the hooks of a name ([`named_hook`](crate::named_hook)), which receives
    /// the tensors of the value.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let log = Arc::new(Mutex::new(Vec::new()));
    /// let kept = log.clone();
    /// let step = jit(|x: Expr| defn::named_hook(x + 1, "next"))
    ///     .with_hook("next", move |leaves| Ok(kept.lock().unwrap().push(leaves[0].item::<i32>()?)));
    /// step.call(Tensor::scalar(1)?)?;
    /// assert_eq!(*log.lock().unwrap(), [2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn with_hook<O: Outcome>(
        self,
        name: &str,
        fun: impl Fn(Vec<Tensor>) -> O + Send + Sync + 'static,
    ) -> Self {
        let fun = move |leaves: Vec<Tensor>| fun(leaves).into_result();
        self.with(|options| _ = options.hooks.insert(name.into(), Arc::new(fun)))
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
        self.lock().len()
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
        let (key, leaves) = Key::of(&arguments, &self.options);
        let program = self.program(&key, &arguments, &leaves)?;
        drop(arguments);
        program.run(leaves, &self.options, location)
    }

    /// The function compiled for the types of some arguments, which may be templates ([`Tensor::template`]). Calls of
    /// this function use the same program.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let norm = jit(|x: Expr| (&x * &x).sum(Axes::All, false).sqrt());
    /// let compiled = norm.compile(Tensor::template(&[2], DType::F32)?)?;
    /// assert_eq!(compiled.call(tensor![3.0, 4.0]?)?.item::<f32>()?, 5.0);
    /// assert!(compiled.call(tensor![3.0, 4.0, 5.0]?).is_err());
    /// assert_eq!(norm.programs(), 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error on expressions, with its line of the program; a function that the compiler refuses (`Compile`).
    pub fn compile(&self, arguments: A::Of<Tensor>) -> Result<Compiled<A, R>> {
        let (key, leaves) = Key::of(&arguments, &self.options);
        let program = self.program(&key, &arguments, &leaves)?;
        Ok(Compiled::new(key, program, self.options.clone()))
    }

    /// Whether a call with some arguments compiles, and why: in what they differ from the nearest of those that were
    /// compiled before.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let double = jit(|x: Expr| &x + &x);
    /// assert_eq!(double.explain(&tensor![1, 2]?), "compiles: nothing was compiled before");
    /// double.call(tensor![1, 2]?)?;
    /// assert_eq!(double.explain(&tensor![3, 4]?), "runs program 1 of 1");
    /// let text = double.explain(&tensor![1.0, 2.0, 3.0]?);
    /// assert_eq!(text, "compiles: the dtype and shape of tensor 0 changed from s32[2] to f32[3]");
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn explain(&self, arguments: &A::Of<Tensor>) -> String {
        let (key, _) = Key::of(arguments, &self.options);
        let programs = self.lock();
        let count = programs.len();
        match programs.get(&key) {
            Some((number, program)) => {
                let how = match program.executable.progress() {
                    Progress::Compiled => String::new(),
                    Progress::Compiling => ", which is compiled in the background".to_owned(),
                    Progress::Failed(error) => format!(", which was not compiled: {error}"),
                };
                format!("runs program {number} of {count}{how}")
            }
            None => {
                let known = programs.iter().map(|(known, (number, _))| (known, *number));
                format!("compiles: {}", why(known, &key))
            }
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        Jit { programs: Mutex::default(), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Programs<R>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program for some arguments: a known one, or a new one.
    fn program(&self, key: &Key, arguments: &A::Of<Tensor>, leaves: &[Tensor]) -> Result<Arc<Program<R>>> {
        let known = self.lock().get(key).map(|(_, program)| program.clone());
        if let Some(program) = known {
            return Ok(program);
        }
        let program = Arc::new(Program::compile(&self.fun, arguments, leaves, key.checks, &self.options)?);
        let mut programs = self.lock();
        let number = programs.len() + 1;
        // Another thread may have been faster: all keep one program.
        let (_, program) = programs.entry(key.clone()).or_insert((number, program));
        Ok(program.clone())
    }
}

/// The differences from the nearest of the known keys; of equally near ones, the newest.
fn why<'a>(known: impl Iterator<Item = (&'a Key, usize)>, new: &Key) -> String {
    let differences = known.map(|(key, number)| (key.differences(new), number));
    match differences.min_by_key(|(differences, number)| (differences.len(), std::cmp::Reverse(*number))) {
        Some((differences, _)) => differences.join(", and "),
        None => "nothing was compiled before".to_owned(),
    }
}
