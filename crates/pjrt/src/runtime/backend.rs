//! The backend: tensors on one device of a client, and eager ops on them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Buffer, Buffers, HostMemory, Operand, Poll};
use defn_core::op::{Block, Op};
use defn_core::{DType, Kind, Result, Tensor, TensorType, form};
use smallvec::{SmallVec, smallvec};

use super::buffer::{Elements, PjrtBuffer};
use super::live::TensorInfo;
use super::{Runtime, caller, failure};
use crate::api::{self, Device, Placement};
use crate::lower::element_type;

/// Copies of at least this many bytes to the device release the interpreter's lock.
const RELEASE_BYTES: usize = 64 << 10;

/// Copies of at least this many bytes to a client of the host are made by [`HostCopy`].
const HOST_COPY_BYTES: usize = 1 << 20;

/// The alignment that XLA's programs for the CPU assume of their arguments.
const VIEW_ALIGNMENT: usize = 64;

/// Makes a copy of bytes in memory that is aligned to 64 bytes. The name is that of the op that needs it.
pub type HostCopy = fn(&'static str, &[u8]) -> Result<HostMemory>;

static HOST_COPY: OnceLock<HostCopy> = OnceLock::new();

/// Sets how large copies to clients of the host are made, once for the process; later calls have no effect. Without it
/// their plugins make them. The memory of XLA's plugin has no large pages: with the CPU backend's, which has, a million
/// elements of 16 MiB are gathered 1.45 times as fast, and 4 MiB are copied in half the time.
pub fn set_host_copy(copy: HostCopy) {
    HOST_COPY.get_or_init(|| copy);
}

/// A device of a client, as a backend: it stores tensors and runs ops. Each op is compiled once for each list of
/// operand types.
pub struct PjrtBackend {
    runtime: &'static Runtime,
    id: usize,
    device_name: String,
}

impl PjrtBackend {
    pub(super) fn new(runtime: &'static Runtime, id: usize) -> PjrtBackend {
        PjrtBackend { runtime, id, device_name: format!("pjrt<{}:{id}>", runtime.name()) }
    }

    /// `backend` as a [`PjrtBackend`], if it is one.
    pub fn of(backend: &dyn Backend) -> Option<&PjrtBackend> {
        backend.as_any().downcast_ref()
    }

    /// The client of the device.
    pub fn runtime(&self) -> &'static Runtime {
        self.runtime
    }

    /// The device's index among those of the client.
    pub fn device_id(&self) -> usize {
        self.id
    }

    /// The device itself.
    pub fn device(&self) -> &'static Device {
        &self.runtime.devices()[self.id]
    }

    pub(super) fn shared(&self) -> &'static Arc<PjrtBackend> {
        &self.runtime.backends()[self.id]
    }

    /// A tensor's elements on this device, copied if they are elsewhere.
    pub(super) fn adopt(&self, op: &'static str, tensor: &Tensor) -> Result<Arc<Elements>> {
        let buffer = tensor.require_buffer(op, "return it from the definition, and pass it then")?;
        if let Some(buffer) = buffer.as_any().downcast_ref::<PjrtBuffer>()
            && self.is_same_device(&**buffer.pjrt_backend())
        {
            return buffer.elements(op);
        }
        self.copy_from_host(op, tensor.whole(), tensor.host_bytes(op)?.bytes())
    }

    /// Copies bytes from the host to the device.
    pub(super) fn copy_from_host(
        &self,
        op: &'static str,
        ty: &TensorType,
        bytes: &[u8],
    ) -> Result<Arc<Elements>> {
        self.runtime.require_process(op)?;
        self.runtime.require_addressable(op, self.id)?;
        self.runtime.require_memory(op, ty.byte_size())?;
        let bytes = whole_elements(ty.dtype, &bytes[..ty.byte_size()]);
        let is_large = bytes.len() >= HOST_COPY_BYTES && ty.dtype.bits() >= 8;
        let host_copy = HOST_COPY.get().filter(|_| self.runtime.is_host() && is_large);
        let copy = || match host_copy {
            Some(host_copy) => self.view(op, ty, host_copy(op, &bytes)?),
            None => self.plugins_copy(op, ty, &bytes),
        };
        let raw = if bytes.len() < RELEASE_BYTES { copy() } else { caller::without_lock(copy) }?;
        // A client of the host copies before the call returns; a copy to another device may still be under way.
        Ok(Elements::new(self.runtime, raw, TensorInfo::created_here(ty), self.runtime.is_host()))
    }

    /// A copy that the plugin makes.
    fn plugins_copy(&self, op: &'static str, ty: &TensorType, bytes: &[u8]) -> Result<api::Buffer> {
        let placement = Placement::Device(self.device());
        let raw = self.runtime.client().buffer(bytes, element_type(ty), &dims(ty), placement);
        raw.map_err(|error| failure::device(op, self.runtime, error))
    }

    /// A buffer over host memory that the device can read.
    fn view(&self, op: &'static str, ty: &TensorType, memory: HostMemory) -> Result<api::Buffer> {
        let raw = self.runtime.client().view(memory, element_type(ty), &dims(ty), self.device());
        raw.map_err(|error| failure::device(op, self.runtime, error))
    }

    /// A tensor over host memory, without a copy if the device can read that memory and stores elements in the same
    /// form; otherwise a copy. The memory must not be written while the tensor, or another tensor of its elements, is
    /// alive.
    ///
    /// # Errors
    /// As [`Backend::from_host`].
    pub fn borrow(&self, ty: &TensorType, memory: HostMemory) -> Result<Arc<dyn Buffer>> {
        self.runtime.require_process("from_pointer")?;
        self.runtime.require_addressable("from_pointer", self.id)?;
        let is_aligned = memory.bytes().as_ptr().addr().is_multiple_of(VIEW_ALIGNMENT);
        let is_viewed = self.runtime.is_host() && ty.byte_size() > 0 && is_aligned;
        if !is_viewed || !is_valid(ty.dtype, memory.bytes()) {
            return self.from_host(ty, memory);
        }
        let raw = self.view("from_pointer", ty, memory)?;
        Ok(self.wrap(Elements::borrowed(self.runtime, raw, TensorInfo::created_here(ty))))
    }

    /// Whether both are the same device of the same client.
    pub(super) fn is(&self, other: &PjrtBackend) -> bool {
        std::ptr::eq(other.runtime, self.runtime) && other.id == self.id
    }

    pub(super) fn wrap(&self, elements: Arc<Elements>) -> Arc<dyn Buffer> {
        Arc::new(PjrtBuffer::new(self.shared(), elements))
    }
}

