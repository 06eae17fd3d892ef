//! Strips of rows: what is made and kept for each, and how they are run.

use std::ops::Range;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::ReduceOp;
use defn_core::{Shape, TensorType};
use smallvec::SmallVec;

use super::cluster::Clusters;
use super::fuse::Part;
use super::group::{Group, group};
use super::strips;
use crate::kernels::stream::StoreKind;
use crate::kernels::tiles::with_memory_between;
use crate::kernels::{StridedOperand, reduce};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of a strip: so many that what a strip costs beside them is little, and that the second cache holds several
/// values of each.
const STRIP: usize = 16 << 10;
/// Cheap instructions on elements that one thread does at a time.
const GRAIN: usize = 64 << 10;

/// Clusters that go through rows together, ready to run.
#[derive(Debug)]
pub(super) struct Strip {
    work: Vec<Work>,
    rows: usize,
    len: usize,
    /// How many rows a strip has.
    height: usize,
    /// How many rows a thread does at a time.
    grain: usize,
    /// The values that are read from before, by where they lie among the inputs.
    pub(super) inputs: Values,
    /// The values that are given.
    pub(super) results: Values,
    /// The bytes that a strip keeps of what nobody else reads.
    between: usize,
}

/// What is done to each strip.
#[derive(Debug)]
enum Work {
    Tiles {
        group: Group,
        inputs: Vec<Home>,
        results: Vec<Home>,
        per_row: usize,
        stores: StoreKind,
    },
    /// The types are those of what a whole strip has, as they lie.
    Fold {
        op: ReduceOp,
        from: (Home, TensorType),
        to: (Home, TensorType),
    },
}

/// Where a value lies.
#[derive(Clone, Copy, Debug)]
enum Home {
    /// In an input.
    Input(usize),
    /// In a result.
    Result(usize),
    /// In the strip's own memory from an offset on, of so many elements for each row and bytes for each element.
    Between { offset: usize, row: usize, width: usize },
}

/// What each value of the strip's clusters is needed for.
pub(super) trait Uses {
    /// The values of a cluster that others need.
    fn of(&self, place: usize) -> &Values;
    /// Whether a value is needed by others than some clusters.
    fn is_needed_beyond(&self, value: Value, is_within: &dyn Fn(usize) -> bool) -> bool;
}

impl Strip {
    pub(super) fn new(graph: &Graph, clusters: &Clusters, uses: &dyn Uses, found: &strips::Strip) -> Strip {
        let (rows, len) = (found.domain.groups(), found.domain.reduced);
        let height = (STRIP / len).clamp(1, rows);
        let mut strip = Strip {
            work: Vec::with_capacity(found.parts.len()),
            rows,
            len,
            height,
            grain: 1,
            inputs: Values::new(),
            results: Values::new(),
            between: 0,
        };
        let mut homes: Vec<(Value, Home)> = Vec::new();
        let mut weight = 0;
        let (last, _) = &found.parts[found.parts.len() - 1];
        for (place, part) in &found.parts {
            let cluster = &clusters.order[*place];
            let given = uses.of(*place);
            let row = if *part == Part::Elements { len } else { 1 };
            let to: Vec<Home> = given
                .iter()
                .map(|&value| {
                    strip.home(graph, value, row, uses.is_needed_beyond(value, &|place| found.has(place)))
                })
                .collect();
            match part {
                Part::Fold(op) => {
                    let node = &graph.nodes()[cluster.nodes[0]];
                    let base = clusters.base(node.inputs[0]);
                    let from = strip.find(&homes, base);
                    let out = Value { node: cluster.nodes[0] as u32, output: 0 };
                    let flat = |value: Value, count: usize| TensorType {
                        dtype: graph.ty(value).dtype,
                        shape: Shape::new(&[count]),
                    };
                    let types = (flat(base, height * len), flat(out, height));
                    let to = to.first().copied().unwrap_or_else(|| strip.home(graph, out, 1, false));
                    strip.work.push(Work::Fold { op: *op, from: (from, types.0), to: (to, types.1) });
                    weight += 1;
                }
                Part::Elements | Part::Rows => {
                    let group = group(graph, clusters, cluster, given.clone());
                    let inputs: Vec<Home> =
                        group.inputs.iter().map(|(value, _)| strip.find(&homes, *value)).collect();
                    // What is read again for the same rows stays in the cache until then.
                    let last = place == last
                        && given.iter().all(|&value| uses.is_needed_beyond(value, &|place| found.has(place)));
                    let bytes = given.iter().map(|&value| graph.ty(value).byte_size()).sum();
                    let stores = if last { StoreKind::of(bytes) } else { StoreKind::Cached };
                    weight += if *part == Part::Elements { group.program.weight() } else { 0 };
                    strip.work.push(Work::Tiles { group, inputs, results: to.clone(), per_row: row, stores });
                }
            }
            homes.extend(given.iter().copied().zip(to));
        }
        strip.grain = (GRAIN / (weight.max(1) * len)).max(1).next_multiple_of(height);
        strip
    }

