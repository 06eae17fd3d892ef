//! Every gradient rule, and the edges where slopes are a matter of convention.

use defn_core::builder::{
    BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape, Builder,
};
use defn_core::grad::{value_and_grad, vjp, vjp_region};
use defn_core::graph::{Graph, Value};
use defn_core::op::{
    BinaryOp, Block, CompositeBlock, CustomGradOp, CustomRules, Op, Padding, Starts, UnaryOp,
};
use defn_core::shape::AxisList;
use defn_core::{Axes, DType, ErrorKind, Number, Result, Shape, TensorType};

use super::*;

/// Axes by position.
fn axes(list: &[usize]) -> AxisList {
    let shape = Shape::new(&[1; 6]);
    list.iter().map(|&axis| shape.axis(axis).unwrap()).collect()
}

#[test]
fn unary_ops() {
    for &op in UnaryOp::ALL {
        let points: &[f64] = match op {
            UnaryOp::LOG | UnaryOp::SQRT | UnaryOp::RSQRT => &[0.2, 0.9, 3.5],
            UnaryOp::LOG1P => &[-0.7, 0.3, 2.0],
            UnaryOp::ASIN | UnaryOp::ACOS | UnaryOp::ATANH | UnaryOp::ERF_INV => &[-0.8, -0.1, 0.4, 0.7],
            UnaryOp::ACOSH => &[1.3, 2.0, 5.0],
            UnaryOp::Sign(_)
            | UnaryOp::Rounding(_)
            | UnaryOp::Function(_)
            | UnaryOp::Part(_)
            | UnaryOp::Test(_) => &[-2.3, -0.7, -0.1, 0.2, 0.9, 2.6],
            // Integers only: no gradient.
            UnaryOp::Bits(_) => continue,
        };
        check(op.name(), &[vector(points)], |graph, x| {
            let y = graph.emit_one(Op::Unary(op), x)?;
            if graph.ty(y).dtype.is_complex() { graph.real(y) } else { Ok(y) }
        });
    }
}

#[test]
fn binary_ops_with_broadcasting() {
    let shapes: [(&[usize], &[usize]); 4] =
        [(&[2, 3], &[2, 3]), (&[2, 1, 3], &[4, 1]), (&[], &[3]), (&[1], &[])];
    for &op in BinaryOp::ALL {
        match op {
            BinaryOp::POW | BinaryOp::REMAINDER => {
                let positive = |mut array: Array| {
                    array.values.iter_mut().for_each(|value| *value = value.abs() + 0.2);
                    array
                };
                let inputs = [positive(noise(&[2, 3], 3)), positive(noise(&[3], 4))];
                check(op.name(), &inputs, |graph, x| graph.emit_one(Op::Binary(op), x));
            }
            BinaryOp::Complex => {
                check("complex", &[noise(&[3], 1), noise(&[2, 1], 2)], |graph, x| {
                    let z = graph.emit_one(Op::Binary(op), x)?;
                    let (z, length) = (graph.multiply(z, z)?, graph.abs(z)?);
                    let (re, im) = (graph.real(z)?, graph.imag(z)?);
                    let product = graph.multiply(re, im)?;
                    graph.add(product, length)
                });
            }
            // Integers only: no gradient, or none is defined.
            BinaryOp::QUOTIENT | BinaryOp::Bitwise(_) => {}
            BinaryOp::Arithmetic(_) | BinaryOp::Comparison(_) | BinaryOp::Logical(_) => {
                for (left, right) in shapes {
                    let name = format!("{} {left:?} {right:?}", op.name());
                    let inputs = [noise(left, 1), noise(right, 2)];
                    check(&name, &inputs, |graph, x| graph.emit_one(Op::Binary(op), x));
                }
            }
        }
    }
    check("x^3", &[noise(&[5], 3)], |graph, x| graph.pow(x[0], 3));
    check("x^-1.5", &[vector(&[0.3, 1.7])], |graph, x| graph.pow(x[0], -1.5));
}

