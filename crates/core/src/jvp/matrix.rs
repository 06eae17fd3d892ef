//! Tangents of triangular systems and of factorizations.
//!
//! The rules follow Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation", 2008; Murray, "Differentiation of the Cholesky decomposition", 2016; Townsend, "Differentiating the
//! singular value decomposition", 2016; and Walter & Lehmann, "Algorithmic differentiation of linear algebra functions",
//! 2010, for QR. `t` are the tangents of the operands, `da` and `db` those of operands `a` and `b`.

use smallvec::smallvec;

use super::Tangents;
use crate::builder::{BuildCreate, BuildElementwise, BuildMatrix, BuildReduce, BuildShape};
use crate::compose::matrix::batch::{adjoint, conjugated, product, real_part, slice_columns, transposed};
use crate::error::Result;
use crate::grad::Site;
use crate::grad::matrix::{
    columns_times, divided_columns, gaps, in_direction, in_order_of, lower_half, orthogonal_part, phases,
    sides,
};
use crate::graph::{Graph, Value};
use crate::op::{CompositeBlock, Transform};
use crate::shape::{Axes, AxisRef};

/// A right side that is a vector as a column, or as a row where the matrix is on the right.
fn as_matrix(graph: &mut Graph, x: Value, is_vector: bool, is_column: bool) -> Result<Value> {
    if is_vector { graph.new_axis(x, if is_column { -1 } else { -2 }, None) } else { Ok(x) }
}

/// `db - product`, for tangents that may be zero.
fn rest(graph: &mut Graph, db: Option<Value>, product: Option<Value>) -> Result<Option<Value>> {
    Ok(match (db, product) {
        (Some(db), Some(product)) => Some(graph.subtract(db, product)?),
        (Some(db), None) => Some(db),
        (None, Some(product)) => Some(graph.negate(product)?),
        (None, None) => None,
    })
}

/// `op(a) x = b`: the solution of the system with the right side `db - op(da) x`, where `da` has the triangle that is
/// read. With `a` on the right it is the mirror image.
pub(super) fn triangular_solve(
    site: &mut Site<'_>,
    lower: bool,
    left_side: bool,
    transform: Transform,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let (a, x) = (site.input(0)?, site.output(0)?);
    let graph = &mut *site.graph;
    let is_vector = graph.ty(x).shape.rank() < graph.ty(a).shape.rank();
    let change = match t[0] {
        Some(da) => {
            let da = if lower { graph.tril(da, 0)? } else { graph.triu(da, 0)? };
            let da = match transform {
                Transform::None => da,
                Transform::Transpose => transposed(graph, &da)?,
                Transform::Conjugate => conjugated(graph, &da)?,
                Transform::Adjoint => adjoint(graph, &da)?,
            };
            let matrix = as_matrix(graph, x, is_vector, left_side)?;
            let change =
                if left_side { product(graph, &da, &matrix)? } else { product(graph, &matrix, &da)? };
            let shape = graph.ty(x).shape.clone();
            Some(graph.reshape_to(change, shape)?)
        }
        None => None,
    };
    let Some(right) = rest(graph, t[1], change)? else { return Ok(None) };
    graph.triangular_solve(a, right, lower, left_side, transform).map(Some)
}

/// `a = l l^H`: `l phi(l^-1 da l^-H)`, where phi keeps the lower triangle and halves the diagonal.
pub(super) fn cholesky(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None]) };
    let l = site.output(0)?;
    let graph = &mut *site.graph;
    let left = graph.triangular_solve(l, da, true, true, Transform::None)?;
    let inner = graph.triangular_solve(l, left, true, false, Transform::Adjoint)?;
    let inner = lower_half(graph, inner)?;
    Ok(smallvec![Some(product(graph, &l, &inner)?)])
}

/// `a x = b`: the solution of the system with the right side `db - da x`.
pub(super) fn solve(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Tangents> {
    let (a, x) = (site.input(0)?, site.output(0)?);
    let graph = &mut *site.graph;
    let is_vector = graph.ty(x).shape.rank() < graph.ty(a).shape.rank();
    let change = match t[0] {
        Some(da) => {
            let matrix = as_matrix(graph, x, is_vector, true)?;
            let change = product(graph, &da, &matrix)?;
            let shape = graph.ty(x).shape.clone();
            Some(graph.reshape_to(change, shape)?)
        }
        None => None,
    };
    let Some(right) = rest(graph, t[1], change)? else { return Ok(smallvec![None]) };
    Ok(smallvec![Some(graph.solve(a, right)?)])
}

/// `a = p l u` of square matrices: with `x = l^-1 p^T da u^-1`, `l tril(x, -1)` and `triu(x) u`.
pub(super) fn lu(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None; 3]) };
    let (p, l, u) = (site.output(0)?, site.output(1)?, site.output(2)?);
    let graph = &mut *site.graph;
    let p = transposed(graph, &p)?;
    let x = product(graph, &p, &da)?;
    let x = graph.triangular_solve(l, x, true, true, Transform::None)?;
    let x = graph.triangular_solve(u, x, false, false, Transform::None)?;
    let (below, above) = (graph.tril(x, -1)?, graph.triu(x, 0)?);
    Ok(smallvec![None, Some(product(graph, &l, &below)?), Some(product(graph, &above, &u)?)])
}

