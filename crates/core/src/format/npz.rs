//! NumPy's `.npz` archives: ZIP files of `.npy` files, stored or deflated (PKWARE's APPNOTE 6.3, with 64-bit
//! sizes).
//!
//! Sizes come from the central directory, as in NumPy's own reader. Entries may not overlap, a deflated entry
//! may not exceed deflate's maximum ratio, and their total size may not exceed the caller's limit: a small
//! archive cannot request much memory, even a malicious one.

use std::ops::Range;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use rustc_hash::FxHashSet;

use super::cursor::Cursor;
use super::{Array, malformed, npy};
use crate::backend::HostMemory;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::memory::with_capacity;

const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const END_64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// The size of the end record without its comment, which has at most 65,535 bytes.
const END_BYTES: usize = 22;

/// The maximum number of bytes that deflate produces from one byte (258 bytes of a match in two bits, and the
/// block's header).
const MOST_INFLATION: usize = 1032;

/// Whether bytes begin like an archive; an empty one begins with its end record.
pub fn is_npz(bytes: &[u8]) -> bool {
    bytes.starts_with(&LOCAL) || bytes.starts_with(&END)
}

/// An entry of the central directory.
struct Entry {
    name: String,
    is_deflated: bool,
    crc: u32,
    compressed: usize,
    size: usize,
    offset: usize,
}

/// Reads every array, in the archive's order, by its name without `.npy`. Deflated entries may take `limit`
/// bytes in total; `opaque` is as for [`npy::parse`].
///
/// # Errors
/// A damaged archive, entries that are no arrays, and archives that inflate beyond the limit.
pub fn parse(
    op: &'static str,
    file: &HostMemory,
    opaque: Option<DType>,
    limit: usize,
) -> Result<Vec<(String, Array)>> {
    let bytes = file.bytes();
    let entries = directory(op, bytes)?;
    let requested = entries
        .iter()
        .filter(|entry| entry.is_deflated)
        .fold(0usize, |sum, entry| sum.saturating_add(entry.size));
    if requested > limit {
        return Err(ErrorKind::OutOfMemory { op, requested, available: limit }.into());
    }
    let mut ranges = Vec::with_capacity(entries.len());
    for entry in &entries {
        ranges.push(data_range(op, bytes, entry)?);
    }
    let mut sorted: Vec<&Range<usize>> = ranges.iter().filter(|range| !range.is_empty()).collect();
    sorted.sort_by_key(|range| range.start);
    if sorted.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(damaged(op, "entries of the archive overlap"));
    }
    let mut arrays: Vec<(String, Array)> = Vec::with_capacity(entries.len());
    let mut seen_names = FxHashSet::default();
    for (entry, range) in entries.iter().zip(ranges) {
        let Some(name) = entry.name.strip_suffix(".npy") else {
            let problem = format!("the archive has the entry {:?}", entry.name);
            return Err(malformed(op, problem, "entries must be .npy files"));
        };
        if !seen_names.insert(name) {
            return Err(damaged(op, &format!("the archive has the entry {:?} twice", entry.name)));
        }
        let data = file.part(range);
        let whole = if entry.is_deflated { inflate(op, entry, &data, opaque)? } else { data };
        if crc32fast::hash(whole.bytes()) != entry.crc {
            return Err(damaged(op, &format!("the checksum of {:?} is wrong", entry.name)));
        }
        arrays.push((name.to_owned(), npy::parse(op, &whole, opaque)?));
    }
    Ok(arrays)
}

fn damaged(op: &'static str, problem: &str) -> crate::error::Error {
    malformed(op, problem, "an archive as NumPy writes it is required; it is damaged")
}

/// The entries of the directory, located by the end record and the optional record of 64-bit sizes before it.
fn directory(op: &'static str, bytes: &[u8]) -> Result<Vec<Entry>> {
    let first = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
    let end = (first..=bytes.len().saturating_sub(END_BYTES)).rev().find(|&at| {
        // The comment ends at the end of the file.
        let Some(record) = bytes.get(at..at + END_BYTES) else { return false };
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record.starts_with(&END) && at + END_BYTES + comment == bytes.len()
    });
    let Some(end) = end else {
        return Err(damaged(op, "the archive has no end record"));
    };
    let mut cursor = Cursor::new(op, &bytes[end + 4..]);
    let (disk, first_disk) = (cursor.u16("the end record")?, cursor.u16("the end record")?);
    let (here, total) = (cursor.u16("the end record")?, cursor.u16("the end record")?);
    let (size, offset) = (cursor.u32("the end record")?, cursor.u32("the end record")?);
    let is_64 = total == u16::MAX || size == u32::MAX || offset == u32::MAX;
    let (total, size, offset) = if is_64 {
        end_64(op, bytes, end)?
    } else {
        if disk != 0 || first_disk != 0 || here != total {
            return Err(damaged(op, "the archive is one of several parts"));
        }
        (u64::from(total), u64::from(size), u64::from(offset))
    };
    let range = usize::try_from(offset).ok().and_then(|start| {
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        (end <= bytes.len()).then_some(start..end)
    });
    let Some(range) = range else {
        return Err(damaged(op, "the archive's directory is outside the file"));
    };
    let mut cursor = Cursor::new(op, &bytes[range]);
    let mut entries = Vec::new();
    while cursor.left() > 0 {
        entries.push(central(op, &mut cursor)?);
    }
    if entries.len() as u64 != total {
        return Err(damaged(op, &format!("the archive has {} entries and says {total}", entries.len())));
    }
    Ok(entries)
}

