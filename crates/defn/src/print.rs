//! How tensors and expressions are printed: as Python prints them.

use std::convert::Infallible;
use std::fmt;

use defn_core::print::{self, BoolText, SHOWN_ELEMENTS, ShownElements};
use defn_core::{self as core, vectorize};

use crate::{Expr, Tensor};

/// How bools are written.
const BOOLS: BoolText = ["false", "true"];

/// The elements that are shown unless others are asked for.
const SHOWN: ShownElements = ShownElements::Ends(SHOWN_ELEMENTS);

/// The elements, or why they cannot be read: printing must not fail while an error is looked at.
fn elements(tensor: &core::Tensor, shown: ShownElements) -> String {
    print::elements(tensor, shown, None, BOOLS).unwrap_or_else(|error| format!("({error})"))
}

/// The type and the elements that are to be shown, or the graph of a traced tensor.
pub(crate) fn text(tensor: &core::Tensor, shown: ShownElements) -> String {
    let text = print::tensor(tensor, None, || Ok::<_, Infallible>(elements(tensor, shown)));
    text.unwrap_or_else(|never| match never {})
}

fn write(tensor: &core::Tensor, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_number = print::is_number(tensor);
    f.pad(&if is_number { elements(tensor, SHOWN) } else { text(tensor, SHOWN) })
}

/// The number of a scalar; the type and the elements of any other tensor. Of more than 50 elements, those at the ends
/// of each axis are written.
///
/// ```
/// use defn::prelude::*;
///
/// assert_eq!(Tensor::scalar(1.5)?.to_string(), "1.5");
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let text = "Tensor<
///   f32[2][2]
///   [
///     [1.0, 2.0],
///     [3.0, 4.0]
///   ]
/// >";
/// assert_eq!(x.to_string(), text);
/// # Ok::<(), defn::Error>(())
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

/// The type in one line, and the number of a scalar; `{:#?}` writes what `{}` writes.
///
/// ```
/// use defn::prelude::*;
///
/// assert_eq!(format!("{:?}", Tensor::scalar(7)?), "Tensor(7, s32)");
/// assert_eq!(format!("{:?}", Tensor::iota(&[2, 3], DType::F32, None)?), "Tensor(f32[2][3])");
/// # Ok::<(), defn::Error>(())
/// ```
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return write(&self.0, f);
        }
        let ty = vectorize::type_text(&self.0);
        match print::is_number(&self.0) {
            true => write!(f, "Tensor({}, {ty})", elements(&self.0, SHOWN)),
            false => write!(f, "Tensor({ty})"),
        }
    }
}

/// The type, and the graph of what is computed; after an error, the error.
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| {
///     let y = x + 1;
///     assert!(y.to_string().starts_with("Tensor<\n  s32[2]\n"));
///     y
/// });
/// f.call(Tensor::full(&[2], DType::S32, 0)?)?;
/// # Ok::<(), defn::Error>(())
/// ```
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(tensor) => write(tensor, f),
            Err(error) => error.fmt(f),
        }
    }
}

/// The type in one line, or the error; `{:#?}` writes what `{}` writes.
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| {
///     assert_eq!(format!("{x:?}"), "Expr(f32[3])");
///     x
/// });
/// f.call(Tensor::full(&[3], DType::F32, 0)?)?;
/// # Ok::<(), defn::Error>(())
/// ```
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(tensor) if f.alternate() => write(tensor, f),
            Ok(tensor) => write!(f, "Expr({})", vectorize::type_text(tensor)),
            Err(error) => write!(f, "Expr({error})"),
        }
    }
}
