//! Conversion of Python objects to the types that functions declare for their arguments.

use defn_core::builder::{Arg, Cut, Start};
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, DType, Name, Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::Operands;
use crate::containers::{self, Mode, Sort};
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, if_fits};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// A parsed argument of a function. `op` and `what` are for messages; `None` means that the argument was left
/// out.
pub(crate) trait Parse: Sized {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self>;

    /// The number of bytes that the op will read from it.
    fn bytes(&self) -> usize {
        0
    }

    /// Adds it to the operands under its name, if it is an operand.
    fn note(&self, _name: &'static str, _operands: &mut Operands) {}
}

/// The object itself. A missing argument is an error, since None is not an operand.
pub(super) fn require<'a, 'py>(
    op: &'static str,
    what: &'static str,
    value: Option<&'a Bound<'py, PyAny>>,
    required: &str,
) -> Fallible<&'a Bound<'py, PyAny>> {
    value.ok_or_else(|| {
        let (op, what, required) = (op.to_owned(), what.to_owned(), required.to_owned());
        Misuse::BadArgument { op, what, got: "None".to_owned(), required }.into()
    })
}

impl Parse for Arg<Tensor> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        convert::arg(op, require(op, what, value, "a tensor, a number or an array")?)
    }

    fn bytes(&self) -> usize {
        super::size_of_arg(self)
    }

    fn note(&self, name: &'static str, operands: &mut Operands) {
        operands.add_arg(name, self);
    }
}

impl Parse for Option<Arg<Tensor>> {
    fn parse(op: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(|value| convert::arg(op, value)).transpose()
    }

    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, super::size_of_arg)
    }

    fn note(&self, name: &'static str, operands: &mut Operands) {
        if let Some(arg) = self {
            operands.add_arg(name, arg);
        }
    }
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>()
}

fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyComplex>()
}

/// Appends the leaves of a container as operands, in order.
fn add_leaves(op: &'static str, value: &Bound<'_, PyAny>, args: &mut Vec<Arg<Tensor>>) -> Fallible<()> {
    let flat = containers::flatten(op, Mode::State, value)?;
    for leaf in &flat.leaves {
        args.push(convert::arg(op, leaf)?);
    }
    Ok(())
}

impl Parse for Vec<Arg<Tensor>> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "a sequence or a container of tensors";
        let value = require(op, what, value, required)?;
        if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyString>() {
            return Err(convert::bad(op, what, value, required)?);
        }
        let mut args = Vec::new();
        if containers::sort(value)? == Sort::Container && !is_list(value) {
            add_leaves(op, value, &mut args)?;
            return Ok(args);
        }
        let Some(items) = if_fits(value.py(), value.try_iter())? else {
            return Err(convert::bad(op, what, value, required)?);
        };
        for item in items {
            let item = item?;
            if item.is_instance_of::<PyTensor>() || containers::sort(&item)? != Sort::Container {
                args.push(convert::arg(op, &item)?);
                continue;
            }
            // A list of numbers may have been meant as one tensor.
            if is_list(&item) && item.try_iter()?.any(|entry| entry.is_ok_and(|entry| is_number(&entry))) {
                return Err(convert::not_a_tensor(op, &item)?);
            }
            add_leaves(op, &item, &mut args)?;
        }
        Ok(args)
    }

    fn bytes(&self) -> usize {
        self.iter().map(super::size_of_arg).sum()
    }

    fn note(&self, _: &'static str, operands: &mut Operands) {
        for arg in self {
            if let Arg::Value(tensor) = arg {
                operands.add(None, tensor);
            }
        }
    }
}

impl Parse for Axes {
    fn parse(op: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        convert::axes(op, value)
    }
}

impl Parse for AxisRef {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        convert::axis(op, require(op, what, value, "an int or the name of an axis")?)
    }
}

impl Parse for Option<AxisRef> {
    fn parse(op: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(|value| convert::axis(op, value)).transpose()
    }
}

impl Parse for bool {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(false);
        };
        match value.cast::<PyBool>() {
            Ok(flag) => Ok(flag.is_true()),
            Err(_) => Err(convert::bad(op, what, value, "True or False")?),
        }
    }
}

impl Parse for i64 {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, "an int")?;
        match convert::index(value)? {
            Some(number) => Ok(number),
            None => Err(convert::bad(op, what, value, "an int")?),
        }
    }
}

impl Parse for usize {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "an int that is at least 0";
        let value = require(op, what, value, required)?;
        match convert::index(value)?.map(usize::try_from) {
            Some(Ok(number)) => Ok(number),
            Some(Err(_)) | None => Err(convert::bad(op, what, value, required)?),
        }
    }
}

impl Parse for f64 {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, "a float")?;
        match if_fits(value.py(), value.extract())? {
            Some(number) => Ok(number),
            None => Err(convert::bad(op, what, value, "a float")?),
        }
    }
}

impl Parse for Option<f64> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(|value| f64::parse(op, what, Some(value))).transpose()
    }
}

impl Parse for DType {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        dtype::parse(require(op, what, value, "a dtype")?)
    }
}

impl Parse for Option<DType> {
    fn parse(_: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(dtype::parse).transpose()
    }
}

impl Parse for Option<Name> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(None);
        };
        match value.cast::<PyString>() {
            Ok(name) => Ok(Some(Name::from(name.to_str()?))),
            Err(_) => Err(convert::bad(op, what, value, "a str or None")?),
        }
    }
}

/// Names, one entry for each axis, or `None` if left out.
pub(super) type Names = Option<Vec<Option<Name>>>;

impl Parse for Names {
    fn parse(op: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(|value| convert::names(op, value)).transpose()
    }
}

impl Parse for Shape {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        convert::shape(op, require(op, what, value, "a shape")?)
    }
}

impl Parse for Vec<i64> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        convert::integers(op, require(op, what, value, "an int or a sequence of ints")?)
    }
}

impl Parse for Start<Tensor> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, "an int or a scalar integer tensor")?;
        match convert::index(value)? {
            Some(index) => Ok(Start::Index(index)),
            None => Ok(Start::Value(convert::tensor(op, value)?)),
        }
    }
}

impl Parse for Vec<Start<Tensor>> {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "a sequence with an int or a scalar integer tensor for each axis";
        let value = require(op, what, value, required)?;
        if value.is_instance_of::<PyTensor>() {
            return Err(convert::bad(op, what, value, required)?);
        }
        let Some(items) = if_fits(value.py(), value.try_iter())? else {
            return Err(convert::bad(op, what, value, required)?);
        };
        items.map(|item| Parse::parse(op, what, Some(&item?))).collect()
    }
}

impl Parse for Cut {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "an int, or a float between 0 and 1";
        let value = require(op, what, value, required)?;
        if value.is_instance_of::<PyFloat>() {
            return Ok(Cut::Share(value.extract()?));
        }
        match convert::index(value)? {
            Some(at) => Ok(Cut::At(at)),
            None => Err(convert::bad(op, what, value, required)?),
        }
    }
}

impl Parse for TieBreak {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(TieBreak::Low);
        };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        let found = TieBreak::ALL.iter().find(|known| name.as_deref() == Some(known.name()));
        match found {
            Some(&found) => Ok(found),
            None => Err(convert::bad(op, what, value, "\"low\" or \"high\"")?),
        }
    }
}
