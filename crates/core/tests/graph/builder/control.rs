use std::cell::Cell;
use std::sync::Arc;

use defn_core::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, Builder, Ops, Rules, Source, Thunk, cond,
    custom_derivative, while_,
};
use defn_core::graph::Graph;
use defn_core::location::Location;
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::{Axes, DType, Error, Number, Result, Tensor};

use super::{check, ty};

mod nowhere {
    //! A backend for functions that are only traced: nothing may run on it.
    use std::any::Any;
    use std::sync::Arc;

    use defn_core::backend::{Backend, Buffer, Buffers, HostMemory, Operand};
    use defn_core::error::{ErrorKind, Result};
    use defn_core::op::{Block, Op};
    use defn_core::shape::TensorType;
    use smallvec::SmallVec;

    #[derive(Debug)]
    pub struct Nowhere;

    impl Backend for Nowhere {
        fn name(&self) -> &str {
            "nowhere"
        }

        fn from_host(&self, _: &TensorType, _: HostMemory) -> Result<Arc<dyn Buffer>> {
            Err(refused())
        }

        fn run(&self, _: &Op, _: SmallVec<[Operand; 3]>, _: &[TensorType]) -> Result<Buffers> {
            Err(refused())
        }

        fn has_native(&self, _: &Block) -> bool {
            false
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn refused() -> defn_core::Error {
        let (op, backend) = ("run", "nowhere".to_owned());
        ErrorKind::BackendRefused { op, backend, why: "it only traces".to_owned() }.into()
    }
}

fn ops() -> Ops {
    Ops::new(Arc::new(nowhere::Nowhere), Source::Unknown)
}

/// Traces a function on tensors of these types.
fn trace(
    types: &[&str],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Region> {
    let types: Vec<_> = types.iter().map(|text| ty(text)).collect();
    let (tracing, parameters) = Trace::begin(&types);
    let results = function(&mut ops(), &parameters)?;
    Ok(tracing.finish("test", &results)?.region)
}

fn result_types(region: &Region) -> String {
    region.result_types().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn text(result: Result<Region>) -> String {
    result.map_or_else(|error: Error| error.to_string(), |region| result_types(&region))
}

fn thunk<'a, A: Into<Arg<Tensor>>>(function: impl FnOnce(&mut Ops) -> Result<A> + 'a) -> Thunk<'a> {
    Box::new(move |ops| Ok(vec![function(ops)?.into()]))
}

/// The regions of the only control node.
fn regions(region: &Region) -> Vec<Arc<Region>> {
    let nodes = region.graph().nodes();
    let found: Vec<_> = nodes.iter().filter(|node| !node.op.regions().is_empty()).collect();
    assert_eq!(found.len(), 1, "one control node");
    found[0].op.regions().into_iter().cloned().collect()
}

#[test]
fn branches_merge_in_dtype_shape_and_names() {
    let of = |types: &[&str]| {
        text(trace(types, |ops, v| {
            let branch = |at: usize| {
                let x = v[at].clone();
                thunk(move |_| Ok(x))
            };
            cond(ops, vec![(v[0].clone(), branch(1))], branch(2))
        }))
    };
    assert_eq!(of(&["u8", "f32[x: 2]", "f32[2]"]), "f32[x: 2]");
    assert_eq!(of(&["f32", "u8[2][1]", "s8[y: 3]"]), "s16[2][y: 3]");
    assert_eq!(
        of(&["u8[1]", "f32", "f32"]),
        "cond: the predicate is u8[1], it must be a scalar; reduce it with all or any"
    );
    assert!(of(&["u8", "f32[2]", "f32[3]"]).starts_with("cond: shapes [2] and [3] do not broadcast"));
}

#[test]
fn numbers_give_way_in_branches() {
    let of = |types: &[&str], number: Number| {
        text(trace(types, |ops, v| {
            let x = v[1].clone();
            cond(ops, vec![(v[0].clone(), thunk(move |_| Ok(x)))], thunk(move |_| Ok(number)))
        }))
    };
    assert_eq!(of(&["u8", "f16[2]"], Number::Int(0)), "f16[2]");
    assert_eq!(of(&["u8", "u8[2]"], Number::Float(0.5)), "f32[2]");
    let both = trace(&["u8"], |ops, v| cond(ops, vec![(v[0].clone(), thunk(|_| Ok(1)))], thunk(|_| Ok(2.5))));
    assert_eq!(text(both), "f32");
}

#[test]
fn branches_must_give_equally_many() {
    let region =
        trace(&["u8"], |ops, v| cond(ops, vec![(v[0].clone(), thunk(|_| Ok(1)))], Box::new(|_| Ok(vec![]))));
    assert_eq!(
        text(region),
        "cond: branch 1 gives 0 values, the first gives 1; branches must have the same structure"
    );
}

#[test]
fn branches_share_one_list_of_captures() {
    let region = trace(&["u8", "f32", "f32"], |ops, v| {
        let (a, b) = (v[1].clone(), v[2].clone());
        let first = thunk(|ops| ops.subtract(&a, &b));
        let second = thunk(|ops| ops.subtract(&b, &a));
        cond(ops, vec![(v[0].clone(), first)], second)
    })
    .unwrap();
    let branches = regions(&region);
    assert_eq!(branches.len(), 2);
    for branch in &branches {
        assert_eq!((branch.parameter_count(), branch.capture_count()), (0, 2));
    }
    // The branches subtract the same two captures in opposite order.
    assert_ne!(branches[0], branches[1]);
    let operands = |branch: &Region| {
        let graph = branch.graph();
        let node = graph.node(branch.results()[0]);
        node.inputs
            .iter()
            .map(|&input| {
                let Op::Parameter { index, .. } = &graph.node(input).op else {
                    panic!("{:?} is no parameter", graph.node(input).op)
                };
                *index
            })
            .collect::<Vec<_>>()
    };
    let (first, mut second) = (operands(&branches[0]), operands(&branches[1]));
    second.reverse();
    assert_eq!(first, second);
}

#[test]
fn without_a_clause_the_branch_is_put_in_place() {
    let region = trace(&["f32[2]"], |ops, v| {
        let x = v[0].clone();
        cond(ops, vec![], thunk(move |ops| ops.exp(&x)))
    })
    .unwrap();
    assert_eq!(result_types(&region), "f32[2]");
    assert!(region.graph().nodes().iter().all(|node| node.op.regions().is_empty()));
}

#[test]
fn loops_keep_the_types_of_their_state() {
    let of = |types: &[&str], number: Number| {
        text(trace(types, |ops, v| {
            let outer = v[1].clone();
            while_(
                ops,
                vec![v[0].clone()],
                None,
                |ops, s| Ok(ops.less(&s[0], 10)?.into()),
                |ops, s| {
                    let next = ops.add(&s[0], &outer)?;
                    Ok(vec![ops.add(next, number)?.into()])
                },
            )
        }))
    };
    assert_eq!(of(&["f32", "f32"], Number::Int(1)), "f32");
    assert_eq!(of(&["s32", "u8"], Number::Int(1)), "s32");
    let floats = of(&["s32", "u8"], Number::Float(0.5));
    assert!(floats.contains("state 0 is f32 after the body and s32 before"), "{floats}");
    assert!(floats.contains("start from a float"), "{floats}");
    let axes = of(&["f32", "f32[2]"], Number::Int(1));
    assert!(axes.contains("state 0 is f32[2] after the body and f32 before"), "{axes}");
}

#[test]
fn numbers_and_missing_names_give_way_in_loops() {
    let region = trace(&["f16[x: 2]", "f64"], |ops, v| {
        while_(
            ops,
            v.to_vec(),
            Some(3),
            |_, _| Ok(Number::Int(1).into()),
            |ops, s| {
                let plain = ops.iota(s[0].ty().shape.without_names(), DType::F16, None)?;
                Ok(vec![plain.into(), Number::Float(0.1).into()])
            },
        )
    });
    assert_eq!(text(region), "f16[x: 2], f64");
}

#[test]
fn loops_refuse_other_structures_and_predicates() {
    let of = |count: usize, predicate: &str| {
        text(trace(&["f32", predicate], |ops, v| {
            let predicate = v[1].clone();
            let body = move |_: &mut Ops, s: &[Tensor]| Ok(vec![s[0].clone().into(); count]);
            while_(ops, vec![v[0].clone()], None, move |_, _| Ok(predicate.clone().into()), body)
        }))
    };
    assert_eq!(of(1, "u8"), "f32");
    assert!(of(2, "u8").contains("the body gives 2 values, 1 are required"));
    assert!(
        of(1, "u8[2]").contains("the predicate is u8[2], it must be a scalar; reduce it with all or any")
    );
}

#[test]
fn loops_share_captures_between_condition_and_body() {
    let region = trace(&["f32", "f32", "f32"], |ops, v| {
        let (limit, step) = (v[1].clone(), v[2].clone());
        while_(
            ops,
            vec![v[0].clone()],
            None,
            |ops, s| Ok(ops.less(&s[0], &limit)?.into()),
            |ops, s| {
                let next = ops.add(&s[0], &step)?;
                Ok(vec![ops.min(next, &limit)?.into()])
            },
        )
    })
    .unwrap();
    for region in regions(&region) {
        assert_eq!((region.parameter_count(), region.capture_count()), (1, 2));
    }
}

#[test]
fn regions_nest_and_capture_through_each_other() {
    let region = trace(&["u8", "f32"], |ops, v| {
        let (outer, predicate) = (v[1].clone(), v[0].clone());
        let body = |ops: &mut Ops, s: &[Tensor]| {
            let (x, outer) = (s[0].clone(), outer.clone());
            let inner = cond(
                ops,
                vec![(predicate.clone(), thunk(move |ops| ops.add(&x, &outer)))],
                thunk(|_| Ok(Number::Float(0.0))),
            )?;
            Ok(inner.into_iter().map(Into::into).collect())
        };
        while_(ops, vec![v[1].clone()], Some(2), |_, _| Ok(Number::Int(1).into()), body)
    })
    .unwrap();
    assert_eq!(result_types(&region), "f32");
}

#[test]
fn custom_gradients_see_float_cotangents_without_names() {
    let seen = Cell::new(String::new());
    let of = |types: &[&str], results: usize| {
        text(trace(types, |ops, v| {
            let rule = Rules::Reverse(Box::new(|_, g| {
                seen.set(g.iter().map(|g| g.ty().to_string()).collect());
                Ok(vec![g[0].clone().into(); results])
            }));
            custom_derivative(ops, vec![v[0].clone()], vec![v[1].clone()], rule)
        }))
    };
    assert_eq!(of(&["f16[x: 2]", "f16[x: 2]"], 1), "f16[x: 2]");
    assert_eq!(seen.take(), "f32[2]");
    assert_eq!(of(&["f64", "f64"], 1), "f64");
    assert_eq!(seen.take(), "f64");
    assert_eq!(of(&["f32", "f32"], 2), "custom_grad: the gradient function gives 2 values, 1 are required");
    assert_eq!(
        of(&["f32[2]", "f32[3]"], 1),
        "custom_grad: shapes f32[2] and f32[3] must be equal, axis 0 has sizes 2 and 3"
    );
    // A scalar cotangent is broadcast to every element.
    assert_eq!(of(&["f32", "f32[3]"], 1), "f32");
}

#[test]
fn marks_and_hooks_pass_values_through() {
    assert_eq!(check(&["f32[x: 2]"], |b, v| b.stop_grad(v[0])), "f32[x: 2]");
    assert_eq!(check(&["f32[x: 2]"], |b, v| b.mark(v[0], "here".into())), "f32[x: 2]");
    let mut graph = Graph::new();
    let values = [graph.parameter(0, ty("u8[2]")), graph.parameter(1, ty("c64"))];
    let shown = graph.hook(0, None, &values).unwrap();
    assert_eq!(shown.iter().map(|&v| graph.ty(v).to_string()).collect::<Vec<_>>(), ["u8[2]", "c64"]);
}

#[test]
fn inlining_replays_nodes_with_their_locations() {
    let here = Location { file: "model.py".into(), line: 7 };
    let mut inner = Graph::new();
    let x = inner.parameter(0, ty("f32[2]"));
    inner.set_location(Some(here.clone()));
    let y = inner.exp(x).unwrap();
    let y = inner.sum(y, Axes::All, false).unwrap();
    let region = Region::new(inner, vec![ty("f32[2]")], 1, [y].into_iter().collect());

    let mut outer = Graph::new();
    let argument = outer.parameter(0, ty("f32[2]"));
    let argument = outer.negate(argument).unwrap();
    let results = outer.inline(&region, &[argument]).unwrap();
    assert_eq!(Builder::ty(&outer, &results[0]).to_string(), "f32");
    assert_eq!(outer.node(results[0]).location, Some(here));
    let after = outer.negate(results[0]).unwrap();
    assert_eq!(outer.node(after).location, None);
}
