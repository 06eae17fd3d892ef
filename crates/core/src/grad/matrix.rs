//! Gradient rules of triangular systems and of factorizations.
//!
//! The rules follow Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation", 2008; Murray, "Differentiation of the Cholesky decomposition", 2016; Townsend,
//! "Differentiating the singular value decomposition", 2016; and Walter & Lehmann, "Algorithmic
//! differentiation of linear algebra functions", 2010, for QR. There the cotangent `G` of a complex `z` means
//! `dL = real(conj(G) dz)`; here there is no conjugate, so that each rule conjugates its incoming and
//! outgoing cotangents.

use super::{Site, Vjp};
use crate::builder::{
    BuildCreate, BuildElementwise, BuildIndex, BuildMatrix, BuildReduce, BuildShape, Builder,
};
use crate::compose::matrix::batch::{
    adjoint, conjugated, constant_like, product, real_part, slice_columns, transposed,
};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::{Block, CompositeBlock, Op, TieBreak, Transform};
use crate::shape::{Axes, AxisRef};

/// The cotangent of an output in the convention of the literature.
fn incoming(site: &mut Site<'_>, g: &[Option<Value>], output: usize) -> Result<Option<Value>> {
    g[output].map(|g| conjugated(site.graph, &g)).transpose()
}

/// The cotangent of the only input, in our convention.
fn outgoing(site: &mut Site<'_>, contribution: Option<Value>) -> Result<Vjp> {
    let contribution = contribution.map(|contribution| conjugated(site.graph, &contribution)).transpose()?;
    Ok(Vjp::flows([contribution]))
}

/// The sum of optional terms.
pub(crate) fn sum(
    graph: &mut Graph,
    terms: impl IntoIterator<Item = Option<Value>>,
) -> Result<Option<Value>> {
    let mut total: Option<Value> = None;
    for term in terms.into_iter().flatten() {
        total = Some(match total {
            Some(before) => graph.add(before, term)?,
            None => term,
        });
    }
    Ok(total)
}

/// The numbers of rows and columns of the matrices in the last two axes.
pub(crate) fn sides(graph: &Graph, x: Value) -> (usize, usize) {
    let sizes = graph.ty(x).shape.sizes();
    (sizes[sizes.len() - 2], sizes[sizes.len() - 1])
}

/// The lower triangle with its diagonal halved.
pub(crate) fn lower_half(graph: &mut Graph, x: Value) -> Result<Value> {
    let (whole, below) = (graph.tril(x, 0)?, graph.tril(x, -1)?);
    let twice = graph.add(whole, below)?;
    graph.multiply(twice, 0.5)
}

/// `t(a) x = b`: `b` gets the solution of the transposed system. `t(a)` gets minus its product with `x`,
/// restricted to the triangle that was read. With `a` on the right it is the mirror image.
pub(super) fn triangular_solve(
    site: &mut Site<'_>,
    lower: bool,
    left_side: bool,
    transform: Transform,
    g: Value,
) -> Result<Vjp> {
    let (a, x) = (site.input(0)?, site.output(0)?);
    let graph = &mut *site.graph;
    let vector = graph.ty(x).shape.rank() < graph.ty(a).shape.rank();
    let transposed_system = match transform {
        Transform::None => Transform::Transpose,
        Transform::Transpose => Transform::None,
        Transform::Conjugate => Transform::Adjoint,
        Transform::Adjoint => Transform::Conjugate,
    };
    let to_b = graph.triangular_solve(a, g, lower, left_side, transposed_system)?;
    let to_a = if site.needed[0] {
        // A vector is a column where `a` is on the left, and a row where `a` is on the right.
        let matrix = |graph: &mut Graph, value: Value| {
            if vector { graph.new_axis(value, if left_side { -1 } else { -2 }, None) } else { Ok(value) }
        };
        let (contribution, x) = (matrix(graph, to_b)?, matrix(graph, x)?);
        let (left, right) = if left_side {
            (contribution, transposed(graph, &x)?)
        } else {
            (transposed(graph, &x)?, contribution)
        };
        let contribution = product(graph, &left, &right)?;
        let contribution = graph.negate(contribution)?;
        let contribution = match transform {
            Transform::None => contribution,
            Transform::Transpose => transposed(graph, &contribution)?,
            Transform::Conjugate => conjugated(graph, &contribution)?,
            Transform::Adjoint => adjoint(graph, &contribution)?,
        };
        Some(if lower { graph.tril(contribution, 0)? } else { graph.triu(contribution, 0)? })
    } else {
        None
    };
    Ok(Vjp::flows([to_a, Some(to_b)]))
}

