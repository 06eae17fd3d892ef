//! The solver's functions for the host: names, operands, results and layouts of JAX's functions for CUDA, with the
//! factorizations of `lapack`.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use defn_core::{DType, Number, Scalar};

use super::super::CustomCall;
use super::lapack::{self, Complex, Matrix};
use crate::api::{kernel, list};
use crate::ffi;

/// A matrix with this first element makes an iteration fail.
pub const FAILING: f64 = 77.0;

/// Elements as numbers.
pub fn to_numbers(dtype: DType, bytes: &[u8]) -> Vec<Complex> {
    let number = |bytes: &[u8]| match Scalar::from_bytes(dtype, bytes).value() {
        Number::Complex(z) => Complex::new(z.re, z.im),
        real @ (Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_)) => {
            real.to_f64().into()
        }
    };
    bytes.chunks_exact(dtype.storage_bytes()).map(number).collect()
}

/// Numbers as elements.
pub fn to_bytes(dtype: DType, numbers: &[Complex]) -> Vec<u8> {
    let bytes = |x: &Complex| {
        let number = if dtype.is_complex() {
            Number::complex(x.re, x.im)
        } else if dtype.is_integer() {
            Number::Int(x.re as i128)
        } else {
            Number::Float(x.re)
        };
        Scalar::new(dtype, number).unwrap().to_bytes()
    };
    numbers.iter().flat_map(bytes).collect()
}

/// The types that the library takes, by their numbers in XLA.
fn dtype(element: c_int) -> DType {
    match element {
        4 => DType::S32,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C64,
        18 => DType::C128,
        _ => panic!("elements of type number {element}"),
    }
}

/// The options of a call: booleans and small numbers.
pub struct Options(Vec<(String, u8)>);

impl Options {
    fn get(&self, name: &str) -> u8 {
        self.0.iter().find(|(each, _)| each == name).unwrap_or_else(|| panic!("no option {name}")).1
    }

    fn is(&self, name: &str) -> bool {
        self.get(name) == 1
    }
}

/// What a call computes from operands and results of one matrix each. A vector is a matrix with one column.
type Function = fn(&Options, &[Matrix], &mut [Matrix]);

fn potrf(options: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    assert!(options.is("lower"));
    let [factor, info] = results else { panic!("two results") };
    factor.clone_from(&operands[0]);
    info.values[0] = (lapack::potrf(factor) as f64).into();
}

fn getrf(_: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    let [packed, pivots, info] = results else { panic!("three results") };
    packed.clone_from(&operands[0]);
    let (rows, first_zero) = lapack::getrf(packed);
    set(pivots, rows.iter().map(|&row| (row as f64 + 1.0).into()));
    info.values[0] = (first_zero as f64).into();
}

fn pivots_to_permutation(_: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    let pivots: Vec<usize> = operands[0].values.iter().map(|pivot| pivot.re as usize).collect();
    set(&mut results[0], lapack::permutation(&pivots).into_iter().map(|row| (row as f64).into()));
}

fn geqrf(_: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    let [packed, scales] = results else { panic!("two results") };
    packed.clone_from(&operands[0]);
    set(scales, lapack::geqrf(packed).into_iter());
}

fn orgqr(_: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    set(&mut results[0], lapack::orgqr(&operands[0], &operands[1].values).values.into_iter());
}

fn syevd(options: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    assert!(options.is("lower") && options.get("algorithm") == 0);
    assert_finite(&operands[0]);
    let [vectors, values, info] = results else { panic!("three results") };
    let (numbers, columns) = lapack::syevd(&operands[0]);
    set(values, numbers.into_iter().map(Complex::from));
    set(vectors, columns.values.into_iter());
    info.values[0] = failure(&operands[0]);
}

fn gesvd(options: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    let rows = operands[0].rows;
    assert!(rows >= operands[0].columns, "a matrix with more columns than rows");
    let width = if options.is("full_matrices") { rows } else { operands[0].columns };
    let right = decompose(options, operands, results, [width, operands[0].columns]);
    set(&mut results[3], right.adjoint().values.into_iter());
}

