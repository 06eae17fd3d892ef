//! Memory of tensors on the CPU: shared storage, and windows of it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use defn_core::backend::{Backend, Buffer, BufferState, Gone, HostMemory, SameDtypeOperand};
use defn_core::live::{self, Live, Memory};
use defn_core::op::Op;
use defn_core::{DType, ErrorKind, Location, Result, TensorType};

use crate::backend::{CpuBackend, cpu_backend, run_same_dtype, the_backend};
use crate::memory::Block;

/// Memory from our allocator, or borrowed from the host program.
pub(crate) struct Storage {
    owner: Owner,
}

enum Owner {
    /// Taken from the allocator.
    Allocated(Block),
    /// Kept alive by the handle, and never written.
    Borrowed(HostMemory),
}

impl Storage {
    /// Allocates uninitialised memory. `op` is for the message.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub(crate) fn allocate(op: &'static str, bytes: usize) -> Result<Storage> {
        let block = Block::new(bytes);
        let block = block.map_err(|available| out_of_memory(op, bytes, available))?;
        Ok(Storage { owner: Owner::Allocated(block) })
    }

    /// The first byte. Only the first `len` bytes may be accessed.
    pub(crate) fn start(&self) -> *const u8 {
        match &self.owner {
            Owner::Allocated(block) => block.start().cast_const(),
            Owner::Borrowed(memory) => memory.bytes().as_ptr(),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match &self.owner {
            Owner::Allocated(block) => block.len(),
            Owner::Borrowed(memory) => memory.bytes().len(),
        }
    }

    /// Whether the memory may be written.
    fn is_writable(&self) -> bool {
        match &self.owner {
            Owner::Allocated(_) => true,
            Owner::Borrowed(_) => false,
        }
    }

    /// The first byte for writing, for the only owner of the storage; None for borrowed memory.
    pub(crate) fn start_mut(&mut self) -> Option<*mut u8> {
        match &self.owner {
            Owner::Allocated(block) => Some(block.start()),
            Owner::Borrowed(_) => None,
        }
    }
}

#[cold]
fn out_of_memory(op: &'static str, requested: usize, available: usize) -> ErrorKind {
    match live::largest() {
        Some(live) => ErrorKind::OutOfMemoryBeside { op, requested, available, live },
        None => ErrorKind::OutOfMemory { op, requested, available },
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.owner {
            Owner::Allocated(_) => "ours",
            Owner::Borrowed(_) => "lent",
        };
        write!(f, "Storage({} bytes, {kind})", self.len())
    }
}

/// Initialised bytes of a storage, which the window keeps alive.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    storage: Arc<Storage>,
    offset: usize,
    len: usize,
}

impl Window {
    /// The bytes `offset..offset + len` of a storage.
    ///
    /// # Safety
    /// They are initialised, and nobody writes them while the window or a clone of it lives.
    ///
    /// # Panics
    /// When the storage is shorter.
    pub(crate) unsafe fn new(storage: Arc<Storage>, offset: usize, len: usize) -> Window {
        assert!(offset.checked_add(len).is_some_and(|end| end <= storage.len()), "a window of {storage:?}");
        Window { storage, offset, len }
    }

    /// A part of the window.
    ///
    /// # Panics
    /// When the window is shorter.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Window {
        self.clone().into_part(offset, len)
    }

    /// As [`Window::part`], but consumes the window.
    fn into_part(self, offset: usize, len: usize) -> Window {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "a part of {self:?}");
        Window { offset: self.offset + offset, len, ..self }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.storage.owner {
            // The slice is requested at each call: its stability is guaranteed by the lender, not by us.
            Owner::Borrowed(memory) => &memory.bytes()[self.offset..self.offset + self.len],
            Owner::Allocated(block) => {
                // SAFETY: the range is inside the storage and initialised, as `new` demands, and the storage lives as
                // long as the window; an empty range is aligned and not null.
                unsafe { std::slice::from_raw_parts(block.start().add(self.offset), self.len) }
            }
        }
    }

    /// The offset of the window in its storage.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The storage, if it has no other owner and may be written.
    pub(crate) fn into_unique(self) -> std::result::Result<Storage, Window> {
        let Window { storage, offset, len } = self;
        match Arc::try_unwrap(storage) {
            Ok(storage) if storage.is_writable() => Ok(storage),
            Ok(borrowed) => Err(Window { storage: Arc::new(borrowed), offset, len }),
            Err(storage) => Err(Window { storage, offset, len }),
        }
    }
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// A buffer of the CPU backend: a window of storage, and whether it is still there.
#[derive(Debug)]
pub struct CpuBuffer {
    slot: Mutex<Slot>,
    /// The size of the whole storage in bytes.
    storage_bytes: usize,
    /// The entry in the list of live tensors; only for large buffers.
    live_entry: OnceLock<Arc<Live>>,
}

