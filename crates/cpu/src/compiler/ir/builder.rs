//! Builds functions instruction by instruction.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::known::{Computed, KnownInsts};
use super::ranges::Range;
use super::{Access, AccessId, Call, CallId, Cmp, Conv, Elem, Function, Inst, ListId, Op, Reduce, Ty, Val};

/// Few functions have more instructions; memory for so many is requested at once.
const USUAL_LEN: usize = 56;

/// Builds a function. Equal pure instructions of a block and of those around it are one.
pub(crate) struct Builder {
    pub(super) function: Function,
    known: KnownInsts,
    /// What some integers can be, and the indices that are the same numbers.
    pub(super) ranges: FxHashMap<Val, Range>,
    pub(super) indices: FxHashMap<Val, Val>,
}

impl Builder {
    /// A function of so many pointers, scalars and kernels.
    pub(crate) fn new(buffers: u16, params: u16, kernels: u16) -> Builder {
        let insts = Vec::with_capacity(USUAL_LEN);
        let function = Function { buffers, params, kernels, insts, ..Function::default() };
        let known = KnownInsts::with_capacity(USUAL_LEN);
        Builder { function, known, ranges: FxHashMap::default(), indices: FxHashMap::default() }
    }

    /// The function, whose blocks must all have ended.
    pub(crate) fn finish(self) -> Function {
        debug_assert_eq!(self.known.open_blocks(), 0, "a block has not ended");
        self.function.verified()
    }

    /// The function, for so many pointers, scalars and kernels.
    pub(crate) fn finish_with(mut self, buffers: u16, params: u16, kernels: u16) -> Function {
        (self.function.buffers, self.function.params, self.function.kernels) = (buffers, params, kernels);
        self.finish()
    }

    /// What a value that a loop carries is before the first trip.
    pub(crate) fn initial(&self, carry: Val) -> Val {
        self.function.inst(carry).args[0]
    }

    /// How many instructions there are.
    pub(crate) fn len(&self) -> usize {
        self.function.insts.len()
    }

    pub(crate) fn ty(&self, value: Val) -> Ty {
        self.function.ty(value)
    }

    /// The bits of a value, if it is a constant.
    pub(crate) fn constant_bits(&self, value: Val) -> Option<u64> {
        self.function.inst(value).op.constant()
    }

    fn push(&mut self, op: Op, ty: Ty, args: [Val; 3]) -> Val {
        let value = Val(self.function.insts.len() as u32);
        self.function.insts.push(Inst { op, ty, args });
        value
    }

    /// A pure instruction, or an equal one that exists.
    pub(super) fn pure(&mut self, op: Op, ty: Ty, args: [Val; 3]) -> Val {
        match self.known.find(&Computed { op, elem: ty.elem, args }, &self.function.insts) {
            Ok(value) => value,
            Err(slot) => {
                let value = self.push(op, ty, args);
                self.known.insert(slot, value, &self.function.insts);
                value
            }
        }
    }

    fn open(&mut self) {
        self.known.open();
    }

    fn close(&mut self) {
        self.known.close();
    }

    // Values.

    /// The constant with the low bits of `bits`.
    pub(crate) fn bits(&mut self, elem: Elem, bits: u64) -> Val {
        let bits = match elem {
            Elem::Bit => bits & 1,
            Elem::I8 | Elem::I16 | Elem::I32 | Elem::F32 => bits & ((1 << (8 * elem.bytes())) - 1),
            Elem::I64 | Elem::F64 | Elem::Index => bits,
        };
        self.pure(Op::Const(bits), Ty::scalar(elem), [Val::NONE; 3])
    }

    pub(crate) fn f32(&mut self, x: f32) -> Val {
        self.bits(Elem::F32, x.to_bits().into())
    }

    pub(crate) fn f64(&mut self, x: f64) -> Val {
        self.bits(Elem::F64, x.to_bits())
    }

    /// A number that the float type holds.
    pub(crate) fn float(&mut self, elem: Elem, x: f64) -> Val {
        match elem {
            Elem::F32 => self.f32(x as f32),
            Elem::F64 => self.f64(x),
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => {
                unreachable!("{elem:?} is no float")
            }
        }
    }

    pub(crate) fn index(&mut self, x: i64) -> Val {
        self.bits(Elem::Index, x as u64)
    }

    /// A scalar argument.
    pub(crate) fn param(&mut self, position: u16, elem: Elem) -> Val {
        self.pure(Op::Param(position), Ty::scalar(elem), [Val::NONE; 3])
    }

