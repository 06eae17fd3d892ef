//! Folds by functions that work element by element on scalars: the function's ops run in the kernels, one after
//! the other, on a block of kept positions at once, for each folded element in turn. Nothing is allocated on
//! the way, so that even one position costs a few calls an element.

use std::sync::{Mutex, PoisonError};

use defn_core::backend::Buffers;
use defn_core::compose::fold::is_one_reduction;
use defn_core::graph::Node;
use defn_core::op::{BinaryOp, FoldOp, Op, UnaryOp};
use defn_core::region::Region;
use defn_core::{Axis, Result, Scalar, Shape, TensorType};
use smallvec::SmallVec;

use super::Run;
use super::structural::Scratch;
use crate::kernels::{TILE, create, elementwise, shape};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// What a node of a function is to a fold.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// An input of the function.
    Input(usize),
    /// Its operand, under another name.
    Same,
    /// An op on scalars.
    Computes(Action),
    /// Nothing that is run here.
    Foreign,
}

/// An op on scalars.
#[derive(Clone, Copy, Debug)]
enum Action {
    Constant(Scalar),
    Unary(UnaryOp),
    Binary(BinaryOp),
    AsType,
    /// The bits of an element of a byte or more as they are.
    Bits,
    Select,
    Clip,
}

impl Role {
    fn of(op: &Op) -> Role {
        match op {
            Op::Parameter { index, .. } => Role::Input(*index),
            // Scalars keep their shape and their elements.
            Op::Reshape { .. }
            | Op::Squeeze { .. }
            | Op::Broadcast { .. }
            | Op::StopGrad
            | Op::Mark { .. } => Role::Same,
            Op::Constant(scalar) => Role::Computes(Action::Constant(*scalar)),
            Op::Unary(op) => Role::Computes(Action::Unary(*op)),
            Op::Binary(op) => Role::Computes(Action::Binary(*op)),
            Op::AsType { .. } => Role::Computes(Action::AsType),
            // Signed and unsigned elements of one byte are extended differently.
            Op::Bitcast { dtype } if dtype.bits() < 8 => Role::Computes(Action::AsType),
            Op::Bitcast { .. } => Role::Computes(Action::Bits),
            Op::Select => Role::Computes(Action::Select),
            Op::Clip => Role::Computes(Action::Clip),
            Op::Literal(_)
            | Op::Iota { .. }
            | Op::Eye { .. }
            | Op::Transpose { .. }
            | Op::Pad { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Stack { .. }
            | Op::Slice { .. }
            | Op::PutSlice { .. }
            | Op::Reduce { .. }
            | Op::ArgReduce { .. }
            | Op::Gather { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::Argsort { .. }
            | Op::Window { .. }
            | Op::WindowScatter { .. }
            | Op::Conv(_)
            | Op::Fft { .. }
            | Op::Dot { .. }
            | Op::TriangularSolve { .. }
            | Op::Fold(_)
            | Op::WindowFold(_)
            | Op::Cond(_)
            | Op::While(_)
            | Op::CustomGrad(_)
            | Op::Hook(_)
            | Op::Block(_) => Role::Foreign,
        }
    }
}

/// Whether a fold is run here: its function is made of ops on scalars alone, and is more than one reduction.
pub(super) fn is_native(fold: &FoldOp) -> bool {
    let fun = &fold.fun;
    let scalar = |ty: &TensorType| ty.shape.rank() == 0;
    let varied = varied(fun);
    let runs = |node: &Node| {
        let here = match Role::of(&node.op) {
            Role::Input(_) | Role::Same => true,
            // The kernel takes scalars for bounds.
            Role::Computes(Action::Clip) => !node.inputs[1..].iter().any(|input| varied[input.node as usize]),
            Role::Computes(_) => true,
            Role::Foreign => false,
        };
        here && node.outputs.iter().all(scalar)
    };
    !is_one_reduction(fun) && fun.inputs().iter().all(scalar) && fun.graph().nodes().iter().all(runs)
}

/// For each node of a function, whether it depends on the element or on what was folded so far.
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

/// Where a value of the function is while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Element,
    Folded,
    Capture(usize),
    Register(usize),
}

/// One op of the function: what it is, what it reads, and the type of its register.
struct Step<'a> {
    action: Action,
    inputs: SmallVec<[Place; 3]>,
    ty: &'a TensorType,
    varied: bool,
}

