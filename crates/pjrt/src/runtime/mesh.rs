//! Meshes of devices: tensors with a block on each device.
//!
//! A mesh is a backend, so that versions, captures and donation work as for any definition.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use defn_core::backend::{Backend, Buffer, BufferState, Buffers, Gone, HostMemory, Operand};
use defn_core::mesh::{Mesh, MeshError};
use defn_core::op::{Block, Op};
use defn_core::{Error, ErrorKind, Result, Tensor, TensorType, form};
use smallvec::SmallVec;

use super::buffer::{Elements, PjrtBuffer};
use super::{PjrtBackend, Runtime};

/// Devices of one client in a mesh, as a backend: each of its tensors has a block of its type on each device. This
/// process holds the blocks of its own devices.
pub struct MeshBackend {
    mesh: Mesh,
    backends: Vec<Arc<PjrtBackend>>,
    /// Those of this process.
    addressable: Vec<Arc<PjrtBackend>>,
    device_name: String,
}

impl MeshBackend {
    /// A mesh of these devices, in row-major order.
    ///
    /// # Errors
    /// A wrong number of devices, a repeated device, devices of two clients, or none of this process.
    pub fn new(mesh: Mesh, backends: Vec<Arc<PjrtBackend>>) -> Result<Arc<MeshBackend>> {
        let (count, there) = (mesh.count(), backends.len());
        if count != there {
            return Err(MeshError::Devices { mesh: mesh.to_string(), count, there }.into());
        }
        for (at, backend) in backends.iter().enumerate() {
            if !std::ptr::eq(backend.runtime(), backends[0].runtime()) {
                let (left, right) = (backends[0].device_name(), backend.device_name());
                return Err(MeshError::Clients { left, right }.into());
            }
            if backends[..at].iter().any(|other| other.is(backend)) {
                return Err(MeshError::DeviceRepeated { device: backend.device_name() }.into());
            }
        }
        let ids: Vec<String> = backends.iter().map(|backend| backend.device_id().to_string()).collect();
        let device_name = format!("pjrt<{}:{} as {mesh}>", backends[0].runtime().name(), ids.join(","));
        let is_here = |backend: &&Arc<PjrtBackend>| backend.runtime().is_addressable(backend.device_id());
        let addressable: Vec<_> = backends.iter().filter(is_here).cloned().collect();
        if addressable.is_empty() {
            return Err(MeshError::NoneHere { mesh: device_name }.into());
        }
        Ok(Arc::new(MeshBackend { mesh, backends, addressable, device_name }))
    }

    /// `backend` as a [`MeshBackend`], if it is one.
    pub fn of(backend: &dyn Backend) -> Option<&MeshBackend> {
        backend.as_any().downcast_ref()
    }

    /// The axes.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The devices, in row-major order.
    pub fn backends(&self) -> &[Arc<PjrtBackend>] {
        &self.backends
    }

    /// The devices of this process, in the order of the mesh.
    pub fn addressable(&self) -> &[Arc<PjrtBackend>] {
        &self.addressable
    }

    /// Whether some of the devices belong to other processes.
    pub(super) fn spans_processes(&self) -> bool {
        self.addressable.len() < self.backends.len()
    }

    /// The client of the devices.
    pub fn runtime(&self) -> &'static Runtime {
        self.backends[0].runtime()
    }

    /// One tensor from blocks of one type, one for each device. A block that is elsewhere is copied to its device, if that
    /// belongs to this process.
    ///
    /// # Errors
    /// An error of a device or of the host.
    ///
    /// # Panics
    /// If there are not as many blocks as devices, or if their types differ.
    pub fn gather_blocks(self: &Arc<MeshBackend>, ty: &TensorType, blocks: &[Tensor]) -> Result<Tensor> {
        assert_eq!(blocks.len(), self.backends.len(), "one block for each device");
        let mut elements = Vec::with_capacity(self.addressable.len());
        for (backend, block) in self.backends.iter().zip(blocks) {
            assert_eq!(block.whole().shape.sizes(), ty.shape.sizes(), "blocks of one type");
            if backend.runtime().is_addressable(backend.device_id()) {
                elements.push(self.elements_on(backend, block)?);
            }
        }
        Ok(Tensor::concrete(ty.clone(), Arc::new(MeshBuffer::new(self, elements))))
    }

    /// A block's elements on a device: shared if they are there, else copied from another device or from the host.
    fn elements_on(&self, backend: &PjrtBackend, block: &Tensor) -> Result<Arc<Elements>> {
        let shared: Arc<dyn Backend> = backend.shared().clone();
        if let Some(buffer) = block.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<PjrtBuffer>())
            && !backend.is(buffer.pjrt_backend())
            && let Some(copy) = buffer.copy_to(&shared)?
            && let Some(copy) = copy.as_any().downcast_ref::<PjrtBuffer>()
        {
            return copy.elements("shard");
        }
        backend.adopt("shard", block)
    }

    /// The blocks of a mesh's tensor on the devices of this process, each on its device.
    ///
    /// # Errors
    /// The tensor was freed or donated.
    ///
    /// # Panics
    /// If the tensor is on no mesh.
    pub fn blocks(tensor: &Tensor) -> Result<Vec<Tensor>> {
        let buffer = tensor.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<MeshBuffer>());
        let buffer = buffer.expect("a tensor of a mesh");
        let elements = buffer.elements("shard")?;
        let block = |(backend, elements): (&Arc<PjrtBackend>, Arc<Elements>)| {
            Tensor::concrete(tensor.whole().clone(), backend.wrap(elements))
        };
        Ok(buffer.backend.addressable.iter().zip(elements).map(block).collect())
    }

    /// The block that some devices share, by their positions in the mesh, of the blocks that [`MeshBackend::blocks`]
    /// returned; `op` is for messages.
    ///
    /// # Errors
    /// None of them belongs to this process.
    pub fn shared_block<'a>(
        &self,
        op: &'static str,
        blocks: &'a [Tensor],
        devices: &[usize],
    ) -> Result<&'a Tensor> {
        let find = |&position: &usize| {
            let device = &self.backends[position];
            self.addressable.iter().zip(blocks).find(|(backend, _)| backend.is(device))
        };
        devices.iter().find_map(find).map(|(_, block)| block).ok_or_else(|| {
            let device = &self.backends[devices[0]];
            let process = device.runtime().process_index(device.device_id());
            MeshError::Elsewhere { op, device: device.device_name(), process }.into()
        })
    }

    /// The elements of a program's argument on each device of this process. If the argument is on no mesh, each device
    /// has all of it.
    pub(super) fn adopt(self: &Arc<MeshBackend>, argument: &Tensor) -> Result<Vec<Arc<Elements>>> {
        let buffer = argument.require_buffer("run", "return it from the definition, and pass it then")?;
        match buffer.as_any().downcast_ref::<MeshBuffer>() {
            Some(buffer) if buffer.backend.is_same_device(&**self) => buffer.elements("run"),
            Some(other) => {
                let (left, right) = (self.device_name(), other.backend.device_name());
                Err(ErrorKind::BackendConflict { op: "run", left, right }.into())
            }
            None => self.addressable.iter().map(|backend| self.elements_on(backend, argument)).collect(),
        }
    }

    fn unsupported(op: &'static str, got: &TensorType) -> Error {
        MeshError::Blocks { op: op.to_owned(), got: got.clone() }.into()
    }
}