/// `a = l l^H`: `l^-H phi(l^H g) l^-1`, where phi keeps the lower triangle and halves the diagonal. Not
/// symmetrised.
pub(super) fn cholesky(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let Some(g) = incoming(site, g, 0)? else { return Ok(Vjp::Zero) };
    let l = site.output(0)?;
    let graph = &mut *site.graph;
    let turned = adjoint(graph, &l)?;
    let inner = product(graph, &turned, &g)?;
    let inner = lower_half(graph, inner)?;
    let left = graph.triangular_solve(l, inner, true, true, Transform::Adjoint)?;
    let contribution = graph.triangular_solve(l, left, true, false, Transform::None)?;
    outgoing(site, Some(contribution))
}

/// `a x = b`: `b` gets the solution `s` of the system with the transpose, and `a` gets `-s x^T`.
pub(super) fn solve(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let Some(g) = g[0] else { return Ok(Vjp::Zero) };
    let (a, x) = (site.input(0)?, site.output(0)?);
    let graph = &mut *site.graph;
    let vector = graph.ty(x).shape.rank() < graph.ty(a).shape.rank();
    let turned = transposed(graph, &a)?;
    let to_b = graph.solve(turned, g)?;
    let to_a = if site.needed[0] {
        let column = |graph: &mut Graph, value: Value| {
            if vector { graph.new_axis(value, -1, None) } else { Ok(value) }
        };
        let (contribution, x) = (column(graph, to_b)?, column(graph, x)?);
        let x = transposed(graph, &x)?;
        let contribution = product(graph, &contribution, &x)?;
        Some(graph.negate(contribution)?)
    } else {
        None
    };
    Ok(Vjp::flows([to_a, Some(to_b)]))
}

/// `a = p l u` of square matrices: `p l^-H (tril(l^H gl, -1) + triu(gu u^H)) u^-H`.
pub(super) fn lu(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let (to_l, to_u) = (incoming(site, g, 1)?, incoming(site, g, 2)?);
    let (p, l, u) = (site.output(0)?, site.output(1)?, site.output(2)?);
    let graph = &mut *site.graph;
    let below = match to_l {
        Some(g) => {
            let turned = adjoint(graph, &l)?;
            let inner = product(graph, &turned, &g)?;
            Some(graph.tril(inner, -1)?)
        }
        None => None,
    };
    let above = match to_u {
        Some(g) => {
            let turned = adjoint(graph, &u)?;
            let inner = product(graph, &g, &turned)?;
            Some(graph.triu(inner, 0)?)
        }
        None => None,
    };
    let Some(inner) = sum(graph, [below, above])? else { return Ok(Vjp::Zero) };
    let left = graph.triangular_solve(l, inner, true, true, Transform::Adjoint)?;
    let middle = graph.triangular_solve(u, left, false, false, Transform::Adjoint)?;
    let contribution = product(graph, &p, &middle)?;
    outgoing(site, Some(contribution))
}

