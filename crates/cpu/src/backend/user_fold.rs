//! Folds by functions of elementwise ops on scalars. The ops of the function run as kernels, one after the other, on a
//! block of kept positions at once, for each folded element in turn. Compiled programs have loops instead.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use defn_core::backend::{Buffers, Poll};
use defn_core::compose::fold::is_one_reduction;
use defn_core::graph::Node;
use defn_core::op::{BinaryOp, ElementWise, FoldOp, OnScalars, Op, UnaryOp};
use defn_core::region::Region;
use defn_core::{Axis, DType, Result, Scalar, Shape, TensorType};
use smallvec::SmallVec;

use super::{OpRun, Views};
use crate::compiler::run_elementwise;
use crate::kernels::{TILE, create, elementwise, shape};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The number of elementary operations between two polls.
const BATCH: usize = 1 << 20;

/// The role of a node of the function.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// An input of the function.
    Input(usize),
    /// An alias of its operand.
    Same,
    /// An op on scalars.
    Computes(Action),
    /// An op that is not run here.
    Foreign,
}

/// An op on scalars.
#[derive(Clone, Copy, Debug)]
enum Action {
    Constant(Scalar),
    Unary(UnaryOp),
    Binary(BinaryOp),
    AsType,
    /// The unchanged bits of an element of at least one byte.
    Bits,
    Select,
    Clip,
}

impl Role {
    fn of(op: &Op) -> Role {
        match op.on_scalars() {
            OnScalars::Input(index) => Role::Input(index),
            OnScalars::Constant(scalar) => Role::Computes(Action::Constant(scalar)),
            OnScalars::Operand => Role::Same,
            OnScalars::ElementWise(op) => Role::Computes(match op {
                ElementWise::Unary(op) => Action::Unary(op),
                ElementWise::Binary(op) => Action::Binary(op),
                ElementWise::AsType(_) => Action::AsType,
                // Signed and unsigned one-byte elements are extended differently.
                ElementWise::Bitcast(dtype) if dtype.bits() < 8 => Action::AsType,
                ElementWise::Bitcast(_) => Action::Bits,
                ElementWise::Select => Action::Select,
                ElementWise::Clip => Action::Clip,
            }),
            OnScalars::Block(_) | OnScalars::Other => Role::Foreign,
        }
    }
}

/// Whether a fold runs here: its function has only ops on scalars, and is more than one reduction.
pub(super) fn is_native(fold: &FoldOp) -> bool {
    let fun = &fold.fun;
    let scalar = |ty: &TensorType| ty.shape.rank() == 0;
    let varied = varied(fun);
    let runs = |node: &Node| {
        let here = match Role::of(&node.op) {
            Role::Input(_) | Role::Same => true,
            // The kernel takes its bounds as scalars.
            Role::Computes(Action::Clip) => !node.inputs[1..].iter().any(|input| varied[input.node as usize]),
            Role::Computes(_) => true,
            Role::Foreign => false,
        };
        here && node.outputs.iter().all(scalar)
    };
    !is_one_reduction(fun) && fun.inputs().iter().all(scalar) && fun.graph().nodes().iter().all(runs)
}

/// For each node of a function, whether it depends on the element or on the accumulator.
fn varied(fun: &Region) -> Vec<bool> {
    let mut varied: Vec<bool> = Vec::with_capacity(fun.graph().len());
    for node in fun.graph().nodes() {
        varied.push(match Role::of(&node.op) {
            Role::Input(index) => index < fun.parameter_count(),
            Role::Same | Role::Computes(_) | Role::Foreign => {
                node.inputs.iter().any(|input| varied[input.node as usize])
            }
        });
    }
    varied
}

/// The storage of a value while the function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueStorage {
    Element,
    Folded,
    Capture(usize),
    Register(usize),
}

/// One op of the function: its kind, its operands, and the type of its register.
struct FoldStep<'a> {
    action: Action,
    inputs: SmallVec<[ValueStorage; 3]>,
    ty: &'a TensorType,
    varied: bool,
}

/// The function as a list of ops, and the storage of its result.
struct FoldProgram<'a> {
    steps: Vec<FoldStep<'a>>,
    result: ValueStorage,
}

