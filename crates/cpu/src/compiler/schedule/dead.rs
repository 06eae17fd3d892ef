//! Values that nothing needs: one part of what was loaded in pairs, for example.

use super::super::ir::{self, CallArg, Function, Val};

/// For each instruction whether it can be left out.
pub(super) fn dead(function: &Function) -> Vec<bool> {
    let mut is_needed: Vec<bool> = function.insts.iter().map(|inst| !is_pure(inst.op)).collect();
    for &(a, b) in function.lists.iter().flatten() {
        (is_needed[a.index()], is_needed[b.index()]) = (true, true);
    }
    for value in function.values().rev() {
        if !is_needed[value.index()] {
            continue;
        }
        let inst = function.inst(value);
        for operand in inst.operands().chain(indices(function, inst.op)) {
            is_needed[operand.index()] = true;
        }
    }
    is_needed.into_iter().map(|is_needed| !is_needed).collect()
}

/// The indices that the addresses and the calls of an instruction need.
fn indices(function: &Function, op: ir::Op) -> Vec<Val> {
    if let ir::Op::Load(access) | ir::Op::Store(access) | ir::Op::Gather(access) = op {
        return function.access(access).terms.iter().map(|(term, _)| *term).collect();
    }
    let ir::Op::Call(call) = op else { return Vec::new() };
    function.call(call).args.iter().map(|&CallArg::Index(index)| index).collect()
}

/// Whether an instruction does nothing but to give a value.
fn is_pure(op: ir::Op) -> bool {
    match op {
        ir::Op::Const(_)
        | ir::Op::Param(_)
        | ir::Op::Lane
        | ir::Op::Not
        | ir::Op::Sqrt
        | ir::Op::Floor
        | ir::Op::Ceil
        | ir::Op::Trunc
        | ir::Op::PopCount
        | ir::Op::LeadingZeros
        | ir::Op::Convert(_)
        | ir::Op::Apply(_)
        | ir::Op::Add
        | ir::Op::Sub
        | ir::Op::Mul
        | ir::Op::Div
        | ir::Op::DivS
        | ir::Op::DivU
        | ir::Op::RemS
        | ir::Op::RemU
        | ir::Op::Min
        | ir::Op::Max
        | ir::Op::MinU
        | ir::Op::MaxU
        | ir::Op::And
        | ir::Op::Or
        | ir::Op::Xor
        | ir::Op::AndNot
        | ir::Op::Shl
        | ir::Op::Shr
        | ir::Op::Sar
        | ir::Op::ShlBy(_)
        | ir::Op::ShrBy(_)
        | ir::Op::SarBy(_)
        | ir::Op::RotBy(_)
        | ir::Op::Scale
        | ir::Op::Compare(_)
        | ir::Op::Test
        | ir::Op::Any
        | ir::Op::Fma
        | ir::Op::Fnma
        | ir::Op::Flip
        | ir::Op::Select
        | ir::Op::Load(_)
        | ir::Op::Gather(_) => true,
        ir::Op::Store(_)
        | ir::Op::Loop
        | ir::Op::Carry
        | ir::Op::While
        | ir::Op::EndLoop(_)
        | ir::Op::If
        | ir::Op::Else
        | ir::Op::EndIf(_)
        | ir::Op::Join
        | ir::Op::Accumulator(..)
        | ir::Op::Lanes
        | ir::Op::Reduce
        | ir::Op::EndLanes
        | ir::Op::Call(_) => false,
    }
}
