//! `tensor.at[...]`: copies of a tensor in which the elements that an index selects are replaced, or combined with
//! values.

use defn_core::builder::{Arg, BuildElementwise, BuildIndex, BuildShape, Builder, Ops};
use defn_core::{Axes, AxisRef, Shape, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::entries;
use super::plan::{self, Picked, Plan};
use super::steps::{self, Step};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// How values change elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    Set,
    Add,
    Multiply,
    Max,
    Min,
}

impl Update {
    const ALL: [Update; 5] = [Update::Set, Update::Add, Update::Multiply, Update::Max, Update::Min];

    /// The name of the method.
    fn name(self) -> &'static str {
        match self {
            Update::Set => "set",
            Update::Add => "add",
            Update::Multiply => "multiply",
            Update::Max => "max",
            Update::Min => "min",
        }
    }

    /// The new elements in the place of `old` ones, at each of which there is one value.
    pub(super) fn combine(self, ops: &mut Ops, old: &Tensor, value: &Tensor) -> defn_core::Result<Tensor> {
        match self {
            Update::Set => Ok(value.clone()),
            Update::Add => ops.add(old, value),
            Update::Multiply => ops.multiply(old, value),
            Update::Max => ops.max(old, value),
            Update::Min => ops.min(old, value),
        }
    }

    /// The values that change one element, combined.
    pub(super) fn of_segments(
        self,
        ops: &mut Ops,
        values: &Tensor,
        ids: &Tensor,
        count: usize,
    ) -> defn_core::Result<Tensor> {
        match self {
            Update::Set => unreachable!("values that replace elements are not combined"),
            Update::Add => ops.segment_sum(values, ids, count),
            Update::Multiply => ops.segment_product(values, ids, count),
            Update::Max => ops.segment_max(values, ids, count),
            Update::Min => ops.segment_min(values, ids, count),
        }
    }
}

