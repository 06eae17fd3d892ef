//! Events: when something that the device does is done.

use std::ffi::c_void;

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

    /// Calls a function when it is done or has failed: on a thread of the plugin's, or at once. The function must not
    /// panic.
    ///
    /// # Errors
    /// The plugin's own; then the function is not called.
    pub fn on_ready(&self, then: impl FnOnce() + Send + 'static) -> Result<()> {
        if self.raw.is_null() {
            then();
            return Ok(());
        }
        let after = Box::into_raw(Box::new(After { api: self.api, then: Box::new(then) }));
        let mut args = ffi::EventOnReadyArgs::new();
        (args.event, args.callback, args.user_arg) =
            (self.raw, Some(call_after as ffi::OnReady), after.cast());
        // SAFETY: the event is live as long as `self`; what it calls gets what it is made for, once.
        let called = unsafe { self.api.call(&mut args) };
        if called.is_err() {
            // SAFETY: it came from a box, and nobody else has it.
            drop(unsafe { Box::from_raw(after) });
        }
        called
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

/// What is called when an event is done.
struct After {
    api: Api,
    then: Box<dyn FnOnce() + Send>,
}

/// Calls what was left for an event.
unsafe extern "C" fn call_after(error: *mut ffi::PjrtError, after: *mut c_void) {
    // SAFETY: the plugin gives what it was given, once.
    let after = unsafe { Box::from_raw(after.cast::<After>()) };
    // SAFETY: the error is null, or ours to free. Whoever waits for the event is told of it there.
    let _ = unsafe { after.api.check("PJRT_Event_OnReady", error) };
    (after.then)();
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
