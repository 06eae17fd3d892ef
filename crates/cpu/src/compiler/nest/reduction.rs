//! Nests of one reduction: what runs eager reductions, and steps of plans that are one reduction.
//!
//! A nest is made once for an op, its dtypes, and the axes of its operand, and is then kept in a cache of the process.

use std::sync::Mutex;

use defn_core::op::{Op, ReduceOp};
use defn_core::{Axis, DType, Number, Result, Scalar, Shape, TensorType};
use smallvec::SmallVec;

use super::super::fuse::{Domain, NodeRole, Reduction, chunk};
use super::super::fusion_groups::FusionGroups;
use super::Nest;
use super::cache::{Cache, ProcessCache, ThreadCache, hash_of, recent};
use super::one_op::{region_of, run_elementwise};
use crate::kernels::create;
use crate::kernels::reduce::{MIN_INNER, ReductionLayout};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Groups from which on the nest is one for any number of them: threads divide the groups, and nothing else depends on
/// how many there are.
const MIN_DYNAMIC_GROUPS: usize = 8;

/// The groups that such a nest is made for.
const DYNAMIC_GROUPS: usize = 1 << 12;

/// The most columns of such a nest: threads do not divide them.
const MAX_DYNAMIC_INNER: usize = 1 << 20;

/// What a nest depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReductionKey {
    reduction: Reduction,
    from: DType,
    to: DType,
    /// The sizes of the operand's axes, and which of them are reduced. Neighbours of the same kind are one axis.
    axes: SmallVec<[(usize, bool); 6]>,
}

impl ReductionKey {
    /// The key, and how many steps the nest is run on if it is one for any number of them.
    fn new(
        reduction: Reduction,
        operand: &TensorType,
        axes: &[Axis],
        to: DType,
    ) -> (ReductionKey, Option<usize>) {
        let mut merged: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        for (axis, &size) in operand.shape.axes().zip(operand.shape.sizes()) {
            let is_reduced = axes.contains(&axis);
            match merged.last_mut() {
                _ if size == 1 => {}
                Some((last, kind)) if *kind == is_reduced => *last *= size,
                _ => merged.push((size, is_reduced)),
            }
        }
        let steps = is_of_any_steps(&merged).then(|| std::mem::replace(&mut merged[0].0, DYNAMIC_GROUPS));
        (ReductionKey { reduction, from: operand.dtype, to, axes: merged }, steps)
    }

    /// How many elements are reduced to one.
    fn reduced(&self) -> usize {
        self.axes.iter().filter(|(_, is_reduced)| *is_reduced).map(|(size, _)| size).product()
    }

    /// The op on an operand that has these axes.
    fn op(&self, axes: &[Axis]) -> Op {
        match self.reduction {
            Reduction::Of(op) => Op::Reduce { op, axes: axes.iter().copied().collect(), keep_axes: false },
            Reduction::Position(op, tie_break) => {
                let axis = if let [axis] = axes { Some(*axis) } else { None };
                Op::ArgReduce { op, tie_break, axis, keep_axis: false, dtype: self.to }
            }
        }
    }

    fn nest(&self) -> Nest {
        let sizes: SmallVec<[usize; 6]> = self.axes.iter().map(|(size, _)| *size).collect();
        let shape = Shape::new(&sizes);
        let reduced = shape.axes().zip(&self.axes).filter(|(_, (_, is_reduced))| *is_reduced);
        let axes: SmallVec<[Axis; 6]> = reduced.map(|(axis, _)| axis).collect();
        let result = TensorType { dtype: self.to, shape: shape.reduced(&axes, false) };
        let domain = Domain::of_reduction(&ReductionLayout::new(&sizes, &axes));
        let operand = TensorType { dtype: self.from, shape };
        let region = region_of(self.op(&axes), vec![operand], result);
        let results = region.results();
        let nodes = vec![(results[0].node as usize, NodeRole::Reduction(self.reduction))];
        let fusion = FusionGroups::new(&region);
        let nest = Nest::of_nodes(region.graph(), &fusion, nodes, &domain, results, &[]);
        let nest = nest.expect("one reduction has the axes of its operand");
        // Memory accesses depend on it: it is what a run has another number of.
        assert!(!is_of_any_steps(&self.axes) || nest.steps() == DYNAMIC_GROUPS, "threads divide the groups");
        nest
    }

