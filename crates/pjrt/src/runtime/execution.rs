//! Running compiled programs.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use defn_core::backend::{Backend, Buffers, Executable, Gone, Hooks, buffers_of, check_arguments};
use defn_core::donation::{named, positions};
use defn_core::region::Region;
use defn_core::{DType, ErrorKind, Result, Scalar, Tensor, TensorType};
use smallvec::SmallVec;

use super::buffer::{Elements, PjrtBuffer};
use super::compiler::PjrtCompiler;
use super::digest::Digest;
use super::live::TensorInfo;
use super::plan::{Plan, Step, Work};
use super::programs::Compiled;
use super::saved::Saved;
use super::{PjrtBackend, failure};
use crate::lower::Hardware;

/// A compiled segment of a program.
pub(super) struct DeviceProgram {
    pub compiled: Arc<Compiled>,
    /// The digest of the text from which it was compiled.
    pub text: Digest,
    /// The descriptions of its outputs; those for hooks come last.
    pub results: SmallVec<[Arc<TensorInfo>; 2]>,
}

impl fmt::Debug for DeviceProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} outputs)", self.results.len())
    }
}

/// How a program runs.
#[derive(Debug)]
pub(super) enum ExecutionMode {
    /// As it was compiled.
    Compiled(Plan<DeviceProgram>),
    /// Op by op, with checks of each result.
    Checked(Arc<dyn Executable>),
    /// Op by op on the host: the first calls of a program that is compiled in the background.
    OnHost(Arc<dyn Executable>),
}

/// A compiled program.
pub struct PjrtExecutable {
    compiler: PjrtCompiler,
    program: Arc<Region>,
    mode: ExecutionMode,
    /// The hardware that it was lowered for.
    hardware: Hardware,
    /// The positions of the donated arguments, ascending.
    donate: Vec<usize>,
    /// If the program is one segment without work for the host: the output of the segment for each result.
    single_segment_outputs: Option<SmallVec<[usize; 4]>>,
}

/// Elements by slot.
type Slots = SmallVec<[Option<Arc<Elements>>; 8]>;

/// The results of a part of a program.
type ElementsList = SmallVec<[Arc<Elements>; 4]>;

impl PjrtExecutable {
    pub(super) fn new(
        compiler: PjrtCompiler,
        program: Arc<Region>,
        mode: ExecutionMode,
        hardware: Hardware,
        donate: &[usize],
    ) -> PjrtExecutable {
        let donate = positions(donate);
        let single_segment_outputs = match &mode {
            ExecutionMode::Compiled(plan) if donate.is_empty() => single_segment_outputs(plan),
            ExecutionMode::Compiled(_) | ExecutionMode::Checked(_) | ExecutionMode::OnHost(_) => None,
        };
        PjrtExecutable { compiler, program, mode, hardware, donate, single_segment_outputs }
    }

    /// The device for programs whose arguments are on no device of the client.
    pub fn backend(&self) -> &Arc<PjrtBackend> {
        self.compiler.backend()
    }

    /// The positions of the donated arguments, ascending.
    pub(super) fn donated(&self) -> &[usize] {
        &self.donate
    }

    /// The backend of the host.
    pub(super) fn host(&self) -> &Arc<dyn Backend> {
        self.compiler.host()
    }

    /// The device of a run whose arguments are on `backend`.
    fn backend_of<'a>(&'a self, backend: &'a dyn Backend) -> Result<&'a PjrtBackend> {
        match PjrtBackend::of(backend) {
            Some(backend) if std::ptr::eq(backend.runtime(), self.backend().runtime()) => Ok(backend),
            Some(backend) if !self.backend().takes_over(backend) => {
                let (left, right) = (self.backend().device_name(), backend.device_name());
                Err(ErrorKind::BackendConflict { op: "run", left, right }.into())
            }
            Some(_) | None => Ok(self.backend()),
        }
    }

    /// The elements of the arguments that are not donated, on the device of the run.
    fn load_arguments(
        &self,
        plan: &Plan<DeviceProgram>,
        backend: &PjrtBackend,
        arguments: &[Tensor],
    ) -> Result<Slots> {
        let mut slots: Slots = SmallVec::from_elem(None, plan.slots);
        for (position, argument) in arguments.iter().enumerate() {
            if plan.used[position] && !self.donate.contains(&position) {
                slots[position] = Some(adopt(backend, position, argument)?);
            }
        }
        Ok(slots)
    }

