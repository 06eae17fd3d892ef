//! Macros that map an element type to the Rust type in which its elements are computed or moved.

/// Runs the body with `$C` as the type in which elements of an ordered dtype are computed: bytes for bool, 8-bit
/// integers for the narrower ones, f32 for the small floats. For a complex dtype it runs the `else` branch, or panics
/// without one.
macro_rules! with_real {
    ($dtype:expr, $C:ident => $body:expr) => {
        $crate::kernels::with_real!($dtype, $C => $body, else other => unreachable!("{other} has no order"))
    };
    ($dtype:expr, $C:ident => $body:expr, else $other:ident => $complex:expr) => {{
        use ::defn_core::DType::*;
        match $dtype {
            Bool | U2 | U4 | U8 => {
                type $C = u8;
                $body
            }
            U16 => {
                type $C = u16;
                $body
            }
            U32 => {
                type $C = u32;
                $body
            }
            U64 => {
                type $C = u64;
                $body
            }
            S2 | S4 | S8 => {
                type $C = i8;
                $body
            }
            S16 => {
                type $C = i16;
                $body
            }
            S32 => {
                type $C = i32;
                $body
            }
            S64 => {
                type $C = i64;
                $body
            }
            F8E5M2 | F8E4M3FN | F16 | BF16 | F32 => {
                type $C = f32;
                $body
            }
            F64 => {
                type $C = f64;
                $body
            }
            $other @ (C64 | C128) => $complex,
        }
    }};
}
pub(crate) use with_real;

/// Runs the body with `$C` as the type of a complex dtype.
macro_rules! with_complex {
    ($dtype:expr, $C:ident => $body:expr) => {
        if $dtype == ::defn_core::DType::C64 {
            type $C = ::num_complex::Complex<f32>;
            $body
        } else {
            type $C = ::num_complex::Complex<f64>;
            $body
        }
    };
}
pub(crate) use with_complex;

/// Runs the body with `$C` as the type in which elements of any dtype are computed: as `with_real`, and complex numbers
/// in their own type.
macro_rules! with_compute {
    ($dtype:expr, $C:ident => $body:expr) => {
        $crate::kernels::with_real!($dtype, $C => $body, else other => {
            $crate::kernels::with_complex!(other, $C => $body)
        })
    };
}
pub(crate) use with_compute;

/// As `with_compute`, and integers of either sign are unsigned: their sums and products have the same bits.
macro_rules! with_unsigned {
    ($dtype:expr, $C:ident => $body:expr) => {
        $crate::kernels::with_unsigned!($dtype, $C => $body, else other => {
            $crate::kernels::with_complex!(other, $C => $body)
        })
    };
    ($dtype:expr, $C:ident => $body:expr, else $other:ident => $complex:expr) => {{
        use ::defn_core::DType::*;
        match $dtype {
            Bool | U2 | U4 | U8 | S2 | S4 | S8 => {
                type $C = u8;
                $body
            }
            U16 | S16 => {
                type $C = u16;
                $body
            }
            U32 | S32 => {
                type $C = u32;
                $body
            }
            U64 | S64 => {
                type $C = u64;
                $body
            }
            F8E5M2 | F8E4M3FN | F16 | BF16 | F32 => {
                type $C = f32;
                $body
            }
            F64 => {
                type $C = f64;
                $body
            }
            $other @ (C64 | C128) => $complex,
        }
    }};
}
pub(crate) use with_unsigned;

/// Runs the body with `$I` as the type in which integers of a dtype are computed.
macro_rules! with_integer {
    ($dtype:expr, $I:ident => $body:expr) => {{
        use ::defn_core::DType::*;
        match $dtype {
            U2 | U4 | U8 => {
                type $I = u8;
                $body
            }
            U16 => {
                type $I = u16;
                $body
            }
            U32 => {
                type $I = u32;
                $body
            }
            U64 => {
                type $I = u64;
                $body
            }
            S2 | S4 | S8 => {
                type $I = i8;
                $body
            }
            S16 => {
                type $I = i16;
                $body
            }
            S32 => {
                type $I = i32;
                $body
            }
            S64 => {
                type $I = i64;
                $body
            }
            other @ (Bool | F8E5M2 | F8E4M3FN | F16 | BF16 | F32 | F64 | C64 | C128) => {
                unreachable!("{other} is no integer")
            }
        }
    }};
}
pub(crate) use with_integer;

/// Runs the body with `$I` as the type of positions of a dtype: signed integers of 32 or 64 bits.
macro_rules! with_position {
    ($dtype:expr, $I:ident => $body:expr) => {{
        let dtype: ::defn_core::DType = $dtype;
        debug_assert!(dtype.kind() == ::defn_core::Kind::Signed);
        if dtype.bits() == 64 {
            type $I = i64;
            $body
        } else {
            type $I = i32;
            $body
        }
    }};
}
pub(crate) use with_position;

/// Runs the body with `$T` as a plain type of the width of a dtype's elements, to move them.
macro_rules! with_width {
    ($dtype:expr, $T:ident => $body:expr) => {{
        match $dtype.storage_bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            // Complex numbers have the alignment of their parts.
            8 if $dtype.is_complex() => {
                type $T = [u32; 2];
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            16 => {
                type $T = [u64; 2];
                $body
            }
            width => unreachable!("no element has {width} bytes"),
        }
    }};
}
pub(crate) use with_width;