/// A function as a list of ops, and where its result is.
struct Program<'a> {
    steps: Vec<Step<'a>>,
    result: Place,
}

impl<'a> Program<'a> {
    fn new(fun: &'a Region) -> Program<'a> {
        let mut steps: Vec<Step<'a>> = Vec::new();
        let mut places: Vec<Place> = Vec::with_capacity(fun.graph().len());
        let varied = varied(fun);
        for (node, varied) in fun.graph().nodes().iter().zip(varied) {
            let inputs: SmallVec<[Place; 3]> =
                node.inputs.iter().map(|input| places[input.node as usize]).collect();
            let place = match Role::of(&node.op) {
                Role::Input(0) => Place::Element,
                Role::Input(1) => Place::Folded,
                Role::Input(index) => Place::Capture(index - 2),
                Role::Same => inputs[0],
                Role::Computes(action) => {
                    steps.push(Step { action, inputs, ty: &node.outputs[0], varied });
                    Place::Register(steps.len() - 1)
                }
                Role::Foreign => unreachable!("{:?} is no op on scalars", node.op),
            };
            places.push(place);
        }
        Program { steps, result: places[fun.results()[0].node as usize] }
    }
}

/// What the places hold while a block of kept positions is folded.
struct Registers<'a> {
    captures: &'a [View<'a>],
    registers: Vec<Option<Scratch>>,
    folded: Scratch,
    /// Whether elements without a result are refused.
    checked: bool,
}

impl Registers<'_> {
    fn view<'v>(&'v self, place: Place, element: View<'v>) -> View<'v> {
        match place {
            Place::Element => element,
            Place::Capture(index) => self.captures[index],
            // SAFETY: what was folded so far is written before the first step.
            Place::Folded => unsafe { self.folded.view() },
            Place::Register(index) => {
                let register = self.registers[index].as_ref().expect("an op reads what is before it");
                // SAFETY: an op reads registers that ops before it have written.
                unsafe { register.view() }
            }
        }
    }

    /// Runs one op of the function.
    fn run(&mut self, index: usize, step: &Step<'_>, element: View<'_>) -> Result<()> {
        let mut register = self.registers[index].take().expect("each op has a register");
        let outcome = {
            let x = |input: usize| self.view(step.inputs[input], element);
            let out = &mut register.view_mut();
            let par = Par::Serial;
            match step.action {
                Action::Constant(scalar) => create::constant(scalar, out, par),
                Action::Unary(op) => elementwise::unary(op, x(0), out, par),
                Action::Binary(op) => elementwise::binary(op, x(0), x(1), out, par, self.checked),
                Action::AsType => elementwise::as_type(x(0), out, par),
                Action::Bits => {
                    copy(x(0), out);
                    Ok(())
                }
                Action::Select => elementwise::select(x(0), x(1), x(2), out, par),
                Action::Clip => elementwise::clip(x(0), x(1), x(2), out, par),
            }
        };
        self.registers[index] = Some(register);
        outcome
    }
}

/// Copies elements as they lie, or one of them to all places.
fn copy(x: View<'_>, out: &mut ViewMut<'_>) {
    if x.ty().size() == out.ty().size() {
        // SAFETY: the view is borrowed mutably, so that no other part of it is in use.
        let target = unsafe { out.part_bytes(0, x.ty().byte_size()) };
        target.write_copy_of_slice(x.bytes());
    } else {
        shape::fill(x, out, Par::Serial);
    }
}

