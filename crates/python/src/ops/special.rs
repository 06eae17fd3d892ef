//! Special functions of real numbers.

use defn_core::Tensor;
use defn_core::builder::{Arg, BuildSpecial};
use pyo3::prelude::*;

use super::{functions, shared};
use crate::error::Fallible;
use crate::tensor::PyTensor;

defn_core::special_functions!(shared);

functions! {
    betainc(a: Arg<Tensor>, b: Arg<Tensor>, x: Arg<Tensor>) => |ops| ops.betainc(a, b, x);
    betaln(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.betaln(a, b);
    gammainc(a: Arg<Tensor>, x: Arg<Tensor>) => |ops| ops.gammainc(a, x);
    gammaincc(a: Arg<Tensor>, x: Arg<Tensor>) => |ops| ops.gammaincc(a, x);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    add_declared(module)
}
