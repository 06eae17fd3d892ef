//! How routines are made of graphs.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{BinaryOp, Op};
use defn_core::region::Region;
use defn_core::{DType, Scalar, TensorType};
use rustc_hash::FxHashMap;

use super::{Home, Operand, Routine, Unit};
use crate::buffer::Storage;
use crate::compiler::fusion_groups::{Elementwise, FusionGroup, FusionGroups, Role, elementwise, random};
use crate::compiler::tile_program::{TileProgram, tile_program};
use crate::compiler::views::ValueView;
use crate::kernels::StridedView;
use crate::kernels::machine::{Machine, Register};
use crate::kernels::tiles::{self, Draft};

/// The most bytes that lie between.
const MOST: usize = 4 << 20;

/// A value while a routine runs.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// Its one element.
    Scalar(Register),
    Array(Array),
}

/// An array: the register of its address.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) address: Register,
    pub(super) ty: TensorType,
    /// Whether its memory is that of no other value, and may be written.
    pub(super) is_owned: bool,
}

/// A routine as it is made.
pub(super) struct Making {
    pub(super) machine: Machine,
    units: Vec<Unit>,
    addresses: Vec<(usize, Home)>,
    kept: Vec<Storage>,
    between: usize,
    /// Registers whose memory other values have too.
    pub(super) pinned: Vec<usize>,
}

/// A graph of which nodes are added to a routine.
pub(super) struct Frame<'g> {
    pub(super) graph: &'g Graph,
    pub(super) fusion: &'g FusionGroups,
    pub(super) held: FxHashMap<Value, Held>,
    /// The values for parameters; those of a part of a graph are in `held`.
    arguments: Vec<Held>,
    /// For values whose elements are read, the last fusion group that does so; the end for those of results.
    pub(super) last: FxHashMap<Value, usize>,
    /// Where results are to be written, if they can be.
    targets: FxHashMap<Value, Register>,
}

/// A routine for a loop or a branch, where all that it does can be done in one.
pub(in crate::compiler) fn of_node(graph: &Graph, position: usize) -> Option<Routine> {
    let node = &graph.nodes()[position];
    let mut making = Making::new();
    let mut inputs = Values::new();
    let arguments: Vec<Held> =
        node.inputs.iter().map(|&input| making.input(graph, &mut inputs, input)).collect::<Option<_>>()?;
    let results = graph.outputs(position);
    let held = making.control(&node.op, arguments, true)?;
    let state = if let Op::While(op) = &node.op { op.state } else { 0 };
    Some(Routine { state, ..making.finish(graph, inputs, results, held)? })
}

/// A routine for a fusion group of ops on one element each, of which `results` are needed.
pub(in crate::compiler) fn of_group(
    graph: &Graph,
    fusion: &FusionGroups,
    group: &FusionGroup,
    results: &Values,
) -> Option<Routine> {
    if group.nodes.iter().any(|&node| graph.nodes()[node].outputs[0].size() != 1) {
        return None;
    }
    let mut making = Making::new();
    let mut inputs = Values::new();
    let mut frame = Frame::new(graph, fusion, Vec::new());
    for &position in &group.nodes {
        for &input in &graph.nodes()[position].inputs {
            let base = fusion.base(input);
            let is_own = fusion.group_of[base.node as usize].is_some()
                && fusion.group_of[base.node as usize] == fusion.group_of[group.nodes[0]];
            let is_constant = match (&fusion.roles[base.node as usize], &graph.node(base).op) {
                (Role::Generated, _) | (_, Op::Constant(_)) => true,
                (Role::Leaf | Role::View | Role::Elementwise | Role::Step, _) => false,
            };
            if !is_own && !is_constant && !frame.held.contains_key(&base) {
                let held = making.input(graph, &mut inputs, base)?;
                frame.held.insert(base, held);
            }
        }
        making.scalar_node(&mut frame, position)?;
    }
    let held = results.iter().map(|result| frame.held.get(result).cloned()).collect::<Option<Vec<_>>>()?;
    making.finish(graph, inputs, results.clone(), held)
}

impl<'g> Frame<'g> {
    fn new(graph: &'g Graph, fusion: &'g FusionGroups, arguments: Vec<Held>) -> Frame<'g> {
        let (held, last, targets) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Frame { graph, fusion, held, arguments, last, targets }
    }
}

