//! A backend of one's own, in fifty lines: it computes on the CPU, and counts the operations.
//!
//! `cargo run --release -p defn --example own_backend`
//!
//! A backend stores tensors and runs one operation at a time; its buffers say which backend they belong to. The evaluator
//! runs whole functions on it, so that control flow, gradients and hooks work without a line here. Prints the operations of
//! one gradient.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use defn::core::backend::{Backend, Buffer, BufferState, Buffers, HostMemory, Operand};
use defn::core::form;
use defn::core::op::{Block, Op};
use defn::prelude::*;
use defn::{Result, TensorType};

#[derive(Debug)]
struct Counting {
    cpu: Arc<dyn Backend>,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    this: Weak<Counting>,
}

/// A buffer of the CPU that belongs to this backend.
#[derive(Debug)]
struct Counted {
    backend: Arc<dyn Backend>,
    inner: Arc<dyn Buffer>,
}

impl Counting {
    fn new() -> Result<Arc<Counting>> {
        let cpu = defn::default_backend()?;
        Ok(Arc::new_cyclic(|this| Counting { cpu, counts: Mutex::default(), this: this.clone() }))
    }

    fn own(&self, inner: Arc<dyn Buffer>) -> Arc<dyn Buffer> {
        Arc::new(Counted { backend: self.this.upgrade().expect("it lives while it is used"), inner })
    }
}

impl Backend for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        Ok(self.own(self.cpu.from_host(ty, bytes)?))
    }

    fn run(
        &self,
        op: &Op,
        operands: defn::core::backend::Operands,
        outputs: &[TensorType],
    ) -> Result<Buffers> {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(form::name(op)).or_default() += 1;
        let inner = |operand: Operand| {
            let counted =
                operand.buffer.as_any().downcast_ref::<Counted>().expect("a buffer of this backend");
            Operand { buffer: counted.inner.clone(), ..operand }
        };
        let results = self.cpu.run(op, operands.into_iter().map(inner).collect(), outputs)?;
        Ok(results.into_iter().map(|buffer| self.own(buffer)).collect())
    }

    fn has_native(&self, block: &Block) -> bool {
        self.cpu.has_native(block)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Buffer for Counted {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        self.inner.read(out)
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        self.inner.host()
    }

    fn state(&self) -> BufferState {
        self.inner.state()
    }

    fn deallocate(&self) -> Result<bool> {
        self.inner.deallocate()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

fn main() -> Result<()> {
    let counting = Counting::new()?;
    let backend: Arc<dyn Backend> = counting.clone();
    let slope = jit(|x: Expr| grad(&x, |x| for_(x, 0..3, |x, _| x.sin() * 2.0).sum(Axes::All, false)))
        .with_compiler(Arc::new(defn::core::evaluator::Evaluator::new(backend.clone())));

    let x = tensor![0.5, 1.0]?;
    let on_counting = slope.call(x.backend_copy(&backend)?)?;
    let on_cpu =
        jit(|x: Expr| grad(&x, |x| for_(x, 0..3, |x, _| x.sin() * 2.0).sum(Axes::All, false))).call(x)?;
    assert_eq!(on_counting.to_vec::<f32>()?, on_cpu.to_vec::<f32>()?);

    let counts = counting.counts.lock().unwrap_or_else(PoisonError::into_inner);
    println!("sin {}, cos {}", counts["sin"], counts["cos"]);
    Ok(())
}