#[derive(Debug)]
enum Slot {
    /// Initialised storage of which no window was requested yet. Most results of small ops are only read by other small
    /// ops, and so need no reference count.
    Own(Storage),
    Live(Window),
    Gone(Gone),
}

impl Slot {
    fn window(&mut self, op: &'static str) -> Result<Window> {
        if let Slot::Own(_) = self {
            self.share();
        }
        match self {
            Slot::Live(window) => Ok(window.clone()),
            Slot::Gone(gone) => Err(ErrorKind::BufferGone { op, gone: gone.clone() }.into()),
            Slot::Own(_) => unreachable!("it is shared"),
        }
    }

    /// Turns exclusively owned storage into a shared window.
    #[cold]
    fn share(&mut self) {
        // The temporary value is visible to no other thread.
        match std::mem::replace(self, Slot::Gone(Gone { how: "donated", by: None })) {
            Slot::Own(storage) => {
                let len = storage.len();
                *self = Slot::Live(Window { storage: Arc::new(storage), offset: 0, len });
            }
            other @ (Slot::Live(_) | Slot::Gone(_)) => *self = other,
        }
    }
}

/// The bytes of a buffer under its lock: nobody can free or donate them meanwhile.
pub(crate) struct LockedBytes<'a>(MutexGuard<'a, Slot>);

impl LockedBytes<'_> {
    /// The bytes; None if they were freed or donated.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match &*self.0 {
            // SAFETY: owned storage is initialised, and only the holder of the lock accesses it.
            Slot::Own(storage) => Some(unsafe { std::slice::from_raw_parts(storage.start(), storage.len()) }),
            Slot::Live(window) => Some(window.bytes()),
            Slot::Gone(_) => None,
        }
    }
}

impl CpuBuffer {
    /// A buffer of these bytes.
    pub(crate) fn new(window: Window) -> CpuBuffer {
        CpuBuffer {
            storage_bytes: window.storage.len(),
            slot: Mutex::new(Slot::Live(window)),
            live_entry: OnceLock::new(),
        }
    }

    /// A buffer of a whole storage.
    ///
    /// # Safety
    /// All its bytes are initialised.
    pub(crate) unsafe fn filled(storage: Storage) -> CpuBuffer {
        CpuBuffer {
            storage_bytes: storage.len(),
            slot: Mutex::new(Slot::Own(storage)),
            live_entry: OnceLock::new(),
        }
    }

