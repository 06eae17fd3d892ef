//! Tensors on a device.
//!
//! The handle of a tensor and its memory are separate. A handle is live, freed or donated; memory is freed when no
//! handle and no run holds it. So deallocation takes nothing from a run that has started, and a donated buffer that
//! something else holds is copied.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use defn_core::backend::{Backend, Buffer, BufferState, Gone, HostMemory, Poll};
use defn_core::{ErrorKind, Result, TensorType};

use super::live::TensorInfo;
use super::{PjrtBackend, Runtime, caller, failure, wait};
use crate::api;

/// Memory of a device. It counts as live while anything holds it.
pub(super) struct Elements {
    runtime: &'static Runtime,
    /// `Some` until the drop.
    raw: Option<api::Buffer>,
    info: Arc<TensorInfo>,
    /// Its index in the list of live elements, if it is listed.
    live_index: Option<usize>,
    /// A number that identifies this memory within the process.
    number: u64,
    /// The memory is borrowed and must not be written.
    is_borrowed: bool,
    /// Whether the elements are known to be computed. They may be computed although it is false.
    known_computed: AtomicBool,
}

impl Elements {
    /// With `known_computed` the elements are known to be computed.
    pub fn new(
        runtime: &'static Runtime,
        raw: api::Buffer,
        info: Arc<TensorInfo>,
        known_computed: bool,
    ) -> Arc<Elements> {
        Elements::build(runtime, raw, info, (false, known_computed))
    }

    /// Whether they are known to be computed.
    pub fn is_known_computed(&self) -> bool {
        self.known_computed.load(Ordering::Relaxed)
    }

    /// Elements in borrowed memory, which is read but not written.
    pub fn borrowed(runtime: &'static Runtime, raw: api::Buffer, info: Arc<TensorInfo>) -> Arc<Elements> {
        Elements::build(runtime, raw, info, (true, false))
    }

    fn build(
        runtime: &'static Runtime,
        raw: api::Buffer,
        info: Arc<TensorInfo>,
        (is_borrowed, known_computed): (bool, bool),
    ) -> Arc<Elements> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let live = runtime.live();
        live.enter();
        let listed = (!known_computed || info.is_large()).then(|| info.clone());
        let known_computed = AtomicBool::new(known_computed);
        let with_index = |live_index| Elements {
            runtime,
            raw: Some(raw),
            info,
            live_index,
            number,
            is_borrowed,
            known_computed,
        };
        match listed {
            Some(info) => Arc::new_cyclic(|elements| with_index(Some(live.list(info, elements.clone())))),
            None => Arc::new(with_index(None)),
        }
    }

    /// Whether a run may not reuse the memory: other tensors share it, or it is borrowed.
    pub fn is_shared(self: &Arc<Elements>) -> bool {
        self.is_borrowed || Arc::strong_count(self) > 1
    }

    /// The elements as host memory, without a copy. `None` if they are not stored there in the host's form, with at
    /// least one byte for each. Waits until they are computed.
    fn host(self: &Arc<Elements>) -> Result<Option<HostMemory>> {
        self.runtime.require_process("read")?;
        let ty = &self.info.ty;
        if ty.dtype.is_packed() || !self.runtime.is_host() {
            return Ok(None);
        }
        if ty.byte_size() == 0 {
            return Ok(Some(HostMemory::from(Vec::new())));
        }
        self.wait("read", &caller::poll)?;
        let view = api::HostView::of(ElementsRef(self.clone()), ty.byte_size());
        let view = view.map_err(|error| failure::device("read", self.runtime, error))?;
        Ok(view.map(|view| HostMemory::new(Arc::new(view))))
    }

    /// The type that they were created with.
    pub fn ty(&self) -> &TensorType {
        &self.info.ty
    }

    pub fn raw(&self) -> &api::Buffer {
        self.raw.as_ref().expect("there until the end")
    }

    /// Waits until they are computed.
    pub fn wait(&self, op: &'static str, poll: Poll<'_>) -> Result<()> {
        self.runtime.require_process(op)?;
        let event = self.raw().ready().map_err(|error| failure::device(op, self.runtime, error))?;
        wait::until_ready(op, self.runtime, &event, poll)?;
        self.known_computed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// A reference that keeps elements alive while they are read in place.
struct ElementsRef(Arc<Elements>);

impl AsRef<api::Buffer> for ElementsRef {
    fn as_ref(&self) -> &api::Buffer {
        self.0.raw()
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        if self.runtime.process.is_this() {
            let live = self.runtime.live();
            live.leave(self.live_index);
            if !self.is_known_computed()
                && let Ok(ready) = self.raw().ready()
            {
                live.add_pending(ready);
            }
        } else {
            // A forked process has none of the threads that freeing may wait for, and the memory is its parent's.
            std::mem::forget(self.raw.take());
        }
    }
}

/// A tensor on a device of a client. It may still be computing: reads wait for it.
pub struct PjrtBuffer {
    backend: Arc<PjrtBackend>,
    state: RwLock<State>,
}

enum State {
    Live(Arc<Elements>),
    Gone(Gone),
}

impl PjrtBuffer {
    pub(super) fn new(backend: &Arc<PjrtBackend>, elements: Arc<Elements>) -> PjrtBuffer {
        PjrtBuffer { backend: backend.clone(), state: RwLock::new(State::Live(elements)) }
    }

    /// The device of the tensor.
    pub fn pjrt_backend(&self) -> &Arc<PjrtBackend> {
        &self.backend
    }

    /// The type that the elements were created with.
    ///
    /// # Errors
    /// They were freed or donated.
    pub fn ty(&self) -> Result<TensorType> {
        Ok(self.elements("type")?.info.ty.clone())
    }

    /// Waits until the elements are computed. `poll` is called periodically, and its error ends the wait.
    ///
    /// # Errors
    /// They were freed or donated, the error of their computation, or the error of `poll`.
    pub fn block_until_ready(&self, poll: Poll<'_>) -> Result<()> {
        self.elements("block_until_ready")?.wait("block_until_ready", poll)
    }

    /// The address of the elements in the device's memory, for another library. Waits until they are computed.
    ///
    /// # Errors
    /// They were freed or donated, or the plugin provides no addresses.
    pub fn pointer(&self, poll: Poll<'_>) -> Result<usize> {
        let elements = self.elements("to_pointer")?;
        elements.wait("to_pointer", poll)?;
        elements.raw().pointer().map_err(|error| failure::device("to_pointer", self.backend.runtime(), error))
    }

    /// The device's index among the devices of its kind on this machine, as the vendor's libraries number them.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn hardware_id(&self) -> Result<i32> {
        let id = self.backend.device().local_id();
        id.map_err(|error| failure::device("device", self.backend.runtime(), error))
    }

    /// A number that identifies the memory within the process; `None` once it was freed or donated.
    pub fn number(&self) -> Option<u64> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Live(elements) => Some(elements.number),
            State::Gone(_) => None,
        }
    }

    /// Holds the elements: their memory outlives freeing or donating the tensor.
    ///
    /// # Errors
    /// They were freed or donated.
    pub fn hold(&self) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.elements("hold")?))
    }

    /// The elements, with a reference that keeps them alive.
    pub(super) fn elements(&self, op: &'static str) -> Result<Arc<Elements>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Live(elements) => Ok(elements.clone()),
            State::Gone(gone) => Err(ErrorKind::BufferGone { op, gone: gone.clone() }.into()),
        }
    }

    /// Donates the elements: from now on the tensor's memory is gone, for the reason and by the line in `gone`.
    pub(super) fn donate(&self, op: &'static str, gone: Gone) -> Result<Arc<Elements>> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Live(elements) => {
                let elements = elements.clone();
                *state = State::Gone(gone);
                Ok(elements)
            }
            State::Gone(before) => Err(ErrorKind::BufferGone { op, gone: before.clone() }.into()),
        }
    }

    /// Restores donated elements if their run did not start.
    pub(super) fn restore(&self, elements: Arc<Elements>) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State::Live(elements);
    }
}

