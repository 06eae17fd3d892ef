//! Exponentials.

use super::super::{Builder, Elem, Op, Val};
use super::ROUND;

/// The leading 9 bits of log(2). Their products with exponents are exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
/// The remainder of log(2).
const LN2_LOW: f32 = -2.121_944_4e-4;
/// `(e^x - 1 - x) / x^2` around 0.
const EXP: &[f64] = &[0.5, 0.166_666_67, 0.041_666_463, 0.008_333_310_5, 0.001_393_375_1, 0.000_198_911_03];

impl Builder {
    /// `e^x` of f32.
    pub(crate) fn exp_f32(&mut self, x: Val) -> Val {
        let (most, least) = (self.f32(89.0), self.f32(-104.0));
        let x = self.op(Op::Min, [most, x]);
        let x = self.op(Op::Max, [least, x]);
        let (p, n) = self.exp_parts(x);
        let one = self.f32(1.0);
        let factor = self.add(p, one);
        self.op(Op::Scale, [factor, n])
    }

    /// `(p, n)` with `e^x = (1 + p) * 2^n` for `|x| < 1000`.
    fn exp_parts(&mut self, x: Val) -> (Val, Val) {
        let (log2_e, round) = (self.f32(std::f32::consts::LOG2_E), self.f32(ROUND));
        let raised = self.fma(x, log2_e, round);
        let n = self.sub(raised, round);
        let (high, low) = (self.f32(LN2_HIGH), self.f32(LN2_LOW));
        let r = self.fnma(n, high, x);
        let r = self.fnma(n, low, r);
        let q = self.poly(Elem::F32, r, EXP);
        let z = self.mul(r, r);
        (self.fma(z, q, r), n)
    }
}
