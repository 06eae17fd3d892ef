//! The processor that programs for the host are compiled for: another one may lack its features.

use std::fs;

use super::digest::{digest_of, hex};

/// The processor as text: its name, if the system reports it, and a digest of its features.
pub(super) fn processor() -> String {
    describe(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn describe(text: &str) -> String {
    let find = |names: &[&str]| {
        let value = |line: &str| {
            let (name, value) = line.split_once(':')?;
            names.contains(&name.trim()).then(|| value.trim().to_owned())
        };
        text.lines().find_map(value).unwrap_or_default()
    };
    let features = digest_of(&[find(&["flags", "Features"]).as_bytes()]);
    let model = find(&["model name", "CPU part"]);
    format!("{} {model} {}", std::env::consts::ARCH, &hex(&features)[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_feature_is_another_processor() {
        let of =
            |features: &str| describe(&format!("processor : 0\nmodel name\t: A 1\nflags\t\t: {features}\n"));
        assert!(of("sse avx").contains(" A 1 "));
        assert_eq!(of("sse avx"), of("sse avx"));
        assert_ne!(of("sse avx"), of("sse"));
        assert_ne!(of("sse"), describe(""));
    }
}
