//! The element types of PJRT.

use std::fmt;

use crate::error::{Error, Result};

/// Declares the types: number in the PJRT C API, size in bits, name in StableHLO.
macro_rules! elements {
    ($($name:ident = $raw:literal, $bits:literal, $text:literal;)*) => {
        /// The type of a buffer's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are those of the interface")]
        pub enum ElementType {
            $($name,)*
        }

        impl ElementType {
            /// All types, in the order of the PJRT C API.
            pub const ALL: &[ElementType] = &[$(ElementType::$name),*];

            pub(crate) fn to_raw(self) -> i32 {
                match self {
                    $(ElementType::$name => $raw,)*
                }
            }

            pub(crate) fn from_raw(raw: i32) -> Result<ElementType> {
                match raw {
                    $($raw => Ok(ElementType::$name),)*
                    other => Err(Error::Element { raw: other }),
                }
            }

            /// The size of an element in bits.
            pub fn bits(self) -> usize {
                match self {
                    $(ElementType::$name => $bits,)*
                }
            }

            /// The name in StableHLO, such as `ui8` or `complex<f32>`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ElementType::$name => $text,)*
                }
            }
        }
    };
}

elements! {
    Pred = 1, 8, "i1";
    S8 = 2, 8, "i8";
    S16 = 3, 16, "i16";
    S32 = 4, 32, "i32";
    S64 = 5, 64, "i64";
    U8 = 6, 8, "ui8";
    U16 = 7, 16, "ui16";
    U32 = 8, 32, "ui32";
    U64 = 9, 64, "ui64";
    F16 = 10, 16, "f16";
    F32 = 11, 32, "f32";
    F64 = 12, 64, "f64";
    Bf16 = 13, 16, "bf16";
    C64 = 14, 64, "complex<f32>";
    C128 = 15, 128, "complex<f64>";
    F8E5M2 = 16, 8, "f8E5M2";
    F8E4M3Fn = 17, 8, "f8E4M3FN";
    F8E4M3B11Fnuz = 18, 8, "f8E4M3B11FNUZ";
    F8E5M2Fnuz = 19, 8, "f8E5M2FNUZ";
    F8E4M3Fnuz = 20, 8, "f8E4M3FNUZ";
    S4 = 21, 4, "i4";
    U4 = 22, 4, "ui4";
    S2 = 24, 2, "i2";
    U2 = 25, 2, "ui2";
    F8E4M3 = 26, 8, "f8E4M3";
    F8E3M4 = 27, 8, "f8E3M4";
    F8E8M0Fnu = 28, 8, "f8E8M0FNU";
    F4E2M1Fn = 29, 4, "f4E2M1FN";
}

impl ElementType {
    /// The size in bytes of a tensor in host memory, where an element takes at least one byte; `None` if it overflows.
    pub fn bytes(self, dims: &[i64]) -> Option<usize> {
        let each = self.bits().div_ceil(8);
        dims.iter().try_fold(each, |bytes, &size| bytes.checked_mul(usize::try_from(size).ok()?))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
