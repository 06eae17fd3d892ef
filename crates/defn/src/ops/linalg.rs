//! Products.

use defn_core as core;
use defn_core::builder::{Arg, BuildLinalg};
use defn_core::{Location, Result};

use super::{eager, pair};
use crate::expr::Operand;
use crate::{Expr, Tensor};

binary! {
    /// The last axis of `a` contracted with the last but one of `b`, or its only one; a scalar multiplies.
    fn dot;
    /// The matrix product, batched over leading axes, which broadcast.
    fn matmul;
    /// Every element of `a` times every element of `b`.
    fn outer;
}
