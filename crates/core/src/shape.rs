//! Shapes with axis names, axes that are in range by construction, and broadcasting.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};

/// The name of an axis.
pub type Name = Arc<str>;

/// Sizes by axis, stored inline up to rank 4: types are copied with every op.
pub type Sizes = SmallVec<[usize; 4]>;

/// Axes of one tensor, stored inline up to rank 6.
pub type AxisList = SmallVec<[Axis; 6]>;

/// The position of an axis, known to be in range for the shape that resolved it.
///
/// ```
/// use defn_core::Shape;
/// let shape = Shape::new(&[2, 3]);
/// let axis = shape.resolve("sum", &(-1).into())?;
/// assert_eq!((axis.index(), shape[axis]), (1, 3));
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Axis(pub(crate) usize);

impl Axis {
    /// The position, from 0.
    pub const fn index(self) -> usize {
        self.0
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An axis in the user's notation: a position, negative from the end, or a name.
///
/// ```
/// use defn_core::AxisRef;
/// assert_eq!(AxisRef::from(-1), AxisRef::Index(-1));
/// assert_eq!(AxisRef::from("row").to_string(), "\"row\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AxisRef {
    /// A position in `-rank..rank`.
    Index(i64),
    /// The name of one axis.
    Name(Name),
}

impl fmt::Display for AxisRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisRef::Index(index) => write!(f, "{index}"),
            AxisRef::Name(name) => write!(f, "\"{name}\""),
        }
    }
}

impl From<i64> for AxisRef {
    fn from(index: i64) -> AxisRef {
        AxisRef::Index(index)
    }
}

impl From<i32> for AxisRef {
    fn from(index: i32) -> AxisRef {
        AxisRef::Index(i64::from(index))
    }
}

impl From<Axis> for AxisRef {
    fn from(axis: Axis) -> AxisRef {
        AxisRef::Index(axis.0 as i64)
    }
}

impl From<&str> for AxisRef {
    fn from(name: &str) -> AxisRef {
        AxisRef::Name(name.into())
    }
}

/// The axes of an op, in the user's notation.
///
/// ```
/// use defn_core::{Axes, AxisRef};
/// assert_eq!(Axes::from([0, -1]), Axes::List(vec![AxisRef::Index(0), AxisRef::Index(-1)]));
/// assert_eq!(Axes::from("row"), Axes::List(vec![AxisRef::from("row")]));
/// assert_eq!(Axes::default(), Axes::All);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Axes {
    /// Every axis; the default of options.
    #[default]
    All,
    /// The listed axes.
    List(Vec<AxisRef>),
}

impl Axes {
    /// No axis.
    ///
    /// ```
    /// use defn_core::Axes;
    /// assert_eq!(Axes::NONE, Axes::from([0; 0]));
    /// ```
    pub const NONE: Axes = Axes::List(Vec::new());
}

impl<A: Into<AxisRef>> From<A> for Axes {
    fn from(axis: A) -> Axes {
        Axes::List(vec![axis.into()])
    }
}

impl<A: Into<AxisRef> + Clone> From<&[A]> for Axes {
    fn from(axes: &[A]) -> Axes {
        Axes::List(axes.iter().cloned().map(Into::into).collect())
    }
}

