//! Several devices, and several threads, at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use defn_core::DType;
use defn_core::backend::{Backend, Checks, Compiler, Executable, NoHooks};
use defn_core::builder::*;
use defn_cpu::cpu_backend;
use defn_pjrt::PjrtBackend;

use crate::device::{compiler, dynamic, floats, host_backend, ops, own_backend, read, run, trace, ty};

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

/// How long threads run: 3 seconds, or the value of `DEFN_TEST_THREAD_SECONDS`.
fn seconds() -> Duration {
    let seconds_text = std::env::var("DEFN_TEST_THREAD_SECONDS").ok();
    Duration::from_secs_f64(seconds_text.map_or(3.0, |text| text.parse().unwrap()))
}

/// The resident memory of this process in bytes, if the system reports it.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn threads_share_a_client() {
    let backend = own_backend("threads");
    let program = compiler(&backend).compile(sums(), Checks::default()).unwrap();
    work(&backend, &*program, seconds() / 2);
    let before = resident();
    work(&backend, &*program, seconds());
    let after = resident();
    assert_eq!(backend.runtime().live_buffers(), 0);
    assert_eq!(
        backend.runtime().cache_report().compiles,
        2,
        "a program is compiled by one of those who need it"
    );
    if let (Some(before), Some(after)) = (before, after) {
        println!("{before} KiB before, {after} KiB after");
        assert!(after < 1.05 * before, "{before} KiB before, {after} KiB after");
    }
}

fn work(backend: &Arc<PjrtBackend>, program: &dyn Executable, time: Duration) {
    let until = Instant::now() + time;
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16_u8 {
            let done = &done;
            scope.spawn(move || {
                let mut ops = ops(backend);
                let mut count = 0_u8;
                while Instant::now() < until {
                    let device = backend.runtime().backend("test", i64::from(count % 4)).unwrap();
                    let x = floats(&**device, &[f32::from(thread), f32::from(count), 0.0]);
                    let sum = ops.add(&x, &x).unwrap();
                    let result = run(program, device, vec![sum, x.clone()]).unwrap();
                    assert_eq!(read(&result[0]), [6.0 * f32::from(thread), 6.0 * f32::from(count), 0.0]);
                    let moved = result[0].transfer_to("test", &dynamic(backend)).unwrap();
                    assert_eq!(read(&moved)[1], 6.0 * f32::from(count));
                    x.buffer().unwrap().deallocate().unwrap();
                    count = count.wrapping_add(1);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(done.load(Ordering::Relaxed) >= 16);
}
