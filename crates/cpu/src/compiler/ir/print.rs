//! The text form of functions, one instruction a line.

use std::fmt::{Display, Formatter, Result};

use super::{Access, CallArg, Conv, Elem, Function, Inst, Op, Ty, Val};

impl Display for Val {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "%{}", self.0)
    }
}

impl Display for Elem {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Elem::Bit => "bit",
            Elem::I8 => "i8",
            Elem::I16 => "i16",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::F32 => "f32",
            Elem::F64 => "f64",
            Elem::Index => "index",
        })
    }
}

impl Display for Ty {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.is_vector { write!(f, "<{}>", self.elem) } else { self.elem.fmt(f) }
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "b{}[{}", self.buffer, self.offset)?;
        for (value, stride) in &self.terms {
            write!(f, " + {value} * {stride}")?;
        }
        if self.lane != 0 {
            write!(f, " + lane * {}", self.lane)?;
        }
        f.write_str(if self.is_streaming { "] streaming" } else { "]" })
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "function(buffers {}, params {}, kernels {})", self.buffers, self.params, self.kernels)?;
        let mut depth = 1;
        for value in self.values() {
            let inst = self.inst(value);
            if let Op::Else | Op::EndIf(_) | Op::EndLoop(_) | Op::EndLanes = inst.op {
                depth -= 1;
            }
            write!(f, "{:1$}", "", 2 * depth)?;
            self.line(value, inst, f)?;
            if let Op::Else | Op::If | Op::Loop | Op::Lanes = inst.op {
                depth += 1;
            }
        }
        Ok(())
    }
}

impl Function {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops print alike")]
    fn line(&self, value: Val, inst: &Inst, f: &mut Formatter<'_>) -> Result {
        let [a, b, _] = inst.args;
        match inst.op {
            Op::Const(bits) => writeln!(f, "{value} = {} : {}", constant(inst.ty.elem, bits), inst.ty),
            Op::Load(access) => writeln!(f, "{value} = load {} : {}", self.access(access), inst.ty),
            Op::Store(access) => writeln!(f, "store {a} to {}", self.access(access)),
            Op::Gather(access) => {
                writeln!(f, "{value} = gather {a} of {} : {}", self.access(access), inst.ty)
            }
            Op::Loop if a.is_some() => writeln!(f, "{value} = loop {a}"),
            Op::Loop => writeln!(f, "{value} = loop"),
            Op::While => writeln!(f, "while {a}"),
            Op::EndLoop(list) => {
                f.write_str("end")?;
                for (carry, next) in self.list(list) {
                    write!(f, " {carry} <- {next}")?;
                }
                writeln!(f)
            }
            Op::If => writeln!(f, "if {a}"),
            Op::Else => writeln!(f, "else"),
            Op::EndIf(_) | Op::EndLanes => writeln!(f, "end"),
            Op::Accumulator(reduce, lanes) => {
                let name = format!("{reduce:?}").to_lowercase();
                writeln!(f, "{value} = accumulator {name} of {lanes} lanes from {a} : {}", inst.ty)
            }
            Op::Lanes => writeln!(f, "lanes {a}"),
            Op::Reduce => writeln!(f, "reduce {b} into {a}"),
            Op::Call(call) => {
                let call = self.call(call);
                write!(f, "call k{}", call.kernel)?;
                for CallArg::Index(value) in &call.args {
                    write!(f, " {value}")?;
                }
                writeln!(f)
            }
            op => {
                write!(f, "{value} = {}", name(op))?;
                for operand in inst.operands() {
                    write!(f, " {operand}")?;
                }
                writeln!(f, " : {}", inst.ty)
            }
        }
    }
}

/// The name of an op of values, with its number.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other names are those of the variants")]
fn name(op: Op) -> String {
    match op {
        Op::Convert(conv) => match conv {
            Conv::ZeroExtend => "zero_extend",
            Conv::SignExtend => "sign_extend",
            Conv::Truncate => "truncate",
            Conv::FloatOfS => "float_of_s",
            Conv::FloatOfU => "float_of_u",
            Conv::ToS => "to_s",
            Conv::ToU => "to_u",
            Conv::Float => "float",
            Conv::OfHalf => "of_half",
            Conv::ToHalf => "to_half",
            Conv::Bitcast => "bitcast",
            Conv::OfBit => "of_bit",
            Conv::ToIndex => "to_index",
            Conv::OfIndex => "of_index",
        }
        .to_owned(),
        Op::Param(at) => format!("param {at}"),
        Op::Compare(cmp) => format!("{cmp:?}").to_lowercase(),
        Op::ShlBy(by) => format!("shl_by {by}"),
        Op::ShrBy(by) => format!("shr_by {by}"),
        Op::SarBy(by) => format!("sar_by {by}"),
        Op::RotBy(by) => format!("rot_by {by}"),
        op => format!("{op:?}").to_lowercase(),
    }
}

/// A constant as a number.
pub(crate) fn constant(elem: Elem, bits: u64) -> String {
    match elem {
        Elem::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Elem::F64 => format!("{:?}", f64::from_bits(bits)),
        Elem::I64 | Elem::Index => (bits as i64).to_string(),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 => bits.to_string(),
    }
}