    /// Takes all donated arguments, or none. Returns the slots of those whose memory another tensor shares: they are
    /// copied where the program would reuse it.
    fn take_donated(
        &self,
        backend: &PjrtBackend,
        arguments: &[Tensor],
        slots: &mut Slots,
    ) -> Result<SmallVec<[usize; 2]>> {
        let mut shared = SmallVec::new();
        let gone = Gone::donated();
        for (count, &position) in self.donate.iter().enumerate() {
            let argument = &arguments[position];
            let donated = match buffer_on(argument, backend) {
                Some(buffer) => {
                    buffer.donate("run", gone.clone()).map_err(|error| named(error, position, argument))
                }
                // The run owns its copy on the device; the source of the copy stays.
                None => adopt(backend, position, argument),
            };
            match donated {
                Ok(elements) => {
                    if elements.is_shared() {
                        shared.push(position);
                    }
                    slots[position] = Some(elements);
                }
                Err(error) => {
                    for &donated in &self.donate[..count] {
                        restore(&arguments[donated], backend, slots[donated].take());
                    }
                    return Err(error);
                }
            }
        }
        Ok(shared)
    }

    /// Runs a program of one segment on arguments that have its types and that the caller keeps.
    fn run_single_segment(
        &self,
        plan: &Plan<DeviceProgram>,
        single_segment_outputs: &[usize],
        backend: &PjrtBackend,
        arguments: &[&Tensor],
    ) -> Result<Buffers> {
        let [Step { work: Work::Device { program, .. }, inputs, location, .. }] = &plan.steps[..] else {
            unreachable!("a plan of one piece has one step, for the device");
        };
        // The slots of the inputs are their positions.
        let mut elements = ElementsList::new();
        for &input in inputs {
            elements.push(adopt(backend, input, arguments[input])?);
        }
        let results = start(backend, program, &elements, &[]).map_err(|error| error.at(location.clone()))?;
        let wrap = |elements| backend.wrap(elements);
        if single_segment_outputs.iter().copied().eq(0..results.len()) {
            return Ok(results.into_iter().map(wrap).collect());
        }
        Ok(single_segment_outputs.iter().map(|&at| wrap(results[at].clone())).collect())
    }

    fn run_plan(
        &self,
        plan: &Plan<DeviceProgram>,
        backend: &PjrtBackend,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        check_arguments("run", self.program.inputs(), arguments.iter())?;
        let types = self.program.result_types().cloned();
        if let Some(single_segment_outputs) = &self.single_segment_outputs {
            let borrowed: SmallVec<[&Tensor; 8]> = arguments.iter().collect();
            let results = self.run_single_segment(plan, single_segment_outputs, backend, &borrowed)?;
            return Ok(types.zip(results).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect());
        }
        let mut slots = self.load_arguments(plan, backend, &arguments)?;
        let run = PlanRun { backend, hooks };
        let results = if self.donate.is_empty() {
            drop(arguments);
            run.plan(plan, slots, &[])?
        } else {
            let shared = self.take_donated(backend, &arguments, &mut slots)?;
            let donated: SmallVec<[Option<Arc<Elements>>; 2]> =
                self.donate.iter().map(|&position| slots[position].clone()).collect();
            match run.plan(plan, slots, &shared) {
                Ok(results) => results,
                Err(error) => {
                    // A run that did not start has used up no argument. A run that is still starting, because the wait
                    // for it was interrupted, holds the arguments that it will use up.
                    for (&position, elements) in self.donate.iter().zip(donated) {
                        let is_in_use = |elements: &Arc<Elements>| {
                            !shared.contains(&position) && Arc::strong_count(elements) > 1
                        };
                        let live = elements.filter(|elements| {
                            !is_in_use(elements) && elements.raw().is_deleted() == Ok(false)
                        });
                        restore(&arguments[position], backend, live);
                    }
                    return Err(error);
                }
            }
        };
        Ok(types.zip(results).map(|(ty, elements)| Tensor::concrete(ty, backend.wrap(elements))).collect())
    }
}