impl<'a> FoldProgram<'a> {
    fn new(fun: &'a Region) -> FoldProgram<'a> {
        let mut steps: Vec<FoldStep<'a>> = Vec::new();
        let mut storages: Vec<ValueStorage> = Vec::with_capacity(fun.graph().len());
        let varied = varied(fun);
        for (node, varied) in fun.graph().nodes().iter().zip(varied) {
            let inputs: SmallVec<[ValueStorage; 3]> =
                node.inputs.iter().map(|input| storages[input.node as usize]).collect();
            let storage = match Role::of(&node.op) {
                Role::Input(0) => ValueStorage::Element,
                Role::Input(1) => ValueStorage::Folded,
                Role::Input(index) => ValueStorage::Capture(index - 2),
                Role::Same => inputs[0],
                Role::Computes(action) => {
                    steps.push(FoldStep { action, inputs, ty: &node.outputs[0], varied });
                    ValueStorage::Register(steps.len() - 1)
                }
                Role::Foreign => unreachable!("{:?} is no op on scalars", node.op),
            };
            storages.push(storage);
        }
        FoldProgram { steps, result: storages[fun.results()[0].node as usize] }
    }
}

/// The offsets of registers and accumulator in the memory of a block of kept positions.
struct RegisterLayout {
    /// The offset of each op's register, then that of the accumulator.
    offsets: Vec<usize>,
    /// The bytes of a block.
    size: usize,
}

/// The types of the registers of a block of `len` positions, then that of the accumulator.
fn register_types(program: &FoldProgram<'_>, acc: &TensorType, len: usize) -> Result<Vec<TensorType>> {
    let registers = program.steps.iter().map(|step| shaped(step.ty, len, step.varied));
    registers.chain([shaped(acc, len, true)]).collect()
}

impl RegisterLayout {
    /// Lays out registers of these types.
    fn new(types: &[TensorType]) -> RegisterLayout {
        let mut size = 0;
        let offsets = types.iter().map(|ty| {
            size += ty.byte_size().next_multiple_of(64);
            size - ty.byte_size().next_multiple_of(64)
        });
        RegisterLayout { offsets: offsets.collect(), size }
    }
}

/// The values of a block of kept positions while it is folded.
struct Registers<'a> {
    program: &'a FoldProgram<'a>,
    captures: &'a [View<'a>],
    types: &'a [TensorType],
    frame: &'a RegisterLayout,
    /// The block's memory.
    memory: *mut u8,
    /// Whether the accumulator and the function's result have exchanged their memory.
    swapped: bool,
    /// Whether elements without a defined result are errors.
    checked: bool,
}

impl<'a> Registers<'a> {
    /// The type and address of a register or, behind the registers, of the accumulator.
    fn register(&self, index: usize) -> (&'a TensorType, *mut u8) {
        let folded = self.program.steps.len();
        let storage = match self.program.result {
            ValueStorage::Register(result) if self.swapped && index == result => folded,
            ValueStorage::Register(result) if self.swapped && index == folded => result,
            ValueStorage::Register(_)
            | ValueStorage::Element
            | ValueStorage::Folded
            | ValueStorage::Capture(_) => index,
        };
        (&self.types[index], self.memory.wrapping_add(self.frame.offsets[storage]))
    }