#[test]
fn complex_functions_follow_their_derivative() {
    let functions = [
        UnaryOp::EXP,
        UnaryOp::LOG,
        UnaryOp::SIN,
        UnaryOp::TANH,
        UnaryOp::SQRT,
        UnaryOp::SIGMOID,
        UnaryOp::ASIN,
        UnaryOp::ACOSH,
        UnaryOp::CONJUGATE,
        UnaryOp::NEGATE,
    ];
    for op in functions {
        check(op.name(), &[noise(&[3], 1), noise(&[3], 5)], |graph, x| {
            let z = graph.complex(x[0], x[1])?;
            let w = graph.emit_one(Op::Unary(op), &[z])?;
            let scaled = graph.multiply(w, Number::complex(0.3, -0.8))?;
            let (phase, re) = (
                graph.emit_one(Op::Block(Block::Composite(CompositeBlock::Phase)), &[w])?,
                graph.real(scaled)?,
            );
            graph.add(phase, re)
        });
    }
}

#[test]
fn edges_of_elementwise_ops() {
    // Slope 1 at 0, also of the negative zero.
    assert_eq!(gradient(&[0.0, -0.0, -1.0], |g, x| g.abs(x)), [1.0, 1.0, -1.0]);
    // Ties share the gradient.
    let two = [ty(DType::F64, &[3]), ty(DType::F64, &[3])];
    let operands = [vec![1.0, 2.0, 3.0], vec![1.0, 3.0, 2.0]];
    for (op, left, right) in
        [(BinaryOp::MAX, [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]), (BinaryOp::MIN, [0.5, 1.0, 0.0], [0.5, 0.0, 1.0])]
    {
        let found = gradients(&two, &operands, |graph, x| graph.emit_one(Op::Binary(op), x));
        assert_eq!((values(&found[0]), values(&found[1])), (left.to_vec(), right.to_vec()), "{op:?}");
    }
    // At both bounds a clip passes the gradient to the operand; beyond a bound it goes to the bound.
    let types = [ty(DType::F64, &[5]), ty(DType::F64, &[]), ty(DType::F64, &[])];
    let inputs = [vec![-2.0, -1.0, 0.0, 1.0, 2.0], vec![-1.0], vec![1.0]];
    let found = gradients(&types, &inputs, |graph, x| graph.emit_one(Op::Clip, x));
    assert_eq!(values(&found[0]), [0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!((values(&found[1]), values(&found[2])), (vec![1.0], vec![1.0]));
    // x^0 has slope 0, x^1 slope 1 even at 0; log 0 counts as 0.
    assert_eq!(gradient(&[0.0, 2.0], |g, x| g.pow(x, 0)), [0.0, 0.0]);
    assert_eq!(gradient(&[0.0, 2.0], |g, x| g.pow(x, 1)), [1.0, 1.0]);
    assert_eq!(gradient(&[0.0, -2.0], |g, x| g.pow(x, 2)), [0.0, -4.0]);
    let two = [ty(DType::F64, &[2]), ty(DType::F64, &[2])];
    let found = gradients(&two, &[vec![0.0, 0.0], vec![0.0, 2.0]], |graph, x| graph.pow(x[0], x[1]));
    assert_eq!((values(&found[0]), values(&found[1])), (vec![0.0, 0.0], vec![0.0, 0.0]));
    // Stable for large arguments, where e^-x overflows.
    assert_eq!(gradient(&[-1000.0, 1000.0], |g, x| g.sigmoid(x)), [0.0, 0.0]);
    assert_eq!(gradient(&[0.0], |g, x| g.sqrt(x)), [f64::INFINITY]);
    // A mask does not suppress infinities of the masked branch: 0 times infinity.
    let masked = gradient(&[0.0], |g, x| {
        let (positive, root) = (g.greater(x, 0)?, g.sqrt(x)?);
        let zero = g.constant(DType::F64, 0)?;
        g.emit_one(Op::Select, &[positive, root, zero])
    });
    assert!(masked[0].is_nan());
    // The slope of abs at the complex zero is 0 in all directions.
    let at_zero = gradient(&[0.0], |g, x| {
        let z = g.complex(x, x)?;
        g.abs(z)
    });
    assert_eq!(at_zero, [0.0]);
}

#[test]
fn cuts_and_casts() {
    // Casts to integers pass the gradient; steps do not.
    let cast = gradient(&[1.5, -2.5], |g, x| {
        let whole = g.as_type(x, DType::S32)?;
        g.multiply(whole, 3)
    });
    assert_eq!(cast, [3.0, 3.0]);
    assert_eq!(gradient(&[1.5, -2.5], |g, x| g.floor(x)), [0.0, 0.0]);
    // The gradient is cut for the value: x + stop_grad(x) has slope 1.
    let cut = gradient(&[1.5], |g, x| {
        let stopped = g.stop_grad(x)?;
        g.add(x, stopped)
    });
    assert_eq!(cut, [1.0]);
    let marked = gradient(&[1.5], |g, x| {
        let marked = g.mark(x, "here".into())?;
        let seen = g.hook(0, None, &[marked])?;
        g.multiply(seen[0], 2)
    });
    assert_eq!(marked, [2.0]);
    assert_eq!(gradient(&[0.5], |g, x| g.add(x, x)), [2.0]);
    assert_eq!(gradient(&[0.5, 2.0], |g, x| g.multiply(x, x)), [1.0, 4.0]);
}

#[test]
fn dtypes_are_the_variables() {
    for (dtype, want) in [
        (DType::U8, DType::F32),
        (DType::S64, DType::F32),
        (DType::F16, DType::F16),
        (DType::BF16, DType::BF16),
        (DType::F32, DType::F32),
        (DType::F64, DType::F64),
    ] {
        let found = gradients(&[ty(dtype, &[2])], &[vec![1.0, 2.0]], |graph, x| graph.multiply(x[0], x[0]));
        assert_eq!((found[0].ty().dtype, values(&found[0])), (want, vec![2.0, 4.0]), "{dtype}");
    }
    let two = [ty(DType::F64, &[2]), ty(DType::F64, &[3])];
    let unused = gradients(&two, &[vec![1.0; 2], vec![1.0; 3]], |graph, x| graph.exp(x[0]));
    assert_eq!((unused[1].ty().to_string(), values(&unused[1])), ("f64[3]".to_owned(), vec![0.0; 3]));
    // The gradient of a real variable is the real part of the complex one.
    let found = gradients(&[ty(DType::F32, &[1])], &[vec![0.5]], |graph, x| {
        let turned = graph.multiply(x[0], Number::complex(2.0, 3.0))?;
        graph.real(turned)
    });
    assert_eq!((found[0].ty().dtype, values(&found[0])), (DType::F32, vec![2.0]));
}

#[test]
fn names_stay_with_the_variable() {
    let named = |sizes: &[usize], names: &[Option<&str>]| {
        TensorType::new(DType::F64, Shape::named(sizes, names).unwrap()).unwrap()
    };
    let types = [named(&[2, 3], &[Some("row"), Some("col")]), named(&[3, 2], &[None, Some("out")])];
    let inputs = [noise(&[2, 3], 1).values, noise(&[3, 2], 2).values];
    let found = gradients(&types, &inputs, |graph, x| {
        let y = graph.dot(x[0], x[1])?;
        let y = graph.tanh(y)?;
        graph.sum(y, "out", true)
    });
    assert_eq!(found[0].ty().to_string(), "f64[row: 2][col: 3]");
    assert_eq!(found[1].ty().to_string(), "f64[3][out: 2]");
}

#[test]
fn shape_ops() {
    let x = || noise(&[2, 3, 4], 1);
    check("reshape", &[x()], |g, x| g.emit_one(Op::Reshape { shape: Shape::new(&[6, 4]) }, x));
    check("squeeze", &[noise(&[1, 3, 1], 1)], |g, x| g.squeeze(x[0], Axes::All));
    check("transpose", &[x()], |g, x| g.transpose(x[0], [1, 2, 0]));
    check("reverse", &[x()], |g, x| g.reverse(x[0], [0, 2]));
    check("concatenate", &[x(), noise(&[2, 1, 4], 2), x()], |g, x| g.concatenate(x, 1));
    check("stack", &[x(), noise(&[2, 3, 4], 2)], |g, x| g.stack(x, 1, None));
    for targets in [[0, 1], [1, 2], [0, 2]] {
        check("broadcast", &[noise(&[3, 1], 1)], |g, x| {
            let mut sizes = [3, 3, 3];
            sizes[targets[1]] = 5;
            g.emit_one(Op::Broadcast { shape: Shape::new(&sizes), axes: axes(&targets) }, x)
        });
    }
    let padding = |(low, high, interior)| Padding { low, high, interior };
    for config in [
        [(1, 2, 0), (0, 0, 3), (2, 0, 1)],
        [(-1, 2, 0), (0, -2, 1), (-2, -1, 2)],
        [(-1, -1, 0), (0, 0, 0), (0, 0, 0)],
    ] {
        check(&format!("pad {config:?}"), &[x(), scalar(0.7)], |g, x| {
            g.emit_one(Op::Pad { config: config.into_iter().map(padding).collect() }, x)
        });
    }
}

fn slice(g: &mut Graph, x: Value, starts: &[usize], lengths: &[usize], strides: &[usize]) -> Result<Value> {
    let starts = Starts::Static(starts.iter().copied().collect());
    let (lengths, strides) = (lengths.iter().copied().collect(), strides.iter().copied().collect());
    g.emit_one(Op::Slice { starts, lengths, strides }, &[x])
}

#[test]
fn slices() {
    let x = || noise(&[5, 4], 1);
    check("slice", &[x()], |g, x| slice(g, x[0], &[1, 0], &[3, 4], &[1, 1]));
    check("slice with strides", &[x()], |g, x| slice(g, x[0], &[1, 1], &[4, 3], &[2, 3]));
    check("slices that overlap", &[x()], |g, x| {
        let a = slice(g, x[0], &[0, 0], &[3, 4], &[1, 1])?;
        let b = slice(g, x[0], &[2, 0], &[3, 4], &[1, 1])?;
        let c = slice(g, x[0], &[0, 0], &[5, 4], &[2, 1])?;
        let ab = g.multiply(a, b)?;
        g.multiply(ab, c)
    });
    for start in [-3, 0, 1, 9] {
        check(&format!("dynamic slices at {start}"), &[x()], |g, x| {
            let (row, column) = (g.constant(DType::S32, start)?, g.constant(DType::U8, 1)?);
            let window = |strides: &[usize]| Op::Slice {
                starts: Starts::Dynamic,
                lengths: [3, 2].into_iter().collect(),
                strides: strides.iter().copied().collect(),
            };
            let a = g.emit_one(window(&[1, 1]), &[x[0], row, column])?;
            let b = g.emit_one(window(&[1, 1]), &[x[0], column, column])?;
            let c = g.emit_one(window(&[2, 1]), &[x[0], row, column])?;
            let (ab, c) = (g.multiply(a, b)?, g.sum(c, Axes::All, false)?);
            g.multiply(ab, c)
        });
        check(&format!("put_slice at {start}"), &[x(), noise(&[2, 3], 2)], |g, x| {
            let (row, column) = (g.constant(DType::S32, start)?, g.constant(DType::U8, 1)?);
            g.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &[x[0], x[1], row, column])
        });
    }
    check("put_slice", &[x(), noise(&[2, 3], 2)], |g, x| {
        g.emit_one(Op::PutSlice { starts: Starts::Static([2, 1].into_iter().collect()) }, x)
    });
}

#[test]
fn reductions() {
    for list in [&[][..], &[0], &[1], &[0, 2], &[0, 1, 2]] {
        for keep in [false, true] {
            let some = || Axes::from(axes(list));
            let x = || [noise(&[2, 3, 4], 1)];
            check(&format!("sum {list:?}"), &x(), |g, x| g.sum(x[0], some(), keep));
            check(&format!("mean {list:?}"), &x(), |g, x| g.mean(x[0], some(), keep));
            check(&format!("product {list:?}"), &x(), |g, x| g.product(x[0], some(), keep));
            check(&format!("reduce_max {list:?}"), &x(), |g, x| g.reduce_max(x[0], some(), keep));
            check(&format!("reduce_min {list:?}"), &x(), |g, x| g.reduce_min(x[0], some(), keep));
            check(&format!("variance {list:?}"), &x(), |g, x| g.variance(x[0], some(), keep, 0));
            check(&format!("logsumexp {list:?}"), &x(), |g, x| {
                let block = CompositeBlock::Logsumexp { axes: axes(list), keep_axes: keep };
                g.emit_one(Op::Block(Block::Composite(block)), x)
            });
        }
    }
    // Ties share the gradient; zeros in products are exact.
    assert_eq!(gradient(&[1.0, 3.0, 3.0], |g, x| g.reduce_max(x, Axes::All, false)), [0.0, 0.5, 0.5]);
    assert_eq!(
        gradient(&[1.0, 1.0, 2.0, 3.0], |g, x| g.reduce_min(x, Axes::All, true)),
        [0.5, 0.5, 0.0, 0.0]
    );
    assert!(gradient(&[f64::NAN, 1.0], |g, x| g.reduce_max(x, Axes::All, false))[0].is_nan());
    assert_eq!(gradient(&[2.0, 0.0, 5.0], |g, x| g.product(x, Axes::All, false)), [0.0, 10.0, 0.0]);
    assert_eq!(gradient(&[2.0, 0.0, 0.0], |g, x| g.product(x, Axes::All, false)), [0.0; 3]);
    assert_eq!(gradient(&[7.0], |g, x| g.product(x, Axes::All, false)), [1.0]);
    assert!(gradient(&[], |g, x| g.product(x, Axes::All, false)).is_empty());
    assert!(gradient(&[], |g, x| g.sum(x, Axes::All, false)).is_empty());
    let long: Vec<f64> = (0..37).map(|i| 1.0 + f64::from(i) / 40.0).collect();
    check("a long product", &[vector(&long)], |g, x| {
        let scaled = g.multiply(x[0], 0.75)?;
        g.product(scaled, Axes::All, false)
    });
}

#[test]
fn dots() {
    type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], &'a [usize], usize);
    let cases: &[Case<'_>] = &[
        (&[2, 3], &[3, 4], &[1], &[0], 0),
        (&[3, 2], &[4, 3], &[0], &[1], 0),
        (&[3], &[3], &[0], &[0], 0),
        (&[2], &[3], &[], &[], 0),
        (&[2, 3, 4], &[4, 5, 3], &[1, 2], &[2, 0], 0),
        (&[2, 3, 4], &[4, 5, 3], &[2, 1], &[0, 2], 0),
        (&[2, 3, 4], &[2, 4, 5], &[2], &[1], 1),
        (&[2, 4, 3], &[2, 5, 4], &[1], &[2], 1),
        (&[2, 3, 4, 5], &[2, 3, 5, 4], &[3, 2], &[2, 3], 2),
        (&[2, 3], &[2, 3], &[], &[], 2),
        (&[2, 3], &[4, 0], &[], &[], 0),
    ];
    for &(a, b, contract_a, contract_b, batch) in cases {
        let name = format!("dot {a:?} {contract_a:?} {b:?} {contract_b:?} {batch}");
        check(&name, &[noise(a, 1), noise(b, 2)], |graph, x| {
            let batch: Vec<usize> = (0..batch).collect();
            let op = Op::Dot {
                contract_a: axes(contract_a),
                batch_a: axes(&batch),
                contract_b: axes(contract_b),
                batch_b: axes(&batch),
            };
            graph.emit_one(op, x)
        });
    }
}

