//! Element-wise operations.

use defn_core::op::{BinaryOp, FunctionOp, UnaryOp};
use defn_core::{DType, Kind, Number, Scalar, TensorType};

use super::numeric::FloatExpr;
use super::text::{Ssa, Ty, Writer};
use super::value::{compute_type, half, storage_type};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Lowering {
    /// One operand.
    pub(super) fn unary(&mut self, op: UnaryOp, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let from = operands.types[0].dtype;
        let w = &mut self.writer;
        let kind = from.kind();
        let is_whole = !from.is_inexact();
        // Operations that compute in the operand's own type return from this match.
        let x = w.load(&operands.values[0], from);
        let same = x.ty.clone();
        let op = match op {
            UnaryOp::NEGATE => return w.stored("negate", &x, out.dtype),
            UnaryOp::ABS => {
                if kind == Kind::Unsigned || kind == Kind::Bool {
                    return operands.values[0].clone();
                }
                if kind == Kind::Complex {
                    return w.complex_abs(&x);
                }
                return w.stored("abs", &x, out.dtype);
            }
            UnaryOp::SIGN => {
                let y = match kind {
                    Kind::Bool => x,
                    Kind::Unsigned => {
                        let truth = w.truth(&x);
                        w.convert(&truth, x.element())
                    }
                    Kind::Signed | Kind::Float => w.op("sign", &[&x], "", same),
                    Kind::Complex => w.complex_sign(&x),
                };
                return w.store(&y, out.dtype);
            }
            UnaryOp::FLOOR | UnaryOp::CEIL | UnaryOp::ROUND if is_whole => {
                return operands.values[0].clone();
            }
            UnaryOp::FLOOR => return w.stored("floor", &x, out.dtype),
            UnaryOp::CEIL => return w.stored("ceil", &x, out.dtype),
            UnaryOp::ROUND => return w.stored("round_nearest_afz", &x, out.dtype),
            UnaryOp::BITWISE_NOT => return w.stored("not", &x, out.dtype),
            UnaryOp::POPULATION_COUNT => {
                let x = w.own_bits(&x, from);
                return w.stored("popcnt", &x, out.dtype);
            }
            UnaryOp::COUNT_LEADING_ZEROS => return w.leading_zeros(&x, from),
            UnaryOp::IS_NAN | UnaryOp::IS_INFINITY if is_whole => {
                let no = w.number(E::Pred, 0);
                return w.splat(&no, x.dims());
            }
            UnaryOp::IS_NAN => {
                return w.parts(&x, |w, part| w.compare(part, part, "NE"));
            }
            UnaryOp::IS_INFINITY => {
                return w.parts(&x, Writer::is_infinite);
            }
            UnaryOp::REAL => {
                let y = if kind == Kind::Complex {
                    w.op("real", &[&x], "", same.of(half(x.element())))
                } else {
                    w.load_as(&operands.values[0], from, out.dtype)
                };
                return w.store(&y, out.dtype);
            }
            UnaryOp::IMAG => {
                let y = if kind == Kind::Complex {
                    w.op("imag", &[&x], "", same.of(half(x.element())))
                } else {
                    let zero = w.number(compute_type(out.dtype), 0);
                    w.splat(&zero, x.dims())
                };
                return w.store(&y, out.dtype);
            }
            UnaryOp::CONJUGATE => {
                let z = w.load_as(&operands.values[0], from, out.dtype);
                return w.conjugate(&z);
            }
            UnaryOp::Function(op) => op,
        };
        let x = w.load_as(&operands.values[0], from, out.dtype);
        let y = w.function(op, &x);
        w.store(&y, out.dtype)
    }

    /// The logarithm to a base, given the natural logarithm of that base; rounded once.
    pub(super) fn log_to(&mut self, base: f64, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let x = w.load_as(&operands.values[0], operands.types[0].dtype, out.dtype);
        let y = if out.dtype.is_complex() {
            let log = w.function(FunctionOp::Log, &x);
            let parts = ["real", "imag"].map(|name| {
                let part = w.op(name, &[&log], "", x.ty.of(half(x.element())));
                w.formula(&part, |x| x / base)
            });
            w.op("complex", &[&parts[0], &parts[1]], "", x.ty.clone())
        } else {
            let log = w.function(FunctionOp::Log, &x);
            w.formula(&log, |x| x / base)
        };
        w.store(&y, out.dtype)
    }

    /// Two operands, with broadcasting.
    pub(super) fn binary(&mut self, op: BinaryOp, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let dims = out.shape.sizes();
        let w = &mut self.writer;
        match op {
            BinaryOp::EQUAL => w.ordered(["EQ", "EQ"], operands, dims),
            BinaryOp::NOT_EQUAL => w.ordered(["NE", "NE"], operands, dims),
            BinaryOp::GREATER => w.ordered(["GT", "LT"], operands, dims),
            BinaryOp::GREATER_EQUAL => w.ordered(["GE", "LE"], operands, dims),
            BinaryOp::LESS => w.ordered(["LT", "GT"], operands, dims),
            BinaryOp::LESS_EQUAL => w.ordered(["LE", "GE"], operands, dims),
            BinaryOp::LOGICAL_AND => w.logical("and", operands, dims),
            BinaryOp::LOGICAL_OR => w.logical("or", operands, dims),
            BinaryOp::LOGICAL_XOR => w.logical("xor", operands, dims),
            BinaryOp::Complex => {
                let part = if out.dtype == DType::C128 { DType::F64 } else { DType::F32 };
                let [a, b] = w.two(operands, part, dims);
                w.op("complex", &[&a, &b], "", a.ty.of(compute_type(out.dtype)))
            }
            BinaryOp::ADD => w.arithmetic("add", operands, out),
            BinaryOp::SUBTRACT => w.arithmetic("subtract", operands, out),
            BinaryOp::MULTIPLY => w.arithmetic("multiply", operands, out),
            BinaryOp::DIVIDE if out.dtype.is_complex() => {
                let [a, b] = w.two(operands, out.dtype, dims);
                w.complex_divide(&a, &b)
            }
            BinaryOp::POW if out.dtype.is_complex() => {
                let [a, b] = w.two(operands, out.dtype, dims);
                w.complex_pow(&a, &b)
            }
            BinaryOp::POW if out.dtype.is_integer() => {
                let [a, b] = w.two(operands, out.dtype, dims);
                let bits = match operands.constants[1].map(Scalar::value) {
                    Some(Number::Int(exponent)) if exponent >= 0 => 128 - exponent.leading_zeros() as usize,
                    Some(
                        Number::Bool(_)
                        | Number::Int(_)
                        | Number::Huge(_)
                        | Number::Float(_)
                        | Number::Complex(_),
                    )
                    | None => out.dtype.bits(),
                };
                let power = w.integer_power(&a, &b, bits.min(out.dtype.bits()));
                w.store(&power, out.dtype)
            }
            BinaryOp::DIVIDE | BinaryOp::QUOTIENT => w.arithmetic("divide", operands, out),
            BinaryOp::POW => w.arithmetic("power", operands, out),
            BinaryOp::ATAN2 => w.arithmetic("atan2", operands, out),
            BinaryOp::REMAINDER => w.arithmetic("remainder", operands, out),
            BinaryOp::MAX => w.arithmetic("maximum", operands, out),
            BinaryOp::MIN => w.arithmetic("minimum", operands, out),
            BinaryOp::BITWISE_AND => w.arithmetic("and", operands, out),
            BinaryOp::BITWISE_OR => w.arithmetic("or", operands, out),
            BinaryOp::BITWISE_XOR => w.arithmetic("xor", operands, out),
            BinaryOp::LEFT_SHIFT => w.arithmetic("shift_left", operands, out),
            BinaryOp::RIGHT_SHIFT if out.dtype.kind() == Kind::Signed => {
                w.arithmetic("shift_right_arithmetic", operands, out)
            }
            BinaryOp::RIGHT_SHIFT => w.arithmetic("shift_right_logical", operands, out),
        }
    }

    /// Reinterprets the bits of each element as another type.
    pub(super) fn bitcast(&mut self, operands: &Operands<'_>, to: DType) -> Ssa {
        let x = &operands.values[0];
        let from = operands.types[0].dtype;
        if from.bits() >= 8 {
            return self.writer.op("bitcast_convert", &[x], "", x.ty.of(storage_type(to)));
        }
        let same_bits = self.writer.convert(x, compute_type(to));
        self.writer.store(&same_bits, to)
    }

    /// `(pred, a, b)`.
    pub(super) fn select(&mut self, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let dims = out.shape.sizes();
        let w = &mut self.writer;
        let pred = w.load(&operands.values[0], operands.types[0].dtype);
        let pred = w.truth(&pred);
        let pred = w.broadcast_to(&pred, dims);
        let branch = |w: &mut Writer, at: usize| {
            let x = w.cast(&operands.values[at], operands.types[at].dtype, out.dtype);
            w.broadcast_to(&x, dims)
        };
        let (a, b) = (branch(w, 1), branch(w, 2));
        w.choose(&pred, &a, &b)
    }

    /// `(x, lo, hi)`: NaN is kept; if the bounds conflict, the upper one wins.
    pub(super) fn clip(&mut self, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let dims = out.shape.sizes();
        let load = |w: &mut Writer, at: usize| {
            let x = w.load_as(&operands.values[at], operands.types[at].dtype, out.dtype);
            w.broadcast_to(&x, dims)
        };
        let (x, low, high) = (load(w, 0), load(w, 1), load(w, 2));
        let above = w.op("maximum", &[&x, &low], "", x.ty.clone());
        let within = w.op("minimum", &[&above, &high], "", x.ty.clone());
        w.store(&within, out.dtype)
    }
}

