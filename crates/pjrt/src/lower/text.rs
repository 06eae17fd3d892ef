//! StableHLO as text: typed values, and operations in MLIR's generic form, which is the same for all operations.

use std::fmt::{self, Write as _};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::element::ElementType;

/// The sizes of the axes.
pub(super) type Dims = SmallVec<[usize; 6]>;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ty {
    pub element: ElementType,
    pub dims: Dims,
}

impl Ty {
    pub fn new(element: ElementType, dims: &[usize]) -> Ty {
        Ty { element, dims: dims.into() }
    }

    pub fn scalar(element: ElementType) -> Ty {
        Ty { element, dims: Dims::new() }
    }

    /// The same shape with another element type.
    pub fn of(&self, element: ElementType) -> Ty {
        Ty { element, dims: self.dims.clone() }
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for size in &self.dims {
            write!(f, "{size}x")?;
        }
        write!(f, "{}>", self.element)
    }
}

/// A value: its name and its type.
#[derive(Clone, Debug)]
pub(super) struct Ssa {
    name: Name,
    pub ty: Ty,
}

#[derive(Clone, Debug)]
enum Name {
    /// An argument of the function.
    Argument(usize),
    /// The only result of an operation, or a block's argument.
    One(usize),
    /// One of several results.
    Of(usize, usize),
}

impl Ssa {
    pub fn element(&self) -> ElementType {
        self.ty.element
    }

    pub fn dims(&self) -> &[usize] {
        &self.ty.dims
    }

    pub fn is_complex(&self) -> bool {
        [ElementType::C64, ElementType::C128].contains(&self.ty.element)
    }
}

impl fmt::Display for Ssa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Name::Argument(index) => write!(f, "%arg{index}"),
            Name::One(id) => write!(f, "%{id}"),
            Name::Of(id, output) => write!(f, "%{id}#{output}"),
        }
    }
}

/// A comma-separated list.
pub(super) struct List<T>(pub T);

impl<T: IntoIterator<Item: fmt::Display> + Clone> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.clone().into_iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// The attribute `array<i64: ...>`.
pub(super) fn array<I>(items: I) -> String
where
    I: IntoIterator<Item: fmt::Display> + Clone,
{
    let text = List(items).to_string();
    if text.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {text}>") }
}

/// The layout of a value in a custom call: its axes, the one with adjacent elements first.
pub(super) fn layout(axes: &[usize]) -> String {
    let rank = axes.len();
    let axes = if rank == 0 { String::new() } else { format!("[{}]", List(axes)) };
    format!("dense<{axes}> : tensor<{rank}xindex>")
}

/// A function under construction, with the blocks inside it.
#[derive(Default)]
pub(super) struct Writer {
    /// Whether the program is for the host's processors.
    pub on_host: bool,
    text: String,
    values: usize,
    depth: usize,
    /// The names of integers that are known not to be negative.
    non_negative: FxHashSet<usize>,
}

impl Writer {
    pub fn new(on_host: bool) -> Writer {
        Writer { on_host, ..Writer::default() }
    }

    /// An argument of the function.
    pub fn argument(index: usize, ty: Ty) -> Ssa {
        Ssa { name: Name::Argument(index), ty }
    }

    /// Records that no element is negative.
    pub fn mark_non_negative(&mut self, x: &Ssa) {
        if let Name::One(id) = x.name {
            self.non_negative.insert(id);
        }
    }

    /// Whether it is recorded that no element is negative.
    pub fn is_non_negative(&self, x: &Ssa) -> bool {
        if let Name::One(id) = x.name { self.non_negative.contains(&id) } else { false }
    }

    fn fresh(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        for _ in 0..=self.depth {
            self.text.push_str("  ");
        }
        self.text.write_fmt(line).expect("a string takes every text");
        self.text.push('\n');
    }

    /// An operation with one result.
    pub fn op(&mut self, name: &str, operands: &[&Ssa], attributes: &str, ty: Ty) -> Ssa {
        self.emit("stablehlo", name, operands, attributes, ty)
    }

    /// An operation of a dialect that is built on StableHLO.
    pub fn dialect_op(&mut self, dialect: &str, name: &str, operands: &[&Ssa], ty: Ty) -> Ssa {
        self.emit(dialect, name, operands, "", ty)
    }

