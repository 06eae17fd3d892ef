//! Several devices at the same time.

use std::sync::Arc;

use defn_core::DType;
use defn_core::backend::{Backend, Checks, Executable, NoHooks};
use defn_core::builder::*;
use defn_cpu::cpu_backend;

use crate::device::{compiler, dynamic, floats, host_backend, read, trace, ty};

fn sums() -> Arc<defn_core::region::Region> {
    trace(&[ty(DType::F32, &[3]), ty(DType::F32, &[3])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![ops.multiply(&sum, 2.0)?])
    })
}

#[test]
fn four_devices_give_the_results_of_one() {
    let program = compiler(&host_backend(0)).executable(sums(), Checks::default(), &[]).unwrap();
    let list = |backend: Arc<dyn Backend>, n: u8| {
        let list = vec![floats(&*backend, &[f32::from(n); 3]), floats(&*backend, &[1.0; 3])];
        (backend, list)
    };
    let host: Arc<dyn Backend> = cpu_backend();
    let results = program.run_each((0..6).map(|n| list(host.clone(), n)).collect(), &NoHooks).unwrap();
    for (n, results) in (0_u8..).zip(&results) {
        assert_eq!(results[0].backend().unwrap().device_name(), format!("pjrt<host:{}>", n % 4));
        assert_eq!(read(&results[0]), [2.0 * (f32::from(n) + 1.0); 3]);
    }
    let lists = vec![list(dynamic(&host_backend(2)), 1), list(dynamic(&host_backend(1)), 2)];
    let results = program.run_each(lists, &NoHooks).unwrap();
    assert_eq!(results[0][0].backend().unwrap().device_name(), "pjrt<host:2>");
    assert_eq!(results[1][0].backend().unwrap().device_name(), "pjrt<host:1>");
    assert_eq!((read(&results[0][0]), read(&results[1][0])), (vec![4.0; 3], vec![6.0; 3]));
    assert!(program.run_each(Vec::new(), &NoHooks).unwrap().is_empty());
}

#[test]
fn a_list_runs_where_all_of_it_is() {
    let program = compiler(&host_backend(0)).executable(sums(), Checks::default(), &[]).unwrap();
    let list = vec![floats(&*host_backend(1), &[1.0; 3]), floats(&*host_backend(2), &[1.0; 3])];
    let error = program.run_each(vec![(dynamic(&host_backend(1)), list)], &NoHooks).unwrap_err();
    assert!(
        error.to_string().starts_with("run: the operands are on pjrt<host:1> and pjrt<host:2>"),
        "{error}"
    );
}
