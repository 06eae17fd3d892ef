//! Functions on all executors: the portable one, AVX2, AVX-512 and NEON give the same bits, and touch nothing but what
//! they are given. `random` has random functions, `control` and `values` have functions of control flow whose results
//! plain Rust computes.

mod control;
mod quotients;
mod random;
mod records;
mod rows;
mod values;

use super::emit::neon_run::{self, Case as Job, End, TestKernel, Word};
use super::emit::registers::allocate;
use super::emit::{Entry, Target, check::check, neon::Neon};
use super::interpret::Interpreter;
use super::interpret::level::at_every_level;
use super::ir::functions::rare::applied;
use super::ir::{Elem, Function, Status};
use super::schedule::lower;

/// What lies between buffers.
const POISON: u8 = 0xA5;
/// The bytes between buffers.
const GAP: usize = 64;

/// The memory of a call, and its arguments.
struct Call {
    data: Vec<u8>,
    words: Vec<Word>,
    /// Where buffers begin, their bytes, and the type of their elements.
    buffers: Vec<(usize, usize, Elem)>,
}

/// What an element of a buffer is in Rust.
trait Element: Copy {
    const ELEM: Elem;

    /// The bits, in the low bytes.
    fn bits(self) -> u64;
}

macro_rules! elements {
    ($($type:ident $elem:ident $bits:expr),*) => {$(
        impl Element for $type {
            const ELEM: Elem = Elem::$elem;

            fn bits(self) -> u64 {
                $bits(self)
            }
        }
    )*};
}

elements!(i8 I8 |x| x as u64, i32 I32 |x| x as u64, i64 I64 |x| x as u64);
elements!(f32 F32 |x: f32| x.to_bits().into(), f64 F64 f64::to_bits);

impl Call {
    fn new() -> Call {
        Call { data: vec![POISON; GAP], words: Vec::new(), buffers: Vec::new() }
    }

    /// A buffer with these bits, which begins so many elements behind the line.
    fn buffer(&mut self, elem: Elem, skew: usize, bits: impl IntoIterator<Item = u64>) {
        let start = self.data.len() + skew * elem.bytes();
        self.data.resize(start, POISON);
        for element in bits {
            self.data.extend_from_slice(&element.to_le_bytes()[..elem.bytes()]);
        }
        self.words.push(Word::Data(start));
        self.buffers.push((start, self.data.len() - start, elem));
        self.data.resize(self.data.len().next_multiple_of(GAP) + GAP, POISON);
    }

    /// A buffer of elements. Each begins elsewhere.
    fn with<T: Element>(mut self, elements: &[T]) -> Call {
        let skew = 1 + 2 * self.buffers.len();
        self.buffer(T::ELEM, skew, elements.iter().map(|element| element.bits()));
        self
    }

    /// A scalar.
    fn param(mut self, bits: u64) -> Call {
        self.words.push(Word::Number(bits));
        self
    }

    /// The address of a buffer.
    fn address_of(mut self, buffer: usize) -> Call {
        self.words.push(Word::Data(self.buffers[buffer].0));
        self
    }

    /// A kernel, with a context.
    fn kernel(mut self, kernel: TestKernel, context: &[u64]) -> Call {
        let start = self.data.len();
        context.iter().for_each(|word| self.data.extend_from_slice(&word.to_le_bytes()));
        self.data.resize(self.data.len().next_multiple_of(GAP) + GAP, POISON);
        self.words.extend([Word::Kernel(kernel), Word::Data(start)]);
        self
    }
}

/// A call, and what it leaves: the status, and the same memory with the right results.
struct Trial {
    call: Call,
    after: Call,
    status: Status,
}

/// Runs a function on all executors, which do as the trials say.
fn check_all_executors(function: &Function, trials: &[Trial]) {
    let differs = |what: &str, at: usize, status: Status, data: &[u8]| {
        let Trial { call, after, status: right } = &trials[at];
        let what = format!("call {at}: {what}");
        assert_eq!(call.data.len(), after.data.len(), "the results are where the call has them");
        assert_eq!(status, *right, "{what}\n{function}");
        compare(call, data, &after.data, &what, function);
    };
    let interpreter = Interpreter::new(function);
    at_every_level(|| {
        for (at, trial) in trials.iter().enumerate() {
            // SAFETY: the arguments are those of the function.
            let (status, data) = run_here(&trial.call, |args| unsafe { interpreter.run(args) });
            differs("portable", at, status, &data);
        }
    });
    let code_for = |name: &str, target| {
        code_of(function, target, name).unwrap_or_else(|lacks| panic!("{name} lacks {lacks}\n{function}"))
    };
    for (name, target) in targets() {
        let code = code_for(name, target);
        for (at, trial) in trials.iter().enumerate() {
            let (status, data) = run_here(&trial.call, |args| execute(&code, args));
            differs(name, at, status, &data);
        }
    }
    let code = code_for("NEON", &Neon);
    let jobs: Vec<Job> = trials.iter().map(|trial| job(&trial.call, &code)).collect();
    for (at, outcome) in neon_run::run(&jobs).into_iter().flatten().enumerate() {
        let End::Status(status) = outcome.end else { panic!("call {at}: {:?}\n{function}", outcome.end) };
        differs("NEON", at, status, &outcome.data);
    }
}

