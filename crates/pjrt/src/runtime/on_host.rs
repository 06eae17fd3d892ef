//! The first calls of a program that is compiled in the background: they run op by op on the host, with their results
//! on the device.

use std::sync::Arc;

use defn_core::backend::{Backend, Executable, Gone, Hooks, check_arguments};
use defn_core::donation::named;
use defn_core::op::UserBlockOp;
use defn_core::{Result, Tensor, TensorType};
use smallvec::SmallVec;

use super::PjrtBackend;
use super::buffer::Elements;
use super::execution::{PjrtExecutable, buffer_on, require_movable, restore};

/// The elements of donated arguments, by position.
type Taken = SmallVec<[(usize, Arc<Elements>); 2]>;

impl PjrtExecutable {
    /// Runs on the host as [`PjrtExecutable::run_at`] does on a device.
    pub(super) fn run_on_host(
        &self,
        evaluator: &dyn Executable,
        backend: &PjrtBackend,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        check_arguments("run", evaluator.program().inputs(), arguments.iter())?;
        backend.runtime().require_process("run")?;
        let mut taken = Taken::new();
        let run = |taken: &mut Taken| -> Result<Vec<Tensor>> {
            self.take(backend, &arguments, taken)?;
            let inputs = self.inputs_on_host(evaluator, backend, &arguments, taken)?;
            let hooks = HooksOfDevice { backend, hooks };
            let results = evaluator.run(self.host(), inputs, &hooks)?;
            results.iter().map(|result| to_device("run", backend, result)).collect()
        };
        run(&mut taken).inspect_err(|_| {
            for (position, elements) in taken {
                restore(&arguments[position], backend, Some(elements));
            }
        })
    }

    /// Takes the donated arguments that are on the device. Of others a run on the device has a copy.
    fn take(&self, backend: &PjrtBackend, arguments: &[Tensor], taken: &mut Taken) -> Result<()> {
        let gone = Gone::donated();
        for &position in self.donated() {
            if let Some(buffer) = buffer_on(&arguments[position], backend) {
                let elements = buffer.donate("run", gone.clone());
                taken.push((
                    position,
                    elements.map_err(|error| named(error, position, &arguments[position]))?,
                ));
            }
        }
        Ok(())
    }

    /// The arguments that the evaluator reads, on the host.
    fn inputs_on_host(
        &self,
        evaluator: &dyn Executable,
        backend: &PjrtBackend,
        arguments: &[Tensor],
        taken: &Taken,
    ) -> Result<Vec<Tensor>> {
        let to_host = |(position, argument): (usize, &Tensor)| {
            if !evaluator.uses(position) {
                return Ok(argument.clone());
            }
            let ty = argument.whole();
            let memory = match taken.iter().find(|(known, _)| *known == position) {
                Some((_, elements)) => {
                    Tensor::concrete(ty.clone(), backend.wrap(elements.clone())).host_bytes("run")?
                }
                None => {
                    argument.require_buffer("run", "return it from the definition, and pass it then")?;
                    require_movable(backend, argument)?;
                    argument.host_bytes("run").map_err(|error| named(error, position, argument))?
                }
            };
            Ok(Tensor::concrete(ty.clone(), self.host().from_host(ty, memory)?))
        };
        arguments.iter().enumerate().map(to_host).collect()
    }
}

/// A tensor of the host on the device.
fn to_device(op: &'static str, backend: &PjrtBackend, tensor: &Tensor) -> Result<Tensor> {
    let elements = backend.adopt(op, tensor)?;
    Ok(Tensor::concrete(tensor.whole().clone(), backend.wrap(elements)))
}

/// The hooks of a run, which see values on the device.
struct HooksOfDevice<'a> {
    backend: &'a PjrtBackend,
    hooks: &'a dyn Hooks,
}

impl HooksOfDevice<'_> {
    fn values(&self, values: &[Tensor]) -> Result<Vec<Tensor>> {
        values.iter().map(|value| to_device("hook", self.backend, value)).collect()
    }
}

impl Hooks for HooksOfDevice<'_> {
    fn call(&self, slot: usize, values: &[Tensor]) -> Result<()> {
        self.hooks.call(slot, &self.values(values)?)
    }

    fn compute(&self, slot: usize, values: &[Tensor], outputs: &[TensorType]) -> Result<Vec<Tensor>> {
        self.hooks.compute(slot, &self.values(values)?, outputs)
    }

    /// A program on a device runs the defaults.
    fn native(
        &self,
        _: &UserBlockOp,
        _: &Arc<dyn Backend>,
        _: &[Tensor],
        _: &[TensorType],
    ) -> Result<Option<Vec<Tensor>>> {
        Ok(None)
    }

    fn poll(&self) -> Result<()> {
        self.hooks.poll()
    }
}
