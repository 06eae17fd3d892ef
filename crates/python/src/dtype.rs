//! Element types as Python objects, and the conversion of names, NumPy dtypes and types to them.

use defn_core::{DType, Kind};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::build;
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// An element type. It equals its name, and the NumPy dtypes and Python types of the same elements.
#[pyclass(frozen, name = "DType", module = "defn")]
pub(crate) struct PyDType {
    pub(crate) dtype: DType,
}

#[pymethods]
impl PyDType {
    #[getter]
    fn name(&self) -> &'static str {
        self.dtype.name()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.dtype.kind() {
            Kind::Bool => "bool",
            Kind::Unsigned => "unsigned",
            Kind::Signed => "signed",
            Kind::Float => "float",
            Kind::Complex => "complex",
        }
    }

    #[getter]
    fn bits(&self) -> usize {
        bits(self.dtype)
    }

    /// The NumPy dtype of arrays with these elements.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(descriptor(py, self.dtype)?.into_any())
    }

    /// As [`PyDType::to_numpy`]: NumPy reads this attribute of objects that can be used as a dtype.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_numpy(py)
    }

    /// A tensor with these elements.
    #[pyo3(signature = (value, *, names = None, backend = None, copy = None))]
    fn __call__(
        &self,
        value: &Bound<'_, PyAny>,
        names: Option<&Bound<'_, PyAny>>,
        backend: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> Fallible<PyTensor> {
        guard(|| build::tensor(value, Some(self.dtype), names, backend, copy))
    }

    fn __str__(&self) -> &'static str {
        self.dtype.name()
    }

    fn __repr__(&self) -> &'static str {
        self.dtype.name()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::intern(py, self.dtype.name()).hash()
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let equal = from_python(other)? == Some(self.dtype);
        let answer = match op {
            CompareOp::Eq => equal,
            CompareOp::Ne => !equal,
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
                return Ok(py.NotImplemented().into_bound(py));
            }
        };
        Ok(PyBool::new(py, answer).to_owned().into_any())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("defn._core")?.getattr("dtype")?, (self.dtype.name(),)))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

/// The number of bits of an element in packed storage; a bool takes a byte.
pub(crate) fn bits(dtype: DType) -> usize {
    if dtype.is_packed() { dtype.bits() } else { 8 * dtype.storage_bytes() }
}

/// The only Python object of an element type.
pub(crate) fn object(py: Python<'_>, dtype: DType) -> PyResult<&Bound<'_, PyDType>> {
    static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();
    let objects = OBJECTS.get_or_try_init(py, || -> PyResult<Vec<Py<PyDType>>> {
        DType::ALL.iter().map(|&dtype| Py::new(py, PyDType { dtype })).collect()
    })?;
    Ok(objects[dtype as usize].bind(py))
}

/// Every element type, in the catalogue's order.
pub(crate) fn all<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
    let objects: Vec<_> = DType::ALL.iter().map(|&dtype| object(py, dtype)).collect::<PyResult<_>>()?;
    PyTuple::new(py, objects)
}

/// The element type of a dtype, a name, a NumPy dtype or a type.
///
/// # Errors
/// Any other value; the message describes it.
pub(crate) fn parse(value: &Bound<'_, PyAny>) -> Fallible<DType> {
    if let Ok(name) = value.cast::<PyString>() {
        let name = name.to_str()?;
        return of_name(name).ok_or_else(|| unknown(name).into());
    }
    match from_python(value)? {
        Some(dtype) => Ok(dtype),
        None => Err(Misuse::NotADType { got: convert::text(value)? }.into()),
    }
}

#[cold]
fn unknown(name: &str) -> Misuse {
    // The width of these NumPy and C names differs between libraries.
    let hint = match name {
        "half" => "; use f16",
        "float" | "single" | "double" => "; use f32 or f64",
        "int" | "int_" | "long" | "intp" => "; use s32 or s64",
        "uint" => "; use u32 or u64",
        "complex" => "; use c64 or c128",
        "longdouble" | "float96" | "float128" => "; f64 is the widest float",
        _ => "",
    };
    let known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    Misuse::UnknownDType { name: name.to_owned(), known: known.join(", "), hint }
}

