//! Data movement without arithmetic.

use defn_core::builder::{Arg, BuildArrange, BuildShape, Builder, Cut, PadMode, Size, Start};
use defn_core::{Axes, AxisRef, Name, Shape, Tensor, vectorize};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use super::parse::Names;
use super::{Parse, borrowed, functions, shared, view_fast_path, with};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::tensor::PyTensor;

/// The target of `reshape`: sizes with at most one open, or the shape of a tensor with its names.
enum Sizes {
    List(Vec<Size>),
    Like(Shape),
}

impl Parse for Sizes {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        if let Some(Ok(tensor)) = value.map(|value| value.cast::<PyTensor>()) {
            return Ok(Sizes::Like(tensor.get().tensor.ty().shape.clone()));
        }
        let is_auto = |value: &Bound<'_, PyAny>| {
            value.cast::<PyString>().is_ok_and(|text| text.to_str().is_ok_and(|text| text == "auto"))
        };
        if value.is_some_and(is_auto) {
            return Ok(Sizes::List(vec![Size::Auto]));
        }
        let entries = match value {
            Some(value) if convert::index(value)?.is_none() => if_fits(value.py(), value.try_iter())?,
            Some(_) | None => None,
        };
        let Some(entries) = entries else {
            let sizes: Vec<i64> = Parse::parse(op, what, value)?;
            return Ok(Sizes::List(sizes.into_iter().map(Size::from).collect()));
        };
        let mut sizes = Vec::new();
        for entry in entries {
            let entry = entry?;
            if is_auto(&entry) {
                sizes.push(Size::Auto);
            } else {
                sizes.extend(convert::integers(op, &entry)?.into_iter().map(Size::from));
            }
        }
        Ok(Sizes::List(sizes))
    }
}

/// The target of `broadcast`: sizes, or the shape of a tensor with its names.
struct Target(Shape);

impl Parse for Target {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        match value.map(|value| value.cast::<PyTensor>()) {
            Some(Ok(tensor)) => Ok(Target(tensor.get().tensor.ty().shape.clone())),
            Some(Err(_)) | None => Ok(Target(Parse::parse(op, what, value)?)),
        }
    }
}

/// One entry `(low, high, interior)` for each axis.
struct Padding(Vec<(i64, i64, i64)>);

impl Parse for Padding {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Padding(Vec::new())) };
        match convert::tuples(value)? {
            Some(entries) => Ok(Padding(entries.into_iter().map(<(i64, i64, i64)>::from).collect())),
            None => Err(convert::bad(op, what, value, "one (low, high, interior) for each axis")?),
        }
    }
}

/// One entry `(left, right)` for each axis.
struct Sides(Vec<(i64, i64)>);

impl Parse for Sides {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Sides(Vec::new())) };
        match convert::tuples(value)? {
            Some(entries) => Ok(Sides(entries.into_iter().map(<(i64, i64)>::from).collect())),
            None => Err(convert::bad(op, what, value, "one (left, right) for each axis")?),
        }
    }
}

impl Parse for PadMode<Tensor> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(Ok(text)) = value.map(|value| value.cast::<PyString>()) else {
            return Ok(PadMode::Value(Parse::parse(op, what, value)?));
        };
        match text.to_str()? {
            "cyclic" => Ok(PadMode::Cyclic),
            "mirror" => Ok(PadMode::Mirror),
            "replicate" => Ok(PadMode::Replicate),
            "reflect" => Ok(PadMode::Reflect),
            _ => {
                let required = "\"cyclic\", \"mirror\", \"replicate\", \"reflect\" or a scalar";
                Err(convert::bad(op, what, text.as_any(), required)?)
            }
        }
    }
}

/// Strides of a slice: one for each axis, or one for all.
struct Strides(Option<Vec<i64>>, bool);

impl Parse for Strides {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(Strides(None, false));
        };
        let list: Vec<i64> = Parse::parse(op, what, Some(value))?;
        Ok(Strides(Some(list), convert::index(value)?.is_some()))
    }
}

impl Strides {
    fn for_rank(self, rank: usize) -> Option<Vec<i64>> {
        match self {
            Strides(Some(list), true) => Some(vec![list[0]; rank]),
            Strides(list, _) => list,
        }
    }
}

defn_core::shape_functions!(shared);

