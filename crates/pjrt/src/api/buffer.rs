//! Buffers: tensors on a device.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::{Client, Device, Event, Memory, forks, list};
use crate::element::ElementType;
use crate::error::{Error, Result};
use crate::ffi::{self, Struct};

/// A tensor on a device. It may still be computing: reads wait for it.
pub struct Buffer {
    client: Client,
    raw: *mut ffi::Buffer,
    /// Locked while external references are counted, because plugins count them without a lock.
    views: Mutex<()>,
}

// SAFETY: the PJRT C API allows any thread to use a buffer.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut args = ffi::BufferDestroyArgs::new();
        args.buffer = self.raw;
        // SAFETY: owned, and not used afterwards; the plugin keeps the memory until running programs have finished with
        // it.
        unsafe { self.client.api().free(&mut args) };
    }
}

impl Buffer {
    /// Takes ownership of a buffer.
    ///
    /// # Safety
    /// The buffer is live, belongs to this client, and is owned by the caller, who gives up ownership.
    pub(super) unsafe fn from_raw(client: &Client, raw: *mut ffi::Buffer) -> Buffer {
        Buffer { client: client.clone(), raw, views: Mutex::new(()) }
    }

    pub(super) fn raw(&self) -> *mut ffi::Buffer {
        self.raw
    }

    /// The client that owns it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The type of its elements.
    ///
    /// # Errors
    /// An error from the plugin, or a type that this crate does not know.
    pub fn element_type(&self) -> Result<ElementType> {
        let mut args = ffi::BufferElementTypeArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        ElementType::from_raw(args.r#type)
    }

    /// The sizes of its axes.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn dims(&self) -> Result<Vec<i64>> {
        let mut args = ffi::BufferDimensionsArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and the sizes live as long as it.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(list(args.dims, args.num_dims).to_vec())
        }
    }

    /// Its size in bytes on the device, including padding.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn device_bytes(&self) -> Result<usize> {
        let mut args = ffi::BufferOnDeviceSizeInBytesArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.on_device_size_in_bytes)
    }

    /// The device that stores it.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn device(&self) -> Result<Device> {
        let mut args = ffi::BufferDeviceArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and its device belongs to its client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Device::of(&self.client, args.device))
        }
    }

    /// The memory that stores it.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn memory(&self) -> Result<Memory> {
        let mut args = ffi::BufferMemoryArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and its memory belongs to its client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Memory::of(&self.client, args.memory))
        }
    }

    /// The event of its computation.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn ready(&self) -> Result<Event> {
        let mut args = ffi::BufferReadyEventArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live; this side owns the event.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Event::from_raw(self.client.api(), args.event))
        }
    }

    /// Frees the memory now. The handle remains, and every further use of it is an error.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn delete(&self) -> Result<()> {
        let mut args = ffi::BufferDeleteArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live; the plugin itself rejects later uses.
        unsafe { self.client.api().call(&mut args) }
    }

    /// Whether its memory was freed or donated to a program.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn is_deleted(&self) -> Result<bool> {
        let mut args = ffi::BufferIsDeletedArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.is_deleted)
    }

    /// Waits for the elements and copies them, in row-major order.
    ///
    /// # Errors
    /// A slice of the wrong size, the error of the computation, or an error from the plugin.
    pub fn read(&self, into: &mut [u8]) -> Result<()> {
        let (element, dims) = (self.element_type()?, self.dims()?);
        if element.bytes(&dims) != Some(into.len()) {
            return Err(Error::Size { given: into.len(), element, dims });
        }
        let mut args = ffi::BufferToHostBufferArgs::new();
        args.src = self.raw;
        args.dst = into.as_mut_ptr().cast::<c_void>();
        args.dst_size = into.len();
        // SAFETY: the buffer is live; the slice is as long as the elements. It is borrowed until the event reports that
        // they were written, and this function waits for the event even if that fails.
        unsafe {
            self.client.api().call(&mut args)?;
            Event::from_raw(self.client.api(), args.event).wait()
        }
    }

    /// Waits for the elements and copies their first bytes. Valid only for dense row-major layouts, which are the
    /// layouts of results of programs with default layouts.
    ///
    /// # Errors
    /// More bytes than the buffer has, the error of the computation, or an error from the plugin.
    pub fn read_start(&self, into: &mut [u8]) -> Result<()> {
        if self.device_bytes()? < into.len() {
            return Err(Error::Size { given: into.len(), element: self.element_type()?, dims: self.dims()? });
        }
        let mut args = ffi::BufferCopyRawToHostArgs::new();
        args.buffer = self.raw;
        args.dst = into.as_mut_ptr().cast::<c_void>();
        args.transfer_size = into.len().try_into().unwrap_or(i64::MAX);
        // SAFETY: the buffer is live and has at least `into.len()` bytes; the slice is borrowed until the event reports
        // that they were written.
        unsafe {
            self.client.api().call(&mut args)?;
            Event::from_raw(self.client.api(), args.event).wait()
        }
    }

    /// A copy on another device of this client.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn copy_to(&self, device: &Device) -> Result<Buffer> {
        let mut args = ffi::BufferCopyToDeviceArgs::new();
        (args.buffer, args.dst_device) = (self.raw, device.raw());
        // SAFETY: both are live; this side owns the new buffer, which belongs to the device's client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Buffer::from_raw(device.client(), args.dst_buffer))
        }
    }

    /// Whether the elements are in memory that the host's processors can read directly.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn is_on_host(&self) -> Result<bool> {
        let mut args = ffi::BufferIsOnCpuArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.is_on_cpu)
    }

    /// The address of the elements in the device's memory, for other libraries.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn pointer(&self) -> Result<usize> {
        let mut args = ffi::BufferUnsafePointerArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live. The address alone is harmless; code that dereferences it needs its own safety
        // argument.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.buffer_pointer)
    }
}