/// The sizes of a tensor as PJRT takes them.
pub(super) fn dims(ty: &TensorType) -> SmallVec<[i64; 6]> {
    ty.shape.sizes().iter().map(|&size| i64::try_from(size).expect("sizes of tensors fit")).collect()
}

/// Whether bytes from outside are valid elements on devices. Bools are 0 or 1; programs assume that the unused bits of
/// elements of less than a byte extend the element.
fn is_valid(dtype: DType, bytes: &[u8]) -> bool {
    if dtype.is_bool() { defn_core::scalar::are_truths(bytes) } else { dtype.bits() >= 8 }
}

/// The bytes as valid elements on devices, copied if [`is_valid`] is false.
fn whole_elements(dtype: DType, bytes: &[u8]) -> Cow<'_, [u8]> {
    if is_valid(dtype, bytes) {
        return Cow::Borrowed(bytes);
    }
    let unused = 8 - dtype.bits().min(8) as u32;
    let whole = |&byte: &u8| match dtype.kind() {
        Kind::Bool => u8::from(byte != 0),
        Kind::Signed => ((byte << unused).cast_signed() >> unused).cast_unsigned(),
        Kind::Unsigned | Kind::Float | Kind::Complex => byte << unused >> unused,
    };
    Cow::Owned(bytes.iter().map(whole).collect())
}

impl Backend for PjrtBackend {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn device_name(&self) -> String {
        self.device_name.clone()
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        self.from_host_copy(ty, bytes.bytes())
    }

    fn from_host_copy(&self, ty: &TensorType, bytes: &[u8]) -> Result<Arc<dyn Buffer>> {
        Ok(self.wrap(self.copy_from_host("tensor", ty, bytes)?))
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        if is_identity(op, &operands, outputs) {
            return self.alias_operand(op, &operands[0]);
        }
        // A program that contains the number would be compiled for each number.
        if let Op::Constant(scalar) = op {
            return Ok(smallvec![self.wrap(self.copy_from_host(
                "constant",
                &outputs[0],
                &scalar.to_bytes()
            )?)]);
        }
        if let Op::Literal(literal) = op {
            return Ok(smallvec![self.wrap(self.copy_from_host("tensor", &outputs[0], literal.bytes())?)]);
        }
        self.runtime.eager.run(self, op, operands, outputs)
    }

    fn checks_positions_eagerly(&self) -> bool {
        false
    }

    fn has_native(&self, _block: &Block) -> bool {
        true
    }

    fn has_native_fold(&self, _fold: &Op) -> bool {
        true
    }

    fn run_fold(
        &self,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
        _checked: bool,
        poll: Poll<'_>,
    ) -> Result<Buffers> {
        let results = self.run(op, operands, outputs)?;
        for buffer in &results {
            let buffer = buffer.as_any().downcast_ref::<PjrtBuffer>().expect("made here");
            buffer.elements(form::name(op))?.wait(form::name(op), poll)?;
        }
        Ok(results)
    }

    fn is_same_device(&self, other: &dyn Backend) -> bool {
        PjrtBackend::of(other).is_some_and(|other| self.is(other))
    }

    fn takes_over(&self, other: &dyn Backend) -> bool {
        match PjrtBackend::of(other) {
            // Of two clients of the host's processors, the one of the first operand is asked first.
            Some(other) => other.runtime.is_host() && !std::ptr::eq(other.runtime, self.runtime),
            None => other.name() == "cpu",
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether an op returns its first operand's elements unchanged, perhaps with another type.
fn is_identity(op: &Op, operands: &[Operand], outputs: &[TensorType]) -> bool {
    if let Op::StopGrad | Op::Mark { .. } | Op::Transfer { .. } = op {
        return true;
    }
    if let Op::AsType { dtype } = op {
        return *dtype == operands[0].ty.dtype;
    }
    if let Op::Reshape { .. } | Op::Squeeze { .. } = op {
        return operands[0].ty.shape.sizes() == outputs[0].shape.sizes();
    }
    false
}

impl PjrtBackend {
    fn alias_operand(&self, op: &Op, operand: &Operand) -> Result<Buffers> {
        let buffer =
            operand.buffer.as_any().downcast_ref::<PjrtBuffer>().expect("operands are on this backend");
        Ok(smallvec![self.wrap(buffer.elements(form::name(op))?)])
    }
}

impl fmt::Debug for PjrtBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device_name)
    }
}