impl Making {
    fn new() -> Making {
        Making {
            machine: Machine::program(),
            units: Vec::new(),
            addresses: Vec::new(),
            kept: Vec::new(),
            between: 0,
            pinned: Vec::new(),
        }
    }

    /// A register that holds an address before the routine runs.
    fn address(&mut self, home: Home) -> Option<Register> {
        let register = self.machine.address()?;
        self.addresses.push((register.place(), home));
        Some(register)
    }

    /// A value from before.
    fn input(&mut self, graph: &Graph, inputs: &mut Values, value: Value) -> Option<Held> {
        let ty = graph.ty(value);
        if ty.size() == 0 {
            return None;
        }
        let at = inputs.len();
        inputs.push(value);
        let address = self.address(Home::Input(at))?;
        if ty.size() == 1 {
            return Some(Held::Scalar(self.machine.load(address, ty.dtype)?));
        }
        Some(Held::Array(Array { address, ty: ty.clone(), is_owned: false }))
    }

    /// Memory of the routine's own.
    fn room(&mut self, bytes: usize) -> Option<Home> {
        let offset = self.between;
        self.between += bytes.next_multiple_of(64);
        (self.between <= MOST).then_some(Home::Between(offset))
    }

    /// An array in memory of its own, which is written where this is.
    pub(super) fn array(&mut self, ty: &TensorType) -> Option<Array> {
        let home = self.room(ty.byte_size())?;
        let address = self.address(home)?;
        Some(Array { address: self.machine.here(address), ty: ty.clone(), is_owned: true })
    }

    /// Gives a register an address that it has before the routine runs: of a result where there is one, else of memory
    /// of the routine's own.
    pub(super) fn settle(
        &mut self,
        register: Register,
        ty: &TensorType,
        result: Option<usize>,
    ) -> Option<()> {
        let home = match result {
            Some(result) => Home::Result(result),
            None => self.room(ty.byte_size())?,
        };
        self.addresses.push((register.place(), home));
        Some(())
    }

    /// Copies bytes from one address to another.
    pub(super) fn copy(&mut self, from: Register, to: Register, bytes: usize) {
        self.call(Unit::Copy { bytes }, [from, to].into_iter());
    }

    /// Has a unit run here, which reads registers.
    pub(super) fn call(&mut self, unit: Unit, reads: impl Iterator<Item = Register>) {
        self.units.push(unit);
        self.machine.call(self.units.len() - 1, reads);
    }

    /// Runs a tile program.
    fn tiles(
        &mut self,
        program: tiles::Program,
        operands: Vec<(Operand, Register)>,
        results: &[Register],
        elements: usize,
    ) -> Option<()> {
        if !program.is_short(elements) {
            return None;
        }
        let Home::Between(bank) = self.room(program.bank())? else { return None };
        let (operands, registers): (Vec<Operand>, Vec<Register>) = operands.into_iter().unzip();
        let is_plain = |input: usize, dtype: DType| {
            let operand: &Operand = &operands[input];
            operand.is_array && operand.walk.is_plain(elements) && operand.ty.dtype == dtype
        };
        let brief = program.brief(elements, is_plain);
        let unit = Unit::Tiles { program, operands, elements, bank, brief };
        self.call(unit, registers.iter().chain(results).copied());
        Some(())
    }

