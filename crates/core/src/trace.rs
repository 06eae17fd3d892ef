//! Tracing: running a function once records a closed graph.
//!
//! Traces nest, one for each region that is being traced; a thread-local stack holds them. A tensor from
//! outside the innermost trace, concrete or from an outer trace, becomes a capture of it.
//!
//! A gradient traces its function into a region of its own, differentiates that region, and inlines the
//! result into the open trace.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::builder::Builder;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Value, Values};
use crate::location::Location;
use crate::op::Op;
use crate::origin::OperandInfo;
use crate::region::Region;
use crate::shape::TensorType;
use crate::tensor::{Data, Tensor};
use crate::vectorize::NamedAxes;
use crate::weak::Weak;

thread_local! {
    static STACK: RefCell<Vec<Arc<Trace>>> = const { RefCell::new(Vec::new()) };
}

/// A region under construction.
pub struct Trace {
    id: u64,
    thread: ThreadId,
    ended: AtomicBool,
    state: Mutex<State>,
}

struct State {
    graph: Graph,
    /// Types of parameters and captures so far.
    inputs: Vec<TensorType>,
    parameters: usize,
    /// The vectorized axes of each parameter, for traces from [`Trace::begin_like`].
    parameter_lanes: Vec<NamedAxes>,
    /// Parameters that are weak numbers, which adopt the dtypes of their partners.
    weak: Vec<usize>,
    /// The dtypes in which they are needed, in order of discovery.
    weak_dtypes: Vec<WeakDtype>,
    /// [`Closed::further`], once the dtypes are resolved.
    further: Vec<usize>,
    captures: Vec<Tensor>,
    /// The vectorized axes of captured tensors.
    lanes: NamedAxes,
    error: Option<Error>,
    /// The region of the closed trace, where it is kept for inspection.
    retained: Option<Arc<Region>>,
    /// The host language's data about the graph.
    host: Option<Arc<dyn Any + Send + Sync>>,
}

/// A weak parameter in the dtype of a partner. Until the trace is closed it is among the captures, so that
/// adding one renumbers no other input.
struct WeakDtype {
    parameter: usize,
    dtype: DType,
    capture: usize,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({})", self.id)
    }
}

/// The innermost trace of this thread, if one is open.
pub fn current() -> Option<Arc<Trace>> {
    STACK.with_borrow(|stack| stack.last().cloned())
}

/// Records in the open traces the axes of a vectorized tensor from outside that is used in them.
pub(crate) fn note_vectorized(tensor: &Tensor) {
    STACK.with_borrow(|stack| {
        for open in stack.iter().rev() {
            if let Data::Traced { trace, .. } = tensor.data()
                && Arc::ptr_eq(trace, open)
            {
                break;
            }
            let mut state = open.lock();
            for lane in tensor.vectorized_axes() {
                if !state.lanes.iter().any(|(name, _)| *name == lane.0) {
                    state.lanes.push(lane.clone());
                }
            }
        }
    });
}

/// The number of open traces on this thread.
pub fn depth() -> usize {
    STACK.with_borrow(Vec::len)
}

/// Runs `body` as if no trace were open on this thread. A backend in the host language computes with its own
/// tensors, also while a definition is being traced around it.
pub fn suspended<R>(body: impl FnOnce() -> R) -> R {
    /// Restores the traces, also when `body` panics.
    struct Restore(Vec<Arc<Trace>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let opened = STACK.replace(std::mem::take(&mut self.0));
            drop(opened);
        }
    }
    let _restore = Restore(STACK.take());
    body()
}

/// Keeps a trace open until it is dropped, so that an error leaves no open trace behind.
#[derive(Debug)]
pub struct Tracing {
    trace: Arc<Trace>,
    /// The stack is thread-local, so that a trace must be closed on the thread that opened it.
    not_send: PhantomData<*const ()>,
}

/// A finished trace.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The graph; its captures correspond to `captures`.
    pub region: Region,
    /// The tensors that the traced function captured, in the order of the region's captures.
    pub captures: Vec<Tensor>,
    /// The vectorized axes of captured tensors; they lead the shapes of the captures.
    pub lanes: NamedAxes,
    /// Additional parameters after the original ones: weak numbers that are used in several dtypes. Each
    /// entry is the position of the number's original parameter, which has the first dtype.
    pub further: Vec<usize>,
}

