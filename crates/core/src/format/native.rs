//! The format of `serialize`: containers of tensors with all their properties. `docs/formats.md` describes it
//! byte by byte.

use rustc_hash::FxHashSet;

use super::cursor::Cursor;
use super::{Array, malformed, packed, swap_bytes};
use crate::backend::HostMemory;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::memory::with_capacity;
use crate::shape::{Name, Shape, TensorType};
use crate::stack;
use crate::tensor::VectorizedAxes;
use crate::vectorize::{NamedAxes, NamedAxis, whole_shape};

/// The first bytes of the data. The first is no text character, and the line ends reveal transfers in text
/// mode.
const MAGIC: [u8; 8] = *b"\x89DEFN\r\n\x1a";

/// The version that is written, and the only one that can be read.
const VERSION: u32 = 1;

/// The alignment of tensors' elements.
const ALIGN: usize = 64;

/// The maximum nesting depth of containers.
pub const MAX_DEPTH: usize = 256;

/// A serializable value: a tensor, a container, or a plain value in a container.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Box<Array>),
    /// A fixed number of values.
    Tuple(Vec<Value>),
    /// Any number of values.
    List(Vec<Value>),
    /// Values by key, in order. Keys are plain.
    Dict(Vec<(Value, Value)>),
    /// An object of a host language class: the class's name, the kind of decomposition, and the parts.
    Object(Box<Object>),
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer of any size, in hexadecimal digits after a possible minus.
    Integer(String),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// A size or a position.
    pub fn of_number(number: usize) -> Value {
        Value::Integer(format!("{number:x}"))
    }

    /// The size or position of a value that [`of_number`](Value::of_number) made.
    pub fn into_number(self) -> Option<usize> {
        if let Value::Integer(digits) = self { usize::from_str_radix(&digits, 16).ok() } else { None }
    }

    /// Vectorized axes.
    pub fn of_axes(axes: &[NamedAxis]) -> Value {
        let axis = |(name, size): &NamedAxis| {
            Value::Tuple(vec![Value::Text(name.to_string()), Value::of_number(*size)])
        };
        Value::List(axes.iter().map(axis).collect())
    }

    /// The axes of a value that [`of_axes`](Value::of_axes) made.
    pub fn into_axes(self) -> Option<NamedAxes> {
        let axis = |value: Value| {
            let [name, size] = value.into_tuple()?;
            Some((Name::from(name.into_text()?), size.into_number()?))
        };
        self.into_list()?.into_iter().map(axis).collect()
    }

    /// The values of a tuple of so many.
    pub fn into_tuple<const N: usize>(self) -> Option<[Value; N]> {
        if let Value::Tuple(values) = self { values.try_into().ok() } else { None }
    }

    /// The values of a list.
    pub fn into_list(self) -> Option<Vec<Value>> {
        if let Value::List(values) = self { Some(values) } else { None }
    }

    /// The text of a text.
    pub fn into_text(self) -> Option<String> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The tensor of a tensor.
    pub fn into_array(self) -> Option<Array> {
        if let Value::Tensor(array) = self { Some(*array) } else { None }
    }
}

/// An object of a class.
#[derive(Clone, Debug)]
pub struct Object {
    /// The module of the class.
    pub module: String,
    /// The name of the class in it.
    pub class: String,
    /// The kind of decomposition.
    pub form: Form,
    /// The parts, with names where they have any.
    pub parts: Vec<(String, Value)>,
}

/// How an object is decomposed into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its fields by name.
    Fields,
    /// Its entries in order, as a named tuple.
    Named,
    /// A dict of its entries, which is the only part.
    Ordered,
    /// The auxiliary data and the children that a registered function returned, the auxiliary data first.
    Registered,
    /// An enumeration member: its name is the only part.
    Member,
}

const FORMS: [Form; 5] = [Form::Fields, Form::Named, Form::Ordered, Form::Registered, Form::Member];

