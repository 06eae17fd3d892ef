//! Random graphs on this machine, and their nests on AArch64.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::values::{Mixed, elements};
use super::*;
use crate::compiler::emit::neon::Neon;
use crate::compiler::emit::neon_run::{self, Case, End, Word};
use crate::compiler::executor_tests::code_of;
use crate::compiler::nest::test_hooks::{lacking, take_recorded};
use crate::kernels::TILE;
use crate::kernels::reduce::CHUNK;
use defn_core::region::Region;

/// The programs that the tests are running: two of graphs, and one of loops and branches.
static CURRENT: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Tells the programs before the process ends by a signal.
extern "C" fn tell(signal: libc::c_int) {
    let mut text = *b"\nrandom graph 00000000 or 00000000, or program 00000000\n";
    for (current, start) in CURRENT.iter().zip([14, 26, 47]) {
        let mut seed = current.load(Ordering::Relaxed);
        for digit in text[start..start + 8].iter_mut().rev() {
            *digit = b'0' + (seed % 10) as u8;
            seed /= 10;
        }
    }
    // SAFETY: both may be called in a handler.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::signal(signal, libc::SIG_DFL);
    }
}

/// Graphs from one number on: by the environment, or few.
pub(super) fn range(variable: &str, few: u64) -> std::ops::Range<u64> {
    let number = |name: String| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number(format!("{variable}_FROM")).unwrap_or(0);
    first..first + number(variable.to_owned()).unwrap_or(few)
}

