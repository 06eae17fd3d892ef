//! Elementwise ops: the dtype in which operands are read, and the function computed from them.

pub(crate) mod cast;
mod complex;
pub(crate) mod simple;
pub(crate) mod vector;

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::op::{
    BinaryOp, BinaryTraits, ComparisonOp, ElementCost, LogicalOp, Op, Refused, UnaryOp, UnaryRule,
};
use defn_core::{DType, ErrorKind, Kind, Result, Scalar, TensorType};
use num_complex::Complex;

use super::{Element, Integer, Real, StridedOperand, TILE, TileLoader};
use super::{create, fill_tiles, with_compute, with_integer, with_real};
use crate::kernels::simd::{choose, each, each_pair, vectorized};
use crate::par::Par;
use crate::view::{View, ViewMut};
use vector::{Base, Lanes};

/// Elements of a chunk if each costs about a nanosecond or less.
const CHEAP: usize = 64 * TILE;

/// As [`CHEAP`], where all operands and the result have elements of `bytes` bytes: half a million one-byte elements are
/// done before another thread is awake.
fn cheap(bytes: usize) -> usize {
    if bytes == 1 { 8 * CHEAP } else { CHEAP }
}

/// The least elements of a chunk, for elements of at most `bytes` bytes.
fn grain(cost: ElementCost, bytes: usize) -> usize {
    match cost {
        ElementCost::Cheap => cheap(bytes),
        ElementCost::Costly => COSTLY,
    }
}

/// Elements of a chunk if each costs tens of nanoseconds.
const COSTLY: usize = 4 * TILE;

/// `op(x)`; the op determines the dtype of the computation.
pub(crate) fn unary(op: UnaryOp, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let from = x.ty().dtype;
    match op {
        UnaryOp::ABS if from.is_complex() => complex_parts(x, out, (par, CHEAP), vector::abs, vector::abs),
        UnaryOp::REAL if from.is_complex() => complex_parts(x, out, (par, CHEAP), |z| z.re, |z| z.re),
        UnaryOp::IMAG if from.is_complex() => complex_parts(x, out, (par, CHEAP), |z| z.im, |z| z.im),
        UnaryOp::REAL => as_type(x, out, par)?,
        UnaryOp::IMAG => create::constant(Scalar::zero(out.ty().dtype), out, par)?,
        UnaryOp::CONJUGATE if out.ty().dtype == DType::C128 => {
            map(x, DType::C128, out, (par, CHEAP), |x: &[Complex<f64>], out| each(x, out, |z| z.conj()));
        }
        UnaryOp::CONJUGATE => {
            map(x, DType::C64, out, (par, CHEAP), |x: &[Complex<f32>], out| each(x, out, |z| z.conj()));
        }
        UnaryOp::IS_NAN => with_compute!(from, C => {
            map(x, from, out, (par, CHEAP), |x: &[C], out| each(x, out, |x| u8::from(x.nan())));
        }),
        UnaryOp::IS_INFINITY => with_compute!(from, C => {
            map(x, from, out, (par, CHEAP), |x: &[C], out| each(x, out, |x| u8::from(x.infinite())));
        }),
        UnaryOp::Sign(_) | UnaryOp::Rounding(_) | UnaryOp::Function(_) | UnaryOp::Bits(_) => {
            let bytes = from.storage_bytes().max(out.ty().dtype.storage_bytes());
            same(op, x, out, (par, grain(op.traits().cost, bytes)));
        }
    }
    Ok(())
}

/// An operand of [`same_dtype_fast_path`].
pub(crate) enum TileOperand<'a> {
    /// Its elements, in order.
    Elements(&'a [u8]),
    /// One element for all positions.
    Same(Scalar),
}