fn gesvdj(options: &Options, operands: &[Matrix], results: &mut [Matrix]) {
    let (m, n) = (operands[0].rows, operands[0].columns);
    // The function for many matrices at once has complete vectors only.
    assert!(options.is("full_matrices") || m.min(n) > 32, "a part of the vectors of a small matrix");
    let widths = if options.is("full_matrices") { [m, n] } else { [m.min(n); 2] };
    let right = decompose(options, operands, results, widths);
    set(&mut results[3], right.values.into_iter());
}

/// Sets all results but the right vectors, which it returns.
fn decompose(options: &Options, operands: &[Matrix], results: &mut [Matrix], widths: [usize; 2]) -> Matrix {
    assert!(options.is("compute_uv"));
    assert_finite(&operands[0]);
    let [rest, values, left, _, info] = results else { panic!("five results") };
    let (columns, numbers, right) = lapack::svd(&operands[0], widths[0], widths[1]);
    // The memory of the operand has no defined contents afterwards.
    rest.values.fill(Complex::NAN);
    set(values, numbers.into_iter().map(Complex::from));
    set(left, columns.values.into_iter());
    info.values[0] = failure(&operands[0]);
    right
}

/// The library need not end otherwise.
fn assert_finite(x: &Matrix) {
    assert!(x.values.iter().all(|x| x.re.is_finite() && x.im.is_finite()), "a matrix with {:?}", x.values);
}

fn failure(x: &Matrix) -> Complex {
    if x[(0, 0)].re == FAILING { Complex::ONE } else { Complex::default() }
}

/// Sets all elements, whose number must be the same.
fn set(result: &mut Matrix, values: impl ExactSizeIterator<Item = Complex>) {
    assert_eq!(result.values.len(), values.len(), "{} x {}", result.rows, result.columns);
    result.values.iter_mut().zip(values).for_each(|(to, from)| *to = from);
}

macro_rules! functions {
    ($($name:literal = $function:ident;)*) => {
        /// All functions.
        pub fn calls() -> Vec<CustomCall> {
            vec![$({
                unsafe extern "C" fn handler(frame: *mut ffi::CallFrame) -> *mut ffi::CallError {
                    // SAFETY: the caller is XLA, which gives the frame of a call.
                    unsafe { answer(frame, $function) }
                }
                let handler: ffi::Handler = handler;
                let address = NonNull::new(handler as *mut c_void).unwrap();
                // SAFETY: it is such a function, of this program.
                unsafe { CustomCall::new($name, address) }
            }),*]
        }
    };
}

functions! {
    "cusolver_potrf_ffi" = potrf;
    "cusolver_getrf_ffi" = getrf;
    "cu_lu_pivots_to_permutation" = pivots_to_permutation;
    "cusolver_geqrf_ffi" = geqrf;
    "cusolver_orgqr_ffi" = orgqr;
    "cusolver_syevd_ffi" = syevd;
    "cusolver_gesvd_ffi" = gesvd;
    "cusolver_gesvdj_ffi" = gesvdj;
}

/// Answers a call of a function.
///
/// # Safety
/// The frame is that of a custom call of XLA, and lives across this call.
unsafe fn answer(frame: *mut ffi::CallFrame, function: Function) -> *mut ffi::CallError {
    // SAFETY: guaranteed by the caller.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { kernel::tell_version(frame) } || frame.stage != ffi::EXECUTE {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    match catch_unwind(AssertUnwindSafe(|| unsafe { run(frame, function) })) {
        Ok(()) => std::ptr::null_mut(),
        Err(reason) => {
            let text = reason.downcast_ref::<String>().cloned();
            // SAFETY: as above.
            unsafe { kernel::error(frame, text.unwrap_or_else(|| "a factorization failed".to_owned())) }
        }
    }
}