impl Buffer for PjrtBuffer {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        let elements = self.elements("read")?;
        let runtime = self.backend.runtime();
        runtime.require_process("read")?;
        if out.is_empty() {
            return Ok(());
        }
        elements.wait("read", &caller::poll)?;
        let raw = elements.raw();
        let is_whole = out.len() == elements.info.ty.byte_size();
        let result = caller::without_lock(|| if is_whole { raw.read(out) } else { raw.read_start(out) });
        result.map_err(|error| failure::device("read", runtime, error))
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        self.elements("read")?.host()
    }

    fn copy_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        let elements = self.elements("backend_copy")?;
        let runtime = self.backend.runtime();
        runtime.require_process("backend_copy")?;
        let Some(backend) = PjrtBackend::of(&**backend) else { return Ok(None) };
        // A copy on the same device needs memory of its own, which a plugin's copy does not guarantee.
        if backend.is_same_device(&*self.backend) || !std::ptr::eq(backend.runtime(), runtime) {
            return Ok(None);
        }
        runtime.require_addressable("backend_copy", backend.device_id())?;
        let copy = elements
            .raw()
            .copy_to(backend.device())
            .map_err(|error| failure::device("backend_copy", runtime, error))?;
        let copy = Elements::new(runtime, copy, elements.info.clone(), false);
        Ok(Some(Arc::new(PjrtBuffer::new(&runtime.backends()[backend.device_id()], copy))))
    }

    fn state(&self) -> BufferState {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Live(_) => BufferState::Live,
            State::Gone(gone) => BufferState::Gone(gone.clone()),
        }
    }

    fn deallocate(&self) -> Result<bool> {
        // Determined before the lock is taken, because it takes the interpreter's lock.
        let gone = Gone::freed();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let State::Gone(_) = &*state {
            return Ok(false);
        }
        let live = std::mem::replace(&mut *state, State::Gone(gone));
        drop(state);
        // Runs that were started, and other tensors of the same elements, hold their own references.
        drop(live);
        Ok(true)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for PjrtBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PjrtBuffer")
            .field("device", &self.backend.device_name())
            .field("state", &self.state())
            .finish()
    }
}
