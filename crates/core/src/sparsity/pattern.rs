//! The pattern of a sparse matrix.

use crate::error::{ErrorKind, Result};
use crate::memory::with_capacity;

/// Which entries of a matrix may differ from zero, by rows: compressed sparse rows without values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    columns: usize,
    /// Where each row begins among the indices, and the number of indices.
    starts: Vec<usize>,
    /// The columns of the entries of each row, ascending.
    indices: Vec<u32>,
}

impl Pattern {
    /// A pattern from where each row begins and the columns of its entries.
    ///
    /// # Errors
    /// Starts that do not ascend from 0 to the number of entries, or rows whose columns do not ascend below `columns`.
    pub fn new(columns: usize, starts: Vec<usize>, indices: Vec<u32>) -> Result<Pattern> {
        let refuse = |given: &str, required: &'static str| {
            let (option, given, required) = ("pattern", given.to_owned(), required.to_owned());
            Err(ErrorKind::OptionValue { op: "sparsity", option, given, required }.into())
        };
        let ascends =
            starts.first() == Some(&0) && starts.is_sorted() && starts.last() == Some(&indices.len());
        if !ascends {
            return refuse("starts of rows", "ascending numbers from 0 to the number of entries");
        }
        let rows = starts.windows(2).map(|row| &indices[row[0]..row[1]]);
        let mut is_valid = rows.map(|row| {
            row.windows(2).all(|pair| pair[0] < pair[1])
                && row.last().is_none_or(|&last| (last as usize) < columns)
        });
        if is_valid.any(|valid| !valid) {
            return refuse(
                "columns of entries",
                "ascending numbers in each row, below the number of columns",
            );
        }
        Ok(Pattern { columns, starts, indices })
    }

    /// A pattern of which the rows are given as ranges of columns.
    pub(super) fn from_ranges<R: AsRef<[(u32, u32)]>>(
        columns: usize,
        rows: impl Iterator<Item = R> + Clone,
    ) -> Result<Pattern> {
        let length = |row: &R| row.as_ref().iter().map(|(begin, end)| (end - begin) as usize).sum::<usize>();
        let count = rows.clone().map(|row| length(&row)).sum();
        let mut indices = with_capacity("sparsity", count)?;
        let mut starts = with_capacity("sparsity", rows.size_hint().0 + 1)?;
        starts.push(0);
        for row in rows {
            row.as_ref().iter().for_each(|&(begin, end)| indices.extend(begin..end));
            starts.push(indices.len());
        }
        Ok(Pattern { columns, starts, indices })
    }

    /// The number of rows and of columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.starts.len() - 1, self.columns)
    }

    /// The number of entries.
    pub fn count(&self) -> usize {
        self.indices.len()
    }

    /// Where each row begins among [`Pattern::indices`], and the number of entries.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The columns of the entries, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The columns of the entries of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.starts[row]..self.starts[row + 1]]
    }

    /// The rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        self.starts.windows(2).map(|row| &self.indices[row[0]..row[1]])
    }

    /// The pattern of the transpose.
    ///
    /// # Errors
    /// Memory.
    pub fn transpose(&self) -> Result<Pattern> {
        let mut starts = vec![0; self.columns + 1];
        self.indices.iter().for_each(|&column| starts[column as usize + 1] += 1);
        for column in 0..self.columns {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut indices: Vec<u32> = with_capacity("sparsity", self.indices.len())?;
        indices.resize(self.indices.len(), 0);
        for (row, columns) in self.rows().enumerate() {
            for &column in columns {
                indices[next[column as usize]] = row as u32;
                next[column as usize] += 1;
            }
        }
        Ok(Pattern { columns: self.shape().0, starts, indices })
    }

    /// The parts: where each row begins, and the columns of the entries.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        (self.starts, self.indices)
    }
}
