//! Element types of the program: the types that store elements on the device, and the types that compute them.
//!
//! Bools are predicates of the device. 2- and 4-bit integers are stored in bytes and wrapped after every operation.
//! Small floats are computed in f32 and rounded after every operation. Both match the CPU, with the same results.

use defn_core::{DType, Kind, Scalar};

use super::text::{Ssa, Ty, Writer};
use crate::element::ElementType as E;

/// The storage type of a dtype on the device.
pub(super) fn storage_type(dtype: DType) -> E {
    match dtype {
        DType::Bool => E::Pred,
        DType::U2 | DType::U4 | DType::U8 => E::U8,
        DType::U16 => E::U16,
        DType::U32 => E::U32,
        DType::U64 => E::U64,
        DType::S2 | DType::S4 | DType::S8 => E::S8,
        DType::S16 => E::S16,
        DType::S32 => E::S32,
        DType::S64 => E::S64,
        DType::F8E5M2 => E::F8E5M2,
        DType::F8E4M3FN => E::F8E4M3Fn,
        DType::F16 => E::F16,
        DType::BF16 => E::Bf16,
        DType::F32 => E::F32,
        DType::F64 => E::F64,
        DType::C64 => E::C64,
        DType::C128 => E::C128,
    }
}

/// The compute type of a dtype.
pub(super) fn compute_type(dtype: DType) -> E {
    match dtype {
        DType::F8E5M2 | DType::F8E4M3FN | DType::F16 | DType::BF16 => E::F32,
        DType::Bool
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::F32
        | DType::F64
        | DType::C64
        | DType::C128 => storage_type(dtype),
    }
}

/// The real type of a complex type.
pub(super) fn half(element: E) -> E {
    if element == E::C128 { E::F64 } else { E::F32 }
}

/// A scalar as bytes of its storage type, little endian.
fn scalar_bytes(dtype: DType, value: Scalar) -> Vec<u8> {
    debug_assert_eq!(value.dtype(), dtype);
    little_endian(dtype, value.to_bytes())
}

/// Converts elements from native byte order to that of the program's text.
pub(super) fn little_endian(dtype: DType, mut bytes: Vec<u8>) -> Vec<u8> {
    let width = if dtype.is_complex() { dtype.storage_bytes() / 2 } else { dtype.storage_bytes() };
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02X}").expect("a string takes every text");
    }
    text
}

impl Writer {
    /// A constant tensor of elements in their storage type.
    pub fn literal(&mut self, ty: Ty, bytes: &[u8]) -> Ssa {
        if ty.dims.contains(&0) {
            return self.op("constant", &[], &format!("value = dense<> : {ty}"), ty.clone());
        }
        if ty.element == E::Pred {
            if let [truth] = bytes {
                return self.number(E::Pred, i32::from(*truth));
            }
            // Versions of the text format differ in how they pack predicates.
            let bytes = self.literal(ty.of(E::U8), bytes);
            return self.convert(&bytes, E::Pred);
        }
        self.op("constant", &[], &format!("value = dense<\"0x{}\"> : {ty}", hex(bytes)), ty.clone())
    }

    /// A scalar in its compute type.
    pub fn scalar(&mut self, value: Scalar) -> Ssa {
        let dtype = value.dtype();
        let storage_type = self.literal(Ty::scalar(storage_type(dtype)), &scalar_bytes(dtype, value));
        self.load(&storage_type, dtype)
    }

    /// A small number of an element type.
    pub fn number(&mut self, element: E, value: i32) -> Ssa {
        let text = match element {
            E::C64 | E::C128 => format!("({value}.0, 0.0)"),
            E::F16
            | E::F32
            | E::F64
            | E::Bf16
            | E::F8E5M2
            | E::F8E4M3Fn
            | E::F8E4M3B11Fnuz
            | E::F8E5M2Fnuz
            | E::F8E4M3Fnuz
            | E::F8E4M3
            | E::F8E3M4
            | E::F8E8M0Fnu
            | E::F4E2M1Fn => format!("{value}.0"),
            E::Pred => (value != 0).to_string(),
            E::S2
            | E::S4
            | E::S8
            | E::S16
            | E::S32
            | E::S64
            | E::U2
            | E::U4
            | E::U8
            | E::U16
            | E::U32
            | E::U64 => value.to_string(),
        };
        let ty = Ty::scalar(element);
        self.op("constant", &[], &format!("value = dense<{text}> : {ty}"), ty.clone())
    }

    /// A small number, broadcast to the shape of another value.
    pub fn number_like(&mut self, like: &Ssa, value: i32) -> Ssa {
        let number = self.number(like.element(), value);
        self.splat(&number, like.dims())
    }

    /// A scalar, broadcast to a shape.
    pub fn splat(&mut self, scalar: &Ssa, dims: &[usize]) -> Ssa {
        if dims.is_empty() {
            return scalar.clone();
        }
        let ty = Ty::new(scalar.element(), dims);
        self.op("broadcast_in_dim", &[scalar], "broadcast_dimensions = array<i64>", ty)
    }

    /// Converts elements with the device's conversion, which must be exact between the types, or round to nearest.
    pub fn convert(&mut self, x: &Ssa, element: E) -> Ssa {
        if x.element() == element { x.clone() } else { self.op("convert", &[x], "", x.ty.of(element)) }
    }

    /// From the storage type to the compute type.
    pub fn load(&mut self, x: &Ssa, dtype: DType) -> Ssa {
        self.convert(x, compute_type(dtype))
    }

