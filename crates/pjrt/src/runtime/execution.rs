//! Running compiled programs.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use defn_core::backend::{Backend, Buffers, Executable, Gone, Hooks, buffers_of, check_arguments};
use defn_core::donation::named;
use defn_core::region::Region;
use defn_core::{DType, ErrorKind, Result, Scalar, Tensor, TensorType};
use smallvec::SmallVec;

use super::buffer::{Elements, PjrtBuffer};
use super::compiler::PjrtCompiler;
use super::digest::Digest;
use super::live::What;
use super::plan::{Plan, Step, Work};
use super::programs::Compiled;
use super::saved::Saved;
use super::{PjrtBackend, failure};

/// A compiled piece of a program.
pub(super) struct Program {
    pub compiled: Arc<Compiled>,
    /// The digest of the text from which it was compiled.
    pub text: Digest,
    /// The descriptions of its outputs; those for hooks come last.
    pub results: SmallVec<[Arc<What>; 2]>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} outputs)", self.results.len())
    }
}

/// How a program runs.
#[derive(Debug)]
pub(super) enum Way {
    /// As it was compiled.
    Compiled(Plan<Program>),
    /// Op by op, with checks of each result.
    Checked(Arc<dyn Executable>),
}

/// A compiled program.
pub struct PjrtExecutable {
    compiler: PjrtCompiler,
    program: Arc<Region>,
    way: Way,
    /// The positions of the donated arguments, ascending.
    donate: Vec<usize>,
    /// If the program is one piece without work for the host: the output of the piece for each result.
    whole: Option<SmallVec<[usize; 4]>>,
}

/// Elements by slot.
type Slots = SmallVec<[Option<Arc<Elements>>; 8]>;

/// The results of a part of a program.
type Made = SmallVec<[Arc<Elements>; 4]>;

impl PjrtExecutable {
    pub(super) fn new(
        compiler: PjrtCompiler,
        program: Arc<Region>,
        way: Way,
        donate: &[usize],
    ) -> PjrtExecutable {
        let mut donate = donate.to_vec();
        donate.sort_unstable();
        donate.dedup();
        let whole = match &way {
            Way::Compiled(plan) if donate.is_empty() => whole(plan),
            Way::Compiled(_) | Way::Checked(_) => None,
        };
        PjrtExecutable { compiler, program, way, donate, whole }
    }

    /// The device for programs whose arguments are on no device of the client.
    pub fn place(&self) -> &Arc<PjrtBackend> {
        self.compiler.place()
    }

    /// The device of a run whose arguments are on `backend`.
    fn place_of<'a>(&'a self, backend: &'a dyn Backend) -> Result<&'a PjrtBackend> {
        match PjrtBackend::of(backend) {
            Some(place) if std::ptr::eq(place.runtime(), self.place().runtime()) => Ok(place),
            Some(place) if !self.place().takes_over(place) => {
                let (left, right) = (self.place().place(), place.place());
                Err(ErrorKind::BackendConflict { op: "run", left, right }.into())
            }
            Some(_) | None => Ok(self.place()),
        }
    }

    /// The elements of the arguments that are not donated, on the device of the run.
    fn bring(&self, plan: &Plan<Program>, place: &PjrtBackend, arguments: &[Tensor]) -> Result<Slots> {
        let mut slots: Slots = SmallVec::from_elem(None, plan.slots);
        for (position, argument) in arguments.iter().enumerate() {
            if plan.used[position] && !self.donate.contains(&position) {
                slots[position] = Some(adopt(place, position, argument)?);
            }
        }
        Ok(slots)
    }

