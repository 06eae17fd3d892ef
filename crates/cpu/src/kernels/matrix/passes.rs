//! Vector loops over contiguous rows, several rows at a time.
//!
//! Rows are padded with zeros to a multiple of [`LANES`]. A vector that concerns only the end of the rows has zeros
//! before it. So the loops need no remainder code, and all of them read from the beginning of a cache line.

use super::field::multiplying;
use super::rows::transpose_into;
use super::{Field, Products, RealField};
use crate::kernels::SendPtr;
use crate::par::Par;

/// Rows are padded to a multiple of this number of elements.
pub(super) const LANES: usize = 16;

/// Rows that are processed at a time. Their sums stay in registers.
const HEIGHT: usize = 4;

/// Multiplications below which a further thread does not pay.
const PARALLEL_WORK: usize = 1 << 16;

/// Lanes of a row.
type Lanes<T> = [T; LANES];

/// The stride of padded rows.
pub(super) fn stride(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// The start of the lanes that hold a column.
pub(super) fn lane(column: usize) -> usize {
    column / LANES * LANES
}

/// Calls `work` with the index and the elements of every piece of `size` elements.
pub(super) fn pieces<T: Send>(x: &mut [T], size: usize, par: Par, work: impl Fn(usize, &mut [T]) + Sync) {
    let len = x.len();
    let start = SendPtr::new(x.as_mut_ptr());
    par.for_chunks(len, size, |chunk| {
        // SAFETY: chunks are inside the slice and disjoint.
        let piece = unsafe { std::slice::from_raw_parts_mut(start.at(chunk.start), chunk.len()) };
        work(chunk.start / size, piece);
    });
}

/// Writes the transpose of a matrix and pads the result's rows with zeros. `step` and `to_step` are the row strides.
pub(super) fn transpose<T: Field>(
    from: &[T],
    step: usize,
    to: &mut [T],
    to_step: usize,
    (rows, columns): (usize, usize),
) {
    transpose_into(from, step, (rows, columns), to, to_step);
    if to_step > rows {
        for line in to.chunks_exact_mut(to_step).take(columns) {
            line[rows..].fill(T::ZERO);
        }
    }
}

/// The parallelism for this number of multiplications.
pub(super) fn threads(par: Par, multiplications: usize) -> Par {
    if multiplications < 4 * PARALLEL_WORK { Par::Serial } else { par }
}

/// The sum of lanes, by pairwise halving.
#[inline(always)]
fn total<T: Field>(mut lanes: Lanes<T>) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i] + lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Adds multiples of vectors to rows, and returns the products of the rows with the conjugate of `against`.
#[inline(always)]
fn touch<P: Products, T: Field, const ROWS: usize, const TERMS: usize>(
    rows: &mut [T],
    step: usize,
    factors: [[T; TERMS]; ROWS],
    vectors: [&[T]; TERMS],
    against: &[T],
) -> [T; ROWS] {
    let against = against.as_chunks::<LANES>().0;
    let vectors = vectors.map(|vector| &vector.as_chunks::<LANES>().0[..against.len()]);
    let mut rest = rows;
    let rows: [&mut [Lanes<T>]; ROWS] = std::array::from_fn(|row| {
        let whole = std::mem::take(&mut rest);
        let (own, after) = whole.split_at_mut(if row + 1 < ROWS { step } else { whole.len() });
        rest = after;
        &mut own.as_chunks_mut::<LANES>().0[..against.len()]
    });
    let mut sums = [[T::ZERO; LANES]; ROWS];
    for block in 0..against.len() {
        for row in 0..ROWS {
            let mut lanes = rows[row][block];
            for term in 0..TERMS {
                let (factor, vector) = (factors[row][term], &vectors[term][block]);
                for i in 0..LANES {
                    lanes[i] = lanes[i].plus_product::<P>(factor, vector[i]);
                }
            }
            if TERMS > 0 {
                rows[row][block] = lanes;
            }
            for i in 0..LANES {
                sums[row][i] = sums[row][i].plus_product::<P>(lanes[i], against[block][i].conj());
            }
        }
    }
    sums.map(total)
}

/// Adds multiples of rows to a vector.
#[inline(always)]
fn gather<P: Products, T: Field, const ROWS: usize>(
    rows: &[T],
    step: usize,
    factors: [T; ROWS],
    vector: &mut [T],
) {
    let vector = vector.as_chunks_mut::<LANES>().0;
    let rows: [&[Lanes<T>]; ROWS] =
        std::array::from_fn(|row| &rows[row * step..].as_chunks::<LANES>().0[..vector.len()]);
    for block in 0..vector.len() {
        let mut lanes = vector[block];
        for row in 0..ROWS {
            for i in 0..LANES {
                lanes[i] = lanes[i].plus_product::<P>(factors[row], rows[row][block][i]);
            }
        }
        vector[block] = lanes;
    }
}

