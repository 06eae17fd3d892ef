//! Loops over ranges and over the first axis of tensors: `for_` and `scan`, composed of the core's `while_`.

use defn_core::builder::{
    self, Arg, BuildControl, BuildCreate, BuildElementwise, Builder, LoopOptions, Ops, ScanOptions,
};
use defn_core::scalar::wrap;
use defn_core::trace::{Trace, Tracing};
use defn_core::{DType, ErrorKind, Shape, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyRange, PyRangeMethods};

use crate::containers::Tree;
use crate::control::{
    FaultCarrier, Operands, container, controlled, finish_loop, operands, same_structure, snapshot_count,
    tensors,
};
use crate::convert;
use crate::error::Fallible;
use crate::hooks::{self, HookSlot, Slot};
use crate::location;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// The iterable of a loop.
enum LoopIterable {
    /// `start + step * i`, in a dtype that can represent every value.
    Range { start: i64, step: i64, dtype: DType },
    /// The slices of tensors along their first axis.
    Slices { tensors: Vec<Tensor>, tree: Box<Tree> },
}

impl LoopIterable {
    /// The iterable, and the trip count. `length` is the trip count where the caller gives it; without tensors, each item
    /// is then the value itself.
    fn parse(
        op: &'static str,
        value: &Bound<'_, PyAny>,
        length: Option<&Bound<'_, PyAny>>,
    ) -> Fallible<(LoopIterable, i64)> {
        let (iterable, found) = LoopIterable::find(op, value)?;
        let given = length.map(|length| trip_count(op, length).map(|trips| (length, trips))).transpose()?;
        match (found, given) {
            (Some(trips), None) => Ok((iterable, trips)),
            (None, Some((_, trips))) => Ok((iterable, trips)),
            (Some(trips), Some((_, given))) if given == trips => Ok((iterable, trips)),
            (Some(trips), Some((length, _))) => {
                let required = format!("{trips}, the number of items, or None");
                Err(convert::bad(op, "length", length, &required)?)
            }
            (None, None) => {
                let required = match op {
                    "scan" => {
                        "a range, or tensors with a first axis to iterate over; without them give length="
                    }
                    _ => "a range, or tensors with a first axis to iterate over",
                };
                Err(convert::bad(op, "what is iterated over", value, required)?)
            }
        }
    }

    /// The iterable, and the number of its items, or `None` if it has no tensors.
    fn find(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<(LoopIterable, Option<i64>)> {
        if let Ok(range) = value.cast::<PyRange>() {
            let (Ok(start), Ok(step), Ok(trips)) = (range.start(), range.step(), range.len()) else {
                return Err(convert::bad(op, "what is iterated over", value, "a range of 64-bit integers")?);
            };
            let (start, step, trips) = (start as i64, step as i64, trips as i64);
            // With one item the step is never added, and it may be out of range.
            let step = if trips < 2 { 0 } else { step };
            // The last item is within the bounds of the range, which are 64-bit integers.
            let last = start.wrapping_add(step.wrapping_mul((trips - 1).max(0)));
            let fits = |value: i64| wrap(DType::S32, i128::from(value)) == i128::from(value);
            let dtype =
                if fits(start) && fits(last) && fits(step) && fits(trips) { DType::S32 } else { DType::S64 };
            return Ok((LoopIterable::Range { start, step, dtype }, Some(trips)));
        }
        let (tensors, tree) = tensors(op, value)?;
        let mut trips = None;
        for tensor in &tensors {
            let got = tensor.ty().clone();
            let Some(&size) = got.shape.sizes().first() else {
                let required = "it must have a first axis to iterate over";
                return Err(ErrorKind::Rank { op, got, required }.into());
            };
            if *trips.get_or_insert(size) != size {
                let left = tensors[0].ty().clone();
                return Err(ErrorKind::ShapesDiffer { op, left, right: got }.into());
            }
        }
        Ok((LoopIterable::Slices { tensors, tree: Box::new(tree) }, trips.map(|trips| trips as i64)))
    }

    /// The dtype of the counter of so many trips.
    fn dtype(&self, trips: i64) -> DType {
        match self {
            LoopIterable::Range { dtype, .. } => *dtype,
            // The counter's final value is one more than the index of the last slice.
            LoopIterable::Slices { .. } if i32::try_from(trips).is_ok() => DType::S32,
            LoopIterable::Slices { .. } => DType::S64,
        }
    }

    /// Results whose vectorized axes are ordered with those of the iterable first.
    fn first(&self, results: Vec<Tensor>) -> Fallible<Vec<Tensor>> {
        let LoopIterable::Slices { tensors, .. } = self else { return Ok(results) };
        let items: Vec<Arg<Tensor>> = tensors.iter().map(Arg::from).collect();
        let items: Vec<&Arg<Tensor>> = items.iter().collect();
        ops::with(|ops| {
            results
                .into_iter()
                .map(|result| ops.order_vectorized_axes(result, &items))
                .collect::<defn_core::Result<_>>()
        })
    }

    /// The item of one iteration.
    fn item<'py>(&self, py: Python<'py>, trip: &Tensor) -> Fallible<Bound<'py, PyAny>> {
        match self {
            LoopIterable::Range { start, step, .. } => {
                let item = ops::with(|ops| {
                    let offset = ops.multiply(trip, *step)?;
                    ops.add(offset, *start)
                })?;
                Ok(Bound::new(py, PyTensor::new(item))?.into_any())
            }
            LoopIterable::Slices { tensors, tree } => {
                let items: Vec<Tensor> = ops::with(|ops| {
                    tensors
                        .iter()
                        .map(|tensor| {
                            let sizes = tensor.ty().shape.sizes();
                            if sizes[0] == 0 {
                                // There is no item. The body is traced only for its types and never runs.
                                let shape = Shape::from_axes(tensor.ty().shape.entries().skip(1));
                                return ops.full(shape, tensor.ty().dtype, 0);
                            }
                            builder::item(ops, tensor, trip)
                        })
                        .collect()
                })?;
                container(py, tree, &items)
            }
        }
    }
}

