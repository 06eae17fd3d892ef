//! Tracing: how running a function once leaves a closed graph.
//!
//! Traces nest, one for each region that is being traced; a thread-local stack knows the innermost. A tensor
//! that comes from outside the innermost trace, concrete or traced further out, becomes a capture of it.

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
use crate::origin::Given;
use crate::region::Region;
use crate::shape::TensorType;
use crate::tensor::{Data, Tensor};
use crate::vectorize::Lanes;
use crate::weak::Weak;

thread_local! {
    static STACK: RefCell<Vec<Arc<Trace>>> = const { RefCell::new(Vec::new()) };
}

/// A region in the making.
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
    /// The vectorized axes of each parameter, where a trace was begun like tensors.
    parameter_lanes: Vec<Lanes>,
    /// Parameters that are numbers, which take on the dtypes of what they meet.
    weak: Vec<usize>,
    /// What they are wanted as, in the order in which that was found.
    wanted: Vec<Wanted>,
    /// What [`Closed::further`] has, once their dtypes are known.
    further: Vec<usize>,
    captures: Vec<Tensor>,
    /// The vectorized axes of tensors from outside that were used.
    lanes: Lanes,
    error: Option<Error>,
    /// The region that the trace was closed to, where it is kept for a look at it.
    kept: Option<Arc<Region>>,
    /// What the host language keeps beside the graph.
    host: Option<Arc<dyn Any + Send + Sync>>,
}