    /// Locks the bytes for a short access; a thread that frees or donates them waits. Cheaper than
    /// [`CpuBuffer::window`]. None where another thread has the lock.
    pub(crate) fn lock_bytes(&self) -> Option<LockedBytes<'_>> {
        match self.slot.try_lock() {
            Ok(slot) => Some(LockedBytes(slot)),
            Err(TryLockError::Poisoned(slot)) => Some(LockedBytes(slot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A window of the bytes, which stay valid when the buffer is freed. `op` is for the message.
    ///
    /// # Errors
    /// When they are freed or donated.
    pub(crate) fn window(&self, op: &'static str) -> Result<Window> {
        self.lock().window(op)
    }

    /// Takes the storage and the offset of the window in it, if the storage has no other owner and may be written. The
    /// buffer is marked as donated then, else it is unchanged.
    ///
    /// # Errors
    /// When the bytes are freed or donated.
    pub(crate) fn take_unique(&mut self, op: &'static str) -> Result<Option<(Storage, usize)>> {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The buffer has no other owner, so that nobody can request the line of the donation.
        match std::mem::replace(slot, Slot::Gone(Gone { how: "donated", by: None })) {
            Slot::Own(storage) => Ok(Some((storage, 0))),
            Slot::Live(window) => {
                let offset = window.offset();
                match window.into_unique() {
                    Ok(storage) => Ok(Some((storage, offset))),
                    Err(window) => {
                        *slot = Slot::Live(window);
                        Ok(None)
                    }
                }
            }
            gone @ Slot::Gone(_) => {
                *slot = gone;
                slot.window(op).map(|_| None)
            }
        }
    }

    /// Moves the elements to a new buffer, and marks this one as donated.
    ///
    /// # Errors
    /// When they are already freed or donated.
    pub fn donate(&self) -> Result<CpuBuffer> {
        self.take_window("donate", Gone::donated()).map(CpuBuffer::new)
    }

    /// Takes the bytes for a run, and marks this buffer as donated by the line in `gone`.
    ///
    /// # Errors
    /// When they are already freed or donated.
    pub(crate) fn take_window(&self, op: &'static str, gone: Gone) -> Result<Window> {
        let mut slot = self.lock();
        let window = slot.window(op)?;
        *slot = Slot::Gone(gone);
        self.set_gone(true);
        Ok(window)
    }

    /// Gives back bytes that a run has not used.
    pub(crate) fn restore(&self, window: Window) {
        *self.lock() = Slot::Live(window);
        self.set_gone(false);
    }

    /// Updates the list of live tensors.
    fn set_gone(&self, is_gone: bool) {
        if let Some(live_entry) = self.live_entry.get() {
            live_entry.set_gone(is_gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        // No code panics while the lock is held, and the slot is valid at each moment.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer for CpuBuffer {
    fn backend(&self) -> Arc<dyn Backend> {
        cpu_backend()
    }

    fn backend_ref(&self) -> Option<&Arc<dyn Backend>> {
        Some(the_backend())
    }

    fn is_on(&self, backend: &Arc<dyn Backend>) -> bool {
        backend.as_any().is::<CpuBackend>()
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        let window = self.window("read")?;
        out.copy_from_slice(&window.bytes()[..out.len()]);
        Ok(())
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        Ok(Some(HostMemory::new(Arc::new(self.window("read")?))))
    }

    fn state(&self) -> BufferState {
        match &*self.lock() {
            Slot::Own(_) | Slot::Live(_) => BufferState::Live,
            Slot::Gone(gone) => BufferState::Gone(gone.clone()),
        }
    }

    fn deallocate(&self) -> Result<bool> {
        // This comes before the lock: the call may take the host language's own lock.
        let gone = Gone::freed();
        let mut slot = self.lock();
        match &*slot {
            Slot::Own(_) | Slot::Live(_) => {
                let freed = std::mem::replace(&mut *slot, Slot::Gone(gone));
                self.set_gone(true);
                // The lender of the memory may run code when it is released, and the lock must be free then.
                drop(slot);
                drop(freed);
                Ok(true)
            }
            Slot::Gone(_) => Ok(false),
        }
    }

    fn run_same_dtype(
        &self,
        op: &Op,
        operands: &[SameDtypeOperand<'_>],
        ty: &TensorType,
        to: DType,
    ) -> Option<Arc<dyn Buffer>> {
        run_same_dtype(op, operands, ty, to)
    }

    fn part(&self, offset: usize, len: usize) -> Option<Arc<dyn Buffer>> {
        let window = self.window("part").ok()?;
        Some(Arc::new(CpuBuffer::new(window.into_part(offset, len))))
    }

    fn list(&self, ty: &TensorType, line: fn() -> Option<Location>) {
        if self.storage_bytes < live::LARGE {
            return;
        }
        let Ok(window) = self.window("memory_report") else { return };
        let storage = &window.storage;
        let memory = Memory {
            start: storage.start().addr(),
            bytes: storage.len(),
            is_borrowed: !storage.is_writable(),
        };
        self.live_entry.get_or_init(|| live::list(ty, memory)).set_line(line);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Adopts host memory as a window without a copy if its elements are aligned, else copies it.
///
/// # Errors
/// When there is no memory for the copy.
pub(crate) fn adopt(memory: HostMemory, len: usize, align: usize) -> Result<Window> {
    let bytes = memory.bytes();
    assert!(bytes.len() >= len, "{} bytes of host memory for {len}", bytes.len());
    if bytes.as_ptr().addr().is_multiple_of(align) {
        let storage = Arc::new(Storage { owner: Owner::Borrowed(memory) });
        // SAFETY: a slice of bytes is initialised, and borrowed memory is never written.
        return Ok(unsafe { Window::new(storage, 0, len) });
    }
    copy("tensor", &bytes[..len])
}

/// A copy of bytes in memory of our allocator.
///
/// # Errors
/// When there is not enough memory.
pub(crate) fn copy(op: &'static str, bytes: &[u8]) -> Result<Window> {
    let mut storage = Storage::allocate(op, bytes.len())?;
    let start = storage.start_mut().expect("allocated memory is ours");
    // SAFETY: both ranges have as many bytes, and the new one overlaps nothing.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
    // SAFETY: the copy has initialised it.
    Ok(unsafe { Window::new(Arc::new(storage), 0, bytes.len()) })
}

/// A copy of bytes in memory of the CPU backend's allocator: it is aligned to 64 bytes, uses large pages where the
/// system has them, and is reused when it is freed. `op` is for the message.
///
/// ```
/// let copy = defn_cpu::host_copy("tensor", &[1, 2, 3])?;
/// assert_eq!(copy.bytes(), [1, 2, 3]);
/// # Ok::<(), defn_core::Error>(())
/// ```
///
/// # Errors
/// When there is not enough memory.
pub fn host_copy(op: &'static str, bytes: &[u8]) -> Result<HostMemory> {
    Ok(HostMemory::new(Arc::new(copy(op, bytes)?)))
}
