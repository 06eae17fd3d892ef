//! Nests on blocks of a value: some rows, and of each the same part, or whole rows.

use defn_core::graph::{Graph, Value, Values};
use smallvec::SmallVec;

use super::build::{Body, NestContext, NodeRole, Position};
use super::domain::{Domain, Sizes};
use super::passes::Passes;
use super::reads::Reads;
use super::shape::NestShape;
use crate::compiler::fusion_groups::FusionGroups;
use crate::compiler::ir::{Builder, Elem, Function};
use crate::kernels::StridedView;

/// The fewest elements of a row: vectors are along rows.
const MIN_ROW: usize = 16;

/// A nest that is called block by block.
///
/// The arguments of its function are pointers to inputs, to results and to memory for a row, the first row of the block
/// and how many it has, the first element of each row and how many it has, and positions along the axes around the
/// rows.
#[derive(Debug)]
pub(in super::super) struct Blocks {
    pub(in super::super) function: Function,
    pub(in super::super) inputs: Vec<(Value, StridedView)>,
    /// The axes, of which the last one is the row, and the one before it counts rows.
    pub(in super::super) sizes: Sizes,
    /// The bytes of the memory for a row.
    pub(in super::super) scratch: usize,
}

/// The nest of nodes of which `results` are needed elsewhere, on blocks of rows of so many elements. Blocks may have
/// parts of rows where all nodes are element-wise. None if the IR lacks something, or the nodes divide rows in another
/// way.
pub(in super::super) fn fuse_blocks(
    graph: &Graph,
    fusion: &FusionGroups,
    nodes: Vec<(usize, NodeRole)>,
    (elements, row): (usize, usize),
    results: &Values,
) -> Option<Blocks> {
    let is_across = |role: NodeRole| matches!(role, NodeRole::Across(_));
    if !elements.is_multiple_of(row) || nodes.iter().any(|(_, role)| is_across(*role)) {
        return None;
    }
    let is_whole = nodes.iter().any(|(_, role)| *role != NodeRole::Elements);
    let in_rows = Domain::in_order(elements / row, row, 1);
    let domain = if is_whole { in_rows.clone() } else { Domain::of_elements(elements) };
    let passes = Passes::new(graph, fusion, nodes);
    let reads = Reads::new(graph, fusion, &passes, &domain, &[], None, Vec::new())?;
    let mut sizes = reads.sizes(&in_rows, None, [None; 2], None)?;
    // Rows may be divided, but not for reductions.
    let length = sizes[sizes.len() - 1];
    if length < MIN_ROW || is_whole && length != row {
        return None;
    }
    if sizes.len() == 1 {
        sizes.insert(0, 1);
    }
    let (rows, lanes) = (sizes.len() - 2, sizes.len() - 1);
    let reduced = if is_whole { lanes..lanes + 1 } else { sizes.len()..sizes.len() };
    let shape = NestShape::of_rows(reduced, rows, lanes, row);
    let mut b = Builder::new((reads.inputs.len() + results.len()) as u16 + 1, 4 + rows as u16, 0);
    let params: Vec<_> = (0..4 + rows as u16).map(|at| b.param(at, Elem::Index)).collect();
    let [first_row, count, begin, extent] = params[..4] else { unreachable!("there are four at least") };
    let (counter, _) = b.begin_loop(Some(count), &[]);
    let mut positions: SmallVec<[Position; 4]> =
        params[4..].iter().map(|&outer| Position::at(outer)).collect();
    positions.push(Position::at(b.add(first_row, counter)));
    positions.push(Position::default());
    let whole = StridedView::strided(0, &[elements], &[1]);
    let inputs = reads.inputs.len();
    let context = NestContext { graph, fusion, results, inputs, is_streaming: false };
    let body = Body {
        context: &context,
        passes: &passes,
        reads: &reads,
        domain_box: None,
        whole,
        across: None,
        sizes,
        shape,
        draws_before: false,
    };
    let mut builder = body.builder(b, positions, (!is_whole).then_some(begin));
    builder.rows((!is_whole).then_some((begin, extent)))?;
    let scratch = builder.scratch.bytes;
    let mut b = builder.e.b;
    b.end_loop(&[]);
    let function = b.finish();
    let sizes = body.sizes;
    Some(Blocks { function, inputs: reads.inputs, sizes, scratch })
}