/// A number among the parameters in the dtype of what it met. Until the trace is closed it stands among the captures,
/// so that no input changes its number while others are added.
struct Wanted {
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

/// Tells the open traces that a vectorized tensor is used to which it comes from outside.
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

/// How many traces are open on this thread.
pub fn depth() -> usize {
    STACK.with_borrow(Vec::len)
}

/// Runs `body` as if no trace were open on this thread. A backend in the host language computes with tensors of
/// its own, also where a definition is being traced around it.
pub fn suspended<R>(body: impl FnOnce() -> R) -> R {
    /// Puts the traces back, also when `body` panics.
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

/// Keeps a trace open; dropping it closes the trace, so that an error on the way leaves nothing behind.
#[derive(Debug)]
pub struct Tracing {
    trace: Arc<Trace>,
    /// The stack is a thread's own, so a trace is closed on the thread that opened it.
    not_send: PhantomData<*const ()>,
}

/// A finished trace.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The graph; its captures correspond to `captures`.
    pub region: Region,
    /// What the traced function used from outside, in the order of the region's captures.
    pub captures: Vec<Tensor>,
    /// The vectorized axes of tensors from outside that the function used; captures have them in front.
    pub lanes: Lanes,
    /// The parameters that stand behind those that the trace was begun with: numbers among these that are used in
    /// several dtypes. Each is told by the position of the number, which itself has the first dtype.
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
            wanted: Vec::new(),
            further: Vec::new(),
            captures: Vec::new(),
            lanes: Lanes::new(),
            error: None,
            kept: None,
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

    /// Opens a trace whose parameters have the types and the vectorized axes of tensors, and take on other dtypes where
    /// these do.
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

    /// A trace that has ended, of a region that is kept for a look at it and tensors for its captures.
    pub fn ended(region: Arc<Region>, captures: Vec<Tensor>) -> Arc<Trace> {
        let (tracing, _) = Trace::begin(&[]);
        let trace = tracing.trace.clone();
        drop(tracing);
        {
            let mut state = trace.lock();
            state.captures = captures;
            state.kept = Some(region);
        }
        trace
    }

    /// The vectorized axes of each parameter; nothing where the trace was not begun like tensors.
    pub fn parameter_lanes(&self) -> Vec<Lanes> {
        self.lock().parameter_lanes.clone()
    }

    /// The parameters behind those that the trace was begun with, as [`Closed::further`] has them.
    pub fn further(&self) -> Vec<usize> {
        self.lock().further.clone()
    }

    /// The tensors from outside, in the order of the captures; none where they were handed on when it was finished.
    pub fn captures(&self) -> Vec<Tensor> {
        self.lock().captures.clone()
    }

    /// A number that no other trace of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it is open on this thread.
    pub(crate) fn is_open(&self) -> bool {
        STACK.with_borrow(|stack| stack.iter().any(|open| std::ptr::eq(&**open, self)))
    }

    /// What is wrong with a tensor of this trace where the trace is not among the open ones.
    pub fn stray(&self, op: &'static str, got: &TensorType) -> ErrorKind {
        let got = got.clone();
        if self.ended.load(Ordering::Relaxed) {
            return ErrorKind::TraceEnded { op, got };
        }
        let place =
            if self.thread == thread::current().id() { "around this call" } else { "in another thread" };
        ErrorKind::TraceElsewhere { op, got, place }
    }

    /// A panic while the lock was held cannot leave a graph half made: `push` adds a node at the end.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `read` on the graph as it stands; it is empty once the trace was closed and its region not kept.
    pub fn with_graph<R>(&self, read: impl FnOnce(&Graph) -> R) -> R {
        let state = self.lock();
        match &state.kept {
            Some(region) => {
                let region = region.clone();
                drop(state);
                read(region.graph())
            }
            None => read(&state.graph),
        }
    }

    /// Keeps the region that the trace was closed to, so that its values can be looked at still.
    pub fn keep(&self, region: Arc<Region>) {
        self.lock().kept = Some(region);
    }

    /// Lets the host language keep something beside the graph, which holds no object of its.
    pub fn set_host(&self, host: Arc<dyn Any + Send + Sync>) {
        self.lock().host = Some(host);
    }

    /// What the host language keeps beside the graph.
    pub fn host(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.lock().host.clone()
    }

    /// The types of the parameters and captures, and how many are parameters.
    pub fn inputs(&self) -> (Vec<TensorType>, usize) {
        let state = self.lock();
        match &state.kept {
            Some(region) => (region.inputs().to_vec(), region.parameter_count()),
            None => (state.inputs.clone(), state.parameters),
        }
    }

    /// The parameter of a dtype for a number among the parameters, which is `value`; nothing where it has that dtype,
    /// or the trace is closed.
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
        let known = state.wanted.iter().find(|known| known.parameter == parameter && known.dtype == dtype);
        let capture = known.map_or(state.captures.len(), |known| known.capture);
        let index = state.parameters + capture;
        if known.is_none() {
            state.wanted.push(Wanted { parameter, dtype, capture });
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

    /// Resolves the dtypes of the numbers among the parameters by what is returned, for who looks at the graph before
    /// the trace is closed.
    pub fn resolve_weak(&self, results: &[Tensor]) {
        let value = |tensor: &Tensor| match tensor.data() {
            Data::Traced { trace, value } if std::ptr::eq(&**trace, self) => Some(*value),
            Data::Traced { .. } | Data::Buffer(_) | Data::Template => None,
        };
        let results: Vec<Value> = results.iter().filter_map(value).collect();
        self.lock().resolve_weak(&results);
    }

    /// Runs `read` on the graph as it stands and the number of its parameters; inputs after them are captures.
    pub(crate) fn with_inputs<R>(&self, read: impl FnOnce(&Graph, usize) -> R) -> R {
        let state = self.lock();
        read(&state.graph, state.parameters)
    }

    /// The graph up to some values as a closed region, for printing and debugging while tracing.
    pub fn snapshot(&self, results: Values) -> Region {
        let state = self.lock();
        match &state.kept {
            Some(region) => {
                let (graph, inputs) = (region.graph().clone(), region.inputs().to_vec());
                Region::new(graph, inputs, region.parameter_count(), results)
            }
            None => Region::new(state.graph.clone(), state.inputs.clone(), state.parameters, results),
        }
    }

    /// Keeps the first error, which comes out when the trace is finished.
    pub fn poison(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    /// Adds a node. Operands from outside become captures; results are tensors of this trace.
    ///
    /// # Errors
    /// What `infer` has against it, and operands whose trace has ended.
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
                // Where an operand was made is asked of its trace, which may be this one.
                drop(state);
                let given = operands.iter().map(|operand| Given::new(None, operand)).collect();
                return Err(error.at(location).given(given));
            }
        };
        Ok(outputs
            .into_iter()
            .map(|value| Tensor::traced(state.graph.ty(value).clone(), self.clone(), value))
            .collect())
    }
}

