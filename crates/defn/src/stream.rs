//! Streams: chunks are sent through a compiled step, which carries a state, on a thread of its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use defn_core::{Error, ErrorKind, Location, Result};

use crate::compile::{Key, Options};
use crate::control::Exprs;
use crate::files::failed;
use crate::tree::{flatten, map};
use crate::{Expr, Jit, Tensor, Tree, jit};

/// Chunks that are sent through a compiled step on a thread of its own; the step carries a state. [`stream`] starts one.
///
/// As an iterator it yields the outputs of what was sent and not received yet, and waits for them; with the feature
/// `futures` it is an asynchronous stream of them too. A stream that is dropped ends its thread after the chunk that it
/// is working on.
///
/// ```
/// use defn::prelude::*;
/// use defn::stream;
///
/// let running = stream(
///     |chunk: Expr, sum: Expr| (sum.clone(), chunk + sum),
///     Tensor::template(&[], DType::S32)?,
///     Tensor::scalar(0)?,
///     4,
/// )?;
/// for i in 1..4 {
///     running.send(Tensor::scalar(i)?)?;
/// }
/// let sums = (&running).map(|sum| sum?.item::<i32>()).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(sums, [0, 1, 3]);
/// assert_eq!(running.done()?.item::<i32>()?, 6);
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Stream<C, S, O>
where
    C: Exprs,
    S: Exprs,
    O: Exprs,
{
    shared: Arc<Shared<C::Of<Tensor>, S::Of<Tensor>, O::Of<Tensor>>>,
    size: usize,
    /// The types of the chunks.
    chunk: Key,
    thread: Option<JoinHandle<()>>,
}

/// What the threads of a stream share.
struct Shared<C, S, O> {
    state: Mutex<State<C, S, O>>,
    changed: Condvar,
}

struct State<C, S, O> {
    /// Chunks that no step has taken yet, with the lines that sent them.
    chunks: VecDeque<(C, Location)>,
    outputs: VecDeque<O>,
    /// The number of chunks whose outputs were not received.
    under_way: usize,
    /// The state; `None` while a step runs.
    carried: Option<S>,
    /// No more chunks are sent.
    has_ended: bool,
    /// The outputs are no longer wanted.
    is_closed: bool,
    /// The thread has ended.
    is_finished: bool,
    error: Option<Error>,
    #[cfg(feature = "futures")]
    waker: Option<std::task::Waker>,
}

impl<C, S, O> Shared<C, S, O> {
    fn lock(&self) -> MutexGuard<'_, State<C, S, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<C, S, O>>) -> MutexGuard<'a, State<C, S, O>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all that wait.
    fn notify(&self, state: &mut State<C, S, O>) {
        self.changed.notify_all();
        state.wake();
    }

    /// Runs steps until the stream ends, is closed, or a step fails.
    fn work(&self, step: impl Fn(C, S) -> Result<(O, S)>) {
        let mut state = self.lock();
        loop {
            if state.is_closed || (state.has_ended && state.chunks.is_empty()) {
                break;
            }
            let Some((chunk, line)) = state.chunks.pop_front() else {
                state = self.wait(state);
                continue;
            };
            let Some(carried) = state.carried.take() else { break };
            drop(state);
            // An error is that of the line that sent the chunk: no line of the user's runs here.
            let done = step(chunk, carried).map_err(|error| error.at(Some(line)));
            state = self.lock();
            match done {
                Ok((output, carried)) => {
                    state.outputs.push_back(output);
                    state.carried = Some(carried);
                    self.notify(&mut state);
                }
                Err(error) => {
                    state.error = Some(error);
                    break;
                }
            }
        }
        state.is_finished = true;
        self.notify(&mut state);
    }
}

impl<C, S, O> State<C, S, O> {
    #[cfg(feature = "futures")]
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    #[cfg(not(feature = "futures"))]
    fn wake(&mut self) {}
}

/// Ends the stream also when a step panics, so that nobody waits forever.
struct Finish<'a, C, S, O>(&'a Shared<C, S, O>);

impl<C, S, O> Drop for Finish<'_, C, S, O> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if !state.is_finished {
            state.is_finished = true;
            state.error.get_or_insert(Error::other("stream: the step has panicked"));
            self.0.notify(&mut state);
        }
    }
}