impl Writer {
    /// Broadcasts: trailing axes are aligned, axes of size 1 are repeated.
    pub fn broadcast_to(&mut self, x: &Ssa, dims: &[usize]) -> Ssa {
        if x.dims() == dims {
            return x.clone();
        }
        let first = dims.len() - x.dims().len();
        let axes = super::text::array(first..dims.len());
        self.op(
            "broadcast_in_dim",
            &[x],
            &format!("broadcast_dimensions = {axes}"),
            Ty::new(x.element(), dims),
        )
    }

    /// Both operands in the compute type of `dtype`, broadcast to one shape.
    fn two(&mut self, operands: &Operands<'_>, dtype: DType, dims: &[usize]) -> [Ssa; 2] {
        [0, 1].map(|at| {
            let x = self.load_as(&operands.values[at], operands.types[at].dtype, dtype);
            self.broadcast_to(&x, dims)
        })
    }

    /// An operation of one operand, with its result in the storage type.
    fn stored(&mut self, name: &str, x: &Ssa, dtype: DType) -> Ssa {
        let y = self.op(name, &[x], "", x.ty.clone());
        self.store(&y, dtype)
    }

    /// An operation of two operands of the result's type.
    fn arithmetic(&mut self, name: &str, operands: &Operands<'_>, out: &TensorType) -> Ssa {
        let [a, b] = self.two(operands, out.dtype, out.shape.sizes());
        let y = self.op(name, &[&a, &b], "", a.ty.clone());
        self.store(&y, out.dtype)
    }

