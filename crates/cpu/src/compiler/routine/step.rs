//! Ops of routines that are not done element by element.

use std::sync::Arc;

use defn_core::DType;
use defn_core::TensorType;
use defn_core::graph::{Node, Value};
use defn_core::op::{CondOp, ElementWise, Op, OpClass, Primitive, Starts, View, WhileOp};
use defn_core::region::Region;

use super::apart::Apart;
use super::make::{Array, Frame, Held, Making};
use crate::compiler::views::ValueView;
use crate::kernels::machine::Register;

/// What the state of a loop is.
enum State {
    /// It never changes.
    Same(Held),
    /// A register.
    Scalar(Register),
    /// Where it lies, and where the next one is written.
    Array { now: Register, next: Register, ty: TensorType },
}

impl Making {
    /// A loop or a branch, of the routine itself or in it.
    pub(super) fn control(&mut self, op: &Op, arguments: Vec<Held>, is_whole: bool) -> Option<Vec<Held>> {
        if let Op::While(op) = op {
            match Apart::of(op) {
                Some(apart) => self.repeat_apart(&apart, arguments, is_whole),
                None => self.repeat(op, arguments, is_whole),
            }
        } else if let Op::Cond(op) = op {
            self.choose(op, arguments)
        } else {
            None
        }
    }

    /// The same value for somebody who must not write it.
    fn lend(&self, held: &Held) -> Held {
        match held {
            Held::Scalar(register) => Held::Scalar(*register),
            Held::Array(array) => Held::Array(Array { is_owned: false, ..array.clone() }),
        }
    }

    /// A loop.
    pub(super) fn repeat(
        &mut self,
        op: &WhileOp,
        mut arguments: Vec<Held>,
        is_whole: bool,
    ) -> Option<Vec<Held>> {
        let captures: Vec<Held> = arguments.split_off(op.state).iter().map(|held| self.lend(held)).collect();
        let mut states = Vec::with_capacity(op.state);
        for (at, held) in arguments.into_iter().enumerate() {
            let result = op.body.results()[at];
            let is_same = if let Op::Parameter { index, ty: _ } = op.body.graph().node(result).op {
                index == at
            } else {
                false
            };
            states.push(match held {
                held if is_same => {
                    if let Held::Array(array) = &held {
                        self.pinned.push(array.address.place());
                    }
                    State::Same(self.lend(&held))
                }
                Held::Scalar(first) => {
                    let register = self.machine.fresh(first.dtype())?;
                    self.machine.set(register, first);
                    State::Scalar(register)
                }
                Held::Array(Array { address, ty, is_owned: _ }) => {
                    let (now, next) = (self.machine.fresh(DType::U64)?, self.machine.fresh(DType::U64)?);
                    self.settle(now, &ty, is_whole.then_some(at))?;
                    self.copy(address, now, ty.byte_size());
                    State::Array { now, next, ty }
                }
            });
        }
        self.machine.open(true);
        // What decides must leave the state as it is.
        let given: Vec<Held> = self.given(&states, &captures).iter().map(|held| self.lend(held)).collect();
        let verdict = self.region(&op.cond, given, &[])?.pop()?;
        let Held::Scalar(verdict) = verdict else { return None };
        let test = self.machine.predicate(verdict)?;
        let cond = self.machine.close();

        self.machine.open(true);
        let given = self.given(&states, &captures);
        let targets: Vec<Option<Register>> = states
            .iter()
            .map(|state| match state {
                State::Array { next, .. } => Some(self.machine.here(*next)),
                State::Same(_) | State::Scalar(_) => None,
            })
            .collect();
        let results = self.region(&op.body, given, &targets)?;
        let mut moves = Vec::new();
        let mut swaps = Vec::new();
        for (state, result) in states.iter().zip(results) {
            match (state, result) {
                (State::Same(_), _) => {}
                (State::Scalar(register), Held::Scalar(result)) => moves.push((*register, result)),
                // Put into where it lies.
                (State::Array { now, .. }, Held::Array(result)) if result.address.place() == now.place() => {}
                (State::Array { now, next, ty }, Held::Array(result)) => {
                    self.settle(*next, ty, None)?;
                    if result.address.place() != next.place() {
                        self.copy(result.address, *next, ty.byte_size());
                    }
                    swaps.push((*now, *next));
                }
                (State::Scalar(_), Held::Array(_)) | (State::Array { .. }, Held::Scalar(_)) => return None,
            }
        }
        swaps.into_iter().for_each(|(now, next)| self.machine.swap(now, next));
        self.machine.set_all(&moves)?;
        let body = self.machine.close();
        self.machine.repeat(cond, test, body);
        let outputs = states.into_iter().map(|state| match state {
            State::Same(held) => held,
            State::Scalar(register) => Held::Scalar(register),
            State::Array { now, ty, .. } => Held::Array(Array { address: now, ty, is_owned: true }),
        });
        Some(outputs.collect())
    }

