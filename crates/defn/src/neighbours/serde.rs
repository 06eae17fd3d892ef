//! Tensors for the crate `serde`: dtype, shape with names, vectorized axes and elements.
//!
//! In formats for people, elements are numbers in row-major order: two for a complex number, and texts for what such
//! formats lack: `"inf"`, `"-inf"`, `"nan"`, and `"nan:"` with the bits of any other NaN. In binary formats they are
//! bytes, as in the files of `defn`: little endian, several 2- or 4-bit elements to a byte.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use defn_core::backend::HostMemory;
use defn_core::builder::default_scalar;
use defn_core::format::{Array, packed, part_of, swap_bytes};
use defn_core::{DType, Error, ErrorKind, Kind, Name, Number, Scalar, Shape, TensorType, memory, vectorize};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Tensor, default_backend};

const OP: &str = "deserialize";

#[derive(Serialize)]
#[serde(rename = "Tensor")]
struct Written<'a> {
    dtype: DType,
    shape: &'a Shape,
    vectorized: Vec<(&'a str, usize)>,
    elements: Elements,
}

#[derive(Deserialize)]
#[serde(rename = "Tensor", deny_unknown_fields)]
struct Read {
    dtype: DType,
    shape: Shape,
    vectorized: Vec<(String, usize)>,
    elements: ReadElements,
}

/// The fields `dtype`, `shape`, `vectorized` and `elements`. Every element is the same to the bit when it is read
/// again, if the format keeps numbers: `serde_json` reads the last bit of an f64 only with its feature
/// `float_roundtrip`.
///
/// ```
/// use defn::prelude::*;
///
/// let x = tensor![[1.5, f64::INFINITY]]?.rename(&[Some("row"), None])?;
/// let text = serde_json::to_string(&x)?;
/// assert_eq!(
///     text,
///     r#"{"dtype":"f32","shape":{"sizes":[1,2],"names":["row",null]},"vectorized":[],"elements":[1.5,"inf"]}"#
/// );
/// let same: Tensor = serde_json::from_str(&text)?;
/// assert_eq!(same.ty(), x.ty());
/// assert_eq!(same.to_vec::<f32>()?, [1.5, f32::INFINITY]);
///
/// // Containers by serde's own derive.
/// #[derive(Tree, serde::Serialize, serde::Deserialize)]
/// struct Layer<T> {
///     weight: T,
///     bias: Option<T>,
///     #[tree(static)]
///     name: String,
/// }
/// let layer = Layer { weight: x, bias: None, name: "first".to_owned() };
/// let bytes = postcard::to_allocvec(&layer)?;
/// let layer: Layer<Tensor> = postcard::from_bytes(&bytes)?;
/// assert_eq!(layer.weight.ty().to_string(), "f32[row: 1][2]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of the format; elements that were freed, and a tensor that is being traced.
impl Serialize for Tensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let array = Array::of("serialize", self.core()).map_err(S::Error::custom)?;
        let written = Written {
            dtype: self.dtype(),
            shape: self.shape(),
            vectorized: self.vectorized_axes().iter().map(|(name, size)| (&**name, *size)).collect(),
            elements: Elements(array),
        };
        written.serialize(serializer)
    }
}

/// A tensor on the default backend.
///
/// ```
/// use defn::Tensor;
///
/// let text = r#"{"dtype":"u8","shape":{"sizes":[3],"names":[]},"vectorized":[],"elements":[1,2]}"#;
/// let error = serde_json::from_str::<Tensor>(text).unwrap_err().to_string();
/// assert!(error.contains("deserialize: there are 2 elements, u8[3] must have 3"));
/// ```
///
/// # Errors
/// Those of the format; another number of elements than that of the shape, an element that the dtype does not hold, an
/// unknown dtype, and two axes of one name where one of them is vectorized.
impl<'de> Deserialize<'de> for Tensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tensor, D::Error> {
        made(Read::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The bytes of the elements in binary formats, in either direction.
struct Elements(Array);

impl Serialize for Elements {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (dtype, bytes) = (self.0.ty.dtype, self.0.memory.bytes());
        if !serializer.is_human_readable() {
            let packed = packed::pack(dtype, bytes);
            return serializer.serialize_bytes(&little_endian(dtype, packed));
        }
        let mut elements = serializer.serialize_seq(Some(self.0.ty.size()))?;
        let part = part_of(dtype);
        for element in bytes.chunks_exact(dtype.storage_bytes()) {
            match element.split_at_checked(part.storage_bytes()) {
                Some((re, im)) if dtype.is_complex() => {
                    elements.serialize_element(&(Part(part, re), Part(part, im)))?;
                }
                Some(_) | None => elements.serialize_element(&Part(part, element))?,
            }
        }
        elements.end()
    }
}

/// A number that is not complex, by its bytes in memory.
struct Part<'a>(DType, &'a [u8]);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Part(dtype, bytes) = *self;
        match (Scalar::from_bytes(dtype, bytes).value(), dtype.kind()) {
            (Number::Bool(value), _) => serializer.serialize_bool(value),
            (Number::Int(value), Kind::Unsigned) => serializer.serialize_u64(value as u64),
            (Number::Int(value), _) => serializer.serialize_i64(value as i64),
            (number, _) => {
                let value = number.to_f64();
                if value.is_nan() {
                    serializer.serialize_str(&nan_text(dtype, bytes))
                } else if value.is_infinite() {
                    serializer.serialize_str(if value > 0.0 { "inf" } else { "-inf" })
                } else if dtype != DType::F64 && is_read_from_text(value as f32) {
                    serializer.serialize_f32(value as f32)
                } else {
                    serializer.serialize_f64(value)
                }
            }
        }
    }
}