impl<A: Into<AxisRef>, const N: usize> From<[A; N]> for Axes {
    fn from(axes: [A; N]) -> Axes {
        Axes::List(axes.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<AxisRef>> for Axes {
    fn from(axes: Vec<AxisRef>) -> Axes {
        Axes::List(axes)
    }
}

impl From<AxisList> for Axes {
    fn from(axes: AxisList) -> Axes {
        Axes::List(axes.into_iter().map(Into::into).collect())
    }
}

/// The sizes and names of a tensor's axes. Sizes are at least 0; a scalar has no axes.
///
/// ```
/// use defn_core::Shape;
/// let shape = Shape::named(&[2, 3], &[Some("row"), None])?;
/// assert_eq!(shape.to_string(), "[row: 2][3]");
/// assert_eq!(shape.resolve("sum", &"row".into())?.index(), 0);
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape {
    sizes: Sizes,
    /// One entry per axis; `None` when no axis has a name.
    names: Option<Arc<[Option<Name>]>>,
}

impl Clone for Shape {
    fn clone(&self) -> Shape {
        // A slice copy is faster than cloning the list, which pushes the sizes one by one.
        Shape { sizes: Sizes::from_slice(&self.sizes), names: self.names.clone() }
    }
}

impl Shape {
    /// The shape without axes.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// A shape without names.
    pub fn new(sizes: &[usize]) -> Shape {
        Shape { sizes: Sizes::from_slice(sizes), names: None }
    }

    /// A shape with a name, or none, for each axis.
    ///
    /// # Errors
    /// When the lists differ in length.
    pub fn named(sizes: &[usize], names: &[Option<&str>]) -> Result<Shape> {
        Shape::new(sizes).with_names(names.iter().map(|name| name.map(Name::from)))
    }

    /// The same sizes with other names.
    ///
    /// # Errors
    /// When there is not one entry for each axis.
    pub fn with_names(&self, names: impl IntoIterator<Item = Option<Name>>) -> Result<Shape> {
        let names: Vec<_> = names.into_iter().collect();
        if names.len() != self.rank() {
            return Err(ErrorKind::NamesLength { names: names_text(&names), shape: self.clone() }.into());
        }
        let named = names.iter().any(Option::is_some);
        Ok(Shape { sizes: self.sizes.clone(), names: named.then(|| names.into()) })
    }

    /// The same sizes without names.
    pub fn without_names(&self) -> Shape {
        Shape { sizes: self.sizes.clone(), names: None }
    }

    /// A shape from pairs of size and name.
    pub fn from_axes(axes: impl IntoIterator<Item = (usize, Option<Name>)>) -> Shape {
        let (mut sizes, mut names) = (Sizes::new(), SmallVec::<[Option<Name>; 6]>::new());
        for (size, name) in axes {
            sizes.push(size);
            names.push(name);
        }
        let named = names.iter().any(Option::is_some);
        Shape { sizes, names: named.then(|| names.into_vec().into()) }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The sizes in order.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The number of elements. It does not overflow: [`TensorType::new`] has checked the bytes.
    #[inline]
    pub fn size(&self) -> usize {
        // The other sizes of a shape without elements may overflow before its zero comes.
        self.sizes.iter().fold(1, |product, &size| product.wrapping_mul(size))
    }

    /// The number of elements, unless it overflows.
    pub fn checked_size(&self) -> Option<usize> {
        // Any zero makes the product zero, even where other factors overflow.
        if self.sizes.contains(&0) {
            return Some(0);
        }
        self.sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size))
    }

    /// The name of an axis.
    pub fn name(&self, axis: Axis) -> Option<&Name> {
        self.names.as_ref().and_then(|names| names[axis.0].as_ref())
    }

    /// Whether any axis has a name.
    pub fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// The names in order, one entry per axis.
    pub fn names(&self) -> impl Iterator<Item = Option<&Name>> {
        self.axes().map(|axis| self.name(axis))
    }

    /// Every axis in order.
    pub fn axes(&self) -> impl DoubleEndedIterator<Item = Axis> + ExactSizeIterator + use<> {
        (0..self.rank()).map(Axis)
    }

    /// The axis at a position, when there is one.
    pub fn axis(&self, index: usize) -> Option<Axis> {
        (index < self.rank()).then_some(Axis(index))
    }

    /// The last axis, when there is one.
    pub fn last_axis(&self) -> Option<Axis> {
        self.rank().checked_sub(1).map(Axis)
    }

    /// Size and name of every axis in order.
    pub fn entries(&self) -> impl Iterator<Item = (usize, Option<Name>)> {
        self.axes().map(|axis| (self[axis], self.name(axis).cloned()))
    }

    /// Finds the axis for a user's reference; `op` is for the message.
    ///
    /// # Errors
    /// A position out of range, a name that no axis has, or a name that several axes have.
    pub fn resolve(&self, op: &'static str, axis: &AxisRef) -> Result<Axis> {
        match axis {
            AxisRef::Index(index) => {
                let rank = self.rank() as i64;
                if (-rank..rank).contains(index) {
                    Ok(Axis(index.rem_euclid(rank) as usize))
                } else {
                    Err(ErrorKind::AxisRange { op, axis: *index, shape: self.clone() }.into())
                }
            }
            AxisRef::Name(name) => {
                let mut found = self.axes().filter(|axis| self.name(*axis) == Some(name));
                match (found.next(), found.next()) {
                    (Some(axis), None) => Ok(axis),
                    (None, _) => {
                        Err(ErrorKind::AxisName { op, name: name.clone(), shape: self.clone() }.into())
                    }
                    (Some(_), Some(_)) => {
                        Err(ErrorKind::AxisAmbiguous { op, name: name.clone(), shape: self.clone() }.into())
                    }
                }
            }
        }
    }

    /// Finds several axes, in the given order; all axes for [`Axes::All`].
    ///
    /// # Errors
    /// As [`Shape::resolve`], and an axis given twice.
    pub fn resolve_all(&self, op: &'static str, axes: &Axes) -> Result<AxisList> {
        match axes {
            Axes::All => Ok(self.axes().collect()),
            Axes::List(list) => {
                let mut found = AxisList::new();
                for axis in list {
                    let resolved = self.resolve(op, axis)?;
                    if found.contains(&resolved) {
                        return Err(
                            ErrorKind::AxisRepeated { op, axis: axis.clone(), shape: self.clone() }.into()
                        );
                    }
                    found.push(resolved);
                }
                Ok(found)
            }
        }
    }

    /// The broadcast shape of two shapes: axes align at the end, sizes are equal or one of them is 1, names
    /// merge.
    ///
    /// # Errors
    /// Sizes or names that do not fit.
    pub fn broadcast_with(&self, op: &'static str, other: &Shape) -> Result<Shape> {
        if self == other {
            return Ok(self.clone());
        }
        let rank = self.rank().max(other.rank());
        let mut sizes = Sizes::with_capacity(rank);
        for back in (0..rank).rev() {
            let (a, b) = (self.size_from_end(back), other.size_from_end(back));
            sizes.push(match (a, b) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(ErrorKind::Broadcast {
                        op,
                        left: self.clone(),
                        right: other.clone(),
                        axis: rank - 1 - back,
                        sizes: (a, b),
                    }
                    .into());
                }
            });
        }
        if !self.has_names() && !other.has_names() {
            return Ok(Shape { sizes, names: None });
        }
        let mut names = Vec::with_capacity(rank);
        for back in (0..rank).rev() {
            let pick = |shape: &Shape| (back < shape.rank()).then(|| Axis(shape.rank() - 1 - back));
            let (a, b) = (pick(self), pick(other));
            let name = |shape: &Shape, axis: Option<Axis>| axis.and_then(|axis| shape.name(axis).cloned());
            names.push(merge_names(op, (name(self, a), a), (name(other, b), b))?);
        }
        Ok(Shape { sizes, names: Some(names.into()) })
    }