/// The output of the only segment for each result, if the host has nothing to do.
fn single_segment_outputs(plan: &Plan<DeviceProgram>) -> Option<SmallVec<[usize; 4]>> {
    let [step] = &plan.steps[..] else { return None };
    match &step.work {
        Work::Device { hooks, .. } if hooks.is_empty() => {}
        Work::Device { .. }
        | Work::Call { .. }
        | Work::Cond { .. }
        | Work::While { .. }
        | Work::Inline(_) => {
            return None;
        }
    }
    let output = |slot: &usize| step.outputs.iter().position(|output| output == slot);
    plan.results.iter().map(output).collect()
}

/// Starts a segment, and returns its results. The arguments at the positions `non_donatable` are not donated.
fn start(
    backend: &PjrtBackend,
    program: &DeviceProgram,
    arguments: &[impl Borrow<Arc<Elements>> + Sync],
    non_donatable: &[i64],
) -> Result<ElementsList> {
    let raw =
        backend.runtime().execute("run", &program.compiled, arguments, non_donatable, backend.device_id())?;
    let arguments_are_computed = arguments.iter().all(|elements| elements.borrow().is_known_computed());
    let known_computed = arguments_are_computed && program.compiled.is_prompt(&raw);
    let to_elements = |(raw, info): (_, &Arc<TensorInfo>)| {
        Elements::new(backend.runtime(), raw, info.clone(), known_computed)
    };
    Ok(raw.into_iter().zip(&program.results).map(to_elements).collect())
}

/// The buffer of an argument that is already on the device.
pub(super) fn buffer_on<'a>(argument: &'a Tensor, backend: &PjrtBackend) -> Option<&'a PjrtBuffer> {
    let buffer: &PjrtBuffer = argument.buffer()?.as_any().downcast_ref()?;
    buffer.pjrt_backend().is(backend).then_some(buffer)
}

/// An argument's elements on the device. An argument on another device of the same client is not moved: its owner chose
/// that device.
fn adopt(backend: &PjrtBackend, position: usize, argument: &Tensor) -> Result<Arc<Elements>> {
    if let Some(buffer) = buffer_on(argument, backend) {
        return buffer.elements("run").map_err(|error| named(error, position, argument));
    }
    require_movable(backend, argument)?;
    backend.adopt("run", argument).map_err(|error| named(error, position, argument))
}

/// Refuses an argument that its owner has put on another device of the client.
pub(super) fn require_movable(backend: &PjrtBackend, argument: &Tensor) -> Result<()> {
    if let Some(other) = argument.backend()
        && let Some(other) = PjrtBackend::of(&*other)
        && !backend.is_same_device(other)
        && !backend.takes_over(other)
    {
        let (left, right) = (backend.device_name(), other.device_name());
        return Err(ErrorKind::BackendConflict { op: "run", left, right }.into());
    }
    Ok(())
}

pub(super) fn restore(argument: &Tensor, backend: &PjrtBackend, elements: Option<Arc<Elements>>) {
    if let (Some(buffer), Some(elements)) = (buffer_on(argument, backend), elements) {
        buffer.restore(elements);
    }
}