impl Backend for MeshBackend {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn device_name(&self) -> String {
        self.device_name.clone()
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        let copy_from_host = |backend: &Arc<PjrtBackend>| backend.copy_from_host("shard", ty, bytes.bytes());
        let elements = self.addressable.iter().map(copy_from_host).collect::<Result<_>>()?;
        let backend = MeshBackend {
            mesh: self.mesh.clone(),
            backends: self.backends.clone(),
            addressable: self.addressable.clone(),
            device_name: self.device_name.clone(),
        };
        Ok(Arc::new(MeshBuffer::new(&Arc::new(backend), elements)))
    }

    fn run(&self, op: &Op, _operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        Err(MeshBackend::unsupported(form::name(op), &outputs[0]))
    }

    fn has_native(&self, _block: &Block) -> bool {
        true
    }

    fn has_native_fold(&self, _fold: &Op) -> bool {
        true
    }

    fn is_same_device(&self, other: &dyn Backend) -> bool {
        MeshBackend::of(other).is_some_and(|other| {
            other.mesh == self.mesh
                && other.backends.iter().zip(&self.backends).all(|(other, backend)| backend.is(other))
        })
    }

    fn takes_over(&self, other: &dyn Backend) -> bool {
        MeshBackend::of(other).is_none()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for MeshBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device_name)
    }
}

/// A block on each device of a mesh that belongs to this process.
pub(super) struct MeshBuffer {
    backend: Arc<MeshBackend>,
    state: RwLock<State>,
}

enum State {
    Live(Vec<Arc<Elements>>),
    Gone(Gone),
}

impl MeshBuffer {
    pub fn new(backend: &Arc<MeshBackend>, elements: Vec<Arc<Elements>>) -> MeshBuffer {
        MeshBuffer { backend: backend.clone(), state: RwLock::new(State::Live(elements)) }
    }

    /// The elements on each device, with references that keep them alive.
    pub fn elements(&self, op: &'static str) -> Result<Vec<Arc<Elements>>> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Live(elements) => Ok(elements.clone()),
            State::Gone(gone) => Err(ErrorKind::BufferGone { op, gone: gone.clone() }.into()),
        }
    }

    /// Donates the elements, as [`PjrtBuffer::donate`] does.
    pub fn donate(&self, gone: Gone) -> Result<Vec<Arc<Elements>>> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Gone(gone)) {
            State::Live(elements) => Ok(elements),
            State::Gone(before) => {
                *state = State::Gone(before.clone());
                Err(ErrorKind::BufferGone { op: "run", gone: before }.into())
            }
        }
    }

    /// Whether the elements are on that mesh.
    pub fn is_on(&self, backend: &MeshBackend) -> bool {
        self.backend.is_same_device(backend)
    }

    /// Restores donated elements if their run did not start.
    pub fn restore(&self, elements: Vec<Arc<Elements>>) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State::Live(elements);
    }

    fn unsupported(&self) -> Error {
        match self.elements("read") {
            Ok(elements) => MeshBackend::unsupported("read", elements[0].ty()),
            Err(gone) => gone,
        }
    }
}

impl Buffer for MeshBuffer {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn read(&self, _out: &mut [u8]) -> Result<()> {
        Err(self.unsupported())
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        Err(self.unsupported())
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

impl fmt::Debug for MeshBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshBuffer")
            .field("device_name", &self.backend)
            .field("state", &self.state())
            .finish()
    }
}
