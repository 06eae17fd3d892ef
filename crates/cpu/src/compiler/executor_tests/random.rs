//! Random functions, the smallest first.

use super::*;
use crate::compiler::ir::random::{Case, Limits, Random, case};

const FLOATS: &[Elem] = &[Elem::F32];
const WIDE: &[Elem] = &[Elem::F32, Elem::F64, Elem::I32, Elem::I64];
const ALL: &[Elem] = &[Elem::F32, Elem::F64, Elem::I8, Elem::I16, Elem::I32, Elem::I64];
const INTEGERS: &[Elem] = &[Elem::I8, Elem::I16, Elem::I32, Elem::I64];
const SHORT: &[Elem] = &[Elem::I8, Elem::I16];

fn call_of(case: &Case, random: &mut Random) -> Call {
    let mut call = Call::new();
    for (at, &(elem, bytes)) in case.buffers.iter().enumerate() {
        // Buffers begin anywhere.
        let skew = random.below(8);
        let of_input = |_| if at < case.inputs { element(elem, random) } else { 0 };
        call.buffer(elem, skew, (0..bytes / elem.bytes()).map(of_input));
    }
    // The function may have more buffers than it uses.
    call.words.resize(usize::from(case.function.buffers), Word::Data(0));
    let addresses = call.words.clone();
    call = case.params.iter().fold(call, |call, &param| call.param(param));
    call.words.extend(addresses);
    call = call.kernel(TestKernel::Mix, &[0]);
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
            let Ok(code) = code_of(&case.function, target, &format!("seed {seed}")) else { continue };
            compiled += 1;
            let (status, data) = run_here(&call, |args| execute(&code, args));
            assert_eq!(status, right.0, "seed {seed}");
            compare(&call, &data, &right.1, &format!("seed {seed}: {name}"), &case.function);
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
        let Ok(code) = code_of(&case.function, &Neon, &format!("seed {seed}")) else { continue };
        cases.push((seed, case, call, code));
    }
    let jobs: Vec<Job> = cases.iter().map(|(_, _, call, code)| job(call, code)).collect();
    let Some(outcomes) = neon_run::run(&jobs) else { return };
    println!("{} functions compiled", jobs.len());
    for ((seed, case, call, _), outcome) in cases.iter().zip(outcomes) {
        let interpreter = Interpreter::new(&case.function);
        // SAFETY: the arguments are those of the function.
        let right = run_here(call, |args| unsafe { interpreter.run(args) });
        assert_eq!(outcome.end, End::Status(right.0), "seed {seed}\n{}", case.function);
        compare(call, &outcome.data, &right.1, &format!("seed {seed}: NEON"), &case.function);
    }
}
