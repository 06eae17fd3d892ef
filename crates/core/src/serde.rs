//! Dtypes and shapes for the crate `serde`: a dtype is its name, a shape its sizes and names.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dtype::DType;
use crate::shape::{Name, Shape};

/// The name, as `"f32"`.
impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        name.parse().map_err(D::Error::custom)
    }
}

/// The parts of a shape. `names` is empty if no axis has a name, else it has one entry for each axis.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Shape", deny_unknown_fields)]
struct Parts<'a> {
    sizes: Cow<'a, [usize]>,
    names: Vec<Option<Cow<'a, str>>>,
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.names().map(|name| name.map(|name| Cow::Borrowed(&**name)));
        let names = if self.has_names() { names.collect() } else { Vec::new() };
        Parts { sizes: self.sizes().into(), names }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        let Parts { sizes, names } = Parts::deserialize(deserializer)?;
        let shape = Shape::new(&sizes);
        if names.is_empty() {
            return Ok(shape);
        }
        shape.with_names(names.into_iter().map(|name| name.map(Name::from))).map_err(D::Error::custom)
    }
}