impl Executable for PjrtExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        match &self.mode {
            ExecutionMode::Compiled(plan) => plan.used[input] || self.donate.contains(&input),
            ExecutionMode::Checked(checked) => checked.uses(input),
            ExecutionMode::OnHost(evaluator) => evaluator.uses(input) || self.donate.contains(&input),
        }
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        self.run_at(self.backend_of(&**backend)?, arguments, hooks)
    }

    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        if let (ExecutionMode::Compiled(plan), Some(single_segment_outputs)) =
            (&self.mode, &self.single_segment_outputs)
        {
            return self.run_single_segment(
                plan,
                single_segment_outputs,
                self.backend_of(&**backend)?,
                arguments,
            );
        }
        let owned = arguments.iter().map(|&argument| argument.clone()).collect();
        Ok(buffers_of(self.run(backend, owned, hooks)?))
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        let backends = self.backend().runtime().backends();
        let mut others = self.backend().runtime().addressable().iter().map(|&id| &backends[id]).cycle();
        let mut results = Vec::with_capacity(lists.len());
        for (backend, list) in lists {
            let own_backend = PjrtBackend::of(&*backend)
                .filter(|backend| std::ptr::eq(backend.runtime(), self.backend().runtime()));
            let backend = match own_backend {
                Some(backend) => backend,
                None => {
                    self.backend_of(&*backend)?;
                    others.next().expect("a client has devices")
                }
            };
            results.push(self.run_at(backend, list, hooks)?);
        }
        Ok(results)
    }

    fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>> {
        let plan = match &self.mode {
            ExecutionMode::Compiled(plan) => plan,
            ExecutionMode::Checked(_) | ExecutionMode::OnHost(_) => return Err(failure::not_written()),
        };
        let runtime = self.backend().runtime();
        runtime.require_process("save")?;
        let mut saved =
            Saved::new(runtime.machine(), &runtime.kind(), self.hardware, &self.program, &self.donate);
        let mut is_portable = true;
        plan.each(&mut |program| {
            is_portable &= program.compiled.is_portable;
            Ok(())
        })?;
        let portable =
            (!is_portable).then(|| self.compiler.plan(&self.program, &self.donate, true)).transpose()?;
        portable.as_ref().unwrap_or(plan).each(&mut |program| {
            saved.add(program.text, program.compiled.to_bytes(runtime)?);
            Ok(())
        })?;
        Ok(saved.to_bytes(note))
    }
}

impl PjrtExecutable {
    /// Runs on a device of the client.
    pub(super) fn run_at(
        &self,
        backend: &PjrtBackend,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        match &self.mode {
            ExecutionMode::Compiled(plan) => self.run_plan(plan, backend, arguments, hooks),
            ExecutionMode::OnHost(evaluator) => self.run_on_host(&**evaluator, backend, arguments, hooks),
            ExecutionMode::Checked(checked) => {
                let to_device = |(position, argument): (usize, Tensor)| {
                    if !checked.uses(position) {
                        return Ok(argument);
                    }
                    let elements = adopt(backend, position, &argument)?;
                    Ok(Tensor::concrete(argument.whole().clone(), backend.wrap(elements)))
                };
                let arguments = arguments.into_iter().enumerate().map(to_device).collect::<Result<_>>()?;
                let backend: Arc<dyn Backend> = backend.shared().clone();
                checked.run(&backend, arguments, hooks)
            }
        }
    }
}

impl fmt::Debug for PjrtExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PjrtExecutable({:?} for {})", self.program, self.backend().device_name())
    }
}

/// One execution.
struct PlanRun<'a> {
    backend: &'a PjrtBackend,
    hooks: &'a dyn Hooks,
}