/// The number of entries, and the directory's size and offset, from the record of 64-bit sizes.
fn end_64(op: &'static str, bytes: &[u8], end: usize) -> Result<(u64, u64, u64)> {
    let absent = || damaged(op, "the archive lacks its record of 64-bit sizes");
    let locator = end.checked_sub(20).and_then(|at| bytes.get(at..at + 20)).ok_or_else(absent)?;
    if !locator.starts_with(&END_64_LOCATOR) {
        return Err(absent());
    }
    let mut cursor = Cursor::new(op, &locator[8..]);
    let at = usize::try_from(cursor.u64("the record's offset")?).map_err(|_| absent())?;
    let record = bytes.get(at..).filter(|record| record.starts_with(&END_64)).ok_or_else(absent)?;
    let mut cursor = Cursor::new(op, &record[4..]);
    cursor.take("the record of 64-bit sizes", 20)?;
    cursor.u64("the number of entries")?;
    Ok((cursor.u64("the number of entries")?, cursor.u64("the size")?, cursor.u64("the offset")?))
}

fn central(op: &'static str, cursor: &mut Cursor<'_>) -> Result<Entry> {
    let what = "an entry of the directory";
    if cursor.array::<4>(what)? != CENTRAL {
        return Err(damaged(op, "the archive's directory has something else than entries"));
    }
    cursor.take(what, 4)?;
    let (flags, method) = (cursor.u16(what)?, cursor.u16(what)?);
    cursor.take(what, 4)?;
    let crc = cursor.u32(what)?;
    let (compressed, size) = (cursor.u32(what)?, cursor.u32(what)?);
    let (name, extra, comment) = (cursor.u16(what)?, cursor.u16(what)?, cursor.u16(what)?);
    cursor.take(what, 8)?;
    let offset = cursor.u32(what)?;
    let name = cursor.take(what, usize::from(name))?;
    let extra = cursor.take(what, usize::from(extra))?;
    cursor.take(what, usize::from(comment))?;
    let name = match std::str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => return Err(damaged(op, "the name of an entry is no text")),
    };
    if flags & 1 != 0 {
        let problem = format!("the entry {name:?} is encrypted");
        return Err(malformed(op, problem, "encrypted archives are not read"));
    }
    let is_deflated = match method {
        0 => false,
        8 => true,
        other => {
            let problem = format!("the entry {name:?} is compressed by method {other}");
            return Err(malformed(op, problem, "entries must be stored or deflated"));
        }
    };
    let [size, compressed, offset] = widen(op, extra, [size, compressed, offset])?;
    if !is_deflated && size != compressed {
        return Err(damaged(
            op,
            &format!("the entry {name:?} is stored in {compressed} bytes and has {size}"),
        ));
    }
    if is_deflated && size / MOST_INFLATION > compressed {
        return Err(damaged(op, &format!("the entry {name:?} has {size} bytes deflated to {compressed}")));
    }
    Ok(Entry { name, is_deflated, crc, compressed, size, offset })
}

/// Sizes and offset; those that do not fit 32 bits come from the extra field, in this order.
fn widen(op: &'static str, extra: &[u8], short: [u32; 3]) -> Result<[usize; 3]> {
    let mut wide: &[u8] = &[];
    let mut cursor = Cursor::new(op, extra);
    while cursor.left() >= 4 {
        let (id, len) = (cursor.u16("an extra field")?, cursor.u16("an extra field")?);
        let field = cursor.take("an extra field", usize::from(len))?;
        if id == 1 {
            wide = field;
        }
    }
    let mut cursor = Cursor::new(op, wide);
    let mut out = [0; 3];
    for (out, short) in out.iter_mut().zip(short) {
        let value = if short == u32::MAX { cursor.u64("a 64-bit size")? } else { u64::from(short) };
        *out = usize::try_from(value).map_err(|_| damaged(op, "a size in the archive is too large"))?;
    }
    Ok(out)
}

/// The range of an entry's data, which follows its local header.
fn data_range(op: &'static str, bytes: &[u8], entry: &Entry) -> Result<Range<usize>> {
    let outside = || damaged(op, &format!("the entry {:?} is outside the file", entry.name));
    let header = bytes.get(entry.offset..).filter(|at| at.starts_with(&LOCAL)).ok_or_else(outside)?;
    let mut cursor = Cursor::new(op, header);
    cursor.take("a local header", 26)?;
    let (name, extra) = (cursor.u16("a local header")?, cursor.u16("a local header")?);
    let start = entry.offset + 30 + usize::from(name) + usize::from(extra);
    let end = start.checked_add(entry.compressed).filter(|&end| end <= bytes.len()).ok_or_else(outside)?;
    Ok(start..end)
}

