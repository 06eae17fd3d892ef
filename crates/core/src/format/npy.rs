//! NumPy's `.npy` files, versions 1 to 3 of the format (NEP 1 and `numpy.lib.format`): a magic number, a header that
//! is a Python dict in text, and the elements.

use super::cursor::Cursor;
use super::{Array, malformed, swap_bytes};
use crate::backend::HostMemory;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::memory::with_capacity;
use crate::scalar::wrap;
use crate::shape::{Shape, TensorType};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The maximum header length. NumPy also refuses longer headers of untrusted files.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// NumPy's maximum number of axes.
const MAX_AXES: usize = 64;

/// A parsed header.
#[derive(Debug)]
pub(super) struct Header {
    descr: Descr,
    fortran_order: bool,
    sizes: Vec<usize>,
    /// The offset of the elements.
    pub(super) start: usize,
}

/// The element layout in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descr {
    dtype: DType,
    big_endian: bool,
}

/// Whether bytes begin like an `.npy` file.
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a file. `opaque` is the dtype of elements for which the file gives only the width; NumPy writes the
/// types of `ml_dtypes` in this way. Without it, two bytes are bf16 and one byte is refused.
///
/// # Errors
/// A file that is no `.npy` file, that is truncated or has trailing bytes, and elements without a counterpart
/// here.
pub fn parse(op: &'static str, file: &HostMemory, opaque: Option<DType>) -> Result<Array> {
    let bytes = file.bytes();
    let header = parse_header(op, bytes, opaque)?;
    let available = bytes.len() - header.start;
    let needed = header.byte_size(op)?;
    if available != needed {
        let problem = format!("the file has {available} bytes of elements");
        return Err(malformed(op, problem, format!("{needed} are required; it is cut short or damaged")));
    }
    let elements = file.part(header.start..bytes.len());
    header.finish(op, elements)
}

/// Reads only the header.
pub(super) fn parse_header(op: &'static str, bytes: &[u8], opaque: Option<DType>) -> Result<Header> {
    if !is_npy(bytes) {
        return Err(malformed(
            op,
            "the data does not begin as an .npy file does",
            "the bytes of one are required",
        ));
    }
    let mut cursor = Cursor::new(op, &bytes[MAGIC.len()..]);
    let (major, minor) = (cursor.u8("the version")?, cursor.u8("the version")?);
    let length = match (major, minor) {
        (1, 0) => usize::from(cursor.u16("the header's length")?),
        (2 | 3, 0) => cursor.u32("the header's length")? as usize,
        _ => {
            let problem = format!("the file has version {major}.{minor} of the .npy format");
            return Err(malformed(op, problem, "it must be 1.0, 2.0 or 3.0"));
        }
    };
    if length > MAX_HEADER_BYTES {
        let problem = format!("the header is {length} bytes long");
        return Err(malformed(
            op,
            problem,
            format!("at most {MAX_HEADER_BYTES} are read; the file is damaged"),
        ));
    }
    let text = cursor.take("the header", length)?;
    let start = MAGIC.len() + cursor.position();
    Literal { op, text, at: 0 }.header(start, opaque)
}

impl Header {
    fn ty(&self) -> Result<TensorType> {
        TensorType::new(self.descr.dtype, Shape::new(&self.sizes))
    }

    /// The size of the elements in the file.
    pub(super) fn byte_size(&self, op: &'static str) -> Result<usize> {
        match self.ty() {
            Ok(ty) => Ok(ty.byte_size()),
            Err(_) => {
                let problem = format!("the header says {}{}", self.descr.dtype, Shape::new(&self.sizes));
                Err(malformed(op, problem, "a file cannot have so many elements; it is damaged"))
            }
        }
    }

    /// The array of these elements, whose number must match the header.
    pub(super) fn finish(self, op: &'static str, elements: HostMemory) -> Result<Array> {
        let ty = self.ty()?;
        let Descr { dtype, big_endian } = self.descr;
        let is_swapped = dtype.storage_bytes() > 1 && big_endian != cfg!(target_endian = "big");
        let is_turned = self.fortran_order && ty.shape.rank() > 1;
        if !is_swapped && !is_turned && dtype.bits() >= 8 {
            return Ok(Array::new(ty, elements));
        }
        let mut own = with_capacity(op, ty.byte_size())?;
        if is_turned {
            to_row_major(&ty, elements.bytes(), &mut own);
        } else {
            own.extend_from_slice(elements.bytes());
        }
        if is_swapped {
            swap_bytes(dtype, &mut own);
        }
        if dtype.bits() < 8 {
            // Unused bits of a byte may have any value, and so may the byte of a bool.
            own.iter_mut().for_each(|byte| *byte = wrap(dtype, i128::from(*byte)) as u8);
        }
        Ok(Array::new(ty, own.into()))
    }
}