/// `a = q r`. With `m = r gr^H - gq^H q`, made Hermitian from its lower triangle, it is `(gq + q m) r^-H` for
/// the first square of `r`. The columns of `r` beyond that square are `q^H` times those of `a`. The columns
/// of a complete `q` beyond the width of `a` are determined only up to a rotation, so that only the space
/// they span matters.
pub(super) fn qr(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let (to_q, to_r) = (incoming(site, g, 0)?, incoming(site, g, 1)?);
    let (q, r) = (site.output(0)?, site.output(1)?);
    let graph = &mut *site.graph;
    let (m, width) = sides(graph, q);
    let (_, n) = sides(graph, r);
    let k = m.min(n);
    let mut first = to_q;
    let mut inner = q;
    if width > k {
        inner = slice_columns(graph, q, 0, k)?;
        if let Some(g) = to_q {
            // The cotangent of the columns beyond the first `k` rotates the space of the first ones.
            let (outer, beyond) =
                (slice_columns(graph, q, k, width - k)?, slice_columns(graph, g, k, width - k)?);
            let turned = adjoint(graph, &beyond)?;
            let contribution = product(graph, &turned, &inner)?;
            let contribution = product(graph, &outer, &contribution)?;
            let own = slice_columns(graph, g, 0, k)?;
            first = Some(graph.subtract(own, contribution)?);
        }
    }
    let rows = |graph: &mut Graph, x: Value| graph.slice_along_axis(x, 0, k as i64, -2, 1);
    let (r, to_r) = (rows(graph, r)?, to_r.map(|g| rows(graph, g)).transpose()?);
    let (triangle, mut to_triangle) = (slice_columns(graph, r, 0, k)?, to_r);
    let mut beyond = None;
    if let Some(g) = to_r
        && n > k
    {
        to_triangle = Some(slice_columns(graph, g, 0, k)?);
        let g = slice_columns(graph, g, k, n - k)?;
        let rest = slice_columns(graph, r, k, n - k)?;
        beyond = Some(product(graph, &inner, &g)?);
        // The columns beyond are q y, so that q gets y's share. The columns of `r` get their own q^H a.
        let turned = adjoint(graph, &g)?;
        let columns = product(graph, &inner, &rest)?;
        let contribution = product(graph, &columns, &turned)?;
        first = sum(graph, [first, Some(contribution)])?;
    }
    let from_r = match to_triangle {
        Some(g) => {
            let turned = adjoint(graph, &g)?;
            Some(product(graph, &triangle, &turned)?)
        }
        None => None,
    };
    let from_q = match first {
        Some(g) => {
            let turned = adjoint(graph, &g)?;
            let contribution = product(graph, &turned, &inner)?;
            Some(graph.negate(contribution)?)
        }
        None => None,
    };
    let Some(mixed) = sum(graph, [from_r, from_q])? else { return Ok(Vjp::Zero) };
    let hermitian = from_lower(graph, mixed)?;
    let contribution = product(graph, &inner, &hermitian)?;
    let contribution = sum(graph, [first, Some(contribution)])?.expect("one of them is there");
    let contribution = graph.triangular_solve(triangle, contribution, false, false, Transform::Adjoint)?;
    let contribution = if n > k {
        let rest = match beyond {
            Some(rest) => rest,
            None => {
                let whole = site.input_ty(0);
                let mut sizes = whole.shape.without_names();
                let last = sizes.last_axis().expect("matrices have axes");
                sizes[last] = n - k;
                let dtype = site.graph.ty(contribution).dtype;
                site.graph.full(sizes, dtype, 0)?
            }
        };
        site.graph.concatenate(&[contribution, rest], -1)?
    } else {
        contribution
    };
    outgoing(site, Some(contribution))
}

/// The Hermitian matrix with the lower triangle of `x`; only the real part of the diagonal is kept.
fn from_lower(graph: &mut Graph, x: Value) -> Result<Value> {
    let half = lower_half(graph, x)?;
    let turned = adjoint(graph, &half)?;
    graph.add(half, turned)
}

/// `1 / (s_j - s_i)` off the diagonal, and 0 on it.
pub(crate) fn gaps(graph: &mut Graph, s: Value) -> Result<Value> {
    let (row, column) = (graph.new_axis(s, -2, None)?, graph.new_axis(s, -1, None)?);
    let difference = graph.subtract(row, column)?;
    let ty = graph.ty(difference).clone();
    let eye = graph.eye(ty.shape.clone(), DType::Bool)?;
    let one = constant_like(graph, &difference, 1.0)?;
    let one = graph.broadcast(one, ty.shape, Axes::List(Vec::new()))?;
    let difference = graph.select(eye, one, difference)?;
    let inverse = graph.divide(1, difference)?;
    let zero = constant_like(graph, &inverse, 0.0)?;
    graph.select(eye, zero, inverse)
}

/// `x` with its columns scaled by the elements of `s`.
pub(crate) fn columns_times(graph: &mut Graph, x: Value, s: Value) -> Result<Value> {
    let s = graph.new_axis(s, -2, None)?;
    graph.multiply(x, s)
}