/// The number of trips that a caller asks for.
fn trip_count(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<i64> {
    match convert::index(value)? {
        Some(trips) if trips >= 0 => Ok(trips),
        Some(_) | None => Err(convert::bad(op, "length", value, "an int of at least 0, or None")?),
    }
}

fn counter(ops: &mut Ops, dtype: DType, trip: i64) -> defn_core::Result<Tensor> {
    ops.constant(dtype, trip)
}

/// Repeats a function of the state and an item. `progress` receives the trip count and returns the function
/// that is called with the number of completed iterations after each one.
#[pyfunction]
#[pyo3(signature = (init, over, body, unroll = None, progress = None, snapshots = None))]
fn for_<'py>(
    init: &Bound<'py, PyAny>,
    over: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
    unroll: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
    snapshots: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let py = init.py();
        let snapshots = snapshot_count("for_", snapshots)?;
        let Operands { args: init, tree } = operands("for_", init)?;
        let (over, trips) = LoopIterable::parse("for_", over, None)?;
        let unroll = unrolling(unroll, trips)?;
        let dtype = over.dtype(trips);
        let progress = match progress.filter(|progress| !progress.is_none()) {
            Some(progress) => hooks::push(Slot::Hook(HookSlot::scalar(progress.call1((trips,))?, dtype))),
            None => None,
        };
        let tell = |ops: &mut Ops, done: &Tensor| -> defn_core::Result<()> {
            match progress {
                Some(slot) => ops.hook(slot, None, std::slice::from_ref(done)).map(drop),
                None => Ok(()),
            }
        };
        let step = |state: &[Tensor], trip: &Tensor| -> Fallible<Vec<Arg<Tensor>>> {
            let next = body.call1((container(py, &tree, state)?, over.item(py, trip)?))?;
            let next = operands("for_", &next)?;
            same_structure(py, "for_", "the body's value", next, "the state", &tree)
        };
        let looped = if unroll >= trips { 0 } else { trips / unroll };
        // If one trace contains several iterations, the dtypes must be known beforehand.
        let init = if unroll > 1 && trips > 0 {
            let body = |state: &[Tensor]| {
                let (tracing, parameters) = begin(dtype, state);
                let tracing = tracing.at(location::of_function(body));
                let next = step(&parameters[1..], &parameters[0])?;
                drop(tracing);
                Ok(next)
            };
            resolve_weak_state("for_", &init, body)?.into_iter().map(Arg::Value).collect()
        } else {
            init
        };
        let mut state: Vec<Tensor>;
        if looped > 0 {
            let bridge = FaultCarrier::default();
            let last = ops::with(|ops| counter(ops, dtype, 0))?;
            let result = builder::while_(
                &mut ops::builder()?,
                [vec![Arg::Value(last)], init].concat(),
                LoopOptions { trips: Some(looped as u64), snapshots },
                |ops, state| Ok(Arg::Value(ops.less(&state[0], looped * unroll)?)),
                |ops, state| {
                    let mut trip = state[0].clone();
                    let mut inner: Vec<Arg<Tensor>> = state[1..].iter().map(Arg::from).collect();
                    for _ in 0..unroll {
                        let now = strict(ops, &inner, &state[1..])?;
                        inner = bridge.run_user_function(|| step(&now, &trip))?;
                        trip = ops.add(trip, 1)?;
                        tell(ops, &trip)?;
                    }
                    Ok([vec![Arg::Value(trip)], inner].concat())
                },
            );
            let done = finish_loop(py, "for_", bridge, result, &tree.after_leaf(py))?;
            let Ok((_, rest)) = done.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() else {
                return Err(Misuse::Internal { text: "a loop lost its counter".to_owned() }.into());
            };
            state = tensors("for_", &rest)?.0;
        } else {
            state = ops::with(|ops| init.into_iter().map(|arg| ops.operand(arg)).collect())?;
        }
        for trip in looped * unroll..trips {
            let now = ops::with(|ops| counter(ops, dtype, trip))?;
            let next = step(&state, &now)?;
            state = ops::with(|ops| {
                let done = counter(ops, dtype, trip + 1)?;
                tell(ops, &done)?;
                strict(ops, &next, &state)
            })?;
        }
        container(py, &tree, &over.first(state)?)
    })
}