    /// Adds the nodes of a region, and gives its results. `targets` are addresses where arrays are to be written.
    pub(super) fn region(
        &mut self,
        region: &Region,
        arguments: Vec<Held>,
        targets: &[Option<Register>],
    ) -> Option<Vec<Held>> {
        let graph = region.graph();
        let is_empty = |ty: &TensorType| ty.size() == 0;
        if region.has_effects() || graph.nodes().iter().any(|node| node.outputs.iter().any(is_empty)) {
            return None;
        }
        let fusion = &FusionGroups::new(region);
        let mut frame = Frame::new(graph, fusion, arguments);
        let mut needed: Vec<Values> = vec![Values::new(); fusion.order.len()];
        let mut reads = |value: Value, at: usize| {
            let base = fusion.base(value);
            frame.last.insert(base, at.max(frame.last.get(&base).copied().unwrap_or(0)));
            if let Some(place) = fusion.group_of[base.node as usize]
                && place != at
                && !needed[place].contains(&base)
            {
                needed[place].push(base);
            }
        };
        for (position, node) in graph.nodes().iter().enumerate() {
            if let Some(at) = fusion.group_of[position] {
                node.inputs.iter().for_each(|&input| reads(input, at));
            }
        }
        region.results().iter().for_each(|&result| reads(result, usize::MAX));
        for (&result, target) in region.results().iter().zip(targets) {
            if let Some(target) = target {
                frame.targets.entry(result).or_insert(*target);
            }
        }
        for (at, group) in fusion.order.iter().enumerate() {
            let first = group.nodes[0];
            match fusion.roles[first] {
                Role::Elementwise if graph.nodes()[first].outputs[0].size() == 1 => {
                    group.nodes.iter().try_for_each(|&position| self.scalar_node(&mut frame, position))?;
                }
                Role::Elementwise => {
                    if group.nodes.iter().any(|&node| random(&graph.nodes()[node].op).is_some()) {
                        return None;
                    }
                    let made = tile_program(graph, fusion, group, needed[at].clone());
                    self.group(&mut frame, made)?;
                }
                Role::Leaf | Role::View | Role::Generated | Role::Step => {
                    self.step(&mut frame, first, at)?;
                }
            }
        }
        region.results().iter().map(|&result| self.value(&mut frame, result)).collect()
    }

    /// A value that has memory, or a register.
    pub(super) fn value(&mut self, frame: &mut Frame<'_>, value: Value) -> Option<Held> {
        if frame.graph.ty(value).size() == 1 {
            return Some(Held::Scalar(self.scalar(frame, value)?));
        }
        self.base(frame, value)
    }

    /// The one element of a value.
    pub(super) fn scalar(&mut self, frame: &mut Frame<'_>, value: Value) -> Option<Register> {
        let value_view = frame.fusion.view(frame.graph, value);
        self.element(frame, &value_view, frame.graph.ty(value).dtype)
    }

    /// The one element that is seen.
    pub(super) fn element(
        &mut self,
        frame: &mut Frame<'_>,
        value_view: &ValueView,
        dtype: DType,
    ) -> Option<Register> {
        match self.base(frame, value_view.base)? {
            Held::Scalar(register) => (register.dtype() == dtype).then_some(register),
            Held::Array(array) => {
                let (one, width) = (value_view.first(), dtype.storage_bytes());
                let address = if one == 0 {
                    array.address
                } else {
                    let offset = self.machine.number(one * width)?;
                    self.machine.binary(BinaryOp::ADD, array.address, offset, DType::U64)?
                };
                self.machine.load(address, dtype)
            }
        }
    }

    /// What a value is whose elements lie in order.
    pub(super) fn base(&mut self, frame: &mut Frame<'_>, value: Value) -> Option<Held> {
        if let Some(held) = frame.held.get(&value) {
            return Some(held.clone());
        }
        let ty = frame.graph.ty(value);
        let held = if let Op::Parameter { index, ty: _ } = &frame.graph.node(value).op {
            frame.arguments.get(*index)?.clone()
        } else if let Op::Constant(scalar) = &frame.graph.node(value).op {
            Held::Scalar(self.machine.constant(*scalar).filter(|_| !scalar.dtype().is_complex())?)
        } else if let Op::Literal(literal) = &frame.graph.node(value).op {
            if ty.size() == 1 {
                let number = Scalar::from_bytes(ty.dtype, literal.bytes());
                Held::Scalar(self.machine.constant(number)?)
            } else {
                let mut storage = Storage::allocate("literal", ty.byte_size()).ok()?;
                let start = storage.start_mut().expect("allocated memory is ours");
                // SAFETY: the memory was allocated for as many bytes, and nobody else has it.
                unsafe { literal.bytes().as_ptr().copy_to_nonoverlapping(start, ty.byte_size()) };
                self.kept.push(storage);
                let address = self.address(Home::Kept(self.kept.len() - 1))?;
                Held::Array(Array { address, ty: ty.clone(), is_owned: false })
            }
        } else if let (Op::Iota { .. }, 1) = (&frame.graph.node(value).op, ty.size()) {
            Held::Scalar(self.machine.constant(Scalar::zero(ty.dtype))?)
        } else {
            return None;
        };
        frame.held.insert(value, held.clone());
        Some(held)
    }