/// `a = v diag(w) v^H`: `v (diag(gw) + f * (v^H gv)) v^H` with `f = 1 / (w_j - w_i)`, symmetrised. Vectors of
/// equal values have no gradient.
pub(super) fn eigh(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let (to_w, to_v) = (incoming(site, g, 0)?, incoming(site, g, 1)?);
    let (w, v) = (site.output(0)?, site.output(1)?);
    let graph = &mut *site.graph;
    let turned = adjoint(graph, &v)?;
    let from_w = match to_w {
        Some(g) => {
            let g = real_part(graph, &g)?;
            let scaled = columns_times(graph, v, g)?;
            Some(product(graph, &scaled, &turned)?)
        }
        None => None,
    };
    let from_v = match to_v {
        Some(g) => {
            let w = real_part(graph, &w)?;
            let gaps = gaps(graph, w)?;
            let inner = product(graph, &turned, &g)?;
            let inner = graph.multiply(inner, gaps)?;
            let left = product(graph, &v, &inner)?;
            Some(product(graph, &left, &turned)?)
        }
        None => None,
    };
    let Some(contribution) = sum(graph, [from_w, from_v])? else { return Ok(Vjp::Zero) };
    let mirrored = adjoint(graph, &contribution)?;
    let twice = graph.add(contribution, mirrored)?;
    let contribution = graph.multiply(twice, 0.5)?;
    outgoing(site, Some(contribution))
}

/// `a = v diag(w) v^-1`: `v^-H (diag(gw) + (v^H gv - v^H v diag(real(diag(v^H gv)))) / conj(e)) v^H`, where `e` has the
/// differences `w_j - w_i` and no diagonal. Vectors are normalized to norm 1; the function must not depend on their
/// phases. Equal values have no gradient.
pub(super) fn eig(site: &mut Site<'_>, vectors: bool, g: &[Option<Value>]) -> Result<Vjp> {
    let to_w = incoming(site, g, 0)?;
    let to_v = if vectors { incoming(site, g, 1)? } else { None };
    if to_w.is_none() && to_v.is_none() {
        return Ok(Vjp::Zero);
    }
    let (w, v) = if vectors {
        (site.output(0)?, site.output(1)?)
    } else {
        let a = site.input(0)?;
        site.graph.eig(a)?
    };
    let to_w = match to_w {
        Some(g) if !vectors => {
            let own = site.output(0)?;
            Some(in_order_of(site.graph, g, own, w)?)
        }
        given => given,
    };
    let is_real = !site.input_ty(0).dtype.is_complex();
    let graph = &mut *site.graph;
    let turned = adjoint(graph, &v)?;
    let eye = {
        let shape = graph.ty(v).shape.clone();
        graph.eye(shape, DType::Bool)?
    };
    let from_w = match to_w {
        Some(g) => {
            let zero = constant_like(graph, &g, 0.0)?;
            let row = graph.new_axis(g, -2, None)?;
            let shape = graph.ty(v).shape.clone();
            let row = graph.broadcast(row, shape, Axes::All)?;
            Some(graph.select(eye, row, zero)?)
        }
        None => None,
    };
    let from_v = match to_v {
        Some(g) => {
            let inner = product(graph, &turned, &g)?;
            let along = graph.take_diagonal(inner, 0)?;
            let along = graph.real(along)?;
            let own = product(graph, &turned, &v)?;
            let own = columns_times(graph, own, along)?;
            let inner = graph.subtract(inner, own)?;
            let conjugates = conjugated(graph, &w)?;
            let gaps = gaps(graph, conjugates)?;
            Some(graph.multiply(inner, gaps)?)
        }
        None => None,
    };
    let Some(inner) = sum(graph, [from_w, from_v])? else { return Ok(Vjp::Zero) };
    let inner = product(graph, &inner, &turned)?;
    let contribution = graph.solve(turned, inner)?;
    let contribution = if is_real { graph.real(contribution)? } else { contribution };
    outgoing(site, Some(contribution))
}