    /// Calls `work` with the nest.
    fn with_nest<R>(&self, work: impl Fn(&Nest) -> R) -> R {
        Cache { recent: &LAST, cached: &PROCESS_CACHE }.with_pieces(self, hash_of(self), || self.nest(), work)
    }
}

/// Whether the nest of a reduction of such axes is one for any number of groups.
fn is_of_any_steps(axes: &[(usize, bool)]) -> bool {
    matches!(
        axes,
        [(MIN_DYNAMIC_GROUPS.., false), (2.., true)]
            | [(MIN_DYNAMIC_GROUPS.., false), (2.., true), (MIN_INNER..=MAX_DYNAMIC_INNER, false)]
    ) && axes[1].0 <= chunk()
}

thread_local! {
    static LAST: ThreadCache<ReductionKey, Nest> = const { recent() };
}

static PROCESS_CACHE: ProcessCache<ReductionKey, Nest> = Mutex::new(None);

/// A reduction of one operand over some axes, to a dtype.
#[derive(Debug)]
pub(crate) struct OneReduction {
    key: ReductionKey,
    /// The steps of a nest for any number of them.
    steps: Option<usize>,
    results: usize,
}

impl OneReduction {
    /// The reduction that an op is, of an operand to a result of these types.
    ///
    /// # Panics
    /// When the op is another one.
    pub(crate) fn new(op: &Op, operand: &TensorType, result: &TensorType) -> OneReduction {
        let (reduction, axes) = Reduction::of(op).expect("the op is a reduction");
        let axes = axes.unwrap_or_else(|| operand.shape.axes().collect());
        let (key, steps) = ReductionKey::new(reduction, operand, &axes, result.dtype);
        OneReduction { key, steps, results: result.size() }
    }

    /// Whether there is a nest: several elements for each result.
    fn has_nest(&self) -> bool {
        self.results > 0 && self.key.reduced() > 1
    }

    /// The bytes that a run needs beside.
    pub(crate) fn scratch(&self) -> usize {
        if self.has_nest() && self.steps.is_none() { self.key.with_nest(Nest::scratch_bytes) } else { 0 }
    }

    /// Runs it, with so much scratch memory. If there are no elements to reduce, results are the neutral element: 0 for
    /// a sum.
    ///
    /// # Errors
    /// The neutral element does not fit the dtype.
    pub(crate) fn run(
        &self,
        x: View<'_>,
        out: &mut ViewMut<'_>,
        scratch: &mut ViewMut<'_>,
        par: Par,
    ) -> Result<()> {
        if self.has_nest() {
            if let Some(steps) = self.steps {
                // SAFETY: as below, and the views have so many groups along the first axis.
                self.key.with_nest(|nest| unsafe {
                    nest.run_steps(steps, x.start().cast_mut(), out.start(), par)
                });
                return Ok(());
            }
            let (operands, results) = ([x.start().cast_mut()], [out.start()]);
            // SAFETY: the views have the elements of the types that the nest was made for, the result is borrowed, and
            // the scratch memory has as many bytes as the nest asks for.
            self.key.with_nest(|nest| unsafe { nest.run(&operands, &results, scratch.start(), par) });
            return Ok(());
        }
        let dtype = out.ty().dtype;
        match (self.key.reduction, self.key.reduced()) {
            _ if self.results == 0 => Ok(()),
            (Reduction::Of(op), 0) => create::constant(Scalar::new(dtype, neutral(op, dtype))?, out, par),
            (Reduction::Of(_), _) => {
                run_elementwise(&Op::AsType { dtype }, &[x], out, par);
                Ok(())
            }
            (Reduction::Position(..), reduced) => {
                assert!(reduced > 0, "no element of {} is extreme along an empty axis", x.ty());
                create::constant(Scalar::new(dtype, Number::Int(0))?, out, par)
            }
        }
    }
}

/// What a reduction of no elements gives.
fn neutral(op: ReduceOp, dtype: DType) -> Number {
    match op {
        ReduceOp::Sum => Number::Int(0),
        ReduceOp::Product => Number::Int(1),
        ReduceOp::ReduceMax => dtype.lowest(),
        ReduceOp::ReduceMin => dtype.highest(),
        ReduceOp::All => Number::Bool(true),
        ReduceOp::Any => Number::Bool(false),
    }
}

#[cfg(test)]
mod tests;
