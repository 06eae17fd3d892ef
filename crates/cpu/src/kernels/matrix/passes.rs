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

/// A vector, multiples of which are added to rows.
#[derive(Clone, Copy)]
pub(super) struct Term<'a, T> {
    /// The factor of each row.
    pub factors: &'a [T],
    pub vector: &'a [T],
}

/// The first `count` lanes of rows, of which the last one may end before its stride does.
#[inline(always)]
fn lines<T, const ROWS: usize>(rows: &mut [T], step: usize, count: usize) -> [&mut [Lanes<T>]; ROWS] {
    let mut rest = rows;
    std::array::from_fn(|_| {
        let whole = std::mem::take(&mut rest);
        let (own, after) = whole.split_at_mut(step.min(whole.len()));
        rest = after;
        &mut own.as_chunks_mut().0[..count]
    })
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
    let mut terms: [&[Lanes<T>]; TERMS] = [&[]; TERMS];
    for term in 0..TERMS {
        terms[term] = &vectors[term].as_chunks::<LANES>().0[..against.len()];
    }
    let rows = lines::<T, ROWS>(rows, step, against.len());
    let mut sums = [[T::ZERO; LANES]; ROWS];
    for block in 0..against.len() {
        for row in 0..ROWS {
            let mut lanes = rows[row][block];
            for term in 0..TERMS {
                let (factor, vector) = (factors[row][term], &terms[term][block]);
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
    let mut products = [T::ZERO; ROWS];
    for row in 0..ROWS {
        products[row] = total(sums[row]);
    }
    products
}

/// The factors of `ROWS` rows from `row` on.
#[inline(always)]
fn factors_of<T: Field, const ROWS: usize, const TERMS: usize>(
    terms: &[Term<'_, T>; TERMS],
    row: usize,
) -> [[T; TERMS]; ROWS] {
    let mut factors = [[T::ZERO; TERMS]; ROWS];
    for i in 0..ROWS {
        for term in 0..TERMS {
            factors[i][term] = terms[term].factors[row + i];
        }
    }
    factors
}

/// The vectors of terms, from an element on.
#[inline(always)]
fn vectors_of<'a, T, const TERMS: usize>(terms: &[Term<'a, T>; TERMS], from: usize) -> [&'a [T]; TERMS] {
    let mut vectors: [&[T]; TERMS] = [&[]; TERMS];
    for term in 0..TERMS {
        vectors[term] = &terms[term].vector[from..];
    }
    vectors
}

/// As [`update`], for whole groups of `ROWS` rows.
#[inline(always)]
fn touch_all<P: Products, T: Field, const ROWS: usize, const TERMS: usize>(
    rows: &mut [T],
    step: usize,
    from: usize,
    terms: [Term<'_, T>; TERMS],
    against: &[T],
    products: &mut [T],
) {
    let (vectors, against) = (vectors_of(&terms, from), &against[from..]);
    for (group, products) in products.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        let factors = factors_of(&terms, group * ROWS);
        let block = &mut rows[group * ROWS * step + from..];
        *products = touch::<P, T, ROWS, TERMS>(block, step, factors, vectors, against);
    }
}

multiplying! {
    /// As [`update`], for whole groups of [`HEIGHT`] rows.
    fn touch_groups[P; T: Field, const TERMS: usize] of [T, TERMS] (
        rows: &mut [T],
        step: usize,
        from: usize,
        terms: [Term<'_, T>; TERMS],
        against: &[T],
        products: &mut [T],
    ) {
        touch_all::<P, T, HEIGHT, TERMS>(rows, step, from, terms, against, products);
    }
}

multiplying! {
    /// As [`update`], for one row after the other.
    fn touch_each[P; T: Field, const TERMS: usize] of [T, TERMS] (
        rows: &mut [T],
        step: usize,
        from: usize,
        terms: [Term<'_, T>; TERMS],
        against: &[T],
        products: &mut [T],
    ) {
        touch_all::<P, T, 1, TERMS>(rows, step, from, terms, against, products);
    }
}

/// Adds multiples of vectors to rows with stride `step`, from element `from` on, and writes the rows' products with the
/// conjugate of `against`.
pub(super) fn update<T: Field, const TERMS: usize>(
    rows: &mut [T],
    step: usize,
    from: usize,
    mut terms: [Term<'_, T>; TERMS],
    against: &[T],
    products: &mut [T],
) {
    let whole = products.len() / HEIGHT * HEIGHT;
    let (grouped, rest) = products.split_at_mut(whole);
    if !grouped.is_empty() {
        touch_groups(rows, step, from, terms, against, grouped);
    }
    if !rest.is_empty() {
        for term in &mut terms {
            term.factors = &term.factors[whole..];
        }
        touch_each(&mut rows[whole * step..], step, from, terms, against, rest);
    }
}

/// The row that is reflected next from the other side, computed ahead.
pub(super) struct Lookahead<'a, T> {
    /// The column of its elements.
    pub column: usize,
    /// The factor of a row's product that is added to the row's element.
    pub factor: T,
    pub elements: &'a mut [T],
    /// The sum of the rows, each times its element.
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
        let Lookahead { column, factor, elements, sum } = ahead;
        let (vectors, after) = (vectors_of(&terms, from), &against[from..]);
        let sum = sum[from..].as_chunks_mut::<LANES>().0;
        let count = products.len();
        let mut row = 0;
        while row < count {
            let block = &mut rows[row * step..];
            let height = if row + HEIGHT <= count { HEIGHT } else { 1 };
            let products = &mut products[row..row + height];
            if let Some(products) = products.as_mut_array::<HEIGHT>() {
                let factors = factors_of(&terms, row);
                *products = touch::<P, T, HEIGHT, 2>(&mut block[from..], step, factors, vectors, after);
            } else {
                let [first, second] = &terms;
                let terms = [first, second].map(|term| Term { factors: &term.factors[row..], ..*term });
                touch_each(block, step, from, terms, against, products);
            }
            let next = &mut elements[row..row + height];
            for (i, next) in next.iter_mut().enumerate() {
                *next = block[i * step + column].plus_product::<P>(factor, products[i]);
            }
            if let Some(factors) = next.as_array::<HEIGHT>() {
                let lines = lines::<T, HEIGHT>(&mut block[from..], step, sum.len());
                for block in 0..sum.len() {
                    let mut lanes = sum[block];
                    for row in 0..HEIGHT {
                        for i in 0..LANES {
                            lanes[i] = lanes[i].plus_product::<P>(factors[row], lines[row][block][i]);
                        }
                    }
                    sum[block] = lanes;
                }
            } else {
                for (sum, line) in sum.as_flattened_mut().iter_mut().zip(&block[from..]) {
                    *sum = sum.plus_product::<P>(next[0], *line);
                }
            }
            row += height;
        }
    }
}

multiplying! {
    /// Reflects [`HEIGHT`] rows along unit vectors, the last vector first. Vector `k` is zero before column `k +
    /// first`. `products` are those of the rows with the last vector.
    fn reflect_group[P; T: Field] of [T] (
        rows: &mut [T],
        step: usize,
        vectors: &[T],
        count: usize,
        first: usize,
        products: [T; HEIGHT],
    ) {
        let minus_two = -(T::ONE + T::ONE);
        let vector = |k: usize, from: usize| &vectors[k * step + from..(k + 1) * step];
        let mut products = products;
        for k in (0..count).rev() {
            let from = lane(k.saturating_sub(1) + first);
            let mut factors = [[T::ZERO]; HEIGHT];
            for row in 0..HEIGHT {
                factors[row] = [minus_two * products[row]];
            }
            let (vector, against) = (vector(k, from), vector(k.saturating_sub(1), from));
            products = touch::<P, T, HEIGHT, 1>(&mut rows[from..], step, factors, [vector], against);
        }
    }
}

/// Reflects a block of rows along unit vectors, the last vector first. Vector `k` is zero before column `k + first`.
fn reflect_block<T: Field>(rows: &mut [T], step: usize, vectors: &[T], count: usize, first: usize) {
    if count == 0 {
        return;
    }
    let minus_two = -(T::ONE + T::ONE);
    let vector = |k: usize| &vectors[k * step..(k + 1) * step];
    let last = lane(count - 1 + first);
    let mut groups = rows.chunks_exact_mut(HEIGHT * step);
    for group in &mut groups {
        let mut products = [T::ZERO; HEIGHT];
        update(group, step, last, [], vector(count - 1), &mut products);
        reflect_group(group, step, vectors, count, first, products);
    }
    for row in groups.into_remainder().chunks_exact_mut(step) {
        let mut product = [T::ZERO];
        update(row, step, last, [], vector(count - 1), &mut product);
        for k in (0..count).rev() {
            let before = k.saturating_sub(1);
            let term = Term { factors: &[minus_two * product[0]], vector: vector(k) };
            update(row, step, lane(before + first), [term], vector(before), &mut product);
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
