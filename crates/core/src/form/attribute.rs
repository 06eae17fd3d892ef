//! Writing and reading attributes.

use smallvec::SmallVec;

use super::build::{Reader, kind};
use super::{Argument, Arguments, Attr, attribute, operand, operands, option};
use crate::op::{ConvOp, Padding, Starts, Tolerance, Window};
use crate::scalar::Number;
use crate::shape::{Axis, AxisList, Shape, Sizes, TensorType};

/// An attribute of an op. Most are one argument; some are several, or operands.
pub(crate) trait Attribute: Clone {
    /// The value of an attribute that is a single argument.
    fn value(&self) -> Attr;

    /// Writes the attribute.
    fn write(&self, name: &'static str, argument: AsArgument, writer: &mut ArgumentWriter) {
        writer.push(name, self.value(), argument);
    }

    /// Reads the attribute.
    ///
    /// # Errors
    /// A sentence about an attribute that is missing, of another kind or out of range.
    fn read(name: &str, reader: &Reader<'_>) -> Result<Self, String>;

    /// The number of operands that the attribute consists of, for an op with operands of these types.
    fn operands(&self, _types: &[&TensorType]) -> usize {
        0
    }

    /// The attribute after `lead` new leading axes: the axes in it are shifted.
    fn shifted(&self, _lead: usize) -> Self {
        self.clone()
    }
}

/// Whether the public argument is positional or named.
#[derive(Clone, Copy)]
pub(crate) enum AsArgument {
    Positional,
    Named,
}

/// Collects the arguments of an op: operands, attributes by position, attributes by name.
pub(crate) struct ArgumentWriter {
    operands: usize,
    positional: Arguments,
    named: Arguments,
}

impl ArgumentWriter {
    /// The arguments of an op with these operands, optionally followed by a list of operands.
    pub fn new(names: &[&'static str], list: Option<&'static str>) -> ArgumentWriter {
        let mut positional: Arguments =
            names.iter().enumerate().map(|(index, name)| operand(name, index)).collect();
        positional.extend(list.map(|name| operands(name, names.len(), None)));
        ArgumentWriter { operands: names.len(), positional, named: Arguments::new() }
    }

    /// A positional attribute.
    pub fn attribute(&mut self, name: &'static str, value: &impl Attribute) {
        value.write(name, AsArgument::Positional, self);
    }

    /// A named attribute.
    pub fn option(&mut self, name: &'static str, value: &impl Attribute) {
        value.write(name, AsArgument::Named, self);
    }

    /// An attribute that follows from the result's type and is not written.
    pub fn result<T>(&mut self, _name: &'static str, _value: &T) {}

    /// Moves an operand to a position among the positional arguments.
    pub fn move_operand(&mut self, name: &'static str, position: usize) {
        let is_operand = |argument: &Argument| match argument {
            Argument::Operand { name: own, index: _ } => *own == name,
            Argument::Operands { .. } | Argument::Attribute { .. } | Argument::Option { .. } => false,
        };
        let from = self.positional.iter().position(is_operand).expect("the op has the operand");
        let operand = self.positional.remove(from);
        self.positional.insert(position, operand);
    }

    /// All arguments in order.
    pub fn finish(mut self) -> Arguments {
        self.positional.append(&mut self.named);
        self.positional
    }

    fn push(&mut self, name: &'static str, value: Attr, argument: AsArgument) {
        match argument {
            AsArgument::Positional => self.positional.push(attribute(name, value)),
            AsArgument::Named => self.named.push(option(name, value)),
        }
    }
}

impl Attribute for bool {
    fn value(&self) -> Attr {
        Attr::Bool(*self)
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<bool, String> {
        let attr = reader.attr(name)?;
        if let Attr::Bool(value) = attr { Ok(*value) } else { Err(kind(name, attr, "true or false")) }
    }
}

impl Attribute for usize {
    fn value(&self) -> Attr {
        Attr::from(*self)
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<usize, String> {
        let value: Option<usize> = reader.integer(name)?;
        value.ok_or_else(|| format!("{name} is none, an integer is required"))
    }
}

impl Attribute for Axis {
    fn value(&self) -> Attr {
        Attr::from(self.index())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Axis, String> {
        usize::read(name, reader).map(Axis)
    }

    fn shifted(&self, lead: usize) -> Axis {
        Axis(self.index() + lead)
    }
}

impl Attribute for Option<Axis> {
    fn value(&self) -> Attr {
        self.map_or(Attr::None, |axis| axis.value())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Option<Axis>, String> {
        Ok(reader.integer(name)?.map(Axis))
    }

    fn shifted(&self, lead: usize) -> Option<Axis> {
        self.map(|axis| axis.shifted(lead))
    }
}

impl Attribute for Sizes {
    fn value(&self) -> Attr {
        Attr::Ints(self.iter().map(|&size| size as i128).collect())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Sizes, String> {
        let attr = reader.attr(name)?;
        let Attr::Ints(values) = attr else { return Err(kind(name, attr, "a list of integers")) };
        let sizes: Result<Sizes, _> = values.iter().map(|&value| usize::try_from(value)).collect();
        sizes.map_err(|_| format!("{name} is {attr}, integers that are not negative are required"))
    }
}

impl Attribute for AxisList {
    fn value(&self) -> Attr {
        Attr::Ints(self.iter().map(|axis| axis.index() as i128).collect())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<AxisList, String> {
        Ok(Sizes::read(name, reader)?.into_iter().map(Axis).collect())
    }

    fn shifted(&self, lead: usize) -> AxisList {
        self.iter().map(|axis| axis.shifted(lead)).collect()
    }
}

impl Attribute for [usize; 2] {
    fn value(&self) -> Attr {
        Attr::Ints(self.iter().map(|&size| size as i128).collect())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<[usize; 2], String> {
        let sizes = Sizes::read(name, reader)?;
        <[usize; 2]>::try_from(&sizes[..]).map_err(|_| format!("{name} must have two entries"))
    }
}

impl Attribute for [Axis; 2] {
    fn value(&self) -> Attr {
        self.map(Axis::index).value()
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<[Axis; 2], String> {
        <[usize; 2]>::read(name, reader).map(|axes| axes.map(Axis))
    }

    fn shifted(&self, lead: usize) -> [Axis; 2] {
        self.map(|axis| axis.shifted(lead))
    }
}

/// The sizes only: the axis names are in the result's type.
impl Attribute for Shape {
    fn value(&self) -> Attr {
        Attr::Ints(self.sizes().iter().map(|&size| size as i128).collect())
    }

    fn read(_name: &str, reader: &Reader<'_>) -> Result<Shape, String> {
        reader.result().shape()
    }
}

impl Attribute for Tolerance {
    fn value(&self) -> Attr {
        Attr::Number(Number::Float(self.0))
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Tolerance, String> {
        let attr = reader.attr(name)?;
        if let Attr::Number(Number::Float(value)) = attr {
            Ok(Tolerance(*value))
        } else {
            Err(kind(name, attr, "a float"))
        }
    }
}

impl Attribute for SmallVec<[Padding; 4]> {
    fn value(&self) -> Attr {
        Attr::Padding(self.clone())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Self, String> {
        let attr = reader.attr(name)?;
        if let Attr::Padding(config) = attr {
            return Ok(config.clone());
        }
        // The text of an empty list does not show the type of its elements.
        let is_empty = if let Attr::Ints(values) = attr { values.is_empty() } else { false };
        if is_empty { Ok(SmallVec::new()) } else { Err(kind(name, attr, "a list of triples")) }
    }

    fn shifted(&self, lead: usize) -> Self {
        std::iter::repeat_n(Padding::default(), lead).chain(self.iter().copied()).collect()
    }
}

/// Padding without interior padding.
impl Attribute for SmallVec<[(i64, i64); 4]> {
    fn value(&self) -> Attr {
        Attr::Padding(self.iter().map(|&(low, high)| Padding { low, high, interior: 0 }).collect())
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Self, String> {
        let config: SmallVec<[Padding; 4]> = reader.attribute(name)?;
        if config.iter().any(|padding| padding.interior != 0) {
            return Err(format!("{name} has padding between elements, none is required"));
        }
        Ok(config.iter().map(|padding| (padding.low, padding.high)).collect())
    }

    fn shifted(&self, lead: usize) -> Self {
        std::iter::repeat_n((0, 0), lead).chain(self.iter().copied()).collect()
    }
}

/// Known starts are an attribute; others are operands.
impl Attribute for Starts {
    fn value(&self) -> Attr {
        match self {
            Starts::Static(starts) => starts.value(),
            Starts::Dynamic | Starts::FromEnd => Attr::None,
        }
    }

    fn write(&self, name: &'static str, argument: AsArgument, writer: &mut ArgumentWriter) {
        if self.are_operands() {
            writer.positional.push(operands(name, writer.operands, None));
        } else {
            writer.push(name, self.value(), argument);
        }
        // Written only for starts that count from the end below 0.
        if self.count_from_end() {
            writer.push("from_end", Attr::Bool(true), AsArgument::Named);
        }
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Starts, String> {
        if reader.has(name) {
            return Ok(Starts::Static(reader.attribute(name)?));
        }
        let counted = reader.has("from_end") && reader.attribute("from_end")?;
        Ok(if counted { Starts::FromEnd } else { Starts::Dynamic })
    }

    fn operands(&self, types: &[&TensorType]) -> usize {
        match types.first() {
            Some(x) if self.are_operands() => x.shape.rank(),
            Some(_) | None => 0,
        }
    }
}

impl<T: Attribute> Attribute for Box<T> {
    fn value(&self) -> Attr {
        T::value(self)
    }

    fn write(&self, name: &'static str, argument: AsArgument, writer: &mut ArgumentWriter) {
        T::write(self, name, argument, writer);
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Box<T>, String> {
        T::read(name, reader).map(Box::new)
    }

    fn operands(&self, types: &[&TensorType]) -> usize {
        T::operands(self, types)
    }

    fn shifted(&self, lead: usize) -> Box<T> {
        Box::new(T::shifted(self, lead))
    }
}

impl Attribute for Window {
    fn value(&self) -> Attr {
        self.sizes.value()
    }

    fn write(&self, name: &'static str, argument: AsArgument, writer: &mut ArgumentWriter) {
        writer.push(name, self.value(), argument);
        writer.option("strides", &self.strides);
        writer.option("padding", &self.padding);
        writer.option("window_dilations", &self.dilations);
    }

    fn read(name: &str, reader: &Reader<'_>) -> Result<Window, String> {
        Ok(Window {
            sizes: reader.attribute(name)?,
            strides: reader.attribute("strides")?,
            padding: reader.attribute("padding")?,
            dilations: reader.attribute("window_dilations")?,
        })
    }

    fn shifted(&self, lead: usize) -> Window {
        let ones = |sizes: &Sizes| std::iter::repeat_n(1, lead).chain(sizes.iter().copied()).collect();
        Window {
            sizes: ones(&self.sizes),
            strides: ones(&self.strides),
            padding: self.padding.shifted(lead),
            dilations: ones(&self.dilations),
        }
    }
}

impl Attribute for ConvOp {
    fn value(&self) -> Attr {
        self.strides.value()
    }

    fn write(&self, _name: &'static str, _argument: AsArgument, writer: &mut ArgumentWriter) {
        writer.option("strides", &self.strides);
        writer.option("padding", &self.padding);
        writer.option("input_dilation", &self.input_dilation);
        writer.option("kernel_dilation", &self.kernel_dilation);
        writer.option("feature_group_size", &self.feature_groups);
        writer.option("batch_group_size", &self.batch_groups);
        writer.option("input_permutation", &self.input_permutation);
        writer.option("kernel_permutation", &self.kernel_permutation);
        writer.option("output_permutation", &self.output_permutation);
    }

    fn read(_name: &str, reader: &Reader<'_>) -> Result<ConvOp, String> {
        Ok(ConvOp {
            strides: reader.attribute("strides")?,
            padding: reader.attribute("padding")?,
            input_dilation: reader.attribute("input_dilation")?,
            kernel_dilation: reader.attribute("kernel_dilation")?,
            feature_groups: reader.attribute("feature_group_size")?,
            batch_groups: reader.attribute("batch_group_size")?,
            input_permutation: reader.attribute("input_permutation")?,
            kernel_permutation: reader.attribute("kernel_permutation")?,
            output_permutation: reader.attribute("output_permutation")?,
        })
    }
}
