//! Compares the declared layouts with the header in a plugin's wheel.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::layouts;
use crate::wheel;

/// The C compiler's figures: compiles and runs a program that prints the size of every struct and the offset of every
/// field.
fn measured(header: &Path) -> BTreeMap<String, usize> {
    let folder =
        PathBuf::from(std::env::var_os("CARGO_TARGET_TMPDIR").unwrap_or_else(|| std::env::temp_dir().into()))
            .join(format!("defn-pjrt-layouts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut source = format!(
        "#include <stdio.h>\n#include <stddef.h>\n#include \"{}\"\nint main(void) {{\n",
        header.display()
    );
    for layout in layouts() {
        let name = layout.name;
        writeln!(source, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        for (field, _) in &layout.fields {
            writeln!(source, "printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));").unwrap();
        }
    }
    source.push_str("return 0; }\n");
    let (file, program) = (folder.join("layouts.c"), folder.join("layouts"));
    std::fs::write(&file, source).unwrap();
    let built = Command::new("cc").arg("-o").args([&program, &file]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let printed = Command::new(&program).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let figure = |line: &str| {
        let (name, value) = line.split_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    String::from_utf8(printed.stdout).unwrap().lines().map(figure).collect()
}

#[test]
fn layouts_are_those_of_the_header() {
    let measured = measured(&wheel::file("include/pjrt_c_api.h"));
    let mut compared = 0;
    for layout in layouts() {
        // The table is declared only up to the last function that is used.
        if layout.size > 0 {
            assert_eq!(layout.size, measured[layout.name], "size of {}", layout.name);
        }
        for (field, offset) in layout.fields {
            let name = format!("{}.{field}", layout.name);
            assert_eq!(offset, measured[&name], "offset of {name}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared} fields were compared");
}
