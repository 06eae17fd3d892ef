//! `defn.Tensor`: one immutable class for concrete, traced and template tensors.

use std::sync::Arc;

use defn_core::builder::{Arg, BuildElementwise, BuildLinalg, BuildShape};
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::tensor::Data;
use defn_core::weak::{Operator, Weak};
use defn_core::{Axes, AxisRef, ErrorKind, Tensor, TensorType};
use pyo3::PyTraverseError;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array;
use crate::backends;
use crate::buffer;
use crate::dlpack;
use crate::dtype::{self, PyDType};
use crate::error::{Fallible, guard};
use crate::index;
use crate::location;
use crate::misuse::Misuse;
use crate::nodes;
use crate::ops;
use crate::pickle;
use crate::pjrt;
use crate::pybackend::{self, PythonBuffer};
use crate::read;
use crate::rows::Rows;
use crate::scope;
use crate::show;

/// A tensor. Immutable; its elements are numbers of one dtype, in a shape whose axes may have names.
#[pyclass(frozen, weakref, name = "Tensor", module = "defn")]
pub(crate) struct PyTensor {
    pub(crate) tensor: Tensor,
    _mark: scope::Mark,
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> PyTensor {
        if let Some(buffer) = tensor.buffer() {
            buffer.list(tensor.ty(), location::ask);
        }
        let mark = scope::note(&tensor);
        PyTensor { tensor, _mark: mark }
    }

    fn ty(&self) -> &TensorType {
        self.tensor.ty()
    }

    /// Refuses to pass a traced tensor's elements to a function of NumPy or `math`; the error names that
    /// function.
    fn refuse_traced(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().tensor.is_traced() {
            let py = slf.py();
            py.import("defn._numpy")?.call_method1(intern!(py, "refuse_traced"), (slf,))?;
        }
        Ok(())
    }

    fn unary<'py>(&self, py: Python<'py>, op: UnaryOp) -> Fallible<Bound<'py, PyTensor>> {
        if let Some(result) = ops::fast_path(py, &Op::Unary(op), &[Arg::Value(&self.tensor)])? {
            return Ok(result);
        }
        let mut result = ops::on(&self.tensor, move |ops, x| ops.unary(op, x))?;
        if let Some(operator) = Operator::of_unary(op).filter(|_| self.tensor.is_weak()) {
            let weak = Weak::of(operator, &[Arg::Value(self.tensor.clone())]);
            result = PyTensor::new(result.tensor.with_weak(weak));
        }
        Ok(Bound::new(py, result)?)
    }

    fn binary<'py>(
        &self,
        op: BinaryOp,
        other: &Bound<'py, PyAny>,
        reflected: bool,
    ) -> Fallible<Bound<'py, PyAny>> {
        if let Some(b) = ops::borrowed_operand(other, self.ty().dtype) {
            let a = Arg::Value(&self.tensor);
            let operands = if reflected { [b, a] } else { [a, b] };
            if let Some(result) = ops::fast_path(other.py(), &Op::Binary(op), &operands)? {
                return Ok(result.into_any());
            }
        }
        ops::operator(self, other, (Operator::of_binary(op), reflected), move |ops, a, b| {
            ops.binary(op, a, b)
        })
    }
}

