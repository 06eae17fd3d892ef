//! Every example runs, and prints what it should.
//!
//! `cargo test` builds the examples. `cargo test --test examples` does not, so that this test builds them where they are
//! missing or older than their sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Examples that do not run here, and where their parts are tested.
const ELSEWHERE: [(&str, &str); 1] = [("devices", "needs a plugin; tests/devices.rs trains in the same way")];

/// The names of all examples.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    fs::read_dir(folder).unwrap().map(|entry| stem(entry.unwrap().path())).collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Whether a program is there, and no older than the sources that cargo lists beside it.
fn is_fresh(program: &Path) -> bool {
    let (Some(built), Ok(list)) = (modified(program), fs::read_to_string(program.with_extension("d"))) else {
        return false;
    };
    let list = list.replace("\\ ", "\0");
    let mut sources = list.split_whitespace().skip(1).map(|source| source.replace('\0', " "));
    sources.all(|source| modified(Path::new(&source)).is_some_and(|changed| changed <= built))
}

/// The folder of the built examples.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // The tests are in target/<profile>/deps.
        let test = std::env::current_exe().unwrap();
        let profile_folder = test.parent().unwrap().parent().unwrap();
        let folder = profile_folder.join("examples");
        let program = |name: &String| folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let is_here = |name: &&String| !ELSEWHERE.iter().any(|(other, _)| other == name);
        if !names().iter().filter(is_here).all(|name| is_fresh(&program(name))) {
            let profile = match profile_folder.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                other => other,
            };
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--locked", "--package", "defn", "--examples", "--profile", profile]);
            cargo.arg("--target-dir").arg(profile_folder.parent().unwrap());
            assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
        }
        folder
    })
}

/// Whether a line fits a pattern, in which `*` stands for any text.
fn fits(line: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return line == pattern };
    let Some(line) = line.strip_prefix(head) else { return false };
    (0..=line.len()).filter(|&at| line.is_char_boundary(at)).any(|at| fits(&line[at..], rest))
}

/// Runs an example, and compares each line that it prints with a pattern.
#[track_caller]
fn prints(name: &str, arguments: &[&str], patterns: &[&str]) {
    let output = Command::new(folder().join(name)).args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
    assert_eq!(out.lines().count(), patterns.len(), "{name} printed\n{out}");
    for (line, pattern) in out.lines().zip(patterns) {
        assert!(fits(line, pattern), "{name} printed\n{line}\nwhich is not\n{pattern}");
    }
}

/// A path of a file that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("defn-examples-{}-{name}", process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[test]
fn every_example_has_a_test() {
    let tests = include_str!("examples.rs");
    for name in names() {
        let is_tested = tests.contains(&format!("    prints(\"{name}\", "));
        let is_elsewhere = ELSEWHERE.iter().any(|(other, _)| *other == name);
        assert!(is_tested != is_elsewhere, "{name}: an example has one test, or a reason why it has none");
    }
}

#[test]
fn digits() {
    let lines = [
        "1437 digits to train on, 360 held out",
        "epoch  1: loss 1.07*, accuracy 0.7*",
        "epoch  2: loss 0.3*, accuracy 0.9*",
        "88 steps in * s: * ms a step",
        "test accuracy: 9*%",
    ];
    prints("digits", &["--epochs", "2"], &lines);
}

#[test]
fn gpt_step() {
    let lines = [
        "step  50: loss *",
        "step 100: loss *",
        "step 150: loss *",
        "step 200: loss 0.1*",
        "This is the house that Jack built. *",
        "* ms a step",
    ];
    prints("gpt_step", &[], &lines);
}

#[test]
fn kalman() {
    let lines = [
        "measurements are off by 1.116, estimates by 0.349",
        "learnt noise 0.792, true 0.8",
        "* ms a filter, * ms in plain Rust; * ms with two derivatives",
    ];
    prints("kalman", &[], &lines);
}

#[test]
fn kmeans() {
    let lines = [
        "10000 points, 5 iterations",
        "true ( 0.0,  0.0), found (-0.00, -0.01)",
        "true ( 6.0,  1.0), found ( 5.99,  0.99)",
        "true ( 2.0,  7.0), found ( 2.04,  7.04)",
        "true (-5.0,  4.0), found (-5.03,  4.02)",
        "true (-3.0, -6.0), found (-3.03, -6.02)",
        "* ms compiled, with the start; * ms plain",
    ];
    prints("kmeans", &[], &lines);
}

#[test]
fn ode_fit() {
    let lines = [
        "update   0: loss 1.294e0",
        "update 100: loss *e-5",
        "update 200: loss *e-6",
        "update 300: loss *e-7",
        "update 400: loss *e-9",
        "update 500: loss *e-10",
        "fitted 0.5*, true 0.55000",
        "fitted 0.02*, true 0.02800",
        "fitted 0.02*, true 0.02400",
        "fitted 0.*, true 0.80000",
        "* ms an update, * ms a loss in plain Rust",
    ];
    prints("ode_fit", &[], &lines);
}

#[test]
fn own_backend() {
    prints("own_backend", &[], &["sin *, cos *"]);
}

#[test]
fn own_compiler() {
    prints("own_compiler", &[], &["slope -2.031088", "*tanh*"]);
}

#[test]
fn ray_marcher() {
    let file = Scratch::new("picture.ppm");
    let lines = [
        "11108 pixels of the sphere, 14870 of the plane, greatest error *e-*",
        "* ms, written to *picture.ppm",
    ];
    prints("ray_marcher", &[file.path()], &lines);
    let picture = fs::read(&file.0).unwrap();
    let pixels = picture.strip_prefix(b"P6\n320 200\n255\n").unwrap();
    assert_eq!(pixels.len(), 3 * 320 * 200);
    assert_eq!(pixels[..3], [153, 191, 230], "the sky");
}

#[test]
fn service() {
    let file = Scratch::new("digits.safetensors");
    for kind in ["trained and saved", "loaded"] {
        let kind = format!("parameters {kind}");
        let lines = [
            &kind,
            "an image of 3 pixels: status 400, call: argument * is f32[3]*",
            "an image of a word: status 400, Failed to deserialize *",
            "* requests over 8 connections, * a second",
            "latency: p50 * ms, p99 * ms, max * ms",
            "9*% of the digits are right, 0 errors",
        ];
        prints("service", &["--parameters", file.path(), "--load", "8", "1"], &lines);
    }
}