    /// What a region of a loop is given, in a list of its own.
    fn given(&self, states: &[State], captures: &[Held]) -> Vec<Held> {
        let state = states.iter().map(|state| match state {
            State::Same(held) => held.clone(),
            State::Scalar(register) => Held::Scalar(self.machine.here(*register)),
            State::Array { now, ty, .. } => {
                Held::Array(Array { address: self.machine.here(*now), ty: ty.clone(), is_owned: true })
            }
        });
        state.chain(captures.iter().cloned()).collect()
    }

    fn choose(&mut self, op: &CondOp, mut arguments: Vec<Held>) -> Option<Vec<Held>> {
        let captures = arguments.split_off(op.branches.len() - 1);
        let captures: Vec<Held> = captures.iter().map(|held| self.lend(held)).collect();
        let mut tests = Vec::with_capacity(op.branches.len());
        for predicate in arguments {
            let Held::Scalar(predicate) = predicate else { return None };
            tests.push(Some(self.machine.predicate(predicate)?));
        }
        tests.push(None);
        let types: Vec<TensorType> = op.branches[0].result_types().cloned().collect();
        let chosen: Vec<Held> = types
            .iter()
            .map(|ty| {
                if ty.size() == 1 {
                    return Some(Held::Scalar(self.machine.fresh(ty.dtype)?));
                }
                let address = self.machine.fresh(DType::U64)?;
                Some(Held::Array(Array { address, ty: ty.clone(), is_owned: false }))
            })
            .collect::<Option<_>>()?;
        let mut branches = Vec::with_capacity(tests.len());
        for (test, branch) in tests.into_iter().zip(&op.branches) {
            self.machine.open(false);
            self.branch(branch, captures.clone(), &chosen)?;
            branches.push((test, self.machine.close()));
        }
        self.machine.branch(branches);
        Some(chosen)
    }

    /// Adds one branch, which writes registers of results.
    fn branch(&mut self, branch: &Arc<Region>, captures: Vec<Held>, chosen: &[Held]) -> Option<()> {
        let results = self.region(branch, captures, &[])?;
        let mut moves = Vec::new();
        for (to, from) in chosen.iter().zip(results) {
            match (to, from) {
                (Held::Scalar(to), Held::Scalar(from)) => moves.push((*to, from)),
                (Held::Array(to), Held::Array(from)) => {
                    let is_own = from.is_owned && !self.pinned.contains(&from.address.place());
                    let address = if is_own {
                        from.address
                    } else {
                        // What others may write later is kept.
                        let array = self.array(&from.ty)?;
                        self.copy(from.address, array.address, from.ty.byte_size());
                        array.address
                    };
                    moves.push((to.address, address));
                }
                (Held::Scalar(_), Held::Array(_)) | (Held::Array(_), Held::Scalar(_)) => return None,
            }
        }
        self.machine.set_all(&moves)
    }

