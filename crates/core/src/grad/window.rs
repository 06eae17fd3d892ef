//! What `g` contributes to what a window slid over.

use super::{Site, Vjp};
use crate::error::Result;
use crate::graph::Value;
use crate::op::{ConvOp, Window, WindowOp, WindowScatterOp};

/// Sums spread `g` over their windows; extremes give it to one element.
pub(super) fn window(site: &mut Site<'_>, op: WindowOp, window: &Window, g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, op, window, g);
    todo!()
}

/// The source gets what was scattered.
pub(super) fn scatter(site: &mut Site<'_>, op: WindowScatterOp, window: &Window, g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, op, window, g);
    todo!()
}

/// Input and kernel.
pub(super) fn conv(site: &mut Site<'_>, op: &ConvOp, g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, op, g);
    todo!()
}