/// Starts a stream: `step` takes a chunk and the state, and returns an output and the next state. `chunk` is a template of
/// the chunks ([`Tensor::template`]), `state` the first state. At most `size` chunks are under way at a time.
///
/// - Shapes and dtypes: the step must keep those of the state.
///
/// ```
/// use defn::prelude::*;
/// use defn::stream;
///
/// let smooth = |x: Expr, mean: Expr| {
///     let mean = &mean + 0.5 * (x - &mean);
///     (mean.clone(), mean)
/// };
/// let means = stream(smooth, Tensor::template(&[], DType::F32)?, Tensor::scalar(0.0)?, 2)?;
/// means.send(Tensor::scalar(4.0)?)?;
/// assert_eq!(means.recv()?.item::<f32>()?, 2.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Those of [`Jit::compile`], a step that returns another type of state than it took (`Container`), and a size of 0
/// (`Option`).
#[track_caller]
pub fn stream<C, S, O>(
    step: impl Fn(C, S) -> (O, S),
    chunk: C::Of<Tensor>,
    state: S::Of<Tensor>,
    size: usize,
) -> Result<Stream<C, S, O>>
where
    C: Exprs + 'static,
    S: Exprs + Send + Sync + 'static,
    O: Exprs + Send + Sync + 'static,
    C::Of<Tensor>: Tree<Tensor, Of<Expr> = C> + Send,
    S::Of<Tensor>: Tree<Tensor, Of<Expr> = S, Of<Tensor> = S::Of<Tensor>> + Send,
    O::Of<Tensor>: Send,
{
    jit(move |(chunk, state): (C, S)| step(chunk, state)).stream(chunk, state, size)
}

impl<F, C, S, O> Jit<F, (C, S), (O, S)>
where
    F: Fn((C, S)) -> (O, S),
    C: Exprs + 'static,
    S: Exprs + Send + Sync + 'static,
    O: Exprs + Send + Sync + 'static,
    C::Of<Tensor>: Tree<Tensor, Of<Expr> = C> + Send,
    S::Of<Tensor>: Tree<Tensor, Of<Expr> = S, Of<Tensor> = S::Of<Tensor>> + Send,
    O::Of<Tensor>: Send,
{
    /// A stream through this function, with its compiler, checks and hooks: see [`stream`].
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let count = jit(|(_, n): (Expr, Expr)| (n.clone(), n + 1))
    ///     .with_compiler(defn::compiler("evaluator")?)
    ///     .stream(Tensor::template(&[], DType::F32)?, Tensor::scalar(0)?, 8)?;
    /// count.send(Tensor::scalar(1.5)?)?;
    /// assert_eq!(count.done()?.item::<i32>()?, 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`stream`].
    #[track_caller]
    pub fn stream(&self, chunk: C::Of<Tensor>, state: S::Of<Tensor>, size: usize) -> Result<Stream<C, S, O>> {
        let location = Location::caller();
        self.start(chunk, state, size).map_err(|error| error.at(Some(location)))
    }

    fn start(&self, chunk: C::Of<Tensor>, state: S::Of<Tensor>, size: usize) -> Result<Stream<C, S, O>> {
        if size == 0 {
            let (given, required) = ("0".to_owned(), "1 or more".to_owned());
            return Err(ErrorKind::OptionValue { op: "stream", option: "size", given, required }.into());
        }
        let chunk_key = Key::of(&chunk, &Options::default()).0;
        let step = self.compile((chunk, map(&state, Tensor::clone)))?;
        step.require_last(flatten(&state).0.len())?;
        let state = State {
            chunks: VecDeque::new(),
            outputs: VecDeque::new(),
            under_way: 0,
            carried: Some(state),
            has_ended: false,
            is_closed: false,
            is_finished: false,
            error: None,
            #[cfg(feature = "futures")]
            waker: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = shared.clone();
        let run = move || {
            let _finish = Finish(&*of_thread);
            of_thread.work(|chunk, state| step.call((chunk, state)));
        };
        let thread = std::thread::Builder::new().name("defn-stream".to_owned()).spawn(run).map_err(failed)?;
        Ok(Stream { shared, size, chunk: chunk_key, thread: Some(thread) })
    }
}

impl<C: Exprs, S: Exprs, O: Exprs> Stream<C, S, O>
where
    C::Of<Tensor>: Tree<Tensor>,
{
    /// Sends a chunk; waits while as many are under way as the stream holds.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// # let step = |x: Expr, n: Expr| (x, n + 1);
    /// let stream = defn::stream(step, Tensor::template(&[], DType::F32)?, Tensor::scalar(0)?, 1)?;
    /// stream.send(Tensor::scalar(1.5)?)?;
    /// assert!(stream.send(Tensor::scalar(true)?).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A chunk of another type or structure (`Container`, `Option`), a stream that has ended (`Stream`), and the error of an earlier
    /// step.
    #[track_caller]
    pub fn send(&self, chunk: C::Of<Tensor>) -> Result<()> {
        let location = Location::caller();
        let send = || {
            self.chunk.require("send", &Key::of(&chunk, &Options::default()).0)?;
            let mut state = self.shared.lock();
            loop {
                state.require_working("send")?;
                if state.under_way < self.size {
                    break;
                }
                state = self.shared.wait(state);
            }
            state.under_way += 1;
            state.chunks.push_back((chunk, location.clone()));
            self.shared.notify(&mut state);
            Ok(())
        };
        send().map_err(|error: Error| error.at(Some(location.clone())))
    }

    /// The output of the oldest chunk whose output was not received; waits for it.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// # let step = |x: Expr, n: Expr| (x, n + 1);
    /// let stream = defn::stream(step, Tensor::template(&[], DType::F32)?, Tensor::scalar(0)?, 1)?;
    /// stream.send(Tensor::scalar(1.5)?)?;
    /// assert_eq!(stream.recv()?.item::<f32>()?, 1.5);
    /// assert!(stream.recv().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No chunk under way (`Stream`), and the error of the step.
    #[track_caller]
    pub fn recv(&self) -> Result<O::Of<Tensor>> {
        let location = Location::caller();
        let receive = || {
            let found = self.receive(|state| Some(self.shared.wait(state)));
            found.unwrap_or_else(|| Err(misuse("recv", "without a chunk under way", "given one by send")))
        };
        receive().map_err(|error| error.at(Some(location)))
    }

    /// Ends the stream, and returns the state after the last chunk that was sent. Outputs that were not received are lost.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// # let step = |x: Expr, n: Expr| (x, n + 1);
    /// let stream = defn::stream(step, Tensor::template(&[], DType::F32)?, Tensor::scalar(0)?, 2)?;
    /// stream.send(Tensor::scalar(1.5)?)?;
    /// stream.send(Tensor::scalar(2.5)?)?;
    /// assert_eq!(stream.done()?.item::<i32>()?, 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a step.
    #[track_caller]
    pub fn done(self) -> Result<S::Of<Tensor>> {
        let mut state = self.shared.lock();
        state.has_ended = true;
        self.shared.notify(&mut state);
        while !state.is_finished {
            state = self.shared.wait(state);
        }
        match (state.error.clone(), state.carried.take()) {
            (None, Some(carried)) => Ok(carried),
            (Some(error), _) => Err(error),
            (None, None) => unreachable!("a thread that has ended without an error has put the state back"),
        }
    }

    /// The oldest output that was not received, or the error. `wait` waits for a change; it gives `None` where it does
    /// not. `None` if nothing is under way, or is not there yet.
    fn receive<'a>(
        &'a self,
        mut wait: impl FnMut(
            MutexGuard<'a, State<C::Of<Tensor>, S::Of<Tensor>, O::Of<Tensor>>>,
        )
            -> Option<MutexGuard<'a, State<C::Of<Tensor>, S::Of<Tensor>, O::Of<Tensor>>>>,
    ) -> Option<Result<O::Of<Tensor>>> {
        let mut state = self.shared.lock();
        loop {
            if state.under_way == 0 {
                return None;
            }
            if let Some(output) = state.outputs.pop_front() {
                state.under_way -= 1;
                self.shared.notify(&mut state);
                return Some(Ok(output));
            }
            if let Some(error) = &state.error {
                let error = error.clone();
                // An iterator ends after the error.
                state.under_way = 0;
                return Some(Err(error));
            }
            state = wait(state)?;
        }
    }
}