multiplying! {
    /// Adds rows with stride `step`, each times its factor, to a vector, from element `from` on.
    pub(super) fn add_rows[P; T: Field] of [T] (
        rows: &[T],
        step: usize,
        from: usize,
        factors: &[T],
        vector: &mut [T],
    ) {
        let vector = &mut vector[from..];
        let mut row = 0;
        while row + HEIGHT <= factors.len() {
            let own = std::array::from_fn(|i| factors[row + i]);
            gather::<P, T, HEIGHT>(&rows[row * step + from..], step, own, vector);
            row += HEIGHT;
        }
        for row in row..factors.len() {
            gather::<P, T, 1>(&rows[row * step + from..], step, [factors[row]], vector);
        }
    }
}

/// A vector, multiples of which are added to rows.
#[derive(Clone, Copy)]
pub(super) struct Term<'a, T> {
    /// The factor of each row.
    pub factors: &'a [T],
    pub vector: &'a [T],
}

multiplying! {
    /// Adds multiples of vectors to rows with stride `step`, from element `from` on, and writes the rows' products with
    /// the conjugate of `against`.
    pub(super) fn update[P; T: Field, const TERMS: usize] of [T, TERMS] (
        rows: &mut [T],
        step: usize,
        from: usize,
        terms: [Term<'_, T>; TERMS],
        against: &[T],
        products: &mut [T],
    ) {
        let vectors = terms.map(|term| &term.vector[from..]);
        let against = &against[from..];
        let count = products.len();
        let mut row = 0;
        while row + HEIGHT <= count {
            let factors = std::array::from_fn(|i| terms.map(|term| term.factors[row + i]));
            let block = &mut rows[row * step + from..];
            let sums = touch::<P, T, HEIGHT, TERMS>(block, step, factors, vectors, against);
            products[row..row + HEIGHT].copy_from_slice(&sums);
            row += HEIGHT;
        }
        for row in row..count {
            let factors = [terms.map(|term| term.factors[row])];
            let block = &mut rows[row * step + from..];
            products[row] = touch::<P, T, 1, TERMS>(block, step, factors, vectors, against)[0];
        }
    }
}

/// The row that is reflected next from the other side, computed ahead.
pub(super) struct Lookahead<'a, T> {
    /// The column of its elements.
    pub column: usize,
    /// The factor of a row's product that is added to the row's element.
    pub factor: T,
    /// The conjugates of the row's elements.
    pub elements: &'a mut [T],
    /// The sum of the rows, each times the conjugate of its element.
    pub sum: &'a mut [T],
}