/// A view of a buffer's elements in host memory, read in place. The memory stays valid as long as the view lives.
pub(crate) struct HostView<H: AsRef<Buffer>> {
    holder: H,
    start: *const u8,
    len: usize,
    /// The value of [`forks`] in the process that counted the view.
    forks: u32,
}

// SAFETY: the memory is read-only while the view lives; the PJRT C API allows any thread to use a buffer.
unsafe impl<H: AsRef<Buffer> + Send> Send for HostView<H> {}
// SAFETY: as above.
unsafe impl<H: AsRef<Buffer> + Sync> Sync for HostView<H> {}

impl<H: AsRef<Buffer>> HostView<H> {
    /// Waits for the first `len` bytes of a buffer's elements. `None` if the host cannot read the buffer's memory.
    ///
    /// # Errors
    /// The error of the computation, or an error from the plugin.
    pub fn of(holder: H, len: usize) -> Result<Option<HostView<H>>> {
        let buffer = holder.as_ref();
        if !buffer.is_on_host()? || buffer.device_bytes()? < len {
            return Ok(None);
        }
        let mut args = ffi::BufferIncreaseExternalReferenceCountArgs::new();
        args.buffer = buffer.raw;
        let counting = buffer.views.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffer is live. From here on the plugin does not free, move or donate the memory, until the drop
        // of the view undoes the count.
        unsafe { buffer.client.api().call(&mut args) }?;
        drop(counting);
        let mut view = HostView { holder, start: std::ptr::null(), len, forks: forks() };
        let buffer = view.holder.as_ref();
        buffer.ready()?.wait()?;
        view.start = std::ptr::with_exposed_provenance(buffer.pointer()?);
        Ok((!view.start.is_null()).then_some(view))
    }
}

impl<H: AsRef<Buffer>> AsRef<[u8]> for HostView<H> {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the elements are computed. They are in host memory of at least `len` bytes, not null, which is
        // neither written nor moved while the view holds its reference count on the buffer.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<H: AsRef<Buffer>> Drop for HostView<H> {
    fn drop(&mut self) {
        if self.forks != forks() {
            // A forked process has none of the plugin's threads, and one of those may hold a lock for ever.
            return;
        }
        let buffer = self.holder.as_ref();
        let mut args = ffi::BufferDecreaseExternalReferenceCountArgs::new();
        args.buffer = buffer.raw;
        let _counting = buffer.views.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffer is live, and the view has incremented the count once.
        unsafe { buffer.client.api().free(&mut args) };
    }
}
