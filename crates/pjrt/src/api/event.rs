//! Events: the completion of work on a device.

use std::ffi::c_void;

use super::Api;
use crate::error::Result;
use crate::ffi::{self, Struct};

/// The completion of work on a device.
pub struct Event {
    api: Api,
    raw: *mut ffi::Event,
}

// SAFETY: the PJRT C API allows any thread to query and await an event.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Takes ownership of an event.
    ///
    /// # Safety
    /// The event is null, which means already complete, or live and owned by the caller, who gives up ownership.
    pub(super) unsafe fn from_raw(api: Api, raw: *mut ffi::Event) -> Event {
        Event { api, raw }
    }

    /// Whether the work is complete; it may have failed.
    ///
    /// # Errors
    /// An error from the plugin.
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

    /// Calls a function when the work is complete or has failed: on a thread of the plugin, or immediately. The
    /// function must not panic.
    ///
    /// An error from the plugin; then the function is not called.
    pub fn on_ready(&self, then: impl FnOnce() + Send + 'static) -> Result<()> {
        if self.raw.is_null() {
            then();
            return Ok(());
        }
        let after = Box::into_raw(Box::new(After { api: self.api, then: Box::new(then) }));
        let mut args = ffi::EventOnReadyArgs::new();
        (args.event, args.callback, args.user_arg) =
            (self.raw, Some(call_after as ffi::OnReady), after.cast());
        // SAFETY: the event is live as long as `self`; the callback receives the pointer made for it, once.
        let called = unsafe { self.api.call(&mut args) };
        if called.is_err() {
            // SAFETY: the pointer came from a box, and the plugin does not use it.
            drop(unsafe { Box::from_raw(after) });
        }
        called
    }

    /// Blocks the thread until the work is complete.
    ///
    /// # Errors
    /// The error of the work on the device.
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

/// The function to call when an event is complete.
struct After {
    api: Api,
    then: Box<dyn FnOnce() + Send>,
}

/// Calls the function that was registered for an event.
unsafe extern "C" fn call_after(error: *mut ffi::PjrtError, after: *mut c_void) {
    // SAFETY: the plugin passes the pointer that it was given, once.
    let after = unsafe { Box::from_raw(after.cast::<After>()) };
    // SAFETY: the error is null, or ours to free. A caller that waits for the event gets the error there.
    let _ = unsafe { after.api.check("PJRT_Event_OnReady", error) };
    (after.then)();
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            let mut args = ffi::EventDestroyArgs::new();
            args.event = self.raw;
            // SAFETY: the event is owned, and not used afterwards; the work continues without it.
            unsafe { self.api.free(&mut args) };
        }
    }
}
