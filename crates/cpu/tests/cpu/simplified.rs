//! On random graphs, simplified programs give the results of the original ones.

use std::sync::Arc;

use crate::graphs::regions;
use defn_core::backend::{Backend, Buffer, Checks, HostMemory, NoHooks, Operand};
use defn_core::evaluator::run_op;
use defn_core::graph::{Graph, Value};
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::region::Region;
use defn_core::{DType, Number, Result, Scalar, TensorType, pass};
use defn_cpu::cpu_backend;
use proptest::prelude::*;
use smallvec::SmallVec;

type Elements = Vec<Scalar>;

/// Runs a program op by op without simplification. Nested regions are run by the evaluator as usual.
fn run(backend: &Arc<dyn Backend>, region: &Region) -> Result<Vec<Elements>> {
    let mut values: Vec<SmallVec<[Arc<dyn Buffer>; 1]>> = Vec::new();
    for node in region.graph().nodes() {
        let buffers = if let Op::Parameter { index, ty } = &node.op {
            SmallVec::from_elem(input(backend, *index, ty)?, 1)
        } else {
            let operands = node.inputs.iter().map(|&value| Operand {
                ty: region.graph().ty(value).clone(),
                buffer: values[value.node as usize][value.output as usize].clone(),
            });
            run_op(backend, &node.op, operands.collect(), &node.outputs, &NoHooks, Checks::default())?
        };
        values.push(buffers);
    }
    region
        .results()
        .iter()
        .map(|&value| elements(&values[value.node as usize][value.output as usize], region.graph().ty(value)))
        .collect()
}

