//! The host functions that a program calls.

use std::sync::Arc;

use super::Backend;
use crate::error::{ErrorKind, Result};
use crate::op::UserBlockOp;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// The host functions of one run, by the slot numbers in hook nodes.
pub trait Hooks {
    /// Called with the values of a hook, in program order.
    ///
    /// # Errors
    /// The host function's; the run stops with it.
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()>;

    /// Computes the results of a host function: one tensor for each of `outputs`, of its type and on any
    /// backend.
    ///
    /// # Errors
    /// The host function's; the run stops with it. Without host functions, [`ErrorKind::NoHostFunction`].
    fn compute(&self, slot: usize, _values: &[Tensor], _outputs: &[TensorType]) -> Result<Vec<Tensor>> {
        Err(ErrorKind::NoHostFunction { slot }.into())
    }

    /// Runs the native form of a user's block: one tensor for each of `outputs`, of its type and on any
    /// backend. The values are the block's arguments, then its captures. None where the backend has no native
    /// form; only backends that are written in the host language have any. The caller then runs the default.
    ///
    /// # Errors
    /// The native form's; the run stops with it.
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