    /// The value of a register.
    ///
    /// # Safety
    /// It was written, and is not written while the view lives.
    unsafe fn read(&self, index: usize) -> View<'a> {
        let (ty, start) = self.register(index);
        // SAFETY: the frame has room for the type; the rest is the caller's promise.
        View::new(ty, unsafe { std::slice::from_raw_parts(start, ty.byte_size()) })
    }

    /// A register, for writing.
    fn write(&mut self, index: usize) -> ViewMut<'a> {
        let (ty, start) = self.register(index);
        // SAFETY: the frame has room for the type, and the registers are borrowed mutably.
        unsafe { ViewMut::new(ty, start) }
    }

    fn view<'v>(&self, storage: ValueStorage, element: View<'v>) -> View<'v>
    where
        'a: 'v,
    {
        match storage {
            ValueStorage::Element => element,
            ValueStorage::Capture(index) => self.captures[index],
            // SAFETY: the accumulator is written before the first step.
            ValueStorage::Folded => unsafe { self.read(self.program.steps.len()) },
            // SAFETY: an op reads only registers that earlier ops have written.
            ValueStorage::Register(index) => unsafe { self.read(index) },
        }
    }

    /// Runs one op of the function.
    fn run(&mut self, index: usize, element: View<'_>) -> Result<()> {
        let out = &mut self.write(index);
        let step = &self.program.steps[index];
        let x = |input: usize| self.view(step.inputs[input], element);
        let par = Par::Serial;
        let op = match step.action {
            Action::Constant(scalar) => return create::constant(scalar, out, par),
            Action::Bits => {
                copy(x(0), out);
                return Ok(());
            }
            Action::Unary(op) => Op::Unary(op),
            Action::Binary(op) => {
                if self.checked {
                    elementwise::check_operand(op, x(1), out.ty(), par)?;
                }
                Op::Binary(op)
            }
            Action::AsType => Op::AsType { dtype: out.ty().dtype },
            Action::Select => Op::Select,
            Action::Clip => Op::Clip,
        };
        let operands: Views<'_> = (0..step.inputs.len()).map(x).collect();
        run_elementwise(&op, &operands, out, par);
        Ok(())
    }

    /// Makes the function's result the new accumulator.
    fn advance(&mut self, element: View<'_>) {
        match self.program.result {
            ValueStorage::Folded => {}
            // The next step writes the register before anything reads it.
            ValueStorage::Register(index) if self.program.steps[index].varied => self.swapped = !self.swapped,
            storage @ (ValueStorage::Element | ValueStorage::Capture(_) | ValueStorage::Register(_)) => {
                let x = self.view(storage, element);
                copy(x, &mut self.write(self.program.steps.len()));
            }
        }
    }
}

/// Copies all elements, or one element to all positions.
fn copy(x: View<'_>, out: &mut ViewMut<'_>) {
    if x.ty().size() == out.ty().size() {
        // SAFETY: the view is borrowed mutably, so that no other part of it is in use.
        let target = unsafe { out.part_bytes(0, x.ty().byte_size()) };
        target.write_copy_of_slice(x.bytes());
    } else {
        shape::fill(x, out, Par::Serial);
    }
}

impl OpRun<'_> {
    pub(super) fn fold(self, fold: &FoldOp, poll: Poll<'_>) -> Result<Buffers> {
        let (allocator, checked) = (self.allocator, self.checked);
        let sizes: SmallVec<[usize; 6]> = self.operand(0).shape.sizes().into();
        let kept = |axis: &Axis| !fold.axes.contains(axis);
        let order: SmallVec<[Axis; 6]> =
            fold.axes.iter().copied().chain(self.operand(0).shape.axes().filter(kept)).collect();
        let count: usize = fold.axes.iter().map(|axis| sizes[axis.index()]).product();
        let program = FoldProgram::new(&fold.fun);
        self.run_with_scratch(|views, out, par| {
            let (x, acc, captures) = (views[0], views[1], &views[2..]);
            let width = out.ty().size();
            if width == 0 {
                return Ok(());
            }
            let dtype = x.ty().dtype;
            let mut scratch_slot = None;
            // Folded axes first: one row for each folded element.
            let x = if order.is_sorted() {
                x
            } else {
                let plan = shape::gather::transpose(&sizes, &order);
                let ty = TensorType::new(dtype, x.ty().shape.permuted(&order))?;
                let scratch = scratch_slot.insert(allocator.scratch(ty)?);
                allocator.copy(&plan, x, &mut scratch.view_mut(), par);
                // SAFETY: the copy writes every element.
                unsafe { scratch.view() }
            };
            let types = [TILE.min(width), (width - 1) % TILE + 1]
                .map(|len| register_types(&program, acc.ty(), len))
                .into_iter()
                .collect::<Result<SmallVec<[_; 2]>>>()?;
            let frame = RegisterLayout::new(&types[0]);
            let bytes = Shape::new(&[width.div_ceil(TILE), frame.size]);
            let mut memory = allocator.scratch(TensorType::new(DType::U8, bytes)?)?;
            if !allocator.runs() {
                return Ok(());
            }
            let folding = FoldRun { program: &program, x, acc, captures, width, count, checked, par };
            let blocks = Blocks { types: &types, frame: &frame, memory: memory.view_mut().start() };
            folding.run(&blocks, out, poll)
        })
    }
}

/// The memory of the blocks.
struct Blocks<'a> {
    /// The types of the registers of a full block, and of the last one.
    types: &'a [Vec<TensorType>],
    frame: &'a RegisterLayout,
    memory: *mut u8,
}

