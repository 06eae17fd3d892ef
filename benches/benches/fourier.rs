//! Fourier transforms, which have no rival here: there and back is what was given.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::FftLength;
use defn_benches::{Case, alone, uniform};

fn there_and_back(c: &mut Criterion) {
    // Powers of two, a product of small primes, and a prime.
    for n in [8, 1 << 14, 1 << 20, 15_015, 10_007] {
        let x = uniform(&[n]);
        let case =
            Case { group: "ifft(fft)/f32", size: n.to_string(), throughput: Throughput::Elements(n as u64) };
        let ours = || x.tensor.fft(0, FftLength::Axis)?.ifft(0, FftLength::Axis)?.real();
        alone(c, case, 1e-5, ours, &x.array);
    }
}

criterion_group!(fourier, there_and_back);
criterion_main!(fourier);
