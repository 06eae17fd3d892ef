//! All ops on all dtypes.

use defn_core::op::{BinaryOp, Op as GraphOp, UnaryOp};

use super::*;
use crate::compiler::emit::Target;
use crate::compiler::nest::instruction_sets;

/// An op on one shape: its operands' dtypes, and the lines behind the parameters, of which the last is the result.
struct Case {
    operands: Vec<DType>,
    lines: Vec<String>,
}

impl Case {
    fn region(&self, size: usize) -> Arc<Region> {
        let shape = format!("[{size}]");
        let inputs: Vec<(DType, &str)> = self.operands.iter().map(|&dtype| (dtype, shape.as_str())).collect();
        let last = self.operands.len() + self.lines.len() - 1;
        let lines: Vec<String> = self.lines.iter().map(|line| line.replace("[N]", &shape)).collect();
        region(&inputs, &lines, &format!("%{last}"))
    }
}

/// The result of an op on elements of dtypes, if it accepts them.
fn inferred(op: &GraphOp, operands: &[DType]) -> Option<DType> {
    let types: Vec<TensorType> = operands
        .iter()
        .map(|&dtype| TensorType::new(dtype, defn_core::Shape::new(&[4])).expect("a small shape"))
        .collect();
    let types: Vec<&TensorType> = types.iter().collect();
    defn_core::infer::infer(op, &types).ok().map(|types| types[0].dtype)
}

fn unary_cases(op: UnaryOp) -> Vec<Case> {
    let of = |&dtype: &DType| {
        let result = inferred(&GraphOp::Unary(op), &[dtype])?;
        Some(Case { operands: vec![dtype], lines: vec![format!("%1 = {} %0 : {result}[N]", op.name())] })
    };
    DType::ALL.iter().filter_map(of).collect()
}

fn binary_cases(op: BinaryOp) -> Vec<Case> {
    let mut cases = Vec::new();
    for &a in DType::ALL {
        for &b in DType::ALL {
            if let Some(result) = inferred(&GraphOp::Binary(op), &[a, b]) {
                let lines = vec![format!("%2 = {} %0 %1 : {result}[N]", op.name())];
                cases.push(Case { operands: vec![a, b], lines });
            }
        }
    }
    cases
}

/// Powers by numbers that are known, of which some are products, and of numbers that are known.
fn known_power_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_bool() && !dtype.is_complex()) {
        let exponents: &[&str] = if dtype.is_float() {
            &["-1.0", "0.0", "0.5", "1.0", "2.0", "3.0", "4.0", "5.0"]
        } else {
            &["0", "1"]
        };
        for exponent in exponents {
            let lines = vec![
                format!("%1 = constant {{value: {exponent}}} : {dtype}"),
                format!("%2 = pow %0 %1 : {dtype}[N]"),
            ];
            cases.push(Case { operands: vec![dtype], lines });
        }
        let bases: &[&str] = if dtype.is_float() { &["2.0", "10.0"] } else { &[] };
        for base in bases {
            let lines = vec![
                format!("%1 = constant {{value: {base}}} : {dtype}"),
                format!("%2 = pow %1 %0 : {dtype}[N]"),
            ];
            cases.push(Case { operands: vec![dtype], lines });
        }
    }
    cases
}

fn as_type_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &from in DType::ALL {
        for &to in DType::ALL.iter().filter(|to| !to.is_bool()) {
            let lines = vec![format!("%1 = as_type %0 : {to}[N]")];
            cases.push(Case { operands: vec![from], lines });
        }
    }
    cases
}

fn select_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &predicate in DType::ALL {
        let lines = vec!["%3 = select %0 %1 %2 : f32[N]".to_owned()];
        cases.push(Case { operands: vec![predicate, DType::F32, DType::F32], lines });
    }
    for &a in DType::ALL {
        for &b in DType::ALL {
            let lines = vec![format!("%3 = select %0 %1 %2 : {}[N]", a.merge(b))];
            cases.push(Case { operands: vec![DType::Bool, a, b], lines });
        }
    }
    cases
}

fn log_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_inexact()) {
        for name in ["log2", "log10"] {
            cases.push(Case { operands: vec![dtype], lines: vec![format!("%1 = {name} %0 : {dtype}[N]")] });
        }
    }
    cases
}

