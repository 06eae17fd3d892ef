//! Runs the steps of a plan.

use std::sync::Arc;

use defn_core::backend::{Backend, Buffer, Buffers, Hooks, NoHooks};
use defn_core::evaluator::{adopt, tensors_of};
use defn_core::graph::{Graph, Node, Value};
use defn_core::memory::check;
use defn_core::profile::Recorder;
use defn_core::{Error, Result, TensorType, form, stack};
use smallvec::SmallVec;

use super::buffer_assignment::{BufferRef, ResultBinding};
use super::plan::{Plan, Step, Work};
use crate::backend::{buffer, run_into, window};
use crate::buffer::{Storage, Window};
use crate::view::{View, ViewMut, dangling, is_aligned};

/// One run of a plan.
pub(super) struct PlanRun<'a> {
    pub(super) backend: &'a Arc<dyn Backend>,
    pub(super) hooks: &'a dyn Hooks,
    /// The profiler, if there is one.
    pub(super) recorder: Option<&'a Recorder>,
}

/// The buffers of one run of a plan.
pub(super) struct PlanBuffers<'a> {
    /// The address of each argument that the plan uses.
    pub(super) arguments: &'a [*mut u8],
    pub(super) results: &'a [*mut u8],
    pub(super) arena: *mut u8,
}

impl PlanBuffers<'_> {
    fn at(&self, plan: &Plan, buffer_ref: BufferRef) -> *mut u8 {
        match buffer_ref {
            BufferRef::Argument(index, offset) => self.arguments[index].wrapping_add(offset),
            BufferRef::Constant(index, offset) => {
                plan.constants[index].start().wrapping_add(offset).cast_mut()
            }
            BufferRef::Result(index, offset) => self.results[index].wrapping_add(offset),
            BufferRef::Arena(offset) => self.arena.wrapping_add(offset),
        }
    }
}

pub(super) type Pointers = SmallVec<[*mut u8; 8]>;