impl State {
    /// The value that stands for a tensor in this trace.
    fn lift(&mut self, trace: &Arc<Trace>, op: &'static str, tensor: &Tensor) -> Result<Value> {
        match tensor.data() {
            Data::Traced { trace: owner, value } if Arc::ptr_eq(owner, trace) => return Ok(*value),
            Data::Traced { trace: owner, .. } => {
                let open = STACK.with_borrow(|stack| stack.iter().any(|open| Arc::ptr_eq(open, owner)));
                if !open {
                    return Err(owner.stray(op, tensor.ty()).into());
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
        // Equal parameters are one value: `emit` merges them.
        Ok(self.graph.emit(Op::Parameter { index, ty: tensor.whole().clone() }, &[])?[0])
    }
}

impl State {
    /// Gives each number among the parameters the dtypes in which something needs it, the first to the parameter itself
    /// and the others to parameters behind all. One that nothing needs keeps its own. Nodes keep their places; what is
    /// left of a parameter in a dtype that nothing needs is a constant, which nothing needs either.
    fn resolve_weak(&mut self, results: &[Value]) {
        if self.weak.is_empty() {
            return;
        }
        let is_needed = self.graph.needed_inputs(results, self.inputs.len());
        let (parameters, inputs) = (self.parameters, self.inputs.len());
        let mut places: Vec<Option<usize>> = (0..inputs).map(Some).collect();
        let mut types = self.inputs[..parameters].to_vec();
        for &number in &self.weak {
            let forms = self.wanted.iter().filter(|wanted| wanted.parameter == number);
            let forms = forms.map(|wanted| parameters + wanted.capture);
            let all: Vec<usize> = std::iter::once(number).chain(forms).collect();
            let mut needed = all.iter().copied().filter(|&input| is_needed[input]);
            let first = needed.next().unwrap_or(number);
            let rest: Vec<usize> = needed.collect();
            all.iter().for_each(|&input| places[input] = None);
            places[first] = Some(number);
            types[number] = self.inputs[first].clone();
            for input in rest {
                places[input] = Some(types.len());
                types.push(self.inputs[input].clone());
                self.further.push(number);
            }
        }
        self.parameters = types.len();
        self.parameter_lanes.resize(self.parameters, Lanes::new());
        let is_own = |capture: &usize| !self.wanted.iter().any(|wanted| wanted.capture == *capture);
        let kept: Vec<usize> = (0..self.captures.len()).filter(is_own).collect();
        for &capture in &kept {
            places[parameters + capture] = Some(types.len());
            types.push(self.inputs[parameters + capture].clone());
        }
        self.captures = kept.iter().map(|&capture| self.captures[capture].clone()).collect();
        self.inputs = types;
        self.graph.place_parameters(&places);
        self.weak.clear();
        self.wanted.clear();
    }
}

/// Whether two tensors are the same buffer or the same value, under the same type.
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

    /// Says where the function stands that is being traced, for errors about its arguments.
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
    /// The first error that [`Trace::poison`] was given, or a result whose trace has ended.
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
        // Traces close in the reverse of the order in which they open, also on the way of an error. What they
        // hold is dropped after the borrow has ended: it may be anything.
        let closed = STACK.with_borrow_mut(|stack| {
            let at = stack.iter().rposition(|open| Arc::ptr_eq(open, &self.trace));
            at.map(|at| stack.split_off(at))
        });
        drop(closed);
    }
}