/// Runs an op that [`same_dtype_fast_path`](defn_core::infer::alike) accepts and that has a result for all elements. The operands have
/// the same dtype, which is computed without conversion, and at most the elements of one tile.
///
/// # Panics
/// When it is another op, and when elements are not aligned.
pub(crate) fn same_dtype_fast_path(
    op: &Op,
    operands: &[TileOperand<'_>],
    dtype: DType,
    out: &mut [MaybeUninit<u8>],
) {
    fn of<C: Lanes>(op: &Op, operands: &[TileOperand<'_>], out: &mut [MaybeUninit<u8>]) {
        match (op, operands) {
            (Op::Unary(op), [x]) if op.rule() == UnaryRule::Predicate => {
                with_elements::<C>(x, out.len(), |x| match *op == UnaryOp::IS_NAN {
                    true => each(x, out, |x| u8::from(x.nan())),
                    false => each(x, out, |x| u8::from(x.infinite())),
                });
            }
            (Op::Unary(op), [x]) => {
                let out = room_for::<C>(out);
                with_elements::<C>(x, out.len(), |x| C::unary(*op, 8 * size_of::<C>() as u32, x, out));
            }
            (Op::Binary(op), [a, b]) => {
                let len = match op {
                    BinaryOp::Comparison(_) | BinaryOp::Logical(_) => out.len(),
                    BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) | BinaryOp::Complex => {
                        out.len() / size_of::<C>()
                    }
                };
                with_elements::<C>(a, len, |a| {
                    with_elements::<C>(b, len, |b| match op {
                        BinaryOp::Comparison(op) => C::compare(*op, a, b, out),
                        BinaryOp::Logical(op) => logical(*op, a, b, out),
                        BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) | BinaryOp::Complex => {
                            C::binary(*op, a, b, room_for::<C>(out));
                        }
                    });
                });
            }
            (op, _) => unreachable!("{op:?} is not computed in the type of its operands"),
        }
    }
    with_compute!(dtype, C => of::<C>(op, operands, out));
}

/// Bytes as memory for elements.
fn room_for<C: Element>(out: &mut [MaybeUninit<u8>]) -> &mut [MaybeUninit<C>] {
    assert!(out.as_ptr().cast::<C>().is_aligned());
    // SAFETY: the memory is aligned and large enough.
    unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len() / size_of::<C>()) }
}

/// A logical op on the truth values of two operands of the same dtype.
fn logical<C: Lanes>(op: LogicalOp, a: &[C], b: &[C], out: &mut [MaybeUninit<u8>]) {
    match op {
        LogicalOp::And => each_pair(a, b, out, |a, b| u8::from(a.truth() & b.truth())),
        LogicalOp::Or => each_pair(a, b, out, |a, b| u8::from(a.truth() | b.truth())),
        LogicalOp::Xor => each_pair(a, b, out, |a, b| u8::from(a.truth() ^ b.truth())),
    }
}

/// Calls `work` with `len` elements of an operand.
fn with_elements<C: Element>(operand: &TileOperand<'_>, len: usize, work: impl FnOnce(&[C])) {
    match operand {
        TileOperand::Elements(bytes) => {
            assert!(bytes.as_ptr().cast::<C>().is_aligned() && bytes.len() >= len * size_of::<C>());
            // SAFETY: there are that many elements, aligned, and all bit patterns are valid.
            work(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) });
        }
        TileOperand::Same(scalar) => with_repeated(*scalar, len, work),
    }
}

/// Calls `work` with `len` copies of an element, at most a tile. Not inlined: a function with a tile on its stack
/// probes the stack even if the tile is not used.
#[inline(never)]
fn with_repeated<C: Element>(scalar: Scalar, len: usize, work: impl FnOnce(&[C])) {
    let bytes = scalar.to_bytes();
    assert_eq!(bytes.len(), size_of::<C>(), "an element of {}", C::DTYPE);
    // SAFETY: the number of bytes is right, and all bit patterns are valid.
    let element = unsafe { bytes.as_ptr().cast::<C>().read_unaligned() };
    work(&[element; TILE][..len]);
}

/// `op(x)`, read and computed as the result's dtype.
fn same(op: UnaryOp, x: View<'_>, out: &mut ViewMut<'_>, par: (Par, usize)) {
    let to = out.ty().dtype;
    let bits = to.bits() as u32;
    with_compute!(to, C => map(x, to, out, par, |x: &[C], out| C::unary(op, bits, x, out)));
}

/// The logarithm to a base, read and computed as the result's dtype.
pub(crate) fn log_to(base: Base, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let to = out.ty().dtype;
    with_compute!(to, C => map(x, to, out, (par, COSTLY), |x: &[C], out| C::log_to(base, x, out)));
    Ok(())
}

/// A real function of complex numbers.
fn complex_parts(
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: (Par, usize),
    single: impl Fn(Complex<f32>) -> f32 + Sync,
    double: impl Fn(Complex<f64>) -> f64 + Sync,
) {
    if x.ty().dtype == DType::C128 {
        map(x, DType::C128, out, par, |x: &[Complex<f64>], out| each(x, out, &double));
    } else {
        map(x, DType::C64, out, par, |x: &[Complex<f32>], out| each(x, out, &single));
    }
}

