//! Differences as text.

use std::fmt;

use super::{Aspect, Change, Difference, InputChange};
use crate::graph::Value;
use crate::print;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self, 0)
    }
}

fn write(f: &mut fmt::Formatter<'_>, difference: &Difference, depth: usize) -> fmt::Result {
    let Difference { parameters, inputs, nodes, results, equal: _ } = difference;
    if let Some((old, new)) = parameters {
        let text = |count: &usize| format!("{count} parameter{}", if *count == 1 { "" } else { "s" });
        both(f, depth, &text(old), &text(new))?;
    }
    for InputChange { index, old, new } in inputs {
        for (sign, ty) in [('-', old), ('+', new)] {
            if let Some(ty) = ty {
                line(f, depth, sign, &format!("input {index} : {}", print::type_text(ty)))?;
            }
        }
    }
    for change in nodes {
        match change {
            Change::Removed(old) => line(f, depth, '-', &old.text)?,
            Change::Added(new) => line(f, depth, '+', &new.text)?,
            Change::Changed { old, new, aspects, inside } => {
                if aspects[..] == [Aspect::Regions] {
                    line(f, depth, ' ', &new.text)?;
                } else {
                    both(f, depth, &old.text, &new.text)?;
                }
                for (name, difference) in inside {
                    line(f, depth + 1, ' ', name)?;
                    write(f, difference, depth + 2)?;
                }
            }
        }
    }
    if let Some((old, new)) = results {
        both(f, depth, old, new)?;
    }
    Ok(())
}

fn both(f: &mut fmt::Formatter<'_>, depth: usize, old: &str, new: &str) -> fmt::Result {
    line(f, depth, '-', old)?;
    line(f, depth, '+', new)
}

fn line(f: &mut fmt::Formatter<'_>, depth: usize, sign: char, text: &str) -> fmt::Result {
    writeln!(f, "{sign} {:width$}{text}", "", width = 2 * depth)
}

/// The `return` line.
pub(super) fn returned(values: &[Value]) -> String {
    let texts: Vec<String> = values.iter().map(|&value| print::value_text(value)).collect();
    format!("return {}", texts.join(" ")).trim_end().to_owned()
}
