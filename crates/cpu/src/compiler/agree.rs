//! Random functions on all executors: the portable one, AVX2, AVX-512 and NEON give the same bits, and touch nothing but
//! what they are given.

use super::emit::neon_run::{self, Case as Job, End, TestKernel, Word};
use super::emit::registers::allocate;
use super::emit::{Entry, Target, check::check, neon::Neon};
use super::interpret::Interpreter;
use super::ir::functions::rare::applied;
use super::ir::random::{Case, Limits, Random, case};
use super::ir::{Elem, Function};
use super::schedule::{Unsupported, lower};

/// What lies between buffers.
const POISON: u8 = 0xA5;
/// The bytes between buffers.
const GAP: usize = 64;

const FLOATS: &[Elem] = &[Elem::F32];
const WIDE: &[Elem] = &[Elem::F32, Elem::F64, Elem::I32, Elem::I64];
const ALL: &[Elem] = &[Elem::F32, Elem::F64, Elem::I8, Elem::I16, Elem::I32, Elem::I64];
const INTEGERS: &[Elem] = &[Elem::I8, Elem::I16, Elem::I32, Elem::I64];
const SHORT: &[Elem] = &[Elem::I8, Elem::I16];

/// The memory of a case, and its arguments.
struct Call {
    data: Vec<u8>,
    words: Vec<Word>,
    /// Where buffers begin, their bytes, and the type of their elements.
    buffers: Vec<(usize, usize, Elem)>,
}

fn call_of(case: &Case, random: &mut Random) -> Call {
    let mut call = Call { data: vec![POISON; GAP], words: Vec::new(), buffers: Vec::new() };
    for (at, &(elem, bytes)) in case.buffers.iter().enumerate() {
        // Buffers begin anywhere.
        let start = call.data.len() + random.below(8) * elem.bytes();
        call.data.resize(start, POISON);
        call.words.push(Word::Data(start));
        call.buffers.push((start, bytes, elem));
        for _ in 0..bytes / elem.bytes() {
            let element = if at < case.inputs { element(elem, random) } else { 0 };
            call.data.extend_from_slice(&element.to_le_bytes()[..elem.bytes()]);
        }
        call.data.resize(call.data.len().next_multiple_of(GAP) + GAP, POISON);
    }
    // The function may have more buffers than it uses.
    call.words.resize(usize::from(case.function.buffers), Word::Data(0));
    call.words.extend(case.params.iter().map(|&param| Word::Number(param)));
    let context = call.data.len();
    call.data.extend_from_slice(&0u64.to_le_bytes());
    call.words.extend([Word::Kernel(TestKernel::Mix), Word::Data(context)]);
    call.words.extend(applied_words(&case.function).into_iter().map(Word::Number));
    call
}

/// The bits of an element: mostly small numbers, now and then odd ones.
fn element(elem: Elem, random: &mut Random) -> u64 {
    let odd = random.below(16) == 0;
    let number = random.below(4000) as f64 / 500.0 - 4.0;
    match elem {
        Elem::F32 if odd => {
            let all = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, 3e38, -1e10, 0.5];
            all[random.below(all.len())].to_bits().into()
        }
        Elem::F64 if odd => {
            let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, 1e308, -1e10, 0.5];
            all[random.below(all.len())].to_bits()
        }
        Elem::F32 => (number as f32).to_bits().into(),
        Elem::F64 => number.to_bits(),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index if odd => {
            (random.below(1 << 30) as u64) << random.below(40)
        }
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => {
            (number * 30.0) as i64 as u64
        }
    }
}

/// Runs a function of this machine on a copy of the data.
fn run_here(call: &Call, run: impl FnOnce(*const u64) -> u32) -> (u32, Vec<u8>) {
    // At a multiple of 64, as the runner has it.
    let mut room = vec![0u8; call.data.len() + 64];
    let start = room.as_ptr().align_offset(64);
    room[start..start + call.data.len()].copy_from_slice(&call.data);
    let base = room[start..].as_mut_ptr();
    let mut args: Vec<u64> = Vec::new();
    for word in &call.words {
        args.push(match *word {
            Word::Number(number) => number,
            Word::Data(offset) => base.wrapping_add(offset).expose_provenance() as u64,
            Word::Kernel(_) => neon_run::mix as *const () as u64,
        });
    }
    let status = run(args.as_ptr());
    (status, room[start..start + call.data.len()].to_vec())
}

/// The code of a function, checked. None where the target lacks an op.
fn code_of(case: &Case, target: &dyn Target, seed: u64) -> Option<Vec<u8>> {
    machine_code(&case.function, target, &format!("seed {seed}")).ok()
}

