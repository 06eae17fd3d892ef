//! Runs functions for AArch64 on other machines: QEMU executes `tools/neon_runner.c` with a batch of them.
//!
//! It needs `aarch64-linux-gnu-gcc`, its `objdump` and `qemu-aarch64`. Where they are missing, tests print a
//! line and skip; with `DEFN_NEON=require` in the environment they fail.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::ir::Status;

const SOURCE: &str = include_str!("../../../../../tools/neon_runner.c");
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const OBJDUMP: &str = "aarch64-linux-gnu-objdump";
const QEMU: &str = "qemu-aarch64";
/// What parts of jobs are filled up to.
const ROUND: usize = 64;

/// A kernel of the runner. [`record`], [`mix`] and [`status`] do the same on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestKernel {
    Record,
    Mix,
    Status,
}

/// An argument of a function, eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Number(u64),
    /// The address of a byte of the data.
    Data(usize),
    /// A kernel's address; its context is a word of its own.
    Kernel(TestKernel),
}

/// A call of a function. Its data begins at a multiple of 64 bytes, and behind it, filled up to 64, nothing
/// may be touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) code: Vec<u8>,
    pub(crate) words: Vec<Word>,
    pub(crate) data: Vec<u8>,
    /// The floating-point modes of the caller.
    pub(crate) fpcr: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By what it returned.
    Status(Status),
    /// By a signal of Linux.
    Signal(u64),
    /// It has lost a register of its caller: 1 to 10 for x19 to x28, 11 to 18 for v8 to v15, 19 for x29, 20
    /// for the stack pointer and 21 for FPCR.
    Lost(u64),
}

/// What a call has done.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) data: Vec<u8>,
}

/// Appends `context[0]` numbers of each call behind `context[1]`, which counts the calls.
///
/// # Safety
///
/// The context has room for two numbers and those of all calls, and `args` has as many as the context says.
pub(crate) unsafe extern "C" fn record(context: *mut (), args: *const u64) -> Status {
    let context = context.cast::<u64>();
    // SAFETY: the caller says that the numbers exist.
    unsafe {
        let (each, calls) = (*context, *context.add(1));
        for at in 0..each as usize {
            *context.add(2 + (each * calls) as usize + at) = *args.add(at);
        }
        *context.add(1) += 1;
    }
    0
}

/// Mixes `args[2]` bytes at `args[1]` into those at `args[0]`, and counts them in `context[0]`.
///
/// # Safety
///
/// The context is a number, and the bytes exist.
pub(crate) unsafe extern "C" fn mix(context: *mut (), args: *const u64) -> Status {
    // SAFETY: the caller says that all exist.
    unsafe {
        let (to, from, bytes) = (*args as *mut u8, *args.add(1) as *const u8, *args.add(2));
        for at in 0..bytes as usize {
            *to.add(at) = (*to.add(at)).wrapping_mul(31).wrapping_add(*from.add(at));
        }
        *context.cast::<u64>() += bytes;
    }
    0
}

/// Returns `args[0]`, and counts the calls in `context[0]`.
///
/// # Safety
///
/// The context is a number, and there is an argument.
pub(crate) unsafe extern "C" fn status(context: *mut (), args: *const u64) -> Status {
    // SAFETY: the caller says that both exist.
    unsafe {
        *context.cast::<u64>() += 1;
        *args as Status
    }
}

/// Runs calls, in order, in one process. None where the tools are missing.
pub(crate) fn run(cases: &[Case]) -> Option<Vec<Outcome>> {
    let runner = runner()?;
    let (jobs, results) = (scratch_file("jobs"), scratch_file("results"));
    std::fs::write(&jobs, bytes_of(cases)).expect("a temporary file can be written");
    // On the machine itself nothing is needed to execute it.
    let mut command =
        Command::new(if cfg!(target_arch = "aarch64") { runner.as_os_str() } else { QEMU.as_ref() });
    if !cfg!(target_arch = "aarch64") {
        command.arg(runner);
    }
    let output = command.arg(&jobs).arg(&results).output().expect("the runner starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the runner ended with {}: {message}", output.status);
    let bytes = std::fs::read(&results).expect("the runner has written its results");
    for file in [jobs, results] {
        std::fs::remove_file(file).expect("the temporary file is there");
    }
    let mut rest = bytes.as_slice();
    let mut take = |count: usize| {
        let (taken, behind) = rest.split_at(count);
        rest = behind;
        taken
    };
    let outcome = |case: &Case| {
        let head = take(16);
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let end = match number(0) {
            0 => End::Status(number(8) as Status),
            1 => End::Signal(number(8)),
            _ => End::Lost(number(8)),
        };
        Outcome { end, data: take(case.data.len()).to_vec() }
    };
    Some(cases.iter().map(outcome).collect())
}

