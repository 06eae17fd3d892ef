//! Packed 2- and 4-bit elements: several to a byte, the first in the highest bits. Bools take a byte each.

use std::borrow::Cow;

use crate::dtype::DType;
use crate::scalar::wrap;

/// The number of bytes of packed elements; other types have their size in memory.
pub fn len(dtype: DType, elements: usize) -> usize {
    if dtype.is_packed() { elements.div_ceil(8 / dtype.bits()) } else { elements * dtype.storage_bytes() }
}

/// Packs elements that have a byte each. Elements of other types are returned unchanged.
pub fn pack(dtype: DType, elements: &[u8]) -> Cow<'_, [u8]> {
    if !dtype.is_packed() {
        return Cow::Borrowed(elements);
    }
    let per_byte = 8 / dtype.bits();
    let mask = (1u8 << dtype.bits()) - 1;
    let byte = |chunk: &[u8]| {
        let shifts = (0..per_byte).map(|at| 8 - dtype.bits() * (at + 1));
        chunk.iter().zip(shifts).fold(0, |byte, (element, shift)| byte | ((element & mask) << shift))
    };
    Cow::Owned(elements.chunks(per_byte).map(byte).collect())
}

/// Unpacks every element of some bytes, including the unused ones of the last byte.
pub fn unpack(dtype: DType, bytes: &[u8]) -> Cow<'_, [u8]> {
    if dtype.is_bool() {
        // Foreign bytes may have values other than 0 and 1.
        return Cow::Owned(bytes.iter().map(|&byte| u8::from(byte != 0)).collect());
    }
    if !dtype.is_packed() {
        return Cow::Borrowed(bytes);
    }
    let per_byte = 8 / dtype.bits();
    let element = |byte: u8, at: usize| wrap(dtype, i128::from(byte >> (8 - dtype.bits() * (at + 1)))) as u8;
    Cow::Owned(bytes.iter().flat_map(|&byte| (0..per_byte).map(move |at| element(byte, at))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking() {
        let elements: Vec<u8> = [1i8, -2, 0, -1, 1].map(|x| x as u8).to_vec();
        let bytes = pack(DType::S2, &elements);
        assert_eq!(*bytes, [0b01_10_00_11, 0b01_00_00_00]);
        assert_eq!(bytes.len(), len(DType::S2, 5));
        assert_eq!(unpack(DType::S2, &bytes)[..5], elements);
        assert_eq!(*pack(DType::U4, &[1, 15, 7]), [0x1F, 0x70]);
        assert_eq!(*unpack(DType::S4, &[0x1F]), [1, 0xFF]);
        assert_eq!(*unpack(DType::Bool, &pack(DType::Bool, &[0, 1, 2, 255])), [0, 1, 1, 1]);
        assert_eq!(*pack(DType::F32, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    }
}
