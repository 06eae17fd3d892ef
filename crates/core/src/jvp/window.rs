//! Tangents of window ops. `t` are the tangents of the operands.

use crate::builder::{BuildCreate, Builder};
use crate::error::{ErrorKind, Result};
use crate::grad::{Site, window as reverse};
use crate::graph::Value;
use crate::op::{Op, Window, WindowOp, WindowScatterOp};

/// Sums of the tangents; for maxima and minima the tangent of one element.
pub(super) fn window(
    site: &mut Site<'_>,
    op: WindowOp,
    window: &Window,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    let search = match op {
        WindowOp::WindowSum => {
            let op = Op::Window { op, window: Box::new(window.clone()) };
            return site.graph.emit_one(op, &[t]).map(Some);
        }
        WindowOp::WindowProduct => {
            return Err(ErrorKind::NoGradient { op: op.name(), hint: reverse::NO_PRODUCT }.into());
        }
        WindowOp::WindowMax => WindowScatterOp::WindowScatterMax,
        WindowOp::WindowMin => WindowScatterOp::WindowScatterMin,
    };
    let (x, positions) = (site.input(0)?, site.output_ty(0).shape.without_names());
    let padding = reverse::least(search, site.input_ty(0).dtype);
    let padding = site.graph.constant(site.input_ty(0).dtype, padding)?;
    reverse::chosen(site, search, window, (x, padding), &positions, t).map(Some)
}

/// The tangents of the source, scattered as the source is, on those of the start.
pub(super) fn scatter(
    site: &mut Site<'_>,
    op: WindowScatterOp,
    window: &Window,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let tangents = super::all(site, t)?;
    let (x, padding) = (site.input(0)?, site.input(2)?);
    reverse::scattered(site, op, window, (x, padding), (tangents[1], tangents[2])).map(Some)
}