fn graph(seed: u64) -> Option<RandomProgram> {
    program(Choices::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Checks the programs of these seeds; returns how many were made and how many of them have run. `current` is where the
/// test keeps the seed.
fn check_all(
    current: &AtomicU64,
    seeds: impl Iterator<Item = u64>,
    mut make: impl FnMut(u64) -> Option<RandomProgram>,
) -> (u64, u64) {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
        // SAFETY: the handler does nothing that handlers may not do.
        unsafe { libc::signal(signal, tell as *const () as libc::sighandler_t) };
    }
    let (mut made, mut ran) = (0, 0);
    let mut found = Vec::new();
    let go_on = std::env::var_os("DEFN_RANDOM_GRAPHS_ALL").is_some();
    for seed in seeds {
        current.store(seed, Ordering::Relaxed);
        let Some(program) = make(seed) else { continue };
        made += 1;
        let check = AssertUnwindSafe(|| program.check([2, 7][seed as usize % 2], seed % 4 < 2, false));
        let panicked = |_| Err(format!("panicked in\n{}", program.region.to_text()));
        match catch_unwind(check).unwrap_or_else(panicked) {
            Ok(has_run) => ran += u64::from(has_run),
            Err(difference) if go_on => {
                println!("seed {seed}: {difference}");
                found.push(seed);
            }
            Err(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    assert!(found.is_empty(), "{found:?}");
    (made, ran)
}

/// One half of the graphs; the other one runs at the same time.
fn executors_give_the_bits_of_the_evaluator(half: u64) {
    let mut loops = 0;
    let seeds = range("DEFN_RANDOM_GRAPHS", 1_000).filter(|seed| seed / 4 % 2 == half);
    let (made, ran) = check_all(&CURRENT[half as usize], seeds, |seed| {
        let program = graph(seed)?;
        match (seed % 4 == 3).then(|| program.looped()).flatten() {
            Some(looped) => {
                loops += 1;
                Some(looped)
            }
            None => Some(program),
        }
    });
    println!("{made} graphs made, {loops} of them loops, {ran} run; {} functions lack code", lacking());
    assert!(ran * 10 > made * 9);
}

#[test]
fn all_executors_give_the_bits_of_the_evaluator() {
    executors_give_the_bits_of_the_evaluator(0);
}

#[test]
fn all_executors_give_the_bits_of_the_evaluator_in_other_graphs() {
    executors_give_the_bits_of_the_evaluator(1);
}

#[test]
fn loops_and_branches_give_the_bits_of_the_evaluator() {
    let mut derived = 0;
    let (made, ran) = check_all(&CURRENT[2], range("DEFN_RANDOM_PROGRAMS", 600), |seed| {
        let program = control::program(Choices::Seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))?;
        match (seed % 5 == 4).then(|| program.differentiated()).flatten() {
            Some(differentiated) => {
                derived += 1;
                Some(differentiated)
            }
            None => Some(program),
        }
    });
    println!(
        "{made} programs made, {derived} of them gradients, {ran} run; {} functions lack code",
        lacking()
    );
    assert!(ran * 10 > made * 8);
}

#[test]
fn nests_for_neon_give_the_same() {
    let mut cases = Vec::new();
    for seed in range("DEFN_RANDOM_NEON_GRAPHS", 500) {
        let Some(program) = graph(seed) else { continue };
        if program.check(1, false, true).is_err() {
            // Another test tells.
            take_recorded();
            continue;
        }
        for recorded in take_recorded() {
            // The runner has none of our kernels.
            if !recorded.function.applied().is_empty() {
                continue;
            }
            let Ok(code) = code_of(&recorded.function, &Neon, &format!("seed {seed}")) else { continue };
            let words = recorded.offsets.iter().map(|&offset| Word::Data(offset));
            let words = words.chain(recorded.numbers.iter().map(|&number| Word::Number(number))).collect();
            let data = recorded.before.clone();
            cases.push((program.region.clone(), seed, recorded, Case { code, words, data, fpcr: 0 }));
        }
    }
    println!("{} calls", cases.len());
    let jobs: Vec<Case> = cases.iter().map(|(.., job)| job.clone()).collect();
    let Some(outcomes) = neon_run::run(&jobs) else { return };
    for ((region, seed, recorded, _), outcome) in cases.iter().zip(outcomes) {
        let what = || format!("seed {seed}\n{}\n{}", recorded.function, region.to_text());
        assert_eq!(outcome.end, End::Status(0), "{}", what());
        let mut got = outcome.data;
        for (start, ty) in &recorded.results {
            let bytes = *start..start + ty.byte_size();
            let differ = difference(ty, &recorded.after[bytes.clone()], &got[bytes.clone()]);
            assert_eq!(differ, None, "at {start}, {}", what());
            got[bytes.clone()].copy_from_slice(&recorded.after[bytes]);
        }
        let at = got.iter().zip(&recorded.after).position(|(got, want)| got != want);
        assert_eq!(at, None, "beside results, {}", what());
    }
}

#[test]
fn bytes_choose_programs_too() {
    let mut number = Choices::Seed(1);
    let mut ran = 0;
    for _ in 0..40 {
        let bytes: Vec<u8> = (0..200).map(|_| number.below(256) as u8).collect();
        ran += u32::from(check_bytes(&bytes) == Ok(true));
    }
    assert!(ran > 30, "{ran}");
    assert_eq!(check_bytes(&[]), Ok(true));
}

/// Programs in which random graphs have found errors.
const FOUND: &[(&str, &str)] = &[
    (
        "results of a reduction over several axes lie in the order of their own axes",
        "(f32[5][1]) {
          %0 = parameter {index: 0} : f32[5][1]
          %1 = atan %0 : f32[5][1]
          %2 = broadcast %0 {shape: [5, 1, 3], axes: [0, 1]} : f32[5][1][3]
          %3 = multiply %1 %2 : f32[5][5][3]
          %4 = product %3 {axes: [0, 2], keep_axes: false} : f32[5]
          return %3 %2 %4
        }",
    ),
    (
        "a group that reads a concatenation is not part of another one too",
        "(f8_e5m2[255]) {
          %0 = parameter {index: 0} : f8_e5m2[255]
          %1 = constant {value: 1.0} : f8_e5m2
          %2 = pad %0 %1 {config: [(1, -1, 0)]} : f8_e5m2[255]
          %3 = as_type %2 : c128[255]
          %4 = constant {value: (1.0, 0.0)} : c128
          %5 = pad %3 %4 {config: [(1, 2, 0)]} : c128[258]
          return %5
        }",
    ),
    (
        "of numbers that nobody needs no pairs are loaded",
        "(c128[4][255], s8[1][1]) {
          %0 = parameter {index: 0} : c128[4][255]
          %1 = subtract %0 %0 : c128[4][255]
          %2 = parameter {index: 1} : s8[1][1]
          %3 = gather %1 %2 {axes: [0]} : c128[1][255]
          %4 = logical_and %3 %3 : bool[1][255]
          %5 = imag %4 : f32[1][255]
          return %5
        }",
    ),
    (
        "infinities have no sign of a NaN",
        "(c64[40][64]) {
          %0 = parameter {index: 0} : c64[40][64]
          %1 = sum %0 {axes: [1], keep_axes: false} : c64[40]
          %2 = concatenate %1 %1 {axis: 0} : c64[80]
          %3 = asinh %2 : c64[80]
          return %3
        }",
    ),
    (
        "axes of one element do not change the order of a sum",
        "(f32[3][127][1], s32[12][1]) {
          %0 = parameter {index: 0} : f32[3][127][1]
          %1 = sum %0 {axes: [0, 2], keep_axes: false} : f32[127]
          %2 = parameter {index: 1} : s32[12][1]
          %3 = gather %1 %2 {axes: [0]} : f32[12]
          return %3
        }",
    ),
    (
        "values of rows that need no reduction are there where pieces of long rows are joined",
        "(f32[4104]) {
          %0 = parameter {index: 0} : f32[4104]
          %1 = dot %0 %0 {contract_a: [0], batch_a: [], contract_b: [0], batch_b: []} : f32
          %2 = argmin %0 {tie_break: \"low\", axis: none, keep_axis: false} : s32
          %3 = logical_and %1 %1 : bool
          %4 = right_shift %2 %3 : s32
          return %4 %2
        }",
    ),
    (
        "rows of a box are as far apart as those of its result",
        "(s16[9][12][16], c64[9][12][16]) {
          %0 = parameter {index: 0} : s16[9][12][16]
          %1 = parameter {index: 1} : c64[9][12][16]
          %2 = right_shift %0 %0 : s16[9][12][16]
          %3 = concatenate %1 %2 {axis: 2} : c64[9][12][32]
          return %3
        }",
    ),
];

#[test]
fn errors_that_were_found_stay_mended() {
    // A program of one's own, to make a finding smaller.
    let own = std::env::var("DEFN_RANDOM_TEXT").ok();
    let own = own.iter().map(|text| ("own", text.as_str()));
    for (name, text) in FOUND.iter().copied().chain(own) {
        let region = Region::from_text(&format!("defn-ir 1\n{text}")).unwrap();
        let mut source = Mixed::new(7);
        let arguments = region.inputs().iter().map(|ty| elements(ty, None, &mut source)).collect();
        let (region, chunk) = (Arc::new(region), CHUNK);
        let mut program = RandomProgram { region, arguments, chunk, forces_epilogues: false };
        for (at_end, chunk, forces_epilogues) in
            [(false, CHUNK, false), (true, CHUNK, true), (true, TILE, false)]
        {
            program.chunk = chunk;
            program.forces_epilogues = forces_epilogues;
            assert_eq!(program.check(2, at_end, false), Ok(true), "{name}");
        }
    }
}
