//! Several processes: a folder of programs that they share, the end of a process while its devices work, and the
//! memory of a process.

mod device;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use defn_core::DType;
use defn_core::backend::{Backend, Checks, Compiler, Executable, HostMemory};
use defn_core::builder::*;
use defn_core::{Axes, Tensor};
use defn_cpu::cpu_backend;
use defn_pjrt::{CompilerOptions, PjrtBackend, PjrtCompiler, backend};

use device::{compiler, dynamic, floats, host_backend, ops, own_backend, read, run, trace, ty};

/// The environment variable that selects what this program does as its own child.
const CHILD: &str = "DEFN_TEST_CHILD";
/// In place of a variable's value: it is not set.
const UNSET: &str = "unset";

/// Runs this program again, for one task.
fn child(mode: &str, variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "what_children_do", "--nocapture"]).env(CHILD, mode);
    for (name, value) in variables {
        if value.as_os_str() == UNSET {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    command.output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn what_children_do() {
    match std::env::var(CHILD).as_deref() {
        Ok("compile") => println!("{}", compile_and_report(CompilerOptions::default())),
        Ok("leave") => leave_while_working(),
        Ok("threads") => share_a_client(),
        Ok("default") => match backend("backend", None, None) {
            Ok(backend) => println!("{}", backend.device_name()),
            Err(error) => println!("{error}"),
        },
        Ok(other) => panic!("{other}"),
        Err(_) => {}
    }
}

/// Compiles and runs a program, and reports the cache's statistics.
fn compile_and_report(options: CompilerOptions) -> String {
    let backend = host_backend(0);
    let region = trace(&[ty(DType::F32, &[4])], |ops, x| {
        let x = ops.exp(&x[0])?;
        Ok(vec![ops.sum(&x, Axes::All, false)?])
    });
    let compiler = PjrtCompiler::new(backend.clone(), cpu_backend(), options);
    let program = compiler.compile(region, Checks::default()).unwrap();
    assert_eq!(read(&run(&*program, &backend, vec![floats(&*backend, &[0.0; 4])]).unwrap()[0]), [4.0]);
    let report = backend.runtime().cache_report();
    assert!(report.compiles == 0 || report.compile_seconds > 0.0);
    assert!(report.disk_entries == 0 || report.disk_bytes > 100);
    format!(
        "found {} missed {} corrupt {} compiled {} kept {}",
        report.disk_hits, report.disk_misses, report.corrupt, report.compiles, report.disk_entries
    )
}

/// The report of a child that compiles with the folder.
fn report(folder: &Path) -> String {
    report_with(&[("DEFN_CACHE_DIR", folder)])
}

/// The report of a child that compiles.
fn report_with(variables: &[(&str, &Path)]) -> String {
    let output = child("compile", variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().find(|line| line.starts_with("found")).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_second_process_compiles_nothing() {
    let folder = folder("second");
    assert_eq!(report(&folder), "found 0 missed 1 corrupt 0 compiled 1 kept 1");
    assert_eq!(report(&folder), "found 1 missed 0 corrupt 0 compiled 0 kept 1");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(report(&folder), "found 0 missed 1 corrupt 1 compiled 1 kept 1");
    assert_eq!(std::fs::read(&file).unwrap().len(), whole.len());
    assert_eq!(report(&folder), "found 1 missed 0 corrupt 0 compiled 0 kept 1");
}

/// Without a name, programs are kept in the user's folder for caches, where nobody else reads them.
#[cfg(target_os = "linux")]
#[test]
fn programs_are_kept_for_the_user() {
    use std::os::unix::fs::MetadataExt;
    let caches = folder("caches");
    let unset = Path::new(UNSET);
    let here = [("DEFN_CACHE_DIR", unset), ("XDG_CACHE_HOME", caches.as_path())];
    assert_eq!(report_with(&here), "found 0 missed 1 corrupt 0 compiled 1 kept 1");
    assert_eq!(report_with(&here), "found 1 missed 0 corrupt 0 compiled 0 kept 1");
    assert_eq!(std::fs::metadata(caches.join("defn/programs")).unwrap().mode() & 0o777, 0o700);
    let at_home = [("DEFN_CACHE_DIR", unset), ("XDG_CACHE_HOME", unset), ("HOME", caches.as_path())];
    assert_eq!(report_with(&at_home), "found 0 missed 1 corrupt 0 compiled 1 kept 1");
    assert!(caches.join(".cache/defn/programs").is_dir());
    let none = [("DEFN_CACHE_DIR", Path::new("")), ("XDG_CACHE_HOME", caches.as_path())];
    assert_eq!(report_with(&none), "found 0 missed 0 corrupt 0 compiled 1 kept 0");
}

#[test]
fn a_folder_that_cannot_be_written_costs_only_the_compile() {
    let file = folder("file");
    std::fs::write(&file, "a file, and no folder").unwrap();
    assert_eq!(report(&file), "found 0 missed 1 corrupt 0 compiled 1 kept 0");
}

#[test]
fn the_environment_names_a_plugin() {
    let plugin = device::wheel::file("xla_cpu_pjrt.so");
    let text = |variables: &[(&str, &Path)]| {
        String::from_utf8_lossy(&child("default", variables).stdout).into_owned()
    };
    assert!(text(&[("DEFN_PJRT_PLUGIN", &plugin)]).contains("pjrt<host:0>\n"));
    let none = text(&[("DEFN_PJRT_PLUGIN", Path::new(""))]);
    assert!(none.contains("backend: no PJRT plugin is installed, one is required; install "), "{none}");
    assert!(none.contains("pip install 'defn[xla]'"), "{none}");
}

/// Starts long matrix products, and ends the process.
fn leave_while_working() {
    let backend = host_backend(0);
    let sizes = ty(DType::F32, &[1024, 1024]);
    let bytes = HostMemory::from(vec![0; sizes.byte_size()]);
    let x = Tensor::concrete(sizes.clone(), backend.from_host(&sizes, bytes).unwrap());
    let region = trace(&[sizes], |ops, x| {
        let mut product = x[0].clone();
        for _ in 0..50 {
            product = ops.dot(&product, &x[0])?;
        }
        Ok(vec![product])
    });
    let program = PjrtCompiler::new(backend.clone(), cpu_backend(), CompilerOptions::default())
        .compile(region, Checks::default());
    let results: Vec<_> = (0..4)
        .map(|_| run(&*program.as_ref().unwrap().clone(), &backend, vec![x.clone()]).unwrap())
        .collect();
    let buffer = results[3][0].buffer().unwrap().clone();
    std::mem::forget((results, Arc::clone(&buffer)));
    println!("leaving");
    std::process::exit(0);
}

#[test]
fn a_process_ends_while_its_devices_work() {
    let start = Instant::now();
    let output = child("leave", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("leaving"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// How long threads run: 3 seconds, or the value of `DEFN_TEST_THREAD_SECONDS`.
fn seconds() -> Duration {
    let seconds_text = std::env::var("DEFN_TEST_THREAD_SECONDS").ok();
    Duration::from_secs_f64(seconds_text.map_or(3.0, |text| text.parse().unwrap()))
}

/// The resident memory of this process in KiB, if the system reports it.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Many threads use one client; its memory is that of the process.
fn share_a_client() {
    let backend = own_backend("threads");
    let sums = trace(&[ty(DType::F32, &[3]), ty(DType::F32, &[3])], |ops, x| {
        let sum = ops.add(&x[0], &x[1])?;
        Ok(vec![ops.multiply(&sum, 2.0)?])
    });
    let program = compiler(&backend).compile(sums, Checks::default()).unwrap();
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
    println!("16 threads are done");
}

#[test]
fn threads_share_a_client() {
    let output = child("threads", &[("DEFN_CACHE_DIR", Path::new(""))]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("16 threads are done"), "{text}");
}
