//! The host functions that a program calls.

use std::sync::Arc;

use super::Backend;
use crate::error::{ErrorKind, Result};
use crate::op::UserBlockOp;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// The host functions of one run, by the slots that hook nodes name.
pub trait Hooks {
    /// Called with the values of a hook, in program order.
    ///
    /// # Errors
    /// The host function's; the run stops with it.
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()>;

    /// Called for what a host function makes of values: one tensor for each of `outputs`, of its type and anywhere.
    ///
    /// # Errors
    /// The host function's; the run stops with it. Without host functions, that there is none.
    fn compute(&self, slot: usize, _values: &[Tensor], _outputs: &[TensorType]) -> Result<Vec<Tensor>> {
        Err(ErrorKind::NoHostFunction { slot }.into())
    }

    /// What a user's block is on a backend that has a native form of it: one tensor for each of `outputs`, of its
    /// type and anywhere. The values are the block's arguments, then its captures. Nothing where the backend has
    /// none, which is so for every backend that is not the host language's: the default runs.
    ///
    /// # Errors
    /// What the native form fails with; the run stops with it.
    fn native(
        &self,
        _block: &UserBlockOp,
        _backend: &Arc<dyn Backend>,
        _values: &[Tensor],
        _outputs: &[TensorType],
    ) -> Result<Option<Vec<Tensor>>> {
        Ok(None)
    }

    /// Called between ops and at every trip of a loop, so that a run can be interrupted.
    ///
    /// # Errors
    /// The interruption; the run stops with it.
    fn poll(&self) -> Result<()> {
        Ok(())
    }
}

/// No host functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn call(&self, _: usize, _: &[Tensor]) -> Result<()> {
        Ok(())
    }
}