    /// Takes all donated arguments, or none. Returns the slots of those whose memory another tensor shares: they are
    /// copied where the program would reuse it.
    fn take(
        &self,
        place: &PjrtBackend,
        arguments: &[Tensor],
        slots: &mut Slots,
    ) -> Result<SmallVec<[usize; 2]>> {
        let mut shared = SmallVec::new();
        let gone = Gone::donated();
        for (count, &position) in self.donate.iter().enumerate() {
            let argument = &arguments[position];
            let taken = match own(argument, place) {
                Some(own) => {
                    own.donate("run", gone.clone()).map_err(|error| named(error, position, argument))
                }
                // The run owns its copy on the device; the source of the copy stays.
                None => adopt(place, position, argument),
            };
            match taken {
                Ok(elements) => {
                    if elements.is_shared() {
                        shared.push(position);
                    }
                    slots[position] = Some(elements);
                }
                Err(error) => {
                    for &taken in &self.donate[..count] {
                        restore(&arguments[taken], place, slots[taken].take());
                    }
                    return Err(error);
                }
            }
        }
        Ok(shared)
    }

    /// Runs a program of one piece on arguments that have its types and that the caller keeps.
    fn run_whole(
        &self,
        plan: &Plan<Program>,
        whole: &[usize],
        place: &PjrtBackend,
        arguments: &[&Tensor],
    ) -> Result<Buffers> {
        let [Step { work: Work::Device { program, .. }, inputs, location, .. }] = &plan.steps[..] else {
            unreachable!("a plan of one piece has one step, for the device");
        };
        // The slots of the inputs are their positions.
        let mut elements = Made::new();
        for &input in inputs {
            elements.push(adopt(place, input, arguments[input])?);
        }
        let made = start(place, program, &elements, &[]).map_err(|error| error.at(location.clone()))?;
        let wrap = |elements| place.wrap(elements);
        if whole.iter().copied().eq(0..made.len()) {
            return Ok(made.into_iter().map(wrap).collect());
        }
        Ok(whole.iter().map(|&at| wrap(made[at].clone())).collect())
    }

    fn run_plan(
        &self,
        plan: &Plan<Program>,
        place: &PjrtBackend,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        check_arguments("run", self.program.inputs(), arguments.iter())?;
        let types = self.program.result_types().cloned();
        if let Some(whole) = &self.whole {
            let lent: SmallVec<[&Tensor; 8]> = arguments.iter().collect();
            let results = self.run_whole(plan, whole, place, &lent)?;
            return Ok(types.zip(results).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect());
        }
        let mut slots = self.bring(plan, place, &arguments)?;
        let run = Run { place, hooks };
        let results = if self.donate.is_empty() {
            drop(arguments);
            run.plan(plan, slots, &[])?
        } else {
            let shared = self.take(place, &arguments, &mut slots)?;
            let taken: SmallVec<[Option<Arc<Elements>>; 2]> =
                self.donate.iter().map(|&position| slots[position].clone()).collect();
            match run.plan(plan, slots, &shared) {
                Ok(results) => results,
                Err(error) => {
                    // A run that did not start has used up no argument. A run that is still starting, because the wait
                    // for it was interrupted, holds the arguments that it will use up.
                    for (&position, elements) in self.donate.iter().zip(taken) {
                        let is_held = |elements: &Arc<Elements>| {
                            !shared.contains(&position) && Arc::strong_count(elements) > 1
                        };
                        let live = elements.filter(|elements| {
                            !is_held(elements) && elements.raw().is_deleted() == Ok(false)
                        });
                        restore(&arguments[position], place, live);
                    }
                    return Err(error);
                }
            }
        };
        Ok(types.zip(results).map(|(ty, elements)| Tensor::concrete(ty, place.wrap(elements))).collect())
    }
}