/// `op(a, b)` with broadcasting.
///
/// # Errors
/// Integer division by zero, and negative exponents and shifts of integers, if `checked`. If not, a quotient by zero
/// has all bits set, and a remainder by zero is the dividend; a shift by a negative number counts as one by more bits
/// than there are, and a negative exponent is read as unsigned.
pub(crate) fn binary(
    op: BinaryOp,
    a: View<'_>,
    b: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
    checked: bool,
) -> Result<()> {
    let to = out.ty().dtype;
    // An empty result uses no element of an operand.
    let checked = checked && to.is_integer() && out.ty().size() > 0;
    let bytes = [a.ty(), b.ty(), out.ty()].map(|ty| ty.dtype.storage_bytes()).into_iter().max();
    let BinaryTraits { cost, refused, .. } = op.traits();
    let work = (par, grain(cost, bytes.expect("there are three")));
    match op {
        BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) => {
            if let Some(refused) = refused.filter(|_| checked) {
                check(op.name(), refused, b, par)?;
            }
            merged(op, a, b, out, work);
        }
        BinaryOp::Comparison(op) => compare(op, a, b, out, work),
        BinaryOp::Logical(LogicalOp::And) => truths(a, b, out, work, |a, b| a & b),
        BinaryOp::Logical(LogicalOp::Or) => truths(a, b, out, work, |a, b| a | b),
        BinaryOp::Logical(LogicalOp::Xor) => truths(a, b, out, work, |a, b| a ^ b),
        BinaryOp::Complex if to == DType::C128 => {
            let parts = ((a, DType::F64), (b, DType::F64));
            zip(parts.0, parts.1, out, (par, CHEAP), |a: &[f64], b: &[f64], out| {
                each_pair(a, b, out, Complex::new);
            });
        }
        BinaryOp::Complex => {
            let parts = ((a, DType::F32), (b, DType::F32));
            zip(parts.0, parts.1, out, (par, CHEAP), |a: &[f32], b: &[f32], out| {
                each_pair(a, b, out, Complex::new);
            });
        }
    }
    Ok(())
}