    fn emit(&mut self, dialect: &str, name: &str, operands: &[&Ssa], attributes: &str, ty: Ty) -> Ssa {
        let id = self.fresh();
        let attributes = braces(attributes);
        let types = List(operands.iter().map(|operand| &operand.ty));
        self.line(format_args!(
            "%{id} = \"{dialect}.{name}\"({}){attributes} : ({types}) -> {ty}",
            List(operands)
        ));
        Ssa { name: Name::One(id), ty }
    }

    /// An operation with several results, or one.
    pub fn ops(&mut self, name: &str, operands: &[&Ssa], attributes: &str, results: &[Ty]) -> Vec<Ssa> {
        if let [ty] = results {
            return vec![self.op(name, operands, attributes, ty.clone())];
        }
        let (id, count, attributes) = (self.fresh(), results.len(), braces(attributes));
        let types = List(operands.iter().map(|operand| &operand.ty));
        let operands = List(operands);
        let results_text = List(results);
        self.line(format_args!(
            "%{id}:{count} = \"stablehlo.{name}\"({operands}){attributes} : ({types}) -> ({results_text})"
        ));
        results_of(id, results)
    }

    /// An operation with regions. Each region is written by its function, which returns the region's results.
    pub fn op_with<E>(
        &mut self,
        name: &str,
        operands: &[&Ssa],
        attributes: &str,
        regions: Vec<RegionText<'_, E>>,
        results: &[Ty],
    ) -> Result<Vec<Ssa>, E> {
        let id = self.fresh();
        let count = if results.len() == 1 { String::new() } else { format!(":{}", results.len()) };
        if results.is_empty() {
            self.line(format_args!("\"stablehlo.{name}\"({}) ({{", List(operands)));
        } else {
            self.line(format_args!("%{id}{count} = \"stablehlo.{name}\"({}) ({{", List(operands)));
        }
        let regions_len = regions.len();
        for (index, region) in regions.into_iter().enumerate() {
            let arguments: Vec<Ssa> =
                region.arguments.into_iter().map(|ty| Ssa { name: Name::One(self.fresh()), ty }).collect();
            self.depth += 1;
            if !arguments.is_empty() {
                let list: Vec<String> =
                    arguments.iter().map(|value| format!("{value}: {}", value.ty)).collect();
                self.depth -= 1;
                self.line(format_args!("^bb0({}):", List(&list)));
                self.depth += 1;
            }
            let returned = (region.write)(self, &arguments)?;
            let types = List(returned.iter().map(|value| &value.ty));
            self.line(format_args!("\"stablehlo.return\"({}) : ({types}) -> ()", List(&returned)));
            self.depth -= 1;
            if index + 1 < regions_len {
                self.line(format_args!("}}, {{"));
            }
        }
        let types = List(operands.iter().map(|operand| &operand.ty));
        let attributes = braces(attributes);
        self.line(format_args!("}}){attributes} : ({types}) -> ({})", List(results)));
        Ok(results_of(id, results))
    }

    /// Ends the function, and returns its text.
    pub fn finish(mut self, results: &[Ssa]) -> String {
        let types = List(results.iter().map(|value| &value.ty));
        self.line(format_args!("\"func.return\"({}) : ({types}) -> ()", List(results)));
        self.text
    }
}

/// A region of an operation: the types of its arguments, and the function that writes it.
pub(super) struct RegionText<'a, E> {
    pub arguments: Vec<Ty>,
    #[allow(clippy::type_complexity, reason = "said once")]
    pub write: Box<dyn FnOnce(&mut Writer, &[Ssa]) -> Result<Vec<Ssa>, E> + 'a>,
}

/// The values that an operation returns.
fn results_of(id: usize, results: &[Ty]) -> Vec<Ssa> {
    let name = |output| if results.len() == 1 { Name::One(id) } else { Name::Of(id, output) };
    results.iter().enumerate().map(|(output, ty)| Ssa { name: name(output), ty: ty.clone() }).collect()
}

fn braces(attributes: &str) -> String {
    if attributes.is_empty() { String::new() } else { format!(" {{{attributes}}}") }
}