functions! {
    reshape(tensor: Arg<Tensor>, shape: Sizes, names: Names = None) after reshape_fast_path => |ops| match (shape, names) {
        (Sizes::List(sizes), names) => ops.reshape(tensor, sizes, names.as_deref()),
        (Sizes::Like(shape), None) => ops.reshape_to(tensor, shape),
        (Sizes::Like(shape), Some(names)) => ops.reshape_to(tensor, shape.with_names(names)?),
    };
    new_axis(tensor: Arg<Tensor>, axis: i64, name: Option<Name> = None)
        => |ops| ops.new_axis(tensor, axis, name);
    rename(tensor: TensorOperand, names: Names = None) => |ops| {
        let names = names.unwrap_or_else(|| vec![None; tensor.0.ty().shape.rank()]);
        vectorize::check_names("rename", &tensor.0, &names)?;
        ops.rename(tensor.0, &names)
    };
    broadcast(tensor: Arg<Tensor>, shape: Target, axes: Axes = None, names: Names = None) => |ops| {
        let shape = match names {
            Some(names) => shape.0.with_names(names)?,
            None => shape.0,
        };
        ops.broadcast(tensor, shape, axes)
    };
    tile(tensor: Arg<Tensor>, repetitions: Vec<i64>) => |ops| ops.tile(tensor, &repetitions);
    concatenate(tensors: Vec<Arg<Tensor>>, axis: AxisRef) => |ops| {
        let tensors = ops.weak_all("concatenate", tensors)?;
        ops.concatenate(&tensors, axis)
    };
    stack(tensors: Vec<Arg<Tensor>>, axis: i64, name: Option<Name> = None) => |ops| {
        let tensors = ops.weak_all("stack", tensors)?;
        ops.stack(&tensors, axis, name)
    };
    slice(tensor: TensorOperand, starts: Vec<Start<Tensor>>, lengths: Vec<i64>, strides: Strides = None) => |ops| {
        let strides = strides.for_rank(tensor.0.ty().shape.rank());
        ops.slice(tensor.0, &starts, &lengths, strides.as_deref())
    };
    slice_along_axis(tensor: Arg<Tensor>, start: Start<Tensor>, length: i64, axis: AxisRef, strides: i64)
        => |ops| ops.slice_along_axis(tensor, start, length, axis, strides);
    put_slice(tensor: Arg<Tensor>, starts: Vec<Start<Tensor>>, slice: Arg<Tensor>)
        => |ops| ops.put_slice(tensor, &starts, slice);
    pad(tensor: Arg<Tensor>, value: Arg<Tensor>, config: Padding)
        => |ops| ops.pad(tensor, value, &config.0);
    pad_outer(tensor: Arg<Tensor>, mode: PadMode<Tensor>, config: Sides)
        => |ops| ops.pad_outer(tensor, mode, &config.0);
}

/// The fast path of `reshape` to a tuple of plain integers; `None` for other arguments.
fn reshape_fast_path(arguments: &[Option<&Bound<'_, PyAny>>]) -> Fallible<Option<PyTensor>> {
    let [Some(tensor), Some(shape), None] = arguments else { return Ok(None) };
    let Some(x) = borrowed(tensor) else { return Ok(None) };
    let mut sizes: SmallVec<[usize; 4]> = SmallVec::new();
    let add = |item: Borrowed<'_, '_, PyAny>| {
        let is_plain = item.is_exact_instance_of::<PyInt>();
        let size = if is_plain { item.extract::<i64>().ok() } else { None };
        sizes.push(usize::try_from(size?).ok()?);
        Some(())
    };
    let Ok(list) = shape.cast_exact::<PyTuple>() else { return Ok(None) };
    if list.iter_borrowed().map(add).any(|added| added.is_none()) {
        return Ok(None);
    }
    let (ty, shape) = (x.ty(), Shape::new(&sizes));
    // If the tensor has that shape already, the general path returns the tensor itself.
    if shape.checked_size() != Some(ty.size()) || shape == ty.shape {
        return Ok(None);
    }
    Ok(view_fast_path(x, 0, shape)?.map(PyTensor::new))
}

/// An operand whose shape is needed before the op runs. A number becomes a tensor.
struct TensorOperand(Tensor);

impl Parse for TensorOperand {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            let arg: Arg<Tensor> = Parse::parse(op, what, None)?;
            return with(|ops| defn_core::builder::Builder::operand(ops, arg)).map(TensorOperand);
        };
        convert::tensor(op, value).map(TensorOperand)
    }

    fn bytes(&self) -> usize {
        self.0.whole().byte_size()
    }
}

/// The two parts of a tensor before and after a cut.
#[pyfunction]
fn split(
    tensor: &Bound<'_, PyAny>,
    at: &Bound<'_, PyAny>,
    axis: &Bound<'_, PyAny>,
) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let x = convert::arg("split", tensor)?;
        let cut: Cut = Parse::parse("split", "split", Some(at))?;
        let axis = convert::axis("split", axis)?;
        let (left, right) = with(|ops| ops.split(x, cut, axis))?;
        Ok((PyTensor::new(left), PyTensor::new(right)))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
