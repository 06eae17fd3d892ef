//! The content of a picture of a graph, independent of the drawing language.
//!
//! Every node is a shape, except numbers, which are shown in the shapes of their users. Regions are boxes in
//! a box around their node, and stages are boxes.

use rustc_hash::FxHashMap;

use super::text::{short_attribute, type_text};
use crate::form::{Argument, form};
use crate::graph::{Graph, Node, Value};
use crate::op::Op;
use crate::region::Region;
use crate::shape::TensorType;
use crate::stage::{Source, Stage};

/// The maximum length of the text of attributes, in characters.
const WIDTH: usize = 60;

/// Shapes in boxes, and arrows between them.
#[derive(Default)]
pub(super) struct Picture {
    pub root: Group,
    pub arrows: Vec<Arrow>,
}

/// A box.
#[derive(Default)]
pub(super) struct Group {
    pub id: String,
    pub title: String,
    pub shapes: Vec<Shape>,
    pub groups: Vec<Group>,
}

/// A node, an input or a result.
pub(super) struct Shape {
    pub id: String,
    pub lines: Vec<String>,
    pub kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// An input or a result.
    End,
    /// An operation.
    Node,
}

pub(super) struct Arrow {
    pub from: String,
    pub to: String,
    /// The output where it begins, for a node with several.
    pub label: Option<String>,
}

/// The start of an arrow.
#[derive(Clone)]
struct Tail {
    id: String,
    label: Option<String>,
}

impl Group {
    /// Whether it has no shapes.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.groups.iter().all(Group::is_empty)
    }
}

/// The picture of a region.
pub(super) fn of_region(region: &Region) -> Picture {
    let mut picture = Picture::default();
    let mut root = Group::default();
    let inputs = picture.inputs(&mut root, region, "");
    let tails = picture.nodes(&mut root, region, "", &inputs);
    picture.results(&mut root, region, "", &tails);
    picture.root = root;
    picture
}

/// The picture of stages and the values that pass between them. Arguments and results are outside the stages.
pub(super) fn of_stages(stages: &[Stage]) -> Picture {
    let mut picture = Picture::default();
    let mut root = Group::default();
    let mut arguments: FxHashMap<usize, Tail> = FxHashMap::default();
    let mut captures: FxHashMap<usize, Tail> = FxHashMap::default();
    let mut outputs: Vec<Vec<Option<Tail>>> = Vec::new();
    for stage in stages {
        let region = stage.region();
        let inputs: Vec<Option<Tail>> = stage
            .sources()
            .iter()
            .zip(region.inputs())
            .map(|(source, ty)| match source {
                Source::Argument(index) => Some(
                    arguments
                        .entry(*index)
                        .or_insert_with(|| {
                            end(&mut root, format!("argument{index}"), format!("argument {index}"), ty)
                        })
                        .clone(),
                ),
                Source::Capture(index) => Some(
                    captures
                        .entry(*index)
                        .or_insert_with(|| {
                            end(&mut root, format!("capture{index}"), format!("capture {index}"), ty)
                        })
                        .clone(),
                ),
                // A list of stages in the wrong order gets only arrows from stages that are already drawn.
                Source::Output { stage, output } => outputs.get(*stage)?.get(*output)?.clone(),
            })
            .collect();
        let position = stage.position();
        let prefix = format!("s{position}_");
        let mut group =
            Group { id: format!("stage{position}"), title: format!("stage {position}"), ..Group::default() };
        let tails = picture.nodes(&mut group, region, &prefix, &inputs);
        root.groups.push(group);
        if position + 1 == stage.count() {
            picture.results(&mut root, region, "", &tails);
        }
        outputs.push(region.results().iter().map(|value| tails.get(value).cloned()).collect());
    }
    picture.root = root;
    picture
}

fn end(group: &mut Group, id: String, title: String, ty: &TensorType) -> Tail {
    group.shapes.push(Shape { id: id.clone(), lines: vec![title, type_text(ty)], kind: Kind::End });
    Tail { id, label: None }
}

impl Picture {
    /// Draws the inputs of a region that nodes or results use.
    fn inputs(&mut self, group: &mut Group, region: &Region, prefix: &str) -> Vec<Option<Tail>> {
        let mut inputs = vec![None; region.inputs().len()];
        for node in region.graph().nodes() {
            if let Op::Parameter { index, ty } = &node.op
                && inputs[*index].is_none()
            {
                let title = match index.checked_sub(region.parameter_count()) {
                    None => format!("parameter {index}"),
                    Some(capture) => format!("capture {capture}"),
                };
                inputs[*index] = Some(end(group, format!("{prefix}in{index}"), title, ty));
            }
        }
        inputs
    }

