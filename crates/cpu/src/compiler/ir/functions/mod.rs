//! Functions of real numbers as sequences of ops: the one source of their bits for all executors.
//!
//! Common and cheap functions of f32 are computed in f32 (`narrow`), the others in f64 with shorter
//! polynomials and one rounding at the end. Special values are those of C99, Annex F. Polynomials and
//! constants come from `tools/minimax.py`; `docs/ulp.md` lists the errors: at most 2 ulp in f32, 4 in f64.
//!
//! Both sides of a choice are computed, and selected for each lane. What only rare numbers need stands behind
//! a side exit that most vectors skip ([`floats::Floats::unless_any`]).

mod arc;
mod complex;
mod erf;
mod exp;
mod floats;
mod log;
mod narrow;
mod power;
pub(crate) mod rare;
mod remainder;
mod tables;
#[cfg(test)]
mod tests;
mod trig;

use super::{Builder, Elem, Val};
pub(crate) use complex::{Complex, ComplexFunction};
use floats::Floats;
use tables::{DOUBLE, SINGLE};

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function1 {
    /// `e^x`.
    Exp,
    /// `e^x - 1`.
    Expm1,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    Sinh,
    Cosh,
    Tanh,
    /// The natural logarithm.
    Log,
    Log2,
    Log10,
    /// `log(1 + x)`.
    Log1p,
    Asinh,
    Acosh,
    Atanh,
    Asin,
    Acos,
    Atan,
    /// The cube root.
    Cbrt,
    /// The error function.
    Erf,
    /// `1 - erf(x)`.
    Erfc,
    /// The inverse of the error function.
    ErfInv,
    Sin,
    Cos,
    Tan,
}

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function2 {
    /// `x^y` of `x` and `y`.
    Pow,
    /// The angle of the point `(x, y)`, of `y` and `x`.
    Atan2,
    /// The remainder of truncated division.
    Remainder,
}

/// Makes the ops of a function of one number.
type Make1 = fn(&mut Floats, Val) -> Val;
/// Makes the ops of a function of two numbers.
type Make2 = fn(&mut Floats, Val, Val) -> Val;

impl Function1 {
    /// The function in f64, and in f32 if it is computed in f32.
    fn makers(self) -> (Make1, Option<Make1>) {
        match self {
            Function1::Exp => (exp::exp, Some(narrow::exp::exp)),
            Function1::Expm1 => (exp::expm1, Some(narrow::exp::expm1)),
            Function1::Sigmoid => (exp::sigmoid, Some(narrow::exp::sigmoid)),
            Function1::Sinh => (exp::sinh, Some(narrow::exp::sinh)),
            Function1::Cosh => (exp::cosh, Some(narrow::exp::cosh)),
            Function1::Tanh => (exp::tanh, Some(narrow::exp::tanh)),
            Function1::Log => (log::log, Some(narrow::log::log)),
            Function1::Log2 => (log::log2, Some(narrow::log::log2)),
            Function1::Log10 => (log::log10, Some(narrow::log::log10)),
            Function1::Log1p => (log::log1p, Some(narrow::log::log1p)),
            Function1::Asinh => (log::asinh, Some(narrow::log::asinh)),
            Function1::Acosh => (log::acosh, Some(narrow::log::acosh)),
            Function1::Atanh => (log::atanh, Some(narrow::log::atanh)),
            Function1::Asin => (arc::asin, Some(narrow::arc::asin)),
            Function1::Acos => (arc::acos, Some(narrow::arc::acos)),
            Function1::Atan => (arc::atan, Some(narrow::arc::atan)),
            Function1::Cbrt => (power::cbrt, Some(narrow::power::cbrt)),
            Function1::Erf => (erf::erf, None),
            Function1::Erfc => (erf::erfc, None),
            Function1::ErfInv => (erf::erf_inv, None),
            Function1::Sin => (trig::sin, Some(narrow::trig::sin)),
            Function1::Cos => (trig::cos, Some(narrow::trig::cos)),
            Function1::Tan => (trig::tan, Some(narrow::trig::tan)),
        }
    }
}

impl Function2 {
    /// The function in f64, and in f32.
    fn makers(self) -> (Make2, Make2) {
        match self {
            Function2::Pow => (power::pow, narrow::power::pow),
            Function2::Atan2 => (arc::atan2, narrow::arc::atan2),
            Function2::Remainder => (remainder::remainder, remainder::remainder),
        }
    }
}

impl Builder {
    fn floats(&mut self, elem: Elem) -> Floats<'_> {
        let precision = match elem {
            Elem::F32 => &SINGLE,
            Elem::F64 => &DOUBLE,
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => {
                unreachable!("{elem:?} is no float")
            }
        };
        Floats { ir: self, elem, precision }
    }

    /// A function of an f32 or f64.
    pub(crate) fn function(&mut self, function: Function1, x: Val) -> Val {
        let mut floats = self.floats(self.ty(x).elem);
        match (function.makers(), floats.elem) {
            ((_, Some(make)), Elem::F32) => make(&mut floats, x),
            ((make, None), Elem::F32) => {
                let wide = floats.widened(x);
                let result = make(&mut floats.wide(), wide);
                floats.narrowed(result)
            }
            ((make, _), _) => make(&mut floats, x),
        }
    }

    /// A function of two numbers of one type, f32 or f64.
    pub(crate) fn function2(&mut self, function: Function2, a: Val, b: Val) -> Val {
        let elem = self.ty(a).elem;
        let is_single = elem == Elem::F32;
        let number =
            |bits| if is_single { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
        let [base, exponent] = [a, b].map(|x| self.constant_bits(x).map(number));
        let mut floats = self.floats(elem);
        if let (Function2::Pow, Some(y)) = (function, exponent)
            && let Some(power) = power::known_power(&mut floats, a, y, is_single)
        {
            return power;
        }
        if (function, base) == (Function2::Pow, Some(2.0)) {
            let make = if is_single { narrow::power::exp2 } else { power::exp2 };
            return make(&mut floats, b);
        }
        let (make, make_narrow) = function.makers();
        let make = if floats.elem == Elem::F32 { make_narrow } else { make };
        make(&mut floats, a, b)
    }
}
