//! Sparsity of Jacobians: their patterns, and colorings that say which columns or rows one pass computes together.
//!
//! ```
//! use defn::prelude::*;
//! use defn::sparsity::{Coloring, pattern};
//!
//! let x = Expr::from(Tensor::template(&[100], DType::F64)?);
//! let differences = |x: Expr| x.slice(&[1], &[99]) - x.slice(&[0], &[99]);
//! let found = pattern(&x, differences)?;
//! assert_eq!((found.shape(), found.row(5)), ((99, 100), &[5, 6][..]));
//! assert_eq!(Coloring::of_columns(&found)?.count, 2);
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core::builder::BuildControl;
use defn_core::region::Region;
use defn_core::sparsity::{Variable, detect};
use defn_core::{Location, Result, Tensor as CoreTensor, trace};

use crate::Expr;
use crate::control::Exprs;
use crate::expr::record;
use crate::grad::traced;

/// ```
/// use defn::prelude::*;
/// use defn::sparsity::{Coloring, pattern};
///
/// let x = Expr::from(Tensor::template(&[4], DType::F32)?);
/// let squares = pattern(&x, |x| x.pow(2))?;
/// assert_eq!(Coloring::of_columns(&squares)?.colors, [0, 0, 0, 0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::sparsity::Coloring;
/// ```
/// use defn::sparsity::Pattern;
///
/// let pattern = Pattern::new(3, vec![0, 2, 3], vec![0, 2, 1])?;
/// assert_eq!(pattern.transpose()?.row(2), [0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::sparsity::Pattern;

/// The pattern of the Jacobian of a function: which elements of its value depend on which elements of the variables.
///
/// The function is traced and no derivative is computed. The pattern holds for all values of the variables: it may have
/// entries that are zero, and lacks none that is not. Reads and writes at positions that are computed from constants and
/// captured tensors are exact, for the present elements of these tensors.
///
/// - Shapes: a row for each element of the value; a column for each element of the variables, one variable after the other.
///   Templates give the types of variables that are not there yet.
/// - Dtypes: any.
///
/// ```
/// use defn::prelude::*;
/// use defn::sparsity::pattern;
///
/// let (a, b) = (Tensor::template(&[2], DType::F32)?, Tensor::template(&[2], DType::F32)?);
/// let found = pattern(&(Expr::from(a), Expr::from(b)), |(a, b)| a * b)?;
/// assert_eq!(found.rows().collect::<Vec<_>>(), [[0, 2], [1, 3]]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Those of the function.
#[track_caller]
pub fn pattern<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> Result<Pattern> {
    let location = Location::caller();
    let (_, traced) = traced(at, fun, |_| None, location.clone());
    let traced = traced?;
    let (mut variables, mut columns) = (Vec::new(), 0);
    for (input, ty) in traced.region.parameters().iter().enumerate() {
        variables.push(Variable { input, first: columns });
        columns += ty.size();
    }
    let mut known: Vec<Option<CoreTensor>> = vec![None; variables.len()];
    let captures = traced.arguments.iter().skip(variables.len());
    known.extend(captures.map(|tensor| tensor.buffer().is_some().then(|| tensor.clone())));
    let found = record(location, |ops| {
        let evaluate = |region: &Region, inputs: &[CoreTensor]| {
            let mut ops = ops.clone();
            trace::suspended(|| ops.inline(region, inputs))
        };
        detect(&traced.region, (&variables, columns), &[0], &known, &evaluate)
    })?;
    Ok(found.pattern)
}