    /// Draws the nodes of a region, and returns the start of each value's arrow.
    fn nodes(
        &mut self,
        group: &mut Group,
        region: &Region,
        prefix: &str,
        inputs: &[Option<Tail>],
    ) -> FxHashMap<Value, Tail> {
        let graph = region.graph();
        let mut tails: FxHashMap<Value, Tail> = FxHashMap::default();
        for (position, node) in graph.nodes().iter().enumerate() {
            if let Op::Parameter { index, ty: _ } = &node.op {
                let tail = inputs.get(*index).cloned().flatten();
                tails.extend(tail.map(|tail| (graph.outputs(position)[0], tail)));
                continue;
            }
            if let Op::Constant(_) = &node.op {
                continue;
            }
            let id = format!("{prefix}n{position}");
            for input in &node.inputs {
                if let Some(tail) = tails.get(input) {
                    self.arrows.push(Arrow {
                        from: tail.id.clone(),
                        to: id.clone(),
                        label: tail.label.clone(),
                    });
                }
            }
            let several = node.outputs.len() > 1;
            for value in graph.outputs(position) {
                let label = several.then(|| format!(".{}", value.output));
                tails.insert(value, Tail { id: id.clone(), label });
            }
            let shape = Shape { id: id.clone(), lines: lines(graph, node), kind: Kind::Node };
            let regions = node.op.regions();
            if regions.is_empty() {
                group.shapes.push(shape);
                continue;
            }
            let form = form(&node.op);
            let title = form.name.to_owned();
            let mut around =
                Group { id: format!("{id}_box"), title, shapes: vec![shape], groups: Vec::new() };
            for (at, (inner, name)) in regions.iter().zip(&form.regions).enumerate() {
                let prefix = format!("{id}_{at}_");
                let mut box_ =
                    Group { id: format!("{prefix}box"), title: (*name).to_owned(), ..Group::default() };
                let inputs = self.inputs(&mut box_, inner, &prefix);
                let tails = self.nodes(&mut box_, inner, &prefix, &inputs);
                self.results(&mut box_, inner, &prefix, &tails);
                around.groups.push(box_);
            }
            group.groups.push(around);
        }
        tails
    }

    /// Draws the results of a region.
    fn results(&mut self, group: &mut Group, region: &Region, prefix: &str, tails: &FxHashMap<Value, Tail>) {
        for (position, &value) in region.results().iter().enumerate() {
            let id = format!("{prefix}out{position}");
            let title = match number(region.graph(), value) {
                Some(number) => format!("result {position}: {number}"),
                None => format!("result {position}"),
            };
            end(group, id.clone(), title, region.graph().ty(value));
            if let Some(Tail { id: from, label }) = tails.get(&value).cloned() {
                self.arrows.push(Arrow { from, to: id, label });
            }
        }
    }
}

/// The text of a constant.
fn number(graph: &Graph, value: Value) -> Option<String> {
    if let Op::Constant(scalar) = &graph.node(value).op { Some(scalar.to_string()) } else { None }
}

/// The lines in a node's shape: its name with attributes and numbers, and the types of its outputs.
fn lines(graph: &Graph, node: &Node) -> Vec<String> {
    let form = form(&node.op);
    let numbered = |index: usize| number(graph, node.inputs[index]);
    let mut parts = Vec::new();
    for argument in &form.arguments {
        match argument {
            Argument::Operand { name, index } => {
                parts.extend(numbered(*index).map(|number| format!("{name}: {number}")));
            }
            Argument::Operands { name, start, count } => {
                let end = count.map_or(node.inputs.len(), |count| start + count);
                let texts = (*start..end).filter_map(|index| Some((index - start, numbered(index)?)));
                parts.extend(texts.map(|(at, number)| format!("{name}[{at}]: {number}")));
            }
            Argument::Attribute { name, value } | Argument::Option { name, value } => {
                parts.push(format!("{name}: {}", short_attribute(value)));
            }
        }
    }
    let text = parts.join(", ");
    let attributes = if text.chars().count() > WIDTH {
        text.chars().take(WIDTH).chain("...".chars()).collect()
    } else {
        text
    };
    let name = form.name.to_owned();
    let types = node.outputs.iter().map(type_text).collect::<Vec<_>>().join(", ");
    [name, attributes, types].into_iter().filter(|line| !line.is_empty()).collect()
}