/// A call of code for AArch64.
fn job(call: &Call, code: &[u8]) -> Job {
    Job { code: code.to_vec(), words: call.words.clone(), data: call.data.clone(), fpcr: 0 }
}

/// Runs a function of this machine on a copy of the data.
fn run_here(call: &Call, run: impl FnOnce(*const u64) -> u32) -> (u32, Vec<u8>) {
    // At a multiple of 64, as the runner has it.
    let mut memory = vec![0u8; call.data.len() + 64];
    let start = memory.as_ptr().align_offset(64);
    memory[start..start + call.data.len()].copy_from_slice(&call.data);
    let base = memory[start..].as_mut_ptr();
    let mut args: Vec<u64> = Vec::new();
    for word in &call.words {
        args.push(match *word {
            Word::Number(number) => number,
            Word::Data(offset) => base.wrapping_add(offset).expose_provenance() as u64,
            Word::Kernel(TestKernel::Record) => neon_run::record as *const () as u64,
            Word::Kernel(TestKernel::Mix) => neon_run::mix as *const () as u64,
            Word::Kernel(TestKernel::Status) => neon_run::status as *const () as u64,
        });
    }
    let status = run(args.as_ptr());
    (status, memory[start..start + call.data.len()].to_vec())
}

/// The words of the kernels for what a function applies.
pub(super) fn applied_words(function: &Function) -> Vec<u64> {
    let words = function.applied().into_iter().flat_map(|(rare, elem)| {
        let kernel = applied(rare, elem);
        [kernel.run as *const () as u64, kernel.context.addr() as u64]
    });
    words.collect()
}

/// The code of a function, checked, or what the target lacks.
pub(super) fn code_of(function: &Function, target: &dyn Target, what: &str) -> Result<Vec<u8>, String> {
    let code = lower(function, target).map_err(|lacks| lacks.0)?;
    let words = u32::from(function.buffers + function.params);
    let mut origins = Vec::new();
    let allocated = allocate(&code, target, words, Some(&mut origins));
    if let Err(problem) = check(&code, &allocated, &origins, target) {
        panic!("{what}: {problem}\n{function}");
    }
    Ok(target.encode(&allocated))
}

/// Executes code on this machine.
pub(super) fn execute(code: &[u8], args: *const u64) -> u32 {
    let length = code.len().next_multiple_of(4096);
    // SAFETY: a new mapping, written before it is executed, and gone after; the code is a function of these arguments.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::ptr::copy_nonoverlapping(code.as_ptr(), start.cast(), code.len());
        assert_eq!(libc::mprotect(start, length, libc::PROT_READ | libc::PROT_EXEC), 0);
        let entry: Entry = std::mem::transmute(start);
        let status = entry(args);
        libc::munmap(start, length);
        status
    }
}

/// Compares what two executors have left; NaNs are alike.
fn compare(call: &Call, one: &[u8], other: &[u8], what: &str, function: &Function) {
    if one == other {
        return;
    }
    let mut at = 0;
    for &(start, bytes, elem) in &call.buffers {
        assert_eq!(one[at..start], other[at..start], "{what}: beside the buffers\n{function}");
        at = start + bytes;
        let width = elem.bytes();
        let pairs = one[start..at].chunks(width).zip(other[start..at].chunks(width));
        for (position, (a, b)) in pairs.enumerate() {
            if a != b && !(is_nan(elem, a) && is_nan(elem, b)) {
                panic!(
                    "{what}: element {position} of the {elem} buffer at {start} is {a:?}, not {b:?}\n{function}"
                );
            }
        }
    }
    assert_eq!(one[at..], other[at..], "{what}: behind the buffers\n{function}");
}

fn is_nan(elem: Elem, bytes: &[u8]) -> bool {
    match elem {
        Elem::F32 => f32::from_le_bytes(bytes.try_into().expect("four bytes")).is_nan(),
        Elem::F64 => f64::from_le_bytes(bytes.try_into().expect("eight bytes")).is_nan(),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => false,
    }
}

/// The machines of this processor.
pub(super) fn targets() -> Vec<(&'static str, &'static dyn Target)> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut targets: Vec<(&'static str, &'static dyn Target)> = Vec::new();
        if is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
        {
            targets.push(("AVX-512", &super::emit::evex::Evex));
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            targets.push(("AVX2", &super::emit::vex::Vex));
        }
        targets
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}
