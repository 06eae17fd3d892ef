//! Helpers of the kernels' tests: tensors of any dtype in memory, and indices.

use std::mem::MaybeUninit;

use defn_core::{DType, Number, Scalar, Shape, TensorType};
use proptest::prelude::*;

use crate::view::{View, ViewMut};

/// The dtypes whose compute dtype is the dtype itself.
pub(crate) const COMPUTED: [DType; 12] = [
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::S8,
    DType::S16,
    DType::S32,
    DType::S64,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// A tensor for tests; aligned for every dtype.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) ty: TensorType,
    words: Vec<MaybeUninit<u128>>,
}

impl Array {
    /// A result that was not written.
    pub(crate) fn unwritten(ty: TensorType) -> Array {
        let words =
            vec![MaybeUninit::new(0x5A5A_5A5A_5A5A_5A5A_5A5A_5A5A_5A5A_5A5A); ty.byte_size().div_ceil(16)];
        Array { ty, words }
    }

    /// The numbers, wrapped or rounded to the dtype.
    pub(crate) fn new(dtype: DType, sizes: &[usize], numbers: impl IntoIterator<Item = Number>) -> Array {
        let ty = TensorType::new(dtype, Shape::new(sizes)).unwrap();
        let bytes: Vec<u8> =
            numbers.into_iter().flat_map(|number| Scalar::new(dtype, number).unwrap().to_bytes()).collect();
        Array::of_bytes(ty, &bytes)
    }

    /// A tensor of the given bytes.
    pub(crate) fn of_bytes(ty: TensorType, bytes: &[u8]) -> Array {
        assert_eq!(bytes.len(), ty.byte_size());
        let mut array = Array::unwritten(ty);
        // SAFETY: the words have room for the bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.words.as_mut_ptr().cast(), bytes.len())
        };
        array
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(&self.ty, self.bytes())
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_> {
        // SAFETY: the words have room for the type and are borrowed while the view lives.
        unsafe { ViewMut::new(&self.ty, self.words.as_mut_ptr().cast()) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: all words were initialised.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.ty.byte_size()) }
    }

    /// The elements.
    pub(crate) fn scalars(&self) -> Vec<Scalar> {
        let width = self.ty.dtype.storage_bytes();
        self.bytes().chunks(width).map(|bytes| Scalar::from_bytes(self.ty.dtype, bytes)).collect()
    }
}

/// Sizes of up to four axes, some of them 0.
pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..9, 0..=4)
}

/// Any dtype.
pub(crate) fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL)
}

/// The index of an element, from its row-major position.
pub(crate) fn index_of(sizes: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (position, &size) in index.iter_mut().zip(sizes).rev() {
        *position = flat % size;
        flat /= size;
    }
    index
}

/// The row-major position of an element, from its index.
pub(crate) fn flat_of(sizes: &[usize], index: &[usize]) -> usize {
    sizes.iter().zip(index).fold(0, |flat, (size, i)| flat * size + i)
}

/// Pseudo-random numbers, the same in every run.
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = u64> {
    (0u64..).map(move |i| {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let mut x = (seed ^ i).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    })
}
