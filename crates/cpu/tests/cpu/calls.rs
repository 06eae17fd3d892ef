//! Programs that call the host: functions called at run time, and native forms of blocks.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, Executable, Hooks, HostMemory, NoHooks};
use defn_core::builder::{Arg, BuildControl, BuildElementwise, Ops, Source, Tag, block};
use defn_core::evaluator::Evaluator;
use defn_core::grad::value_and_grad;
use defn_core::op::UserBlockOp;
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::{DType, ErrorKind, Result, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

fn f64s(values: &[f64]) -> Tensor {
    let ty = ty(DType::F64, &[values.len()]);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let buffer = cpu_backend().from_host(&ty, HostMemory::new(Arc::new(bytes))).unwrap();
    Tensor::concrete(ty, buffer)
}

fn read(tensor: &Tensor) -> Vec<f64> {
    let memory = tensor.host_bytes("test").unwrap();
    memory.bytes().chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn traced(
    types: &[TensorType],
    function: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Region> {
    let (tracing, parameters) = Trace::begin(types);
    let results = function(&mut Ops::new(cpu_backend(), Source::Unknown), &parameters)?;
    Ok(tracing.finish("test", &results)?.region)
}

fn compile(region: Region) -> Arc<dyn Executable> {
    Evaluator::new(cpu_backend()).compile(Arc::new(region), Checks::default()).unwrap()
}

/// The function that a host runs on the values of a slot.
type Compute = fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// A host with one function, which implements one block.
struct Host {
    compute: Compute,
    asked: RefCell<Vec<String>>,
}

impl Host {
    fn new(compute: Compute) -> Host {
        Host { compute, asked: RefCell::default() }
    }
}

impl Hooks for Host {
    fn call(&self, slot: usize, _: &[Tensor]) -> Result<()> {
        self.asked.borrow_mut().push(format!("hook {slot}"));
        Ok(())
    }

    fn compute(&self, slot: usize, values: &[Tensor], _: &[TensorType]) -> Result<Vec<Tensor>> {
        self.asked.borrow_mut().push(format!("call {slot}"));
        (self.compute)(values)
    }

    fn native(
        &self,
        block: &UserBlockOp,
        _: &Arc<dyn Backend>,
        values: &[Tensor],
        _: &[TensorType],
    ) -> Result<Option<Vec<Tensor>>> {
        self.asked.borrow_mut().push(format!("{}({})", block.name, block.attributes));
        Ok((&*block.name == "Known").then(|| vec![tripled(&values[0])]))
    }
}

fn tripled(tensor: &Tensor) -> Tensor {
    f64s(&read(tensor).into_iter().map(|value| 3.0 * value).collect::<Vec<_>>())
}

fn reversed(values: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut elements = read(&values[0]);
    elements.reverse();
    Ok(vec![f64s(&elements)])
}

/// `-call(x * 2)`.
fn calling() -> Arc<dyn Executable> {
    let vector = ty(DType::F64, &[3]);
    let region = traced(std::slice::from_ref(&vector), |ops, x| {
        let doubled = ops.multiply(&x[0], 2)?;
        let called = ops.runtime_call(4, std::slice::from_ref(&vector), &[doubled])?.remove(0);
        Ok(vec![ops.negate(called)?])
    });
    compile(region.unwrap())
}

#[test]
fn a_call_gives_what_the_host_makes() {
    let host = Host::new(reversed);
    let results = calling().run(&cpu_backend(), vec![f64s(&[1.0, 2.0, 3.0])], &host).unwrap();
    assert_eq!(read(&results[0]), [-6.0, -4.0, -2.0]);
    assert_eq!(*host.asked.borrow(), ["call 4"]);
}

#[test]
fn a_call_that_gives_something_else_stops_the_run() {
    let run = |compute: Compute| {
        let host = Host::new(compute);
        calling().run(&cpu_backend(), vec![f64s(&[1.0, 2.0, 3.0])], &host).unwrap_err()
    };
    let text = |compute: Compute| run(compute).to_string();
    assert_eq!(text(|_| Ok(Vec::new())), "runtime_call: the function gives 0 values, 1 are required");
    assert_eq!(
        text(|_| Ok(vec![f64s(&[1.0])])),
        "runtime_call: result 0 of the function is f64[1], the output says f64[3]; dtype, shape and names must \
         agree"
    );
    let refused = run(|_| Err(ErrorKind::DivisionByZero { op: "the host's own" }.into()));
    assert!(matches!(refused.kind(), ErrorKind::DivisionByZero { .. }), "{refused}");
    let nobody = calling().run(&cpu_backend(), vec![f64s(&[1.0, 2.0, 3.0])], &NoHooks).unwrap_err();
    assert!(
        nobody.to_string().starts_with("runtime_call: the run has no host function in slot 4"),
        "{nobody}"
    );
}

/// A block that doubles `x` by default, with a hook if `hooked`.
fn blocked(name: &'static str, hooked: bool) -> Region {
    let vector = ty(DType::F64, &[2]);
    traced(std::slice::from_ref(&vector), |ops, x| {
        let tag = || Tag { name: name.into(), attributes: "by=3".into(), slot: 0 };
        let default = |ops: &mut Ops, args: &[Tensor]| {
            let shown = if hooked { ops.hook(7, None, args)?.remove(0) } else { args[0].clone() };
            Ok(vec![Arg::Value(ops.multiply(shown, 2)?)])
        };
        block(ops, tag, x.to_vec(), Some(std::slice::from_ref(&vector)), default)
    })
    .unwrap()
}

#[test]
fn a_block_is_its_default_unless_the_host_knows_it() {
    let run = |region: Region, hooks: &dyn Hooks| {
        read(&compile(region).run(&cpu_backend(), vec![f64s(&[1.0, 2.0])], hooks).unwrap()[0])
    };
    let host = Host::new(reversed);
    assert_eq!(run(blocked("Known", false), &NoHooks), [2.0, 4.0]);
    assert_eq!(run(blocked("Known", false), &host), [3.0, 6.0]);
    assert_eq!(run(blocked("Other", false), &host), [2.0, 4.0]);
    // A default with effects always runs.
    assert_eq!(run(blocked("Known", true), &host), [2.0, 4.0]);
    assert_eq!(*host.asked.borrow(), ["Known(by=3)", "Other(by=3)", "hook 7"]);
}

#[test]
fn a_blocks_gradient_is_its_defaults() {
    let program = value_and_grad(&blocked("Known", false), 0, &[0]).unwrap();
    let host = Host::new(reversed);
    let results = compile(program).run(&cpu_backend(), vec![f64s(&[1.0, 2.0])], &host).unwrap();
    assert_eq!(read(&results[0]), [3.0, 6.0]);
    assert_eq!(read(&results[1]), [2.0, 2.0]);
}

#[test]
fn a_default_of_another_type_is_refused() {
    let vector = ty(DType::F64, &[2]);
    let refused = traced(&[vector], |ops, x| {
        let tag = || Tag { name: "Other".into(), attributes: "".into(), slot: 0 };
        let default = |_: &mut Ops, args: &[Tensor]| Ok(vec![Arg::Value(args[0].clone())]);
        block(ops, tag, x.to_vec(), Some(&[ty(DType::F32, &[2])]), default)
    });
    assert_eq!(
        refused.unwrap_err().to_string(),
        "block: result 0 of the default of Other is f64[2], the output says f32[2]; dtype, shape and names must \
         agree"
    );
}

#[test]
fn a_template_will_do_for_an_input_that_nothing_uses() {
    let vector = ty(DType::F64, &[2]);
    let region = traced(&[vector.clone(), vector.clone()], |ops, x| Ok(vec![ops.negate(&x[1])?]));
    let program = compile(region.unwrap());
    assert_eq!([program.uses(0), program.uses(1)], [false, true]);
    let run = |arguments| program.run(&cpu_backend(), arguments, &NoHooks);
    let template = || Tensor::template(vector.clone());
    let results = run(vec![template(), f64s(&[1.0, 2.0])]).unwrap();
    assert_eq!(read(&results[0]), [-1.0, -2.0]);
    let refused = run(vec![f64s(&[1.0, 2.0]), template()]).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::IsTemplate { .. }), "{refused}");
}
