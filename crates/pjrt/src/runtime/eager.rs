//! Eager ops: each is a program of one op, compiled once for each list of operand types.
//!
//! Windows take their starts as operands, and numbers are sent as elements, so that other values need no new program.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use defn_core::backend::{Buffers, Operand};
use defn_core::graph::{Graph, Value};
use defn_core::op::{Op, Starts};
use defn_core::region::Region;
use defn_core::shape::Sizes;
use defn_core::{DType, Result, Shape, TensorType, form};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::buffer::{Elements, PjrtBuffer};
use super::live::TensorInfo;
use super::program_cache::MAX_PROGRAMS;
use super::programs::Compiled;
use super::{CompilerOptions, PjrtBackend, Runtime, failure};
use crate::api::Buffer;
use crate::lower::lower;
use crate::options::CompileOptions;

/// The programs of one client by op. It has at most as many entries as the cache of program texts, which has the same
/// programs. When it is full, for example because axis names keep changing, it is cleared; the next use of an op then
/// finds its program in that cache.
#[derive(Default)]
pub(super) struct Eager {
    by_hash: RwLock<FxHashMap<u64, Vec<Arc<OneOp>>>>,
}

/// A program of one op.
struct OneOp {
    op: Op,
    operands: SmallVec<[TensorType; 3]>,
    compiled: Arc<Compiled>,
    results: SmallVec<[Arc<TensorInfo>; 1]>,
}

impl OneOp {
    fn is(&self, op: &Op, operands: &[Operand]) -> bool {
        self.operands.iter().eq(operands.iter().map(|operand| &operand.ty)) && self.op == *op
    }
}

impl Eager {
    /// Runs an op on a device.
    pub fn run(
        &self,
        backend: &PjrtBackend,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
    ) -> Result<Buffers> {
        let name = form::name(op);
        let mut elements: SmallVec<[Arc<Elements>; 4]> = SmallVec::with_capacity(operands.len());
        for operand in &operands {
            let buffer =
                operand.buffer.as_any().downcast_ref::<PjrtBuffer>().expect("operands are on this backend");
            elements.push(buffer.elements(name)?);
        }
        let (dynamic_op, starts) = with_dynamic_starts(op, &operands, outputs);
        let op = dynamic_op.as_ref().unwrap_or(op);
        let mut types = operands;
        for start in starts {
            let ty = TensorType { dtype: DType::S64, shape: Shape::scalar() };
            let buffer = backend.copy_from_host(name, &ty, &(start as i64).to_ne_bytes())?;
            types.push(Operand { ty, buffer: backend.wrap(buffer.clone()) });
            elements.push(buffer);
        }
        let runtime = backend.runtime();
        let program = self.program(runtime, op, &types, outputs)?;
        drop(types);
        let buffers = runtime.execute(name, &program.compiled, &elements, &[], backend.device_id())?;
        let known_computed = elements.iter().all(|elements| elements.is_known_computed())
            && program.compiled.is_prompt(&buffers);
        let results = buffers.into_iter().zip(&program.results);
        let result = |(raw, info): (Buffer, &Arc<TensorInfo>)| {
            Elements::new(runtime, raw, info.recreated(), known_computed)
        };
        Ok(results.map(result).map(|elements| backend.wrap(elements)).collect())
    }

    /// Drops the programs that nothing else holds.
    pub fn sweep(&self) {
        let mut dropped = Vec::new();
        let mut by_hash = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        by_hash.retain(|_, programs| {
            dropped.extend(programs.extract_if(.., |program| Arc::strong_count(&program.compiled) == 1));
            !programs.is_empty()
        });
        drop(by_hash);
    }

    fn program(
        &self,
        runtime: &'static Runtime,
        op: &Op,
        operands: &[Operand],
        outputs: &[TensorType],
    ) -> Result<Arc<OneOp>> {
        let mut hasher = FxHasher::default();
        op.hash(&mut hasher);
        for operand in operands {
            operand.ty.hash(&mut hasher);
        }
        let hash = hasher.finish();
        let find = |by_hash: &FxHashMap<u64, Vec<Arc<OneOp>>>| {
            by_hash.get(&hash)?.iter().find(|program| program.is(op, operands)).cloned()
        };
        if let Some(program) = find(&self.by_hash.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(program);
        }
        let program =
            lower(&single_op_region(op, operands)?, &[], runtime.hardware()).map_err(failure::lowering)?;
        let options = CompileOptions { portable: !runtime.is_single(), ..CompileOptions::default() };
        let folder = CompilerOptions::default().folder();
        let compiled = runtime.programs.get(form::name(op), runtime, &program, &options, folder.as_ref())?;
        let info = |ty: &TensorType| Arc::new(TensorInfo { ty: ty.clone(), location: None });
        let program = Arc::new(OneOp {
            op: op.clone(),
            operands: operands.iter().map(|operand| operand.ty.clone()).collect(),
            compiled,
            results: outputs.iter().map(info).collect(),
        });
        let mut by_hash = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = find(&by_hash) {
            return Ok(program);
        }
        if by_hash.len() >= MAX_PROGRAMS {
            by_hash.clear();
        }
        by_hash.entry(hash).or_default().push(program.clone());
        Ok(program)
    }
}

/// A slice op with constant starts as one that takes its starts as operands, and these starts: one program serves every
/// window.
fn with_dynamic_starts(op: &Op, operands: &[Operand], outputs: &[TensorType]) -> (Option<Op>, Sizes) {
    if outputs.iter().any(|ty| ty.size() == 0) || operands.iter().any(|operand| operand.ty.size() == 0) {
        return (None, SmallVec::new());
    }
    if let Op::Slice { starts: Starts::Static(starts), lengths, strides } = op {
        let (lengths, strides) = (lengths.clone(), strides.clone());
        return (Some(Op::Slice { starts: Starts::Dynamic, lengths, strides }), starts.clone());
    }
    if let Op::PutSlice { starts: Starts::Static(starts) } = op {
        return (Some(Op::PutSlice { starts: Starts::Dynamic }), starts.clone());
    }
    (None, SmallVec::new())
}

/// A graph of one op, applied to parameters.
fn single_op_region(op: &Op, operands: &[Operand]) -> Result<Region> {
    let mut graph = Graph::new();
    let inputs: Vec<TensorType> = operands.iter().map(|operand| operand.ty.clone()).collect();
    let parameters: SmallVec<[Value; 3]> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = graph.push(op.clone(), &parameters)?;
    let count = inputs.len();
    Ok(Region::new(graph, inputs, count, results))
}
