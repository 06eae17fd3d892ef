//! Functions of libraries that programs of a plugin call by name, as custom calls.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::Api;
use crate::ffi;

/// A function that programs may call by its name, with the interface of XLA's custom calls (`XLA_FFI_Handler`).
#[derive(Clone, Debug)]
pub struct CustomCall {
    name: String,
    handler: NonNull<c_void>,
}

// SAFETY: it is the address of code, which programs call from any thread.
unsafe impl Send for CustomCall {}
// SAFETY: as above.
unsafe impl Sync for CustomCall {}

impl CustomCall {
    /// The function at an address, under a name.
    ///
    /// # Safety
    /// The address is that of a function of type `XLA_FFI_Handler` of XLA's C interface, which stays loaded until the
    /// process ends.
    pub unsafe fn new(name: impl Into<String>, handler: NonNull<c_void>) -> CustomCall {
        CustomCall { name: name.into(), handler }
    }

    /// The name by which programs call it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Api {
    /// Registers a library's function for the devices of a platform; returns whether programs can call it.
    pub fn register_library_call(self, platform: &str, call: &CustomCall) -> bool {
        // SAFETY: the creator of the value guarantees that this is such a function.
        let handler = unsafe { std::mem::transmute::<NonNull<c_void>, ffi::Handler>(call.handler) };
        self.register_custom_call(platform, &call.name, handler)
    }

    /// Registers a function that programs for a platform call by its name; returns whether the plugin takes it.
    ///
    /// A plugin keeps the functions in one table for all its clients, which XLA does not lock: a registration beside
    /// another one, or beside a program that looks a function up, reads memory that was freed. So each function is
    /// registered once, with the first client, which has no program yet.
    pub(super) fn register_custom_call(self, platform: &str, name: &str, handler: ffi::Handler) -> bool {
        let mut extensions = self.extension_list();
        let Some((_, extension)) = extensions.find(|(kind, _)| *kind == ffi::CUSTOM_CALLS) else {
            return false;
        };
        // SAFETY: an extension of this kind begins with these fields, as far as its size says.
        let register = unsafe {
            let extension = extension.cast::<ffi::CustomCallExtension>();
            let end = offset_of!(ffi::CustomCallExtension, register) + size_of::<usize>();
            if (*extension).base.struct_size < end { None } else { (*extension).register }
        };
        let Some(register) = register else { return false };
        let key = Registration { register: register as usize, platform: platform.into(), name: name.into() };
        let mut registrations = REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, is_taken)) = registrations.iter().find(|(known, _)| *known == key) {
            return *is_taken;
        }
        let mut args = ffi::RegisterArgs {
            struct_size: size_of::<ffi::RegisterArgs>(),
            name: name.as_ptr().cast(),
            name_size: name.len(),
            handler,
            platform: platform.as_ptr().cast(),
            platform_size: platform.len(),
            traits: 0,
        };
        // SAFETY: the arguments live across the call. A plugin that expects more of them returns an error, which is
        // freed.
        let is_taken = unsafe {
            let error = register(&mut args);
            self.check("PJRT_FFI_Register_Handler", error).is_ok()
        };
        registrations.push((key, is_taken));
        is_taken
    }
}

/// A function under a name of a platform.
#[derive(PartialEq, Eq)]
struct Registration {
    /// The address of the function that registers, which identifies the loaded library.
    register: usize,
    platform: String,
    name: String,
}

/// The registrations so far, and whether the plugin took each.
static REGISTRATIONS: Mutex<Vec<(Registration, bool)>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests;
