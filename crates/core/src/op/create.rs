//! Ops that create tensors.

use std::fmt;
use std::sync::Arc;

use crate::shape::TensorType;

/// A tensor constant of the program: its type and its elements in memory order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Literal {
    ty: TensorType,
    bytes: Arc<[u8]>,
}

impl Literal {
    /// A literal from elements in their memory format: row-major, native byte order, one byte for each 2- or 4-bit
    /// element.
    ///
    /// # Panics
    /// If the number of bytes is not the type's byte size.
    pub fn new(ty: TensorType, bytes: impl Into<Arc<[u8]>>) -> Literal {
        let bytes = bytes.into();
        assert_eq!(bytes.len(), ty.byte_size(), "the bytes of {ty}");
        Literal { ty, bytes }
    }

    /// The type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The elements in their memory format.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Literal({})", self.ty)
    }
}
