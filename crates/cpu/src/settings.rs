//! Environment variables for threads and instruction sets, read once, when the first op runs.

use std::env::{VarError, var};
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use defn_core::{ErrorKind, Result};

/// How many threads share the work of one call.
pub(crate) const THREADS: &str = "DEFN_THREADS";

/// The best instruction set that kernels may use.
const INSTRUCTIONS: &str = "DEFN_SIMD";

/// The most threads that may share one call. Machines have fewer processors; more threads would only take memory.
pub const MAX_THREADS: usize = 1024;

/// Instruction sets, each of which includes the previous ones. A processor that lacks one uses the best that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instructions {
    /// The baseline of the architecture.
    Portable,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// The settings, each with its own error.
#[derive(Debug)]
struct Settings {
    threads: Setting<NonZeroUsize>,
    instructions: Setting<Instructions>,
}

/// The value of one variable, or the invalid text.
type Setting<T> = std::result::Result<Option<T>, String>;

fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings {
        threads: setting(var(THREADS), threads_of),
        instructions: setting(var(INSTRUCTIONS), instructions_of),
    })
}

/// Parses a variable. An empty one counts as unset.
fn setting<T>(found: std::result::Result<String, VarError>, parse: fn(&str) -> Option<T>) -> Setting<T> {
    match found {
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => Err(format!("{text:?}")),
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => parse(&text).map(Some).ok_or_else(|| format!("{text:?}")),
    }
}

fn threads_of(text: &str) -> Option<NonZeroUsize> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let count = is_number.then(|| text.parse().ok()).flatten()?;
    NonZeroUsize::new(count).filter(|count| count.get() <= MAX_THREADS)
}

fn instructions_of(text: &str) -> Option<Instructions> {
    match text {
        "portable" => Some(Instructions::Portable),
        "avx2" => Some(Instructions::Avx2),
        "avx512" => Some(Instructions::Avx512),
        _ => None,
    }
}

/// Returns the error of an invalid environment variable.
///
/// # Errors
/// A variable with an invalid value.
#[inline]
pub(crate) fn check() -> Result<()> {
    static FAULTLESS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    if FAULTLESS.load(std::sync::atomic::Ordering::Relaxed) {
        return Ok(());
    }
    look()?;
    FAULTLESS.store(true, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

#[cold]
fn look() -> Result<()> {
    let Settings { threads, instructions } = settings();
    if let Err(given) = threads {
        let required = format!("an integer from 1 to {MAX_THREADS}, or not set");
        return Err(refused("options", THREADS, given.clone(), required).into());
    }
    if let Err(given) = instructions {
        let required = "\"avx512\", \"avx2\" or \"portable\", or not set".to_owned();
        return Err(refused("options", INSTRUCTIONS, given.clone(), required).into());
    }
    Ok(())
}

fn refused(op: &'static str, option: &'static str, given: String, required: String) -> ErrorKind {
    ErrorKind::OptionValue { op, option, given, required }
}

/// Checks a number of threads that the program requests.
///
/// # Errors
/// Zero, or too many.
pub(crate) fn checked_thread_count(op: &'static str, count: usize) -> Result<NonZeroUsize> {
    NonZeroUsize::new(count).filter(|count| count.get() <= MAX_THREADS).ok_or_else(|| {
        let required = format!("an integer from 1 to {MAX_THREADS}");
        refused(op, "the number of threads", count.to_string(), required).into()
    })
}

/// The number of threads that the environment requests. [`check`] reports invalid values.
pub(crate) fn threads() -> Option<usize> {
    settings().threads.as_ref().ok().copied().flatten().map(NonZeroUsize::get)
}

/// The best instruction set that the environment allows.
pub(crate) fn instructions() -> Instructions {
    settings().instructions.as_ref().ok().copied().flatten().unwrap_or(Instructions::Avx512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_understood_is_taken() {
        for (text, count) in [("1", 1), ("7", 7), ("1024", 1024), ("02", 2)] {
            assert_eq!(threads_of(text).map(NonZeroUsize::get), Some(count));
        }
        for text in ["0", "-1", "1.5", "a", "+2", " 2", "1025", "99999999999999999999999"] {
            assert_eq!(threads_of(text), None, "{text}");
        }
        assert_eq!(instructions_of("avx2"), Some(Instructions::Avx2));
        for text in ["AVX2", "sse", "avx-512", "0"] {
            assert_eq!(instructions_of(text), None, "{text}");
        }
        assert_eq!(setting(Ok(String::new()), threads_of), Ok(None));
        assert_eq!(setting(Err(VarError::NotPresent), threads_of), Ok(None));
        assert_eq!(setting(Ok("two".to_owned()), threads_of), Err("\"two\"".to_owned()));
    }
}
