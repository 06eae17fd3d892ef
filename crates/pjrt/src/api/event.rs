//! Events: when something that the device does is done.

use super::Api;
use crate::error::Result;
use crate::ffi::{self, Struct};

/// Something that a device does, and whether it is done.
pub struct Event {
    api: Api,
    raw: *mut ffi::Event,
}

// SAFETY: the interface lets any thread ask and wait for an event.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Takes over an event.
    ///
    /// # Safety
    /// The event is null, which is one that is done, or live and owned by the caller, who gives it away.
    pub(super) unsafe fn own(api: Api, raw: *mut ffi::Event) -> Event {
        Event { api, raw }
    }

    /// Whether it is done; it may have failed.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn is_ready(&self) -> Result<bool> {
        if self.raw.is_null() {
            return Ok(true);
        }
        let mut args = ffi::EventIsReadyArgs::new();
        args.event = self.raw;
        // SAFETY: the event is live as long as `self`.
        unsafe { self.api.call(&mut args) }?;
        Ok(args.is_ready)
    }

    /// Blocks the thread until it is done.
    ///
    /// # Errors
    /// What the device failed with.
    pub fn wait(&self) -> Result<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let mut args = ffi::EventAwaitArgs::new();
        args.event = self.raw;
        // SAFETY: the event is live as long as `self`.
        unsafe { self.api.call(&mut args) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            let mut args = ffi::EventDestroyArgs::new();
            args.event = self.raw;
            // SAFETY: the event is owned and not used after; what it stands for goes on without it.
            unsafe { self.api.free(&mut args) };
        }
    }
}
