//! Functions of several ops on eager tensors: run op by op at first, and as one compiled program where they recur.
//!
//! Op by op, each op reads and writes whole arrays and is dispatched by itself. A compiled program reads the operands
//! once and is dispatched once, but compiling takes as long as thousands of small ops. So a function is compiled for
//! the types of its operands when it is called with them repeatedly, sooner for large ones.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Builder;
use super::ops::{Ops, Source, common_backend};
use crate::backend::{Backend, Checks, Executable};
use crate::error::Result;
use crate::profile;
use crate::region::Region;
use crate::shape::{Axes, Axis, TensorType};
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

/// The bytes of operands from which a call counts as large.
const LARGE: usize = 64 << 10;

/// The call with the same types that compiles, for large and for small operands. On small ones, compiling takes as long
/// as some hundred calls.
const COMPILING_CALL: [u32; 2] = [2, 16];

/// The number of programs and counts that are kept.
const LIMIT: usize = 512;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    function: Composite,
    types: SmallVec<[TensorType; 2]>,
    /// The address of the backend.
    backend: usize,
}

enum State {
    /// The calls so far, which ran op by op.
    Counted(u32),
    /// The program, and the backend, whose address is not reused while this holds it.
    Compiled(Arc<dyn Executable>, Arc<dyn Backend>),
    /// The compiler has refused it: it runs op by op.
    Refused,
}

struct Entry {
    state: State,
    /// The value of the clock at the last call.
    used: u64,
}

#[derive(Default)]
struct Programs {
    entries: FxHashMap<Key, Entry>,
    clock: u64,
}

impl Programs {
    /// The program of a function, or whether this call shall compile it.
    fn find(&mut self, key: Key, compiling_call: u32) -> Found {
        self.clock += 1;
        if self.entries.len() >= LIMIT && !self.entries.contains_key(&key) {
            self.forget_half();
        }
        let entry = self.entries.entry(key).or_insert(Entry { state: State::Counted(0), used: 0 });
        entry.used = self.clock;
        match &mut entry.state {
            State::Counted(calls) => {
                *calls += 1;
                if *calls == compiling_call { Found::Compile } else { Found::OpByOp }
            }
            State::Compiled(program, backend) => Found::Program(program.clone(), backend.clone()),
            State::Refused => Found::OpByOp,
        }
    }

    fn insert(&mut self, key: Key, state: State) {
        self.entries.insert(key, Entry { state, used: self.clock });
    }

    /// Drops the half that was not used for longest.
    fn forget_half(&mut self) {
        let mut times: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let middle = times.len() / 2;
        let (_, &mut limit, _) = times.select_nth_unstable(middle);
        self.entries.retain(|_, entry| entry.used >= limit);
    }
}

enum Found {
    Program(Arc<dyn Executable>, Arc<dyn Backend>),
    Compile,
    OpByOp,
}

fn programs() -> MutexGuard<'static, Programs> {
    static PROGRAMS: OnceLock<Mutex<Programs>> = OnceLock::new();
    // Each entry is changed in one step, so that a panic leaves none half changed.
    PROGRAMS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results of a function by its compiled program; `None` where its ops have to run one by one.
pub(super) fn run<const N: usize, const M: usize>(
    ops: &Ops,
    function: &Composite,
    operands: &[Tensor; N],
    body: &dyn Fn(&mut Ops, &[Tensor; N]) -> Result<[Tensor; M]>,
) -> Result<Option<[Tensor; M]>> {
    let is_plain =
        |tensor: &Tensor| tensor.buffer().is_some() && !tensor.is_vectorized() && !tensor.is_weak();
    if trace::depth() > 0
        || ops.checks != Checks::default()
        || !operands.iter().all(is_plain)
        || profile::current().is_some()
    {
        return Ok(None);
    }
    let borrowed: SmallVec<[&Tensor; 3]> = operands.iter().collect();
    let Some(backend) = common_backend(&borrowed) else { return Ok(None) };
    let Some(compiler) = backend.compiler() else { return Ok(None) };
    let key = || Key {
        function: function.clone(),
        types: operands.iter().map(|operand| operand.ty().clone()).collect(),
        backend: Arc::as_ptr(&backend).addr(),
    };
    let bytes: usize = operands.iter().map(|operand| operand.ty().byte_size()).sum();
    let found = programs().find(key(), COMPILING_CALL[usize::from(bytes < LARGE)]);
    let (program, backend) = match found {
        Found::OpByOp => return Ok(None),
        Found::Program(program, backend) => (program, backend),
        Found::Compile => {
            // An error of the function itself is reported by its ops one by one.
            let compiled = trace_function(ops, operands, body)
                .and_then(|region| compiler.compile(Arc::new(region), Checks::default()));
            let backend = backend.clone().into_owned();
            let state = match &compiled {
                Ok(program) => State::Compiled(program.clone(), backend.clone()),
                Err(_) => State::Refused,
            };
            programs().insert(key(), state);
            let Ok(program) = compiled else { return Ok(None) };
            (program, backend)
        }
    };
    let results = program.run(&backend, operands.to_vec(), ops.hooks)?;
    Ok(results.try_into().ok())
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

    fn key(options: &[u64]) -> Key {
        let types = SmallVec::from_elem(TensorType::scalar(DType::F32), 1);
        Key { function: Composite::new("f", options), types, backend: 0 }
    }

    #[test]
    fn a_call_among_many_compiles_once() {
        let mut programs = Programs::default();
        let found: Vec<bool> = (0..5).map(|_| matches!(programs.find(key(&[]), 3), Found::Compile)).collect();
        assert_eq!(found, [false, false, true, false, false]);
    }

    #[test]
    fn each_option_has_a_count() {
        let mut programs = Programs::default();
        assert!(matches!(programs.find(key(&[1]), 2), Found::OpByOp));
        assert!(matches!(programs.find(key(&[2]), 2), Found::OpByOp));
        assert!(matches!(programs.find(key(&[1]), 2), Found::Compile));
    }

    #[test]
    fn what_is_refused_stays_op_by_op() {
        let mut programs = Programs::default();
        programs.insert(key(&[]), State::Refused);
        assert!((0..5).all(|_| matches!(programs.find(key(&[]), 1), Found::OpByOp)));
    }

    #[test]
    fn the_least_recently_used_are_forgotten() {
        let mut programs = Programs::default();
        for number in 0..LIMIT as u64 {
            programs.insert(key(&[number]), State::Refused);
            programs.find(key(&[number]), 9);
        }
        programs.find(key(&[0]), 9);
        programs.find(key(&[LIMIT as u64]), 9);
        assert!(programs.entries.len() <= LIMIT / 2 + 2);
        assert!(programs.entries.contains_key(&key(&[0])) && !programs.entries.contains_key(&key(&[1])));
    }
}