/// Inflates an entry. The array's header is inflated first, and its size must match the directory's before
/// memory for the whole entry is allocated.
fn inflate(op: &'static str, entry: &Entry, data: &HostMemory, opaque: Option<DType>) -> Result<HostMemory> {
    let wrong = || damaged(op, &format!("the entry {:?} cannot be inflated", entry.name));
    let mut head = vec![0; entry.size.min(70 << 10)];
    let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (_, _, written) = decompress(&mut DecompressorOxide::new(), data.bytes(), &mut head, 0, flags);
    let header = npy::parse_header(op, &head[..written], opaque)?;
    let needed = header.byte_size(op)?.saturating_add(header.start);
    if needed != entry.size {
        let problem = format!("the entry {:?} has {} bytes", entry.name, entry.size);
        return Err(malformed(op, problem, format!("its header asks for {needed}; it is damaged")));
    }
    let mut whole = with_capacity(op, entry.size)?;
    whole.resize(entry.size, 0);
    let (status, read, written) =
        decompress(&mut DecompressorOxide::new(), data.bytes(), &mut whole, 0, flags);
    if status != TINFLStatus::Done || read != data.bytes().len() || written != entry.size {
        return Err(wrong());
    }
    Ok(whole.into())
}

/// The compression level: zlib's default.
const LEVEL: u8 = 6;

/// Writes an archive; `is_deflated` makes it smaller, and writing slower.
///
/// # Errors
/// Invalid names of entries, types that NumPy's format cannot distinguish, and memory.
pub fn write(op: &'static str, arrays: &[(String, Array)], is_deflated: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    let mut seen_names = FxHashSet::default();
    for (name, array) in arrays {
        let is_duplicate = !seen_names.insert(name);
        let name = format!("{name}.npy");
        if is_duplicate || name.len() > usize::from(u16::MAX) {
            let problem = format!("a tensor is named {:?}", name.chars().take(80).collect::<String>());
            return Err(malformed(op, problem, "names must differ and be shorter than 65,532 bytes"));
        }
        let file = npy::write(op, array)?;
        let crc = crc32fast::hash(&file);
        let size = file.len() as u64;
        let data = if is_deflated { compress_to_vec(&file, LEVEL) } else { file };
        let (compressed, offset) = (data.len() as u64, out.len() as u64);
        let method: u16 = if is_deflated { 8 } else { 0 };
        // Version 4.5 supports 64-bit sizes; bit 11 marks names as UTF-8; dates begin in 1980.
        let mut common = Vec::new();
        for short in [45, 1 << 11, method, 0, (1 << 5) | 1] {
            common.extend_from_slice(&u16::to_le_bytes(short));
        }
        common.extend_from_slice(&crc.to_le_bytes());
        common.extend_from_slice(&[0xFF; 8]);
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());

        out.try_reserve(data.len() + name.len() + 128).map_err(|_| ErrorKind::OutOfMemory {
            op,
            requested: data.len(),
            available: 0,
        })?;
        out.extend_from_slice(&LOCAL);
        out.extend_from_slice(&common);
        extend_wide(&mut out, &name, &[size, compressed]);
        out.extend_from_slice(&data);

        directory.extend_from_slice(&CENTRAL);
        directory.extend_from_slice(&u16::to_le_bytes(45));
        directory.extend_from_slice(&common);
        // The extra field's length precedes the fields that a local header lacks.
        directory.extend_from_slice(&u16::to_le_bytes(4 + 3 * 8));
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&[0xFF; 4]);
        directory.extend_from_slice(name.as_bytes());
        extend_field(&mut directory, &[size, compressed, offset]);
    }
    let (count, offset, size) = (arrays.len() as u64, out.len() as u64, directory.len() as u64);
    out.extend_from_slice(&directory);
    if arrays.is_empty() {
        // NumPy recognizes an empty archive by the end record at its start.
        out.extend_from_slice(&END);
        out.extend_from_slice(&[0; END_BYTES - END.len()]);
        return Ok(out);
    }
    let record = out.len() as u64;
    out.extend_from_slice(&END_64);
    out.extend_from_slice(&44u64.to_le_bytes());
    out.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for wide in [count, count, size, offset] {
        out.extend_from_slice(&wide.to_le_bytes());
    }
    out.extend_from_slice(&END_64_LOCATOR);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&record.to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    out.extend_from_slice(&END);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[0xFF; 12]);
    out.extend_from_slice(&[0; 2]);
    Ok(out)
}

/// The end of a local header: the extra field's length, the name, and the extra field with the sizes.
fn extend_wide(out: &mut Vec<u8>, name: &str, sizes: &[u64]) {
    out.extend_from_slice(&((4 + 8 * sizes.len()) as u16).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    extend_field(out, sizes);
}

fn extend_field(out: &mut Vec<u8>, sizes: &[u64]) {
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&((8 * sizes.len()) as u16).to_le_bytes());
    for size in sizes {
        out.extend_from_slice(&size.to_le_bytes());
    }
}