impl Trace {
    /// Opens a trace on this thread. Returns its parameters as traced tensors.
    pub fn begin(parameters: &[TensorType]) -> (Tracing, Vec<Tensor>) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut graph = Graph::new();
        let values: Vec<Value> =
            parameters.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
        let state = State {
            graph,
            inputs: parameters.to_vec(),
            parameters: parameters.len(),
            parameter_lanes: Vec::new(),
            weak: Vec::new(),
            weak_dtypes: Vec::new(),
            further: Vec::new(),
            captures: Vec::new(),
            lanes: NamedAxes::new(),
            error: None,
            retained: None,
            host: None,
        };
        let trace = Arc::new(Trace {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            thread: thread::current().id(),
            ended: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        let tensors = parameters
            .iter()
            .zip(values)
            .map(|(ty, value)| Tensor::traced(ty.clone(), trace.clone(), value))
            .collect();
        STACK.with_borrow_mut(|stack| stack.push(trace.clone()));
        (Tracing { trace, not_send: PhantomData }, tensors)
    }

    /// Opens a trace whose parameters have the types and the vectorized axes of tensors, and are weak where
    /// these are.
    pub fn begin_like(models: &[Tensor]) -> (Tracing, Vec<Tensor>) {
        let types: Vec<TensorType> = models.iter().map(|model| model.whole().clone()).collect();
        let (tracing, parameters) = Trace::begin(&types);
        let weak = models.iter().enumerate().filter(|(_, model)| model.is_weak());
        {
            let mut state = tracing.trace.lock();
            state.parameter_lanes = models.iter().map(|model| model.vectorized_axes().into()).collect();
            state.weak = weak.map(|(position, _)| position).collect();
        }
        let wrap = |(x, model): (Tensor, &Tensor)| match model.is_weak() {
            true => x.with_weak(Weak::argument()),
            false => x.with_vectorized(model.vectorized_axes()),
        };
        let wrapped = parameters.into_iter().zip(models).map(wrap).collect();
        (tracing, wrapped)
    }

    /// An ended trace with a region for inspection and the tensors of its captures.
    pub fn ended(region: Arc<Region>, captures: Vec<Tensor>) -> Arc<Trace> {
        let (tracing, _) = Trace::begin(&[]);
        let trace = tracing.trace.clone();
        drop(tracing);
        {
            let mut state = trace.lock();
            state.captures = captures;
            state.retained = Some(region);
        }
        trace
    }

    /// The vectorized axes of each parameter; empty unless the trace is from [`Trace::begin_like`].
    pub fn parameter_lanes(&self) -> Vec<NamedAxes> {
        self.lock().parameter_lanes.clone()
    }

    /// The additional parameters after the original ones; see [`Closed::further`].
    pub fn further(&self) -> Vec<usize> {
        self.lock().further.clone()
    }

    /// The captured tensors, in the order of the captures; empty if `finish` moved them out.
    pub fn captures(&self) -> Vec<Tensor> {
        self.lock().captures.clone()
    }

    /// A number that is unique among the traces of this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the trace is open on this thread.
    pub(crate) fn is_open(&self) -> bool {
        STACK.with_borrow(|stack| stack.iter().any(|open| std::ptr::eq(&**open, self)))
    }

    /// The error about a tensor of this trace when the trace is not open.
    pub fn not_open_error(&self, op: &'static str, got: &TensorType) -> ErrorKind {
        let got = got.clone();
        if self.ended.load(Ordering::Relaxed) {
            return ErrorKind::TraceEnded { op, got };
        }
        let context =
            if self.thread == thread::current().id() { "around this call" } else { "in another thread" };
        ErrorKind::TraceElsewhere { op, got, context }
    }

    /// A panic while the lock is held cannot leave a half-built graph: `push` adds a node at the end.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `read` on the current graph; it is empty after the trace was closed, unless its region is kept.
    pub fn with_graph<R>(&self, read: impl FnOnce(&Graph) -> R) -> R {
        let state = self.lock();
        match &state.retained {
            Some(region) => {
                let region = region.clone();
                drop(state);
                read(region.graph())
            }
            None => read(&state.graph),
        }
    }

    /// Keeps the region of the closed trace, so that its values can still be inspected.
    pub fn keep(&self, region: Arc<Region>) {
        self.lock().retained = Some(region);
    }

    /// Stores the host language's data about the graph, which itself holds no host objects.
    pub fn set_host(&self, host: Arc<dyn Any + Send + Sync>) {
        self.lock().host = Some(host);
    }

    /// The host language's data about the graph.
    pub fn host(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.lock().host.clone()
    }

    /// The types of the parameters and captures, and the number of parameters.
    pub fn inputs(&self) -> (Vec<TensorType>, usize) {
        let state = self.lock();
        match &state.retained {
            Some(region) => (region.inputs().to_vec(), region.parameter_count()),
            None => (state.inputs.clone(), state.parameters),
        }
    }

    /// The parameter for the weak number `value` in a dtype; None if it already has that dtype, or the trace
    /// is closed.
    pub(crate) fn weak_parameter(self: &Arc<Trace>, value: Value, dtype: DType) -> Option<Tensor> {
        let mut state = self.lock();
        if state.weak.is_empty() {
            return None;
        }
        let own = state.graph.node(value);
        let Op::Parameter { index: parameter, ty } = own.op.clone() else {
            unreachable!("a number that a function is given is a parameter");
        };
        if ty.dtype == dtype {
            return None;
        }
        let location = own.location.clone();
        let ty = TensorType { dtype, shape: ty.shape };
        let known =
            state.weak_dtypes.iter().find(|known| known.parameter == parameter && known.dtype == dtype);
        let capture = known.map_or(state.captures.len(), |known| known.capture);
        let index = state.parameters + capture;
        if known.is_none() {
            state.weak_dtypes.push(WeakDtype { parameter, dtype, capture });
            state.captures.push(Tensor::template(ty.clone()));
            state.inputs.push(ty.clone());
        }
        let value = match state.graph.find_parameter(index) {
            Some(value) => value,
            None => {
                let before = state.graph.set_location(location);
                let value = state.graph.parameter(index, ty.clone());
                state.graph.set_location(before);
                value
            }
        };
        Some(Tensor::traced(ty, self.clone(), value))
    }

    /// Resolves the dtypes of weak parameters from the results, to inspect the graph before the trace is
    /// closed.
    pub fn resolve_weak(&self, results: &[Tensor]) {
        let value = |tensor: &Tensor| match tensor.data() {
            Data::Traced { trace, value } if std::ptr::eq(&**trace, self) => Some(*value),
            Data::Traced { .. } | Data::Buffer(_) | Data::Template => None,
        };
        let results: Vec<Value> = results.iter().filter_map(value).collect();
        self.lock().resolve_weak(&results);
    }

    /// Runs `read` on the current graph and the number of its parameters; the inputs after them are captures.
    pub(crate) fn with_inputs<R>(&self, read: impl FnOnce(&Graph, usize) -> R) -> R {
        let state = self.lock();
        read(&state.graph, state.parameters)
    }

    /// The graph up to some values as a closed region, for printing and debugging while tracing.
    pub fn snapshot(&self, results: Values) -> Region {
        let state = self.lock();
        match &state.retained {
            Some(region) => {
                let (graph, inputs) = (region.graph().clone(), region.inputs().to_vec());
                Region::new(graph, inputs, region.parameter_count(), results)
            }
            None => Region::new(state.graph.clone(), state.inputs.clone(), state.parameters, results),
        }
    }

    /// Records the first error; [`Tracing::finish`] returns it.
    pub fn poison(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    /// Adds a node. Operands from outside become captures; results are tensors of this trace.
    ///
    /// # Errors
    /// Those of `infer`, and operands whose trace has ended.
    pub fn emit(
        self: &Arc<Trace>,
        op: Op,
        name: &'static str,
        operands: &[Tensor],
        location: Option<Location>,
    ) -> Result<Vec<Tensor>> {
        let mut state = self.lock();
        let before = state.graph.set_location(location.clone());
        let values: Result<Values> = operands.iter().map(|operand| state.lift(self, name, operand)).collect();
        let outputs = values.and_then(|values| state.graph.emit(op, &values));
        state.graph.set_location(before);
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => {
                // An operand's origin is looked up in its trace, which may be this one: the lock must be
                // released.
                drop(state);
                let infos = operands.iter().map(|operand| OperandInfo::new(None, operand)).collect();
                return Err(error.at(location).with_operand_info(infos));
            }
        };
        Ok(outputs
            .into_iter()
            .map(|value| Tensor::traced(state.graph.ty(value).clone(), self.clone(), value))
            .collect())
    }
}

impl State {
    /// The value of a tensor in this trace.
    fn lift(&mut self, trace: &Arc<Trace>, op: &'static str, tensor: &Tensor) -> Result<Value> {
        match tensor.data() {
            Data::Traced { trace: owner, value } if Arc::ptr_eq(owner, trace) => return Ok(*value),
            Data::Traced { trace: owner, .. } => {
                let open = STACK.with_borrow(|stack| stack.iter().any(|open| Arc::ptr_eq(open, owner)));
                if !open {
                    return Err(owner.not_open_error(op, tensor.ty()).into());
                }
            }
            Data::Buffer(_) => {}
            Data::Template => {
                return Err(ErrorKind::IsTemplate { op, got: tensor.ty().clone() }.into());
            }
        }
        let known = self.captures.iter().position(|capture| is_same(capture, tensor));
        let position = known.unwrap_or_else(|| {
            self.captures.push(tensor.flat());
            self.inputs.push(tensor.whole().clone());
            self.captures.len() - 1
        });
        let index = self.parameters + position;
        // Parameters with the same index are one value: `emit` merges them.
        Ok(self.graph.emit(Op::Parameter { index, ty: tensor.whole().clone() }, &[])?[0])
    }
}

impl State {
    /// Assigns to each weak parameter the dtypes in which it is needed: the first to the parameter itself,
    /// the others to additional parameters at the end. An unneeded one keeps its dtype. Nodes keep their
    /// positions; the nodes of a parameter in an unneeded dtype become an unused constant.
    fn resolve_weak(&mut self, results: &[Value]) {
        if self.weak.is_empty() {
            return;
        }
        let is_needed = self.graph.needed_inputs(results, self.inputs.len());
        let (parameters, inputs) = (self.parameters, self.inputs.len());
        let mut positions: Vec<Option<usize>> = (0..inputs).map(Some).collect();
        let mut types = self.inputs[..parameters].to_vec();
        for &number in &self.weak {
            let forms = self.weak_dtypes.iter().filter(|form| form.parameter == number);
            let forms = forms.map(|form| parameters + form.capture);
            let all: Vec<usize> = std::iter::once(number).chain(forms).collect();
            let mut needed = all.iter().copied().filter(|&input| is_needed[input]);
            let first = needed.next().unwrap_or(number);
            let rest: Vec<usize> = needed.collect();
            all.iter().for_each(|&input| positions[input] = None);
            positions[first] = Some(number);
            types[number] = self.inputs[first].clone();
            for input in rest {
                positions[input] = Some(types.len());
                types.push(self.inputs[input].clone());
                self.further.push(number);
            }
        }
        self.parameters = types.len();
        self.parameter_lanes.resize(self.parameters, NamedAxes::new());
        let is_own = |capture: &usize| !self.weak_dtypes.iter().any(|form| form.capture == *capture);
        let retained: Vec<usize> = (0..self.captures.len()).filter(is_own).collect();
        for &capture in &retained {
            positions[parameters + capture] = Some(types.len());
            types.push(self.inputs[parameters + capture].clone());
        }
        self.captures = retained.iter().map(|&capture| self.captures[capture].clone()).collect();
        self.inputs = types;
        self.graph.renumber_inputs(&positions);
        self.weak.clear();
        self.weak_dtypes.clear();
    }
}

/// Whether two tensors are the same buffer or the same value, with the same type.
pub(crate) fn is_same(a: &Tensor, b: &Tensor) -> bool {
    let same = match (a.data(), b.data()) {
        (Data::Buffer(a), Data::Buffer(b)) => Arc::ptr_eq(a, b),
        (Data::Traced { trace: a, value: x }, Data::Traced { trace: b, value: y }) => {
            Arc::ptr_eq(a, b) && x == y
        }
        (Data::Buffer(_) | Data::Traced { .. } | Data::Template, _) => false,
    };
    same && a.whole() == b.whole()
}

impl Tracing {
    /// The open trace.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Sets the location of the traced function, for errors about its arguments.
    #[must_use]
    pub fn at(self, location: Option<Location>) -> Tracing {
        if let Some(location) = location {
            self.trace.lock().graph.locate_parameters(&location);
        }
        self
    }

    /// Closes the trace.
    ///
    /// # Errors
    /// The first error passed to [`Trace::poison`], or a result whose trace has ended.
    pub fn finish(self, op: &'static str, results: &[Tensor]) -> Result<Closed> {
        let mut state = self.trace.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let results: Values =
            results.iter().map(|result| state.lift(&self.trace, op, result)).collect::<Result<_>>()?;
        state.resolve_weak(&results);
        let graph = std::mem::take(&mut state.graph);
        let inputs = std::mem::take(&mut state.inputs);
        let captures = std::mem::take(&mut state.captures);
        let lanes = std::mem::take(&mut state.lanes);
        let region = Region::new(graph, inputs, state.parameters, results);
        Ok(Closed { region, captures, lanes, further: state.further.clone() })
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.trace.ended.store(true, Ordering::Relaxed);
        // Traces close in the reverse of the order in which they open, also after an error. Their contents
        // are dropped after the borrow ends: dropping may run arbitrary code.
        let closed = STACK.with_borrow_mut(|stack| {
            let at = stack.iter().rposition(|open| Arc::ptr_eq(open, &self.trace));
            at.map(|at| stack.split_off(at))
        });
        drop(closed);
    }
}
