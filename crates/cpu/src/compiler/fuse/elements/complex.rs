//! Complex numbers.

use defn_core::op::{ArithmeticOp, UnaryOp};

use super::{Element, Elements};
use crate::kernels::elementwise::vector::Base;

impl Elements {
    pub(super) fn complex_unary(&mut self, _op: UnaryOp, x: Element) -> Element {
        x
    }
    pub(super) fn modulus(&mut self, x: Element) -> Element {
        x
    }
    pub(super) fn complex_log_to(&mut self, _base: Base, x: Element) -> Element {
        x
    }
    pub(super) fn complex_arithmetic(&mut self, _op: ArithmeticOp, a: Element, _b: Element) -> Element {
        a
    }
}
