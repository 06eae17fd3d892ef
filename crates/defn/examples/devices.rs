//! Lists the devices of a PJRT plugin and fits a line through points on one of them.
//!
//! `cargo run --release -p defn --features pjrt --example devices -- PLUGIN [DEVICE]`

use std::error::Error;
use std::process::ExitCode;

use defn::pjrt::{self, ClientSpec};
use defn::prelude::*;

fn run(plugin: &str, id: i64) -> Result<(), Box<dyn Error>> {
    pjrt::register("device", ClientSpec::new(plugin))?;
    for (client, devices) in pjrt::devices() {
        for device in devices? {
            let memory = match device.memory.and_then(|memory| memory.bytes_limit) {
                Some(limit) => format!("{} MiB", limit >> 20),
                None => "memory not counted".to_owned(),
            };
            println!(
                "{client}:{} {} {} (PJRT {}, {memory})",
                device.device_id, device.platform, device.kind, device.version
            );
        }
    }

    let device = pjrt::device("device", id)?;
    let backend = pjrt::backend(&device);
    let step = jit(|((slope, offset), x, y): ((Expr, Expr), Expr, Expr)| {
        let at = (slope, offset);
        let (loss, gradient) =
            value_and_grad(&at, |(slope, offset)| (slope * &x + offset - &y).pow(2).mean(Axes::All, false));
        (each([&at, &gradient], |[value, gradient]| value - 0.1 * gradient), loss)
    })
    .with_compiler(pjrt::compiler(&device)?)
    .donating(&[0, 1]);

    let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[4])?.backend_transfer(&backend)?;
    let y = Tensor::from_slice(&[1f32, 3.0, 5.0, 7.0], &[4])?.backend_transfer(&backend)?;
    let zero = || Tensor::scalar(0.0)?.backend_transfer(&backend);
    let mut line = (zero()?, zero()?);
    for _ in 0..300 {
        line = step.call((line, x.clone(), y.clone()))?.0;
    }
    println!("y = {:.3} x + {:.3}", line.0.item::<f32>()?, line.1.item::<f32>()?);
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(plugin) = arguments.next() else {
        eprintln!("usage: devices PLUGIN [DEVICE]");
        return ExitCode::FAILURE;
    };
    let id = arguments.next().and_then(|id| id.parse().ok()).unwrap_or(0);
    match run(&plugin, id) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
