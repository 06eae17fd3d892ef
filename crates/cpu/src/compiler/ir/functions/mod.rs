//! Functions of real numbers as sequences of ops: the one source of their bits for all executors.
//!
//! Common and cheap functions of f32 are computed in f32, the others in f64 with one rounding at the end. Special values
//! are those of C99, Annex F. Polynomials and constants come from `tools/minimax.py`; `docs/ulp.md` lists the errors.

mod exp;

use super::{Builder, Elem, Val};

/// Adding this rounds a number below 2^22 to an integer, ties to even. The integer is then in the low bits.
const ROUND: f32 = 12_582_912.0;

impl Builder {
    /// The polynomial with these coefficients, lowest first, by Horner's scheme.
    fn poly(&mut self, elem: Elem, x: Val, coefficients: &[f64]) -> Val {
        let mut terms = coefficients.iter().rev();
        let highest = *terms.next().expect("a polynomial has coefficients");
        let mut sum = self.float(elem, highest);
        for &coefficient in terms {
            let coefficient = self.float(elem, coefficient);
            sum = self.fma(sum, x, coefficient);
        }
        sum
    }
}