impl<C, S, O> State<C, S, O> {
    fn require_working(&self, op: &'static str) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None if self.has_ended || self.is_closed => {
                Err(misuse(op, "at its end", "open; start another one"))
            }
            None => Ok(()),
        }
    }
}

fn misuse(op: &'static str, given: &str, required: &str) -> Error {
    let (given, required) = (given.to_owned(), required.to_owned());
    ErrorKind::OptionValue { op, option: "the stream", given, required }.into()
}

impl<C: Exprs, S: Exprs, O: Exprs> Iterator for &Stream<C, S, O>
where
    C::Of<Tensor>: Tree<Tensor>,
{
    type Item = Result<O::Of<Tensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receive(|state| Some(self.shared.wait(state)))
    }
}

#[cfg(feature = "futures")]
impl<C: Exprs, S: Exprs, O: Exprs> futures_core::Stream for &Stream<C, S, O>
where
    C::Of<Tensor>: Tree<Tensor>,
{
    type Item = Result<O::Of<Tensor>>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let mut is_waiting = false;
        let found = self.receive(|mut state| {
            is_waiting = true;
            state.waker = Some(context.waker().clone());
            None
        });
        match found {
            None if is_waiting => std::task::Poll::Pending,
            found => std::task::Poll::Ready(found),
        }
    }
}

impl<C: Exprs, S: Exprs, O: Exprs> Drop for Stream<C, S, O> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        self.shared.notify(&mut state);
        drop(state);
        if let Some(thread) = self.thread.take() {
            // Its error, if any, was for those who waited for an output.
            let _ = thread.join();
        }
    }
}

impl<C: Exprs, S: Exprs, O: Exprs> fmt::Debug for Stream<C, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let name = if state.is_finished { "ended" } else { "open" };
        write!(f, "Stream({name}, {} chunks under way)", state.under_way)
    }
}
