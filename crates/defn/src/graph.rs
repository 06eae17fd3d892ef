//! Graphs of compiled functions: their cost, their text and pictures, and their stages.
//!
//! [`Compiled::graph`](crate::Compiled::graph) gives the graph, [`Compiled::split`](crate::Compiled::split) cuts it into
//! stages.
//!
//! ```
//! use defn::graph::{cost, diff, mermaid};
//! use defn::prelude::*;
//!
//! let x = Tensor::template(&[3], DType::F32)?;
//! let (old, new) = (jit(|x: Expr| x.sin()).compile(x.clone())?, jit(|x: Expr| x.cos()).compile(x)?);
//! assert_eq!(cost(old.graph()).flops, 3);
//! assert!(diff(old.graph(), new.graph()).to_string().contains("cos"));
//! assert!(mermaid(old.graph()).contains("sin"));
//! # Ok::<(), defn::Error>(())
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use defn_core as core;
use defn_core::backend::{Backend, Executable};
use defn_core::stage::{Chain, StageExecutable};
use defn_core::{Location, Result};

/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Cost, cost};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let cost: Cost = cost(f.graph());
/// assert_eq!((cost.flops, cost.read), (4, 16));
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::cost::Cost;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::cost;
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// assert_eq!(cost(f.graph()).flops, 4);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::cost::cost;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Difference, diff};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let none: Difference = diff(f.graph(), f.graph());
/// assert!(none.is_empty());
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::diff::Difference;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::diff;
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// assert!(diff(f.graph(), f.graph()).is_empty());
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::diff::diff;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::dot;
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// assert!(dot(f.graph()).starts_with("digraph"));
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::print::dot;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::mermaid;
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// assert!(mermaid(f.graph()).starts_with("flowchart"));
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::print::mermaid;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::Region;
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let again = Region::from_text(&f.graph().to_text())?;
/// assert_eq!(again, **f.graph());
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::region::Region;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Decision, split};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let stages = split(f.graph(), |visit| {
///     Ok(if visit.name() == "sin" { Decision::After } else { Decision::None })
/// })?;
/// assert_eq!(stages.len(), 2);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::stage::Decision;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Marks, Rule};
///
/// let f = jit(|x: Expr| x.sin().mark("a").exp().mark("b").sqrt());
/// let f = f.compile(Tensor::template(&[2], DType::F32)?)?;
/// assert_eq!(f.split(&Rule::Marks(Marks::All))?.len(), 3);
/// assert_eq!(f.split(&Rule::Marks(Marks::Named(vec!["b".into()])))?.len(), 2);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::stage::Marks;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Decision, Rule};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// assert_eq!(f.split(&Rule::Every(1))?.len(), 2);
/// let at_exp = Rule::Ops { names: vec!["exp".into()], decision: Decision::Before };
/// assert_eq!(f.split(&at_exp)?.len(), 2);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::stage::Rule;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Rule, Stage};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let stages = f.split(&Rule::Every(1))?;
/// let last: &Stage = &stages.stages()[1];
/// assert_eq!((last.position(), last.count()), (1, 2));
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::stage::Stage;
/// ```
/// # use defn::prelude::*;
/// use defn::graph::{Decision, split};
/// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
/// let stages = split(f.graph(), |_| Ok(Decision::After))?;
/// assert_eq!(stages.len(), 2);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::stage::split;

use crate::hooks::RunHooks;
use crate::{Compiled, Expr, Tensor, Tree, backend};

/// The stages of a function, each compiled by itself. [`Compiled::split`] makes them.
///
/// ```
/// use defn::graph::{Marks, Rule};
/// use defn::prelude::*;
///
/// let model = jit(|x: Expr| x.sin().mark("features").exp());
/// let stages = model.compile(Tensor::template(&[2], DType::F32)?)?.split(&Rule::Marks(Marks::All))?;
/// assert_eq!(stages.len(), 2);
/// assert_eq!(stages.call(tensor![0.0, 0.0]?)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Stages<A, R> {
    whole: Compiled<A, R>,
    stages: Vec<Stage>,
    executables: Vec<Arc<dyn Executable>>,
    /// The stages on the backend of the last call.
    last: Mutex<Option<(Arc<dyn Backend>, Arc<Chain>)>>,
}

impl<A, R> fmt::Debug for Stages<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stages({} of {:?})", self.stages.len(), self.whole)
    }
}

