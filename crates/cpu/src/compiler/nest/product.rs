//! Nests of one product with a vector: what runs eager products, and steps of plans that are one.
//!
//! A nest is made once for the sizes and dtypes of a product, and is then kept in a cache of the process.

use std::sync::{Arc, Mutex};

use defn_core::graph::Values;
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{Axis, DType, Shape, TensorType, pass};
use smallvec::SmallVec;

use super::super::fuse::{Domain, NodeRole, Reduction};
use super::super::fusion_groups::{FusionGroups, Role};
use super::Nest;
use super::cache::{Cache, ProcessCache, ThreadCache, hash_of, recent};
use super::one_op::region_of;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// What a nest depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ProductKey {
    /// Of both operands and of the result.
    dtypes: [DType; 3],
    sizes: [SmallVec<[usize; 4]>; 3],
    contract: [SmallVec<[Axis; 6]>; 2],
    batch: usize,
}

impl ProductKey {
    fn op(&self) -> Op {
        let batch = || Shape::new(&self.sizes[0]).axes().take(self.batch).collect();
        let [contract_a, contract_b] =
            [0, 1].map(|side: usize| self.contract[side].iter().copied().collect());
        Op::Dot { contract_a, batch_a: batch(), contract_b, batch_b: batch() }
    }

    fn nest(&self) -> ProductNest {
        let ty = |at: usize| TensorType { dtype: self.dtypes[at], shape: Shape::new(&self.sizes[at]) };
        let region = Arc::new(region_of(self.op(), vec![ty(0), ty(1)], ty(2)));
        let written = pass::by_elements(&region).expect("ops on checked types can be written");
        let (graph, inputs, count, results) = written.as_ref().clone().into_parts();
        // The last op may only give the result another shape.
        let mut result = results[0];
        while let Op::Reshape { .. } = graph.node(result).op {
            result = graph.node(result).inputs[0];
        }
        let region = Region::new(graph, inputs, count, Values::from_elem(result, 1));
        let (graph, fusion) = (region.graph(), FusionGroups::with_all_views(&region));
        let (mut nodes, mut domain) = (Vec::new(), None);
        for (position, node) in graph.nodes().iter().enumerate() {
            let role = match (&fusion.roles[position], Reduction::with_domain(graph, node)) {
                (Role::Leaf | Role::View | Role::Generated, _) => continue,
                (Role::Elementwise, _) if domain.is_some() => NodeRole::Rows,
                (Role::Elementwise, _) => NodeRole::Elements,
                (Role::Step, Some((reduction, own))) => {
                    domain = Some(own);
                    NodeRole::Reduction(reduction)
                }
                (Role::Step, None) => unreachable!("{:?} is no part of a product", node.op),
            };
            nodes.push((position, role));
        }
        let domain = domain.unwrap_or_else(|| Domain::of_elements(graph.ty(result).size()));
        let nest = Nest::of_nodes(graph, &fusion, nodes, &domain, region.results(), &[]);
        let nest = nest.expect("the operands of a product have its axes");
        let operand = |value| {
            let Op::Parameter { index, .. } = graph.node(value).op else {
                unreachable!("operands are parameters")
            };
            index
        };
        let operands = nest.inputs.iter().map(|&(value, _)| operand(value)).collect();
        ProductNest { nest, operands }
    }

    /// Calls `work` with the nest.
    fn with_nest<R>(&self, work: impl Fn(&ProductNest) -> R) -> R {
        Cache { recent: &LAST, cached: &PROCESS_CACHE }.with_pieces(self, hash_of(self), || self.nest(), work)
    }
}

thread_local! {
    static LAST: ThreadCache<ProductKey, ProductNest> = const { recent() };
}

static PROCESS_CACHE: ProcessCache<ProductKey, ProductNest> = Mutex::new(None);

/// A nest, and for each of its inputs which operand it is.
#[derive(Debug)]
struct ProductNest {
    nest: Nest,
    operands: SmallVec<[usize; 4]>,
}

/// A product with elements, of which one operand is a vector or whose sums have one element.
#[derive(Debug)]
pub(crate) struct OneProduct {
    key: ProductKey,
}

impl OneProduct {
    /// The product of operands of these types, over these axes, to a result of a type.
    pub(crate) fn new(
        [a, b]: [&TensorType; 2],
        [contract_a, contract_b]: [&[Axis]; 2],
        batch: usize,
        result: &TensorType,
    ) -> OneProduct {
        let key = ProductKey {
            dtypes: [a.dtype, b.dtype, result.dtype],
            sizes: [a, b, result].map(|ty| ty.shape.sizes().into()),
            contract: [contract_a, contract_b].map(SmallVec::from_slice),
            batch,
        };
        OneProduct { key }
    }

    /// The bytes that a run needs beside.
    pub(crate) fn scratch(&self) -> usize {
        self.key.with_nest(|own| own.nest.scratch_bytes())
    }

    /// Runs it, with so much scratch memory.
    pub(crate) fn run(&self, operands: [View<'_>; 2], out: &ViewMut<'_>, scratch: &ViewMut<'_>, par: Par) {
        self.key.with_nest(|ProductNest { nest, operands: order }| {
            let inputs: SmallVec<[*mut u8; 8]> =
                order.iter().map(|&operand| operands[operand].start().cast_mut()).collect();
            // SAFETY: the views have the elements of the types that the nest was made for, the result is borrowed, and
            // the scratch memory has as many bytes as the nest asks for.
            unsafe { nest.run(&inputs, &[out.start()], scratch.start(), par) };
        });
    }
}