/// The jobs as the runner reads them.
fn bytes_of(cases: &[Case]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let push = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes());
    let fill = |bytes: &mut Vec<u8>, part: &[u8]| {
        bytes.extend(part);
        bytes.resize(bytes.len() + part.len().next_multiple_of(ROUND) - part.len(), 0);
    };
    push(&mut bytes, cases.len() as u64);
    for case in cases {
        let head = [case.code.len() as u64, case.data.len() as u64, case.words.len() as u64, case.fpcr];
        head.iter().for_each(|&number| push(&mut bytes, number));
        for &word in &case.words {
            let (kind, value) = match word {
                Word::Number(number) => (0, number),
                Word::Data(offset) => (1, offset as u64),
                Word::Kernel(kernel) => (2, kernel as u64),
            };
            push(&mut bytes, kind);
            push(&mut bytes, value);
        }
        fill(&mut bytes, &case.code);
        fill(&mut bytes, &case.data);
    }
    bytes
}

/// The instructions of code as text, one a line and without comments. None where the tools are missing.
pub(crate) fn disassemble(code: &[u8]) -> Option<Vec<String>> {
    runner()?;
    let file = scratch_file("code");
    std::fs::write(&file, code).expect("a temporary file can be written");
    let arguments = ["-D", "-z", "-b", "binary", "-m", "aarch64"];
    let output = Command::new(OBJDUMP).args(arguments).arg(&file).output().expect("objdump starts");
    std::fs::remove_file(&file).expect("the temporary file is there");
    assert!(output.status.success(), "objdump ended with {}", output.status);
    let text = String::from_utf8(output.stdout).expect("objdump writes text");
    // A line is an address, the word, the name and the operands.
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let _address = fields.next()?.strip_suffix(':')?;
        let _word = fields.next()?;
        let text = fields.collect::<Vec<_>>().join(" ");
        Some(text.split("//").next()?.trim().to_owned())
    };
    Some(text.lines().filter_map(line).collect())
}

/// A file name that no other call has.
fn scratch_file(what: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("defn-neon-{}-{next}-{what}", std::process::id()))
}

/// The runner, which is built at most once by a process and once for a source. None where the tools are
/// missing.
fn runner() -> Option<&'static Path> {
    static RUNNER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match RUNNER.get_or_init(build) {
        Ok(path) => Some(path),
        Err(missing) => {
            let is_required = std::env::var_os("DEFN_NEON").is_some_and(|value| value == "require");
            assert!(!is_required, "{missing}");
            println!("skipped: {missing}");
            None
        }
    }
}

/// Builds the runner next to the test's own executable, or says what is missing.
fn build() -> Result<PathBuf, String> {
    let tools = [COMPILER, OBJDUMP, QEMU];
    let needed = &tools[..if cfg!(target_arch = "aarch64") { 2 } else { 3 }];
    for tool in needed {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("{tool} is not there, so no code for AArch64 is tested"));
        }
    }
    let mut hasher = DefaultHasher::new();
    SOURCE.hash(&mut hasher);
    let own = std::env::current_exe().map_err(|error| format!("the test has no path: {error}"))?;
    let runner = own.with_file_name(format!("neon_runner-{:016x}", hasher.finish()));
    if runner.exists() {
        return Ok(runner);
    }
    // Another process may do the same: the file appears whole.
    let built = runner.with_extension(std::process::id().to_string());
    let mut compiler = Command::new(COMPILER)
        .args(["-O2", "-static", "-Wall", "-Wextra", "-x", "c", "-", "-o"])
        .arg(&built)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{COMPILER} does not start: {error}"))?;
    let mut input = compiler.stdin.take().expect("it was piped");
    input.write_all(SOURCE.as_bytes()).expect("the compiler reads its source");
    drop(input);
    let status = compiler.wait().expect("the compiler was started");
    if !status.success() {
        // A compiler without a C library for it is one more thing that is missing.
        return Err(format!("{COMPILER} does not build the runner, so no code for AArch64 is tested"));
    }
    std::fs::rename(&built, &runner).expect("the directory of the test can be written");
    Ok(runner)
}
