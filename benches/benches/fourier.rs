//! Fourier transforms: of many rows compared with rustfft, and a transform with its inverse, which restores the input.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{FftLength, FftNorm};
use defn_benches::{Case, MEMORY, TINY, time, uniform};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

fn rows(c: &mut Criterion) {
    for [m, n] in [[TINY, 8], [256, 256], [MEMORY / 1024, 1024]] {
        let x = uniform(&[m, n]);
        let plan = FftPlanner::<f32>::new().plan_fft_forward(n);
        let rival = || {
            let mut row: Vec<Complex<f32>> = x.array.iter().map(|&x| x.into()).collect();
            plan.process(&mut row);
            row.iter().map(|x| x.re).collect::<Vec<f32>>()
        };
        let ours = || x.tensor.fft(-1, FftLength::Axis, FftNorm::Backward)?.real();
        time(c, Case::computes("fft/f32/rows", format!("{m}x{n}"), m * n), ours)
            .within(1e-5)
            .beside("rustfft", rival)
            .done();
    }
}

fn there_and_back(c: &mut Criterion) {
    // Powers of two, a product of small primes, and a prime.
    for n in [8, 1 << 14, 1 << 22, 15_015, 10_007] {
        let x = uniform(&[n]);
        let ours = || {
            x.tensor
                .fft(0, FftLength::Axis, FftNorm::Backward)?
                .ifft(0, FftLength::Axis, FftNorm::Backward)?
                .real()
        };
        time(c, Case::computes("ifft(fft)/f32", n, n), ours).within(1e-5).gives(&x.array).done();
    }
}

criterion_group!(fourier, rows, there_and_back);
criterion_main!(fourier);