// SAFETY: threads use the memory of different blocks.
unsafe impl Sync for Blocks<'_> {}

/// A fold with the folded axes first: `count` rows of `width` elements.
struct FoldRun<'a> {
    program: &'a FoldProgram<'a>,
    x: View<'a>,
    acc: View<'a>,
    captures: &'a [View<'a>],
    width: usize,
    count: usize,
    checked: bool,
    par: Par,
}

impl<'a> FoldRun<'a> {
    /// Calls `work` with consecutive ranges of rows, and polls between them. An element takes `steps` operations.
    fn batches(
        &self,
        steps: usize,
        poll: Poll<'_>,
        mut work: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let rows = (BATCH / (self.width * steps.max(1))).max(1);
        for first in (0..self.count).step_by(rows) {
            work(first..self.count.min(first + rows))?;
            poll()?;
        }
        Ok(())
    }

    /// Folds blocks of positions by kernels.
    fn run(&self, blocks: &Blocks<'_>, out: &mut ViewMut<'_>, poll: Poll<'_>) -> Result<()> {
        let failure = Mutex::new(None);
        let each_block = |done: usize, work: &(dyn Fn(Registers<'_>, Range<usize>) -> Result<()> + Sync)| {
            self.par.for_chunks(self.width, TILE, |positions| {
                if let Err(error) = work(self.registers(blocks, &positions, done), positions) {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            });
            failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
        };
        each_block(0, &|mut registers, _| {
            copy(self.acc, &mut registers.write(self.program.steps.len()));
            // Values that do not depend on elements are computed once.
            let once = self.program.steps.iter().enumerate().filter(|(_, step)| !step.varied);
            once.map(|(index, _)| index).try_for_each(|index| registers.run(index, self.acc))
        })?;
        self.batches(self.program.steps.len(), poll, |rows| {
            each_block(rows.start, &|registers, positions| self.fold_rows(registers, positions, rows.clone()))
        })?;
        let out = &*out;
        each_block(self.count, &|registers, positions| {
            // SAFETY: blocks are disjoint parts of the result, which is borrowed mutably meanwhile; the accumulator is
            // written.
            unsafe {
                let width = out.ty().dtype.storage_bytes();
                let target = out.part_bytes(positions.start * width, positions.len() * width);
                target.write_copy_of_slice(registers.read(self.program.steps.len()).bytes());
            }
            Ok(())
        })
    }

    /// The registers of the block of `positions` after `rows` rows.
    fn registers<'r>(
        &'r self,
        blocks: &'r Blocks<'r>,
        positions: &Range<usize>,
        rows: usize,
    ) -> Registers<'r> {
        let last = positions.end == self.width;
        let exchanges = match self.program.result {
            ValueStorage::Register(index) => self.program.steps[index].varied,
            ValueStorage::Element | ValueStorage::Folded | ValueStorage::Capture(_) => false,
        };
        Registers {
            program: self.program,
            captures: self.captures,
            types: &blocks.types[usize::from(last)],
            frame: blocks.frame,
            memory: blocks.memory.wrapping_add(positions.start / TILE * blocks.frame.size),
            swapped: exchanges && rows % 2 == 1,
            checked: self.checked,
        }
    }

    fn fold_rows(
        &self,
        mut registers: Registers<'_>,
        positions: Range<usize>,
        rows: Range<usize>,
    ) -> Result<()> {
        let bytes = self.x.ty().dtype.storage_bytes();
        let row_ty = shaped(self.x.ty(), positions.len(), true)?;
        for row in rows {
            let first = (row * self.width + positions.start) * bytes;
            let element = View::new(&row_ty, &self.x.bytes()[first..first + positions.len() * bytes]);
            let each = self.program.steps.iter().enumerate().filter(|(_, step)| step.varied);
            each.map(|(index, _)| index).try_for_each(|index| registers.run(index, element))?;
            registers.advance(element);
        }
        Ok(())
    }
}

/// The type of a register for a block of `len` positions: one element if it does not vary.
fn shaped(ty: &TensorType, len: usize, varied: bool) -> Result<TensorType> {
    TensorType::new(ty.dtype, Shape::new(if varied { std::slice::from_ref(&len) } else { &[] }))
}
