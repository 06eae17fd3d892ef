//! Fusion groups of element-wise ops as programs over tiles, which routines run.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::fusion_groups::{Elementwise, FusionGroup, FusionGroups, Role, elementwise};
use crate::kernels::StridedView;
use crate::kernels::tiles::{Draft, Operand, Program, Register};

/// A program, with where its operands come from.
#[derive(Debug)]
pub(super) struct TileProgram {
    pub(super) program: Program,
    /// For each input the value whose memory is read, and how.
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The values that are given, each with `elements` elements.
    pub(super) results: Values,
    pub(super) elements: usize,
}

/// Makes the program of a fusion group that gives `results`.
pub(super) fn tile_program(
    graph: &Graph,
    fusion: &FusionGroups,
    group: &FusionGroup,
    results: Values,
) -> TileProgram {
    let first = &graph.nodes()[group.nodes[0]];
    let mut builder = TileProgramBuilder {
        graph,
        fusion,
        draft: Draft::default(),
        inputs: Vec::new(),
        known: FxHashMap::default(),
        registers: FxHashMap::default(),
        group_index: fusion.group_of[group.nodes[0]],
    };
    for &position in &group.nodes {
        let register = builder.node(position);
        builder.registers.insert(position, register);
    }
    for result in &results {
        let register = builder.registers[&(result.node as usize)];
        builder.draft.store(register.into());
    }
    let TileProgramBuilder { draft, inputs, .. } = builder;
    let (program, elements) = (draft.finish(), first.outputs[0].size());
    TileProgram { program, inputs, results, elements }
}

struct TileProgramBuilder<'a> {
    graph: &'a Graph,
    fusion: &'a FusionGroups,
    draft: Draft,
    inputs: Vec<(Value, StridedView)>,
    known: FxHashMap<(Value, StridedView), usize>,
    registers: FxHashMap<usize, Register>,
    group_index: Option<usize>,
}

impl TileProgramBuilder<'_> {
    /// Adds a node's op.
    fn node(&mut self, position: usize) -> Register {
        let node = &self.graph.nodes()[position];
        let (sizes, dtype) = (node.outputs[0].shape.sizes(), node.outputs[0].dtype);
        let x: SmallVec<[Operand; 3]> = node.inputs.iter().map(|&input| self.operand(input, sizes)).collect();
        match elementwise(&node.op).expect("groups of several nodes are element-wise") {
            Elementwise::Unary(op) => self.draft.unary(op, x[0], dtype),
            Elementwise::Binary(op) => self.draft.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => self.draft.convert(x[0], dtype),
            Elementwise::Select => self.draft.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => self.draft.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => self.draft.log_to(base, x[0], dtype),
            Elementwise::Random(_) => unreachable!("nests compute random numbers"),
        }
    }

    /// A value as elements of a result of `sizes`.
    fn operand(&mut self, value: Value, sizes: &[usize]) -> Operand {
        let value_view = self.fusion.view(self.graph, value);
        let base = &self.graph.nodes()[value_view.base.node as usize];
        if self.fusion.group_of[value_view.base.node as usize] == self.group_index
            && let Some(&register) = self.registers.get(&(value_view.base.node as usize))
        {
            return register.into();
        }
        if let Op::Constant(scalar) = &base.op {
            return self.draft.constant(*scalar).into();
        }
        let view = value_view.strided_view(sizes);
        let dtype = self.graph.ty(value_view.base).dtype;
        if let (Role::Generated, Op::Iota { axis, shape, .. }) =
            (&self.fusion.roles[value_view.base.node as usize], &base.op)
        {
            let (step, size) = match axis {
                Some(axis) => (shape.sizes()[axis.index() + 1..].iter().product(), shape[*axis]),
                None => (1, shape.size()),
            };
            return self.draft.count(step, size, dtype).into();
        }
        let (constant, run) = (view.is_constant(), view.run());
        let key = (value_view.base, view);
        let index = match self.known.get(&key) {
            Some(&index) => index,
            None => {
                self.inputs.push(key.clone());
                self.known.insert(key, self.inputs.len() - 1);
                self.inputs.len() - 1
            }
        };
        Operand::Input { index, dtype, constant, run }
    }
}