    /// The size of the axis `back` axes before the last; 1 if there is none.
    fn size_from_end(&self, back: usize) -> usize {
        if back < self.rank() { self.sizes[self.rank() - 1 - back] } else { 1 }
    }

    /// The shape without some axes, or with their sizes set to 1.
    pub fn reduced(&self, axes: &[Axis], keep_axes: bool) -> Shape {
        Shape::from_axes(self.axes().filter_map(|axis| {
            let name = self.name(axis).cloned();
            match (axes.contains(&axis), keep_axes) {
                (false, _) => Some((self[axis], name)),
                (true, true) => Some((1, name)),
                (true, false) => None,
            }
        }))
    }

    /// The shape with its axes in another order; `axes` is a permutation.
    pub fn permuted(&self, axes: &[Axis]) -> Shape {
        Shape::from_axes(axes.iter().map(|&axis| (self[axis], self.name(axis).cloned())))
    }

    /// The reason why two shapes do not fit, for messages: their ranks, or the first axis whose sizes
    /// `is_bad`; else `otherwise`.
    pub(crate) fn mismatch_text(
        &self,
        other: &Shape,
        is_bad: impl Fn(usize, usize, usize) -> bool,
        otherwise: &str,
    ) -> String {
        let (left, right) = (self.rank(), other.rank());
        if left != right {
            return format!("the ranks are {left} and {right}");
        }
        match (0..left).find(|&axis| is_bad(axis, self.sizes[axis], other.sizes[axis])) {
            Some(axis) => format!("axis {axis} has sizes {} and {}", self.sizes[axis], other.sizes[axis]),
            None => otherwise.to_owned(),
        }
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> SmallVec<[isize; 6]> {
        let mut strides: SmallVec<[isize; 6]> = smallvec::smallvec![0; self.rank()];
        let mut step = 1isize;
        for (stride, &size) in strides.iter_mut().zip(&self.sizes).rev() {
            *stride = step;
            step = step.saturating_mul(size as isize);
        }
        strides
    }
}

impl Index<Axis> for Shape {
    type Output = usize;

    fn index(&self, axis: Axis) -> &usize {
        &self.sizes[axis.0]
    }
}

impl IndexMut<Axis> for Shape {
    fn index_mut(&mut self, axis: Axis) -> &mut usize {
        &mut self.sizes[axis.0]
    }
}

/// `[row: 2][3]`; nothing for a scalar.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for axis in self.axes() {
            match self.name(axis) {
                Some(name) => write!(f, "[{name}: {}]", self[axis])?,
                None => write!(f, "[{}]", self[axis])?,
            }
        }
        Ok(())
    }
}

