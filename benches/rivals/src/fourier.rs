//! Fourier transforms of complex f32 numbers beside rustfft.

use defn::{FftLength, FftNorm, Result, Tensor};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::measure::Runner;
use crate::numbers::{Numbers, signed};

const FAMILY: &str = "fft";

pub fn run(runner: &Runner) {
    rows(runner, "64 rows of 1024", [64, 1024]);
    rows(runner, "65,536", [1, 1 << 16]);
    rows(runner, "1 M", [1, 1 << 20]);
    rows(runner, "15,015 = 3 x 5 x 7 x 11 x 13", [1, 15_015]);
    rows(runner, "10,007, a prime", [1, 10_007]);
}

fn rows(runner: &Runner, size: &str, sizes: [usize; 2]) {
    let (re, im) = (signed(&sizes, 1.0), signed(&sizes, 1.0));
    let x = re.tensor.complex(&im.tensor).expect("there is memory for a benchmark");
    let numbers: Vec<Complex<f32>> =
        re.values.iter().zip(&im.values).map(|(&re, &im)| Complex { re, im }).collect();
    let plan = FftPlanner::<f32>::new().plan_fft_forward(sizes[1]);
    let both = |y: &Result<Tensor>| {
        let y = y.as_ref().expect("the operation succeeds");
        (y.real(), y.imag()).numbers()
    };
    runner
        .time_by(FAMILY, format!("fft {size}"), || x.fft(1, FftLength::Axis, FftNorm::Backward), both)
        .within(1e-5)
        .beside_by(
            "rustfft",
            || {
                let mut out = numbers.clone();
                plan.process(&mut out);
                out
            },
            |y| y.iter().map(|z| f64::from(z.re)).chain(y.iter().map(|z| f64::from(z.im))).collect(),
        )
        .done();
}