/// Opens a trace of one iteration. Its parameters are the counter and the state.
fn begin(counter: DType, state: &[Tensor]) -> (Tracing, Vec<Tensor>) {
    let counter = Tensor::template(TensorType::scalar(counter));
    let models: Vec<Tensor> = std::iter::once(counter).chain(state.iter().cloned()).collect();
    Trace::begin_like(&models)
}

/// A state as tensors. Plain numbers take the dtypes that the body gives them; the body is traced once to
/// find these.
fn resolve_weak_state(
    op: &'static str,
    init: &[Arg<Tensor>],
    mut body: impl FnMut(&[Tensor]) -> Fallible<Vec<Arg<Tensor>>>,
) -> Fallible<Vec<Tensor>> {
    let mut state: Vec<Tensor> = ops::with(|ops| init.iter().map(|arg| ops.operand(arg.clone())).collect())?;
    if init.iter().all(|arg| arg.weakness().is_none()) {
        return Ok(state);
    }
    let next = body(&state)?;
    for ((tensor, arg), after) in state.iter_mut().zip(init).zip(&next) {
        let Some(number) = arg.weakness() else { continue };
        let before = tensor.ty().dtype;
        let after = match (after.weakness(), after) {
            (Some(after), _) => before.merge_weak(after),
            (None, Arg::Value(after)) => after.ty().dtype,
            (None, Arg::Number(_)) => before,
        };
        if let Some(dtype) = builder::promoted_dtype(number, before, after) {
            let ty = tensor.ty().with_dtype(dtype)?;
            *tensor = ops::with(|ops| ops.promote_weak(op, arg.clone(), &ty))?;
        }
    }
    Ok(state)
}

/// Operands as tensors; numbers take the dtypes of the previous state.
fn strict(ops: &mut Ops, args: &[Arg<Tensor>], state: &[Tensor]) -> defn_core::Result<Vec<Tensor>> {
    args.iter()
        .zip(state)
        .enumerate()
        .map(|(index, (arg, before))| {
            let own = before.ty().dtype;
            let tensor = match arg {
                Arg::Value(tensor) => match ops.weakness(tensor) {
                    Some(number) if own.merge_weak(number) == own => ops.in_dtype(tensor.clone(), own)?,
                    Some(_) | None => tensor.clone(),
                },
                Arg::Number(number) if before.ty().dtype.merge_weak(*number) == before.ty().dtype => {
                    ops.scalar(builder::exact_scalar("for_", before.ty(), *number)?)?
                }
                Arg::Number(number) => ops.constant(number.dtype(), *number)?,
            };
            if tensor.ty().is_compatible(before.ty()) {
                return Ok(tensor);
            }
            let (expected, got) = (before.ty().clone(), tensor.ty().clone());
            let what = "state".to_owned();
            Err(ErrorKind::LoopState { op: "for_", what, index, expected, got, hint: "" }.into())
        })
        .collect()
}