impl PlanRun<'_> {
    /// Runs a plan on the elements of the inputs that it uses. The elements in `shared` slots are not reused.
    fn plan(&self, plan: &Plan<DeviceProgram>, mut slots: Slots, shared: &[usize]) -> Result<ElementsList> {
        for step in &plan.steps {
            let results = self.step(step, &slots, shared).map_err(|error| error.at(step.location.clone()))?;
            for &slot in &step.last_uses {
                slots[slot] = None;
            }
            for (&slot, elements) in step.outputs.iter().zip(results) {
                slots[slot] = Some(elements);
            }
            self.hooks.poll()?;
        }
        let result = |&slot: &usize| slots[slot].clone().expect("results live to the end");
        Ok(plan.results.iter().map(result).collect())
    }

    fn inner(&self, plan: &Plan<DeviceProgram>, inputs: &[Arc<Elements>]) -> Result<ElementsList> {
        let mut slots: Slots = SmallVec::from_elem(None, plan.slots);
        for (position, (slot, input)) in slots.iter_mut().zip(inputs).enumerate() {
            if plan.used[position] {
                *slot = Some(input.clone());
            }
        }
        self.plan(plan, slots, &[])
    }

    fn step(&self, step: &Step<DeviceProgram>, slots: &Slots, shared: &[usize]) -> Result<ElementsList> {
        let input = |&slot: &usize| slots[slot].clone().expect("a value lives until its last use");
        let inputs = || -> ElementsList { step.inputs.iter().map(input).collect() };
        match &step.work {
            Work::Device { program, hooks } => self.device(step, program, hooks, slots, shared),
            Work::Call { slot, inputs: types, outputs } => {
                let results = self.hooks.compute(*slot, &self.values(types, &inputs())?, outputs)?;
                self.adopt(results, outputs)
            }
            Work::Cond { predicates, branches } => {
                let inputs = inputs();
                let (conditions, captures) = inputs.split_at(predicates.len());
                let mut chosen = predicates.len();
                for (position, (&dtype, condition)) in predicates.iter().zip(conditions).enumerate() {
                    if self.is_true(dtype, condition)? {
                        chosen = position;
                        break;
                    }
                }
                self.inner(&branches[chosen], captures)
            }
            Work::While { state, predicate, cond, body } => {
                let mut inputs = inputs();
                loop {
                    self.hooks.poll()?;
                    let condition = self.inner(cond, &inputs)?;
                    if !self.is_true(*predicate, &condition[0])? {
                        inputs.truncate(*state);
                        return Ok(inputs);
                    }
                    let next = self.inner(body, &inputs)?;
                    for (value, next) in inputs.iter_mut().zip(next) {
                        *value = next;
                    }
                }
            }
            Work::Inline(plan) => self.inner(plan, &inputs()),
        }
    }

    /// Starts a segment, and calls its hooks once their values are computed.
    fn device(
        &self,
        step: &Step<DeviceProgram>,
        program: &DeviceProgram,
        hooks: &[(usize, Vec<TensorType>)],
        slots: &Slots,
        shared: &[usize],
    ) -> Result<ElementsList> {
        let input = |&slot: &usize| slots[slot].as_ref().expect("a value lives until its last use");
        let arguments: SmallVec<[&Arc<Elements>; 4]> = step.inputs.iter().map(input).collect();
        let mut non_donatable: SmallVec<[i64; 2]> = SmallVec::new();
        if !shared.is_empty() {
            let positions = step.inputs.iter().zip(0_i64..).filter(|(slot, _)| shared.contains(slot));
            non_donatable.extend(positions.map(|(_, position)| position));
        }
        let mut results = start(self.backend, program, &arguments, &non_donatable)?;
        let mut hook_values = results.drain(step.outputs.len()..);
        for (slot, types) in hooks {
            let values: ElementsList = hook_values.by_ref().take(types.len()).collect();
            self.hooks.call(*slot, &self.values(types, &values)?)?;
        }
        drop(hook_values);
        Ok(results)
    }

    /// Elements as computed tensors, which the host may read.
    fn values(&self, types: &[TensorType], elements: &[Arc<Elements>]) -> Result<Vec<Tensor>> {
        let value = |(ty, elements): (&TensorType, &Arc<Elements>)| {
            elements.wait("run", &|| self.hooks.poll())?;
            Ok(Tensor::concrete(ty.clone(), self.backend.wrap(elements.clone())))
        };
        types.iter().zip(elements).map(value).collect()
    }

    /// Results of a host function, checked and copied to the device.
    fn adopt(&self, results: Vec<Tensor>, outputs: &[TensorType]) -> Result<ElementsList> {
        let op = "runtime_call";
        if results.len() != outputs.len() {
            let (got, expected) = (results.len(), outputs.len());
            return Err(ErrorKind::RegionResults { op, what: "function", got, expected }.into());
        }
        let each = |(index, (result, expected)): (usize, (Tensor, &TensorType))| {
            if !expected.is_compatible(result.whole()) {
                let (got, expected) = (result.whole().clone(), expected.clone());
                return Err(ErrorKind::CallResult { op, index, got, expected }.into());
            }
            self.backend.adopt(op, &result)
        };
        results.into_iter().zip(outputs).enumerate().map(each).collect()
    }

    /// Reads a scalar predicate: zero is false, everything else is true, NaN too.
    fn is_true(&self, dtype: DType, elements: &Elements) -> Result<bool> {
        elements.wait("run", &|| self.hooks.poll())?;
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..dtype.storage_bytes()];
        let read = elements.raw().read(bytes);
        read.map_err(|error| failure::device("run", self.backend.runtime(), error))?;
        Ok(Scalar::from_bytes(dtype, bytes).value().is_true())
    }
}