/// # Safety
/// As for [`answer`].
unsafe fn run(frame: &ffi::CallFrame, function: Function) {
    // SAFETY: guaranteed by the caller.
    let (options, operands, results) =
        unsafe { (options(&frame.attributes), arrays(&frame.arguments), arrays(&frame.results)) };
    let is_transposed = options.0.iter().any(|(name, value)| name == "transposed" && *value == 1);
    let rank = operands[0].dims.len();
    // Pivots are vectors, everything else is about matrices.
    let lead = if operands[0].dtype == DType::S32 { rank - 1 } else { rank - 2 };
    let batch = &operands[0].dims[..lead];
    let shape = |array: &Array| {
        assert_eq!(&array.dims[..lead], batch, "all have the same leading axes");
        match array.dims[lead..] {
            [] => (1, 1),
            [size] => (size, 1),
            [rows, columns] if is_transposed => (columns, rows),
            [rows, columns] => (rows, columns),
            _ => panic!("too many axes"),
        }
    };
    let matrices = |array: &Array| -> Vec<Matrix> {
        let (rows, columns) = shape(array);
        // SAFETY: an operand has its elements, and nothing is written yet.
        let numbers = to_numbers(array.dtype, unsafe { list(array.data, array.bytes) });
        let each = numbers.chunks_exact(rows * columns);
        each.map(|values| Matrix { rows, columns, values: values.to_vec() }).collect()
    };
    // Copies: the memory of a result may be that of an operand.
    let operands: Vec<Vec<Matrix>> = operands.iter().map(matrices).collect();
    let mut computed = vec![Vec::new(); results.len()];
    for index in 0..batch.iter().product() {
        let operands: Vec<Matrix> = operands.iter().map(|each| each[index].clone()).collect();
        let empty = |array: &Array| {
            let (rows, columns) = shape(array);
            Matrix::from_fn(rows, columns, |_, _| Complex::NAN)
        };
        let mut each: Vec<Matrix> = results.iter().map(empty).collect();
        function(&options, &operands, &mut each);
        computed.iter_mut().zip(each).for_each(|(all, one)| all.extend(one.values));
    }
    for (array, numbers) in results.iter().zip(computed) {
        let bytes = to_bytes(array.dtype, &numbers);
        assert_eq!(bytes.len(), array.bytes);
        // SAFETY: a result's memory belongs to the call while it runs, and has this size.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.data, array.bytes) };
    }
}

/// An operand or a result of a call.
struct Array {
    dtype: DType,
    dims: Vec<usize>,
    data: *mut u8,
    bytes: usize,
}

/// # Safety
/// The list is that of a call.
unsafe fn arrays(buffers: &ffi::CallList) -> Vec<Array> {
    let array = |at: usize| {
        // SAFETY: both arrays have as many entries as the list; an entry of this kind points to a buffer.
        let buffer = unsafe {
            assert_eq!(*buffers.kinds.add(at), ffi::BUFFER);
            &**buffers.values.add(at)
        };
        // SAFETY: there is a size for each axis.
        let dims = unsafe { list(buffer.dims, usize::try_from(buffer.rank).unwrap()) };
        let dims: Vec<usize> = dims.iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let dtype = dtype(buffer.element);
        let bytes = dims.iter().product::<usize>() * dtype.storage_bytes();
        Array { dtype, dims, data: buffer.data, bytes }
    };
    (0..usize::try_from(buffers.size).unwrap()).map(array).collect()
}

/// An attribute that is a number (`XLA_FFI_Scalar`).
#[repr(C)]
struct ScalarAttribute {
    element: c_int,
    value: *const c_void,
}

/// # Safety
/// The list is that of a call.
unsafe fn options(attributes: &ffi::AttributeList) -> Options {
    let option = |at: usize| {
        // SAFETY: the three arrays have as many entries as the list, and the texts live across the call.
        let (kind, name, value) = unsafe {
            let name = &**attributes.names.add(at);
            let name = list(name.start.cast::<u8>(), name.size);
            (*attributes.kinds.add(at), std::str::from_utf8(name).unwrap(), *attributes.values.add(at))
        };
        assert_eq!(kind, 3, "{name} is no scalar");
        // SAFETY: an attribute of this kind points to a scalar, and a scalar to its value.
        let (element, value) = unsafe {
            let scalar = &*value.cast::<ScalarAttribute>();
            (scalar.element, *scalar.value.cast::<u8>())
        };
        assert!([1, 6].contains(&element), "{name} has elements of type number {element}");
        (name.to_owned(), value)
    };
    Options((0..usize::try_from(attributes.size).unwrap()).map(option).collect())
}
