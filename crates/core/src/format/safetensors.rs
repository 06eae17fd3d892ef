//! Safetensors (huggingface/safetensors, version 0.3 and later): the length of the header, the header in
//! JSON, and the elements of all tensors without gaps, in little endian order.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::cursor::Cursor;
use super::json::{Json, quoted};
use super::{Array, malformed, swap_bytes};
use crate::backend::HostMemory;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::memory::with_capacity;
use crate::shape::{Shape, TensorType};

/// The reference implementation's maximum header length.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The names of element types, in the reference implementation's order, by which it sorts tensors.
const DTYPES: &[(&str, DType)] = &[
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("I8", DType::S8),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E4M3", DType::F8E4M3FN),
    ("I16", DType::S16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I32", DType::S32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::S64),
    ("U64", DType::U64),
];

/// Whether bytes begin like a file: eight bytes of length, then a JSON object.
pub fn is_safetensors(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{')
}

/// An entry of the header.
struct Entry {
    name: String,
    dtype: String,
    sizes: Vec<usize>,
    start: usize,
    end: usize,
}

/// Reads every tensor, in the order of their elements in the file.
///
/// # Errors
/// A damaged file, and elements without a counterpart here.
pub fn parse(op: &'static str, file: &HostMemory) -> Result<Vec<(String, Array)>> {
    let bytes = file.bytes();
    let mut cursor = Cursor::new(op, bytes);
    let length = cursor.u64("the header's length")?;
    if length > MAX_HEADER_BYTES {
        let problem = format!("the header is {length} bytes long");
        return Err(malformed(op, problem, "at most 100,000,000 are read; the file is damaged"));
    }
    let header = cursor.take("the header", length as usize)?;
    let Ok(header) = std::str::from_utf8(header) else {
        return Err(malformed(op, "the header is no text", "it must be UTF-8; the file is damaged"));
    };
    let base = cursor.position();
    let mut entries = entries(op, header)?;
    entries.sort_by_key(|entry| (entry.start, entry.end));
    let mut next = 0;
    for entry in &entries {
        if entry.start != next || entry.end < entry.start {
            let problem = format!("the tensor {:?} has the bytes {}..{}", entry.name, entry.start, entry.end);
            return Err(malformed(
                op,
                problem,
                format!("the elements must follow one another, here from {next}"),
            ));
        }
        next = entry.end;
    }
    if next != cursor.left() {
        let problem = format!("the file has {} bytes of elements", cursor.left());
        return Err(malformed(op, problem, format!("{next} are required; it is cut short or damaged")));
    }
    entries.into_iter().map(|entry| array(op, file, base, entry)).collect()
}

fn entries(op: &'static str, header: &str) -> Result<Vec<Entry>> {
    let mut json = Json::new(op, header);
    let (mut entries, mut seen_names) = (Vec::new(), FxHashSet::default());
    json.object(|json, name| {
        if !seen_names.insert(name.clone()) {
            return Err(json.refuse(format_args!("{name:?} is there twice")));
        }
        if name == "__metadata__" {
            return json.skip(0);
        }
        let (mut dtype, mut sizes, mut offsets) = (None, None, None);
        json.object(|json, key| {
            let is_new = match key.as_str() {
                "dtype" => dtype.replace(json.string()?).is_none(),
                "shape" => sizes.replace(json.sizes()?).is_none(),
                "data_offsets" => offsets.replace(json.sizes()?).is_none(),
                _ => json.skip(0).map(|()| true)?,
            };
            if is_new { Ok(()) } else { Err(json.refuse(format_args!("{key:?} is there twice"))) }
        })?;
        match (dtype, sizes, offsets.as_deref()) {
            (Some(dtype), Some(sizes), Some(&[start, end])) => {
                entries.push(Entry { name, dtype, sizes, start, end });
                Ok(())
            }
            _ => Err(json.refuse(format_args!("{name:?} lacks dtype, shape or data_offsets"))),
        }
    })?;
    if !json.is_at_end() {
        return Err(json.refuse("the header goes on after the object"));
    }
    Ok(entries)
}

fn array(op: &'static str, file: &HostMemory, base: usize, entry: Entry) -> Result<(String, Array)> {
    let Entry { name, dtype, sizes, start, end } = entry;
    let Some(&(_, known)) = DTYPES.iter().find(|(known, _)| *known == dtype) else {
        let required = "they must be integers, floats or complex numbers of the types of this library";
        return Err(ErrorKind::ForeignElements { op, got: format!("{dtype:?}"), required }.into());
    };
    let ty = TensorType::new(known, Shape::new(&sizes)).ok().filter(|ty| ty.byte_size() == end - start);
    let Some(ty) = ty else {
        let problem = format!("the tensor {name:?} has {} bytes", end - start);
        let required = format!("{known}{} takes others; the file is damaged", Shape::new(&sizes));
        return Err(malformed(op, problem, required));
    };
    let memory = file.part(base + start..base + end);
    if !known.is_bool() && cfg!(target_endian = "little") {
        return Ok((name, Array::new(ty, memory)));
    }
    let mut own = with_capacity(op, ty.byte_size())?;
    own.extend_from_slice(memory.bytes());
    if known.is_bool() {
        // A writer may have stored bytes other than 0 and 1.
        own.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    } else {
        swap_bytes(known, &mut own);
    }
    Ok((name, Array::new(ty, own.into())))
}

/// The position of a type in the list.
fn position(dtype: DType) -> Option<usize> {
    DTYPES.iter().position(|(_, known)| *known == dtype)
}

/// Writes a file: wide elements first, then by name, like the reference implementation, so that all elements
/// are aligned. Axis names are dropped, vectorized axes become ordinary ones.
///
/// # Errors
/// Types that the format lacks, duplicate names, and memory.
pub fn write(op: &'static str, arrays: &[(String, Array)]) -> Result<Vec<u8>> {
    let mut sorted: Vec<&(String, Array)> = arrays.iter().collect();
    sorted.sort_by_key(|(name, array)| (Reverse(position(array.ty.dtype)), name));
    let mut header = String::from("{");
    let (mut next, mut seen_names) = (0usize, FxHashSet::default());
    for (name, array) in &sorted {
        if name == "__metadata__" || !seen_names.insert(name) {
            let problem = format!("a tensor is named {name:?}");
            return Err(malformed(
                op,
                problem,
                "names must differ, and \"__metadata__\" is taken by the format",
            ));
        }
        let ty = &array.ty;
        let Some(dtype) = position(ty.dtype).map(|position| DTYPES[position].0) else {
            return Err(ErrorKind::StoredDType { op, dtype: ty.dtype, format: "a safetensors file" }.into());
        };
        let sizes: Vec<String> = ty.shape.sizes().iter().map(usize::to_string).collect();
        let end = next.saturating_add(ty.byte_size());
        let comma = if header.len() > 1 { "," } else { "" };
        header.push_str(&format!(
            "{comma}{}:{{\"dtype\":\"{dtype}\",\"shape\":[{}],\"data_offsets\":[{next},{end}]}}",
            quoted(name),
            sizes.join(",")
        ));
        next = end;
    }
    header.push('}');
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut out = with_capacity(op, header.len().saturating_add(next).saturating_add(8))?;
    out.extend_from_slice(&(header.len() as u64).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    for (_, array) in sorted {
        let start = out.len();
        out.extend_from_slice(array.memory.bytes());
        if cfg!(target_endian = "big") {
            swap_bytes(array.ty.dtype, &mut out[start..]);
        }
    }
    Ok(out)
}