/// The element type that an object represents, if any.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = value.py();
    if let Ok(object) = value.cast::<PyDType>() {
        return Ok(Some(object.get().dtype));
    }
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(of_name(name.to_str()?));
    }
    if let Ok(class) = value.cast::<PyType>() {
        for (known, dtype) in [
            (py.get_type::<PyBool>(), DType::Bool),
            (py.get_type::<PyInt>(), DType::S32),
            (py.get_type::<PyFloat>(), DType::F32),
            (py.get_type::<PyComplex>(), DType::C64),
        ] {
            if class.is(&known) {
                return Ok(Some(dtype));
            }
        }
        // `np.float32` and the scalar types of ml_dtypes. No other class is a dtype.
        let descriptor = if_fits(py, PyArrayDescr::new(py, class))?;
        let own = descriptor.filter(|descriptor| descriptor.typeobj().is(class));
        return Ok(own.and_then(|descriptor| from_descriptor(&descriptor)));
    }
    Ok(value.cast::<PyArrayDescr>().ok().and_then(from_descriptor))
}

/// The element type of a NumPy dtype, ignoring byte order.
pub(crate) fn from_descriptor(descriptor: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    // NumPy's ABI fixes the type numbers of its own types. The width of `long` depends on the platform, so
    // integers are matched by size.
    let integer =
        |signed: DType, unsigned: DType| Some(if descriptor.kind() == b'i' { signed } else { unsigned });
    match (descriptor.num(), descriptor.kind()) {
        (0..=10, b'b') => Some(DType::Bool),
        (0..=10, b'i' | b'u') => match descriptor.itemsize() {
            1 => integer(DType::S8, DType::U8),
            2 => integer(DType::S16, DType::U16),
            4 => integer(DType::S32, DType::U32),
            _ => integer(DType::S64, DType::U64),
        },
        (11, _) => Some(DType::F32),
        (12, _) => Some(DType::F64),
        (14, _) => Some(DType::C64),
        (15, _) => Some(DType::C128),
        (23, _) => Some(DType::F16),
        (256.., _) => from_extension(descriptor),
        _ => None,
    }
}

/// The types that ml_dtypes registers with NumPy, identified by name.
fn from_extension(descriptor: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let class = descriptor.typeobj();
    if class.module().ok()?.to_str().ok()? != "ml_dtypes" {
        return None;
    }
    let name = class.name().ok()?;
    let name = name.to_str().ok()?;
    DType::ALL.iter().copied().find(|&dtype| is_extension(dtype) && numpy_name(dtype) == name)
}

/// The name of each element type in NumPy or ml_dtypes.
fn numpy_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::U2 => "uint2",
        DType::U4 => "uint4",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::S2 => "int2",
        DType::S4 => "int4",
        DType::S8 => "int8",
        DType::S16 => "int16",
        DType::S32 => "int32",
        DType::S64 => "int64",
        DType::F8E5M2 => "float8_e5m2",
        DType::F8E4M3FN => "float8_e4m3fn",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::C64 => "complex64",
        DType::C128 => "complex128",
    }
}

/// Whether the type exists in ml_dtypes but not in NumPy.
fn is_extension(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::U2 | DType::U4 | DType::S2 | DType::S4 | DType::F8E5M2 | DType::F8E4M3FN | DType::BF16
    )
}

/// The element type with this name, ours or NumPy's.
fn of_name(name: &str) -> Option<DType> {
    let known = || DType::ALL.iter().copied().find(|&dtype| numpy_name(dtype) == name);
    name.parse().ok().or_else(known)
}

/// The NumPy dtype of arrays with elements of a type.
pub(crate) fn descriptor<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyArrayDescr>> {
    static DESCRIPTORS: [PyOnceLock<Py<PyArrayDescr>>; DType::ALL.len()] =
        [const { PyOnceLock::new() }; DType::ALL.len()];
    let known = DESCRIPTORS[dtype as usize].get_or_try_init(py, || make_descriptor(py, dtype))?;
    Ok(known.bind(py).clone())
}

fn make_descriptor(py: Python<'_>, dtype: DType) -> PyResult<Py<PyArrayDescr>> {
    let name = numpy_name(dtype);
    if is_extension(dtype) {
        let class = py.import("ml_dtypes")?.getattr(name)?;
        return Ok(PyArrayDescr::new(py, class)?.unbind());
    }
    Ok(PyArrayDescr::new(py, name)?.unbind())
}

/// The element type that an object represents.
#[pyfunction]
#[pyo3(name = "dtype")]
pub(crate) fn dtype_of<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyDType>> {
    Ok(object(value.py(), parse(value)?)?.clone())
}