/// Appends elements in column-major order to `out` in row-major order.
fn to_row_major(ty: &TensorType, bytes: &[u8], out: &mut Vec<u8>) {
    let (sizes, width) = (ty.shape.sizes(), ty.dtype.storage_bytes());
    if sizes.contains(&0) {
        return;
    }
    let mut strides = Vec::with_capacity(sizes.len());
    let mut step = width;
    for &size in sizes {
        strides.push(step);
        step *= size;
    }
    let (mut index, mut offset) = (vec![0; sizes.len()], 0);
    loop {
        out.extend_from_slice(&bytes[offset..offset + width]);
        let mut axis = sizes.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < sizes[axis] {
                break;
            }
            offset -= strides[axis] * sizes[axis];
            index[axis] = 0;
        }
    }
}

/// The Python literal of a header.
struct Literal<'a> {
    op: &'static str,
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    fn header(mut self, start: usize, opaque: Option<DType>) -> Result<Header> {
        let (mut descr, mut order, mut sizes) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let is_new = match key.as_str() {
                "descr" => descr.replace(self.descr(opaque)?).is_none(),
                "fortran_order" => order.replace(self.boolean()?).is_none(),
                "shape" => sizes.replace(self.shape()?).is_none(),
                other => return Err(self.refuse(&format!("the header has the key {other:?}"))),
            };
            if !is_new {
                return Err(self.refuse(&format!("the header has the key {key:?} twice")));
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.refuse("the header goes on after the dict"));
        }
        match (descr, order, sizes) {
            (Some(descr), Some(fortran_order), Some(sizes)) => {
                Ok(Header { descr, fortran_order, sizes, start })
            }
            _ => Err(self.refuse("the header lacks a key")),
        }
    }

    fn refuse(&self, problem: &str) -> crate::error::Error {
        let required = "it must be a dict of descr, fortran_order and shape as NumPy writes it";
        malformed(self.op, problem, required)
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) {
            return Ok(());
        }
        let problem = format!("byte {} of the header is not {:?}", self.at, char::from(byte));
        Err(self.refuse(&problem))
    }

    /// A string without escapes: NumPy uses none in the keys and types that are read here.
    fn string(&mut self) -> Result<String> {
        self.skip_space();
        let quote = match self.text.get(self.at) {
            Some(&quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.refuse(&format!("byte {} of the header begins no string", self.at))),
        };
        let rest = &self.text[self.at + 1..];
        let Some(length) = rest.iter().position(|&byte| byte == quote) else {
            return Err(self.refuse("a string in the header does not end"));
        };
        self.at += length + 2;
        match std::str::from_utf8(&rest[..length]) {
            Ok(text) if !text.contains('\\') => Ok(text.to_owned()),
            Ok(_) | Err(_) => Err(self.refuse("a string in the header is no plain text")),
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_space();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.refuse("fortran_order is neither True nor False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            self.skip_space();
            let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let text = std::str::from_utf8(&self.text[self.at..self.at + digits]).unwrap_or_default();
            let Ok(size) = text.parse::<usize>() else {
                return Err(self.refuse("an entry of the shape is no size"));
            };
            self.at += digits;
            // The suffix of long integers in Python 2.
            if self.text.get(self.at) == Some(&b'L') {
                self.at += 1;
            }
            sizes.push(size);
            if sizes.len() > MAX_AXES {
                return Err(self.refuse(&format!("the shape has more than {MAX_AXES} axes")));
            }
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(sizes)
    }

    fn descr(&mut self, opaque: Option<DType>) -> Result<Descr> {
        self.skip_space();
        if self.text.get(self.at) == Some(&b'[') {
            let (got, required) = ("with fields".to_owned(), "save one array for each field");
            return Err(ErrorKind::ForeignElements { op: self.op, got, required }.into());
        }
        let text = self.string()?;
        descr(self.op, &text, opaque)
    }
}

/// The dtype and byte order of a type descriptor such as `<f4`.
fn descr(op: &'static str, text: &str, opaque: Option<DType>) -> Result<Descr> {
    let foreign =
        |required| Err(ErrorKind::ForeignElements { op, got: format!("{text:?}"), required }.into());
    let (big_endian, rest) = match text.as_bytes() {
        [b'<', rest @ ..] => (false, rest),
        [b'>', rest @ ..] => (true, rest),
        [b'|' | b'=', rest @ ..] => (cfg!(target_endian = "big"), rest),
        rest => (cfg!(target_endian = "big"), rest),
    };
    let descr_of = |dtype| Ok(Descr { dtype, big_endian });
    match rest {
        b"b1" | b"?" => descr_of(DType::Bool),
        b"u1" => descr_of(DType::U8),
        b"u2" => descr_of(DType::U16),
        b"u4" => descr_of(DType::U32),
        b"u8" => descr_of(DType::U64),
        b"i1" => descr_of(DType::S8),
        b"i2" => descr_of(DType::S16),
        b"i4" => descr_of(DType::S32),
        b"i8" => descr_of(DType::S64),
        b"f1" => descr_of(DType::F8E5M2),
        b"f2" => descr_of(DType::F16),
        b"f4" => descr_of(DType::F32),
        b"f8" => descr_of(DType::F64),
        b"c8" => descr_of(DType::C64),
        b"c16" => descr_of(DType::C128),
        b"V1" => match opaque.filter(|dtype| dtype.storage_bytes() == 1) {
            Some(dtype) => descr_of(dtype),
            None => foreign("one byte may be of several types; say which with dtype="),
        },
        b"V2" => match opaque.unwrap_or(DType::BF16) {
            dtype if dtype.bits() == 16 => descr_of(dtype),
            _ => foreign("dtype= must be a type of two bytes, such as bf16"),
        },
        [b'O', ..] => foreign("Python objects are never loaded; save an array of numbers"),
        _ => {
            foreign("they must be integers, floats, complex numbers or bools; convert the array with astype")
        }
    }
}

/// Writes a file of version 1.0. Names are dropped, vectorized axes become ordinary ones.
///
/// # Errors
/// Types that NumPy's format cannot distinguish, and memory.
pub fn write(op: &'static str, array: &Array) -> Result<Vec<u8>> {
    let ty = &array.ty;
    let header = header(op, ty)?;
    let mut out = with_capacity(op, header.len() + ty.byte_size())?;
    out.extend_from_slice(&header);
    out.extend_from_slice(array.memory.bytes());
    Ok(out)
}

/// The bytes before the elements, which begin at a multiple of 64 bytes.
pub(super) fn header(op: &'static str, ty: &TensorType) -> Result<Vec<u8>> {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let code = match ty.dtype {
        DType::Bool => "|b1".to_owned(),
        DType::U8 => "|u1".to_owned(),
        DType::S8 => "|i1".to_owned(),
        DType::U16 => format!("{order}u2"),
        DType::U32 => format!("{order}u4"),
        DType::U64 => format!("{order}u8"),
        DType::S16 => format!("{order}i2"),
        DType::S32 => format!("{order}i4"),
        DType::S64 => format!("{order}i8"),
        // The descriptors that NumPy writes for the types of `ml_dtypes`.
        DType::F8E5M2 => format!("{order}f1"),
        DType::BF16 => format!("{order}V2"),
        DType::F16 => format!("{order}f2"),
        DType::F32 => format!("{order}f4"),
        DType::F64 => format!("{order}f8"),
        DType::C64 => format!("{order}c8"),
        DType::C128 => format!("{order}c16"),
        dtype @ (DType::U2 | DType::U4 | DType::S2 | DType::S4 | DType::F8E4M3FN) => {
            return Err(ErrorKind::StoredDType { op, dtype, format: "an .npy file" }.into());
        }
    };
    let sizes: Vec<String> = ty.shape.sizes().iter().map(|size| format!("{size},")).collect();
    let sizes = match &sizes[..] {
        [] => "()".to_owned(),
        [one] => format!("({one})"),
        many => format!("({})", many.join(" ").trim_end_matches(',')),
    };
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {sizes}, }}");
    let fixed = MAGIC.len() + 4;
    let end = (fixed + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', end - fixed - text.len() - 1));
    text.push('\n');
    let Ok(length) = u16::try_from(text.len()) else {
        let problem = format!("the tensor has {} axes", ty.shape.rank());
        return Err(malformed(op, problem, "an .npy file has at most 64; reshape it"));
    };
    if ty.shape.rank() > MAX_AXES {
        let problem = format!("the tensor has {} axes", ty.shape.rank());
        return Err(malformed(op, problem, "an .npy file has at most 64; reshape it"));
    }
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(out)
}
