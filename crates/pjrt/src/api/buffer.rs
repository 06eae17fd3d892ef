//! Buffers: tensors on a device.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::{Client, Device, Event, Memory, forks, list};
use crate::element::ElementType;
use crate::error::{Error, Result};
use crate::ffi::{self, Struct};

/// A tensor on a device. It may not be computed yet: reading waits.
pub struct Buffer {
    client: Client,
    raw: *mut ffi::Buffer,
    /// Held while views are counted, which plugins do without a lock of their own.
    views: Mutex<()>,
}

// SAFETY: the interface lets any thread use a buffer.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut args = ffi::BufferDestroyArgs::new();
        args.buffer = self.raw;
        // SAFETY: owned and not used after; the plugin keeps the memory as long as running programs need it.
        unsafe { self.client.api().free(&mut args) };
    }
}

impl Buffer {
    /// Takes over a buffer.
    ///
    /// # Safety
    /// The buffer is live, belongs to this client, and is the caller's, who gives it away.
    pub(super) unsafe fn own(client: &Client, raw: *mut ffi::Buffer) -> Buffer {
        Buffer { client: client.clone(), raw, views: Mutex::new(()) }
    }

    pub(super) fn raw(&self) -> *mut ffi::Buffer {
        self.raw
    }

    /// The client that it belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The type of its elements.
    ///
    /// # Errors
    /// The plugin's own, or a type that this crate does not know.
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
    /// The plugin's own.
    pub fn dims(&self) -> Result<Vec<i64>> {
        let mut args = ffi::BufferDimensionsArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and the sizes live as long as it.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(list(args.dims, args.num_dims).to_vec())
        }
    }

    /// The bytes that it takes on the device, padding included.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn device_bytes(&self) -> Result<usize> {
        let mut args = ffi::BufferOnDeviceSizeInBytesArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.on_device_size_in_bytes)
    }

    /// The device that it is on.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn device(&self) -> Result<Device> {
        let mut args = ffi::BufferDeviceArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and its device belongs to its client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Device::of(&self.client, args.device))
        }
    }

    /// The memory that it is in.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn memory(&self) -> Result<Memory> {
        let mut args = ffi::BufferMemoryArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live, and its memory belongs to its client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Memory::of(&self.client, args.memory))
        }
    }

    /// When it is computed.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn ready(&self) -> Result<Event> {
        let mut args = ffi::BufferReadyEventArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live; the event is ours.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Event::own(self.client.api(), args.event))
        }
    }

    /// Frees the memory now; the handle stays, and every use of it is an error.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn delete(&self) -> Result<()> {
        let mut args = ffi::BufferDeleteArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live; the plugin itself refuses its use from here on.
        unsafe { self.client.api().call(&mut args) }
    }

    /// Whether its memory was freed, or given away to a program.
    ///
    /// # Errors
    /// The plugin's own.
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
    /// A slice of another size, what the computation failed with, or the plugin's own.
    pub fn read(&self, into: &mut [u8]) -> Result<()> {
        let (element, dims) = (self.element_type()?, self.dims()?);
        if element.bytes(&dims) != Some(into.len()) {
            return Err(Error::Size { given: into.len(), element, dims });
        }
        let mut args = ffi::BufferToHostBufferArgs::new();
        args.src = self.raw;
        args.dst = into.as_mut_ptr().cast::<c_void>();
        args.dst_size = into.len();
        // SAFETY: the buffer is live; the slice is as long as the elements, and borrowed until the event says
        // that they were written, for which this waits even when it fails.
        unsafe {
            self.client.api().call(&mut args)?;
            Event::own(self.client.api(), args.event).wait()
        }
    }

    /// Waits for the elements and copies the first bytes of them. Only for plain row-major layouts, which is what
    /// programs with default layouts give.
    ///
    /// # Errors
    /// More bytes than there are, what the computation failed with, or the plugin's own.
    pub fn read_start(&self, into: &mut [u8]) -> Result<()> {
        if self.device_bytes()? < into.len() {
            return Err(Error::Size { given: into.len(), element: self.element_type()?, dims: self.dims()? });
        }
        let mut args = ffi::BufferCopyRawToHostArgs::new();
        args.buffer = self.raw;
        args.dst = into.as_mut_ptr().cast::<c_void>();
        args.transfer_size = into.len().try_into().unwrap_or(i64::MAX);
        // SAFETY: the buffer is live and has as many bytes; the slice is borrowed until the event says that they
        // were written.
        unsafe {
            self.client.api().call(&mut args)?;
            Event::own(self.client.api(), args.event).wait()
        }
    }

    /// A copy on another device of this client.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn copy_to(&self, device: &Device) -> Result<Buffer> {
        let mut args = ffi::BufferCopyToDeviceArgs::new();
        (args.buffer, args.dst_device) = (self.raw, device.raw());
        // SAFETY: both are live; the new buffer is ours and belongs to the device's client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(Buffer::own(device.client(), args.dst_buffer))
        }
    }

    /// Whether the elements are in memory that the host's processors read, as they read it.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn is_on_host(&self) -> Result<bool> {
        let mut args = ffi::BufferIsOnCpuArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.is_on_cpu)
    }

    /// Where the elements lie in the device's memory, for whom another library reads them.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn pointer(&self) -> Result<usize> {
        let mut args = ffi::BufferUnsafePointerArgs::new();
        args.buffer = self.raw;
        // SAFETY: the buffer is live. The address alone does nothing; whoever follows it answers for that.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.buffer_pointer)
    }
}

/// The elements of a buffer in memory of the host, read where they lie for as long as this is there.
pub(crate) struct HostView<H: AsRef<Buffer>> {
    holder: H,
    start: *const u8,
    len: usize,
    /// Of the process that counts the view.
    forks: u32,
}

// SAFETY: the memory is only read, and stays as it is; the interface lets any thread use a buffer.
unsafe impl<H: AsRef<Buffer> + Send> Send for HostView<H> {}
// SAFETY: as above.
unsafe impl<H: AsRef<Buffer> + Sync> Sync for HostView<H> {}

impl<H: AsRef<Buffer>> HostView<H> {
    /// Waits for the first `len` bytes of a buffer's elements; nothing where the host does not read its memory.
    ///
    /// # Errors
    /// What the computation failed with, or the plugin's own.
    pub fn of(holder: H, len: usize) -> Result<Option<HostView<H>>> {
        let buffer = holder.as_ref();
        if !buffer.is_on_host()? || buffer.device_bytes()? < len {
            return Ok(None);
        }
        let mut args = ffi::BufferIncreaseExternalReferenceCountArgs::new();
        args.buffer = buffer.raw;
        let counting = buffer.views.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffer is live. From here on the plugin neither frees nor moves the memory, nor gives it to a
        // program; the view takes that back when it is dropped.
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
        // SAFETY: the elements are computed, in memory of the host that is as long, is not null, and stays unwritten
        // and where it is while the view holds the buffer by its count.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<H: AsRef<Buffer>> Drop for HostView<H> {
    fn drop(&mut self) {
        if self.forks != forks() {
            // A fork has none of the plugin's threads, one of which may hold a lock for ever.
            return;
        }
        let buffer = self.holder.as_ref();
        let mut args = ffi::BufferDecreaseExternalReferenceCountArgs::new();
        args.buffer = buffer.raw;
        let _counting = buffer.views.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffer is live, and the view has counted itself once.
        unsafe { buffer.client.api().free(&mut args) };
    }
}
