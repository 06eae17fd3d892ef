//! A backend on which every op returns a digest of itself and its operands: the results of two runs are equal
//! only if both applied the same ops to the same values.

use std::any::Any;
use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use defn_core::backend::{Backend, Buffer, Buffers, Checks, Executable, Hooks, HostMemory, NoHooks, Operand};
use defn_core::evaluator::run_op;
use defn_core::graph::Value;
use defn_core::op::{BinaryOp, Block, Op};
use defn_core::region::Region;
use defn_core::{DType, Result, Scalar, Tensor, TensorType};
use smallvec::SmallVec;

use super::Bytes;

/// The backend. The ops that bound loops are really computed: sums and comparisons of s32 scalars, and `and`.
#[derive(Debug)]
pub struct Digests;

pub fn digests() -> Arc<dyn Backend> {
    Arc::new(Digests)
}

impl Backend for Digests {
    fn name(&self) -> &str {
        "digests"
    }

    fn from_host(&self, _: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        Ok(Bytes::at(digests(), bytes.bytes().to_vec()))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        let operands: Vec<(TensorType, Vec<u8>)> = operands
            .iter()
            .map(|operand| {
                let mut bytes = vec![0; operand.ty.byte_size()];
                operand.buffer.read(&mut bytes).unwrap();
                (operand.ty.clone(), bytes)
            })
            .collect();
        let buffer = |(output, ty): (usize, &TensorType)| -> Arc<dyn Buffer> {
            let bytes = known(op, &operands, ty).unwrap_or_else(|| digest(&(op, &operands, output), ty));
            Bytes::at(digests(), bytes)
        };
        Ok(outputs.iter().enumerate().map(buffer).collect())
    }

    fn checks_operands(&self) -> bool {
        true
    }

    fn has_native(&self, _: &Block) -> bool {
        true
    }

    fn has_native_fold(&self, _: &Op) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn known(op: &Op, operands: &[(TensorType, Vec<u8>)], ty: &TensorType) -> Option<Vec<u8>> {
    if let Op::Constant(scalar) = op {
        return Some(scalar.to_bytes());
    }
    let (Op::Binary(op), [(a_ty, a), (b_ty, b)]) = (op, operands) else { return None };
    let scalar = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().unwrap());
    let counts = [a_ty, b_ty].iter().all(|ty| **ty == TensorType::scalar(DType::S32));
    let number = if *op == BinaryOp::ADD && counts {
        scalar(a).wrapping_add(scalar(b))
    } else if *op == BinaryOp::LESS && counts {
        i32::from(scalar(a) < scalar(b))
    } else if *op == BinaryOp::LOGICAL_AND && ty.shape.rank() == 0 {
        let is_true = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
        i32::from(is_true(a) && is_true(b))
    } else {
        return None;
    };
    Some(Scalar::new(ty.dtype, number).unwrap().to_bytes())
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Bytes of a type, derived from a hash of `of`. Half of all scalars are zero, so that predicates take both
/// values.
fn digest(of: &impl Hash, ty: &TensorType) -> Vec<u8> {
    // Both the hashed value and the result may have a million elements.
    let seed = hash(of);
    let word = |salt: usize| hash(&(seed, salt));
    let len = ty.byte_size();
    if ty.shape.rank() == 0 && word(0) % 2 == 0 {
        return vec![0; len];
    }
    (1..).flat_map(|salt| word(salt).to_ne_bytes()).take(len).collect()
}

/// A tensor of a type, derived from a seed.
pub fn seeded(ty: &TensorType, seed: usize) -> Tensor {
    Tensor::concrete(ty.clone(), Bytes::at(digests(), digest(&seed, ty)))
}

/// The bytes of tensors.
pub fn bytes(tensors: &[Tensor]) -> Vec<(TensorType, Vec<u8>)> {
    let one = |tensor: &Tensor| (tensor.ty().clone(), tensor.host_bytes("test").unwrap().bytes().to_vec());
    tensors.iter().map(one).collect()
}

/// Runs a region node by node, without simplification.
#[derive(Debug)]
pub struct Literally(pub Arc<Region>);

impl Executable for Literally {
    fn program(&self) -> &Arc<Region> {
        &self.0
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        let graph = self.0.graph();
        let mut values: Vec<Buffers> = Vec::new();
        for node in graph.nodes() {
            if let Op::Parameter { index, .. } = &node.op {
                let buffer = arguments[*index].require_buffer("test", "")?.clone();
                values.push(SmallVec::from_elem(buffer, 1));
                continue;
            }
            let operand = |value: &Value| Operand {
                ty: graph.ty(*value).clone(),
                buffer: values[value.node as usize][value.output as usize].clone(),
            };
            let operands = node.inputs.iter().map(operand).collect();
            values.push(run_op(backend, &node.op, operands, &node.outputs, hooks, Checks::default())?);
        }
        let result = |value: &Value| {
            let buffer = values[value.node as usize][value.output as usize].clone();
            Tensor::concrete(graph.ty(*value).clone(), buffer)
        };
        Ok(self.0.results().iter().map(result).collect())
    }
}

/// Records the values passed to hooks and host functions, in order.
#[derive(Default)]
pub struct Notes(pub RefCell<Vec<(usize, Vec<(TensorType, Vec<u8>)>)>>);

impl Hooks for Notes {
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()> {
        self.0.borrow_mut().push((slot, bytes(values)));
        NoHooks.call(slot, values)
    }

    fn compute(&self, slot: usize, values: &[Tensor], outputs: &[TensorType]) -> Result<Vec<Tensor>> {
        self.call(slot, values)?;
        // Calls also differ by their number: a host function may have state.
        let call = self.0.borrow().len();
        let make = |(output, ty): (usize, &TensorType)| {
            let bytes = digest(&(call, slot, bytes(values), output), ty);
            Tensor::concrete(ty.clone(), Bytes::at(digests(), bytes))
        };
        Ok(outputs.iter().enumerate().map(make).collect())
    }
}