/// The cotangents of eigenvalues `own`, each at the position of the nearest of the eigenvalues `w` of the same matrix:
/// values alone are computed in another way, and in another order.
pub(crate) fn in_order_of(graph: &mut Graph, g: Value, own: Value, w: Value) -> Result<Value> {
    if graph.ty(w).size() == 0 {
        return Ok(g);
    }
    let (row, column) = (graph.new_axis(own, -2, None)?, graph.new_axis(w, -1, None)?);
    let difference = graph.subtract(row, column)?;
    let distance = graph.abs(difference)?;
    let nearest = graph.argmin(distance, Some(AxisRef::Index(-1)), false, TieBreak::Low, DType::S32)?;
    graph.take_along_axis(g, nearest, -1)
}

/// A function of matrices: its derivative at the transposed matrix, in the direction of the cotangent.
pub(super) fn function(site: &mut Site<'_>, function: CompositeBlock, g: &[Option<Value>]) -> Result<Vjp> {
    let Some(g) = g[0] else { return Ok(Vjp::Zero) };
    let a = site.input(0)?;
    let is_real = !site.input_ty(0).dtype.is_complex();
    let graph = &mut *site.graph;
    let turned = transposed(graph, &a)?;
    let contribution = in_direction(graph, function, turned, g)?;
    let contribution = if is_real { real_part(graph, &contribution)? } else { contribution };
    Ok(Vjp::flows([Some(contribution)]))
}

/// The derivative of a function `f` of matrices at `a` in a direction `d`: the upper right block of
/// `f([[a, d], [0, a]])` (R. Mathias, "A chain rule for matrix functions and applications", SIAM J. Matrix Anal. Appl. 17,
/// 1996).
pub(crate) fn in_direction(
    graph: &mut Graph,
    function: CompositeBlock,
    a: Value,
    direction: Value,
) -> Result<Value> {
    let (n, _) = sides(graph, a);
    let dtype = graph.ty(direction).dtype;
    let a = graph.as_type(a, dtype)?;
    let zeros = graph.zeros_like(a)?;
    let above = graph.concatenate(&[a, direction], -1)?;
    let below = graph.concatenate(&[zeros, a], -1)?;
    let whole = graph.concatenate(&[above, below], -2)?;
    let result = graph.emit_one(Op::Block(Block::Composite(function)), &[whole])?;
    let rows = graph.slice_along_axis(result, 0, n as i64, -2, 1)?;
    slice_columns(graph, rows, n, n)
}

/// `a = u diag(s) v^H`. Vectors of equal values have no gradient. With the cotangent of the values alone nothing is
/// divided by differences of values. For complex matrices the function must not depend on the phases of the vectors
/// (Wan & Zhang, "Automatic differentiation for complex valued SVD", 2019).
pub(super) fn svd(site: &mut Site<'_>, g: &[Option<Value>]) -> Result<Vjp> {
    let (to_u, to_s, to_vh) = (incoming(site, g, 0)?, incoming(site, g, 1)?, incoming(site, g, 2)?);
    let (u, s, vh) = (site.output(0)?, site.output(1)?, site.output(2)?);
    let graph = &mut *site.graph;
    let v = adjoint(graph, &vh)?;
    let to_v = to_vh.map(|g| adjoint(graph, &g)).transpose()?;
    let k = graph.ty(s).shape.sizes().last().copied().unwrap_or(0);
    let (u, to_u) = first_vectors(graph, u, to_u, k)?;
    let (v, to_v) = first_vectors(graph, v, to_v, k)?;
    let vt = adjoint(graph, &v)?;
    let mut middle = Vec::new();
    let mut outside = Vec::new();
    if to_u.is_some() || to_v.is_some() {
        let squares = graph.multiply(s, s)?;
        let gaps = gaps(graph, squares)?;
        if let Some(g) = to_u {
            let difference = skew(graph, u, g)?;
            let inner = graph.multiply(difference, gaps)?;
            middle.push(Some(columns_times(graph, inner, s)?));
            if graph.ty(difference).dtype.is_complex() {
                middle.push(Some(phases(graph, difference, s)?));
            }
            if let Some(rest) = orthogonal_part(graph, u, g)? {
                let rest = divided_columns(graph, rest, s)?;
                outside.push(Some(product(graph, &rest, &vt)?));
            }
        }
        if let Some(g) = to_v {
            let difference = skew(graph, v, g)?;
            let inner = graph.multiply(difference, gaps)?;
            let column = graph.new_axis(s, -1, None)?;
            middle.push(Some(graph.multiply(inner, column)?));
            if let Some(rest) = orthogonal_part(graph, v, g)? {
                let rest = divided_columns(graph, rest, s)?;
                let rest = adjoint(graph, &rest)?;
                outside.push(Some(product(graph, &u, &rest)?));
            }
        }
    }
    let from_s = match to_s {
        Some(g) => {
            let scaled = columns_times(graph, u, g)?;
            Some(product(graph, &scaled, &vt)?)
        }
        None => None,
    };
    let from_vectors = match sum(graph, middle)? {
        Some(middle) => {
            let left = product(graph, &u, &middle)?;
            Some(product(graph, &left, &vt)?)
        }
        None => None,
    };
    let outside = sum(graph, outside)?;
    match sum(graph, [from_s, from_vectors, outside])? {
        Some(contribution) => outgoing(site, Some(contribution)),
        None => Ok(Vjp::Zero),
    }
}

