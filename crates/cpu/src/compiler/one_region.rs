//! A region that an op by itself is defined by, compiled.

use std::sync::Arc;

use defn_core::backend::{Hooks, Poll};
use defn_core::region::Region;
use defn_core::{Result, Tensor, pass};

use super::plan::Plan;
use super::run::{PlanBuffers, PlanRun};
use crate::backend::cpu_backend;

/// The plan of a region with one result, whose operands have no other owners and none of which is given away.
pub(crate) struct OneRegion(Plan);

/// A host that is only asked whether to go on.
struct Asked<'p>(Poll<'p>);

impl Hooks for Asked<'_> {
    fn call(&self, slot: usize, _values: &[Tensor]) -> Result<()> {
        unreachable!("no op shows values to a host, in slot {slot}")
    }

    fn poll(&self) -> Result<()> {
        (self.0)()
    }
}

impl OneRegion {
    /// # Errors
    /// Those of compilation.
    pub(crate) fn new(region: Region) -> Result<OneRegion> {
        let backend = cpu_backend();
        let expanded = Arc::new(pass::expand(&Arc::new(region), &backend)?);
        Ok(OneRegion(Plan::new(expanded, &backend, &[None])?))
    }

    /// The bytes that a run needs beside operands and result.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.0.arena
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of the ops, and those of `poll`.
    ///
    /// # Safety
    /// At the pointers are the elements of the operands, which are only read, and room for those of the result; at
    /// `scratch` are as many bytes as [`OneRegion::scratch_bytes`] says, aligned to lines of the cache. Nobody else uses
    /// either meanwhile.
    pub(crate) unsafe fn run(
        &self,
        operands: &[*mut u8],
        result: *mut u8,
        scratch: *mut u8,
        poll: Poll<'_>,
    ) -> Result<()> {
        let run = PlanRun { backend: &cpu_backend(), hooks: &Asked(poll), recorder: None };
        let buffers = PlanBuffers { arguments: operands, results: &[result], arena: scratch };
        // SAFETY: as the caller promises.
        unsafe { run.plan(&self.0, &buffers) }
    }
}
