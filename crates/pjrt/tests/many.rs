//! Several devices, and several threads, at once.

mod device;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use defn_core::DType;
use defn_core::backend::{Checks, Compiler, NoHooks};
use defn_core::builder::*;
use defn_cpu::cpu_backend;

use device::{compiler, dynamic, floats, ops, own_place, place, read, run, trace, ty};

fn sums() -> Arc<defn_core::region::Region> {
    trace(&[ty(DType::F32, &[3]), ty(DType::F32, &[3])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![ops.multiply(&sum, 2.0)?])
    })
}

#[test]
fn four_devices_give_the_results_of_one() {
    let program = compiler(&place(0)).executable(sums(), Checks::default(), &[]).unwrap();
    let list = |n: u8| [floats(&*cpu_backend(), &[f32::from(n); 3]), floats(&*cpu_backend(), &[1.0; 3])];
    let lists = (0..4).map(|n| list(n).to_vec()).collect();
    let results = program.run_partitions(&[], lists, &NoHooks).unwrap();
    for (n, results) in (0_u8..).zip(&results) {
        assert_eq!(results[0].backend().unwrap().place(), format!("pjrt<host:{n}>"));
        assert_eq!(read(&results[0]), [2.0 * (f32::from(n) + 1.0); 3]);
    }
    let some = [place(2), place(1)];
    let results = program.run_partitions(&some, vec![list(1).to_vec(), list(2).to_vec()], &NoHooks).unwrap();
    assert_eq!(results[0][0].backend().unwrap().place(), "pjrt<host:2>");
    assert_eq!((read(&results[0][0]), read(&results[1][0])), (vec![4.0; 3], vec![6.0; 3]));
}

#[test]
fn partitions_need_a_device_each() {
    let program = compiler(&place(0)).executable(sums(), Checks::default(), &[]).unwrap();
    let lists = |count: usize| vec![vec![floats(&*cpu_backend(), &[1.0; 3]); 2]; count];
    let error = program.run_partitions(&[], lists(5), &NoHooks).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run: partitions is 4 devices for 5 lists of arguments, it must be one for each"
    );
    assert!(program.run_partitions(&[place(1)], lists(2), &NoHooks).is_err());
    assert!(program.run_partitions(&[own_place("elsewhere")], lists(1), &NoHooks).is_err());
}

#[test]
fn threads_share_a_client() {
    let place = own_place("threads");
    let program = compiler(&place).compile(sums(), Checks::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16_u8 {
            let (place, program, done) = (&place, &program, &done);
            scope.spawn(move || {
                let mut ops = ops(place);
                let mut count = 0_u8;
                while Instant::now() < until {
                    let there = place.runtime().backend("test", i64::from(count % 4)).unwrap();
                    let x = floats(&**there, &[f32::from(thread), f32::from(count), 0.0]);
                    let sum = ops.add(&x, &x).unwrap();
                    let result = run(&**program, there, vec![sum, x.clone()]).unwrap();
                    assert_eq!(read(&result[0]), [6.0 * f32::from(thread), 6.0 * f32::from(count), 0.0]);
                    let moved = result[0].transfer_to("test", &dynamic(place)).unwrap();
                    assert_eq!(read(&moved)[1], 6.0 * f32::from(count));
                    x.buffer().unwrap().deallocate().unwrap();
                    count = count.wrapping_add(1);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(done.load(Ordering::Relaxed) >= 16);
    assert_eq!(place.runtime().live_buffers(), 0);
    assert_eq!(
        place.runtime().cache_report().compiles,
        2,
        "a program is compiled by one of those who need it"
    );
}
