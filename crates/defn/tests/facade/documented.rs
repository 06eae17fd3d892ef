//! Every public item of the facade has an example: items, the entries of its op tables, and what it re-exports.

use std::fs;
use std::path::{Path, PathBuf};

use defn::core::op::{BinaryOp, UnaryOp};

/// The op tables, by the macro that reads them, and where an entry has its example.
const TABLES: [(&str, Example); 9] = [
    ("shared", Example::Clause("example {")),
    ("methods", Example::Clause("example {")),
    ("with_operands", Example::Clause("example {")),
    ("unary", Example::Clause("example {")),
    ("binary", Example::Clause("example {")),
    ("rows", Example::Clause("{ (")),
    ("constants", Example::Clause(" \"")),
    ("functions", Example::Docs),
    ("draws", Example::Docs),
];

/// Where the example of a table's entry is.
#[derive(Clone, Copy)]
enum Example {
    /// In its documentation.
    Docs,
    /// After it, in a clause that the table's macro turns into documentation.
    Clause(&'static str),
}

/// A public item, and whether it has an example.
#[derive(Debug)]
struct Item {
    name: String,
    line: String,
    has_example: bool,
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            found.push(path);
        }
    }
    found
}

fn crates(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

/// The word at the beginning of a text.
fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// The name of the public item that a line declares: in a trait, of a method.
fn declared(line: &str, is_in_trait: bool) -> Option<&str> {
    let kinds = ["fn ", "const fn ", "struct ", "enum ", "trait ", "type ", "static ", "const ", "mod "];
    let name = if is_in_trait {
        line.strip_prefix("fn ")
    } else {
        let line = line.strip_prefix("pub ")?;
        kinds.iter().find_map(|kind| line.strip_prefix(kind))
    };
    name.map(word).filter(|name| !name.is_empty())
}

/// Whether a line of a table begins an entry: what belongs to one is a level down, or has a name of its own.
fn begins_entry(line: &str) -> bool {
    let is_first_level = line.starts_with("    ") && !line.starts_with("     ");
    is_first_level && !["", "errors", "example"].contains(&word(line.trim()))
}

/// The public items of a file, entries of op tables among them.
fn items(path: &Path, with_macros: bool) -> Vec<Item> {
    items_of(path, &fs::read_to_string(path).unwrap(), with_macros)
}

/// The rows that the facade shares with Python, which stand in macros of the core.
fn shared_rows() -> Vec<Item> {
    let rows = sources(&crates("core").join("functions")).into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let inner = text.split_once("        $then! {\n").map_or("", |(_, inner)| inner);
        let inner: Vec<&str> =
            inner.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
        items_of(&path, &format!("shared! {{\n{}", inner.join("\n")), false)
    });
    rows.collect()
}

/// As [`items`], of a file with this text.
fn items_of(path: &Path, text: &str, with_macros: bool) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let mut items = Vec::new();
    let mut docs = String::new();
    let (mut table, mut is_in_trait, mut is_hidden) = (None, false, false);
    for (number, &whole) in lines.iter().enumerate() {
        let line = whole.trim();
        let position = || format!("{}:{}", path.display(), number + 1);
        if whole == "}" || whole == "]" {
            (table, is_in_trait, is_hidden) = (None, false, false);
        }
        if line.starts_with("///") || line.starts_with("#[") {
            docs.push_str(line);
            docs.push('\n');
            continue;
        }
        let docs = std::mem::take(&mut docs);
        if let Some(name) = line.strip_prefix("macro_rules! ") {
            is_hidden = !with_macros;
            if docs.contains("#[macro_export]") && !docs.contains("#[doc(hidden)]") {
                let has_example = docs.contains("```");
                items.push(Item { name: word(name).to_owned(), line: position(), has_example });
            }
            continue;
        }
        if whole.starts_with("mod ") && whole.ends_with('{') {
            is_hidden = true;
            continue;
        }
        if let Some((macro_name, "{")) = whole.split_once("! ") {
            table = TABLES.iter().find(|(name, _)| *name == macro_name).map(|(_, example)| *example);
            continue;
        }
        if is_hidden || docs.contains("#[doc(hidden)]") {
            continue;
        }
        let name = match table {
            Some(_) if !begins_entry(whole) => continue,
            Some(_) => word(line.strip_prefix("fn ").unwrap_or(line)),
            None => match declared(line, is_in_trait) {
                Some(name) => name,
                None => continue,
            },
        };
        is_in_trait |= whole.starts_with("pub trait ");
        let has_example = match table {
            Some(Example::Clause(clause)) => {
                let rest = lines[number + 1..].iter().take_while(|line| !begins_entry(line) && **line != "}");
                std::iter::once(&whole).chain(rest).any(|line| line.contains(clause))
            }
            Some(Example::Docs) => docs.contains("```"),
            None if line.starts_with("pub mod ") && line.ends_with(';') => {
                let file = path.with_file_name(format!("{name}.rs"));
                fs::read_to_string(file).is_ok_and(|text| text.contains("//! ```"))
            }
            None => docs.contains("```"),
        };
        items.push(Item { name: name.to_owned(), line: position(), has_example });
    }
    items
}