#[test]
fn selects() {
    check("select", &[noise(&[2, 3], 1), noise(&[3], 2)], |g, x| {
        let pred = g.greater(x[0], x[1])?;
        g.emit_one(Op::Select, &[pred, x[1], x[0]])
    });
    check("select by a scalar", &[noise(&[2, 1], 1), noise(&[3], 2)], |g, x| {
        let pred = g.constant(DType::U8, 1)?;
        g.emit_one(Op::Select, &[pred, x[0], x[1]])
    });
    check("clip", &[noise(&[9], 1), scalar(-0.45), scalar(0.52)], |g, x| g.emit_one(Op::Clip, x));
}

#[test]
fn refusals_say_what_to_do() {
    let types = [ty(DType::S32, &[2])];
    let program = region(&types, |graph, x| Ok(vec![graph.quotient(x[0], 2)?]));
    let error = value_and_grad(&program, 0, &[0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoGradient { op: "quotient", .. }), "{error}");
    // Without a variable among the operands there is no error.
    let types = [ty(DType::S32, &[2]), ty(DType::F64, &[2])];
    let program = region(&types, |graph, x| {
        let whole = graph.quotient(x[0], 2)?;
        Ok(vec![graph.multiply(whole, x[1])?])
    });
    let both = value_and_grad(&program, 0, &[1]).unwrap();
    assert_eq!(values(&run(&both, &[vec![5.0, 7.0], vec![1.0, 1.0]])[1]), [2.0, 3.0]);
}