/// A constant of each dtype as an operand, and numbers that count.
fn made_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &dtype in DType::ALL {
        let zero = if dtype.is_complex() { "(0.0, 0.0)".to_owned() } else { Scalar::zero(dtype).to_string() };
        cases.push(Case {
            operands: vec![dtype],
            lines: vec![
                format!("%1 = constant {{value: {zero}}} : {dtype}"),
                format!("%2 = not_equal %0 %1 : bool[N]"),
            ],
        });
        if dtype.is_bool() {
            continue;
        }
        cases.push(Case {
            operands: vec![dtype],
            lines: vec![
                format!("%1 = iota {{axis: none}} : {dtype}[N]"),
                format!("%2 = not_equal %0 %1 : bool[N]"),
            ],
        });
    }
    cases
}

fn all_cases() -> Vec<Case> {
    let mut cases: Vec<Case> = UnaryOp::ALL.iter().flat_map(|&op| unary_cases(op)).collect();
    cases.extend(BinaryOp::ALL.iter().flat_map(|&op| binary_cases(op)));
    cases.extend(known_power_cases());
    cases.extend(as_type_cases());
    cases.extend(select_cases());
    cases.extend(log_cases());
    cases.extend(made_cases());
    cases
}

/// Every op on every dtype has a nest, and every machine has code for it.
#[test]
fn every_op_on_every_dtype_has_a_nest() {
    let mut missing: Vec<String> = Vec::new();
    for case in all_cases() {
        let region = case.region(1000);
        let name = || format!("{} of {:?}", case.lines.join("; "), case.operands);
        let Some(fused) = nest_of(&region) else {
            missing.push(name());
            continue;
        };
        // Mixed dtypes are converted to one, whose ops and conversions are seen alone.
        if case.operands.windows(2).any(|pair| pair[0] != pair[1]) {
            continue;
        }
        for target in instruction_sets() {
            let target: &dyn Target = target;
            if let Err(lacks) = crate::compiler::schedule::lower(&fused.function, target) {
                missing.push(format!("{} on {}: {lacks:?}", name(), target.name()));
            }
        }
    }
    assert!(missing.is_empty(), "{} are missing:\n{}", missing.len(), missing.join("\n"));
}

/// The elements that operands of a case are compared on.
fn operands(case: &Case) -> (usize, Vec<Vec<u8>>) {
    match case.operands.as_slice() {
        [x] => {
            let bytes = elements(*x);
            (bytes.len() / x.storage_bytes(), vec![bytes])
        }
        [a, b] => {
            let (left, right) = (few(*a), few(*b));
            let [left, right] = pairs((*a, &left), (*b, &right));
            (left.len() / a.storage_bytes(), vec![left, right])
        }
        all => {
            // The same length, and no two of them in step.
            let size = 1013;
            let of = |(at, dtype): (usize, &DType)| {
                let width = dtype.storage_bytes();
                let bytes = elements(*dtype);
                let count = bytes.len() / width;
                let element = |position: usize| (position * (at + 2) + position / count) % count * width;
                (0..size).flat_map(|position| bytes[element(position)..][..width].to_vec()).collect()
            };
            (size, all.iter().enumerate().map(of).collect())
        }
    }
}

fn check_all(cases: Vec<Case>) {
    let check = |case: &Case| {
        let (size, inputs) = operands(case);
        check(&case.region(size), &inputs).err()
    };
    let wrong: Vec<String> = cases.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn unary_ops_have_the_bits_of_the_kernels() {
    check_all(UnaryOp::ALL.iter().flat_map(|&op| unary_cases(op)).chain(log_cases()).collect());
}

#[test]
fn conversions_have_the_bits_of_the_kernels() {
    check_all(as_type_cases().into_iter().chain(made_cases()).collect());
}

#[test]
fn selections_have_the_bits_of_the_kernels() {
    check_all(select_cases());
}

/// Ops on operands of one dtype.
#[test]
fn binary_ops_have_the_bits_of_the_kernels() {
    let cases = BinaryOp::ALL.iter().flat_map(|&op| binary_cases(op));
    check_all(cases.filter(|case| case.operands[0] == case.operands[1]).collect());
}

#[test]
fn known_powers_have_the_bits_of_the_kernels() {
    check_all(known_power_cases());
}

/// An op that merges dtypes, and one that compares them by their values.
#[test]
fn mixed_operands_have_the_bits_of_the_kernels() {
    let ops = [BinaryOp::MAX, BinaryOp::LESS, BinaryOp::EQUAL, BinaryOp::DIVIDE];
    let cases = ops.into_iter().flat_map(binary_cases);
    check_all(cases.filter(|case| case.operands[0] != case.operands[1]).collect());
}