/// Returns the error of elements of the second operand for which the op has no result.
fn check(op: &'static str, refused: Refused, b: View<'_>, par: Par) -> Result<()> {
    let error = match refused {
        Refused::ZeroDivisor => has_zero(b).then_some(ErrorKind::DivisionByZero { op }),
        Refused::NegativeExponent => {
            first_negative(b, par).map(|value| ErrorKind::NegativeExponent { value })
        }
        Refused::NegativeShift => first_negative(b, par).map(|value| ErrorKind::NegativeShift { op, value }),
    };
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// `op(a, b)`, read and computed as the result's dtype.
fn merged(op: BinaryOp, a: View<'_>, b: View<'_>, out: &mut ViewMut<'_>, par: (Par, usize)) {
    let to = out.ty().dtype;
    with_compute!(to, C => {
        zip((a, to), (b, to), out, par, |a: &[C], b: &[C], out| C::binary(op, a, b, out));
    });
}

/// A logical op with 0 or 1 as operands and result.
fn truths(
    a: View<'_>,
    b: View<'_>,
    out: &mut ViewMut<'_>,
    (par, grain): (Par, usize),
    f: impl Fn(u8, u8) -> u8 + Sync,
) {
    if u8::stores(a.ty().dtype) && u8::stores(b.ty().dtype) {
        zip((a, DType::U8), (b, DType::U8), out, (par, grain), |a: &[u8], b: &[u8], out| {
            each_pair(a, b, out, |a, b| f(u8::from(a != 0), u8::from(b != 0)));
        });
        return;
    }
    let (a, b) = (StridedOperand::broadcast(a, sizes(out)), StridedOperand::broadcast(b, sizes(out)));
    fill_tiles(
        out,
        par,
        grain,
        || (TileLoader::<u8>::truth(&a), TileLoader::<u8>::truth(&b)),
        seek_both,
        |(a, b), out| each_pair(a.tile(), b.tile(), out, &f),
    );
}

/// Whether any element is zero.
fn has_zero(x: View<'_>) -> bool {
    let source = StridedOperand::broadcast(x, x.ty().shape.sizes());
    let mut loader = TileLoader::<u8>::truth(&source);
    any_tile(&mut loader, x.ty().size(), |tile| tile.contains(&0))
}

/// The first negative element of an integer operand.
fn first_negative(x: View<'_>, par: Par) -> Option<i128> {
    let dtype = x.ty().dtype;
    if dtype.kind() != Kind::Signed {
        return None;
    }
    let found = if x.is_aliased() {
        // The operand is not overwritten yet, but in-place reads are not allowed either.
        true
    } else {
        with_integer!(dtype, I => {
            let elements = x.slice::<I>();
            let found = AtomicBool::new(false);
            par.for_chunks(elements.len(), CHEAP, |chunk| {
                if any_negative(&elements[chunk]) {
                    found.store(true, Ordering::Relaxed);
                }
            });
            found.into_inner()
        })
    };
    if !found {
        return None;
    }
    // The search for the position is only worth it then.
    let source = StridedOperand::broadcast(x, x.ty().shape.sizes());
    let mut loader = TileLoader::<i64>::new(&source, DType::S64);
    let mut first = None;
    any_tile(&mut loader, x.ty().size(), |tile| {
        first = tile.iter().find(|&&x| x < 0).copied();
        first.is_some()
    });
    first.map(i128::from)
}

vectorized! {
    /// Whether any element is negative.
    fn any_negative[I: Integer] of [I] (x: &[I]) -> bool {
        x.chunks(TILE).any(|tile| tile.iter().fold(I::ZERO, |bits, &x| bits.either(x)) < I::ZERO)
    }
}

/// Whether any tile of an operand of `size` elements satisfies `found`.
fn any_tile<C: Element>(
    loader: &mut TileLoader<'_, C>,
    size: usize,
    mut found: impl FnMut(&[C]) -> bool,
) -> bool {
    (0..size).step_by(TILE).any(|start| {
        loader.seek(start, TILE.min(size - start));
        found(loader.tile())
    })
}

/// Compares by mathematical value; integers with floats are compared as floats.
fn compare(op: ComparisonOp, a: View<'_>, b: View<'_>, out: &mut ViewMut<'_>, par: (Par, usize)) {
    let (left, right) = (a.ty().dtype, b.ty().dtype);
    if let Some(both) = left.compared(right) {
        with_compute!(both, C => {
            zip((a, both), (b, both), out, par, |a: &[C], b: &[C], out| C::compare(op, a, b, out));
        });
    } else if left == DType::U64 {
        zip((a, DType::U64), (b, DType::S64), out, par, |a: &[u64], b: &[i64], out| {
            vector::compare(op, a, b, out, i128::from, i128::from)
        });
    } else {
        zip((a, DType::S64), (b, DType::U64), out, par, |a: &[i64], b: &[u64], out| {
            vector::compare(op, a, b, out, i128::from, i128::from)
        });
    }
}

/// Converts every element to the result's dtype; for bool, to whether it is not zero.
pub(crate) fn as_type(x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let to = out.ty().dtype;
    if to.is_bool() && x.ty().dtype != to {
        truths(x, x, out, (par, CHEAP), |x, _| x);
        return Ok(());
    }
    if x.is_aliased() || x.ty().dtype == to {
        with_compute!(to, C => map(x, to, out, (par, CHEAP), |x: &[C], out| each(x, out, |x| x)));
        return Ok(());
    }
    // The loader converts, without a tile in between.
    let source = StridedOperand::broadcast(x, sizes(out));
    with_compute!(to, C => fill_tiles(
        out,
        par,
        CHEAP,
        || 0,
        |first, start, _| *first = start,
        |&first, out: &mut [MaybeUninit<C>]| source.read(to, first, out),
    ));
    Ok(())
}

/// `a` where `pred` is true, else `b`; all broadcast to the result.
pub(crate) fn select(
    pred: View<'_>,
    a: View<'_>,
    b: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) -> Result<()> {
    let to = out.ty().dtype;
    let pred = StridedOperand::broadcast(pred, sizes(out));
    let (a, b) = (StridedOperand::broadcast(a, sizes(out)), StridedOperand::broadcast(b, sizes(out)));
    with_compute!(to, C => fill_tiles(
        out,
        par,
        CHEAP,
        || (TileLoader::<u8>::truth(&pred), TileLoader::<C>::new(&a, to), TileLoader::<C>::new(&b, to)),
        |(pred, a, b), start, len| {
            pred.seek(start, len);
            a.seek(start, len);
            b.seek(start, len);
        },
        |(pred, a, b), out| choose(pred.tile(), a.tile(), b.tile(), out),
    ));
    Ok(())
}

/// `x` clamped to `lo..=hi`; NaN stays, and `hi` wins over `lo`.
pub(crate) fn clip(x: View<'_>, lo: View<'_>, hi: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    fn clipped<C: Real>(x: View<'_>, lo: View<'_>, hi: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        let to = out.ty().dtype;
        let x = StridedOperand::broadcast(x, sizes(out));
        let (lo, hi) = (StridedOperand::broadcast(lo, sizes(out)), StridedOperand::broadcast(hi, sizes(out)));
        fill_tiles(
            out,
            par,
            CHEAP,
            || (TileLoader::<C>::new(&x, to), TileLoader::<C>::new(&lo, to), TileLoader::<C>::new(&hi, to)),
            |(x, lo, hi), start, len| {
                x.seek(start, len);
                lo.seek(start, len);
                hi.seek(start, len);
            },
            |(x, lo, hi), out| {
                let (lo, hi) = (lo.tile()[0], hi.tile()[0]);
                each(x.tile(), out, |x| x.greater(lo).lesser(hi));
            },
        );
    }
    with_real!(out.ty().dtype, C => clipped::<C>(x, lo, hi, out, par));
    Ok(())
}

/// Sizes of the result.
fn sizes<'a>(out: &ViewMut<'a>) -> &'a [usize] {
    let ty: &'a TensorType = out.ty();
    ty.shape.sizes()
}