/// `a = q r`. With `x = da r^-1`, for the first square of `r`, and the skew-Hermitian `z` that has the lower triangle of
/// `q^H x`, they are `x + q (z - q^H x)` and `(q^H x - z) r`. The columns of `r` beyond that square are `q^H` times those
/// of `a`. The columns of a complete `q` beyond the width of `a` turn with the space of the others, and not in their own.
pub(super) fn qr(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None; 2]) };
    let (q, r) = (site.output(0)?, site.output(1)?);
    let graph = &mut *site.graph;
    let (m, width) = sides(graph, q);
    let (_, n) = sides(graph, r);
    let k = m.min(n);
    let inner = slice_columns(graph, q, 0, k)?;
    let r = graph.slice_along_axis(r, 0, k as i64, -2, 1)?;
    let triangle = slice_columns(graph, r, 0, k)?;
    let first = slice_columns(graph, da, 0, k)?;
    let x = graph.triangular_solve(triangle, first, false, false, Transform::None)?;
    let turned = adjoint(graph, &inner)?;
    let w = product(graph, &turned, &x)?;
    let z = skew_from_lower(graph, w)?;
    let upper = graph.subtract(w, z)?;
    let change = product(graph, &inner, &upper)?;
    let mut dq = graph.subtract(x, change)?;
    let mut dr = product(graph, &upper, &triangle)?;
    if n > k {
        let (columns, own) = (slice_columns(graph, r, k, n - k)?, slice_columns(graph, da, k, n - k)?);
        let (own, change) = (product(graph, &turned, &own)?, product(graph, &z, &columns)?);
        let beyond = graph.subtract(own, change)?;
        dr = graph.concatenate(&[dr, beyond], -1)?;
    }
    if width > k {
        let outer = slice_columns(graph, q, k, width - k)?;
        let beyond = beyond(graph, inner, outer, dq)?;
        dq = graph.concatenate(&[dq, beyond], -1)?;
        let zeros = graph.slice_along_axis(dr, 0, 1, -2, 1)?;
        let zeros = graph.multiply(zeros, 0)?;
        let rows: Vec<Value> = std::iter::once(dr).chain(std::iter::repeat_n(zeros, width - k)).collect();
        dr = graph.concatenate(&rows, -2)?;
    }
    Ok(smallvec![Some(dq), Some(dr)])
}

/// The skew-Hermitian matrix with the lower triangle of `x`; only the imaginary part of the diagonal is kept.
fn skew_from_lower(graph: &mut Graph, x: Value) -> Result<Value> {
    let half = lower_half(graph, x)?;
    let turned = adjoint(graph, &half)?;
    graph.subtract(half, turned)
}

/// The tangents of the vectors `outer` that complete the vectors `first`: they stay orthogonal to these, and do not turn in
/// their own space.
fn beyond(graph: &mut Graph, first: Value, outer: Value, tangents: Value) -> Result<Value> {
    let turned = adjoint(graph, &tangents)?;
    let inner = product(graph, &turned, &outer)?;
    let change = product(graph, &first, &inner)?;
    graph.negate(change)
}

/// `a = v diag(w) v^H`: with `x = v^H da v` of the Hermitian part of `da`, the diagonal of `x`, and `v (f * x)` with
/// `f = 1 / (w_j - w_i)`. Vectors of equal values have no tangents.
pub(super) fn eigh(site: &mut Site<'_>, t: &[Option<Value>], varied: &[bool]) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None; 2]) };
    let (w, v) = (site.output(0)?, site.output(1)?);
    let graph = &mut *site.graph;
    let mirrored = adjoint(graph, &da)?;
    let twice = graph.add(da, mirrored)?;
    let hermitian = graph.multiply(twice, 0.5)?;
    let turned = adjoint(graph, &v)?;
    let x = product(graph, &turned, &hermitian)?;
    let x = product(graph, &x, &v)?;
    let dw = graph.take_diagonal(x, 0)?;
    let dv = if varied[1] {
        let w = real_part(graph, &w)?;
        let gaps = gaps(graph, w)?;
        let inner = graph.multiply(x, gaps)?;
        Some(product(graph, &v, &inner)?)
    } else {
        None
    };
    Ok(smallvec![Some(dw), dv])
}