    /// The position of the element in its row.
    pub(crate) fn lane(&mut self, elem: Elem) -> Val {
        self.pure(Op::Lane, Ty { elem, is_vector: true }, [Val::NONE; 3])
    }

    // Ops.

    /// An op whose result has the element type of its operands.
    pub(crate) fn op<const N: usize>(&mut self, op: Op, operands: [Val; N]) -> Val {
        let elem = self.ty(operands[N - 1]).elem;
        self.op_as(op, elem, operands)
    }

    /// An op with a result of an element type.
    fn op_as<const N: usize>(&mut self, op: Op, elem: Elem, operands: [Val; N]) -> Val {
        let mut args = [Val::NONE; 3];
        args[..N].copy_from_slice(&operands);
        if let Some(known) = self.simplified(op, elem, args) {
            return known;
        }
        let is_vector = operands.iter().any(|&operand| self.ty(operand).is_vector);
        self.pure(op, Ty { elem, is_vector }, args)
    }

    /// A copy of an instruction of another function that only computes, with operands of this one. What constants are
    /// known to do to indices and predicates is done here.
    pub(crate) fn computed(&mut self, op: Op, elem: Elem, args: [Val; 3]) -> Val {
        if let Some(known) = self.folded(op, elem, args) {
            return known;
        }
        if let Some(known) = self.folded_by_range(op, elem, args) {
            return known;
        }
        if let Some(known) = self.simplified(op, elem, args) {
            return known;
        }
        if op == Op::Convert(Conv::ToIndex) {
            return self.index_of(args[0]);
        }
        let is_vector = args.iter().any(|&arg| arg.is_some() && self.ty(arg).is_vector);
        let is_vector = (is_vector || op == Op::Lane) && op != Op::Any;
        self.pure(op, Ty { elem, is_vector }, args)
    }

    pub(crate) fn add(&mut self, a: Val, b: Val) -> Val {
        self.op(Op::Add, [a, b])
    }

    pub(crate) fn sub(&mut self, a: Val, b: Val) -> Val {
        self.op(Op::Sub, [a, b])
    }

    pub(crate) fn mul(&mut self, a: Val, b: Val) -> Val {
        self.op(Op::Mul, [a, b])
    }

    pub(crate) fn div(&mut self, a: Val, b: Val) -> Val {
        self.op(Op::Div, [a, b])
    }

