//! Functions of several ops on eager tensors: run op by op at first, and as one compiled program where they recur.
//!
//! Op by op, each op reads and writes whole arrays and is dispatched by itself. A compiled program reads the operands
//! once and is dispatched once, but compiling takes as long as thousands of small ops. So a function is compiled for
//! the types of its operands when it is called with them repeatedly, sooner for large ones and where its ops take long.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::Builder;
use super::ops::{Ops, Source, common_backend};
use crate::backend::{Backend, Checks, Executable, NoHooks};
use crate::error::Result;
use crate::profile;
use crate::region::Region;
use crate::shape::{Axes, Axis, AxisRef, TensorType};
use crate::tensor::Tensor;
use crate::trace::{self, Trace};

/// A function of several ops: its name, and the options on which its ops depend.
///
/// ```
/// use defn_core::builder::Composite;
/// let (rtol, atol) = (1e-5_f64, 1e-8_f64);
/// let function = Composite::new("isclose", &[rtol.to_bits(), atol.to_bits()]);
/// assert_eq!(function.name(), "isclose");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Composite {
    name: &'static str,
    options: SmallVec<[u64; 3]>,
}

impl Composite {
    /// The function of a name with options. Calls with equal names and options must have equal ops for operands of
    /// equal types.
    pub fn new(name: &'static str, options: &[u64]) -> Composite {
        Composite { name, options: SmallVec::from_slice(options) }
    }