    /// An integer power by repeated squaring, for exponents of `bits` bits; a negative exponent is read as unsigned.
    fn integer_power(&mut self, base: &Ssa, exponent: &Ssa, bits: usize) -> Ssa {
        let ty = base.ty.clone();
        let one = self.number_like(base, 1);
        let mut rest = exponent.clone();
        let (mut result, mut square) = (one.clone(), base.clone());
        for bit in 0..bits {
            let last = self.op("and", &[&rest, &one], "", ty.clone());
            let is_odd = self.truth(&last);
            let product = self.op("multiply", &[&result, &square], "", ty.clone());
            result = self.choose(&is_odd, &product, &result);
            if bit + 1 < bits {
                square = self.op("multiply", &[&square, &square], "", ty.clone());
                rest = self.op("shift_right_logical", &[&rest, &one], "", ty.clone());
            }
        }
        result
    }

    /// An operation of two truth values.
    fn logical(&mut self, name: &str, operands: &Operands<'_>, dims: &[usize]) -> Ssa {
        let [a, b] = [0, 1].map(|at| {
            let x = self.load(&operands.values[at], operands.types[at].dtype);
            let x = self.truth(&x);
            self.broadcast_to(&x, dims)
        });
        self.op(name, &[&a, &b], "", a.ty.clone())
    }