    /// `a * b + c`, rounded once.
    pub(crate) fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.op(Op::Fma, [a, b, c])
    }

    /// `c - a * b`, rounded once.
    pub(crate) fn fnma(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.op(Op::Fnma, [a, b, c])
    }

    pub(crate) fn compare(&mut self, cmp: Cmp, a: Val, b: Val) -> Val {
        self.op_as(Op::Compare(cmp), Elem::Bit, [a, b])
    }

    /// Whether `a & b` is not zero.
    pub(crate) fn test(&mut self, a: Val, b: Val) -> Val {
        self.op_as(Op::Test, Elem::Bit, [a, b])
    }

    /// `a` where the predicate holds, else `b`.
    pub(crate) fn select(&mut self, predicate: Val, a: Val, b: Val) -> Val {
        self.op(Op::Select, [predicate, a, b])
    }

    /// Whether a predicate holds for any lane that is executed now.
    pub(crate) fn any(&mut self, predicate: Val) -> Val {
        self.pure(Op::Any, Ty::scalar(Elem::Bit), [predicate, Val::NONE, Val::NONE])
    }

    pub(crate) fn convert(&mut self, conv: Conv, to: Elem, a: Val) -> Val {
        if self.ty(a).elem == to && conv != Conv::OfBit {
            return a;
        }
        self.op_as(Op::Convert(conv), to, [a])
    }

    /// The same bits as an integer.
    #[expect(clippy::wrong_self_convention, reason = "it builds the instruction")]
    pub(crate) fn to_bits(&mut self, a: Val) -> Val {
        self.convert(Conv::Bitcast, self.ty(a).elem.integer(), a)
    }

    // Memory.

    fn access(&mut self, access: Access) -> AccessId {
        let known = self.function.accesses.iter().position(|other| *other == access);
        let at = known.unwrap_or_else(|| {
            self.function.accesses.push(access);
            self.function.accesses.len() - 1
        });
        AccessId(at as u32)
    }

    /// Loads an element, or one for each lane where the access says so.
    pub(crate) fn load(&mut self, elem: Elem, access: Access) -> Val {
        let is_vector = access.lane != 0;
        let access = self.access(access);
        self.push(Op::Load(access), Ty { elem, is_vector }, [Val::NONE; 3])
    }

    pub(crate) fn store(&mut self, value: Val, access: Access) {
        let (access, ty) = (self.access(access), self.ty(value));
        self.push(Op::Store(access), ty, [value, Val::NONE, Val::NONE]);
    }

    /// Loads the elements at positions, which count from the access' own.
    pub(crate) fn gather(&mut self, elem: Elem, position: Val, access: Access) -> Val {
        let ty = Ty { elem, is_vector: self.ty(position).is_vector };
        let access = self.access(access);
        self.push(Op::Gather(access), ty, [position, Val::NONE, Val::NONE])
    }

    // Control flow.

    /// Begins a loop of `trips`, or one that only [`Builder::while_`] leaves; gives its counter and what it carries, of
    /// which each has its first value and whether it is a vector.
    pub(crate) fn begin_loop(
        &mut self,
        trips: Option<Val>,
        carried: &[(Val, bool)],
    ) -> (Val, SmallVec<[Val; 4]>) {
        let trips = trips.unwrap_or(Val::NONE);
        let counter = self.push(Op::Loop, Ty::scalar(Elem::Index), [trips, Val::NONE, Val::NONE]);
        let carry = |&(init, is_vector): &(Val, bool)| {
            let ty = Ty { elem: self.ty(init).elem, is_vector };
            self.push(Op::Carry, ty, [init, Val::NONE, Val::NONE])
        };
        let carries = carried.iter().map(carry).collect();
        self.open();
        (counter, carries)
    }

    /// Leaves the loop unless the predicate holds.
    pub(crate) fn while_(&mut self, predicate: Val) {
        self.push(Op::While, Ty::scalar(Elem::Bit), [predicate, Val::NONE, Val::NONE]);
    }

    /// Ends a loop, with the next value of everything that it carries.
    pub(crate) fn end_loop(&mut self, next: &[(Val, Val)]) {
        self.close();
        let list = self.list(next.to_vec());
        self.push(Op::EndLoop(list), Ty::scalar(Elem::Bit), [Val::NONE; 3]);
    }

    pub(crate) fn begin_if(&mut self, predicate: Val) {
        self.push(Op::If, Ty::scalar(Elem::Bit), [predicate, Val::NONE, Val::NONE]);
        self.open();
    }

    pub(crate) fn begin_else(&mut self) {
        self.close();
        self.push(Op::Else, Ty::scalar(Elem::Bit), [Val::NONE; 3]);
        self.open();
    }

    /// Ends a condition; gives a value for each pair of values of either side.
    pub(crate) fn end_if(&mut self, pairs: &[(Val, Val)]) -> SmallVec<[Val; 4]> {
        self.close();
        let list = self.list(pairs.to_vec());
        self.push(Op::EndIf(list), Ty::scalar(Elem::Bit), [Val::NONE; 3]);
        let join = |&(then, otherwise): &(Val, Val)| {
            let (a, b) = (self.ty(then), self.ty(otherwise));
            let ty = Ty { elem: a.elem, is_vector: a.is_vector || b.is_vector };
            self.push(Op::Join, ty, [then, otherwise, Val::NONE])
        };
        pairs.iter().map(join).collect()
    }

    /// An accumulator for the next `lanes`.
    pub(crate) fn accumulator(&mut self, reduce: Reduce, elem: Elem, lanes: u16) -> Val {
        let neutral = self.bits(elem, reduce.neutral(elem));
        self.push(Op::Accumulator(reduce, lanes), Ty::scalar(elem), [neutral, Val::NONE, Val::NONE])
    }

    /// Begins the vectorized loop over a row of `extent` elements.
    pub(crate) fn begin_lanes(&mut self, extent: Val) {
        self.push(Op::Lanes, Ty::scalar(Elem::Index), [extent, Val::NONE, Val::NONE]);
        self.open();
    }

    /// Adds a value to an accumulator.
    pub(crate) fn reduce(&mut self, accumulator: Val, value: Val) {
        let ty = self.ty(accumulator);
        self.push(Op::Reduce, ty, [accumulator, value, Val::NONE]);
    }

    pub(crate) fn end_lanes(&mut self) {
        self.close();
        self.push(Op::EndLanes, Ty::scalar(Elem::Bit), [Val::NONE; 3]);
    }

    /// Calls a kernel.
    pub(crate) fn call(&mut self, call: Call) {
        let id = CallId(self.function.calls.len() as u32);
        self.function.calls.push(call);
        self.push(Op::Call(id), Ty::scalar(Elem::Bit), [Val::NONE; 3]);
    }

    fn list(&mut self, pairs: Vec<(Val, Val)>) -> ListId {
        self.function.lists.push(pairs);
        ListId(self.function.lists.len() as u32 - 1)
    }
}