    /// The function with axes as further options.
    pub(super) fn over(name: &'static str, options: &[u64], axes: &[Axis]) -> Composite {
        let axes = axes.iter().map(|axis| axis.index() as u64);
        Composite { name, options: options.iter().copied().chain(axes).collect() }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// A reduction of one operand over axes as a [`Composite`]. The axes are resolved, so that each set of axes is one
/// program, and `body` gets them.
///
/// # Errors
/// Axes that the operand does not have or that are repeated; as `body`.
pub(super) fn reduction<B: Builder>(
    b: &mut B,
    name: &'static str,
    x: B::V,
    axes: &Axes,
    options: &[u64],
    body: &dyn Fn(&mut B, &B::V, &Axes) -> Result<B::V>,
) -> Result<B::V> {
    let axes = b.ty(&x).shape.resolve_all(name, axes)?;
    let function = Composite::over(name, options, &axes);
    let axes = Axes::from(axes);
    b.composite(function, [x], &|b, [x]| body(b, x, &axes))
}

/// A function along an axis of the first operand, or of all its elements, as a [`Composite`]. `body` gets the resolved
/// axis.
///
/// # Errors
/// An axis that the operand does not have; as `body`.
pub(super) fn along<B: Builder, const N: usize>(
    b: &mut B,
    name: &'static str,
    operands: [B::V; N],
    axis: Option<&AxisRef>,
    options: &[u64],
    body: &dyn Fn(&mut B, &[B::V; N], Option<&AxisRef>) -> Result<B::V>,
) -> Result<B::V> {
    let axis = axis.map(|axis| b.ty(&operands[0]).shape.resolve(name, axis)).transpose()?;
    let function = Composite::over(name, options, axis.as_slice());
    let axis = axis.map(|axis| AxisRef::Index(axis.index() as i64));
    b.composite(function, operands, &|b, operands| body(b, operands, axis.as_ref()))
}

/// The bytes of operands from which a call counts as large.
const LARGE: usize = 64 << 10;

/// The call with the same types that compiles, for large and for small operands. On small ones, compiling takes as long
/// as some hundred calls.
const COMPILING_CALL: [u32; 2] = [2, 16];

/// The time that calls with the same types may have taken op by op, after which the next compiles: about as long as
/// compiling takes. Functions with loops reach it in their first call.
const COMPILING_TIME: Duration = Duration::from_millis(1);

/// The number of programs and counts that are kept.
const LIMIT: usize = 512;

/// A call of a function, whose parts are borrowed.
#[derive(Hash)]
struct Call<'a> {
    name: &'a str,
    options: &'a [u64],
    types: SmallVec<[&'a TensorType; 3]>,
    /// The address of the backend.
    backend: usize,
}

impl<'a> Call<'a> {
    fn new(
        name: &'a str,
        options: &'a [u64],
        operands: &[&'a Tensor],
        backend: &Arc<dyn Backend>,
    ) -> Call<'a> {
        let types = operands.iter().map(|operand| operand.ty()).collect();
        Call { name, options, types, backend: Arc::as_ptr(backend).addr() }
    }

    fn hash(&self) -> u64 {
        FxBuildHasher.hash_one(self)
    }

    fn key(&self, function: &Composite) -> Key {
        let types = self.types.iter().map(|&ty| ty.clone()).collect();
        Key { function: function.clone(), types, backend: self.backend }
    }
}

struct Key {
    function: Composite,
    types: SmallVec<[TensorType; 2]>,
    backend: usize,
}

impl Key {
    fn is(&self, call: &Call<'_>) -> bool {
        self.function.name == call.name
            && *self.function.options == *call.options
            && self.backend == call.backend
            && self.types.iter().eq(call.types.iter().copied())
    }
}

#[derive(Clone)]
enum State {
    /// The calls so far, which ran op by op, and the time that they took.
    Counted(u32, Duration),
    /// The program, and the backend, whose address is not reused while this holds it.
    Compiled(Arc<dyn Executable>, Arc<dyn Backend>),
    /// The compiler has refused it: it runs op by op.
    Refused,
}

struct Entry {
    key: Key,
    state: State,
    /// The value of the clock at the last call.
    used: u64,
}

/// Entries by the hash of the call. Of two calls with one hash, the last has the entry.
#[derive(Default)]
struct Programs {
    entries: FxHashMap<u64, Entry>,
    clock: u64,
}

impl Programs {
    /// The state of a function before this call, if it was called before.
    fn find(&mut self, call: &Call<'_>) -> Option<&mut State> {
        self.clock += 1;
        let entry = self.entries.get_mut(&call.hash()).filter(|entry| entry.key.is(call))?;
        entry.used = self.clock;
        Some(&mut entry.state)
    }

    /// The program of a function, if it is compiled.
    fn program(&mut self, call: &Call<'_>) -> Option<Arc<dyn Executable>> {
        match self.find(call)? {
            State::Compiled(program, _) => Some(program.clone()),
            State::Counted(..) | State::Refused => None,
        }
    }

    fn insert(&mut self, call: &Call<'_>, function: &Composite, state: State) {
        let hash = call.hash();
        if self.entries.len() >= LIMIT && !self.entries.contains_key(&hash) {
            self.forget_half();
        }
        self.entries.insert(hash, Entry { key: call.key(function), state, used: self.clock });
    }

    /// Adds a call that ran op by op.
    fn count(&mut self, call: &Call<'_>, function: &Composite, time: Duration) {
        match self.find(call) {
            Some(State::Counted(calls, sum)) => {
                *calls += 1;
                *sum += time;
            }
            Some(State::Compiled(..) | State::Refused) => {}
            None => self.insert(call, function, State::Counted(1, time)),
        }
    }

    /// Drops the half that was not used for longest.
    fn forget_half(&mut self) {
        let mut times: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let middle = times.len() / 2;
        let (_, &mut limit, _) = times.select_nth_unstable(middle);
        self.entries.retain(|_, entry| entry.used >= limit);
    }
}

/// Whether the next call compiles, after calls that ran op by op and took a time.
fn is_due(calls: u32, time: Duration, bytes: usize) -> bool {
    calls + 1 >= COMPILING_CALL[usize::from(bytes < LARGE)] || time >= COMPILING_TIME
}

fn programs() -> MutexGuard<'static, Programs> {
    static PROGRAMS: OnceLock<Mutex<Programs>> = OnceLock::new();
    // Each entry is changed in one step, so that a panic leaves none half changed.
    PROGRAMS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a function without options by its compiled program. The operands must have fewer than `most` bytes
/// together. `None` if there is no program for operands of exactly these types, and if it fails; the function then runs
/// the general path and reports the error.
///
/// A function may convert its operands first. Its programs are found by the types after that, and operands that have
/// those already are not converted again.
pub fn composite_fast_path(name: &str, operands: &[&Tensor], most: usize) -> Option<Tensor> {
    let bytes: usize = operands.iter().map(|operand| operand.ty().byte_size()).sum();
    if bytes >= most || !can_run_compiled(operands) {
        return None;
    }
    let backend = common_backend(operands)?;
    let program = programs().program(&Call::new(name, &[], operands, &backend))?;
    let [buffer] = program.run_borrowed(&backend, operands, &NoHooks).ok()?.into_inner().ok()?;
    let ty = program.program().result_types().next()?;
    Some(Tensor::concrete(ty.clone(), buffer))
}

/// Whether a call on these operands can be a run of a program: it is not traced, and no profile wants its ops.
fn can_run_compiled(operands: &[&Tensor]) -> bool {
    let is_plain =
        |tensor: &&Tensor| tensor.buffer().is_some() && !tensor.is_vectorized() && !tensor.is_weak();
    trace::depth() == 0 && operands.iter().all(is_plain) && profile::current().is_none()
}

/// The results of a function, by its compiled program where it has one, else op by op.
pub(super) fn run<const N: usize, const M: usize>(
    ops: &mut Ops,
    function: &Composite,
    operands: &[Tensor; N],
    body: &dyn Fn(&mut Ops, &[Tensor; N]) -> Result<[Tensor; M]>,
) -> Result<[Tensor; M]> {
    let borrowed: SmallVec<[&Tensor; 3]> = operands.iter().collect();
    let may_compile = ops.checks == Checks::default() && can_run_compiled(&borrowed);
    let backend = if may_compile { common_backend(&borrowed) } else { None };
    let Some(backend) = backend else { return body(ops, operands) };
    let Some(compiler) = backend.compiler() else { return body(ops, operands) };
    let call = Call::new(function.name, &function.options, &borrowed, &backend);
    let bytes: usize = operands.iter().map(|operand| operand.ty().byte_size()).sum();
    let state = programs().find(&call).cloned();
    let state = match state.unwrap_or(State::Counted(0, Duration::ZERO)) {
        State::Counted(calls, time) if is_due(calls, time, bytes) => {
            // An error of the function itself is reported by its ops one by one.
            let compiled = trace_function(ops, operands, body)
                .and_then(|region| compiler.compile(Arc::new(region), Checks::default()));
            let state = match compiled {
                Ok(program) => State::Compiled(program, backend.clone().into_owned()),
                Err(_) => State::Refused,
            };
            programs().insert(&call, function, state.clone());
            state
        }
        state @ (State::Counted(..) | State::Compiled(..) | State::Refused) => state,
    };
    match state {
        State::Compiled(program, backend) => {
            let buffers = program.run_borrowed(&backend, &borrowed, ops.hooks)?;
            let results = program.program().result_types().zip(buffers);
            let mut results = results.map(|(ty, buffer)| Tensor::concrete(ty.clone(), buffer));
            Ok(std::array::from_fn(|_| results.next().expect("the program was traced from the body")))
        }
        State::Refused => body(ops, operands),
        State::Counted(..) => {
            let start = Instant::now();
            let results = body(ops, operands)?;
            programs().count(&call, function, start.elapsed());
            Ok(results)
        }
    }
}

/// The ops of a function on operands of these types.
fn trace_function<const N: usize, const M: usize>(
    ops: &Ops,
    operands: &[Tensor; N],
    body: &dyn Fn(&mut Ops, &[Tensor; N]) -> Result<[Tensor; M]>,
) -> Result<Region> {
    let types: SmallVec<[TensorType; 2]> = operands.iter().map(|operand| operand.ty().clone()).collect();
    let (tracing, parameters) = Trace::begin(&types);
    let mut tracer = Ops { source: Source::Unknown, ..ops.clone() };
    let parameters: [Tensor; N] =
        parameters.try_into().unwrap_or_else(|_| unreachable!("a trace has a parameter for each type"));
    let results = body(&mut tracer, &parameters)?;
    Ok(tracing.finish("composite", &results)?.region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn state(programs: &mut Programs, option: u64, ty: &TensorType) -> Option<State> {
        let call = Call { name: "f", options: &[option], types: SmallVec::from_elem(ty, 1), backend: 0 };
        programs.find(&call).cloned()
    }

    fn count(programs: &mut Programs, option: u64, ty: &TensorType) {
        let call = Call { name: "f", options: &[option], types: SmallVec::from_elem(ty, 1), backend: 0 };
        programs.count(&call, &Composite::new("f", &[option]), Duration::from_micros(3));
    }

    #[test]
    fn calls_with_one_option_and_type_are_counted_together() {
        let (mut programs, [f32, f64]) =
            (Programs::default(), [DType::F32, DType::F64].map(TensorType::scalar));
        for (option, ty) in [(1, &f32), (2, &f32), (1, &f64), (1, &f32)] {
            count(&mut programs, option, ty);
        }
        let State::Counted(calls, time) = state(&mut programs, 1, &f32).unwrap() else {
            panic!("it is counted")
        };
        assert_eq!((calls, time), (2, Duration::from_micros(6)));
        assert!(matches!(state(&mut programs, 1, &f64), Some(State::Counted(1, _))));
        assert!(state(&mut programs, 3, &f32).is_none());
    }

    #[test]
    fn a_call_is_due_by_its_number_or_by_the_time_of_those_before() {
        let [short, long] = [Duration::from_micros(900), Duration::from_micros(1100)];
        assert!(!is_due(14, short, 32) && is_due(15, short, 32));
        assert!(!is_due(0, short, LARGE) && is_due(1, short, LARGE));
        assert!(is_due(1, long, 32));
    }

    #[test]
    fn the_least_recently_used_are_forgotten() {
        let (mut programs, ty) = (Programs::default(), TensorType::scalar(DType::F32));
        for option in 0..LIMIT as u64 {
            count(&mut programs, option, &ty);
        }
        count(&mut programs, 0, &ty);
        count(&mut programs, LIMIT as u64, &ty);
        assert!(programs.entries.len() <= LIMIT / 2 + 2);
        assert!(state(&mut programs, 0, &ty).is_some() && state(&mut programs, 1, &ty).is_none());
    }
}
