//! Nests of one op: what runs eager ops, and steps of plans that are one op.
//!
//! A nest is made once for an op, its dtypes, and how its operands lie, and is then kept in a cache of the process.
//! Operands of the result's size and those of one element, which most are, lie in the same way whatever the shapes: one
//! nest is for all sizes.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use defn_core::graph::{Graph, Values};
use defn_core::op::{Op, Outputs};
use defn_core::region::Region;
use defn_core::{DType, Shape, TensorType};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::super::fuse::{Domain, LONG_ROW, NodeRole, fuse};
use super::super::fusion_groups::{Elementwise, FusionGroups, elementwise};
use super::cache::{Cache, ProcessCache, ThreadCache, recent};
use super::{SharedCode, ThreadPartition};
use crate::kernels::StridedView;
use crate::kernels::stream::StoreKind;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The most operands of an op.
const OPERANDS: usize = 3;

/// What a nest depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OneOpKey {
    op: Elementwise,
    /// Those of the operands, and last that of the result.
    dtypes: [DType; OPERANDS + 1],
    /// The operands of which all positions have the same element, one bit for each.
    repeated: u8,
    is_streaming: bool,
    /// Nothing if the other operands have the elements of the result in order. Else the number of elements, and for
    /// each operand the number of its axes, then their sizes and strides.
    axes: SmallVec<[(usize, isize); 6]>,
}

impl OneOpKey {
    /// What differs between keys that are used in turn.
    #[inline]
    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.op.hash(&mut hasher);
        let [a, b, _, result] = self.dtypes.map(|dtype| dtype as u64);
        hasher.write_u64(a ^ b << 8 ^ result << 16 ^ u64::from(self.repeated) << 24);
        for &(size, _) in &self.axes {
            hasher.write_usize(size);
        }
        hasher.finish()
    }
}

/// The memory of one call.
struct OneOpCall<'a> {
    operands: &'a [*const u8],
    result: *mut u8,
    elements: usize,
    par: Par,
}

/// The nest of one op.
#[derive(Debug)]
struct OneOp {
    code: Arc<SharedCode>,
    parts: ThreadPartition,
    /// For each input of the function, the operand that it is.
    operands: SmallVec<[u8; OPERANDS]>,
}

impl OneOp {
    /// The nest of an op on operands of these types.
    fn new(op: &Op, operands: &[TensorType], result: TensorType, is_streaming: bool) -> OneOp {
        let domain = Domain::of_elements(result.size());
        let region = region_of(op.clone(), operands.to_vec(), result);
        let results = region.results();
        let nodes = vec![(results[0].node as usize, NodeRole::Elements)];
        let fusion = FusionGroups::new(&region);
        let fused = fuse(region.graph(), &fusion, nodes, &domain, results, &[], is_streaming);
        let fused = fused.expect("the operands of one op are broadcast along its axes");
        let parts = ThreadPartition::of(&fused);
        let operands = fused.inputs.iter().map(|(value, _)| value.node as u8).collect();
        OneOp { code: SharedCode::of(fused.function), parts, operands }
    }

    /// The nest of a key without axes: of any number of elements.
    fn in_order(op: &Op, key: &OneOpKey, operands: usize) -> OneOp {
        let ty =
            |dtype: DType, is_repeated: bool| unnamed(dtype, if is_repeated { &[] } else { &[LONG_ROW] });
        let types: SmallVec<[TensorType; OPERANDS]> =
            (0..operands).map(|operand| ty(key.dtypes[operand], key.repeated >> operand & 1 == 1)).collect();
        OneOp::new(op, &types, ty(key.dtypes[OPERANDS], false), key.is_streaming)
    }

    /// # Safety
    /// The operands are those of the key and lie as it says, and there is room for the result. Nobody else uses its
    /// memory, but that operands which lie in order may be there.
    #[inline]
    unsafe fn run(&self, key: &OneOpKey, call: &OneOpCall<'_>) {
        let mut parts = self.parts;
        if key.axes.is_empty() {
            parts.steps = call.elements;
        }
        if parts.is_single() && parts.scratch == 0 && self.code.applied.is_empty() {
            let mut args = [0; OPERANDS + 4];
            let mut first = 0;
            for &operand in &self.operands {
                args[first] = call.operands[usize::from(operand)].expose_provenance() as u64;
                first += 1;
            }
            args[first] = call.result.expose_provenance() as u64;
            args[first + 3] = parts.steps as u64;
            // SAFETY: as the caller says.
            unsafe { self.code.runner(call.elements).run(&args) };
            return;
        }
        let inputs = self.operands.iter().map(|&operand| call.operands[usize::from(operand)].cast_mut());
        // SAFETY: as the caller says.
        unsafe { parts.run(&self.code, inputs.chain([call.result]), None, call.elements, call.par) };
    }
}

thread_local! {
    static LAST: ThreadCache<OneOpKey, OneOp> = const { recent() };
}

static PROCESS_CACHE: ProcessCache<OneOpKey, OneOp> = Mutex::new(None);

/// Calls `work` with the nest of a key.
fn with_nest(key: &OneOpKey, make: impl Fn() -> OneOp, work: impl Fn(&OneOp)) {
    Cache { recent: &LAST, cached: &PROCESS_CACHE }.with(key, key.hash(), make, work);
}

