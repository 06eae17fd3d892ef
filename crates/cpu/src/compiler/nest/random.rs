//! Nests of one op of random numbers: what runs eager ops.
//!
//! A nest is made once for an op, a dtype and a number of elements, and is then kept in a cache of the process.

use std::sync::Mutex;

use defn_core::op::Op;
use defn_core::{DType, Shape, TensorType};
use smallvec::SmallVec;

use super::super::fusion_groups::{FusionGroups, Random, random};
use super::Nest;
use super::cache::{Cache, ProcessCache, ThreadCache, hash_of, recent};
use super::one_op::region_of;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// What a nest depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RandomKey {
    random: Random,
    dtype: DType,
    elements: usize,
}

impl RandomKey {
    /// The nest of an op that draws so many.
    fn nest(&self, op: &Op, operands: &[View<'_>]) -> Nest {
        // Counters, and the words of their blocks, may have several axes, along which they lie in order.
        let shape = match self.random {
            Random::Threefry => Shape::new(&[2, self.elements / 2]),
            Random::Bits | Random::Uniform | Random::Below => Shape::new(&[self.elements]),
        };
        let result = TensorType { dtype: self.dtype, shape };
        let types = operands.iter().enumerate().map(|(index, operand)| match (self.random, index) {
            (Random::Threefry, 1) => result.clone(),
            (Random::Threefry | Random::Bits | Random::Uniform | Random::Below, _) => {
                TensorType { dtype: operand.ty().dtype, shape: Shape::new(operand.ty().shape.sizes()) }
            }
        });
        let region = region_of(op.clone(), types.collect(), result.clone());
        let results = region.results();
        Nest::of_node(region.graph(), &FusionGroups::new(&region), results[0].node as usize, results)
    }
}

thread_local! {
    static LAST: ThreadCache<RandomKey, Nest> = const { recent() };
}

static PROCESS_CACHE: ProcessCache<RandomKey, Nest> = Mutex::new(None);

/// Runs an op of random numbers.
///
/// # Panics
/// When the op is another one.
pub(crate) fn run_random(op: &Op, operands: &[View<'_>], out: &mut ViewMut<'_>, par: Par) {
    let random = random(op).expect("the op makes random numbers");
    let key = RandomKey { random, dtype: out.ty().dtype, elements: out.ty().size() };
    if key.elements == 0 {
        return;
    }
    let run = |nest: &Nest| {
        debug_assert_eq!(nest.scratch_bytes(), 0);
        let start = |value: u32| operands[value as usize].start().cast_mut();
        let inputs: SmallVec<[*mut u8; 8]> = nest.inputs.iter().map(|(value, _)| start(value.node)).collect();
        // SAFETY: the views have the elements of the types that the nest was made for, and the result is borrowed.
        unsafe { nest.run(&inputs, &[out.start()], std::ptr::null_mut(), par) };
    };
    let make = || key.nest(op, operands);
    Cache { recent: &LAST, cached: &PROCESS_CACHE }.with(&key, hash_of(&key), make, run);
}
