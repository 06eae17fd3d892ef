//! What every function must be.

use super::{CallArg, Elem, Function, Op, Ty, Val};

impl Function {
    /// The function, which is verified in tests.
    ///
    /// # Panics
    /// In tests, when something is wrong with it.
    pub(super) fn verified(self) -> Function {
        if cfg!(any(debug_assertions, test))
            && let Err(problem) = verify(&self)
        {
            panic!("{problem} in\n{self}");
        }
        self
    }
}

/// Says what is wrong with a function, if anything is: blocks that do not nest, values that are not visible, types that
/// do not fit.
pub(crate) fn verify(function: &Function) -> Result<(), String> {
    let mut open: Vec<Block> = vec![Block { kind: Kind::Function, start: 0 }];
    // For each value, whether it is visible.
    let mut visible = vec![false; function.insts.len()];
    for value in function.values() {
        let inst = function.inst(value);
        let problem = |text: &str| Err(format!("{value}: {text}"));
        let close = |open: &mut Vec<Block>, visible: &mut Vec<bool>, kinds: &[Kind]| {
            let block = open.pop().filter(|block| kinds.contains(&block.kind));
            let block = block.ok_or_else(|| format!("{value} ends another block"))?;
            visible[block.start..value.index()].fill(false);
            Ok::<_, String>(())
        };
        let in_lanes = open.iter().any(|block| block.kind == Kind::Lanes);
        for operand in inst.operands() {
            let is_join = inst.op == Op::Join;
            if operand >= value || !visible[operand.index()] && !is_join {
                return problem(&format!("{operand} is not visible"));
            }
        }
        if let Some(rule) = type_problem(function, value) {
            return problem(rule);
        }
        if inst.ty.is_vector && !in_lanes {
            return problem("a vector outside of lanes");
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops have no rule but that of types")]
        match inst.op {
            Op::Load(access) | Op::Store(access) | Op::Gather(access) => {
                check_access(function, &visible, value, access)?;
            }
            Op::Call(call) => {
                let call = function.call(call);
                if call.kernel >= function.kernels {
                    return problem("no such kernel");
                }
                for &CallArg::Index(index) in &call.args {
                    if !visible[index.index()] {
                        return problem(&format!("{index} is not visible"));
                    }
                }
            }
            Op::Lane | Op::Reduce if !in_lanes => return problem("this is an op of lanes"),
            Op::Accumulator(..) | Op::Lanes if in_lanes => return problem("lanes do not nest"),
            Op::Param(at) if at >= function.params => return problem("no such parameter"),
            Op::Loop => open.push(Block { kind: Kind::Loop, start: value.index() + 1 }),
            Op::Carry => {
                let before = value.0.checked_sub(1).map(|before| function.inst(Val(before)).op);
                let Some(Op::Loop | Op::Carry) = before else {
                    return problem("what is carried stands right behind its loop");
                };
                // It is visible behind the loop.
                let block = open.last_mut().expect("the function");
                block.start = value.index() + 1;
            }
            Op::While if open.last().is_some_and(|block| block.kind != Kind::Loop) => {
                return problem("while is in a loop's own block");
            }
            Op::EndLoop(list) => {
                for &(carry, next) in function.list(list) {
                    if !visible[next.index()] || function.ty(carry) != function.ty(next) {
                        let fits = visible[next.index()] && function.ty(carry).elem == function.ty(next).elem;
                        if !fits || function.ty(next).is_vector && !function.ty(carry).is_vector {
                            return problem(&format!("{carry} cannot become {next}"));
                        }
                    }
                }
                let start = open.last().map_or(0, |block| block.start);
                let is_carry = |at: &usize| function.insts[*at].op == Op::Carry;
                let carries = (0..start).rev().take_while(is_carry).count();
                if carries != function.list(list).len() {
                    return problem("everything that is carried has a next value");
                }
                close(&mut open, &mut visible, &[Kind::Loop])?;
            }
            Op::If => open.push(Block { kind: Kind::If, start: value.index() + 1 }),
            Op::Else => {
                close(&mut open, &mut visible, &[Kind::If])?;
                open.push(Block { kind: Kind::Else, start: value.index() + 1 });
            }
            Op::EndIf(_) => close(&mut open, &mut visible, &[Kind::If, Kind::Else])?,
            Op::Lanes => open.push(Block { kind: Kind::Lanes, start: value.index() + 1 }),
            Op::EndLanes => close(&mut open, &mut visible, &[Kind::Lanes])?,
            _ => {}
        }
        visible[value.index()] = true;
    }
    match open.len() {
        1 => Ok(()),
        _ => Err("a block has no end".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Function,
    Loop,
    If,
    Else,
    Lanes,
}

struct Block {
    kind: Kind,
    start: usize,
}

fn check_access(
    function: &Function,
    visible: &[bool],
    value: Val,
    access: super::AccessId,
) -> Result<(), String> {
    let access = function.access(access);
    if access.buffer >= function.buffers {
        return Err(format!("{value}: no buffer {}", access.buffer));
    }
    for &(term, _) in &access.terms {
        if !visible[term.index()] || function.ty(term) != Ty::scalar(Elem::Index) {
            return Err(format!("{value}: {term} is no visible index"));
        }
    }
    Ok(())
}

/// The rule of types that an instruction breaks.
fn type_problem(function: &Function, value: Val) -> Option<&'static str> {
    let inst = function.inst(value);
    let elem = inst.ty.elem;
    let of = |at: usize| {
        let operand = inst.args[at];
        operand.is_some().then(|| function.ty(operand))
    };
    let elems: Vec<Elem> = (0..3).filter_map(|at| of(at).map(|ty| ty.elem)).collect();
    let (all_same, is_float) = (elems.iter().all(|&other| other == elem), elem.is_float());
    let is_integer = !is_float && elem != Elem::Bit;
    let rule = |holds: bool, text: &'static str| if holds { None } else { Some(text) };
    match inst.op {
        Op::Sqrt
        | Op::Floor
        | Op::Ceil
        | Op::Trunc
        | Op::Div
        | Op::Scale
        | Op::Fma
        | Op::Fnma
        | Op::Apply(_) => rule(all_same && is_float, "operands and result are floats of one type"),
        Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max => {
            rule(all_same && elem != Elem::Bit, "operands and result have one type")
        }
        Op::DivS | Op::DivU | Op::RemS | Op::RemU | Op::MinU | Op::MaxU | Op::PopCount | Op::LeadingZeros => {
            rule(all_same && is_integer, "operands and result are integers of one type")
        }
        Op::Shl | Op::Shr | Op::Sar | Op::ShlBy(_) | Op::ShrBy(_) | Op::SarBy(_) | Op::RotBy(_) => {
            rule(all_same && is_integer, "operands and result are integers of one type")
        }
        Op::And | Op::Or | Op::Xor | Op::AndNot | Op::Not | Op::Flip => {
            rule(all_same, "operands and result have one type")
        }
        Op::Compare(_) | Op::Test => {
            rule(elem == Elem::Bit && elems[0] == elems[1], "two of one type give a predicate")
        }
        Op::Select => rule(
            elems[0] == Elem::Bit && elems[1] == elem && elems[2] == elem,
            "a predicate selects one of two of the result's type",
        ),
        Op::While | Op::If => rule(of(0) == Some(Ty::scalar(Elem::Bit)), "a scalar predicate decides"),
        Op::Any => rule(elems[0] == Elem::Bit, "a predicate is asked for"),
        Op::Join => rule(all_same, "both sides have one type"),
        Op::Reduce => rule(all_same, "an accumulator takes values of its type"),
        Op::Loop | Op::Lanes => {
            rule(of(0).is_none_or(|ty| ty == Ty::scalar(Elem::Index)), "an extent is an index")
        }
        Op::Lane => rule(elem == Elem::I32 || elem == Elem::I64, "positions are I32 or I64"),
        Op::Gather(_) => rule(
            elems[0] == Elem::I64 || elems[0] == Elem::I32 || elems[0] == Elem::Index,
            "positions are I32 or I64, or an index",
        ),
        Op::Const(_)
        | Op::Param(_)
        | Op::Convert(_)
        | Op::Load(_)
        | Op::Store(_)
        | Op::Carry
        | Op::EndLoop(_)
        | Op::Else
        | Op::EndIf(_)
        | Op::Accumulator(..)
        | Op::EndLanes
        | Op::Call(_) => None,
    }
}
