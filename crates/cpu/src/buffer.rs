//! Where tensors lie on the CPU: shared storage, and windows of it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use defn_core::backend::{Alike, Backend, Buffer, BufferState, Gone, HostMemory};
use defn_core::live::{self, Live, Memory};
use defn_core::op::Op;
use defn_core::{DType, ErrorKind, Location, Result, TensorType};

use crate::backend::{CpuBackend, cpu_backend, run_alike, the_backend};
use crate::memory::Block;

/// Memory of our own, or that somebody lends.
pub(crate) struct Storage {
    owner: Owner,
}

enum Owner {
    /// Taken from the allocator.
    Ours(Block),
    /// Kept alive, and never written.
    Lent(HostMemory),
}

impl Storage {
    /// Uninitialised memory of our own. `op` is for the message.
    ///
    /// # Errors
    /// When there is not enough.
    pub(crate) fn allocate(op: &'static str, bytes: usize) -> Result<Storage> {
        let block = Block::new(bytes);
        let block = block.map_err(|available| out_of_memory(op, bytes, available))?;
        Ok(Storage { owner: Owner::Ours(block) })
    }

    /// Where the memory begins. Only the first `len` bytes may be accessed.
    pub(crate) fn start(&self) -> *const u8 {
        match &self.owner {
            Owner::Ours(block) => block.start().cast_const(),
            Owner::Lent(memory) => memory.bytes().as_ptr(),
        }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match &self.owner {
            Owner::Ours(block) => block.len(),
            Owner::Lent(memory) => memory.bytes().len(),
        }
    }

    /// Whether the memory may be written at all.
    fn is_ours(&self) -> bool {
        match &self.owner {
            Owner::Ours(_) => true,
            Owner::Lent(_) => false,
        }
    }

    /// Where to write, for who holds the storage alone; nothing for lent memory.
    pub(crate) fn start_mut(&mut self) -> Option<*mut u8> {
        match &self.owner {
            Owner::Ours(block) => Some(block.start()),
            Owner::Lent(_) => None,
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
            Owner::Ours(_) => "ours",
            Owner::Lent(_) => "lent",
        };
        write!(f, "Storage({} bytes, {kind})", self.len())
    }
}

/// Initialised bytes of a storage, which they keep alive.
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
    /// They are initialised, and stay unwritten while the window or a clone of it lives.
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

    /// As [`Window::part`], of a window that is not used any more.
    fn into_part(self, offset: usize, len: usize) -> Window {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "a part of {self:?}");
        Window { offset: self.offset + offset, len, ..self }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.storage.owner {
            // Asked again each time: it is the lender's promise that the bytes stay, not ours.
            Owner::Lent(memory) => &memory.bytes()[self.offset..self.offset + self.len],
            Owner::Ours(block) => {
                // SAFETY: the range is inside the storage and initialised, as `new` demands, and the storage
                // lives as long as the window; an empty range is aligned and not null.
                unsafe { std::slice::from_raw_parts(block.start().add(self.offset), self.len) }
            }
        }
    }

    /// Where the window begins in its storage.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The storage, if nobody else holds it and it may be written.
    pub(crate) fn into_unique(self) -> std::result::Result<Storage, Window> {
        let Window { storage, offset, len } = self;
        match Arc::try_unwrap(storage) {
            Ok(storage) if storage.is_ours() => Ok(storage),
            Ok(lent) => Err(Window { storage: Arc::new(lent), offset, len }),
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
    /// The bytes of the storage, all of it.
    held: usize,
    /// The place among what is alive, for what holds much.
    listed: OnceLock<Arc<Live>>,
}

#[derive(Debug)]
enum Slot {
    /// Storage whose bytes are all initialised, and of which nobody was given a window yet: most results of small ops are
    /// only read by other small ops, and then need nothing that can be shared.
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

    /// Makes storage that the slot has alone a window of it.
    #[cold]
    fn share(&mut self) {
        // What stands there meanwhile is seen by nobody.
        match std::mem::replace(self, Slot::Gone(Gone { how: "donated", by: None })) {
            Slot::Own(storage) => {
                let len = storage.len();
                *self = Slot::Live(Window { storage: Arc::new(storage), offset: 0, len });
            }
            other @ (Slot::Live(_) | Slot::Gone(_)) => *self = other,
        }
    }
}

/// The bytes of a buffer, which nobody can take away while this is held.
pub(crate) struct Held<'a>(MutexGuard<'a, Slot>);