#[pymethods]
impl PyTensor {
    /// With this priority, NumPy leaves operators between its arrays and tensors to the tensors.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        Ok(dtype::object(py, self.ty().dtype)?.clone())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.ty().shape.sizes())
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names: Vec<Option<&str>> = self.ty().shape.names().map(|name| name.map(|name| &**name)).collect();
        PyTuple::new(py, names)
    }

    #[getter]
    fn vectorized_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let axes: Vec<(&str, usize)> =
            self.tensor.vectorized_axes().iter().map(|(name, size)| (&**name, *size)).collect();
        PyTuple::new(py, axes)
    }

    #[getter]
    fn rank(&self) -> usize {
        self.ty().shape.rank()
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.ty().shape.rank()
    }

    #[getter]
    fn size(&self) -> usize {
        self.ty().size()
    }

    #[getter]
    fn flat_size(&self) -> usize {
        self.tensor.whole().size()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.whole().byte_size()
    }

    #[getter]
    fn backend<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.tensor.backend().map(|backend| backends::object(py, &*backend)).transpose()
    }

    /// The data that the tensor's backend stores; for the CPU, a read-only array over the tensor's memory.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            self.tensor.require_buffer("data", "return it from the definition, and read it there")?;
            match pybackend::data(py, &self.tensor) {
                Some(data) => Ok(data?),
                None => array::view(py, &self.tensor, "data"),
            }
        })
    }

    /// The node of a traced tensor in its graph.
    #[getter]
    fn expr(&self) -> Fallible<nodes::Node> {
        guard(|| nodes::of_tensor(&self.tensor))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A buffer with other owners, such as another tensor or a run, is not reported.
        match self.tensor.buffer() {
            Some(buffer) if Arc::strong_count(buffer) == 1 => {
                match buffer.as_any().downcast_ref::<PythonBuffer>() {
                    Some(own) => own.traverse(&visit),
                    None => Ok(()),
                }
            }
            Some(_) | None => Ok(()),
        }
    }

    #[getter]
    fn is_traced(&self) -> bool {
        self.tensor.is_traced()
    }

    #[getter]
    fn is_template(&self) -> bool {
        match self.tensor.data() {
            Data::Template => true,
            Data::Buffer(_) | Data::Traced { .. } => false,
        }
    }

    #[getter(T)]
    fn transposed(&self) -> Fallible<PyTensor> {
        ops::on(&self.tensor, |ops, x| ops.transpose(x, Axes::All))
    }

    #[getter(mT)]
    fn matrix_transposed(&self) -> Fallible<PyTensor> {
        let rank = self.ty().shape.rank() as i64;
        if rank < 2 {
            let required = "it must have at least two axes";
            return Err(ErrorKind::Rank { op: "mT", got: self.ty().clone(), required }.into());
        }
        let axes: Vec<AxisRef> = (0..rank - 2).chain([rank - 1, rank - 2]).map(AxisRef::Index).collect();
        ops::on(&self.tensor, |ops, x| ops.transpose(x, axes))
    }

    /// The elements as a NumPy array: read-only, and without a copy if they are on the host.
    #[pyo3(signature = (*, dtype = None))]
    fn to_numpy<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let view = array::view(py, &self.tensor, "to_numpy")?;
            match dtype.filter(|dtype| !dtype.is_none()) {
                None => Ok(view),
                Some(dtype) => {
                    let descriptor = dtype::descriptor(py, dtype::parse(dtype)?)?;
                    Ok(view.call_method1(intern!(py, "astype"), (descriptor,))?)
                }
            }
        })
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Fallible<Bound<'py, PyAny>> {
        Self::refuse_traced(slf)?;
        guard(|| {
            let view = array::view(py, &slf.get().tensor, "__array__")?;
            let known = view.getattr(intern!(py, "dtype"))?;
            match dtype {
                Some(dtype) if !dtype.is_none() && !known.eq(&dtype)? => {
                    if copy == Some(false) {
                        let text =
                            format!("a {} tensor becomes {dtype} only by a copy", slf.get().ty().dtype);
                        return Err(PyValueError::new_err(text).into());
                    }
                    Ok(view.call_method1(intern!(py, "astype"), (dtype,))?)
                }
                Some(_) | None if copy == Some(true) => Ok(view.call_method0(intern!(py, "copy"))?),
                Some(_) | None => Ok(view),
            }
        })
    }

    /// The elements as a read-only buffer.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> Fallible<()> {
        // SAFETY: the interpreter passes a view that may be written.
        guard(|| unsafe { buffer::fill(&slf.get().tensor, slf.as_any(), view, flags) })
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter releases each view that was filled once.
        unsafe { buffer::release(view) }
    }

    /// The elements as a DLPack capsule for other libraries; read-only unless they are copied.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            // Exported elements are computed already: a device's streams have nothing to wait for.
            let is_on_host = pjrt::dlpack_device(&self.tensor)?.is_none();
            if is_on_host && stream.is_some_and(|stream| !stream.is_none()) {
                return Err(PyBufferError::new_err("__dlpack__: the host has no streams").into());
            }
            dlpack::export(py, &self.tensor, &dlpack::Request { max_version, device: dl_device, copy })
        })
    }

    /// The device of the elements, as DLPack numbers devices.
    fn __dlpack_device__(&self) -> Fallible<(i32, i32)> {
        guard(|| match pjrt::dlpack_device(&self.tensor)? {
            None => Ok(dlpack::HOST),
            Some(Some(device)) => Ok(device),
            Some(None) => {
                let text = "__dlpack_device__: DLPack has no number for the device";
                Err(PyBufferError::new_err(text).into())
            }
        })
    }

    /// The elements as nested lists.
    fn to_list<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| read::to_list(py, &self.tensor))
    }

    /// The elements in row-major order as one list, at most `limit` of them.
    #[pyo3(signature = (*, limit = None))]
    fn to_flat_list<'py>(
        &self,
        py: Python<'py>,
        limit: Option<&Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyList>> {
        guard(|| {
            let limit = limit.map(|limit| show::parse_limit("to_flat_list", limit)).transpose()?;
            read::to_flat_list(py, &self.tensor, limit)
        })
    }

    /// The only element of a scalar as a Python number.
    fn to_number<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| read::to_number(py, &self.tensor))
    }

    /// The only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| read::number(py, read::only_element("item", &self.tensor)?))
    }

    /// Waits until the elements are computed, and returns the tensor.
    fn block_until_ready(slf: Bound<'_, Self>) -> Fallible<Bound<'_, Self>> {
        guard(|| {
            let tensor = &slf.get().tensor;
            if pjrt::wait(slf.py(), tensor)? {
                return Ok(());
            }
            tensor.host_bytes("block_until_ready").map(drop).map_err(Into::into)
        })?;
        Ok(slf)
    }

    fn __bool__(&self) -> Fallible<bool> {
        if self.tensor.is_traced() {
            let (got, line) = (self.ty().clone(), location::source_line());
            return Err(Misuse::TracedBool { got, line }.into());
        }
        guard(|| Ok(read::is_true(read::only_element("bool", &self.tensor)?)))
    }

    fn __float__(slf: &Bound<'_, Self>) -> Fallible<f64> {
        Self::refuse_traced(slf)?;
        guard(|| read::to_float(&slf.get().tensor))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let number = read::number(py, read::only_element("int", &self.tensor)?)?;
            Ok(py.get_type::<pyo3::types::PyInt>().call1((number,))?)
        })
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            if !self.ty().dtype.is_integer() {
                let required = "an integer";
                return Err(Misuse::NotThisKind { op: "index", got: self.ty().clone(), required }.into());
            }
            read::number(py, read::only_element("index", &self.tensor)?)
        })
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let number = read::number(py, read::only_element("complex", &self.tensor)?)?;
            Ok(py.get_type::<pyo3::types::PyComplex>().call1((number,))?)
        })
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> Fallible<Bound<'py, PyAny>> {
        if spec.is_empty() {
            return Ok(PyString::new(py, &self.__str__(py)?).into_any());
        }
        guard(|| {
            let number = read::number(py, read::only_element("format", &self.tensor)?)?;
            Ok(number.call_method1(intern!(py, "__format__"), (spec,))?)
        })
    }

    fn __len__(&self) -> Fallible<usize> {
        match self.ty().shape.sizes().first() {
            Some(&size) => Ok(size),
            None => Err(Misuse::ScalarLength { got: self.ty().clone() }.into()),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Fallible<Rows> {
        if slf.get().ty().shape.rank() == 0 {
            return Err(Misuse::ScalarIteration { got: slf.get().ty().clone() }.into());
        }
        Ok(Rows::of(slf.unbind()))
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> Fallible<PyTensor> {
        guard(|| index::get(&self.tensor, index))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // By identity, as for other objects; the low bits of an address are always zero.
        (slf.as_ptr() as isize) >> 4
    }

    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, op: CompareOp) -> Fallible<Bound<'py, PyAny>> {
        let op = match op {
            CompareOp::Lt => BinaryOp::LESS,
            CompareOp::Le => BinaryOp::LESS_EQUAL,
            CompareOp::Eq => BinaryOp::EQUAL,
            CompareOp::Ne => BinaryOp::NOT_EQUAL,
            CompareOp::Gt => BinaryOp::GREATER,
            CompareOp::Ge => BinaryOp::GREATER_EQUAL,
        };
        self.binary(op, other, false)
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::ADD, other, false)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::ADD, other, true)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::SUBTRACT, other, false)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::SUBTRACT, other, true)
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::MULTIPLY, other, false)
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::MULTIPLY, other, true)
    }

    fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::DIVIDE, other, false)
    }

    fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::DIVIDE, other, true)
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_AND, other, false)
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_AND, other, true)
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_OR, other, false)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_OR, other, true)
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_XOR, other, false)
    }

    fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::BITWISE_XOR, other, true)
    }

    fn __lshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::LEFT_SHIFT, other, false)
    }

    fn __rlshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::LEFT_SHIFT, other, true)
    }

    fn __rshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::RIGHT_SHIFT, other, false)
    }

    fn __rrshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        self.binary(BinaryOp::RIGHT_SHIFT, other, true)
    }

    fn __floordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        ops::operator(self, other, (Some(Operator::FloorDivide), false), |ops, a, b| ops.floor_divide(a, b))
    }

    fn __rfloordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        ops::operator(self, other, (Some(Operator::FloorDivide), true), |ops, a, b| ops.floor_divide(a, b))
    }

    fn __mod__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        ops::operator(self, other, (Some(Operator::FloorModulo), false), |ops, a, b| ops.floor_modulo(a, b))
    }

    fn __rmod__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        ops::operator(self, other, (Some(Operator::FloorModulo), true), |ops, a, b| ops.floor_modulo(a, b))
    }

    fn __matmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        if let Some(b) = ops::borrowed(other)
            && let Some(result) = ops::matmul_fast_path(&self.tensor, b)?
        {
            return Ok(Bound::new(other.py(), PyTensor::new(result))?.into_any());
        }
        ops::operator(self, other, (None, false), |ops, a, b| ops.matmul(a, b))
    }

    fn __rmatmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        ops::operator(self, other, (None, true), |ops, a, b| ops.matmul(a, b))
    }

    fn __pow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        if modulo.is_some() {
            return Ok(other.py().NotImplemented().into_bound(other.py()));
        }
        self.binary(BinaryOp::POW, other, false)
    }

    fn __rpow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        if modulo.is_some() {
            return Ok(other.py().NotImplemented().into_bound(other.py()));
        }
        self.binary(BinaryOp::POW, other, true)
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTensor>> {
        self.unary(py, UnaryOp::NEGATE)
    }

    fn __pos__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTensor>> {
        self.unary(py, UnaryOp::ABS)
    }

    fn __invert__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTensor>> {
        self.unary(py, UnaryOp::BITWISE_NOT)
    }

    #[pyo3(signature = (ndigits = None))]
    fn __round__(&self, ndigits: Option<i64>) -> Fallible<PyTensor> {
        match ndigits {
            None | Some(0) => ops::on(&self.tensor, |ops, x| ops.unary(UnaryOp::ROUND, x)),
            Some(ndigits) => Err(Misuse::RoundDigits { ndigits }.into()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> Fallible<String> {
        guard(|| show::tensor(py, &self.tensor))
    }

    fn __str__(&self, py: Python<'_>) -> Fallible<String> {
        guard(|| show::plain(py, &self.tensor))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| pickle::reduce(py, &self.tensor))
    }
}