    /// Adds a node by itself; `at` is its fusion group's place.
    pub(super) fn step(&mut self, frame: &mut Frame<'_>, position: usize, at: usize) -> Option<()> {
        let graph = frame.graph;
        let node = &graph.nodes()[position];
        let own = Value { node: position as u32, output: 0 };
        let result = match node.op.class() {
            OpClass::While(_) | OpClass::Cond(_) => {
                let arguments =
                    node.inputs.iter().map(|&input| self.value(frame, input)).collect::<Option<_>>()?;
                let results = self.control(&node.op, arguments, false)?;
                frame.held.extend(graph.outputs(position).into_iter().zip(results));
                return Some(());
            }
            OpClass::Identity { .. } => self.reshape(frame, node)?,
            OpClass::Primitive(Primitive::ElementWise(ElementWise::Bitcast(dtype)))
                if node.outputs[0].size() == 1 =>
            {
                let x = self.scalar(frame, node.inputs[0])?;
                Held::Scalar(if dtype.bits() < 8 {
                    self.machine.convert(x, dtype)?
                } else {
                    self.machine.bits(x, dtype)?
                })
            }
            OpClass::Primitive(_) => match node.op.view() {
                Some(View::Reshape) => self.reshape(frame, node)?,
                Some(View::Slice {
                    starts: starts @ (Starts::Dynamic | Starts::FromEnd), lengths, ..
                }) => self.slice(frame, node, starts, lengths)?,
                Some(
                    View::Broadcast(_)
                    | View::Transpose(_)
                    | View::Reverse(_)
                    | View::Slice { starts: Starts::Static(_), .. },
                ) => {
                    let operand = node.inputs[0];
                    let value_view: ValueView = frame.fusion.view(graph, operand).compose(node)?;
                    if node.outputs[0].size() == 1 {
                        Held::Scalar(self.element(frame, &value_view, node.outputs[0].dtype)?)
                    } else {
                        self.look(frame, position, &value_view)?
                    }
                }
                None => {
                    // The machine has instructions for two of the other primitives.
                    if let Op::PutSlice { starts } = &node.op {
                        self.put(frame, node, starts, at)?
                    } else if let Op::Iota { .. } = &node.op
                        && node.outputs[0].size() == 1
                    {
                        self.base(frame, own)?
                    } else {
                        return None;
                    }
                }
            },
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::CustomGrad(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => return None,
        };
        frame.held.insert(own, result);
        Some(())
    }

    /// The operand under the type of the result.
    fn reshape(&mut self, frame: &mut Frame<'_>, node: &Node) -> Option<Held> {
        let operand = self.value(frame, node.inputs[0])?;
        if let Held::Array(array) = &operand {
            self.pinned.push(array.address.place());
        }
        Some(match self.lend(&operand) {
            scalar @ Held::Scalar(_) => scalar,
            Held::Array(array) => Held::Array(Array { ty: node.outputs[0].clone(), ..array }),
        })
    }

    /// The address of a window of an array, whose elements lie side by side.
    fn window(
        &mut self,
        frame: &mut Frame<'_>,
        array: &Array,
        lengths: &[usize],
        (starts, dynamic): (&Starts, &[Value]),
    ) -> Option<Register> {
        let sizes = array.ty.shape.sizes();
        let outer = lengths.iter().take_while(|length| **length == 1).count();
        // The rows of the first axis of which there are several may be some; all others must be whole.
        if lengths.iter().zip(sizes).skip(outer + 1).any(|(length, size)| length != size) {
            return None;
        }
        let mut address = array.address;
        let mut step = array.ty.dtype.storage_bytes();
        for (axis, (&size, &length)) in sizes.iter().zip(lengths).enumerate().rev() {
            if length < size {
                let start = match starts {
                    Starts::Static(starts) => self.machine.number(starts[axis])?,
                    Starts::Dynamic => self.scalar(frame, dynamic[axis])?,
                    Starts::FromEnd => {
                        let start = self.scalar(frame, dynamic[axis])?;
                        self.machine.counted(start, size)?
                    }
                };
                address = self.machine.advance(address, start, size - length, step)?;
            }
            step *= size;
        }
        Some(address)
    }

    fn slice(
        &mut self,
        frame: &mut Frame<'_>,
        node: &Node,
        starts: &Starts,
        lengths: &[usize],
    ) -> Option<Held> {
        let ty = &node.outputs[0];
        if ty.shape.sizes() != lengths {
            return None;
        }
        let array = match self.value(frame, node.inputs[0])? {
            scalar @ Held::Scalar(_) => return Some(scalar),
            Held::Array(array) => array,
        };
        let address = self.window(frame, &array, lengths, (starts, &node.inputs[1..]))?;
        if ty.size() == 1 {
            return Some(Held::Scalar(self.machine.load(address, ty.dtype)?));
        }
        if !array.is_owned {
            return Some(Held::Array(Array { address, ty: ty.clone(), is_owned: false }));
        }
        let copied = self.array(ty)?;
        self.copy(address, copied.address, ty.byte_size());
        Some(Held::Array(copied))
    }

    fn put(&mut self, frame: &mut Frame<'_>, node: &Node, starts: &Starts, at: usize) -> Option<Held> {
        let ty = &node.outputs[0];
        let update = node.inputs[1];
        let array = match self.value(frame, node.inputs[0])? {
            // The window is all there is.
            Held::Scalar(_) => {
                let update = self.scalar(frame, update)?;
                return Some(Held::Scalar(self.machine.convert(update, ty.dtype)?));
            }
            Held::Array(array) if array.ty.dtype == ty.dtype => array,
            Held::Array(_) => return None,
        };
        let new = self.value(frame, update)?;
        let lengths = frame.graph.ty(update).shape.sizes();
        let is_last = frame.last.get(&node.inputs[0]) == Some(&at);
        let is_ours = array.is_owned && is_last && !self.pinned.contains(&array.address.place());
        let array = if is_ours {
            array
        } else {
            let copied = self.array(ty)?;
            self.copy(array.address, copied.address, ty.byte_size());
            copied
        };
        let address = self.window(frame, &array, lengths, (starts, &node.inputs[2..]))?;
        match new {
            Held::Scalar(new) => {
                let new = self.machine.convert(new, ty.dtype)?;
                self.machine.store(address, new);
            }
            Held::Array(new) if new.ty.dtype == ty.dtype => {
                self.copy(new.address, address, new.ty.byte_size());
            }
            Held::Array(_) => return None,
        }
        Some(Held::Array(array))
    }
}