/// Elements for an input, different for each position.
fn input(backend: &Arc<dyn Backend>, index: usize, ty: &TensorType) -> Result<Arc<dyn Buffer>> {
    let element = |position: usize| {
        let number = (7 * position + 3 * index) % 5;
        Scalar::new(ty.dtype, Number::Int(number as i128)).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    backend.from_host(ty, HostMemory::new(Arc::new(bytes)))
}

fn elements(buffer: &Arc<dyn Buffer>, ty: &TensorType) -> Result<Elements> {
    let mut bytes = vec![0; ty.byte_size()];
    buffer.read(&mut bytes)?;
    Ok(bytes.chunks(ty.dtype.storage_bytes()).map(|bytes| Scalar::from_bytes(ty.dtype, bytes)).collect())
}

/// Equal except for the sign of zero, which `x + 0` loses.
fn agree(a: Scalar, b: Scalar) -> bool {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    match (a.value(), b.value()) {
        (Number::Float(a), Number::Float(b)) => same(a, b),
        (Number::Complex(a), Number::Complex(b)) => same(a.re, b.re) && same(a.im, b.im),
        (a, b) => a == b,
    }
}

#[test]
fn values_beside_the_whole_decomposition_are_its_values() {
    // Nothing needs the vectors of the second matrix.
    let text = "defn-ir 1
(f64[3][3], f64[3][3]) {
  %0 = parameter {index: 0} : f64[3][3]
  %1 = parameter {index: 1} : f64[3][3]
  %2 = svdvals %0 : f64[3]
  %3 = svd %0 {max_iter: 100, full_matrices: false} : f64[3][3], f64[3], f64[3][3]
  %4 = svdvals %1 : f64[3]
  %5 = svd %1 {max_iter: 100, full_matrices: false} : f64[3][3], f64[3], f64[3][3]
  %6 = add %2 %4 : f64[3]
  return %3 %6
}
";
    let simplified = "defn-ir 1
(f64[3][3], f64[3][3]) {
  %0 = parameter {index: 0} : f64[3][3]
  %1 = parameter {index: 1} : f64[3][3]
  %2 = svd %0 {max_iter: 100, full_matrices: false} : f64[3][3], f64[3], f64[3][3]
  %3 = svdvals %1 : f64[3]
  %4 = add %2.1 %3 : f64[3]
  return %2 %4
}
";
    let (backend, region) = (cpu_backend(), Region::from_text(text).unwrap());
    let shared = pass::simplify(&region, &backend).unwrap();
    assert_eq!(shared.to_text(), simplified);
    assert_eq!(run(&backend, &shared).unwrap(), run(&backend, &region).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn simplified_programs_give_the_same(region in regions()) {
        // Random loops may not end.
        prop_assume!(!region.to_text().contains(" = while "));
        let backend = cpu_backend();
        let simple = pass::simplify(&region, &backend).unwrap();
        // Values that no result needs may fail, too.
        let Ok(want) = run(&backend, &pass::dce(&region).unwrap()) else { return Ok(()) };
        let got = run(&backend, &simple).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for (want, got) in want.iter().zip(&got) {
            let same = want.len() == got.len() && want.iter().zip(got).all(|(&a, &b)| agree(a, b));
            prop_assert!(same, "{want:?}\n{got:?}\n{}\n{}", region.to_text(), simple.to_text());
        }
    }
}

/// Any float of a type, most of them normal and of usual sizes.
fn floats(dtype: DType) -> impl Strategy<Value = Scalar> {
    prop_oneof![any::<u64>(), (-1e3..1e3f64).prop_map(f64::to_bits)].prop_map(move |bits| {
        let usual = f64::from_bits(bits);
        if dtype == DType::F32 && usual.abs() > 1e3 {
            Scalar::from_bytes(dtype, &(bits as u32).to_ne_bytes())
        } else {
            Scalar::new(dtype, usual).unwrap()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// The folded bits are those of the backend, which does not compute all of them.
    #[test]
    fn folded_arithmetic_has_the_bits_of_a_run(
        (a, b) in prop_oneof![Just(DType::F32), Just(DType::F64)].prop_flat_map(|dtype| (floats(dtype), floats(dtype))),
        op in prop_oneof![
            prop::sample::select(vec![BinaryOp::ADD, BinaryOp::SUBTRACT, BinaryOp::MULTIPLY, BinaryOp::DIVIDE])
                .prop_map(Op::Binary),
            Just(Op::Unary(UnaryOp::NEGATE)),
            prop::sample::select(vec![DType::F32, DType::F64]).prop_map(|dtype| Op::AsType { dtype }),
        ],
    ) {
        let mut graph = Graph::new();
        let operands: Vec<Value> =
            [a, b].iter().map(|&scalar| graph.push(Op::Constant(scalar), &[]).unwrap()[0]).collect();
        let operands = if let Op::Binary(_) = &op { &operands[..] } else { &operands[..1] };
        let result = graph.push(op, operands).unwrap();
        let region = Region::new(graph, vec![], 0, result);
        let backend = cpu_backend();
        let want = run(&backend, &region).unwrap()[0][0];
        let folded = pass::fold(&region, &backend).unwrap();
        let value = folded.results()[0];
        let Op::Constant(got) = folded.graph().nodes()[value.node as usize].op else {
            panic!("not folded: {}", folded.to_text())
        };
        let is_nan = |scalar: Scalar| scalar.value().to_f64().is_nan();
        prop_assert!(got == want || is_nan(got) && is_nan(want), "{got:?}, not {want:?}: {}", region.to_text());
    }
}

#[test]
fn inputs_have_elements_of_every_type() {
    let backend = cpu_backend();
    for &dtype in DType::ALL {
        let ty = TensorType::new(dtype, defn_core::Shape::new(&[5])).unwrap();
        let read = elements(&input(&backend, 0, &ty).unwrap(), &ty).unwrap();
        assert_eq!(read[0], Scalar::zero(dtype));
        assert_ne!(read[1], read[0]);
    }
}

/// What a compiler for the backend gets of a program.
fn expand(text: &str) -> String {
    let region = Region::from_text(&format!("defn-ir 1\n{text}")).unwrap();
    pass::expand(&region, &cpu_backend()).unwrap().to_text()
}

#[test]
fn large_products_convert_what_they_read() {
    let text = "(f32[8][400], bf16[500][400]) {
        %0 = parameter {index: 0} : f32[8][400]
        %1 = parameter {index: 1} : bf16[500][400]
        %2 = transpose %1 {axes: [1, 0]} : bf16[400][500]
        %3 = as_type %2 : f32[400][500]
        %4 = dot %0 %3 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[8][500]
        return %4
    }";
    let product = "dot %0 %1 {contract_a: [1], batch_a: [], contract_b: [1], batch_b: []} : f32[8][500]";
    assert!(expand(text).contains(product), "{}", expand(text));
    assert!(!expand(text).contains("as_type"), "{}", expand(text));
    // Those of few multiplications stay, and so do operands whose type would become that of the product.
    for (from, sizes) in [("bf16", "[7][40]"), ("f64", "[600][400]"), ("s16", "[600][400]")] {
        let text = format!(
            "(f32[8]{rows}, {from}{sizes}) {{
                %0 = parameter {{index: 0}} : f32[8]{rows}
                %1 = parameter {{index: 1}} : {from}{sizes}
                %2 = as_type %1 : f32{sizes}
                %3 = dot %0 %2 {{contract_a: [1], batch_a: [], contract_b: [1], batch_b: []}} : f32[8]{columns}
                return %3
            }}",
            rows = &sizes[sizes.rfind('[').unwrap()..],
            columns = &sizes[..sizes.rfind('[').unwrap()],
        );
        assert!(expand(&text).contains("as_type"), "{text}");
    }
}