impl<A, R> Stages<A, R> {
    /// The number of stages, at least 1.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
    /// assert_eq!(f.split(&Rule::Balanced(2))?.len(), 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "there is always a stage")]
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// The stages: the graph of each, and where its inputs come from.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.sin().exp()).compile(Tensor::template(&[2], DType::F32)?)?;
    /// let stages = f.split(&Rule::Every(1))?;
    /// assert_eq!(stages.stages()[1].needs().to_vec(), [0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

impl<A, R> Stages<A, R>
where
    A: Tree<Expr>,
    A::Of<Tensor>: Tree<Tensor, Of<Expr> = A>,
    R: Tree<Expr>,
{
    pub(crate) fn new(whole: Compiled<A, R>, stages: Vec<Stage>) -> Result<Stages<A, R>> {
        let (compiler, checks) = (whole.options().compiler()?, whole.options().checks());
        let compile = |stage: &Stage| compiler.compile(stage.region().clone(), checks);
        let executables = stages.iter().map(compile).collect::<Result<_>>()?;
        Ok(Stages { whole, stages, executables, last: Mutex::default() })
    }

    /// Runs the stages one after the other.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| (x + 1) * 2).compile(Tensor::template(&[], DType::S32)?)?;
    /// assert_eq!(f.split(&Rule::Every(1))?.call(Tensor::scalar(3)?)?.item::<i32>()?, 8);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`].
    #[track_caller]
    pub fn call(&self, arguments: A::Of<Tensor>) -> Result<R::Of<Tensor>> {
        let location = Location::caller();
        let run = || {
            let inputs = self.inputs(&arguments)?;
            self.chain(&inputs)?.run(inputs, &self.hooks())
        };
        let outputs = run().map_err(|error| error.at(Some(location)))?;
        Ok(self.whole.program().rebuild(outputs))
    }

    /// Runs the stages for several arguments on so many threads, as a pipeline: a stage takes the next argument while later
    /// stages work on those before it. Stages of one argument that do not need each other run at the same time.
    ///
    /// Each stage sees the arguments in order, so that hooks are called in the order of the arguments.
    ///
    /// ```
    /// # use defn::graph::Rule;
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| (x + 1) * 2).compile(Tensor::template(&[], DType::S32)?)?;
    /// let stages = f.split(&Rule::Every(1))?;
    /// let arguments = (0..4).map(Tensor::scalar).collect::<Result<_, _>>()?;
    /// let results = stages.call_each(arguments, 2)?;
    /// assert_eq!(results[3].item::<i32>()?, 8);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No threads (`Option`), and those of [`Compiled::call`]; the first one ends the work.
    #[track_caller]
    pub fn call_each(&self, arguments: Vec<A::Of<Tensor>>, threads: usize) -> Result<Vec<R::Of<Tensor>>> {
        let location = Location::caller();
        let run = || {
            let lists = arguments.iter().map(|one| self.inputs(one)).collect::<Result<Vec<_>>>()?;
            self.chain(lists.iter().flatten())?.run_each(lists, threads, &self.hooks())
        };
        let outputs = run().map_err(|error| error.at(Some(location)))?;
        Ok(outputs.into_iter().map(|outputs| self.whole.program().rebuild(outputs)).collect())
    }

    /// The stages on the backend of tensors, or on the default one.
    fn chain<'a>(&self, tensors: impl IntoIterator<Item = &'a core::Tensor>) -> Result<Arc<Chain>> {
        let backend = backend::of(tensors)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, chain)) = &*last
            && (Arc::ptr_eq(known, &backend) || known.is_same_device(&*backend))
        {
            return Ok(chain.clone());
        }
        let place = |executable: &Arc<dyn Executable>| StageExecutable {
            executable: executable.clone(),
            backend: backend.clone(),
        };
        let chain = Arc::new(Chain::new(&self.stages, self.executables.iter().map(place).collect())?);
        *last = Some((backend, chain.clone()));
        Ok(chain)
    }

    fn hooks(&self) -> RunHooks<'_> {
        RunHooks { table: &self.whole.program().table, named: &self.whole.options().hooks }
    }

    /// The inputs of the whole graph: the arguments, then what the function captured.
    fn inputs(&self, arguments: &A::Of<Tensor>) -> Result<Vec<core::Tensor>> {
        let leaves = self.whole.leaves(arguments)?.into_iter().map(|leaf| leaf.0.flat());
        Ok(leaves.chain(self.whole.program().captures.iter().cloned()).collect())
    }
}
