//! Pictures in the language of Mermaid, which notebooks and many sites render.

use std::fmt::Write as _;

use super::picture::{Arrow, Group, Kind, Picture, of_region, of_stages};
use crate::region::Region;
use crate::stage::Stage;

/// A region as a Mermaid flowchart, with nested regions as boxes.
///
/// ```
/// use defn_core::print::mermaid;
/// use defn_core::region::Region;
/// let region = Region::from_text("defn-ir 1
///     (f32) {
///       %0 = parameter {index: 0} : f32
///       %1 = sin %0 : f32
///       return %1
///     }")?;
/// assert_eq!(mermaid(&region), "\
/// flowchart TD
///   in0([\"parameter 0<br/>f32\"])
///   n1[\"sin<br/>f32\"]
///   out0([\"result 0<br/>f32\"])
///   in0 --> n1
///   n1 --> out0
/// ");
/// # Ok::<(), defn_core::Error>(())
/// ```
pub fn mermaid(region: &Region) -> String {
    write(&of_region(region))
}

/// Stages as a Mermaid flowchart: each is a box, with arrows for the values that pass between stages.
pub fn mermaid_of_stages(stages: &[Stage]) -> String {
    write(&of_stages(stages))
}

fn write(picture: &Picture) -> String {
    let mut out = "flowchart TD\n".to_owned();
    write_group(&mut out, &picture.root, 1);
    for Arrow { from, to, label } in &picture.arrows {
        let label = label.as_ref().map_or(String::new(), |label| format!("|{}|", quoted(&[label])));
        push(&mut out, 1, format_args!("{from} -->{label} {to}"));
    }
    out
}

fn write_group(out: &mut String, group: &Group, depth: usize) {
    for shape in &group.shapes {
        let text = quoted(&shape.lines);
        match shape.kind {
            Kind::End => push(out, depth, format_args!("{}([{text}])", shape.id)),
            Kind::Node => push(out, depth, format_args!("{}[{text}]", shape.id)),
        }
    }
    for inner in group.groups.iter().filter(|group| !group.is_empty()) {
        push(out, depth, format_args!("subgraph {}[{}]", inner.id, quoted(&[&inner.title])));
        write_group(out, inner, depth + 1);
        push(out, depth, format_args!("end"));
    }
}

fn push(out: &mut String, depth: usize, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{:width$}{line}", "", width = 2 * depth).expect("writing to a string does not fail");
}

/// Quoted lines. Characters that Mermaid or the surrounding page would interpret are written as character
/// codes.
fn quoted(lines: &[impl AsRef<str>]) -> String {
    let mut out = "\"".to_owned();
    for (position, line) in lines.iter().enumerate() {
        if position > 0 {
            out.push_str("<br/>");
        }
        for c in line.as_ref().chars() {
            if ['"', '#', '<', '>', '&', '`', ';', '\\'].contains(&c) {
                write!(out, "#{};", u32::from(c)).expect("writing to a string does not fail");
            } else {
                out.push(c);
            }
        }
    }
    out.push('"');
    out
}
