//! The peak rates of the machine, with which measured speeds are compared.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use defn_core::{ErrorKind, Result, memory};

use crate::kernels::peak::{peak_of_f32, peak_of_f64};
use crate::par::{Par, threads};

/// The limits of a machine for a number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// The number of threads used.
    pub threads: usize,
    /// Bytes read plus bytes written in a second by a copy larger than all caches.
    pub bandwidth: f64,
    /// Multiplications and additions of `f32` in a second, in registers.
    pub flops: f64,
    /// The same of `f64`.
    pub wide_flops: f64,
}

/// The number of pieces of the copy; a thread copies one at a time.
const PIECES: usize = 64;

/// The bytes of a piece. All pieces together are larger than the caches.
const PIECE: usize = 1 << 20;

/// Repetitions of a measurement; the fastest counts.
const TIMES: usize = 5;

/// The least duration of a measurement of arithmetic, much longer than threads need to join.
const MIN_DURATION: Duration = Duration::from_micros(500);

impl Roofline {
    /// Measures the machine with the current number of threads; later calls return the first measurement. The
    /// measurement takes some hundredths of a second and 128 MiB of memory.
    ///
    /// # Errors
    /// An environment variable that is invalid, or not enough memory.
    pub fn measured() -> Result<Roofline> {
        static KNOWN: Mutex<BTreeMap<usize, Roofline>> = Mutex::new(BTreeMap::new());
        let threads = threads()?;
        let mut cached = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cached.get(&threads) {
            return Ok(*cached);
        }
        let (flops, wide_flops) = (rate(threads, peak_of_f32), rate(threads, peak_of_f64));
        let measured = Roofline { threads, bandwidth: bandwidth()?, flops, wide_flops };
        cached.insert(threads, measured);
        Ok(measured)
    }
}

fn bandwidth() -> Result<f64> {
    let bytes = 2 * PIECES * PIECE;
    let refused = |available| ErrorKind::OutOfMemory { op: "profile", requested: bytes, available };
    memory::reserve(bytes).map_err(refused)?;
    let from = vec![1u8; PIECE * PIECES];
    let to: Vec<Mutex<Vec<u8>>> = (0..PIECES).map(|_| Mutex::new(vec![0u8; PIECE])).collect();
    let copy = || {
        Par::Pool.for_chunks(PIECES, 1, |pieces| {
            for piece in pieces {
                let mut to = to[piece].lock().unwrap_or_else(PoisonError::into_inner);
                to.copy_from_slice(&from[piece * PIECE..][..PIECE]);
            }
        });
    };
    let time = fastest(copy);
    black_box(&to);
    Ok(bytes as f64 / time.as_secs_f64())
}

/// Operations in a second, where `work` returns the number of operations of each thread.
fn rate(threads: usize, work: fn(usize) -> usize) -> f64 {
    let mut steps = 1000;
    loop {
        let start = Instant::now();
        let count = work(steps);
        if start.elapsed() >= MIN_DURATION {
            let all = || Par::Pool.for_chunks(threads, 1, |chunk| chunk.for_each(|_| _ = work(steps)));
            return (count * threads) as f64 / fastest(all).as_secs_f64();
        }
        steps *= 2;
    }
}

/// The shortest of several repetitions, after one that wakes the threads.
fn fastest(work: impl Fn()) -> Duration {
    work();
    let times = (0..TIMES).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.min().unwrap_or_default().max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::with_threads;

    #[test]
    fn a_machine_is_measured_once_for_each_number_of_threads() {
        let one = with_threads(1, Roofline::measured).unwrap().unwrap();
        assert_eq!(with_threads(1, Roofline::measured).unwrap().unwrap(), one);
        assert_eq!(one.threads, 1);
        // The bounds are below and above every machine.
        for rate in [one.bandwidth, one.flops, one.wide_flops] {
            assert!((1e6..1e15).contains(&rate), "{one:?}");
        }
    }
}
