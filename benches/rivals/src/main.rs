//! Kernels and whole programs of defn beside those of other Rust libraries, in one process.
//!
//! `cargo run --release -- [--threads N] [--budget SECONDS] [--only WORD,...]` prints a line for each workload and
//! library, with tabs between the family, the workload, the library, and the least and the median seconds of a call.

mod dot;
mod elementwise;
mod fourier;
mod learning;
mod loops;
mod matrix;
mod measure;
mod moving;
mod numbers;
mod random;
mod reduce;
mod window;

use std::time::Duration;

use measure::Runner;

fn main() {
    let mut runner = Runner { only: Vec::new(), budget: Duration::from_secs(1), threads: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{option} needs a value"));
        match option.as_str() {
            "--threads" => runner.threads = value.parse().expect("a number of threads"),
            "--budget" => runner.budget = Duration::from_secs_f64(value.parse().expect("seconds")),
            "--only" => runner.only = value.split(',').map(str::to_owned).collect(),
            _ => panic!("unknown option {option}: --threads, --budget, --only"),
        }
    }
    use_threads(runner.threads);
    elementwise::run(&runner);
    reduce::run(&runner);
    dot::run(&runner);
    matrix::run(&runner);
    fourier::run(&runner);
    moving::run(&runner);
    window::run(&runner);
    random::run(&runner);
    learning::run(&runner);
    loops::run(&runner);
}

/// Sets the number of threads of each library that has threads.
fn use_threads(count: usize) {
    for name in ["DEFN_THREADS", "RAYON_NUM_THREADS", "MATMUL_NUM_THREADS"] {
        // SAFETY: there is no other thread yet, and each library reads its variable later.
        unsafe { std::env::set_var(name, count.to_string()) };
    }
    faer::set_global_parallelism(if count == 1 { faer::Par::Seq } else { faer::Par::rayon(count) });
}