    /// Room for a value that has `row` elements for each row.
    fn home(&mut self, graph: &Graph, value: Value, row: usize, is_result: bool) -> Home {
        if is_result {
            self.results.push(value);
            return Home::Result(self.results.len() - 1);
        }
        let width = graph.ty(value).dtype.storage_bytes();
        let offset = self.between;
        self.between += (self.height * row * width).next_multiple_of(64);
        Home::Between { offset, row, width }
    }

    /// Where a value is that is read.
    fn find(&mut self, homes: &[(Value, Home)], value: Value) -> Home {
        if let Some((_, home)) = homes.iter().find(|(known, _)| *known == value) {
            return *home;
        }
        let at = self.inputs.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.inputs.push(value);
            self.inputs.len() - 1
        });
        Home::Input(at)
    }

    /// Goes through all rows. `inputs` and `results` are as the strip lists them.
    pub(super) fn run(&self, graph: &Graph, inputs: &[View<'_>], results: &[ViewMut<'_>], par: Par) {
        par.for_chunks(self.rows, self.grain, |chunk| {
            with_memory_between(self.between, |memory| {
                for start in chunk.clone().step_by(self.height) {
                    let places =
                        Places { inputs, results, memory, rows: start..chunk.end.min(start + self.height) };
                    for work in &self.work {
                        self.run_part(graph, work, &places);
                    }
                }
            });
        });
    }

    fn run_part(&self, graph: &Graph, work: &Work, places: &Places<'_, '_>) {
        let rows = &places.rows;
        match work {
            Work::Tiles { group, inputs, results, per_row, stores } => {
                let sources = group.inputs.iter().zip(inputs).map(|((value, walk), home)| {
                    StridedOperand::with_strided_view(places.view(graph.ty(*value), *home), walk)
                });
                let sources: SmallVec<[StridedOperand<'_>; 8]> = sources.collect();
                let starts: SmallVec<[*mut u8; 4]> = results.iter().map(|home| places.first(*home)).collect();
                let part = rows.start * per_row..rows.end * per_row;
                let in_place = |result| sources.iter().any(|source| source.may_alias(result));
                let stores = if places.results.iter().any(in_place) { StoreKind::Cached } else { *stores };
                // SAFETY: results have room for all elements and memory between has it for those of the strip; strips
                // are disjoint, as threads' memory between is, and what is read was written before.
                unsafe { group.program.run_part(&sources, &starts, part, stores) };
                stores.finish();
            }
            Work::Fold { op, from, to } => {
                // The last strip may be shorter.
                let short = (rows.len() < self.height).then(|| {
                    let flat = |ty: &TensorType, count: usize| TensorType {
                        dtype: ty.dtype,
                        shape: Shape::new(&[count]),
                    };
                    (flat(&from.1, rows.len() * self.len), flat(&to.1, rows.len()))
                });
                let (from_ty, to_ty) = match &short {
                    Some((from, to)) => (from, to),
                    None => (&from.1, &to.1),
                };
                let start = places.first(from.0).cast_const();
                let start = start.wrapping_add(rows.start * self.len * from_ty.dtype.storage_bytes());
                let to = places.first(to.0).wrapping_add(rows.start * to_ty.dtype.storage_bytes());
                // SAFETY: the elements of the strip's rows lie from there on, written and aligned, and nobody writes
                // them meanwhile.
                let x = unsafe { View::of_part(from_ty, start) };
                // SAFETY: there is room for an element of each row, which nobody else uses.
                let mut out = unsafe { ViewMut::new(to_ty, to) };
                reduce::reduce_rows(*op, x, self.len, &mut out);
            }
        }
    }
}

/// Where the values of one strip lie.
struct Places<'r, 'a> {
    inputs: &'r [View<'a>],
    results: &'r [ViewMut<'a>],
    memory: *mut u8,
    rows: Range<usize>,
}

impl Places<'_, '_> {
    /// Where the first element of a value lies, or would if memory between were long enough.
    fn first(&self, home: Home) -> *mut u8 {
        match home {
            Home::Input(at) => self.inputs[at].start().cast_mut(),
            Home::Result(at) => self.results[at].start(),
            Home::Between { offset, row, width } => {
                self.memory.wrapping_add(offset).wrapping_sub(self.rows.start * row * width)
            }
        }
    }

    fn view<'t>(&self, ty: &'t TensorType, home: Home) -> View<'t>
    where
        Self: 't,
    {
        // SAFETY: inputs and results have all elements, and of memory between only those of the strip are read.
        unsafe { View::of_part(ty, self.first(home)) }
    }
}
