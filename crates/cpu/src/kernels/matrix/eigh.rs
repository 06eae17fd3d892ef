//! Eigenvalues of Hermitian matrices: Householder's reflections to a tridiagonal matrix, then implicit QL steps
//! (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 8.3; Bowdler, Martin, Reinsch & Wilkinson, "The QR and
//! QL algorithms for symmetric matrices", Numer. Math. 11, 1968).

use super::{Field, RealField, dot, qr, two_rows};

/// Steps for one eigenvalue after which the iteration gives up; it needs two or three.
const MOST_STEPS: usize = 60;

/// The elements that the factors of a matrix need beside their own: the reflections, the vectors, the diagonals,
/// and two rows.
pub(super) fn workspace(n: usize) -> usize {
    2 * n * n + 4 * n
}

/// The values by descending magnitude, and the vectors in columns. Magnitudes of at most `eps` become 0. NaN where
/// an element is not finite, or where the iteration does not end.
pub(super) fn factors<T: Field>(a: &mut [T], n: usize, eps: f64, w: &mut [T], v: &mut [T], work: &mut [T]) {
    let zero = <T::Real as Field>::ZERO;
    let nan = T::from_real(T::Real::NAN);
    if n == 0 {
        return;
    }
    let mut greatest = zero;
    for x in a.iter() {
        if !x.is_finite() {
            w.fill(nan);
            v.fill(nan);
            return;
        }
        if x.abs() > greatest {
            greatest = x.abs();
        }
    }
    // A power of two changes no digit; infinite magnitudes of finite parts scale by their half.
    let scale = if greatest > zero && greatest.is_finite() {
        greatest.power_of_two()
    } else {
        <T::Real as Field>::ONE
    };
    let half = T::Real::from_f64(0.5);
    for x in a.iter_mut() {
        *x = x.over(T::from_real(scale));
    }
    for i in 0..n {
        a[i * n + i] = T::from_real(a[i * n + i].re());
        for j in 0..i {
            let mean = (a[i * n + j] + a[j * n + i].conj()).scaled(half);
            a[i * n + j] = mean;
            a[j * n + i] = mean.conj();
        }
    }
    let (vectors, work) = work.split_at_mut(n * n);
    let (rows, work) = work.split_at_mut(n * n);
    let (diagonal, work) = work.split_at_mut(n);
    let (beside, work) = work.split_at_mut(n);
    tridiagonal(a, n, vectors, work);
    for i in 0..n {
        diagonal[i] = a[i * n + i];
        beside[i] = if i + 1 < n { a[(i + 1) * n + i] } else { T::ZERO };
    }
    accumulate(vectors, n, beside, rows, &mut v[..n * n], work);
    if !steps(diagonal, beside, rows, n) {
        w.fill(nan);
        v.fill(nan);
        return;
    }
    let eps = T::Real::from_f64(eps);
    let cut = |x: T| if x.abs() <= eps { T::ZERO } else { x };
    for place in 0..n {
        let best =
            (place..n).fold(place, |best, i| if diagonal[i].abs() > diagonal[best].abs() { i } else { best });
        if best != place {
            diagonal.swap(place, best);
            let (x, y) = two_rows(rows, n, place, best);
            x.swap_with_slice(y);
        }
        w[place] = cut(diagonal[place].scaled(scale));
        for i in 0..n {
            v[i * n + place] = cut(rows[place * n + i]);
        }
    }
}

/// Reflects a Hermitian matrix from both sides until only its diagonal and the elements beside it are left. Row k
/// of `vectors` holds the reflection that cleared column k.
fn tridiagonal<T: Field>(a: &mut [T], n: usize, vectors: &mut [T], work: &mut [T]) {
    vectors.fill(T::ZERO);
    let two = T::ONE + T::ONE;
    for k in 0..n.saturating_sub(2) {
        let vector = &mut vectors[k * n..(k + 1) * n];
        for i in k + 1..n {
            vector[i] = a[i * n + k];
        }
        let head = vector[k + 1];
        let norm = qr::reflector(&mut vector[k + 1..]);
        let size = head.abs();
        let sign = if size == <T::Real as Field>::ZERO { T::ONE } else { head.over(T::from_real(size)) };
        a[(k + 1) * n + k] = -sign.scaled(norm);
        let vector = &vectors[k * n..(k + 1) * n];
        // a - v p^H - p v^H with p = 2 (a v - (v^H a v) v).
        let share = &mut work[..n];
        let mut along = T::ZERO;
        for i in k + 1..n {
            let value = dot(&a[i * n + k + 1..(i + 1) * n], &vector[k + 1..]);
            share[i] = value;
            along = along + vector[i].conj() * value;
        }
        for i in k + 1..n {
            share[i] = two * (share[i] - along * vector[i]);
        }
        for i in k + 1..n {
            let (v, p) = (vector[i], share[i]);
            let row = &mut a[i * n + k + 1..(i + 1) * n];
            for (x, (&other_v, &other_p)) in row.iter_mut().zip(vector[k + 1..].iter().zip(&share[k + 1..])) {
                *x = *x - v * other_p.conj() - p * other_v.conj();
            }
        }
    }
}