/// The output of the only piece for each result, if the host has nothing to do.
fn whole(plan: &Plan<Program>) -> Option<SmallVec<[usize; 4]>> {
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

/// Starts a piece, and returns its results. The arguments at the positions `keep` are not donated.
fn start(
    place: &PjrtBackend,
    program: &Program,
    arguments: &[impl Borrow<Arc<Elements>> + Sync],
    keep: &[i64],
) -> Result<Made> {
    let raw = place.runtime().execute("run", &program.compiled, arguments, keep, place.device_id())?;
    let are_settled = arguments.iter().all(|elements| elements.borrow().is_settled());
    let settled = are_settled && program.compiled.is_prompt(&raw);
    let make = |(raw, what): (_, &Arc<What>)| Elements::new(place.runtime(), raw, what.clone(), settled);
    Ok(raw.into_iter().zip(&program.results).map(make).collect())
}

/// The buffer of an argument that is already on the device.
fn own<'a>(argument: &'a Tensor, place: &PjrtBackend) -> Option<&'a PjrtBuffer> {
    let own: &PjrtBuffer = argument.buffer()?.as_any().downcast_ref()?;
    own.place().is(place).then_some(own)
}

/// An argument's elements on the device. An argument on another device of the same client is not moved: its owner chose
/// that device.
fn adopt(place: &PjrtBackend, position: usize, argument: &Tensor) -> Result<Arc<Elements>> {
    if let Some(own) = own(argument, place) {
        return own.elements("run").map_err(|error| named(error, position, argument));
    }
    if let Some(other) = argument.backend()
        && let Some(other) = PjrtBackend::of(&*other)
        && !place.is_same_place(other)
        && !place.takes_over(other)
    {
        let (left, right) = (place.place(), other.place());
        return Err(ErrorKind::BackendConflict { op: "run", left, right }.into());
    }
    place.adopt("run", argument).map_err(|error| named(error, position, argument))
}

fn restore(argument: &Tensor, place: &PjrtBackend, elements: Option<Arc<Elements>>) {
    if let (Some(own), Some(elements)) = (own(argument, place), elements) {
        own.restore(elements);
    }
}

impl Executable for PjrtExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        match &self.way {
            Way::Compiled(plan) => plan.used[input] || self.donate.contains(&input),
            Way::Checked(checked) => checked.uses(input),
        }
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        self.run_at(self.place_of(&**backend)?, arguments, hooks)
    }

    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        if let (Way::Compiled(plan), Some(whole)) = (&self.way, &self.whole) {
            return self.run_whole(plan, whole, self.place_of(&**backend)?, arguments);
        }
        let held = arguments.iter().map(|&argument| argument.clone()).collect();
        Ok(buffers_of(self.run(backend, held, hooks)?))
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        let places = self.place().runtime().backends();
        let mut others = places.iter().cycle();
        let mut results = Vec::with_capacity(lists.len());
        for (backend, list) in lists {
            let own = PjrtBackend::of(&*backend)
                .filter(|place| std::ptr::eq(place.runtime(), self.place().runtime()));
            let place = match own {
                Some(place) => place,
                None => {
                    self.place_of(&*backend)?;
                    others.next().expect("a client has devices")
                }
            };
            results.push(self.run_at(place, list, hooks)?);
        }
        Ok(results)
    }

    fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>> {
        let plan = match &self.way {
            Way::Compiled(plan) => plan,
            Way::Checked(_) => return Err(failure::not_written()),
        };
        let runtime = self.place().runtime();
        runtime.require_process("save")?;
        let mut saved = Saved::new(runtime.machine(), &runtime.kind(), &self.program, &self.donate);
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
        place: &PjrtBackend,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        match &self.way {
            Way::Compiled(plan) => self.run_plan(plan, place, arguments, hooks),
            Way::Checked(checked) => {
                let bring = |(position, argument): (usize, Tensor)| {
                    if !checked.uses(position) {
                        return Ok(argument);
                    }
                    let elements = adopt(place, position, &argument)?;
                    Ok(Tensor::concrete(argument.whole().clone(), place.wrap(elements)))
                };
                let arguments = arguments.into_iter().enumerate().map(bring).collect::<Result<_>>()?;
                let place: Arc<dyn Backend> = place.shared().clone();
                checked.run(&place, arguments, hooks)
            }
        }
    }
}

impl fmt::Debug for PjrtExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PjrtExecutable({:?} for {})", self.program, self.place().place())
    }
}

/// One execution.
struct Run<'a> {
    place: &'a PjrtBackend,
    hooks: &'a dyn Hooks,
}