mod tag {
    pub(super) const TENSOR: u8 = 1;
    pub(super) const TUPLE: u8 = 2;
    pub(super) const LIST: u8 = 3;
    pub(super) const DICT: u8 = 4;
    pub(super) const OBJECT: u8 = 5;
    pub(super) const NONE: u8 = 6;
    pub(super) const FALSE: u8 = 7;
    pub(super) const TRUE: u8 = 8;
    pub(super) const INTEGER: u8 = 9;
    pub(super) const FLOAT: u8 = 10;
    pub(super) const COMPLEX: u8 = 11;
    pub(super) const TEXT: u8 = 12;
    pub(super) const BYTES: u8 = 13;
}

/// Whether bytes begin like serialized data.
pub fn is_native(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Serializes a value.
///
/// # Errors
/// Containers that are nested too deep, and memory.
pub fn write(op: &'static str, value: &Value) -> Result<Vec<u8>> {
    let mut writer = Writer { op, structure: Vec::new(), arrays: Vec::new(), next: 0 };
    writer.value(value, 0)?;
    let Writer { structure, arrays, next, .. } = writer;
    let base = (MAGIC.len() + 16 + structure.len()).next_multiple_of(ALIGN);
    let mut out = with_capacity(op, base.saturating_add(next).saturating_add(4))?;
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[if cfg!(target_endian = "big") { 2 } else { 1 }, 0, 0, 0]);
    out.extend_from_slice(&(structure.len() as u64).to_le_bytes());
    out.extend_from_slice(&structure);
    for (offset, array) in arrays {
        out.resize(base + offset, 0);
        out.extend_from_slice(&packed::pack(array.ty.dtype, array.memory.bytes()));
    }
    out.resize(base + next, 0);
    let checksum = crc32fast::hash(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    Ok(out)
}

struct Writer<'a> {
    op: &'static str,
    structure: Vec<u8>,
    /// Tensors, with the offsets of their elements after the structure.
    arrays: Vec<(usize, &'a Array)>,
    next: usize,
}

impl<'a> Writer<'a> {
    fn value(&mut self, value: &'a Value, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_deep(self.op));
        }
        match value {
            Value::Tensor(array) => self.tensor(array)?,
            Value::Tuple(items) => self.items(tag::TUPLE, items, depth)?,
            Value::List(items) => self.items(tag::LIST, items, depth)?,
            Value::Dict(entries) => {
                self.head(tag::DICT, entries.len())?;
                for (key, item) in entries {
                    self.value(key, depth + 1)?;
                    self.value(item, depth + 1)?;
                }
            }
            Value::Object(object) => {
                self.structure.push(tag::OBJECT);
                self.structure.push(object.form as u8);
                self.text(&object.module)?;
                self.text(&object.class)?;
                self.count(object.parts.len())?;
                for (name, part) in &object.parts {
                    self.text(name)?;
                    self.value(part, depth + 1)?;
                }
            }
            Value::None => self.structure.push(tag::NONE),
            Value::Bool(value) => self.structure.push(if *value { tag::TRUE } else { tag::FALSE }),
            Value::Integer(digits) => {
                self.structure.push(tag::INTEGER);
                self.text(digits)?;
            }
            Value::Float(value) => {
                self.structure.push(tag::FLOAT);
                self.structure.extend_from_slice(&value.to_le_bytes());
            }
            Value::Complex(re, im) => {
                self.structure.push(tag::COMPLEX);
                self.structure.extend_from_slice(&re.to_le_bytes());
                self.structure.extend_from_slice(&im.to_le_bytes());
            }
            Value::Text(text) => {
                self.structure.push(tag::TEXT);
                self.text(text)?;
            }
            Value::Bytes(bytes) => {
                self.head(tag::BYTES, bytes.len())?;
                self.structure.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn items(&mut self, tag: u8, items: &'a [Value], depth: usize) -> Result<()> {
        self.head(tag, items.len())?;
        items.iter().try_for_each(|item| self.value(item, depth + 1))
    }

    fn head(&mut self, tag: u8, count: usize) -> Result<()> {
        self.structure.push(tag);
        self.count(count)
    }

    fn count(&mut self, count: usize) -> Result<()> {
        let Ok(count) = u32::try_from(count) else {
            let problem = format!("something has {count} parts or bytes");
            return Err(malformed(self.op, problem, "at most 4,294,967,295 can be stored"));
        };
        self.structure.extend_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.count(text.len())?;
        self.structure.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn tensor(&mut self, array: &'a Array) -> Result<()> {
        self.structure.push(tag::TENSOR);
        self.text(array.ty.dtype.name())?;
        self.count(array.vectorized.len())?;
        for (name, size) in &*array.vectorized {
            self.text(name)?;
            self.structure.extend_from_slice(&(*size as u64).to_le_bytes());
        }
        self.count(array.ty.shape.rank() - array.vectorized.len())?;
        for (size, name) in array.ty.shape.entries().skip(array.vectorized.len()) {
            self.structure.extend_from_slice(&(size as u64).to_le_bytes());
            self.structure.push(u8::from(name.is_some()));
            if let Some(name) = name {
                self.text(&name)?;
            }
        }
        let len = packed::len(array.ty.dtype, array.ty.size());
        let start = self.next.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        self.structure.extend_from_slice(&(start as u64).to_le_bytes());
        self.structure.extend_from_slice(&(len as u64).to_le_bytes());
        self.arrays.push((start, array));
        self.next = start.saturating_add(len);
        Ok(())
    }
}

#[cold]
fn too_deep(op: &'static str) -> Error {
    malformed(op, "the containers are nested very deep", format!("at most {MAX_DEPTH} levels can be stored"))
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// Other data, other versions, and corruption, which a checksum detects.
pub fn parse(op: &'static str, data: &HostMemory) -> Result<Value> {
    let bytes = data.bytes();
    if !is_native(bytes) {
        return Err(malformed(
            op,
            "the data is not of serialize",
            "the bytes that serialize gave are required",
        ));
    }
    let mut cursor = Cursor::new(op, &bytes[MAGIC.len()..]);
    let version = cursor.u32("the version")?;
    if version != VERSION {
        let problem = format!("the data has version {version} of the format");
        return Err(malformed(
            op,
            problem,
            format!("this release reads version {VERSION}; use the one that wrote it"),
        ));
    }
    let [order, reserved @ ..] = cursor.array::<4>("the byte order")?;
    let is_big = match (order, reserved) {
        (1, [0, 0, 0]) => false,
        (2, [0, 0, 0]) => true,
        _ => return Err(damaged(op, "the byte order is unknown")),
    };
    let Some((content, checksum)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged(op, "the data ends early"));
    };
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err(damaged(op, "the checksum is wrong"));
    }
    let length = usize::try_from(cursor.u64("the structure's length")?).unwrap_or(usize::MAX);
    let structure = cursor.take("the structure", length)?;
    let base = (MAGIC.len() + cursor.position()).next_multiple_of(ALIGN);
    if base > content.len() {
        return Err(damaged(op, "the data ends early"));
    }
    let elements = data.part(base..content.len());
    let mut reader = Reader { op, cursor: Cursor::new(op, structure), elements, is_big };
    let value = reader.value(0)?;
    if reader.cursor.left() > 0 {
        return Err(damaged(op, "the structure goes on after the value"));
    }
    Ok(value)
}

#[cold]
fn damaged(op: &'static str, problem: &str) -> Error {
    malformed(op, problem, "the bytes must be as serialize gave them; they are cut short or damaged")
}

struct Reader<'a> {
    op: &'static str,
    cursor: Cursor<'a>,
    elements: HostMemory,
    is_big: bool,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value> {
        stack::require("deserialize")?;
        if depth > MAX_DEPTH {
            return Err(too_deep(self.op));
        }
        let what = "a value";
        Ok(match self.cursor.u8(what)? {
            tag::TENSOR => Value::Tensor(Box::new(self.tensor()?)),
            tag::TUPLE => Value::Tuple(self.items(depth)?),
            tag::LIST => Value::List(self.items(depth)?),
            tag::DICT => {
                let count = self.cursor.count("the number of entries")?;
                let entry = |_| Ok((self.value(depth + 1)?, self.value(depth + 1)?));
                Value::Dict((0..count).map(entry).collect::<Result<_>>()?)
            }
            tag::OBJECT => {
                let form = usize::from(self.cursor.u8(what)?);
                let Some(&form) = FORMS.get(form) else {
                    return Err(damaged(self.op, "an object's form is unknown"));
                };
                let module = self.cursor.text("a module")?.to_owned();
                let class = self.cursor.text("a class")?.to_owned();
                let count = self.cursor.count("the number of parts")?;
                let part = |_| Ok((self.cursor.text("a name")?.to_owned(), self.value(depth + 1)?));
                let parts = (0..count).map(part).collect::<Result<_>>()?;
                Value::Object(Box::new(Object { module, class, form, parts }))
            }
            tag::NONE => Value::None,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INTEGER => {
                let digits = self.cursor.text("an integer")?;
                let unsigned = digits.strip_prefix('-').unwrap_or(digits);
                if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(damaged(self.op, "an integer has no digits"));
                }
                Value::Integer(digits.to_owned())
            }
            tag::FLOAT => Value::Float(self.float()?),
            tag::COMPLEX => Value::Complex(self.float()?, self.float()?),
            tag::TEXT => Value::Text(self.cursor.text("a text")?.to_owned()),
            tag::BYTES => {
                let len = self.cursor.count("the number of bytes")?;
                Value::Bytes(self.cursor.take("bytes", len)?.to_vec())
            }
            _ => return Err(damaged(self.op, "a value is of an unknown kind")),
        })
    }

    fn float(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.cursor.array("a float")?))
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Value>> {
        let count = self.cursor.count("the number of values")?;
        (0..count).map(|_| self.value(depth + 1)).collect()
    }

    fn size(&mut self) -> Result<usize> {
        let size = self.cursor.u64("a size")?;
        usize::try_from(size).map_err(|_| damaged(self.op, "a size is too large"))
    }

    fn tensor(&mut self) -> Result<Array> {
        let name = self.cursor.text("a dtype")?;
        let Ok(dtype) = name.parse::<DType>() else {
            return Err(damaged(self.op, "a dtype is unknown"));
        };
        let count = self.cursor.count("the number of vectorized axes")?;
        let axis = |_| Ok((Name::from(self.cursor.text("a name")?), self.size()?));
        let vectorized: VectorizedAxes = (0..count).map(axis).collect::<Result<Vec<_>>>()?.into();
        let rank = self.cursor.count("the number of axes")?;
        let axis = |_| {
            let size = self.size()?;
            let name = match self.cursor.u8("a name")? {
                0 => None,
                _ => Some(Name::from(self.cursor.text("a name")?)),
            };
            Ok((size, name))
        };
        let axes: Vec<(usize, Option<Name>)> = (0..rank).map(axis).collect::<Result<_>>()?;
        let (start, len) = (self.size()?, self.size()?);
        let inner = axes.iter().filter_map(|(_, name)| name.as_ref());
        let mut seen_names = FxHashSet::default();
        if !vectorized.iter().all(|(name, _)| seen_names.insert(name))
            || inner.into_iter().any(|name| seen_names.contains(name))
        {
            return Err(damaged(self.op, "a vectorized axis has the name of another"));
        }
        let Ok(ty) = TensorType::new(dtype, whole_shape(&vectorized, &Shape::from_axes(axes))) else {
            return Err(damaged(self.op, "a tensor has more elements than there can be"));
        };
        let range =
            start.checked_add(len).filter(|&end| end <= self.elements.bytes().len()).map(|end| start..end);
        let Some(range) = range.filter(|_| packed::len(dtype, ty.size()) == len) else {
            return Err(damaged(self.op, "a tensor's elements are not where they should be"));
        };
        let memory = self.elements.part(range);
        let memory = if dtype.bits() < 8 {
            let mut unpacked = packed::unpack(dtype, memory.bytes()).into_owned();
            unpacked.truncate(ty.size());
            unpacked.into()
        } else if self.is_big != cfg!(target_endian = "big") && dtype.storage_bytes() > 1 {
            let mut own = with_capacity(self.op, len)?;
            own.extend_from_slice(memory.bytes());
            swap_bytes(dtype, &mut own);
            own.into()
        } else {
            memory
        };
        Ok(Array { ty, vectorized, memory })
    }
}