impl Held<'_> {
    /// The bytes; none where they are gone.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match &*self.0 {
            // SAFETY: a slot's own storage is initialised, and nobody else reaches it while the lock is held.
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
            held: window.storage.len(),
            slot: Mutex::new(Slot::Live(window)),
            listed: OnceLock::new(),
        }
    }

    /// A buffer of all bytes of a storage.
    ///
    /// # Safety
    /// They are initialised.
    pub(crate) unsafe fn filled(storage: Storage) -> CpuBuffer {
        CpuBuffer { held: storage.len(), slot: Mutex::new(Slot::Own(storage)), listed: OnceLock::new() }
    }

    /// The bytes for a moment, in which whoever wants to take them away waits: shorter than [`CpuBuffer::window`]. None where
    /// another thread is at them.
    pub(crate) fn held(&self) -> Option<Held<'_>> {
        match self.slot.try_lock() {
            Ok(slot) => Some(Held(slot)),
            Err(TryLockError::Poisoned(slot)) => Some(Held(slot.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A hold on the bytes, which freeing the buffer does not end. `op` is for the message.
    ///
    /// # Errors
    /// When they are gone.
    pub(crate) fn window(&self, op: &'static str) -> Result<Window> {
        self.lock().window(op)
    }

    /// The storage and where the window begins in it, if nobody else holds the storage and it may be written.
    /// The buffer says then that it was donated, else it is unchanged.
    ///
    /// # Errors
    /// When the bytes are gone.
    pub(crate) fn take_unique(&mut self, op: &'static str) -> Result<Option<(Storage, usize)>> {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nobody else has the buffer, so that nobody asks by which line.
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

    /// Gives the elements away: the new buffer has them, and this one says from now on that they were donated.
    ///
    /// # Errors
    /// When they are gone already.
    pub fn donate(&self) -> Result<CpuBuffer> {
        self.give_up("donate", Gone::donated()).map(CpuBuffer::new)
    }

    /// Takes the bytes for a run: from now on this buffer says that they were donated, by that line.
    ///
    /// # Errors
    /// When they are gone already.
    pub(crate) fn give_up(&self, op: &'static str, gone: Gone) -> Result<Window> {
        let mut slot = self.lock();
        let window = slot.window(op)?;
        *slot = Slot::Gone(gone);
        self.set_gone(true);
        Ok(window)
    }

    /// Gives bytes back that a run has not used up.
    pub(crate) fn restore(&self, window: Window) {
        *self.lock() = Slot::Live(window);
        self.set_gone(false);
    }

    /// Says in the list of what is alive whether the bytes are.
    fn set_gone(&self, is_gone: bool) {
        if let Some(listed) = self.listed.get() {
            listed.set_gone(is_gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        // Nothing can panic while the lock is held, and a slot is whole at every moment.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer for CpuBuffer {
    fn backend(&self) -> Arc<dyn Backend> {
        cpu_backend()
    }

    fn backend_lent(&self) -> Option<&Arc<dyn Backend>> {
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
        // Asked before the lock is held: the answer takes the host language's own.
        let gone = Gone::freed();
        let mut slot = self.lock();
        match &*slot {
            Slot::Own(_) | Slot::Live(_) => {
                let freed = std::mem::replace(&mut *slot, Slot::Gone(gone));
                self.set_gone(true);
                // Whoever lent the memory may run code of its own now, which must not find the lock held.
                drop(slot);
                drop(freed);
                Ok(true)
            }
            Slot::Gone(_) => Ok(false),
        }
    }

    fn run_alike(
        &self,
        op: &Op,
        operands: &[Alike<'_>],
        ty: &TensorType,
        to: DType,
    ) -> Option<Arc<dyn Buffer>> {
        run_alike(op, operands, ty, to)
    }

    fn part(&self, offset: usize, len: usize) -> Option<Arc<dyn Buffer>> {
        let window = self.window("part").ok()?;
        Some(Arc::new(CpuBuffer::new(window.into_part(offset, len))))
    }

    fn list(&self, ty: &TensorType, line: fn() -> Option<Location>) {
        if self.held < live::LARGE {
            return;
        }
        let Ok(window) = self.window("memory_report") else { return };
        let storage = &window.storage;
        let memory =
            Memory { start: storage.start().addr(), bytes: storage.len(), is_borrowed: !storage.is_ours() };
        self.listed.get_or_init(|| live::list(ty, memory)).made_by(line);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Keeps host memory as a window without a copy where its elements are aligned, else copies it.
///
/// # Errors
/// When there is no memory for the copy.
pub(crate) fn adopt(memory: HostMemory, len: usize, align: usize) -> Result<Window> {
    let bytes = memory.bytes();
    assert!(bytes.len() >= len, "{} bytes of host memory for {len}", bytes.len());
    if bytes.as_ptr().addr().is_multiple_of(align) {
        let storage = Arc::new(Storage { owner: Owner::Lent(memory) });
        // SAFETY: a slice of bytes is initialised, and lent memory is never written.
        return Ok(unsafe { Window::new(storage, 0, len) });
    }
    let mut storage = Storage::allocate("tensor", len)?;
    let start = storage.start_mut().expect("allocated memory is ours");
    // SAFETY: both ranges have `len` bytes, and the new one overlaps nothing.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, len) };
    // SAFETY: the copy has initialised it.
    Ok(unsafe { Window::new(Arc::new(storage), 0, len) })
}