/// Whether the shortest text of an f32 gives the same number when it is read as an f64, with an error of one unit in the
/// last place, and rounded again.
fn is_read_from_text(value: f32) -> bool {
    let mut text = String::with_capacity(24);
    let wide = write!(text, "{value:e}").ok().and_then(|()| text.parse::<f64>().ok());
    wide.is_some_and(|wide| [wide, wide.next_up(), wide.next_down()].iter().all(|&near| near as f32 == value))
}

/// The bits of a NaN, unless it is the one that "nan" is read as.
fn nan_text(dtype: DType, bytes: &[u8]) -> String {
    if canonical_nan(dtype) == bytes {
        return "nan".to_owned();
    }
    let bytes = little_endian(dtype, bytes.into());
    let digits = bytes.iter().rev().map(|byte| format!("{byte:02x}"));
    format!("nan:{}", digits.collect::<String>())
}

/// The bytes of the NaN that a dtype of floats has without further bits.
fn canonical_nan(dtype: DType) -> Vec<u8> {
    Scalar::new(dtype, f64::NAN).map(Scalar::to_bytes).unwrap_or_default()
}

/// The bytes of a NaN from the digits that [`nan_text`] wrote.
fn nan_bytes(dtype: DType, digits: &str) -> Option<Vec<u8>> {
    let bits = u64::from_str_radix(digits, 16).ok()?.to_le_bytes();
    let (low, high) = bits.split_at_checked(dtype.storage_bytes())?;
    let bytes = little_endian(dtype, low.into()).into_owned();
    let is_nan = Scalar::from_bytes(dtype, &bytes).value().to_f64().is_nan();
    (is_nan && high.iter().all(|&byte| byte == 0)).then_some(bytes)
}

/// The bytes of elements in the other byte order on hosts whose order is big endian.
fn little_endian(dtype: DType, bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return bytes;
    }
    let mut bytes = bytes.into_owned();
    swap_bytes(dtype, &mut bytes);
    bytes.into()
}

/// The elements in a format, before their dtype and number are known: fields come in any order.
enum ReadElements {
    Bytes(Vec<u8>),
    Numbers(Numbers),
}

/// Elements of a format for people.
#[derive(Default)]
struct Numbers {
    parts: Vec<ReadPart>,
    elements: usize,
    /// The elements that have two parts; the others have one.
    pairs: usize,
}

enum ReadPart {
    Bool(bool),
    Negative(i64),
    Integer(u64),
    Float(f64),
    Text(Box<str>),
}

impl<'de> Deserialize<'de> for ReadElements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReadElements, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_seq(NumbersVisitor).map(ReadElements::Numbers)
        } else {
            deserializer.deserialize_byte_buf(BytesVisitor).map(ReadElements::Bytes)
        }
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of elements")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u8>, A::Error> {
        // The length that a format claims is not reserved: it may be that of no data.
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Numbers, A::Error> {
        let mut numbers = Numbers::default();
        while items.next_element_seed(Next { numbers: &mut numbers, is_in_pair: false })?.is_some() {
            numbers.elements += 1;
        }
        Ok(numbers)
    }
}

/// Appends the next element, or the next part of a complex one.
struct Next<'a> {
    numbers: &'a mut Numbers,
    is_in_pair: bool,
}

