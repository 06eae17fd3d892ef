//! Descriptions of an op's operands in errors: their types and origins.

use std::fmt;

use crate::location::Location;
use crate::op::Op;
use crate::shape::TensorType;
use crate::tensor::{Data, Tensor};
use crate::trace;

/// The origin of a tensor, as far as it is known.
///
/// ```
/// use defn_core::origin::Origin;
/// use defn_core::Location;
/// let line = Location { file: "main.rs".into(), line: 7 };
/// assert_eq!(Origin::Computed(Some(line)).to_string(), ", made at main.rs:7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Unknown: tensors with elements do not record their origin.
    Unknown,
    /// It existed before the trace that uses it.
    Outside,
    /// It is an input of the function, loop or branch that is being traced, which is at this location.
    Input(Option<Location>),
    /// An op of the trace computed it, on that line.
    Computed(Option<Location>),
}

impl Origin {
    /// The origin of a tensor.
    pub fn of(tensor: &Tensor) -> Origin {
        match tensor.data() {
            Data::Traced { trace, value } => trace.with_inputs(|graph, parameters| {
                let Some(node) = graph.nodes().get(value.node as usize) else {
                    return Origin::Unknown;
                };
                let Op::Parameter { index, .. } = &node.op else {
                    return Origin::Computed(node.location.clone());
                };
                if *index < parameters { Origin::Input(node.location.clone()) } else { Origin::Outside }
            }),
            Data::Buffer(_) if trace::depth() > 0 => Origin::Outside,
            Data::Buffer(_) | Data::Template => Origin::Unknown,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Unknown | Origin::Computed(None) => Ok(()),
            Origin::Outside => f.write_str(", from outside the function"),
            Origin::Input(None) => f.write_str(", an input"),
            Origin::Input(Some(location)) => write!(f, ", an input at {location}"),
            Origin::Computed(Some(location)) => write!(f, ", made at {location}"),
        }
    }
}

/// An operand of an op that failed.
///
/// ```
/// use defn_core::origin::OperandInfo;
/// use defn_core::{DType, TensorType};
/// let given = OperandInfo::of_type(&TensorType::scalar(DType::F32));
/// assert_eq!(format!("{}{}", given.ty, given.origin), "f32");
/// ```
#[derive(Clone, Debug)]
pub struct OperandInfo {
    /// Its name in the function that was called.
    pub name: Option<&'static str>,
    /// Its type.
    pub ty: TensorType,
    /// Its origin.
    pub origin: Origin,
}

impl OperandInfo {
    /// A named argument of a function.
    pub fn new(name: Option<&'static str>, tensor: &Tensor) -> OperandInfo {
        OperandInfo { name, ty: tensor.ty().clone(), origin: Origin::of(tensor) }
    }

    /// An operand of which only the type is known.
    pub fn of_type(ty: &TensorType) -> OperandInfo {
        OperandInfo { name: None, ty: ty.clone(), origin: Origin::Unknown }
    }
}

/// Writes a line for each operand: its name, type and origin.
pub(crate) fn write_all(f: &mut fmt::Formatter<'_>, operands: &[OperandInfo]) -> fmt::Result {
    for (position, OperandInfo { name, ty, origin }) in operands.iter().enumerate() {
        match (name, operands.len(), position) {
            (Some(name), ..) => write!(f, "\n  {name}: {ty}{origin}")?,
            (None, 1, _) => write!(f, "\n  operand: {ty}{origin}")?,
            (None, 2, 0) => write!(f, "\n  left: {ty}{origin}")?,
            (None, 2, _) => write!(f, "\n  right: {ty}{origin}")?,
            (None, ..) => write!(f, "\n  operand {position}: {ty}{origin}")?,
        }
    }
    Ok(())
}
