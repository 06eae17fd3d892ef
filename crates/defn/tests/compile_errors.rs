//! What the compiler says of common mistakes. `TRYBUILD=overwrite` rewrites the texts.

use std::process::Command;

/// The version of the compiler whose words the texts have; another one may say the same in other words.
const VERSION: &str = "rustc 1.95.";

#[test]
fn mistakes_are_explained() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    if !String::from_utf8_lossy(&version).starts_with(VERSION) {
        println!("skipped: the texts are those of {VERSION}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
