//! Loops over ranges and over the first axis of tensors: `for_` and `scan`, written with the core's `while_`.

use defn_core::builder::{
    self, Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder, Ops, Start,
};
use defn_core::scalar::wrap;
use defn_core::trace::Trace;
use defn_core::{DType, ErrorKind, Shape, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyRange, PyRangeMethods};

use crate::containers::Tree;
use crate::control::{
    Bridge, Operands, container, controlled, finish_loop, operands, same_structure, tensors,
};
use crate::convert;
use crate::error::Fallible;
use crate::hooks::{self, Shown, Slot};
use crate::location;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// What a loop goes over.
enum Over {
    /// `start + step * i`, in a type that holds every value.
    Range { start: i64, step: i64, dtype: DType },
    /// The slices of tensors along their first axis.
    Slices { tensors: Vec<Tensor>, tree: Box<Tree> },
}

impl Over {
    /// What is gone over, and in how many trips.
    fn parse(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<(Over, i64)> {
        let required = "a range, or tensors with a first axis to iterate over";
        if let Ok(range) = value.cast::<PyRange>() {
            let (Ok(start), Ok(step), Ok(trips)) = (range.start(), range.step(), range.len()) else {
                return Err(convert::bad(op, "what is iterated over", value, "a range of 64-bit integers")?);
            };
            let (start, step, trips) = (start as i64, step as i64, trips as i64);
            // The last item lies between the bounds of the range, which are 64-bit integers.
            let last = start.wrapping_add(step.wrapping_mul((trips - 1).max(0)));
            let fits = |value: i64| wrap(DType::S32, i128::from(value)) == i128::from(value);
            let dtype = if fits(start) && fits(last) && fits(trips) { DType::S32 } else { DType::S64 };
            return Ok((Over::Range { start, step, dtype }, trips));
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
        match trips {
            Some(trips) => Ok((Over::Slices { tensors, tree: Box::new(tree) }, trips as i64)),
            None => Err(convert::bad(op, "what is iterated over", value, required)?),
        }
    }

    /// The type of the counter.
    fn dtype(&self) -> DType {
        match self {
            Over::Range { dtype, .. } => *dtype,
            Over::Slices { tensors, .. } => {
                // The counter goes one beyond the last slice.
                let trips = tensors.first().and_then(|tensor| tensor.ty().shape.sizes().first());
                let fits = trips.is_none_or(|&trips| i32::try_from(trips).is_ok());
                if fits { DType::S32 } else { DType::S64 }
            }
        }
    }

    /// The item of one trip.
    fn item<'py>(&self, py: Python<'py>, trip: &Tensor) -> Fallible<Bound<'py, PyAny>> {
        match self {
            Over::Range { start, step, .. } => {
                let item = ops::with(|ops| {
                    let offset = ops.multiply(trip, *step)?;
                    ops.add(offset, *start)
                })?;
                Ok(Bound::new(py, PyTensor::new(item))?.into_any())
            }
            Over::Slices { tensors, tree } => {
                let items: Vec<Tensor> = ops::with(|ops| {
                    tensors
                        .iter()
                        .map(|tensor| {
                            let sizes = tensor.ty().shape.sizes();
                            if sizes[0] == 0 {
                                // There is no item; what is traced then never runs, and asks for a type only.
                                let shape = Shape::from_axes(tensor.ty().shape.entries().skip(1));
                                return ops.full(shape, tensor.ty().dtype, 0);
                            }
                            let start = Start::Value(trip.clone());
                            let slice = ops.slice_along_axis(tensor, start, 1, 0, 1)?;
                            ops.squeeze(slice, 0)
                        })
                        .collect()
                })?;
                container(py, tree, &items)
            }
        }
    }
}

fn counter(ops: &mut Ops, dtype: DType, trip: i64) -> defn_core::Result<Tensor> {
    ops.constant(dtype, trip)
}