/// The number of iterations that are unrolled.
fn unrolling(value: Option<&Bound<'_, PyAny>>, trips: i64) -> Fallible<i64> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(1);
    };
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { trips.max(1) } else { 1 });
    }
    match convert::index(value)? {
        Some(count) if count >= 1 => Ok(count),
        Some(_) | None => Err(convert::bad("for_", "unroll", value, "True, False or an int of at least 1")?),
    }
}

/// Repeats a function of the state and an item, and stacks its outputs in the order of the items.
#[pyfunction]
#[pyo3(signature = (init, over, body, reverse = false, length = None, snapshots = None))]
fn scan<'py>(
    init: &Bound<'py, PyAny>,
    over: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
    reverse: bool,
    length: Option<&Bound<'py, PyAny>>,
    snapshots: Option<&Bound<'py, PyAny>>,
) -> Fallible<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    controlled(|| {
        let py = init.py();
        let snapshots = snapshot_count("scan", snapshots)?;
        let Operands { args: init, tree } = operands("scan", init)?;
        let (over, trips) = LoopIterable::parse("scan", over, length)?;
        let dtype = over.dtype(trips);
        let step = |state: &[Tensor], trip: &Tensor| -> Fallible<(Vec<Arg<Tensor>>, Operands)> {
            let result = body.call1((container(py, &tree, state)?, over.item(py, trip)?))?;
            let Ok((next, out)) = result.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() else {
                let got = convert::describe(&result)?;
                let (what, required) = ("the body", "a tuple (state, output)");
                return Err(Misuse::BadResult { op: "scan", what, got, required }.into());
            };
            let next = operands("scan", &next)?;
            let next = same_structure(py, "scan", "the body's state", next, "the state", &tree)?;
            Ok((next, operands("scan", &out)?))
        };
        // The types of the outputs are known only from the body: it is traced once for them, and once more if
        // numbers of the state take other dtypes.
        let probe = |state: &[Tensor]| -> Fallible<(Vec<Arg<Tensor>>, Vec<Tensor>, Tree)> {
            let (tracing, parameters) = begin(dtype, state);
            let tracing = tracing.at(location::of_function(body));
            let (next, out) = step(&parameters[1..], &parameters[0])?;
            let outputs = ops::with(|ops| out.args.iter().map(|arg| ops.operand(arg.clone())).collect());
            drop(tracing);
            Ok((next, outputs?, out.tree))
        };
        let mut probed = None;
        let state = resolve_weak_state("scan", &init, |state| {
            let (next, outputs, tree) = probe(state)?;
            let types: Vec<DType> = state.iter().map(|tensor| tensor.ty().dtype).collect();
            probed = Some((types, outputs, tree));
            Ok(next)
        })?;
        let is_settled = |types: &[DType]| types.iter().eq(state.iter().map(|tensor| &tensor.ty().dtype));
        let (outputs, out_tree) = match probed {
            Some((types, outputs, tree)) if is_settled(&types) => (outputs, tree),
            Some(_) | None => {
                let (_, outputs, tree) = probe(&state)?;
                (outputs, tree)
            }
        };

        let types: Vec<TensorType> = outputs.iter().map(|output| output.ty().clone()).collect();
        let bridge = FaultCarrier::default();
        let body = |_: &mut Ops, position: &Tensor, state: &[Tensor]| {
            bridge.run_user_function(|| {
                let (next, out) = step(state, position)?;
                let out = same_structure(py, "scan", "the body's output", out, "its first", &out_tree)?;
                Ok((next, out))
            })
        };
        let mut ops = ops::builder()?;
        let options = ScanOptions { counter: dtype, trips: trips as usize, reverse, snapshots };
        let result = builder::scan(&mut ops, options, state, types, body);
        let (mut last, mut outputs) = match bridge.into_result(result) {
            Ok(done) => done,
            Err(crate::error::Fault::Core(error)) => {
                return Err(crate::control::locate_state(py, "scan", error, &tree.after_leaf(py))?);
            }
            Err(fault) => return Err(fault),
        };
        if trips > 0 {
            last = over.first(last)?;
            outputs = over.first(outputs)?;
        }
        Ok((container(py, &tree, &last)?, container(py, &out_tree, &outputs)?))
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(for_, module)?)?;
    module.add_function(wrap_pyfunction!(scan, module)?)
}
