//! Loading plugins: one built here by the C compiler that also links Rust, and files that are not plugins.

use std::path::{Path, PathBuf};
use std::process::Command;

use defn_pjrt::{Attribute, Code, Error, Plugin, Version};

/// Builds `plugin.c` with the given macros.
fn build(name: &str, major: i32, size: usize, fail: bool) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&out)
        .arg(format!("-DMAJOR={major}"))
        .arg(format!("-DSIZE={size}"))
        .arg(format!("-DFAIL={}", i32::from(fail)))
        .arg(&source)
        .status()
        .expect("the linker driver that Rust needs is there");
    assert!(status.success());
    out
}

#[test]
fn a_plugin_says_what_it_is() {
    let plugin = Plugin::load(build("good", 0, 984, false)).unwrap();
    assert_eq!(plugin.version(), Version { major: 0, minor: 81 });
    assert_eq!(plugin.extensions(), [4, 9]);
    assert_eq!(
        plugin.attributes().unwrap(),
        [
            ("xla_version".to_owned(), Attribute::Int(2)),
            ("stablehlo_current_version".to_owned(), Attribute::Ints(vec![1, 13, 0])),
        ]
    );
}

#[test]
fn other_versions_and_short_tables_are_refused_before_a_call() {
    let major = Plugin::load(build("major", 1, 984, false)).unwrap_err();
    assert!(matches!(major, Error::Version { major: 1, .. }), "{major}");
    let short = Plugin::load(build("short", 0, 24, false)).unwrap_err();
    assert!(matches!(short, Error::Version { size: 24, .. }), "{short}");
}

#[test]
fn a_plugins_own_error_comes_with_its_code_and_text() {
    let error = Plugin::load(build("failing", 0, 984, true)).unwrap_err();
    let Error::Plugin { call, code, message } = error else { panic!("{error}") };
    assert_eq!(
        (call, code, message.as_str()),
        ("PJRT_Plugin_Initialize", Code::ResourceExhausted, "no memory left")
    );
}

#[test]
fn what_is_no_plugin_is_named() {
    let absent = Plugin::load("no/such/file.so").unwrap_err();
    assert!(absent.to_string().contains("no/such/file.so"), "{absent}");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.c");
    std::fs::write(&source, "int nothing;\n").unwrap();
    let other = source.with_extension("so");
    assert!(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&other, &source])
            .status()
            .unwrap()
            .success()
    );
    assert!(matches!(Plugin::load(&other).unwrap_err(), Error::NoPlugin { .. }));
}