/// `Shape([row: 2][3])`.
impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({self})")
    }
}

/// Merges the names of two axes that become one: a missing name merges with any name.
///
/// # Errors
/// Two different names.
pub fn merge_names(
    op: &'static str,
    (left, left_axis): (Option<Name>, Option<Axis>),
    (right, right_axis): (Option<Name>, Option<Axis>),
) -> Result<Option<Name>> {
    match (left, right) {
        (Some(left), Some(right)) if left != right => Err(ErrorKind::NamesConflict {
            op,
            left,
            left_axis: left_axis.map_or(0, Axis::index),
            right,
            right_axis: right_axis.map_or(0, Axis::index),
        }
        .into()),
        (left, right) => Ok(left.or(right)),
    }
}

/// `["row", None]`, for messages.
pub(crate) fn names_text(names: &[Option<Name>]) -> String {
    let entries: Vec<String> =
        names.iter().map(|name| name.as_ref().map_or("None".into(), |name| format!("\"{name}\""))).collect();
    format!("[{}]", entries.join(", "))
}

/// The type of a tensor: element type, sizes and names.
///
/// ```
/// use defn_core::{DType, Shape, TensorType};
/// let ty = TensorType::new(DType::F32, Shape::named(&[2, 3], &[Some("row"), None])?)?;
/// assert_eq!(ty.to_string(), "f32[row: 2][3]");
/// assert_eq!((ty.size(), ty.byte_size()), (6, 24));
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// Sizes and names.
    pub shape: Shape,
}

impl TensorType {
    /// A type whose size in bytes does not overflow.
    ///
    /// # Errors
    /// More bytes than the address space.
    pub fn new(dtype: DType, shape: Shape) -> Result<TensorType> {
        let bytes = shape.checked_size().and_then(|n| n.checked_mul(dtype.storage_bytes()));
        match bytes {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(TensorType { dtype, shape }),
            _ => Err(ErrorKind::TooLarge { dtype, shape }.into()),
        }
    }

    /// The type of a scalar.
    pub fn scalar(dtype: DType) -> TensorType {
        TensorType { dtype, shape: Shape::scalar() }
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.shape.size()
    }

    /// The size in memory in bytes.
    #[inline]
    pub fn byte_size(&self) -> usize {
        self.size() * self.dtype.storage_bytes()
    }

    /// The same shape with another element type.
    ///
    /// # Errors
    /// As [`TensorType::new`].
    pub fn with_dtype(&self, dtype: DType) -> Result<TensorType> {
        TensorType::new(dtype, self.shape.clone())
    }

    /// Whether a tensor of type `other` is accepted where this type is expected: equal, except for names that
    /// are missing on either side.
    pub fn is_compatible(&self, other: &TensorType) -> bool {
        self.dtype == other.dtype
            && self.shape.sizes() == other.shape.sizes()
            && self.shape.names().zip(other.shape.names()).all(|(a, b)| a.is_none() || b.is_none() || a == b)
    }
}

/// `f32[row: 2][3]`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sizes: &[usize], names: &[Option<&str>]) -> Shape {
        Shape::named(sizes, names).unwrap()
    }

    #[test]
    fn broadcasting_aligns_at_the_end_and_merges_names() {
        let a = shape(&[2, 1], &[Some("x"), None]);
        let b = shape(&[4, 1, 3], &[None, None, Some("y")]);
        assert_eq!(a.broadcast_with("add", &b).unwrap().to_string(), "[4][x: 2][y: 3]");
        assert!(Shape::new(&[2]).broadcast_with("add", &Shape::new(&[3])).is_err());
        assert_eq!(Shape::new(&[0]).broadcast_with("add", &Shape::new(&[1])).unwrap().sizes(), &[0]);
    }

    #[test]
    fn axes_resolve_by_position_and_name() {
        let a = shape(&[2, 3], &[Some("x"), Some("y")]);
        assert_eq!(a.resolve("sum", &(-1).into()).unwrap().index(), 1);
        assert_eq!(a.resolve("sum", &"x".into()).unwrap().index(), 0);
        assert!(a.resolve("sum", &2.into()).is_err());
        assert!(a.resolve("sum", &"z".into()).is_err());
        assert!(a.resolve_all("sum", &[0, -2].into()).is_err());
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let huge = Shape::new(&[usize::MAX, 2]);
        assert!(TensorType::new(DType::F32, huge).is_err());
        let empty = Shape::new(&[usize::MAX, 2, 0]);
        assert_eq!(TensorType::new(DType::F32, empty).unwrap().size(), 0);
    }
}