    /// Compares numbers of any two types. The second direction is the first with the operands swapped.
    fn ordered(&mut self, [direction, mirrored]: [&str; 2], operands: &Operands<'_>, dims: &[usize]) -> Ssa {
        let [a_type, b_type] = [operands.types[0].dtype, operands.types[1].dtype];
        let both = a_type.compared(b_type);
        let [a, b] = self.two(operands, both.unwrap_or(DType::S64), dims);
        let mut truth = self.compare(&a, &b, direction);
        // Unsigned 64-bit numbers beyond the signed range have become negative here; they are above every signed
        // number.
        for (x, from, direction) in [(&a, a_type, direction), (&b, b_type, mirrored)] {
            if from == DType::U64 && both.is_none() {
                let zero = self.number_like(x, 0);
                let beyond = self.compare(x, &zero, "LT");
                let answer = self.number(E::Pred, i32::from(matches!(direction, "NE" | "GT" | "GE")));
                let answer = self.splat(&answer, dims);
                truth = self.choose(&beyond, &answer, &truth);
            }
        }
        truth
    }

    /// The bits of an element, without the extra bits of its wider storage type.
    fn own_bits(&mut self, x: &Ssa, dtype: DType) -> Ssa {
        if dtype.bits() >= 8 {
            return x.clone();
        }
        let mask = self.number_like(x, (1 << dtype.bits()) - 1);
        self.op("and", &[x, &mask], "", x.ty.clone())
    }

    /// The number of leading zero bits, in the dtype's own width.
    fn leading_zeros(&mut self, x: &Ssa, dtype: DType) -> Ssa {
        let x = self.own_bits(x, dtype);
        let y = self.op("count_leading_zeros", &[&x], "", x.ty.clone());
        if dtype.bits() >= 8 {
            return y;
        }
        let extra = self.number_like(&y, 8 - i32::try_from(dtype.bits()).expect("a few bits"));
        let y = self.op("subtract", &[&y, &extra], "", y.ty.clone());
        self.store(&y, dtype)
    }

    /// Whether a real number, or either part of a complex one, has a property.
    pub fn parts(&mut self, x: &Ssa, mut has: impl FnMut(&mut Writer, &Ssa) -> Ssa) -> Ssa {
        if !x.is_complex() {
            return has(self, x);
        }
        let part = x.ty.of(half(x.element()));
        let (re, im) = (self.op("real", &[x], "", part.clone()), self.op("imag", &[x], "", part));
        let (re, im) = (has(self, &re), has(self, &im));
        self.op("or", &[&re, &im], "", re.ty.clone())
    }

    fn is_infinite(&mut self, x: &Ssa) -> Ssa {
        let size = self.op("abs", &[x], "", x.ty.clone());
        let limit = self.float_like(x, f64::INFINITY);
        self.compare(&size, &limit, "EQ")
    }

    /// Writes a formula over floats.
    pub(super) fn formula(&mut self, x: &Ssa, formula: impl FnOnce(FloatExpr<'_>) -> FloatExpr<'_>) -> Ssa {
        self.formulas(|w| formula(FloatExpr::new(w, x)).value)
    }
}