impl Next<'_> {
    fn push<E>(self, part: ReadPart) -> Result<(), E> {
        self.numbers.parts.push(part);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Next<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Next<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a truth value, a text, or the two parts of a complex number")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.push(ReadPart::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.push(u64::try_from(value).map_or(ReadPart::Negative(value), ReadPart::Integer))
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.push(ReadPart::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.push(ReadPart::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.push(ReadPart::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let wrong = |length| A::Error::invalid_length(length, &"the two parts of a complex number");
        if self.is_in_pair {
            return Err(A::Error::custom("a part of a complex number is a list, it must be a number"));
        }
        for length in 0..2 {
            let part = Next { numbers: &mut *self.numbers, is_in_pair: true };
            items.next_element_seed(part)?.ok_or_else(|| wrong(length))?;
        }
        if items.next_element::<IgnoredAny>()?.is_some() {
            return Err(wrong(3));
        }
        self.numbers.pairs += 1;
        Ok(())
    }
}

#[cold]
fn malformed(problem: String, required: String) -> Error {
    ErrorKind::Malformed { op: OP, problem, required }.into()
}

fn made(read: Read) -> Result<Tensor, Error> {
    let Read { dtype, shape, vectorized, elements } = read;
    let vectorized: Vec<(Name, usize)> =
        vectorized.into_iter().map(|(name, size)| (Name::from(name), size)).collect();
    for (at, (name, _)) in vectorized.iter().enumerate() {
        let others = vectorized.iter().take(at).map(|(other, _)| other);
        if others.chain(shape.names().flatten()).any(|other| other == name) {
            return Err(ErrorKind::VectorizedName { op: OP, name: name.clone() }.into());
        }
    }
    let ty = TensorType::new(dtype, vectorize::whole_shape(&vectorized, &shape))?;
    let bytes = match elements {
        ReadElements::Bytes(bytes) => unpacked(&ty, bytes)?,
        ReadElements::Numbers(numbers) => converted(&ty, &numbers)?,
    };
    let array = Array { ty, vectorized: vectorized.as_slice().into(), memory: HostMemory::from(bytes) };
    Ok(Tensor(array.on(&default_backend()?)?))
}

/// The bytes of elements in memory, from those of a binary format.
fn unpacked(ty: &TensorType, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let required = packed::len(ty.dtype, ty.size());
    if bytes.len() != required {
        let problem = format!("there are {} bytes of elements", bytes.len());
        return Err(malformed(problem, format!("{ty} must have {required}")));
    }
    if let Some(byte) = bytes.iter().find(|&&byte| ty.dtype.is_bool() && byte > 1) {
        let problem = format!("an element of bool has the byte {byte}");
        return Err(malformed(problem, "it must be 0 or 1".to_owned()));
    }
    if ty.dtype.is_packed() {
        let mut elements = packed::unpack(ty.dtype, &bytes).into_owned();
        elements.truncate(ty.size());
        return Ok(elements);
    }
    Ok(little_endian(ty.dtype, bytes.into()).into_owned())
}

/// The bytes of elements in memory, from those of a format for people.
fn converted(ty: &TensorType, numbers: &Numbers) -> Result<Vec<u8>, Error> {
    let Numbers { parts, elements, pairs } = numbers;
    if *elements != ty.size() {
        return Err(malformed(
            format!("there are {elements} elements"),
            format!("{ty} must have {}", ty.size()),
        ));
    }
    let required = if ty.dtype.is_complex() { ty.size() } else { 0 };
    if *pairs != required {
        let problem = format!("{pairs} of {elements} elements have two parts");
        return Err(malformed(problem, format!("{ty} must have {required} such elements")));
    }
    let dtype = part_of(ty.dtype);
    let mut bytes = memory::with_capacity(OP, ty.byte_size())?;
    for part in parts {
        let kept = match (part, dtype.kind()) {
            (ReadPart::Bool(value), Kind::Bool) => Some(vec![u8::from(*value)]),
            (ReadPart::Text(text), Kind::Float) => match text.strip_prefix("nan:") {
                Some(digits) => nan_bytes(dtype, digits),
                None => text.parse::<f64>().ok().and_then(|value| float_bytes(dtype, value)),
            },
            (ReadPart::Integer(value), Kind::Unsigned | Kind::Signed | Kind::Float) => {
                Some(default_scalar(dtype, Number::from(*value))?.to_bytes())
            }
            (ReadPart::Negative(value), Kind::Unsigned | Kind::Signed | Kind::Float) => {
                Some(default_scalar(dtype, Number::from(*value))?.to_bytes())
            }
            (ReadPart::Float(value), Kind::Float) => float_bytes(dtype, *value),
            _ => None,
        };
        bytes.extend(kept.ok_or_else(|| {
            malformed(format!("the element {part} is none of {dtype}"), format!("all must be, for {ty}"))
        })?);
    }
    Ok(bytes)
}

/// The bytes of a float that is rounded to a dtype. None if an infinity has no counterpart in it.
fn float_bytes(dtype: DType, value: f64) -> Option<Vec<u8>> {
    let scalar = Scalar::new(dtype, value).ok()?;
    (!value.is_infinite() || scalar.value().to_f64().is_infinite()).then(|| scalar.to_bytes())
}

impl fmt::Display for ReadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadPart::Bool(value) => value.fmt(f),
            ReadPart::Negative(value) => value.fmt(f),
            ReadPart::Integer(value) => value.fmt(f),
            ReadPart::Float(value) => write!(f, "{value:?}"),
            ReadPart::Text(text) => write!(f, "{text:?}"),
        }
    }
}
