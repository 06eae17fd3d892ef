//! Columns of elements that no vector can have from apart, such as bytes.
//!
//! Scalars bring the columns that are read together, vectors compute from those, and scalars write the results.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use smallvec::SmallVec;

use super::build::NestBuilder;
use super::domain::strides_along;
use super::elements::Element;
use super::reads::Reads;
use super::short::has_records;
use crate::compiler::ir::{Access, Elem, Op, Val};
use crate::kernels::StridedView;

/// The most elements of a column that scalars bring together: they are in the memory of a thread.
const MAX_LENGTH: usize = 1 << 14;

/// So many elements before what an input reads may be brought together with it, because another one reads them.
const MAX_SHIFT: usize = 4;

/// Columns of one value that overlap, in memory of the thread.
struct Column {
    value: Value,
    stride: isize,
    /// Where they begin in the value, and how many elements the last begins behind the first.
    offset: usize,
    most: usize,
    inputs: SmallVec<[usize; 4]>,
}

/// Whether a box is a column of which vectors cannot read or write all elements.
pub(super) fn is_narrow(
    graph: &Graph,
    reads: &Reads,
    results: &Values,
    whole: &StridedView,
    sizes: &[usize],
) -> bool {
    let strides = strides_along(whole, sizes);
    sizes.last() > Some(&1)
        && strides.last().is_some_and(|stride| *stride != 1)
        && !has_records(graph, reads, results)
}

/// Whether scalars can bring together what such a box reads.
pub(super) fn can_be_gathered(graph: &Graph, reads: &Reads, results: &Values, sizes: &[usize]) -> bool {
    let mut values = reads.own_inputs().map(|(_, (value, _))| *value).chain(results.iter().copied());
    sizes.len() == 1
        && sizes[0] <= MAX_LENGTH
        && reads.random.is_empty()
        && values.all(|value| raw(graph.ty(value).dtype.storage_bytes()).is_some())
}

/// The integer of so many bytes.
fn raw(bytes: usize) -> Option<Elem> {
    [Elem::I8, Elem::I16, Elem::I32, Elem::I64].into_iter().find(|elem| elem.bytes() == bytes)
}

impl NestBuilder<'_> {
    /// Whether the row is such a column.
    pub(super) fn is_narrow_column(&self) -> bool {
        self.domain_box.is_some()
            && self.sizes.len() == 1
            && is_narrow(self.graph, self.reads, self.results, self.whole, self.sizes)
            && can_be_gathered(self.graph, self.reads, self.results, self.sizes)
    }

    /// The elements of a column, or of so many of them from where the part begins on.
    pub(super) fn narrow_column(&mut self, extent: Val, stored: &[usize]) -> Option<()> {
        let length = self.sizes[0];
        let columns = self.columns_read();
        // Columns of as many elements are brought together.
        for most in 0..=MAX_SHIFT {
            let own: SmallVec<[&Column; 4]> = columns.iter().filter(|column| column.most == most).collect();
            if own.is_empty() {
                continue;
            }
            // Of no elements there are none before them.
            let [one, more] = [1, most as i64].map(|number| self.e.b.index(number));
            let some = self.e.b.op(Op::Min, [extent, one]);
            let more = self.e.b.mul(some, more);
            let trips = self.e.b.add(extent, more);
            let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
            for column in own {
                let width = self.graph.ty(column.value).dtype.storage_bytes();
                let scratch = self.scratch.take((length + most) * width);
                let view = StridedView::strided(column.offset, self.sizes, &[column.stride]);
                let from = self.access(column.inputs[0] as u16, &view, width);
                self.copy_element(counter, width, from, self.column_access(scratch, width));
                for &input in &column.inputs {
                    let behind = self.reads.inputs[input].1.offset() - column.offset;
                    let shift = behind / column.stride.unsigned_abs();
                    self.gathered_columns.insert(input, scratch + shift * width);
                }
            }
            self.e.b.end_loop(&[]);
        }
        let mut results: SmallVec<[(usize, usize, usize); 2]> = SmallVec::new();
        for (at, result) in self.results.iter().enumerate() {
            let width = self.graph.ty(*result).dtype.storage_bytes();
            let scratch = self.scratch.take(length * width);
            self.result_columns.insert(at, scratch);
            results.push((at, scratch, width));
        }
        self.begin_elements();
        self.e.b.begin_lanes(extent);
        self.store_elements(stored)?;
        self.e.b.end_lanes();
        let (counter, _) = self.e.b.begin_loop(Some(extent), &[]);
        for (at, scratch, width) in results {
            let to = self.access(self.result_buffer(at), self.whole, width);
            self.copy_element(counter, width, self.column_access(scratch, width), to);
        }
        self.e.b.end_loop(&[]);
        Some(())
    }

    /// An input of the column that was brought together.
    pub(super) fn gathered_column(&mut self, at: usize, dtype: DType) -> Option<Element> {
        let access = self.column_access(*self.gathered_columns.get(&at)?, dtype.storage_bytes());
        let element = self.e.load(dtype, access);
        self.loaded.insert(at, element);
        Some(element)
    }

    /// The columns that are read, of which vectors cannot have the elements as they lie.
    fn columns_read(&self) -> Vec<Column> {
        let mut inputs: Vec<(usize, Value, isize, usize)> = Vec::new();
        for (at, (value, view)) in self.reads.own_inputs() {
            let stride = strides_along(view, self.sizes)[0];
            if stride != 0 && stride != 1 {
                inputs.push((at, *value, stride, view.offset()));
            }
        }
        inputs.sort_unstable_by_key(|(at, _, _, offset)| (*offset, *at));
        let mut columns: Vec<Column> = Vec::new();
        for (at, value, stride, offset) in inputs {
            let by = stride.unsigned_abs();
            let found = columns.iter_mut().find(|column| {
                let behind = offset - column.offset;
                stride > 0
                    && (column.value, column.stride) == (value, stride)
                    && behind.is_multiple_of(by)
                    && behind / by <= MAX_SHIFT
            });
            if let Some(column) = found {
                column.most = (offset - column.offset) / by;
                column.inputs.push(at);
            } else {
                let inputs = SmallVec::from_slice(&[at]);
                columns.push(Column { value, stride, offset, most: 0, inputs });
            }
        }
        columns
    }

    /// Copies the element that a counter says.
    fn copy_element(&mut self, counter: Val, width: usize, from: Access, to: Access) {
        let elem = raw(width).expect("the elements can be gathered");
        let at = |mut access: Access| {
            access.terms.push((counter, access.lane));
            Access { lane: 0, ..access }
        };
        let element = self.e.b.load(elem, at(from));
        self.e.b.store(element, at(to));
    }
}