/// Repeats a function of the state and an item. Of the number of trips `progress` makes the function that is shown,
/// after each trip, how many are done.
#[pyfunction]
#[pyo3(signature = (init, over, body, unroll = None, progress = None))]
fn for_<'py>(
    init: &Bound<'py, PyAny>,
    over: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
    unroll: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let py = init.py();
        let (mut state, tree) = tensors("for_", init)?;
        let (over, trips) = Over::parse("for_", over)?;
        let unroll = unrolling(unroll, trips)?;
        let dtype = over.dtype();
        let progress = match progress.filter(|progress| !progress.is_none()) {
            Some(progress) => hooks::push(Slot::Hook(Shown::scalar(progress.call1((trips,))?, dtype))),
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
        if looped > 0 {
            let bridge = Bridge::default();
            let last = ops::with(|ops| counter(ops, dtype, 0))?;
            let result = builder::while_(
                &mut ops::builder()?,
                [vec![last], state].concat(),
                Some(looped as u64),
                |ops, state| Ok(Arg::Value(ops.less(&state[0], looped * unroll)?)),
                |ops, state| {
                    let mut trip = state[0].clone();
                    let mut inner: Vec<Arg<Tensor>> = state[1..].iter().map(Arg::from).collect();
                    for _ in 0..unroll {
                        let now = strict(ops, &inner, &state[1..])?;
                        inner = bridge.cross(|| step(&now, &trip))?;
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
        container(py, &tree, &state)
    })
}

/// Operands as tensors: numbers take on the types of the state before.
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
                    ops.constant(before.ty().dtype, *number)?
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

/// How many trips are written one after the other.
fn unrolling(value: Option<&Bound<'_, PyAny>>, trips: i64) -> Fallible<i64> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(1);
    };
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { trips.max(1) } else { 1 });
    }
    match convert::index(value) {
        Some(count) if count >= 1 => Ok(count),
        Some(_) | None => Err(convert::bad("for_", "unroll", value, "True, False or an int of at least 1")?),
    }
}

/// Repeats a function of the state and an item, and stacks what it gives besides the state.
#[pyfunction]
fn scan<'py>(
    init: &Bound<'py, PyAny>,
    over: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
) -> Fallible<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    controlled(|| {
        let py = init.py();
        let (state, tree) = tensors("scan", init)?;
        let (over, trips) = Over::parse("scan", over)?;
        let dtype = over.dtype();
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
        // The types of the outputs are known only from the body: it is traced once for them.
        let counter_model = Tensor::template(TensorType::scalar(dtype));
        let models: Vec<Tensor> = std::iter::once(counter_model).chain(state.iter().cloned()).collect();
        let (tracing, parameters) = Trace::begin_like(&models);
        let tracing = tracing.at(location::of_function(body));
        let (_, probe) = step(&parameters[1..], &parameters[0])?;
        let outputs = ops::with(|ops| {
            probe.args.iter().map(|arg| defn_core::builder::Builder::operand(ops, arg.clone())).collect()
        });
        drop(tracing);
        let outputs: Vec<Tensor> = outputs?;
        let out_tree = probe.tree;

        let mut start = vec![ops::with(|ops| counter(ops, dtype, 0))?];
        start.extend(state.iter().cloned());
        for output in &outputs {
            let shape =
                Shape::from_axes(std::iter::once((trips as usize, None)).chain(output.ty().shape.entries()));
            start.push(ops::with(|ops| ops.full(shape, output.ty().dtype, 0))?);
        }
        let states = state.len();
        if trips == 0 {
            let outputs = container(py, &out_tree, &start[1 + states..])?;
            return Ok((container(py, &tree, &state)?, outputs));
        }
        let bridge = Bridge::default();
        let result = builder::while_(
            &mut ops::builder()?,
            start,
            Some(trips as u64),
            |ops, state| Ok(Arg::Value(ops.less(&state[0], trips)?)),
            |ops, all| {
                let (next, out) = bridge.cross(|| {
                    let (next, out) = step(&all[1..=states], &all[0])?;
                    let out = same_structure(py, "scan", "the body's output", out, "its first", &out_tree)?;
                    Ok((next, out))
                })?;
                let mut results = vec![Arg::Value(ops.add(&all[0], 1)?)];
                results.extend(next);
                for (buffer, value) in all[1 + states..].iter().zip(out) {
                    let value = ops.operand_like(value, buffer.ty().dtype)?;
                    let row = ops.new_axis(value, 0, None)?;
                    let mut starts = vec![Start::Index(0); buffer.ty().shape.rank()];
                    starts[0] = Start::Value(all[0].clone());
                    results.push(Arg::Value(ops.put_slice(buffer, &starts, row)?));
                }
                Ok(results)
            },
        );
        let done = bridge.land(result);
        let done = match done {
            Ok(done) => done,
            Err(crate::error::Fault::Core(error)) => {
                return Err(crate::control::locate_state(py, "scan", error, &tree.after_leaf(py))?);
            }
            Err(fault) => return Err(fault),
        };
        let last = container(py, &tree, &done[1..=states])?;
        Ok((last, container(py, &out_tree, &done[1 + states..])?))
    })
}

/// Makes operands of one element type.
trait OperandLike {
    fn operand_like(&mut self, arg: Arg<Tensor>, dtype: DType) -> defn_core::Result<Tensor>;
}

impl OperandLike for Ops {
    fn operand_like(&mut self, arg: Arg<Tensor>, dtype: DType) -> defn_core::Result<Tensor> {
        match arg {
            Arg::Value(tensor) => self.in_dtype(tensor, dtype),
            Arg::Number(number) => self.constant(dtype, number),
        }
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(for_, module)?)?;
    module.add_function(wrap_pyfunction!(scan, module)?)
}