/// `a = v diag(w) v^-1`: with `x = v^-1 da v`, the diagonal of `x`, and `v c`, where `c` has the elements
/// `x_ij / (w_j - w_i)` and the diagonal that keeps the norms of the vectors. Equal values have no tangents.
pub(super) fn eig(
    site: &mut Site<'_>,
    vectors: bool,
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None; site.outputs.len()]) };
    let (w, v) = if vectors {
        (site.output(0)?, site.output(1)?)
    } else {
        let a = site.input(0)?;
        site.graph.eig(a)?
    };
    let own = site.output(0)?;
    let graph = &mut *site.graph;
    let x = product(graph, &da, &v)?;
    let x = graph.solve(v, x)?;
    let dw = graph.take_diagonal(x, 0)?;
    if !vectors {
        return Ok(smallvec![Some(in_order_of(graph, dw, w, own)?)]);
    }
    let dv = if varied[1] {
        let gaps = gaps(graph, w)?;
        let inner = graph.multiply(x, gaps)?;
        let dv = product(graph, &v, &inner)?;
        // The part along each vector is removed.
        let conjugates = conjugated(graph, &v)?;
        let along = graph.multiply(conjugates, dv)?;
        let along = graph.sum(along, Axes::List(vec![AxisRef::Index(-2)]), false)?;
        let along = graph.real(along)?;
        let along = columns_times(graph, v, along)?;
        Some(graph.subtract(dv, along)?)
    } else {
        None
    };
    Ok(smallvec![Some(dw), dv])
}

/// A function of matrices.
pub(super) fn function(
    site: &mut Site<'_>,
    function: CompositeBlock,
    t: &[Option<Value>],
) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None]) };
    let a = site.input(0)?;
    Ok(smallvec![Some(in_direction(site.graph, function, a, da)?)])
}

/// `a = u diag(s) v^H`: with `x = u^H da v`, the diagonal of `x`, and `u (f * (x s + s x^H))`, `v (f * (s x + x^H s))` with
/// `f = 1 / (s_j^2 - s_i^2)`, and the parts of `da` outside of the space of the vectors. Vectors of equal values have no
/// tangents. For complex matrices the left vectors turn their phases, the right ones do not.
pub(super) fn svd(site: &mut Site<'_>, t: &[Option<Value>], varied: &[bool]) -> Result<Tangents> {
    let Some(da) = t[0] else { return Ok(smallvec![None; 3]) };
    let (u, s, vh) = (site.output(0)?, site.output(1)?, site.output(2)?);
    let graph = &mut *site.graph;
    let v = adjoint(graph, &vh)?;
    let k = graph.ty(s).shape.sizes().last().copied().unwrap_or(0);
    let (u1, v1) = (slice_columns(graph, u, 0, k)?, slice_columns(graph, v, 0, k)?);
    let image = product(graph, &da, &v1)?;
    let turned = adjoint(graph, &u1)?;
    let x = product(graph, &turned, &image)?;
    let ds = graph.take_diagonal(x, 0)?;
    if !varied[0] && !varied[2] {
        return Ok(smallvec![None, Some(ds), None]);
    }
    let squares = graph.multiply(s, s)?;
    let gaps = gaps(graph, squares)?;
    let mirrored = adjoint(graph, &x)?;
    let rows = graph.new_axis(s, -1, None)?;
    let du = if varied[0] {
        let (right, left) = (columns_times(graph, x, s)?, graph.multiply(mirrored, rows)?);
        let inner = graph.add(right, left)?;
        let mut inner = graph.multiply(inner, gaps)?;
        if graph.ty(x).dtype.is_complex() {
            let difference = graph.subtract(x, mirrored)?;
            let phases = phases(graph, difference, s)?;
            inner = graph.add(inner, phases)?;
        }
        Some(vectors(graph, u, (u1, s), inner, image)?)
    } else {
        None
    };
    let dvh = if varied[2] {
        let (left, right) = (graph.multiply(x, rows)?, columns_times(graph, mirrored, s)?);
        let inner = graph.add(left, right)?;
        let inner = graph.multiply(inner, gaps)?;
        let da = adjoint(graph, &da)?;
        let image = product(graph, &da, &u1)?;
        let dv = vectors(graph, v, (v1, s), inner, image)?;
        Some(adjoint(graph, &dv)?)
    } else {
        None
    };
    Ok(smallvec![du, Some(ds), dvh])
}

/// The tangents of all vectors: those of the `first` ones turn by `inner` in their own space, and by what `image` has
/// outside of it, over the values.
fn vectors(
    graph: &mut Graph,
    all: Value,
    (first, s): (Value, Value),
    inner: Value,
    image: Value,
) -> Result<Value> {
    let mut tangents = product(graph, &first, &inner)?;
    if let Some(outside) = orthogonal_part(graph, first, image)? {
        let outside = divided_columns(graph, outside, s)?;
        tangents = graph.add(tangents, outside)?;
    }
    let (_, width) = sides(graph, all);
    let (_, k) = sides(graph, first);
    if width == k {
        return Ok(tangents);
    }
    let outer = slice_columns(graph, all, k, width - k)?;
    let beyond = beyond(graph, first, outer, tangents)?;
    graph.concatenate(&[tangents, beyond], -1)
}
