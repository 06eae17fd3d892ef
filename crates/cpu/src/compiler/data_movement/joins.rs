//! Joins: concatenations, paddings and updates of large windows. A join is another value in each of some boxes.

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{Op, Starts};
use smallvec::SmallVec;

use super::{BoxSource, Sizes};

/// An update of a window is a join where all elements are at most so many times those of the window.
const MAX_AROUND_WINDOW: usize = 2;

/// Positions along each axis, which may lie before a value's first element.
pub(super) type Positions = SmallVec<[i64; 4]>;

/// Whether a node is a join.
pub(super) fn is_join(graph: &Graph, node: &Node) -> bool {
    borders(graph, node).is_some()
}

/// Where the operands of a join begin and end, along each axis. None if a node is no join.
pub(super) fn borders(graph: &Graph, node: &Node) -> Option<SmallVec<[Sizes; 6]>> {
    let (Op::Concatenate { .. } | Op::Pad { .. } | Op::PutSlice { .. }) = node.op else { return None };
    let sizes = node.outputs.first()?.shape.sizes();
    let mut borders: SmallVec<[Sizes; 6]> = SmallVec::from_elem(Sizes::from_slice(&[0]), sizes.len());
    if let Op::Concatenate { axis } = &node.op {
        let along = &mut borders[axis.index()];
        let mut end = 0;
        for &input in &node.inputs[..node.inputs.len() - 1] {
            end += graph.ty(input).shape[*axis];
            along.push(end);
        }
    } else if let Op::Pad { config } = &node.op {
        for (axis, padding) in config.iter().enumerate() {
            if padding.interior > 0 {
                return None;
            }
            let high = usize::try_from(padding.high.max(0)).ok()?;
            borders[axis].extend([usize::try_from(padding.low.max(0)).ok()?, sizes[axis].checked_sub(high)?]);
        }
    }
    if let Op::PutSlice { starts } = &node.op {
        let window = &graph.ty(*node.inputs.get(1)?).shape;
        let Starts::Static(starts) = starts else { return None };
        // Of a small window nothing but the window is written, in place.
        if window.size() * MAX_AROUND_WINDOW < sizes.iter().product() {
            return None;
        }
        for (along, (&start, &length)) in borders.iter_mut().zip(starts.iter().zip(window.sizes())) {
            along.extend([start, start + length]);
        }
    }
    Some(borders)
}

/// The operands of a join that are parts of it, and where each begins in it.
pub(super) fn parts(graph: &Graph, node: &Node) -> SmallVec<[(Value, Positions); 4]> {
    let rank = node.outputs[0].shape.sizes().len();
    let zeros = Positions::from_elem(0, rank);
    let mut parts = SmallVec::new();
    if let Op::Concatenate { axis } = &node.op {
        let mut begin = zeros;
        for &input in &node.inputs {
            parts.push((input, begin.clone()));
            begin[axis.index()] += graph.ty(input).shape[*axis] as i64;
        }
    } else if let Op::Pad { config } = &node.op {
        parts.push((node.inputs[0], config.iter().map(|padding| padding.low).collect()));
    } else if let Op::PutSlice { starts: Starts::Static(starts) } = &node.op {
        parts.push((node.inputs[0], zeros));
        parts.push((node.inputs[1], starts.iter().map(|&start| start as i64).collect()));
    }
    parts
}

/// What a join is in a box that lies within one of its operands.
pub(super) fn source_in_box(
    graph: &Graph,
    node: &Node,
    starts: &[usize],
    sizes: &[usize],
) -> Option<BoxSource> {
    let starts_in = |value: Value, starts: Sizes| {
        let is_whole = graph.ty(value).shape.sizes() == sizes;
        BoxSource::Operand { value, starts: (!is_whole).then_some(starts) }
    };
    let mut own: Sizes = starts.into();
    if let Op::Concatenate { axis } = &node.op {
        let mut rest = starts[axis.index()];
        for &input in &node.inputs {
            let size = graph.ty(input).shape[*axis];
            if rest < size {
                own[axis.index()] = rest;
                return Some(starts_in(input, own));
            }
            rest -= size;
        }
        return None;
    }
    if let Op::PutSlice { starts: Starts::Static(first) } = &node.op {
        let window = graph.ty(node.inputs[1]).shape.sizes();
        let is_within = |axis: usize| (first[axis]..first[axis] + window[axis]).contains(&starts[axis]);
        if !(0..window.len()).all(is_within) {
            return Some(starts_in(node.inputs[0], own));
        }
        own.iter_mut().zip(first).for_each(|(own, first)| *own -= first);
        return Some(starts_in(node.inputs[1], own));
    }
    let Op::Pad { config } = &node.op else { return None };
    let (x, padding) = (node.inputs[0], node.inputs[1]);
    for (axis, pad) in config.iter().enumerate() {
        let at = starts[axis] as i64 - pad.low;
        match usize::try_from(at) {
            Ok(at) if at < graph.ty(x).shape.sizes()[axis] => own[axis] = at,
            Ok(_) | Err(_) => return Some(BoxSource::Operand { value: padding, starts: None }),
        }
    }
    Some(starts_in(x, own))
}
