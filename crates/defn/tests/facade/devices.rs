//! The same programs on devices.

use std::sync::Arc;

use defn::mesh::{AllReduceOp, Mesh, Spec};
use defn::pjrt::{self, Attribute, ClientSpec, PjrtBackend, Plugin};
use defn::prelude::*;
use defn::{ErrorClass, compiler};

use crate::wheel;

fn device(id: i64) -> Arc<PjrtBackend> {
    let spec = ClientSpec::new(wheel::file("xla_cpu_pjrt.so")).with("cpu_device_count", Attribute::Int(2));
    pjrt::register("host", spec).unwrap();
    pjrt::device("host", id).unwrap()
}

#[test]
fn a_plugin_is_loaded_by_its_path() {
    let plugin = Plugin::load(wheel::file("xla_cpu_pjrt.so")).unwrap();
    assert!(plugin.attributes().unwrap().iter().any(|(name, _)| name == "xla_version"));
}

#[test]
fn a_training_step_runs_on_a_device_and_donates_its_parameters() {
    let device = device(1);
    let backend = pjrt::backend(&device);
    let step = jit(|((slope, offset), x, y): ((Expr, Expr), Expr, Expr)| {
        let at = (slope, offset);
        let (loss, gradient) =
            value_and_grad(&at, |(slope, offset)| (slope * &x + offset - &y).pow(2).mean(Axes::All, false));
        (each([&at, &gradient], |[value, gradient]| value - 0.1 * gradient), loss)
    })
    .with_compiler(pjrt::compiler(&device).unwrap())
    .donating(&[0, 1]);
    let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[4]).unwrap().backend_transfer(&backend).unwrap();
    let y = Tensor::from_slice(&[1f32, 3.0, 5.0, 7.0], &[4]).unwrap().backend_transfer(&backend).unwrap();
    let zero = || Tensor::scalar(0.0).unwrap().backend_transfer(&backend).unwrap();
    let first = (zero(), zero());
    let mut line = first.clone();
    for _ in 0..300 {
        line = step.call((line, x.clone(), y.clone())).unwrap().0;
    }
    assert!((line.0.item::<f32>().unwrap() - 2.0).abs() < 1e-3);
    assert!((line.1.item::<f32>().unwrap() - 1.0).abs() < 1e-3);
    assert_eq!(line.0.core().backend().unwrap().device_name(), "pjrt<host:1>");
    let error = step.call((first, x, y)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Backend);
    assert!(
        error.to_string().starts_with(
            "run: argument 0 is f32 and its memory was donated at crates/defn/tests/facade/devices.rs:"
        ),
        "{error}"
    );
}

#[test]
fn ops_run_where_their_operands_are() {
    let backend = pjrt::backend(&device(0));
    let x = Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap().backend_copy(&backend).unwrap();
    let y = (x.add(1).unwrap()).multiply(&x).unwrap();
    assert_eq!(y.core().backend().unwrap().device_name(), "pjrt<host:0>");
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 6.0]);
}

#[test]
fn the_compiler_has_a_name() {
    device(0);
    let double = jit(|x: Expr| &x + &x).with_compiler(compiler("pjrt").unwrap());
    let y = double.call(Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0]);
}

#[test]
fn two_devices_train_together() {
    let grid = Mesh::new(vec![("data".into(), 2)]).unwrap();
    let mesh = pjrt::mesh(grid.clone(), &[device(0), device(1)]).unwrap();
    let groups = grid.device_groups("test", &["data".into()]).unwrap();
    let mean = |x: Expr| x.all_reduce(AllReduceOp::Sum, &groups) / 2.0;
    let step = jit(|(w, x, y): (Expr, Expr, Expr)| {
        let (loss, slope) = value_and_grad(&w, |w| (w * &x - &y).pow(2).mean(Axes::All, false));
        (&w - 0.1 * mean(slope), mean(loss), Expr::mesh_index(&groups))
    })
    .with_compiler(pjrt::mesh_compiler(&mesh).unwrap());
    let (whole, rows) = (Spec::default(), Spec(vec![vec!["data".into()]]));
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    let y = x.multiply(3.0).unwrap();
    let (x, y) = (pjrt::lay(&x, &mesh, &rows).unwrap(), pjrt::lay(&y, &mesh, &rows).unwrap());
    let mut w = pjrt::lay(&Tensor::scalar(0.0).unwrap(), &mesh, &whole).unwrap();
    let mut first = None;
    for _ in 0..50 {
        let (next, loss, _) = step.call((w, x.clone(), y.clone())).unwrap();
        w = next;
        first.get_or_insert(pjrt::gather(&loss, &mesh, &whole).unwrap().item::<f32>().unwrap());
    }
    assert_eq!(step.programs(), 1);
    // The mean of 9 times the squares, as on one device.
    assert_eq!(first, Some(67.5));
    assert!((pjrt::gather(&w, &mesh, &whole).unwrap().item::<f32>().unwrap() - 3.0).abs() < 1e-3);
    let blocks = pjrt::gather(&x, &mesh, &rows).unwrap();
    assert_eq!(blocks.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let error = pjrt::lay(&blocks, &mesh, &Spec(vec![vec!["model".into()]])).unwrap_err();
    assert!(error.to_string().contains("no axis \"model\""), "{error}");
}