#[test]
fn custom_rules_replace_the_derivative() {
    let x = ty(DType::F64, &[3]);
    let multiply = |graph: &mut Graph, inputs: &[Value]| Ok(vec![graph.multiply(inputs[0], inputs[1])?]);
    let rule = closed(std::slice::from_ref(&x), std::slice::from_ref(&x), multiply);
    let found = gradient(&[0.5, 1.0, -2.0], |graph, x| {
        let value = graph.exp(x)?;
        let op = CustomGradOp { values: 1, inputs: 1, rules: CustomRules::Reverse(rule) };
        // The rule captures x and declares that exp(x) has the slope x.
        let outputs = graph.emit(Op::CustomGrad(op), &[value, x, x])?;
        graph.multiply(outputs[0], 2)
    });
    assert_eq!(found, [1.0, 2.0, -4.0]);
}

#[test]
fn recomputed_regions_have_derivatives_of_their_own() {
    let x = ty(DType::F64, &[3]);
    let exp_of_sin = |graph: &mut Graph, inputs: &[Value]| {
        let inner = graph.sin(inputs[0])?;
        Ok(vec![graph.exp(inner)?, inner])
    };
    let region = closed(std::slice::from_ref(&x), &[], exp_of_sin);
    for (kept, offloaded) in [(0, 0), (1, 0), (1, 1)] {
        check("recompute", &[noise(&[3], 1)], |graph, x| {
            let values = exp_of_sin(graph, x)?;
            let rules = CustomRules::Recompute { region: region.clone(), kept, offloaded };
            let results = graph.emit_custom_grad(rules, &values, x, &[])?;
            graph.multiply(results[0], x[0])
        });
    }
    // A kept value is not computed again, whatever is inside of the region.
    let other = closed(std::slice::from_ref(&x), &[], |graph, inputs| {
        let inner = graph.negate(inputs[0])?;
        Ok(vec![graph.exp(inner)?, inner])
    });
    let found = gradient(&[0.5, 1.0, -2.0], |graph, x| {
        let zero = graph.subtract(x, x)?;
        let values = [graph.exp(x)?, zero];
        let rules = CustomRules::Recompute { region: other, kept: 1, offloaded: 0 };
        Ok(graph.emit_custom_grad(rules, &values, &[x], &[])?[0])
    });
    // The slope of exp(-x) at x is -exp(inner), with the kept zero for inner.
    assert_eq!(found, [-1.0; 3]);
}

