//! Pictures in DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::picture::{Arrow, Group, Kind, Picture, of_region, of_stages};
use crate::region::Region;
use crate::stage::Stage;

/// A region as a DOT graph, with nested regions as clusters.
///
/// ```
/// use defn_core::print::dot;
/// use defn_core::region::Region;
/// let region = Region::from_text("defn-ir 1
///     (f32) {
///       %0 = parameter {index: 0} : f32
///       return %0
///     }")?;
/// assert_eq!(dot(&region), r#"digraph {
///   node [shape=box]
///   in0 [label="parameter 0\nf32", shape=ellipse]
///   out0 [label="result 0\nf32", shape=ellipse]
///   in0 -> out0
/// }
/// "#);
/// # Ok::<(), defn_core::Error>(())
/// ```
pub fn dot(region: &Region) -> String {
    write(&of_region(region))
}

/// Stages as a DOT graph: each is a cluster, with edges for the values that pass between stages.
pub fn dot_of_stages(stages: &[Stage]) -> String {
    write(&of_stages(stages))
}

fn write(picture: &Picture) -> String {
    let mut out = "digraph {\n".to_owned();
    push(&mut out, 1, format_args!("node [shape=box]"));
    write_group(&mut out, &picture.root, 1);
    for Arrow { from, to, label } in &picture.arrows {
        let label = label.as_ref().map_or(String::new(), |label| format!(" [label={}]", quoted(&[label])));
        push(&mut out, 1, format_args!("{from} -> {to}{label}"));
    }
    out.push_str("}\n");
    out
}

fn write_group(out: &mut String, group: &Group, depth: usize) {
    for shape in &group.shapes {
        let shape_of = match shape.kind {
            Kind::End => ", shape=ellipse",
            Kind::Node => "",
        };
        push(out, depth, format_args!("{} [label={}{shape_of}]", shape.id, quoted(&shape.lines)));
    }
    for inner in group.groups.iter().filter(|group| !group.is_empty()) {
        push(out, depth, format_args!("subgraph cluster_{} {{", inner.id));
        push(out, depth + 1, format_args!("label={}", quoted(&[&inner.title])));
        write_group(out, inner, depth + 1);
        push(out, depth, format_args!("}}"));
    }
}

fn push(out: &mut String, depth: usize, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{:width$}{line}", "", width = 2 * depth).expect("writing to a string does not fail");
}

/// Quoted lines, with quotes and backslashes escaped.
fn quoted(lines: &[impl AsRef<str>]) -> String {
    let escaped = |line: &str| line.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines.iter().map(|line| escaped(line.as_ref())).collect();
    format!("\"{}\"", lines.join("\\n"))
}