/// All elements of an operand, if it needs no broadcasting and no conversion, is not overwritten, and fits one tile:
/// then no walk is needed.
fn in_one_tile<'a, X: Element>(x: View<'a>, dtype: DType, out: &ViewMut<'_>) -> Option<&'a [X]> {
    let is_borrowable = X::stores(x.ty().dtype) && X::stores(dtype) && !x.is_aliased();
    let is_one = is_borrowable && x.ty().size() <= TILE && x.ty().shape.sizes() == sizes(out);
    is_one.then(|| x.slice())
}

/// Fills the result with `compute` of the tiles of `x`, read as elements of `dtype`.
fn map<X: Element, C: Element>(
    x: View<'_>,
    dtype: DType,
    out: &mut ViewMut<'_>,
    (par, grain): (Par, usize),
    compute: impl Fn(&[X], &mut [MaybeUninit<C>]) + Sync,
) {
    if C::stores(out.ty().dtype)
        && let Some(x) = in_one_tile::<X>(x, dtype, out)
    {
        compute(x, out.slice());
        return;
    }
    let x = StridedOperand::broadcast(x, sizes(out));
    if size_of::<C>() == 1
        && C::stores(out.ty().dtype)
        && let Some(x) = x.bytes::<X>(dtype, out.ty().size())
    {
        out.fill(par, grain, |start, out| compute(&x[start..][..out.len()], out));
        return;
    }
    fill_tiles(
        out,
        par,
        grain,
        || TileLoader::<X>::new(&x, dtype),
        |x, start, len| x.seek(start, len),
        |x, out| compute(x.tile(), out),
    );
}

/// Fills the result with `compute` of the tiles of `a` and `b`, each read as elements of its dtype.
fn zip<A: Element, B: Element, C: Element>(
    (a, a_dtype): (View<'_>, DType),
    (b, b_dtype): (View<'_>, DType),
    out: &mut ViewMut<'_>,
    (par, grain): (Par, usize),
    compute: impl Fn(&[A], &[B], &mut [MaybeUninit<C>]) + Sync,
) {
    if C::stores(out.ty().dtype)
        && let (Some(a), Some(b)) = (in_one_tile::<A>(a, a_dtype, out), in_one_tile::<B>(b, b_dtype, out))
    {
        compute(a, b, out.slice());
        return;
    }
    let (a, b) = (StridedOperand::broadcast(a, sizes(out)), StridedOperand::broadcast(b, sizes(out)));
    let size = out.ty().size();
    if size_of::<C>() == 1
        && C::stores(out.ty().dtype)
        && let (Some(a), Some(b)) = (a.bytes::<A>(a_dtype, size), b.bytes::<B>(b_dtype, size))
    {
        out.fill(par, grain, |start, out| {
            let len = out.len();
            compute(&a[start..][..len], &b[start..][..len], out);
        });
        return;
    }
    if size_of::<C>() == 1
        && C::stores(out.ty().dtype)
        && let (Some(a), Some(b)) = (a.bytes::<A>(a_dtype, size), b.only::<B>(b_dtype))
    {
        let many = [b; 8 * TILE];
        out.fill(par, grain, |start, out| {
            for (row, out) in out.chunks_mut(many.len()).enumerate() {
                let len = out.len();
                compute(&a[start + row * many.len()..][..len], &many[..len], out);
            }
        });
        return;
    }
    fill_tiles(
        out,
        par,
        grain,
        || (TileLoader::<A>::new(&a, a_dtype), TileLoader::<B>::new(&b, b_dtype)),
        seek_both,
        |(a, b), out| compute(a.tile(), b.tile(), out),
    );
}

fn seek_both<A: Element, B: Element>(
    (a, b): &mut (TileLoader<'_, A>, TileLoader<'_, B>),
    start: usize,
    len: usize,
) {
    a.seek(start, len);
    b.seek(start, len);
}