impl Run<'_> {
    pub(super) fn fold(self, fold: &FoldOp) -> Result<Buffers> {
        let (op, checked) = (self.op, self.checked);
        let sizes: SmallVec<[usize; 6]> = self.operands[0].ty.shape.sizes().into();
        let kept = |axis: &Axis| !fold.axes.contains(axis);
        let order: SmallVec<[Axis; 6]> =
            fold.axes.iter().copied().chain(self.operands[0].ty.shape.axes().filter(kept)).collect();
        let count: usize = fold.axes.iter().map(|axis| sizes[axis.index()]).product();
        let program = Program::new(&fold.fun);
        self.fresh(|views, out, par| {
            let (x, acc, captures) = (views[0], views[1], &views[2..]);
            let width = out.ty().size();
            if width == 0 {
                return Ok(());
            }
            let dtype = x.ty().dtype;
            let mut held = None;
            // The folded axes first: a row for each of their elements.
            let x = if order.is_sorted() {
                x
            } else {
                let plan = shape::gather::transpose(&sizes, &order);
                let ty = TensorType::new(dtype, x.ty().shape.permuted(&order))?;
                let scratch = held.insert(Scratch::new(op, ty)?);
                shape::copy(&plan, x, &mut scratch.view_mut(), par);
                // SAFETY: the copy writes every element.
                unsafe { scratch.view() }
            };
            let failure = Mutex::new(None);
            let out = &*out;
            par.for_chunks(width, TILE, |positions| {
                let block = || -> Result<()> {
                    let len = positions.len();
                    let shaped = |ty: &TensorType, varied: bool| {
                        TensorType::new(
                            ty.dtype,
                            Shape::new(if varied { std::slice::from_ref(&len) } else { &[] }),
                        )
                    };
                    let mut registers = Registers {
                        captures,
                        registers: Vec::with_capacity(program.steps.len()),
                        folded: Scratch::new(op, shaped(acc.ty(), true)?)?,
                        checked,
                    };
                    copy(acc, &mut registers.folded.view_mut());
                    for step in &program.steps {
                        let ty = shaped(step.ty, step.varied)?;
                        registers.registers.push(Some(Scratch::new(op, ty)?));
                    }
                    // What does not depend on elements is computed once.
                    for (index, step) in program.steps.iter().enumerate().filter(|(_, step)| !step.varied) {
                        registers.run(index, step, acc)?;
                    }
                    let bytes = dtype.storage_bytes();
                    let row_ty = shaped(x.ty(), true)?;
                    for row in 0..count {
                        let first = (row * width + positions.start) * bytes;
                        let element = View::new(&row_ty, &x.bytes()[first..first + len * bytes]);
                        for (index, step) in program.steps.iter().enumerate().filter(|(_, step)| step.varied)
                        {
                            registers.run(index, step, element)?;
                        }
                        registers.advance(program.result, element);
                    }
                    // SAFETY: blocks are disjoint parts of the result, which is borrowed mutably meanwhile;
                    // what was folded is written.
                    unsafe {
                        let width = out.ty().dtype.storage_bytes();
                        let target = out.part_bytes(positions.start * width, len * width);
                        target.write_copy_of_slice(registers.folded.view().bytes());
                    }
                    Ok(())
                };
                if let Err(error) = block() {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            });
            match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }
}

impl Registers<'_> {
    /// Takes the function's result for what was folded so far.
    fn advance(&mut self, result: Place, element: View<'_>) {
        match result {
            Place::Folded => {}
            // The register is written anew by the next step before anything reads it.
            Place::Register(index) if self.is_block(index) => {
                let register = self.registers[index].as_mut().expect("each op has a register");
                std::mem::swap(register, &mut self.folded);
            }
            Place::Element => copy(element, &mut self.folded.view_mut()),
            Place::Capture(index) => copy(self.captures[index], &mut self.folded.view_mut()),
            Place::Register(index) => {
                let register = self.registers[index].take().expect("each op has a register");
                // SAFETY: it was written before the first step.
                copy(unsafe { register.view() }, &mut self.folded.view_mut());
                self.registers[index] = Some(register);
            }
        }
    }

    /// Whether a register holds a value for each position.
    fn is_block(&self, index: usize) -> bool {
        self.registers[index].as_ref().is_some_and(|register| register.ty().shape.rank() == 1)
    }
}