multiplying! {
    /// As [`update`]. Each product also gives one element of a vector. The rows times their elements are summed while
    /// they are in the L1 cache.
    pub(super) fn update_ahead[P; T: Field] of [T] (
        rows: &mut [T],
        step: usize,
        from: usize,
        terms: [Term<'_, T>; 2],
        against: &[T],
        products: &mut [T],
        ahead: Lookahead<'_, T>,
    ) {
        let vectors = terms.map(|term| &term.vector[from..]);
        let against = &against[from..];
        let Lookahead { column, factor, elements, sum } = ahead;
        let sum = &mut sum[from..];
        let count = products.len();
        let mut row = 0;
        while row + HEIGHT <= count {
            let factors = std::array::from_fn(|i| terms.map(|term| term.factors[row + i]));
            let block = &mut rows[row * step..];
            let products = &mut products[row..row + HEIGHT];
            products.copy_from_slice(&touch::<P, T, HEIGHT, 2>(&mut block[from..], step, factors, vectors, against));
            let next = std::array::from_fn(|i| {
                block[i * step + column].plus_product::<P>(factor, products[i]).conj()
            });
            elements[row..row + HEIGHT].copy_from_slice(&next);
            gather::<P, T, HEIGHT>(&block[from..], step, next, sum);
            row += HEIGHT;
        }
        for row in row..count {
            let factors = [terms.map(|term| term.factors[row])];
            let block = &mut rows[row * step..];
            products[row] = touch::<P, T, 1, 2>(&mut block[from..], step, factors, vectors, against)[0];
            elements[row] = block[column].plus_product::<P>(factor, products[row]).conj();
            gather::<P, T, 1>(&block[from..], step, [elements[row]], sum);
        }
    }
}

multiplying! {
    /// Reflects a block of rows along unit vectors, the last vector first. Vector `k` is zero before column `k +
    /// first`.
    fn reflect_block[P; T: Field] of [T] (
        rows: &mut [T],
        step: usize,
        vectors: &[T],
        count: usize,
        first: usize,
    ) {
        let minus_two = -(T::ONE + T::ONE);
        let vector = |k: usize, from: usize| &vectors[k * step + from..(k + 1) * step];
        let mut rest = rows;
        while !rest.is_empty() && count > 0 {
            let height = rest.len() / step;
            let (block, after) = rest.split_at_mut(HEIGHT.min(height) * step);
            rest = after;
            let mut from = lane(count - 1 + first);
            if height >= HEIGHT {
                let against = vector(count - 1, from);
                let mut products = touch::<P, T, HEIGHT, 0>(&mut block[from..], step, [[]; HEIGHT], [], against);
                for k in (0..count).rev() {
                    from = lane(k.saturating_sub(1) + first);
                    let factors = products.map(|product| [minus_two * product]);
                    let (vector, against) = (vector(k, from), vector(k.saturating_sub(1), from));
                    products = touch::<P, T, HEIGHT, 1>(&mut block[from..], step, factors, [vector], against);
                }
            } else {
                for row in block.chunks_exact_mut(step) {
                    from = lane(count - 1 + first);
                    let against = vector(count - 1, from);
                    let mut products = touch::<P, T, 1, 0>(&mut row[from..], step, [[]], [], against);
                    for k in (0..count).rev() {
                        from = lane(k.saturating_sub(1) + first);
                        let factors = products.map(|product| [minus_two * product]);
                        let (vector, against) = (vector(k, from), vector(k.saturating_sub(1), from));
                        products = touch::<P, T, 1, 1>(&mut row[from..], step, factors, [vector], against);
                    }
                }
            }
        }
    }
}

/// Writes the columns of the product of `count` reflections as rows with stride `step`. The vectors are unit vectors;
/// vector `k` is zero before column `k + first`.
pub(super) fn accumulate<T: Field>(
    vectors: &[T],
    (count, first): (usize, usize),
    step: usize,
    rows: &mut [T],
    par: Par,
) {
    let height = 2 * HEIGHT;
    let par = threads(par, rows.len() * count);
    pieces(rows, height * step, par, |piece, rows| {
        rows.fill(T::ZERO);
        let start = piece * height;
        let row_count = rows.len() / step;
        for (i, row) in rows.chunks_exact_mut(step).enumerate() {
            row[start + i] = T::ONE;
        }
        // Reflections whose vectors begin after the last of these columns do not change them.
        let reaching = count.min((start + row_count).saturating_sub(first));
        reflect_block(rows, step, vectors, reaching, first);
    });
}

multiplying! {
    /// Writes `f (x - g y) - h z`.
    pub(super) fn combine[P; T: Field] of [T] (x: &mut [T], y: &[T], z: &[T], factors: [T; 3]) {
        let [f, g, h] = factors;
        for ((x, &y), &z) in x.iter_mut().zip(y).zip(z) {
            *x = (f * (*x - g * y)).plus_product::<P>(-h, z);
        }
    }
}

multiplying! {
    /// The sum of the products of one vector with the conjugates of another. Both have whole lanes.
    pub(super) fn inner[P; T: Field] of [T] (x: &[T], y: &[T]) -> T {
        let (x, y) = (x.as_chunks::<LANES>().0, y.as_chunks::<LANES>().0);
        let mut sums = [T::ZERO; LANES];
        for (x, y) in x.iter().zip(y) {
            for i in 0..LANES {
                sums[i] = sums[i].plus_product::<P>(x[i], y[i].conj());
            }
        }
        total(sums)
    }
}

/// The result of reflecting a vector.
pub(super) struct Reflected<T: Field> {
    /// Its first element; all others are zero.
    pub head: T,
    /// The scale that made the difference of the vector and `head` a unit vector; zero if the vector is zero.
    pub factor: T::Real,
}

multiplying! {
    /// Replaces a vector, which ends with whole lanes, by the unit vector whose reflection maps it to its first
    /// element. A zero vector stays zero.
    pub(super) fn reflector[P; T: Field] of [T] (x: &mut [T]) -> Reflected<T> {
        let zero = <T::Real as Field>::ZERO;
        let mut most = [zero; LANES];
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                let size = chunk[i].abs();
                // The comparison is false for NaN, so NaN is kept.
                most[i] = if size <= most[i] { most[i] } else { size };
            }
        }
        let mut greatest = zero;
        for size in most.into_iter().chain(rest.iter().map(|x| x.abs())) {
            greatest = if size <= greatest { greatest } else { size };
        }
        if greatest == zero {
            return Reflected { head: T::ZERO, factor: zero };
        }
        // Scaled, so that squares neither overflow nor underflow.
        let scale = greatest.power_of_two();
        let over = T::from_real(scale);
        for x in x.iter_mut() {
            *x = x.over(over);
        }
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut sums = [zero; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                sums[i] = sums[i] + chunk[i].square();
            }
        }
        let norm = rest.iter().fold(total(sums), |sum, x| sum + x.square()).sqrt();
        let head = x[0];
        let size = head.abs();
        let sign = if size == zero { T::ONE } else { head.over(T::from_real(size)) };
        let one = <T::Real as Field>::ONE;
        // The square of |x + sign norm e| is 2 norm (norm + |head|).
        let factor = one / ((norm + norm) * (norm + size)).sqrt();
        x[0] = head + sign.scaled(norm);
        for x in x.iter_mut() {
            *x = x.scaled(factor);
        }
        Reflected { head: -sign.scaled(norm * scale), factor: factor / scale }
    }
}
