//! Special functions of real numbers.
//!
//! They compute in f32 or f64. Where a definition has no accurate derivative, its value gets a gradient rule of its
//! own, which is a formula in special functions again.

mod bessel;
mod gamma;
mod incomplete_beta;
mod incomplete_gamma;
mod normal;
mod tables;

use std::sync::Arc;

pub use bessel::{i0, i0e, i1, i1e};
pub use gamma::{betaln, digamma, lgamma, trigamma};
pub use incomplete_beta::betainc;
pub(crate) use incomplete_gamma::log_quantile_slope;
pub use incomplete_gamma::{gammainc, gammaincc};
pub use normal::{ndtr, ndtri};

use tables::Table;

use super::{of_real, of_reals};
use crate::builder::{BuildControl, BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::cotangent_type;
use crate::graph::{Graph, Value};
use crate::op::CustomRules;
use crate::region::Region;

/// A value with a gradient rule: `rule` maps its cotangent and the inputs to one cotangent for each input.
fn with_gradient<B: Builder>(
    b: &mut B,
    value: &B::V,
    inputs: &[B::V],
    rule: impl FnOnce(&mut Graph, Value, &[Value]) -> Result<Vec<Value>>,
) -> Result<B::V> {
    with_captures(b, value, inputs, inputs, rule)
}

/// As [`with_gradient`], with a rule that reads `captures` instead of the inputs.
pub(crate) fn with_captures<B: Builder>(
    b: &mut B,
    value: &B::V,
    inputs: &[B::V],
    captures: &[B::V],
    rule: impl FnOnce(&mut Graph, Value, &[Value]) -> Result<Vec<Value>>,
) -> Result<B::V> {
    let mut types = vec![cotangent_type(&b.ty(value))];
    types.extend(captures.iter().map(|capture| b.ty(capture)));
    let mut graph = Graph::new();
    let parameters: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = rule(&mut graph, parameters[0], &parameters[1..])?;
    let region = Region::new(graph, types, 1, results.into());
    let values = std::slice::from_ref(value);
    Ok(b.emit_custom_grad(CustomRules::Reverse(Arc::new(region)), values, inputs, captures)?.remove(0))
}

impl Table {
    /// The coefficients for a dtype.
    fn of(&self, dtype: DType) -> &'static [f64] {
        if dtype == DType::F64 { self.double } else { self.single }
    }
}

/// The polynomial with these coefficients, by ascending power, at `x`.
pub(in crate::compose) fn polynomial<B: Builder>(b: &mut B, x: &B::V, coefficients: &[f64]) -> Result<B::V> {
    let (last, rest) = coefficients.split_last().expect("a polynomial has a coefficient");
    let Some((first, middle)) = rest.split_first() else { return b.constant_like(x, *last) };
    let mut sum = b.multiply(x, *last)?;
    for coefficient in middle.iter().rev() {
        let next = b.add(sum, *coefficient)?;
        sum = b.multiply(next, x)?;
    }
    b.add(sum, *first)
}

/// What the functions here need from a builder besides its operations.
trait SpecialBuilder: Builder + Sized {
    /// A constant in the dtype of a value.
    fn constant_like(&mut self, x: &Self::V, number: f64) -> Result<Self::V>;

    /// `1 / x`. It is not to be multiplied: a graph makes `y / x` of `y * (1 / x)`, which an eager call rounds
    /// otherwise.
    fn inverse(&mut self, x: &Self::V) -> Result<Self::V>;

    /// `1 / x^2`, written so that it may be multiplied.
    fn inverse_square(&mut self, x: &Self::V) -> Result<Self::V>;

    /// `x` where `mask` is true, and elsewhere a number at which the function has finite derivatives.
    fn only(&mut self, mask: &Self::V, x: &Self::V, number: f64) -> Result<Self::V>;
}

impl<B: Builder> SpecialBuilder for B {
    fn constant_like(&mut self, x: &B::V, number: f64) -> Result<B::V> {
        let dtype = self.ty(x).dtype;
        crate::builder::BuildCreate::constant(self, dtype, number)
    }

    fn inverse(&mut self, x: &B::V) -> Result<B::V> {
        self.divide(1, x)
    }

    fn inverse_square(&mut self, x: &B::V) -> Result<B::V> {
        let square = self.multiply(x, x)?;
        self.divide(-1, square).and_then(|opposite| self.negate(opposite))
    }

    fn only(&mut self, mask: &B::V, x: &B::V, number: f64) -> Result<B::V> {
        self.select(mask, x, number)
    }
}
