//! Profiles of runs, as tables.

use std::fmt;
use std::time::Duration;

use defn_core::Result;
use defn_core::profile::Record;

/// The time that each step of one run took. [`Compiled::profile`](crate::Compiled::profile) measures it, and `{}` prints it as
/// a table.
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| x.sin()).compile(Tensor::template(&[100], DType::F32)?)?;
/// let (_, profile) = f.profile(Tensor::full(&[100], DType::F32, 1.0)?)?;
/// assert!(profile.to_string().contains("sin"));
/// assert!(profile.steps().iter().map(|step| step.time).sum::<std::time::Duration>() <= profile.time());
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    record: Record,
    steps: Vec<ProfileStep>,
}

/// One step of a run: operations that are computed together, with the totals of all its runs.
///
/// ```
/// use defn::prelude::*;
/// use defn::ProfileStep;
///
/// fn slowest(steps: &[ProfileStep]) -> Option<&ProfileStep> {
///     steps.iter().filter(|step| step.depth == 0).max_by_key(|step| step.time)
/// }
/// let f = jit(|x: Expr| x.sin()).compile(Tensor::template(&[100], DType::F32)?)?;
/// let (_, profile) = f.profile(Tensor::full(&[100], DType::F32, 1.0)?)?;
/// assert_eq!(slowest(profile.steps()).unwrap().name, "sin");
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProfileStep {
    /// The operations, or the loop or branch that contains the next steps.
    pub name: String,
    /// The lines of the program that they come from, as `file:line`.
    pub lines: Vec<String>,
    /// The number of loops and branches around the step.
    pub depth: usize,
    /// The number of runs.
    pub runs: u64,
    /// The time of all runs.
    pub time: Duration,
    /// The bytes read and written, computed from the types.
    pub bytes: u64,
    /// The number of operations on elements, computed from the types; a sine counts as one.
    pub flops: u64,
    /// The least time on this machine, divided by the time taken: more than 1 if the data is in a cache. `None` without
    /// the CPU backend, which measures the machine.
    pub share: Option<f64>,
}

/// The measured rates of a machine, with which steps are compared: bytes per second, and operations per second of 32
/// and of 64 bits.
#[derive(Clone, Copy)]
struct Machine {
    bandwidth: f64,
    flops: f64,
    wide_flops: f64,
}

#[cfg(feature = "cpu")]
fn machine(record: &Record) -> Result<Option<Machine>> {
    let threads = match record.threads {
        Some(threads) => threads,
        None => defn_cpu::threads()?,
    };
    let measured = defn_cpu::with_threads(threads, defn_cpu::Roofline::measured)??;
    let (bandwidth, flops, wide_flops) = (measured.bandwidth, measured.flops, measured.wide_flops);
    Ok(Some(Machine { bandwidth, flops, wide_flops }))
}

#[cfg(not(feature = "cpu"))]
fn machine(_: &Record) -> Result<Option<Machine>> {
    Ok(None)
}

impl Profile {
    pub(crate) fn new(record: Record) -> Result<Profile> {
        let machine = machine(&record)?;
        let step = |total: defn_core::profile::Total| {
            let step = record.steps.get(total.step)?;
            let share = machine.map(|machine| {
                let peak = if total.is_wide { machine.wide_flops } else { machine.flops };
                let least = (total.bytes as f64 / machine.bandwidth).max(total.flops as f64 / peak);
                least / step.time.as_secs_f64().max(f64::MIN_POSITIVE)
            });
            Some(ProfileStep {
                name: step.work.ops.join(" "),
                lines: step.work.lines.iter().map(ToString::to_string).collect(),
                depth: total.depth,
                runs: step.runs,
                time: step.time,
                bytes: total.bytes,
                flops: total.flops,
                share,
            })
        };
        let steps = record.totals().into_iter().filter_map(step).collect();
        Ok(Profile { record, steps })
    }

    /// The steps in order; a loop or a branch comes before the steps inside it.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| for_(x, 0..10, |x, _| x.sin())).compile(Tensor::template(&[], DType::F32)?)?;
    /// let (_, profile) = f.profile(Tensor::scalar(1.0)?)?;
    /// assert_eq!(profile.steps()[0].depth, 0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn steps(&self) -> &[ProfileStep] {
        &self.steps
    }

    /// The time of the run. What is outside of all steps is spent on memory, arguments and results.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| x.sin()).compile(Tensor::template(&[], DType::F32)?)?;
    /// assert!(f.profile(Tensor::scalar(1.0)?)?.1.time().as_nanos() > 0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn time(&self) -> Duration {
        self.record.total
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.time();
        writeln!(f, "{total:.3?} in {} steps", self.steps.len())?;
        let head = ["time", "", "runs", "bytes", "flops", "share", "step", "lines"].map(str::to_owned);
        let row = |step: &ProfileStep| {
            let part = step.time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            let (indent, more) = ("  ".repeat(step.depth), if step.lines.len() > 2 { " …" } else { "" });
            let lines: Vec<&str> = step.lines.iter().take(2).map(String::as_str).collect();
            [
                format!("{:.3?}", step.time),
                format!("{:.0}%", 100.0 * part),
                step.runs.to_string(),
                scaled(step.bytes, "B"),
                scaled(step.flops, ""),
                step.share.map_or_else(String::new, |share| format!("{:.0}%", 100.0 * share)),
                format!("{indent}{}", step.name),
                format!("{}{more}", lines.join(", ")),
            ]
        };
        let rows: Vec<[String; 8]> = std::iter::once(head).chain(self.steps.iter().map(row)).collect();
        let mut widths = [0; 8];
        for row in &rows {
            let cells = widths.iter_mut().zip(row);
            cells.for_each(|(width, cell)| *width = cell.chars().count().max(*width));
        }
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                match column {
                    0..6 => line += &format!("{cell:>width$}  "),
                    _ => line += &format!("{cell:<width$}  "),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Three digits and a prefix: `12.3 MB`.
fn scaled(value: u64, unit: &str) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let value = value as f64;
    match prefixes.into_iter().find(|(limit, _)| value >= *limit) {
        Some((limit, prefix)) => format!("{:.1} {prefix}{unit}", value / limit),
        None => format!("{value:.0} {unit}").trim_end().to_owned(),
    }
}