/// `tensor.at[index].<method>(value)`.
#[pyfunction]
fn at_update(
    tensor: &Bound<'_, PyTensor>,
    index: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    method: &str,
) -> Fallible<PyTensor> {
    guard(|| {
        let update = Update::ALL.into_iter().find(|update| update.name() == method);
        let update = update.expect("the methods of `At` are those of `Update`");
        apply(&tensor.get().tensor, index, convert::arg("at", value)?, update)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(at_update, module)?)
}

fn apply(x: &Tensor, index: &Bound<'_, PyAny>, value: Arg<Tensor>, update: Update) -> Fallible<PyTensor> {
    let ty = x.ty();
    let entries = entries::read(ty, index)?;
    if !super::has_advanced(&entries) {
        let (steps, new_axes) = plan::basic(ty, &entries)?;
        let selected = steps::with_new_axes(steps::kept(&steps, &ty.shape), &new_axes);
        require_fit(ty, &value, &selected)?;
        return ops::on(x, move |ops, x| in_window(ops, x, &steps, &selected, value, update));
    }
    let mut plan = Plan::new(ty, entries, index.is_instance_of::<PyDict>())?;
    if let [(axis, Picked::Mask(mask))] = &*plan.picked {
        let (axis, mask) = (*axis, mask.tensor.clone());
        if fits(&value, &plan.result(&Shape::new(&[1])))? {
            return ops::on(x, move |ops, x| under_mask(ops, x, &plan, axis, &mask, value, update));
        }
        if plan.read_masks(x)?.is_some() {
            let (got, mask) = (value_type(&value).to_string(), mask.ty().to_string());
            return Err(Misuse::MaskUpdate { got, mask }.into());
        }
    }
    if let Some(mask) = plan.read_masks(x)? {
        let mask = mask.tensor.ty().to_string();
        return Err(Misuse::MaskIndex { mask, got: ty.clone() }.into());
    }
    require_fit(ty, &value, &plan.result(&plan.places()?))?;
    ops::on(x, move |ops, x| at_positions(ops, x, &plan, value, update))
}

fn value_type(value: &Arg<Tensor>) -> TensorType {
    match value {
        Arg::Value(tensor) => tensor.ty().clone(),
        Arg::Number(number) => TensorType::scalar(number.dtype()),
    }
}

/// Whether a value broadcasts to the shape of the selected elements.
///
/// # Errors
/// Names that differ.
fn fits(value: &Arg<Tensor>, selected: &Shape) -> Fallible<bool> {
    let given = value_type(value).shape;
    let paired = given.sizes().iter().rev().zip(selected.sizes().iter().rev());
    if given.rank() > selected.rank() || paired.into_iter().any(|(given, size)| *given != 1 && given != size)
    {
        return Ok(false);
    }
    selected.broadcast_with("at", &given)?;
    Ok(true)
}

fn require_fit(ty: &TensorType, value: &Arg<Tensor>, selected: &Shape) -> Fallible<()> {
    if fits(value, selected)? {
        return Ok(());
    }
    let selected = TensorType { dtype: ty.dtype, shape: selected.clone() };
    Err(Misuse::UpdateShape { got: value_type(value), selected }.into())
}

/// The elements of a window changed.
fn in_window(
    ops: &mut Ops,
    x: &Tensor,
    steps: &[Step],
    selected: &Shape,
    value: Arg<Tensor>,
    update: Update,
) -> defn_core::Result<Tensor> {
    let (x, value) = ops.weak_pair("at", x, value)?;
    let value = if update == Update::Set {
        ops.broadcast(value, selected.without_names(), Axes::All)?
    } else {
        let old = steps::get(ops, &x, steps)?;
        let old = ops.reshape_to(old, selected.without_names())?;
        let value = unnamed(ops, value)?;
        update.combine(ops, &old, &value)?
    };
    steps::put(ops, &x, steps, value)
}

/// The elements changed at which a mask is true, by the same value for all of them.
fn under_mask(
    ops: &mut Ops,
    x: &Tensor,
    plan: &Plan,
    axis: usize,
    mask: &Tensor,
    value: Arg<Tensor>,
    update: Update,
) -> defn_core::Result<Tensor> {
    let (x, value) = ops.weak_pair("at", x, value)?;
    let window = steps::get(ops, &x, &plan.steps)?;
    let shape = plan.window.without_names();
    let old = ops.reshape_to(&window, shape.clone())?;
    let value = if value.ty().shape.rank() == 0 { value } else { plan.under_mask(ops, value, axis)? };
    let new = update.combine(ops, &old, &value)?;
    let flat = ops.reshape_to(mask, Shape::new(&[mask.ty().size()]))?;
    let mask = ops.broadcast(flat, shape, AxisRef::Index(axis as i64))?;
    let changed = ops.select(mask, new, old)?;
    let changed = ops.reshape_to(changed, window.ty().shape.clone())?;
    put_back(ops, &x, &plan.steps, changed)
}

/// The elements at positions changed.
fn at_positions(
    ops: &mut Ops,
    x: &Tensor,
    plan: &Plan,
    value: Arg<Tensor>,
    update: Update,
) -> defn_core::Result<Tensor> {
    let (x, value) = ops.weak_pair("at", x, value)?;
    let window = steps::get(ops, &x, &plan.steps)?;
    let places = plan.places()?;
    let value = ops.broadcast(value, plan.result(&places).without_names(), Axes::All)?;
    let changed = plan.scatter(ops, &window, value, update)?;
    put_back(ops, &x, &plan.steps, changed)
}

/// `x` with the window that the steps select replaced.
fn put_back(ops: &mut Ops, x: &Tensor, steps: &[Step], window: Tensor) -> defn_core::Result<Tensor> {
    if steps::are_whole(steps, &x.ty().shape) { Ok(window) } else { steps::put(ops, x, steps, window) }
}

fn unnamed(ops: &mut Ops, value: Tensor) -> defn_core::Result<Tensor> {
    let shape = value.ty().shape.without_names();
    ops.reshape_to(value, shape)
}