/// Runs an element-wise op on operands that are broadcast to the result. Operands of the result's size whose elements
/// have its width may be in its memory.
///
/// # Panics
/// When the op is another one.
pub(crate) fn run_elementwise(op: &Op, operands: &[View<'_>], out: &mut ViewMut<'_>, par: Par) {
    let elements = out.ty().size();
    if elements == 0 {
        return;
    }
    let mut key = key_of(op, operands.iter().map(|operand| operand.ty().dtype), out.ty().dtype);
    let mut is_in_order = true;
    let mut read = 0;
    for (at, operand) in operands.iter().enumerate() {
        read += operand.ty().byte_size();
        match operand.ty().size() {
            size if size == elements => {}
            1 => key.repeated |= 1 << at,
            _ => is_in_order = false,
        }
    }
    let starts: SmallVec<[*const u8; OPERANDS]> = operands.iter().map(View::start).collect();
    let is_aligned = out.start().addr().is_multiple_of(64);
    key.is_streaming = is_aligned
        && out.stores() == StoreKind::NonTemporal
        && StoreKind::for_transfer(read, out.ty().byte_size(), par.threads()) == StoreKind::NonTemporal;
    let call = OneOpCall { operands: &starts, result: out.start(), elements, par };
    if is_in_order {
        // SAFETY: views have elements of their types, which nobody writes meanwhile, and the result is borrowed.
        let work = |nest: &OneOp| unsafe { nest.run(&key, &call) };
        return with_nest(&key, || OneOp::in_order(op, &key, operands.len()), work);
    }
    key.axes.push((elements, 0));
    for operand in operands {
        let view = StridedView::broadcast(operand.ty().shape.sizes(), out.ty().shape.sizes());
        key.axes.push((view.dims().len(), 0));
        key.axes.extend_from_slice(view.dims());
    }
    key.repeated = 0;
    let make = || {
        let copy = |ty: &TensorType| unnamed(ty.dtype, ty.shape.sizes());
        let types: SmallVec<[TensorType; OPERANDS]> = operands.iter().map(|x| copy(x.ty())).collect();
        OneOp::new(op, &types, copy(out.ty()), key.is_streaming)
    };
    // SAFETY: as above; operands are broadcast, so that no element is read beyond them.
    with_nest(&key, make, |nest| unsafe { nest.run(&key, &call) });
}

/// Runs an element-wise op on operands that have the elements of the result in order, or one element for all
/// positions.
///
/// # Safety
/// At each operand's pointer are elements of its dtype, as many as the result has or one, and at `result` is room for
/// as many of its dtype. Nobody else uses it, but that operands of as wide elements may be there.
pub(crate) unsafe fn run_in_order(
    op: &Op,
    operands: &[InOrder],
    dtype: DType,
    result: *mut u8,
    elements: usize,
) {
    if elements == 0 {
        return;
    }
    let mut key = key_of(op, operands.iter().map(|operand| operand.dtype), dtype);
    let mut starts: SmallVec<[*const u8; OPERANDS]> = SmallVec::new();
    for (at, operand) in operands.iter().enumerate() {
        starts.push(operand.start);
        if operand.is_repeated && elements > 1 {
            key.repeated |= 1 << at;
        }
    }
    let call = OneOpCall { operands: &starts, result, elements, par: Par::Serial };
    // SAFETY: as the caller promises.
    let work = |nest: &OneOp| unsafe { nest.run(&key, &call) };
    with_nest(&key, || OneOp::in_order(op, &key, operands.len()), work);
}

/// Converts elements on this thread, as eager ops do.
///
/// # Safety
/// As for [`run_in_order`].
pub(crate) unsafe fn convert_in_order(
    (from, start): (DType, *const u8),
    (to, result): (DType, *mut u8),
    elements: usize,
) {
    let operand = InOrder { dtype: from, start, is_repeated: false };
    // SAFETY: as the caller promises.
    unsafe { run_in_order(&Op::AsType { dtype: to }, &[operand], to, result, elements) };
}

/// An operand of [`run_in_order`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder {
    pub(crate) dtype: DType,
    pub(crate) start: *const u8,
    /// Whether one element is for all positions.
    pub(crate) is_repeated: bool,
}

/// A region of one op, whose operands are its inputs.
pub(super) fn region_of(op: Op, operands: Vec<TensorType>, result: TensorType) -> Region {
    let (mut graph, mut inputs) = (Graph::new(), Values::new());
    for (index, ty) in operands.iter().enumerate() {
        inputs.push(graph.parameter(index, ty.clone()));
    }
    let results = graph.push_reserved(op, inputs, Outputs::from_elem(result, 1));
    let count = operands.len();
    Region::new(graph, operands, count, results)
}

fn unnamed(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType { dtype, shape: Shape::new(sizes) }
}

/// The key of operands in order.
fn key_of(op: &Op, operands: impl Iterator<Item = DType>, result: DType) -> OneOpKey {
    let op = elementwise(op).expect("the op is element-wise");
    let mut dtypes = [DType::Bool; OPERANDS + 1];
    dtypes.iter_mut().zip(operands).for_each(|(to, dtype)| *to = dtype);
    dtypes[OPERANDS] = result;
    OneOpKey { op, dtypes, repeated: 0, is_streaming: false, axes: SmallVec::new() }
}