#[test]
fn third_derivatives() {
    let mut program = region(&[ty(DType::F64, &[])], |graph, x| Ok(vec![graph.tanh(x[0])?]));
    for order in 0..3 {
        program = value_and_grad(&program, order, &[0]).unwrap();
    }
    let found: Vec<f64> = run(&program, &[vec![0.4]]).iter().map(|tensor| values(tensor)[0]).collect();
    let y = 0.4f64.tanh();
    let slope = 1.0 - y * y;
    let want = [y, slope, -2.0 * y * slope, (6.0 * y * y - 2.0) * slope];
    assert!(found.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12), "{found:?}, {want:?}");
}

#[test]
fn pullbacks_are_regions_of_their_own() {
    let types = [ty(DType::F64, &[2]), ty(DType::F64, &[])];
    let program = region(&types, |graph, x| Ok(vec![graph.multiply(x[0], x[1])?, graph.sin(x[1])?]));
    let pulled = vjp_region(&program, &[1, 0]).unwrap();
    assert_eq!(pulled.inputs().len(), 4);
    let found = run(&pulled, &[vec![2.0, 3.0], vec![0.5], vec![1.0, 10.0], vec![100.0]]);
    assert!((values(&found[0])[0] - (32.0 + 100.0 * 0.5f64.cos())).abs() < 1e-12);
    assert_eq!(values(&found[1]), [0.5, 5.0]);

    // The same on an open graph, also with respect to an intermediate value.
    let program = region(&types, |graph, x| {
        let middle = graph.multiply(x[0], x[1])?;
        let y = graph.exp(middle)?;
        let g = graph.full(Shape::new(&[2]), DType::F32, 1)?;
        Ok(vjp(graph, &[y], &[g], &[middle, x[0]])?.into_iter().flatten().collect())
    });
    let found = run(&program, &[vec![2.0, 3.0], vec![0.5]]);
    assert_eq!(values(&found[0]), [1f64.exp(), 1.5f64.exp()]);
    assert_eq!(values(&found[1]), [1f64.exp() * 0.5, 1.5f64.exp() * 0.5]);
}
