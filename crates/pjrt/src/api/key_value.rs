//! The callbacks by which a plugin exchanges data with the clients of its name in other processes.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::Code;
use crate::ffi;
use crate::store::{Member, StoreError};

/// The part of one client in the key-value store: its keys have a prefix.
pub(crate) struct KeyValues {
    member: Arc<Member>,
    client: String,
    requests: AtomicUsize,
}

impl KeyValues {
    /// The store for the client of this name. It lives as long as the process, because a plugin may use it until then.
    pub fn leak(member: Arc<Member>, client: &str) -> &'static KeyValues {
        Box::leak(Box::new(KeyValues { member, client: client.to_owned(), requests: AtomicUsize::new(0) }))
    }

    /// How often the plugin has used it.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Sets the callbacks for a client.
    pub(super) fn set(&'static self, args: &mut ffi::ClientCreateArgs) {
        let this = ptr::from_ref(self).cast_mut().cast::<c_void>();
        args.kv_get_callback = Some(get);
        args.kv_try_get_callback = Some(try_get);
        args.kv_put_callback = Some(put);
        (args.kv_get_user_arg, args.kv_try_get_user_arg, args.kv_put_user_arg) = (this, this, this);
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        [self.client.as_bytes(), b"/", key].concat()
    }
}

/// A key or value of the plugin.
///
/// # Safety
/// `start` is null, or points to `size` bytes that outlive the use of the result.
unsafe fn bytes<'a>(start: *const c_char, size: usize) -> &'a [u8] {
    // SAFETY: guaranteed by the caller.
    unsafe { super::list(start.cast::<u8>(), size) }
}

/// Answers a request of a plugin: null, or the error object that the plugin makes of an error.
///
/// # Safety
/// `user_arg` is what [`KeyValues::set`] gave to the plugin, and `callback_error` is null or points to the plugin's
/// function.
unsafe fn answer<T>(
    user_arg: *mut c_void,
    callback_error: *const ffi::CallbackError,
    request: impl FnOnce(&KeyValues) -> Result<T, StoreError>,
    give: impl FnOnce(T) -> Result<(), &'static str>,
) -> *mut ffi::PjrtError {
    // SAFETY: it points to a `KeyValues` that is never freed.
    let this = unsafe { &*user_arg.cast::<KeyValues>() };
    this.requests.fetch_add(1, Ordering::Relaxed);
    // A panic must not reach the plugin.
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let value = request(this).map_err(|error| (error.code(), error.to_string()))?;
        give(value).map_err(|message| (Code::ResourceExhausted, message.to_owned()))
    }));
    let panicked = |_| Err((Code::Internal, "the key-value store panicked".to_owned()));
    let Err((code, message)) = answered.unwrap_or_else(panicked) else { return ptr::null_mut() };
    // SAFETY: guaranteed by the caller; without the function no error can be made.
    let Some(make) = (unsafe { callback_error.as_ref() }) else { return ptr::null_mut() };
    // SAFETY: the function copies the text.
    unsafe { make(code.to_raw(), message.as_ptr().cast::<c_char>(), message.len()) }
}

/// Copies a value into memory that the plugin frees by [`free_value`].
fn give(
    bytes: &[u8],
    value: &mut *mut c_char,
    size: &mut usize,
    free: &mut Option<ffi::ValueDeleter>,
) -> Result<(), &'static str> {
    // SAFETY: the size is not zero, for which the result could be null.
    let memory = unsafe { malloc(bytes.len().max(1)) };
    if memory.is_null() {
        return Err("no memory is left for a value of the key-value store");
    }
    // SAFETY: the memory has that many bytes, and is new.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast::<u8>(), bytes.len()) };
    (*value, *size) = (memory.cast::<c_char>(), bytes.len());
    *free = Some(free_value);
    Ok(())
}

// The plugin's deleter gets no size, which Rust's allocator would need.
// SAFETY: the declarations match the C library.
unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// Frees a value.
///
/// # Safety
/// The value is one of [`give`], and is freed once.
unsafe extern "C" fn free_value(value: *mut c_char) {
    // SAFETY: guaranteed by the caller.
    unsafe { free(value.cast::<c_void>()) };
}

/// The callback that waits for a value.
///
/// # Safety
/// The plugin's arguments are live, and are those that the API describes.
unsafe extern "C" fn get(args: *mut ffi::KeyValueGetArgs) -> *mut ffi::PjrtError {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let args = &mut *args;
        let (key, timeout) = (bytes(args.key, args.key_size), wait(args.timeout_in_ms));
        let (value, size, free) = (&mut args.value, &mut args.value_size, &mut args.value_deleter_callback);
        answer(
            args.user_arg,
            args.callback_error,
            |this| this.member.get(&this.key(key), timeout),
            |bytes| give(&bytes, value, size, free),
        )
    }
}

/// The callback for a value that is there.
///
/// # Safety
/// As for [`get`].
unsafe extern "C" fn try_get(args: *mut ffi::KeyValueTryGetArgs) -> *mut ffi::PjrtError {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let args = &mut *args;
        let key = bytes(args.key, args.key_size);
        let (value, size, free) = (&mut args.value, &mut args.value_size, &mut args.value_deleter_callback);
        answer(
            args.user_arg,
            args.callback_error,
            |this| this.member.try_get(&this.key(key)),
            |bytes| give(&bytes, value, size, free),
        )
    }
}

/// The callback that puts a value.
///
/// # Safety
/// As for [`get`].
unsafe extern "C" fn put(args: *mut ffi::KeyValuePutArgs) -> *mut ffi::PjrtError {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let args = &*args;
        let (key, value) = (bytes(args.key, args.key_size), bytes(args.value, args.value_size));
        answer(args.user_arg, args.callback_error, |this| this.member.put(&this.key(key), value), |()| Ok(()))
    }
}

/// The time that a plugin waits; it is not negative.
fn wait(milliseconds: c_int) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