    /// From the compute type to the storage type: rounded and wrapped.
    pub fn store(&mut self, x: &Ssa, dtype: DType) -> Ssa {
        match dtype {
            DType::U2 | DType::U4 => {
                let mask = self.number_like(x, (1 << dtype.bits()) - 1);
                self.op("and", &[x, &mask], "", x.ty.clone())
            }
            DType::S2 | DType::S4 => {
                let free = i32::try_from(8 - dtype.bits()).expect("a few bits");
                let free = self.number_like(x, free);
                let high = self.op("shift_left", &[x, &free], "", x.ty.clone());
                self.op("shift_right_arithmetic", &[&high, &free], "", x.ty.clone())
            }
            // The type has no infinity: too large numbers become the largest one.
            DType::F8E4M3FN => {
                let (least, most) = (self.number_like(x, -448), self.number_like(x, 448));
                let above = self.op("maximum", &[x, &least], "", x.ty.clone());
                let within = self.op("minimum", &[&above, &most], "", x.ty.clone());
                self.convert(&within, E::F8E4M3Fn)
            }
            DType::Bool
            | DType::F8E5M2
            | DType::F16
            | DType::BF16
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::S8
            | DType::S16
            | DType::S32
            | DType::S64
            | DType::F32
            | DType::F64
            | DType::C64
            | DType::C128 => self.convert(x, storage_type(dtype)),
        }
    }

    /// Converts elements from one storage type to another.
    pub fn cast(&mut self, x: &Ssa, from: DType, to: DType) -> Ssa {
        if from == to {
            return x.clone();
        }
        let x = self.load(x, from);
        let y = self.cast_computed(&x, from.kind(), to);
        self.store(&y, to)
    }

    /// Converts elements from the storage type of one dtype to the compute type of another.
    pub fn load_as(&mut self, x: &Ssa, from: DType, to: DType) -> Ssa {
        let storage_type = self.cast(x, from, to);
        self.load(&storage_type, to)
    }

    /// Converts elements from a compute type to one that can be stored as `to`, without rounding before the store.
    fn cast_computed(&mut self, x: &Ssa, from: Kind, to: DType) -> Ssa {
        let element = compute_type(to);
        match (from, to.kind()) {
            (_, Kind::Bool) => self.truth(x),
            (Kind::Complex, Kind::Unsigned | Kind::Signed | Kind::Float) => {
                let real = self.op("real", &[x], "", x.ty.of(half(x.element())));
                self.cast_computed(&real, Kind::Float, to)
            }
            (Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Float, Kind::Complex) => {
                let real = self.convert(x, half(element));
                let zero = self.number_like(&real, 0);
                self.op("complex", &[&real, &zero], "", x.ty.of(element))
            }
            (Kind::Float, Kind::Unsigned | Kind::Signed) => self.float_to_integer(x, to),
            (Kind::Float, Kind::Float) => x.clone(),
            (Kind::Unsigned | Kind::Signed, Kind::Float) if to.bits() < 32 => self.convert(x, E::F64),
            // 0 and 1 are exact in every type.
            (Kind::Bool | Kind::Unsigned | Kind::Signed, Kind::Unsigned | Kind::Signed | Kind::Float)
            | (Kind::Complex, Kind::Complex) => self.convert(x, element),
        }
    }

    /// Converts floats to integers: truncates, clamps to the range, and turns NaN into 0.
    fn float_to_integer(&mut self, x: &Ssa, to: DType) -> Ssa {
        let element = compute_type(to);
        let bound = |scalar| Scalar::new(to, scalar).expect("a limit of the type");
        let (least, most) = (bound(to.lowest()), bound(to.highest()));
        let (least, most) = (self.scalar(least), self.scalar(most));
        let float = |w: &mut Writer, limit: &Ssa| w.convert(limit, x.element());
        let (low, high) = (float(self, &least), float(self, &most));
        let compared = |w: &mut Writer, limit: &Ssa, direction: &str| {
            let limit = w.splat(limit, x.dims());
            w.compare(x, &limit, direction)
        };
        let below = compared(self, &low, "LE");
        // The limit rounds up if the float type is too narrow for it, so equality is out of range too.
        let above = compared(self, &high, "GE");
        let nan = self.compare(x, x, "NE");
        let plain = self.op("convert", &[x], "", x.ty.of(element));
        let (least, most) = (self.splat(&least, x.dims()), self.splat(&most, x.dims()));
        let zero = self.number_like(&plain, 0);
        let bounded = self.choose(&below, &least, &plain);
        let bounded = self.choose(&above, &most, &bounded);
        self.choose(&nan, &zero, &bounded)
    }

    /// A comparison, as predicates.
    pub fn compare(&mut self, a: &Ssa, b: &Ssa, direction: &str) -> Ssa {
        let direction = format!("comparison_direction = #stablehlo<comparison_direction {direction}>");
        self.op("compare", &[a, b], &direction, a.ty.of(E::Pred))
    }

    /// `a` where a predicate holds, else `b`.
    pub fn choose(&mut self, pred: &Ssa, a: &Ssa, b: &Ssa) -> Ssa {
        self.op("select", &[pred, a, b], "", a.ty.clone())
    }

    /// Whether elements, in their compute type, are nonzero. NaN counts as nonzero.
    pub fn truth(&mut self, x: &Ssa) -> Ssa {
        if x.element() == E::Pred {
            return x.clone();
        }
        let zero = self.number_like(x, 0);
        self.compare(x, &zero, "NE")
    }
}