    /// Adds an op on one element.
    fn scalar_node(&mut self, frame: &mut Frame<'_>, position: usize) -> Option<()> {
        let node = &frame.graph.nodes()[position];
        let dtype = node.outputs[0].dtype;
        let x: Vec<Register> =
            node.inputs.iter().map(|&input| self.scalar(frame, input)).collect::<Option<_>>()?;
        let machine = &mut self.machine;
        let made = match elementwise(&node.op)? {
            Elementwise::Unary(op) => machine.unary(op, x[0], dtype),
            Elementwise::Binary(op) => machine.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => machine.convert(x[0], dtype),
            Elementwise::Select => machine.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => machine.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => machine.log_to(base, x[0], dtype),
            Elementwise::Random(_) => return None,
        };
        let made = made.filter(|made| made.dtype() == dtype)?;
        frame.held.insert(Value { node: position as u32, output: 0 }, Held::Scalar(made));
        Some(())
    }

    /// An operand of a tile program, and its register.
    fn operand(
        &mut self,
        frame: &mut Frame<'_>,
        value: Value,
        walk: StridedView,
    ) -> Option<(Operand, Register)> {
        let ty = frame.graph.ty(value).clone();
        Some(match self.base(frame, value)? {
            Held::Scalar(register) => {
                (Operand { ty, walk, is_array: false }, self.machine.encoded(register)?)
            }
            Held::Array(array) => (Operand { ty, walk, is_array: true }, array.address),
        })
    }

    /// Adds ops that are done to each element of arrays.
    fn group(&mut self, frame: &mut Frame<'_>, made: TileProgram) -> Option<()> {
        let TileProgram { program, inputs, results, elements } = made;
        let operands = inputs
            .into_iter()
            .map(|(value, walk)| self.operand(frame, value, walk))
            .collect::<Option<Vec<_>>>()?;
        let arrays: Vec<Array> =
            results.iter().map(|&result| self.result(frame, result)).collect::<Option<_>>()?;
        let addresses: Vec<Register> = arrays.iter().map(|array| array.address).collect();
        self.tiles(program, operands, &addresses, elements)?;
        frame.held.extend(results.into_iter().zip(arrays.into_iter().map(Held::Array)));
        Some(())
    }

    /// Memory for a value: where it is to be written, if that was said.
    fn result(&mut self, frame: &Frame<'_>, value: Value) -> Option<Array> {
        let ty = frame.graph.ty(value);
        match frame.targets.get(&value) {
            Some(&address) => Some(Array { address, ty: ty.clone(), is_owned: true }),
            None => self.array(ty),
        }
    }

    /// Adds the elements of a value in another order.
    pub(super) fn look(
        &mut self,
        frame: &mut Frame<'_>,
        position: usize,
        value_view: &ValueView,
    ) -> Option<Held> {
        let value = Value { node: position as u32, output: 0 };
        let ty = frame.graph.ty(value).clone();
        let walk = value_view.strided_view(ty.shape.sizes());
        let (dtype, constant) = (ty.dtype, walk.is_constant());
        let operand = self.operand(frame, value_view.base, walk)?;
        let array = self.result(frame, value)?;
        let mut draft = Draft::default();
        draft.store(tiles::Operand::Input { index: 0, dtype, constant, run: None });
        self.tiles(draft.finish(), vec![operand], &[array.address], ty.size())?;
        Some(Held::Array(array))
    }

    fn finish(mut self, graph: &Graph, inputs: Values, results: Values, held: Vec<Held>) -> Option<Routine> {
        let mut arrays = Vec::new();
        for (at, (held, &result)) in held.into_iter().zip(&results).enumerate() {
            match held {
                Held::Scalar(register) => {
                    let address = self.address(Home::Result(at))?;
                    self.machine.store(address, register);
                }
                Held::Array(array) => {
                    arrays.push((at, array.address.place(), graph.ty(result).byte_size()));
                }
            }
        }
        let Making { machine, units, addresses, kept, between, pinned: _ } = self;
        let program = machine.finish_program();
        Some(Routine { program, units, addresses, kept, arrays, between, state: 0, inputs, results })
    }
}