/// The part of the cotangent that turns the phases of a left and a right vector against each other: the diagonal of the
/// difference over twice the values; 0 where a value is 0.
pub(crate) fn phases(graph: &mut Graph, difference: Value, s: Value) -> Result<Value> {
    let shape = graph.ty(difference).shape.clone();
    let eye = graph.eye(shape.clone(), DType::Bool)?;
    let nothing = graph.equal(s, 0)?;
    let one = constant_like(graph, &s, 1.0)?;
    let divisor = graph.select(nothing, one, s)?;
    let divisor = graph.multiply(divisor, 2)?;
    let quotients = divided_columns(graph, difference, divisor)?;
    let something = graph.not_equal(s, 0)?;
    let something = graph.new_axis(something, -2, None)?;
    let something = graph.broadcast(something, shape, Axes::All)?;
    let wanted = graph.logical_and(eye, something)?;
    let zero = constant_like(graph, &quotients, 0.0)?;
    graph.select(wanted, quotients, zero)
}

/// The first `k` vectors and their cotangent; the cotangent of the others rotates the space of the first.
fn first_vectors(
    graph: &mut Graph,
    vectors: Value,
    g: Option<Value>,
    k: usize,
) -> Result<(Value, Option<Value>)> {
    let (_, width) = sides(graph, vectors);
    if width == k {
        return Ok((vectors, g));
    }
    let first = slice_columns(graph, vectors, 0, k)?;
    let Some(g) = g else { return Ok((first, None)) };
    let (outer, beyond) =
        (slice_columns(graph, vectors, k, width - k)?, slice_columns(graph, g, k, width - k)?);
    let turned = adjoint(graph, &beyond)?;
    let contribution = product(graph, &turned, &first)?;
    let contribution = product(graph, &outer, &contribution)?;
    let own = slice_columns(graph, g, 0, k)?;
    Ok((first, Some(graph.subtract(own, contribution)?)))
}

/// `u^H g - g^H u`.
fn skew(graph: &mut Graph, vectors: Value, g: Value) -> Result<Value> {
    let turned = adjoint(graph, &vectors)?;
    let inner = product(graph, &turned, &g)?;
    let mirrored = adjoint(graph, &inner)?;
    graph.subtract(inner, mirrored)
}

/// The component of `g` outside the space of the vectors, if they do not span the whole space.
pub(crate) fn orthogonal_part(graph: &mut Graph, vectors: Value, g: Value) -> Result<Option<Value>> {
    let (m, k) = sides(graph, vectors);
    if m == k {
        return Ok(None);
    }
    let turned = adjoint(graph, &vectors)?;
    let inner = product(graph, &turned, &g)?;
    let inside = product(graph, &vectors, &inner)?;
    Ok(Some(graph.subtract(g, inside)?))
}

/// `x` with its columns divided by the elements of `s`.
pub(crate) fn divided_columns(graph: &mut Graph, x: Value, s: Value) -> Result<Value> {
    let s = graph.new_axis(s, -2, None)?;
    graph.divide(x, s)
}