/// The code of a function, checked.
///
/// # Errors
/// The target lacks an op.
pub(super) fn machine_code(
    function: &Function,
    target: &dyn Target,
    what: &str,
) -> Result<Vec<u8>, Unsupported> {
    let code = lower(function, target)?;
    let words = u32::from(function.buffers + function.params);
    let mut origins = Vec::new();
    let allocated = allocate(&code, target, words, Some(&mut origins));
    if let Err(problem) = check(&code, &allocated, &origins, target) {
        panic!("{what}: {problem}\n{function}");
    }
    Ok(target.encode(&allocated))
}

/// The words of the kernels for what a function applies.
pub(super) fn applied_words(function: &Function) -> Vec<u64> {
    let words = function.applied().into_iter().flat_map(|(rare, elem)| {
        let kernel = applied(rare, elem);
        [kernel.run as *const () as u64, kernel.context.addr() as u64]
    });
    words.collect()
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
fn compare(call: &Call, one: &[u8], other: &[u8], what: &str, seed: u64, case: &Case) {
    if one == other {
        return;
    }
    let mut at = 0;
    for &(start, bytes, elem) in &call.buffers {
        assert_eq!(
            one[at..start],
            other[at..start],
            "seed {seed}: {what} wrote beside its buffers\n{}",
            case.function
        );
        at = start + bytes;
        let width = elem.bytes();
        for (position, (a, b)) in one[start..at].chunks(width).zip(other[start..at].chunks(width)).enumerate()
        {
            if a != b && !(is_nan(elem, a) && is_nan(elem, b)) {
                panic!(
                    "seed {seed}: {what} differs at element {position} of the {elem} buffer at {start}: {a:?} {b:?}\n{}",
                    case.function
                );
            }
        }
    }
    assert_eq!(one[at..], other[at..], "seed {seed}: {what} wrote behind its buffers\n{}", case.function);
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

/// A random case, the smallest functions first.
fn random_case(seed: u64) -> (Case, Call) {
    let mut random = Random(seed);
    for _ in 0..8 {
        random.below(2);
    }
    let elems = [FLOATS, WIDE, ALL, INTEGERS, SHORT][random.below(5)];
    let kinds = Limits { size: 2 + (seed as usize / 40).min(40), reach: 2 + random.below(40), elems };
    let columns =
        [random.below(8), random.below(40), random.below(300), 16 * random.below(20)][random.below(4)];
    let case = case(&mut random, kinds, 1 + columns);
    let call = call_of(&case, &mut random);
    (case, call)
}

/// How many functions are compared: by the environment, or few.
fn count(variable: &str, few: u64) -> u64 {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

#[test]
fn machine_code_is_as_the_portable_executor() {
    let mut compiled = 0;
    for seed in 0..count("DEFN_RANDOM_FUNCTIONS", 2000) {
        let (case, call) = random_case(seed);
        let interpreter = Interpreter::new(&case.function);
        // SAFETY: the arguments are those of the function.
        let right = run_here(&call, |args| unsafe { interpreter.run(args) });
        for (name, target) in targets() {
            let Some(code) = code_of(&case, target, seed) else { continue };
            compiled += 1;
            let (status, data) = run_here(&call, |args| execute(&code, args));
            assert_eq!(status, right.0, "seed {seed}");
            compare(&call, &data, &right.1, name, seed, &case);
        }
    }
    println!("{compiled} functions compiled");
    assert!(targets().is_empty() || compiled > 0);
}

#[test]
fn neon_is_as_the_portable_executor() {
    let mut cases = Vec::new();
    for seed in 0..count("DEFN_RANDOM_NEON", 500) {
        let (case, call) = random_case(seed);
        // The runner has none of our kernels.
        if !case.function.applied().is_empty() {
            continue;
        }
        let Some(code) = code_of(&case, &Neon, seed) else { continue };
        cases.push((seed, case, call, code));
    }
    let jobs: Vec<Job> = cases
        .iter()
        .map(|(_, _, call, code)| Job {
            code: code.clone(),
            words: call.words.clone(),
            data: call.data.clone(),
            fpcr: 0,
        })
        .collect();
    let Some(outcomes) = neon_run::run(&jobs) else { return };
    println!("{} functions compiled", jobs.len());
    for ((seed, case, call, _), outcome) in cases.iter().zip(outcomes) {
        let interpreter = Interpreter::new(&case.function);
        // SAFETY: the arguments are those of the function.
        let right = run_here(call, |args| unsafe { interpreter.run(args) });
        assert_eq!(outcome.end, End::Status(right.0), "seed {seed}\n{}", case.function);
        compare(call, &outcome.data, &right.1, "NEON", *seed, case);
    }
}