/// The names that the facade re-exports from another crate without documentation of its own.
fn re_exported(from: &str) -> Vec<String> {
    let mut names = Vec::new();
    for path in sources(&crates("defn")) {
        let text = fs::read_to_string(path).unwrap();
        let start = format!("pub use {from}::");
        for (at, _) in text.match_indices(&start) {
            let before = text[..at].trim_end();
            if before.ends_with("#[doc(inline)]") && before.rfind("/// ```").is_some() {
                continue;
            }
            let path = text[at + start.len()..].split(';').next().unwrap();
            let list = path.split_once('{').map_or(path, |(_, list)| list.trim_end_matches(['}', ' ', '\n']));
            let name = |name: &str| {
                word(name.split_whitespace().next().unwrap_or_default().rsplit("::").next().unwrap())
                    .to_owned()
            };
            names.extend(list.split(',').map(name).filter(|name| !name.is_empty()));
        }
    }
    names
}

#[test]
fn every_item_has_an_example() {
    let own = sources(&crates("defn")).into_iter().flat_map(|path| items(&path, false));
    let items: Vec<Item> = own.chain(shared_rows()).collect();
    let without: Vec<String> = items
        .iter()
        .filter(|item| !item.has_example)
        .map(|item| format!("{} {}", item.line, item.name))
        .collect();
    assert!(without.is_empty(), "without an example:\n{}", without.join("\n"));
    assert!(items.len() > 250, "only {} items were found", items.len());
    // Kinds of items that must have been found: a function, a method, a trait and its method, a macro, a module, a
    // constant, a row, an entry of each kind.
    let known = [
        "jit",
        "from_slice",
        "Tree",
        "visit",
        "tree",
        "prelude",
        "pi",
        "erf_inv",
        "sum",
        "take",
        "matmul",
        "solve",
        "cholesky",
        "normal",
    ];
    for name in known {
        assert!(items.iter().any(|item| item.name == name), "{name} was not found");
    }
}

#[test]
fn every_row_of_the_catalogue_has_an_example() {
    let rows = items(&crates("defn").join("ops/rows.rs"), false);
    let names = UnaryOp::ALL.iter().map(|op| op.name()).chain(BinaryOp::ALL.iter().map(|op| op.name()));
    for name in names {
        let row = rows.iter().find(|row| row.name == name);
        assert!(row.is_some_and(|row| row.has_example), "{name}: {row:?}");
    }
}

#[test]
fn every_re_exported_item_has_an_example() {
    for (from, folder, least) in [("defn_core", "core", 20), ("defn_cpu", "cpu", 3)] {
        let declared: Vec<Item> =
            sources(&crates(folder)).iter().flat_map(|path| items(path, true)).collect();
        let names = re_exported(from);
        assert!(names.len() >= least, "only {names:?} of {from}");
        for name in names {
            let mut found = declared.iter().filter(|item| item.name == name).peekable();
            assert!(found.peek().is_some(), "{name} was not found in {from}");
            assert!(found.any(|item| item.has_example), "{name} has no example");
        }
    }
}

#[test]
fn every_example_runs() {
    for path in sources(&crates("defn")) {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["no_run", "ignore", "should_panic", "compile_fail", "standalone_crate", "text"] {
            assert!(!text.contains(&format!("```{word}")), "{}: {word}", path.display());
        }
    }
}