impl Run<'_> {
    /// Runs a plan on the elements of the inputs that it uses. The elements in `shared` slots are not reused.
    fn plan(&self, plan: &Plan<Program>, mut slots: Slots, shared: &[usize]) -> Result<Made> {
        for step in &plan.steps {
            let made = self.step(step, &slots, shared).map_err(|error| error.at(step.location.clone()))?;
            for &slot in &step.dies {
                slots[slot] = None;
            }
            for (&slot, elements) in step.outputs.iter().zip(made) {
                slots[slot] = Some(elements);
            }
            self.hooks.poll()?;
        }
        let result = |&slot: &usize| slots[slot].clone().expect("results live to the end");
        Ok(plan.results.iter().map(result).collect())
    }

    fn inner(&self, plan: &Plan<Program>, inputs: &[Arc<Elements>]) -> Result<Made> {
        let mut slots: Slots = SmallVec::from_elem(None, plan.slots);
        for (position, (slot, input)) in slots.iter_mut().zip(inputs).enumerate() {
            if plan.used[position] {
                *slot = Some(input.clone());
            }
        }
        self.plan(plan, slots, &[])
    }

    fn step(&self, step: &Step<Program>, slots: &Slots, shared: &[usize]) -> Result<Made> {
        let input = |&slot: &usize| slots[slot].clone().expect("a value lives until its last use");
        let inputs = || -> Made { step.inputs.iter().map(input).collect() };
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
                    let holds = self.inner(cond, &inputs)?;
                    if !self.is_true(*predicate, &holds[0])? {
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

    /// Starts a piece, and calls its hooks once their values are computed.
    fn device(
        &self,
        step: &Step<Program>,
        program: &Program,
        hooks: &[(usize, Vec<TensorType>)],
        slots: &Slots,
        shared: &[usize],
    ) -> Result<Made> {
        let input = |&slot: &usize| slots[slot].as_ref().expect("a value lives until its last use");
        let arguments: SmallVec<[&Arc<Elements>; 4]> = step.inputs.iter().map(input).collect();
        let mut keep: SmallVec<[i64; 2]> = SmallVec::new();
        if !shared.is_empty() {
            let places = step.inputs.iter().zip(0_i64..).filter(|(slot, _)| shared.contains(slot));
            keep.extend(places.map(|(_, place)| place));
        }
        let mut results = start(self.place, program, &arguments, &keep)?;
        let mut shown = results.drain(step.outputs.len()..);
        for (slot, types) in hooks {
            let values: Made = shown.by_ref().take(types.len()).collect();
            self.hooks.call(*slot, &self.values(types, &values)?)?;
        }
        drop(shown);
        Ok(results)
    }

    /// Elements as computed tensors, which the host may read.
    fn values(&self, types: &[TensorType], elements: &[Arc<Elements>]) -> Result<Vec<Tensor>> {
        let value = |(ty, elements): (&TensorType, &Arc<Elements>)| {
            elements.wait("run", &|| self.hooks.poll())?;
            Ok(Tensor::concrete(ty.clone(), self.place.wrap(elements.clone())))
        };
        types.iter().zip(elements).map(value).collect()
    }

    /// Results of a host function, checked and copied to the device.
    fn adopt(&self, results: Vec<Tensor>, outputs: &[TensorType]) -> Result<Made> {
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
            self.place.adopt(op, &result)
        };
        results.into_iter().zip(outputs).enumerate().map(each).collect()
    }

    /// Reads a scalar predicate: zero is false, everything else is true, NaN too.
    fn is_true(&self, dtype: DType, elements: &Elements) -> Result<bool> {
        elements.wait("run", &|| self.hooks.poll())?;
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..dtype.storage_bytes()];
        let read = elements.raw().read(bytes);
        read.map_err(|error| failure::device("run", self.place.runtime(), error))?;
        Ok(Scalar::from_bytes(dtype, bytes).value().is_true())
    }
}