impl PlanRun<'_> {
    /// Runs a plan.
    ///
    /// # Safety
    /// `buffers` has the elements of each argument that the plan uses, memory for each result, and the bytes of the
    /// arena, all aligned. Nothing else uses them meanwhile, except for memory that is only read. A result that reuses
    /// an argument has the same address.
    pub(super) unsafe fn plan(&self, plan: &Plan, buffers: &PlanBuffers<'_>) -> Result<()> {
        let graph = plan.region.graph();
        for step in &plan.steps {
            let pointer = |&(_, buffer_ref): &(Value, BufferRef)| buffers.at(plan, buffer_ref);
            let operands: Pointers = step.inputs.iter().map(pointer).collect();
            let results: Pointers = step.outputs.iter().map(pointer).collect();
            let scratch = buffers.arena.wrapping_add(step.scratch_offset);
            // SAFETY: steps come after those that write what they read.
            unsafe { self.step(plan, step, &operands, &results, scratch)? };
        }
        for (at, binding) in plan.results.iter().enumerate() {
            let from = match binding {
                ResultBinding::Computed => continue,
                ResultBinding::SameAs(first) => buffers.results[*first],
                ResultBinding::Existing(buffer_ref) | ResultBinding::Copied(buffer_ref) => {
                    buffers.at(plan, *buffer_ref)
                }
            };
            let bytes = graph.ty(plan.region.results()[at]).byte_size();
            // SAFETY: a result has room, and what it is copied from was written.
            unsafe { copy(from, buffers.results[at], bytes) };
        }
        Ok(())
    }

    /// Runs a step between pointers, with its scratch memory.
    ///
    /// # Safety
    /// At the pointers are the elements of what the step reads, and room for what it writes, aligned, which overlap only
    /// as the plan has it. Nothing else uses them meanwhile, except for memory that is only read.
    pub(super) unsafe fn step(
        &self,
        plan: &Plan,
        step: &Step,
        operands: &[*mut u8],
        results: &[*mut u8],
        scratch: *mut u8,
    ) -> Result<()> {
        let graph = plan.region.graph();
        let node = &graph.nodes()[step.node];
        let _running = self
            .recorder
            .map(|recorder| recorder.step(std::ptr::from_ref(step).addr(), || step.profiled(graph)));
        // SAFETY: as the caller promises.
        unsafe { self.work(graph, step, node, operands, results, scratch) }
            .map_err(|error| with_location(error, graph, node))?;
        self.hooks.poll()?;
        check(form::name(&node.op)).map_err(|error| with_location(error, graph, node))
    }

    /// # Safety
    /// As for `step`.
    unsafe fn work(
        &self,
        graph: &Graph,
        step: &Step,
        node: &Node,
        operands: &[*mut u8],
        results: &[*mut u8],
        scratch: *mut u8,
    ) -> Result<()> {
        let input = |at: usize| {
            // SAFETY: as the caller promises.
            unsafe { View::of_part(graph.ty(step.inputs[at].0), operands[at]) }
        };
        let output = |at: usize| {
            // SAFETY: as above; the buffers of the outputs of a step do not overlap.
            unsafe { ViewMut::new(graph.ty(step.outputs[at].0), results[at]) }
        };
        let (inputs, outputs) = (0..step.inputs.len(), 0..step.outputs.len());
        match &step.work {
            // SAFETY: as the caller promises; results are in the memory of inputs only where the nest was told so.
            Work::Nest(nest) => unsafe { nest.run(operands, results, scratch, step.par) },
            Work::Epilogue(epilogue) => {
                let inputs: SmallVec<[View<'_>; 8]> = inputs.map(input).collect();
                let results: SmallVec<[ViewMut<'_>; 3]> = outputs.map(output).collect();
                // SAFETY: the scratch memory belongs to the step alone.
                unsafe { epilogue.run(graph, &inputs, &results, scratch, step.par, &|| self.hooks.poll())? };
            }
            Work::BackToBackGemm(gemm) => {
                let inputs: SmallVec<[View<'_>; 8]> = inputs.map(input).collect();
                gemm.run(&inputs, &mut output(0), step.par);
            }
            Work::Op => {
                let inputs: SmallVec<[View<'_>; 8]> = inputs.map(input).collect();
                let results: SmallVec<[ViewMut<'_>; 3]> = outputs.map(output).collect();
                let poll = || self.hooks.poll();
                run_into(&node.op, &inputs, &results, step.aliased_input, step.par, false, &poll)?;
            }
            Work::Hook { slot, types } => {
                let values = inputs.map(|at| copy_for_host(form::name(&node.op), input(at)));
                let values: Buffers = values.collect::<Result<_>>()?;
                self.hooks.call(*slot, &tensors_of(types, &values))?;
            }
            Work::Call { slot, types, outputs } => {
                let values = inputs.map(|at| copy_for_host(form::name(&node.op), input(at)));
                let values: Buffers = values.collect::<Result<_>>()?;
                let returned = self.hooks.compute(*slot, &tensors_of(types, &values), outputs)?;
                let returned = adopt(&node.op, returned, outputs, self.backend)?;
                for ((buffer, ty), to) in returned.iter().zip(outputs).zip(results) {
                    let operand = defn_core::backend::Operand { ty: ty.clone(), buffer: buffer.clone() };
                    let window = window(form::name(&node.op), &operand)?;
                    let bytes = window.bytes();
                    // SAFETY: there is room for the output, which is nothing of the host's.
                    unsafe { copy(bytes.as_ptr(), *to, ty.byte_size().min(bytes.len())) };
                }
            }
            Work::Control(control) => {
                stack::require("run")?;
                // SAFETY: as the caller promises; a part of a loop's state is in its result's memory or apart.
                unsafe { control.run(self, operands, results, scratch)? };
            }
            Work::Regions(_) => unreachable!("the function of the loop around does what they do"),
        }
        Ok(())
    }

    /// Runs a plan on the arguments that it uses, in memory for its results and temporaries.
    pub(super) fn program(
        &self,
        plan: &Plan,
        arguments: &[Option<Window>],
        memory: &mut RunMemory,
    ) -> Result<Buffers> {
        let graph = plan.region.graph();
        let RunMemory { arena, results, reused_arguments } = memory;
        let mut pointers = Pointers::new();
        for window in arguments {
            pointers.push(match window {
                Some(window) => window.bytes().as_ptr().cast_mut(),
                None => std::ptr::null_mut(),
            });
        }
        for &(argument, result) in &*reused_arguments {
            pointers[argument] = start_of(results[result].as_mut().expect("an argument's memory"));
        }
        let arena = arena.as_mut().map_or_else(dangling, start_of);
        let mut buffers = PlanBuffers { arguments: &pointers, results: &[], arena };
        let mut starts = Pointers::new();
        for (binding, storage) in plan.results.iter().zip(&mut *results) {
            // What is not written is not copied either: it lies where it is found.
            starts.push(match (binding, storage) {
                (_, Some(storage)) => start_of(storage),
                (ResultBinding::SameAs(first), None) => starts[*first],
                (ResultBinding::Existing(buffer_ref) | ResultBinding::Copied(buffer_ref), None) => {
                    buffers.at(plan, *buffer_ref)
                }
                (ResultBinding::Computed, None) => unreachable!("what is written has memory"),
            });
        }
        buffers.results = &starts;
        // SAFETY: windows are held, and are as long as the types say; the rest was allocated for the plan.
        unsafe { self.plan(plan, &buffers)? };
        // Several results may be in the memory of one donated argument.
        let mut donated: SmallVec<[(usize, Window); 2]> = SmallVec::new();
        for &(argument, result) in &*reused_arguments {
            let storage = results[result].take().expect("an argument's memory");
            let bytes = graph.ty(plan.region.results()[result]).byte_size();
            // SAFETY: the plan has written every element, or they were there before.
            donated.push((argument, unsafe { Window::new(Arc::new(storage), 0, bytes) }));
        }
        let of_argument = |index: usize| {
            let window = donated.iter().find(|(argument, _)| *argument == index).map(|(_, window)| window);
            window.or(arguments[index].as_ref()).expect("what is given is used")
        };
        let mut outputs = Buffers::new();
        for (at, (binding, storage)) in plan.results.iter().zip(results).enumerate() {
            let bytes = graph.ty(plan.region.results()[at]).byte_size();
            if let Some(&(argument, _)) = reused_arguments.iter().find(|(_, result)| *result == at) {
                outputs.push(buffer(of_argument(argument).part(0, bytes)));
                continue;
            }
            let window = match (binding, storage.take()) {
                // SAFETY: the plan has written every element.
                (_, Some(storage)) => unsafe { Window::new(Arc::new(storage), 0, bytes) },
                (ResultBinding::Existing(BufferRef::Argument(index, offset)), None) => {
                    of_argument(*index).part(*offset, bytes)
                }
                (ResultBinding::Existing(BufferRef::Constant(index, offset)), None) => {
                    plan.constants[*index].window.part(*offset, bytes)
                }
                (ResultBinding::SameAs(first), None) => {
                    outputs.push(outputs[*first].clone());
                    continue;
                }
                (ResultBinding::Existing(_) | ResultBinding::Computed | ResultBinding::Copied(_), None) => {
                    unreachable!("what is written has memory")
                }
            };
            outputs.push(buffer(window));
        }
        Ok(outputs)
    }
}

impl Plan {
    /// Runs on memory of the caller.
    ///
    /// # Panics
    /// If a number or a size differs from the plan's, or memory is not aligned for its elements.
    pub(super) fn run_on_bytes(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&[u8]],
        results: &mut [&mut [u8]],
    ) -> Result<()> {
        let is_for = |ty: &TensorType, start: *const u8, bytes: usize| {
            ty.byte_size() == bytes && (bytes == 0 || is_aligned(ty, start))
        };
        let inputs = self.region.inputs();
        assert_eq!((arguments.len(), results.len()), (inputs.len(), self.results.len()));
        assert!(inputs.iter().zip(arguments).all(|(ty, bytes)| is_for(ty, bytes.as_ptr(), bytes.len())));
        let mut outputs = self.region.result_types().zip(&*results);
        assert!(outputs.all(|(ty, bytes)| is_for(ty, bytes.as_ptr(), bytes.len())));
        let arguments: Pointers = arguments.iter().map(|bytes| bytes.as_ptr().cast_mut()).collect();
        let results: Pointers = results.iter_mut().map(|bytes| bytes.as_mut_ptr()).collect();
        let mut arena = allocate_arena(self)?;
        let arena = arena.as_mut().map_or_else(dangling, start_of);
        let run = PlanRun { backend, hooks: &NoHooks, recorder: None };
        // SAFETY: memory has the types' sizes and alignments. That of results is borrowed mutably, so that nothing else
        // uses it, and no argument is donated.
        unsafe { run.plan(self, &PlanBuffers { arguments: &arguments, results: &results, arena }) }
    }
}

/// The memory that a run writes. It is a large type, and constructed in place.
#[derive(Default)]
pub(super) struct RunMemory {
    /// The temporaries, if there are any.
    arena: Option<Storage>,
    /// The memory of each result that has its own.
    results: SmallVec<[Option<Storage>; 4]>,
    /// Donated arguments, and the results that reuse their memory.
    reused_arguments: SmallVec<[(usize, usize); 4]>,
}

impl RunMemory {
    /// Allocates what a plan asks for, but for the results that take the memory of arguments.
    ///
    /// # Errors
    /// When there is not enough.
    pub(super) fn allocate(&mut self, plan: &Plan) -> Result<()> {
        self.arena = allocate_arena(plan)?;
        let mut owned = plan.owned_results.iter().peekable();
        for at in 0..plan.results.len() {
            let owned = owned.next_if(|owned| owned.index == at);
            self.results
                .push(owned.map(|owned| allocate_for_node(plan, Some(owned.node), owned.bytes)).transpose()?);
        }
        Ok(())
    }

    /// Stores a result in the memory of an argument, or in a copy of it where that memory has other owners.
    ///
    /// # Errors
    /// The window, when there is no memory for a copy.
    pub(super) fn reuse_argument(
        &mut self,
        argument: usize,
        result: usize,
        window: Window,
    ) -> std::result::Result<(), (Error, Window)> {
        let unique = if window.offset() == 0 { window.into_unique() } else { Err(window) };
        let storage = match unique {
            Ok(storage) => storage,
            Err(window) => copied("run", window.bytes()).map_err(|error| (error, window))?,
        };
        self.results[result] = Some(storage);
        self.reused_arguments.push((argument, result));
        Ok(())
    }
}

/// Memory for the temporaries of a plan, if it has any.
///
/// # Errors
/// When there is not enough.
fn allocate_arena(plan: &Plan) -> Result<Option<Storage>> {
    let allocate = || allocate_for_node(plan, plan.largest_temporary, plan.arena);
    (plan.arena > 0).then(allocate).transpose()
}

/// Memory for what a node gives; an error names the node's line.
///
/// # Errors
/// When there is not enough.
pub(super) fn allocate_for_node(plan: &Plan, node: Option<usize>, bytes: usize) -> Result<Storage> {
    let Some(node) = node else { return Storage::allocate("run", bytes) };
    let node = &plan.region.graph().nodes()[node];
    Storage::allocate(form::name(&node.op), bytes).map_err(|error| error.at(node.location.clone()))
}

fn start_of(storage: &mut Storage) -> *mut u8 {
    storage.start_mut().expect("allocated memory is ours")
}

/// New memory with the same bytes.
fn copied(op: &'static str, bytes: &[u8]) -> Result<Storage> {
    let mut storage = Storage::allocate(op, bytes.len())?;
    // SAFETY: the new memory has as many bytes, and overlaps nothing.
    unsafe { copy(bytes.as_ptr(), start_of(&mut storage), bytes.len()) };
    Ok(storage)
}

/// A copy of a value, for the host.
fn copy_for_host(op: &'static str, value: View<'_>) -> Result<Arc<dyn Buffer>> {
    let storage = copied(op, value.bytes())?;
    let bytes = storage.len();
    // SAFETY: the copy has written all.
    Ok(buffer(unsafe { Window::new(Arc::new(storage), 0, bytes) }))
}

/// Copies bytes, unless they are there already.
///
/// # Safety
/// Both places have as many, and are one or do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if from != to.cast_const() {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}

/// Says where in the user's program a run failed.
#[cold]
fn with_location(error: Error, graph: &Graph, node: &Node) -> Error {
    error.at(node.location.clone()).with_operands(node.inputs.iter().map(|&value| graph.ty(value)))
}
