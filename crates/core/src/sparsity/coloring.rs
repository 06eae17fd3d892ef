//! Colorings: groups of columns of which no two have an entry in the same row, so that one pass computes them together
//! (A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices", 1974).

use rustc_hash::FxHashSet;

use super::pattern::Pattern;
use crate::error::Result;

/// The word of a row's colors.
type Word = u64;

/// A color for each column of a pattern, or for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coloring {
    /// The color of each column or row.
    pub colors: Vec<u32>,
    /// The number of colors. 0 if there is no entry.
    pub count: usize,
}

impl Coloring {
    /// Colors columns so that no two of one color have an entry in the same row. Each column in turn gets the first color
    /// that is free (T. F. Coleman, J. J. Moré, "Estimation of sparse Jacobian matrices and graph coloring problems", 1983),
    /// once in natural order and once with the columns first that meet most entries in their rows; the better one is
    /// returned. If a row has entries in more than half of the columns, each column gets its own color: a coloring would
    /// at best halve their number.
    ///
    /// # Errors
    /// Memory.
    pub fn of_columns(pattern: &Pattern) -> Result<Coloring> {
        let (_, columns) = pattern.shape();
        // No coloring has fewer colors than a row has entries.
        let least = pattern.rows().map(<[u32]>::len).max().unwrap_or(0);
        if 2 * least > columns {
            return Ok(Coloring { colors: (0..columns as u32).collect(), count: columns });
        }
        // Equal rows demand the same.
        let mut seen = FxHashSet::default();
        let (mut starts, mut indices) = (vec![0], Vec::new());
        for row in pattern.rows().filter(|row| row.len() > 1 && seen.insert(*row)) {
            indices.extend_from_slice(row);
            starts.push(indices.len());
        }
        let rows = Pattern::new(columns, starts, indices)?;
        let by_column = rows.transpose()?;
        let natural = greedy(&rows, &by_column, 0..columns);
        if natural.count <= least.max(1) {
            return Ok(natural);
        }
        let met = |column: usize| -> usize {
            by_column.row(column).iter().map(|&row| rows.row(row as usize).len()).sum()
        };
        let mut order: Vec<(usize, usize)> = (0..columns).map(|column| (met(column), column)).collect();
        order.sort_by_key(|&(met, column)| (std::cmp::Reverse(met), column));
        let largest_first = greedy(&rows, &by_column, order.into_iter().map(|(_, column)| column));
        Ok(if largest_first.count < natural.count { largest_first } else { natural })
    }

    /// Colors rows so that no two of one color have an entry in the same column.
    ///
    /// # Errors
    /// Memory.
    pub fn of_rows(pattern: &Pattern) -> Result<Coloring> {
        Coloring::of_columns(&pattern.transpose()?)
    }
}

/// Gives each column of an order the first color that none of its rows has yet.
fn greedy(rows: &Pattern, by_column: &Pattern, order: impl Iterator<Item = usize>) -> Coloring {
    let mut taken: Vec<Vec<Word>> = vec![Vec::new(); rows.shape().0];
    let mut colors = vec![0; rows.shape().1];
    let (mut count, mut forbidden) = (0, Vec::<Word>::new());
    for column in order {
        forbidden.clear();
        for &row in by_column.row(column) {
            let taken = &taken[row as usize];
            if forbidden.len() < taken.len() {
                forbidden.resize(taken.len(), 0);
            }
            forbidden.iter_mut().zip(taken).for_each(|(word, taken)| *word |= taken);
        }
        let free = forbidden.iter().position(|&word| word != Word::MAX);
        let (word, bit) = match free {
            Some(word) => (word, forbidden[word].trailing_ones()),
            None => (forbidden.len(), 0),
        };
        for &row in by_column.row(column) {
            let taken = &mut taken[row as usize];
            if taken.len() <= word {
                taken.resize(word + 1, 0);
            }
            taken[word] |= 1 << bit;
        }
        let color = word * Word::BITS as usize + bit as usize;
        colors[column] = color as u32;
        count = count.max(color + 1);
    }
    Coloring { colors, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(columns: usize, rows: &[&[u32]]) -> Pattern {
        let starts = std::iter::once(0).chain(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        Pattern::new(columns, starts.collect(), rows.concat()).expect("rows ascend")
    }

    fn is_valid(pattern: &Pattern, coloring: &Coloring) -> bool {
        pattern.rows().all(|row| {
            let colors: FxHashSet<u32> = row.iter().map(|&column| coloring.colors[column as usize]).collect();
            colors.len() == row.len()
        })
    }

    #[test]
    fn a_band_takes_as_many_colors_as_its_width() {
        let rows: Vec<Vec<u32>> =
            (0..1000).map(|row: u32| (row.saturating_sub(2)..(row + 3).min(1000)).collect()).collect();
        let band = pattern(1000, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let coloring = Coloring::of_columns(&band).expect("memory");
        assert_eq!(coloring.count, 5);
        assert!(is_valid(&band, &coloring));
    }

    #[test]
    fn a_dense_row_is_cheap_by_rows() {
        let full: Vec<u32> = (0..200).collect();
        let single: Vec<[u32; 1]> = (1..200).map(|row| [row]).collect();
        let rows: Vec<&[u32]> = std::iter::once(&full[..]).chain(single.iter().map(|row| &row[..])).collect();
        let arrow = pattern(200, &rows);
        assert_eq!(Coloring::of_columns(&arrow).expect("memory").count, 200);
        let coloring = Coloring::of_rows(&arrow).expect("memory");
        assert_eq!(coloring.count, 2);
        assert!(is_valid(&arrow.transpose().expect("memory"), &coloring));
    }

    #[test]
    fn random_rows_share_no_color() {
        let mut state = 1_u32;
        let mut rows = Vec::new();
        for _ in 0..300 {
            let mut row: Vec<u32> = Vec::new();
            for _ in 0..6 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                row.push((state >> 8) % 500);
            }
            row.sort_unstable();
            row.dedup();
            rows.push(row);
        }
        let random = pattern(500, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let coloring = Coloring::of_columns(&random).expect("memory");
        assert!(is_valid(&random, &coloring));
        assert!(coloring.count < 40, "{}", coloring.count);
    }
}