/// Turns the elements beside the diagonal to positive ones, and writes the columns of the product of all
/// reflections to `rows`, one in each.
fn accumulate<T: Field>(
    vectors: &[T],
    n: usize,
    beside: &mut [T],
    rows: &mut [T],
    product: &mut [T],
    work: &mut [T],
) {
    product.fill(T::ZERO);
    for i in 0..n {
        product[i * n + i] = T::ONE;
    }
    for k in (0..n.saturating_sub(2)).rev() {
        qr::reflect(
            &vectors[k * n + k + 1..(k + 1) * n],
            &mut product[(k + 1) * n..],
            n,
            k + 1,
            &mut work[..n],
        );
    }
    let mut phase = T::ONE;
    for j in 0..n {
        for i in 0..n {
            rows[j * n + i] = product[i * n + j] * phase;
        }
        let size = beside[j].abs();
        if size > <T::Real as Field>::ZERO {
            phase = phase * beside[j].over(T::from_real(size));
        } else {
            phase = T::ONE;
        }
        beside[j] = T::from_real(size);
    }
}

/// Implicit QL steps on a real tridiagonal matrix, with Wilkinson's shifts; the rotations turn the rows. Says
/// whether all elements beside the diagonal became negligible.
fn steps<T: Field>(diagonal: &mut [T], beside: &mut [T], rows: &mut [T], n: usize) -> bool {
    let one = <T::Real as Field>::ONE;
    let zero = <T::Real as Field>::ZERO;
    let two = one + one;
    for first in 0..n {
        for step in 0.. {
            // The end of the block that begins here.
            let mut last = first;
            while last + 1 < n {
                let around = diagonal[last].abs() + diagonal[last + 1].abs();
                if beside[last].abs() <= T::Real::EPSILON * around {
                    break;
                }
                last += 1;
            }
            if last == first {
                break;
            }
            if step == MOST_STEPS {
                return false;
            }
            let off = beside[first].re();
            let tau = (diagonal[first + 1].re() - diagonal[first].re()) / (two * off);
            let root = hypot(tau, one);
            let signed = if tau < zero { -root } else { root };
            let mut g = diagonal[last].re() - diagonal[first].re() + off / (tau + signed);
            let (mut sine, mut cosine, mut p) = (one, one, zero);
            let mut vanished = false;
            for i in (first..last).rev() {
                let f = sine * beside[i].re();
                let b = cosine * beside[i].re();
                let r = hypot(f, g);
                beside[i + 1] = T::from_real(r);
                if r == zero {
                    diagonal[i + 1] = T::from_real(diagonal[i + 1].re() - p);
                    // The rotations so far may have turned the sign of what is beside the rest.
                    beside[i] = T::from_real(b);
                    beside[last] = T::ZERO;
                    vanished = true;
                    break;
                }
                (sine, cosine) = (f / r, g / r);
                g = diagonal[i + 1].re() - p;
                let turned = (diagonal[i].re() - g) * sine + two * cosine * b;
                p = sine * turned;
                diagonal[i + 1] = T::from_real(g + p);
                g = cosine * turned - b;
                let (x, y) = two_rows(rows, n, i, i + 1);
                for (x, y) in x.iter_mut().zip(y) {
                    let (before, after) = (*x, *y);
                    *y = before.scaled(sine) + after.scaled(cosine);
                    *x = before.scaled(cosine) - after.scaled(sine);
                }
            }
            if vanished {
                continue;
            }
            diagonal[first] = T::from_real(diagonal[first].re() - p);
            beside[first] = T::from_real(g);
            beside[last] = T::ZERO;
        }
    }
    true
}

/// `sqrt(x^2 + y^2)` of numbers whose squares do not overflow.
fn hypot<R: RealField>(x: R, y: R) -> R {
    (x * x + y * y).sqrt()
}
